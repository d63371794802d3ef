//! Facts about a recording besides its heaps: `package_list`, `stats`, `metadata`,
//! `trace_bounds`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use super::native::{NativeHeaps, time_of};
use super::table::{Catalog, Cell, Column, Rows, Schema};
use heaptap_model::profile::{Health, HeapDump, Recording};

/// Adds the tables.
pub fn add(catalog: &mut Catalog, heaps: &Arc<NativeHeaps>, health: &Health, times: &[u64]) {
    let of = Arc::clone(&heaps.recording);
    catalog.table(&PACKAGES, move || Ok(Arc::new(Packages(Arc::clone(&of)))));
    let stats = Arc::new(Fixed(stats(heaps, health)));
    catalog.table(&STATS, move || Ok(Arc::clone(&stats) as Arc<dyn Rows>));
    let metadata = Arc::new(Fixed(metadata(&heaps.recording)));
    catalog.table(
        &METADATA,
        move || Ok(Arc::clone(&metadata) as Arc<dyn Rows>),
    );
    let bounds = Arc::new(Fixed(vec![bounds(heaps, times)]));
    catalog.table(&BOUNDS, move || Ok(Arc::clone(&bounds) as Arc<dyn Rows>));
}

static PACKAGES: Schema = Schema {
    name: "package_list",
    module: None,
    about: "Packages of the device, if the trace lists them.",
    columns: &[
        Column::id(),
        Column::text("package_name", "package name").indexed(),
        Column::int("uid", "UID of its processes").indexed(),
        Column::int("debuggable", "1 if debuggable"),
        Column::int("profileable_from_shell", "1 if the manifest allows it"),
        Column::int("version_code", "version code"),
    ],
};

struct Packages(Arc<Recording>);

impl Rows for Packages {
    fn len(&self) -> usize {
        self.0.packages.len()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let package = &self.0.packages[row];
        match column {
            0 => row.into(),
            1 => package.name.as_str().into(),
            2 => Cell::bits(package.uid),
            3 => Cell::flag(package.debuggable),
            4 => Cell::flag(package.profileable_from_shell),
            _ => package.version_code.into(),
        }
    }
}

static STATS: Schema = Schema {
    name: "stats",
    module: None,
    about: "Health of the recording: losses, limits, counters of the tracing service. Zero values \
            are left out.",
    columns: &[
        Column::id(),
        Column::text("name", "name of the counter").indexed(),
        Column::int("idx", "process ID or buffer number, if there are several"),
        Column::int("value", "count or amount"),
        Column::text("severity", "info, data_loss or error"),
        Column::text(
            "source",
            "trace: recorded in the trace; analysis: found when reading it",
        ),
        Column::text("description", "meaning"),
    ],
};

static METADATA: Schema = Schema {
    name: "metadata",
    module: None,
    about: "Facts about the recorded system from the trace.",
    columns: &[
        Column::id(),
        Column::text("name", "name of the fact").indexed(),
        Column::text("key_type", "always `single`"),
        Column::int("int_value", "value, if it is a number"),
        Column::text("str_value", "value, if it is text"),
    ],
};

static BOUNDS: Schema = Schema {
    name: "trace_bounds",
    module: None,
    about: "First and last time in the tables.",
    columns: &[
        Column::int("start_ts", "first time, ns of trace time"),
        Column::int("end_ts", "last time, ns of trace time"),
    ],
};

/// Small table with precomputed rows.
struct Fixed(Vec<Vec<Cell<'static>>>);

impl Rows for Fixed {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        self.0[row][column].clone()
    }
}

const INFO: &str = "info";
const LOSS: &str = "data_loss";
const ERROR: &str = "error";

/// Counters of a process that are summed over its dumps; of all others the maximum is used.
const SUMMED: [&str; 4] = [
    "heapprofd_unwind_time_us",
    "heapprofd_unwind_samples",
    "heapprofd_client_spinlock_blocked",
    "heapprofd_client_disconnected",
];

/// Name, value, severity and description.
type Told = (&'static str, u64, &'static str, &'static str);

/// Returns the statistics in a dump, with Perfetto's names.
fn of_dump(dump: &HeapDump) -> Vec<Told> {
    let flags = &dump.flags;
    let flag = |flag: bool| u64::from(flag);
    let adjusted = match dump.orig_sampling_interval_bytes {
        0 => 0,
        asked => dump.sampling_interval_bytes.saturating_sub(asked),
    };
    vec![
        (
            "heapprofd_last_profile_timestamp",
            dump.written_ns.unwrap_or(0),
            INFO,
            "time at which the last dump was written",
        ),
        (
            "heapprofd_buffer_overran",
            flag(flags.buffer_overran),
            LOSS,
            "the profile ends early because the shared buffer was full",
        ),
        (
            "heapprofd_client_error",
            u64::from(flags.client_error),
            ERROR,
            "1: the client waited too long for the buffer; 2: the bounds of a stack were unknown",
        ),
        (
            "heapprofd_buffer_corrupted",
            flag(flags.buffer_corrupted),
            ERROR,
            "the profile ends early because the shared buffer was corrupted",
        ),
        (
            "heapprofd_hit_guardrail",
            flag(flags.hit_guardrail),
            ERROR,
            "a limit of memory or CPU time ended profiling",
        ),
        (
            "heapprofd_rejected_concurrent",
            flag(flags.rejected_concurrent),
            ERROR,
            "not profiled because another session was profiling the process",
        ),
        (
            "heapprofd_sampling_interval_adjusted",
            adjusted,
            INFO,
            "increase of the sampling interval, in bytes",
        ),
        (
            "heapprofd_unwind_time_us",
            dump.unwinding_time_us,
            INFO,
            "time spent unwinding stacks, in µs, summed over dumps",
        ),
        (
            "heapprofd_unwind_samples",
            dump.heap_samples,
            INFO,
            "number of unwound stacks, summed over dumps",
        ),
        (
            "heapprofd_client_spinlock_blocked",
            dump.client_spinlock_blocked_us,
            INFO,
            "time that the client waited for its lock, in µs, summed over dumps",
        ),
        (
            "heapprofd_client_disconnected",
            flag(flags.disconnected),
            INFO,
            "the process disconnected before the end",
        ),
    ]
}

fn stats(heaps: &NativeHeaps, health: &Health) -> Vec<Vec<Cell<'static>>> {
    let mut rows = Vec::new();
    let mut add = |name: &'static str, idx: Option<u64>, value: u64, severity, source, about| {
        if value != 0 {
            rows.push(vec![
                Cell::from(rows.len()),
                Cell::text(name),
                idx.map(Cell::bits).unwrap_or(Cell::Null),
                Cell::bits(value),
                Cell::text(severity),
                Cell::text(source),
                Cell::text(about),
            ]);
        }
    };
    for counter in &heaps.recording.counters {
        let severity = match counter.name {
            "traced_buf_patches_failed"
            | "traced_buf_trace_writer_packet_loss"
            | "traced_final_flush_failed" => LOSS,
            "traced_buf_abi_violations" => ERROR,
            _ => INFO,
        };
        let buffer = counter.buffer.map(u64::from);
        let about = "counter of the tracing service";
        add(
            counter.name,
            buffer,
            counter.value,
            severity,
            "trace",
            about,
        );
    }
    let mut of_processes: BTreeMap<(u64, &'static str), Told> = BTreeMap::new();
    for dump in &heaps.dumps {
        for told in of_dump(dump) {
            match of_processes.entry((dump.pid, told.0)) {
                Entry::Vacant(free) => {
                    free.insert(told);
                }
                // Perfetto adds these up, although each dump counts from the start of profiling.
                Entry::Occupied(known) if SUMMED.contains(&told.0) => {
                    let sum = &mut known.into_mut().1;
                    *sum = sum.saturating_add(told.1);
                }
                Entry::Occupied(known) => {
                    let most = &mut known.into_mut().1;
                    *most = told.1.max(*most);
                }
            }
        }
    }
    for ((pid, _), (name, value, severity, about)) in of_processes {
        add(name, Some(pid), value, severity, "trace", about);
    }
    let found = [
        (
            "heapprofd_missing_packet",
            health.missing_profile_packets,
            ERROR,
            "missing profile packets",
        ),
        (
            "heapprofd_malformed_packet",
            health.malformed_samples,
            ERROR,
            "samples that contradict earlier ones",
        ),
        (
            "smaps_parser_errors",
            health.smaps_errors,
            ERROR,
            "contradictory packets of memory mappings",
        ),
        (
            "packages_list_has_read_errors",
            u64::from(heaps.recording.packages_incomplete),
            ERROR,
            "the device could not read its package list",
        ),
    ];
    for (name, value, severity, about) in found {
        add(name, None, value, severity, "analysis", about);
    }
    rows
}

fn metadata(recording: &Recording) -> Vec<Vec<Cell<'static>>> {
    let system = &recording.system;
    let texts = [
        ("android_build_fingerprint", &system.fingerprint),
        ("tracing_service_version", &system.tracing_service),
        ("system_machine", &system.machine),
        ("system_release", &system.kernel),
    ];
    let texts = texts.into_iter().filter(|(_, text)| !text.is_empty());
    let sdk = (system.sdk > 0).then(|| ("android_sdk_version", Cell::bits(system.sdk), Cell::Null));
    let started = recording
        .started_ns
        .map(|at| ("tracing_started_ns", Cell::bits(at), Cell::Null));
    texts
        .map(|(name, text)| (name, Cell::Null, Cell::from(text.clone())))
        .chain(sdk)
        .chain(started)
        .enumerate()
        .map(|(id, (name, int, text))| {
            vec![
                Cell::from(id),
                Cell::text(name),
                Cell::text("single"),
                int,
                text,
            ]
        })
        .collect()
}

/// Returns the first and the last time of native dumps, of Java dumps (`times`), and of the trace.
fn bounds(heaps: &NativeHeaps, times: &[u64]) -> Vec<Cell<'static>> {
    let started = heaps.recording.started_ns.map(|at| at as i64);
    let begun = heaps.dumps.iter().filter_map(|dump| dump.start_ns);
    let all: Vec<i64> = heaps
        .dumps
        .iter()
        .map(time_of)
        .chain(times.iter().map(|&at| at as i64))
        .chain(begun.map(|at| at as i64))
        .chain(started)
        .collect();
    let bound = |bound: Option<&i64>| Cell::Int(bound.copied().unwrap_or(0));
    vec![bound(all.iter().min()), bound(all.iter().max())]
}
