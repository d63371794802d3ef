//! Labels of a session as any process sets them: read from the journal by code that captures
//! companion data at new labels.

use std::path::PathBuf;

use super::journal::{self, Label};
use super::session::Session;

/// Watches the journal of a session for new labels.
#[derive(Debug)]
pub struct LabelWatch {
    path: PathBuf,
    /// Length of the journal when it was last read.
    length: u64,
    seen: usize,
}

impl LabelWatch {
    /// Returns labels set since the last call, each with its index among all labels, from 1.
    /// Returns none if the journal is gone because the session is finished.
    pub fn new_labels(&mut self) -> Vec<(u32, Label)> {
        let length = std::fs::metadata(&self.path).map_or(0, |found| found.len());
        if length == self.length {
            return Vec::new();
        }
        let Ok(state) = journal::read(&self.path) else {
            return Vec::new();
        };
        self.length = length;
        let new: Vec<_> = (1..).zip(state.labels).skip(self.seen).collect();
        self.seen += new.len();
        new
    }

    /// Returns the number of labels at the last call.
    pub fn count(&self) -> usize {
        self.seen
    }
}

impl Session {
    /// Watches for labels set from now on.
    pub fn watch_labels(&self) -> LabelWatch {
        LabelWatch {
            path: self.journal_path().to_owned(),
            length: 0,
            seen: self.state.labels.len(),
        }
    }
}
