//! The figures of packets one by one, as Perfetto's trace processor makes counters of them:
//! under its names, kB as bytes, and of a process only what the packet itself says.

use std::io;

use super::super::clocks::Clocks;
use super::super::packet::{Packet, payload};
use super::super::reader::PlaceReader;
use super::super::wire::{Fields, WireError};
use super::time::Times;
use super::{MOST_ENTRIES, MemoryWanted, Places};
use crate::memory::counter::Counter;
use crate::memory::timeline::{Seen, Source};
use crate::profile::Recording;

/// Figures of a process by field number, from 2.
const OF_PROCESS: [&str; 9] = [
    "mem.virt",
    "mem.rss",
    "mem.rss.anon",
    "mem.rss.file",
    "mem.rss.shmem",
    "mem.swap",
    "mem.locked",
    "mem.rss.watermark",
    "oom_score_adj",
];
const OOM_SCORE_ADJ: u32 = 10;

/// Lines of `/proc/meminfo` by number, from 1.
const OF_PHONE: [&str; 33] = [
    "MemTotal",
    "MemFree",
    "MemAvailable",
    "Buffers",
    "Cached",
    "SwapCached",
    "Active",
    "Inactive",
    "Active(anon)",
    "Inactive(anon)",
    "Active(file)",
    "Inactive(file)",
    "Unevictable",
    "Mlocked",
    "SwapTotal",
    "SwapFree",
    "Dirty",
    "Writeback",
    "AnonPages",
    "Mapped",
    "Shmem",
    "Slab",
    "SReclaimable",
    "SUnreclaim",
    "KernelStack",
    "PageTables",
    "CommitLimit",
    "Committed_AS",
    "VmallocTotal",
    "VmallocUsed",
    "VmallocChunk",
    "CmaTotal",
    "CmaFree",
];

/// What atrace calls the Java heap's size, which it tells in kB.
const HEAP_SIZE: &str = "Heap size (KB)";

impl Places {
    /// All counters, in order of time; `None` where they are more than are kept.
    ///
    /// # Errors
    /// Where the source can't be read; damage in it is no error.
    pub(in crate::trace) fn counters(
        &self,
        reader: &mut PlaceReader,
        clocks: &Clocks,
        recording: &Recording,
        wanted: &MemoryWanted,
    ) -> io::Result<Option<Vec<Counter>>> {
        let every = MemoryWanted {
            every_counter: true,
            ..wanted.clone()
        };
        let heaps = self.read(reader, clocks, recording, &every)?;
        let mut is_whole = heaps.loss.entries_left_out == 0;
        let entries = heaps.timeline.entries.into_iter();
        let mut found: Vec<Counter> = entries
            .filter_map(|entry| match entry.seen {
                Seen::JavaHeap(heap) if heap.source == Source::Ftrace => Some(Counter {
                    boot_ns: entry.boot_ns,
                    pid: Some(entry.pid),
                    name: HEAP_SIZE,
                    value: (heap.allocated / 1024) as f64,
                }),
                _ => None,
            })
            .collect();
        let mut times = Times::new(clocks);
        for &(place, clock) in &self.places {
            let Some(body) = reader.body(place)? else {
                continue;
            };
            // What stands before damage counts; that there is some, the timeline tells.
            let (packet, _) = Packet::read(body);
            let time = packet.timestamp;
            let mut see = |pid: Option<u32>, name, value| {
                let wants = match (pid, &wanted.pids) {
                    (Some(pid), Some(pids)) => pids.contains(&pid),
                    _ => true,
                };
                let now = || times.boot(clock, packet.sequence, time?);
                if let Some(boot_ns) = wants.then(now).flatten() {
                    is_whole &= found.len() < 2 * MOST_ENTRIES;
                    if is_whole {
                        found.push(Counter {
                            boot_ns,
                            pid,
                            name,
                            value,
                        });
                    }
                }
            };
            for &(kind, message) in &packet.payloads {
                let _ = match kind {
                    payload::PROCESS_STATS => each(message, |of| process(of, &mut see)),
                    payload::SYS_STATS => each(message, |line| phone(line, &mut see)),
                    _ => Ok(()),
                };
            }
        }
        found.sort_by_key(|counter| counter.boot_ns);
        Ok(is_whole.then_some(found))
    }
}

/// What is in field 1, again and again.
fn each(
    message: &[u8],
    mut read: impl FnMut(&[u8]) -> Result<(), WireError>,
) -> Result<(), WireError> {
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        if number == 1 {
            read(value.bytes())?;
        }
    }
    Ok(())
}

fn process(
    message: &[u8],
    see: &mut impl FnMut(Option<u32>, &'static str, f64),
) -> Result<(), WireError> {
    let mut pid = 0;
    let mut values = [None; OF_PROCESS.len()];
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        let signed = value.number() as i64;
        let place = number.checked_sub(2).map(|place| place as usize);
        if number == 1 {
            pid = signed as u32;
        } else if let Some(slot) = place.and_then(|place| values.get_mut(place)) {
            *slot = Some(match number {
                OOM_SCORE_ADJ => signed as f64,
                _ => signed as f64 * 1024.0,
            });
        }
    }
    for (name, value) in OF_PROCESS.into_iter().zip(values) {
        if let Some(value) = value {
            see(Some(pid), name, value);
        }
    }
    Ok(())
}

fn phone(
    message: &[u8],
    see: &mut impl FnMut(Option<u32>, &'static str, f64),
) -> Result<(), WireError> {
    let (mut key, mut kb) = (0u64, 0u64);
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => key = value.number(),
            2 => kb = value.number(),
            _ => {}
        }
    }
    let place = key.checked_sub(1).and_then(|at| usize::try_from(at).ok());
    if let Some(name) = place.and_then(|place| OF_PHONE.get(place)) {
        see(None, name, kb as f64 * 1024.0);
    }
    Ok(())
}
