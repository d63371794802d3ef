//! Runs an SQL query over a trace.
//!
//! ```console
//! $ cargo run -p heaptap-query --example sql -- fixtures/conversions/c_cont.pftrace \
//!     'SELECT ts, count(*), sum(size) FROM heap_profile_allocation GROUP BY ts LIMIT 3'
//! ```
#![allow(clippy::print_stdout, reason = "an example prints")]

use heaptap_query::native::NativeHeapsBuilder;
use heaptap_query::{Catalog, Database, Processes, Sink, Value, native, processes, stacks};
use perfetto_heap::{Source, Trace, TraceError};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Rows as tab-separated text.
#[derive(Default)]
struct Lines(String);

impl Sink for Lines {
    fn columns(&mut self, names: &[&str]) -> ControlFlow<()> {
        self.0 += &(names.join("\t") + "\n");
        ControlFlow::Continue(())
    }

    fn row(&mut self, row: &[Value<'_>]) -> ControlFlow<()> {
        let cells = row.iter().map(|value| match value {
            Value::Null => "NULL".to_owned(),
            Value::Int(number) => number.to_string(),
            Value::Real(number) => number.to_string(),
            Value::Text(bytes) | Value::Blob(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        });
        self.0 += &(cells.collect::<Vec<_>>().join("\t") + "\n");
        ControlFlow::Continue(())
    }

    fn end(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

fn ask(source: Box<dyn Source>, sql: &str) -> Result<String, Box<dyn std::error::Error>> {
    let mut trace = Trace::open(source)?;
    let mut heaps = NativeHeapsBuilder::default();
    trace.read_dumps(|dump| {
        heaps.add(dump);
        Ok::<_, TraceError>(())
    })?;
    let heaps = Arc::new(heaps.finish(Arc::clone(trace.recording())));
    let known = Arc::new(Processes::from_recording(trace.recording()));
    let mut catalog = Catalog::default();
    processes::add(&mut catalog, &known);
    native::add(&mut catalog, &heaps, &known);
    stacks::add(&mut catalog, &heaps, &known);
    let mut lines = Lines::default();
    let _ = Database::open(catalog)?.run(sql, &mut lines)?;
    Ok(lines.0)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let usage = "usage: sql TRACE QUESTION";
    let (path, sql) = (args.next().ok_or(usage)?, args.next().ok_or(usage)?);
    let trace = std::fs::File::open(path)?;
    print!("{}", ask(Box::new(trace), &sql)?);
    Ok(())
}

#[test]
fn question_is_answered() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fixtures/conversions/c_cont.pftrace"
    );
    let trace = std::fs::File::open(path).unwrap();
    let sql = "SELECT count(DISTINCT ts) AS dumps FROM heap_profile_allocation";
    assert_eq!(ask(Box::new(trace), sql).unwrap(), "dumps\n11\n");
}
