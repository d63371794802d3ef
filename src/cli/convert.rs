//! `heaptap convert`: shows what the conversion of a trace found and wrote.

use super::{Context, Outcome};
use crate::error::{ErrorClass, Failure};

/// Flags of `convert`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  heaptap convert raw-trace -o profiles")]
pub struct Args {
    /// A recording's folder, a trace (also gzip, zstd, in a ZIP or TAR), or - for stdin
    #[arg(value_name = "INPUT")]
    pub input: std::path::PathBuf,
    /// The folder to write to; must be empty or new [default: beside the input]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<std::path::PathBuf>,
    /// Only these processes
    #[arg(long = "pid", value_name = "PID", value_delimiter = ',')]
    pub pids: Vec<u64>,
    /// Only the dumps with these times, in ns of the trace
    #[arg(long, value_name = "NS", value_delimiter = ',')]
    pub timestamps: Vec<u64>,
    /// Only these heaps
    #[arg(long = "heap", value_name = "NAME", value_delimiter = ',')]
    pub heaps: Vec<String>,
    /// Names of the sample types
    #[arg(long, value_name = "WHOSE", value_enum, default_value_t)]
    pub sample_names: SampleNames,
}

/// Whose names the sample types of a pprof carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum SampleNames {
    /// objects, space, alloc_objects, alloc_space: what pprof tools know
    #[default]
    Heaptap,
    /// Perfetto's own names
    Perfetto,
}

/// Runs the command.
///
/// # Errors
/// Always, until it is built.
pub async fn run(_ctx: &Context, _args: Args) -> Result<Outcome, Failure> {
    Err(Failure::new(
        ErrorClass::Bug,
        "not-built",
        "`convert` is not built yet",
    ))
}
