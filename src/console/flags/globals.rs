//! The flags that every command takes.

use std::num::NonZero;

use clap::{ArgAction, Args, ValueEnum};

use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::untrusted::shell::quoted;

/// Flags that every command takes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub struct Globals {
    /// Device: a serial, usb:PATH, model:NAME or transport:ID
    ///
    /// Without it: ANDROID_SERIAL, otherwise the only device.
    #[arg(
        short,
        long,
        global = true,
        hide_short_help = true,
        value_name = "SERIAL"
    )]
    pub serial: Option<String>,
    /// Address of the adb server [default: adb's variables, or 127.0.0.1:5037]
    ///
    /// The variables are ADB_SERVER_SOCKET (tcp:HOST:PORT), ANDROID_ADB_SERVER_ADDRESS and
    /// ANDROID_ADB_SERVER_PORT. If no server answers at port 5037 or that of the variables, heaptap
    /// starts a local one. `run` and `devices` accept several with commas; `run -s
    /// HOST:PORT/SERIAL` selects a device of one.
    #[arg(long, global = true, hide_short_help = true, value_name = "HOST:PORT")]
    pub adb_server: Option<String>,
    /// Android user or work profile
    #[arg(long, global = true, hide_short_help = true, value_name = "ID")]
    pub user: Option<u32>,
    /// Use the built-in virtual phone
    ///
    /// SPEC is a list such as android=14,build=user; `heaptap virtual-phone --help` lists the keys and
    /// their values.
    #[cfg_attr(not(feature = "virtual-phone"), arg(skip))]
    #[cfg_attr(
        feature = "virtual-phone",
        arg(
            long = "virtual",
            global = true,
            hide_short_help = true,
            value_name = "SPEC",
            num_args = 0..=1,
            require_equals = true,
            default_missing_value = "",
            conflicts_with = "adb_server",
        )
    )]
    pub virtual_phone: Option<String>,
    /// Print one JSON document to stdout and messages to stderr
    #[arg(long, global = true, hide_short_help = true)]
    pub json: bool,
    /// Print events as JSON lines to stdout
    #[arg(long, global = true, hide_short_help = true, conflicts_with = "json")]
    pub json_lines: bool,
    /// Leave out progress, notes, hints and summaries of recordings; warnings and errors stay
    #[arg(short, long, global = true, hide_short_help = true)]
    pub quiet: bool,
    /// Print more; twice for even more
    #[arg(short, long, global = true, hide_short_help = true, action = ArgAction::Count)]
    pub verbose: u8,
    /// When to use colors
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        value_enum,
        value_name = "WHEN",
        default_value_t
    )]
    pub color: ColorWhen,
    /// Maximum number of threads [default: HEAPTAP_THREADS, or all processors]
    ///
    /// The limit is for each piece of work that is shared; a command can do several at once.
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        value_name = "N",
        value_parser = positive
    )]
    pub threads: Option<NonZero<usize>>,
    /// No status line and no progress bars
    #[arg(long, global = true, hide_short_help = true)]
    pub no_progress: bool,
}

/// Parses a positive number.
///
/// # Errors
/// Returns an error for anything else.
pub fn positive(typed: &str) -> Result<NonZero<usize>, &'static str> {
    typed.parse().map_err(|_| "not a positive number")
}

/// Environment variable for `--threads`.
const THREADS: &str = "HEAPTAP_THREADS";

impl Globals {
    /// Returns the options that select the device, as typed, for a printed command: each after a
    /// space, or nothing.
    pub fn device_words(&self) -> String {
        let serial = self.serial.as_ref().map(|typed| ("-s", quoted(typed)));
        let server = self.adb_server.as_ref();
        let server = server.map(|typed| ("--adb-server", quoted(typed)));
        let user = self.user.map(|id| ("--user", id.to_string()));
        let words = [serial, server, user].into_iter().flatten();
        let mut words: String = words
            .map(|(flag, value)| format!(" {flag} {value}"))
            .collect();
        match self.virtual_phone.as_deref() {
            None => {}
            Some("") => words.push_str(" --virtual"),
            Some(spec) => words.push_str(&format!(" --virtual={}", quoted(spec))),
        }
        words
    }

    /// Adds the options that select the device to the commands of a help that look at it; to those that
    /// list all devices, only the server.
    pub fn with_device(&self, help: &str) -> String {
        let of_device = self.device_words();
        let server = self.adb_server.as_deref().map(quoted);
        let server = server.map_or_else(String::new, |typed| format!(" --adb-server {typed}"));
        let mut help = help.to_owned();
        for (command, words) in [
            ("status", &server),
            ("devices", &server),
            ("doctor", &of_device),
            ("apps", &of_device),
            ("check", &of_device),
        ] {
            let plain = format!("`heaptap {command}`");
            help = help.replace(&plain, &format!("`heaptap {command}{words}`"));
        }
        help
    }

    /// Applies the limit of threads.
    ///
    /// # Errors
    /// Returns an error if the environment variable is used and is not a positive number.
    pub fn limit_threads(&self) -> Result<(), Failure> {
        let of_environment = || match std::env::var(THREADS) {
            Ok(typed) if typed.is_empty() => Ok(None),
            Ok(typed) => positive(&typed).map(Some).map_err(|_| typed),
            Err(std::env::VarError::NotPresent) => Ok(None),
            Err(std::env::VarError::NotUnicode(typed)) => Err(typed.to_string_lossy().into_owned()),
        };
        let threads = match self.threads {
            Some(threads) => Some(threads),
            None => of_environment().map_err(|typed| {
                let message = format!("{THREADS} is `{typed}`, not a positive number");
                Failure::new(ErrorClass::Usage, "bad-value", message)
                    .with_help(format!("set {THREADS} to a number such as 2, or unset it"))
            })?,
        };
        if let Some(threads) = threads {
            heaptap_base::parallel::limit(threads);
        }
        Ok(())
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_command_repeats_how_the_device_was_selected() {
        let words = |globals: Globals| globals.device_words();
        assert_eq!(words(Globals::default()), "");
        let selected = Globals {
            serial: Some("pixel".to_owned()),
            adb_server: Some("lab:5037".to_owned()),
            user: Some(10),
            ..Globals::default()
        };
        let help = "run `heaptap status` or `heaptap apps`, then `heaptap stop ID`";
        assert_eq!(
            selected.with_device(help),
            "run `heaptap status --adb-server lab:5037` or `heaptap apps -s pixel --adb-server \
             lab:5037 --user 10`, then `heaptap stop ID`"
        );
        assert_eq!(Globals::default().with_device(help), help);
        assert_eq!(words(selected), " -s pixel --adb-server lab:5037 --user 10");
        for (spec, typed) in [("", " --virtual"), ("android=11", " --virtual=android=11")] {
            let of_phone = Globals {
                virtual_phone: Some(spec.to_owned()),
                ..Globals::default()
            };
            assert_eq!(words(of_phone), typed);
        }
    }
}
