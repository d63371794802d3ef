//! Names of the symbol table, demangled in batches while another thread decompresses sections.

use super::super::symtab::Symbol;
use heaptap_model::names::demangle;
use std::sync::OnceLock;

/// Names of the symbols of a lookup, demangled.
pub(super) struct Demangled<'run> {
    /// In the order of their places, each once.
    names: Vec<&'run [u8]>,
    /// By batch of names.
    texts: Vec<OnceLock<Vec<Box<str>>>>,
}

impl<'run> Demangled<'run> {
    /// Number of names in a batch.
    const BATCH: usize = 64;

    pub fn new(symbols: &[Option<Symbol<'run>>]) -> Demangled<'run> {
        let mut names: Vec<&[u8]> = symbols.iter().flatten().map(|symbol| symbol.name).collect();
        names.sort_unstable_by_key(place);
        names.dedup_by_key(|name| place(name));
        let batches = names.len().div_ceil(Self::BATCH);
        Demangled {
            names,
            texts: (0..batches).map(|_| OnceLock::new()).collect(),
        }
    }

    /// Returns the number of batches.
    pub fn batches(&self) -> usize {
        self.texts.len()
    }

    /// Demangles the names of a batch.
    pub fn fill(&self, batch: usize) {
        if self.texts[batch].get().is_some() {
            return;
        }
        let names = self.names[batch * Self::BATCH..].iter().take(Self::BATCH);
        let text = |name: &&[u8]| Box::from(&*demangle(&String::from_utf8_lossy(name)));
        // Another thread might have filled it at the same time.
        let _ = self.texts[batch].set(names.map(text).collect());
    }

    /// Returns a demangled name; `None` if its batch was not filled.
    pub fn get(&self, name: &[u8]) -> Option<&str> {
        let at = self.names.binary_search_by_key(&place(&name), place).ok()?;
        let texts = self.texts[at / Self::BATCH].get()?;
        Some(&texts[at % Self::BATCH])
    }
}

/// Returns the place of a name in the symbol table: names of C++ are long and begin alike, so
/// comparing them takes longer.
fn place(name: &&[u8]) -> (usize, usize) {
    (name.as_ptr().addr(), name.len())
}
