//! What a symbol file is, cheaply: its headers are read, its sections are not.
//!
//! | format | known by | identity |
//! |---|---|---|
//! | ELF | `\x7fELF` | GNU build ID, from `PT_NOTE`, then from `SHT_NOTE` |
//! | Breakpad | `MODULE ` | the debug ID of its `MODULE` line, the build ID of `INFO CODE_ID` |

use super::breakpad;
use super::elf::{Elf, Section};
use super::error::FileError;
use heaptap_model::units::BuildId;
use object::elf;

/// How much a file may tell of an address, least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Knowledge {
    /// No symbols.
    Nothing,
    /// `.dynsym`: the functions that other libraries may call.
    Dynsym,
    /// `.symtab`, or the same in `.gnu_debugdata`: all functions, without files and lines.
    Symtab,
    /// Functions, files and lines without types: a Breakpad file, or the skeleton of split
    /// DWARF, whose inlined calls are in files of their own.
    Lines,
    /// `.debug_info`: inlined calls, files and lines.
    Dwarf,
}

/// The machine of an ELF file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Machine {
    /// 64-bit ARM.
    Arm64,
    /// 32-bit ARM, with Thumb.
    Arm,
    /// x86-64.
    X86_64,
    /// 32-bit x86.
    X86,
    /// RISC-V of 32 or 64 bits.
    Riscv,
    /// Another one, by its ELF number.
    Other(u16),
}

impl From<elf::Machine> for Machine {
    fn from(machine: elf::Machine) -> Machine {
        match machine {
            elf::EM_AARCH64 => Machine::Arm64,
            elf::EM_ARM => Machine::Arm,
            elf::EM_X86_64 => Machine::X86_64,
            elf::EM_386 => Machine::X86,
            elf::EM_RISCV => Machine::Riscv,
            other => Machine::Other(other.0),
        }
    }
}

/// What kind of file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// A library, a program, or what was split from one.
    Elf,
    /// A text file of Breakpad's `dump_syms`.
    Breakpad,
}

/// The debug file that an ELF file names in `.gnu_debuglink`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DebugLink {
    /// File name without folders.
    pub name: String,
    /// CRC-32 of the file's bytes.
    pub crc: u32,
}

/// The file of shared debug information (written by `dwz`) that an ELF file names in
/// `.gnu_debugaltlink`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Supplement {
    /// Its path, absolute or relative to the file that names it.
    pub path: String,
    /// Its build ID.
    pub build_id: BuildId,
}

/// What a symbol file says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// ELF or Breakpad.
    pub format: Format,
    /// The GNU build ID; empty where the file has none.
    pub build_id: BuildId,
    /// Breakpad's debug ID, of a Breakpad file: 33 or more characters of hex text.
    pub debug_id: Option<String>,
    /// The machine it was built for.
    pub machine: Machine,
    /// Whether addresses have 64 bits.
    pub is_64: bool,
    /// How much it may tell.
    pub knowledge: Knowledge,
    /// Whether it holds `.gnu_debugdata`: a symbol table in xz.
    pub has_mini_debuginfo: bool,
    /// The debug file that it names.
    pub debug_link: Option<DebugLink>,
    /// The dwz file that it names.
    pub supplement: Option<Supplement>,
    /// Whether the unwinder can walk through its code: `.eh_frame`, `.debug_frame` or
    /// `.ARM.exidx`. Without it callstacks end here.
    pub has_unwind: bool,
    /// Whether it has a loaded segment with code.
    pub is_executable: bool,
}

impl Facts {
    /// Whether this is the file of the build that a recording names: the same build ID, or, of
    /// a Breakpad file without one, the debug ID that it makes.
    pub fn is_build(&self, build_id: &BuildId) -> bool {
        if build_id.is_empty() {
            return false;
        }
        if !self.build_id.is_empty() && self.build_id == *build_id {
            return true;
        }
        let Some(debug_id) = &self.debug_id else {
            return false;
        };
        // Recordings may hold the debug ID itself, as text.
        debug_id.as_bytes().eq_ignore_ascii_case(&build_id.0)
            || (self.build_id.is_empty() && breakpad::is_debug_id_of(debug_id, build_id))
    }
}

/// What the file is. Reads headers and notes only.
///
/// # Errors
/// Where it is no symbol file, or its headers are damaged.
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
        let has_mini_debuginfo = has(".gnu_debugdata");
        Facts {
            format: Format::Elf,
            build_id: self.build_id(bytes),
            debug_id: None,
            machine: self.machine,
            is_64: self.is_64,
            knowledge: self.knowledge(bytes),
            has_mini_debuginfo,
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
            is_executable: self.executable().next().is_some(),
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

/// Whether `.debug_info` begins with a skeleton unit of DWARF 5 (7.5.1.2): the functions are in
/// `.dwo` files then. A skeleton of DWARF 4 is not told by its header, and counts as whole.
fn is_skeleton(info: &Section, bytes: &[u8]) -> bool {
    const DW_UT_SKELETON: u8 = 4;
    let header = &bytes[info.file.clone()];
    !info.is_compressed() && header.get(4..7) == Some(&[5, 0, DW_UT_SKELETON])
}

/// A name, padded to 4 bytes, and the CRC-32 of the file that it names.
fn read_debug_link(section: &[u8]) -> Option<DebugLink> {
    let end = section.iter().position(|byte| *byte == 0)?;
    let crc = (end + 1).next_multiple_of(4);
    let crc = section.get(crc..crc + 4)?.try_into().ok()?;
    Some(DebugLink {
        name: String::from_utf8_lossy(&section[..end]).into_owned(),
        crc: u32::from_le_bytes(crc),
    })
}

/// A path and the build ID of the file that it names.
fn read_supplement(section: &[u8]) -> Option<Supplement> {
    let end = section.iter().position(|byte| *byte == 0)?;
    Some(Supplement {
        path: String::from_utf8_lossy(&section[..end]).into_owned(),
        build_id: BuildId(section[end + 1..].to_vec()),
    })
}
