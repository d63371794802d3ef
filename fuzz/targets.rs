//! What is fuzzed: the whole way of a hostile file. Shared by the fuzz targets and by
//! `tests/fuzz_corpus.rs`, which replays their corpora with a stable compiler.

use heaptap::app::maps::Maps;
use heaptap::app::names::NameOptions;
use heaptap::bytes::Bytes;
use heaptap::deobfuscate::{AppFrame, Entry, FieldType, MapFile, Retracer};
use heaptap::export::gzip::Gzip;
use heaptap::export::pprof::{Pprof, PprofOptions};
use heaptap::symbolize::file::{Alone, SymbolFile, identify};
use heaptap::trace::{DumpScanner, Surveyed, Trace, TraceError, read_packages};
use std::convert::Infallible;
use std::io::Cursor;
use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;

/// Bytes as a trace: decoded, encoded, compressed; and as one that is still being written.
pub fn trace(bytes: &[u8]) {
    let Ok(mut trace) = Surveyed::read(Box::new(Cursor::new(bytes.to_vec()))) else {
        return;
    };
    let _ = Maps::open_what_opens(&NameOptions::default()).name(&mut trace);
    let mut trace = trace.seal();
    let pprof = Pprof::new(trace.recording().clone(), PprofOptions::default());
    let mut gzip = Gzip::default();
    let _ = trace.read_dumps(|dump| -> Result<(), TraceError> {
        gzip.compress(&pprof.encode(&dump, &[]));
        Ok(())
    });
    read_packages(bytes);
    let mut scanner = DumpScanner::default();
    for piece in bytes.chunks(100) {
        scanner.push(piece);
    }
}

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
    let mut frames = Vec::new();
    for (class, methods) in classes.iter().take(CLASSES) {
        assert!(
            retracer.class(class).is_some(),
            "a class that was given is found"
        );
        retracer.type_name(&format!("{class}[]"));
        for (method, line) in methods.iter().take(METHODS) {
            assert!(!retracer.method(class, method).is_empty());
            retracer.method_with_descriptor(class, method, "(I)V");
            retracer.field(class, method, FieldType::Object);
            retracer.frame(class, method, Some(*line));
            retracer.frame(class, method, None);
            frames.push(AppFrame {
                class,
                method,
                line: Some(*line),
            });
        }
    }
    retracer.stack(Some("a"), &frames);
}

/// Bytes as any input: detected and unpacked.
pub fn input(bytes: &[u8]) {
    if let Ok(traces) = heaptap::import::open_stream(bytes, "fuzz") {
        for trace in traces {
            let _ = Trace::open(trace.source);
        }
    }
}

/// Bytes as an archive that symbols are looked for in: every library in it is unpacked and
/// identified.
pub fn symbols_zip(bytes: &[u8]) {
    let archive = Bytes::from(bytes.to_vec());
    let Ok(libraries) = heaptap::symbolize::find::libraries_in(&archive) else {
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
