//! File descriptors of the phone's processes: pipes, files, and the pipe ends of the adb server.
//! Owns blocking and broken pipes; independent of paths.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::clock::SECOND;
use super::events::{Events, lock};
use super::faults::FaultKind;
use super::fs::FileData;
use super::kernel::Kernel;
use super::process::{Pid, Stop};

/// Capacity of a pipe in bytes; a writer waits when it is full.
const PIPE_CAPACITY: usize = 64 << 10;

struct PipeState {
    events: Arc<Events>,
    bytes: Mutex<VecDeque<u8>>,
    /// Whether the reading end and the writing end are open.
    open: [AtomicBool; 2],
}

const READING: usize = 0;
const WRITING: usize = 1;

impl PipeState {
    fn is_open(&self, end: usize) -> bool {
        self.open[end].load(Ordering::SeqCst)
    }
}

/// An end of a pipe, open until its last copy is gone.
struct End(Arc<PipeState>, usize);

impl Drop for End {
    fn drop(&mut self) {
        self.0.open[self.1].store(false, Ordering::SeqCst);
        self.0.events.notify();
    }
}

/// The reading end of a pipe.
#[derive(Clone)]
pub(crate) struct PipeReader(Arc<End>);
/// The writing end of a pipe.
#[derive(Clone)]
pub(crate) struct PipeWriter(Arc<End>);

pub(crate) fn pipe(events: &Arc<Events>) -> (PipeReader, PipeWriter) {
    let state = Arc::new(PipeState {
        events: events.clone(),
        bytes: Mutex::default(),
        open: [const { AtomicBool::new(true) }; 2],
    });
    let end = |end| Arc::new(End(state.clone(), end));
    (PipeReader(end(READING)), PipeWriter(end(WRITING)))
}

impl PipeWriter {
    /// Appends bytes regardless of the capacity; returns false if the reader is gone.
    pub(crate) fn push(&self, bytes: &[u8]) -> bool {
        let is_open = self.0.0.is_open(READING);
        if is_open {
            lock(&self.0.0.bytes).extend(bytes);
            self.0.0.events.notify();
        }
        is_open
    }

    /// Returns the number of unread bytes.
    pub(crate) fn waiting(&self) -> usize {
        lock(&self.0.0.bytes).len()
    }
}

impl PipeReader {
    /// Takes up to `limit` available bytes; `None` if there are none yet, empty at the end.
    fn take(&self, limit: usize) -> Option<Vec<u8>> {
        // Look at the writers first: a writer that closes in between has already left its bytes.
        let open = self.0.0.is_open(WRITING);
        let mut bytes = lock(&self.0.0.bytes);
        if bytes.is_empty() {
            return (!open).then(Vec::new);
        }
        let n = bytes.len().min(limit);
        let taken = bytes.drain(..n).collect();
        drop(bytes);
        self.0.0.events.notify();
        Some(taken)
    }
}

/// Destination of a shell service's output.
pub(crate) trait Sink: Send + Sync {
    /// Sends bytes of stdout (`error` false) or stderr; returns false if the client is gone.
    fn send(&self, error: bool, bytes: &[u8]) -> bool;
}

#[derive(Clone)]
pub(crate) enum Fd {
    Null,
    Zero,
    /// The reading end of a pipe.
    Read(PipeReader),
    /// The writing end of a pipe.
    Write(PipeWriter),
    /// A file with a shared position; `append` writes at its end.
    File {
        data: Arc<FileData>,
        position: Arc<Mutex<u64>>,
        append: bool,
    },
    /// The adb connection's stdout or stderr.
    Sink {
        sink: Arc<dyn Sink>,
        error: bool,
    },
}

/// Reason why a write failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteError {
    /// The reader is gone (SIGPIPE).
    Broken,
    /// No space left on the device.
    Full,
    /// The descriptor is not open for writing.
    NotWritable,
    /// The process ended.
    Stopped(Stop),
}

impl Kernel {
    /// Writes to a file, unless the disk is full.
    pub(crate) fn write_file(
        &self,
        data: &FileData,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), WriteError> {
        let end = offset + bytes.len() as u64;
        let limit = self.faults.value(FaultKind::DiskFull, 0);
        if end > limit.unwrap_or(u64::MAX).min(self.spec.space) {
            return Err(WriteError::Full);
        }
        data.write_at(offset, bytes, (self.clock.real() / SECOND) as i64);
        Ok(())
    }
}

impl Fd {
    /// Opens a file at its start.
    pub(crate) fn file(data: Arc<FileData>, append: bool) -> Fd {
        Fd::File {
            data,
            position: Arc::default(),
            append,
        }
    }

    /// Reads up to `limit` bytes; empty at the end. A directory or an output reads as empty.
    pub(crate) fn read(&self, kernel: &Kernel, pid: Pid, limit: usize) -> Result<Vec<u8>, Stop> {
        match self {
            Fd::Zero => Ok(vec![0; limit.min(64 << 10)]),
            Fd::Read(pipe) => {
                let bytes = kernel.block(pid, None, || pipe.take(limit))?;
                Ok(bytes.unwrap_or_default())
            }
            Fd::File { data, position, .. } => {
                let mut at = lock(position);
                let bytes = data.read_at(*at, limit);
                *at += bytes.len() as u64;
                Ok(bytes)
            }
            Fd::Null | Fd::Write(_) | Fd::Sink { .. } => Ok(Vec::new()),
        }
    }

    /// Returns bytes that were read too far; only files support this.
    pub(crate) fn unread(&self, count: u64) {
        if let Fd::File { position, .. } = self {
            let mut at = lock(position);
            *at = at.saturating_sub(count);
        }
    }

    /// Writes all of `bytes`.
    pub(crate) fn write(&self, kernel: &Kernel, pid: Pid, bytes: &[u8]) -> Result<(), WriteError> {
        match self {
            Fd::Null | Fd::Zero => Ok(()),
            Fd::Read(_) => Err(WriteError::NotWritable),
            Fd::Write(pipe) => {
                for part in bytes.chunks(PIPE_CAPACITY) {
                    let room = || {
                        let broken = !pipe.0.0.is_open(READING);
                        (broken || pipe.waiting() < PIPE_CAPACITY).then_some(())
                    };
                    kernel.block(pid, None, room).map_err(WriteError::Stopped)?;
                    if !pipe.push(part) {
                        return Err(WriteError::Broken);
                    }
                }
                Ok(())
            }
            Fd::File {
                data,
                position,
                append,
            } => {
                let mut at = lock(position);
                let offset = if *append { data.len() } else { *at };
                kernel.write_file(data, offset, bytes)?;
                *at = offset + bytes.len() as u64;
                Ok(())
            }
            Fd::Sink { sink, error } => match sink.send(*error, bytes) {
                true => Ok(()),
                false => Err(WriteError::Broken),
            },
        }
    }
}

/// Open files of a process by number.
#[derive(Clone, Default)]
pub(crate) struct Fds(BTreeMap<u32, Fd>);

impl Fds {
    pub(crate) fn new(stdin: Fd, stdout: Fd, stderr: Fd) -> Self {
        Fds(BTreeMap::from([(0, stdin), (1, stdout), (2, stderr)]))
    }

    pub(crate) fn get(&self, fd: u32) -> Option<&Fd> {
        self.0.get(&fd)
    }

    pub(crate) fn set(&mut self, fd: u32, to: Fd) {
        self.0.insert(fd, to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_ends_with_its_last_writer() {
        let events = Arc::new(Events::default());
        let (reader, writer) = pipe(&events);
        let second = writer.clone();
        assert!(writer.push(b"ab"));
        drop(writer);
        assert_eq!(reader.take(1), Some(b"a".to_vec()));
        assert_eq!(reader.take(9), Some(b"b".to_vec()));
        assert_eq!(reader.take(9), None);
        drop(second);
        assert_eq!(reader.take(9), Some(Vec::new()));
    }
}
