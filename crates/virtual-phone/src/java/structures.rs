//! Data structures of libraries: collections and bitmaps.

use super::builder::Builder;
use super::heap::{Body, Obj, Value};
use super::pictures::Picture;

/// A bitmap with its pixels in native memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bitmap {
    pub(super) object: Obj,
    pub(super) native_pointer: i64,
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) picture: Picture,
}

/// Computes `String.hashCode`.
fn string_hash(b: &Builder, text: Obj) -> i32 {
    let Body::String(text) = &b.heap.object(text).body else {
        panic!("keys are strings");
    };
    let units = text.encode_utf16();
    units.fold(0, |h: i32, c| h.wrapping_mul(31).wrapping_add(c.into()))
}

/// Adds an ArrayList.
pub(super) fn list(b: &mut Builder, items: &[Obj], capacity: usize) -> Obj {
    let mut slots: Vec<Option<Obj>> = items.iter().copied().map(Some).collect();
    slots.resize(capacity.max(items.len()), None);
    let data = b.array("java.lang.Object[]", slots);
    b.object(
        "java.util.ArrayList elementData size modCount",
        &[Value::from(data), items.len().into(), items.len().into()],
    )
}

/// Returns the capacity of an ArrayList that grew to `count` entries.
pub(super) fn list_capacity(count: usize) -> usize {
    let mut capacity = 10;
    while capacity < count {
        capacity += capacity / 2;
    }
    capacity
}

/// Adds an android.util.ArrayMap.
pub(super) fn array_map(b: &mut Builder, entries: &[(Obj, Obj)]) -> Obj {
    let items = entries.iter().flat_map(|(k, v)| [Some(*k), Some(*v)]);
    let array = b.array("java.lang.Object[]", items.collect());
    let hashes = b.ints(0..entries.len() as i32);
    b.object(
        "android.util.ArrayMap mArray mHashes mSize",
        &[Value::from(array), hashes.into(), entries.len().into()],
    )
}

/// Adds a HashMap or LinkedHashMap with a table of `capacity` (a power of two) and these strings and
/// values.
pub(super) fn hash_map(
    b: &mut Builder,
    class: &'static str,
    entries: &[(Obj, Obj)],
    capacity: usize,
) -> Obj {
    let linked = class == "java.util.LinkedHashMap";
    let node_class = match linked {
        true => "java.util.LinkedHashMap$LinkedHashMapEntry",
        false => "java.util.HashMap$Node",
    };
    let mut table: Vec<Option<Obj>> = vec![None; capacity];
    let mut nodes: Vec<Obj> = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        let hash = string_hash(b, *key);
        let hash = hash ^ (hash as u32 >> 16) as i32;
        let slot = hash as u32 as usize & (capacity - 1);
        let node = b.instance(
            node_class,
            "key value hash next",
            &[
                Value::from(*key),
                (*value).into(),
                hash.into(),
                table[slot].into(),
            ],
        );
        table[slot] = Some(node);
        if let Some(before) = nodes.last().filter(|_| linked).copied() {
            b.set(before, "after", node);
            b.set(node, "before", before);
        }
        nodes.push(node);
    }
    let table = b.array("java.util.HashMap$Node[]", table);
    let map = b.instance(
        class,
        "table size modCount threshold loadFactor=0.75",
        &[
            Value::from(table),
            entries.len().into(),
            entries.len().into(),
            (capacity * 3 / 4).into(),
        ],
    );
    if linked {
        b.fill(
            map,
            "head tail",
            &[nodes.first().copied(), nodes.last().copied()],
        );
    }
    map
}
