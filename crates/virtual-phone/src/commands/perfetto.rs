//! The perfetto client: options, config, output file, background, queries.

use std::sync::Arc;

use prost::Message as _;

use super::{Cmd, Done, Halt, refuse};
use crate::clock::MILLI;
use crate::faults::FaultKind;
use crate::fs::{Errno, FileData, Kind, Node, normalize};
use crate::init::TRACED;
use crate::io::{Fd, Fds};
use crate::kernel::Kernel;
use crate::process::{Pid, SIGINT, SIGTERM, Stop};
use crate::program::run_as;
use crate::traced::{Outcome, Session};
use crate::tracing::{config, recording};
use heaptap_proto::perfetto as pb;

/// Directory that SELinux permits the client to write to.
const TRACES: &str = "/data/misc/perfetto-traces/";
/// Time in nanoseconds that `-D` waits for the sources.
const WAIT_FOR_SOURCES: u64 = 30_000 * MILLI;

const UNREACHABLE: &str = "[000.001] perfetto_cmd.cc:1004      Could not connect to the traced \
socket /dev/socket/traced_consumer. Ensure traced is running or use tracebox --autodaemonize.";

pub(super) fn perfetto(cmd: &mut Cmd) -> Done {
    let version = cmd.kernel.spec.perfetto_version();
    let mut known = "-c: -o: --txt -d --query-raw --version".to_owned();
    for (option, since) in [(" -D", 25), (" --no-clobber", 54)] {
        known.extend((version >= since).then_some(option));
    }
    let options = cmd.options(&known)?;
    if let Some(word) = options.rest.first() {
        return refuse(1, format!("perfetto: unrecognized option '{word}'"));
    }
    if options.has("--version") {
        return cmd.answer(&format!("Perfetto v{version}.0 (N/A)\n"));
    }
    if cmd.kernel.faults.has_struck(FaultKind::PerfettoFail) {
        return refuse(
            1,
            "perfetto: error while loading shared libraries: libperfetto.so: cannot open shared object file",
        );
    }
    let traced = cmd.kernel.state().processes.pid_of(TRACED).is_some();
    if options.has("--query-raw") {
        return match traced {
            true => query(cmd),
            false => refuse(1, UNREACHABLE),
        };
    }
    let Some(source) = options.value("-c") else {
        return refuse(1, "perfetto: --config/-c is required");
    };
    let config = read_config(cmd, source, options.has("--txt"))?;
    let Some(out) = options.value("-o") else {
        return refuse(1, "[000.001] perfetto_cmd.cc:720       --out is required");
    };
    let wait = options.has("-D");
    let file = open_output(cmd, out, options.has("--no-clobber")).map_err(|errno| {
        Halt::refused(1, format!(
            "[000.002] perfetto_cmd.cc:1189      Failed to open {out}. If you get permission denied in /data/misc/perfetto-traces, the file might have been created by another user, try deleting it first. (errno: {}, {})",
            errno.number(),
            errno.text()
        ))
    })?;
    if !traced {
        remove_path(&cmd.kernel, &normalize(&cmd.cwd, out));
        let failed = match wait {
            true => "\n[000.010] perfetto_cmd.cc:1020      Background process failed, WaitStatus=1",
            false => "",
        };
        return refuse(1, format!("{UNREACHABLE}{failed}"));
    }
    let work = Work {
        config,
        file: file.clone(),
        out: out.to_owned(),
    };
    if wait || options.has("-d") {
        return background(cmd, work, wait);
    }
    catch_signals(&cmd.kernel, cmd.pid);
    let duration = match work.config.duration_ms() {
        0 => String::new(),
        ms => format!(" for {ms} ms"),
    };
    cmd.err(&format!(
        "[000.003] perfetto_cmd.cc:1053      Connected to the Perfetto traced service, starting tracing{duration}\n"
    ))?;
    match record(&cmd.kernel, cmd.pid, work) {
        Err(text) => refuse(
            0,
            format!("[000.010] perfetto_cmd.cc:1210      Service error: {text}"),
        ),
        Ok(Outcome::Finished) if out == "-" => {
            cmd.out_bytes(&file.contents())?;
            Ok(0)
        }
        Ok(Outcome::Finished) => {
            let len = file.len();
            let text = format!("[010.000] perfetto_cmd.cc:1330      Wrote {len} bytes into {out}");
            refuse(0, text)
        }
        Ok(Outcome::Killed(signal)) => Err(Stop::Killed(signal).into()),
        Ok(Outcome::Disconnected) => refuse(
            1,
            "[010.000] perfetto_cmd.cc:1240      Disconnected from the traced service",
        ),
    }
}

/// `trigger_perfetto NAME…`: activates the triggers of these names.
pub(super) fn trigger_perfetto(cmd: &mut Cmd) -> Done {
    let names = cmd.args();
    if names.is_empty() {
        return refuse(1, "Usage: trigger_perfetto TRIGGER_NAME [TRIGGER_NAME ...]");
    }
    cmd.kernel.change(|state, now| {
        let activations = names.into_iter().map(|name| (name, now.boot));
        state.tracing.activations.extend(activations);
    });
    Ok(0)
}

/// Inputs of a session.
struct Work {
    config: pb::TraceConfig,
    file: Arc<FileData>,
    out: String,
}

fn read_config(cmd: &Cmd, source: &str, text: bool) -> Result<pb::TraceConfig, Halt> {
    let bad = |why| Halt::refused(1, format!("[000.001] perfetto_cmd.cc:690       {why}"));
    // SELinux denies the client access to the shell's own files.
    let allowed = source.starts_with("/data/misc/perfetto-configs/");
    let read = match source {
        "-" => Ok(cmd.read("-")?),
        _ if cmd.kernel.state().enforcing && !allowed => Err(Errno::Access),
        source => cmd.kernel.read_all(&cmd.cred, &cmd.cwd, source),
    };
    let bytes = read.map_err(|errno| {
        let (number, why) = (errno.number(), errno.text());
        bad(format!("Could not open {source} (errno: {number}, {why})"))
    })?;
    if bytes.is_empty() {
        return Err(bad("The TraceConfig is empty".to_owned()));
    }
    let parsed = if text {
        config::parse_text(&cmd.kernel.spec, &String::from_utf8_lossy(&bytes))
    } else {
        config::decode(&bytes).map_err(|_| {
            "The trace config is invalid, bailing out. Did you forget --txt?".to_owned()
        })
    };
    parsed.map_err(bad)
}

/// Opens the output as the client does: truncated, 0600, only in its own directory.
fn open_output(cmd: &Cmd, out: &str, no_clobber: bool) -> Result<Arc<FileData>, Errno> {
    if out == "-" {
        return Ok(Arc::default());
    }
    let parts = normalize(&cmd.cwd, out);
    let mut state = cmd.kernel.state();
    let own = out.starts_with(TRACES) && parts.len() == 4;
    if !own && state.enforcing {
        return Err(Errno::Access);
    }
    if let Some(node) = state.tree.node(&parts) {
        let Kind::File(data) = &node.kind else {
            return Err(Errno::IsDirectory);
        };
        // Neither root nor the shell can overwrite a file of the other.
        if node.uid != cmd.cred.uid {
            return Err(Errno::Access);
        }
        if no_clobber {
            return Err(Errno::Exists);
        }
        data.truncate(0);
        return Ok(data.clone());
    }
    let now = (cmd.kernel.clock.real() / 1_000_000_000) as i64;
    let data = FileData::new(Vec::new(), now);
    let mut node = Node::new(Kind::File(data.clone()), 0o600, cmd.cred.uid, cmd.cred.gid);
    node.label = "perfetto_traces_data_file";
    node.mtime = now;
    state.tree.put(&parts, node)?;
    Ok(data)
}

fn remove_path(kernel: &Kernel, parts: &[String]) {
    kernel.change(|state, _| state.tree.remove(parts));
}

fn catch_signals(kernel: &Kernel, pid: Pid) {
    if let Some(p) = kernel.state().processes.get_mut(pid) {
        p.caught.extend([SIGINT, SIGTERM]);
        p.one_shot.extend([SIGINT, SIGTERM]);
        p.ignored.remove(&SIGINT);
        p.ignored.remove(&SIGTERM);
    }
}

/// Registers a session and records it on this thread; signals to `pid` stop it. An error is the
/// service's reason to reject it.
fn record(kernel: &Kernel, pid: Pid, work: Work) -> Result<Outcome, String> {
    let config = &work.config;
    let session = Session {
        id: 0,
        uid: 2000,
        client: pid,
        name: config.unique_session_name.clone().filter(|n| !n.is_empty()),
        started: false,
        start_real: kernel.clock.real(),
    };
    let mut why = config::rejection(&kernel.spec, config);
    if kernel.faults.has_struck(FaultKind::PerfettoReject) {
        why = Some("Too many concurrent tracing sessions".to_owned());
    }
    let opened = match why {
        Some(why) => Err(why),
        None => kernel.state().tracing.open(session),
    };
    match opened {
        Err(why) => {
            if work.out != "-" {
                remove_path(kernel, &normalize("/", &work.out));
            }
            kernel.log(pid, 'E', "perfetto", &format!("Service error: {why}"));
            Err(why)
        }
        Ok(id) => {
            let text = "Enabled tracing, uid:2000, session started";
            kernel.log(pid, 'I', "perfetto", text);
            let Work { config, file, out } = work;
            Ok(recording::run(kernel, pid, id, config, file, &out))
        }
    }
}

/// Forks, prints the child's PID and lets it record.
fn background(cmd: &mut Cmd, work: Work, wait: bool) -> Done {
    let Some(pid) = cmd.kernel.spawn_process(1, &cmd.cred, &cmd.argv) else {
        return refuse(1, "perfetto: fork failed: Try again");
    };
    if let Some(p) = cmd.kernel.state().processes.get_mut(pid) {
        p.domain = "perfetto".to_owned();
        p.env.clone_from(&cmd.env);
    }
    catch_signals(&cmd.kernel, pid);
    let triggers = work.config.trigger_config.is_some();
    let kernel = cmd.kernel.clone();
    let started = run_as(&cmd.kernel, pid, move || match record(&kernel, pid, work) {
        Ok(Outcome::Killed(signal)) => Stop::Killed(signal).status(),
        Ok(Outcome::Disconnected) => 1,
        Ok(Outcome::Finished) | Err(_) => 0,
    });
    if !started {
        return Ok(1);
    }
    let noise = cmd.kernel.faults.has_struck(FaultKind::PerfettoNoise);
    let mut status = 0;
    if wait {
        let deadline = cmd.kernel.clock.boot() + WAIT_FOR_SOURCES;
        let kernel = cmd.kernel.clone();
        let ready = || {
            let state = kernel.state();
            let gone = state.processes.get(pid).is_none();
            let mut sessions = state.tracing.sessions.iter();
            (gone || sessions.any(|s| s.client == pid && s.started)).then_some(())
        };
        if triggers || cmd.kernel.block(cmd.pid, Some(deadline), ready)?.is_none() {
            cmd.err("Timeout waiting for all data sources to start\n")?;
            status = 2;
        }
    }
    if noise {
        cmd.err("WARNING: linker: Warning: \"/vendor/lib64/libfoo.so\" unused DT entry: DT_RPATH (type 0xf arg 0x1b2) (ignoring)\n")?;
        cmd.out("WARNING: linker: 4242 entries ignored\n")?;
    }
    cmd.out(&format!("{pid}\n"))?;
    // The child does not inherit the parent's files: daemonize() redirects them to /dev/null.
    let stdout = cmd.fds.get(1).cloned();
    cmd.fds = Fds::new(Fd::Null, stdout.unwrap_or(Fd::Null), Fd::Null);
    Ok(status)
}

/// Data sources of a phone with the Android release that added each one.
const SOURCES: [(&str, u32); 9] = [
    ("android.heapprofd", 10),
    ("android.java_hprof", 11),
    ("android.java_hprof.oom", 14),
    ("android.log", 10),
    ("android.packages_list", 10),
    ("android.power", 10),
    ("linux.ftrace", 10),
    ("linux.process_stats", 10),
    ("linux.sys_stats", 10),
];

/// `--query-raw`: sources and sessions of the service.
fn query(cmd: &Cmd) -> Done {
    use pb::tracing_service_state as ts;
    let spec = &cmd.kernel.spec;
    let sources = SOURCES.iter().filter(|(_, since)| *since <= spec.android);
    let sources = sources.map(|(name, _)| ts::DataSource {
        ds_descriptor: Some(ts::DataSourceDescriptor {
            name: Some((*name).to_owned()),
        }),
    });
    let sessions = cmd.kernel.state().tracing.sessions.clone();
    let sessions = sessions.into_iter().filter(|_| spec.android >= 12);
    let sessions = sessions.map(|s| ts::TracingSession {
        id: Some(s.id),
        consumer_uid: Some(s.uid as i32),
        state: Some(if s.started { "STARTED" } else { "CONFIGURED" }.to_owned()),
        unique_session_name: s.name,
        start_realtime_ns: Some(s.start_real as i64),
    });
    let service = pb::TracingServiceState {
        data_sources: sources.collect(),
        tracing_service_version: Some(format!("Perfetto v{}.0 (N/A)", spec.perfetto_version())),
        tracing_sessions: sessions.collect(),
    };
    cmd.out_bytes(&service.encode_to_vec())?;
    Ok(0)
}
