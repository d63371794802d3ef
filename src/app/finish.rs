//! The end of every recording, whoever comes to it: fetch, convert, bind labels, write the
//! manifest, and only then remove the device's copy and forget the session.

use std::path::PathBuf;
use std::sync::Arc;

use super::manifest::Manifest;
use super::record::{RecordEvent, Step, Tell};
use crate::error::{ErrorClass, Failure};
use crate::session::{Controls, NewScan, RawTrace, Session, SessionId};

/// What ended a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedBy {
    /// The user, here.
    Interrupted,
    /// A heaptap that collects it.
    Stopped,
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
    /// What the exit code tells of; `None` where nothing is missing.
    pub class: Option<ErrorClass>,
}

/// Makes scanners for snapshots.
pub fn new_scan() -> NewScan {
    todo!()
}

/// Takes a session whose perfetto has ended to its end.
pub async fn finish(
    mut session: Session,
    ended_by: EndedBy,
    controls: &mut Controls,
    tell: &Tell,
) -> Result<Finished, Failure> {
    todo!()
}
