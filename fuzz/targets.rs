//! What is fuzzed: the whole way of a hostile file. Shared by the fuzz targets and by
//! `tests/fuzz_corpus.rs`, which replays their corpora with a stable compiler.

use heaptap::app::deobfuscation::Maps;
use heaptap::app::names::NameOptions;
use heaptap::export::gzip::Gzip;
use heaptap::export::pprof::{Pprof, PprofOptions};
use heaptap::trace::{DumpScanner, Surveyed, Trace, TraceError, read_packages};
use std::io::Cursor;

/// Bytes as a trace: decoded, encoded, compressed; and as one that is still being written.
pub fn trace(bytes: &[u8]) {
    let Ok(mut trace) = Surveyed::read(Box::new(Cursor::new(bytes.to_vec()))) else {
        return;
    };
    let _ = Maps::open_what_opens(&NameOptions::default()).name(&mut trace);
    let trace = trace.seal();
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
    let archive = heaptap::symbolize::file::Bytes::from(bytes.to_vec());
    let Ok(libraries) = heaptap::symbolize::find::libraries_in(&archive) else {
        return;
    };
    for (_, library) in libraries {
        if let Ok(library) = library {
            let _ = heaptap::symbolize::file::identify(&library);
        }
    }
}
