//! One attempt at a recording, from the check to the finished directory. Calls the stages in order;
//! each stage is implemented in its own module.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;

use super::advice;
use super::capture_kind::{Fitted, Labels};
use super::companion::{self, Companion, DumpHeaps};
use super::events::{Checked, EventHandler, RecordEvent, Step, session_events, warn};
use super::finish;
use super::options::RecordOptions;
use super::outcome::{EndedBy, Finished, Recorded};
use super::plan::{self, Plan};
use super::sessions;
use crate::recording::conversion::allocations::{self, TrackingError};
use heaptap_adb::Device;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_capture::config::{EncodedConfig, Targets};
use heaptap_capture::eligibility::{
    self, AssessOptions, Assessment, DeviceFacts, Finding, FindingId, Root, Scope, Selinux,
    Severity, Startup, TargetKind,
};
use heaptap_capture::error::kind;
use heaptap_capture::session::{
    self, Background, CaptureError, Controls, FollowEnd, Session, SessionHeader, SessionId, Store,
};
use heaptap_export::pprof::SampleNames;
use heaptap_results::file_names::default_name;
use heaptap_results::output::OutputDirectory;

/// Returns the directory for the results of a later attempt: `out-2`, next to `out`.
pub(super) fn attempt_path(output: &Path, number: u32) -> PathBuf {
    let mut name = output.file_name().unwrap_or_default().to_owned();
    name.push(format!("-{number}"));
    output.with_file_name(name)
}

/// Records once. `dump_heaps` dumps the requested companion Java heaps.
pub(super) async fn record_once(
    device: &Device,
    store: &Store,
    options: &RecordOptions,
    dump_heaps: DumpHeaps,
    controls: &mut Controls,
    on_event: &EventHandler,
) -> Result<Recorded, Failure> {
    let started_at = OffsetDateTime::now_utc();
    let id = SessionId::random();
    let wanted = options.output.clone().unwrap_or_else(|| {
        let stem = options.stem.clone();
        let stem = stem.unwrap_or_else(|| first_target(options.kind.targets()));
        PathBuf::from(default_name(&stem, started_at, &id))
    });
    let directory = OutputDirectory::prepare(&wanted)?;
    let starting = async {
        let prepared = tokio::select! {
            prepared = prepare(device, store, options, id, &directory, on_event) => prepared?,
            () = session::stop_asked(controls) => return Err(CaptureError::interrupted().into()),
        };
        // Only the single file of Android 10 can contain an earlier recording.
        if !prepared.header.removable {
            let path = &prepared.header.remote_path;
            sessions::make_way(device, store, path, controls, on_event).await?;
        }
        let session = start(device, store, options, &prepared, controls, on_event).await?;
        Ok::<_, Failure>((session, prepared.header.snapshots))
    };
    let (mut session, snapshots) = match starting.await {
        Ok(started) => started,
        Err(failure) => {
            directory.discard();
            return Err(failure);
        }
    };
    if options.detach {
        match session.confirm().await {
            Err(error) if error.is(&[kind::REJECTED]) => {
                session.forget()?;
                directory.discard();
                return Err(error.into());
            }
            confirmed => confirmed?,
        }
        // Must be noted before labels are checked again.
        let noted = session.note_targets().await;
        noted.map_err(|error| {
            let header = session.header();
            advice::with_stop_hint(error.into(), store, &header.id, &header.output)
        })?;
        return Ok(Recorded::Detached {
            snapshots,
            session: session.release(),
            output: directory.path().to_owned(),
        });
    }
    let finished = run_to_end(session, dump_heaps, controls, on_event).await?;
    Ok(Recorded::Finished(Box::new(finished)))
}

/// Follows a running session, ends it, and finishes it.
///
/// # Errors
/// Returns the error of the stage that failed.
pub(super) async fn run_to_end(
    session: Session,
    dump_heaps: DumpHeaps,
    controls: &mut Controls,
    on_event: &EventHandler,
) -> Result<Finished, Failure> {
    let (store, header) = (session.store().clone(), session.header().clone());
    let finished = follow_to_end(session, dump_heaps, controls, on_event).await;
    finished.map_err(|failure| advice::with_stop_hint(failure, &store, &header.id, &header.output))
}

async fn follow_to_end(
    mut session: Session,
    dump_heaps: DumpHeaps,
    controls: &mut Controls,
    on_event: &EventHandler,
) -> Result<Finished, Failure> {
    let plan = Plan::read(&session.header().plan)?;
    if plan.java.as_ref().is_some_and(|java| java.watch) {
        session.end_with_dumps();
    }
    let companion = Companion::begin(&session, &plan, dump_heaps, on_event);
    let followed = session.follow(controls).await?;
    companion.last(followed);
    let ended_by = match followed {
        FollowEnd::StopAsked | FollowEnd::Complete => match session.stop(controls).await? {
            session::Ending::Over if followed == FollowEnd::Complete => EndedBy::Complete,
            session::Ending::Over => EndedBy::Interrupted,
            session::Ending::Rebooted => EndedBy::Reboot,
        },
        FollowEnd::Rebooted => EndedBy::Reboot,
        FollowEnd::Over => EndedBy::Itself,
    };
    companion.end(controls).await;
    finish::finish(session, ended_by, None, controls, on_event).await
}

struct Prepared {
    header: SessionHeader,
    encoded: EncodedConfig,
    packages: Vec<String>,
    background: Background,
    relax_selinux: bool,
    shell_is_root: bool,
}

/// Performs all steps before the first change on the device.
async fn prepare(
    device: &Device,
    store: &Store,
    options: &RecordOptions,
    id: SessionId,
    directory: &OutputDirectory,
    on_event: &EventHandler,
) -> Result<Prepared, Failure> {
    let facts = checked_facts(device, options).await?;
    let mut kind = options.kind.clone();
    let mut options = options.clone();
    options.companions.allocations = kind.tracks(&facts);
    let options = &options;
    kind.record_beside(options.companions);
    let kind = &kind;
    let tracks = options.companions.allocations;
    if tracks && options.detach {
        return Err(TrackingError::Detached.into());
    }
    let assess = kind.assess(options.user, options.launch);
    let assessment = eligibility::assess(device, &facts, kind.targets(), &assess).await?;
    // Running processes must accept a debugger; heapprofd's rules do not apply to tracking.
    let runs = assessment.targets.iter().any(|t| !t.processes.is_empty());
    if let Some(refusal) = kind.refusal(&assessment)
        && !options.force
        && !(tracks && runs)
    {
        return Err(refusal);
    }
    if tracks && !options.force && !options.launch {
        allocations::check(device, &assessment).await?;
    }
    if !tracks && kind.scope() == Scope::Native {
        match recorded_already(device, store, &assessment).await? {
            Some(first) if options.force => warn_of_first(&first, on_event),
            Some(first) => return Err(first),
            None => {}
        }
    }
    let packages = match options.launch {
        true => to_launch(device, &facts, options, &assessment).await?,
        false => Vec::new(),
    };
    let mut fitted = kind.fit(
        &facts,
        &assessment,
        Labels {
            snapshots: options.snapshots,
            detached: options.detach,
        },
    )?;
    if !is_removable(&facts) {
        fitted.encoded = fitted.encoded.marked(id.trace_mark());
    }
    let header = header(
        device,
        options,
        &packages,
        id,
        &facts,
        &assessment,
        &fitted,
        directory,
    )
    .await?;
    let impossible = || companion::java_impossible(&facts, &assessment);
    on_event(RecordEvent::Checked(Checked {
        device: describe(&facts),
        findings: worth_saying(&assessment, kind.scope(), options.launch),
        notices: fitted
            .notices
            .into_iter()
            .chain(options.companions.java.then(impossible).flatten())
            .collect(),
        snapshots: header.snapshots.clone(),
        with: options.companions.sources().collect(),
        output: directory.path().to_owned(),
        duration_ms: fitted.duration.map(|d| d.as_millis() as u64),
    }));
    Ok(Prepared {
        packages,
        background: fitted.background,
        relax_selinux: options.disable_selinux,
        shell_is_root: facts.root == Some(Root::Shell),
        header,
        encoded: fitted.encoded,
    })
}

/// Returns the facts for the check: those of the device while the recording runs.
async fn checked_facts(device: &Device, options: &RecordOptions) -> Result<DeviceFacts, Failure> {
    let mut facts = eligibility::facts(device).await?;
    if options.disable_selinux {
        facts.selinux = Some(Selinux::Permissive);
    }
    Ok(facts)
}

/// Returns whether each session has a file that the shell can remove; not on Android 10.
fn is_removable(facts: &DeviceFacts) -> bool {
    facts.api().is_none_or(|api| api >= 30)
}

#[expect(
    clippy::too_many_arguments,
    reason = "the journal gathers from everywhere"
)]
async fn header(
    device: &Device,
    options: &RecordOptions,
    launched: &[String],
    id: SessionId,
    facts: &DeviceFacts,
    assessment: &Assessment,
    fitted: &Fitted,
    directory: &OutputDirectory,
) -> Result<SessionHeader, Failure> {
    let boot_id = plan::boot_id(device, facts).await?;
    let shell_is_root = facts.root == Some(Root::Shell);
    let removable = is_removable(facts);
    let encoded = &fitted.encoded;
    let config = &encoded.config;
    let mut plan = Plan {
        targets: plan::manifest_targets(assessment, options.kind.scope()),
        steps: vec![plan::step("checked")],
        config_sha256: heaptap_base::units::hex(&Sha256::digest(&encoded.bytes)),
        duration_ms: fitted.duration.map(|d| d.as_millis() as u64),
        trigger_timeout_ms: encoded.trigger_timeout_ms(),
        size_limit: config.max_file_size_bytes,
        known: assessment.preflight_facts(facts),
        heaps: fitted.heaps.clone(),
        no_running: fitted.no_running,
        perfetto_names: options.pprof.sample_names == SampleNames::Perfetto,
        annotations: options.pprof.annotations,
        names: options.names.clone(),
        no_report: options.no_report,
        java: fitted.java.clone(),
        companions: options.companions,
        ..Plan::on(facts)
    };
    for package in launched {
        plan.without_pids(&pids_of(package, assessment));
    }
    let millis = |value: Option<u32>, default: u64| value.map_or(default, u64::from);
    let remote_path = match removable {
        true => id.remote_path(),
        false => session::fixed_path(shell_is_root),
    };
    let hardware_serial = facts.hardware_serial.clone();
    Ok(SessionHeader {
        removable,
        names: fitted.targets.names.clone(),
        pids: fitted.targets.pids.clone(),
        // perfetto's own defaults are 5 s each; a write period of 5 s.
        stop_limit_ms: millis(config.flush_timeout_ms, 5000)
            + millis(config.data_source_stop_timeout_ms, 5000),
        write_period_ms: millis(config.file_write_period_ms, 5000)
            + millis(config.flush_period_ms, 5000).min(60_000),
        snapshots: fitted.snapshots.clone(),
        labels_without_dumps: !options.companions.is_empty(),
        config: encoded.text.clone(),
        ..SessionHeader::on(
            device,
            id,
            hardware_serial,
            boot_id,
            remote_path,
            directory.path(),
            plan.to_value(),
        )
    })
}

/// Starts the session, with SELinux and launch as requested. If interrupted, it cleans up.
async fn start(
    device: &Device,
    store: &Store,
    options: &RecordOptions,
    prepared: &Prepared,
    controls: &mut Controls,
    on_event: &EventHandler,
) -> Result<Session, Failure> {
    let header = &prepared.header;
    let relaxed = AtomicBool::new(false);
    let (started, undone) = tokio::select! {
        started = start_uninterrupted(device, store, options, prepared, &relaxed, on_event) => {
            match started {
                Ok((session, None)) => return Ok(session),
                Ok((session, Some(failure))) => {
                    drop(session);
                    (Some(failure), true)
                }
                Err(failure) => (Some(failure), false),
            }
        }
        () = session::stop_asked(controls) => (None, true),
    };
    if undone {
        let events = session_events(on_event);
        sessions::abandon(device, store, &header.id, controls, events).await?;
    }
    let failure = started.unwrap_or_else(|| CaptureError::interrupted().into());
    // A session that might still be running keeps its guard.
    if relaxed.into_inner() && failure.class != ErrorClass::NotFetched {
        let path = &header.remote_path;
        let restored = session::restore_selinux(device, prepared.shell_is_root, path).await;
        match restored {
            Ok(()) => on_event(RecordEvent::Step(Step::Selinux { enforcing: true })),
            Err(error) => warn(on_event, error.to_string()),
        }
    }
    Err(failure)
}

/// Returns the session, and the error of launching its apps.
async fn start_uninterrupted(
    device: &Device,
    store: &Store,
    options: &RecordOptions,
    prepared: &Prepared,
    relaxed: &AtomicBool,
    on_event: &EventHandler,
) -> Result<(Session, Option<Failure>), Failure> {
    let mut header = prepared.header.clone();
    let mut activities = Vec::new();
    for package in &prepared.packages {
        activities.push(session::launcher_activity(device, package, options.user).await?);
    }
    if prepared.relax_selinux {
        let until =
            session::relax_selinux(device, prepared.shell_is_root, &header.remote_path).await?;
        let ours = until == session::SelinuxChange::UntilTheEnd;
        relaxed.store(ours, Ordering::Relaxed);
        if ours {
            on_event(RecordEvent::Step(Step::Selinux { enforcing: false }));
        }
        let mut plan = Plan::read(&header.plan)?;
        plan.selinux_relaxed = ours;
        header.plan = plan.to_value();
    }
    let events = session_events(on_event);
    let session = Session::create(device.clone(), store.clone(), header, events)?;
    for package in &prepared.packages {
        if let Err(error) = session::force_stop(device, package, options.user).await {
            session.forget()?;
            return Err(error.into());
        }
    }
    let (id, output) = (session.id().clone(), session.header().output.clone());
    let session = session
        .start(&prepared.encoded.bytes, prepared.background)
        .await
        .map_err(|error| advice::with_stop_hint(error.into(), store, &id, &output))?;
    for activity in activities {
        if let Err(error) = session::launch(device, &activity, options.user).await {
            return Ok((session, Some(error.into())));
        }
        on_event(RecordEvent::Step(Step::Launched {
            package: activity.package,
        }));
    }
    Ok((session, None))
}

/// Returns the packages that `--launch` starts. Packages that are not installed are left out.
///
/// # Errors
/// Returns an error if no target is installed, or none is an app.
async fn to_launch(
    device: &Device,
    facts: &DeviceFacts,
    options: &RecordOptions,
    assessment: &Assessment,
) -> Result<Vec<String>, Failure> {
    let targets = options.kind.targets();
    let mut packages = packages_of(targets, assessment);
    if !packages.is_empty() && targets.packages.is_empty() {
        return Ok(packages);
    }
    // A process with a free name starts only with an app.
    let assess = AssessOptions {
        user: options.user,
        startup: Startup::Off,
    };
    let now = eligibility::assess(device, facts, targets, &assess).await?;
    if let Some(refusal) = now.not_installed() {
        return Err(refusal);
    }
    let is_missing = |package: &String| {
        let mut reports = now.targets.iter();
        reports
            .any(|t| t.kind == TargetKind::Package && t.is_not_installed() && t.target == *package)
    };
    packages.retain(|package| !is_missing(package));
    match packages.is_empty() {
        true => {
            let target = first_target(targets);
            let message = format!("cannot launch {target}: it does not belong to an app");
            Err(
                Failure::new(ErrorClass::Usage, "nothing-to-launch", message)
                    .with_help("omit `--launch`, or name an app"),
            )
        }
        false => Ok(packages),
    }
}

/// Returns the named packages, and one per target that is an app.
fn packages_of(targets: &Targets, assessment: &Assessment) -> Vec<String> {
    let of_targets = assessment
        .targets
        .iter()
        .filter_map(|t| t.packages.first())
        .map(|p| &p.name);
    let mut packages: Vec<String> = Vec::new();
    for package in targets.packages.iter().chain(of_targets) {
        if !packages.contains(package) {
            packages.push(package.clone());
        }
    }
    packages
}

/// Returns the processes that end when `package` is stopped.
fn pids_of(package: &str, assessment: &Assessment) -> BTreeSet<u32> {
    assessment
        .targets
        .iter()
        .flat_map(|t| &t.processes)
        .filter(|p| p.package.as_deref() == Some(package))
        .map(|p| p.process.pid)
        .collect()
}

/// Returns an error if the recording would share a process with a running recording of this host: a
/// process can only be in one heap profile at a time, and the second gets no samples.
async fn recorded_already(
    device: &Device,
    store: &Store,
    assessment: &Assessment,
) -> Result<Option<Failure>, Failure> {
    let wanted = &assessment.resolved;
    let matched = || assessment.targets.iter().flat_map(|t| &t.processes);
    let shared = |other: &SessionHeader| {
        let by_name = |name: &String| other.names.contains(name);
        let by_pid = |pid: &u32| other.pids.contains(pid);
        let shared = wanted.names.iter().find(|n| by_name(n)).cloned();
        shared.or_else(|| {
            matched()
                .map(|m| &m.process)
                .find(|p| by_pid(&p.pid) || by_name(&p.name))
                .map(|p| p.name.clone())
        })
    };
    recording_that(device, store, shared).await
}

/// Returns an error if a process of the package is in a running recording of this host: whatever stops
/// or installs the app would cut that.
pub(crate) async fn recording_of_app(
    device: &Device,
    store: &Store,
    package: &str,
) -> Result<Option<Failure>, Failure> {
    let is_of_app = |name: &&String| name.split(':').next() == Some(package);
    let shared = |other: &SessionHeader| other.names.iter().find(is_of_app).cloned();
    recording_that(device, store, shared).await
}

/// Returns an error with a running recording of this host that has the process that `shared` returns.
async fn recording_that(
    device: &Device,
    store: &Store,
    shared: impl Fn(&SessionHeader) -> Option<String>,
) -> Result<Option<Failure>, Failure> {
    let (mut session_states, _) = store.list()?;
    // Android 10 supports one recording at a time, of any kind: `make_way` handles that.
    session_states.retain(|state| state.pulled.is_none() && state.header.removable);
    session::retain_of(device, &mut session_states).await?;
    for session_state in &session_states {
        let other = &session_state.header;
        // Java heap dumps do not conflict with other recordings.
        if Plan::read(&other.plan).is_ok_and(|plan| plan.java.is_some()) {
            continue;
        }
        if let Some(target) = shared(other)
            && session::find_writer(device, &other.remote_path)
                .await?
                .is_some()
        {
            let id = &other.id;
            let message = format!("session {id} is already recording {target}");
            let failure = Failure::new(ErrorClass::Device, "already-recorded", message);
            return Ok(Some(failure.with_help(format!(
                "end that session with `heaptap stop {id}`; heapprofd profiles a process in only \
                 one session at a time"
            ))));
        }
    }
    Ok(None)
}

/// Warns about missing data in a forced recording.
fn warn_of_first(first: &Failure, on_event: &EventHandler) {
    let help = first.help.as_deref().unwrap_or_default();
    let text = format!(
        "{}, so this recording will not include it; {help}",
        first.message
    );
    warn(on_event, text);
}

pub(super) fn first_target(targets: &Targets) -> String {
    let named = targets.names.first().or(targets.packages.first()).cloned();
    named
        .or_else(|| targets.pids.first().map(|pid| format!("pid{pid}")))
        .unwrap_or_else(|| "recording".to_owned())
}

/// Returns warnings, and notes about the recorded processes.
pub(super) fn worth_saying(assessment: &Assessment, scope: Scope, launch: bool) -> Vec<Finding> {
    let is_said = |f: &Finding| match f.id {
        _ if f.severity != Severity::Note => true,
        FindingId::NotRunning => !launch,
        FindingId::Subproc | FindingId::OtherUser => true,
        _ => false,
    };
    assessment
        .findings(scope)
        .into_iter()
        .map(|(_, finding)| finding.clone())
        .filter(is_said)
        .collect()
}

pub(super) fn describe(facts: &DeviceFacts) -> String {
    match &facts.model {
        Some(model) => format!("{model}, {}", facts.system()),
        None => format!("{}, {}", facts.serial, facts.system()),
    }
}
