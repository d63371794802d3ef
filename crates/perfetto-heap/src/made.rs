//! Messages of protocol buffers as tests write them, with a writer that shares nothing with the
//! reader.

pub(crate) fn varint(mut number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
    out
}

/// A field with a number.
pub(crate) fn number(field: u32, value: u64) -> Vec<u8> {
    [varint(u64::from(field) << 3), varint(value)].concat()
}

/// A field with bytes: a text or a message.
pub(crate) fn bytes(field: u32, value: &[u8]) -> Vec<u8> {
    let tag = varint(u64::from(field) << 3 | 2);
    [&tag, &varint(value.len() as u64), value].concat()
}
