//! A picture of a figure by night: a dot and its bounds for each, and the limit. It is a file, and
//! has no style: Jenkins shows neither `data:` images nor inline style.

use super::BudgetResult;

const WIDTH: f64 = 240.0;
const HEIGHT: f64 = 60.0;
/// Distance of the marks from the border.
const MARGIN: f64 = 6.0;
/// Colors that are visible on light and dark pages.
const MARK: &str = "#2f81f7";
const LIMIT: &str = "#c2410c";

/// Returns the SVG of a budget's nights; nothing if it has no judgement or no history.
pub(super) fn svg(budget: &BudgetResult) -> Option<String> {
    let judgement = budget.judgement.as_ref()?;
    let past = budget.history.iter();
    let mut nights: Vec<[f64; 3]> = past
        .map(|past| [past.lower, past.mean, past.upper])
        .collect();
    nights.push([judgement.lower, judgement.mean, judgement.upper]);
    nights.retain(|night| night.iter().all(|value| value.is_finite()));
    if nights.len() < 2 {
        return None;
    }
    let all = || nights.iter().flatten().copied().chain([judgement.limit]);
    let (low, high) = (
        all().fold(f64::MAX, f64::min),
        all().fold(f64::MIN, f64::max),
    );
    let span = if high > low { high - low } else { 1.0 };
    let y = |value: f64| HEIGHT - MARGIN - (value - low) / span * (HEIGHT - 2.0 * MARGIN);
    let step = (WIDTH - 2.0 * MARGIN) / (nights.len() - 1) as f64;
    let limit = y(judgement.limit);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         width=\"{WIDTH}\" height=\"{HEIGHT}\">\n\
         <line x1=\"0\" x2=\"{WIDTH}\" y1=\"{limit:.1}\" y2=\"{limit:.1}\" stroke=\"{LIMIT}\" \
         stroke-dasharray=\"4 3\"/>\n"
    );
    for (at, [lower, mean, upper]) in nights.into_iter().enumerate() {
        let x = MARGIN + at as f64 * step;
        let [lower, mean, upper] = [lower, mean, upper].map(y);
        svg += &format!(
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{lower:.1}\" y2=\"{upper:.1}\" \
             stroke=\"{MARK}\"/>\n<circle cx=\"{x:.1}\" cy=\"{mean:.1}\" r=\"3\" fill=\"{MARK}\"/>\n"
        );
    }
    Some(svg + "</svg>\n")
}

#[cfg(test)]
mod tests {
    use super::super::PastFigure;
    use super::super::fixture::{assert_well_formed, budget};
    use super::*;
    use crate::verdict::Verdict;

    fn past(mean: f64) -> PastFigure {
        PastFigure {
            started: "2026-11-19T01:02:03Z".to_owned(),
            device: None,
            app_version: None,
            mean,
            lower: mean,
            upper: mean,
        }
    }

    #[test]
    fn svg_has_a_dot_a_night_within_its_borders() {
        let mut budget = budget("a", Some((Verdict::Over, 12.9, 12.4, 13.4)));
        assert_eq!(svg(&budget), None);
        budget.history = vec![past(0.0), past(f64::NAN), past(12.0 * 1_048_576.0)];
        let svg = svg(&budget).expect("a picture");
        assert_well_formed(&svg, &[]);
        assert_eq!(svg.matches("<circle").count(), 3, "{svg}");
        assert!(
            svg.contains("cx=\"6.0\" cy=\"54.0\"") && svg.contains("cx=\"234.0\""),
            "{svg}"
        );
        assert!(svg.contains("y2=\"6.0\"") && !svg.contains("NaN"), "{svg}");
    }

    #[test]
    fn svg_of_equal_values_is_finite() {
        let mut budget = budget("a", Some((Verdict::Within, 12.0, 12.0, 12.0)));
        budget.history = vec![past(12.0 * 1_048_576.0)];
        assert!(!svg(&budget).expect("a picture").contains("NaN"));
    }
}
