//! Processes and their `upid`s, which all other tables refer to.

use std::collections::HashMap;

use crate::profile::Recording;

/// A process of the input.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessRow {
    /// Process id on the device; 0 where the input does not say.
    pub pid: u64,
    /// Its name, where known.
    pub name: Option<String>,
    /// Uid of its app or service.
    pub uid: Option<u64>,
}

/// All processes. A `upid` is the position in them; 0 is the idle process, as in Perfetto.
#[derive(Debug)]
pub struct Processes {
    rows: Vec<ProcessRow>,
    by_pid: HashMap<u64, u32>,
}

impl Default for Processes {
    fn default() -> Self {
        Processes {
            rows: vec![ProcessRow::default()],
            by_pid: HashMap::from([(0, 0)]),
        }
    }
}

impl Processes {
    /// Those that a trace names.
    pub fn of(recording: &Recording) -> Processes {
        let mut all = Processes::default();
        for (&pid, process) in &recording.processes {
            let upid = all.enter(pid) as usize;
            let row = &mut all.rows[upid];
            row.name = (!process.name.is_empty()).then(|| process.name.clone());
            row.uid = process.uid;
        }
        all
    }

    /// The `upid` of a pid, new if it was not there.
    pub fn enter(&mut self, pid: u64) -> u32 {
        let next = self.rows.len() as u32;
        let upid = *self.by_pid.entry(pid).or_insert(next);
        if upid == next {
            self.rows.push(ProcessRow {
                pid,
                ..ProcessRow::default()
            });
        }
        upid
    }

    /// Enters a process that the input names nowhere else.
    pub fn enter_named(&mut self, pid: u64, name: &str) -> u32 {
        let upid = self.enter(pid);
        let row = &mut self.rows[upid as usize];
        if row.name.is_none() && !name.is_empty() {
            row.name = Some(name.to_owned());
        }
        upid
    }

    /// The `upid` of a pid.
    pub fn upid(&self, pid: u64) -> Option<u32> {
        self.by_pid.get(&pid).copied()
    }

    /// All, in order of their `upid`s.
    pub fn rows(&self) -> &[ProcessRow] {
        &self.rows
    }
}
