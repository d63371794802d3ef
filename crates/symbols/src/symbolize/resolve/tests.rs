//! Libraries with Breakpad files as symbols: these are text, so the tests show the name of each
//! address.

use super::*;
use crate::symbolize::cache::Cache;
use crate::symbolize::find::{Finder, Places, tests::sample_files};
use crate::symbolize::library::wanted;
use heaptap_base::units::BuildId;
use heaptap_model::profile::{Frame, FrameId, Mapping, Recording, StringId};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Makes symbols of the library with this build ID: a function of 0x10 bytes at each address.
fn symbols(build_id: u8, functions: &[(u64, &str)]) -> String {
    let mut text = format!(
        "MODULE Linux arm64 {0}{0}{0}{0}0 lib\nINFO CODE_ID {1}\nFILE 0 /src/lib.cc\n",
        format!("{build_id:02X}").repeat(4),
        format!("{build_id:02X}").repeat(20)
    );
    for (address, name) in functions {
        writeln!(text, "FUNC {address:x} 10 0 {name}\n{address:x} 10 7 0").unwrap();
    }
    text
}

fn id(build_id: u8) -> BuildId {
    BuildId(vec![build_id; 20])
}

/// Makes a recording with a frame at each address of each library: path, build ID, address, and the
/// name from the unwinder.
fn recording(frames: &[(&str, u8, u64, &str)]) -> Recording {
    let mut recording = Recording::default();
    let tables = &mut recording.tables;
    for (path, build_id, rel_pc, name) in frames {
        let path = tables.intern_str(path);
        let mapping = tables.intern_mapping(Mapping {
            path,
            build_id: id(*build_id),
            end: 0x1000,
            ..Mapping::default()
        });
        let name = tables.intern_str(name);
        tables.intern_frame(Frame {
            mapping: Some(mapping),
            rel_pc: *rel_pc,
            name,
            file: StringId::default(),
            line: 0,
        });
    }
    recording
}

struct Lab {
    directory: tempfile::TempDir,
    cache: Cache,
}

impl Lab {
    fn new() -> Lab {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::in_directory(&directory.path().join("cache")).unwrap();
        Lab { directory, cache }
    }

    /// Writes a file to a directory of symbols.
    fn put(&self, root: &str, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let root = self.directory.path().join(root);
        std::fs::create_dir_all(&root).unwrap();
        let path = root.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn finder(&self, roots: &[&str]) -> Finder {
        Finder::new(Places {
            symbols: roots
                .iter()
                .map(|r| self.directory.path().join(r))
                .collect(),
            ..Places::default()
        })
    }

    fn resolve(&self, recording: &Recording, roots: &[&str]) -> Symbolized {
        self.resolve_unless(recording, roots, false)
    }

    fn resolve_unless(&self, recording: &Recording, roots: &[&str], cancel: bool) -> Symbolized {
        let resolver = Resolver {
            finder: &self.finder(roots),
            cache: Some(&self.cache),
            threads: NonZero::new(3).unwrap(),
            cancel: &AtomicBool::new(cancel),
        };
        resolver.resolve(wanted(recording), &|_| {})
    }

    fn answers(&self) -> usize {
        fn count(directory: &Path) -> usize {
            let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
            entries
                .map(|entry| match entry.path() {
                    path if path.is_dir() => count(&path),
                    _ => 1,
                })
                .sum()
        }
        count(&self.cache.directory().join("answers"))
    }
}

/// Returns the functions of a frame's lines, innermost first.
fn names(recording: &Recording, frame: u32) -> Vec<&str> {
    let lines = recording.symbols.lines(FrameId(frame)).iter();
    lines.map(|l| recording.tables.string(l.function)).collect()
}

#[test]
fn many_libraries_are_named_each_by_its_own_file() {
    let lab = Lab::new();
    let paths: Vec<String> = (0..100).map(|n| format!("/lib/lib{n}.so")).collect();
    let mut frames = Vec::new();
    for (n, path) in paths.iter().enumerate() {
        let name = format!("of_{n}");
        let text = symbols(n as u8, &[(0x40, &name)]);
        lab.put("syms", &format!("lib{n}.so"), text);
        frames.push((path.as_str(), n as u8, 0x44, ""));
    }
    let mut recording = recording(&frames);
    let done = AtomicUsize::new(0);
    let resolver = Resolver {
        finder: &lab.finder(&["syms"]),
        cache: None,
        threads: NonZero::new(4).unwrap(),
        cancel: &AtomicBool::new(false),
    };
    let symbolized = resolver.resolve(wanted(&recording), &|progress| {
        assert_eq!(progress.libraries, 100);
        done.fetch_add(1, Ordering::Relaxed);
    });
    assert_eq!(done.into_inner(), 100);
    let applied = symbolized.apply(&mut recording);
    assert_eq!(applied.count, 100);
    for n in 0..100 {
        assert_eq!(names(&recording, n), [format!("of_{n}")]);
        let line = recording.symbols.lines(FrameId(n))[0];
        assert_eq!(recording.tables.string(line.file), "/src/lib.cc");
        assert_eq!(line.line, 7);
    }
}

#[test]
fn a_file_that_cannot_be_read_is_its_librarys_own_failure() {
    let lab = Lab::new();
    lab.put("syms", "good.so", symbols(1, &[(0x40, "good")]));
    let mut hostile = symbols(2, &[(0x40, "hostile")]).into_bytes();
    hostile.extend([0xff; 4096]);
    lab.put("syms", "hostile.so", &hostile);
    lab.put("syms", "noise.so", b"\x7fELF and nothing else");
    let mut recording = recording(&[
        ("/good.so", 1, 0x40, ""),
        ("/hostile.so", 2, 0x40, ""),
        ("/noise.so", 3, 0x40, ""),
    ]);
    let symbolized = lab.resolve(&recording, &["syms"]);
    symbolized.apply(&mut recording);
    assert_eq!(names(&recording, 0), ["good"]);
    let [_, _, noise] = symbolized.libraries.as_slice() else {
        panic!("three libraries");
    };
    assert_eq!(noise.known(), 0);
    assert_eq!(noise.attempts[0].why_not.word(), "damaged");
}

#[test]
fn what_one_file_does_not_know_the_next_is_asked() {
    let lab = Lab::new();
    lab.put("first", "lib.so", symbols(1, &[(0x40, "first")]));
    let both = symbols(1, &[(0x40, "second"), (0x80, "only_second")]);
    lab.put("second", "lib.so", both);
    let mut recording = recording(&[("/lib.so", 1, 0x40, ""), ("/lib.so", 1, 0x80, "")]);
    for run in ["cold", "warm"] {
        let symbolized = lab.resolve(&recording, &["first", "second"]);
        let asked: Vec<usize> = symbolized.libraries[0]
            .files
            .iter()
            .map(|file| file.addresses)
            .collect();
        assert_eq!(asked, [1, 1], "{run}");
        assert_eq!(symbolized.libraries[0].known(), 2);
    }
    lab.resolve(&recording, &["first", "second"])
        .apply(&mut recording);
    assert_eq!(names(&recording, 0), ["first"]);
    assert_eq!(names(&recording, 1), ["only_second"]);
}

#[test]
fn answers_are_kept_until_their_file_changes() {
    let lab = Lab::new();
    let path = lab.put("syms", "lib.so", symbols(1, &[(0x40, "before")]));
    let few = recording(&[("/lib.so", 1, 0x40, ""), ("/lib.so", 1, 0x90, "")]);
    let known = |recording: &Recording| {
        let mut recording = recording.clone();
        lab.resolve(&recording, &["syms"]).apply(&mut recording);
        let frames = 0..recording.tables.frames().len() as u32;
        let all: Vec<String> = frames.map(|f| names(&recording, f).concat()).collect();
        all
    };
    assert_eq!(known(&few), ["before", ""]);
    assert_eq!(lab.answers(), 1);
    // With the same size and time, the file is not read again.
    let time = std::fs::metadata(&path).unwrap().modified().unwrap();
    std::fs::write(&path, symbols(1, &[(0x40, "behind")])).unwrap();
    let file = std::fs::File::options().append(true).open(&path).unwrap();
    file.set_modified(time).unwrap();
    assert_eq!(known(&few), ["before", ""]);
    // New addresses are looked up, and the others stay.
    let more = recording(&[("/lib.so", 1, 0x40, ""), ("/lib.so", 1, 0x4f, "")]);
    assert_eq!(known(&more), ["before", "behind"]);
    assert_eq!(lab.answers(), 1);
    // A changed file is read again.
    std::fs::write(&path, symbols(1, &[(0x40, "behind"), (0x90, "new")])).unwrap();
    assert_eq!(known(&few), ["behind", "new"]);
    assert_eq!(lab.answers(), 2);
    // A better file in another place is used, too.
    lab.put("more", "lib.so", symbols(1, &[(0x40, "better")]));
    let symbolized = lab.resolve(&few, &["more", "syms"]);
    assert_eq!(symbolized.libraries[0].files[0].addresses, 1);
    assert_eq!(lab.answers(), 3);
}

#[test]
fn damaged_answers_are_asked_anew() {
    let lab = Lab::new();
    lab.put("syms", "lib.so", symbols(1, &[(0x40, "f")]));
    let recording = recording(&[("/lib.so", 1, 0x40, "")]);
    let library = &wanted(&recording)[0];
    let candidates = lab.finder(&["syms"]).find(library).candidates;
    let key = stored::key(library, &candidates);
    for payload in [
        &b""[..],
        b"\x01\x00\x00",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
    ] {
        lab.cache.answers().put(&key, payload).unwrap();
        assert_eq!(lab.resolve(&recording, &["syms"]).libraries[0].known(), 1);
    }
}

#[test]
fn a_name_of_the_unwinder_gives_way_to_lines_only() {
    let lab = Lab::new();
    lab.put("syms", "lib.so", symbols(1, &[(0x40, "symbol")]));
    let mut recording = recording(&[("/lib.so", 1, 0x40, "recorded"), ("/lib.so", 1, 0x44, "")]);
    let mut symbolized = lab.resolve(&recording, &["syms"]);
    let exported = &mut symbolized.libraries[0].files[0];
    exported.knowledge = crate::symbolize::file::Knowledge::Dynsym;
    let applied = symbolized.apply(&mut recording);
    assert_eq!(
        (applied.has(FrameId(0)), applied.has(FrameId(1))),
        (false, true)
    );
    symbolized.libraries[0].files[0].knowledge = crate::symbolize::file::Knowledge::Symtab;
    symbolized.apply(&mut recording);
    assert_eq!(names(&recording, 0), ["symbol"]);
}

#[test]
fn who_does_not_want_to_wait_gets_what_is_done() {
    let lab = Lab::new();
    lab.put("syms", "lib.so", symbols(1, &[(0x40, "f")]));
    let recording = recording(&[("/lib.so", 1, 0x40, "")]);
    let symbolized = lab.resolve_unless(&recording, &["syms"], true);
    assert!(symbolized.cancelled);
    assert_eq!(symbolized.libraries.len(), 1);
    assert_eq!(symbolized.libraries[0].known(), 0);
}

#[test]
fn behind_a_damaged_file_the_search_goes_on() {
    let lab = Lab::new();
    // It claims to have DWARF, which ends a search, but the DWARF is not readable.
    let damaged = sample_files::elf(&[1; 20], sample_files::FULL);
    lab.put("first", "lib.so", damaged);
    lab.put("second", "lib.so", symbols(1, &[(0x40, "second")]));
    let mut recording = recording(&[("/lib.so", 1, 0x40, "")]);
    let symbolized = lab.resolve(&recording, &["first", "second"]);
    assert!(!symbolized.libraries[0].files[0].notes.is_empty());
    symbolized.apply(&mut recording);
    assert_eq!(names(&recording, 0), ["second"]);
}

#[test]
fn what_the_cache_knows_of_a_file_outlives_it() {
    let lab = Lab::new();
    let path = lab.put("syms", "lib.so", symbols(1, &[(0x40, "first")]));
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    let settle = |path: &Path| {
        let file = std::fs::File::options().append(true).open(path).unwrap();
        file.set_modified(long_ago).unwrap();
    };
    settle(&path);
    let resolve = |recording: &Recording| {
        let finder = Finder::new(Places {
            symbols: vec![lab.directory.path().join("syms")],
            cache: Some(lab.cache.clone()),
            ..Places::default()
        });
        let resolver = Resolver {
            finder: &finder,
            cache: Some(&lab.cache),
            threads: NonZero::<usize>::MIN,
            cancel: &AtomicBool::new(false),
        };
        resolver.resolve(wanted(recording), &|_| {})
    };
    resolve(&recording(&[("/lib.so", 1, 0x40, "")]));
    // With the same size and time, so that the change is noticed only when it is opened.
    std::fs::write(&path, symbols(2, &[(0x40, "other")])).unwrap();
    settle(&path);
    let mut more = recording(&[("/lib.so", 1, 0x40, ""), ("/lib.so", 1, 0x44, "")]);
    let symbolized = resolve(&more);
    assert_eq!(symbolized.libraries[0].failures.len(), 1);
    symbolized.apply(&mut more);
    assert_eq!(names(&more, 0), ["first"]);
    assert!(names(&more, 1).is_empty());
}

#[test]
fn threads_are_one_budget_of_all_libraries() {
    let of = |threads| NonZero::new(threads).unwrap();
    let many = Budget::new(of(64), 64);
    let shares: Vec<usize> = (0..64).map(|_| many.share(true).get()).collect();
    assert_eq!(shares[..3], [33, 17, 9]);
    assert_eq!(shares.iter().sum::<usize>(), 128);
    many.give_back(of(33));
    assert_eq!(many.share(false).get(), 1);
    assert_eq!(many.share(true).get(), 17);
    assert_eq!(Budget::new(of(8), 1).share(true).get(), 8);
    assert_eq!(Budget::new(of(1), 1).share(true).get(), 1);
}
