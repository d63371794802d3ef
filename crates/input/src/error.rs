//! Errors of inputs that do not provide the expected traces, heaps or text, and their help texts.

use super::detect::{self, Kind};
use super::directory::{IN_DIRECTORY, NAMED, known_text_in, recording_in, unfinished_in};
use heaptap_base::error::{Classified, ErrorClass, ErrorFacts};
use heaptap_base::suggest::nearest;
use heaptap_base::units::ByteSize;
use heaptap_base::untrusted::{sanitize, shell::quoted_path};
use std::io;
use std::path::Path;

/// Error when an input does not provide the expected traces, heaps or text.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The input cannot be opened or read.
    #[error("cannot read {name}")]
    Unreadable {
        name: String,
        /// Error from the operating system.
        source: io::Error,
    },
    /// The unpacked copy cannot be written.
    #[error("cannot unpack {name} to a temporary file")]
    Unwritable {
        name: String,
        /// Error from the operating system.
        source: io::Error,
    },
    /// The input is not a trace.
    #[error("{name} is not a trace: it is {what}")]
    NotATrace {
        name: String,
        /// Detected file type.
        what: Kind,
    },
    /// The input is not an HPROF.
    #[error("{name} is not an HPROF: it is {what}")]
    NotAnHprof {
        name: String,
        /// Detected file type.
        what: Kind,
    },
    /// The input is not a trace, pprof or HPROF.
    #[error("{name} does not contain a heap: it is {what}")]
    NotAHeap {
        name: String,
        /// Detected file type.
        what: Kind,
    },
    /// The input is neither a trace nor an HPROF, but a Java heap is required.
    #[error("{name} does not contain a Java heap: it is {what}")]
    NotAJavaHeap {
        name: String,
        /// Detected file type.
        what: Kind,
    },
    /// An archive or directory without an HPROF.
    #[error("{name} does not contain an HPROF{}", listing(.members))]
    NoHprofInside {
        name: String,
        /// Names of other members, at most a few.
        members: Vec<String>,
    },
    /// An archive or directory with several HPROFs when exactly one is required.
    #[error("{name} contains several HPROFs{}", listing(.members))]
    SeveralHprofs {
        name: String,
        /// Names of some of the HPROFs.
        members: Vec<String>,
    },
    /// An archive or directory without a trace.
    #[error("{name} is not a recording: it has no trace{}", listing(.members))]
    NoTraceInside {
        name: String,
        /// Names of other members, at most a few.
        members: Vec<String>,
    },
    /// The directory of a session that has not been fetched.
    #[error("{name} does not contain a trace yet: its session {session} has not been fetched")]
    NotFetched {
        name: String,
        /// Session that the directory belongs to.
        session: String,
    },
    /// A compressed input from which nothing could be unpacked.
    #[error("{name} is damaged: {what}")]
    Damaged {
        name: String,
        /// Description of the damage.
        what: String,
    },
    /// The unpacked input exceeds the size that heaptap writes to a temporary directory.
    #[error("{name} unpacks to more than {most}")]
    TooLarge {
        name: String,
        /// Limit for an input of this size.
        most: ByteSize,
    },
}

fn listing(members: &[String]) -> String {
    match members {
        [] => String::new(),
        names => format!(" (found: {})", names.join(", ")),
    }
}

impl ImportError {
    /// Returns a function that wraps an error from the operating system.
    pub fn unreadable(name: &str) -> impl Fn(io::Error) -> ImportError + Copy {
        move |source| ImportError::Unreadable {
            name: name.to_owned(),
            source,
        }
    }
}

/// Returns the help text for a file or directory that cannot be opened or read.
pub fn help_unreadable(path: impl AsRef<Path>, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => help_missing(path.as_ref()),
        io::ErrorKind::PermissionDenied => {
            "grant this user read permission and try again".to_owned()
        }
        _ => "copy it again from its source".to_owned(),
    }
}

/// Suggests an alternative to a missing path: a similar name, otherwise the recordings in the same
/// directory.
pub fn help_missing(path: &Path) -> String {
    help_with(path, true)
}

/// As [`help_missing`], for a path that cannot be a recording.
pub fn help_missing_file(path: &Path) -> String {
    help_with(path, false)
}

fn help_with(path: &Path, takes_recordings: bool) -> String {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    let directory = parent.unwrap_or(Path::new("."));
    let Ok(entries) = std::fs::read_dir(directory) else {
        let shown = directory.display().to_string();
        let shown = sanitize(&shown);
        return match directory.is_dir() {
            true => format!("check the path: cannot list the directory {shown}"),
            false => format!("check the path: {shown} is not a directory"),
        };
    };
    let names: Vec<String> = entries
        .flatten()
        .take(MAX_NAMES)
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.'))
        .collect();
    let in_directory = |name: &str| {
        let path = parent.unwrap_or(Path::new("")).join(name);
        sanitize(&path.display().to_string()).into_owned()
    };
    let wanted = path.file_name().and_then(|name| name.to_str());
    // Any single letter is similar to any other.
    let wanted = wanted.filter(|wanted| wanted.len() > 2);
    let near = wanted.and_then(|wanted| nearest(wanted, names.iter().map(String::as_str)));
    if let Some(near) = near {
        return format!("did you mean {}?", in_directory(near));
    }
    if !takes_recordings {
        return "check the path".to_owned();
    }
    let is_recording = |name: &&String| {
        let mut traces = IN_DIRECTORY.iter();
        traces.any(|trace| directory.join(name).join(trace).is_file())
    };
    let mut recordings: Vec<&String> = names.iter().filter(is_recording).collect();
    // The newest first.
    recordings.sort_by_cached_key(|name| {
        let modified = directory.join(name).metadata().and_then(|it| it.modified());
        (std::cmp::Reverse(modified.ok()), *name)
    });
    let more = recordings.len() > NAMED;
    recordings.truncate(NAMED);
    let mut named: Vec<String> = recordings
        .into_iter()
        .map(|name| in_directory(name))
        .collect();
    named.extend(more.then(|| "…".to_owned()));
    match named.as_slice() {
        [] => "check the path: it must be a file or a recording directory".to_owned(),
        there => format!(
            "check the path or use a recording in {}: {}",
            match parent {
                Some(parent) => sanitize(&parent.display().to_string()).into_owned(),
                None => "the current directory".to_owned(),
            },
            there.join(", ")
        ),
    }
}

impl Classified for ImportError {
    fn facts(&self) -> ErrorFacts {
        match self {
            ImportError::Unreadable { name, source } => {
                ErrorFacts::new(ErrorClass::BadInput, "input-unreadable")
                    .with_help(help_unreadable(name, source))
            }
            ImportError::Unwritable { .. } => {
                ErrorFacts::new(ErrorClass::HostWrite, "temporary-unwritable").with_help(format!(
                    "free space in {}, or set another directory in `TMPDIR`",
                    std::env::temp_dir().display()
                ))
            }
            ImportError::NotATrace { what, .. } => {
                ErrorFacts::new(ErrorClass::BadInput, "not-a-trace").with_help(what.help())
            }
            ImportError::NotAnHprof { what, .. } => {
                ErrorFacts::new(ErrorClass::BadInput, "not-an-hprof")
                    .with_help(what.help_with_hprof())
            }
            ImportError::NotAHeap { what, .. } => {
                ErrorFacts::new(ErrorClass::BadInput, "not-a-heap")
                    .with_help(what.help_with_heaps())
            }
            ImportError::NotAJavaHeap { what, .. } => {
                ErrorFacts::new(ErrorClass::BadInput, "not-a-heap")
                    .with_help(what.help_with_hprof())
            }
            ImportError::NoHprofInside { .. } => {
                ErrorFacts::new(ErrorClass::BadInput, "no-hprof-inside").with_help(
                    "pass the dump itself: *.hprof from a recording directory, or the output of \
                     `am dumpheap` or `jmap -dump`",
                )
            }
            ImportError::SeveralHprofs { name, .. } => ErrorFacts::new(
                ErrorClass::BadInput,
                "several-hprofs",
            )
            .with_help(match Path::new(name).is_dir() {
                true => "pass one of these files",
                false => "unpack the archive, and pass the HPROF that you need",
            }),
            ImportError::NoTraceInside { name, members } => {
                let directory = Path::new(name);
                let help = match (unfinished_in(directory), recording_in(directory)) {
                    (Some(trace), _) => format!(
                        "a `record --host` still runs, or was killed and left its trace: `heaptap convert {}`",
                        quoted_path(&trace)
                    ),
                    (None, Some(recording)) => format!(
                        "pass one of the recordings in it, such as {}",
                        quoted_path(&recording)
                    ),
                    _ if members
                        .iter()
                        .any(|name| name.starts_with("java_heap_dump.")) =>
                    {
                        "pass the recording or HPROF that these profiles are of".to_owned()
                    }
                    _ if members.iter().any(|name| name.starts_with("bugreport")) => {
                        detect::BUGREPORT_HELP.to_owned()
                    }
                    _ if members.iter().any(|name| name.ends_with(".pb.gz")) => {
                        detect::Kind::Pprof.help().to_owned()
                    }
                    _ => known_text_in(directory, members).unwrap_or_else(|| {
                        "pass the trace file itself: raw-trace from a recording directory, or \
                         *.pftrace"
                            .to_owned()
                    }),
                };
                ErrorFacts::new(ErrorClass::BadInput, "no-trace-inside").with_help(help)
            }
            ImportError::NotFetched { session, .. } => {
                ErrorFacts::new(ErrorClass::NotFetched, "directory-not-fetched").with_help(format!(
                    "end the recording and fetch it: `heaptap stop {session}`"
                ))
            }
            ImportError::Damaged { .. } => ErrorFacts::new(ErrorClass::BadInput, "input-damaged")
                .with_help("copy it again from its source and compare size or checksum"),
            ImportError::TooLarge { .. } => {
                ErrorFacts::new(ErrorClass::BadInput, "input-too-large")
                    .with_help("unpack it yourself and pass the file")
            }
        }
    }
}

/// Maximum number of names in a directory that are compared with a missing path.
const MAX_NAMES: usize = 10_000;
