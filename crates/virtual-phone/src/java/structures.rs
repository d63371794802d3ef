//! Data structures of libraries: collections and bitmaps.

use super::builder::Builder;
use super::heap::{Obj, Value};
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
pub(super) fn string_hash(text: &str) -> i32 {
    text.encode_utf16()
        .fold(0i32, |h, c| h.wrapping_mul(31).wrapping_add(i32::from(c)))
}

/// Adds an ArrayList.
pub(super) fn list(b: &mut Builder, items: &[Obj], capacity: usize) -> Obj {
    let mut slots: Vec<Option<Obj>> = items.iter().copied().map(Some).collect();
    slots.resize(capacity.max(items.len()), None);
    let data = b.array("java.lang.Object[]", slots);
    b.object(
        "java.util.ArrayList",
        &[
            ("elementData", data.into()),
            ("size", (items.len() as i32).into()),
            ("modCount", (items.len() as i32).into()),
        ],
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
    let items = entries
        .iter()
        .flat_map(|(k, v)| [Some(*k), Some(*v)])
        .collect();
    let array = b.array("java.lang.Object[]", items);
    let hashes: Vec<i32> = (0..entries.len() as i32).collect();
    let hashes = b.ints(&hashes);
    b.object(
        "android.util.ArrayMap",
        &[
            ("mArray", array.into()),
            ("mHashes", hashes.into()),
            ("mSize", (entries.len() as i32).into()),
        ],
    )
}

/// Adds a HashMap or LinkedHashMap with a table of `capacity` (a power of two); entries are the
/// hash of the key, the key and the value.
pub(super) fn hash_map(
    b: &mut Builder,
    class: &'static str,
    entries: &[(i32, Obj, Obj)],
    capacity: usize,
) -> Obj {
    let linked = class == "java.util.LinkedHashMap";
    let node_class = if linked {
        "java.util.LinkedHashMap$LinkedHashMapEntry"
    } else {
        "java.util.HashMap$Node"
    };
    let mut table: Vec<Option<Obj>> = vec![None; capacity];
    let mut nodes: Vec<Obj> = Vec::with_capacity(entries.len());
    for (hash, key, value) in entries {
        let hash = hash ^ (*hash as u32 >> 16) as i32;
        let slot = hash as u32 as usize & (capacity - 1);
        let node = b.object(
            node_class,
            &[
                ("key", (*key).into()),
                ("value", (*value).into()),
                ("hash", hash.into()),
                ("next", table[slot].into()),
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
    let map = b.object(
        class,
        &[
            ("table", table.into()),
            ("size", (entries.len() as i32).into()),
            ("modCount", (entries.len() as i32).into()),
            ("threshold", (capacity as i32 * 3 / 4).into()),
            ("loadFactor", Value::Float(0.75)),
        ],
    );
    if linked {
        b.set(map, "head", nodes.first().copied());
        b.set(map, "tail", nodes.last().copied());
    }
    map
}
