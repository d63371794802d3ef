//! The file of a page: opened before the work begins, replaces only pages, and appears only when it
//! is complete.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::error::unwritable;
use heaptap_base::error::Failure;
use heaptap_base::unfinished::{ExistingFile, remove_abandoned};
use heaptap_base::units::hex;
use heaptap_report::Report;
use heaptap_results::overwrite::{self, Replace, holds_something};
use heaptap_results::whole_file::WholeFile;

/// Name of the page in a recording directory.
pub const PAGE: &str = "report.html";

/// Destination of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PagePlace {
    /// A path typed by the user; `-` is standard output.
    Typed(PathBuf),
    /// A file with a name chosen by heaptap.
    Named(PathBuf),
}

impl PagePlace {
    pub fn path(&self) -> &Path {
        match self {
            PagePlace::Typed(path) | PagePlace::Named(path) => path,
        }
    }
}

/// The file of a page, which gets its name when it is complete.
pub struct ReportFile {
    file: WholeFile,
    path: PathBuf,
}

pub(super) struct WrittenPage {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    /// SHA-256 of it, hex.
    pub(super) sha256: String,
}

impl ReportFile {
    /// Opens the file before the work begins, so that unwritable destinations fail early.
    ///
    /// # Errors
    /// Returns an error if it is an input, is another kind of file and `force` is not set, or
    /// cannot be written.
    pub fn create(place: &PagePlace, inputs: &[&Path], force: bool) -> Result<ReportFile, Failure> {
        let path = place.path();
        let is_named = matches!(place, PagePlace::Named(_));
        // A page that heaptap named is its own; one that the user named can be of anything.
        let replace = match !holds_something(path) || (is_named || force) && is_page(path) {
            true => Replace::Alike,
            false => Replace::of_force(force),
        };
        // A link with heaptap's own name is replaced itself.
        let existing = match is_named && path.is_symlink() {
            true => ExistingFile::IsReplaced,
            false => overwrite::check(path, inputs.iter().copied(), replace)?,
        };
        let file = match place {
            PagePlace::Typed(path) => WholeFile::typed(path, existing),
            PagePlace::Named(path) => {
                remove_abandoned(heaptap_base::directory::of(path));
                WholeFile::named(path)
            }
        };
        Ok(ReportFile {
            file: file.map_err(|source| unwritable(path, &source))?,
            path: path.to_owned(),
        })
    }

    /// Writes the page.
    ///
    /// # Errors
    /// Returns an error if it cannot be written.
    pub(super) fn finish(mut self, report: Report) -> Result<WrittenPage, Failure> {
        let mut counted = Counted {
            out: &mut self.file,
            bytes: 0,
            hash: Sha256::new(),
        };
        let written = report.write(&mut counted);
        let (bytes, hash) = (counted.bytes, counted.hash);
        let finished = written.and_then(|()| self.file.finish());
        match finished {
            Ok(()) => Ok(WrittenPage {
                path: self.path,
                bytes,
                sha256: hex(&hash.finalize()),
            }),
            Err(source) => Err(unwritable(&self.path, &source)),
        }
    }
}

/// Counts what passes, and sums it up.
struct Counted<'a> {
    out: &'a mut WholeFile,
    bytes: u64,
    hash: Sha256,
}

impl io::Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Returns whether a file is a page written by heaptap, of any version.
pub fn is_page(path: &Path) -> bool {
    // Opening a pipe would block until it has a writer.
    if !path.is_file() {
        return false;
    }
    let mut head = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(1024).read_to_end(&mut head));
    let head = String::from_utf8_lossy(&head);
    read.is_ok() && head.starts_with("<!doctype html") && head.contains(heaptap_report::MARK)
}
