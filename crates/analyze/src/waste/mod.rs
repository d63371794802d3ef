//! Waste: memory that holds what is already there, or nothing. Equal strings, arrays and
//! bitmaps, collections with more room than they need, numbers in boxes, large arrays. Reads
//! contents where the dump has them; of a heap graph only what references tell.
//!
//! Only objects that roots reach and that the app itself allocated count: what lies in the
//! zygote's and the image's heaps is shared by all apps.
//!
//! | file | owns |
//! |---|---|
//! | `parts` | the objects to look at, divided among threads |
//! | `equal` | sets of equal contents: hashed, then compared byte by byte |
//! | `duplicates` | equal strings and equal arrays |
//! | `bitmaps` | bitmaps, and those with equal pixels |
//! | `collections`, `shapes` | how full collections are, and where each sort keeps its elements |
//! | `boxed` | numbers in boxes |
//! | `arrays` | large arrays, and arrays that are mostly empty |
//! | `loaders` | class loaders that repeat each other |
//! | `holders` | who holds an object |

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

#[cfg(test)]
mod tests;

pub use arrays::{LargeArray, SparseArray};
pub use bitmaps::{BitmapGroup, BitmapRow, Bitmaps};
pub use boxed::Boxed;
pub use collections::{Collection, CollectionKind, Crowded};
pub use duplicates::{DuplicateGroup, Duplicates};
pub use loaders::RepeatedLoader;

use heaptap_model::heap_graph::{HeapGraph, Reachable};
use holders::Holders;
use parts::Scope;

/// What a heap wastes. Lists are cut to the limit that was asked for, sums are not.
#[derive(Debug, Clone, Default)]
pub struct Waste {
    /// Equal strings.
    pub strings: Duplicates,
    /// Equal arrays of primitives, without those behind strings and bitmaps.
    pub arrays: Duplicates,
    /// Bitmaps.
    pub bitmaps: Bitmaps,
    /// Collections by class, what wastes most first.
    pub collections: Vec<CollectionKind>,
    /// The collections that waste most.
    pub sparse: Vec<Collection>,
    /// Hash tables whose keys crowd in few buckets.
    pub crowded: Vec<Crowded>,
    /// Arrays of objects in no known collection that are mostly empty.
    pub sparse_arrays: Vec<SparseArray>,
    /// Bytes of empty slots in all of those.
    pub sparse_array_bytes: u64,
    /// Numbers in boxes, by class.
    pub boxed: Vec<Boxed>,
    /// Arrays of [`LARGE_ARRAY_BYTES`] and more.
    pub large: Vec<LargeArray>,
    /// How many those are, and their bytes.
    pub large_total: (u64, u64),
    /// Class loaders whose classes another has loaded as well.
    pub loaders: Vec<RepeatedLoader>,
    /// What this dump can't tell, as sentences.
    pub untold: Vec<String>,
}

/// From which size on an array is listed for its size alone.
pub const LARGE_ARRAY_BYTES: u64 = 256 << 10;

impl Waste {
    /// Bytes that could be saved at most, without what is only large.
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
    /// Keeps in lists what is of the classes that `wanted` takes; sums stay.
    pub fn keep(&mut self, wanted: impl Fn(&str) -> bool) {
        let bitmap = wanted("android.graphics.Bitmap");
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

    /// Cuts lists to `limit` entries.
    pub fn cut(&mut self, limit: usize) {
        self.strings.groups.truncate(limit);
        self.arrays.groups.truncate(limit);
        self.bitmaps.groups.truncate(limit);
        self.bitmaps.largest.truncate(limit);
        self.collections.truncate(limit);
        self.sparse.truncate(limit);
        self.crowded.truncate(limit);
        self.sparse_arrays.truncate(limit);
        self.boxed.truncate(limit);
        self.large.truncate(limit);
        self.loaders.truncate(limit);
    }
}

/// Looks for waste among the objects in `reachable`; lists have at most `limit` entries.
///
/// Reads each string and array of the app's heap once, by as many threads as the host has
/// processors. Memory grows with the number of different contents, not with the file.
pub fn find(graph: &HeapGraph, reachable: &Reachable, limit: usize) -> Waste {
    let scope = Scope::new(graph, reachable);
    let mut waste = Waste::default();
    let found = collections::find(&scope, limit);
    waste.collections = found.kinds;
    waste.sparse = found.sparse;
    waste.crowded = found.crowded;
    let bitmaps = bitmaps::find(&scope, limit);
    let (strings, arrays) = duplicates::find(&scope, &bitmaps.buffers, limit);
    waste.strings = strings;
    waste.arrays = arrays;
    waste.bitmaps = bitmaps.bitmaps;
    waste.boxed = boxed::find(&scope);
    let found = arrays::find(&scope, &found.owned, limit);
    waste.large = found.large;
    waste.large_total = found.large_total;
    waste.sparse_arrays = found.sparse;
    waste.sparse_array_bytes = found.sparse_bytes;
    waste.loaders = loaders::find(&scope, limit);
    if !graph.contents().has_values() {
        waste.untold.push(
            "a heap graph holds neither text nor numbers: equal strings, arrays and bitmaps can't \
             be found in it, and how full a collection is only by its references \
             (dump --hprof has them)"
                .to_owned(),
        );
    } else if waste.strings.without_contents + waste.arrays.without_contents > 0 {
        waste.untold.push(format!(
            "{} strings and {} arrays have no contents in this dump",
            waste.strings.without_contents, waste.arrays.without_contents
        ));
    }
    name_holders(graph, reachable, &mut waste);
    waste
}

fn name_holders(graph: &HeapGraph, reachable: &Reachable, waste: &mut Waste) {
    let mut holders = Holders::default();
    let groups = waste.strings.groups.iter().chain(&waste.arrays.groups);
    for group in groups {
        holders.want(group.example);
    }
    for row in waste
        .bitmaps
        .groups
        .iter()
        .map(|g| g.example)
        .chain(waste.bitmaps.largest.iter().map(|b| b.object))
        .chain(waste.sparse.iter().map(|c| c.object))
        .chain(waste.crowded.iter().map(|c| c.object))
        .chain(waste.sparse_arrays.iter().map(|a| a.object))
        .chain(waste.large.iter().map(|a| a.object))
        .chain(waste.loaders.iter().map(|l| l.object))
    {
        holders.want(row);
    }
    let holders = holders.find(graph, reachable);
    let groups = waste
        .strings
        .groups
        .iter_mut()
        .chain(&mut waste.arrays.groups);
    for group in groups {
        group.held_by = holders.name(group.example);
    }
    for group in &mut waste.bitmaps.groups {
        group.held_by = holders.name(group.example);
    }
    for row in &mut waste.bitmaps.largest {
        row.held_by = holders.name(row.object);
    }
    for row in &mut waste.sparse {
        row.held_by = holders.name(row.object);
    }
    for row in &mut waste.crowded {
        row.held_by = holders.name(row.object);
    }
    for row in &mut waste.sparse_arrays {
        row.held_by = holders.name(row.object);
    }
    for row in &mut waste.large {
        row.held_by = holders.name(row.object);
    }
    for row in &mut waste.loaders {
        row.held_by = holders.name(row.object);
    }
}
