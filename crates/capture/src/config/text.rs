//! Parser and printer of Perfetto's text format, by reflection over the messages in `proto/`, so
//! that fields added there are supported here.

use std::fmt::Write as _;
use std::sync::LazyLock;

use prost::Message as _;
use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, ReflectMessage as _,
    Value,
};

use heaptap_proto as proto;
use heaptap_proto::perfetto::TraceConfig;

static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
    DescriptorPool::decode(proto::DESCRIPTORS).expect("the build checked its own descriptors")
});

pub(super) fn descriptor(name: &str) -> MessageDescriptor {
    POOL.get_message_by_name(&format!("perfetto.protos.{name}"))
        .expect("proto/ declares the messages named here")
}

/// Parses a TraceConfig in Perfetto's text format. Unknown fields are rejected by name: a
/// partially understood config would record something else.
///
/// # Errors
/// Returns the parser's message, which names the field.
pub fn parse_text(text: &str) -> Result<TraceConfig, String> {
    let message = DynamicMessage::parse_text_format(descriptor("TraceConfig"), text)
        .map_err(|error| error.to_string())?;
    message
        .transcode_to::<TraceConfig>()
        .map_err(|error| error.to_string())
}

/// Parses a serialized TraceConfig; unknown fields are rejected by number.
pub(super) fn parse_binary(bytes: &[u8]) -> Result<TraceConfig, String> {
    let message = DynamicMessage::decode(descriptor("TraceConfig"), bytes)
        .map_err(|error| error.to_string())?;
    if let Some(field) = first_unknown(&message) {
        return Err(format!("it sets {field}, which heaptap does not support"));
    }
    TraceConfig::decode(bytes).map_err(|error| error.to_string())
}

fn first_unknown(message: &DynamicMessage) -> Option<String> {
    if let Some(field) = message.unknown_fields().next() {
        return Some(format!(
            "field {} of {}",
            field.number(),
            message.descriptor().name()
        ));
    }
    let inside = |value: &Value| value.as_message().and_then(first_unknown);
    message.fields().find_map(|(_, value)| match value {
        Value::List(items) => items.iter().find_map(inside),
        value => inside(value),
    })
}

/// Formats a TraceConfig for `perfetto --txt -c -`: one field per line, without lists in brackets,
/// which its parser does not support.
pub fn print_text(config: &TraceConfig) -> String {
    let mut message = DynamicMessage::new(descriptor("TraceConfig"));
    message
        .transcode_from(config)
        .expect("the generated code and the descriptors come from one build");
    let mut text = String::new();
    print_message(&message, 0, &mut text);
    text
}

fn print_message(message: &DynamicMessage, depth: usize, text: &mut String) {
    for (field, value) in message.fields() {
        match value {
            Value::List(items) => {
                for item in items {
                    print_field(&field, item, depth, text);
                }
            }
            value => print_field(&field, value, depth, text),
        }
    }
}

fn print_field(field: &FieldDescriptor, value: &Value, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    let name = field.name();
    // Writing to a String cannot fail.
    let _ = match value {
        Value::Message(message) => {
            let _ = writeln!(text, "{indent}{name} {{");
            print_message(message, depth + 1, text);
            writeln!(text, "{indent}}}")
        }
        Value::String(value) => writeln!(text, "{indent}{name}: {}", quoted(value)),
        Value::EnumNumber(number) => {
            let named = match field.kind() {
                Kind::Enum(kind) => kind.get_value(*number).map(|v| v.name().to_owned()),
                _ => None,
            };
            let named = named.unwrap_or_else(|| number.to_string());
            writeln!(text, "{indent}{name}: {named}")
        }
        Value::Bool(v) => writeln!(text, "{indent}{name}: {v}"),
        Value::I32(v) => writeln!(text, "{indent}{name}: {v}"),
        Value::I64(v) => writeln!(text, "{indent}{name}: {v}"),
        Value::U32(v) => writeln!(text, "{indent}{name}: {v}"),
        Value::U64(v) => writeln!(text, "{indent}{name}: {v}"),
        Value::F32(v) => writeln!(text, "{indent}{name}: {v}"),
        Value::F64(v) => writeln!(text, "{indent}{name}: {v}"),
        // The config does not have bytes, lists in lists or maps.
        Value::Bytes(_) | Value::List(_) | Value::Map(_) => Ok(()),
    };
}

fn quoted(value: &str) -> String {
    let mut quoted = String::with_capacity(value.len() + 2);
    quoted.push('"');
    for c in value.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            // Three digits: a digit can follow.
            c if c.is_control() => {
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    let _ = write!(quoted, "\\{byte:03o}");
                }
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
