//! Checks of native heaps, on recorded traces: the sampling error of their figures is the same each
//! time.

use crate::native_tables::ended;

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
    assert!(
        said.contains("the second input does not have @3 libc.malloc of 10611"),
        "{said}"
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
    assert!(said.contains("(exit code 12)"), "{said}");
    let (said, code) = check("1mb");
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("exit code"), "{said}");
}
