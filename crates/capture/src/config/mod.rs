//! What to record: options, presets and Perfetto text become one [`CaptureSpec`], and that
//! becomes the bytes of a TraceConfig. Owns every rule on which values are allowed; knows
//! nothing of devices or files of a recording.
//!
//! ```text
//! configs/*.yaml, preset ─┐
//! Perfetto text, binary ──┼─► Options, template ─► CaptureSpec ─► for_sdk ─► EncodedConfig
//! flags, --set ───────────┘        (resolve)         (rules)                  (encode)
//! ```

mod companion_sources;
mod encode;
mod error;
mod fields;
mod file;
mod heap_file;
mod java;
mod options;
mod preset;
mod resolve;
mod rules;
mod sources;
mod text;
mod yaml;

pub use companion_sources::CompanionSources;
pub use encode::{DeviceLimits, EncodedConfig};
pub use error::ConfigError;
pub use fields::FieldSetting;
pub use file::ConfigFile;
pub use heap_file::{BitmapFormat, HeapFileSpec};
pub use java::{JAVA_HPROF, JAVA_HPROF_OOM, JavaSpec, TimeoutFactor};
pub use options::{JavaAllocations, Options, Snapshots};
pub use preset::{PRESETS, Preset};
pub use resolve::{Resolved, resolve};
pub use rules::{JAVA_HEAP, Notice};
pub use sources::HEAPPROFD;
pub use text::{parse_text, print_text};

#[cfg(test)]
mod tests;

use std::time::Duration;

use heaptap_proto::perfetto::TraceConfig;

/// Which processes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Targets {
    /// Process names as given (`com.example.app`, `com.example.app:service`, with `*`).
    pub names: Vec<String>,
    /// Process ids.
    pub pids: Vec<u32>,
    /// Packages all of whose processes are meant; whoever knows the device turns them into
    /// names before encoding.
    pub packages: Vec<String>,
}

impl Targets {
    /// Whether nothing is named.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.pids.is_empty() && self.packages.is_empty()
    }
}

/// What is to be recorded from a native heap, independent of how it was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct CaptureSpec {
    /// Which processes.
    pub targets: Targets,
    /// Sampling interval in bytes.
    pub interval_bytes: u64,
    /// Until stopped, where `None`.
    pub duration: Option<Duration>,
    /// Continuous dumps at this period.
    pub continuous: Option<Duration>,
    /// Heaps by name; empty means the default (`libc.malloc`).
    pub heaps: Vec<String>,
    /// All heaps.
    pub all_heaps: bool,
    /// Java allocations were asked for, and from whom.
    pub java_allocations: Option<JavaAllocations>,
    /// Shared memory for samples, bytes.
    pub shmem_bytes: u64,
    /// Block the client when the shared memory is full.
    pub block_client: bool,
    /// Give up blocking after this.
    pub block_client_timeout: Option<Duration>,
    /// Do not hook processes that start later.
    pub no_startup: bool,
    /// Do not hook processes that run already.
    pub no_running: bool,
    /// Dump the state at the maximum only.
    pub dump_at_max: bool,
    /// Keep profiling across fork.
    pub disable_fork_teardown: bool,
    /// Record the list of packages, for deobfuscation and eligibility.
    pub packages_list: bool,
    /// Record the names of processes, so that the trace tells whose heap it holds.
    pub process_names: bool,
    /// Other figures of the same time, in the same trace.
    pub companions: CompanionSources,
    /// A config to start from: what it sets and this struct does not know is kept.
    pub template: TraceConfig,
}

impl Default for CaptureSpec {
    /// heap_profile's defaults.
    fn default() -> Self {
        CaptureSpec {
            targets: Targets::default(),
            interval_bytes: 4096,
            duration: None,
            continuous: None,
            heaps: Vec::new(),
            all_heaps: false,
            java_allocations: None,
            shmem_bytes: 8 << 20,
            block_client: true,
            block_client_timeout: None,
            no_startup: false,
            no_running: false,
            dump_at_max: false,
            disable_fork_teardown: false,
            packages_list: true,
            process_names: true,
            companions: CompanionSources::default(),
            template: TraceConfig::default(),
        }
    }
}
