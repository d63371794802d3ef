//! Protocol buffers' wire format, read without a schema and without copying. Does not depend on
//! Perfetto's messages.
//!
//! A message is a series of fields; each begins with a tag, `number << 3 | type`, as a varint: type
//! 0 is a varint, 1 eight bytes, 2 a length and that many bytes, 5 four bytes. Types 3 and 4
//! (groups) and 6 and 7 do not occur in traces and count as damage, as does field number 0.

/// An error in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what}{}", .at.map_or_else(String::new, |at| format!(" at byte {at}")))]
pub struct WireError {
    /// Offset in the message; `None` if the error is about the message as a whole.
    pub at: Option<u32>,
    /// Description of the error.
    pub what: &'static str,
}

/// A field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// Type 0.
    Varint(u64),
    /// Type 1.
    Fixed64(u64),
    /// Type 2: bytes, text, a message, or packed numbers.
    Bytes(&'a [u8]),
    /// Type 5.
    Fixed32(u32),
}

impl<'a> Value<'a> {
    /// Returns the bytes of a length-delimited field; empty for any other type.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        match self {
            Value::Bytes(bytes) => bytes,
            _ => &[],
        }
    }

    /// Returns the number of a varint or fixed field; 0 for bytes.
    #[inline]
    pub fn number(self) -> u64 {
        match self {
            Value::Varint(n) | Value::Fixed64(n) => n,
            Value::Fixed32(n) => u64::from(n),
            Value::Bytes(_) => 0,
        }
    }

    /// Returns a bool as in proto: true for any number except 0.
    #[inline]
    pub fn flag(self) -> bool {
        self.number() != 0
    }

    /// Returns the text; invalid UTF-8 becomes U+FFFD.
    pub fn text(self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }

    /// Calls `each` for a repeated number, packed or not.
    ///
    /// # Errors
    /// Returns an error if packed varints are cut off or too long, after passing those before.
    #[inline]
    pub fn numbers(self, mut each: impl FnMut(u64)) -> Result<(), WireError> {
        match self {
            Value::Bytes(bytes) => {
                let mut pos = 0;
                while pos < bytes.len() {
                    each(varint(bytes, &mut pos)?);
                }
                Ok(())
            }
            other => {
                each(other.number());
                Ok(())
            }
        }
    }
}

/// Reads a varint at `pos` and moves `pos` past it.
///
/// # Errors
/// Returns an error if the message ends first, or the number has more than ten bytes.
#[inline]
pub fn varint(bytes: &[u8], pos: &mut usize) -> Result<u64, WireError> {
    match bytes.get(*pos) {
        Some(&byte) if byte < 0x80 => {
            *pos += 1;
            Ok(u64::from(byte))
        }
        _ => long_varint(bytes, pos),
    }
}

/// Reads a varint of several bytes: up to eight at once, because processors mispredict the end of a
/// loop over its bytes.
#[inline]
fn long_varint(bytes: &[u8], pos: &mut usize) -> Result<u64, WireError> {
    let Some(word) = bytes[*pos..].first_chunk::<8>() else {
        return varint_by_bytes(bytes, pos);
    };
    let word = u64::from_le_bytes(*word);
    let last_bytes = !word & 0x8080_8080_8080_8080;
    if last_bytes == 0 {
        return varint_by_bytes(bytes, pos);
    }
    // The lowest set bit belongs to the last byte: the number consists of that byte and those below
    // it.
    let number = word & (last_bytes ^ (last_bytes - 1)) & 0x7f7f_7f7f_7f7f_7f7f;
    // Groups of 7 bits become groups of 14, of 28, and one.
    let number = number & 0x007f_007f_007f_007f | (number & 0x7f00_7f00_7f00_7f00) >> 1;
    let number = number & 0x0000_3fff_0000_3fff | (number & 0x3fff_0000_3fff_0000) >> 2;
    let number = number & 0x0000_0000_0fff_ffff | (number & 0x0fff_ffff_0000_0000) >> 4;
    *pos += last_bytes.trailing_zeros() as usize / 8 + 1;
    Ok(number)
}

/// Reads a varint near the end of a message, or one of nine or more bytes.
fn varint_by_bytes(bytes: &[u8], pos: &mut usize) -> Result<u64, WireError> {
    let start = *pos;
    let mut value = 0u64;
    for (count, &byte) in bytes[start..].iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * count as u32);
        if byte < 0x80 {
            *pos = start + count + 1;
            return Ok(value);
        }
    }
    Err(WireError {
        at: Some(start as u32),
        what: if bytes.len() - start < 10 {
            "number cut off"
        } else {
            "number longer than ten bytes"
        },
    })
}

/// The fields of a message, in order.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a> {
    bytes: &'a [u8],
    pos: usize,
}

impl<'a> Fields<'a> {
    /// Creates an iterator over the fields of a message.
    pub fn new(bytes: &'a [u8]) -> Self {
        Fields { bytes, pos: 0 }
    }

    /// Returns the offset of the next field.
    pub fn position(&self) -> usize {
        self.pos
    }

    /// Returns the next byte: the tag of a field with a number below 16.
    #[inline]
    pub(crate) fn next_byte(&self) -> Option<u8> {
        self.bytes.get(self.pos).copied()
    }

    /// Reads the varint of a field whose tag is the next byte.
    #[inline]
    pub(crate) fn varint_after_byte(&mut self) -> Result<u64, WireError> {
        self.pos += 1;
        varint(self.bytes, &mut self.pos)
    }

    /// Returns the next field, or `None` at the end.
    ///
    /// # Errors
    /// Returns an error if the bytes are not in wire format; the fields before were valid.
    #[inline(always)]
    #[allow(
        clippy::should_implement_trait,
        reason = "fallible; an error ends the iteration"
    )]
    pub fn next(&mut self) -> Result<Option<(u32, Value<'a>)>, WireError> {
        if self.pos >= self.bytes.len() {
            return Ok(None);
        }
        let start = self.pos;
        let error = |what| WireError {
            at: Some(start as u32),
            what,
        };
        let mut pos = self.pos;
        let tag = varint(self.bytes, &mut pos)?;
        let number = tag >> 3;
        if number == 0 || number > 0x1fff_ffff {
            return Err(error("field number out of range"));
        }
        let value = match tag & 7 {
            0 => Value::Varint(varint(self.bytes, &mut pos)?),
            2 => {
                let length = varint(self.bytes, &mut pos)?;
                let rest = &self.bytes[pos..];
                if length > rest.len() as u64 {
                    return Err(error("field longer than its message"));
                }
                pos += length as usize;
                Value::Bytes(&rest[..length as usize])
            }
            1 => Value::Fixed64(u64::from_le_bytes(fixed(self.bytes, &mut pos)?)),
            5 => Value::Fixed32(u32::from_le_bytes(fixed(self.bytes, &mut pos)?)),
            _ => return Err(error("unknown wire type")),
        };
        self.pos = pos;
        Ok(Some((number as u32, value)))
    }
}

/// Calls `take` for each field of a message.
///
/// # Errors
/// Returns an error if the message is damaged, after passing all fields before the damage.
#[inline]
pub fn each<'a>(message: &'a [u8], mut take: impl FnMut(u32, Value<'a>)) -> Result<(), WireError> {
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        take(number, value);
    }
    Ok(())
}

/// Calls `take` for the messages of a repeated field, up to the first error.
#[inline]
pub(crate) fn each_message<'a>(
    message: &'a [u8],
    field: u32,
    mut take: impl FnMut(&'a [u8]) -> Result<(), WireError>,
) -> Result<(), WireError> {
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        if number == field {
            take(value.bytes())?;
        }
    }
    Ok(())
}

fn fixed<const N: usize>(bytes: &[u8], pos: &mut usize) -> Result<[u8; N], WireError> {
    let end = *pos + N;
    let Some(slice) = bytes.get(*pos..end) else {
        return Err(WireError {
            at: Some(*pos as u32),
            what: "fixed number cut off",
        });
    };
    let mut value = [0; N];
    value.copy_from_slice(slice);
    *pos = end;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made;
    use proptest::prelude::*;

    #[test]
    fn reads_every_type_in_order() {
        let bytes = [
            0x08, 0x96, 0x01, // 1: varint 150
            0x12, 0x02, b'h', b'i', // 2: "hi"
            0x19, 1, 0, 0, 0, 0, 0, 0, 0, // 3: fixed64 1
            0x25, 2, 0, 0, 0, // 4: fixed32 2
        ];
        let mut fields = Fields::new(&bytes);
        assert_eq!(fields.next(), Ok(Some((1, Value::Varint(150)))));
        assert_eq!(fields.next(), Ok(Some((2, Value::Bytes(b"hi")))));
        assert_eq!(fields.next(), Ok(Some((3, Value::Fixed64(1)))));
        assert_eq!(fields.next(), Ok(Some((4, Value::Fixed32(2)))));
        assert_eq!(fields.next(), Ok(None));
    }

    #[test]
    fn says_what_is_wrong() {
        for (bytes, what) in [
            (&[0x0a, 0x05, 1][..], "field longer than its message"),
            (&[0x00, 0x01], "field number out of range"),
            (&[0x0b], "unknown wire type"),
            (&[0x08], "number cut off"),
            (&[0x08, 0x80, 0x80], "number cut off"),
            (
                &[0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1],
                "number longer than ten bytes",
            ),
            (&[0x0d, 1, 2], "fixed number cut off"),
        ] {
            assert_eq!(Fields::new(bytes).next().map_err(|e| e.what), Err(what));
        }
    }

    #[test]
    fn an_error_has_the_offset_of_the_byte_or_none() {
        let mut fields = Fields::new(&[0x08, 0x01, 0x0b]);
        fields.next().unwrap();
        let error = fields.next().unwrap_err();
        assert_eq!(error.to_string(), "unknown wire type at byte 2");
        let whole = WireError { at: None, ..error };
        assert_eq!(whole.to_string(), "unknown wire type");
    }

    #[test]
    fn repeated_numbers_come_packed_or_not() {
        let mut seen = Vec::new();
        Value::Bytes(&[1, 0x80, 1])
            .numbers(|n| seen.push(n))
            .unwrap();
        Value::Varint(7).numbers(|n| seen.push(n)).unwrap();
        assert_eq!(seen, [1, 128, 7]);
    }

    proptest! {
        #[test]
        fn numbers_of_any_length_are_read_wherever_they_stand(
            number in any::<u64>(),
            bits in 0..64u32,
            behind in proptest::collection::vec(any::<u8>(), 0..12),
        ) {
            let number = number >> bits;
            let mut bytes = vec![0xff];
            bytes.extend(made::varint(number));
            let end = bytes.len();
            bytes.extend(behind);
            let mut pos = 1;
            prop_assert_eq!(varint(&bytes, &mut pos), Ok(number));
            prop_assert_eq!(pos, end);
        }

        #[test]
        fn eight_bytes_at_once_are_read_as_one_by_one(
            continued in 0..12usize,
            mut bytes in proptest::collection::vec(any::<u8>(), 0..16),
        ) {
            // Too long, cut off, and with leading zeros, too.
            for byte in bytes.iter_mut().take(continued) {
                *byte |= 0x80;
            }
            let (mut at_once, mut one_by_one) = (0, 0);
            let number = varint(&bytes, &mut at_once);
            prop_assert_eq!(number, varint_by_bytes(&bytes, &mut one_by_one));
            prop_assert_eq!(at_once, one_by_one);
        }

        #[test]
        fn any_bytes_end_in_a_row_of_fields_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut fields = Fields::new(&bytes);
            let mut last = 0;
            while let Ok(Some((number, value))) = fields.next() {
                prop_assert!(number > 0);
                prop_assert!(fields.position() > last && fields.position() <= bytes.len());
                prop_assert!(value.bytes().len() < bytes.len());
                last = fields.position();
            }
        }

        #[test]
        fn what_was_written_is_read(numbers in proptest::collection::vec((1u32..0x1fff_ffff, any::<u64>()), 0..20)) {
            let mut bytes = Vec::new();
            for &(field, number) in &numbers {
                bytes.extend(made::number(field, number));
            }
            let mut fields = Fields::new(&bytes);
            for &(field, number) in &numbers {
                prop_assert_eq!(fields.next(), Ok(Some((field, Value::Varint(number)))));
            }
            prop_assert_eq!(fields.next(), Ok(None));
        }
    }
}
