//! `top` of a Java heap: computes the requested table for display.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;

use super::threads::{ThreadRow, Threads};

use crate::heaps::java::facts::{Figures, HeapFacts};
use crate::heaps::java::heap::JavaHeap;
use heaptap_analyze::filter::Filter;
use heaptap_analyze::histogram::{self, Histogram, HistogramKey, ObjectScope, Sums};
use heaptap_analyze::paths::{Place, Ways};
use heaptap_analyze::tree::{self, NodeKey};
use heaptap_analyze::{label, largest};
use heaptap_base::units::thousands;
use heaptap_model::heap_graph::{AllocationSite, ClassIndex, ObjectIndex, Reachable};

/// Key of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grouping {
    #[default]
    Class,
    Package,
    /// A class with its subclasses.
    Superclass,
    /// A heap of the runtime.
    Heap,
    /// A class loader.
    Loader,
    /// A kind of GC root.
    Root,
    /// A single object.
    Object,
    Thread,
}

/// Order of rows: largest first, names ascending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    #[default]
    Retained,
    Shallow,
    Native,
    Count,
    Name,
}

/// Reachability of the counted objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counted {
    /// Objects reachable from GC roots.
    #[default]
    Reachable,
    /// Unreachable objects: garbage that was not yet collected.
    Unreachable,
    /// Both.
    All,
}

/// Options of a table.
#[derive(Debug, Clone, Default)]
pub struct TopRequest {
    /// Key of the rows.
    pub by: Grouping,
    /// Order of the rows.
    pub order: Order,
    /// Maximum number of rows.
    pub limit: usize,
    /// Reachability of the counted objects.
    pub counted: Counted,
    /// Filter of those objects.
    pub filter: Filter,
    /// Whether to split rows by allocation site.
    pub allocation_sites: bool,
    /// Whether to include large objects that retain the same as their dominator.
    pub every_object: bool,
}

/// Row of a table.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TopRow {
    /// Common property of its objects.
    pub name: String,
    #[serde(flatten)]
    pub figures: Figures,
    /// For a single object, its identity and path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectRow>,
    /// For a thread, its stack and what it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadRow>,
    /// Allocation site, if requested and known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocated_at: Option<AllocationSite>,
}

/// A single object.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ObjectRow {
    /// ID in the dump, hexadecimal.
    pub id: String,
    /// Heap; empty if the dump does not contain it.
    pub heap: &'static str,
    /// Root of the shortest path.
    pub root: Option<String>,
    /// References of the shortest path, from the root. Repeated references appear once with their
    /// number, and a long path has only its two ends.
    pub held_by: Vec<String>,
    /// Text of a string, truncated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Number of its dominators that retain the same and have no row.
    pub folded: u32,
    /// Objects of one class that make up most of its retained size. Those that are similar to the
    /// others have no rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<MembersRow>,
    /// Index in `held_by` of the last static field, where the displayed path begins.
    #[serde(skip)]
    pub last_static: Option<usize>,
}

/// Objects of one class in a collection, or in another object that retains them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MembersRow {
    /// Number of objects.
    pub count: u64,
    /// Class of the objects.
    pub class: String,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TopReport {
    pub heap: HeapFacts,
    pub by: Grouping,
    pub sort: Order,
    #[serde(rename = "reachability")]
    pub counted: Counted,
    /// Figures of all reachable objects; absent if not computed.
    pub reachable: Option<Figures>,
    /// Figures of all unreachable objects.
    pub unreachable: Option<Figures>,
    /// Figures of all objects, if reachability is unknown.
    pub all: Option<Figures>,
    /// Figures of the reachable objects that match the filter, if there is one; the retained size
    /// is that of all of them together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matching: Option<Figures>,
    /// Number of rows before the limit.
    pub rows_total: usize,
    pub rows: Vec<TopRow>,
}

/// Creates the table.
pub fn top(heap: &JavaHeap, request: &TopRequest) -> TopReport {
    let (rows, rows_total) = match request.by {
        Grouping::Object => objects(heap, request),
        Grouping::Thread => threads(heap, request),
        Grouping::Class if request.allocation_sites => limited(by_site(heap, request), request),
        by => {
            let histogram = grouped(heap, by, request);
            limited(of_histogram(&histogram, request.counted), request)
        }
    };
    let (reachable, unreachable) = totals(heap);
    TopReport {
        heap: HeapFacts::from_heap(heap),
        by: request.by,
        sort: request.order,
        counted: request.counted,
        reachable: Some(reachable),
        unreachable: Some(unreachable),
        all: None,
        matching: None,
        rows_total,
        rows,
    }
}

/// Returns the figures of the reachable objects that match the filter; `None` without a filter.
pub fn matching(heap: &JavaHeap, request: &TopRequest) -> Option<Figures> {
    let filter = &request.filter;
    let is_filtered = !filter.takes_all() && request.counted != Counted::Unreachable;
    is_filtered.then(|| {
        let (graph, dominators) = (&heap.graph, heap.dominators());
        Figures::with_retained(&Sums::of_matching(graph, dominators, heap.follow, filter))
    })
}

/// Sorts and limits rows. Returns them with their number before the limit.
pub(super) fn limited(mut rows: Vec<TopRow>, request: &TopRequest) -> (Vec<TopRow>, usize) {
    let count = rows.len();
    sort(&mut rows, request.order);
    rows.truncate(request.limit);
    (rows, count)
}

/// Returns the histogram key for keys that depend on the objects alone.
pub(super) fn grouping(by: Grouping) -> HistogramKey {
    match by {
        Grouping::Class | Grouping::Object | Grouping::Root | Grouping::Thread => {
            HistogramKey::Class
        }
        Grouping::Package => HistogramKey::Package,
        Grouping::Superclass => HistogramKey::Superclass,
        Grouping::Heap => HistogramKey::Heap,
        Grouping::Loader => HistogramKey::Loader,
    }
}

fn grouped(heap: &JavaHeap, by: Grouping, request: &TopRequest) -> Histogram {
    let (graph, filter) = (&heap.graph, &request.filter);
    // Unreachable objects do not have a root.
    if by == Grouping::Root {
        return histogram::by_root(graph, heap.dominators(), heap.paths(), filter);
    }
    let by = grouping(by);
    match request.counted {
        Counted::Reachable => {
            histogram::histogram(graph, ObjectScope::Reachable(heap.dominators()), by, filter)
        }
        Counted::All => {
            histogram::histogram(graph, ObjectScope::All(heap.dominators()), by, filter)
        }
        Counted::Unreachable => {
            let reachable = Reachable::new(graph, heap.follow);
            histogram::histogram(graph, ObjectScope::Unreachable(&reachable), by, filter)
        }
    }
}

fn of_histogram(histogram: &Histogram, counted: Counted) -> Vec<TopRow> {
    let row = |row: &histogram::Row| TopRow {
        name: row.name.clone(),
        figures: match counted {
            Counted::Unreachable => Figures::own(&row.sums),
            Counted::Reachable | Counted::All => Figures::with_retained(&row.sums),
        },
        ..TopRow::default()
    };
    histogram.rows.iter().map(row).collect()
}

/// Returns the totals of reachable and of unreachable objects.
fn totals(heap: &JavaHeap) -> (Figures, Figures) {
    let reachable = Sums::of_reachable(heap.dominators());
    let unreachable = Sums::of_unreachable(&heap.graph, &reachable);
    (
        Figures::with_retained(&reachable),
        Figures::own(&unreachable),
    )
}

fn sort(rows: &mut [TopRow], order: Order) {
    rows.sort_by(|a, b| {
        let key = |row: &TopRow| {
            let figures = &row.figures;
            let own = figures.shallow_bytes.saturating_add(figures.native_bytes);
            match order {
                Order::Retained => (figures.retained_total(), own),
                Order::Shallow => (figures.shallow_bytes, figures.count),
                Order::Native => (figures.native_bytes, figures.retained_total()),
                Order::Count => (figures.count, own),
                Order::Name => (0, 0),
            }
        };
        key(b).cmp(&key(a)).then_with(|| a.name.cmp(&b.name))
    });
}

/// Returns the threads, with their number before the limit.
fn threads(heap: &JavaHeap, request: &TopRequest) -> (Vec<TopRow>, usize) {
    let threads = Threads::from_heap(heap);
    let rows = threads.rows().map(|(name, figures, thread)| TopRow {
        name,
        figures,
        thread: Some(thread),
        ..TopRow::default()
    });
    let (mut rows, count) = limited(rows.collect(), request);
    for thread in rows.iter_mut().filter_map(|row| row.thread.as_mut()) {
        threads.complete(thread);
    }
    (rows, count)
}

/// Returns the largest objects, with the number of candidates.
fn objects(heap: &JavaHeap, request: &TopRequest) -> (Vec<TopRow>, usize) {
    let graph = &heap.graph;
    let dominators = heap.dominators();
    let most = request.limit;
    let fold = !request.every_object;
    // Members of other objects have no rows, so more candidates than rows are needed.
    let looked_at = if fold {
        most.saturating_mul(8).saturating_add(256)
    } else {
        most
    };
    let found = largest::largest(graph, dominators, &request.filter, looked_at, fold);
    let total = request.filter.count(graph, dominators.order());
    let mut shown: Vec<(&largest::Large, Option<largest::Members>)> = Vec::new();
    let mut told: HashMap<(Option<ObjectIndex>, ClassIndex), largest::Members> = HashMap::new();
    for large in &found {
        if shown.len() == most {
            break;
        }
        // The top of a chain counts as a member, not the object that it was folded to.
        let key = (large.above, graph.class_of(large.start));
        if told
            .get(&key)
            .is_some_and(|members| members.are_similar_to(dominators.retained(large.start)))
        {
            continue;
        }
        let members = match fold {
            true => largest::members(graph, dominators, large),
            false => None,
        };
        if let Some(members) = members.filter(|members| !members.are_links) {
            told.insert((Some(large.end), members.class), members);
        }
        shown.push((large, members));
    }
    let objects: Vec<ObjectIndex> = shown.iter().map(|(large, _)| large.object).collect();
    let paths = heap.paths_to(&objects);
    let mut ways = Ways::new(graph, &paths, heap.follow);
    let row = |(large, members): &(&largest::Large, Option<largest::Members>)| TopRow {
        name: label::object_name(graph, large.object).into_owned(),
        figures: Figures {
            count: 1,
            shallow_bytes: graph.shallow_bytes(large.object),
            native_bytes: graph.native_bytes(large.object),
            retained_count: Some(large.retained.count),
            retained_bytes: Some(large.retained.bytes),
            retained_native_bytes: Some(large.retained.native_bytes),
        },
        object: Some(object_row(heap, &mut ways, large, members.as_ref())),
        allocated_at: match request.allocation_sites {
            true => graph.contents().allocated_at(graph, large.object),
            false => None,
        },
        ..TopRow::default()
    };
    (shown.iter().map(row).collect(), total)
}

/// Maximum number of characters of a string.
const TEXT: usize = 60;

fn object_row(
    heap: &JavaHeap,
    ways: &mut Ways<'_>,
    large: &largest::Large,
    members: Option<&largest::Members>,
) -> ObjectRow {
    let graph = &heap.graph;
    let object = large.object;
    let path = ways.to(object);
    let mut held_by = Vec::new();
    let mut last_static = None;
    for step in &path.steps {
        if step.left_out > 0 {
            held_by.push(format!("… {} more …", thousands(step.left_out)));
        }
        if matches!(&step.link, Some(link) if matches!(link.place, Place::Static(_))) {
            last_static = Some(held_by.len());
        }
        held_by.extend(step.reference());
    }
    let text = graph.contents().string(graph, object);
    ObjectRow {
        id: graph.id(object).to_string(),
        heap: graph.heap_of(object).name(),
        root: path.root.as_ref().map(ToString::to_string),
        held_by,
        text: text.map(|text| match text.char_indices().nth(TEXT) {
            Some((at, _)) => format!("{}…", &text[..at]),
            None => text,
        }),
        folded: large.folded,
        members: members.map(|members| MembersRow {
            count: members.count,
            class: label::class_name(graph, members.class).to_owned(),
        }),
        last_static,
    }
}

/// Groups objects by class and allocation site.
fn by_site(heap: &JavaHeap, request: &TopRequest) -> Vec<TopRow> {
    let graph = &heap.graph;
    let dominators = heap.dominators();
    let wanted = request.filter.of(graph);
    let mut numbers: HashMap<(String, Option<AllocationSite>), u32> = HashMap::new();
    let mut group_of = vec![u32::MAX; graph.len()];
    for object in graph.objects() {
        let counts = match request.counted {
            Counted::Reachable => dominators.is_reachable(object),
            Counted::Unreachable => !dominators.is_reachable(object),
            Counted::All => true,
        };
        if !counts || !wanted.takes(object) || graph.is_placeholder(object) {
            continue;
        }
        let name = label::class_name(graph, graph.class_of(object)).to_owned();
        let site = graph.contents().allocated_at(graph, object);
        let next = numbers.len() as u32;
        group_of[object.at()] = *numbers.entry((name, site)).or_insert(next);
    }
    let group = |object: ObjectIndex| {
        let group = group_of[object.at()];
        (group != u32::MAX).then_some(group as usize)
    };
    let mut sums = vec![Sums::default(); numbers.len()];
    for object in graph.objects() {
        if let Some(group) = group(object) {
            sums[group].add(graph, object);
        }
    }
    let retained = dominators.retained_by(numbers.len(), group);
    for (sum, retained) in sums.iter_mut().zip(retained) {
        sum.retained = retained;
    }
    let row = |((name, site), group): ((String, Option<AllocationSite>), u32)| TopRow {
        name,
        figures: match request.counted {
            Counted::Unreachable => Figures::own(&sums[group as usize]),
            _ => Figures::with_retained(&sums[group as usize]),
        },
        allocated_at: site,
        ..TopRow::default()
    };
    numbers.into_iter().map(row).collect()
}

/// Dominator tree merged by class or package, pruned for display.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TreeReport {
    pub heap: HeapFacts,
    /// What the objects of a node have in common.
    pub by: NodeKey,
    /// Figures of all reachable objects.
    pub reachable: Figures,
    /// Figures of all unreachable objects.
    pub unreachable: Figures,
    /// Nodes that retain less than this are left out, with their subtrees.
    #[serde(rename = "min_bytes")]
    pub least_bytes: u64,
    /// Nodes in depth-first order, siblings largest first.
    pub nodes: Vec<TreeRow>,
}

/// A node of a tree.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TreeRow {
    /// Position in the list.
    pub id: usize,
    /// Parent node; absent at the top.
    #[serde(rename = "parent")]
    pub above: Option<usize>,
    /// Depth; 0 at the top.
    pub depth: usize,
    /// Class or package of the objects.
    pub name: String,
    #[serde(flatten)]
    pub figures: Figures,
}

/// Unfolds the merged dominator tree to at most `depth` levels and to nodes that retain at least
/// `least` bytes. With a filter, only subtrees whose top node matches are included.
pub fn tree(
    heap: &JavaHeap,
    filter: &Filter,
    key: NodeKey,
    depth: usize,
    least: u64,
) -> TreeReport {
    let merged = tree::merged(&heap.graph, heap.dominators(), key, least);
    let (reachable, unreachable) = totals(heap);
    let mut nodes: Vec<TreeRow> = Vec::new();
    let tops = merged.tops.iter().rev();
    let mut stack: Vec<(usize, Option<usize>, usize)> = tops.map(|&top| (top, None, 0)).collect();
    while let Some((at, above, level)) = stack.pop() {
        let node = &merged.nodes[at];
        if level == 0 && !filter.takes_all() && !filter.takes(&node.name) {
            // Search its children.
            stack.extend(node.below.iter().rev().map(|&below| (below, None, 0)));
            continue;
        }
        let id = nodes.len();
        nodes.push(TreeRow {
            id,
            above,
            depth: level,
            name: node.name.clone(),
            figures: Figures::with_retained(&node.sums),
        });
        if level + 1 < depth {
            stack.extend(
                node.below
                    .iter()
                    .rev()
                    .map(|&below| (below, Some(id), level + 1)),
            );
        }
    }
    TreeReport {
        heap: HeapFacts::from_heap(heap),
        by: key,
        reachable,
        unreachable,
        least_bytes: least,
        nodes,
    }
}
