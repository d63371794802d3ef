//! Decompression of zlib data (RFC 1950, 1951) in pieces, as fast as at once. The decoders that we
//! depend on either need memory for the whole result, or take half as long again.
//!
//! Errors have no details: decompressing again, at once, tells them.

mod tables;

use self::tables::{END, LITERAL, SPECIAL, SUBTABLE, Table, distance, literal_or_length};
use libdeflater::Adler32;

/// Damaged data, or data that compressors do not write.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Damaged;

/// Decoder of one zlib stream. Each call takes the same input.
pub(super) struct Zlib {
    bits: Bits,
    block: Block,
    /// True in the last block.
    is_last: bool,
    code_lengths: Table<7>,
    literals: Table<11>,
    distances: Table<8>,
    /// The last output, which matches refer to, and then a piece.
    output: Box<Output>,
    /// End of the output.
    filled: usize,
    checksum: Adler32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    /// The header of the stream follows.
    Start,
    /// The header of a block follows.
    Header,
    /// So many bytes without compression follow.
    Stored(usize),
    /// Symbols follow.
    Symbols,
    /// The checksum was read.
    End,
}

/// Maximum distance to which matches refer.
const WINDOW: usize = 32 << 10;
/// Size of a piece: it stays in the processor's cache until it is read.
const PIECE: usize = 192 << 10;
/// Bytes that can be written after the limit of a piece: literals, a match, and a step of copying.
const MARGIN: usize = 2 + 258 + STEP;
const STEP: usize = 16;
/// Maximum size of the code of a distance with its extra bits.
const MAX_DISTANCE_BITS: u32 = 15 + 13;
/// Its size is a constant, so that places in it need few checks.
type Output = [u8; WINDOW + PIECE + MARGIN];
/// Order of the lengths in the header of a block.
const ORDER: [usize; 19] = [
    16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15,
];

impl Zlib {
    pub fn new() -> Zlib {
        Zlib {
            bits: Bits::default(),
            block: Block::Start,
            is_last: false,
            code_lengths: Table::new(),
            literals: Table::new(),
            distances: Table::new(),
            output: Box::new([0; WINDOW + PIECE + MARGIN]),
            filled: 0,
            checksum: Adler32::new(),
        }
    }

    /// Returns the number of input bytes that are not needed any more.
    pub fn position(&self) -> usize {
        self.bits.at.saturating_sub(size_of::<u64>())
    }

    /// Decompresses the next piece; it is empty after the end, where the checksum was correct.
    pub fn next(&mut self, input: &[u8]) -> Result<&[u8], Damaged> {
        let kept = self.filled.min(WINDOW);
        self.output.copy_within(self.filled - kept..self.filled, 0);
        self.filled = kept;
        let limit = kept + PIECE;
        while self.filled < limit {
            match self.block {
                Block::Start => self.stream_header(input)?,
                Block::Header if self.is_last => break,
                Block::Header => self.block_header(input)?,
                Block::Stored(left) => self.stored(input, left, limit)?,
                Block::Symbols => self.symbols(input, limit)?,
                Block::End => break,
            }
        }
        let piece = &self.output[kept..self.filled];
        self.checksum.update(piece);
        if self.is_last && self.block == Block::Header {
            self.bits.align(input)?;
            let expected = input[self.bits.at..].first_chunk().ok_or(Damaged)?;
            if u32::from_be_bytes(*expected) != self.checksum.sum() {
                return Err(Damaged);
            }
            self.block = Block::End;
        }
        Ok(piece)
    }

    fn stream_header(&mut self, input: &[u8]) -> Result<(), Damaged> {
        let [method, flags, ..] = input else {
            return Err(Damaged);
        };
        // Deflate with a window of at most 32 KiB, a correct check, and no dictionary.
        let check = u16::from_be_bytes([*method, *flags]);
        if method & 15 != 8 || method >> 4 > 7 || check % 31 != 0 || flags & 0x20 != 0 {
            return Err(Damaged);
        }
        self.bits.at = 2;
        self.block = Block::Header;
        Ok(())
    }

    fn block_header(&mut self, input: &[u8]) -> Result<(), Damaged> {
        self.bits.refill(input)?;
        self.is_last = self.bits.take(1) == 1;
        match self.bits.take(2) {
            0 => {
                self.bits.align(input)?;
                let header = input[self.bits.at..].first_chunk().ok_or(Damaged)?;
                let [a, b, c, d] = *header;
                let (size, check) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
                if size != !check {
                    return Err(Damaged);
                }
                self.bits.at += header.len();
                self.block = Block::Stored(size.into());
            }
            1 => {
                let mut lengths = [8; 288];
                lengths[144..256].fill(9);
                lengths[256..280].fill(7);
                self.build(&lengths, &[5; 32])?;
            }
            2 => self.dynamic_codes(input)?,
            _ => return Err(Damaged),
        }
        Ok(())
    }

    fn dynamic_codes(&mut self, input: &[u8]) -> Result<(), Damaged> {
        let bits = &mut self.bits;
        let literals = bits.take(5) as usize + 257;
        let all = literals + bits.take(5) as usize + 1;
        let count = bits.take(4) as usize + 4;
        let mut lengths = [0; 19];
        for at in &ORDER[..count] {
            bits.refill(input)?;
            lengths[*at] = bits.take(3) as u8;
        }
        let symbol = |symbol: usize| (symbol as u32) << 16;
        self.code_lengths.build(&lengths, false, symbol)?;
        let mut lengths = [0; 288 + 32];
        let mut at = 0;
        while at < all {
            bits.refill(input)?;
            let entry = self.code_lengths.at(bits.bits);
            bits.skip(entry);
            let (length, times) = match (entry >> 16) as u8 {
                16 => {
                    let last = at.checked_sub(1).ok_or(Damaged)?;
                    (lengths[last], 3 + bits.take(2))
                }
                17 => (0, 3 + bits.take(3)),
                18 => (0, 11 + bits.take(7)),
                length => (length, 1),
            };
            let end = at + times as usize;
            if end > all {
                return Err(Damaged);
            }
            lengths[at..end].fill(length);
            at = end;
        }
        self.build(&lengths[..literals], &lengths[literals..all])
    }

    fn build(&mut self, literals: &[u8], distances: &[u8]) -> Result<(), Damaged> {
        self.literals.build(literals, false, literal_or_length)?;
        self.distances.build(distances, true, distance)?;
        self.block = Block::Symbols;
        Ok(())
    }

    fn stored(&mut self, input: &[u8], left: usize, limit: usize) -> Result<(), Damaged> {
        let size = left.min(limit - self.filled);
        let from = self.bits.at;
        let bytes = input.get(from..from + size).ok_or(Damaged)?;
        self.output[self.filled..self.filled + size].copy_from_slice(bytes);
        self.bits.at += size;
        self.filled += size;
        self.block = match left - size {
            0 => Block::Header,
            left => Block::Stored(left),
        };
        Ok(())
    }

    /// Decodes symbols until the block ends or the output reaches the limit.
    fn symbols(&mut self, input: &[u8], limit: usize) -> Result<(), Damaged> {
        // Copies stay in registers.
        let (mut bits, mut filled) = (self.bits, self.filled);
        let (literals, distances) = (&self.literals, &self.distances);
        let output = &mut *self.output;
        let limit = limit.min(WINDOW + PIECE);
        bits.refill(input)?;
        let mut entry = literals.at(bits.bits);
        while filled < limit {
            // Two literals and a length are shorter than what is there after refilling.
            if entry & LITERAL != 0 {
                bits.skip(entry);
                output[filled] = (entry >> 16) as u8;
                filled += 1;
                entry = literals.at(bits.bits);
                if entry & LITERAL != 0 {
                    bits.skip(entry);
                    output[filled] = (entry >> 16) as u8;
                    filled += 1;
                    entry = literals.at(bits.bits);
                }
            }
            if entry & SUBTABLE != 0 {
                bits.skip(entry);
                entry = literals.below(entry, bits.bits);
            }
            if entry & LITERAL != 0 {
                bits.skip(entry);
                output[filled] = (entry >> 16) as u8;
                filled += 1;
                bits.refill(input)?;
                entry = literals.at(bits.bits);
                continue;
            }
            if entry & SPECIAL != 0 {
                if entry & END == 0 {
                    return Err(Damaged);
                }
                bits.skip(entry);
                self.block = Block::Header;
                break;
            }
            let length = bits.value(entry);
            if bits.count & 63 < MAX_DISTANCE_BITS {
                bits.refill(input)?;
            }
            let mut other = distances.at(bits.bits);
            if other & SPECIAL != 0 {
                if other & SUBTABLE != 0 {
                    bits.skip(other);
                    other = distances.below(other, bits.bits);
                }
                if other & SPECIAL != 0 {
                    return Err(Damaged);
                }
            }
            let from = filled.checked_sub(bits.value(other)).ok_or(Damaged)?;
            // The next symbol is looked up while the match is copied.
            bits.refill(input)?;
            entry = literals.at(bits.bits);
            copy(output, from, filled, length);
            filled += length;
        }
        (self.bits, self.filled) = (bits, filled);
        Ok(())
    }
}

/// Copies a match. Writes up to a step more than its length.
#[inline(always)]
fn copy(output: &mut Output, from: usize, to: usize, length: usize) {
    match to - from {
        STEP.. => {
            copy_step::<STEP>(output, from, to);
            for at in (STEP..length).step_by(STEP) {
                copy_step::<STEP>(output, from + at, to + at);
            }
        }
        8.. => {
            for at in (0..length).step_by(8) {
                copy_step::<8>(output, from + at, to + at);
            }
        }
        1 => {
            let byte = output[from];
            output[to..to + length].fill(byte);
        }
        _ => {
            for at in 0..length {
                output[to + at] = output[from + at];
            }
        }
    }
}

/// Copies through a register: copies of slices can become calls.
#[inline(always)]
fn copy_step<const N: usize>(output: &mut Output, from: usize, to: usize) {
    let read: Option<&[u8; N]> = output.get(from..).and_then(|rest| rest.first_chunk());
    let Some(step) = read.copied() else { return };
    let place = output.get_mut(to..).and_then(|rest| rest.first_chunk_mut());
    if let Some(place) = place {
        *place = step;
    }
}

/// Position in the input.
#[derive(Debug, Clone, Copy, Default)]
struct Bits {
    /// Bits that were read and not used yet, the next one lowest. Those beyond `count` are either 0
    /// or as in the input.
    bits: u64,
    /// Their number, modulo 64: the bits above are what is left of entries.
    count: u32,
    /// Next byte of the input; it can be a little beyond the end.
    at: usize,
}

impl Bits {
    /// Reads more bits, so that at least 56 are there.
    #[inline(always)]
    fn refill(&mut self, input: &[u8]) -> Result<(), Damaged> {
        if let Some(word) = input.get(self.at..).and_then(|rest| rest.first_chunk()) {
            self.bits |= u64::from_le_bytes(*word).wrapping_shl(self.count);
            self.at += 7 - (self.count as usize >> 3 & 7);
            self.count |= 56;
            return Ok(());
        }
        self.refill_at_end(input)
    }

    /// Reads zeros beyond the end, because a code can be shorter than what is read to decode it.
    #[cold]
    fn refill_at_end(&mut self, input: &[u8]) -> Result<(), Damaged> {
        self.count &= 63;
        while self.count < 56 {
            let byte = input.get(self.at).copied().unwrap_or(0);
            self.bits |= u64::from(byte) << self.count;
            self.at += 1;
            self.count += 8;
        }
        match self.at <= input.len() + size_of::<u64>() {
            true => Ok(()),
            false => Err(Damaged),
        }
    }

    /// Uses some bits.
    #[inline(always)]
    fn take(&mut self, count: u32) -> u32 {
        let value = self.bits & ((1 << count) - 1);
        self.skip(count);
        value as u32
    }

    /// Uses the bits of a table's entry; their number is in its lowest bits.
    #[inline(always)]
    fn skip(&mut self, entry: u32) {
        self.bits = self.bits.wrapping_shr(entry);
        self.count = self.count.wrapping_sub(entry);
    }

    /// Uses the bits of a length or a distance and returns it.
    #[inline(always)]
    fn value(&mut self, entry: u32) -> usize {
        let mask = 1u64.wrapping_shl(entry) - 1;
        let extra = (self.bits & mask) as u32 >> (entry >> 8 & 15);
        self.skip(entry);
        ((entry >> 16) + extra) as usize
    }

    /// Goes to the next byte of the input.
    fn align(&mut self, input: &[u8]) -> Result<(), Damaged> {
        let at = self.at - (self.count as usize >> 3 & 7);
        *self = Bits {
            at,
            ..Bits::default()
        };
        match at <= input.len() {
            true => Ok(()),
            false => Err(Damaged),
        }
    }
}

#[cfg(test)]
mod tests;
