//! Walk through a directory tree that finds files with symbols and their builds. Defines the limits
//! of the walk and the parts of an earlier walk that are still valid. Several threads share the
//! directories of a level, then the files in them.
//!
//! If the time of a directory has not changed, it contains the same names, and only size and time
//! of its files are read. A file with unchanged size and time is not opened. Neither is trusted if
//! it was changed within two seconds before the walk: clocks of file systems can be that coarse,
//! and another change might not be visible.

use super::record::{Below, Directories, Directory, File};
use crate::symbolize::file::{self, Bytes, FileError};
use crate::symbolize::find::content::{Content, Symbols};
use crate::symbolize::find::names::is_tar;
use crate::symbolize::find::reject_reason::RejectReason;
use crate::symbolize::find::source::Stamp;
use crate::symbolize::find::{archive, regular};
use heaptap_base::error::catch_panic;
use heaptap_base::parallel;
use std::collections::{HashMap, HashSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;

/// Maximum depth of directories below a root.
const MAX_DEPTH: usize = 64;
/// Maximum number of files of a tree; the walk ends there.
pub(super) const MAX_FILES: usize = if cfg!(test) { 2_000 } else { 1_000_000 };
/// Age below which another change might not be visible.
const YOUNG_NS: i64 = 2_000_000_000;
/// Minimum size of a file: smaller ones are neither ELF nor ZIP nor Breakpad.
const SMALLEST: u64 = 22;
/// Directories with very many files but no libraries.
const SKIPPED: [&str; 5] = [".git", ".hg", ".repo", ".svn", "node_modules"];
/// Virtual file systems of the kernel.
const NEVER: [&str; 3] = ["/dev", "/proc", "/sys"];
/// Memory for files of users, walked although it is below `/dev`.
const SHARED_MEMORY: &str = "/dev/shm";

/// Result of a walk.
#[derive(Debug, Default)]
pub(super) struct Walked {
    pub directories: Directories,
    /// Number of files seen.
    pub files: usize,
    /// True if the walk ended early.
    pub is_cut: bool,
    /// True if the result differs from the previous walk.
    pub is_changed: bool,
    /// Unreadable roots, with the reasons.
    pub lost: Vec<(PathBuf, RejectReason)>,
}

/// Function that examines the file at a path; the flag allows archives.
type Look = fn(&Path, bool) -> Content;

/// Walks the trees below `roots`, given the result of an earlier walk.
pub(super) fn walk(roots: &[PathBuf], earlier: Directories) -> Walked {
    walk_with(roots, earlier, content_of)
}

fn walk_with(roots: &[PathBuf], earlier: Directories, look: Look) -> Walked {
    let mut walked = Walked::default();
    let mut level = Vec::new();
    for root in roots {
        match root.canonicalize() {
            Ok(target) if is_of_kernel(&target) => {
                walked.lost.push((root.clone(), RejectReason::NotAFile));
            }
            Ok(target) => level.push(Walking {
                path: root.clone(),
                target,
            }),
            Err(error) => {
                let why_not = no_place(regular::why_not(&error));
                walked.lost.push((root.clone(), why_not));
            }
        }
    }
    let mut walk = Walk {
        earlier,
        targets: level.iter().map(|root| root.target.clone()).collect(),
        seen: HashSet::new(),
        now_ns: Stamp::time_ns(SystemTime::now()),
        look,
    };
    for depth in 0..=MAX_DEPTH {
        let mut earlier = |walking: &Walking| {
            let known = walk.earlier.get_mut(walking.path.to_str()?);
            known.map(std::mem::take)
        };
        let earlier: Vec<_> = level.iter().map(|of| Mutex::new(earlier(of))).collect();
        let read = each(level.len(), |at| {
            walk.directory(&level[at], parallel::lock(&earlier[at]).take())
        });
        let new = read.iter().enumerate().flat_map(|(at, read)| {
            let read = read.as_ref().ok().and_then(Option::as_ref);
            read.into_iter()
                .flat_map(move |read| read.new.iter().map(move |new| (at, new)))
        });
        // One more shows that the walk is cut.
        let room = MAX_FILES + 1 - walked.files;
        let new: Vec<(usize, &(String, Stamp))> = new.take(room).collect();
        let files = each(new.len(), |number| {
            let (at, (name, stamp)) = new[number];
            (at, walk.look_into(&level[at].path, name, *stamp))
        });
        let mut files = files.into_iter().peekable();
        let mut next = Vec::new();
        for ((at, walking), read) in level.iter().enumerate().zip(read) {
            let mut read = match read {
                Ok(Some(read)) => read,
                Ok(None) => continue,
                Err(error) if depth == 0 => {
                    let why_not = regular::why_not(&error);
                    walked.lost.push((walking.path.clone(), why_not));
                    continue;
                }
                Err(_) => continue,
            };
            while let Some((_, file)) = files.next_if(|file| file.0 == at) {
                read.directory.files.push(file);
            }
            read.directory
                .files
                .sort_unstable_by(|a, b| a.name.cmp(&b.name));
            walked.files += read.directory.files.len();
            walked.is_changed |= read.is_changed || !read.new.is_empty();
            next.extend(walk.below(walking, &read.directory));
            walked.directories.insert(read.key, read.directory);
        }
        walked.is_cut = walked.files > MAX_FILES;
        level = next;
        if level.is_empty() || walked.is_cut {
            break;
        }
    }
    let mut earlier = walk.earlier.keys();
    walked.is_changed |= earlier.any(|key| !walked.directories.contains_key(key));
    walked
}

/// Runs work for each number with several threads.
fn each<T: Send>(len: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let done = parallel::balanced(len, 2, |range| range.map(&work).collect::<Vec<T>>());
    done.into_iter().flatten().collect()
}

/// Returns the reason why a root cannot be walked.
fn no_place(why_not: RejectReason) -> RejectReason {
    match why_not {
        RejectReason::NotThere => RejectReason::NoSuchPlace,
        other => other,
    }
}

/// Examines a single file instead of a tree, whatever its name.
pub(super) fn one(path: &Path, mut earlier: Directories) -> Walked {
    let mut walked = Walked::default();
    let directory = path.parent().and_then(Path::to_str);
    let name = path.file_name().and_then(|name| name.to_str());
    let (directory, name) = match (directory, name) {
        (Some(directory), Some(name)) => (directory, name.to_owned()),
        _ => return walked,
    };
    let stamp = match regular::stat(path) {
        Ok(metadata) => Stamp::from_metadata(&metadata),
        Err(why_not) => {
            walked.lost.push((path.to_owned(), no_place(why_not)));
            return walked;
        }
    };
    let earlier = earlier
        .remove(directory)
        .and_then(|mut directory| directory.files.pop());
    let same = |file: &File| file.is_settled && file.name == name && file.stamp == stamp;
    let file = earlier.filter(same).unwrap_or_else(|| {
        walked.is_changed = true;
        let age_ns = Stamp::time_ns(SystemTime::now()).saturating_sub(stamp.mtime_ns);
        let content = look_with(content_of, path, true);
        File {
            name,
            stamp,
            is_settled: age_ns > YOUNG_NS && content.is_lasting(),
            content,
        }
    });
    let contents = Directory {
        mtime_ns: None,
        files: vec![file],
        directories: Vec::new(),
    };
    walked.directories = Directories::from([(directory.to_owned(), contents)]);
    walked
}

/// Directory to be read.
struct Walking {
    path: PathBuf,
    /// Its real path, after resolving links.
    target: PathBuf,
}

struct Walk {
    /// Result of the earlier walk: directories that were read are empty.
    earlier: Directories,
    /// Real paths of the roots.
    targets: Vec<PathBuf>,
    /// Directories reached through links, by their real paths.
    seen: HashSet<PathBuf>,
    now_ns: i64,
    look: Look,
}

/// A directory that was read.
struct Reading {
    key: String,
    /// Of its files only those whose data is kept.
    directory: Directory,
    /// The others, to be examined.
    new: Vec<(String, Stamp)>,
    is_changed: bool,
}

impl Walk {
    /// Reads a directory, given the result of an earlier walk; `None` if it is not walked.
    fn directory(
        &self,
        directory: &Walking,
        earlier: Option<Directory>,
    ) -> std::io::Result<Option<Reading>> {
        let path = directory.path.as_path();
        let Some(key) = path.to_str().filter(|_| !is_of_kernel(&directory.target)) else {
            return Ok(None);
        };
        let mtime_ns = Stamp::time_ns(std::fs::metadata(path)?.modified()?);
        let mut reading = Reading {
            key: key.to_owned(),
            directory: Directory {
                mtime_ns: Some(mtime_ns).filter(|&time| self.is_old(time)),
                files: Vec::new(),
                directories: Vec::new(),
            },
            new: Vec::new(),
            is_changed: false,
        };
        let mtime_ns = reading.directory.mtime_ns;
        let is_same = |earlier: &Directory| mtime_ns.is_some() && earlier.mtime_ns == mtime_ns;
        match earlier {
            // Windows returns sizes and times with the names, and reading each file costs more.
            Some(earlier) if is_same(&earlier) && !cfg!(windows) => {
                for file in earlier.files {
                    match regular::stat(&path.join(&file.name)) {
                        Ok(metadata) => reading.sort(file, Stamp::from_metadata(&metadata)),
                        // The target of a link is missing; it can come back at any time, as
                        // anything.
                        Err(_) => reading.directory.mtime_ns = None,
                    }
                }
                reading.is_changed = reading.directory.mtime_ns.is_none();
                reading.directory.directories = earlier.directories;
            }
            earlier => {
                reading.is_changed = true;
                let files = earlier.into_iter().flat_map(|earlier| earlier.files);
                let mut before: HashMap<String, File> =
                    files.map(|file| (file.name.clone(), file)).collect();
                let listed = list(path)?;
                for (name, stamp) in listed.files {
                    match before.remove(&name) {
                        Some(file) => reading.sort(file, stamp),
                        None => reading.new.push((name, stamp)),
                    }
                }
                if listed.is_passing {
                    reading.directory.mtime_ns = None;
                }
                reading.directory.directories = listed.directories;
            }
        }
        Ok(Some(reading))
    }

    /// Returns the subdirectories of a directory to be read.
    fn below(&mut self, walking: &Walking, directory: &Directory) -> Vec<Walking> {
        let below = directory.directories.iter().filter_map(|below| {
            let path = walking.path.join(&below.name);
            let target = match below.is_link {
                true => self.worth_following(&path)?,
                false => walking.target.join(&below.name),
            };
            Some(Walking { path, target })
        });
        below.collect()
    }

    fn is_old(&self, mtime_ns: i64) -> bool {
        self.now_ns.saturating_sub(mtime_ns) > YOUNG_NS
    }

    fn look_into(&self, directory: &Path, name: &str, stamp: Stamp) -> File {
        let content = match stamp.size < SMALLEST {
            true => Content::Other,
            false => look_with(
                self.look,
                &directory.join(name),
                archive::has_archive_name(name),
            ),
        };
        File {
            name: name.to_owned(),
            stamp,
            is_settled: self.is_old(stamp.mtime_ns) && content.is_lasting(),
            content,
        }
    }

    /// Returns the target directory of a link if it should be walked: not if it is walked anyway,
    /// nor if it leads back to a directory above the walk.
    fn worth_following(&mut self, link: &Path) -> Option<PathBuf> {
        let target = link.canonicalize().ok()?;
        let inside = self.targets.iter().any(|root| target.starts_with(root));
        let above = self.targets.iter().any(|root| root.starts_with(&target));
        if inside || above || is_of_kernel(&target) {
            return None;
        }
        let seen = self.seen.iter().any(|seen| target.starts_with(seen));
        (!seen && self.seen.insert(target.clone())).then_some(target)
    }
}

impl Reading {
    /// Keeps the data of an unchanged file, or schedules it for examination.
    fn sort(&mut self, file: File, stamp: Stamp) {
        match file.is_settled && file.stamp == stamp {
            true => self.directory.files.push(file),
            false => self.new.push((file.name, stamp)),
        }
    }
}

/// Returns whether a real path is in a virtual file system of the kernel.
fn is_of_kernel(target: &Path) -> bool {
    cfg!(unix)
        && NEVER.iter().any(|tree| target.starts_with(tree))
        && !target.starts_with(SHARED_MEMORY)
}

/// Names in a directory.
struct Listed {
    files: Vec<(String, Stamp)>,
    directories: Vec<Below>,
    /// True if there can be other names that appear without a change of the directory: a link
    /// without its target, or a name without details from the system.
    is_passing: bool,
}

/// Lists a directory. Skips names that are not Unicode, and everything except files and
/// directories.
fn list(path: &Path) -> std::io::Result<Listed> {
    let mut listed = Listed {
        files: Vec::new(),
        directories: Vec::new(),
        is_passing: false,
    };
    for entry in std::fs::read_dir(path)? {
        let Ok(entry) = entry else {
            listed.is_passing = true;
            continue;
        };
        let (Ok(kind), Ok(name)) = (entry.file_type(), entry.file_name().into_string()) else {
            continue;
        };
        let is_link = kind.is_symlink();
        let metadata = match is_link {
            true => std::fs::metadata(entry.path()),
            false if kind.is_file() => entry.metadata(),
            false if kind.is_dir() => {
                if !SKIPPED.contains(&name.as_str()) {
                    listed.directories.push(Below { name, is_link });
                }
                continue;
            }
            false => continue,
        };
        match metadata {
            Ok(metadata) if metadata.is_file() => {
                listed.files.push((name, Stamp::from_metadata(&metadata)))
            }
            Ok(metadata) if metadata.is_dir() && !SKIPPED.contains(&name.as_str()) => {
                listed.directories.push(Below { name, is_link });
            }
            Ok(_) => {}
            Err(_) => listed.is_passing = true,
        }
    }
    listed.directories.sort_unstable();
    Ok(listed)
}

/// Examines a file that might be hostile to its parser.
fn look_with(look: Look, path: &Path, may_be_archive: bool) -> Content {
    catch_panic(|| look(path, may_be_archive)).unwrap_or_else(|panic| Content::Damaged(bug(&panic)))
}

fn bug(panic: &str) -> String {
    format!("cannot read it because of a bug in heaptap ({panic})")
}

/// Examines a file. If it does not begin like one with symbols, only the beginning is read.
pub(super) fn content_of(path: &Path, may_be_archive: bool) -> Content {
    let mut head = [0; 8];
    let bytes = regular::open(path).and_then(|(mut file, _)| {
        let failed = |error: std::io::Error| regular::why_not(&error);
        match file.read_exact(&mut head) {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read.map_err(failed)?,
        }
        let may = head.starts_with(b"\x7fELF")
            || head.starts_with(b"MODULE ")
            || (archive::is_archive(&head) && may_be_archive);
        match may {
            true => Bytes::from_file(&file, path).map(Some).map_err(failed),
            false => Ok(None),
        }
    });
    match bytes {
        Ok(Some(bytes)) => content_of_bytes(&bytes),
        Ok(None) => {
            let name = path.file_name().and_then(|name| name.to_str());
            match archive::is_packed(&head) || name.is_some_and(is_tar) {
                true => Content::Packed,
                false => Content::Other,
            }
        }
        Err(RejectReason::Unreadable(kind)) => Content::Unreadable { kind },
        Err(_) => Content::Other,
    }
}

/// Returns the content of a file with these bytes.
fn content_of_bytes(bytes: &Bytes) -> Content {
    if archive::is_archive(bytes) {
        return match archive::read(bytes) {
            Ok(entries) => Content::Archive(entries),
            Err(why_not) => Content::refused(why_not),
        };
    }
    match file::identify(bytes) {
        Ok(facts) => Content::Symbols(Box::new(Symbols::new(&facts))),
        Err(FileError::Unknown) => Content::Other,
        Err(error) => Content::refused(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_its_reader_panics_at_is_damaged_and_the_walk_goes_on() {
        let root = tempfile::tempdir().unwrap();
        for at in 0..600 {
            std::fs::write(root.path().join(format!("{at}.so")), [7; 64]).unwrap();
        }
        let look: Look = |path, _| match path.ends_with("5.so") {
            true => panic!("at the fifth"),
            false => Content::Other,
        };
        let roots = [root.path().to_owned()];
        let walked = walk_with(&roots, Directories::new(), look);
        assert_eq!(walked.files, 600);
        let directory = &walked.directories[root.path().to_str().unwrap()];
        let damaged = directory
            .files
            .iter()
            .filter(|f| f.content != Content::Other);
        let damaged: Vec<_> = damaged.map(|f| (f.name.as_str(), &f.content)).collect();
        let [("5.so", Content::Damaged(what))] = damaged[..] else {
            panic!("{damaged:?}");
        };
        assert!(what.contains("at the fifth"), "{what}");
    }

    #[test]
    fn what_the_system_refused_is_tried_again() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("x.so");
        std::fs::write(&path, [7; 64]).unwrap();
        let long_ago = SystemTime::now() - std::time::Duration::from_secs(3600);
        let file = std::fs::File::options().append(true).open(&path).unwrap();
        file.set_modified(long_ago).unwrap();
        let roots = [root.path().to_owned()];
        let content = |walked: &Walked| {
            let directory = &walked.directories[root.path().to_str().unwrap()];
            directory.files[0].content.clone()
        };
        let kind = std::io::ErrorKind::QuotaExceeded;
        let refused = walk_with(&roots, Directories::new(), |_, _| Content::Unreadable {
            kind: std::io::ErrorKind::QuotaExceeded,
        });
        let why_not = content(&refused).why_not();
        assert_eq!(why_not, Some(RejectReason::Unreadable(kind)));
        let again = walk_with(&roots, refused.directories, |_, _| {
            Content::Damaged("seen".to_owned())
        });
        assert_eq!(content(&again), Content::Damaged("seen".to_owned()));
        // The result is settled.
        let third = walk_with(&roots, again.directories, |_, _| Content::Other);
        assert_eq!(content(&third), Content::Damaged("seen".to_owned()));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn trees_of_the_kernel_are_not_walked_below_another() {
        use std::os::unix::fs::symlink;
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("x.so"), [7; 64]).unwrap();
        symlink("/sys", root.path().join("s")).unwrap();
        symlink("/proc/self/fd", root.path().join("p")).unwrap();
        let roots = [root.path().to_owned()];
        let walked = walk_with(&roots, Directories::new(), |_, _| Content::Other);
        assert_eq!((walked.files, walked.directories.len()), (1, 1));
    }
}
