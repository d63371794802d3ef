//! What an ELF file says of itself: build ID and how much it knows. Stands in for the reader of
//! symbol files until that is there.

use crate::units::BuildId;
use object::read::elf::FileHeader as _;
use object::{Object as _, ObjectSection as _};
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::sync::Arc;

/// Bytes that many may hold and read at once. A clone is cheap.
#[derive(Debug, Clone)]
pub struct Bytes(Arc<memmap2::Mmap>);

impl Bytes {
    /// Maps a regular file.
    ///
    /// # Errors
    /// Where the system cannot.
    pub fn map(file: &File) -> io::Result<Bytes> {
        // SAFETY: read only, and such files are replaced by renaming, not written into.
        let map = unsafe { memmap2::Mmap::map(file)? };
        Ok(Bytes(Arc::new(map)))
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// How much a file knows, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Knowledge {
    /// Exported names.
    Dynsym,
    /// All names: `.symtab` or `.gnu_debugdata`.
    Symtab,
    /// Lines too, but no inlined calls.
    Lines,
    /// Everything.
    Dwarf,
}

/// What a file says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Empty where there is none.
    pub build_id: BuildId,
    /// How much it knows.
    pub knowledge: Knowledge,
}

/// A file that cannot be used for symbols.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileError {
    /// No ELF.
    Unknown,
    /// Its headers contradict the file or each other.
    Damaged(String),
}

/// Reads headers, the build ID and the names of sections.
///
/// # Errors
/// Where it is no ELF or damaged.
pub fn identify(bytes: &[u8]) -> Result<Facts, FileError> {
    if !bytes.starts_with(b"\x7fELF") {
        return Err(FileError::Unknown);
    }
    let damaged = |error: object::Error| FileError::Damaged(error.to_string());
    if bytes.get(4) == Some(&1) {
        object::elf::FileHeader32::<object::Endianness>::parse(bytes).map_err(damaged)?;
    }
    let file = object::File::parse(bytes).map_err(damaged)?;
    let build_id = file.build_id().map_err(damaged)?.unwrap_or_default();
    let holds = |name: &str| {
        let section = file.section_by_name(name);
        section.is_some_and(|s| s.size() > 0 && s.file_range().is_some())
    };
    let knowledge = if holds(".debug_info") || holds(".zdebug_info") {
        Knowledge::Dwarf
    } else if holds(".debug_line") {
        Knowledge::Lines
    } else if holds(".symtab") || holds(".gnu_debugdata") {
        Knowledge::Symtab
    } else {
        Knowledge::Dynsym
    };
    let build_id = BuildId(build_id.to_vec());
    Ok(Facts {
        build_id,
        knowledge,
    })
}
