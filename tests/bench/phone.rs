//! A phone of the real bench, as a story holds it: booted under a name of its own, commands
//! run in its network, faults done to it, everything taken down at the end. Owns the talk with
//! `bench.sh` and the deadlines; knows nothing of heaptap but the path of its binary.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What one step may take before the story fails. Far above what it does take, since several
/// stories share the machine.
pub const SOON: Duration = Duration::from_secs(30);

/// Where the phone listens, as `adb connect` and `-s` name it.
pub const SERIAL: &str = "127.0.0.1:5601";

/// A booted phone and its network.
pub struct Phone {
    bench: PathBuf,
    name: String,
    /// Folder for what a story writes on the host.
    work: tempfile::TempDir,
}

impl Phone {
    /// Boots a phone and lets a fresh adb server connect to it.
    pub fn boot(story: &str) -> Self {
        let phone = Self::boot_unconnected(story, 5601);
        phone.connect(SERIAL);
        phone
    }

    /// Boots a phone whose adbd listens on `port`; no adb server runs in its network.
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

    /// Lets the adb server connect to `serial`.
    pub fn connect(&self, serial: &str) {
        let connect = self.host("adb", &["connect", serial]).end(SOON);
        assert!(
            connect.stdout.contains("connected to"),
            "adb does not connect: {connect:?}"
        );
    }

    /// The folder for what the story writes on the host.
    pub fn work(&self) -> &Path {
        self.work.path()
    }

    /// Writes a file there, for instance a config.
    pub fn write(&self, name: &str, text: &str) -> String {
        let path = self.work().join(name);
        fs::write(&path, text).expect("the story's folder is writable");
        path.to_string_lossy().into_owned()
    }

    /// heaptap with `args`, run in the phone's network and the story's folder.
    pub fn heaptap(&self, args: &[&str]) -> Run {
        self.host(env!("CARGO_BIN_EXE_heaptap"), args)
    }

    /// A command of the host, run in the phone's network and the story's folder.
    pub fn host(&self, program: &str, args: &[&str]) -> Run {
        let mut all = vec!["run", &self.name, program];
        all.extend(args);
        self.bench(&all)
    }

    /// `adb shell SCRIPT`, as the phone's shell user.
    pub fn shell(&self, script: &str) -> Ended {
        self.host("adb", &["-s", SERIAL, "shell", script]).end(SOON)
    }

    /// A command run as root on the phone, without adb. Fails unless it succeeds.
    pub fn on(&self, args: &[&str]) -> String {
        let mut all = vec!["on", &self.name];
        all.extend(args);
        let done = self.bench(&all).end(SOON);
        assert!(done.status.success(), "{args:?} on the phone: {done:?}");
        done.stdout
    }

    /// Sends `signal` to the one process called `name` on the phone.
    pub fn signal(&self, signal: &str, name: &str) {
        // Not pkill: perfetto calls its thread after its session.
        self.on(&["killall", &format!("-{signal}"), name]);
    }

    /// A file on the phone as the host sees it, `path` as the phone has it (below /data).
    pub fn file(&self, path: &str) -> PathBuf {
        let data = path.strip_prefix("/data/").expect("only /data is shared");
        self.folder().join("data").join(data)
    }

    /// HOME on the host's side.
    pub fn home(&self) -> PathBuf {
        self.folder().join("home")
    }

    fn folder(&self) -> PathBuf {
        let run = std::env::var_os("HEAPTAP_BENCH_DIR").expect("set beside HEAPTAP_BENCH");
        Path::new(&run).join("run").join(&self.name)
    }

    /// The traces on the phone, name and size.
    pub fn traces(&self) -> Vec<(PathBuf, u64)> {
        let mut traces: Vec<_> = fs::read_dir(self.file("/data/misc/perfetto-traces"))
            .expect("every phone has this folder")
            .map(|entry| {
                let entry = entry.expect("readable");
                // Gone between the listing and the look: as if it had been before.
                let size = entry.metadata().map_or(0, |metadata| metadata.len());
                (entry.path(), size)
            })
            .collect();
        traces.sort();
        traces
    }

    /// Runs `bench.sh` in the story's folder; `run` ends as the command itself, so that signals
    /// reach it.
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

/// A second phone in the network of a first.
pub struct Another<'a> {
    /// As `adb devices` has it.
    pub serial: String,
    name: String,
    first: &'a Phone,
}

impl Drop for Another<'_> {
    fn drop(&mut self) {
        self.first.bench(&["down", &self.name]).end(SOON);
    }
}

/// A command under way; killed when dropped.
pub struct Run {
    child: Child,
    words: String,
    stdout: Stream,
    stderr: Stream,
}

/// A command that ended.
#[derive(Debug)]
pub struct Ended {
    /// How.
    pub status: ExitStatus,
    /// What it wrote.
    pub stdout: String,
    /// And said.
    pub stderr: String,
}

impl Ended {
    /// The exit code; a death by signal has none.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Everything it wrote, for messages and for words that may stand on either.
    pub fn words(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

impl Run {
    fn start(mut command: Command, words: String) -> Self {
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

    /// Sends it a signal.
    pub fn signal(&self, signal: &str) {
        let sent = Command::new("kill")
            .args([&format!("-{signal}"), &self.child.id().to_string()])
            .status();
        assert!(sent.expect("kill runs").success(), "no {signal} sent");
    }

    /// Waits for its end; longer than `limit` fails the story, saying what it wrote so far.
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

    /// What it said on stderr so far.
    pub fn said(&self) -> String {
        self.stderr.so_far()
    }

    /// What it wrote to stdout so far.
    pub fn wrote(&self) -> String {
        self.stdout.so_far()
    }

    /// All of a stream, which ends with the command: a server it left behind must not hold it.
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

/// A stream of a command, read as it comes.
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
            // What came before an error is worth showing too.
            while let Ok(read @ 1..) = pipe.read(&mut block) {
                sink.lock()
                    .expect("nobody panics holding it")
                    .extend(&block[..read]);
            }
            // Nobody waits any more where the story failed meanwhile.
            sender.send(()).ok();
        });
        Self { bytes, ended }
    }

    fn so_far(&self) -> String {
        let bytes = self.bytes.lock().expect("nobody panics holding it");
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Waits until `holds`; fails the story where it does not within `limit`.
pub fn until(what: &str, limit: Duration, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < limit, "never came: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
