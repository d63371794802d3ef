//! Packed frames: written one by one, and read from both ends of a stack.

#[inline]
pub fn pack(frame: u32, mut push: impl FnMut(u8)) {
    let mut rest = u64::from(frame) + 1;
    while rest >= 0x80 {
        push(rest as u8 | 0x80);
        rest >>= 7;
    }
    push(rest as u8);
}

/// Removes the first frame of a packed stack.
#[inline]
pub fn first(packed: &mut &[u8]) -> Option<u32> {
    let mut frame = 0u32;
    let mut shift = 0;
    loop {
        let (byte, rest) = packed.split_first()?;
        *packed = rest;
        frame |= u32::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Some(frame - 1);
        }
        shift += 7;
    }
}

/// Removes the first `frames` frames of a packed stack, or all.
pub fn skip(packed: &mut &[u8], frames: usize) {
    let ends = |word: &[u8; 8]| (!u64::from_le_bytes(*word) & WORD_OF_MARKS).count_ones() as usize;
    let mut left = frames;
    while let Some((word, rest)) = packed.split_first_chunk()
        && ends(word) < left
    {
        left -= ends(word);
        *packed = rest;
    }
    // The last of them is within the next eight bytes, or in a frame that continues behind a word.
    while let Some((byte, rest)) = packed.split_first()
        && left > 0
    {
        left -= usize::from(*byte < 0x80);
        *packed = rest;
    }
}

/// The bits that mark bytes that are not the last of a frame.
pub(super) const WORD_OF_MARKS: u64 = 0x8080_8080_8080_8080;

/// Removes the last frame of a packed stack. Only the last byte of each frame is below 0x80, so
/// that frames can also be read from their ends.
#[inline]
pub fn last(packed: &mut &[u8]) -> Option<u32> {
    let (last, mut rest) = packed.split_last()?;
    let mut frame = u32::from(*last);
    while let Some((byte, before)) = rest.split_last()
        && *byte >= 0x80
    {
        frame = frame << 7 | u32::from(byte & 0x7f);
        rest = before;
    }
    *packed = rest;
    Some(frame - 1)
}
