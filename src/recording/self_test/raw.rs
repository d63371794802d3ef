//! The directory of the HPROF with contents, next to that of the results: a killed run must not leave
//! contents of the heap in a directory for a bug report. Owns its name and its removal.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::document::sessions_below;
use android_hprof::RewriteError;
use android_hprof::strip::{StripOptions, strip};
use heaptap_capture::session::Store;
use heaptap_results::manifest;
use heaptap_results::whole_file::WholeFile;

const PREFIX: &str = ".heaptap-try-";
/// File that is locked as long as the run lives.
const LOCK: &str = "lock";
/// Directory for the results of the session.
const SESSION: &str = "hprof";

/// A directory that this run removes.
pub(super) struct RawDirectory {
    // Unlocked first: Windows does not remove open files.
    _lock: File,
    directory: TempDir,
}

impl RawDirectory {
    pub(super) fn new(parent: &Path) -> io::Result<RawDirectory> {
        let directory = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
        let lock = File::create(directory.path().join(LOCK))?;
        // Some file systems do not support locks. There, no run removes what another one left.
        let _ = fs4::FileExt::try_lock(&lock);
        Ok(RawDirectory {
            _lock: lock,
            directory,
        })
    }

    /// Returns the directory for the results of the session.
    pub(super) fn session(&self) -> PathBuf {
        self.directory.path().join(SESSION)
    }

    /// Writes a copy without contents of a fetched HPROF into `goal`.
    pub(super) fn keep_stripped(&self, goal: &Path) -> io::Result<()> {
        let session = self.session();
        // Windows does not remove a directory that is being read.
        let name = {
            let files = fs::read_dir(&session).into_iter().flatten().flatten();
            let mut names = files.map(|entry| PathBuf::from(entry.file_name()));
            names.find(|name| name.extension().is_some_and(|e| e == "hprof"))
        };
        let Some(name) = name else {
            return Ok(());
        };
        // Without a manifest, a later run removes it if this one is killed.
        let raw = self.directory.path().join(&name);
        heaptap_base::rename_retry::rename(&session.join(&name), &raw)?;
        fs::remove_dir_all(&session)?;
        fs::create_dir_all(goal)?;
        write_stripped(&raw, &goal.join(name.with_extension("stripped.hprof")))?;
        fs::remove_file(&raw)
    }
}

fn write_stripped(file: &Path, goal: &Path) -> io::Result<()> {
    let bytes = heaptap_base::bytes::Bytes::from_file(&File::open(file)?, file)?;
    let mut out = WholeFile::named(goal)?;
    let options = StripOptions {
        keep_strings: false,
        fields: true,
    };
    strip(&bytes, options, &mut out).map_err(|error| match error {
        RewriteError::Write(error) => error,
        other => io::Error::other(other),
    })?;
    out.finish()
}

/// Removes directories of killed runs. One with a manifest stays, as one with a session: the user can
/// have fetched it with `heaptap stop`.
pub(super) fn remove_remains(parent: &Path, store: &Store) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_one = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry.file_type().is_ok_and(|kind| kind.is_dir());
        let path = entry.path();
        // Without the lock, the run lives, or its owner is another user.
        let is_dead = || {
            let lock = File::options().write(true).open(path.join(LOCK));
            lock.is_ok_and(|lock| fs4::FileExt::try_lock(&lock).is_ok())
        };
        let is_kept = || {
            path.join(SESSION).join(manifest::FILE_NAME).exists()
                || !sessions_below(store, &path).is_empty()
        };
        if is_one && is_dead() && !is_kept() {
            // What cannot be removed stays for the next run.
            let _ = fs::remove_dir_all(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HPROF: &[u8] = b"JAVA PROFILE 1.0.2\0\0\0\0\x08\0\0\0\0\0\0\0\0";

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap().flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn only_a_stripped_copy_gets_into_the_results() {
        let dir = tempfile::tempdir().unwrap();
        let goal = dir.path().join("out/hprof");
        let raw = RawDirectory::new(dir.path()).unwrap();
        raw.keep_stripped(&goal).unwrap();
        assert!(!goal.exists(), "nothing was fetched");
        fs::create_dir(raw.session()).unwrap();
        fs::write(raw.session().join(manifest::FILE_NAME), "{}").unwrap();
        fs::write(raw.session().join("app.7.hprof"), HPROF).unwrap();
        raw.keep_stripped(&goal).unwrap();
        raw.keep_stripped(&goal).unwrap();
        assert_eq!(names(&goal), ["app.7.stripped.hprof"]);
        assert_eq!(names(raw.directory.path()), [LOCK]);
        drop(raw);
        assert_eq!(names(dir.path()), ["out"]);
    }

    #[test]
    fn remains_of_killed_runs_are_removed_unless_the_user_can_need_them() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::in_directory(&dir.path().join("state")).unwrap();
        let killed = |file: &str| {
            let RawDirectory { _lock, directory } = RawDirectory::new(dir.path()).unwrap();
            fs::create_dir(directory.path().join(SESSION)).unwrap();
            fs::write(directory.path().join(file), HPROF).unwrap();
            directory.keep()
        };
        let fetched = killed("hprof/manifest.json");
        let other = killed("notes");
        fs::remove_file(other.join(LOCK)).unwrap();
        let remains = [killed("app.7.hprof"), killed("hprof/.heaptap-part-1")];
        let alive = RawDirectory::new(dir.path()).unwrap();
        remove_remains(dir.path(), &store);
        assert!(remains.iter().all(|path| !path.exists()));
        assert!(fetched.exists() && other.exists() && alive.directory.path().exists());
    }
}
