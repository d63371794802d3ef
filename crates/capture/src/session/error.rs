//! Why a recording could not be started, followed, ended or fetched: each cause by name.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::id::SessionId;
use super::state_folder::STATE_DIR_VAR;
use heaptap_adb::DeviceError;
use heaptap_model::error::{Classified, ErrorClass, ErrorFacts};

/// What went wrong with a session.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Talking to the device failed before anything was recorded.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// perfetto ended with an error before it went into the background.
    #[error("perfetto on {serial} did not start (exit {exit}): {text}")]
    StartFailed {
        /// The device.
        serial: String,
        /// Its exit code.
        exit: u8,
        /// What it said.
        text: String,
    },
    /// perfetto is not on the device.
    #[error("{serial} has no perfetto")]
    NoPerfetto {
        /// The device.
        serial: String,
    },
    /// The tracing daemon is off.
    #[error("tracing is switched off on {serial}: {text}")]
    TracingOff {
        /// The device.
        serial: String,
        /// What perfetto said.
        text: String,
    },
    /// perfetto started, and the tracing service turned the session down.
    #[error("the tracing service on {serial} rejected the recording: {reason}")]
    Rejected {
        /// The device.
        serial: String,
        /// The device's log, or what is known without it.
        reason: String,
    },
    /// The device says something that makes no sense here.
    #[error("{serial} gave an answer to {what} that heaptap does not understand: {text:?}")]
    OddAnswer {
        /// The device.
        serial: String,
        /// The question.
        what: &'static str,
        /// The answer.
        text: String,
    },
    /// The phone was restarted, and what it had recorded is gone.
    #[error("{serial} was restarted while it recorded, and no trace is left of session {id}")]
    LostToReboot {
        /// The device.
        serial: String,
        /// The session.
        id: SessionId,
    },
    /// There is nothing on the device to fetch.
    #[error("no trace of session {id} is left on {serial}")]
    NothingLeft {
        /// The device.
        serial: String,
        /// The session.
        id: SessionId,
    },
    /// It has ended, and there is nothing on the device to fetch.
    #[error("session {id} does not record any more, and no trace of it is left on {serial}")]
    Lost {
        /// The device.
        serial: String,
        /// The session.
        id: SessionId,
    },
    /// The connected phone is another.
    #[error("{serial} is not the phone that recorded session {id}")]
    OtherPhone {
        /// The device.
        serial: String,
        /// The session.
        id: SessionId,
    },
    /// `--launch` without an app.
    #[error("{target} belongs to no app, so there is nothing to launch")]
    NothingToLaunch {
        /// The target.
        target: String,
    },
    /// It still stands on the device; a later `collect` fetches it.
    #[error("the recording {id} was not fetched from {serial}: {why}")]
    NotFetched {
        /// The device.
        serial: String,
        /// The session.
        id: SessionId,
        /// Why.
        why: String,
    },
    /// It is on this host, but the user did not wait for the rest.
    #[error("interrupted before {} was converted", path.display())]
    NotFinished {
        /// The session.
        id: SessionId,
        /// The trace on this host.
        path: PathBuf,
    },
    /// The user ended it before anything was recorded.
    #[error("interrupted before anything was recorded")]
    Interrupted,
    /// This host cannot keep what was recorded; the device still has it.
    #[error("cannot write {}: {source}", path.display())]
    Keep {
        /// The session.
        id: SessionId,
        /// What was to be written.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The folder for the results will not do.
    #[error("cannot write to {}: {source}", path.display())]
    Output {
        /// The folder.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The folder for the results holds something already.
    #[error("the folder {} is not empty", path.display())]
    OutputNotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// The folder for the results belongs to another.
    #[error("the folder {} belongs to {}", path.display(), owner_in_words(owner.as_ref()))]
    OutputClaimed {
        /// The folder.
        path: PathBuf,
        /// Its session; `None` for a heaptap that fills it without one.
        owner: Option<SessionId>,
    },
    /// A folder or a file in it is not this session's, so nothing is written there.
    #[error("cannot write session {id} to {}: {reason}", path.display())]
    OutputForeign {
        /// The session.
        id: SessionId,
        /// The folder or file.
        path: PathBuf,
        /// Why it is not the session's.
        reason: ForeignReason,
    },
    /// The journal cannot be kept.
    #[error("cannot keep the session journal in {}: {source}", path.display())]
    State {
        /// Journal or folder.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Another process takes this session to its end.
    #[error("another heaptap is recording or collecting session {id}")]
    Busy {
        /// The session.
        id: SessionId,
    },
    /// No such session.
    #[error("there is no session {id}")]
    NoSuchSession {
        /// What was asked for.
        id: String,
    },
    /// Several sessions, and none was named.
    #[error("there are several sessions: {}", ids.join(", "))]
    SeveralSessions {
        /// All of them.
        ids: Vec<String>,
    },
    /// There is no session at all.
    #[error("there is no session to {what}{}", elsewhere_in_words(elsewhere))]
    NoSession {
        /// What was to be done.
        what: &'static str,
        /// Sessions of other devices: each with its id and its device.
        elsewhere: Vec<(SessionId, String)>,
    },
    /// There are some, but none that this can be done with.
    #[error("there is no session to {what}: {}", states.join(", "))]
    NoneServes {
        /// What was to be done.
        what: &'static str,
        /// How each of them stands, with its id.
        states: Vec<String>,
    },
    /// This phone lets the shell cause no dump.
    #[error("a snapshot is not possible in this recording: {why}")]
    NoSnapshot {
        /// Why.
        why: String,
    },
    /// It dumps Java heaps once, and nothing causes another dump.
    #[error("session {id} dumps Java heaps once, and takes no snapshots")]
    OneDump {
        /// The session.
        id: SessionId,
    },
    /// No app ran out of memory.
    #[error("no OutOfMemoryError came within {waited_s} s")]
    NoOutOfMemory {
        /// How long it was waited for.
        waited_s: u64,
    },
    /// The dump did not come.
    #[error("the snapshot did not reach the device's trace file within {} s", after.as_secs())]
    SnapshotLate {
        /// How long was waited.
        after: Duration,
    },
    /// This phone has room for one recording, and one is running.
    #[error("{serial} keeps one recording at a time, and one is running")]
    OneAtATime {
        /// The device.
        serial: String,
        /// The session, where this host knows it.
        id: Option<SessionId>,
    },
    /// A recording of this host has the process already.
    #[error("{target} is being recorded already, in session {id}")]
    AlreadyRecorded {
        /// That session.
        id: SessionId,
        /// The process both mean.
        target: String,
    },
    /// SELinux cannot be made permissive.
    #[error("SELinux cannot be made permissive on {serial}: {text}")]
    SelinuxStays {
        /// The device.
        serial: String,
        /// What it said.
        text: String,
    },
    /// The app cannot be stopped or started.
    #[error("{package} could not be launched on {serial}: {why}")]
    NotLaunched {
        /// The device.
        serial: String,
        /// The app.
        package: String,
        /// Why.
        why: String,
    },
    /// The session has ended, so nothing can be asked of it.
    #[error("session {id} does not record any more")]
    NotRecording {
        /// The session.
        id: SessionId,
    },
}

/// Why a folder or a file in it is not a session's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ForeignReason {
    /// The folder has an owner; `None` for a heaptap that fills it without a session.
    #[error("the folder belongs to {}", owner_in_words(.0.as_ref()))]
    OwnedBy(Option<SessionId>),
    /// The folder holds files, and no session claimed it.
    #[error("the folder holds files of another")]
    NotEmpty,
    /// Another file has the name of a result.
    #[error("another file has that name")]
    NameTaken,
}

/// The sessions of other devices, as the end of a sentence.
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

/// The owner of a folder, as the end of a sentence. A process without a session that was killed
/// leaves its marker behind, and no journal tells that it ended.
fn owner_in_words(owner: Option<&SessionId>) -> String {
    match owner {
        Some(id) => format!("session {id}"),
        None => "another heaptap, or one that was killed".to_owned(),
    }
}

/// What else can be done about a folder of an owner without a session.
fn or_remove_marker(owner: Option<&SessionId>) -> String {
    match owner {
        Some(_) => String::new(),
        None => format!(
            ", or remove its {} if none runs",
            heaptap_model::folder::MARKER
        ),
    }
}

const NAME_A_SESSION: &str = "`heaptap status` lists the sessions; name one by its id";

impl Classified for SessionError {
    fn facts(&self) -> ErrorFacts {
        match self {
            SessionError::Device(error) => error.facts(),
            SessionError::StartFailed { .. } => {
                ErrorFacts::new(ErrorClass::Device, "perfetto-failed").with_help(
                    "`heaptap doctor` checks the phone; `--print-config` shows the config that \
                     was sent",
                )
            }
            SessionError::NoPerfetto { .. } => ErrorFacts::new(ErrorClass::Device, "no-perfetto")
                .with_help("native heaps can be recorded from Android 10 on"),
            SessionError::TracingOff { .. } => ErrorFacts::new(ErrorClass::Device, "tracing-off")
                .with_help("switch it on: adb shell setprop persist.traced.enable 1"),
            SessionError::Rejected { .. } => {
                ErrorFacts::new(ErrorClass::Device, "session-rejected").with_help(
                    "end other recordings (adb shell perfetto --query lists them), or restart \
                     the phone",
                )
            }
            SessionError::OddAnswer { .. } => ErrorFacts::new(ErrorClass::Device, "odd-answer"),
            SessionError::LostToReboot { .. } => {
                ErrorFacts::new(ErrorClass::Device, "device-rebooted").with_help("record again")
            }
            SessionError::NothingLeft { .. } => {
                ErrorFacts::new(ErrorClass::Device, "trace-gone").with_help("record again")
            }
            SessionError::Lost { id, .. } => ErrorFacts::new(ErrorClass::Device, "trace-gone")
                .with_help(format!("forget it: heaptap collect {id} --forget")),
            SessionError::OtherPhone { id, .. } => {
                ErrorFacts::new(ErrorClass::NoDevice, "other-phone").with_help(format!(
                    "connect the phone that recorded it, then: heaptap collect {id}"
                ))
            }
            SessionError::NothingToLaunch { .. } => {
                ErrorFacts::new(ErrorClass::Usage, "nothing-to-launch")
                    .with_help("leave out --launch, or name an app")
            }
            SessionError::NotFetched { id, .. } => {
                ErrorFacts::new(ErrorClass::NotFetched, "not-fetched").with_help(format!(
                    "it is safe on the device; fetch it with: heaptap collect {id}"
                ))
            }
            SessionError::NotFinished { id, .. } => {
                ErrorFacts::new(ErrorClass::NotFetched, "not-finished")
                    .with_help(format!("finish it with: heaptap collect {id}"))
            }
            SessionError::Interrupted => ErrorFacts::new(ErrorClass::Interrupted, "interrupted"),
            SessionError::Keep { id, .. } => ErrorFacts::new(ErrorClass::HostWrite, "host-write")
                .with_help(format!(
                    "the device keeps the recording; make room or name another folder: \
                     heaptap collect {id} -o DIR"
                )),
            SessionError::Output { .. } => ErrorFacts::new(ErrorClass::HostWrite, "host-write")
                .with_help("name another folder with -o"),
            SessionError::OutputNotEmpty { .. } => {
                ErrorFacts::new(ErrorClass::Usage, "output-not-empty")
                    .with_help("name a new or an empty folder with -o")
            }
            SessionError::OutputClaimed { owner, .. } => {
                let or_remove = or_remove_marker(owner.as_ref());
                ErrorFacts::new(ErrorClass::Usage, "output-claimed")
                    .with_help(format!("name a new or an empty folder with -o{or_remove}"))
            }
            SessionError::OutputForeign { id, reason, .. } => {
                let or_remove = match reason {
                    ForeignReason::OwnedBy(owner) => or_remove_marker(owner.as_ref()),
                    ForeignReason::NotEmpty | ForeignReason::NameTaken => String::new(),
                };
                ErrorFacts::new(ErrorClass::NotFetched, "output-foreign").with_help(format!(
                    "name another folder: heaptap collect {id} -o DIR{or_remove}"
                ))
            }
            SessionError::State { .. } => {
                ErrorFacts::new(ErrorClass::HostWrite, "journal-unwritable").with_help(format!(
                    "name a folder that can be written: {STATE_DIR_VAR}=DIR"
                ))
            }
            SessionError::Busy { id } => ErrorFacts::new(ErrorClass::Usage, "session-busy")
                .with_help(format!(
                    "`heaptap stop {id}` ends it; the other heaptap then fetches it"
                )),
            SessionError::NoSuchSession { .. } => {
                ErrorFacts::new(ErrorClass::Usage, "no-such-session").with_help(NAME_A_SESSION)
            }
            SessionError::SeveralSessions { .. } => {
                ErrorFacts::new(ErrorClass::Usage, "several-sessions").with_help(NAME_A_SESSION)
            }
            SessionError::NoSession { elsewhere, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "no-session").with_help(
                    match elsewhere.is_empty() {
                        true => "start one with `heaptap record`",
                        false => "connect the device of a session, then follow `heaptap status`",
                    },
                )
            }
            SessionError::NoneServes { .. } => {
                ErrorFacts::new(ErrorClass::Usage, "no-session-serves")
                    .with_help("`heaptap status` says how each stands, and what to do with it")
            }
            SessionError::NoSnapshot { .. } => {
                ErrorFacts::new(ErrorClass::Device, "snapshot-impossible").with_help(
                    "record without --no-snapshots and --dump-at-max, or with --snapshots=PERIOD: \
                     heapprofd then dumps at that period",
                )
            }
            SessionError::OneDump { .. } => {
                ErrorFacts::new(ErrorClass::Device, "snapshot-impossible").with_help(
                    "dump again with `heaptap dump`, or every so often with `heaptap dump -c 30s`",
                )
            }
            SessionError::NoOutOfMemory { .. } => {
                ErrorFacts::new(ErrorClass::Empty, "no-out-of-memory").with_help(
                    "wait longer with --oom-wait-seconds; the first OutOfMemoryError of a process \
                     counts, and the app must be debuggable or profileable",
                )
            }
            SessionError::SnapshotLate { .. } => {
                ErrorFacts::new(ErrorClass::Device, "snapshot-late").with_help(
                    "the recording goes on; a target that is frozen or gone takes no dump",
                )
            }
            SessionError::OneAtATime { id, .. } => {
                ErrorFacts::new(ErrorClass::Device, "one-at-a-time").with_help(match id {
                    Some(id) => format!("end it first: heaptap stop {id}"),
                    None => "end it first, on the computer that started it".to_owned(),
                })
            }
            SessionError::AlreadyRecorded { id, .. } => {
                ErrorFacts::new(ErrorClass::Device, "already-recorded").with_help(format!(
                    "heapprofd lets one recording at a time profile a process; end that one: \
                     heaptap stop {id}"
                ))
            }
            SessionError::SelinuxStays { .. } => {
                ErrorFacts::new(ErrorClass::Device, "selinux-stays")
                    .with_help("this needs a userdebug build, where `su root setenforce 0` works")
            }
            SessionError::NotLaunched { .. } => ErrorFacts::new(ErrorClass::Device, "not-launched")
                .with_help("start it by hand once the recording runs"),
            SessionError::NotRecording { id } => {
                ErrorFacts::new(ErrorClass::Device, "not-recording")
                    .with_help(format!("fetch it with: heaptap collect {id}"))
            }
        }
    }
}
