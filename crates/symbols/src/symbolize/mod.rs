//! Addresses to functions, files and lines, in process: which library wants names, where its
//! symbols may lie, what they say. Knows recordings only as [`heaptap_model::profile`]; never prints,
//! never talks to a device.
//!
//! ```text
//! Recording ──► [Library]: path, build ID, addresses without names
//!                  │ find: which file has them ── every place tried, and why not
//!                  ▼
//!               file: ELF, DWARF, .symtab, .gnu_debugdata, Breakpad ──► lines, innermost first
//!                  ▼
//!               Symbols of the recording; ModuleSymbols packets
//! ```
//!
//! Three kinds of address are kept apart. A frame's `rel_pc` is what the unwinder wrote: file
//! offset in the ELF plus the load bias it saw. [`mod@file`] wants the address that the linker gave
//! (`st_value`, DW_AT_low_pc: the SVMA). They differ where the unwinder's load bias was wrong;
//! `docs/symbols.md` draws it.

pub mod cache;
pub mod debuginfod;
pub mod file;
pub mod find;
pub mod library;
pub mod resolve;

pub use library::{Library, wanted};
