//! The numbers: available columns, and each dump's values by callsite.

use std::collections::BTreeMap;

use super::table::{NodeId, StackTable};
use crate::profile::{DumpFlags, DumpKind};

/// One of the four measures of a sampled heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum View {
    /// Unreleased bytes.
    Space,
    /// Sampled unreleased allocations.
    Objects,
    /// Bytes allocated since profiling began.
    AllocSpace,
    /// Sampled allocations since profiling began.
    AllocObjects,
}

impl View {
    /// All four views, in display order.
    pub const ALL: [View; 4] = [
        View::Space,
        View::AllocSpace,
        View::Objects,
        View::AllocObjects,
    ];

    /// Returns `space`, `objects`, `alloc_space` or `alloc_objects`.
    pub fn name(self) -> &'static str {
        match self {
            View::Space => "space",
            View::Objects => "objects",
            View::AllocSpace => "alloc_space",
            View::AllocObjects => "alloc_objects",
        }
    }
}

/// Unit of a column.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Unit {
    Bytes,
    /// Number of things.
    Count,
    /// Unit of another tool, as named there.
    Other(String),
}

/// A column of values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measure {
    /// Name, which is that of the pprof sample type.
    pub name: String,
    pub unit: Unit,
    /// One of the four views; `None` for other columns of other tools.
    pub view: Option<View>,
    /// The view of bytes whose possibly small samples the column counts, for inputs with summed
    /// callsites: they are unknown in a sum. Used only for the sampling error, not shown.
    pub small_of: Option<View>,
}

impl Measure {
    /// Returns the column of a view.
    pub fn of_view(view: View) -> Measure {
        Measure {
            name: view.name().to_owned(),
            unit: match view {
                View::Space | View::AllocSpace => Unit::Bytes,
                View::Objects | View::AllocObjects => Unit::Count,
            },
            view: Some(view),
            small_of: None,
        }
    }

    /// Returns the column of the small samples of a view of bytes.
    pub fn small_samples(bytes: View) -> Measure {
        Measure {
            name: format!("small_{}", bytes.name()),
            unit: Unit::Count,
            view: None,
            small_of: Some(bytes),
        }
    }
}

/// Facts about a dump other than its values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// Number of the dump for its process and heap, from 1: `N` of `PATH@N`.
    pub number: u32,
    /// Label of the dump's snapshot.
    pub label: Option<String>,
    /// Process ID on the device; 0 if unknown.
    pub pid: u64,
    /// Process name; empty if unknown.
    pub process: String,
    /// `libc.malloc`, `com.android.art`, a custom heap; empty if unknown.
    pub heap: String,
    /// Trace time (BOOTTIME) in ns.
    pub time_ns: Option<u64>,
    /// Wall-clock time in ns since 1970.
    pub wall_time_ns: Option<u64>,
    /// Trace time at which profiling of this heap began, in ns.
    pub start_ns: Option<u64>,
    /// Sampling interval in bytes at the end of the dump; 0 if unknown, 1 is exact.
    pub sampling_interval_bytes: u64,
    /// The requested interval if it differs (adaptive sampling); 0 otherwise.
    pub orig_sampling_interval_bytes: u64,
    /// Meaning of the values.
    pub kind: DumpKind,
    /// The daemon's flags.
    pub flags: DumpFlags,
    /// A part is missing: the values are a lower bound.
    pub unfinished: bool,
    /// The file ends before the dump does: it is used only on request, or if it is the only one.
    pub open: bool,
    /// Commands and pages show this dump of its heap unless another one is selected.
    pub is_default: bool,
}

/// Returns the last dump of the highest rank of each heap, ascending: the one that is shown unless
/// another one is selected. `dumps` has their places, heaps and ranks, in chronological order.
pub fn last_of_each<K: Ord>(dumps: impl IntoIterator<Item = (usize, K, u8)>) -> Vec<usize> {
    let mut last = BTreeMap::new();
    for (at, heap, rank) in dumps {
        let known = last.entry(heap).or_insert((rank, at));
        *known = (rank, at).max(*known);
    }
    let mut last: Vec<usize> = last.into_values().map(|(_, at)| at).collect();
    last.sort_unstable();
    last
}

/// Rank among the dumps of a heap, for [`last_of_each`]. A dump that is still open is shown only if
/// there is no other, and a label counts if `is_labelled`.
pub fn default_rank(is_open: bool, is_labelled: bool) -> u8 {
    match (is_open, is_labelled) {
        (true, _) => 0,
        (false, false) => 1,
        (false, true) => 2,
    }
}

impl Facts {
    /// Returns whether both belong to the same dump of one input.
    pub fn is_dump(&self, other: &Facts) -> bool {
        self.is_of_heap(other) && self.number == other.number
    }

    /// Returns the last dump of each heap, whatever their labels, ascending. `dumps` has places and
    /// facts, in chronological order.
    pub fn last_of_each<'a>(dumps: impl IntoIterator<Item = (usize, &'a Facts)>) -> Vec<usize> {
        let dumps = dumps.into_iter();
        last_of_each(dumps.map(|(at, dump)| (at, dump.heap_key(), default_rank(dump.open, false))))
    }

    /// Returns process and heap, which identify a heap of an input.
    pub fn heap_key(&self) -> (u64, &str) {
        (self.pid, &self.heap)
    }

    /// Returns whether both belong to the same heap of one process of an input.
    pub fn is_of_heap(&self, other: &Facts) -> bool {
        self.heap_key() == other.heap_key()
    }
}

/// Heap name in our profiles for allocations that a Java runtime tracked: the innermost frames are
/// classes.
pub const TRACKED_HEAP: &str = "java-allocations";

/// Values by callsite: one row per callsite, ascending, without repetition; one column per measure.
/// They are the callsite's own (self) values: allocations by stacks that end there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Values {
    /// Callsites, ascending.
    pub nodes: Vec<NodeId>,
    /// Values of each measure of the dump, in order of `nodes`.
    pub columns: Vec<Vec<i64>>,
}

impl Values {
    /// Sums rows by callsite (saturating): `value` returns the value of a column and a row.
    pub fn sum(
        rows: impl Iterator<Item = (NodeId, u32)>,
        columns: usize,
        value: impl Fn(usize, u32) -> i64,
    ) -> Values {
        // The callsite in the upper half, because numbers are sorted faster than pairs.
        let mut rows: Vec<u64> = rows
            .map(|(node, row)| u64::from(node.0) << 32 | u64::from(row))
            .collect();
        rows.sort_unstable();
        let nodes = rows.chunk_by(|a, b| a >> 32 == b >> 32).count();
        let mut values = Values {
            nodes: Vec::with_capacity(nodes),
            columns: (0..columns).map(|_| Vec::with_capacity(nodes)).collect(),
        };
        for key in rows {
            let (node, row) = (NodeId((key >> 32) as u32), key as u32);
            let is_same = values.nodes.last() == Some(&node);
            if !is_same {
                values.nodes.push(node);
            }
            for (at, column) in values.columns.iter_mut().enumerate() {
                let value = value(at, row);
                match column.last_mut() {
                    Some(sum) if is_same => *sum = sum.saturating_add(value),
                    _ => column.push(value),
                }
            }
        }
        values
    }
}

/// One heap of one process at one time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dump {
    pub facts: Facts,
    /// Columns of the dump. Those of one recording have the four views, or fewer: `com.android.art`
    /// has no frees.
    pub measures: Vec<Measure>,
    /// Index of the measure that is shown by default.
    pub default_measure: usize,
    /// Values of all threads.
    pub values: Values,
    /// Values by thread, if threads are distinguished.
    pub threads: Vec<ThreadValues>,
}

/// Allocations of one thread.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThreadValues {
    /// Thread ID, or the name that a tool uses.
    pub name: String,
    /// The thread's part of the dump's values.
    pub values: Values,
}

impl Dump {
    /// Moves all numbers to the callsites of another table; `nodes` maps the callsites of this one.
    pub fn move_to(&mut self, nodes: &[NodeId]) {
        self.values = self.values.through(nodes);
        for thread in &mut self.threads {
            thread.values = thread.values.through(nodes);
        }
    }

    /// Returns whether counts are of samples. Profiles of other tools contain neither the process
    /// nor its name, and their counts can be estimates. Perfetto's converter drops the process, too,
    /// but keeps the counts.
    pub fn counts_samples(&self) -> bool {
        let facts = &self.facts;
        let is_of_process = facts.pid != 0 || !facts.process.is_empty();
        let mut names = self.measures.iter().map(|measure| &measure.name);
        let is_ours = is_of_process || names.any(|name| name.starts_with("Unreleased "));
        is_ours && facts.sampling_interval_bytes != 1
    }

    /// Returns the column of a view if the dump has it.
    pub fn column(&self, view: View) -> Option<&[i64]> {
        let at = self.measures.iter().position(|m| m.view == Some(view))?;
        self.values.columns.get(at).map(Vec::as_slice)
    }
}

/// Adds up values of a file, at the limit if they are too large.
pub fn sum(values: &[i64]) -> i64 {
    values
        .iter()
        .fold(0, |sum, value| sum.saturating_add(*value))
}

/// Dumps that share a table.
#[derive(Debug, Clone, Default)]
pub struct StackProfile {
    /// Names, frames, callsites.
    pub table: StackTable,
    /// Dumps in order of time, then process and heap.
    pub dumps: Vec<Dump>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_dump_is_the_last_only_where_there_is_no_other() {
        for (known, open, last) in [
            (false, false, 1),
            (true, false, 1),
            (true, true, 1),
            (false, true, 0),
        ] {
            let dumps = [known, open].map(|open| Facts {
                open,
                ..Facts::default()
            });
            assert_eq!(Facts::last_of_each(dumps.iter().enumerate()), [last]);
        }
    }
}
