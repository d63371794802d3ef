//! Config of a recording: options, presets and Perfetto text become one [`CaptureSpec`], which
//! becomes the bytes of a TraceConfig. Owns every rule for allowed values; independent of
//! devices and of the files of a recording.
//!
//! ```text
//! configs/*.yaml, preset ─┐
//! Perfetto text, binary ──┼─► Options, template ─► CaptureSpec ─► for_sdk ─► EncodedConfig
//! flags, --set ───────────┘        (resolve)         (rules)                  (encode)
//! ```

mod companion_sources;

mod error;
mod fields;
mod file;
mod heap_file;
mod host;
mod java;
mod options;
mod preset;
mod resolve;
mod rules;
pub(crate) mod sources;
mod text;
mod trace_config;
mod trigger;
mod yaml;

pub use companion_sources::CompanionSources;
pub use fields::FieldSetting;
pub use file::ConfigFile;
pub use heap_file::{BitmapFormat, HeapFileSpec};
pub use java::{JAVA_HPROF, JAVA_HPROF_OOM, JavaSpec, TimeoutFactor};
pub use options::{JavaAllocations, Options, Snapshots};
pub use preset::{PRESETS, Preset};
pub use resolve::{Resolved, resolve};
pub use rules::HEAPS_SDK;
pub use sources::HEAPPROFD;
pub use text::{parse_text, print_text};
pub use trace_config::{DeviceLimits, EncodedConfig};
pub use trigger::trigger_config;

#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use heaptap_proto::perfetto::TraceConfig;

/// Processes to record.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(default)]
pub struct Targets {
    /// Process names as given (`com.example.app`, `com.example.app:service`, with `*`).
    pub names: Vec<String>,
    /// Process ids.
    pub pids: Vec<u32>,
    /// Packages, each for all of its processes. The caller with access to the device replaces them
    /// with names before encoding.
    pub packages: Vec<String>,
}

impl Targets {
    /// Returns whether there are no targets.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.pids.is_empty() && self.packages.is_empty()
    }

    /// Returns the names. A package that was not expanded stands for its main process.
    fn process_names(&self) -> Vec<String> {
        let mut names = self.names.clone();
        resolve::add(&mut names, &self.packages);
        names
    }
}

impl fmt::Display for Targets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pids = self.pids.iter().map(|pid| format!("process {pid}"));
        let all: Vec<String> = pids
            .chain(self.names.iter().chain(&self.packages).cloned())
            .collect();
        f.write_str(&all.join(", "))
    }
}

/// Request for a native heap profile, independent of its source.
#[derive(Debug, Clone, PartialEq)]
pub struct CaptureSpec {
    pub targets: Targets,
    /// Sampling interval in bytes.
    pub interval_bytes: u64,
    /// Duration; `None` means until stopped.
    pub duration: Option<Duration>,
    /// Period of continuous dumps.
    pub continuous: Option<Duration>,
    /// Heaps by name; empty means the default (`libc.malloc`).
    pub heaps: Vec<String>,
    /// Record all heaps.
    pub all_heaps: bool,
    /// Source of Java allocations, if requested.
    pub java_allocations: Option<JavaAllocations>,
    /// Shared memory for samples, bytes.
    pub shmem_bytes: u64,
    /// Block the client if the shared memory is full.
    pub block_client: bool,
    pub block_client_timeout: Option<Duration>,
    /// Skip processes that start later.
    pub no_startup: bool,
    /// Skip processes that are already running.
    pub no_running: bool,
    /// Dump only the state at the maximum.
    pub dump_at_max: bool,
    /// Keep profiling across fork.
    pub disable_fork_teardown: bool,
    /// Record the package list, for deobfuscation and eligibility.
    pub packages_list: bool,
    /// Record process names, which identify the heaps in the trace.
    pub process_names: bool,
    /// Companion data in the same trace.
    pub companions: CompanionSources,
    /// Base config; its settings outside this struct are kept.
    pub template: TraceConfig,
}

impl Default for CaptureSpec {
    /// Returns the defaults of heap_profile.
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
