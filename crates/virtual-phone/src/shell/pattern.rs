//! Shell patterns: `*`, `?`, `[…]`.

use regex::Regex;

/// A character of a pattern; quoted ones are literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PatternChar {
    pub(crate) c: char,
    pub(crate) quoted: bool,
}

/// A pattern that matches whole texts.
pub(crate) struct Pattern(Option<Regex>);

impl Pattern {
    /// Returns a pattern; one that is not valid, such as `[z-a]`, matches nothing.
    pub(crate) fn new(pattern: &[PatternChar]) -> Pattern {
        let mut expression = r"(?s)\A".to_owned();
        let mut rest = pattern;
        while let [one, after @ ..] = rest {
            rest = after;
            // The first character of a set can be a parenthesis.
            let closed = after.iter().skip(1).position(|p| p.c == ']' && !p.quoted);
            match (one.c, closed) {
                ('*', _) if !one.quoted => expression.push_str(".*"),
                ('?', _) if !one.quoted => expression.push('.'),
                ('[', Some(end)) if !one.quoted => {
                    let negated = matches!(after[0].c, '!' | '^');
                    let set = &after[usize::from(negated)..=end];
                    expression.push_str(if negated { "[^" } else { "[" });
                    for p in set {
                        let plain = p.c.is_alphanumeric() || p.c == '-';
                        expression.extend((!plain).then_some('\\').into_iter().chain([p.c]));
                    }
                    expression.push(']');
                    rest = &after[end + 2..];
                }
                (c, _) => expression.push_str(&regex::escape(&c.to_string())),
            }
        }
        Pattern(Regex::new(&(expression + r"\z")).ok())
    }

    pub(crate) fn matches(&self, text: &str) -> bool {
        self.0.as_ref().is_some_and(|regex| regex.is_match(text))
    }
}

/// Returns whether all of `text` matches a pattern without quotes.
pub(crate) fn matches_text(pattern: &str, text: &str) -> bool {
    let chars = pattern.chars().map(|c| PatternChar { c, quoted: false });
    Pattern::new(&chars.collect::<Vec<_>>()).matches(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_sh() {
        let hit = matches_text;
        for (p, t) in [
            ("*", ""),
            ("a*c", "abbc"),
            ("a?c", "abc"),
            ("[a-c]x", "bx"),
            ("[!a-c]x", "dx"),
            ("[]x]", "]"),
            ("[", "["),
            ("*.so", "libc.so"),
            ("", ""),
        ] {
            assert!(hit(p, t), "{p} {t}");
        }
        for (p, t) in [
            ("a*c", "ab"),
            ("?", ""),
            ("[a-c]", "d"),
            ("a", ""),
            ("", "a"),
            ("[z-a]", "b"),
        ] {
            assert!(!hit(p, t), "{p} {t}");
        }
        assert!(!hit(&"*a".repeat(500), &"b".repeat(5_000)));
    }
}
