//! Output of commands for files: the real binary on fixtures and recordings of the virtual phone,
//! and other programs on its output. One test program for all: each that links heaptap takes time
//! to build.
#![allow(
    clippy::needless_borrows_for_generic_args,
    reason = "arguments are written alike, borrowed or not"
)]

#[path = "../common/judge.rs"]
mod judge;

#[path = "../common/program.rs"]
mod program;

mod checks;
mod ci_text;
mod cli;
mod cli_reference;
mod demo;
mod errors_exercised;
mod errors_page;
mod exports;
mod first_steps;
mod fleet;
mod inputs;
mod judges;
mod leaks;
mod look;
mod native_tables;
mod packaging;
mod printed;
mod query;
mod recorded;
mod texts;
