//! OutOfMemoryErrors: an app that runs out of memory, and sessions that wait for it.

use crate::access::java_debuggable_build;
use crate::clock::{BootNs, MILLI, SECOND};
use crate::history::{Event, Request};
use crate::installed::obfuscated;
use crate::java::Inputs;
use crate::kernel::Kernel;
use crate::memory::{Limits, limits};
use crate::packages::{APP, Package};
use crate::process::{Pid, Process, SIGINT, SIGTERM, Stop};
use crate::shell::pattern;
use crate::state::State;
use crate::{foreground, init};
use heaptap_proto::perfetto as pb;

use crate::traced::{Oom, Outcome};

/// Trigger that ART activates.
pub(super) const TRIGGER: &str = "com.android.telemetry.art-outofmemory";
/// Data source that dumps on the trigger.
pub(super) const SOURCE: &str = "android.java_hprof.oom";
/// Bytes to which ART would let the heap grow without a collection.
const FOOTPRINT_SLACK: u64 = 6 << 20;
/// Failed allocation of the app: an array of half a gigabyte.
const ASKED: u64 = (512 << 20) + 16;
/// Property with the number of waiting sessions, as the apps see it.
const SESSIONS: &str = "traced.oome_heap_session.count";

/// Makes `com.example.app` run out of memory, if it is running.
pub(crate) fn run_out(kernel: &Kernel) {
    let now = kernel.clock.boot();
    let process = {
        let state = kernel.state();
        init::main_process(&state, APP, 0).and_then(|pid| state.processes.get(pid).cloned())
    };
    let Some(process) = process else {
        return;
    };
    // ART collects once more before it throws.
    let event = Event::Collection(Request::Alloc);
    kernel.memory.note(&kernel.state(), &process, now, event);
    let text = message(kernel, &process, now);
    let text = format!("Throwing OutOfMemoryError \"{text}\"");
    let tag = crate::memory::log_tag(process.name());
    kernel.log(process.pid, 'W', &tag, &text);
    let pid = process.pid;
    let waited_for = kernel.change(|state, _| {
        state.tracing.ooms.push(Oom { pid, at: now });
        let mut waiting = state.tracing.oom_sessions.values();
        waiting.any(|config| wanted(config, &process))
    });
    // If no session dumps it, it dies at once.
    if !waited_for || !allowed(kernel, &process) {
        die(kernel, &process);
    }
}

/// Ends the process with the uncaught error.
pub(super) fn die(kernel: &Kernel, process: &Process) {
    let what = message(kernel, process, kernel.clock.boot());
    let what = format!("java.lang.OutOfMemoryError: {what}");
    kernel.change(|state, now| foreground::crash(state, process.pid, &what, now));
}

fn allocated(kernel: &Kernel, process: &Process, now: BootNs) -> (u64, Limits) {
    let state = kernel.state();
    let java = kernel.memory.java(&state, process, now);
    (java.map_or(0, |j| j.allocated()), limits(&state))
}

fn message(kernel: &Kernel, process: &Process, now: BootNs) -> String {
    let (allocated, limits) = allocated(kernel, process, now);
    let growth = limits.growth;
    let until = growth.saturating_sub(allocated);
    format!(
        "Failed to allocate a {ASKED} byte allocation with {} free bytes and {}MB until OOM, target footprint {}, growth limit {growth}",
        FOOTPRINT_SLACK.min(until),
        until >> 20,
        allocated + FOOTPRINT_SLACK.min(until),
    )
}

/// Returns whether ART permits the dump inside the app.
pub(super) fn allowed(kernel: &Kernel, process: &Process) -> bool {
    if java_debuggable_build(&kernel.spec) {
        return true;
    }
    let state = kernel.state();
    let package = state.package_of(process);
    package.is_some_and(Package::profileable_from_shell)
}

/// Returns whether the config of an OOM source matches the process: patterns are compared with the
/// whole argv0.
pub(super) fn wanted(config: &pb::JavaHprofConfig, process: &Process) -> bool {
    let names = &config.process_cmdline;
    names
        .iter()
        .any(|name| pattern::matches_text(name, process.name()))
}

/// Returns ART's metadata of a process (since 2026), and of the error if there was one.
pub(super) fn metadata(
    kernel: &Kernel,
    process: &Process,
    inputs: &Inputs,
    oom: bool,
) -> pb::ArtProcessMetadata {
    let mut metadata = pb::ArtProcessMetadata {
        pid: Some(process.pid as i32),
        uid: Some(process.uid as i32),
        process_name: Some(inputs.process.clone()),
        package_name: Some(inputs.package.clone()),
        ..Default::default()
    };
    if oom {
        let (allocated, limits) = allocated(kernel, process, inputs.moment);
        let until = limits.growth.saturating_sub(allocated);
        metadata.oom_allocation_size = Some(ASKED);
        metadata.oom_total_bytes_free = Some(FOOTPRINT_SLACK.min(until));
        metadata.oom_free_bytes_until_oom = Some(until);
        metadata.oom_error_msg = Some(message(kernel, process, inputs.moment));
        metadata.stack = Some(stack(kernel.spec.obfuscated));
    }
    metadata
}

/// Stack of the error, leaf first: file, line and method.
const STACK: &str = "\
Arrays.java 3578 byte[] java.util.Arrays.copyOf(byte[], int)
ByteArrayOutputStream.java 120 void java.io.ByteArrayOutputStream.grow(int)
Http.kt 38 byte[] com.example.app.net.Http.read(java.io.InputStream)
FeedPresenter.kt 29 void com.example.app.feed.FeedPresenter.refresh()
FeedActivity.kt 35 void com.example.app.ui.FeedActivity.onResume()
Activity.java 8604 void android.app.Activity.performResume(boolean, java.lang.String)
ActivityThread.java 8177 void android.app.ActivityThread.main(java.lang.String[])";

/// Returns the stack of the error.
fn stack(renamed: bool) -> pb::art_process_metadata::Stack {
    let frame = |row: &str| {
        let mut words = row.splitn(3, ' ');
        let (file, line, method) = (words.next()?, words.next()?, words.next()?);
        let line = line.parse().ok();
        let renamed = renamed && method.contains("com.example.app.");
        let (method, file, line) = match renamed {
            true => (renamed_method(method), "r8-map-id", Some(1)),
            false => (method.to_owned(), file, line),
        };
        Some(pb::art_process_metadata::stack::Frame {
            method: Some(method),
            file: Some(file.to_owned()),
            line,
        })
    };
    pb::art_process_metadata::Stack {
        frames: STACK.lines().filter_map(frame).collect(),
    }
}

/// Formats `type Class.method(arguments)` with R8's name of the method.
fn renamed_method(method: &str) -> String {
    let (head, arguments) = method.split_once('(').unwrap_or((method, ")"));
    let (kind, name) = head.rsplit_once(' ').unwrap_or(("void", head));
    format!("{kind} {}({arguments}", obfuscated(name))
}

/// A trigger that a session waited for.
pub(super) struct Activation {
    pub(super) name: String,
    pub(super) at: BootNs,
    /// Delay until the session stops.
    pub(super) stop_delay_ms: u32,
    /// The process that ran out of memory, if that is the cause.
    pub(super) oom: Option<Oom>,
}

/// Returns whether a session starts only after a trigger.
pub(super) fn waits(config: &pb::TraceConfig) -> bool {
    use pb::trace_config::trigger_config::TriggerMode;
    let triggers = config.trigger_config.as_ref();
    triggers.is_some_and(|t| t.trigger_mode() == TriggerMode::StartTracing)
}

/// Waits for the session's trigger, its timeout or its end. An outcome is an end without a trigger:
/// there is nothing to write.
pub(super) fn await_trigger(
    kernel: &Kernel,
    pid: Pid,
    session: u64,
    config: &pb::TraceConfig,
) -> Result<Activation, Outcome> {
    let armed = kernel.clock.boot();
    let triggers = config.trigger_config.clone().unwrap_or_default();
    let limit = armed + u64::from(triggers.trigger_timeout_ms()) * MILLI;
    let named = |name: &str| triggers.triggers.iter().find(|t| t.name() == name);
    let trigger = named(TRIGGER);
    let configs = config.data_sources.iter().filter_map(|d| d.config.as_ref());
    let source = configs
        .filter(|c| c.name() == SOURCE && kernel.spec.android >= 14)
        .find_map(|c| c.java_hprof_config.clone());
    let (seen, activated, life) = {
        let mut state = kernel.state();
        if let Some(source) = &source {
            state.tracing.oom_sessions.insert(session, source.clone());
        }
        count_sessions(&mut state);
        let tracing = &state.tracing;
        (
            tracing.ooms.len(),
            tracing.activations.len(),
            tracing.traced_life,
        )
    };
    let out = kernel.spec.oom.map(u64::from);
    let mut out = out.map(|seconds| armed + seconds * SECOND);
    let awaited = loop {
        let look = || {
            let state = kernel.state();
            let tracing = &state.tracing;
            let mut sessions = tracing.sessions.iter();
            if tracing.traced_life != life {
                return Some(Err(Outcome::Disconnected));
            }
            if sessions.all(|s| s.id != session) {
                return Some(Err(Outcome::Finished));
            }
            let activated = tracing
                .activations
                .iter()
                .skip(activated)
                .find_map(|(name, at)| {
                    let trigger = named(name)?;
                    Some(Ok(Activation {
                        name: name.clone(),
                        at: *at,
                        stop_delay_ms: trigger.stop_delay_ms(),
                        oom: None,
                    }))
                });
            if activated.is_some() {
                return activated;
            }
            let ooms = tracing.ooms.iter().skip(seen).copied();
            let mut meant = ooms.filter(|oom| {
                let process = state.processes.get(oom.pid);
                let source = source.as_ref();
                process.is_some_and(|p| source.is_some_and(|source| wanted(source, p)))
            });
            let (oom, trigger) = (meant.next()?, trigger?);
            Some(Ok(Activation {
                name: TRIGGER.to_owned(),
                at: oom.at,
                stop_delay_ms: trigger.stop_delay_ms(),
                oom: Some(oom),
            }))
        };
        let deadline = out.map_or(limit, |at| at.min(limit));
        match kernel.block(pid, Some(deadline), look) {
            Ok(Some(awaited)) => break awaited,
            Ok(None) if out.is_some_and(|at| at <= kernel.clock.boot()) => {
                out = None;
                run_out(kernel);
            }
            Ok(None) => break Err(Outcome::Finished),
            Err(Stop::Killed(signal)) => break Err(Outcome::Killed(signal)),
            Err(Stop::Signal) => {
                let signals = kernel.take_signals(pid);
                if signals.iter().any(|s| [SIGINT, SIGTERM].contains(s)) {
                    break Err(Outcome::Finished);
                }
            }
        }
    };
    let mut state = kernel.state();
    state.tracing.oom_sessions.remove(&session);
    count_sessions(&mut state);
    awaited
}

fn count_sessions(state: &mut State) {
    let count = state.tracing.oom_sessions.len().to_string();
    state.properties.insert(SESSIONS.to_owned(), count);
}
