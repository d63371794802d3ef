//! Weight of each stack.

use heaptap_model::stacks::{Dump, Measure, NodeId, StackProfile, Unit};
use std::collections::HashMap;

/// Weights. The weight of a callsite is the sum of those of its stacks.
pub(super) struct Weights {
    /// Largest share of any total of unreleased or allocated bytes on the page, by stack.
    of: Vec<f32>,
    /// Whether any dump has a value of it, by stack.
    holds: Vec<bool>,
}

impl Weights {
    /// Weighs `stacks` stacks. `stack_of`: the stack of each callsite; `None` if callsites are stacks.
    pub(super) fn new(
        profile: &StackProfile,
        stacks: usize,
        stack_of: Option<&[NodeId]>,
    ) -> Weights {
        let stack_of = |callsite: &NodeId| {
            let stack = stack_of.map_or(*callsite, |of| of[callsite.0 as usize]);
            stack.0 as usize
        };
        let mut weights = Weights {
            of: vec![0.0; stacks],
            holds: vec![false; stacks],
        };
        let mut largest: HashMap<&str, f64> = HashMap::new();
        for dump in &profile.dumps {
            for column in &dump.values.columns {
                for (callsite, value) in dump.values.nodes.iter().zip(column) {
                    weights.holds[stack_of(callsite)] |= *value != 0;
                }
            }
            for (name, column) in columns_of_bytes(dump) {
                let total = column.iter().map(|value| value.unsigned_abs() as f64).sum();
                let largest = largest.entry(name).or_insert(0.0);
                *largest = f64::max(*largest, total);
            }
        }
        for dump in &profile.dumps {
            for (name, column) in columns_of_bytes(dump) {
                let share = 1.0 / largest[name].max(1.0);
                for (callsite, value) in dump.values.nodes.iter().zip(column) {
                    let weight = &mut weights.of[stack_of(callsite)];
                    *weight = weight.max((value.unsigned_abs() as f64 * share) as f32);
                }
            }
        }
        weights
    }

    pub(super) fn get(&self, stack: u32) -> f32 {
        self.of[stack as usize]
    }

    /// Returns whether a stack has values.
    pub(super) fn holds(&self, stack: u32) -> bool {
        self.holds[stack as usize]
    }

    /// Returns the stacks with values.
    pub(super) fn held(&self) -> impl Iterator<Item = u32> + '_ {
        let all = (0..).zip(&self.holds);
        all.filter_map(|(stack, holds)| holds.then_some(stack))
    }
}

/// Returns the byte columns of a dump by name; if it has none, the column shown first.
fn columns_of_bytes(dump: &Dump) -> impl Iterator<Item = (&str, &Vec<i64>)> {
    let is_bytes = |measure: &Measure| measure.unit == Unit::Bytes;
    let has_bytes = dump.measures.iter().any(is_bytes);
    let measures = dump.measures.iter().zip(&dump.values.columns).enumerate();
    let wanted = measures.filter(move |(at, (measure, _))| match has_bytes {
        true => is_bytes(measure),
        false => *at == dump.default_measure,
    });
    wanted.map(|(_, (measure, column))| (measure.name.as_str(), column))
}
