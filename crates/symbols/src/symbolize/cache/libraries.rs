//! Libraries and debug files that came from elsewhere, by build ID. Owns that a file found
//! under a build ID has it; who fetches them is no concern here.

use super::file_cache::FileCache;
use crate::symbolize::file::{self, Bytes};
use heaptap_model::units::BuildId;
use std::io;
use std::path::PathBuf;

/// Longest build ID that is kept, in bytes: linkers write 8 to 32.
const LONGEST_ID: usize = 64;

/// Where a library came from: files of one build that know different things.
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
    /// All of them, those that tend to know most first.
    pub const ALL: [Origin; 3] = [Origin::Debuginfo, Origin::Device, Origin::Executable];

    fn suffix(self) -> &'static str {
        match self {
            Origin::Device => "device",
            Origin::Debuginfo => "debuginfo",
            Origin::Executable => "executable",
        }
    }
}

/// The libraries that were fetched. Shared by threads and processes.
#[derive(Debug, Clone)]
pub struct Libraries(FileCache);

/// A library that is being fetched: a file to fill, gone if it is not kept.
#[derive(Debug)]
pub struct Incoming {
    cache: FileCache,
    file: tempfile::NamedTempFile,
}

/// Why a fetched library was not kept.
#[derive(Debug, thiserror::Error)]
pub enum NotKept {
    /// Another build of it, or none that could be told.
    #[error("it has build ID {found} where {expected} was expected")]
    OtherBuildId {
        /// What was asked for.
        expected: BuildId,
        /// What came; empty where it has none.
        found: BuildId,
    },
    /// What came is no library.
    #[error("{0}")]
    NotALibrary(#[from] file::FileError),
    /// This host cannot write.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Libraries {
    pub(super) fn new(cache: FileCache) -> Self {
        Libraries(cache)
    }

    /// The library with this build ID that came from there: a file that is never changed, and
    /// its bytes, mapped. Its build ID is checked again; a file with another is taken away.
    pub fn get(&self, build_id: &BuildId, origin: Origin) -> Option<(PathBuf, Bytes)> {
        let path = self.0.path(&name(build_id, origin)?);
        // Mapped, however small: the cache replaces files by renaming alone.
        let bytes = Bytes::read(&path, 0).ok()?;
        match file::identify(&bytes) {
            Ok(facts) if facts.build_id == *build_id => {
                self.0.note_use(&path);
                Some((path, bytes))
            }
            _ => {
                // Windows removes no file that is mapped.
                drop(bytes);
                let _ = std::fs::remove_file(&path);
                None
            }
        }
    }

    /// Whether it is there, without a look into it.
    pub fn has(&self, build_id: &BuildId, origin: Origin) -> bool {
        name(build_id, origin).is_some_and(|name| self.0.path(&name).is_file())
    }

    /// Begins to fetch a library. Its file lies in the cache, so that keeping it copies nothing.
    ///
    /// # Errors
    /// Where the cache cannot be written.
    pub fn receive(&self) -> io::Result<Incoming> {
        Ok(Incoming {
            cache: self.0.clone(),
            file: self.0.unfinished()?,
        })
    }

    /// Keeps a library that is in memory.
    ///
    /// # Errors
    /// Where it is not that library, or the cache cannot be written.
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
    /// The file to fill.
    pub fn file(&mut self) -> &mut std::fs::File {
        self.file.as_file_mut()
    }

    /// Its path, for who writes by path.
    pub fn path(&self) -> &std::path::Path {
        self.file.path()
    }

    /// Keeps the filled file under its build ID, which is checked.
    ///
    /// # Errors
    /// Where it is not that library, or this host cannot write; the file is gone then.
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
    // Two digits name the folder, something must be left for the file.
    let whole = (2..=LONGEST_ID).contains(&build_id.0.len());
    let hex: String = build_id
        .0
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    whole.then(|| format!("{hex}.{}", origin.suffix()))
}

#[cfg(test)]
mod tests {
    use super::super::Cache;
    use super::*;
    use crate::symbolize::find::sample_files::{FULL, ID, OTHER, elf};

    #[test]
    fn a_library_has_its_build_id_or_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::in_folder(folder.path()).unwrap();
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
        // Nothing unfinished stays.
        let cache = folder.path().join("v1/libraries");
        assert_eq!(std::fs::read_dir(cache).unwrap().count(), 1);
    }

    #[test]
    fn a_kept_file_is_checked_again() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::in_folder(folder.path()).unwrap();
        let id = BuildId(ID.to_vec());
        let libraries = cache.libraries();
        let path = libraries.put(&id, Origin::Device, &elf(&ID, FULL)).unwrap();
        std::fs::write(&path, elf(&OTHER, FULL)).unwrap();
        assert!(libraries.get(&id, Origin::Device).is_none());
        assert!(!path.exists());
    }
}
