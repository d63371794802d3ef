//! Supplementary files are found through the places.

use super::{find, symbols};
use crate::symbolize::file::{Bytes, DebugLink, Supplement, SupplementaryRef};
use crate::symbolize::find::tests::sample_files::{FULL, ID, NAMES, OTHER, elf, put, zip};
use crate::symbolize::find::{Found, Places};
use heaptap_base::units::BuildId;

/// Returns the bytes of the supplementary file if its bytes are `right`.
fn companion(found: &Found, reference: &SupplementaryRef<'_>, right: &[u8]) -> Option<Bytes> {
    let fits = |bytes: &Bytes| **bytes == *right;
    let companion = found.candidates[0].companions().find(reference, &fits);
    companion.map(|companion| companion.bytes)
}

#[test]
fn debug_files_packages_and_units_are_found_in_trees_by_name() {
    let root = tempfile::tempdir().unwrap();
    let library = put(root.path(), "lib/libfoo.so", &elf(&ID, NAMES));
    // Next to it is a file of the same name that does not match.
    put(root.path(), "lib/libfoo.dbg", &elf(&OTHER, NAMES));
    let right = elf(&[], FULL);
    put(root.path(), "symbols/libfoo.dbg", &right);
    put(root.path(), "symbols/libfoo.so.dwp", &right);
    put(root.path(), "obj/unit.dwo", &right);
    put(root.path(), "shared/common.debug", &right);
    let found = find(symbols(&[root.path()]), "/x/libfoo.so", &ID);
    assert_eq!(found.candidates[0].path, library.display().to_string());
    let link = DebugLink {
        name: "libfoo.dbg".to_owned(),
        crc: 0,
    };
    let supplement = Supplement {
        path: "/nowhere/common.debug".to_owned(),
        build_id: BuildId(OTHER.to_vec()),
    };
    let split = SupplementaryRef::Split {
        name: "../obj/unit.dwo",
        directory: "/nowhere",
    };
    for reference in [
        SupplementaryRef::Debug(&link),
        SupplementaryRef::Package,
        split,
        SupplementaryRef::Supplement(&supplement),
    ] {
        assert!(
            companion(&found, &reference, &right).is_some(),
            "{reference:?}"
        );
        assert!(
            companion(&found, &reference, b"another").is_none(),
            "{reference:?}"
        );
    }
}

#[test]
fn a_shared_file_is_found_by_its_build_id() {
    let root = tempfile::tempdir().unwrap();
    let trees = tempfile::tempdir().unwrap();
    put(root.path(), "libfoo.so", &elf(&ID, FULL));
    let shared = elf(&OTHER, FULL);
    let below = ".build-id/cd/cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd.debug";
    put(trees.path(), below, &shared);
    let places = Places {
        build_id_trees: vec![trees.path().to_owned()],
        ..symbols(&[root.path()])
    };
    let found = find(places, "/x/libfoo.so", &ID);
    let supplement = Supplement {
        path: "../../.dwz/x.debug".to_owned(),
        build_id: BuildId(OTHER.to_vec()),
    };
    assert!(companion(&found, &SupplementaryRef::Supplement(&supplement), &shared).is_some());
}

#[test]
fn archives_hold_companions_too() {
    let root = tempfile::tempdir().unwrap();
    let package = elf(&[], FULL);
    let members = [
        ("arm64-v8a/libfoo.so", &elf(&ID, NAMES)[..], false),
        ("arm64-v8a/libfoo.so.dwp", &package, true),
    ];
    put(root.path(), "symbols.zip", &zip(&members));
    let found = find(symbols(&[root.path()]), "/x/libfoo.so", &ID);
    assert!(companion(&found, &SupplementaryRef::Package, &package).is_some());
}
