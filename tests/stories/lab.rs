//! A virtual phone, a state directory and a work directory for one story. Runs the real binary
//! against the phone over a real socket. Owns deadlines and the comparison of a recording with the
//! actual allocations.

use std::cell::Cell;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::Value;
use virtual_phone::{PhoneSpec, RecordingTruth, VirtualPhone};

use crate::program::{Arguments, Ended};

/// Deadline of a step: a story that waits longer has failed. Under wine, programs start slowly.
pub const LIMIT: Duration = Duration::from_secs(if cfg!(windows) { 180 } else { 60 });

/// The app of most stories.
pub const APP: &str = "com.example.app";

/// The environment of one story.
pub struct Lab {
    pub phone: VirtualPhone,
    pub dir: tempfile::TempDir,
}

impl Lab {
    /// Creates a phone from `spec`.
    pub fn new(spec: &str) -> Lab {
        let spec = PhoneSpec::parse(spec).expect("a valid spec");
        let dir = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir(dir.path().join("work")).expect("a work folder");
        Lab {
            phone: VirtualPhone::start(spec).expect("a virtual phone"),
            dir,
        }
    }

    /// Returns heaptap's working directory.
    pub fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    /// heaptap with `args` and its own state directory.
    pub fn start(&self, args: impl Arguments) -> Running {
        self.start_as("state", args)
    }

    /// heaptap as on another user account or host: with the state directory `state`.
    pub fn start_as(&self, state: &str, args: impl Arguments) -> Running {
        self.start_on(&self.phone, state, args)
    }

    /// heaptap with another phone, in the same directory.
    pub fn start_on(&self, phone: &VirtualPhone, state: &str, args: impl Arguments) -> Running {
        let args = args.list();
        let command = self.prepared(crate::program::heaptap(), state, &args);
        start_at(command, &phone.addr().to_string(), &args)
    }

    /// heaptap with several adb servers, or with another.
    pub fn start_at(&self, servers: &str, args: impl Arguments) -> Running {
        let args = args.list();
        start_at(self.command(&args), servers, &args)
    }

    /// heaptap with the directories of this story and no adb server, to be started with pipes.
    pub fn command(&self, args: impl Arguments) -> Command {
        self.prepared(crate::program::heaptap(), "state", args)
    }

    /// heaptap as `nohup` starts it: SIGHUP is ignored.
    #[cfg(unix)]
    pub fn start_under_nohup(&self, args: impl Arguments) -> Running {
        let heaptap = crate::program::heaptap();
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]);
        shell.arg(heaptap.get_program());
        let args = args.list();
        let shell = self.prepared(shell, "state", &args);
        start_at(shell, &self.phone.addr().to_string(), &args)
    }

    fn prepared(&self, mut command: Command, state: &str, args: impl Arguments) -> Command {
        command
            .args(args.list())
            .current_dir(self.work())
            .env("HEAPTAP_STATE_DIR", self.dir.path().join(state))
            .env("HEAPTAP_CACHE_DIR", self.dir.path().join("cache"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs heaptap to its end.
    pub fn run(&self, args: impl Arguments) -> Ended {
        self.start(args).end()
    }

    /// Runs heaptap to its end and expects `code`.
    pub fn expect(&self, code: i32, args: impl Arguments) -> Ended {
        let ended = self.run(args);
        ended.assert_code(code);
        ended
    }

    /// Runs heaptap with `--json` to its end, expects `code`, and returns the error.
    pub fn fails(&self, code: i32, args: impl Arguments) -> Value {
        self.expect(code, (args, "--json")).error()
    }

    /// What `status` lists.
    pub fn status(&self) -> Value {
        self.expect(0, "status --json").json()
    }

    /// Starts to record `APP` into `out` with `more` flags, and waits until perfetto runs.
    pub fn record(&self, more: impl Arguments) -> Running {
        let mut running = self.start_recording(more);
        running.until("started");
        running
    }

    /// Starts to record `APP` into `out` with `more` flags.
    pub fn start_recording(&self, more: impl Arguments) -> Running {
        self.start(recording("out", ("--json-lines", more)))
    }

    /// Returns the journal of the only session.
    pub fn journal(&self) -> PathBuf {
        let sessions = self.dir.path().join("state/sessions");
        let mut names = files(&sessions).into_iter();
        let name = names.find(|name| name.ends_with(".jsonl"));
        sessions.join(name.expect("a journal"))
    }

    /// Returns the manifest in a directory of the work directory.
    pub fn manifest(&self, directory: &str) -> Value {
        let path = self.work().join(directory).join("manifest.json");
        let text = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        serde_json::from_slice(&text).expect("a manifest is JSON")
    }

    /// Returns the output of a one-word command in the phone's shell.
    pub fn shell(&self, command: &'static str) -> String {
        self.on_phone(&heaptap_adb::Command::program(command))
    }

    /// Waits that many seconds by the phone's clock.
    pub fn wait_on_phone(&self, seconds: f64) {
        let sleep = heaptap_adb::Command::program("sleep");
        self.on_phone(&sleep.arg(format!("{seconds:.3}")));
    }

    /// Returns the output of a command in the phone's shell.
    pub fn on_phone(&self, command: &heaptap_adb::Command) -> String {
        let output = self.output_on_phone(command);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs a command in the phone's shell, which must succeed.
    pub fn on_phone_ok(&self, program: &'static str, args: &[&str]) {
        let command = heaptap_adb::Command::program(program).args(args.list());
        assert_eq!(self.output_on_phone(&command).exit, 0, "{command}");
    }

    fn output_on_phone(&self, command: &heaptap_adb::Command) -> heaptap_adb::Output {
        use heaptap_adb::{Address, Selector, Server};
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let address = self.phone.addr();
            let address = Address::new(address.ip().to_string(), address.port());
            let device = Server::at(address)
                .select(&Selector::Only)
                .await
                .expect("the phone");
            device.run(command, LIMIT).await.expect("an answer")
        })
    }

    /// Waits until `holds`.
    pub fn until(&self, what: &str, holds: impl Fn(&Lab) -> bool) {
        let begun = Instant::now();
        while !holds(self) {
            assert!(begun.elapsed() < LIMIT, "never came: {what}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits until the only session has ended and waits to be fetched.
    pub fn until_ended(&self) {
        self.until("the end", |lab| {
            lab.status()["sessions"][0]["state"] == "uncollected"
        });
    }

    /// Restarts the phone, and removes the traces on it.
    pub fn reboot_without_traces(&self) {
        self.phone.reboot(0);
        self.until("the phone is back", |lab| {
            lab.run("devices --json").stdout.contains("virtual-1")
        });
        for trace in self.traces() {
            self.on_phone_ok("rm", &[&format!("/data/misc/perfetto-traces/{trace}")]);
        }
    }

    /// Names in the trace directory of the phone.
    pub fn traces(&self) -> Vec<String> {
        self.phone.list("/data/misc/perfetto-traces")
    }

    /// Checks that nothing remains: no trace on the phone, no journal, no lock, no unfinished file.
    pub fn assert_tidy(&self, directory: &str) {
        assert_eq!(self.traces(), Vec::<String>::new(), "on the phone");
        assert_eq!(
            files(&self.dir.path().join("state/sessions")),
            Vec::<String>::new(),
            "in the journal"
        );
        let mut directories = vec![self.work().join(directory)];
        while let Some(directory) = directories.pop() {
            for file in files(&directory) {
                let path = directory.join(&file);
                assert!(!file.starts_with('.'), "unfinished file {}", path.display());
                directories.extend(path.is_dir().then_some(path));
            }
        }
    }

    /// Whether a session is left to collect. A process to be killed near its end can end before
    /// that, above all on a busy host; then there is none.
    pub fn is_left(&self) -> bool {
        let status = self.status();
        !status["sessions"].as_array().expect("sessions").is_empty()
    }

    /// The phone's record for the trace of this directory. A Java heap taken at a label is a
    /// separate recording on the phone, which can be the newer one.
    pub fn truth_of(&self, directory: &str) -> RecordingTruth {
        let manifest = self.manifest(directory);
        let path = manifest["session"]["remote_path"].as_str().expect("a path");
        let truths = self.phone.truth();
        let truth = truths.into_iter().rfind(|t| t.path == path);
        truth.expect("the phone recorded it")
    }

    /// Checks that the directory has the actual allocations, dump by dump, and every dump that
    /// heapprofd wrote.
    pub fn assert_truth(&self, directory: &str) {
        self.assert_has(directory, &self.truth_of(directory));
    }

    /// Checks that the directory has this recording of a phone.
    pub fn assert_has(&self, directory: &str, truth: &RecordingTruth) {
        let manifest = self.manifest(directory);
        let mut expected: Vec<(u64, String, u64, u64)> = truth
            .dumps
            .iter()
            .map(|d| {
                let allocated: u64 = d.sites.iter().map(|s| s.sampled_allocated).sum();
                let freed: u64 = d.sites.iter().map(|s| s.sampled_freed).sum();
                (d.pid.into(), d.heap.clone(), allocated, allocated - freed)
            })
            .collect();
        expected.sort();
        let mut found: Vec<(u64, String, u64, u64)> = manifest["dumps"]
            .as_array()
            .expect("dumps")
            .iter()
            .map(|d| {
                let number = |key: &str| d["totals"][key].as_u64().unwrap_or(u64::MAX);
                let heap = match d["heap"].as_str().unwrap_or_default() {
                    // Before Android 12 the trace does not contain its name.
                    "unknown" => "libc.malloc".to_owned(),
                    heap => heap.to_owned(),
                };
                if let Some(file) = d["file"].as_str() {
                    assert!(self.work().join(directory).join(file).is_file(), "{file}");
                }
                (
                    d["pid"].as_u64().unwrap_or(0),
                    heap,
                    number("alloc_space"),
                    number("space"),
                )
            })
            .collect();
        found.sort();
        assert!(!expected.is_empty(), "the phone dumped nothing");
        assert_eq!(found, expected, "{manifest:#}");
    }
}

fn start_at(mut command: Command, servers: &str, args: &[String]) -> Running {
    command.args(["--adb-server", servers]);
    Running::new(command.spawn().expect("heaptap starts"), args)
}

/// `record` of `APP` into `directory` with `more` flags.
pub fn recording(directory: &str, more: impl Arguments) -> Vec<String> {
    (format!("record -n {APP} -o {directory}"), more).list()
}

/// Names of the files in a directory; empty if it does not exist.
pub fn files(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|item| item.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// A running heaptap; killed when dropped.
pub struct Running {
    child: Child,
    args: String,
    lines: Receiver<String>,
    seen: Vec<String>,
    stderr: Receiver<String>,
    is_signaled: Cell<bool>,
}

impl Running {
    /// A child whose stdout and stderr are pipes.
    pub fn new(mut child: Child, args: impl Arguments) -> Running {
        let (line_sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if line_sender.send(line).is_err() {
                    return;
                }
            }
        });
        let (text_sender, stderr) = channel();
        let mut pipe = child.stderr.take().expect("piped");
        std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = pipe.read_to_end(&mut text);
            let _ = text_sender.send(String::from_utf8_lossy(&text).into_owned());
        });
        Running {
            child,
            args: args.list().join(" "),
            lines,
            seen: Vec::new(),
            stderr,
            is_signaled: Cell::new(false),
        }
    }

    /// Waits for an event of `--json-lines` by its name, and returns it.
    pub fn until(&mut self, event: &str) -> Value {
        self.until_that(event, |_| true)
    }

    /// Waits for an event of `--json-lines`; false if the process ends without it.
    pub fn comes(&mut self, event: &str) -> bool {
        while let Ok(line) = self.lines.recv_timeout(LIMIT) {
            let value = serde_json::from_str::<Value>(&line);
            self.seen.push(line);
            if value.is_ok_and(|value| value["event"] == event) {
                return true;
            }
        }
        false
    }

    /// Waits for the next line of stdout; `None` if the process ends without one.
    pub fn next_line(&mut self) -> Option<String> {
        let line = self.lines.recv_timeout(LIMIT).ok()?;
        self.seen.push(line.clone());
        Some(line)
    }

    /// Waits until a second of the phone is recorded, which is enough for attaching.
    pub fn until_recorded(&mut self) {
        self.until_that("progress", |p| p["elapsed_s"].as_f64() >= Some(1.0));
    }

    /// Waits for an event of `--json-lines` that `holds`.
    pub fn until_that(&mut self, event: &str, holds: impl Fn(&Value) -> bool) -> Value {
        self.until_line(event, |value| value["event"] == event && holds(value))
    }

    /// Waits for a line of JSON that `holds`; `what` describes it.
    pub fn until_line(&mut self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        self.until_some(what, |line| {
            let value = serde_json::from_str::<Value>(line).ok()?;
            holds(&value).then_some(value)
        })
    }

    /// Waits for a line for which `find` returns a value; `what` describes it.
    pub fn until_some<T>(&mut self, what: &str, find: impl Fn(&str) -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            let left = LIMIT.saturating_sub(begun.elapsed());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    let found = find(&line);
                    self.seen.push(line);
                    if let Some(found) = found {
                        return found;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    panic!(
                        "`heaptap {}`: no {what} in time: {:#?}",
                        self.args, self.seen
                    )
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let stderr = self.stderr.recv_timeout(LIMIT).unwrap_or_default();
                    panic!(
                        "`heaptap {}` ended without {what}: {:#?}\n{stderr}",
                        self.args, self.seen
                    )
                }
            }
        }
    }

    /// Its PID.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal (`INT`, `TERM`, `HUP`, `KILL`), as a person does: a second one takes a moment.
    pub fn signal(&self, signal: &str) {
        if self.is_signaled.replace(true) {
            std::thread::sleep(Duration::from_millis(200));
        }
        self.signal_at_once(signal);
    }

    /// Sends a signal.
    pub fn signal_at_once(&self, signal: &str) {
        crate::signals::send(self.id(), signal);
    }

    /// Interrupts it, waits for its end and expects `code`.
    pub fn interrupted(self, code: i32) -> Ended {
        self.signal("INT");
        let ended = self.end();
        ended.assert_code(code);
        ended
    }

    /// Interrupts it, and again while it is ending, so that it leaves the recording on the phone.
    pub fn interrupt_twice(mut self) -> Ended {
        self.until_recorded();
        self.signal("INT");
        self.until("stopping");
        self.signal("INT");
        self.end()
    }

    /// Waits for its end.
    pub fn end(self) -> Ended {
        self.end_within(LIMIT)
    }

    /// Waits for its end and expects `code`.
    pub fn ends(self, code: i32) -> Ended {
        let ended = self.end();
        ended.assert_code(code);
        ended
    }

    /// Waits so long for its end.
    pub fn end_within(mut self, limit: Duration) -> Ended {
        let begun = Instant::now();
        let mut lines = std::mem::take(&mut self.seen);
        // Stdout ends with the process, because children do not inherit it.
        loop {
            match self
                .lines
                .recv_timeout(limit.saturating_sub(begun.elapsed()))
            {
                Ok(line) => lines.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    let _ = self.child.kill();
                    let stderr = self.stderr.recv_timeout(LIMIT).unwrap_or_default();
                    panic!("`heaptap {}` hangs: {lines:#?}\n{stderr}", self.args)
                }
            }
        }
        let status = self.child.wait().expect("our own child");
        let stdout = lines.iter().map(|line| format!("{line}\n")).collect();
        let stderr = self.stderr.recv_timeout(LIMIT).unwrap_or_default();
        Ended {
            status,
            stdout,
            stderr,
            args: std::mem::take(&mut self.args),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
