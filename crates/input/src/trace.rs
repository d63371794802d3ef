//! Traces in files, streams, recording directories and archives. Perfetto's `bundle` writes a TAR of
//! the trace. It can also contain symbols and deobfuscation as separate traces, which are read as if
//! they were appended to the trace.

use super::archive::{Members, Unread, each_in_tar, each_in_zip, file_name};
use super::codec::{Codec, codec_at};
use super::detect::{HEAD, Kind, detect};
use super::directory::{IN_DIRECTORY, names_in_directory};
use super::error::ImportError;
use super::hprof::hprofs_in_directory;
use super::pprof;
use super::spool::{Budget, Spool};
use heaptap_base::directory::session_of;
use perfetto_heap::Source;
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

/// A trace found in an input.
pub struct OpenTrace {
    /// File name for display.
    pub name: String,
    /// Uncompressed bytes.
    pub source: Box<dyn Source>,
    /// Damage to the compression or archive around the trace, if not everything could be unpacked.
    pub damage: Option<String>,
}

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
    unpack(
        Box::new(file),
        &name,
        0,
        &Budget::from_packed(metadata.len()),
    )
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
    unpack(spooled.source, name, 0, &Budget::from_packed(spooled.size))
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

pub(super) fn unpack(
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
        Kind::Zip => open_zip(source, name, depth, budget),
        Kind::Tar => open_tar(source, name, depth, budget),
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

/// Maximum number of traces, because each one is kept open.
const MAX_TRACES: usize = 64;

/// Prefixes of members that belong to the trace of the bundle, in the order in which they are
/// appended.
const COMPANIONS: [&str; 2] = ["symbols", "deobfuscation"];

fn open_tar(
    source: Box<dyn Source>,
    name: &str,
    depth: u32,
    budget: &Budget,
) -> Result<Vec<OpenTrace>, ImportError> {
    let mut found = Traces::new(name, budget);
    each_in_tar(source, &mut found)?;
    found.traces(depth)
}

fn open_zip(
    source: Box<dyn Source>,
    name: &str,
    depth: u32,
    budget: &Budget,
) -> Result<Vec<OpenTrace>, ImportError> {
    let mut found = Traces::new(name, budget);
    each_in_zip(source, name, &mut found)?;
    found.traces(depth)
}

struct Member {
    name: String,
    source: Box<dyn Source>,
    damage: Option<String>,
}

/// Traces of an archive and their companions.
struct Traces<'a> {
    archive: &'a str,
    budget: &'a Budget,
    traces: Vec<Member>,
    companions: Vec<(usize, Box<dyn Source>)>,
    unread: Unread,
}

impl Members for Traces<'_> {
    /// Reads a member if it is a trace, packed or not, or a companion of one.
    fn add(&mut self, name: String, head: Vec<u8>, rest: impl Read) -> Result<(), ImportError> {
        let companion = COMPANIONS
            .iter()
            .position(|start| file_name(&name).starts_with(start));
        let kind = detect(&head);
        let wanted = match (kind, Codec::from_kind(kind)) {
            (Kind::Trace, _) => true,
            // Bug reports contain many packed logs.
            (_, Some(codec)) => codec
                .head(&head)
                .is_none_or(|inner| is_promising(detect(&inner))),
            // Allow an archive inside an archive, such as a bundle in a bug report.
            (Kind::Zip | Kind::Tar, _) => true,
            _ => companion.is_some() && !head.is_empty(),
        };
        if !wanted {
            self.unread.add(name);
            return Ok(());
        }
        if self.traces.len() + self.companions.len() >= MAX_TRACES {
            self.unread.damage = Some(format!(
                "only the first {MAX_TRACES} traces in the archive were read"
            ));
            return Ok(());
        }
        let mut spool = Spool::new(self.archive, self.budget);
        let damage = spool.append((&head[..]).chain(rest))?;
        let spooled = spool.finish(damage.map(|what| format!("{name}: {what}")))?;
        match companion {
            Some(order) => self.companions.push((order, spooled.source)),
            None => self.traces.push(Member {
                name,
                source: spooled.source,
                damage: spooled.damage,
            }),
        }
        Ok(())
    }

    fn unread(&mut self) -> &mut Unread {
        &mut self.unread
    }
}

impl<'a> Traces<'a> {
    fn new(archive: &'a str, budget: &'a Budget) -> Self {
        Traces {
            archive,
            budget,
            traces: Vec::new(),
            companions: Vec::new(),
            unread: Unread::default(),
        }
    }

    fn traces(mut self, depth: u32) -> Result<Vec<OpenTrace>, ImportError> {
        self.companions.sort_by_key(|companion| companion.0);
        let single = self.traces.len() == 1;
        let mut found = Vec::new();
        let (mut refused, mut damaged) = (None, None);
        for member in self.traces {
            let mut source = member.source;
            let mut damage = member.damage;
            if single && !self.companions.is_empty() {
                let mut spool = Spool::new(self.archive, self.budget);
                spool.append(source)?;
                for (_, companion) in self.companions.drain(..) {
                    damage = spool.append(companion)?.or(damage);
                }
                source = spool.finish(None)?.source;
            }
            let name = format!("{}:{}", self.archive, member.name);
            match unpack(source, &name, depth + 1, self.budget) {
                Ok(traces) => found.extend(traces.into_iter().map(|mut trace| {
                    trace.damage = trace.damage.or(damage.take());
                    trace
                })),
                Err(error @ (ImportError::Unwritable { .. } | ImportError::TooLarge { .. })) => {
                    return Err(error);
                }
                Err(error) => {
                    if let ImportError::Damaged { .. } = error {
                        damaged.get_or_insert_with(|| error.to_string());
                    }
                    refused = Some(error);
                    self.unread.add(member.name);
                }
            }
        }
        if let Some(last) = found.last_mut() {
            last.damage = last.damage.take().or(self.unread.damage).or(damaged);
            return Ok(found);
        }
        let Unread { others, damage } = self.unread;
        if let (None, Some(error), [_]) = (&damage, refused, &others[..]) {
            return Err(error);
        }
        let name = self.archive.to_owned();
        Err(match damage.or(damaged) {
            Some(what) => ImportError::Damaged { name, what },
            None => ImportError::NoTraceInside {
                name,
                members: others,
            },
        })
    }
}

fn is_promising(kind: Kind) -> bool {
    matches!(kind, Kind::Trace | Kind::Zip | Kind::Tar) || Codec::from_kind(kind).is_some()
}

#[cfg(test)]
mod tests {
    use super::super::archive::MAX_MEMBERS;
    use super::*;
    use heaptap_base::error::Classified as _;
    use std::io::{Cursor, Write as _};

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    fn tar_of(members: &[(String, Vec<u8>)]) -> Vec<u8> {
        let mut out = tar::Builder::new(Vec::new());
        for (name, bytes) in members {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            out.append_data(&mut header, name, &bytes[..]).unwrap();
        }
        out.into_inner().unwrap()
    }

    /// Returns a trace whose packets have this many bytes in total.
    fn trace(size: usize) -> Vec<u8> {
        [&[0x0a, 0x66, 0x50, 1, 0x7a, 98][..], &[0; 98]]
            .concat()
            .repeat(size / 104)
    }

    fn open(members: &[(String, Vec<u8>)], budget: &Budget) -> Result<usize, ImportError> {
        let source = Box::new(Cursor::new(tar_of(members)));
        open_tar(source, "x.tar", 0, budget).map(|traces| traces.len())
    }

    #[test]
    fn members_share_one_budget() {
        let members: Vec<_> = (0..8)
            .map(|n| (format!("{n}.gz"), gzip(&trace(100_000))))
            .collect();
        assert_eq!(open(&members, &Budget::new(1_000_000)).unwrap(), 8);
        // Each one would fit on its own.
        let error = open(&members, &Budget::new(500_000)).unwrap_err();
        assert_eq!(error.kind(), "input-too-large", "{error}");
    }

    #[test]
    fn packed_logs_are_not_unpacked_and_traces_are_counted() {
        let log = gzip(&b"I/Zygote: a line of a log\n".repeat(5000));
        let mut members: Vec<_> = (0..50)
            .map(|n| (format!("log.{n}.gz"), log.clone()))
            .collect();
        members.push(("t.pftrace".to_owned(), trace(1000)));
        assert_eq!(open(&members, &Budget::new(2000)).unwrap(), 1);
        let many: Vec<_> = (0..MAX_TRACES + 9)
            .map(|n| (format!("{n}.pftrace"), trace(200)))
            .collect();
        let found = open(&many, &Budget::new(1 << 20)).unwrap();
        assert_eq!(found, MAX_TRACES);
    }

    #[test]
    fn what_is_beyond_the_limit_of_members_or_damaged_is_told_beside_a_trace() {
        let damage_of = |members: &[(String, Vec<u8>)]| {
            let source = Box::new(Cursor::new(tar_of(members)));
            let mut traces = open_tar(source, "x.tar", 0, &Budget::new(1 << 20)).unwrap();
            traces.pop().unwrap().damage
        };
        let mut members = vec![("t.pftrace".to_owned(), trace(1000))];
        members.resize_with(MAX_MEMBERS, || ("notes.txt".to_owned(), Vec::new()));
        assert_eq!(damage_of(&members), None, "as many as are read");
        members.push(("one.more".to_owned(), Vec::new()));
        assert!(damage_of(&members).unwrap().contains("10000"));
        let cut = b"PK\x03\x04 and so on".to_vec();
        let of_texts = tar_of(&[("notes.txt".to_owned(), Vec::new())]);
        let members = [
            members[0].clone(),
            ("cut.zip".to_owned(), cut),
            ("texts.tar".to_owned(), of_texts),
        ];
        assert!(damage_of(&members).unwrap().contains("cut.zip"));
    }
}
