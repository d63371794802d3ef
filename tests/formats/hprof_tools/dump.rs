//! Heap dumps generated from a seed: every kind of record and sub-record, in either dialect. The
//! contents are counted, for comparison with a reader's result.

use std::collections::BTreeMap;

/// A text that occurs only in strings and arrays.
pub const SECRET: &[u8] = b"s3cret-t0ken";
/// A number that occurs only in fields.
pub const NUMBER: u32 = 0x7a57_1e55;

const BYTE: u8 = 8;
const INT: u8 = 10;
const OBJECT: u8 = 2;
const BOOLEAN: u8 = 4;
const CHAR: u8 = 5;
/// Types of elements with their widths.
const PRIMITIVES: [(u8, usize); 8] = [
    (4, 1),
    (5, 2),
    (6, 4),
    (7, 8),
    (BYTE, 1),
    (9, 2),
    (INT, 4),
    (11, 8),
];

/// A dump, and its contents.
pub struct Dump {
    pub bytes: Vec<u8>,
    /// Sub-records by tag.
    pub counts: BTreeMap<u8, u64>,
    /// Objects that `hprof-conv -z` omits.
    pub foreign: u64,
}

/// Properties of a dump.
#[derive(Clone, Copy)]
pub struct Shape {
    pub android: bool,
    /// Bytes of an id.
    pub id: usize,
    pub objects: usize,
    /// Arrays without data.
    pub nodata: bool,
    /// Constructs that the format allows and no runtime writes: empty segments, constants of
    /// classes, arrays whose class is missing.
    pub odd: bool,
}

pub const ANDROID: Shape = Shape {
    android: true,
    id: 4,
    objects: 400,
    nodata: true,
    odd: true,
};
pub const JAVA_SE: Shape = Shape {
    android: false,
    id: 8,
    objects: 400,
    nodata: false,
    odd: true,
};

struct Writer {
    shape: Shape,
    out: Vec<u8>,
    segment: Vec<u8>,
    counts: BTreeMap<u8, u64>,
    foreign: u64,
    heap: u8,
    rng: fastrand::Rng,
}

/// Ids of names.
const NAMES: [&str; 18] = [
    "java.lang.Object",
    "java.lang.Class",
    "java.lang.String",
    "com.example.Holder",
    "byte[]",
    "java.lang.Object[]",
    "value",
    "hash",
    "next",
    "number",
    "flag",
    "letter",
    "app",
    "zygote",
    "image",
    "libcore.util.NativeAllocationRegistry",
    "size",
    "main",
];

fn name(text: &str) -> u64 {
    let at = NAMES.iter().position(|name| *name == text);
    0x40_0000 + at.expect("a name of the list") as u64
}

fn class(text: &str) -> u64 {
    0x1000 + 0x10 * (name(text) - 0x40_0000)
}

/// Returns the id of the object with that number.
fn object(number: usize) -> u64 {
    0x12c0_0000 + 32 * number as u64
}

impl Writer {
    fn id(&self, id: u64) -> Vec<u8> {
        id.to_be_bytes()[8 - self.shape.id..].to_vec()
    }

    fn record(&mut self, tag: u8, body: &[u8]) {
        self.out.push(tag);
        self.out.extend(7u32.to_be_bytes());
        self.out.extend((body.len() as u32).to_be_bytes());
        self.out.extend(body);
    }

    fn sub(&mut self, tag: u8, ids: &[u64], rest: &[u8]) {
        *self.counts.entry(tag).or_default() += 1;
        self.segment.push(tag);
        for &id in ids {
            let id = self.id(id);
            self.segment.extend(id);
        }
        self.segment.extend(rest);
        let object = matches!(tag, 0x21..=0x23);
        if object && matches!(self.heap, b'Z' | b'I') {
            self.foreign += 1;
        }
    }

    fn flush(&mut self) {
        let body = std::mem::take(&mut self.segment);
        self.record(0x1c, &body);
        self.heap = 0;
    }

    fn heap(&mut self, heap: u8) {
        self.heap = heap;
        let text = match heap {
            b'Z' => "zygote",
            b'I' => "image",
            _ => "app",
        };
        *self.counts.entry(0xfe).or_default() += 1;
        self.segment.push(0xfe);
        self.segment.extend(u32::from(heap).to_be_bytes());
        let id = self.id(name(text));
        self.segment.extend(id);
    }

    /// A class with statics and own fields.
    fn class(&mut self, text: &str, superclass: u64, bytes: u32, fields: &[(&str, u8)]) {
        let mut body = 1u32.to_be_bytes().to_vec();
        body.extend(self.id(superclass));
        for _ in 0..5 {
            body.extend(self.id(0));
        }
        body.extend(bytes.to_be_bytes());
        if self.shape.odd {
            body.extend([0, 1, 0, 9, INT]);
            body.extend(NUMBER.to_be_bytes());
        } else {
            body.extend([0, 0]);
        }
        body.extend([0, 3]);
        body.extend(self.id(name("number")));
        body.push(INT);
        body.extend(NUMBER.to_be_bytes());
        body.extend(self.id(name("next")));
        body.push(OBJECT);
        body.extend(self.id(object(1)));
        body.extend(self.id(name("flag")));
        body.extend([BOOLEAN, 1]);
        body.extend((fields.len() as u16).to_be_bytes());
        for (field, basic) in fields {
            body.extend(self.id(name(field)));
            body.push(*basic);
        }
        self.sub(0x20, &[class(text)], &body);
    }

    fn instance(&mut self, id: u64, text: &str, data: &[u8]) {
        let mut body = 1u32.to_be_bytes().to_vec();
        body.extend(self.id(class(text)));
        body.extend((data.len() as u32).to_be_bytes());
        body.extend(data);
        self.sub(0x21, &[id], &body);
    }

    fn bytes(&mut self, id: u64, basic: u8, length: usize, data: &[u8]) {
        let mut body = 3u32.to_be_bytes().to_vec();
        body.extend((length as u32).to_be_bytes());
        body.push(basic);
        body.extend(data);
        self.sub(0x23, &[id], &body);
    }

    fn root(&mut self) {
        let roots = match self.shape.android {
            true => &[
                0xff, 1, 2, 3, 4, 5, 6, 7, 8, 0x89, 0x8a, 0x8b, 0x8c, 0x8d, 0x8e, 0x90,
            ][..],
            false => &[0xff, 1, 2, 3, 4, 5, 6, 7, 8],
        };
        let tag = roots[self.rng.usize(..roots.len())];
        let id = self.any();
        match tag {
            1 => self.sub(tag, &[id, 0], &[]),
            2 | 3 | 8 | 0x8e => self.sub(tag, &[id], &[0, 0, 0, 1, 255, 255, 255, 255]),
            4 | 6 => self.sub(tag, &[id], &[0, 0, 0, 1]),
            _ => self.sub(tag, &[id], &[]),
        }
    }

    /// Returns an object of the dump; sometimes null, sometimes one that is not in it.
    fn any(&mut self) -> u64 {
        match self.rng.u8(..) {
            0..8 => 0,
            8..12 => 0xdead_bee8,
            _ => object(self.rng.usize(..self.shape.objects)),
        }
    }

    fn object(&mut self, number: usize) {
        let id = object(number);
        match self.rng.u8(..100) {
            // A string, immediately followed by its text with a separate id.
            0..30 => {
                let text = id + 16;
                let mut data = self.id(text);
                data.extend(NUMBER.to_be_bytes());
                self.instance(id, "java.lang.String", &data);
                self.bytes(text, BYTE, SECRET.len(), SECRET);
            }
            30..60 => {
                let next = self.any();
                let mut data = self.id(next);
                data.extend(NUMBER.to_be_bytes());
                data.extend([1, 0, b'x']);
                self.instance(id, "com.example.Holder", &data);
            }
            60..75 => {
                let length = self.rng.usize(..9);
                let mut body = 1u32.to_be_bytes().to_vec();
                body.extend((length as u32).to_be_bytes());
                body.extend(self.id(class("java.lang.Object[]")));
                for _ in 0..length {
                    let element = self.any();
                    body.extend(self.id(element));
                }
                self.sub(0x22, &[id], &body);
            }
            75..78 if self.shape.nodata => {
                self.sub(0xc3, &[id], &[0, 0, 0, 1, 0, 0, 0, 40, BYTE]);
            }
            _ => {
                let (basic, width) = match self.shape.odd {
                    true => PRIMITIVES[self.rng.usize(..8)],
                    false => (BYTE, 1),
                };
                let length = self.rng.usize(..50);
                let data = SECRET.iter().cycle().copied().take(length * width);
                let data: Vec<u8> = data.collect();
                self.bytes(id, basic, length, &data);
            }
        }
    }
}

/// Returns a dump with these properties, the same for the same seed.
pub fn dump(seed: u64, shape: Shape) -> Dump {
    let mut w = Writer {
        shape,
        out: Vec::new(),
        segment: Vec::new(),
        counts: BTreeMap::new(),
        foreign: 0,
        heap: 0,
        rng: fastrand::Rng::with_seed(seed),
    };
    let version = match shape.android {
        true => "1.0.3",
        false => "1.0.2",
    };
    w.out.extend(format!("JAVA PROFILE {version}\0").bytes());
    w.out.extend((shape.id as u32).to_be_bytes());
    w.out.extend(1_700_000_000_000u64.to_be_bytes());
    for text in NAMES {
        let mut body = w.id(name(text));
        body.extend(text.bytes());
        w.record(0x01, &body);
    }
    // HotSpot writes literals, too, which name nothing.
    let mut literal = w.id(0x50_0000);
    literal.extend(SECRET);
    w.record(0x01, &literal);
    for (serial, text) in (1u32..).zip(&NAMES[..6]) {
        let mut body = serial.to_be_bytes().to_vec();
        body.extend(w.id(class(text)));
        body.extend([0, 0, 0, 1]);
        body.extend(w.id(name(text)));
        w.record(0x02, &body);
    }
    // A frame, a stack without frames, a stack with it.
    let mut frame = w.id(0);
    for text in ["main", "value", "app"] {
        frame.extend(w.id(name(text)));
    }
    frame.extend([0, 0, 0, 4, 0, 0, 0, 17]);
    w.record(0x04, &frame);
    w.record(0x05, &[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    let mut stack = vec![0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 1];
    stack.extend(w.id(0));
    w.record(0x05, &stack);
    // Unknown records are skipped by their length.
    w.record(0x77, SECRET);
    w.record(0x07, &[0; 24]);

    let holder = &[
        ("next", OBJECT),
        ("number", INT),
        ("flag", BOOLEAN),
        ("letter", CHAR),
    ][..];
    let id = shape.id as u32;
    /// Name, superclass, instance size, fields with their types.
    type Declared<'a> = (&'a str, &'a str, u32, &'a [(&'a str, u8)]);
    let classes: [Declared<'_>; 6] = [
        ("java.lang.Object", "", 0, &[]),
        ("java.lang.Class", "java.lang.Object", 0, &[]),
        (
            "java.lang.String",
            "java.lang.Object",
            id + 4,
            &[("value", OBJECT), ("hash", INT)],
        ),
        ("com.example.Holder", "java.lang.Object", id + 7, holder),
        ("byte[]", "java.lang.Object", 0, &[]),
        ("java.lang.Object[]", "java.lang.Object", 0, &[]),
    ];
    let mut undumped = classes.to_vec();
    for number in 0..shape.objects {
        if !w.segment.is_empty() && (w.rng.u8(..) < 20 || w.segment.len() > 4000) {
            w.flush();
            if shape.odd && w.rng.u8(..) < 30 {
                w.flush();
            }
        }
        if shape.android && (w.segment.is_empty() || w.rng.u8(..) < 25) {
            let heap = [b'A', b'Z', b'I', 0][w.rng.usize(..4)];
            w.heap(heap);
        }
        if w.rng.u8(..) < 60 {
            w.root();
        }
        // Classes come after some of their objects.
        if number % (shape.objects / 7) == 1 && !undumped.is_empty() {
            let (text, superclass, bytes, fields) = undumped.remove(0);
            let superclass = match superclass {
                "" => 0,
                text => class(text),
            };
            w.class(text, superclass, bytes, fields);
        }
        w.object(number);
    }
    w.flush();
    assert!(undumped.is_empty(), "every class was written");
    w.record(0x2c, &[]);
    Dump {
        bytes: w.out,
        counts: w.counts,
        foreign: w.foreign,
    }
}
