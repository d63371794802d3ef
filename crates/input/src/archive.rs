//! Traces inside ZIP and TAR archives. Perfetto's `bundle` writes a TAR of the trace. It can also
//! contain symbols and deobfuscation as separate traces, which are read as if they were appended to
//! the trace. Members are identified by content, not by name, and only streamed: no path in an
//! archive becomes a path on the host. Texts do not have a signature, so the text of a ZIP is
//! selected by name.

use super::codec::Codec;
use super::detect::{Kind, detect};
use super::spool::{Budget, Spool};
use super::tar::Tar;
use super::{HEAD, ImportError, OpenTrace, unpack};
use perfetto_heap::Source;
use std::io::{Read, Seek};

/// Maximum number of members that an error names.
pub(super) const NAMED: usize = 5;
/// Maximum number of members that are examined.
const MAX_MEMBERS: usize = 10_000;

/// Maximum number of traces, because each one is kept open.
const MAX_TRACES: usize = 64;

/// Prefixes of members that belong to the trace of the bundle, in the order in which they are
/// appended.
const COMPANIONS: [&str; 2] = ["symbols", "deobfuscation"];

pub(super) fn open_tar(
    source: Box<dyn Source>,
    name: &str,
    depth: u32,
    budget: &Budget,
) -> Result<Vec<OpenTrace>, ImportError> {
    let mut found = Traces::new(name, budget);
    each_in_tar(source, &mut found)?;
    found.traces(depth)
}

pub(super) fn open_zip(
    source: Box<dyn Source>,
    name: &str,
    depth: u32,
    budget: &Budget,
) -> Result<Vec<OpenTrace>, ImportError> {
    let mut found = Traces::new(name, budget);
    each_in_zip(source, name, &mut found)?;
    found.traces(depth)
}

/// Receiver of the members of an archive.
pub(super) trait Members {
    /// Reads a member, which begins with `head`, if the receiver supports it.
    fn add(&mut self, name: String, head: Vec<u8>, rest: impl Read) -> Result<(), ImportError>;

    fn unread(&mut self) -> &mut Unread;
}

/// Parts of an archive that were not read.
#[derive(Default)]
pub(super) struct Unread {
    /// Names of a few members without what is sought.
    pub(super) others: Vec<String>,
    /// Reason why a part cannot be read.
    pub(super) damage: Option<String>,
}

impl Unread {
    pub(super) fn add(&mut self, name: String) {
        if self.others.len() < NAMED {
            self.others.push(name);
        }
    }

    fn limit_members(&mut self) {
        self.damage = Some(format!("only its first {MAX_MEMBERS} files were read"));
    }
}

/// Passes a file to `members`.
fn pass(
    members: &mut impl Members,
    name: String,
    mut stream: impl Read,
) -> Result<(), ImportError> {
    let mut head = Vec::new();
    if let Err(error) = stream.by_ref().take(HEAD as u64).read_to_end(&mut head) {
        members.unread().damage = Some(format!("{name}: {error}"));
    }
    members.add(name, head, stream)
}

/// Passes the files of a TAR to `members`, in order.
pub(super) fn each_in_tar(
    source: impl Read,
    members: &mut impl Members,
) -> Result<(), ImportError> {
    let mut archive = Tar::new(source);
    let mut left = MAX_MEMBERS;
    loop {
        match archive.next() {
            Ok(Some(_)) if left == 0 => {
                members.unread().limit_members();
                break;
            }
            Ok(Some(Some(mut file))) => {
                left -= 1;
                let member = std::mem::take(&mut file.name);
                pass(members, member, file)?;
            }
            Ok(Some(None)) => left -= 1,
            Ok(None) => break,
            Err(error) => {
                members.unread().damage = Some(format!("the TAR breaks off: {error}"));
                break;
            }
        }
    }
    Ok(())
}

/// Returns why a ZIP cannot be opened. A ZIP is read from its end.
pub(super) fn unopened(error: &zip::result::ZipError) -> String {
    match error {
        zip::result::ZipError::InvalidArchive(_) => {
            "the directory at the end of the ZIP is missing or damaged".to_owned()
        }
        other => other.to_string(),
    }
}

/// Passes the files of a ZIP to `members`, in order.
pub(super) fn each_in_zip(
    source: impl Read + Seek,
    name: &str,
    members: &mut impl Members,
) -> Result<(), ImportError> {
    let mut archive = zip::ZipArchive::new(source).map_err(|error| ImportError::Damaged {
        name: name.to_owned(),
        what: unopened(&error),
    })?;
    if archive.len() > MAX_MEMBERS {
        members.unread().limit_members();
    }
    for at in 0..archive.len().min(MAX_MEMBERS) {
        match archive.by_index(at) {
            Ok(file) if file.is_file() => {
                let member = match file.name() {
                    Ok(name) => name.into_owned(),
                    Err(_) => format!("member {at}"),
                };
                pass(members, member, file)?;
            }
            Ok(_) => {}
            Err(error) => members.unread().damage = Some(error.to_string()),
        }
    }
    Ok(())
}

/// Bugreport member that contains the name of the main text.
const MAIN_ENTRY: &str = "main_entry.txt";
/// Maximum number of bytes of the name read from [`MAIN_ENTRY`].
const LONGEST_NAME: u64 = 4 << 10;

/// Returns the index of the main text in a ZIP: the text of a bugreport, or the only text in the
/// ZIP.
pub(super) fn one_text<R: Read + Seek>(archive: &mut zip::ZipArchive<R>) -> Option<usize> {
    let mut texts: Vec<(usize, String)> = Vec::new();
    let mut main = None;
    for at in 0..archive.len().min(MAX_MEMBERS) {
        // A damaged member cannot be the main text.
        let Ok(member) = archive.by_index(at) else {
            continue;
        };
        if !member.is_file() {
            continue;
        }
        let Ok(name) = member.name().map(|name| name.into_owned()) else {
            continue;
        };
        if name == MAIN_ENTRY {
            let mut text = String::new();
            // If this fails, the member names decide.
            let _ = member.take(LONGEST_NAME).read_to_string(&mut text);
            main = Some(text.trim().to_owned());
        } else if name.ends_with(".txt") || name.ends_with(".log") {
            texts.push((at, name));
        }
    }
    let named = texts.iter().find(|(_, name)| Some(name) == main.as_ref());
    let is_report = |name: &str| file_name(name).starts_with("bugreport");
    let report = || texts.iter().find(|(_, name)| is_report(name));
    let alone = || texts.first().filter(|_| texts.len() == 1);
    let found = named.or_else(report).or_else(alone);
    found.map(|(at, _)| *at)
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
        let wanted = match (kind, Codec::of(kind)) {
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
    matches!(kind, Kind::Trace | Kind::Zip | Kind::Tar) || Codec::of(kind).is_some()
}

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_base::error::Classified as _;
    use std::io::{Cursor, Write};

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
