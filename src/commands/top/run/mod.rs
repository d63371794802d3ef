//! `top` of native heaps: memory by process and heap, as a table or a tree. Each heap of each
//! process has its own table, because their figures have different errors and often different
//! meanings, so that sums over them would mislead.

use crate::heaps::input::facts::{DumpFacts, Figures, FilterFacts, Limits, StackFrame};
use crate::heaps::input::rows::{Located, Namer};
use heaptap_results::findings::Finding;

use std::sync::Arc;

use serde::Serialize;

pub(crate) use crate::heaps::input::rows::Order;
use crate::heaps::input::{DumpList, ListedDump, NativeFile};
use heaptap_analyze::native::filter::Filter;
use heaptap_analyze::native::groups::{Groups, RowKey};
use heaptap_analyze::native::sampled::SampledColumn;
use heaptap_analyze::native::table::{Key, Row, Table};
use heaptap_analyze::native::tree::{LeftOut, Pruning, Tree};
use heaptap_analyze::native::visible_tree::VisibleTree;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_model::profile::DumpKind;
use heaptap_model::stacks::{Dump, Facts, Measure, StackTable, TRACKED_HEAP, Unit, Values, sum};

/// Options of `top`.
#[derive(Debug, Clone)]
pub struct TopRequest {
    /// Key of the rows or nodes.
    pub by: RowKey,
    /// Figure of the view by which rows are ordered.
    pub order: Order,
    /// Name of the view; `None` uses the default of each heap.
    pub view: Option<String>,
    /// Maximum number of rows of each table.
    pub limit: usize,
    /// Whether to omit rows that are zero in the figure of the order.
    pub owners_only: bool,
    /// Filter of stacks.
    pub filter: Filter,
    /// Options of a tree; `None` shows a table.
    pub tree: Option<TreeRequest>,
    /// Maximum number of frames of each stack, leaf first; 0 means no limit. Only for tables by
    /// callsite.
    pub frames: usize,
}

/// Options of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeRequest {
    /// Whether the tree goes from the allocating functions to their callers.
    pub inverted: bool,
    /// Maximum number of levels.
    pub depth: usize,
    /// Minimum value of a node; `None` means 1/200 of the total shown.
    pub least: Option<u64>,
    /// Maximum number of nodes.
    pub most: usize,
}

/// Memory of an input.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TopReport {
    /// `native`.
    pub kind: &'static str,
    /// Key of the rows or nodes.
    pub by: &'static str,
    /// Order of the rows: `self`, `cumulative` or `name`.
    pub sort: &'static str,
    /// Filter of stacks.
    pub filter: FilterFacts,
    /// Table of each heap of each process, largest first.
    pub heaps: Vec<HeapReport>,
    /// Warnings to report.
    pub warnings: Vec<Finding>,
}

/// Table or tree of one heap.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeapReport {
    pub dump: DumpFacts,
    /// View of the shares and the order.
    pub view: String,
    /// `bytes`, `count` or the unit of another tool.
    pub unit: String,
    /// Totals of the dump, by view.
    pub total: Figures,
    /// Denominator of the shares: the total of the view; of a difference, the sum of the absolute
    /// values, so that growth and decrease do not cancel out.
    #[serde(skip)]
    pub whole: i64,
    /// 95% confidence interval of the view's total, if it is in bytes and the error is known.
    pub total_limits: Option<Limits>,
    /// Totals of the matching stacks.
    pub shown: Figures,
    /// Number of the last dump before the process exited or disconnected, if this dump is later and
    /// contains less than half of its unreleased memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "last_dump_before_exit")]
    pub before_leaving: Option<u32>,
    /// Whether frames of allocators or of the Java runtime were removed.
    pub hides_frames: bool,
    /// Rows of a table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<Vec<TopRow>>,
    /// Number of rows before the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_total: Option<usize>,
    /// Number of those rows with a self value in this view.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_with_self: Option<usize>,
    /// Number of those rows with a value in the figure of the order.
    #[serde(skip)]
    pub rows_with_value: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeReport>,
}

/// Row of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TopRow {
    #[serde(flatten)]
    pub at: Located,
    /// Values of stacks that end in this row, by view.
    #[serde(rename = "self")]
    pub own: Figures,
    /// 95% confidence interval of the view's self value.
    pub self_limits: Option<Limits>,
    /// Values of stacks that pass through this row, by view.
    pub cumulative: Figures,
    /// 95% confidence interval of the view's cumulative value.
    pub cumulative_limits: Option<Limits>,
    /// Self value divided by the view's total of the dump, 0 to 1; absent if the total is 0.
    pub self_share: Option<f64>,
    /// Cumulative value divided by the view's total of the dump.
    pub cumulative_share: Option<f64>,
    /// Stack, leaf first, for a callsite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack: Option<Vec<StackFrame>>,
}

/// Tree of one heap.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TreeReport {
    /// Whether it goes from the allocating functions to their callers.
    pub inverted: bool,
    /// Nodes below this value are left out.
    #[serde(rename = "min_value")]
    pub least: u64,
    /// Maximum number of levels.
    pub depth: usize,
    /// Nodes in depth-first order.
    pub nodes: Vec<TreeNode>,
    /// Nodes left out directly below the root.
    pub left_out: Option<LeftOutRow>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TreeNode {
    /// Position in the list.
    pub id: usize,
    /// Position of the parent; absent directly below the root.
    #[serde(rename = "parent")]
    pub above: Option<usize>,
    /// Depth; 0 directly below the root.
    pub depth: usize,
    pub name: String,
    /// File name of the library, for a function, line or callsite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// Values of stacks that end in this node, by view; in an inverted tree, only top nodes have
    /// them.
    #[serde(rename = "self")]
    pub own: Figures,
    /// Values of stacks that pass through this node, by view.
    pub cumulative: Figures,
    /// Cumulative value divided by the view's total of the dump.
    pub cumulative_share: Option<f64>,
    /// Maximum number of recursive calls on one stack that were folded into this node.
    pub folded_calls: u32,
    /// Nodes left out directly below it.
    pub left_out: Option<LeftOutRow>,
}

/// Nodes that were left out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LeftOutRow {
    /// Number of nodes.
    pub nodes: usize,
    /// Their cumulative values, by view.
    pub cumulative: Figures,
}

/// Computes the tables or trees of a file.
///
/// # Errors
/// Returns an error if no dump has the named view or, by thread, threads are unknown.
pub fn top(file: &NativeFile, request: &TopRequest) -> Result<TopReport, Failure> {
    let dumps = &file.profile.dumps;
    let viewed: Vec<(&Dump, Option<usize>)> = dumps
        .iter()
        .map(|dump| (dump, viewed(dump, request.view.as_deref())))
        .collect();
    if let Some(view) = &request.view
        && viewed.iter().all(|(_, at)| at.is_none())
    {
        let mut there: Vec<&str> = Vec::new();
        for measure in dumps.iter().flat_map(|dump| &dump.measures) {
            if !there.contains(&measure.name.as_str()) {
                there.push(&measure.name);
            }
        }
        let message = format!("{} does not have a view {view}", file.path.display());
        return Err(Failure::new(ErrorClass::Usage, "no-such-view", message)
            .with_help(format!("choose from: {}", there.join(", "))));
    }
    if request.by == RowKey::Thread && dumps.iter().all(|dump| dump.threads.is_empty()) {
        let name = file.path.display();
        let message = format!("{name} does not contain allocations by thread");
        return Err(
            Failure::new(ErrorClass::Usage, "no-threads", message).with_help(
                "use `--by callsite`, whose stacks begin with the entry point of the thread, or \
                 record Java allocations with `record --java-allocations=tracking`. heapprofd does \
                 not record threads.",
            ),
        );
    }
    let mut heaps: Vec<HeapReport> = viewed
        .into_iter()
        .map(|(dump, at)| {
            let at = at.unwrap_or(dump.default_measure);
            Looker::new(file, dump, at, request).report()
        })
        .collect();
    heaps.sort_by_key(|heap| std::cmp::Reverse(heap.total_of_view()));
    Ok(TopReport {
        kind: "native",
        by: request.by.name(),
        sort: request.order.name(),
        filter: FilterFacts::from(&request.filter),
        heaps,
        warnings: (file.findings.iter().cloned())
            .chain(file.names_missing())
            .collect(),
    })
}

impl HeapReport {
    pub fn total_of_view(&self) -> i64 {
        self.total.named(&self.view).unwrap_or(0)
    }
}

/// Returns the position of the measure with this name: one of the four views, or the name that
/// another tool uses.
fn viewed(dump: &Dump, name: Option<&str>) -> Option<usize> {
    let name = name?;
    let is = |measure: &Measure| {
        measure.view.is_some_and(|view| view.name() == name) || measure.name == name
    };
    dump.measures.iter().position(is)
}

/// Returns the number of the last dump of a heap while its process was connected, if `facts` is of
/// a later dump with less than half of the unreleased memory. Memory that a process frees while it
/// exits is not informative.
fn before_leaving(facts: &Facts, listed: &DumpList) -> Option<u32> {
    if !facts.flags.disconnected {
        return None;
    }
    let held = |dump: &ListedDump| dump.totals.as_ref()?.space;
    let this = listed.entry(facts)?;
    let there = listed
        .of_heap(facts)
        .filter(|dump| dump.facts.number < facts.number && !dump.facts.flags.disconnected)
        .max_by_key(|dump| dump.facts.number)?;
    (held(this)?.saturating_mul(2) < held(there)?).then_some(there.facts.number)
}

/// Numbers of rows before the limit.
#[derive(Clone, Copy)]
struct RowCounts {
    total: usize,
    /// Those with a self value in the view.
    with_self: usize,
    /// Those with a value in the figure of the order.
    with_value: usize,
}

/// Computation for one dump.
struct Looker<'a> {
    file: &'a NativeFile,
    dump: &'a Dump,
    request: &'a TopRequest,
    /// Column of the view.
    at: usize,
    names: Arc<[String]>,
    /// Columns of the dump. For views in bytes, followed by the number of samples with sampling
    /// error.
    values: Values,
    /// Error of the view's bytes. Its counts by row are in `values`.
    error: Option<SampledColumn>,
}

impl<'a> Looker<'a> {
    fn new(file: &'a NativeFile, dump: &'a Dump, at: usize, request: &'a TopRequest) -> Looker<'a> {
        let mut error = SampledColumn::new(dump, at);
        let mut values = dump.values.clone();
        if let Some(error) = &mut error {
            values.columns.push(std::mem::take(&mut error.small));
        }
        let names = dump.measures.iter().map(|measure| match measure.view {
            Some(view) => view.name().to_owned(),
            None => measure.name.clone(),
        });
        Looker {
            file,
            dump,
            request,
            at,
            names: names.collect(),
            values,
            error,
        }
    }

    fn table(&self) -> &'a StackTable {
        &self.file.profile.table
    }

    fn figures(&self, values: &[i64]) -> Figures {
        Figures {
            names: Arc::clone(&self.names),
            values: values[..self.names.len()].to_vec(),
        }
    }

    fn limits(&self, values: &[i64]) -> Option<Limits> {
        let error = self.error.as_ref()?;
        let small = values[self.names.len()];
        let mut estimate = error.estimate(values[self.at], values[error.counts], small);
        // Other tools scale up their counts, too. Each interval has about one sample.
        if !estimate.exact && !self.dump.counts_samples() {
            estimate.samples = estimate.hits.ceil() as u64;
        }
        Some(estimate.into())
    }

    fn report(&self) -> HeapReport {
        let shown = VisibleTree::new(self.table(), &self.request.filter, &[&self.values]);
        let groups = Groups::new(self.table(), self.request.by);
        let left = shown.totals(&self.values);
        let whole: Vec<i64> = self
            .values
            .columns
            .iter()
            .map(|column| sum(column))
            .collect();
        let is_difference = self.dump.facts.kind == DumpKind::Difference;
        let total = match is_difference {
            true => (self.values.columns[self.at].iter())
                .fold(0i64, |sum, v| sum.saturating_add(v.saturating_abs())),
            false => whole[self.at],
        };
        let share = |value: i64| (total != 0).then(|| value as f64 / total as f64);
        let (rows, tree) = match self.request.tree {
            Some(tree) => (
                None,
                Some(self.tree(
                    &shown,
                    &groups,
                    if is_difference { total } else { left[self.at] },
                    tree,
                    share,
                )),
            ),
            None if self.request.by == RowKey::Thread => (Some(self.threads(&shown, share)), None),
            None => {
                let table = Table::new(&shown, &groups, &self.values);
                (Some(self.rows(&shown, &groups, &table, share)), None)
            }
        };
        let (rows, counts) = rows.unzip();
        let measure = &self.dump.measures[self.at];
        HeapReport {
            dump: DumpFacts::new(self.file, self.dump),
            view: self.names[self.at].clone(),
            unit: match &measure.unit {
                Unit::Bytes => "bytes".to_owned(),
                Unit::Count => "count".to_owned(),
                Unit::Other(unit) => unit.clone(),
            },
            total: self.figures(&whole),
            whole: total,
            total_limits: self.limits(&whole),
            shown: self.figures(&left),
            before_leaving: before_leaving(&self.dump.facts, &self.file.listed),
            hides_frames: shown.took_out(),
            rows,
            rows_total: counts.map(|counts: RowCounts| counts.total),
            rows_with_self: counts.map(|counts| counts.with_self),
            rows_with_value: counts.map_or(0, |counts| counts.with_value),
            tree,
        }
    }

    /// Returns a row for each thread with matching stacks, up to the limit.
    fn threads(
        &self,
        shown: &VisibleTree<'_>,
        share: impl Fn(i64) -> Option<f64>,
    ) -> (Vec<TopRow>, RowCounts) {
        let sums = self.dump.threads.iter().map(|thread| {
            let mut sums = vec![0i64; thread.values.columns.len()];
            for (row, node) in thread.values.nodes.iter().enumerate() {
                if shown.target(*node).is_none() {
                    continue;
                }
                for (sum, column) in sums.iter_mut().zip(&thread.values.columns) {
                    *sum = sum.saturating_add(column.get(row).copied().unwrap_or(0));
                }
            }
            (self.thread_name(&thread.name), sums)
        });
        let mut all: Vec<(String, Vec<i64>)> = sums
            .filter(|(_, sums)| sums.iter().any(|sum| *sum != 0))
            .collect();
        let figure = |sums: &[i64]| sums.get(self.at).copied().unwrap_or(0);
        let with_value = all.iter().filter(|(_, sums)| figure(sums) != 0).count();
        let counts = RowCounts {
            total: all.len(),
            with_self: with_value,
            with_value,
        };
        match self.request.order {
            Order::Own | Order::Cumulative => all.sort_by(|(name, a), (other, b)| {
                figure(b).cmp(&figure(a)).then_with(|| name.cmp(other))
            }),
            Order::Name => all.sort_by(|(name, _), (other, _)| name.cmp(other)),
        }
        if self.request.owners_only {
            all.retain(|(_, sums)| figure(sums) != 0);
        }
        all.truncate(self.request.limit);
        let rows = all.into_iter().map(|(name, sums)| {
            let figures = self.figures(&sums);
            let share = share(figure(&sums));
            TopRow {
                at: Located {
                    name,
                    library: None,
                    file: None,
                    line: None,
                },
                own: figures.clone(),
                self_limits: None,
                cumulative: figures,
                cumulative_limits: None,
                self_share: share,
                cumulative_share: share,
                stack: None,
            }
        });
        (rows.collect(), counts)
    }

    /// Returns the display name of a thread. The runtime reports the lower 16 bits of thread IDs,
    /// and the main thread has the ID of the process.
    fn thread_name(&self, name: &str) -> String {
        let facts = &self.dump.facts;
        let is_tracked = facts.heap == TRACKED_HEAP && facts.pid != 0;
        match is_tracked && *name == (facts.pid & 0xffff).to_string() {
            true => format!("{name} (main)"),
            false => name.to_owned(),
        }
    }

    fn rows(
        &self,
        shown: &VisibleTree<'_>,
        groups: &Groups<'_>,
        table: &Table,
        share: impl Fn(i64) -> Option<f64>,
    ) -> (Vec<TopRow>, RowCounts) {
        let at = self.at;
        let namer = Namer::new(self.table(), shown, groups, self.request.frames);
        let limit = self.request.limit;
        let has_value = |row: Row<'_>| match self.request.order {
            Order::Own => row.own[at] != 0,
            Order::Cumulative | Order::Name => row.cumulative[at] != 0,
        };
        // Of a difference, the largest changes come first, as in pprof.
        let size = |figures: &[i64]| match self.dump.facts.kind {
            DumpKind::Difference => figures[at].saturating_abs(),
            _ => figures[at],
        };
        let is_wanted = |row: usize| !self.request.owners_only || has_value(table.row(row));
        let counts = RowCounts {
            total: table.len(),
            with_self: table.rows().filter(|row| row.own[at] != 0).count(),
            with_value: table.rows().filter(|row| has_value(*row)).count(),
        };
        let ranked = match self.request.order {
            Order::Own => table.ranked(limit, |row| (size(row.own), size(row.cumulative))),
            Order::Cumulative => table.ranked(limit, |row| (size(row.cumulative), size(row.own))),
            Order::Name => {
                let name = |row: usize| namer.name(table.row(row).key);
                let mut all: Vec<usize> = (0..table.len()).filter(|row| is_wanted(*row)).collect();
                all.sort_by_cached_key(|row| (name(*row), table.row(*row).key));
                all.truncate(limit);
                all
            }
        };
        let wanted = ranked.into_iter().filter(|row| is_wanted(*row));
        let rows = wanted.map(|row| {
            let row = table.row(row);
            let (at, stack) = namer.row(row.key);
            TopRow {
                at,
                self_limits: self.limits(row.own),
                cumulative_limits: self.limits(row.cumulative),
                self_share: share(row.own[self.at]),
                cumulative_share: share(row.cumulative[self.at]),
                own: self.figures(row.own),
                cumulative: self.figures(row.cumulative),
                stack,
            }
        });
        (rows.collect(), counts)
    }

    fn tree(
        &self,
        shown: &VisibleTree<'_>,
        groups: &Groups<'_>,
        total: i64,
        asked: TreeRequest,
        share: impl Fn(i64) -> Option<f64>,
    ) -> TreeReport {
        let whole = total.unsigned_abs();
        let pruning = Pruning {
            depth: asked.depth,
            least: asked.least.unwrap_or(whole / 200),
            column: self.at,
            most: asked.most,
        };
        let (tree, left_out) = match asked.inverted {
            true => Tree::inverted(shown, groups, &self.values, &pruning),
            false => Tree::from_root(shown, groups, &self.values, &pruning),
        };
        let rest = |left_out: Option<&LeftOut>| {
            left_out.map(|rest| LeftOutRow {
                nodes: rest.count,
                cumulative: self.figures(&rest.cumulative),
            })
        };
        let namer = Namer::new(self.table(), shown, groups, 0);
        let nodes = tree.nodes.iter().enumerate().map(|(id, node)| {
            let (named, _) = namer.row(Key::Group(node.group));
            TreeNode {
                id,
                above: node.above,
                depth: node.depth,
                name: named.name,
                library: named.library,
                own: self.figures(&node.own),
                cumulative: self.figures(&node.cumulative),
                cumulative_share: share(node.cumulative[self.at]),
                folded_calls: node.folded,
                left_out: rest(node.left_out.as_ref()),
            }
        });
        TreeReport {
            inverted: asked.inverted,
            least: pruning.least,
            depth: asked.depth,
            nodes: nodes.collect(),
            left_out: rest(left_out.as_ref()),
        }
    }
}

pub mod count;
pub mod java;
#[cfg(test)]
mod tests;
pub mod threads;
