//! The flags of `heaptap symbolize`.

use std::path::PathBuf;

use clap::{ValueEnum, ValueHint};

use crate::console::flags::names::NamesArgs;

/// Flags of `symbolize`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:\n  \
    heaptap symbolize rec --symbols app/build      a recording\n  \
    heaptap symbolize rec --mapping mapping.txt    Java names\n  \
    heaptap symbolize trace --whole-trace -o symbolized\n  \
    heaptap symbolize trace -o names; cat trace names > symbolized")]
pub struct Args {
    /// A recording's directory, or a trace; - for stdin
    ///
    /// Traces may be packed with gzip, zstd or xz, or lie in a ZIP or TAR.
    #[arg(value_name = "TRACE")]
    pub input: PathBuf,
    /// File for the packets; - for stdout [default: stdout, or a file next to TRACE]
    ///
    /// If stdout is a terminal, heaptap writes a file next to TRACE.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Write the whole trace with the packets behind it
    #[arg(long, requires = "output")]
    pub whole_trace: bool,
    /// Look up only these names: native or java
    #[arg(long, value_name = "WHAT", value_enum, hide_possible_values = true)]
    pub only: Option<OnlyArg>,
    /// Overwrite existing files
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub names: NamesArgs,
}

/// Kinds of names to look up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnlyArg {
    /// Functions, files and lines of native frames.
    Native,
    /// Java names.
    Java,
}
