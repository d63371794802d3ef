//! What was really allocated while a recording ran: the yardstick for whoever reads the trace.

use std::sync::Arc;

use crate::java::{Inputs, JavaDumpKind};

/// One recording's truth.
#[derive(Debug, Clone, Default)]
pub struct RecordingTruth {
    /// Path of the trace on the phone; empty where it went to stdout.
    pub path: String,
    /// Every dump that heapprofd wrote, in order.
    pub dumps: Vec<DumpTruth>,
}

/// One heap of one process at one dump.
#[derive(Debug, Clone)]
pub struct DumpTruth {
    /// The process.
    pub pid: u32,
    /// Its name.
    pub process: String,
    /// The heap's name, also where the trace of an old Android leaves it out.
    pub heap: String,
    /// When, on the phone's boot clock, nanoseconds.
    pub boot_ns: u64,
    /// Sampling interval in bytes.
    pub interval: u64,
    /// Whether the process was profiled from its start.
    pub from_startup: bool,
    /// Every allocation site that was used since the process was attached.
    pub sites: Vec<SiteTruth>,
}

/// One allocation site since the process was attached.
#[derive(Debug, Clone)]
pub struct SiteTruth {
    /// What the site is, such as `leak` or `cache`.
    pub name: Arc<str>,
    /// Function names, root first; empty for code without symbols.
    pub stack: Arc<[Arc<str>]>,
    /// Bytes really allocated.
    pub allocated: u64,
    /// Allocations.
    pub alloc_count: u64,
    /// Bytes really freed, of those allocated since the attach.
    pub freed: u64,
    /// Frees.
    pub free_count: u64,
    /// As the sampler saw it: scaled bytes allocated.
    pub sampled_allocated: u64,
    /// Scaled bytes freed.
    pub sampled_freed: u64,
    /// Sampled allocations.
    pub sampled_alloc_count: u64,
    /// Sampled frees.
    pub sampled_free_count: u64,
}

impl DumpTruth {
    /// Bytes held at the dump.
    pub fn unreleased(&self) -> u64 {
        self.sites.iter().map(|s| s.allocated - s.freed).sum()
    }

    /// Bytes allocated since the attach.
    pub fn allocated(&self) -> u64 {
        self.sites.iter().map(|s| s.allocated).sum()
    }
}

/// A dump of a Java heap: what it followed from, so that its truth can be worked out.
#[derive(Debug, Clone)]
pub(crate) struct JavaDump {
    pub(crate) inputs: Inputs,
    pub(crate) kind: JavaDumpKind,
    /// Of an HPROF.
    pub(crate) path: String,
}
