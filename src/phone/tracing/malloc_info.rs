//! `malloc_info` of a process: what its native heap holds at a moment, by size, in the words of
//! the allocator that its Android release has. Follows from the same workload as heapprofd's
//! dumps.

use std::collections::BTreeMap;

use super::workload::{Allocation, Life, TICK, Workload};
use crate::phone::clock::{BootNs, MILLI};
use crate::phone::kernel::Kernel;
use crate::phone::process::Process;

/// jemalloc's largest small size; larger ones up to a chunk are "large".
const SMALL: u64 = 14 << 10;
const CHUNK: u64 = 1 << 21;

/// Sizes that are held at `now`, with how many of each.
fn held(workload: &Workload, process: &Process, now: BootNs) -> BTreeMap<u64, u64> {
    let mut sizes = BTreeMap::new();
    if process.frozen || process.idle {
        return sizes;
    }
    let last = now / TICK;
    let first = process.started.div_ceil(TICK);
    // What lives for a time is found in the last such time; the rest since the start.
    let longest = workload.heaps[0].sites.iter().filter_map(|s| match s.life {
        Life::Forever => None,
        Life::Millis(_, to) => Some(to * MILLI / TICK + 2),
    });
    let recent = last.saturating_sub(longest.max().unwrap_or(0)).max(first);
    let mut out: Vec<Allocation> = Vec::new();
    for tick in first..=last {
        let only = |s: &super::workload::Site| tick >= recent || matches!(s.life, Life::Forever);
        workload.allocations_of(0, tick, process.started, &only, &mut out);
        for a in out.iter().filter(|a| a.freed_at.is_none_or(|at| at > last)) {
            *sizes.entry(a.size.max(1).next_multiple_of(16)).or_insert(0) += 1;
        }
    }
    sizes
}

/// The XML that `am dumpheap -m` writes.
pub(crate) fn malloc_info(kernel: &Kernel, process: &Process, now: BootNs) -> String {
    let sizes = held(&Workload::of(kernel, process), process, now);
    if kernel.spec.android >= 11 {
        let mut text = "<malloc version=\"scudo-1\">\n".to_owned();
        for (size, count) in sizes {
            text.push_str(&format!("<alloc size=\"{size}\" count=\"{count}\"/>\n"));
        }
        text.push_str("</malloc>\n");
        return text;
    }
    let sum = |from: u64, to: u64| -> u64 {
        let range = sizes.range(from..to);
        range.map(|(size, count)| size * count).sum()
    };
    let small = sum(0, SMALL + 1);
    format!(
        "<malloc version=\"jemalloc-1\"><heap nr=\"0\"><allocated-large>{}</allocated-large>\
         <allocated-huge>{}</allocated-huge><allocated-bins>{small}</allocated-bins>\
         <bins-total>{small}</bins-total></heap></malloc>",
        sum(SMALL + 1, CHUNK),
        sum(CHUNK, u64::MAX),
    )
}
