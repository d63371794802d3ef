//! Trees over the objects of Java heaps: dominators and shortest paths, by object and merged by
//! class.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::super::functions::{FNV, fnv};
use super::super::table::{Access, Catalog, Cell, Column, Rows, Schema};
use super::heaps::{Heap, Heaps, LazyHeaps};
use super::objects::heap_name;
use heaptap_analyze::class_tree::{ClassTree, Cumulative, Merge, NodeIndex, Over};
use heaptap_model::heap_graph::{Dominators, ObjectIndex, Retained};

const DOMINATORS: Schema = Schema {
    name: "heap_graph_dominator_tree",
    module: Some("android.memory.heap_graph.dominator_tree"),
    about: "Reachable objects with their immediate dominators and retained sizes.",
    columns: &[
        Column::int("id", "object").sorted(),
        Column::int(
            "idom_id",
            "immediate dominator; NULL at the top of the tree",
        )
        .found(Access::Own),
        Column::int(
            "dominated_obj_count",
            "objects it dominates, including itself",
        ),
        Column::int(
            "dominated_size_bytes",
            "shallow size of the dominated objects: the retained size",
        ),
        Column::int(
            "dominated_native_size_bytes",
            "native size of the dominated objects",
        ),
        Column::int("depth", "depth in the tree; 1 at the top"),
    ],
};

const RAW_DOMINATORS: Schema = Schema {
    name: "_raw_heap_graph_dominator_tree",
    module: Some("android.memory.heap_graph.raw_dominator_tree"),
    about: "Reachable objects with their immediate dominators.",
    columns: &[
        Column::int("id", "object").sorted(),
        Column::int(
            "idom_id",
            "immediate dominator; NULL at the top of the tree",
        )
        .found(Access::Own),
    ],
};

const SHORTEST_PATHS: Schema = Schema {
    name: "_heap_graph_object_min_depth_tree",
    module: Some("android.memory.heap_graph.class_tree"),
    about: "Reachable objects, each with its predecessor on a shortest path from a GC root.",
    columns: &[
        Column::int("id", "object").sorted(),
        Column::int("parent_id", "previous object on the path; NULL for roots").indexed(),
    ],
};

const SUMMARY: Schema = Schema {
    name: "android_heap_graph_class_summary_tree",
    module: Some("android.memory.heap_graph.class_summary_tree"),
    about: "Shortest paths from GC roots, merged by class: one flamegraph for each dump.",
    columns: &[
        Column::int("graph_sample_ts", "time of the dump in ns").sorted(),
        Column::int("upid", "process"),
        Column::id(),
        Column::int("parent_id", "parent node; NULL for roots").indexed(),
        Column::text("name", "class").indexed(),
        Column::text("root_type", "kind of GC root of its objects"),
        Column::int("self_count", "objects of this node"),
        Column::int("self_size", "size of the objects of this node"),
        Column::int(
            "cumulative_count",
            "objects of this node and all nodes below",
        ),
        Column::int(
            "cumulative_size",
            "size of these objects, including native sizes",
        ),
    ],
};

const SUMS: Schema = Schema {
    name: "_heap_graph_object_tree_aggregation",
    module: Some("android.memory.heap_graph.object_tree"),
    about: "Objects with sums over all objects below them on shortest paths.",
    columns: &[
        Column::id(),
        Column::int(
            "cumulative_size",
            "shallow size of it and all objects below",
        ),
        Column::int("cumulative_native_size", "native size of these objects"),
        Column::int("cumulative_count", "number of these objects"),
    ],
};

/// Columns of both class trees.
const CLASS_TREE_COLUMNS: &[Column] = &[
    Column::int("graph_sample_ts", "time of the dump in ns").sorted(),
    Column::int("upid", "process"),
    Column::id(),
    Column::int("parent_id", "parent node; NULL at the top").indexed(),
    Column::text("name", "class").indexed(),
    Column::text("root_type", "kind of GC root of its objects"),
    Column::text("heap_type", "heap that contains its objects"),
    Column::int("self_count", "objects of this node"),
    Column::int("self_size", "size of the objects of this node"),
    Column::int(
        "path_hash_stable",
        "hash of the path, equal for equal paths in all dumps",
    ),
];

const CLASS_TREE: Schema = Schema {
    name: "_heap_graph_class_tree",
    module: Some("android.memory.heap_graph.class_tree"),
    about: "Shortest paths from GC roots, merged by class and heap.",
    columns: CLASS_TREE_COLUMNS,
};

const DOMINATOR_CLASS_TREE: Schema = Schema {
    name: "_heap_graph_dominator_class_tree",
    module: Some("android.memory.heap_graph.dominator_class_tree"),
    about: "The dominator tree, merged by class and heap.",
    columns: CLASS_TREE_COLUMNS,
};

pub(super) fn add(catalog: &mut Catalog, heaps: &LazyHeaps) {
    for schema in [&DOMINATORS, &RAW_DOMINATORS] {
        heaps.table(catalog, schema, |heaps| DominatorTree {
            reachable: Reachable::of(&heaps),
            depths: OnceLock::new(),
            heaps,
        });
    }
    heaps.table(catalog, &SHORTEST_PATHS, |heaps| PathTree {
        reachable: Reachable::of(&heaps),
        heaps,
    });
    heaps.table(catalog, &SUMS, |heaps| PathSums::of(&heaps));
    let shared: Arc<OnceLock<Arc<Merged>>> = Arc::default();
    for schema in [&SUMMARY, &CLASS_TREE] {
        let shared = Arc::clone(&shared);
        heaps.table(catalog, schema, move |heaps| {
            let merged = shared.get_or_init(|| {
                Arc::new(Merged::of(heaps, |heap| Over::ShortestPaths(heap.paths())))
            });
            MergedTable {
                merged: Arc::clone(merged),
                is_summary: schema.name == SUMMARY.name,
            }
        });
    }
    heaps.table(catalog, &DOMINATOR_CLASS_TREE, |heaps| {
        let merged = Merged::of(heaps, |heap| Over::Dominators(heap.dominators()));
        MergedTable {
            merged: Arc::new(merged),
            is_summary: false,
        }
    });
}

/// Rows of reachable objects, ascending.
pub(super) struct Reachable {
    rows: Vec<u32>,
}

impl Reachable {
    pub(super) fn of(heaps: &Heaps) -> Reachable {
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
                let of_object = depths_of(heap.dominators(), heap.graph.len());
                let reachable = heap.reachable();
                let objects = heap.objects().filter(|&object| reachable.contains(object));
                depths.extend(objects.map(|object| of_object[object.at()]));
            }
            depths
        })
    }
}

/// Returns the depth in the dominator tree by object; 0 if unreachable.
fn depths_of(dominators: &Dominators, objects: usize) -> Vec<u32> {
    let mut depths = vec![0; objects];
    for (object, depth) in dominators.order().iter().zip(dominators.depths()) {
        depths[object.at()] = depth;
    }
    depths
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
            3 => Cell::bits(dominators.retained_bytes(object)),
            4 => Cell::bits(dominators.retained_native_bytes(object)),
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

struct PathTree {
    heaps: Arc<Heaps>,
    reachable: Reachable,
}

impl Rows for PathTree {
    fn len(&self) -> usize {
        self.reachable.len()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let id = self.reachable.id(row);
        if column == 0 {
            return id.into();
        }
        let (heap, object) = self.heaps.object(id);
        let parent: Option<ObjectIndex> = heap.paths().parent(object);
        parent.map(|parent| heap.row(parent)).into()
    }
}

/// Sums over the trees of shortest paths, by row of the object.
struct PathSums {
    rows: Vec<Retained>,
}

impl PathSums {
    fn of(heaps: &Heaps) -> PathSums {
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
        PathSums { rows }
    }
}

impl Rows for PathSums {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let sums = self.rows[row];
        match column {
            0 => row.into(),
            1 => Cell::bits(sums.bytes),
            2 => Cell::bits(sums.native_bytes),
            _ => Cell::bits(sums.count),
        }
    }
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
    fn of(heaps: Arc<Heaps>, over: impl Fn(&Heap) -> Over<'_>) -> Merged {
        let mut first = 0;
        let trees = heaps.all().iter().map(|heap| {
            let tree = ClassTree::of(&heap.graph, over(heap), Merge::Collapsed);
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

struct MergedTable {
    merged: Arc<Merged>,
    is_summary: bool,
}

impl Rows for MergedTable {
    fn len(&self) -> usize {
        self.merged.trees.last().map_or(0, |last| last.rows.end)
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let (heap, merged, at) = self.merged.of_row(row);
        let tree = &merged.tree;
        let node = &tree.nodes[at];
        // The summary does not have a heap column.
        let column = match self.is_summary && column >= 6 {
            true => column + 1,
            false => column,
        };
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
            7 => Cell::bits(node.count),
            8 => Cell::bits(node.bytes),
            9 if self.is_summary => Cell::bits(merged.sums[at].count),
            9 => Cell::bits(merged.hashes[at]),
            _ => Cell::bits(merged.sums[at].bytes),
        }
    }
}
