//! Processes and their `upid`s, which all other tables use.

use std::collections::HashMap;
use std::sync::Arc;

use super::once::given;
use super::table::{Catalog, Cell, Schema, columns, schema};
use heaptap_model::profile::Recording;

/// Process of the input.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessRow {
    /// Process ID on the device; 0 if unknown.
    pub pid: u64,
    /// Process name, if known.
    pub name: Option<String>,
    /// UID of its app or service.
    pub uid: Option<u64>,
    /// Command line, with words joined by spaces.
    pub cmdline: Option<String>,
    /// `upid` of the parent process.
    pub parent: Option<u32>,
    /// Start time, ns of trace time.
    pub start_ns: Option<u64>,
}

/// All processes. A `upid` is a position in the list; 0 is the idle process, as in Perfetto.
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
    /// Returns the processes that a trace names.
    pub fn from_recording(recording: &Recording) -> Processes {
        let mut all = Processes::default();
        for (&pid, process) in &recording.processes {
            let upid = all.enter(pid) as usize;
            let row = &mut all.rows[upid];
            row.cmdline.clone_from(&process.cmdline);
            row.name = (!process.name.is_empty()).then(|| process.name.clone());
            row.uid = process.uid;
            row.start_ns = process.start_ns;
        }
        for (&pid, process) in &recording.processes {
            let parent = process.parent_pid.filter(|&parent| parent != 0);
            if let (Some(upid), Some(parent)) = (all.upid(pid), parent) {
                all.rows[upid as usize].parent = all.upid(parent);
            }
        }
        all
    }

    /// Returns the `upid` of a PID and adds the process if it is new.
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

    /// Adds a process that only the input's metadata names.
    pub fn enter_named(&mut self, pid: u64, name: &str) -> u32 {
        let upid = self.enter(pid);
        let row = &mut self.rows[upid as usize];
        if row.name.is_none() && !name.is_empty() {
            row.name = Some(name.to_owned());
        }
        upid
    }

    pub fn upid(&self, pid: u64) -> Option<u32> {
        self.by_pid.get(&pid).copied()
    }

    /// Returns all processes in the order of their `upid`s.
    pub fn rows(&self) -> &[ProcessRow] {
        &self.rows
    }
}

static PROCESSES: Schema = schema! {
    "process": "Processes of the input; other tables refer to them by `upid`.";
    id int row: "number of the row";
    upid int row: "equal to `id`";
    pid int indexed: "process ID on the device";
    name text indexed: "process name; NULL if unknown";
    start_ts int: "start time, if known";
    end_ts int: "always NULL: not recorded in profiles";
    parent_upid int indexed: "parent process, if known";
    uid int indexed: "UID of its app or service";
    android_appid int: "`uid % 100000`";
    android_user_id int: "`uid / 100000`";
    cmdline text: "command line, if known";
    arg_set_id int: "always NULL";
    machine_id int: "always 0: a trace has one device";
};

static THREADS: Schema = schema! {
    "thread": "The main thread of each process; profiles do not record other threads.";
    id int row: "number of the row";
    utid int row: "equal to `id`";
    tid int indexed: "thread ID on the device";
    name text: "`swapper` for the idle thread, otherwise NULL: not recorded in profiles";
    start_ts int: "always NULL";
    end_ts int: "always NULL";
    upid int row: "process";
    is_main_thread int: "always 1";
    is_idle int: "1 for the idle thread";
    machine_id int: "always 0: a trace has one device";
    arg_set_id int: "always NULL";
};

/// Number of UIDs of each Android user.
const UIDS_OF_A_USER: u64 = 100_000;

fn process_cell(processes: &Processes, row: usize, column: usize) -> Cell<'_> {
    let process = &processes.rows[row];
    match column {
        0 | 1 => row.into(),
        2 => process.pid.into(),
        3 => process.name.as_deref().into(),
        4 => process.start_ns.into(),
        6 => process.parent.into(),
        7 => process.uid.into(),
        8 => process.uid.map(|uid| uid % UIDS_OF_A_USER).into(),
        9 => process.uid.map(|uid| uid / UIDS_OF_A_USER).into(),
        10 => process.cmdline.as_deref().into(),
        12 => Cell::Int(0),
        _ => Cell::Null,
    }
}

fn thread_cell(processes: &Processes, row: usize, column: usize) -> Cell<'_> {
    match column {
        0 | 1 | 6 => row.into(),
        2 => processes.rows[row].pid.into(),
        3 => (row == 0).then_some("swapper").into(),
        7 => Cell::Int(1),
        8 => Cell::flag(row == 0),
        9 => Cell::Int(0),
        _ => Cell::Null,
    }
}

/// Adds `process` and `thread`.
pub fn add(catalog: &mut Catalog, processes: &Arc<Processes>) {
    let all = given(processes);
    catalog.rows(&PROCESSES, &all, |all| all.rows.len(), process_cell);
    catalog.rows(&THREADS, &all, |all| all.rows.len(), thread_cell);
}
