//! Libraries and debug files from other machines, by build ID. Guarantees that a file stored under
//! a build ID has it; fetching is up to the caller.

use super::file_cache::FileCache;
use crate::symbolize::file::{self, Bytes};
use heaptap_base::units::{BuildId, hex};
use std::io;
use std::path::PathBuf;

/// Maximum length of a build ID in bytes; linkers write 8 to 32.
const MAX_ID_LENGTH: usize = 64;

/// Source of a library. Files of one build from different sources differ in content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The library itself, pulled from a device.
    Device,
    /// The debug file of a debuginfod server.
    Debuginfo,
    /// The library itself, from a debuginfod server.
    Executable,
}

impl Origin {
    /// All sources, usually most informative first.
    pub const ALL: [Origin; 3] = [Origin::Debuginfo, Origin::Device, Origin::Executable];

    fn suffix(self) -> &'static str {
        match self {
            Origin::Device => "device",
            Origin::Debuginfo => "debuginfo",
            Origin::Executable => "executable",
        }
    }
}

/// Cache of fetched libraries, shared by threads and processes.
#[derive(Debug, Clone)]
pub struct Libraries(FileCache);

/// Library being fetched: a file to fill, removed unless it is kept.
#[derive(Debug)]
pub struct Incoming {
    cache: FileCache,
    file: tempfile::NamedTempFile,
}

/// Reason why a fetched library was not kept.
#[derive(Debug, thiserror::Error)]
pub enum NotKept {
    /// It is another build, or does not have a build ID.
    #[error("build ID is {found}, expected {expected}")]
    OtherBuildId {
        /// Requested build ID.
        expected: BuildId,
        /// Build ID of the file; empty if it does not have one.
        found: BuildId,
    },
    /// It is not a library.
    #[error("{0}")]
    NotALibrary(#[from] file::FileError),
    /// The host cannot write it.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Libraries {
    pub(super) fn new(cache: FileCache) -> Self {
        Libraries(cache)
    }

    /// Returns the library with this build ID and source: the path of a file that never changes,
    /// and its mapped bytes. Checks the build ID again and removes a file with another one.
    pub fn get(&self, build_id: &BuildId, origin: Origin) -> Option<(PathBuf, Bytes)> {
        let path = self.0.path(&name(build_id, origin)?);
        // Mapped even if small, because the cache replaces files only by renaming.
        let bytes = Bytes::read(&path, 0).ok()?;
        match file::identify(&bytes) {
            Ok(facts) if facts.build_id == *build_id => {
                self.0.note_use(&path);
                Some((path, bytes))
            }
            _ => {
                // Windows cannot remove a mapped file.
                drop(bytes);
                let _ = std::fs::remove_file(&path);
                None
            }
        }
    }

    /// Returns whether the library is in the cache, without opening it.
    pub fn has(&self, build_id: &BuildId, origin: Origin) -> bool {
        name(build_id, origin).is_some_and(|name| self.0.path(&name).is_file())
    }

    /// Starts fetching a library. Its file is in the cache directory, so keeping it needs no copy.
    ///
    /// # Errors
    /// Returns an error if the cache cannot be written.
    pub fn receive(&self) -> io::Result<Incoming> {
        Ok(Incoming {
            cache: self.0.clone(),
            file: self.0.unfinished()?,
        })
    }

    /// Stores a library from memory.
    ///
    /// # Errors
    /// Returns an error if it is another library, or if the cache cannot be written.
    pub fn put(
        &self,
        build_id: &BuildId,
        origin: Origin,
        bytes: &[u8],
    ) -> Result<PathBuf, NotKept> {
        let mut incoming = self.receive()?;
        io::Write::write_all(incoming.file(), bytes)?;
        incoming.keep(build_id, origin)
    }
}

impl Incoming {
    /// Returns the file to fill.
    pub fn file(&mut self) -> &mut std::fs::File {
        self.file.as_file_mut()
    }

    /// Stores the filled file under its build ID, which is checked.
    ///
    /// # Errors
    /// Returns an error if it is another library, or if the host cannot write; the file is then
    /// removed.
    pub fn keep(self, build_id: &BuildId, origin: Origin) -> Result<PathBuf, NotKept> {
        let found = {
            let bytes = Bytes::read(self.file.path(), 0)?;
            file::identify(&bytes)?.build_id
        };
        match name(build_id, origin) {
            Some(name) if found == *build_id => Ok(self.cache.keep(self.file, &name)?),
            _ => Err(NotKept::OtherBuildId {
                expected: build_id.clone(),
                found,
            }),
        }
    }
}

fn name(build_id: &BuildId, origin: Origin) -> Option<String> {
    // Two digits name the directory, and at least one byte must remain for the file.
    let whole = (2..=MAX_ID_LENGTH).contains(&build_id.0.len());
    let hex = hex(&build_id.0);
    whole.then(|| format!("{hex}.{}", origin.suffix()))
}

#[cfg(test)]
mod tests {
    use super::super::Cache;
    use super::*;
    use crate::symbolize::find::tests::sample_files::{FULL, ID, OTHER, elf};

    #[test]
    fn a_library_has_its_build_id_or_is_not_kept() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::in_directory(directory.path()).unwrap();
        let libraries = cache.libraries();
        let id = BuildId(ID.to_vec());
        assert!(libraries.get(&id, Origin::Device).is_none());
        let path = libraries.put(&id, Origin::Device, &elf(&ID, FULL)).unwrap();
        let (found, bytes) = libraries.get(&id, Origin::Device).unwrap();
        assert_eq!(found, path);
        assert_eq!(*bytes, *elf(&ID, FULL));
        assert!(format!("{bytes:?}").contains("mapped"), "it is not copied");
        assert!(libraries.has(&id, Origin::Device));
        assert!(!libraries.has(&id, Origin::Debuginfo));

        let other = libraries.put(&id, Origin::Debuginfo, &elf(&OTHER, FULL));
        assert!(matches!(other, Err(NotKept::OtherBuildId { .. })));
        let none = libraries.put(&id, Origin::Debuginfo, b"<html>");
        assert!(matches!(none, Err(NotKept::NotALibrary(_))));
        for odd in [vec![], vec![1], vec![1; 65]] {
            let put = libraries.put(&BuildId(odd.clone()), Origin::Device, &elf(&odd, FULL));
            assert!(put.is_err());
        }
        // No unfinished file remains.
        let cache = directory.path().join("v1/libraries");
        assert_eq!(std::fs::read_dir(cache).unwrap().count(), 1);
    }

    #[test]
    fn a_kept_file_is_checked_again() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::in_directory(directory.path()).unwrap();
        let id = BuildId(ID.to_vec());
        let libraries = cache.libraries();
        let path = libraries.put(&id, Origin::Device, &elf(&ID, FULL)).unwrap();
        std::fs::write(&path, elf(&OTHER, FULL)).unwrap();
        assert!(libraries.get(&id, Origin::Device).is_none());
        assert!(!path.exists());
    }
}
