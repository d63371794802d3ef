//! A phone of the real bench for one story: boots it under its own name, runs commands in its
//! network, causes faults, and removes everything at the end. Owns the protocol with `bench.sh` and
//! the deadlines; knows only the path of heaptap's binary.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Time limit of one step. Far above what a step needs, because several stories share the machine.
pub const SOON: Duration = Duration::from_secs(30);

/// Address of the phone, for `adb connect` and `-s`.
pub const SERIAL: &str = "127.0.0.1:5601";

/// A booted phone and its network.
pub struct Phone {
    bench: PathBuf,
    name: String,
    /// Directory for the story's files on the host.
    work: tempfile::TempDir,
}

impl Phone {
    /// Boots a phone and connects a new adb server to it.
    pub fn boot(story: &str) -> Self {
        let phone = Self::boot_unconnected(story, 5601);
        phone.connect(SERIAL);
        phone
    }

    /// Boots a phone whose adbd listens on `port`; its network has no adb server.
    pub fn boot_unconnected(story: &str, port: u16) -> Self {
        let bench = std::env::var_os("HEAPTAP_BENCH");
        let bench = bench.expect("these stories are run by tests/bench/bench.sh test");
        let phone = Self {
            bench: bench.into(),
            name: story.to_owned(),
            work: tempfile::tempdir().expect("a folder for the story"),
        };
        let port = port.to_string();
        let boot = phone.bench(&["up", story, &port]).end(SOON);
        assert!(boot.status.success(), "the phone does not boot: {boot:?}");
        phone
    }

    /// Boots a second phone in the same network; returns its serial once connected.
    pub fn boot_another(&self, port: u16) -> Another<'_> {
        let name = format!("{}-{port}", self.name);
        let also = self
            .bench(&["also", &self.name, &name, &port.to_string()])
            .end(SOON);
        assert!(also.status.success(), "no second phone: {also:?}");
        let another = Another {
            serial: format!("127.0.0.1:{port}"),
            name,
            first: self,
        };
        self.connect(&another.serial);
        another
    }

    /// Connects the adb server to `serial`.
    pub fn connect(&self, serial: &str) {
        let connect = self.host("adb", &["connect", serial]).end(SOON);
        assert!(
            connect.stdout.contains("connected to"),
            "adb does not connect: {connect:?}"
        );
    }

    /// Returns the directory for the story's files on the host.
    pub fn work(&self) -> &Path {
        self.work.path()
    }

    /// Writes a file there, for example a config.
    pub fn write(&self, name: &str, text: &str) -> String {
        let path = self.work().join(name);
        fs::write(&path, text).expect("the story's folder is writable");
        path.to_string_lossy().into_owned()
    }

    /// heaptap with `args`, in the phone's network and the story's directory.
    pub fn heaptap(&self, args: &[&str]) -> Run {
        self.host(env!("CARGO_BIN_EXE_heaptap"), args)
    }

    /// A host command, in the phone's network and the story's directory.
    pub fn host(&self, program: &str, args: &[&str]) -> Run {
        let mut all = vec!["run", &self.name, program];
        all.extend(args);
        self.bench(&all)
    }

    /// `adb shell SCRIPT`, as the phone's shell user.
    pub fn shell(&self, script: &str) -> Ended {
        self.host("adb", &["-s", SERIAL, "shell", script]).end(SOON)
    }

    /// Runs a command as root on the phone, without adb. Fails unless it succeeds.
    pub fn on(&self, args: &[&str]) -> String {
        let mut all = vec!["on", &self.name];
        all.extend(args);
        let done = self.bench(&all).end(SOON);
        assert!(done.status.success(), "{args:?} on the phone: {done:?}");
        done.stdout
    }

    /// Sends `signal` to the one process called `name` on the phone.
    pub fn signal(&self, signal: &str, name: &str) {
        // Not pkill: perfetto names its thread after its session.
        self.on(&["killall", &format!("-{signal}"), name]);
    }

    /// A file on the phone as a host path; `path` is its path on the phone (below /data).
    pub fn file(&self, path: &str) -> PathBuf {
        let data = path.strip_prefix("/data/").expect("only /data is shared");
        self.directory().join("data").join(data)
    }

    /// HOME on the host.
    pub fn home(&self) -> PathBuf {
        self.directory().join("home")
    }

    fn directory(&self) -> PathBuf {
        let run = std::env::var_os("HEAPTAP_BENCH_DIR").expect("set beside HEAPTAP_BENCH");
        Path::new(&run).join("run").join(&self.name)
    }

    /// The traces on the phone, with name and size.
    pub fn traces(&self) -> Vec<(PathBuf, u64)> {
        let mut traces: Vec<_> = fs::read_dir(self.file("/data/misc/perfetto-traces"))
            .expect("every phone has this folder")
            .map(|entry| {
                let entry = entry.expect("readable");
                // Removed between the listing and the query: skip it.
                let size = entry.metadata().map_or(0, |metadata| metadata.len());
                (entry.path(), size)
            })
            .collect();
        traces.sort();
        traces
    }

    /// Runs `bench.sh` in the story's directory. `run` replaces itself with the command, so that
    /// signals reach it.
    fn bench(&self, args: &[&str]) -> Run {
        let mut command = Command::new(&self.bench);
        command
            .args(args)
            .current_dir(self.work.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Run::start(command, args.join(" "))
    }
}

impl Drop for Phone {
    fn drop(&mut self) {
        self.bench(&["down", &self.name]).end(SOON);
    }
}

/// A second phone in the network of the first.
pub struct Another<'a> {
    /// Serial as in `adb devices`.
    pub serial: String,
    name: String,
    first: &'a Phone,
}

impl Drop for Another<'_> {
    fn drop(&mut self) {
        self.first.bench(&["down", &self.name]).end(SOON);
    }
}

/// A running command; killed when dropped.
pub struct Run {
    child: Child,
    words: String,
    stdout: Stream,
    stderr: Stream,
}

/// A command that ended.
#[derive(Debug)]
pub struct Ended {
    /// Exit status.
    pub status: ExitStatus,
    /// Contents of stdout.
    pub stdout: String,
    /// Contents of stderr.
    pub stderr: String,
}

impl Ended {
    /// The exit code; `None` if a signal killed it.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// All output, for messages and for words that may be in either stream.
    pub fn words(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

impl Run {
    pub fn start(mut command: Command, words: String) -> Self {
        let mut child = command.spawn().expect("bench.sh starts");
        let stdout = Stream::drain(child.stdout.take().expect("piped"));
        let stderr = Stream::drain(child.stderr.take().expect("piped"));
        Self {
            child,
            words,
            stdout,
            stderr,
        }
    }

    /// Whether it has ended.
    pub fn ended(&mut self) -> bool {
        self.child.try_wait().expect("our child").is_some()
    }

    pub fn signal(&self, signal: &str) {
        let sent = Command::new("kill")
            .args([&format!("-{signal}"), &self.child.id().to_string()])
            .status();
        assert!(sent.expect("kill runs").success(), "no {signal} sent");
    }

    /// Waits for its end. After `limit` the story fails and prints the output so far.
    pub fn end(mut self, limit: Duration) -> Ended {
        let begun = Instant::now();
        let mut late = false;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("our child") {
                break status;
            }
            if begun.elapsed() > limit {
                late = true;
                self.child.kill().ok();
                break self.child.wait().expect("our child");
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let ended = Ended {
            status,
            stdout: self.written(&self.stdout),
            stderr: self.written(&self.stderr),
        };
        assert!(!late, "`{}` hangs: {ended:?}", self.words);
        ended
    }

    /// Stderr so far.
    pub fn said(&self) -> String {
        self.stderr.so_far()
    }

    /// Stdout so far.
    pub fn wrote(&self) -> String {
        self.stdout.so_far()
    }

    /// The whole stream. It ends with the command: a server started by it must not hold it open.
    fn written(&self, stream: &Stream) -> String {
        stream.ended.recv_timeout(SOON).unwrap_or_else(|_| {
            panic!("`{}` ended, but something holds its output", self.words);
        });
        stream.so_far()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A stream of a command, read while it runs.
struct Stream {
    bytes: Arc<Mutex<Vec<u8>>>,
    ended: Receiver<()>,
}

impl Stream {
    fn drain(mut pipe: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let (sender, ended) = mpsc::channel();
        let sink = Arc::clone(&bytes);
        std::thread::spawn(move || {
            let mut block = [0; 4096];
            // Output before an error is useful too.
            while let Ok(read @ 1..) = pipe.read(&mut block) {
                sink.lock()
                    .expect("nobody panics holding it")
                    .extend(&block[..read]);
            }
            // The receiver is gone if the story has failed meanwhile.
            sender.send(()).ok();
        });
        Self { bytes, ended }
    }

    fn so_far(&self) -> String {
        let bytes = self.bytes.lock().expect("nobody panics holding it");
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Waits until `holds`; fails the story if it does not within `limit`.
pub fn until(what: &str, limit: Duration, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < limit, "never came: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
