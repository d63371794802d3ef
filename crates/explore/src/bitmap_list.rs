//! The reachable bitmaps of a heap.

use heaptap_analyze::bitmaps::{self, Bitmap, BitmapReader};
use heaptap_model::heap_graph::{ClassIndex, Dominators, HeapGraph, ObjectIndex};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// Reachable bitmaps, largest first.
pub(crate) struct BitmapList {
    rows: Vec<Listed>,
    by_object: HashMap<ObjectIndex, usize>,
}

pub(crate) struct Listed {
    pub(crate) bitmap: Bitmap,
    /// Number of the group of equal ones, if the dump has the pixels.
    pub(crate) group: Option<usize>,
    /// Number of bitmaps with the same pixels, itself among them.
    pub(crate) equal: u64,
}

impl BitmapList {
    pub(crate) fn new(graph: &HeapGraph, dominators: &Dominators) -> BitmapList {
        let classes = 0..graph.classes().len() as u32;
        let is_bitmap: Vec<bool> = classes
            .map(|class| bitmaps::is_bitmap(graph, ClassIndex(class)))
            .collect();
        let mut all = Vec::new();
        if is_bitmap.contains(&true) {
            let reader = BitmapReader::new(graph);
            let objects = graph.objects().filter(|&object| {
                is_bitmap[graph.class_of(object).at()] && dominators.is_reachable(object)
            });
            all.extend(objects.filter_map(|object| reader.read(object)));
        }
        all.sort_by_key(|bitmap: &Bitmap| (Reverse(bitmap.bytes), bitmap.object));
        let groups: Vec<Option<usize>> = bitmaps::equal(graph, &all)
            .into_iter()
            .map(|equal| Some(equal?.first))
            .collect();
        let mut sizes: BTreeMap<usize, u64> = BTreeMap::new();
        for group in groups.iter().flatten() {
            *sizes.entry(*group).or_default() += 1;
        }
        let rows: Vec<Listed> = all
            .into_iter()
            .zip(groups)
            .map(|(bitmap, group)| Listed {
                bitmap,
                group,
                equal: group.map_or(1, |group| sizes[&group]),
            })
            .collect();
        let by_object = rows.iter().enumerate();
        let by_object = by_object.map(|(at, row)| (row.bitmap.object, at)).collect();
        BitmapList { rows, by_object }
    }

    pub(crate) fn rows(&self) -> &[Listed] {
        &self.rows
    }

    pub(crate) fn get(&self, object: ObjectIndex) -> Option<&Listed> {
        Some(&self.rows[*self.by_object.get(&object)?])
    }
}
