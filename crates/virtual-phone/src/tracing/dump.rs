//! Writer of heapprofd's dumps: samples in chains of ProfilePackets, tables by version. Owns the
//! packet sequence of one data source.

use super::interner::{Fresh, Interner};
use crate::clock::ClockValues;
use crate::process::{NOBODY, Pid};
use crate::workload::Workload;
use heaptap_proto::perfetto as pb;

/// Size in bytes at which heapprofd starts a new packet.
const PACKET_LIMIT: usize = 400 << 10;

/// Samples of one heap and their header fields.
pub(super) struct HeapDump<'a> {
    pub(super) header: pb::profile_packet::ProcessHeapSamples,
    pub(super) samples: Vec<pb::profile_packet::HeapSample>,
    /// Callstacks not written yet: their number, and the indexes of their frames, root first.
    pub(super) fresh: Vec<(u64, &'a [u32])>,
    /// All callstacks of the samples, for versions that write the tables in each dump.
    pub(super) all: Vec<(u64, &'a [u32])>,
    pub(super) workload: &'a Workload,
}

/// Packet sequence of one heapprofd data source.
pub(super) struct DumpWriter {
    sequence: u32,
    heapprofd: Pid,
    android: u32,
    interner: Interner,
    index: u64,
    begun: bool,
    next_callstack: u64,
    /// Whether every second packet with samples is lost.
    pub(super) lossy: bool,
    written: u64,
}

impl DumpWriter {
    pub(super) fn new(sequence: u32, heapprofd: Pid, android: u32) -> Self {
        DumpWriter {
            sequence,
            heapprofd,
            android,
            interner: Interner::new(android == 10),
            index: 0,
            begun: false,
            next_callstack: 1,
            lossy: false,
            written: 0,
        }
    }

    /// Returns a number for a new callstack; like those of heapprofd's tree, the numbers have gaps.
    pub(super) fn callstack_id(&mut self, depth: usize) -> u64 {
        self.next_callstack += depth as u64;
        self.next_callstack
    }

    fn packet(&self, clock: ClockValues) -> pb::TracePacket {
        pb::TracePacket {
            timestamp: Some(clock.boot),
            trusted_uid: Some(NOBODY as i32),
            trusted_pid: (self.android >= 12).then_some(self.heapprofd as i32),
            trusted_packet_sequence_id: Some(self.sequence),
            ..Default::default()
        }
    }

    /// Writes the sequence's first packet: state is cleared, number 0 is the empty string.
    fn begin(&mut self, clock: ClockValues, out: &mut Vec<pb::TracePacket>) {
        if self.begun {
            return;
        }
        self.begun = true;
        if self.android == 10 {
            return;
        }
        let empty = || {
            vec![pb::InternedString {
                iid: Some(0),
                str: Some(Vec::new()),
            }]
        };
        out.push(pb::TracePacket {
            timestamp: None,
            interned_data: Some(pb::InternedData {
                function_names: empty(),
                build_ids: empty(),
                mapping_paths: empty(),
                ..Default::default()
            }),
            sequence_flags: Some(1),
            previous_packet_dropped: Some(1),
            first_packet_on_sequence: (self.android >= 13).then_some(true),
            ..self.packet(clock)
        });
    }

    fn profile(&mut self, clock: ClockValues, continued: bool) -> pb::TracePacket {
        let index = self.index;
        self.index += 1;
        pb::TracePacket {
            profile_packet: Some(pb::ProfilePacket {
                continued: continued.then_some(true),
                index: Some(index),
                ..Default::default()
            }),
            ..self.packet(clock)
        }
    }

    /// Returns the packets of a session whose targets were signalled but never answered.
    pub(super) fn empty(&mut self, clock: ClockValues) -> Vec<pb::TracePacket> {
        let mut out = Vec::new();
        self.begin(clock, &mut out);
        out.push(self.profile(clock, true));
        out.push(self.profile(clock, false));
        out
    }

    /// Returns the packets for a process that another session profiles.
    pub(super) fn rejected(&mut self, clock: ClockValues, pid: Pid) -> Vec<pb::TracePacket> {
        let mut out = Vec::new();
        self.begin(clock, &mut out);
        out.push(pb::TracePacket {
            timestamp: None,
            profile_packet: Some(pb::ProfilePacket {
                process_dumps: vec![pb::profile_packet::ProcessHeapSamples {
                    pid: Some(u64::from(pid)),
                    rejected_concurrent: Some(true),
                    ..Default::default()
                }],
                ..Default::default()
            }),
            ..self.packet(clock)
        });
        out
    }

    /// Returns the packets of one dump of one heap.
    pub(super) fn write(&mut self, clock: ClockValues, dump: HeapDump<'_>) -> Vec<pb::TracePacket> {
        let mut out = Vec::new();
        self.begin(clock, &mut out);
        let legacy = self.android == 10;
        if legacy {
            self.interner = Interner::new(true);
        }
        // A sample takes about 30 bytes in the trace.
        let per_packet = PACKET_LIMIT / 30;
        let mut chunks = dump.samples.chunks(per_packet);
        let mut packets = Vec::new();
        loop {
            let chunk = chunks.next();
            if chunk.is_none() && !packets.is_empty() {
                break;
            }
            let mut packet = self.profile(clock, true);
            let mut header = dump.header.clone();
            header.samples = chunk.map(<[_]>::to_vec).unwrap_or_default();
            if let Some(profile) = &mut packet.profile_packet {
                profile.process_dumps.push(header);
            }
            packets.push(packet);
        }
        let stacks = if legacy { &dump.all } else { &dump.fresh };
        let mut fresh = Fresh::default();
        let mut bytes = 0;
        let mut tables = Vec::new();
        for (iid, frames) in stacks {
            let workload = dump.workload;
            let mut frames = frames.iter().map(|f| &workload.frames[*f as usize]);
            let before = fresh.frames.len();
            self.interner
                .callstack(*iid, &mut frames, &workload.mappings, &mut fresh);
            bytes += 64 + (fresh.frames.len() - before) * 60;
            if bytes > PACKET_LIMIT {
                tables.push(std::mem::take(&mut fresh));
                bytes = 0;
            }
        }
        tables.push(fresh);
        for (i, fresh) in tables.into_iter().enumerate() {
            // The first packet's tables come with the last samples.
            if i > 0 {
                packets.push(self.profile(clock, true));
            }
            if let Some(packet) = packets.last_mut() {
                attach(packet, fresh, legacy);
            }
        }
        packets.push(self.profile(clock, false));
        if self.lossy {
            packets.retain(|_| {
                self.written += 1;
                self.written % 2 == 1
            });
        }
        out.append(&mut packets);
        out
    }
}

/// Attaches tables to a packet: inside the profile on Android 10, outside it since.
fn attach(packet: &mut pb::TracePacket, fresh: Fresh, legacy: bool) {
    if legacy {
        if let Some(profile) = &mut packet.profile_packet {
            profile.strings = fresh.functions;
            profile.mappings = fresh.mappings;
            profile.frames = fresh.frames;
            profile.callstacks = fresh.callstacks;
        }
        return;
    }
    if fresh.callstacks.is_empty() {
        return;
    }
    packet.interned_data = Some(pb::InternedData {
        function_names: fresh.functions,
        frames: fresh.frames,
        callstacks: fresh.callstacks,
        build_ids: fresh.build_ids,
        mapping_paths: fresh.paths,
        mappings: fresh.mappings,
    });
}
