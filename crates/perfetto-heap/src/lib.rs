//! The wire format of Perfetto traces, decoded into [`heaptap_model::profile`]. Own reader throughout:
//! nothing here uses generated protobuf code.
//!
//! A trace is read twice. The first reading ([`Trace::open`]) passes over all packets and
//! gathers what holds for the whole recording: interned strings, mappings, frames and
//! callstacks, symbols, clocks, names, the config. Samples are passed over; only the places of
//! profile packets are kept. The second ([`Trace::read_dumps`]) visits those and hands out each
//! dump as soon as it is complete. So what is defined late still resolves, the tables are
//! complete and shared before the first dump leaves, and memory follows the number of distinct
//! callsites, not the size of the file.
//!
//! Damage is no error: what can be read comes out, and [`Health`] says what could not.
//!
//! | file | owns |
//! |---|---|
//! | `wire` | fields of a message |
//! | `framing` | packets of a file, going on after damage |
//! | `bundle`, `reader` | compressed packets |
//! | `allowance` | what may be kept of a trace |
//! | `packet` | a packet's stamps and payloads |
//! | `interning`, `iids`, `callstacks` | interned data, late definitions |
//! | `clocks` | time |
//! | `metadata` | processes, packages, config, system, the service's stats |
//! | `service_counters` | the tracing service's counters by name |
//! | `symbols`, `deobfuscation` | names in packets of their own |
//! | `survey`, `surveyed` | the first reading; its result, open for more names |
//! | `order` | which packets belong together, and in which order |
//! | `profile_packet`, `series`, `dumps` | the second reading: samples, sums, dumps |
//! | `java` | Java heap dumps: which there are, and each as a graph |
//! | `smaps` | what processes had mapped |
//! | `memory` | figures of memory beside heaps: processes, the phone, collections |
//! | `scan` | which dumps are complete in a trace that is still being written |
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
pub mod wire;

pub use dumps::Trace;
pub use framing::Source;
pub use java::JavaDump;
pub use memory::{MemoryLoss, MemoryWanted, TraceMemory};
pub use scan::{CompleteDump, DumpScanner};
pub use smaps::SmapsFacts;
pub use surveyed::Surveyed;

use heaptap_model::error::{Classified, ErrorClass};
use heaptap_model::profile::{Health, Package, Recording};

/// A trace that can't be read at all.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The source failed.
    #[error("cannot read the trace")]
    Io(#[from] std::io::Error),
}

impl Classified for TraceError {
    fn class(&self) -> ErrorClass {
        ErrorClass::BadInput
    }

    fn kind(&self) -> &'static str {
        "trace-unreadable"
    }
}

/// Whether bytes are the beginning of a trace, or hold a whole packet behind garbage.
pub fn looks_like_trace(head: &[u8]) -> bool {
    framing::holds_packet(head)
}

/// The packages list out of a trace's bytes (`android.packages_list` records it), for devices
/// that answer in no other way. Empty where the trace holds none.
pub fn read_packages(trace: &[u8]) -> Vec<Package> {
    let mut recording = Recording::default();
    let mut health = Health::default();
    let mut allowance = heaptap_model::units::Allowance::of(trace.len());
    let source = Box::new(std::io::Cursor::new(trace.to_vec()));
    if let Ok(window) = framing::Window::new(source) {
        let mut packets = framing::Packets::new(window);
        while let Ok(Some(extent)) = packets.next(&mut health) {
            let Ok(body) = packets.body(extent) else {
                break;
            };
            let (packet, _) = packet::Packet::read(body);
            for list in packet.all(packet::payload::PACKAGES_LIST) {
                // A damaged list gives the entries before the damage.
                let _ = metadata::read_packages(list, &mut recording, &mut allowance);
            }
        }
    }
    recording.packages
}
