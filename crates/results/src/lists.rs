//! Lists in sentences.

use std::collections::BTreeSet;

/// Joins a list, truncated to a readable length.
pub fn join_list(all: impl ExactSizeIterator<Item = String>) -> String {
    const MAX_COUNT: usize = 12;
    let more = all.len().saturating_sub(MAX_COUNT);
    let mut shown: Vec<String> = all.take(MAX_COUNT).collect();
    if more > 0 {
        shown.push(format!("and {more} more"));
    }
    shown.join(", ")
}

/// Returns a readable list of processes, each once: `com.example.app (2050), system_server (1410)`.
pub fn join_processes<'a>(all: impl Iterator<Item = (Option<u64>, &'a str)>) -> String {
    let names = all.map(|(pid, name)| process_name(pid.unwrap_or(0), name));
    let names: BTreeSet<String> = names.collect();
    join_list(names.into_iter())
}

/// Names a process: `com.example.app (2050)`.
pub fn process_name(pid: u64, name: &str) -> String {
    match (name, pid) {
        ("", 0) => "an unnamed process".to_owned(),
        ("", pid) => format!("process {pid}"),
        (name, 0) => name.to_owned(),
        (name, pid) => format!("{name} ({pid})"),
    }
}
