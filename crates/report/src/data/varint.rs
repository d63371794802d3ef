//! Variable-length integers: LEB128 and zigzag, as in `viewer/README.md`.

/// Appends an unsigned integer.
pub(super) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a signed integer.
pub(super) fn put_signed(out: &mut Vec<u8>, value: i64) {
    put(out, zigzag(value));
}

/// Maps 0, -1, 1, -2 … to 0, 1, 2, 3 …
pub(super) fn zigzag(value: i64) -> u64 {
    (value as u64) << 1 ^ (value >> 63) as u64
}

/// Column of differences, each from the previous entry.
#[derive(Default)]
pub(super) struct Delta {
    out: Vec<u8>,
    before: u32,
}

impl Delta {
    pub(super) fn push(&mut self, value: u32) {
        put_signed(
            &mut self.out,
            i64::from(value).wrapping_sub(i64::from(self.before)),
        );
        self.before = value;
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.out
    }
}

/// Reader for these encodings.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    before: i64,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, before: 0 }
    }

    /// Returns the next unsigned integer; `None` at the end of the bytes or for more than 64 bits.
    pub(super) fn next(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            let (&byte, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            if shift == 63 && byte > 1 {
                return None;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    pub(super) fn next_signed(&mut self) -> Option<i64> {
        let value = self.next()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    pub(super) fn next_u32(&mut self) -> Option<u32> {
        self.next()?.try_into().ok()
    }

    /// Returns the next entry of a column of differences, which starts at 0.
    pub(super) fn next_delta(&mut self) -> Option<u32> {
        self.before = self.before.checked_add(self.next_signed()?)?;
        u32::try_from(self.before).ok()
    }

    /// Begins the next column.
    pub(super) fn begin_column(&mut self) {
        self.before = 0;
    }

    /// Returns the remaining bytes.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_all_sizes_come_back() {
        let unsigned = [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX];
        let signed = [0, -1, 1, -64, 64, i64::MIN, i64::MAX];
        let mut out = Vec::new();
        unsigned.iter().for_each(|&value| put(&mut out, value));
        signed.iter().for_each(|&value| put_signed(&mut out, value));
        let mut reader = Reader::new(&out);
        for value in unsigned {
            assert_eq!(reader.next(), Some(value));
        }
        for value in signed {
            assert_eq!(reader.next_signed(), Some(value));
        }
        assert_eq!(reader.next(), None, "nothing is left");
        assert_eq!(Reader::new(&[0xff; 10]).next(), None, "more than 64 bits");
        assert_eq!(Reader::new(&[0x80]).next(), None, "cut");
    }

    #[test]
    fn a_column_of_differences_comes_back() {
        let mut column = Delta::default();
        [5, 0, u32::MAX, 7].into_iter().for_each(|v| column.push(v));
        let bytes = column.finish();
        let mut reader = Reader::new(&bytes);
        for value in [5, 0, u32::MAX, 7] {
            assert_eq!(reader.next_delta(), Some(value));
        }
    }
}
