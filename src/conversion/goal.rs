//! Where packets for a trace go: a file of their own, the trace itself written anew with them
//! behind it, or whoever reads on. Owns what of this can go wrong; shared by `symbolize` and
//! `deobfuscate`.

use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};

use super::convert::Input;
use crate::error::{Classified, ErrorClass, ErrorFacts};
use crate::import::{self, ImportError, OpenTrace};
use crate::results::recorded;
use crate::results::whole_file::WholeFile;

/// What is to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketScope {
    /// The packets alone.
    Packets,
    /// The trace, and the packets behind it.
    WholeTrace,
}

/// Where packets go.
pub enum PacketOutput {
    /// A file, which has its name once it is whole. What it held before is replaced where that
    /// is packets, or with `force`.
    File {
        /// The file.
        path: PathBuf,
        /// Replace it whatever it holds.
        force: bool,
    },
    /// Whoever reads on.
    Stream(Box<dyn Write + Send>),
}

/// Why packets cannot go where they should.
#[derive(Debug, thiserror::Error)]
pub enum GoalError {
    /// The input holds no trace, or can't be opened.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The input holds several traces, which have no whole.
    #[error("{name} holds {traces} traces; names for all of them go into no single trace")]
    SeveralTraces {
        /// The input.
        name: String,
        /// How many.
        traces: usize,
    },
    /// The input would be overwritten.
    #[error("{} is the trace itself", path.display())]
    OutputIsInput {
        /// The file.
        path: PathBuf,
    },
    /// Something else would be overwritten: a trace, for one.
    #[error("{} holds something that is not packets of heaptap", path.display())]
    OutputTaken {
        /// The file.
        path: PathBuf,
        /// Whether it lies in the recording that is read.
        of_recording: bool,
    },
    /// The packets can't be written.
    #[error("cannot write {name}")]
    Write {
        /// The file.
        name: String,
        /// What the system says.
        source: io::Error,
    },
}

impl Classified for GoalError {
    fn facts(&self) -> ErrorFacts {
        match self {
            GoalError::Import(error) => error.facts(),
            GoalError::SeveralTraces { .. } => ErrorFacts::new(ErrorClass::Usage, "several-traces")
                .with_help("unpack it and name each, or write the packets alone (-o)"),
            GoalError::OutputIsInput { .. } => {
                ErrorFacts::new(ErrorClass::Usage, "output-is-input")
                    .with_help("name another file; the trace stays as it is")
            }
            GoalError::OutputTaken { of_recording, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "output-taken").with_help(match of_recording {
                    true => {
                        "the folder of a recording keeps its files: name the folder alone to have \
                         its symbols brought up to date"
                    }
                    false => "name another file, or --force to overwrite it",
                })
            }
            GoalError::Write { .. } => ErrorFacts::new(ErrorClass::HostWrite, "output-unwritable")
                .with_help("make room there, or name another file"),
        }
    }
}

/// Opens the traces of an input whose packets shall go to a goal.
///
/// # Errors
/// Where the input holds no trace, or it and the goal do not go together.
pub(crate) fn open(
    input: &Input,
    scope: PacketScope,
    output: &PacketOutput,
) -> Result<Vec<OpenTrace>, GoalError> {
    if let PacketOutput::File { path, force } = output {
        let of_recording = match input {
            Input::Path(input) if is_same(input, path) => {
                return Err(GoalError::OutputIsInput { path: path.clone() });
            }
            Input::Path(input) => path.parent().is_some_and(|folder| is_same(input, folder)),
            Input::Stdin => false,
        };
        if !is_replaceable(path) && (of_recording || !force) {
            return Err(GoalError::OutputTaken {
                path: path.clone(),
                of_recording,
            });
        }
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

/// Whether nothing is lost with the file at `path`: it is not there, holds nothing, is none that
/// holds anything (a pipe), or begins with a packet of symbols (field 61) or maps (64).
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

/// Whether two paths are one file.
fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    real(one).is_some_and(|one| real(other) == Some(one))
}

/// An open goal.
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
                match WholeFile::typed(&path) {
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
