//! Destination of packets for a trace: a separate file, a copy of the trace followed by them, or a
//! stream. Checks the destination; shared by `symbolize` and `deobfuscate`.

use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};

use super::convert::Input;
use crate::error::{Classified, ErrorClass, ErrorFacts, mend_write};
use crate::import::{self, ImportError, OpenTrace};
use crate::results::overwrite::{self, OverwriteError, Replace};
use crate::results::recorded;
use crate::results::whole_file::WholeFile;
use crate::session::unfinished::ExistingFile;

/// Data to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketScope {
    /// Only the packets.
    Packets,
    /// The trace, followed by the packets.
    WholeTrace,
}

/// Destination of packets.
pub enum PacketOutput {
    /// A file, renamed to its final name when it is complete. Replaces an existing file if that
    /// contains packets, or with `force`.
    File {
        path: PathBuf,
        /// If true, replace any existing file.
        force: bool,
    },
    /// A stream.
    Stream(Box<dyn Write + Send>),
}

/// Error of writing packets.
#[derive(Debug, thiserror::Error)]
pub enum GoalError {
    /// The input contains no trace, or cannot be opened.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The input contains several traces, which cannot be combined.
    #[error("{name} contains {traces} traces; only one is supported")]
    SeveralTraces {
        name: String,
        /// Number of traces.
        traces: usize,
    },
    /// The output would overwrite a file.
    #[error(transparent)]
    Output(#[from] OverwriteError),
    /// The packets cannot be written.
    #[error("cannot write {name}")]
    Write { name: String, source: io::Error },
}

impl Classified for GoalError {
    fn facts(&self) -> ErrorFacts {
        match self {
            GoalError::Import(error) => error.facts(),
            GoalError::SeveralTraces { .. } => ErrorFacts::new(ErrorClass::Usage, "several-traces")
                .with_help(
                    "unpack it and give each trace separately, or write only the packets (`-o`)",
                ),
            GoalError::Output(error) => error.facts(),
            GoalError::Write { source, .. } => {
                let mend = mend_write(source);
                ErrorFacts::new(ErrorClass::HostWrite, "output-unwritable")
                    .with_help(format!("{mend}, or choose another file with `-o`"))
            }
        }
    }
}

/// Opens the traces of an input for writing packets to a destination.
///
/// # Errors
/// Returns an error if the input contains no trace, or is incompatible with the destination.
pub(crate) fn open(
    input: &Input,
    scope: PacketScope,
    output: &PacketOutput,
) -> Result<Vec<OpenTrace>, GoalError> {
    if let PacketOutput::File { path, force } = output {
        let replace = match is_replaceable(path) {
            true => Replace::Alike,
            false => Replace::of_force(*force),
        };
        overwrite::check(path, input.path(), replace)?;
    }
    let traces = match input {
        Input::Path(path) => {
            let mut traces = import::open(path)?;
            recorded::compare(path, &mut traces);
            traces
        }
        Input::Stdin => import::open_stream(io::stdin().lock(), "standard input")?,
    };
    if scope == PacketScope::WholeTrace && traces.len() > 1 {
        return Err(GoalError::SeveralTraces {
            name: match input {
                Input::Path(path) => path.display().to_string(),
                Input::Stdin => "standard input".to_owned(),
            },
            traces: traces.len(),
        });
    }
    Ok(traces)
}

/// Returns whether the file at `path` can be replaced without loss: it is missing, empty, or a
/// pipe, or begins with a packet of symbols (field 61) or mappings (64).
fn is_replaceable(path: &Path) -> bool {
    let Ok(metadata) = std::fs::metadata(path) else {
        return true;
    };
    if !metadata.is_file() || metadata.len() == 0 {
        return true;
    }
    let mut head = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(16).read_to_end(&mut head));
    // Trace.packet, its length, then the packet's only field.
    let Some(rest) = head.strip_prefix(&[0x0a]).filter(|_| read.is_ok()) else {
        return false;
    };
    let length = rest.iter().take_while(|byte| **byte >= 0x80).count() + 1;
    let field = rest.get(length..).unwrap_or_default();
    field.starts_with(&[0xea, 0x03]) || field.starts_with(&[0x82, 0x04])
}

/// An open destination.
pub(crate) enum Out {
    File { file: WholeFile, name: String },
    Stream(Box<dyn Write + Send>),
}

impl Out {
    pub(crate) fn open(output: PacketOutput) -> Result<Out, GoalError> {
        Ok(match output {
            PacketOutput::Stream(stream) => Out::Stream(stream),
            PacketOutput::File { path, .. } => {
                let name = path.display().to_string();
                match WholeFile::typed(&path, ExistingFile::for_goal(&path)) {
                    Ok(file) => Out::File { file, name },
                    Err(source) => return Err(GoalError::Write { name, source }),
                }
            }
        })
    }

    pub(crate) fn writer(&mut self) -> &mut dyn Write {
        match self {
            Out::File { file, .. } => file,
            Out::Stream(stream) => stream,
        }
    }

    pub(crate) fn name(&self) -> String {
        match self {
            Out::File { name, .. } => name.clone(),
            Out::Stream(_) => "standard output".to_owned(),
        }
    }

    pub(crate) fn finish(self) -> io::Result<()> {
        match self {
            Out::Stream(mut stream) => stream.flush(),
            Out::File { file, .. } => file.finish(),
        }
    }
}
