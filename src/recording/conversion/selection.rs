//! Selection of dumps to convert, and the available ones.

use crate::heaps::selector::ProcessFilter;
use heaptap_model::profile::{DumpFlags, HeapDump, is_heap};
use heaptap_results::lists::join_list;
use heaptap_results::manifest::JAVA_HEAP;
use std::collections::{BTreeMap, BTreeSet};

/// The word for every heap but Java's.
const NATIVE: &str = "native";

/// Selection of dumps; an empty list does not restrict it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    /// Process IDs.
    pub processes: ProcessFilter,
    /// Names of heaps, or `native` for all but Java heaps; empty for every heap.
    pub heaps: Vec<String>,
    /// Trace times in ns, exactly.
    pub timestamps: Vec<u64>,
    /// Individually selected dumps, if any.
    pub named: Option<Vec<DumpName>>,
}

/// Identity of a dump within an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DumpName {
    /// A dump of a trace.
    InTrace {
        /// Process id.
        pid: u64,
        /// Name of the heap, also for Java heaps.
        heap: String,
        /// Trace time in ns, if a clock is known.
        time_ns: Option<u64>,
    },
    /// An HPROF, by its file.
    Hprof(String),
}

impl Selection {
    /// Returns whether the individually selected dumps, if any, include this one.
    pub(super) fn names(&self, pid: u64, heap: &str, time_ns: Option<u64>) -> bool {
        let of = (pid, heap, time_ns);
        let is = |name: &DumpName| match name {
            DumpName::InTrace { pid, heap, time_ns } => (*pid, heap.as_str(), *time_ns) == of,
            DumpName::Hprof(_) => false,
        };
        self.named.as_ref().is_none_or(|all| all.iter().any(is))
    }

    /// As `names`, for an HPROF.
    pub(super) fn names_hprof(&self, file: &str) -> bool {
        let is = |name: &DumpName| matches!(name, DumpName::Hprof(name) if name == file);
        self.named.as_ref().is_none_or(|all| all.iter().any(is))
    }

    pub(super) fn takes(&self, dump: &HeapDump) -> bool {
        let time = time_of(dump);
        let (heap, flags) = (&*dump.heap, dump.flags);
        self.names(dump.pid, heap, dump.time_ns)
            && self.chooses(dump.pid, &dump.process, (heap, flags), Some(time))
    }

    /// As `takes`, for a Java heap or the allocations that a runtime tracked.
    pub(super) fn takes_java(&self, pid: u64, process: &str, heap: &str, time_ns: u64) -> bool {
        let (of_heap, time) = ((heap, DumpFlags::default()), Some(time_ns));
        self.names(pid, heap, time) && self.chooses(pid, process, of_heap, time)
    }

    /// Returns true if options choose a dump: by its process, its heap with the flags, and its time.
    pub fn chooses(
        &self,
        pid: u64,
        process: &str,
        (heap, flags): (&str, DumpFlags),
        time_ns: Option<u64>,
    ) -> bool {
        let is_wanted =
            |name: &String| is_heap(name, heap, flags) || (name == NATIVE && heap != JAVA_HEAP);
        self.processes.takes(Some(pid), process)
            && (self.heaps.is_empty() || self.heaps.iter().any(is_wanted))
            && (self.timestamps.is_empty()
                || time_ns.is_some_and(|time| self.timestamps.contains(&time)))
    }
}

/// Returns the time of a dump for `--timestamps`.
fn time_of(dump: &HeapDump) -> u64 {
    dump.time_ns.unwrap_or(dump.raw_time_ns)
}

/// Available dumps, for a selection without matches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Choices {
    /// Number of dumps.
    pub dumps: u64,
    /// Process ids and names.
    pub processes: BTreeMap<u64, String>,
    /// Names of heaps.
    pub heaps: BTreeSet<String>,
    /// Trace times in ns.
    pub times: BTreeSet<u64>,
}

impl Choices {
    pub(super) fn add_native(&mut self, dump: &HeapDump) {
        self.add(dump.pid, &dump.process, &dump.heap, time_of(dump));
    }

    pub(super) fn add(&mut self, pid: u64, process: &str, heap: &str, time_ns: u64) {
        self.dumps += 1;
        let named = self.processes.entry(pid);
        named.or_insert_with(|| process.to_owned());
        if !self.heaps.contains(heap) {
            self.heaps.insert(heap.to_owned());
        }
        self.times.insert(time_ns);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.dumps == 0
    }

    /// Returns a readable list, truncated to a reasonable length.
    pub(super) fn describe(&self) -> String {
        let process = |(pid, name): (&u64, &String)| match name.as_str() {
            "" => pid.to_string(),
            name => format!("{pid} ({name})"),
        };
        format!(
            "the trace contains the processes {}; the heaps {}; dumps at {} ns",
            join_list(self.processes.iter().map(process)),
            join_list(self.heaps.iter().cloned()),
            join_list(self.times.iter().map(u64::to_string)),
        )
    }
}
