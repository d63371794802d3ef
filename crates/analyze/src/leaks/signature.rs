//! Statuses along a path, suspected references, and the signature that identifies leaks with the
//! same cause.

use std::borrow::Cow;

use super::steps::Reference;
use super::verdict::Status;
use heaptap_base::units::hex;
use sha1::{Digest as _, Sha1};

/// Settles the statuses of the objects on a path. The last object leaks. Every object before the
/// last one in use is in use too, because it keeps that one alive. Every object behind the first
/// leaking one leaks too, because it would be collected with it.
///
/// Returns the status of each object and the object that caused a change of its status.
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

/// Returns, for each object of a path, whether its reference is suspected: it does not start at a
/// leaking object, and it does not connect two objects in use.
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

/// Returns the SHA-1, in lower-case hex, of the suspected references: class name and reference name
/// each. A repetition of the reference before (the next link of a list) counts once.
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

/// Returns the signature of a leak of the platform, which depends on its pattern only.
pub(super) fn of_pattern(name: &str) -> String {
    hex(&Sha1::digest(name))
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
            // An object in use wins: a leaking object before it is not to blame.
            (vec![L, U, N, U, L], vec![N, N, N, U, L]),
            (vec![N, L, N, L], vec![N, N, N, L]),
            (vec![L], vec![L]),
            (vec![U, U], vec![U, L]),
            // The last one leaks regardless of its own status.
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
