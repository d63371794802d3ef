//! `ModuleSymbols` packets: symbols as Perfetto's own `symbolize` writes them, to be appended to
//! their trace. Contains the encoding; `perfetto-heap` decodes them.
//!
//! ```text
//! Trace.packet = 1 ─► TracePacket.module_symbols = 61
//!   1 path            as the trace composes it, leading /
//!   2 build_id        raw bytes
//!   3 address_symbols repeated
//!       1 address     Frame.rel_pc as recorded, not corrected
//!       2 lines       repeated, innermost inlined call first
//!           1 function_name     demangled
//!           2 source_file_name  ?? where unknown
//!           3 line_number       0 where unknown
//! ```
//!
//! A reader attaches a packet's lines to every frame with that path, build ID and address, so
//! a module can be split into several packets of about `MAX_SIZE` bytes.

use super::wire::{put_bytes, put_field};
use heaptap_model::profile::{FrameId, Line, Recording};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Size in bytes at which a packet is closed; it can exceed this by one address.
const MAX_SIZE: usize = 256 << 10;
/// Placeholder that symbolizers write for an unknown file.
const UNKNOWN_FILE: &[u8] = b"??";

/// Field numbers on the path to a line.
mod field {
    pub(super) const PACKET: u32 = 1;
    pub(super) const MODULE_SYMBOLS: u32 = 61;
    pub(super) const PATH: u32 = 1;
    pub(super) const BUILD_ID: u32 = 2;
    pub(super) const ADDRESS_SYMBOLS: u32 = 3;
    pub(super) const ADDRESS: u32 = 1;
    pub(super) const LINES: u32 = 2;
    pub(super) const FUNCTION_NAME: u32 = 1;
    pub(super) const SOURCE_FILE_NAME: u32 = 2;
    pub(super) const LINE_NUMBER: u32 = 3;
}

/// Counts of written data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Written {
    pub packets: u64,
    /// Addresses with lines.
    pub addresses: u64,
    pub bytes: u64,
}

impl Written {
    /// Adds the counts of `other`.
    pub fn add(&mut self, other: Written) {
        self.packets += other.packets;
        self.addresses += other.addresses;
        self.bytes += other.bytes;
    }
}

/// Writes the lines of all frames that `chosen` selects, in order of path, build ID and address.
///
/// # Errors
/// Returns an error if `out` cannot be written.
pub fn write_symbols(
    recording: &Recording,
    chosen: impl Fn(FrameId) -> bool,
    out: &mut dyn Write,
) -> io::Result<Written> {
    let tables = &recording.tables;
    let mut modules: BTreeMap<(&str, &[u8]), BTreeMap<u64, FrameId>> = BTreeMap::new();
    for (at, frame) in tables.frames().iter().enumerate() {
        let id = FrameId(at as u32);
        let Some(mapping) = frame.mapping.map(|mapping| tables.mapping(mapping)) else {
            continue;
        };
        if recording.symbols.lines(id).is_empty() || !chosen(id) {
            continue;
        }
        let module = (tables.string(mapping.path), mapping.build_id.0.as_slice());
        let addresses = modules.entry(module).or_default();
        addresses.entry(frame.rel_pc).or_insert(id);
    }
    let mut written = Written::default();
    let mut body = Vec::new();
    for ((path, build_id), addresses) in modules {
        let mut addresses = addresses.into_iter().peekable();
        while addresses.peek().is_some() {
            body.clear();
            put_bytes(&mut body, field::PATH, path.as_bytes());
            put_bytes(&mut body, field::BUILD_ID, build_id);
            while body.len() < MAX_SIZE
                && let Some((address, frame)) = addresses.next()
            {
                let message = address_symbols(recording, address, frame);
                put_bytes(&mut body, field::ADDRESS_SYMBOLS, &message);
                written.addresses += 1;
            }
            let mut packet = Vec::with_capacity(body.len() + 16);
            put_bytes(&mut packet, field::MODULE_SYMBOLS, &body);
            let mut bytes = Vec::with_capacity(packet.len() + 16);
            put_bytes(&mut bytes, field::PACKET, &packet);
            out.write_all(&bytes)?;
            written.packets += 1;
            written.bytes += bytes.len() as u64;
        }
    }
    Ok(written)
}

fn address_symbols(recording: &Recording, address: u64, frame: FrameId) -> Vec<u8> {
    let mut message = Vec::new();
    put_field(&mut message, field::ADDRESS, address);
    for line in recording.symbols.lines(frame) {
        put_bytes(&mut message, field::LINES, &encoded(recording, line));
    }
    message
}

fn encoded(recording: &Recording, line: &Line) -> Vec<u8> {
    let mut message = Vec::new();
    let function = recording.tables.string(line.function);
    put_bytes(&mut message, field::FUNCTION_NAME, function.as_bytes());
    let file = match recording.tables.string(line.file) {
        "" => UNKNOWN_FILE,
        file => file.as_bytes(),
    };
    put_bytes(&mut message, field::SOURCE_FILE_NAME, file);
    put_field(&mut message, field::LINE_NUMBER, u64::from(line.line));
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_base::units::BuildId;
    use heaptap_model::profile::{Frame, Mapping, StringId};
    use perfetto_heap::Trace;

    /// Creates a recording with one frame per address in two mappings of one file.
    fn recording(addresses: std::ops::Range<u64>) -> Recording {
        let mut recording = Recording::default();
        let tables = &mut recording.tables;
        let path = tables.intern_str("/lib/libapp.so");
        for start in [0x1000, 0x9000] {
            let mapping = tables.intern_mapping(Mapping {
                path,
                build_id: BuildId(vec![0xab, 0x00, 0xff]),
                start,
                end: start + 0x1000,
                ..Mapping::default()
            });
            for rel_pc in addresses.clone() {
                tables.intern_frame(Frame {
                    mapping: Some(mapping),
                    rel_pc,
                    name: StringId::default(),
                    file: StringId::default(),
                    line: 0,
                });
            }
        }
        recording
    }

    fn symbolize(recording: &mut Recording) {
        let tables = &mut recording.tables;
        let inlined = Line {
            function: tables.intern_str("app::inlined(int)"),
            linkage: tables.intern_str("_ZN3app7inlinedEi"),
            file: tables.intern_str("/src/app.cc"),
            line: 7,
        };
        let outer = Line {
            function: tables.intern_str("outer"),
            linkage: tables.intern_str("outer"),
            file: StringId::default(),
            line: 0,
        };
        let row = recording.symbols.add_lines(&[inlined, outer]).unwrap();
        for at in 0..recording.tables.frames().len() as u32 {
            recording.symbols.set_lines(FrameId(at), row);
        }
    }

    #[test]
    fn the_bytes_are_those_of_perfettos_own_packets() {
        let mut recording = recording(0x40..0x41);
        symbolize(&mut recording);
        let mut bytes = Vec::new();
        let written = write_symbols(&recording, |_| true, &mut bytes).unwrap();
        let counts = (written.packets, written.addresses, written.bytes);
        assert_eq!(counts, (1, 1, bytes.len() as u64), "one for both mappings");
        let mut expected = vec![0x0a, 79, 0xea, 0x03, 76, 0x0a, 14];
        expected.extend(b"/lib/libapp.so");
        expected.extend([0x12, 3, 0xab, 0x00, 0xff, 0x1a, 53, 0x08, 0x40]);
        expected.extend([0x12, 34, 0x0a, 17]);
        expected.extend(b"app::inlined(int)");
        expected.extend([0x12, 11]);
        expected.extend(b"/src/app.cc");
        expected.extend([0x18, 7, 0x12, 13, 0x0a, 5]);
        expected.extend(b"outer");
        expected.extend([0x12, 2, b'?', b'?', 0x18, 0]);
        assert_eq!(bytes, expected);
    }

    #[test]
    fn only_what_is_chosen_and_has_lines_is_written() {
        let mut recording = recording(0..4);
        let mut bytes = Vec::new();
        let none = write_symbols(&recording, |_| true, &mut bytes).unwrap();
        assert_eq!((none, bytes.len()), (Written::default(), 0));
        symbolize(&mut recording);
        let one = write_symbols(&recording, |frame| frame == FrameId(2), &mut bytes).unwrap();
        assert_eq!(one.addresses, 1);
    }

    #[test]
    fn a_large_module_is_cut_and_reads_back_whole() {
        let addresses = 0..20_000;
        let mut recording = recording(addresses.clone());
        symbolize(&mut recording);
        let mut bytes = Vec::new();
        let written = write_symbols(&recording, |_| true, &mut bytes).unwrap();
        assert!(written.packets > 2, "{written:?}");
        assert_eq!(written.addresses, 20_000);
        assert!(written.bytes / written.packets < 2 * MAX_SIZE as u64);
        // A reader accepts them without errors.
        let trace = Trace::open(Box::new(io::Cursor::new(bytes))).unwrap();
        assert_eq!(trace.health().damage_count, 0, "{:?}", trace.health());
    }
}
