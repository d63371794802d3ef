//! Sums of the stacks of a table with a list instead of a tree. Each stack is read from the root,
//! once or twice; several threads share the rows.

use std::ops::Range;

use super::filter::{Filter, LEVELS, Verdict, Visibility};
use super::groups::Groups;
use heaptap_base::parallel;
use heaptap_model::profile::packed::{self, PackedStacks};
use heaptap_model::stacks::{FrameId, StackTable, Values};

/// Stacks of a list, and the verdicts of a filter on their frames.
#[derive(Debug)]
pub(super) struct Listed<'a> {
    list: &'a PackedStacks,
    verdicts: Vec<Verdict>,
    /// Whether stacks begin at their outermost frame.
    from_root: bool,
}

/// Own and cumulative sums by group; the columns of a group are adjacent.
pub(super) type Sums = [Vec<i64>; 2];

impl<'a> Listed<'a> {
    /// Applies a filter to the frames of a table; `None` for a table with a tree.
    pub(super) fn new(table: &'a StackTable, filter: &Filter) -> Option<Listed<'a>> {
        Some(Listed {
            list: table.list()?,
            verdicts: filter.verdicts(table),
            from_root: filter.show_from.is_empty(),
        })
    }

    fn frames(&self, stack: u32) -> impl Iterator<Item = (FrameId, Verdict)> {
        let mut packed = self.list.get(stack);
        std::iter::from_fn(move || {
            let frame = packed::first(&mut packed)?;
            Some((FrameId(frame), self.verdicts[frame as usize]))
        })
    }

    /// Passes the frames of a stack that are visible up to a limit, outermost first.
    #[inline]
    fn each_visible(&self, stack: u32, limit: Visibility, mut each: impl FnMut(FrameId)) {
        let mut started = self.from_root;
        for (frame, verdict) in self.frames(stack) {
            started |= verdict.start && verdict.level <= limit;
            if started && verdict.visibility <= limit {
                each(frame);
            }
        }
    }

    /// Appends the frames of a stack that are shown, outermost first: the least hidden ones if there
    /// are no others.
    pub(super) fn shown(&self, stack: u32, frames: &mut Vec<FrameId>) {
        let start = frames.len();
        for limit in LEVELS {
            self.each_visible(stack, limit, |frame| frames.push(frame));
            if frames.len() > start {
                return;
            }
        }
    }

    /// Returns, by stack, whether it has values that count.
    pub(super) fn passing(&self, filter: &Filter, values: &[&Values]) -> Vec<bool> {
        let mut passing = vec![false; self.list.len()];
        for node in values.iter().flat_map(|values| &values.nodes) {
            if filter.takes_all() {
                passing[node.0 as usize] = true;
                continue;
            }
            let level = self.frames(node.0).map(|(_, verdict)| verdict.level).min();
            let (mut focused, mut ignored) = (filter.focus.is_empty(), false);
            let (mut started, mut is_visible) = (self.from_root, false);
            for (_, verdict) in self.frames(node.0) {
                is_visible |= verdict.visibility != Visibility::Never;
                if Some(verdict.level) == level {
                    focused |= verdict.focus;
                    ignored |= verdict.ignore;
                    started |= verdict.start;
                }
            }
            passing[node.0 as usize] = focused && !ignored && started && is_visible;
        }
        passing
    }

    /// Returns whether frames of allocators or of the Java runtime are on any of the stacks.
    pub(super) fn takes_out(&self, values: &[&Values]) -> bool {
        let is_taken_out = |verdict: &Verdict| {
            matches!(
                verdict.visibility,
                Visibility::Runtime | Visibility::Allocator
            )
        };
        let mut stacks = values.iter().flat_map(|values| &values.nodes);
        self.verdicts.iter().any(is_taken_out)
            && stacks.any(|node| {
                self.frames(node.0)
                    .any(|(_, verdict)| is_taken_out(&verdict))
            })
    }

    /// Sums values by group, without those of the stacks for which `is_taken` is false.
    pub(super) fn sums(
        &self,
        groups: &Groups<'_>,
        values: &Values,
        is_taken: impl Fn(u32) -> bool + Sync,
    ) -> Sums {
        // Each thread has sums of its own, which take no more memory than the values.
        let threads = parallel::threads().get().min(parallel::MAX_THREADS);
        let worth = WORTH_THREADS.max(threads * groups.len() * values.columns.len());
        let parts = parallel::ranges(values.nodes.len(), worth, |rows| {
            self.part(groups, values, rows, &is_taken)
        });
        let add = |mut sums: Sums, part: Sums| {
            for (sums, part) in sums.iter_mut().zip(part) {
                for (sum, value) in sums.iter_mut().zip(part) {
                    *sum = sum.saturating_add(value);
                }
            }
            sums
        };
        parts.into_iter().reduce(add).unwrap_or_default()
    }

    fn part(
        &self,
        groups: &Groups<'_>,
        values: &Values,
        rows: Range<usize>,
        is_taken: impl Fn(u32) -> bool,
    ) -> Sums {
        let columns = values.columns.len();
        let mut own = vec![0i64; groups.len() * columns];
        let mut cumulative = own.clone();
        // The last row with the group, + 1: a group counts once on a stack, even with recursion.
        let mut last = vec![0usize; groups.len()];
        let mut on_it: Vec<usize> = Vec::new();
        for row in rows {
            let stack = values.nodes[row].0;
            if !is_taken(stack) {
                continue;
            }
            on_it.clear();
            let mut innermost = None;
            for limit in LEVELS {
                self.each_visible(stack, limit, |frame| {
                    let group = groups.group(frame).0 as usize;
                    innermost = Some(group);
                    if std::mem::replace(&mut last[group], row + 1) != row + 1 {
                        on_it.push(group);
                    }
                });
                if innermost.is_some() {
                    break;
                }
            }
            let Some(innermost) = innermost else {
                continue;
            };
            for (column, all) in values.columns.iter().enumerate() {
                let value = all[row];
                let add = |sum: &mut i64| *sum = sum.saturating_add(value);
                add(&mut own[innermost * columns + column]);
                for group in &on_it {
                    add(&mut cumulative[group * columns + column]);
                }
            }
        }
        [own, cumulative]
    }
}

/// Number of rows from which threads are started; few in tests, so that they start some.
const WORTH_THREADS: usize = if cfg!(test) { 4 } else { 1 << 14 };
