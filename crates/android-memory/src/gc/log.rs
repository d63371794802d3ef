//! Collections in a log, by process. Accepts any number of lines, one after another. Keeps a
//! limited number of events about collections and counts the rest.

use std::collections::{BTreeMap, BTreeSet};

use super::event::{Blocked, Event, Logged, Runtime};
use super::logcat::{Chatty, Format, LogLine, Row, Splitter, chatty};
use super::message::parse_event;
use super::observed::{Observed, ObservedBy};
use super::oom::OutOfMemory;
use super::size::plain;
use super::stamp::Axis;

/// Maximum number of collections of all processes; further ones are only counted.
const MAX_COLLECTIONS: usize = 300_000;
/// Maximum number of processes.
const MAX_PROCESSES: usize = 16_000;
/// Maximum number of waits and of errors per process.
const MAX_OTHERS: usize = 20_000;
/// Maximum number of unknown lines kept per process as examples.
const EXAMPLES: usize = 5;
/// Maximum time between two lines. A longer time means that a clock was set, or that another log
/// begins.
pub(super) const MAX_SILENCE_NS: i64 = 12 * 3600 * 1_000_000_000;
/// Maximum number of characters of an example or a name.
const MAX_TEXT: usize = 300;

/// A collection with the time of its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timed {
    /// Time on the log's axis: ns since 1970 of the device's wall clock, or since its boot. The
    /// year is a guess if the lines do not have one.
    pub at: Option<i64>,
    /// Contents of the line.
    pub logged: Logged,
    /// True if a signal requested it: SIGUSR1 was logged just before.
    pub by_signal: bool,
}

/// Events of one process in a log.
#[derive(Debug, Clone, Default)]
pub struct ProcessLog {
    /// Process ID, if the format has it.
    pub pid: Option<u32>,
    /// Process name or the end of it.
    pub name: Option<Name>,
    pub collections: Vec<Timed>,
    /// Waits of threads for a collection.
    pub blocked: Vec<Blocked>,
    /// `OutOfMemoryError`s, thrown or reported.
    pub out_of_memory: Vec<(Option<i64>, OutOfMemory)>,
    /// Heap limit from its own lines, bytes.
    pub limit: Option<u64>,
    /// Number of times that the heap would have grown beyond its limit.
    pub clamps: u64,
    /// Number of times that the heap grew because an allocation did not fit.
    pub grown: u64,
    /// Number of times that softly referenced objects were collected.
    pub soft: u64,
    /// Number of collections requested by a signal.
    pub signals: u64,
    /// Number of lines about the collector in an unknown form, and examples of them.
    pub unknown: (u64, Vec<String>),
    /// Number of lines of this process that the device's log discarded.
    pub dropped: u64,
    /// Start and end of the process within the log's written time, ns. `None` means the start or
    /// end of the log.
    life: (Option<u64>, Option<u64>),
    /// True if SIGUSR1 came and its collection is still expected.
    forced: bool,
    /// True if the process died: the next process with its ID is a new one.
    dead: bool,
}

/// Name of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// Name as printed in the log.
    pub text: String,
    /// True if it is the tag of a line.
    pub from_tag: bool,
}

impl Name {
    /// Returns true if the name can be a part of a longer one. ART tags its lines with the last 15
    /// characters of the name, and some versions leave out the last of them.
    pub(crate) fn may_be_cut(&self) -> bool {
        self.from_tag && matches!(self.text.chars().count(), 14 | 15)
    }
}

/// Event in a line, for code that follows a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GcLogEvent {
    /// Time on the log's axis, ns.
    pub at: Option<i64>,
    pub pid: Option<u32>,
    pub event: Event,
}

/// Process ID with the count of its previous owners; without a process ID, the tag.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key(Option<u32>, u32, String);

/// A log, as read so far.
#[derive(Debug, Clone, Default)]
pub struct GcLog {
    splitter: Splitter,
    axis: Axis,
    processes: BTreeMap<Key, ProcessLog>,
    /// For each process ID, the count of its previous owners.
    lives: BTreeMap<u32, u32>,
    names: BTreeMap<u32, String>,
    last: Option<Key>,
    kept: usize,
    /// Number of collections beyond the limit.
    pub left_out: u64,
    /// Number of lines read.
    pub lines: u64,
    /// Number of lines in a logcat form. The others can come from a log or from any other text.
    pub formed: u64,
    /// Formats found in the lines.
    pub formats: BTreeSet<Format>,
    /// Times of the first and the last line, on the log's axis, ns.
    pub span: Option<(i64, i64)>,
    /// Total time between successive lines, ns.
    pub written_ns: u64,
    /// Time of the previous line.
    latest: Option<i64>,
    /// For each process ID, the value of `written_ns` when it was last assigned.
    given: BTreeMap<u32, u64>,
}

impl GcLog {
    /// Creates a log whose lines without a year get `year`.
    pub fn of_year(year: i32) -> GcLog {
        GcLog {
            axis: Axis::from_year(year),
            ..GcLog::default()
        }
    }

    /// Reads the next line and returns its event about collections.
    pub fn push(&mut self, text: &str) -> Option<GcLogEvent> {
        self.lines += 1;
        let mut splitter = std::mem::take(&mut self.splitter);
        let event = match splitter.line(text) {
            Row::Line(line) => self.push_line(&line),
            Row::Divider => {
                self.formed += 1;
                None
            }
            Row::Nothing => {
                self.formed += u64::from(splitter.has_head());
                None
            }
        };
        self.splitter = splitter;
        event
    }

    /// Reads a line that another parser made.
    pub(super) fn push_line(&mut self, line: &LogLine<'_>) -> Option<GcLogEvent> {
        self.formed += u64::from(line.format != Format::Raw);
        self.line(line)
    }

    /// Sets the name of a process from another source.
    pub fn call(&mut self, pid: u32, name: &str) {
        self.names
            .insert(pid, name.chars().take(MAX_TEXT).collect());
    }

    /// Reads all lines of a text.
    pub fn push_all(&mut self, text: &str) {
        for line in text.split('\n') {
            self.push(line);
        }
    }

    /// Returns the written time of the log while `process` was alive.
    pub fn observed(&self, process: &ProcessLog) -> Option<Observed> {
        let (began, ended) = process.life;
        let until = ended.unwrap_or(self.written_ns);
        let ns = until.checked_sub(began.unwrap_or(0))?;
        (ns > 0).then_some(Observed {
            ns,
            by: ObservedBy::Log,
        })
    }

    /// Returns the processes, sorted by process ID.
    pub fn processes(&self) -> impl Iterator<Item = &ProcessLog> {
        self.processes.values().filter(|p| p.told_anything())
    }

    fn line(&mut self, line: &LogLine<'_>) -> Option<GcLogEvent> {
        let at = line.time.map(|time| self.axis.ns(time));
        if let Some(at) = at {
            let (first, last) = self.span.unwrap_or((at, at));
            self.span = Some((first.min(at), last.max(at)));
            let latest = self.latest.replace(at).unwrap_or(at);
            let apart = at.saturating_sub(latest);
            if (0..=MAX_SILENCE_NS).contains(&apart) {
                self.written_ns = self.written_ns.saturating_add(apart.unsigned_abs());
            }
        }
        self.life(line);
        if let Some(left_out) = chatty(line) {
            self.left_out_of(line, left_out);
            return None;
        }
        let event = parse_event(line)?;
        // Without a known format, accept only unambiguous events.
        if line.format == Format::Raw && !is_sure(&event) {
            return None;
        }
        self.formats.insert(line.format);
        let key = self.key(line)?;
        let name = self.name(line);
        let began = line.pid.and_then(|pid| self.given.get(&pid).copied());
        let process = self
            .processes
            .entry(key.clone())
            .or_insert_with(|| ProcessLog {
                pid: line.pid,
                life: (began, None),
                ..ProcessLog::default()
            });
        match (&process.name, name) {
            (None, name) => process.name = name,
            (Some(known), Some(name)) if known.from_tag && !name.from_tag => {
                process.name = Some(name);
            }
            _ => {}
        }
        let is_collection = matches!(event, Event::Collection(_));
        if is_collection && self.kept >= MAX_COLLECTIONS {
            self.left_out += 1;
        } else {
            self.kept += usize::from(is_collection);
            process.add(at, &event, line.message);
        }
        self.last = Some(key);
        Some(GcLogEvent {
            at,
            pid: line.pid,
            event,
        })
    }

    /// Reads lines about processes that start or end.
    fn life(&mut self, line: &LogLine<'_>) {
        match line.tag {
            Some("ActivityManager" | "am_proc_start" | "am_proc_died") => {}
            _ => return,
        }
        if let Some((pid, name)) = started(line) {
            let known = self.lives.contains_key(&pid) || self.names.contains_key(&pid);
            if self.names.len() < MAX_PROCESSES || known {
                self.names
                    .insert(pid, name.chars().take(MAX_TEXT).collect());
            }
            if self.lives.contains_key(&pid) {
                self.next_life(pid);
            }
            if self.given.len() < MAX_PROCESSES || self.given.contains_key(&pid) {
                self.given.insert(pid, self.written_ns);
            }
        } else if let Some(pid) = died(line) {
            let life = self.lives.get(&pid).copied().unwrap_or(0);
            if let Some(process) = self.processes.get_mut(&Key(Some(pid), life, String::new())) {
                process.dead = true;
                process.life.1 = Some(self.written_ns);
            }
        }
    }

    fn next_life(&mut self, pid: u32) {
        let life = self.lives.entry(pid).or_default();
        // Without events, the previous process cannot be distinguished from this one.
        if self
            .processes
            .contains_key(&Key(Some(pid), *life, String::new()))
        {
            *life += 1;
        }
    }

    fn key(&mut self, line: &LogLine<'_>) -> Option<Key> {
        let key = match line.pid {
            Some(pid) => {
                let life = self.lives.get(&pid).copied().unwrap_or(0);
                let now = Key(Some(pid), life, String::new());
                if self.processes.get(&now).is_some_and(|p| p.dead) {
                    self.next_life(pid);
                }
                let life = *self.lives.entry(pid).or_default();
                Key(Some(pid), life, String::new())
            }
            None => {
                let tag = line.tag.unwrap_or_default();
                Key(None, 0, tag.chars().take(MAX_TEXT).collect())
            }
        };
        let room = self.processes.len() < MAX_PROCESSES || self.processes.contains_key(&key);
        if !room {
            self.left_out += 1;
        }
        room.then_some(key)
    }

    fn name(&self, line: &LogLine<'_>) -> Option<Name> {
        let whole = line.package.or_else(|| {
            let name = self.names.get(&line.pid?)?;
            Some(name.as_str())
        });
        if let Some(name) = whole {
            return Some(Name {
                text: name.chars().take(MAX_TEXT).collect(),
                from_tag: false,
            });
        }
        // Since Android 9, the tag of the runtime's lines is a part of the process name.
        let tag = line.tag.filter(|tag| {
            !tag.is_empty()
                && !matches!(
                    *tag,
                    "art" | "zygote" | "zygote64" | "AndroidRuntime" | "System.err"
                )
                && !tag.starts_with("dalvikvm")
        })?;
        matches!(
            parse_event(line),
            Some(Event::Collection(_) | Event::Blocked(_) | Event::Forced)
        )
        .then(|| Name {
            text: tag.chars().take(MAX_TEXT).collect(),
            from_tag: true,
        })
    }

    fn left_out_of(&mut self, line: &LogLine<'_>, what: Chatty) {
        let Some(pid) = line.pid else { return };
        let life = self.lives.get(&pid).copied().unwrap_or(0);
        let key = Key(Some(pid), life, String::new());
        let is_last = self.last.as_ref() == Some(&key);
        if let Some(process) = self.processes.get_mut(&key) {
            match what {
                Chatty::Expired(lines) => process.dropped = process.dropped.saturating_add(lines),
                // A repetition of the last line matters only if that line was about collections.
                Chatty::Identical(lines) if is_last => {
                    process.dropped = process.dropped.saturating_add(lines);
                }
                Chatty::Identical(_) => {}
            }
        }
    }
}

impl ProcessLog {
    fn told_anything(&self) -> bool {
        !self.collections.is_empty()
            || !self.blocked.is_empty()
            || !self.out_of_memory.is_empty()
            || self.clamps + self.grown + self.soft + self.signals + self.unknown.0 > 0
    }

    /// Returns the virtual machine of the last collection.
    pub fn runtime(&self) -> Option<Runtime> {
        self.collections.last().map(|c| c.logged.runtime)
    }

    fn add(&mut self, at: Option<i64>, event: &Event, message: &str) {
        match event {
            Event::Collection(logged) => {
                let explicit = matches!(
                    logged.collection.reason.as_str(),
                    "Explicit" | "GC_EXPLICIT"
                );
                self.collections.push(Timed {
                    at,
                    logged: (**logged).clone(),
                    by_signal: explicit && std::mem::take(&mut self.forced),
                });
            }
            Event::Blocked(blocked) if self.blocked.len() < MAX_OTHERS => {
                self.blocked.push(blocked.clone());
            }
            Event::OutOfMemory(error) => {
                self.limit = error.growth_limit.or(self.limit);
                if self.out_of_memory.len() < MAX_OTHERS {
                    self.out_of_memory.push((at, (**error).clone()));
                }
            }
            Event::Clamp { to, .. } => {
                self.clamps += 1;
                self.limit = Some(*to);
            }
            Event::GrowHeap { .. } => self.grown += 1,
            Event::SoftReferences { .. } => self.soft += 1,
            Event::Forced => {
                self.signals += 1;
                self.forced = true;
            }
            Event::Other => {
                self.unknown.0 += 1;
                if self.unknown.1.len() < EXAMPLES {
                    let text: String = message.chars().take(MAX_TEXT).collect();
                    self.unknown.1.push(text);
                }
            }
            Event::Blocked(_) | Event::Blocking { .. } => {}
        }
    }
}

/// Returns whether an event is unambiguous, wherever its text was found.
fn is_sure(event: &Event) -> bool {
    !matches!(event, Event::Other | Event::Forced)
}

/// Parses `Start proc 123:com.example.app/u0a12 for …`; up to Android 4.4 `Start proc
/// com.example.app for …: pid=123 …`; and `am_proc_start: [0,123,10012,com.example.app,…]` of the
/// events log.
fn started<'a>(line: &LogLine<'a>) -> Option<(u32, &'a str)> {
    if line.tag == Some("am_proc_start") {
        let mut fields = line.message.strip_prefix('[')?.split(',');
        let pid = number(fields.nth(1)?)?;
        return Some((pid, fields.nth(1)?));
    }
    let rest = line.message.strip_prefix("Start proc ")?;
    if let Some((pid, rest)) = rest.split_once(':')
        && let Some(pid) = number(pid)
    {
        return Some((pid, rest.split(['/', ' ']).next()?));
    }
    let (name, rest) = rest.split_once(' ')?;
    let digits = rest.split("pid=").nth(1)?;
    Some((number(digits.split(' ').next()?)?, name))
}

/// Parses `Process com.example.app (pid 123) has died …` and `am_proc_died: [0,123,…]`.
fn died(line: &LogLine<'_>) -> Option<u32> {
    if line.tag == Some("am_proc_died") {
        return number(line.message.strip_prefix('[')?.split(',').nth(1)?);
    }
    let rest = line.message.strip_prefix("Process ")?;
    let (_, rest) = rest.split_once(" (pid ")?;
    let (pid, rest) = rest.split_once(')')?;
    rest.starts_with(" has died").then(|| number(pid)).flatten()
}

fn number(text: &str) -> Option<u32> {
    u32::try_from(plain(text)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> GcLog {
        let mut log = GcLog::default();
        log.push_all(text);
        log
    }

    const GC: &str = "Background concurrent copying GC freed 1KB AllocSpace bytes, 0(0B) LOS objects, 50% free, 11MB/22MB, paused 1us total 2us";

    #[test]
    fn processes_are_told_apart_and_named() {
        let log = read(&format!(
            "01-02 03:04:05.000  1  1 I ActivityManager: Start proc 77:com.example.first/u0a12 for activity {{x}}\n\
             01-02 03:04:06.000 77 78 I xample.first: {GC}\n\
             01-02 03:04:07.000 78 78 I ample.second: {GC}\n\
             01-02 03:04:08.000 77 78 I xample.first: {GC}\n\
             01-02 03:04:09.000  1  1 I ActivityManager: Process com.example.first (pid 77) has died: fore TOP\n\
             01-02 03:04:10.000  1  1 I am_proc_start: [0,77,10012,com.example.third,activity,x]\n\
             01-02 03:04:11.000 77 78 I xample.third: {GC}\n\
             01-02 03:04:12.000  1  1 I ActivityManager: Start proc com.old.app for activity com.old/.Main: pid=99 uid=10001 gids={{}}\n\
             01-02 03:04:12.000 99 99 D dalvikvm: GC_EXPLICIT freed <1K, 5% free 9000K/9500K, paused 1ms+1ms, total 20ms\n"
        ));
        let found: Vec<(Option<u32>, &str, bool, usize)> = log
            .processes()
            .map(|p| {
                let name = p.name.as_ref().unwrap();
                (
                    p.pid,
                    name.text.as_str(),
                    name.from_tag,
                    p.collections.len(),
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                (Some(77), "com.example.first", false, 2),
                (Some(77), "com.example.third", false, 1),
                (Some(78), "ample.second", true, 1),
                (Some(99), "com.old.app", false, 1),
            ]
        );
        assert_eq!(log.span.unwrap().1 - log.span.unwrap().0, 7_000_000_000);
        // The log observed each process while it was alive.
        let observed: Vec<u64> = log
            .processes()
            .map(|p| log.observed(p).map_or(0, |of| of.ns / 1_000_000_000))
            .collect();
        assert_eq!(observed, [4, 2, 7, 0]);
    }

    #[test]
    fn a_collection_behind_a_signal_is_the_signal_s() {
        let explicit = GC.replace("Background", "Explicit");
        let log = read(&format!(
            "I/x(7): SIGUSR1 forcing GC (no HPROF)\nI/x(7): {GC}\nI/x(7): {explicit}\nI/x(7): {explicit}\n\
             I/x(7): Clamp target GC heap from 193MB to 192MB\n\
             I/art(7): Skipping GC today\nI/chatty(7): uid=1 x expire 12 lines\n\
             E/AndroidRuntime(7): java.lang.OutOfMemoryError: Failed to allocate a 12 byte allocation with 4 free bytes and 96B until OOM, target footprint 4, growth limit 1024\n"
        ));
        let process = log.processes().next().unwrap();
        let signals: Vec<bool> = process.collections.iter().map(|c| c.by_signal).collect();
        assert_eq!(signals, [false, true, false]);
        assert_eq!(
            (process.clamps, process.signals, process.dropped),
            (1, 1, 12)
        );
        assert_eq!(process.limit, Some(1024));
        assert_eq!(process.unknown, (1, vec!["Skipping GC today".to_owned()]));
        assert_eq!(process.out_of_memory.len(), 1);
    }

    #[test]
    fn lines_without_a_number_are_kept_by_tag_and_raw_ones_where_they_are_sure() {
        let log = read(&format!(
            "I/one: {GC}\nI/two: {GC}\n{GC}\nSIGUSR1 forcing GC\nGC freed up\n"
        ));
        let found: Vec<Option<&str>> = log
            .processes()
            .map(|p| p.name.as_ref().map(|n| n.text.as_str()))
            .collect();
        assert_eq!(found, [None, Some("one"), Some("two")]);
        assert_eq!(
            log.processes()
                .map(|p| p.signals + p.unknown.0)
                .sum::<u64>(),
            0
        );
    }
}
