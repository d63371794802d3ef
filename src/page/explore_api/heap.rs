//! A Java heap with its indices and findings: read while its page is already open, or before.

use super::compare::wanted;
use super::sql::{HeapSql, SqlProblem};
use crate::heaps::java::diff::{self, DiffReport, Half};
use crate::heaps::java::facts::HeapFacts;
use crate::heaps::java::{self, JavaError, JavaHeap, JavaOptions, OpenedJava, ProgressReporter};
use crate::heaps::leaks::{LeaksRows, document};
use crate::heaps::selector::JavaInput;
use heaptap_analyze::diff::Side;
use heaptap_analyze::filter::Filter;
use heaptap_analyze::histogram::{HistogramKey, Row};
use heaptap_analyze::leaks::{self, Leaks};
use heaptap_analyze::waste::{self, Waste};
use heaptap_base::parallel;
use heaptap_base::parallel::lock;
use heaptap_explore::{Explorer, HeldClass, Stage};
use heaptap_model::heap_graph::OutOfMemory;
use heaptap_results::findings::Finding;
use serde::Serialize;
use std::cmp::Reverse;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// A heap that is read while its page is open.
#[derive(Default)]
pub struct ExploredHeap {
    heap: OnceLock<(Explorer, HeapFacts)>,
    out_of_memory: OnceLock<OutOfMemory>,
    progress: Mutex<Progress>,
    found_leaks: OnceLock<Leaks>,
    leaks: OnceLock<LeaksRows>,
    waste: OnceLock<Waste>,
    comparison: OnceLock<DiffReport>,
    sql: OnceLock<Result<HeapSql, String>>,
    holders: OnceLock<Vec<HeldClass>>,
    is_cancelled: AtomicBool,
}

/// What to read.
#[derive(Debug, Clone)]
pub struct ExploreOptions {
    pub input: JavaInput,
    /// Earlier heap, to compare with.
    pub earlier: Option<JavaInput>,
    pub java: JavaOptions,
    /// Whether answers have texts and values.
    pub shows_contents: bool,
}

/// Maximum number of the largest classes, and of those that grew by either measure, with their holders.
const HELD: usize = 4;
const GROWN: usize = 10;
/// Maximum number of groups of leaks, and of leaks of a group.
const MAX_LEAKS: usize = 100;
/// Maximum number of rows of each list of waste.
const MAX_WASTE: usize = 50;

/// Result of reading a heap.
#[derive(Debug)]
pub struct ReadOutcome {
    /// Whether all indices are built.
    pub is_complete: bool,
    pub warnings: Vec<Finding>,
    /// Reason why it is not compared with the earlier heap.
    pub not_compared: Option<String>,
}

/// State of the heap.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Progress {
    /// Description of the current step; empty if everything is built.
    pub step: String,
    /// Indices that are built.
    pub built: Vec<&'static str>,
    /// Reason why the heap cannot be read, or not be compared.
    pub error: Option<String>,
}

impl ExploredHeap {
    /// Creates a heap that is read, for questions about its largest objects. Builds indices, finds leaks and
    /// waste, and compares it with an earlier heap, on both cores. Without `shows_contents`, no text or value
    /// of the dump is in an answer.
    pub(crate) fn new(heap: JavaHeap, shows_contents: bool, before: Option<Half>) -> ExploredHeap {
        let explored = ExploredHeap::default();
        let (explorer, _) = explored.begin(heap, shows_contents);
        let findings = || {
            explorer.build_tables();
            explorer.build_flame();
            // Last, because it uses both cores once the other thread is done.
            explored.measured_waste()
        };
        let links = || {
            explorer.build_paths();
            let kinded = explorer.kinded_referrers();
            if let Some(before) = before {
                explored.compare(before);
            }
            explorer.holders_of(kinded, &explored.held_classes())
        };
        let (waste, holders) = parallel::both(findings, links);
        explored.holders.get_or_init(|| holders);
        explored.waste.get_or_init(|| explored.told(waste));
        let built = [
            Stage::Dominators,
            Stage::Classes,
            Stage::Paths,
            Stage::Referrers,
        ];
        explored.lock().built = built.map(word).to_vec();
        explored
    }

    /// Takes the heap that was read.
    fn begin(&self, heap: JavaHeap, shows_contents: bool) -> &(Explorer, HeapFacts) {
        let facts = HeapFacts::from_heap(&heap);
        if let Some(error) = heap.out_of_memory {
            self.out_of_memory.get_or_init(|| error);
        }
        let explorer = Explorer::new(heap.graph, heap.follow, shows_contents);
        self.heap.get_or_init(|| (explorer, facts))
    }

    /// Returns the tables of the heap for a comparison.
    ///
    /// # Panics
    /// Panics before it is read.
    pub(crate) fn half(&self) -> Half {
        let explorer = self.explorer();
        let side = Side {
            graph: explorer.graph(),
            dominators: explorer.dominators(),
        };
        Half::of_side(
            side,
            self.facts().clone(),
            self.found_leaks(),
            &Filter::default(),
        )
    }

    fn compare(&self, before: Half) {
        let wanted = wanted(self.shows_contents());
        let compare = || diff::compare(before, self.half(), &wanted);
        self.comparison.get_or_init(compare);
    }

    /// Returns the classes whose holders a file has: the largest ones, and those that grew most.
    fn held_classes(&self) -> Vec<String> {
        let classes = self.explorer().table(HistogramKey::Class);
        let mut rows: Vec<&Row> = classes.rows.iter().collect();
        let own = |row: &Row| row.sums.shallow_bytes.saturating_add(row.sums.native_bytes);
        rows.sort_by_key(|row| (Reverse(own(row)), &row.name));
        let largest = rows.iter().take(HELD).map(|row| row.name.clone());
        let changed = self.comparison().map(|comparison| &comparison.classes);
        // By own bytes, as the list is sorted, and by retained bytes, as the page sorts it.
        let grown = changed.into_iter().flatten();
        let grown = grown.filter(|row| row.change.growth.own_bytes() > 0);
        let mut by_retained: Vec<_> = changed.into_iter().flatten().collect();
        by_retained.sort_by_key(|row| Reverse(row.change.growth.retained_total_bytes()));
        by_retained.retain(|row| row.change.growth.retained_total_bytes() > 0);
        let grown = grown.take(GROWN).chain(by_retained.into_iter().take(GROWN));
        let mut held: Vec<String> = largest.chain(grown.map(|row| row.name.clone())).collect();
        held.sort_unstable();
        held.dedup();
        held
    }

    /// Returns the holders of classes that were found ahead.
    pub(super) fn holders(&self) -> &[HeldClass] {
        self.holders.get().map_or(&[], Vec::as_slice)
    }

    /// Returns the heap.
    ///
    /// # Panics
    /// Panics before it is read.
    pub fn explorer(&self) -> &Explorer {
        &self.heap.get().expect("the heap is read").0
    }

    /// Returns the facts about the heap.
    ///
    /// # Panics
    /// Panics before it is read.
    pub fn facts(&self) -> &HeapFacts {
        &self.heap.get().expect("the heap is read").1
    }

    /// Returns the leaks of the heap: those that `leaks` finds. Computed on first use.
    ///
    /// # Panics
    /// Panics before it is read.
    pub fn found_leaks(&self) -> &Leaks {
        let explorer = self.explorer();
        self.found_leaks
            .get_or_init(|| leaks::find_with(explorer.graph(), explorer.shows_contents()))
    }

    /// Returns whether answers have texts and values of the dump.
    pub(super) fn shows_contents(&self) -> bool {
        let heap = self.heap();
        heap.is_some_and(|(explorer, _)| explorer.shows_contents())
    }

    /// Returns the heap; `None` before it is read.
    pub(super) fn heap(&self) -> Option<&(Explorer, HeapFacts)> {
        self.heap.get()
    }

    /// Returns the OutOfMemoryError that caused the dump.
    pub(super) fn out_of_memory(&self) -> Option<&OutOfMemory> {
        self.out_of_memory.get()
    }

    /// Returns the leaks for the page.
    pub(super) fn leaks(&self) -> &LeaksRows {
        self.leaks.get_or_init(|| {
            let dominators = self.explorer().dominators();
            document::leaks(self.found_leaks(), 0, Some(dominators), None, MAX_LEAKS)
        })
    }

    /// Returns the comparison with the earlier heap, once it is made.
    pub fn comparison(&self) -> Option<&DiffReport> {
        self.comparison.get()
    }

    /// Returns the database of the heap.
    ///
    /// # Errors
    /// Returns an error if contents are hidden, or the tables cannot be made.
    pub(super) fn sql(&self) -> Result<&HeapSql, SqlProblem> {
        let Some((explorer, facts)) = self.heap() else {
            return Err(SqlProblem("the heap is not read yet".to_owned()));
        };
        if !explorer.shows_contents() {
            return Err(SqlProblem("tables have texts, which are hidden".to_owned()));
        }
        let open = || {
            HeapSql::open(explorer, facts, self.out_of_memory.get().cloned())
                .map_err(|problem| problem.0)
        };
        let sql = self.sql.get_or_init(open).as_ref();
        sql.map_err(|problem| SqlProblem(problem.clone()))
    }

    /// Returns what is wasted: what `leaks` finds, without texts and values if they are hidden.
    /// Computed on first use.
    pub(super) fn waste(&self) -> &Waste {
        self.waste.get_or_init(|| self.told(self.measured_waste()))
    }

    fn measured_waste(&self) -> Waste {
        let explorer = self.explorer();
        waste::without_holders(explorer.graph(), explorer.reachable(), MAX_WASTE)
    }

    /// Adds the names of holders.
    fn told(&self, mut waste: Waste) -> Waste {
        let explorer = self.explorer();
        let dominators = explorer.dominators();
        let is_reachable = |object| dominators.is_reachable(object);
        let referrers = explorer.known_referrers();
        waste.name_holders(explorer.graph(), &is_reachable, referrers);
        if !explorer.shows_contents() {
            waste.hide_contents();
        }
        waste
    }

    pub(super) fn progress(&self) -> Progress {
        self.lock().clone()
    }

    /// Reads the heap, builds the indices, and compares it with the earlier heap. Blocks. If the earlier
    /// heap cannot be read, only the comparison is missing. Ends early after [`ExploredHeap::cancel`].
    ///
    /// # Errors
    /// Returns an error if the input does not contain the heap, or cannot be read.
    pub fn read(
        &self,
        options: &ExploreOptions,
        progress: &ProgressReporter,
    ) -> Result<ReadOutcome, JavaError> {
        let open = |input| java::open(input, OpenedJava::Unread, options.java.clone(), progress);
        let read = open(&options.input).map(|heap| self.build(heap, options.shows_contents));
        if let Err(error) = &read {
            self.fail(error.to_string());
        }
        let earlier = options.earlier.as_ref().filter(|_| read.is_ok());
        if let Some(earlier) = earlier.filter(|_| !self.is_cancelled()) {
            match open(earlier) {
                Err(error) => self.fail(format!("cannot compare: {error}")),
                Ok(_) if self.is_cancelled() => {}
                Ok(earlier) => {
                    self.step("comparing");
                    let before = Half::new(&earlier, &wanted(options.shows_contents), progress);
                    // Only what the comparison needs stays in memory.
                    drop(earlier);
                    self.compare(before);
                }
            }
        }
        self.step("");
        read.map(|()| ReadOutcome {
            is_complete: !self.is_cancelled(),
            warnings: self.warnings().to_vec(),
            not_compared: self.progress().error,
        })
    }

    /// Notes why the heap cannot be read, or not be compared.
    pub fn fail(&self, reason: String) {
        self.lock().error = Some(reason);
    }

    fn build(&self, heap: JavaHeap, shows_contents: bool) {
        let (explorer, _) = self.begin(heap, shows_contents);
        self.step("computing retained sizes");
        explorer.build(|stage| {
            let mut progress = self.lock();
            progress.built.push(word(stage));
            if stage == Stage::Dominators {
                progress.step = "building indices".to_owned();
            }
            match self.is_cancelled() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
    }

    /// Makes [`ExploredHeap::read`] end early, because the page shows another heap.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }

    /// Returns the warnings about the heap; a comparison adds its own.
    fn warnings(&self) -> &[Finding] {
        match self.comparison() {
            Some(comparison) => &comparison.after.warnings,
            None => &self.facts().warnings,
        }
    }

    /// Returns a reporter that notes the current step.
    pub fn reporter(self: &Arc<Self>) -> ProgressReporter {
        let steps = Arc::clone(self);
        ProgressReporter::telling(move |step| steps.step(step))
    }

    /// Notes the current step.
    fn step(&self, step: &str) {
        step.clone_into(&mut self.lock().step);
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        lock(&self.progress)
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
