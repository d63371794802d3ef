//! `top` of native heaps: where the memory of each process and heap went, as a table or a tree.
//! A table for each heap of each process: their figures have different errors, and often
//! different meanings, so that sums over them would mislead.

use crate::heaps::input::facts::DumpFacts;
use crate::heaps::input::facts::Figures;
use crate::heaps::input::facts::FilterFacts;
use crate::heaps::input::facts::Limits;
use crate::heaps::input::facts::StackFrame;
use crate::heaps::input::rows::Namer;

use std::sync::Arc;

use serde::Serialize;

use crate::analyze::native::filter::Filter;
use crate::analyze::native::groups::{Groups, RowKey};
use crate::analyze::native::sampled::SampledColumn;
use crate::analyze::native::shown::{Shown, Sums};
use crate::analyze::native::table::{Key, Table};
use crate::analyze::native::tree::{LeftOut, Pruning, Tree};
use crate::error::{Classified, ErrorClass, ErrorFacts};
pub(crate) use crate::heaps::input::rows::Order;
use crate::heaps::input::{ListedDump, NativeFile};
use crate::heaps::java::facts::Warning;
use crate::stacks::{Dump, Facts, Measure, StackTable, TRACKED_HEAP, Unit, Values};

/// What is asked.
#[derive(Debug, Clone)]
pub struct TopRequest {
    /// What a row or a node stands for.
    pub by: RowKey,
    /// Which figure of the view orders rows.
    pub order: Order,
    /// The view, by its name; that of the heap where nothing was said.
    pub view: Option<String>,
    /// At most so many rows of each table; 0 is all.
    pub limit: usize,
    /// No rows without a value of the figure that orders them.
    pub owners_only: bool,
    /// Which stacks count.
    pub filter: Filter,
    /// As a tree.
    pub tree: Option<TreeRequest>,
    /// Frames of each stack, leaf first, at most; 0 is all. Of tables by callsite alone.
    pub frames: usize,
}

/// A tree that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeRequest {
    /// From the allocation method to its callers.
    pub inverted: bool,
    /// So many levels.
    pub depth: usize,
    /// Nodes of at least this; `None` for one in 200 of what is shown.
    pub least: Option<u64>,
    /// At most so many nodes.
    pub most: usize,
}

/// Why there is nothing to show.
#[derive(Debug, thiserror::Error)]
pub enum TopError {
    /// No heap has the view that was named.
    #[error("{name} has no view {view}")]
    NoSuchView {
        /// The input.
        name: String,
        /// What was named.
        view: String,
        /// What there is, in words.
        there: String,
    },
    /// No heap tells threads apart.
    #[error("{name} does not tell which thread allocated what")]
    NoThreads {
        /// The input.
        name: String,
    },
}

impl Classified for TopError {
    fn facts(&self) -> ErrorFacts {
        match self {
            TopError::NoSuchView { there, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "no-such-view")
                    .with_help(format!("it has {there}"))
            }
            TopError::NoThreads { .. } => ErrorFacts::new(ErrorClass::Usage, "no-threads").with_help(
                "heapprofd does not tell; --by callsite shows what threads begin with, and `record \
                 --java-allocations=tracking` has the threads of Java allocations",
            ),
        }
    }
}

/// Where the memory of an input went.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TopReport {
    /// `native`.
    pub kind: &'static str,
    /// What a row or a node stands for.
    pub by: &'static str,
    /// What rows are ordered by: `self`, `cumulative`, `name`.
    pub sort: &'static str,
    /// Which stacks count.
    pub filter: FilterFacts,
    /// A table for each heap of each process, the largest first.
    pub heaps: Vec<HeapReport>,
    /// What the user should know.
    pub warnings: Vec<Warning>,
}

/// One heap.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeapReport {
    /// Which dump it is.
    pub dump: DumpFacts,
    /// The view that shares and order are of.
    pub view: String,
    /// `bytes`, `count` or another tool's word.
    pub unit: String,
    /// Sums of the dump, by view.
    pub total: Figures,
    /// 95 % limits of the view's total, where it is bytes and the error is known.
    pub total_limits: Option<Limits>,
    /// Sums of what the filter leaves.
    pub shown: Figures,
    /// The last dump while the process was there, where it has left by this one and holds less
    /// than half of what it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_leaving: Option<u32>,
    /// Whether frames of allocators or of the Java runtime were taken out.
    pub hides_frames: bool,
    /// Rows, where a table was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<Vec<TopRow>>,
    /// Rows before the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_total: Option<usize>,
    /// Of them, those with a self value in this view.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_with_self: Option<usize>,
    /// Nodes, where a tree was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeReport>,
}

/// A row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TopRow {
    /// What it stands for.
    pub name: String,
    /// The library, by its file name, where it stands for a function, a line or a callsite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// Source file, where it stands for a line or a callsite and that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Of stacks that end there, by view.
    #[serde(rename = "self")]
    pub own: Figures,
    /// 95 % limits of the view's self value.
    pub self_limits: Option<Limits>,
    /// Of stacks that pass there, by view.
    pub cumulative: Figures,
    /// 95 % limits of the view's cumulative value.
    pub cumulative_limits: Option<Limits>,
    /// Self value by the view's total of the dump, 0 to 1; absent of nothing.
    pub self_share: Option<f64>,
    /// Cumulative value by the view's total of the dump.
    pub cumulative_share: Option<f64>,
    /// The stack, leaf first, where it stands for a callsite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack: Option<Vec<StackFrame>>,
}

/// A tree.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TreeReport {
    /// From the allocation method to its callers.
    pub inverted: bool,
    /// Nodes below this were left out.
    pub least: u64,
    /// Levels.
    pub depth: usize,
    /// Nodes, each after the one above it.
    pub nodes: Vec<TreeNode>,
    /// What was left out right below the root.
    pub left_out: Option<LeftOutRow>,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TreeNode {
    /// Its position.
    pub id: usize,
    /// Position of the node above it; absent right below the root.
    pub above: Option<usize>,
    /// 0 right below the root.
    pub depth: usize,
    /// What it stands for.
    pub name: String,
    /// The library, by its file name, where it stands for a function, a line or a callsite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// Of stacks that end there, by view; in an inverted tree those stand at the top.
    #[serde(rename = "self")]
    pub own: Figures,
    /// Of stacks that pass there, by view.
    pub cumulative: Figures,
    /// Cumulative value by the view's total of the dump.
    pub cumulative_share: Option<f64>,
    /// Calls folded into this node, at most on one stack.
    pub folded_calls: u32,
    /// What was left out right below it.
    pub left_out: Option<LeftOutRow>,
}

/// Nodes that were left out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LeftOutRow {
    /// How many.
    pub nodes: usize,
    /// Their cumulative values, by view.
    pub cumulative: Figures,
}

/// Looks at the dumps of a file.
///
/// # Errors
/// Where none of them has the view that was named.
pub fn top(file: &NativeFile, request: &TopRequest) -> Result<TopReport, TopError> {
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
        return Err(TopError::NoSuchView {
            name: file.path.display().to_string(),
            view: view.clone(),
            there: there.join(", "),
        });
    }
    if request.by == RowKey::Thread && dumps.iter().all(|dump| dump.threads.is_empty()) {
        return Err(TopError::NoThreads {
            name: file.path.display().to_string(),
        });
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
        warnings: (file.findings.iter().chain(&file.names_missing()))
            .map(Warning::from)
            .collect(),
    })
}

impl HeapReport {
    /// The total of the view that is shown.
    pub fn total_of_view(&self) -> i64 {
        let at = self.total.names.iter().position(|name| *name == self.view);
        at.map_or(0, |at| self.total.values[at])
    }
}

/// Position of the measure that a name means: one of the four views whatever the dump calls it,
/// or what another tool calls its own.
fn viewed(dump: &Dump, name: Option<&str>) -> Option<usize> {
    let name = name?;
    let is = |measure: &Measure| {
        measure.view.is_some_and(|view| view.name() == name) || measure.name == name
    };
    dump.measures.iter().position(is)
}

/// Number of the last dump of a heap while its process was there, where `facts` is of one after
/// that which holds less than half as much: what a process gave back as it ended says nothing.
fn before_leaving(facts: &Facts, listed: &[ListedDump]) -> Option<u32> {
    let held = |dump: &ListedDump| dump.totals.as_ref()?.space;
    let is_before =
        |other: &&ListedDump| other.facts.is_of_heap(facts) && other.facts.number < facts.number;
    let this = listed
        .iter()
        .find(|dump| dump.facts.is_dump(facts) && facts.flags.disconnected)?;
    let there = listed
        .iter()
        .filter(is_before)
        .filter(|dump| !dump.facts.flags.disconnected)
        .max_by_key(|dump| dump.facts.number)?;
    (held(this)?.saturating_mul(2) < held(there)?).then_some(there.facts.number)
}

/// One dump, looked at.
struct Looker<'a> {
    file: &'a NativeFile,
    dump: &'a Dump,
    request: &'a TopRequest,
    /// The view's column.
    at: usize,
    names: Arc<[String]>,
    /// The columns, and behind them for bytes of the view the number of samples that carry
    /// error.
    values: Values,
    /// What the error of the view's bytes follows from; its counts by row stand in `values`.
    error: Option<SampledColumn>,
}

impl<'a> Looker<'a> {
    fn new(file: &'a NativeFile, dump: &'a Dump, at: usize, request: &'a TopRequest) -> Looker<'a> {
        let mut error = SampledColumn::of(dump, at);
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
        Some(
            error
                .estimate(values[self.at], values[error.counts], small)
                .into(),
        )
    }

    fn report(&self) -> HeapReport {
        let shown = Shown::of(self.table(), &self.request.filter, &[&self.values]);
        let groups = Groups::of(self.table(), self.request.by);
        let sums = shown.sums(&self.values);
        let left: Vec<i64> = sums.cumulative.iter().map(|column| column[0]).collect();
        let whole = self.values.columns.iter();
        let whole: Vec<i64> = whole
            .map(|column| column.iter().fold(0i64, |sum, v| sum.saturating_add(*v)))
            .collect();
        let total = whole[self.at];
        let share = |value: i64| (total != 0).then(|| value as f64 / total as f64);
        let (rows, tree) = match self.request.tree {
            Some(tree) => (None, Some(self.tree(&shown, &groups, &sums, tree, share))),
            None if self.request.by == RowKey::Thread => {
                let (rows, count) = self.threads(&shown, share);
                (Some((rows, count, count)), None)
            }
            None => {
                let table = Table::of(&shown, &groups, &sums);
                let owners = table.rows().filter(|row| row.own[self.at] != 0).count();
                let rows = self.rows(&shown, &groups, &table, share);
                (Some((rows, table.len(), owners)), None)
            }
        };
        let rows_total = rows.as_ref().map(|(_, total, _)| *total);
        let rows_with_self = rows.as_ref().map(|(_, _, owners)| *owners);
        let measure = &self.dump.measures[self.at];
        HeapReport {
            dump: DumpFacts::of(self.file, self.dump),
            view: self.names[self.at].clone(),
            unit: match &measure.unit {
                Unit::Bytes => "bytes".to_owned(),
                Unit::Count => "count".to_owned(),
                Unit::Other(unit) => unit.clone(),
            },
            total: self.figures(&whole),
            total_limits: self.limits(&whole),
            shown: self.figures(&left),
            before_leaving: before_leaving(&self.dump.facts, &self.file.listed),
            hides_frames: shown.took_out(),
            rows: rows.map(|(rows, ..)| rows),
            rows_total,
            rows_with_self,
            tree,
        }
    }

    /// A row for each thread of which the filter leaves something, as many as were asked for, and
    /// how many there are.
    fn threads(
        &self,
        shown: &Shown<'_>,
        share: impl Fn(i64) -> Option<f64>,
    ) -> (Vec<TopRow>, usize) {
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
        let count = all.len();
        let figure = |sums: &[i64]| sums.get(self.at).copied().unwrap_or(0);
        match self.request.order {
            Order::Own | Order::Cumulative => all.sort_by(|(name, a), (other, b)| {
                figure(b).cmp(&figure(a)).then_with(|| name.cmp(other))
            }),
            Order::Name => all.sort_by(|(name, _), (other, _)| name.cmp(other)),
        }
        if self.request.owners_only {
            all.retain(|(_, sums)| figure(sums) != 0);
        }
        if self.request.limit > 0 {
            all.truncate(self.request.limit);
        }
        let rows = all.into_iter().map(|(name, sums)| {
            let figures = self.figures(&sums);
            let share = share(figure(&sums));
            TopRow {
                name,
                library: None,
                file: None,
                line: None,
                own: figures.clone(),
                self_limits: None,
                cumulative: figures,
                cumulative_limits: None,
                self_share: share,
                cumulative_share: share,
                stack: None,
            }
        });
        (rows.collect(), count)
    }

    /// Of a runtime's list the lower 16 bits of the thread's id: the main thread has the
    /// process's.
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
        shown: &Shown<'_>,
        groups: &Groups<'_>,
        table: &Table,
        share: impl Fn(i64) -> Option<f64>,
    ) -> Vec<TopRow> {
        let at = self.at;
        let namer = Namer::new(self.table(), shown, groups, self.request.frames);
        let limit = self.request.limit;
        let ranked = match self.request.order {
            Order::Own => table.ranked(limit, |row| (row.own[at], row.cumulative[at])),
            Order::Cumulative => table.ranked(limit, |row| (row.cumulative[at], row.own[at])),
            Order::Name => {
                let name = |row: usize| namer.name(table.row(row).key);
                let mut all: Vec<usize> = (0..table.len()).collect();
                all.sort_by_cached_key(|row| (name(*row), table.row(*row).key));
                all.truncate(if limit == 0 { all.len() } else { limit });
                all
            }
        };
        let figure = |row: &usize| match self.request.order {
            Order::Own => table.row(*row).own[at],
            Order::Cumulative | Order::Name => table.row(*row).cumulative[at],
        };
        let wanted = ranked
            .into_iter()
            .filter(|row| !self.request.owners_only || figure(row) != 0);
        let rows = wanted.map(|row| {
            let row = table.row(row);
            let named = namer.row(row.key);
            TopRow {
                name: named.name,
                library: named.library,
                file: named.file,
                line: named.line,
                self_limits: self.limits(row.own),
                cumulative_limits: self.limits(row.cumulative),
                self_share: share(row.own[at]),
                cumulative_share: share(row.cumulative[at]),
                own: self.figures(row.own),
                cumulative: self.figures(row.cumulative),
                stack: named.stack,
            }
        });
        rows.collect()
    }

    fn tree(
        &self,
        shown: &Shown<'_>,
        groups: &Groups<'_>,
        sums: &Sums,
        asked: TreeRequest,
        share: impl Fn(i64) -> Option<f64>,
    ) -> TreeReport {
        let whole = sums.cumulative[self.at][0].unsigned_abs();
        let pruning = Pruning {
            depth: asked.depth,
            least: asked.least.unwrap_or(whole / 200),
            column: self.at,
            most: asked.most,
        };
        let (tree, left_out) = match asked.inverted {
            true => Tree::inverted(shown, groups, sums, &pruning),
            false => Tree::from_root(shown, groups, sums, &pruning),
        };
        let rest = |left_out: Option<&LeftOut>| {
            left_out.map(|rest| LeftOutRow {
                nodes: rest.count,
                cumulative: self.figures(&rest.cumulative),
            })
        };
        let namer = Namer::new(self.table(), shown, groups, 0);
        let nodes = tree.nodes.iter().enumerate().map(|(id, node)| {
            let named = namer.row(Key::Group(node.group));
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
