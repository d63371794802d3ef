//! Names of frames in a conversion: from a mapping file, and from the packets that `symbolize`
//! writes for it, read back from a trace.

use heaptap_export::deobfuscation_packets::MapWriter;
use heaptap_model::profile::{Frame, FrameId, Mapping, Recording, StringId};
use heaptap_symbols::deobfuscate::{AppMap, Entry, MapFile, MapSource, Scope, SeenIn, apply};
use perfetto_heap::Surveyed;
use std::collections::BTreeSet;
use std::io::{self, Cursor};

const PACKAGE: &str = "com.x";

/// Names of an app's frames by mappings of its package.
fn applied(source: MapSource, names: &[&str]) -> Vec<String> {
    let mut recording = Recording::default();
    let tables = &mut recording.tables;
    let mapping = Mapping {
        path: tables.intern_str("/data/app/com.x-1/base.apk"),
        ..Mapping::default()
    };
    let mapping = Some(tables.intern_mapping(mapping));
    let frames: Vec<FrameId> = names
        .iter()
        .map(|name| {
            let name = tables.intern_str(name);
            tables.intern_frame(Frame {
                mapping,
                rel_pc: 0,
                name,
                file: StringId::default(),
                line: 0,
            })
        })
        .collect();
    let seen: SeenIn = frames.iter().map(|&f| (f, BTreeSet::from([7]))).collect();
    let map = AppMap {
        scope: Scope::Package(PACKAGE.to_owned()),
        source,
    };
    apply(&mut recording, &seen, &[map]);
    frames
        .into_iter()
        .map(|frame| {
            let recorded = recording.tables.frame(frame).name;
            let name = recording.symbols.name(frame).unwrap_or(recorded);
            recording.tables.string(name).to_owned()
        })
        .collect()
}

/// Names by a file.
pub fn by_file(map: &MapFile, names: &[&str]) -> Vec<String> {
    applied(MapSource::File(map), names)
}

/// Names by the packets of a file.
pub fn by_packets(map: &MapFile, names: &[&str]) -> Vec<String> {
    let mut bytes = Vec::new();
    let mut writer = MapWriter::new(PACKAGE, &mut bytes);
    let written = map.entries(|entry| -> io::Result<()> {
        match entry {
            Entry::Class {
                obfuscated,
                original,
            } => writer.class(obfuscated, original),
            Entry::Field {
                obfuscated,
                original,
            } => writer.field(obfuscated, &original),
            Entry::Method {
                obfuscated,
                original,
                lines,
            } => writer.method(obfuscated, &original, lines),
        }
    });
    written
        .and_then(|()| writer.finish())
        .expect("memory takes it");
    let trace = Surveyed::read(Box::new(Cursor::new(bytes))).expect("memory can be read");
    let map = trace
        .name_maps()
        .get(PACKAGE)
        .expect("the map of the package");
    applied(MapSource::Packets(map), names)
}
