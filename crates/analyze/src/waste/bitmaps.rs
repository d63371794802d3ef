//! Bitmaps: their sizes, and groups with equal pixels.
//!
//! | Android | location of the pixels |
//! |---|---|
//! | to 7.1 | in the array `mBuffer` |
//! | 8 and later | native; size from the registry that frees them, otherwise width × height × 4 |
//! | 15 and later, `am dumpheap -b` | compressed, in the static `Bitmap.dumpData`, by `mNativePtr` |

use std::collections::HashMap;

use super::equal::{Equal, Seed};
use super::parts::Scope;
use crate::lookup;
use heaptap_model::heap_graph::{ClassIndex, HeapGraph, ObjectId, ObjectIndex, Value};

/// Bitmaps of a heap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bitmaps {
    /// Number of bitmaps.
    pub count: u64,
    /// Bytes of their pixels, in the Java heap and native.
    pub pixel_bytes: u64,
    /// Bytes of pixels that duplicate those of another bitmap.
    pub wasted_bytes: u64,
    /// Number of bitmaps whose pixels are not in the dump and therefore cannot be compared.
    pub without_pixels: u64,
    /// Groups of bitmaps with equal pixels, most wasted bytes first.
    pub groups: Vec<BitmapGroup>,
    /// Largest bitmaps.
    pub largest: Vec<BitmapRow>,
}

/// Bitmaps with equal pixels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BitmapGroup {
    /// Number of bitmaps.
    pub count: u64,
    /// Pixels.
    pub width: i64,
    /// Pixels.
    pub height: i64,
    /// Bytes of the pixels of one bitmap.
    pub each_bytes: u64,
    /// Bytes of the pixels of all but one.
    pub wasted_bytes: u64,
    /// One of the bitmaps.
    pub example: ObjectIndex,
    /// ID of the example in the dump.
    pub example_id: ObjectId,
    /// Name of a holder of the example.
    pub held_by: Option<String>,
}

/// Bitmap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BitmapRow {
    pub object: ObjectIndex,
    /// ID in the dump.
    pub id: ObjectId,
    /// Pixels; 0 if unknown.
    pub width: i64,
    /// Pixels; 0 if unknown.
    pub height: i64,
    /// Bytes of its pixels.
    pub bytes: u64,
    /// Whether the pixels are native rather than in the Java heap.
    pub native: bool,
    /// Whether the size is estimated as width × height × 4 because the dump does not contain it.
    pub estimated: bool,
    /// Name of a holder.
    pub held_by: Option<String>,
}

pub(super) struct Found {
    pub bitmaps: Bitmaps,
    /// Arrays with pixels, which are not the app's own arrays.
    pub buffers: Vec<ObjectIndex>,
}

const BITMAP: &str = "android.graphics.Bitmap";

/// Properties of a bitmap.
struct Known {
    row: BitmapRow,
    buffer: Option<ObjectIndex>,
    pointer: Option<i64>,
}

pub(super) fn find(scope: &Scope<'_>, limit: usize) -> Found {
    let graph = scope.graph;
    let wanted = scope.classes(|class| scope.nearest(class, &[BITMAP]).map(|_| ()));
    let known = scope.gather(&wanted, Vec::new, |all: &mut Vec<Known>, object, ()| {
        all.extend(look_at(graph, object));
    });
    let known: Vec<Known> = known.into_iter().flatten().collect();
    let dumped = dumped_pixels(graph);
    let pixels = |bitmap: &Known| {
        let by_pointer = || dumped.get(&bitmap.pointer?).copied();
        bitmap.buffer.or_else(by_pointer)
    };
    let content = |array: ObjectIndex| {
        let array = graph.contents().primitive_array(graph, array)?;
        Some((0, array.bytes?))
    };
    // Width and height are part of the comparison, by the first bitmap that has them.
    let seed = Seed::new();
    let mut by_size: HashMap<(i64, i64), Equal<'_>> = HashMap::new();
    let mut of_array: HashMap<ObjectIndex, usize> = HashMap::new();
    let mut bitmaps = Bitmaps::default();
    for (at, bitmap) in known.iter().enumerate() {
        bitmaps.count += 1;
        bitmaps.pixel_bytes += bitmap.row.bytes;
        let found = pixels(bitmap).and_then(|array| Some((array, content(array)?)));
        let Some((array, bytes)) = found else {
            bitmaps.without_pixels += 1;
            continue;
        };
        // Two bitmaps that share an array do not waste memory.
        if of_array.insert(array, at).is_some() {
            continue;
        }
        by_size
            .entry((bitmap.row.width, bitmap.row.height))
            .or_insert_with(|| Equal::new(&seed))
            .add(array, bytes, true, content);
    }
    for (&(width, height), equal) in &by_size {
        for same in equal.repeated() {
            let Some(&at) = of_array.get(&same.first) else {
                continue;
            };
            let row = &known[at].row;
            let count = u64::from(same.count);
            bitmaps.groups.push(BitmapGroup {
                count,
                width,
                height,
                each_bytes: row.bytes,
                wasted_bytes: (count - 1).saturating_mul(row.bytes),
                example: row.object,
                example_id: row.id,
                held_by: None,
            });
        }
    }
    bitmaps.wasted_bytes = bitmaps
        .groups
        .iter()
        .fold(0, |sum: u64, g| sum.saturating_add(g.wasted_bytes));
    bitmaps
        .groups
        .sort_by_key(|group| (std::cmp::Reverse(group.wasted_bytes), group.example));
    bitmaps.groups.truncate(limit);
    let buffers = known.iter().filter_map(|bitmap| bitmap.buffer);
    let buffers = buffers.chain(dumped.values().copied()).collect();
    let mut largest: Vec<BitmapRow> = known.into_iter().map(|bitmap| bitmap.row).collect();
    largest.sort_by_key(|row| (std::cmp::Reverse(row.bytes), row.object));
    largest.truncate(limit);
    bitmaps.largest = largest;
    Found { bitmaps, buffers }
}

/// Returns the properties of a bitmap; `None` if it was recycled, which frees its pixels.
fn look_at(graph: &HeapGraph, object: ObjectIndex) -> Option<Known> {
    let get = |name| lookup::get(graph, object, BITMAP, name);
    let native = graph.native_bytes(object);
    let number = |name| get(name).and_then(Value::integer).filter(|&n| n > 0);
    let recycled = get("mRecycled").and_then(Value::boolean);
    if recycled == Some(true) && native == 0 {
        return None;
    }
    let (width, height) = (
        number("mWidth").unwrap_or(0),
        number("mHeight").unwrap_or(0),
    );
    let buffer = get("mBuffer").and_then(Value::object);
    let in_heap = buffer.map(
        |array| match graph.contents().primitive_array(graph, array) {
            // Only the pixels count, because array headers differ between runtimes.
            Some(array) => u64::from(array.length) * array.element.bytes(8) as u64,
            None => graph.shallow_bytes(array),
        },
    );
    let guess = u64::try_from(width.saturating_mul(height).saturating_mul(4)).unwrap_or(0);
    let bytes = match in_heap {
        Some(bytes) => bytes,
        None if native > 0 => native,
        None => guess,
    };
    Some(Known {
        row: BitmapRow {
            object,
            id: graph.id(object),
            width,
            height,
            bytes,
            native: in_heap.is_none(),
            estimated: in_heap.is_none() && native == 0,
            held_by: None,
        },
        buffer,
        pointer: get("mNativePtr").and_then(Value::integer),
    })
}

/// Returns the arrays with compressed pixels, by the native pointer of their bitmap.
fn dumped_pixels(graph: &HeapGraph) -> HashMap<i64, ObjectIndex> {
    let mut all = HashMap::new();
    let class = graph
        .classes()
        .iter()
        .position(|class| class.shown() == BITMAP && class.object.is_some());
    let class = class.map(|at| ClassIndex(at as u32));
    let data = class.and_then(|class| lookup::of_class(graph, class, "dumpData")?.object());
    let Some(data) = data else {
        return all;
    };
    let class = graph.class(graph.class_of(data)).shown();
    let get = |name| lookup::get(graph, data, class, name);
    let object = |name| get(name).and_then(Value::object);
    let natives = object("natives").and_then(|array| {
        let array = graph.contents().primitive_array(graph, array)?;
        Some(array.bytes?.as_chunks::<8>().0)
    });
    let count = get("count").and_then(Value::integer);
    let (Some(natives), Some(buffers), Some(count)) = (natives, object("buffers"), count) else {
        return all;
    };
    let most = usize::try_from(count).unwrap_or(0);
    crate::fields::visit(graph, buffers, |field| {
        let at = field.element.map_or(usize::MAX, |at| at as usize);
        if at >= most {
            return std::ops::ControlFlow::Break(());
        }
        if let (Some(pointer), Value::Object(buffer)) = (natives.get(at), field.value) {
            all.insert(i64::from_be_bytes(*pointer), buffer);
        }
        std::ops::ControlFlow::Continue(())
    });
    all
}
