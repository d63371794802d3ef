//! JSON in mapping files: strict as R8 writes it, or with single quotes as in its specification.
//! [`super::metadata`] interprets the values.

use serde_json::Value;

/// Parses a text that is exactly one value; `None` otherwise.
pub(super) fn parse(text: &str) -> Option<Value> {
    let with_double_quotes = || text.replace('\'', "\"");
    let strict = serde_json::from_str(text);
    let value = strict.or_else(|_| serde_json::from_str(&with_double_quotes()));
    value.ok()
}

/// Returns a number, including one written as text.
pub(super) fn number(value: &Value) -> Option<u32> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        value => u32::try_from(value.as_i64()?).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_quotes_are_those_of_strict_json() {
        let strict = r#"{"id":"x.y", "positions": {"1": 4, "2": "7"}, "e": "\u00e9'"}"#;
        let value = parse(strict).unwrap();
        assert_eq!(value["e"], "é'");
        let positions = &value["positions"];
        assert_eq!(number(&positions["1"]), Some(4));
        assert_eq!(number(&positions["2"]), Some(7));
        assert_eq!(number(&value["id"]), None);
        assert_eq!(parse("{'id': 'x.y'}").unwrap()["id"], "x.y");
    }

    #[test]
    fn what_is_no_json_is_nothing() {
        for text in ["", "{", "{a:1}", "[1 2]", "{}x", "'a", "word"] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse(&"[".repeat(100_000)), None);
    }
}
