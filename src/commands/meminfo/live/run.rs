//! Live view: observes processes over one connection, keeps their figures as series of bounded
//! size, and records what happened to each process. Draws nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::oneshot;

use crate::heaps::meminfo::MeminfoError;
use crate::recording::companion::Shares;
use heaptap_adb::Device;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_capture::config::Targets;
use heaptap_capture::eligibility;
use heaptap_capture::observe::{self, End, Event, Options, OurWindows, PARTS_EVERY, PartsOptions};
use heaptap_model::timeline::{Entry, Observation, ObservationCost, Parts, Resident};

/// Maximum number of points of a series; neighbors are merged beyond it.
const POINTS: usize = 512;
/// Maximum number of processes, including exited ones.
const PROCESSES: usize = 64;

/// Options of the live view.
#[derive(Debug, Clone)]
pub struct LiveOptions {
    /// Names, PIDs and packages.
    pub targets: Targets,
    /// User or profile; `None` selects the processes of every user.
    pub user: Option<u32>,
    /// Interval between samples of resident memory.
    pub every: Duration,
    /// Whether apps can be made to collect garbage, which lets meminfo report their heaps.
    pub allow_gc: bool,
    /// Duration by the host clock, so that a hanging device does not prolong it; `None` means no
    /// limit.
    pub duration: Option<Duration>,
}

impl LiveOptions {
    /// Returns the interval between calls of meminfo, which is at least the default.
    pub fn parts_every(&self) -> Duration {
        self.every.max(PARTS_EVERY)
    }
}

/// Observed figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// Resident memory as counted by the kernel (VmRSS), without driver memory.
    Rss,
    /// Resident memory as counted by meminfo since Android 11, with graphics memory.
    TotalRss,
    /// Swapped memory.
    Swap,
    /// Proportional set size, with swap.
    Pss,
    Java,
    Native,
    Code,
    Stack,
    Graphics,
    /// Other private memory.
    PrivateOther,
    /// Shared memory and swap.
    System,
}

impl Figure {
    /// All figures, in display order.
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

    /// Returns the display name.
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

    /// Returns whether the figure is a part of the total PSS.
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

/// Values of one figure over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    pub first: i64,
    pub last: i64,
    pub min: i64,
    pub max: i64,
    /// Number of values.
    pub count: u64,
    /// Values for a sparkline: the maximum of each interval.
    points: Vec<i64>,
    /// Number of values per point.
    stretch: u32,
    /// Number of values in the last point.
    filled: u32,
    first_ns: u64,
    last_ns: u64,
    // Sums for a least squares fit, in minutes and MiB since the first value, so that doubles are
    // precise enough.
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

    /// Returns values for a sparkline, in order of time. Each covers [`Series::stretch`] samples.
    pub fn points(&self) -> &[i64] {
        &self.points
    }

    /// Returns the number of samples per point.
    pub fn stretch(&self) -> u32 {
        self.stretch
    }

    /// Returns the time of the last value in BOOTTIME ns.
    pub fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// Returns the growth in bytes per minute by a least squares fit; `None` for fewer than three
    /// values or less than ten seconds.
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

/// Process that is or was observed.
#[derive(Debug, Clone, PartialEq)]
pub struct Watched {
    pub pid: u32,
    pub name: String,
    /// Whether it replaced another process of the same name.
    pub restarted: bool,
    /// Process that it replaced.
    pub replaces: Option<u32>,
    /// Time of its first observation, in BOOTTIME ns.
    pub since_ns: u64,
    /// Time at which its exit was observed.
    pub gone_ns: Option<u64>,
    /// Whether it has exited.
    pub gone: bool,
    /// Values of its figures.
    pub series: BTreeMap<Figure, Series>,
}

/// State of the live view.
#[derive(Debug, Clone, Default)]
pub struct Live {
    /// Processes in order of appearance.
    pub processes: Vec<Watched>,
    /// Time of the first sample, in BOOTTIME ns.
    pub since_ns: Option<u64>,
    /// Time of the last sample.
    pub until_ns: u64,
    pub spent: ObservationCost,
    /// Sources that cannot be read on this device.
    pub unread: Vec<String>,
    /// Reason why the device is disconnected, if it is.
    pub away: Option<String>,
}

impl Live {
    /// Returns the time of observation by the device clock.
    pub fn elapsed(&self) -> Duration {
        let since = self.since_ns.unwrap_or(self.until_ns);
        Duration::from_nanos(self.until_ns.saturating_sub(since))
    }

    /// Returns the cost on the device: share of one core, share of services at most, bytes per
    /// second.
    pub fn cost(&self) -> Option<(f64, f64, f64)> {
        let shares = Shares::new(&self.spent, self.until_ns)?;
        Some((shares.core, shares.services, shares.bytes_per_s))
    }

    /// Adds an observation.
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
            Observation::Unreadable(unread) => self.unread.push(unread.to_string()),
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

    /// Returns the process that `process` replaced, if it is still stored.
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

/// Event of the live view.
#[derive(Debug)]
pub enum LiveEvent<'a> {
    /// A new observation.
    Seen(&'a Entry),
    /// All processes were sampled once.
    Round,
    /// The device was disconnected or reconnected.
    Connection,
}

/// Observes processes until `stop` is ready, the duration is over, or no process is left.
///
/// # Errors
/// Returns an error if no selected process is running or the device does not answer.
pub async fn live(
    device: &Device,
    options: &LiveOptions,
    stop: impl Future<Output = ()>,
    mut show: impl FnMut(&Live, LiveEvent<'_>),
) -> Result<Live, Failure> {
    let facts = eligibility::facts(device).await?;
    let found = eligibility::resolve_pids(device, &facts, &options.targets, options.user).await?;
    if found.is_empty() {
        let absent =
            eligibility::absent_target(device, &facts, &options.targets, options.user).await;
        return Err(MeminfoError::NotFound(absent).into());
    }
    let observed = observed(options, &found);
    let by_name = !observed.names.is_empty();
    let mut live = Live::default();
    let (over, ended) = oneshot::channel::<()>();
    let mut over = Some(over);
    let stop = async {
        // The clock of a hanging device does not advance.
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
                    // A process of the same name can start again; a PID does not return.
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
            live.away = Some("the device was restarted".to_owned());
            Ok(live)
        }
        End::Refused { why } => Err(Failure::new(
            ErrorClass::Device,
            "unexpected-answer",
            format!("the device shell cannot run the observation loop: {why}"),
        )),
    }
}

/// Returns the observation options. Names are followed across restarts, PIDs are not.
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
            Observation::Process(heaptap_model::timeline::Process {
                name: "a".to_owned(),
                restarted,
            })
        };
        let resident = |rss: u64| {
            Observation::Resident(Resident::new(heaptap_model::timeline::Source::Status, rss))
        };
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
        // pidof does not support users.
        options.user = Some(10);
        assert_eq!(observed(&options, &found).pids.len(), 2);
    }
}
