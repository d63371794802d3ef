//! Opens any file or folder that can have a heap in it: a Perfetto trace, an HPROF or a pprof, raw
//! or in gzip, zstd, xz, ZIP or TAR, in a recording's folder, or on stdin; and texts of a phone in
//! any of those but TAR (a ZIP as a stream only). The crate owns detection and unpacking.
//! `perfetto-heap` decodes a trace; `android-hprof` decodes an HPROF.
//!
//! | function | gives |
//! |---|---|
//! | [`detect`] | the kind of a file, by its first bytes |
//! | [`open`], [`open_stream`] | the traces in a file, a folder or a stream |
//! | [`open_hprofs`], [`open_hprof_stream`] | heap dumps, as mapped or unpacked bytes |
//! | [`open_java`] | a Java heap of either kind |
//! | [`open_heaps`] | heaps of any kind |
//! | [`read_pprof`] | a pprof of any tool, as named stacks |
//! | [`TextInput`] | a text of a phone: its first bytes, then a stream in UTF-8, or the whole |
//! | [`share`] | one source, read at two places |
//!
//! # The method
//!
//! The first bytes decide, never the name. The decoder reads a trace twice, so anything that is not
//! a plain file is first unpacked to a temporary file that has no name; small ones stay in memory.
//! Members of an archive are streamed: no path in an archive becomes a path on this computer.
//! Nothing is allocated by a size that the input claims, and a budget bounds what is unpacked.
//!
//! | module | owns |
//! |---|---|
//! | `detect` | kinds, and the advice for each |
//! | `codec`, `parallel_gzip`, `archive`, `tar` | what is around a trace or a heap dump |
//! | `spool` | unpacked copies |
//! | `hprof`, `pprof`, `heaps` | heap dumps, pprofs, and whatever of them a file has |
//! | `shared` | one source for two readers |
//! | `text` | texts: how they are opened, unpacked, bounded and decoded |
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

pub use detect::{Kind, detect};
pub use heaps::{HeapSource, open_heaps, open_heaps_stream};
pub use hprof::{
    HprofInput, JavaSource, hprofs_in_folder, open_hprof, open_hprof_stream, open_hprofs,
    open_java, open_java_stream,
};
pub use pprof::{Pprof, PprofDamage, PprofInput, read_pprof};
pub use shared::share;
pub use text::{STDIN, STDIN_NAME, Text, TextInput, WholeText, is_folder};

use codec::{Codec, codec_at};
use heaptap_model::error::{Classified, ErrorClass, ErrorFacts};
use heaptap_model::folder::{MARKER, OWN_PREFIX, RAW_TRACE, SYMBOLIZED_TRACE};
use heaptap_model::near::nearest;
use heaptap_model::units::ByteSize;
use heaptap_model::untrusted::sanitize;
use perfetto_heap::Source;
use spool::{Budget, Spool};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Why an input gives no trace.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It can't be opened or read.
    #[error("cannot read {name}")]
    Unreadable {
        /// The input.
        name: String,
        /// What the system says.
        source: io::Error,
    },
    /// Its unpacked copy can't be written.
    #[error("cannot unpack {name} to a temporary file")]
    Unwritable {
        /// The input.
        name: String,
        /// What the system says.
        source: io::Error,
    },
    /// It is something else.
    #[error("{name} is no trace: it is {what}")]
    NotATrace {
        /// The input.
        name: String,
        /// What it is.
        what: Kind,
    },
    /// It is something else than an HPROF.
    #[error("{name} is no HPROF: it is {what}")]
    NotAnHprof {
        /// The input.
        name: String,
        /// What it is.
        what: Kind,
    },
    /// Neither a trace nor a pprof nor an HPROF.
    #[error("{name} holds no heap: it is {what}")]
    NotAHeap {
        /// The input.
        name: String,
        /// What it is.
        what: Kind,
    },
    /// Neither a trace nor an HPROF, where a Java heap is wanted.
    #[error("{name} holds no Java heap: it is {what}")]
    NotAJavaHeap {
        /// The input.
        name: String,
        /// What it is.
        what: Kind,
    },
    /// An archive or folder without an HPROF.
    #[error("{name} holds no HPROF{}", listing(.members))]
    NoHprofInside {
        /// The input.
        name: String,
        /// What it holds instead, at most a few names.
        members: Vec<String>,
    },
    /// An archive or folder with more than the one that is wanted.
    #[error("{name} holds several HPROFs{}", listing(.members))]
    SeveralHprofs {
        /// The input.
        name: String,
        /// Some of them.
        members: Vec<String>,
    },
    /// An archive or folder without a trace.
    #[error("{name} holds no trace{}", listing(.members))]
    NoTraceInside {
        /// The input.
        name: String,
        /// What it holds instead, at most a few names.
        members: Vec<String>,
    },
    /// A folder that a session has, and nothing in it.
    #[error("{name} holds no trace yet: the folder of a session that is not fetched")]
    NotFetched {
        /// The folder.
        name: String,
    },
    /// A compressed input of which nothing could be unpacked.
    #[error("{name} is damaged: {what}")]
    Damaged {
        /// The input.
        name: String,
        /// What is wrong.
        what: String,
    },
    /// Unpacked, it is larger than anything heaptap would write to a temporary folder.
    #[error("{name} unpacks to more than {most}")]
    TooLarge {
        /// The input.
        name: String,
        /// What an input of its size may take.
        most: ByteSize,
    },
}

fn listing(members: &[String]) -> String {
    match members {
        [] => String::new(),
        names => format!(" (it holds {})", names.join(", ")),
    }
}

impl ImportError {
    /// Of an input that the system does not give.
    pub fn unreadable(name: &str) -> impl Fn(io::Error) -> ImportError + Copy {
        move |source| ImportError::Unreadable {
            name: name.to_owned(),
            source,
        }
    }
}

/// What to do about a file or folder that the system does not give.
pub fn help_unreadable(path: impl AsRef<Path>, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => help_missing(path.as_ref()),
        io::ErrorKind::PermissionDenied => "allow this user to read it, then try again".to_owned(),
        _ => "copy it again from where it came".to_owned(),
    }
}

/// What may be meant by a path that is not there: a name almost like it, else the recordings in
/// that folder.
fn help_missing(path: &Path) -> String {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    let folder = parent.unwrap_or(Path::new("."));
    let Ok(entries) = std::fs::read_dir(folder) else {
        let shown = folder.display().to_string();
        let shown = sanitize(&shown);
        return match folder.is_dir() {
            true => format!("is the path right? The names in {shown} cannot be read"),
            false => format!("is the path right? {shown} is not a folder"),
        };
    };
    let names: Vec<String> = entries
        .flatten()
        .take(MOST_NAMES)
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.'))
        .collect();
    let in_folder = |name: &str| {
        let path = parent.unwrap_or(Path::new("")).join(name);
        sanitize(&path.display().to_string()).into_owned()
    };
    let wanted = path.file_name().and_then(|name| name.to_str());
    // Any letter is near any other.
    let wanted = wanted.filter(|wanted| wanted.len() > 2);
    let near = wanted.and_then(|wanted| nearest(wanted, names.iter().map(String::as_str)));
    if let Some(near) = near {
        return format!("did you mean {}?", in_folder(near));
    }
    let is_recording = |name: &&String| {
        let mut traces = IN_FOLDER.iter();
        traces.any(|trace| folder.join(name).join(trace).is_file())
    };
    let mut recordings: Vec<String> = names
        .iter()
        .filter(is_recording)
        .map(|n| in_folder(n))
        .collect();
    recordings.sort();
    recordings.truncate(archive::NAMED);
    match recordings.as_slice() {
        [] => "is the path right? Give a file, or the folder of a recording".to_owned(),
        there => format!("is the path right? Recordings there: {}", there.join(", ")),
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
                ErrorFacts::new(ErrorClass::HostWrite, "temporary-unwritable")
                    .with_help("make room in the temporary folder, or name another in TMPDIR")
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
                    "give the dump itself: *.hprof of a recording's folder, or what `am dumpheap` \
                     or `jmap -dump` wrote",
                )
            }
            ImportError::SeveralHprofs { .. } => {
                ErrorFacts::new(ErrorClass::BadInput, "several-hprofs")
                    .with_help("unpack the one that is meant, and give its file")
            }
            ImportError::NoTraceInside { members, .. } => {
                let help = match members.iter().any(|name| name.ends_with(".pb.gz")) {
                    true => detect::Kind::Pprof.help(),
                    false => {
                        "give the trace file itself: raw-trace of a recording's folder, or \
                         *.pftrace"
                    }
                };
                ErrorFacts::new(ErrorClass::BadInput, "no-trace-inside").with_help(help)
            }
            ImportError::NotFetched { .. } => {
                ErrorFacts::new(ErrorClass::NotFetched, "folder-not-fetched").with_help(
                    "`heaptap status` lists what is still on a phone, and says how to fetch it",
                )
            }
            ImportError::Damaged { .. } => ErrorFacts::new(ErrorClass::BadInput, "input-damaged")
                .with_help(
                    "copy it again from where it came; sizes and checksums tell whether it is whole",
                ),
            ImportError::TooLarge { .. } => {
                ErrorFacts::new(ErrorClass::BadInput, "input-too-large")
                    .with_help("unpack it yourself and give the file")
            }
        }
    }
}

/// A trace that an input holds.
pub struct OpenTrace {
    /// Its file name, for people.
    pub name: String,
    /// Its uncompressed bytes.
    pub source: Box<dyn Source>,
    /// What is wrong with the packing around it, where it could not all be unpacked.
    pub damage: Option<String>,
}

/// Names under which a recording's folder keeps its trace, the better one first.
const IN_FOLDER: [&str; 2] = [SYMBOLIZED_TRACE, RAW_TRACE];

/// Opens a file or a recording's folder. A bundle may hold several traces.
///
/// # Errors
/// Where nothing in it is a trace, or it can't be read.
pub fn open(path: &Path) -> Result<Vec<OpenTrace>, ImportError> {
    let name = path.display().to_string();
    let unreadable = ImportError::unreadable(&name);
    if std::fs::metadata(path).map_err(unreadable)?.is_dir() {
        return open(&trace_in_folder(path, &name)?);
    }
    let file = File::open(path).map_err(unreadable)?;
    // A pipe or a device can't be read twice.
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return open_stream(file, &name);
    }
    unpack(Box::new(file), &name, 0, &Budget::of(metadata.len()))
}

/// Opens what comes on a stream, stdin for one.
///
/// # Errors
/// As [`open`].
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

fn trace_in_folder(path: &Path, name: &str) -> Result<PathBuf, ImportError> {
    let size = |path: &PathBuf| {
        let metadata = std::fs::metadata(path).ok()?;
        metadata.is_file().then_some(metadata.len())
    };
    let files = || IN_FOLDER.iter().map(|file| path.join(file));
    let has_profiles = || pprof::in_folder(path).is_ok_and(|found| !found.is_empty());
    // Of an empty one the others may tell; where there are none, that it is empty.
    let found = files()
        .find(|path| size(path).is_some_and(|size| size > 0))
        .or_else(|| files().find(|path| size(path).is_some() && !has_profiles()));
    found.ok_or_else(|| {
        let members = names_in_folder(path);
        match members.is_empty() && path.join(MARKER).is_file() {
            true => ImportError::NotFetched {
                name: name.to_owned(),
            },
            false => ImportError::NoTraceInside {
                name: name.to_owned(),
                members,
            },
        }
    })
}

/// What a folder holds, at most a few names.
fn names_in_folder(path: &Path) -> Vec<String> {
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

/// Further names of a folder are not looked at for one that was meant.
const MOST_NAMES: usize = 10_000;
/// Packing inside packing: a bundle in gzip in a ZIP is deep enough.
const DEEPEST: u32 = 4;
/// How much of an input tells what it is.
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
