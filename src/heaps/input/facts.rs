//! Facts about a native dump, the analysis options and the values, as used in documents and
//! headings.

use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::heaps::input::NativeFile;
use heaptap_analyze::native::filter::Filter;
use heaptap_analyze::native::groups::{file_of, function_of, library_name};
use heaptap_analyze::sampling::{Estimate, Rate};
use heaptap_model::profile::DumpKind;
use heaptap_model::stacks::{Dump, FrameId, StackTable, View};
use heaptap_results::manifest::Flags;

/// Identity of a dump.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DumpFacts {
    /// Display name: `rec@after-login`.
    pub name: String,
    /// File or directory as typed.
    pub path: String,
    /// Dump number within its process and heap, from 1: `N` of `PATH@N`.
    pub number: u32,
    /// Number of dumps of its process and heap.
    pub dumps: usize,
    /// Label of its snapshot.
    pub label: Option<String>,
    /// Process name; empty if unknown.
    pub process: String,
    /// Process ID; 0 if unknown.
    pub pid: u64,
    /// Heap; empty if unknown.
    pub heap: String,
    /// Meaning of the values.
    pub kind: DumpKind,
    /// Trace time in ns.
    pub time_ns: Option<u64>,
    /// Time since 1970, in ns.
    pub wall_time_ns: Option<u64>,
    /// Sampling interval in bytes; 0 if unknown, 1 is exact.
    pub sampling_interval_bytes: u64,
    /// Requested interval, if different.
    pub requested_sampling_interval_bytes: Option<u64>,
    /// Flags of the daemon.
    pub flags: Flags,
    /// True if data are missing, so that values are lower bounds.
    pub unfinished: bool,
    /// True if counts are of samples: sampling scales bytes, but not counts. Other tools can scale
    /// both.
    #[serde(skip)]
    pub counts_samples: bool,
    /// Profiling began while the process ran: allocations from before are missing.
    #[serde(skip)]
    pub is_attached: bool,
}

impl DumpFacts {
    /// Returns the facts about a dump of a file.
    pub fn new(file: &NativeFile, dump: &Dump) -> DumpFacts {
        let facts = &dump.facts;
        let asked = facts.orig_sampling_interval_bytes;
        // Profiles of other tools contain neither their start nor their process.
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
            kind: facts.kind,
            time_ns: facts.time_ns,
            wall_time_ns: facts.wall_time_ns,
            sampling_interval_bytes: facts.sampling_interval_bytes,
            requested_sampling_interval_bytes: (asked != 0).then_some(asked),
            flags: facts.flags,
            unfinished: facts.unfinished,
            counts_samples: dump.counts_samples(),
            is_attached: knows_start && !facts.flags.from_startup && !is_refused,
        }
    }

    /// Returns whether its bytes are estimates.
    pub fn is_sampled(&self) -> bool {
        self.sampling_interval_bytes != 1
    }

    /// Returns the adjective of its counts, with a space; empty if they are all allocations, or if
    /// nothing is known about them.
    pub fn kind_of_counts(&self) -> &'static str {
        match self.sampling_interval_bytes {
            _ if self.counts_samples => "sampled ",
            0 | 1 => "",
            _ => "estimated ",
        }
    }
}

/// Values by column name: an object with one number each.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    /// Names of the columns.
    pub names: Arc<[String]>,
    /// Values, in order of the names.
    pub values: Vec<i64>,
}

impl Figures {
    /// Returns the value of a view, if it exists.
    pub fn of(&self, view: View) -> Option<i64> {
        self.named(view.name())
    }

    /// Returns the value of a column, if it exists.
    pub fn named(&self, name: &str) -> Option<i64> {
        let at = self.names.iter().position(|column| column == name)?;
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
    /// Lower limit of the confidence interval.
    pub low: i64,
    /// Upper limit.
    pub high: i64,
    /// Sampled allocations behind it.
    pub samples: u64,
    /// The estimate, for display.
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
    /// Value as sampled.
    pub value: f64,
    /// Lower limit; absent if the sampling interval is unknown.
    pub low: Option<f64>,
    /// Upper limit.
    pub high: Option<f64>,
    /// The rate, for display.
    #[serde(skip)]
    pub rate: Rate,
}

impl Growth {
    /// Converts a rate, with limits if they are meaningful.
    pub fn new(rate: Rate, has_limits: bool) -> Growth {
        Growth {
            value: rate.value,
            low: has_limits.then_some(rate.low),
            high: has_limits.then_some(rate.high),
            rate,
        }
    }
}

/// A filter as typed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FilterFacts {
    /// Only stacks with such a frame.
    pub focus: Vec<String>,
    /// Without stacks with such a frame.
    pub ignore: Vec<String>,
    /// Removed frames.
    pub hide: Vec<String>,
    /// Frames to keep.
    pub show: Vec<String>,
    /// Frames at which stacks begin.
    pub show_from: Vec<String>,
    /// True if allocators and the Java runtime are shown.
    pub all_frames: bool,
}

impl FilterFacts {
    /// Returns whether the filter matches every stack.
    pub fn is_empty(&self) -> bool {
        self.ignore.is_empty() && !self.selects()
    }

    /// Returns whether the filter has patterns other than those to ignore.
    pub fn selects(&self) -> bool {
        let all = [&self.focus, &self.hide, &self.show, &self.show_from];
        !all.into_iter().all(Vec::is_empty)
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

/// Name of a stack without frames.
pub(super) const NO_FRAMES: &str = "[no frames]";

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StackFrame {
    pub function: String,
    /// File name of its library; empty if unknown.
    pub library: String,
    /// Source file; empty if unknown.
    pub file: String,
    /// Source line; 0 if unknown.
    pub line: u32,
}

impl StackFrame {
    pub(crate) fn new(table: &StackTable, frame: FrameId) -> StackFrame {
        let function = function_of(table, frame);
        StackFrame {
            function: table.text_of(function.name).to_owned(),
            library: library_name(table, function.library).into_owned(),
            file: file_of(table, frame).to_owned(),
            line: table.frames()[frame.0 as usize].line,
        }
    }

    /// Returns the frame that stands for a stack without frames.
    pub(crate) fn nowhere() -> StackFrame {
        StackFrame {
            function: NO_FRAMES.to_owned(),
            library: String::new(),
            file: String::new(),
            line: 0,
        }
    }
}
