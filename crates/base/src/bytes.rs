//! The bytes of a symbol file, mapping file or heap dump: mapped, owned, or a part of either. Owns
//! the `unsafe` of mapping, and the opening of files that might have been replaced; does not depend
//! on any format.

mod guard;

pub use guard::cut_short;

use crate::units::hex;
use guard::Guarded;
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{self, Read as _};
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::Arc;

/// First bytes of a pointer that Git LFS leaves in place of a file.
pub const GIT_LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

/// Bytes that several threads can hold and read at once. A clone is cheap.
#[derive(Clone)]
pub struct Bytes {
    whole: Arc<Whole>,
    range: Range<usize>,
}

/// Files smaller than this are read instead of mapped, like unpacked copies of that size: reading
/// takes about a millisecond, and the bytes cannot be cut short later.
const COPIED: u64 = 4 << 20;

enum Whole {
    Mapped(Guarded),
    /// Holds the file open: a temporary file that is deleted when it is closed.
    Temporary(
        memmap2::Mmap,
        #[expect(dead_code, reason = "held open")] File,
    ),
    Owned(Vec<u8>),
}

impl Bytes {
    /// Maps a regular file into memory without reading it; reads a small one.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened, mapped or read, or is not a regular file: a
    /// pipe or a device has no end.
    pub fn map(path: &Path) -> io::Result<Bytes> {
        Bytes::read(path, COPIED)
    }

    /// Reads a regular file of at most `most` bytes and maps a larger one: for files that another
    /// program might be writing, and cut short while they are read.
    ///
    /// # Errors
    /// Returns an error as [`Bytes::map`] does, or if the file cannot be read.
    pub fn read(path: &Path, most: u64) -> io::Result<Bytes> {
        let file = open_regular(path)?;
        if file.metadata()?.len() > most {
            return Bytes::from_file(&file, path);
        }
        let mut all = Vec::new();
        file.take(most).read_to_end(&mut all)?;
        Ok(Bytes::from(all))
    }

    /// Maps a regular file that was opened at `path`; it can be closed afterwards. If the file is
    /// cut short, the missing bytes read as zeros, and [`cut_short`] lists it.
    ///
    /// # Errors
    /// Returns an error if the file cannot be mapped or is not a regular file.
    pub fn from_file(file: &File, path: &Path) -> io::Result<Bytes> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(not_regular());
        }
        if metadata.len() == 0 {
            return Ok(Bytes::default());
        }
        // SAFETY: the map is read only. Linkers and our own cache replace such files by renaming;
        // R8 and copying tools might write into them, so files that the user did not name are read,
        // not mapped. The missing part of a mapped file that was cut short reads as zeros (see
        // `guard`), nothing is read beyond the map, and no reader trusts two reads to agree.
        let map = unsafe { memmap2::Mmap::map(file)? };
        let range = 0..map.len();
        let whole = Arc::new(Whole::Mapped(Guarded::new(map, path)?));
        Ok(Bytes { whole, range })
    }

    /// Maps a temporary file without a name, which stays open as long as its bytes are held.
    ///
    /// # Errors
    /// Returns an error if the file cannot be mapped.
    pub fn of_temporary(file: File) -> io::Result<Bytes> {
        if file.metadata()?.len() == 0 {
            return Ok(Bytes::default());
        }
        // SAFETY: the map is read only, and no other process can open the file to cut it short.
        let map = unsafe { memmap2::Mmap::map(&file)? };
        let range = 0..map.len();
        let whole = Arc::new(Whole::Temporary(map, file));
        Ok(Bytes { whole, range })
    }

    /// Releases a part that will not be read again soon: a mapped part no longer counts as memory
    /// of this process, and stays in the page cache. Does nothing for bytes that are not mapped, or
    /// if the host does not support such advice.
    pub fn release(&self, range: Range<usize>) {
        #[cfg(target_os = "linux")]
        let map = match &*self.whole {
            Whole::Mapped(guarded) => Some(guarded.map()),
            Whole::Temporary(map, _) => Some(map),
            Whole::Owned(_) => None,
        };
        #[cfg(target_os = "linux")]
        if let Some(map) = map
            && self.get(range.clone()).is_some()
        {
            let from = self.range.start + range.start;
            // SAFETY: the map is shared with the file and read only, so a page that is dropped is
            // loaded again from the file with the same content, even for concurrent readers.
            let _advice = unsafe {
                map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, from, range.len())
            };
        }
        #[cfg(not(target_os = "linux"))]
        let _ = range;
    }

    /// Returns a part of these bytes, sharing them: an entry stored in an archive.
    pub fn slice(&self, range: Range<usize>) -> Option<Bytes> {
        self.get(range.clone())?;
        let start = self.range.start + range.start;
        Some(Bytes {
            whole: Arc::clone(&self.whole),
            range: start..start + range.len(),
        })
    }
}

/// Opens a regular file for reading, without waiting. Opening some devices has side effects, so the
/// file is checked first; a file that has replaced it since is refused, too.
///
/// # Errors
/// Returns an error if the file cannot be opened or is not a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(not_regular());
    }
    let file = open_without_waiting(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(not_regular()),
    }
}

/// Returns the SHA-256 of a regular file, in hexadecimal digits.
///
/// # Errors
/// Returns an error if the file cannot be read or is not a regular file.
pub fn sha256_of(path: &Path) -> io::Result<String> {
    sha256_of_first(path, u64::MAX)
}

/// Returns the SHA-256 of the first `bytes` of a regular file, or of the whole file if it is
/// shorter.
///
/// # Errors
/// Returns an error if the file cannot be read or is not a regular file.
pub fn sha256_of_first(path: &Path, bytes: u64) -> io::Result<String> {
    let mut file = open_regular(path)?.take(bytes);
    let mut hash = Sha256::new();
    let mut block = vec![0; 1 << 16];
    loop {
        match file.read(&mut block)? {
            0 => return Ok(hex(&hash.finalize())),
            read => hash.update(&block[..read]),
        }
    }
}

/// Opens a file that was a regular file a moment ago. If a pipe has replaced it, the call does not
/// wait for a writer.
///
/// # Errors
/// Returns the error of the system.
pub fn open_without_waiting(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as _);
    }
    options.open(path)
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Bytes {
        let range = 0..bytes.len();
        let whole = Arc::new(Whole::Owned(bytes));
        Bytes { whole, range }
    }
}

impl Default for Bytes {
    fn default() -> Bytes {
        Bytes::from(Vec::new())
    }
}

impl Deref for Bytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        let whole: &[u8] = match &*self.whole {
            Whole::Mapped(guarded) => guarded.map(),
            Whole::Temporary(map, _) => map,
            Whole::Owned(bytes) => bytes,
        };
        &whole[self.range.clone()]
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let how = match &*self.whole {
            Whole::Mapped(_) | Whole::Temporary(..) => "mapped",
            Whole::Owned(_) => "owned",
        };
        write!(f, "Bytes({how}, {} bytes)", self.range.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_shares_the_bytes_of_the_whole_and_stays_within() {
        let whole = Bytes::from(vec![1, 2, 3, 4, 5]);
        let part = whole.slice(1..4).unwrap();
        assert_eq!(*part, [2, 3, 4]);
        assert_eq!(*part.slice(1..3).unwrap(), [3, 4]);
        assert!(part.slice(1..4).is_none());
        #[expect(clippy::reversed_empty_ranges)]
        let reversed = 3..1;
        assert!(part.slice(reversed).is_none());
    }

    #[test]
    fn files_are_mapped_and_directories_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lib.so");
        std::fs::write(&path, b"bytes").unwrap();
        assert_eq!(*Bytes::map(&path).unwrap(), *b"bytes");
        for (most, how) in [(5, "owned"), (4, "mapped")] {
            let bytes = Bytes::read(&path, most).unwrap();
            assert_eq!(*bytes, *b"bytes");
            assert!(format!("{bytes:?}").contains(how), "{bytes:?}");
        }
        std::fs::write(&path, b"").unwrap();
        assert!(Bytes::map(&path).unwrap().is_empty());
        assert!(Bytes::map(directory.path()).is_err());
        assert!(Bytes::read(directory.path(), 9).is_err());
        assert!(Bytes::map(&directory.path().join("none")).is_err());
    }

    #[test]
    fn the_sum_of_a_file_is_that_of_all_its_bytes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace");
        for size in [0, 3, 1 << 16, (1 << 17) + 1] {
            let bytes = vec![7; size];
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(sha256_of(&path).unwrap(), hex(&Sha256::digest(&bytes)));
        }
        assert!(sha256_of(directory.path()).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_refused_and_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("trace");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("there is mkfifo").success());
        open_regular(&pipe).unwrap_err();
        sha256_of(&pipe).unwrap_err();
        Bytes::map(&pipe).unwrap_err();
    }

    #[cfg(unix)]
    #[test]
    fn what_is_cut_off_a_mapped_file_reads_as_zeros_and_the_file_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("dump.hprof");
        std::fs::write(&path, vec![7; 3 << 20]).unwrap();
        let other = Bytes::read(&path, 0).unwrap();
        let whole = Bytes::read(&path, 0).unwrap();
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(1 << 20)
            .unwrap();
        assert!(whole[..1 << 20].iter().all(|&byte| byte == 7));
        assert!(
            !cut_short().contains(&path),
            "the missing part was not read"
        );
        // From several threads at once, in any order.
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let gone = &whole[1 << 20..];
                scope.spawn(move || {
                    assert_eq!(gone[gone.len() - 1 - (thread << 16)], 0);
                    assert!(gone.iter().all(|&byte| byte == 0));
                });
            }
        });
        drop(whole);
        assert!(cut_short().contains(&path));
        // Nothing of the other map was read.
        assert_eq!(other[5], 7);
    }
}
