//! Java heap dumps of `android.java_hprof`: `HeapGraph` packets (trace_packet.heap_graph, field 56)
//! decoded into [`heaptap_model::heap_graph`]. Owns the packets' wire format and ART's conventions
//! in it, from Android 11 on; graphs are analyzed elsewhere.
//!
//! A dump is a chain of packets on one sequence, up to one with `continued` unset, all with the
//! same timestamp: objects first, then roots, then the tables of types, field names and locations
//! that the objects refer to by number. The first reading of the trace records the positions of the
//! packets and groups them. [`crate::Trace::read_java_dump`] decodes one dump. It reads the objects
//! twice, on all cores: once for IDs, classes and sizes, so that IDs can be numbered and types are
//! known, and once more for references.
//!
//! | Android | content of the packets |
//! |---|---|
//! | 11 | field names by object; types by name, without kinds, superclasses and locations at first |
//! | 12 | superclass, kind, instance size and reference fields by type; IDs as differences; field names by object for class objects (statics) only |
//! | 13 | bytes of native allocation registries |
//! | later | heaps, bytes allocated, objects that only the runtime refers to, bitmaps, OutOfMemoryErrors |
//!
//! | file | owns |
//! |---|---|
//! | `object` | an object on the wire |
//! | `chains` | the packets of each dump (first reading) |
//! | `out_of_memory` | `ArtProcessMetadata`: process metadata and OutOfMemoryErrors |
//! | `tables` | types, field names, locations of a chain |
//! | `columns` | objects in file order |
//! | `references` | references, on all cores |
//! | `classes` | hierarchy, class objects, chains of fields |
//! | `contents` | fields by name, read on request |
//! | `native` | native bytes by the Cleaners of `NativeAllocationRegistry` |
//! | `decode` | conversion of a dump to a graph |

mod chains;
mod classes;
mod columns;
mod contents;
mod decode;
mod native;
mod object;
mod out_of_memory;
mod references;
mod tables;
#[cfg(test)]
mod tests;

pub(super) use chains::{Chains, JavaPlan, Outline};
pub(super) use out_of_memory::{KnownPackages, read_art_metadata};

use super::clocks::{Clock, Clocks};
use super::framing::TraceError;
use super::packet::{Packet, payload};
use super::reader::PlaceReader;
use heaptap_model::heap_graph::{HeapGraph, OutOfMemory};
use heaptap_model::profile::Recording;

/// A Java heap dump of a trace, not decoded yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JavaDump {
    /// Process ID.
    pub pid: u64,
    /// Process name; empty if the trace does not have it.
    pub process: String,
    /// Trace time in ns, as in its packets.
    pub time_ns: u64,
    /// Time in ns since 1970, if the clocks of the trace allow the conversion.
    pub wall_time_ns: Option<u64>,
    /// Size of the dump's packets in bytes.
    pub bytes: u64,
    /// Number of the dump's packets.
    pub packets: u64,
    /// The OutOfMemoryError that caused the dump.
    pub out_of_memory: Option<OutOfMemory>,
    /// The last packet is not in the trace.
    pub open: bool,
}

impl JavaPlan {
    /// Decodes the dump described by `dump`.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read. Missing and damaged parts are in the graph's
    /// losses.
    pub(super) fn read(
        &self,
        dump: &JavaDump,
        reader: &mut PlaceReader,
    ) -> Result<HeapGraph, TraceError> {
        let mut chains = Vec::with_capacity(self.chains.len());
        let mut lost = 0u64;
        for chain in &self.chains {
            let mut messages = Vec::with_capacity(chain.packets.len());
            for parts in chain.packets.chunk_by(|a, b| a.place == b.place) {
                let Some(body) = reader.body(parts[0].place)? else {
                    lost += parts.len() as u64;
                    continue;
                };
                let (packet, _) = Packet::read(body);
                let all: Vec<&[u8]> = packet.all(payload::HEAP_GRAPH).collect();
                messages.extend(parts.iter().filter_map(|part| {
                    Some(decode::Message {
                        bytes: (*all.get(part.nth as usize)?).into(),
                        foreign: part.foreign,
                    })
                }));
            }
            chains.push(messages);
        }
        let mut graph = decode::decode(chains);
        let missing = self.missing().saturating_add(lost);
        let losses = &mut graph.facts.losses;
        losses.missing_packets = losses.missing_packets.saturating_add(missing);
        losses.truncated |= missing > 0 || self.is_unfinished();
        for problem in self.problems() {
            losses.note(problem);
        }
        graph.facts.pid = Some(dump.pid);
        graph.facts.process.clone_from(&dump.process);
        graph.facts.time_ns = dump.time_ns;
        graph.facts.reason = dump.out_of_memory.as_ref().map(|_| "OOME".to_owned());
        Ok(graph)
    }
}

/// Lists the dumps from the first reading.
pub(super) fn list(plans: &[JavaPlan], recording: &Recording, clocks: &Clocks) -> Vec<JavaDump> {
    let to_wall_clock = clocks.to(Clock::REALTIME);
    let of_plan = |plan: &JavaPlan| {
        let process = recording.processes.get(&plan.pid);
        let parts = || plan.chains.iter().flat_map(|chain| &chain.packets);
        JavaDump {
            pid: plan.pid,
            process: process.map(|p| p.name.clone()).unwrap_or_default(),
            time_ns: plan.time_ns,
            wall_time_ns: to_wall_clock.convert(clocks.trace_clock(), plan.time_ns),
            bytes: parts().map(|part| part.bytes).sum(),
            packets: parts().count() as u64,
            out_of_memory: plan.out_of_memory.clone(),
            open: plan.is_unfinished(),
        }
    };
    plans.iter().map(of_plan).collect()
}
