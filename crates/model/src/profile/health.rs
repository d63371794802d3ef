//! What was lost or damaged between the phone's heap and the model, as counts and places.
//! Words and remedies are [`super::summary`]'s.

use serde::{Deserialize, Serialize};

/// At most so many places of damage are kept one by one; the rest is counted.
const PLACES: usize = 32;

/// A stretch of the file that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    /// First byte, counted in the uncompressed trace.
    pub offset: u64,
    /// Bytes passed over.
    pub bytes: u64,
    /// What is wrong there.
    pub what: String,
}

/// Loss and damage of a whole recording.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Health {
    /// Unreadable stretches, in order of the file; at most 32.
    pub damage: Vec<Damage>,
    /// All unreadable stretches, kept or not.
    pub damage_count: u64,
    /// Bytes of the packet inside which the file ends; its rest is not written yet, or cut off.
    pub cut_bytes: u64,
    /// Profile packets that never came, by gaps in their numbering.
    pub missing_profile_packets: u64,
    /// Profile packets that stood out of order in the file and were put right.
    pub reordered_profile_packets: u64,
    /// Profile packets whose numbering contradicts itself: traces mixed into one another.
    pub inconsistent_profile_packets: u64,
    /// Profile packets that stood under a foreign sequence and were attributed by their numbers.
    pub adopted_profile_packets: u64,
    /// Profile packets that stand twice.
    pub repeated_profile_packets: u64,
    /// Dumps whose last packet never came.
    pub unfinished_dumps: u64,
    /// Samples whose callstack the trace does not define, kept without names.
    pub lost_callstacks: u64,
    /// Frames the trace does not define, kept without names.
    pub lost_frames: u64,
    /// Samples that went backwards and were passed over.
    pub malformed_samples: u64,
    /// Dumps whose time no clock of the trace converts.
    pub dumps_without_clock: u64,
    /// Sequences on which the service reports lost packets.
    pub sequences_with_loss: u64,
    /// Profile packets without a sequence, whose names can't be told.
    pub packets_without_sequence: u64,
    /// The trace stops before the tracing service said that it was done: the file was cut off,
    /// or the service was killed.
    pub ends_early: bool,
    /// When the stop began, trace time (BOOTTIME) in ns, that a data source did not answer within
    /// the service's limit: what it would have written last is missing.
    pub stop_timed_out_ns: Option<u64>,
    /// Processes and heaps that were followed to the end and have no dump from then: the final
    /// one is missing.
    pub final_dumps_missing: Vec<LastDump>,
    /// Packets of mappings that contradict themselves or break off.
    pub smaps_errors: u64,
    /// Packets of Java heap dumps, which are not profiles of the native heap.
    pub heap_graph_packets: u64,
    /// All profile packets, also those that hold nothing.
    pub profile_packets: u64,
    /// The tracing service's own account, where the trace holds it.
    pub service: Option<ServiceStats>,
}

/// The last dump of a heap that a trace holds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LastDump {
    /// Process id.
    pub pid: u64,
    /// Process name where the trace has one, else empty.
    pub process: String,
    /// The heap.
    pub heap: String,
    /// Its time, as [`HeapDump::time_ns`](super::HeapDump::time_ns).
    pub time_ns: Option<u64>,
}

/// The last account of the tracing service of its buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ServiceStats {
    /// Chunks of a ring buffer overwritten before they were read.
    pub chunks_overwritten: u64,
    /// Chunks that came when a buffer was full.
    pub chunks_discarded: u64,
    /// Packets that writers report as lost.
    pub writer_packet_loss: u64,
    /// Patches that came too late for their chunk.
    pub patches_failed: u64,
    /// Violations of the shared memory protocol.
    pub abi_violations: u64,
    /// Packets the service refused.
    pub invalid_packets: u64,
    /// Flushes that failed.
    pub flushes_failed: u64,
    /// Whether the flush at the end failed.
    pub final_flush_failed: bool,
}

impl Health {
    /// Notes an unreadable stretch of the file.
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

    /// Whether nothing is wrong with the bytes but that they break off: what a writer leaves
    /// that was stopped while it wrote.
    pub fn breaks_off(&self) -> bool {
        self.ends_early && self.damage_count == 0
    }

    /// Whether the file itself is damaged: bytes that can't be read, or parts that are missing
    /// or contradict each other in a way that no recording produces.
    pub fn is_damaged(&self) -> bool {
        self.damage_count > 0
            || self.reordered_profile_packets > 0
            || self.inconsistent_profile_packets > 0
            || self.adopted_profile_packets > 0
            || self.packets_without_sequence > 0
            || self.ends_early
            || self.repeated_profile_packets > 0
    }
}
