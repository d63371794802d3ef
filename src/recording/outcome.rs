//! Outcome of a recording: cause of its end, results, and the journal, which is removed last.

use std::path::PathBuf;

use super::events::{EventHandler, warn};
use super::plan::JavaPlan;
use crate::recording::conversion::java_summary::JavaSummary;
use heaptap_base::error::ErrorClass;
use heaptap_capture::session::{
    CaptureError, Controls, Session, SessionId, SnapshotMethod, stop_asked,
};
use heaptap_results::manifest::Manifest;
use heaptap_results::summary::HeapSummary;

/// Outcome of `record`.
#[derive(Debug)]
pub enum Recorded {
    /// The recording continues on the device.
    Detached {
        session: SessionId,
        /// Directory of the results.
        output: PathBuf,
        snapshots: SnapshotMethod,
    },
    /// The recording is finished.
    Finished(Box<Finished>),
}

/// Cause of the end of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedBy {
    /// Interrupted by the user, on this host.
    Interrupted,
    /// Stopped by a collecting heaptap.
    Stopped,
    /// All requested dumps are complete.
    Complete,
    /// perfetto itself: its duration, its size limit, or something killed it.
    Itself,
    /// The device restarted.
    Reboot,
    /// It had ended before the first check.
    Unknown,
}

/// A finished recording.
#[derive(Debug)]
pub struct Finished {
    pub session: SessionId,
    /// Directory with all results.
    pub output: PathBuf,
    pub manifest: Manifest,
    /// Names of the files of packets that were written.
    pub packets: Vec<&'static str>,
    /// Terminal summary of each native heap.
    pub heaps: Vec<HeapSummary>,
    /// Terminal summary of each Java heap.
    pub java_heaps: Vec<JavaSummary>,
    /// Facts about a Java heap dump, known at its start.
    pub java: Option<JavaPlan>,
    /// No page is wanted, since its start.
    pub no_report: bool,
    /// Exit code class; `None` if the data are complete.
    pub class: Option<ErrorClass>,
    /// Its journal, kept until the directory is final.
    pub journal: LastJournal,
}

/// Journal of a finished recording, kept while a page is written into its directory, or while its
/// dumps are merged with others. Only [`LastJournal::forget`] removes it: after a kill, an error or a
/// cancelled future, `stop` goes on.
#[derive(Default)]
pub struct LastJournal(Option<Session>);

impl std::fmt::Debug for LastJournal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let id = self.0.as_ref().map(Session::id);
        f.debug_tuple("LastJournal").field(&id).finish()
    }
}

impl LastJournal {
    /// Removes the device's copy and wraps the journal of `session`. If the device cannot be reached
    /// or the user does not wait for it, the journal stays on disk, so that `stop` removes the copy.
    pub(super) async fn after_removal(
        session: Session,
        controls: &mut Controls,
        on_event: &EventHandler,
    ) -> LastJournal {
        let is_over = tokio::select! {
            is_over = session.remove_remote() => is_over,
            () = stop_asked(controls) => {
                let (path, id) = (&session.header().remote_path, session.id());
                let serial = session.device().serial();
                warn(
                    on_event,
                    format!(
                        "cannot remove {path} from {serial}: interrupted. Run `heaptap stop {id}` \
                         to remove it."
                    ),
                );
                false
            }
        };
        LastJournal(is_over.then_some(session))
    }

    /// Forgets the session, once.
    ///
    /// # Errors
    /// Returns an error if the journal cannot be removed.
    pub fn forget(&mut self) -> Result<(), CaptureError> {
        self.0.take().map_or(Ok(()), Session::forget)
    }
}
