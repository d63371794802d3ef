//! The first reading of a trace: everything except samples.

use super::bundle;
use super::clocks::Clocks;
use super::deobfuscation;
use super::framing::{Packets, Window};
use super::iids::ScopeId;
use super::interning::{Interning, Layout};
use super::java;
use super::memory;
use super::metadata::{self, Ending, ServiceEvent};
use super::order::Entry;
use super::packet::{Packet, payload};
use super::profile_packet::Outline;
use super::reader::{Inner, Place};
use super::service_counters;
use super::smaps::SmapsPlans;
use super::symbols::ModuleSymbols;
use super::wire::WireError;
use heaptap_model::profile::{Health, NameMaps, Recording};
use std::collections::HashMap;
use std::io;

/// Fact about the trigger that started or cloned the trace.
const TRIGGER: &str = "trace_trigger";
/// Minimum memory of a payload; many are kept by position and time.
const PER_PAYLOAD: usize = 64;
/// Memory of a process's metadata.
const PER_PROCESS: usize = 600;

/// Result of the first reading.
#[derive(Default)]
pub(super) struct Survey {
    pub(super) recording: Recording,
    pub(super) health: Health,
    pub(super) clocks: Clocks,
    pub(super) interning: Interning,
    pub(super) entries: Vec<Entry>,
    pub(super) java: java::Chains,
    pub(super) smaps: SmapsPlans,
    pub(super) memory: memory::Places,
    pub(super) symbols: ModuleSymbols,
    pub(super) name_maps: NameMaps,
    /// Offset of the packet within which the source breaks off, or of its end.
    pub(super) whole_bytes: u64,
    sequences: HashMap<u32, Sequence>,
    packages: java::KnownPackages,
    ending: Ending,
    /// The name of the trigger is that of a clone.
    has_clone_trigger: bool,
    uuids: Copies,
    configs: Copies,
    /// A packet exceeded the memory limit: later packets are not read.
    is_full: bool,
    /// The largest timestamp seen: the time of packets without one.
    now: u64,
}

/// Messages that are equal to the first one.
#[derive(Default)]
struct Copies {
    first: Option<Vec<u8>>,
    count: u64,
}

impl Copies {
    fn add(&mut self, message: &[u8]) {
        let first = self.first.get_or_insert_with(|| message.to_owned());
        self.count += u64::from(first == message);
    }
}

/// State of a sequence.
#[derive(Debug, Clone, Copy)]
struct Sequence {
    scope: ScopeId,
    /// Tables of the current chain, Android 10.
    chain_tables: Option<ScopeId>,
}

impl Survey {
    /// Reads all packets of a window.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read.
    pub(super) fn read(window: Window) -> io::Result<(Survey, Window)> {
        let mut survey = Survey::default();
        let mut health = Health::default();
        let mut left = bundle::allowance(window.size());
        let mut packets = Packets::new(window);
        let mut inflated = Vec::new();
        while let Some(extent) = packets.next(&mut health)? {
            if survey.is_full {
                let rest = packets.size().saturating_sub(extent.offset);
                health.add_damage(
                    extent.offset,
                    rest,
                    "memory limit for a trace of this size exceeded",
                );
                break;
            }
            let body = packets.body(extent)?;
            let place = Place {
                offset: extent.offset,
                length: extent.length as u32,
                inner: None,
            };
            let (packet, outcome) = Packet::read(body);
            if let Err(error) = outcome {
                survey.packet(&packet, place, true);
                packets.reject(error.what, &mut health)?;
                continue;
            }
            survey.packet(&packet, place, false);
            for &(kind, data) in &packet.payloads {
                if kind != payload::DEFLATED && kind != payload::ZSTD {
                    continue;
                }
                let zstd = kind == payload::ZSTD;
                if let Err(error) = bundle::inflate(zstd, data, left, &mut inflated) {
                    health.add_damage(extent.offset, extent.length as u64, error.to_string());
                }
                left -= inflated.len() as u64;
                let inside = data.as_ptr() as usize - body.as_ptr() as usize;
                let place = Place {
                    offset: extent.offset + inside as u64,
                    length: data.len() as u32,
                    inner: Some(Inner {
                        zstd,
                        ..Inner::default()
                    }),
                };
                survey.bundle(&inflated, place);
            }
        }
        // Damage between and inside packets, in file order.
        survey.health.damage.extend(health.damage);
        survey.health.damage.sort_by_key(|damage| damage.offset);
        survey.health.damage.truncate(32);
        survey.health.damage_count += health.damage_count;
        survey.health.smaps_errors = survey.smaps.errors;
        survey.whole_bytes = packets.whole_bytes();
        let recording = &mut survey.recording;
        recording.set_metadata("trace_type", "proto".to_owned());
        recording.set_metadata("trace_size_bytes", packets.size());
        recording.system = metadata::system(&recording.metadata);
        survey.health.cut_bytes = health.cut_bytes;
        survey.health.stop_timed_out_ns = survey.ending.stop_timed_out_ns();
        // Before Android 14, a trace has no UUID; a clone of a session, which has two configs, is
        // made later.
        survey.health.copies = match survey.uuids.count {
            0 => survey.configs.count,
            uuids => uuids,
        };
        survey.health.ends_early = survey.ending.cut_short() || health.cut_bytes > 0;
        Ok((survey, packets.into_window()))
    }

    fn bundle(&mut self, inflated: &[u8], outer: Place) {
        for range in bundle::packets(inflated) {
            match range {
                Ok(range) => {
                    let place = Place {
                        inner: outer.inner.map(|inner| Inner {
                            start: range.start as u32,
                            length: range.len() as u32,
                            ..inner
                        }),
                        ..outer
                    };
                    let (packet, outcome) = Packet::read(&inflated[range]);
                    self.packet(&packet, place, outcome.is_err());
                    self.note(outcome, place, "a compressed packet");
                }
                Err(at) => self.health.add_damage(
                    outer.offset,
                    u64::from(outer.length),
                    format!("decompressed packets break off at byte {at}"),
                ),
            }
        }
    }

    fn note(&mut self, outcome: Result<(), WireError>, place: Place, what: &str) {
        if let Err(error) = outcome {
            self.health.add_damage(
                place.offset,
                u64::from(place.length),
                format!("cannot read all of {what}: {error}"),
            );
        }
    }

    /// Takes memory; returns whether the limit allows it.
    fn pay(&mut self, memory: usize) -> bool {
        let is_paid = self.interning.allowance.take(memory);
        self.is_full |= !is_paid;
        is_paid
    }

    fn packet(&mut self, packet: &Packet, place: Place, damaged: bool) {
        let id = packet.sequence;
        let bytes = place.inner.map_or(place.length, |inner| inner.length) as usize;
        // A Java heap is paid for when it is decoded.
        let is_heap = packet.all(payload::HEAP_GRAPH).next().is_some();
        self.interning
            .allowance
            .add(bytes / if is_heap { 4 } else { 1 });
        if let Some(time) = packet.timestamp {
            self.now = self.now.max(time);
        }
        let timestamp = packet.timestamp.unwrap_or(self.now);
        if self.memory.add(packet, place) {
            self.pay(memory::Places::COST);
        }
        if id != 0 && packet.clears_state && self.sequences.contains_key(&id) {
            self.new_scope(id);
        }
        for message in packet.all(payload::INTERNED_DATA) {
            if id == 0 {
                continue;
            }
            let scope = self.sequence(id).scope;
            let tables = &mut self.recording.tables;
            let outcome = self.interning.add(scope, message, tables);
            if !damaged {
                self.note(outcome, place, "interned data");
            }
        }
        let (mut smaps_seen, mut graphs_seen) = (0, 0);
        for &(kind, message) in &packet.payloads {
            if !self.pay(PER_PAYLOAD) {
                return;
            }
            let recording = &mut self.recording;
            let allowance = &mut self.interning.allowance;
            let (outcome, what) = match kind {
                payload::PROFILE_PACKET => {
                    self.profile_packet(message, id, place, timestamp, damaged);
                    continue;
                }
                payload::CLOCK_SNAPSHOT => (self.clocks.add(message, id), "a clock snapshot"),
                payload::PROCESS_TREE => (
                    metadata::read_process_tree(message, recording, allowance),
                    "the process tree",
                ),
                payload::PACKAGES_LIST => (
                    metadata::read_packages(message, recording, allowance),
                    "the packages list",
                ),
                payload::MODULE_SYMBOLS => (
                    self.symbols.add(message, &mut recording.tables, allowance),
                    "a symbols packet",
                ),
                payload::DEOBFUSCATION => (
                    deobfuscation::add(&mut self.name_maps, message, allowance),
                    "a deobfuscation packet",
                ),
                payload::TRACE_CONFIG => {
                    self.configs.add(message);
                    if recording.has_config {
                        continue;
                    }
                    self.ending.config(message);
                    (
                        metadata::read_config(message, recording, allowance),
                        "the trace config",
                    )
                }
                payload::TRACE_UUID => {
                    self.uuids.add(message);
                    (metadata::read_uuid(message, recording), "the trace UUID")
                }
                payload::SYSTEM_INFO => (
                    metadata::read_system_info(message, recording),
                    "the system info",
                ),
                payload::TRIGGER | payload::CLONE_TRIGGER => {
                    let is_clone = kind == payload::CLONE_TRIGGER && !self.has_clone_trigger;
                    match metadata::read_trigger(message) {
                        Ok(name) => {
                            // That of a clone is used before others.
                            if is_clone || !recording.metadata.contains_key(TRIGGER) {
                                recording.set_metadata(TRIGGER, name);
                            }
                            self.has_clone_trigger |= is_clone;
                            continue;
                        }
                        Err(error) => (Err(error), "a trigger"),
                    }
                }
                payload::TRACE_STATS => match metadata::read_stats(message) {
                    Ok(stats) => {
                        recording.counters = service_counters::read(message);
                        self.ending.stats();
                        self.health.service = Some(stats);
                        continue;
                    }
                    Err(error) => (Err(error), "the statistics of the tracing service"),
                },
                payload::SERVICE_EVENT => match metadata::read_service_event(message) {
                    Ok(event) => {
                        // They are always in BOOTTIME.
                        self.ending.event(event, packet.timestamp);
                        if event == ServiceEvent::Started {
                            recording.started_ns = recording.started_ns.or(packet.timestamp);
                        }
                        if let Some(at) = packet.timestamp {
                            event.note(at, recording);
                        }
                        continue;
                    }
                    Err(error) => (Err(error), "a tracing service event"),
                },
                payload::HEAP_GRAPH => {
                    self.health.heap_graph_packets += 1;
                    let nth = graphs_seen;
                    graphs_seen += 1;
                    (
                        self.java
                            .add(message, id, (place, nth), timestamp, allowance),
                        "a packet of a Java heap dump",
                    )
                }
                payload::SMAPS => {
                    let nth = smaps_seen;
                    smaps_seen += 1;
                    (
                        self.smaps.add(message, place, nth, timestamp),
                        "a packet of memory mappings",
                    )
                }
                payload::ART_METADATA => {
                    // A process, its package, and its OutOfMemoryError.
                    if !allowance.take(PER_PROCESS + 12 * message.len()) {
                        self.is_full = true;
                        return;
                    }
                    let packages = &mut self.packages;
                    match java::read_art_metadata(message, recording, packages) {
                        Ok((pid, oom)) => {
                            self.java.add_process(pid, timestamp, oom);
                            continue;
                        }
                        Err(error) => (Err(error), "the metadata of an ART process"),
                    }
                }
                _ => continue,
            };
            if !damaged {
                self.note(outcome, place, what);
            }
        }
    }

    fn sequence(&mut self, id: u32) -> &mut Sequence {
        if !self.sequences.contains_key(&id) {
            self.new_scope(id);
        }
        self.sequences.get_mut(&id).expect("inserted just above")
    }

    fn new_scope(&mut self, id: u32) {
        self.pay(Interning::SCOPE);
        let scope = self.interning.open(Layout::InternedData);
        self.sequences.insert(
            id,
            Sequence {
                scope,
                chain_tables: None,
            },
        );
    }

    fn profile_packet(
        &mut self,
        message: &[u8],
        id: u32,
        place: Place,
        timestamp: u64,
        damaged: bool,
    ) {
        self.health.profile_packets += 1;
        let (outline, outcome) = Outline::read(message);
        let damaged = damaged || outcome.is_err();
        self.note(outcome, place, "a profile packet");
        if id == 0 && !outline.has_tables {
            self.health.packets_without_sequence += u64::from(outline.has_dumps);
            return;
        }
        let mut own_tables = self.sequence(id).chain_tables;
        if outline.has_tables {
            let scope = own_tables.unwrap_or_else(|| {
                self.pay(Interning::SCOPE);
                self.interning.open(Layout::ProfilePacket)
            });
            own_tables = Some(scope);
            let tables = &mut self.recording.tables;
            let outcome = self.interning.add(scope, message, tables);
            self.note(outcome, place, "the tables of a profile packet");
        }
        self.sequence(id).chain_tables = own_tables.filter(|_| outline.continued);
        let scope = self.sequence(id).scope;
        if !self.pay(size_of::<Entry>() * 3 / 2) {
            return;
        }
        self.entries.push(Entry {
            place,
            sequence: id,
            scope,
            own_tables,
            index: outline.index,
            timestamp,
            damaged,
        });
    }
}
