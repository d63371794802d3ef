//! Reachability from the roots, and the tree of shortest paths.

use super::edges::Edges;
use super::follow::Follow;
use super::graph::HeapGraph;
use super::ids::ObjectIndex;
use super::object_set::ObjectSet;
use super::root::Root;
use std::collections::VecDeque;

/// The set of objects that roots reach.
#[derive(Debug, Clone, Default)]
pub struct Reachable {
    set: ObjectSet,
}

impl Reachable {
    /// Computes the closure of the roots under references and followed referents.
    pub fn new(graph: &HeapGraph, follow: Follow) -> Reachable {
        Reachable::without(graph, follow, |_| false)
    }

    /// Computes what stays reachable without the objects that `is_gone` selects. They retain the
    /// rest of the reachable objects, themselves included.
    pub fn without(
        graph: &HeapGraph,
        follow: Follow,
        is_gone: impl Fn(ObjectIndex) -> bool,
    ) -> Reachable {
        let edges = Edges::new(graph, follow);
        let mut set = ObjectSet::new(graph.len());
        let mut stack = Vec::new();
        let roots = graph.roots().iter().map(|root| root.object);
        for root in roots.filter(|&root| !is_gone(root)) {
            if set.insert(root) {
                stack.push(root);
            }
        }
        while let Some(object) = stack.pop() {
            for target in edges.of(object) {
                if !is_gone(target) && set.insert(target) {
                    stack.push(target);
                }
            }
        }
        Reachable { set }
    }

    /// Returns whether roots reach the object.
    pub fn contains(&self, object: ObjectIndex) -> bool {
        self.set.contains(object)
    }

    /// Returns the number of reachable objects.
    pub fn count(&self) -> u64 {
        self.set.count()
    }

    /// Creates it from the set that another walk found.
    pub(super) fn from_set(set: ObjectSet) -> Reachable {
        Reachable { set }
    }

    /// Returns the reachable objects as a set.
    pub fn objects(&self) -> &ObjectSet {
        &self.set
    }
}

/// Returns the rank of a root entry: 0 comes first; `None` excludes it.
pub type RootRank<'a> = &'a dyn Fn(&Root) -> Option<u8>;

/// Options for a walk from the roots.
#[derive(Clone, Copy, Default)]
pub struct Walk<'a> {
    /// Selection of the followed referents.
    pub follow: Follow,
    /// Rank of root entries: the walk from those of rank 0 ends before that from rank 1 begins, and
    /// so on. So a path starts at a root of a higher rank only if no root of a lower rank reaches
    /// the object. `None` excludes an entry. Without this function all entries are equal.
    pub rank: Option<RootRank<'a>>,
    /// The walk ends after it has reached all of these; if empty, it continues to the end.
    pub until: &'a [ObjectIndex],
}

impl<'a> Walk<'a> {
    /// Starts at all roots at once.
    pub fn from_all_roots(follow: Follow) -> Walk<'a> {
        Walk {
            follow,
            ..Walk::default()
        }
    }

    /// Starts at the most informative roots, by [`RootKind::rank`](super::RootKind::rank).
    pub fn from_best_roots(follow: Follow) -> Walk<'a> {
        Walk {
            follow,
            rank: Some(&|root| Some(root.kind.rank())),
            until: &[],
        }
    }
}

/// The breadth-first tree from all roots: each object's parent is on a shortest path. Roots start
/// in the order of (class name, place), neighbors follow in ascending order of places, and the
/// first object to reach another is its parent. This is Perfetto's rule, so its flamegraph results.
/// The place of an object is the order of its ID or, in a heap graph, the order in which the
/// packets first name it.
#[derive(Debug, Clone, Default)]
pub struct ShortestPaths {
    /// Parent by object, plus 1; 0 for roots and unreached objects, so that pages without other
    /// values need no memory.
    above: Vec<u32>,
    /// Reached objects in order of the walk: parents before children.
    order: Vec<ObjectIndex>,
}

impl ShortestPaths {
    /// Walks the graph from all roots. Needs 8 bytes per object.
    pub fn new(graph: &HeapGraph, follow: Follow) -> ShortestPaths {
        ShortestPaths::by(graph, &Walk::from_all_roots(follow))
    }

    /// Walks the graph from the most informative roots first, by
    /// [`RootKind::rank`](super::RootKind::rank): for paths that users read, which are not always
    /// the shortest.
    pub fn from_best_roots(graph: &HeapGraph, follow: Follow) -> ShortestPaths {
        ShortestPaths::by(graph, &Walk::from_best_roots(follow))
    }

    /// Walks the graph like `from_best_roots`, but only until it has reached these objects: large
    /// ones are mostly near the roots.
    pub fn to(graph: &HeapGraph, follow: Follow, objects: &[ObjectIndex]) -> ShortestPaths {
        let walk = Walk {
            until: objects,
            ..Walk::from_best_roots(follow)
        };
        ShortestPaths::by(graph, &walk)
    }

    /// Walks the graph with the given options.
    pub fn by(graph: &HeapGraph, walk: &Walk<'_>) -> ShortestPaths {
        let mut paths = ShortestPaths {
            above: vec![0; graph.len()],
            order: Vec::new(),
        };
        let found = |owner: ObjectIndex, _, target: ObjectIndex| {
            paths.above[target.at()] = owner.0 + 1;
        };
        Search::run(graph, walk, found, |object, _| paths.order.push(object));
        paths.order.shrink_to_fit();
        paths
    }

    /// Returns the previous object on the path; `None` for roots and unreachable objects.
    pub fn parent(&self, object: ObjectIndex) -> Option<ObjectIndex> {
        self.above[object.at()].checked_sub(1).map(ObjectIndex)
    }

    /// Returns the reached objects, each after its parent.
    pub fn order(&self) -> &[ObjectIndex] {
        &self.order
    }

    /// Returns the place in the order of each object's parent, for the objects in order; `None` for
    /// roots. Faster than to look up parents by object.
    pub fn parent_places(&self) -> impl Iterator<Item = Option<u32>> + '_ {
        // Objects come in the order of their parents.
        let mut place = 0;
        self.order.iter().map(move |&object| {
            let parent = self.parent(object)?;
            while self.order[place] != parent {
                place += 1;
            }
            Some(place as u32)
        })
    }

    /// Returns the path from a root to the object, including both; only the object if it is
    /// unreachable.
    pub fn path(&self, object: ObjectIndex) -> Vec<ObjectIndex> {
        let mut path = vec![object];
        let mut at = object;
        while let Some(parent) = self.parent(at) {
            path.push(parent);
            at = parent;
        }
        path.reverse();
        path
    }

    /// Returns the distance of each object from the root of its path in references, by object;
    /// `u32::MAX` for unreachable objects.
    pub fn distances(&self) -> Vec<u32> {
        let mut distances = vec![u32::MAX; self.above.len()];
        for &object in &self.order {
            let parent = self.parent(object);
            distances[object.at()] = parent.map_or(0, |p| distances[p.at()] + 1);
        }
        distances
    }
}

/// References of the tree of shortest paths: a bit each. With [`Referrers`](super::Referrers), they lead
/// from an object to its root.
#[derive(Debug, Clone, Default)]
pub struct PathReferences {
    reachable: Reachable,
    /// By index among all references.
    references: ObjectSet,
    /// Owners and targets of referents, ascending.
    referents: Vec<(ObjectIndex, ObjectIndex)>,
}

impl PathReferences {
    /// Walks the graph as [`ShortestPaths::by`] does. Passes each reached object in order, with what `each`
    /// returned for its parent; `None` for roots.
    pub fn walked<T: Copy>(
        graph: &HeapGraph,
        walk: &Walk<'_>,
        each: impl FnMut(ObjectIndex, Option<T>) -> T,
    ) -> PathReferences {
        let mut references = ObjectSet::new(graph.reference_count());
        let mut referents = Vec::new();
        let found = |owner, at: Option<usize>, target| match at {
            Some(at) => {
                references.insert(ObjectIndex(at as u32));
            }
            None => referents.push((owner, target)),
        };
        let set = Search::run(graph, walk, found, each);
        referents.sort_unstable();
        PathReferences {
            reachable: Reachable { set },
            references,
            referents,
        }
    }

    /// Returns the objects that the walk reached.
    pub fn reachable(&self) -> &Reachable {
        &self.reachable
    }

    /// Returns whether the reference with that index among all leads to its target on a path.
    #[inline]
    pub(super) fn has_reference(&self, at: usize) -> bool {
        self.references.contains(ObjectIndex(at as u32))
    }

    /// Returns whether a referent is its owner's next object on a path.
    pub(super) fn has_referent(&self, owner: ObjectIndex, target: ObjectIndex) -> bool {
        self.referents.binary_search(&(owner, target)).is_ok()
    }
}

/// State of a walk.
struct Search<'a, F, T> {
    edges: Edges<'a>,
    seen: ObjectSet,
    /// Reached objects whose edges are not followed yet, in order, with their values.
    queue: VecDeque<(ObjectIndex, T)>,
    /// Gets the owner, the index among all references, `None` for a referent, and the target of each
    /// edge that is the first to reach its target.
    found: F,
    /// Objects to reach, and the number of those left; empty for a complete walk.
    ends: ObjectSet,
    left: u64,
}

impl<'a, F: FnMut(ObjectIndex, Option<usize>, ObjectIndex), T: Copy> Search<'a, F, T> {
    /// Walks the graph and passes each object in order, with the value of its parent. Returns the reached
    /// objects.
    fn run(
        graph: &'a HeapGraph,
        walk: &Walk<'_>,
        found: F,
        mut each: impl FnMut(ObjectIndex, Option<T>) -> T,
    ) -> ObjectSet {
        let ends = match walk.until {
            [] => ObjectSet::default(),
            until => ObjectSet::from_graph(graph.len(), until.iter().copied()),
        };
        let mut search = Search {
            edges: Edges::new(graph, walk.follow),
            seen: ObjectSet::new(graph.len()),
            queue: VecDeque::new(),
            found,
            left: ends.count(),
            ends,
        };
        let starts = starts(graph, walk.rank);
        for same_rank in starts.chunk_by(|a, b| a.0 == b.0) {
            for &(_, _, root) in same_rank {
                if search.seen.insert(root) {
                    search.queue.push_back((root, each(root, None)));
                }
            }
            if !search.exhaust(&mut each) {
                break;
            }
        }
        search.seen
    }

    /// Continues from all reached objects; returns `false` if nothing is left to reach.
    fn exhaust(&mut self, each: &mut impl FnMut(ObjectIndex, Option<T>) -> T) -> bool {
        let graph = self.edges.graph;
        let mut new = Vec::new();
        while let Some((object, value)) = self.queue.pop_front() {
            if self.left > 0 && self.ends.contains(object) {
                self.left -= 1;
                if self.left == 0 {
                    return false;
                }
            }
            let (mut last, mut ascending) = (ObjectIndex(0), true);
            let mut reach = |at, target| {
                if self.seen.insert(target) {
                    ascending &= last <= target;
                    last = target;
                    (self.found)(object, at, target);
                    new.push(target);
                }
            };
            for at in graph.reference_range(object) {
                let target = graph.targets[at];
                if target != ObjectIndex::NONE {
                    reach(Some(at), target);
                }
            }
            for target in self.edges.referents(object) {
                reach(None, target);
            }
            if !graph.first_named.is_empty() {
                new.sort_unstable_by_key(|&target| graph.place(target));
            } else if !ascending {
                new.sort_unstable();
            }
            for target in new.drain(..) {
                let value = each(target, Some(value));
                // Half of all objects refer to nothing, and do not have to wait.
                if self.left > 0 || self.edges.has_any(target) {
                    self.queue.push_back((target, value));
                }
            }
        }
        true
    }
}

/// Returns the root objects in their starting order: by rank, class name, ID. The second number
/// represents the class name.
fn starts(graph: &HeapGraph, rank: Option<RootRank<'_>>) -> Vec<(u8, u32, ObjectIndex)> {
    let name = |class: usize| graph.classes()[class].name.as_str();
    let mut by_name: Vec<usize> = (0..graph.classes().len()).collect();
    by_name.sort_by_key(|&class| name(class));
    let mut place = vec![0; by_name.len()];
    let mut places = 0;
    for pair in by_name.windows(2) {
        places += u32::from(name(pair[0]) != name(pair[1]));
        place[pair[1]] = places;
    }
    let ranked = graph.roots().iter().filter_map(|root| {
        let rank = rank.map_or(Some(0), |rank| rank(root))?;
        let class = graph.class_of(root.object);
        Some((rank, place[class.at()], root.object))
    });
    let mut starts: Vec<(u8, u32, ObjectIndex)> = ranked.collect();
    starts.sort_unstable_by_key(|&(rank, name, root)| (rank, name, graph.place(root)));
    starts.dedup();
    starts
}
