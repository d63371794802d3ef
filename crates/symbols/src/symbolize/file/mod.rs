//! Symbol files: identification, and functions, files and lines for addresses. Reads ELF, DWARF,
//! symbol tables and Breakpad files; which file belongs to a library is decided elsewhere.
//!
//! ```text
//! identify(bytes) ──► Facts: build ID, machine, amount of information   (headers only)
//! SymbolFile::open(bytes, companions)
//!     .svma(rel_pc, offset, load_bias) ──► link-time address
//!     .lookup(addresses)               ──► SourceLines of each, innermost first
//!     .notes()                         ──► damaged and missing parts
//! ```
//!
//! Results match those of `llvm-symbolizer --inlines`: one frame for each inlined call, the name of
//! the outermost function from the symbol table, files as passed to the compiler.

mod answers;
mod bias;
mod breakpad;
mod companions;
mod debug_id;
mod dwarf;
mod elf;
mod error;
mod facts;
mod identify;
mod inflate;
mod notes;
mod sections;
mod symtab;

pub use answers::SourceLine;
pub use companions::{Alone, Companion, SiblingFiles, SupplementaryFiles, SupplementaryRef};
pub use debug_id::debug_id;
pub use error::FileError;
pub(super) use facts::is_build;
pub use facts::{DebugLink, Facts, Knowledge, Supplement};
pub use heaptap_base::bytes::Bytes;
pub use identify::identify;
pub use notes::Note;

use self::answers::{Answers, for_each};
use self::dwarf::DebugInfo;
use self::elf::Elf;
use self::notes::Notes;
use self::sections::{Allowance, read_mini_debuginfo};
use self::symtab::SymbolTables;
use ::object::elf::{SHT_DYNSYM, SHT_SYMTAB};
use std::num::NonZero;
use std::sync::{Arc, OnceLock};

/// Opened symbol file.
pub struct SymbolFile {
    facts: Facts,
    notes: Notes,
    kind: Kind,
}

enum Kind {
    Elf(Box<Library>),
    /// The text, and the lowest address of its functions, which is read when needed.
    Breakpad(Bytes, OnceLock<u64>),
}

/// ELF file with the data from its supplementary files.
struct Library {
    elf: Elf,
    symbols: SymbolTables,
    /// Debug information of the file or of its debug file.
    debug_info: Option<DebugInfo>,
    allowance: Allowance,
}

impl SymbolFile {
    /// Opens a file, and its debug file if it does not have debug information itself. Reads headers
    /// and decompresses `.gnu_debugdata`; the rest is read when needed.
    ///
    /// # Errors
    /// Returns an error if it is not a symbol file, or if its headers are damaged.
    pub fn open(
        bytes: Bytes,
        companions: Arc<dyn SupplementaryFiles>,
    ) -> Result<SymbolFile, FileError> {
        if let Some(module) = breakpad::Module::read(&bytes) {
            return Ok(SymbolFile {
                facts: module.facts(),
                notes: Notes::default(),
                kind: Kind::Breakpad(bytes, OnceLock::new()),
            });
        }
        let elf = Elf::read(&bytes)?;
        let facts = elf.facts(&bytes);
        let notes = Notes::default();
        let cut = elf.sections.iter().filter(|section| section.is_cut);
        for section in cut {
            let name = String::from_utf8_lossy(section.name(&bytes));
            notes.add(Note::damaged(&name, "extends beyond the end of the file"));
        }
        let allowance = Allowance::default();
        let named = find_debug_file(&facts, &*companions, &notes);
        let mut symbols = SymbolTables::default();
        let has_symtab = symbols.add(&bytes, &elf, SHT_SYMTAB)
            || named
                .as_ref()
                .is_some_and(|(named, elf)| symbols.add(&named.bytes, elf, SHT_SYMTAB));
        if !has_symtab {
            match read_mini_debuginfo(&bytes, &elf, &allowance) {
                Some(Ok(inner)) => match Elf::read(&inner) {
                    Ok(elf) => {
                        symbols.add(&inner, &elf, SHT_SYMTAB);
                    }
                    Err(error) => notes.add(Note::damaged(".gnu_debugdata", error)),
                },
                Some(Err(note)) => notes.add(note),
                None => {}
            }
            symbols.add(&bytes, &elf, SHT_DYNSYM);
        }
        let debug_info = match named {
            Some((named, elf)) => {
                let companions = vec![named.companions, companions];
                Some(DebugInfo::new(named.bytes, elf, companions, &notes))
            }
            None => (facts.knowledge >= Knowledge::Lines)
                .then(|| DebugInfo::new(bytes, elf.clone(), vec![companions], &notes)),
        };
        Ok(SymbolFile {
            facts,
            notes,
            kind: Kind::Elf(Box::new(Library {
                elf,
                symbols,
                debug_info,
                allowance,
            })),
        })
    }

    /// Returns the facts about the file.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Returns damaged and missing parts found so far; complete after [`SymbolFile::lookup`].
    pub fn notes(&self) -> Vec<Note> {
        self.notes.all()
    }

    /// Returns the link-time address of a frame's `rel_pc`. `offset` is the file offset of the
    /// mapped code in the ELF, `load_bias` the one that the unwinder used.
    ///
    /// Old unwinders used a load bias of 0 if the segment's address and its offset differ: the
    /// difference is added. If the file does not allow this, `rel_pc` stays unchanged. For a Breakpad
    /// file the address counts from the image base.
    pub fn svma(&self, rel_pc: u64, offset: u64, load_bias: u64) -> u64 {
        match &self.kind {
            Kind::Elf(library) => bias::svma(&library.elf, rel_pc, offset, load_bias),
            Kind::Breakpad(bytes, lowest) => {
                let lowest = || *lowest.get_or_init(|| breakpad::lowest_address(bytes));
                rel_pc.saturating_sub(breakpad::image_base(load_bias, lowest))
            }
        }
    }

    /// Looks up sorted addresses (from [`SymbolFile::svma`]) with up to `threads` threads. Calls
    /// `sink` for each known address, in order, with its index and its lines, innermost first.
    pub fn lookup(
        &self,
        addresses: &[u64],
        threads: NonZero<usize>,
        sink: &mut dyn FnMut(usize, &[SourceLine<'_>]),
    ) {
        let answers = match &self.kind {
            Kind::Breakpad(bytes, _) => {
                let mut answers = Answers::default();
                breakpad::Index::build(bytes).lookup(addresses, &mut answers);
                vec![answers]
            }
            Kind::Elf(library) => library.lookup(addresses, threads, &self.notes),
        };
        for_each(&answers, sink);
    }
}

impl Library {
    fn lookup(&self, addresses: &[u64], threads: NonZero<usize>, notes: &Notes) -> Vec<Answers> {
        let symbols = self.symbols.lookup(addresses);
        if let Some(debug_info) = &self.debug_info {
            return debug_info.lookup(addresses, &symbols, &self.allowance, threads, notes);
        }
        let mut answers = Answers::default();
        for (at, symbol) in symbols.into_iter().enumerate() {
            if let Some(symbol) = symbol {
                let name = String::from_utf8_lossy(symbol.name);
                let file = String::from_utf8_lossy(symbol.file);
                answers.add_mangled(&name, &file, 0, 0);
            }
            answers.finish(at);
        }
        vec![answers]
    }
}

/// Finds the debug file of a stripped file.
fn find_debug_file(
    facts: &Facts,
    companions: &dyn SupplementaryFiles,
    notes: &Notes,
) -> Option<(Companion, Elf)> {
    let link = facts.debug_link.as_ref()?;
    if facts.knowledge >= Knowledge::Lines {
        return None;
    }
    let fits = |bytes: &Bytes| {
        let Ok(elf) = Elf::read(bytes) else {
            return false;
        };
        let build_id = elf.build_id(bytes);
        // If both files have build IDs, these decide; a checksum of a large file is slow.
        if build_id.is_empty() || facts.build_id.is_empty() {
            libdeflater::crc32(bytes) == link.crc
        } else {
            build_id == facts.build_id
        }
    };
    let found = companions.find(&SupplementaryRef::Debug(link), &fits);
    if found.is_none() {
        notes.add(Note::needs_debug_file(link));
    }
    let found = found?;
    let elf = Elf::read(&found.bytes).ok()?;
    Some((found, elf))
}

#[cfg(test)]
mod tests;
