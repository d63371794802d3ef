//! Single fields of the heapprofd config by name, as given by `--set` and config files.

use prost_reflect::{
    DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, ReflectMessage as _, Value,
};

use super::sources::heapprofd_in;
use super::text::descriptor;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::suggest::nearest;
use heaptap_base::units::ByteSize;
use heaptap_proto::perfetto::{HeapprofdConfig, TraceConfig};

/// Assignment to one field of HeapprofdConfig.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldSetting {
    /// `skip_symbol_prefix`, `continuous_dump_config.dump_phase_ms`.
    pub path: String,
    /// As typed.
    pub value: String,
}

impl FieldSetting {
    /// Parses `heapprofd.FIELD=VALUE`.
    ///
    /// # Errors
    /// Returns an error if the text does not have that form.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let bad = |why: &str| {
            let help = "use `--set heapprofd.FIELD=VALUE`, such as \
                        `heapprofd.max_heapprofd_memory_kb=200000`";
            bad_setting(text, why).with_help(help)
        };
        let (path, value) = text.split_once('=').ok_or_else(|| bad("`=` is missing"))?;
        let path = path
            .trim()
            .strip_prefix("heapprofd.")
            .ok_or_else(|| bad("only fields of heapprofd can be set"))?;
        Ok(FieldSetting {
            path: path.to_owned(),
            value: value.trim().to_owned(),
        })
    }
}

/// Sets fields of the heapprofd config by name. The first setting of a repeated field replaces
/// it, the others extend it; commas separate several values.
pub(super) fn apply_settings(
    config: &mut TraceConfig,
    settings: &[FieldSetting],
) -> Result<(), Failure> {
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
) -> Result<(), Failure> {
    if let Some((head, rest)) = path.split_first() {
        let field = find(&message.descriptor(), head, setting)?;
        if !matches!(field.kind(), Kind::Message(_)) || field.is_list() {
            return Err(bad(
                setting,
                format!("{head} does not have fields"),
                String::new(),
            ));
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
            format!("the fields are {}", names(&inner, &format!("{last}."))),
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
) -> Result<FieldDescriptor, Failure> {
    message.get_field_by_name(name).ok_or_else(|| {
        let known: Vec<String> = message.fields().map(|f| f.name().to_owned()).collect();
        let hint = nearest(name, known.iter().map(String::as_str))
            .map_or_else(|| "the".to_owned(), |n| format!("did you mean {n}? The"));
        bad(
            setting,
            format!("{} does not have a field {name:?}", message.name()),
            format!("{hint} fields are {}", names(message, "")),
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

fn bad(setting: &FieldSetting, why: String, help: String) -> Failure {
    let setting = format!("heapprofd.{}={}", setting.path, setting.value);
    bad_setting(&setting, &why).with_help(help)
}

fn bad_setting(setting: &str, why: &str) -> Failure {
    let message = format!("cannot apply --set {setting}: {why}");
    Failure::new(ErrorClass::Usage, "bad-setting", message)
}

fn parse_value(
    field: &FieldDescriptor,
    text: &str,
    setting: &FieldSetting,
) -> Result<Value, Failure> {
    let wrong = |wants: &str| {
        bad(
            setting,
            format!("{text:?} is not {wants}"),
            format!("{} must be {wants}", field.name()),
        )
    };
    // Byte fields accept sizes with units.
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
        _ => Err(wrong("a value that `--set` supports")),
    }
}
