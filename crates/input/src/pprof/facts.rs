//! Facts about the dump in a pprof: the time, the sampling interval and, if heaptap wrote it,
//! process and heap.

use super::message::Message;
use heaptap_model::profile::DumpKind;
use heaptap_model::profile::comments::{
    AT_MAXIMUM, ATTACHED, DIFFERENCE, FLAGS, OF_JAVA_HEAP, UNFINISHED,
};
use heaptap_model::stacks::{Dump, TRACKED_HEAP, View};

/// Fills in the facts of the dump.
pub(super) fn fill(dump: &mut Dump, message: &Message<'_>, comments: &[String]) {
    let has = |view| dump.measures.iter().any(|m| m.view == Some(view));
    let (held, allocated) = (has(View::Space), has(View::AllocSpace));
    let of_perfetto = (!held && allocated && is_heap_graph(message)).then_some((0, ""));
    let (java, ours) = (java_heap(comments).or(of_perfetto), ours(comments));
    if java.is_some() && !held {
        // Perfetto names live objects like allocations.
        for measure in &mut dump.measures {
            measure.view = match measure.view {
                Some(View::AllocSpace) => Some(View::Space),
                Some(View::AllocObjects) => Some(View::Objects),
                other => other,
            };
        }
    }
    let at_maximum = comments.iter().any(|c| c.starts_with(AT_MAXIMUM));
    let facts = &mut dump.facts;
    facts.wall_time_ns = u64::try_from(message.time_nanos).ok().filter(|&t| t != 0);
    facts.kind = match (held, allocated) {
        (false, true) => DumpKind::AllocationsOnly,
        _ if at_maximum => DumpKind::AtMaximum,
        _ => DumpKind::Cumulative,
    };
    let period_type = message.period_type.and_then(|of| message.string(of.name));
    if matches!(
        period_type,
        Some(b"space" | b"inuse_space" | b"alloc_space")
    ) {
        facts.sampling_interval_bytes = u64::try_from(message.period).unwrap_or(0);
    }
    if let Some((pid, process)) = java {
        facts.kind = DumpKind::JavaHeap;
        facts.pid = pid;
        facts.process = process.to_owned();
        facts.sampling_interval_bytes = 1;
        facts.flags.from_startup = true;
    }
    // Other tools write differences without a comment. One of heaptap's dumps is not a difference.
    let is_negative = || dump.values.columns.iter().flatten().any(|value| *value < 0);
    let is_whole = ours.is_some() || java.is_some();
    if comments.iter().any(|c| c.starts_with(DIFFERENCE)) || (!is_whole && is_negative()) {
        facts.kind = DumpKind::Difference;
    }
    if let Some((pid, process, heap)) = ours {
        facts.pid = pid;
        facts.process = process.to_owned();
        facts.heap = heap.to_owned();
        facts.flags.from_startup = !comments.iter().any(|c| c == ATTACHED);
        for words in comments.iter().filter_map(|c| c.strip_prefix(FLAGS)) {
            for word in words.split(", ") {
                facts.flags.set(word);
                facts.unfinished |= word == UNFINISHED;
            }
        }
    }
}

/// Returns process and heap of a profile that heaptap wrote. `convert` writes the comment `heaptap
/// 0.1.0: pid 2050, com.example.app, heap libc.malloc`.
fn ours(comments: &[String]) -> Option<(u64, &str, &str)> {
    comments.iter().find_map(|comment| {
        let (_, rest) = comment.strip_prefix("heaptap ")?.split_once(": pid ")?;
        let (who, heap) = rest.rsplit_once(", heap ")?;
        let (pid, process) = pid_and_process(who)?;
        Some((pid, process, heap))
    })
}

/// Returns the process of a Java heap that heaptap wrote.
fn java_heap(comments: &[String]) -> Option<(u64, &str)> {
    comments.iter().find_map(|comment| {
        let (_, who) = comment.strip_prefix("heaptap ")?.split_once(OF_JAVA_HEAP)?;
        pid_and_process(who)
    })
}

/// Returns whether functions are classes with the reasons of GC roots: `Class [ROOT_JNI_GLOBAL]`.
fn is_heap_graph(message: &Message<'_>) -> bool {
    let is_root =
        |text: &&[u8]| text.ends_with(b"]") && text.windows(7).any(|part| part == b" [ROOT_");
    message.strings.iter().any(is_root)
}

/// Splits `2050, com.example.app`, or `2050` of a process without a name.
fn pid_and_process(who: &str) -> Option<(u64, &str)> {
    let (pid, process) = who.split_once(", ").unwrap_or((who, ""));
    Some((pid.parse().ok()?, process))
}

/// Returns whether the profile contains allocations tracked by a Java runtime.
pub(super) fn is_tracked(comments: &[String]) -> bool {
    ours(comments).is_some_and(|(_, _, heap)| heap == TRACKED_HEAP)
}
