//! Writes a trace as heapprofd does, of any size, for measuring conversions:
//!
//! ```text
//! generate_trace CALLSITES DUMPS [SEED] > trace
//! ```
//!
//! A process of `CALLSITES` distinct callstacks (5 to 40 frames over a tree of calls, mangled
//! C++ names, 60 libraries) is dumped `DUMPS` times; callsites appear over the first half of
//! the dumps, and each dump reports all that hold something. Deterministic.

use std::io::{self, BufWriter, Write};

/// heapprofd begins a new packet at about this size.
const SPLIT: usize = 400_000;
const SEQUENCE: u64 = 2;
const START_NS: u64 = 1_000_000_000_000;

fn main() -> io::Result<()> {
    let mut args = std::env::args().skip(1);
    let mut number = |default: Option<u64>| match (args.next(), default) {
        (Some(text), _) => text.parse().map_err(io::Error::other),
        (None, Some(default)) => Ok(default),
        (None, None) => Err(io::Error::other(
            "usage: generate_trace CALLSITES DUMPS [SEED]",
        )),
    };
    let callsites = number(None)?;
    let dumps = number(None)?.max(1);
    let seed = number(Some(1))?;
    let out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    Generator::new(out, seed).run(callsites as usize, dumps)
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

fn message(out: &mut Vec<u8>, field: u64, fill: impl FnOnce(&mut Vec<u8>)) {
    let mut inner = Vec::new();
    fill(&mut inner);
    bytes(out, field, &inner);
}

struct Callsite {
    /// Index of its first dump.
    from: u64,
    allocated: u64,
    freed: u64,
    allocations: u64,
    frees: u64,
}

struct Generator<W> {
    out: W,
    random: Random,
    /// Parent and frame of each node of the call tree.
    nodes: Vec<(u32, u32)>,
}

impl<W: Write> Generator<W> {
    fn new(out: W, seed: u64) -> Self {
        Generator {
            out,
            random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            nodes: Vec::new(),
        }
    }

    fn packet(&mut self, body: &[u8]) -> io::Result<()> {
        let mut head = Vec::new();
        varint(&mut head, 1 << 3 | 2);
        varint(&mut head, body.len() as u64);
        self.out.write_all(&head)?;
        self.out.write_all(body)
    }

    /// A packet of the tracing service.
    fn service(&mut self, fill: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let mut body = Vec::new();
        fill(&mut body);
        number(&mut body, 3, 9999);
        number(&mut body, 10, 1);
        number(&mut body, 58, 6);
        self.packet(&body)
    }

    fn producer(&mut self, time: u64, mut body: Vec<u8>) -> io::Result<()> {
        number(&mut body, 8, time);
        number(&mut body, 3, 9999);
        number(&mut body, 10, SEQUENCE);
        self.packet(&body)
    }

    fn run(mut self, callsites: usize, dumps: u64) -> io::Result<()> {
        self.service(|body| {
            message(body, 6, |snapshot| {
                for (clock, time) in [(6, START_NS), (4, START_NS), (1, 1_800_000_000_000_000_000)]
                {
                    message(snapshot, 1, |c| {
                        number(c, 1, clock);
                        number(c, 2, time);
                    });
                }
            });
        })?;
        self.service(|body| {
            message(body, 33, |config| {
                message(config, 2, |source| {
                    message(source, 1, |config| {
                        bytes(config, 1, b"android.heapprofd");
                        message(config, 105, |heapprofd| {
                            number(heapprofd, 1, 4096);
                            bytes(heapprofd, 2, b"com.example.generated");
                        });
                    });
                });
            });
        })?;
        for event in [2, 1] {
            self.service(|body| {
                number(body, 8, START_NS);
                message(body, 69, |e| number(e, event, 1));
            })?;
        }
        self.tables(callsites)?;
        let mut sites: Vec<Callsite> = (0..callsites)
            .map(|_| Callsite {
                from: self.random.below(dumps.div_ceil(2)),
                allocated: 0,
                freed: 0,
                allocations: 0,
                frees: 0,
            })
            .collect();
        let mut index = 0;
        let mut introduced = vec![false; callsites];
        for dump in 0..dumps {
            let time = START_NS + (dump + 1) * 1_000_000_000;
            self.dump(dump, time, &mut sites, &mut introduced, &mut index)?;
        }
        self.service(|body| message(body, 69, |e| number(e, 5, 1)))?;
        self.service(|body| message(body, 69, |e| number(e, 4, 1)))?;
        self.service(|body| message(body, 35, |stats| number(stats, 12, 1)))?;
        self.out.flush()
    }

    /// Libraries, functions and frames, and a tree of calls over them.
    fn tables(&mut self, callsites: usize) -> io::Result<()> {
        const LIBRARIES: u64 = 60;
        let functions = (callsites as u64 / 8).clamp(50, 30_000);
        let mut interned = Vec::new();
        for field in [16, 17, 5] {
            message(&mut interned, field, |s| {
                number(s, 1, 0);
                bytes(s, 2, b"");
            });
        }
        for library in 1..=LIBRARIES {
            let mut id = [0u8; 20];
            for byte in &mut id {
                *byte = self.random.below(256) as u8;
            }
            message(&mut interned, 16, |s| {
                number(s, 1, library);
                bytes(s, 2, &id);
            });
            let name = format!("libmodule{library}.so");
            for (part, text) in [(0, "data"), (1, "app"), (2, "lib"), (3, &*name)] {
                message(&mut interned, 17, |s| {
                    number(s, 1, library * 4 + part);
                    bytes(s, 2, text.as_bytes());
                });
            }
            message(&mut interned, 19, |m| {
                let start = 0x7000_0000_0000 + library * 0x200_0000;
                number(m, 1, library);
                number(m, 2, library);
                number(m, 8, 0x1000);
                number(m, 4, start);
                number(m, 5, start + 0x100_0000);
                for part in 0..4 {
                    number(m, 7, library * 4 + part);
                }
            });
        }
        const WORDS: [&str; 16] = [
            "Cache", "Buffer", "Image", "Decoder", "Layout", "Session", "Parser", "Record",
            "Surface", "Texture", "String", "Vector", "Manager", "Reader", "Writer", "Queue",
        ];
        for function in 1..=functions {
            let class = WORDS[self.random.below(16) as usize];
            let part = WORDS[self.random.below(16) as usize];
            let name = format!(
                "_ZN7example{}{class}{}{part}{function}EPNS_7ContextEi",
                class.len(),
                part.len() + function.to_string().len()
            );
            message(&mut interned, 5, |s| {
                number(s, 1, function);
                bytes(s, 2, name.as_bytes());
            });
        }
        let frames = functions * 2;
        for frame in 1..=frames {
            let library = 1 + self.random.below(LIBRARIES);
            let pc = 0x1000 + self.random.below(0xf0_0000);
            let name = 1 + self.random.below(functions);
            message(&mut interned, 6, |f| {
                number(f, 1, frame);
                number(f, 2, name);
                number(f, 3, library);
                number(f, 4, pc);
            });
        }
        let mut body = Vec::new();
        bytes(&mut body, 12, &interned);
        number(&mut body, 13, 1);
        self.producer(START_NS, body)?;
        self.nodes.push((0, 1));
        let tree = callsites.max(64);
        while self.nodes.len() < tree {
            // Mostly deeper along what came last, as real stacks are: long common beginnings.
            let count = self.nodes.len() as u64;
            let near = count - 1 - self.random.below(count.min(30));
            let parent = if self.random.below(8) == 0 {
                self.random.below(count)
            } else {
                near
            };
            let frame = 1 + self.random.below(frames);
            self.nodes.push((parent as u32, frame as u32));
        }
        Ok(())
    }

    fn stack(&self, callsite: usize) -> Vec<u32> {
        const MAX_DEPTH: usize = 40;
        let mut frames = Vec::new();
        let mut node = callsite % self.nodes.len();
        while frames.len() < MAX_DEPTH {
            let (parent, frame) = self.nodes[node];
            frames.push(frame);
            if node == 0 {
                break;
            }
            node = parent as usize;
        }
        frames.reverse();
        frames
    }

    fn dump(
        &mut self,
        dump: u64,
        time: u64,
        sites: &mut [Callsite],
        introduced: &mut [bool],
        index: &mut u64,
    ) -> io::Result<()> {
        let mut samples = Vec::new();
        let mut interned = Vec::new();
        for (at, site) in sites.iter_mut().enumerate() {
            if site.from > dump {
                continue;
            }
            let count = self.random.below(12);
            let bytes_each = 4096 * (1 + self.random.below(3)) + self.random.below(2) * 777;
            site.allocations += count;
            site.allocated += count * bytes_each;
            if site.allocations > site.frees {
                let gone = self.random.below(site.allocations - site.frees + 1);
                let share = (site.allocated - site.freed) / (site.allocations - site.frees).max(1);
                site.frees += gone;
                site.freed += gone * share;
            }
            message(&mut samples, 2, |s| {
                number(s, 1, at as u64 + 1);
                number(s, 2, site.allocated);
                number(s, 3, site.freed);
                number(s, 5, site.allocations);
                number(s, 6, site.frees);
            });
            if !std::mem::replace(&mut introduced[at], true) {
                let stack = self.stack(at);
                message(&mut interned, 7, |c| {
                    number(c, 1, at as u64 + 1);
                    for frame in stack {
                        number(c, 2, u64::from(frame));
                    }
                });
            }
            if samples.len() + interned.len() >= SPLIT {
                self.chain_packet(time, index, &mut samples, &mut interned)?;
            }
        }
        self.chain_packet(time, index, &mut samples, &mut interned)?;
        // heapprofd closes a dump with an empty packet.
        let mut body = Vec::new();
        message(&mut body, 37, |p| number(p, 7, *index));
        *index += 1;
        self.producer(time, body)
    }

    fn chain_packet(
        &mut self,
        time: u64,
        index: &mut u64,
        samples: &mut Vec<u8>,
        interned: &mut Vec<u8>,
    ) -> io::Result<()> {
        let mut body = Vec::new();
        message(&mut body, 37, |packet| {
            message(packet, 5, |part| {
                number(part, 1, 4242);
                number(part, 3, 1);
                number(part, 9, time);
                bytes(part, 11, b"libc.malloc");
                number(part, 12, 4096);
                number(part, 13, 4096);
                part.extend_from_slice(samples);
            });
            number(packet, 6, 1);
            number(packet, 7, *index);
        });
        *index += 1;
        if !interned.is_empty() {
            bytes(&mut body, 12, interned);
        }
        samples.clear();
        interned.clear();
        self.producer(time, body)
    }
}
