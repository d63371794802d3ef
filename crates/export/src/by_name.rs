//! A profile's tree with callsites of one name under one parent made one, as folded stacks and
//! flamegraphs show it: lines, addresses and inlining told apart no more.

use super::chosen::ChosenDump;
use heaptap_model::profile::index::FastHash;
use heaptap_model::stacks::{NodeId, StackTable, TextId};
use std::collections::HashMap;

/// A node of the merged tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct Merged {
    /// The function's name.
    pub name: TextId,
    /// The path of the library it is in.
    pub library: TextId,
    /// The node before it under the same parent; 0 is none.
    pub previous: u32,
    /// The last node under it; 0 is none.
    pub last: u32,
    /// What was allocated by stacks that end here.
    pub own: i64,
    /// And by those that pass through.
    pub total: i64,
}

/// Merged nodes, parents before children; 0 is the root.
#[derive(Debug)]
pub(super) struct ByName {
    pub nodes: Vec<Merged>,
}

impl ByName {
    /// The tree of one column of a dump; what is zero in it is left out.
    pub(super) fn of(table: &StackTable, dump: &ChosenDump<'_>, column: usize) -> ByName {
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
        // Of each callsite its merged node; 0 is not there yet.
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
                // All but the root have a function.
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

    /// The nodes under one, last first.
    pub(super) fn children(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let first = Some(self.nodes[node as usize].last);
        let there = |id: &u32| *id != 0;
        std::iter::successors(first.filter(there), move |&id| {
            Some(self.nodes[id as usize].previous).filter(there)
        })
    }
}
