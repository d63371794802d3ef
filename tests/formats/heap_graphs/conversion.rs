//! `convert` of Java heaps as a whole: files, entries of the manifest, names from a mapping file.

use super::{fixtures, profile};
use heaptap::names::options::{MappingOption, NameOptions};
use heaptap::recording::conversion::convert::{Converted, Input, Request, convert};
use heaptap::recording::conversion::error::ConvertError;
use heaptap_results::manifest::JavaKind;
use std::path::Path;

fn request(input: &Path, output: &Path) -> Request {
    let names = NameOptions {
        discover: false,
        ..NameOptions::default()
    };
    Request {
        dominators: true,
        ..Request::new(Input::Path(input.to_owned()), output, names)
    }
}

fn converted(request: &Request) -> Converted {
    convert(request).expect("it is converted")
}

/// Sums of a profile's columns.
fn totals(directory: &Path, file: &str) -> Vec<i64> {
    let profile = profile::read(&std::fs::read(directory.join(file)).expect("a profile"));
    assert!(profile::invalid(&profile).is_empty());
    let columns = profile.sample_type.len();
    let sum = |at: usize| profile.sample.iter().map(|sample| sample.value[at]).sum();
    (0..columns).map(sum).collect()
}

#[test]
fn a_heap_graph_becomes_a_profile_of_paths_and_one_of_dominators() {
    let output = tempfile::tempdir().expect("a temporary folder");
    let trace = fixtures().join("graph_10k.pftrace.zst");
    let all = converted(&request(&trace, output.path()));
    assert_eq!(all.class(), None, "{:?}", all.findings);
    let [dump] = &all.java[..] else {
        panic!("one dump: {:?}", all.java);
    };
    assert_eq!(
        (dump.number, dump.pid, dump.kind),
        (1, 5151, JavaKind::HeapGraph)
    );
    assert_eq!(dump.file.as_deref(), Some("java_heap_dump.1.5151.pb.gz"));
    let dominators = dump.dominators.as_deref();
    assert_eq!(dominators, Some("java_heap_dump.1.5151.dominators.pb.gz"));
    let sums = dump.totals.expect("they are counted");
    assert_eq!(sums.objects, 10_000);
    let reachable = [
        sums.reachable.objects as i64,
        sums.reachable.space as i64,
        sums.reachable.native_space as i64,
    ];
    for file in [dump.file.as_deref(), dominators] {
        assert_eq!(totals(output.path(), file.expect("it is there")), reachable);
    }
}

#[test]
fn a_selection_takes_java_heaps_by_their_name() {
    let output = tempfile::tempdir().expect("a temporary folder");
    let trace = fixtures().join("graph_10k.pftrace.zst");
    let mut request = request(&trace, output.path());
    request.selection.heaps = vec!["libc.malloc".to_owned()];
    let Err(ConvertError::NoneSelected(choices)) = convert(&request) else {
        panic!("nothing is taken");
    };
    assert!(choices.heaps.contains("java"));
    request.selection.heaps = vec!["java".to_owned()];
    assert_eq!(converted(&request).java.len(), 1);
}

#[test]
fn a_mapping_file_names_classes_arrays_and_their_class_objects() {
    let output = tempfile::tempdir().expect("a temporary folder");
    let map = output.path().join("mapping.txt");
    let text = "org.source.First -> com.example.pkg0.Class1:\n    int size -> a\n";
    std::fs::write(&map, text).expect("a map");
    let directory = output.path().join("out");
    std::fs::create_dir(&directory).expect("a folder");
    let trace = fixtures().join("graph_10k.pftrace.zst");
    let mut request = request(&trace, &directory);
    request.names.mappings = vec![MappingOption {
        package: None,
        path: map,
    }];
    let all = converted(&request);
    assert_eq!(all.class(), None, "{:?}", all.findings);
    assert_eq!(all.symbolization.mappings[0].heap_classes, 1);
    let file = directory.join("java_heap_dump.1.5151.pb.gz");
    let profile = profile::read(&std::fs::read(file).expect("a profile"));
    let has = |name: &str| profile.string_table.iter().any(|text| text == name);
    assert!(has("org.source.First[]"));
    assert!(!has("com.example.pkg0.Class1[]"));
}

#[test]
fn an_hprof_becomes_the_same_profiles() {
    let output = tempfile::tempdir().expect("a temporary folder");
    let dump = fixtures().join("../hprof/leaklab-before.hprof.zst");
    let all = converted(&request(&dump, output.path()));
    let [entry] = &all.java[..] else {
        panic!("one dump: {:?}", all.java);
    };
    assert_eq!(entry.kind, JavaKind::Hprof);
    let sums = entry.totals.expect("they are counted");
    assert!(sums.reachable.objects > 10_000);
    for file in [&entry.file, &entry.dominators] {
        let file = file.as_deref().expect("it is there");
        let totals = totals(output.path(), file);
        assert_eq!(totals[0] as u64, sums.reachable.objects);
        assert_eq!(totals[1] as u64, sums.reachable.space);
    }
}
