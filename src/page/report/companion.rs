//! Companion data of each input. The clocks of two recordings are unrelated, so each keeps its own
//! timeline.

use super::open::Opened;
use heaptap_report::data::header::Recorded;
use heaptap_report::data::reconcile::Reconciled;

/// Memory over time of each input that has some, with the places of its dumps in the page.
pub(super) fn timelines(opened: &mut [Opened]) -> Vec<Recorded> {
    let names = names(opened);
    let mut recorded = Vec::new();
    let mut from = 0;
    for (one, name) in opened.iter_mut().zip(names) {
        let to = from + one.dumps();
        if let Some(timeline) = one.timeline.take() {
            recorded.push(Recorded {
                name,
                from,
                to,
                timeline,
            });
        }
        from = to;
    }
    recorded
}

/// Returns reconciled values, the last input first, and the number of omitted ones.
pub(super) fn reconciled(opened: &mut [Opened]) -> (Vec<Reconciled>, usize) {
    let names = names(opened);
    let several = opened.len() > 1;
    let mut all = Vec::new();
    let mut left_out = 0;
    for (one, name) in opened.iter_mut().zip(names).rev() {
        let (moments, more) = Reconciled::of_all(&std::mem::take(&mut one.reconciled));
        left_out += more;
        all.extend(moments.into_iter().map(|mut moment| {
            if several {
                moment.at = format!("{name}@{}", moment.at);
            }
            moment
        }));
    }
    (all, left_out)
}

/// Returns unique names of inputs: directories in several places can have the same name.
fn names(opened: &[Opened]) -> Vec<String> {
    let same = |name: &str| opened.iter().filter(|one| one.name == name).count();
    let named = opened
        .iter()
        .enumerate()
        .map(|(at, one)| match same(&one.name) {
            1 => one.name.clone(),
            _ => format!("{} ({})", one.name, at + 1),
        });
    named.collect()
}
