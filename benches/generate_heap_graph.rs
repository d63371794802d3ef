//! Writes a trace with one heap graph as ART does since Android 12, of any size, for measuring:
//!
//! ```text
//! generate_heap_graph OBJECTS [SEED] > trace
//! ```
//!
//! A heap as it is allocated: parts first, then what holds them (up to four of the latest that
//! nobody holds), and every fourth object refers to an older one as well. 5000 classes, half
//! of which extend the others; what nobody holds in the end, one array does, a JNI global. Deterministic.

use std::io::{self, BufWriter, Write};

/// ART begins a new packet at about this size.
const SPLIT: usize = 100_000;
const SEQUENCE: u64 = 3;
const TIME_NS: u64 = 1_000_000_000_000;
const PID: u64 = 4321;
/// Ids are addresses by 8.
const FIRST_ID: u64 = 0x258_0000;
const CLASSES: u64 = 5000;
/// References of an ordinary object, many of them null.
const FIELDS: u64 = 5;
/// The array of references, the array of bytes, the string; then ordinary classes.
const ORDINARY: u64 = 4;

fn main() -> io::Result<()> {
    let mut args = std::env::args().skip(1);
    let mut number = |default: Option<u64>| match (args.next(), default) {
        (Some(text), _) => text.parse().map_err(io::Error::other),
        (None, Some(default)) => Ok(default),
        (None, None) => Err(io::Error::other(
            "usage: generate_heap_graph OBJECTS [SEED]",
        )),
    };
    let objects = number(None)?;
    let random = Random(number(Some(1))?.max(1));
    let out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    let mut generator = Generator {
        out,
        random,
        graph: Vec::new(),
        object: Vec::new(),
        last_id: 0,
        packets: 0,
    };
    generator.process()?;
    generator.objects(objects)?;
    generator.tables(objects);
    generator.packet(false)?;
    generator.out.flush()
}

/// xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }
}

fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn number(out: &mut Vec<u8>, field: u64, value: u64) {
    varint(out, field << 3);
    varint(out, value);
}

fn bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    varint(out, field << 3 | 2);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

fn packed(out: &mut Vec<u8>, field: u64, values: impl Iterator<Item = u64>) {
    let mut all = Vec::new();
    values.for_each(|value| varint(&mut all, value));
    bytes(out, field, &all);
}

struct Generator<W: Write> {
    out: W,
    random: Random,
    /// The HeapGraph message so far.
    graph: Vec<u8>,
    object: Vec<u8>,
    last_id: u64,
    packets: u64,
}

impl<W: Write> Generator<W> {
    fn trace_packet(&mut self, packet: &[u8]) -> io::Result<()> {
        // The service stamps each packet with its writer's sequence.
        let mut stamp = Vec::new();
        number(&mut stamp, 10, 1);
        let mut head = Vec::new();
        varint(&mut head, 1 << 3 | 2);
        varint(&mut head, (packet.len() + stamp.len()) as u64);
        self.out.write_all(&head)?;
        self.out.write_all(packet)?;
        self.out.write_all(&stamp)
    }

    /// ProcessTree: the name of the process.
    fn process(&mut self) -> io::Result<()> {
        let mut process = Vec::new();
        number(&mut process, 1, PID);
        bytes(&mut process, 3, b"com.example.generated");
        let mut tree = Vec::new();
        bytes(&mut tree, 1, &process);
        let mut packet = Vec::new();
        number(&mut packet, 8, TIME_NS);
        bytes(&mut packet, 2, &tree);
        self.trace_packet(&packet)
    }

    fn packet(&mut self, continued: bool) -> io::Result<()> {
        let mut graph = Vec::with_capacity(self.graph.len() + 32);
        number(&mut graph, 1, PID);
        graph.append(&mut self.graph);
        number(&mut graph, 5, continued.into());
        number(&mut graph, 6, self.packets);
        self.packets += 1;
        let mut packet = Vec::with_capacity(graph.len() + 32);
        number(&mut packet, 8, TIME_NS);
        number(&mut packet, 10, SEQUENCE);
        bytes(&mut packet, 56, &graph);
        self.trace_packet(&packet)
    }

    fn object(&mut self, id: u64, class: u64, size: u64, references: &[u64]) -> io::Result<()> {
        let object = &mut self.object;
        object.clear();
        match self.last_id {
            0 => number(object, 1, id),
            last => number(object, 7, id - last),
        }
        self.last_id = id;
        number(object, 2, class);
        if size != 0 {
            number(object, 3, size);
        }
        if let Some(&least) = references.iter().filter(|&&r| r != 0).min() {
            // 0 stays null, so the base is one below the least.
            let base = least - 1;
            number(object, 6, base);
            packed(object, 5, references.iter().map(|r| r.saturating_sub(base)));
        }
        bytes(&mut self.graph, 2, &self.object);
        if self.graph.len() >= SPLIT {
            self.packet(true)?;
        }
        Ok(())
    }

    fn objects(&mut self, objects: u64) -> io::Result<()> {
        let id = |n: u64| FIRST_ID + n * 4;
        let mut free: Vec<u64> = Vec::new();
        let mut references = Vec::new();
        for n in 0..objects.saturating_sub(1) {
            references.clear();
            let (class, size) = match self.random.below(10) {
                0..3 => (2, 16 + self.random.below(200)),
                3 => (3, 24),
                _ => {
                    for _ in 0..self.random.below(5) {
                        references.extend(free.pop());
                    }
                    if self.random.below(4) == 0 {
                        // Mostly something near.
                        let far = self.random.below(5) == 0;
                        let back = self.random.below(if far { n + 1 } else { 1000.min(n + 1) });
                        references.push(id(n - back));
                    }
                    references.resize(FIELDS as usize, 0);
                    (ORDINARY + self.random.below(CLASSES), 0)
                }
            };
            self.object(id(n), class, size, &references)?;
            free.push(id(n));
        }
        let size = 12 + free.len() as u64 * 4;
        self.object(id(objects.saturating_sub(1)), 1, size, &free)
    }

    /// Roots, types, names.
    fn tables(&mut self, objects: u64) {
        let mut root = Vec::new();
        packed(
            &mut root,
            1,
            [FIRST_ID + (objects.saturating_sub(1)) * 4].into_iter(),
        );
        number(&mut root, 2, 1);
        bytes(&mut self.graph, 7, &root);
        for field in 0..FIELDS {
            let mut name = Vec::new();
            number(&mut name, 1, field + 1);
            let text = format!("java.lang.Object com.example.Thing.part{field}");
            bytes(&mut name, 2, text.as_bytes());
            bytes(&mut self.graph, 4, &name);
        }
        let mut location = Vec::new();
        number(&mut location, 1, 1);
        bytes(
            &mut location,
            2,
            b"/data/app/com.example.generated/base.apk",
        );
        bytes(&mut self.graph, 8, &location);
        let arrays = [
            ("java.lang.Object[]", 4),
            ("byte[]", 4),
            ("java.lang.String", 3),
        ];
        for class in 1..ORDINARY + CLASSES {
            let mut kind = Vec::new();
            number(&mut kind, 1, class);
            number(&mut kind, 2, 1);
            match arrays.get(class as usize - 1) {
                Some(&(name, code)) => {
                    bytes(&mut kind, 3, name.as_bytes());
                    number(&mut kind, 7, code);
                }
                None => {
                    let name = format!("com.example.package{}.Thing{class}", class % 97);
                    bytes(&mut kind, 3, name.as_bytes());
                    number(&mut kind, 4, 16 + class % 7 * 8);
                    // The second half inherits from the first.
                    if class >= ORDINARY + CLASSES / 2 {
                        number(&mut kind, 5, class - CLASSES / 2);
                    } else {
                        packed(&mut kind, 6, 1..=FIELDS);
                    }
                    number(&mut kind, 7, 1);
                }
            }
            bytes(&mut self.graph, 9, &kind);
        }
    }
}
