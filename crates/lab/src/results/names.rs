//! Names that identify results in CI systems from one build to the next.

use std::collections::HashSet;

use super::ScenarioResult;
use super::defang::name;

/// Name of the case about the runs.
pub(super) const RUN_CASE: &str = "run";

/// Stable and unique identity of a result.
pub(super) struct Identity {
    pub scenario: String,
    /// Device class without dots; the second device of a class has `-2` appended.
    pub class: String,
}

/// Returns the identity of each result. Readers take the text before the last dot as a package,
/// and keep only one of several cases with equal names.
pub(super) fn identities(results: &[ScenarioResult]) -> Vec<Identity> {
    let pair = |result: &ScenarioResult| {
        let class = name(&result.device_class).replace('.', "_");
        (name(&result.scenario), class)
    };
    let full = results.iter().map(|result| {
        let (scenario, class) = pair(result);
        format!("{scenario}.{class}")
    });
    let unique = unique(full.collect());
    std::iter::zip(results, unique)
        .map(|(result, full)| {
            let (scenario, _) = pair(result);
            let class = full[scenario.len() + 1..].to_owned();
            Identity { scenario, class }
        })
        .collect()
}

/// Returns the name of each budget's case.
pub(super) fn cases(result: &ScenarioResult) -> Vec<String> {
    let budgets = result.budgets.iter().map(|budget| name(&budget.name));
    let names = std::iter::once(RUN_CASE.to_owned()).chain(budgets);
    unique(names.collect()).split_off(1)
}

/// Appends `-2`, `-3` … to names that occurred before.
fn unique(names: Vec<String>) -> Vec<String> {
    let mut taken: HashSet<String> = names.iter().cloned().collect();
    let mut seen = HashSet::new();
    names
        .into_iter()
        .map(|name| {
            if seen.insert(name.clone()) {
                return name;
            }
            (2..)
                .map(|number| format!("{name}-{number}"))
                .find(|other| taken.insert(other.clone()))
                .unwrap_or(name)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unique_repeated_names_have_numbers() {
        let names = ["a", "a", "a-2", "a"].map(str::to_owned).to_vec();
        assert_eq!(unique(names), ["a", "a-3", "a-2", "a-4"]);
    }
}
