//! Writes messages of protocol buffers.

pub fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// A field with a number.
pub fn number(field: u32, value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    varint(u64::from(field) << 3, &mut out);
    varint(value, &mut out);
    out
}

/// A field with bytes: text, a message, or packed numbers.
pub fn bytes(field: u32, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len() + 8);
    varint(u64::from(field) << 3 | 2, &mut out);
    varint(value.len() as u64, &mut out);
    out.extend_from_slice(value);
    out
}

/// The concatenated results of `each` for 0, 1, 2 and so on, up to `size` bytes.
pub fn many(size: usize, mut each: impl FnMut(u64) -> Vec<u8>) -> Vec<u8> {
    let mut out = Vec::with_capacity(size + 64);
    for n in 0.. {
        if out.len() >= size {
            break;
        }
        out.extend(each(n));
    }
    out
}
