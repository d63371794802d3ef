//! Summary of a Java heap after its dump: its size and the classes that retain most. `top`, `leaks`
//! and `paths` show more.

use serde::Serialize;

use heaptap_analyze::filter::Filter;
use heaptap_analyze::histogram::{HistogramKey, ObjectScope, histogram};
use heaptap_model::heap_graph::{Dominators, HeapGraph, ObjectIndex};
use heaptap_results::manifest::{JavaDump, JavaSums, JavaTotals};

/// Number of classes shown.
const CLASSES: usize = 10;

/// Summary of a Java heap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct JavaSummary {
    /// Dump number within its process, from 1.
    pub number: u32,
    /// Process id.
    pub pid: u64,
    /// Process name; empty if unknown.
    pub process: String,
    /// Sums over its objects.
    pub totals: JavaTotals,
    /// Number of classes with reachable objects.
    pub classes: usize,
    /// Classes that retain most, largest first.
    pub top: Vec<TopClass>,
}

/// Reachable objects of a class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TopClass {
    pub class: String,
    /// Number of objects.
    pub objects: u64,
    /// Their own sizes, bytes.
    pub shallow_bytes: u64,
    /// Native bytes they own.
    pub native_bytes: u64,
    /// Bytes that would be freed with them, including native bytes.
    pub retained_bytes: u64,
}

/// Returns the summary of `dump`, whose objects are in `graph`.
pub fn summarize(dump: &JavaDump, graph: &HeapGraph, dominators: &Dominators) -> JavaSummary {
    let all = histogram(
        graph,
        ObjectScope::Reachable(dominators),
        HistogramKey::Class,
        &Filter::default(),
    );
    let classes = all.rows.len();
    let mut top: Vec<TopClass> = all
        .rows
        .into_iter()
        .map(|row| TopClass {
            class: row.name,
            objects: row.sums.count,
            shallow_bytes: row.sums.shallow_bytes,
            native_bytes: row.sums.native_bytes,
            retained_bytes: row.sums.retained.total_bytes(),
        })
        .collect();
    top.sort_by(|a, b| {
        let larger = b.retained_bytes.cmp(&a.retained_bytes);
        larger.then_with(|| a.class.cmp(&b.class))
    });
    top.truncate(CLASSES);
    JavaSummary {
        number: dump.number,
        pid: dump.pid,
        process: dump.process.clone(),
        totals: dump.totals.unwrap_or_default(),
        classes,
        top,
    }
}

/// Sums over all objects and over the reachable ones.
pub fn totals(graph: &HeapGraph, reachable: impl Iterator<Item = ObjectIndex>) -> JavaTotals {
    let all = sums(graph, graph.objects());
    JavaTotals {
        objects: all.objects,
        space: all.space,
        native_space: all.native_space,
        reachable: sums(graph, reachable),
    }
}

fn sums(graph: &HeapGraph, objects: impl Iterator<Item = ObjectIndex>) -> JavaSums {
    let has_native = !graph.natives().is_empty();
    let mut sums = JavaSums::default();
    for object in objects {
        sums.objects += u64::from(!graph.is_placeholder(object));
        sums.space = sums.space.saturating_add(graph.shallow_bytes(object));
        if has_native {
            let native = graph.native_bytes(object);
            sums.native_space = sums.native_space.saturating_add(native);
        }
    }
    sums
}
