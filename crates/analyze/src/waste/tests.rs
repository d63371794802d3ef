//! Waste in constructed heaps.

use super::*;
use crate::leaks::tests::made::{Heap, Is, Obj};
use heaptap_model::heap_graph::{BasicType, Follow, HeapKind};

fn waste(heap: Heap) -> Waste {
    let graph = heap.graph();
    let reachable = Reachable::new(&graph, Follow::default());
    let found = find(&graph, &reachable, 10);
    // Reversed references name the same holders.
    let referrers = Referrers::new(&graph, Follow::ALL, None);
    let mut again = without_holders(&graph, &reachable, 10);
    again.name_holders(
        &graph,
        &|object| reachable.contains(object),
        Some(&referrers),
    );
    assert_eq!(format!("{again:?}"), format!("{found:?}"));
    found
}

fn keep(heap: &mut Heap, field: &str, object: Obj) {
    heap.fixed("app.Keeper", field, Is::Ref(object));
}

/// Shallow bytes of a constructed string, without its array.
const STRING: u64 = 8 + 2 * 4;

#[test]
fn equal_strings_waste_all_but_one_and_shared_arrays_only_once() {
    let mut heap = Heap::new();
    let mut all: Vec<Obj> = (0..5).map(|_| heap.string("equal")).collect();
    all.push(heap.string("other"));
    let shared = heap.primitives(BasicType::Byte, b"shared");
    for _ in 0..3 {
        all.push(heap.new_object("java.lang.String", &[("value", Is::Ref(shared))]));
    }
    let list = heap.list(&all, 0);
    keep(&mut heap, "TEXTS", list);
    // Unreachable objects and those of the zygote do not count as waste.
    heap.string("equal");
    heap.in_heap(HeapKind::Zygote);
    let zygote = heap.string("equal");
    keep(&mut heap, "ZYGOTE", zygote);
    let strings = waste(heap).strings;
    assert_eq!(strings.count, 9);
    assert_eq!(strings.distinct, Some(3));
    let value = |group: &DuplicateGroup| (group.value.clone(), group.count, group.wasted_bytes);
    let groups: Vec<(String, u64, u64)> = strings.groups.iter().map(value).collect();
    assert_eq!(
        groups,
        [
            ("equal".to_owned(), 5, 4 * (STRING + 16 + 5)),
            ("shared".to_owned(), 3, 2 * STRING),
        ]
    );
    assert_eq!(strings.wasted_bytes, 4 * (STRING + 21) + 2 * STRING);
    let held = strings.groups[0].held_by.as_deref();
    assert_eq!(held, Some("app.Keeper.TEXTS [x]"));
}

#[test]
fn equal_arrays_are_of_one_type_and_not_those_behind_strings() {
    let mut heap = Heap::new();
    let mut all = Vec::new();
    for _ in 0..3 {
        all.push(heap.primitives(BasicType::Int, &[0, 0, 0, 1, 0, 0, 0, 2]));
    }
    // Equal bytes of another type.
    all.push(heap.primitives(BasicType::Long, &[0, 0, 0, 1, 0, 0, 0, 2]));
    all.push(heap.string("text"));
    all.push(heap.string("text"));
    let list = heap.list(&all, 0);
    keep(&mut heap, "ARRAYS", list);
    let arrays = waste(heap).arrays;
    assert_eq!((arrays.count, arrays.distinct), (4, Some(2)));
    assert_eq!(arrays.groups.len(), 1);
    let group = &arrays.groups[0];
    assert_eq!((group.count, group.length), (3, 2));
    assert_eq!(group.wasted_bytes, 2 * (16 + 8));
    assert_eq!(
        (group.class.as_str(), group.value.as_str()),
        ("int[]", "1 2")
    );
}

fn bitmap_classes(heap: &mut Heap) {
    heap.class(
        "android.graphics.Bitmap",
        "java.lang.Object",
        &[
            ("mWidth", Is::Int(0)),
            ("mHeight", Is::Int(0)),
            ("mBuffer", Is::Null),
            ("mRecycled", Is::Bool(false)),
            ("mNativePtr", Is::Long(0)),
        ],
    );
}

fn bitmap(heap: &mut Heap, size: (i32, i32), buffer: Is, pointer: i64) -> Obj {
    heap.new_object(
        "android.graphics.Bitmap",
        &[
            ("mWidth", Is::Int(size.0)),
            ("mHeight", Is::Int(size.1)),
            ("mBuffer", buffer),
            ("mNativePtr", Is::Long(pointer)),
        ],
    )
}

#[test]
fn bitmaps_are_equal_by_size_and_pixels() {
    let mut heap = Heap::new();
    bitmap_classes(&mut heap);
    let mut all = Vec::new();
    for (size, pixel) in [((2, 2), 1), ((2, 2), 1), ((4, 1), 1), ((2, 2), 9)] {
        let buffer = heap.primitives(BasicType::Byte, &[pixel; 16]);
        all.push(bitmap(&mut heap, size, Is::Ref(buffer), 0));
    }
    let native = bitmap(&mut heap, (10, 10), Is::Null, 5);
    heap.native(native, 500);
    all.push(native);
    all.push(bitmap(&mut heap, (3, 3), Is::Null, 6));
    let list = heap.list(&all, 0);
    keep(&mut heap, "BITMAPS", list);
    let waste = waste(heap);
    let bitmaps = waste.bitmaps;
    assert_eq!((bitmaps.count, bitmaps.without_contents), (6, 2));
    assert_eq!(bitmaps.bytes, 4 * 16 + 500 + 36);
    assert_eq!(bitmaps.groups.len(), 1);
    assert_eq!((bitmaps.groups[0].count, bitmaps.wasted_bytes), (2, 16));
    let largest: Vec<(u64, bool, &str)> = waste
        .largest_bitmaps
        .iter()
        .take(2)
        .map(|b| (b.bytes, b.native, b.value.as_str()))
        .collect();
    let estimated = "3 × 3 (bytes estimated)";
    assert_eq!(largest, [(500, true, "10 × 10"), (36, true, estimated)]);
    assert_eq!(waste.arrays.count, 0, "pixels are not arrays of the app");
}

#[test]
fn native_bitmaps_are_equal_where_the_dump_brings_their_pixels() {
    let mut heap = Heap::new();
    bitmap_classes(&mut heap);
    heap.class(
        "android.graphics.Bitmap$DumpData",
        "java.lang.Object",
        &[
            ("count", Is::Int(0)),
            ("natives", Is::Null),
            ("buffers", Is::Null),
        ],
    );
    let mut all = Vec::new();
    let (mut natives, mut buffers) = (Vec::new(), Vec::new());
    for pointer in [11, 22, 33] {
        let one = bitmap(&mut heap, (8, 8), Is::Null, pointer);
        heap.native(one, 256);
        all.push(one);
        natives.extend(pointer.to_be_bytes());
        let png: &[u8] = if pointer == 33 {
            b"PNG other"
        } else {
            b"PNG same"
        };
        buffers.push(Some(heap.primitives(BasicType::Byte, png)));
    }
    let natives = heap.primitives(BasicType::Long, &natives);
    let buffers = heap.array("byte[][]", &buffers);
    let data = heap.new_object(
        "android.graphics.Bitmap$DumpData",
        &[
            ("count", Is::Int(3)),
            ("natives", Is::Ref(natives)),
            ("buffers", Is::Ref(buffers)),
        ],
    );
    heap.fixed("android.graphics.Bitmap", "dumpData", Is::Ref(data));
    let list = heap.list(&all, 0);
    keep(&mut heap, "BITMAPS", list);
    let bitmaps = waste(heap).bitmaps;
    assert_eq!((bitmaps.wasted_bytes, bitmaps.without_contents), (256, 0));
}

#[test]
fn sparse_collections_of_one_class_and_capacity_are_one_group() {
    let mut heap = Heap::new();
    let one = heap.string("one");
    let lists: Vec<_> = (0..5)
        .map(|at| Some(heap.list(&[one], 99 - usize::from(at == 4))))
        .collect();
    let all = heap.array("java.lang.Object[]", &lists);
    keep(&mut heap, "LISTS", all);
    let groups: Vec<_> = waste(heap)
        .sparse
        .into_iter()
        .map(|g| (g.count, g.used, g.capacity, g.wasted_bytes, g.held_by))
        .collect();
    let by = Some("app.Keeper.LISTS [x]".to_owned());
    assert_eq!(
        groups,
        [(4, 4, 400, 4 * 99 * 4, by.clone()), (1, 1, 99, 98 * 4, by)]
    );
}

#[test]
fn collections_that_are_empty_or_sparse_waste_their_slots() {
    let mut heap = Heap::new();
    let one = heap.string("one");
    let empty = heap.list(&[], 20_000);
    let sparse = heap.list(&[one], 99);
    let full = heap.list(&[one, one, one], 1);
    let none = heap.list(&[], 0);
    for (name, list) in [
        ("EMPTY", empty),
        ("SPARSE", sparse),
        ("FULL", full),
        ("NONE", none),
    ] {
        keep(&mut heap, name, list);
    }
    let waste = waste(heap);
    let kind = &waste.collections[0];
    assert_eq!(kind.class, "java.util.ArrayList");
    assert_eq!((kind.count, kind.empty, kind.empty_with_slots), (4, 2, 1));
    assert_eq!((kind.sparse, kind.elements), (1, Some(4)));
    assert_eq!(kind.wasted_bytes, (20_000 + 99) * 4);
    let worst: Vec<(u64, u64, Option<&str>)> = waste
        .sparse
        .iter()
        .map(|c| (c.used, c.capacity, c.held_by.as_deref()))
        .collect();
    assert_eq!(
        worst,
        [
            (0, 20_000, Some("app.Keeper.EMPTY")),
            (1, 100, Some("app.Keeper.SPARSE"))
        ]
    );
    assert!(
        waste.sparse_arrays.is_empty(),
        "their arrays are reported with them"
    );
}

#[test]
fn without_values_the_slots_tell_how_full_a_list_is() {
    let mut heap = Heap::new().without_values();
    let one = heap.string("one");
    let empty = heap.list(&[], 1000);
    let full = heap.list(&[one, one], 0);
    keep(&mut heap, "EMPTY", empty);
    keep(&mut heap, "FULL", full);
    let waste = waste(heap);
    assert_eq!(waste.collections[0].empty, 1);
    assert_eq!(waste.collections[0].wasted_bytes, 4000);
    assert!(waste.untold[0].contains("neither text nor numbers"));
    assert_eq!(waste.strings.distinct, Some(0));
}

#[test]
fn keys_that_share_buckets_are_told() {
    let mut heap = Heap::new();
    let none = Is::Null;
    heap.class(
        "java.util.HashMap",
        "java.lang.Object",
        &[("size", Is::Int(0)), ("table", none)],
    );
    heap.class(
        "java.util.HashMap$Node",
        "java.lang.Object",
        &[("key", none), ("value", none), ("next", none)],
    );
    let first = heap.new_object("java.util.HashMap$Node", &[]);
    let mut slots = vec![None; 64];
    slots[1] = Some(first);
    let table = heap.array("java.util.HashMap$Node[]", &slots);
    let map = heap.new_object(
        "java.util.HashMap",
        &[("size", Is::Int(40)), ("table", Is::Ref(table))],
    );
    keep(&mut heap, "COLLIDE", map);
    let waste = waste(heap);
    assert_eq!(waste.crowded.len(), 1);
    let crowded = &waste.crowded[0];
    assert_eq!(
        (crowded.size, crowded.used_buckets, crowded.buckets),
        (40, 1, 64)
    );
    assert_eq!(crowded.collisions_percent, 97);
    assert_eq!(waste.collections[0].wasted_bytes, 0, "it is full enough");
}

#[test]
fn boxes_waste_all_but_one_of_each_value() {
    let mut heap = Heap::new();
    heap.class("java.lang.Number", "java.lang.Object", &[]);
    heap.class(
        "java.lang.Integer",
        "java.lang.Number",
        &[("value", Is::Int(0))],
    );
    let values = [7, 7, 7, 8, -1];
    let all: Vec<Obj> = values
        .iter()
        .map(|&n| heap.new_object("java.lang.Integer", &[("value", Is::Int(n))]))
        .collect();
    let list = heap.list(&all, 0);
    keep(&mut heap, "BOXES", list);
    let boxed = waste(heap).boxed;
    assert_eq!(
        boxed,
        [Boxed {
            class: "java.lang.Integer".to_owned(),
            count: 5,
            bytes: 60,
            distinct: Some(3),
            wasted_bytes: Some(24),
        }]
    );
}

#[test]
fn sums_of_sizes_from_the_file_stay_at_the_limit() {
    let heap = crate::dsl::heap(
        r"
        one  java.lang.Integer 18446744073709551615 +18446744073709551615 root=jni_global
        two  java.lang.Integer 18446744073709551615 +18446744073709551615 root=jni_global
        ",
    );
    let reachable = Reachable::new(&heap.graph, Follow::default());
    let waste = find(&heap.graph, &reachable, 10);
    assert_eq!((waste.boxed[0].count, waste.boxed[0].bytes), (2, u64::MAX));
    let mut kind = CollectionKind::default();
    for _ in 0..3 {
        kind.add(&CollectionKind {
            count: 1,
            elements: Some(u64::MAX / 2),
            slots: u64::MAX,
            wasted_bytes: u64::MAX,
            ..CollectionKind::default()
        });
    }
    assert_eq!(kind.elements, Some(u64::MAX));
    assert_eq!((kind.slots, kind.wasted_bytes), (u64::MAX, u64::MAX));
}

#[test]
fn arrays_are_told_for_their_size_and_for_their_nulls() {
    let mut heap = Heap::new();
    let one = heap.string("one");
    let mut slots = vec![None; 1000];
    slots[5] = Some(one);
    let sparse = heap.array("java.lang.Object[]", &slots);
    let dense = heap.array("java.lang.Object[]", &vec![Some(one); 1000]);
    let large = heap.primitives(BasicType::Byte, &vec![0; 300 << 10]);
    for (name, array) in [("SPARSE", sparse), ("DENSE", dense), ("LARGE", large)] {
        keep(&mut heap, name, array);
    }
    let waste = waste(heap);
    assert_eq!(waste.sparse_arrays.len(), 1);
    let array = &waste.sparse_arrays[0];
    assert_eq!(
        (array.used, array.capacity, array.wasted_bytes),
        (1, 1000, 999 * 4)
    );
    assert_eq!(array.held_by.as_deref(), Some("app.Keeper.SPARSE"));
    assert_eq!(waste.sparse_array_bytes, 999 * 4);
    assert_eq!(waste.large_arrays_count, 1);
    assert_eq!(waste.large_arrays_bytes, (300 << 10) + 16);
    assert_eq!(waste.large_arrays[0].value, "all zero");
    assert_eq!(waste.large_arrays[0].length, Some(300 << 10));
}

#[test]
fn empty_strings_are_no_sign_of_a_stripped_dump() {
    let mut heap = Heap::new();
    let mut all: Vec<Obj> = (0..5).map(|_| heap.string("")).collect();
    all.push(heap.string("x"));
    for _ in 0..4 {
        all.push(heap.primitives(BasicType::Int, &[1; 8]));
    }
    let list = heap.list(&all, 0);
    keep(&mut heap, "TEXTS", list);
    let found = waste(heap);
    assert_eq!(found.strings.groups[0].count, 5);
    assert_eq!(found.arrays.groups[0].count, 4);
    assert!(found.untold.is_empty());
}

#[test]
fn a_stripped_dump_has_no_equal_contents() {
    let mut heap = Heap::new();
    let mut all: Vec<Obj> = (0..5).map(|_| heap.string("\0\0\0")).collect();
    all.push(heap.string("\0\0"));
    for _ in 0..4 {
        all.push(heap.primitives(BasicType::Int, &[0; 8]));
    }
    let list = heap.list(&all, 0);
    keep(&mut heap, "TEXTS", list);
    let found = waste(heap);
    for part in [&found.strings, &found.arrays] {
        assert_eq!((part.wasted_bytes, part.groups.len()), (0, 0));
        assert_eq!(part.without_contents, part.count);
    }
    assert_eq!(
        found.untold,
        ["contents of 6 strings and 4 arrays are missing from this dump"]
    );
}

#[test]
fn collections_without_numbers_are_measured_by_references() {
    for number in [0, 1] {
        let mut heap = Heap::new();
        heap.class(
            "java.lang.Integer",
            "java.lang.Object",
            &[("value", Is::Int(0))],
        );
        let boxes = [0, 0, number];
        let boxes = boxes.map(|n| heap.new_object("java.lang.Integer", &[("value", Is::Int(n))]));
        // The class.
        heap.list(&[], 0);
        let data = heap.array("java.lang.Object[]", &boxes.map(Some));
        let fields = [("elementData", Is::Ref(data)), ("size", Is::Int(0))];
        let list = heap.new_object("java.util.ArrayList", &fields);
        keep(&mut heap, "LIST", list);
        let found = waste(heap);
        let is_stripped = number == 0;
        assert_eq!(found.collections[0].wasted_bytes == 0, is_stripped);
        assert_eq!(found.boxed[0].distinct, (!is_stripped).then_some(2));
        assert_eq!(found.untold.len(), usize::from(is_stripped));
    }
}

#[test]
fn absurd_sizes_are_not_believed() {
    let mut heap = Heap::new();
    let list = heap.list(&[], 100);
    heap.set(list, "size", Is::Int(i32::MAX));
    keep(&mut heap, "LIST", list);
    let negative = heap.list(&[], 100);
    heap.set(negative, "size", Is::Int(-5));
    keep(&mut heap, "NEGATIVE", negative);
    let waste = waste(heap);
    assert_eq!(waste.collections[0].wasted_bytes, 0);
    assert!(waste.sparse.is_empty());
}

#[test]
fn loaders_that_repeat_each_other_are_told() {
    let mut heap = Heap::new();
    heap.class("app.PluginLoader", "java.lang.Object", &[]);
    let loaders: Vec<Obj> = (0..3)
        .map(|_| heap.new_object("app.PluginLoader", &[]))
        .collect();
    // The name of a class finds the class declared last.
    for (at, &loader) in loaders.iter().enumerate() {
        let name = if at == 2 { "app.Alone" } else { "app.Plugin" };
        let class = heap.class(name, "java.lang.Object", &[]);
        heap.loaded_by(class, loader);
        let object = heap.class_object(name);
        keep(&mut heap, "PLUGIN", object);
    }
    let list = heap.list(&loaders, 0);
    keep(&mut heap, "LOADERS", list);
    let found = waste(heap).loaders;
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].classes, found[0].repeated), (1, 1));
    assert_eq!(found[0].example, "app.Plugin");
    assert_eq!(found[0].held_by.as_deref(), Some("app.Keeper.LOADERS [x]"));
}
