//! A copy of a dump to share: same records, IDs, sizes and references, but zeros instead of the
//! contents of arrays. Owns the choice of bytes to zero; `rewrite` copies.
//!
//! Always zeroed: elements of primitive arrays, and thereby the text of strings, pixels and
//! buffers; hash codes of strings, from which a text can be guessed; bytes of an instance that
//! belong to no known field; texts of the string table that name nothing in the dump; bodies of
//! records with unknown tags. HotSpot writes all of its symbols into that table, and so literals of
//! the code; an agent writes the names of threads.
//! The hash codes are the int fields with the usual names, in any class: an entry of a map has the
//! one of its key.
//! Unreadable records are not copied. Kept: names of classes, fields, methods, files and heaps, the
//! lengths of arrays, numbers in fields (see [`StripOptions::fields`]) and stacks.

use super::id_map::{IdMap, IdSet};
use super::records::{Content, Header, IdSize, Record, Records, tag};
use super::rewrite::{Body, Edit, Other, RewriteError, Rewritten, rewrite};
use super::sub_records::{ClassDump, SubRecord, SubRecords};
use heaptap_model::heap_graph::BasicType;
use heaptap_model::heap_graph::MAX_DEPTH;
use std::io::Write;
use std::ops::Range;
use std::rc::Rc;

/// Options for stripping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StripOptions {
    /// Keep the text of strings; other arrays are zeroed anyway.
    pub keep_strings: bool,
    /// Zero numbers and characters in fields and statics as well. Kept are booleans and how often a
    /// view was attached to a window, which identify leaks, the sizes of native allocations, and the
    /// storage form of strings.
    pub fields: bool,
}

/// Outcome of stripping.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stripped {
    /// Facts about the copy and the damage found.
    pub file: Rewritten,
    /// Arrays whose elements were zeroed.
    pub arrays: u64,
    /// Bytes of their elements.
    pub array_bytes: u64,
    /// Arrays of strings that were kept.
    pub strings_kept: u64,
    /// Records of unknown tags, zeroed.
    pub unknown_records: u64,
}

/// Strips a dump. Damage is not an error: what can be read is copied; the rest is left out and
/// listed in the result. Reads the file twice, or three times to keep strings.
///
/// # Errors
/// Returns an error if the file has no header, or the copy cannot be written.
pub fn strip(
    file: &[u8],
    options: StripOptions,
    out: &mut dyn Write,
) -> Result<Stripped, RewriteError> {
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
        id_size: header.id_size,
        counts: Stripped::default(),
    };
    let new_header = &file[..header.bytes];
    let file = rewrite(file, &header, new_header, &mut edit, out)?;
    Ok(Stripped {
        file,
        ..edit.counts
    })
}

/// Classes of a dump, as far as values in their instances have to be found.
#[derive(Default)]
struct Classes<'a> {
    dumps: IdMap<ClassDump<'a>>,
    /// `java.lang.String` of every loader that has one.
    strings: IdSet,
    /// `libcore.util.NativeAllocationRegistry`.
    registries: IdSet,
    /// `android.view.View`.
    views: IdSet,
    /// IDs of the strings that name the values to find.
    hash: IdSet,
    value: IdSet,
    size: IdSet,
    attach_count: IdSet,
    /// `$class$…`: ART's facts about a class in the form of statics; nothing of the app's.
    of_class: IdSet,
    /// IDs of all strings that name a class, a member, a part of a frame or a heap.
    names: IdSet,
}

impl<'a> Classes<'a> {
    fn read(file: &'a [u8], header: &Header<'_>) -> Classes<'a> {
        let mut classes = Classes::default();
        let (mut string, mut registry) = (IdSet::default(), IdSet::default());
        let mut view = IdSet::default();
        let mut loaded = Vec::new();
        each_sub_record(file, header, |found| match found {
            Found::Record(record) => match record.content(header.id_size) {
                Some(Content::Utf8 { id, text }) => {
                    let ids = match text {
                        b"hash" | b"mHash" | b"hashCode" => &mut classes.hash,
                        b"value" => &mut classes.value,
                        b"size" => &mut classes.size,
                        b"mWindowAttachCount" => &mut classes.attach_count,
                        b"java.lang.String" | b"java/lang/String" => &mut string,
                        b"libcore.util.NativeAllocationRegistry" => &mut registry,
                        b"android.view.View" => &mut view,
                        text if text.starts_with(b"$class$") => &mut classes.of_class,
                        _ => return,
                    };
                    ids.insert(id);
                }
                Some(Content::LoadClass { class, name, .. }) => {
                    classes.names.insert(name);
                    loaded.push((class, name));
                }
                Some(Content::Frame(it)) => {
                    classes.names.extend([it.method, it.signature, it.source]);
                }
                _ => {}
            },
            Found::Sub(SubRecord::Class(class)) => {
                classes.names.extend(class.fields().map(|field| field.name));
                let statics = class.statics();
                classes.names.extend(statics.map(|field| field.name));
                classes.dumps.entry(class.id()).or_insert(class);
            }
            Found::Sub(SubRecord::Heap { name, .. }) => {
                classes.names.insert(name);
            }
            Found::Sub(_) => {}
        });
        let named = |names: &IdSet| -> IdSet {
            let found = loaded.iter().filter(|(_, name)| names.contains(name));
            found.map(|(class, _)| *class).collect()
        };
        classes.strings = named(&string);
        classes.registries = named(&registry);
        classes.views = named(&view);
        classes
    }

    /// Fields that begin in the first bytes of an instance's data, in order, each with its class
    /// and offset, up to the first class that is missing in the dump. Bounded if superclasses form
    /// a cycle.
    fn fields(&self, class: u64, id_bytes: usize, data: usize) -> Vec<Place> {
        let mut places = Vec::new();
        let mut at = 0;
        let mut next = class;
        for _ in 0..MAX_DEPTH {
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

    /// Returns the range of a string's reference to its text.
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

/// Visits every whole record that is not a dump, and every sub-record, in file order.
fn each_sub_record<'a>(file: &'a [u8], header: &Header<'_>, mut visit: impl FnMut(Found<'a>)) {
    let mut records = Records::new(file, header);
    while let Some(Ok(record)) = records.next() {
        if !record.is_dump() {
            // It is not copied, so that what it says must have no effect.
            if !record.cut_short {
                visit(Found::Record(record));
            }
            continue;
        }
        let mut subs = SubRecords::new(file, &record, header.id_size);
        for (_, sub) in subs.by_ref().flatten() {
            visit(Found::Sub(sub));
        }
        records.continue_at(subs.at());
    }
}

/// Returns the IDs of the arrays that hold the text of strings, ascending.
fn texts_of_strings(file: &[u8], header: &Header<'_>, classes: &Classes<'_>) -> Vec<u64> {
    let id_size = header.id_size;
    // By class, for the longest instance so far, which bounds the number of fields.
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
    /// IDs of arrays that are kept, ascending.
    strings: &'a [u64],
    /// Ranges of an instance's data that are zeroed, by class, for instances up to that many bytes.
    layouts: IdMap<(usize, Rc<[Range<usize>]>)>,
    id_size: IdSize,
    counts: Stripped,
}

impl ToShare<'_> {
    /// Returns the ranges for an instance of `data` bytes. The cost is bounded by the data, even if
    /// a hostile dump has many fields.
    fn layout(&mut self, class: u64, data: usize) -> Rc<[Range<usize>]> {
        if let Some((longest, layout)) = self.layouts.get(&class)
            && data <= *longest
        {
            return Rc::clone(layout);
        }
        let classes = self.classes;
        let goes = |place: &Place| {
            if place.basic == BasicType::Int && classes.hash.contains(&place.name) {
                return true;
            }
            // The other fields of a string determine how its text is stored.
            let kept = matches!(place.basic, BasicType::Object | BasicType::Boolean)
                || classes.strings.contains(&place.class)
                || classes.registries.contains(&place.class) && classes.size.contains(&place.name)
                || classes.views.contains(&place.class)
                    && classes.attach_count.contains(&place.name);
            self.options.fields && !kept
        };
        let mut ranges: Vec<Range<usize>> = Vec::new();
        let places = classes.fields(class, self.id_size.bytes(), data);
        let end = places.last().map_or(0, |place| place.range.end);
        for place in places.into_iter().filter(goes) {
            match ranges.last_mut() {
                Some(last) if last.end == place.range.start => last.end = place.range.end,
                _ => ranges.push(place.range),
            }
        }
        // The rest belongs to no known field, so it can be a hash code: a dump that is cut short can
        // have instances of a class without the class.
        ranges.push(end..usize::MAX);
        let layout: Rc<[Range<usize>]> = ranges.into();
        self.layouts.insert(class, (data, Rc::clone(&layout)));
        layout
    }

    fn instance(&mut self, range: Range<usize>, class: u64, bytes: usize, out: &mut Body<'_, '_>) {
        let data = range.end - bytes;
        let zeroed = self.layout(class, bytes);
        let zeroed = zeroed.iter().map(|part| {
            let end = part.end.min(bytes);
            data + part.start.min(end)..data + end
        });
        keep_but(range, zeroed, out);
    }

    fn class(&self, range: Range<usize>, class: &ClassDump<'_>, out: &mut Body<'_, '_>) {
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

/// Keeps a part of the file except the given ranges, which become zero.
fn keep_but(
    range: Range<usize>,
    zeroed: impl Iterator<Item = Range<usize>>,
    out: &mut Body<'_, '_>,
) {
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
            Some(_) => match record.content(self.id_size) {
                Some(Content::Utf8 { id, .. }) if !self.classes.names.contains(&id) => {
                    Other::ZeroFrom(self.id_size.bytes())
                }
                _ => Other::Keep,
            },
            None => {
                self.counts.unknown_records += 1;
                Other::ZeroFrom(0)
            }
        }
    }

    fn dump(&mut self) {}

    fn keeps_empty(&self) -> bool {
        false
    }

    #[inline]
    fn sub_record(&mut self, range: Range<usize>, record: &SubRecord<'_>, out: &mut Body<'_, '_>) {
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
