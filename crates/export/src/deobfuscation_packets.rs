//! `DeobfuscationMapping` packets: names that a compiler changed, as Perfetto's own `deobfuscate`
//! writes them, to be appended to their trace. Contains the encoding; `perfetto-heap` decodes them.
//!
//! ```text
//! Trace.packet = 1 ─► TracePacket.deobfuscation_mapping = 64
//!   1 package_name
//!   3 obfuscated_classes  repeated
//!       1 obfuscated_name     as in the app
//!       2 deobfuscated_name
//!       3 obfuscated_members  fields, repeated
//!       4 obfuscated_methods  repeated, in order of the mapping file
//!           1 obfuscated_name
//!           2 deobfuscated_name      with a dot: qualified, from another class
//!           3 obfuscated_line_start  4 obfuscated_line_end
//!           5 source_line_start      6 source_line_end
//! ```
//!
//! A reader combines the packets of a package and applies them at the end of the trace, so a map
//! can be split anywhere except inside a method. Packets written here do not exceed `MAX_SIZE` by
//! much. A split class is in each of its packets with its names.

use serde::Serialize;

use super::wire::{put_bytes, put_field, put_varint};
use heaptap_model::profile::PacketLines;
use std::io::{self, Write};

/// Size in bytes at which a packet is closed.
const MAX_SIZE: usize = 256 << 10;

mod field {
    pub(super) const PACKET: u32 = 1;
    pub(super) const DEOBFUSCATION_MAPPING: u32 = 64;
    pub(super) const PACKAGE_NAME: u32 = 1;
    pub(super) const OBFUSCATED_CLASSES: u32 = 3;
    pub(super) const OBFUSCATED_NAME: u32 = 1;
    pub(super) const DEOBFUSCATED_NAME: u32 = 2;
    pub(super) const OBFUSCATED_MEMBERS: u32 = 3;
    pub(super) const OBFUSCATED_METHODS: u32 = 4;
    pub(super) const OBFUSCATED_LINE_START: u32 = 3;
    pub(super) const OBFUSCATED_LINE_END: u32 = 4;
    pub(super) const SOURCE_LINE_START: u32 = 5;
    pub(super) const SOURCE_LINE_END: u32 = 6;
}

/// Counts of a written map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct WrittenMap {
    pub packets: u64,
    pub classes: u64,
    pub fields: u64,
    /// Entries of methods; one method can have many.
    pub methods: u64,
    pub bytes: u64,
}

/// Writer for the map of one package, class by class. Holds at most one packet.
pub struct MapWriter<'w> {
    out: &'w mut dyn Write,
    package: String,
    /// Classes of the current packet.
    classes: Vec<u8>,
    /// The current class: its names only, and including its members.
    names: Vec<u8>,
    class: Vec<u8>,
    /// Current method, whose entries stay together.
    method: String,
    member: Vec<u8>,
    written: WrittenMap,
}

impl<'w> MapWriter<'w> {
    /// Begins the map of a package.
    pub fn new(package: &str, out: &'w mut dyn Write) -> Self {
        MapWriter {
            out,
            package: package.to_owned(),
            classes: Vec::new(),
            names: Vec::new(),
            class: Vec::new(),
            method: String::new(),
            member: Vec::new(),
            written: WrittenMap::default(),
        }
    }

    /// Begins a class, to which the following members belong.
    ///
    /// # Errors
    /// Returns an error if earlier data cannot be written.
    pub fn class(&mut self, obfuscated: &str, original: &str) -> io::Result<()> {
        self.end_class();
        if self.classes.len() >= MAX_SIZE {
            self.flush()?;
        }
        put_bytes(
            &mut self.names,
            field::OBFUSCATED_NAME,
            obfuscated.as_bytes(),
        );
        put_bytes(
            &mut self.names,
            field::DEOBFUSCATED_NAME,
            original.as_bytes(),
        );
        self.class.extend_from_slice(&self.names);
        self.written.classes += 1;
        Ok(())
    }

    /// Adds a field to the current class.
    ///
    /// # Errors
    /// Returns an error if earlier data cannot be written.
    pub fn field(&mut self, obfuscated: &str, original: &str) -> io::Result<()> {
        self.make_room()?;
        self.put_member(
            field::OBFUSCATED_MEMBERS,
            obfuscated,
            original,
            PacketLines::default(),
        );
        self.method.clear();
        self.written.fields += 1;
        Ok(())
    }

    /// Adds an entry of a method to the current class. Entries of one method must be consecutive.
    ///
    /// # Errors
    /// Returns an error if earlier data cannot be written.
    pub fn method(
        &mut self,
        obfuscated: &str,
        original: &str,
        lines: PacketLines,
    ) -> io::Result<()> {
        if obfuscated != self.method {
            self.make_room()?;
            self.method.clear();
            self.method.push_str(obfuscated);
        }
        self.put_member(field::OBFUSCATED_METHODS, obfuscated, original, lines);
        self.written.methods += 1;
        Ok(())
    }

    /// Ends the map.
    ///
    /// # Errors
    /// Returns an error if the remaining data cannot be written.
    pub fn finish(mut self) -> io::Result<WrittenMap> {
        self.end_class();
        if !self.classes.is_empty() {
            self.flush()?;
        }
        Ok(self.written)
    }

    fn put_member(&mut self, number: u32, obfuscated: &str, original: &str, lines: PacketLines) {
        self.member.clear();
        put_bytes(
            &mut self.member,
            field::OBFUSCATED_NAME,
            obfuscated.as_bytes(),
        );
        put_bytes(
            &mut self.member,
            field::DEOBFUSCATED_NAME,
            original.as_bytes(),
        );
        for (number, line) in [
            (field::OBFUSCATED_LINE_START, lines.obfuscated_start),
            (field::OBFUSCATED_LINE_END, lines.obfuscated_end),
            (field::SOURCE_LINE_START, lines.source_start),
            (field::SOURCE_LINE_END, lines.source_end),
        ] {
            // Line 0 differs from a missing line.
            if let Some(line) = line {
                put_field(&mut self.member, number, line.into());
            }
        }
        put_bytes(&mut self.class, number, &self.member);
    }

    /// Splits the current class if the packet is full.
    fn make_room(&mut self) -> io::Result<()> {
        if self.classes.len() + self.class.len() < MAX_SIZE || self.class.len() == self.names.len()
        {
            return Ok(());
        }
        put_bytes(&mut self.classes, field::OBFUSCATED_CLASSES, &self.class);
        self.class.clear();
        self.class.extend_from_slice(&self.names);
        self.flush()
    }

    fn end_class(&mut self) {
        if !self.class.is_empty() {
            put_bytes(&mut self.classes, field::OBFUSCATED_CLASSES, &self.class);
        }
        self.class.clear();
        self.names.clear();
        self.method.clear();
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut mapping = Vec::with_capacity(self.classes.len() + self.package.len() + 8);
        put_bytes(&mut mapping, field::PACKAGE_NAME, self.package.as_bytes());
        mapping.append(&mut self.classes);
        let mut packet = Vec::with_capacity(mapping.len() + 8);
        put_bytes(&mut packet, field::DEOBFUSCATION_MAPPING, &mapping);
        let mut head = Vec::new();
        put_varint(&mut head, u64::from(field::PACKET) << 3 | 2);
        put_varint(&mut head, packet.len() as u64);
        self.out.write_all(&head)?;
        self.out.write_all(&packet)?;
        self.written.packets += 1;
        self.written.bytes += (head.len() + packet.len()) as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perfetto_heap::Surveyed;
    use std::io::Cursor;

    fn read(bytes: Vec<u8>) -> Surveyed {
        let surveyed = Surveyed::read(Box::new(Cursor::new(bytes))).unwrap();
        assert_eq!(surveyed.health().damage_count, 0, "{:?}", surveyed.health());
        surveyed
    }

    #[test]
    fn the_bytes_are_those_of_perfettos_own_packets() {
        let mut bytes = Vec::new();
        let mut writer = MapWriter::new("com.x", &mut bytes);
        writer.class("a", "X").unwrap();
        writer.field("b", "count").unwrap();
        let lines = PacketLines {
            obfuscated_start: Some(0),
            obfuscated_end: Some(3),
            source_start: Some(300),
            source_end: None,
        };
        writer.method("c", "y.U.run", lines).unwrap();
        let written = writer.finish().unwrap();
        let mut expected = vec![0x0a, 51, 0x82, 0x04, 48, 0x0a, 5];
        expected.extend(b"com.x");
        expected.extend([
            0x1a, 39, 0x0a, 1, b'a', 0x12, 1, b'X', 0x1a, 10, 0x0a, 1, b'b', 0x12, 5,
        ]);
        expected.extend(b"count");
        expected.extend([0x22, 19, 0x0a, 1, b'c', 0x12, 7]);
        expected.extend(b"y.U.run");
        expected.extend([0x18, 0, 0x20, 3, 0x28, 0xac, 0x02]);
        assert_eq!(bytes, expected);
        let counts = (
            written.packets,
            written.classes,
            written.fields,
            written.methods,
        );
        assert_eq!(counts, (1, 1, 1, 1));
        assert_eq!(written.bytes, bytes.len() as u64);
    }

    #[test]
    fn a_large_map_is_cut_and_adds_up() {
        let mut bytes = Vec::new();
        let mut writer = MapWriter::new("com.x", &mut bytes);
        for class in 0..10_000 {
            let class = format!("c{class}");
            writer
                .class(&class, &format!("com.example.Class{class}"))
                .unwrap();
            writer.method("f", "run", PacketLines::default()).unwrap();
        }
        // A class larger than a packet, and one of its methods.
        writer.class("large", "com.example.Large").unwrap();
        for method in 0..20_000 {
            let name = format!("method{}", method / 10);
            writer
                .method(&name, "original", PacketLines::default())
                .unwrap();
        }
        let written = writer.finish().unwrap();
        assert!(written.packets > 3, "{written:?}");
        assert!(written.bytes / written.packets < 2 * MAX_SIZE as u64);
        let surveyed = read(bytes);
        let map = surveyed.name_maps().get("com.x").unwrap();
        let names: std::collections::BTreeSet<&str> = (0..map.class_count())
            .map(|at| map.class(at).obfuscated)
            .collect();
        assert_eq!(names.len(), 10_001);
        let mut ended = std::collections::BTreeSet::new();
        let mut members = 0;
        for at in 0..map.class_count() {
            let class = map.class(at);
            if class.obfuscated != "large" {
                assert_eq!(class.members().count(), 1);
                continue;
            }
            assert_eq!(class.original, "com.example.Large");
            let here: std::collections::BTreeSet<&str> =
                class.members().map(|member| member.obfuscated).collect();
            members += class.members().count();
            for name in here {
                assert!(ended.insert(name), "{name} is in one packet");
            }
        }
        assert_eq!(members, 20_000);
    }

    #[test]
    fn an_empty_map_writes_nothing() {
        let mut bytes = Vec::new();
        let written = MapWriter::new("com.x", &mut bytes).finish().unwrap();
        assert_eq!((written, bytes.len()), (WrittenMap::default(), 0));
    }
}
