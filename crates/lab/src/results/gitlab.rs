//! GitLab's metrics report, as OpenMetrics text: the mean of each budget. GitLab compares the values
//! of a merge request with those of the target branch by name and labels, so these are stable. It
//! cuts lines at a `#` and splits them by the rules of a shell.

use super::junit::number;
use super::names::{cases, identities};
use super::{ScenarioResult, Unit, ci_escape};

/// Returns the metrics report.
pub fn metrics(results: &[ScenarioResult]) -> String {
    let identities = identities(results);
    let mut text = String::new();
    for (unit, name) in [
        (Unit::Bytes, "bytes"),
        (Unit::Objects, "objects"),
        (Unit::Leaks, "leaks"),
    ] {
        let mut lines = String::new();
        for (result, identity) in std::iter::zip(results, &identities) {
            for (budget, case) in std::iter::zip(&result.budgets, cases(result)) {
                let Some(judgement) = &budget.judgement else {
                    continue;
                };
                if budget.unit != unit || !judgement.mean.is_finite() {
                    continue;
                }
                lines += &format!(
                    "heaptap_budget_{name}{{scenario=\"{}\",device_class=\"{}\",budget=\"{}\"}} {}\n",
                    label(&identity.scenario),
                    label(&identity.class),
                    label(&case),
                    match unit {
                        Unit::Bytes => number(judgement.mean.round()),
                        Unit::Objects | Unit::Leaks => number(judgement.mean),
                    }
                );
            }
        }
        if !lines.is_empty() {
            text += &format!("# TYPE heaptap_budget_{name} gauge\n");
            text += &format!("# UNIT heaptap_budget_{name} {name}\n{lines}");
        }
    }
    text + "# EOF\n"
}

fn label(text: &str) -> String {
    ci_escape::name(text)
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('#', "_")
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{self, all_states, hostile};
    use super::*;

    #[test]
    fn metrics_all_states_are_stable() {
        let mut result = all_states();
        result.budgets[0].unit = Unit::Objects;
        if let Some(judgement) = &mut result.budgets[0].judgement {
            judgement.mean = 2.5;
        }
        assert_eq!(
            metrics(&[result]),
            "# TYPE heaptap_budget_bytes gauge\n\
             # UNIT heaptap_budget_bytes bytes\n\
             heaptap_budget_bytes{scenario=\"login\",device_class=\"low-ram\",budget=\"libapp\"} \
             13526630\n\
             heaptap_budget_bytes{scenario=\"login\",device_class=\"low-ram\",budget=\"gfx\"} \
             12687770\n\
             # TYPE heaptap_budget_objects gauge\n\
             # UNIT heaptap_budget_objects objects\n\
             heaptap_budget_objects{scenario=\"login\",device_class=\"low-ram\",budget=\"cache\"} \
             2.5\n\
             # EOF\n"
        );
    }

    #[test]
    fn metrics_hostile_text_is_harmless() {
        let text = metrics(&[hostile()]);
        fixture::assert_harmless(&text);
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(lines.len(), 3);
        for line in lines {
            assert!(!line.contains('#'), "{line}");
            let plain = line.replace("\\\\", "").replace("\\\"", "");
            assert_eq!(plain.matches('"').count(), 6, "{line}");
        }
    }
}
