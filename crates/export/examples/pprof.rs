//! Writes each dump of a trace as a gzipped pprof.
//!
//! ```console
//! $ cargo run -p heaptap-export --example pprof -- fixtures/conversions/c_max.pftrace /tmp
//! $ go tool pprof -top /tmp/heap.7066.1.pb.gz
//! ```
#![allow(clippy::print_stdout, reason = "an example prints")]

use heaptap_export::gzip::Gzip;
use heaptap_export::pprof::{Pprof, PprofOptions};
use heaptap_model::profile::DumpNumbers;
use perfetto_heap::{Source, Trace, TraceError};
use std::path::Path;
use std::sync::Arc;

/// Returns the names and bytes of the files.
fn pprofs(source: Box<dyn Source>) -> Result<Vec<(String, Vec<u8>)>, TraceError> {
    let mut trace = Trace::open(source)?;
    let pprof = Pprof::new(Arc::clone(trace.recording()), PprofOptions::default());
    let (mut numbers, mut gzip, mut files) = (DumpNumbers::default(), Gzip::default(), Vec::new());
    trace.read_dumps(|dump| {
        let number = numbers.next(dump.pid, &dump.heap);
        let name = format!("heap.{}.{number}.pb.gz", dump.pid);
        files.push((name, gzip.compress(&pprof.encode(&dump, &[]))));
        Ok::<_, TraceError>(())
    })?;
    Ok(files)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let usage = "usage: pprof TRACE DIR";
    let (trace, directory) = (args.next().ok_or(usage)?, args.next().ok_or(usage)?);
    for (name, bytes) in pprofs(Box::new(std::fs::File::open(trace)?))? {
        let path = Path::new(&directory).join(name);
        std::fs::write(&path, &bytes)?;
        println!("{} ({} bytes)", path.display(), bytes.len());
    }
    Ok(())
}

#[test]
fn each_dump_is_a_file() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fixtures/conversions/c_cont.pftrace"
    );
    let trace = std::fs::File::open(path).unwrap();
    let files = pprofs(Box::new(trace)).unwrap();
    assert_eq!(files.len(), 11);
    assert_eq!(files[0].0, "heap.2050.1.pb.gz");
}
