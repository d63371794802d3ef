//! The request for a native heap profile, and its defaults.

use std::time::Duration;

use heaptap_proto::perfetto::TraceConfig;
use serde::Deserialize;

use super::companion_sources::CompanionSources;
use super::targets::Targets;

/// Source of Java allocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JavaAllocations {
    /// The source that the device supports: heapprofd, otherwise the runtime's own tracking.
    Any,
    /// heapprofd, from ART's heap `com.android.art`.
    Heap,
    /// The runtime's own tracking, requested like a debugger does.
    Tracking,
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
