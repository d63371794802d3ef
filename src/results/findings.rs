//! What a dump's flags mean, in words with the remedy, and which exit code they ask for.
//! One table for the terminal, the manifest and the reports.

use std::time::Duration;

use super::manifest;
use crate::error::ErrorClass;
use crate::profile::{HeapDump, LastDump};
use crate::stacks::Facts;
use crate::units::ByteSize;

/// Something the user should know about a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// A stable word.
    pub kind: &'static str,
    /// The exit code it asks for; `None` for what is worth knowing but leaves nothing missing.
    pub class: Option<ErrorClass>,
    /// What happened.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// The process it is about.
    pub pid: Option<u64>,
}

impl Finding {
    /// Returns it as the manifest keeps what is about no dump in particular.
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

/// Kind of the finding that a dump is compared with itself.
pub const SAME_MOMENT: &str = "same-moment";
/// Kind of the finding that a trace stops early, though all that it has is whole.
pub const TRACE_CUT: &str = "trace-cut";
/// Kind of the finding that callstacks lead through code of several methods.
pub const DEDUPED_FRAMES: &str = "deduped-frames";
/// Kind of the finding that the files of names could not be written.
pub const PACKETS_UNWRITTEN: &str = "symbols-unwritten";

/// Kind of the finding that a page could not be noted in the manifest.
pub const PAGE_UNNOTED: &str = "page-unnoted";

/// Whether findings of that kind tell of names: of symbols, or of mapping files.
pub fn is_of_names(kind: &str) -> bool {
    kind.starts_with("symbols-") || kind.starts_with("mapping-")
}

/// Whether findings of that kind ask for nothing: notes, no warnings.
pub fn is_note(kind: &str) -> bool {
    matches!(kind, DEDUPED_FRAMES | NAMES_MISSING)
}

/// Kind of the finding that heapprofd did not write its final dump in time.
pub const FINAL_DUMP_MISSING: &str = "final-dump-missing";
/// What helps a heapprofd that does not keep up.
pub(crate) const BUSY: &str =
    "the process was too busy: record again with a longer interval (-i 16k)";

/// Kind of what is said of functions without a name.
pub const NAMES_MISSING: &str = "names-missing";

/// That the files of names beside a recording's trace could not be written: they can be made
/// again from the trace, which is safe.
pub fn packets_unwritten(error: &std::io::Error) -> Finding {
    Finding {
        kind: PACKETS_UNWRITTEN,
        class: None,
        message: format!("the names could not all be written beside the trace: {error}"),
        help: Some("make room there, then `heaptap symbolize` the folder".to_owned()),
        pid: None,
    }
}

/// A stack that could not be unwound is no rarity; so many are worth a word.
const MANY_UNWINDING_ERRORS_PERCENT: u64 = 10;
/// So long a wait in the allocator is felt by the app.
const LONG_BLOCK: Duration = Duration::from_secs(1);

/// What the flags of one dump mean. Flags are cumulative: of a series, ask the last dump of
/// each process and heap.
pub fn findings_for_dump(dump: &HeapDump) -> Vec<Finding> {
    let mut findings = Vec::new();
    let who = describe(dump);
    let mut add = |kind, class, message: String, help: &str| {
        findings.push(Finding {
            kind,
            class,
            message,
            help: (!help.is_empty()).then(|| help.to_owned()),
            pid: Some(dump.pid),
        });
    };
    let incomplete = Some(ErrorClass::Incomplete);
    let flags = &dump.flags;
    if flags.rejected_concurrent {
        add(
            "rejected-concurrent",
            incomplete,
            format!("{who}: another session was profiling it already, so nothing was recorded"),
            "find heaptap's other session with `heaptap status` and end it with `heaptap stop ID`, \
             or end the recording of the other tool; then record again",
        );
    }
    if flags.buffer_overran {
        add(
            "buffer-overran",
            incomplete,
            format!(
                "{who}: it allocated faster than heapprofd could follow, and what came after \
                 is missing"
            ),
            "record again with a longer interval (-i 16k), more shared memory (--shmem-size \
             64MiB), and without --no-block-client",
        );
    }
    if flags.buffer_corrupted {
        add(
            "buffer-corrupted",
            incomplete,
            format!("{who}: the memory shared with heapprofd was corrupted; distrust the figures"),
            "the app may write where it should not: try it with HWASan or GWP-ASan",
        );
    }
    if flags.hit_guardrail {
        add(
            "hit-guardrail",
            incomplete,
            format!("{who}: heapprofd reached its limit of memory or CPU time and ended early"),
            "raise it with --set heapprofd.max_heapprofd_memory_kb=… or \
             heapprofd.max_heapprofd_cpu_secs=…, or sample less with a longer interval",
        );
    }
    match flags.client_error {
        0 => {}
        // Told as an overrun already, which always comes with it.
        1 if flags.buffer_overran => {}
        1 => add(
            "client-timeout",
            incomplete,
            format!("{who}: it gave up waiting for heapprofd; what came after is missing"),
            "record again with a longer interval, or without --block-client-timeout",
        ),
        2 => add(
            "invalid-stack-bounds",
            incomplete,
            format!(
                "{who}: it allocated on a stack of its own making (coroutines, makecontext), \
                 which ends the profile of the process"
            ),
            "profile without the code that switches stacks, or record up to that moment",
        ),
        other => add(
            "client-error",
            incomplete,
            format!("{who}: its side of the profiler failed with error {other}"),
            "look for heapprofd in `adb logcat`",
        ),
    }
    if dump.unfinished {
        add(
            "dump-unfinished",
            incomplete,
            match dump.open {
                true => {
                    format!("{who}: the trace ends before its last dump; figures are lower bounds")
                }
                false => format!("{who}: packets of a dump are missing; figures are lower bounds"),
            },
            match dump.open {
                true => {
                    "while it is being written, look again later; end a recording with a single \
                     Ctrl-C and wait for the final dump"
                }
                false => "record again with a larger buffer or a longer interval",
            },
        );
    }
    // What ended its profile lets go of it, too: that is no second cause.
    if flags.disconnected && !flags.rejected_concurrent && !flags.is_cut_short() {
        add(
            "disconnected",
            None,
            match dump.samples.is_empty() {
                true => format!("{who}: it exited, or let go of heapprofd, before any sample"),
                false => {
                    format!("{who}: it exited, or let go of heapprofd, before the recording ended")
                }
            },
            "if it should have lived: `adb logcat -b crash`",
        );
    }
    if dump.unwinding_errors > 0
        && dump.unwinding_errors.saturating_mul(100)
            >= dump
                .heap_samples
                .saturating_mul(MANY_UNWINDING_ERRORS_PERCENT)
    {
        add(
            "unwinding-errors",
            None,
            format!(
                "{who}: {} of {} stacks could not be followed to their end",
                dump.unwinding_errors, dump.heap_samples
            ),
            "libraries need unwind tables (.eh_frame, .debug_frame or .gnu_debugdata): do not \
             strip them",
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
                "{who}: sampling became coarser on the way, from one in {} to one in {}",
                ByteSize(asked),
                ByteSize(now)
            ),
            "figures of small callsites are less exact than asked for",
        );
    }
    let blocked = Duration::from_micros(dump.client_spinlock_blocked_us);
    if blocked >= LONG_BLOCK {
        add(
            "client-blocked",
            None,
            format!(
                "{who}: its threads waited {:.1} s for the profiler in all",
                blocked.as_secs_f64()
            ),
            "a longer interval (-i 16k) disturbs it less",
        );
    }
    findings
}

/// That the dump of a heap that ends a recording is not in the trace.
pub fn final_dump_missing(last: &LastDump) -> Finding {
    let who = who(last.pid, &last.process, &last.heap);
    Finding {
        kind: FINAL_DUMP_MISSING,
        class: Some(ErrorClass::Incomplete),
        message: format!(
            "{who}: the final dump is missing: heapprofd had not written it when the tracing \
             service stopped waiting for it"
        ),
        help: Some(BUSY.to_owned()),
        pid: Some(last.pid),
    }
}

/// That a dump is left out because the file ends before it does.
pub fn open_dump(facts: &Facts) -> Finding {
    let who = who(facts.pid, &facts.process, &facts.heap);
    Finding {
        kind: "dump-open",
        class: None,
        message: format!(
            "{who}: dump {} is left out because its last packet is not in the trace",
            facts.number
        ),
        help: Some(format!(
            "name it with @{} to see what of it is there, as lower bounds",
            facts.number
        )),
        pid: Some(facts.pid),
    }
}

/// The process, and the heap where it is not malloc's.
pub(super) fn describe(dump: &HeapDump) -> String {
    who(dump.pid, &dump.process, &dump.heap)
}

fn who(pid: u64, process: &str, heap: &str) -> String {
    let process = match process {
        "" => format!("process {pid}"),
        name => format!("{name} ({pid})"),
    };
    match heap {
        "" | "libc.malloc" => process,
        heap => format!("{process}, heap {heap}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::DumpFlags;

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
        let findings = findings_for_dump(&dump);
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
        // A trace that ends early may be read again later, and lost packets never come.
        let help = |open| {
            let dump = HeapDump {
                unfinished: true,
                open,
                ..HeapDump::default()
            };
            findings_for_dump(&dump)
                .remove(0)
                .help
                .expect("it has a remedy")
        };
        assert!(help(true).contains("look again later"));
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
        // Whom heapprofd could not follow it let go of: one cause.
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
}
