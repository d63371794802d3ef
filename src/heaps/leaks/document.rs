//! What `leaks --json` prints. Fields are a contract: docs/leaks.md lists them.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::analyze::growth::Growth;
use crate::analyze::leaks::{Kept, LeakGroup, Leaks, Reference, Step};
use crate::analyze::waste::{Duplicates, Waste};
use crate::heap_graph::Dominators;
use crate::heaps::java::facts::HeapFacts;
use crate::heaps::java::paths::RepeatedRow;

/// The document.
#[derive(Debug, Clone, Serialize)]
pub struct LeaksDocument {
    /// The dumps, oldest first; all findings but growth are of the last.
    pub heaps: Vec<HeapFacts>,
    /// What is to be known of the series.
    pub notes: Vec<String>,
    /// Leaks; null where they were not asked for.
    pub leaks: Option<LeaksRows>,
    /// Waste; null where it was not asked for.
    pub waste: Option<WasteDocument>,
    /// Growth; null for a single dump.
    pub growth: Option<GrowthDocument>,
}

/// Leaks.
#[derive(Debug, Clone, Serialize)]
pub struct LeaksRows {
    /// How many objects leak.
    pub objects: u64,
    /// What they keep together.
    pub kept: KeptBytes,
    /// How many groups there are; `groups` may be cut.
    pub groups_total: u64,
    /// Leaks of one cause and class.
    pub groups: Vec<GroupRow>,
    /// Objects that should be gone and wait to be collected.
    pub unheld: Vec<UnheldRow>,
    /// `Build.VERSION.SDK_INT`.
    pub sdk: Option<i64>,
    /// `Build.MANUFACTURER`.
    pub manufacturer: Option<String>,
    /// What the dump can't tell.
    pub untold: Vec<String>,
}

/// Bytes that leaks keep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct KeptBytes {
    /// Of the Java heap.
    pub bytes: u64,
    /// Native.
    pub native_bytes: u64,
    /// Objects.
    pub count: u64,
}

impl KeptBytes {
    /// All bytes.
    pub fn total(&self) -> u64 {
        self.bytes.saturating_add(self.native_bytes)
    }
}

impl From<Kept> for KeptBytes {
    fn from(kept: Kept) -> KeptBytes {
        KeptBytes {
            bytes: kept.bytes,
            native_bytes: kept.native_bytes,
            count: kept.count,
        }
    }
}

/// Leaks of one cause and class.
#[derive(Debug, Clone, Serialize)]
pub struct GroupRow {
    /// SHA-1 of the suspected references.
    pub signature: String,
    /// `activity`, `fragment`, `view`, …
    pub kind: &'static str,
    /// Such as `destroyed Activity`.
    pub what: &'static str,
    /// Class of the objects that leak.
    pub class: String,
    /// `certain`, `likely`, `possible`.
    pub certainty: &'static str,
    /// Where Android itself leaks it.
    pub library: Option<LibraryRow>,
    /// How many there are; `leaks` may be cut.
    pub count: u64,
    /// How many there were in the first dump; null for a single dump.
    pub count_before: Option<u64>,
    /// What they keep: bytes that only leaks reach.
    pub kept: KeptBytes,
    /// What they dominate; differs where others hold a part too, or references are followed that
    /// `kept` does not.
    pub dominated: KeptBytes,
    /// Where the path begins.
    pub root: String,
    /// The path of the first of `leaks`.
    pub path: Vec<PathStep>,
    /// Steps left out in the middle of `path`.
    pub path_left_out: u64,
    /// What to do.
    pub advice: String,
    /// The objects.
    pub leaks: Vec<LeakRow>,
}

/// A reference by which Android leaks.
#[derive(Debug, Clone, Serialize)]
pub struct LibraryRow {
    /// Such as `android.os.Message.obj`.
    pub reference: String,
    /// First API level.
    pub from_api: i64,
    /// Last API level; null where it still stands.
    pub to_api: Option<i64>,
    /// What happens.
    pub what: &'static str,
}

/// An object that leaks.
#[derive(Debug, Clone, Serialize)]
pub struct LeakRow {
    /// Its id, in hex.
    pub id: String,
    /// `certain`, `likely`, `possible`.
    pub certainty: &'static str,
    /// Why it should be gone.
    pub reason: String,
    /// What it keeps.
    pub kept: KeptBytes,
    /// Other leaking objects that it keeps.
    pub nested: Vec<NestedRow>,
}

/// Leaking objects that a leak keeps.
#[derive(Debug, Clone, Serialize)]
pub struct NestedRow {
    /// Their class.
    pub class: String,
    /// How many.
    pub count: u64,
}

/// A step of a path.
#[derive(Debug, Clone, Serialize)]
pub struct PathStep {
    /// The object's id, in hex.
    pub id: String,
    /// Its class; of a class object the class itself.
    pub class: String,
    /// `instance`, `class`, `array`, `thread`.
    pub shape: &'static str,
    /// `leaking`, `not-leaking`, `unknown`.
    pub status: &'static str,
    /// Why; may be empty.
    pub reason: String,
    /// How it refers to the next; null for the last.
    pub reference: Option<String>,
    /// The superclass that declares that field, where one does.
    pub declared_in: Option<String>,
    /// Whether that reference is suspected.
    pub suspect: bool,
    /// The references that lead from here to the next step, where they repeat; `reference` is
    /// the first of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeated: Option<RepeatedRow>,
    /// How many steps before it are left out; absent where none are.
    #[serde(skip_serializing_if = "crate::units::is_zero")]
    pub left_out: u64,
}

/// Objects that wait to be collected.
#[derive(Debug, Clone, Serialize)]
pub struct UnheldRow {
    /// Their class.
    pub class: String,
    /// What they are.
    pub what: &'static str,
    /// How many.
    pub count: u64,
    /// Whether something strong holds them for the moment: what the main thread is doing.
    pub in_passing: bool,
}

/// The leaks of a heap, each list cut to `limit`.
pub(super) fn leaks(
    found: &Leaks,
    dominators: Option<&Dominators>,
    earlier: Option<&BTreeMap<(String, String), u64>>,
    limit: usize,
) -> LeaksRows {
    let mut kept = KeptBytes::default();
    for group in &found.groups {
        kept.bytes += group.kept.bytes;
        kept.native_bytes += group.kept.native_bytes;
        kept.count += group.kept.count;
    }
    let group = |group: &LeakGroup| {
        let key = (group.signature.clone(), group.class.clone());
        GroupRow {
            signature: group.signature.clone(),
            kind: group.kind.name(),
            what: group.what(),
            class: group.class.clone(),
            certainty: group.certainty.name(),
            library: group.library.map(|pattern| LibraryRow {
                reference: pattern.name(),
                from_api: pattern.from,
                to_api: pattern.to,
                what: pattern.what,
            }),
            count: group.leaks.len() as u64,
            count_before: earlier.map(|all| all.get(&key).copied().unwrap_or(0)),
            kept: group.kept.into(),
            dominated: dominated(group, dominators),
            root: group.root.clone(),
            path: group.path.iter().map(step).collect(),
            path_left_out: group.path_left_out,
            advice: group.advice.clone(),
            leaks: group
                .leaks
                .iter()
                .take(limit)
                .map(|leak| LeakRow {
                    id: leak.id.to_string(),
                    certainty: leak.certainty.name(),
                    reason: leak.reason.clone(),
                    kept: leak.kept.into(),
                    nested: leak
                        .nested
                        .iter()
                        .map(|(class, &count)| NestedRow {
                            class: class.clone(),
                            count,
                        })
                        .collect(),
                })
                .collect(),
        }
    };
    LeaksRows {
        objects: found.groups.iter().map(|g| g.leaks.len() as u64).sum(),
        kept,
        groups_total: found.groups.len() as u64,
        groups: found.groups.iter().take(limit).map(group).collect(),
        unheld: found
            .unheld
            .iter()
            .map(|unheld| UnheldRow {
                class: unheld.class.clone(),
                what: unheld.kind.leaked(),
                count: unheld.count,
                in_passing: unheld.in_passing,
            })
            .collect(),
        sdk: found.sdk,
        manufacturer: found.manufacturer.clone(),
        untold: found.untold.clone(),
    }
}

fn dominated(group: &LeakGroup, dominators: Option<&Dominators>) -> KeptBytes {
    let mut sum = KeptBytes::default();
    let Some(dominators) = dominators else {
        return sum;
    };
    for leak in &group.leaks {
        let retained = dominators.retained(leak.object);
        sum.bytes += retained.bytes;
        sum.native_bytes += retained.native_bytes;
        sum.count += retained.count;
    }
    sum
}

fn step(step: &Step) -> PathStep {
    PathStep {
        id: step.id.to_string(),
        class: step.class.clone(),
        shape: step.shape.name(),
        status: step.status.name(),
        reason: step.reason.clone(),
        reference: step.reference.as_ref().map(Reference::shown),
        declared_in: step.declared_in.clone(),
        suspect: step.suspect,
        repeated: step.repeated.as_ref().map(RepeatedRow::from),
        left_out: step.left_out,
    }
}

/// Waste.
#[derive(Debug, Clone, Serialize)]
pub struct WasteDocument {
    /// Bytes that could be saved at most.
    pub wasted_bytes: u64,
    /// Equal strings.
    pub strings: Duplicated,
    /// Equal arrays of primitives.
    pub arrays: Duplicated,
    /// Bitmaps; `length` of their rows is the number of pixels.
    pub bitmaps: Duplicated,
    /// The largest bitmaps.
    pub largest_bitmaps: Vec<LargeRow>,
    /// Collections by class.
    pub collections: Vec<CollectionRow>,
    /// Collections with more room than they need.
    pub room: Vec<RoomRow>,
    /// Arrays of objects that are mostly empty, in no known collection.
    pub sparse_arrays: Vec<RoomRow>,
    /// Bytes of empty slots in all of those.
    pub sparse_array_bytes: u64,
    /// Hash tables whose keys share buckets.
    pub crowded: Vec<CrowdedRow>,
    /// Numbers in boxes.
    pub boxed: Vec<BoxedRow>,
    /// The largest arrays.
    pub large_arrays: Vec<LargeRow>,
    /// How many arrays are large.
    pub large_arrays_count: u64,
    /// Their bytes.
    pub large_arrays_bytes: u64,
    /// Class loaders whose classes another has loaded as well.
    pub loaders: Vec<LoaderRow>,
    /// What the dump can't tell.
    pub untold: Vec<String>,
}

/// A class loader that repeats another.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct LoaderRow {
    pub id: String,
    pub class: String,
    pub classes: u64,
    pub repeated: u64,
    pub example: String,
    pub held_by: Option<String>,
}

/// Equal contents of one sort.
#[derive(Debug, Clone, Serialize)]
pub struct Duplicated {
    /// Objects looked at.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Different contents; null for bitmaps.
    pub distinct: Option<u64>,
    /// Bytes of all but one of each.
    pub wasted_bytes: u64,
    /// Objects without contents in this dump.
    pub without_contents: u64,
    /// The contents that waste most.
    pub groups: Vec<DuplicateRow>,
}

/// A content that there is several times.
#[derive(Debug, Clone, Serialize)]
pub struct DuplicateRow {
    /// How often.
    pub count: u64,
    /// Bytes of one.
    pub each_bytes: u64,
    /// Bytes of all but one.
    pub wasted_bytes: u64,
    /// Class of the objects.
    pub class: String,
    /// Characters, elements or pixels.
    pub length: u64,
    /// The content, cut.
    pub value: String,
    /// The beginning of its SHA-256, by which a page without contents names it; null for bitmaps.
    pub hash: Option<String>,
    /// Id of one of them, in hex.
    pub example: String,
    /// Who holds that one.
    pub held_by: Option<String>,
}

/// Collections of a class.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct CollectionRow {
    pub class: String,
    pub count: u64,
    pub empty: u64,
    pub empty_with_slots: u64,
    pub sparse: u64,
    pub elements: Option<u64>,
    pub slots: u64,
    pub wasted_bytes: u64,
}

/// Something with slots that are empty.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct RoomRow {
    pub id: String,
    pub class: String,
    pub used: u64,
    pub capacity: u64,
    pub wasted_bytes: u64,
    pub held_by: Option<String>,
}

/// A hash table whose keys share buckets.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct CrowdedRow {
    pub id: String,
    pub class: String,
    pub size: u64,
    pub used_buckets: u64,
    pub buckets: u64,
    pub collisions_percent: u64,
    pub held_by: Option<String>,
}

/// Boxes of a class.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct BoxedRow {
    pub class: String,
    pub count: u64,
    pub bytes: u64,
    pub distinct: Option<u64>,
    pub wasted_bytes: Option<u64>,
}

/// An object that is large.
#[derive(Debug, Clone, Serialize)]
pub struct LargeRow {
    /// Its id, in hex.
    pub id: String,
    /// Its class.
    pub class: String,
    /// Its bytes.
    pub bytes: u64,
    /// Elements of an array, pixels of a bitmap.
    pub length: Option<u64>,
    /// What it holds in words; of a bitmap its size.
    pub value: String,
    /// Whether its bytes are native.
    pub native: bool,
    /// Who holds it.
    pub held_by: Option<String>,
}

/// Waste as the document has it.
pub(super) fn waste(found: Waste) -> WasteDocument {
    let wasted_bytes = found.total_bytes();
    let bitmaps = &found.bitmaps;
    let pixels = |width: i64, height: i64| u64::try_from(width.saturating_mul(height)).ok();
    WasteDocument {
        wasted_bytes,
        bitmaps: Duplicated {
            count: bitmaps.count,
            bytes: bitmaps.pixel_bytes,
            distinct: None,
            wasted_bytes: bitmaps.wasted_bytes,
            without_contents: bitmaps.without_pixels,
            groups: bitmaps
                .groups
                .iter()
                .map(|group| DuplicateRow {
                    count: group.count,
                    each_bytes: group.each_bytes,
                    wasted_bytes: group.wasted_bytes,
                    class: "android.graphics.Bitmap".to_owned(),
                    length: pixels(group.width, group.height).unwrap_or(0),
                    value: format!("{} × {}", group.width, group.height),
                    hash: None,
                    example: group.example_id.to_string(),
                    held_by: group.held_by.clone(),
                })
                .collect(),
        },
        largest_bitmaps: bitmaps
            .largest
            .iter()
            .map(|row| LargeRow {
                id: row.id.to_string(),
                class: "android.graphics.Bitmap".to_owned(),
                bytes: row.bytes,
                length: pixels(row.width, row.height).filter(|&n| n > 0),
                value: match (row.width, row.estimated) {
                    (0, _) => String::new(),
                    (_, false) => format!("{} × {}", row.width, row.height),
                    (_, true) => format!("{} × {} (bytes estimated)", row.width, row.height),
                },
                native: row.native,
                held_by: row.held_by.clone(),
            })
            .collect(),
        strings: duplicated(found.strings),
        arrays: duplicated(found.arrays),
        collections: found
            .collections
            .into_iter()
            .map(|kind| CollectionRow {
                class: kind.class,
                count: kind.count,
                empty: kind.empty,
                empty_with_slots: kind.empty_with_slots,
                sparse: kind.sparse,
                elements: kind.elements,
                slots: kind.slots,
                wasted_bytes: kind.wasted_bytes,
            })
            .collect(),
        room: found
            .sparse
            .into_iter()
            .map(|row| RoomRow {
                id: row.id.to_string(),
                class: row.class,
                used: row.size,
                capacity: row.capacity,
                wasted_bytes: row.wasted_bytes,
                held_by: row.held_by,
            })
            .collect(),
        sparse_arrays: found
            .sparse_arrays
            .into_iter()
            .map(|row| RoomRow {
                id: row.id.to_string(),
                class: row.class,
                used: row.used.into(),
                capacity: row.length.into(),
                wasted_bytes: row.wasted_bytes,
                held_by: row.held_by,
            })
            .collect(),
        sparse_array_bytes: found.sparse_array_bytes,
        crowded: found
            .crowded
            .into_iter()
            .map(|row| CrowdedRow {
                id: row.id.to_string(),
                collisions_percent: row.collisions_percent(),
                class: row.class,
                size: row.size,
                used_buckets: row.used_buckets,
                buckets: row.buckets,
                held_by: row.held_by,
            })
            .collect(),
        boxed: found
            .boxed
            .into_iter()
            .map(|row| BoxedRow {
                class: row.class,
                count: row.count,
                bytes: row.bytes,
                distinct: row.distinct,
                wasted_bytes: row.wasted_bytes,
            })
            .collect(),
        large_arrays: found
            .large
            .into_iter()
            .map(|row| LargeRow {
                id: row.id.to_string(),
                class: row.class,
                bytes: row.bytes,
                length: row.length.map(u64::from),
                value: row.value,
                native: false,
                held_by: row.held_by,
            })
            .collect(),
        large_arrays_count: found.large_total.0,
        large_arrays_bytes: found.large_total.1,
        loaders: found
            .loaders
            .into_iter()
            .map(|row| LoaderRow {
                id: row.id.to_string(),
                class: row.class,
                classes: row.classes,
                repeated: row.repeated,
                example: row.example,
                held_by: row.held_by,
            })
            .collect(),
        untold: found.untold,
    }
}

fn duplicated(found: Duplicates) -> Duplicated {
    Duplicated {
        count: found.count,
        bytes: found.bytes,
        distinct: Some(found.distinct),
        wasted_bytes: found.wasted_bytes,
        without_contents: found.without_contents,
        groups: found
            .groups
            .into_iter()
            .map(|group| DuplicateRow {
                count: group.count,
                each_bytes: group.each_bytes,
                wasted_bytes: group.wasted_bytes,
                class: group.class,
                length: group.length.into(),
                value: group.value,
                hash: Some(group.hash),
                example: group.example_id.to_string(),
                held_by: group.held_by,
            })
            .collect(),
    }
}

/// What grew from the first dump to the last.
#[derive(Debug, Clone, Serialize)]
pub struct GrowthDocument {
    /// How many dumps were compared.
    pub dumps: usize,
    /// Classes whose objects became more from each dump to the next.
    pub classes: Vec<GrowthRow>,
    /// Paths on which objects became more from each dump to the next.
    pub paths: Vec<GrowthRow>,
}

/// Something that grew.
#[derive(Debug, Clone, Serialize)]
pub struct GrowthRow {
    /// The class.
    pub class: String,
    /// References from a root to it, each with its class before it; empty for a class.
    pub path: Vec<String>,
    /// Objects in each dump.
    pub counts: Vec<u64>,
    /// Bytes in each dump: their own for a class, of all that the path leads to for a path.
    pub bytes: Vec<u64>,
}

impl GrowthRow {
    /// How many more objects.
    pub fn more(&self) -> i64 {
        difference(&self.counts)
    }

    /// How many more bytes.
    pub fn more_bytes(&self) -> i64 {
        difference(&self.bytes)
    }
}

fn difference(all: &[u64]) -> i64 {
    match (all.first(), all.last()) {
        (Some(&first), Some(&last)) => last as i64 - first as i64,
        _ => 0,
    }
}

/// Growth as the document has it, each list cut to `limit`.
pub(super) fn growth(found: Growth, limit: usize) -> GrowthDocument {
    let row = |row: crate::analyze::growth::Grown| GrowthRow {
        class: row.class,
        path: row.path,
        counts: row.counts,
        bytes: row.bytes,
    };
    GrowthDocument {
        dumps: found.dumps,
        classes: found.classes.into_iter().take(limit).map(row).collect(),
        paths: found.paths.into_iter().take(limit).map(row).collect(),
    }
}
