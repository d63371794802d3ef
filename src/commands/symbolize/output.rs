//! Destination of the packets of `symbolize`: a file or standard output.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use crate::console::Console;
use crate::recording::conversion::convert::Input;
use heaptap_base::error::Failure;

/// Extension of the file that is written next to a trace.
const SUFFIX: &str = ".symbols";

/// Returns the file for the packets; `None` is standard output. Without a name it is standard output
/// if that is not a terminal, otherwise a file next to the trace and named after it.
///
/// # Errors
/// Returns an error if there is no destination, or another file would be overwritten.
pub(crate) fn asked(
    console: &Console,
    input: &Input,
    named: Option<PathBuf>,
) -> Result<Option<PathBuf>, Failure> {
    let usage = |message: &str, help: &str| Err(Failure::usage(message).with_help(help));
    match named {
        Some(path) if path == Path::new("-") && console.is_json() => usage(
            "--json and the packets cannot both go to standard output",
            "name a file with -o",
        ),
        Some(path) if path == Path::new("-") => Ok(None),
        Some(path) => Ok(Some(path)),
        None if !console.is_json() && !io::stdout().is_terminal() => Ok(None),
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
                    false => Ok(Some(beside)),
                }
            }
            Input::Stdin => usage(
                "the packets of a trace from standard input have no place",
                "name a file with -o, or - for standard output",
            ),
        },
    }
}
