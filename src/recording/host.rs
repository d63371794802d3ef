//! `record --host`: a program of this host, from its check to its directory. Orders the steps;
//! `capture::host` owns the processes.

mod result;
mod run;
mod trace;

pub use result::HostRecorded;
pub use run::HostOptions;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Serialize;
use time::OffsetDateTime;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::blocking::blocking;
use super::plan;
use heaptap_base::directory::RAW_TRACE;
use heaptap_base::error::Failure;
use heaptap_base::rename_retry;
use heaptap_base::untrusted::shell::quoted_path;
use heaptap_capture::config::{CaptureSpec, EncodedConfig};
use heaptap_capture::host::{
    self, Checked, Origin, Processes, Program, SessionEnd, Signals, Tracing,
};
use heaptap_capture::session::CaptureError;
use heaptap_capture::session::SessionId;
use heaptap_results::file_names::default_name;
use heaptap_results::manifest;
use heaptap_results::output::OutputDirectory;
use run::Run;

/// Period at which the names of running processes are read: the trace does not have them.
const LOOK_PERIOD: Duration = Duration::from_millis(100);
/// Time for the heapprofds to end after their session.
const LEFTOVER_LOOKS: u32 = 20;
const LEFTOVER_PERIOD: Duration = Duration::from_millis(50);
/// Time after the end of the program in which signals do not count.
const CALM: Duration = Duration::from_millis(500);
/// Time for processes that have just started to find a session.
const RELEASE: Duration = Duration::from_millis(500);

/// An event of a recording, for display.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum HostEvent {
    /// The program can be recorded, with these remarks.
    HostChecked {
        program: String,
        library: String,
        cautions: Vec<String>,
    },
    /// The program runs.
    HostStarted {
        program: String,
        pid: u32,
        output: String,
    },
    /// The recording time is over; the program continues.
    HostTimeOver,
    /// The tracing service ended; the program continues.
    HostServiceLost,
    HostProgramEnded {
        /// As a shell reports it.
        status: u8,
    },
    /// The trace is being converted.
    Converting,
}

/// Records a program.
///
/// # Errors
/// Returns an error if the program cannot be recorded or started, or if the results cannot be
/// written. The program's own failure is not an error.
pub async fn record(
    options: &HostOptions,
    on_event: &(dyn Fn(HostEvent) + Sync),
) -> Result<HostRecorded, Failure> {
    host::supported()?;
    let mut steps = Vec::new();
    // What the user typed comes before the tools that heaptap needs.
    let name = host::program_name(&options.request)?;
    let encoded = options.spec.encode_for_host()?;
    let release = CaptureSpec::encode_release()?;
    let mut signals = Signals::watch()?;
    let id = SessionId::random();
    let wanted = options
        .output
        .clone()
        .unwrap_or_else(|| PathBuf::from(default_name(&name, OffsetDateTime::now_utc(), &id)));
    let directory = OutputDirectory::hold(&wanted)?;
    let checked = match host::check(&options.request) {
        Ok(checked) => checked,
        Err(error) => {
            directory.discard();
            return Err(error);
        }
    };
    on_event(HostEvent::HostChecked {
        program: checked.name.clone(),
        library: checked.tools.library.to_string_lossy().into_owned(),
        cautions: (checked.cautions.iter())
            .map(|caution| caution.message.clone())
            .collect(),
    });
    steps.push(plan::step("checked"));
    let staging = match directory.stage() {
        Ok(staging) => staging,
        Err(error) => {
            directory.discard();
            return Err(error.into());
        }
    };
    let staged = staging.path().join(RAW_TRACE);
    let output = directory.path().to_string_lossy().into_owned();
    let started = start(options, &checked, &encoded, &staged, &mut signals).await;
    let (tracing, program) = match started {
        Ok(started) => started,
        Err(failure) => {
            drop(staging);
            directory.discard();
            return Err(failure);
        }
    };
    steps.push(plan::step("started"));
    on_event(HostEvent::HostStarted {
        program: checked.name.clone(),
        pid: program.pid(),
        output,
    });
    let mut processes = Processes::marked(tracing.marker());
    processes.add(program.pid(), &checked.name);
    let run = follow(
        tracing,
        program,
        options,
        &release.bytes,
        processes,
        steps,
        &mut signals,
        on_event,
    )
    .await;
    // From now on the trace is the user's, whatever fails.
    let trace = directory.path().join(RAW_TRACE);
    let convert = |trace: &std::path::Path| format!("heaptap convert {}", quoted_path(trace));
    if let Err(source) = rename_retry::rename(&staged, &trace)
        && staged.exists()
    {
        let kept = staging.keep().join(RAW_TRACE);
        let path = trace;
        return Err(Failure::from(CaptureError::output(&path, source)).with_help(convert(&kept)));
    }
    on_event(HostEvent::Converting);
    let (named, run) = {
        let trace = trace.clone();
        blocking(move || (trace::append_names(&trace, &run.processes), run)).await
    };
    let written = result::write(
        options,
        &checked,
        &encoded,
        run,
        &trace,
        named,
        id,
        directory,
        staging,
        &mut signals,
    )
    .await;
    written.map_err(|failure| failure.with_help(convert(&trace)))
}

/// Starts the service, the session and then the program. A signal before the program runs cancels.
async fn start(
    options: &HostOptions,
    checked: &Checked,
    encoded: &EncodedConfig,
    trace: &std::path::Path,
    signals: &mut Signals,
) -> Result<(Tracing, Program), Failure> {
    let starting = async {
        let mut tracing = Tracing::start(checked).await?;
        tracing.record(&encoded.bytes, trace).await?;
        Ok::<_, Failure>(tracing)
    };
    let tracing = tokio::select! {
        started = starting => started?,
        _ = signals.next() => return Err(CaptureError::interrupted().into()),
    };
    match tracing.run(checked, &options.request.command) {
        Ok(program) => Ok((tracing, program)),
        Err(error) => {
            tracing.end().await;
            Err(error)
        }
    }
}

/// Follows the program to its end, and ends the session after it, or at the time limit.
#[expect(clippy::too_many_arguments, reason = "what a run consists of")]
async fn follow(
    mut tracing: Tracing,
    mut program: Program,
    options: &HostOptions,
    release: &[u8],
    mut processes: Processes,
    mut steps: Vec<manifest::Step>,
    signals: &mut Signals,
    on_event: &(dyn Fn(HostEvent) + Sync),
) -> Run {
    let pid = program.pid();
    let begun = Instant::now();
    let mut tick = interval(LOOK_PERIOD);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let limit = sleep(options.spec.duration.unwrap_or_default());
    tokio::pin!(limit);
    let mut session = None;
    let mut time_over = false;
    let recorded = loop {
        tokio::select! {
            end = program.wait() => break Some(end),
            () = tracing.ended() => {
                session = Some(SessionEnd::Early);
                on_event(HostEvent::HostServiceLost);
                break None;
            }
            () = &mut limit, if options.spec.duration.is_some() => {
                time_over = true;
                steps.push(plan::step("stop-requested"));
                session = Some(tracing.stop(forward(signals, &program)).await);
                on_event(HostEvent::HostTimeOver);
                break None;
            }
            signal = signals.next() => pass_on(signal, &program),
            _ = tick.tick() => processes.look(),
        }
    };
    let end = match recorded {
        Some(end) => end,
        None => {
            // Without a session, processes that start from now on would wait forever.
            let mut releasing = Box::pin(tracing.stay_released(release));
            let mut given_up = false;
            loop {
                tokio::select! {
                    end = program.wait() => break end,
                    () = &mut releasing, if !given_up => given_up = true,
                    signal = signals.next() => pass_on(signal, &program),
                    _ = tick.tick() => processes.look(),
                }
            }
        }
    };
    let lasted = begun.elapsed();
    let calm = tokio::time::Instant::now() + CALM;
    on_event(HostEvent::HostProgramEnded {
        status: end.status(),
    });
    processes.look();
    let session = match session {
        Some(session) => session,
        None => {
            steps.push(plan::step("stop-requested"));
            tracing.stop(signals.after(calm)).await
        }
    };
    steps.push(plan::step("trace-complete"));
    // The heapprofds end with their session; what stays is the user's. What has just started waits
    // for another session.
    let releasing = async {
        if !all_end(&mut processes).await && tracing.release(release).await {
            sleep(RELEASE).await;
        }
    };
    // The trace is complete: a signal costs nothing but this.
    tokio::select! {
        () = releasing => {}
        () = signals.after(calm) => {}
    }
    tracing.end().await;
    all_end(&mut processes).await;
    signals.drain();
    Run {
        pid,
        end,
        session,
        time_over,
        lasted,
        calm,
        processes,
        steps,
    }
}

/// Waits a moment for all processes of the program to end; returns whether they did.
async fn all_end(processes: &mut Processes) -> bool {
    for _ in 0..LEFTOVER_LOOKS {
        processes.look();
        if processes.alive().next().is_none() {
            return true;
        }
        sleep(LEFTOVER_PERIOD).await;
    }
    false
}

/// Forwards signals, without an end.
async fn forward(signals: &mut Signals, program: &Program) {
    loop {
        pass_on(signals.next().await, program);
    }
}

/// Forwards a signal, unless the terminal has signaled the program already.
fn pass_on((signal, origin): (i32, Origin), program: &Program) {
    if origin == Origin::Process {
        program.signal(signal);
    }
}
