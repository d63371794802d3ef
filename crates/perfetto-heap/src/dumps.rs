//! The second reading: from profile packets to complete dumps.
//!
//! A dump is a chain of packets on one sequence, up to one with `continued` unset; its header is
//! repeated in each. Chains whose end is missing, and dumps with a lost or damaged packet, are
//! flagged as unfinished; the former also as open.

use super::callstacks::{Callstacks, Position};
use super::clocks::{Clock, Clocks, ToClock};
use super::framing::TraceError;
use super::order::{Entry, RunId, Runs};
use super::packet::{Packet, payload};
use super::profile_packet::{Header, Outline, each_part, each_sample, has_samples};
use super::reader::{Place, PlaceReader};
use super::series::{Key, Series, Taken};
use heaptap_base::units::Allowance;
use heaptap_model::profile::{
    ART_HEAP, CallsiteId, DumpKind, Health, HeapDump, HeapRequest, LastDump, Recording,
    UNNAMED_HEAP,
};
use std::collections::{BTreeMap, HashMap};

/// Result of the first reading for sampled heaps: the positions of their packets, the runs they
/// belong to, and the callstacks of their samples.
pub(super) struct DumpPlan {
    pub(super) entries: Vec<Entry>,
    pub(super) runs: Runs,
    pub(super) callstacks: Callstacks,
    /// Callsite of undefined callstacks.
    pub(super) lost_callstack: CallsiteId,
}

impl DumpPlan {
    /// Reads all dumps and passes each to `sink` as soon as it is complete. Dumps of one heap come
    /// in order of their time.
    ///
    /// # Errors
    /// Returns the sink's error at once, or an error if the source cannot be read.
    pub(super) fn read<E: From<TraceError>>(
        &self,
        reader: &mut PlaceReader,
        recording: &Recording,
        clocks: &Clocks,
        health: Health,
        mut sink: impl FnMut(HeapDump) -> Result<(), E>,
    ) -> Result<Health, E> {
        let mut refusal = None;
        let mut sink = |dump| {
            sink(dump).map_err(|error| {
                refusal = Some(error);
                Halt::Sink
            })
        };
        self.read_into(reader, recording, clocks, health, &mut sink)
            .map_err(|halt| match halt {
                Halt::Trace(error) => E::from(error),
                Halt::Sink => refusal.expect("the sink returned an error"),
            })
    }

    /// Non-generic part of `read`, so that it is compiled once, with the optimization of this
    /// crate.
    fn read_into(
        &self,
        reader: &mut PlaceReader,
        recording: &Recording,
        clocks: &Clocks,
        health: Health,
        sink: &mut dyn FnMut(HeapDump) -> Result<(), Halt>,
    ) -> Result<Health, Halt> {
        let mut assembly = Assembly {
            recording,
            to_trace_clock: clocks.to(clocks.trace_clock()),
            to_wall_clock: clocks.to(Clock::REALTIME),
            callstacks: &self.callstacks,
            lost_callstack: self.lost_callstack,
            runs: &self.runs,
            shared: HashMap::new(),
            health,
            chains: HashMap::new(),
            series: HashMap::new(),
            allowance: Allowance::default(),
            left_out: 0,
            first_left_out: None,
            last: BTreeMap::new(),
            sink,
        };
        for (entry, &run) in self.entries.iter().zip(&self.runs.of_entry) {
            match reader.body(entry.place).map_err(TraceError::from)? {
                Some(body) => assembly.packet(entry, run, body)?,
                None => assembly.health.add_damage(
                    entry.place.offset,
                    u64::from(entry.place.length),
                    "cannot read the packet a second time within the size limit",
                ),
            }
        }
        assembly.end()
    }
}

/// Reason why the reading ended early.
enum Halt {
    Trace(TraceError),
    /// The sink returned an error; `DumpPlan::read` has it.
    Sink,
}

impl From<TraceError> for Halt {
    fn from(error: TraceError) -> Halt {
        Halt::Trace(error)
    }
}

/// The dumps of a run that are not complete yet.
#[derive(Debug, Default)]
struct Chain {
    /// In order of their beginning; `None` for a complete one.
    parts: Vec<Option<Part>>,
    /// The open part of each heap of a process.
    open: HashMap<(u64, String), usize>,
    /// Number of parts that began before the last missing packet.
    torn: usize,
    /// Number of the last packet.
    index: Option<u64>,
    /// Packets of the run are missing.
    lossy: bool,
}

impl Chain {
    /// Removes and returns all parts.
    fn drain(&mut self) -> Vec<Part> {
        self.open.clear();
        let torn = std::mem::take(&mut self.torn);
        let parts = std::mem::take(&mut self.parts).into_iter().enumerate();
        parts
            .filter_map(|(at, part)| {
                let mut part = part?;
                part.unfinished |= at < torn;
                Some(part)
            })
            .collect()
    }
}

#[derive(Debug)]
struct Part {
    header: Header,
    /// Time of the last packet with a part of it.
    written: Option<u64>,
    unfinished: bool,
    /// The file ends before the chain does.
    open: bool,
    /// Samples with an undefined callstack.
    lost_callstacks: u64,
}

type SeriesKey = (RunId, u64, String);

struct Assembly<'a> {
    recording: &'a Recording,
    to_trace_clock: ToClock,
    to_wall_clock: ToClock,
    callstacks: &'a Callstacks,
    lost_callstack: CallsiteId,
    runs: &'a Runs,
    /// Common definitions of the scopes of a run, for runs with several scopes that need them.
    shared: HashMap<RunId, HashMap<u64, Position>>,
    health: Health,
    chains: HashMap<RunId, Chain>,
    series: HashMap<SeriesKey, Series>,
    /// Remaining memory.
    allowance: Allowance,
    /// Parts of dumps that exceeded the memory limit.
    left_out: u64,
    /// Place of the first of them.
    first_left_out: Option<Place>,
    /// For a stop that timed out: the time of the last dump of each process and heap, if that dump
    /// was not written then.
    last: BTreeMap<(u64, String), Option<Option<u64>>>,
    sink: &'a mut dyn FnMut(HeapDump) -> Result<(), Halt>,
}

/// Memory of a dump in the consumer, and of a heap's state through all its dumps.
const DUMP: usize = 1500;
const SERIES: usize = 1500;

impl Assembly<'_> {
    fn packet(&mut self, entry: &Entry, run: RunId, body: &[u8]) -> Result<(), Halt> {
        let (packet, _) = Packet::read(body);
        self.allowance.add(body.len());
        let gap = self.number(run, entry.index);
        let chain = self.chains.entry(run).or_default();
        if gap {
            chain.torn = chain.parts.len();
        }
        let mut continued = false;
        for message in packet.all(payload::PROFILE_PACKET) {
            let mut parts = Vec::new();
            // The first reading reported damage. An empty part has no content.
            let outcome = each_part(message, |part| {
                if !part.is_empty() {
                    parts.push(part);
                }
            });
            let damaged = outcome.is_err() || entry.damaged;
            for part in parts {
                self.part(part, packet.timestamp, entry, run, damaged || gap)?;
            }
            continued = Outline::read(message).0.continued;
        }
        if !continued {
            let parts = self.chains.entry(run).or_default().drain();
            for part in parts {
                self.finish(run, part)?;
            }
        }
        Ok(())
    }

    /// Checks a packet's number in its run. Returns whether packets are missing directly before it,
    /// or its number is too low.
    fn number(&mut self, run: RunId, index: Option<u64>) -> bool {
        let chain = self.chains.entry(run).or_default();
        let Some(index) = index else { return false };
        let expected = chain.index.map_or(0, |last| last.saturating_add(1));
        if index < expected {
            if chain.index == Some(index) {
                self.health.repeated_profile_packets += 1;
                return false;
            }
            self.health.inconsistent_profile_packets += 1;
            return true;
        }
        chain.index = Some(index);
        let missing = index - expected;
        chain.lossy |= missing > 0;
        self.health.missing_profile_packets =
            self.health.missing_profile_packets.saturating_add(missing);
        missing > 0
    }

    fn part(
        &mut self,
        message: &[u8],
        written: Option<u64>,
        entry: &Entry,
        run: RunId,
        partial: bool,
    ) -> Result<(), Halt> {
        let (mut header, outcome) = Header::read(message);
        // A part without process and samples is not a dump.
        if header.pid == 0 && outcome.is_ok() && !has_samples(message) {
            return Ok(());
        }
        if header.heap.is_empty() {
            header.heap.push_str(UNNAMED_HEAP);
        }
        let mut unfinished = partial || outcome.is_err();
        let chain = self.chains.entry(run).or_default();
        let heap = (header.pid, header.heap.clone());
        let open = chain.open.get(&heap).copied();
        let same = open.filter(|&at| {
            let part = chain.parts[at].as_ref();
            part.is_some_and(|part| part.header.timestamp == header.timestamp)
        });
        let key = (run, header.pid, header.heap.clone());
        if same.is_none() {
            let is_known = self.series.contains_key(&key);
            let cost = DUMP + if is_known { 0 } else { SERIES };
            if !self.allowance.take(cost) {
                self.left_out += 1;
                return Ok(());
            }
            chain.open.insert(heap, chain.parts.len());
        }
        if let (Some(at), None) = (open, same)
            && let Some(mut before) = chain.parts[at].take()
        {
            // A later dump of the same heap: either one packet has several, or the packet that ends
            // the previous one is lost, which the packet numbers have shown.
            before.unfinished |= at < chain.torn;
            self.finish(run, before)?;
        }
        let series = self.series.entry(key).or_default();
        let weight = series.weight();
        series.allow(self.allowance.left());
        if same.is_none() {
            series.begin();
        }
        let counts = header.orig_sampling_interval_bytes > 0;
        let scopes = &self.runs.scopes[run.0 as usize];
        let health = &mut self.health;
        let shared = &mut self.shared;
        let callstacks = self.callstacks;
        let lost = self.lost_callstack;
        let mut resolve_lost = 0;
        let (mut malformed, mut left_out) = (0, 0);
        let mut hint = 0;
        let outcome = each_sample(message, |sample| {
            let iid = sample.callstack;
            let mut own = entry.own_tables.iter().chain([&entry.scope]);
            let mut found = own.find_map(|&scope| callstacks.find(scope, iid, &mut hint));
            if found.is_none() && scopes.len() > 1 {
                let all = shared
                    .entry(run)
                    .or_insert_with(|| callstacks.joined(scopes));
                found = all.get(&iid).copied();
            }
            let (key, callsite) = match found {
                Some(at) if entry.own_tables.is_some() => {
                    let callsite = callstacks.callsite(at);
                    (Key::Callsite(callsite.0), callsite)
                }
                Some(at) => (Key::Defined(at.0), callstacks.callsite(at)),
                None => {
                    resolve_lost += 1;
                    (Key::Undefined(iid), lost)
                }
            };
            let taken = series.take(&sample, counts, key, callsite);
            malformed += u64::from(taken == Taken::Malformed);
            left_out += u64::from(taken == Taken::LeftOut);
        });
        // The last sample within the limit can take more than was left.
        let grown = series.weight() - weight;
        let is_paid = self.allowance.take(grown.min(self.allowance.left()));
        debug_assert!(is_paid, "the weight taken is capped at what is left");
        if left_out > 0 {
            unfinished = true;
            self.left_out += 1;
            self.first_left_out.get_or_insert(entry.place);
        }
        health.malformed_samples += malformed;
        if let Err(error) = outcome {
            unfinished = true;
            health.add_damage(
                entry.place.offset,
                u64::from(entry.place.length),
                format!("cannot read all samples: {error}"),
            );
        }
        let chain = self.chains.entry(run).or_default();
        match same {
            Some(at) => {
                let part = chain.parts[at].as_mut().expect("the open part exists");
                part.header = header;
                part.written = written.or(part.written);
                part.unfinished |= unfinished;
                part.lost_callstacks += resolve_lost;
            }
            None => chain.parts.push(Some(Part {
                header,
                written,
                unfinished,
                open: false,
                lost_callstacks: resolve_lost,
            })),
        }
        Ok(())
    }

    fn finish(&mut self, run: RunId, part: Part) -> Result<(), Halt> {
        let Part {
            header,
            written,
            unfinished,
            open,
            lost_callstacks,
        } = part;
        // Those of an open dump can still be defined; the count is a lower bound anyway.
        self.health.lost_callstacks += if open { 0 } else { lost_callstacks };
        let series = self
            .series
            .get_mut(&(run, header.pid, header.heap.clone()))
            .expect("a part opens its series");
        let requests = &self.recording.requests;
        let asked_for_maximum = !requests.is_empty() && requests.iter().all(|r| r.dump_at_max);
        // Frees of Java allocations are unreliable.
        let kind = if header.heap == ART_HEAP {
            DumpKind::AllocationsOnly
        } else if series.is_at_maximum() || asked_for_maximum {
            DumpKind::AtMaximum
        } else {
            DumpKind::Cumulative
        };
        let lossy = self.chains.get(&run).is_some_and(|chain| chain.lossy);
        let samples = series.finish(kind, lossy && !unfinished);
        let started = series.started(header.start_timestamp.unwrap_or_default());
        if header.flags.disconnected {
            series.end();
        }
        let convert = |time, by: &ToClock| match time {
            0 => None,
            time => by.convert(Clock::MONOTONIC_COARSE, time),
        };
        let time_ns = convert(header.timestamp, &self.to_trace_clock);
        let signed = |time| {
            let time = self
                .to_trace_clock
                .convert_signed(Clock::MONOTONIC_COARSE, time);
            time.and_then(|time| i64::try_from(time).ok())
        };
        let window_ns = signed(header.timestamp).map(|end| {
            let start = header.start_timestamp.and_then(signed);
            (start.unwrap_or(end), end)
        });
        if time_ns.is_none() && header.timestamp != 0 {
            self.health.dumps_without_clock += 1;
        }
        let process = self.recording.processes.get(&header.pid);
        if let Some(stop) = self.health.stop_timed_out_ns {
            let is_final = written.or(time_ns).is_none_or(|at| at >= stop);
            let last = (!is_final && !header.flags.has_ended()).then_some(time_ns);
            self.last.insert((header.pid, header.heap.clone()), last);
        }
        let sampling_interval_bytes = match header.sampling_interval_bytes {
            0 if header.heap == UNNAMED_HEAP && !header.flags.rejected_concurrent => {
                requested_interval(&self.recording.requests)
            }
            bytes => bytes,
        };
        (self.sink)(HeapDump {
            pid: header.pid,
            process: process.map(|p| p.name.clone()).unwrap_or_default(),
            heap: header.heap,
            time_ns,
            wall_time_ns: convert(header.timestamp, &self.to_wall_clock),
            start_ns: convert(started, &self.to_trace_clock),
            window_ns,
            raw_time_ns: header.timestamp,
            written_ns: written,
            sampling_interval_bytes,
            orig_sampling_interval_bytes: header.orig_sampling_interval_bytes,
            kind,
            flags: header.flags,
            unwinding_errors: header.unwinding_errors,
            heap_samples: header.heap_samples,
            unwinding_time_us: header.unwinding_time_us,
            client_spinlock_blocked_us: header.client_spinlock_blocked_us,
            unfinished,
            open,
            samples,
        })
    }

    fn end(mut self) -> Result<Health, Halt> {
        if let Some(place) = self.first_left_out {
            self.health.add_damage(
                place.offset,
                u64::from(place.length),
                format!(
                    "memory limit for a trace of this size exceeded; left out parts of dumps: {}",
                    self.left_out
                ),
            );
        }
        let mut left: Vec<(RunId, Chain)> = self.chains.drain().collect();
        left.sort_unstable_by_key(|(run, _)| *run);
        for (run, mut chain) in left {
            for mut part in chain.drain() {
                (part.unfinished, part.open) = (true, true);
                self.finish(run, part)?;
            }
        }
        let processes = &self.recording.processes;
        let missing = self.last.into_iter().filter_map(|((pid, heap), time_ns)| {
            Some(LastDump {
                pid,
                process: processes
                    .get(&pid)
                    .map(|p| p.name.clone())
                    .unwrap_or_default(),
                heap,
                time_ns: time_ns?,
            })
        });
        self.health.final_dumps_missing = missing.collect();
        Ok(self.health)
    }
}

/// Returns the sampling interval that the config requests, because dumps before Android 12 do not have
/// theirs; 0 if it is unknown, or differs between data sources. Bytes.
fn requested_interval(requests: &[HeapRequest]) -> u64 {
    let mut intervals = requests
        .iter()
        .map(|request| request.sampling_interval_bytes);
    let first = intervals.next().unwrap_or_default();
    match intervals.all(|other| other == first) {
        true => first,
        false => 0,
    }
}

#[cfg(test)]
mod tests {
    use crate::made::{bytes, number};
    use crate::{Trace, TraceError};
    use std::io::Cursor;

    #[test]
    fn windows_begin_with_the_previous_dump_and_can_be_negative() {
        let clock = |id, time| bytes(1, &[number(1, id), number(2, time)].concat());
        let snapshot = bytes(6, &[clock(4, 10), clock(6, 0)].concat());
        let dump = |index, times: &[(u32, u64)]| {
            let sample = bytes(2, &[number(1, 1), number(2, 100), number(5, 1)].concat());
            let times = times.iter().flat_map(|&(field, time)| number(field, time));
            let part = [number(1, 7), bytes(11, b"h"), sample, times.collect()].concat();
            let packet = [bytes(5, &part), number(7, index)].concat();
            [number(10, 1), bytes(37, &packet)].concat()
        };
        let packets = [snapshot, dump(0, &[]), dump(1, &[(9, 25), (15, 5)])];
        let trace: Vec<u8> = packets.iter().flat_map(|packet| bytes(1, packet)).collect();
        let mut trace = Trace::open(Box::new(Cursor::new(trace))).unwrap();
        let mut windows = Vec::new();
        let read = trace.read_dumps::<TraceError>(|dump| {
            windows.push(dump.window_ns);
            Ok(())
        });
        read.unwrap();
        assert_eq!(windows, [Some((-10, -10)), Some((-5, 15))]);
    }
}
