//! What a recording came to: what ended it, what is there then, and the journal that goes last.

use std::path::PathBuf;

use super::plan::JavaPlan;
use crate::conversion::java_summary::JavaSummary;
use crate::error::ErrorClass;
use crate::results::manifest::Manifest;
use crate::results::summary::HeapSummary;
use crate::session::{Session, SessionError, SessionId, SnapshotMethod};

/// How `record` came out.
#[derive(Debug)]
pub enum Recorded {
    /// It runs on the device.
    Detached {
        /// The session.
        session: SessionId,
        /// Where the results will be.
        output: PathBuf,
        /// Whether `snapshot` can do something there.
        snapshots: SnapshotMethod,
    },
    /// It is finished.
    Finished(Box<Finished>),
}

/// What ended a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedBy {
    /// The user, here.
    Interrupted,
    /// A heaptap that collects it.
    Stopped,
    /// The dumps it was for are complete.
    Complete,
    /// perfetto itself: its duration, its size limit, or something killed it.
    Itself,
    /// The phone was restarted.
    Reboot,
    /// It was over before anybody looked.
    Unknown,
}

/// A recording that is finished.
#[derive(Debug)]
pub struct Finished {
    /// The session.
    pub session: SessionId,
    /// The folder with everything.
    pub output: PathBuf,
    /// What its manifest says.
    pub manifest: Manifest,
    /// Names of the files of packets that were written.
    pub packets: Vec<&'static str>,
    /// What the terminal shows of each heap.
    pub heaps: Vec<HeapSummary>,
    /// What the terminal shows of each Java heap.
    pub java_heaps: Vec<JavaSummary>,
    /// What was known of a dump of Java heaps when it was begun.
    pub java: Option<JavaPlan>,
    /// What the exit code tells of; `None` where nothing is missing.
    pub class: Option<ErrorClass>,
    /// Its journal, until nothing more is written to the folder.
    pub journal: LastJournal,
}

/// The journal of a recording that is finished, but for a page that may still be written into its
/// folder: who is killed over that leaves a session for `collect` to tidy up. Forgotten when it
/// is dropped.
#[derive(Default)]
pub struct LastJournal(Option<Session>);

impl std::fmt::Debug for LastJournal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let id = self.0.as_ref().map(Session::id);
        f.debug_tuple("LastJournal").field(&id).finish()
    }
}

impl LastJournal {
    /// That of `session`.
    pub(super) fn of(session: Session) -> LastJournal {
        LastJournal(Some(session))
    }

    /// Forgets it, once.
    ///
    /// # Errors
    /// Where the journal cannot be removed.
    pub fn forget(&mut self) -> Result<(), SessionError> {
        self.0.take().map_or(Ok(()), Session::forget)
    }
}

impl Drop for LastJournal {
    fn drop(&mut self) {
        // The recording is whole; `status` still lists it, and `collect` ends it again.
        let _ = self.forget();
    }
}
