//! Java heaps on a page: the answers for its script, and a summary for readers without scripts.

use crate::analyze::histogram::HistogramKey;
use crate::explored::{ExploredHeap, pack};
use crate::heaps::java::diff::{DiffReport, NamedChange};
use crate::heaps::java::facts::Figures;
use crate::heaps::java::{JavaHeap, ProgressReporter};
use crate::heaps::selector::DumpSelector;
use crate::report::java::change::{Change, Changed, ChangedLeak, Sizes};
use crate::report::java::{self, JavaPage, JavaPart};
use crate::untrusted::shell::{quoted_dump, quoted_path};

/// Maximum size of the answers of all heaps, packed, in bytes: with the script and the style, a page of one
/// or two heaps has less than 1 MB.
const MAX_BYTES: usize = 480_000;
/// The same of a heap among many.
const LEAST_BYTES: usize = 100_000;

/// A heap for a page.
pub(super) struct HeapForPage {
    pub(super) heap: JavaHeap,
    /// Time of its dump, in milliseconds since 1970.
    pub(super) wall_ms: Option<f64>,
    /// Unique on the page.
    pub(super) number: usize,
    /// Number of heaps on the page, about.
    pub(super) among: usize,
    /// Comparison with another heap.
    pub(super) comparison: Option<DiffReport>,
}

/// Returns the part of a page for a heap. Texts of the heap are shown only with `contents`. Blocks:
/// computes paths, dominators and leaks.
pub(super) fn part(of: HeapForPage, contents: bool, progress: &ProgressReporter) -> JavaPart {
    progress.begin("finding leaks and waste");
    let heap = &of.heap;
    let command = match (&heap.label, heap.among) {
        (Some(label), _) => quoted_dump(&heap.path, label),
        (None, 0 | 1) => quoted_path(&heap.path),
        (None, _) => quoted_dump(&heap.path, DumpSelector::Number(heap.number)),
    };
    let (name, number, label) = (heap.name(), heap.number, heap.label.clone());
    let findings = heap.findings.iter();
    let warnings = findings.map(|finding| (finding.message.clone(), finding.help.clone()));
    let warnings = warnings.collect();
    let change = of.comparison.as_ref().map(change);
    let explored = ExploredHeap::of(of.heap, contents, of.comparison);
    progress.begin("writing the page");
    let most_bytes = (MAX_BYTES / of.among.max(1)).max(LEAST_BYTES);
    let data = pack(&explored, &format!("heaptap explore {command}"), most_bytes);
    let explorer = explored.explorer();
    let page = JavaPage {
        name,
        number,
        label,
        wall_ms: of.wall_ms,
        graph: explorer.graph(),
        warnings,
        classes: explorer.table(HistogramKey::Class),
        leaks: explored.found_leaks(),
        change,
    };
    java::part(&page, of.number, data)
}

/// Converts a difference of heaps for the summary.
fn change(report: &DiffReport) -> Change {
    let sizes = |figures: &Figures| Sizes {
        count: figures.count,
        shallow: figures.shallow_bytes,
        native: figures.native_bytes,
        retained: figures.retained_total(),
    };
    let changed = |row: &NamedChange| Changed {
        name: row.name.clone(),
        status: row.change.status,
        before: sizes(&row.change.before),
        after: sizes(&row.change.after),
    };
    let before = &report.before;
    Change {
        before: match &before.label {
            Some(label) => format!("{}@{label}", before.path),
            None if before.dumps > 1 => format!("{}@{}", before.path, before.number),
            None => before.path.clone(),
        },
        of_two_kinds: before.source != report.after.source,
        total: (sizes(&report.total.before), sizes(&report.total.after)),
        classes: report.classes.iter().map(changed).collect(),
        leaks: report
            .leaks
            .iter()
            .map(|leak| ChangedLeak {
                class: leak.class.clone(),
                what: leak.what,
                way: leak.path.clone(),
                status: leak.status,
                count: (leak.before_count, leak.after_count),
                bytes: (leak.before_bytes, leak.after_bytes),
            })
            .collect(),
    }
}
