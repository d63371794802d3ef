//! What a symbol file says of itself, as plain values.

use super::debug_id::is_debug_id_of;
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
            || (self.build_id.is_empty() && is_debug_id_of(debug_id, build_id))
    }
}
