//! The flags of `heaptap check`.

use crate::console::flags::heap::HeapArgs;
use crate::console::flags::target::NamedTargetArgs;

/// Flags of `check`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:\n  \
    heaptap check -n com.example.app\n  \
    heaptap check -n 'com.example.*' --heap native,java --json")]
pub struct Args {
    #[command(flatten)]
    pub target: NamedTargetArgs,
    #[command(flatten)]
    pub heap: HeapArgs,
}
