//! Tree of a profile in which callsites with the same name and parent are merged, as in folded
//! stacks and flame graphs. Lines, addresses and inlining are not distinguished.

use super::chosen::ChosenDump;
use heaptap_model::profile::index::FastHash;
use heaptap_model::stacks::{NodeId, StackTable, TextId};
use std::collections::HashMap;

/// Node of the merged tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct Merged {
    /// Function name.
    pub name: TextId,
    /// Path of its library.
    pub library: TextId,
    /// Previous node below the same parent; 0 if there is none.
    pub previous: u32,
    /// Last child; 0 if there is none.
    pub last: u32,
    /// Value of stacks that end here.
    pub own: i64,
    /// Value of stacks that pass through, including `own`.
    pub total: i64,
}

/// Merged nodes, parents before children; 0 is the root.
#[derive(Debug)]
pub(super) struct ByName {
    pub nodes: Vec<Merged>,
}

impl ByName {
    /// Builds the tree of one column of a dump, without zero values.
    pub(super) fn new(table: &StackTable, dump: &ChosenDump<'_>, column: usize) -> ByName {
        let values = &dump.dump.values;
        let numbers = &values.columns[column];
        let root = Merged {
            name: TextId::default(),
            library: TextId::default(),
            previous: 0,
            last: 0,
            own: 0,
            total: 0,
        };
        let mut nodes = vec![root];
        let mut parents = vec![0u32];
        let mut known: HashMap<u64, u32, FastHash> = HashMap::default();
        // Merged node of each callsite; 0 if it does not exist yet.
        let mut merged = vec![0u32; table.node_count()];
        let mut way: Vec<NodeId> = Vec::new();
        for (&node, &value) in values.nodes.iter().zip(numbers) {
            if value == 0 {
                continue;
            }
            way.clear();
            let unknown = |node: &NodeId| merged[node.0 as usize] == 0;
            way.extend(table.stack(node).take_while(unknown));
            for &node in way.iter().rev() {
                let parent = merged[table.parent(node).0 as usize];
                // All callsites except the root have a function.
                let Some(function) = table.function_of(node) else {
                    continue;
                };
                let function = &table.functions()[function.0 as usize];
                let key = u64::from(parent) << 32 | u64::from(function.name.0);
                merged[node.0 as usize] = *known.entry(key).or_insert_with(|| {
                    let id = nodes.len() as u32;
                    let previous = nodes[parent as usize].last;
                    nodes[parent as usize].last = id;
                    nodes.push(Merged {
                        name: function.name,
                        library: table.libraries()[function.library.0 as usize].path,
                        previous,
                        ..root
                    });
                    parents.push(parent);
                    id
                });
            }
            let own = &mut nodes[merged[node.0 as usize] as usize].own;
            *own = own.saturating_add(value);
        }
        for at in (0..nodes.len()).rev() {
            let total = nodes[at].total.saturating_add(nodes[at].own);
            nodes[at].total = total;
            if at > 0 {
                let above = &mut nodes[parents[at] as usize].total;
                *above = above.saturating_add(total);
            }
        }
        ByName { nodes }
    }

    /// Returns the children of a node, last first.
    pub(super) fn children(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let first = Some(self.nodes[node as usize].last);
        let there = |id: &u32| *id != 0;
        std::iter::successors(first.filter(there), move |&id| {
            Some(self.nodes[id as usize].previous).filter(there)
        })
    }
}
