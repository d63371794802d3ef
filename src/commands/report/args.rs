//! The flags of `heaptap report`.

use crate::flags::iterations::iteration_count;
use crate::flags::java::JavaArgs;
use crate::flags::native::NativeArgs;
use std::ffi::OsString;
use std::path::PathBuf;

/// Flags of `report`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    heaptap report rec                             writes report.html into the recording\n  \
    heaptap report rec@after --base rec@before     what grew between two of its dumps\n  \
    heaptap report new.pb.gz --base old.pb.gz -o diff.html\n  \
    heaptap report dump.hprof                      writes dump.hprof.html\n  \
    heaptap report rec -o - | less                 the page on standard output")]
pub struct Args {
    /// A recording's folder, a trace, a pprof or an HPROF; PATH@LABEL, PATH@N or PATH@last for
    /// one dump
    ///
    /// Of several, all dumps stand on one timeline, callsites joined by name. A recording without
    /// Java heaps shows those of a recording in its folder that is called java.
    #[arg(value_name = "INPUT", required = true)]
    pub inputs: Vec<OsString>,
    /// Show the difference to this input or dump
    #[arg(long, value_name = "INPUT")]
    pub base: Option<OsString>,
    /// Divide differences by N iterations
    #[arg(long, value_name = "N", value_parser = iteration_count, requires = "base")]
    pub per: Option<f64>,
    /// The page, - for stdout [default: report.html in a recording's folder, else a file called
    /// after INPUT in the current folder]
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Overwrite a file that is no report of heaptap
    #[arg(long)]
    pub force: bool,
    /// Every callsite; else, of more than 1.1 million, the smallest are summed up in their callers
    #[arg(long)]
    pub full: bool,
    /// Show texts and other contents of Java heaps on the page
    ///
    /// Without this flag the page has lengths and hashes of strings and arrays that occur several
    /// times, and no keys of maps.
    #[arg(long)]
    pub contents: bool,
    /// Open the page in the browser
    #[arg(long)]
    pub open: bool,
    /// Which native heap.
    #[command(flatten)]
    pub native: NativeArgs,
    /// How Java heaps are looked at.
    #[command(flatten)]
    pub java: JavaArgs,
}
