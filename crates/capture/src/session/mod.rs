//! Lifecycle of a recording session on the device: start, follow, snapshot, stop, pull, clean up;
//! and the journal on the host that lets a later process continue. Emits events; never prints.
//!
//! ```text
//! SessionHeader ──► Session::start ──► follow ──► stop ──► pull ──► (convert) ──► remove_remote ──► forget
//!                       │ journal        ▲                                                │
//!                       ▼                │ Session::resume, in another process             ▼
//!                    Store ──────────────┘                                      nothing is left
//! ```
//!
//! The journal is written and synced before the first request to the device. The process that
//! finishes a session holds its lock; any process can add a label or request the end.
//! `docs/guide/recording.md` has the guarantees about failures.

mod completion;
mod directory;
mod dump_heaps;
mod dumps;
mod error;
mod event;
mod follow;
mod growing_trace;
mod heap_files;
mod id;
mod identity;
mod journal;
mod labels;
mod probe;
mod pull;
mod remote;
mod selinux;
#[expect(clippy::module_inception, reason = "the session itself")]
mod session;
mod snapshot;
mod start;
mod state_directory;
mod stop;
mod store;
mod target_app;
mod targets;
#[cfg(test)]
mod tests;
mod until_dumped;

pub use crate::error::CaptureError;
pub use directory::{
    Owner, Unclaimed, claim, clear_abandoned, hold, is_still, note_published, owner_of,
    part_prefix, release, remove_parts, take_over,
};
pub use dump_heaps::HeapFileFate;
pub use dumps::SnapshotMethod;
pub use event::{Control, Controls, Events, Progress, SessionEvent, stop_asked};
pub use follow::FollowEnd;
pub use heap_files::{HeapFile, HeapFileKind, HeapFiles, file_path, log_path};
pub use id::{ParseSessionIdError, SessionId};
pub use identity::{identity, is_phone_of, retain_of};
pub use journal::{
    BootId, Contents, DurationBounds, HEAP_FILES_VERSION, JOURNAL_VERSION, Label, ProcessKey,
    SessionHeader, SessionState,
};
pub use labels::LabelWatch;
pub use probe::{Moment, TraceWriter, find_own_writer, find_writer, moment};
pub use pull::RawTrace;
pub use remote::{RemoteTrace, fixed_path, remote_traces};
pub use selinux::{SelinuxChange, relax_selinux, restore_selinux};
pub use session::{Session, claim_for};
pub use snapshot::{Snapshot, take_snapshot};
pub use start::{Background, await_start};
pub use state_directory::STATE_DIR_VAR;
pub use stop::{Ending, stop_for_another};
pub use store::{SessionLock, Store, Unreadable};
pub(crate) use store::{open_lock, remove_if_there};
pub use target_app::{Activity, force_stop, launch, launcher_activity};
pub(crate) use target_app::{LAUNCHER_INTENT, resolve_launcher, with_user};
pub use targets::matching_processes;

/// Runs every parser of this module over an output of the device, for fuzzing.
pub fn every_reader(output: &[u8]) {
    dump_heaps::every_reader(&String::from_utf8_lossy(output));
    probe::every_reader(output);
}
