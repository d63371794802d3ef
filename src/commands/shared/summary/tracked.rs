//! Java allocations at the end of a recording: their processes, the missing parts, and the lists
//! that runtimes tracked.

use std::path::Path;

use crate::commands::shared::meminfo::size;
use crate::commands::shared::paths::near;
use crate::console::{Console, Style};
use heaptap_base::units::counted;
use heaptap_base::untrusted::sanitize;
use heaptap_base::untrusted::shell::quoted_path;
use heaptap_results::manifest::{JavaAllocations, Manifest, TrackedDump};

/// Lists shown.
const SHOWN: usize = 20;

/// Returns the lines of each list with its sums.
pub(super) fn block(console: &Console, manifest: &Manifest) -> Option<Vec<String>> {
    let dumps = &manifest.java_allocations.as_ref()?.dumps;
    if dumps.is_empty() {
        return None;
    }
    let mut lines = Vec::new();
    let mut last = None;
    for dump in dumps.iter().take(SHOWN) {
        if last != Some(dump.pid) {
            last = Some(dump.pid);
            let name = match dump.process.as_str() {
                "" => "process".to_owned(),
                name => sanitize(name).to_string(),
            };
            let name = console.styled(Style::Strong, name);
            lines.push(format!("{name}  pid {}  Java allocations", dump.pid));
        }
        lines.push(line(dump));
    }
    if let Some(left) = dumps.len().checked_sub(SHOWN + 1) {
        lines.push(format!("  … and {} more", left + 1));
    }
    Some(lines)
}

fn line(dump: &TrackedDump) -> String {
    let at = match &dump.label {
        Some(label) => format!("@{label}"),
        None => "at the end".to_owned(),
    };
    let bytes = size(i64::try_from(dump.space).unwrap_or(i64::MAX));
    let allocations = counted(dump.objects, "allocation", "allocations");
    let threads = counted(dump.threads, "thread", "threads");
    let bound = match dump.full {
        true => "only the most recent ones",
        false => "all since the start",
    };
    format!(
        "  {}: {bytes} in {allocations} of {threads}; {bound}",
        sanitize(&at)
    )
}

/// Returns a note about the source of a recording's Java allocations, and its limitations.
pub(super) fn note(manifest: &Manifest) -> Option<String> {
    let JavaAllocations {
        by, tells, lacks, ..
    } = manifest.java_allocations.as_ref()?;
    let who = match by.as_str() {
        "tracking" => "the allocation tracking of the runtime",
        _ => "heapprofd",
    };
    let lacks: Vec<&str> = lacks.iter().map(|lack| word(lack)).collect();
    let tells: Vec<&str> = tells.iter().map(|tell| word(tell)).collect();
    Some(format!(
        "Java allocations come from {who}: they include {}; they lack {}",
        tells.join(", "),
        lacks.join(", ")
    ))
}

/// Returns the readable form of a word in the manifest.
fn word(word: &str) -> &str {
    match word {
        "free" => "frees",
        "history" => "allocations older than the last 65,535",
        word => word,
    }
}

/// Suggested next commands.
pub(super) fn commands(directory: &Path, manifest: &Manifest) -> Vec<(String, String)> {
    let dumps = manifest.java_allocations.iter().flat_map(|of| &of.dumps);
    let files: Vec<&String> = dumps.filter_map(|dump| dump.file.as_ref()).collect();
    let Some(last) = files.last() else {
        return Vec::new();
    };
    let place = quoted_path(near(directory).join(last));
    vec![
        (
            "what allocated most, by class and caller:".to_owned(),
            format!("heaptap top {place}"),
        ),
        (
            "the same data in another viewer:".to_owned(),
            format!("go tool pprof -http=: {place}"),
        ),
    ]
}

/// Returns the file names of their profiles.
pub(super) fn profiles(manifest: &Manifest) -> impl Iterator<Item = &String> {
    let dumps = manifest.java_allocations.iter().flat_map(|of| &of.dumps);
    dumps.filter_map(|dump| dump.file.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lacking_is_said_for_either_source() {
        let mut manifest = Manifest::default();
        assert_eq!(note(&manifest), None);
        manifest.java_allocations = Some(JavaAllocations::tracked(Vec::new()));
        let said = note(&manifest).unwrap();
        assert!(
            said.contains("include stack, size, class, thread, line"),
            "{said}"
        );
        assert!(said.contains("lack frees, allocations older"), "{said}");
        assert!(commands(Path::new("out"), &manifest).is_empty());
    }

    #[test]
    fn lists_are_told_with_their_bound() {
        let dump = TrackedDump {
            number: 1,
            label: None,
            time_ns: 1,
            pid: 7,
            process: "a".to_owned(),
            file: Some("java_allocations.1.7.pb.gz".to_owned()),
            list: Some("x".to_owned()),
            objects: 65_535,
            space: 1 << 20,
            threads: 1,
            full: true,
        };
        let said = line(&dump);
        assert!(said.contains("65,535 allocations of 1 thread"), "{said}");
        assert!(said.ends_with("only the most recent ones"), "{said}");
        let manifest = Manifest {
            java_allocations: Some(JavaAllocations::tracked(vec![dump])),
            ..Manifest::default()
        };
        let commands = commands(Path::new("out"), &manifest);
        assert_eq!(commands[0].1, "heaptap top out/java_allocations.1.7.pb.gz");
    }
}
