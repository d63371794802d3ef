//! Logs that Android Studio exports in JSON (`.logcat`): facts of the device, then
//! `logcatMessages`, each with a header and a message. The messages are read one by one.

use std::cell::Cell;
use std::fmt;
use std::io::{self, BufReader, Read};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::log::GcLog;
use super::logcat::{Format, LogLine};
use super::stamp::Stamp;

/// Key of the messages.
const MESSAGES: &str = "logcatMessages";
/// Maximum number of bytes from one message to the next; further ones would be held in memory.
const MAX_MESSAGE_LENGTH: u64 = 1 << 20;

/// Returns whether a text begins like an export.
pub fn is_export(head: &[u8]) -> bool {
    head.trim_ascii_start().starts_with(b"{")
        && memchr::memmem::find(head, b"\"logcatMessages\"").is_some()
}

/// Reads all messages of an export into `log`.
///
/// # Errors
/// Returns an error if the text cannot be read or is not such JSON; the messages before it are in
/// `log`.
pub fn push_export(log: &mut GcLog, text: impl Read) -> io::Result<()> {
    let left = Cell::new(MAX_MESSAGE_LENGTH);
    let text = BufReader::new(Limited {
        inner: text,
        left: &left,
    });
    let mut json = serde_json::Deserializer::from_reader(text);
    let read = Export { log, left: &left }.deserialize(&mut json);
    read.map_err(io::Error::from)
}

/// A reader that fails if `left` bytes were read before it was set again.
struct Limited<'a, R> {
    inner: R,
    left: &'a Cell<u64>,
}

impl<R: Read> Read for Limited<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(out)?;
        let left = self.left.get().checked_sub(read as u64);
        self.left
            .set(left.ok_or_else(|| io::Error::other("a message is too long"))?);
        Ok(read)
    }
}

/// Passes each line of a message to the log.
fn push(log: &mut GcLog, message: &Value) {
    let header = &message["header"];
    let text = |key: &str| header[key].as_str().unwrap_or_default().trim();
    // Studio names a process that it does not know `pid-123`.
    let is_name = |name: &&str| !name.is_empty() && *name != "?" && !name.starts_with("pid-");
    let names = ["processName", "applicationId"].map(text);
    let number = |key: &str| header["timestamp"][key].as_u64();
    for line in message["message"].as_str().unwrap_or_default().lines() {
        log.lines += 1;
        log.push_line(&LogLine {
            format: Format::Studio,
            time: number("seconds").map(|seconds| {
                let ns = seconds.saturating_mul(1_000_000_000);
                Stamp::Epoch(ns.saturating_add(number("nanos").unwrap_or(0)))
            }),
            pid: header["pid"].as_u64().and_then(|pid| pid.try_into().ok()),
            level: text("logLevel").chars().next(),
            tag: Some(text("tag")),
            package: names.into_iter().find(is_name),
            message: line,
        });
    }
}

/// The object around the messages, and their array.
struct Export<'a> {
    log: &'a mut GcLog,
    left: &'a Cell<u64>,
}

impl<'de> DeserializeSeed<'de> for Export<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Export<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a log exported by Android Studio")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == MESSAGES {
                map.next_value_seed(Export {
                    log: self.log,
                    left: self.left,
                })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<(), A::Error> {
        while let Some(message) = all.next_element::<Value>()? {
            push(self.log, &message);
            self.left.set(MAX_MESSAGE_LENGTH);
        }
        Ok(())
    }
}
