//! Symbolization of addresses to functions, files and lines, in process: libraries to symbolize,
//! the search for their symbols, and the lookup. Depends only on [`heaptap_model::profile`] for
//! recordings; never prints, and never connects to a device.
//!
//! ```text
//! Recording ──► [Library]: path, build ID, addresses without names
//!                  │ find: the file with its symbols ── every place tried, and the reasons
//!                  ▼
//!               file: ELF, DWARF, .symtab, .gnu_debugdata, Breakpad ──► lines, innermost first
//!                  ▼
//!               Symbols of the recording; ModuleSymbols packets
//! ```
//!
//! There are three kinds of address. A frame's `rel_pc` comes from the unwinder: file offset in the
//! ELF plus the load bias that it used. [`mod@file`] needs the link-time address (`st_value`,
//! DW_AT_low_pc: the SVMA). They differ if the unwinder's load bias was wrong; `docs/guide/symbols.md`
//! has a drawing.

pub mod cache;
pub mod debuginfod;
pub mod file;
pub mod find;
pub mod library;
pub mod resolve;

pub use library::{Library, wanted};
