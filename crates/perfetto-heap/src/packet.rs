//! `TracePacket`: its stamps and the payloads used here. Owns the packet's field numbers; those of
//! the payloads are in the modules that read them.

use super::wire::{Fields, Value, WireError};

/// Payloads heaptap reads, by field number of `TracePacket`.
pub(super) mod payload {
    pub(crate) const FTRACE_EVENTS: u32 = 1;
    pub(crate) const PROCESS_TREE: u32 = 2;
    pub(crate) const CLOCK_SNAPSHOT: u32 = 6;
    pub(crate) const SYS_STATS: u32 = 7;
    pub(crate) const PROCESS_STATS: u32 = 9;
    pub(crate) const INTERNED_DATA: u32 = 12;
    pub(crate) const TRACE_CONFIG: u32 = 33;
    pub(crate) const TRACE_STATS: u32 = 35;
    pub(crate) const PROFILE_PACKET: u32 = 37;
    pub(crate) const ANDROID_LOG: u32 = 39;
    pub(crate) const SYSTEM_INFO: u32 = 45;
    pub(crate) const TRIGGER: u32 = 46;
    pub(crate) const PACKAGES_LIST: u32 = 47;
    pub(crate) const DEFLATED: u32 = 50;
    pub(crate) const HEAP_GRAPH: u32 = 56;
    pub(crate) const MODULE_SYMBOLS: u32 = 61;
    pub(crate) const DEOBFUSCATION: u32 = 64;
    pub(crate) const SMAPS: u32 = 68;
    pub(crate) const SERVICE_EVENT: u32 = 69;
    pub(crate) const TRACE_UUID: u32 = 89;
    pub(crate) const CLONE_TRIGGER: u32 = 113;
    pub(crate) const ART_METADATA: u32 = 131;
    pub(crate) const ZSTD: u32 = 133;
}
use payload::*;

/// `TracePacket.trace_packet_defaults`.
const DEFAULTS: u32 = 59;

/// Returns `TracePacketDefaults.timestamp_clock_id`. Damage is not reported; it only loses the
/// clock.
fn clock_of(defaults: &[u8]) -> Option<u32> {
    let mut fields = Fields::new(defaults);
    while let Ok(Some((number, value))) = fields.next() {
        if number == 58 {
            return Some(value.number() as u32);
        }
    }
    None
}

/// A packet's stamps and payloads.
#[derive(Debug, Default)]
pub(super) struct Packet<'a> {
    /// Time in the sequence's clock; absent on packets without a time.
    pub(super) timestamp: Option<u64>,
    /// The clock of its timestamp, if stated.
    pub(super) clock: Option<u32>,
    /// The clock of its sequence from here on, if the packet sets one.
    pub(super) default_clock: Option<u32>,
    /// Sequence of its writer; 0 if absent.
    pub(super) sequence: u32,
    /// A new generation of interned data begins.
    pub(super) clears_state: bool,
    /// Payloads by field number, in order.
    pub(super) payloads: Vec<(u32, &'a [u8])>,
}

impl<'a> Packet<'a> {
    /// Reads a packet. Fields before damage are kept.
    pub(super) fn read(body: &'a [u8]) -> (Packet<'a>, Result<(), WireError>) {
        let mut packet = Packet::default();
        let mut fields = Fields::new(body);
        loop {
            match fields.next() {
                // Empty payloads have no content, and there can be millions.
                Ok(Some((_, Value::Bytes([])))) => {}
                Ok(Some((number, Value::Bytes(bytes)))) => {
                    if matches!(
                        number,
                        FTRACE_EVENTS
                            | PROCESS_TREE
                            | CLOCK_SNAPSHOT
                            | SYS_STATS
                            | ANDROID_LOG
                            | PROCESS_STATS
                            | INTERNED_DATA
                            | TRACE_CONFIG
                            | TRACE_STATS
                            | PROFILE_PACKET
                            | SYSTEM_INFO
                            | TRIGGER
                            | PACKAGES_LIST
                            | DEFLATED
                            | HEAP_GRAPH
                            | MODULE_SYMBOLS
                            | DEOBFUSCATION
                            | SMAPS
                            | SERVICE_EVENT
                            | TRACE_UUID
                            | CLONE_TRIGGER
                            | ART_METADATA
                            | ZSTD
                    ) {
                        packet.payloads.push((number, bytes));
                    } else if number == DEFAULTS {
                        packet.default_clock = clock_of(bytes).or(packet.default_clock);
                    }
                }
                Ok(Some((number, value))) => match number {
                    8 => packet.timestamp = Some(value.number()),
                    10 => packet.sequence = value.number() as u32,
                    13 => packet.clears_state |= value.number() & 1 != 0,
                    41 => packet.clears_state |= value.flag(),
                    58 => packet.clock = Some(value.number() as u32),
                    _ => {}
                },
                Ok(None) => return (packet, Ok(())),
                Err(error) => return (packet, Err(error)),
            }
        }
    }

    /// Returns the payloads of one kind.
    pub(super) fn all(&self, kind: u32) -> impl Iterator<Item = &'a [u8]> + '_ {
        self.payloads
            .iter()
            .filter(move |payload| payload.0 == kind)
            .map(|payload| payload.1)
    }
}
