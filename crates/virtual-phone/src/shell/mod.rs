//! The phone's `/system/bin/sh`: a small POSIX-like shell over the virtual file system and
//! processes. Owns parsing and evaluating scripts; `commands` implements the programs.

mod arith;
mod ast;
mod builtins;
mod eval;
mod expand;
mod interpreter;
mod parser;
pub(crate) mod pattern;

pub(crate) use interpreter::Shell;
