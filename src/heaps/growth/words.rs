//! What a verdict comes to, in a sentence that says what to do.

use super::series::Heap;
use crate::analyze::native::growth::Site;
use crate::analyze::native::scope;
use crate::analyze::sampling::plan::Decider;
use crate::analyze::sampling::verdict::{InconclusiveReason, Verdict};
use crate::units::{ByteSize, thousands};

/// Freed so little of what it allocates, a site keeps it all.
const HARDLY_FREED: f64 = 0.005;

/// The sentence for a site whose own code is in `function`.
pub(super) fn sentence(
    site: &Site,
    function: &str,
    heap: &Heap,
    decider: Decider,
    tolerance: u64,
) -> String {
    let rounds = heap.dumps.len() - 1;
    let function = scope::qualified(scope::without_annotation(function));
    let rate = site.rate.shown();
    let grown = site.grown.shown();
    let decides = decides(decider);
    match site.verdict {
        Verdict::Grows { below_tolerance } => {
            let kept = match site.freed_share() {
                Some(share) if share > HARDLY_FREED => format!(
                    "Each round leaves {rate} more of what {function} allocates, though {:.0} % \
                     of it is freed",
                    share * 100.0
                ),
                _ => format!(
                    "Each round leaves {rate} more of what {function} allocates, and none of it \
                     is freed"
                ),
            };
            let always = match site.in_every_round {
                true => format!(" (in every one of {} rounds)", thousands(rounds as u64)),
                false => String::new(),
            };
            let what = match below_tolerance {
                true => format!(
                    "That is no more than {} a round: let it be, or find what keeps it.",
                    ByteSize(tolerance)
                ),
                false => "Find what keeps it, and let go of it when a round ends.".to_owned(),
            };
            format!("{kept}{always}. {what}")
        }
        Verdict::WithinNoise => {
            "What it holds stays the same within the error of sampling.".to_owned()
        }
        Verdict::CantTell(InconclusiveReason::TooFewSamples) => {
            format!("Sampling can't tell it from no growth: {rate:+} a round; {decides}.")
        }
        Verdict::CantTell(InconclusiveReason::OneStep) => {
            let when = match site.step {
                Some(step) => {
                    let name = |at: usize| heap.dumps.get(at).map_or("", |dump| &dump.brief);
                    let step = step as usize;
                    format!("between {} and {}", name(step), name(step + 1))
                }
                None => "in one half of the rounds alone".to_owned(),
            };
            let early = site.step.is_some_and(|step| (step as usize) < rounds / 2);
            let warmup = match early {
                true => "If that was warm-up, leave it out with --warmup; else",
                false => "Whether it comes again:",
            };
            format!(
                "It grew by {grown} {when}: a cache that filled, or work that is done once. \
                 {warmup} {decides}."
            )
        }
        Verdict::CantTell(InconclusiveReason::Slowing) => format!(
            "It grew by {grown}, in the later rounds much less than before: it may be a cache \
             that fills up; {decides}."
        ),
        Verdict::CantTell(InconclusiveReason::Unsteady) => {
            format!("It goes up and down from round to round and ended {grown} higher: {decides}.")
        }
        Verdict::CantTell(InconclusiveReason::TooFewRounds) => {
            let in_rounds = match rounds {
                1 => "in one round".to_owned(),
                n => format!("in {} rounds", thousands(n as u64)),
            };
            format!("It grew by {grown} {in_rounds}; whether that goes on: {decides}.")
        }
        Verdict::CantTell(InconclusiveReason::Incomplete) => format!(
            "Data are missing from the recording; up to there it changed by {grown}: record {} \
             rounds again without loss.",
            rounds
        ),
    }
}

/// What would decide, as the end of a sentence.
fn decides(decider: Decider) -> String {
    let rounds = decider
        .iterations
        .map(|n| format!("{} rounds", thousands(n)));
    let interval = decider.interval_bytes.map(|bytes| match bytes {
        1 => "recording every allocation (-i 1)".to_owned(),
        bytes => format!("an interval of {bytes} bytes (-i {bytes})"),
    });
    match (rounds, interval) {
        (Some(rounds), Some(interval)) => format!("{rounds}, or {interval}, would decide"),
        (Some(one), None) | (None, Some(one)) => format!("{one} would decide"),
        (None, None) => "more rounds would decide".to_owned(),
    }
}
