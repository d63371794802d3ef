//! Stores as readers see them, at every step of a writer.

use crate::table::{FILE, GENERATION, SHA256, UNIT};
use crate::{Callsite, ClassRow, Compacted, Dump, LeakName, LeakRow, Recording, SampleRow, Store};
use crate::{StoreError, Table};
use heaptap_tables::Columns;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

type Check = Box<dyn Fn() -> io::Result<()>>;

/// Function that is called at every step of a writer.
pub(crate) struct Hook(Check);

impl Hook {
    pub(crate) fn call(&self) -> io::Result<()> {
        (self.0)()
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hook")
    }
}

/// A recording with two native dumps and one Java dump.
fn recording(number: u32, build: &str) -> Recording {
    let sample = |callsite: i64, bytes: i64| SampleRow {
        callsite,
        alloc: Some((bytes * 2, 2)),
        live: (callsite % 5 != 0).then_some((bytes, 1)),
    };
    let native = |at: u32| Dump {
        number: at + 1,
        heap: "libc.malloc".to_owned(),
        kind: "cumulative".to_owned(),
        is_last: at == 1,
        samples: (0..20)
            .map(|callsite| sample(callsite * 7919 - 50, i64::from(number + at) * 4096))
            .collect(),
        ..Dump::default()
    };
    let java = Dump {
        heap: "java".to_owned(),
        kind: "java".to_owned(),
        is_last: true,
        classes: vec![ClassRow {
            class: 77,
            objects: 3,
            shallow_bytes: 24,
            native_bytes: 0,
            retained_bytes: u64::from(number),
        }],
        leaks: vec![LeakRow {
            leak: 78,
            certainty: "confirmed",
            known: false,
            objects: 1,
            retained_bytes: 10,
        }],
        ..Dump::default()
    };
    let mut recording = Recording {
        sha256: format!("{number:02x}").repeat(32),
        app: "com.example.app".to_owned(),
        day: "2026-01-31".to_owned(),
        build: build.to_owned(),
        device_class: "low-ram".to_owned(),
        dumps: vec![native(0), native(1), java],
        ..Recording::default()
    };
    for at in 0..20 {
        let name = Callsite {
            leaf: format!("leaf{at}"),
            library: "libapp.so".to_owned(),
            stack: format!("main;leaf{at}"),
        };
        recording.names.callsites.insert(at * 7919 - 50, name);
    }
    recording.names.classes.insert(77, "Activity".to_owned());
    let leak = LeakName {
        class: "Activity".to_owned(),
        path: "Holder.held".to_owned(),
    };
    recording.names.leaks.insert(78, leak);
    recording
}

/// Parquet files of a table.
fn files(store: &Path, table: Table) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![store.join("v1").join(table.name())];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name().into_string().unwrap();
            if path.is_dir() {
                directories.push(path);
            } else if name.ends_with(".parquet") && !name.starts_with(['.', '_']) {
                found.push(path);
            }
        }
    }
    found
}

fn read(store: &Path, table: Table) -> Columns {
    let mut rows = Columns::new(&table.columns());
    for path in files(store, table) {
        rows.append(fs::File::open(path).unwrap()).unwrap();
    }
    rows
}

/// What a reader sees: the rows of the live units as text without their units, and the names. Each
/// row has the number of times that it is there.
fn seen(store: &Path) -> BTreeMap<String, usize> {
    let recordings = read(store, Table::Recording);
    let mut best: BTreeMap<&str, (i64, i64, usize)> = BTreeMap::new();
    for row in 0..recordings.len() {
        let value = |column| recordings.int(row, column).unwrap();
        let rank = (value(GENERATION), value(UNIT), row);
        let known = best
            .entry(recordings.text(row, SHA256).unwrap())
            .or_insert(rank);
        *known = rank.max(*known);
    }
    let live: BTreeSet<i64> = best.values().map(|rank| rank.1).collect();
    let mut seen = BTreeMap::new();
    let mut add = |table: Table, rows: &Columns, row: usize, without: &[usize]| {
        let columns = (0..table.columns().len()).filter(|column| !without.contains(column));
        let cells: Vec<_> = columns.map(|column| rows.cell(row, column)).collect();
        *seen.entry(format!("{table:?} {cells:?}")).or_insert(0) += 1;
    };
    for rank in best.values() {
        add(
            Table::Recording,
            &recordings,
            rank.2,
            &[UNIT, GENERATION, FILE],
        );
    }
    for table in Table::ROWS {
        let rows = read(store, table);
        for row in (0..rows.len()).filter(|&row| live.contains(&rows.int(row, UNIT).unwrap())) {
            add(table, &rows, row, &[UNIT]);
        }
    }
    for table in Table::NAMES {
        let rows = read(store, table);
        let mut known = BTreeSet::new();
        for row in (0..rows.len()).filter(|&row| known.insert(rows.int(row, 0))) {
            add(table, &rows, row, &[]);
        }
    }
    seen
}

fn number_of_files(store: &Path) -> usize {
    Table::ALL
        .iter()
        .map(|&table| files(store, table).len())
        .sum()
}

fn filled(directory: &Path, count: u32) -> BTreeMap<String, usize> {
    let mut store = Store::open(directory).unwrap();
    for number in 1..=count {
        let build = ["1", "2"][number as usize % 2];
        assert!(store.append(&recording(number, build)).unwrap());
    }
    seen(directory)
}

#[test]
fn a_recording_is_added_once() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let first = filled(directory, 4);
    assert_eq!(first.len(), 4 + 4 * 3 + 4 * 40 + 4 + 4 + 22);
    assert!(first.values().all(|&count| count == 1), "{first:#?}");
    let mut store = Store::open(directory).unwrap();
    assert_eq!(store.len(), 4);
    let files = number_of_files(directory);
    assert!(!store.append(&recording(1, "2")).unwrap());
    // The build can be typed: it is the same recording in any build.
    assert!(!store.append(&recording(1, "3")).unwrap());
    assert_eq!(number_of_files(directory), files);
    // Names are only of the first recording of a build.
    assert_eq!(super::tests::files(directory, Table::Callsite).len(), 1 + 2);
}

#[test]
fn compacted_stores_have_the_same_content_in_few_files() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let before = filled(directory, 6);
    let mut store = Store::open(directory).unwrap();
    let done = store.compact().unwrap();
    assert_eq!((done.written, done.replaced, done.removed), (10, 30, 0));
    assert_eq!(seen(directory), before);
    let done = store.compact().unwrap();
    assert_eq!((done.written, done.replaced, done.removed), (0, 0, 30));
    assert_eq!(seen(directory), before);
    assert_eq!(store.compact().unwrap(), Compacted::default());
    drop(store);
    // Later recordings join the compacted ones.
    let mut store = Store::open(directory).unwrap();
    assert!(!store.append(&recording(6, "2")).unwrap());
    assert!(store.append(&recording(7, "2")).unwrap());
    let after = seen(directory);
    assert!(after.len() > before.len());
    store.compact().unwrap();
    store.compact().unwrap();
    assert_eq!(seen(directory), after);
    let recordings = files(directory, Table::Recording);
    assert_eq!(recordings.len(), 1 + 2, "{recordings:?}");
}

/// Runs `write` on copies of a store, with a crash at each of its steps, until it passes them all.
fn crash_at_each_step(
    from: &Path,
    write: impl Fn(&mut Store) -> Result<(), StoreError>,
    check: impl Fn(&Path, bool),
) {
    for crash in 0.. {
        let directory = tempfile::tempdir().unwrap();
        let copy = directory.path().to_owned();
        let copied = std::process::Command::new("cp")
            .args(["-r".as_ref(), from.join("v1").as_os_str(), copy.as_os_str()])
            .status();
        assert!(copied.unwrap().success());
        let mut store = Store::open(&copy).unwrap();
        let steps = std::rc::Rc::new(Cell::new(0));
        let passed = std::rc::Rc::clone(&steps);
        store.hook = Some(Hook(Box::new(move || {
            passed.set(passed.get() + 1);
            match passed.get() > crash {
                true => Err(io::Error::other("crash")),
                false => Ok(()),
            }
        })));
        let result = write(&mut store);
        drop(store);
        check(&copy, result.is_ok());
        if result.is_ok() {
            assert!(crash > 5, "the hook was called");
            return;
        }
    }
}

#[cfg(unix)]
#[test]
fn a_compaction_that_crashes_neither_loses_nor_doubles_anything() {
    let directory = tempfile::tempdir().unwrap();
    let before = filled(directory.path(), 5);
    let twice = |store: &mut Store| {
        store.compact()?;
        store.compact().map(drop)
    };
    crash_at_each_step(directory.path(), twice, |copy, _| {
        assert_eq!(seen(copy), before);
        // The next ones finish the work.
        let mut store = Store::open(copy).unwrap();
        assert_eq!(store.len(), 5);
        store.compact().unwrap();
        assert_eq!(seen(copy), before);
        store.compact().unwrap();
        assert_eq!(seen(copy), before);
        assert_eq!(store.compact().unwrap(), Compacted::default());
        assert_eq!(number_of_files(copy), 8 + 2 * 8);
    });
}

#[cfg(unix)]
#[test]
fn a_recording_appears_as_a_whole_or_not_at_all() {
    let directory = tempfile::tempdir().unwrap();
    let before = filled(directory.path(), 2);
    let mut store = Store::open(directory.path()).unwrap();
    store.append(&recording(3, "1")).unwrap();
    let after = seen(directory.path());
    drop(store);
    let directory = tempfile::tempdir().unwrap();
    filled(directory.path(), 2);
    let add = |store: &mut Store| store.append(&recording(3, "1")).map(drop);
    crash_at_each_step(directory.path(), add, |copy, is_done| {
        let now = seen(copy);
        let recordings = now
            .keys()
            .filter(|row| row.starts_with("Recording"))
            .count();
        match recordings {
            2 => assert!(!is_done && now == before),
            _ => assert_eq!(now, after),
        }
        // The rows that a crash left in a build stay invisible if it is added to another one.
        let mut store = Store::open(copy).unwrap();
        let was_new = store.append(&recording(3, "9")).unwrap();
        assert_eq!(was_new, recordings == 2);
        store.compact().unwrap();
        store.compact().unwrap();
        let rows = |seen: &BTreeMap<String, usize>| {
            let rows = seen.iter().filter(|(row, _)| row.starts_with("Sample"));
            rows.map(|(row, count)| (row.clone(), *count))
                .collect::<Vec<_>>()
        };
        assert_eq!(rows(&seen(copy)), rows(&after));
        let left: Vec<_> = files(copy, Table::Sample);
        assert_eq!(left.len(), 1 + if was_new { 3 } else { 2 }, "{left:?}");
    });
}

#[test]
fn other_directories_are_refused_and_damaged_files_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("notes.txt"), "mine").unwrap();
    let error = Store::open(directory.path()).unwrap_err();
    assert!(matches!(error, StoreError::NotAStore(_)), "{error}");
    let store = directory.path().join("new/store");
    filled(&store, 2);
    let sample = files(&store, Table::Sample);
    let sample = sample.iter().find(|path| !path.ends_with("empty.parquet"));
    fs::write(sample.unwrap(), "damaged").unwrap();
    let mut opened = Store::open(&store).unwrap();
    // The damaged file is the only one of its build.
    assert!(opened.append(&recording(3, "1")).unwrap());
    assert!(opened.append(&recording(4, "2")).unwrap());
    let error = opened.compact().unwrap_err();
    assert!(matches!(error, StoreError::Read { .. }), "{error}");
}

#[test]
fn a_recording_in_a_file_outside_of_the_store_is_damage() {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("store");
    filled(&store, 2);
    let mut opened = Store::open(&store).unwrap();
    let rows = read(&store, Table::Recording);
    let partition = opened.partitions(Table::Recording).unwrap().remove(0);
    for file in ["../outside", "/outside", "", "other"] {
        let write = opened.write(Table::Recording, &partition, "c-1", |out| {
            let columns = 0..Table::Recording.columns().len();
            let cells = columns.map(|column| match column {
                FILE => file.into(),
                column => rows.cell(0, column),
            });
            out.row(&cells.collect::<Vec<_>>())
        });
        write.unwrap();
        let error = opened.compact().unwrap_err().to_string();
        assert!(error.contains("names a file that does not"), "{error}");
    }
}

/// What a recording lacks can differ from the attempt before: another version of heaptap reads it.
#[cfg(unix)]
#[test]
fn rows_of_an_interrupted_writer_do_not_come_with_the_next_attempt() {
    let mut without = recording(3, "1");
    for dump in &mut without.dumps {
        dump.leaks.clear();
        dump.classes.clear();
    }
    let directory = tempfile::tempdir().unwrap();
    filled(directory.path(), 1);
    let expected = tempfile::tempdir().unwrap();
    filled(expected.path(), 1);
    let rows = |directory: &Path| {
        let mut rows = seen(directory);
        // Names without a use are harmless.
        rows.retain(|row, _| !row.contains("Name") && !row.starts_with("Callsite"));
        rows
    };
    let mut store = Store::open(expected.path()).unwrap();
    store.append(&without).unwrap();
    let expected = rows(expected.path());
    let add = |store: &mut Store| store.append(&recording(3, "1")).map(drop);
    crash_at_each_step(directory.path(), add, |copy, is_done| {
        let mut store = Store::open(copy).unwrap();
        if store.append(&without).unwrap() {
            assert!(rows(copy) == expected, "rows of the attempt before");
        } else {
            assert!(is_done || rows(copy).len() > expected.len());
        }
    });
}

/// The callsites of an attempt have names in the store, which other recordings do not repeat.
#[test]
fn names_of_an_interrupted_writer_stay_if_the_next_attempt_has_others() {
    let directory = tempfile::tempdir().unwrap();
    let add = |store: &mut Store| store.append(&recording(3, "1")).map(drop);
    let mut symbolized = recording(3, "1");
    let name = symbolized.names.callsites[&-50].clone();
    symbolized.names.callsites.insert(-51, name);
    symbolized.dumps[0].samples[0].callsite = -51;
    let hashes = |directory: &Path| -> BTreeSet<i64> {
        let names = read(directory, Table::Callsite);
        (0..names.len())
            .map(|row| names.int(row, 0).unwrap())
            .collect()
    };
    let expected: BTreeSet<i64> = symbolized.names.callsites.keys().copied().collect();
    drop(Store::open(directory.path()).unwrap());
    crash_at_each_step(directory.path(), add, |copy, _| {
        let mut store = Store::open(copy).unwrap();
        store.append(&recording(4, "1")).unwrap();
        let is_new = store.append(&symbolized).unwrap();
        let mut known = hashes(copy);
        if !is_new {
            known.insert(-51);
        }
        assert_eq!(known, expected);
    });
}

/// Two processes that create a store at the same time both get it.
#[test]
fn a_new_store_is_opened_by_several_at_once() {
    for _ in 0..20 {
        let directory = tempfile::tempdir().unwrap();
        let path = &directory.path().join("store");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| drop(Store::open(path).unwrap()));
            }
        });
    }
}

/// Otherwise, the merged file would lack its rows, and the next compaction would remove it.
#[cfg(unix)]
#[test]
fn a_compaction_ends_at_a_file_that_it_cannot_look_at() {
    let directory = tempfile::tempdir().unwrap();
    filled(directory.path(), 4);
    let mut leaks = files(directory.path(), Table::Leak);
    leaks.retain(|path| !path.ends_with("empty.parquet"));
    fs::remove_file(&leaks[0]).unwrap();
    std::os::unix::fs::symlink(&leaks[0], &leaks[0]).unwrap();
    let error = Store::open(directory.path())
        .unwrap()
        .compact()
        .unwrap_err();
    let is_it = matches!(&error, StoreError::Read { path, .. } if path == &leaks[0]);
    assert!(is_it, "{error}");
}
