//! Names that identify results in CI systems from one build to the next.

use std::collections::HashSet;

use super::ci_escape::name;
use super::{ScenarioResult, device_id};

/// Name of the case about the runs.
pub(super) const RUN_CASE: &str = "run";

/// Stable and unique identity of a result.
pub(super) struct Identity {
    pub scenario: String,
    /// Device class without dots. Several devices of a class have their IDs appended, which do not
    /// depend on the order in which adb lists them.
    pub class: String,
}

/// Returns the identity of each result. Readers take the text before the last dot as a package,
/// and keep only one of several cases with equal names.
pub(super) fn identities(results: &[ScenarioResult]) -> Vec<Identity> {
    let pair = |result: &ScenarioResult| {
        let class = name(&result.device_class).replace('.', "_");
        (name(&result.scenario), class)
    };
    let pairs: Vec<_> = results.iter().map(pair).collect();
    let full = results.iter().zip(&pairs).map(|(result, own)| {
        let (scenario, class) = own;
        if pairs.iter().filter(|other| *other == own).count() == 1 {
            return format!("{scenario}.{class}");
        }
        // A device that stands in for another one takes its place.
        let device = &result.device;
        let id = device_id(device.instead_of.as_ref().unwrap_or(&device.serial));
        format!("{scenario}.{class}-{id}")
    });
    let unique = unique(full.collect());
    std::iter::zip(pairs, unique)
        .map(|((scenario, _), full)| {
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
    fn devices_of_a_class_keep_their_names_in_any_order() {
        let on = |serial: &str, instead_of: Option<&str>| {
            let mut result = crate::results::fixture::all_states();
            result.device.serial = serial.to_owned();
            result.device.instead_of = instead_of.map(str::to_owned);
            result
        };
        let classes = |results: &[ScenarioResult]| -> Vec<String> {
            let identities = identities(results).into_iter();
            identities.map(|identity| identity.class).collect()
        };
        let [a, b] = ["a", "b"].map(|serial| format!("low-ram-{}", device_id(serial)));
        assert_eq!(classes(&[on("a", None)]), ["low-ram"]);
        assert_eq!(classes(&[on("a", None), on("b", None)]), [&*a, &*b]);
        assert_eq!(classes(&[on("b", None), on("a", None)]), [&*b, &*a]);
        assert_eq!(classes(&[on("b", None), on("b", Some("a"))]), [&*b, &*a]);
    }

    #[test]
    fn unique_repeated_names_have_numbers() {
        let names = ["a", "a", "a-2", "a"].map(str::to_owned).to_vec();
        assert_eq!(unique(names), ["a", "a-3", "a-2", "a-4"]);
    }
}
