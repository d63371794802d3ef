//! Facts about a symbol file as plain values.

use super::debug_id::is_debug_id_of;
use heaptap_base::units::BuildId;
use object::elf;
use serde::{Deserialize, Serialize};

/// Amount of information in a file, ascending. It is stored with an index of directories: if the
/// variants change, the version there must change, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Knowledge {
    /// No symbols.
    Nothing,
    /// `.dynsym`: functions exported to other libraries.
    Dynsym,
    /// `.symtab`, or the same in `.gnu_debugdata`: all functions, without files and lines.
    Symtab,
    /// Functions, files and lines without types: a Breakpad file, or the skeleton of split DWARF,
    /// whose inlined calls are in other files.
    Lines,
    /// `.debug_info`: inlined calls, files and lines.
    Dwarf,
}

/// Machine of an ELF file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Machine {
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
    /// Another machine, by its ELF number.
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

/// Debug file that an ELF file refers to in `.gnu_debuglink`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DebugLink {
    /// File name without directories.
    pub name: String,
    /// CRC-32 of the file's bytes.
    pub crc: u32,
}

/// File of shared debug information (written by `dwz`) that an ELF file refers to in
/// `.gnu_debugaltlink`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Supplement {
    /// Path, absolute or relative to the referring file.
    pub path: String,
    pub build_id: BuildId,
}

/// Facts about a symbol file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// GNU build ID; empty if the file does not have one.
    pub build_id: BuildId,
    /// Debug ID of a Breakpad file: 33 or more hex characters.
    pub debug_id: Option<String>,
    /// Amount of information.
    pub knowledge: Knowledge,
    /// Debug file that it refers to.
    pub debug_link: Option<DebugLink>,
    /// dwz file that it refers to.
    pub supplement: Option<Supplement>,
    /// True if it has unwind data: `.eh_frame`, `.debug_frame` or `.ARM.exidx`. Without it
    /// callstacks end here.
    pub has_unwind: bool,
}

impl Facts {
    /// Returns whether the file is the build with this ID: it has the same build ID, or it is a
    /// Breakpad file without one and its debug ID is derived from it.
    pub fn is_build(&self, build_id: &BuildId) -> bool {
        is_build(&self.build_id.0, self.debug_id.as_deref(), build_id)
    }
}

/// Applies the rule of [`Facts::is_build`] to the IDs of a file.
pub fn is_build(own: &[u8], debug_id: Option<&str>, build_id: &BuildId) -> bool {
    if build_id.is_empty() {
        return false;
    }
    if own == build_id.0 {
        return true;
    }
    let Some(debug_id) = debug_id else {
        return false;
    };
    // Recordings can contain the debug ID itself, as text.
    debug_id.as_bytes().eq_ignore_ascii_case(&build_id.0)
        || (own.is_empty() && is_debug_id_of(debug_id, build_id))
}
