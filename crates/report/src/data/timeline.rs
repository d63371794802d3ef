//! The memory of processes over time, as columns for the viewer: what was read at which moment,
//! which readings belong together, where there are gaps. Bounded: of a long recording, those
//! readings stay that stand out.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

use super::words::Words;
use heaptap_model::timeline::{self as seen, Entry, Observation, Source};

/// Processes (lives of them); those with most readings.
const PROCESSES: usize = 64;
/// Readings of one kind of one process.
const ROWS: usize = 3000;
/// Labels, and what was done by heaptap, of each.
const NOTES: usize = 500;

/// All that is known over time. Times are milliseconds since the phone's boot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// The first reading.
    pub from_ms: f64,
    /// The last one.
    pub to_ms: f64,
    /// Texts that rows name by place: sources, reasons, collectors.
    pub words: Vec<String>,
    /// Lives of processes, in order of their begin.
    pub processes: Vec<Process>,
    /// The whole phone's memory: `total`, `available`, `free`, `swap_free`.
    pub system: Rows,
    /// Labels.
    pub labels: Vec<Note>,
    /// What heaptap did that shows in other figures.
    pub ours: Vec<Note>,
    /// What could not be read.
    pub unread: Vec<Unread>,
    /// What reading cost, by source.
    pub cost: Vec<Cost>,
    /// Readings that were there, where not all are.
    pub thinned_from: Option<usize>,
}

/// A life of a process.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Its name; empty where not known.
    pub process: String,
    /// Another process of this name was there before.
    pub restarted: bool,
    /// Its first reading.
    pub from_ms: f64,
    /// Its last one.
    pub to_ms: f64,
    /// When it was seen to be gone.
    pub gone_ms: Option<f64>,
    /// `rss`, `anon`, `file`, `shmem`, `swap`, `oom_score_adj`.
    pub resident: Rows,
    /// `java`, `native`, `code`, `stack`, `graphics`, `private_other`, `system`, `total_pss`,
    /// `total_rss`, `swap`, `native_size`, `native_alloc`, `java_size`, `java_alloc`.
    pub parts: Rows,
    /// `bytes`: what the graphics driver counts.
    pub graphics: Rows,
    /// `allocated`: the Java heap's counter, garbage included.
    pub java_heap: Rows,
    /// `reason`, `collector` (places in `words`), `freed_objects`, `freed_bytes`,
    /// `freed_large_bytes`, `live`, `total`, `pauses`, `longest_pause_ns`, `paused_ns`,
    /// `duration_ns`, `ours`.
    pub collections: Rows,
}

/// Readings in order of time, in columns.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Rows {
    /// When.
    pub ms: Vec<f64>,
    /// From what: places in `words`.
    pub source: Vec<usize>,
    /// Rows that no line joins with the one before.
    pub breaks: Vec<usize>,
    /// What was read, by name; a column that no row has is left out.
    pub columns: BTreeMap<String, Vec<Option<i64>>>,
}

/// A label, or something that heaptap did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// When, or from when on.
    pub ms: f64,
    /// Until when, where it took time.
    pub until_ms: Option<f64>,
    /// The process; 0: none.
    pub pid: u32,
    /// What.
    pub text: String,
}

/// Something that could not be read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Unread {
    /// What was tried, a place in `words`.
    pub source: usize,
    /// The process; 0: none.
    pub pid: u32,
    /// Why not.
    pub why: String,
}

/// What reading cost.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Cost {
    /// What was read, a place in `words`.
    pub source: usize,
    /// How often the cost was measured.
    pub readings: u64,
    /// Time on the phone, ms.
    pub device_ms: f64,
    /// Bytes over the connection.
    pub bytes: u64,
}

/// A kind of reading of a process while it is gathered.
type Gathered = Vec<Row>;

/// One reading.
struct Row {
    boot_ns: u64,
    source: usize,
    /// Read again and again, so that a long silence is a gap.
    regular: bool,
    values: Vec<(&'static str, Option<i64>)>,
}

/// A life while it is gathered.
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
    /// Columns of all readings; `None` where there is nothing to show. `name_of` knows the
    /// processes that the timeline itself does not name.
    pub fn of(
        timeline: &seen::Timeline,
        name_of: &dyn Fn(u32) -> Option<String>,
    ) -> Option<Timeline> {
        let mut gathering = Gathering::default();
        let asked: BTreeSet<u32> = timeline.entries.iter().filter_map(meminfo_of).collect();
        for entry in &timeline.entries {
            // Mappings lack what the graphics driver alone counts: beside meminfo's figures
            // theirs would look as if that had gone.
            if matches!(&entry.seen, Observation::Parts(parts) if parts.source == Source::Smaps)
                && asked.contains(&entry.pid)
            {
                continue;
            }
            gathering.add(entry);
        }
        gathering.finish(name_of)
    }

    /// The life of a process at a moment; else the nearest one.
    pub fn life(&self, pid: u32, ms: f64) -> Option<&Process> {
        let lives = self.processes.iter().filter(|life| life.pid == pid);
        let apart = |life: &&Process| (life.from_ms - ms).max(ms - life.to_ms).max(0.0);
        lives.min_by(|a, b| apart(a).total_cmp(&apart(b)))
    }
}

impl Rows {
    /// The row nearest to a moment.
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

    /// What a row holds in a column.
    pub fn value(&self, column: &str, row: usize) -> Option<i64> {
        self.columns.get(column)?.get(row).copied().flatten()
    }
}

#[derive(Default)]
struct Gathering {
    words: Words,
    lives: Vec<Life>,
    /// The life of each process that goes on.
    open: BTreeMap<u32, usize>,
    system: Gathered,
    labels: Vec<Note>,
    ours: Vec<Note>,
    unread: Vec<Unread>,
    /// Begin and end of each, in order of time.
    gaps: Vec<(u64, u64)>,
    cost: BTreeMap<usize, Cost>,
    from_ns: Option<u64>,
    to_ns: u64,
}

/// The process of which meminfo says how its memory divides.
fn meminfo_of(entry: &Entry) -> Option<u32> {
    match &entry.seen {
        Observation::Parts(parts) if parts.source != Source::Smaps => Some(entry.pid),
        _ => None,
    }
}

fn ms(ns: u64) -> f64 {
    // To a microsecond: shorter as a text, and nobody sees more.
    (ns / 1000) as f64 / 1000.0
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

    fn add(&mut self, entry: &Entry) {
        self.from_ns.get_or_insert(entry.boot_ns);
        self.to_ns = self.to_ns.max(entry.boot_ns);
        let row = |source, regular, values| Row {
            boot_ns: entry.boot_ns,
            source,
            regular,
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
                    self.life(entry).facts.gone_ms = Some(ms(entry.boot_ns));
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
            Observation::Ours(ours) => note(&mut self.ours, entry, Some(ours.until_ns), &ours.what),
            Observation::Unread(unread) => {
                let source = self.source(unread.source);
                self.unread(entry, source, &unread.why);
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
            // Files that lie beside the timeline, and what all of observing took: no readings.
            Observation::Kept(_) | Observation::Spent(_) => {}
        }
    }

    fn unread(&mut self, entry: &Entry, source: usize, why: &str) {
        if self.unread.len() < NOTES {
            self.unread.push(Unread {
                source,
                pid: entry.pid,
                why: why.chars().take(400).collect(),
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
            process.from_ms = ms(life.from_ns);
            process.to_ms = ms(life.to_ns);
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
            from_ms: ms(from_ns),
            to_ms: ms(self.to_ns),
            words: self.words.into_all(),
            processes,
            system,
            labels: self.labels,
            ours: self.ours,
            unread: self.unread,
            cost: self.cost.into_values().collect(),
            thinned_from: (kept < all).then_some(all),
        })
    }
}

fn note(notes: &mut Vec<Note>, entry: &Entry, until_ns: Option<u64>, text: &str) {
    if notes.len() < NOTES {
        notes.push(Note {
            ms: ms(entry.boot_ns),
            until_ms: until_ns.map(ms),
            pid: entry.pid,
            text: text.chars().take(200).collect(),
        });
    }
}

/// Rows into columns: gaps first, by all readings; then those that stay.
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
        rows.ms.push(ms(row.boot_ns));
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

/// Which rows come so long after the one before that something was missed: four times what is
/// usual between two of the same source; or a time of which it is said that nothing was seen.
fn gaps(gathered: &Gathered, silent: &[(u64, u64)]) -> Vec<bool> {
    let mut after_gap = vec![false; gathered.len()];
    for at in 1..gathered.len() {
        let (from, to) = (gathered[at - 1].boot_ns, gathered[at].boot_ns);
        let before = silent.partition_point(|(begin, _)| *begin < to);
        let last = before.checked_sub(1).map(|last| silent[last]);
        // Readings of the trace may lie within it: those are joined.
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

/// Places of the rows that stay, in order: all, or those that hold the least and the most of a
/// column in equal stretches of time, and each stretch's first and last.
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
