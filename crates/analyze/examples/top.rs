//! Prints the functions of a trace with the most memory: their own bytes, and those including the
//! functions that they call.
//!
//! ```console
//! $ cargo run -p heaptap-analyze --example top -- fixtures/conversions/c_max.pftrace
//! ```
#![allow(clippy::print_stdout, reason = "an example prints")]

use heaptap_analyze::native::filter::Filter;
use heaptap_analyze::native::groups::{Groups, RowKey};
use heaptap_analyze::native::table::{Key, Table};
use heaptap_analyze::native::visible_tree::VisibleTree;
use heaptap_model::stacks::{ProjectOptions, View, project};
use perfetto_heap::{Source, Trace, TraceError};

fn top(source: Box<dyn Source>, limit: usize) -> Result<String, TraceError> {
    let mut trace = Trace::open(source)?;
    let mut dumps = Vec::new();
    trace.read_dumps(|dump| {
        dumps.push(dump);
        Ok::<_, TraceError>(())
    })?;
    let profile = project(trace.recording(), &dumps, ProjectOptions::default());
    let Some(dump) = profile.dumps.last() else {
        return Ok("the trace has no native heap dump\n".to_owned());
    };
    let shown = VisibleTree::new(&profile.table, &Filter::default(), &[&dump.values]);
    let groups = Groups::new(&profile.table, RowKey::Function);
    let table = Table::new(&shown, &groups, &dump.values);
    let mut views = dump.measures.iter().map(|measure| measure.view);
    let column = views
        .position(|view| view == Some(View::Space))
        .unwrap_or(0);
    let mut text = format!("{:>10} {:>10}\n", "own", "cumulative");
    for at in table.ranked(limit, |row| row.own[column]) {
        let row = table.row(at);
        if let Key::Group(group) = row.key {
            let (own, all) = (row.own[column], row.cumulative[column]);
            text += &format!("{own:>10} {all:>10}  {}\n", groups.name(group));
        }
    }
    Ok(text)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: top TRACE")?;
    let trace = std::fs::File::open(path)?;
    print!("{}", top(Box::new(trace), 5)?);
    Ok(())
}

#[test]
fn largest_function_comes_first() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fixtures/conversions/c_max.pftrace"
    );
    let trace = std::fs::File::open(path).unwrap();
    let text = top(Box::new(trace), 1).unwrap();
    let rows: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(rows, ["  24576000   24576000  peak_build"]);
}
