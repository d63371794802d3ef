//! Findings for the flags of a dump: message, remedy and exit code. The terminal, the manifest and
//! the reports share this table.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Serialize;

use super::lists::{join_list, process_name};
use super::{manifest, unwinding};
use heaptap_base::error::{Classified, ErrorClass, ErrorFacts, Failure, mend_write};
use heaptap_base::suggest::nearest;
use heaptap_base::units::ByteSize;
use heaptap_model::profile::{COMMON_HEAPS, HeapDump, LastDump, MALLOC_HEAP, Tables, known_heap};
use heaptap_model::stacks::Facts;

/// Something the user should know about a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Stable identifier.
    pub kind: &'static str,
    /// Exit code without a result; `None` for notes that do not report missing data.
    /// `BadInput` marks damage.
    #[serde(skip)]
    pub class: Option<ErrorClass>,
    pub message: String,
    pub help: Option<String>,
    /// Affected process.
    #[serde(skip)]
    pub pid: Option<u64>,
}

impl Finding {
    /// Creates a finding without a remedy, not about a specific process.
    pub fn new(
        kind: &'static str,
        class: impl Into<Option<ErrorClass>>,
        message: impl Into<String>,
    ) -> Finding {
        Finding {
            kind,
            class: class.into(),
            message: message.into(),
            help: None,
            pid: None,
        }
    }

    /// Converts an error that does not end the command.
    pub fn from_error(error: &impl Classified) -> Finding {
        let facts = error.facts();
        Finding {
            help: facts.help,
            ..Finding::new(facts.kind, facts.class, error.to_string())
        }
    }

    /// Converts a failure that does not end the command.
    pub fn from_failure(failure: &Failure) -> Finding {
        Finding {
            help: failure.help.clone(),
            ..Finding::new(failure.kind, failure.class, &failure.message)
        }
    }

    /// Converts the finding to the facts of an error of a damaged input.
    pub fn as_error(&self) -> ErrorFacts {
        ErrorFacts {
            help: self.help.clone(),
            ..ErrorFacts::new(ErrorClass::BadInput, self.kind)
        }
    }

    #[must_use]
    pub fn with_help(self, help: impl Into<String>) -> Finding {
        let help = Some(help.into());
        Finding { help, ..self }
    }

    #[must_use]
    pub fn with_pid(self, pid: impl Into<Option<u64>>) -> Finding {
        let pid = pid.into();
        Finding { pid, ..self }
    }

    /// Converts the finding to a manifest warning that is not about a specific dump.
    pub fn into_warning(self) -> manifest::Warning {
        manifest::Warning {
            kind: self.kind.to_owned(),
            message: self.message,
            help: self.help,
            pid: self.pid,
            dumps: Vec::new(),
        }
    }
}

/// Returns the exit code class of a result with these findings; `None` if the data are complete.
pub fn class(findings: &[Finding]) -> Option<ErrorClass> {
    let classes = findings.iter().filter_map(|finding| finding.class);
    ErrorClass::first_of(classes.map(ErrorClass::with_result))
}

/// Returns the exit code class of an input without any sample.
pub fn class_of_empty(findings: &[Finding]) -> Option<ErrorClass> {
    let classes = findings.iter().filter_map(|finding| finding.class);
    // An empty result is more informative than its cause.
    let graver = classes.filter(|class| *class != ErrorClass::Incomplete);
    ErrorClass::first_of(graver.chain([ErrorClass::Empty]))
}

/// Kind of the finding that a dump is compared with itself.
pub const SAME_MOMENT: &str = "same-dump";
/// Kind of the finding that one of several selected processes or heaps is not in the input.
pub const NOT_IN_INPUT: &str = "not-in-input";
/// Kind of the finding that an input has traces of several recordings, or copies of one.
pub const SEVERAL_RECORDINGS: &str = "several-recordings";
/// Reason that it gives for an inconclusive check.
pub const SEVERAL_IN_ONE: &str = "an input has several recordings, or copies of one";
/// Kind of the finding for a trace that stops early but is otherwise intact.
pub const TRACE_CUT: &str = "trace-cut";
/// Kind of the finding that callstacks lead through code of several methods.
pub const DEDUPED_FRAMES: &str = "deduped-frames";
/// Kind of the finding that the files of names could not be written.
pub const PACKETS_UNWRITTEN: &str = "symbols-unwritten";

/// Kind of the finding that a page could not be noted in the manifest.
pub const PAGE_UNNOTED: &str = "page-unnoted";

/// Returns a finding about a selected process or heap that the input does not have; `there` is a
/// readable list of those that it has.
pub fn not_in_input(what: &str, missing: &str, there: &str) -> Finding {
    let message = format!("the input does not have {what} {missing}");
    Finding::new(NOT_IN_INPUT, None, message).with_help(format!("available: {there}"))
}

/// Removes the findings about what one input does not have and another one has, given those of all
/// inputs, and repetitions of the others.
pub fn keep_missing_everywhere<'f>(
    findings: &mut Vec<Finding>,
    all: impl Iterator<Item = &'f [Finding]> + Clone,
) {
    let mut told = BTreeSet::new();
    findings.retain(|found| {
        let is_of = |of: &[Finding]| of.iter().any(|other| other.message == found.message);
        found.kind != NOT_IN_INPUT || all.clone().all(is_of) && told.insert(found.message.clone())
    });
}

/// Returns whether findings of this kind are about symbols or mapping files.
pub fn is_of_names(kind: &str) -> bool {
    kind.starts_with("symbols-") || kind.starts_with("mapping-")
}

/// Returns whether findings of this kind are notes, not warnings.
pub fn is_note(kind: &str) -> bool {
    matches!(
        kind,
        DEDUPED_FRAMES | NAMES_MISSING | BYTES_BEHIND | SEVERAL_DUMPS
    )
}

/// Kind of the finding that a whole file has other bytes behind its end.
pub const BYTES_BEHIND: &str = "bytes-behind";
/// Kind of the finding that an HPROF has several dumps.
pub const SEVERAL_DUMPS: &str = "dumps-in-file";

/// Kind of the finding that heapprofd did not write its final dump in time.
pub const FINAL_DUMP_MISSING: &str = "final-dump-missing";
/// Remedy for a heapprofd that cannot keep up.
pub const BUSY: &str = "the process was too busy; record again with a longer interval (-i)";

/// Kind of the finding for functions without a name.
pub const NAMES_MISSING: &str = "symbols-missing";

/// Finding for a comparison of a dump with itself.
pub fn same_moment() -> Finding {
    let message = "both sides are the same data, so there is no difference";
    Finding::new(SAME_MOMENT, None, message)
        .with_help("select two dumps: INPUT@LABEL, INPUT@N, INPUT@last")
}

/// Finding for two HPROFs whose shallow sizes are computed by different models; none for the same.
pub fn sizes_differ(before: &str, after: &str) -> Option<Finding> {
    (before != after).then(|| {
        let message =
            format!("the sizes of the dumps are not comparable: {before} and {after} (`--sizes`)");
        Finding::new("sizes-differ", None, message)
            .with_help("add `--sizes mat` to compute both in the same way")
    })
}

/// Finding about two sides of different processes; none if a name is unknown.
pub fn other_process(before: &str, after: &str) -> Option<Finding> {
    let differ = !before.is_empty() && !after.is_empty() && before != after;
    differ.then(|| {
        let message = format!("{before} is compared with {after}, another process");
        Finding::new("other-process", None, message)
    })
}

/// Finding for packet files that could not be written. They can be recreated from the trace, which
/// is intact.
pub fn packets_unwritten(error: &std::io::Error) -> Finding {
    let message = format!("cannot write all symbols next to the trace: {error}");
    Finding::new(PACKETS_UNWRITTEN, None, message).with_help(format!(
        "{}, then run `heaptap symbolize` on the directory",
        mend_write(error)
    ))
}

/// The process exited, or ended its profile.
pub const DISCONNECTED: &str = "disconnected";

/// Failed unwinding is common; only this share of failures is reported.
const MANY_UNWINDING_ERRORS_PERCENT: u64 = 10;
/// Shortest wait in the allocator that is noticeable in the app.
const LONG_BLOCK: Duration = Duration::from_secs(1);

/// Returns the option for a quarter of a dump's samples; those of files without an interval had the
/// default one.
fn longer_interval(dump: &HeapDump) -> String {
    const MIN_BYTES: u64 = 16 << 10;
    let bytes = dump.sampling_interval_bytes.saturating_mul(4);
    format!("-i {}k", bytes.max(MIN_BYTES).div_ceil(1 << 10))
}

/// Returns findings for the flags of one dump with the tables of its recording. Flags are
/// cumulative: for a series, pass the last dump of each process and heap.
pub fn findings_for_dump(dump: &HeapDump, tables: &Tables) -> Vec<Finding> {
    let mut findings = Vec::new();
    let who = describe(dump);
    let mut add = |kind, class, message: String, help: &str| {
        let finding = Finding::new(kind, class, message).with_help(help);
        findings.push(finding.with_pid(dump.pid));
    };
    let incomplete = Some(ErrorClass::Incomplete);
    let flags = &dump.flags;
    let longer = longer_interval(dump);
    if flags.rejected_concurrent {
        add(
            "rejected-concurrent",
            incomplete,
            format!("{who}: another session was already profiling it, so nothing was recorded"),
            "find heaptap's other session with `heaptap status` and end it with `heaptap stop ID`, \
             or end the recording of the other tool; then record again",
        );
    }
    if flags.buffer_overran {
        add(
            "buffer-overran",
            incomplete,
            format!(
                "{who}: it allocated faster than heapprofd could process, and later data are \
                 missing"
            ),
            &format!(
                "record again with a longer interval ({longer}), a larger shared buffer \
                 (--shmem-size 64MiB), and without --no-block-client or --block-client-timeout"
            ),
        );
    }
    if flags.buffer_corrupted {
        add(
            "buffer-corrupted",
            incomplete,
            format!(
                "{who}: the buffer shared with heapprofd was corrupted; the values are unreliable"
            ),
            "the app might write to invalid addresses; test it with HWASan or GWP-ASan",
        );
    }
    if flags.hit_guardrail {
        add(
            "hit-guardrail",
            incomplete,
            format!("{who}: heapprofd reached its limit of memory or CPU time and ended early"),
            "raise the limit with --set heapprofd.max_heapprofd_memory_kb=… or \
             heapprofd.max_heapprofd_cpu_secs=…, or sample less with a longer interval",
        );
    }
    match flags.client_error {
        0 => {}
        // Already reported as an overrun, which always accompanies it.
        1 if flags.buffer_overran => {}
        1 => add(
            "client-timeout",
            incomplete,
            format!("{who}: it stopped waiting for heapprofd; later data are missing"),
            "record again with a longer interval, or without --block-client-timeout",
        ),
        2 => add(
            "invalid-stack-bounds",
            incomplete,
            format!(
                "{who}: it allocated on a custom stack (coroutines, makecontext), which ends the \
                 profile of the process"
            ),
            "profile without the code that switches stacks, or end the recording before it runs",
        ),
        other => add(
            "client-error",
            incomplete,
            format!("{who}: the profiler in the process failed with error {other}"),
            "check `adb logcat` for heapprofd",
        ),
    }
    if dump.unfinished {
        add(
            "dump-unfinished",
            incomplete,
            match dump.open {
                true => {
                    format!("{who}: the trace ends before its last dump; values are lower bounds")
                }
                false => format!("{who}: packets of a dump are missing; values are lower bounds"),
            },
            match dump.open {
                true => {
                    "if the trace is still being written, read it again later; after Ctrl-C, wait \
                     for the final dump"
                }
                false => "record again with a larger buffer or a longer interval",
            },
        );
    }
    // Whatever ended the profile also disconnects the process: not a second cause.
    if flags.disconnected && !flags.rejected_concurrent && !flags.is_cut_short() {
        add(
            DISCONNECTED,
            None,
            match dump.samples.is_empty() {
                true => {
                    format!("{who}: exited or disconnected from heapprofd before the first sample")
                }
                false => {
                    format!("{who}: exited or disconnected from heapprofd during the recording")
                }
            },
            "if it exited unexpectedly, check `adb logcat -b crash`",
        );
    }
    if dump.unwinding_errors > 0
        && dump.unwinding_errors.saturating_mul(100)
            >= dump
                .heap_samples
                .saturating_mul(MANY_UNWINDING_ERRORS_PERCENT)
    {
        let (why, help) = unwinding::most_frequent(dump, tables);
        add(
            "unwinding-errors",
            None,
            format!(
                "{who}: {} of {} stacks could not be fully unwound{why}",
                dump.unwinding_errors, dump.heap_samples
            ),
            help,
        );
    }
    let (now, asked) = (
        dump.sampling_interval_bytes,
        dump.orig_sampling_interval_bytes,
    );
    if asked > 0 && now > asked {
        add(
            "interval-raised",
            None,
            format!(
                "{who}: the sampling interval increased during the recording, from {} to {}",
                ByteSize(asked),
                ByteSize(now)
            ),
            "values of small callsites are less exact than requested",
        );
    }
    let blocked = Duration::from_micros(dump.client_spinlock_blocked_us);
    if blocked >= LONG_BLOCK {
        add(
            "client-blocked",
            None,
            format!(
                "{who}: the profiler blocked threads for {:.1} s in total",
                blocked.as_secs_f64()
            ),
            &format!("use a longer interval ({longer}) to block them less"),
        );
    }
    findings
}

/// Returns a finding about heaps that were selected by name, and of which no process has samples,
/// although other heaps have. A profile that ended early explains missing samples by itself.
pub fn heaps_without_samples(selected: &[String], dumps: &[manifest::Dump]) -> Option<Finding> {
    let sampled = dumps.iter().filter(|dump| dump.file.is_some());
    let sampled = sampled.map(|dump| known_heap(&dump.heap, dump.flags));
    let sampled: BTreeSet<&str> = sampled.collect();
    let is_explained = |heap: &str| {
        sampled.contains(heap)
            || dumps
                .iter()
                .any(|dump| dump.heap == heap && dump.flags.has_ended())
    };
    let selected = selected.iter().map(String::as_str);
    let missing: Vec<&str> = selected.filter(|heap| !is_explained(heap)).collect();
    if missing.is_empty() || sampled.is_empty() {
        return None;
    }
    let known = || sampled.iter().copied().chain(COMMON_HEAPS);
    let is_other = |near: &&str| !missing.contains(near);
    let near: BTreeSet<&str> = missing
        .iter()
        .filter_map(|heap| nearest(heap, known()))
        .filter(is_other)
        .collect();
    let join = |names: Vec<&str>| join_list(names.into_iter().map(str::to_owned));
    let message = format!(
        "no process has samples of {} {}, only of {}",
        match missing.len() {
            1 => "the heap",
            _ => "the heaps",
        },
        join(missing),
        join(sampled.into_iter().collect()),
    );
    let help = match near.is_empty() {
        true => "check the name: `--all-heaps` records all heaps of the process".to_owned(),
        false => format!("did you mean {}?", join(near.into_iter().collect())),
    };
    Some(Finding::new("heap-without-samples", None, message).with_help(help))
}

/// Finding for a recording whose final dump is not in the trace.
pub fn final_dump_missing(last: &LastDump) -> Finding {
    let who = who(last.pid, &last.process, &last.heap);
    let message = format!(
        "{who}: the final dump is missing because the tracing service stopped waiting before \
         heapprofd wrote it"
    );
    Finding::new(FINAL_DUMP_MISSING, ErrorClass::Incomplete, message)
        .with_help(BUSY)
        .with_pid(last.pid)
}

/// Finding for a dump that is left out because the file ends before the dump does.
pub fn open_dump(facts: &Facts) -> Finding {
    let who = who(facts.pid, &facts.process, &facts.heap);
    let message = format!(
        "{who}: dump {} is left out because its last packet is not in the trace",
        facts.number
    );
    Finding::new("dump-open", None, message)
        .with_help(format!(
            "select it with @{} to see the available part, as lower bounds",
            facts.number
        ))
        .with_pid(facts.pid)
}

/// Returns the process name, and the heap unless it is malloc's.
pub fn describe(dump: &HeapDump) -> String {
    who(dump.pid, &dump.process, &dump.heap)
}

fn who(pid: u64, process: &str, heap: &str) -> String {
    let process = process_name(pid, process);
    match heap {
        "" | MALLOC_HEAP => process,
        heap => format!("{process}, heap {heap}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_model::profile::DumpFlags;

    fn kinds(change: impl FnOnce(&mut HeapDump)) -> Vec<(&'static str, Option<ErrorClass>)> {
        let mut dump = HeapDump {
            pid: 7,
            process: "app".to_owned(),
            heap: "libc.malloc".to_owned(),
            heap_samples: 1000,
            flags: DumpFlags {
                from_startup: true,
                ..DumpFlags::default()
            },
            ..HeapDump::default()
        };
        change(&mut dump);
        let findings = findings_for_dump(&dump, &Tables::default());
        for finding in &findings {
            assert!(finding.message.starts_with("app (7)"), "{finding:?}");
            assert!(finding.help.is_some(), "{} has a remedy", finding.kind);
        }
        findings.into_iter().map(|f| (f.kind, f.class)).collect()
    }

    #[test]
    fn every_flag_is_told_and_a_clean_dump_says_nothing() {
        let incomplete = Some(ErrorClass::Incomplete);
        assert_eq!(kinds(|_| {}), []);
        type Change = fn(&mut HeapDump);
        let cases: [(Change, &str, Option<ErrorClass>); 12] = [
            (
                |d| d.flags.rejected_concurrent = true,
                "rejected-concurrent",
                incomplete,
            ),
            (
                |d| d.flags.buffer_overran = true,
                "buffer-overran",
                incomplete,
            ),
            (
                |d| d.flags.buffer_corrupted = true,
                "buffer-corrupted",
                incomplete,
            ),
            (
                |d| d.flags.hit_guardrail = true,
                "hit-guardrail",
                incomplete,
            ),
            (|d| d.flags.client_error = 1, "client-timeout", incomplete),
            (
                |d| d.flags.client_error = 2,
                "invalid-stack-bounds",
                incomplete,
            ),
            (|d| d.flags.client_error = 9, "client-error", incomplete),
            (|d| d.unfinished = true, "dump-unfinished", incomplete),
            (|d| d.flags.disconnected = true, "disconnected", None),
            (|d| d.unwinding_errors = 100, "unwinding-errors", None),
            (
                |d| {
                    d.orig_sampling_interval_bytes = 64;
                    d.sampling_interval_bytes = 16384;
                },
                "interval-raised",
                None,
            ),
            (
                |d| d.client_spinlock_blocked_us = 2_000_000,
                "client-blocked",
                None,
            ),
        ];
        for (change, kind, class) in cases {
            assert_eq!(kinds(change), [(kind, class)]);
        }
        // A trace that ends early might be complete later; lost packets never arrive.
        let help = |open| {
            let dump = HeapDump {
                unfinished: true,
                open,
                ..HeapDump::default()
            };
            findings_for_dump(&dump, &Tables::default())
                .remove(0)
                .help
                .expect("it has a remedy")
        };
        assert!(help(true).contains("read it again later"));
        assert_eq!(
            help(false),
            "record again with a larger buffer or a longer interval"
        );
        // An overrun and its timeout are one event; a few failed stacks are usual.
        assert_eq!(
            kinds(|d| {
                d.flags.buffer_overran = true;
                d.flags.client_error = 1;
                d.unwinding_errors = 99;
            }),
            [("buffer-overran", incomplete)]
        );
        // heapprofd disconnects processes that it cannot follow: one cause.
        for change in [
            (|d| d.flags.buffer_overran = true) as Change,
            |d| d.flags.buffer_corrupted = true,
            |d| d.flags.hit_guardrail = true,
            |d| d.flags.client_error = 2,
            |d| d.flags.rejected_concurrent = true,
        ] {
            let alone = kinds(change);
            let with = kinds(|d| {
                change(d);
                d.flags.disconnected = true;
            });
            assert_eq!(alone, with);
        }
    }
    #[test]
    fn a_selected_heap_without_samples_is_told_if_others_have_some() {
        let dump = |heap: &str, sampled: bool, ended: bool| {
            let dump = HeapDump {
                heap: heap.to_owned(),
                flags: DumpFlags {
                    disconnected: ended,
                    ..DumpFlags::default()
                },
                ..HeapDump::default()
            };
            manifest::Dump::new(1, &dump, sampled.then(|| "a.pb.gz".to_owned()))
        };
        let found = |selected: &[&str], dumps: &[manifest::Dump]| {
            let selected: Vec<String> = selected.iter().map(|heap| (*heap).to_owned()).collect();
            let finding = heaps_without_samples(&selected, dumps)?;
            assert_eq!(
                (finding.kind, finding.class),
                ("heap-without-samples", None)
            );
            Some((finding.message, finding.help.expect("it has a remedy")))
        };
        let malloc = || dump("libc.malloc", true, false);
        let (message, help) = found(&["libc.malloc", "com.example.aren"], &[malloc()]).unwrap();
        assert_eq!(
            message,
            "no process has samples of the heap com.example.aren, only of libc.malloc"
        );
        assert!(help.contains("--all-heaps"), "{help}");
        let (_, help) = found(&["libc.malloc", "com.androd.art"], &[malloc()]).unwrap();
        assert_eq!(help, "did you mean com.android.art?");
        // It is right, and the process does not use it.
        let (_, help) = found(&["libc.malloc", "com.android.art"], &[malloc()]).unwrap();
        assert!(help.contains("--all-heaps"), "{help}");
        assert_eq!(found(&["libc.malloc"], &[malloc()]), None);
        assert_eq!(found(&[], &[malloc()]), None);
        // Other warnings explain these.
        let ended = dump("com.example.arena", false, true);
        assert_eq!(found(&["com.example.arena"], &[malloc(), ended]), None);
        assert_eq!(found(&["com.example.aren"], &[]), None);
    }
}
