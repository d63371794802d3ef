//! Output of an HPROF through a buffer that collects small records. Owns the headers of records.

use super::records::RECORD_HEADER_BYTES;
use std::io::{self, Write};

/// Bytes collected before they are written.
const BUFFER: usize = 1 << 20;

/// Returns a length as a record declares it: modulo 2^32, as writers of huge dumps do.
pub(super) fn declared(length: u64) -> [u8; 4] {
    (length as u32).to_be_bytes()
}

pub(super) struct Output<'a> {
    /// Bytes appended here are written with the next record at the earliest.
    pub(super) buffer: Vec<u8>,
    /// Length of the headers of empty dump records at the end of the buffer. They stay there,
    /// because they can be taken back.
    pub(super) held: usize,
    pub(super) written: u64,
    sink: &'a mut dyn Write,
}

impl<'a> Output<'a> {
    pub(super) fn new(sink: &'a mut dyn Write) -> Output<'a> {
        Output {
            buffer: Vec::with_capacity(BUFFER),
            held: 0,
            written: 0,
            sink,
        }
    }

    /// Writes a record's header. Returns the position of its length in the buffer.
    pub(super) fn record_header(
        &mut self,
        tag: u8,
        time_us: u32,
        length: usize,
    ) -> io::Result<usize> {
        self.flush_if_full()?;
        let at = self.buffer.len();
        self.buffer.push(tag);
        self.buffer.extend(time_us.to_be_bytes());
        self.buffer.extend(declared(length as u64));
        Ok(at + RECORD_HEADER_BYTES - 4)
    }

    /// Removes the headers that are held. Returns their number.
    pub(super) fn take_back(&mut self) -> u64 {
        let left = self.buffer.len() - self.held;
        self.buffer.truncate(left);
        (std::mem::take(&mut self.held) / RECORD_HEADER_BYTES) as u64
    }

    pub(super) fn flush_if_full(&mut self) -> io::Result<()> {
        match self.buffer.len() - self.held < BUFFER {
            true => Ok(()),
            false => self.flush(),
        }
    }

    /// Writes everything that is not held.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let settled = self.buffer.len() - self.held;
        self.sink.write_all(&self.buffer[..settled])?;
        self.written += settled as u64;
        self.buffer.drain(..settled);
        Ok(())
    }

    pub(super) fn put(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        // The bytes can be mapped. If the file is cut short meanwhile, a read by this process finds
        // zeros, and a read by the system, within write(2), fails.
        while !bytes.is_empty() {
            self.flush_if_full()?;
            let room = BUFFER - self.buffer.len();
            let (piece, rest) = bytes.split_at(bytes.len().min(room));
            self.buffer.extend_from_slice(piece);
            bytes = rest;
        }
        self.flush_if_full()
    }

    pub(super) fn zeros(&mut self, mut count: usize) -> io::Result<()> {
        while count > 0 {
            let piece = count.min(BUFFER);
            self.buffer.resize(self.buffer.len() + piece, 0);
            self.flush_if_full()?;
            count -= piece;
        }
        Ok(())
    }
}
