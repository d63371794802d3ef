//! The folder on this host where heaptap keeps what is dear to have again. Owns where it lies,
//! its layout and its size; what an answer or an index means is for those who keep it.
//!
//! ```text
//! <cache>/heaptap/            HEAPTAP_CACHE_DIR, else the platform's folder for caches
//!   CACHEDIR.TAG              backups leave it out
//!   v1/                       another layout gets another number
//!     libraries/ab/cdef….device       libraries by build ID and where they came from
//!     answers/01/2345…                what was read from symbol files, by a digest
//!     indexes/01/2345…                what lies in a folder, by a digest of its path
//! ```
//!
//! Any number of processes may share it: files are written aside and renamed, never changed;
//! who loses a race has written the same. Each kind has a bound; what was used longest ago goes
//! first. Nothing in it is needed: where it cannot be written, a folder of this process takes
//! its place, and everything is only slower the next time.

mod answers;
mod file_cache;
mod libraries;

pub use answers::Answers;
pub use libraries::{Incoming, Libraries, NotKept, Origin};

use etcetera::AppStrategy as _;
use file_cache::FileCache;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Environment variable that names the folder.
pub const CACHE_DIR_VAR: &str = "HEAPTAP_CACHE_DIR";

/// The layout. What an older or newer heaptap left is not touched.
const LAYOUT: &str = "v1";

/// Who read what is kept of symbol files: a part of every key under which that is. Another
/// release reads better; so does another number, which changes with what is read from files
/// between releases.
pub const READER: &str = concat!(env!("CARGO_PKG_VERSION"), " 1");

/// Bounds of the kinds, in bytes.
pub(super) const MOST_LIBRARIES: u64 = 4 << 30;
const MOST_ANSWERS: u64 = 512 << 20;
const MOST_INDEXES: u64 = 256 << 20;

/// The cache. A clone is cheap and the same cache.
#[derive(Debug, Clone)]
pub struct Cache {
    libraries: Libraries,
    answers: Answers,
    indexes: Answers,
    folder: PathBuf,
    /// Taken away with the last clone, where this process has a cache of its own.
    _own: Option<Arc<tempfile::TempDir>>,
}

impl Cache {
    /// The cache of this user, or the one that `HEAPTAP_CACHE_DIR` names.
    ///
    /// # Errors
    /// Where neither it nor a folder for temporary files can be written.
    pub fn of_user() -> io::Result<Self> {
        Self::from_env(|name| std::env::var_os(name))
    }

    /// As [`Cache::of_user`], with the environment given.
    ///
    /// # Errors
    /// As there.
    pub fn from_env(get: impl Fn(&str) -> Option<OsString>) -> io::Result<Self> {
        let folder = match get(CACHE_DIR_VAR).filter(|value| !value.is_empty()) {
            Some(folder) => std::path::absolute(folder),
            None => of_platform(),
        };
        match folder.and_then(|folder| Self::in_folder(&folder)) {
            Ok(cache) => Ok(cache),
            Err(_) => Self::of_process(),
        }
    }

    /// The cache in `folder`, made where it is missing.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn in_folder(folder: &Path) -> io::Result<Self> {
        let layout = folder.join(LAYOUT);
        make_private(&layout)?;
        // Fails where the folder is there but not ours.
        drop(tempfile::tempfile_in(&layout)?);
        let tag = folder.join("CACHEDIR.TAG");
        if !tag.exists() {
            // A sign for programs that make backups; its absence harms nobody.
            let _ = std::fs::write(
                tag,
                "Signature: 8a477f597d28d172789f06886806bc55\n# See https://bford.info/cachedir/\n",
            );
        }
        Ok(Self::at(&layout, None))
    }

    /// A cache for this process only.
    ///
    /// # Errors
    /// Where there is no folder for temporary files.
    pub fn of_process() -> io::Result<Self> {
        let own = tempfile::Builder::new()
            .prefix("heaptap-cache-")
            .tempdir()?;
        let folder = own.path().to_owned();
        Ok(Self::at(&folder, Some(Arc::new(own))))
    }

    fn at(folder: &Path, own: Option<Arc<tempfile::TempDir>>) -> Self {
        let file_cache = |name, most| FileCache::new(folder.join(name), most);
        Cache {
            libraries: Libraries::new(file_cache("libraries", MOST_LIBRARIES)),
            answers: Answers::new(file_cache("answers", MOST_ANSWERS)),
            indexes: Answers::new(file_cache("indexes", MOST_INDEXES)),
            folder: folder.to_owned(),
            _own: own,
        }
    }

    /// Libraries from devices and servers.
    pub fn libraries(&self) -> &Libraries {
        &self.libraries
    }

    /// What was read from symbol files.
    pub fn answers(&self) -> &Answers {
        &self.answers
    }

    /// What lies in folders of symbols.
    pub fn indexes(&self) -> &Answers {
        &self.indexes
    }

    /// Where it lies.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether it ends with this process, because the user's cannot be written.
    pub fn is_of_process(&self) -> bool {
        self._own.is_some()
    }
}

fn of_platform() -> io::Result<PathBuf> {
    let strategy = etcetera::choose_app_strategy(etcetera::AppStrategyArgs {
        top_level_domain: String::new(),
        author: String::new(),
        app_name: "heaptap".to_owned(),
    });
    strategy
        .map(|strategy| strategy.cache_dir())
        .map_err(|error| io::Error::new(io::ErrorKind::NotFound, error))
}

/// Makes a folder that only its user reads: answers hold names and paths of their sources.
fn make_private(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let named = folder.path().join("a/b");
        let get = |name: &str| (name == CACHE_DIR_VAR).then(|| named.clone().into_os_string());
        let cache = Cache::from_env(get).unwrap();
        assert_eq!(cache.folder(), named.join("v1"));
        assert!(!cache.is_of_process());
        assert!(named.join("CACHEDIR.TAG").is_file());
    }

    #[test]
    fn a_cache_that_cannot_be_written_lasts_as_long_as_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let taken = folder.path().join("file");
        std::fs::write(&taken, "").unwrap();
        let get = |name: &str| (name == CACHE_DIR_VAR).then(|| taken.clone().into_os_string());
        let cache = Cache::from_env(get).unwrap();
        assert!(cache.is_of_process());
        cache.answers().put(&[1; 32], b"answer").unwrap();
        assert_eq!(cache.answers().get(&[1; 32]).unwrap(), b"answer");
        let own = cache.folder().to_owned();
        drop(cache);
        assert!(!own.exists());
    }
}
