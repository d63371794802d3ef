//! Java heaps as stacks: a class tree becomes a dump of a profile, one callsite per node, so that
//! every format of native heaps supports Java heaps too. Columns and values are those of
//! `java_pprof`.

use super::wire::signed;
use heaptap_analyze::class_tree::ClassTree;
use heaptap_model::stacks::{
    Dump, Facts, Frame, FrameId, Function, Kind, LibraryId, Measure, NodeId, StackProfile, TextId,
    Unit, Values, View,
};

/// Adds a class tree to a profile as its last dump.
pub fn add(profile: &mut StackProfile, tree: &ClassTree, facts: Facts) {
    let native = Measure {
        name: "native_space".to_owned(),
        unit: Unit::Bytes,
        view: None,
        small_of: None,
    };
    let measures = vec![
        Measure::of_view(View::Objects),
        Measure::of_view(View::Space),
        native,
    ];
    let mut nodes: Vec<NodeId> = Vec::with_capacity(tree.nodes.len());
    let mut rows: Vec<(NodeId, [i64; 3])> = Vec::with_capacity(tree.nodes.len());
    for node in &tree.nodes {
        let frame = frame(profile, &tree.name(node));
        let parent = node.parent.map_or(NodeId::ROOT, |at| nodes[at.0 as usize]);
        let id = profile.table.child(parent, frame);
        nodes.push(id);
        let native = if node.is_native { node.bytes } else { 0 };
        rows.push((id, [node.count, node.bytes, native].map(signed)));
    }
    rows.sort_unstable_by_key(|row| row.0);
    // Nodes that a class tree separates by heap are merged here.
    rows.dedup_by(|later, kept| {
        let same = later.0 == kept.0;
        if same {
            for (sum, value) in kept.1.iter_mut().zip(later.1) {
                *sum = sum.saturating_add(value);
            }
        }
        same
    });
    let column = |at: usize| rows.iter().map(|row| row.1[at]).collect();
    profile.dumps.push(Dump {
        facts,
        measures,
        default_measure: 1,
        values: Values {
            nodes: rows.iter().map(|row| row.0).collect(),
            columns: (0..3).map(column).collect(),
        },
        threads: Vec::new(),
    });
}

fn frame(profile: &mut StackProfile, name: &str) -> FrameId {
    let function = Function {
        name: profile.table.text(name),
        system_name: TextId::default(),
        library: LibraryId::default(),
        kind: Kind::Java,
    };
    let function = profile.table.function(function);
    profile.table.frame(Frame {
        function,
        file: TextId::default(),
        line: 0,
        inlined: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_analyze::class_tree::{Merge, Over};
    use heaptap_analyze::dsl;
    use heaptap_model::heap_graph::{Follow, ShortestPaths};

    #[test]
    fn a_class_tree_keeps_its_sums() {
        let heap = dsl::heap(
            "list x.Node 10 root=JNI_GLOBAL -> next:two, value:text
             two x.Node 10
             text java.lang.String 5 +100",
        );
        let paths = ShortestPaths::new(&heap.graph, Follow::default());
        let over = Over::ShortestPaths(&paths);
        let tree = ClassTree::new(&heap.graph, over, Merge::Flamegraph);
        let mut profile = StackProfile::default();
        add(&mut profile, &tree, Facts::default());
        add(&mut profile, &tree, Facts::default());
        assert_eq!(profile.table.node_count(), 5, "a second one shares all");
        let dump = &profile.dumps[1];
        let sum = |at: usize| dump.values.columns[at].iter().sum::<i64>();
        assert_eq!([sum(0), sum(1), sum(2)], [4, 125, 100]);
        let names: Vec<&str> = dump
            .values
            .nodes
            .iter()
            .map(|n| profile.table.name_of(*n))
            .collect();
        assert!(names.contains(&"x.Node [ROOT_JNI_GLOBAL]"), "{names:?}");
        assert!(names.contains(&"[native] java.lang.String"), "{names:?}");
    }
}
