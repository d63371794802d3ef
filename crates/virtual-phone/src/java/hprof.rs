//! Writer of a heap as `am dumpheap` does: HPROF 1.0.3 with ART's records, sub-records, segments
//! and peculiarities. Owns the numbers of strings and classes in the file.

use super::app::build;
use super::heap::{
    Body, CLASS, Class, ClassRef, JavaHeap, Kind, OBJECT, Obj, RootKind, STRING, STRING_BYTES,
    Space, Type, Value, is_compressed,
};
use super::inputs::Inputs;
use super::pictures::PictureFormat;
use crate::strings::Strings;

/// Maximum number of items and of bytes in a segment.
const SEGMENT_ITEMS: usize = 128;
const SEGMENT_BYTES: usize = 4_096;
/// First string ID.
const FIRST_STRING: u32 = 0x40_0000;
/// ID offset of a string's character array from the string: behind the string's header.
const CHARACTERS_AT: u32 = STRING_BYTES;
/// ID offset of an empty string's character array, which is smaller.
const NO_CHARACTERS_AT: u32 = 8;
/// ID offset of the runtime's data about an object from that object.
const INTERNALS_AT: u32 = 4;

/// Segments of the heap dump.
#[derive(Default)]
struct Segments {
    done: Vec<Vec<u8>>,
    open: Vec<u8>,
    items: usize,
    /// Heap of the following items; a new segment resets it.
    space: Option<Space>,
}

impl Segments {
    /// Starts an item, in a new segment if the current one is full.
    fn item(&mut self) {
        if self.items >= SEGMENT_ITEMS || self.open.len() >= SEGMENT_BYTES {
            self.close();
        }
        self.items += 1;
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.done.push(std::mem::take(&mut self.open));
        }
        self.items = 0;
        self.space = None;
    }

    fn u1(&mut self, n: u8) {
        self.open.push(n);
    }

    fn u2(&mut self, n: u16) {
        self.open.extend(n.to_be_bytes());
    }

    fn u4(&mut self, n: u32) {
        self.open.extend(n.to_be_bytes());
    }

    /// Writes a tag of a sub-record and its first numbers.
    fn begin(&mut self, tag: u8, numbers: &[u32]) {
        self.u1(tag);
        numbers.iter().for_each(|n| self.u4(*n));
    }

    fn value(&mut self, value: Value, heap: &JavaHeap) {
        match value {
            Value::Null => self.u4(0),
            Value::Ref(object) => self.u4(heap.object(object).address),
            Value::Number(kind, n) => {
                let unused = 8 - kind.bytes() as usize;
                self.open.extend_from_slice(&n.to_be_bytes()[unused..]);
            }
        }
    }
}

struct Writer<'a> {
    heap: &'a JavaHeap,
    strings: Strings,
    body: Segments,
}

/// Encodes the heap of `inputs` as a file written at `real_ms` since the epoch; includes pictures
/// of the bitmaps if requested.
pub(crate) fn file(inputs: &Inputs, real_ms: u64, pictures: Option<PictureFormat>) -> Vec<u8> {
    let (heap, _) = build(inputs, pictures);
    let mut writer = Writer {
        heap: &heap,
        strings: Strings::from(FIRST_STRING),
        body: Segments::default(),
    };
    // Names of classes come first, because they are needed first.
    let classes = heap.classes.iter();
    let names: Vec<u32> = classes.map(|c| writer.strings.id(&c.name)).collect();
    writer.roots();
    for object in heap.all() {
        writer.object(object);
    }
    writer.body.close();
    let mut out = Vec::new();
    out.extend(b"JAVA PROFILE 1.0.3\0");
    out.extend(4u32.to_be_bytes());
    out.extend(real_ms.to_be_bytes());
    for (id, text) in (FIRST_STRING..).zip(&writer.strings.all) {
        record(&mut out, 0x01, &[&id.to_be_bytes(), text.as_bytes()]);
    }
    for (serial, (class, name)) in (1u32..).zip(heap.classes.iter().zip(names)) {
        let address = heap.object(class.object).address;
        let numbers = [serial, address, 0, name].map(u32::to_be_bytes);
        record(&mut out, 0x02, &[numbers.as_flattened()]);
    }
    // The only stack trace; it is empty and belongs to no thread.
    record(&mut out, 0x05, &[&[0; 12]]);
    for segment in &writer.body.done {
        record(&mut out, 0x1c, &[segment]);
    }
    record(&mut out, 0x2c, &[]);
    out
}

fn record(out: &mut Vec<u8>, tag: u8, parts: &[&[u8]]) {
    out.push(tag);
    out.extend(0u32.to_be_bytes());
    let length: usize = parts.iter().map(|p| p.len()).sum();
    out.extend((length as u32).to_be_bytes());
    parts.iter().for_each(|p| out.extend_from_slice(p));
}

impl Writer<'_> {
    fn address(&self, object: Option<Obj>) -> u32 {
        object.map_or(0, |o| self.heap.object(o).address)
    }

    fn roots(&mut self) {
        for root in &self.heap.roots {
            // Later types than those of Java have the highest bit.
            let tag = match root.kind as u8 {
                number @ ..9 => number,
                number => 0x80 | number,
            };
            let address = self.address(Some(root.object));
            self.body.item();
            self.body.begin(tag, &[address]);
            match root.kind {
                RootKind::RootJniGlobal => self.body.u4(0),
                RootKind::RootJniLocal
                | RootKind::RootJavaFrame
                | RootKind::RootJniMonitor
                | RootKind::RootThreadObject => {
                    self.body.u4(root.thread);
                    self.body.u4(u32::MAX);
                }
                RootKind::RootNativeStack => self.body.u4(root.thread),
                _ => {}
            }
        }
    }

    fn object(&mut self, object: Obj) {
        let of = self.heap.object(object);
        self.body.item();
        // Objects from before the fork are never collected.
        if of.space != Space::App {
            self.body.begin(0x8d, &[of.address]);
        }
        if self.body.space != Some(of.space) {
            let (number, name) = match of.space {
                Space::Zygote => (b'Z', "zygote"),
                Space::BootImage => (b'I', "image"),
                _ => (b'A', "app"),
            };
            let name = self.strings.id(name);
            self.body.begin(0xfe, &[u32::from(number), name]);
            self.body.space = Some(of.space);
        }
        match &of.body {
            Body::Class(class) => self.class(*class),
            Body::Instance(_) => self.instance(object),
            Body::String(text) => self.string(object, text),
            Body::References(items) => {
                let class = self.heap.class(of.class).object;
                self.references(of.address, class, items);
            }
            Body::Primitives(kind, data) => self.primitives(of.address, *kind, data),
        }
    }

    fn references(&mut self, address: u32, class: Obj, items: &[Option<Obj>]) {
        let class = self.address(Some(class));
        let head = [address, 0, items.len() as u32, class];
        self.body.begin(0x22, &head);
        for item in items {
            let address = self.address(*item);
            self.body.u4(address);
        }
    }

    fn primitives(&mut self, address: u32, kind: Type, data: &[u8]) {
        let head = [address, 0, data.len() as u32 / kind.bytes()];
        self.body.begin(0x23, &head);
        self.body.u1(kind.code());
        self.body.open.extend_from_slice(data);
    }

    /// Writes the fields of java.lang.Object: class and lock word.
    fn header(&mut self, class: ClassRef) {
        let class = self.address(Some(self.heap.class(class).object));
        self.body.u4(class);
        self.body.u4(0);
    }

    fn instance_head(&mut self, object: Obj, bytes: u32) {
        let of = self.heap.object(object);
        let class = self.address(Some(self.heap.class(of.class).object));
        self.body.begin(0x21, &[of.address, 0, class, bytes]);
    }

    fn instance(&mut self, object: Obj) {
        let heap = self.heap;
        let values = heap.values(object);
        let class = heap.object(object).class;
        // The artificial field of a class loader or dex cache is the last one of the class that
        // declares it.
        let declares = heap.ancestry(class).find(|c| has_internals(heap.class(*c)));
        let fields: u32 = values.iter().map(|(_, f, _)| f.kind.bytes()).sum();
        let internals = if declares.is_some() { 4 } else { 0 };
        self.instance_head(object, 8 + fields + internals);
        let address = heap.object(object).address;
        for at in heap.ancestry(class) {
            for (_, _, value) in values.iter().filter(|(of, _, _)| *of == at) {
                self.body.value(*value, heap);
            }
            if declares == Some(at) {
                self.body.u4(address + INTERNALS_AT);
            }
        }
        self.header(class);
        if declares.is_some() {
            let array = heap.find_class("java.lang.Object[]");
            let array = array.expect("every heap has arrays of objects");
            let items = heap.held(object).iter().copied().map(Some);
            let items: Vec<Option<Obj>> = items.collect();
            self.references(address + INTERNALS_AT, heap.class(array).object, &items);
        }
    }

    fn string(&mut self, object: Obj, text: &str) {
        let units: Vec<u16> = text.encode_utf16().collect();
        let address = self.heap.object(object).address;
        let at = address
            + if units.is_empty() {
                NO_CHARACTERS_AT
            } else {
                CHARACTERS_AT
            };
        // value, then count and hash as declared, then Object's.
        self.instance_head(object, 4 + 4 + 4 + 8);
        let fields = &self.heap.class(STRING).fields;
        for field in fields {
            let value = match &*field.name {
                "count" => units.len() as u32,
                _ => 0,
            };
            self.body.u4(value);
        }
        self.body.u4(at);
        self.header(STRING);
        if is_compressed(text) && !units.is_empty() {
            self.primitives(at, Type::Byte, text.as_bytes());
        } else {
            let data: Vec<u8> = units.iter().flat_map(|u| u.to_be_bytes()).collect();
            let kind = if units.is_empty() {
                Type::Byte
            } else {
                Type::Char
            };
            self.primitives(at, kind, &data);
        }
    }

    fn class(&mut self, class: ClassRef) {
        let heap = self.heap;
        let of = heap.class(class);
        let address = self.address(Some(of.object));
        let widths: u32 = of.statics.iter().map(|(f, _)| f.kind.bytes()).sum();
        let overhead = heap.class_bytes(class) - heap.class(CLASS).instance_bytes - widths;
        // A nonexistent array represents the tables inside the class.
        self.primitives(address | 1, Type::Byte, &vec![0; overhead as usize - 4]);
        let superclass = self.address(of.superclass.map(|c| heap.class(c).object));
        let size = match class {
            CLASS => 0,
            STRING => STRING_BYTES,
            _ => of.instance_bytes,
        };
        let loader = self.address(of.loader);
        let head = [address, 0, superclass, loader, 0, 0, 0, 0, size];
        self.body.begin(0x20, &head);
        self.body.u2(0);
        self.statics(class, address);
        self.fields(of, class);
    }

    fn statics(&mut self, class: ClassRef, address: u32) {
        let heap = self.heap;
        let of = heap.class(class);
        let own = heap.class_values(class);
        self.body.u2((of.statics.len() + own.len() + 3) as u16);
        self.field("$classOverhead", Type::Object);
        self.body.u4(address | 1);
        for (field, value) in own {
            self.field(&format!("$class${}", field.name), field.kind);
            self.body.value(value, heap);
        }
        self.field("$class$shadow$_klass_", Type::Object);
        self.body.value(heap.class(CLASS).object.into(), heap);
        self.field("$class$shadow$_monitor_", Type::Int);
        self.body.u4(0);
        for (field, value) in &of.statics {
            self.field(&field.name, field.kind);
            self.body.value(*value, heap);
        }
    }

    fn field(&mut self, name: &str, kind: Type) {
        let name = self.strings.id(name);
        self.body.u4(name);
        self.body.u1(kind.code());
    }

    fn fields(&mut self, of: &Class, class: ClassRef) {
        let mut all: Vec<(&str, Type)> = of.fields.iter().map(|f| (&*f.name, f.kind)).collect();
        if class == OBJECT {
            all.push(("shadow$_klass_", Type::Object));
            all.push(("shadow$_monitor_", Type::Int));
        }
        if class == STRING {
            all.push(("value", Type::Object));
        }
        if has_internals(of) {
            all.push(("runtimeInternalObjects", Type::Object));
        }
        self.body.u2(all.len() as u16);
        for (name, kind) in all {
            self.field(name, kind);
        }
    }
}

/// Returns whether ART adds an artificial field for objects that only the runtime holds: in the
/// topmost class of its kind.
fn has_internals(class: &Class) -> bool {
    matches!(class.kind, Kind::Classloader | Kind::Dexcache)
        && matches!(&*class.name, "java.lang.ClassLoader" | "java.lang.DexCache")
}
