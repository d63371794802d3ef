//! Limitations of a profile, which are always shown: facts about heapprofd, Java heap graphs, and
//! data missing from this recording.

use super::process_total::Measured;
use heaptap_base::units::ByteSize;
use heaptap_model::profile::DumpKind;
use heaptap_model::stacks::{Dump, StackProfile};
use heaptap_report::data::header::Unseen;

/// Returns the memory that is not visible in these data.
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
    // If it was measured, the value is more useful than the command that shows it.
    let lists = |rows: &str| match (parts, measured) {
        (Some(_), Some(measured)) => format!("Measured by {} at {}.", measured.by, measured.at),
        _ => format!(
            "`heaptap meminfo -n PROCESS` lists {rows}; `heaptap record --with meminfo` records it \
             with the dumps."
        ),
    };
    add(
        "Graphics memory",
        parts.map(|parts| parts.graphics),
        format!(
            "Textures, frame buffers and other GPU memory of drivers are not in any heap. {}",
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
            "Code, fonts, databases and other memory mapped with mmap, including thread stacks. {}",
            lists("them as .so, .apk, .dex, Stack, Other")
        ),
    );
    if let Some(parts) = parts {
        add(
            "Shared pages and swap",
            Some(parts.system),
            "The process's share of pages that it shares with other processes, and its swapped \
             memory (compressed in ZRAM on devices)."
                .to_owned(),
        );
    }
    // Native heap of the process beyond the sampled part, for both entries below.
    let beyond = measured.and_then(Measured::native_unseen);
    let dumps = native.map_or(&[][..], |profile| &profile.dumps);
    let has = |check: &dyn Fn(&Dump) -> bool| dumps.iter().any(check);
    if has(&|dump| is_of_android(dump) && !dump.facts.flags.from_startup) {
        let together = match beyond {
            Some(_) => {
                " The size is the native heap beyond what was sampled, including allocator \
                 overhead."
            }
            None => "",
        };
        add(
            "Memory from before the profiler attached",
            beyond,
            format!(
                "Earlier allocations and their frees are not in these numbers. A heap of constant \
                 size seems to grow until its old blocks are replaced. `heaptap record --launch` \
                 profiles an app from its start.{together}"
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
                "On average, one byte in {} is sampled, and sizes are estimates. A callsite that \
                 is not shown has less than {} unreleased (95% certain), in blocks smaller than \
                 one interval. Counts are samples, not allocations.",
                ByteSize(interval),
                ByteSize(interval.saturating_mul(3)),
            ),
        );
    }
    if has(&|dump| is_of_android(dump)) {
        let from_startup = !has(&|dump| is_of_android(dump) && !dump.facts.flags.from_startup);
        add(
            "Allocator overhead",
            beyond.filter(|_| from_startup),
            "Sizes are those that the program requested. Rounding, headers and free memory kept by \
             the allocator count in the process, but not here."
                .to_owned(),
        );
    }
    if has(&|dump| dump.facts.kind == DumpKind::AllocationsOnly) {
        add(
            "Frees of Java objects",
            None,
            "The heap com.android.art reports allocations, but not frees. For memory that is in \
             use now, take a Java heap dump (`heaptap dump`)."
                .to_owned(),
        );
    }
    if has(&|dump| dump.facts.kind == DumpKind::AtMaximum) {
        add(
            "Frees after the maximum",
            None,
            "The values are from the time when the heap was largest. As the largest of many \
             estimates, they are probably too high. Later changes are unknown."
                .to_owned(),
        );
    }
    let of_java = |dump: &Dump| dump.facts.kind == DumpKind::JavaHeap;
    let has_native = native.is_some() && !(has(&of_java) && dumps.iter().all(of_java));
    match (has_native, has_java || has(&of_java)) {
        (true, false) => add(
            "Java objects",
            None,
            "Not dumped: `heaptap dump -n PROCESS` shows the memory of Java objects.".to_owned(),
        ),
        (false, true) => add(
            "Native memory",
            None,
            "Not sampled, apart from memory known to be owned by Java objects: `heaptap record -n \
             PROCESS` shows its callsites."
                .to_owned(),
        ),
        _ => {}
    }
    all
}

/// Returns whether heapprofd wrote it, rather than another tool.
fn is_of_android(dump: &Dump) -> bool {
    let has_views = dump.measures.iter().any(|measure| measure.view.is_some());
    has_views && dump.facts.pid != 0 && dump.facts.kind != DumpKind::JavaHeap
}
