//! The flags of `heaptap licenses`.

/// Flags of `licenses`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example:\n  heaptap licenses | less")]
pub struct Args {}
