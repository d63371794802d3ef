//! What to record: options, presets and Perfetto text become one [`CaptureSpec`], and that
//! becomes the bytes of a TraceConfig. Owns every rule on which values are allowed; knows
//! nothing of devices or files of a recording.

use std::time::Duration;

use crate::proto::perfetto::TraceConfig;

/// Which processes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Targets {
    /// Process names as given (`com.example.app`, `com.example.app:service`, with `*`).
    pub names: Vec<String>,
    /// Process ids.
    pub pids: Vec<u32>,
}

/// What is to be recorded from a native heap, independent of how it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
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
}

/// A config ready to send.
#[derive(Debug, Clone, PartialEq)]
pub struct EncodedConfig {
    /// The message.
    pub config: TraceConfig,
    /// Its serialized form, as `perfetto -c -` takes it.
    pub bytes: Vec<u8>,
    /// The text that `perfetto --txt -c -` accepts.
    pub text: String,
}
