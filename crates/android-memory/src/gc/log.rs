//! The collections of a log, by process: lines go in one after another, however many; what
//! they say of collections is kept, up to a bound, and what was left out is counted.

use std::collections::{BTreeMap, BTreeSet};

use super::event::{Blocked, Event, Logged, Runtime};
use super::logcat::{Chatty, Format, LogLine, Row, Splitter, chatty};
use super::message::parse_event;
use super::observed::{Observed, ObservedBy};
use super::oom::OutOfMemory;
use super::size::plain;
use super::stamp::Axis;

/// Collections of all processes that are kept; those behind are counted.
const MOST_COLLECTIONS: usize = 300_000;
/// Processes that are told apart.
const MOST_PROCESSES: usize = 20_000;
/// Waits and errors that are kept of a process.
const MOST_OTHERS: usize = 20_000;
/// Lines in unknown words that are kept of a process as examples.
const EXAMPLES: usize = 5;
/// A longer time between two lines is no silence but a clock that was set, or another log.
pub(super) const LONGEST_SILENCE_NS: i64 = 12 * 3600 * 1_000_000_000;
/// Characters of each, and of a name.
const MOST_TEXT: usize = 300;

/// A collection, and when its line was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timed {
    /// ns since 1970 by the phone's wall clock, or since its boot: the axis of the log. The
    /// year is a guess where lines have none.
    pub at: Option<i64>,
    /// What its line says.
    pub logged: Logged,
    /// A signal asked for it: SIGUSR1 was logged just before.
    pub by_signal: bool,
}

/// What a log tells of one process.
#[derive(Debug, Clone, Default)]
pub struct ProcessLog {
    /// Its number, where the format has it.
    pub pid: Option<u32>,
    /// Its name, or the end of it.
    pub name: Option<Name>,
    /// Its collections, in the order of the log.
    pub collections: Vec<Timed>,
    /// Threads that waited for one.
    pub blocked: Vec<Blocked>,
    /// `OutOfMemoryError`s, thrown or reported.
    pub out_of_memory: Vec<(Option<i64>, OutOfMemory)>,
    /// What the heap may grow to at most, as its own lines say, bytes.
    pub limit: Option<u64>,
    /// How often it wanted to grow over that.
    pub clamps: u64,
    /// How often it grew because nothing fitted.
    pub grown: u64,
    /// How often it gave up what is softly referenced.
    pub soft: u64,
    /// Collections that a signal asked for.
    pub signals: u64,
    /// Lines of the collector in words that are not known, and the first of them.
    pub unknown: (u64, Vec<String>),
    /// Lines of this process that the phone's log threw away.
    pub dropped: u64,
    /// Of the time that the log was written, where it began and where it ended; the whole where
    /// it does not say.
    life: (Option<u64>, Option<u64>),
    /// SIGUSR1 came, and its collection is still to come.
    forced: bool,
    /// It died: the next of this number is another.
    dead: bool,
}

/// A process's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// As the log has it.
    pub text: String,
    /// It may be the end of a longer one: the tag of a line.
    pub from_tag: bool,
}

/// What a line said, for those who follow a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GcLogEvent {
    /// On the log's axis, ns.
    pub at: Option<i64>,
    /// Whose.
    pub pid: Option<u32>,
    /// What.
    pub event: Event,
}

/// Which process: its number, and which of those that had it; without a number, its tag.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key(Option<u32>, u32, String);

/// A log, as far as it was read.
#[derive(Debug, Clone, Default)]
pub struct GcLog {
    splitter: Splitter,
    axis: Axis,
    processes: BTreeMap<Key, ProcessLog>,
    /// Of a number, the process that has it now.
    lives: BTreeMap<u32, u32>,
    names: BTreeMap<u32, String>,
    last: Option<Key>,
    kept: usize,
    /// Collections beyond those that are kept.
    pub left_out: u64,
    /// Lines of any kind that were read.
    pub lines: u64,
    /// Those of them that have a form of logcat: others may be of a log, or of anything.
    pub formed: u64,
    /// The formats they had.
    pub formats: BTreeSet<Format>,
    /// When the first and the last line were written, on the log's axis.
    pub span: Option<(i64, i64)>,
    /// For how long lines were written, by those that follow each other.
    pub written_ns: u64,
    /// When the line before was.
    latest: Option<i64>,
    /// Of a number, when in that time it was given last.
    given: BTreeMap<u32, u64>,
}

impl GcLog {
    /// A log whose lines without a year are of `year`.
    pub fn of_year(year: i32) -> GcLog {
        GcLog {
            axis: Axis::from_year(year),
            ..GcLog::default()
        }
    }

    /// Reads the next line; what it says of collections.
    pub fn push(&mut self, text: &str) -> Option<GcLogEvent> {
        self.lines += 1;
        let mut splitter = std::mem::take(&mut self.splitter);
        let event = match splitter.line(text) {
            Row::Line(line) => {
                self.formed += u64::from(line.format != Format::Raw);
                self.line(&line)
            }
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

    /// Gives a process its name, where that is known beside the log.
    pub fn call(&mut self, pid: u32, name: &str) {
        self.names
            .insert(pid, name.chars().take(MOST_TEXT).collect());
    }

    /// Reads all lines of a piece of text.
    pub fn push_all(&mut self, text: &str) {
        for line in text.split('\n') {
            self.push(line);
        }
    }

    /// For how long the log was written while `process` lived.
    pub fn observed(&self, process: &ProcessLog) -> Option<Observed> {
        let (began, ended) = process.life;
        let until = ended.unwrap_or(self.written_ns);
        let ns = until.checked_sub(began.unwrap_or(0))?;
        (ns > 0).then_some(Observed {
            ns,
            by: ObservedBy::Log,
        })
    }

    /// The processes, by number.
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
            if (0..=LONGEST_SILENCE_NS).contains(&apart) {
                self.written_ns = self.written_ns.saturating_add(apart.unsigned_abs());
            }
        }
        self.life(line);
        if let Some(left_out) = chatty(line) {
            self.left_out_of(line, left_out);
            return None;
        }
        let event = parse_event(line)?;
        // Of a line without a form, only what is sure.
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
        if is_collection && self.kept >= MOST_COLLECTIONS {
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

    /// Lines that tell of processes that begin and end.
    fn life(&mut self, line: &LogLine<'_>) {
        match line.tag {
            Some("ActivityManager" | "am_proc_start" | "am_proc_died") => {}
            _ => return,
        }
        if let Some((pid, name)) = started(line) {
            let known = self.lives.contains_key(&pid) || self.names.contains_key(&pid);
            if self.names.len() < MOST_PROCESSES || known {
                self.names
                    .insert(pid, name.chars().take(MOST_TEXT).collect());
            }
            if self.lives.contains_key(&pid) {
                self.next_life(pid);
            }
            if self.given.len() < MOST_PROCESSES || self.given.contains_key(&pid) {
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
        // Nothing was told of the one before: it may as well be this one.
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
                Key(None, 0, tag.chars().take(MOST_TEXT).collect())
            }
        };
        let room = self.processes.len() < MOST_PROCESSES || self.processes.contains_key(&key);
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
                text: name.chars().take(MOST_TEXT).collect(),
                from_tag: false,
            });
        }
        // Since Android 9 the tag of the runtime's lines is the end of the process's name.
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
            text: tag.chars().take(MOST_TEXT).collect(),
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
                // The same again: worth a word only where it was about collections.
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

    /// The virtual machine, by its last collection.
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
            Event::Blocked(blocked) if self.blocked.len() < MOST_OTHERS => {
                self.blocked.push(blocked.clone());
            }
            Event::OutOfMemory(error) => {
                self.limit = error.growth_limit.or(self.limit);
                if self.out_of_memory.len() < MOST_OTHERS {
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
                    let text: String = message.chars().take(MOST_TEXT).collect();
                    self.unknown.1.push(text);
                }
            }
            Event::Blocked(_) | Event::Blocking { .. } => {}
        }
    }
}

/// Whether an event can only be what it seems, wherever its text stands.
fn is_sure(event: &Event) -> bool {
    !matches!(event, Event::Other | Event::Forced)
}

/// `Start proc 123:com.example.app/u0a12 for …`, up to Android 4.4 `Start proc com.example.app
/// for …: pid=123 …`; `am_proc_start: [0,123,10012,com.example.app,…]` of the events' log.
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

/// `Process com.example.app (pid 123) has died …`; `am_proc_died: [0,123,…]`.
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
        // Each was watched while it lived, as far as the log says.
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
