//! The text of a `java.lang.String`, as stored by every runtime since 2006:
//!
//! | runtime | `value` | which part |
//! |---|---|---|
//! | Dalvik, ART to 5 | `char[]`, shared | `offset`, `count` |
//! | ART 6, 7 | `char[]` that exists in the dump only | all |
//! | ART 8 and later | `byte[]` of ASCII, otherwise `char[]` | all; equal to `count` |
//! | HotSpot to 8 | `char[]` (to 6 shared, with `offset` and `count`) | all |
//! | HotSpot 9 and later | `byte[]` with `coder`: 0 Latin-1, 1 UTF-16 of the host | all |

use heaptap_model::heap_graph::{BasicType, PrimitiveArray};

/// Fields of a string that exist in the dump.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct StringFields {
    pub(super) offset: Option<i64>,
    pub(super) count: Option<i64>,
    pub(super) coder: Option<i64>,
}

/// Returns the text, or `None` if the array's values are not in the dump or it is not an array of
/// text.
pub(super) fn text(fields: StringFields, value: PrimitiveArray<'_>) -> Option<String> {
    let bytes = value.bytes?;
    match value.element {
        BasicType::Char => {
            let units = bytes.chunks_exact(2);
            let from = usize::try_from(fields.offset.unwrap_or(0)).ok()?;
            // Without an offset the array belongs to the string alone.
            let count = match fields.offset.and(fields.count) {
                Some(count) => usize::try_from(count).ok()?,
                None => units.len(),
            };
            let units = units.map(|unit| u16::from_be_bytes([unit[0], unit[1]]));
            Some(lossy(units.skip(from).take(count)))
        }
        // HotSpot copies the array as it is in memory. Devices and desktops on which it has compact
        // strings are little-endian.
        BasicType::Byte if fields.coder == Some(1) => {
            let units = bytes.chunks_exact(2);
            Some(lossy(
                units.map(|unit| u16::from_le_bytes([unit[0], unit[1]])),
            ))
        }
        BasicType::Byte => Some(bytes.iter().map(|&byte| char::from(byte)).collect()),
        _ => None,
    }
}

fn lossy(units: impl Iterator<Item = u16>) -> String {
    char::decode_utf16(units)
        .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(element: BasicType, bytes: &[u8]) -> PrimitiveArray<'_> {
        PrimitiveArray {
            element,
            length: (bytes.len() / element.bytes(8)) as u32,
            bytes: Some(bytes),
        }
    }

    #[test]
    fn text_of_every_era_is_read() {
        let none = StringFields::default();
        let shared = StringFields {
            offset: Some(1),
            count: Some(2),
            coder: None,
        };
        let chars = array(BasicType::Char, b"\0a\0b\x04\x10\0d");
        assert_eq!(text(none, chars).as_deref(), Some("abАd"));
        assert_eq!(text(shared, chars).as_deref(), Some("bА"));
        let coder = |coder| StringFields {
            coder: Some(coder),
            ..none
        };
        let latin = array(BasicType::Byte, b"na\xefve");
        assert_eq!(text(coder(0), latin).as_deref(), Some("naïve"));
        let utf16 = array(BasicType::Byte, b"\x3d\xd8\x00\xde\x10\x04");
        assert_eq!(text(coder(1), utf16).as_deref(), Some("\u{1f600}А"));
        let ascii = array(BasicType::Byte, b"plain");
        assert_eq!(text(none, ascii).as_deref(), Some("plain"));
    }

    #[test]
    fn what_a_hostile_string_claims_is_not_believed() {
        let absurd = StringFields {
            offset: Some(3),
            count: Some(i64::MAX),
            coder: None,
        };
        let chars = array(BasicType::Char, b"\0a\0b\0c\0d");
        assert_eq!(text(absurd, chars).as_deref(), Some("d"));
        let negative = StringFields {
            offset: Some(-1),
            ..absurd
        };
        assert_eq!(text(negative, chars), None);
        assert_eq!(text(absurd, array(BasicType::Int, &[0; 4])), None);
        let stripped = PrimitiveArray {
            bytes: None,
            ..chars
        };
        assert_eq!(text(absurd, stripped), None);
    }
}
