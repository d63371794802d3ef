//! Decoder for the data of a page, which returns a [`StackProfile`]. It is written from the same
//! specification as the viewer. Invalid data is rejected.

use super::blocks::{CLOSE, OPEN};
use super::header::{FORMAT, Header, MAGIC};
use super::values::Rows;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use heaptap_model::profile::DumpFlags;
use heaptap_model::stacks::{
    Dump, Facts, Frame, FrameId, Function, FunctionId, Kind, Library, LibraryId, Measure, NodeId,
    StackProfile, StackTable, TextId, Unit, Values, View,
};
use libdeflater::Decompressor;

/// Maximum decompressed size that a block can declare.
const MAX_SIZE: usize = 16 << 20;

/// Reads the data of a page; `None` if the page has no data or if it is damaged.
pub fn from_page(page: &str) -> Option<Vec<u8>> {
    let blocks = page.split(OPEN).skip(1).map(block);
    let blocks: Vec<Vec<u8>> = blocks.collect::<Option<_>>()?;
    (!blocks.is_empty()).then(|| blocks.concat())
}

/// Reads one element, starting behind [`OPEN`].
fn block(element: &str) -> Option<Vec<u8>> {
    let (bytes, rest) = element.split_once("\">")?;
    let (text, _) = rest.split_once(CLOSE)?;
    let bytes: usize = bytes.parse().ok().filter(|bytes| *bytes <= MAX_SIZE)?;
    let packed = BASE64_STANDARD.decode(text).ok()?;
    let mut block = vec![0; bytes];
    let length = Decompressor::new().zlib_decompress(&packed, &mut block);
    (length == Ok(bytes)).then_some(block)
}

/// Decoded data of a page.
#[derive(Debug)]
pub struct Data {
    pub header: Header,
    /// Native heaps; callsites have their numbers in the data.
    pub native: StackProfile,
    /// Sections of the Java heaps.
    pub java: Vec<serde_json::Value>,
}

impl Data {
    /// Decodes the data; `None` if they have another format or are damaged.
    pub fn decode(data: &[u8]) -> Option<Data> {
        let rest = data.strip_prefix(MAGIC)?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let length = u32::from_le_bytes(*length) as usize;
        let (header, sections) = rest.split_at_checked(length)?;
        let header: Header = serde_json::from_slice(header).ok()?;
        if header.format != FORMAT {
            return None;
        }
        let sections = Sections {
            header: &header,
            bytes: sections,
        };
        let native = match header.dumps.is_empty() {
            true => StackProfile::default(),
            false => native(&sections)?,
        };
        let java = header.java.iter().map(|heap| {
            let json = unpacked(sections.get(&heap.section)?)?;
            serde_json::from_slice(&json).ok()
        });
        let java = java.collect::<Option<_>>()?;
        Some(Data {
            header,
            native,
            java,
        })
    }
}

/// Maximum size of a section of gzip, unpacked, in bytes.
const MAX_UNPACKED: usize = 256 << 20;

fn unpacked(gzip: &[u8]) -> Option<Vec<u8>> {
    let length = u32::from_le_bytes(*gzip.last_chunk()?) as usize;
    let mut bytes = vec![0; length.min(MAX_UNPACKED)];
    let mut decompressor = Decompressor::new();
    let written = decompressor.gzip_decompress(gzip, &mut bytes).ok()?;
    bytes.truncate(written);
    Some(bytes)
}

struct Sections<'a> {
    header: &'a Header,
    bytes: &'a [u8],
}

impl<'a> Sections<'a> {
    fn get(&self, name: &str) -> Option<&'a [u8]> {
        let section = self.header.sections.iter().find(|s| s.name == name);
        let section = section?;
        let end = section.offset.checked_add(section.length)?;
        self.bytes.get(section.offset..end)
    }

    /// Reads a whole section. It is damaged if `read` returns `None`.
    fn read<T>(&self, name: &str, read: impl FnOnce(&mut Reader<'a>) -> Option<T>) -> Option<T> {
        let mut reader = Reader::new(self.get(name)?);
        read(&mut reader).filter(|_| reader.rest().is_empty())
    }
}

/// Reads a column of `count` values.
fn column<'a, T>(
    reader: &mut Reader<'a>,
    count: usize,
    next: impl Fn(&mut Reader<'a>) -> Option<T>,
) -> Option<Vec<T>> {
    // A value takes at least one byte, so a larger count is damage and must not be allocated.
    if count > reader.rest().len() {
        return None;
    }
    reader.begin_column();
    (0..count).map(|_| next(reader)).collect()
}

fn native(sections: &Sections<'_>) -> Option<StackProfile> {
    let counts = sections.header.counts;
    let mut table = StackTable::default();
    let texts = strings(sections, &mut table)?;
    let text = |number: u32| texts.get(number as usize).copied();
    let libraries = sections.read("libraries", |reader| {
        let paths = column(reader, counts.libraries, Reader::next_delta)?;
        let build_ids = column(reader, counts.libraries, Reader::next_delta)?;
        let libraries = paths.into_iter().zip(build_ids).map(|(path, build_id)| {
            Some(table.library(Library {
                path: text(path)?,
                build_id: text(build_id)?,
            }))
        });
        libraries.collect::<Option<Vec<LibraryId>>>()
    })?;
    let functions = sections.read("functions", |reader| {
        let names = column(reader, counts.functions, Reader::next_delta)?;
        let system_names = column(reader, counts.functions, Reader::next_delta)?;
        let owners = column(reader, counts.functions, Reader::next_delta)?;
        let kinds = column(reader, counts.functions, Reader::next_u32)?;
        let functions = (0..counts.functions).map(|at| {
            Some(table.function(Function {
                name: text(names[at])?,
                system_name: text(system_names[at])?,
                library: *libraries.get(owners[at] as usize)?,
                kind: match kinds[at] {
                    0 => Kind::Plain,
                    1 => Kind::Allocator,
                    2 => Kind::Runtime,
                    3 => Kind::Java,
                    _ => return None,
                },
            }))
        });
        functions.collect::<Option<Vec<FunctionId>>>()
    })?;
    let frames = sections.read("frames", |reader| {
        let owners = column(reader, counts.frames, Reader::next_delta)?;
        let files = column(reader, counts.frames, Reader::next_delta)?;
        let lines = column(reader, counts.frames, Reader::next_u32)?;
        let flags = column(reader, counts.frames, Reader::next)?;
        let frames = (0..counts.frames).map(|at| {
            Some(table.frame(Frame {
                function: *functions.get(owners[at] as usize)?,
                file: text(files[at])?,
                line: lines[at],
                inlined: flags[at] & 1 == 1,
            }))
        });
        frames.collect::<Option<Vec<FrameId>>>()
    })?;
    sections.read("nodes", |reader| {
        let count = counts.nodes.checked_sub(1)?;
        let pops = column(reader, count, Reader::next_u32)?;
        let ids = column(reader, count, Reader::next_u32)?;
        let mut line = vec![NodeId::ROOT];
        for (at, (pop, id)) in pops.into_iter().zip(ids).enumerate() {
            let left = line.len().checked_sub(pop as usize)?;
            line.truncate(left);
            let node = table.child(*line.last()?, *frames.get(id as usize)?);
            // Two callsites with the same frame and parent would have merged.
            if node.0 as usize != at + 1 {
                return None;
            }
            line.push(node);
        }
        Some(())
    })?;
    let dumps = dumps(sections)?;
    Some(StackProfile { table, dumps })
}

fn strings(sections: &Sections<'_>, table: &mut StackTable) -> Option<Vec<TextId>> {
    let mut reader = Reader::new(sections.get("strings")?);
    let lengths = column(&mut reader, sections.header.counts.strings, Reader::next)?;
    let all = std::str::from_utf8(reader.rest()).ok()?;
    let mut chars = all.char_indices().peekable();
    let mut texts = Vec::with_capacity(lengths.len());
    for length in lengths {
        let start = chars.peek().map_or(all.len(), |(at, _)| *at);
        let mut left = length;
        while left > 0 {
            let (_, c) = chars.next()?;
            left = left.checked_sub(c.len_utf16() as u64)?;
        }
        let end = chars.peek().map_or(all.len(), |(at, _)| *at);
        texts.push(table.text(&all[start..end]));
    }
    chars.next().is_none().then_some(texts)
}

fn dumps(sections: &Sections<'_>) -> Option<Vec<Dump>> {
    let mut all: Vec<Rows> = Vec::new();
    for (at, dump) in sections.header.dumps.iter().enumerate() {
        let name = format!("dump.{at}");
        let own = sections.read(&name, |reader| rows(reader, dump, sections))?;
        let whole = match dump.base {
            None => Some(own),
            Some(base) => all
                .get(base)
                .filter(|base| base.columns.len() == own.columns.len())
                .map(|base| base.plus(own)),
        };
        all.push(whole?);
    }
    let dumps = sections.header.dumps.iter().zip(all);
    let dumps = dumps.map(|(dump, rows)| with_facts(dump, rows, sections.header));
    Some(dumps.collect())
}

fn rows(
    reader: &mut Reader<'_>,
    dump: &super::header::Dump,
    sections: &Sections<'_>,
) -> Option<Rows> {
    let mut nodes = column(reader, dump.rows, Reader::next)?;
    let mut before = 0u64;
    for (at, node) in nodes.iter_mut().enumerate() {
        let is_new = *node > 0 || at == 0;
        before = before.checked_add(*node)?;
        *node = before;
        if !is_new || before >= sections.header.counts.nodes as u64 {
            return None;
        }
    }
    let mut columns: Vec<Vec<i64>> = Vec::new();
    for (at, measure) in dump.measures.iter().enumerate() {
        let mut own = column(reader, dump.rows, Reader::next_signed)?;
        if let Some(derived) = measure.derived {
            let earlier = columns
                .get(derived.measure)
                .filter(|_| derived.measure < at)?;
            for (value, earlier) in own.iter_mut().zip(earlier) {
                *value = value.wrapping_add(earlier.wrapping_mul(derived.times));
            }
        }
        columns.push(own);
    }
    Some(Rows {
        nodes: nodes.into_iter().map(|node| node as u32).collect(),
        columns,
    })
}

impl Rows {
    /// Returns the sum of both, without rows of zeros.
    fn plus(&self, difference: Rows) -> Rows {
        let negated = Rows {
            nodes: difference.nodes,
            columns: difference
                .columns
                .into_iter()
                .map(|column| column.into_iter().map(i64::wrapping_neg).collect())
                .collect(),
        };
        self.minus(&negated)
    }
}

fn with_facts(dump: &super::header::Dump, rows: Rows, header: &Header) -> Dump {
    let ns = |ms: f64| (ms * 1e6).round() as u64;
    let has = |flag: &str| dump.flags.iter().any(|f| f == flag);
    let series = header.series.get(dump.series);
    let view = |name: Option<&str>| {
        let mut views = View::ALL.into_iter();
        views.find(|view| Some(view.name()) == name)
    };
    Dump {
        facts: Facts {
            number: dump.number,
            label: dump.label.clone(),
            pid: dump.pid,
            process: dump.process.clone(),
            heap: dump.heap.clone(),
            time_ns: dump.time_ms.map(ns),
            wall_time_ns: dump.wall_ms.map(ns),
            start_ns: series.and_then(|series| series.start_ms).map(ns),
            sampling_interval_bytes: dump.interval,
            orig_sampling_interval_bytes: dump.orig_interval,
            kind: dump.kind,
            flags: DumpFlags {
                from_startup: has("from_startup"),
                rejected_concurrent: has("rejected_concurrent"),
                disconnected: has("disconnected"),
                buffer_overran: has("buffer_overran"),
                buffer_corrupted: has("buffer_corrupted"),
                hit_guardrail: has("hit_guardrail"),
                client_error: u32::from(has("client_error")),
            },
            unfinished: dump.unfinished,
            open: false,
            is_default: false,
        },
        measures: dump
            .measures
            .iter()
            .map(|measure| Measure {
                name: measure.name.clone(),
                small_of: view(measure.small_of.as_deref()),
                unit: match measure.unit.as_str() {
                    "bytes" => Unit::Bytes,
                    "count" => Unit::Count,
                    other => Unit::Other(other.to_owned()),
                },
                view: view(measure.view.as_deref()),
            })
            .collect(),
        default_measure: dump.default_measure,
        values: Values {
            nodes: rows.nodes.into_iter().map(NodeId).collect(),
            columns: rows.columns,
        },
        threads: Vec::new(),
    }
}

/// Reader for the encodings of `varint`.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    before: i64,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, before: 0 }
    }

    /// Returns the next unsigned integer; `None` at the end of the bytes or for more than 64 bits.
    pub(super) fn next(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            let (&byte, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            if shift == 63 && byte > 1 {
                return None;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    pub(super) fn next_signed(&mut self) -> Option<i64> {
        let value = self.next()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    pub(super) fn next_u32(&mut self) -> Option<u32> {
        self.next()?.try_into().ok()
    }

    /// Returns the next entry of a column of differences, which starts at 0.
    pub(super) fn next_delta(&mut self) -> Option<u32> {
        self.before = self.before.checked_add(self.next_signed()?)?;
        u32::try_from(self.before).ok()
    }

    /// Begins the next column.
    pub(super) fn begin_column(&mut self) {
        self.before = 0;
    }

    /// Returns the remaining bytes.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes
    }
}
