//! The file of a page: opened before the work begins, never put in the place of anything but a
//! page, and there once it is whole.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::ReportError;
use crate::app::packet_files::WholeFile;
use crate::report::{self, Report};

/// The file of a page, which has its name once it is whole.
pub struct ReportFile {
    file: WholeFile,
    path: PathBuf,
}

impl ReportFile {
    /// Opens it before the work begins, so that a place that can't be written costs none.
    ///
    /// # Errors
    /// Where it is an input, or another file than a report and `force` is not given, or can't
    /// be written.
    pub fn create(path: &Path, inputs: &[&Path], force: bool) -> Result<ReportFile, ReportError> {
        let real = |path: &Path| path.canonicalize().ok();
        // The folder of a recording keeps its files, whatever is asked for.
        let folder = path.canonicalize().ok();
        let folder = folder.as_deref().and_then(Path::parent);
        let is_input = inputs.iter().any(|input| {
            real(path).is_some() && real(path) == real(input)
                || folder.is_some() && folder == real(input).as_deref()
        });
        if !is_replaceable(path) && (is_input || !force) {
            return Err(ReportError::Taken(path.to_owned()));
        }
        match WholeFile::create(path) {
            Ok(file) => Ok(ReportFile {
                file,
                path: path.to_owned(),
            }),
            Err(source) => Err(ReportError::Write {
                path: path.to_owned(),
                source,
            }),
        }
    }

    /// Writes the page; how many bytes it has.
    ///
    /// # Errors
    /// Where it can't be written.
    pub fn finish(mut self, report: Report<'_>) -> Result<u64, ReportError> {
        let mut counted = Counted {
            out: &mut self.file,
            bytes: 0,
        };
        let written = report.write(&mut counted);
        let bytes = counted.bytes;
        let finished = written.and_then(|()| self.file.finish());
        match finished {
            Ok(()) => Ok(bytes),
            Err(source) => Err(ReportError::Write {
                path: self.path,
                source,
            }),
        }
    }
}

/// Counts what passes.
struct Counted<'a> {
    out: &'a mut WholeFile,
    bytes: u64,
}

impl io::Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Whether nothing is lost with the file: it is not there, holds nothing, or is a report.
fn is_replaceable(path: &Path) -> bool {
    let Ok(metadata) = std::fs::metadata(path) else {
        return true;
    };
    if !metadata.is_file() || metadata.len() == 0 {
        return true;
    }
    is_page(path)
}

/// Whether a file is a page that heaptap wrote, of any version.
pub fn is_page(path: &Path) -> bool {
    // Opening a pipe would wait for whoever writes to it.
    if !path.is_file() {
        return false;
    }
    let mut head = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(1024).read_to_end(&mut head));
    let head = String::from_utf8_lossy(&head);
    read.is_ok() && head.starts_with("<!doctype html") && head.contains(report::MARK)
}
