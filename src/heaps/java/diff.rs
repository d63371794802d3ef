//! `diff` of two Java heaps: growth by class and in the dominator tree, and new leaks. The heaps
//! can be of different kinds, runs and builds.

use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::JavaError;
use super::facts::{Figures, HeapFacts};
use super::heap::{JavaHeap, ProgressReporter};
use super::open::{JavaOptions, open};
use super::opened::OpenedJava;
use crate::heaps::selector::JavaInput;
use heaptap_analyze::diff::{self, Change, Growth, Side};
use heaptap_analyze::filter::Filter;
use heaptap_analyze::histogram::Sums;
use heaptap_analyze::leaks::{self, Leaks};
use heaptap_analyze::tree::{self, NodeKey, Tree};
use heaptap_base::error::ErrorClass;
use heaptap_results::findings::{self, other_process, same_moment, sizes_differ};

/// Status of a change between dumps one of which lacks objects: what it lacks can look new or gone, on
/// other paths, and unreachable.
const UNKNOWN: &str = "unknown";

/// Returns the status of a change; `is_complete`: neither dump lacks objects.
fn status(change: &Change, is_complete: bool) -> &'static str {
    match change.status() {
        "same" => "same",
        _ if !is_complete => UNKNOWN,
        status => status,
    }
}

/// Maximum depth of the dominator tree, if the user does not say.
pub const DEPTH: usize = 8;

#[derive(Debug, Clone)]
pub struct DiffRequest {
    /// First dump, and options for opening it.
    pub before: (JavaInput, JavaOptions),
    /// Second dump.
    pub after: (JavaInput, JavaOptions),
    /// Comparison options.
    pub wanted: Wanted,
}

/// Options of the comparison and its output.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Filter for objects.
    pub filter: Filter,
    /// Maximum number of classes, packages, paths and leaks.
    pub limit: usize,
    /// True if packages are compared, too.
    pub packages: bool,
    /// True if unchanged classes and packages are included.
    pub unchanged: bool,
    /// Minimum change of the retained bytes of a displayed node of the dominator tree; `None` for
    /// 1/1000 of the larger heap.
    pub least: Option<u64>,
    /// Maximum depth of the dominator tree.
    pub depth: usize,
    /// True if texts of the heap can be shown.
    pub texts: bool,
}

/// The changes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DiffReport {
    /// First dump.
    pub before: HeapFacts,
    /// Second dump.
    pub after: HeapFacts,
    /// All reachable objects that match.
    pub total: ChangeRow,
    /// Classes, in descending order of growth.
    pub classes: Vec<NamedChange>,
    /// Number of changed classes before the limit.
    pub classes_changed: usize,
    /// Packages, if wanted, in descending order of growth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packages: Option<Vec<NamedChange>>,
    /// Number of changed packages before the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packages_changed: Option<usize>,
    /// Changed part of the dominator tree, each node after its parent.
    pub paths: Vec<PathChangeRow>,
    /// Nodes with smaller changes are left out.
    #[serde(rename = "paths_min_bytes")]
    pub paths_least_bytes: u64,
    /// Leaks by signature, in descending order of growth.
    pub leaks: Vec<LeakChange>,
    /// Number of leaks before the limit.
    pub leaks_total: usize,
    /// True if the filters match any class of either dump.
    pub matches: bool,
}

/// Values before and after.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ChangeRow {
    /// `new`, `gone`, `grown`, `shrunk`, `same` or `unknown`.
    pub status: &'static str,
    /// Values in the first dump.
    pub before: Figures,
    /// Values in the second dump.
    pub after: Figures,
    /// Difference, second minus first.
    pub growth: Growth,
}

impl ChangeRow {
    fn new(change: &Change, is_complete: bool) -> ChangeRow {
        ChangeRow {
            status: status(change, is_complete),
            before: Figures::with_retained(&change.before),
            after: Figures::with_retained(&change.after),
            growth: change.growth(),
        }
    }
}

/// A class or package and its changes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NamedChange {
    /// Name without parts that differ between runs.
    pub name: String,
    #[serde(flatten)]
    pub change: ChangeRow,
}

/// A node of the dominator tree and its changes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathChangeRow {
    /// Position in the list.
    pub id: usize,
    /// Index of the parent; absent at the top.
    #[serde(rename = "parent")]
    pub above: Option<usize>,
    /// 0 at the top.
    pub depth: usize,
    /// Class of the objects.
    pub name: String,
    #[serde(flatten)]
    pub change: ChangeRow,
}

/// Leaks of one cause in both dumps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeakChange {
    /// SHA-1 of the suspected references.
    pub signature: String,
    /// The leaking class.
    pub class: String,
    /// Kind of leak, such as `destroyed Activity`.
    pub what: &'static str,
    /// Suspected references, from the root.
    pub path: String,
    /// `new`, `gone`, `grown`, `shrunk`, `same` or `unknown`.
    pub status: &'static str,
    /// Number of objects in the first dump.
    pub before_count: u64,
    /// Number of objects in the second dump.
    pub after_count: u64,
    /// Bytes that they keep, in the first dump.
    pub before_bytes: u64,
    /// Bytes in the second dump.
    pub after_bytes: u64,
}

/// Compares two dumps, whose inputs can be `opened` already; missing data decide the class.
///
/// # Errors
/// Returns an error if one contains no Java heap, or cannot be read.
pub fn diff(
    request: &DiffRequest,
    opened: [OpenedJava; 2],
    progress: &ProgressReporter,
) -> Result<(DiffReport, Option<ErrorClass>), JavaError> {
    // One heap at a time: only the tables of each are kept, not the graph.
    let wanted = &request.wanted;
    let [first, second] = opened;
    let half = |(input, options): &(JavaInput, JavaOptions), opened| {
        let heap = open(input, opened, options.clone(), progress)?;
        Ok::<_, JavaError>(Half::new(&heap, wanted, progress))
    };
    let (mut before, mut after) = (half(&request.before, first)?, half(&request.after, second)?);
    // An app that has restarted has another PID on each side.
    let [of_before, of_after] = [&mut before, &mut after].map(|half| &mut half.facts.warnings);
    let all = [of_before.clone(), of_after.clone()];
    findings::keep_missing_everywhere(of_before, all.iter().map(Vec::as_slice));
    of_after.retain(|warning| warning.kind != findings::NOT_IN_INPUT);
    let class = ErrorClass::first_of(before.class.into_iter().chain(after.class));
    Ok((compare(before, after, wanted), class))
}

/// Compares the tables of two dumps.
pub(crate) fn compare(before: Half, mut after: Half, wanted: &Wanted) -> DiffReport {
    if before.is_of_dump(&after) {
        after.facts.warnings.push(same_moment());
    }
    let [one, other] = [&before, &after].map(|half| half.facts.process.as_deref());
    let others = other_process(one.unwrap_or_default(), other.unwrap_or_default());
    after.facts.warnings.extend(others);
    // Between a heap graph and an HPROF, more than the sizes differs.
    let is_alike = before.facts.source == after.facts.source;
    if is_alike {
        let sizes = sizes_differ(before.facts.sizes, after.facts.sizes);
        after.facts.warnings.extend(sizes);
    }
    let total = Change {
        before: before.total,
        after: after.total,
    };
    let is_complete = !(before.facts.lacks_objects || after.facts.lacks_objects);
    let changed = |before, after| changed(before, after, wanted, is_complete, is_alike);
    let (classes, classes_changed) = changed(before.classes, after.classes);
    let packages = before.packages.zip(after.packages);
    let (packages, packages_changed) = packages
        .map(|(before, after)| changed(before, after))
        .unzip();
    let least = wanted.least.unwrap_or_else(|| {
        let larger = total.before.retained.max(total.after.retained);
        (larger.total_bytes() / 1000).max(1)
    });
    let mut leaks = leak_changes(before.leaks, after.leaks, is_complete);
    let leaks_total = leaks.len();
    leaks.truncate(wanted.limit);
    DiffReport {
        before: before.facts,
        after: after.facts,
        total: ChangeRow::new(&total, is_complete),
        classes,
        classes_changed,
        packages,
        packages_changed,
        paths: path_rows((&before.tree, &after.tree), wanted, least, is_complete),
        paths_least_bytes: least,
        leaks,
        leaks_total,
        matches: before.matches || after.matches,
    }
}

/// Returns the changes of classes or packages, and their number before the limit: by size or, if
/// the dumps are not `alike`, by number.
fn changed(
    before: diff::Classes,
    after: diff::Classes,
    wanted: &Wanted,
    is_complete: bool,
    is_alike: bool,
) -> (Vec<NamedChange>, usize) {
    let mut rows = diff::merge(before, after);
    let key = |row: &diff::ClassChange| {
        let growth = row.change.growth();
        match is_alike {
            true => [growth.own_bytes(), growth.retained_total_bytes()],
            false => [growth.count, 0],
        }
    };
    if !wanted.unchanged {
        rows.retain(|row| match is_alike {
            true => !row.change.growth().is_none(),
            false => row.change.growth().count != 0,
        });
    }
    let all = rows.len();
    diff::keep_largest(&mut rows, wanted.limit, key);
    let named = |row: diff::ClassChange| NamedChange {
        change: ChangeRow::new(&row.change, is_complete),
        name: row.name,
    };
    (rows.into_iter().map(named).collect(), all)
}

/// Tables of a dump for the comparison.
pub(crate) struct Half {
    /// File with resolved links.
    file: Option<PathBuf>,
    facts: HeapFacts,
    class: Option<ErrorClass>,
    classes: diff::Classes,
    packages: Option<diff::Classes>,
    total: Sums,
    tree: Tree,
    leaks: BTreeMap<(String, String), LeakChange>,
    matches: bool,
}

/// Returns the filter with class objects, by the names of their classes: static fields are part of
/// what grows.
fn with_class_objects(filter: &Filter) -> Filter {
    Filter {
        by_represented: true,
        ..filter.clone()
    }
}

impl Half {
    pub(crate) fn new(heap: &JavaHeap, wanted: &Wanted, progress: &ProgressReporter) -> Half {
        let side = Side {
            graph: &heap.graph,
            dominators: heap.dominators(),
        };
        progress.begin("looking for leaks");
        let found = leaks::find_with(&heap.graph, wanted.texts);
        progress.begin("adding up");
        let filter = &wanted.filter;
        let packages = || diff::packages(side, &with_class_objects(filter));
        Half {
            file: heap.path.canonicalize().ok(),
            class: heap.class(),
            packages: wanted.packages.then(packages),
            ..Half::of_side(side, HeapFacts::from_heap(heap), &found, filter)
        }
    }

    /// Adds up a heap whose leaks are found already. Missing data do not decide the class.
    pub(crate) fn of_side(
        side: Side<'_>,
        facts: HeapFacts,
        leaks: &Leaks,
        filter: &Filter,
    ) -> Half {
        let graph = side.graph;
        let classes = diff::classes(side, filter);
        let mut total = classes.total();
        let all = with_class_objects(filter);
        if filter.takes_all() {
            total.retained = side.dominators.total();
        } else {
            let taken = all.of(graph);
            total = Sums::default();
            for &object in side.dominators.order() {
                if taken.takes(object) {
                    total.add(graph, object);
                }
            }
            let group = |o| taken.takes(o).then_some(0);
            total.retained = side.dominators.retained_by(1, group)[0];
        }
        let tree = tree::merged(graph, side.dominators, NodeKey::Class, 0);
        let leaks = by_signature(leaks, filter);
        Half {
            file: Path::new(&facts.path).canonicalize().ok(),
            facts,
            class: None,
            classes,
            packages: None,
            total,
            tree,
            leaks,
            matches: all.matches(graph),
        }
    }

    fn is_of_dump(&self, other: &Half) -> bool {
        let is_same_file = self.file.is_some() && self.file == other.file;
        let this = (self.facts.pid, self.facts.number);
        is_same_file && this == (other.facts.pid, other.facts.number)
    }
}

fn by_signature(found: &Leaks, filter: &Filter) -> BTreeMap<(String, String), LeakChange> {
    let groups = found
        .groups
        .iter()
        .filter(|group| filter.takes(&group.class));
    let mut all = BTreeMap::new();
    for group in groups {
        let suspects = group.path.iter().filter(|step| step.suspect);
        let names: Vec<String> = suspects
            .filter_map(|step| {
                let reference = step.reference.as_ref()?;
                let class = heaptap_analyze::paths::short(&step.class);
                Some(match &step.repeated {
                    Some(repeated) => repeated.text(),
                    None => format!("{class}.{}", reference.shown()),
                })
            })
            .collect();
        let entry = all
            .entry((group.signature.clone(), group.class.clone()))
            .or_insert_with(|| LeakChange {
                signature: group.signature.clone(),
                class: group.class.clone(),
                what: group.what,
                path: names.join(" → "),
                status: "same",
                before_count: 0,
                after_count: 0,
                before_bytes: 0,
                after_bytes: 0,
            });
        entry.after_count += group.count;
        let bytes = group.kept.total_bytes();
        entry.after_bytes = entry.after_bytes.saturating_add(bytes);
    }
    all
}

fn leak_changes(
    before: BTreeMap<(String, String), LeakChange>,
    after: BTreeMap<(String, String), LeakChange>,
    is_complete: bool,
) -> Vec<LeakChange> {
    let mut all = after;
    for (key, old) in before {
        let entry = all.entry(key).or_insert_with(|| LeakChange {
            after_count: 0,
            after_bytes: 0,
            ..old.clone()
        });
        (entry.before_count, entry.before_bytes) = (old.after_count, old.after_bytes);
    }
    let mut all: Vec<LeakChange> = all.into_values().collect();
    for leak in &mut all {
        let sums = |count, bytes| Sums {
            count,
            shallow_bytes: bytes,
            ..Sums::default()
        };
        let change = Change {
            before: sums(leak.before_count, leak.before_bytes),
            after: sums(leak.after_count, leak.after_bytes),
        };
        leak.status = status(&change, is_complete);
    }
    all.sort_by_key(|leak| {
        let bytes = i128::from(leak.after_bytes) - i128::from(leak.before_bytes);
        let count = i128::from(leak.after_count) - i128::from(leak.before_count);
        (std::cmp::Reverse((bytes, count)), leak.class.clone())
    });
    all
}

/// Returns the changed part of the dominator tree. Under each node, increases come before
/// decreases.
fn path_rows(
    (before, after): (&Tree, &Tree),
    wanted: &Wanted,
    least: u64,
    is_complete: bool,
) -> Vec<PathChangeRow> {
    let all = diff::by_path(before, after);
    let changed = |at: usize| {
        let growth = all.nodes[at].change.growth();
        growth.retained_total_bytes().unsigned_abs() >= least
    };
    let filter = &wanted.filter;
    let mut rows: Vec<PathChangeRow> = Vec::new();
    let mut stack: Vec<(usize, Option<usize>, usize)> = Vec::new();
    stack.extend(all.tops.iter().rev().map(|&top| (top, None, 0)));
    while let Some((at, above, depth)) = stack.pop() {
        let node = &all.nodes[at];
        if above.is_none() && !filter.takes_all() && !filter.takes(&node.name) {
            stack.extend(node.below.iter().rev().map(|&below| (below, None, 0)));
            continue;
        }
        if !changed(at) {
            continue;
        }
        let id = rows.len();
        rows.push(PathChangeRow {
            id,
            above,
            depth,
            name: node.name.clone(),
            change: ChangeRow::new(&node.change, is_complete),
        });
        if depth + 1 < wanted.depth {
            let below = node.below.iter().rev();
            stack.extend(below.map(|&below| (below, Some(id), depth + 1)));
        }
    }
    rows
}

impl DiffReport {
    /// Returns whether both dumps are heap graphs or HPROFs, so that sizes and roots are comparable.
    pub fn is_alike(&self) -> bool {
        self.before.source == self.after.source
    }

    /// Returns the growth in bytes of what the matching objects retain together, Java and native:
    /// of all reachable objects if there is no filter; 0 if it shrank.
    pub fn excess(&self) -> u64 {
        let growth = &self.total.growth;
        growth.retained_total_bytes().max(0).unsigned_abs()
    }
}
