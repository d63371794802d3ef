//! Java heap dumps of `android.java_hprof`: `HeapGraph` packets (trace_packet.heap_graph, field
//! 56) decoded into [`heaptap_model::heap_graph`]. Owns the packets' wire format and what ART means by
//! it, from Android 11 on; what a graph tells is computed elsewhere.
//!
//! A dump is a chain of packets on one sequence, up to one with `continued` unset, all with one
//! timestamp: objects first, roots, then the tables of types, field names and locations that the
//! objects refer to by number. The first reading of the trace keeps the places of the packets
//! and which belong together; [`crate::Trace::read_java_dump`] decodes one dump: once through its
//! objects for ids, classes and sizes, so that ids can be numbered and types are known, and once
//! more for references, on all cores.
//!
//! | Android | what its packets hold |
//! |---|---|
//! | 11 | field names by object; types by name, without kinds, superclasses and locations at first |
//! | 12 | superclass, kind, instance size and reference fields by type; ids as differences; field names by object for class objects (statics) only |
//! | 13 | bytes of native allocation registries |
//! | later | heaps, bytes allocated, objects that only the runtime refers to, bitmaps, OutOfMemoryErrors |
//!
//! | file | owns |
//! |---|---|
//! | `object` | an object on the wire |
//! | `chains` | which packets are of one dump (first reading) |
//! | `out_of_memory` | `ArtProcessMetadata`: that and why a process ran out of memory |
//! | `tables` | types, field names, locations of a chain |
//! | `columns` | objects in order of the wire |
//! | `references` | references, on all cores |
//! | `classes` | hierarchy, class objects, chains of fields |
//! | `contents` | fields by name, asked later |
//! | `native` | native bytes by the Cleaners of `NativeAllocationRegistry` |
//! | `decode` | a dump to a graph |

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

pub(super) use chains::{Chains, JavaPlan};
pub(super) use out_of_memory::{KnownPackages, read_art_metadata};

use super::TraceError;
use super::clocks::{Clock, Clocks};
use super::packet::{Packet, payload};
use super::reader::PlaceReader;
use heaptap_model::heap_graph::{HeapGraph, OutOfMemory};
use heaptap_model::profile::Recording;

/// A Java heap dump of a trace, before it is decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JavaDump {
    /// Process id.
    pub pid: u64,
    /// Process name; empty where the trace does not tell.
    pub process: String,
    /// Trace time in ns, as its packets have it.
    pub time_ns: u64,
    /// The same in ns since 1970, where clocks of the trace tell.
    pub wall_time_ns: Option<u64>,
    /// Bytes of its packets.
    pub bytes: u64,
    /// Number of its packets.
    pub packets: u64,
    /// The OutOfMemoryError that it was dumped at.
    pub out_of_memory: Option<OutOfMemory>,
    /// Its last packet is not in the trace.
    pub open: bool,
}

impl JavaPlan {
    /// Decodes the dump, which is told as `dump`.
    ///
    /// # Errors
    /// Where the source can't be read. What is missing or damaged is in the graph's losses.
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

/// What the first reading tells of the dumps.
pub(super) fn list(plans: &[JavaPlan], recording: &Recording, clocks: &Clocks) -> Vec<JavaDump> {
    let of_plan = |plan: &JavaPlan| {
        let process = recording.processes.get(&plan.pid);
        let parts = || plan.chains.iter().flat_map(|chain| &chain.packets);
        JavaDump {
            pid: plan.pid,
            process: process.map(|p| p.name.clone()).unwrap_or_default(),
            time_ns: plan.time_ns,
            wall_time_ns: clocks.convert(clocks.trace_clock(), plan.time_ns, Clock::REALTIME),
            bytes: parts().map(|part| part.bytes).sum(),
            packets: parts().count() as u64,
            out_of_memory: plan.out_of_memory.clone(),
            open: plan.is_unfinished(),
        }
    };
    plans.iter().map(of_plan).collect()
}
