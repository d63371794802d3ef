//! Parts of a figure that account for its excess: the largest, or those that grew since the
//! baseline.

use std::collections::BTreeMap;

use crate::results::{Excess, ci_escape};

/// Maximum number of parts of a figure in results and baselines.
pub(crate) const MAX_PARTS: usize = 10;
/// Maximum number of parts that are named for an excess.
const MAX_NAMED: usize = 5;
/// Least share of the growth of a figure: less is not worth a name.
const MIN_SHARE: f64 = 0.05;

/// Returns the mean of each part over the runs, the largest first. A part that a run does not list
/// is 0 there.
pub fn mean_parts(runs: &[&[Excess]]) -> Vec<Excess> {
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    for part in runs.iter().copied().flatten() {
        *sums.entry(&part.what).or_default() += part.value;
    }
    let mean = |(what, sum): (&str, f64)| Excess::new(what, sum / runs.len() as f64);
    let mut parts: Vec<Excess> = sums.into_iter().map(mean).collect();
    parts.sort_by(|a, b| b.value.total_cmp(&a.value));
    parts.truncate(MAX_PARTS);
    parts
}

/// Returns the parts that account for an excess, the largest first: those that grew since the
/// baseline if the figure did, by `growth`. `before` are the parts in the baseline.
pub fn account_for(parts: &[Excess], before: &[Excess], growth: f64) -> Vec<Excess> {
    // A part that a full list does not have is at most as large as the smallest one there.
    let unlisted = match before.len() >= MAX_PARTS {
        true => before
            .iter()
            .map(|part| part.value)
            .fold(f64::INFINITY, f64::min),
        false => 0.0,
    };
    let grown = |part: &Excess| {
        let name = ci_escape::name(&part.what);
        // Parts of the baseline have that name; those of the old build are as measured.
        let is_it = |one: &&Excess| one.what == name || one.what == part.what;
        let known = before.iter().find(is_it);
        let growth = part.value - known.map_or(unlisted, |one| one.value);
        Excess {
            growth: Some(growth),
            is_new: known.is_none(),
            ..part.clone()
        }
    };
    let mut named: Vec<Excess> = match before.is_empty() || growth <= 0.0 {
        true => Vec::new(),
        false => parts.iter().map(grown).collect(),
    };
    named.retain(|part| part.growth >= Some(growth * MIN_SHARE));
    named.sort_by(|a, b| {
        b.growth
            .partial_cmp(&a.growth)
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    if named.is_empty() {
        named = parts.to_vec();
    }
    named.truncate(MAX_NAMED);
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(list: &[(&str, f64)]) -> Vec<Excess> {
        list.iter()
            .map(|&(what, value)| Excess::new(what, value))
            .collect()
    }

    #[test]
    fn parts_are_means_over_the_runs() {
        let runs = [
            parts(&[("a", 9.0), ("b", 2.0)]),
            parts(&[("a", 7.0), ("c", 12.0)]),
        ];
        let runs = runs.each_ref().map(Vec::as_slice);
        assert_eq!(
            mean_parts(&runs),
            parts(&[("a", 8.0), ("c", 6.0), ("b", 1.0)])
        );
        assert!(mean_parts(&[]).is_empty());
    }

    /// Names, growths and news.
    fn grown(parts: &[Excess]) -> Vec<(&str, Option<f64>, bool)> {
        let parts = parts.iter();
        parts
            .map(|part| (part.what.as_str(), part.growth, part.is_new))
            .collect()
    }

    #[test]
    fn excess_is_what_grew_since_the_baseline() {
        let now = parts(&[
            ("large", 100.0),
            ("grown", 30.0),
            ("new", 20.0),
            ("noise", 11.0),
        ]);
        let before = parts(&[("large", 101.0), ("grown", 5.0), ("noise", 10.0)]);
        let named = account_for(&now, &before, 45.0);
        assert_eq!(
            grown(&named),
            [("grown", Some(25.0), false), ("new", Some(20.0), true)]
        );
        // Without a baseline, and without growth, the largest.
        assert_eq!(account_for(&now, &[], 45.0), now);
        assert_eq!(account_for(&now, &before, -1.0), now);
        assert_eq!(account_for(&now, &now, 45.0), now);
    }

    #[test]
    fn a_part_that_a_full_list_lacks_grew_from_its_smallest() {
        let names: Vec<String> = (0..MAX_PARTS).map(|n| format!("part{n}")).collect();
        let before: Vec<Excess> = names.iter().map(|name| Excess::new(name, 10.0)).collect();
        let named = account_for(&parts(&[("other", 15.0)]), &before, 15.0);
        assert_eq!(grown(&named), [("other", Some(5.0), true)]);
    }

    #[test]
    fn names_are_compared_as_the_baseline_has_them() {
        let long = format!("{}\n{}", "x".repeat(300), "##[y");
        let before = vec![Excess::new(&ci_escape::name(&long), 10.0)];
        let named = account_for(&parts(&[(&long, 30.0)]), &before, 20.0);
        assert_eq!(named[0].growth, Some(20.0));
    }
}
