//! Heap profiles from Perfetto traces: sampled native heaps (heapprofd), Java heap graphs, and
//! figures of memory recorded with them, decoded into [`heaptap_model`]. The reader is written for
//! this purpose and uses no generated protobuf code. It does not symbolize: frames have the names
//! of the trace.
//!
//! # The format
//!
//! A trace is one protobuf message, `Trace { repeated TracePacket packet = 1; }`: the byte `0a`, a
//! length, a packet, and again. The file does not have a header, an index or a checksum. The
//! following facts come from Perfetto's `.proto` files and from heapprofd's source, and were
//! checked against Perfetto's own converter.
//!
//! | field of `TracePacket` | content |
//! |---|---|
//! | 10 `trusted_packet_sequence_id` | the writer; interned IDs are valid within one sequence |
//! | 13 `sequence_flags` | bit 0: the sequence's interned data starts again |
//! | 12 `interned_data` | strings (5 functions, 16 build IDs, 17 paths), 19 mappings, 6 frames, 7 callstacks, each with an ID |
//! | 37 `profile_packet` | a piece of a heapprofd dump: processes (5), their samples, `continued` (6), `index` (7) |
//! | 56 `heap_graph` | a piece of a Java heap: objects, types, roots |
//! | 50 `compressed_packets` | packets in DEFLATE |
//!
//! - A callstack begins with the outermost frame.
//! - A sample is a callstack with sums since profiling began: bytes allocated (2) and freed (3),
//!   and counts of sampled allocations (5) and frees (6). Bytes are scaled up by the sampling;
//!   counts are not.
//! - A dump is a chain of packets on one sequence. The last one has `continued` unset.
//! - Timestamps of dumps are MONOTONIC_COARSE in ns. Clock snapshots of the trace convert them to
//!   the trace's clock (BOOTTIME).
//!
//! # The method
//!
//! A trace is read twice. The first reading ([`Trace::open`]) reads all packets and collects
//! everything that is common to the recording: interned strings, mappings, frames and callstacks,
//! symbols, clocks, names, the config. It skips samples and keeps only the positions of profile
//! packets. The second reading ([`Trace::read_dumps`]) reads the packets at those positions and
//! passes on each dump as soon as it is complete. Therefore late definitions are resolved, the
//! tables are complete before the first dump, and memory depends on the number of distinct
//! callsites, not on the size of the file.
//!
//! Damage is not an error: the reader continues with the next packet, and [`Health`] lists the
//! loss.
//!
//! # A worked example
//!
//! A trace of one packet: two functions, one callstack, one sample of 96 bytes.
//!
//! ```
//! use perfetto_heap::{Trace, TraceError};
//!
//! /// A field that has a length: tag, length, content.
//! fn field(tag: &[u8], content: &[u8]) -> Vec<u8> {
//!     [tag, &[content.len() as u8], content].concat()
//! }
//!
//! let interned = [
//!     field(&[0x2a], &[&[8, 1][..], &field(&[0x12], b"main")].concat()), // function 1
//!     field(&[0x2a], &[&[8, 2][..], &field(&[0x12], b"load")].concat()), // function 2
//!     field(&[0x32], &[8, 1, 16, 1]),        // frame 1: function 1
//!     field(&[0x32], &[8, 2, 16, 2]),        // frame 2: function 2
//!     field(&[0x3a], &[8, 9, 16, 1, 16, 2]), // callstack 9: main calls load
//! ];
//! let sample = field(&[0x12], &[8, 9, 16, 96, 40, 1]); // callstack 9: 96 bytes, 1 allocation
//! let process = field(&[0x2a], &[&[8, 7][..], &sample].concat()); // pid 7
//! let packet = [
//!     vec![80, 1, 104, 1],                    // sequence 1, interned data starts
//!     field(&[0x62], &interned.concat()),     // interned_data
//!     field(&[0xaa, 0x02], &process),         // profile_packet
//! ];
//! let file = field(&[0x0a], &packet.concat());
//!
//! let mut trace = Trace::open(Box::new(std::io::Cursor::new(file)))?;
//! let mut dumps = Vec::new();
//! trace.read_dumps(|dump| {
//!     dumps.push(dump);
//!     Ok::<_, TraceError>(())
//! })?;
//! let (callsite, figures) = dumps[0].samples[0];
//! assert_eq!((dumps[0].pid, figures.space, figures.objects), (7, 96, 1));
//! let tables = &trace.recording().tables;
//! let leaf = tables.callsite(callsite).next().expect("it has frames");
//! assert_eq!(tables.string(tables.frame(leaf).name), "load");
//! # Ok::<(), TraceError>(())
//! ```
//!
//! # Modules
//!
//! | module | owns |
//! |---|---|
//! | [`wire`] | fields of a message |
//! | `framing` | packets of a file, recovery after damage |
//! | `bundle`, `reader` | compressed packets |
//! | `allowance` | the memory limit of the reader for a trace |
//! | `packet` | a packet's stamps and payloads |
//! | `interning`, `iids`, `raw_strings`, `callstacks` | interned data, late definitions |
//! | `clocks` | time |
//! | `metadata` | processes, packages, config, system, the service's stats |
//! | `service_counters` | the tracing service's counters by name |
//! | `symbols`, `deobfuscation` | names in their own packets |
//! | `survey`, `surveyed` | the first reading; its result, to which names can be added |
//! | `trace` | access to a trace after its names are complete |
//! | `order` | grouping and order of packets |
//! | `profile_packet`, `series`, `dumps` | the second reading: samples, sums, dumps |
//! | `java` | Java heap dumps: their list, and each as a graph |
//! | `smaps` | memory mappings of processes |
//! | `memory` | figures of memory other than heaps: processes, the device, GCs |
//! | `scan` | complete dumps in a trace that is still being written |
#![warn(missing_docs)]

mod allowance;
mod bundle;
mod callstacks;
mod clocks;
mod deobfuscation;
mod dumps;
mod framing;
mod iids;
mod interning;
mod java;
#[cfg(test)]
mod made;
mod memory;
mod metadata;
mod order;
mod packet;
mod profile_packet;
mod raw_strings;
mod reader;
mod scan;
mod series;
mod service_counters;
mod smaps;
mod survey;
mod surveyed;
mod symbols;
mod trace;
pub mod wire;

pub use framing::{Source, TraceError, holds_packet as looks_like_trace};
pub use java::JavaDump;
pub use memory::{LogMessage, MemoryLoss, MemoryWanted, TraceMemory};
pub use scan::{CompleteDump, DumpScanner};
pub use smaps::SmapsFacts;
pub use surveyed::Surveyed;
pub use trace::Trace;

use heaptap_model::profile::{Health, Package, Recording};

/// Returns whether bytes contain a whole packet.
pub fn has_packet(trace: &[u8]) -> bool {
    let mut found = false;
    each_packet(trace, |_| {
        found = true;
        false
    });
    found
}

/// Reads the packages list from a trace's bytes (`android.packages_list` records it), for devices
/// without another source. Empty if the trace does not have it.
pub fn read_packages(trace: &[u8]) -> Vec<Package> {
    let mut recording = Recording::default();
    let mut allowance = heaptap_base::units::Allowance::from_bytes(trace.len());
    each_packet(trace, |packet| {
        for list in packet.all(packet::payload::PACKAGES_LIST) {
            // A damaged list returns the entries before the damage.
            let _ = metadata::read_packages(list, &mut recording, &mut allowance);
        }
        true
    });
    recording.packages
}

/// Calls `each` with the packets of a trace until it returns false.
fn each_packet(trace: &[u8], mut each: impl FnMut(&packet::Packet<'_>) -> bool) {
    let source = Box::new(std::io::Cursor::new(trace.to_vec()));
    let Ok(window) = framing::Window::new(source) else {
        return;
    };
    let mut packets = framing::Packets::new(window);
    while let Ok(Some(extent)) = packets.next(&mut Health::default())
        && let Ok(body) = packets.body(extent)
        && each(&packet::Packet::read(body).0)
    {}
}
