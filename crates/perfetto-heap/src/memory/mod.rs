//! Memory figures of a trace other than heaps, as entries of a timeline: resident memory of
//! processes (`linux.process_stats`), the device's memory (`linux.sys_stats`), and GCs of Java
//! heaps (`linux.ftrace`, atrace category `dalvik`), and the runtime's lines of the log about them
//! (`android.log`), whose words others parse. The first reading keeps only the positions of
//! these packets; they are decoded on request.
//!
//! | module | owns |
//! |---|---|
//! | `process_stats` | resident memory, carried forward if a packet omits it |
//! | `sys_stats` | the device's memory |
//! | `ftrace` | events of all processors, sorted by time; atrace's texts |
//! | `collections` | GCs and the heap's size from those events |
//! | `log` | the log's lines about GCs |
//! | `sink` | the receiver of entries |
//! | `counters` | the figures of each packet, as Perfetto's counters |
//! | `time` | timestamps of a packet's clock in BOOTTIME |

mod collections;
mod counters;
mod ftrace;
mod log;
mod process_stats;
mod sink;
mod sys_stats;
#[cfg(test)]
mod tests;
mod time;

use std::collections::HashMap;
use std::io;

use self::collections::Collections;
use self::ftrace::Ftrace;
pub use self::log::LogMessage;
use self::process_stats::ProcessStats;
use self::sink::Sink;
pub use self::sink::{MemoryLoss, MemoryWanted};
use self::time::Times;
use super::clocks::Clocks;
use super::packet::{Packet, payload};
use super::reader::{Place, PlaceReader};
use super::wire::WireError;
use heaptap_base::units::Allowance;
use heaptap_model::profile::Recording;
use heaptap_model::timeline::Timeline;

/// Memory figures of a trace, and their losses.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TraceMemory {
    /// Entries in order of time.
    pub timeline: Timeline,
    /// Lines of the device's log about GCs, in the order of the trace.
    pub log: Vec<LogMessage>,
    /// Losses of the figures.
    pub loss: MemoryLoss,
}

/// Position of a packet.
#[derive(Debug, Clone, Copy)]
struct Stands {
    place: Place,
    /// The clock of its timestamp.
    clock: u32,
    /// The packet has figures of processes or the device.
    has_figures: bool,
    /// The packet has events of the kernel, or lines of the log.
    has_events: bool,
}

/// Positions of the packets from the first reading.
#[derive(Debug, Default)]
pub(super) struct Places {
    places: Vec<Stands>,
    /// Default clock of each sequence.
    clocks: HashMap<u32, u32>,
}

impl Places {
    /// Memory of one position.
    pub(super) const COST: usize = size_of::<Stands>() * 3 / 2;

    /// Records a packet if it is one of these; returns whether it is.
    pub(super) fn add(&mut self, packet: &Packet, place: Place) -> bool {
        if packet.clears_state {
            self.clocks.remove(&packet.sequence);
        }
        if let Some(clock) = packet.default_clock {
            self.clocks.insert(packet.sequence, clock);
        }
        let (mut has_figures, mut has_events) = (false, false);
        for (kind, _) in &packet.payloads {
            has_figures |= matches!(*kind, payload::SYS_STATS | payload::PROCESS_STATS);
            has_events |= matches!(*kind, payload::FTRACE_EVENTS | payload::ANDROID_LOG);
        }
        if has_figures || has_events {
            let by_default = || self.clocks.get(&packet.sequence).copied();
            let clock = packet.clock.filter(|id| *id != 0).or_else(by_default);
            self.places.push(Stands {
                place,
                clock: clock.unwrap_or(0),
                has_figures,
                has_events,
            });
        }
        has_figures || has_events
    }

    /// Returns the memory limit for all packets.
    fn allowance(&self) -> Allowance {
        let bytes = self.places.iter().map(|Stands { place, .. }| {
            place.inner.map_or(place.length, |inner| inner.length) as usize
        });
        Allowance::from_bytes(bytes.sum())
    }

    /// Returns whether there are no packets.
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Decodes the packets.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read; damage in it is not an error.
    pub(super) fn read(
        &self,
        reader: &mut PlaceReader,
        clocks: &Clocks,
        recording: &Recording,
        wanted: &MemoryWanted,
    ) -> io::Result<TraceMemory> {
        let mut sink = Sink::new(wanted, self.allowance());
        let mut loss = MemoryLoss::default();
        let times = Times::new(clocks);
        let mut processes = ProcessStats::default();
        let mut ftrace = Ftrace::default();
        let mut log = Vec::new();
        let mut collections = Collections::new(wanted.every_counter);
        for &Stands { place, clock, .. } in &self.places {
            let Some(body) = reader.body(place)? else {
                loss.damaged_packets += 1;
                continue;
            };
            let (packet, outcome) = Packet::read(body);
            let mut damaged = outcome.is_err();
            let mut timeless = false;
            for &(kind, message) in &packet.payloads {
                let outcome: Result<bool, WireError> = match kind {
                    payload::FTRACE_EVENTS => {
                        let outcome = ftrace.read(message, &times, packet.sequence, &mut loss);
                        ftrace.hand_over(&mut collections, &mut sink, &mut loss);
                        outcome
                    }
                    payload::ANDROID_LOG => {
                        let sequence = packet.sequence;
                        let own = packet
                            .timestamp
                            .and_then(|t| times.boot(clock, sequence, t));
                        log::read(
                            message,
                            |t| times.boot(log::CLOCK, 0, t).or(own),
                            &mut sink,
                            &mut log,
                        )
                    }
                    payload::PROCESS_STATS | payload::SYS_STATS => {
                        let time = packet.timestamp;
                        match time.and_then(|t| times.boot(clock, packet.sequence, t)) {
                            None => Ok(false),
                            Some(now) if kind == payload::SYS_STATS => {
                                sys_stats::read(message, now, &mut sink).map(|()| true)
                            }
                            Some(now) => processes.read(message, now, &mut sink).map(|()| true),
                        }
                    }
                    _ => continue,
                };
                match outcome {
                    Ok(in_time) => timeless |= !in_time,
                    Err(_) => damaged = true,
                }
            }
            loss.damaged_packets += u64::from(damaged);
            loss.packets_without_clock += u64::from(timeless);
        }
        ftrace.end(&mut collections, &mut sink, &mut loss);
        collections.end(&mut sink, &mut loss);
        loss.entries_left_out = sink.left_out;
        Ok(TraceMemory {
            timeline: sink.finish(recording),
            log,
            loss,
        })
    }
}
