//! The rules for all places: the build ID decides, then the amount of information, then the order;
//! every other outcome is recorded with a reason.

use super::{find, paths, reasons, symbols};
use crate::symbolize::file::Knowledge;
use crate::symbolize::find::tests::sample_files::{
    FULL, ID, NAMES, OTHER, STRIPPED, elf, library, put,
};
use crate::symbolize::find::{Attempt, Finder, Place, RejectReason};
use heaptap_base::units::BuildId;

#[test]
fn each_of_the_five_places_holds_a_library() {
    for below in [
        "data/app/x/base.apk!libfoo.so",
        "data/app/x/libfoo.so",
        "base.apk!libfoo.so",
        "libfoo.so",
        ".build-id/ab/ababababababababababababababababababab.debug",
    ] {
        let root = tempfile::tempdir().unwrap();
        put(root.path(), below, &elf(&ID, FULL));
        let places = symbols(&[root.path()]);
        let found = find(places, "/data/app/x/base.apk!libfoo.so", &ID);
        assert_eq!(paths(&found, root.path()), [below]);
        assert_eq!(found.candidates[0].knowledge, Knowledge::Dwarf);
        assert!(found.candidates[0].verified);
        assert_eq!(*found.candidates[0].open().unwrap(), *elf(&ID, FULL));
        assert_eq!(found.attempts, [], "{below}");
    }
}

#[test]
fn the_file_that_knows_most_wins_over_all_places_then_the_first() {
    let root = tempfile::tempdir().unwrap();
    put(root.path(), "a/libfoo.so", &elf(&ID, STRIPPED));
    put(root.path(), "b/libfoo.so", &elf(&ID, NAMES));
    put(root.path(), "c/libfoo.so", &elf(&ID, NAMES));
    put(root.path(), "d/libfoo.so", &elf(&ID, FULL));
    put(root.path(), "e/libfoo.so", &elf(&ID, FULL));
    let roots = ["a", "b", "c", "d", "e"].map(|below| root.path().join(below));
    let finder = Finder::new(symbols(&roots));
    let foo = library("/system/lib64/libfoo.so", &ID);
    let mut found = finder.find(&foo);
    let first = ["d", "b", "c", "a"].map(|below| format!("{below}/libfoo.so"));
    assert_eq!(paths(&found, root.path()), first);
    // If that one turns out to be damaged, the search continues from there.
    assert!(finder.search_on(&foo, &mut found));
    assert_eq!(
        paths(&found, root.path())[..2],
        ["d/libfoo.so", "e/libfoo.so"]
    );
    assert!(!finder.search_on(&foo, &mut found));
}

#[test]
fn another_build_is_never_used_and_remembered_as_nearest() {
    let root = tempfile::tempdir().unwrap();
    let near = put(root.path(), "system/lib64/libfoo.so", &elf(&OTHER, FULL));
    put(root.path(), "libfoo.so", &elf(&[7; 20], FULL));
    let mut places = symbols(&[root.path()]);
    places.allow_no_build_id = true;
    let found = find(places, "/system/lib64/libfoo.so", &ID);
    assert!(found.candidates.is_empty());
    let nearest = found.nearest.unwrap();
    assert_eq!(nearest.path, near.display().to_string());
    assert_eq!(nearest.build_id, BuildId(OTHER.to_vec()));
    let expected = RejectReason::OtherBuildId(BuildId(OTHER.to_vec()));
    assert_eq!(found.attempts[0].why_not, expected);
    assert_eq!(found.attempts.len(), 2);
}

#[test]
fn files_without_build_id_are_taken_by_wish_only_and_marked() {
    let root = tempfile::tempdir().unwrap();
    put(root.path(), "one/libfoo.so", &elf(&[], FULL));
    put(root.path(), "two/libfoo.so", &elf(&ID, STRIPPED));
    let roots = ["one", "two"].map(|below| root.path().join(below));
    let found = find(symbols(&roots), "/lib/libfoo.so", &ID);
    assert_eq!(paths(&found, root.path()), ["two/libfoo.so"]);
    assert_eq!(found.attempts[0].why_not, RejectReason::NoBuildId);
    let mut places = symbols(&roots);
    places.allow_no_build_id = true;
    let found = find(places, "/lib/libfoo.so", &ID);
    // Verified files come before unverified ones, whatever their amount of information.
    assert_eq!(
        paths(&found, root.path()),
        ["two/libfoo.so", "one/libfoo.so"]
    );
    assert!(found.candidates[0].verified && !found.candidates[1].verified);
}

#[test]
fn every_reason_is_told_once_a_place() {
    let root = tempfile::tempdir().unwrap();
    let sample = elf(&ID, FULL);
    put(root.path(), "text/libfoo.so", b"INPUT(libfoo.so.1)");
    put(root.path(), "empty/libfoo.so", b"");
    put(root.path(), "cut/libfoo.so", &sample[..50]);
    std::fs::create_dir_all(root.path().join("folder/libfoo.so")).unwrap();
    std::fs::create_dir_all(root.path().join("none")).unwrap();
    let kinds = ["text", "empty", "cut", "folder", "none", "missing"];
    let roots = kinds.map(|below| root.path().join(below));
    let found = find(symbols(&roots), "/lib/libfoo.so", &ID);
    assert!(found.candidates.is_empty());
    assert_eq!(
        reasons(&found),
        [
            "not-elf",
            "not-elf",
            "damaged",
            "not-there",
            "not-there",
            "no-such-place"
        ]
    );
    let none = Attempt {
        place: Place::Symbols,
        path: root.path().join("none").display().to_string(),
        why_not: RejectReason::NotThere,
    };
    assert_eq!(found.attempts[4], none);
}

#[test]
fn a_file_that_changes_after_it_was_found_is_not_used() {
    let root = tempfile::tempdir().unwrap();
    let path = put(root.path(), "libfoo.so", &elf(&ID, FULL));
    let found = find(symbols(std::slice::from_ref(&path)), "/lib/libfoo.so", &ID);
    let identity = found.candidates[0].identity();
    put(root.path(), "libfoo.so", &elf(&ID, NAMES));
    assert_eq!(
        found.candidates[0].open().unwrap_err(),
        RejectReason::Changed
    );
    let again = find(symbols(&[path]), "/lib/libfoo.so", &ID);
    assert_ne!(again.candidates[0].identity(), identity);
}

#[test]
fn a_recording_without_build_ids_is_compared_with_nothing() {
    let root = tempfile::tempdir().unwrap();
    put(root.path(), "libfoo.so", &elf(&ID, FULL));
    let found = find(symbols(&[root.path()]), "/lib/libfoo.so", &[]);
    assert!(found.candidates.is_empty() && found.nearest.is_none());
    assert_eq!(reasons(&found), ["nothing-to-compare"]);
    let mut places = symbols(&[root.path()]);
    places.allow_no_build_id = true;
    let found = find(places, "/lib/libfoo.so", &[]);
    assert!(!found.candidates[0].verified);
    // There is nothing to search for memory without a file.
    let found = find(symbols(&[root.path()]), "/[anon:scudo]", &[]);
    assert!(found.attempts.is_empty());
}
