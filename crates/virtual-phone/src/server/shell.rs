//! The services `shell:`, `shell,v2:` and `exec:`: a shell of the phone over a connection.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::wire::Wire;
use crate::access::Cred;
use crate::commands;
use crate::events::{Events, lock};
use crate::faults::FaultKind;
use crate::io::{Fd, Fds, PipeWriter, Sink, pipe};
use crate::kernel::Kernel;
use crate::process::{Pid, SIGHUP, Stop};
use crate::program::{self, Cmd};

/// IDs of shell v2's packets.
const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const EXIT: u8 = 3;
const CLOSE_STDIN: u8 = 4;

/// Maximum length of a client's packet; adb sends at most 64 KiB.
const MAX_PACKET: usize = 4 << 20;

/// Variables of a shell of adbd.
const ENVIRONMENT: &str = "\
ANDROID_DATA=/data
ANDROID_ROOT=/system
HOME=/
HOSTNAME=localhost
LOGNAME=shell
PATH=/product/bin:/apex/com.android.runtime/bin:/system/bin:/vendor/bin
SHELL=/bin/sh
TMPDIR=/data/local/tmp
USER=shell";

/// Framing of a shell's streams.
pub(super) struct Protocol {
    /// Whether packets separate stdout, stderr and the status.
    pub(super) v2: bool,
    pub(super) pty: bool,
}

/// Writer of the shell's output to the connection; dropped after the last writer is gone.
struct Output {
    wire: Arc<Wire>,
    v2: bool,
    pty: bool,
    cut_after: Option<u64>,
    sent: AtomicU64,
    closed: Arc<Events>,
    open: Arc<Mutex<bool>>,
}

impl Sink for Output {
    fn send(&self, error: bool, bytes: &[u8]) -> bool {
        let crlf: Vec<u8>;
        let bytes = if self.pty {
            let lines: Vec<&[u8]> = bytes.split(|b| *b == b'\n').collect();
            crlf = lines.join(&b"\r\n"[..]);
            &crlf
        } else {
            bytes
        };
        let sent = self.sent.fetch_add(bytes.len() as u64, Ordering::SeqCst);
        let (bytes, cut) = match self.cut_after {
            Some(limit) if sent + bytes.len() as u64 > limit => {
                (&bytes[..limit.saturating_sub(sent) as usize], true)
            }
            _ => (bytes, false),
        };
        let id = if error && !self.pty { STDERR } else { STDOUT };
        let written = bytes.chunks(32 << 10).try_for_each(|part| {
            if !self.v2 {
                return self.wire.write(part);
            }
            self.wire.write(&packet(id, part))
        });
        if cut {
            self.wire.close();
        }
        written.is_ok() && !cut
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        *lock(&self.open) = false;
        self.closed.notify();
    }
}

fn packet(id: u8, bytes: &[u8]) -> Vec<u8> {
    [&[id], &(bytes.len() as u32).to_le_bytes()[..], bytes].concat()
}

/// Answers a command of shell v2 with output that no command writes.
pub(super) fn nonsense(wire: &Wire) -> io::Result<()> {
    let bytes = b"\xff\xfe 0x nonsense \x1b[31m: -1 -1 -1\n\0\n";
    wire.okay()?;
    wire.write(&[packet(STDOUT, bytes), packet(EXIT, &[0])].concat())
}

/// Runs a command, or an interactive shell, and transfers its streams.
pub(super) fn serve(
    kernel: &Arc<Kernel>,
    wire: &Arc<Wire>,
    command: &str,
    protocol: &Protocol,
) -> io::Result<()> {
    if let Some(ms) = kernel.faults.strikes(FaultKind::ShellHang) {
        wire.silence(ms.map(|ms| Duration::from_millis(ms.max(0) as u64)));
        if ms.is_none() {
            return Ok(());
        }
    }
    wire.okay()?;
    let cut_after = kernel.faults.value(FaultKind::ShellCut, 0);
    let no_exit = kernel.faults.has_struck(FaultKind::NoExit);
    let open = Arc::new(Mutex::new(true));
    let output: Arc<dyn Sink> = Arc::new(Output {
        wire: wire.clone(),
        v2: protocol.v2,
        pty: protocol.pty,
        cut_after,
        sent: AtomicU64::new(0),
        closed: kernel.events.clone(),
        open: open.clone(),
    });
    let (reader, stdin) = pipe(&kernel.events);
    let argv = match command {
        "" => vec!["/system/bin/sh", "-"],
        command => vec!["sh", "-c", command],
    };
    let argv: Vec<String> = argv.into_iter().map(str::to_owned).collect();
    let cred = Cred::shell();
    let Some(pid) = kernel.spawn_process(1, &cred, &argv) else {
        return Ok(());
    };
    let env = ENVIRONMENT.lines().filter_map(|line| line.split_once('='));
    let env = env.map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
    let sink = |error| Fd::Sink {
        sink: output.clone(),
        error,
    };
    let mut cmd = Cmd {
        kernel: kernel.clone(),
        programs: commands::programs(&kernel.spec),
        pid,
        cred,
        argv,
        env,
        cwd: "/".to_owned(),
        // Without packets, stderr shares stdout's stream.
        fds: Fds::new(Fd::Read(reader), sink(false), sink(protocol.v2)),
        depth: 0,
    };
    drop(output);
    let status = Arc::new(Mutex::new(None));
    let (running, ended) = (kernel.clone(), status.clone());
    let started = program::on_thread(kernel, move || {
        let status = program::run(&mut cmd).unwrap_or_else(Stop::status);
        drop(cmd);
        // The status is known before the process is gone.
        *lock(&ended) = Some(status);
        let status = running.end_process(pid, status);
        *lock(&ended) = Some(status);
    });
    if !started {
        kernel.end_process(pid, 1);
        return Ok(());
    }
    let (reading, peer) = (kernel.clone(), wire.clone());
    let v2 = protocol.v2;
    std::thread::Builder::new().spawn(move || {
        feed(&reading, &peer, v2, stdin, pid);
    })?;
    // adbd sends the status only after every writer of stdout is gone.
    loop {
        let seen = kernel.events.seen();
        let gone = kernel.state().processes.get(pid).is_none();
        if gone && !*lock(&open) {
            break;
        }
        if kernel.is_off() {
            return Ok(());
        }
        kernel.events.wait(seen, Some(Duration::from_millis(500)));
    }
    let status = lock(&status).unwrap_or(137);
    if no_exit {
        return Ok(());
    }
    if v2 {
        wire.write(&packet(EXIT, &[status]))?;
    }
    Ok(())
}

/// Writes the client's bytes to stdin; when the client disconnects, the shell gets SIGHUP.
fn feed(kernel: &Kernel, wire: &Wire, v2: bool, stdin: PipeWriter, pid: Pid) {
    // After a reboot, another process can have the PID.
    let started = || kernel.state().processes.get(pid).map(|p| p.started);
    let began = started();
    let mut stdin = Some(stdin);
    // The connection has ended, so an error needs no handling.
    let _ = read_packets(wire, v2, |id, bytes| {
        // Window sizes and unknown packets have no effect.
        if id == CLOSE_STDIN {
            stdin = None;
        } else if let (STDIN, Some(pipe)) = (id, &stdin) {
            // A command that does not read its stdin blocks the connection, within bounds.
            while pipe.waiting() > MAX_PACKET && kernel.state().processes.get(pid).is_some() {
                let seen = kernel.events.seen();
                kernel.events.wait(seen, Some(Duration::from_millis(50)));
            }
            pipe.push(bytes);
        }
    });
    drop(stdin);
    if started() == began {
        kernel.signal(&Cred::root(), pid, SIGHUP);
    }
}

/// Reads packets until the client disconnects.
fn read_packets(wire: &Wire, v2: bool, mut take: impl FnMut(u8, &[u8])) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        if !v2 {
            let n = wire.read_some(&mut buffer)?;
            if n == 0 {
                return Ok(());
            }
            take(STDIN, &buffer[..n]);
            continue;
        }
        let mut header = [0; 5];
        wire.read_exact(&mut header)?;
        let [id, length @ ..] = header;
        let length = u32::from_le_bytes(length) as usize;
        if length > MAX_PACKET {
            return Err(io::Error::other("packet too long"));
        }
        if buffer.len() < length {
            buffer.resize(length, 0);
        }
        wire.read_exact(&mut buffer[..length])?;
        take(id, &buffer[..length]);
    }
}
