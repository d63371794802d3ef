//! What a profile cannot see, in words: never hidden, however good the rest looks. Facts of
//! heapprofd, of Java heap graphs, and of what was left out of this recording.

use super::process_total::Measured;
use crate::profile::DumpKind;
use crate::report::data::header::Unseen;
use crate::stacks::{Dump, StackProfile};
use crate::units::ByteSize;

/// What nobody sees who looks at these.
pub(super) fn unseen(
    native: Option<&StackProfile>,
    has_java: bool,
    measured: Option<&Measured>,
) -> Vec<Unseen> {
    let mut all = Vec::new();
    let mut add = |what: &str, bytes: Option<i64>, why: String| {
        all.push(Unseen {
            what: what.to_owned(),
            why,
            bytes: bytes.and_then(|bytes| u64::try_from(bytes).ok()),
        });
    };
    let parts = measured.and_then(|measured| measured.parts);
    // Where it was measured, the figure says more than the command that would show it.
    let lists = |rows: &str| match (parts, measured) {
        (Some(_), Some(measured)) => format!("Measured by {} at {}.", measured.by, measured.at),
        _ => format!(
            "`heaptap meminfo PROCESS` lists {rows}; `heaptap record --with meminfo` keeps it \
             beside the dumps."
        ),
    };
    add(
        "Graphics memory",
        parts.map(|parts| parts.graphics),
        format!(
            "Textures, frame buffers and what else drivers keep for the GPU comes from no heap. {}",
            lists("it as Graphics, GL mtrack and EGL mtrack")
        ),
    );
    add(
        "Mapped files and anonymous mappings",
        parts.map(|parts| {
            let mapped = parts.code.saturating_add(parts.stack);
            mapped.saturating_add(parts.other)
        }),
        format!(
            "Code, fonts, databases and whatever else is mapped with mmap, the stacks of threads \
             too. {}",
            lists("them as .so, .apk, .dex, Stack, Other")
        ),
    );
    if let Some(parts) = parts {
        add(
            "Shared pages and swap",
            Some(parts.system),
            "The process's share of pages that it has together with others, and what of it is \
             swapped out (compressed in ZRAM, on phones)."
                .to_owned(),
        );
    }
    // What the process has of the native heap beyond what was sampled: of both below.
    let beyond = measured.and_then(Measured::native_unseen);
    let dumps = native.map_or(&[][..], |profile| &profile.dumps);
    let has = |check: &dyn Fn(&Dump) -> bool| dumps.iter().any(check);
    if has(&|dump| is_of_android(dump) && !dump.facts.flags.from_startup) {
        let together = match beyond {
            Some(_) => {
                " The size is what the native heap takes up beyond what was sampled: what the \
                 allocator adds is in it, too."
            }
            None => "",
        };
        add(
            "Memory from before the profiler attached",
            beyond,
            format!(
                "What was allocated earlier is not in these numbers, nor is it when it is freed; \
                 a heap that is steady seems to grow until its old blocks are replaced. `heaptap \
                 record --launch` profiles an app from its start.{together}"
            ),
        );
    }
    let intervals = dumps
        .iter()
        .map(|dump| dump.facts.sampling_interval_bytes)
        .filter(|interval| *interval > 1);
    if let Some(interval) = intervals.max() {
        add(
            "Small blocks between two samples",
            None,
            format!(
                "One byte in {} is sampled, on average. Sizes are estimates; of a callsite that \
                 does not show, less than {} is held (95 % certain), in blocks smaller than one \
                 interval. Counts are of samples, not of allocations.",
                ByteSize(interval),
                ByteSize(interval.saturating_mul(3)),
            ),
        );
    }
    if has(&|dump| is_of_android(dump)) {
        let from_startup = !has(&|dump| is_of_android(dump) && !dump.facts.flags.from_startup);
        add(
            "What the allocator adds",
            beyond.filter(|_| from_startup),
            "Sizes are those that were asked for. Rounding up, headers, and free memory that the \
             allocator keeps count in the process, not here."
                .to_owned(),
        );
    }
    if has(&|dump| dump.facts.kind == DumpKind::AllocationsOnly) {
        add(
            "Frees of Java objects",
            None,
            "The heap com.android.art tells what was allocated, never what was freed: what is \
             held now is in a Java heap dump (`heaptap dump`)."
                .to_owned(),
        );
    }
    if has(&|dump| dump.facts.kind == DumpKind::AtMaximum) {
        add(
            "Frees after the maximum",
            None,
            "The values are those of the moment when the heap was largest: the largest of many \
             estimates, so rather too high; nothing is known of what came after it."
                .to_owned(),
        );
    }
    match (native.is_some(), has_java) {
        (true, false) => add(
            "Java objects",
            None,
            "Not dumped: `heaptap dump -n PROCESS` shows what Java code holds.".to_owned(),
        ),
        (false, true) => add(
            "Native memory",
            None,
            "Not sampled, apart from what Java objects are known to own: `heaptap record -n \
             PROCESS` shows who allocates it."
                .to_owned(),
        ),
        _ => {}
    }
    all
}

/// Whether heapprofd wrote it, rather than another tool.
fn is_of_android(dump: &Dump) -> bool {
    dump.measures.iter().any(|measure| measure.view.is_some()) && dump.facts.pid != 0
}
