//! `dump --hprof`: heap files by `am dumpheap`, from the check to the finished folder. A file
//! counts as whole by its own end, never by an exit code; whatever came is kept, and the
//! device's copy goes last.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use time::OffsetDateTime;

use super::beside::With;
use super::findings::{self, Finding};
use super::finish::{EndedBy, Finished, LastJournal};
use super::java::{JavaError, JavaFile, JavaOptions, Steps};
use super::java_summary::{self, JavaSummary};
use super::manifest::{self, JAVA_HEAP, JavaDump, JavaFlags, JavaKind, Manifest, Original};
use super::names::NameOptions;
use super::output::{OutputFolder, default_name, file_name};
use super::plan::{self, JavaPlan, Plan};
use super::record::{
    self, Checked, RecordEvent, Recorded, Step, Tell, describe, first_target, session_events,
    worth_saying,
};
use crate::bytes::Bytes;
use crate::config::{HeapFileSpec, Notice};
use crate::device::Device;
use crate::eligibility::{
    self, Answer, AssessOptions, Assessment, DeviceFacts, Root, Scope, Startup,
};
use crate::error::{Classified, ErrorClass, Failure};
use crate::hprof::info;
use crate::session::{
    self, BootId, Controls, HEAP_FILES_VERSION, HeapFile, HeapFileFate, HeapFileKind, HeapFiles,
    Opening, RawTrace, Session, SessionError, SessionId, SnapshotWay, Store,
};
use crate::untrusted::shown_bytes;

/// What is to be dumped, and how.
#[derive(Debug, Clone)]
pub struct HeapFileOptions {
    /// What; targets as they were given.
    pub spec: HeapFileSpec,
    /// The folder for the results; a name of its own where `None`.
    pub output: Option<PathBuf>,
    /// Dump even where no target looks eligible.
    pub force: bool,
    /// Return once it is begun.
    pub detach: bool,
    /// Give a process up that writes nothing for so long.
    pub silence: Duration,
    /// Where names come from, for whoever looks at the files.
    pub names: NameOptions,
}

/// Why no heap file came.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HeapFileError {
    /// The activity manager refused.
    #[error("am dumpheap on {serial} refused {process}: {words}")]
    Refused {
        /// The device.
        serial: String,
        /// The process.
        process: String,
        /// What it said.
        words: String,
        /// It wants a debuggable app.
        not_debuggable: bool,
    },
    /// The app did not begin in time.
    #[error("{process} wrote nothing for {} s", after.as_secs())]
    Silent {
        /// The process.
        process: String,
        /// How long was waited.
        after: Duration,
    },
    /// The app is gone.
    #[error("{process} ended over its heap dump")]
    Died {
        /// The process.
        process: String,
    },
    /// It said it had, and there is nothing.
    #[error("{process} left no heap file on {serial}")]
    Nothing {
        /// The device.
        serial: String,
        /// The process.
        process: String,
    },
}

impl Classified for HeapFileError {
    fn class(&self) -> ErrorClass {
        match self {
            HeapFileError::Refused {
                not_debuggable: true,
                ..
            } => ErrorClass::NotEligible,
            _ => ErrorClass::Device,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            HeapFileError::Refused {
                not_debuggable: true,
                ..
            } => "not-debuggable",
            HeapFileError::Refused { .. } => "dumpheap-refused",
            HeapFileError::Silent { .. } => "dumpheap-silent",
            HeapFileError::Died { .. } => "dumpheap-died",
            HeapFileError::Nothing { .. } => "dumpheap-empty",
        }
    }

    fn help(&self) -> Option<String> {
        Some(match self {
            HeapFileError::Refused {
                not_debuggable: true,
                ..
            } => "use a debug build of the app (android:debuggable) or a userdebug phone; \
                  `heaptap dump` without --hprof needs a profileable app only"
                .to_owned(),
            HeapFileError::Refused { .. } => {
                "see whether the process still runs: heaptap apps".to_owned()
            }
            HeapFileError::Silent { .. } => {
                "its main thread is stuck, or it is frozen in the background: bring it to the \
                 front, or wait longer with --deadline; `heaptap dump` without --hprof needs no \
                 main thread"
                    .to_owned()
            }
            HeapFileError::Died { .. } | HeapFileError::Nothing { .. } => {
                "it may have run out of memory or storage over the dump: adb logcat -s \
                 ActivityManager ActivityThread"
                    .to_owned()
            }
        })
    }
}

/// Dumps.
///
/// # Errors
/// The failure of whatever stage could not go on; what was written is then still on the
/// device, and the failure names the command that fetches it.
pub async fn dump(
    device: &Device,
    store: &Store,
    options: &HeapFileOptions,
    controls: &mut Controls,
    tell: &Tell,
) -> Result<Recorded, Failure> {
    let wanted = options.output.clone().unwrap_or_else(|| {
        let target = first_target(&options.spec.targets);
        PathBuf::from(default_name(&target, OffsetDateTime::now_utc()))
    });
    let folder = OutputFolder::prepare(&wanted)?;
    let prepared = tokio::select! {
        prepared = prepare(device, options, &folder, tell) => prepared,
        () = session::stop_asked(controls) => Err(SessionError::Interrupted.into()),
    };
    let started = match prepared {
        // Nothing is begun that would have to be undone by half: it takes a moment.
        Ok(opening) => {
            let events = session_events(tell);
            let started =
                Session::start_heap_files(device.clone(), store.clone(), opening, events).await;
            started.map_err(Failure::from)
        }
        Err(failure) => Err(failure),
    };
    let session = match started {
        Ok(session) => session,
        Err(failure) => {
            folder.discard();
            return Err(failure);
        }
    };
    if options.detach {
        return Ok(Recorded::Detached {
            snapshots: SnapshotWay::Impossible,
            session: session.release(),
            output: folder.path().to_owned(),
        });
    }
    let finished = record::run_to_end(session, controls, tell).await?;
    Ok(Recorded::Finished(Box::new(finished)))
}

/// Everything before the device is told anything.
async fn prepare(
    device: &Device,
    options: &HeapFileOptions,
    folder: &OutputFolder,
    tell: &Tell,
) -> Result<Opening, Failure> {
    let facts = eligibility::facts(device).await?;
    let assess = AssessOptions {
        user: options.spec.user,
        startup: Startup::Allowed,
    };
    let spec = &options.spec;
    let assessment = eligibility::assess(device, &facts, &spec.targets, &assess).await?;
    if let Some(refusal) = assessment.heap_file_refusal()
        && !options.force
    {
        return Err(refusal.into());
    }
    let (spec, notices) = match facts.api() {
        Some(api) => spec.for_sdk(api)?,
        None => (spec.clone(), Vec::new()),
    };
    let id = SessionId::random();
    let files = files_of(&assessment, &spec, &id, options.force);
    if files.is_empty() {
        // Only --force comes here, and it cannot make a process.
        let nothing = assessment.nothing_runs().map(Failure::from);
        return Err(nothing.unwrap_or_else(|| SessionError::Interrupted.into()));
    }
    let opening = opening(device, options, id, &facts, &assessment, files, folder).await?;
    tell(RecordEvent::Checked(Checked {
        device: describe(&facts),
        findings: worth_saying(&assessment, Scope::Java, false),
        notices: notices.into_iter().map(|n: Notice| n.message).collect(),
        snapshots: SnapshotWay::Impossible,
        with: Vec::new(),
        output: folder.path().to_owned(),
    }));
    Ok(opening)
}

/// A file of each kind for each process that may be dumped.
fn files_of(
    assessment: &Assessment,
    spec: &HeapFileSpec,
    id: &SessionId,
    force: bool,
) -> Vec<HeapFile> {
    let mut files: Vec<HeapFile> = Vec::new();
    for report in assessment.targets.iter().flat_map(|t| &t.processes) {
        let pid = report.process.pid;
        if report.hprof == Answer::No && !force || files.iter().any(|f| f.pid == pid) {
            continue;
        }
        let kinds = [
            (HeapFileKind::Hprof, spec.hprof, spec.hprof_flags()),
            (
                HeapFileKind::MallocInfo,
                spec.malloc_info,
                spec.malloc_flags(),
            ),
        ];
        for (kind, wanted, flags) in kinds {
            if wanted {
                files.push(HeapFile {
                    kind,
                    pid,
                    process: report.process.name.clone(),
                    flags,
                    remote: session::file_path(id, pid, kind),
                    name: format!(
                        "{}.{pid}.{}",
                        file_name(&report.process.name),
                        kind.suffix()
                    ),
                });
            }
        }
    }
    files
}

async fn opening(
    device: &Device,
    options: &HeapFileOptions,
    id: SessionId,
    facts: &DeviceFacts,
    assessment: &Assessment,
    files: Vec<HeapFile>,
    folder: &OutputFolder,
) -> Result<Opening, Failure> {
    let boot_id = match &facts.boot_id {
        Some(boot_id) => BootId(boot_id.clone()),
        None => session::moment(device).await?.boot_id,
    };
    let mut pids: Vec<u32> = files.iter().map(|f| f.pid).collect();
    pids.dedup();
    let plan = Plan {
        device: plan::manifest_device(facts),
        targets: plan::manifest_targets(assessment, Scope::Java),
        steps: vec![plan::step("checked")],
        config_sha256: String::new(),
        duration_ms: None,
        size_limit: None,
        selinux_relaxed: false,
        shell_is_root: facts.root == Some(Root::Shell),
        known: assessment.known(facts),
        heaps: Vec::new(),
        perfetto_names: false,
        annotations: true,
        names: options.names.clone(),
        java: Some(JavaPlan {
            ends_when_done: true,
            watch: false,
            oom_wait_s: None,
            buffer_bytes: 0,
            dominators: false,
        }),
        with: With::default(),
    };
    let silence_ms = u64::try_from(options.silence.as_millis()).unwrap_or(u64::MAX);
    let dumps = u64::try_from(files.len()).unwrap_or(u64::MAX);
    Ok(Opening {
        version: HEAP_FILES_VERSION,
        serial: device.serial().to_owned(),
        hardware_serial: facts.hardware_serial.clone(),
        server: device.server().address(),
        boot_id,
        remote_path: session::log_path(&id),
        id,
        removable: true,
        time: OffsetDateTime::now_utc(),
        names: Vec::new(),
        pids,
        // The one that is being written is finished first.
        stop_limit_ms: silence_ms
            .saturating_mul(dumps.min(2))
            .saturating_add(WRITING_MS),
        write_period_ms: 0,
        snapshots: SnapshotWay::Impossible,
        labels_without_dumps: false,
        config: String::new(),
        output: folder.path().to_owned(),
        heap_files: Some(HeapFiles {
            files,
            silence_ms,
            am_waits: facts.api().is_none_or(HeapFileSpec::am_waits),
        }),
        plan: plan.to_value(),
    })
}

/// How long a phone may write at one file.
const WRITING_MS: u64 = 300_000;

/// What came of a file.
struct Came {
    file: HeapFile,
    fate: HeapFileFate,
    pulled: Option<RawTrace>,
    whole: bool,
}

/// Takes a session of heap files whose script has ended to its end.
///
/// # Errors
/// Where a file cannot be fetched or kept: the device's copy then stays. Where none came: why.
pub(super) async fn finish(
    mut session: Session,
    plan: Plan,
    ended_by: EndedBy,
    controls: &mut Controls,
    tell: &Tell,
) -> Result<Finished, Failure> {
    let output = session.opening().output.clone();
    let mut steps = plan.steps.clone();
    steps.extend(session.steps().iter().cloned().map(plan::step_at));
    steps.push(plan::step("trace-complete"));
    let fates = session.heap_file_fates().await?;
    let wanted = session.heap_files()?.clone();
    let mut came = Vec::new();
    for file in wanted.files {
        let mut fate = fates.get(&file.remote).cloned().unwrap_or_default();
        fate.complaint = fate.complaint.map(|words| shown_bytes(words.as_bytes()));
        tokio::select! {
            settled = session.settle_heap_file(&file, &fate) => settled?,
            () = session::stop_asked(controls) => {
                return Err(SessionError::NotFetched {
                    serial: session.device().serial().to_owned(),
                    id: session.id().clone(),
                    why: "it was interrupted".to_owned(),
                }
                .into());
            }
        }
        let goal = output.join(&file.name);
        let pulled = session.pull_heap_file(&file, &goal, controls).await?;
        let whole = pulled.is_some() && is_whole(&goal, file.kind).unwrap_or(false);
        came.push(Came {
            file,
            fate,
            pulled,
            whole,
        });
    }
    steps.push(plan::step("pulled"));
    if came.iter().all(|c| c.pulled.is_none()) {
        let failure = why_nothing(&session, &came, Duration::from_millis(wanted.silence_ms));
        session.remove_remote().await;
        session.forget()?;
        // It holds nothing, or what somebody else put there.
        let _ = std::fs::remove_dir(&output);
        return Err(failure);
    }
    tell(RecordEvent::Step(Step::Converting));
    let silence = Duration::from_millis(wanted.silence_ms);
    let mut manifest = describe_session(&session, &plan);
    manifest.dumps.java = dumps(&came, &output);
    let looked = look(&manifest.dumps.java, &output, &plan.names, controls).await;
    let unread = looked.iter().any(|l| matches!(l, Looked::Unread(_)));
    manifest.warnings = came
        .iter()
        .filter_map(|c| warning(c, silence, &manifest.dumps.java))
        .collect();
    let incomplete = came.iter().any(|c| !c.whole);
    let mut classes: Vec<ErrorClass> = Vec::new();
    classes.extend(incomplete.then_some(ErrorClass::Incomplete));
    let mut java_heaps = Vec::new();
    for (dump, looked) in manifest.dumps.java.iter_mut().zip(looked) {
        let findings = match looked {
            Looked::Read(summary, findings) => {
                dump.totals = Some(summary.totals);
                java_heaps.push(*summary);
                of_cut(findings, dump.flags.truncated)
            }
            Looked::Unread(error) => vec![unreadable(&error, dump)],
            Looked::NotWaitedFor => Vec::new(),
        };
        for finding in findings {
            dump.complete &= finding.class.is_none() || findings::is_of_names(finding.kind);
            classes.extend(finding.class);
            manifest.warnings.push(manifest::Warning {
                kind: finding.kind.to_owned(),
                message: finding.message,
                help: finding.help,
                pid: Some(dump.pid),
                dumps: vec![dump.index],
            });
        }
    }
    steps.push(plan::step("converted"));
    manifest.steps = steps;
    let class = ErrorClass::first_of(classes);
    manifest.outcome = manifest::Outcome {
        exit_code: class.map_or(0, ErrorClass::exit_code),
        complete: class.is_none(),
        ended_by: ended(ended_by).map(str::to_owned),
    };
    manifest.write(&output)?;
    let id = session.id().clone();
    // Nobody knows yet what a file is worth that could not be read: the device's copy stays, and
    // the journal with it, for `collect` to try again.
    if !unread {
        session.remove_remote().await;
        session.forget()?;
    }
    Ok(Finished {
        session: id,
        output,
        manifest,
        heaps: Vec::new(),
        java_heaps,
        java: plan.java,
        class,
        journal: LastJournal::default(),
    })
}

fn ended(by: EndedBy) -> Option<&'static str> {
    match by {
        EndedBy::Itself | EndedBy::Complete => Some("done"),
        EndedBy::Interrupted => Some("interrupted"),
        EndedBy::Stopped => Some("stopped"),
        EndedBy::Reboot => Some("lost"),
        EndedBy::Unknown => None,
    }
}

fn describe_session(session: &Session, plan: &Plan) -> Manifest {
    let opening = session.opening();
    Manifest {
        session: Some(manifest::Session {
            id: opening.id.to_string(),
            remote_path: opening.remote_path.clone(),
            boot_id: Some(opening.boot_id.0.clone()),
            snapshots_by: None,
        }),
        device: Some(plan.device.clone()),
        targets: plan.targets.clone(),
        ..Manifest::default()
    }
}

/// One entry for each HPROF, and for malloc's words where there is none beside them.
fn dumps(came: &[Came], output: &Path) -> Vec<JavaDump> {
    let mut dumps: Vec<JavaDump> = Vec::new();
    let malloc: BTreeMap<u32, String> = came
        .iter()
        .filter(|c| c.file.kind == HeapFileKind::MallocInfo && c.pulled.is_some())
        .map(|c| (c.file.pid, c.file.name.clone()))
        .collect();
    for c in came {
        let is_hprof = c.file.kind == HeapFileKind::Hprof;
        let alone = !came
            .iter()
            .any(|o| o.file.kind == HeapFileKind::Hprof && o.file.pid == c.file.pid);
        let Some(pulled) = c.pulled.as_ref().filter(|_| is_hprof || alone) else {
            continue;
        };
        dumps.push(JavaDump {
            kind: JavaKind::Hprof,
            index: u32::try_from(dumps.len()).unwrap_or(u32::MAX),
            label: None,
            time_ns: None,
            time: is_hprof
                .then(|| written_at(&output.join(&c.file.name)))
                .flatten(),
            pid: u64::from(c.file.pid),
            process: c.file.process.clone(),
            heap: JAVA_HEAP.to_owned(),
            file: is_hprof.then(|| c.file.name.clone()),
            dominators: None,
            malloc_info: malloc.get(&c.file.pid).cloned(),
            original: is_hprof.then(|| Original {
                size: pulled.size,
                sha256: pulled.sha256.clone(),
            }),
            reason: None,
            totals: None,
            flags: JavaFlags {
                truncated: !c.whole,
                missing_packets: 0,
            },
            complete: c.whole,
        });
    }
    dumps
}

/// What a look into a file came to.
enum Looked {
    /// It was read: what it holds, and what is to be known of it.
    Read(Box<JavaSummary>, Vec<Finding>),
    /// It cannot be read.
    Unread(JavaError),
    /// The user did not want to wait, or there is no HPROF.
    NotWaitedFor,
}

/// A look into each file: how large the heap is, and who keeps most of it.
async fn look(
    dumps: &[JavaDump],
    folder: &Path,
    names: &NameOptions,
    controls: &mut Controls,
) -> Vec<Looked> {
    let mut looked = Vec::new();
    let mut waits = true;
    for dump in dumps {
        let Some(file) = dump.file.as_ref().filter(|_| waits) else {
            looked.push(Looked::NotWaitedFor);
            continue;
        };
        let (dump, path, names) = (dump.clone(), folder.join(file), names.clone());
        let reading = tokio::task::spawn_blocking(move || look_into(dump, &path, names));
        tokio::select! {
            read = reading => looked.push(match read {
                Ok(Ok((summary, findings))) => Looked::Read(Box::new(summary), findings),
                Ok(Err(error)) => Looked::Unread(error),
                Err(panic) => std::panic::resume_unwind(panic.into_panic()),
            }),
            () = session::stop_asked(controls) => {
                waits = false;
                looked.push(Looked::NotWaitedFor);
            }
        }
    }
    looked
}

fn look_into(
    mut dump: JavaDump,
    path: &Path,
    names: NameOptions,
) -> Result<(JavaSummary, Vec<Finding>), JavaError> {
    let options = JavaOptions {
        names,
        ..JavaOptions::default()
    };
    let mut file = JavaFile::open(path, options, &Steps::default())?;
    let heap = file.read(0)?;
    let dominators = heap.dominators();
    let reached = heap.paths().order().iter().copied();
    dump.totals = Some(java_summary::totals(&heap.graph, reached));
    let summary = java_summary::summarize(&dump, &heap.graph, dominators);
    Ok((summary, heap.findings))
}

/// What was found in a file. That one breaks off is told with its cause (`heap-file-cut`), and
/// what the cut spoiled is missing from the recording rather than damaged here.
fn of_cut(mut findings: Vec<Finding>, cut: bool) -> Vec<Finding> {
    if cut {
        findings.retain(|f| !CONSEQUENCES.contains(&f.kind));
        for finding in &mut findings {
            if finding.class == Some(ErrorClass::BadInput) && !findings::is_of_names(finding.kind) {
                finding.class = Some(ErrorClass::Incomplete);
            }
        }
    }
    findings
}

/// Kinds that a file has which breaks off.
const CONSEQUENCES: [&str; 3] = ["hprof-truncated", "heap-damaged", "roots-missing"];

fn unreadable(error: &JavaError, dump: &JavaDump) -> Finding {
    let of_file = matches!(error, JavaError::Import(_) | JavaError::Hprof { .. });
    Finding {
        kind: error.kind(),
        // What the app did not write to its end need not be readable.
        class: Some(match of_file && dump.flags.truncated {
            true => ErrorClass::Incomplete,
            false => error.class(),
        }),
        message: format!(
            "{}: {error}; the device's copy was left where it is",
            dump.process
        ),
        help: error.help(),
        pid: Some(dump.pid),
    }
}

/// The wall time in the header: milliseconds behind the magic and the size of ids.
fn written_at(path: &Path) -> Option<OffsetDateTime> {
    let mut head = [0; 64];
    let mut file = std::fs::File::open(path).ok()?;
    let read = file.read(&mut head).ok()?;
    let magic = head[..read].iter().position(|b| *b == 0)?;
    let millis: [u8; 8] = head.get(magic + 5..magic + 13)?.try_into().ok()?;
    let nanos = i128::from(u64::from_be_bytes(millis)) * 1_000_000;
    OffsetDateTime::from_unix_timestamp_nanos(nanos).ok()
}

/// Whether a file has its beginning and its end. Of an HPROF the records tell, one by one: the
/// bytes of its last record may stand anywhere in what objects hold.
fn is_whole(path: &Path, kind: HeapFileKind) -> std::io::Result<bool> {
    match kind {
        HeapFileKind::Hprof => Ok(info::is_whole(&Bytes::map(path)?)),
        HeapFileKind::MallocInfo => {
            let words = std::fs::read(path)?;
            Ok(words.trim_ascii_end().ends_with(b"</malloc>"))
        }
    }
}

/// Why not one file came: the first cause that says something.
fn why_nothing(session: &Session, came: &[Came], silence: Duration) -> Failure {
    let serial = session.device().serial().to_owned();
    let told = came.iter().find(|c| c.fate.complaint.is_some());
    let late = came.iter().find(|c| c.fate.late);
    let error = match (told, late, came.first()) {
        (Some(c), _, _) => refused(serial, c),
        (None, Some(c), _) => HeapFileError::Silent {
            process: c.file.process.clone(),
            after: silence,
        },
        (None, None, Some(c)) if c.fate.gone => HeapFileError::Died {
            process: c.file.process.clone(),
        },
        (None, None, first) => HeapFileError::Nothing {
            serial,
            process: first.map_or_else(String::new, |c| c.file.process.clone()),
        },
    };
    error.into()
}

fn refused(serial: String, came: &Came) -> HeapFileError {
    let words = came.fate.complaint.clone().unwrap_or_default();
    HeapFileError::Refused {
        serial,
        process: came.file.process.clone(),
        not_debuggable: words.contains("SecurityException") || words.contains("not debuggable"),
        words,
    }
}

/// What is missing of a file, where something is.
fn warning(came: &Came, silence: Duration, dumps: &[JavaDump]) -> Option<manifest::Warning> {
    if came.whole {
        return None;
    }
    let process = &came.file.process;
    let words = came.fate.complaint.as_deref();
    let (kind, message, help) = match (&came.pulled, words) {
        (None, Some(words)) => (
            "dumpheap-refused",
            format!("{process}: am dumpheap refused: {words}"),
            "see whether it still runs and is debuggable: heaptap check",
        ),
        (None, None) if came.fate.late => (
            "dumpheap-silent",
            format!("{process} wrote nothing for {} s", silence.as_secs()),
            "its main thread is stuck, or it is frozen: bring it to the front and dump again",
        ),
        (None, None) if came.fate.gone => (
            "dumpheap-died",
            format!("{process} ended over its heap dump"),
            "start it and dump again; adb logcat -s ActivityManager libc may tell why",
        ),
        (None, None) if !came.fate.begun => (
            "dumpheap-skipped",
            format!("{process} was not dumped: the dump was ended before its turn"),
            "dump it again",
        ),
        (None, None) => (
            "dumpheap-empty",
            format!("{process} left no heap file"),
            "adb logcat -s ActivityManager ActivityThread may tell why",
        ),
        (Some(_), _) => (
            "heap-file-cut",
            format!(
                "{}: the file breaks off: the app or its phone stopped writing",
                came.file.name
            ),
            "see whether the phone's storage is full or the app died over it, and dump again",
        ),
    };
    let pid = u64::from(came.file.pid);
    Some(manifest::Warning {
        kind: kind.to_owned(),
        message,
        help: Some(help.to_owned()),
        pid: Some(pid),
        dumps: dumps
            .iter()
            .filter(|d| d.pid == pid)
            .map(|d| d.index)
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dump(truncated: bool) -> JavaDump {
        JavaDump {
            kind: JavaKind::Hprof,
            index: 0,
            label: None,
            time_ns: None,
            time: None,
            pid: 7,
            process: "com.example.app".to_owned(),
            heap: JAVA_HEAP.to_owned(),
            file: Some("app.hprof".to_owned()),
            dominators: None,
            malloc_info: None,
            original: None,
            reason: None,
            totals: None,
            flags: JavaFlags {
                truncated,
                missing_packets: 0,
            },
            complete: !truncated,
        }
    }

    #[test]
    fn an_end_among_the_bytes_of_an_object_is_no_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.hprof");
        let whole = |bytes: &[u8], kind| {
            std::fs::write(&path, bytes).unwrap();
            is_whole(&path, kind).unwrap()
        };
        let end = [0x2c, 0, 0, 0, 0, 0, 0, 0, 0];
        let mut file = b"JAVA PROFILE 1.0.3\0\0\0\0\x04\0\0\0\0\0\0\0\0".to_vec();
        file.extend([0x1c, 0, 0, 0, 0, 0, 0, 0, 12]);
        file.extend(end);
        assert!(!whole(&file, HeapFileKind::Hprof), "3 bytes are to come");
        file.extend([0; 3]);
        assert!(!whole(&file, HeapFileKind::Hprof), "it has no end");
        file.extend(end);
        assert!(whole(&file, HeapFileKind::Hprof));
        assert!(whole(b"</heap></malloc>\n", HeapFileKind::MallocInfo));
        assert!(!whole(b"<malloc>", HeapFileKind::MallocInfo));
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_read_is_told() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("app.hprof"), "JAVA PROFILE 1.0.3\0\0").unwrap();
        let (_sender, mut controls) = tokio::sync::mpsc::unbounded_channel();
        let names = NameOptions::default();
        let looked = look(&[dump(false)], folder.path(), &names, &mut controls).await;
        let [Looked::Unread(error)] = looked.as_slice() else {
            panic!("it was read");
        };
        let whole = unreadable(error, &dump(false));
        assert_eq!(whole.class, Some(ErrorClass::BadInput), "{error}");
        let cut = unreadable(error, &dump(true));
        assert_eq!(cut.class, Some(ErrorClass::Incomplete), "{error}");
    }
}
