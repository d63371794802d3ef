//! The flags that every command takes.

use clap::{ArgAction, Args, ValueEnum};

/// Flags that every command takes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub struct Globals {
    /// The device: a serial, usb:PATH, model:NAME or transport:ID
    ///
    /// Without it: ANDROID_SERIAL, else the only device connected.
    #[arg(short, long, global = true, value_name = "SERIAL")]
    pub serial: Option<String>,
    /// The adb server [default: as adb's own variables say, else 127.0.0.1:5037]
    ///
    /// Else ADB_SERVER_SOCKET (tcp:HOST:PORT), ANDROID_ADB_SERVER_ADDRESS and
    /// ANDROID_ADB_SERVER_PORT. A local server that does not answer is started.
    #[arg(long, global = true, value_name = "HOST:PORT")]
    pub adb_server: Option<String>,
    /// Android user or work profile
    #[arg(long, global = true, value_name = "ID")]
    pub user: Option<u32>,
    /// Use the built-in virtual phone in place of a device
    ///
    /// SPEC is a list such as android=14,build=user; `heaptap virtual-phone --help` lists the keys
    /// and their values.
    #[cfg_attr(not(feature = "virtual-phone"), arg(skip))]
    #[cfg_attr(
        feature = "virtual-phone",
        arg(
            long = "virtual",
            global = true,
            value_name = "SPEC",
            num_args = 0..=1,
            require_equals = true,
            default_missing_value = "",
            conflicts_with_all = ["serial", "adb_server"],
        )
    )]
    pub virtual_phone: Option<String>,
    /// One JSON document on stdout; words for people go to stderr
    #[arg(long, global = true)]
    pub json: bool,
    /// JSON lines on stdout: the events of a long command as they happen
    #[arg(long, global = true, conflicts_with = "json")]
    pub json_lines: bool,
    /// Say only what is wrong
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Say more; twice for more still
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
    /// Colours
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t)]
    pub color: ColorWhen,
    /// No status line and no progress bars
    #[arg(long, global = true)]
    pub no_progress: bool,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ColorWhen {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}
