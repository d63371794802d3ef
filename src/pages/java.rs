//! Java heaps on a page: collects the results of the analyses.

use crate::analyze::filter::Filter;
use crate::analyze::histogram::{Histogram, HistogramKey, ObjectScope, Row, histogram};
use crate::analyze::holders::{Holders, KindedReferrers, Members, Reading, Search};
use crate::analyze::label;
use crate::analyze::largest::{self, Large};
use crate::analyze::leaks::{self, Leaks};
use crate::analyze::paths::{Path, Ways};
use crate::analyze::tree::{self, Tree};
use crate::analyze::waste::{self, Waste};
use crate::heap_graph::{ClassIndex, DumpSource, HeapGraph, ObjectIndex};
use crate::heaps::java::diff::{ChangeRow, DiffReport};
use crate::heaps::java::facts::Figures;
use crate::heaps::java::{JavaHeap, ProgressReporter};
use crate::parallel;
use crate::report::java::change::{Change, Changed, ChangedLeak, Sizes};
use crate::report::java::{self, JavaPage, JavaPart};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;

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
    let reverse = || KindedReferrers::new(graph, heap.follow, Reading::Ahead);
    let (referrers, dominators) = parallel::both(reverse, || heap.dominators());
    progress.begin("writing the page");
    let everything = Filter::default();
    let by = |by| histogram(graph, ObjectScope::Reachable(dominators), by, &everything);
    let classes = by(HistogramKey::Class);
    let reachable = dominators.reachable();
    let garbage = reachable.objects().missing(graph.len());
    let garbage = garbage.fold((0, 0u64), |(count, bytes), object| {
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
    let analyse = || Analyses {
        packages: by(HistogramKey::Package),
        largest: largest_with_paths(heap, total / 1000),
        leaks: match contents {
            true => leaks::find(graph),
            false => leaks::find_without_texts(graph),
        },
        waste: waste::find(graph, &reachable, WASTE),
        tree: tree::merged(graph, dominators, total / LEAST_SHARE),
    };
    let search = || {
        let search = Search::new(referrers, &reachable);
        holders_of_classes(graph, search, &classes.rows, change.as_ref())
    };
    let (held, rest) = parallel::both(search, analyse);
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

/// Returns the holders of the classes that grew most, and of those with most shallow bytes. Names
/// are those of `diff`, without parts that differ between runs.
fn holders_of_classes(
    graph: &HeapGraph,
    mut search: Search<'_>,
    rows: &[Row],
    change: Option<&Change>,
) -> Vec<(String, Holders)> {
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
    let mut place: HashMap<Cow<'_, str>, u8> = HashMap::new();
    names.retain(|name| {
        let next = place.len() as u8;
        *place.entry(name.clone()).or_insert(next) == next
    });
    let of_class: Vec<Option<u8>> = (0..graph.classes().len() as u32)
        .map(|class| {
            let name = label::class_name(graph, ClassIndex(class));
            place.get(label::without_address(name).as_ref()).copied()
        })
        .collect();
    let members = Members::of(graph, &of_class);
    let searched = names.into_iter().zip(0..).map(|(name, group)| {
        let holders = search.holders(&name, members.of_group(group));
        (name.into_owned(), holders)
    });
    searched.collect()
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
