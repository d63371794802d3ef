//! Queries to the device with one command each, and parsers of their answers:
//! the boot, a process, the perfetto that writes to a file.

use std::time::Duration;

use super::heap_files::SCRIPT_NAME;
use super::id::SessionId;
use super::journal::{BootId, ProcessKey, SessionHeader};
use crate::error::CaptureError;
use android_memory::gc::parse_line;
use android_memory::status::{Ticks, uptime_ns};
use heaptap_adb::{Command, Device, DeviceError};

/// Time allowed for a command that only reads `/proc`.
pub(super) const QUICK: Duration = Duration::from_secs(15);

/// State of a device at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    pub boot_id: BootId,
    /// BOOTTIME, ns; `/proc/uptime` has a resolution of 10 ms.
    pub boot_ns: u64,
}

/// State of a process at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProcessFacts {
    pub(super) key: ProcessKey,
    /// `/proc/PID/cmdline`, without the closing NUL.
    pub(super) args: Vec<Vec<u8>>,
}

impl ProcessFacts {
    /// Returns whether it is perfetto, or heaptap's script for heap files, that writes to `path`.
    pub(super) fn writes_to(&self, path: &str) -> bool {
        let is =
            |arg: &Vec<u8>, name: &str| arg.rsplit(|b| *b == b'/').next() == Some(name.as_bytes());
        let perfetto = self.args.first().is_some_and(|name| is(name, "perfetto"));
        let script = self.args.first().is_some_and(|name| is(name, "sh"))
            && self.args.iter().any(|arg| is(arg, SCRIPT_NAME));
        (perfetto || script) && self.names(path)
    }

    /// Returns whether it is about to become one of these: a shell that has forked, but not yet
    /// replaced its program.
    pub(super) fn will_write_to(&self, path: &str) -> bool {
        !self.writes_to(path) && self.names(path)
    }

    fn names(&self, path: &str) -> bool {
        self.args.iter().any(|arg| arg == path.as_bytes())
    }
}

const MOMENT: &str = "cat /proc/sys/kernel/random/boot_id /proc/uptime";

/// Reads the boot ID and the uptime.
pub async fn moment(device: &Device) -> Result<Moment, CaptureError> {
    let command = Command::script(MOMENT).called("reading its clock");
    let text = device.text(&command, QUICK).await?;
    let mut lines = text.lines().map(str::trim);
    let parsed = (|| {
        Some(Moment {
            boot_id: parse_boot_id(lines.next()?)?,
            boot_ns: uptime_ns(lines.next()?)?,
        })
    })();
    parsed.ok_or_else(|| CaptureError::unexpected_answer(device, "the boot ID and uptime", &text))
}

pub(super) const PROCESS: &str = include_str!("../scripts/process.sh").trim_ascii_end();

/// Reads the state of process `pid`; `None` if it does not exist. Returns an error if the
/// answer is missing or nonsense: the process might exist.
pub(super) async fn process(
    device: &Device,
    pid: u32,
) -> Result<Option<ProcessFacts>, DeviceError> {
    const CHECK: &str = "checking the recording process";
    let command = Command::script(PROCESS).called(CHECK).arg(pid.to_string());
    let output = device.run(&command, QUICK).await?;
    if output.exit == 0 && output.stdout.is_empty() {
        return Ok(None);
    }
    let mut parts = output.stdout.splitn(2, |b| *b == b'\n');
    let stat = String::from_utf8_lossy(parts.next().unwrap_or(b"")).into_owned();
    match start_ticks(&stat).filter(|_| output.exit == 0) {
        Some(start_ticks) => Ok(Some(ProcessFacts {
            key: ProcessKey { pid, start_ticks },
            args: split_args(parts.next().unwrap_or(b"")),
        })),
        None => Err(no_answer(device, CHECK)),
    }
}

/// What writes a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TraceWriter {
    /// A start of perfetto that has not moved to the background yet. It can take 30 s.
    Starting,
    Perfetto(ProcessKey),
}

/// Returns the error of a command without a usable answer.
pub(super) fn no_answer(device: &Device, what: &str) -> DeviceError {
    DeviceError::NoAnswer {
        serial: device.serial().to_owned(),
        what: what.to_owned(),
    }
}

/// Returns the error of a connection that ended before its command did.
pub(super) fn lost(device: &Device, what: &str) -> DeviceError {
    DeviceError::Lost {
        serial: device.serial().to_owned(),
        what: what.to_owned(),
        source: None,
    }
}

/// Finds what writes to `path`, if anything.
///
/// # Errors
/// Returns an error if the device cannot be reached.
pub async fn find_writer(device: &Device, path: &str) -> Result<Option<TraceWriter>, DeviceError> {
    let list = Command::program("ps").args(["-A", "-o", "PID,PPID,ARGS"]);
    let output = device.run(&list, QUICK).await?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut processes = text.lines().filter_map(parse_ps_line).peekable();
    // The list contains at least `ps` itself; one of a `ps` that was ended lacks processes.
    if output.exit != 0 || processes.peek().is_none() {
        return Err(no_answer(device, "listing its processes"));
    }
    let mut starting = false;
    let mut daemons = Vec::new();
    for (pid, parent, args) in processes {
        if args.split_whitespace().any(|word| word == path) {
            // perfetto moves to the background by leaving its parent.
            if parent == 1 {
                daemons.push(pid);
            } else {
                starting = true;
            }
        }
    }
    for pid in daemons {
        if let Some(facts) = process(device, pid).await?
            && facts.writes_to(path)
        {
            return Ok(Some(TraceWriter::Perfetto(facts.key)));
        }
    }
    Ok(starting.then_some(TraceWriter::Starting))
}

/// Finds what writes the trace of a session, if anything.
///
/// # Errors
/// Returns an error if the device cannot be reached.
pub async fn find_own_writer(
    device: &Device,
    header: &SessionHeader,
) -> Result<Option<TraceWriter>, DeviceError> {
    let writer = find_writer(device, &header.remote_path).await?;
    // The single file of Android 10 can be that of another host's recording.
    if let Some(TraceWriter::Perfetto(process)) = &writer
        && !header.removable
        && is_of_another(device, process.pid, &header.id).await?
    {
        return Ok(None);
    }
    Ok(writer)
}

/// Returns an environment variable of perfetto on Android 10, with its value: the session.
pub(super) fn session_variable(id: &SessionId) -> String {
    format!("HEAPTAP_SESSION={id}")
}

const ENVIRONMENT: &str = "cat /proc/$1/environ 2>/dev/null";

/// Returns whether the environment of process `pid` shows that it belongs to another session. If it
/// cannot be read, it might be this one's.
async fn is_of_another(device: &Device, pid: u32, id: &SessionId) -> Result<bool, DeviceError> {
    let command = Command::script(ENVIRONMENT).called("reading an environment");
    let output = device.run(&command.arg(pid.to_string()), QUICK).await?;
    let own = session_variable(id);
    let mut variables = output.stdout.split(|byte| *byte == 0);
    Ok(!output.stdout.is_empty() && !variables.any(|variable| variable == own.as_bytes()))
}

/// Finds the perfetto process that writes the trace of this session, with a short wait for one that
/// is starting.
pub(super) async fn await_own_writer(
    device: &Device,
    header: &SessionHeader,
) -> Result<Option<ProcessKey>, DeviceError> {
    // A start waits at most 30 s for the data sources.
    for _ in 0..80 {
        match find_own_writer(device, header).await? {
            None => return Ok(None),
            Some(TraceWriter::Perfetto(process)) => return Ok(Some(process)),
            Some(TraceWriter::Starting) => tokio::time::sleep(Duration::from_millis(500)).await,
        }
    }
    Ok(None)
}

/// Returns the last lines of perfetto and the tracing service in the device log, newest last.
pub(super) async fn log_of_perfetto(device: &Device) -> Vec<String> {
    let command =
        Command::program("logcat").args(["-d", "-t", "200", "-s", "perfetto:*", "traced:*"]);
    // The log only adds details: without it the error message is shorter.
    let log = device.text(&command, QUICK).await.unwrap_or_default();
    log.lines().filter_map(message_of_log_line).collect()
}

/// Returns the message of a line of level W, E or F.
fn message_of_log_line(line: &str) -> Option<String> {
    let line = parse_line(line)?;
    matches!(line.level, Some('W' | 'E' | 'F')).then(|| line.message.trim().to_owned())
}

fn parse_ps_line(line: &str) -> Option<(u32, u32, &str)> {
    let line = line.trim_start();
    let (pid, rest) = line.split_once(char::is_whitespace)?;
    let (parent, args) = rest.trim_start().split_once(char::is_whitespace)?;
    Some((pid.parse().ok()?, parent.parse().ok()?, args))
}

/// Parses the output of `pidof`.
pub(super) fn parse_pids(text: &str) -> impl Iterator<Item = u32> {
    text.split_whitespace().filter_map(|pid| pid.parse().ok())
}

/// Parses `36cd0c44-6a0e-4e0c-9b2f-2f6f1a5a9c11`: accepts only hex digits and dashes.
pub(super) fn parse_boot_id(text: &str) -> Option<BootId> {
    let plain = |b: u8| b.is_ascii_hexdigit() || b == b'-';
    (!text.is_empty() && text.len() <= 64 && text.bytes().all(plain))
        .then(|| BootId(text.to_owned()))
}

/// Returns the start in a line of `/proc/PID/stat`.
pub(super) fn start_ticks(stat: &str) -> Option<u64> {
    Some(Ticks::parse(stat)?.start)
}

fn split_args(cmdline: &[u8]) -> Vec<Vec<u8>> {
    let cmdline = cmdline.strip_suffix(b"\0").unwrap_or(cmdline);
    cmdline.split(|b| *b == 0).map(<[u8]>::to_vec).collect()
}

/// Runs every parser of this module.
pub(super) fn every_reader(output: &[u8]) {
    split_args(output);
    for line in String::from_utf8_lossy(output).lines() {
        let _ = (message_of_log_line(line), parse_ps_line(line));
        parse_boot_id(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_adb::scripted::*;
    use heaptap_base::error::Classified as _;

    #[tokio::test(start_paused = true)]
    async fn a_strange_clock_is_refused() {
        let mut shell = service(&format!("shell,v2,raw:{}", Command::script(MOMENT).text()));
        shell.push(Step::Hear(5, None));
        shell.push(say([packet(1, b"strange\n"), packet(3, &[0])].concat()));
        let script = Scripted::new([features("shell_v2"), shell]);
        let error = moment(&script.phone()).await.unwrap_err();
        assert_eq!(script.complaints(), Vec::<String>::new());
        assert_eq!(error.kind(), "unexpected-answer");
    }

    #[test]
    fn start_ticks_are_found_behind_any_name() {
        let stat = "4711 (a ) b) S 1 4711 4711 0 -1 4194560 1 0 0 0 5 6 0 0 20 0 1 0 98765 1 2 3";
        assert_eq!(start_ticks(stat), Some(98765));
        assert_eq!(start_ticks("4711 (perfetto) S 1 2"), None);
        assert_eq!(start_ticks(""), None);
    }

    #[test]
    fn uptime_is_boottime_in_hundredths() {
        assert_eq!(uptime_ns("11842.33 90000.10"), Some(11_842_330_000_000));
        assert_eq!(uptime_ns("99999999999999999999.00 1"), None);
    }

    #[test]
    fn only_a_perfetto_that_writes_there_is_ours() {
        let facts = |cmdline: &[u8]| ProcessFacts {
            key: ProcessKey {
                pid: 1,
                start_ticks: 1,
            },
            args: split_args(cmdline),
        };
        assert!(facts(b"perfetto\0-c\0-\0-o\0/x/t\0-d\0").writes_to("/x/t"));
        assert!(facts(b"/system/bin/perfetto\0-o\0/x/t\0").writes_to("/x/t"));
        assert!(!facts(b"perfetto\0-o\0/x/tt\0").writes_to("/x/t"));
        assert!(!facts(b"rm\0/x/t\0").writes_to("/x/t"));
        let script = facts(b"sh\0-c\0echo\0heaptap-dumpheap\0/x/t\0");
        assert!(script.writes_to("/x/t") && !script.will_write_to("/x/t"));
        let shell = facts(b"sh\0-c\0sh -c $2 heaptap-dumpheap $1 &\0sh\0/x/t\0");
        assert!(!shell.writes_to("/x/t") && shell.will_write_to("/x/t"));
        assert!(!shell.will_write_to("/x/other"));
    }

    #[test]
    fn warnings_and_errors_of_the_log_are_kept() {
        assert_eq!(
            message_of_log_line(
                "11-20 09:00:00.123  1234  1235 E perfetto: session: name is in use"
            ),
            Some("session: name is in use".to_owned())
        );
        assert_eq!(
            message_of_log_line("11-20 09:00:00.123  1234  1235 I perfetto: started"),
            None
        );
        assert_eq!(message_of_log_line("--------- beginning of main"), None);
    }
}
