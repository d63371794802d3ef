//! The flags of `heaptap explore`.

use crate::console::flags::java::JavaArgs;
use crate::console::flags::moment::MomentArgs;
use crate::console::flags::time::positive_time;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Flags of `explore`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:\n  \
    heaptap explore dump.hprof             walk it in the browser; Ctrl-C ends\n  \
    heaptap explore rec@before rec@after   the second, compared with the first\n  \
    heaptap explore dump.hprof --redact    no texts and values of the app\n  \
    heaptap explore rec@last -o heap.html  a file to send to others")]
pub struct Args {
    /// A recording's directory, a trace or an HPROF; of two, the second is compared with the first
    ///
    /// INPUT@MOMENT chooses one dump: INPUT@LABEL, INPUT@N, INPUT@last or INPUT@end.
    #[arg(value_name = "INPUT", num_args = 1..=2, required_unless_present_any = ["names", "pids", "packages"])]
    pub inputs: Vec<OsString>,
    /// Write a page to this file instead of starting a server
    ///
    /// It has all classes, all leaks and the largest objects.
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, conflicts_with_all = ["redact", "print_url", "port", "idle"])]
    pub output: Option<PathBuf>,
    /// Overwrite existing files
    #[arg(long, requires = "output")]
    pub force: bool,
    /// Include texts and other contents of Java heaps
    ///
    /// Values and pictures are among them.
    #[arg(long, requires = "output")]
    pub contents: bool,
    /// Hide texts and values of the app
    #[arg(long)]
    pub redact: bool,
    /// Print the address instead of starting a browser
    #[arg(long)]
    pub print_url: bool,
    /// Port to listen on [default: any]
    #[arg(
        long,
        value_name = "PORT",
        default_value_t = 0,
        hide_default_value = true
    )]
    pub port: u16,
    /// Time without an open page after which heaptap ends
    ///
    /// Browsers slow down pages in the background: use at least 2m for those.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = positive_time)]
    pub idle: Duration,
    #[command(flatten)]
    pub moment: MomentArgs,
    #[command(flatten)]
    pub java: JavaArgs,
}
