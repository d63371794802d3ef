//! Variables in values: `${NAME}` and `${NAME:-default}`. Keys do not have variables, and the value
//! of a variable is text: it is not parsed as YAML and can contain no further variables.

use super::problems::{Path, shown};
use super::report::Report;
use super::yaml::{Kind, Node, Written};

/// Returns the value of a variable; `None` if it is not set.
pub(super) type Environment<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Replaces the variables in all values.
pub(super) fn replace(
    node: &mut Node,
    path: &Path<'_>,
    environment: &Environment<'_>,
    report: &mut Report,
) {
    match &mut node.kind {
        Kind::Scalar(text, written) => {
            if !text.contains('$') {
                return;
            }
            match expand(text, environment) {
                Ok(expanded) => {
                    if text.contains("${") {
                        *written = Written::Variable;
                    }
                    *text = expanded;
                }
                Err((message, help)) => {
                    *written = Written::Unset;
                    report.add_with_help(node, path, message, help);
                }
            }
        }
        Kind::List(items) => {
            for (at, item) in items.iter_mut().enumerate() {
                replace(item, &Path::Index(path, at), environment, report);
            }
        }
        Kind::Map(entries) => {
            for (key, value) in entries {
                let name = key.text().unwrap_or_default();
                replace(value, &Path::Key(path, name), environment, report);
            }
        }
    }
}

/// Returns the text with its variables replaced, or a message and the next step.
fn expand(text: &str, environment: &Environment<'_>) -> Result<String, (String, &'static str)> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        expanded.push_str(before);
        rest = after;
        if let Some(after) = rest.strip_prefix('$') {
            expanded.push('$');
            rest = after;
        } else if let Some(after) = rest.strip_prefix('{') {
            let (inside, after) = after
                .split_once('}')
                .ok_or_else(|| invalid(text, "the `}` is missing"))?;
            let (name, default) = match inside.split_once(":-") {
                Some((name, default)) => (name, Some(default)),
                None => (inside, None),
            };
            if !is_name(name) {
                return Err(invalid(text, "a variable must be a name such as `APK`"));
            }
            let value = environment(name);
            match (value, default) {
                (Some(value), Some(default)) if value.is_empty() => expanded.push_str(default),
                (Some(value), _) => expanded.push_str(&value),
                (None, Some(default)) => expanded.push_str(default),
                (None, None) => {
                    let message = format!("the variable {} is not set", shown(name));
                    return Err((message, "set it, or use `${NAME:-default}`"));
                }
            }
            rest = after;
        } else {
            expanded.push('$');
        }
    }
    expanded.push_str(rest);
    Ok(expanded)
}

fn invalid(text: &str, why: &str) -> (String, &'static str) {
    let message = format!("`{}` has an invalid variable: {why}", shown(text));
    (message, "write `$$` for a `$`")
}

/// Returns whether this can be the name of a variable.
pub(super) fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(fits) && name.starts_with(|c: char| !c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Result<String, String> {
        let environment = |name: &str| match name {
            "APK" => Some("app.apk".to_owned()),
            "EMPTY" => Some(String::new()),
            "NESTED" => Some("${APK} $$ x: [y]".to_owned()),
            _ => None,
        };
        expand(text, &environment).map_err(|(message, _)| message)
    }

    #[test]
    fn variables_are_replaced_once() {
        for (text, wanted) in [
            ("${APK}", "app.apk"),
            ("a/${APK}/${APK}", "a/app.apk/app.apk"),
            ("${UNSET:-other}", "other"),
            ("${UNSET:-}", ""),
            ("${EMPTY:-other}", "other"),
            ("${EMPTY}", ""),
            ("${APK:-other}", "app.apk"),
            ("${NESTED}", "${APK} $$ x: [y]"),
            ("$${APK}", "${APK}"),
            ("^Cache::.*$", "^Cache::.*$"),
            ("$(reboot) $HOME $", "$(reboot) $HOME $"),
        ] {
            assert_eq!(expanded(text).as_deref(), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn an_unset_or_malformed_variable_is_an_error() {
        assert_eq!(expanded("${NO}").unwrap_err(), "the variable NO is not set");
        for text in ["${", "${APK", "${}", "${1A}", "${A B}", "${A-b}", "${:-x}"] {
            assert!(expanded(text).unwrap_err().contains("invalid"), "{text}");
        }
    }
}
