//! Native heaps of an input: the selected dumps as symbolized stacks, and related facts.

use std::ops::Deref;
use std::path::PathBuf;

use heaptap_analyze::sampling::Estimate;
use heaptap_base::error::ErrorClass;
use heaptap_base::untrusted::shell::quoted_path;
use heaptap_model::profile::SystemInfo;
use heaptap_model::stacks::{Dump, Facts, JoinBy, StackProfile, default_rank, join};
use heaptap_model::timeline::Timeline;
use heaptap_results::findings::{self, Finding, NAMES_MISSING};
use heaptap_results::lists::process_name;
use heaptap_results::manifest::{Manifest, Symbolization, Totals};

/// A dump of an input, selected or not.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedDump {
    pub facts: Facts,
    /// All bound labels.
    pub labels: Vec<String>,
    /// Sums; absent if its columns are from another tool.
    pub totals: Option<Totals>,
    /// Unreleased bytes with their error; absent if unknown or not requested.
    pub held: Option<Estimate>,
    /// Distinct callsites.
    pub callsites: u64,
}

impl ListedDump {
    /// Returns its rank as the default dump, for which labels count or do not.
    pub(super) fn rank(&self, with_labels: bool) -> u8 {
        default_rank(self.facts.open, with_labels && !self.labels.is_empty())
    }

    /// Returns a description: `@2 (after-login) libc.malloc of com.example.app (2050)`.
    pub fn describe(&self) -> String {
        let facts = &self.facts;
        let mut text = format!("@{}", facts.number);
        if !self.labels.is_empty() {
            text += &format!(" ({})", self.labels.join(", "));
        }
        if !facts.heap.is_empty() {
            text += &format!(" {}", facts.heap);
        }
        if !facts.process.is_empty() || facts.pid != 0 {
            text += &format!(" of {}", process_name(facts.pid, &facts.process));
        }
        text
    }
}

/// All dumps of an input, in chronological order. They can be tens of thousands, so those of one heap
/// are found by an index.
#[derive(Debug, Default)]
pub struct DumpList {
    dumps: Vec<ListedDump>,
    /// Positions of the dumps, by process and heap, then in chronological order.
    by_heap: Vec<u32>,
}

impl From<Vec<ListedDump>> for DumpList {
    fn from(dumps: Vec<ListedDump>) -> DumpList {
        let mut by_heap: Vec<u32> = (0..dumps.len() as u32).collect();
        by_heap.sort_by_key(|&at| dumps[at as usize].facts.heap_key());
        DumpList { dumps, by_heap }
    }
}

impl Deref for DumpList {
    type Target = [ListedDump];

    fn deref(&self) -> &[ListedDump] {
        &self.dumps
    }
}

impl DumpList {
    /// Returns the dumps of the same heap of the same process, in chronological order.
    pub fn of_heap(&self, facts: &Facts) -> impl DoubleEndedIterator<Item = &ListedDump> + Clone {
        let key = facts.heap_key();
        let of = |at: &u32| &self.dumps[*at as usize];
        let start = self
            .by_heap
            .partition_point(|at| of(at).facts.heap_key() < key);
        let length = self.by_heap[start..].partition_point(|at| of(at).facts.heap_key() == key);
        self.by_heap[start..start + length].iter().map(of)
    }

    /// Returns the entry of a dump.
    pub fn entry(&self, facts: &Facts) -> Option<&ListedDump> {
        self.of_heap(facts)
            .find(|listed| listed.facts.is_dump(facts))
    }
}

/// The native heaps of an input.
#[derive(Debug, Default)]
pub struct NativeFile {
    /// File or directory as typed.
    pub path: PathBuf,
    /// Selected dumps, in chronological order; at least one.
    pub profile: StackProfile,
    /// All dumps of the input.
    pub listed: DumpList,
    /// Number of Java heap dumps in the same input.
    pub java_dumps: usize,
    /// Findings about the input and the selected dumps.
    pub findings: Vec<Finding>,
    /// Manifest of the recording, if the input is a recording directory or in one.
    pub manifest: Option<Manifest>,
    /// The recorded system, as far as a trace has it.
    pub system: SystemInfo,
    /// Process memory from the traces, if requested.
    pub memory: Timeline,
    /// Symbolized frames of the selected dumps; absent for pprofs.
    pub symbolization: Option<Symbolization>,
}

/// Minimum share of bytes in unnamed functions for a finding.
pub(crate) const MANY_UNNAMED: f64 = 0.05;

impl NativeFile {
    /// Returns a finding about bytes allocated in functions without a name, and the remedy.
    pub fn names_missing(&self) -> Option<Finding> {
        let share = self.symbolization.as_ref()?.leaf_share_unnamed;
        let remedy = match self.path.is_dir() {
            true => format!(
                "heaptap symbolize {} --symbols DIR",
                quoted_path(&self.path)
            ),
            // A flag of the command that prints this.
            false => "--symbols DIR".to_owned(),
        };
        (share >= MANY_UNNAMED).then(|| {
            let message = format!(
                "functions without a name allocated {:.1}% of the bytes; provide unstripped \
                 libraries with {remedy}",
                share * 100.0,
            );
            Finding::new(NAMES_MISSING, None, message)
        })
    }

    /// Returns the exit code class; `None` if the data are complete.
    pub fn class(&self) -> Option<ErrorClass> {
        let is_empty = |dump: &Dump| dump.values.nodes.is_empty();
        match self.profile.dumps.iter().all(is_empty) {
            true => findings::class_of_empty(&self.findings),
            false => findings::class(&self.findings),
        }
    }

    /// Returns the display name of a dump: `PATH`, `PATH@LABEL` or, if there are several, `PATH@N`.
    pub fn name_of(&self, dump: &Dump) -> String {
        let path = self.path.display();
        match &dump.facts.label {
            Some(label) if self.is_last_labelled(dump, label) => format!("{path}@{label}"),
            _ if self.listed.len() > 1 => format!("{path}@{}", dump.facts.number),
            _ => path.to_string(),
        }
    }

    /// Returns whether a label selects the dump: of several dumps with a label, it selects the last.
    fn is_last_labelled(&self, dump: &Dump, label: &str) -> bool {
        !self.listed.of_heap(&dump.facts).any(|listed| {
            listed.facts.number > dump.facts.number
                && listed.labels.iter().any(|known| known == label)
        })
    }

    /// Returns the number of dumps of its process and heap in the input. If some are missing, the
    /// number of the last one tells it; a single pprof does not tell how many others there are.
    pub fn count_of(&self, dump: &Dump) -> usize {
        match self.listed.of_heap(&dump.facts).count() {
            1 => 1,
            several => several.max(dump.facts.number as usize),
        }
    }

    /// Describes a dump, as [`ListedDump::describe`].
    pub fn describe(&self, dump: &Dump) -> String {
        let listed = self.listed.entry(&dump.facts);
        listed.map_or_else(|| format!("@{}", dump.facts.number), ListedDump::describe)
    }
}

/// Merges the profiles of several traces into one table.
pub(super) fn joined(mut profiles: Vec<StackProfile>) -> StackProfile {
    if profiles.len() == 1
        && let Some(only) = profiles.pop()
    {
        return only;
    }
    let tables: Vec<_> = profiles.iter().map(|profile| &profile.table).collect();
    let joined = join(&tables, JoinBy::Exact);
    let mut dumps = Vec::new();
    for (profile, nodes) in profiles.into_iter().zip(&joined.nodes) {
        for mut dump in profile.dumps {
            dump.move_to(nodes);
            dumps.push(dump);
        }
    }
    StackProfile {
        table: joined.table,
        dumps,
    }
}
