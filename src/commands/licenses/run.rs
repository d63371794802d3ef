//! Licenses of the software in the program: crates, C libraries in them, the standard library.
//! `packaging/licenses.py` writes them.

use std::io::{self, Read as _};

use serde::{Deserialize, Serialize};

/// JSON, compressed: the texts are 20 times as large.
static LICENSES: &[u8] = include_bytes!("licenses.json.gz");

/// Software in the program.
#[derive(Debug, Serialize, Deserialize)]
pub struct Part {
    /// Name of the crate or library.
    pub name: String,
    /// Version; empty if it depends on the compiler.
    pub version: String,
    /// SPDX expression.
    pub license: String,
    /// Indices into the texts.
    pub texts: Vec<usize>,
}

/// Document of `--json`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Licenses {
    /// By name.
    pub parts: Vec<Part>,
    /// Each text once.
    pub texts: Vec<String>,
}

/// Reads the licenses.
///
/// # Errors
/// Returns an error if the file in the program is damaged.
pub fn licenses() -> io::Result<Licenses> {
    let mut json = Vec::new();
    flate2::read::GzDecoder::new(LICENSES).read_to_end(&mut json)?;
    Ok(serde_json::from_slice(&json)?)
}
