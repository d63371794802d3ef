//! The end of every recording, whoever comes to it: fetch, convert, bind labels, write the
//! manifest, and only then remove the device's copy and forget the session.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::manifest::{self, Manifest};
use super::plan::{self, Plan};
use super::record::{RecordEvent, Step, Tell};
use crate::error::{ErrorClass, Failure};
use crate::session::{
    Chronicle, Controls, DumpScan, NewScan, RawTrace, SeenDump, Session, SessionError, SessionId,
    SnapshotWay, remove_parts,
};
use crate::trace::DumpScanner;

/// Name of the trace in the folder.
pub const RAW_TRACE: &str = "raw-trace";

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
    Arc::new(|| Box::new(Scan::default()))
}

/// The trace's scanner, as the session wants it.
#[derive(Default)]
struct Scan {
    scanner: DumpScanner,
    seen: Vec<SeenDump>,
}

impl DumpScan for Scan {
    fn push(&mut self, bytes: &[u8]) {
        self.scanner.push(bytes);
        let new = self.scanner.dumps().iter().skip(self.seen.len());
        let new: Vec<SeenDump> = new
            .map(|dump| SeenDump {
                pid: u32::try_from(dump.pid).unwrap_or(u32::MAX),
                heap: dump.heap.clone(),
                written_ns: dump.written_ns,
            })
            .collect();
        self.seen.extend(new);
    }

    fn dumps(&self) -> &[SeenDump] {
        &self.seen
    }

    fn is_lost(&self) -> bool {
        self.scanner.is_lost()
    }
}

/// Takes a session whose perfetto has ended to its end.
///
/// # Errors
/// Where the trace cannot be fetched, kept or read; the device's copy then stays.
pub async fn finish(
    mut session: Session,
    ended_by: EndedBy,
    controls: &mut Controls,
    tell: &Tell,
) -> Result<Finished, Failure> {
    let output = session.opening().output.clone();
    std::fs::create_dir_all(&output).map_err(|source| SessionError::Keep {
        id: session.id().clone(),
        path: output.clone(),
        source,
    })?;
    let plan = Plan::read(&session.opening().plan)?;
    let mut steps = plan.steps.clone();
    steps.push(plan::step("trace-complete"));
    let trace = match fetch(&mut session, controls).await {
        Ok(trace) => trace,
        Err(error @ (SessionError::NothingLeft { .. } | SessionError::Rejected { .. })) => {
            // There is nothing to come back for.
            session.forget()?;
            // It holds nothing, or what somebody else put there.
            let _ = std::fs::remove_dir(&output);
            return Err(error.into());
        }
        Err(error) => return Err(error.into()),
    };
    steps.push(plan::step("pulled"));
    tell(RecordEvent::Step(Step::Converting));
    let chronicle = session.reread()?.clone();
    let elapsed = session.last_progress().map(|p| p.elapsed);
    let cause = Cause::of(ended_by, &chronicle, &plan, trace.size, elapsed);
    let mut manifest = Manifest::new(env!("CARGO_PKG_VERSION"));
    manifest.steps = steps;
    describe(&mut manifest, &chronicle, &plan, &trace, cause);
    if plan.selinux_relaxed {
        session.restore_selinux(plan.shell_is_root).await;
    }
    let class = cause.class();
    manifest.outcome = manifest::Outcome {
        exit_code: class.map_or(0, ErrorClass::exit_code),
        complete: class.is_none(),
        ended_by: cause.word().map(str::to_owned),
    };
    manifest.write(&output)?;
    session.remove_remote().await;
    let id = session.id().clone();
    session.forget()?;
    Ok(Finished {
        session: id,
        output,
        manifest,
        class,
    })
}

/// The trace on this host: fetched now, or by a process that came no further.
async fn fetch(session: &mut Session, controls: &mut Controls) -> Result<RawTrace, SessionError> {
    let output = session.opening().output.clone();
    let goal = output.join(RAW_TRACE);
    if let Some((size, sha256)) = session.chronicle().pulled.clone() {
        let kept = std::fs::metadata(&goal);
        if kept.is_ok_and(|m| m.len() == size) {
            return Ok(RawTrace {
                path: goal,
                size,
                sha256,
            });
        }
    }
    remove_parts(&output, session.id()).map_err(|source| SessionError::Keep {
        id: session.id().clone(),
        path: output.clone(),
        source,
    })?;
    session.pull(&goal, controls).await
}

/// Why a recording ended, as far as that can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Duration,
    Interrupted,
    Stopped,
    SizeLimit,
    Lost,
    Rebooted,
    Unknown,
}

impl Cause {
    fn of(
        ended_by: EndedBy,
        chronicle: &Chronicle,
        plan: &Plan,
        size: u64,
        elapsed: Option<Duration>,
    ) -> Cause {
        // The last report may be a second old, and a start takes its time.
        let in_full = plan.duration_ms.is_some_and(|ms| {
            elapsed.is_none_or(|e| e + Duration::from_secs(3) >= Duration::from_millis(ms))
        });
        // The service ends a file a little below its limit: the next packet would not fit.
        let full = plan
            .size_limit
            .is_some_and(|limit| size >= limit - limit / 32);
        match ended_by {
            EndedBy::Interrupted => Cause::Interrupted,
            EndedBy::Stopped => Cause::Stopped,
            EndedBy::Reboot => Cause::Rebooted,
            EndedBy::Itself | EndedBy::Unknown if chronicle.stopping => Cause::Stopped,
            _ if full => Cause::SizeLimit,
            EndedBy::Itself if in_full => Cause::Duration,
            EndedBy::Itself => Cause::Lost,
            EndedBy::Unknown => Cause::Unknown,
        }
    }

    fn word(self) -> Option<&'static str> {
        match self {
            Cause::Duration => Some("duration"),
            Cause::Interrupted => Some("interrupted"),
            Cause::Stopped => Some("stopped"),
            Cause::SizeLimit => Some("size-limit"),
            Cause::Lost | Cause::Rebooted => Some("lost"),
            Cause::Unknown => None,
        }
    }

    fn class(self) -> Option<ErrorClass> {
        match self {
            Cause::SizeLimit | Cause::Lost | Cause::Rebooted => Some(ErrorClass::Incomplete),
            Cause::Duration | Cause::Interrupted | Cause::Stopped | Cause::Unknown => None,
        }
    }

    fn warning(self) -> Option<manifest::Warning> {
        let (kind, message, help) = match self {
            Cause::SizeLimit => (
                "size-limit",
                "the trace reached its size limit, and the recording ended early",
                "free space on the phone, sample less (-i 16k), or dump less often",
            ),
            Cause::Lost => (
                "recording-lost",
                "perfetto ended on the phone without being asked; what came after its last \
                 write is missing",
                "`adb logcat -s perfetto traced` may tell why",
            ),
            Cause::Rebooted => (
                "device-rebooted",
                "the phone was restarted while it recorded; what came after perfetto's last \
                 write is missing",
                "record again",
            ),
            Cause::Duration | Cause::Interrupted | Cause::Stopped | Cause::Unknown => return None,
        };
        Some(manifest::Warning {
            kind: kind.to_owned(),
            message: message.to_owned(),
            help: Some(help.to_owned()),
            pid: None,
            dumps: Vec::new(),
        })
    }
}

fn describe(
    manifest: &mut Manifest,
    chronicle: &Chronicle,
    plan: &Plan,
    trace: &RawTrace,
    cause: Cause,
) {
    let opening = &chronicle.opening;
    manifest.session = Some(manifest::Session {
        id: opening.id.to_string(),
        remote_path: opening.remote_path.clone(),
        boot_id: Some(opening.boot_id.0.clone()),
        snapshots_by: match opening.snapshots {
            SnapshotWay::Signal { .. } => Some("signal".to_owned()),
            SnapshotWay::Continuous { .. } => Some("continuous".to_owned()),
            SnapshotWay::Impossible => None,
        },
    });
    manifest.device = Some(plan.device.clone());
    manifest.targets.clone_from(&plan.targets);
    // A session that another host began came without its config; the trace holds it.
    manifest.config = (!opening.config.is_empty()).then(|| manifest::Config {
        text: opening.config.clone(),
        sha256: plan.config_sha256.clone(),
    });
    manifest.trace = Some(manifest::TraceFile {
        file: RAW_TRACE.to_owned(),
        size: trace.size,
        sha256: trace.sha256.clone(),
    });
    manifest.warnings.extend(plan.warnings.iter().cloned());
    manifest.warnings.extend(cause.warning());
}
