//! What a file is, by its first bytes.

use perfetto_heap::looks_like_trace;
use perfetto_heap::wire::{Fields, Value};
use std::fmt;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A Perfetto trace, possibly damaged.
    Trace,
    /// gzip.
    Gzip,
    /// Zstandard.
    Zstd,
    /// xz.
    Xz,
    /// bzip2.
    Bzip2,
    /// ZIP.
    Zip,
    /// TAR.
    Tar,
    /// Nothing at all.
    Empty,
    /// Only zero bytes.
    Zeros,
    /// ELF: a library or program.
    Elf,
    /// A Java heap dump.
    Hprof,
    /// A pprof profile.
    Pprof,
    /// An SQLite database.
    Sqlite,
    /// An HTML page.
    Html,
    /// JSON.
    Json,
    /// Text.
    Text,
    /// None of these.
    Unknown,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Trace => "a Perfetto trace",
            Kind::Gzip => "a gzip file",
            Kind::Zstd => "a zstd file",
            Kind::Xz => "an xz file",
            Kind::Bzip2 => "a bzip2 file",
            Kind::Zip => "a ZIP archive",
            Kind::Tar => "a TAR archive",
            Kind::Empty => "empty",
            Kind::Zeros => "nothing but zero bytes",
            Kind::Elf => "an ELF file, a library or program",
            Kind::Hprof => "an HPROF, a Java heap dump",
            Kind::Pprof => "a pprof profile, as `convert` writes them",
            Kind::Sqlite => "an SQLite database",
            Kind::Html => "an HTML page",
            Kind::Json => "JSON",
            Kind::Text => "text",
            Kind::Unknown => "of no kind that heaptap knows",
        })
    }
}

impl Kind {
    /// Whether it can be a text: it is none of the kinds that are told by their first bytes.
    pub fn may_be_text(self) -> bool {
        matches!(
            self,
            Kind::Text | Kind::Json | Kind::Html | Kind::Empty | Kind::Unknown
        )
    }

    /// What to do instead.
    pub fn help(self) -> &'static str {
        match self {
            Kind::Empty | Kind::Zeros => {
                "nothing was written to it, or the disk was full: fetch it again from the device"
            }
            Kind::Elf => "this may be the library to symbolize with: give the trace here",
            Kind::Pprof => {
                "`heaptap top` and `heaptap report` show it; to convert, give the trace it came from"
            }
            Kind::Hprof => "`heaptap hprof info` says what it holds, `heaptap top` shows it",
            Kind::Bzip2 => "unpack it with `bunzip2` first",
            Kind::Html => "a server's error page may have been saved in place of the trace",
            _ => {
                "give raw-trace of a recording's folder, a *.pftrace, or one of them in gzip, \
                 zstd, xz, ZIP or TAR"
            }
        }
    }
}

impl Kind {
    /// What to do instead, where heaps of any kind are wanted.
    pub fn help_with_heaps(self) -> &'static str {
        match self {
            Kind::Elf | Kind::Html | Kind::Empty | Kind::Zeros | Kind::Bzip2 => self.help(),
            _ => {
                "give a trace (a recording's folder, *.pftrace), a pprof (*.pb.gz), or an HPROF \
                 as `am dumpheap` or `jmap -dump` writes it"
            }
        }
    }

    /// What to do instead, where an HPROF is wanted, or a Java heap.
    pub fn help_with_hprof(self) -> &'static str {
        match self {
            Kind::Trace => "it is a Perfetto trace: `heaptap top` and `heaptap convert` read it",
            Kind::Pprof => {
                "`heaptap top` and `heaptap report` show it; give the dump or trace it came from"
            }
            Kind::Elf | Kind::Html | Kind::Empty | Kind::Zeros | Kind::Bzip2 => self.help(),
            _ => {
                "give what `am dumpheap` or `jmap -dump` wrote, plain or in gzip, zstd, xz, ZIP \
                 or TAR"
            }
        }
    }
}

/// Tells a file by its first bytes (64 KiB are enough).
pub fn detect(head: &[u8]) -> Kind {
    if head.is_empty() {
        return Kind::Empty;
    }
    for (magic, kind) in [
        (&[0x1f, 0x8b][..], Kind::Gzip),
        (&[0x28, 0xb5, 0x2f, 0xfd], Kind::Zstd),
        (b"\xfd7zXZ\0", Kind::Xz),
        (b"PK\x03\x04", Kind::Zip),
        (b"PK\x05\x06", Kind::Zip),
        (b"\x7fELF", Kind::Elf),
        (b"JAVA PROFILE 1.0", Kind::Hprof),
        (b"SQLite format 3\0", Kind::Sqlite),
    ] {
        if head.starts_with(magic) {
            return kind;
        }
    }
    // The level, then the first block.
    if head.starts_with(b"BZh") && head.get(4..10) == Some(b"1AY&SY") {
        return Kind::Bzip2;
    }
    if head.get(257..262) == Some(b"ustar") {
        return Kind::Tar;
    }
    if looks_like_pprof(head) {
        return Kind::Pprof;
    }
    if looks_like_trace(head) {
        return Kind::Trace;
    }
    if head.iter().all(|&byte| byte == 0) {
        return Kind::Zeros;
    }
    text_kind(head).unwrap_or(Kind::Unknown)
}

fn text_kind(head: &[u8]) -> Option<Kind> {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        // A letter cut at the end of the head.
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&head[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    let odd = |c: char| c.is_control() && !c.is_whitespace() && c != '\u{1b}';
    if text.chars().any(odd) {
        return None;
    }
    let start = text.trim_start();
    let begins = |start: &str, tag: &str| {
        let head = start.get(..tag.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(tag))
    };
    Some(if start.starts_with(['{', '[']) {
        Kind::Json
    } else if ["<!doctype", "<html"].iter().any(|tag| begins(start, tag)) {
        Kind::Html
    } else {
        Kind::Text
    })
}

/// pprof begins with its sample types, each two string indices as varints, perhaps with more
/// bytes than they need: `0a 04 08 01 10 02`. Samples, mappings, locations or strings follow. No
/// packet of a trace holds just that.
fn looks_like_pprof(head: &[u8]) -> bool {
    let mut fields = Fields::new(head);
    let mut types = 0;
    loop {
        match fields.next() {
            Ok(Some((1, Value::Bytes(message)))) if is_value_type(message) => types += 1,
            Ok(Some((2..=6, Value::Bytes(_)))) => return types > 0,
            Ok(Some(_)) => return false,
            Ok(None) => return types > 0,
            // A field that is longer than the head, of which only the tag is looked at.
            Err(_) => {
                let tag = head.get(fields.position());
                return types > 0 && matches!(tag, Some(0x12 | 0x1a | 0x22 | 0x2a | 0x32));
            }
        }
    }
}

fn is_value_type(message: &[u8]) -> bool {
    let mut fields = Fields::new(message);
    let mut count = 0;
    while let Ok(Some((number, Value::Varint(_)))) = fields.next() {
        if !matches!(number, 1 | 2) {
            return false;
        }
        count += 1;
    }
    (1..=2).contains(&count) && fields.position() == message.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_files_by_their_first_bytes() {
        for (head, kind) in [
            (&b""[..], Kind::Empty),
            (&[0; 500], Kind::Zeros),
            (b"\x7fELF\x02\x01", Kind::Elf),
            (b"JAVA PROFILE 1.0.3\0", Kind::Hprof),
            (b"BZh91AY&SY\x9c", Kind::Bzip2),
            (b"BZh is how bzip2 files begin", Kind::Text),
            (b"\xfd7zXZ\0\0\x04", Kind::Xz),
            (
                b"\x0a\x04\x08\x01\x10\x02\x0a\x04\x08\x03\x10\x04\x12\x06",
                Kind::Pprof,
            ),
            // Lengths in four bytes, as Perfetto writes them.
            (
                b"\x0a\x84\x80\x80\x00\x08\x01\x10\x02\x12\xff\x01\x0a",
                Kind::Pprof,
            ),
            (b"\x0a\x04\x08\x05\x50\x01", Kind::Trace),
            (b"{\"traceEvents\":[]}", Kind::Json),
            (b"<!DOCTYPE html>", Kind::Html),
            (b"<!doctype html>", Kind::Html),
            (b"# tracer: nop\n", Kind::Text),
            (b"\x01\x02\x03", Kind::Unknown),
            (b"\x0a", Kind::Text),
        ] {
            assert_eq!(detect(head), kind, "{head:?}");
        }
    }
}
