//! Complete dumps in a trace that is still being written: reads packets as they arrive, without
//! stacks, interned data or steps back. Owns the framing of a growing file; waits for the rest of
//! an incomplete packet.

use std::collections::HashMap;

use super::bundle;
use super::java;
use super::packet::{Packet, payload};
use super::profile_packet::{Header, Outline, each_part, each_sample};
use super::wire::varint;

/// Maximum length of a valid packet: the service splits at half a megabyte.
const MAX_PACKET_LENGTH: u64 = 64 << 20;
/// Tag of `Trace.packet`.
const PACKET_TAG: u8 = 0x0a;

/// Name of a Java heap in the result.
const JAVA: &str = "java";

/// A dump whose last packet is present.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompleteDump {
    /// Process ID.
    pub pid: u64,
    /// The heap: `java`, or the name of a native heap, which is empty before Android 12.
    pub heap: String,
    /// Time at which its last packet was written, BOOTTIME in ns.
    pub written_ns: u64,
    /// Sum over its samples of the allocated bytes less the freed ones; 0 for a Java heap.
    pub unreleased_bytes: u64,
}

/// A process and heap of an unfinished chain.
#[derive(Debug, Clone, Copy, Default)]
struct Part {
    /// Index in the chain.
    place: usize,
    allocated: u64,
    freed: u64,
}

/// Reads a trace from a packet's start on, in pieces of any size.
#[derive(Debug, Default)]
pub struct DumpScanner {
    /// Bytes of an incomplete packet.
    rest: Vec<u8>,
    /// Processes and heaps of unfinished chains, by sequence.
    chains: HashMap<u32, HashMap<(u64, String), Part>>,
    dumps: Vec<CompleteDump>,
    last_time: u64,
    lost: bool,
}

impl DumpScanner {
    /// Reads the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.lost {
            return;
        }
        let mut rest = std::mem::take(&mut self.rest);
        rest.extend_from_slice(bytes);
        let mut at = 0;
        while at < rest.len() {
            let mut pos = at + 1;
            if rest[at] != PACKET_TAG {
                self.lost = true;
                return;
            }
            let Ok(length) = varint(&rest, &mut pos) else {
                // A varint has at most ten bytes.
                self.lost = rest.len() - at > 11;
                break;
            };
            if length > MAX_PACKET_LENGTH {
                self.lost = true;
                return;
            }
            let end = pos + length as usize;
            let Some(body) = rest.get(pos..end) else {
                break;
            };
            self.packet(body, true);
            at = end;
        }
        rest.drain(..at);
        self.rest = rest;
    }

    /// Returns the complete dumps so far.
    pub fn dumps(&self) -> &[CompleteDump] {
        &self.dumps
    }

    /// Returns whether the bytes so far end within a packet.
    pub fn has_rest(&self) -> bool {
        !self.rest.is_empty()
    }

    /// Returns whether the bytes are not consecutive packets: they did not begin at a packet's
    /// start.
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    fn packet(&mut self, body: &[u8], may_bundle: bool) {
        let (packet, _) = Packet::read(body);
        self.last_time = packet.timestamp.unwrap_or(self.last_time);
        let mut is_profile = false;
        let mut continued = false;
        for (kind, message) in &packet.payloads {
            match *kind {
                payload::DEFLATED | payload::ZSTD if may_bundle => {
                    let mut inflated = Vec::new();
                    // Packets inflated before damage are used.
                    let zstd = *kind == payload::ZSTD;
                    let _ = bundle::inflate(zstd, message, bundle::MAX_SIZE, &mut inflated);
                    for range in bundle::packets(&inflated).map_while(Result::ok) {
                        self.packet(&inflated[range], false);
                    }
                }
                payload::HEAP_GRAPH => self.heap_graph(message, packet.timestamp),
                payload::PROFILE_PACKET => {
                    is_profile = true;
                    continued = Outline::read(message).0.continued;
                    let chain = self.chains.entry(packet.sequence).or_default();
                    // The conversion of the trace reports damage.
                    let _ = each_part(message, |part| {
                        let (header, _) = Header::read(part);
                        let place = chain.len();
                        let part_of = chain.entry((header.pid, header.heap));
                        let sums = part_of.or_insert(Part {
                            place,
                            ..Part::default()
                        });
                        let _ = each_sample(part, |sample| {
                            sums.allocated = sums.allocated.saturating_add(sample.allocated);
                            sums.freed = sums.freed.saturating_add(sample.freed);
                        });
                    });
                }
                _ => {}
            }
        }
        if is_profile && !continued {
            let chain = self.chains.remove(&packet.sequence).unwrap_or_default();
            let mut chain: Vec<_> = chain.into_iter().collect();
            chain.sort_unstable_by_key(|(_, part)| part.place);
            let written_ns = self.last_time;
            self.dumps
                .extend(chain.into_iter().map(|((pid, heap), part)| CompleteDump {
                    pid,
                    heap,
                    written_ns,
                    unreleased_bytes: part.allocated.saturating_sub(part.freed),
                }));
        }
    }

    /// A Java heap is complete with its first packet that is not continued.
    fn heap_graph(&mut self, message: &[u8], time_ns: Option<u64>) {
        let (outline, outcome) = java::Outline::read(message);
        // The conversion of the trace reports damage.
        if outcome.is_ok() && !outline.continued {
            self.dumps.push(CompleteDump {
                pid: outline.pid,
                heap: JAVA.to_owned(),
                written_ns: time_ns.unwrap_or(self.last_time),
                unreleased_bytes: 0,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::bytes as field;

    /// Builds a trace of one profile packet; all numbers are below 128.
    fn packet(sequence: u8, time: u8, pids: &[u8], continued: bool) -> Vec<u8> {
        let mut profile = vec![6 << 3, u8::from(continued)];
        for pid in pids {
            // 60 bytes allocated, 20 freed.
            let sample = field(2, &[2 << 3, 60, 3 << 3, 20]);
            let dump = [vec![1 << 3, *pid], field(11, b"libc.malloc"), sample].concat();
            profile.extend(field(5, &dump));
        }
        let mut body = vec![8 << 3, time, 10 << 3, sequence];
        // Field 37 has a tag of two bytes.
        body.extend([0xaa, 0x02, profile.len() as u8]);
        body.extend(profile);
        field(1, &body)
    }

    fn scan(bytes: &[u8], step: usize) -> DumpScanner {
        let mut scanner = DumpScanner::default();
        bytes.chunks(step).for_each(|piece| scanner.push(piece));
        scanner
    }

    #[test]
    fn a_dump_is_complete_with_the_last_packet_of_its_chain() {
        let bytes = [
            packet(1, 10, &[7], true),
            packet(2, 11, &[8], true),
            packet(1, 12, &[7], true),
            packet(1, 13, &[], false),
            packet(3, 14, &[9], false),
        ]
        .concat();
        for step in [1, 2, 7, bytes.len()] {
            let scanner = scan(&bytes, step);
            let found: Vec<_> = scanner
                .dumps()
                .iter()
                .map(|d| (d.pid, d.written_ns, d.unreleased_bytes))
                .collect();
            // Two packets of process 7 have samples.
            assert_eq!(found, [(7, 13, 80), (9, 14, 40)], "in steps of {step}");
            assert!(!scanner.is_lost());
        }
    }

    #[test]
    fn a_java_heap_is_complete_with_its_last_packet() {
        let java = |pid: u8, time: u8, continued: bool| {
            let graph = [1 << 3, pid, 5 << 3, u8::from(continued)];
            let mut body = vec![8 << 3, time, 10 << 3, pid];
            // Field 56 has a tag of two bytes.
            body.extend([0xc2, 0x03, graph.len() as u8]);
            body.extend(graph);
            field(1, &body)
        };
        let bytes = [
            java(7, 10, true),
            java(8, 11, true),
            java(7, 10, false),
            packet(3, 14, &[9], false),
        ]
        .concat();
        let scanner = scan(&bytes, 3);
        let found: Vec<_> = scanner
            .dumps()
            .iter()
            .map(|d| (d.pid, d.heap.as_str(), d.written_ns))
            .collect();
        assert_eq!(found, [(7, "java", 10), (9, "libc.malloc", 14)]);
    }

    #[test]
    fn what_does_not_begin_with_a_packet_is_said() {
        let bytes = packet(1, 10, &[7], false);
        assert!(scan(&bytes[1..], bytes.len()).is_lost());
        assert!(scan(&[0x0a, 0xff, 0xff, 0xff, 0xff, 0x7f], 1).is_lost());
        assert!(scan(&[0x0a; 1], 1).dumps().is_empty());
    }
}
