//! Copying of a file record by record, shared by conversion and stripping. Owns the copying, the
//! lengths of changed dump records, and the handling of damage: every complete record and
//! sub-record is kept; damaged ones are left out and listed.

use super::output::{Output, declared};
use super::records::{
    Damage, DamageKind, Header, HeaderError, RECORD_HEADER_BYTES, Record, Records, tag,
};
use super::sub_records::{SubRecord, SubRecords};
use heaptap_base::error::{Classified, ErrorClass, ErrorFacts, mend_write};
use std::io::{self, Write};
use std::ops::Range;

/// Maximum size in bytes of dump record bodies that are assembled in memory. Larger ones are read
/// twice, because the new length comes before them.
const IN_MEMORY: usize = 4 << 20;
/// Maximum length in bytes of the headers of empty records that can be taken back.
const MAX_HELD: usize = 64 << 20;
/// Maximum number of damaged places that are listed; the rest is only counted.
const NAMED: usize = 20;

/// Damage of a file, with offsets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DamageList {
    /// The first damaged places.
    pub first: Vec<Damage>,
    /// Number of all damaged places.
    pub count: u64,
}

impl DamageList {
    /// Adds a damaged place.
    pub(crate) fn push(&mut self, damage: Damage) {
        self.count += 1;
        if self.first.len() < NAMED {
            self.first.push(damage);
        }
    }

    /// Returns whether the file is undamaged.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// End of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ending {
    /// The file has dump segments. Those of `HEAP_DUMP` records stand alone, without an end record.
    pub segments: bool,
    /// The record that ends the segments is present.
    pub end_record: bool,
    /// The file has a dump record of either kind.
    pub dump: bool,
}

impl Ending {
    /// Updates the facts with a record.
    pub(crate) fn note(&mut self, record: &Record<'_>) {
        match record.tag {
            tag::HEAP_DUMP_SEGMENT => (self.segments, self.dump) = (true, true),
            tag::HEAP_DUMP => self.dump = true,
            tag::HEAP_DUMP_END => self.end_record = true,
            _ => {}
        }
    }

    /// Returns whether the writer completed the file.
    pub fn is_whole(&self) -> bool {
        self.end_record || self.dump && !self.segments
    }
}

/// Change of a top-level record that is not a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Other {
    /// The record stays.
    Keep,
    /// The body of the record becomes zero bytes, except the first ones.
    ZeroFrom(usize),
}

/// A change to a file. Cloned if a record has to be read twice.
pub(super) trait Edit: Clone {
    /// Decides on a record that is not a dump.
    fn other(&mut self, record: &Record<'_>) -> Other;
    /// Called at the start of a dump record.
    fn dump(&mut self);
    /// Whether an empty dump record stays in front of a record of another kind. There a reader has to
    /// guess what a length of 0 means, and can take the rest of the file for its body.
    fn keeps_empty(&self) -> bool;
    /// Writes the replacement of a sub-record, `range` of the file.
    fn sub_record(&mut self, range: Range<usize>, record: &SubRecord<'_>, out: &mut Body<'_, '_>);
}

/// Facts about a copy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rewritten {
    /// Number of bytes written.
    pub bytes: u64,
    /// Number of top-level records written.
    pub records: u64,
    /// End of the source file.
    pub ending: Ending,
    /// Damaged places, which were left out.
    pub damage: DamageList,
}

impl Rewritten {
    /// Returns whether all of the file was read and its writer had completed it.
    pub fn is_whole(&self) -> bool {
        self.damage.is_empty() && self.ending.is_whole()
    }
}

/// Writes `file` with the changes of `edit`, after a header that is already changed.
pub(super) fn rewrite(
    file: &[u8],
    header: &Header<'_>,
    new_header: &[u8],
    edit: &mut impl Edit,
    sink: &mut dyn Write,
) -> io::Result<Rewritten> {
    let mut done = Rewritten::default();
    let mut out = Output::new(sink);
    out.put(new_header)?;
    let mut records = Records::new(file, header);
    while let Some(record) = records.next() {
        let record = match record {
            Ok(record) => record,
            Err(damage) => {
                done.damage.push(damage);
                break;
            }
        };
        let cut = Damage {
            at: record.at as u64,
            kind: DamageKind::CutShort,
        };
        if !record.is_dump() {
            if record.cut_short {
                done.damage.push(cut);
                break;
            }
            done.ending.note(&record);
            if record.tag != tag::HEAP_DUMP_END && !edit.keeps_empty() {
                done.records -= out.take_back();
            }
            done.records += 1;
            out.held = 0;
            out.record_header(record.tag, record.time_us, record.body.len())?;
            match edit.other(&record) {
                Other::Keep => out.put(record.body)?,
                Other::ZeroFrom(at) => {
                    let (kept, zeroed) = record.body.split_at(at);
                    out.put(kept)?;
                    out.zeros(zeroed.len())?;
                }
            }
            continue;
        }
        done.ending.note(&record);
        let before = done.damage.count;
        let (read_to, bytes) =
            dump_record(file, header, &record, edit, &mut out, &mut done.damage)?;
        // Nothing is written for an unreadable record: a record of length 0 would mean that the
        // rest of the file belongs to it. This includes empty records before it, which the
        // unreadable one delimited.
        let is_overrun = read_to > record.body_range().end;
        done.records += 1;
        if bytes > 0 {
            out.held = 0;
        } else {
            out.held += RECORD_HEADER_BYTES;
            if is_overrun || done.damage.count > before {
                done.records -= out.take_back();
            } else if out.held >= MAX_HELD {
                out.held = 0;
            }
        }
        out.flush_if_full()?;
        // Damage within a sub-record is more specific than a record that is cut short.
        if record.cut_short && done.damage.count == before {
            done.damage.push(cut);
        }
        if is_overrun {
            done.damage.push(Damage {
                at: record.at as u64,
                kind: DamageKind::Overrun,
            });
            records.continue_at(read_to);
        }
    }
    out.held = 0;
    out.flush()?;
    done.bytes = out.written;
    Ok(done)
}

/// Writes a dump record. Returns the offset of the next record in the file and the number of body
/// bytes written; if that is 0, the record's header is still in the buffer.
fn dump_record(
    file: &[u8],
    header: &Header<'_>,
    record: &Record<'_>,
    edit: &mut impl Edit,
    out: &mut Output<'_>,
    damage: &mut DamageList,
) -> io::Result<(usize, u64)> {
    if record.body.len() <= IN_MEMORY {
        let length_at = out.record_header(record.tag, record.time_us, 0)?;
        let mut body = Body::new(file, To::Memory(&mut out.buffer));
        let read_to = sub_records(file, header, record, edit, &mut body, damage);
        let length = body.finish()?;
        out.buffer[length_at..length_at + 4].copy_from_slice(&declared(length));
        return Ok((read_to, length));
    }
    let mut measured = Body::new(file, To::Nowhere);
    sub_records(
        file,
        header,
        record,
        &mut edit.clone(),
        &mut measured,
        &mut DamageList::default(),
    );
    let length = measured.finish()?;
    let length_at = out.record_header(record.tag, record.time_us, 0)?;
    out.buffer[length_at..length_at + 4].copy_from_slice(&declared(length));
    if length > 0 {
        out.held = 0;
    }
    let mut body = Body::new(file, To::Out(out));
    let read_to = sub_records(file, header, record, edit, &mut body, damage);
    body.finish()?;
    Ok((read_to, length))
}

fn sub_records(
    file: &[u8],
    header: &Header<'_>,
    record: &Record<'_>,
    edit: &mut impl Edit,
    body: &mut Body<'_, '_>,
    damage: &mut DamageList,
) -> usize {
    edit.dump();
    let mut subs = SubRecords::new(file, record, header.id_size);
    while let Some(sub) = subs.next() {
        match sub {
            Ok((at, sub)) => edit.sub_record(at..subs.at(), &sub, body),
            Err(found) => damage.push(found),
        }
    }
    subs.at()
}

/// The body of a dump record while it is written. Errors are returned at its end.
pub(super) struct Body<'a, 's> {
    file: &'a [u8],
    /// Range of the file that is still to be copied.
    pending: Range<usize>,
    bytes: u64,
    to: To<'a, 's>,
    failed: Option<io::Error>,
}

enum To<'a, 's> {
    Nowhere,
    Memory(&'a mut Vec<u8>),
    Out(&'a mut Output<'s>),
}

impl<'a, 's> Body<'a, 's> {
    fn new(file: &'a [u8], to: To<'a, 's>) -> Body<'a, 's> {
        Body {
            file,
            pending: 0..0,
            bytes: 0,
            to,
            failed: None,
        }
    }

    /// Copies a part of the file.
    #[inline]
    pub(super) fn keep(&mut self, range: Range<usize>) {
        self.bytes += range.len() as u64;
        if self.pending.end == range.start {
            self.pending.end = range.end;
        } else {
            self.copy_pending();
            self.pending = range;
        }
    }

    /// Writes other bytes.
    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.copy_pending();
        self.bytes += bytes.len() as u64;
        self.write(bytes);
    }

    /// Writes zero bytes.
    pub(super) fn zeros(&mut self, count: usize) {
        self.copy_pending();
        self.bytes += count as u64;
        let done = match &mut self.to {
            To::Nowhere => Ok(()),
            To::Memory(memory) => {
                memory.resize(memory.len() + count, 0);
                Ok(())
            }
            To::Out(out) => out.zeros(count),
        };
        self.note(done);
    }

    fn copy_pending(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        if let Some(bytes) = self.file.get(pending)
            && !bytes.is_empty()
        {
            self.write(bytes);
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        let done = match &mut self.to {
            To::Nowhere => Ok(()),
            To::Memory(memory) => {
                memory.extend_from_slice(bytes);
                Ok(())
            }
            To::Out(out) => out.put(bytes),
        };
        self.note(done);
    }

    fn note(&mut self, done: io::Result<()>) {
        if let Err(error) = done {
            self.failed.get_or_insert(error);
        }
    }

    fn finish(mut self) -> io::Result<u64> {
        self.copy_pending();
        match self.failed {
            Some(error) => Err(error),
            None => Ok(self.bytes),
        }
    }
}

/// Reason why a file was not converted or stripped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RewriteError {
    /// The file does not have a header.
    #[error("it is not an HPROF: {0}")]
    Header(#[from] HeaderError),
    /// The dump is not Android's dialect.
    #[error("it is not an Android dump; Java SE tools can read {version:?} directly")]
    NotAndroid {
        /// Version text of the header.
        version: String,
    },
    /// The result cannot be written.
    #[error("cannot write the result")]
    Write(#[from] io::Error),
}

impl Classified for RewriteError {
    fn facts(&self) -> ErrorFacts {
        match self {
            RewriteError::Header(_) => ErrorFacts::new(ErrorClass::BadInput, "hprof-header")
                .with_help(
                    "fetch the dump again or take one with `heaptap dump --hprof`, which checks it",
                ),
            RewriteError::NotAndroid { .. } => {
                ErrorFacts::new(ErrorClass::BadInput, "hprof-not-android")
                    .with_help("open the dump in the other tool without converting it")
            }
            RewriteError::Write(error) => {
                let mend = mend_write(error);
                ErrorFacts::new(ErrorClass::HostWrite, "output-unwritable")
                    .with_help(format!("{mend}, or choose another file"))
            }
        }
    }
}
