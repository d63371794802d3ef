//! Errors of a session: failures to start, follow, end or fetch a recording.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::id::SessionId;
use super::state_folder::STATE_DIR_VAR;
use heaptap_adb::DeviceError;
use heaptap_model::error::{Classified, ErrorClass, ErrorFacts, mend_write};

/// Failure of a session.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The connection to the device failed before anything was recorded.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// perfetto failed before it moved to the background.
    #[error("perfetto on {serial} did not start (exit code {exit}): {text}")]
    StartFailed {
        serial: String,
        exit: u8,
        /// Its output.
        text: String,
    },
    /// perfetto is not installed on the device.
    #[error("perfetto is not installed on {serial}")]
    NoPerfetto { serial: String },
    /// The tracing daemon is off.
    #[error("tracing is disabled on {serial}: {text}")]
    TracingOff {
        serial: String,
        /// Output of perfetto.
        text: String,
    },
    /// perfetto started, but the tracing service rejected the session.
    #[error("the tracing service on {serial} rejected the recording: {reason}")]
    Rejected {
        serial: String,
        /// The device log, or the reason known without it.
        reason: String,
    },
    /// An answer of the device cannot be parsed.
    #[error("cannot read {what} of {serial}: unexpected answer {text:?}")]
    OddAnswer {
        serial: String,
        /// The requested facts.
        what: &'static str,
        /// The answer.
        text: String,
    },
    /// The device restarted, or another one has its serial; there are no files of the session.
    #[error("{serial} restarted during session {id}, and nothing of it is left there")]
    LostToReboot { serial: String, id: SessionId },
    /// There is no trace on the device.
    #[error("no trace of session {id} is left on {serial}")]
    NothingLeft {
        serial: String,
        id: SessionId,
        /// Other recordings write to the same file, as on Android 10.
        shared: bool,
    },
    /// The session has ended, and there is no trace on the device.
    #[error("session {id} has ended, and no trace of it is left on {serial}")]
    Lost { serial: String, id: SessionId },
    /// Another device is connected.
    #[error("{serial} is not the device that recorded session {id}")]
    OtherPhone { serial: String, id: SessionId },
    /// `--launch` without an app.
    #[error("cannot launch {target}: it does not belong to an app")]
    NothingToLaunch { target: String },
    /// The trace or the heap files are still on the device; `stop` can fetch them later.
    #[error("session {id} was not fetched from {serial}: {why}")]
    NotFetched {
        serial: String,
        id: SessionId,
        why: String,
    },
    /// The trace is on this host, but the user did not wait for the conversion.
    #[error("interrupted before {} was converted", path.display())]
    NotFinished {
        id: SessionId,
        /// The trace on this host.
        path: PathBuf,
    },
    /// The user ended it before anything was recorded.
    #[error("interrupted before anything was recorded")]
    Interrupted,
    /// This host cannot store the trace or the heap file; it is still on the device.
    #[error("cannot write {}: {source}", path.display())]
    Keep {
        id: SessionId,
        /// File to write.
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The output directory is not writable.
    #[error("cannot write to {}: {source}", path.display())]
    Output {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A file has the path of the output directory.
    #[error("{} is a file, not a directory", path.display())]
    OutputIsFile { path: PathBuf },
    /// The output directory is not empty.
    #[error("the directory {} is not empty", path.display())]
    OutputNotEmpty { path: PathBuf },
    /// The output directory belongs to another session or process.
    #[error("the directory {} belongs to {}", path.display(), owner_in_words(owner.as_ref()))]
    OutputClaimed {
        path: PathBuf,
        /// Its session; `None` for a heaptap process that fills it without one.
        owner: Option<SessionId>,
    },
    /// A directory or a file in it does not belong to this session, so nothing is written there.
    #[error("cannot write session {id} to {}: {reason}", path.display())]
    OutputForeign {
        id: SessionId,
        /// The directory or file.
        path: PathBuf,
        reason: ForeignReason,
    },
    /// The journal cannot be read or written.
    #[error("cannot access the session journal in {}: {source}", path.display())]
    State {
        /// Journal or directory.
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// Another output was requested of a session that another process records.
    #[error(
        "the heaptap process that records or fetches session {id} writes its results to {}",
        path.display()
    )]
    OutputOfRecorder { id: SessionId, path: PathBuf },
    /// Another process is finishing this session.
    #[error("another heaptap process is recording or fetching session {id}")]
    Busy { id: SessionId },
    /// The session does not exist.
    #[error("session {id} does not exist")]
    NoSuchSession {
        /// The requested ID.
        id: String,
    },
    /// There are several sessions, and none was selected.
    #[error("there are several sessions: {}", ids.join(", "))]
    SeveralSessions {
        /// All of their IDs.
        ids: Vec<String>,
    },
    /// There are no sessions.
    #[error("there is no session to {what}{}", elsewhere_in_words(elsewhere))]
    NoSession {
        /// Verb of the requested operation.
        what: &'static str,
        /// Sessions of other devices, each with its ID and its device.
        elsewhere: Vec<(SessionId, String)>,
    },
    /// The only sessions were started by another host, which might still need them.
    #[error(
        "there is no session of this host to {what}; {serial} is recording {}, started elsewhere",
        ids.join(", ")
    )]
    OnlyElsewhere {
        /// Verb of the requested operation.
        what: &'static str,
        serial: String,
        /// IDs of those sessions.
        ids: Vec<String>,
    },
    /// There are sessions, but none in a state for this operation.
    #[error("there is no session to {what}: {}", states.join(", "))]
    NoneServes {
        /// Verb of the requested operation.
        what: &'static str,
        /// State of each session, with its ID.
        states: Vec<String>,
    },
    /// The shell cannot trigger a dump on this device.
    #[error("cannot take a snapshot in this session: {why}")]
    NoSnapshot { why: String },
    /// The session dumps Java heaps only once, and further dumps cannot be triggered.
    #[error("session {id} dumps Java heaps only once and does not support snapshots")]
    OneDump { id: SessionId },
    /// No app ran out of memory.
    #[error("no OutOfMemoryError occurred within {waited_s} s")]
    NoOutOfMemory {
        /// Waiting time, seconds.
        waited_s: u64,
    },
    /// The dump did not arrive.
    #[error("the snapshot did not reach the device's trace file within {} s", after.as_secs())]
    SnapshotLate {
        /// Waiting time.
        after: Duration,
    },
    /// The trace does not contain a dump of any process, from its start on.
    #[error(
        "no dump arrived within {} s: heapprofd attaches to a process when it allocates, and has \
         not attached to any yet",
        after.as_secs()
    )]
    NothingAttached {
        /// Waiting time.
        after: Duration,
    },
    /// No process is left to dump.
    #[error("cannot take a snapshot in session {id}: the recorded process has ended")]
    TargetsGone { id: SessionId },
    /// The device supports one recording, and one is running.
    #[error("{serial} supports one recording at a time and is busy")]
    OneAtATime {
        serial: String,
        /// The session, if this host knows it.
        id: Option<SessionId>,
    },
    /// A session of this host is already recording the process.
    #[error("session {id} is already recording {target}")]
    AlreadyRecorded {
        /// The other session.
        id: SessionId,
        /// The process in both sessions.
        target: String,
    },
    /// SELinux cannot be made permissive.
    #[error("cannot make SELinux permissive on {serial}: {text}")]
    SelinuxStays {
        serial: String,
        /// Its output.
        text: String,
    },
    /// Another recording has made SELinux permissive, and will restore it at its own end.
    #[error("another recording on {serial} makes SELinux permissive until it ends")]
    SelinuxGuarded { serial: String },
    /// The app cannot be stopped or started.
    #[error("cannot launch {package} on {serial}: {why}")]
    NotLaunched {
        serial: String,
        package: String,
        why: String,
    },
    /// Another host has the journal of the session, so only that host can request dumps.
    #[error("cannot take a snapshot in session {id}: another host started it")]
    StartedElsewhere { id: SessionId },
    /// Another process starts the session, or has failed to.
    #[error("session {id} {}", match is_late {
        true => "has not started yet",
        false => "did not start",
    })]
    NotStarted {
        id: SessionId,
        /// The start takes longer than it may.
        is_late: bool,
    },
    /// The session has ended, so it does not accept requests.
    #[error("session {id} is not recording any more")]
    NotRecording { id: SessionId },
}

/// Reason why a directory or a file in it does not belong to a session.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ForeignReason {
    /// The directory has an owner; `None` for a heaptap process that fills it without a session.
    #[error("the directory belongs to {}", owner_in_words(.0.as_ref()))]
    OwnedBy(Option<SessionId>),
    /// The directory contains files, and no session claimed it.
    #[error("the directory contains other files")]
    NotEmpty,
    /// Another file has the name of a result.
    #[error("another file has this name")]
    NameTaken,
}

/// Formats the sessions of other devices as the end of a sentence.
fn elsewhere_in_words(elsewhere: &[(SessionId, String)]) -> String {
    if elsewhere.is_empty() {
        return String::new();
    }
    let each: Vec<String> = elsewhere
        .iter()
        .map(|(id, serial)| format!("session {id} is on device {serial}"))
        .collect();
    format!(" on this device; {}", each.join(", "))
}

/// Formats the owner of a directory as the end of a sentence. A killed process without a session
/// leaves its marker behind, and no journal records its end.
fn owner_in_words(owner: Option<&SessionId>) -> String {
    match owner {
        Some(id) => format!("session {id}"),
        None => "another heaptap process, running or killed".to_owned(),
    }
}

/// Formats the alternative for a directory whose owner does not have a session.
fn or_remove_marker(owner: Option<&SessionId>) -> String {
    match owner {
        Some(_) => String::new(),
        None => format!(
            ", or remove its {} if no heaptap process uses it",
            heaptap_model::folder::MARKER
        ),
    }
}

impl Classified for SessionError {
    fn facts(&self) -> ErrorFacts {
        match self {
            SessionError::Device(error) => error.facts(),
            SessionError::StartFailed { .. } => {
                ErrorFacts::new(ErrorClass::Device, "perfetto-failed").with_help(
                    "check the device with `heaptap doctor`, or check the config with \
                     `--print-config`",
                )
            }
            SessionError::NoPerfetto { .. } => ErrorFacts::new(ErrorClass::Device, "no-perfetto")
                .with_help("use a device with Android 10 or newer"),
            SessionError::TracingOff { .. } => ErrorFacts::new(ErrorClass::Device, "tracing-off")
                .with_help("run `adb shell setprop persist.traced.enable 1`"),
            SessionError::Rejected { reason, .. } => {
                // The text of ENOSPC.
                let is_full = reason.contains("No space left on device");
                ErrorFacts::new(ErrorClass::Device, "session-rejected").with_help(match is_full {
                    true => "free storage on the device, then record again",
                    false => {
                        "stop other sessions (listed by `adb shell perfetto --query`) or restart \
                         the device"
                    }
                })
            }
            SessionError::OddAnswer { .. } => {
                ErrorFacts::new(ErrorClass::Device, "unexpected-answer")
            }
            SessionError::LostToReboot { id, .. } => ErrorFacts::new(
                ErrorClass::Device,
                "device-rebooted",
            )
            .with_help(format!(
                "if this is another device, connect the one that recorded and run `heaptap stop \
                     {id}`; otherwise forget the session with `heaptap stop --forget {id}` and \
                     record again"
            )),
            SessionError::NothingLeft { shared, .. } => {
                ErrorFacts::new(ErrorClass::Device, "trace-gone").with_help(match shared {
                    false => {
                        "another heaptap might have fetched it into another directory; otherwise \
                         record again"
                    }
                    true => {
                        "Android 10 has one file for all recordings: look for a \
                         `heaptap-recording-…` where another host recorded since, or record again"
                    }
                })
            }
            SessionError::Lost { id, .. } => ErrorFacts::new(ErrorClass::Device, "trace-gone")
                .with_help(format!(
                    "forget the session with `heaptap stop --forget {id}`"
                )),
            SessionError::OtherPhone { id, .. } => {
                ErrorFacts::new(ErrorClass::NoDevice, "other-device").with_help(format!(
                    "connect the device that recorded it, then run `heaptap stop {id}`"
                ))
            }
            SessionError::NothingToLaunch { .. } => {
                ErrorFacts::new(ErrorClass::Usage, "nothing-to-launch")
                    .with_help("omit `--launch`, or name an app")
            }
            SessionError::NotFetched { id, .. } => {
                ErrorFacts::new(ErrorClass::NotFetched, "not-fetched").with_help(format!(
                    "the device still has what was recorded; run `heaptap stop {id}`"
                ))
            }
            SessionError::NotFinished { id, .. } => {
                ErrorFacts::new(ErrorClass::NotFetched, "not-finished")
                    .with_help(format!("run `heaptap stop {id}` to finish it"))
            }
            SessionError::Interrupted => ErrorFacts::new(ErrorClass::Interrupted, "interrupted"),
            SessionError::Keep { id, source, .. } => {
                let mend = mend_write(source);
                ErrorFacts::new(ErrorClass::HostWrite, "host-write").with_help(format!(
                    "the device still has what was recorded; {mend} and run `heaptap stop {id}`, \
                     or run `heaptap stop {id} -o DIR`"
                ))
            }
            SessionError::Output { .. } => ErrorFacts::new(ErrorClass::HostWrite, "host-write")
                .with_help("choose another directory with `-o`"),
            SessionError::OutputIsFile { .. } => {
                ErrorFacts::new(ErrorClass::Usage, "output-is-file").with_help("name a directory")
            }
            SessionError::OutputNotEmpty { .. } => {
                ErrorFacts::new(ErrorClass::Usage, "output-not-empty")
                    .with_help("choose a new or empty directory with `-o`")
            }
            SessionError::OutputClaimed { owner, .. } => {
                let or_remove = or_remove_marker(owner.as_ref());
                ErrorFacts::new(ErrorClass::Usage, "output-claimed").with_help(format!(
                    "choose a new or empty directory with `-o`{or_remove}"
                ))
            }
            SessionError::OutputForeign { id, reason, .. } => {
                let or_remove = match reason {
                    ForeignReason::OwnedBy(owner) => or_remove_marker(owner.as_ref()),
                    ForeignReason::NotEmpty | ForeignReason::NameTaken => String::new(),
                };
                ErrorFacts::new(ErrorClass::NotFetched, "output-foreign").with_help(format!(
                    "choose another directory: `heaptap stop {id} -o DIR`{or_remove}"
                ))
            }
            SessionError::State { path, source } => {
                let help = match source.kind() {
                    io::ErrorKind::InvalidData => format!(
                        "use the heaptap version that wrote it. Without it, move {} away and run \
                         `heaptap stop {}`, which fetches a trace but no heap files.",
                        path.display(),
                        path.file_stem().unwrap_or_default().to_string_lossy()
                    ),
                    _ => format!(
                        "{}, or set `{STATE_DIR_VAR}` to a writable copy of that directory",
                        mend_write(source)
                    ),
                };
                ErrorFacts::new(ErrorClass::HostWrite, "journal-unwritable").with_help(help)
            }
            SessionError::OutputOfRecorder { .. } => {
                ErrorFacts::new(ErrorClass::Usage, "output-taken")
                    .with_help("leave out `-o`, and copy the directory when it is complete")
            }
            SessionError::Busy { id } => ErrorFacts::new(ErrorClass::Usage, "session-busy")
                .with_help(format!(
                    "if it is recording, end it with `heaptap stop {id}`; while the other process \
                     fetches it, wait: `heaptap status` shows when it has ended"
                )),
            SessionError::NoSuchSession { .. } => {
                ErrorFacts::new(ErrorClass::Usage, "no-such-session")
                    .with_help("`heaptap status` lists unfinished sessions, if there are any")
            }
            SessionError::SeveralSessions { .. } => {
                ErrorFacts::new(ErrorClass::Usage, "several-sessions")
                    .with_help("choose a session by its ID; `heaptap status` lists them")
            }
            SessionError::NoSession { elsewhere, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "no-session").with_help(
                    match elsewhere.is_empty() {
                        true => "start one with `heaptap record`",
                        false => "connect the device of a session, then run `heaptap status`",
                    },
                )
            }
            SessionError::OnlyElsewhere { .. } => ErrorFacts::new(ErrorClass::Usage, "no-session")
                .with_help("`heaptap status` has the command that ends it from here"),
            SessionError::NoneServes { .. } => {
                ErrorFacts::new(ErrorClass::Usage, "no-session-serves")
                    .with_help("run `heaptap status` for the state and next step of each session")
            }
            SessionError::NoSnapshot { .. } => {
                ErrorFacts::new(ErrorClass::Device, "snapshot-impossible").with_help(
                    "for periodic dumps, use `heaptap record --snapshots=PERIOD`; with \
                     `heaptap record --no-snapshots` or `heaptap record --dump-at-max`, there are none",
                )
            }
            SessionError::OneDump { .. } => {
                ErrorFacts::new(ErrorClass::Device, "snapshot-impossible").with_help(
                    "run `heaptap dump` again, or use `heaptap dump -c 30s` for periodic dumps",
                )
            }
            SessionError::NoOutOfMemory { .. } => {
                ErrorFacts::new(ErrorClass::Empty, "no-out-of-memory").with_help(
                    "wait longer with `--oom-wait-seconds`; only the first OutOfMemoryError of a \
                     debuggable or profileable app counts",
                )
            }
            SessionError::SnapshotLate { .. } => {
                ErrorFacts::new(ErrorClass::Device, "snapshot-late").with_help(
                    "check whether the target runs, allocates memory and is not frozen; the \
                     recording continues",
                )
            }
            SessionError::NothingAttached { .. } => {
                ErrorFacts::new(ErrorClass::Device, "snapshot-late").with_help(
                    "use the app until it allocates, then take another snapshot; the recording \
                     continues",
                )
            }
            SessionError::TargetsGone { id } => {
                ErrorFacts::new(ErrorClass::NotEligible, "not-running").with_help(format!(
                    "start the app again and take another snapshot, or end the recording with \
                     `heaptap stop {id}`"
                ))
            }
            SessionError::OneAtATime { id, .. } => {
                ErrorFacts::new(ErrorClass::Device, "one-at-a-time").with_help(match id {
                    Some(id) => format!("end it first with `heaptap stop {id}`"),
                    None => "end it first on the host that started it; if none records, try again"
                        .to_owned(),
                })
            }
            SessionError::AlreadyRecorded { id, .. } => {
                ErrorFacts::new(ErrorClass::Device, "already-recorded").with_help(format!(
                    "end that session with `heaptap stop {id}`; heapprofd profiles a process in \
                     only one session at a time"
                ))
            }
            SessionError::SelinuxStays { .. } => {
                ErrorFacts::new(ErrorClass::Device, "selinux-stays")
                    .with_help("use a userdebug build, where `su root setenforce 0` works")
            }
            SessionError::SelinuxGuarded { .. } => {
                ErrorFacts::new(ErrorClass::Device, "selinux-guarded").with_help(
                    "end it with `heaptap stop`; if `heaptap status` does not list it, try again \
                     in two minutes",
                )
            }
            SessionError::NotLaunched { .. } => ErrorFacts::new(ErrorClass::Device, "not-launched")
                .with_help("start it manually during the recording"),
            SessionError::StartedElsewhere { id } => {
                ErrorFacts::new(ErrorClass::Usage, "started-elsewhere").with_help(format!(
                    "take it on that host, or end the recording with `heaptap stop {id}`"
                ))
            }
            SessionError::NotStarted { is_late, .. } => {
                ErrorFacts::new(ErrorClass::Device, "not-started").with_help(match is_late {
                    true => "wait until `heaptap status` lists it as recording, then try again",
                    false => "see the output of the command that started it, then record again",
                })
            }
            SessionError::NotRecording { id } => {
                ErrorFacts::new(ErrorClass::Usage, "not-recording")
                    .with_help(format!("fetch it with `heaptap stop {id}`"))
            }
        }
    }
}
