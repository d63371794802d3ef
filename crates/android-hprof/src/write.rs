//! Writes the graph of a heap as an HPROF, for the tools that read only those.
//!
//! The dialect is Android's (1.0.3), the only one with heaps and with all kinds of roots. An HPROF
//! needs more than a graph has:
//!
//! | part | what is written |
//! |---|---|
//! | IDs | multiplied until they are multiples of 8, as addresses are; of 4 bytes if all fit |
//! | reference fields | with names and values, in the class that declares them if the graph has it as a superclass |
//! | other fields | only those with values in the graph; `$unknownN` fills the size of the class |
//! | instances above the smallest size of their class | refer to an array of the other bytes: `value` of strings, otherwise `$more` |
//! | arrays of primitives | zeros; the length follows from the size (header of ART: 12 bytes, 16 for `long` and `double`) |
//! | arrays of objects | the references, then nulls up to the length by size |
//! | class objects | statics; fields of `java.lang.Class` as `$class$NAME`; other bytes in `$classOverhead`, as ART writes them |
//! | references of the runtime | an array `runtimeInternalObjects`, as ART writes them |
//!
//! Two passes over the objects: the first finds the fields of the classes, the second writes.

mod segments;

use super::output::Output;
use super::records::{IdSize, tag};
use super::sub_records::{HEAPS, sub_tag};
use heaptap_model::heap_graph::{
    BasicType, ClassIndex, Field, HeapGraph, HeapKind, ObjectId, ObjectIndex, ReferenceKind, Value,
};
use heaptap_model::profile::index::FastHash;
use heaptap_model::profile::interned::Texts;
use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, Write};
use std::ops::ControlFlow;

/// Maximum number of fields of a class, and of statics, below the limit of the format.
const MAX_FIELDS: usize = 50_000;
/// Maximum of bytes that fill a class.
const MAX_FILLED: u64 = 1 << 16;
/// Maximum of bytes of values without contents. ART's heaps are below 4 GiB.
const MAX_BYTES: u64 = 8 << 30;
/// Header of objects in ART, and of arrays.
const HEADER: u64 = 8;
const ARRAY_HEADER: u64 = 12;
/// Shallow size of an empty string.
const STRING_BYTES: u64 = 16;
const FIRST_NAME: u64 = 0x40_0000;
/// References that only the runtime holds.
const INTERNAL: &str = "runtimeInternalObjects";
const OVERHEAD: &str = "$classOverhead";

/// Parts of a graph that an HPROF does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Unwritten {
    /// Arrays and references beyond the limits, which only damaged dumps exceed.
    pub beyond_limits: u64,
}

/// Writes a heap. `time_ms` is the time of the dump since 1970, 0 if unknown. Blocks; memory is
/// that of the classes and their fields.
///
/// # Errors
/// Returns an error if `out` does, or if the instances take more bytes than any heap of ART.
pub fn write(graph: &HeapGraph, time_ms: u64, out: &mut dyn Write) -> io::Result<Unwritten> {
    let mut heap = Heap::new(graph, Output::new(out));
    heap.find_fields();
    heap.lay_out()?;
    heap.write(time_ms)?;
    Ok(heap.unwritten)
}

/// Kind of the record of a class's objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Shape {
    #[default]
    Instance,
    Objects,
    Primitives(BasicType),
}

#[derive(Default)]
struct Row {
    name: u32,
    id: u64,
    superclass: Option<usize>,
    loader: u64,
    shape: Shape,
    has_object: bool,
    /// Own fields, by number.
    fields: Vec<u32>,
    /// Bytes of the fields that fill its instances up to their size.
    filled: u64,
    instances: u64,
    /// Smallest and largest shallow size.
    least: u64,
    most: u64,
    /// Own field that refers to the bytes above the smallest size, and whether they are a string's
    /// text.
    more: Option<usize>,
    is_text: bool,
    /// Bytes of an instance's data in the file, and of its own fields.
    data: u64,
    own_data: u64,
    /// Bytes of its fields in memory.
    memory: u64,
}

/// A field of a class.
struct Slot {
    name: u32,
    basic: BasicType,
    /// Offset among the own fields of its class.
    offset: u64,
    /// The last object in which it occurred, by the number of objects read before.
    seen: u64,
}

/// A value in the data of an instance: offset, type and bits.
type FieldValue = (u64, BasicType, u64);

struct Heap<'a> {
    graph: &'a HeapGraph,
    rows: Vec<Row>,
    texts: Texts,
    slots: Vec<Slot>,
    /// Numbers of slots by class, name and type.
    by_name: HashMap<(usize, u32, BasicType), u32, FastHash>,
    /// Names of the fields that fill classes.
    fillers: Vec<u32>,
    heap_names: [u32; 4],
    /// Classes of their names.
    reference: usize,
    objects: usize,
    shift: u32,
    ids: IdSize,
    /// Bytes of values without contents that can still be written.
    room: u64,
    /// Number of objects that were read.
    read: u64,
    /// Fields of the last of them, and its references of the runtime.
    values: Vec<FieldValue>,
    held: Vec<ObjectIndex>,
    unwritten: Unwritten,
    out: Output<'a>,
    /// Start of the open segment's body in the output's buffer.
    open: Option<usize>,
    /// Heap of the objects that follow, which each segment states again.
    heap: HeapKind,
}

impl<'a> Heap<'a> {
    fn new(graph: &'a HeapGraph, out: Output<'a>) -> Heap<'a> {
        let bits = graph.objects().fold(0, |bits, o| bits | graph.id(o).0);
        let shift = 3u32.saturating_sub(bits.trailing_zeros());
        let fits = bits.leading_zeros() > shift;
        let shift = if fits { shift } else { 0 };
        let mut heap = Heap {
            graph,
            rows: Vec::with_capacity(graph.classes().len() + 4),
            texts: Texts::default(),
            slots: Vec::new(),
            by_name: HashMap::default(),
            fillers: Vec::new(),
            heap_names: [0; 4],
            reference: 0,
            objects: 0,
            shift,
            ids: match bits << shift <= u64::from(u32::MAX) {
                true => IdSize::Four,
                false => IdSize::Eight,
            },
            room: MAX_BYTES,
            read: 0,
            values: Vec::new(),
            held: Vec::new(),
            unwritten: Unwritten::default(),
            out,
            open: None,
            heap: HeapKind::Unknown,
        };
        for (at, class) in graph.classes().iter().enumerate() {
            let index = ClassIndex(at as u32);
            heap.add(class.shown());
            let row = &mut heap.rows[at];
            row.shape = shape(&class.name, class.is_array());
            // A chain that does not end would not end in other readers either.
            let top = graph.ancestry(index).last();
            let ends = top.is_some_and(|top| graph.class(top).superclass.is_none());
            row.superclass = class.superclass.filter(|_| ends).map(ClassIndex::at);
            row.least = class.instance_bytes.unwrap_or(0);
            let object = class
                .object
                .filter(|&o| graph.class_behind(o) == Some(index));
            if let Some(object) = object.filter(|&o| !graph.is_placeholder(o)) {
                row.has_object = true;
                row.id = graph.id(object).0 << shift;
                // Readers make it a reference, which the class has in the graph or not.
                let loader = class.loader;
                let loader = loader.filter(|l| graph.references(object).contains(l));
                row.loader = loader.map_or(0, |loader| graph.id(loader).0 << shift);
            }
        }
        let mut find_or_add = |name: &str| {
            let id = heap.texts.id(name);
            let found = heap.rows.iter().position(|row| row.name == id);
            found.unwrap_or_else(|| heap.add(name))
        };
        let known = [
            "java.lang.ref.Reference",
            "java.lang.Object[]",
            "byte[]",
            "java.lang.Class",
        ];
        let [reference, objects, ..] = known.map(&mut find_or_add);
        (heap.reference, heap.objects) = (reference, objects);
        // Graphs of Android 11 do not have superclasses, but readers find referents by this one.
        if heap.rows[reference].superclass.is_none() {
            for (at, class) in graph.classes().iter().enumerate() {
                if class.superclass.is_none() && ReferenceKind::of_class(class.kind).is_some() {
                    heap.rows[at].superclass = Some(reference).filter(|&above| above != at);
                }
            }
        }
        heap.heap_names = HEAPS.map(|(name, _)| heap.texts.id(name));
        heap.texts.id(OVERHEAD);
        heap
    }

    fn add(&mut self, name: &str) -> usize {
        let at = self.rows.len();
        self.rows.push(Row {
            name: self.texts.id(name),
            // No object has such an ID.
            id: 8 * at as u64 + 11,
            shape: shape(name, name.ends_with("[]")),
            ..Row::default()
        });
        at
    }

    fn id(&self, object: ObjectIndex) -> u64 {
        match object {
            ObjectIndex::NONE => 0,
            object => self.graph.id(object).0 << self.shift,
        }
    }

    /// Returns the class that this object represents in the file.
    fn class_behind(&self, object: ObjectIndex) -> Option<usize> {
        let class = self.graph.class_behind(object)?;
        (self.graph.class(class).object == Some(object)).then(|| class.at())
    }

    fn chain(&self, class: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(Some(class), |&class| self.rows[class].superclass)
    }

    /// The first pass: finds fields, sizes and names.
    fn find_fields(&mut self) {
        for object in self.graph.objects() {
            if self.graph.is_placeholder(object) {
                continue;
            }
            if self.class_behind(object).is_some() {
                statics(self.graph, object, &mut |name, _| {
                    self.texts.id(&name);
                });
                continue;
            }
            let bytes = self.graph.shallow_bytes(object);
            let class = self.graph.class_of(object).at();
            let row = &mut self.rows[class];
            if row.instances == 0 || bytes < row.least {
                row.least = bytes;
            }
            row.most = row.most.max(bytes);
            row.instances += 1;
            if row.shape == Shape::Instance {
                self.read(object, class);
            }
        }
    }

    /// Reads the fields of an instance, and the references of the runtime.
    fn read(&mut self, object: ObjectIndex, class: usize) {
        self.values.clear();
        self.held.clear();
        self.read += 1;
        let graph = self.graph;
        let mut place = 0;
        graph.contents().fields(graph, object, &mut |field| {
            let mut bits = self.bits(field.value);
            if field.name == Some(INTERNAL) {
                self.held.extend(field.value.object());
                match self.held.len() {
                    0 => {}
                    1 => bits = self.id(object) | 4,
                    _ => return ControlFlow::Continue(()),
                }
            }
            let basic = field.value.basic_type();
            match self.offset(class, place, &field) {
                Some(offset) => self.values.push((offset, basic, bits)),
                None => self.unwritten.beyond_limits += 1,
            }
            place += 1;
            ControlFlow::Continue(())
        });
    }

    fn bits(&self, value: Value) -> u64 {
        match value {
            Value::Object(target) => self.id(target),
            Value::Null | Value::Dangling(_) => 0,
            Value::Boolean(value) => value.into(),
            Value::Char(value) => value.into(),
            Value::Float(value) => value.to_bits().into(),
            Value::Double(value) => value.to_bits(),
            other => other.integer().unwrap_or(0) as u64,
        }
    }

    /// Returns the offset of a field of an instance, which is added if it is new.
    fn offset(&mut self, class: usize, place: usize, field: &Field<'_>) -> Option<u64> {
        if place >= MAX_FIELDS {
            return None;
        }
        let kind = self.graph.classes()[class].kind;
        let is_referent = field.name == Some("referent") && ReferenceKind::of_class(kind).is_some();
        let declared = match field.declared_in {
            Some(declared) => declared.at(),
            // Only there do readers take it for the referent.
            None if is_referent => self.reference,
            None => class,
        };
        let owner = self.chain(class).find(|&above| above == declared);
        let owner = owner.unwrap_or(class);
        let mut name = match field.name {
            Some(name) => Cow::Borrowed(name),
            None => Cow::Owned(format!("$reference{place}")),
        };
        loop {
            let at = self.slot(owner, &name, field.value.basic_type())?;
            let slot = &mut self.slots[at];
            if slot.seen != self.read {
                slot.seen = self.read;
                let below = self.chain(class).take_while(|&above| above != owner);
                let below: u64 = below.map(|class| self.rows[class].own_data).sum();
                return Some(below + self.slots[at].offset);
            }
            name = Cow::Owned(format!("{name}${place}"));
        }
    }

    /// Returns an own field of a class, which is added if it is new and the class has room.
    fn slot(&mut self, owner: usize, name: &str, basic: BasicType) -> Option<usize> {
        let name = self.texts.id(name);
        let fields = &mut self.rows[owner].fields;
        let next = self.slots.len() as u32;
        let at = match self.by_name.entry((owner, name, basic)) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(_) if fields.len() >= MAX_FIELDS => return None,
            Entry::Vacant(new) => {
                fields.push(next);
                self.slots.push(Slot {
                    name,
                    basic,
                    offset: 0,
                    seen: 0,
                });
                *new.insert(next)
            }
        };
        Some(at as usize)
    }

    /// Fills the classes up to their sizes, and places their fields.
    fn lay_out(&mut self) -> io::Result<()> {
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_by_cached_key(|&class| self.chain(class).count());
        let (mut all, mut fillers) = (0u64, 0);
        for class in order {
            let name = self.texts.get(self.rows[class].name);
            let (is_string, is_class) = (name == "java.lang.String", name == "java.lang.Class");
            let row = &mut self.rows[class];
            if is_string {
                row.least = row.least.min(STRING_BYTES);
            }
            if is_class || row.shape != Shape::Instance {
                row.least = 0;
            }
            if row.shape == Shape::Instance && row.most > row.least {
                row.is_text = is_string && row.fields.is_empty();
                let is_text = row.is_text;
                let name = if is_text { "value" } else { "$more" };
                self.rows[class].more = self.slot(class, name, BasicType::Object);
                if is_text {
                    // Of no characters: the text is unknown.
                    self.slot(class, "count", BasicType::Int);
                }
            }
            let above = self.rows[class].superclass.map(|above| &self.rows[above]);
            let (memory, data) = above.map_or((0, 0), |above| (above.memory, above.data));
            let row = &mut self.rows[class];
            row.memory = memory;
            for &field in &row.fields {
                let slot = &mut self.slots[field as usize];
                slot.offset = row.own_data;
                row.own_data += slot.basic.bytes(self.ids.bytes()) as u64;
                row.memory += slot.basic.bytes(4) as u64;
            }
            row.filled = row.least.saturating_sub(HEADER + row.memory);
            row.filled = row.filled.min(MAX_FILLED);
            fillers = fillers.max(filling(row.filled).count());
            row.memory += row.filled;
            row.own_data += row.filled;
            row.data = data + row.own_data;
            all = all.saturating_add(row.instances.saturating_mul(row.data));
        }
        let names = (0..fillers).map(|number| self.texts.id(&format!("$unknown{number}")));
        self.fillers = names.collect();
        match all > MAX_BYTES {
            true => Err(io::Error::other("the instances take more than 8 GiB")),
            false => Ok(()),
        }
    }

    fn put_id(&mut self, id: u64) {
        self.ids.put(&mut self.out.buffer, id);
    }

    fn put_name(&mut self, name: u32) {
        self.put_id(FIRST_NAME + u64::from(name));
    }

    fn put_u2(&mut self, number: usize) {
        self.out.buffer.extend((number as u16).to_be_bytes());
    }

    fn put_u4(&mut self, number: u32) {
        self.out.buffer.extend(number.to_be_bytes());
    }

    /// The second pass.
    fn write(&mut self, time_ms: u64) -> io::Result<()> {
        let width = self.ids.bytes();
        self.out.put(b"JAVA PROFILE 1.0.3\0")?;
        self.put_u4(width as u32);
        self.out.put(&time_ms.to_be_bytes())?;
        for name in 0..self.texts.len() as u32 {
            let text = self.texts.get(name).as_bytes();
            self.out.record_header(tag::UTF8, 0, width + text.len())?;
            self.ids
                .put(&mut self.out.buffer, FIRST_NAME + u64::from(name));
            self.out.put(text)?;
        }
        for class in 0..self.rows.len() {
            let (id, name) = (self.rows[class].id, self.rows[class].name);
            if self.is_written(class) {
                self.out.record_header(tag::LOAD_CLASS, 0, 8 + 2 * width)?;
                self.put_u4(class as u32 + 1);
                self.put_id(id);
                self.put_u4(0);
                self.put_name(name);
            }
        }
        self.out.record_header(tag::TRACE, 0, 12)?;
        self.out.zeros(12)?;
        for class in 0..self.rows.len() {
            if !self.rows[class].has_object && self.is_written(class) {
                self.put_class(class, None)?;
            }
        }
        let mut roots = self.graph.roots().iter().peekable();
        for object in self.graph.objects() {
            let is_there = !self.graph.is_placeholder(object);
            self.begin(self.graph.heap_of(object))?;
            while let Some(root) = roots.next_if(|root| root.object <= object) {
                if is_there {
                    self.put_root(object, root.kind);
                }
            }
            if is_there {
                self.put_object(object)?;
            }
        }
        self.end(0)?;
        self.out.record_header(tag::HEAP_DUMP_END, 0, 0)?;
        self.out.flush()
    }

    /// Returns whether the file has a class. Those of class objects have no instances of their own.
    fn is_written(&self, class: usize) -> bool {
        let row = &self.rows[class];
        let name = self.texts.get(row.name);
        row.has_object || row.instances > 0 || !name.starts_with("java.lang.Class<")
    }

    fn put_object(&mut self, object: ObjectIndex) -> io::Result<()> {
        let class = self.graph.class_of(object).at();
        let bytes = self.graph.shallow_bytes(object);
        let id = self.id(object);
        match (self.class_behind(object), self.rows[class].shape) {
            (Some(behind), _) => self.put_class(behind, Some(object)),
            (None, Shape::Instance) => {
                self.read(object, class);
                self.put_instance(object, class)
            }
            (None, Shape::Objects) => {
                let length = bytes.saturating_sub(ARRAY_HEADER) / 4;
                let elements = self.graph.references(object);
                let nulls = length.saturating_sub(elements.len() as u64);
                self.put_objects(id, class, elements, nulls)
            }
            (None, Shape::Primitives(basic)) => {
                let width = basic.bytes(8) as u64;
                let header = ARRAY_HEADER.next_multiple_of(width);
                self.put_primitives(id, basic, bytes.saturating_sub(header) / width)
            }
        }
    }

    fn put_class(&mut self, class: usize, object: Option<ObjectIndex>) -> io::Result<()> {
        let mut found: Vec<(u32, u64)> = Vec::new();
        if let Some(object) = object {
            statics(self.graph, object, &mut |name, target| {
                found.push((self.texts.id(&name), self.id(target)));
            });
        }
        self.unwritten.beyond_limits += found.len().saturating_sub(MAX_FIELDS) as u64;
        found.truncate(MAX_FIELDS);
        let heap = object.map_or(HeapKind::Unknown, |object| self.graph.heap_of(object));
        let bytes = object.map_or(0, |object| self.graph.shallow_bytes(object));
        let id = self.rows[class].id;
        // The reference to the overhead is one of them.
        let statics_bytes = (found.len() + 1) * self.ids.bytes();
        if let Some(overhead) = bytes.checked_sub(statics_bytes as u64) {
            self.put_primitives(id | 1, BasicType::Byte, overhead)?;
            found.push((self.texts.id(OVERHEAD), id | 1));
        }
        self.begin(heap)?;
        self.put_head(sub_tag::CLASS, id);
        let row = &self.rows[class];
        let superclass = row.superclass.map_or(0, |above| self.rows[above].id);
        let size = u32::try_from(row.least).unwrap_or(u32::MAX);
        let slots = row.fields.iter().map(|&field| &self.slots[field as usize]);
        let own = slots.map(|slot| (slot.name, slot.basic));
        let fillers = self.fillers.iter().copied().zip(filling(row.filled));
        let fields: Vec<(u32, BasicType)> = own.chain(fillers).collect();
        // Signers, protection domain and two others.
        for id in [superclass, row.loader, 0, 0, 0, 0] {
            self.put_id(id);
        }
        self.put_u4(size);
        // No constants.
        self.out.buffer.extend([0; 2]);
        self.put_u2(found.len());
        for (name, target) in found {
            self.put_name(name);
            self.out.buffer.push(BasicType::Object as u8);
            self.put_id(target);
        }
        self.put_u2(fields.len());
        for (name, basic) in fields {
            self.put_name(name);
            self.out.buffer.push(basic as u8);
        }
        Ok(())
    }

    fn put_instance(&mut self, object: ObjectIndex, class: usize) -> io::Result<()> {
        let id = self.id(object);
        let row = &self.rows[class];
        let (class_id, data) = (row.id, row.data as usize);
        let more = self.graph.shallow_bytes(object).saturating_sub(row.least);
        let more_field = row.more.filter(|_| more > 0);
        // Behind the object as in ART, if it is a text; no object has an ID of the other kinds.
        let behind = id.checked_add(16).filter(|&behind| {
            let fits = self.ids == IdSize::Eight || behind <= u64::from(u32::MAX);
            row.is_text && fits && self.graph.find(ObjectId(behind >> self.shift)).is_none()
        });
        let more_id = behind.unwrap_or(id | 2);
        if let Some(field) = more_field {
            let offset = self.slots[field].offset;
            self.values.push((offset, BasicType::Object, more_id));
        }
        self.put_head(sub_tag::INSTANCE, id);
        self.put_id(class_id);
        self.put_u4(data as u32);
        let buffer = &mut self.out.buffer;
        let start = buffer.len();
        buffer.resize(start + data, 0);
        for (offset, basic, bits) in &self.values {
            let bytes = &bits.to_be_bytes()[8 - basic.bytes(self.ids.bytes())..];
            buffer[start + *offset as usize..][..bytes.len()].copy_from_slice(bytes);
        }
        if more_field.is_some() {
            self.put_primitives(more_id, BasicType::Byte, more)?;
        }
        if !self.held.is_empty() {
            let held = std::mem::take(&mut self.held);
            self.put_objects(id | 4, self.objects, &held, 0)?;
        }
        Ok(())
    }

    /// Returns how many of these values have room.
    fn take(&mut self, length: u64, width: u64) -> u64 {
        // A record has fewer than 4 GiB.
        let most = self.room.min(3 << 30) / width;
        self.unwritten.beyond_limits += u64::from(length > most);
        let length = length.min(most);
        self.room -= length * width;
        length
    }
}

/// Returns the fields of zeros that take so many bytes.
fn filling(bytes: u64) -> impl Iterator<Item = BasicType> {
    let rest = [
        (4, BasicType::Int),
        (2, BasicType::Short),
        (1, BasicType::Byte),
    ];
    let rest = rest.into_iter().filter(move |(part, _)| bytes & part != 0);
    std::iter::repeat_n(BasicType::Long, bytes as usize / 8).chain(rest.map(|(_, basic)| basic))
}

fn shape(name: &str, is_array: bool) -> Shape {
    let element = name.strip_suffix("[]");
    let mut basics = (4..12).filter_map(BasicType::of_code);
    match basics.find(|basic| element == Some(basic.name())) {
        Some(basic) => Shape::Primitives(basic),
        None if is_array => Shape::Objects,
        None => Shape::Instance,
    }
}

/// Visits the references of a class object, with the names that ART gives them.
fn statics(
    graph: &HeapGraph,
    object: ObjectIndex,
    visit: &mut dyn FnMut(Cow<'_, str>, ObjectIndex),
) {
    graph.contents().fields(graph, object, &mut |field| {
        if field.value.basic_type() == BasicType::Object {
            let name = field.name.unwrap_or("$reference");
            let name = match field.is_static {
                true => Cow::Borrowed(name),
                false => Cow::Owned(format!("$class${name}")),
            };
            visit(name, field.value.object().unwrap_or(ObjectIndex::NONE));
        }
        ControlFlow::Continue(())
    });
}
