//! The top level of a file: names, stacks and threads, and the offsets of its dump records, cut
//! into parts that threads read independently.

use super::error::HprofError;
use super::id_map::IdMap;
use super::names::StringTable;
use super::records::{Content, Damage, Frame, Header, IdSize, Record, Records, tag};
use super::sub_records::{self, SubRecords};
use heaptap_base::bytes::Bytes;
use std::ops::Range;

/// Approximate size of a part in bytes: small enough for threads to finish together, large enough
/// to outweigh the cost of distributing it.
const PART_BYTES: usize = 2 << 20;

/// Bytes of dump records after which their pages are released.
const RELEASE_BYTES: usize = 64 << 20;

/// Contents of the top level.
#[derive(Debug)]
pub(super) struct Outline {
    pub(super) version: String,
    /// The dump is of Android: see [`Outline::loads_android`].
    pub(super) android: bool,
    /// The ends of dump records were found by reading their sub-records.
    pub(super) exact: bool,
    pub(super) id_size: IdSize,
    pub(super) time_ms: u64,
    pub(super) strings: StringTable,
    /// IDs of the names of statics that hold nothing of the program: see [`is_noise`].
    pub(super) noise: IdMap<()>,
    /// IDs of names in angle brackets: references that HotSpot's VM keeps for a class outside its
    /// statics.
    pub(super) vm_names: IdMap<()>,
    /// IDs of [`OVERHEADS`].
    pub(super) overhead_names: IdMap<()>,
    pub(super) loaded: Vec<LoadedClass>,
    pub(super) stacks: StackRecords,
    /// Runs of dump records of the chosen dump.
    pub(super) parts: Vec<Range<usize>>,
    /// Number of the chosen dump in the file, from 1.
    pub(super) number: u32,
    /// Number of dumps in the file.
    pub(super) among: u32,
    /// Bytes of the file behind the end of the dump.
    pub(super) bytes_behind: u64,
    /// The dump breaks off.
    pub(super) truncated: bool,
    pub(super) damage: Vec<Damage>,
    /// Records that could not be read.
    pub(super) malformed: u64,
}

/// A LOAD_CLASS record.
#[derive(Debug, Clone, Copy)]
pub(super) struct LoadedClass {
    pub(super) serial: u32,
    pub(super) class: u64,
    pub(super) name: u64,
}

/// Frames, stacks and threads, ascending by ID or serial number. The first of each is used.
#[derive(Debug, Default)]
pub(super) struct StackRecords {
    pub(super) frames: Vec<Frame>,
    /// Serial number, thread, offset of the frames' IDs, and their size in bytes.
    pub(super) traces: Vec<(u32, u32, usize, usize)>,
    /// Serial number and name of threads whose start is in the file.
    pub(super) started: Vec<(u32, u64)>,
}

impl Outline {
    /// Reads the top level. With `exactly`, reads the sub-records of dump records to find their
    /// actual ends, for files in which sub-records cross the declared end. `dump` chooses one of
    /// several dumps by its number; by default the last one.
    pub(super) fn read(
        file: &Bytes,
        exactly: bool,
        dump: Option<u32>,
    ) -> Result<Outline, HprofError> {
        let header = Header::read(file)?;
        let mut outline = Outline {
            version: header.version.to_owned(),
            android: header.is_android(),
            exact: exactly,
            id_size: header.id_size,
            time_ms: header.time_ms,
            strings: StringTable::default(),
            noise: IdMap::default(),
            vm_names: IdMap::default(),
            overhead_names: IdMap::default(),
            loaded: Vec::new(),
            stacks: StackRecords::default(),
            parts: Vec::new(),
            number: 0,
            among: 0,
            bytes_behind: 0,
            truncated: false,
            damage: Vec::new(),
            malformed: 0,
        };
        let mut segmented = false;
        let mut ended = false;
        let mut boundary = Boundary::default();
        let mut chosen = None;
        let mut records = Records::new(file, &header);
        let mut released = 0;
        while let Some(record) = records.next() {
            let record = match record {
                Ok(record) => record,
                Err(damage) => {
                    outline.truncated = true;
                    outline.note(damage);
                    break;
                }
            };
            if boundary.begins_dump(&record) {
                if dump == Some(boundary.dumps - 1) {
                    let truncated = outline.truncated || segmented && !ended;
                    chosen = Some((std::mem::take(&mut outline.parts), truncated));
                }
                outline.parts.clear();
                (segmented, ended) = (false, false);
            }
            outline.truncated |= record.cut_short;
            if record.is_dump() {
                segmented |= record.tag == tag::HEAP_DUMP_SEGMENT;
                if exactly {
                    let mut subs = SubRecords::new(file, &record, header.id_size);
                    // The damage is reported when the parts are read.
                    subs.by_ref().for_each(drop);
                    records.continue_at(subs.at());
                }
                outline.dump_record(record.at..records.at());
                if records.at() - released > RELEASE_BYTES {
                    file.release(released..records.at());
                    released = records.at();
                }
                continue;
            }
            if record.tag == tag::HEAP_DUMP_END {
                ended = true;
            }
            let Some(content) = record.content(header.id_size) else {
                outline.malformed += 1;
                outline.note(Damage {
                    at: record.at as u64,
                    kind: super::records::DamageKind::ShortBody(record.tag),
                });
                continue;
            };
            let body = record.body_range();
            match content {
                Content::Utf8 { id, text } => {
                    // Most names are compared by their first byte only.
                    match text.first() {
                        Some(b'<') => outline.vm_names.insert(id, ()),
                        Some(b'$') if is_noise(text) => {
                            if OVERHEADS.contains(&text) {
                                outline.overhead_names.insert(id, ());
                            }
                            outline.noise.insert(id, ())
                        }
                        _ => None,
                    };
                    outline.strings.add(id, body.end - text.len(), text.len());
                }
                Content::LoadClass {
                    serial,
                    class,
                    name,
                } => outline.loaded.push(LoadedClass {
                    serial,
                    class,
                    name,
                }),
                Content::Frame(frame) => outline.stacks.frames.push(frame),
                Content::Trace {
                    serial,
                    thread,
                    frames,
                } => {
                    let at = body.start + 12;
                    outline
                        .stacks
                        .traces
                        .push((serial, thread, at, frames.len()));
                }
                Content::StartThread { serial, name } => {
                    outline.stacks.started.push((serial, name));
                }
                Content::Dump | Content::End | Content::Other => {}
            }
        }
        outline.among = boundary.dumps.max(1);
        outline.number = outline.among;
        if let (Some((parts, truncated)), Some(number)) = (chosen, dump) {
            (outline.parts, outline.truncated, outline.number) = (parts, truncated, number);
            (segmented, ended) = (false, true);
        }
        outline.bytes_behind = records.behind() as u64;
        // A dump without any dump record broke off before the first one.
        outline.truncated |= segmented && !ended || outline.parts.is_empty();
        outline.strings.seal();
        outline.android |= outline.loads_android(file);
        outline.stacks.frames.sort_by_key(|frame| frame.id);
        outline.stacks.traces.sort_by_key(|trace| trace.0);
        outline.stacks.started.sort_by_key(|thread| thread.0);
        Ok(outline)
    }

    /// Returns whether the dump is of Android, by its classes: converters give it the version of Java
    /// SE, but keep the names, which have dots. HotSpot's have slashes, those of Android's classes
    /// that a program for a JVM contains as well.
    fn loads_android(&self, file: &[u8]) -> bool {
        const PACKAGES: [&[u8]; 3] = [b"android.", b"dalvik.", b"libcore."];
        let is_of_android = |class: &LoadedClass| {
            let name = self.strings.bytes(file, class.name).unwrap_or_default();
            PACKAGES.iter().any(|package| name.starts_with(package))
        };
        self.loaded.iter().any(is_of_android)
    }

    /// Returns whether arrays with odd IDs can represent the vtables of a class: objects of ART
    /// have even addresses, and such an array has the ID of the class plus 1.
    pub(super) fn may_have_overheads(&self) -> bool {
        self.android || self.id_size == IdSize::Four
    }

    fn dump_record(&mut self, range: Range<usize>) {
        match self.parts.last_mut() {
            Some(part) if part.end == range.start && part.len() < PART_BYTES => {
                part.end = range.end;
            }
            _ => self.parts.push(range),
        }
    }

    /// Returns the ID of HotSpot's class of stacks of virtual threads.
    pub(super) fn stack_chunk(&self, file: &Bytes) -> Option<u64> {
        let name = |id| self.strings.get(file, id);
        let is_it = |class: &&LoadedClass| {
            name(class.name).is_some_and(|name| name == "jdk/internal/vm/StackChunk")
        };
        let found = || self.loaded.iter().find(is_it).map(|class| class.class);
        (!self.android).then(found).flatten()
    }

    fn note(&mut self, damage: Damage) {
        if self.damage.len() < MAX_DAMAGE {
            self.damage.push(damage);
        }
    }
}

/// Returns the number of dumps in a file, at least 1. The agent of old JDKs wrote one for each
/// request to the same file.
///
/// # Errors
/// Returns an error if the file has no HPROF header.
pub fn dumps(file: &[u8]) -> Result<u32, HprofError> {
    let header = Header::read(file)?;
    let mut boundary = Boundary::default();
    for record in Records::new(file, &header).flatten() {
        boundary.begins_dump(&record);
    }
    Ok(boundary.dumps.max(1))
}

/// Returns whether the dump records read well if arrays of primitives have no contents: KOOM cuts
/// them out, and keeps the lengths of records.
pub fn lacks_array_contents(file: &[u8]) -> bool {
    let Ok(header) = Header::read(file) else {
        return false;
    };
    let first = Records::new(file, &header).flatten().find(Record::is_dump);
    first.is_some_and(|dump| sub_records::lacks_array_contents(file, dump.at, header.id_size))
}

/// Finds the first record of each dump: a `HEAP_DUMP` is one, and segments up to their end.
#[derive(Debug, Default)]
struct Boundary {
    /// Number of dumps so far.
    dumps: u32,
    in_segments: bool,
}

impl Boundary {
    /// Returns whether a record begins another dump than the first.
    fn begins_dump(&mut self, record: &Record<'_>) -> bool {
        let begins = match record.tag {
            tag::HEAP_DUMP => !record.body.is_empty(),
            tag::HEAP_DUMP_SEGMENT => !self.in_segments && !record.body.is_empty(),
            tag::HEAP_DUMP_END => {
                self.in_segments = false;
                return false;
            }
            _ => return false,
        };
        self.in_segments |= record.tag == tag::HEAP_DUMP_SEGMENT;
        self.dumps += u32::from(begins);
        begins && self.dumps > 1
    }
}

/// Maximum number of damaged places that are listed.
pub(super) const MAX_DAMAGE: usize = 32;

/// Returns whether statics of that name hold nothing that the class refers to: ART's arrays for
/// vtables, and its pointer to `java.lang.Class`.
fn is_noise(name: &[u8]) -> bool {
    OVERHEADS.contains(&name) || name == b"$class$shadow$_klass_"
}

/// Statics whose value is the ID of the array that represents the vtables of a class.
pub(super) const OVERHEADS: [&[u8]; 2] = [b"$classOverhead", b"$staticOverhead"];
