//! What heaptap reads, against what others say of it: recordings made by the real heapprofd, heap
//! dumps of real runtimes, mapping files, symbol files. One program for all of them: each that
//! links heaptap takes its time to build.

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
mod retrace;
mod symbol_files;
