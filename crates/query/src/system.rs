//! Facts about a recording besides its heaps: `package_list`, `stats`, `metadata`,
//! `trace_bounds`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use super::memory::MemorySource;
use super::native::{NativeHeaps, time_of};
use super::once::given;
use super::smaps::SmapsSource;
use super::table::{Catalog, Cell, Scalar, Schema, TableError, columns, schema};
use heaptap_model::profile::{Health, HeapDump, MetadataValue, Recording};
use rusqlite::types::Value;

/// Adds the tables. `times` are those of Java heaps.
pub fn add(
    catalog: &mut Catalog,
    heaps: &Arc<NativeHeaps>,
    health: &Health,
    times: Vec<u64>,
    smaps: &Arc<dyn SmapsSource>,
    memory: &Arc<dyn MemorySource>,
) {
    let recording = Arc::clone(&heaps.recording);
    let packages = given(&recording);
    catalog.rows(&PACKAGES, &packages, |all| all.packages.len(), package_cell);
    let (of, health) = (Arc::clone(heaps), health.clone());
    catalog.fixed(&STATS, move || Ok(stats(&of, &health)));
    let of = Arc::clone(&recording);
    catalog.fixed(&METADATA, move || Ok(metadata(&of)));
    // Not SQL: an argument that is a column has to be that of the query.
    catalog.scalar(Scalar {
        name: "extract_metadata",
        about: "Value of a fact in `metadata`; NULL if it is unknown.",
        arguments: &["name"],
        value: Box::new(move |context| {
            let name: Option<String> = context.get(0)?;
            let values = name.and_then(|name| recording.metadata.get(name.as_str()));
            Ok(match values.and_then(|values| values.last()) {
                None => Value::Null,
                Some(MetadataValue::Number(number)) => Value::Integer(*number),
                Some(MetadataValue::Text(text)) => Value::Text(text.clone()),
            })
        }),
    });
    let (heaps, smaps, memory) = (Arc::clone(heaps), Arc::clone(smaps), Arc::clone(memory));
    catalog.fixed(&BOUNDS, move || {
        let (start, end) = bounds(&heaps, &times, &*smaps, &*memory)?;
        Ok(vec![vec![start.into(), end.into()]])
    });
}

static PACKAGES: Schema = schema! {
    "package_list": "Packages of the device, if the trace lists them.";
    id int row: "number of the row";
    package_name text indexed: "package name";
    uid int indexed: "UID of its processes";
    debuggable int: "1 if debuggable";
    profileable_from_shell int: "1 if the manifest allows it";
    version_code int: "version code";
};

fn package_cell(recording: &Recording, row: usize, column: usize) -> Cell<'_> {
    let package = &recording.packages[row];
    match column {
        0 => row.into(),
        1 => package.name.as_str().into(),
        2 => package.uid.into(),
        3 => Cell::flag(package.debuggable),
        4 => Cell::flag(package.profileable_from_shell),
        _ => package.version_code.into(),
    }
}

static STATS: Schema = schema! {
    "stats": "Health of the recording: losses, limits, counters of the tracing service. Zero \
        values are left out.";
    id int row: "number of the row";
    name text indexed: "name of the counter";
    idx int: "process ID or buffer number, if there are several";
    value int: "count or amount";
    severity text: "info, data_loss or error";
    source text: "trace: recorded in the trace; analysis: found when reading it";
    description text: "meaning";
};

static METADATA: Schema = schema! {
    "metadata": "Facts about the recorded system from the trace.";
    id int row: "number of the row";
    name text: "name of the fact";
    key_type text: "`single`, or `multi` for several values of a fact";
    int_value int: "value, if it is a number";
    str_value text: "value, if it is text";
    machine_id int: "0 for a fact about the device, otherwise NULL";
    trace_id int: "0 for a fact about the trace, otherwise NULL";
};

static BOUNDS: Schema = schema! {
    "trace_bounds":
        "First and last time of allocations, Java heap dumps, counters and memory mappings.";
    start_ts int: "first time, ns of trace time";
    end_ts int: "last time, ns of trace time";
};

/// Rows of a small table.
type Fixed = Vec<Vec<Cell<'static>>>;

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

fn stats(heaps: &NativeHeaps, health: &Health) -> Fixed {
    let mut rows = Vec::new();
    let mut add = |name: &'static str, idx: Option<u64>, value: u64, severity, source, about| {
        if value != 0 {
            rows.push(vec![
                Cell::from(rows.len()),
                Cell::text(name),
                idx.into(),
                value.into(),
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

/// Facts about the trace; all others except [`OF_BOTH`] are about the device.
const OF_TRACE: [&str; 5] = [
    "trace_size_bytes",
    "trace_trigger",
    "trace_type",
    "trace_uuid",
    "unique_session_name",
];
/// Ends of the names of facts about the device and the trace: times of the tracing service.
const OF_BOTH: &str = "_ns";

fn metadata(recording: &Recording) -> Fixed {
    // In Perfetto, the type is known first and the size last.
    let mut all: Vec<_> = recording.metadata.iter().collect();
    all.sort_by_key(|(name, _)| (**name == "trace_size_bytes", **name != "trace_type"));
    let all = all.into_iter();
    all.flat_map(|(name, values)| values.iter().map(|value| (*name, value)))
        .enumerate()
        .map(|(id, (name, value))| {
            let (int, text) = match value {
                MetadataValue::Number(number) => (Cell::Int(*number), Cell::Null),
                MetadataValue::Text(text) => (Cell::Null, Cell::from(text.clone())),
            };
            let key_type = match name {
                "all_data_source_flushed_ns" => "multi",
                _ => "single",
            };
            let (of_trace, of_both) = (OF_TRACE.contains(&name), name.ends_with(OF_BOTH));
            vec![
                Cell::from(id),
                Cell::text(name),
                Cell::text(key_type),
                int,
                text,
                (!of_trace).then_some(0u32).into(),
                (of_trace || of_both).then_some(0u32).into(),
            ]
        })
        .collect()
}

/// Returns the first and the last time of allocations, Java dumps (`times`), counters and memory
/// mappings.
fn bounds(
    heaps: &NativeHeaps,
    times: &[u64],
    smaps: &dyn SmapsSource,
    memory: &dyn MemorySource,
) -> Result<(i64, i64), TableError> {
    let mappings = smaps.read()?;
    let counters = memory.counters()?.values;
    let deltas = heaps.deltas.iter().map(|delta| delta.dump);
    let mut all: Vec<i64> = deltas
        .map(|dump| time_of(&heaps.dumps[dump as usize]))
        // The time of an HPROF is not known before it is read.
        .chain(times.iter().filter(|&&at| at > 0).map(|&at| at as i64))
        .chain(mappings.iter().map(|(_, at, _)| *at as i64))
        .collect();
    let ends = [counters.first(), counters.last()];
    all.extend(ends.into_iter().flatten().map(|value| value.boot_ns as i64));
    let (Some(&start), Some(&last)) = (all.iter().min(), all.iter().max()) else {
        return Ok((0, 0));
    };
    // As in Perfetto, so that a trace of one moment has a duration.
    let end = last.max(0) + i64::from(last.max(0) == start);
    Ok((start, end))
}
