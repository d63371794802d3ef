//! Ownership of an output directory: a marker file in it names the session. The marker is made
//! with `create_new`, so if several processes claim a directory at the same time, exactly one
//! succeeds. Owns the marker. It is created after the session's journal and removed before it, so a
//! killed process never leaves a marker without a session to collect.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::time::Duration;

use super::id::SessionId;
use crate::error::CaptureError;
use heaptap_base::bytes::open_regular;
use heaptap_base::directory::{
    MARKER, MAX_MARKER_BYTES, OWN_PREFIX, RAW_TRACE, create as create_directory, is_unfinished,
    sync,
};

/// Maximum number of reads of a marker that is still empty.
const LOOKS: u32 = 5;
/// Line of a marker whose owner is not a session.
const NO_SESSION: &str = "no session\n";
/// Maximum size of a marker with the names of results.
const MAX_LIST_BYTES: u64 = 1 << 20;
/// Pause between two reads.
const LOOK: Duration = Duration::from_millis(10);
/// Maximum number of times to recreate a directory that another process removes meanwhile.
const ATTEMPTS: u32 = 10;

/// Process that fills a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// A session, of this host or another.
    Session(SessionId),
    /// A process without a session, such as a conversion.
    Other,
}

impl Owner {
    pub fn session(&self) -> Option<&SessionId> {
        match self {
            Owner::Session(id) => Some(id),
            Owner::Other => None,
        }
    }
}

/// Reason why a directory could not be claimed.
#[derive(Debug)]
pub enum Unclaimed {
    /// It belongs to another owner.
    Owned(Owner),
    /// It contains files, and no session claimed it.
    NotEmpty,
    /// This host cannot write there.
    Io(io::Error),
}

impl Unclaimed {
    /// Converts this into the error of a command that needs the directory `path` for new results.
    pub fn into_error(self, path: &Path) -> CaptureError {
        match self {
            Unclaimed::Owned(owner) => CaptureError::output_claimed(path, owner.session()),
            Unclaimed::NotEmpty => CaptureError::output_not_empty(path),
            Unclaimed::Io(source) => CaptureError::output(path, source),
        }
    }
}

impl From<io::Error> for Unclaimed {
    fn from(error: io::Error) -> Self {
        Unclaimed::Io(error)
    }
}

/// Returns the owner of `directory`, or `None` if it does not have a marker or does not exist.
///
/// # Errors
/// Returns an error if the marker cannot be read, or is not a regular file.
pub fn owner_of(directory: &Path) -> io::Result<Option<Owner>> {
    let mut text = String::new();
    for look in 1..=LOOKS {
        // The directory might come from elsewhere, and opening a pipe in it would block.
        let file = match open_regular(&directory.join(MARKER)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        text.clear();
        match file.take(MAX_MARKER_BYTES).read_to_string(&mut text) {
            Ok(_) if text.is_empty() => {}
            // A marker of another tool.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => break,
            // On Windows a file that another process has locked cannot be read: see [`hold`].
            Err(error) if is_locked(&error) => break,
            Err(error) if look == LOOKS => return Err(error),
            Err(_) => {}
            Ok(_) => break,
        }
        // Its owner has not written it yet.
        std::thread::sleep(LOOK);
    }
    Ok(Some(match text.trim_end().parse() {
        Ok(id) => Owner::Session(id),
        Err(_) => Owner::Other,
    }))
}

/// `ERROR_LOCK_VIOLATION` of Windows.
fn is_locked(error: &io::Error) -> bool {
    cfg!(windows) && error.raw_os_error() == Some(33)
}

/// Claims `directory` for `owner`. The directory is created if it does not exist, and must be empty.
///
/// # Errors
/// Returns an error if it belongs to another owner, is not empty, or cannot be written.
pub fn claim(directory: &Path, owner: &Owner) -> Result<(), Unclaimed> {
    mark(directory, owner).map(drop)
}

/// Claims `directory` for a process without a session, as long as the file stays open: a directory whose
/// process was killed can be claimed by another one.
///
/// # Errors
/// As [`claim`].
pub fn hold(directory: &Path) -> Result<File, Unclaimed> {
    mark(directory, &Owner::Other)
}

/// Notes in a marker of [`hold`] the files that its process is about to publish: if it is killed
/// meanwhile, [`clear_abandoned`] removes them.
///
/// # Errors
/// Returns an error if the marker cannot be written.
pub fn note_published<'a>(mut held: &File, names: impl Iterator<Item = &'a str>) -> io::Result<()> {
    let lines: String = names.map(|name| format!("{name}\n")).collect();
    held.write_all(lines.as_bytes())?;
    held.sync_all()
}

/// Empties `directory` if it contains nothing but what a process without a session left that was killed:
/// unfinished files, some of its results, and the marker.
///
/// # Errors
/// Returns an error if these cannot be removed.
pub fn clear_abandoned(directory: &Path) -> io::Result<()> {
    let marker = directory.join(MARKER);
    let Ok(mut file) = open_regular(&marker) else {
        return Ok(());
    };
    let mut text = String::new();
    let read = (&mut file).take(MAX_LIST_BYTES).read_to_string(&mut text);
    let is_other = read.is_ok() && text.starts_with(NO_SESSION);
    let published: HashSet<&str> = text.lines().skip(1).collect();
    if !is_other || fs4::FileExt::try_lock(&file).is_err() || !is_still(&file, &marker) {
        return Ok(());
    }
    let is_there = |name: &&str| directory.join(name).exists();
    if !published.is_empty() && published.iter().all(is_there) {
        // It was killed after the last one: they are complete.
        return remove_marker(file, &marker);
    }
    let mut unfinished = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        // A killed recording of this host has its trace there.
        let is_published = || name.to_str().is_some_and(|name| published.contains(name));
        if is_unfinished(&name) && !entry.path().join(RAW_TRACE).exists()
            || entry.file_type()?.is_file() && is_published()
        {
            unfinished.push(entry);
        } else if name != MARKER {
            return Ok(());
        }
    }
    unfinished.iter().try_for_each(remove)?;
    remove_marker(file, &marker)
}

fn remove_marker(file: File, marker: &Path) -> io::Result<()> {
    // Windows does not remove open files.
    let _locked = (!cfg!(windows)).then_some(file);
    fs::remove_file(marker)
}

/// Returns whether a path still names a file that was opened there: another process can have cleared
/// and claimed the directory meanwhile.
#[cfg(unix)]
pub fn is_still(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let there = fs::symlink_metadata(path).map(identity);
    there.is_ok_and(|there| file.metadata().is_ok_and(|own| identity(own) == there))
}

/// Only whether the name is there: files have no identity that the standard library shows.
#[cfg(not(unix))]
pub fn is_still(_file: &File, path: &Path) -> bool {
    path.exists()
}

fn mark(directory: &Path, owner: &Owner) -> Result<File, Unclaimed> {
    let marker = directory.join(MARKER);
    let mut file = create(directory, &marker)?;
    match name(&mut file, owner) {
        // The process that took it over from a killed process is the owner.
        Ok(false) => {
            return Err(Unclaimed::Owned(
                owner_of(directory)?.unwrap_or(Owner::Other),
            ));
        }
        Ok(true) => {}
        Err(error) => {
            // The write error is reported instead.
            let _ = fs::remove_file(&marker);
            return Err(error.into());
        }
    }
    match is_alone(directory) {
        Ok(true) => {
            // An existing directory might be new too, and what it will contain must survive a power
            // loss. Not every parent can be opened.
            let _ = directory.parent().map(sync);
            Ok(file)
        }
        Ok(false) => {
            fs::remove_file(&marker)?;
            Err(Unclaimed::NotEmpty)
        }
        Err(error) => {
            let _ = fs::remove_file(&marker);
            Err(error.into())
        }
    }
}

/// Claims a directory that contains only an empty marker, whose creator was killed before it wrote
/// into it. Returns whether the directory was in that state.
///
/// # Errors
/// Returns an error if the directory cannot be read or the marker cannot be written.
pub fn take_over(directory: &Path, owner: &Owner) -> io::Result<bool> {
    let marker = directory.join(MARKER);
    let metadata = fs::symlink_metadata(&marker)?;
    if !metadata.is_file() || metadata.len() > 0 || !is_alone(directory)? {
        return Ok(false);
    }
    name(&mut OpenOptions::new().write(true).open(&marker)?, owner)
}

fn create(directory: &Path, marker: &Path) -> Result<File, Unclaimed> {
    let mut attempt = 1;
    loop {
        create_directory(directory)?;
        match OpenOptions::new().write(true).create_new(true).open(marker) {
            Ok(file) => return Ok(file),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                match owner_of(directory)? {
                    Some(owner) => return Err(Unclaimed::Owned(owner)),
                    // It has been released meanwhile.
                    None if attempt < ATTEMPTS => {}
                    None => return Err(error.into()),
                }
            }
            // Another process that failed removed the directory it had created.
            Err(error) if error.kind() == io::ErrorKind::NotFound && attempt < ATTEMPTS => {}
            Err(error) => return Err(error.into()),
        }
        attempt += 1;
    }
}

/// Writes the owner into a marker. Returns whether it was empty; otherwise it names another owner.
fn name(file: &mut File, owner: &Owner) -> io::Result<bool> {
    // Some file systems do not support locks. Then the time between the two calls is unguarded.
    let _ = fs4::FileExt::lock(&*file);
    if file.metadata()?.len() > 0 {
        return Ok(false);
    }
    let line = match owner {
        Owner::Session(id) => format!("{id}\n"),
        Owner::Other => NO_SESSION.to_owned(),
    };
    file.write_all(line.as_bytes())?;
    file.sync_all()?;
    Ok(true)
}

/// Returns whether the marker is the only file in `directory`.
fn is_alone(directory: &Path) -> io::Result<bool> {
    for item in fs::read_dir(directory)? {
        if item?.file_name() != MARKER {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Releases `directory` if it belongs to `owner`. If that fails, the marker stays, and the next
/// recording just needs another directory name.
pub fn release(directory: &Path, owner: &Owner) {
    if claim_if_unwritten(directory, owner) {
        let _ = fs::remove_file(directory.join(MARKER));
    }
}

/// Returns whether `directory` belongs to `owner`. Writes a marker that is still empty: the process of
/// `owner` can have been killed before it did. Another one that has just created it writes soon.
pub fn claim_if_unwritten(directory: &Path, owner: &Owner) -> bool {
    match owner_of(directory) {
        Ok(Some(found)) if found == *owner => true,
        Ok(Some(Owner::Other)) => take_over(directory, owner).unwrap_or(false),
        _ => false,
    }
}

/// Returns the prefix of a session's unfinished files.
pub fn part_prefix(id: &SessionId) -> String {
    format!("{OWN_PREFIX}{id}-")
}

/// Removes unfinished files and directories of a killed process of the session in
/// `directory`. Those of other sessions and commands stay.
///
/// # Errors
/// Returns an error if one cannot be removed.
pub fn remove_parts(directory: &Path, id: &SessionId) -> io::Result<()> {
    let prefix = part_prefix(id);
    for item in fs::read_dir(directory)? {
        let item = item?;
        let name = item.file_name();
        if name.to_str().is_some_and(|n| n.starts_with(&prefix)) {
            remove(&item)?;
        }
    }
    Ok(())
}

fn remove(item: &fs::DirEntry) -> io::Result<()> {
    match item.file_type()?.is_dir() {
        true => fs::remove_dir_all(item.path()),
        false => fs::remove_file(item.path()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_base::directory::UNFINISHED_PREFIX;
    use std::sync::Barrier;

    fn session() -> Owner {
        Owner::Session(SessionId::random())
    }

    #[test]
    fn of_two_claims_at_one_moment_exactly_one_holds_and_the_other_names_it_in_200_rounds() {
        let dir = tempfile::tempdir().unwrap();
        for round in 0..200 {
            let directory = dir.path().join(format!("a/{round}"));
            let start = Barrier::new(2);
            let owners = [session(), session()];
            let claim_once = |owner: &Owner| {
                start.wait();
                claim(&directory, owner)
            };
            let outcomes = std::thread::scope(|scope| {
                let claims = owners.each_ref().map(|o| scope.spawn(|| claim_once(o)));
                claims.map(|claim| claim.join().unwrap())
            });
            let winner = match &outcomes {
                [Ok(()), Err(Unclaimed::Owned(owner))] => {
                    assert_eq!(owner, &owners[0], "{round}");
                    &owners[0]
                }
                [Err(Unclaimed::Owned(owner)), Ok(())] => {
                    assert_eq!(owner, &owners[1], "{round}");
                    &owners[1]
                }
                other => panic!("round {round}: {other:?}"),
            };
            assert_eq!(owner_of(&directory).unwrap().as_ref(), Some(winner));
        }
    }

    #[test]
    fn an_empty_marker_is_taken_over_by_exactly_one_in_200_rounds() {
        let dir = tempfile::tempdir().unwrap();
        for round in 0..200 {
            let directory = dir.path().join(round.to_string());
            fs::create_dir(&directory).unwrap();
            fs::write(directory.join(MARKER), "").unwrap();
            let start = Barrier::new(2);
            let owners = [session(), session()];
            let take = |owner: &Owner| {
                start.wait();
                take_over(&directory, owner).unwrap()
            };
            let taken = std::thread::scope(|scope| {
                let takes = owners.each_ref().map(|owner| scope.spawn(|| take(owner)));
                takes.map(|take| take.join().unwrap())
            });
            let owner = match taken {
                [true, false] => &owners[0],
                [false, true] => &owners[1],
                other => panic!("round {round}: {other:?}"),
            };
            assert_eq!(
                owner_of(&directory).unwrap().as_ref(),
                Some(owner),
                "{round}"
            );
        }
        // Neither a marker with content nor a directory with files.
        let directory = dir.path().join("0");
        assert!(!take_over(&directory, &session()).unwrap());
        fs::write(directory.join(MARKER), "").unwrap();
        fs::write(directory.join("notes"), "mine").unwrap();
        assert!(!take_over(&directory, &session()).unwrap());
    }

    #[test]
    fn a_directory_is_given_up_by_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let directory = dir.path().join("out");
        assert_eq!(owner_of(&directory).unwrap(), None);
        let (owner, other) = (session(), session());
        claim(&directory, &owner).unwrap();
        release(&directory, &other);
        release(&directory, &Owner::Other);
        assert_eq!(owner_of(&directory).unwrap(), Some(owner.clone()));
        assert!(
            matches!(claim(&directory, &other), Err(Unclaimed::Owned(found)) if found == owner)
        );
        release(&directory, &owner);
        claim(&directory, &other).unwrap();
    }

    #[test]
    fn a_directory_with_a_file_is_not_claimed_and_keeps_no_marker() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("notes"), "mine").unwrap();
        assert!(matches!(
            claim(dir.path(), &session()),
            Err(Unclaimed::NotEmpty)
        ));
        assert_eq!(owner_of(dir.path()).unwrap(), None);
    }

    #[cfg(unix)]
    #[test]
    fn a_marker_that_is_a_pipe_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let marker = dir.path().join(MARKER);
        let made = std::process::Command::new("mkfifo").arg(&marker).status();
        assert!(made.expect("there is mkfifo").success());
        let error = owner_of(dir.path()).unwrap_err();
        assert_eq!(error.to_string(), "not a regular file");
        let claimed = claim(dir.path(), &session());
        assert!(matches!(claimed, Err(Unclaimed::Io(_))), "{claimed:?}");
    }

    #[test]
    fn a_marker_that_names_no_session_still_claims_the_directory() {
        for text in ["", "no session\n", "\u{1b}[31m", &"x".repeat(1000)] {
            let dir = tempfile::tempdir().unwrap();
            fs::write(dir.path().join(MARKER), text).unwrap();
            assert_eq!(owner_of(dir.path()).unwrap(), Some(Owner::Other));
            let claimed = claim(dir.path(), &session());
            assert!(matches!(claimed, Err(Unclaimed::Owned(Owner::Other))));
        }
    }

    #[test]
    fn a_marker_that_was_never_written_is_released() {
        let dir = tempfile::tempdir().unwrap();
        let marker = dir.path().join(MARKER);
        fs::write(&marker, "").unwrap();
        release(dir.path(), &session());
        assert!(!marker.exists());
        fs::write(&marker, NO_SESSION).unwrap();
        release(dir.path(), &session());
        assert!(marker.exists());
    }

    #[test]
    fn a_directory_of_a_killed_process_without_a_session_is_free_again() {
        let dir = tempfile::tempdir().unwrap();
        let directory = dir.path().join("out");
        let part = directory.join(format!("{UNFINISHED_PREFIX}x"));
        let held = hold(&directory).unwrap();
        fs::create_dir(&part).unwrap();
        fs::write(part.join("profile"), "half").unwrap();
        clear_abandoned(&directory).unwrap();
        assert_eq!(owner_of(&directory).unwrap(), Some(Owner::Other));
        assert!(part.exists());
        // As after kill -9.
        drop(held);
        fs::write(directory.join("mine"), "").unwrap();
        clear_abandoned(&directory).unwrap();
        assert!(part.exists());
        fs::remove_file(directory.join("mine")).unwrap();
        fs::write(part.join(RAW_TRACE), "recorded").unwrap();
        clear_abandoned(&directory).unwrap();
        assert!(part.join(RAW_TRACE).exists());
        fs::remove_file(part.join(RAW_TRACE)).unwrap();
        clear_abandoned(&directory).unwrap();
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
        // Killed while it published its results.
        let held = hold(&directory).unwrap();
        note_published(&held, ["a.pb.gz", "manifest.json"].into_iter()).unwrap();
        drop(held);
        for name in ["a.pb.gz", "mine"] {
            fs::write(directory.join(name), "").unwrap();
        }
        clear_abandoned(&directory).unwrap();
        assert!(directory.join("a.pb.gz").exists());
        fs::remove_file(directory.join("mine")).unwrap();
        clear_abandoned(&directory).unwrap();
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
        // Killed after it had published all.
        let held = hold(&directory).unwrap();
        note_published(&held, ["a.pb.gz"].into_iter()).unwrap();
        drop(held);
        fs::write(directory.join("a.pb.gz"), "whole").unwrap();
        clear_abandoned(&directory).unwrap();
        assert!(directory.join("a.pb.gz").exists() && !directory.join(MARKER).exists());
        fs::remove_file(directory.join("a.pb.gz")).unwrap();
        // A session does not end with its process.
        let owner = session();
        claim(&directory, &owner).unwrap();
        clear_abandoned(&directory).unwrap();
        assert_eq!(owner_of(&directory).unwrap(), Some(owner));
    }
}
