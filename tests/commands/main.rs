//! What commands print and write, of files: the real binary on fixtures and recordings of the
//! virtual phone, and other people's programs on what it wrote. One program for all of them:
//! each that links heaptap takes its time to build.

#[path = "../common/judge.rs"]
mod judge;

#[path = "../common/program.rs"]
mod program;

mod checks;
mod cli;
mod cli_reference;
mod demo;
mod errors_exercised;
mod errors_page;
mod exports;
mod inputs;
mod judges;
mod leaks;
mod look;
mod native_tables;
mod printed;
mod query;
mod texts;
