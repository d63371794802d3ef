//! Reads the heaps of a recording into rows.

use std::collections::BTreeMap;

use heaptap_archive::{
    Callsites, ClassRow, Dump, LeakName, LeakRow, Names, Recording, SampleRow, hash_text,
};

use super::error::ArchiveError;
use super::sources::Source;
use crate::heaps::input::{self, DumpScope, LookOptions, NativeFile, OpenedInput};
use crate::heaps::java::{
    JavaError, JavaFile, JavaHeap, JavaOptions, OpenedJava, ProgressReporter,
};
use heaptap_analyze::filter::Filter;
use heaptap_analyze::histogram::{self, HistogramKey, ObjectScope};
use heaptap_analyze::leaks;
use heaptap_base::error::ErrorClass;
use heaptap_model::stacks::{self, View};
use heaptap_results::findings::Finding;
use heaptap_results::manifest::JAVA_HEAP;

/// A recording with its rows.
pub(super) struct Read {
    pub recording: Recording,
    pub findings: Vec<Finding>,
    pub class: Option<ErrorClass>,
}

/// Reads all dumps of a recording.
///
/// # Errors
/// Returns an error if its heaps cannot be read.
pub(super) fn read(source: &Source, progress: &ProgressReporter) -> Result<Read, ArchiveError> {
    let mut read = Read {
        recording: source.recording.clone(),
        findings: Vec::new(),
        class: None,
    };
    // Marks such as ` [jit]` differ between runs, and hashes must not.
    let look = LookOptions {
        no_annotations: true,
        ..LookOptions::default()
    };
    let mut classes = Vec::new();
    let (java, has_native, has_java) =
        match input::open(&source.directory, &DumpScope::All, &look, progress)? {
            OpenedInput::Native(file, java) => {
                classes.extend(file.class());
                add_native(&mut read.recording, &file);
                let has_java = file.java_dumps > 0;
                read.findings.extend(file.names_missing());
                read.findings.extend(file.findings);
                (java, true, has_java)
            }
            OpenedInput::Java(java) => (java, false, true),
        };
    // A recording with companion data has its Java heaps in a directory of their own.
    if has_java || source.directory.join("java").is_dir() {
        match add_java(source, java, &mut read, &mut classes, progress) {
            Err(ArchiveError::Java(JavaError::NoHeap { .. } | JavaError::Native { .. }))
                if has_native => {}
            Err(ArchiveError::Java(error @ JavaError::Broken { .. })) if has_native => {
                let found = Finding::from_error(&error);
                classes.extend(found.class.map(ErrorClass::with_result));
                read.findings.push(found);
            }
            added => added?,
        }
    }
    read.class = ErrorClass::first_of(classes);
    read.recording.complete &= read.class.is_none();
    Ok(read)
}

/// Adds the native dumps. Callsites that differ only in lines or build IDs become one.
fn add_native(recording: &mut Recording, file: &NativeFile) {
    let table = &file.profile.table;
    let callsites = Callsites::from_table(table);
    let facts = file.profile.dumps.iter().map(|dump| &dump.facts);
    let last = stacks::Facts::last_of_each(facts.enumerate());
    for (at, dump) in file.profile.dumps.iter().enumerate() {
        let facts = &dump.facts;
        let columns = |bytes, count| dump.column(bytes).zip(dump.column(count));
        let alloc = columns(View::AllocSpace, View::AllocObjects);
        let live = columns(View::Space, View::Objects);
        let mut rows: BTreeMap<i64, SampleRow> = BTreeMap::new();
        for (row, &node) in dump.values.nodes.iter().enumerate() {
            let pair = |columns: Option<(&[i64], &[i64])>| columns.map(|(b, n)| (b[row], n[row]));
            let callsite = callsites.hash(node);
            recording
                .names
                .callsites
                .entry(callsite)
                .or_insert_with(|| callsites.describe(node));
            let now = SampleRow {
                callsite,
                alloc: pair(alloc),
                live: pair(live),
            };
            let known = rows.entry(callsite);
            known
                .and_modify(|known| {
                    known.alloc = sum(known.alloc, now.alloc);
                    known.live = sum(known.live, now.live);
                })
                .or_insert(now);
        }
        let total = |columns: Option<(&[i64], &[i64])>| {
            columns.map(|(bytes, count)| (stacks::sum(bytes), stacks::sum(count)))
        };
        recording.dumps.push(Dump {
            kind: facts.kind.name().to_owned(),
            interval_bytes: facts.sampling_interval_bytes,
            is_last: last.binary_search(&at).is_ok(),
            alloc: total(alloc),
            live: total(live),
            samples: rows.into_values().collect(),
            ..of_facts(facts)
        });
    }
}

fn sum(a: Option<(i64, i64)>, b: Option<(i64, i64)>) -> Option<(i64, i64)> {
    let (a, b) = a.zip(b)?;
    Some((a.0.saturating_add(b.0), a.1.saturating_add(b.1)))
}

fn of_facts(facts: &stacks::Facts) -> Dump {
    Dump {
        number: facts.number,
        label: facts.label.clone(),
        pid: facts.pid,
        process: facts.process.clone(),
        heap: facts.heap.clone(),
        time_ns: facts.time_ns,
        ..Dump::default()
    }
}

fn add_java(
    source: &Source,
    java: OpenedJava,
    read: &mut Read,
    classes: &mut Vec<ErrorClass>,
    progress: &ProgressReporter,
) -> Result<(), ArchiveError> {
    let mut file = JavaFile::open(&source.directory, java, JavaOptions::default(), progress)?;
    let last = file.choose_all(None)?;
    for at in 0..file.dumps().len() {
        // One heap is in memory at a time.
        let heap = file.read(at)?;
        classes.extend(heap.class());
        read.findings.extend(heap.findings.iter().cloned());
        read.recording.dumps.push(Dump {
            is_last: last.binary_search(&at).is_ok(),
            ..dump_of(&heap, &mut read.recording.names)
        });
    }
    Ok(())
}

fn dump_of(heap: &JavaHeap, names: &mut Names) -> Dump {
    let graph = &heap.graph;
    let reachable = ObjectScope::Reachable(heap.dominators());
    let found = histogram::histogram(graph, reachable, HistogramKey::Class, &Filter::default());
    let mut classes = Vec::new();
    let mut live = (0i64, 0i64);
    let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    for row in &found.rows {
        let class = hash_text(&row.name);
        names
            .classes
            .entry(class)
            .or_insert_with(|| row.name.clone());
        live.0 = live.0.saturating_add(signed(row.sums.shallow_bytes));
        live.1 = live.1.saturating_add(signed(row.sums.count));
        classes.push(ClassRow {
            class,
            objects: row.sums.count,
            shallow_bytes: row.sums.shallow_bytes,
            native_bytes: row.sums.native_bytes,
            retained_bytes: row.sums.retained.total_bytes(),
        });
    }
    let mut rows = Vec::new();
    for group in &leaks::find(graph).groups {
        let leak = hash_text(&group.signature);
        let suspects = group.path.iter().filter(|step| step.suspect);
        let path: Vec<String> = suspects
            .filter_map(|step| {
                let reference = step.reference.as_ref()?;
                Some(format!("{}.{}", step.class, reference.generic()))
            })
            .collect();
        names.leaks.entry(leak).or_insert_with(|| LeakName {
            class: group.class.clone(),
            path: path.join(";"),
        });
        rows.push(LeakRow {
            leak,
            certainty: group.certainty.name(),
            known: group.library.is_some(),
            objects: group.leaks.len() as u64,
            retained_bytes: group.kept.total_bytes(),
        });
    }
    let facts = &graph.facts;
    Dump {
        number: heap.number,
        label: heap.label.clone(),
        pid: facts.pid.unwrap_or(0),
        process: facts.process.clone(),
        heap: JAVA_HEAP.to_owned(),
        kind: JAVA_HEAP.to_owned(),
        time_ns: Some(facts.time_ns).filter(|&time| time != 0),
        interval_bytes: 1,
        live: Some(live),
        classes,
        leaks: rows,
        ..Dump::default()
    }
}
