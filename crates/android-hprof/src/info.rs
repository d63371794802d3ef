//! Facts about a dump: records, objects, roots, threads, and whether the dump is complete. One pass
//! over the file with a few counters; objects are not kept.

use super::id_map::{IdMap, IdSet};
use super::outline::lacks_array_contents;
use super::records::{
    Content, Damage, DamageKind, Header, HeaderError, RECORD_HEADER_BYTES, Record, Records,
    modified_utf8, tag,
};
use super::rewrite::{DamageList, Ending};
use super::sub_records::{HEAPS, SubRecord, SubRecords, root_kind, sub_tag};
use heaptap_model::heap_graph::RootKind;
use std::collections::{BTreeMap, HashMap};

/// Facts about a dump.
#[derive(Debug, Clone, Default)]
pub struct Info {
    /// Version text of the header, such as `JAVA PROFILE 1.0.3`.
    pub version: String,
    /// The dump is of Android's dialect.
    pub android: bool,
    /// Bytes of an id: 4 or 8.
    pub id_bytes: u32,
    /// Time of the dump, in milliseconds since 1970.
    pub time_ms: u64,
    /// Size of the unpacked file in bytes.
    pub bytes: u64,
    /// Top-level records by tag.
    pub records: BTreeMap<u8, Tally>,
    /// Sub-records of dump records by tag, including roots.
    pub sub_records: BTreeMap<u8, Tally>,
    /// Objects by heap, if the dump distinguishes heaps.
    pub heaps: BTreeMap<u32, HeapTally>,
    /// Instances of `java.lang.String`.
    pub strings: u64,
    /// Arrays and instances whose allocating stack is known.
    pub with_site: u64,
    /// Stacks that have frames.
    pub stacks_with_frames: u64,
    /// Contents of the arrays of primitives.
    pub contents: Contents,
    /// The end of the file.
    pub ending: Ending,
    /// Records that cannot be read.
    pub damage: DamageList,
}

/// Number and size of records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of records.
    pub count: u64,
    /// Bytes in the file, headers and tags included.
    pub bytes: u64,
}

/// Objects of a heap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeapTally {
    /// Name of the heap; empty if unnamed.
    pub name: String,
    /// Objects and classes.
    pub objects: u64,
    /// Bytes of their sub-records.
    pub bytes: u64,
    name_id: u64,
}

/// Contents of the arrays of primitives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Contents {
    /// The dump does not have an array with elements.
    #[default]
    None,
    /// All bytes are zero: the dump was stripped.
    Zeroed,
    /// The contents are in the dump.
    Present,
    /// They were cut out, which leaves damaged records.
    Cut,
}

impl Contents {
    /// Returns one word: `none`, `zeroed`, `present` or `cut`.
    pub fn word(self) -> &'static str {
        match self {
            Contents::None => "none",
            Contents::Zeroed => "zeroed",
            Contents::Present => "present",
            Contents::Cut => "cut",
        }
    }
}

impl Info {
    /// Returns whether the dump is complete and readable.
    pub fn is_whole(&self) -> bool {
        self.damage.is_empty() && self.ending.is_whole()
    }

    /// Returns the sub-records of one tag.
    pub fn sub(&self, tag: u8) -> Tally {
        self.sub_records.get(&tag).copied().unwrap_or_default()
    }

    /// Returns the top-level records of one tag.
    pub fn top(&self, tag: u8) -> Tally {
        self.records.get(&tag).copied().unwrap_or_default()
    }

    /// Returns the number of instances and arrays.
    pub fn objects(&self) -> u64 {
        [
            sub_tag::INSTANCE,
            sub_tag::OBJECT_ARRAY,
            sub_tag::PRIMITIVE_ARRAY,
            sub_tag::PRIMITIVE_ARRAY_NODATA,
        ]
        .iter()
        .map(|&tag| self.sub(tag).count)
        .sum()
    }

    /// Returns the roots by kind, in order of tags.
    pub fn roots(&self) -> impl Iterator<Item = (RootKind, Tally)> + '_ {
        self.sub_records
            .iter()
            .filter_map(|(&tag, &tally)| Some((root_kind(tag)?, tally)))
    }

    /// Returns whether allocations were tracked at the time of the dump, so that objects have a
    /// stack.
    pub fn has_allocation_sites(&self) -> bool {
        self.with_site > 0
    }
}

/// Returns the default name of one of ART's heaps, for dumps that do not name it.
pub fn heap_word(heap: u32) -> &'static str {
    let known = HEAPS.iter().find(|known| known.1 == heap);
    known.map_or("unknown", |known| known.0)
}

/// Maximum number of distinct heaps: ART has four, a hostile dump one for each of its bytes.
const MAX_HEAPS: usize = 64;
/// Maximum length of a heap's name in bytes.
const MAX_NAME_BYTES: usize = 256;

/// Reads a whole file. Damage is not an error.
///
/// # Errors
/// Returns an error if the file has no header.
pub fn info(file: &[u8]) -> Result<Info, HeaderError> {
    let header = Header::read(file)?;
    let mut reader = Reader {
        header,
        info: Info {
            version: header.version.to_owned(),
            android: header.is_android(),
            id_bytes: header.id_size.bytes() as u32,
            time_ms: header.time_ms,
            bytes: file.len() as u64,
            ..Info::default()
        },
        string_names: IdSet::default(),
        string_classes: IdSet::default(),
        stacks: HashMap::new(),
        last_stack: (0, false),
        heap: None,
        by_tag: vec![Tally::default(); 256],
    };
    let mut records = Records::new(file, &header);
    while let Some(record) = records.next() {
        match record {
            Ok(record) if record.is_dump() => {
                let read_to = reader.dump(file, &record);
                records.continue_at(read_to);
            }
            Ok(record) => reader.other(&record),
            Err(damage) => reader.info.damage.push(damage),
        }
    }
    if !reader.info.damage.is_empty() && lacks_array_contents(file) {
        reader.info.contents = Contents::Cut;
    }
    reader.name_heaps(file);
    let tallies = (0..=u8::MAX).zip(&reader.by_tag);
    reader.info.sub_records = tallies
        .filter(|(_, tally)| tally.count > 0)
        .map(|(tag, tally)| (tag, *tally))
        .collect();
    Ok(reader.info)
}

/// Returns whether a file is complete, by the lengths of its top-level records alone.
pub fn is_whole(file: &[u8]) -> bool {
    let Ok(header) = Header::read(file) else {
        return false;
    };
    let mut ending = Ending::default();
    for record in Records::new(file, &header) {
        match record {
            Ok(record) if !record.cut_short => ending.note(&record),
            _ => return false,
        }
    }
    ending.is_whole()
}

struct Reader<'a> {
    header: Header<'a>,
    info: Info,
    /// IDs of the name of `java.lang.String`, and of the classes with that name.
    string_names: IdSet,
    string_classes: IdSet,
    /// Numbers of stacks, and whether they have frames.
    stacks: HashMap<u32, bool>,
    last_stack: (u32, bool),
    heap: Option<u32>,
    /// Sub-records by tag.
    by_tag: Vec<Tally>,
}

impl Reader<'_> {
    fn count(&mut self, record: &Record<'_>) {
        let tally = self.info.records.entry(record.tag).or_default();
        tally.count += 1;
        tally.bytes += (record.body.len() + RECORD_HEADER_BYTES) as u64;
        if record.cut_short {
            self.info.damage.push(Damage {
                at: record.at as u64,
                kind: DamageKind::CutShort,
            });
        } else {
            self.info.ending.note(record);
        }
    }

    fn other(&mut self, record: &Record<'_>) {
        self.count(record);
        match record.content(self.header.id_size) {
            Some(Content::Utf8 {
                id,
                text: b"java.lang.String" | b"java/lang/String",
            }) => {
                self.string_names.insert(id);
            }
            Some(Content::LoadClass { class, name, .. }) if self.string_names.contains(&name) => {
                self.string_classes.insert(class);
            }
            Some(Content::Trace { serial, frames, .. }) => {
                let has_frames = !frames.is_empty();
                self.info.stacks_with_frames += u64::from(has_frames);
                self.stacks.insert(serial, has_frames);
            }
            _ => {}
        }
    }

    /// Returns the offset of the next record.
    fn dump(&mut self, file: &[u8], record: &Record<'_>) -> usize {
        // Damage within a sub-record is more specific than a record that is cut short.
        let before = self.info.damage.count;
        self.heap = None;
        let mut subs = SubRecords::new(file, record, self.header.id_size);
        while let Some(sub) = subs.next() {
            match sub {
                Ok((at, sub)) => self.sub_record(file[at], (subs.at() - at) as u64, &sub),
                Err(damage) => self.info.damage.push(damage),
            }
        }
        let found = self.info.damage.count > before;
        let known = Record {
            cut_short: record.cut_short && !found,
            ..*record
        };
        self.count(&known);
        self.info.ending.note(record);
        subs.at()
    }

    #[inline]
    fn sub_record(&mut self, tag: u8, bytes: u64, record: &SubRecord<'_>) {
        let tally = &mut self.by_tag[usize::from(tag)];
        tally.count += 1;
        tally.bytes += bytes;
        let stack = match record {
            SubRecord::Root(_) => return,
            SubRecord::Heap { heap, name } => {
                let heaps = &mut self.info.heaps;
                let known = heaps.len() < MAX_HEAPS || heaps.contains_key(heap);
                self.heap = known.then_some(*heap);
                if known {
                    heaps.entry(*heap).or_default().name_id = *name;
                }
                return;
            }
            SubRecord::Class(_) => None,
            SubRecord::Instance(instance) => {
                if self.string_classes.contains(&instance.class) {
                    self.info.strings += 1;
                }
                Some(instance.stack)
            }
            SubRecord::ObjectArray(array) => Some(array.stack),
            SubRecord::PrimitiveArray(array) => {
                if self.info.contents != Contents::Present
                    && let Some(data) = array.data
                    && !data.is_empty()
                {
                    self.info.contents = match data.iter().all(|&byte| byte == 0) {
                        true => Contents::Zeroed,
                        false => Contents::Present,
                    };
                }
                Some(array.stack)
            }
        };
        if let Some(stack) = stack {
            if stack != self.last_stack.0 {
                let known = self.stacks.get(&stack).copied().unwrap_or(false);
                self.last_stack = (stack, known);
            }
            self.info.with_site += u64::from(self.last_stack.1);
        }
        if let Some(heap) = self.heap {
            let tally = self.info.heaps.entry(heap).or_default();
            tally.objects += 1;
            tally.bytes += bytes;
        }
    }

    /// Looks up the names of the heaps found.
    fn name_heaps(&mut self, file: &[u8]) {
        if self.info.heaps.is_empty() {
            return;
        }
        let mut by_name: IdMap<Vec<&mut HeapTally>> = IdMap::default();
        for heap in self.info.heaps.values_mut() {
            by_name.entry(heap.name_id).or_default().push(heap);
        }
        for record in Records::new(file, &self.header).flatten() {
            if record.tag != tag::UTF8 {
                continue;
            }
            if let Some(Content::Utf8 { id, text }) = record.content(self.header.id_size)
                && let Some(heaps) = by_name.get_mut(&id)
            {
                let name = modified_utf8(&text[..text.len().min(MAX_NAME_BYTES)]);
                for heap in heaps.iter_mut().filter(|heap| heap.name.is_empty()) {
                    heap.name.clone_from(&name);
                }
            }
        }
    }
}
