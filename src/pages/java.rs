//! Java heaps on a page: collects the results of the analyses.

use crate::analyze::filter::Filter;
use crate::analyze::histogram::{Histogram, HistogramKey, ObjectScope, Row, histogram};
use crate::analyze::holders::{self, Holders};
use crate::analyze::label;
use crate::analyze::largest::{self, Large};
use crate::analyze::leaks::{self, Leaks};
use crate::analyze::paths::{Path, Ways};
use crate::analyze::tree::{self, Tree};
use crate::analyze::waste::{self, Waste};
use crate::heap_graph::{ClassIndex, DumpSource, ObjectIndex, Referrers};
use crate::heaps::java::diff::{ChangeRow, DiffReport};
use crate::heaps::java::facts::Figures;
use crate::heaps::java::{JavaHeap, ProgressReporter};
use crate::parallel;
use crate::report::java::change::{Change, Changed, ChangedLeak, Sizes};
use crate::report::java::{self, JavaPage, JavaPart};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

/// Number of listed objects, each with its path.
const LARGEST: usize = 40;
/// Rows of each table of waste.
const WASTE: usize = 15;
/// Number of classes with referrers.
const HELD: usize = 12;
/// Number of grown classes with referrers.
const GROWN: usize = 20;
/// Nodes that retain less than this fraction of the heap are left out of the tree.
const LEAST_SHARE: u64 = 20_000;

/// Returns the part of a page for a heap. `number` is unique on the page; texts of the heap are
/// shown only with `contents`. Blocks: computes paths, dominators and leaks.
pub(super) fn part(
    heap: &JavaHeap,
    wall_ms: Option<f64>,
    number: usize,
    contents: bool,
    change: Option<Change>,
    progress: &ProgressReporter,
) -> JavaPart {
    let graph = &heap.graph;
    let dominators = heap.dominators();
    progress.begin("writing the page");
    let everything = Filter::default();
    let by = |by| histogram(graph, ObjectScope::Reachable(dominators), by, &everything);
    let classes = by(HistogramKey::Class);
    let garbage = graph
        .objects()
        .filter(|&object| !dominators.is_reachable(object))
        .fold((0, 0u64), |(count, bytes), object| {
            (count + 1, bytes.saturating_add(graph.shallow_bytes(object)))
        });
    let total = classes
        .total
        .shallow_bytes
        .saturating_add(classes.total.native_bytes);
    let of_dump = match graph.facts.source {
        // The header has the wall clock.
        DumpSource::Hprof { .. } if graph.facts.time_ns > 0 => {
            Some((graph.facts.time_ns / 1_000_000) as f64)
        }
        _ => None,
    };
    // The search for holders takes longest, so this thread helps after the other analyses.
    let wanted = OnceLock::new();
    let search = || {
        let of = || HolderQueue::new(heap, &classes.rows, change.as_ref());
        wanted.get_or_init(of).search(heap)
    };
    let analyse = || {
        let rest = Analyses {
            packages: by(HistogramKey::Package),
            largest: largest_with_paths(heap, total / 1000),
            leaks: match contents {
                true => leaks::find(graph),
                false => leaks::find_without_texts(graph),
            },
            waste: waste::find(graph, &dominators.reachable(), WASTE),
            tree: tree::merged(graph, dominators, total / LEAST_SHARE),
        };
        (search(), rest)
    };
    let (mut held, (others, rest)) = parallel::both(search, analyse);
    held.extend(others);
    // Only the search needed its lists of objects and the reversed references.
    drop(wanted);
    let held = held.into_values().collect();
    let page = JavaPage {
        name: heap.name(),
        number: heap.number,
        label: heap.label.clone(),
        wall_ms: wall_ms.or(of_dump),
        graph,
        dominators,
        warnings: heap
            .findings
            .iter()
            .map(|finding| (finding.message.clone(), finding.help.clone()))
            .collect(),
        packages: rest.packages,
        garbage,
        largest: rest.largest,
        leaks: rest.leaks,
        contents,
        waste: rest.waste,
        tree: rest.tree,
        held,
        change,
        classes,
    };
    java::part(&page, number)
}

/// Analyses that do not need one another.
struct Analyses {
    packages: Histogram,
    largest: Vec<(Large, Path)>,
    leaks: Leaks,
    waste: Waste,
    tree: Tree,
}

/// Returns the largest objects that retain at least `least` bytes, with their paths.
fn largest_with_paths(heap: &JavaHeap, least: u64) -> Vec<(Large, Path)> {
    let graph = &heap.graph;
    let all = Filter::default();
    let mut large = largest::largest(graph, heap.dominators(), &all, LARGEST, true);
    large.retain(|large| large.retained.total_bytes() >= least);
    let objects: Vec<ObjectIndex> = large.iter().map(|large| large.object).collect();
    let paths = heap.paths_to(&objects);
    let mut ways = Ways::of(graph, &paths, heap.follow);
    let with_path = |large: Large| (large, ways.to(large.object));
    large.into_iter().map(with_path).collect()
}

/// Classes whose holders the page shows, for several threads to search.
struct HolderQueue {
    /// Names, and the objects until a thread takes them.
    classes: Vec<(String, Mutex<Vec<ObjectIndex>>)>,
    referrers: Referrers,
    /// Index of the class to search next.
    next: AtomicUsize,
}

impl HolderQueue {
    /// Returns the classes that grew most, and those with most shallow bytes. Names are those of
    /// `diff`, without parts that differ between runs.
    fn new(heap: &JavaHeap, rows: &[Row], change: Option<&Change>) -> HolderQueue {
        let graph = &heap.graph;
        let mut rows: Vec<_> = rows.iter().collect();
        rows.sort_by_key(|row| {
            let own = row.sums.shallow_bytes.saturating_add(row.sums.native_bytes);
            (Reverse(own), &row.name)
        });
        let grown = change.into_iter().flat_map(|change| &change.classes);
        let grown = grown.filter(|row| row.has_grown()).take(GROWN);
        let largest = rows.iter().take(HELD);
        let mut names: Vec<Cow<'_, str>> = grown
            .map(|row| Cow::Borrowed(row.name.as_str()))
            .chain(largest.map(|row| label::without_address(&row.name)))
            .collect();
        let mut place: HashMap<Cow<'_, str>, usize> = HashMap::new();
        names.retain(|name| {
            let next = place.len();
            *place.entry(name.clone()).or_insert(next) == next
        });
        let of_class: Vec<Option<usize>> = (0..graph.classes().len() as u32)
            .map(|class| {
                let name = label::class_name(graph, ClassIndex(class));
                place.get(label::without_address(name).as_ref()).copied()
            })
            .collect();
        let objects = holders::objects_of(graph, heap.dominators(), names.len(), &of_class);
        let names = names.into_iter().map(Cow::into_owned);
        HolderQueue {
            classes: names.zip(objects.into_iter().map(Mutex::new)).collect(),
            referrers: Referrers::of(graph, heap.follow),
            next: AtomicUsize::new(0),
        }
    }

    /// Searches classes that no other thread does; returns their holders by index.
    fn search(&self, heap: &JavaHeap) -> BTreeMap<usize, (String, Holders)> {
        let mut search = None;
        let mut found = BTreeMap::new();
        loop {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            let Some((name, objects)) = self.classes.get(at) else {
                return found;
            };
            let search = search.get_or_insert_with(|| {
                let dominators = heap.dominators();
                holders::Search::new(&heap.graph, dominators, &self.referrers, heap.follow)
            });
            let objects = objects
                .lock()
                .map(|mut objects| std::mem::take(&mut *objects));
            let holders = search.holders(name, objects.unwrap_or_default());
            found.insert(at, (name.clone(), holders));
        }
    }
}

/// Converts a difference of heaps for the page.
pub(super) fn change(name: String, report: DiffReport) -> Change {
    let sizes = |figures: &Figures| Sizes {
        count: figures.count,
        shallow: figures.shallow_bytes,
        native: figures.native_bytes,
        retained: figures.retained_total(),
    };
    let changed = |name: &str, depth: usize, change: &ChangeRow| Changed {
        name: name.to_owned(),
        status: change.status,
        depth,
        before: sizes(&change.before),
        after: sizes(&change.after),
    };
    Change {
        before: name,
        of_two_kinds: report.before.source != report.after.source,
        total: (sizes(&report.total.before), sizes(&report.total.after)),
        classes: report
            .classes
            .iter()
            .map(|row| changed(&row.name, 0, &row.change))
            .collect(),
        tree: report
            .paths
            .iter()
            .map(|row| changed(&row.name, row.depth, &row.change))
            .collect(),
        leaks: report
            .leaks
            .into_iter()
            .map(|leak| ChangedLeak {
                class: leak.class,
                what: leak.what,
                way: leak.path,
                status: leak.status,
                count: (leak.before_count, leak.after_count),
                bytes: (leak.before_bytes, leak.after_bytes),
            })
            .collect(),
    }
}
