//! Bitmaps with equal pixels, and large ones.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::parts::{Examination, Scope};
use crate::bitmaps::{Bitmap, BitmapReader, equal, is_bitmap};
use heaptap_model::heap_graph::{ClassIndex, HeapGraph, ObjectId, ObjectIndex};

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
    pub largest: Vec<BitmapRow>,
}

/// Bitmaps with equal pixels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BitmapGroup {
    /// Number of bitmaps.
    pub count: u64,
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BitmapRow {
    pub object: ObjectIndex,
    /// ID in the dump.
    pub id: ObjectId,
    /// Pixels; 0 if unknown.
    pub width: u32,
    /// Pixels; 0 if unknown.
    pub height: u32,
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

struct BitmapExamination<'g>(&'g HeapGraph, &'g BitmapReader<'g>);

impl Examination for BitmapExamination<'_> {
    type Class = ();
    type Found = Vec<Bitmap>;

    fn of_class(&self, class: ClassIndex) -> Option<()> {
        is_bitmap(self.0, class).then_some(())
    }

    fn start(&self) -> Vec<Bitmap> {
        Vec::new()
    }

    fn add(&self, all: &mut Vec<Bitmap>, object: ObjectIndex, (): ()) {
        all.extend(self.1.read(object));
    }
}

pub(super) fn find(scope: &Scope<'_>, limit: usize) -> Found {
    let graph = scope.graph;
    let reader = BitmapReader::new(graph);
    let known = scope.gather(&BitmapExamination(graph, &reader));
    let known: Vec<Bitmap> = known.into_iter().flatten().collect();
    let mut bitmaps = Bitmaps {
        count: known.len() as u64,
        ..Bitmaps::default()
    };
    // Number of arrays with the pixels of a bitmap. Bitmaps that share one do not waste memory.
    let mut copies: BTreeMap<usize, u64> = BTreeMap::new();
    for (bitmap, equal) in known.iter().zip(equal(graph, &known)) {
        bitmaps.pixel_bytes = bitmaps.pixel_bytes.saturating_add(bitmap.bytes);
        match equal {
            Some(equal) if !equal.is_shared => *copies.entry(equal.first).or_default() += 1,
            Some(_) => {}
            None => bitmaps.without_pixels += 1,
        }
    }
    for (first, count) in copies.into_iter().filter(|&(_, count)| count > 1) {
        let bitmap = &known[first];
        let wasted_bytes = (count - 1).saturating_mul(bitmap.bytes);
        bitmaps.wasted_bytes = bitmaps.wasted_bytes.saturating_add(wasted_bytes);
        bitmaps.groups.push(BitmapGroup {
            count,
            width: bitmap.width,
            height: bitmap.height,
            each_bytes: bitmap.bytes,
            wasted_bytes,
            example: bitmap.object,
            example_id: graph.id(bitmap.object),
            held_by: None,
        });
    }
    bitmaps
        .groups
        .sort_by_key(|group| (Reverse(group.wasted_bytes), group.example));
    bitmaps.groups.truncate(limit);
    let in_heap = known.iter().filter(|bitmap| !bitmap.is_native);
    let buffers = in_heap.filter_map(|bitmap| bitmap.pixels);
    let buffers = buffers.chain(reader.dumped()).collect();
    let mut largest: Vec<BitmapRow> = known.iter().map(|bitmap| row(graph, bitmap)).collect();
    largest.sort_by_key(|row| (Reverse(row.bytes), row.object));
    largest.truncate(limit);
    bitmaps.largest = largest;
    Found { bitmaps, buffers }
}

fn row(graph: &HeapGraph, bitmap: &Bitmap) -> BitmapRow {
    BitmapRow {
        object: bitmap.object,
        id: graph.id(bitmap.object),
        width: bitmap.width,
        height: bitmap.height,
        bytes: bitmap.bytes,
        native: bitmap.is_native,
        estimated: bitmap.is_estimated,
        held_by: None,
    }
}
