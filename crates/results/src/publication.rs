//! Atomic publication of results: they are written into an inner directory and moved when they are
//! complete.

use std::ffi::OsString;
use std::io::{self, BufRead as _};
use std::path::{Path, PathBuf};

use super::manifest;
use heaptap_base::directory;
use heaptap_base::rename_retry;
use heaptap_base::unfinished::{ExistingFile, place};
use heaptap_capture::session::{self, CaptureError, SessionId};

/// End of the name of a staging directory whose results are complete and synced.
const READY: &str = ".ready";

/// Results in progress: written into an inner directory, and moved all at once when they are
/// complete. Dropping it earlier leaves nothing.
pub struct Staging {
    directory: PathBuf,
    parts: tempfile::TempDir,
}

impl Staging {
    /// Creates the inner directory, with a name that begins with `prefix`.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be written.
    pub fn new(directory: &Path, prefix: &str) -> io::Result<Staging> {
        Ok(Staging {
            directory: directory.to_owned(),
            parts: tempfile::Builder::new()
                .prefix(prefix)
                .tempdir_in(directory)?,
        })
    }

    /// Returns the inner directory.
    pub fn path(&self) -> &Path {
        self.parts.path()
    }

    /// Returns the names of the results so far.
    pub(super) fn names(&self) -> io::Result<Vec<String>> {
        let entries = std::fs::read_dir(self.path())?;
        let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        names.collect()
    }

    /// Keeps the inner directory, and returns its path.
    pub fn keep(self) -> PathBuf {
        self.parts.keep()
    }

    /// Publishes the results so that they survive a power loss. Callers then remove the copy on the
    /// device. If the process is killed meanwhile, [`continue_publication`] goes on.
    ///
    /// # Errors
    /// Returns the errors of [`Staging::publish`].
    pub fn publish_synced(self, existing: ExistingFile) -> Result<(), Unpublished> {
        let directory = self.directory.clone();
        let failed = |error| Unpublished::Io(directory.clone(), error);
        let names = names_to_move(self.path(), &directory, existing)?;
        let ready = self.seal().map_err(failed)?;
        move_all(&ready, &directory, names)?;
        directory::sync(&directory).map_err(failed)
    }

    /// Syncs the results and marks them as complete. They stay if the process is killed.
    pub(super) fn seal(self) -> io::Result<PathBuf> {
        for item in std::fs::read_dir(self.path())? {
            // Windows syncs only what is open for writing.
            let file = std::fs::OpenOptions::new().write(true).open(item?.path());
            file?.sync_all()?;
        }
        let mut ready = self.path().as_os_str().to_owned();
        ready.push(READY);
        let ready = PathBuf::from(ready);
        rename_retry::rename(self.path(), &ready)?;
        self.keep();
        Ok(ready)
    }

    /// Moves the results into the directory, the manifest last. Existing files are replaced if they
    /// are identical, or if `existing` says so: they belong to this session.
    ///
    /// # Errors
    /// Returns an error if another file has a name, before anything is moved, or if the directory
    /// cannot be written.
    pub fn publish(self, existing: ExistingFile) -> Result<(), Unpublished> {
        let names = names_to_move(self.path(), &self.directory, existing)?;
        move_all(self.path(), &self.directory, names)
    }
}

/// Continues a publication of the session that was killed. Results that are converted again could
/// differ from the published ones, for example because symbols were found since, and would not
/// replace them.
pub fn continue_publication(directory: &Path, id: &SessionId) -> Result<(), Unpublished> {
    let failed = |error| Unpublished::Io(directory.to_owned(), error);
    let prefix = session::part_prefix(id);
    for item in std::fs::read_dir(directory).map_err(failed)? {
        let item = item.map_err(failed)?;
        let name = item.file_name();
        let is_ready = |name: &str| name.starts_with(&prefix) && name.ends_with(READY);
        // A link in a directory from elsewhere is not followed.
        let is_directory = item.file_type().map_err(failed)?.is_dir();
        if is_directory && name.to_str().is_some_and(is_ready) {
            let names = names_to_move(&item.path(), directory, ExistingFile::Stays)?;
            move_all(&item.path(), directory, names)?;
        }
    }
    Ok(())
}

/// Returns the names of all files in `parts`, the manifest last, and what happens to files in
/// `directory` that have them.
fn names_to_move(
    parts: &Path,
    directory: &Path,
    existing: ExistingFile,
) -> Result<Vec<(OsString, ExistingFile)>, Unpublished> {
    let failed = |error| Unpublished::Io(parts.to_owned(), error);
    let mut names = Vec::new();
    for item in std::fs::read_dir(parts).map_err(failed)? {
        let name = item.map_err(failed)?.file_name();
        let goal = directory.join(&name);
        match std::fs::symlink_metadata(&goal) {
            Err(_) => names.push((name, ExistingFile::Stays)),
            Ok(found)
                if found.is_file()
                    && (existing == ExistingFile::IsReplaced
                        || is_same(&parts.join(&name), &goal)) =>
            {
                names.push((name, ExistingFile::IsReplaced));
            }
            Ok(_) => return Err(Unpublished::Taken(goal)),
        }
    }
    names.sort_by_key(|(name, _)| name == manifest::FILE_NAME);
    Ok(names)
}

/// Moves these files from `parts` to `directory`, then removes `parts`.
fn move_all(
    parts: &Path,
    directory: &Path,
    names: Vec<(OsString, ExistingFile)>,
) -> Result<(), Unpublished> {
    for (name, existing) in names {
        let (from, goal) = (parts.join(&name), directory.join(&name));
        let moved = match existing {
            // On Windows, this replaces a file that a program has open, too.
            ExistingFile::IsReplaced => rename_retry::rename(&from, &goal),
            ExistingFile::Stays => {
                let from = tempfile::TempPath::try_from_path(from);
                from.and_then(|from| {
                    place(from, &goal).map_err(|(error, from)| {
                        // Dropping it would remove the file.
                        let _ = from.keep();
                        error
                    })
                })
            }
        };
        moved.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Unpublished::Taken(goal.clone()),
            _ => Unpublished::Io(goal.clone(), error),
        })?;
    }
    // An empty directory of this session is removed later.
    let _ = std::fs::remove_dir(parts);
    Ok(())
}

/// Error of publishing results.
#[derive(Debug)]
pub enum Unpublished {
    /// Another file has this name.
    Taken(PathBuf),
    /// The directory cannot be written.
    Io(PathBuf, io::Error),
}

impl Unpublished {
    /// Converts to the failure of finishing session `id`.
    pub fn of_session(self, id: &SessionId) -> CaptureError {
        match self {
            Unpublished::Taken(path) => CaptureError::name_taken(id, &path),
            Unpublished::Io(path, source) => CaptureError::keep(id, &path, source),
        }
    }

    /// Converts to the failure of a command without a session.
    pub fn of_command(self) -> CaptureError {
        match self {
            Unpublished::Taken(path) => {
                CaptureError::output_not_empty(path.parent().unwrap_or(&path))
            }
            Unpublished::Io(path, source) => CaptureError::output(&path, source),
        }
    }
}

/// Returns whether two files have the same content.
fn is_same(one: &Path, other: &Path) -> bool {
    let open = |path| std::fs::File::open(path).map(io::BufReader::new);
    let same = || -> io::Result<bool> {
        let (mut one, mut other) = (open(one)?, open(other)?);
        loop {
            let (left, right) = (one.fill_buf()?, other.fill_buf()?);
            let both = left.len().min(right.len());
            if left[..both] != right[..both] || (both == 0 && left.len() != right.len()) {
                return Ok(false);
            }
            if both == 0 {
                return Ok(true);
            }
            one.consume(both);
            other.consume(both);
        }
    };
    same().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_appear_all_at_once_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let listed = || {
            let items = std::fs::read_dir(dir.path()).unwrap();
            let names = items.map(|i| i.unwrap().file_name().into_string().unwrap());
            let mut names: Vec<String> = names.collect();
            names.sort();
            names
        };
        let staged = |files: [(&str, &str); 2]| {
            let staging = Staging::new(dir.path(), ".part-").unwrap();
            for (name, text) in files {
                std::fs::write(staging.path().join(name), text).unwrap();
            }
            staging
        };
        std::fs::write(dir.path().join("b"), "mine").unwrap();
        let taken = staged([("a", "1"), ("b", "2")]).publish(ExistingFile::Stays);
        assert!(matches!(taken, Err(Unpublished::Taken(path)) if path.ends_with("b")));
        assert_eq!(listed(), ["b"]);
        // If killed between two of them, publication continues.
        std::fs::write(dir.path().join("b"), "2").unwrap();
        staged([("a", "1"), ("b", "2")])
            .publish(ExistingFile::Stays)
            .unwrap();
        assert_eq!(listed(), ["a", "b"]);
        assert!(
            staged([("a", "1"), ("b", "3")])
                .publish(ExistingFile::Stays)
                .is_err()
        );
        staged([("a", "1"), ("b", "3")])
            .publish(ExistingFile::IsReplaced)
            .unwrap();
        assert_eq!(std::fs::read(dir.path().join("b")).unwrap(), b"3");
        // A directory is never replaced.
        std::fs::create_dir(dir.path().join("c")).unwrap();
        assert!(
            staged([("a", "1"), ("c", "4")])
                .publish(ExistingFile::IsReplaced)
                .is_err()
        );
        assert_eq!(listed(), ["a", "b", "c"]);
        assert!(is_same(&dir.path().join("a"), &dir.path().join("a")));
        std::fs::write(dir.path().join("d"), "12").unwrap();
        assert!(!is_same(&dir.path().join("a"), &dir.path().join("d")));
        assert!(!is_same(&dir.path().join("d"), &dir.path().join("a")));
    }
}
