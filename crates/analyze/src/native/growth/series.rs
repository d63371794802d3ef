//! Series of dumps: which dumps continue others, and counters that restart.
//!
//! heapprofd omits a callsite from the next dump if it holds nothing and was idle since the last
//! dump. If it returns, it counts from zero. The trace reader hides both effects; profiles written
//! dump by dump, by any tool, still have them.

use std::collections::BTreeMap;

use crate::sampling::Interval;
use heaptap_model::stacks::{Dump, NodeId, View};

/// Dumps of one heap to compare, oldest first; at least two.
#[derive(Debug, Clone)]
pub struct HeapSeries<'a> {
    /// Dumps with their intervals. They share a table.
    pub dumps: Vec<(&'a Dump, Interval)>,
    /// Whether they are from one recording of one process, so survivors cancel.
    pub paired: bool,
    /// Whether later dumps were omitted because of missing data.
    pub incomplete: bool,
}

/// Maximum part of the allocated bytes that a later dump of the same recording can lack, because of
/// callsites that returned after they were omitted.
const MAX_LOST: f64 = 0.2;

/// Returns whether `after` can be a later dump of the recording of `before`: allocated bytes of
/// callsites in both did not decrease, with few exceptions.
pub fn continues(before: &Dump, after: &Dump) -> bool {
    let facts = (&before.facts, &after.facts);
    if facts.0.pid != facts.1.pid || facts.0.heap != facts.1.heap {
        return false;
    }
    let (Some(old), Some(new)) = (
        before.column(View::AllocSpace),
        after.column(View::AllocSpace),
    ) else {
        return false;
    };
    let later: BTreeMap<NodeId, i64> = after
        .values
        .nodes
        .iter()
        .copied()
        .zip(new.iter().copied())
        .collect();
    let (mut all, mut lost) = (0.0, 0.0);
    for (node, bytes) in before.values.nodes.iter().zip(old) {
        if let Some(now) = later.get(node) {
            all += *bytes as f64;
            if now < bytes {
                lost += *bytes as f64;
            }
        }
    }
    lost <= MAX_LOST * all
}

/// Makes counters continue where a callsite was omitted or restarted, by adding its earlier
/// allocations and frees. The dumps are of one heap of one recording, oldest first. Dumps without
/// the four views do not change.
pub fn continue_counters(dumps: &mut [Dump]) {
    /// Values of a callsite in the last dump that contains it, and its sums before a restart.
    #[derive(Clone, Copy, Default)]
    struct Past {
        last: [i64; 2],
        base: [i64; 2],
    }
    let mut past: BTreeMap<NodeId, Past> = BTreeMap::new();
    for dump in dumps {
        let place = |view| dump.measures.iter().position(|m| m.view == Some(view));
        let (Some(bytes), Some(count)) = (place(View::AllocSpace), place(View::AllocObjects))
        else {
            return;
        };
        let mut missing = past.clone();
        for at in 0..dump.values.nodes.len() {
            let node = dump.values.nodes[at];
            missing.remove(&node);
            let now = [bytes, count].map(|column| dump.values.columns[column][at]);
            let known = past.entry(node).or_default();
            if now[0] < known.last[0] || now[1] < known.last[1] {
                for (base, last) in known.base.iter_mut().zip(known.last) {
                    *base = base.saturating_add(last);
                }
            }
            known.last = now;
            for (column, base) in [bytes, count].into_iter().zip(known.base) {
                let value = &mut dump.values.columns[column][at];
                *value = value.saturating_add(base);
            }
        }
        if missing.is_empty() {
            continue;
        }
        // Nothing is unreleased; everything it allocated stays allocated and is freed.
        for (node, past) in missing {
            dump.values.nodes.push(node);
            for (at, column) in dump.values.columns.iter_mut().enumerate() {
                let total = |of: usize| past.last[of].saturating_add(past.base[of]);
                column.push(match at {
                    at if at == bytes => total(0),
                    at if at == count => total(1),
                    _ => 0,
                });
            }
        }
        sort(dump);
    }
}

fn sort(dump: &mut Dump) {
    let nodes = &dump.values.nodes;
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    order.sort_unstable_by_key(|at| nodes[*at]);
    dump.values.nodes = order.iter().map(|at| nodes[*at]).collect();
    for column in &mut dump.values.columns {
        *column = order.iter().map(|at| column[*at]).collect();
    }
}
