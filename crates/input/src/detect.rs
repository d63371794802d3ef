//! File type detection by the first bytes.

use heaptap_base::bytes::GIT_LFS_POINTER;
use perfetto_heap::looks_like_trace;
use perfetto_heap::wire::{Fields, Value};
use std::fmt;

/// Number of first bytes used to detect the file type.
pub(super) const HEAD: usize = 64 << 10;

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
    /// A file in place of the expected one, or one that was changed on its way.
    Foreign(&'static Foreign),
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
    R8Mapping,
    /// Callstacks and values for flame graphs.
    FoldedStacks,
}

impl KnownText {
    /// Returns its name and what reads it.
    fn described(self) -> (&'static str, &'static str) {
        match self {
            KnownText::Meminfo => (
                "output of `dumpsys meminfo`",
                "read it with `heaptap meminfo`",
            ),
            KnownText::Mappings => ("a text of memory mappings", "read it with `heaptap smaps`"),
            KnownText::Log => ("a log", "read its garbage collections with `heaptap gc`"),
            KnownText::Bugreport => ("a bug report", BUGREPORT_HELP),
            KnownText::MallocInfo => (
                "XML of malloc_info",
                "read it with `heaptap meminfo --reconcile`",
            ),
            KnownText::LegacyHeap => (
                "a heap profile in the text form of gperftools",
                "convert it with Google's pprof, which needs the program for its names: `pprof \
                 -proto PROGRAM FILE > profile.pb.gz`",
            ),
            KnownText::JemallocHeap => (
                "a heap profile in the text form of jemalloc",
                "convert it with `jeprof --raw PROGRAM FILE > raw`, then `pprof -proto raw > \
                 profile.pb.gz`",
            ),
            KnownText::R8Mapping => (
                "a mapping file of R8",
                "name it with `--mapping`, and pass the recording or dump",
            ),
            KnownText::FoldedStacks => (
                "a file of folded stacks",
                "pass the recording or profile that it was made from: heaptap only writes folded \
                 stacks",
            ),
        }
    }
}

/// Help for a bug report, where another input is required.
pub(super) const BUGREPORT_HELP: &str =
    "read its parts with `heaptap gc`, `heaptap meminfo` or `heaptap smaps`";

/// A file that heaptap cannot read, with the reason and the remedy.
#[derive(Debug, PartialEq, Eq)]
pub struct Foreign(&'static str, &'static str);

const FETCH: &str = "fetch it again with `adb pull`, or with `adb exec-out` in a shell that does not \
                     convert output, such as cmd";

/// Files by their first bytes.
#[rustfmt::skip]
const FOREIGN: [(&[u8], Foreign); 7] = [
    (GIT_LFS_POINTER, Foreign("a pointer of Git LFS, not the file itself", "fetch the file with `git lfs pull`")),
    (b"JAVA PROFILE 1.0.1, created ", Foreign(
        "a text HPROF from the hprof agent, which has only a part of each object",
        "write a binary one with `-agentlib:hprof=heap=dump,format=b` or `jmap -dump:format=b`",
    )),
    (b"7z\xbc\xaf\x27\x1c", Foreign("a 7z archive", "unpack it with `7z x` first")),
    (b"Rar!\x1a\x07", Foreign("a RAR archive", "unpack it first")),
    (b"\x04\x22\x4d\x18", Foreign("an LZ4 file", "unpack it with `lz4 -d` first")),
    (b"FLR\0", Foreign(
        "a recording of JDK Flight Recorder",
        "take a heap dump with `jcmd PID GC.heap_dump FILE`",
    )),
    (b"\0\x12portable heap dump", Foreign(
        "a portable heap dump (PHD) of OpenJ9",
        "open it in Eclipse MAT with IBM DTFJ, or take an HPROF from a HotSpot VM",
    )),
];

const CORE: Foreign = Foreign(
    "a core dump of a process",
    "extract the Java heap with `jhsdb jmap --binaryheap --exe java --core FILE`",
);
const CRLF: Foreign = Foreign(
    "a binary file that was changed on its way: a CR was added before each LF",
    FETCH,
);
const UTF16: Foreign = Foreign(
    "a binary file that was changed on its way: PowerShell wrote it as text in UTF-16",
    FETCH,
);
const UTF8: Foreign = Foreign(
    "a binary file that was changed on its way: a program read and wrote it as text",
    FETCH,
);
const WITHOUT_ZEROS: Foreign = Foreign(
    "an HPROF that was changed on its way: its zero bytes are missing",
    FETCH,
);
const WITHOUT_CRS: Foreign = Foreign(
    "an HPROF that was changed on its way: its CR bytes are missing",
    FETCH,
);
const BEHIND_OTHERS: Foreign = Foreign(
    "an HPROF behind other bytes, such as a byte order mark or the output of a command",
    FETCH,
);
const SERVER_ERROR: Foreign = Foreign(
    "an error message of a server in XML",
    "fetch the file again; check its address and your access to it",
);
const BASE64: Foreign = Foreign("a file in Base64", "decode it with `base64 -d` first");

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
            Kind::Known(text) => text.described().0,
            Kind::Text => "text",
            Kind::Foreign(foreign) => foreign.0,
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

    /// Returns whether [`Kind::help`] is the same for all commands.
    fn has_own_help(self) -> bool {
        use Kind::{Bzip2, Elf, Empty, Foreign, Html, Known, Report, Zeros};
        matches!(
            self,
            Elf | Html | Report | Empty | Zeros | Bzip2 | Foreign(_) | Known(_)
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
            Kind::Known(text) => text.described().1,
            Kind::Foreign(foreign) => foreign.1,
            Kind::Html => "fetch the file again: this might be an error page from a server",
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
            kind if kind.has_own_help() => kind.help(),
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
            kind if kind.has_own_help() => kind.help(),
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
    if let Some(foreign) = foreign(head) {
        return Kind::Foreign(foreign);
    }
    for (magic, kind) in [
        (&[0x1f, 0x8b][..], Kind::Gzip),
        (&[0x28, 0xb5, 0x2f, 0xfd], Kind::Zstd),
        (b"\xfd7zXZ\0", Kind::Xz),
        (b"PK\x03\x04", Kind::Zip),
        (b"PK\x05\x06", Kind::Zip),
        (b"\x7fELF", Kind::Elf),
        (HPROF, Kind::Hprof),
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

/// Magic of every version of HPROF.
const HPROF: &[u8] = b"JAVA PROFILE 1.0";

/// Returns the file that these first bytes belong to, if it is none that heaptap reads.
fn foreign(head: &[u8]) -> Option<&'static Foreign> {
    if let Some((_, known)) = FOREIGN.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Some(known);
    }
    // Type 4 of an ELF file, in either byte order.
    if head.starts_with(b"\x7fELF") && matches!(head.get(16..18), Some([4, 0] | [0, 4])) {
        return Some(&CORE);
    }
    if let [0xff, 0xfe, units @ ..] | [0xfe, 0xff, units @ ..] = head {
        let zeros = units.chunks_exact(2).filter(|unit| *unit == [0, 0]);
        return (zeros.count() >= 4).then_some(&UTF16);
    }
    if head.starts_with(b"J\0A\0V\0A\0") || head.starts_with(b"\0J\0A\0V\0A") {
        return Some(&UTF16);
    }
    if !head.contains(&0) {
        let is_hprof = head.starts_with(HPROF) && head.get(18).is_some_and(|byte| *byte < b' ');
        return match is_hprof {
            true => Some(&WITHOUT_ZEROS),
            false => is_base64(head).then_some(&BASE64),
        };
    }
    // An archive without compression, and a text of a device, can have all of what follows.
    let is_archive = head.starts_with(b"PK") || head.get(257..262) == Some(b"ustar");
    if is_archive || known_text(head).is_some() {
        return None;
    }
    // CR is about as frequent as the bytes around it.
    let count = |byte| memchr::memchr_iter(byte, head).count();
    let around = [0x0b, 0x0c, 0x0e, 0x0f];
    let is_dense = || around.into_iter().all(|byte| count(byte) >= 16);
    if head.starts_with(HPROF) && is_dense() && count(b'\r') == 0 {
        return Some(&WITHOUT_CRS);
    }
    let line_feeds = memchr::memchr_iter(b'\n', head);
    let (mut lone, mut behind_cr) = (0, 0);
    for at in line_feeds {
        match at > 0 && head[at - 1] == b'\r' {
            true => behind_cr += 1,
            false => lone += 1,
        }
    }
    // By chance, one of 256 is.
    if lone == 0 && behind_cr >= 4 {
        return Some(&CRLF);
    }
    if is_recoded(head) {
        return Some(&UTF8);
    }
    let mut found = memchr::memmem::find_iter(head, HPROF).filter(|&at| at > 0);
    let is_header = |at: usize| {
        let rest = &head[at + HPROF.len()..];
        matches!(rest, [b'.', b'1'..=b'3', 0, 0, 0, 0, 4 | 8, ..])
    };
    (!head.starts_with(HPROF) && found.any(is_header)).then_some(&BEHIND_OTHERS)
}

/// Returns whether binary data was decoded and encoded as text: all of it is UTF-8, with many
/// replacement characters or only characters that Latin-1 has, with its controls.
fn is_recoded(head: &[u8]) -> bool {
    let Some(text) = utf8(head) else {
        return false;
    };
    let wide = text.chars().filter(|c| !c.is_ascii());
    // Texts do not have the controls of Latin-1.
    let (mut lost, mut controls, mut others) = (0, 0, 0);
    for c in wide {
        match c {
            char::REPLACEMENT_CHARACTER => lost += 1,
            '\u{80}'..='\u{9f}' => controls += 1,
            '\u{a0}'..='\u{ff}' => {}
            _ => others += 1,
        }
    }
    lost >= 4 || controls >= 4 && others == 0
}

/// Returns whether a file has only lines of Base64, of all kinds of its letters: neither words nor
/// hashes.
fn is_base64(head: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=\r\n".contains(byte);
    let letters = [
        u8::is_ascii_uppercase,
        u8::is_ascii_lowercase,
        u8::is_ascii_digit,
    ];
    head.len() >= 40 && head.iter().all(is_part) && letters.iter().all(|kind| head.iter().any(kind))
}

/// Beginnings of known texts; `0` is any digit. Texts of devices can have control characters and
/// bytes of other encodings, from file names and log messages.
const KNOWN_TEXTS: [(&str, KnownText); 15] = [
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
    ("# compiler: R8", KnownText::R8Mapping),
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

/// Returns first bytes as text, without a character that is cut at their end.
fn utf8(head: &[u8]) -> Option<&str> {
    match std::str::from_utf8(head) {
        Err(error) if error.error_len().is_none() => utf8(&head[..error.valid_up_to()]),
        text => text.ok(),
    }
}

fn text_kind(head: &[u8]) -> Option<Kind> {
    if let Some(known) = known_text(head) {
        return Some(known);
    }
    let text = utf8(head)?;
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
        } else if begins(start, "<?xml") && start.contains("<Error>") {
            Kind::Foreign(&SERVER_ERROR)
        } else if start.starts_with('{') && start.contains("\"logcatMessages\"") {
            Kind::Known(KnownText::Log)
        } else if is_of_lines(start, is_mapped) {
            Kind::Known(KnownText::R8Mapping)
        } else if is_of_lines(start, is_folded) {
            Kind::Known(KnownText::FoldedStacks)
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

/// Returns whether the first lines of a text have a form, except for comments.
fn is_of_lines(text: &str, has_form: fn(&str) -> bool) -> bool {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut lines = lines.take(3).peekable();
    lines.peek().is_some() && lines.all(has_form)
}

/// Returns whether a line is of a mapping file: `com.example.A -> a.b:`, or a member of that class.
fn is_mapped(line: &str) -> bool {
    line.split_once(" -> ").is_some_and(|(of, to)| {
        !of.is_empty() && of.starts_with(' ') != to.ends_with(':') && !to.contains(' ')
    })
}

/// Returns whether a line is a callstack with its value: `main;load;malloc 4096`.
fn is_folded(line: &str) -> bool {
    let parts = line.rsplit_once(' ');
    parts.is_some_and(|(stack, value)| {
        stack.contains(';') && !stack.contains("; ") && value.parse::<u64>().is_ok()
    })
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
                b"# compiler: R8\n# {\"id\":\"x\"}\n",
                Kind::Known(KnownText::R8Mapping),
            ),
            (
                b"com.example.A -> a.b:\n    int size -> a\n    1:2:void <init>() -> <init>\n",
                Kind::Known(KnownText::R8Mapping),
            ),
            (
                b"main;load;malloc 4096\nmain;operator new(unsigned long) 12\n",
                Kind::Known(KnownText::FoldedStacks),
            ),
            (b"let x = 1; // 2\n", Kind::Text),
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

    /// Returns an HPROF with class names and addresses, as it begins.
    fn hprof() -> Vec<u8> {
        let mut file = b"JAVA PROFILE 1.0.3\0\0\0\0\x04\0\0\x01\x8b\xcf\xe5\x68\0".to_vec();
        for (name, id) in [("a.Node", 0x1234_8a80_u32), ("b.List", 0x12c0_9df0)] {
            file.extend(b"\x01\0\0\0\0\0\0\0\x0a");
            file.extend(id.to_be_bytes());
            file.extend(name.as_bytes());
            file.extend(b"\x01\0\0\0\0\0\0\0\x0a\0\0\0\x07methods\n");
        }
        file
    }

    #[test]
    fn a_file_that_was_changed_on_its_way_is_said_to_be() {
        let whole = hprof();
        assert_eq!(detect(&whole), Kind::Hprof);
        let latin = |byte: &u8| char::from(*byte);
        let with_cr = |file: &[u8]| {
            let bytes = file.iter().flat_map(|&byte| match byte {
                b'\n' => vec![b'\r', b'\n'],
                byte => vec![byte],
            });
            bytes.collect::<Vec<u8>>()
        };
        let utf16 = whole.iter().flat_map(|&byte| [byte, 0]);
        let utf16: Vec<u8> = [0xff, 0xfe].into_iter().chain(utf16).collect();
        let without_zeros = whole.iter().copied().filter(|&byte| byte != 0);
        let all_bytes: Vec<u8> = (0..=255).collect();
        let with_crs = [&whole[..], &all_bytes.repeat(20)].concat();
        let without_crs = with_crs.iter().copied().filter(|&byte| byte != b'\r');
        for (file, foreign) in [
            (with_cr(&whole), &CRLF),
            (utf16, &UTF16),
            (
                String::from_utf8_lossy(&whole).into_owned().into_bytes(),
                &UTF8,
            ),
            (
                whole.iter().map(latin).collect::<String>().into_bytes(),
                &UTF8,
            ),
            (without_zeros.collect(), &WITHOUT_ZEROS),
            (without_crs.collect(), &WITHOUT_CRS),
            ([b"\xef\xbb\xbf", &whole[..]].concat(), &BEHIND_OTHERS),
            (
                [b"File: /data/local/tmp/x\n", &whole[..]].concat(),
                &BEHIND_OTHERS,
            ),
        ] {
            assert_eq!(detect(&file), Kind::Foreign(foreign));
        }
        // Two files in one are told by the reader.
        assert_eq!(detect(&[&whole[..], &whole].concat()), Kind::Hprof);
        // A trace, too: every packet begins with a line feed.
        let packet = [&[0x0a, 0x66, 0x50, 1, 0x7a, 98][..], &[0; 98]].concat();
        let trace = packet.repeat(8);
        assert_eq!(detect(&trace), Kind::Trace);
        assert_eq!(detect(&with_cr(&trace)), Kind::Foreign(&CRLF));
    }

    #[test]
    fn files_of_other_tools_have_their_own_help() {
        for (head, what, help) in [
            (
                &b"version https://git-lfs.github.com/spec/v1\noid sha256:0"[..],
                "a pointer of Git LFS",
                "`git lfs pull`",
            ),
            (
                b"JAVA PROFILE 1.0.1, created Mon Jan 05",
                "text HPROF",
                "format=b",
            ),
            (
                b"<?xml version=\"1.0\"?>\n<Error><Code>AccessDenied</Code></Error>",
                "a server",
                "address",
            ),
            (b"7z\xbc\xaf\x27\x1c\0\x04", "7z", "`7z x`"),
            (b"FLR\0\0\x02", "Flight Recorder", "GC.heap_dump"),
            (
                b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x04\0",
                "core dump",
                "jhsdb",
            ),
            (
                b"SkFWQSBQUk9GSUxFIDEuMC4zAAAAAAQAAAGLz+VoAAEAAAAA\nAAAAAAAA\n",
                "Base64",
                "base64 -d",
            ),
        ] {
            let kind = detect(head);
            assert!(kind.to_string().contains(what), "{kind}");
            let helps = [kind.help(), kind.help_with_heaps(), kind.help_with_hprof()];
            assert!(helps.iter().all(|text| text.contains(help)), "{kind}");
            assert!(!kind.may_be_text());
        }
        // Words and hashes are no Base64 of a heap.
        for text in [
            "a word",
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        ] {
            assert_eq!(detect(text.as_bytes()), Kind::Text);
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
