//! Unpacked copies of inputs: in memory if small, otherwise in an unnamed temporary file.

use super::error::ImportError;
use heaptap_base::bytes::Bytes;
use heaptap_base::units::ByteSize;
use perfetto_heap::Source;
use std::cell::Cell;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// Maximum bytes in memory, for one copy and for all copies of an input.
const IN_MEMORY: usize = 4 << 20;
const ALL_IN_MEMORY: usize = 24 << 20;
/// Maximum bytes of all copies of an input. No device writes a trace of this size, but a hostile
/// file can claim it.
pub(super) const MAX_SIZE: u64 = 64 << 30;
/// An input can unpack to [`SLACK`] bytes plus [`RATIO`] times its own size. Traces usually
/// compress about tenfold.
const SLACK: u64 = 1 << 30;
const RATIO: u64 = 200;
const PIECE: usize = 1 << 20;

/// Remaining bytes for the copies of one input, however they nest.
pub(super) struct Budget {
    most: u64,
    left: Cell<u64>,
    memory: Cell<usize>,
}

impl Budget {
    /// Creates the budget for an input of `packed` bytes.
    pub(super) fn from_packed(packed: u64) -> Self {
        Self::new(MAX_SIZE.min(SLACK.saturating_add(packed.saturating_mul(RATIO))))
    }

    /// Creates the budget for an uncompressed stream.
    pub(super) fn of_stream() -> Self {
        Self::new(MAX_SIZE)
    }

    pub(super) fn new(most: u64) -> Self {
        Budget {
            most,
            left: Cell::new(most),
            memory: Cell::new(ALL_IN_MEMORY),
        }
    }
}

/// A copy in progress. Several streams can be appended to it.
pub(super) struct Spool<'a> {
    name: &'a str,
    budget: &'a Budget,
    file: tempfile::SpooledTempFile,
    size: u64,
}

pub(super) struct Spooled {
    pub(super) source: Box<dyn Source>,
    pub(super) size: u64,
    /// Error that ended the stream early, if any.
    pub(super) damage: Option<String>,
}

impl<'a> Spool<'a> {
    pub(super) fn new(name: &'a str, budget: &'a Budget) -> Self {
        let memory = IN_MEMORY.min(budget.memory.get());
        budget.memory.set(budget.memory.get() - memory);
        Spool {
            name,
            budget,
            file: tempfile::spooled_tempfile(memory),
            size: 0,
        }
    }

    /// Appends a stream. If the stream fails, returns the reason and keeps the bytes before the
    /// failure.
    pub(super) fn append(&mut self, mut stream: impl Read) -> Result<Option<String>, ImportError> {
        let mut piece = vec![0; PIECE];
        loop {
            let read = match stream.read(&mut piece) {
                Ok(0) => return Ok(None),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Ok(Some(error.to_string())),
            };
            self.write(&piece[..read])?;
        }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), ImportError> {
        self.size += bytes.len() as u64;
        let Some(left) = self.budget.left.get().checked_sub(bytes.len() as u64) else {
            return Err(ImportError::TooLarge {
                name: self.name.to_owned(),
                most: ByteSize(self.budget.most),
            });
        };
        self.budget.left.set(left);
        self.file
            .write_all(bytes)
            .map_err(|source| self.unwritable(source))
    }

    /// Returns the number of bytes so far.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    pub(super) fn copy(mut self, stream: impl Read) -> Result<Spooled, ImportError> {
        let damage = self.append(stream)?;
        self.finish(damage)
    }

    /// Rewinds the copy for reading.
    pub(super) fn finish(mut self, damage: Option<String>) -> Result<Spooled, ImportError> {
        self.file
            .seek(SeekFrom::Start(0))
            .map_err(|source| self.unwritable(source))?;
        Ok(Spooled {
            source: Box::new(self.file),
            size: self.size,
            damage,
        })
    }

    /// Returns the copied bytes, in memory or mapped.
    pub(super) fn into_bytes(self) -> Result<Bytes, ImportError> {
        let name = self.name;
        let bytes = match self.file.into_inner() {
            tempfile::SpooledData::InMemory(cursor) => Ok(Bytes::from(cursor.into_inner())),
            tempfile::SpooledData::OnDisk(file) => Bytes::of_temporary(file),
        };
        bytes.map_err(|source| ImportError::Unwritable {
            name: name.to_owned(),
            source,
        })
    }

    fn unwritable(&self, source: io::Error) -> ImportError {
        ImportError::Unwritable {
            name: self.name.to_owned(),
            source,
        }
    }
}
