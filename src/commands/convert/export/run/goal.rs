//! Where files go: standard output, one file, or a folder. A file has its name once it is whole.

use super::{ExportError, Format};
use crate::folder::{RAW_TRACE, SYMBOLIZED_TRACE};
use crate::heaps::input::LookError;
use crate::naming::frames::LookupControl;
use crate::naming::packet_files::{DEOBFUSCATION, SYMBOLS};
use crate::results::manifest;
use crate::results::whole_file::WholeFile;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Where what is written goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputDestination {
    /// Standard output.
    Stdout,
    /// One file, as the user typed it.
    File(PathBuf),
    /// One file whose name heaptap chose.
    Named(PathBuf),
    /// Files of their own names in a folder.
    Folder(PathBuf),
}

impl OutputDestination {
    /// What `-o` means for a format: `-` is standard output; a folder that exists, and a name
    /// that ends like one, is a folder. Of what is not there, a format with many files takes a
    /// name for a file only where it ends like one of its files; the others take it for a file.
    pub fn of(output: &Path, format: Format) -> OutputDestination {
        if output == Path::new("-") {
            return OutputDestination::Stdout;
        }
        let text = output.to_string_lossy();
        // Asked once: another process may make a folder of that name between two looks.
        let there = std::fs::metadata(output).ok();
        if there.as_ref().is_some_and(Metadata::is_dir) || text.ends_with(std::path::is_separator) {
            return OutputDestination::Folder(output.to_owned());
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
            true => OutputDestination::File(output.to_owned()),
            false => OutputDestination::Folder(output.to_owned()),
        }
    }

    /// Refuses to overwrite the input and, where that is a recording's folder, what the recording
    /// consists of; and other files unless `force` is given. A pipe or a device is written to as
    /// it is.
    ///
    /// # Errors
    /// Where the file is there already, or has the name of one of the recording's.
    pub fn check(&self, input: &Path, force: bool) -> Result<(), ExportError> {
        let (OutputDestination::File(path) | OutputDestination::Named(path)) = self else {
            return Ok(());
        };
        check(path, input, force)
    }

    /// The same for the one file that a format with one writes into a folder.
    ///
    /// # Errors
    /// Where the file is there already.
    pub fn into_file(self, name: &str) -> OutputDestination {
        match self {
            OutputDestination::Folder(folder) => OutputDestination::Named(folder.join(name)),
            other => other,
        }
    }
}

fn check(path: &Path, input: &Path, force: bool) -> Result<(), ExportError> {
    let real = |path: &Path| path.canonicalize().ok();
    if real(path).is_some() && real(path) == real(input) {
        return Err(ExportError::IsInput(path.to_owned()));
    }
    // A link to one of its files counts as that file.
    let beside = || Some(real(parent(path))?.join(path.file_name()?));
    if let (Some(goal), Some(folder)) = (real(path).or_else(beside), real(input))
        && folder.is_dir()
        && goal.parent() == Some(&*folder)
        && goal.file_name().is_some_and(is_of_recording)
    {
        return Err(ExportError::IsOfInput(path.to_owned()));
    }
    let is_file = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    match is_file && !force {
        true => Err(ExportError::Taken(path.to_owned())),
        false => Ok(()),
    }
}

/// The folder of a path as it was typed.
fn parent(path: &Path) -> &Path {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// Whether a recording's own file has the name: what cannot be made again, and what is made of
/// it. On some systems capitals do not tell names apart.
fn is_of_recording(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_lowercase();
    let fixed = [
        RAW_TRACE,
        SYMBOLIZED_TRACE,
        SYMBOLS,
        DEOBFUSCATION,
        manifest::FILE_NAME,
    ];
    let is_dump = name.starts_with("heap_dump.") || name.starts_with("java_heap_dump.");
    fixed.contains(&&*name) || is_dump || name.ends_with(".hprof")
}

/// Writes files to a goal.
pub(super) struct Sink<'a> {
    goal: &'a OutputDestination,
    stdout: &'a mut (dyn Write + Send),
    control: &'a LookupControl,
}

impl<'a> Sink<'a> {
    /// Where the control says stop, the file that is being written goes.
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

    /// Writes a file, called `name` where it goes into a folder: where it is then, and its size.
    pub(super) fn write(
        &mut self,
        name: &str,
        write: impl FnOnce(&mut Counted<'_>) -> io::Result<()>,
    ) -> Result<(PathBuf, u64), ExportError> {
        let path = match self.goal {
            OutputDestination::Stdout => PathBuf::from("-"),
            OutputDestination::File(path) | OutputDestination::Named(path) => path.clone(),
            OutputDestination::Folder(folder) => folder.join(name),
        };
        let written = match self.goal {
            OutputDestination::Stdout => match put(self.stdout, self.control, write) {
                // Whoever read it has left, and does not want the rest.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
                written => written,
            },
            OutputDestination::File(_) => self.put(WholeFile::typed(&path), write),
            OutputDestination::Named(_) | OutputDestination::Folder(_) => {
                self.put(WholeFile::named(&path), write)
            }
        };
        match written {
            Ok(bytes) => Ok((path, bytes)),
            Err(_) if self.control.is_cancelled() => Err(LookError::Interrupted.into()),
            Err(source) => Err(ExportError::Write { path, source }),
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

/// Counts what goes through.
pub(super) struct Counted<'a> {
    out: BufWriter<&'a mut (dyn Write + Send)>,
    bytes: u64,
    control: &'a LookupControl,
}

/// Fails once whoever asked does not want to wait any more.
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
    fn what_is_named_is_a_file_or_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let there = folder.path().to_owned();
        let file = there.join("notes");
        std::fs::write(&file, "mine").unwrap();
        let of = |path: &Path, format| match OutputDestination::of(path, format) {
            OutputDestination::Stdout => "-",
            OutputDestination::File(_) | OutputDestination::Named(_) => "file",
            OutputDestination::Folder(_) => "folder",
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
        let goal = OutputDestination::File(file.clone());
        let input = there.join("input");
        assert!(matches!(
            goal.check(&input, false),
            Err(ExportError::Taken(_))
        ));
        assert!(goal.check(&input, true).is_ok());
        assert!(matches!(
            goal.check(&file, true),
            Err(ExportError::IsInput(_))
        ));
    }

    #[test]
    fn a_recordings_own_files_are_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("rec");
        std::fs::create_dir_all(input.join("more")).unwrap();
        std::fs::write(input.join("raw-trace"), "trace").unwrap();
        for name in [
            "raw-trace",
            "symbolized-trace",
            "Manifest.JSON",
            "symbols",
            "deobfuscation-packets",
            "heap_dump.0.7.libc.malloc.pb.gz",
            "java_heap_dump.1.7.pb.gz",
            "app.hprof",
            "more/../raw-trace",
        ] {
            let checked = OutputDestination::File(input.join(name)).check(&input, true);
            assert!(matches!(checked, Err(ExportError::IsOfInput(_))), "{name}");
        }
        // What is made of a recording may stand in its folder, and such names elsewhere.
        for path in ["rec/mine.json", "raw-trace", "rec/more/symbols", "no/x"] {
            let goal = OutputDestination::File(folder.path().join(path));
            assert!(goal.check(&input, true).is_ok(), "{path}");
        }
    }
}
