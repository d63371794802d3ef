//! Inputs of any kind, symbols, mapping files, packets of a Java runtime.

use android_hprof::records::Header;
use heaptap_base::bytes::Bytes;
use heaptap_capture::jdwp::{Allocations, Packet};
use heaptap_input::{Kind, TextInput};
use heaptap_symbols::deobfuscate::{Entry, FieldType, MapFile, Retracer};
use heaptap_symbols::symbolize::file::{Alone, SymbolFile, identify};
use perfetto_heap::Trace;
use std::convert::Infallible;
use std::io::Read as _;
use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;

/// Bytes as a mapping file: indexed, read class by class, and asked for frames with and without
/// lines, as far as that has ends.
pub fn mapping(bytes: &[u8]) {
    const CLASSES: usize = 200;
    const METHODS: usize = 20;
    let Ok(map) = MapFile::from_bytes(Bytes::from(bytes.to_vec()), Path::new("fuzz")) else {
        return;
    };
    let mut classes: Vec<(String, Vec<(String, u32)>)> = Vec::new();
    let Ok(()) = map.entries(|entry| -> Result<(), Infallible> {
        match entry {
            Entry::Class { obfuscated, .. } => classes.push((obfuscated.to_owned(), Vec::new())),
            Entry::Field { .. } => {}
            Entry::Method {
                obfuscated, lines, ..
            } => {
                let (_, methods) = classes
                    .last_mut()
                    .expect("a class comes before its methods");
                let line = lines.obfuscated_end.unwrap_or(7);
                methods.push((obfuscated.to_owned(), line));
            }
        }
        Ok(())
    });
    let retracer = Retracer::new(&map);
    let mut outline_line = None;
    for (class, methods) in classes.iter().take(CLASSES) {
        assert!(
            retracer.class(class).is_some(),
            "a class that was given is found"
        );
        retracer.type_name(&format!("{class}[]"));
        for (method, line) in methods.iter().take(METHODS) {
            retracer.field(class, method, FieldType::Object);
            let frame = retracer.frame(class, method, Some(*line), outline_line);
            outline_line = frame.outline_line;
            retracer.frame(class, method, None, None);
        }
    }
}

/// Bytes as any input: detected and unpacked.
pub fn input(bytes: &[u8]) {
    text(bytes);
    if let Ok(dump) = heaptap_input::open_hprof_stream(bytes, "fuzz") {
        let _ = Header::read(&dump.bytes);
    }
    let _ = heaptap_input::open_java_stream(bytes, "fuzz");
    if let Ok(traces) = heaptap_input::open_stream(bytes, "fuzz") {
        for trace in traces {
            let _ = Trace::open(trace.source);
        }
    }
}

/// Bytes as a text: its stream is bounded, and begins as its head.
fn text(bytes: &[u8]) {
    const MAX_COUNT: u64 = 1 << 20;
    let Ok(mut input) = TextInput::of_stream(bytes, "fuzz") else {
        return;
    };
    let is_zip = input.kind() == Kind::Zip;
    let head = input.head().to_vec();
    if let Ok(Some(mut text)) = input.text(MAX_COUNT) {
        let mut read = Vec::new();
        text.read_to_end(&mut read).expect("memory can be read");
        assert!(is_zip || read.starts_with(&head) || text.is_cut());
        // Two bytes of UTF-16 are at most three of UTF-8.
        assert!(read.len() as u64 <= MAX_COUNT / 2 * 3 || bytes.len() as u64 > MAX_COUNT);
    }
    let input = TextInput::of_stream(bytes, "fuzz").expect("it opened before");
    let _ = input.whole(MAX_COUNT);
}

/// Bytes as an archive that symbols are looked for in: every library in it is unpacked and
/// identified.
pub fn symbols_zip(bytes: &[u8]) {
    let archive = Bytes::from(bytes.to_vec());
    let Ok(libraries) = heaptap_symbols::symbolize::find::libraries_in(&archive) else {
        return;
    };
    for (_, library) in libraries {
        if let Ok(library) = library {
            let _ = identify(&library);
        }
    }
}

/// Bytes as a symbol file: identified, opened, and asked for addresses all over it.
pub fn symbol_file(bytes: &[u8]) {
    let bytes = Bytes::from(bytes.to_vec());
    let facts = identify(&bytes);
    let Ok(file) = SymbolFile::open(bytes, Arc::new(Alone)) else {
        assert!(facts.is_err(), "what is identified can be opened");
        return;
    };
    file.svma(0x1234, 0x1000, 0);
    let mut addresses: Vec<u64> = (0..0x8000).step_by(37).collect();
    addresses.extend((0x20_0000..0x20_4000).step_by(101));
    file.lookup(&addresses, NonZero::<usize>::MIN, &mut |at, lines| {
        assert!(at < addresses.len() && !lines.is_empty());
    });
    for note in file.notes() {
        assert!(!note.to_string().is_empty());
    }
}

/// Bytes as a packet of a Java runtime, and as its list of recent allocations.
pub fn java_allocations(bytes: &[u8]) {
    assert_eq!(Packet::read(bytes).is_some(), bytes.len() >= 11);
    let Ok(read) = Allocations::read(bytes) else {
        return;
    };
    let mut frames = 0;
    for entry in read.entries() {
        let _ = read.class_of(entry);
        frames += read.stack_of(entry).count();
    }
    assert!(frames * 8 + read.entries().len() * 9 + read.unread() <= bytes.len());
}
