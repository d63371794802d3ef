//! Appends one recording to a store, twice.
//!
//! ```console
//! $ cargo run -p heaptap-archive --example append -- store
//! ```

use heaptap_archive::{Dump, Recording, Store};
use std::io::{self, Write as _};
use std::path::Path;

fn append(directory: &Path) -> Result<String, heaptap_archive::StoreError> {
    let recording = Recording {
        sha256: "5e".repeat(32),
        app: "com.example.app".to_owned(),
        day: "2026-01-31".to_owned(),
        build: "42".to_owned(),
        device_class: "default".to_owned(),
        dumps: vec![Dump {
            heap: "libc.malloc".to_owned(),
            kind: "cumulative".to_owned(),
            live: Some((4096, 1)),
            ..Dump::default()
        }],
        ..Recording::default()
    };
    let mut store = Store::open(directory)?;
    let first = store.append(&recording)?;
    let again = store.append(&recording)?;
    Ok(format!("appended: {first}, again: {again}"))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args().nth(1).unwrap_or("store".to_owned());
    writeln!(io::stdout().lock(), "{}", append(Path::new(&directory))?)?;
    Ok(())
}

#[test]
fn the_second_time_adds_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let text = append(&directory.path().join("store")).unwrap();
    assert_eq!(text, "appended: true, again: false");
}
