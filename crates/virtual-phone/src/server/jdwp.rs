//! Debugger connections: the list of processes whose runtime accepts a debugger, and the chunks
//! about allocations that such a runtime answers. Other debugging is not supported.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::wire::{Waited, Wire};
use crate::access::java_debuggable_build;
use crate::clock::BootNs;
use crate::faults::FaultKind;
use crate::kernel::Kernel;
use crate::process::{Pid, Process, Role};
use crate::state::State;
use crate::strings::Strings;
use crate::workload::{Tracked, TrackedTruth};

const HANDSHAKE: &[u8; 14] = b"JDWP-Handshake";
const HEADER: usize = 11;
/// Maximum length of a command in bytes; a longer one ends the connection.
const MAX_LENGTH: usize = 1 << 20;
/// Interval of the checks that the process is still alive.
const LOOK: Duration = Duration::from_millis(50);

/// Returns whether the process's runtime accepts a debugger.
fn listens(kernel: &Kernel, state: &State, process: &Process) -> bool {
    match &process.role {
        Role::App { .. } => {
            let package = state.package_of(process);
            java_debuggable_build(&kernel.spec) || package.is_some_and(|p| p.debuggable())
        }
        Role::SystemServer => java_debuggable_build(&kernel.spec),
        _ => false,
    }
}

/// Returns the processes with such a runtime, one per line.
fn listening(kernel: &Kernel) -> String {
    let state = kernel.state();
    let all = state.processes.iter();
    let all = all.filter(|p| listens(kernel, &state, p));
    all.map(|p| format!("{}\n", p.pid)).collect()
}

/// Serves `track-jdwp`: sends the list with its length, again after every change.
pub(super) fn track(kernel: &Kernel, wire: &Wire) -> io::Result<()> {
    wire.okay()?;
    let mut last = None;
    while !kernel.is_off() {
        let seen = kernel.events.seen();
        let list = listening(kernel);
        if last.as_ref() != Some(&list) {
            wire.body(&list)?;
            last = Some(list);
        }
        if wire.wait(Duration::from_millis(1))? == Waited::Left {
            break;
        }
        kernel.events.wait(seen, Some(LOOK));
    }
    Ok(())
}

/// Serves `jdwp:PID`. `blink` removes the device for this many ms.
pub(super) fn serve(
    kernel: &Arc<Kernel>,
    wire: &Wire,
    argument: &str,
    blink: &dyn Fn(u64),
) -> io::Result<()> {
    let found = argument.parse::<Pid>().ok().and_then(|pid| {
        let state = kernel.state();
        let process = state.processes.get(pid)?.clone();
        listens(kernel, &state, &process).then_some(process)
    });
    let Some(process) = found else {
        return wire.fail("closed");
    };
    wire.okay()?;
    if kernel.faults.has_struck(FaultKind::Debugger) {
        return Ok(());
    }
    let runtime = Runtime {
        kernel: kernel.clone(),
        key: (process.pid, process.started),
        process,
    };
    if !runtime.take(wire)? {
        return Ok(());
    }
    let served = runtime.serve(wire, blink);
    kernel.change(|state, _| state.tracing.debugged.remove(&runtime.key));
    served
}

/// A process with a connected debugger.
struct Runtime {
    kernel: Arc<Kernel>,
    key: (Pid, BootNs),
    process: Process,
}

impl Runtime {
    /// Returns the current process; `None` if it is gone.
    fn now(&self) -> Option<Process> {
        let state = self.kernel.state();
        let process = state.processes.get(self.key.0)?;
        (process.started == self.key.1 && !self.kernel.is_off()).then(|| process.clone())
    }

    /// Waits until the runtime accepts the connection: it has one at a time, and none while its
    /// threads are frozen or stopped. Returns false if either side disconnects first.
    fn take(&self, wire: &Wire) -> io::Result<bool> {
        loop {
            let seen = self.kernel.events.seen();
            let Some(process) = self.now() else {
                return Ok(false);
            };
            if !process.frozen && !process.stopped {
                let mut state = self.kernel.state();
                if state.tracing.debugged.insert(self.key) {
                    return Ok(true);
                }
            }
            if wire.wait(Duration::from_millis(1))? == Waited::Left {
                return Ok(false);
            }
            self.kernel.events.wait(seen, Some(LOOK));
        }
    }

    fn serve(&self, wire: &Wire, blink: &dyn Fn(u64)) -> io::Result<()> {
        let mut said = [0; HANDSHAKE.len()];
        wire.read_exact(&mut said)?;
        if said != *HANDSHAKE {
            return Ok(());
        }
        wire.write(HANDSHAKE)?;
        loop {
            // A process that dies closes its end of the connection.
            loop {
                if self.now().is_none() {
                    return Ok(());
                }
                match wire.wait(LOOK)? {
                    Waited::Data => break,
                    Waited::Left => return Ok(()),
                    Waited::Nothing => {}
                }
            }
            let mut header = [0; HEADER];
            wire.read_exact(&mut header)?;
            let [l0, l1, l2, l3, i0, i1, i2, i3, flags, set, command] = header;
            let length = u32::from_be_bytes([l0, l1, l2, l3]) as usize;
            let Some(length) = length.checked_sub(HEADER).filter(|l| *l <= MAX_LENGTH) else {
                return Ok(());
            };
            let mut data = vec![0; length];
            wire.read_exact(&mut data)?;
            // All other commands of a debugger are for the agent, which this phone does not have.
            if (flags & 0x80, set, command) != (0, 199, 1) || data.len() < 8 {
                continue;
            }
            let (head, data) = data.split_at(8);
            let id = u32::from_be_bytes([i0, i1, i2, i3]);
            let kind = &head[..4];
            if let Some(answer) = self.answer(kind, data) {
                // Android sends its name as soon as a debugger is connected.
                if kind == b"HELO" {
                    let name = counted(self.process.name());
                    wire.write(&packet(0x8000_0001, [0, 199, 1], b"APNM", &name))?;
                }
                let answer = packet(id, [0x80, 0, 0], kind, &answer);
                if kind == b"REAL" {
                    let faults = &self.kernel.faults;
                    if let Some(bytes) = faults.value(FaultKind::AllocationsCut, 0) {
                        let sent = usize::try_from(bytes).unwrap_or(usize::MAX);
                        wire.write(answer.get(..sent).unwrap_or(&answer))?;
                        return Ok(());
                    }
                    if let Some(ms) = faults.value(FaultKind::AllocationsBlink, 300) {
                        wire.write(&answer[..answer.len() / 2])?;
                        blink(ms);
                        return Ok(());
                    }
                }
                wire.write(&answer)?;
            }
        }
    }

    /// Returns the answer to a chunk; `None` if it has no answer.
    fn answer(&self, kind: &[u8], data: &[u8]) -> Option<Vec<u8>> {
        let now = self.kernel.clock.boot();
        match kind {
            b"HELO" => {
                let vm = utf16("Dalvik v2.1.0");
                let name = utf16(self.process.name());
                let mut out = Vec::new();
                let lengths = [vm.len() / 2, name.len() / 2].map(|units| units as u32);
                for number in [1, self.key.0, lengths[0], lengths[1]] {
                    out.extend(number.to_be_bytes());
                }
                out.extend(vm);
                out.extend(name);
                Some(out)
            }
            b"REAE" => {
                let on = data.first().is_some_and(|byte| *byte != 0);
                let State {
                    processes, tracing, ..
                } = &mut *self.kernel.state();
                let trackers = &mut tracing.trackers;
                trackers.retain(|(pid, started), _| {
                    let process = processes.get(*pid);
                    process.is_some_and(|p| p.started == *started)
                });
                if on {
                    trackers.entry(self.key).or_insert(now);
                } else {
                    trackers.remove(&self.key);
                }
                // A real runtime does not answer it either.
                None
            }
            b"REAQ" => {
                let on = self.kernel.state().tracing.trackers.contains_key(&self.key);
                Some(vec![u8::from(on)])
            }
            b"REAL" => Some(self.allocations(now)),
            _ => None,
        }
    }

    /// Returns the tracked allocations, and stores their truth for comparison.
    fn allocations(&self, now: BootNs) -> Vec<u8> {
        let since = self.kernel.state().tracing.trackers.get(&self.key).copied();
        let (all, forgotten) = match since {
            Some(since) => {
                self.kernel
                    .memory
                    .tracked(self.kernel.state(), &self.process, since, now)
            }
            None => (Vec::new(), false),
        };
        let mut truth = TrackedTruth {
            pid: self.key.0,
            process: self.process.name().to_owned(),
            boot_ns: now,
            forgotten,
            ..TrackedTruth::default()
        };
        all.iter().for_each(|allocation| truth.add(allocation));
        self.kernel.state().tracing.tracked.push(truth);
        list_of(&all, self.key.0)
    }
}

/// Encodes allocations as in the answer to `REAL`.
fn list_of(all: &[Tracked], thread: Pid) -> Vec<u8> {
    let mut classes = Strings::from(0);
    let (mut methods, mut files) = (Strings::from(0), Strings::from(0));
    let number = |table: &mut Strings, text: &str| (table.id::<u32>(text) as u16).to_be_bytes();
    let mut body = Vec::new();
    for allocation in all {
        body.extend(allocation.bytes.to_be_bytes());
        body.extend((thread as u16).to_be_bytes());
        body.extend(number(&mut classes, allocation.site.class));
        body.push(allocation.site.frames.len() as u8);
        for frame in &allocation.site.frames {
            body.extend(number(&mut classes, &frame.class));
            body.extend(number(&mut methods, &frame.method));
            body.extend(number(&mut files, &frame.file));
            body.extend(frame.line.to_be_bytes());
        }
    }
    let tables = [classes, methods, files];
    let mut out = vec![15, 9, 8];
    out.extend((all.len() as u16).to_be_bytes());
    out.extend((15 + body.len() as u32).to_be_bytes());
    out.extend(
        tables
            .iter()
            .flat_map(|t| (t.all.len() as u16).to_be_bytes()),
    );
    out.extend(body);
    tables
        .iter()
        .flat_map(|t| &t.all)
        .for_each(|text| out.extend(counted(text)));
    out
}

/// Encodes a text with the number of its units.
fn counted(text: &str) -> Vec<u8> {
    let units = utf16(text);
    [&(units.len() as u32 / 2).to_be_bytes()[..], &units].concat()
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_be_bytes).collect()
}

/// Encodes a packet with a chunk; `kind` is the three bytes between its ID and its data.
fn packet(id: u32, kind: [u8; 3], chunk: &[u8], data: &[u8]) -> Vec<u8> {
    let lengths = [HEADER + 8 + data.len(), data.len()];
    let [whole, own] = lengths.map(|length| (length as u32).to_be_bytes());
    [&whole[..], &id.to_be_bytes(), &kind, chunk, &own, data].concat()
}
