//! The top level of a file: its names, stacks and threads, and where its dump records lie, cut
//! into parts that threads can read on their own.

use super::HprofError;
use super::id_map::IdMap;
use super::names::StringTable;
use super::records::{Content, Damage, Frame, Header, IdSize, Records, tag};
use super::sub_records::SubRecords;
use heaptap_model::bytes::Bytes;
use std::ops::Range;

/// A part has about so many bytes: few enough for threads to finish together, enough for the
/// work to outweigh handing it out.
const PART_BYTES: usize = 2 << 20;

/// After so many bytes of dump records their pages are given back.
const RELEASE_BYTES: usize = 64 << 20;

/// What the top level says.
#[derive(Debug)]
pub(super) struct Outline {
    pub(super) version: String,
    pub(super) android: bool,
    /// Whether ends of dump records were found by walking through them.
    pub(super) exact: bool,
    pub(super) id_size: IdSize,
    pub(super) time_ms: u64,
    pub(super) strings: StringTable,
    /// Ids of names of statics that hold nothing of the program: see [`is_noise`].
    pub(super) noise: IdMap<()>,
    /// Ids of names in angle brackets: what HotSpot's VM keeps for a class outside its statics.
    pub(super) vm_names: IdMap<()>,
    /// Ids of [`OVERHEADS`].
    pub(super) overhead_names: Vec<u64>,
    pub(super) loaded: Vec<LoadedClass>,
    pub(super) stacks: StackRecords,
    /// Runs of dump records.
    pub(super) parts: Vec<Range<usize>>,
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

/// Frames, stacks and threads as they stand in the file.
#[derive(Debug, Default)]
pub(super) struct StackRecords {
    pub(super) frames: Vec<Frame>,
    /// Serial, thread, offset of the frames' ids, number of bytes of them.
    pub(super) traces: Vec<(u32, u32, usize, usize)>,
    /// Serial and name of threads whose start was written.
    pub(super) started: Vec<(u32, u64)>,
}

impl Outline {
    /// Reads the top level; `exactly` walks through the sub-records of dump records to find where
    /// they really end, for files in which some cross the end that is written.
    pub(super) fn read(file: &Bytes, exactly: bool) -> Result<Outline, HprofError> {
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
            overhead_names: Vec::new(),
            loaded: Vec::new(),
            stacks: StackRecords::default(),
            parts: Vec::new(),
            truncated: false,
            damage: Vec::new(),
            malformed: 0,
        };
        let mut segmented = false;
        let mut ended = false;
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
            outline.truncated |= record.cut_short;
            if record.is_dump() {
                segmented |= record.tag == tag::HEAP_DUMP_SEGMENT;
                if exactly {
                    let mut subs = SubRecords::new(file, &record, header.id_size);
                    // Damage is told when the parts are read.
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
                    if OVERHEADS.contains(&text) {
                        outline.overhead_names.push(id);
                    }
                    if text.first() == Some(&b'<') {
                        outline.vm_names.insert(id, ());
                    }
                    if is_noise(text) {
                        outline.noise.insert(id, ());
                    }
                    outline.strings.add(id, body.end - text.len(), text.len());
                }
                Content::LoadClass {
                    serial,
                    class,
                    name,
                    ..
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
                Content::StartThread { serial, name, .. } => {
                    outline.stacks.started.push((serial, name));
                }
                Content::Dump | Content::End | Content::Other => {}
            }
        }
        // A dump without a single dump record broke off before its first.
        outline.truncated |= segmented && !ended || outline.parts.is_empty();
        outline.strings.seal();
        outline.stacks.frames.sort_by_key(|frame| frame.id);
        outline.stacks.traces.sort_by_key(|trace| trace.0);
        Ok(outline)
    }

    /// Whether arrays with odd ids may stand for the vtables of a class: objects of ART have even
    /// addresses, and it gives such arrays the id of the class and 1.
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

    fn note(&mut self, damage: Damage) {
        if self.damage.len() < MOST_DAMAGE {
            self.damage.push(damage);
        }
    }
}

/// So many places of damage are told.
pub(super) const MOST_DAMAGE: usize = 32;

/// Whether statics of that name hold nothing that the class refers to: ART's arrays for vtables, and
/// its pointer to `java.lang.Class`.
fn is_noise(name: &[u8]) -> bool {
    OVERHEADS.contains(&name) || name == b"$class$shadow$_klass_"
}

/// Statics whose value is the id of the array that stands for the vtables of a class.
pub(super) const OVERHEADS: [&[u8]; 2] = [b"$classOverhead", b"$staticOverhead"];
