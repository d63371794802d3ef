//! Processes and their `upid`s, which all other tables use.

use std::collections::HashMap;
use std::sync::Arc;

use super::table::{Access, Catalog, Cell, Column, Rows, Schema};
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
    pub fn of(recording: &Recording) -> Processes {
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

static PROCESSES: Schema = Schema {
    name: "process",
    module: None,
    about: "Processes of the input; other tables refer to them by `upid`.",
    columns: &[
        Column::id(),
        Column::int("upid", "equal to `id`").found(Access::Row),
        Column::int("pid", "process ID on the device").indexed(),
        Column::text("name", "process name; NULL if unknown").indexed(),
        Column::int("start_ts", "start time, if known"),
        Column::int("end_ts", "always NULL: not recorded in profiles"),
        Column::int("parent_upid", "parent process, if known").indexed(),
        Column::int("uid", "UID of its app or service").indexed(),
        Column::int("android_appid", "`uid % 100000`"),
        Column::int("android_user_id", "`uid / 100000`"),
        Column::text("cmdline", "command line, if known"),
        Column::int("arg_set_id", "always NULL"),
        Column::int("machine_id", "always 0: a trace has one device"),
    ],
};

static THREADS: Schema = Schema {
    name: "thread",
    module: None,
    about: "The main thread of each process; profiles do not record other threads.",
    columns: &[
        Column::id(),
        Column::int("utid", "equal to `id`").found(Access::Row),
        Column::int("tid", "thread ID on the device").indexed(),
        Column::text(
            "name",
            "`swapper` for the idle thread, otherwise NULL: not recorded in profiles",
        ),
        Column::int("start_ts", "always NULL"),
        Column::int("end_ts", "always NULL"),
        Column::int("upid", "process").found(Access::Row),
        Column::int("is_main_thread", "always 1"),
        Column::int("is_idle", "1 for the idle thread"),
        Column::int("machine_id", "always 0: a trace has one device"),
        Column::int("arg_set_id", "always NULL"),
    ],
};

struct ProcessTable(Arc<Processes>);
struct ThreadTable(Arc<Processes>);

/// Number of UIDs of each Android user.
const UIDS_OF_A_USER: u64 = 100_000;

impl Rows for ProcessTable {
    fn len(&self) -> usize {
        self.0.rows.len()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let process = &self.0.rows[row];
        match column {
            0 | 1 => row.into(),
            2 => Cell::bits(process.pid),
            3 => process.name.as_deref().into(),
            4 => process.start_ns.map(Cell::bits).unwrap_or(Cell::Null),
            6 => process.parent.into(),
            7 => process.uid.map(Cell::bits).unwrap_or(Cell::Null),
            8 => process
                .uid
                .map(|uid| Cell::bits(uid % UIDS_OF_A_USER))
                .unwrap_or(Cell::Null),
            9 => process
                .uid
                .map(|uid| Cell::bits(uid / UIDS_OF_A_USER))
                .unwrap_or(Cell::Null),
            10 => process.cmdline.as_deref().into(),
            12 => Cell::Int(0),
            _ => Cell::Null,
        }
    }
}

impl Rows for ThreadTable {
    fn len(&self) -> usize {
        self.0.rows.len()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        match column {
            0 | 1 | 6 => row.into(),
            2 => Cell::bits(self.0.rows[row].pid),
            3 => (row == 0).then_some("swapper").into(),
            7 => Cell::Int(1),
            8 => Cell::flag(row == 0),
            9 => Cell::Int(0),
            _ => Cell::Null,
        }
    }
}

/// Adds `process` and `thread`.
pub fn add(catalog: &mut Catalog, processes: &Arc<Processes>) {
    let of = Arc::clone(processes);
    catalog.table(&PROCESSES, move || {
        Ok(Arc::new(ProcessTable(Arc::clone(&of))))
    });
    let of = Arc::clone(processes);
    catalog.table(&THREADS, move || Ok(Arc::new(ThreadTable(Arc::clone(&of)))));
}
