//! The labels of a session as they are set, whoever sets them: read from its journal, for those
//! who do something beside the recording when there is a new one.

use std::path::PathBuf;

use super::journal::{self, Label};
use super::session::Session;

/// Looks at the journal of a session again and again.
#[derive(Debug)]
pub struct LabelWatch {
    path: PathBuf,
    /// Length of the journal when it was last read.
    length: u64,
    seen: usize,
}

impl LabelWatch {
    /// Labels that were set since the last look, each with its place among all, from 1. None
    /// where the journal is gone: the session is finished.
    pub fn new_labels(&mut self) -> Vec<(u32, Label)> {
        let length = std::fs::metadata(&self.path).map_or(0, |found| found.len());
        if length == self.length {
            return Vec::new();
        }
        let Ok(state) = journal::read(&self.path) else {
            return Vec::new();
        };
        self.length = length;
        let labels = state.labels.into_iter().enumerate().skip(self.seen);
        let new: Vec<_> = labels
            .map(|(at, label)| {
                (
                    u32::try_from(at).map_or(u32::MAX, |at| at.saturating_add(1)),
                    label,
                )
            })
            .collect();
        self.seen += new.len();
        new
    }

    /// How many labels there were at the last look.
    pub fn count(&self) -> usize {
        self.seen
    }
}

impl Session {
    /// Watches for labels that are set from now on.
    pub fn watch_labels(&self) -> LabelWatch {
        LabelWatch {
            path: self.journal_path().to_owned(),
            length: 0,
            seen: self.state.labels.len(),
        }
    }
}
