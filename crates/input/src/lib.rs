//! Opens any file or directory that can contain a heap: a Perfetto trace, an HPROF or a pprof. The
//! input can be raw or in gzip, zstd, xz, ZIP or TAR, in a recording directory, or on stdin. The
//! crate also opens device texts, raw or in any of those except TAR, and the sections of bug
//! reports. It owns detection and unpacking. `perfetto-heap` decodes traces; `android-hprof` decodes
//! HPROFs.
//!
//! | function | result |
//! |---|---|
//! | [`detect`] | the file type, detected from the first bytes |
//! | [`open`], [`open_stream`] | the traces in a file, directory or stream |
//! | [`open_hprofs`], [`open_hprof_stream`] | heap dumps, as mapped or unpacked bytes |
//! | [`open_java`] | Java heaps from traces or HPROFs |
//! | [`open_heaps`] | heaps of any type |
//! | [`read_pprof`] | a pprof from any tool, as named stacks |
//! | [`TextInput`] | a device text: its first bytes, then a UTF-8 stream or the whole text |
//! | [`share`] | two independent readers of one source |
//!
//! # The method
//!
//! Only the first bytes decide the file type, never the name. The decoder reads a trace twice.
//! Therefore, any input other than a plain file is first unpacked to an unnamed temporary file;
//! small inputs stay in memory. Archive members are streamed: no path in an archive becomes a path
//! on the host. Allocations never follow a size that the input claims, and a budget limits the
//! unpacked bytes.
//!
//! | module | owns |
//! |---|---|
//! | `detect` | file types and the help text for each |
//! | `codec`, `parallel_gzip`, `archive`, `tar` | compression and archives around a trace or heap dump |
//! | `spool` | unpacked copies |
//! | `hprof`, `pprof`, `heaps` | heap dumps, pprofs, and files that can contain any of them |
//! | `shared` | two readers of one source |
//! | [`bugreport`] | the sections of a bug report |
//! | `text` | opening, unpacking, limiting and decoding texts |
//!
//! # A worked example
//!
//! ```
//! use heaptap_input::{Kind, detect};
//!
//! assert_eq!(detect(b"JAVA PROFILE 1.0.3\0"), Kind::Hprof);
//! assert_eq!(detect(&[0x1f, 0x8b, 8, 0]), Kind::Gzip);
//! assert_eq!(detect(b"hello"), Kind::Text);
//! ```

mod archive;
pub mod bugreport;
mod codec;
mod detect;
mod heaps;
mod hprof;
mod parallel_gzip;
mod pprof;
mod shared;
mod spool;
mod tar;
mod text;

pub use codec::BYTES_BEHIND;
pub use detect::{Foreign, Kind, KnownText, REPORT_MARK, detect};
pub use heaps::{HeapSource, open_heaps, open_heaps_stream, open_java, open_java_stream};
pub use hprof::{
    HprofInput, hprofs_in_directory, open_hprof, open_hprof_stream, open_hprofs, several_hprofs,
};
pub use pprof::{Pprof, PprofDamage, PprofInput, read_pprof};
pub use shared::share;
pub use text::{STDIN, STDIN_NAME, Text, TextInput, WholeText, is_directory};

use codec::{Codec, codec_at};
use heaptap_base::bytes::open_regular;
use heaptap_base::directory::{OWN_PREFIX, RAW_TRACE, SYMBOLIZED_TRACE, is_unfinished, session_of};
use heaptap_base::error::{Classified, ErrorClass, ErrorFacts};
use heaptap_base::suggest::nearest;
use heaptap_base::units::ByteSize;
use heaptap_base::untrusted::{sanitize, shell::quoted_path};
use perfetto_heap::Source;
use spool::{Budget, Spool};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

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
    let more = recordings.len() > archive::NAMED;
    recordings.truncate(archive::NAMED);
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

/// A trace found in an input.
pub struct OpenTrace {
    /// File name for display.
    pub name: String,
    /// Uncompressed bytes.
    pub source: Box<dyn Source>,
    /// Damage to the compression or archive around the trace, if not everything could be unpacked.
    pub damage: Option<String>,
}

/// Names of the trace in a recording directory, the preferred one first.
const IN_DIRECTORY: [&str; 2] = [SYMBOLIZED_TRACE, RAW_TRACE];

/// Opens a file or a recording directory. A bundle can contain several traces.
///
/// # Errors
/// Returns an error if nothing in the input is a trace, or if it cannot be read.
pub fn open(path: &Path) -> Result<Vec<OpenTrace>, ImportError> {
    let name = path.display().to_string();
    let unreadable = ImportError::unreadable(&name);
    if std::fs::metadata(path).map_err(unreadable)?.is_dir() {
        return open(&trace_in_directory(path, &name)?);
    }
    let file = File::open(path).map_err(unreadable)?;
    // A pipe or a device cannot be read twice.
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return open_stream(file, &name);
    }
    unpack(Box::new(file), &name, 0, &Budget::of(metadata.len()))
}

/// Opens a stream, for example stdin.
///
/// # Errors
/// Returns the same errors as [`open`].
pub fn open_stream(stream: impl Read, name: &str) -> Result<Vec<OpenTrace>, ImportError> {
    let spooled = Spool::new(name, &Budget::of_stream()).copy(stream)?;
    if let Some(what) = spooled.damage {
        return Err(ImportError::Damaged {
            name: name.to_owned(),
            what,
        });
    }
    unpack(spooled.source, name, 0, &Budget::of(spooled.size))
}

/// Returns the trace of a recording directory.
///
/// # Errors
/// Returns an error if the directory has no trace.
pub fn trace_in_directory(path: &Path, name: &str) -> Result<PathBuf, ImportError> {
    let size = |path: &PathBuf| {
        let metadata = std::fs::metadata(path).ok()?;
        metadata.is_file().then_some(metadata.len())
    };
    let files = || IN_DIRECTORY.iter().map(|file| path.join(file));
    let has_profiles = || pprof::in_directory(path).is_ok_and(|found| !found.is_empty());
    // Skip an empty trace if the other one has data. If no trace has data, report it as empty,
    // unless the directory has profiles.
    let found = files()
        .find(|path| size(path).is_some_and(|size| size > 0))
        .or_else(|| files().find(|path| size(path).is_some() && !has_profiles()));
    found.ok_or_else(|| {
        not_fetched(path, name).unwrap_or_else(|| ImportError::NoTraceInside {
            name: name.to_owned(),
            members: names_in_directory(path),
        })
    })
}

/// Returns how to read the first text in a directory whose kind is known.
fn known_text_in(directory: &Path, members: &[String]) -> Option<String> {
    // Members of an archive are not names of files.
    let mut files = members.iter().filter(|_| directory.is_dir());
    files.find_map(|member| {
        let mut head = Vec::new();
        let file = open_regular(&directory.join(member)).ok()?;
        file.take(HEAD as u64).read_to_end(&mut head).ok()?;
        match detect::detect(&head) {
            kind @ Kind::Known(_) => Some(format!("{member} is {kind}; {}", kind.help())),
            _ => None,
        }
    })
}

/// Returns the first recording in a directory of recordings, as `run` writes them: of one device, or
/// of each.
fn recording_in(path: &Path) -> Option<PathBuf> {
    let directories = |path: &Path| {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        let directories = entries.map(|entry| entry.path()).take(MAX_DIRECTORIES);
        let mut directories: Vec<PathBuf> = directories.filter(|path| path.is_dir()).collect();
        directories.sort();
        directories
    };
    let is_recording = |path: &PathBuf| IN_DIRECTORY.iter().any(|file| path.join(file).is_file());
    let own = directories(path);
    let found = own.iter().find(|path| is_recording(path)).cloned();
    found.or_else(|| {
        own.iter()
            .flat_map(|path| directories(path))
            .find(is_recording)
    })
}

/// Returns the error for the directory of a session that has not been fetched, and has at most
/// companion data; `None` for other directories.
pub fn not_fetched(path: &Path, name: &str) -> Option<ImportError> {
    let session = session_of(path)?;
    let is_some = |found: io::Result<Vec<PathBuf>>| found.is_ok_and(|files| !files.is_empty());
    let has_heaps = IN_DIRECTORY.iter().any(|file| path.join(file).is_file())
        || is_some(hprofs_in_directory(path))
        || is_some(pprof::in_directory(path));
    (!has_heaps).then(|| ImportError::NotFetched {
        name: name.to_owned(),
        session,
    })
}

/// Returns the trace of a `record --host` that was killed: no other recording writes it where its
/// directory is.
fn unfinished_in(path: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(path).ok()?.flatten();
    let parts = entries.filter(|entry| is_unfinished(&entry.file_name()));
    let mut traces = parts.map(|part| part.path().join(RAW_TRACE));
    traces.find(|trace| {
        trace
            .metadata()
            .is_ok_and(|found| found.is_file() && found.len() > 0)
    })
}

/// Returns the names of a few files in a directory.
fn names_in_directory(path: &Path) -> Vec<String> {
    let mut members: Vec<String> = std::fs::read_dir(path)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .filter(|name| !name.starts_with(OWN_PREFIX))
        .collect();
    members.sort();
    members.truncate(archive::NAMED);
    members
}

/// Maximum number of entries of a directory among which recordings are searched.
const MAX_DIRECTORIES: usize = 200;
/// Maximum number of names in a directory that are compared with a missing path.
const MAX_NAMES: usize = 10_000;
/// Maximum nesting of compression and archives. A bundle in gzip in a ZIP is deep enough.
const DEEPEST: u32 = 4;
/// Number of first bytes used to detect the file type.
const HEAD: usize = 64 << 10;

fn unpack(
    mut source: Box<dyn Source>,
    name: &str,
    depth: u32,
    budget: &Budget,
) -> Result<Vec<OpenTrace>, ImportError> {
    let unreadable = ImportError::unreadable(name);
    let mut head = Vec::new();
    source
        .by_ref()
        .take(HEAD as u64)
        .read_to_end(&mut head)
        .map_err(unreadable)?;
    source.seek(SeekFrom::Start(0)).map_err(unreadable)?;
    let kind = detect(&head);
    if let Some(codec) = codec_at(kind, depth, name)? {
        let packed = io::BufReader::with_capacity(HEAD, source);
        let reader = codec.reader(packed).map_err(unreadable)?;
        return unpack_stream(reader, name, codec, depth, budget);
    }
    match kind {
        Kind::Trace => Ok(vec![OpenTrace {
            name: name.to_owned(),
            source,
            damage: None,
        }]),
        Kind::Zip => archive::open_zip(source, name, depth, budget),
        Kind::Tar => archive::open_tar(source, name, depth, budget),
        what => Err(ImportError::NotATrace {
            name: name.to_owned(),
            what,
        }),
    }
}

fn unpack_stream(
    reader: impl Read,
    name: &str,
    codec: Codec,
    depth: u32,
    budget: &Budget,
) -> Result<Vec<OpenTrace>, ImportError> {
    let spooled = Spool::new(name, budget).copy(reader)?;
    let damage = codec.damage(name, spooled.size, spooled.damage)?;
    let mut traces = unpack(spooled.source, name, depth + 1, budget)?;
    if damage.is_some()
        && let Some(last) = traces.last_mut()
    {
        last.damage = damage;
    }
    Ok(traces)
}
