//! Files that heaptap writes: each is whole or not there. A symbolic link is followed only where
//! the user typed the path. Inside of a folder heaptap chooses the names, and the folder may come
//! from anybody: what has such a name is replaced, a link too, and a folder that is a link is
//! refused.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::bytes::open_regular;
use crate::folder::UNFINISHED_PREFIX;

/// A file that has its name only once it is whole; before that, and if it is dropped, it leaves
/// nothing.
#[derive(Debug)]
pub struct WholeFile {
    file: BufWriter<File>,
    /// Where it stands meanwhile, and what it will be called.
    unfinished: Option<(tempfile::TempPath, PathBuf)>,
}

impl WholeFile {
    /// Opens a file at a path that the user typed: beside what a link leads to. What is no
    /// regular file (a pipe, `/dev/null`) is written as it is.
    ///
    /// # Errors
    /// Where its folder cannot be written.
    pub fn typed(goal: &Path) -> io::Result<WholeFile> {
        let is_special = |metadata: std::fs::Metadata| !metadata.is_file() && !metadata.is_dir();
        if std::fs::metadata(goal).is_ok_and(is_special) {
            return Ok(WholeFile {
                file: BufWriter::new(File::options().write(true).open(goal)?),
                unfinished: None,
            });
        }
        match goal.is_symlink() {
            true => WholeFile::named(&goal.canonicalize()?),
            false => WholeFile::named(goal),
        }
    }

    /// Opens a file whose name heaptap chose. Whatever has that name is replaced.
    ///
    /// # Errors
    /// Where its folder cannot be written.
    pub fn named(goal: &Path) -> io::Result<WholeFile> {
        let folder = goal.parent().filter(|f| !f.as_os_str().is_empty());
        let file = temporary_in(folder.unwrap_or(Path::new(".")))?;
        let (file, path) = file.into_parts();
        Ok(WholeFile {
            file: BufWriter::new(file),
            unfinished: Some((path, goal.to_owned())),
        })
    }

    /// The file under its buffer, for what the system copies by itself.
    ///
    /// # Errors
    /// Where what is buffered cannot be written.
    pub(crate) fn flushed(&mut self) -> io::Result<&mut File> {
        self.file.flush()?;
        Ok(self.file.get_mut())
    }

    /// Gives it its name; what had it before is replaced.
    ///
    /// # Errors
    /// Where what is left cannot be written.
    pub fn finish(self) -> io::Result<()> {
        drop(self.file.into_inner().map_err(|error| error.into_error())?);
        if let Some((path, goal)) = self.unfinished {
            path.persist(goal)?;
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

/// Writes a file whose name heaptap chose, whole or not at all.
pub(crate) fn write_named(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = WholeFile::named(path)?;
    file.write_all(bytes)?;
    file.finish()
}

/// The folder `name` inside of `folder`, made where it is missing.
///
/// # Errors
/// Where it can't be made, or is a link: it may lead anywhere.
pub(crate) fn folder_inside(folder: &Path, name: &Path) -> io::Result<PathBuf> {
    let mut path = folder.to_owned();
    for part in name.components() {
        path.push(part);
        match std::fs::create_dir(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => unless_link(&path)?,
        }
    }
    Ok(path)
}

/// Opens a file inside of a folder to read it.
///
/// # Errors
/// Where it can't be read or is not a regular file, or it or a folder on the way is a link.
pub(crate) fn open_inside(folder: &Path, name: &str) -> io::Result<File> {
    let mut path = folder.to_owned();
    for part in Path::new(name).components() {
        path.push(part);
        unless_link(&path)?;
    }
    open_regular(&path)
}

/// Refuses a file inside of a folder that is a link; what is not there is none.
///
/// # Errors
/// Where it is one.
pub(crate) fn unless_link(path: &Path) -> io::Result<()> {
    match path.is_symlink() {
        true => Err(io::Error::other(format!(
            "{} is a symbolic link, and heaptap follows none inside of a folder",
            path.display()
        ))),
        false => Ok(()),
    }
}

/// An unfinished file of a results folder.
pub(crate) fn temporary_in(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    crate::session::unfinished::file_in(folder, UNFINISHED_PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let names = entries.map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_that_is_given_up_leaves_nothing_and_keeps_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let goal = folder.path().join("symbols");
        std::fs::write(&goal, "before").unwrap();
        for open in [WholeFile::typed, WholeFile::named] {
            let mut file = open(&goal).unwrap();
            file.write_all(b"half").unwrap();
            drop(file);
            assert_eq!(listed(folder.path()), ["symbols"]);
            assert_eq!(std::fs::read(&goal).unwrap(), b"before");
        }
        write_named(&goal, b"after").unwrap();
        assert_eq!(std::fs::read(&goal).unwrap(), b"after");
        assert_eq!(listed(folder.path()), ["symbols"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_that_was_typed_and_a_device_stay_what_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        std::fs::write(&real, "before").unwrap();
        std::os::unix::fs::symlink("real", &link).unwrap();
        let mut file = WholeFile::typed(&link).unwrap();
        file.write_all(b"after").unwrap();
        file.finish().unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read(&real).unwrap(), b"after");
        let mut null = WholeFile::typed(Path::new("/dev/null")).unwrap();
        null.write_all(b"nothing").unwrap();
        null.finish().unwrap();
        assert!(!Path::new("/dev/null").is_file());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_with_a_name_that_heaptap_chose_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        std::fs::write(&real, "before").unwrap();
        for goal in ["real", "nowhere", "/dev/null"] {
            let _ = std::fs::remove_file(&link);
            std::os::unix::fs::symlink(goal, &link).unwrap();
            write_named(&link, b"after").unwrap();
            assert!(!link.is_symlink() && link.is_file(), "{goal}");
            assert_eq!(std::fs::read(&link).unwrap(), b"after");
        }
        assert_eq!(std::fs::read(&real).unwrap(), b"before");
        assert_eq!(listed(folder.path()), ["link", "real"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_is_a_link_is_neither_written_to_nor_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir(path("outside")).unwrap();
        std::fs::write(path("outside/file"), "secret").unwrap();
        std::fs::create_dir(path("rec")).unwrap();
        std::os::unix::fs::symlink("../outside", path("rec/java")).unwrap();
        std::os::unix::fs::symlink("../outside/file", path("rec/file")).unwrap();
        for name in ["java", "java/02-login"] {
            let error = folder_inside(&path("rec"), Path::new(name)).unwrap_err();
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
        assert_eq!(error.to_string(), "not a regular file", "nobody writes it");
        assert_eq!(listed(&path("outside")), ["file"]);
        let made = folder_inside(&path("rec"), Path::new("meminfo/more")).unwrap();
        assert!(made.is_dir() && made == path("rec/meminfo/more"));
    }
}
