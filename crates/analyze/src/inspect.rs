//! Texts and values of objects, as shown.

use heaptap_model::heap_graph::{BasicType, ObjectId, Value};

/// Cuts a text to `most` characters and appends `…` if it was longer.
pub fn cut(text: String, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// Decodes a value from the big-endian bytes of a dump.
pub fn value(basic: BasicType, bytes: &[u8]) -> Value {
    let bits = bytes
        .iter()
        .fold(0u64, |bits, &byte| bits << 8 | u64::from(byte));
    match basic {
        BasicType::Object => Value::Dangling(ObjectId(bits)),
        BasicType::Boolean => Value::Boolean(bits != 0),
        BasicType::Char => Value::Char(bits as u16),
        BasicType::Float => Value::Float(f32::from_bits(bits as u32)),
        BasicType::Double => Value::Double(f64::from_bits(bits)),
        BasicType::Byte => Value::Byte(bits as i8),
        BasicType::Short => Value::Short(bits as i16),
        BasicType::Int => Value::Int(bits as i32),
        BasicType::Long => Value::Long(bits as i64),
    }
}
