//! The flags of `heaptap doctor`.

use std::path::PathBuf;

/// Flags of `doctor`.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Examples:\n  heaptap doctor\n  heaptap doctor --try -n com.example.app",
    after_long_help = "Exit code 3: the device is not ready; 11: this host is not. With --try, \
                       also that of the gravest failed step."
)]
pub struct Args {
    /// Try every capability on an app for a few seconds; write a directory for a bug report
    ///
    /// Records the native heap, dumps the Java heap in both forms, reads meminfo, memory mappings,
    /// the GC log and the allocator, and checks that the device is as before. Does not start,
    /// restart or end an app. Tries one app: that of -n, otherwise the one in front, otherwise
    /// another running app that can be profiled. Of the HPROF, only a copy without the contents of strings and arrays is kept.
    #[arg(long = "try")]
    pub tries: bool,
    /// Process names, with *; several with commas
    #[arg(
        short = 'n',
        long = "name",
        value_name = "NAME",
        value_delimiter = ',',
        requires = "tries"
    )]
    pub names: Vec<String>,
    /// Directory of recordings to check [default: .]; of the results of --try
    /// [default: heaptap-try-TIME]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}
