//! Named stacks, computed when a table first needs them, and the figures of their columns.

use std::sync::{Arc, OnceLock};

use crate::processes::Processes;
use crate::table::Cell;
use heaptap_model::stacks::{self, Dump, Facts, StackProfile};

/// State shared by the tables: the stacks are computed when a table first needs them.
pub(crate) struct Stacks {
    /// Facts of each dump.
    pub(super) facts: Vec<Facts>,
    pub(super) processes: Arc<Processes>,
    pub(super) profile: OnceLock<StackProfile>,
    pub(super) make: Box<dyn Fn() -> StackProfile + Send + Sync>,
}

/// Figure columns of all these tables, in this order.
pub(super) const VIEWS: [stacks::View; 4] = [
    stacks::View::Space,
    stacks::View::Objects,
    stacks::View::AllocSpace,
    stacks::View::AllocObjects,
];

impl Stacks {
    pub(super) fn profile(&self) -> &StackProfile {
        self.profile.get_or_init(|| (self.make)())
    }

    pub(super) fn dump(&self, id: usize) -> &Dump {
        &self.profile().dumps[id]
    }
}

/// Returns a figure, or NULL if the dump does not have it.
pub(super) fn figure(column: Option<&[i64]>, at: usize) -> Cell<'static> {
    column.map(|column| column[at]).into()
}
