//! Companion data in the summary of a recording: the files, and the commands that read them.

use std::collections::BTreeMap;

use heaptap_results::manifest::{Companions, Manifest};

/// Returns descriptions of the files: `memory.jsonl`, `3 meminfo`, `3 smaps`.
pub(super) fn files(manifest: &Manifest) -> Vec<String> {
    let Some(beside) = &manifest.companion else {
        return Vec::new();
    };
    let timeline = beside.timeline.iter().map(|timeline| timeline.file.clone());
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for file in &beside.files {
        *counts.entry(&file.what).or_default() += 1;
    }
    let counted = counts
        .into_iter()
        .map(|(what, count)| format!("{count} {what}"));
    let of_gc = beside.collections.iter().chain(&beside.log).cloned();
    timeline.chain(of_gc).chain(counted).collect()
}

/// Returns the command that looks for leaks in the Java heaps; `java` is their quoted directory.
pub(super) fn java_command(manifest: &Manifest, java: &str) -> Option<(String, String)> {
    let beside = manifest.companion.as_ref()?;
    let mut files = beside.files.iter();
    files.any(|file| file.what == "java-heap").then(|| {
        (
            "leaks in the Java heaps:".to_owned(),
            format!("heaptap leaks {java}"),
        )
    })
}

/// Returns suggested commands for the other files; `place` is the quoted directory.
pub(super) fn commands(manifest: &Manifest, place: &str) -> Vec<(String, String)> {
    let mut next = Vec::new();
    let Some(beside) = &manifest.companion else {
        return next;
    };
    if let Some(timeline) = &beside.timeline
        && timeline.collections + timeline.collections_by_heaptap > 0
    {
        next.push((
            "garbage collections and the trend of the live set:".to_owned(),
            format!("heaptap gc {place}"),
        ));
    }
    if holds_native_figures(beside) {
        next.push((
            "the profile compared with allocator and system:".to_owned(),
            format!("heaptap meminfo {place} --reconcile"),
        ));
    }
    next
}

fn holds_native_figures(beside: &Companions) -> bool {
    let native = ["meminfo", "smaps", "malloc-info"];
    beside
        .files
        .iter()
        .any(|file| native.contains(&file.what.as_str()))
}
