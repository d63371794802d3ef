//! Output destination: standard output, one file, or a directory. A file gets its name once it is
//! complete.

use super::request::Format;
use crate::heaps::input::InputError;
use crate::names::frames::LookupControl;
use heaptap_base::error::Failure;
use heaptap_base::unfinished::ExistingFile;
use heaptap_results::destination::unwritable;
use heaptap_results::overwrite::{self, OverwriteError, Replace};
use heaptap_results::whole_file::WholeFile;
use std::fs::Metadata;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Destination of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputDestination {
    Stdout,
    /// One file, as typed by the user, and what happens to a file of that name.
    File(PathBuf, ExistingFile),
    /// One file with a name that heaptap chose.
    Named(PathBuf),
    /// Several files with their own names in a directory.
    Directory(PathBuf),
}

impl OutputDestination {
    /// Returns the destination that `-o` means for a format. `-` is standard output. An existing
    /// directory, or a name with a trailing separator, is a directory. For other names, a format
    /// with many files writes to a file if the name has the ending of its files or exists, and to a
    /// directory otherwise. The other formats write to a file.
    pub fn new(output: &Path, format: Format) -> OutputDestination {
        if output == Path::new("-") {
            return OutputDestination::Stdout;
        }
        let text = output.to_string_lossy();
        // Read once, because another process might create a directory of that name between two
        // calls.
        let there = std::fs::metadata(output).ok();
        if there.as_ref().is_some_and(Metadata::is_dir) || text.ends_with(std::path::is_separator) {
            return OutputDestination::Directory(output.to_owned());
        }
        let lower = text.to_ascii_lowercase();
        let mut endings = [format.ending()]
            .into_iter()
            .chain(format.other_endings().iter().copied());
        let ends_so = endings.any(|ending| lower.ends_with(&format!(".{ending}")));
        let is_file = match format {
            Format::Parquet => there.is_some(),
            format if format.has_many_files() => ends_so || there.is_some(),
            _ => true,
        };
        match is_file {
            true => OutputDestination::File(output.to_owned(), ExistingFile::for_goal(output)),
            false => OutputDestination::Directory(output.to_owned()),
        }
    }

    /// Refuses to overwrite the input, files that belong to a recording, and, without `force`, any
    /// file that is not empty. A pipe or a device is written to directly.
    ///
    /// # Errors
    /// Returns an error if the file exists or has the name of one of the recording's files.
    pub fn check(&self, input: &Path, force: bool) -> Result<(), OverwriteError> {
        let (OutputDestination::File(path, _) | OutputDestination::Named(path)) = self else {
            return Ok(());
        };
        overwrite::check(path, [input], Replace::of_force(force)).map(drop)
    }

    /// Returns the destination for a format with one file, called `name` if it goes to a directory.
    pub fn into_file(self, name: &str) -> OutputDestination {
        match self {
            OutputDestination::Directory(directory) => {
                OutputDestination::Named(directory.join(name))
            }
            other => other,
        }
    }
}

/// Writer of files to a destination.
pub(super) struct Sink<'a> {
    goal: &'a OutputDestination,
    stdout: &'a mut (dyn Write + Send),
    control: &'a LookupControl,
}

impl<'a> Sink<'a> {
    /// Creates a sink. A cancelled `control` discards the file that is being written.
    pub(super) fn new(
        goal: &'a OutputDestination,
        stdout: &'a mut (dyn Write + Send),
        control: &'a LookupControl,
    ) -> Sink<'a> {
        Sink {
            goal,
            stdout,
            control,
        }
    }

    /// Writes a file, called `name` if it goes to a directory. Returns its path and size in bytes.
    pub(super) fn write(
        &mut self,
        name: &str,
        write: impl FnOnce(&mut Counted<'_>) -> io::Result<()>,
    ) -> Result<(PathBuf, u64), Failure> {
        let path = match self.goal {
            OutputDestination::Stdout => PathBuf::from("-"),
            OutputDestination::File(path, _) | OutputDestination::Named(path) => path.clone(),
            OutputDestination::Directory(directory) => directory.join(name),
        };
        let written = match self.goal {
            OutputDestination::Stdout => match put(self.stdout, self.control, write) {
                // The reader closed the pipe and does not need the rest.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
                written => written,
            },
            OutputDestination::File(_, existing) => {
                self.put(WholeFile::typed(&path, *existing), write)
            }
            OutputDestination::Named(_) | OutputDestination::Directory(_) => {
                self.put(WholeFile::named(&path), write)
            }
        };
        match written {
            Ok(bytes) => Ok((path, bytes)),
            Err(_) if self.control.is_cancelled() => Err(InputError::Interrupted.into()),
            Err(source) => Err(unwritable(path.display(), &source)),
        }
    }

    fn put(
        &self,
        file: io::Result<WholeFile>,
        write: impl FnOnce(&mut Counted<'_>) -> io::Result<()>,
    ) -> io::Result<u64> {
        let mut file = file?;
        let bytes = put(&mut file, self.control, write)?;
        file.finish()?;
        Ok(bytes)
    }
}

fn put(
    out: &mut (dyn Write + Send),
    control: &LookupControl,
    write: impl FnOnce(&mut Counted<'_>) -> io::Result<()>,
) -> io::Result<u64> {
    let mut counted = Counted {
        out: BufWriter::with_capacity(256 << 10, out),
        bytes: 0,
        control,
    };
    write(&mut counted)?;
    counted.out.flush()?;
    Ok(counted.bytes)
}

/// Writer that counts bytes.
pub(super) struct Counted<'a> {
    out: BufWriter<&'a mut (dyn Write + Send)>,
    bytes: u64,
    control: &'a LookupControl,
}

/// Returns an error once the operation is cancelled.
pub(super) fn unless_cancelled(control: &LookupControl) -> io::Result<()> {
    match control.is_cancelled() {
        true => Err(io::Error::other("cancelled")),
        false => Ok(()),
    }
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        unless_cancelled(self.control)?;
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_is_a_file_or_a_directory() {
        let directory = tempfile::tempdir().unwrap();
        let there = directory.path().to_owned();
        let file = there.join("notes");
        std::fs::write(&file, "mine").unwrap();
        let of = |path: &Path, format| match OutputDestination::new(path, format) {
            OutputDestination::Stdout => "-",
            OutputDestination::File(..) | OutputDestination::Named(_) => "file",
            OutputDestination::Directory(_) => "folder",
        };
        for (name, folded, json, parquet) in [
            ("x.folded", "file", "file", "folder"),
            ("x.TXT", "file", "file", "folder"),
            ("x", "folder", "file", "folder"),
            ("com.example.app", "folder", "file", "folder"),
            ("x/", "folder", "folder", "folder"),
            ("notes", "file", "file", "file"),
            ("", "folder", "folder", "folder"),
        ] {
            let path = there.join(name);
            assert_eq!(of(&path, Format::Folded), folded, "{name}");
            assert_eq!(of(&path, Format::Json), json, "{name}");
            assert_eq!(of(&path, Format::Parquet), parquet, "{name}");
        }
        assert_eq!(of(Path::new("-"), Format::Svg), "-");
        let goal = OutputDestination::File(file.clone(), ExistingFile::IsReplaced);
        let input = there.join("input");
        assert!(goal.check(&input, false).is_err());
        assert!(goal.check(&input, true).is_ok());
        assert!(goal.check(&file, true).is_err());
    }
}
