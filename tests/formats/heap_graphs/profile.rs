//! Compares heaptap's profiles with the converter's.

use super::judge::Heap;
use heaptap_analyze::class_tree::Over;
use heaptap_export::java_pprof::{self, JavaProfile};
use heaptap_export::pprof::SampleNames;
use heaptap_proto::pprof::Profile;
use prost::Message as _;
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

/// Samples as a multiset: names, leaf first, and values.
pub type View = Vec<(Vec<String>, Vec<i64>)>;

/// Reads a profile, gzipped or not.
pub fn read(bytes: &[u8]) -> Profile {
    let mut plain = Vec::new();
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut unpacked = flate2::read::GzDecoder::new(bytes);
        unpacked.read_to_end(&mut plain).expect("gzip inflates");
    } else {
        plain.extend_from_slice(bytes);
    }
    Profile::decode(&plain[..]).expect("a pprof")
}

/// Reduces a profile to its samples, with only the first two values.
pub fn view(profile: &Profile) -> View {
    let text = |id: i64| profile.string_table[id as usize].clone();
    let functions: BTreeMap<u64, String> = profile
        .function
        .iter()
        .map(|function| (function.id, text(function.name)))
        .collect();
    let locations: BTreeMap<u64, &String> = profile
        .location
        .iter()
        .map(|location| (location.id, &functions[&location.line[0].function_id]))
        .collect();
    let mut samples: View = profile
        .sample
        .iter()
        .map(|sample| {
            let stack = sample.location_id.iter();
            let stack = stack.map(|id| locations[id].clone()).collect();
            (stack, sample.value[..2].to_vec())
        })
        .collect();
    samples.sort_unstable();
    samples
}

/// Returns the errors in heaptap's profiles of a trace's heaps.
pub fn judge(heaps: &[Heap], directory: &Path) -> Vec<String> {
    let mut references: Vec<(u32, u64, Profile)> = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let path = entry.expect("the folder can be read").path();
            let name = path.file_name()?.to_string_lossy().into_owned();
            let mut parts = name.strip_prefix("java_heap_dump.")?.split('.');
            let number = parts.next()?.parse().ok()?;
            let pid = parts.next()?.parse().ok()?;
            Some((number, pid, read(&std::fs::read(&path).expect("a file"))))
        })
        .collect();
    references.sort_by_key(|reference| reference.0);
    let with_objects: Vec<&Heap> = heaps.iter().filter(|heap| !heap.graph.is_empty()).collect();
    let mut faults = Vec::new();
    if with_objects.len() != references.len() {
        faults.push(format!(
            "{} profiles, the converter has {}",
            with_objects.len(),
            references.len()
        ));
    }
    for (heap, (_, pid, reference)) in with_objects.into_iter().zip(&references) {
        if heap.dump.pid != *pid {
            faults.push(format!(
                "pid {} where the converter has {pid}",
                heap.dump.pid
            ));
        }
        for sample_names in [SampleNames::Pprof, SampleNames::Perfetto] {
            let ours = encode(heap, sample_names);
            faults.extend(super::profile::invalid(&ours));
            faults.extend(differences(&view(&ours), &view(reference)));
        }
        let names = encode(heap, SampleNames::Perfetto);
        if types(&names) != types(reference) {
            faults.push(format!("sample types {:?}", types(&names)));
        }
    }
    faults
}

fn types(profile: &Profile) -> Vec<(&str, &str)> {
    let text = |id: i64| profile.string_table[id as usize].as_str();
    let types = profile.sample_type.iter();
    types.map(|of| (text(of.r#type), text(of.unit))).collect()
}

/// Returns heaptap's profile of a heap.
pub fn encode(heap: &Heap, sample_names: SampleNames) -> Profile {
    let over = Over::ShortestPaths(&heap.paths);
    let (tree, cut) = java_pprof::tree_for_profile(&heap.graph, over);
    assert_eq!(cut, None);
    let about = JavaProfile {
        sample_names,
        wall_time_ns: heap.dump.wall_time_ns,
        comments: vec!["a comment".to_owned()],
    };
    read(&java_pprof::encode(&tree, &about))
}

/// Returns the first differences of two views.
pub fn differences(ours: &View, theirs: &View) -> Vec<String> {
    if ours == theirs {
        return Vec::new();
    }
    let only = |these: &View, those: &View, whose: &str| {
        let missing = these
            .iter()
            .filter(|sample| !those.contains(sample))
            .take(3);
        let lines: Vec<String> = missing.map(|s| format!("only {whose}: {s:?}")).collect();
        lines
    };
    let mut found = vec![format!("{} samples, not {}", ours.len(), theirs.len())];
    if ours.len() < 20_000 {
        found.extend(only(ours, theirs, "ours"));
        found.extend(only(theirs, ours, "theirs"));
    }
    found
}

/// Returns the violations of the rules of Go's reader.
pub fn invalid(profile: &Profile) -> Vec<String> {
    let mut faults = Vec::new();
    if profile.string_table.first().map(String::as_str) != Some("") {
        faults.push("string 0 is not empty".to_owned());
    }
    if profile.mapping.len() != 1 || profile.mapping[0].id != 1 {
        faults.push("there is not one mapping".to_owned());
    }
    let ids = |ids: Vec<u64>, what: &str| {
        let mut sorted = ids.clone();
        sorted.sort_unstable();
        sorted.dedup();
        let sound = sorted.len() == ids.len() && sorted.first() != Some(&0);
        assert!(sound, "{what} ids are unique and not 0");
        sorted
    };
    let functions = ids(profile.function.iter().map(|f| f.id).collect(), "function");
    let locations = ids(profile.location.iter().map(|l| l.id).collect(), "location");
    for location in &profile.location {
        if location.mapping_id != 1
            || location.line.len() != 1
            || functions
                .binary_search(&location.line[0].function_id)
                .is_err()
        {
            faults.push(format!("location {} leads nowhere", location.id));
        }
    }
    for sample in &profile.sample {
        if sample.value.len() != profile.sample_type.len() || sample.location_id.is_empty() {
            faults.push("a sample without its values or locations".to_owned());
        }
        let known = |id: &u64| locations.binary_search(id).is_ok();
        if !sample.location_id.iter().all(known) {
            faults.push("a sample leads nowhere".to_owned());
        }
    }
    let types = profile.sample_type.iter().map(|of| of.r#type);
    if !types
        .into_iter()
        .any(|of| of == profile.default_sample_type)
    {
        faults.push("the default sample type is none of them".to_owned());
    }
    faults
}
