//! Java heaps: the tree of shortest paths, merged by class.

use std::sync::Arc;

use super::arguments::Asked;
use super::tree::{Figures, Flamegraph, Label, Layout, Order};
use crate::java::Heaps;
use crate::stop::Stop;
use crate::table::TableError;
use heaptap_analyze::class_tree::{ClassTree, Merge, NodeIndex, Over};
use heaptap_model::heap_graph::{Root, RootKind};

/// Returns the flamegraph of one dump.
pub(super) fn flamegraph(
    heaps: &Heaps,
    asked: &Asked,
    stop: &Stop,
) -> Result<Flamegraph, TableError> {
    let wanted = heaps.all().iter().filter(|heap| heap.ts() == asked.ts);
    let mut wanted = wanted.filter(|heap| asked.upids.contains(&heap.upid.into()));
    let Some(heap) = wanted.next() else {
        return Err(TableError(format!(
            "experimental_flamegraph: no Java heap of upid {} was dumped at {}; run \
             SELECT upid, ts FROM heap_graph",
            asked.upids.first().copied().unwrap_or_default(),
            asked.ts
        )));
    };
    let graph = &heap.graph;
    let is_rooted = |root: &Root| root.kind != RootKind::Unreachable;
    if graph.facts.losses.truncated && !graph.roots().iter().any(is_rooted) {
        return incomplete(asked, stop);
    }
    let tree = ClassTree::new(
        &heap.graph,
        Over::ShortestPaths(heap.paths()),
        Merge::Flamegraph,
    );
    let mut layout = Layout::default();
    let map_name = layout.texts.id("JAVA");
    let mut own = Vec::with_capacity(tree.nodes.len());
    for node in &tree.nodes {
        layout.labels.push(Label {
            name: layout.texts.id(&tree.name(node)),
            map_name,
            source_file: None,
            line: None,
        });
        let parent = node.parent.map(|NodeIndex(parent)| parent);
        layout.parents.push(parent);
        own.push(Figures {
            count: node.count as i64,
            size: node.bytes as i64,
            ..Figures::default()
        });
    }
    layout.texts.seal();
    let focus = asked.focus.as_deref();
    Flamegraph::new(Arc::new(layout), own, focus, Order::Widest, stop)
}

/// Returns the flamegraph of a dump whose roots are missing: as in Perfetto, one frame says so.
fn incomplete(asked: &Asked, stop: &Stop) -> Result<Flamegraph, TableError> {
    let mut layout = Layout::default();
    let name = "ERROR: INCOMPLETE GRAPH (try increasing buffer size)";
    layout.labels.push(Label {
        name: layout.texts.id(name),
        map_name: layout.texts.id("JAVA"),
        source_file: None,
        line: None,
    });
    layout.parents.push(None);
    layout.texts.seal();
    let own = vec![Figures {
        count: 1,
        size: 1,
        ..Figures::default()
    }];
    let focus = asked.focus.as_deref();
    Flamegraph::new(Arc::new(layout), own, focus, Order::Given, stop)
}
