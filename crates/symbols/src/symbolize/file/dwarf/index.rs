//! Assignment of addresses to units: from `.debug_aranges`, and for units that it does not list
//! from the ranges of their root entries. If units overlap, the choice is that of llvm-symbolizer:
//! a unit that has begun continues, and of several that begin, the first in the section counts.

use super::error::DwarfError;
use super::units::{File, Roots};
use super::work::Share;
use gimli::{DebugAranges, LittleEndian};
use std::collections::{BTreeMap, BTreeSet};

/// Piece of code with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub low: u64,
    pub high: u64,
    /// Start of the unit.
    pub unit: usize,
}

/// Returns the pieces of code of all units, sorted and without overlaps.
pub(super) fn pieces(
    file: &File<'_>,
    aranges: &[u8],
    work: &Share<'_>,
    mut damaged: impl FnMut(&'static str, DwarfError),
) -> Vec<Piece> {
    let Listed { units, mut pieces } = Listed::read(aranges).unwrap_or_else(|error| {
        damaged(".debug_aranges", error);
        // A part of it might be correct, but the root entries are reliable.
        Listed::default()
    });
    let mut known = Roots::new();
    for unit in file.units.with_code().filter(|unit| !units.contains(unit)) {
        match unlisted(file, unit, &mut known, work, &mut pieces) {
            Ok(()) => {}
            Err(error @ DwarfError::TooMuchWork) => {
                damaged(".debug_info", error);
                break;
            }
            Err(error) => damaged(".debug_info", error),
        }
    }
    disjoint(pieces)
}

/// Adds the pieces of code of a unit, from its root entry.
pub(super) fn unlisted(
    file: &File<'_>,
    unit: usize,
    known: &mut Roots,
    work: &Share<'_>,
    pieces: &mut Vec<Piece>,
) -> Result<(), DwarfError> {
    let root = file.root_with(unit, known, work)?;
    root.own_ranges(&file.parts, work, |low, high| {
        // Each piece is stored and takes more memory than its bytes in the file.
        work.take(48)?;
        pieces.push(Piece { low, high, unit });
        Ok(())
    })
}

/// Contents of `.debug_aranges`.
#[derive(Debug, Clone, Default)]
pub(super) struct Listed {
    pub units: BTreeSet<usize>,
    pub pieces: Vec<Piece>,
}

impl Listed {
    pub fn read(aranges: &[u8]) -> Result<Listed, DwarfError> {
        let mut listed = Listed::default();
        let mut headers = DebugAranges::new(aranges, LittleEndian).headers();
        while let Some(header) = headers.next()? {
            let unit = header.debug_info_offset().0;
            listed.units.insert(unit);
            let mut entries = header.entries();
            while let Some(entry) = entries.next_raw()? {
                let low = entry.address();
                let Some(high) = low.checked_add(entry.length()) else {
                    continue;
                };
                if low < high {
                    listed.pieces.push(Piece { low, high, unit });
                }
            }
        }
        Ok(listed)
    }
}

/// Splits pieces so that they do not overlap.
pub(super) fn disjoint(mut pieces: Vec<Piece>) -> Vec<Piece> {
    pieces.sort_by_key(|piece| piece.low);
    if pieces.is_sorted_by(|one, next| one.high <= next.low) {
        return pieces;
    }
    // Start and end of each piece; ends come first, in the order of addresses and units.
    let mut ends: Vec<(u64, usize, bool)> = Vec::with_capacity(2 * pieces.len());
    for piece in &pieces {
        ends.push((piece.low, piece.unit, true));
        ends.push((piece.high, piece.unit, false));
    }
    ends.sort_unstable();
    let mut cut: Vec<Piece> = Vec::new();
    // Units that cover the current address, with the number of their pieces.
    let mut covering: BTreeMap<usize, u32> = BTreeMap::new();
    let mut before = 0;
    for (address, unit, starts) in ends {
        if before < address
            && let Some((first, _)) = covering.first_key_value()
        {
            match cut.last_mut() {
                Some(last) if last.high == before && covering.contains_key(&last.unit) => {
                    last.high = address;
                }
                _ => cut.push(Piece {
                    low: before,
                    high: address,
                    unit: *first,
                }),
            }
        }
        let count = covering.entry(unit).or_insert(0);
        if starts {
            *count += 1;
        } else {
            *count = count.saturating_sub(1);
        }
        if *count == 0 {
            covering.remove(&unit);
        }
        before = address;
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(low: u64, high: u64, unit: usize) -> Piece {
        Piece { low, high, unit }
    }

    #[test]
    fn of_overlapping_units_the_one_that_began_goes_on() {
        let apart = vec![piece(0x20, 0x30, 1), piece(0x10, 0x20, 2)];
        let sorted = [piece(0x10, 0x20, 2), piece(0x20, 0x30, 1)];
        assert_eq!(disjoint(apart), sorted);
        let over = vec![
            piece(0x10, 0x30, 2),
            piece(0x20, 0x40, 1),
            piece(0x20, 0x25, 3),
            piece(0x60, 0x70, 9),
            piece(0x60, 0x70, 8),
        ];
        let cut = [
            piece(0x10, 0x30, 2),
            piece(0x30, 0x40, 1),
            piece(0x60, 0x70, 8),
        ];
        assert_eq!(disjoint(over), cut);
    }
}
