//! `OutOfMemoryError`: as the runtimes announce it, as stack traces report it, with the figures
//! that its message gives.

use serde::Serialize;

use super::size::{plain, size};

/// Characters of a message that are kept.
const MOST_TEXT: usize = 1000;

/// How Dalvik announces one.
const DALVIK: [&str; 2] = ["Out of memory on a ", "Out of memory: Heap Size="];

/// An `OutOfMemoryError`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct OutOfMemory {
    /// The error's own message; empty where there is none.
    pub text: String,
    /// The runtime says that it throws it; else somebody reports one that was thrown.
    #[serde(skip)]
    pub thrown: bool,
    /// Bytes asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wanted: Option<u64>,
    /// Bytes free in the heap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free: Option<u64>,
    /// Bytes until the heap may grow no more; cut off at the unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_limit: Option<u64>,
    /// What the heap may take up before the next collection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub footprint: Option<u64>,
    /// What it may ever take up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub growth_limit: Option<u64>,
    /// The largest piece that was free: it is fragmentation that fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest_free: Option<u64>,
    /// There was room, but too little of it after a collection, percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given_up_below: Option<u64>,
    /// Virtual memory of the process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_bytes: Option<u64>,
}

/// Reads a message that speaks of an `OutOfMemoryError` thrown.
pub(super) fn parse(message: &str) -> Option<OutOfMemory> {
    let (text, thrown) = if let Some(rest) = message.strip_prefix("Throwing OutOfMemoryError") {
        (quoted(rest), true)
    } else if let Some(rest) = after(message, "java.lang.OutOfMemoryError") {
        (rest.strip_prefix(':').unwrap_or(rest).trim(), false)
    } else if DALVIK.iter().any(|start| message.starts_with(start)) {
        (message, true)
    } else if wanted(message).is_some() {
        (message, false)
    } else {
        return None;
    };
    let mut found = OutOfMemory {
        text: text.chars().take(MOST_TEXT).collect(),
        thrown,
        ..OutOfMemory::default()
    };
    figures(text, &mut found);
    found.virtual_bytes =
        between(message, "(VmSize ", " kB").and_then(|n| plain(n)?.checked_mul(1024));
    Some(found)
}

/// What stands in the outermost quotes, or all of it.
fn quoted(rest: &str) -> &str {
    let rest = rest.trim();
    match (rest.find('"'), rest.rfind('"')) {
        (Some(open), Some(close)) if open < close => &rest[open + 1..close],
        _ => rest,
    }
}

/// What follows the class's name, where it stands as a whole: not `OutOfMemoryError.<init>`,
/// not `com.example.java.lang.…`.
fn after<'a>(message: &'a str, class: &str) -> Option<&'a str> {
    let at = message.find(class)?;
    let part = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '$');
    let before = message[..at].chars().next_back();
    let rest = &message[at + class.len()..];
    (!before.is_some_and(part) && !rest.starts_with(part) && !rest.starts_with(')')).then_some(rest)
}

fn wanted(text: &str) -> Option<u64> {
    plain(between(
        text,
        "Failed to allocate a ",
        " byte allocation with ",
    )?)
}

fn between<'a>(text: &'a str, from: &str, to: &str) -> Option<&'a str> {
    let rest = &text[text.find(from)? + from.len()..];
    Some(&rest[..rest.find(to)?])
}

fn figures(text: &str, found: &mut OutOfMemory) {
    found.wanted =
        wanted(text).or_else(|| plain(between(text, "Out of memory on a ", "-byte allocation")?));
    found.free = between(text, " allocation with ", " free bytes").and_then(plain);
    found.until_limit = between(text, " free bytes and ", " until OOM")
        .and_then(size)
        .and_then(super::size::Printed::unsigned);
    let number = |key: &str| {
        let rest = &text[text.find(key)? + key.len()..];
        let end = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        plain(&rest[..end])
    };
    found.footprint = number("max allowed footprint ").or_else(|| number("target footprint "));
    found.growth_limit = number("growth limit ");
    found.largest_free = number("largest possible contiguous allocation ");
    found.given_up_below = number("giving up on allocation because <");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_give_their_figures() {
        let found = parse(
            "Throwing OutOfMemoryError \"Failed to allocate a 16777228 byte allocation with \
             8388608 free bytes and 8MB until OOM, target footprint 201326592, growth limit \
             268435456; failed due to fragmentation (largest possible contiguous allocation \
             4096 bytes)\" (VmSize 1543210 kB, recursive case)",
        )
        .unwrap();
        assert!(found.thrown && found.text.starts_with("Failed to allocate a"));
        assert_eq!(found.wanted, Some(16_777_228));
        assert_eq!(found.free, Some(8_388_608));
        assert_eq!(found.until_limit, Some(8 << 20));
        assert_eq!(found.footprint, Some(201_326_592));
        assert_eq!(found.growth_limit, Some(268_435_456));
        assert_eq!(found.largest_free, Some(4096));
        assert_eq!(found.virtual_bytes, Some(1_543_210 * 1024));

        let found = parse("Caused by: java.lang.OutOfMemoryError: pthread_create (1040KB stack) failed: Try again").unwrap();
        assert!(!found.thrown && found.wanted.is_none());
        assert_eq!(
            found.text,
            "pthread_create (1040KB stack) failed: Try again"
        );
        let found = parse("java.lang.OutOfMemoryError: Failed to allocate a 12 byte allocation with 4 free bytes and 96B until OOM; giving up on allocation because <1% of heap free after GC.").unwrap();
        assert_eq!(
            (found.given_up_below, found.until_limit),
            (Some(1), Some(96))
        );
        assert_eq!(
            parse("Out of memory on a 10000-byte allocation.")
                .unwrap()
                .wanted,
            Some(10_000)
        );
        assert_eq!(parse("java.lang.OutOfMemoryError").unwrap().text, "");
        for text in [
            "at java.lang.OutOfMemoryError.<init>(OutOfMemoryError.java:33)",
            "caught (java.lang.OutOfMemoryError)",
            "avoiding OutOfMemoryError",
            "Failed to allocate a buffer",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
