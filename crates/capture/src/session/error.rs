//! Errors of sessions that several places return. Each error after which data is on the device says
//! so, and how to fetch it.

use std::fmt::Display;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::id::SessionId;
use super::state_directory::STATE_DIR_VAR;
use crate::error::{CaptureError, kind};
use heaptap_adb::Device;
use heaptap_base::directory::MARKER;
use heaptap_base::error::{ErrorClass, mend_write};

impl CaptureError {
    /// The trace is on the device, and cannot be fetched now.
    pub fn not_fetched(serial: &str, id: &SessionId, why: impl Display) -> Self {
        let message = format!("session {id} was not fetched from {serial}: {why}");
        CaptureError::new(ErrorClass::NotFetched, kind::NOT_FETCHED, message).with_help(format!(
            "the device still has what was recorded; run `heaptap stop {id}`"
        ))
    }

    /// Nothing of the session is on the device. `shared`: it has one file for all recordings.
    pub fn nothing_left(serial: &str, id: &SessionId, shared: bool) -> Self {
        let message = format!("no trace of session {id} is left on {serial}");
        CaptureError::new(ErrorClass::Device, kind::TRACE_GONE, message).with_help(match shared {
            false => {
                "another heaptap might have fetched it into another directory; otherwise record \
                 again"
            }
            true => {
                "Android 10 has one file for all recordings: look for a `heaptap-recording-…` \
                 where another host recorded since, or record again"
            }
        })
    }

    /// A result cannot be written. The device still has what was recorded.
    pub fn keep(id: &SessionId, path: &Path, source: io::Error) -> Self {
        let mend = mend_write(&source);
        let message = format!("cannot write {}: {source}", path.display());
        CaptureError::new(ErrorClass::HostWrite, "host-write", message).with_help(format!(
            "the device still has what was recorded; {mend} and run `heaptap stop {id}`, or run \
             `heaptap stop {id} -o DIR`"
        ))
    }

    /// The output directory cannot be written.
    pub fn output(path: &Path, source: io::Error) -> Self {
        let message = format!("cannot write to {}: {source}", path.display());
        CaptureError::new(ErrorClass::HostWrite, "host-write", message)
            .with_help("choose another directory with `-o`")
    }

    /// The output directory has files.
    pub fn output_not_empty(path: &Path) -> Self {
        let message = format!("the directory {} is not empty", path.display());
        CaptureError::new(ErrorClass::Usage, kind::OUTPUT_NOT_EMPTY, message)
            .with_help("choose a new or empty directory with `-o`")
    }

    /// The output directory belongs to a session, or to another process.
    pub fn output_claimed(path: &Path, owner: Option<&SessionId>) -> Self {
        let (owner, or_remove) = described(owner);
        let message = format!("the directory {} belongs to {owner}", path.display());
        let help = format!("choose a new or empty directory with `-o`{or_remove}");
        CaptureError::new(ErrorClass::Usage, kind::OUTPUT_CLAIMED, message).with_help(help)
    }

    /// The directory of the session belongs to another one.
    pub fn output_of_other(id: &SessionId, path: &Path, owner: Option<&SessionId>) -> Self {
        let (owner, or_remove) = described(owner);
        let why = format!("the directory belongs to {owner}");
        Self::output_foreign(id, path, &why, &or_remove)
    }

    /// The directory of the session has other files.
    pub fn output_has_others(id: &SessionId, path: &Path) -> Self {
        Self::output_foreign(id, path, "the directory contains other files", "")
    }

    /// Another file has the name of a result.
    pub fn name_taken(id: &SessionId, path: &Path) -> Self {
        Self::output_foreign(id, path, "another file has this name", "")
    }

    fn output_foreign(id: &SessionId, path: &Path, why: &str, or_remove: &str) -> Self {
        let message = format!("cannot write session {id} to {}: {why}", path.display());
        let help = format!("choose another directory: `heaptap stop {id} -o DIR`{or_remove}");
        CaptureError::new(ErrorClass::NotFetched, "output-foreign", message).with_help(help)
    }

    /// The journal of a session cannot be read or written.
    pub fn state(path: &Path, source: io::Error) -> Self {
        let help = match source.kind() {
            io::ErrorKind::InvalidData => format!(
                "use the heaptap version that wrote it. Without it, move {} away and run \
                 `heaptap stop {}`, which fetches a trace but no heap files.",
                path.display(),
                path.file_stem().unwrap_or_default().to_string_lossy()
            ),
            _ => format!(
                "{}, or set `{STATE_DIR_VAR}` to a writable copy of that directory",
                mend_write(&source)
            ),
        };
        let journal = path.display();
        let message = format!("cannot access the session journal in {journal}: {source}");
        CaptureError::new(ErrorClass::HostWrite, "journal-unwritable", message).with_help(help)
    }

    /// Another process has the session.
    pub fn busy(id: &SessionId) -> Self {
        let message = format!("another heaptap process is recording or fetching session {id}");
        CaptureError::new(ErrorClass::Usage, kind::SESSION_BUSY, message).with_help(format!(
            "if it is recording, end it with `heaptap stop {id}`; while the other process fetches \
             it, wait: `heaptap status` shows when it has ended"
        ))
    }

    pub fn no_such_session(id: impl Display) -> Self {
        let message = format!("session {id} does not exist");
        CaptureError::new(ErrorClass::Usage, kind::NO_SUCH_SESSION, message)
            .with_help("`heaptap status` lists unfinished sessions, if there are any")
    }

    pub fn several_sessions(ids: &[String]) -> Self {
        let message = format!("there are several sessions: {}", ids.join(", "));
        CaptureError::new(ErrorClass::Usage, "several-sessions", message)
            .with_help("choose a session by its ID; `heaptap status` lists them")
    }

    pub fn not_recording(id: &SessionId) -> Self {
        let message = format!("session {id} is not recording any more");
        CaptureError::new(ErrorClass::Usage, kind::NOT_RECORDING, message)
            .with_help(format!("fetch it with `heaptap stop {id}`"))
    }

    /// The device has one file for all recordings, and a recording writes to it.
    pub fn one_at_a_time(serial: &str, id: Option<&SessionId>) -> Self {
        let message = format!("{serial} supports one recording at a time and is busy");
        CaptureError::new(ErrorClass::Device, "one-at-a-time", message).with_help(match id {
            Some(id) => format!("end it first with `heaptap stop {id}`"),
            None => {
                "end it first on the host that started it; if none records, try again".to_owned()
            }
        })
    }

    pub(super) fn start_failed(serial: &str, exit: u8, text: &str) -> Self {
        let message = format!("perfetto on {serial} did not start (exit code {exit}): {text}");
        CaptureError::new(ErrorClass::Device, "perfetto-failed", message).with_help(
            "check the device with `heaptap doctor`, or check the config with `--print-config`",
        )
    }

    pub(super) fn no_snapshot(why: &str) -> Self {
        let message = format!("cannot take a snapshot in this session: {why}");
        CaptureError::new(ErrorClass::Device, "snapshot-impossible", message).with_help(
            "for periodic dumps, use `heaptap record --snapshots=PERIOD`; with `heaptap record \
             --no-snapshots` or `heaptap record --dump-at-max`, there are none",
        )
    }

    pub(super) fn snapshot_late(after: Duration) -> Self {
        let after = after.as_secs();
        let message =
            format!("the snapshot did not reach the device's trace file within {after} s");
        CaptureError::new(ErrorClass::Device, kind::SNAPSHOT_LATE, message).with_help(
            "check whether the target runs, allocates memory and is not frozen; the recording \
             continues",
        )
    }

    /// The device answers with other than what was asked for.
    pub(crate) fn unexpected_answer(device: &Device, what: &str, text: &str) -> Self {
        let serial = device.serial();
        let text: String = text.chars().take(200).collect();
        let message = format!("cannot read {what} of {serial}: unexpected answer {text:?}");
        CaptureError::new(ErrorClass::Device, "unexpected-answer", message)
    }
}

/// Describes the owner of a directory, and whether its marker could be removed.
fn described(owner: Option<&SessionId>) -> (String, String) {
    match owner {
        Some(id) => (format!("session {id}"), String::new()),
        None => (
            "another heaptap process, running or killed".to_owned(),
            format!(", or remove its {MARKER} if no heaptap process uses it"),
        ),
    }
}
