//! State of `explore`: a Java heap that is read while its page is already open, and its indices.

use crate::analyze::{leaks, waste};
use crate::explore::{Explorer, Stage};
use crate::heaps::java::facts::HeapFacts;
use crate::heaps::java::{self, JavaError, JavaOptions, OpenedJava, ProgressReporter};
use crate::heaps::leaks::{LeaksRows, WasteDocument, document};
use crate::heaps::selector::JavaInput;
use serde::Serialize;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// A heap that is read while its page is open.
#[derive(Default)]
pub struct ExploredHeap {
    heap: OnceLock<(Explorer, HeapFacts)>,
    progress: Mutex<Progress>,
    leaks: OnceLock<LeaksRows>,
    waste: OnceLock<WasteDocument>,
}

/// Maximum number of groups of leaks, and of leaks of a group.
const MAX_LEAKS: usize = 100;
/// Maximum number of rows of each list of waste.
const MAX_WASTE: usize = 50;

/// State of the heap.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Progress {
    /// Description of the current step; empty if everything is built.
    pub step: String,
    /// Indices that are built.
    pub built: Vec<&'static str>,
}

impl ExploredHeap {
    /// Returns the heap; `None` before it is read.
    pub(super) fn heap(&self) -> Option<&(Explorer, HeapFacts)> {
        self.heap.get()
    }

    /// Returns the leaks of a heap: those that `leaks` finds. Computed on first use.
    pub(super) fn leaks(&self, explorer: &Explorer) -> &LeaksRows {
        self.leaks.get_or_init(|| {
            let found = match explorer.shows_contents() {
                true => leaks::find(explorer.graph()),
                false => leaks::find_without_texts(explorer.graph()),
            };
            document::leaks(&found, Some(explorer.dominators()), None, MAX_LEAKS)
        })
    }

    /// Returns what is wasted: what `leaks` finds, without texts and values if they are hidden.
    /// Computed on first use.
    pub(super) fn waste(&self, explorer: &Explorer) -> &WasteDocument {
        self.waste.get_or_init(|| {
            let reachable = explorer.dominators().reachable();
            let found = waste::find(explorer.graph(), &reachable, MAX_WASTE);
            let mut waste = document::waste(found);
            if !explorer.shows_contents() {
                let sorts = [&mut waste.strings, &mut waste.arrays, &mut waste.bitmaps];
                for group in sorts.into_iter().flat_map(|sort| &mut sort.groups) {
                    group.value.clear();
                }
            }
            waste
        })
    }

    pub(super) fn progress(&self) -> Progress {
        self.lock().clone()
    }

    /// Reads the heap, then builds the indices. Blocks.
    ///
    /// # Errors
    /// Returns an error if the input does not contain the heap, or cannot be read.
    pub fn read(
        &self,
        input: &JavaInput,
        options: JavaOptions,
        shows_contents: bool,
        progress: &ProgressReporter,
    ) -> Result<HeapFacts, JavaError> {
        let heap = java::open(input, OpenedJava::Unread, options, progress)?;
        let facts = HeapFacts::of(&heap);
        let explorer = Explorer::new(heap.graph, heap.follow, shows_contents);
        let (explorer, _) = self.heap.get_or_init(|| (explorer, facts.clone()));
        self.step("computing retained sizes");
        explorer.build(|stage| {
            let mut progress = self.lock();
            progress.built.push(word(stage));
            if stage == Stage::Dominators {
                progress.step = "building indices".to_owned();
            }
        });
        self.step("");
        Ok(facts)
    }

    /// Notes the current step.
    pub fn step(&self, step: &str) {
        step.clone_into(&mut self.lock().step);
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn word(stage: Stage) -> &'static str {
    match stage {
        Stage::Dominators => "dominators",
        Stage::Classes => "classes",
        Stage::Ranking => "ranking",
        Stage::Referrers => "referrers",
        Stage::Paths => "paths",
    }
}
