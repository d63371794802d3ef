//! Names for frames: ELF, DWARF, Breakpad, mapping files of R8, and where they are found.

pub mod deobfuscate;
pub mod symbolize;
