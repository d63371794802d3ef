//! Checks of native heaps, on recorded traces: the sampling error of their figures is the same each
//! time.

use crate::native_tables::ended;
use crate::program::{assert_contains, assert_lacks};

#[test]
fn a_heap_that_the_second_input_lacks_leaves_a_check_open() {
    let trace = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/fixtures/conversions/two_same_name.pftrace"
    );
    let (a, b) = (format!("{trace}@3"), format!("{trace}@4"));
    let check = ["diff", &a, &b, "--fail-over", "1gb"];
    let (said, code) = ended(&check);
    assert_eq!(code, Some(12), "{said}");
    assert_contains(
        &said,
        "the second input does not have @3 libc.malloc of process 10611",
    );
    let (said, code) = ended(&[&check[..], &["-p", "10610"]].concat());
    assert_eq!(code, Some(0), "{said}");
}

/// The change is 0, but its interval is not.
#[test]
fn growth_that_sampling_cannot_exclude_leaves_a_check_open() {
    let trace = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/fixtures/conversions/rust_cont.pftrace"
    );
    let dumps = [2, 4, 6].map(|number| format!("{trace}@{number}"));
    let check = |tolerance: &str| {
        let [a, b, c] = dumps.each_ref().map(String::as_str);
        // An allocator's frame.
        let focus = ["--focus", "finish_grow", "--all-frames"];
        let check = ["leaks", a, b, c, "--fail", "--tolerance", tolerance];
        ended(&[&check[..], &focus].concat())
    };
    let (said, code) = check("1b");
    assert_eq!(code, Some(12), "{said}");
    assert_contains(&said, "(exit code 12)");
    let (said, code) = check("1mb");
    assert_eq!(code, Some(0), "{said}");
    assert_lacks(&said, "exit code");
}

#[test]
fn a_profile_without_sizes_is_not_compared_with_a_heap() {
    let directory = tempfile::tempdir().unwrap();
    // A column `cpu` in nanoseconds, and a sample of `main`.
    let mut cpu =
        b"\x0a\x04\x08\x01\x10\x02\x12\x04\x08\x01\x10\x05\x22\x06\x08\x01\x22\x02\x08\x01\
        \x2a\x04\x08\x01\x10\x03\x32\x00"
            .to_vec();
    for text in ["cpu", "nanoseconds", "main"] {
        cpu.extend([0x32, text.len() as u8]);
        cpu.extend(text.as_bytes());
    }
    let cpu_path = directory.path().join("cpu.pb");
    std::fs::write(&cpu_path, cpu).unwrap();
    let cpu = cpu_path.to_str().unwrap();
    let (said, code) = ended(&["top", cpu]);
    assert_eq!(code, Some(0), "{said}");
    let trace = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/fixtures/conversions/rust_cont.pftrace"
    );
    for sides in [[trace, cpu], [cpu, trace]] {
        let (said, code) = ended(&[&["diff"], &sides[..]].concat());
        assert_eq!(code, Some(2), "{said}");
        assert_contains(&said, "no column of unreleased bytes");
    }
}

#[test]
fn a_misspelled_one_of_several_processes_or_heaps_leaves_a_check_open() {
    let trace = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/fixtures/conversions/two_same_name.pftrace"
    );
    let directory = tempfile::tempdir().unwrap();
    let out = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let java = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/fixtures/heap_graphs/graph_10k.pftrace.zst"
    );
    let text = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/fixtures/meminfo/synthetic_api34_package_two_processes.txt"
    );
    let pprofs = ["convert", trace, "-o", &out("pprofs")];
    let page = ["report", trace, "-o", &out("page.html")];
    let folded = ["convert", trace, "--format", "folded", "-o", &out("folded")];
    let rows = ["query", trace, "SELECT count(*) FROM process"];
    for (args, pid, code) in [
        (&pprofs[..], 10610, 0),
        (&page[..], 10610, 0),
        (&folded[..], 10610, 0),
        (&rows[..], 10610, 0),
        (&["top", java][..], 5151, 0),
        (&["meminfo", text][..], 100, 0),
    ] {
        let (said, ended) = ended(&[args, &["-p", &format!("{pid},77")]].concat());
        assert_eq!(ended, Some(code), "{args:?}: {said}");
        let words = ["does not have", "process 77"];
        assert!(
            words.iter().all(|word| said.contains(word)),
            "{args:?}: {said}"
        );
    }
    let a = format!("{trace}@3");
    let of = |args: &[&str]| ended(&[&["top", &a], args].concat());
    for args in [["-p", "10610,77"], ["--heap", "libc.malloc,libc.maloc"]] {
        let (said, code) = of(&args);
        assert_eq!(code, Some(0), "{said}");
        assert_contains(&said, "the input does not have a");
    }
    let (said, _) = of(&["-p", "10610,10611"]);
    assert_lacks(&said, "does not have");
    let b = format!("{trace}@4");
    let check = |pids: &str| {
        let args = ["diff", &a, &b, "--fail-over", "1gb", "-p", pids];
        ended(&args)
    };
    let (said, code) = check("10610");
    assert_eq!(code, Some(0), "{said}");
    let (said, code) = check("10610,77");
    assert_eq!(code, Some(12), "{said}");
    assert_contains(&said, "is in neither input");
    // Two recordings have different PIDs.
    let rust = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/fixtures/conversions/rust_cont.pftrace"
    );
    let cont = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/fixtures/conversions/c_cont.pftrace"
    );
    let check = |pids: &str| {
        let args = ["diff", cont, rust, "--fail-over", "1gb", "-p", pids];
        ended(&args)
    };
    let (said, code) = check("2050,7890");
    assert_eq!(code, Some(0), "{said}");
    let (said, code) = check("2050,7890,77");
    assert_eq!(code, Some(12), "{said}");
    // `--heap` is one of the selected process.
    let leaks = |heap: &str| {
        let args = ["leaks", rust, "--fail", "-p", "7890", "--heap", heap];
        ended(&args).0
    };
    assert!(leaks("libc.malloc,x").contains("a heap x"));
    assert!(!leaks("libc.malloc").contains("does not have"));
}
