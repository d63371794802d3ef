//! Destination of packets for a trace: a separate file, a copy of the trace followed by them, or a
//! stream.

use std::io::{self, Read as _};
use std::path::Path;

use super::convert::Input;
use heaptap_base::error::{Classified, ErrorClass, ErrorFacts, mend_write};
use heaptap_input::{ImportError, OpenTrace};
use heaptap_results::destination::{Destination, OpenDestination};
use heaptap_results::overwrite::OverwriteError;
use heaptap_results::recorded;

/// Data to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketScope {
    /// Only the packets.
    Packets,
    /// The trace, followed by the packets.
    WholeTrace,
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

/// Opens the traces of an input, and the destination of their packets. Replaces a file that contains
/// packets.
///
/// # Errors
/// Returns an error if the input contains no trace, or is incompatible with the destination.
pub(crate) fn open(
    input: &Input,
    scope: PacketScope,
    output: Destination,
) -> Result<(Vec<OpenTrace>, OpenDestination), GoalError> {
    let existing = output.check(input.path(), is_replaceable)?;
    let traces = match input {
        Input::Path(path) => {
            let mut traces = heaptap_input::open(path)?;
            recorded::compare(path, &mut traces);
            traces
        }
        Input::Stdin => heaptap_input::open_stream(io::stdin().lock(), heaptap_input::STDIN_NAME)?,
    };
    if scope == PacketScope::WholeTrace && traces.len() > 1 {
        return Err(GoalError::SeveralTraces {
            name: match input {
                Input::Path(path) => path.display().to_string(),
                Input::Stdin => heaptap_input::STDIN_NAME.to_owned(),
            },
            traces: traces.len(),
        });
    }
    let name = output.name();
    match output.open(existing) {
        Ok(out) => Ok((traces, out)),
        Err(source) => Err(GoalError::Write { name, source }),
    }
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
