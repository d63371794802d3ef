//! Options for opening an input: requested data and symbol sources.

use crate::heaps::selector::ProcessFilter;
use crate::names::frames::LookupControl;
use crate::names::options::NameOptions;

/// Options for opening an input.
#[derive(Debug, Clone, Default)]
pub struct LookOptions {
    /// Only dumps of these processes.
    pub processes: ProcessFilter,
    /// Only dumps of these native heaps; empty for every heap.
    pub heaps: Vec<String>,
    /// Symbol sources, in addition to the input.
    pub names: NameOptions,
    /// Without suffixes such as ` [jit]`.
    pub no_annotations: bool,
    /// Minimum number of callsites of a trace that become a list instead of a tree, if the caller can
    /// use both.
    pub list_from: Option<usize>,
    /// Also read process memory from the traces.
    pub memory: bool,
    /// Compute the error of every dump's total, including dumps that are not selected. Implied if
    /// `memory` is requested and the trace of a directory has it, for comparing values.
    pub errors: bool,
    /// Interruption of symbolization.
    pub control: LookupControl,
}
