//! Flame graphs: the trees of shortest paths and of dominators, merged by class.

use crate::explorer::Explorer;
use crate::merged_tree::{FlameTree, MergedTree};
use heaptap_analyze::class_tree::NodeIndex;
use serde::Serialize;

/// Flame graph. Parents come before their children.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Flame {
    pub nodes: Vec<FlameNode>,
    /// Class names.
    pub names: Vec<String>,
    /// Objects of the whole tree.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Number of nodes that are left out because they are small.
    pub left_out: u64,
    /// Whether nodes with the class of their parent are a part of it, because the tree is deep.
    pub is_folded: bool,
}

/// Objects of one class at one position, with all below them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlameNode {
    /// Index of the parent among the nodes; `None` at the top.
    pub above: Option<u32>,
    /// Index into the names.
    pub name: u32,
    /// Root kind of GC roots.
    pub root: Option<String>,
    /// Whether it is the native bytes of the objects of its parent.
    pub is_native: bool,
    /// Objects of the node itself; none of native bytes, whose objects are those of the parent.
    pub own_count: u64,
    /// Their bytes.
    pub own_bytes: u64,
    /// Objects of the node and all below.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Maximum number of nodes.
const MAX_NODES: usize = 20_000;

impl Explorer {
    /// Returns a flame graph: all nodes, or about `most` of the largest by bytes or by objects.
    pub fn flame(&self, of: FlameTree, most: usize) -> Flame {
        let MergedTree { tree, is_folded } = self.merged_tree(of);
        let sums = tree.cumulative();
        let most = most.min(MAX_NODES);
        let is_kept = kept(&sums.iter().map(|sum| sum.bytes).collect::<Vec<_>>(), most);
        let by_count = kept(&sums.iter().map(|sum| sum.count).collect::<Vec<_>>(), most);
        let mut nodes = Vec::new();
        let mut places: Vec<Option<u32>> = vec![None; tree.nodes.len()];
        for (at, (node, sum)) in tree.nodes.iter().zip(&sums).enumerate() {
            // The parents of a large node are large.
            let above = node.parent.map(|NodeIndex(parent)| places[parent as usize]);
            if !(is_kept[at] || by_count[at]) || above == Some(None) {
                continue;
            }
            places[at] = Some(nodes.len() as u32);
            nodes.push(FlameNode {
                above: above.flatten(),
                name: node.name,
                root: node.root.map(|root| root.to_string()),
                is_native: node.is_native,
                own_count: node.count,
                own_bytes: node.bytes,
                count: sum.count,
                bytes: sum.bytes,
            });
        }
        let own = tree.nodes.iter();
        Flame {
            count: own.clone().map(|node| node.count).sum(),
            bytes: own.fold(0, |sum, node| sum.saturating_add(node.bytes)),
            left_out: (tree.nodes.len() - nodes.len()) as u64,
            nodes,
            names: tree.names.clone(),
            is_folded: *is_folded,
        }
    }
}

/// Returns which sums are among the largest: half of the maximum, because there are two measures.
fn kept(sums: &[u64], most: usize) -> Vec<bool> {
    let most = most / 2;
    if sums.len() <= most {
        return vec![true; sums.len()];
    }
    let mut sorted = sums.to_vec();
    let (_, &mut least, _) = sorted.select_nth_unstable_by(most, |a, b| b.cmp(a));
    sums.iter().map(|&sum| sum > least).collect()
}
