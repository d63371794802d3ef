//! Unpacked copies of inputs, in memory while small, else in a temporary file without a name.

use super::ImportError;
use crate::trace::Source;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// What stays in memory.
const IN_MEMORY: usize = 4 << 20;
/// A larger copy is refused: a trace of this size no phone writes, a hostile file claims it.
pub(super) const LARGEST: u64 = 64 << 30;
const PIECE: usize = 1 << 20;

/// A copy in progress; several streams may follow each other into it.
pub(super) struct Spool<'a> {
    name: &'a str,
    file: tempfile::SpooledTempFile,
    size: u64,
}

/// A finished copy.
pub(super) struct Spooled {
    pub(super) source: Box<dyn Source>,
    pub(super) size: u64,
    /// Why the stream broke off, if it did.
    pub(super) damage: Option<String>,
}

impl<'a> Spool<'a> {
    pub(super) fn new(name: &'a str) -> Self {
        Spool {
            name,
            file: tempfile::spooled_tempfile(IN_MEMORY),
            size: 0,
        }
    }

    /// Appends a stream. Where it fails, what came before stays; the reason is given.
    pub(super) fn append(&mut self, mut stream: impl Read) -> Result<Option<String>, ImportError> {
        let mut piece = vec![0; PIECE];
        loop {
            let read = match stream.read(&mut piece) {
                Ok(0) => return Ok(None),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Ok(Some(error.to_string())),
            };
            self.size += read as u64;
            if self.size > LARGEST {
                return Err(ImportError::TooLarge {
                    name: self.name.to_owned(),
                });
            }
            self.file
                .write_all(&piece[..read])
                .map_err(|source| self.unwritable(source))?;
        }
    }

    /// Copies one stream.
    pub(super) fn copy(mut self, stream: impl Read) -> Result<Spooled, ImportError> {
        let damage = self.append(stream)?;
        self.finish(damage)
    }

    /// Rewinds.
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

    fn unwritable(&self, source: io::Error) -> ImportError {
        ImportError::Unwritable {
            name: self.name.to_owned(),
            source,
        }
    }
}
