//! Variable-length integers (LEB128): seven bits a byte, the lowest first.

/// Appends an unsigned integer.
#[inline]
pub fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
