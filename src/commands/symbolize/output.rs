//! Destination of the packets of `symbolize`: a file or standard output.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use crate::console::{Console, ConsoleWriter};
use crate::conversion::convert::Input;
use crate::conversion::goal::PacketOutput;
use crate::error::{ErrorClass, Failure};

/// Extension of the file that is written next to a trace.
const SUFFIX: &str = ".symbols";

/// Requested destination of packets.
pub(crate) enum Asked {
    Stdout,
    File(PathBuf),
}

impl Asked {
    pub(crate) fn open(self, console: &Console, force: bool) -> (PacketOutput, Option<PathBuf>) {
        match self {
            Asked::Stdout => (
                PacketOutput::Stream(Box::new(ConsoleWriter(console.clone()))),
                None,
            ),
            Asked::File(path) => {
                let output = PacketOutput::File {
                    path: path.clone(),
                    force,
                };
                (output, Some(path))
            }
        }
    }
}

/// Returns the destination: the given one, or stdout if that is not a terminal, or a file next to
/// the trace and named after it.
///
/// # Errors
/// Returns an error if there is no destination, or another file would be overwritten.
pub(crate) fn asked(
    console: &Console,
    input: &Input,
    named: Option<PathBuf>,
) -> Result<Asked, Failure> {
    let usage = |message: &str, help: &str| {
        Err(Failure::new(ErrorClass::Usage, "usage", message).with_help(help))
    };
    match named {
        Some(path) if path == Path::new("-") && console.is_json() => usage(
            "--json and the packets cannot both go to standard output",
            "name a file with -o",
        ),
        Some(path) if path == Path::new("-") => Ok(Asked::Stdout),
        Some(path) => Ok(Asked::File(path)),
        None if !console.is_json() && !io::stdout().is_terminal() => Ok(Asked::Stdout),
        None => match input {
            Input::Path(path) => {
                let mut beside = path.clone().into_os_string();
                beside.push(SUFFIX);
                let beside = PathBuf::from(beside);
                match beside.is_symlink() {
                    true => usage(
                        &format!("{} is a symbolic link", beside.display()),
                        "name the file for the packets with -o",
                    ),
                    false => Ok(Asked::File(beside)),
                }
            }
            Input::Stdin => usage(
                "the packets of a trace from standard input have no place",
                "name a file with -o, or - for standard output",
            ),
        },
    }
}
