//! Facts of an ELF file that decide whether a library can be loaded into a program. Reads headers,
//! the dynamic section and symbol versions only; no size of the file decides an allocation beyond
//! the file's own size.

use std::collections::BTreeSet;

use object::elf;
use object::elf::{FileHeader32, FileHeader64};
use object::endian::Endianness;
use object::read::elf::{Dyn as _, FileHeader, ProgramHeader as _};

/// Facts of an ELF file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ElfFacts {
    pub(super) bits: u8,
    pub(super) machine: u16,
    /// `ET_EXEC`, `ET_DYN`, …
    pub(super) kind: u16,
    /// End of the last part of the file that is loaded.
    pub(super) loaded_bytes: u64,
    /// Path of the dynamic linker; `None` for libraries and static programs.
    pub(super) interpreter: Option<String>,
    /// Names of the needed libraries.
    pub(super) needed: Vec<String>,
    /// Needed versions of the C library, such as `GLIBC_2.34`.
    pub(super) version_needs: BTreeSet<String>,
    /// Versions that the file defines.
    pub(super) versions: BTreeSet<String>,
}

/// Returns the facts of a file; `None` if it is not an ELF file.
///
/// # Errors
/// Returns an error if the file begins like an ELF file, and its headers contradict its size.
pub(super) fn read(bytes: &[u8]) -> Option<Result<ElfFacts, String>> {
    if !bytes.starts_with(&elf::ELFMAG) {
        return None;
    }
    let facts = match bytes.get(4) {
        Some(&class) if class == elf::ELFCLASS32.0 => facts::<FileHeader32<Endianness>>(bytes, 32),
        Some(&class) if class == elf::ELFCLASS64.0 => facts::<FileHeader64<Endianness>>(bytes, 64),
        _ => return Some(Err("its class is neither 32 nor 64 bits".to_owned())),
    };
    Some(facts)
}

fn facts<H: FileHeader<Endian = Endianness>>(bytes: &[u8], bits: u8) -> Result<ElfFacts, String> {
    let facts = parse::<H>(bytes, bits).map_err(|error| error.to_string())?;
    if facts.loaded_bytes > bytes.len() as u64 {
        // It would load, and crash once the missing part is touched.
        let missing = facts.loaded_bytes - bytes.len() as u64;
        return Err(format!("the last {missing} bytes are missing"));
    }
    Ok(facts)
}

fn parse<H: FileHeader<Endian = Endianness>>(bytes: &[u8], bits: u8) -> object::Result<ElfFacts> {
    let header = H::parse(bytes)?;
    let endian = header.endian()?;
    let (mut interpreter, mut loaded_bytes) = (None, 0);
    for segment in header.program_headers(endian, bytes)? {
        if let Some(path) = segment.interpreter(endian, bytes)? {
            interpreter = Some(text(path));
        }
        let (start, size) = segment.file_range(endian);
        if segment.p_type(endian) == elf::PT_LOAD {
            loaded_bytes = loaded_bytes.max(start.saturating_add(size));
        }
    }
    let mut facts = ElfFacts {
        bits,
        machine: header.e_machine(endian).0,
        kind: header.e_type(endian).0,
        interpreter,
        loaded_bytes,
        ..ElfFacts::default()
    };
    if loaded_bytes > bytes.len() as u64 {
        return Ok(facts);
    }
    let sections = header.sections(endian, bytes)?;
    if let Some((entries, link)) = sections.dynamic(endian, bytes)? {
        let strings = sections.strings(endian, bytes, link)?;
        for entry in entries {
            if entry.d_tag(endian) == elf::DT_NEEDED {
                facts.needed.push(text(entry.string(endian, strings)?));
            }
        }
    }
    if let Some((mut needs, link)) = sections.gnu_verneed(endian, bytes)? {
        let strings = sections.strings(endian, bytes, link)?;
        while let Some((need, mut versions)) = needs.next()? {
            if !text(need.file(endian, strings)?).starts_with("libc.so") {
                continue;
            }
            while let Some(version) = versions.next()? {
                facts
                    .version_needs
                    .insert(text(version.name(endian, strings)?));
            }
        }
    }
    if let Some((mut definitions, link)) = sections.gnu_verdef(endian, bytes)? {
        let strings = sections.strings(endian, bytes, link)?;
        while let Some((_, mut names)) = definitions.next()? {
            if let Some(name) = names.next()? {
                facts.versions.insert(text(name.name(endian, strings)?));
            }
        }
    }
    Ok(facts)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
