//! Output of `leaks --json`. Fields are a contract: docs/reference/formats.md lists them.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::analyze::bitmaps::BITMAP;
use crate::analyze::growth::Growth;
use crate::analyze::leaks::{Known, Leak, LeakGroup, Leaks, Step, Unheld, known_title};
use crate::analyze::waste::{
    Boxed, CollectionKind, Duplicates, RepeatedLoader, SparseGroup, Waste,
};
use crate::heap_graph::{Dominators, HeapKind, Retained};
use crate::heaps::java::facts::HeapFacts;

#[derive(Debug, Clone, Serialize)]
pub struct LeaksDocument {
    /// Dumps, oldest first; all findings except growth are about the last one.
    pub heaps: Vec<HeapFacts>,
    /// Notes about the series.
    pub notes: Vec<String>,
    /// Leaks; null if not requested.
    pub leaks: Option<LeaksRows>,
    /// Waste; null if not requested.
    pub waste: Option<WasteDocument>,
    /// Growth; null unless two dumps are complete.
    pub growth: Option<Growth>,
}

#[derive(Debug, Clone, Serialize)]
pub struct LeaksRows {
    /// Number of leaking objects.
    pub objects: u64,
    /// Their retained bytes.
    #[serde(rename = "retained")]
    pub kept: Retained,
    /// Number of groups; `groups` can be truncated.
    pub groups_total: u64,
    /// Number of those that are known leaks, which are not the app's; they come last.
    pub groups_known: u64,
    /// Number of groups that the filter hides.
    pub groups_hidden: u64,
    /// Leaks by cause and class.
    pub groups: Vec<GroupRow>,
    /// Objects whose lifecycle has ended and that no lasting reference in the dump holds.
    #[serde(rename = "unreachable")]
    pub unheld: Vec<Unheld>,
    /// `Build.VERSION.SDK_INT`.
    pub sdk: Option<i64>,
    /// `Build.MANUFACTURER`.
    pub manufacturer: Option<String>,
    /// Questions that the dump cannot answer.
    #[serde(rename = "not_analyzed")]
    pub untold: Vec<String>,
}

/// Leaks of one cause and class.
#[derive(Debug, Clone, Serialize)]
pub struct GroupRow {
    /// SHA-1 of the suspected references.
    pub signature: String,
    /// `activity`, `fragment`, `view`, …
    pub kind: &'static str,
    /// Kind of leak, such as `destroyed Activity`.
    pub what: &'static str,
    /// Class of the objects that leak.
    pub class: String,
    /// `confirmed`, `likely`, `possible`.
    pub certainty: &'static str,
    /// Known leak of Android, a manufacturer or a library, if it is one.
    pub library: Option<LibraryRow>,
    /// Number of leaks; `leaks` can be truncated.
    pub count: u64,
    /// Number of leaks in the first dump; null for a single dump, or if the first lacks objects.
    pub count_before: Option<u64>,
    /// Bytes that only leaks reach.
    #[serde(rename = "retained")]
    pub kept: Retained,
    /// Dominated bytes; differ from `kept` if other objects also retain a part, or if references
    /// are followed that `kept` ignores.
    pub dominated: Retained,
    /// Start of the path.
    pub root: String,
    /// Path to the first of `leaks`.
    pub path: Vec<Step>,
    /// Steps left out in the middle of `path`.
    pub path_left_out: u64,
    /// Next step.
    pub advice: String,
    pub leaks: Vec<Leak>,
}

/// A reference that leaks in Android, in a manufacturer's change to it, or in a library.
#[derive(Debug, Clone, Serialize)]
pub struct LibraryRow {
    /// Reference, such as `android.os.Message.obj`; for a JNI global root, its class.
    pub reference: String,
    /// Owner: `Android 12`, `samsung's Android`, `Glide (before 4.13.0)`.
    pub whose: String,
    /// Affected versions of a library, if they are known.
    pub versions: Option<&'static str>,
    /// First API level.
    pub from_api: i64,
    /// Last affected API level; null if not fixed.
    pub to_api: Option<i64>,
    /// Description.
    pub what: &'static str,
    /// What an app can do; null if nothing.
    pub workaround: Option<&'static str>,
    /// Conditions that the dump does not tell, so that the reference alone decides: `release`,
    /// `build`, `manufacturer`, `version`.
    pub unknown: Vec<&'static str>,
}

impl LibraryRow {
    fn of(known: &Known) -> LibraryRow {
        let pattern = known.pattern;
        let (from_api, to_api) = pattern.api();
        LibraryRow {
            reference: pattern.name(),
            whose: known.whose.clone(),
            versions: pattern.versions(),
            from_api,
            to_api,
            what: pattern.what,
            workaround: pattern.remedy,
            unknown: known.unknown.clone(),
        }
    }

    /// Returns a title such as `known leak of Android 12, not yours`.
    pub fn title(&self) -> String {
        known_title(&self.whose)
    }
}

/// Returns the leaks of a heap, each list truncated to `limit`.
pub(crate) fn leaks(
    found: &Leaks,
    hidden: usize,
    dominators: Option<&Dominators>,
    earlier: Option<&BTreeMap<(String, String), u64>>,
    limit: usize,
) -> LeaksRows {
    let mut kept = Retained::default();
    for group in &found.groups {
        kept.add(group.kept);
    }
    let group = |group: &LeakGroup| {
        let key = (group.signature.clone(), group.class.clone());
        GroupRow {
            signature: group.signature.clone(),
            kind: group.kind.name(),
            what: group.what(),
            class: group.class.clone(),
            certainty: group.certainty.name(),
            library: group.library.as_ref().map(LibraryRow::of),
            count: group.leaks.len() as u64,
            count_before: earlier.map(|all| all.get(&key).copied().unwrap_or(0)),
            kept: group.kept,
            dominated: dominated(group, dominators),
            root: group.root.clone(),
            path: group.path.clone(),
            path_left_out: group.path_left_out,
            advice: group.advice.clone(),
            leaks: group.leaks.iter().take(limit).cloned().collect(),
        }
    };
    LeaksRows {
        objects: found.groups.iter().map(|g| g.leaks.len() as u64).sum(),
        kept,
        groups_total: found.groups.len() as u64,
        groups_known: found.groups.iter().filter(|g| g.library.is_some()).count() as u64,
        groups_hidden: hidden as u64,
        groups: found.groups.iter().take(limit).map(group).collect(),
        unheld: found.unheld.clone(),
        sdk: found.sdk,
        manufacturer: found.manufacturer.clone(),
        untold: found.untold.clone(),
    }
}

fn dominated(group: &LeakGroup, dominators: Option<&Dominators>) -> Retained {
    let mut sum = Retained::default();
    let Some(dominators) = dominators else {
        return sum;
    };
    for leak in &group.leaks {
        sum.add(dominators.retained(leak.object));
    }
    sum
}

#[derive(Debug, Clone, Serialize)]
pub struct WasteDocument {
    /// `app` if the dump has several heaps: the others are shared by all apps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heap: Option<&'static str>,
    /// Maximum savings in bytes.
    pub wasted_bytes: u64,
    /// Equal strings.
    pub strings: Duplicated,
    /// Equal arrays of primitives.
    pub arrays: Duplicated,
    /// Bitmaps; `length` of their rows is the number of pixels.
    pub bitmaps: Duplicated,
    pub largest_bitmaps: Vec<LargeRow>,
    /// Collections by class.
    pub collections: Vec<CollectionKind>,
    /// Collections with excess capacity.
    #[serde(rename = "oversized_collections")]
    pub room: Vec<SparseGroup>,
    /// Mostly empty arrays of objects outside of known collections.
    pub sparse_arrays: Vec<SparseGroup>,
    /// Bytes of empty slots in all of those.
    pub sparse_array_bytes: u64,
    /// Hash tables with bucket collisions.
    #[serde(rename = "hash_collisions")]
    pub crowded: Vec<CrowdedRow>,
    /// Boxed numbers.
    pub boxed: Vec<Boxed>,
    /// Largest arrays.
    pub large_arrays: Vec<LargeRow>,
    /// Number of large arrays.
    pub large_arrays_count: u64,
    /// Their bytes.
    pub large_arrays_bytes: u64,
    /// Class loaders with classes that another one also loaded.
    pub loaders: Vec<RepeatedLoader>,
    /// Questions that the dump cannot answer.
    #[serde(rename = "not_analyzed")]
    pub untold: Vec<String>,
}

/// Duplicates of one kind.
#[derive(Debug, Clone, Serialize)]
pub struct Duplicated {
    /// Number of examined objects.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Number of distinct contents; null for bitmaps.
    pub distinct: Option<u64>,
    /// Bytes of all copies except one.
    pub wasted_bytes: u64,
    /// Objects without contents in this dump.
    pub without_contents: u64,
    /// Contents with the most wasted bytes.
    pub groups: Vec<DuplicateRow>,
}

/// A duplicated content.
#[derive(Debug, Clone, Serialize)]
pub struct DuplicateRow {
    /// Number of copies.
    pub count: u64,
    /// Bytes of one copy.
    pub each_bytes: u64,
    /// Bytes of all copies except one.
    pub wasted_bytes: u64,
    /// Class of the objects.
    pub class: String,
    /// Characters, elements or pixels.
    pub length: u64,
    /// The content, truncated; empty without contents.
    pub value: String,
    /// Prefix of its SHA-256; null for bitmaps and without contents, because short ones can be guessed.
    pub hash: Option<String>,
    /// ID of one copy, hexadecimal.
    pub example: String,
    /// Referrer of that copy.
    pub held_by: Option<String>,
}

/// A hash table with bucket collisions.
#[derive(Debug, Clone, Serialize)]
pub struct CrowdedRow {
    pub id: String,
    pub class: String,
    pub size: u64,
    pub used_buckets: u64,
    pub buckets: u64,
    pub collisions_percent: u64,
    pub held_by: Option<String>,
}

/// A large object.
#[derive(Debug, Clone, Serialize)]
pub struct LargeRow {
    /// Object ID, hexadecimal.
    pub id: String,
    pub class: String,
    pub bytes: u64,
    /// Elements of an array, pixels of a bitmap.
    pub length: Option<u64>,
    /// Description of its contents; the dimensions of a bitmap.
    pub value: String,
    /// True if its bytes are native.
    pub native: bool,
    /// Its referrer.
    pub held_by: Option<String>,
}

/// Converts the waste for the document; without `texts`, no contents of the dump are in it.
pub(crate) fn waste(found: Waste, texts: bool) -> WasteDocument {
    let contents = |text: String| match texts {
        true => text,
        false => String::new(),
    };
    let wasted_bytes = found.total_bytes();
    let bitmaps = &found.bitmaps;
    let pixels = |width: u32, height: u32| u64::from(width) * u64::from(height);
    WasteDocument {
        heap: found.is_of_app_heap.then_some(HeapKind::App.name()),
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
                    class: BITMAP.to_owned(),
                    length: pixels(group.width, group.height),
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
                class: BITMAP.to_owned(),
                bytes: row.bytes,
                length: Some(pixels(row.width, row.height)).filter(|&n| n > 0),
                value: match (row.width, row.estimated) {
                    (0, _) => String::new(),
                    (_, false) => format!("{} × {}", row.width, row.height),
                    (_, true) => format!("{} × {} (bytes estimated)", row.width, row.height),
                },
                native: row.native,
                held_by: row.held_by.clone(),
            })
            .collect(),
        strings: duplicated(found.strings, texts),
        arrays: duplicated(found.arrays, texts),
        collections: found.collections,
        room: found.sparse,
        sparse_arrays: found.sparse_arrays,
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
        boxed: found.boxed,
        large_arrays: found
            .large
            .into_iter()
            .map(|row| LargeRow {
                id: row.id.to_string(),
                class: row.class,
                bytes: row.bytes,
                length: row.length.map(u64::from),
                value: contents(row.value),
                native: false,
                held_by: row.held_by,
            })
            .collect(),
        large_arrays_count: found.large_total.0,
        large_arrays_bytes: found.large_total.1,
        loaders: found.loaders,
        untold: found.untold,
    }
}

fn duplicated(found: Duplicates, texts: bool) -> Duplicated {
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
                value: if texts { group.value } else { String::new() },
                hash: texts.then_some(group.hash),
                example: group.example_id.to_string(),
                held_by: group.held_by,
            })
            .collect(),
    }
}
