//! `OutOfMemoryError`s in announcements by the runtimes and in stack traces, with the figures in
//! the message.

use serde::Serialize;

use super::size::{plain, size};

/// Maximum number of characters kept of a message.
const MAX_TEXT: usize = 1000;

/// Starts of Dalvik's announcements.
const DALVIK: [&str; 2] = ["Out of memory on a ", "Out of memory: Heap Size="];

/// An `OutOfMemoryError`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct OutOfMemory {
    /// Message of the error; empty if it does not have one.
    pub text: String,
    /// True if the runtime announces that it throws the error. Otherwise, another line reports it.
    #[serde(skip)]
    pub thrown: bool,
    /// Requested bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "requested_bytes")]
    pub wanted: Option<u64>,
    /// Free bytes in the heap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free: Option<u64>,
    /// Bytes by which the heap can still grow, rounded down to the unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_limit: Option<u64>,
    /// Maximum size of the heap before the next collection, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub footprint: Option<u64>,
    /// Maximum size of the heap, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub growth_limit: Option<u64>,
    /// Largest free block in bytes, if the allocation failed due to fragmentation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest_free: Option<u64>,
    /// Free percentage required after a collection, if the allocation was abandoned below it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given_up_below: Option<u64>,
    /// Virtual memory of the process, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_bytes: Option<u64>,
}

/// Parses a message about a thrown `OutOfMemoryError`.
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
        text: text.chars().take(MAX_TEXT).collect(),
        thrown,
        ..OutOfMemory::default()
    };
    figures(text, &mut found);
    found.virtual_bytes =
        between(message, "(VmSize ", " kB").and_then(|n| plain(n)?.checked_mul(1024));
    Some(found)
}

/// Returns the text in the outermost quotes, or all of it if there are no quotes.
fn quoted(rest: &str) -> &str {
    let rest = rest.trim();
    match (rest.find('"'), rest.rfind('"')) {
        (Some(open), Some(close)) if open < close => &rest[open + 1..close],
        _ => rest,
    }
}

/// Returns the text after the class name if the name is complete: not `OutOfMemoryError.<init>`,
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
