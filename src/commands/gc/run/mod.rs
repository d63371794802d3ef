//! Garbage collections of processes: out of logs that were saved, a phone's log, a recording.
//!
//! | module | owns |
//! |---|---|
//! | `files` | logs in any encoding, and recordings |
//! | `bugreport` | the log inside a bugreport, and what else is known there |
//! | `phone` | the log of a process on the phone |
//! | `now` | a collection that is asked for |
//! | `stretch` | what happened between two labels |
//! | `error` | why there is nothing to tell |

mod bugreport;
mod error;
mod files;
mod now;
mod phone;
mod stretch;

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

pub use self::error::GcError;
pub use self::files::{Input, read};
pub use self::now::{Collected, GcTrigger, Measured, collect_now};
pub use self::phone::{Followed, Target, find, follow, read_ring};
pub use self::stretch::Stretch;
use crate::memory::gc::{
    Format, GcContext, GcLog, Observed, ProcessReport, Recorded, Timed, analyze, of_timeline,
};
use crate::results::findings::Finding;
use crate::results::lists::join_list;
use crate::timeline::Timeline;
use crate::untrusted::sanitize;

/// Kind of the finding that no process of the name that was given collected.
pub const NO_SUCH_PROCESS: &str = "no-such-process";

/// Where collections come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GcSource {
    /// Logs.
    Log,
    /// What the log of a phone still holds.
    Phone,
    /// The timeline of a recording.
    Recording,
}

/// The collections of processes.
#[derive(Debug, Clone, Serialize)]
pub struct GcReport {
    /// Where they come from.
    #[serde(rename = "from")]
    pub source: GcSource,
    /// Lines that were read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<u64>,
    /// The formats of the lines that told something.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub formats: Vec<Format>,
    /// When the first and the last line were written, ns on the log's axis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<(i64, i64)>,
    /// Processes, those with something wrong first, then those that collected most.
    pub processes: Vec<ProcessReport>,
    /// Every collection, of the processes in their order.
    #[serde(skip)]
    pub collections: Vec<Vec<Timed>>,
    /// Collections, or processes, beyond what is kept.
    #[serde(skip_serializing_if = "crate::units::is_zero")]
    pub left_out: u64,
    /// What the user should know beside.
    #[serde(skip)]
    pub findings: Vec<Finding>,
}

/// What is known of a phone beside its log.
#[derive(Debug, Clone, Default)]
pub(super) struct OfPhone {
    /// What its heaps may grow to.
    pub(super) known: GcContext,
    /// Packages of which it is known whether they have `android:largeHeap`.
    pub(super) large: BTreeMap<String, bool>,
    /// For how long the log was followed.
    pub(super) followed: Option<Observed>,
}

impl OfPhone {
    /// What is known of the process of this name.
    fn of(&self, name: Option<&str>, written: Option<Observed>) -> GcContext {
        let package = name.map(package_of);
        GcContext {
            is_large: package.and_then(|package| self.large.get(package).copied()),
            observed: self.followed.or(written),
            ..self.known
        }
    }
}

/// The package of a process: `com.example.app:service` is of `com.example.app`.
pub(super) fn package_of(process: &str) -> &str {
    process.split(':').next().unwrap_or(process)
}

/// Which processes are wanted: by number, or by a part of the name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessFilter {
    /// Of this number.
    Pid(u32),
    /// With this in the name. A log may have the end of a name only: that fits, too.
    Name(String),
}

impl fmt::Display for ProcessFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProcessFilter::Pid(pid) => write!(f, "{pid}"),
            ProcessFilter::Name(name) => f.write_str(&sanitize(name)),
        }
    }
}

impl ProcessFilter {
    /// As it is typed.
    pub fn parse(text: &str) -> ProcessFilter {
        match text.parse() {
            Ok(pid) => ProcessFilter::Pid(pid),
            Err(_) => ProcessFilter::Name(text.to_owned()),
        }
    }

    fn fits(&self, report: &ProcessReport) -> bool {
        match (self, &report.name) {
            (ProcessFilter::Pid(pid), _) => report.pid == Some(*pid),
            (ProcessFilter::Name(wanted), Some(name)) => {
                // ART cuts a name to its last 15 characters, and that to 14.
                name.contains(wanted.as_str())
                    || report.name_is_cut && name.len() >= 14 && wanted.contains(name.as_str())
            }
            (ProcessFilter::Name(_), None) => false,
        }
    }
}

impl GcReport {
    /// What a log told.
    pub(super) fn of_log(source: GcSource, log: &GcLog, phone: &OfPhone) -> GcReport {
        let processes = log.processes().map(|process| {
            let name = process.name.as_ref().map(|name| name.text.as_str());
            let report = analyze(process, phone.of(name, log.observed(process)));
            (report, process.collections.clone())
        });
        GcReport {
            lines: Some(log.lines),
            formats: log.formats.iter().copied().collect(),
            span: log.span,
            left_out: log.left_out,
            ..GcReport::of(source, processes.collect())
        }
    }

    /// What a recording holds.
    pub fn of_recording(timeline: Timeline) -> GcReport {
        let processes = of_timeline(timeline).into_iter().map(|recorded| {
            let Recorded {
                log,
                every,
                observed,
            } = recorded;
            let known = GcContext {
                every,
                observed,
                ..GcContext::default()
            };
            (analyze(&log, known), log.collections)
        });
        GcReport::of(GcSource::Recording, processes.collect())
    }

    fn of(source: GcSource, mut processes: Vec<(ProcessReport, Vec<Timed>)>) -> GcReport {
        processes.sort_by_key(|(report, _)| {
            let gravest = report.diagnoses.first().map(|d| d.severity);
            std::cmp::Reverse((gravest, report.collections))
        });
        let (processes, collections) = processes.into_iter().unzip();
        GcReport {
            source,
            lines: None,
            formats: Vec::new(),
            span: None,
            processes,
            collections,
            left_out: 0,
            findings: Vec::new(),
        }
    }

    /// Leaves only these processes: the log of an old phone is everybody's.
    fn processes_of(&mut self, targets: &[Target]) {
        let wanted: Vec<ProcessFilter> = targets
            .iter()
            .map(|target| ProcessFilter::Pid(target.pid))
            .collect();
        self.only(&wanted);
    }

    /// Leaves only the processes that are wanted, all where none is named; says which of them
    /// are not there.
    pub fn choose(&mut self, wanted: &[ProcessFilter]) {
        let there = self.processes.iter().map(|process| {
            let name = process.name.as_deref().map(sanitize);
            let cut = if process.name_is_cut { "…" } else { "" };
            let pid = process.pid.map(|pid| pid.to_string()).unwrap_or_default();
            format!("{cut}{} {pid}", name.unwrap_or_default())
                .trim()
                .to_owned()
        });
        let there = join_list(there);
        // Where there are none at all, that is said.
        let missing = wanted.iter().filter(|which| {
            let mut processes = self.processes.iter();
            !there.is_empty() && !processes.any(|process| which.fits(process))
        });
        let missing = missing.map(|which| Finding {
            kind: NO_SUCH_PROCESS,
            class: None,
            message: format!("no collection of a process {which}"),
            help: Some(format!("there are those of {there}")),
            pid: None,
        });
        let missing: Vec<Finding> = missing.collect();
        self.findings.extend(missing);
        self.only(wanted);
    }

    /// Leaves only the processes that are wanted; all where none is named.
    fn only(&mut self, wanted: &[ProcessFilter]) {
        if wanted.is_empty() {
            return;
        }
        let fits: Vec<bool> = self
            .processes
            .iter()
            .map(|process| wanted.iter().any(|which| which.fits(process)))
            .collect();
        let mut kept = fits.iter();
        self.processes.retain(|_| kept.next() == Some(&true));
        let mut kept = fits.iter();
        self.collections.retain(|_| kept.next() == Some(&true));
    }
}
