//! The directory of journals in the user's state directory: create, list, find, lock, forget.
//! The process that finishes a session holds its lock, so that no two processes do; the
//! system releases the lock when that process ends, even if it is killed.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::directory::is_still;
use super::id::SessionId;
use super::journal::{self, Journal, SessionHeader, SessionState};
use super::state_directory;
use crate::error::CaptureError;
use heaptap_adb::RemoteStat;
use heaptap_base::{parallel, unfinished};

/// Number of attempts after which a held lock means that another process finishes the session.
const LOOKS: u32 = 5;
/// Pause between two attempts.
const LOOK: Duration = Duration::from_millis(10);

/// Journals of all sessions of this user.
#[derive(Debug, Clone)]
pub struct Store {
    directory: PathBuf,
    /// Sessions of this process, which its copies share.
    own: Arc<Mutex<BTreeSet<SessionId>>>,
}

/// A file that stays on its device although it has been fetched.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Collected {
    serial: String,
    path: String,
    size: u64,
    mtime: i64,
}

/// The right to finish a session, held until dropped.
#[derive(Debug)]
pub struct SessionLock {
    // Closing the file releases the lock.
    _file: File,
}

/// A file among the journals that is not a valid journal, and the error.
pub type Unreadable = (PathBuf, io::Error);

impl Store {
    /// Opens the store in the user's state directory, or in `HEAPTAP_STATE_DIR`.
    ///
    /// # Errors
    /// Returns an error if there is no home directory, or if the store cannot be created.
    pub fn of_user() -> Result<Self, CaptureError> {
        let directory = state_directory::of_user().map_err(|source| {
            CaptureError::state(&PathBuf::from("the user's state directory"), source)
        })?;
        Self::in_directory(&directory)
    }

    /// Opens the store in `directory`.
    ///
    /// # Errors
    /// Returns an error if it cannot be created.
    pub fn in_directory(directory: &Path) -> Result<Self, CaptureError> {
        let directory = directory.join("sessions");
        heaptap_base::directory::create(&directory)
            .map_err(|source| CaptureError::state(&directory, source))?;
        Ok(Store {
            directory,
            own: Arc::default(),
        })
    }

    /// Returns the directory of the journals.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Writes the journal of a new session, locked by this process.
    ///
    /// # Errors
    /// Returns an error if this host cannot write.
    pub fn create(&self, header: SessionHeader) -> Result<(Journal, SessionLock), CaptureError> {
        let id = header.id.clone();
        let lock = self.take_lock(&id)?;
        let path = self.journal_path(&id);
        let journal =
            Journal::create(&path, header).map_err(|source| CaptureError::state(&path, source))?;
        parallel::lock(&self.own).insert(id);
        Ok((journal, lock))
    }

    /// Opens the journal of `id` for appending.
    ///
    /// # Errors
    /// Returns an error if it does not exist.
    pub fn open(&self, id: &SessionId) -> Result<Journal, CaptureError> {
        let path = self.journal_path(id);
        Journal::open(&path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => CaptureError::no_such_session(id),
            _ => CaptureError::state(&path, source),
        })
    }

    /// Reads the journal of `id`.
    ///
    /// # Errors
    /// Returns an error if it does not exist, or cannot be read.
    pub fn state(&self, id: &SessionId) -> Result<SessionState, CaptureError> {
        read(&self.open(id)?)
    }

    /// Acquires the right to finish `id`.
    ///
    /// # Errors
    /// Returns [`CaptureError::busy`] if another process has it, or
    /// [`CaptureError::no_such_session`] if the session is finished.
    pub fn lock(&self, id: &SessionId) -> Result<SessionLock, CaptureError> {
        self.open(id)?;
        let lock = self.take_lock(id)?;
        // The previous owner of the lock might have finished the session.
        if let Err(error) = self.open(id) {
            let _ = remove_if_there(&self.lock_path(id));
            return Err(error);
        }
        Ok(lock)
    }

    /// Calls `work` with the lock of a finished session: work on its directory that only one process may
    /// do at a time.
    ///
    /// # Errors
    /// Returns [`CaptureError::busy`] if another process has it.
    pub fn while_locked<T>(
        &self,
        id: &SessionId,
        work: impl FnOnce() -> T,
    ) -> Result<T, CaptureError> {
        let lock = self.take_lock(id)?;
        let done = work();
        self.unlock(id, lock);
        Ok(done)
    }

    fn take_lock(&self, id: &SessionId) -> Result<SessionLock, CaptureError> {
        let path = self.lock_path(id);
        let failed = |source| CaptureError::state(&path, source);
        let mut looks = 0;
        loop {
            let mut file = open_lock(&path).map_err(failed)?;
            match fs4::FileExt::try_lock(&file) {
                Ok(()) => {}
                // Another process might only be checking, which is shorter than this.
                Err(fs4::TryLockError::WouldBlock) if looks < LOOKS => {
                    looks += 1;
                    std::thread::sleep(LOOK);
                    continue;
                }
                Err(fs4::TryLockError::WouldBlock) => {
                    return Err(CaptureError::busy(id));
                }
                Err(fs4::TryLockError::Error(e)) => return Err(failed(e)),
            }
            // If the previous owner removed the name, this file does not lock anything.
            if !is_still(&file, &path) {
                continue;
            }
            // Only for people who look into the directory; heaptap does not read it.
            let _ = file.set_len(0);
            let _ = writeln!(file, "{}", std::process::id());
            return Ok(SessionLock { _file: file });
        }
    }

    /// Returns whether a live process is finishing `id`.
    pub fn is_locked(&self, id: &SessionId) -> bool {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(self.lock_path(id));
        file.is_ok_and(|file| fs4::FileExt::try_lock_shared(&file).is_err())
    }

    /// Records that the current file at `path` of `serial` has been fetched: Android 10 keeps it
    /// forever.
    ///
    /// # Errors
    /// Returns an error if this host cannot write.
    pub fn note_collected(
        &self,
        serial: &str,
        path: &str,
        stat: RemoteStat,
    ) -> Result<(), CaptureError> {
        let file = self.collected_path();
        let write = || {
            let lock = open_lock(&file.with_extension("lock"))?;
            // Another process only holds it while it writes.
            fs4::FileExt::lock(&lock)?;
            let mut all = self.collected();
            all.retain(|c| c.serial != serial || c.path != path);
            all.push(Collected {
                serial: serial.to_owned(),
                path: path.to_owned(),
                size: stat.size,
                mtime: stat.mtime,
            });
            unfinished::write(&file, &serde_json::to_vec(&all)?)
        };
        write().map_err(|source| CaptureError::state(&file, source))
    }

    /// Returns whether the current file at `path` of `serial` has been fetched.
    pub fn is_collected(&self, serial: &str, path: &str, stat: RemoteStat) -> bool {
        self.collected().iter().any(|c| {
            c.serial == serial && c.path == path && c.size == stat.size && c.mtime == stat.mtime
        })
    }

    /// Reads the records of fetched files. Lost or unreadable records only cost another fetch.
    fn collected(&self) -> Vec<Collected> {
        let bytes = std::fs::read(self.collected_path()).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    fn collected_path(&self) -> PathBuf {
        self.directory.with_file_name("collected.json")
    }

    /// Forgets a finished session: removes journal and lock.
    ///
    /// # Errors
    /// Returns an error if this host cannot write.
    pub fn forget(&self, id: &SessionId, lock: SessionLock) -> Result<(), CaptureError> {
        let path = self.journal_path(id);
        remove_if_there(&path)
            .and_then(|()| journal::sync_directory(&path))
            .map_err(|source| CaptureError::state(&path, source))?;
        self.unlock(id, lock);
        Ok(())
    }

    fn unlock(&self, id: &SessionId, lock: SessionLock) {
        // Windows cannot remove an open file: there, close it first; elsewhere, last.
        if cfg!(windows) {
            drop(lock);
            let _ = remove_if_there(&self.lock_path(id));
        } else {
            let _ = remove_if_there(&self.lock_path(id));
            drop(lock);
        }
    }

    /// Lists all sessions with a readable journal, oldest first, and the other files.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be read.
    pub fn list(&self) -> Result<(Vec<SessionState>, Vec<Unreadable>), CaptureError> {
        let failed = |source| CaptureError::state(&self.directory, source);
        let mut found = Vec::new();
        let mut unreadable = Vec::new();
        for item in std::fs::read_dir(&self.directory).map_err(failed)? {
            let path = item.map_err(failed)?.path();
            if path.extension().is_some_and(|e| e == "lock") {
                self.sweep_lock(&path);
            }
            if path.extension().is_none_or(|e| e != "jsonl") {
                continue;
            }
            match journal::read(&path) {
                Ok(state) if self.sweep_in_process(&state) => {}
                Ok(state) => found.push(state),
                Err(e) if journal::is_unopened(&e) && self.sweep(&path) => {}
                // Another process has finished it since the directory was read.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => unreadable.push((path, e)),
            }
        }
        found.sort_by_key(|c| c.header.time);
        Ok((found, unreadable))
    }

    /// Removes a lock without a journal, which a killed process left.
    fn sweep_lock(&self, lock: &Path) {
        if let Some(id) = session_of(lock).filter(|id| !self.journal_path(id).exists())
            && let Ok(lock) = self.take_lock(&id)
            && !self.journal_path(&id).exists()
        {
            // A leftover is removed next time.
            let _ = self.forget(&id, lock);
        }
    }

    /// Removes the journal of a session whose device ended with the recording process, if that
    /// process is gone. Keeps it if the trace has been fetched and is still usable.
    fn sweep_in_process(&self, state: &SessionState) -> bool {
        let id = &state.header.id;
        state.in_process
            && !state.is_fetched()
            && !parallel::lock(&self.own).contains(id)
            && self.take_lock(id).is_ok_and(|lock| {
                state.release_directories();
                self.forget(id, lock).is_ok()
            })
    }

    /// Removes a journal with an unfinished header: its device did not get any request. Keeps
    /// it if a process is just writing it.
    fn sweep(&self, journal: &Path) -> bool {
        session_of(journal).is_some_and(|id| {
            let lock = self.take_lock(&id);
            lock.is_ok_and(|lock| journal::read(journal).is_err() && self.forget(&id, lock).is_ok())
        })
    }

    fn journal_path(&self, id: &SessionId) -> PathBuf {
        self.directory.join(format!("{id}.jsonl"))
    }

    fn lock_path(&self, id: &SessionId) -> PathBuf {
        self.directory.join(format!("{id}.lock"))
    }
}

pub(super) fn read(journal: &Journal) -> Result<SessionState, CaptureError> {
    let state = journal.read();
    state.map_err(|source| CaptureError::state(journal.path(), source))
}

/// Opens a file for its lock, and creates it if it does not exist.
pub(crate) fn open_lock(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.open(path)
}

/// Returns the session of a file in the store.
fn session_of(path: &Path) -> Option<SessionId> {
    path.file_stem()?.to_str()?.parse().ok()
}

pub(crate) fn remove_if_there(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::kind;
    use crate::session::journal::tests::header;
    use heaptap_base::error::Classified as _;

    #[test]
    fn only_one_process_finishes_a_session() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::in_directory(dir.path()).unwrap();
        let header = header();
        let id = header.id.clone();
        let (journal, lock) = store.create(header).unwrap();
        drop(journal);
        assert!(store.is_locked(&id));
        let busy = store.lock(&id).err().map(|error| error.kind());
        assert_eq!(busy, Some("session-busy"));
        drop(lock);
        assert!(!store.is_locked(&id));
        let looking = File::open(store.lock_path(&id)).unwrap();
        fs4::FileExt::try_lock_shared(&looking).unwrap();
        assert!(!store.is_locked(&id), "a check does not hold the lock");
        drop(looking);
        let lock = store.lock(&id).unwrap();
        store.forget(&id, lock).unwrap();
        assert!(store.list().unwrap().0.is_empty());
        assert_eq!(
            std::fs::read_dir(dir.path().join("sessions"))
                .unwrap()
                .count(),
            0
        );
        assert!(matches!(
            store.open(&id),
            Err(error) if error.is(&[kind::NO_SUCH_SESSION])
        ));
    }

    #[test]
    fn one_process_at_a_time_works_on_a_finished_session() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::in_directory(dir.path()).unwrap();
        let id = SessionId::random();
        let nested = || store.while_locked(&id, || ()).unwrap_err();
        let refused = store.while_locked(&id, nested).unwrap();
        assert!(refused.is(&[kind::SESSION_BUSY]), "{refused}");
        assert_eq!(store.while_locked(&id, || 7).unwrap(), 7);
        assert_eq!(std::fs::read_dir(&store.directory).unwrap().count(), 0);
    }

    #[test]
    fn processes_that_note_collected_files_at_once_lose_none() {
        let dir = tempfile::tempdir().unwrap();
        let stat = RemoteStat {
            mode: 0o100_644,
            size: 5,
            mtime: 7,
        };
        std::thread::scope(|scope| {
            for serial in ["a", "b"] {
                let store = Store::in_directory(dir.path()).unwrap();
                scope.spawn(move || {
                    for path in 0..20 {
                        let path = path.to_string();
                        store.note_collected(serial, &path, stat).unwrap();
                    }
                });
            }
        });
        let store = Store::in_directory(dir.path()).unwrap();
        assert_eq!(store.collected().len(), 40);
        assert!(store.is_collected("a", "19", stat));
        let later = RemoteStat { mtime: 8, ..stat };
        assert!(!store.is_collected("a", "19", later));
        store.note_collected("a", "19", later).unwrap();
        assert_eq!(store.collected().len(), 40);
        let names = std::fs::read_dir(dir.path()).unwrap();
        assert_eq!(names.count(), 3, "sessions, the records and their lock");
    }

    #[test]
    fn a_journal_that_cannot_be_read_hides_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::in_directory(dir.path()).unwrap();
        store.create(header()).unwrap();
        std::fs::write(dir.path().join("sessions/x.jsonl"), b"junk\n").unwrap();
        // Of a version with other fields.
        let later = dir.path().join("sessions/abcdefgh.jsonl");
        std::fs::write(&later, b"{\"event\":\"opened\",\"version\":99}\n").unwrap();
        let (found, unreadable) = store.list().unwrap();
        assert_eq!((found.len(), unreadable.len()), (1, 2));
        assert!(later.exists());
    }

    #[test]
    fn what_was_killed_before_it_told_a_device_anything_is_swept() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::in_directory(dir.path()).unwrap();
        let sessions = dir.path().join("sessions");
        std::fs::write(sessions.join("abcdefgh.jsonl"), b"{\"event\":\"ope").unwrap();
        std::fs::write(sessions.join("abcdefgh.lock"), b"").unwrap();
        std::fs::write(sessions.join("hgfedcba.lock"), b"").unwrap();
        let living = store.take_lock(&"22222222".parse().unwrap()).unwrap();
        std::fs::write(sessions.join("22222222.jsonl"), b"").unwrap();
        let (found, unreadable) = store.list().unwrap();
        assert_eq!(
            (found.len(), unreadable.len()),
            (0, 1),
            "one is being written"
        );
        drop(living);
        store.list().unwrap();
        assert_eq!(std::fs::read_dir(sessions).unwrap().count(), 0);
    }

    #[test]
    fn what_ran_on_a_phone_that_ended_with_its_process_is_swept() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::in_directory(dir.path()).unwrap();
        let (mut journal, lock) = store.create(header()).unwrap();
        journal.append(&journal::Entry::InProcess).unwrap();
        assert_eq!(store.list().unwrap().0.len(), 1, "it is recording");
        drop((journal, lock));
        assert_eq!(store.list().unwrap().0.len(), 1, "the phone is there");
        // Another process.
        let store = Store::in_directory(dir.path()).unwrap();
        assert!(store.list().unwrap().0.is_empty());

        let (mut journal, lock) = store.create(header()).unwrap();
        journal.append(&journal::Entry::InProcess).unwrap();
        let sha256 = String::new();
        journal
            .append(&journal::Entry::Pulled { size: 1, sha256 })
            .unwrap();
        drop((journal, lock));
        assert_eq!(store.list().unwrap().0.len(), 1, "its trace is here");
    }
}
