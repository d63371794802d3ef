//! The directory for the results of a recording: its default name, the checks before recording and
//! before fetching, and atomic publication of results. Decides how names from a device become file
//! names, and which names from a manifest stay within its directory.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead as _};
use std::path::{Component, Path, PathBuf};

use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;
use time::macros::format_description;

use super::manifest::{self, Manifest};
use crate::folder::{self, UNFINISHED_PREFIX};
use crate::patience;
use crate::session::unfinished::{ExistingFile, place};
use crate::session::{self, ForeignReason, Owner, SessionError, SessionId, Unclaimed};
use crate::units;
use crate::untrusted::windows;

/// Longest part of a name that came from outside, bytes of UTF-8. File systems end at 255.
const LONGEST: usize = 80;
/// End of the name of a staging directory whose results are complete and synced.
const READY: &str = ".ready";
/// Bytes of the SHA-256 at the end of a name that was cut.
const HASH_BYTES: usize = 4;

/// Returns `heaptap-<target>-<time>-<id>`, with the time as `20261120T074300Z`. The ID
/// distinguishes recordings that begin within the same second.
pub fn default_name(target: &str, at: OffsetDateTime, id: &SessionId) -> String {
    let format = format_description!("[year][month][day]T[hour][minute][second]Z");
    let at = at
        .to_offset(time::UtcOffset::UTC)
        .format(format)
        .expect("every date has these fields");
    format!("heaptap-{}-{at}-{id}", file_name(target))
}

/// Returns whether a file name stays within its directory: manifests from elsewhere can contain any
/// path.
pub fn is_below(file: &str) -> bool {
    let is_plain = |part: Component<'_>| match part {
        Component::Normal(name) => !cfg!(windows) || name.to_str().is_some_and(windows::is_plain),
        _ => false,
    };
    !file.is_empty() && Path::new(file).components().all(is_plain)
}

/// Makes `name` valid as part of a file name on every system: `: * / \ < > | ?`, quotes, control
/// characters and Windows device names become `_`. A long name is cut, and ends with a hash of the
/// whole name: names that begin alike stay different.
pub fn file_name(name: &str) -> String {
    let mut clean: String = name
        .chars()
        .map(|c| match c {
            ':' | '*' | '/' | '\\' | '<' | '>' | '|' | '?' | '"' => '_',
            c if c.is_control() || is_invisible(c) => '_',
            c => c,
        })
        .collect();
    if clean.len() > LONGEST {
        let hash = units::hex(&Sha256::digest(name)[..HASH_BYTES]);
        while clean.len() + 1 + hash.len() > LONGEST {
            clean.pop();
        }
        clean.push('-');
        clean.push_str(&hash);
    }
    // Windows drops blanks and dots at the end; leading dots hide a file elsewhere.
    while clean.ends_with([' ', '.']) {
        clean.pop();
    }
    if clean.starts_with('.') {
        clean.replace_range(..1, "_");
    }
    if windows::is_device(&clean) {
        clean.insert(0, '_');
    }
    if clean.is_empty() {
        clean.push('_');
    }
    clean
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// A directory that this run created or found empty.
#[derive(Debug)]
pub struct OutputFolder {
    path: PathBuf,
    made: bool,
    held: Option<File>,
}

impl OutputFolder {
    /// Prepares `path`, creating it if it is missing. A session claims it when it has a journal;
    /// until then another process can claim it first.
    ///
    /// # Errors
    /// Returns an error if the directory is not empty, belongs to another session, or cannot be
    /// created.
    pub fn prepare(path: &Path) -> Result<Self, SessionError> {
        let output = |source| SessionError::Output {
            path: path.to_owned(),
            source,
        };
        let absolute = std::path::absolute(path).map_err(output)?;
        if absolute.to_str().is_none() {
            // The journal and the manifest are text.
            let error = io::Error::new(io::ErrorKind::InvalidInput, "its path is not UTF-8");
            return Err(output(error));
        }
        session::clear_abandoned(&absolute).map_err(output)?;
        let made = match std::fs::read_dir(&absolute) {
            Ok(mut items) => {
                if items.next().is_some() {
                    let owner = session::owner_of(&absolute).map_err(output)?;
                    let owned = owner.map_or(Unclaimed::NotEmpty, Unclaimed::Owned);
                    return Err(owned.into_error(path.to_owned()));
                }
                false
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                folder::create(&absolute).map_err(output)?;
                true
            }
            Err(e) => return Err(output(e)),
        };
        Ok(OutputFolder {
            path: absolute,
            made,
            held: None,
        })
    }

    /// Prepares a directory for a command without a session, and holds it until this is dropped.
    ///
    /// # Errors
    /// As [`OutputFolder::prepare`].
    pub fn hold(path: &Path) -> Result<Self, SessionError> {
        let mut folder = OutputFolder::prepare(path)?;
        match session::hold(&folder.path) {
            Ok(held) => {
                folder.held = Some(held);
                Ok(folder)
            }
            Err(unclaimed) => {
                folder.discard();
                Err(unclaimed.into_error(path.to_owned()))
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
    pub fn stage(&self) -> Result<Staging, SessionError> {
        Staging::new(&self.path, UNFINISHED_PREFIX).map_err(|source| SessionError::Output {
            path: self.path.clone(),
            source,
        })
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

impl Drop for OutputFolder {
    fn drop(&mut self) {
        self.give_up();
    }
}

/// Ensures that `folder` belongs to the session before anything is fetched into it. Claims a
/// missing or empty directory. Returns what happens to results there: they are replaced if they are
/// this session's.
///
/// # Errors
/// Returns an error if it belongs to another session, contains unknown files, or cannot be written.
pub(crate) fn own(folder: &Path, id: &SessionId) -> Result<ExistingFile, SessionError> {
    let foreign = |path: &Path, reason| SessionError::OutputForeign {
        id: id.clone(),
        path: path.to_owned(),
        reason,
    };
    let belongs = |owner: &Owner| {
        let owner = owner.session().cloned();
        foreign(folder, ForeignReason::OwnedBy(owner))
    };
    let keep = |source| SessionError::Keep {
        id: id.clone(),
        path: folder.to_owned(),
        source,
    };
    let mine = Owner::Session(id.clone());
    let mut owner = session::owner_of(folder).map_err(keep)?;
    if owner == Some(Owner::Other) && session::take_over(folder, &mine).map_err(keep)? {
        // The session was killed while claiming the directory named in its journal.
        owner = Some(mine);
    }
    if let Some(other) = owner.as_ref().filter(|owner| owner.session() != Some(id)) {
        return Err(belongs(other));
    }
    if owner.is_some() && !folder.join(manifest::FILE_NAME).exists() {
        continue_publication(folder, id).map_err(|unpublished| unpublished.of_session(id))?;
    }
    if recorded_by(folder).as_ref() == Some(id) {
        // Only the session is still to be forgotten.
        return Ok(ExistingFile::IsReplaced);
    }
    if owner.is_none() {
        match session::claim(folder, &Owner::Session(id.clone())) {
            Ok(()) => {}
            Err(Unclaimed::Owned(owner)) => return Err(belongs(&owner)),
            Err(Unclaimed::NotEmpty) => {
                return Err(foreign(folder, ForeignReason::NotEmpty));
            }
            Err(Unclaimed::Io(error)) => return Err(keep(error)),
        }
    }
    let manifest = folder.join(manifest::FILE_NAME);
    match std::fs::symlink_metadata(&manifest) {
        Ok(_) => Err(foreign(&manifest, ForeignReason::NameTaken)),
        Err(_) => Ok(ExistingFile::Stays),
    }
}

/// Returns whether `folder` belongs to the session, without claiming it.
pub(crate) fn is_own(folder: &Path, id: &SessionId) -> bool {
    match session::owner_of(folder) {
        Ok(Some(owner)) => owner.session() == Some(id),
        Ok(None) => recorded_by(folder).as_ref() == Some(id),
        Err(_) => false,
    }
}

/// Returns the session of the manifest in `folder`.
fn recorded_by(folder: &Path) -> Option<SessionId> {
    let manifest = Manifest::read(folder).ok()?;
    manifest.session?.id.parse().ok()
}

/// Results in progress: written into an inner directory, and moved all at once when they are
/// complete. Dropping it earlier leaves nothing.
pub struct Staging {
    folder: PathBuf,
    parts: tempfile::TempDir,
}

impl Staging {
    /// Creates the inner directory, with a name that begins with `prefix`.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be written.
    pub fn new(folder: &Path, prefix: &str) -> io::Result<Staging> {
        Ok(Staging {
            folder: folder.to_owned(),
            parts: tempfile::Builder::new().prefix(prefix).tempdir_in(folder)?,
        })
    }

    /// Returns the inner directory.
    pub fn path(&self) -> &Path {
        self.parts.path()
    }

    /// Keeps the inner directory, and returns its path.
    pub fn keep(self) -> PathBuf {
        self.parts.keep()
    }

    /// Publishes the results so that they survive a power loss. Callers then remove the copy on the
    /// device. If the process is killed meanwhile, [`own`] continues.
    ///
    /// # Errors
    /// Returns the errors of [`Staging::publish`].
    pub(crate) fn publish_synced(self, existing: ExistingFile) -> Result<(), Unpublished> {
        let folder = self.folder.clone();
        let failed = |error| Unpublished::Io(folder.clone(), error);
        let names = names_to_move(self.path(), &folder, existing)?;
        let ready = self.seal().map_err(failed)?;
        move_all(&ready, &folder, names)?;
        folder::sync(&folder).map_err(failed)
    }

    /// Syncs the results and marks them as complete. They stay if the process is killed.
    fn seal(self) -> io::Result<PathBuf> {
        for item in std::fs::read_dir(self.path())? {
            // Windows syncs only what is open for writing.
            let file = std::fs::OpenOptions::new().write(true).open(item?.path());
            file?.sync_all()?;
        }
        let mut ready = self.path().as_os_str().to_owned();
        ready.push(READY);
        let ready = PathBuf::from(ready);
        patience::rename(self.path(), &ready)?;
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
        let names = names_to_move(self.path(), &self.folder, existing)?;
        move_all(self.path(), &self.folder, names)
    }
}

/// Continues a publication of the session that was killed. Results that are converted again could
/// differ from the published ones, for example because symbols were found since, and would not
/// replace them.
fn continue_publication(folder: &Path, id: &SessionId) -> Result<(), Unpublished> {
    let failed = |error| Unpublished::Io(folder.to_owned(), error);
    let prefix = session::part_prefix(id);
    for item in std::fs::read_dir(folder).map_err(failed)? {
        let item = item.map_err(failed)?;
        let name = item.file_name();
        let is_ready = |name: &str| name.starts_with(&prefix) && name.ends_with(READY);
        // A link in a directory from elsewhere is not followed.
        let is_folder = item.file_type().map_err(failed)?.is_dir();
        if is_folder && name.to_str().is_some_and(is_ready) {
            let names = names_to_move(&item.path(), folder, ExistingFile::Stays)?;
            move_all(&item.path(), folder, names)?;
        }
    }
    Ok(())
}

/// Returns the names of all files in `parts`, the manifest last, and what happens to files in
/// `folder` that have them.
fn names_to_move(
    parts: &Path,
    folder: &Path,
    existing: ExistingFile,
) -> Result<Vec<(OsString, ExistingFile)>, Unpublished> {
    let failed = |error| Unpublished::Io(parts.to_owned(), error);
    let mut names = Vec::new();
    for item in std::fs::read_dir(parts).map_err(failed)? {
        let name = item.map_err(failed)?.file_name();
        let goal = folder.join(&name);
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

/// Moves these files from `parts` to `folder`, then removes `parts`.
fn move_all(
    parts: &Path,
    folder: &Path,
    names: Vec<(OsString, ExistingFile)>,
) -> Result<(), Unpublished> {
    for (name, existing) in names {
        let (from, goal) = (parts.join(&name), folder.join(&name));
        let moved = match existing {
            // On Windows, this replaces a file that a program has open, too.
            ExistingFile::IsReplaced => patience::rename(&from, &goal),
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
    pub(crate) fn of_session(self, id: &SessionId) -> SessionError {
        match self {
            Unpublished::Taken(path) => SessionError::OutputForeign {
                id: id.clone(),
                path,
                reason: ForeignReason::NameTaken,
            },
            Unpublished::Io(path, source) => SessionError::Keep {
                id: id.clone(),
                path,
                source,
            },
        }
    }

    /// Converts to the failure of a command without a session.
    pub fn of_command(self) -> SessionError {
        match self {
            Unpublished::Taken(path) => SessionError::OutputNotEmpty {
                path: path.parent().unwrap_or(&path).to_owned(),
            },
            Unpublished::Io(path, source) => SessionError::Output { path, source },
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
    use crate::error::Classified as _;
    use time::macros::datetime;

    #[test]
    fn an_empty_marker_that_a_kill_left_is_taken_over() {
        let dir = tempfile::tempdir().unwrap();
        let (id, other) = (SessionId::random(), SessionId::random());
        std::fs::write(dir.path().join(crate::folder::MARKER), "").unwrap();
        assert!(
            OutputFolder::prepare(dir.path()).is_err(),
            "a new recording takes another"
        );
        assert!(matches!(own(dir.path(), &id), Ok(ExistingFile::Stays)));
        assert!(is_own(dir.path(), &id));
        assert!(own(dir.path(), &other).is_err());
    }

    #[test]
    fn the_default_name_is_safe_everywhere() {
        let at = datetime!(2026-11-20 08:43:00 +1);
        let id = "k3v9xq2m".parse().unwrap();
        assert_eq!(
            default_name("com.example.app:service", at, &id),
            "heaptap-com.example.app_service-20261120T074300Z-k3v9xq2m"
        );
        assert_eq!(file_name("../../etc/passwd"), "_._.._etc_passwd");
        assert_eq!(file_name("a*b?c<d>e|f\\g\"h\ni"), "a_b_c_d_e_f_g_h_i");
        assert_eq!(file_name("con.txt"), "_con.txt");
        assert_eq!(file_name("COM7"), "_COM7");
        assert_eq!(file_name("lpt².log"), "_lpt².log");
        assert_eq!(file_name("nul .x"), "_nul .x");
        assert_eq!(file_name("conin$"), "_conin$");
        assert_eq!(file_name("COM71"), "COM71");
        assert_eq!(file_name("com.example"), "com.example");
        assert_eq!(file_name("..."), "_");
        assert_eq!(file_name(""), "_");
        assert_eq!(file_name(&"x".repeat(500)).len(), LONGEST);
        assert!(file_name(&"\u{1f9e0}".repeat(500)).len() <= LONGEST);
    }

    #[test]
    fn names_that_are_cut_stay_different() {
        let long = "x".repeat(LONGEST);
        assert_eq!(file_name(&long), long, "it fits");
        let [one, other] = ["a", "b"].map(|end| file_name(&format!("{long}{end}")));
        assert_ne!(one, other);
        assert_eq!(one, file_name(&format!("{long}a")));
        assert_eq!(one.len(), LONGEST);
    }

    #[test]
    fn a_folder_with_something_in_it_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let sub = dir.path().join("a/b");
        let folder = OutputFolder::prepare(&sub).unwrap();
        assert!(sub.is_dir());
        folder.discard();
        assert!(!sub.exists());
        std::fs::create_dir_all(&sub).unwrap();
        OutputFolder::prepare(&sub).unwrap().discard();
        assert!(sub.exists(), "what was there stays");
        std::fs::write(sub.join("x"), b"").unwrap();
        assert!(matches!(
            OutputFolder::prepare(&sub),
            Err(SessionError::OutputNotEmpty { .. })
        ));
        std::fs::write(dir.path().join("file"), b"").unwrap();
        assert!(matches!(
            OutputFolder::prepare(&dir.path().join("file/x")),
            Err(SessionError::Output { .. })
        ));
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

    /// Performs all steps that a session does with its directory.
    fn record(path: &Path, id: &SessionId) -> Result<(), SessionError> {
        let folder = OutputFolder::prepare(path)?;
        if let Err(error) = session::claim_for(id, folder.path()) {
            folder.discard();
            return Err(error);
        }
        let existing = own(folder.path(), id)?;
        assert_eq!(existing, ExistingFile::Stays);
        let staging = Staging::new(folder.path(), &session::part_prefix(id)).unwrap();
        std::fs::write(staging.path().join("profile"), id.as_str()).unwrap();
        manifest_of(id).write(staging.path()).unwrap();
        staging
            .publish(ExistingFile::Stays)
            .map_err(|e| e.of_session(id))?;
        session::release(folder.path(), &Owner::Session(id.clone()));
        Ok(())
    }

    #[test]
    fn of_two_sessions_that_record_at_one_moment_no_result_is_lost_in_200_rounds() {
        let at = datetime!(2026-11-20 07:43 UTC);
        let dir = tempfile::tempdir().unwrap();
        for round in 0..200 {
            let named = round % 2 == 0;
            let ids = [SessionId::random(), SessionId::random()];
            let paths = ids.each_ref().map(|id| match named {
                true => dir.path().join(round.to_string()),
                false => dir.path().join(default_name("com.example.app", at, id)),
            });
            let start = std::sync::Barrier::new(2);
            let outcomes = std::thread::scope(|scope| {
                let runs = [0, 1].map(|n| {
                    let (path, id, start) = (&paths[n], &ids[n], &start);
                    scope.spawn(move || {
                        start.wait();
                        record(path, id)
                    })
                });
                runs.map(|run| run.join().unwrap())
            });
            let won = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
            assert_eq!(won, if named { 1 } else { 2 }, "{round}: {outcomes:?}");
            for (n, outcome) in outcomes.iter().enumerate() {
                if outcome.is_ok() {
                    let profile = std::fs::read_to_string(paths[n].join("profile"));
                    assert_eq!(profile.unwrap(), ids[n].as_str());
                    assert_eq!(recorded_by(&paths[n]).as_ref(), Some(&ids[n]));
                    assert_eq!(std::fs::read_dir(&paths[n]).unwrap().count(), 2);
                }
            }
        }
    }

    #[test]
    fn a_folder_becomes_the_sessions_own_only_where_it_holds_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let (id, other) = (SessionId::random(), SessionId::random());
        let folder = dir.path().join("out");
        // Killed before it was claimed, or removed meanwhile.
        assert_eq!(own(&folder, &id).unwrap(), ExistingFile::Stays);
        assert_eq!(own(&folder, &id).unwrap(), ExistingFile::Stays);
        assert!(is_own(&folder, &id) && !is_own(&folder, &other));
        let refused = own(&folder, &other).unwrap_err().to_string();
        assert!(refused.contains(id.as_str()), "{refused}");
        std::fs::write(folder.join("memory.jsonl"), "").unwrap();
        assert_eq!(own(&folder, &id).unwrap(), ExistingFile::Stays);
        // After the marker is gone, the manifest identifies the owner of the directory.
        manifest_of(&other).write(&folder).unwrap();
        assert!(own(&folder, &id).is_err(), "another's manifest in it");
        manifest_of(&id).write(&folder).unwrap();
        session::release(&folder, &Owner::Session(id.clone()));
        assert_eq!(own(&folder, &id).unwrap(), ExistingFile::IsReplaced);
        assert!(own(&folder, &other).is_err());
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
        let held = OutputFolder::hold(dir.path()).unwrap();
        // As after SIGKILL: the directory is not released.
        std::mem::forget(held);
        let claimed = OutputFolder::hold(dir.path()).unwrap_err();
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
        let claimed = OutputFolder::hold(other.path()).unwrap_err();
        let (text, help) = (claimed.to_string(), claimed.help().unwrap());
        assert!(
            text.ends_with(&format!("belongs to session {id}")),
            "{text}"
        );
        assert!(!help.contains("remove"), "{help}");
    }

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

    #[test]
    fn a_publication_that_was_killed_is_continued_by_its_session() {
        let dir = tempfile::tempdir().unwrap();
        let (id, other) = (SessionId::random(), SessionId::random());
        let folder = dir.path().join("out");
        assert_eq!(own(&folder, &id).unwrap(), ExistingFile::Stays);
        let staging = Staging::new(&folder, &session::part_prefix(&id)).unwrap();
        std::fs::write(staging.path().join("a"), "1").unwrap();
        std::fs::write(staging.path().join("b"), "2").unwrap();
        manifest_of(&id).write(staging.path()).unwrap();
        let ready = staging.seal().unwrap();
        std::fs::rename(ready.join("a"), folder.join("a")).unwrap();
        std::fs::write(folder.join("b"), "mine").unwrap();
        assert!(own(&folder, &other).is_err());
        let taken = own(&folder, &id).unwrap_err().to_string();
        assert!(taken.contains("another file has this name"), "{taken}");
        assert_eq!(std::fs::read(folder.join("b")).unwrap(), b"mine");
        std::fs::remove_file(folder.join("b")).unwrap();
        assert_eq!(own(&folder, &id).unwrap(), ExistingFile::IsReplaced);
        assert_eq!(std::fs::read(folder.join("b")).unwrap(), b"2");
        assert_eq!(recorded_by(&folder).as_ref(), Some(&id));
        assert!(!ready.exists());
    }

    #[test]
    fn files_of_a_folder_stay_in_it() {
        assert!(is_below("smaps/01-a.smaps.gz"));
        for outside in ["../a", "/etc/passwd", "a/../../b", "", "./a"] {
            assert!(!is_below(outside), "{outside}");
        }
    }
}
