//! `hprof conv`, `hprof info` and `hprof strip`: opens a dump, packed or not, and writes the result
//! to a file that gets its name once it is complete. Decides what can be overwritten and how damage
//! is reported. `hprof` parses the dump.

use std::io::{self, Write};

use crate::conversion::convert::Input;
use crate::error::{Classified, ErrorClass, ErrorFacts};
use crate::hprof::convert::{ConvertError, ConvertOptions, Converted};
use crate::hprof::info::Info;
use crate::hprof::records::HeaderError;
use crate::hprof::strip::{StripError, StripOptions, Stripped};
use crate::hprof::{DamageList, Ending, Rewritten};
use crate::import::{self, HprofInput, ImportError};
use crate::naming::frames::LookupControl;
use crate::results::destination::{Destination, OpenDestination};
use crate::results::findings::{self, Finding};
use crate::results::overwrite::OverwriteError;

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

    fn new(input: &HprofInput, what: T, findings: Vec<Finding>) -> Made<T> {
        Made {
            name: input.name.clone(),
            what,
            findings,
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
    output: Destination,
    options: ConvertOptions,
    control: &LookupControl,
) -> Result<Made<Converted>, HprofToolError> {
    rewrite(
        input,
        output,
        control,
        |dump, out| crate::hprof::convert::convert(&dump.bytes, options, out),
        |name, source| HprofToolError::Convert { name, source },
        |done| &done.file,
    )
}

/// Writes a copy without the contents of arrays.
///
/// # Errors
/// Returns an error if the input is not a dump, or the copy cannot be written or would overwrite a
/// file. A damaged dump is not an error.
pub fn strip(
    input: &Input,
    output: Destination,
    options: StripOptions,
    control: &LookupControl,
) -> Result<Made<Stripped>, HprofToolError> {
    rewrite(
        input,
        output,
        control,
        |dump, out| crate::hprof::strip::strip(&dump.bytes, options, out),
        |name, source| HprofToolError::Strip { name, source },
        |done| &done.file,
    )
}

/// Opens the output, then the input, and runs `make`. `file` returns the written file of its result,
/// which gets its name on success; `failed` returns the error for an input.
fn rewrite<T, E>(
    input: &Input,
    output: Destination,
    control: &LookupControl,
    make: impl FnOnce(&HprofInput, &mut dyn Write) -> Result<T, E>,
    failed: impl FnOnce(String, E) -> HprofToolError,
    file: impl FnOnce(&T) -> &Rewritten,
) -> Result<Made<T>, HprofToolError> {
    let existing = output.check(input.path(), |_| false)?;
    let name = output.name();
    let mut out = match output.open(existing) {
        Ok(to) => Out { to, control },
        Err(source) => return Err(HprofToolError::Write { name, source }),
    };
    let dump = open(input)?;
    let made = make(&dump, &mut out);
    if control.is_cancelled() {
        return Err(HprofToolError::Interrupted);
    }
    let made = made.map_err(|error| failed(dump.name.clone(), error))?;
    if let Err(source) = out.to.finish() {
        return Err(HprofToolError::Write { name, source });
    }
    let file = file(&made);
    let findings = findings(&dump, &file.damage, file.ending);
    Ok(Made::new(&dump, made, findings))
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
    let findings = findings(&dump, &info.damage, info.ending);
    Ok(Made::new(&dump, info, findings))
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
    to: OpenDestination,
    control: &'a LookupControl,
}

impl Write for Out<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.control.is_cancelled() {
            return Err(io::Error::other("interrupted"));
        }
        self.to.writer().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.writer().flush()
    }
}
