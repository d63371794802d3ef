//! Prints the heaps that a file or directory contains, in any compression.
//!
//! ```console
//! $ cargo run -p heaptap-input --example contents -- fixtures/conversions/c_cont_bundle.pftrace
//! ```
#![allow(clippy::print_stdout, reason = "an example prints")]

use heaptap_input::{HeapSource, ImportError, open_heaps};
use std::path::Path;

fn contents(path: &Path) -> Result<String, ImportError> {
    Ok(match open_heaps(path)? {
        HeapSource::Traces(traces) => {
            let lines = traces.iter().map(|trace| format!("trace {}\n", trace.name));
            lines.collect()
        }
        HeapSource::Pprofs(pprofs) => format!("{} pprofs\n", pprofs.len()),
        HeapSource::Hprofs(_) => "heap dumps (HPROF)\n".to_owned(),
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: contents FILE")?;
    print!("{}", contents(path.as_ref())?);
    Ok(())
}

#[test]
fn packed_files_are_recognized() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let of = |path: &str| contents(&fixtures.join(path)).unwrap();
    assert_eq!(of("hprof/android-a.hprof.gz"), "heap dumps (HPROF)\n");
    assert_eq!(of("conversions/c_cont"), "11 pprofs\n");
    assert!(of("conversions/c_cont_bundle.pftrace").starts_with("trace "));
}
