//! What is missing in a symbol file or wrong with a part of it, for people. The rest is used.

use super::facts::{DebugLink, Supplement};
use heaptap_model::error::catch_panic;
use std::fmt;
use std::sync::Mutex;

/// A part of a symbol file that could not be used, and why.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Note {
    /// A section, or what follows from it, contradicts itself.
    Damaged {
        /// Such as `.debug_info`.
        part: String,
        /// What is wrong.
        why: String,
    },
    /// The debug file that it names was not found.
    NeedsDebugFile {
        /// Its name.
        name: String,
    },
    /// The dwz file that it names was not found.
    NeedsSupplement {
        /// Its path.
        path: String,
        /// Its build ID, in hex.
        build_id: String,
    },
    /// A file of split DWARF was not found.
    NeedsSplit {
        /// Its path as the compiler was given it.
        name: String,
    },
    /// Looking further costs more than a file of its size can be worth.
    TooMuchWork,
}

impl Note {
    pub(super) fn damaged(part: &str, why: impl fmt::Display) -> Note {
        Note::Damaged {
            part: part.to_owned(),
            why: why.to_string(),
        }
    }

    pub(super) fn needs_debug_file(link: &DebugLink) -> Note {
        let name = link.name.clone();
        Note::NeedsDebugFile { name }
    }

    pub(super) fn needs_supplement(supplement: &Supplement) -> Note {
        Note::NeedsSupplement {
            path: supplement.path.clone(),
            build_id: supplement.build_id.to_string(),
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Damaged { part, why } => write!(f, "{part} is damaged: {why}"),
            Note::NeedsDebugFile { name } => {
                write!(
                    f,
                    "its functions and lines are in {name}, which was not found"
                )
            }
            Note::NeedsSupplement { path, build_id } => write!(
                f,
                "part of its debug information is in {path} (build ID {build_id}), which was \
                 not found"
            ),
            Note::NeedsSplit { name } => write!(
                f,
                "inlined calls of a unit are in {name}, which was not found (nor a .dwp file)"
            ),
            Note::TooMuchWork => f.write_str(
                "its debug information repeats itself without measure; what was found by then \
                 is used",
            ),
        }
    }
}

/// Notes as they come in, from any thread; each once, and not without end.
#[derive(Debug, Default)]
pub(super) struct Notes(Mutex<Vec<Note>>);

impl Notes {
    /// A file with more to say than this is not read by anybody.
    const MOST: usize = 20;

    pub fn add(&self, note: Note) {
        let mut notes = self
            .0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if notes.len() < Self::MOST && !notes.contains(&note) {
            notes.push(note);
        }
    }

    /// Runs `work` on a part of a file; a panic in it is a note, and the rest of the file is
    /// read. For each thread to do by itself.
    pub fn catch_panic<T>(&self, part: &str, work: impl FnOnce() -> T) -> Option<T> {
        let result = catch_panic(work);
        result
            .map_err(|panic| {
                self.add(Note::damaged(
                    part,
                    format_args!("reading it failed: {panic}"),
                ))
            })
            .ok()
    }

    pub fn all(&self) -> Vec<Note> {
        let notes = self
            .0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut notes = notes.clone();
        // Threads come in any order.
        notes.sort();
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_model::error::is_contained;

    #[test]
    fn a_panic_of_a_thread_is_a_note() {
        let notes = Notes::default();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(notes.catch_panic(".debug_info", is_contained), Some(true));
                assert_eq!(
                    notes.catch_panic(".debug_line", || panic!("of {}", 1)),
                    None::<()>
                );
            });
        });
        let shown: Vec<String> = notes.all().iter().map(ToString::to_string).collect();
        assert_eq!(shown, [".debug_line is damaged: reading it failed: of 1"]);
    }
}
