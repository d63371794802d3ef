//! `hprof conv`, `hprof info` and `hprof strip`: opens a dump, packed or not, and writes the result
//! to a file that gets its name once it is complete. Decides what can be overwritten and how damage
//! is reported. `hprof` parses the dump.

use std::io::{self, Write};
use std::path::PathBuf;

use crate::conversion::convert::Input;
use crate::error::{Classified, ErrorClass, ErrorFacts};
use crate::hprof::convert::{ConvertError, ConvertOptions, Converted};
use crate::hprof::info::Info;
use crate::hprof::records::HeaderError;
use crate::hprof::strip::{StripError, StripOptions, Stripped};
use crate::hprof::{DamageList, Ending};
use crate::import::{self, HprofInput, ImportError};
use crate::naming::frames::LookupControl;
use crate::results::findings::{self, Finding};
use crate::results::overwrite::{self, OverwriteError, Replace};
use crate::results::whole_file::WholeFile;

/// Destination of a dump.
pub enum Output {
    File {
        path: PathBuf,
        /// Whether to replace an existing file.
        force: bool,
    },
    /// A stream, such as standard output.
    Stream(Box<dyn Write + Send>),
}

/// Reason why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum HprofToolError {
    /// The input does not contain an HPROF or cannot be opened.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The dump does not have a header.
    #[error("cannot read {name}: {source}")]
    Header { name: String, source: HeaderError },
    /// The dump cannot be converted.
    #[error("cannot convert {name}: {source}")]
    Convert { name: String, source: ConvertError },
    /// The dump cannot be stripped.
    #[error("cannot strip {name}: {source}")]
    Strip { name: String, source: StripError },
    /// The output would overwrite a file.
    #[error(transparent)]
    Output(#[from] OverwriteError),
    /// The result cannot be written.
    #[error("cannot write {name}")]
    Write {
        name: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The user interrupted the command.
    #[error("interrupted; nothing was written")]
    Interrupted,
}

impl Classified for HprofToolError {
    fn facts(&self) -> ErrorFacts {
        match self {
            HprofToolError::Import(error) => error.facts(),
            HprofToolError::Header { .. } => ErrorFacts::new(ErrorClass::BadInput, "hprof-header")
                .with_help("fetch the file again; it might be truncated or overwritten"),
            HprofToolError::Convert { source, .. } => source.facts(),
            HprofToolError::Strip { source, .. } => source.facts(),
            HprofToolError::Output(error) => error.facts(),
            HprofToolError::Write { .. } => {
                ErrorFacts::new(ErrorClass::HostWrite, "output-unwritable")
                    .with_help("name a file in a writable directory with free space")
            }
            HprofToolError::Interrupted => ErrorFacts::new(ErrorClass::Interrupted, "interrupted"),
        }
    }
}

/// Result for a dump.
#[derive(Debug)]
pub struct Made<T> {
    /// Name of the input for messages.
    pub name: String,
    /// Result.
    pub what: T,
    /// Problems of the dump.
    pub findings: Vec<Finding>,
}

impl<T> Made<T> {
    /// Returns the class of the exit code; `None` if nothing is wrong.
    pub fn class(&self) -> Option<ErrorClass> {
        findings::class(&self.findings)
    }

    fn new(input: &HprofInput, what: T, damage: &DamageList, ending: Ending) -> Made<T> {
        Made {
            name: input.name.clone(),
            what,
            findings: findings(input, damage, ending),
        }
    }
}

/// Writes a dump of the Android dialect in the Java SE dialect.
///
/// # Errors
/// Returns an error if the input is not a dump of the Android dialect, or the result cannot be
/// written or would overwrite a file. A damaged dump is not an error.
pub fn convert(
    input: &Input,
    output: Output,
    options: ConvertOptions,
    control: &LookupControl,
) -> Result<Made<Converted>, HprofToolError> {
    let out = Out::open(input, output, control)?;
    let dump = open(input)?;
    out.with(&dump, |dump, out| {
        let done = crate::hprof::convert::convert(&dump.bytes, options, out);
        done.map_err(|source| HprofToolError::Convert {
            name: dump.name.clone(),
            source,
        })
    })
    .map(|done| {
        let (damage, ending) = (done.file.damage.clone(), done.file.ending);
        Made::new(&dump, done, &damage, ending)
    })
}

/// Writes a copy without the contents of arrays.
///
/// # Errors
/// Returns an error if the input is not a dump, or the copy cannot be written or would overwrite a
/// file. A damaged dump is not an error.
pub fn strip(
    input: &Input,
    output: Output,
    options: StripOptions,
    control: &LookupControl,
) -> Result<Made<Stripped>, HprofToolError> {
    let out = Out::open(input, output, control)?;
    let dump = open(input)?;
    out.with(&dump, |dump, out| {
        let done = crate::hprof::strip::strip(&dump.bytes, options, out);
        done.map_err(|source| HprofToolError::Strip {
            name: dump.name.clone(),
            source,
        })
    })
    .map(|done| {
        let (damage, ending) = (done.file.damage.clone(), done.file.ending);
        Made::new(&dump, done, &damage, ending)
    })
}

/// Returns the contents of a dump.
///
/// # Errors
/// Returns an error if the input is not a dump. A damaged dump is not an error.
pub fn info(input: &Input) -> Result<Made<Info>, HprofToolError> {
    let dump = open(input)?;
    let info = crate::hprof::info::info(&dump.bytes).map_err(|source| HprofToolError::Header {
        name: dump.name.clone(),
        source,
    })?;
    let (damage, ending) = (info.damage.clone(), info.ending);
    Ok(Made::new(&dump, info, &damage, ending))
}

fn open(input: &Input) -> Result<HprofInput, ImportError> {
    match input {
        Input::Path(path) => import::open_hprof(path),
        Input::Stdin => import::open_hprof_stream(io::stdin().lock(), "standard input"),
    }
}

/// Returns the problems of a dump as findings.
fn findings(input: &HprofInput, damage: &DamageList, ending: Ending) -> Vec<Finding> {
    let name = &input.name;
    let mut found = Vec::new();
    let mut add = |kind, message, help: &str| {
        found.push(Finding::new(kind, ErrorClass::BadInput, message).with_help(help));
    };
    const AGAIN: &str = "copy the file again from its source, or take another dump";
    if let Some(what) = &input.damage {
        add("input-damaged", format!("{name}: {what}"), AGAIN);
    }
    if let Some(first) = damage.first.first() {
        let more = match damage.count {
            1 => String::new(),
            count => format!(", and {} more", count - 1),
        };
        add(
            "hprof-damaged",
            format!("{name} is damaged: {first}{more}; the readable parts were read"),
            AGAIN,
        );
    } else if input.damage.is_none() && !ending.is_whole() {
        let what = match ending.dump {
            true => "does not have an end record",
            false => "does not contain a heap dump",
        };
        add(
            "hprof-unfinished",
            format!("{name} {what}: the dump was not finished, or a part is missing"),
            AGAIN,
        );
    }
    found
}

/// Open output. Writing fails once the user cancels.
struct Out<'a> {
    to: To,
    name: String,
    control: &'a LookupControl,
}

enum To {
    File(WholeFile),
    Stream(Box<dyn Write + Send>),
}

impl<'a> Out<'a> {
    fn open(
        input: &Input,
        output: Output,
        control: &'a LookupControl,
    ) -> Result<Self, HprofToolError> {
        let (to, name) = match output {
            Output::Stream(stream) => (To::Stream(stream), "standard output".to_owned()),
            Output::File { path, force } => {
                let replace = Replace::of_force(force);
                let existing = overwrite::check(&path, input.path(), replace)?;
                let name = path.display().to_string();
                match WholeFile::typed(&path, existing) {
                    Ok(file) => (To::File(file), name),
                    Err(source) => return Err(HprofToolError::Write { name, source }),
                }
            }
        };
        Ok(Out { to, name, control })
    }

    /// Runs `make` to write the output, and gives the file its name on success.
    fn with<T>(
        mut self,
        dump: &HprofInput,
        make: impl FnOnce(&HprofInput, &mut dyn Write) -> Result<T, HprofToolError>,
    ) -> Result<T, HprofToolError> {
        let made = make(dump, &mut self);
        if self.control.is_cancelled() {
            return Err(HprofToolError::Interrupted);
        }
        let made = made?;
        let finished = match self.to {
            To::Stream(mut stream) => stream.flush(),
            To::File(file) => file.finish(),
        };
        match finished {
            Ok(()) => Ok(made),
            Err(source) => Err(HprofToolError::Write {
                name: self.name,
                source,
            }),
        }
    }
}

impl Write for Out<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.control.is_cancelled() {
            return Err(io::Error::other("interrupted"));
        }
        match &mut self.to {
            To::File(file) => file.write(bytes),
            To::Stream(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            To::File(file) => file.flush(),
            To::Stream(stream) => stream.flush(),
        }
    }
}
