//! External names that imitate output of heaptap: they begin a line, change the color or the text
//! direction. Every command that prints names reads fixtures with such names.

use std::path::{Path, PathBuf};
use std::process::Output;

use crate::cli::command;

/// Text that must not be at the start of a line, nor after a color.
const SPEECH: &str = "OWNED";

/// A name of that many bytes that begins a line in heaptap's style.
fn hostile(bytes: usize) -> Vec<u8> {
    let mut name = format!("\n\x1b[1m{SPEECH}").into_bytes();
    for more in ["\r", "\u{202e}", "\u{9b}31m", "\x1b]0;t\x07"] {
        if name.len() + more.len() <= bytes {
            name.extend(more.as_bytes());
        }
    }
    assert!(name.len() <= bytes, "too short to say anything");
    name.resize(bytes, b'x');
    name
}

/// The bytes with hostile names of the same lengths as the originals, so that length fields stay
/// valid.
fn with_names(mut bytes: Vec<u8>, names: &[&str]) -> Vec<u8> {
    for name in names {
        let by = hostile(name.len());
        let mut found = 0;
        while let Some(at) = memchr::memmem::find(&bytes, name.as_bytes()) {
            bytes[at..at + name.len()].copy_from_slice(&by);
            found += 1;
        }
        assert!(found > 0, "no {name}");
    }
    bytes
}

fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures")
        .join(name);
    let bytes = std::fs::read(path).expect("a fixture");
    match name.rsplit_once('.') {
        Some((_, "gz")) => {
            let mut plain = Vec::new();
            let mut reader = flate2::read::GzDecoder::new(&*bytes);
            std::io::Read::read_to_end(&mut reader, &mut plain).expect("gzip");
            plain
        }
        _ => bytes,
    }
}

struct Inputs {
    directory: tempfile::TempDir,
}

impl Inputs {
    fn write(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.directory.path().join(name);
        std::fs::write(&path, bytes).expect("it can be written");
        path.to_string_lossy().into_owned()
    }

    fn path(&self, name: &str) -> String {
        let path: PathBuf = self.directory.path().join(name);
        path.to_string_lossy().into_owned()
    }
}

fn assert_own_words(args: &[String], output: &Output) {
    let said = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    for text in [said(&output.stdout), said(&output.stderr)] {
        let mut rest = text.as_str();
        let mut plain = String::new();
        while let Some(at) = rest.find('\x1b') {
            plain += &rest[..at];
            let own = ["[1m", "[2m", "[32m", "[33m", "[1;31m", "[36m", "[0m"];
            let behind = &rest[at + 1..];
            let style = own.iter().find(|style| behind.starts_with(**style));
            let style = style.unwrap_or_else(|| panic!("{args:?}: a sequence of others: {text:?}"));
            rest = &behind[style.len()..];
            assert!(!rest.starts_with(SPEECH), "{args:?}: in a colour: {text:?}");
        }
        plain += rest;
        for line in plain.split('\n') {
            assert!(!line.trim_start().starts_with(SPEECH), "{args:?}: {text}");
        }
        let acts = |c: char| {
            c.is_control() && !matches!(c, '\n' | '\t') || matches!(c, '\u{202a}'..='\u{202e}')
        };
        // CSV has its own line endings.
        let plain = plain.replace("\r\n", "\n");
        assert!(!plain.contains(acts), "{args:?}: {plain:?}");
    }
}

/// Runs it in each output format; returns whether the output has the names.
fn run(args: &[&str]) -> bool {
    let mut named = false;
    for form in [&["--color=always"][..], &["--color=never"], &["--json"]] {
        let args: Vec<String> = args.iter().chain(form).map(|&arg| arg.to_owned()).collect();
        let words: Vec<&str> = args.iter().map(String::as_str).collect();
        let output = command(&words).output().expect("the binary runs");
        assert_ne!(output.status.code(), Some(1), "{args:?}: {output:?}");
        assert_own_words(&args, &output);
        let has = |bytes: &[u8]| memchr::memmem::find(bytes, SPEECH.as_bytes()).is_some();
        named |= has(&output.stdout) || has(&output.stderr);
    }
    named
}

fn assert_named(commands: &[&[&str]]) {
    for args in commands {
        assert!(run(args), "{args:?} says nothing of what it read");
    }
}

#[test]
fn names_of_a_trace_begin_no_line_and_set_no_colour() {
    let inputs = Inputs {
        directory: tempfile::tempdir().expect("a folder"),
    };
    let names = [
        "libheapprofd_glibc_preload.so",
        "x86_64-linux-gnu",
        "alloc_test",
        "leak_large",
        "leak_small",
        "churn_small",
        "peak_build",
    ];
    let trace = with_names(fixture("conversions/c_cont.pftrace"), &names);
    let trace = inputs.write("trace", &trace);
    let first = format!("{trace}@1");
    let last = format!("{trace}@last");
    let names = "SELECT name FROM stack_profile_frame";
    assert_named(&[
        &["top", &trace],
        &["top", &trace, "--tree", "--all-frames"],
        &["top", &trace, "--by", "callsite"],
        &["top", &trace, "--by", "library"],
        &["top", &trace, "--focus", "leak", "--csv"],
        &["diff", &first, &last],
        &["leaks", &trace],
        &["query", &trace, names],
    ]);
    run(&["convert", &trace, "-o", &inputs.path("out")]);
    run(&["report", &trace, "-o", &inputs.path("page.html")]);
    run(&["top", &trace, "-n", "\n\x1b[1mOWNED"]);
    run(&["query", &trace, "SELECT \n\x1b[1mOWNED"]);
}

#[test]
fn names_of_a_java_heap_begin_no_line_and_set_no_colour() {
    let inputs = Inputs {
        directory: tempfile::tempdir().expect("a folder"),
    };
    let names = [
        "com.example.app.LeakyFragment",
        "com.example.app.MainActivity",
        "com.example.app.Holder",
        "android.graphics.Bitmap",
    ];
    let dump = with_names(fixture("hprof/android-a.hprof.gz"), &names);
    let dump = inputs.write("a.hprof", &dump);
    let other = inputs.write("b.hprof", &fixture("hprof/android-a.hprof.gz"));
    assert_named(&[
        &["top", &dump],
        &["top", &dump, "--tree"],
        &["top", &dump, "--by", "class"],
        &["leaks", &dump],
        &["paths", &dump, "--focus", "WNED"],
        &["diff", &other, &dump],
    ]);
    run(&["hprof", "info", &dump]);
}

#[test]
fn texts_of_a_phone_begin_no_line_and_set_no_colour() {
    let inputs = Inputs {
        directory: tempfile::tempdir().expect("a folder"),
    };
    let meminfo = String::from_utf8(fixture("meminfo/synthetic_api34_d.txt")).expect("UTF-8");
    let ours = "\x1b[1mOWNED\r\u{202e}";
    let meminfo = meminfo
        .replace("com.example.app", ours)
        .replace("Gfx dev", ours);
    let before = inputs.write("before.txt", meminfo.as_bytes());
    let after = inputs.write("after.txt", meminfo.replace("23856", "93856").as_bytes());
    let mapping =
        format!("70000000-70001000 rw-p 00000000 00:00 0 /data/{ours}.so\nRss: 4 kB\nPss: 4 kB\n");
    let smaps = inputs.write("a.smaps", mapping.as_bytes());
    let log = format!(
        "11-20 09:00:00.123  8180  8190 I {ours}: Explicit concurrent mark compact GC freed \
         1024KB AllocSpace bytes, 0(0B) LOS objects, 50% free, 2MB/4MB, paused 1ms total 10ms\n"
    );
    let log = inputs.write("logcat.txt", log.as_bytes());
    assert_named(&[
        &["meminfo", &before],
        &["smaps", &smaps, "--by", "mapping"],
        &["smaps", &smaps, "--by", "library"],
    ]);
    run(&["diff", &before, &after]);
    run(&["gc", &log]);
}

#[test]
fn words_that_were_typed_begin_no_line_and_set_no_colour() {
    let inputs = Inputs {
        directory: tempfile::tempdir().expect("a folder"),
    };
    let name = "\n\x1b[1;31mOWNED\r";
    let gone = inputs.path(name);
    assert_named(&[
        &["top", &gone],
        &["leaks", &gone],
        &["diff", &gone, &gone],
        &["meminfo", &gone],
        &["convert", &gone],
        &["open", &gone, "--print-url"],
        &["report", &gone],
        &["query", &gone, "SELECT 1"],
        &["hprof", "info", &gone],
        &["symbolize", &gone],
        &[name],
        &["top", name, name],
        &["devices", "--virtual", name],
        &["apps", name, "--virtual"],
        &["check", "-n", name, "--virtual"],
        &["record", "-n", name, "--virtual", "-o", &inputs.path("rec")],
    ]);
}
