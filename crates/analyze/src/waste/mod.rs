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

pub use arrays::{LARGE_ARRAY_BYTES, LargeObject};
pub use boxed::Boxed;
pub use collections::{CollectionKind, Crowded};
pub use duplicates::{DuplicateGroup, Duplicates, MAX_SHOWN};
pub use loaders::RepeatedLoader;
pub use sparse::SparseGroup;

use arrays::Arrays;
use boxed::Boxes;
use collections::Collections;
use duplicates::{EqualContents, StringArrays};
use heaptap_base::units::counted;
use heaptap_model::heap_graph::{HeapGraph, HeapKind, ObjectIndex, Reachable, Referrers};
use holders::Holders;
use parts::{PairedExamination, Scope};
use serde::Serialize;

/// Waste of a heap, as `leaks --json` has it. Lists are cut to the requested limit; sums are not.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Waste {
    /// `app` if the dump has several heaps: the others are shared by all apps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heap: Option<&'static str>,
    /// Maximum number of bytes that could be saved, without merely large objects.
    pub wasted_bytes: u64,
    /// Equal strings.
    pub strings: Duplicates,
    /// Equal arrays of primitives, except those behind strings and bitmaps.
    pub arrays: Duplicates,
    /// Bitmaps with equal pixels; `bytes` are those of pixels, in the Java heap and native.
    pub bitmaps: Duplicates,
    pub largest_bitmaps: Vec<LargeObject>,
    /// Collections by class, most wasted bytes first.
    pub collections: Vec<CollectionKind>,
    /// Collections that waste the most.
    #[serde(rename = "oversized_collections")]
    pub sparse: Vec<SparseGroup>,
    /// Arrays of objects outside known collections that are mostly empty.
    pub sparse_arrays: Vec<SparseGroup>,
    /// Bytes of empty slots in all of these arrays.
    pub sparse_array_bytes: u64,
    /// Hash tables whose keys share few buckets.
    #[serde(rename = "hash_collisions")]
    pub crowded: Vec<Crowded>,
    /// Boxed numbers, by class.
    pub boxed: Vec<Boxed>,
    /// Arrays of at least [`LARGE_ARRAY_BYTES`].
    pub large_arrays: Vec<LargeObject>,
    /// Number of large arrays, and their bytes.
    pub large_arrays_count: u64,
    pub large_arrays_bytes: u64,
    /// Class loaders whose classes another one has loaded too.
    pub loaders: Vec<RepeatedLoader>,
    /// Limits of the analysis for this dump, as sentences.
    #[serde(rename = "not_analyzed")]
    pub untold: Vec<String>,
}

impl Waste {
    fn sum_up(&mut self) {
        let collections = self.collections.iter().map(|c| c.wasted_bytes);
        let boxed = self.boxed.iter().filter_map(|b| b.wasted_bytes);
        self.wasted_bytes = collections
            .chain(boxed)
            .chain([
                self.strings.wasted_bytes,
                self.arrays.wasted_bytes,
                self.bitmaps.wasted_bytes,
                self.sparse_array_bytes,
            ])
            .fold(0, u64::saturating_add);
    }

    /// Keeps list entries of classes that `wanted` accepts. Sums do not change, except that of all waste.
    pub fn keep(&mut self, wanted: impl Fn(&str) -> bool) {
        for all in [&mut self.strings, &mut self.arrays, &mut self.bitmaps] {
            all.groups.retain(|row| wanted(&row.class));
        }
        self.largest_bitmaps.retain(|row| wanted(&row.class));
        self.large_arrays.retain(|row| wanted(&row.class));
        self.sparse.retain(|row| wanted(&row.class));
        self.sparse_arrays.retain(|row| wanted(&row.class));
        self.collections.retain(|row| wanted(&row.class));
        self.crowded.retain(|row| wanted(&row.class));
        self.boxed.retain(|row| wanted(&row.class));
        self.loaders.retain(|row| wanted(&row.class));
        self.sum_up();
    }

    /// Removes the contents of strings and arrays.
    pub fn hide_contents(&mut self) {
        for group in self
            .strings
            .groups
            .iter_mut()
            .chain(&mut self.arrays.groups)
        {
            group.value.clear();
            group.hash = None;
        }
        for array in &mut self.large_arrays {
            array.value.clear();
        }
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
        for (object, _) in self.listed() {
            holders.want(object);
        }
        let holders = holders.find(graph, is_reachable, referrers);
        for (object, held_by) in self.listed() {
            *held_by = holders.name(object);
        }
    }

    /// Returns the object of each list entry, with the place for the name of its holder.
    fn listed(&mut self) -> impl Iterator<Item = (ObjectIndex, &mut Option<String>)> {
        let equal = [&mut self.strings, &mut self.arrays, &mut self.bitmaps].into_iter();
        let equal = equal.flat_map(|all| &mut all.groups);
        let sparse = self.sparse.iter_mut().chain(&mut self.sparse_arrays);
        let large = self.largest_bitmaps.iter_mut();
        let large = large.chain(&mut self.large_arrays);
        equal
            .map(|row| (row.example, &mut row.held_by))
            .chain(sparse.map(|row| (row.example, &mut row.held_by)))
            .chain(large.map(|row| (row.object, &mut row.held_by)))
            .chain((self.crowded.iter_mut()).map(|row| (row.object, &mut row.held_by)))
            .chain((self.loaders.iter_mut()).map(|row| (row.object, &mut row.held_by)))
    }

    /// Cuts lists to `limit` entries, except those whose sums are shown.
    pub fn cut(&mut self, limit: usize) {
        for all in [&mut self.strings, &mut self.arrays, &mut self.bitmaps] {
            all.groups.truncate(limit);
        }
        self.largest_bitmaps.truncate(limit);
        self.sparse.truncate(limit);
        self.crowded.truncate(limit);
        self.sparse_arrays.truncate(limit);
        self.large_arrays.truncate(limit);
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
        heap: (!graph.heaps.is_empty()).then_some(HeapKind::App.name()),
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
    waste.bitmaps = bitmaps.equal;
    waste.largest_bitmaps = bitmaps.largest;
    if is_stripped {
        // Pixels are arrays, too.
        waste.bitmaps.groups.clear();
        waste.bitmaps.wasted_bytes = 0;
        waste.bitmaps.without_contents = waste.bitmaps.count;
    }
    waste.boxed = boxed::sum_up(boxes);
    let found = arrays::sum_up(graph, arrays, &collections.owned, limit);
    waste.large_arrays = found.large;
    (waste.large_arrays_count, waste.large_arrays_bytes) = found.large_total;
    waste.sparse_arrays = found.sparse;
    waste.sparse_array_bytes = found.sparse_bytes;
    waste.loaders = loaders::find(&scope, limit);
    waste.sum_up();
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
