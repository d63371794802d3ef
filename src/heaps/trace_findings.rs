//! Findings about a trace: losses, damage, and reasons for missing samples, with remedies.
//! `findings` covers the flags of single dumps.

use std::collections::BTreeSet;

use heaptap_base::error::ErrorClass;
use heaptap_base::units::counted;
use heaptap_base::untrusted::{sanitize, shell::quoted};
use heaptap_model::names::could_be_app;
use heaptap_model::profile::MALLOC_HEAP;
use heaptap_model::profile::{Health, HeapRequest, Recording};
use heaptap_model::stacks::Unexpanded;
use heaptap_results::findings::{self, BUSY, Finding, SEVERAL_RECORDINGS, TRACE_CUT};
use heaptap_results::lists::join_list;

fn finding(
    kind: &'static str,
    class: ErrorClass,
    message: impl Into<String>,
    help: &str,
) -> Finding {
    Finding::new(kind, class, message).with_help(help)
}

/// Data source of Java heaps.
const JAVA_HPROF: &str = "android.java_hprof";

/// Kind of the finding that a trace was recorded without any heap.
pub(crate) const NOT_ASKED_FOR: &str = "not-requested";
/// Kind of the finding that the app of a target cannot be profiled.
pub(crate) const NOT_PROFILEABLE: &str = "not-profileable";

/// Kind of the finding that no process was recorded.
const NO_PROCESS: &str = "no-process-matched";

/// Finding kinds that guess why there are no samples; left out if the cause is known.
pub const GUESSES: [&str; 6] = [
    "no-samples",
    "nothing-allocated",
    NO_PROCESS,
    "heapprofd-silent",
    "nothing-recorded",
    "stop-timed-out",
];

/// Finding kinds that follow from an early end of the recording, such as a full disk. Their own
/// remedy, mostly a larger buffer, would not help.
pub(crate) const CONSEQUENCES: [&str; 8] = [
    "packets-lost",
    "callstacks-lost",
    "dump-unfinished",
    "service-lost-data",
    "profile-lost",
    "heap-graph-incomplete",
    "java-heap-dump",
    "java-heap-without-roots",
];

const FETCH_AGAIN: &str =
    "fetch or copy the file again; if it was truncated on the device, the rest is lost";
const LARGER_BUFFER: &str = "record again with a longer interval (-i) or fewer dumps; \
    `heaptap record` sizes and drains the buffers by itself";

/// Kind of the finding that a trace has bytes that cannot be read.
const TRACE_DAMAGED: &str = "trace-damaged";
/// Kind of the finding that a file is damaged.
pub(crate) const INPUT_DAMAGED: &str = "input-damaged";

/// Returns a finding about a partly unreadable file.
pub fn damaged(name: &str, what: &str) -> Finding {
    let message = format!("{name}: {what}");
    if what.ends_with(heaptap_input::BYTES_BEHIND) {
        return Finding::new(findings::BYTES_BEHIND, None, message);
    }
    let found = Finding::new(INPUT_DAMAGED, ErrorClass::BadInput, message);
    // No need to fetch files that can be repaired here.
    match what.contains("`heaptap ") {
        true => found,
        false => found.with_help(FETCH_AGAIN),
    }
}

/// Returns findings about losses and damage of a trace. If its file is known to be `damaged`, the
/// trace ends early for that reason.
pub fn of_trace(name: &str, damage: Option<&str>, health: &Health, sampled: bool) -> Vec<Finding> {
    let Some(what) = damage else {
        return of_health(health, sampled);
    };
    let mut found = vec![damaged(name, what)];
    let of_health = of_health(health, sampled).into_iter();
    found.extend(of_health.filter(|finding| finding.kind != TRACE_CUT));
    found
}

/// Returns findings about parts of a trace that cannot be read or are missing from its file, but
/// not about losses on the device.
pub fn of_missing_parts(name: &str, damage: Option<&str>, health: &Health) -> Vec<Finding> {
    let mut found = of_trace(name, damage, health, true);
    found.retain(|found| is_missing_part(found) || found.kind == SEVERAL_RECORDINGS);
    found
}

/// Returns whether a finding is about a part that cannot be read or is missing.
pub fn is_missing_part(found: &Finding) -> bool {
    [TRACE_DAMAGED, INPUT_DAMAGED, TRACE_CUT].contains(&found.kind)
}

/// Returns findings about frames that are missing from stacks or lack inlined functions: the trace
/// expands to larger stacks than any program has.
pub fn unexpanded(frames: Unexpanded) -> impl Iterator<Item = Finding> {
    let multiply = |what, help| finding("stacks-multiply", ErrorClass::BadInput, what, help);
    let without_inlined = (frames.without_inlined > 0).then(|| {
        multiply(
            format!(
                "{} inlined functions, because their symbols multiply the stacks beyond the limit",
                counted(frames.without_inlined, "frame lacks", "frames lack")
            ),
            "sums are correct; symbolize the trace again to get the names",
        )
    });
    let dropped = (frames.dropped > 0).then(|| {
        multiply(
            format!(
                "{} left out because the trace has too many callstacks",
                counted(frames.dropped, "frame is", "frames are")
            ),
            "sums are correct; the bytes of a missing frame count for its caller",
        )
    });
    without_inlined.into_iter().chain(dropped)
}

fn of_health(health: &Health, sampled: bool) -> Vec<Finding> {
    let before = if sampled {
        ""
    } else {
        "; no dump with samples is readable"
    };
    let mut found = Vec::new();
    if health.damage_count > 0 {
        const PLACES: usize = 3;
        let mut places: Vec<String> = health
            .damage
            .iter()
            .take(PLACES)
            .map(|d| {
                let bytes = counted(d.bytes, "byte", "bytes");
                format!("{bytes} at {}: {}", d.offset, d.what)
            })
            .collect();
        if health.damage_count > PLACES as u64 {
            places.push(format!("and {} more", health.damage_count - PLACES as u64));
        }
        found.push(finding(
            TRACE_DAMAGED,
            ErrorClass::BadInput,
            format!("the trace is damaged ({}){before}", places.join("; ")),
            FETCH_AGAIN,
        ));
    }
    if health.ends_early && health.damage_count == 0 {
        let (class, message) = match sampled {
            // The existing data are intact: the file might still be growing.
            true => (
                None,
                "the trace ends before the tracing service stopped; later data are missing",
            ),
            false => (
                Some(ErrorClass::BadInput),
                "the trace ends before the tracing service stopped and before the first dump",
            ),
        };
        found.push(Finding::new(TRACE_CUT, class, message).with_help(
            "if it is still being written, read it again later; if it is a copy, copy it again; \
             otherwise the rest is lost",
        ));
    }
    if health.copies > 1 {
        let message = format!(
            "the file contains {} copies of the recording, whose dumps are numbered as if they were of \
             one; figures can be wrong",
            health.copies
        );
        let help = "read one copy by itself";
        found.push(Finding::new(SEVERAL_RECORDINGS, None, message).with_help(help));
    }
    let odd = [
        (
            health.reordered_profile_packets,
            "arrived out of order; sorted",
        ),
        (
            health.adopted_profile_packets,
            "arrived in another sequence; moved back",
        ),
        (
            health.inconsistent_profile_packets,
            "contradicted the numbering: traces are mixed, and names of these dumps might be wrong",
        ),
        (
            health.repeated_profile_packets,
            "repeated earlier ones; counted once",
        ),
        (
            health.packets_without_sequence,
            "did not belong to any sequence; left out",
        ),
    ];
    for (count, what) in odd {
        if count > 0 {
            found.push(finding(
                "trace-rearranged",
                ErrorClass::BadInput,
                format!(
                    "{} {what}",
                    counted(count, "profile packet", "profile packets")
                ),
                "something modified the trace; use the file as the device wrote it",
            ));
        }
    }
    if health.missing_profile_packets > 0 {
        found.push(finding(
            "packets-lost",
            ErrorClass::Incomplete,
            format!(
                "{}: a buffer overflowed, or a part of the file is lost. Their dumps \
                 are missing or lower bounds, and their frees are not counted as allocations \
                 later.",
                counted(
                    health.missing_profile_packets,
                    "profile packet is missing",
                    "profile packets are missing"
                )
            ),
            LARGER_BUFFER,
        ));
    }
    if health.lost_callstacks > 0 || health.lost_frames > 0 {
        found.push(finding(
            "callstacks-lost",
            ErrorClass::Incomplete,
            format!(
                "{} and {} are not in the trace; their bytes are counted under [callstack lost] \
                 and [frame lost]",
                counted(health.lost_callstacks, "callstack", "callstacks"),
                counted(health.lost_frames, "frame", "frames")
            ),
            LARGER_BUFFER,
        ));
    }
    if health.malformed_samples > 0 {
        found.push(finding(
            "samples-malformed",
            ErrorClass::Incomplete,
            format!(
                "{} skipped",
                counted(
                    health.malformed_samples,
                    "sample went backwards and was",
                    "samples went backwards and were"
                )
            ),
            "the trace contradicts itself; do not trust its values, and record again",
        ));
    }
    if health.dumps_without_clock > 0 {
        let message = format!(
            "{} no time because the trace has no clocks; their own timestamps are used",
            counted(health.dumps_without_clock, "dump has", "dumps have")
        );
        let clock = Finding::new("no-clock", None, message);
        found.push(clock.with_help("values are not affected"));
    }
    if let Some(service) = &health.service {
        let lost = [
            (
                service.chunks_overwritten,
                "chunks overwritten in a ring buffer",
            ),
            (
                service.chunks_discarded,
                "chunks discarded by a full buffer",
            ),
            (service.writer_packet_loss, "packets lost by writers"),
            (service.patches_failed, "chunks that stayed incomplete"),
            (service.abi_violations, "rejected packets"),
            (service.invalid_packets, "packets refused"),
        ];
        let said: Vec<String> = lost
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        if !said.is_empty() {
            found.push(finding(
                "service-lost-data",
                ErrorClass::Incomplete,
                format!("the tracing service lost data: {}", said.join(", ")),
                LARGER_BUFFER,
            ));
        }
        if service.final_flush_failed {
            found.push(finding(
                "final-flush-failed",
                ErrorClass::Incomplete,
                "the last flush timed out; the final dump might be missing",
                BUSY,
            ));
        }
    }
    found
}

/// Returns why there are no samples, from the config and the trace. `None` if the trace is
/// truncated or damaged before the first dump, because other findings report that and nothing else
/// is known.
pub fn why_empty(recording: &Recording, health: &Health, has_entries: bool) -> Option<Finding> {
    let cut = health.ends_early || health.damage_count > 0;
    let why = why_nothing(recording, health, has_entries);
    (!cut || !GUESSES.contains(&why.kind)).then_some(why)
}

fn why_nothing(recording: &Recording, health: &Health, has_entries: bool) -> Finding {
    let empty = |kind, message: String, help: &str| finding(kind, ErrorClass::Empty, message, help);
    if let Some((pid, message)) = &recording.out_of_memory
        && (health.profile_packets, health.heap_graph_packets) == (0, 0)
    {
        let name = recording.processes.get(pid).map_or("", |p| p.name.as_str());
        let process = match name {
            "" => format!("process {pid}"),
            name => name.to_owned(),
        };
        return empty(
            "out-of-memory-only",
            format!(
                "the trace has no heap, only the OutOfMemoryError of {process}: {}",
                sanitize(message)
            ),
            "read its callstack with `heaptap query FILE \"SELECT * FROM heaptap_java_oom_frame\"`",
        );
    }
    if !recording.has_config && health.profile_packets == 0 && health.heap_graph_packets == 0 {
        let (what, help) = match recording.has_names {
            true => (
                "the file contains only names for a trace",
                "append it to its trace, or write both with `heaptap symbolize TRACE --whole-trace \
                 -o FILE`",
            ),
            false => (
                "the trace contains neither a heap profile nor its recording config",
                "the trace is at most the beginning of one; fetch it again from the device",
            ),
        };
        return finding("nothing-recorded", ErrorClass::BadInput, what, help);
    }
    if recording.requests.is_empty() && (recording.has_config || health.heap_graph_packets > 0) {
        if health.heap_graph_packets > 0 {
            return empty(
                "java-heap-dump",
                "the trace contains packets of a Java heap dump, but no objects".to_owned(),
                "dump again with a larger buffer: `heaptap dump -b 512mb`",
            );
        }
        if recording.data_sources.iter().any(|name| name == JAVA_HPROF) {
            let (targets, check) = match recording.java_targets.as_slice() {
                [] => ("a process".to_owned(), "NAME".to_owned()),
                [name] if !name.starts_with("pid ") => (name.clone(), quoted(name)),
                names => (join_list(names.iter().cloned()), "NAME".to_owned()),
            };
            return empty(
                NO_PROCESS,
                format!(
                    "the config requests a Java heap of {targets}, but the trace has none: the \
                     process was not running, or is neither debuggable nor profileable"
                ),
                &format!(
                    "run `heaptap check -n {check}` to see which processes match and can be \
                     profiled, then dump again with `heaptap dump -n {check}`"
                ),
            );
        }
        return empty(
            NOT_ASKED_FOR,
            match recording.data_sources.is_empty() {
                true => "the trace was recorded without data sources".to_owned(),
                false => format!(
                    "the trace was recorded without a heap profile (it contains {})",
                    BTreeSet::from_iter(&recording.data_sources)
                        .into_iter()
                        .map(String::as_str)
                        .collect::<Vec<_>>()
                        .join(", ")
                ),
            },
            "record one with `heaptap record -n NAME`",
        );
    }
    if has_entries {
        return empty(
            "no-samples",
            "the process was found, but it has no samples".to_owned(),
            "see the warnings about it, or use a smaller interval (`record -i 512`) to see smaller heaps",
        );
    }
    if let Some(refused) = recording.requests.iter().find_map(refusal) {
        return refused;
    }
    let names_none = |request: &HeapRequest| {
        request.process_cmdline.is_empty() && request.pids.is_empty() && !request.all
    };
    if recording.requests.iter().all(names_none) {
        return empty(
            NO_PROCESS,
            "the config of the recording names no process: it has neither process_cmdline nor pid \
             nor all"
                .to_owned(),
            "record again with `heaptap record -n NAME`, or name the process in heapprofd_config",
        );
    }
    if let Some(closed) = closed_package(recording) {
        return closed;
    }
    let targets = targets(&recording.requests);
    if health.stop_timed_out_ns.is_some() {
        return empty(
            "stop-timed-out",
            format!(
                "the tracing service stopped waiting before all data sources of the device were \
                 done: the dump of {targets} might have come too late"
            ),
            BUSY,
        );
    }
    if health.missing_profile_packets > 0
        || health
            .service
            .is_some_and(|s| s.chunks_overwritten + s.chunks_discarded > 0)
    {
        return empty(
            "profile-lost",
            format!("the profile of {targets} was lost in a full buffer"),
            LARGER_BUFFER,
        );
    }
    if health.profile_packets > 0 {
        return empty(
            "nothing-allocated",
            format!(
                "heapprofd reported nothing for {targets}: it did not allocate during the \
                 recording (idle, frozen or cached), or heapprofd never attached"
            ),
            "use the app while recording; run `heaptap check` to see whether it can be profiled",
        );
    }
    let names = recording.requests.iter().flat_map(|r| &r.process_cmdline);
    let mut names = names.peekable();
    let is_launchable = names.peek().is_none() || names.any(|name| could_be_app(name));
    empty(
        NO_PROCESS,
        format!(
            "heapprofd found no process to profile for {targets}: none ran with that name, it \
             cannot be profiled, or heapprofd was not running"
        ),
        match is_launchable {
            true => {
                "run `heaptap check` to see which processes match and can be profiled, or use \
                 `--launch` to start the app after the session is ready"
            }
            false => "run `heaptap check` to see which processes match and can be profiled",
        },
    )
}

/// Returns a finding about a request that heapprofd rejects without a note in the trace.
fn refusal(request: &HeapRequest) -> Option<Finding> {
    const PAGE: u64 = 4096;
    let refused = |message: String, help: &str| {
        Some(finding("request-refused", ErrorClass::Empty, message, help))
    };
    if request.sampling_interval_bytes == 0 {
        return refused(
            "the config requests a sampling interval of 0, which heapprofd rejects".to_owned(),
            "set sampling_interval_bytes, for example to 4096",
        );
    }
    let shmem = request.shmem_size_bytes;
    if shmem != 0 && (!shmem.is_multiple_of(PAGE) || !shmem.is_power_of_two()) {
        return refused(
            format!(
                "the config requests a shared buffer of {shmem} bytes, which heapprofd rejects"
            ),
            "set shmem_size_bytes to a power of two of at least 4096",
        );
    }
    let pattern = request
        .process_cmdline
        .iter()
        .find(|name| name.contains('*'));
    if let Some(pattern) = pattern
        && !request.no_startup
    {
        return refused(
            format!(
                "the config requests {pattern}; heapprofd rejects patterns unless no_startup is set"
            ),
            "set no_startup, or let `heaptap record` expand the pattern",
        );
    }
    let default_heap = MALLOC_HEAP.to_owned();
    if request.exclude_heaps.contains(&default_heap)
        || (!request.heaps.is_empty()
            && !request.all_heaps
            && !request.heaps.contains(&default_heap))
    {
        let heaps = if request.heaps.is_empty() {
            "every heap except libc.malloc".to_owned()
        } else {
            request.heaps.join(", ")
        };
        return refused(
            format!("the config requests {heaps}, but the process has no such heap"),
            "libc.malloc is the heap of malloc and new",
        );
    }
    if request.min_anonymous_memory_kb > 0 {
        return refused(
            format!(
                "the config requires processes with {} KiB of anonymous memory, and none had that \
                 much",
                request.min_anonymous_memory_kb
            ),
            "lower or remove min_anonymous_memory_kb",
        );
    }
    None
}

/// Returns a finding about a target that is not profileable according to the package list.
fn closed_package(recording: &Recording) -> Option<Finding> {
    let package = recording.packages.iter().find(|package| {
        !package.debuggable
            && !package.profileable_from_shell
            && recording.requests.iter().any(|request| {
                request
                    .process_cmdline
                    .iter()
                    .any(|name| name.split(':').next() == Some(package.name.as_str()))
            })
    })?;
    Some(finding(
        NOT_PROFILEABLE,
        ErrorClass::Empty,
        format!(
            "{} is neither debuggable nor profileable from the shell, so a user build does not \
             profile it",
            package.name
        ),
        "add <profileable android:shell=\"true\"/> to its manifest, or use a userdebug build",
    ))
}

fn targets(requests: &[HeapRequest]) -> String {
    let mut names: Vec<String> = requests
        .iter()
        .flat_map(|request| {
            let pids = request.pids.iter().map(|pid| format!("pid {pid}"));
            request.process_cmdline.iter().cloned().chain(pids)
        })
        .collect();
    names.dedup();
    match names.len() {
        0 => "any process".to_owned(),
        _ => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recording with a config of these data sources.
    fn recorded(data_sources: &[&str]) -> Recording {
        Recording {
            has_config: true,
            data_sources: data_sources.iter().map(|name| (*name).to_owned()).collect(),
            ..Recording::default()
        }
    }

    #[test]
    fn a_config_that_names_no_process_is_the_reason() {
        let request = HeapRequest {
            sampling_interval_bytes: 4096,
            ..HeapRequest::default()
        };
        let mut recording = recorded(&["android.heapprofd"]);
        recording.requests = vec![request.clone()];
        let why = why_empty(&recording, &Health::default(), false).expect("a reason");
        assert_eq!(why.kind, NO_PROCESS);
        assert!(why.message.contains("names no process"), "{}", why.message);
        for named in [
            HeapRequest {
                all: true,
                ..request.clone()
            },
            HeapRequest {
                pids: vec![4],
                ..request.clone()
            },
            HeapRequest {
                process_cmdline: vec!["com.example".to_owned()],
                ..request
            },
        ] {
            recording.requests = vec![named];
            let why = why_empty(&recording, &Health::default(), false).expect("a reason");
            assert!(why.message.contains("found no process"), "{}", why.message);
        }
    }

    #[test]
    fn a_java_heap_that_did_not_come_names_its_process() {
        let mut recording = recorded(&["android.packages_list", JAVA_HPROF]);
        for (targets, shown, command) in [
            (
                vec!["xxxApplication"],
                "of xxxApplication,",
                "check -n xxxApplication`",
            ),
            (vec!["a b;c"], "of a b;c,", "check -n 'a b;c'`"),
            (vec!["a", "pid 7"], "of a, pid 7,", "check -n NAME`"),
            (vec![], "of a process,", "check -n NAME`"),
        ] {
            recording.java_targets = targets.into_iter().map(str::to_owned).collect();
            let why = why_empty(&recording, &Health::default(), false).expect("a reason");
            assert_eq!(why.kind, NO_PROCESS);
            assert!(why.message.contains(shown), "{}", why.message);
            let help = why.help.expect("a remedy");
            assert!(help.contains(command), "{help}");
        }
        // A file that was cut has its own reason.
        let cut = Health {
            ends_early: true,
            ..Health::default()
        };
        assert!(why_empty(&recording, &cut, false).is_none());
    }
}
