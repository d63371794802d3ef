//! Cached results of a library: all requested addresses, known or not, and the files used. Defines
//! the key and the form; [`crate::symbolize::cache`] stores them.
//!
//! The key is a digest of everything that the results depend on. These are the version of the
//! reader, the build ID, the location of the code in the file, and the unwinder's load bias. The
//! identity (path, size, time) of every candidate in order is included, too. So a better, changed
//! or deleted file leads to a new lookup.

use super::lines::{AddressLines, Line, Row};
use crate::symbolize::cache::READER;
use crate::symbolize::find::Candidate;
use crate::symbolize::library::Library;
use sha2::{Digest as _, Sha256};

/// Format version. Bump it when the form changes.
const FORMAT: u32 = 3;
/// Maximum number of addresses that are merged; beyond it only those of the last recording are
/// kept.
const MAX_COUNT: usize = 1 << 20;

/// Cached results.
pub(super) struct Stored {
    /// Positions of the used files in the candidates, and whether each has unwind data.
    pub(super) files: Vec<(u8, bool)>,
    /// Sorted, without duplicates.
    pub(super) addresses: Vec<u64>,
    /// Parallel to the addresses.
    pub(super) lines: AddressLines,
}

/// Returns the cache key for the results of a library.
pub(super) fn key(library: &Library, candidates: &[Candidate]) -> [u8; 32] {
    let mut digest = Sha256::new();
    digest.update(FORMAT.to_le_bytes());
    digest.update(READER);
    digest.update([0]);
    digest.update((library.build_id.0.len() as u64).to_le_bytes());
    digest.update(&library.build_id.0);
    digest.update(library.offset.to_le_bytes());
    digest.update(library.load_bias.to_le_bytes());
    for candidate in candidates {
        digest.update(candidate.identity());
    }
    digest.finalize().into()
}

impl Stored {
    /// Encodes the results.
    pub(super) fn encode(&self) -> Vec<u8> {
        let parts = (&self.files, &self.addresses, self.lines.parts());
        postcard::to_stdvec(&parts).expect("numbers and texts can be encoded")
    }

    /// Decodes the results; `None` for other input.
    pub(super) fn decode(bytes: &[u8]) -> Option<Stored> {
        type Parts<'a> = (Vec<&'a str>, Vec<Line>, Vec<Row>);
        let (files, addresses, parts): (_, Vec<u64>, Parts<'_>) =
            postcard::from_bytes(bytes).ok()?;
        let (texts, lines, rows) = parts;
        let is_whole = addresses.is_sorted_by(|a, b| a < b) && rows.len() == addresses.len();
        Some(Stored {
            files,
            addresses,
            lines: AddressLines::from_parts(&texts, lines, rows).filter(|_| is_whole)?,
        })
    }

    /// Merges cached results with new ones; `lines` are those of the library's own addresses.
    pub(super) fn merged(
        before: Option<Stored>,
        library: &Library,
        lines: &AddressLines,
        files: Vec<(u8, bool)>,
    ) -> Stored {
        let fits = |b: &Stored| b.addresses.len() + library.addresses.len() <= MAX_COUNT;
        let before = before.filter(fits);
        let old: &[u64] = before.as_ref().map_or(&[], |b| &b.addresses);
        let mut addresses = [old, &library.addresses].concat();
        addresses.sort_unstable();
        addresses.dedup();
        let mut merged = AddressLines::unknown(addresses.len());
        for (at, address) in addresses.iter().enumerate() {
            if let Ok(from) = library.addresses.binary_search(address) {
                merged.copy(at, lines, from);
            } else if let Some(before) = &before
                && let Ok(from) = before.addresses.binary_search(address)
            {
                merged.copy(at, &before.lines, from);
            }
        }
        Stored {
            files,
            addresses,
            lines: merged,
        }
    }
}
