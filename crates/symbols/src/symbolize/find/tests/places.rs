//! Each kind of place finds its files.

use super::{find, paths, places_of, reasons, symbols};
use crate::symbolize::cache::{Cache, Origin};
use crate::symbolize::file::{Knowledge, debug_id};
use crate::symbolize::find::tests::sample_files::{
    FULL, ID, NAMES, OTHER, STRIPPED, breakpad, elf, library, put,
};
use crate::symbolize::find::{Finder, Mode, Place, Places, RejectReason, project_around};
use heaptap_base::units::BuildId;

const PATH: &str = "/data/app/~~r==/com.example-q==/base.apk!libfoo.so";

#[test]
fn symbols_may_be_a_single_file_of_any_name() {
    let root = tempfile::tempdir().unwrap();
    let file = put(root.path(), "unstripped.bin", &elf(&ID, FULL));
    let found = find(symbols(&[file]), PATH, &ID);
    assert_eq!(paths(&found, root.path()), ["unstripped.bin"]);
    let text = put(root.path(), "libfoo.so", b"/* GNU ld script */ INPUT(x)");
    let found = find(symbols(&[text]), PATH, &ID);
    assert_eq!(reasons(&found), ["not-elf"]);
    let found = find(symbols(&[root.path().join("none")]), PATH, &ID);
    assert_eq!(reasons(&found), ["no-such-place"]);
}

#[test]
fn a_directory_of_symbols_is_searched_by_build_id_too() {
    let root = tempfile::tempdir().unwrap();
    put(root.path(), "some/where/renamed.so.dbg", &elf(&ID, FULL));
    put(root.path(), "libfoo.so", &elf(&ID, STRIPPED));
    let found = find(symbols(&[root.path()]), PATH, &ID);
    // The one in the five places is found first, and has less information.
    let expected = ["some/where/renamed.so.dbg", "libfoo.so"];
    assert_eq!(paths(&found, root.path()), expected);
}

#[test]
fn binary_path_in_index_mode_ignores_names() {
    let root = tempfile::tempdir().unwrap();
    put(root.path(), "a/x.debug", &elf(&ID, FULL));
    put(root.path(), "libfoo.so", &elf(&OTHER, FULL));
    let places = Places {
        binary_path: vec![root.path().to_owned()],
        ..Places::default()
    };
    let found = find(places, PATH, &ID);
    assert_eq!(paths(&found, root.path()), ["a/x.debug"]);
    assert_eq!(places_of(&found), [Place::BinaryPath]);
    assert_eq!(reasons(&found), ["other-build-id"]);
}

#[test]
fn binary_path_in_find_mode_looks_at_the_five_places_only() {
    let root = tempfile::tempdir().unwrap();
    put(root.path(), "a/libfoo.so", &elf(&ID, FULL));
    let places = Places {
        binary_path: vec![root.path().to_owned()],
        mode: Mode::Find,
        ..Places::default()
    };
    let found = find(places.clone(), PATH, &ID);
    assert_eq!(reasons(&found), ["not-there"]);
    put(root.path(), "libfoo.so", &elf(&ID, NAMES));
    let found = find(places, PATH, &ID);
    assert_eq!(paths(&found, root.path()), ["libfoo.so"]);
}

#[test]
#[cfg(unix)]
fn the_path_of_the_mapping_is_looked_up_on_this_host() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    let file = put(&root, "libfoo.so", &elf(&ID, FULL));
    let path = file.to_str().unwrap();
    put(&root, "found/libfoo.so", &elf(&ID, FULL));
    for (mode, first) in [
        (Mode::Find, Place::HostPath),
        (Mode::Index, Place::BinaryPath),
    ] {
        let places = Places {
            host_paths: true,
            binary_path: vec![root.join("found")],
            mode,
            ..Places::default()
        };
        let found = find(places, path, &ID);
        assert_eq!(places_of(&found), [first], "{mode:?}");
    }
    let places = Places {
        host_paths: true,
        ..Places::default()
    };
    let found = find(places.clone(), path, &OTHER);
    assert_eq!(reasons(&found), ["other-build-id"]);
    // Forbidden paths are not even listed as attempts.
    for odd in ["/proc/self/exe", "/dev/stdin", "libfoo.so", "/a/../b.so"] {
        let found = find(places.clone(), odd, &ID);
        assert_eq!(found.attempts, [], "{odd}");
    }
}

#[test]
fn a_gradle_project_has_symbols_in_many_places() {
    for below in [
        "app/build/intermediates/merged_native_libs/release/out/lib/arm64-v8a/libfoo.so",
        "app/build/intermediates/merged_native_libs/debug/mergeDebugNativeLibs/out/lib/arm64-v8a/libfoo.so",
        "app/build/intermediates/cmake/debug/obj/arm64-v8a/libfoo.so",
        "app/build/intermediates/cxx/RelWithDebInfo/2s5k/obj/arm64-v8a/libfoo.so",
        "app/build/intermediates/ndkBuild/debug/obj/local/arm64-v8a/libfoo.so",
        "app/build/intermediates/library_jni/release/jni/arm64-v8a/libfoo.so",
        "app/build/intermediates/native_debug_metadata/release/out/arm64-v8a/libfoo.so.dbg",
        "app/.cxx/Debug/3f/arm64-v8a/libfoo.so",
        "feature/deep/er/build/intermediates/cmake/debug/obj/arm64-v8a/libfoo.so",
        "build/app/intermediates/merged_native_libs/release/out/lib/arm64-v8a/libfoo.so",
        "app/src/main/jniLibs/arm64-v8a/libfoo.so",
        "rust/target/aarch64-linux-android/release/libfoo.so",
    ] {
        let project = tempfile::tempdir().unwrap();
        put(project.path(), "settings.gradle", b"");
        put(project.path(), below, &elf(&ID, FULL));
        let inside = project.path().join("app");
        std::fs::create_dir_all(&inside).unwrap();
        let places = Places {
            project: project_around(&inside),
            ..Places::default()
        };
        let found = find(places, PATH, &ID);
        assert_eq!(paths(&found, project.path()), [below]);
        assert_eq!(places_of(&found), [Place::Project]);
    }
}

#[test]
fn a_gradle_project_is_not_searched_outside_of_its_outputs() {
    let project = tempfile::tempdir().unwrap();
    for below in [
        "node_modules/x/build/intermediates/cmake/libfoo.so",
        "docs/libfoo.so",
    ] {
        put(project.path(), below, &elf(&ID, FULL));
    }
    let places = Places {
        project: Some(project.path().to_owned()),
        ..Places::default()
    };
    let found = find(places, PATH, &ID);
    assert_eq!(reasons(&found), ["not-there"]);
}

#[test]
fn a_platform_build_has_symbols_of_modules_in_several_places() {
    for below in [
        "apex/com.android.art/lib64/libart.so",
        "apex/com.android.art.debug/lib64/libart.so",
        "system/lib64/libart.so",
        "testcases/libart.so",
    ] {
        let out = tempfile::tempdir().unwrap();
        let symbols = out.path().join("symbols");
        put(&symbols, below, &elf(&ID, FULL));
        put(
            &symbols,
            "apex/com.android.runtime/lib64/libart.so",
            &elf(&OTHER, FULL),
        );
        let places = Places {
            product_out: Some(out.path().to_owned()),
            ..Places::default()
        };
        let found = find(
            places,
            "/apex/com.android.art@350820960/lib64/libart.so",
            &ID,
        );
        assert_eq!(paths(&found, &symbols), [below]);
        assert_eq!(places_of(&found), [Place::ProductOut]);
    }
}

#[test]
fn build_id_trees_hold_debug_files_and_libraries() {
    let rest = "ab/ababababababababababababababababababab";
    for below in [
        format!(".build-id/{rest}.debug"),
        format!(".build-id/{rest}"),
        format!(".build-id/{rest}/elf"),
        format!(".build-id/{rest}/debug"),
    ] {
        let root = tempfile::tempdir().unwrap();
        put(root.path(), &below, &elf(&ID, FULL));
        // The tree of the system is not walked: it is large, and it is arranged by build ID.
        put(root.path(), "elsewhere/libfoo.so", &elf(&ID, FULL));
        let places = Places {
            build_id_trees: vec![root.path().to_owned()],
            ..Places::default()
        };
        // A name is not needed.
        let found = find(places, "/[vdso]", &ID);
        assert_eq!(paths(&found, root.path()), [below]);
    }
}

#[test]
fn breakpad_files_are_found_by_either_id() {
    let id = debug_id(&BuildId(ID.to_vec()));
    let hex = BuildId(ID.to_vec()).to_string();
    let upper = hex.to_uppercase();
    for (below, text) in [
        (format!("{upper}.breakpad"), breakpad(&id, None)),
        (format!("{hex}.breakpad"), breakpad(&id, Some(&upper))),
        (format!("libfoo.so/{id}/libfoo.so.sym"), breakpad(&id, None)),
        (format!("any/where/{id}.txt"), breakpad(&id, Some(&upper))),
    ] {
        let root = tempfile::tempdir().unwrap();
        put(root.path(), &below, text.as_bytes());
        let places = Places {
            breakpad: Some(root.path().to_owned()),
            ..Places::default()
        };
        let found = find(places, PATH, &ID);
        assert_eq!(paths(&found, root.path()), [below.as_str()]);
        assert_eq!(found.candidates[0].knowledge, Knowledge::Lines);
        // Recordings of programs with Breakpad's IDs have them as text.
        let found = find(symbols(&[root.path()]), PATH, id.as_bytes());
        assert_eq!(paths(&found, root.path()), [below.as_str()]);
        let found = find(symbols(&[root.path()]), PATH, &OTHER);
        assert!(found.candidates.is_empty());
    }
}

#[test]
fn what_was_fetched_before_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::in_directory(directory.path()).unwrap();
    let id = BuildId(ID.to_vec());
    let libraries = cache.libraries();
    libraries
        .put(&id, Origin::Device, &elf(&ID, NAMES))
        .unwrap();
    let places = Places {
        cache: Some(cache.clone()),
        ..Places::default()
    };
    let finder = Finder::new(places);
    let found = finder.find(&library("/system/lib64/libc.so", &ID));
    assert_eq!(places_of(&found), [Place::Cache]);
    let identity = found.candidates[0].identity();
    assert_eq!(*found.candidates[0].open().unwrap(), *elf(&ID, NAMES));
    let again = finder.find(&library("/system/lib64/libc.so", &ID));
    assert_eq!(again.candidates[0].identity(), identity);
    let none = finder.find(&library("/system/lib64/libm.so", &OTHER));
    assert_eq!(none.attempts[0].why_not, RejectReason::NotThere);
}

#[test]
fn many_libraries_that_are_nowhere_leave_a_line_a_place() {
    let root = tempfile::tempdir().unwrap();
    let roots: Vec<_> = (0..10).map(|at| root.path().join(at.to_string())).collect();
    for root in &roots {
        for variant in 0..9 {
            put(
                root,
                &format!("{variant}/libfoo.so"),
                &elf(&[variant; 20], FULL),
            );
        }
    }
    let finder = Finder::new(symbols(&roots));
    for at in 0..200 {
        let found = finder.find(&library(&format!("/lib/lib{at}.so"), &ID));
        assert_eq!(found.attempts.len(), roots.len());
    }
    // Many files with the right name are counted, not listed.
    let found = finder.find(&library("/lib/libfoo.so", &ID));
    assert_eq!(found.attempts.len(), 4 * roots.len());
    assert_eq!(found.attempts[3].why_not, RejectReason::AndMore(6));
}
