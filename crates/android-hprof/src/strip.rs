//! A copy of a dump to share: same records, ids, sizes and references, and zero bytes where the
//! contents of arrays were. Owns which bytes go; copying is `rewrite`'s.
//!
//! Always zeroed: elements of primitive arrays, and so the text of strings, pixels, buffers;
//! `String.hash`, from which a text can be guessed; bodies of records nobody knows. What cannot
//! be read is not copied. What stays: names of classes, fields, methods, files and heaps, the
//! lengths of arrays, numbers in fields (see [`StripOptions::fields`]), stacks.

use super::id_map::{IdMap, IdSet};
use super::records::{Content, Header, HeaderError, Record, Records, tag};
use super::rewrite::{Body, Edit, Other, Rewritten, rewrite};
use super::sub_records::{ClassDump, SubRecord, SubRecords};
use heaptap_model::error::{Classified, ErrorClass, ErrorFacts};
use heaptap_model::heap_graph::BasicType;
use heaptap_model::heap_graph::DEEPEST;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

/// What a copy keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StripOptions {
    /// Keep the text of strings; other arrays are zeroed all the same.
    pub keep_strings: bool,
    /// Zero numbers and characters in fields and statics as well. Booleans stay: leaks are told
    /// by them; so do the sizes of native allocations, and how strings are stored.
    pub fields: bool,
}

/// What was stripped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stripped {
    /// What was copied, and what could not be read.
    pub file: Rewritten,
    /// Arrays whose elements were zeroed.
    pub arrays: u64,
    /// Bytes of their elements.
    pub array_bytes: u64,
    /// Strings' arrays that were kept.
    pub strings_kept: u64,
    /// Records of unknown tags, zeroed.
    pub unknown_records: u64,
}

/// Why there is no copy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StripError {
    /// It has no header.
    #[error("it is no HPROF: {0}")]
    Header(#[from] HeaderError),
    /// The copy can't be written.
    #[error("the copy cannot be written")]
    Write(#[from] io::Error),
}

impl Classified for StripError {
    fn facts(&self) -> ErrorFacts {
        match self {
            StripError::Header(_) => ErrorFacts::new(ErrorClass::BadInput, "hprof-header")
                .with_help("fetch the dump again; `heaptap dump --hprof` checks it"),
            StripError::Write(_) => ErrorFacts::new(ErrorClass::HostWrite, "output-unwritable")
                .with_help("make room there, or name another file"),
        }
    }
}

/// Strips. Damage is no error: what can be read is copied, the rest is left out and told. Reads
/// the file twice, with kept strings three times.
///
/// # Errors
/// Where it has no header, or the copy can't be written.
pub fn strip(
    file: &[u8],
    options: StripOptions,
    out: &mut dyn Write,
) -> Result<Stripped, StripError> {
    let header = Header::read(file)?;
    let classes = Classes::read(file, &header);
    let strings = match options.keep_strings {
        true => texts_of_strings(file, &header, &classes),
        false => Vec::new(),
    };
    let mut edit = ToShare {
        start: file.as_ptr() as usize,
        options,
        classes: &classes,
        strings: &strings,
        layouts: IdMap::default(),
        id_bytes: header.id_size.bytes(),
        counts: Stripped::default(),
    };
    let new_header = &file[..header.bytes];
    let file = rewrite(file, &header, new_header, &mut edit, out)?;
    Ok(Stripped {
        file,
        ..edit.counts
    })
}

/// Classes of a dump, as far as values in its instances have to be found.
struct Classes<'a> {
    dumps: IdMap<ClassDump<'a>>,
    /// `java.lang.String`, by every loader that claims one.
    strings: IdSet,
    /// `libcore.util.NativeAllocationRegistry`.
    registries: IdSet,
    /// Ids of the texts that name what is looked for.
    hash: IdSet,
    value: IdSet,
    size: IdSet,
    /// `$class$…`: what ART says of a class in the form of statics; nothing of the app's.
    of_class: IdSet,
}

impl<'a> Classes<'a> {
    fn read(file: &'a [u8], header: &Header<'_>) -> Classes<'a> {
        let mut classes = Classes {
            dumps: IdMap::default(),
            strings: IdSet::default(),
            registries: IdSet::default(),
            hash: IdSet::default(),
            value: IdSet::default(),
            size: IdSet::default(),
            of_class: IdSet::default(),
        };
        let (mut string, mut registry) = (IdSet::default(), IdSet::default());
        let mut loaded = Vec::new();
        each_sub_record(file, header, |found| match found {
            Found::Record(record) => match record.content(header.id_size) {
                Some(Content::Utf8 { id, text }) => {
                    let ids = match text {
                        b"hash" => &mut classes.hash,
                        b"value" => &mut classes.value,
                        b"size" => &mut classes.size,
                        b"java.lang.String" | b"java/lang/String" => &mut string,
                        b"libcore.util.NativeAllocationRegistry" => &mut registry,
                        text if text.starts_with(b"$class$") => &mut classes.of_class,
                        _ => return,
                    };
                    ids.insert(id);
                }
                Some(Content::LoadClass { class, name, .. }) => loaded.push((class, name)),
                _ => {}
            },
            Found::Sub(SubRecord::Class(class)) => {
                classes.dumps.entry(class.id()).or_insert(class);
            }
            Found::Sub(_) => {}
        });
        let named = |names: &IdSet| -> IdSet {
            let found = loaded.iter().filter(|(_, name)| names.contains(name));
            found.map(|(class, _)| *class).collect()
        };
        classes.strings = named(&string);
        classes.registries = named(&registry);
        classes
    }

    /// Fields that begin in the first bytes of an instance's data, in order, each with its class
    /// and place; up to the first class that is not in the dump. Bounded where superclasses go
    /// round in a circle.
    fn fields(&self, class: u64, id_bytes: usize, data: usize) -> Vec<Place> {
        let mut places = Vec::new();
        let mut at = 0;
        let mut next = class;
        for _ in 0..DEEPEST {
            let Some(dump) = self.dumps.get(&next) else {
                break;
            };
            for field in dump.fields() {
                if at >= data {
                    return places;
                }
                let bytes = field.basic.bytes(id_bytes);
                places.push(Place {
                    class: next,
                    name: field.name,
                    basic: field.basic,
                    range: at..at + bytes,
                });
                at += bytes;
            }
            next = dump.superclass();
        }
        places
    }

    /// Where a string of so many bytes refers to its text.
    fn value_of_string(&self, class: u64, id_bytes: usize, data: usize) -> Option<Range<usize>> {
        let fields = self.fields(class, id_bytes, data);
        let mut fields = fields.into_iter();
        let value = fields
            .find(|field| field.basic == BasicType::Object && self.value.contains(&field.name));
        value.map(|field| field.range)
    }
}

struct Place {
    class: u64,
    name: u64,
    basic: BasicType,
    range: Range<usize>,
}

enum Found<'a> {
    Record(Record<'a>),
    Sub(SubRecord<'a>),
}

/// Every record that is no dump, and every sub-record, in the file's order.
fn each_sub_record<'a>(file: &'a [u8], header: &Header<'_>, mut visit: impl FnMut(Found<'a>)) {
    let mut records = Records::new(file, header);
    while let Some(Ok(record)) = records.next() {
        if !record.is_dump() {
            visit(Found::Record(record));
            continue;
        }
        let mut subs = SubRecords::new(file, &record, header.id_size);
        for (_, sub) in subs.by_ref().flatten() {
            visit(Found::Sub(sub));
        }
        records.continue_at(subs.at());
    }
}

/// Ids of the arrays that hold the text of strings, ascending.
fn texts_of_strings(file: &[u8], header: &Header<'_>, classes: &Classes<'_>) -> Vec<u64> {
    let id_size = header.id_size;
    // By class, for the longest instance so far: what fields there are is bounded by that.
    let mut values: IdMap<(usize, Option<Range<usize>>)> = IdMap::default();
    let mut texts = Vec::new();
    each_sub_record(file, header, |found| {
        if let Found::Sub(SubRecord::Instance(instance)) = found
            && classes.strings.contains(&instance.class)
        {
            let bytes = instance.data.len();
            let (longest, value) = values.entry(instance.class).or_default();
            if *longest < bytes {
                *longest = bytes;
                *value = classes.value_of_string(instance.class, id_size.bytes(), bytes);
            }
            let value = value.clone().and_then(|range| instance.data.get(range));
            texts.extend(value.and_then(|value| id_size.read(value)));
        }
    });
    texts.sort_unstable();
    texts.dedup();
    texts
}

#[derive(Clone)]
struct ToShare<'a> {
    /// Address of the file: values of statics are parts of it.
    start: usize,
    options: StripOptions,
    classes: &'a Classes<'a>,
    /// Ids of arrays that are kept, ascending.
    strings: &'a [u64],
    /// Ranges of an instance's data that are zeroed, by class, for instances up to so many bytes.
    layouts: IdMap<(usize, Arc<[Range<usize>]>)>,
    id_bytes: usize,
    counts: Stripped,
}

impl ToShare<'_> {
    /// For an instance of so many bytes. That a hostile dump has many fields costs no more than
    /// it has data for them.
    fn layout(&mut self, class: u64, data: usize) -> Arc<[Range<usize>]> {
        if let Some((longest, layout)) = self.layouts.get(&class)
            && data <= *longest
        {
            return Arc::clone(layout);
        }
        let classes = self.classes;
        let goes = |place: &Place| {
            // What else a string has tells how its text is stored.
            if classes.strings.contains(&place.class) {
                return place.basic != BasicType::Object && classes.hash.contains(&place.name);
            }
            let kept = matches!(place.basic, BasicType::Object | BasicType::Boolean)
                || classes.registries.contains(&place.class) && classes.size.contains(&place.name);
            self.options.fields && !kept
        };
        let mut ranges: Vec<Range<usize>> = Vec::new();
        let places = classes.fields(class, self.id_bytes, data);
        let end = places.last().map_or(0, |place| place.range.end);
        for place in places.into_iter().filter(goes) {
            match ranges.last_mut() {
                Some(last) if last.end == place.range.start => last.end = place.range.end,
                _ => ranges.push(place.range),
            }
        }
        if self.options.fields {
            // What belongs to no field that is known.
            ranges.push(end..usize::MAX);
        }
        let layout: Arc<[Range<usize>]> = ranges.into();
        self.layouts.insert(class, (data, Arc::clone(&layout)));
        layout
    }

    fn instance(&mut self, range: Range<usize>, class: u64, bytes: usize, out: &mut Body<'_>) {
        if !self.options.fields && !self.classes.strings.contains(&class) {
            out.keep(range);
            return;
        }
        let data = range.end - bytes;
        let zeroed = self.layout(class, bytes);
        let zeroed = zeroed.iter().map(|part| {
            let end = part.end.min(bytes);
            data + part.start.min(end)..data + end
        });
        keep_but(range, zeroed, out);
    }

    fn class(&self, range: Range<usize>, class: &ClassDump<'_>, out: &mut Body<'_>) {
        let of_class = &self.classes.of_class;
        let statics = class.statics().filter(|it| !of_class.contains(&it.name));
        let zeroed = class
            .constants()
            .chain(statics)
            .filter(|value| !matches!(value.basic, BasicType::Object | BasicType::Boolean))
            .map(|value| {
                let at = value.value.as_ptr() as usize - self.start;
                at..at + value.value.len()
            });
        match self.options.fields {
            true => keep_but(range, zeroed, out),
            false => out.keep(range),
        }
    }
}

/// Keeps a part of the file but for some of it, which becomes zero.
fn keep_but(range: Range<usize>, zeroed: impl Iterator<Item = Range<usize>>, out: &mut Body<'_>) {
    let mut at = range.start;
    for part in zeroed.filter(|part| !part.is_empty()) {
        out.keep(at..part.start);
        out.zeros(part.len());
        at = part.end;
    }
    out.keep(at..range.end);
}

impl Edit for ToShare<'_> {
    fn other(&mut self, record: &Record<'_>) -> Other {
        match tag::name(record.tag) {
            Some(_) => Other::Keep,
            None => {
                self.counts.unknown_records += 1;
                Other::Zero
            }
        }
    }

    fn dump(&mut self) {}

    #[inline]
    fn sub_record(&mut self, range: Range<usize>, record: &SubRecord<'_>, out: &mut Body<'_>) {
        match record {
            SubRecord::PrimitiveArray(array) => {
                let bytes = array.data.map_or(0, <[u8]>::len);
                if bytes > 0 && self.strings.binary_search(&array.id).is_ok() {
                    self.counts.strings_kept += 1;
                    out.keep(range);
                    return;
                }
                if bytes > 0 {
                    self.counts.arrays += 1;
                    self.counts.array_bytes += bytes as u64;
                }
                out.keep(range.start..range.end - bytes);
                out.zeros(bytes);
            }
            SubRecord::Instance(instance) => {
                self.instance(range, instance.class, instance.data.len(), out);
            }
            SubRecord::Class(class) => self.class(range, class, out),
            _ => out.keep(range),
        }
    }
}
