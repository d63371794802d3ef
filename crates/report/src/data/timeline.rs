//! Memory of processes over time, as columns for the viewer: readings with their times, runs of
//! processes, gaps. The size is bounded: of a long recording, the prominent readings are kept.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

use super::words::Words;
use heaptap_model::timeline::{self as seen, Entry, Observation, Source};

/// Maximum number of process runs; those with the most readings are kept.
const PROCESSES: usize = 64;
/// Maximum number of readings of one kind and process.
const ROWS: usize = 3000;
/// Maximum number of labels, and of actions by heaptap.
const NOTES: usize = 500;
/// Maximum characters of a reason.
const MAX_WHY: usize = 400;

/// Returns milliseconds with microseconds: shorter as text, and precise enough.
pub(crate) fn milliseconds(ns: u64) -> f64 {
    // Microseconds are exact in a double for centuries.
    (ns / 1000) as f64 / 1000.0
}

/// All data over time. Times are milliseconds since the device booted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// First reading.
    pub from_ms: f64,
    /// Last reading.
    pub to_ms: f64,
    /// Texts that rows refer to by index: sources, reasons, collectors.
    pub words: Vec<String>,
    /// Process runs in order of their start.
    pub processes: Vec<Process>,
    /// Memory of the whole device: `total`, `available`, `free`, `swap_free`.
    pub system: Rows,
    pub labels: Vec<Note>,
    /// Readings taken of a process for a label, by time; an empty text stands for the end.
    #[serde(default)]
    pub captures: Vec<Note>,
    /// Actions by heaptap that affect other values.
    pub ours: Vec<Note>,
    /// Failed readings.
    pub unread: Vec<Unread>,
    /// Cost of reading, by source.
    pub cost: Vec<Cost>,
    /// Original number of readings, if not all are kept.
    pub thinned_from: Option<usize>,
}

/// Run of a process.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Process {
    pub pid: u32,
    /// Process name; empty if unknown.
    pub process: String,
    /// Whether a process with this name existed before.
    pub restarted: bool,
    /// First reading.
    pub from_ms: f64,
    /// Last reading.
    pub to_ms: f64,
    /// Time at which it was seen to have exited.
    pub gone_ms: Option<f64>,
    /// `rss`, `anon`, `file`, `shmem`, `swap`, `oom_score_adj`.
    pub resident: Rows,
    /// `java`, `native`, `code`, `stack`, `graphics`, `private_other`, `system`, `total_pss`,
    /// `total_rss`, `swap`, `native_size`, `native_alloc`, `java_size`, `java_alloc`.
    pub parts: Rows,
    /// `bytes`: memory counted by the graphics driver.
    pub graphics: Rows,
    /// `allocated`: counter of the Java heap, including unreachable objects.
    pub java_heap: Rows,
    /// `reason`, `collector` (indexes into `words`), `freed_objects`, `freed_bytes`,
    /// `freed_large_bytes`, `live`, `total`, `pauses`, `longest_pause_ns`, `paused_ns`,
    /// `duration_ns`, `ours`.
    pub collections: Rows,
}

/// Readings in chronological order, in columns.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Rows {
    pub ms: Vec<f64>,
    /// Sources, as indexes into `words`.
    pub source: Vec<usize>,
    /// Rows that are not connected to the previous one.
    pub breaks: Vec<usize>,
    /// Values by name; columns without values are omitted.
    pub columns: BTreeMap<String, Vec<Option<i64>>>,
}

/// Label or action by heaptap.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// Time or start time.
    pub ms: f64,
    /// End time, if it has a duration.
    pub until_ms: Option<f64>,
    /// Process ID; 0 for none.
    pub pid: u32,
    pub text: String,
}

/// Failed reading.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Unread {
    /// Source, as an index into `words`.
    pub source: usize,
    /// Process ID; 0 for none.
    pub pid: u32,
    /// Reason.
    pub why: String,
}

/// Cost of reading.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Cost {
    /// Source, as an index into `words`.
    pub source: usize,
    /// Number of measured readings.
    pub readings: u64,
    /// Time on the device, ms.
    pub device_ms: f64,
    /// Bytes over the connection.
    pub bytes: u64,
}

/// Readings of one kind and process under construction.
type Gathered = Vec<Row>;

/// One reading.
struct Row {
    boot_ns: u64,
    source: usize,
    /// Whether it is read periodically, so that a long silence is a gap.
    regular: bool,
    /// Whether it was taken for a label.
    is_captured: bool,
    values: Vec<(&'static str, Option<i64>)>,
}

/// Process run under construction.
#[derive(Default)]
struct Life {
    facts: Process,
    from_ns: u64,
    to_ns: u64,
    is_named: bool,
    resident: Gathered,
    parts: Gathered,
    graphics: Gathered,
    java_heap: Gathered,
    collections: Gathered,
}

impl Timeline {
    /// Returns the columns of all readings; `None` if there is nothing to show. `name_of` returns
    /// the names of processes that the timeline does not name.
    pub fn new(
        timeline: &seen::Timeline,
        name_of: &dyn Fn(u32) -> Option<String>,
    ) -> Option<Timeline> {
        let mut gathering = Gathering::default();
        let asked: BTreeSet<u32> = timeline.entries.iter().filter_map(meminfo_of).collect();
        for entry in &timeline.entries {
            gathering.capture(entry, asked.contains(&entry.pid));
        }
        for entry in &timeline.entries {
            // Memory mappings lack memory that only the graphics driver counts. Next to meminfo's
            // values, theirs would look as if that memory had disappeared.
            if matches!(&entry.seen, Observation::Parts(parts) if parts.source == Source::Smaps)
                && asked.contains(&entry.pid)
            {
                continue;
            }
            gathering.add(entry);
        }
        gathering.finish(name_of)
    }

    /// Returns the run of a process at a time, otherwise the nearest one.
    pub fn life(&self, pid: u32, ms: f64) -> Option<&Process> {
        let lives = self.processes.iter().filter(|life| life.pid == pid);
        let apart = |life: &&Process| (life.from_ms - ms).max(ms - life.to_ms).max(0.0);
        lives.min_by(|a, b| apart(a).total_cmp(&apart(b)))
    }

    /// Returns the row of `parts` that was read for a label at a time; the label is empty for the
    /// end.
    pub fn captured(&self, life: &Process, label: &str, ms: f64) -> Option<usize> {
        let fits = |capture: &&Note| capture.pid == life.pid && capture.text == label;
        let rows = self.captures.iter().filter(fits).filter_map(|capture| {
            let same = |at: &f64| *at == capture.ms;
            life.parts.ms.iter().position(same)
        });
        let apart = |row: &usize| (life.parts.ms[*row] - ms).abs();
        rows.min_by(|a, b| apart(a).total_cmp(&apart(b)))
    }
}

impl Rows {
    /// Returns the row nearest to a time.
    pub fn nearest(&self, ms: f64) -> Option<usize> {
        let after = self.ms.partition_point(|at| *at < ms);
        let places = [after.checked_sub(1), Some(after)];
        let there = places
            .into_iter()
            .flatten()
            .filter(|at| *at < self.ms.len());
        there.min_by(|a, b| {
            (self.ms[*a] - ms)
                .abs()
                .total_cmp(&(self.ms[*b] - ms).abs())
        })
    }

    pub fn value(&self, column: &str, row: usize) -> Option<i64> {
        self.columns.get(column)?.get(row).copied().flatten()
    }
}

#[derive(Default)]
struct Gathering {
    words: Words,
    lives: Vec<Life>,
    /// Current run of each process.
    open: BTreeMap<u32, usize>,
    system: Gathered,
    labels: Vec<Note>,
    captures: Vec<Note>,
    /// Times and processes of `captures`.
    captured: BTreeSet<(u64, u32)>,
    ours: Vec<Note>,
    unread: Vec<Unread>,
    /// Start and end of each gap in chronological order.
    gaps: Vec<(u64, u64)>,
    cost: BTreeMap<usize, Cost>,
    from_ns: Option<u64>,
    to_ns: u64,
}

/// Returns the process if the entry is a meminfo reading with its memory parts.
fn meminfo_of(entry: &Entry) -> Option<u32> {
    match &entry.seen {
        Observation::Parts(parts) if parts.source != Source::Smaps => Some(entry.pid),
        _ => None,
    }
}

fn size(bytes: u64) -> Option<i64> {
    Some(i64::try_from(bytes).unwrap_or(i64::MAX))
}

fn optional(bytes: Option<u64>) -> Option<i64> {
    bytes.and_then(size)
}

impl Gathering {
    fn life(&mut self, entry: &Entry) -> &mut Life {
        let (lives, now) = (&mut self.lives, entry.boot_ns);
        let place = *self.open.entry(entry.pid).or_insert_with(|| {
            lives.push(Life {
                facts: Process {
                    pid: entry.pid,
                    ..Process::default()
                },
                from_ns: now,
                ..Life::default()
            });
            lives.len() - 1
        });
        let life = &mut self.lives[place];
        life.to_ns = now;
        life
    }

    fn source(&mut self, source: Source) -> usize {
        self.words.place(source.word())
    }

    /// Adds the time of a reading that was taken for a label. `is_asked`: meminfo was read.
    fn capture(&mut self, entry: &Entry, is_asked: bool) {
        let Observation::Captured(kept) = &entry.seen else {
            return;
        };
        let source = match is_asked {
            true => Source::Meminfo,
            false => Source::Smaps,
        };
        if kept.what == source.word() {
            // Those of the end come last: a limit would drop them first.
            self.captures.push(noted(entry, None, &kept.label));
            self.captured.insert((entry.boot_ns, entry.pid));
        }
    }

    fn add(&mut self, entry: &Entry) {
        self.from_ns.get_or_insert(entry.boot_ns);
        self.to_ns = self.to_ns.max(entry.boot_ns);
        let is_captured = self.captured.contains(&(entry.boot_ns, entry.pid));
        let row = |source, regular, values| Row {
            boot_ns: entry.boot_ns,
            source,
            regular,
            is_captured,
            values,
        };
        match &entry.seen {
            Observation::Process(process) => {
                let known = self.open.get(&entry.pid).map(|at| &self.lives[*at].facts);
                let is_new = known.is_some_and(|known| {
                    !known.process.is_empty() && known.process != process.name
                });
                if is_new {
                    self.open.remove(&entry.pid);
                }
                let life = self.life(entry);
                if !life.is_named {
                    life.is_named = true;
                    life.facts.process = process.name.chars().take(400).collect();
                }
                life.facts.restarted |= process.restarted;
            }
            Observation::Gone => {
                if self.open.contains_key(&entry.pid) {
                    self.life(entry).facts.gone_ms = Some(milliseconds(entry.boot_ns));
                    self.open.remove(&entry.pid);
                }
            }
            Observation::Resident(resident) => {
                let source = self.source(resident.source);
                let values = vec![
                    ("rss", size(resident.rss)),
                    ("anon", optional(resident.anon)),
                    ("file", optional(resident.file)),
                    ("shmem", optional(resident.shmem)),
                    ("swap", optional(resident.swap)),
                    ("oom_score_adj", resident.oom_score_adj.map(i64::from)),
                ];
                let regular = resident.source == Source::Status;
                self.spend(entry, source);
                self.life(entry).resident.push(row(source, regular, values));
            }
            Observation::Parts(parts) => {
                let source = self.source(parts.source);
                let (native, java) = (parts.native_heap, parts.java_heap);
                let values = vec![
                    ("java", Some(parts.java)),
                    ("native", Some(parts.native)),
                    ("code", Some(parts.code)),
                    ("stack", Some(parts.stack)),
                    ("graphics", Some(parts.graphics)),
                    ("private_other", Some(parts.private_other)),
                    ("system", Some(parts.system)),
                    ("total_pss", Some(parts.total_pss)),
                    ("total_rss", optional(parts.total_rss)),
                    ("swap", optional(parts.swap)),
                    ("native_size", optional(native.map(|heap| heap.size))),
                    ("native_alloc", optional(native.map(|heap| heap.alloc))),
                    ("java_size", optional(java.map(|heap| heap.size))),
                    ("java_alloc", optional(java.map(|heap| heap.alloc))),
                ];
                self.spend(entry, source);
                self.life(entry).parts.push(row(source, true, values));
            }
            Observation::Graphics(graphics) => {
                let source = self.source(graphics.source);
                let values = vec![("bytes", size(graphics.bytes))];
                self.spend(entry, source);
                self.life(entry).graphics.push(row(source, true, values));
            }
            Observation::JavaHeap(heap) => {
                let source = self.source(heap.source);
                let values = vec![("allocated", size(heap.allocated))];
                self.life(entry).java_heap.push(row(source, false, values));
            }
            Observation::Collection(collection) => self.collection(entry, collection),
            Observation::System(system) => {
                let source = self.source(system.source);
                let values = vec![
                    ("total", optional(system.total)),
                    ("available", optional(system.available)),
                    ("free", optional(system.free)),
                    ("swap_free", optional(system.swap_free)),
                ];
                self.spend(entry, source);
                self.system.push(row(source, false, values));
            }
            Observation::Label(label) => note(&mut self.labels, entry, None, &label.label),
            Observation::HeaptapAction(ours) => {
                note(&mut self.ours, entry, Some(ours.until_ns), &ours.what)
            }
            Observation::Unreadable(unread) => {
                let source = self.source(unread.source);
                // What is missing is at the end.
                let mut unread = unread.clone();
                unread.why = unread.why.chars().take(MAX_WHY / 2).collect();
                self.unread(entry, source, &unread.reason());
            }
            Observation::Missed(missed) => {
                let source = self.words.place(&missed.what);
                let why = match missed.label.as_str() {
                    "" => missed.why.clone(),
                    label => format!("at {label}: {}", missed.why),
                };
                self.unread(entry, source, &why);
            }
            Observation::Gap(gap) => {
                let source = self.words.place("gap");
                self.unread(entry, source, &gap.why);
                if self.gaps.len() < NOTES {
                    self.gaps.push((entry.boot_ns, gap.until_ns));
                }
            }
            // Files next to the timeline, and the total cost of observation, are not readings.
            Observation::Captured(_) | Observation::Cost(_) => {}
        }
    }

    fn unread(&mut self, entry: &Entry, source: usize, why: &str) {
        if self.unread.len() < NOTES {
            self.unread.push(Unread {
                source,
                pid: entry.pid,
                why: why.chars().take(MAX_WHY).collect(),
            });
        }
    }

    fn collection(&mut self, entry: &Entry, collection: &seen::Collection) {
        let source = match collection.source {
            Some(source) => self.source(source),
            None => self.words.place(""),
        };
        let word = |words: &mut Words, text: &str| size(words.place(text) as u64);
        let paused = collection
            .pauses
            .iter()
            .fold(0u64, |sum, p| sum.saturating_add(*p));
        let values = vec![
            ("reason", word(&mut self.words, &collection.reason)),
            ("collector", word(&mut self.words, &collection.collector)),
            ("freed_objects", optional(collection.freed_objects)),
            ("freed_bytes", collection.freed_bytes),
            (
                "freed_large_bytes",
                collection.freed_large.map(|(_, bytes)| bytes),
            ),
            ("live", optional(collection.live)),
            ("total", optional(collection.total)),
            ("pauses", size(collection.pauses.len() as u64)),
            (
                "longest_pause_ns",
                optional(collection.pauses.iter().max().copied()),
            ),
            ("paused_ns", size(paused)),
            ("duration_ns", optional(collection.duration)),
            ("ours", Some(i64::from(collection.ours))),
        ];
        let row = Row {
            boot_ns: entry.boot_ns,
            source,
            regular: false,
            is_captured: false,
            values,
        };
        self.life(entry).collections.push(row);
    }

    fn spend(&mut self, entry: &Entry, source: usize) {
        let Some(cost) = entry.cost else { return };
        let sum = self.cost.entry(source).or_default();
        sum.source = source;
        sum.readings += 1;
        sum.device_ms += cost.device_ns as f64 / 1e6;
        sum.bytes = sum.bytes.saturating_add(cost.bytes);
    }

    fn finish(mut self, name_of: &dyn Fn(u32) -> Option<String>) -> Option<Timeline> {
        let from_ns = self.from_ns?;
        let readings = |life: &Life| {
            life.resident.len()
                + life.parts.len()
                + life.graphics.len()
                + life.java_heap.len()
                + life.collections.len()
        };
        let all = self.lives.iter().map(readings).sum::<usize>() + self.system.len();
        self.lives.retain(|life| readings(life) > 0);
        if self.lives.len() > PROCESSES {
            self.lives
                .sort_by_key(|life| std::cmp::Reverse(readings(life)));
            self.lives.truncate(PROCESSES);
        }
        self.lives.sort_by_key(|life| life.from_ns);
        let mut kept = 0;
        let silent = self.gaps;
        let mut rows = |gathered: Gathered| {
            let rows = columns(gathered, &silent);
            kept += rows.ms.len();
            rows
        };
        let mut processes = Vec::with_capacity(self.lives.len());
        for life in self.lives {
            let mut process = life.facts;
            if process.process.is_empty() {
                process.process = name_of(process.pid).unwrap_or_default();
            }
            process.from_ms = milliseconds(life.from_ns);
            process.to_ms = milliseconds(life.to_ns);
            process.resident = rows(life.resident);
            process.parts = rows(life.parts);
            process.graphics = rows(life.graphics);
            process.java_heap = rows(life.java_heap);
            process.collections = rows(life.collections);
            processes.push(process);
        }
        let system = rows(self.system);
        if processes.is_empty() && system.ms.is_empty() {
            return None;
        }
        Some(Timeline {
            from_ms: milliseconds(from_ns),
            to_ms: milliseconds(self.to_ns),
            words: self.words.into_all(),
            processes,
            system,
            labels: self.labels,
            captures: self.captures,
            ours: self.ours,
            unread: self.unread,
            cost: self.cost.into_values().collect(),
            thinned_from: (kept < all).then_some(all),
        })
    }
}

fn note(notes: &mut Vec<Note>, entry: &Entry, until_ns: Option<u64>, text: &str) {
    if notes.len() < NOTES {
        notes.push(noted(entry, until_ns, text));
    }
}

fn noted(entry: &Entry, until_ns: Option<u64>, text: &str) -> Note {
    Note {
        ms: milliseconds(entry.boot_ns),
        until_ms: until_ns.map(milliseconds),
        pid: entry.pid,
        text: text.chars().take(200).collect(),
    }
}

/// Converts rows to columns: first finds gaps in all readings, then selects the rows to keep.
fn columns(gathered: Gathered, silent: &[(u64, u64)]) -> Rows {
    let after_gap = gaps(&gathered, silent);
    let kept = kept(&gathered);
    let mut rows = Rows::default();
    let mut last = None;
    for place in kept {
        let row = &gathered[place];
        let from = last.map_or(place, |last: usize| last + 1);
        if after_gap[from..=place].contains(&true) {
            rows.breaks.push(rows.ms.len());
        }
        rows.ms.push(milliseconds(row.boot_ns));
        rows.source.push(row.source);
        for &(name, value) in &row.values {
            match rows.columns.get_mut(name) {
                Some(column) => column.push(value),
                None => {
                    rows.columns.insert(name.to_owned(), vec![value]);
                }
            }
        }
        last = Some(place);
    }
    rows.columns
        .retain(|_, column| column.iter().any(Option::is_some));
    rows
}

/// Returns which rows follow a gap: four times the usual distance between readings of the same
/// source, or a recorded period without observation.
fn gaps(gathered: &Gathered, silent: &[(u64, u64)]) -> Vec<bool> {
    let mut after_gap = vec![false; gathered.len()];
    for at in 1..gathered.len() {
        let (from, to) = (gathered[at - 1].boot_ns, gathered[at].boot_ns);
        let before = silent.partition_point(|(begin, _)| *begin < to);
        let last = before.checked_sub(1).map(|last| silent[last]);
        // Readings of the trace can be within the gap; those are connected.
        after_gap[at] = last.is_some_and(|(begin, end)| {
            let common = end.min(to).saturating_sub(begin.max(from));
            common > end.saturating_sub(begin) / 2
        });
    }
    let regular: Vec<usize> = (0..gathered.len())
        .filter(|at| gathered[*at].regular)
        .collect();
    let apart = |pair: &[usize]| gathered[pair[1]].boot_ns - gathered[pair[0]].boot_ns;
    let mut usual: Vec<u64> = regular.windows(2).map(apart).collect();
    if usual.len() < 3 {
        return after_gap;
    }
    usual.sort_unstable();
    let most = usual[usual.len() / 2].saturating_mul(4).max(1_000_000_000);
    for at in 1..gathered.len() {
        let (before, row) = (&gathered[at - 1], &gathered[at]);
        let both = before.regular && row.regular;
        after_gap[at] |= both && row.boot_ns - before.boot_ns > most;
    }
    after_gap
}

/// Returns the indexes of the rows to keep, in order: all, or the minimum and maximum of each
/// column in equal periods, the first and last row of each period, and the captures of labels.
fn kept(gathered: &Gathered) -> Vec<usize> {
    if gathered.len() <= ROWS {
        return (0..gathered.len()).collect();
    }
    let width = gathered.first().map_or(1, |row| row.values.len());
    let stretches = (ROWS / (2 * width + 2)).max(1) as u128;
    let first = gathered[0].boot_ns;
    let span = u128::from(gathered[gathered.len() - 1].boot_ns - first) + 1;
    let stretch = |at: usize| u128::from(gathered[at].boot_ns - first) * stretches / span;
    let mut kept = Vec::new();
    let mut from = 0;
    while from < gathered.len() {
        let mut to = from;
        while to < gathered.len() && stretch(to) == stretch(from) {
            to += 1;
        }
        let mut places = vec![from, to - 1];
        places.extend((from..to).filter(|at| gathered[*at].is_captured));
        for column in 0..width {
            let value = |at: &usize| gathered[*at].values.get(column).and_then(|v| v.1);
            let with = || (from..to).filter(|at| value(at).is_some());
            places.extend(with().min_by_key(|at| value(at)));
            places.extend(with().max_by_key(|at| value(at)));
        }
        places.sort_unstable();
        places.dedup();
        kept.extend(places);
        from = to;
    }
    kept
}

#[cfg(test)]
mod tests;
