//! Perfetto's text format, in and out, and single fields by name: by reflection over the
//! messages in `proto/`, so that a field added there is known here.

use std::fmt::Write as _;
use std::sync::LazyLock;

use prost::Message as _;
use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, ReflectMessage as _,
    Value,
};

use super::ConfigError;
use super::encode::heapprofd_in;
use super::options::FieldSetting;
use heaptap_model::near::nearest;
use heaptap_model::units::ByteSize;
use heaptap_proto as proto;
use heaptap_proto::perfetto::{HeapprofdConfig, TraceConfig};

static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
    DescriptorPool::decode(proto::DESCRIPTORS).expect("the build checked its own descriptors")
});

fn descriptor(name: &str) -> MessageDescriptor {
    POOL.get_message_by_name(&format!("perfetto.protos.{name}"))
        .expect("proto/ declares the messages named here")
}

/// Reads a TraceConfig in Perfetto's text format. Fields that heaptap does not know are
/// refused by name: a config that is half understood would record something else.
///
/// # Errors
/// The parser's words, which name the field.
pub fn parse_text(text: &str) -> Result<TraceConfig, String> {
    let message = DynamicMessage::parse_text_format(descriptor("TraceConfig"), text)
        .map_err(|error| error.to_string())?;
    message
        .transcode_to::<TraceConfig>()
        .map_err(|error| error.to_string())
}

/// Reads a serialized TraceConfig; fields that heaptap does not know are refused by number.
pub(super) fn parse_binary(bytes: &[u8]) -> Result<TraceConfig, String> {
    let message = DynamicMessage::decode(descriptor("TraceConfig"), bytes)
        .map_err(|error| error.to_string())?;
    if let Some(field) = first_unknown(&message) {
        return Err(format!("it sets {field}, which heaptap does not know"));
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

/// Writes a TraceConfig as `perfetto --txt -c -` takes it: one field a line, no lists in
/// brackets, which its parser lacks.
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
        // The config has neither bytes, lists in lists nor maps.
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
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Sets fields of the heapprofd config by name. A repeated field is replaced by the first
/// setting that names it and extended by the others; several values go with commas.
pub(super) fn apply_settings(
    config: &mut TraceConfig,
    settings: &[FieldSetting],
) -> Result<(), ConfigError> {
    if settings.is_empty() {
        return Ok(());
    }
    let heapprofd = heapprofd_in(config);
    let mut message = DynamicMessage::new(descriptor("HeapprofdConfig"));
    message
        .transcode_from(heapprofd)
        .expect("the generated code and the descriptors come from one build");
    let mut seen: Vec<&str> = Vec::new();
    for setting in settings {
        let first = !seen.contains(&setting.path.as_str());
        seen.push(&setting.path);
        let mut path: Vec<&str> = setting.path.split('.').collect();
        let last = path.pop().unwrap_or_default();
        set_field(&mut message, &path, last, setting, first)?;
    }
    *heapprofd = message
        .transcode_to::<HeapprofdConfig>()
        .expect("the generated code and the descriptors come from one build");
    Ok(())
}

fn set_field(
    message: &mut DynamicMessage,
    path: &[&str],
    last: &str,
    setting: &FieldSetting,
    first: bool,
) -> Result<(), ConfigError> {
    if let Some((head, rest)) = path.split_first() {
        let field = find(&message.descriptor(), head, setting)?;
        if !matches!(field.kind(), Kind::Message(_)) || field.is_list() {
            return Err(bad(setting, format!("{head} has no fields"), String::new()));
        }
        return match message.get_field_mut(&field) {
            Value::Message(inner) => set_field(inner, rest, last, setting, first),
            _ => Ok(()),
        };
    }
    let field = find(&message.descriptor(), last, setting)?;
    if let Kind::Message(inner) = field.kind() {
        return Err(bad(
            setting,
            format!("{last} is a message; set one of its fields"),
            format!("they are {}", names(&inner, &format!("{last}."))),
        ));
    }
    if !field.is_list() {
        let value = parse_value(&field, &setting.value, setting)?;
        message.set_field(&field, value);
        return Ok(());
    }
    if first {
        message.clear_field(&field);
    }
    let mut added = Vec::new();
    for item in setting.value.split(',').filter(|i| !i.is_empty()) {
        added.push(parse_value(&field, item, setting)?);
    }
    if let Value::List(items) = message.get_field_mut(&field) {
        items.extend(added);
    }
    Ok(())
}

fn find(
    message: &MessageDescriptor,
    name: &str,
    setting: &FieldSetting,
) -> Result<FieldDescriptor, ConfigError> {
    message.get_field_by_name(name).ok_or_else(|| {
        let known: Vec<String> = message.fields().map(|f| f.name().to_owned()).collect();
        let hint = nearest(name, known.iter().map(String::as_str))
            .map(|n| format!("did you mean {n}? "))
            .unwrap_or_default();
        bad(
            setting,
            format!("{} has no field {name:?}", message.name()),
            format!("{hint}the fields are {}", names(message, "")),
        )
    })
}

fn names(message: &MessageDescriptor, prefix: &str) -> String {
    let names: Vec<String> = message
        .fields()
        .map(|f| format!("{prefix}{}", f.name()))
        .collect();
    names.join(", ")
}

fn bad(setting: &FieldSetting, why: String, help: String) -> ConfigError {
    ConfigError::BadSetting {
        setting: format!("heapprofd.{}={}", setting.path, setting.value),
        why,
        help,
    }
}

fn parse_value(
    field: &FieldDescriptor,
    text: &str,
    setting: &FieldSetting,
) -> Result<Value, ConfigError> {
    let wrong = |wants: &str| {
        bad(
            setting,
            format!("{text:?} is not {wants}"),
            format!("{} takes {wants}", field.name()),
        )
    };
    // Bytes may be given as people write sizes.
    let number = || {
        if field.name().contains("bytes") || field.name().contains("interval") {
            ByteSize::parse(text).ok().map(|size| size.0)
        } else {
            text.parse::<u64>().ok()
        }
    };
    match field.kind() {
        Kind::Bool => match text {
            "true" | "1" => Ok(Value::Bool(true)),
            "false" | "0" => Ok(Value::Bool(false)),
            _ => Err(wrong("true or false")),
        },
        Kind::Uint64 => number().map(Value::U64).ok_or_else(|| wrong("a number")),
        Kind::Uint32 => number()
            .and_then(|n| u32::try_from(n).ok())
            .map(Value::U32)
            .ok_or_else(|| wrong("a number below 4294967296")),
        Kind::String => Ok(Value::String(text.to_owned())),
        _ => Err(wrong("a value that --set knows")),
    }
}
