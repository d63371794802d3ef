//! Waste: memory with duplicate contents or without contents. Equal strings, arrays and bitmaps,
//! collections with more capacity than they need, boxed numbers, large arrays. Uses contents if
//! the dump has them; a heap graph contains references only.
//!
//! Only reachable objects that the app itself allocated count, because all apps share the heaps of
//! the zygote and the boot image.
//!
//! | file | owns |
//! |---|---|
//! | `parts` | the objects to examine, divided among threads |
//! | `equal` | sets of equal contents: hashed, then compared byte by byte |
//! | `duplicates` | equal strings and equal arrays |
//! | `bitmaps` | bitmaps, and those with equal pixels |
//! | `collections`, `shapes` | fill of collections, and the fields that store their elements |
//! | `boxed` | boxed numbers |
//! | `arrays` | large arrays, and arrays that are mostly empty |
//! | `sparse` | groups of collections or arrays that are mostly empty |
//! | `loaders` | class loaders that repeat each other |
//! | `holders` | holders of objects |

mod arrays;
mod bitmaps;
mod boxed;
mod collections;
mod duplicates;
mod equal;
mod holders;
mod loaders;
mod parts;
mod shapes;
mod sparse;

#[cfg(test)]
mod tests;

pub use arrays::LargeArray;
pub use bitmaps::{BitmapGroup, BitmapRow, Bitmaps};
pub use boxed::Boxed;
pub use collections::{CollectionKind, Crowded};
pub use duplicates::{DuplicateGroup, Duplicates, MOST_SHOWN};
pub use loaders::RepeatedLoader;
pub use sparse::SparseGroup;

use arrays::Arrays;
use boxed::Boxes;
use collections::Collections;
use duplicates::{EqualContents, StringArrays};
use heaptap_model::heap_graph::{HeapGraph, ObjectIndex, Reachable, Referrers};
use heaptap_model::units::counted;
use holders::Holders;
use parts::{PairedExamination, Scope};

/// Waste of a heap. Lists are cut to the requested limit; sums are not.
#[derive(Debug, Clone, Default)]
pub struct Waste {
    pub strings: Duplicates,
    /// Equal arrays of primitives, except those behind strings and bitmaps.
    pub arrays: Duplicates,
    pub bitmaps: Bitmaps,
    /// Collections by class, most wasted bytes first.
    pub collections: Vec<CollectionKind>,
    /// Collections that waste the most.
    pub sparse: Vec<SparseGroup>,
    /// Hash tables whose keys share few buckets.
    pub crowded: Vec<Crowded>,
    /// Arrays of objects outside known collections that are mostly empty.
    pub sparse_arrays: Vec<SparseGroup>,
    /// Bytes of empty slots in all of these arrays.
    pub sparse_array_bytes: u64,
    /// Boxed numbers, by class.
    pub boxed: Vec<Boxed>,
    /// Arrays of at least [`LARGE_ARRAY_BYTES`].
    pub large: Vec<LargeArray>,
    /// Number of large arrays and their bytes.
    pub large_total: (u64, u64),
    /// Class loaders whose classes another one has loaded too.
    pub loaders: Vec<RepeatedLoader>,
    /// Whether the dump has several heaps, of which only that of the app counts.
    pub is_of_app_heap: bool,
    /// Limits of the analysis for this dump, as sentences.
    pub untold: Vec<String>,
}

/// Minimum size for an array to be listed as large.
pub const LARGE_ARRAY_BYTES: u64 = 256 << 10;

impl Waste {
    /// Returns the maximum number of bytes that could be saved, without merely large objects.
    pub fn total_bytes(&self) -> u64 {
        let collections = self.collections.iter().map(|c| c.wasted_bytes);
        let boxed = self.boxed.iter().filter_map(|b| b.wasted_bytes);
        collections
            .chain(boxed)
            .chain([
                self.strings.wasted_bytes,
                self.arrays.wasted_bytes,
                self.bitmaps.wasted_bytes,
                self.sparse_array_bytes,
            ])
            .fold(0, u64::saturating_add)
    }
}

impl Waste {
    /// Keeps list entries of classes that `wanted` accepts. Sums do not change.
    pub fn keep(&mut self, wanted: impl Fn(&str) -> bool) {
        let bitmap = wanted(crate::bitmaps::BITMAP);
        self.strings.groups.retain(|row| wanted(&row.class));
        self.arrays.groups.retain(|row| wanted(&row.class));
        self.bitmaps.groups.retain(|_| bitmap);
        self.bitmaps.largest.retain(|_| bitmap);
        self.collections.retain(|row| wanted(&row.class));
        self.sparse.retain(|row| wanted(&row.class));
        self.crowded.retain(|row| wanted(&row.class));
        self.sparse_arrays.retain(|row| wanted(&row.class));
        self.boxed.retain(|row| wanted(&row.class));
        self.large.retain(|row| wanted(&row.class));
        self.loaders.retain(|row| wanted(&row.class));
    }

    /// Names a holder of each listed object, one of those that `is_reachable` selects. Reversed references
    /// of all kinds spare passes over the whole heap.
    pub fn name_holders(
        &mut self,
        graph: &HeapGraph,
        is_reachable: &(dyn Fn(ObjectIndex) -> bool + Sync),
        referrers: Option<&Referrers>,
    ) {
        let mut holders = Holders::default();
        let groups = self.strings.groups.iter().chain(&self.arrays.groups);
        for group in groups {
            holders.want(group.example);
        }
        for row in self
            .bitmaps
            .groups
            .iter()
            .map(|g| g.example)
            .chain(self.bitmaps.largest.iter().map(|b| b.object))
            .chain(self.sparse.iter().map(|g| g.example))
            .chain(self.sparse_arrays.iter().map(|g| g.example))
            .chain(self.crowded.iter().map(|c| c.object))
            .chain(self.large.iter().map(|a| a.object))
            .chain(self.loaders.iter().map(|l| l.object))
        {
            holders.want(row);
        }
        let holders = holders.find(graph, is_reachable, referrers);
        let groups = self
            .strings
            .groups
            .iter_mut()
            .chain(&mut self.arrays.groups);
        for group in groups {
            group.held_by = holders.name(group.example);
        }
        for group in &mut self.bitmaps.groups {
            group.held_by = holders.name(group.example);
        }
        for group in self.sparse.iter_mut().chain(&mut self.sparse_arrays) {
            group.held_by = holders.name(group.example);
        }
        for row in &mut self.bitmaps.largest {
            row.held_by = holders.name(row.object);
        }
        for row in &mut self.crowded {
            row.held_by = holders.name(row.object);
        }
        for row in &mut self.large {
            row.held_by = holders.name(row.object);
        }
        for row in &mut self.loaders {
            row.held_by = holders.name(row.object);
        }
    }

    /// Cuts lists to `limit` entries, except those whose sums are shown.
    pub fn cut(&mut self, limit: usize) {
        self.strings.groups.truncate(limit);
        self.arrays.groups.truncate(limit);
        self.bitmaps.groups.truncate(limit);
        self.bitmaps.largest.truncate(limit);
        self.sparse.truncate(limit);
        self.crowded.truncate(limit);
        self.sparse_arrays.truncate(limit);
        self.large.truncate(limit);
        self.loaders.truncate(limit);
    }
}

/// Finds waste among the objects in `reachable`, and names holders. Lists have at most `limit`
/// entries.
pub fn find(graph: &HeapGraph, reachable: &Reachable, limit: usize) -> Waste {
    let mut waste = without_holders(graph, reachable, limit);
    waste.name_holders(graph, &|object| reachable.contains(object), None);
    waste
}

/// Finds waste, without the names of holders.
///
/// Reads each string and array of the app's heap once, in as many threads as the host has
/// processors. Memory grows with the number of distinct contents of each range of objects, not with
/// the file size.
pub fn without_holders(graph: &HeapGraph, reachable: &Reachable, limit: usize) -> Waste {
    let has_numbers = graph.contents().has_values() && !boxed::are_all_zero(graph);
    let scope = Scope::new(graph, reachable, has_numbers);
    let mut waste = Waste {
        is_of_app_heap: !graph.heaps.is_empty(),
        ..Waste::default()
    };
    let string_arrays = StringArrays::new(graph);
    // Reads no contents. The next walk reads those of all objects.
    scope.gather(&string_arrays);
    let bitmaps = bitmaps::find(&scope, limit);
    let equals = EqualContents::new(&string_arrays, &bitmaps.buffers);
    let collections = Collections::new(&scope, limit);
    let found = scope.gather(&PairedExamination(
        &PairedExamination(&equals, &Boxes(&scope)),
        &PairedExamination(&collections, &Arrays { graph }),
    ));
    let (contents, containers): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    let (duplicates, boxes): (Vec<_>, Vec<_>) = contents.into_iter().unzip();
    let (of_collections, arrays): (Vec<_>, Vec<_>) = containers.into_iter().unzip();
    let of_collections = collections::sum_up(graph, of_collections, limit);
    waste.collections = of_collections.kinds;
    waste.sparse = of_collections.sparse;
    waste.crowded = of_collections.crowded;
    let (strings, equal_arrays, is_stripped) = equals.sum_up(duplicates, limit);
    waste.strings = strings;
    waste.arrays = equal_arrays;
    waste.bitmaps = bitmaps.bitmaps;
    if is_stripped {
        // Pixels are arrays, too.
        waste.bitmaps.groups.clear();
        waste.bitmaps.wasted_bytes = 0;
        waste.bitmaps.without_pixels = waste.bitmaps.count;
    }
    waste.boxed = boxed::sum_up(boxes);
    let found = arrays::sum_up(graph, arrays, &collections.owned, limit);
    waste.large = found.large;
    waste.large_total = found.large_total;
    waste.sparse_arrays = found.sparse;
    waste.sparse_array_bytes = found.sparse_bytes;
    waste.loaders = loaders::find(&scope, limit);
    if !graph.contents().has_values() {
        waste.untold.push(
            "a heap graph contains neither text nor numbers: equal strings, arrays and bitmaps \
             cannot be found, and collections are measured by references only; \
             `dump --hprof` records them"
                .to_owned(),
        );
    } else if waste.strings.without_contents + waste.arrays.without_contents > 0 {
        waste.untold.push(format!(
            "contents of {} and {} are missing from this dump",
            counted(waste.strings.without_contents, "string", "strings"),
            counted(waste.arrays.without_contents, "array", "arrays")
        ));
    }
    if graph.contents().has_values() && !scope.has_numbers {
        waste.untold.push(
            "no boxed number differs from zero, as in a copy of `hprof strip --fields`; collections \
             are measured by references only"
                .to_owned(),
        );
    }
    waste
}
