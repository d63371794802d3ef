//! Bitmaps with equal pixels, and large ones.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::arrays::LargeObject;
use super::duplicates::{DuplicateGroup, Duplicates};
use super::parts::{Examination, Scope};
use crate::bitmaps::{BITMAP, Bitmap, BitmapReader, equal, is_bitmap};
use heaptap_model::heap_graph::{ClassIndex, HeapGraph, ObjectIndex};

pub(super) struct Found {
    pub equal: Duplicates,
    pub largest: Vec<LargeObject>,
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
    let mut found = Duplicates {
        count: known.len() as u64,
        ..Duplicates::default()
    };
    // Number of arrays with the pixels of a bitmap. Bitmaps that share one do not waste memory.
    let mut copies: BTreeMap<usize, u64> = BTreeMap::new();
    for (bitmap, equal) in known.iter().zip(equal(graph, &known)) {
        found.bytes = found.bytes.saturating_add(bitmap.bytes);
        match equal {
            Some(equal) if !equal.is_shared => *copies.entry(equal.first).or_default() += 1,
            Some(_) => {}
            None => found.without_contents += 1,
        }
    }
    let pixels = |bitmap: &Bitmap| u64::from(bitmap.width) * u64::from(bitmap.height);
    let dimensions = |bitmap: &Bitmap| format!("{} × {}", bitmap.width, bitmap.height);
    for (first, count) in copies.into_iter().filter(|&(_, count)| count > 1) {
        let bitmap = &known[first];
        let wasted_bytes = (count - 1).saturating_mul(bitmap.bytes);
        found.wasted_bytes = found.wasted_bytes.saturating_add(wasted_bytes);
        found.groups.push(DuplicateGroup {
            count,
            each_bytes: bitmap.bytes,
            wasted_bytes,
            class: BITMAP.to_owned(),
            length: pixels(bitmap),
            value: dimensions(bitmap),
            hash: None,
            example: bitmap.object,
            example_id: graph.id(bitmap.object),
            held_by: None,
        });
    }
    found
        .groups
        .sort_by_key(|group| (Reverse(group.wasted_bytes), group.example));
    found.groups.truncate(limit);
    let mut largest: Vec<&Bitmap> = known.iter().collect();
    largest.sort_by_key(|bitmap| (Reverse(bitmap.bytes), bitmap.object));
    largest.truncate(limit);
    let row = |bitmap: &Bitmap| LargeObject {
        object: bitmap.object,
        id: graph.id(bitmap.object),
        class: BITMAP.to_owned(),
        bytes: bitmap.bytes,
        length: Some(pixels(bitmap)).filter(|&pixels| pixels > 0),
        value: match (bitmap.width, bitmap.is_estimated) {
            (0, _) => String::new(),
            (_, false) => dimensions(bitmap),
            (_, true) => format!("{} (bytes estimated)", dimensions(bitmap)),
        },
        native: bitmap.is_native,
        held_by: None,
    };
    let in_heap = known.iter().filter(|bitmap| !bitmap.is_native);
    let buffers = in_heap.filter_map(|bitmap| bitmap.pixels);
    Found {
        equal: found,
        largest: largest.into_iter().map(row).collect(),
        buffers: buffers.chain(reader.dumped()).collect(),
    }
}
