//! Libraries in ZIP archives: APK, AAB, APKS, AAR, Gradle's native-debug-symbols.zip. Finds the
//! members with symbols and reads their bytes. Nothing is ever written under the name of a member;
//! the name is only shown, and matched with names of libraries.
//!
//! A stored member is a part of the mapped archive. Of a compressed one, only the beginning is
//! decompressed to find its build ID. All of it is decompressed when it is opened: into memory, or
//! if it is large into an unnamed file.

use super::content::{Content, Entry, Step, Symbols};
use super::reject_reason::RejectReason;
use crate::symbolize::file::{self, Bytes};
use flate2::bufread::DeflateDecoder;
use heaptap_base::units::ByteSize;
use std::borrow::Cow;
use std::io::{self, Cursor, Read, Write as _};

/// Maximum nesting of archives: an APK in an APKS in a ZIP.
const MAX_DEPTH: usize = 3;
/// Maximum number of members examined.
const MAX_MEMBERS: usize = 100_000;
/// Maximum size of a member. A debug build of a browser has 3 GB.
const MAX_SIZE: u64 = 4 << 30;
/// Maximum size of a member decompressed in memory; larger ones go to a file.
const MAX_SIZE_IN_MEMORY: u64 = 32 << 20;
/// Maximum bytes of an archive decompressed only to identify members.
const MAX_UNPACKED: u64 = 512 << 20;
/// Maximum compression ratio of Deflate; larger claims are false.
const HIGHEST_RATIO: u64 = 1032;
/// Bytes at the beginning of a library that contain its header, segments and notes.
const BEGINNING: u64 = 64 << 10;

/// File extensions of app members without symbols, of which there are thousands.
const DULL: [&str; 20] = [
    "arsc", "class", "css", "dex", "gif", "html", "java", "jpeg", "jpg", "js", "json", "kt", "mp3",
    "mp4", "ogg", "otf", "png", "ttf", "webp", "xml",
];

/// Returns whether a file begins like a ZIP archive.
pub(super) fn is_archive(head: &[u8]) -> bool {
    head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06")
}

/// Returns whether a file begins as gzip, xz, zstd, bzip2, LZ4 or 7-Zip.
pub(super) fn is_packed(head: &[u8]) -> bool {
    const HEADS: [&[u8]; 6] = [
        b"\x1f\x8b\x08",
        b"\xfd7zXZ",
        b"\x28\xb5\x2f\xfd",
        b"BZh",
        b"\x04\x22\x4d\x18",
        b"7z\xbc\xaf\x27\x1c",
    ];
    HEADS.iter().any(|start| head.starts_with(start))
}

/// Returns whether a file has the name of an archive that can contain libraries: a `.jar` in a
/// source tree is skipped.
pub(super) fn has_archive_name(name: &str) -> bool {
    const ENDINGS: [&str; 7] = ["aab", "aar", "apk", "apkm", "apks", "xapk", "zip"];
    let ending = ending(name);
    ENDINGS.iter().any(|e| ending.eq_ignore_ascii_case(e))
}

fn ending(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(_, ending)| ending)
}

/// Returns the members with symbols.
///
/// # Errors
/// Returns an error if the archive cannot be read at all; an unreadable member is one of the
/// entries.
pub(super) fn read(archive: &Bytes) -> Result<Vec<Entry>, RejectReason> {
    let mut reading = Reading {
        entries: Vec::new(),
        members: 0,
        unpacked: 0,
    };
    reading.archive(archive, "", &[])?;
    Ok(reading.entries)
}

/// Returns the bytes of a member: decompressed, or a part of the archive.
///
/// # Errors
/// Returns [`RejectReason::Damaged`] or [`RejectReason::TooLarge`].
pub(super) fn open(archive: &Bytes, steps: &[Step]) -> Result<Bytes, RejectReason> {
    let mut bytes = archive.clone();
    for step in steps {
        bytes = step.open(&bytes)?;
    }
    Ok(bytes)
}

/// State of reading an archive and those within it.
struct Reading {
    entries: Vec<Entry>,
    members: usize,
    unpacked: u64,
}

impl Reading {
    fn archive(&mut self, bytes: &Bytes, prefix: &str, outer: &[Step]) -> Result<(), RejectReason> {
        let damaged = |error: zip::result::ZipError| RejectReason::Damaged(error.to_string());
        let mut archive = zip::ZipArchive::new(Cursor::new(&**bytes)).map_err(damaged)?;
        for at in 0..archive.len() {
            self.members += 1;
            if self.members > MAX_MEMBERS {
                return Ok(());
            }
            let name = match archive.name_for_index(at) {
                Some(Ok(name)) => name.into_owned(),
                _ => continue,
            };
            let dull = ending(&name);
            if name.ends_with('/') || DULL.iter().any(|e| dull.eq_ignore_ascii_case(e)) {
                continue;
            }
            let name = format!("{prefix}{name}");
            // An invalid member is reported only if its name matches a library.
            let content = match archive.by_index_raw(at) {
                Ok(member) => match Step::from_member(&member) {
                    Ok(step) => {
                        let steps = [outer, &[step]].concat();
                        match self.member(bytes, &name, &steps) {
                            Ok(Some(content)) => {
                                self.entries.push(Entry {
                                    name,
                                    steps,
                                    content,
                                });
                                continue;
                            }
                            Ok(None) => continue,
                            Err(why_not) => why_not,
                        }
                    }
                    Err(why_not) => why_not,
                },
                Err(error) => RejectReason::Damaged(error.to_string()),
            };
            self.entries.push(Entry {
                name,
                steps: Vec::new(),
                content: Content::refused(content),
            });
        }
        Ok(())
    }

    /// Identifies a member; `None` if it does not have symbols.
    fn member(
        &mut self,
        archive: &Bytes,
        name: &str,
        steps: &[Step],
    ) -> Result<Option<Content>, RejectReason> {
        let step = steps.last().expect("a member has its own step");
        let head = step.beginning(archive, 8)?;
        if is_archive(&head) {
            if steps.len() < MAX_DEPTH && has_archive_name(name) {
                if step.is_deflated {
                    self.spend(step.size)?;
                }
                self.archive(&step.open(archive)?, &format!("{name}!"), steps)?;
            }
            return Ok(None);
        }
        let is_text = head.starts_with(b"MODULE ");
        if !is_text && !head.starts_with(b"\x7fELF") {
            return Ok(None);
        }
        // Thousands of members can share their bytes.
        self.spend(BEGINNING.min(step.size))?;
        if !step.is_deflated {
            let facts = file::identify(&step.open(archive)?)?;
            return Ok(Some(Content::Symbols(Box::new(Symbols::new(&facts)))));
        }
        let mut beginning = step.beginning(archive, BEGINNING)?.into_owned();
        let is_whole = beginning.len() as u64 == step.size;
        if !is_whole && !is_text {
            without_sections(&mut beginning);
        }
        let mut symbols = match file::identify(&beginning) {
            Ok(facts) => Symbols::new(&facts),
            Err(error) if is_whole => return Err(error.into()),
            Err(_) => Symbols {
                build_id: Vec::new(),
                debug_id: None,
                knowledge: None,
            },
        };
        if !is_whole && symbols.build_id.is_empty() && !is_text {
            // No note at the beginning: it comes later, or there is none.
            self.spend(step.size)?;
            symbols = Symbols::new(&file::identify(&step.open(archive)?)?);
        } else if !is_whole {
            symbols.knowledge = is_text.then_some(symbols.knowledge).flatten();
        }
        Ok(Some(Content::Symbols(Box::new(symbols))))
    }

    /// Counts bytes decompressed only to identify members.
    fn spend(&mut self, bytes: u64) -> Result<(), RejectReason> {
        self.unpacked = self.unpacked.saturating_add(bytes);
        match self.unpacked > MAX_UNPACKED {
            true => Err(RejectReason::TooLarge(ByteSize(bytes))),
            false => Ok(()),
        }
    }
}

impl Step {
    fn from_member(member: &zip::read::ZipFile<'_, impl Read>) -> Result<Step, RejectReason> {
        let is_deflated = match member.compression() {
            zip::CompressionMethod::Stored => false,
            zip::CompressionMethod::Deflated => true,
            other => {
                return Err(RejectReason::Damaged(format!(
                    "unsupported compression method {other:?}"
                )));
            }
        };
        if member.encrypted() {
            return Err(RejectReason::Damaged("encrypted".to_owned()));
        }
        let Some(offset) = member.data_start() else {
            return Err(RejectReason::Damaged("no data".to_owned()));
        };
        let step = Step {
            offset,
            packed: member.compressed_size(),
            size: member.size(),
            crc: member.crc32(),
            is_deflated,
        };
        let possible = match is_deflated {
            true => step.size <= step.packed.saturating_mul(HIGHEST_RATIO),
            false => step.size == step.packed,
        };
        match possible {
            true => Ok(step),
            false => Err(RejectReason::Damaged("contradictory sizes".to_owned())),
        }
    }

    /// Returns the stored bytes from the archive.
    fn packed(&self, archive: &Bytes) -> Result<Bytes, RejectReason> {
        let range = usize::try_from(self.offset).ok().and_then(|start| {
            let length = usize::try_from(self.packed).ok()?;
            Some(start..start.checked_add(length)?)
        });
        let cut = || RejectReason::Damaged("extends beyond the end of the archive".to_owned());
        range.and_then(|range| archive.slice(range)).ok_or_else(cut)
    }

    /// Returns the first bytes of the member, up to a maximum.
    fn beginning<'a>(&self, archive: &'a Bytes, most: u64) -> Result<Cow<'a, [u8]>, RejectReason> {
        let packed = self.packed(archive)?;
        if !self.is_deflated {
            let start = usize::try_from(self.offset).expect("packed() has sliced it");
            let length = packed.len().min(most as usize);
            return Ok(Cow::Borrowed(&archive[start..start + length]));
        }
        let mut beginning = Vec::new();
        DeflateDecoder::new(&packed[..])
            .take(most.min(self.size))
            .read_to_end(&mut beginning)
            .map_err(|error| RejectReason::Damaged(error.to_string()))?;
        Ok(Cow::Owned(beginning))
    }

    fn open(&self, archive: &Bytes) -> Result<Bytes, RejectReason> {
        let packed = self.packed(archive)?;
        if !self.is_deflated {
            return Ok(packed);
        }
        if self.size > MAX_SIZE {
            return Err(RejectReason::TooLarge(ByteSize(self.size)));
        }
        let unpacked = match self.size <= MAX_SIZE_IN_MEMORY {
            true => self.unpack_into_memory(&packed).map(Bytes::from),
            false => self.unpack_into_file(&packed),
        };
        unpacked.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::UnexpectedEof => RejectReason::Damaged(error.to_string()),
            // The archive is valid, but the host does not have space for the member.
            kind => RejectReason::Unreadable(kind),
        })
    }

    /// Decompresses in one step, which takes half the time.
    fn unpack_into_memory(&self, packed: &[u8]) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; self.size as usize];
        let unpacked = libdeflater::Decompressor::new()
            .deflate_decompress(packed, &mut bytes)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        self.check(unpacked as u64, libdeflater::crc32(&bytes))?;
        Ok(bytes)
    }

    fn unpack_into_file(&self, packed: &[u8]) -> io::Result<Bytes> {
        let mut file = tempfile::tempfile()?;
        self.unpack(packed, &mut file)?;
        file.flush()?;
        Bytes::of_temporary(file)
    }

    /// Decompresses at most the claimed size, and checks size and checksum.
    fn unpack(&self, packed: &[u8], into: &mut dyn io::Write) -> io::Result<()> {
        let mut from = DeflateDecoder::new(packed).take(self.size + 1);
        let mut crc = libdeflater::Crc::new();
        let mut piece = vec![0; 256 << 10];
        let mut size = 0;
        loop {
            let length = from.read(&mut piece)?;
            if length == 0 {
                break;
            }
            size += length as u64;
            crc.update(&piece[..length]);
            into.write_all(&piece[..length])?;
        }
        self.check(size, crc.sum())
    }

    fn check(&self, size: u64, crc: u32) -> io::Result<()> {
        let what = match (size == self.size, crc == self.crc) {
            (true, true) => return Ok(()),
            (false, _) => "size differs from the archive's directory",
            (true, false) => "checksum differs from the archive's directory",
        };
        Err(io::Error::new(io::ErrorKind::InvalidData, what))
    }
}

/// Removes the sections from the header at the beginning of an ELF file: their table is at the end.
fn without_sections(beginning: &mut [u8]) {
    const CLASS: usize = 4;
    let table = match beginning.get(CLASS) {
        Some(1) => 32..36,
        _ => 40..48,
    };
    if let Some(offset) = beginning.get_mut(table) {
        offset.fill(0);
    }
}
