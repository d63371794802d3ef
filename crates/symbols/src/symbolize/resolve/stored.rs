//! Cached results of a library: all requested addresses, known or not, and the files used. Defines
//! the key and the form; [`crate::symbolize::cache`] stores them.
//!
//! The key is a digest of everything that the results depend on. These are the version of the
//! reader, the build ID, the location of the code in the file, and the unwinder's load bias. The
//! identity (path, size, time) of every candidate in order is included, too. So a better, changed
//! or deleted file leads to a new lookup.

use super::lines::{AddressLines, Input};
use crate::symbolize::cache::READER;
use crate::symbolize::find::Candidate;
use crate::symbolize::library::Library;
use heaptap_model::varint::put;
use sha2::{Digest as _, Sha256};

/// Format version. Bump it when the form changes.
const FORMAT: u32 = 2;
/// Maximum number of addresses that are merged; beyond it only those of the last recording are
/// kept.
const MOST: usize = 1 << 20;

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
        let mut out = Vec::new();
        put(&mut out, self.files.len() as u64);
        for &(candidate, has_unwind) in &self.files {
            out.extend([candidate, u8::from(has_unwind)]);
        }
        put(&mut out, self.addresses.len() as u64);
        let mut last = 0;
        for &address in &self.addresses {
            put(&mut out, address.wrapping_sub(last));
            last = address;
        }
        self.lines.encode(&mut out);
        out
    }

    /// Decodes the results; `None` for other input.
    pub(super) fn decode(bytes: &[u8]) -> Option<Stored> {
        let mut input = Input(bytes);
        let mut files = Vec::new();
        for _ in 0..input.number()? {
            let &[candidate, has_unwind] = input.bytes(2)? else {
                return None;
            };
            files.push((candidate, has_unwind != 0));
        }
        let mut addresses = Vec::new();
        let mut last = 0u64;
        for at in 0..input.number()? {
            let address = last.wrapping_add(input.number()?);
            if at > 0 && address <= last {
                return None;
            }
            addresses.push(address);
            last = address;
        }
        let lines = AddressLines::decode(&mut input, addresses.len())?;
        input.0.is_empty().then_some(Stored {
            files,
            addresses,
            lines,
        })
    }

    /// Merges cached results with new ones; `lines` are those of the library's own addresses.
    pub(super) fn merged(
        before: Option<Stored>,
        library: &Library,
        lines: &AddressLines,
        files: Vec<(u8, bool)>,
    ) -> Stored {
        let fits = |b: &Stored| b.addresses.len() + library.addresses.len() <= MOST;
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
