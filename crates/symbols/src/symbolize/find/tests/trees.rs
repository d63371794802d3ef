//! Directory trees: remembered data, walked directories, and skipped ones.

use super::{find, paths, reasons, symbols};
use crate::symbolize::cache::Cache;
use crate::symbolize::file::Knowledge;
use crate::symbolize::find::tests::sample_files::{FULL, ID, NAMES, OTHER, elf, library, put};
use crate::symbolize::find::{Finder, Found, Places};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const PATH: &str = "/data/app/libfoo.so";

/// Directory with an index in a cache, searched by one process after the other.
struct Tree {
    root: tempfile::TempDir,
    cache: tempfile::TempDir,
}

impl Tree {
    fn new() -> Self {
        Tree {
            root: tempfile::tempdir().unwrap(),
            cache: tempfile::tempdir().unwrap(),
        }
    }

    /// Writes a file with a time one hour ago, and sets the same time for all directories above.
    fn put(&self, below: &str, bytes: &[u8]) -> PathBuf {
        let path = put(self.root.path(), below, bytes);
        self.settle(&path, 3600);
        path
    }

    /// Sets the time of a file and of all directories above it to a number of seconds ago.
    fn settle(&self, path: &Path, seconds: u64) {
        let time = SystemTime::now() - Duration::from_secs(seconds);
        for path in path.ancestors() {
            set_time(path, time);
            if path == self.root.path() {
                break;
            }
        }
    }

    fn places(&self) -> Places {
        Places {
            cache: Some(Cache::in_directory(self.cache.path()).unwrap()),
            ..symbols(&[self.root.path()])
        }
    }

    /// Searches like another process.
    fn find(&self) -> Found {
        Finder::new(self.places()).find(&library(PATH, &ID))
    }

    /// Replaces the content of a file by another of the same size, without a trace in the times.
    fn replace_unseen(&self, below: &str, bytes: &[u8]) {
        let path = self.root.path().join(below);
        let directory = path.parent().unwrap();
        let time = |path: &Path| std::fs::metadata(path).unwrap().modified().unwrap();
        let (of_file, of_directory) = (time(&path), time(directory));
        std::fs::write(&path, bytes).unwrap();
        set_time(&path, of_file);
        set_time(directory, of_directory);
    }
}

fn set_time(path: &Path, time: SystemTime) {
    let file = match path.is_dir() && cfg!(windows) {
        true => return,
        false if path.is_dir() => File::open(path),
        false => File::options().append(true).open(path),
    };
    file.unwrap().set_modified(time).unwrap();
}

#[test]
fn the_next_process_opens_nothing_again() {
    let tree = Tree::new();
    tree.put("a/x.so", &elf(&ID, FULL));
    tree.put("b/c/y.so", &elf(&OTHER, FULL));
    tree.put(
        "b/readme.txt",
        b"a text that is long enough to be looked into",
    );
    let found = tree.find();
    assert_eq!(paths(&found, tree.root.path()), ["a/x.so"]);
    assert_eq!(found.candidates[0].knowledge, Knowledge::Dwarf);
    assert_eq!(*found.candidates[0].open().unwrap(), *elf(&ID, FULL));
    // The other process would see both, if it opened the files.
    tree.replace_unseen("a/x.so", &elf(&OTHER, FULL));
    tree.replace_unseen("b/c/y.so", &elf(&ID, FULL));
    assert_eq!(paths(&tree.find(), tree.root.path()), ["a/x.so"]);
}

#[test]
fn changes_are_seen_by_size_and_time() {
    let tree = Tree::new();
    tree.put("a/x.so", &elf(&OTHER, FULL));
    tree.put("a/y.so", &elf(&[9; 20], FULL));
    assert!(tree.find().candidates.is_empty());
    // Other content of the same size, written in place: only the time of the file differs.
    let directory_time = std::fs::metadata(tree.root.path().join("a")).unwrap();
    let path = put(tree.root.path(), "a/x.so", &elf(&ID, FULL));
    tree.settle(&path, 1800);
    set_time(
        &tree.root.path().join("a"),
        directory_time.modified().unwrap(),
    );
    // Of this one, not even the time differs, so it is not opened.
    tree.replace_unseen("a/y.so", &elf(&ID, FULL));
    assert_eq!(paths(&tree.find(), tree.root.path()), ["a/x.so"]);
    // A new file, and a deleted one.
    tree.put("a/z.so", &elf(&ID, FULL));
    std::fs::remove_file(&path).unwrap();
    tree.settle(&tree.root.path().join("a"), 900);
    assert_eq!(paths(&tree.find(), tree.root.path()), ["a/z.so"]);
    // A deleted directory.
    std::fs::remove_dir_all(tree.root.path().join("a")).unwrap();
    assert!(tree.find().candidates.is_empty());
}

#[test]
fn what_was_changed_just_now_is_not_relied_on() {
    let tree = Tree::new();
    put(tree.root.path(), "x.so", &elf(&OTHER, FULL));
    let time = SystemTime::now();
    set_time(&tree.root.path().join("x.so"), time);
    assert!(tree.find().candidates.is_empty());
    // Changed again, so soon that its time is the same.
    put(tree.root.path(), "x.so", &elf(&ID, FULL));
    set_time(&tree.root.path().join("x.so"), time);
    assert_eq!(paths(&tree.find(), tree.root.path()), ["x.so"]);
}

#[test]
fn a_damaged_index_is_made_anew() {
    let tree = Tree::new();
    tree.put("x.so", &elf(&ID, FULL));
    tree.find();
    let indexes = tree.cache.path().join("v1/indexes");
    let mut damaged = 0;
    for directory in std::fs::read_dir(indexes).unwrap().flatten() {
        for file in std::fs::read_dir(directory.path()).unwrap().flatten() {
            let mut bytes = std::fs::read(file.path()).unwrap();
            bytes.truncate(bytes.len() / 2);
            std::fs::write(file.path(), bytes).unwrap();
            damaged += 1;
        }
    }
    assert_eq!(damaged, 1);
    assert_eq!(paths(&tree.find(), tree.root.path()), ["x.so"]);
}

#[test]
fn many_files_of_one_directory_are_shared_by_threads() {
    let root = tempfile::tempdir().unwrap();
    for at in 0..1500u32 {
        let mut id = [0; 20];
        id[..4].copy_from_slice(&at.to_le_bytes());
        put(root.path(), &format!("lib{at}.so"), &elf(&id, NAMES));
    }
    let finder = Finder::new(symbols(&[root.path()]));
    for at in [0u32, 700, 1499] {
        let mut id = [0; 20];
        id[..4].copy_from_slice(&at.to_le_bytes());
        let found = finder.find(&library("/x/other.so", &id));
        assert_eq!(paths(&found, root.path()), [format!("lib{at}.so")]);
    }
}

#[test]
fn a_tree_with_too_many_files_is_told_as_not_searched_to_its_end() {
    let root = tempfile::tempdir().unwrap();
    for at in 0..=2000 {
        put(root.path(), &format!("{at}"), b"");
    }
    let found = find(symbols(&[root.path()]), PATH, &ID);
    let [attempt] = &found.attempts[..] else {
        panic!("{:?}", found.attempts);
    };
    assert_eq!(attempt.path, root.path().to_string_lossy());
    assert_eq!(
        format!("{} {}", attempt.why_not.word(), attempt.why_not),
        "too-many-files has more than 2000 files; the rest was not searched"
    );
}

#[test]
fn version_control_and_node_modules_are_passed_over() {
    let root = tempfile::tempdir().unwrap();
    for below in [".git/x.so", "a/node_modules/y/x.so", ".repo/x.so"] {
        put(root.path(), below, &elf(&ID, FULL));
    }
    assert!(
        find(symbols(&[root.path()]), PATH, &ID)
            .candidates
            .is_empty()
    );
    put(root.path(), ".hidden/x.so", &elf(&ID, FULL));
    let found = find(symbols(&[root.path()]), PATH, &ID);
    assert_eq!(paths(&found, root.path()), [".hidden/x.so"]);
    // A directory passed explicitly is searched.
    let found = find(symbols(&[root.path().join(".git")]), PATH, &ID);
    assert_eq!(paths(&found, root.path()), [".git/x.so"]);
}

#[test]
#[cfg(unix)]
fn links_are_followed_once_and_never_in_circles() {
    use std::os::unix::fs::symlink;
    let root = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    put(root.path(), "a/real.so", &elf(&OTHER, FULL));
    put(elsewhere.path(), "deep/x.so", &elf(&ID, FULL));
    symlink(root.path(), root.path().join("a/self")).unwrap();
    symlink("..", root.path().join("a/up")).unwrap();
    symlink("/", root.path().join("a/all")).unwrap();
    symlink("loop", root.path().join("a/loop")).unwrap();
    symlink("gone", root.path().join("a/dangling.so")).unwrap();
    symlink("real.so", root.path().join("a/link.so")).unwrap();
    symlink(elsewhere.path(), root.path().join("one")).unwrap();
    symlink(elsewhere.path().join("deep"), root.path().join("two")).unwrap();
    symlink(elsewhere.path(), elsewhere.path().join("deep/back")).unwrap();
    let finder = Finder::new(symbols(&[root.path()]));
    let found = finder.find(&library(PATH, &ID));
    // The same directory by two links, in any order: at most once more.
    assert!(matches!(paths(&found, root.path()).len(), 1 | 2));
    assert!(found.candidates[0].path.ends_with("x.so"));
}

#[test]
#[cfg(target_os = "linux")]
fn pipes_devices_and_unreadable_files_are_never_waited_for() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let root = tempfile::tempdir().unwrap();
    let pipe = root.path().join("libfoo.so");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    symlink("/dev/zero", root.path().join("zero.so")).unwrap();
    let secret = put(root.path(), "secret/libfoo.so", &elf(&ID, FULL));
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o000)).unwrap();
    let is_root = File::open(&secret).is_ok();
    let found = find(symbols(&[root.path()]), PATH, &ID);
    if is_root {
        // root can read everything.
        assert_eq!(paths(&found, root.path()), ["secret/libfoo.so"]);
    } else {
        assert_eq!(reasons(&found), ["unreadable"]);
    }
    // A pipe passed explicitly does not block either.
    let found = find(symbols(&[&pipe]), PATH, &ID);
    assert!(found.candidates.is_empty());
    assert_eq!(found.attempts.len(), 1);
}

#[test]
fn deep_trees_end() {
    let root = tempfile::tempdir().unwrap();
    let deep = "d/".repeat(80);
    put(root.path(), &format!("{deep}x.so"), &elf(&ID, FULL));
    put(root.path(), "d/d/y.so", &elf(&ID, NAMES));
    let found = find(symbols(&[root.path()]), PATH, &ID);
    assert_eq!(paths(&found, root.path()), ["d/d/y.so"]);
}

#[test]
fn a_name_without_a_build_id_goes_to_the_right_processor() {
    let root = tempfile::tempdir().unwrap();
    put(root.path(), "obj/x86_64/libfoo.so", &elf(&[], FULL));
    put(root.path(), "obj/arm64-v8a/libfoo.so", &elf(&[], NAMES));
    let places = Places {
        allow_no_build_id: true,
        ..symbols(&[root.path()])
    };
    let found = find(places, "/x/base.apk!lib/arm64-v8a/libfoo.so", &ID);
    let expected = ["obj/arm64-v8a/libfoo.so", "obj/x86_64/libfoo.so"];
    assert_eq!(paths(&found, root.path()), expected);
    assert!(found.candidates.iter().all(|c| !c.verified));
}

#[test]
#[cfg(unix)]
fn the_target_of_a_link_may_come_later() {
    use std::os::unix::fs::symlink;
    let tree = Tree::new();
    let elsewhere = tempfile::tempdir().unwrap();
    let target = elsewhere.path().join("later.so");
    tree.put("a/other.so", &elf(&OTHER, FULL));
    symlink(&target, tree.root.path().join("a/x.so")).unwrap();
    symlink(elsewhere.path().join("folder"), tree.root.path().join("b")).unwrap();
    tree.settle(&tree.root.path().join("a"), 3600);
    assert!(tree.find().candidates.is_empty());
    std::fs::write(&target, elf(&ID, FULL)).unwrap();
    assert_eq!(paths(&tree.find(), tree.root.path()), ["a/x.so"]);
    // The target is deleted, and a directory is created.
    std::fs::remove_file(&target).unwrap();
    assert!(tree.find().candidates.is_empty());
    put(elsewhere.path(), "folder/y.so", &elf(&ID, FULL));
    assert_eq!(paths(&tree.find(), tree.root.path()), ["b/y.so"]);
}

#[test]
#[cfg(target_os = "linux")]
fn a_tree_of_the_kernel_is_no_place() {
    use std::os::unix::fs::symlink;
    let root = tempfile::tempdir().unwrap();
    let kernel = root.path().join("kernel");
    symlink("/sys/kernel", &kernel).unwrap();
    let found = find(symbols(&[kernel]), PATH, &ID);
    assert_eq!(reasons(&found), ["not-a-file"]);
}

#[test]
fn packed_files_that_are_not_read_are_told() {
    const GZIP: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0 compressed data, as long as a file";
    const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd compressed data, as long as a file";
    let tree = Tree::new();
    let files: [(&str, &[u8]); 7] = [
        ("a/libfoo.so.gz", GZIP),
        ("b/libfoo.so.debug.zst", ZSTD),
        ("c/symbols.tar.gz", GZIP),
        ("d/symbols.tar", b"libfoo.so and much more in an archive"),
        // Others are not of this library, or no library at all.
        ("e/libother.so.gz", GZIP),
        ("f/notes.txt.gz", GZIP),
        ("g/libfoo.so.txt", b"text about a library, not packed"),
    ];
    for (below, bytes) in files {
        tree.put(below, bytes);
    }
    for _ in 0..2 {
        let found = tree.find();
        let told = reasons(&found);
        assert_eq!(told.iter().filter(|why| **why == "packed").count(), 4);
        let told: Vec<_> = found.attempts.iter().map(|attempt| &attempt.path).collect();
        for (below, _) in &files[..4] {
            let path = tree.root.path().join(below).display().to_string();
            assert!(told.contains(&&path), "{path} is not in {told:?}");
        }
    }
    // The unpacked library in the same directory is found.
    tree.put("a/libfoo.so", &elf(&ID, FULL));
    let found = tree.find();
    assert_eq!(found.candidates.len(), 1);
}
