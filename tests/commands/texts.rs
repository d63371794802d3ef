//! Texts that commands read from files: every compression and encoding, and standard input, give
//! the same result.

use std::io::{Cursor, Write as _};
use std::process::Output;

use serde_json::Value;

use crate::program::heaptap;

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(crate::program::fixture(name)).expect("the fixture is there")
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).expect("memory");
    out.finish().expect("memory")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(bytes, 1).expect("memory")
}

/// An xz of one block, stored uncompressed.
fn xz(bytes: &[u8]) -> Vec<u8> {
    let sum_of = |part: &[u8]| {
        let mut sum = flate2::Crc::new();
        sum.update(part);
        sum.sum().to_le_bytes()
    };
    let with_sum = |part: &[u8]| [part, &sum_of(part)].concat();
    let number = |mut n: usize| {
        let mut out = Vec::new();
        while n >= 0x80 {
            out.push(n as u8 | 0x80);
            n >>= 7;
        }
        out.push(n as u8);
        out
    };
    let filled = |mut part: Vec<u8>| {
        part.resize(part.len().next_multiple_of(4), 0);
        part
    };
    let flags = [0, 1];
    let mut block = with_sum(&[2, 0, 0x21, 1, 0x16, 0, 0, 0]);
    for (at, piece) in bytes.chunks(1 << 16).enumerate() {
        block.push(if at == 0 { 1 } else { 2 });
        block.extend(((piece.len() - 1) as u16).to_be_bytes());
        block.extend(piece);
    }
    block.push(0);
    let size = block.len() + 4;
    let block = [filled(block), sum_of(bytes).to_vec()].concat();
    let records = [vec![0, 1], number(size), number(bytes.len())].concat();
    let index = with_sum(&filled(records));
    let backward = (index.len() / 4 - 1) as u32;
    let footer = [&backward.to_le_bytes()[..], &flags].concat();
    [
        &b"\xfd7zXZ\0"[..],
        &with_sum(&flags),
        &block,
        &index,
        &sum_of(&footer),
        &footer,
        b"YZ",
    ]
    .concat()
}

/// Encoded as by PowerShell's `>`.
fn utf16(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8(bytes.to_vec()).expect("UTF-8");
    let text = format!("\u{feff}{}", text.replace('\n', "\r\n"));
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// A directory with one input.
struct Input {
    folder: tempfile::TempDir,
}

impl Input {
    fn new(bytes: &[u8]) -> Input {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("input"), bytes).expect("a file");
        Input { folder }
    }

    /// Runs a command in the directory; `input` is also its standard input.
    fn run(&self, args: &[&str]) -> Output {
        let file = std::fs::File::open(self.folder.path().join("input")).expect("the file");
        heaptap()
            .args(args)
            .current_dir(self.folder.path())
            .stdin(file)
            .output()
            .expect("heaptap runs")
    }

    /// The document of a successful command.
    fn json(&self, args: &[&str]) -> Value {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(0), "{args:?} {output:?}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }
}

/// Whatever the compression, a file and standard input give the document of the plain file, except
/// for the name in `source`.
fn says_the_same(text: &[u8], of_file: &[&str], of_stdin: &[&str]) -> Value {
    let document = |input: &Input, args| {
        let mut document = input.json(args);
        document
            .as_object_mut()
            .expect("an object")
            .remove("source");
        document
    };
    let plain = document(&Input::new(text), of_file);
    for packed in [
        text.to_vec(),
        gzip(text),
        zstd(text),
        xz(text),
        zstd(&xz(text)),
    ] {
        let input = Input::new(&packed);
        assert_eq!(document(&input, of_file), plain);
        assert_eq!(document(&input, of_stdin), plain);
    }
    plain
}

#[test]
fn meminfo_of_any_packing() {
    let text = fixture("meminfo/synthetic_api34_d.txt");
    let plain = says_the_same(
        &text,
        &["meminfo", "input", "--json"],
        &["meminfo", "-", "--json"],
    );
    assert!(!plain["processes"].as_array().expect("a list").is_empty());
    let input = Input::new(&gzip(&utf16(&text)));
    let wide = input.json(&["meminfo", "input", "--json"]);
    assert_eq!(wide["processes"], plain["processes"]);
    assert_eq!(
        input.json(&["meminfo", "-", "--json"])["processes"],
        plain["processes"]
    );
    // Two compressed texts are compared by their content.
    let packed = Input::new(&xz(&text));
    std::fs::write(packed.folder.path().join("other"), &text).expect("a file");
    let difference = packed.run(&["diff", "input", "other", "--json"]);
    assert_eq!(difference.status.code(), Some(0), "{difference:?}");

    let torn = gzip(&text);
    let torn = Input::new(&torn[..torn.len() / 2]);
    let refused = torn.run(&["meminfo", "input", "--json"]);
    assert_eq!(refused.status.code(), Some(8), "{refused:?}");
    let refused: Value = serde_json::from_slice(&refused.stdout).expect("JSON");
    assert_eq!(refused["error"]["kind"], "input-unreadable");
    let trace = Input::new(&fixture("conversions/c_cont.pftrace"));
    let refused = trace.run(&["meminfo", "input", "--json"]);
    assert_eq!(refused.status.code(), Some(8), "{refused:?}");
    let refused: Value = serde_json::from_slice(&refused.stdout).expect("JSON");
    assert_eq!(refused["error"]["kind"], "not-a-meminfo");
    let message = refused["error"]["message"].as_str().expect("a message");
    assert!(message.ends_with("it is a Perfetto trace"), "{message}");
    let xml = br#"<malloc version="scudo-1"><alloc size="16" count="3"/></malloc>"#;
    let allocator = Input::new(xml);
    let refused = allocator.run(&["meminfo", "input", "--json"]);
    let refused: Value = serde_json::from_slice(&refused.stdout).expect("JSON");
    assert_eq!(refused["error"]["kind"], "not-a-meminfo");
    let help = refused["error"]["help"].as_str().expect("help");
    assert!(help.contains("`--reconcile`"), "{help}");
    let shown = allocator.run(&["meminfo", "input", "--reconcile"]);
    assert_eq!(shown.status.code(), Some(0), "{shown:?}");
}

/// Mappings of a process; enough that compression leaves some bytes.
fn mappings() -> Vec<u8> {
    let text: String = (0..2000_u64)
        .map(|n| {
            let at = 0x7000_0000 + n * 0x9000;
            let size = n.wrapping_mul(2_654_435_761) % 4096;
            format!(
                "{at:x}-{:x} rw-p 00000000 00:00 {size} /lib/{size}.so\nRss: {size} kB\n",
                at + 0x1000
            )
        })
        .collect();
    text.into_bytes()
}

#[test]
fn smaps_of_any_packing() {
    let text = mappings();
    let plain = says_the_same(
        &text,
        &["smaps", "input", "--json"],
        &["smaps", "-", "--json"],
    );
    assert_eq!(plain["count"], 2000);
    let wide = Input::new(&xz(&utf16(&text)));
    assert_eq!(wide.json(&["smaps", "input", "--json"]), plain);
    // The saved copy is the text itself.
    let packed = Input::new(&zstd(&text));
    packed.json(&["smaps", "-", "--save", "kept", "--json"]);
    let kept = std::fs::read(packed.folder.path().join("kept")).expect("it was kept");
    assert_eq!(kept, text);

    for packed in [gzip(&text), xz(&text)] {
        let torn = Input::new(&packed[..packed.len() / 2]);
        let refused = torn.run(&["smaps", "input", "--json"]);
        assert_eq!(refused.status.code(), Some(8), "{refused:?}");
        let refused: Value = serde_json::from_slice(&refused.stdout).expect("JSON");
        assert_eq!(refused["error"]["kind"], "input-unreadable");
    }
    let notes = Input::new(b"hello\n");
    for name in ["input", "-"] {
        let refused = notes.run(&["smaps", name, "--json"]);
        assert_eq!(refused.status.code(), Some(8), "{refused:?}");
        let refused: Value = serde_json::from_slice(&refused.stdout).expect("JSON");
        assert_eq!(refused["error"]["kind"], "not-mappings");
    }
    // A trace in a pipe is detected, too.
    let trace = Input::new(&fixture("conversions/c_cont.pftrace"));
    for name in ["input", "-"] {
        let refused = trace.run(&["smaps", name, "--json"]);
        assert_eq!(refused.status.code(), Some(7), "{refused:?}");
        let refused: Value = serde_json::from_slice(&refused.stdout).expect("JSON");
        assert_eq!(refused["error"]["kind"], "no-mappings");
    }
}

#[test]
fn logs_of_any_packing() {
    let text = fixture("gclog/gc_forms.log");
    let plain = says_the_same(&text, &["gc", "input", "--json"], &["gc", "-", "--json"]);
    assert!(!plain["processes"].as_array().expect("a list").is_empty());
    // The only text of a ZIP.
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in [("log.txt", &text[..]), ("screen.png", b"\x89PNG")] {
        let options = zip::write::SimpleFileOptions::default();
        zip.start_file(name, options).expect("memory");
        zip.write_all(bytes).expect("memory");
    }
    let zip = zip.finish().expect("memory").into_inner();
    let packed = Input::new(&zip);
    for name in ["input", "-"] {
        let document = packed.json(&["gc", name, "--json"]);
        assert_eq!(document["processes"], plain["processes"]);
    }

    // The lines before the damage are read, and then it is reported.
    let long = text.repeat(200);
    let torn = gzip(&long);
    let torn = Input::new(&torn[..torn.len() / 2]);
    let output = torn.run(&["gc", "input", "--json"]);
    assert_eq!(output.status.code(), Some(6), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(document["lines"].as_u64() > Some(10), "{document:#}");
    let told = String::from_utf8(output.stderr).expect("UTF-8");
    let what = "input: its gzip stream breaks off after ";
    assert!(told.contains(what), "{told}");
}

#[test]
fn a_file_called_like_standard_input_is_not_taken_for_it() {
    let input = Input::new(&mappings());
    std::fs::write(input.folder.path().join("-"), "no mappings").expect("a file");
    input.json(&["smaps", "-", "--json"]);
    let trace = Input::new(&fixture("conversions/c_cont.pftrace"));
    for name in ["-", "input"] {
        std::fs::create_dir_all(trace.folder.path().join("-")).expect("a folder");
        let output = trace.run(&["smaps", name]);
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(7), "{told}");
        let shown = if name == "-" {
            "standard input"
        } else {
            "input"
        };
        assert!(
            told.contains(&format!("{shown} contains no memory mappings")),
            "{told}"
        );
    }
}

#[test]
fn a_text_inside_an_archive_is_not_read_with_the_bytes_around_it() {
    let stored = |text: &[u8]| {
        let mut out = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let options = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Stored);
        out.start_file("text.txt", options).expect("memory");
        out.write_all(text).expect("memory");
        out.finish().expect("memory").into_inner()
    };
    let meminfo = fixture("meminfo/synthetic_api34_d.txt");
    for (text, args) in [
        (mappings(), ["smaps", "input", "--json"].as_slice()),
        (mappings(), &["smaps", "-", "--json"]),
        (meminfo, &["meminfo", "input", "--json"]),
    ] {
        let refused = Input::new(&stored(&text)).run(args);
        assert_eq!(refused.status.code(), Some(8), "{refused:?}");
    }
}

#[test]
fn damage_is_told_before_what_cannot_be_compared() {
    let text = mappings();
    let packed = gzip(&text);
    let input = Input::new(&packed[..11]);
    std::fs::write(input.folder.path().join("other"), &text).expect("a file");
    let refused = input.run(&["diff", "input", "other", "--json"]);
    assert_eq!(refused.status.code(), Some(8), "{refused:?}");
    let refused: Value = serde_json::from_slice(&refused.stdout).expect("JSON");
    assert_eq!(refused["error"]["kind"], "input-damaged");
}

#[test]
fn an_allocators_xml_is_reconciled_from_standard_input() {
    let input =
        Input::new(b"<malloc version=\"scudo-1\"><alloc size=\"1024\" count=\"3\"/></malloc>\n");
    let of_stdin = input.json(&["meminfo", "-", "--reconcile", "--json"]);
    assert_eq!(
        of_stdin["tables"][0]["rows"][0]["bytes"], 3072,
        "{of_stdin}"
    );
    let xml = gzip(&b"<malloc version=\"scudo-1\"></malloc>".repeat(99));
    let torn = Input::new(&xml[..xml.len() - 9]);
    for name in ["input", "-"] {
        let refused = torn.run(&["meminfo", name, "--reconcile", "--json"]);
        assert_eq!(refused.status.code(), Some(8), "{refused:?}");
        let refused: Value = serde_json::from_slice(&refused.stdout).expect("JSON");
        assert_eq!(refused["error"]["kind"], "input-damaged");
    }
    let text = Input::new(b"something else");
    let output = text.run(&["meminfo", "-", "--reconcile"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(8), "{told}");
    assert!(
        told.contains("standard input does not contain a heap: it is text"),
        "{told}"
    );
}
