//! Destination of the one result of a command: a file that the user named, or a stream.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::overwrite::{self, OverwriteError, Replace};
use super::whole_file::WholeFile;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::unfinished::ExistingFile;

/// Returns the failure to write a result.
pub fn unwritable(name: impl Display, source: &io::Error) -> Failure {
    let message = format!("cannot write {name}");
    Failure::new(ErrorClass::HostWrite, "output-unwritable", message)
        .with_help("name a file in a writable directory with free space")
        .caused_by(source)
}

/// Destination of a result.
pub enum Destination {
    /// A file, renamed to its final name when it is complete.
    File {
        path: PathBuf,
        /// Whether to replace an existing file.
        force: bool,
    },
    /// A stream, such as standard output.
    Stream(Box<dyn Write + Send>),
}

impl Destination {
    /// Returns the file `path`, or `stdout` without a path.
    pub fn new(
        path: Option<&Path>,
        force: bool,
        stdout: impl Write + Send + 'static,
    ) -> Destination {
        match path {
            Some(path) => Destination::File {
                path: path.to_owned(),
                force,
            },
            None => Destination::Stream(Box::new(stdout)),
        }
    }

    /// Returns the name for messages.
    pub fn name(&self) -> String {
        match self {
            Destination::File { path, .. } => path.display().to_string(),
            Destination::Stream(_) => "standard output".to_owned(),
        }
    }

    /// Refuses to overwrite a file, as [`overwrite::check`]. A file that `is_alike` has content of
    /// the kind that is written.
    ///
    /// # Errors
    /// Returns the refusal.
    pub fn check(
        &self,
        input: Option<&Path>,
        is_alike: impl FnOnce(&Path) -> bool,
    ) -> Result<ExistingFile, OverwriteError> {
        let Destination::File { path, force } = self else {
            return Ok(ExistingFile::Stays);
        };
        let replace = match is_alike(path) {
            true => Replace::Alike,
            false => Replace::of_force(*force),
        };
        overwrite::check(path, input, replace)
    }

    /// Opens the destination after its check.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn open(self, existing: ExistingFile) -> io::Result<OpenDestination> {
        Ok(match self {
            Destination::File { path, .. } => {
                OpenDestination::File(WholeFile::typed(&path, existing)?)
            }
            Destination::Stream(stream) => OpenDestination::Stream(stream),
        })
    }
}

pub enum OpenDestination {
    File(WholeFile),
    Stream(Box<dyn Write + Send>),
}

impl OpenDestination {
    pub fn writer(&mut self) -> &mut dyn Write {
        match self {
            OpenDestination::File(file) => file,
            OpenDestination::Stream(stream) => stream,
        }
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// Returns an error if the rest cannot be written.
    pub fn finish(self) -> io::Result<()> {
        match self {
            OpenDestination::File(file) => file.finish(),
            OpenDestination::Stream(mut stream) => stream.flush(),
        }
    }
}
