//! The leaks of a heap, in groups by cause, and the objects that only seem to leak.

use super::kinds::Kind;
use super::known_leaks::Known;
use super::steps::Step;
use super::verdict::Certainty;
use heaptap_model::heap_graph::{ObjectId, ObjectIndex, Retained};

/// Leaks of one heap.
#[derive(Debug, Clone, Default)]
pub struct Leaks {
    /// Leaks by cause and class: leaks of the app first, the most severe first.
    pub groups: Vec<LeakGroup>,
    /// Objects whose lifecycle has ended and that no lasting reference holds. Unless objects are
    /// missing from the dump, they are waiting for collection.
    pub unheld: Vec<Unheld>,
    /// `Build.VERSION.SDK_INT`, or the API level in the trace, if the dump contains it.
    pub sdk: Option<i64>,
    /// `Build.MANUFACTURER`, or the manufacturer in the trace, if the dump contains it.
    pub manufacturer: Option<String>,
    /// Reasons why the rules could not judge objects, as sentences.
    pub untold: Vec<String>,
    /// Whether the rules cover a class of the dump.
    pub is_covered: bool,
}

/// Leaks with the same signature and class, as `leaks --json` has them.
#[derive(Debug, Clone, serde::Serialize)]
pub struct LeakGroup {
    /// SHA-1 of the suspected references, in hex; for a known leak, of its reference.
    pub signature: String,
    /// Kind of the leaking objects, and its description, such as `destroyed Activity`.
    pub kind: Kind,
    pub what: &'static str,
    /// Display name of the leaking class.
    pub class: String,
    /// Highest certainty among the leaks.
    pub certainty: Certainty,
    /// Known leak of Android, a manufacturer or a library, if it is one.
    pub library: Option<Known>,
    /// Number of leaks.
    pub count: u64,
    /// Number of leaks in the first of several dumps; `None` for one dump, or if the first lacks objects.
    pub count_before: Option<u64>,
    /// Total size kept by the leaks.
    #[serde(rename = "retained")]
    pub kept: Retained,
    /// Dominated bytes, if they were added up. They differ from `kept` if other objects also retain a
    /// part, or if references are followed that `kept` ignores.
    pub dominated: Retained,
    /// Root of the first leak's path, for output.
    pub root: String,
    /// Path of the first leak, from its root to the leaking object, with repetitions folded.
    pub path: Vec<Step>,
    /// Number of steps omitted from the middle of a very long path without repetitions.
    pub path_left_out: u64,
    /// Advice, as sentences.
    pub advice: String,
    /// Leaks, largest kept size first.
    pub leaks: Vec<Leak>,
}

/// Object that leaks.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Leak {
    #[serde(skip)]
    pub object: ObjectIndex,
    /// ID in the dump.
    pub id: ObjectId,
    pub certainty: Certainty,
    /// Reason why its lifecycle has ended.
    pub reason: String,
    /// Size that only leaks reach, counted for the first leak on the way.
    #[serde(rename = "retained")]
    pub kept: Retained,
    /// Other leaking objects that it keeps, by class.
    pub nested: Vec<Nested>,
}

impl Leak {
    /// Adds another leak of the same cause.
    pub(super) fn add(&mut self, other: Leak, class: String) {
        if other.certainty < self.certainty {
            (self.certainty, self.reason) = (other.certainty, other.reason);
        }
        self.kept.add(other.kept);
        let same = Nested { class, count: 1 };
        for nested in other.nested.into_iter().chain([same]) {
            match self.nested.iter_mut().find(|n| n.class == nested.class) {
                Some(known) => known.count += nested.count,
                None => self.nested.push(nested),
            }
        }
    }
}

/// Leaking objects of one class that another leak keeps.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Nested {
    pub class: String,
    pub count: u64,
}

/// Objects whose lifecycle has ended and that no lasting reference in the dump holds.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Unheld {
    pub class: String,
    #[serde(rename = "what", serialize_with = "leaked")]
    pub kind: Kind,
    pub count: u64,
    /// Whether a strong reference holds them temporarily, such as a local variable of the main
    /// thread.
    #[serde(rename = "in_current_operation")]
    pub in_passing: bool,
    /// Whether objects are missing from the dump, which might refer to these.
    #[serde(rename = "unknown")]
    pub is_unknown: bool,
}

impl Unheld {
    /// Returns what is known about them, for display after their class.
    pub fn verdict(&self) -> &'static str {
        match (self.is_unknown, self.in_passing) {
            (true, _) => {
                "unknown, because objects that refer to them might be missing from the dump"
            }
            (false, true) => {
                "referenced only temporarily, by the main thread or the garbage collector: not a \
                 leak"
            }
            (false, false) => "not referenced, or only by weak and similar references: not a leak",
        }
    }
}

fn leaked<S: serde::Serializer>(kind: &Kind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.leaked())
}
