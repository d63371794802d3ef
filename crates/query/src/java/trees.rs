//! Trees over the objects of Java heaps: dominators and shortest paths, by object and merged by
//! class.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::super::functions::{FNV, fnv};
use super::super::table::{Catalog, Cell, Column, Rows, Schema, columns, schema};
use super::heaps::{Heap, Heaps, LazyHeaps};
use super::objects::heap_name;
use heaptap_analyze::class_tree::{ClassTree, Cumulative, Merge, NodeIndex, Over};
use heaptap_model::heap_graph::{ObjectIndex, Retained};

static DOMINATORS: Schema = schema! {
    "heap_graph_dominator_tree" in "android.memory.heap_graph.dominator_tree":
        "Reachable objects with their immediate dominators and retained sizes.";
    id int sorted: "object";
    idom_id int own: "immediate dominator; NULL at the top of the tree";
    dominated_obj_count int: "objects it dominates, including itself";
    dominated_size_bytes int: "shallow size of the dominated objects: the retained size";
    dominated_native_size_bytes int: "native size of the dominated objects";
    depth int: "depth in the tree; 1 at the top";
};

static RAW_DOMINATORS: Schema = schema! {
    "_raw_heap_graph_dominator_tree" in "android.memory.heap_graph.raw_dominator_tree":
        "Reachable objects with their immediate dominators.";
    id int sorted: "object";
    idom_id int own: "immediate dominator; NULL at the top of the tree";
};

static SHORTEST_PATHS: Schema = schema! {
    "_heap_graph_object_min_depth_tree" in "android.memory.heap_graph.class_tree":
        "Reachable objects, each with its predecessor on a shortest path from a GC root.";
    id int sorted: "object";
    parent_id int indexed: "previous object on the path; NULL for roots";
};

static SUMMARY: Schema = schema! {
    "android_heap_graph_class_summary_tree" in "android.memory.heap_graph.class_summary_tree":
        "Shortest paths from GC roots, merged by class: one flamegraph for each dump.";
    graph_sample_ts int sorted: "time of the dump in ns";
    upid int: "process";
    id int row: "number of the row";
    parent_id int indexed: "parent node; NULL for roots";
    name text indexed: "class";
    root_type text: "kind of GC root of its objects";
    self_count int: "objects of this node";
    self_size int: "size of the objects of this node";
    cumulative_count int: "objects of this node and all nodes below";
    cumulative_size int: "size of these objects, including native sizes";
};

static SUMS: Schema = schema! {
    "_heap_graph_object_tree_aggregation" in "android.memory.heap_graph.object_tree":
        "Objects with sums over all objects below them on shortest paths.";
    id int row: "number of the row";
    cumulative_size int: "shallow size of it and all objects below";
    cumulative_native_size int: "native size of these objects";
    cumulative_count int: "number of these objects";
};

/// Columns of both class trees.
const CLASS_TREE_COLUMNS: &[Column] = columns! {
    graph_sample_ts int sorted: "time of the dump in ns";
    upid int: "process";
    id int row: "number of the row";
    parent_id int indexed: "parent node; NULL at the top";
    name text indexed: "class";
    root_type text: "kind of GC root of its objects";
    heap_type text: "heap that contains its objects";
    self_count int: "objects of this node";
    self_size int: "size of the objects of this node";
    path_hash_stable int: "hash of the path, equal for equal paths in all dumps";
};

static CLASS_TREE: Schema = Schema {
    name: "_heap_graph_class_tree",
    module: Some("android.memory.heap_graph.class_tree"),
    about: "Shortest paths from GC roots, merged by class and heap.",
    columns: CLASS_TREE_COLUMNS,
};

static DOMINATOR_CLASS_TREE: Schema = Schema {
    name: "_heap_graph_dominator_class_tree",
    module: Some("android.memory.heap_graph.dominator_class_tree"),
    about: "The dominator tree, merged by class and heap.",
    columns: CLASS_TREE_COLUMNS,
};

pub(super) fn add(catalog: &mut Catalog, heaps: &LazyHeaps) {
    for schema in [&DOMINATORS, &RAW_DOMINATORS] {
        let heaps = heaps.clone();
        catalog.table(schema, move || {
            let heaps = heaps.get()?;
            Ok(Arc::new(DominatorTree {
                reachable: Reachable::from_heaps(&heaps),
                depths: OnceLock::new(),
                heaps,
            }))
        });
    }
    let paths = heaps.model(|heaps| (Reachable::from_heaps(&heaps), heaps));
    catalog.rows(&SHORTEST_PATHS, &paths, |(rows, _)| rows.len(), path_cell);
    let sums = heaps.model(|heaps| path_sums(&heaps));
    catalog.rows(&SUMS, &sums, Vec::len, |sums, row, column| match column {
        0 => row.into(),
        1 => sums[row].bytes.into(),
        2 => sums[row].native_bytes.into(),
        _ => sums[row].count.into(),
    });
    let merged = heaps.model(|heaps| Merged::new(heaps, |heap| Over::ShortestPaths(heap.paths())));
    catalog.rows(&SUMMARY, &merged, Merged::len, Merged::summary_cell);
    catalog.rows(&CLASS_TREE, &merged, Merged::len, Merged::cell);
    let merged =
        heaps.model(|heaps| Merged::new(heaps, |heap| Over::Dominators(heap.dominators())));
    catalog.rows(&DOMINATOR_CLASS_TREE, &merged, Merged::len, Merged::cell);
}

/// Rows of reachable objects, ascending.
pub(super) struct Reachable {
    rows: Vec<u32>,
}

impl Reachable {
    pub(super) fn from_heaps(heaps: &Heaps) -> Reachable {
        let mut rows = Vec::new();
        for heap in heaps.all() {
            let reachable = heap.reachable();
            let objects = heap.rows().zip(heap.objects());
            let kept = objects.filter(|&(_, object)| reachable.contains(object));
            rows.extend(kept.map(|(row, _)| row as u32));
        }
        Reachable { rows }
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns the row of the object among all objects.
    pub(super) fn id(&self, row: usize) -> usize {
        self.rows[row] as usize
    }

    /// Returns the row here of an object, given its row among all objects.
    pub(super) fn find(&self, id: usize) -> Option<usize> {
        self.rows.binary_search(&u32::try_from(id).ok()?).ok()
    }
}

struct DominatorTree {
    heaps: Arc<Heaps>,
    reachable: Reachable,
    depths: OnceLock<Vec<u32>>,
}

impl DominatorTree {
    fn depths(&self) -> &[u32] {
        self.depths.get_or_init(|| {
            let mut depths = Vec::with_capacity(self.reachable.len());
            for heap in self.heaps.all() {
                // 0 if unreachable.
                let mut of_object = vec![0; heap.graph.len()];
                let dominators = heap.dominators();
                for (object, depth) in dominators.order().iter().zip(dominators.depths()) {
                    of_object[object.at()] = depth;
                }
                let reachable = heap.reachable();
                let objects = heap.objects().filter(|&object| reachable.contains(object));
                depths.extend(objects.map(|object| of_object[object.at()]));
            }
            depths
        })
    }
}

impl Rows for DominatorTree {
    fn len(&self) -> usize {
        self.reachable.len()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let id = self.reachable.id(row);
        if column == 0 {
            return id.into();
        }
        let (heap, object) = self.heaps.object(id);
        let dominators = heap.dominators();
        match column {
            1 => dominators.idom(object).map(|idom| heap.row(idom)).into(),
            2 => dominators.retained_count(object).into(),
            3 => dominators.retained_bytes(object).into(),
            4 => dominators.retained_native_bytes(object).into(),
            _ => self.depths()[row].into(),
        }
    }

    fn distinct(&self, column: usize) -> Option<usize> {
        // About one in three objects dominates others.
        (column == 1).then(|| self.len() / 3)
    }

    fn lookup(&self, column: usize, key: i64, found: &mut Vec<u32>) {
        debug_assert_eq!(column, 1, "lookup needs the dominator column");
        let Some((heap, above)) = self.heaps.find_object(key) else {
            return;
        };
        let below = heap.dominators().children(above);
        let rows = below.filter_map(|object| self.reachable.find(heap.row(object)));
        found.extend(rows.map(|row| row as u32));
        found.sort_unstable();
    }
}

fn path_cell((rows, heaps): &(Reachable, Arc<Heaps>), row: usize, column: usize) -> Cell<'_> {
    let id = rows.id(row);
    if column == 0 {
        return id.into();
    }
    let (heap, object) = heaps.object(id);
    let parent: Option<ObjectIndex> = heap.paths().parent(object);
    parent.map(|parent| heap.row(parent)).into()
}

/// Returns the sums over the trees of shortest paths, by row of the object.
fn path_sums(heaps: &Heaps) -> Vec<Retained> {
    let mut rows = vec![Retained::default(); heaps.objects()];
    for heap in heaps.all() {
        let graph = &heap.graph;
        for (row, object) in heap.rows().zip(heap.objects()) {
            rows[row] = Retained {
                count: 1,
                bytes: graph.shallow_bytes(object),
                native_bytes: graph.native_bytes(object),
            };
        }
        let paths = heap.paths();
        for &object in paths.order().iter().rev() {
            if let Some(parent) = paths.parent(object) {
                let sums = rows[heap.row(object)];
                rows[heap.row(parent)].add(sums);
            }
        }
    }
    rows
}

/// Trees of all dumps, merged by class.
struct Merged {
    heaps: Arc<Heaps>,
    trees: Vec<MergedTree>,
}

struct MergedTree {
    rows: Range<usize>,
    tree: ClassTree,
    sums: Vec<Cumulative>,
    hashes: Vec<u64>,
}

impl Merged {
    fn new(heaps: Arc<Heaps>, over: impl Fn(&Heap) -> Over<'_>) -> Merged {
        let mut first = 0;
        let trees = heaps.all().iter().map(|heap| {
            let tree = ClassTree::new(&heap.graph, over(heap), Merge::Collapsed);
            let rows = first..first + tree.nodes.len();
            first = rows.end;
            MergedTree {
                rows,
                sums: tree.cumulative(),
                hashes: hashes(&tree),
                tree,
            }
        });
        let trees = trees.collect();
        Merged { heaps, trees }
    }

    fn len(&self) -> usize {
        self.trees.last().map_or(0, |last| last.rows.end)
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let (heap, merged, at) = self.of_row(row);
        let tree = &merged.tree;
        let node = &tree.nodes[at];
        match column {
            0 => heap.ts().into(),
            1 => heap.upid.into(),
            2 => row.into(),
            3 => node
                .parent
                .map(|NodeIndex(parent)| merged.rows.start + parent as usize)
                .into(),
            4 if node.is_native => format!("[native] {}", tree.names[node.name as usize]).into(),
            4 => Cell::text(&tree.names[node.name as usize]),
            5 => node.root.map(|root| root.name()).into(),
            6 if node.is_native => "HEAP_TYPE_NATIVE".into(),
            6 => heap_name(node.heap).into(),
            7 => node.count.into(),
            8 => node.bytes.into(),
            _ => merged.hashes[at].into(),
        }
    }

    /// Returns a cell of the summary, which has sums in place of heaps and hashes.
    fn summary_cell(&self, row: usize, column: usize) -> Cell<'_> {
        let (_, merged, at) = self.of_row(row);
        match column {
            0..6 => self.cell(row, column),
            6 | 7 => self.cell(row, column + 1),
            8 => merged.sums[at].count.into(),
            _ => merged.sums[at].bytes.into(),
        }
    }

    fn of_row(&self, row: usize) -> (&Heap, &MergedTree, usize) {
        let at = self.trees.partition_point(|tree| tree.rows.end <= row);
        let tree = &self.trees[at];
        (&self.heaps.all()[at], tree, row - tree.rows.start)
    }
}

/// Returns a hash for each node that depends only on the names, roots and heaps on its path:
/// FNV-1a over them.
fn hashes(tree: &ClassTree) -> Vec<u64> {
    let mut hashes: Vec<u64> = Vec::with_capacity(tree.nodes.len());
    for node in &tree.nodes {
        let start = match node.parent {
            Some(NodeIndex(parent)) => hashes[parent as usize],
            None => FNV,
        };
        let native = if node.is_native { "[native]" } else { "" };
        let root = node.root.filter(|_| node.parent.is_none());
        let words = [
            tree.names[node.name as usize].as_str(),
            root.map_or("", |root| root.name()),
            heap_name(node.heap).unwrap_or(""),
            native,
        ];
        let bytes = words
            .into_iter()
            .flat_map(|word| word.bytes().chain([0xff]));
        hashes.push(fnv(start, bytes));
    }
    hashes
}
