//! A column of numbers, most of which are small.

/// No number.
pub(super) const NONE: u32 = u32::MAX;

/// A number by place, [`NONE`] at first; in 16 bits if all are small enough, which is usual. At first, pages
/// without a number need no memory.
pub(super) enum Numbers {
    /// Numbers plus 1.
    Narrow(Vec<u16>),
    Wide(Vec<u32>),
}

impl Numbers {
    pub(super) fn new(places: usize) -> Numbers {
        Numbers::Narrow(vec![0; places])
    }

    #[inline]
    pub(super) fn get(&self, place: usize) -> u32 {
        match self {
            Numbers::Narrow(numbers) => u32::from(numbers[place]).wrapping_sub(1),
            Numbers::Wide(numbers) => numbers[place].wrapping_sub(1),
        }
    }

    #[inline]
    pub(super) fn set(&mut self, place: usize, number: u32) {
        match self {
            Numbers::Wide(numbers) => numbers[place] = number + 1,
            Numbers::Narrow(numbers) => match u16::try_from(number + 1) {
                Ok(narrow) => numbers[place] = narrow,
                Err(_) => self.widen(place, number),
            },
        }
    }

    #[cold]
    fn widen(&mut self, place: usize, number: u32) {
        if let Numbers::Narrow(numbers) = self {
            let mut wide: Vec<u32> = numbers.iter().map(|&number| number.into()).collect();
            wide[place] = number + 1;
            *self = Numbers::Wide(wide);
        }
    }

    /// Removes all numbers, for that many places.
    pub(super) fn clear(&mut self, places: usize) {
        match self {
            Numbers::Narrow(numbers) if numbers.len() == places => numbers.fill(0),
            _ => *self = Numbers::new(places),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_beyond_16_bits_keep_those_before() {
        let mut column = Numbers::new(3);
        let all = |column: &Numbers| [0, 1, 2].map(|place| column.get(place));
        column.set(0, 65_534);
        assert!(matches!(column, Numbers::Narrow(_)));
        column.set(2, 65_535);
        assert_eq!(all(&column), [65_534, NONE, 65_535]);
        column.set(1, 7);
        assert_eq!(all(&column), [65_534, 7, 65_535]);
        column.clear(3);
        column.set(1, 7);
        assert_eq!(all(&column), [NONE, 7, NONE]);
    }
}
