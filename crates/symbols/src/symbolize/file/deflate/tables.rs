//! Tables of prefix codes: an entry for each value of the next bits, with what a symbol means and
//! the number of its bits.
//!
//! ```text
//! bit   0  number of bits of the code and of the extra bits after it
//! bit   8  number of bits of the code; of a subtable: of its index
//! bit  13  END, SUBTABLE, SPECIAL
//! bit  16  the literal; the base of a length or distance; the start of a subtable
//! bit  31  LITERAL
//! ```
//!
//! Codes that are longer than the index of the table continue in a subtable.

use super::Damaged;

pub(super) const LITERAL: u32 = 1 << 31;
/// Neither a literal nor a length or distance: one of the two below, or no symbol.
pub(super) const SPECIAL: u32 = 1 << 15;
pub(super) const SUBTABLE: u32 = 1 << 14;
/// End of a block.
pub(super) const END: u32 = 1 << 13;

const MAX_BITS: usize = 15;
/// Number of entries. A complete code has a subtable for each two long symbols at most: 144 of 16
/// entries for literals, and 16 of 128 entries for distances.
const SIZE: usize = 1 << 13;

/// Table of a code, with an index of `BITS` bits.
pub(super) struct Table<const BITS: u32>(Box<[u32; SIZE]>);

impl<const BITS: u32> Table<BITS> {
    pub fn new() -> Table<BITS> {
        Table(Box::new([SPECIAL; SIZE]))
    }

    /// Returns the entry for the next bits.
    #[inline(always)]
    pub fn at(&self, bits: u64) -> u32 {
        self.0[bits as usize & ((1 << BITS) - 1) & (SIZE - 1)]
    }

    /// Returns the entry in a subtable for the next bits, which follow those of its index.
    #[inline(always)]
    pub fn below(&self, subtable: u32, bits: u64) -> u32 {
        let mask = (1usize << (subtable >> 8 & 15)) - 1;
        let start = (subtable >> 16) as usize;
        self.0[(start + (bits as usize & mask)) & (SIZE - 1)]
    }

    /// Makes the table of a code with these lengths by symbol; `entry` returns a symbol's entry
    /// with the number of its extra bits.
    ///
    /// # Errors
    /// Returns an error if bits have no or several meanings, except that a code can be a single
    /// bit, or empty, if `can_be_short` is true.
    pub fn build(
        &mut self,
        lengths: &[u8],
        can_be_short: bool,
        entry: impl Fn(usize) -> u32,
    ) -> Result<(), Damaged> {
        let mut counts = [0u32; MAX_BITS + 1];
        for length in lengths {
            counts[usize::from(*length)] += 1;
        }
        counts[0] = 0;
        let used: u32 = counts.iter().sum();
        let longest = counts.iter().rposition(|count| *count > 0).unwrap_or(0) as u32;
        let mut next = [0u32; MAX_BITS + 1];
        let (mut code, mut space) = (0, 0);
        for length in 1..=MAX_BITS {
            code = (code + counts[length - 1]) << 1;
            next[length] = code;
            space += counts[length] << (MAX_BITS - length);
        }
        let is_short = used == 0 || (used, counts[1]) == (1, 1);
        if space != 1 << MAX_BITS && !(is_short && can_be_short) {
            return Err(Damaged);
        }
        let table = &mut self.0[..];
        if longest > BITS || is_short {
            table[..1 << BITS].fill(SPECIAL);
        }
        let below = longest.saturating_sub(BITS);
        let mut end = 1usize << BITS;
        for (symbol, length) in lengths.iter().enumerate() {
            let length = u32::from(*length);
            if length == 0 {
                continue;
            }
            let code = next[length as usize];
            next[length as usize] += 1;
            let code = (code.reverse_bits() >> (32 - length)) as usize;
            let entry = entry(symbol);
            if length <= BITS {
                let entry = entry + (length << 8 | length);
                let places = table[..1 << BITS][code..].iter_mut();
                places.step_by(1 << length).for_each(|place| *place = entry);
                continue;
            }
            let prefix = code & ((1 << BITS) - 1);
            if table[prefix] & SUBTABLE == 0 {
                if end + (1 << below) > SIZE {
                    return Err(Damaged);
                }
                table[prefix] = SPECIAL | SUBTABLE | (end as u32) << 16 | below << 8 | BITS;
                end += 1 << below;
            }
            let start = (table[prefix] >> 16) as usize;
            let length = length - BITS;
            let entry = entry + (length << 8 | length);
            let places = table[start..start + (1 << below)][code >> BITS..].iter_mut();
            places.step_by(1 << length).for_each(|place| *place = entry);
        }
        Ok(())
    }
}

/// Returns the entry of a literal, the end of a block, or a length (RFC 1951, 3.2.5).
pub(super) fn literal_or_length(symbol: usize) -> u32 {
    const BASES: [u16; 29] = [
        3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115,
        131, 163, 195, 227, 258,
    ];
    match symbol {
        0..256 => LITERAL | (symbol as u32) << 16,
        256 => SPECIAL | END,
        257..286 => {
            let at = symbol - 257;
            let extra = match at {
                0..8 | 28 => 0,
                _ => at as u32 / 4 - 1,
            };
            u32::from(BASES[at]) << 16 | extra
        }
        _ => SPECIAL,
    }
}

/// Returns the entry of a distance.
pub(super) fn distance(symbol: usize) -> u32 {
    match symbol {
        0..4 => (symbol as u32 + 1) << 16,
        4..30 => {
            let extra = symbol as u32 / 2 - 1;
            let base = ((2 + (symbol as u32 & 1)) << extra) + 1;
            base << 16 | extra
        }
        _ => SPECIAL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bases_of_distances_are_those_of_the_standard() {
        let base = |symbol| distance(symbol) >> 16;
        let extra = |symbol| distance(symbol) & 0xff;
        let some = [0, 3, 4, 5, 6, 7, 28, 29].map(|symbol| (base(symbol), extra(symbol)));
        let expected = [
            (1, 0),
            (4, 0),
            (5, 1),
            (7, 1),
            (9, 2),
            (13, 2),
            (16385, 13),
            (24577, 13),
        ];
        assert_eq!(some, expected);
    }

    #[test]
    fn codes_with_gaps_or_overlaps_are_refused() {
        let mut table = Table::<8>::new();
        let mut build = |lengths: &[u8], short| table.build(lengths, short, distance);
        assert_eq!(build(&[1, 2, 2], false), Ok(()));
        assert_eq!(build(&[1, 1, 1], true), Err(Damaged));
        assert_eq!(build(&[1, 2, 3], true), Err(Damaged));
        for short in [&[1, 0][..], &[0, 0]] {
            assert_eq!(build(short, false), Err(Damaged));
            assert_eq!(build(short, true), Ok(()));
        }
    }
}
