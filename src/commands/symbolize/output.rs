//! Where packets for a trace go, as it is typed, and standard output as a place for them. Shared
//! by `symbolize` and `deobfuscate`.

use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};

use crate::console::Console;
use crate::conversion::convert::Input;
use crate::conversion::goal::{PacketOutput, PacketScope};
use crate::error::{ErrorClass, Failure};

/// Flags of a command that makes packets for a trace.
#[derive(Debug, clap::Args)]
pub struct PacketsArgs {
    /// A recording's folder, a trace (also gzip, zstd, xz, in a ZIP or TAR), or - for stdin
    #[arg(value_name = "TRACE")]
    pub input: PathBuf,
    /// The same as -o
    #[arg(value_name = "OUT", conflicts_with_all = ["output", "into"])]
    pub out: Option<PathBuf>,
    /// The file for the packets, - for stdout [default: stdout; where that is a terminal,
    /// a file beside TRACE]
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Write the whole trace with the packets behind it to this file, - for stdout
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, conflicts_with = "output")]
    pub into: Option<PathBuf>,
    /// Overwrite a file that holds something else than packets
    #[arg(long)]
    pub force: bool,
}

impl PacketsArgs {
    /// What is read, how much is written, and the file that was named for it.
    pub(crate) fn places(&self) -> (Input, PacketScope, Option<PathBuf>) {
        let input = match self.input.as_path() == Path::new("-") {
            true => Input::Stdin,
            false => Input::Path(self.input.clone()),
        };
        let packets = || self.output.as_ref().or(self.out.as_ref());
        match &self.into {
            Some(into) => (input, PacketScope::WholeTrace, Some(into.clone())),
            None => (input, PacketScope::Packets, packets().cloned()),
        }
    }
}

/// Where packets go, as it was asked for.
pub(crate) enum Asked {
    Stdout,
    File(PathBuf),
}

impl Asked {
    pub(crate) fn open(self, console: &Console, force: bool) -> (PacketOutput, Option<PathBuf>) {
        match self {
            Asked::Stdout => (PacketOutput::Stream(stdout(console)), None),
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

/// Where packets shall go: what was named, else stdout where that is no terminal, else a file
/// beside the trace that is called after it.
///
/// # Errors
/// Where that is nowhere, or the place of something else.
pub(crate) fn asked(
    console: &Console,
    input: &Input,
    named: Option<PathBuf>,
    suffix: &str,
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
                beside.push(suffix);
                let beside = PathBuf::from(beside);
                match beside.is_symlink() {
                    true => usage(
                        &format!(
                            "{} is a symbolic link, which nobody named",
                            beside.display()
                        ),
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

/// Standard output as a place for bytes.
pub(crate) fn stdout(console: &Console) -> Box<dyn Write + Send> {
    Box::new(Stdout(console.clone()))
}

/// Standard output, as the console has it.
struct Stdout(Console);

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.stdout_is_closed() {
            // The console knows why, and tells it at the end.
            return Ok(bytes.len());
        }
        self.0.raw(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
