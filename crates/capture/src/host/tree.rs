//! Processes that a program started, recognized by the socket name in their environment: it is
//! unique to one recording, and inherited. A trace from a program of this host has no process names,
//! because nothing reads `/proc` for it; this module does.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Processes with a marker in their environment.
#[derive(Debug, Default)]
pub struct Processes {
    /// `NAME=value`.
    marker: Vec<u8>,
    names: BTreeMap<u32, String>,
    /// Processes of others, which are not read again.
    foreign: BTreeSet<u32>,
    alive: BTreeSet<u32>,
}

impl Processes {
    /// Recognizes processes by a variable of their environment.
    pub fn marked(marker: impl Into<Vec<u8>>) -> Processes {
        Processes {
            marker: marker.into(),
            ..Processes::default()
        }
    }

    /// Adds a process whose name is known, however short its life is.
    pub fn add(&mut self, pid: u32, name: &str) {
        self.names.insert(pid, name.to_owned());
    }

    /// Reads the names of the running processes.
    pub fn look(&mut self) {
        let proc = Path::new("/proc");
        let mut running = BTreeSet::new();
        self.alive.clear();
        let items = fs::read_dir(proc).into_iter().flatten().flatten();
        for item in items {
            let Some(pid) = item.file_name().to_str().and_then(|n| n.parse().ok()) else {
                continue;
            };
            running.insert(pid);
            if self.foreign.contains(&pid) {
                continue;
            }
            let environment = fs::read(item.path().join("environ")).unwrap_or_default();
            // Within exec, and at its end, a process has no environment.
            if environment.is_empty() {
                continue;
            }
            let mut variables = environment.split(|b| *b == 0);
            if !variables.any(|variable| variable == self.marker) {
                self.foreign.insert(pid);
                continue;
            }
            self.alive.insert(pid);
            let line = fs::read(item.path().join("cmdline")).unwrap_or_default();
            let first = line.split(|b| *b == 0).next().unwrap_or_default();
            let first = String::from_utf8_lossy(first);
            let name = first.rsplit('/').next().unwrap_or_default();
            if !name.is_empty() {
                self.names.insert(pid, name.to_owned());
            }
        }
        self.foreign.retain(|pid| running.contains(pid));
    }

    /// Returns the last known name of a process.
    pub fn name(&self, pid: u32) -> Option<&str> {
        self.names.get(&pid).map(String::as_str)
    }

    /// Returns the processes that were running at the last look, with their names.
    pub fn alive(&self) -> impl Iterator<Item = (u32, &str)> {
        let name = |pid: &u32| self.names.get(pid).map_or("", String::as_str);
        self.alive.iter().map(move |pid| (*pid, name(pid)))
    }
}
