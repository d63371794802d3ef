//! Interned strings as raw bytes, before their use is known. The tables have the final names of the
//! profile.

use heaptap_model::profile::index::{Index, Seed};
use heaptap_model::profile::interned::span;
use heaptap_model::profile::{StringId, Tables};

/// Name of a string that no frame has used.
const UNUSED: StringId = StringId(u32::MAX);

/// Interned raw byte strings; ID 0 is the empty one.
#[derive(Debug)]
pub(super) struct RawStrings {
    seed: Seed,
    index: Index,
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Those that were used, in the tables; can be shorter than `ends`.
    names: Vec<StringId>,
}

impl Default for RawStrings {
    fn default() -> Self {
        let mut strings = RawStrings {
            seed: Seed::default(),
            index: Index::default(),
            bytes: Vec::new(),
            ends: Vec::new(),
            names: Vec::new(),
        };
        strings.intern(b"");
        strings
    }
}

impl RawStrings {
    pub(super) const EMPTY: u32 = 0;

    pub(super) fn intern(&mut self, text: &[u8]) -> u32 {
        let next = u32::try_from(self.ends.len()).expect("fewer strings than bytes in memory");
        let (bytes, ends) = (&self.bytes, &self.ends);
        let (id, there) = self
            .index
            .find_or_insert(self.seed.bytes(text), next, |id| {
                bytes[span(ends, id)] == *text
            });
        if !there {
            self.bytes.extend_from_slice(text);
            self.ends.push(self.bytes.len());
        }
        id
    }

    pub(super) fn get(&self, id: u32) -> &[u8] {
        &self.bytes[span(&self.ends, id)]
    }

    /// Returns the ID of a string in the tables. Each is added once, because many frames can share a
    /// long name.
    pub(super) fn name(&mut self, id: u32, tables: &mut Tables) -> StringId {
        if self.names.len() <= id as usize {
            self.names.resize(self.ends.len(), UNUSED);
        }
        if self.names[id as usize] == UNUSED {
            self.names[id as usize] = tables.intern_bytes(self.get(id));
        }
        self.names[id as usize]
    }
}
