//! The figures of each packet, in the form of the trace processor's counters: with Perfetto's
//! names, kB as bytes, and for a process only the figures of the packet itself.

use std::collections::{BTreeSet, HashMap};
use std::io;

use super::super::clocks::Clocks;
use super::super::packet::{Packet, payload};
use super::super::reader::PlaceReader;
use super::super::wire::{Fields, WireError, each, each_message};
use super::time::Times;
use super::{MemoryWanted, Places};
use heaptap_base::units::Allowance;
use heaptap_model::counter::{Counters, Kind, Track, Value};
use heaptap_model::profile::Recording;
use heaptap_model::timeline::{Observation, Source};

/// A figure of a process: field number, kind and name.
type Figure = (usize, Kind, &'static str);

/// Figures of a process by field number; those of the browser's own sampler are left out.
const OF_PROCESS: [Option<Figure>; 25] = {
    const fn memory(at: usize, name: &'static str) -> Option<Figure> {
        Some((at, Kind::ProcessMemory, name))
    }
    const fn smaps(at: usize, name: &'static str) -> Option<Figure> {
        Some((at, Kind::Smaps, name))
    }
    let mut all = [None; 25];
    all[2] = memory(2, "mem.virt");
    all[3] = memory(3, "mem.rss");
    all[4] = memory(4, "mem.rss.anon");
    all[5] = memory(5, "mem.rss.file");
    all[6] = memory(6, "mem.rss.shmem");
    all[7] = memory(7, "mem.swap");
    all[8] = memory(8, "mem.locked");
    all[9] = memory(9, "mem.rss.watermark");
    all[10] = Some((10, Kind::OomScoreAdj, "oom_score_adj"));
    all[16] = smaps(16, "mem.smaps.rss");
    all[17] = smaps(17, "mem.smaps.pss");
    all[18] = smaps(18, "mem.smaps.pss.anon");
    all[19] = smaps(19, "mem.smaps.pss.file");
    // The spelling of Perfetto.
    all[20] = smaps(20, "mem.smaps.pss.smem");
    all[21] = Some((21, Kind::Runtime, "runtime.user_ns"));
    all[22] = Some((22, Kind::Runtime, "runtime.kernel_ns"));
    all[23] = smaps(23, "mem.smaps.swap.pss");
    all[24] = memory(24, "mem.dmabuf_rss");
    all
};

/// Lines of `/proc/meminfo` by number, and the additions of vendors' kernels.
const OF_PHONE: [&str; 39] = [
    "MemUnspecified",
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
    "Gpu",
    "Zram",
    "Misc",
    "ION_heap",
    "ION_heap_pool",
];

/// atrace's name of the Java heap's size, which is in kB.
const HEAP_SIZE: &str = "Heap size (KB)";

/// Maximum number of values of a trace: a quarter of a gigabyte.
const MAX_VALUES: usize = 10 << 20;

/// Memory of the counters of a process.
const OF_ONE_PROCESS: usize = 300;

/// A counter that does not have a value yet.
const UNSEEN: u32 = u32::MAX;

/// Collected values, each with the index of its counter.
struct Gathered {
    all: Counters,
    of_phone: [u32; OF_PHONE.len()],
    /// The last element is the process's Java heap size.
    of_process: HashMap<u32, [u32; OF_PROCESS.len() + 1]>,
    is_whole: bool,
    allowance: Allowance,
}

impl Gathered {
    fn new(allowance: Allowance) -> Gathered {
        Gathered {
            allowance,
            all: Counters::default(),
            of_phone: [UNSEEN; OF_PHONE.len()],
            of_process: HashMap::new(),
            is_whole: true,
        }
    }

    /// Adds a value of a process.
    fn process(&mut self, boot_ns: u64, pid: u32, (at, kind, name): Figure, value: f64) {
        let is_known = self.of_process.contains_key(&pid);
        if !is_known && !self.allowance.take(OF_ONE_PROCESS) {
            self.is_whole = false;
            return;
        }
        let unseen = || [UNSEEN; OF_PROCESS.len() + 1];
        let places = self.of_process.entry(pid).or_insert_with(unseen);
        let track = Track {
            pid: Some(pid),
            kind,
            name,
        };
        if let Some(place) = places.get_mut(at) {
            let place = known(&mut self.all.tracks, place, track);
            self.push(boot_ns, place, value);
        }
    }

    /// Adds a value of the device.
    fn phone(&mut self, boot_ns: u64, key: usize, value: f64) {
        if let (Some(name), Some(place)) = (OF_PHONE.get(key), self.of_phone.get_mut(key)) {
            let track = Track {
                pid: None,
                kind: Kind::Meminfo,
                name,
            };
            let place = known(&mut self.all.tracks, place, track);
            self.push(boot_ns, place, value);
        }
    }

    fn push(&mut self, boot_ns: u64, track: u32, value: f64) {
        let has_room = self.all.values.len() < MAX_VALUES;
        self.is_whole &= has_room && self.allowance.take(size_of::<Value>() * 3 / 2);
        if self.is_whole {
            let value = Value {
                boot_ns,
                value,
                track,
            };
            self.all.values.push(value);
        }
    }
}

/// Returns the index of a counter, which is assigned with its first value.
fn known(tracks: &mut Vec<Track>, place: &mut u32, track: Track) -> u32 {
    if *place == UNSEEN {
        *place = tracks.len() as u32;
        tracks.push(track);
    }
    *place
}

impl Places {
    /// Returns all counters; `None` if they have too many values.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read; damage in it is not an error.
    pub(crate) fn counters(
        &self,
        reader: &mut PlaceReader,
        clocks: &Clocks,
        recording: &Recording,
        wanted: &MemoryWanted,
    ) -> io::Result<Option<Counters>> {
        let mut gathered = Gathered::new(self.allowance());
        let times = Times::new(clocks);
        for stands in self.places.iter().filter(|stands| stands.has_figures) {
            let Some(body) = reader.body(stands.place)? else {
                continue;
            };
            // Figures before damage are used; the timeline reports the damage.
            let (packet, _) = Packet::read(body);
            for &(kind, message) in &packet.payloads {
                if !matches!(kind, payload::PROCESS_STATS | payload::SYS_STATS) {
                    continue;
                }
                let time = packet.timestamp;
                let Some(now) = time.and_then(|t| times.boot(stands.clock, packet.sequence, t))
                else {
                    continue;
                };
                let _ = match kind {
                    payload::PROCESS_STATS => each_message(message, 1, |of| {
                        let (pid, values, outcome) = process(of);
                        let pids = wanted.pids.as_ref();
                        if pids.is_none_or(|pids| pids.contains(&pid)) {
                            for (figure, value) in OF_PROCESS.into_iter().zip(values) {
                                if let (Some(figure), Some(value)) = (figure, value) {
                                    gathered.process(now, pid, figure, value);
                                }
                            }
                        }
                        outcome
                    }),
                    _ => each_message(message, 1, |line| {
                        let (key, kb) = phone(line)?;
                        gathered.phone(now, key, kb as f64 * 1024.0);
                        Ok(())
                    }),
                };
                if !gathered.is_whole {
                    return Ok(None);
                }
            }
        }
        if self.places.iter().any(|stands| stands.has_events) {
            let every = MemoryWanted {
                every_counter: true,
                ..wanted.clone()
            };
            let heaps = self.read(reader, clocks, recording, &every)?;
            gathered.is_whole &= heaps.loss.entries_left_out == 0;
            let figure = (OF_PROCESS.len(), Kind::Atrace, HEAP_SIZE);
            for entry in heaps.timeline.entries {
                if let Observation::JavaHeap(heap) = entry.seen
                    && heap.source == Source::Ftrace
                {
                    let kb = (heap.allocated / 1024) as f64;
                    gathered.process(entry.boot_ns, entry.pid, figure, kb);
                }
            }
        }
        let Gathered {
            mut all, is_whole, ..
        } = gathered;
        all.values.sort_by_key(|value| value.boot_ns);
        Ok(is_whole.then_some(all))
    }
}

impl Places {
    /// Returns the processes with figures: process trees can omit short-lived ones.
    ///
    /// # Errors
    /// Returns an error as [`Places::counters`] does.
    pub(crate) fn counted(&self, reader: &mut PlaceReader) -> io::Result<BTreeSet<u32>> {
        let mut pids = BTreeSet::new();
        for stands in self.places.iter().filter(|stands| stands.has_figures) {
            let Some(body) = reader.body(stands.place)? else {
                continue;
            };
            let (packet, _) = Packet::read(body);
            for message in packet.all(payload::PROCESS_STATS) {
                let _ = each_message(message, 1, |of| {
                    let mut fields = Fields::new(of);
                    while let Some((number, value)) = fields.next()? {
                        if number == 1 {
                            pids.insert(value.number() as u32);
                            break;
                        }
                    }
                    Ok(())
                });
            }
        }
        Ok(pids)
    }
}

/// Process ID and its figures by field number: bytes, except for figures other than memory.
type Told = (u32, [Option<f64>; OF_PROCESS.len()], Result<(), WireError>);

fn process(message: &[u8]) -> Told {
    let mut pid = 0;
    let mut values = [None; OF_PROCESS.len()];
    let outcome = each(message, |number, value| {
        if number == 1 {
            pid = value.number() as u32;
            return;
        }
        let figure = OF_PROCESS.get(number as usize).copied().flatten();
        if let (Some(slot), Some((_, kind, _))) = (values.get_mut(number as usize), figure) {
            let scale = match kind {
                Kind::OomScoreAdj | Kind::Runtime => 1.0,
                _ => 1024.0,
            };
            *slot = Some(value.number() as i64 as f64 * scale);
        }
    });
    (pid, values, outcome)
}

/// Reads a line of `/proc/meminfo`: its number, and kB.
fn phone(message: &[u8]) -> Result<(usize, u64), WireError> {
    let (mut key, mut kb) = (0u64, 0u64);
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => key = value.number(),
            2 => kb = value.number(),
            _ => {}
        }
    }
    Ok((usize::try_from(key).unwrap_or(usize::MAX), kb))
}
