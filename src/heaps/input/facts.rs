//! What a native dump is, how it was looked at, and its figures, as documents and headings
//! tell them.

use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::analyze::native::filter::Filter;
use crate::analyze::sampling::{Estimate, Rate};
use crate::heaps::input::NativeFile;
use crate::profile::DumpKind;
use crate::results::manifest::Flags;
use crate::stacks::{Dump, View};

/// Which dump it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DumpFacts {
    /// What it is called: `rec@after-login`.
    pub name: String,
    /// The file or folder as it was typed.
    pub path: String,
    /// Which dump of its process and heap it is, from 1: `N` of `PATH@N`.
    pub number: u32,
    /// How many dumps of its process and heap there are to choose from.
    pub dumps: usize,
    /// The label of its snapshot.
    pub label: Option<String>,
    /// Process name; empty where not known.
    pub process: String,
    /// Process id; 0 where not known.
    pub pid: u64,
    /// Heap; empty where not known.
    pub heap: String,
    /// `cumulative`, `at-maximum`, `allocations-only`.
    pub kind: &'static str,
    /// Trace time in ns.
    pub time_ns: Option<u64>,
    /// Time since 1970 in ns.
    pub wall_time_ns: Option<u64>,
    /// Sampling interval in bytes; 0 where not known, 1 is exact.
    pub sampling_interval_bytes: u64,
    /// The interval that was asked for, where it was another.
    pub asked_sampling_interval_bytes: Option<u64>,
    /// The daemon's flags.
    pub flags: Flags,
    /// Something of it is missing: figures are lower bounds.
    pub unfinished: bool,
    /// Its counts are of samples: sampling scales bytes up, and leaves counts as they are. Other
    /// tools may scale both.
    #[serde(skip)]
    pub counts_samples: bool,
    /// Profiling began while the process ran: allocations from before are missing.
    #[serde(skip)]
    pub is_attached: bool,
}

impl DumpFacts {
    /// Of a dump of a file.
    pub fn of(file: &NativeFile, dump: &Dump) -> DumpFacts {
        let facts = &dump.facts;
        let asked = facts.orig_sampling_interval_bytes;
        // Profiles of other tools do not say when they began, nor of which process they are.
        let knows_start = file.symbolization.is_some() || !facts.process.is_empty();
        let is_refused = facts.flags.rejected_concurrent;
        DumpFacts {
            name: file.name_of(dump),
            path: file.path.display().to_string(),
            number: facts.number,
            dumps: file.count_of(dump),
            label: facts.label.clone(),
            process: facts.process.clone(),
            pid: facts.pid,
            heap: facts.heap.clone(),
            kind: kind_word(facts.kind),
            time_ns: facts.time_ns,
            wall_time_ns: facts.wall_time_ns,
            sampling_interval_bytes: facts.sampling_interval_bytes,
            asked_sampling_interval_bytes: (asked != 0).then_some(asked),
            flags: facts.flags,
            unfinished: facts.unfinished,
            counts_samples: knows_start && facts.sampling_interval_bytes != 1,
            is_attached: knows_start && !facts.flags.from_startup && !is_refused,
        }
    }

    /// Whether its bytes are estimates.
    pub fn is_sampled(&self) -> bool {
        self.sampling_interval_bytes != 1
    }
}

fn kind_word(kind: DumpKind) -> &'static str {
    match kind {
        DumpKind::Cumulative => "cumulative",
        DumpKind::AtMaximum => "at-maximum",
        DumpKind::AllocationsOnly => "allocations-only",
    }
}

/// Values by the names of their columns: an object with one number each.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    /// Names of the columns.
    pub names: Arc<[String]>,
    /// Values, in order of the names.
    pub values: Vec<i64>,
}

impl Figures {
    /// The value of a view, where there is one.
    pub fn of(&self, view: View) -> Option<i64> {
        let at = self.names.iter().position(|name| name == view.name())?;
        self.values.get(at).copied()
    }
}

impl Serialize for Figures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.names.iter().zip(&self.values))
    }
}

/// 95 % limits of sampled bytes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Limits {
    /// The true bytes are hardly fewer.
    pub low: i64,
    /// The true bytes are hardly more.
    pub high: i64,
    /// Sampled allocations behind it.
    pub samples: u64,
    /// What it was made of, for those who show it.
    #[serde(skip)]
    pub estimate: Estimate,
}

impl From<Estimate> for Limits {
    fn from(estimate: Estimate) -> Limits {
        Limits {
            low: estimate.low,
            high: estimate.high,
            samples: estimate.samples,
            estimate,
        }
    }
}

/// Growth with its 95 % limits, in bytes or in bytes by iteration or time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Growth {
    /// As sampled.
    pub value: f64,
    /// The true value is hardly less; absent where no sampling interval is known.
    pub low: Option<f64>,
    /// The true value is hardly more.
    pub high: Option<f64>,
    /// What it was made of, for those who show it.
    #[serde(skip)]
    pub rate: Rate,
}

impl Growth {
    /// Of a rate whose limits mean something, or nothing.
    pub fn of(rate: Rate, has_limits: bool) -> Growth {
        Growth {
            value: rate.value,
            low: has_limits.then_some(rate.low),
            high: has_limits.then_some(rate.high),
            rate,
        }
    }
}

/// A filter, as it was typed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FilterFacts {
    /// Only stacks with such a frame.
    pub focus: Vec<String>,
    /// No stacks with such a frame.
    pub ignore: Vec<String>,
    /// Frames that were taken out.
    pub hide: Vec<String>,
    /// Frames that were kept.
    pub show: Vec<String>,
    /// Where stacks begin.
    pub show_from: Vec<String>,
    /// Whether allocators and the Java runtime are shown.
    pub all_frames: bool,
}

impl FilterFacts {
    /// Whether every stack counts.
    pub fn is_empty(&self) -> bool {
        let all = [
            &self.focus,
            &self.ignore,
            &self.hide,
            &self.show,
            &self.show_from,
        ];
        all.into_iter().all(Vec::is_empty)
    }
}

impl From<&Filter> for FilterFacts {
    fn from(filter: &Filter) -> FilterFacts {
        let texts = |patterns: &[regex::Regex]| -> Vec<String> {
            patterns.iter().map(|p| p.as_str().to_owned()).collect()
        };
        FilterFacts {
            focus: texts(&filter.focus),
            ignore: texts(&filter.ignore),
            hide: texts(&filter.hide),
            show: texts(&filter.show),
            show_from: texts(&filter.show_from),
            all_frames: filter.all_frames,
        }
    }
}

/// A frame of a stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StackFrame {
    /// Its function.
    pub function: String,
    /// Its library, by its file name; empty where not known.
    pub library: String,
    /// Source file; empty where not known.
    pub file: String,
    /// Line in it; 0 where not known.
    pub line: u32,
}
