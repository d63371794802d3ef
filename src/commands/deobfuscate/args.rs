//! The flags of `heaptap deobfuscate`.

use crate::flags::goal;
use crate::flags::names::NamesArgs;

/// Flags of `deobfuscate`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    heaptap deobfuscate trace --mapping mapping.txt -o maps; cat trace maps > deobfuscated\n  \
    heaptap deobfuscate trace --mapping com.example.app=mapping.txt --into deobfuscated\n  \
    heaptap deobfuscate out --mapping mapping.txt    a recording's folder: its profiles too")]
pub struct Args {
    /// What is read, and where packets go.
    #[command(flatten)]
    pub packets: goal::PacketsArgs,
    /// Where names come from.
    #[command(flatten)]
    pub names: NamesArgs,
}
