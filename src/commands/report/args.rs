//! The flags of `heaptap report`.

use crate::console::flags::iterations::iteration_count;
use crate::console::flags::java::JavaArgs;
use crate::console::flags::limit::unless_zero;
use crate::console::flags::native::NativeArgs;
use std::ffi::OsString;
use std::path::PathBuf;

/// Flags of `report`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:\n  \
    heaptap report rec                           writes rec/report.html\n  \
    heaptap report rec@after --base rec@before   what grew\n  \
    heaptap report dump.hprof --open             and opens the page\n  \
    heaptap report rec -o - | less")]
pub struct Args {
    /// Recordings, traces, pprofs or HPROFs
    ///
    /// INPUT@MOMENT chooses one dump. The dumps of several inputs share one timeline, and callsites are
    /// joined by name. A recording without Java heaps includes those of its subdirectory `java`.
    #[arg(value_name = "INPUT", required = true)]
    pub inputs: Vec<OsString>,
    /// Show the difference from this input or dump
    #[arg(long, value_name = "INPUT")]
    pub base: Option<OsString>,
    /// Iterations between the two dumps, or of each recording
    ///
    /// heaptap divides differences by them.
    #[arg(long, value_name = "N", value_parser = iteration_count, requires = "base", hide_short_help = true)]
    pub rounds: Option<u64>,
    /// Page to write; - for stdout [default: report.html in a recording]
    ///
    /// A part of a recording, such as one dump, and several inputs have the default report-part.html.
    /// For other inputs the default is a file named after INPUT in the current directory; that of a part
    /// ends in .part.html.
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Overwrite existing files
    #[arg(long)]
    pub force: bool,
    /// Maximum number of callsites on the page; 0 means no limit [default: 1000000]
    #[arg(short, long, value_name = "N", value_parser = unless_zero)]
    pub limit: Option<usize>,
    /// Include texts and other contents of Java heaps
    ///
    /// Without it the page has no texts, values, pictures, keys of maps or names of threads; of strings and
    /// arrays that occur several times, it has the lengths.
    #[arg(long)]
    pub contents: bool,
    /// Open the page in the browser
    #[arg(long)]
    pub open: bool,
    #[command(flatten)]
    pub native: NativeArgs,
    #[command(flatten)]
    pub java: JavaArgs,
}
