//! Patterns of filters, in smart case as in ripgrep and most editors: a pattern without a capital
//! letter matches either case.

use regex::{Regex, RegexBuilder};
use std::fmt::Display;

/// Returns the message if a filter leaves nothing of `whole`. `ignores` is whether it has
/// `--ignore`, `selects` whether it has other flags.
pub(crate) fn no_match(ignores: bool, selects: bool, whole: impl Display) -> String {
    match (ignores, selects) {
        (true, false) => format!("`--ignore` leaves nothing of {whole}"),
        (true, true) => format!("`--ignore` and the other filters leave nothing of {whole}"),
        (false, _) => {
            "nothing matches (a pattern with a capital letter is case-sensitive, (?i) turns that off)"
                .to_owned()
        }
    }
}

/// Parses a pattern. Case counts only if the pattern has a capital letter, and a `$` before a letter
/// or digit is that of a nested class.
///
/// # Errors
/// Returns an error if the text is not a regular expression. It has the expression for the text itself.
pub(crate) fn pattern(typed: &str) -> Result<Regex, String> {
    RegexBuilder::new(&with_nested_classes(typed))
        .case_insensitive(!has_capital(typed))
        .build()
        .map_err(|error| format!("{error}; the text itself is `{}`", regex::escape(typed)))
}

/// Escapes each `$` that more of a name follows, as in `Outer$Inner`: an end of the text would never
/// match there.
fn with_nested_classes(pattern: &str) -> String {
    let mut escaped = String::with_capacity(pattern.len());
    let mut rest = pattern.chars();
    while let Some(at) = rest.next() {
        let behind = rest.as_str().trim_start_matches('$');
        let is_of_name = |next: char| next.is_alphanumeric() || next == '_';
        // `Api$-CC` and `j$.util` are made by the compiler.
        let behind = behind.strip_prefix(['-', '.']).unwrap_or(behind);
        if at == '$' && behind.starts_with(is_of_name) {
            escaped.push('\\');
        }
        escaped.push(at);
        if at == '\\' {
            escaped.extend(rest.next());
        }
    }
    escaped
}

/// Returns true if a literal letter is a capital. Letters of escapes (`\S`, `\p{Lu}`) and names of
/// groups (`(?P<Name>…)`) are not literal.
fn has_capital(pattern: &str) -> bool {
    let mut rest = pattern;
    while let Some(at) = rest.chars().next() {
        rest = match at {
            '\\' => behind_escape(&rest[1..]),
            '(' => behind_group(&rest[1..]),
            letter if letter.is_uppercase() => return true,
            other => &rest[other.len_utf8()..],
        };
    }
    false
}

/// Returns the text after an escape; `rest` begins after the backslash.
fn behind_escape(rest: &str) -> &str {
    let mut chars = rest.chars();
    let Some(class) = chars.next() else {
        return "";
    };
    let behind = chars.as_str();
    match class {
        'p' | 'P' | 'x' | 'u' | 'U' => match behind.strip_prefix('{') {
            Some(name) => name.split_once('}').map_or("", |(_, behind)| behind),
            None => {
                let letters = match class {
                    'x' => 2,
                    'u' => 4,
                    'U' => 8,
                    _ => 1,
                };
                behind.get(letters..).unwrap_or("")
            }
        },
        _ => behind,
    }
}

/// Returns the text after the head of a group; `rest` begins after the parenthesis.
fn behind_group(rest: &str) -> &str {
    let Some(head) = rest.strip_prefix('?') else {
        return rest;
    };
    let is_named = head.starts_with("P<") || head.starts_with('<');
    let end = if is_named { '>' } else { ')' };
    match head.find([end, ':']) {
        Some(at) => &head[at + 1..],
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_without_a_capital_match_either_case_and_others_their_own() {
        let matches = |typed: &str, text: &str| pattern(typed).unwrap().is_match(text);
        for typed in [
            "eventhistory",
            r"event\S*history",
            r"\bevent",
            r"(?P<Name>event)history",
            r"(?<Name>event)history",
            r"event(?:history)",
            r"^\x{4E}?event",
            r"^\x4E?event",
            r"\pLvent",
            r"(event)(history)",
        ] {
            assert!(matches(typed, "EventHistory"), "{typed}");
        }
        for typed in [
            "Eventhistory",
            r"eventH\w+",
            "É",
            r"(?:Event)history",
            r"(eventHistory)",
        ] {
            assert!(!matches(typed, "eventhistory"), "{typed}");
        }
        assert!(matches("(?i)EVENT", "event"));
        assert!(!matches("(?-i)event", "EVENT"));
        for typed in [
            "Outer$Inner",
            r"Outer\$Inner",
            r"r[$I]Inner$",
            "(r$Inner|x)$",
        ] {
            assert!(matches(typed, "a.Outer$Inner"), "{typed}");
        }
        assert!(matches("Outer$$Lambda$1", "a.Outer$$Lambda$1"));
        assert!(matches("Api$-CC", "a.Api$-CC") && matches("j$.util", "j$.util.List"));
        assert!(matches("Outer$.*", "a.Outer") && matches("(?m)r$", "a.Outer\nb"));
        assert!(matches("Outer$", "a.Outer") && !matches("Outer$", "a.Outer$Inner"));
        assert!(pattern("(").is_err() && pattern(r"a\").is_err());
    }
}
