//! Variable-length integers: LEB128 and zigzag, as in `viewer/README.md`.

pub(super) use heaptap_base::varint::put;

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

#[cfg(test)]
mod tests {
    use super::super::decode::Reader;
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
