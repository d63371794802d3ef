//! Heaps of JVMs on computers, and HPROFs that were changed on their way.

use super::heaptap;
use crate::program::{Arguments, assert_contains, assert_lacks};
use serde_json::Value;
use std::io::Write as _;
use std::path::Path;

/// Appends a record with its header.
fn record(file: &mut Vec<u8>, tag: u8, body: &[u8]) {
    file.push(tag);
    file.extend([0; 4]);
    file.extend((body.len() as u32).to_be_bytes());
    file.extend(body);
}

/// Returns an HPROF of Java SE with one dump for each number of objects of `app.Box`, which are not
/// roots except the first.
fn of_java_se(dumps: &[u32]) -> Vec<u8> {
    let mut file = b"JAVA PROFILE 1.0.1\0\0\0\0\x04\0\0\x01\x8b\xcf\xe5\x68\0".to_vec();
    let words = |all: &[u32]| {
        all.iter()
            .flat_map(|word| word.to_be_bytes())
            .collect::<Vec<u8>>()
    };
    let classes = [(0x10, "java/lang/Object", 0), (0x20, "app/Box", 0x10)];
    for (class, name, _) in classes {
        record(
            &mut file,
            0x01,
            &[&words(&[class + 1])[..], name.as_bytes()].concat(),
        );
        record(&mut file, 0x02, &words(&[class, class, 0, class + 1]));
    }
    for &objects in dumps {
        let mut body = Vec::new();
        for (class, _, superclass) in classes {
            body.push(0x20);
            body.extend(words(&[class, 0, superclass, 0, 0, 0, 0, 0, 0]));
            body.extend([0; 6]);
        }
        for object in 0..objects {
            body.push(0x21);
            body.extend(words(&[0x100 + object * 16, 0, 0x20, 0]));
        }
        body.extend([&[0x05][..], &words(&[0x100])].concat());
        record(&mut file, 0x0c, &body);
    }
    file
}

fn write(directory: &Path, name: &str, bytes: &[u8]) -> String {
    let path = directory.join(name);
    std::fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

fn output(args: impl Arguments) -> (Option<i32>, String, String) {
    let output = heaptap(args);
    (output.code(), output.stdout, output.stderr)
}

#[test]
fn of_two_dumps_in_a_file_the_last_is_shown_and_a_number_selects_one() {
    let directory = tempfile::tempdir().unwrap();
    let file = write(directory.path(), "both.hprof", &of_java_se(&[7, 3]));
    for (input, number, objects) in [
        (file.clone(), 2, 3),
        (format!("{file}@1"), 1, 7),
        (format!("{file}@2"), 2, 3),
    ] {
        for all in [&[][..], &["--no-retained"]] {
            let args = [&["top", &input, "--json"][..], all].concat();
            let (code, stdout, stderr) = output(&args);
            assert_eq!(code, Some(0), "{args:?} {stderr}");
            let document: Value = serde_json::from_str(&stdout).unwrap();
            let heap = &document["heap"];
            assert_eq!(
                (&heap["number"], &heap["dumps"]),
                (&number.into(), &2.into())
            );
            // A selected dump needs no hint to select one.
            let is_hinted = heap["warnings"][0]["kind"] == "dumps-in-file";
            assert_eq!(is_hinted, input == file, "{heap:#}");
            let (parts, others) = (&document["unreachable"], &document["all"]);
            // Only the first object is reachable; or all are counted, with two classes.
            let count = parts["count"]
                .as_u64()
                .or(others["count"].as_u64())
                .unwrap();
            let known = if all.is_empty() {
                objects + 1
            } else {
                objects + 2
            };
            assert_eq!(count, known, "{document:#}");
        }
    }
    let (_, _, stderr) = output(&["top", &file]);
    assert_contains(&stderr, "note: ");
    assert_contains(&stderr, "has 2 dumps");
    let (code, _, stderr) = output(&["top", &format!("{file}@3")]);
    assert_eq!(code, Some(2));
    assert!(
        stderr.contains("@1, @2") || stderr.contains("1, 2"),
        "{stderr}"
    );
    let (first, second) = (format!("{file}@1"), format!("{file}@2"));
    let (code, stdout, stderr) = output(&["leaks", &second, &first]);
    assert_eq!(code, Some(0), "{stderr}");
    assert_contains(&stdout, "dump 1 of 2");
    // Without a number, all of them.
    let (code, stdout, stderr) = output(&["leaks", &file, "--fail"]);
    assert_eq!(code, Some(12), "{stderr}");
    assert_contains(&stdout, "Nothing grew between the two dumps");
    for hint in ["FILE@N", "leaks A B"] {
        assert!(!(stdout.clone() + &stderr).contains(hint), "{stderr}");
    }
}

#[test]
fn dumps_of_two_kinds_are_compared_by_their_numbers_of_objects() {
    let (graph, dump) = (
        super::fixture("heap_graphs/graph_10k.pftrace.zst"),
        super::fixture("hprof/android-a.hprof.gz"),
    );
    let (code, stdout, _) = output(&["diff", &graph, &dump]);
    assert_eq!(code, Some(0));
    assert_contains(&stdout, "only the numbers of objects");
    assert_lacks(&stdout, "retained");
    let (code, stdout, _) = output(&["leaks", &graph, &dump]);
    assert_eq!(code, Some(0));
    assert_contains(&stdout, "growth is not compared");
    assert_lacks(&stdout, "Growth from");
}

#[test]
fn leaks_of_java_se_names_two_dumps_and_no_mapping() {
    let directory = tempfile::tempdir().unwrap();
    let file = write(directory.path(), "server.hprof", &of_java_se(&[3]));
    let (code, stdout, stderr) = output(&["leaks", &file, "--fail"]);
    assert_eq!(code, Some(12), "{stderr}");
    assert_contains(&stdout, "heaptap leaks A B");
    assert_contains(&stderr, "diff A B --fail-over");
    assert!(!(stdout + &stderr).contains("mapping"), "{stderr}");
}

#[test]
fn a_whole_file_with_other_bytes_behind_it_gets_a_note() {
    let directory = tempfile::tempdir().unwrap();
    let whole = std::fs::read(super::fixture("hprof/android-a.hprof.gz")).unwrap();
    let packed = write(
        directory.path(),
        "a.hprof.gz",
        &[&whole[..], b"\nDone.\n"].concat(),
    );
    let (code, stdout, stderr) = output(&["top", &packed]);
    assert_eq!(code, Some(0), "{stderr}");
    assert_contains(&stderr, "note: ");
    assert_contains(&stderr, "gzip stream is whole");
    let (_, as_whole, _) = output(&["top", &super::fixture("hprof/android-a.hprof.gz")]);
    assert_eq!(stdout.lines().nth(1), as_whole.lines().nth(1));
    let mut file = of_java_se(&[3]);
    record(&mut file, 0x2c, &[]);
    file.extend(b"\nDone.\n");
    let (code, _, stderr) = output(&["top", &write(directory.path(), "b.hprof", &file)]);
    assert_eq!(code, Some(0), "{stderr}");
    assert_contains(&stderr, "7 bytes behind its end");
}

#[test]
fn a_file_in_place_of_a_dump_is_named_with_its_remedy() {
    let directory = tempfile::tempdir().unwrap();
    let whole = of_java_se(&[3, 2]);
    let with_cr = [&whole[..], b"\n\n\n\n"].concat();
    let with_cr = with_cr.iter().flat_map(|&byte| match byte {
        b'\n' => vec![b'\r', b'\n'],
        byte => vec![byte],
    });
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n";
    for (name, bytes, what, help) in [
        (
            "crlf",
            with_cr.collect(),
            "a CR was added before each LF",
            "`adb pull`",
        ),
        (
            "lfs",
            pointer.to_vec(),
            "a pointer of Git LFS",
            "`git lfs pull`",
        ),
        (
            "text",
            b"JAVA PROFILE 1.0.1, created Mon Jan 05\n\nHeader".to_vec(),
            "a text HPROF",
            "format=b",
        ),
    ] {
        let path = write(directory.path(), name, &bytes);
        for args in [
            &["top", &path][..],
            &["leaks", &path],
            &["hprof", "info", &path],
            &["report", &path, "-o", "-"],
        ] {
            let (code, _, stderr) = output(args);
            assert_eq!(code, Some(8), "{args:?} {stderr}");
            assert_contains(&stderr, what);
            assert_contains(&stderr, help);
        }
    }
    // In place of an R8 mapping, of symbols, or of a device's text.
    let path = write(directory.path(), "lfs", pointer);
    let dump = super::fixture("hprof/android-a.hprof.gz");
    let (_, _, stderr) = output(&["top", &dump, "--mapping", &path]);
    assert_contains(&stderr, "`git lfs pull`");
    for command in ["meminfo", "smaps", "gc"] {
        let (code, _, stderr) = output(&[command, &path]);
        assert_eq!(code, Some(8), "{stderr}");
        assert_contains(&stderr, "a pointer of Git LFS");
    }
}

#[test]
fn packed_twice_or_cut_at_a_block_the_cause_is_right() {
    let directory = tempfile::tempdir().unwrap();
    let gzip = |bytes: &[u8]| {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    };
    let whole = of_java_se(&[300]);
    let twice = write(directory.path(), "twice.gz", &gzip(&gzip(&whole)));
    assert_eq!(output(&["top", &twice]).0, Some(0));
    let cut = write(directory.path(), "cut.hprof", &whole[..4096]);
    let (code, _, stderr) = output(&["top", &cut]);
    assert_eq!(code, Some(6), "{stderr}");
    assert_contains(&stderr, "truncated");
}

#[test]
fn a_page_of_a_heap_that_is_mostly_garbage_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let dump = write(directory.path(), "garbage.hprof", &of_java_se(&[500]));
    let page = directory.path().join("page.html");
    let (code, _, stderr) = output(&format!("report {dump} -o {}", page.display()));
    assert_eq!(code, Some(0), "{stderr}");
    let page = std::fs::read_to_string(page).unwrap();
    let said = page.split("Most of this heap is unreachable: ").nth(1);
    // 499 objects of 16 bytes are not reachable, and no class.
    assert!(said.is_some_and(|said| said.starts_with("7.8 KiB of 7.8 KiB")));
    assert!(page.contains("in 501 unreachable objects"));
}
