//! Libraries in ZIP archives, valid and hostile.

use super::{find, paths, reasons, symbols};
use crate::symbolize::cache::Cache;
use crate::symbolize::file::Knowledge;
use crate::symbolize::find::tests::sample_files::{FULL, ID, NAMES, OTHER, elf, library, put, zip};
use crate::symbolize::find::{Finder, Mode, Places, RejectReason};

const PATH: &str = "/data/app/~~r==/com.example-q==/base.apk!lib/arm64-v8a/libfoo.so";

/// Makes a member larger than the part that is decompressed for identification.
fn large(build_id: &[u8]) -> Vec<u8> {
    let mut file = elf(build_id, FULL);
    // Move the section table to the end.
    let at = u64::from_le_bytes(file[40..48].try_into().unwrap()) as usize;
    let table = file.split_off(at);
    file.resize(300_000, 0);
    let moved = file.len() as u64;
    file[40..48].copy_from_slice(&moved.to_le_bytes());
    file.extend(table);
    file
}

#[test]
fn libraries_lie_in_archives_of_many_shapes() {
    let lib = elf(&ID, FULL);
    let large = large(&ID);
    let inner = zip(&[("lib/arm64-v8a/libfoo.so", &lib, false)]);
    for (archive, member, bytes, is_packed) in [
        ("app.apk", "lib/arm64-v8a/libfoo.so", &lib, false),
        ("app.apk", "lib/arm64-v8a/libfoo.so", &lib, true),
        ("app.apk", "lib/arm64-v8a/libfoo.so", &large, true),
        ("app.aab", "base/lib/arm64-v8a/libfoo.so", &lib, true),
        (
            "app.aab",
            "BUNDLE-METADATA/com.android.tools.build.debugsymbols/arm64-v8a/libfoo.so.dbg",
            &large,
            true,
        ),
        (
            "native-debug-symbols.zip",
            "arm64-v8a/libfoo.so.sym",
            &lib,
            true,
        ),
        ("lib.aar", "jni/arm64-v8a/libfoo.so", &lib, true),
        ("app.apks", "splits/base-arm64_v8a.apk", &inner, false),
        ("universal.zip", "out/app.apk", &inner, true),
    ] {
        let root = tempfile::tempdir().unwrap();
        let other = elf(&OTHER, FULL);
        let members = [
            ("classes.dex", &b"dex\n035"[..], true),
            ("lib/x86_64/libfoo.so", &other, true),
            (member, bytes, is_packed),
        ];
        let path = put(root.path(), archive, &zip(&members));
        let nested = if member.ends_with(".apk") {
            "!lib/arm64-v8a/libfoo.so"
        } else {
            ""
        };
        let expected = format!("{archive}!{member}{nested}");
        for given in [root.path(), &path] {
            let found = find(symbols(&[given]), PATH, &ID);
            assert_eq!(paths(&found, root.path()), [expected.as_str()]);
            assert_eq!(
                found.candidates[0].knowledge,
                Knowledge::Dwarf,
                "{expected}"
            );
            let opened = found.candidates[0].open().unwrap();
            let whole = if nested.is_empty() { bytes } else { &lib };
            assert!(*opened == **whole, "{expected}");
        }
    }
}

#[test]
fn the_package_that_a_mapping_lies_in_is_among_the_five_places() {
    let root = tempfile::tempdir().unwrap();
    let package = zip(&[("lib/arm64-v8a/libfoo.so", &elf(&ID, NAMES), false)]);
    put(root.path(), "base.apk", &package);
    let places = Places {
        binary_path: vec![root.path().to_owned()],
        mode: Mode::Find,
        ..Places::default()
    };
    for path in [
        PATH,
        "/data/app/x/base.apk!libfoo.so",
        "/data/app/x/base.apk",
    ] {
        let found = find(places.clone(), path, &ID);
        let expected = ["base.apk!lib/arm64-v8a/libfoo.so"];
        assert_eq!(paths(&found, root.path()), expected, "{path}");
    }
}

#[test]
fn what_a_compressed_member_knows_is_remembered() {
    let root = tempfile::tempdir().unwrap();
    let cache = tempfile::tempdir().unwrap();
    let archive = zip(&[("arm64-v8a/libfoo.so.dbg", &large(&ID), true)]);
    let path = put(root.path(), "native-debug-symbols.zip", &archive);
    let find = || {
        let places = Places {
            cache: Some(Cache::in_directory(cache.path()).unwrap()),
            ..symbols(&[&path])
        };
        Finder::new(places).find(&library(PATH, &ID))
    };
    assert_eq!(find().candidates[0].knowledge, Knowledge::Dwarf);
    // Its end can no longer be decompressed, but nothing tries to.
    let mut broken = archive.clone();
    let middle = archive.len() / 2;
    broken[middle..middle + 8].fill(0xff);
    let time = std::fs::metadata(&path).unwrap().modified().unwrap();
    std::fs::write(&path, &broken).unwrap();
    let file = std::fs::File::options().append(true).open(&path).unwrap();
    file.set_modified(time).unwrap();
    let found = find();
    assert_eq!(found.candidates[0].knowledge, Knowledge::Dwarf);
    assert!(matches!(
        found.candidates[0].open(),
        Err(RejectReason::Damaged(_))
    ));
}

#[test]
fn names_of_members_lead_nowhere() {
    let root = tempfile::tempdir().unwrap();
    let archive = zip(&[
        ("../../../etc/libfoo.so", &elf(&ID, FULL), true),
        ("/abs/libfoo.so", &elf(&OTHER, FULL), false),
        ("a\u{1b}[2Jlibbar.so", &elf(&[3; 20], FULL), false),
    ]);
    put(root.path(), "evil.zip", &archive);
    let found = find(symbols(&[root.path()]), PATH, &ID);
    assert_eq!(
        paths(&found, root.path()),
        ["evil.zip!../../../etc/libfoo.so"]
    );
    assert_eq!(*found.candidates[0].open().unwrap(), *elf(&ID, FULL));
    let found = find(symbols(&[root.path()]), PATH, &[3; 20]);
    assert_eq!(
        paths(&found, root.path()),
        ["evil.zip!a\u{fffd}[2Jlibbar.so"]
    );
    // Reading did not write anything.
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 1);
}

#[test]
fn members_that_lie_about_their_size_are_damaged() {
    let lib = large(&ID);
    let honest = zip(&[("lib/arm64-v8a/libfoo.so", &lib, true)]);
    let size = (lib.len() as u32).to_le_bytes();
    let at = |n: usize| {
        let hits = honest.windows(4).enumerate().filter(|(_, w)| *w == size);
        hits.map(|(at, _)| at).nth(n).unwrap()
    };
    // In the local header and in the directory; the latter counts.
    for (claim, expected) in [
        (lib.len() as u32 + 1, "damaged"),
        (lib.len() as u32 - 1, "damaged"),
        (u32::MAX - 1, "damaged"),
    ] {
        let mut archive = honest.clone();
        for n in 0..2 {
            archive[at(n)..at(n) + 4].copy_from_slice(&claim.to_le_bytes());
        }
        let root = tempfile::tempdir().unwrap();
        put(root.path(), "app.apk", &archive);
        let found = find(symbols(&[root.path()]), PATH, &ID);
        assert!(found.candidates.is_empty(), "{claim}");
        assert_eq!(reasons(&found), [expected], "{claim}");
    }
}

#[test]
fn bombs_are_not_unpacked() {
    // 300 MB of zeros after an ELF header without a build ID, many times.
    let mut bomb = elf(&[], FULL);
    bomb.resize(300 << 20, 0);
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Deflated)
        .compression_level(Some(1));
    archive.start_file("a/libfoo.so", options).unwrap();
    std::io::Write::write_all(&mut archive, &bomb).unwrap();
    for at in 0..20 {
        let name = format!("{at}/libfoo.so");
        archive.shallow_copy_file("a/libfoo.so", &name).unwrap();
    }
    let archive = archive.finish().unwrap().into_inner();
    assert!(archive.len() < 4 << 20);
    let root = tempfile::tempdir().unwrap();
    put(root.path(), "bomb.zip", &archive);
    let found = find(symbols(&[root.path()]), PATH, &ID);
    assert!(found.candidates.is_empty());
    // One was examined, and the others are refused without examination.
    assert_eq!(reasons(&found)[..2], ["no-build-id", "damaged"]);
}

#[test]
fn damaged_archives_are_told_by_their_name_alone() {
    let root = tempfile::tempdir().unwrap();
    let archive = zip(&[("lib/arm64-v8a/libfoo.so", &elf(&ID, FULL), false)]);
    for cut in [4, 30, 60, archive.len() / 2, archive.len() - 1] {
        put(root.path(), "libfoo.so.zip", &archive[..cut]);
        let found = find(symbols(&[root.path()]), PATH, &ID);
        assert!(found.candidates.is_empty(), "{cut}");
    }
    let path = put(root.path(), "libfoo.so", &archive[..30]);
    let found = find(symbols(&[path]), PATH, &ID);
    assert_eq!(reasons(&found), ["damaged"]);
}

#[test]
fn copies_of_the_best_are_not_unpacked_too() {
    let lib = large(&ID);
    let names: Vec<String> = (0..40).map(|at| format!("{at:02}/libfoo.so")).collect();
    let members: Vec<_> = names.iter().map(|n| (n.as_str(), &lib[..], true)).collect();
    let root = tempfile::tempdir().unwrap();
    put(root.path(), "many.zip", &zip(&members));
    let found = find(symbols(&[root.path()]), PATH, &ID);
    assert_eq!(paths(&found, root.path()), ["many.zip!00/libfoo.so"]);
}
