//! Encoding of protocol buffers: tags, varints, messages of known and unknown length.

pub(super) use heaptap_base::varint::put as put_varint;

/// Returns the number of bytes in a varint.
#[inline]
pub(super) fn varint_len(number: u64) -> usize {
    (70 - (number | 1).leading_zeros() as usize) / 7
}

/// Appends a number as a field, unless it is 0, which proto3 omits.
#[inline]
pub(super) fn put_number(out: &mut Vec<u8>, field: u32, number: u64) {
    if number != 0 {
        put_field(out, field, number);
    }
}

/// Appends a number as a field even if it is 0, as in messages of proto2.
#[inline]
pub(super) fn put_field(out: &mut Vec<u8>, field: u32, number: u64) {
    put_varint(out, u64::from(field) << 3);
    put_varint(out, number);
}

/// Returns a number as a sample's value, at the limit if it is too large.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Appends bytes, text or a message as a field.
#[inline]
pub(super) fn put_bytes(out: &mut Vec<u8>, field: u32, bytes: &[u8]) {
    put_varint(out, u64::from(field) << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_what_is_written() {
        for number in [0, 1, 127, 128, 16383, 16384, u64::from(u32::MAX), u64::MAX] {
            let mut out = Vec::new();
            put_varint(&mut out, number);
            assert_eq!(out.len(), varint_len(number), "{number}");
        }
    }
}
