//! A tracing service of its own, and its sessions. Its sockets are in the private directory, so no
//! other program's data reach the trace, and no other service is disturbed.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::fd::{AsRawFd as _, BorrowedFd, RawFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use heaptap_base::untrusted::sanitize;
use rustix::process::Signal;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::super::end::SessionEnd;
use super::super::error::{private_directory, tracing_failed};
use super::super::{Checked, Tools};
use super::private::{CONSUMER, PRODUCER, PrivateDirectory};
use super::program::{Program, send};
use heaptap_base::error::{ErrorClass, Failure};

const PRODUCER_SOCKET: &str = "PERFETTO_PRODUCER_SOCK_NAME";
/// Marks the processes of one recording; they inherit it.
const MARKER: &str = "HEAPTAP_RECORDING";
const CONSUMER_SOCKET: &str = "PERFETTO_CONSUMER_SOCK_NAME";
/// Makes the library wait at its start until a session matches, without limit.
const BLOCKING_INIT: &str = "PERFETTO_HEAPPROFD_BLOCKING_INIT";
/// Time for traced to listen, and for perfetto to start its session.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// Time for perfetto to end: longer than its own limits of flushing and stopping.
const STOP_TIMEOUT: Duration = Duration::from_secs(90);
const END_TIMEOUT: Duration = Duration::from_secs(5);
/// Attempts at a session that records nothing.
const RELEASE_ATTEMPTS: usize = 3;
/// Maximum length of a tool's own words in a message.
const MAX_WORDS_BYTES: u64 = 400;

/// A tracing service and its session. Dropping it kills both.
#[derive(Debug)]
pub struct Tracing {
    tools: Tools,
    traced: Child,
    perfetto: Option<Child>,
    // Dropped last: the others write into it.
    private: PrivateDirectory,
}

impl Tracing {
    /// Starts traced, and waits until it listens.
    ///
    /// # Errors
    /// Returns an error if it does not start.
    pub async fn start(checked: &Checked) -> Result<Tracing, Failure> {
        let private = PrivateDirectory::create()?;
        let tools = checked.tools.clone();
        let traced = start_traced(&tools, &private).await?;
        Ok(Tracing {
            tools,
            traced,
            perfetto: None,
            private,
        })
    }

    /// Starts a session with an encoded config, and waits until it is active.
    ///
    /// # Errors
    /// Returns an error if perfetto or traced refuse it.
    pub async fn record(&mut self, config: &[u8], output: &Path) -> Result<(), Failure> {
        let failed = |error: io::Error| tracing_failed("perfetto", error);
        let file = self.private.file("config");
        std::fs::write(&file, config).map_err(private_directory)?;
        let log = self.private.file("perfetto.log");
        let (mut reader, writer) = io::pipe().map_err(failed)?;
        let mut command = command(&self.tools.perfetto, &self.private, &log).map_err(failed)?;
        command
            .arg("-c")
            .arg(&file)
            .arg("-o")
            .arg(output)
            .arg("--notify-fd")
            .arg(raw(&writer).to_string());
        bound(&mut command, Signal::KILL, Some(raw(&writer)));
        let mut perfetto = command.spawn().map_err(failed)?;
        drop(writer);
        let why = match timeout(START_TIMEOUT, byte(&mut reader)).await {
            Ok(Some(0)) => {
                self.perfetto = Some(perfetto);
                return Ok(());
            }
            Ok(Some(_)) => "traced did not accept the session",
            Ok(None) => "it ended before its session was active",
            Err(_) => &format!(
                "its session was not active after {} s",
                START_TIMEOUT.as_secs()
            ),
        };
        end(&mut perfetto).await;
        Err(tracing_failed(
            "perfetto",
            format_args!("{why}{}", words(&log)),
        ))
    }

    /// Starts the program with the library, which waits for the session.
    ///
    /// # Errors
    /// Returns an error if the system does not start it.
    pub fn run(&self, checked: &Checked, arguments: &[OsString]) -> Result<Program, Failure> {
        let library = self
            .private
            .preloadable(&self.tools.library)
            .map_err(private_directory)?;
        let mut preload = library.into_os_string();
        if let Some(inherited) = std::env::var_os("LD_PRELOAD").filter(|value| !value.is_empty()) {
            preload.push(":");
            preload.push(inherited);
        }
        let mut command = Command::new(&checked.program);
        if let Some(typed) = arguments.first() {
            command.arg0(typed);
        }
        command
            .args(arguments.iter().skip(1))
            .env(PRODUCER_SOCKET, self.private.file(PRODUCER))
            .env_remove(CONSUMER_SOCKET)
            .env(MARKER, self.private.file(PRODUCER))
            .env("LD_PRELOAD", preload)
            .env(BLOCKING_INIT, "1")
            .kill_on_drop(true);
        bound(&mut command, Signal::TERM, None);
        let child = command.spawn().map_err(|source| {
            let message = format!("cannot start {}: {source}", checked.program.display());
            Failure::new(ErrorClass::NotEligible, "host-program-not-started", message)
                .with_help("check that the program runs without heaptap")
        })?;
        Ok(Program::new(child))
    }

    /// Returns the variable that marks the processes of this recording.
    pub fn marker(&self) -> Vec<u8> {
        use std::os::unix::ffi::OsStrExt as _;
        let mut marker = format!("{MARKER}=").into_bytes();
        marker.extend(self.private.file(PRODUCER).as_os_str().as_bytes());
        marker
    }

    /// Waits until perfetto ends by itself.
    pub async fn ended(&mut self) {
        match &mut self.perfetto {
            Some(perfetto) => drop(perfetto.wait().await),
            None => std::future::pending().await,
        }
    }

    /// Ends the session with one signal, because a second one kills perfetto, and waits for the
    /// trace. `impatient` ends the wait.
    pub async fn stop(&mut self, impatient: impl Future<Output = ()>) -> SessionEnd {
        let Some(mut perfetto) = self.perfetto.take() else {
            return SessionEnd::Early;
        };
        if let Ok(Some(_)) = perfetto.try_wait() {
            return SessionEnd::Early;
        }
        send(&perfetto, Signal::INT);
        let ended = tokio::select! {
            ended = timeout(STOP_TIMEOUT, perfetto.wait()) => ended.ok(),
            () = impatient => None,
        };
        match ended {
            Some(Ok(status)) if status.success() => SessionEnd::Complete,
            // It failed before it had written everything.
            Some(_) => SessionEnd::Early,
            None => {
                end(&mut perfetto).await;
                SessionEnd::Killed
            }
        }
    }

    /// Keeps a session that records nothing active, so that processes started from now on do not
    /// wait for one. Returns only if that fails.
    pub async fn stay_released(&mut self, config: &[u8]) {
        while self.release(config).await {
            self.ended().await;
        }
    }

    /// Starts a session that records nothing, after the recording's, unless one is active. Starts
    /// traced again if it is gone: the processes keep trying to connect. Returns whether the session
    /// is active.
    pub async fn release(&mut self, config: &[u8]) -> bool {
        let session = self.perfetto.as_mut().map(Child::try_wait);
        if matches!(session, Some(Ok(None))) {
            return true;
        }
        self.perfetto = None;
        let output = self.private.file("release");
        for _ in 0..RELEASE_ATTEMPTS {
            if !matches!(self.traced.try_wait(), Ok(None)) {
                match start_traced(&self.tools, &self.private).await {
                    Ok(traced) => self.traced = traced,
                    Err(_) => return false,
                }
            }
            if self.record(config, &output).await.is_ok() {
                return true;
            }
            // A traced that was killed closes its sockets before it has ended.
            end(&mut self.traced).await;
        }
        false
    }

    /// Ends what still runs, and removes the private directory.
    pub async fn end(mut self) {
        if let Some(perfetto) = &mut self.perfetto {
            end(perfetto).await;
        }
        send(&self.traced, Signal::TERM);
        if timeout(END_TIMEOUT, self.traced.wait()).await.is_err() {
            end(&mut self.traced).await;
        }
    }
}

async fn start_traced(tools: &Tools, private: &PrivateDirectory) -> Result<Child, Failure> {
    let failed = |error: io::Error| tracing_failed("traced", error);
    for socket in [PRODUCER, CONSUMER] {
        // Left by an earlier traced that was killed.
        let _ = std::fs::remove_file(private.file(socket));
    }
    let log = private.file("traced.log");
    let (mut reader, writer) = io::pipe().map_err(failed)?;
    let mut command = command(&tools.traced, private, &log).map_err(failed)?;
    command.env("TRACED_NOTIFY_FD", raw(&writer).to_string());
    bound(&mut command, Signal::KILL, Some(raw(&writer)));
    let mut traced = command.spawn().map_err(failed)?;
    drop(writer);
    let why = match timeout(START_TIMEOUT, byte(&mut reader)).await {
        Ok(Some(b'1')) => return Ok(traced),
        Ok(_) => "it ended before it listened",
        Err(_) => &format!("it did not listen after {} s", START_TIMEOUT.as_secs()),
    };
    end(&mut traced).await;
    Err(tracing_failed(
        "traced",
        format_args!("{why}{}", words(&log)),
    ))
}

/// Returns a command in a process group of its own, which the terminal does not signal.
fn command(
    tool: &(PathBuf, Option<&'static str>),
    private: &PrivateDirectory,
    log: &Path,
) -> io::Result<Command> {
    let mut command = Command::new(&tool.0);
    command
        .args(tool.1)
        .env(PRODUCER_SOCKET, private.file(PRODUCER))
        .env(CONSUMER_SOCKET, private.file(CONSUMER))
        // They are not to be profiled.
        .env_remove("LD_PRELOAD")
        .env_remove(BLOCKING_INIT)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(log)?)
        .process_group(0)
        .kill_on_drop(true);
    Ok(command)
}

/// Reads one byte; `None` at the end. The caller limits the time: the child that holds the other
/// end is then killed, which ends the read.
async fn byte(reader: &mut io::PipeReader) -> Option<u8> {
    let mut reader = reader.try_clone().ok()?;
    let read = tokio::task::spawn_blocking(move || {
        let mut byte = [0];
        matches!(reader.read(&mut byte), Ok(1)).then_some(byte[0])
    });
    read.await.ok().flatten()
}

async fn end(child: &mut Child) {
    // It might have ended already.
    let _ = child.start_kill();
    let _ = child.wait().await;
}

/// Returns the last words of a tool, for a message.
fn words(log: &Path) -> String {
    let read = || {
        let mut file = File::open(log)?;
        let size = file.metadata()?.len();
        file.seek(SeekFrom::Start(size.saturating_sub(MAX_WORDS_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(MAX_WORDS_BYTES).read_to_end(&mut bytes)?;
        Ok::<_, io::Error>(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect();
    match lines.is_empty() {
        true => String::new(),
        false => format!(": {}", sanitize(&lines.join("; "))),
    }
}

/// Makes a child end with heaptap, even if heaptap is killed. `notify` is a descriptor that the
/// child inherits. Only the thread that starts the child counts as its parent, so callers are on the
/// main thread, which lives as long as heaptap.
fn bound(command: &mut tokio::process::Command, signal: Signal, notify: Option<RawFd>) {
    let parent = rustix::process::getpid();
    let setup = move || {
        rustix::process::set_parent_process_death_signal(Some(signal))?;
        // heaptap could have died before the line above.
        if rustix::process::getppid() != Some(parent) {
            return Err(io::Error::from_raw_os_error(
                rustix::io::Errno::SRCH.raw_os_error(),
            ));
        }
        if let Some(fd) = notify {
            // SAFETY: the caller holds the descriptor until the child is started.
            let fd = unsafe { BorrowedFd::borrow_raw(fd) };
            rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::empty())?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec, the closure makes system calls only: it neither allocates nor
    // takes a lock.
    unsafe { command.pre_exec(setup) };
}

fn raw(fd: &impl std::os::fd::AsFd) -> RawFd {
    fd.as_fd().as_raw_fd()
}
