//! The processes to record, and their names.

use super::error::bad_value;
use heaptap_base::error::Failure;
use std::fmt;

/// Maximum length of a process's command line that heapprofd reads.
const MAX_PROCESS_NAME_BYTES: usize = 511;

/// Processes to record.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(default)]
pub struct Targets {
    /// Process names as given (`com.example.app`, `com.example.app:service`, with `*`).
    pub names: Vec<String>,
    /// Process ids.
    pub pids: Vec<u32>,
    /// Packages, each for all of its processes. The caller with access to the device replaces them
    /// with names before encoding.
    pub packages: Vec<String>,
}

impl Targets {
    /// Returns whether there are no targets.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.pids.is_empty() && self.packages.is_empty()
    }

    /// Returns the names. A package that was not expanded stands for its main process.
    pub(super) fn process_names(&self) -> Vec<String> {
        let mut names = self.names.clone();
        add(&mut names, &self.packages);
        names
    }
}

impl fmt::Display for Targets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pids = self.pids.iter().map(|pid| format!("process {pid}"));
        let all: Vec<String> = pids
            .chain(self.names.iter().chain(&self.packages).cloned())
            .collect();
        f.write_str(&all.join(", "))
    }
}

/// Rejects names that no process can have.
pub(super) fn check_target_names(targets: &Targets) -> Result<(), Failure> {
    for name in targets.names.iter().chain(&targets.packages) {
        let why = if name.trim().is_empty() {
            "the name is empty"
        } else if name.len() > MAX_PROCESS_NAME_BYTES {
            "heapprofd compares only 511 bytes of a process name, so it would never match"
        } else if name.contains('\0') {
            "a process name cannot contain NUL"
        } else {
            continue;
        };
        return Err(bad_value(
            "-n",
            format!("{name:?}"),
            why,
            "use a name that `heaptap apps` or `adb shell ps -A` shows",
        ));
    }
    if targets.pids.contains(&0) {
        return Err(bad_value(
            "-p",
            0,
            "no process has this PID",
            "find the PID with `adb shell ps -A`",
        ));
    }
    Ok(())
}

/// Appends missing items.
pub(super) fn add<T: Clone + PartialEq>(mine: &mut Vec<T>, theirs: &[T]) {
    for item in theirs {
        if !mine.contains(item) {
            mine.push(item.clone());
        }
    }
}
