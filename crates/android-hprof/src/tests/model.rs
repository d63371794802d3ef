//! Random heaps, written in random order into random segments, and read back: the graph equals the
//! heap for every order, width of IDs and number of threads.

use super::dump::{ClassSpec, Dump, Val};
use super::{class_name, object, references};
use crate::records::IdSize;
use crate::{Options, histogram, read};
use heaptap_base::bytes::Bytes;
use heaptap_model::heap_graph::BasicType::{Int, Object};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::num::NonZero;

const NODE: u64 = 0x100;
const PAIR: u64 = 0x110;
const ARRAY: u64 = 0x120;

/// An object of the heap: its kind, and the numbers of the objects it refers to; a number beyond
/// the heap is null.
#[derive(Debug, Clone)]
struct Thing {
    sort: u8,
    targets: Vec<usize>,
}

fn heap() -> impl Strategy<Value = Vec<Thing>> {
    let thing = (0u8..3, prop::collection::vec(0usize..60, 0..6));
    let thing = thing.prop_map(|(sort, targets)| Thing { sort, targets });
    prop::collection::vec(thing, 1..40)
}

fn id(number: usize) -> u64 {
    0x1000 + 8 * number as u64
}

/// Returns the IDs that a thing holds, null as 0.
fn targets(heap: &[Thing], thing: &Thing) -> Vec<u64> {
    let width = match thing.sort {
        0 => 1,
        1 => 2,
        _ => thing.targets.len(),
    };
    let all = (0..width).map(|at| thing.targets.get(at).copied().unwrap_or(usize::MAX));
    all.map(|n| if n < heap.len() { id(n) } else { 0 })
        .collect()
}

fn write(dump: &mut Dump, heap: &[Thing], number: usize) {
    let thing = &heap[number];
    let ids = targets(heap, thing);
    let own = id(number);
    match thing.sort {
        0 => dump.instance(own, NODE, &[Val::Int(3), Val::Ref(ids[0])]),
        1 => dump.instance(
            own,
            PAIR,
            &[Val::Ref(ids[1]), Val::Int(5), Val::Ref(ids[0])],
        ),
        _ => dump.objects(own, ARRAY, &ids),
    };
}

fn write_class(dump: &mut Dump, class: u64) {
    let node = [("n", Int), ("next", Object)];
    let pair = [("other", Object)];
    let (name, superclass, fields): (_, _, &[_]) = match class {
        NODE => ("a.Node", 0, &node),
        // Its own field comes first, then those of its superclass.
        PAIR => ("a.Pair", NODE, &pair),
        _ => ("java.lang.Object[]", 0, &[]),
    };
    dump.class(&ClassSpec {
        id: class,
        name,
        superclass,
        fields,
        ..ClassSpec::default()
    });
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_graph_is_the_heap(
        heap in heap(),
        order in any::<u64>(),
        wide in any::<bool>(),
        threads in 1usize..4,
        roots in prop::collection::vec(0usize..40, 0..5),
    ) {
        let id_size = if wide { IdSize::Eight } else { IdSize::Four };
        let mut dump = Dump::new("JAVA PROFILE 1.0.2", id_size);
        // Objects, then classes and roots with the numbers after them, shuffled.
        let classes = [NODE, PAIR, ARRAY];
        let mut jobs: Vec<usize> = (0..heap.len() + classes.len() + roots.len()).collect();
        let mut rng = fastrand::Rng::with_seed(order);
        rng.shuffle(&mut jobs);
        for job in jobs {
            if let Some(at) = job.checked_sub(heap.len()) {
                match classes.get(at) {
                    Some(&class) => write_class(&mut dump, class),
                    None => {
                        dump.root(0x05, id(roots[at - classes.len()]));
                    }
                }
            } else {
                write(&mut dump, &heap, job);
            }
            if rng.u8(..) < 60 {
                dump.segment();
            }
        }
        let file = Bytes::from(dump.finish());
        let options = Options { threads: NonZero::new(threads), ..Options::default() };
        let graph = read(file.clone(), &options).expect("it has a header");
        let class_objects = 3;
        prop_assert_eq!(graph.len(), heap.len() + class_objects);
        let mut counts: BTreeMap<&str, u64> = BTreeMap::from([("java.lang.Class", 3)]);
        for (number, thing) in heap.iter().enumerate() {
            let mut expected = targets(&heap, thing);
            if thing.sort == 1 {
                expected.reverse();
            }
            expected.retain(|&id| id != 0);
            prop_assert_eq!(references(&graph, id(number)), expected);
            let own = object(&graph, id(number));
            let class = graph.class_of(own);
            let fields = graph.contents().reference_fields(&graph, class, 9);
            let count = graph.references(own).len();
            if let Some(usual) = graph.contents().known_filled_fields(class, own, count) {
                prop_assert_eq!(graph.contents().filled_fields(own, &fields), Some(usual));
            } else {
                // Only the pairs with one reference have it in different fields.
                prop_assert!(thing.sort == 2 || count == 0 || thing.sort == 1 && count == 1);
            }
            let name = ["a.Node", "a.Pair", "java.lang.Object[]"][usize::from(thing.sort)];
            prop_assert_eq!(class_name(&graph, id(number)), name);
            *counts.entry(name).or_default() += 1;
        }
        let in_heap = roots.iter().filter(|&&root| root < heap.len()).count();
        prop_assert_eq!(graph.roots().len(), in_heap);
        let dangling = (roots.len() - in_heap) as u64;
        prop_assert_eq!(graph.facts.losses.dangling_roots, dangling);
        let rows = histogram(&file, &options).expect("it has a header").rows;
        let rows = rows.iter().map(|row| (row.class.as_str(), row.objects));
        prop_assert_eq!(rows.collect::<BTreeMap<_, _>>(), counts);
    }
}
