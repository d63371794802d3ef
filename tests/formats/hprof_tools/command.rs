//! The commands as used by scripts: files, streams, exit codes, documents.

use super::dump::{ANDROID, JAVA_SE, dump};
use serde_json::Value;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

struct Lab {
    directory: tempfile::TempDir,
}

impl Lab {
    fn new() -> Lab {
        let directory = tempfile::tempdir().expect("a folder");
        Lab { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).expect("room");
        path
    }

    /// Names in the directory.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.directory.path())
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name())
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    fn run(&self, args: &[&str]) -> Output {
        self.run_with(args, &[])
    }

    fn run_with(&self, args: &[&str], stdin: &[u8]) -> Output {
        let mut child = crate::program::heaptap()
            .arg("hprof")
            .args(args)
            .current_dir(self.directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let mut pipe = child.stdin.take().expect("a pipe");
        // The reader closes it without reading.
        let _ = pipe.write_all(stdin);
        drop(pipe);
        child.wait_with_output().expect("it ends")
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("one document")
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).expect("memory");
    out.finish().expect("memory")
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).expect("it was written")
}

#[test]
fn files_and_streams_give_the_same() {
    let lab = Lab::new();
    let bytes = dump(1, ANDROID).bytes;
    lab.write("a.hprof", &bytes);
    lab.write("a.hprof.gz", &gzip(&bytes));
    let output = lab.run(&["conv", "a.hprof", "b.hprof"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(output.stdout.is_empty());
    let converted = read(&lab.path("b.hprof"));
    assert!(converted.starts_with(b"JAVA PROFILE 1.0.2\0"));
    let packed = lab.run(&["conv", "a.hprof.gz", "-"]);
    assert_eq!(packed.status.code(), Some(0));
    assert!(packed.stdout == converted);
    let piped = lab.run_with(&["conv", "-", "-"], &bytes);
    assert!(piped.stdout == converted);
    let app = lab.run_with(&["conv", "-z", "-", "-"], &bytes);
    assert!(app.stdout.len() < converted.len());
    let shared = lab.run_with(&["strip", "-", "-"], &gzip(&bytes));
    assert_eq!(shared.status.code(), Some(0));
    assert_eq!(shared.stdout.len(), bytes.len());
    assert_eq!(lab.names(), ["a.hprof", "a.hprof.gz", "b.hprof"]);
}

#[test]
fn nothing_is_overwritten_unasked() {
    let lab = Lab::new();
    let bytes = dump(2, ANDROID).bytes;
    lab.write("a.hprof", &bytes);
    lab.write("b.hprof", b"precious");
    for command in ["conv", "strip"] {
        let output = lab.run(&[command, "a.hprof", "b.hprof", "--json"]);
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(document(&output)["error"]["kind"], "output-taken");
        assert_eq!(read(&lab.path("b.hprof")), b"precious");
        for same in ["a.hprof", "./a.hprof"] {
            let output = lab.run(&[command, "a.hprof", same, "--force", "--json"]);
            assert_eq!(output.status.code(), Some(2));
            assert_eq!(document(&output)["error"]["kind"], "output-is-input");
        }
        assert!(read(&lab.path("a.hprof")) == bytes);
    }
    let output = lab.run(&["conv", "a.hprof", "b.hprof", "--force"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(read(&lab.path("b.hprof")).starts_with(b"JAVA PROFILE 1.0.2"));
    let output = lab.run(&["conv", "a.hprof", "-", "--json"]);
    assert_eq!(output.status.code(), Some(2));
    // A failed command does not leave a file.
    for wrong in ["none.hprof", "b.hprof"] {
        let output = lab.run(&["conv", wrong, "c.hprof"]);
        assert_eq!(output.status.code(), Some(8), "{wrong}");
    }
    let output = lab.run(&["conv", "a.hprof", "no/such/folder"]);
    assert_eq!(output.status.code(), Some(11));
    assert_eq!(lab.names(), ["a.hprof", "b.hprof"]);
}

#[test]
fn damaged_dumps_give_what_there_is_and_6_and_others_8() {
    let lab = Lab::new();
    let bytes = dump(3, ANDROID).bytes;
    let cut = bytes.len() * 2 / 3;
    lab.write("cut.hprof", &bytes[..cut]);
    let packed = gzip(&bytes);
    lab.write("cut.hprof.gz", &packed[..packed.len() / 2]);
    lab.write("open.hprof", &bytes[..bytes.len() - 9]);
    for (name, kind) in [
        ("cut.hprof", "hprof-damaged"),
        ("cut.hprof.gz", "input-damaged"),
        ("open.hprof", "hprof-unfinished"),
    ] {
        for command in ["conv", "strip", "info"] {
            let mut args = vec![command, name, "--json"];
            if command != "info" {
                args.extend(["out", "--force"]);
            }
            let output = lab.run(&args);
            assert_eq!(output.status.code(), Some(6), "{command} {name}");
            let document = document(&output);
            assert_eq!(document["warnings"][0]["kind"], kind, "{command} {name}");
            assert_eq!(document["whole"], false);
        }
        assert!(read(&lab.path("out")).len() > 1000);
    }
    for (name, bytes, kind) in [
        ("empty", &b""[..], "not-an-hprof"),
        ("head", b"JAVA PROFILE 1.0.3\0\0\0", "hprof-header"),
        (
            "ids",
            b"JAVA PROFILE 1.0.3\0\0\0\0\x10\0\0\0\0\0\0\0\0",
            "hprof-header",
        ),
        ("zip", b"PK\x03\x04 and no more", "input-damaged"),
    ] {
        lab.write(name, bytes);
        for args in [
            &["info", name][..],
            &["conv", name, "x"],
            &["strip", name, "x"],
        ] {
            let output = lab.run(&[args, &["--json"]].concat());
            assert_eq!(output.status.code(), Some(8), "{args:?}");
            assert_eq!(document(&output)["error"]["kind"], kind, "{args:?}");
        }
    }
    lab.write("java.hprof", &dump(3, JAVA_SE).bytes);
    let output = lab.run(&["conv", "java.hprof", "x", "--json"]);
    assert_eq!(output.status.code(), Some(8));
    assert_eq!(document(&output)["error"]["kind"], "hprof-not-android");
    assert!(!lab.path("x").exists());
}

#[test]
fn info_counts_what_went_in() {
    let lab = Lab::new();
    for (name, shape) in [("android", ANDROID), ("javase", JAVA_SE)] {
        let made = dump(4, shape);
        lab.write("dump", &made.bytes);
        let output = lab.run(&["info", "dump", "--json"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let info = document(&output);
        let count = |tag: u8| made.counts.get(&tag).copied().unwrap_or(0);
        assert_eq!(info["dialect"], name);
        assert_eq!(info["id_bytes"], shape.id);
        assert_eq!(info["date"], "2023-11-14T22:13:20Z");
        assert_eq!(info["whole"], true);
        assert_eq!(info["stripped"], false);
        assert_eq!(info["allocation_tracking"], true);
        assert_eq!(info["classes"], 6);
        assert_eq!(info["instances"]["count"], count(0x21));
        assert_eq!(info["object_arrays"]["count"], count(0x22));
        assert_eq!(info["primitive_arrays"]["count"], count(0x23));
        assert_eq!(info["arrays_without_data"]["count"], count(0xc3));
        // Arrays of primitives were allocated at the stack with a frame.
        let sites = &info["objects_with_allocation_site"];
        assert_eq!(sites, count(0x23));
        let roots: u64 = info["roots"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|root| root["count"].as_u64().expect("a number"))
            .sum();
        let tags = made
            .counts
            .iter()
            .filter(|(tag, _)| !matches!(**tag, 0x20..=0x23 | 0xc3 | 0xfe));
        assert_eq!(roots, tags.map(|(_, count)| count).sum::<u64>());
        assert_eq!(
            info["heaps"].as_array().map(Vec::is_empty),
            Some(!shape.android)
        );
        let words = lab.run(&["info", "dump"]);
        let words = text(&words.stdout);
        for line in [
            "Complete          yes",
            "instances ",
            "record 0x77 (unknown)",
        ] {
            assert!(words.contains(line), "{words}");
        }
        lab.run(&["strip", "dump", "shared", "--force"]);
        let info = document(&lab.run(&["info", "shared", "--json"]));
        assert_eq!(info["stripped"], true);
        assert_eq!(info["contents"], "zeroed");
    }
}

/// Reads an HPROF into a pipe without a reader, so that it waits in the middle, and truncates the
/// file there.
#[cfg(unix)]
#[test]
fn a_dump_that_is_cut_short_while_it_is_read_ends_with_8_and_words() {
    use std::io::Read as _;
    let lab = Lab::new();
    let mut bytes = b"JAVA PROFILE 1.0.3\0".to_vec();
    bytes.extend([0, 0, 0, 4].iter().chain(&[0; 8]));
    // An array of 1,000 bytes in a separate segment.
    let mut array = vec![0x1c, 0, 0, 0, 0];
    array.extend(1014u32.to_be_bytes());
    array.extend([0x23, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3, 232, 8]);
    array.resize(array.len() + 1000, b'x');
    bytes.extend(array.repeat(16 << 10));
    lab.write("a.hprof", &bytes);
    let mut child = crate::program::heaptap()
        .args(["hprof", "conv", "a.hprof", "-"])
        .current_dir(lab.directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut pipe = child.stdout.take().expect("a pipe");
    let mut first = [0; 19];
    pipe.read_exact(&mut first).expect("it begins to write");
    assert_eq!(&first, b"JAVA PROFILE 1.0.2\0");
    let file = std::fs::File::options()
        .write(true)
        .open(lab.path("a.hprof"));
    file.and_then(|file| file.set_len(4096)).expect("it is cut");
    let mut rest = Vec::new();
    pipe.read_to_end(&mut rest).expect("it ends");
    assert!(rest.len() > 4096, "what was read is there");
    let output = child.wait_with_output().expect("it ends");
    let words = text(&output.stderr);
    assert_eq!(output.status.code(), Some(8), "{:?} {words}", output.status);
    assert!(
        words.contains("a.hprof became shorter while heaptap read it"),
        "{words}"
    );
}
