//! Explanations of verdicts, with the next step.

use super::series::Heap;
use heaptap_analyze::native::growth::Site;
use heaptap_analyze::sampling::plan::Decider;
use heaptap_analyze::sampling::verdict::{InconclusiveReason, Verdict};
use heaptap_base::units::{ByteSize, thousands};

/// Returns the sentence for a site. `iterations`: from the first to the last dump; more than one can
/// lie between two dumps.
pub(super) fn sentence(
    site: &Site,
    heap: &Heap<'_>,
    decider: Decider,
    iterations: u64,
    tolerance: u64,
) -> String {
    let rounds = heap.dumps.len() - 1;
    let rate = site.rate.shown();
    let grown = site.grown.shown();
    let decides = decides(decider);
    match site.verdict {
        Verdict::Grows { below_tolerance } => {
            let always = match site.in_every_iteration {
                true => "It grows from each dump to the next. ",
                false => "",
            };
            let what = match below_tolerance {
                true => format!(
                    "Its growth is within the tolerance of {} per iteration: accept it, or find \
                     what keeps the memory.",
                    ByteSize(tolerance)
                ),
                false => "Find what keeps it, and release it.".to_owned(),
            };
            format!("{always}{what}")
        }
        Verdict::WithinNoise => {
            "Its unreleased memory does not change beyond the sampling error.".to_owned()
        }
        // Callsites are tested together, so an interval above 0 is not enough.
        Verdict::CantTell(InconclusiveReason::TooFewSamples) if site.rate.low > 0.0 => format!(
            "Among the callsites tested together, chance could explain the change of {rate:+} per \
             iteration; {decides}."
        ),
        Verdict::CantTell(InconclusiveReason::TooFewSamples) => {
            format!("The change of {rate:+} per iteration is within the sampling error; {decides}.")
        }
        Verdict::CantTell(InconclusiveReason::OneStep) => {
            let when = match site.step {
                Some(step) => {
                    let name = |at: usize| heap.dumps.get(at).map_or("", |dump| &dump.brief);
                    let step = step as usize;
                    format!("between {} and {}", name(step), name(step + 1))
                }
                None => "in only one half of the iterations".to_owned(),
            };
            let early = site.step.is_some_and(|step| (step as usize) < rounds / 2);
            let warmup = match early {
                true => "If that was warm-up, exclude it with `--warmup`; otherwise",
                false => "Whether it happens again is unknown:",
            };
            format!(
                "It grew by {grown} {when}. A cache might have filled, or the work is done only \
                 once. {warmup} {decides}."
            )
        }
        Verdict::CantTell(InconclusiveReason::Slowing) => format!(
            "It grew by {grown}, but much less in the later iterations, so it might be a cache \
             that fills up; {decides}."
        ),
        Verdict::CantTell(InconclusiveReason::Unsteady) => {
            format!("It varies between iterations and ended {grown} higher; {decides}.")
        }
        Verdict::CantTell(InconclusiveReason::TooFewRounds) => {
            let within = match iterations {
                1 => "in one iteration".to_owned(),
                n => format!("in {} iterations", thousands(n)),
            };
            format!("It grew by {grown} {within}; whether growth continues is unknown: {decides}.")
        }
        Verdict::CantTell(InconclusiveReason::Incomplete) => format!(
            "Data are missing from the recording; in what is there, it changed by {grown}. Record the \
             same number of iterations ({}) again without loss.",
            thousands(iterations)
        ),
    }
}

/// Returns the end of a sentence about the data needed for a conclusive result.
fn decides(decider: Decider) -> String {
    let rounds = decider
        .iterations
        .map(|n| format!("{} iterations in all", thousands(n)));
    let interval = decider
        .interval_bytes
        .map(|bytes| format!("an interval of {bytes} bytes (`record -i {bytes}`)"));
    match (rounds, interval) {
        (Some(rounds), Some(interval)) => format!("{rounds}, or {interval}, would decide"),
        (Some(one), None) | (None, Some(one)) => format!("{one} would decide"),
        (None, None) => "more iterations would decide".to_owned(),
    }
}
