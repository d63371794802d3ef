//! Identification of symbol files from their headers, without reading sections.
//!
//! | format | recognized by | identity |
//! |---|---|---|
//! | ELF | `\x7fELF` | GNU build ID, from `PT_NOTE`, then from `SHT_NOTE` |
//! | Breakpad | `MODULE ` | the debug ID of its `MODULE` line, the build ID of `INFO CODE_ID` |

use super::breakpad;
use super::elf::{Elf, Section};
use super::error::FileError;
use super::facts::{DebugLink, Facts, Knowledge, Supplement};
use heaptap_base::units::BuildId;
use object::elf;

/// Returns the facts about a file. Reads only headers and notes.
///
/// # Errors
/// Returns an error if it is not a symbol file, or if its headers are damaged.
pub fn identify(bytes: &[u8]) -> Result<Facts, FileError> {
    if let Some(module) = breakpad::Module::read(bytes) {
        return Ok(module.facts());
    }
    let elf = Elf::read(bytes)?;
    Ok(elf.facts(bytes))
}

impl Elf {
    pub(super) fn facts(&self, bytes: &[u8]) -> Facts {
        let has = |name: &str| self.section(bytes, name).is_some();
        let has_segment = |kind| self.segments.iter().any(|segment| segment.kind == kind);
        Facts {
            build_id: self.build_id(bytes),
            debug_id: None,
            knowledge: self.knowledge(bytes),
            debug_link: self
                .section(bytes, ".gnu_debuglink")
                .and_then(|section| read_debug_link(&bytes[section.file.clone()])),
            supplement: self
                .section(bytes, ".gnu_debugaltlink")
                .and_then(|section| read_supplement(&bytes[section.file.clone()])),
            has_unwind: has_segment(elf::PT_GNU_EH_FRAME)
                || has_segment(elf::PT_ARM_EXIDX)
                || [".eh_frame", ".debug_frame", ".zdebug_frame", ".ARM.exidx"]
                    .into_iter()
                    .any(has),
        }
    }

    fn knowledge(&self, bytes: &[u8]) -> Knowledge {
        let debug = |name: &str| {
            let plain = self.section(bytes, &format!(".debug_{name}"));
            plain.or_else(|| self.section(bytes, &format!(".zdebug_{name}")))
        };
        if let Some(info) = debug("info") {
            let whole = !is_skeleton(info, bytes);
            return if whole {
                Knowledge::Dwarf
            } else {
                Knowledge::Lines
            };
        }
        // The first symbol is empty by definition.
        let first = if self.is_64 { 24 } else { 16 };
        let has_symbols = |kind| {
            let section = self.section_of(kind);
            section.is_some_and(|section| section.file.len() > first)
        };
        if has_symbols(elf::SHT_SYMTAB) || self.section(bytes, ".gnu_debugdata").is_some() {
            Knowledge::Symtab
        } else if has_symbols(elf::SHT_DYNSYM) {
            Knowledge::Dynsym
        } else {
            Knowledge::Nothing
        }
    }
}

/// Returns whether `.debug_info` begins with a skeleton unit of DWARF 5 (7.5.1.2), so that
/// functions are in `.dwo` files. A DWARF 4 skeleton cannot be recognized by its header and does
/// not count.
fn is_skeleton(info: &Section, bytes: &[u8]) -> bool {
    const DW_UT_SKELETON: u8 = 4;
    let header = &bytes[info.file.clone()];
    !info.is_compressed() && header.get(4..7) == Some(&[5, 0, DW_UT_SKELETON])
}

/// Reads a name, padded to 4 bytes, and the CRC-32 of that file.
fn read_debug_link(section: &[u8]) -> Option<DebugLink> {
    let end = section.iter().position(|byte| *byte == 0)?;
    let crc = (end + 1).next_multiple_of(4);
    let crc = section.get(crc..crc + 4)?.try_into().ok()?;
    Some(DebugLink {
        name: String::from_utf8_lossy(&section[..end]).into_owned(),
        crc: u32::from_le_bytes(crc),
    })
}

/// Reads a path and the build ID of that file.
fn read_supplement(section: &[u8]) -> Option<Supplement> {
    let end = section.iter().position(|byte| *byte == 0)?;
    Some(Supplement {
        path: String::from_utf8_lossy(&section[..end]).into_owned(),
        build_id: BuildId(section[end + 1..].to_vec()),
    })
}
