//! Report on the collections of processes, from any source, and the selection of processes.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::heaps::selector::ProcessFilter;
use android_memory::gc::{
    Format, GcContext, GcLog, Observed, ProcessReport, Recorded, Timed, analyze, of_timeline,
};
use heaptap_base::untrusted::sanitize;
use heaptap_model::timeline::Timeline;
use heaptap_results::findings::Finding;
use heaptap_results::lists::join_list;

/// Kind of the finding that no collection is of a process with the given name.
pub const NO_SUCH_PROCESS: &str = "no-such-process";

/// Source of the collections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GcSource {
    /// Saved logs.
    Log,
    /// Current log of the device.
    Device,
    /// Timeline of a recording.
    Recording,
}

/// Collections of processes.
#[derive(Debug, Clone, Serialize)]
pub struct GcReport {
    pub source: GcSource,
    /// Number of lines read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<u64>,
    /// Formats of the lines with collections.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub formats: Vec<Format>,
    /// Times of the first and the last line, in ns on the log's axis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<(i64, i64)>,
    /// Processes, those with problems first, then by number of collections.
    pub processes: Vec<ProcessReport>,
    /// All collections of each process, in the order of `processes`.
    #[serde(skip)]
    pub collections: Vec<Vec<Timed>>,
    /// Number of collections or processes beyond the limit.
    #[serde(skip_serializing_if = "heaptap_base::units::is_zero")]
    pub left_out: u64,
    /// Findings to report.
    #[serde(skip)]
    pub findings: Vec<Finding>,
}

/// Facts of a device from outside its log.
#[derive(Debug, Clone, Default)]
pub(super) struct OfPhone {
    /// Limits of its heaps.
    pub(super) known: GcContext,
    /// Packages with a known `android:largeHeap`.
    pub(super) large: BTreeMap<String, bool>,
    /// Time for which the log was followed.
    pub(super) followed: Option<Observed>,
}

impl OfPhone {
    /// Returns the context of the process called `name`.
    pub(super) fn of(&self, name: Option<&str>, written: Option<Observed>) -> GcContext {
        let package = name.map(package_of);
        GcContext {
            is_large: package.and_then(|package| self.large.get(package).copied()),
            observed: self.followed.or(written),
            ..self.known
        }
    }
}

/// Returns the package of a process: `com.example.app` for `com.example.app:service`.
pub(super) fn package_of(process: &str) -> &str {
    process.split(':').next().unwrap_or(process)
}

/// Returns the name of a process, with dots where ART cut it.
pub fn shown_name(process: &ProcessReport) -> Option<String> {
    let name = process.name.as_deref()?;
    Some(match (process.name_is_cut, name.chars().count()) {
        (false, _) => name.to_owned(),
        // One character fewer than ART keeps: this version also leaves out the last one.
        (true, 14) => format!("…{name}…"),
        (true, _) => format!("…{name}"),
    })
}

/// Returns true if a filter takes a process of a log.
fn fits(filter: &ProcessFilter, report: &ProcessReport) -> bool {
    let name = report.name.as_deref().unwrap_or_default();
    let mut wanted = filter.names.iter().chain(&filter.packages);
    filter.takes(report.pid.map(u64::from), name)
        || report.name_is_cut && wanted.any(|wanted| wanted.contains(name))
}

impl GcReport {
    /// Creates the report of a log.
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
            ..GcReport::new(source, processes.collect())
        }
    }

    /// Creates the report of a recording.
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
        GcReport::new(GcSource::Recording, processes.collect())
    }

    fn new(source: GcSource, mut processes: Vec<(ProcessReport, Vec<Timed>)>) -> GcReport {
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

    /// Removes all processes that match none of `wanted`, if any are given. Adds a finding for each
    /// filter without a match.
    pub fn choose(&mut self, wanted: &ProcessFilter) {
        let there = self.processes.iter().map(|process| {
            let name = shown_name(process).unwrap_or_default();
            let pid = process.pid.map(|pid| pid.to_string()).unwrap_or_default();
            format!("{} {pid}", sanitize(&name)).trim().to_owned()
        });
        let there = join_list(there);
        // A report without any process has its own message.
        let missing = wanted.each().into_iter().filter(|which| {
            let mut processes = self.processes.iter();
            !there.is_empty() && !processes.any(|process| fits(which, process))
        });
        let missing = missing.map(|which| {
            let message = format!("no collections of {}", sanitize(&which.to_string()));
            Finding::new(NO_SUCH_PROCESS, None, message).with_help(format!("choose from {there}"))
        });
        let missing: Vec<Finding> = missing.collect();
        self.findings.extend(missing);
        self.only(wanted);
    }

    /// Removes all processes that match none of `wanted`; keeps all if it is empty.
    pub(super) fn only(&mut self, wanted: &ProcessFilter) {
        if wanted.is_empty() {
            return;
        }
        let fits: Vec<bool> = self
            .processes
            .iter()
            .map(|process| fits(wanted, process))
            .collect();
        let mut kept = fits.iter();
        self.processes.retain(|_| kept.next() == Some(&true));
        let mut kept = fits.iter();
        self.collections.retain(|_| kept.next() == Some(&true));
    }
}
