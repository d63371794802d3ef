//! The directory for the results of a recording: the checks before recording and before fetching.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::manifest::{self, Manifest};
use super::publication::{Staging, Unpublished, continue_publication};
use heaptap_base::directory::{self, UNFINISHED_PREFIX};
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::unfinished::ExistingFile;
use heaptap_capture::session::{self, CaptureError, Owner, SessionId, Unclaimed};

/// A directory that this run created or found empty.
#[derive(Debug)]
pub struct OutputDirectory {
    path: PathBuf,
    made: bool,
    held: Option<File>,
}

impl OutputDirectory {
    /// Prepares `path`, creating it if it is missing. A session claims it when it has a journal;
    /// until then another process can claim it first.
    ///
    /// # Errors
    /// Returns an error if the directory is not empty, belongs to another session, or cannot be
    /// created.
    pub fn prepare(path: &Path) -> Result<Self, CaptureError> {
        let output = |source| CaptureError::output(path, source);
        let absolute = std::path::absolute(path).map_err(output)?;
        if absolute.to_str().is_none() {
            // The journal and the manifest are text.
            let error = io::Error::new(io::ErrorKind::InvalidInput, "its path is not UTF-8");
            return Err(output(error));
        }
        OutputDirectory::check(path)?;
        session::clear_abandoned(&absolute).map_err(output)?;
        let made = match std::fs::read_dir(&absolute) {
            Ok(mut items) => {
                if items.next().is_some() {
                    let owner = session::owner_of(&absolute).map_err(output)?;
                    let owned = owner.map_or(Unclaimed::NotEmpty, Unclaimed::Owned);
                    return Err(owned.into_error(path));
                }
                false
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                directory::create(&absolute).map_err(output)?;
                true
            }
            Err(e) => return Err(output(e)),
        };
        Ok(OutputDirectory {
            path: absolute,
            made,
            held: None,
        })
    }

    /// Refuses a file, for commands that check it before they look for a device.
    ///
    /// # Errors
    /// Returns an error if `path` is not that of a directory, or free.
    pub fn check(path: &Path) -> Result<(), CaptureError> {
        match path.metadata() {
            Ok(found) if !found.is_dir() => {
                let message = format!("{} is a file, not a directory", path.display());
                let failure = Failure::new(ErrorClass::Usage, "output-is-file", message);
                Err(failure.with_help("name a directory").into())
            }
            _ => Ok(()),
        }
    }

    /// Prepares a directory for a command without a session, and holds it until this is dropped.
    ///
    /// # Errors
    /// As [`OutputDirectory::prepare`].
    pub fn hold(path: &Path) -> Result<Self, CaptureError> {
        let mut directory = OutputDirectory::prepare(path)?;
        match session::hold(&directory.path) {
            Ok(held) => {
                directory.held = Some(held);
                Ok(directory)
            }
            Err(unclaimed) => {
                directory.discard();
                Err(unclaimed.into_error(path))
            }
        }
    }

    /// Returns the absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a staging directory for the results.
    ///
    /// # Errors
    /// Returns an error if it cannot be written.
    pub fn stage(&self) -> Result<Staging, CaptureError> {
        Staging::new(&self.path, UNFINISHED_PREFIX)
            .map_err(|source| CaptureError::output(&self.path, source))
    }

    /// Publishes results, and releases the directory. If the process is killed meanwhile, the next
    /// one removes what was published; the inputs are still there then.
    ///
    /// # Errors
    /// Returns an error if another file has a name, or the directory cannot be written.
    pub fn publish(mut self, staging: Staging) -> Result<(), CaptureError> {
        let output = |source| CaptureError::output(&self.path, source);
        if let Some(held) = &self.held {
            let names = staging.names().map_err(output)?;
            session::note_published(held, names.iter().map(String::as_str)).map_err(output)?;
        }
        let published = staging.publish(ExistingFile::Stays);
        // What follows, such as output to a pager, can take any time.
        self.give_up();
        published.map_err(Unpublished::of_command)
    }

    /// Removes the directory if this run created it and it is empty.
    pub fn discard(mut self) {
        self.give_up();
        if self.made {
            // If it is not empty or no longer exists, there is nothing to do.
            let _ = std::fs::remove_dir(&self.path);
        }
    }

    fn give_up(&mut self) {
        if let Some(held) = self.held.take() {
            // Windows does not remove open files.
            let _held = (!cfg!(windows)).then_some(held);
            session::release(&self.path, &Owner::Other);
        }
    }
}

impl Drop for OutputDirectory {
    fn drop(&mut self) {
        self.give_up();
    }
}

/// Ensures that `directory` belongs to the session before anything is fetched into it. Claims a
/// missing or empty directory. Returns what happens to results there: they are replaced if they are
/// this session's.
///
/// # Errors
/// Returns an error if it belongs to another session, contains unknown files, or cannot be written.
pub fn own(directory: &Path, id: &SessionId) -> Result<ExistingFile, CaptureError> {
    let belongs = |owner: &Owner| CaptureError::output_of_other(id, directory, owner.session());
    let keep = |source| CaptureError::keep(id, directory, source);
    let mine = Owner::Session(id.clone());
    let mut owner = session::owner_of(directory).map_err(keep)?;
    if owner == Some(Owner::Other) && session::take_over(directory, &mine).map_err(keep)? {
        // The session was killed while claiming the directory named in its journal.
        owner = Some(mine);
    }
    if let Some(other) = owner.as_ref().filter(|owner| owner.session() != Some(id)) {
        return Err(belongs(other));
    }
    if owner.is_some() && !directory.join(manifest::FILE_NAME).exists() {
        continue_publication(directory, id).map_err(|unpublished| unpublished.of_session(id))?;
    }
    if is_recorded(directory, id) {
        // Only the session is still to be forgotten.
        return Ok(ExistingFile::IsReplaced);
    }
    if owner.is_none() {
        match session::claim(directory, &Owner::Session(id.clone())) {
            Ok(()) => {}
            Err(Unclaimed::Owned(owner)) => return Err(belongs(&owner)),
            Err(Unclaimed::NotEmpty) => {
                return Err(CaptureError::output_has_others(id, directory));
            }
            Err(Unclaimed::Io(error)) => return Err(keep(error)),
        }
    }
    let manifest = directory.join(manifest::FILE_NAME);
    match std::fs::symlink_metadata(&manifest) {
        Ok(_) => Err(CaptureError::name_taken(id, &manifest)),
        Err(_) => Ok(ExistingFile::Stays),
    }
}

/// Returns whether `directory` belongs to the session, without claiming it.
pub fn is_own(directory: &Path, id: &SessionId) -> bool {
    match session::owner_of(directory) {
        Ok(Some(owner)) => owner.session() == Some(id),
        Ok(None) => recorded_by(directory).as_ref() == Some(id),
        Err(_) => false,
    }
}

/// Returns whether `directory` contains the complete results of the session.
pub fn is_recorded(directory: &Path, id: &SessionId) -> bool {
    recorded_by(directory).as_ref() == Some(id)
}

/// Returns the session of the manifest in `directory`.
fn recorded_by(directory: &Path) -> Option<SessionId> {
    let manifest = Manifest::read(directory).ok()?;
    manifest.session?.id.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_base::error::Classified as _;

    #[test]
    fn an_empty_marker_that_a_kill_left_is_taken_over() {
        let dir = tempfile::tempdir().unwrap();
        let (id, other) = (SessionId::random(), SessionId::random());
        std::fs::write(dir.path().join(heaptap_base::directory::MARKER), "").unwrap();
        assert!(
            OutputDirectory::prepare(dir.path()).is_err(),
            "a new recording takes another"
        );
        assert!(matches!(own(dir.path(), &id), Ok(ExistingFile::Stays)));
        assert!(is_own(dir.path(), &id));
        assert!(own(dir.path(), &other).is_err());
    }

    #[test]
    fn published_results_are_alone_in_their_directory() {
        let dir = tempfile::tempdir().unwrap();
        let directory = OutputDirectory::hold(dir.path()).unwrap();
        let staging = directory.stage().unwrap();
        std::fs::write(staging.path().join("a.pb.gz"), "whole").unwrap();
        directory.publish(staging).unwrap();
        let names = std::fs::read_dir(dir.path()).unwrap();
        let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["a.pb.gz"]);
    }

    #[test]
    fn a_directory_with_something_in_it_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let sub = dir.path().join("a/b");
        let directory = OutputDirectory::prepare(&sub).unwrap();
        assert!(sub.is_dir());
        directory.discard();
        assert!(!sub.exists());
        std::fs::create_dir_all(&sub).unwrap();
        OutputDirectory::prepare(&sub).unwrap().discard();
        assert!(sub.exists(), "what was there stays");
        std::fs::write(sub.join("x"), b"").unwrap();
        let kind = |path: &Path| OutputDirectory::prepare(path).unwrap_err().kind();
        assert_eq!(kind(&sub), "output-not-empty");
        std::fs::write(dir.path().join("file"), b"").unwrap();
        assert_eq!(kind(&dir.path().join("file/x")), "host-write");
    }

    fn manifest_of(id: &SessionId) -> Manifest {
        Manifest {
            session: Some(manifest::Session {
                id: id.to_string(),
                remote_path: String::new(),
                boot_id: None,
                snapshots_by: None,
            }),
            ..Manifest::default()
        }
    }

    #[test]
    fn a_directory_becomes_the_sessions_own_only_where_it_holds_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let (id, other) = (SessionId::random(), SessionId::random());
        let directory = dir.path().join("out");
        // Killed before it was claimed, or removed meanwhile.
        assert_eq!(own(&directory, &id).unwrap(), ExistingFile::Stays);
        assert_eq!(own(&directory, &id).unwrap(), ExistingFile::Stays);
        assert!(is_own(&directory, &id) && !is_own(&directory, &other));
        let refused = own(&directory, &other).unwrap_err().to_string();
        assert!(refused.contains(id.as_str()), "{refused}");
        std::fs::write(directory.join("memory.jsonl"), "").unwrap();
        assert_eq!(own(&directory, &id).unwrap(), ExistingFile::Stays);
        // After the marker is gone, the manifest identifies the owner of the directory.
        manifest_of(&other).write(&directory).unwrap();
        assert!(own(&directory, &id).is_err(), "another's manifest in it");
        manifest_of(&id).write(&directory).unwrap();
        session::release(&directory, &Owner::Session(id.clone()));
        assert_eq!(own(&directory, &id).unwrap(), ExistingFile::IsReplaced);
        assert!(own(&directory, &other).is_err());
        let foreign = dir.path().join("foreign");
        std::fs::create_dir(&foreign).unwrap();
        std::fs::write(foreign.join("raw-trace"), "x").unwrap();
        assert!(own(&foreign, &id).is_err());
        assert!(!is_own(&foreign, &id));
        assert_eq!(std::fs::read_dir(&foreign).unwrap().count(), 1);
    }

    #[test]
    fn a_marker_that_a_killed_conversion_left_says_how_to_go_on() {
        let dir = tempfile::tempdir().unwrap();
        let held = OutputDirectory::hold(dir.path()).unwrap();
        // As after SIGKILL: the directory is not released.
        std::mem::forget(held);
        let claimed = OutputDirectory::hold(dir.path()).unwrap_err();
        let foreign = own(dir.path(), &SessionId::random()).unwrap_err();
        for error in [claimed, foreign] {
            let (text, help) = (error.to_string(), error.help().unwrap());
            assert!(
                text.contains("another heaptap process, running or killed"),
                "{text}"
            );
            let marker = "or remove its .heaptap-session if no heaptap process uses it";
            assert!(help.ends_with(marker), "{help}");
        }
        // For a session, it is known whether it is running.
        let other = tempfile::tempdir().unwrap();
        let id = SessionId::random();
        session::claim(other.path(), &Owner::Session(id.clone())).unwrap();
        let claimed = OutputDirectory::hold(other.path()).unwrap_err();
        let (text, help) = (claimed.to_string(), claimed.help().unwrap());
        assert!(
            text.ends_with(&format!("belongs to session {id}")),
            "{text}"
        );
        assert!(!help.contains("remove"), "{help}");
    }

    #[test]
    fn a_publication_that_was_killed_is_continued_by_its_session() {
        let dir = tempfile::tempdir().unwrap();
        let (id, other) = (SessionId::random(), SessionId::random());
        let directory = dir.path().join("out");
        assert_eq!(own(&directory, &id).unwrap(), ExistingFile::Stays);
        let staging = Staging::new(&directory, &session::part_prefix(&id)).unwrap();
        std::fs::write(staging.path().join("a"), "1").unwrap();
        std::fs::write(staging.path().join("b"), "2").unwrap();
        manifest_of(&id).write(staging.path()).unwrap();
        let ready = staging.seal().unwrap();
        std::fs::rename(ready.join("a"), directory.join("a")).unwrap();
        std::fs::write(directory.join("b"), "mine").unwrap();
        assert!(own(&directory, &other).is_err());
        let taken = own(&directory, &id).unwrap_err().to_string();
        assert!(taken.contains("another file has this name"), "{taken}");
        assert_eq!(std::fs::read(directory.join("b")).unwrap(), b"mine");
        std::fs::remove_file(directory.join("b")).unwrap();
        assert_eq!(own(&directory, &id).unwrap(), ExistingFile::IsReplaced);
        assert_eq!(std::fs::read(directory.join("b")).unwrap(), b"2");
        assert_eq!(recorded_by(&directory).as_ref(), Some(&id));
        assert!(!ready.exists());
    }
}
