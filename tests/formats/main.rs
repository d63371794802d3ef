//! Input formats, compared with the answers of other tools: recordings of the real heapprofd, heap
//! dumps of real runtimes, mapping files, symbol files. One test program for all: each that links
//! heaptap takes time to build.

#[path = "../common/elf.rs"]
mod elf;

#[path = "../common/judge.rs"]
mod judge;

#[path = "../common/program.rs"]
mod program;

mod conversions;
mod heap_graphs;
mod hprof_oracles;
mod hprof_tools;
mod judges_symbols;
mod query_java;
mod query_native;
mod recordings;
mod retrace;
mod symbol_files;
