//! File type detection by the first bytes.

use perfetto_heap::looks_like_trace;
use perfetto_heap::wire::{Fields, Value};
use std::fmt;

/// A file type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Trace,
    Gzip,
    Zstd,
    Xz,
    Bzip2,
    Zip,
    Tar,
    /// A file without content.
    Empty,
    /// A file of only zero bytes.
    Zeros,
    /// An ELF library or program.
    Elf,
    /// A Java heap dump.
    Hprof,
    Pprof,
    Sqlite,
    Html,
    /// A page of `heaptap report`.
    Report,
    Json,
    /// A text whose beginning shows what wrote it.
    Known(KnownText),
    Text,
    /// None of the other types.
    Unknown,
}

/// A text that is no heap, by what wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownText {
    Meminfo,
    /// smaps or showmap.
    Mappings,
    Log,
    Bugreport,
    MallocInfo,
    /// A heap profile in the text form of gperftools.
    LegacyHeap,
    /// The same of jemalloc.
    JemallocHeap,
}

impl KnownText {
    fn name(self) -> &'static str {
        match self {
            KnownText::Meminfo => "output of `dumpsys meminfo`",
            KnownText::Mappings => "a text of memory mappings",
            KnownText::Log => "a log",
            KnownText::Bugreport => "a bug report",
            KnownText::MallocInfo => "XML of malloc_info",
            KnownText::LegacyHeap => "a heap profile in the text form of gperftools",
            KnownText::JemallocHeap => "a heap profile in the text form of jemalloc",
        }
    }

    /// Returns what reads it.
    fn help(self) -> &'static str {
        match self {
            KnownText::Meminfo => "read it with `heaptap meminfo`",
            KnownText::Mappings => "read it with `heaptap smaps`",
            KnownText::Log => "read its garbage collections with `heaptap gc`",
            KnownText::Bugreport => BUGREPORT_HELP,
            KnownText::MallocInfo => "read it with `heaptap meminfo --reconcile`",
            KnownText::LegacyHeap => {
                "convert it with Google's pprof, which needs the program for its names: `pprof \
                 -proto PROGRAM FILE > profile.pb.gz`"
            }
            KnownText::JemallocHeap => {
                "convert it with `jeprof --raw PROGRAM FILE > raw`, then `pprof -proto raw > \
                 profile.pb.gz`"
            }
        }
    }
}

/// Help for a bug report, where another input is required.
pub(super) const BUGREPORT_HELP: &str =
    "read its parts with `heaptap gc`, `heaptap meminfo` or `heaptap smaps`";

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
            Kind::Zeros => "filled with zero bytes",
            Kind::Elf => "an ELF file (library or program)",
            Kind::Hprof => "an HPROF (Java heap dump)",
            Kind::Pprof => "a pprof profile",
            Kind::Sqlite => "an SQLite database",
            Kind::Html => "an HTML page",
            Kind::Report => "a page of `heaptap report`",
            Kind::Json => "JSON",
            Kind::Known(text) => text.name(),
            Kind::Text => "text",
            Kind::Unknown => "of an unknown type",
        })
    }
}

impl Kind {
    /// Returns whether the input can be a text, that is, whether its first bytes do not identify
    /// another type.
    pub fn may_be_text(self) -> bool {
        matches!(
            self,
            Kind::Text
                | Kind::Known(_)
                | Kind::Json
                | Kind::Html
                | Kind::Report
                | Kind::Empty
                | Kind::Unknown
        )
    }

    /// Returns the help text for commands that require a trace.
    pub fn help(self) -> &'static str {
        match self {
            Kind::Empty | Kind::Zeros => {
                "fetch it again from the device: nothing was written, or the disk was full"
            }
            Kind::Elf => "pass the trace instead: this file might be a library for symbolization",
            Kind::Pprof => {
                "view it with `heaptap top` or `heaptap report`, or pass the original trace"
            }
            Kind::Hprof => "inspect it with `heaptap hprof info` or `heaptap top`",
            Kind::Bzip2 => "unpack it with `bunzip2` first",
            Kind::Known(text) => text.help(),
            Kind::Html => "fetch the trace again: this might be an error page from a server",
            Kind::Report => {
                "open it in a browser, or pass the recording directory or file that it shows"
            }
            _ => {
                "pass raw-trace from a recording directory or a *.pftrace file, raw or in gzip, \
                 zstd, xz, ZIP or TAR"
            }
        }
    }
}

impl Kind {
    /// Returns the help text for commands that accept heaps of any type.
    pub fn help_with_heaps(self) -> &'static str {
        match self {
            Kind::Elf
            | Kind::Html
            | Kind::Report
            | Kind::Empty
            | Kind::Zeros
            | Kind::Bzip2
            | Kind::Known(_) => self.help(),
            _ => {
                "pass a trace (recording directory or *.pftrace), a pprof (*.pb.gz), or an HPROF \
                 (from `am dumpheap` or `jmap -dump`)"
            }
        }
    }

    /// Returns the help text for commands that require an HPROF or a Java heap.
    pub fn help_with_hprof(self) -> &'static str {
        match self {
            Kind::Trace => "use `heaptap top` or `heaptap convert` for a Perfetto trace",
            Kind::Pprof => {
                "view it with `heaptap top` or `heaptap report`, or pass the original dump or trace"
            }
            Kind::Elf
            | Kind::Html
            | Kind::Report
            | Kind::Empty
            | Kind::Zeros
            | Kind::Bzip2
            | Kind::Known(_) => self.help(),
            _ => {
                "pass the output of `am dumpheap` or `jmap -dump`, raw or in gzip, zstd, xz, ZIP \
                 or TAR"
            }
        }
    }
}

/// Mark in the head of a page of `heaptap report`.
pub const REPORT_MARK: &str = "<meta name=\"generator\" content=\"heaptap";

/// Detects the file type from the first bytes; 64 KiB are enough.
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
    // After the compression level comes the first block.
    if head.starts_with(b"BZh") && head.get(4..10) == Some(b"1AY&SY") {
        return Kind::Bzip2;
    }
    if head.get(257..262) == Some(b"ustar") {
        return Kind::Tar;
    }
    if looks_like_pprof(head) {
        return Kind::Pprof;
    }
    // Before traces: each newline of a text is the tag of a packet.
    if let Some(text) = text_kind(head) {
        return text;
    }
    if looks_like_trace(head) {
        return Kind::Trace;
    }
    match head.iter().all(|&byte| byte == 0) {
        true => Kind::Zeros,
        false => Kind::Unknown,
    }
}

/// Beginnings of known texts; `0` is any digit. Texts of devices can have control characters and
/// bytes of other encodings, from file names and log messages.
const KNOWN_TEXTS: [(&str, KnownText); 14] = [
    ("** MEMINFO in pid ", KnownText::Meminfo),
    ("Applications Memory Usage", KnownText::Meminfo),
    ("Total PSS by process", KnownText::Meminfo),
    ("--------- beginning of ", KnownText::Log),
    ("00-00 00:00:00.", KnownText::Log),
    ("0000-00-00 00:00:00.", KnownText::Log),
    ("== dumpstate: ", KnownText::Bugreport),
    ("------ SHOW MAP ", KnownText::Mappings),
    ("virtual                     shared ", KnownText::Mappings),
    ("==> /proc/", KnownText::Mappings),
    ("<malloc version=", KnownText::MallocInfo),
    ("heap profile: ", KnownText::LegacyHeap),
    ("--- symbol\nbinary=", KnownText::LegacyHeap),
    ("heap_v2/", KnownText::JemallocHeap),
];

fn known_text(head: &[u8]) -> Option<Kind> {
    let text = head.trim_ascii_start();
    if text.starts_with(b"========") {
        return Some(match super::bugreport::year(text) {
            Some(_) => Kind::Known(KnownText::Bugreport),
            None => Kind::Text,
        });
    }
    let begins = |shape: &str| {
        let shape = shape.as_bytes();
        let fits =
            |(want, byte): (&u8, &u8)| want == byte || *want == b'0' && byte.is_ascii_digit();
        text.len() >= shape.len() && shape.iter().zip(text).all(fits)
    };
    let mut known = KNOWN_TEXTS.into_iter();
    let known = known.find(|(shape, _)| begins(shape)).map(|found| found.1);
    let known = known.or(is_mapping(text).then_some(KnownText::Mappings));
    known.map(Kind::Known)
}

/// Returns whether a text begins with a mapping of smaps, such as `12c00000-32c00000 rw-p `.
fn is_mapping(text: &[u8]) -> bool {
    let mut words = text.split(|&byte| byte == b' ');
    let (range, permissions) = (words.next().unwrap_or_default(), words.next());
    let is_range = range.contains(&b'-')
        && range
            .iter()
            .all(|&byte| byte == b'-' || byte.is_ascii_hexdigit());
    is_range && matches!(permissions, Some([_, _, _, b'p' | b's']))
}

fn text_kind(head: &[u8]) -> Option<Kind> {
    if let Some(known) = known_text(head) {
        return Some(known);
    }
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        // A character is cut at the end of the head.
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
    Some(
        if start.starts_with("<?xml") && start.contains("<malloc version=") {
            Kind::Known(KnownText::MallocInfo)
        } else if start.starts_with('{') && start.contains("\"logcatMessages\"") {
            Kind::Known(KnownText::Log)
        } else if start.starts_with(['{', '[']) {
            Kind::Json
        } else if ["<!doctype", "<html"].iter().any(|tag| begins(start, tag)) {
            match start.contains(REPORT_MARK) {
                true => Kind::Report,
                false => Kind::Html,
            }
        } else {
            Kind::Text
        },
    )
}

/// Returns whether the bytes look like a pprof: only fields of a profile, in any order, among them
/// sample types and another part. Go begins with its period type. A sample type is a message of two
/// string indices as varints, possibly padded: `0a 04 08 01 10 02`. No packet of a trace contains
/// only that, and no text.
fn looks_like_pprof(head: &[u8]) -> bool {
    let mut fields = Fields::new(head);
    let (mut types, mut parts) = (0, 0);
    while types == 0 || parts == 0 {
        match fields.next() {
            Ok(Some((1, Value::Bytes(message)))) if is_value_type(message) => types += 1,
            Ok(Some((11, Value::Bytes(message)))) if is_value_type(message) => {}
            Ok(Some((2..=6, Value::Bytes(_)))) => parts += 1,
            Ok(Some((7..=10 | 12..=15, Value::Varint(_)) | (13, Value::Bytes(_)))) => {}
            Ok(Some(_)) => return false,
            Ok(None) => break,
            // The field is longer than the head: check only its tag. A table of strings can be
            // longer than the head, too; its first string is empty.
            Err(_) => {
                let tag = head.get(fields.position());
                return matches!(tag, Some(0x12 | 0x1a | 0x22 | 0x2a | 0x32))
                    && (types > 0 || parts > 1 && head.starts_with(&[0x32, 0]));
            }
        }
    }
    types > 0
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
            // As Go begins: period type, period, sample types.
            (
                b"\x5a\x04\x08\x01\x10\x02\x60\x80\x80\x20\x0a\x04\x08\x03\x10\x04\x22\x0f\x08",
                Kind::Pprof,
            ),
            // Strings first, and more of them than the head has.
            (b"\x32\0\x32\x01a\x0a\x04\x08\x01\x10\x02", Kind::Pprof),
            (b"\x32\0\x32\x01a\x32\x10b", Kind::Pprof),
            (b"\x32\0\x32\x01a\x48\x01", Kind::Unknown),
            (b"\x5a\x04\x08\x01\x10\x02\x60\x01", Kind::Unknown),
            (b"\x0a\x04\x08\x05\x50\x01", Kind::Trace),
            (b"{\"traceEvents\":[]}", Kind::Json),
            (b"<!DOCTYPE html>", Kind::Html),
            (b"<!doctype html>", Kind::Html),
            (
                b"<!doctype html>\n<meta name=\"generator\" content=\"heaptap 0.1.0\">",
                Kind::Report,
            ),
            (b"# tracer: nop\n", Kind::Text),
            (b"\x01\x02\x03", Kind::Unknown),
            (b"\x0a", Kind::Text),
            (
                b"== dumpstate: 2026-11-20\xff\n",
                Kind::Known(KnownText::Bugreport),
            ),
            (
                b"========\n== dumpstate: 2026-11-20\n",
                Kind::Known(KnownText::Bugreport),
            ),
            (
                b"heap profile:   3: 96 [  5: 160] @ heapprofile\n",
                Kind::Known(KnownText::LegacyHeap),
            ),
            (b"heap_v2/524288\n", Kind::Known(KnownText::JemallocHeap)),
            (
                b"<malloc version=\"scudo-1\">",
                Kind::Known(KnownText::MallocInfo),
            ),
            (
                b"\n virtual                     shared   shared",
                Kind::Known(KnownText::Mappings),
            ),
            (b"{\"logcatMessages\": []}", Kind::Known(KnownText::Log)),
            // Of meminfo: as a packet, its tags and lengths would be right.
            (b"\n       Private Other:     2888\n  ", Kind::Text),
        ] {
            assert_eq!(detect(head), kind, "{head:?}");
        }
    }

    #[test]
    fn device_texts_can_have_control_characters_and_latin_1() {
        // As a packet, the tags and lengths of its last lines would be right.
        let odd = |begin: &str, byte: u8| {
            let end = b"\n       Private Other:     2888\n  ";
            [begin.as_bytes(), &[byte], end].concat()
        };
        for byte in [0x01, 0x1b, 0xe9] {
            for begin in [
                "Applications Memory Usage (in Kilobytes):\n",
                "\n\n** MEMINFO in pid 4211 [caf",
                "--------- beginning of main\n",
                "11-20 07:43:00.123  4211  4219 I caf",
                "2026-11-20 07:43:00.123  4211  4219 I caf",
                "12c00000-32c00000 rw-p 00000000 00:00 0    /data/caf",
            ] {
                let head = odd(begin, byte);
                let kind = detect(&head);
                assert!(matches!(kind, Kind::Known(_)), "{begin:?} {byte:#x}");
            }
        }
        assert_eq!(detect(&odd("not one of them", 0x01)), Kind::Trace);
    }
}
