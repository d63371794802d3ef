//! Atomically written files. Symbolic links are followed only if the user typed the path. In a
//! directory, heaptap chooses the names, and the directory can come from anywhere: existing entries
//! are replaced, including links, and linked directories are rejected.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use heaptap_base::bytes::open_regular;
use heaptap_base::directory::{self, UNFINISHED_PREFIX};
use heaptap_base::temp_cleanup;
use heaptap_base::unfinished::{ExistingFile, file_in, publish, remove_abandoned};

/// A file that gets its name only when it is complete; dropping it earlier leaves nothing.
#[derive(Debug)]
pub struct WholeFile {
    file: BufWriter<File>,
    /// Temporary path, final path, and what happens to a file there.
    unfinished: Option<(tempfile::TempPath, PathBuf, ExistingFile)>,
}

impl WholeFile {
    /// Opens a file at a path that the user typed, in the directory of the link target. Special
    /// files (a pipe, `/dev/null`) are written directly. Removes what killed exports into that
    /// directory left.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be written.
    pub fn typed(goal: &Path, existing: ExistingFile) -> io::Result<WholeFile> {
        let is_special = |metadata: std::fs::Metadata| !metadata.is_file() && !metadata.is_dir();
        if std::fs::metadata(goal).is_ok_and(is_special) {
            return Ok(WholeFile {
                file: BufWriter::new(File::options().write(true).open(goal)?),
                unfinished: None,
            });
        }
        let target = match goal.is_symlink() {
            true => goal.canonicalize()?,
            false => goal.to_owned(),
        };
        remove_abandoned(directory::of(&target));
        WholeFile::open(target, existing)
    }

    /// Opens a file with a name chosen by heaptap. Replaces existing entries.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be written.
    pub fn named(goal: &Path) -> io::Result<WholeFile> {
        WholeFile::open(goal.to_owned(), ExistingFile::IsReplaced)
    }

    fn open(goal: PathBuf, existing: ExistingFile) -> io::Result<WholeFile> {
        let file = temporary_in(directory::of(&goal))?;
        let (file, path) = file.into_parts();
        Ok(WholeFile {
            file: BufWriter::new(file),
            unfinished: Some((path, goal, existing)),
        })
    }

    /// Returns the unbuffered file, for copies by the system.
    ///
    /// # Errors
    /// Returns an error if buffered data cannot be written.
    pub fn flushed(&mut self) -> io::Result<&mut File> {
        self.file.flush()?;
        Ok(self.file.get_mut())
    }

    /// Renames the file to its final name.
    ///
    /// # Errors
    /// Returns an error if the remaining data cannot be written, or a file has appeared that stays.
    pub fn finish(self) -> io::Result<()> {
        drop(self.file.into_inner().map_err(|error| error.into_error())?);
        if let Some((path, goal, existing)) = self.unfinished {
            publish(path, &goal, existing).map_err(|(error, _)| error)?;
        }
        Ok(())
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Writes a file with a name chosen by heaptap atomically.
pub fn write_named(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = WholeFile::named(path)?;
    file.write_all(bytes)?;
    file.finish()
}

/// Writes a file with a name chosen by heaptap atomically. It survives a power loss: without that,
/// the new name can be on disk before the content.
pub fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    synced(WholeFile::named(path)?, bytes)
}

/// As [`write_synced`], for a file that the user named.
pub fn write_typed(path: &Path, bytes: &[u8]) -> io::Result<()> {
    synced(WholeFile::typed(path, ExistingFile::for_goal(path))?, bytes)
}

fn synced(mut file: WholeFile, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    let Some((_, goal, _)) = &file.unfinished else {
        return file.finish();
    };
    let directory = directory::of(goal).to_owned();
    file.flushed()?.sync_all()?;
    file.finish()?;
    directory::sync(&directory)
}

/// Returns the directory `name` inside `directory`, creating it if it is missing.
///
/// # Errors
/// Returns an error if it cannot be created, or is a link, which can lead anywhere.
pub fn directory_inside(directory: &Path, name: &Path) -> io::Result<PathBuf> {
    let mut path = directory.to_owned();
    for part in name.components() {
        path.push(part);
        match std::fs::create_dir(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => unless_link(&path)?,
        }
    }
    Ok(path)
}

/// Opens a file inside a directory for reading.
///
/// # Errors
/// Returns an error if it cannot be read, is not a regular file, or is reached through a link.
pub fn open_inside(directory: &Path, name: &str) -> io::Result<File> {
    let mut path = directory.to_owned();
    for part in Path::new(name).components() {
        path.push(part);
        unless_link(&path)?;
    }
    open_regular(&path)
}

/// Rejects a link inside a directory; accepts missing files.
///
/// # Errors
/// Returns an error if it is a link.
pub fn unless_link(path: &Path) -> io::Result<()> {
    match path.is_symlink() {
        true => Err(io::Error::other(format!(
            "{} is a symbolic link, and heaptap does not follow links inside a directory",
            path.display()
        ))),
        false => Ok(()),
    }
}

/// Creates a temporary file in a results directory.
pub fn temporary_in(directory: &Path) -> io::Result<tempfile::NamedTempFile> {
    temp_cleanup::tracked(|| file_in(directory, UNFINISHED_PREFIX), |file| file.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(goal: &Path) -> io::Result<WholeFile> {
        WholeFile::typed(goal, ExistingFile::for_goal(goal))
    }

    fn listed(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap();
        let names = entries.map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_that_is_given_up_leaves_nothing_and_keeps_what_was_there() {
        let directory = tempfile::tempdir().unwrap();
        let goal = directory.path().join("symbols");
        std::fs::write(&goal, "before").unwrap();
        for open in [typed, WholeFile::named] {
            let mut file = open(&goal).unwrap();
            file.write_all(b"half").unwrap();
            drop(file);
            assert_eq!(listed(directory.path()), ["symbols"]);
            assert_eq!(std::fs::read(&goal).unwrap(), b"before");
        }
        write_named(&goal, b"after").unwrap();
        assert_eq!(std::fs::read(&goal).unwrap(), b"after");
        assert_eq!(listed(directory.path()), ["symbols"]);
    }

    #[test]
    fn a_file_that_appears_meanwhile_stays_unless_heaptap_chose_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let goal = directory.path().join("page.html");
        for (open, stays) in [(typed as fn(_) -> _, true), (WholeFile::named, false)] {
            let mut file: WholeFile = open(&goal).unwrap();
            file.write_all(b"mine").unwrap();
            std::fs::write(&goal, "theirs").unwrap();
            let finished = file.finish();
            assert_eq!(finished.is_err(), stays);
            let expected = if stays { "theirs" } else { "mine" };
            assert_eq!(std::fs::read_to_string(&goal).unwrap(), expected);
            assert_eq!(listed(directory.path()), ["page.html"]);
            std::fs::remove_file(&goal).unwrap();
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_that_was_typed_and_a_device_stay_what_they_are() {
        let directory = tempfile::tempdir().unwrap();
        let (real, link) = (directory.path().join("real"), directory.path().join("link"));
        std::fs::write(&real, "before").unwrap();
        std::os::unix::fs::symlink("real", &link).unwrap();
        let mut file = typed(&link).unwrap();
        file.write_all(b"after").unwrap();
        file.finish().unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read(&real).unwrap(), b"after");
        let mut null = typed(Path::new("/dev/null")).unwrap();
        null.write_all(b"nothing").unwrap();
        null.finish().unwrap();
        assert!(!Path::new("/dev/null").is_file());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_with_a_name_that_heaptap_chose_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let (real, link) = (directory.path().join("real"), directory.path().join("link"));
        std::fs::write(&real, "before").unwrap();
        for goal in ["real", "nowhere", "/dev/null"] {
            let _ = std::fs::remove_file(&link);
            std::os::unix::fs::symlink(goal, &link).unwrap();
            write_named(&link, b"after").unwrap();
            assert!(!link.is_symlink() && link.is_file(), "{goal}");
            assert_eq!(std::fs::read(&link).unwrap(), b"after");
        }
        assert_eq!(std::fs::read(&real).unwrap(), b"before");
        assert_eq!(listed(directory.path()), ["link", "real"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_directory_that_is_a_link_is_neither_written_to_nor_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::create_dir(path("outside")).unwrap();
        std::fs::write(path("outside/file"), "secret").unwrap();
        std::fs::create_dir(path("rec")).unwrap();
        std::os::unix::fs::symlink("../outside", path("rec/java")).unwrap();
        std::os::unix::fs::symlink("../outside/file", path("rec/file")).unwrap();
        for name in ["java", "java/02-login"] {
            let error = directory_inside(&path("rec"), Path::new(name)).unwrap_err();
            assert!(error.to_string().contains("is a symbolic link"), "{error}");
        }
        for name in ["java/file", "file"] {
            let error = open_inside(&path("rec"), name).unwrap_err();
            assert!(error.to_string().contains("is a symbolic link"), "{error}");
        }
        let made = std::process::Command::new("mkfifo")
            .arg(path("rec/pipe"))
            .status();
        assert!(made.expect("there is mkfifo").success());
        let error = open_inside(&path("rec"), "pipe").unwrap_err();
        assert_eq!(
            error.to_string(),
            "not a regular file",
            "the pipe has no writer"
        );
        assert_eq!(listed(&path("outside")), ["file"]);
        let made = directory_inside(&path("rec"), Path::new("meminfo/more")).unwrap();
        assert!(made.is_dir() && made == path("rec/meminfo/more"));
    }
}
