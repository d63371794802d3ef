//! Compares the tables of Perfetto's trace processor with tables computed from heaptap's heap.

use super::csv::{Row, Table};
use super::judge::Heap;
use super::rows::Rows;
use heaptap_analyze::aggregation::class_aggregation;
use heaptap_analyze::class_tree::{ClassTree, Merge, Node, NodeIndex, Over};
use heaptap_model::heap_graph::{
    Class, ClassIndex, ClassKind, Follow, HeapGraph, HeapKind, ObjectId, ObjectIndex, Reachable,
    Retained, Value,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;

/// The differences. Enters the names of the tables that are there into `compared`.
pub fn judge(
    heaps: &[Heap],
    trace: &Path,
    directory: &Path,
    compared: &mut BTreeSet<&'static str>,
) -> Vec<String> {
    let mut faults = Vec::new();
    let tables = directory.is_dir();
    let [heap] = heaps else {
        if tables && Table::read(directory, "hg_class").is_some() {
            faults.push(format!("{} dumps", heaps.len()));
        }
        return faults;
    };
    let judge = Judge {
        heap,
        graph: &heap.graph,
        rows: Rows::read(trace),
        classes: Table::read(directory, "hg_class")
            .map(|t| class_rows(&t, &heap.graph, &mut faults)),
    };
    type Check<'a> = fn(&Judge<'a>, &Table) -> Vec<String>;
    let checks: [(&'static str, Check<'_>); 9] = [
        ("hg_class", Judge::classes),
        ("hg_object", Judge::objects),
        ("hg_reference", Judge::references),
        ("hg_dominator_tree", Judge::dominators),
        ("hg_class_aggregation", Judge::aggregation),
        ("hg_class_tree", Judge::class_tree),
        ("hg_dominator_class_tree", Judge::dominator_class_tree),
        ("flamegraph", Judge::flamegraph),
        ("stats", Judge::stats),
    ];
    for (name, check) in checks {
        if let Some(table) = Table::read(directory, name) {
            compared.insert(name);
            let found = check(&judge, &table);
            faults.extend(
                found
                    .into_iter()
                    .take(4)
                    .map(|fault| format!("{name}: {fault}")),
            );
        }
    }
    faults
}

struct Judge<'a> {
    heap: &'a Heap,
    graph: &'a HeapGraph,
    rows: Rows,
    /// Heaptap's class for each row of Perfetto's.
    classes: Option<Vec<ClassIndex>>,
}

fn kind_name(kind: ClassKind) -> &'static str {
    match kind {
        ClassKind::Unknown => "KIND_UNKNOWN",
        ClassKind::Normal => "KIND_NORMAL",
        ClassKind::NoReferences => "KIND_NOREFERENCES",
        ClassKind::String => "KIND_STRING",
        ClassKind::Array => "KIND_ARRAY",
        ClassKind::Class => "KIND_CLASS",
        ClassKind::ClassLoader => "KIND_CLASSLOADER",
        ClassKind::DexCache => "KIND_DEXCACHE",
        ClassKind::SoftReference => "KIND_SOFT_REFERENCE",
        ClassKind::WeakReference => "KIND_WEAK_REFERENCE",
        ClassKind::FinalizerReference => "KIND_FINALIZER_REFERENCE",
        ClassKind::PhantomReference => "KIND_PHANTOM_REFERENCE",
    }
}

fn heap_name(heap: HeapKind) -> Option<&'static str> {
    match heap {
        HeapKind::Unknown => None,
        HeapKind::App => Some("HEAP_TYPE_APP"),
        HeapKind::Zygote => Some("HEAP_TYPE_ZYGOTE"),
        HeapKind::BootImage => Some("HEAP_TYPE_BOOT_IMAGE"),
    }
}

/// Pairs rows with heaptap's classes by all distinguishing properties.
fn class_rows(table: &Table, graph: &HeapGraph, faults: &mut Vec<String>) -> Vec<ClassIndex> {
    let mut ours: BTreeMap<(&str, Option<&str>, &str), Vec<ClassIndex>> = BTreeMap::new();
    for (at, class) in graph.classes().iter().enumerate().rev() {
        let key = (
            &*class.name,
            class.location.as_deref(),
            kind_name(class.kind),
        );
        ours.entry(key).or_default().push(ClassIndex(at as u32));
    }
    let mut found = Vec::new();
    for row in table.rows() {
        let key = (
            row.text("name").unwrap_or_default(),
            row.text("location"),
            row.text("kind").unwrap_or_default(),
        );
        match ours.get_mut(&key).and_then(Vec::pop) {
            Some(class) => found.push(class),
            None => {
                faults.push(format!("hg_class: no class {key:?}"));
                found.push(ClassIndex(0));
            }
        }
    }
    found
}

/// Returns the raw value of a field, by the name of its declaring class and its own.
fn field(graph: &HeapGraph, object: ObjectIndex, class: &str, name: &str) -> Option<ObjectIndex> {
    let mut found = None;
    graph.contents().fields(graph, object, &mut |field| {
        let declared = field.declared_in.map(|class| &*graph.class(class).name);
        if field.name == Some(name) && declared.is_none_or(|declared| declared == class) {
            found = field.value.object();
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    found
}

impl<'a> Judge<'a> {
    fn object(&self, row: usize) -> ObjectIndex {
        let id = self.rows.objects[row];
        self.graph.find(ObjectId(id)).expect("the object is there")
    }

    fn row(&self, object: ObjectIndex) -> usize {
        self.rows.row_of[&self.graph.id(object).0]
    }

    fn class(&self, row: usize) -> &Class {
        let classes = self.classes.as_ref().expect("hg_class is there");
        self.graph.class(classes[row])
    }

    fn classes(&self, table: &Table) -> Vec<String> {
        let mut faults = Vec::new();
        let classes = self.classes.as_ref().expect("hg_class is there");
        if table.len() != self.graph.classes().len() {
            faults.push(format!(
                "{} classes, not {}",
                self.graph.classes().len(),
                table.len()
            ));
        }
        for (row, &at) in table.rows().zip(classes) {
            let class = self.graph.class(at);
            // Perfetto takes superclasses only from class objects.
            let superclass = class.object.and_then(|object| {
                let superclass = field(self.graph, object, "java.lang.Class", "superClass")?;
                self.graph.class_behind(superclass)
            });
            let ours = (
                class.deobfuscated.as_deref(),
                superclass,
                class.loader.map(|loader| self.row(loader)),
            );
            let theirs = (
                row.text("deobfuscated_name"),
                row.id("superclass_id")
                    .map(|superclass| classes[superclass]),
                row.id("classloader_id"),
            );
            if ours != theirs {
                faults.push(format!("{}: {ours:?}, not {theirs:?}", class.name));
            }
        }
        faults
    }

    fn objects(&self, table: &Table) -> Vec<String> {
        let mut faults = Vec::new();
        if table.len() != self.graph.len() {
            faults.push(format!("{} objects, not {}", self.graph.len(), table.len()));
        }
        let reachable = Reachable::new(self.graph, Follow::default());
        let sets: BTreeMap<u64, usize> = self
            .rows
            .owners
            .iter()
            .map(|owner| (owner.0, owner.1))
            .collect();
        for (at, row) in table.rows().enumerate() {
            let object = self.object(at);
            let class = self.class(row.id("type_id").expect("a class"));
            let ours = (
                self.graph.shallow_bytes(object) as i64,
                self.graph.native_bytes(object) as i64,
                sets.get(&self.graph.id(object).0).copied(),
                i64::from(reachable.contains(object)),
                heap_name(self.graph.heap_of(object)),
                &*self.graph.class(self.graph.class_of(object)).name,
                self.graph.root_kind(object).map(|kind| kind.name()),
            );
            let theirs = (
                row.number("self_size").unwrap_or(0).max(0),
                row.number("native_size").unwrap_or(0),
                row.id("reference_set_id"),
                row.number("reachable").unwrap_or(0),
                row.text("heap_type"),
                &*class.name,
                row.text("root_type"),
            );
            if ours != theirs {
                faults.push(format!("row {at}: {ours:?}, not {theirs:?}"));
            }
            if self.graph.is_placeholder(object) != (row.number("self_size") == Some(-1)) {
                faults.push(format!("row {at}: who is a placeholder"));
            }
        }
        faults
    }

    fn references(&self, table: &Table) -> Vec<String> {
        let mut faults = Vec::new();
        let rows: Vec<Row> = table.rows().collect();
        for &(id, first, count) in &self.rows.owners {
            let owner = self.graph.find(ObjectId(id)).expect("the owner is there");
            let mut ours = Vec::new();
            self.graph
                .contents()
                .fields(self.graph, owner, &mut |field| {
                    let target = match field.value {
                        Value::Null => None,
                        value => value.object().map(|target| self.row(target)),
                    };
                    let class = field.declared_in.map(|c| self.graph.class(c).name.clone());
                    let name = field.name.map(str::to_owned);
                    let type_name = field.type_name.map(str::to_owned);
                    ours.push((target, class, name, type_name));
                    ControlFlow::Continue(())
                });
            if ours.len() < count {
                faults.push(format!("{} fields of {id}, not {count}", ours.len()));
                continue;
            }
            for (row, (target, class, name, type_name)) in
                rows[first..first + count].iter().zip(ours)
            {
                let shown = row
                    .text("deobfuscated_field_name")
                    .or(row.text("field_name"));
                let short = shown.map(|name| name.rsplit('.').next().unwrap_or(name));
                let qualified = row.text("field_name");
                let declared = qualified.and_then(|name| Some(name.rsplit_once('.')?.0));
                let same = target == row.id("owned_id")
                    && name.as_deref() == short
                    && class.as_deref().is_none_or(|class| Some(class) == declared)
                    && (type_name.as_deref() == row.text("field_type_name")
                        || row.text("deobfuscated_field_name").is_some());
                if !same || row.id("owner_id") != Some(self.row(owner)) {
                    let theirs = (row.id("owned_id"), qualified, row.text("field_type_name"));
                    let ours = (target, class, name, type_name);
                    faults.push(format!("of {id}: {ours:?}, not {theirs:?}"));
                }
            }
        }
        faults
    }

    fn dominators(&self, table: &Table) -> Vec<String> {
        let tree = &self.heap.dominators;
        let depths = tree.depths();
        let mut ours: Vec<(usize, Option<usize>, [i64; 4])> = tree
            .order()
            .iter()
            .zip(&depths)
            .map(|(&object, &depth)| {
                let values = [
                    i64::from(tree.retained_count(object)),
                    tree.retained_bytes(object) as i64,
                    tree.retained_native_bytes(object) as i64,
                    i64::from(depth),
                ];
                let idom = tree.idom(object).map(|idom| self.row(idom));
                (self.row(object), idom, values)
            })
            .collect();
        ours.sort_unstable();
        let columns = [
            "dominated_obj_count",
            "dominated_size_bytes",
            "dominated_native_size_bytes",
            "depth",
        ];
        let theirs = table.rows().map(|row| {
            let values = columns.map(|column| row.number(column).unwrap_or(0));
            (row.id("id").unwrap_or(0), row.id("idom_id"), values)
        });
        compare(ours, theirs.collect())
    }

    fn aggregation(&self, table: &Table) -> Vec<String> {
        let numbers = |sums: Retained| {
            [sums.count, sums.bytes, sums.native_bytes].map(|number| number as i64)
        };
        let ours = class_aggregation(self.graph, &self.heap.dominators);
        let ours = ours.into_iter().map(|sums| {
            let class = self.graph.class(sums.class);
            (
                class.shown().to_owned(),
                class.location.clone(),
                i64::from(sums.is_libcore_or_array),
                [
                    numbers(sums.all),
                    numbers(sums.reachable),
                    numbers(sums.dominated),
                ]
                .concat(),
            )
        });
        let columns = [
            "obj_count",
            "size_bytes",
            "native_size_bytes",
            "reachable_obj_count",
            "reachable_size_bytes",
            "reachable_native_size_bytes",
            "dominated_obj_count",
            "dominated_size_bytes",
            "dominated_native_size_bytes",
        ];
        let theirs = table.rows().map(|row| {
            let class = self.class(row.id("type_id").unwrap_or(0));
            (
                row.text("type_name").unwrap_or_default().to_owned(),
                class.location.clone(),
                row.number("is_libcore_or_array").unwrap_or(0),
                columns
                    .map(|column| row.number(column).unwrap_or(0))
                    .to_vec(),
            )
        });
        compare(ours.collect(), theirs.collect())
    }

    fn class_tree(&self, table: &Table) -> Vec<String> {
        let over = Over::ShortestPaths(&self.heap.paths);
        let tree = ClassTree::new(self.graph, over, Merge::Collapsed);
        let cumulative = tree.cumulative();
        let ours = tree.nodes.iter().zip(&cumulative).map(|(node, sums)| {
            let own = [node.count, node.bytes, sums.count, sums.bytes];
            (
                path(&tree, node, false),
                own.map(|number| number as i64).to_vec(),
            )
        });
        let columns = [
            "self_count",
            "self_size",
            "cumulative_count",
            "cumulative_size",
        ];
        compare(ours.collect(), table_paths(table, &columns, false))
    }

    fn dominator_class_tree(&self, table: &Table) -> Vec<String> {
        let over = Over::Dominators(&self.heap.dominators);
        let tree = ClassTree::new(self.graph, over, Merge::Collapsed);
        let ours = tree.nodes.iter().map(|node| {
            let own = vec![node.count as i64, node.bytes as i64];
            (path(&tree, node, true), own)
        });
        compare(
            ours.collect(),
            table_paths(table, &["self_count", "self_size"], true),
        )
    }

    fn flamegraph(&self, table: &Table) -> Vec<String> {
        let over = Over::ShortestPaths(&self.heap.paths);
        let tree = ClassTree::new(self.graph, over, Merge::Flamegraph);
        let (cumulative, depths) = (tree.cumulative(), tree.depths());
        let nodes = tree.nodes.iter().zip(cumulative.iter().zip(&depths));
        let ours = nodes.map(|(node, (sums, depth))| {
            let depth = u64::from(depth - 1);
            let own = [depth, node.count, sums.count, node.bytes, sums.bytes];
            let names = up(&tree, node).map(|node| tree.name(node).into_owned());
            (names.collect(), own.map(|number| number as i64).to_vec())
        });
        let rows: Vec<Row> = table.rows().collect();
        let columns = [
            "depth",
            "count",
            "cumulative_count",
            "size",
            "cumulative_size",
        ];
        let theirs = rows.iter().map(|row| {
            let names = row_path(&rows, row).map(|row| row.text("name").unwrap_or("").to_owned());
            (
                names.collect(),
                columns.map(|c| row.number(c).unwrap_or(0)).to_vec(),
            )
        });
        compare::<(Vec<String>, Vec<i64>)>(ours.collect(), theirs.collect())
    }

    fn stats(&self, table: &Table) -> Vec<String> {
        let says = |name: &str| {
            let mut rows = table.rows();
            rows.any(|row| row.text("name") == Some(name) && row.number("value") != Some(0))
        };
        let losses = &self.graph.facts.losses;
        let mut faults = Vec::new();
        let mut check = |name: &str, ours: bool| {
            if says(name) != ours {
                faults.push(format!("{name}: {ours}; {losses:?}"));
            }
        };
        check("heap_graph_missing_packet", losses.missing_packets > 0);
        // Perfetto skips an undefined field id, and reports one that no class has.
        let malformed = "heap_graph_malformed_packet";
        check(
            malformed,
            losses.malformed > 0
                || losses.unknown_classes > 0
                || losses.unnamed_references > 0 && says(malformed),
        );
        faults
    }
}

/// Returns a node and its ancestors.
fn up<'t>(tree: &'t ClassTree, node: &'t Node) -> impl Iterator<Item = &'t Node> {
    std::iter::successors(Some(node), |node| {
        node.parent
            .map(|NodeIndex(parent)| &tree.nodes[parent as usize])
    })
}

/// Returns the names of a node and its ancestors, with other distinguishing properties.
fn path(tree: &ClassTree, node: &Node, heaps: bool) -> Vec<String> {
    let step = |node: &Node| {
        let root = node.root.map_or("", |root| root.name());
        let native = if node.is_native { "[native] " } else { "" };
        let heap = match node.is_native {
            true => "HEAP_TYPE_NATIVE",
            false => heap_name(node.heap).unwrap_or(""),
        };
        let heap = if heaps { heap } else { "" };
        format!("{native}{}|{root}|{heap}", tree.names[node.name as usize])
    };
    up(tree, node).map(step).collect()
}

fn row_path<'r>(rows: &'r [Row<'r>], row: &'r Row<'r>) -> impl Iterator<Item = &'r Row<'r>> {
    std::iter::successors(Some(row), |row| {
        row.id("parent_id").map(|parent| &rows[parent])
    })
}

fn table_paths(table: &Table, columns: &[&str], heaps: bool) -> Vec<(Vec<String>, Vec<i64>)> {
    let rows: Vec<Row> = table.rows().collect();
    let step = |row: &Row| {
        let text = |column| row.text(column).unwrap_or("");
        let heap = if heaps { text("heap_type") } else { "" };
        format!("{}|{}|{heap}", text("name"), text("root_type"))
    };
    let path = |row| row_path(&rows, row).map(step).collect();
    let values = |row: &Row| {
        columns
            .iter()
            .map(|column| row.number(column).unwrap_or(0))
            .collect()
    };
    rows.iter().map(|row| (path(row), values(row))).collect()
}

fn compare<T: Ord + std::fmt::Debug>(mut ours: Vec<T>, mut theirs: Vec<T>) -> Vec<String> {
    ours.sort_unstable();
    theirs.sort_unstable();
    let mut faults = Vec::new();
    if ours.len() != theirs.len() {
        faults.push(format!("{} rows, not {}", ours.len(), theirs.len()));
    }
    let differing = ours.iter().zip(&theirs).filter(|(our, their)| our != their);
    faults.extend(differing.map(|(our, their)| format!("{our:?}, not {their:?}")));
    faults
}
