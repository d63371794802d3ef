//! The cache directory of heaptap on this host for results that are expensive to compute. Defines
//! its location, layout and size; users of the cache define the meaning of its contents.
//!
//! ```text
//! <cache>/heaptap/         HEAPTAP_CACHE_DIR, otherwise the platform's cache directory
//!   CACHEDIR.TAG           excludes it from backups
//!   v1/                    version of the layout
//!     libraries/ab/cdef….device    libraries by build ID and source
//!     answers/01/2345…             data read from symbol files, by a digest
//!     indexes/01/2345…             contents of a directory, by a digest of its path
//! ```
//!
//! Any number of processes can share it: files are written under a temporary name and renamed, and
//! never changed. Processes that race write the same contents. Each kind has a size limit; the
//! least recently used files are removed first. If the cache cannot be written, a directory of this
//! process replaces it, and the next run is only slower.

mod answers;
mod file_cache;
mod libraries;

pub use answers::Answers;
pub use libraries::{Incoming, Libraries, NotKept, Origin};

use file_cache::FileCache;
use heaptap_base::host::Host;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Environment variable with the path of the cache directory.
pub const CACHE_DIR_VAR: &str = "HEAPTAP_CACHE_DIR";

/// Version of the layout. Directories of other versions are not touched.
const LAYOUT: &str = "v1";

/// Reader version, part of every cache key of symbol data. It contains the release; bump the number
/// when symbol parsing changes between releases.
pub const READER: &str = concat!(env!("CARGO_PKG_VERSION"), " 2");

/// Size limits, in bytes.
pub(super) const MAX_LIBRARIES: u64 = 4 << 30;
const MAX_ANSWERS: u64 = 512 << 20;
const MAX_INDEXES: u64 = 256 << 20;

/// The cache. Clones are cheap and share it.
#[derive(Debug, Clone)]
pub struct Cache {
    libraries: Libraries,
    answers: Answers,
    indexes: Answers,
    directory: PathBuf,
    /// Temporary directory of this process, removed with the last clone.
    _own: Option<Arc<tempfile::TempDir>>,
}

impl Cache {
    /// Opens the cache of the user, or the one in `HEAPTAP_CACHE_DIR`.
    ///
    /// # Errors
    /// Returns an error if neither the cache nor a temporary directory can be written.
    pub fn of_user() -> io::Result<Self> {
        Self::from_env(|name| std::env::var_os(name))
    }

    /// Opens the cache like [`Cache::of_user`], with a given environment.
    ///
    /// # Errors
    /// Returns the errors of [`Cache::of_user`].
    pub fn from_env(get: impl Fn(&str) -> Option<OsString>) -> io::Result<Self> {
        let directory = match get(CACHE_DIR_VAR).filter(|value| !value.is_empty()) {
            Some(directory) => std::path::absolute(directory),
            None => Host::CURRENT
                .user_directories()
                .map(|directories| directories.cache),
        };
        match directory.and_then(|directory| Self::in_directory(&directory)) {
            Ok(cache) => Ok(cache),
            Err(_) => Self::of_process(),
        }
    }

    /// Opens the cache in `directory` and creates it if necessary.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be written.
    pub fn in_directory(directory: &Path) -> io::Result<Self> {
        let layout = directory.join(LAYOUT);
        make_private(&layout)?;
        // Fails if the directory exists but is not writable.
        drop(tempfile::tempfile_in(&layout)?);
        let tag = directory.join("CACHEDIR.TAG");
        if !tag.exists() {
            // The tag is for backup programs; an error here is harmless.
            let _ = std::fs::write(
                tag,
                "Signature: 8a477f597d28d172789f06886806bc55\n# See https://bford.info/cachedir/\n",
            );
        }
        Ok(Self::at(&layout, None))
    }

    /// Creates a cache for this process only.
    ///
    /// # Errors
    /// Returns an error if there is no temporary directory.
    pub fn of_process() -> io::Result<Self> {
        let own = tempfile::Builder::new()
            .prefix("heaptap-cache-")
            .tempdir()?;
        let directory = own.path().to_owned();
        Ok(Self::at(&directory, Some(Arc::new(own))))
    }

    fn at(directory: &Path, own: Option<Arc<tempfile::TempDir>>) -> Self {
        let file_cache = |name, most| FileCache::new(directory.join(name), most);
        Cache {
            libraries: Libraries::new(file_cache("libraries", MAX_LIBRARIES)),
            answers: Answers::new(file_cache("answers", MAX_ANSWERS)),
            indexes: Answers::new(file_cache("indexes", MAX_INDEXES)),
            directory: directory.to_owned(),
            _own: own,
        }
    }

    /// Returns the libraries from devices and servers.
    pub fn libraries(&self) -> &Libraries {
        &self.libraries
    }

    /// Returns the data read from symbol files.
    pub fn answers(&self) -> &Answers {
        &self.answers
    }

    /// Returns the indexes of symbol directories.
    pub fn indexes(&self) -> &Answers {
        &self.indexes
    }

    /// Returns the directory of the cache.
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

/// Creates a directory that only its user can read, because answers contain names and paths.
fn make_private(directory: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_the_directory() {
        let directory = tempfile::tempdir().unwrap();
        let named = directory.path().join("a/b");
        let get = |name: &str| (name == CACHE_DIR_VAR).then(|| named.clone().into_os_string());
        let cache = Cache::from_env(get).unwrap();
        assert_eq!(cache.directory(), named.join("v1"));
        assert!(named.join("CACHEDIR.TAG").is_file());
    }

    #[test]
    fn a_cache_that_cannot_be_written_lasts_as_long_as_the_process() {
        let directory = tempfile::tempdir().unwrap();
        let taken = directory.path().join("file");
        std::fs::write(&taken, "").unwrap();
        let get = |name: &str| (name == CACHE_DIR_VAR).then(|| taken.clone().into_os_string());
        let cache = Cache::from_env(get).unwrap();
        cache.answers().put(&[1; 32], b"answer").unwrap();
        assert_eq!(cache.answers().get(&[1; 32]).unwrap(), b"answer");
        let own = cache.directory().to_owned();
        drop(cache);
        assert!(!own.exists());
    }
}
