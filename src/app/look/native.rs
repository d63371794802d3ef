//! Native heaps of an input: the dumps that are meant as named stacks, and all that is known
//! beside them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::choice::{heaps, in_words, processes};
use super::error::LookError;
use crate::app::findings::Finding;
use crate::app::manifest::{Manifest, Symbolization, Totals};
use crate::error::ErrorClass;
use crate::profile::SystemInfo;
use crate::stacks::{Dump, Facts, StackProfile};

/// A dump of an input, chosen or not.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedDump {
    /// What is known of it.
    pub facts: Facts,
    /// All labels that are bound to it.
    pub labels: Vec<String>,
    /// Its sums; absent where its columns are another tool's.
    pub totals: Option<Totals>,
    /// Distinct callsites.
    pub callsites: u64,
}

impl ListedDump {
    /// In words: `@2 (after-login) libc.malloc of com.example.app (2050)`.
    pub fn describe(&self) -> String {
        let facts = &self.facts;
        let mut text = format!("@{}", facts.index);
        if !self.labels.is_empty() {
            text += &format!(" ({})", self.labels.join(", "));
        }
        if !facts.heap.is_empty() {
            text += &format!(" {}", facts.heap);
        }
        match (facts.process.as_str(), facts.pid) {
            ("", 0) => {}
            ("", pid) => text += &format!(" of {pid}"),
            (name, 0) => text += &format!(" of {name}"),
            (name, pid) => text += &format!(" of {name} ({pid})"),
        }
        text
    }
}

/// The native heaps of an input.
#[derive(Debug)]
pub struct NativeFile {
    /// The file or folder as it was typed.
    pub path: PathBuf,
    /// The dumps that are meant, in order of their indices; at least one.
    pub profile: StackProfile,
    /// All dumps of the input, in order of their indices.
    pub listed: Vec<ListedDump>,
    /// Dumps of Java heaps beside them.
    pub java_dumps: usize,
    /// What the user should know of the input and the dumps that are meant.
    pub findings: Vec<Finding>,
    /// The recording's manifest, where the input is or lies in its folder.
    pub manifest: Option<Manifest>,
    /// The system that was recorded, as far as a trace tells.
    pub system: SystemInfo,
    /// How many frames of the dumps that are meant have names; absent for pprofs.
    pub symbolization: Option<Symbolization>,
}

/// The dump to show where one is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct One {
    /// Its place among the dumps of the profile.
    pub at: usize,
    /// Whether heaps or earlier runs of the process were passed over: worth a word.
    pub among: usize,
}

/// The heap that is meant where none is named.
const USUAL_HEAP: &str = "libc.malloc";

impl NativeFile {
    /// The one dump to show, of those that are meant: of several heaps that of malloc, else the
    /// one with the largest default column; of several runs of one process the last.
    ///
    /// # Errors
    /// Where they are of several processes, or several of one heap.
    pub fn one(&self) -> Result<One, LookError> {
        let dumps = &self.profile.dumps;
        let name = || self.path.display().to_string();
        let who = |dump: &Dump| match dump.facts.process.as_str() {
            "" => dump.facts.pid.to_string(),
            process => process.to_owned(),
        };
        let all: BTreeSet<String> = dumps.iter().map(who).collect();
        if all.len() > 1 {
            return Err(LookError::SeveralProcesses {
                name: name(),
                there: processes(dumps.iter().map(|dump| &dump.facts)),
            });
        }
        let latest = dumps
            .iter()
            .max_by_key(|d| (d.facts.time_ns, d.facts.index));
        let pid = latest.map(|dump| dump.facts.pid);
        let of_run = || (0..dumps.len()).filter(|&at| Some(dumps[at].facts.pid) == pid);
        let usual = of_run().filter(|&at| dumps[at].facts.heap == USUAL_HEAP);
        let mut candidates: Vec<usize> = usual.collect();
        if candidates.is_empty() {
            let largest = of_run().max_by_key(|&at| default_total(&dumps[at]));
            let heap = largest.map(|at| dumps[at].facts.heap.clone());
            candidates = of_run()
                .filter(|&at| Some(&dumps[at].facts.heap) == heap.as_ref())
                .collect();
        }
        match candidates[..] {
            [at] => Ok(One {
                at,
                among: dumps.len(),
            }),
            _ => Err(LookError::SeveralDumps {
                name: name(),
                there: in_words(candidates.iter().map(|&at| self.describe(&dumps[at]))),
            }),
        }
    }

    /// What [`NativeFile::one`] passed over, as a hint; `None` where nothing was.
    pub fn passed_over(&self, one: One) -> Option<String> {
        let shown = &self.profile.dumps[one.at].facts;
        let others = || self.profile.dumps.iter().map(|dump| &dump.facts);
        let other_heaps: Vec<&Facts> = others().filter(|f| f.heap != shown.heap).collect();
        let other_runs: Vec<&Facts> = others().filter(|f| f.pid != shown.pid).collect();
        if !other_runs.is_empty() {
            let there = processes(other_runs.into_iter());
            return Some(format!("earlier runs are there, too (--process): {there}"));
        }
        if other_heaps.is_empty() {
            return None;
        }
        let there = heaps(other_heaps.into_iter());
        Some(format!("other heaps are there, too (--heap): {there}"))
    }

    /// What the exit code tells of; `None` where nothing is missing.
    pub fn class(&self) -> Option<ErrorClass> {
        let classes = self.findings.iter().filter_map(|finding| finding.class);
        let is_empty = |dump: &Dump| dump.values.nodes.is_empty();
        if self.profile.dumps.iter().all(is_empty) {
            // That nothing came says more than what kept it from coming.
            let graver = classes.filter(|class| *class != ErrorClass::Incomplete);
            return ErrorClass::first_of(graver.chain([ErrorClass::Empty]));
        }
        ErrorClass::first_of(classes)
    }

    /// What a dump is called beside others: `PATH`, `PATH@LABEL` or, of several, `PATH@N`.
    pub fn name_of(&self, dump: &Dump) -> String {
        let path = self.path.display();
        match &dump.facts.label {
            Some(label) => format!("{path}@{label}"),
            None if self.listed.len() > 1 => format!("{path}@{}", dump.facts.index),
            None => path.to_string(),
        }
    }

    /// A dump in words, as [`ListedDump::describe`].
    pub fn describe(&self, dump: &Dump) -> String {
        let is = |listed: &&ListedDump| listed.facts.index == dump.facts.index;
        let listed = self.listed.iter().find(is);
        listed.map_or_else(|| format!("@{}", dump.facts.index), ListedDump::describe)
    }
}

/// The sum of the column that is shown first.
fn default_total(dump: &Dump) -> i64 {
    let column = dump.values.columns.get(dump.default_measure);
    let values = column.map_or(&[][..], Vec::as_slice);
    values.iter().fold(0, |sum: i64, &v| sum.saturating_add(v))
}
