//! `hprof conv`, `hprof info`, `hprof strip`: opens the dump however it is packed, and writes
//! what becomes of it to a file that has its name once it is whole. Owns what may be
//! overwritten, and what damage means; what an HPROF says is `hprof`'s.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::conversion::convert::Input;
use crate::error::{Classified, ErrorClass, ErrorFacts};
use crate::hprof::convert::{ConvertError, ConvertOptions, Converted};
use crate::hprof::info::Info;
use crate::hprof::records::HeaderError;
use crate::hprof::strip::{StripError, StripOptions, Stripped};
use crate::hprof::{DamageList, Ending};
use crate::import::{self, HprofInput, ImportError};
use crate::naming::frames::LookupControl;
use crate::results::findings::Finding;
use crate::results::whole_file::WholeFile;

/// Where a dump goes.
pub enum Output {
    /// A file.
    File {
        /// Its path.
        path: PathBuf,
        /// Replace what is there.
        force: bool,
    },
    /// Whoever reads on.
    Stream(Box<dyn Write + Send>),
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum HprofToolError {
    /// The input holds no HPROF, or can't be opened.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The dump has no header.
    #[error("{name} cannot be read: {source}")]
    Header {
        /// The input.
        name: String,
        /// Why.
        source: HeaderError,
    },
    /// The dump can't be converted.
    #[error("{name} was not converted: {source}")]
    Convert {
        /// The input.
        name: String,
        /// Why.
        source: ConvertError,
    },
    /// The dump can't be stripped.
    #[error("{name} was not stripped: {source}")]
    Strip {
        /// The input.
        name: String,
        /// Why.
        source: StripError,
    },
    /// The input would be overwritten.
    #[error("{} is the dump itself", path.display())]
    OutputIsInput {
        /// The file.
        path: PathBuf,
    },
    /// Something else would be overwritten.
    #[error("{} is there already", path.display())]
    OutputTaken {
        /// The file.
        path: PathBuf,
    },
    /// The result can't be written.
    #[error("cannot write {name}")]
    Write {
        /// The file.
        name: String,
        /// What the system says.
        source: io::Error,
    },
    /// Whoever asked did not want to wait.
    #[error("interrupted; nothing was written")]
    Interrupted,
}

impl Classified for HprofToolError {
    fn facts(&self) -> ErrorFacts {
        match self {
            HprofToolError::Import(error) => error.facts(),
            HprofToolError::Header { .. } => ErrorFacts::new(ErrorClass::BadInput, "hprof-header")
                .with_help("it may be cut or overwritten: fetch it again"),
            HprofToolError::Convert { source, .. } => source.facts(),
            HprofToolError::Strip { source, .. } => source.facts(),
            HprofToolError::OutputIsInput { .. } => {
                ErrorFacts::new(ErrorClass::Usage, "output-is-input")
                    .with_help("name another file; the dump stays as it is")
            }
            HprofToolError::OutputTaken { .. } => {
                ErrorFacts::new(ErrorClass::Usage, "output-taken")
                    .with_help("name another file, or --force to overwrite it")
            }
            HprofToolError::Write { .. } => {
                ErrorFacts::new(ErrorClass::HostWrite, "output-unwritable")
                    .with_help("make room there, or name another file")
            }
            HprofToolError::Interrupted => ErrorFacts::new(ErrorClass::Interrupted, "interrupted"),
        }
    }
}

/// What came of a dump.
#[derive(Debug)]
pub struct Made<T> {
    /// The input, for people.
    pub name: String,
    /// What was made or found.
    pub what: T,
    /// What is wrong with the dump.
    pub findings: Vec<Finding>,
}

impl<T> Made<T> {
    /// What the exit code tells of; `None` where nothing is wrong.
    pub fn class(&self) -> Option<ErrorClass> {
        ErrorClass::first_of(self.findings.iter().filter_map(|finding| finding.class))
    }

    fn new(input: &HprofInput, what: T, damage: &DamageList, ending: Ending) -> Made<T> {
        Made {
            name: input.name.clone(),
            what,
            findings: findings(input, damage, ending),
        }
    }
}

/// Writes Android's dialect as Java SE's.
///
/// # Errors
/// Where there is no dump of Android's dialect, or the result can't be written or would replace
/// something. A damaged dump is no error.
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
/// Where there is no dump, or the copy can't be written or would replace something. A damaged
/// dump is no error.
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

/// Tells what a dump holds.
///
/// # Errors
/// Where there is no dump. A damaged one is no error.
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

/// What is wrong with a dump, in words.
fn findings(input: &HprofInput, damage: &DamageList, ending: Ending) -> Vec<Finding> {
    let name = &input.name;
    let mut found = Vec::new();
    let mut add = |kind, message, help: &str| {
        found.push(Finding {
            kind,
            class: Some(ErrorClass::BadInput),
            message,
            help: Some(help.to_owned()),
            pid: None,
        });
    };
    const AGAIN: &str = "copy it again from where it came, or take another dump";
    if let Some(what) = &input.damage {
        add("input-damaged", format!("{name}: {what}"), AGAIN);
    }
    if let Some(first) = damage.first.first() {
        let more = match damage.count {
            1 => String::new(),
            count => format!(", and at {} more places", count - 1),
        };
        add(
            "hprof-damaged",
            format!("{name} is damaged: {first}{more}; what can be read was"),
            AGAIN,
        );
    } else if input.damage.is_none() && !ending.is_whole() {
        let what = match ending.dump {
            true => "has no record that ends it",
            false => "has no heap dump in it",
        };
        add(
            "hprof-unfinished",
            format!("{name} {what}: whoever wrote it did not finish, or a part is missing"),
            AGAIN,
        );
    }
    found
}

/// An output that is open, and fails where its reader does not want to wait any longer.
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
                if let Input::Path(input) = input
                    && is_same(input, &path)
                {
                    return Err(HprofToolError::OutputIsInput { path });
                }
                if !force && holds_something(&path) {
                    return Err(HprofToolError::OutputTaken { path });
                }
                let name = path.display().to_string();
                match WholeFile::typed(&path) {
                    Ok(file) => (To::File(file), name),
                    Err(source) => return Err(HprofToolError::Write { name, source }),
                }
            }
        };
        Ok(Out { to, name, control })
    }

    /// Has it written, and gives it its name where that went well.
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

/// Whether two paths are one file.
fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    real(one).is_some_and(|one| real(other) == Some(one))
}

/// Whether something is lost with what is at `path`. A pipe or a device holds nothing.
fn holds_something(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|it| it.is_dir() || it.is_file() && it.len() > 0)
}
