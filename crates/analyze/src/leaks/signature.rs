//! Statuses along a path, which references are suspected, and the signature by which leaks of
//! one cause are told to be one.

use std::borrow::Cow;

use super::steps::Reference;
use super::verdict::Status;
use sha1::{Digest as _, Sha1};

/// What the statuses of a path's objects come to. The last one leaks. Whatever is before the
/// last that is in use is in use as well, as it is what keeps it; whatever is behind the first
/// that leaks beyond it leaks, as it would be gone with it.
///
/// Returns for each object its status and, where it was changed, because of which object.
pub(super) fn settle(own: &[Status]) -> Vec<(Status, Option<usize>)> {
    let Some((_, before_last)) = own.split_last() else {
        return Vec::new();
    };
    let last_in_use = before_last
        .iter()
        .rposition(|&status| status == Status::NotLeaking);
    let after = last_in_use.map_or(0, |at| at + 1);
    let first_leaking = own[after..]
        .iter()
        .position(|&status| status == Status::Leaking)
        .map_or(own.len() - 1, |at| after + at);
    own.iter()
        .enumerate()
        .map(|(at, &status)| match last_in_use {
            Some(last) if at < last => {
                let because = (status != Status::NotLeaking).then_some(last);
                (Status::NotLeaking, because)
            }
            Some(last) if at == last => (Status::NotLeaking, None),
            _ if at >= first_leaking => {
                let because = (status != Status::Leaking).then_some(first_leaking);
                (Status::Leaking, because.filter(|&b| b != at))
            }
            _ => (Status::Unknown, None),
        })
        .collect()
}

/// Whether the reference from each object of a path is suspected: it leads out of what is in
/// use, and not yet from what leaks.
pub(super) fn suspects(settled: &[(Status, Option<usize>)]) -> Vec<bool> {
    settled
        .iter()
        .enumerate()
        .map(|(at, &(status, _))| match (status, settled.get(at + 1)) {
            (_, None) | (Status::Leaking, _) => false,
            (Status::Unknown, _) => true,
            (Status::NotLeaking, Some(&(next, _))) => next != Status::NotLeaking,
        })
        .collect()
}

/// SHA-1 in lower-case hex of the suspected references, each the name of its class followed by
/// its own. One that repeats the one before it (the next link of a list) counts once.
pub(super) fn of_references<'a>(
    suspected: impl Iterator<Item = (Cow<'a, str>, &'a Reference)>,
) -> String {
    let mut hash = Sha1::new();
    let mut before = None;
    for (class, reference) in suspected {
        let now = (class, reference.generic());
        if before.as_ref() == Some(&now) {
            continue;
        }
        hash.update(now.0.as_bytes());
        hash.update(now.1);
        before = Some(now);
    }
    hex(&hash.finalize())
}

/// The signature of a leak of the platform: of its pattern alone.
pub(super) fn of_pattern(name: &str) -> String {
    hex(&Sha1::digest(name))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use Status::{Leaking as L, NotLeaking as N, Unknown as U};

    fn statuses(own: &[Status]) -> Vec<Status> {
        settle(own).iter().map(|s| s.0).collect()
    }

    #[test]
    fn what_is_in_use_clears_all_before_it_and_what_leaks_taints_all_behind_it() {
        for (own, settled) in [
            (vec![U, N, U, U, L], vec![N, N, U, U, L]),
            (vec![U, U, L, U, L], vec![U, U, L, L, L]),
            // Who is in use wins: a leaking object before it is not to blame.
            (vec![L, U, N, U, L], vec![N, N, N, U, L]),
            (vec![N, L, N, L], vec![N, N, N, L]),
            (vec![L], vec![L]),
            (vec![U, U], vec![U, L]),
            // The last one leaks, whatever its own status was.
            (vec![N, N], vec![N, L]),
        ] {
            assert_eq!(statuses(&own), settled, "{own:?}");
        }
        assert!(settle(&[]).is_empty());
    }

    #[test]
    fn suspects_lead_from_the_last_in_use_to_the_first_that_leaks() {
        let of = |own: &[Status]| suspects(&settle(own));
        assert_eq!(of(&[N, U, L]), [true, true, false]);
        assert_eq!(of(&[N, N, L]), [false, true, false]);
        assert_eq!(of(&[U, L, L]), [true, false, false]);
        assert_eq!(of(&[L]), [false]);
    }

    #[test]
    fn signatures_are_of_classes_and_names_and_count_repeated_links_once() {
        let list = Reference::Static("LEAKED".to_owned());
        let at = |n: u32| Reference::Element(Some(n.to_string()));
        let one = of_references(
            [
                ("a.B".into(), &list),
                ("java.util.ArrayList".into(), &at(1)),
            ]
            .into_iter(),
        );
        let two = of_references(
            [
                ("a.B".into(), &list),
                ("java.util.ArrayList".into(), &at(7)),
            ]
            .into_iter(),
        );
        assert_eq!(one, two);
        // sha1("a.BLEAKEDjava.util.ArrayList[x]")
        assert_eq!(one, hex(&Sha1::digest("a.BLEAKEDjava.util.ArrayList[x]")));
        let next = Reference::Field("next".to_owned());
        let short = of_references([("N".into(), &next)].into_iter());
        let long = of_references(
            [
                ("N".into(), &next),
                ("N".into(), &next),
                ("N".into(), &next),
            ]
            .into_iter(),
        );
        assert_eq!(short, long);
        assert_eq!(
            of_pattern("abc"),
            "a9993e364706816aba3e25717850c26c9cd0d89d"
        );
    }
}
