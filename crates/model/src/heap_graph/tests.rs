//! Compares the walks of this directory with plain ones that follow the definitions, on small
//! random graphs, and on large ones of awkward shapes.

use super::graph::NoContents;
use super::*;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::collections::VecDeque;

const KINDS: [ClassKind; 7] = [
    ClassKind::Normal,
    ClassKind::Array,
    ClassKind::SoftReference,
    ClassKind::WeakReference,
    ClassKind::FinalizerReference,
    ClassKind::PhantomReference,
    ClassKind::Normal,
];
const FOLLOWED: [Follow; 4] = [
    Follow::STRONG,
    Follow::ALL,
    Follow {
        soft: true,
        weak: false,
        finalizer: false,
        phantom: false,
    },
    Follow {
        soft: false,
        weak: true,
        finalizer: true,
        phantom: false,
    },
];

/// A heap by numbers: object `n` has ID `8 * (n + 1)`.
#[derive(Debug, Clone, Default)]
struct Heap {
    /// Index into [`KINDS`].
    classes: Vec<usize>,
    /// Owner, target, and whether it is the referent of a `Reference`. A target beyond the objects
    /// is null or an ID without an object.
    references: Vec<(usize, usize, bool)>,
    roots: Vec<usize>,
    /// Bytes of the first object; the nth object has n times as many.
    unit: u64,
    /// The dump names objects in another order than that of their IDs.
    backwards: bool,
}

impl Heap {
    fn from_objects(objects: usize) -> Heap {
        Heap {
            classes: vec![0; objects],
            unit: 8,
            ..Heap::default()
        }
    }

    fn refer(&mut self, owner: usize, target: usize) {
        self.references.push((owner, target, false));
    }

    fn shallow(&self, object: usize) -> u64 {
        (object as u64 + 1).saturating_mul(self.unit)
    }

    fn native(object: usize) -> u64 {
        if object.is_multiple_of(3) {
            object as u64 * 1000
        } else {
            0
        }
    }

    fn graph(&self) -> HeapGraph {
        let id = |n: usize| match n {
            n if n < self.classes.len() => ObjectId(8 * (n as u64 + 1)),
            n if n == self.classes.len() => ObjectId(0),
            _ => ObjectId(u64::MAX),
        };
        let mut builder = GraphBuilder::default();
        let mut sorted = self.references.clone();
        sorted.sort_by_key(|r| r.0);
        let mut rest = sorted.as_slice();
        for (object, &class) in self.classes.iter().enumerate() {
            builder.object(NewObject {
                id: id(object),
                class: ClassIndex(class as u32),
                shallow_bytes: self.shallow(object),
                heap: HeapKind::App,
            });
            let own = rest.partition_point(|r| r.0 == object);
            for &(_, target, referent) in &rest[..own] {
                match ReferenceKind::of_class(KINDS[class]).filter(|_| referent) {
                    Some(kind) => builder.referent(kind, id(target)),
                    None => builder.reference(id(target)),
                }
            }
            rest = &rest[own..];
            builder.native(id(object), Heap::native(object));
        }
        for &root in &self.roots {
            builder.root(id(root), RootKind::JniGlobal, None, None);
        }
        // Names are in another order than numbers; two classes share one name.
        let names = ["d", "c", "b", "a", "e", "f", "d"];
        let classes = names.iter().zip(KINDS).map(|(name, kind)| Class {
            name: (*name).to_owned(),
            kind,
            ..Class::default()
        });
        let facts = DumpFacts::default();
        let classes = classes.collect();
        let graph = builder.finish(classes, Vec::new(), Box::new(NoContents), facts, false);
        let mut graph = graph.expect("it is small");
        if self.backwards {
            graph.first_named = (0..graph.len() as u32).rev().collect();
        }
        graph
    }
}

fn heaps() -> impl Strategy<Value = Heap> {
    (1..16usize, 0..4usize).prop_flat_map(|(objects, density)| {
        let classes = prop::collection::vec(0..KINDS.len(), objects);
        let reference = (0..objects, 0..objects + 2, any::<bool>());
        let references = prop::collection::vec(reference, 0..=objects * density + 3);
        let roots = prop::collection::vec(0..objects + 2, 0..4);
        let unit = prop::sample::select(vec![8, 1 << 31, 1 << 60]);
        let all = (classes, references, roots, unit, any::<bool>());
        all.prop_map(|(classes, references, roots, unit, backwards)| Heap {
            classes,
            references,
            roots,
            unit,
            backwards,
        })
    })
}

/// Returns the objects that roots reach without passing through `without`.
fn reached(graph: &HeapGraph, follow: Follow, without: Option<ObjectIndex>) -> Vec<bool> {
    let mut seen = vec![false; graph.len()];
    let mut todo: Vec<ObjectIndex> = graph.roots().iter().map(|root| root.object).collect();
    while let Some(object) = todo.pop() {
        if Some(object) != without && !std::mem::replace(&mut seen[object.at()], true) {
            todo.extend(graph.kept_by(object, follow));
        }
    }
    seen
}

/// Dominators by their definition: `d` dominates every object that is unreachable without `d`.
fn check_dominators(graph: &HeapGraph, follow: Follow) {
    let fast = Dominators::compute(graph, follow);
    let all = reached(graph, follow, None);
    let reachable = Reachable::new(graph, follow);
    let count = all.iter().filter(|&&r| r).count();
    assert_eq!(reachable.count(), count as u64);
    assert_eq!(fast.order().len(), count);
    let lost: Vec<Vec<bool>> = graph
        .objects()
        .map(|d| {
            let rest = reached(graph, follow, Some(d));
            (0..all.len()).map(|at| all[at] && !rest[at]).collect()
        })
        .collect();
    let dominates = |d: ObjectIndex, o: ObjectIndex| lost[d.at()][o.at()];
    let mut depths = vec![0; graph.len()];
    for (place, depth) in fast.depths().into_iter().enumerate() {
        depths[fast.order()[place].at()] = depth;
    }
    for object in graph.objects() {
        assert_eq!(reachable.contains(object), all[object.at()]);
        assert_eq!(fast.is_reachable(object), all[object.at()]);
        let above = |o| graph.objects().filter(move |&d| dominates(d, o));
        let proper = above(object).filter(|&d| d != object);
        let nearest = proper.max_by_key(|&d| above(d).count());
        assert_eq!(fast.idom(object), nearest, "of {object:?}");
        assert_eq!(depths[object.at()] as usize, above(object).count());
        let below = || graph.objects().filter(|&o| dominates(object, o));
        let expected = Retained {
            count: below().count() as u64,
            bytes: below().fold(0, |sum, o| graph.shallow_bytes(o).saturating_add(sum)),
            native_bytes: below().map(|o| graph.native_bytes(o)).sum(),
        };
        assert_eq!(fast.retained(object), expected);
        assert_eq!(fast.retained_bytes(object), expected.bytes);
        assert_eq!(fast.retained_native_bytes(object), expected.native_bytes);
        assert_eq!(u64::from(fast.retained_count(object)), expected.count);
        let mut dominated = fast.dominated(object).to_vec();
        assert_eq!(dominated.first(), all[object.at()].then_some(&object));
        dominated.sort();
        assert!(below().eq(dominated));
        let mut children: Vec<ObjectIndex> = fast.children(object).collect();
        children.sort();
        let expected = graph.objects().filter(|&o| fast.idom(o) == Some(object));
        assert!(expected.eq(children));
    }
    let top = fast.top().count();
    let alone = graph.objects().filter(|&o| all[o.at()]);
    assert_eq!(top, alone.filter(|&o| fast.idom(o).is_none()).count());
    let sums = fast.retained_by_class(graph);
    for (class, sum) in sums.iter().enumerate() {
        let of_class = |o: ObjectIndex| graph.class_of(o).at() == class;
        let instances = graph.objects().filter(|&o| of_class(o));
        let listed = graph
            .objects()
            .chain(graph.objects())
            .filter(|&o| of_class(o));
        assert_eq!(fast.retained_together(&listed.collect::<Vec<_>>()), *sum);
        let outermost = instances.filter(|&o| {
            let mut others = graph.objects().filter(|&d| d != o && of_class(d));
            all[o.at()] && !others.any(|d| dominates(d, o))
        });
        let bytes = outermost.fold(0u64, |sum, o| sum.saturating_add(fast.retained_bytes(o)));
        assert_eq!(sum.bytes, bytes, "class {class}");
    }
    assert_eq!(fast.total().count, count as u64);
}

/// Perfetto's rule, implemented literally.
fn check_paths(graph: &HeapGraph, follow: Follow) {
    let fast = ShortestPaths::new(graph, follow);
    let mut roots: Vec<ObjectIndex> = graph.roots().iter().map(|root| root.object).collect();
    roots.sort_by_key(|&o| (graph.class(graph.class_of(o)).name.clone(), graph.place(o)));
    roots.dedup();
    let mut parents: Vec<Option<Option<ObjectIndex>>> = vec![None; graph.len()];
    let mut distances = vec![u32::MAX; graph.len()];
    let mut queue = VecDeque::new();
    for root in roots {
        parents[root.at()] = Some(None);
        distances[root.at()] = 0;
        queue.push_back(root);
    }
    let mut order = Vec::new();
    while let Some(object) = queue.pop_front() {
        order.push(object);
        let mut neighbours: Vec<ObjectIndex> = graph.kept_by(object, follow).collect();
        neighbours.sort_by_key(|&o| graph.place(o));
        for target in neighbours {
            if parents[target.at()].is_none() {
                parents[target.at()] = Some(Some(object));
                distances[target.at()] = distances[object.at()] + 1;
                queue.push_back(target);
            }
        }
    }
    assert_eq!(fast.order(), order);
    assert_eq!(fast.distances(), distances);
    for object in graph.objects() {
        assert_eq!(fast.parent(object), parents[object.at()].flatten());
        let path = fast.path(object);
        assert_eq!(path.last(), Some(&object));
        if distances[object.at()] != u32::MAX {
            assert_eq!(path.len(), distances[object.at()] as usize + 1);
        }
    }
    let mut walked = Vec::new();
    let each = |object, parent| {
        walked.push((object, parent));
        object
    };
    let references = PathReferences::walked(graph, &Walk::from_all_roots(follow), each);
    let expected = order.iter().map(|&object| (object, fast.parent(object)));
    assert!(expected.eq(walked));
    assert!(
        references
            .reachable()
            .objects()
            .iter()
            .eq(graph.objects().filter(|o| order.contains(o)))
    );
    for kinds in [follow, Follow::ALL] {
        let referrers = Referrers::new(graph, kinds, Some(&references));
        let mut objects = graph.objects();
        assert!(objects.all(|object| referrers.on_path(object) == fast.parent(object)));
    }
}

/// A walk that ends early finds the same paths as a complete one.
fn check_ways_to_few(graph: &HeapGraph) {
    let all = ShortestPaths::from_best_roots(graph, Follow::ALL);
    let last = ObjectIndex(graph.len() as u32 - 1);
    for few in [vec![ObjectIndex(0)], vec![last, ObjectIndex(0)]] {
        let some = ShortestPaths::to(graph, Follow::ALL, &few);
        assert!(few.iter().all(|&o| some.path(o) == all.path(o)));
    }
}

fn check_referrers(graph: &HeapGraph, follow: Follow) {
    let referrers = Referrers::new(graph, follow, None);
    for object in graph.objects() {
        let holds = |owner: &ObjectIndex| graph.kept_by(*owner, follow).any(|t| t == object);
        let owners: Vec<ObjectIndex> = referrers.to(object).collect();
        assert!(graph.objects().filter(holds).eq(owners));
    }
}

#[test]
fn the_first_object_of_a_range_is_in_the_set() {
    let objects = [0, 5, 63, 64, 190, 255].map(ObjectIndex);
    let set = ObjectSet::from_graph(256, objects);
    for start in 0..256 {
        for end in start..=256 {
            let mut inside = objects.iter().filter(|o| (start..end).contains(&o.0));
            assert_eq!(set.first_in(start..end), inside.next().copied());
        }
    }
}

#[test]
fn all_walks_agree_with_their_definitions_on_random_heaps() {
    let config = Config {
        cases: 2000,
        failure_persistence: None,
        ..Config::default()
    };
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, random);
    let tried = runner.run(&heaps(), |heap| {
        let graph = heap.graph();
        for follow in FOLLOWED {
            check_dominators(&graph, follow);
            check_paths(&graph, follow);
            check_referrers(&graph, follow);
        }
        check_ways_to_few(&graph);
        let mut graph = graph;
        let before = Reachable::new(&graph, Follow::STRONG);
        graph.root_unreachable(Follow::STRONG);
        let after = Reachable::new(&graph, Follow::STRONG);
        assert_eq!(after.count(), graph.len() as u64);
        let mut rooted = graph
            .roots()
            .iter()
            .filter(|r| r.kind == RootKind::Unreachable);
        assert!(rooted.all(|root| !before.contains(root.object)));
        Ok(())
    });
    tried.expect("all agree");
}

#[test]
fn garbage_is_rooted_at_its_tops_and_once_a_cycle() {
    // 0 is live and holds 1. 2 holds 3, which holds the live 1; 4 and 5 hold each other and 6; 7
    // holds itself.
    let mut heap = Heap::from_objects(8);
    let references = [(0, 1), (2, 3), (3, 1), (4, 5), (5, 4), (5, 6), (7, 7)];
    for (owner, target) in references {
        heap.refer(owner, target);
    }
    heap.roots = vec![0];
    let mut graph = heap.graph();
    assert!(!graph.facts.losses.rooted_unreachable);
    assert_eq!(graph.root_unreachable(Follow::STRONG), 3);
    assert!(graph.facts.losses.rooted_unreachable);
    assert_eq!(graph.root_unreachable(Follow::STRONG), 0);
    let added = graph
        .roots()
        .iter()
        .filter(|r| r.kind == RootKind::Unreachable);
    let added: Vec<u32> = added.map(|r| r.object.0).collect();
    assert_eq!(added, [2, 4, 7]);
    let dominators = Dominators::compute(&graph, Follow::STRONG);
    assert_eq!(dominators.total().count, 8);
    assert_eq!(dominators.retained_count(ObjectIndex(4)), 3);
    assert_eq!(dominators.idom(ObjectIndex(1)), None);
}

#[test]
fn a_walk_by_rank_exhausts_better_roots_first() {
    // Root 0 is far from 4, root 5 next to it; root 6 is excluded.
    let mut heap = Heap::from_objects(9);
    for (owner, target) in [
        (0, 1),
        (1, 2),
        (2, 3),
        (3, 4),
        (5, 4),
        (5, 7),
        (6, 8),
        (6, 4),
    ] {
        heap.refer(owner, target);
    }
    heap.roots = vec![0, 5, 6];
    let graph = heap.graph();
    let rank = |root: &Root| match root.object.0 {
        0 => Some(0),
        5 => Some(1),
        _ => None,
    };
    let walk = Walk {
        rank: Some(&rank),
        ..Walk::default()
    };
    let numbers = |paths: &ShortestPaths, to| -> Vec<u32> {
        let path = paths.path(ObjectIndex(to));
        path.into_iter().map(|object| object.0).collect()
    };
    let paths = ShortestPaths::by(&graph, &walk);
    assert_eq!(numbers(&paths, 4), [0, 1, 2, 3, 4]);
    assert_eq!(numbers(&paths, 7), [5, 7]);
    assert_eq!(paths.order().len(), 7);
    assert_eq!(paths.distances()[8], u32::MAX);
    assert_eq!(
        numbers(&ShortestPaths::new(&graph, Follow::STRONG), 4),
        [5, 4]
    );
}

#[test]
fn paths_that_tell_the_most_start_at_interned_strings_only_where_nothing_else_does() {
    let mut heap = Heap::from_objects(4);
    for (owner, target) in [(0, 1), (1, 2), (3, 2)] {
        heap.refer(owner, target);
    }
    heap.roots = vec![0, 3];
    let mut graph = heap.graph();
    for root in &mut graph.roots {
        if root.object == ObjectIndex(3) {
            root.kind = RootKind::InternedString;
        }
    }
    let shortest = ShortestPaths::new(&graph, Follow::STRONG);
    assert_eq!(shortest.parent(ObjectIndex(2)), Some(ObjectIndex(3)));
    let telling = ShortestPaths::from_best_roots(&graph, Follow::STRONG);
    assert_eq!(telling.parent(ObjectIndex(2)), Some(ObjectIndex(1)));
    assert_eq!(telling.order().len(), 4);
    // The walk ends early: 2 is not requested.
    let near = ShortestPaths::to(&graph, Follow::STRONG, &[ObjectIndex(1), ObjectIndex(1)]);
    assert_eq!(near.path(ObjectIndex(1)), telling.path(ObjectIndex(1)));
    assert_eq!(near.parent(ObjectIndex(2)), None);
    let far = ShortestPaths::to(&graph, Follow::STRONG, &[ObjectIndex(2)]);
    assert_eq!(far.path(ObjectIndex(2)), telling.path(ObjectIndex(2)));
}

#[test]
fn a_chain_of_a_million_objects_needs_no_deep_stack() {
    const LENGTH: usize = 1_000_000;
    let mut heap = Heap::from_objects(LENGTH);
    for n in 1..LENGTH {
        // References back up make the compressed paths long.
        heap.refer(n - 1, n);
        heap.refer(n, n / 2);
        heap.refer(LENGTH - 1, n / 3 * 2);
    }
    heap.roots = vec![0];
    let graph = heap.graph();
    let dominators = Dominators::compute(&graph, Follow::STRONG);
    let last = ObjectIndex(LENGTH as u32 - 1);
    assert_eq!(dominators.idom(last), Some(ObjectIndex(LENGTH as u32 - 2)));
    assert_eq!(dominators.depths()[LENGTH - 1] as usize, LENGTH);
    let half = ObjectIndex(LENGTH as u32 / 2);
    assert_eq!(dominators.retained_count(half) as usize, LENGTH / 2);
    let of_class = dominators.retained_by_class(&graph)[0];
    assert_eq!(of_class, dominators.retained(ObjectIndex(0)));
    let paths = ShortestPaths::new(&graph, Follow::STRONG);
    assert_eq!(paths.path(last).len(), LENGTH);
    assert_eq!(
        Reachable::new(&graph, Follow::STRONG).count() as usize,
        LENGTH
    );
}

#[test]
fn chains_of_classes_end_early_and_circles_sooner() {
    let mut graph = Heap::from_objects(1).graph();
    let class = |superclass| Class {
        superclass,
        ..Class::default()
    };
    let below = |at: u32| class(Some(ClassIndex(at + 1)));
    graph.classes = (0..100_000).map(below).collect();
    graph.classes.push(Class {
        name: "Top".to_owned(),
        ..Class::default()
    });
    assert_eq!(graph.ancestry(ClassIndex(0)).count(), 255);
    assert_eq!(graph.ancestry(ClassIndex(99_999)).count(), 2);
    assert!(graph.is_a(ClassIndex(99_800), "Top"));
    // The request for every class takes little time.
    let all = (0..=100_000).map(ClassIndex);
    let below_top = all.filter(|&class| graph.is_a(class, "Top")).count();
    assert_eq!(below_top, 255);
    graph.classes[0].superclass = Some(ClassIndex(0));
    assert!(graph.ancestry(ClassIndex(0)).count() < 4);
}

#[test]
fn ladders_stars_and_grids_have_the_dominators_they_must_have() {
    const N: usize = 50_000;
    // A star: root 0 holds a hub, the hub all others, each of which holds the hub and the last.
    let mut star = Heap::from_objects(N);
    for n in 2..N {
        star.refer(1, n);
        star.refer(n, 1);
        star.refer(n, N - 1);
    }
    star.refer(0, 1);
    star.roots = vec![0];
    let graph = star.graph();
    let dominators = Dominators::compute(&graph, Follow::STRONG);
    assert_eq!(dominators.children(ObjectIndex(1)).count(), N - 2);
    assert_eq!(
        dominators.idom(ObjectIndex(N as u32 - 1)),
        Some(ObjectIndex(1))
    );
    // A ladder whose rungs go both ways: no object below the two poles dominates another.
    let mut ladder = Heap::from_objects(2 * N);
    for n in 0..N {
        ladder.refer(2 * n, 2 * n + 1);
        ladder.refer(2 * n + 1, 2 * n);
        if n > 0 {
            ladder.refer(2 * n - 2, 2 * n);
            ladder.refer(2 * n - 1, 2 * n + 1);
        }
    }
    ladder.roots = vec![1, 0, 1];
    let graph = ladder.graph();
    let dominators = Dominators::compute(&graph, Follow::STRONG);
    assert_eq!(dominators.top().count(), 2 * N);
    // A grid with one entry: all crossings except those at the edges are reached by two paths.
    const SIDE: usize = 300;
    let mut grid = Heap::from_objects(SIDE * SIDE);
    for at in 0..SIDE * SIDE {
        let (row, column) = (at / SIDE, at % SIDE);
        if column + 1 < SIDE {
            grid.refer(at, at + 1);
        }
        if row + 1 < SIDE {
            grid.refer(at, at + SIDE);
        }
    }
    grid.roots = vec![0];
    let graph = grid.graph();
    let dominators = Dominators::compute(&graph, Follow::STRONG);
    for object in graph.objects().skip(1) {
        let at = object.at();
        let expected = match (at / SIDE, at % SIDE) {
            (0, _) => at - 1,
            (_, 0) => at - SIDE,
            _ => 0,
        };
        assert_eq!(dominators.idom(object).map(ObjectIndex::at), Some(expected));
    }
}

#[test]
fn sums_beyond_all_bounds_saturate() {
    let mut builder = GraphBuilder::default();
    for (id, shallow_bytes) in [(8, u64::MAX - 5), (16, 7), (24, u64::MAX), (32, 1 << 32)] {
        builder.object(NewObject {
            id: ObjectId(id),
            class: ClassIndex(0),
            shallow_bytes,
            heap: HeapKind::App,
        });
        builder.reference(ObjectId(id + 8));
        builder.native(ObjectId(id), u64::MAX - id);
        builder.native(ObjectId(id), id / 16);
    }
    builder.root(ObjectId(8), RootKind::Unknown, None, None);
    let classes = vec![Class::default()];
    let facts = DumpFacts::default();
    let graph = builder.finish(classes, Vec::new(), Box::new(NoContents), facts, false);
    let graph = graph.expect("it is small");
    let dominators = Dominators::compute(&graph, Follow::STRONG);
    assert_eq!(dominators.retained_bytes(ObjectIndex(0)), u64::MAX);
    assert_eq!(dominators.retained_bytes(ObjectIndex(1)), u64::MAX);
    assert_eq!(dominators.retained_bytes(ObjectIndex(3)), 1 << 32);
    assert_eq!(dominators.retained_native_bytes(ObjectIndex(0)), u64::MAX);
    assert_eq!(
        dominators.retained_native_bytes(ObjectIndex(3)),
        u64::MAX - 30
    );
    assert_eq!(dominators.total().bytes, u64::MAX);
}
