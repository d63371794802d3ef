//! The live view: processes observed over one kept connection, their figures kept as series of
//! bounded size, and what became of each told at the end. Draws nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::oneshot;

use crate::config::Targets;
use crate::device::Device;
use crate::eligibility;
use crate::error::{ErrorClass, Failure};
use crate::observe::{self, End, Event, Options, OurWindows, PARTS_EVERY, PartsOptions};
use crate::recording::companion::Shares;
use crate::timeline::{Entry, Observation, ObservationCost, Parts, Resident};

/// Points of a series that are kept for its picture; beyond, neighbours are joined.
const POINTS: usize = 512;
/// Processes that are kept, gone ones too.
const PROCESSES: usize = 64;

/// What is watched, and how often.
#[derive(Debug, Clone)]
pub struct LiveOptions {
    /// Names, pids, packages.
    pub targets: Targets,
    /// The user or profile; every user's processes where `None`.
    pub user: Option<u32>,
    /// Between two samples of resident memory.
    pub every: Duration,
    /// Whether apps may be made to collect their garbage: meminfo then tells their heaps, too.
    pub allow_gc: bool,
    /// How long by the host's clock, so that a phone that hangs ends it, too; until it is ended
    /// where `None`.
    pub duration: Option<Duration>,
}

impl LiveOptions {
    /// Between two questions for meminfo: never more often than by default.
    pub fn parts_every(&self) -> Duration {
        self.every.max(PARTS_EVERY)
    }
}

/// A figure that is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// Resident memory as the kernel counts it, VmRSS: without what drivers count.
    Rss,
    /// Resident memory as meminfo counts it, since Android 11: with graphics.
    TotalRss,
    /// In swap.
    Swap,
    /// By its share of shared pages, with swap.
    Pss,
    /// The Java heap.
    Java,
    /// The native heap.
    Native,
    /// Code.
    Code,
    /// Stacks.
    Stack,
    /// Graphics.
    Graphics,
    /// Other private memory.
    PrivateOther,
    /// What is shared, and swap.
    System,
}

impl Figure {
    /// All, in the order in which they are shown.
    pub const ALL: [Figure; 11] = [
        Figure::Rss,
        Figure::Swap,
        Figure::Pss,
        Figure::TotalRss,
        Figure::Java,
        Figure::Native,
        Figure::Code,
        Figure::Stack,
        Figure::Graphics,
        Figure::PrivateOther,
        Figure::System,
    ];

    /// As people call it.
    pub fn name(self) -> &'static str {
        match self {
            Figure::Rss => "VmRSS",
            Figure::TotalRss => "Total RSS",
            Figure::Swap => "Swap",
            Figure::Pss => "Total PSS",
            Figure::Java => "Java",
            Figure::Native => "Native",
            Figure::Code => "Code",
            Figure::Stack => "Stack",
            Figure::Graphics => "Graphics",
            Figure::PrivateOther => "Private Other",
            Figure::System => "System",
        }
    }

    /// Whether it is a part of the total above it.
    pub fn is_part(self) -> bool {
        !matches!(
            self,
            Figure::Rss | Figure::TotalRss | Figure::Swap | Figure::Pss
        )
    }

    fn of_resident(resident: &Resident) -> Vec<(Figure, i64)> {
        let mut figures = vec![(Figure::Rss, signed(resident.rss))];
        figures.extend(resident.swap.map(|swap| (Figure::Swap, signed(swap))));
        figures
    }

    fn of_parts(parts: &Parts) -> Vec<(Figure, i64)> {
        let rss = parts.total_rss.map(|rss| (Figure::TotalRss, signed(rss)));
        let others = [
            (Figure::Pss, parts.total_pss),
            (Figure::Java, parts.java),
            (Figure::Native, parts.native),
            (Figure::Code, parts.code),
            (Figure::Stack, parts.stack),
            (Figure::Graphics, parts.graphics),
            (Figure::PrivateOther, parts.private_other),
            (Figure::System, parts.system),
        ];
        rss.into_iter().chain(others).collect()
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// What one figure did.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The first value.
    pub first: i64,
    /// The last value.
    pub last: i64,
    /// The lowest.
    pub min: i64,
    /// The highest.
    pub max: i64,
    /// How many.
    pub count: u64,
    /// Values for a picture: the highest of each stretch of time.
    points: Vec<i64>,
    /// So many values make a point.
    stretch: u32,
    /// Values in the last point.
    filled: u32,
    first_ns: u64,
    last_ns: u64,
    // Sums for the line of least squares: minutes and MiB since the first value, so that
    // doubles hold them.
    sums: [f64; 4],
}

impl Series {
    fn new(boot_ns: u64, value: i64) -> Series {
        let mut series = Series {
            first: value,
            last: value,
            min: value,
            max: value,
            count: 0,
            points: Vec::new(),
            stretch: 1,
            filled: 0,
            first_ns: boot_ns,
            last_ns: boot_ns,
            sums: [0.0; 4],
        };
        series.push(boot_ns, value);
        series
    }

    #[expect(clippy::cast_precision_loss, reason = "a trend needs no more digits")]
    fn push(&mut self, boot_ns: u64, value: i64) {
        self.last = value;
        self.last_ns = self.last_ns.max(boot_ns);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.count = self.count.saturating_add(1);
        let x = boot_ns.saturating_sub(self.first_ns) as f64 / 60e9;
        let y = value.saturating_sub(self.first) as f64;
        for (sum, term) in self.sums.iter_mut().zip([x, y, x * x, x * y]) {
            *sum += term;
        }
        match self.points.last_mut() {
            Some(point) if self.filled < self.stretch => {
                *point = value.max(*point);
                self.filled += 1;
            }
            _ => {
                if self.points.len() >= POINTS {
                    self.points = self
                        .points
                        .chunks(2)
                        .filter_map(|pair| pair.iter().copied().max())
                        .collect();
                    self.stretch = self.stretch.saturating_mul(2);
                }
                self.points.push(value);
                self.filled = 1;
            }
        }
    }

    /// Values for a picture, in order of time; each stands for [`Series::stretch`] samples.
    pub fn points(&self) -> &[i64] {
        &self.points
    }

    /// So many samples make a point.
    pub fn stretch(&self) -> u32 {
        self.stretch
    }

    /// When the last value was taken, BOOTTIME ns.
    pub fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// Bytes a minute, by the line of least squares; `None` for fewer than three values or ten
    /// seconds, which tell nothing.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "a trend needs no more digits"
    )]
    pub fn growth_per_minute(&self) -> Option<i64> {
        if self.count < 3 || self.last_ns.saturating_sub(self.first_ns) < 10_000_000_000 {
            return None;
        }
        let n = self.count as f64;
        let [x, y, xx, xy] = self.sums;
        let spread = n * xx - x * x;
        (spread > 0.0).then(|| ((n * xy - x * y) / spread).round() as i64)
    }
}

/// A process that is or was watched.
#[derive(Debug, Clone, PartialEq)]
pub struct Watched {
    /// Its id.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Whether it took another's place.
    pub restarted: bool,
    /// The process whose place it took.
    pub replaces: Option<u32>,
    /// When it was first seen, BOOTTIME ns.
    pub since_ns: u64,
    /// When it was found gone.
    pub gone_ns: Option<u64>,
    /// Whether it is gone.
    pub gone: bool,
    /// What its figures did.
    pub series: BTreeMap<Figure, Series>,
}

/// All that is known by now.
#[derive(Debug, Clone, Default)]
pub struct Live {
    /// Processes in the order in which they came.
    pub processes: Vec<Watched>,
    /// When the first sample was taken, BOOTTIME ns.
    pub since_ns: Option<u64>,
    /// When the last was.
    pub until_ns: u64,
    /// What it has cost.
    pub spent: ObservationCost,
    /// What cannot be read on this phone.
    pub unread: Vec<String>,
    /// Why the phone is away, where it is.
    pub away: Option<String>,
}

impl Live {
    /// How long it has been watched, by the phone's clock.
    pub fn elapsed(&self) -> Duration {
        let since = self.since_ns.unwrap_or(self.until_ns);
        Duration::from_nanos(self.until_ns.saturating_sub(since))
    }

    /// What it takes of the phone: of one core, services at most, bytes a second.
    pub fn cost(&self) -> Option<(f64, f64, f64)> {
        let shares = Shares::of(&self.spent, self.until_ns)?;
        Some((shares.core, shares.services, shares.bytes_per_s))
    }

    /// Takes what was seen.
    pub fn take(&mut self, entry: &Entry) {
        self.until_ns = self.until_ns.max(entry.boot_ns);
        match &entry.seen {
            Observation::Process(process) => {
                self.since_ns.get_or_insert(entry.boot_ns);
                let before = self.processes.iter().rev();
                let replaces = before
                    .filter(|of| process.restarted && of.gone && of.name == process.name)
                    .map(|of| of.pid)
                    .next();
                if self.processes.len() >= PROCESSES {
                    let gone = self.processes.iter().position(|of| of.gone);
                    self.processes.remove(gone.unwrap_or(0));
                }
                self.processes.push(Watched {
                    pid: entry.pid,
                    name: process.name.clone(),
                    restarted: process.restarted,
                    replaces,
                    since_ns: entry.boot_ns,
                    gone_ns: None,
                    gone: false,
                    series: BTreeMap::new(),
                });
            }
            Observation::Gone => {
                if let Some(process) = self.running(entry.pid) {
                    process.gone = true;
                    process.gone_ns = Some(entry.boot_ns);
                }
            }
            Observation::Resident(resident) => self.values(entry, &Figure::of_resident(resident)),
            Observation::Parts(parts) => self.values(entry, &Figure::of_parts(parts)),
            Observation::Unread(unread) => {
                self.unread
                    .push(format!("{}: {}", unread.source.word(), unread.why))
            }
            _ => {}
        }
    }

    fn values(&mut self, entry: &Entry, values: &[(Figure, i64)]) {
        self.since_ns.get_or_insert(entry.boot_ns);
        let Some(process) = self.running(entry.pid) else {
            return;
        };
        for (figure, value) in values {
            process
                .series
                .entry(*figure)
                .and_modify(|series| series.push(entry.boot_ns, *value))
                .or_insert_with(|| Series::new(entry.boot_ns, *value));
        }
    }

    /// The process whose place `process` took, where it is still known.
    pub fn before(&self, process: &Watched) -> Option<&Watched> {
        let pid = process.replaces?;
        let earlier = |of: &&Watched| of.pid == pid && of.gone && of.since_ns <= process.since_ns;
        self.processes.iter().rev().find(earlier)
    }

    fn running(&mut self, pid: u32) -> Option<&mut Watched> {
        self.processes
            .iter_mut()
            .rev()
            .find(|process| process.pid == pid && !process.gone)
    }
}

/// What happens, for whoever shows it.
#[derive(Debug)]
pub enum LiveEvent<'a> {
    /// Something was seen.
    Seen(&'a Entry),
    /// A round is complete.
    Round,
    /// The phone is away, or back.
    Connection,
}

/// Watches until `stop` is ready, the duration is over, or nothing is left to be watched.
///
/// # Errors
/// Where nothing runs that was asked for, or the phone does not answer.
pub async fn live(
    device: &Device,
    options: &LiveOptions,
    stop: impl Future<Output = ()>,
    mut show: impl FnMut(&Live, LiveEvent<'_>),
) -> Result<Live, Failure> {
    let facts = eligibility::facts(device).await?;
    let found = eligibility::resolve_pids(device, &facts, &options.targets, options.user).await?;
    if found.is_empty() {
        let targets = &options.targets;
        let named = targets.names.iter().chain(&targets.packages).cloned();
        // A name may stand for a process and for a package.
        let words: BTreeSet<String> = named
            .chain(targets.pids.iter().map(u32::to_string))
            .collect();
        let words: Vec<String> = words.into_iter().collect();
        let message = format!("nothing runs that is called {}", words.join(", "));
        return Err(
            Failure::new(ErrorClass::NotEligible, "target-not-found", message)
                .with_help("start the app first; `heaptap apps` shows which run"),
        );
    }
    let observed = observed(options, &found);
    let by_name = !observed.names.is_empty();
    let mut live = Live::default();
    let (over, ended) = oneshot::channel::<()>();
    let mut over = Some(over);
    let stop = async {
        // The phone's own clock stands where the phone hangs.
        let late = async {
            match options.duration {
                Some(duration) => tokio::time::sleep(duration).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stop => {}
            _ = ended => {}
            () = late => {}
        }
    };
    let boot = facts.boot_id.clone();
    let end = observe::observe(
        device,
        boot,
        &observed,
        OurWindows::default(),
        stop,
        |event| {
            match event {
                Event::Seen(entry) => {
                    live.take(&entry);
                    show(&live, LiveEvent::Seen(&entry));
                }
                Event::Round { boot_ns, spent } => {
                    live.until_ns = live.until_ns.max(boot_ns);
                    live.spent = spent;
                    // A name may come again; a pid does not.
                    let gone = !by_name && live.processes.iter().all(|process| process.gone);
                    if gone {
                        over.take();
                    }
                    show(&live, LiveEvent::Round);
                }
                Event::Lost { why } => {
                    live.away = Some(why);
                    show(&live, LiveEvent::Connection);
                }
                Event::Line(_) => {}
                Event::Back { .. } => {
                    live.away = None;
                    show(&live, LiveEvent::Connection);
                }
            }
        },
    )
    .await?;
    match end {
        End::Asked => Ok(live),
        End::Rebooted => {
            live.away = Some("the phone was restarted".to_owned());
            Ok(live)
        }
        End::Refused { why } => Err(Failure::new(
            ErrorClass::Device,
            "odd-answer",
            format!("the phone's shell does not run the loop that observes: {why}"),
        )),
    }
}

/// Names are followed over restarts; a pid that was given is that process alone.
fn observed(options: &LiveOptions, found: &[(u32, String)]) -> Options {
    let by_pid = |pid: &u32| options.targets.pids.contains(pid);
    let mut names: Vec<String> = found
        .iter()
        .filter(|(pid, _)| !by_pid(pid) && options.user.is_none())
        .map(|(_, name)| name.clone())
        .collect();
    names.sort();
    names.dedup();
    let pids = found
        .iter()
        .filter(|(_, name)| !names.contains(name))
        .cloned()
        .collect();
    Options {
        names,
        pids,
        every: options.every,
        parts: Some(PartsOptions {
            every: options.parts_every(),
            allow_gc: options.allow_gc,
        }),
        graphics: false,
        log: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn a_series_knows_its_trend_and_keeps_its_peaks() {
        let mut series = Series::new(100 * S, 0);
        assert_eq!(series.growth_per_minute(), None);
        for second in 1..=5000u64 {
            let peak = if second == 2500 { 1 << 30 } else { 0 };
            series.push(
                (100 + second) * S,
                i64::try_from(second * 1000).unwrap() + peak,
            );
        }
        assert!(series.points().len() <= POINTS && series.points().len() > POINTS / 4);
        assert_eq!(series.points().iter().max(), Some(&series.max));
        let growth = series.growth_per_minute().unwrap();
        assert!((59_000..61_000).contains(&growth), "{growth}");
        assert_eq!((series.first, series.last, series.min), (0, 5_000_000, 0));
    }

    #[test]
    fn values_of_any_size_make_no_trouble() {
        let mut series = Series::new(u64::MAX, i64::MIN);
        for value in [i64::MAX, i64::MIN, 0, i64::MAX] {
            series.push(0, value);
            series.push(u64::MAX, value);
        }
        series.growth_per_minute();
        assert_eq!((series.min, series.max), (i64::MIN, i64::MAX));
    }

    #[test]
    fn a_restarted_process_is_another() {
        let mut live = Live::default();
        let entry = |at: u64, pid: u32, seen: Observation| Entry {
            boot_ns: at * S,
            pid,
            cost: None,
            seen,
        };
        let process = |restarted| {
            Observation::Process(crate::timeline::Process {
                name: "a".to_owned(),
                restarted,
            })
        };
        let resident =
            |rss: u64| Observation::Resident(Resident::of(crate::timeline::Source::Status, rss));
        live.take(&entry(1, 7, process(false)));
        live.take(&entry(1, 7, resident(10)));
        live.take(&entry(2, 7, Observation::Gone));
        live.take(&entry(3, 7, process(true)));
        live.take(&entry(3, 7, resident(20)));
        assert_eq!(live.processes.len(), 2);
        assert!(live.processes[0].gone && live.processes[1].restarted);
        let times = |at: usize| (live.processes[at].since_ns, live.processes[at].gone_ns);
        assert_eq!((times(0), times(1)), ((S, Some(2 * S)), (3 * S, None)));
        assert_eq!(live.processes[1].replaces, Some(7));
        assert_eq!(live.processes[1].series[&Figure::Rss].last, 20);
        assert_eq!(live.elapsed(), Duration::from_secs(2));
    }

    #[test]
    fn names_are_followed_and_pids_are_not() {
        let mut options = LiveOptions {
            targets: Targets {
                pids: vec![9],
                names: vec!["a".to_owned()],
                ..Targets::default()
            },
            user: None,
            every: Duration::from_secs(30),
            allow_gc: false,
            duration: None,
        };
        let found = [(7, "a".to_owned()), (9, "b".to_owned())];
        let observing = observed(&options, &found);
        assert_eq!(observing.names, ["a"]);
        assert_eq!(observing.pids, [(9, "b".to_owned())]);
        assert_eq!(observing.parts.unwrap().every, Duration::from_secs(30));
        // pidof knows no users.
        options.user = Some(10);
        assert_eq!(observed(&options, &found).pids.len(), 2);
    }
}
