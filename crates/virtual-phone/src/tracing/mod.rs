//! Tracing on the phone: running recordings, their sources and output.

mod buffer;
pub(crate) mod config;
mod dump;
mod heapprofd;
mod interner;
mod java_hprof;
mod malloc_info;
mod oom;
mod packets;
mod probes;
pub(crate) mod recording;
mod sampler;
mod select;
mod target;

#[cfg(test)]
pub(crate) use malloc_info::PRIMARY;
pub(crate) use malloc_info::malloc_info;
pub(crate) use oom::run_out;
