//! Results of a recorded program: profiles, warnings, manifest.

use std::path::Path;
use std::time::Duration;

use super::run::{HostOptions, Run};
use crate::heaps::trace_findings::{GUESSES, NOT_ASKED_FOR, NOT_PROFILEABLE};
use crate::names::frames::LookupControl;
use crate::recording::blocking::blocking;
use crate::recording::conversion::convert::{self, Converted, Input, Plain, Request};
use crate::recording::conversion::error::ConvertError;
use crate::recording::outcome::{Finished, LastJournal};
use crate::recording::plan;
use heaptap_base::bytes::sha256_of;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::unfinished::ExistingFile;
use heaptap_base::units::{HumanDuration, counted};
use heaptap_capture::config::EncodedConfig;
use heaptap_capture::host::{Checked, ProgramEnd, SessionEnd, Signals};
use heaptap_capture::session::SessionId;
use heaptap_input::ImportError;
use heaptap_results::findings::{self, Finding};
use heaptap_results::manifest::{self, Manifest, Warning};
use heaptap_results::output::OutputDirectory;
use heaptap_results::publication::{Staging, Unpublished};
use sha2::{Digest as _, Sha256};

/// A program below this duration can lose all callstacks.
const SHORT: Duration = Duration::from_millis(30);

/// A finished recording of a program.
#[derive(Debug)]
pub struct HostRecorded {
    pub finished: Finished,
    pub end: ProgramEnd,
}

/// Converts the trace, and publishes the results.
#[expect(
    clippy::too_many_arguments,
    reason = "the manifest gathers from everywhere"
)]
pub(super) async fn write(
    options: &HostOptions,
    checked: &Checked,
    encoded: &EncodedConfig,
    mut run: Run,
    trace: &Path,
    named: std::io::Result<manifest::TraceFile>,
    id: SessionId,
    directory: OutputDirectory,
    staging: Staging,
    signals: &mut Signals,
) -> Result<HostRecorded, Failure> {
    let mut converted = match convert(options, trace, staging.path(), signals, run.calm).await {
        Ok(converted) => converted,
        Err(ConvertError::Interrupted) => {
            let message = "interrupted before the trace was converted";
            return Err(Failure::new(
                ErrorClass::Interrupted,
                "interrupted",
                message,
            ));
        }
        // A trace without packets is a result of the recording; other errors are the host's.
        Err(ConvertError::Import(error)) if is_empty(&error) || !trace.is_file() => {
            Converted::default()
        }
        Err(error) => return Err(error.into()),
    };
    run.steps.push(plan::step("converted"));
    converted.findings.retain(|finding| applies(finding, &run));
    for finding in &mut converted.findings {
        // A device's log does not exist here.
        finding.help.take_if(|help| help.contains("adb logcat"));
    }
    let (file, unnamed) = match named {
        Ok(file) => (Some(file), None),
        Err(error) => (trace_file(trace), Some(error)),
    };
    let sampled = converted.dumps.iter().any(|dump| dump.file.is_some());
    let lost = run.session != SessionEnd::Complete;
    let class = match (sampled, lost) {
        (false, _) => Some(ErrorClass::Empty),
        (true, true) => Some(ErrorClass::Incomplete),
        (true, false) => converted.class(),
    };
    let mut manifest = Manifest {
        host: Some(program(options, checked, &run)),
        targets: targets(&converted, checked, &run),
        config: Some(manifest::Config {
            text: encoded.text.clone(),
            sha256: heaptap_base::units::hex(&Sha256::digest(&encoded.bytes)),
        }),
        trace: file,
        outcome: manifest::Outcome::new(class, Some(ended_by(&run))),
        profiles: Some(options.pprof.into()),
        ..Manifest::default()
    };
    manifest.warnings.extend(lost_warning(&run, sampled));
    if !sampled {
        manifest
            .warnings
            .push(why_empty(checked, &converted, options, &run));
    }
    manifest.warnings.extend(left_running(&run));
    if let Some(error) = unnamed.filter(|_| sampled) {
        let message = format!("cannot add process names to the trace: {error}");
        manifest
            .warnings
            .push(Warning::new("host-names-missing", message));
    }
    manifest.warnings.extend(converted.warnings());
    let unsampled = findings::heaps_without_samples(&options.spec.heaps, &converted.dumps);
    manifest
        .warnings
        .extend(unsampled.map(Finding::into_warning));
    manifest.symbolization = Some(converted.symbolization);
    manifest.dumps = manifest::Dumps {
        native: converted.dumps,
        java: converted.java,
    };
    manifest.steps = run.steps;
    manifest.write(staging.path())?;
    let output = directory.path().to_owned();
    staging
        .publish(ExistingFile::Stays)
        .map_err(Unpublished::of_command)?;
    drop(directory);
    Ok(HostRecorded {
        end: run.end,
        finished: Finished {
            session: id,
            output,
            manifest,
            packets: converted.packets,
            heaps: converted.heaps,
            java_heaps: converted.java_heaps,
            java: None,
            no_report: false,
            class,
            journal: LastJournal::default(),
        },
    })
}

async fn convert(
    options: &HostOptions,
    trace: &Path,
    goal: &Path,
    signals: &mut Signals,
    calm: tokio::time::Instant,
) -> Result<Converted, ConvertError> {
    let control = LookupControl::default();
    let input = Input::Path(trace.to_owned());
    let request = Request {
        pprof: options.pprof,
        control: control.clone(),
        bad_maps_fail: false,
        packets_for: Some(Plain {
            path: trace.to_owned(),
            whole_bytes: None,
        }),
        ..Request::new(input, goal, options.names.clone())
    };
    let converting = blocking(move || convert::convert(&request));
    tokio::pin!(converting);
    loop {
        tokio::select! {
            converted = &mut converting => return converted,
            () = signals.after(calm) => control.cancel(),
        }
    }
}

fn is_empty(error: &ImportError) -> bool {
    matches!(
        error,
        ImportError::NotATrace { .. } | ImportError::NotAHeap { .. }
    )
}

/// Returns whether a finding of the trace applies to a program of this host.
fn applies(finding: &Finding, run: &Run) -> bool {
    match finding.kind {
        // `why_empty` knows more.
        kind if GUESSES.contains(&kind) => false,
        NOT_ASKED_FOR | NOT_PROFILEABLE => false,
        // Every program that ends disconnects.
        "disconnected" => false,
        heaptap_results::findings::TRACE_CUT => run.session == SessionEnd::Complete,
        _ => true,
    }
}

fn program(options: &HostOptions, checked: &Checked, run: &Run) -> manifest::HostProgram {
    let command = options.request.command.iter();
    manifest::HostProgram {
        command: command
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        pid: run.pid,
        status: run.end.status(),
        signal: match run.end {
            ProgramEnd::Signaled(signal) => Some(signal),
            ProgramEnd::Exited(_) => None,
        },
        library: checked.tools.library.to_string_lossy().into_owned(),
        traced: checked.tools.traced.0.to_string_lossy().into_owned(),
    }
}

/// Returns the program, and the other processes that have a profile.
fn targets(converted: &Converted, checked: &Checked, run: &Run) -> Vec<manifest::Target> {
    let target = |name: &str, pid| manifest::Target {
        name: name.to_owned(),
        pid: Some(pid),
        eligibility: None,
        from_startup: None,
    };
    let mut targets = vec![target(&checked.name, run.pid)];
    for dump in &converted.dumps {
        let pid = u32::try_from(dump.pid).unwrap_or(u32::MAX);
        if targets.iter().all(|known| known.pid != Some(pid)) {
            targets.push(target(&dump.process, pid));
        }
    }
    targets
}

/// Returns the trace for the manifest; `None` if there is none.
fn trace_file(path: &Path) -> Option<manifest::TraceFile> {
    let size = path.metadata().ok()?.len();
    Some(manifest::TraceFile::raw(size, sha256_of(path).ok()?))
}

fn ended_by(run: &Run) -> &'static str {
    match (run.session, run.time_over) {
        (SessionEnd::Early, _) => "lost",
        (_, true) => "duration",
        (SessionEnd::Killed, false) => "interrupted",
        (SessionEnd::Complete, false) => "target-exited",
    }
}

fn lost_warning(run: &Run, sampled: bool) -> Option<Warning> {
    let what = match run.session {
        SessionEnd::Complete => return None,
        SessionEnd::Early => "perfetto or traced ended during the recording",
        SessionEnd::Killed => "perfetto was ended before it had written the final dump",
    };
    let missing = match sampled {
        true => "data after its last write are missing",
        false => "it wrote no dump",
    };
    let warning = Warning::new("host-session-lost", format!("{what}; {missing}"));
    Some(warning.with_help("record again; -c 5s writes dumps during the recording"))
}

/// Returns the most likely reason for an empty profile.
fn why_empty(
    checked: &Checked,
    converted: &Converted,
    options: &HostOptions,
    run: &Run,
) -> Warning {
    let name = &checked.name;
    let silent = converted.dumps.is_empty();
    let (why, help) = match checked.cautions.first() {
        Some(caution) => (caution.message.clone(), caution.help.clone()),
        None if run.session == SessionEnd::Early => (
            "the tracing service ended too early".to_owned(),
            "record again".to_owned(),
        ),
        None if silent && run.lasted < SHORT => (
            format!("it ran for {} only", HumanDuration(run.lasted)),
            "give it more work, or record again".to_owned(),
        ),
        None if silent => (
            "its heapprofd never connected: the program could not start it (`ulimit -n`, \
             `ulimit -v`, a PID namespace of its own), or removed LD_PRELOAD or the variables \
             PERFETTO_* for its children"
                .to_owned(),
            "run the program without these limits, and look for messages of heapprofd above"
                .to_owned(),
        ),
        None => (
            format!(
                "it allocated nothing that was sampled; the interval is {}",
                heaptap_base::units::ByteSize(options.spec.interval_bytes)
            ),
            "sample more often, such as with -i 1".to_owned(),
        ),
    };
    Warning::new(
        "host-nothing-recorded",
        format!("{name}: no samples: {why}"),
    )
    .with_help(help)
}

/// Returns a warning about processes that outlive the program: their new children would wait for a
/// session that never comes.
fn left_running(run: &Run) -> Option<Warning> {
    const SHOWN: usize = 6;
    let left: Vec<(u32, &str)> = run.processes.alive().collect();
    if left.is_empty() {
        return None;
    }
    let shown = left.iter().take(SHOWN);
    let shown: Vec<String> = shown.map(|(pid, name)| format!("{name} ({pid})")).collect();
    let pids = left.iter().take(SHOWN).map(|(pid, _)| pid.to_string());
    let message = format!(
        "{} of the program still run: {}; programs that they start from now on wait forever \
         for a recording",
        counted(left.len() as u64, "process", "processes"),
        shown.join(", ")
    );
    let help = format!("kill {}", pids.collect::<Vec<_>>().join(" "));
    Some(Warning::new("host-left-running", message).with_help(help))
}
