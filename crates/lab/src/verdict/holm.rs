//! Many budgets: any of them being over fails the scenario, so each is tested harder.

use super::judgement::{Judgement, Verdict};

/// Keeps the verdicts `over` of a family of budgets that Holm's step-down test confirms; the others
/// become undecided. Chance alone then fails the family as rarely as one budget.
///
/// Pass all budgets of the scenario that were judged together, whatever their verdict.
pub fn holm<'a>(judgements: impl IntoIterator<Item = &'a mut Judgement>) {
    let mut family: Vec<_> = judgements.into_iter().collect();
    // Budgets differ in their number of looks; the smallest part of the accepted error is first.
    let share = |judgement: &Judgement| judgement.p_over / (1.0 - judgement.confidence);
    family.sort_by(|a, b| share(a).total_cmp(&share(b)));
    let budgets = family.len();
    let mut is_confirmed = true;
    for (rank, judgement) in family.into_iter().enumerate() {
        is_confirmed &= share(judgement) < 1.0 / (budgets - rank) as f64;
        if judgement.verdict == Verdict::Over && !is_confirmed {
            judgement.verdict = Verdict::Undecided;
            judgement.why = Some(format!(
                "chance explains one budget of {budgets} this far above its limit"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over(p_over: f64) -> Judgement {
        Judgement {
            verdict: Verdict::Over,
            confidence: 0.98,
            p_over,
            why: None,
            ..Judgement::unusable(3, 1.0, "")
        }
    }

    #[test]
    fn budgets_are_confirmed_from_the_smallest_p() {
        let mut family = [over(0.019), over(0.0), over(0.008), over(0.001)];
        family[0].verdict = Verdict::Within;
        holm(&mut family);
        let verdicts = family.each_ref().map(|judgement| judgement.verdict);
        assert_eq!(
            verdicts,
            [Verdict::Within, Verdict::Over, Verdict::Over, Verdict::Over]
        );
        let mut family = [over(0.011), over(0.0), over(0.0101)];
        holm(family.iter_mut());
        let verdicts = family.each_ref().map(|judgement| judgement.verdict);
        assert_eq!(
            verdicts,
            [Verdict::Undecided, Verdict::Over, Verdict::Undecided]
        );
        assert_eq!(
            family[0].why.as_deref(),
            Some("chance explains one budget of 3 this far above its limit")
        );
    }

    #[test]
    fn one_budget_keeps_its_verdict() {
        let mut family = [over(0.0199)];
        holm(&mut family);
        assert_eq!(family[0].verdict, Verdict::Over);
        holm(&mut []);
    }
}
