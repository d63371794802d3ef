//! Shell patterns: `*`, `?`, `[…]`.

/// A character of a pattern; quoted ones are literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PatternChar {
    pub(crate) c: char,
    pub(crate) quoted: bool,
}

fn unquoted(text: &str) -> Vec<PatternChar> {
    text.chars()
        .map(|c| PatternChar { c, quoted: false })
        .collect()
}

/// Returns whether a pattern contains special characters.
pub(crate) fn is_magic(pattern: &[PatternChar]) -> bool {
    pattern.iter().any(|p| !p.quoted && "*?[".contains(p.c))
}

/// Returns whether all of `text` matches a pattern without quotes.
pub(crate) fn matches_text(pattern: &str, text: &str) -> bool {
    matches(&unquoted(pattern), &text.chars().collect::<Vec<_>>())
}

/// Returns whether all of `text` matches. Takes time proportional to pattern times text at most.
pub(crate) fn matches(pattern: &[PatternChar], text: &[char]) -> bool {
    let (mut p, mut t) = (0, 0);
    // Position of the last star, and the length of the text that it matched.
    let mut star: Option<(usize, usize)> = None;
    loop {
        if let Some(one) = pattern.get(p) {
            if one.c == '*' && !one.quoted {
                star = Some((p, t));
                p += 1;
                continue;
            }
            if let Some(c) = text.get(t)
                && let Some(next) = match_one(pattern, p, *c)
            {
                p = next;
                t += 1;
                continue;
            }
        } else if t == text.len() {
            return true;
        }
        match star {
            Some((sp, st)) if st < text.len() => {
                star = Some((sp, st + 1));
                p = sp + 1;
                t = st + 1;
            }
            _ => return false,
        }
    }
}

/// Matches one character and returns the next position in the pattern.
fn match_one(pattern: &[PatternChar], p: usize, c: char) -> Option<usize> {
    let one = pattern[p];
    match one.c {
        '?' if !one.quoted => Some(p + 1),
        '[' if !one.quoted => match bracket(pattern, p, c) {
            Some((hit, next)) => hit.then_some(next),
            None => (c == '[').then_some(p + 1),
        },
        plain => (plain == c).then_some(p + 1),
    }
}

/// Parses a `[…]` at `p`: returns whether it contains `c`, and the position after it; `None` if it
/// is not closed.
fn bracket(pattern: &[PatternChar], p: usize, c: char) -> Option<(bool, usize)> {
    let mut at = p + 1;
    let negated = pattern.get(at).is_some_and(|x| x.c == '!' || x.c == '^');
    if negated {
        at += 1;
    }
    let first = at;
    let mut hit = false;
    loop {
        let x = pattern.get(at)?;
        if x.c == ']' && !x.quoted && at > first {
            return Some((hit != negated, at + 1));
        }
        let range = pattern.get(at + 1).is_some_and(|d| d.c == '-' && !d.quoted)
            && pattern.get(at + 2).is_some_and(|e| e.c != ']');
        if range {
            hit |= (x.c..=pattern[at + 2].c).contains(&c);
            at += 3;
        } else {
            hit |= x.c == c;
            at += 1;
        }
    }
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
        ] {
            assert!(!hit(p, t), "{p} {t}");
        }
        assert!(!hit(&"*a".repeat(500), &"b".repeat(5_000)));
    }
}
