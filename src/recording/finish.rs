//! The end of every recording: fetch, convert, bind labels, write the manifest, and only then
//! remove the copy on the device and forget the session.

mod heap_files;

pub use self::heap_files::HeapFileError;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::advice;
use super::blocking::blocking;
use super::causes::{self, Cause};
use super::companion;
use super::companion_options::CompanionOptions;
use super::events::{EventHandler, RecordEvent, Step, warn};
use super::outcome::{EndedBy, Finished, LastJournal};
use super::plan::{self, Plan, describe};
use crate::heaps::java::DIRECTORY;
use crate::names::device_libs::{DeviceLibs, Interrupt, PullLibs};
use crate::names::frames::LookupControl;
use crate::names::options::NameOptions;
use crate::names::packet_files;
use crate::names::r8_mappings::R8Mappings;
use crate::recording::conversion::convert::{Converted, Input, Plain, Request};
use crate::recording::conversion::error::ConvertError;
use crate::recording::conversion::tracked;
use crate::recording::conversion::tracked::Written;
use heaptap_base::directory::{RAW_TRACE, SYMBOLIZED_TRACE};
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_capture::eligibility;
use heaptap_capture::error::kind;
use heaptap_capture::session::{
    self, CaptureError, Controls, Owner, RawTrace, Session, SessionHeader, SessionState,
    SnapshotMethod, part_prefix, release, remove_parts,
};
use heaptap_input::ImportError;
use heaptap_model::profile::Health;
use heaptap_results::findings::{self, Finding};
use heaptap_results::labels::{self, DumpMoment};
use heaptap_results::manifest::{self, DumpId, Manifest};
use heaptap_results::output::{is_own, own};
use heaptap_results::publication::Staging;

/// Finishes a session whose perfetto has ended. `names` adds to the symbol sources of the
/// recording.
///
/// # Errors
/// Returns an error if the trace cannot be fetched, stored or read; the copy on the device is then
/// kept.
pub async fn finish(
    session: Session,
    ended_by: EndedBy,
    names: Option<&NameOptions>,
    controls: &mut Controls,
    on_event: &EventHandler,
) -> Result<Finished, Failure> {
    let id = session.id().clone();
    let (store, output) = (session.store().clone(), session.header().output.clone());
    let finished = finish_session(session, ended_by, names, controls, on_event).await;
    finished.map_err(|failure| advice::with_stop_hint(failure, &store, &id, &output))
}

async fn finish_session(
    mut session: Session,
    ended_by: EndedBy,
    names: Option<&NameOptions>,
    controls: &mut Controls,
    on_event: &EventHandler,
) -> Result<Finished, Failure> {
    let output = session.header().output.clone();
    let id = session.id().clone();
    // First, because the rest can fail, and a later process cannot tell.
    match ended_by {
        EndedBy::Reboot => session.note_rebooted()?,
        EndedBy::Itself => session.note_over()?,
        _ => {}
    }
    let existing = own(&output, &id)?;
    let keep = |source| CaptureError::keep(&id, &output, source);
    remove_parts(&output, &id).map_err(keep)?;
    companion::sweep(&output);
    let mut plan = Plan::read(&session.header().plan)?;
    if let Some(names) = names {
        plan.names = plan.names.with(names);
    }
    if session.header().heap_files.is_some() {
        return heap_files::finish(session, plan, ended_by, existing, controls, on_event).await;
    }
    let mut steps = plan.steps.clone();
    steps.extend(session.steps().iter().cloned().map(plan::step_at));
    steps.push(plan::step("trace-complete"));
    let has_restarted = ended_by == EndedBy::Reboot;
    if let Some(foreign) = companion::complete(&session, &plan, has_restarted).await {
        let text = format!(
            "{} is not from this session, so events from the log are not added",
            foreign.display()
        );
        warn(on_event, text);
    }
    let trace = match fetch(&mut session, controls).await {
        Ok(trace) => trace,
        Err(error) if error.is(&[kind::TRACE_GONE, kind::REJECTED]) => {
            return Err(without_file(session, &plan, ended_by, error).await);
        }
        Err(error) => return Err(error.into()),
    };
    if let Some(at) = trace.received_at {
        steps.push(plan::step_at(("received", at)));
    }
    steps.push(plan::step("pulled"));
    on_event(RecordEvent::Step(Step::Converting));
    let staging = Staging::new(&output, &part_prefix(&id)).map_err(keep)?;
    let converted = convert(&session, &plan, &trace, staging.path(), controls, on_event).await;
    let mut converted = converted?;
    if plan.companions.allocations {
        // The trace intentionally contains no heap.
        let told = |finding: &Finding| !tracked::is_of_trace(finding.kind);
        converted.findings.retain(told);
    }
    steps.push(plan::step("converted"));
    if has_no_java_dump(&converted, trace.contents.size)
        && let Some(none) = no_error_came(&session, &plan, ended_by)
    {
        // Companion files do not belong to anything now.
        let _ = std::fs::remove_file(&trace.path);
        drop(staging);
        if session.remove_remote().await {
            session.forget()?;
        }
        let _ = std::fs::remove_dir(&output);
        return Err(none.into());
    }

    let session_state = session.reread()?.clone();
    let whole = !converted.health.is_empty() && causes::is_whole(&converted.health);
    let lasted = session.duration_bounds();
    let cause = Cause::new(
        ended_by,
        &session_state,
        &plan,
        trace.contents.size,
        lasted,
        whole,
    );
    // heapprofd was not used, so targets are not empty because of it.
    let empty = match plan.companions.allocations {
        true => Vec::new(),
        false => causes::empty_targets(&plan, &converted),
    };
    let log = if empty.is_empty() && cause != Cause::Lost && converted.class().is_none() {
        Vec::new()
    } else {
        // It only explains: for a disconnected device, the earlier facts are used.
        eligibility::read_log(session.device(), plan.known.clock_s)
            .await
            .unwrap_or_default()
    };
    let cause = cause.with_log(&log);
    let why_empty = causes::why_empty(&plan, &converted, cause, &log, &empty);
    causes::settle(&mut converted, cause, !why_empty.is_empty());
    causes::name_kills(session.device(), &mut converted).await;
    let beside = companion_section(&output, plan.companions).await;
    let tracked = tracked(&session, &plan, beside.as_ref(), staging.path()).await?;
    let sampled = converted.dumps.iter().any(|d| d.file.is_some())
        || converted.java.iter().any(|d| d.file.is_some())
        || tracked.as_ref().is_some_and(Written::any);
    let class = if converted.health.is_empty() {
        // Without packets, nothing was recorded, whatever ended it.
        Some(ErrorClass::Empty)
    } else {
        causes::class(&converted, cause, sampled && !empty.is_empty())
    };
    let class = match &tracked {
        Some(tracked) => tracked.class(class, beside.as_ref()),
        None => class,
    };

    let mut manifest = describe(&session_state.header, &plan, Some(&trace));
    manifest.steps = steps;
    manifest.outcome = manifest::Outcome::new(class, cause.word());
    manifest
        .warnings
        .extend(cause.warning(sampled, plan.java.is_some()));
    manifest.warnings.extend(why_empty);
    manifest.warnings.extend(converted.warnings());
    let unsampled = findings::heaps_without_samples(&plan.heaps, &converted.dumps);
    manifest
        .warnings
        .extend(unsampled.map(Finding::into_warning));
    manifest.symbolization = Some(converted.symbolization);
    manifest.profiles = Some(plan.pprof().into());
    manifest.dumps = manifest::Dumps {
        native: converted.dumps,
        java: converted.java,
    };
    manifest.java_allocations = manifest::JavaAllocations::from_dumps(&manifest.dumps.native);
    if let Some(tracked) = tracked {
        manifest.java_allocations = Some(tracked.section);
        manifest.warnings.extend(tracked.warnings);
    }
    bind_labels(&mut manifest, &session_state, plan.companions.allocations);
    let places = (output.as_path(), staging.path());
    let collections = collections(places, &plan, &trace, &mut manifest, on_event).await;
    if plan.companions.java && is_own(&output.join(DIRECTORY), &id) {
        let directory = output.clone();
        let put = blocking(move || companion::put_java_names(&directory)).await;
        let unwritten = put.err().map(|error| findings::packets_unwritten(&error));
        manifest
            .warnings
            .extend(unwritten.map(Finding::into_warning));
    }
    manifest.companion = companion_section(&output, plan.companions).await;
    if let Some(beside) = &mut manifest.companion {
        beside.collections = collections;
        manifest.warnings.extend(companion::warnings(beside));
    }
    note_startup(&mut manifest);
    let mut packets = converted.packets;
    if let Err(error) = manifest.write(staging.path()) {
        // The manifest is more important than a copy of the trace.
        if !packet_files::make_room(staging.path()) {
            return Err(error.into());
        }
        packets.retain(|name| *name != SYMBOLIZED_TRACE);
        manifest.warnings.push(without_room());
        manifest.write(staging.path())?;
    }
    // Fetching and converting took time: the directory could have been removed, and created again
    // by another process. The copy on the device is removed only if the results are in their place.
    own(&output, &id)?;
    let published = blocking(move || staging.publish_synced(existing)).await;
    published.map_err(|unpublished| unpublished.of_session(&id))?;
    release(&output.join(DIRECTORY), &Owner::Session(id.clone()));
    companion::remove_empty(&output);

    if plan.selinux_relaxed && session.await_guard().await {
        on_event(RecordEvent::Step(Step::Selinux { enforcing: true }));
    }
    let journal = LastJournal::after_removal(session, controls, on_event).await;
    Ok(Finished {
        session: id,
        output,
        manifest,
        packets,
        heaps: converted.heaps,
        java_heaps: converted.java_heaps,
        java: plan.java,
        no_report: plan.no_report,
        class,
        journal,
    })
}

/// Returns the failure of a session without a trace. The session is forgotten, because there is
/// nothing to collect later, unless a restart of the device is the cause.
async fn without_file(
    mut session: Session,
    plan: &Plan,
    ended_by: EndedBy,
    mut error: CaptureError,
) -> Failure {
    let mut labels = None;
    if error.is(&[kind::TRACE_GONE]) {
        if let Some(lost) = causes::lost_to_restart(&session, ended_by).await {
            return lost;
        }
        error = no_error_came(&session, plan, ended_by).unwrap_or(error);
        // Without the newest labels, the known ones are told.
        let _ = session.reread();
        labels = advice::of_lost_labels(session.state());
    }
    let output = session.header().output.clone();
    companion::remove_unwritten(&output);
    if let Err(error) = session.forget() {
        return error.into();
    }
    // It is empty, or contains files of others.
    let _ = std::fs::remove_dir(&output);
    let mut failure = Failure::from(error);
    failure.hints.extend(labels);
    failure
}

/// Writes the collections of the trace, which reads all of it again. Returns their file, and adds new
/// warnings to the manifest.
async fn collections(
    (output, goal): (&Path, &Path),
    plan: &Plan,
    trace: &RawTrace,
    manifest: &mut Manifest,
    on_event: &EventHandler,
) -> Option<String> {
    let (directory, goal) = (output.to_owned(), goal.to_owned());
    let (companions, path) = (plan.companions, trace.path.clone());
    let written = tokio::task::spawn_blocking(move || {
        companion::write_collections(&directory, &goal, companions, &path)
    });
    match written.await {
        Ok(Ok((file, found))) => {
            let warnings = &mut manifest.warnings;
            let is_known = |found: &Finding| warnings.iter().any(|known| known.kind == found.kind);
            let new: Vec<Finding> = found.into_iter().filter(|found| !is_known(found)).collect();
            warnings.extend(new.into_iter().map(Finding::into_warning));
            file
        }
        Ok(Err(why)) => {
            warn(on_event, why);
            None
        }
        Err(_) => None,
    }
}

fn without_room() -> manifest::Warning {
    let message = "no space left for symbolized-trace";
    let warning = manifest::Warning::new(findings::PACKETS_UNWRITTEN, message);
    warning.with_help("free space there, then run `heaptap symbolize` on the directory")
}

/// Returns the companion data of the manifest; its timeline can have hundreds of megabytes.
async fn companion_section(
    directory: &Path,
    companions: CompanionOptions,
) -> Option<manifest::Companions> {
    let directory = directory.to_owned();
    blocking(move || companion::section(&directory, companions)).await
}

/// Returns the profiles of tracked allocations; `None` if none were requested.
async fn tracked(
    session: &Session,
    plan: &Plan,
    beside: Option<&manifest::Companions>,
    goal: &Path,
) -> Result<Option<Written>, Failure> {
    if !plan.companions.allocations {
        return Ok(None);
    }
    let output = session.header().output.clone();
    let files = beside.map_or(&[][..], |beside| &beside.files);
    let seen = &session.state().seen;
    let lists = tracked::lists(files, |pid| {
        let target = plan.targets.iter().find(|t| t.pid == Some(pid));
        let name = seen.get(&pid).or(target.map(|t| &t.name));
        name.cloned().unwrap_or_default()
    });
    let (names, goal) = (plan.names.clone(), goal.to_owned());
    // Each list has tens of megabytes.
    let written = blocking(move || {
        let maps = R8Mappings::open_what_opens(&names);
        tracked::write(&output, &goal, lists, &maps)
    });
    let written = written
        .await
        .map_err(|source| CaptureError::keep(session.id(), &session.header().output, source))?;
    let mut written = written;
    if let Some(beside) = beside {
        written.note_end(beside);
    }
    Ok(Some(written))
}

/// Returns whether a trace of that size shows that nothing was dumped: not if it cannot be read, is
/// damaged, or has packets of a dump that cannot be read.
fn has_no_java_dump(converted: &Converted, size: u64) -> bool {
    let is_read = size == 0 || !converted.health.is_empty();
    let has_trouble = |health: &Health| {
        health.heap_graph_packets > 0 || health.damage_count > 0 || health.ends_early
    };
    converted.java.is_empty() && is_read && !converted.health.iter().any(has_trouble)
}

/// Returns the error for an OutOfMemoryError that did not occur. Returns `None` if none was waited
/// for, or not until the end: then another cause has to be told.
fn no_error_came(session: &Session, plan: &Plan, ended_by: EndedBy) -> Option<CaptureError> {
    let waited_s = plan.java.as_ref()?.oom_wait_s?;
    if ended_by == EndedBy::Interrupted {
        return Some(CaptureError::interrupted());
    }
    let had_time = causes::in_full(
        Duration::from_secs(waited_s),
        session.duration_bounds(),
        true,
    );
    let message = format!("no OutOfMemoryError occurred within {waited_s} s");
    let failure = Failure::new(ErrorClass::Empty, "no-out-of-memory", message).with_help(
        "wait longer with `--oom-wait-seconds`; only the first OutOfMemoryError of a debuggable or \
         profileable app counts",
    );
    (ended_by != EndedBy::Reboot && had_time).then(|| failure.into())
}

async fn convert(
    session: &Session,
    plan: &Plan,
    trace: &RawTrace,
    goal: &Path,
    controls: &mut Controls,
    on_event: &EventHandler,
) -> Result<Converted, Failure> {
    let asked = plan.names.symbolize && plan.names.pull_libs != PullLibs::Never;
    let phone = asked.then(|| {
        let device = session.device().clone();
        Arc::new(DeviceLibs::new(device, plan.names.pull_libs))
    });
    let interrupt = phone.as_ref().map(|phone| phone.interrupt());
    let on_event = Arc::clone(on_event);
    let control = LookupControl::default()
        .telling_pulls(move |event| on_event(RecordEvent::Library(event)))
        .asking(phone);
    let request = Request {
        pprof: plan.pprof(),
        java_summaries: plan.java.is_some(),
        dominators: plan.java.as_ref().is_some_and(|java| java.dominators),
        control: control.clone(),
        bad_maps_fail: false,
        packets_for: Some(Plain {
            path: trace.path.clone(),
            whole_bytes: None,
        }),
        process_names: session
            .state()
            .seen
            .iter()
            .map(|(pid, name)| (u64::from(*pid), name.clone()))
            .collect(),
        only_process: only_name(session.header()),
        ..Request::new(Input::Path(trace.path.clone()), goal, plan.names.clone())
    };
    let mut converting = tokio::task::spawn_blocking(move || {
        crate::recording::conversion::convert::convert(&request)
    });
    loop {
        tokio::select! {
            converted = &mut converting => return match converted {
                Ok(Ok(converted)) => Ok(converted),
                Ok(Err(error)) => Ok(without_trace(error, trace.contents.size)?),
                Err(panic) => std::panic::resume_unwind(panic.into_panic()),
            },
            () = session::stop_asked(controls) => {
                // If the user skips waiting for the device, profiles are still written.
                if interrupt.as_ref().is_some_and(Interrupt::skip) {
                    continue;
                }
                control.cancel();
                let (id, path) = (session.id(), trace.path.display());
                let message = format!("interrupted before {path} was converted");
                return Err(
                    Failure::new(ErrorClass::NotFetched, "not-finished", message)
                        .with_help(format!("run `heaptap stop {id}` to finish it")),
                );
            }
        }
    }
}

/// Returns the process name of the recording, if only one name was requested.
fn only_name(header: &SessionHeader) -> Option<String> {
    match (header.names.as_slice(), header.pids.as_slice()) {
        ([name], []) => Some(name.clone()),
        _ => None,
    }
}

/// The file is exactly as the device wrote it, so a missing trace is a result of the recording.
/// Only errors of the host make a retry useful.
fn without_trace(error: ConvertError, size: u64) -> Result<Converted, ConvertError> {
    match &error {
        ConvertError::Import(
            ImportError::NotATrace { .. }
            | ImportError::NoTraceInside { .. }
            | ImportError::Damaged { .. }
            | ImportError::TooLarge { .. },
        ) => {}
        _ => return Err(error),
    }
    let (kind, message) = if size == 0 {
        let message = "the trace is empty: perfetto ended before it wrote anything".to_owned();
        ("trace-empty", message)
    } else {
        ("trace-unreadable", error.to_string())
    };
    Ok(Converted {
        findings: vec![
            Finding::new(kind, ErrorClass::Empty, message).with_help(
                "record again, and check `adb logcat -s perfetto traced` for the reason",
            ),
        ],
        ..Converted::default()
    })
}

fn bind_labels(manifest: &mut Manifest, session_state: &SessionState, tracked: bool) {
    let moments: Vec<DumpMoment<'_>> = manifest
        .dumps
        .keys()
        .map(|dump| DumpMoment {
            pid: dump.pid,
            heap: dump.heap,
            made_ns: dump.written_ns.or(dump.time_ns),
        })
        .collect();
    // If nothing triggered dumps, the next one is the final dump, which has no label.
    let caused = session_state.header.snapshots != SnapshotMethod::Impossible;
    let bound = labels::bind(&session_state.labels, if caused { &moments } else { &[] });
    for binding in bound {
        let name = binding.label.label;
        let mut label = manifest::Label {
            name: name.clone(),
            requested_ns: binding.label.boot_ns,
            dumps: Vec::new(),
        };
        for (at, lag_ns) in binding.dumps {
            let lag_ms = lag_ns / 1_000_000;
            label.dumps.extend(manifest.dumps.bind(at, &name, lag_ms));
        }
        if label.dumps.is_empty() && !tracked {
            let warning =
                |why| manifest::Warning::new("label-unbound", format!("snapshot {name}: {why}"));
            manifest.warnings.push(match caused {
                true => warning("no dump came after the request"),
                false => warning("this recording could not trigger a native dump")
                    .with_help("record without --no-snapshots, or with --snapshots=PERIOD"),
            });
        }
        manifest.labels.push(label);
    }
    let repeated = repeated(&manifest.labels);
    manifest.warnings.extend(repeated);
}

/// Returns warnings about repeated labels.
fn repeated(labels: &[manifest::Label]) -> Vec<manifest::Warning> {
    let mut by_name: BTreeMap<&str, Vec<&manifest::Label>> = BTreeMap::new();
    for label in labels {
        by_name.entry(&label.name).or_default().push(label);
    }
    by_name.retain(|_, all| all.len() > 1);
    let warnings = by_name.into_iter().map(|(name, all)| {
        let dumps = all.iter().flat_map(|label| &label.dumps);
        let mut dumps: Vec<DumpId> = dumps.map(|bound| bound.dump.clone()).collect();
        dumps.sort_unstable();
        dumps.dedup();
        let numbers: BTreeSet<u32> = dumps.iter().map(|dump| dump.number).collect();
        let named = numbers.iter().map(|number| format!("@{number}"));
        let others = match numbers.len() {
            0 | 1 => String::new(),
            _ => format!(
                "; their dumps are {}",
                heaptap_results::lists::join_list(named.collect::<Vec<_>>().into_iter())
            ),
        };
        manifest::Warning {
            dumps,
            ..manifest::Warning::new(
                "label-repeated",
                format!("{} snapshots have the label `{name}`", all.len()),
            )
            .with_help(format!("@{name} selects the last of them{others}"))
        }
    });
    warnings.collect()
}

/// Records which targets were profiled from their start, and adds processes that were not known
/// before.
fn note_startup(manifest: &mut Manifest) {
    for dump in &manifest.dumps.native {
        let pid = u32::try_from(dump.pid).unwrap_or(u32::MAX);
        let has_pid = |t: &manifest::Target| t.pid == Some(pid);
        // A target that was not running is matched by a process started with its name.
        let started = |t: &manifest::Target| t.pid.is_none() && t.name == dump.process;
        let at = manifest.targets.iter().position(has_pid);
        let target = match at.or_else(|| manifest.targets.iter().position(started)) {
            Some(at) => &mut manifest.targets[at],
            None => {
                manifest.targets.push(manifest::Target {
                    name: dump.process.clone(),
                    pid: Some(pid),
                    eligibility: None,
                    from_startup: None,
                });
                let last = manifest.targets.len() - 1;
                &mut manifest.targets[last]
            }
        };
        target.pid = Some(pid);
        target.from_startup = Some(dump.flags.from_startup);
    }
}

/// Returns the trace on the host: fetched now, or by an earlier process that was interrupted.
async fn fetch(session: &mut Session, controls: &mut Controls) -> Result<RawTrace, CaptureError> {
    let output = session.header().output.clone();
    let goal = output.join(RAW_TRACE);
    if let Some(pulled) = session.state().pulled.clone()
        && let Some(kept) = session.kept(&goal, vec![pulled]).await?
    {
        return Ok(kept);
    }
    session.pull(&goal, controls).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_trace_that_is_read_shows_that_nothing_was_dumped() {
        let unreadable = || {
            ConvertError::Import(ImportError::NotATrace {
                name: "raw-trace".to_owned(),
                what: heaptap_input::Kind::Zeros,
            })
        };
        let converted = |size| without_trace(unreadable(), size).expect("a result without a trace");
        assert!(!has_no_java_dump(&converted(4096), 4096));
        assert!(has_no_java_dump(&converted(0), 0));
        let mut read = converted(4096);
        read.health.push(Health::default());
        assert!(has_no_java_dump(&read, 4096));
        read.health[0].heap_graph_packets = 1;
        assert!(!has_no_java_dump(&read, 4096));
    }
}
