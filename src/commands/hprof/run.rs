//! `hprof conv`, `hprof info` and `hprof strip`: opens a dump, packed or not, and writes the result
//! to a file that gets its name once it is complete. Decides what can be overwritten and how damage
//! is reported. `hprof` parses the dump.

use std::io::{self, Write};

use crate::heaps::java::heap::UNCUT;
use crate::names::frames::LookupControl;
use crate::recording::conversion::convert::Input;
use android_hprof::convert::{ConvertOptions, Converted};
use android_hprof::info::Info;
use android_hprof::strip::{StripOptions, Stripped};
use android_hprof::{DamageList, Ending, Rewritten};
use heaptap_base::error::{Classified, ErrorClass, Failure};
use heaptap_input::{HprofInput, ImportError};
use heaptap_results::destination::{Destination, OpenDestination, unwritable};
use heaptap_results::findings::{self, Finding};

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
) -> Result<Made<Converted>, Failure> {
    rewrite(
        input,
        output,
        control,
        "convert",
        |dump, out| android_hprof::convert::convert(&dump.bytes, options, out),
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
) -> Result<Made<Stripped>, Failure> {
    rewrite(
        input,
        output,
        control,
        "strip",
        |dump, out| android_hprof::strip::strip(&dump.bytes, options, out),
        |done| &done.file,
    )
}

/// Opens the output, then the input, and runs `make`. `file` returns the written file of its result,
/// which gets its name on success; `verb` is what `make` does, for messages.
fn rewrite<T, E: Classified>(
    input: &Input,
    output: Destination,
    control: &LookupControl,
    verb: &str,
    make: impl FnOnce(&HprofInput, &mut dyn Write) -> Result<T, E>,
    file: impl FnOnce(&T) -> &Rewritten,
) -> Result<Made<T>, Failure> {
    let existing = output.check(input.path(), |_| false)?;
    let name = output.name();
    let mut out = match output.open(existing) {
        Ok(to) => Out { to, control },
        Err(source) => return Err(unwritable(name, &source)),
    };
    let dump = open(input)?;
    let made = make(&dump, &mut out);
    if control.is_cancelled() {
        let message = "interrupted; nothing was written";
        return Err(Failure::new(
            ErrorClass::Interrupted,
            "interrupted",
            message,
        ));
    }
    let made = made.map_err(|error| {
        let failure = Failure::from(error);
        let message = format!("cannot {verb} {}: {}", dump.name, failure.message);
        Failure { message, ..failure }
    })?;
    if let Err(source) = out.to.finish() {
        return Err(unwritable(name, &source));
    }
    let file = file(&made);
    let findings = findings(&dump, &file.damage, file.ending);
    Ok(Made::new(&dump, made, findings))
}

/// Returns the contents of a dump.
///
/// # Errors
/// Returns an error if the input is not a dump. A damaged dump is not an error.
pub fn info(input: &Input) -> Result<Made<Info>, Failure> {
    let dump = open(input)?;
    let info = android_hprof::info::info(&dump.bytes).map_err(|error| {
        let message = format!("cannot read {}: {error}", dump.name);
        Failure::new(ErrorClass::BadInput, "hprof-header", message)
            .with_help("fetch the file again; it might be truncated or overwritten")
            .caused_by(&error)
    })?;
    let findings = findings(&dump, &info.damage, info.ending);
    Ok(Made::new(&dump, info, findings))
}

fn open(input: &Input) -> Result<HprofInput, ImportError> {
    match input {
        Input::Path(path) => heaptap_input::open_hprof(path),
        Input::Stdin => {
            heaptap_input::open_hprof_stream(io::stdin().lock(), heaptap_input::STDIN_NAME)
        }
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
    if let Some(what) = &input.damage
        && !what.ends_with(heaptap_input::BYTES_BEHIND)
    {
        add("input-damaged", format!("{name}: {what}"), AGAIN);
    }
    if !damage.is_empty() && android_hprof::lacks_array_contents(&input.bytes) {
        let message = format!("{name}: the contents of its arrays were cut out, as KOOM does");
        add("hprof-damaged", message, UNCUT);
    } else if let Some(first) = damage.first.first() {
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
