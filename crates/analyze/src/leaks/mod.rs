//! Leaks: objects that Android is done with and that something still holds, each with the path
//! that holds it. Judges by names of classes and fields (deobfuscated ones), on what the dump
//! says; what it does not say stays unknown.
//!
//! | file | owns |
//! |---|---|
//! | `kinds` | which of Android's classes an object is of |
//! | `live` | what the platform itself holds: living activities and services, the main thread |
//! | `rules` | what the fields of an object say of its life |
//! | `verdict` | leaking, in use or unknown, how sure, and why |
//! | `walk` | the best strong path to each |
//! | `library` | references that the platform itself leaks through |
//! | `steps` | paths by the names of fields, without the insides of collections |
//! | `signature` | statuses along a path, suspected references, one signature a cause |
//! | `retained` | what leaks keep |
//! | `advice` | what a developer can do about it |
//! | `find` | all of it, in order |

mod advice;
mod find;
mod kinds;
mod library;
mod live;
mod retained;
mod rules;
mod signature;
mod steps;
mod verdict;
mod walk;

#[cfg(test)]
pub(super) mod tests;

pub use find::{find, find_without_texts};
pub use kinds::Kind;
pub use library::Pattern;
pub use retained::Kept;
pub use steps::Reference;
pub use verdict::{Certainty, Status};

use rules::short;

use std::collections::BTreeMap;

use super::repetition::Repeated;
use heaptap_model::heap_graph::{ObjectId, ObjectIndex};

/// The leaks of one heap.
#[derive(Debug, Clone, Default)]
pub struct Leaks {
    /// Leaks of one cause and class, those of the app first, the gravest first.
    pub groups: Vec<LeakGroup>,
    /// Objects that should be gone and that no lasting reference holds: they wait to be
    /// collected.
    pub unheld: Vec<Unheld>,
    /// `Build.VERSION.SDK_INT`, where the dump has it.
    pub sdk: Option<i64>,
    /// `Build.MANUFACTURER`, where the dump has it.
    pub manufacturer: Option<String>,
    /// What the rules could not find out, as sentences.
    pub untold: Vec<String>,
}

impl Leaks {
    /// Whether an object leaks for certain or likely.
    pub fn found(&self) -> bool {
        self.groups
            .iter()
            .any(|group| group.certainty != Certainty::Possible)
    }
}

/// Leaks of one signature and class.
#[derive(Debug, Clone)]
pub struct LeakGroup {
    /// SHA-1 of the suspected references, in hex; of the pattern for a leak of the platform.
    pub signature: String,
    /// What leaks.
    pub kind: Kind,
    /// Its class, by its shown name.
    pub class: String,
    /// How sure it is: of the surest of them.
    pub certainty: Certainty,
    /// Where the platform leaks it: the reference, and what happens.
    pub library: Option<Pattern>,
    /// All of them, the one that keeps most first.
    pub leaks: Vec<Leak>,
    /// What they keep together.
    pub kept: Kept,
    /// Where the path of the first begins, for people.
    pub root: String,
    /// The path of the first: its root first, the leaking object last. What repeats is folded.
    pub path: Vec<Step>,
    /// Steps left out in the middle of the path, where it is very long and does not repeat.
    pub path_left_out: u64,
    /// What to do, as sentences.
    pub advice: String,
}

impl LeakGroup {
    /// What it is, such as `destroyed Activity`.
    pub fn what(&self) -> &'static str {
        self.kind.leaked()
    }
}

/// An object that leaks.
#[derive(Debug, Clone)]
pub struct Leak {
    /// The object.
    pub object: ObjectIndex,
    /// Its id in the dump.
    pub id: ObjectId,
    /// How sure it is.
    pub certainty: Certainty,
    /// Why it should be gone.
    pub reason: String,
    /// What it keeps: bytes that nothing but leaks reaches, counted for the first of them.
    pub kept: Kept,
    /// Other leaking objects that it keeps, by class.
    pub nested: BTreeMap<String, u64>,
}

/// What an object of a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Shape {
    /// An instance.
    Instance,
    /// A class, with its statics.
    Class,
    /// An array.
    Array,
    /// A thread.
    Thread,
}

impl Shape {
    /// For people and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Shape::Instance => "instance",
            Shape::Class => "class",
            Shape::Array => "array",
            Shape::Thread => "thread",
        }
    }
}

/// An object of a path.
#[derive(Debug, Clone)]
pub struct Step {
    /// Its id in the dump.
    pub id: ObjectId,
    /// The name of its class; of a class object, of the class that it stands for.
    pub class: String,
    /// What it is.
    pub shape: Shape,
    /// Whether it should be there.
    pub status: Status,
    /// Why, or what else is known of it; may be empty.
    pub reason: String,
    /// How it refers to the next; `None` for the last.
    pub reference: Option<Reference>,
    /// The superclass that declares that field, where one does.
    pub declared_in: Option<String>,
    /// Whether that reference is suspected.
    pub suspect: bool,
    /// The references that lead from here to the next step, where they repeat; `reference` is
    /// the first of them.
    pub repeated: Option<Repeated<String>>,
    /// How many steps before it are left out, of a way too long to be shown.
    pub left_out: u64,
}

impl Step {
    /// Its reference with the class that has it, the same for any element: `Event.next`.
    fn generic(&self) -> Option<String> {
        let owner = short(self.declared_in.as_ref().unwrap_or(&self.class));
        Some(match self.reference.as_ref()? {
            reference @ (Reference::Field(_) | Reference::Static(_) | Reference::Unnamed) => {
                format!("{owner}.{}", reference.generic())
            }
            reference => format!("{owner}{}", reference.generic()),
        })
    }
}

/// Objects that should be gone, and soon will be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unheld {
    /// Their class.
    pub class: String,
    /// What they are.
    pub kind: Kind,
    /// How many.
    pub count: u64,
    /// Whether something strong holds them for the moment, such as a local variable of the main
    /// thread; nothing does otherwise.
    pub in_passing: bool,
}
