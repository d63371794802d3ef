//! Java heaps on a page: the answers for its script, and a summary for readers without scripts.

use crate::heaps::java::diff::{DiffReport, NamedChange};
use crate::heaps::java::facts::{Figures, HeapFacts};
use crate::page::explore_api::{ExploredHeap, pack};
use heaptap_analyze::histogram::HistogramKey;
use heaptap_base::untrusted::shell::{quoted, quoted_dump, quoted_path};
use heaptap_report::java::change::{Change, Changed, ChangedLeak, Sizes};
use heaptap_report::java::{self, JavaPage, JavaPart};
use std::path::Path;

/// Maximum size of the answers of all heaps, packed, in bytes: with the script and the style, a page of one
/// or two heaps has less than 1 MB.
const MAX_BYTES: usize = 480_000;
/// The same of a heap among many.
const LEAST_BYTES: usize = 100_000;

/// Place of a heap on a page.
pub(super) struct HeapPlace<'a> {
    /// Input that has the heap.
    pub(super) input: &'a Path,
    /// Time of its dump, in milliseconds since 1970.
    pub(super) wall_ms: Option<f64>,
    /// Unique on the page.
    pub(super) number: usize,
    /// Number of heaps on the page, about.
    pub(super) among: usize,
    /// Whether other processes have heaps in the input.
    pub(super) has_others: bool,
}

/// Returns the part of a page for a heap. Blocks.
pub(super) fn part(explored: &ExploredHeap, of: &HeapPlace<'_>) -> JavaPart {
    let (facts, explorer) = (explored.facts(), explored.explorer());
    let most_bytes = (MAX_BYTES / of.among.max(1)).max(LEAST_BYTES);
    let before = explored.comparison().map(|comparison| &comparison.before);
    let data = pack(explored, &command(before, facts, of), most_bytes);
    let warnings = facts.warnings.iter();
    let warnings = warnings.map(|warning| (warning.message.clone(), warning.help.clone()));
    let page = JavaPage {
        name: facts.name(),
        number: facts.number,
        label: facts.label.clone(),
        wall_ms: of.wall_ms,
        graph: explorer.graph(),
        warnings: warnings.collect(),
        classes: explorer.table(HistogramKey::Class),
        leaks: explored.found_leaks(),
        change: explored.comparison().map(change),
    };
    java::part(&page, of.number, data)
}

/// Returns the command that shows the whole heap, compared with the earlier one.
fn command(before: Option<&HeapFacts>, facts: &HeapFacts, of: &HeapPlace<'_>) -> String {
    let dump = |path: &Path, facts: &HeapFacts| match facts.which() {
        Some(which) => quoted_dump(path, which),
        None => quoted_path(path),
    };
    let before = before.map(|before| dump(Path::new(&before.path), before) + " ");
    let input = before.unwrap_or_default() + &dump(of.input, facts);
    let process = match (of.has_others, &facts.process, facts.pid) {
        (true, _, Some(pid)) => format!(" -p {pid}"),
        (true, Some(process), None) => format!(" -n {}", quoted(process)),
        _ => String::new(),
    };
    format!("heaptap explore {input}{process}")
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
    Change {
        before: report.before.name(),
        of_two_kinds: report.before.source != report.after.source,
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
