//! Prints the findings in the manifest of a recording.
//!
//! ```console
//! $ heaptap demo -o demo
//! $ cargo run -p heaptap-results --example findings -- demo
//! ```
#![allow(clippy::print_stdout, reason = "an example prints")]

use std::path::Path;

use heaptap_results::manifest::{Manifest, ManifestError};

fn findings(directory: &Path) -> Result<String, ManifestError> {
    let manifest = Manifest::read(directory)?;
    let mut text = format!("{} findings\n", manifest.warnings.len());
    for warning in manifest.warnings {
        text += &format!("{}: {}\n", warning.kind, warning.message);
    }
    Ok(text)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: findings DIRECTORY")?;
    print!("{}", findings(path.as_ref())?);
    Ok(())
}

#[test]
fn what_has_no_manifest_has_a_reason() {
    assert!(findings("no-such-directory".as_ref()).is_err());
}
