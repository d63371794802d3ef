//! What the cache keeps of a library's answers: the addresses that were asked for, known or
//! not, and the files that were asked. Owns the key and the form; where it lies is
//! [`crate::symbolize::cache`]'s.
//!
//! The key is a digest of all that the answers depend on: the version of their reader, build ID, where the code lies in the
//! file and the unwinder's load bias, and the identity (path, size, time) of every candidate in
//! its order. So a better file, a changed one, or one that is gone asks anew.

use super::lines::{AddressLines, Input, put};
use crate::symbolize::cache::READER;
use crate::symbolize::find::Candidate;
use crate::symbolize::library::Library;
use sha2::{Digest as _, Sha256};

/// Changes with the form.
const FORMAT: u32 = 2;
/// A library with more addresses keeps those of the last recording alone.
const MOST: usize = 1 << 20;

/// Answers as they are kept.
pub(super) struct Stored {
    /// Positions among the candidates, of the files that were asked, and whether each has
    /// unwind information.
    pub(super) files: Vec<(u8, bool)>,
    /// Sorted, each once.
    pub(super) addresses: Vec<u64>,
    /// Parallel to the addresses.
    pub(super) lines: AddressLines,
}

/// Under which the answers for a library are kept.
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
    /// As bytes.
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

    /// From bytes; `None` where they are something else.
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

    /// What was known before and what was found now, as one; `lines` are those of the library's
    /// own addresses.
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
