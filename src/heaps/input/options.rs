//! How an input is opened: what of it is wanted, and where its names come from.

use crate::naming::frames::LookupControl;
use crate::naming::names::NameOptions;

/// How to open an input.
#[derive(Debug, Clone, Default)]
pub struct LookOptions {
    /// Only dumps of this process: a name, with `*`, or a process id.
    pub process: Option<String>,
    /// Only dumps of this heap.
    pub heap: Option<String>,
    /// Where names come from, beside the input.
    pub names: NameOptions,
    /// No ` [jit]` and the like behind them.
    pub no_annotations: bool,
    /// What the traces say of the processes' memory beside heaps, too.
    pub memory: bool,
    /// The error of every dump's sum, of those too that are not meant. Where `memory` is wanted and
    /// a folder's trace tells of it, that is implied: figures are then set side by side.
    pub errors: bool,
    /// Who may end it.
    pub control: LookupControl,
}
