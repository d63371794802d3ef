//! Shortening of paths with repetitions: a list of 5,000 links is one reference that is followed
//! 4,999 times. Both ends of a path are kept.

use heaptap_base::units::thousands;

/// Maximum number of references in a repeated sequence, for lists whose links are of several
/// classes and lists within lists.
const MAX_ROUND_LENGTH: usize = 8;
/// Minimum number of repetitions to fold; fewer are easier to read as they are.
const MIN_COUNT: usize = 4;
/// Maximum number of hops of a path: half of them from the start, half from the end.
pub const MAX_HOPS: usize = 200;

/// Part of a path, from one object to a later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// Index of the first object, counted from the root.
    pub from: usize,
    /// Index of the last object, which is the start of the next hop.
    pub to: usize,
    /// Number of references in the repeated sequence; 0 if the objects in between are omitted.
    pub round: usize,
}

impl Hop {
    /// Returns how often the sequence repeats.
    pub fn times(&self) -> usize {
        (self.to - self.from).checked_div(self.round).unwrap_or(0)
    }

    /// Returns the number of omitted objects between the ends; 0 if they repeat.
    pub fn left_out(&self) -> u64 {
        match self.round {
            0 => (self.to - self.from - 1) as u64,
            _ => 0,
        }
    }
}

/// References that are followed several times in a row.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Repeated<T> {
    /// Number of repetitions.
    pub times: u64,
    /// References of one repetition, in order.
    #[serde(rename = "references")]
    pub round: Vec<T>,
}

impl<T: ToString> Repeated<T> {
    /// Formats as `Event.next × 4,999`.
    pub fn text(&self) -> String {
        let round: Vec<String> = self.round.iter().map(T::to_string).collect();
        format!("{} × {}", round.join(" → "), thousands(self.times))
    }

    /// Returns it with the references as text.
    pub fn named(&self) -> Repeated<String> {
        Repeated {
            times: self.times,
            round: self.round.iter().map(T::to_string).collect(),
        }
    }
}

/// Returns the hops of a path with these references in order from the root. Equal references
/// repeat.
pub fn hops<T: PartialEq>(references: &[T]) -> Vec<Hop> {
    let mut hops = Vec::new();
    let mut at = 0;
    while at < references.len() {
        let mut hop = Hop {
            from: at,
            to: at + 1,
            round: 1,
        };
        for round in 1..=MAX_ROUND_LENGTH {
            let rest = &references[at..];
            let again = rest.iter().zip(rest.iter().skip(round));
            let times = 1 + again.take_while(|(one, other)| one == other).count() / round;
            if times >= MIN_COUNT && at + times * round > hop.to {
                hop.to = at + times * round;
                hop.round = round;
            }
        }
        at = hop.to;
        hops.push(hop);
    }
    let more = hops.len().saturating_sub(MAX_HOPS);
    if more > 0 {
        let middle = MAX_HOPS / 2..MAX_HOPS / 2 + more;
        let left_out = Hop {
            from: hops[middle.start].from,
            to: hops[middle.end - 1].to,
            round: 0,
        };
        hops.splice(middle, [left_out]);
    }
    hops
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(way: &[u32]) -> Vec<(usize, usize, usize)> {
        let told = |hop: &Hop| (hop.from, hop.to, hop.times());
        hops(way).iter().map(told).collect()
    }

    #[test]
    fn a_reference_that_repeats_is_one_hop_and_a_few_stay_as_they_are() {
        assert_eq!(told(&[]), []);
        assert_eq!(told(&[7]), [(0, 1, 1)]);
        assert_eq!(told(&[7, 7, 7]), [(0, 1, 1), (1, 2, 1), (2, 3, 1)]);
        let way: Vec<u32> = [vec![1], vec![2; 4_999], vec![3]].concat();
        assert_eq!(
            told(&way),
            [(0, 1, 1), (1, 5_000, 4_999), (5_000, 5_001, 1)]
        );
    }

    #[test]
    fn references_that_take_turns_are_rounds_and_what_is_over_stands_behind_them() {
        let way: Vec<u32> = (0..9).map(|at| at % 2).collect();
        assert_eq!(told(&way), [(0, 8, 4), (8, 9, 1)]);
        assert_eq!(hops(&way)[0].round, 2);
        // The shortest of the sequences that cover as much.
        assert_eq!(hops(&[5; 64]).len(), 1);
        assert_eq!(hops(&[5; 64])[0].round, 1);
    }

    #[test]
    fn a_way_without_repetition_keeps_both_its_ends() {
        let way: Vec<u32> = (0..10_000).collect();
        let hops = hops(&way);
        assert_eq!(hops.len(), MAX_HOPS + 1);
        assert_eq!((hops[0].from, hops[MAX_HOPS].to), (0, 10_000));
        let left_out: u64 = hops.iter().map(Hop::left_out).sum();
        let shown = hops.iter().filter(|hop| hop.round > 0).count() as u64;
        assert_eq!(shown, MAX_HOPS as u64);
        assert_eq!(left_out, 10_000 - shown - 1);
        assert!(hops.windows(2).all(|pair| pair[0].to == pair[1].from));
    }
}
