//! Writes the graph of a heap as an HPROF, for the tools that read only those.
//!
//! The dialect is Android's (1.0.3), the only one with heaps and with all kinds of roots. An HPROF
//! needs more than a graph has:
//!
//! | part | what is written |
//! |---|---|
//! | IDs | multiplied until they are multiples of 8, as addresses are; of 4 bytes if all fit |
//! | reference fields | with names and values, in the class that declares them |
//! | other fields | only those with values in the graph; `$unknownN` fills the size of the class |
//! | instances above the smallest size of their class | refer to an array of the other bytes: `value` of strings, otherwise `$more` |
//! | arrays of primitives | zeros; the length follows from the size (header of ART: 12 bytes, 16 for `long` and `double`) |
//! | arrays of objects | the references, then nulls up to the length by size |
//! | class objects | statics; fields of `java.lang.Class` as `$class$NAME`; other bytes in `$classOverhead`, as ART writes them |
//! | references of the runtime | an array `runtimeInternalObjects`, as ART writes them |
//!
//! Two passes over the objects: the first finds the fields of the classes, the second writes.

mod segment;

use heaptap_model::heap_graph::{
    BasicType, ClassIndex, Field, HeapGraph, HeapKind, ObjectId, ObjectIndex, ReferenceKind, Value,
};
use heaptap_model::profile::interned::Texts;
use segment::{HEAPS, Segment, record};
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Write};
use std::ops::ControlFlow;

/// Maximum number of fields of a class, and of statics, below the limit of the format.
const MOST_FIELDS: usize = 60_000;
/// Maximum of bytes that fill a class.
const MOST_FILLED: u64 = 1 << 16;
/// Maximum of bytes of values without contents. ART's heaps are below 4 GiB.
const MOST_BYTES: u64 = 8 << 30;
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
    let mut heap = Heap::of(graph);
    heap.find_fields();
    heap.lay_out()?;
    heap.write(time_ms, out)?;
    Ok(heap.unwritten)
}

/// Kind of the record of a class's objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Instance,
    Objects,
    Primitives(BasicType),
}

struct Row {
    name: u32,
    id: u64,
    superclass: Option<usize>,
    loader: u64,
    shape: Shape,
    has_object: bool,
    /// Own fields.
    fields: Vec<(u32, BasicType)>,
    offsets: Vec<u32>,
    instances: u64,
    /// Smallest and largest shallow size.
    least: u64,
    most: u64,
    /// Own field that refers to the bytes above the smallest size.
    more: Option<usize>,
    /// Bytes of an instance in the file, and of its own fields.
    data: u64,
    own_data: u64,
    /// Bytes of its fields in memory.
    memory: u64,
}

/// A field of the instances of a class.
#[derive(Clone, Copy)]
struct Slot {
    name: u32,
    declared: usize,
    /// Class whose own field it is, and the number there.
    owner: usize,
    at: usize,
    basic: BasicType,
    offset: u64,
    /// The last object in which it occurred.
    seen: u32,
}

struct Heap<'a> {
    graph: &'a HeapGraph,
    rows: Vec<Row>,
    texts: Texts,
    /// Fields of the instances of each class, in the order of their first occurrence.
    slots: Vec<Vec<Slot>>,
    by_name: HashMap<(usize, usize, u32), usize>,
    /// Number of each own field, by the classes that have and declare it, name and type.
    own: HashMap<(usize, usize, u32, BasicType), usize>,
    heap_names: [u32; 4],
    /// Classes of their names.
    reference: usize,
    objects: usize,
    shift: u32,
    id_bytes: usize,
    room: u64,
    unwritten: Unwritten,
}

impl<'a> Heap<'a> {
    fn of(graph: &'a HeapGraph) -> Heap<'a> {
        let bits = graph.objects().fold(0, |bits, o| bits | graph.id(o).0);
        let shift = 3u32.saturating_sub(bits.trailing_zeros());
        let shift = if bits.leading_zeros() > shift {
            shift
        } else {
            0
        };
        let mut heap = Heap {
            graph,
            rows: Vec::with_capacity(graph.classes().len() + 4),
            texts: Texts::default(),
            slots: Vec::new(),
            by_name: HashMap::new(),
            own: HashMap::new(),
            heap_names: [0; 4],
            reference: 0,
            objects: 0,
            shift,
            id_bytes: match bits << shift <= u64::from(u32::MAX) {
                true => 4,
                false => 8,
            },
            room: MOST_BYTES,
            unwritten: Unwritten::default(),
        };
        for (at, class) in graph.classes().iter().enumerate() {
            let index = ClassIndex(at as u32);
            heap.add(class.shown());
            let row = &mut heap.rows[at];
            row.shape = shape(&class.name, class.is_array());
            // A chain that does not end would not end in other readers either.
            let superclass = class.superclass.filter(|_| {
                let last = graph.ancestry(index).enumerate().last();
                last.is_some_and(|(depth, top)| {
                    depth < 200 && graph.class(top).superclass.is_none()
                })
            });
            row.superclass = superclass.map(|superclass| superclass.at());
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
        heap.reference = heap.find_or_add("java.lang.ref.Reference");
        heap.objects = heap.find_or_add("java.lang.Object[]");
        for name in ["byte[]", "java.lang.Class"] {
            heap.find_or_add(name);
        }
        heap.heap_names = HEAPS.map(|(name, _)| heap.texts.id(name));
        heap.texts.id(OVERHEAD);
        heap.slots.resize_with(heap.rows.len(), Vec::new);
        heap
    }

    fn add(&mut self, name: &str) -> usize {
        let at = self.rows.len();
        self.rows.push(Row {
            name: self.texts.id(name),
            // No object has such an ID.
            id: 8 * at as u64 + 11,
            superclass: None,
            loader: 0,
            shape: shape(name, name.ends_with("[]")),
            has_object: false,
            fields: Vec::new(),
            offsets: Vec::new(),
            instances: 0,
            least: 0,
            most: 0,
            more: None,
            data: 0,
            own_data: 0,
            memory: 0,
        });
        at
    }

    fn find_or_add(&mut self, name: &str) -> usize {
        let id = self.texts.id(name);
        let found = self.rows.iter().position(|row| row.name == id);
        found.unwrap_or_else(|| self.add(name))
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
        let (mut values, mut held) = (Vec::new(), Vec::new());
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
                self.read(object, class, &mut values, &mut held);
            }
        }
    }

    /// Reads the fields of an instance, and the references of the runtime.
    fn read(
        &mut self,
        object: ObjectIndex,
        class: usize,
        values: &mut Vec<(Slot, Value)>,
        held: &mut Vec<ObjectIndex>,
    ) {
        values.clear();
        held.clear();
        let graph = self.graph;
        let mut place = 0;
        graph.contents().fields(graph, object, &mut |field| {
            if field.name == Some(INTERNAL) {
                held.extend(field.value.object());
                if held.len() > 1 {
                    return ControlFlow::Continue(());
                }
            }
            match self.slot(object, class, place, &field) {
                Some(slot) => values.push((slot, field.value)),
                None => self.unwritten.beyond_limits += 1,
            }
            place += 1;
            ControlFlow::Continue(())
        });
    }

    fn slot(
        &mut self,
        object: ObjectIndex,
        class: usize,
        place: usize,
        field: &Field<'_>,
    ) -> Option<Slot> {
        let kind = self.graph.class(self.graph.class_of(object)).kind;
        let is_referent = field.name == Some("referent") && ReferenceKind::of_class(kind).is_some();
        let declared = match field.declared_in {
            Some(declared) => declared.at(),
            // Only there do readers take it for the referent.
            None if is_referent => self.reference,
            None => class,
        };
        let seen = object.0.wrapping_add(1);
        if let (Some(slot), Some(name)) = (self.slots[class].get_mut(place), field.name)
            && slot.seen != seen
            && slot.declared == declared
            && self.texts.get(slot.name) == name
        {
            slot.seen = seen;
            return Some(*slot);
        }
        let mut name = match field.name {
            Some(name) => Cow::Borrowed(name),
            None => Cow::Owned(format!("$reference{place}")),
        };
        loop {
            let id = self.texts.id(&name);
            let key = (class, declared, id);
            let at = match self.by_name.get(&key) {
                Some(&at) if self.slots[class][at].seen == seen => {
                    name = Cow::Owned(format!("{name}${place}"));
                    continue;
                }
                Some(&at) => at,
                None => {
                    let slot = self.new_slot(class, declared, id, field.value.basic_type())?;
                    self.slots[class].push(slot);
                    let at = self.slots[class].len() - 1;
                    self.by_name.insert(key, at);
                    at
                }
            };
            let slot = &mut self.slots[class][at];
            slot.seen = seen;
            return Some(*slot);
        }
    }

    fn new_slot(
        &mut self,
        class: usize,
        declared: usize,
        name: u32,
        basic: BasicType,
    ) -> Option<Slot> {
        let owner = self.owner(class, declared);
        let fields = &mut self.rows[owner].fields;
        // A superclass has most fields from another of its subclasses.
        let at = *self
            .own
            .entry((owner, declared, name, basic))
            .or_insert_with(|| {
                fields.push((name, basic));
                fields.len() - 1
            });
        (at < MOST_FIELDS).then_some(Slot {
            name,
            declared,
            owner,
            at,
            basic,
            offset: 0,
            seen: 0,
        })
    }

    /// Returns the class that gets a field which `declared` declares. Graphs of Android 11 do not
    /// have superclasses, but fields of one prove it.
    fn owner(&mut self, class: usize, declared: usize) -> usize {
        let mut top = class;
        for (depth, above) in self.chain(class).enumerate() {
            if above == declared {
                return declared;
            }
            top = above;
            if depth > 200 {
                return class;
            }
        }
        let fits = self.chain(declared).take(202).all(|above| above != top);
        if !fits || self.chain(declared).take(202).count() > 200 {
            return class;
        }
        self.rows[top].superclass = Some(declared);
        declared
    }

    /// Fills the classes up to their sizes, and places their fields.
    fn lay_out(&mut self) -> io::Result<()> {
        let mut order: Vec<(usize, usize)> = (0..self.rows.len())
            .map(|class| (self.chain(class).count(), class))
            .collect();
        order.sort_unstable();
        let mut all = 0u64;
        for (_, class) in order {
            let above = self.rows[class].superclass;
            let (memory, data) = above.map_or((0, 0), |above| {
                (self.rows[above].memory, self.rows[above].data)
            });
            let texts = &mut self.texts;
            let row = &mut self.rows[class];
            if row.shape == Shape::Instance && row.instances > 0 {
                let is_string = texts.get(row.name) == "java.lang.String";
                if is_string {
                    row.least = row.least.min(STRING_BYTES);
                }
                if row.most > row.least {
                    let name = if is_string { "value" } else { "$more" };
                    row.more = Some(row.fields.len());
                    row.fields.push((texts.id(name), BasicType::Object));
                    if is_string {
                        // Of no characters: the text is unknown.
                        row.fields.push((texts.id("count"), BasicType::Int));
                    }
                }
            }
            let own: u64 = row.fields.iter().map(|field| field.1.bytes(4) as u64).sum();
            row.memory = memory + own;
            let is_filled =
                row.shape == Shape::Instance && texts.get(row.name) != "java.lang.Class";
            let mut left = match is_filled {
                true => row
                    .least
                    .saturating_sub(HEADER + row.memory)
                    .min(MOST_FILLED),
                false => 0,
            };
            row.memory += left;
            for number in 0.. {
                let basic = match left {
                    0 => break,
                    1 => BasicType::Byte,
                    2..4 => BasicType::Short,
                    4..8 => BasicType::Int,
                    _ => BasicType::Long,
                };
                row.fields
                    .push((texts.id(&format!("$unknown{number}")), basic));
                left -= basic.bytes(4) as u64;
            }
            for field in &row.fields {
                row.offsets.push(row.own_data as u32);
                row.own_data += field.1.bytes(self.id_bytes) as u64;
            }
            row.data = data + row.own_data;
            all = all.saturating_add(row.instances.saturating_mul(row.data));
        }
        if all > MOST_BYTES {
            return Err(io::Error::other("the instances take more than 8 GiB"));
        }
        for class in 0..self.slots.len() {
            let mut slots = std::mem::take(&mut self.slots[class]);
            for slot in &mut slots {
                slot.seen = 0;
                slot.offset = self.offset(class, slot.owner, slot.at);
            }
            self.slots[class] = slots;
        }
        Ok(())
    }

    /// Returns the place of a field in the data of an instance.
    fn offset(&self, class: usize, owner: usize, at: usize) -> u64 {
        let below = self.chain(class).take_while(|&above| above != owner);
        let below: u64 = below.map(|class| self.rows[class].own_data).sum();
        below + u64::from(self.rows[owner].offsets[at])
    }

    fn put_id(&self, out: &mut Vec<u8>, id: u64) {
        out.extend_from_slice(&id.to_be_bytes()[8 - self.id_bytes..]);
    }

    fn put_name(&self, out: &mut Vec<u8>, name: u32) {
        self.put_id(out, FIRST_NAME + u64::from(name));
    }

    /// The second pass.
    fn write(&mut self, time_ms: u64, out: &mut dyn Write) -> io::Result<()> {
        let mut body = b"JAVA PROFILE 1.0.3\0".to_vec();
        body.extend((self.id_bytes as u32).to_be_bytes());
        body.extend(time_ms.to_be_bytes());
        out.write_all(&body)?;
        for name in 0..self.texts.len() as u32 {
            body.clear();
            self.put_name(&mut body, name);
            body.extend(self.texts.get(name).bytes());
            record(out, 0x01, &body)?;
        }
        let is_written = |row: &Row, texts: &Texts| {
            row.has_object
                || row.instances > 0
                || !texts.get(row.name).starts_with("java.lang.Class<")
        };
        for (serial, row) in (1u32..).zip(&self.rows) {
            if is_written(row, &self.texts) {
                body.clear();
                body.extend(serial.to_be_bytes());
                self.put_id(&mut body, row.id);
                body.extend([0; 4]);
                self.put_name(&mut body, row.name);
                record(out, 0x02, &body)?;
            }
        }
        record(out, 0x05, &[0; 12])?;
        let mut segment = Segment::new(out);
        for class in 0..self.rows.len() {
            let row = &self.rows[class];
            if !row.has_object && is_written(row, &self.texts) {
                self.put_class(class, None, &mut segment)?;
            }
        }
        let mut roots = self.graph.roots().iter().peekable();
        let (mut values, mut held) = (Vec::new(), Vec::new());
        for object in self.graph.objects() {
            let is_there = !self.graph.is_placeholder(object);
            segment.begin(self, self.graph.heap_of(object))?;
            while let Some(root) = roots.next_if(|root| root.object <= object) {
                if is_there {
                    self.put_root(object, root.kind, &mut segment.bytes);
                }
            }
            if !is_there {
                continue;
            }
            let class = self.graph.class_of(object).at();
            match (self.class_behind(object), self.rows[class].shape) {
                (Some(behind), _) => self.put_class(behind, Some(object), &mut segment)?,
                (None, Shape::Instance) => {
                    self.read(object, class, &mut values, &mut held);
                    self.put_instance(object, class, (&values, &held), &mut segment)?;
                }
                (None, Shape::Objects) => {
                    let bytes = self.graph.shallow_bytes(object);
                    let length = bytes.saturating_sub(ARRAY_HEADER) / 4;
                    let elements = self.graph.references(object);
                    let nulls = length.saturating_sub(elements.len() as u64);
                    self.put_objects(self.id(object), class, elements, nulls, &mut segment)?;
                }
                (None, Shape::Primitives(basic)) => {
                    let width = basic.bytes(8) as u64;
                    let header = ARRAY_HEADER.next_multiple_of(width);
                    let bytes = self.graph.shallow_bytes(object).saturating_sub(header);
                    self.put_primitives(self.id(object), basic, bytes / width, &mut segment)?;
                }
            }
        }
        segment.flush()?;
        record(segment.out, 0x2c, &[])
    }

    fn put_class(
        &mut self,
        class: usize,
        object: Option<ObjectIndex>,
        segment: &mut Segment<'_>,
    ) -> io::Result<()> {
        let mut found: Vec<(u32, u64)> = Vec::new();
        if let Some(object) = object {
            statics(self.graph, object, &mut |name, target| {
                found.push((self.texts.id(&name), self.id(target)));
            });
        }
        self.unwritten.beyond_limits += found.len().saturating_sub(MOST_FIELDS) as u64;
        found.truncate(MOST_FIELDS);
        let heap = object.map_or(HeapKind::Unknown, |object| self.graph.heap_of(object));
        let bytes = object.map_or(0, |object| self.graph.shallow_bytes(object));
        let id = self.rows[class].id;
        // The reference to the overhead is one of them.
        if let Some(overhead) = bytes.checked_sub((found.len() as u64 + 1) * self.id_bytes as u64) {
            self.put_primitives(id | 1, BasicType::Byte, overhead, segment)?;
            found.push((self.texts.id(OVERHEAD), id | 1));
        }
        segment.begin(self, heap)?;
        let row = &self.rows[class];
        let out = &mut segment.bytes;
        out.push(0x20);
        self.put_id(out, id);
        out.extend([0; 4]);
        self.put_id(out, row.superclass.map_or(0, |above| self.rows[above].id));
        self.put_id(out, row.loader);
        out.extend(std::iter::repeat_n(0, 4 * self.id_bytes));
        let is_sized =
            row.shape == Shape::Instance && self.texts.get(row.name) != "java.lang.Class";
        let least = if is_sized { row.least } else { 0 };
        out.extend(u32::try_from(least).unwrap_or(u32::MAX).to_be_bytes());
        out.extend([0; 2]);
        out.extend((found.len() as u16).to_be_bytes());
        for (name, target) in found {
            self.put_name(out, name);
            out.push(BasicType::Object as u8);
            self.put_id(out, target);
        }
        out.extend((row.fields.len() as u16).to_be_bytes());
        for &(name, basic) in &row.fields {
            self.put_name(out, name);
            out.push(basic as u8);
        }
        Ok(())
    }

    fn put_instance(
        &mut self,
        object: ObjectIndex,
        class: usize,
        (values, held): (&[(Slot, Value)], &[ObjectIndex]),
        segment: &mut Segment<'_>,
    ) -> io::Result<()> {
        let id = self.id(object);
        let row = &self.rows[class];
        let more =
            self.graph.shallow_bytes(object) - row.least.min(self.graph.shallow_bytes(object));
        let more_field = row.more.filter(|_| more > 0);
        // Behind the object as in ART, if it is a string; no object has an ID of the other kinds.
        let is_string = self.texts.get(row.name) == "java.lang.String";
        let behind = id.checked_add(16).filter(|&behind| {
            let fits = self.id_bytes == 8 || behind <= u64::from(u32::MAX);
            is_string && fits && self.graph.find(ObjectId(behind >> self.shift)).is_none()
        });
        let more_id = behind.unwrap_or(id | 2);
        let out = &mut segment.bytes;
        out.push(0x21);
        self.put_id(out, id);
        out.extend([0; 4]);
        self.put_id(out, row.id);
        out.extend((row.data as u32).to_be_bytes());
        let start = out.len();
        out.resize(start + row.data as usize, 0);
        let mut set = |offset: u64, bytes: &[u8]| {
            let at = start + offset as usize;
            out[at..at + bytes.len()].copy_from_slice(bytes);
        };
        for (slot, value) in values {
            let width = slot.basic.bytes(self.id_bytes);
            let bits = match *value {
                Value::Object(_) if self.texts.get(slot.name) == INTERNAL => id | 4,
                Value::Object(target) => self.id(target),
                Value::Null | Value::Dangling(_) => 0,
                Value::Boolean(value) => value.into(),
                Value::Char(value) => value.into(),
                Value::Float(value) => value.to_bits().into(),
                Value::Double(value) => value.to_bits(),
                other => other.integer().unwrap_or(0) as u64,
            };
            if value.basic_type() == slot.basic {
                set(slot.offset, &bits.to_be_bytes()[8 - width..]);
            }
        }
        if let Some(at) = more_field {
            let bits = more_id.to_be_bytes();
            set(self.offset(class, class, at), &bits[8 - self.id_bytes..]);
            self.put_primitives(more_id, BasicType::Byte, more, segment)?;
        }
        if !held.is_empty() {
            self.put_objects(id | 4, self.objects, held, 0, segment)?;
        }
        Ok(())
    }

    fn put_objects(
        &mut self,
        id: u64,
        class: usize,
        elements: &[ObjectIndex],
        nulls: u64,
        segment: &mut Segment<'_>,
    ) -> io::Result<()> {
        let nulls = self.take(nulls, self.id_bytes as u64);
        let mut head = vec![0x22];
        self.put_id(&mut head, id);
        head.extend([0; 4]);
        head.extend(
            (elements.len() as u32)
                .saturating_add(nulls as u32)
                .to_be_bytes(),
        );
        self.put_id(&mut head, self.rows[class].id);
        segment.array(self, &head, elements, nulls * self.id_bytes as u64)
    }

    fn put_primitives(
        &mut self,
        id: u64,
        basic: BasicType,
        length: u64,
        segment: &mut Segment<'_>,
    ) -> io::Result<()> {
        let width = basic.bytes(8) as u64;
        let length = self.take(length, width);
        let mut head = vec![0x23];
        self.put_id(&mut head, id);
        head.extend([0; 4]);
        head.extend((length as u32).to_be_bytes());
        head.push(basic as u8);
        segment.array(self, &head, &[], length * width)
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
