//! Loss and damage between the heap on the device and the model, as counts and offsets.
//! The findings of the program have the messages and remedies.

use serde::{Deserialize, Serialize};

/// Maximum number of damaged stretches that are listed; the rest is only counted.
const PLACES: usize = 32;

/// A stretch of the file that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    /// Offset of the first byte in the uncompressed trace.
    pub offset: u64,
    /// Number of skipped bytes.
    pub bytes: u64,
    /// Description of the damage.
    pub what: String,
}

/// Loss and damage of a whole recording.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Health {
    /// Unreadable stretches, in file order; at most 32.
    pub damage: Vec<Damage>,
    /// Number of all unreadable stretches, listed or not.
    pub damage_count: u64,
    /// Bytes of the packet within which the file ends; the rest is not written yet or cut off.
    pub cut_bytes: u64,
    /// Missing profile packets, counted by gaps in their numbering.
    pub missing_profile_packets: u64,
    /// Profile packets that were out of order in the file and were reordered.
    pub reordered_profile_packets: u64,
    /// Profile packets whose numbering contradicts itself: traces mixed into one another.
    pub inconsistent_profile_packets: u64,
    /// Profile packets with a foreign sequence, assigned by their numbers.
    pub adopted_profile_packets: u64,
    /// Profile packets that occur twice.
    pub repeated_profile_packets: u64,
    /// Samples whose callstack the trace does not define; they are kept without names.
    pub lost_callstacks: u64,
    /// Frames that the trace does not define; they are kept without names.
    pub lost_frames: u64,
    /// Samples whose figures decreased; they were skipped.
    pub malformed_samples: u64,
    /// Dumps whose time cannot be converted by any clock of the trace.
    pub dumps_without_clock: u64,
    /// Profile packets without a sequence, whose names are unknown.
    pub packets_without_sequence: u64,
    /// Number of copies of a recording that were joined to this trace; 0 if it has neither a UUID nor
    /// a config.
    pub copies: u64,
    /// The trace stops before the tracing service reported its end: the file was cut off, or the
    /// service was killed.
    pub ends_early: bool,
    /// Trace time (BOOTTIME) in ns of a stop that a data source did not answer within the service's
    /// limit: its last data is missing.
    pub stop_timed_out_ns: Option<u64>,
    /// Processes and heaps that were profiled to the end but have no dump from then: the final one
    /// is missing.
    pub final_dumps_missing: Vec<LastDump>,
    /// Packets of memory mappings that contradict themselves or break off.
    pub smaps_errors: u64,
    /// Packets of Java heap dumps, which are not profiles of the native heap.
    pub heap_graph_packets: u64,
    /// All profile packets, including empty ones.
    pub profile_packets: u64,
    /// Statistics of the tracing service, if the trace has them.
    pub service: Option<ServiceStats>,
}

/// The last dump of a heap in a trace.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LastDump {
    /// Process ID.
    pub pid: u64,
    /// Process name; empty if the trace does not have it.
    pub process: String,
    pub heap: String,
    /// Time of the dump, as in [`HeapDump::time_ns`](super::HeapDump::time_ns).
    pub time_ns: Option<u64>,
}

/// The last statistics of the tracing service about its buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ServiceStats {
    /// Chunks of a ring buffer overwritten before they were read.
    pub chunks_overwritten: u64,
    /// Chunks that arrived while a buffer was full.
    pub chunks_discarded: u64,
    /// Packets that writers report as lost.
    pub writer_packet_loss: u64,
    /// Patches that arrived too late for their chunk.
    pub patches_failed: u64,
    /// Violations of the shared memory protocol.
    pub abi_violations: u64,
    /// Packets that the service rejected.
    pub invalid_packets: u64,
    /// The flush at the end failed.
    pub final_flush_failed: bool,
}

impl Health {
    /// Records an unreadable stretch of the file.
    pub fn add_damage(&mut self, offset: u64, bytes: u64, what: impl Into<String>) {
        self.damage_count += 1;
        if self.damage.len() < PLACES {
            self.damage.push(Damage {
                offset,
                bytes,
                what: what.into(),
            });
        }
    }
}
