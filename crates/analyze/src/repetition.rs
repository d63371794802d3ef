//! Ways that repeat themselves, made short: a list of 5,000 links is one reference that is
//! followed 4,999 times. Both ends of a way are kept.

use heaptap_model::units::thousands;

/// So many references make up a round at most: those of a list whose links are of several
/// classes, of lists within lists.
const LONGEST_ROUND: usize = 8;
/// Fewer repetitions read better as they are.
const FEWEST: usize = 4;
/// The most hops of a way that are handed out: the first and the last half of them.
pub const MOST_HOPS: usize = 200;

/// A part of a way, from one object to another that stands further on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// Which object it begins at, counted from the root on.
    pub from: usize,
    /// Which object it ends at; where the next hop begins.
    pub to: usize,
    /// How many references make up a round; 0 where what lies between is left out.
    pub round: usize,
}

impl Hop {
    /// How often the round is gone through.
    pub fn times(&self) -> usize {
        (self.to - self.from).checked_div(self.round).unwrap_or(0)
    }

    /// How many objects between its ends are left out, where they do not repeat.
    pub fn left_out(&self) -> u64 {
        match self.round {
            0 => (self.to - self.from - 1) as u64,
            _ => 0,
        }
    }
}

/// References that are followed several times in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeated<T> {
    /// How often.
    pub times: u64,
    /// A round of them.
    pub round: Vec<T>,
}

impl<T: ToString> Repeated<T> {
    /// As people read it: `Event.next × 4,999`.
    pub fn text(&self) -> String {
        let round: Vec<String> = self.round.iter().map(T::to_string).collect();
        repeated_text(&round, self.times)
    }
}

/// References that are followed several times in a row, as people read them.
pub fn repeated_text(round: &[String], times: u64) -> String {
    format!("{} × {}", round.join(" → "), thousands(times))
}

/// The hops of a way whose references, from the root on, are these: equal ones are alike.
pub fn hops<T: PartialEq>(references: &[T]) -> Vec<Hop> {
    let mut hops = Vec::new();
    let mut at = 0;
    while at < references.len() {
        let mut hop = Hop {
            from: at,
            to: at + 1,
            round: 1,
        };
        for round in 1..=LONGEST_ROUND {
            let rest = &references[at..];
            let again = rest.iter().zip(rest.iter().skip(round));
            let times = 1 + again.take_while(|(one, other)| one == other).count() / round;
            if times >= FEWEST && at + times * round > hop.to {
                hop.to = at + times * round;
                hop.round = round;
            }
        }
        at = hop.to;
        hops.push(hop);
    }
    let more = hops.len().saturating_sub(MOST_HOPS);
    if more > 0 {
        let middle = MOST_HOPS / 2..MOST_HOPS / 2 + more;
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
        // The shortest round of those that reach as far.
        assert_eq!(hops(&[5; 64]).len(), 1);
        assert_eq!(hops(&[5; 64])[0].round, 1);
    }

    #[test]
    fn a_way_without_repetition_keeps_both_its_ends() {
        let way: Vec<u32> = (0..10_000).collect();
        let hops = hops(&way);
        assert_eq!(hops.len(), MOST_HOPS + 1);
        assert_eq!((hops[0].from, hops[MOST_HOPS].to), (0, 10_000));
        let left_out: u64 = hops.iter().map(Hop::left_out).sum();
        let shown = hops.iter().filter(|hop| hop.round > 0).count() as u64;
        assert_eq!(shown, MOST_HOPS as u64);
        assert_eq!(left_out, 10_000 - shown - 1);
        assert!(hops.windows(2).all(|pair| pair[0].to == pair[1].from));
    }
}
