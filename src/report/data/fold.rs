//! Too many callsites for a browser: those that hold least are summed up in their callers, so
//! that every total stays what it was.

use super::header::Folded;
use crate::stacks::{NodeId, StackProfile, StackTable, Values};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Callsites with which a page is shown in two seconds.
pub const MOST: usize = 1_000_000;

/// What sums of small callsites are called.
const OTHER: &str = "(other)";

/// Sums the smallest callsites up where there are more than `most`: each into a child of its
/// nearest caller that stays. What was done; the command in it is not yet set.
pub fn fold(profile: &mut StackProfile, most: usize) -> Option<Folded> {
    let count = profile.table.node_count();
    if count <= most {
        return None;
    }
    let weights = weights(profile);
    let mut sorted: Vec<f64> = weights.iter().copied().filter(|w| *w > 0.0).collect();
    let used = sorted.len();
    if used <= most {
        return None;
    }
    // A kept callsite may get a child for the rest: half the room is for those.
    let (_, least, _) = sorted.select_nth_unstable_by(most / 2, |a, b| b.total_cmp(a));
    let share = *least;
    let keeps = |node: usize| node == 0 || weights[node].total_cmp(&share) == Ordering::Greater;
    let kept = (1..count).filter(|&node| keeps(node)).count();
    let table = &mut profile.table;
    let frame = table.bare_frame(OTHER);
    // Parents come first: each callsite knows whether it stays, or where its numbers go.
    let mut goals = vec![NodeId::ROOT; count];
    for node in 1..count {
        let parent = table.parent(NodeId(node as u32));
        goals[node] = match keeps(node) {
            true => NodeId(node as u32),
            false => match keeps(parent.0 as usize) {
                true => table.child(parent, frame),
                false => goals[parent.0 as usize],
            },
        };
    }
    for dump in &mut profile.dumps {
        dump.values = moved(&dump.values, &goals);
        // Nobody asks for them from here on.
        dump.threads.clear();
    }
    Some(Folded {
        kept,
        of: used,
        share,
        command: String::new(),
    })
}

/// For each callsite the largest share that it and those below hold of any column of any dump.
fn weights(profile: &StackProfile) -> Vec<f64> {
    let table = &profile.table;
    let mut weights = vec![0.0f64; table.node_count()];
    let mut sums = vec![0.0f64; table.node_count()];
    for dump in &profile.dumps {
        for column in &dump.values.columns {
            sums.fill(0.0);
            for (node, value) in dump.values.nodes.iter().zip(column) {
                sums[node.0 as usize] = value.unsigned_abs() as f64;
            }
            accumulate(table, &mut sums);
            let total = sums[0];
            if total > 0.0 {
                for (weight, sum) in weights.iter_mut().zip(&sums) {
                    *weight = weight.max(sum / total);
                }
            }
        }
    }
    weights
}

fn accumulate(table: &StackTable, sums: &mut [f64]) {
    for node in (1..sums.len()).rev() {
        let parent = table.parent(NodeId(node as u32));
        sums[parent.0 as usize] += sums[node];
    }
}

fn moved(values: &Values, goals: &[NodeId]) -> Values {
    let mut rows: BTreeMap<NodeId, Vec<i64>> = BTreeMap::new();
    for (row, node) in values.nodes.iter().enumerate() {
        let sums = rows
            .entry(goals[node.0 as usize])
            .or_insert_with(|| vec![0; values.columns.len()]);
        for (sum, column) in sums.iter_mut().zip(&values.columns) {
            *sum = sum.saturating_add(column[row]);
        }
    }
    let columns = (0..values.columns.len()).map(|at| rows.values().map(|row| row[at]).collect());
    Values {
        columns: columns.collect(),
        nodes: rows.into_keys().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stacks::{Dump, Measure, View};

    #[test]
    fn small_callsites_are_summed_and_totals_stay() {
        let mut profile = StackProfile::default();
        let table = &mut profile.table;
        let frames: Vec<_> = (0..10)
            .map(|at| table.bare_frame(&format!("f{at}")))
            .collect();
        let main = table.child(NodeId::ROOT, frames[0]);
        let mut leaves = vec![(main, 5)];
        for (at, &frame) in frames.iter().enumerate().skip(1) {
            let above = table.child(main, frame);
            leaves.push((table.child(above, frames[0]), 1 << at));
        }
        leaves.sort_unstable();
        profile.dumps.push(Dump {
            measures: vec![Measure::of_view(View::Space)],
            values: Values {
                nodes: leaves.iter().map(|(node, _)| *node).collect(),
                columns: vec![leaves.iter().map(|(_, bytes)| *bytes).collect()],
            },
            ..Dump::default()
        });
        assert!(fold(&mut profile.clone(), 100).is_none());
        let folded = fold(&mut profile, 12).expect("there are 20");
        assert_eq!(folded.of, 20);
        assert!(folded.kept <= 6, "{folded:?}");
        let values = &profile.dumps[0].values;
        assert_eq!(values.columns[0].iter().sum::<i64>(), 5 + (1 << 10) - 2);
        assert!(values.nodes.len() <= 12);
        let names: Vec<&str> = values
            .nodes
            .iter()
            .map(|node| profile.table.name_of(*node))
            .collect();
        assert!(names.contains(&OTHER), "{names:?}");
        assert!(values.nodes.is_sorted());
        let largest = table_leaf(&profile, 1 << 9);
        assert_eq!(profile.table.name_of(largest), "f0", "what is large stays");
    }

    fn table_leaf(profile: &StackProfile, value: i64) -> NodeId {
        let values = &profile.dumps[0].values;
        let at = values.columns[0].iter().position(|v| *v == value);
        values.nodes[at.expect("it is there")]
    }
}
