//! Comparison of process names in a config with processes. Owns the rules of heapprofd
//! and of ART's heap dumps; independent of devices.
//!
//! Both compare with argv0 (the first string of `/proc/PID/cmdline`), not with the 15-byte
//! thread name or the executable:
//! * **exact** (heapprofd on every version; Java dumps on Android 11 and 12): name and argv0
//!   are each cut at the first `@`, then everything up to the last `/` is dropped;
//! * **glob** (Java dumps from Android 13 on, for every name; heapprofd v57 and later, for
//!   names with `*`): `fnmatch` without escapes. A pattern that starts with `/` is compared with
//!   the whole argv0, any other with the part after its last `/`. Nothing is cut at `@`.
//!
//! heaptap resolves names with `*` itself, so that they work on every version.

use heaptap_model::names::basename;

/// Maximum length of argv0 in bytes; the exact rule never matches longer ones.
const ARGV0_LIMIT: usize = 511;

/// Returns the name as heapprofd compares it: cut at the first `@`, then after the last `/`.
pub fn normalized(name: &str) -> &str {
    let name = name.split('@').next().unwrap_or(name);
    basename(name)
}

/// Returns whether heaptap resolves this name to the processes it matches.
pub fn is_pattern(name: &str) -> bool {
    name.contains('*')
}

/// Returns whether `name`, as given for a native profile, matches a process with this argv0.
pub fn matches_native(name: &str, argv0: &str) -> bool {
    match is_pattern(name) {
        true if name.starts_with('/') => fnmatch(name, argv0),
        true => fnmatch(name, basename(argv0)),
        false => {
            let can_match = argv0.len() <= ARGV0_LIMIT && !name.is_empty();
            can_match && normalized(name) == normalized(argv0)
        }
    }
}

/// Implements `fnmatch(pattern, text, FNM_NOESCAPE)`: `*` and `?` match `/` too, `[a-z]` and
/// `[!a-z]` are classes, `[` without `]` matches itself. Runs in O(text × pattern).
pub fn fnmatch(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        let step = match pattern.get(p) {
            Some('*') => {
                retry = Some((p + 1, t));
                p += 1;
                continue;
            }
            Some('?') => Some(p + 1),
            Some('[') => match class(&pattern, p, text[t]) {
                Some((end, matched)) => matched.then_some(end),
                None => (text[t] == '[').then_some(p + 1),
            },
            Some(&c) => (c == text[t]).then_some(p + 1),
            None => None,
        };
        match (step, retry) {
            (Some(next), _) => {
                p = next;
                t += 1;
            }
            (None, Some((after_star, from))) => {
                p = after_star;
                t = from + 1;
                retry = Some((after_star, from + 1));
            }
            (None, None) => return false,
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

/// Parses the class that opens at `open`: the index after its `]`, and whether `c` is in it.
fn class(pattern: &[char], open: usize, c: char) -> Option<(usize, bool)> {
    let mut at = open + 1;
    let negated = matches!(pattern.get(at), Some('!' | '^'));
    if negated {
        at += 1;
    }
    let first = at;
    let mut found = false;
    loop {
        let low = *pattern.get(at)?;
        if low == ']' && at > first {
            return Some((at + 1, found != negated));
        }
        let ranged = pattern.get(at + 1) == Some(&'-')
            && pattern.get(at + 2).is_some_and(|&high| high != ']');
        if ranged {
            found |= (low..=pattern[at + 2]).contains(&c);
            at += 3;
        } else {
            found |= low == c;
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_rule_cuts_at_the_at_sign_and_the_last_slash() {
        for (name, argv0, matches) in [
            ("com.x", "com.x", true),
            ("com.x", "com.x:remote", false),
            ("com.x:remote", "com.x:remote", true),
            ("com.x", "com.xyz", false),
            ("surfaceflinger", "/system/bin/surfaceflinger", true),
            ("/system/bin/surfaceflinger", "surfaceflinger", true),
            (
                "/vendor/bin/surfaceflinger",
                "/system/bin/surfaceflinger",
                true,
            ),
            ("a.b@1.0-service", "/vendor/bin/a.b@1.0-service", true),
            ("a.b", "/vendor/bin/a.b@2.0-service", true),
            ("dir", "/data/local/tmp/dir@2/app_four", true),
            ("app_four", "/data/local/tmp/dir@2/app_four", false),
            ("", "", false),
        ] {
            assert_eq!(matches_native(name, argv0), matches, "{name} {argv0}");
        }
        let long = "a".repeat(512);
        assert!(!matches_native(&long, &long));
        assert!(matches_native(&long[1..], &long[1..]));
    }

    #[test]
    fn glob_rule_takes_the_basename_unless_the_pattern_has_a_root() {
        for (name, argv0, matches) in [
            ("com.x*", "com.x:remote", true),
            ("com.x*", "com.xyz", true),
            ("com.x*", "org.com.x", false),
            ("*", "anything", true),
            ("*flinger", "/system/bin/surfaceflinger", true),
            ("/system/*", "/system/bin/surfaceflinger", true),
            ("/vendor/*", "/system/bin/surfaceflinger", false),
            ("a.b*", "/vendor/bin/a.b@1.0-service", true),
            ("*1.0-service", "/vendor/bin/a.b@1.0-service", true),
        ] {
            assert_eq!(matches_native(name, argv0), matches, "{name} {argv0}");
        }
    }

    #[test]
    fn fnmatch_knows_classes_and_stray_brackets() {
        for (pattern, text, matches) in [
            ("[!a]b", "cb", true),
            ("[!a]b", "ab", false),
            ("[]]", "]", true),
            ("[", "[", true),
            ("[a", "[a", true),
            ("[a-]", "-", true),
            ("a\\*", "a\\b", true),
            ("**a**", "bab", true),
            ("", "", true),
            ("?", "", false),
            ("日*", "日本", true),
        ] {
            assert_eq!(fnmatch(pattern, text), matches, "{pattern} {text}");
        }
        // Backtracks once per star, not once per combination of stars.
        let evil = "*a".repeat(200) + "b";
        assert!(!fnmatch(&evil, &"a".repeat(5000)));
    }
}
