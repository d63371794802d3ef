//! `dump --hprof`: heap files by `am dumpheap`, from the check to the script on the device.
//! `finish` handles the results.

use std::path::PathBuf;
use std::time::Duration;

use time::OffsetDateTime;

use super::advice;
use super::attempt::{describe, first_target, run_to_end, worth_saying};
use super::dump;
use super::events::{Checked, EventHandler, RecordEvent, session_events};
use super::outcome::Recorded;
use super::plan::{self, JavaPlan, Plan};
use crate::names::options::NameOptions;
use heaptap_adb::Device;
use heaptap_base::error::Failure;
use heaptap_capture::config::{HeapFileSpec, Targets};
use heaptap_capture::eligibility::{
    self, Answer, AssessOptions, Assessment, DeviceFacts, Scope, Startup,
};
use heaptap_capture::session::{
    self, CaptureError, Controls, HEAP_FILES_VERSION, HeapFile, HeapFileKind, HeapFiles, Session,
    SessionHeader, SessionId, SnapshotMethod, Store,
};
use heaptap_results::file_names::{default_name, file_name};
use heaptap_results::output::OutputDirectory;

/// Options of a heap file dump.
#[derive(Debug, Clone)]
pub struct HeapFileOptions {
    /// Files to dump, with targets as given by the user.
    pub spec: HeapFileSpec,
    /// Directory for the results; `None` for a default name.
    pub output: Option<PathBuf>,
    /// Dump even if no target is eligible.
    pub force: bool,
    /// Return once it is begun.
    pub detach: bool,
    /// Time limit for a process that writes nothing.
    pub silence: Duration,
    /// Sources of symbols, for analyzing the files.
    pub names: NameOptions,
}

/// Default of [`HeapFileOptions::silence`]. An app that first collects garbage and runs finalizers
/// takes long.
pub const SILENCE: Duration = Duration::from_secs(60);

impl HeapFileOptions {
    /// Returns options that dump an HPROF into `output`.
    pub fn hprof(targets: Targets, output: PathBuf, names: NameOptions) -> HeapFileOptions {
        HeapFileOptions {
            spec: HeapFileSpec::hprof(targets),
            output: Some(output),
            force: false,
            detach: false,
            silence: SILENCE,
            names,
        }
    }
}

/// Dumps heap files.
///
/// # Errors
/// Returns the error of the stage that failed; written data remain on the device, and the error
/// names the command that fetches them.
pub async fn dump(
    device: &Device,
    store: &Store,
    options: &HeapFileOptions,
    controls: &mut Controls,
    on_event: &EventHandler,
) -> Result<Recorded, Failure> {
    let id = SessionId::random();
    let wanted = options.output.clone().unwrap_or_else(|| {
        let target = first_target(&options.spec.targets);
        PathBuf::from(default_name(&target, OffsetDateTime::now_utc(), &id))
    });
    let directory = OutputDirectory::prepare(&wanted)?;
    let prepared = tokio::select! {
        prepared = prepare(device, options, id, &directory, on_event) => prepared,
        () = session::stop_asked(controls) => Err(CaptureError::interrupted().into()),
    };
    let started = match prepared {
        // This is short, and nothing needs to be undone halfway.
        Ok(header) => {
            let events = session_events(on_event);
            match Session::create(device.clone(), store.clone(), header, events) {
                Ok(session) => {
                    let (id, output) = (session.id().clone(), session.header().output.clone());
                    let started = session.start_heap_files().await.map_err(Failure::from);
                    started.map_err(|failure| advice::with_stop_hint(failure, store, &id, &output))
                }
                Err(error) => Err(error.into()),
            }
        }
        Err(failure) => Err(failure),
    };
    let session = match started {
        Ok(session) => session,
        Err(failure) => {
            directory.discard();
            return Err(failure);
        }
    };
    if options.detach {
        return Ok(Recorded::Detached {
            snapshots: SnapshotMethod::Impossible,
            session: session.release(),
            output: directory.path().to_owned(),
        });
    }
    let finished = run_to_end(session, dump::for_label(), controls, on_event).await?;
    Ok(Recorded::Finished(Box::new(finished)))
}

/// Performs all steps before the first change on the device.
async fn prepare(
    device: &Device,
    options: &HeapFileOptions,
    id: SessionId,
    directory: &OutputDirectory,
    on_event: &EventHandler,
) -> Result<SessionHeader, Failure> {
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
        return Err(refusal);
    }
    if let Some(api) = facts.api() {
        spec.check_sdk(api)?;
    }
    let files = files_of(&assessment, spec, &id, options.force);
    if files.is_empty() {
        // Only reached with --force, which cannot start a process.
        let nothing = assessment.nothing_runs();
        return Err(nothing.unwrap_or_else(|| CaptureError::interrupted().into()));
    }
    let header = header(device, options, id, &facts, &assessment, files, directory).await?;
    on_event(RecordEvent::Checked(Checked {
        device: describe(&facts),
        findings: worth_saying(&assessment, Scope::Java, false),
        notices: Vec::new(),
        snapshots: SnapshotMethod::Impossible,
        with: Vec::new(),
        output: directory.path().to_owned(),
        duration_ms: None,
    }));
    Ok(header)
}

/// Returns one file of each kind for each process that can be dumped.
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

async fn header(
    device: &Device,
    options: &HeapFileOptions,
    id: SessionId,
    facts: &DeviceFacts,
    assessment: &Assessment,
    files: Vec<HeapFile>,
    directory: &OutputDirectory,
) -> Result<SessionHeader, Failure> {
    let boot_id = plan::boot_id(device, facts).await?;
    let mut pids: Vec<u32> = files.iter().map(|f| f.pid).collect();
    pids.dedup();
    let plan = Plan {
        targets: plan::manifest_targets(assessment, Scope::Java),
        steps: vec![plan::step("checked")],
        known: assessment.preflight_facts(facts),
        names: options.names.clone(),
        java: Some(JavaPlan {
            ends_when_done: true,
            watch: false,
            oom_wait_s: None,
            buffer_bytes: 0,
            dominators: false,
        }),
        ..Plan::on(facts)
    };
    let silence_ms = u64::try_from(options.silence.as_millis()).unwrap_or(u64::MAX);
    let dumps = u64::try_from(files.len()).unwrap_or(u64::MAX);
    let remote_path = session::log_path(&id);
    Ok(SessionHeader {
        version: HEAP_FILES_VERSION,
        pids,
        // The current file is finished first.
        stop_limit_ms: silence_ms
            .saturating_mul(dumps.min(2))
            .saturating_add(WRITING_MS),
        write_period_ms: 0,
        heap_files: Some(HeapFiles { files, silence_ms }),
        ..SessionHeader::on(
            device,
            id,
            facts.hardware_serial.clone(),
            boot_id,
            remote_path,
            directory.path(),
            plan.to_value(),
        )
    })
}

/// Time limit for writing one file.
const WRITING_MS: u64 = 300_000;
