//! The bytes of a symbol file, mapping file or heap dump: mapped, owned, or a part of either.
//! Owns the `unsafe` of mapping them, and how a file is opened that may be something else by now;
//! knows nothing of formats.

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

/// Bytes that many may hold and read at once. A clone is cheap.
#[derive(Clone)]
pub struct Bytes {
    whole: Arc<Whole>,
    range: Range<usize>,
}

/// Smaller files are read rather than mapped, as unpacked copies of that size stay in memory, too:
/// that takes about a millisecond, and nobody can cut them short meanwhile.
const COPIED: u64 = 4 << 20;

enum Whole {
    Mapped(Guarded),
    /// With its file held open: a temporary file that goes when it is closed.
    Temporary(
        memmap2::Mmap,
        #[expect(dead_code, reason = "held open")] File,
    ),
    Owned(Vec<u8>),
}

impl Bytes {
    /// Maps a regular file into memory, of which nothing is read yet; reads a small one.
    ///
    /// # Errors
    /// Where the file cannot be opened, mapped or read, or is no regular file: a pipe or a device
    /// has no end.
    pub fn map(path: &Path) -> io::Result<Bytes> {
        Bytes::read(path, COPIED)
    }

    /// Reads a regular file that has no more than `most` bytes, and maps a larger one: for files
    /// that somebody may be writing, and cut short while they are read.
    ///
    /// # Errors
    /// As [`Bytes::map`], and where it can't be read.
    pub fn read(path: &Path, most: u64) -> io::Result<Bytes> {
        let file = open_regular(path)?;
        if file.metadata()?.len() > most {
            return Bytes::from_file(&file, path);
        }
        let mut all = Vec::new();
        file.take(most).read_to_end(&mut all)?;
        Ok(Bytes::from(all))
    }

    /// Maps a regular file that was opened at `path`; it may be closed afterwards. Should it be
    /// cut short, zeros are read in place of what is gone, and [`cut_short`] names it.
    ///
    /// # Errors
    /// Where it cannot be mapped or is no regular file.
    pub fn from_file(file: &File, path: &Path) -> io::Result<Bytes> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(not_regular());
        }
        if metadata.len() == 0 {
            return Ok(Bytes::default());
        }
        // SAFETY: the map is read only. Linkers and our own cache replace such files by renaming;
        // R8 and copying tools may write into them, so files that nobody named are read, not
        // mapped. What is cut off of a mapped file reads as zeros (see `guard`), nothing is read
        // beyond the map, and no reader trusts two reads to agree.
        let map = unsafe { memmap2::Mmap::map(file)? };
        let range = 0..map.len();
        let whole = Arc::new(Whole::Mapped(Guarded::new(map, path)?));
        Ok(Bytes { whole, range })
    }

    /// Maps a temporary file without a name, which stays open as long as its bytes are held.
    ///
    /// # Errors
    /// Where it cannot be mapped.
    pub fn of_temporary(file: File) -> io::Result<Bytes> {
        if file.metadata()?.len() == 0 {
            return Ok(Bytes::default());
        }
        // SAFETY: the map is read only, and nobody else can open the file to cut it short.
        let map = unsafe { memmap2::Mmap::map(&file)? };
        let range = 0..map.len();
        let whole = Arc::new(Whole::Temporary(map, file));
        Ok(Bytes { whole, range })
    }

    /// Tells that a part will not be read again soon: a mapped part no longer counts as memory of
    /// this process, and stays in the page cache. Where the host does not know such advice, and
    /// for bytes that are not mapped, nothing happens.
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
            // SAFETY: the map is shared with the file and read only, so a page that is dropped
            // comes back from the file with the same content, for whoever reads it meanwhile.
            let _advice = unsafe {
                map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, from, range.len())
            };
        }
        #[cfg(not(target_os = "linux"))]
        let _ = range;
    }

    /// A part of these bytes, sharing them: an entry stored in an archive.
    pub fn slice(&self, range: Range<usize>) -> Option<Bytes> {
        self.get(range.clone())?;
        let start = self.range.start + range.start;
        Some(Bytes {
            whole: Arc::clone(&self.whole),
            range: start..start + range.len(),
        })
    }
}

/// Opens a regular file for reading, without waiting. To open some devices is to act on them, so
/// they are looked at first; what was put in its place since is refused, too.
///
/// # Errors
/// Returns an error if it cannot be opened or is not a regular file.
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
/// Returns an error if it cannot be read or is not a regular file.
pub fn sha256_of(path: &Path) -> io::Result<String> {
    sha256_of_first(path, u64::MAX)
}

/// Returns the SHA-256 of the first `bytes` of a regular file, or of all that it has.
///
/// # Errors
/// Returns an error if it cannot be read or is not a regular file.
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

/// Opens what was a regular file a moment ago: should a pipe have taken its place, that does
/// not wait for who writes it.
///
/// # Errors
/// What the system says.
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
    fn files_are_mapped_and_folders_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lib.so");
        std::fs::write(&path, b"bytes").unwrap();
        assert_eq!(*Bytes::map(&path).unwrap(), *b"bytes");
        for (most, how) in [(5, "owned"), (4, "mapped")] {
            let bytes = Bytes::read(&path, most).unwrap();
            assert_eq!(*bytes, *b"bytes");
            assert!(format!("{bytes:?}").contains(how), "{bytes:?}");
        }
        std::fs::write(&path, b"").unwrap();
        assert!(Bytes::map(&path).unwrap().is_empty());
        assert!(Bytes::map(folder.path()).is_err());
        assert!(Bytes::read(folder.path(), 9).is_err());
        assert!(Bytes::map(&folder.path().join("none")).is_err());
    }

    #[test]
    fn the_sum_of_a_file_is_that_of_all_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        for size in [0, 3, 1 << 16, (1 << 17) + 1] {
            let bytes = vec![7; size];
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(sha256_of(&path).unwrap(), hex(&Sha256::digest(&bytes)));
        }
        assert!(sha256_of(folder.path()).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("trace");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("there is mkfifo").success());
        open_regular(&pipe).unwrap_err();
        sha256_of(&pipe).unwrap_err();
        Bytes::map(&pipe).unwrap_err();
    }

    #[cfg(unix)]
    #[test]
    fn what_is_cut_off_a_mapped_file_reads_as_zeros_and_the_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dump.hprof");
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
        assert!(!cut_short().contains(&path), "nobody read what is gone");
        // From several threads at once, in no order.
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
        // Of the other map nothing was read.
        assert_eq!(other[5], 7);
    }
}
