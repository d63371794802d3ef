//! Garbage: objects that no root reaches and that were not collected yet. Without a GC before the
//! dump, most of it can be garbage. It is separated by default; with roots, garbage has dominators,
//! retained sizes and paths like all other objects.

use super::edges::Edges;
use super::follow::Follow;
use super::graph::HeapGraph;
use super::ids::ObjectIndex;
use super::object_set::ObjectSet;
use super::reach::Reachable;
use super::root::{Root, RootKind};

impl HeapGraph {
    /// Makes roots of kind [`RootKind::Unreachable`] so that all objects are reachable, and returns
    /// their number. The new roots are garbage to which no garbage refers, and the first object of
    /// each remaining cycle, so the top of a structure stays its top. The losses note that. A
    /// second call changes nothing.
    pub fn root_unreachable(&mut self, follow: Follow) -> usize {
        let reachable = Reachable::new(self, follow);
        let roots = {
            let edges = Edges::new(self, follow);
            let mut seen = reachable.objects().clone();
            let mut referred = ObjectSet::new(self.len());
            let garbage = || self.objects().filter(|&o| !reachable.contains(o));
            for owner in garbage() {
                for target in edges.of(owner).filter(|&target| target != owner) {
                    referred.insert(target);
                }
            }
            let mut roots = Vec::new();
            let mut stack: Vec<ObjectIndex> = Vec::new();
            let tops = garbage().filter(|&o| !referred.contains(o));
            for object in tops.chain(garbage()) {
                if !seen.insert(object) {
                    continue;
                }
                roots.push(object);
                stack.push(object);
                while let Some(object) = stack.pop() {
                    stack.extend(edges.of(object).filter(|&target| seen.insert(target)));
                }
            }
            roots
        };
        self.roots.extend(roots.iter().map(|&object| Root {
            object,
            kind: RootKind::Unreachable,
            thread: None,
            frame: None,
        }));
        self.roots.sort_by_key(|root| root.object);
        self.facts.losses.rooted_unreachable |= !roots.is_empty();
        roots.len()
    }
}
