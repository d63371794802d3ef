//! The flags of `heaptap symbolize`.

use crate::flags::goal;
use crate::flags::names::NamesArgs;

/// Flags of `symbolize`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    heaptap symbolize out --symbols app/build        a recording's folder: its profiles too\n  \
    heaptap symbolize trace -o syms; cat trace syms > symbolized\n  \
    heaptap symbolize trace --into symbolized        the same in one step")]
pub struct Args {
    /// What is read, and where packets go.
    #[command(flatten)]
    pub packets: goal::PacketsArgs,
    /// Where names come from.
    #[command(flatten)]
    pub names: NamesArgs,
}
