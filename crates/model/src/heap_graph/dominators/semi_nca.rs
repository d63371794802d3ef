//! The semi-NCA algorithm of Georgiadis and Tarjan: semidominators by path compression as in
//! Lengauer and Tarjan's algorithm, then each immediate dominator as the nearest common ancestor of
//! parent and semidominator in the tree built so far. Uses no recursion and little memory, because
//! memory use of the process peaks here.

use super::spanning::Spanning;
use crate::heap_graph::ids::ObjectIndex;
use crate::heap_graph::object_set::ObjectSet;

/// The dominator tree by numbers of the depth-first walk.
pub(super) struct Tree {
    /// Object by number; `NONE` for the virtual node, 0.
    pub(super) objects: Vec<ObjectIndex>,
    /// Immediate dominator by number, always smaller; 0 for 0.
    pub(super) idoms: Vec<u32>,
    /// Memory for reuse.
    pub(super) room: [Vec<u32>; 2],
}

pub(super) fn dominator_tree(spanning: Spanning) -> Tree {
    let Spanning {
        objects,
        parents,
        mut starts,
        sources,
        room: mut least,
    } = spanning;
    let nodes = parents.len();
    least.clear();
    least.extend(0..nodes as u32);
    let mut forest = Forest {
        ancestors: parents,
        least,
    };
    // Nodes whose semidominator is not their parent, and those parents, starting with the last
    // node.
    let mut detours = ObjectSet::new(nodes);
    let mut detour_parents = Vec::new();
    // Descending, so that all nodes above `node` are linked, and its ancestor is still its parent.
    for node in (1..nodes as u32).rev() {
        let at = node as usize;
        let parent = forest.ancestors[at];
        let mut semi = parent;
        for &source in &sources[starts[at] as usize..starts[at + 1] as usize] {
            semi = semi.min(forest.least_above(source, node));
        }
        if semi != parent {
            detours.insert(ObjectIndex(node));
            detour_parents.push(parent);
        }
        forest.least[at] = semi;
        // The end of this node's sources is no longer needed.
        starts[at + 1] = semi;
    }
    drop(sources);
    starts.remove(0);
    let mut idoms = starts;
    idoms[0] = 0;
    for node in detours.iter() {
        // One was pushed for each.
        let mut idom = detour_parents.pop().unwrap_or(0);
        let semi = idoms[node.at()];
        while idom > semi {
            idom = idoms[idom as usize];
        }
        idoms[node.at()] = idom;
    }
    Tree {
        objects,
        idoms,
        room: [forest.ancestors, forest.least],
    }
}

/// Trees of the linked nodes: those numbered above the current one.
struct Forest {
    /// The parent in the depth-first tree, or an ancestor above it if the path to it was
    /// compressed.
    ancestors: Vec<u32>,
    /// The least semidominator on the path to that ancestor, without it; the node itself if it is
    /// not linked.
    least: Vec<u32>,
}

impl Forest {
    /// Returns the least semidominator on the path from `node` up to the root of its tree, without
    /// the root; `node` itself if it is a root. `last` is the latest node that is not linked.
    #[inline]
    fn least_above(&mut self, node: u32, last: u32) -> u32 {
        if node <= last {
            return node;
        }
        if self.ancestors[node as usize] > last {
            self.compress(node, last);
        }
        self.least[node as usize]
    }

    /// Makes the tree's root the ancestor of all nodes on the path to it. The way back is stored in
    /// the reversed links themselves, so the path can have any length.
    fn compress(&mut self, node: u32, last: u32) {
        let mut below = u32::MAX;
        let mut now = node;
        while self.ancestors[now as usize] > last {
            let above = std::mem::replace(&mut self.ancestors[now as usize], below);
            below = now;
            now = above;
        }
        let root = self.ancestors[now as usize];
        let mut least = self.least[now as usize];
        while below != u32::MAX {
            let next = std::mem::replace(&mut self.ancestors[below as usize], root);
            let own = &mut self.least[below as usize];
            least = least.min(*own);
            *own = least;
            below = next;
        }
    }
}
