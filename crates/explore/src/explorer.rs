//! The heap and the indices that are built once: on request, or all of them ahead.

use crate::answer::Size;
use crate::bitmap_list::BitmapList;
use crate::chains::Chains;
use crate::lists::SortedLists;
use crate::merged_tree::{FlameTree, MergedTree};
use crate::ranking::Ranking;
use heaptap_analyze::filter::Filter;
use heaptap_analyze::histogram::{
    Histogram, HistogramKey, ObjectScope, Sums, histogram, histograms,
};
use heaptap_analyze::leaks::Judge;
use heaptap_analyze::paths;
use heaptap_base::parallel;
use heaptap_model::heap_graph::{
    Dominators, Follow, HeapGraph, ObjectIndex, PathReferences, Reachable, Referrers, Walk,
};
use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

/// A Java heap that answers queries. Any number of threads can ask at once; they wait until the indices
/// that they need are built.
pub struct Explorer {
    graph: Arc<HeapGraph>,
    follow: Follow,
    shows_contents: bool,
    dominators: OnceLock<Arc<Dominators>>,
    ranking: OnceLock<Ranking>,
    /// With the references on the shortest paths.
    referrers: OnceLock<Arc<Referrers>>,
    paths: OnceLock<(MergedTree, PathReferences)>,
    /// By retained size.
    arrays: OnceLock<Vec<ObjectIndex>>,
    bitmaps: OnceLock<BitmapList>,
    sorted_lists: SortedLists,
    pub(crate) path_chains: Chains,
    pub(crate) dominator_chains: Chains,
    judge: OnceLock<Judge>,
    merged_dominators: OnceLock<MergedTree>,
    /// In the order of [`TABLE_KEYS`].
    tables: [OnceLock<Histogram>; TABLE_KEYS.len()],
}

/// Keys of the tables, with their names in requests.
pub const TABLE_KEYS: [(&str, HistogramKey); 5] = [
    ("class", HistogramKey::Class),
    ("package", HistogramKey::Package),
    ("superclass", HistogramKey::Superclass),
    ("heap", HistogramKey::Heap),
    ("loader", HistogramKey::Loader),
];

/// Index that is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Dominators and retained sizes.
    Dominators,
    /// The class table.
    Classes,
    /// Objects by retained size, and the other tables.
    Ranking,
    /// Reversed references.
    Referrers,
    /// Shortest paths from roots.
    Paths,
}

impl Explorer {
    /// Creates an explorer without indices. Dominators and paths follow the references that `follow`
    /// follows. Without `shows_contents`, no text or value of the dump is in an answer.
    pub fn new(graph: HeapGraph, follow: Follow, shows_contents: bool) -> Explorer {
        Explorer {
            graph: Arc::new(graph),
            follow,
            shows_contents,
            dominators: OnceLock::new(),
            ranking: OnceLock::new(),
            referrers: OnceLock::new(),
            paths: OnceLock::new(),
            arrays: OnceLock::new(),
            bitmaps: OnceLock::new(),
            sorted_lists: SortedLists::default(),
            path_chains: Chains::default(),
            dominator_chains: Chains::default(),
            judge: OnceLock::new(),
            merged_dominators: OnceLock::new(),
            tables: Default::default(),
        }
    }

    /// Builds all indices, those first that the first view needs. Calls `on_built` after each, from
    /// any thread; `Break` ends it.
    pub fn build(&self, on_built: impl Fn(Stage) -> ControlFlow<()> + Sync) {
        // Alone, because the first view waits for it.
        self.dominators();
        if on_built(Stage::Dominators).is_break() {
            return;
        }
        let sizes = || {
            self.table(HistogramKey::Class);
            if on_built(Stage::Classes).is_break() {
                return;
            }
            self.ranking();
            self.prepare_dominators();
            self.build_tables();
            let _end = on_built(Stage::Ranking);
        };
        let links = || {
            self.paths();
            if on_built(Stage::Paths).is_break() {
                return;
            }
            self.referrers();
            let _end = on_built(Stage::Referrers);
        };
        parallel::both(sizes, links);
    }

    /// Computes retained sizes and the tables that are missing, in one pass.
    pub fn build_tables(&self) {
        let tables = self.tables.iter().zip(TABLE_KEYS);
        let missing = tables.filter(|(table, _)| table.get().is_none());
        let (missing, keys): (Vec<_>, Vec<_>) = missing.map(|(table, (_, by))| (table, by)).unzip();
        let scope = ObjectScope::Reachable(self.dominators());
        let tables = histograms(&self.graph, scope, &keys, &Filter::default());
        for (known, table) in missing.into_iter().zip(tables) {
            known.get_or_init(|| table);
        }
    }

    /// Merges the dominator tree for its flame graph, and prepares questions for dominators.
    pub fn build_flame(&self) {
        self.merged_tree(FlameTree::Dominators);
        self.prepare_dominators();
    }

    /// Asks for an immediate dominator: the first question prepares the search.
    fn prepare_dominators(&self) {
        let dominators = self.dominators();
        let first = dominators.order().first();
        let _root = first.and_then(|object| dominators.idom(*object));
    }

    /// Returns the objects that roots reach.
    pub fn reachable(&self) -> &Reachable {
        self.paths().1.reachable()
    }

    /// Returns the objects that roots do not reach, and their sizes.
    pub fn unreachable(&self) -> Size {
        let reachable = self.dominators().total();
        let reachable = Sums {
            count: reachable.count,
            shallow_bytes: reachable.bytes,
            native_bytes: reachable.native_bytes,
            ..Sums::default()
        };
        let others = Sums::of_unreachable(&self.graph, &reachable);
        Size {
            count: others.count,
            java_bytes: others.shallow_bytes,
            native_bytes: others.native_bytes,
        }
    }

    /// Finds the shortest paths, and merges them for their flame graph.
    pub fn build_paths(&self) {
        self.paths();
    }

    pub fn graph(&self) -> &Arc<HeapGraph> {
        &self.graph
    }

    pub fn follow(&self) -> Follow {
        self.follow
    }

    /// Returns whether answers have texts and values of the dump.
    pub fn shows_contents(&self) -> bool {
        self.shows_contents
    }

    /// Returns why an object is a GC root, if it is one.
    pub(crate) fn root_reason(&self, object: ObjectIndex) -> Option<String> {
        let reason = paths::root_reason(&self.graph, object)?;
        Some(reason.in_words(self.shows_contents))
    }

    /// Returns dominators and retained sizes.
    pub fn dominators(&self) -> &Arc<Dominators> {
        self.dominators
            .get_or_init(|| Dominators::compute(&self.graph, self.follow).into())
    }

    /// Returns the object with an ID as in answers: hexadecimal, with or without `0x`.
    pub fn find(&self, id: &str) -> Option<ObjectIndex> {
        self.graph.find(id.parse().ok()?)
    }

    pub(crate) fn ranking(&self) -> &Ranking {
        self.ranking
            .get_or_init(|| Ranking::new(&self.graph, self.dominators()))
    }

    /// Returns the reversed references, of all kinds.
    pub(crate) fn referrers(&self) -> &Arc<Referrers> {
        self.referrers_by(|paths| Referrers::new(&self.graph, Follow::ALL, Some(paths)).into())
    }

    /// Returns the same, if they were needed before.
    pub fn known_referrers(&self) -> Option<&Referrers> {
        self.referrers.get().map(Arc::as_ref)
    }

    /// Returns the same; the first time as `reverse` makes them.
    pub(crate) fn referrers_by(
        &self,
        reverse: impl FnOnce(&PathReferences) -> Arc<Referrers>,
    ) -> &Arc<Referrers> {
        self.referrers.get_or_init(|| reverse(&self.paths().1))
    }

    fn paths(&self) -> &(MergedTree, PathReferences) {
        self.paths.get_or_init(|| {
            let walk = Walk::from_best_roots(self.follow);
            MergedTree::with_paths(&self.graph, &walk)
        })
    }

    /// Returns the reachable arrays by retained size, largest first.
    pub(crate) fn arrays(&self) -> &[ObjectIndex] {
        self.arrays.get_or_init(|| {
            let classes = self.graph.classes().iter();
            let is_array: Vec<bool> = classes.map(|class| class.shown().ends_with("[]")).collect();
            let all = self.ranking().all().iter().copied();
            let arrays = all.filter(|&object| {
                is_array[self.graph.class_of(object).at()]
                    && self.graph.class_behind(object).is_none()
            });
            arrays.collect()
        })
    }

    pub(crate) fn merged_tree(&self, of: FlameTree) -> &MergedTree {
        let merge = || MergedTree::of_dominators(&self.graph, self.dominators());
        match of {
            FlameTree::Paths => &self.paths().0,
            FlameTree::Dominators => self.merged_dominators.get_or_init(merge),
        }
    }

    pub(crate) fn judge(&self) -> &Judge {
        self.judge
            .get_or_init(|| Judge::new(&self.graph, self.shows_contents))
    }

    pub(crate) fn sorted_lists(&self) -> &SortedLists {
        &self.sorted_lists
    }

    pub(crate) fn bitmap_list(&self) -> &BitmapList {
        self.bitmaps
            .get_or_init(|| BitmapList::new(&self.graph, self.dominators()))
    }

    /// Returns the table of reachable objects: that of `heaptap top`.
    ///
    /// # Panics
    /// Panics if `by` is not one of [`TABLE_KEYS`].
    pub fn table(&self, by: HistogramKey) -> &Histogram {
        let at = TABLE_KEYS.iter().position(|&(_, key)| key == by);
        self.tables[at.expect("a key of tables")].get_or_init(|| {
            let scope = ObjectScope::Reachable(self.dominators());
            histogram(&self.graph, scope, by, &Filter::default())
        })
    }
}
