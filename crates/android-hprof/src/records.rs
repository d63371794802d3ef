//! The grammar of an HPROF file: header and top-level records, with IDs of 4 or 8 bytes, for all
//! versions. [`super::sub_records`] has the sub-records of heap dumps. Borrows from the file, keeps
//! nothing and never panics; unreadable records become [`Damage`] with an offset.
//!
//! ```text
//! header   magic, NUL, u4 bytes of an id, u8 milliseconds since 1970
//! record   u1 tag, u4 microseconds, u4 length, body
//! ```
//! All numbers are big-endian. Unknown tags are skipped by their length. The grammar handles these
//! files:
//! - A dump record of length 0 whose writer ended before it knew the length: the rest of the file
//!   is its body. (A converter leaves empty records of length 0 too; another record follows those.)
//! - `HEAP_DUMP` (0x0C) over 4 GiB: its length is written modulo 2^32.
//! - A sub-record that crosses the declared end of its record: [`Records::continue_at`].

use std::fmt;
use std::ops::Range;

/// Size of an ID: 4 bytes in all Android dumps, the size of a pointer in HotSpot's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdSize {
    /// 32 bits.
    Four,
    /// 64 bits.
    Eight,
}

impl IdSize {
    /// Returns the number of bytes.
    #[inline]
    pub fn bytes(self) -> usize {
        match self {
            IdSize::Four => 4,
            IdSize::Eight => 8,
        }
    }

    /// Returns the ID at the start of these bytes.
    #[inline]
    pub fn read(self, bytes: &[u8]) -> Option<u64> {
        match self {
            IdSize::Four => Some(u32::from_be_bytes(*bytes.first_chunk()?).into()),
            IdSize::Eight => Some(u64::from_be_bytes(*bytes.first_chunk()?)),
        }
    }

    /// Appends an ID.
    #[inline]
    pub(crate) fn put(self, out: &mut Vec<u8>, id: u64) {
        out.extend_from_slice(&id.to_be_bytes()[8 - self.bytes()..]);
    }

    /// Returns all IDs in these bytes; a remainder at the end is ignored.
    pub fn each(self, bytes: &[u8]) -> impl ExactSizeIterator<Item = u64> + '_ {
        bytes
            .chunks_exact(self.bytes())
            .map(move |id| id.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte)))
    }

    /// Returns the index of the first of the IDs in these bytes that is `id`.
    pub fn position(self, bytes: &[u8], id: u64) -> Option<usize> {
        match self {
            IdSize::Four => {
                let id = u32::try_from(id).ok()?.to_be_bytes();
                bytes.as_chunks().0.iter().position(|other| *other == id)
            }
            IdSize::Eight => {
                let id = id.to_be_bytes();
                bytes.as_chunks().0.iter().position(|other| *other == id)
            }
        }
    }
}

/// The header of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header<'a> {
    /// Version text without the NUL, such as `JAVA PROFILE 1.0.2`; ASCII.
    pub version: &'a str,
    /// Size of an ID.
    pub id_size: IdSize,
    /// Time of the dump, in milliseconds since 1970.
    pub time_ms: u64,
    /// Size of the header in bytes, which is the offset of the first record.
    pub bytes: usize,
}

/// Reason why a file has no HPROF header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The file begins with something else.
    #[error("the file does not begin with \"JAVA PROFILE 1.0\" and a NUL")]
    NotHprof,
    /// The file ends within the header.
    #[error("the file ends within the header")]
    CutShort,
    /// IDs have neither 4 nor 8 bytes.
    #[error("its IDs have {0} bytes instead of 4 or 8")]
    IdSize(u32),
}

/// Start of the header in every version.
const MAGIC: &[u8] = b"JAVA PROFILE 1.0";

/// Maximum length of the version text in bytes.
const MAX_VERSION_LENGTH: usize = 32;

impl<'a> Header<'a> {
    /// Reads the header of a file.
    ///
    /// # Errors
    /// Returns an error if the file does not have a valid header.
    pub fn read(file: &'a [u8]) -> Result<Header<'a>, HeaderError> {
        if !file.starts_with(MAGIC) {
            return Err(match MAGIC.starts_with(file) && !file.is_empty() {
                true => HeaderError::CutShort,
                false => HeaderError::NotHprof,
            });
        }
        let text = &file[..file.len().min(MAX_VERSION_LENGTH)];
        let end = match text.iter().position(|&byte| byte == 0) {
            Some(end) => end,
            None if text.len() < MAX_VERSION_LENGTH => return Err(HeaderError::CutShort),
            None => return Err(HeaderError::NotHprof),
        };
        let version = match std::str::from_utf8(&text[..end]) {
            Ok(version) if version.bytes().all(|b| (0x20..0x7f).contains(&b)) => version,
            _ => return Err(HeaderError::NotHprof),
        };
        let mut rest = Cursor::new(file, end + 1);
        let id_size = match rest.u4().ok_or(HeaderError::CutShort)? {
            4 => IdSize::Four,
            8 => IdSize::Eight,
            other => return Err(HeaderError::IdSize(other)),
        };
        let time_ms = rest.u8().ok_or(HeaderError::CutShort)?;
        Ok(Header {
            version,
            id_size,
            time_ms,
            bytes: rest.at(),
        })
    }

    /// Returns whether it is the version that only Android writes.
    pub fn is_android(&self) -> bool {
        self.version == "JAVA PROFILE 1.0.3"
    }
}

/// Something that could not be read, and its offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    /// Offset of the record or sub-record in the (unpacked) file.
    pub at: u64,
    /// Kind of damage.
    pub kind: DamageKind,
}

/// Kinds of damage of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DamageKind {
    /// The file ends within the record.
    CutShort,
    /// The body of a top-level record is too short for its contents.
    ShortBody(u8),
    /// A sub-record with an unknown tag: the rest of its record cannot be read, because sub-records
    /// have no length.
    UnknownSubRecord(u8),
    /// A field, static, constant or array of a basic type that does not exist.
    UnknownType(u8),
    /// A sub-record extends past the end of its record into an apparent next record.
    Overrun,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at;
        match self.kind {
            DamageKind::CutShort => write!(f, "the file ends within the record at 0x{at:x}"),
            DamageKind::ShortBody(tag) => {
                write!(f, "record 0x{tag:02x} at 0x{at:x} is too short")
            }
            DamageKind::UnknownSubRecord(tag) => {
                write!(f, "unknown heap-dump tag 0x{tag:02x} at 0x{at:x}")
            }
            DamageKind::UnknownType(code) => {
                write!(f, "unknown basic type {code} in the record at 0x{at:x}")
            }
            DamageKind::Overrun => write!(f, "the record at 0x{at:x} overlaps the next one"),
        }
    }
}

/// Tags of top-level records.
#[allow(missing_docs)]
pub mod tag {
    pub const UTF8: u8 = 0x01;
    pub const LOAD_CLASS: u8 = 0x02;
    pub const FRAME: u8 = 0x04;
    pub const TRACE: u8 = 0x05;
    pub const START_THREAD: u8 = 0x0a;
    pub const HEAP_DUMP: u8 = 0x0c;
    pub const HEAP_DUMP_SEGMENT: u8 = 0x1c;
    pub const HEAP_DUMP_END: u8 = 0x2c;

    const NAMES: [(u8, &str); 14] = [
        (UTF8, "UTF8"),
        (LOAD_CLASS, "LOAD_CLASS"),
        (0x03, "UNLOAD_CLASS"),
        (FRAME, "FRAME"),
        (TRACE, "TRACE"),
        (0x06, "ALLOC_SITES"),
        (0x07, "HEAP_SUMMARY"),
        (START_THREAD, "START_THREAD"),
        (0x0b, "END_THREAD"),
        (HEAP_DUMP, "HEAP_DUMP"),
        (0x0d, "CPU_SAMPLES"),
        (0x0e, "CONTROL_SETTINGS"),
        (HEAP_DUMP_SEGMENT, "HEAP_DUMP_SEGMENT"),
        (HEAP_DUMP_END, "HEAP_DUMP_END"),
    ];

    /// Returns the name of a tag in HPROF's documentation, or `None` for an undocumented tag.
    pub fn name(tag: u8) -> Option<&'static str> {
        let known = NAMES.iter().find(|known| known.0 == tag);
        known.map(|known| known.1)
    }
}

/// Bytes of a top-level record before its body.
pub(crate) const RECORD_HEADER_BYTES: usize = 9;

/// A top-level record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Offset of the record's tag in the file.
    pub at: usize,
    /// See [`tag`].
    pub tag: u8,
    /// Microseconds since the header's time; ART and HotSpot write 0.
    pub time_us: u32,
    /// Bytes after the record's header; the length as written can be shorter (see the module) or
    /// longer.
    pub body: &'a [u8],
    /// The file ends within the body, or the writer ended before it knew the length.
    pub cut_short: bool,
}

impl<'a> Record<'a> {
    /// Returns whether the body consists of sub-records of a heap dump.
    pub fn is_dump(&self) -> bool {
        matches!(self.tag, tag::HEAP_DUMP | tag::HEAP_DUMP_SEGMENT)
    }

    /// Returns the range of the body in the file.
    pub fn body_range(&self) -> Range<usize> {
        let from = self.at + RECORD_HEADER_BYTES;
        from..from + self.body.len()
    }

    /// Returns the contents of the record, or `None` if the body is too short for them.
    pub fn content(&self, id_size: IdSize) -> Option<Content<'a>> {
        let mut body = Cursor::new(self.body, 0);
        Some(match self.tag {
            tag::UTF8 => Content::Utf8 {
                id: body.id(id_size)?,
                text: body.rest(),
            },
            tag::LOAD_CLASS => Content::LoadClass {
                serial: body.u4()?,
                class: body.id(id_size)?,
                name: body.u4().and_then(|_stack| body.id(id_size))?,
            },
            tag::FRAME => Content::Frame(Frame {
                id: body.id(id_size)?,
                method: body.id(id_size)?,
                signature: body.id(id_size)?,
                source: body.id(id_size)?,
                class_serial: body.u4()?,
                line: body.u4()? as i32,
            }),
            tag::TRACE => {
                let serial = body.u4()?;
                let thread = body.u4()?;
                let count = body.u4()? as usize;
                let bytes = count.checked_mul(id_size.bytes())?;
                Content::Trace {
                    serial,
                    thread,
                    frames: body.take(bytes)?,
                }
            }
            tag::START_THREAD => {
                let serial = body.u4()?;
                let (_thread, _stack) = (body.id(id_size)?, body.u4()?);
                let name = body.id(id_size)?;
                let (_group, _parent) = (body.id(id_size)?, body.id(id_size)?);
                Content::StartThread { serial, name }
            }
            tag::HEAP_DUMP | tag::HEAP_DUMP_SEGMENT => Content::Dump,
            tag::HEAP_DUMP_END => Content::End,
            _ => Content::Other,
        })
    }
}

/// Contents of a top-level record, as far as they concern the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Content<'a> {
    /// A string of the string table: a name.
    Utf8 {
        /// ID of the string, in its own namespace.
        id: u64,
        /// Modified UTF-8: see [`modified_utf8`].
        text: &'a [u8],
    },
    /// The name of a class.
    LoadClass {
        /// Serial number of the class, used by frames; above 0.
        serial: u32,
        /// ID of the class object.
        class: u64,
        /// ID of the name in the string table.
        name: u64,
    },
    /// A frame of a stack.
    Frame(Frame),
    /// A stack.
    Trace {
        /// Serial number of the stack.
        serial: u32,
        /// Serial number of its thread (ART: thread ID).
        thread: u32,
        /// IDs of frames, the innermost first.
        frames: &'a [u8],
    },
    /// A thread whose start the agent recorded.
    StartThread {
        /// Serial number of the thread.
        serial: u32,
        /// ID of the name in the string table.
        name: u64,
    },
    /// Sub-records.
    Dump,
    /// The last record of a segmented dump.
    End,
    /// Anything else.
    Other,
}

/// A frame of a stack; the string table has the names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Frame {
    pub id: u64,
    pub method: u64,
    pub signature: u64,
    pub source: u64,
    pub class_serial: u32,
    /// Line number; 0 none, -1 unknown, -2 compiled, -3 native.
    pub line: i32,
}

/// The top-level records of a file, in file order.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    file: &'a [u8],
    at: usize,
    /// The last record ended the dump.
    ended: bool,
}

impl<'a> Records<'a> {
    /// Returns all records after the header.
    pub fn new(file: &'a [u8], header: &Header<'_>) -> Records<'a> {
        Records {
            file,
            at: header.bytes,
            ended: false,
        }
    }

    /// Returns the records from an offset on, at which a record begins.
    pub(crate) fn at_offset(file: &'a [u8], at: usize) -> Records<'a> {
        Records {
            file,
            at,
            ended: false,
        }
    }

    /// Continues at an offset: after a sub-record that crossed the end of its record.
    pub fn continue_at(&mut self, at: usize) {
        self.at = at;
    }

    /// Returns the offset of the next record.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Returns the number of bytes behind the end of the dump that are no record of it.
    pub(crate) fn behind(&self) -> usize {
        self.file.len().saturating_sub(self.at)
    }

    /// Returns the actual number of bytes after the header of the record at `at`, and whether the
    /// writer finished it.
    fn body_bytes(&self, tag: u8, declared: u32, body_at: usize) -> (usize, bool) {
        let left = self.file.len() - body_at;
        let declared_bytes = declared as usize;
        let is_dump = matches!(tag, tag::HEAP_DUMP | tag::HEAP_DUMP_SEGMENT);
        if is_dump && declared == 0 && !records_go_on(self.file, body_at) {
            return (left, true);
        }
        let whole = (left as u64).checked_sub(declared.into());
        let wraps = whole.is_some_and(|more| more != 0 && more % (1 << 32) == 0);
        if tag == tag::HEAP_DUMP && wraps {
            return (left, false);
        }
        (declared_bytes.min(left), declared_bytes > left)
    }
}

/// Returns whether top-level records, not sub-records, follow a dump record of length 0. No
/// sub-record has the tag of a dump record or of the dump's end. All other tags are ambiguous, so a
/// few consecutive records must be valid.
fn records_go_on(file: &[u8], mut at: usize) -> bool {
    let dump = [tag::HEAP_DUMP, tag::HEAP_DUMP_SEGMENT, tag::HEAP_DUMP_END];
    if file.get(at).is_some_and(|tag| dump.contains(tag)) {
        return true;
    }
    for _ in 0..16 {
        if at == file.len() {
            break;
        }
        if !may_begin_record(file, at) {
            return false;
        }
        let mut length = Cursor::new(file, at + 5);
        at = match length.u4() {
            Some(bytes) => length.at() + bytes as usize,
            None => return false,
        };
    }
    true
}

/// Returns whether a top-level record can begin at that offset: the end of the file, or a known tag
/// and a length within the file.
pub(crate) fn may_begin_record(file: &[u8], at: usize) -> bool {
    if at == file.len() {
        return true;
    }
    let mut cursor = Cursor::new(file, at);
    let header = (cursor.u1(), cursor.u4(), cursor.u4());
    let (Some(tag), Some(_), Some(length)) = header else {
        return false;
    };
    tag::name(tag).is_some() && length as usize <= file.len() - cursor.at()
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.file.len() {
            return None;
        }
        let at = self.at;
        // The dump is whole; what follows is of no HPROF, or begins another file.
        let is_dump = matches!(self.file[at], tag::HEAP_DUMP | tag::HEAP_DUMP_SEGMENT);
        if self.ended && !is_dump && !may_begin_record(self.file, at) {
            return None;
        }
        let mut cursor = Cursor::new(self.file, at);
        let header = (cursor.u1(), cursor.u4(), cursor.u4());
        let (Some(tag), Some(time_us), Some(declared_bytes)) = header else {
            self.at = self.file.len();
            return Some(Err(Damage {
                at: at as u64,
                kind: DamageKind::CutShort,
            }));
        };
        let body_at = cursor.at();
        let (bytes, cut_short) = self.body_bytes(tag, declared_bytes, body_at);
        self.at = body_at + bytes;
        self.ended = tag == tag::HEAP_DUMP_END;
        Some(Ok(Record {
            at,
            tag,
            time_us,
            body: &self.file[body_at..self.at],
            cut_short,
        }))
    }
}

/// Reads consecutive numbers; `None` past the end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Creates a cursor at an offset, which can be past the end.
    #[inline]
    pub fn new(bytes: &'a [u8], at: usize) -> Cursor<'a> {
        Cursor { bytes, at }
    }

    /// Returns the offset of the cursor.
    #[inline]
    pub fn at(&self) -> usize {
        self.at
    }

    /// Returns the next bytes.
    #[inline]
    pub fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(bytes)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    #[inline]
    fn chunk<const N: usize>(&mut self) -> Option<[u8; N]> {
        let chunk = *self.bytes.get(self.at..)?.first_chunk()?;
        self.at += N;
        Some(chunk)
    }

    /// Returns all remaining bytes.
    pub fn rest(&mut self) -> &'a [u8] {
        let rest = self.bytes.get(self.at..).unwrap_or(&[]);
        self.at = self.bytes.len();
        rest
    }

    /// Reads one byte.
    #[inline]
    pub fn u1(&mut self) -> Option<u8> {
        self.chunk::<1>().map(|[byte]| byte)
    }

    /// Reads two bytes.
    #[inline]
    pub fn u2(&mut self) -> Option<u16> {
        self.chunk().map(u16::from_be_bytes)
    }

    /// Reads four bytes.
    #[inline]
    pub fn u4(&mut self) -> Option<u32> {
        self.chunk().map(u32::from_be_bytes)
    }

    /// Reads eight bytes.
    #[inline]
    pub fn u8(&mut self) -> Option<u64> {
        self.chunk().map(u64::from_be_bytes)
    }

    /// Reads an ID.
    #[inline]
    pub fn id(&mut self, size: IdSize) -> Option<u64> {
        match size {
            IdSize::Four => self.u4().map(u64::from),
            IdSize::Eight => self.u8(),
        }
    }
}

/// Decodes text of the string table: modified UTF-8, in which NUL takes two bytes and characters
/// beyond U+FFFF are two surrogates of three bytes each. Invalid bytes become U+FFFD.
pub fn modified_utf8(bytes: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.to_owned();
    }
    let mut units = Vec::with_capacity(bytes.len());
    let mut at = 0;
    let tail = |at: usize| match bytes.get(at) {
        Some(&byte) if byte & 0xc0 == 0x80 => Some(u16::from(byte & 0x3f)),
        _ => None,
    };
    while let Some(&first) = bytes.get(at) {
        let (unit, len) = match first {
            0..0x80 => (Some(first.into()), 1),
            0xc0..0xe0 => match tail(at + 1) {
                Some(low) => (Some(u16::from(first & 0x1f) << 6 | low), 2),
                None => (None, 1),
            },
            0xe0..0xf0 => match (tail(at + 1), tail(at + 2)) {
                (Some(mid), Some(low)) => (Some(u16::from(first & 0x0f) << 12 | mid << 6 | low), 3),
                _ => (None, 1),
            },
            // Plain UTF-8 has characters of four bytes; a writer of such bytes meant those.
            0xf0..0xf8 => {
                let text = bytes.get(at..at + 4).map(std::str::from_utf8);
                if let Some(Ok(text)) = text {
                    units.extend(text.encode_utf16());
                    at += 4;
                    continue;
                }
                (None, 1)
            }
            _ => (None, 1),
        };
        units.push(unit.unwrap_or(0xfffd));
        at += len;
    }
    String::from_utf16_lossy(&units)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_by_position() {
        for id_size in [IdSize::Four, IdSize::Eight] {
            let width = id_size.bytes();
            let mut bytes: Vec<u8> = (0..5u64)
                .flat_map(|id| (id % 4).to_be_bytes()[8 - width..].to_vec())
                .collect();
            bytes.push(3);
            for id in 0..6 {
                let slow = id_size.each(&bytes).position(|other| other == id);
                assert_eq!(id_size.position(&bytes, id), slow, "{id}");
            }
            assert_eq!(id_size.position(&bytes, u64::MAX), None);
        }
    }

    fn header(text: &[u8], id_bytes: u32) -> Vec<u8> {
        let mut file = text.to_vec();
        file.extend(id_bytes.to_be_bytes());
        file.extend(77u64.to_be_bytes());
        file
    }

    #[test]
    fn a_header_is_read_for_both_widths_of_id_under_any_version() {
        for version in [
            "JAVA PROFILE 1.0.1",
            "JAVA PROFILE 1.0.2",
            "JAVA PROFILE 1.0.3",
        ] {
            for (bytes, id_size) in [(4, IdSize::Four), (8, IdSize::Eight)] {
                let file = header(format!("{version}\0").as_bytes(), bytes);
                let read = Header::read(&file).expect("it is whole");
                assert_eq!(read.version, version);
                assert_eq!(read.id_size, id_size);
                assert_eq!(read.time_ms, 77);
                assert_eq!(read.bytes, file.len());
                for cut in 1..file.len() {
                    assert_eq!(
                        Header::read(&file[..cut]),
                        Err(HeaderError::CutShort),
                        "{cut}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_is_no_header_is_told_by_why() {
        let not = Err(HeaderError::NotHprof);
        assert_eq!(Header::read(b""), not);
        assert_eq!(Header::read(b"PK\x03\x04"), not);
        let no_nul = header(b"JAVA PROFILE 1.0.2 and then much text without an end", 4);
        assert_eq!(Header::read(&no_nul), not);
        let wide = header(b"JAVA PROFILE 1.0.2\0", 16);
        assert_eq!(Header::read(&wide), Err(HeaderError::IdSize(16)));
    }

    #[test]
    fn modified_utf8_has_surrogates_of_three_bytes_and_a_nul_of_two() {
        assert_eq!(modified_utf8("Держатель".as_bytes()), "Держатель");
        assert_eq!(modified_utf8(b"a\xc0\x80b"), "a\0b");
        assert_eq!(modified_utf8(b"\xed\xa0\xbd\xed\xb8\x80!"), "\u{1f600}!");
        assert_eq!(modified_utf8(b"\xff\xed\xa0\xbd"), "\u{fffd}\u{fffd}");
    }
}
