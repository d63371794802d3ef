//! The numbers: which columns there are, and each dump's values by callsite.

use super::table::{NodeId, StackTable};
use crate::profile::{DumpFlags, DumpKind};

/// One of the four ways to count a sampled heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum View {
    /// Bytes held.
    Space,
    /// Sampled allocations held.
    Objects,
    /// Bytes allocated since profiling began.
    AllocSpace,
    /// Sampled allocations since profiling began.
    AllocObjects,
}

impl View {
    /// All four, in the order in which they are shown.
    pub const ALL: [View; 4] = [
        View::Space,
        View::AllocSpace,
        View::Objects,
        View::AllocObjects,
    ];

    /// `space`, `objects`, `alloc_space`, `alloc_objects`.
    pub fn name(self) -> &'static str {
        match self {
            View::Space => "space",
            View::Objects => "objects",
            View::AllocSpace => "alloc_space",
            View::AllocObjects => "alloc_objects",
        }
    }
}

/// What a column counts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Things.
    Count,
    /// Something of another tool's, in its own word.
    Other(String),
}

/// A column of values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measure {
    /// Its name: that of the pprof's sample type.
    pub name: String,
    /// What it counts.
    pub unit: Unit,
    /// Which of the four views it is; `None` for other columns of other tools.
    pub view: Option<View>,
    /// The view of bytes of which it counts the samples that may be small, where callsites were
    /// summed: of a sum they can't be told. It is for the error alone, and nothing to look at.
    pub small_of: Option<View>,
}

impl Measure {
    /// The column of a view.
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

    /// The column of the small samples of a view of bytes.
    pub fn small_samples(bytes: View) -> Measure {
        Measure {
            name: format!("small_{}", bytes.name()),
            unit: Unit::Count,
            view: None,
            small_of: Some(bytes),
        }
    }
}

/// What is known of a dump beside its values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// Which dump of its process and heap it is, from 1: `N` of `PATH@N`.
    pub number: u32,
    /// The label of its snapshot.
    pub label: Option<String>,
    /// Process id on the device; 0 where not known.
    pub pid: u64,
    /// Process name; empty where not known.
    pub process: String,
    /// `libc.malloc`, `com.android.art`, a custom heap; empty where not known.
    pub heap: String,
    /// Trace time (BOOTTIME) in ns.
    pub time_ns: Option<u64>,
    /// Wall-clock time in ns since 1970.
    pub wall_time_ns: Option<u64>,
    /// Trace time at which profiling of this heap began, in ns.
    pub start_ns: Option<u64>,
    /// Sampling interval in bytes at the end of the dump; 0 where not known, 1 is exact.
    pub sampling_interval_bytes: u64,
    /// The interval that was asked for, where it differs (adaptive sampling); else 0.
    pub orig_sampling_interval_bytes: u64,
    /// What the values mean.
    pub kind: DumpKind,
    /// The daemon's flags.
    pub flags: DumpFlags,
    /// Something of it is missing: what is here is a lower bound.
    pub unfinished: bool,
    /// The file ends before it does: it counts only where it is asked for, or is the only one.
    pub open: bool,
}

impl Facts {
    /// Whether both are of one dump of one input.
    pub fn is_dump(&self, other: &Facts) -> bool {
        self.is_of_heap(other) && self.number == other.number
    }

    /// Whether this dump, which comes behind `known` of the same heap, is the last one so far: one
    /// that is still open is the last only where there is no other.
    pub fn supersedes(&self, known: &Facts) -> bool {
        !self.open || known.open
    }

    /// Whether both are of one heap of one process of an input.
    pub fn is_of_heap(&self, other: &Facts) -> bool {
        (self.pid, &self.heap) == (other.pid, &other.heap)
    }
}

/// The heap of dumps of allocations that a Java runtime tracked, as our profiles call it: the
/// innermost frames are classes.
pub const TRACKED_HEAP: &str = "java-allocations";

/// Values by callsite: one row a callsite, ascending, each once; one column a measure. They are
/// the callsite's own (self): what was allocated by stacks that end there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Values {
    /// Callsites, ascending.
    pub nodes: Vec<NodeId>,
    /// For each measure of the dump its values, in order of `nodes`.
    pub columns: Vec<Vec<i64>>,
}

impl Values {
    /// Sums rows by callsite (saturating): `value` gives that of a column and a row.
    pub fn sum(
        mut rows: Vec<(NodeId, u32)>,
        columns: usize,
        value: impl Fn(usize, u32) -> i64,
    ) -> Values {
        rows.sort_unstable();
        let nodes = rows.chunk_by(|a, b| a.0 == b.0).count();
        let mut values = Values {
            nodes: Vec::with_capacity(nodes),
            columns: (0..columns).map(|_| Vec::with_capacity(nodes)).collect(),
        };
        for (node, row) in rows {
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

/// One heap of one process at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dump {
    /// What is known of it.
    pub facts: Facts,
    /// Its columns. Those of one recording have the four views, or fewer: `com.android.art`
    /// knows no frees.
    pub measures: Vec<Measure>,
    /// Index of the measure that is shown where none was asked for.
    pub default_measure: usize,
    /// The numbers.
    pub values: Values,
    /// The same by thread, where threads are told apart.
    pub threads: Vec<ThreadValues>,
}

/// What one thread allocated.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThreadValues {
    /// Its id, or what a tool calls it.
    pub name: String,
    /// Its part of the dump's values.
    pub values: Values,
}

impl Dump {
    /// Moves all numbers to the callsites of another table; `nodes` by those of this one.
    pub fn move_to(&mut self, nodes: &[NodeId]) {
        self.values = self.values.through(nodes);
        for thread in &mut self.threads {
            thread.values = thread.values.through(nodes);
        }
    }

    /// The column of a view, if the dump has it.
    pub fn column(&self, view: View) -> Option<&[i64]> {
        let at = self.measures.iter().position(|m| m.view == Some(view))?;
        self.values.columns.get(at).map(Vec::as_slice)
    }
}

/// Dumps that share a table.
#[derive(Debug, Clone, Default)]
pub struct StackProfile {
    /// Names, frames, callsites.
    pub table: StackTable,
    /// The dumps, in order of time, then process and heap.
    pub dumps: Vec<Dump>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_dump_is_the_last_only_where_there_is_no_other() {
        let dump = |open| Facts {
            open,
            ..Facts::default()
        };
        for (open, known_open, supersedes) in [
            (false, false, true),
            (false, true, true),
            (true, true, true),
            (true, false, false),
        ] {
            assert_eq!(dump(open).supersedes(&dump(known_open)), supersedes);
        }
    }
}
