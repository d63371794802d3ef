//! Text from a device, safe for the files that CI systems read: one line, bounded, without commands
//! and without characters that XML forbids.

use heaptap_base::untrusted::ci::broken_up;
use heaptap_base::untrusted::is_unsafe;

/// Maximum length of a name, characters.
pub(crate) const MAX_NAME_CHARS: usize = 200;
/// Maximum length of a line, characters.
pub(crate) const MAX_LINE_CHARS: usize = 1_000;

/// Returns the text as one line of at most `max` characters. Control characters, characters that
/// XML 1.0 forbids and those that reorder text become U+FFFD, line breaks and tabs blanks.
pub fn line(text: &str, max: usize) -> String {
    let clean = text.chars().take(max + 1).map(|c| match c {
        '\n' | '\r' | '\t' => ' ',
        c if is_unsafe(c) || matches!(c, '\u{fffe}' | '\u{ffff}') => '\u{fffd}',
        c => c,
    });
    let mut out = broken_up(&clean.collect::<String>()).into_owned();
    // The ellipsis replaces the last character.
    if let Some((end, _)) = out.char_indices().nth(max) {
        out.truncate(end);
        out.pop();
        out.push('…');
    }
    out
}

/// Returns a name: a [`line()`] of at most [`MAX_NAME_CHARS`] without blanks around it.
pub fn name(text: &str) -> String {
    line(text.trim(), MAX_NAME_CHARS)
}

/// Escapes text for elements and quoted attributes of XML and HTML.
pub fn markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Returns the path with `/` as separator if it is relative, stays below its start and cannot end
/// a tag.
pub fn relative_path(path: &str) -> Option<String> {
    let path = path.replace('\\', "/");
    let is_plain = !path.is_empty()
        && !path.starts_with('/')
        && path.as_bytes().get(1) != Some(&b':')
        && !path.contains("]]")
        && !path.split('/').any(|part| part == "..")
        && !path.chars().any(is_unsafe);
    is_plain.then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_with_commands_is_broken_up() {
        assert_eq!(line("::error::x", 99), ": :error::x");
        assert_eq!(line(" \t::error::x", 99), "  : :error::x");
        assert_eq!(line(":::x", 99), ": ::x");
        assert_eq!(line("std::vector", 99), "std::vector");
        assert_eq!(line("##[group]a ###vso[x]", 99), "# #[group]a # # #vso[x]");
        assert_eq!(
            line("[[[ATTACHMENT|/etc/passwd]]", 99),
            "[[ [ATTACHMENT|/etc/passwd]]"
        );
        assert_eq!(line("[[attachment|x]]", 99), "[ [attachment|x]]");
        assert_eq!(line("[[I", 99), "[[I");
    }

    #[test]
    fn line_with_forbidden_characters_has_replacements() {
        assert_eq!(
            line("a\0b\u{1b}[31mc\u{ffff}\u{202e}", 99),
            "a\u{fffd}b\u{fffd}[31mc\u{fffd}\u{fffd}"
        );
        assert_eq!(line("a\r\n::error::x", 99), "a  ::error::x");
        // Characters between the parts of a command do not hide it.
        assert!(!line("##\0[group]", 99).contains("##"));
    }

    #[test]
    fn line_too_long_is_cut_at_a_character() {
        assert_eq!(line("äöüß", 4), "äöüß");
        assert_eq!(line("äöüß", 3), "äö…");
        assert_eq!(line(&"x".repeat(5_000), 1_000).chars().count(), 1_000);
    }

    #[test]
    fn relative_path_outside_is_refused() {
        assert_eq!(
            relative_path("run-1\\report.html").as_deref(),
            Some("run-1/report.html")
        );
        for path in [
            "",
            "/etc/passwd",
            "a/../../b",
            "C:\\x",
            "a]]b",
            "a\nb",
            "//h/x",
        ] {
            assert_eq!(relative_path(path), None, "{path:?}");
        }
    }

    #[test]
    fn markup_has_no_tags() {
        assert_eq!(
            markup("<script a='\"'>&]]>"),
            "&lt;script a=&#39;&quot;&#39;&gt;&amp;]]&gt;"
        );
    }
}
