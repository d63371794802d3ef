//! Two databases of one trace: heaptap's, and one with the tables written by Perfetto.

use super::{Recording, tables_of};
use heaptap::names::options::NameOptions;
use heaptap::names::r8_mappings::{HeapMaps, R8Mappings};
use heaptap_model::heap_graph::HeapGraph;
use heaptap_query::java::{JavaHeapFacts, JavaHeaps};
use heaptap_query::native::NativeHeapsBuilder;
use heaptap_query::{
    self as query, Catalog, Database, Processes, QueryError, Sink, TableError, flamegraph, java,
    modules, native, processes,
};
use perfetto_heap::{Surveyed, Trace, TraceError};
use rusqlite::Connection;
use rusqlite::types::Value;
use std::cell::{Cell, RefCell};
use std::io::Read as _;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A row of a result; numbers and texts unchanged.
pub type Row = Vec<Value>;

pub struct Sides {
    pub ours: RefCell<Database>,
    pub theirs: Connection,
    /// The number of results that were compared.
    pub compared: Cell<usize>,
}

struct Heaps {
    list: Vec<JavaHeapFacts>,
    trace: Mutex<(Trace, HeapMaps)>,
}

impl JavaHeaps for Heaps {
    fn list(&self) -> &[JavaHeapFacts] {
        &self.list
    }

    fn read(&self, at: usize) -> Result<Arc<HeapGraph>, TableError> {
        let (trace, maps) = &mut *self.trace.lock().expect("nobody panicked");
        let recording = trace.recording().clone();
        let graph = trace.read_java_dump(at);
        let mut graph = graph.map_err(|error| TableError(error.to_string()))?;
        maps.name(&mut graph, &recording);
        Ok(Arc::new(graph))
    }
}

/// A database of a trace.
pub fn open(path: &Path) -> Database {
    let traces = heaptap_input::open(path).expect("the trace opens");
    let source = traces.into_iter().next().expect("there is a trace").source;
    let mut surveyed = Surveyed::read(source).expect("the trace can be read");
    let maps = R8Mappings::open_what_opens(&NameOptions {
        discover: false,
        ..NameOptions::default()
    });
    let renamed = maps.name(&mut surveyed).expect("names can be read");
    let mut trace = surveyed.seal();
    let mut all = Processes::from_recording(trace.recording());
    let mut builder = NativeHeapsBuilder::default();
    trace
        .read_dumps::<TraceError>(|dump| {
            all.enter_named(dump.pid, &dump.process);
            builder.add(dump);
            Ok(())
        })
        .expect("dumps can be read");
    let natives = Arc::new(builder.finish(trace.recording().clone()));
    let list = trace.java_dumps().iter().map(|dump| {
        all.enter_named(dump.pid, &dump.process);
        JavaHeapFacts {
            pid: Some(dump.pid),
            process: dump.process.clone(),
            time_ns: dump.time_ns,
            reason: dump.out_of_memory.as_ref().map(|_| "OOME".to_owned()),
            out_of_memory: dump.out_of_memory.clone(),
            is_out_of_memory: dump.out_of_memory.is_some(),
        }
    });
    let list = list.collect();
    let heaps: Arc<dyn JavaHeaps> = Arc::new(Heaps {
        list,
        trace: Mutex::new((trace, renamed.heaps)),
    });
    let all = Arc::new(all);
    let mut catalog = Catalog::default();
    processes::add(&mut catalog, &all);
    native::add(&mut catalog, &natives, &all);
    let heaps = java::add(&mut catalog, &heaps, &all);
    flamegraph::add(&mut catalog, Some(&natives), Some(&heaps), &all);
    modules::add(&mut catalog, &natives);
    Database::open(catalog).expect("a database")
}

/// Perfetto's names of the tables stored in files.
const TABLES: [(&str, &str); 14] = [
    ("hg_class", "heap_graph_class"),
    ("hg_object", "heap_graph_object"),
    ("hg_reference", "heap_graph_reference"),
    ("hg_dominator_tree", "heap_graph_dominator_tree"),
    (
        "hg_class_aggregation",
        "android_heap_graph_class_aggregation",
    ),
    ("hg_class_tree", "android_heap_graph_class_summary_tree"),
    (
        "hg_dominator_class_tree",
        "_heap_graph_dominator_class_tree",
    ),
    ("heap_summary_tree", "android_heap_profile_summary_tree"),
    ("alloc", "alloc"),
    ("callsite", "stack_profile_callsite"),
    ("frame", "stack_profile_frame"),
    ("mapping", "stack_profile_mapping"),
    ("symbol", "stack_profile_symbol"),
    ("process", "process"),
];

impl Sides {
    pub fn open(recording: &Recording) -> Sides {
        let theirs = Connection::open_in_memory().expect("a database");
        let tables = tables_of(recording);
        for (file, table) in TABLES {
            if let Some(text) = text(&tables, file) {
                load(&theirs, table, &text);
            }
        }
        let with_pids = "CREATE VIEW heap_profile_allocation AS
             SELECT ts, upid, heap_name, callsite_id, count, size FROM alloc JOIN process USING (pid)";
        theirs.execute_batch(with_pids).expect("a view");
        Sides {
            ours: RefCell::new(open(&recording.trace)),
            theirs,
            compared: Cell::new(0),
        }
    }

    /// Whether Perfetto's side has a table.
    pub fn has(&self, table: &str) -> bool {
        let sql = "SELECT count(*) FROM sqlite_master WHERE name = ?1 AND type = 'table'";
        let count = self
            .theirs
            .query_row(sql, [table], |row| row.get::<_, i64>(0));
        count.expect("a number") > 0
    }

    /// Returns the rows of a query on heaptap's side: of the last statement that returns any.
    pub fn ours(&self, sql: &str) -> Result<Vec<Row>, String> {
        ask(&mut self.ours.borrow_mut(), sql)
    }

    /// Returns the differences between both sides' rows of a query, in any order.
    pub fn compare(&self, sql: &str) -> Vec<String> {
        self.compare_with(sql, sql)
    }

    /// The same, if the sides need different queries.
    pub fn compare_with(&self, ours: &str, theirs: &str) -> Vec<String> {
        self.differences(self.ours(ours), rows(&self.theirs, theirs))
    }

    /// Returns the first differences between rows of both sides.
    pub fn differences(
        &self,
        ours: Result<Vec<Row>, String>,
        theirs: Result<Vec<Row>, String>,
    ) -> Vec<String> {
        self.count();
        differences(ours, theirs)
    }

    /// Counts a comparison.
    pub fn count(&self) {
        self.compared.set(self.compared.get() + 1);
    }
}

/// Returns the first differences between rows, in any order.
pub fn differences(
    ours: Result<Vec<Row>, String>,
    theirs: Result<Vec<Row>, String>,
) -> Vec<String> {
    let (ours, theirs) = match (ours, theirs) {
        (Ok(ours), Ok(theirs)) => (ours, theirs),
        (Err(error), _) => return vec![format!("ours: {error}")],
        (_, Err(error)) => return vec![format!("theirs: {error}")],
    };
    let shown = |rows: Vec<Row>| {
        let mut rows: Vec<String> = rows.into_iter().map(|row| format!("{row:?}")).collect();
        rows.sort_unstable();
        rows
    };
    let (ours, theirs) = (shown(ours), shown(theirs));
    let mut faults = Vec::new();
    if ours.len() != theirs.len() {
        faults.push(format!("{} rows, not {}", ours.len(), theirs.len()));
    }
    let differing = ours.iter().zip(&theirs).filter(|(our, their)| our != their);
    let differing = differing.map(|(our, their)| format!("{our}\n    not {their}"));
    faults.extend(differing.take(3));
    faults
}

/// Returns all rows of a query on Perfetto's tables.
pub fn rows(connection: &Connection, sql: &str) -> Result<Vec<Row>, String> {
    let rows = || -> Result<Vec<Row>, rusqlite::Error> {
        let mut statement = connection.prepare(sql)?;
        let columns = statement.column_count();
        let rows = statement.query_map([], |row| (0..columns).map(|at| row.get(at)).collect())?;
        rows.collect()
    };
    rows().map_err(|error| error.to_string())
}

/// Keeps the rows of the last statement.
#[derive(Default)]
struct Last(Vec<Row>);

impl Sink for Last {
    fn columns(&mut self, _: &[&str]) -> ControlFlow<()> {
        self.0.clear();
        ControlFlow::Continue(())
    }

    fn row(&mut self, row: &[query::Value<'_>]) -> ControlFlow<()> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let row = row.iter().map(|value| match *value {
            query::Value::Null => Value::Null,
            query::Value::Int(number) => Value::Integer(number),
            query::Value::Real(number) => Value::Real(number),
            query::Value::Text(bytes) => Value::Text(text(bytes)),
            query::Value::Blob(bytes) => Value::Blob(bytes.to_vec()),
        });
        self.0.push(row.collect());
        ControlFlow::Continue(())
    }

    fn end(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Returns the rows of the last statement of a text that returns any.
pub fn ask(database: &mut Database, sql: &str) -> Result<Vec<Row>, String> {
    let mut last = Last::default();
    let run = database.run(sql, &mut last);
    run.map_err(|error: QueryError| error.to_string())?
        .is_continue()
        .then_some(last.0)
        .ok_or_else(|| "it ended early".to_owned())
}

/// The text of a table's file, gzipped or not.
pub fn text(directory: &Path, name: &str) -> Option<String> {
    if let Ok(text) = std::fs::read_to_string(directory.join(format!("{name}.csv"))) {
        return Some(text);
    }
    let file = std::fs::File::open(directory.join(format!("{name}.csv.gz"))).ok()?;
    let mut text = String::new();
    let read = flate2::read::GzDecoder::new(file).read_to_string(&mut text);
    read.expect("a table inflates");
    Some(text)
}

/// Creates a table from CSV of SQLite's shell: text in quotes, `[NULL]` for null.
pub fn load(connection: &Connection, table: &str, text: &str) {
    let mut lines = text.lines();
    let columns = cells(lines.next().unwrap_or_default());
    let names: Vec<String> = columns
        .iter()
        .map(|column| match column {
            Value::Text(name) => format!("\"{name}\""),
            other => panic!("{table}: a column named {other:?}"),
        })
        .collect();
    let create = format!("CREATE TABLE {table} ({})", names.join(", "));
    connection.execute_batch(&create).expect("a table");
    let places = vec!["?"; names.len()].join(", ");
    let insert = format!("INSERT INTO {table} VALUES ({places})");
    connection.execute_batch("BEGIN").expect("a transaction");
    let mut insert = connection.prepare(&insert).expect("an insertion");
    for line in lines {
        let row = rusqlite::params_from_iter(cells(line));
        insert.execute(row).expect("a row is inserted");
    }
    connection.execute_batch("COMMIT").expect("a transaction");
}

fn cells(line: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut rest = line;
    loop {
        let (cell, after) = match rest.strip_prefix('"') {
            Some(quoted) => {
                // Quotes inside are not doubled: a cell ends before a comma or the end.
                let end = quoted.find("\",").unwrap_or(quoted.len() - 1);
                let text = &quoted[..end];
                let cell = match text {
                    "[NULL]" => Value::Null,
                    text => Value::Text(text.to_owned()),
                };
                (cell, &quoted[end + 1..])
            }
            None => {
                let (text, after) = rest.split_at(rest.find(',').unwrap_or(rest.len()));
                let number = text.parse().map(Value::Integer);
                let number = number.or_else(|_| text.parse().map(Value::Real));
                (number.unwrap_or(Value::Text(text.to_owned())), after)
            }
        };
        found.push(cell);
        match after.strip_prefix(',') {
            Some(more) => rest = more,
            None => return found,
        }
    }
}
