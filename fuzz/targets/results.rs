//! Files that heaptap wrote and reads back: manifests, results, journals, baselines, archives.

use heaptap::lab::files::{self, PROGRESS, RESULT};
use heaptap::lab::state::Progress;
use heaptap::recording::plan::Plan;
use heaptap_archive::Store as Archive;
use heaptap_capture::session::{Owner, SessionId, Store, owner_of};
use heaptap_lab::baseline::Baseline;
use heaptap_lab::results::{device_id, github, gitlab, junit, markdown, night};
use heaptap_results::manifest::{FILE_NAME, Manifest};
use heaptap_results::{recorded, timeline};
use std::fs;
use std::path::Path;

/// Files of an archive: a merged one, and that of the recording in the seeds.
const COMPACTED: &str = "c-1.parquet";
const RECORDING: &str = "1fc27d0b56ba70dabd20d0ec89a33ba57851df1de85bc2fc6ed49c7ea1b5b75a.parquet";

/// ID of the session in the seeds.
const SESSION: &str = "2qvsqvyf";

/// Calls `work` with an empty directory.
pub fn in_directory(work: impl FnOnce(&Path)) {
    let directory = tempfile::tempdir().expect("a directory for temporary files");
    work(directory.path());
}

/// Bytes as the manifest of a recording: what was read is written and read again.
pub fn manifest(bytes: &[u8]) {
    in_directory(|directory| {
        fs::write(directory.join(FILE_NAME), bytes).expect("a writable directory");
        let _ = recorded::lacks_names(directory);
        let _ = recorded::beside(directory);
        let Ok(mut manifest) = Manifest::read(directory) else {
            return;
        };
        recorded::process_names(&manifest);
        recorded::bind(&mut manifest, &[]);
        manifest.has_overrun();
        manifest.write(directory).expect("a writable directory");
        let again = Manifest::read(directory).expect("it was just written");
        assert_eq!(again, manifest);
    });
}

/// Bytes as the results of `run`, as its progress for `--resume`, and as a plan: results are written
/// for every CI system.
pub fn lab_results(bytes: &[u8]) {
    in_directory(|directory| {
        for name in [RESULT, PROGRESS] {
            fs::write(directory.join(name), bytes).expect("a writable directory");
        }
        if let Ok((results, _)) = files::read_all(directory) {
            let page = |_: &_, _: &_| Some("page.html".to_owned());
            junit::junit(&results, &page);
            github::annotations(&results, &str::to_owned);
            gitlab::metrics(&results);
            markdown::summary(&results);
            night::index(&results, &page);
            for result in &results {
                files::directory_of(directory, result);
            }
            let mut baseline = Baseline::default();
            baseline.update(&results.iter().collect::<Vec<_>>());
            let text = baseline.text();
            let again = Baseline::parse(&text).expect("heaptap reads what it writes");
            assert_eq!(again.text(), text);
        }
        let _ = files::begun_in(directory);
        let _ = Progress::read(directory, "");
    });
    if let Ok(value) = serde_json::from_slice(bytes) {
        let _ = Plan::read(&value);
    }
}

/// Bytes as a baseline of `run`: what was read is written and read again.
pub fn baseline(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let Ok(baseline) = Baseline::parse(text) else {
        return;
    };
    let written = baseline.text();
    let again = Baseline::parse(&written).expect("heaptap reads what it writes");
    assert_eq!(again.text(), written);
    for line in text.lines().take(20) {
        let mut words = line.split(' ');
        let mut word = || words.next().unwrap_or_default();
        let (budget, class, now) = (word(), word(), word());
        baseline.nights(budget, class, now);
        baseline.past(budget, class, now, "S");
        baseline.parts(budget, class);
        device_id(now);
    }
}

/// Bytes as the journal of a session, and as the file that names a directory's owner.
pub fn journal(bytes: &[u8]) {
    in_directory(|directory| {
        let store = Store::in_directory(directory).expect("a writable directory");
        let id: SessionId = SESSION.parse().expect("an ID");
        let path = store.directory().join(format!("{SESSION}.jsonl"));
        fs::write(&path, bytes).expect("a writable directory");
        let _ = store.list();
        if let Ok(journal) = store.open(&id)
            && let Ok(state) = journal.read()
        {
            state.stopping();
            let _ = Plan::read(&state.header.plan);
        }
        fs::write(directory.join(".heaptap-session"), bytes).expect("a writable directory");
        let _: Option<Owner> = owner_of(directory).ok().flatten();
    });
}

/// Bytes as the timeline of a recording.
pub fn timeline_lines(bytes: &[u8]) {
    timeline::are_lines(bytes);
    timeline::of_lines(bytes, "fuzz").expect("memory can be read");
}

/// Bytes as each Parquet file of an archive: it is opened, and its files are merged.
pub fn archive(bytes: &[u8]) {
    in_directory(|directory| {
        let root = directory.join("a");
        drop(Archive::open(&root).expect("a writable directory"));
        replace(&root, bytes);
        if let Ok(mut archive) = Archive::open(&root) {
            let _ = archive.compact();
        }
    });
}

/// Adds files with these bytes to each partition.
fn replace(directory: &Path, bytes: &[u8]) {
    let entries = fs::read_dir(directory).expect("a directory");
    let paths: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    let is_partition = paths
        .iter()
        .any(|p| p.extension().is_some_and(|e| e == "parquet"));
    if is_partition {
        for name in [COMPACTED, RECORDING] {
            fs::write(directory.join(name), bytes).expect("a writable directory");
        }
    }
    for path in paths.iter().filter(|path| path.is_dir()) {
        replace(path, bytes);
    }
}
