//! SQL over the explored heap: the tables of `query`, whose rows link to objects.

use crate::heaps::java::facts::HeapFacts;
use heaptap_base::error::Classified;
use heaptap_base::parallel::lock;
use heaptap_explore::Explorer;
use heaptap_model::heap_graph::{Dominators, Follow, HeapGraph, OutOfMemory};
use heaptap_query::java::{JavaHeapFacts, JavaHeaps, LazyHeaps};
use heaptap_query::{
    Catalog, Database, Interrupter, Limits, Processes, QueryError, Sink, TableError, Value,
    flamegraph, java, processes,
};
use serde::Serialize;
use serde_json::json;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

/// Limits of a statement.
const LIMITS: Limits = Limits {
    time: Some(Duration::from_secs(60)),
    memory_bytes: 1 << 30,
};
/// Time between two attempts to get the database.
const TURN_INTERVAL: Duration = Duration::from_millis(5);
/// Maximum number of rows in an answer.
const MAX_ROWS: usize = 1000;
/// Maximum length of a text in an answer, in characters.
const MAX_TEXT: usize = 10_000;
/// Columns whose numbers are rows of objects.
const OBJECT_COLUMNS: [&str; 5] = [
    "object_id",
    "owner_id",
    "owned_id",
    "dominator_id",
    "idom_id",
];
/// Column that tables of objects have, and no other table with an `id`.
const SIZE_COLUMN: &str = "self_size";

/// The database of a heap.
pub(super) struct HeapSql {
    database: Mutex<Database>,
    /// Ends the statement that runs, for the next one.
    interrupter: Interrupter,
    /// Number of the latest request. Held while one is interrupted, so that this is not the latest.
    latest: Mutex<u64>,
    heaps: LazyHeaps,
}

/// Result of the last statement that returned rows.
#[derive(Default, Serialize)]
pub(super) struct Rows {
    columns: Vec<String>,
    rows: Vec<Vec<serde_json::Value>>,
    /// Whether there are more rows than these.
    is_cut: bool,
}

/// A statement failed.
pub(super) struct SqlProblem(pub String);

impl From<QueryError> for SqlProblem {
    fn from(error: QueryError) -> SqlProblem {
        let help = error.facts().help;
        let help = help.map(|help| format!(". {help}")).unwrap_or_default();
        SqlProblem(format!("{error}{help}"))
    }
}

impl HeapSql {
    /// Makes the tables of the heap of an explorer. They are read when a statement needs them.
    pub(super) fn open(
        explorer: &Explorer,
        facts: &HeapFacts,
        out_of_memory: Option<OutOfMemory>,
    ) -> Result<HeapSql, SqlProblem> {
        let mut known = Processes::default();
        if let Some(pid) = facts.pid {
            known.enter_named(pid, facts.process.as_deref().unwrap_or(""));
        }
        let known = Arc::new(known);
        let is_default = explorer.follow() == Follow::default();
        let heap: Arc<dyn JavaHeaps> = Arc::new(OneHeap {
            facts: [JavaHeapFacts {
                pid: facts.pid,
                process: facts.process.clone().unwrap_or_default(),
                time_ns: facts.time_ns.unwrap_or(0),
                reason: facts.reason.clone(),
                is_out_of_memory: out_of_memory.is_some(),
                out_of_memory,
            }],
            graph: Arc::clone(explorer.graph()),
            dominators: is_default.then(|| Arc::clone(explorer.dominators())),
        });
        let mut catalog = Catalog::default();
        processes::add(&mut catalog, &known);
        let heaps = java::add(&mut catalog, &heap, &known);
        flamegraph::add(&mut catalog, None, Some(&heaps), &known);
        let database = Database::open_with(catalog, LIMITS)?;
        Ok(HeapSql {
            interrupter: database.interrupter(),
            latest: Mutex::default(),
            database: Mutex::new(database),
            heaps,
        })
    }

    /// Ends the statements that run or wait, then runs these.
    pub(super) fn run(&self, sql: &str) -> Result<Rows, SqlProblem> {
        let mut database = self.turn()?;
        database.forget_interrupts();
        let mut reader = Reader {
            heaps: &self.heaps,
            is_object: Vec::new(),
            found: Rows::default(),
        };
        let _ended = database.run(sql, &mut reader)?;
        Ok(reader.found)
    }

    /// Waits until the database is free, unless a later request comes first.
    fn turn(&self) -> Result<MutexGuard<'_, Database>, SqlProblem> {
        let latest = || lock(&self.latest);
        let turn = {
            let mut latest = latest();
            *latest += 1;
            *latest
        };
        loop {
            {
                let latest = latest();
                if *latest != turn {
                    return Err(SqlProblem("a later statement was run".to_owned()));
                }
                match self.database.try_lock() {
                    Ok(database) => return Ok(database),
                    Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
                    Err(TryLockError::WouldBlock) => {}
                }
                // Again each time: a request that gets its turn forgets earlier interrupts.
                self.interrupter.interrupt();
            }
            std::thread::sleep(TURN_INTERVAL);
        }
    }
}

/// The explored heap as the only one.
struct OneHeap {
    facts: [JavaHeapFacts; 1],
    graph: Arc<HeapGraph>,
    dominators: Option<Arc<Dominators>>,
}

impl JavaHeaps for OneHeap {
    fn list(&self) -> &[JavaHeapFacts] {
        &self.facts
    }

    fn read(&self, _at: usize) -> Result<Arc<HeapGraph>, TableError> {
        Ok(Arc::clone(&self.graph))
    }

    fn dominators(&self, _at: usize) -> Option<Arc<Dominators>> {
        self.dominators.clone()
    }
}

struct Reader<'h> {
    heaps: &'h LazyHeaps,
    /// For each column, whether its numbers are rows of objects.
    is_object: Vec<bool>,
    found: Rows,
}

impl Sink for Reader<'_> {
    fn columns(&mut self, names: &[&str]) -> ControlFlow<()> {
        let has_size = names.contains(&SIZE_COLUMN);
        self.is_object = names
            .iter()
            .map(|name| OBJECT_COLUMNS.contains(name) || *name == "id" && has_size)
            .collect();
        self.found = Rows {
            columns: names.iter().map(|&name| name.to_owned()).collect(),
            ..Rows::default()
        };
        ControlFlow::Continue(())
    }

    fn row(&mut self, row: &[Value<'_>]) -> ControlFlow<()> {
        if self.found.rows.len() == MAX_ROWS {
            self.found.is_cut = true;
            return ControlFlow::Break(());
        }
        let cells = row.iter().zip(&self.is_object);
        let cells = cells.map(|(value, &is_object)| self.cell(value, is_object));
        self.found.rows.push(cells.collect());
        ControlFlow::Continue(())
    }

    fn end(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl Reader<'_> {
    /// Returns the value: large integers as text, because JavaScript rounds them.
    fn cell(&self, value: &Value<'_>, is_object: bool) -> serde_json::Value {
        match *value {
            Value::Null => serde_json::Value::Null,
            Value::Int(number) if is_object => {
                let row = usize::try_from(number).ok();
                match row.and_then(|row| self.heaps.object_at(row)) {
                    Some((graph, object)) => {
                        json!({ "value": number, "object": graph.id(object).to_string() })
                    }
                    None => json!(number),
                }
            }
            Value::Int(number) if number.unsigned_abs() >= 1 << 53 => json!(number.to_string()),
            Value::Int(number) => json!(number),
            Value::Real(number) => json!(number),
            Value::Text(text) => {
                let text = String::from_utf8_lossy(text).into_owned();
                json!(heaptap_analyze::inspect::cut(text, MAX_TEXT))
            }
            Value::Blob(bytes) => json!(format!("{} bytes", bytes.len())),
        }
    }
}
