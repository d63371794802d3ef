//! Converts the lines of the loop into entries: processes and their restarts, their figures,
//! and the cost of all queries. Independent of the connection: the caller passes lines.

use std::collections::{BTreeMap, BTreeSet};

use super::clock::Clock;
use super::event::Event;
use super::options::Options;
use super::own_collections::{OpenWindow, OurWindows};
use android_memory::graphics;
use android_memory::meminfo::Meminfo;
use android_memory::status::{self, Status};
use heaptap_model::timeline::{
    Cost, Entry, Gap, Graphics, HeaptapAction, Observation, ObservationCost, Process, Source,
    System, Unread,
};

/// Maximum number of followed processes.
const PROCESSES: usize = 64;
/// Maximum length of a service's answer: a meminfo of one process has 4 KiB.
const MAX_TEXT_LENGTH: usize = 1 << 20;
/// Reason why `dumpsys gfxinfo` does not have figures of a process that it names.
const NO_GRAPHICS: &str = "dumpsys gfxinfo does not list GPU memory of the process: it has not \
    shown a window, or does not draw with the GPU; bring it to the foreground while observing";
/// A clock tick of Linux, ns.
const TICK_NS: u64 = 10_000_000;
/// Number of rounds between two entries about the total cost.
const SPENT_EVERY: u64 = 30;

/// State of the observation, kept across lost connections.
#[derive(Default)]
pub(super) struct Rounds {
    names: Vec<String>,
    pids: BTreeMap<u32, String>,
    allow_gc: bool,
    wants_dmabuf: bool,
    no_dmabuf: Option<&'static str>,
    boot: Option<String>,
    pub(super) clock: Clock,
    windows: OurWindows,
    /// Names by PID, as reported by the device.
    found: BTreeMap<u32, String>,
    followed: BTreeMap<u32, Followed>,
    /// Names whose process was followed before.
    known: BTreeSet<String>,
    told: BTreeSet<(Source, u32)>,
    round: Round,
    answers: BTreeMap<(Source, u32), Answer>,
    spent: ObservationCost,
    /// CPU time of previous loops.
    earlier_cpu_ns: u64,
    /// Time of the lost connection, BOOTTIME, and the reason.
    lost: Option<(u64, String)>,
}

struct Followed {
    name: String,
    start: u64,
}

/// State of one round of the loop.
#[derive(Default)]
struct Round {
    boot_ns: u64,
    bytes: u64,
    seen: BTreeSet<u32>,
    /// Entries of samples; their cost is known at the end of the round.
    samples: Vec<Entry>,
}

/// Partial answer of a service.
struct Answer {
    from_ns: u64,
    text: String,
    bytes: u64,
    window: Option<OpenWindow>,
}

/// Effect of a line on the observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// It continues.
    On,
    /// The device restarted.
    Rebooted,
}

impl Rounds {
    pub(super) fn new(options: &Options, boot: Option<String>, windows: OurWindows) -> Rounds {
        Rounds {
            names: options.names.clone(),
            pids: options.pids.iter().cloned().collect(),
            allow_gc: options.parts.is_some_and(|parts| parts.allow_gc),
            wants_dmabuf: options.graphics && options.parts.is_some(),
            boot,
            windows,
            ..Rounds::default()
        }
    }

    /// Returns the PIDs of existing processes.
    pub(super) fn pids(&self) -> Vec<u32> {
        self.followed.keys().copied().collect()
    }

    /// Returns the last time that the device reported, BOOTTIME.
    pub(super) fn boot_ns(&self) -> u64 {
        self.round.boot_ns
    }

    /// Returns the first time that the device reported, BOOTTIME.
    pub(super) fn first_ns(&self) -> u64 {
        self.spent.since_ns
    }

    /// Counts a command sent for the observation.
    pub(super) fn sent(&mut self) {
        self.spent.round_trips = self.spent.round_trips.saturating_add(1);
    }

    /// Counts bytes received over another connection.
    pub(super) fn received(&mut self, bytes: u64) {
        self.spent.bytes = self.spent.bytes.saturating_add(bytes);
    }

    /// Records the loss of the connection and discards partial answers.
    pub(super) fn lost(&mut self, why: &str) {
        self.answers.clear();
        self.round.samples.clear();
        self.round.seen.clear();
        self.earlier_cpu_ns = self.spent.cpu_ns;
        if self.lost.is_none() {
            self.lost = Some((self.round.boot_ns, why.to_owned()));
        }
    }

    /// Processes a line.
    pub(super) fn line(&mut self, line: &str, tell: &mut impl FnMut(Event)) -> Step {
        let bytes = (line.len() as u64).saturating_add(1);
        self.received(bytes);
        self.round.bytes = self.round.bytes.saturating_add(bytes);
        let (word, rest) = line.split_at(line.find([' ', '|']).unwrap_or(line.len()));
        let rest = rest.strip_prefix(' ').unwrap_or(rest);
        match word {
            "b" => return self.begin(rest),
            "t" => self.clocks(rest, tell),
            "n" => self.name(rest),
            "s" => self.sample(rest, bytes, tell),
            "h" => self.hidden(rest, tell),
            "y" => self.system(rest, bytes, tell),
            "M" => self.answer_begins(rest, bytes),
            "m" => self.answer_goes_on(rest, bytes),
            "N" => self.answer_ends(rest, bytes, tell),
            "e" => self.round_ends(rest, tell),
            _ => {}
        }
        Step::On
    }

    /// `BOOT UID DMABUF`
    fn begin(&mut self, rest: &str) -> Step {
        let mut words = rest.split(' ');
        let boot = words.next().unwrap_or("");
        if !boot.is_empty() && self.boot.get_or_insert_with(|| boot.to_owned()) != boot {
            return Step::Rebooted;
        }
        let uid = words.next().unwrap_or("");
        let has_dmabuf = words.next() == Some("yes");
        self.no_dmabuf = (self.wants_dmabuf && !has_dmabuf).then_some(match uid {
            "0" => "the device does not have dmabuf_dump",
            _ => "dmabuf_dump is missing or not available to the shell",
        });
        Step::On
    }

    /// `UPTIME EPOCH`
    fn clocks(&mut self, rest: &str, tell: &mut impl FnMut(Event)) {
        let (up, epoch) = rest.split_once(' ').unwrap_or((rest, ""));
        let Some(boot_ns) = status::seconds_ns(up) else {
            return;
        };
        if let Some(epoch_ns) = status::seconds_ns(epoch) {
            self.clock.round(boot_ns, epoch_ns);
        }
        self.round.boot_ns = boot_ns;
        self.round.bytes = 0;
        self.round.seen.clear();
        self.round.samples.clear();
        if self.spent.since_ns == 0 {
            self.spent.since_ns = boot_ns;
        }
        if let Some((from_ns, why)) = self.lost.take()
            && from_ns > 0
        {
            let until_ns = boot_ns;
            tell(seen(from_ns, 0, Observation::Gap(Gap { until_ns, why })));
        }
        if let Some(why) = self.no_dmabuf.take() {
            self.unread(0, Source::Dmabuf, why.to_owned(), tell);
        }
    }

    /// `INDEX PID…`
    fn name(&mut self, rest: &str) {
        let mut words = rest.split_whitespace();
        let index = words.next().and_then(|index| index.parse::<usize>().ok());
        let Some(name) = index.and_then(|index| self.names.get(index)).cloned() else {
            return;
        };
        self.found.retain(|_, known| *known != name);
        for pid in words.filter_map(|pid| pid.parse().ok()).take(PROCESSES) {
            self.found.insert(pid, name.clone());
        }
    }

    /// `PID START ADJ|FIELD|FIELD`
    fn sample(&mut self, rest: &str, bytes: u64, tell: &mut impl FnMut(Event)) {
        let (head, fields) = rest.split_once('|').unwrap_or((rest, ""));
        let mut words = head.split(' ');
        let (Some(Ok(pid)), Some(start)) = (words.next().map(str::parse::<u32>), words.next())
        else {
            return;
        };
        let start = start.parse().unwrap_or(0);
        let adj = words.next().and_then(|adj| adj.parse().ok());
        let Some(status) = Status::parse(&fields.replace('|', "\n")) else {
            let why = format!("/proc/{pid}/status is not readable");
            self.unread(pid, Source::Status, why, tell);
            self.follow(pid, start, tell);
            return;
        };
        if status.is_dead() {
            return;
        }
        self.follow(pid, start, tell);
        if let Some(resident) = status.resident(adj)
            && self.round.samples.len() < PROCESSES
        {
            self.round.samples.push(Entry {
                boot_ns: self.round.boot_ns,
                pid,
                cost: Some(Cost {
                    device_ns: 0,
                    bytes,
                }),
                seen: Observation::Resident(resident),
            });
        }
    }

    /// Handles an existing process: new, restarted, or known.
    fn follow(&mut self, pid: u32, start: u64, tell: &mut impl FnMut(Event)) {
        let boot_ns = self.round.boot_ns;
        match self.followed.get(&pid) {
            Some(followed) if followed.start == start => {
                self.round.seen.insert(pid);
                return;
            }
            Some(_) => self.gone(pid, tell),
            None if self.followed.len() >= PROCESSES => return,
            None => {}
        }
        let name = self.found.get(&pid).or_else(|| self.pids.get(&pid));
        let name = name.cloned().unwrap_or_default();
        let running = self.followed.values().any(|other| other.name == name);
        let restarted = !running && self.known.contains(&name);
        self.known.insert(name.clone());
        self.round.seen.insert(pid);
        let process = Process {
            name: name.clone(),
            restarted,
        };
        tell(seen(boot_ns, pid, Observation::Process(process)));
        self.followed.insert(pid, Followed { name, start });
    }

    fn gone(&mut self, pid: u32, tell: &mut impl FnMut(Event)) {
        if self.followed.remove(&pid).is_some() {
            tell(seen(self.round.boot_ns, pid, Observation::Gone));
        }
    }

    /// Handles `PID`: the process exists, but the shell cannot read its files.
    fn hidden(&mut self, rest: &str, tell: &mut impl FnMut(Event)) {
        let Ok(pid) = rest.trim().parse() else {
            return;
        };
        let why = format!("/proc/{pid} exists, but the shell cannot read it");
        self.unread(pid, Source::Status, why, tell);
    }

    /// `|FIELD|FIELD`
    fn system(&mut self, rest: &str, bytes: u64, tell: &mut impl FnMut(Event)) {
        let mut system = System {
            source: Source::Status,
            total: None,
            available: None,
            free: None,
            swap_free: None,
        };
        for field in rest.split('|') {
            let Some((name, value)) = field.split_once(':') else {
                continue;
            };
            let bytes = status::kilobytes(value.trim());
            match name {
                "MemTotal" => system.total = bytes,
                "MemAvailable" => system.available = bytes,
                "MemFree" => system.free = bytes,
                "SwapFree" => system.swap_free = bytes,
                _ => {}
            }
        }
        if system.total.is_some() {
            tell(Event::Seen(Entry {
                boot_ns: self.round.boot_ns,
                pid: 0,
                cost: Some(Cost {
                    device_ns: 0,
                    bytes,
                }),
                seen: Observation::System(system),
            }));
        }
    }

    /// `KIND PID UPTIME`
    fn answer_begins(&mut self, rest: &str, bytes: u64) {
        let Some((key, rest)) = self.answer_head(rest) else {
            return;
        };
        let Some(from_ns) = status::seconds_ns(rest) else {
            return;
        };
        if self.answers.len() >= 3 * PROCESSES {
            return;
        }
        let collects = key.0 == Source::Meminfo;
        let answer = Answer {
            from_ns,
            text: String::new(),
            bytes,
            window: collects.then(|| self.windows.open(key.1, 1)),
        };
        self.answers.insert(key, answer);
    }

    /// `KIND PID TEXT`
    fn answer_goes_on(&mut self, rest: &str, bytes: u64) {
        let Some((key, text)) = self.answer_head(rest) else {
            return;
        };
        let Some(answer) = self.answers.get_mut(&key) else {
            return;
        };
        answer.bytes = answer.bytes.saturating_add(bytes);
        if answer.text.len().saturating_add(text.len()) < MAX_TEXT_LENGTH {
            answer.text.push_str(text);
            answer.text.push('\n');
        }
    }

    /// `KIND PID UPTIME`
    fn answer_ends(&mut self, rest: &str, bytes: u64, tell: &mut impl FnMut(Event)) {
        let Some(((source, pid), rest)) = self.answer_head(rest) else {
            return;
        };
        let Some(mut answer) = self.answers.remove(&(source, pid)) else {
            return;
        };
        let until_ns = status::seconds_ns(rest).unwrap_or(answer.from_ns);
        let device_ns = until_ns.saturating_sub(answer.from_ns);
        answer.bytes = answer.bytes.saturating_add(bytes);
        self.spent.waited_ns = self.spent.waited_ns.saturating_add(device_ns);
        self.spent.questions = self.spent.questions.saturating_add(1);
        if let Some(window) = answer.window.take() {
            window.close(answer.from_ns, until_ns);
            let ours = Observation::HeaptapAction(HeaptapAction {
                what: "meminfo".to_owned(),
                until_ns,
            });
            tell(seen(answer.from_ns, pid, ours));
        }
        match understood(source, pid, &answer.text) {
            Ok(Some(seen)) => tell(Event::Seen(Entry {
                boot_ns: answer.from_ns,
                pid,
                cost: Some(Cost {
                    device_ns,
                    bytes: answer.bytes,
                }),
                seen,
            })),
            // The process ended during the query.
            Ok(None) => {}
            Err(why) => self.unread(pid, source, why, tell),
        }
    }

    /// `KIND PID REST`
    fn answer_head<'a>(&self, rest: &'a str) -> Option<((Source, u32), &'a str)> {
        let (kind, rest) = rest.split_once(' ')?;
        let (pid, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        let source = match kind {
            "p" if self.allow_gc => Source::Meminfo,
            "p" => Source::MeminfoLocal,
            "g" => Source::Gfxinfo,
            "d" => Source::Dmabuf,
            _ => return None,
        };
        Some(((source, pid.parse().ok()?), rest))
    }

    /// `UPTIME TICKS…`
    fn round_ends(&mut self, rest: &str, tell: &mut impl FnMut(Event)) {
        let (up, ticks) = rest.split_once(' ').unwrap_or((rest, ""));
        let until_ns = status::seconds_ns(up).unwrap_or(self.round.boot_ns);
        let took = until_ns.saturating_sub(self.round.boot_ns);
        let samples = std::mem::take(&mut self.round.samples);
        let share = took / (samples.len() as u64).max(1);
        for mut sample in samples {
            if let Some(cost) = &mut sample.cost {
                cost.device_ns = share;
            }
            tell(Event::Seen(sample));
        }
        for pid in self.pids() {
            if !self.round.seen.contains(&pid) {
                self.gone(pid, tell);
            }
        }
        // Ticks of children are signed; anything that is not a number is ignored.
        let ticks = ticks
            .split(' ')
            .filter_map(|ticks| ticks.parse::<u32>().ok())
            .fold(0u64, |sum, ticks| sum.saturating_add(u64::from(ticks)));
        if ticks > 0 {
            self.spent.cpu_ns = self
                .earlier_cpu_ns
                .saturating_add(ticks.saturating_mul(TICK_NS));
        }
        self.spent.rounds = self.spent.rounds.saturating_add(1);
        let boot_ns = self.round.boot_ns;
        if self.spent.rounds.is_multiple_of(SPENT_EVERY) {
            tell(seen(boot_ns, 0, Observation::Cost(self.spent)));
        }
        tell(Event::Round {
            boot_ns,
            spent: self.spent,
        });
    }

    /// Returns an entry about the total cost; `None` if no round completed.
    pub(super) fn last(&self) -> Option<Entry> {
        (self.spent.rounds > 0).then(|| entry(self.round.boot_ns, 0, Observation::Cost(self.spent)))
    }

    /// Reports once that a source cannot be read.
    pub(super) fn unread(
        &mut self,
        pid: u32,
        source: Source,
        why: String,
        tell: &mut impl FnMut(Event),
    ) {
        if self.told.len() < 4 * PROCESSES && self.told.insert((source, pid)) {
            let unread = Observation::Unreadable(Unread { source, why });
            tell(seen(self.round.boot_ns, pid, unread));
        }
    }
}

fn entry(boot_ns: u64, pid: u32, seen: Observation) -> Entry {
    Entry {
        boot_ns,
        pid,
        cost: None,
        seen,
    }
}

fn seen(boot_ns: u64, pid: u32, seen: Observation) -> Event {
    Event::Seen(entry(boot_ns, pid, seen))
}

/// Parses the answer of a service; `None` if the process is gone.
fn understood(source: Source, pid: u32, text: &str) -> Result<Option<Observation>, String> {
    let graphics = |bytes| Some(Observation::Graphics(Graphics { source, bytes }));
    match source {
        Source::Gfxinfo if text.contains("No process found for") => Ok(None),
        Source::Gfxinfo => match graphics::gfxinfo_bytes(text) {
            Some(bytes) => Ok(graphics(bytes)),
            // Its heading does not explain the missing figures.
            None if text.contains("Graphics Acceleration Info") => Err(NO_GRAPHICS.to_owned()),
            None => Err(said(text)),
        },
        Source::Dmabuf => match graphics::dmabuf_bytes(text) {
            Some(bytes) => Ok(graphics(bytes)),
            None => Err(said(text)),
        },
        source => {
            let meminfo = Meminfo::parse(text);
            let Some(process) = meminfo.process_of(pid) else {
                return match meminfo.no_process() {
                    Some(_) => Ok(None),
                    None => Err(said(text)),
                };
            };
            let parts = process.parts(source);
            let mut parts = parts.ok_or("its output does not contain a table")?;
            if source == Source::MeminfoLocal {
                // The app was not queried: its cells are zeros without meaning.
                parts.native_heap = None;
                parts.java_heap = None;
            }
            Ok(Some(Observation::Parts(parts)))
        }
    }
}

/// Returns the first line of a service's output without figures.
fn said(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    match line {
        Some(line) => line.chars().take(200).collect(),
        None => "no output".to_owned(),
    }
}

#[cfg(test)]
mod tests;
