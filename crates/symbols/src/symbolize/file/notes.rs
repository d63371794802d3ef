//! Problems in a part of a symbol file, as messages. The rest of the file is used.

use super::facts::{DebugLink, Supplement};
use heaptap_base::error::catch_panic;
use heaptap_base::parallel::lock;
use std::fmt;
use std::sync::Mutex;

/// Part of a symbol file that could not be used, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Note {
    /// A section, or data derived from it, is inconsistent.
    #[error("{part} is damaged: {why}")]
    Damaged {
        /// Section, such as `.debug_info`.
        part: String,
        /// Problem.
        why: String,
    },
    /// Its debug file was not found.
    #[error("functions and lines are in {name}, which was not found")]
    NeedsDebugFile { name: String },
    /// Its dwz file was not found.
    #[error(
        "part of the debug information is in {path} (build ID {build_id}), which was not found"
    )]
    NeedsSupplement {
        path: String,
        /// Build ID in hex.
        build_id: String,
    },
    /// A file of split DWARF was not found.
    #[error("inlined calls of a unit are in {name}; neither it nor a .dwp file was found")]
    NeedsSplit {
        /// Path as passed to the compiler.
        name: String,
    },
    /// The work limit for a file of its size was reached.
    #[error(
        "the debug information exceeds the expansion limit; results found before that are used"
    )]
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

/// Notes from all threads, without duplicates and up to a limit.
#[derive(Debug, Default)]
pub(super) struct Notes(Mutex<Vec<Note>>);

impl Notes {
    /// Maximum number of notes, because users do not read more.
    const MAX_COUNT: usize = 20;

    pub fn add(&self, note: Note) {
        let mut notes = lock(&self.0);
        if notes.len() < Self::MAX_COUNT && !notes.contains(&note) {
            notes.push(note);
        }
    }

    /// Runs `work` on a part of a file; a panic becomes a note, and the rest of the file is read.
    /// Each thread calls this itself.
    pub fn catch_panic<T>(&self, part: &str, work: impl FnOnce() -> T) -> Option<T> {
        let result = catch_panic(work);
        result
            .map_err(|panic| self.add(Note::damaged(part, format_args!("reading failed: {panic}"))))
            .ok()
    }

    pub fn all(&self) -> Vec<Note> {
        let notes = lock(&self.0);
        let mut notes = notes.clone();
        // The order of threads varies.
        notes.sort();
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_base::error::is_contained;

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
        assert_eq!(shown, [".debug_line is damaged: reading failed: of 1"]);
    }
}
