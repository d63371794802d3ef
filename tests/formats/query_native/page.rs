//! docs/reference/sql.md lists every table with its columns, and its examples run.

use std::fmt::Write as _;
use std::path::Path;

use heaptap_query::{Database, Sort};

use super::content::select;
use super::{database, fixtures};

const BEGIN: &str =
    "<!-- tables: written by UPDATE_DOCS=1 cargo test --test formats query_native -->\n";
const END: &str = "<!-- end of tables -->\n";

fn listing(database: &Database) -> String {
    let mut text = String::new();
    for table in database.tables().expect("tables") {
        let arguments: Vec<&str> = table
            .columns
            .iter()
            .filter(|column| column.hidden)
            .map(|column| column.name.as_str())
            .collect();
        let name = match table.sort {
            Sort::Function => format!("{}({})", table.name, arguments.join(", ")),
            Sort::Macro => format!("{}!({})", table.name, arguments.join(", ")),
            _ => table.name.clone(),
        };
        let _ = write!(text, "### `{name}`\n\n{}", table.about);
        if let Some(module) = table.module {
            let _ = write!(text, " Module `{module}`.");
        }
        text.push('\n');
        let is_table = table.sort == Sort::Table;
        let shown = table.columns.iter().filter(|c| !c.hidden || is_table);
        let shown: Vec<_> = shown.collect();
        if table.sort == Sort::View && shown.iter().all(|column| column.about.is_empty()) {
            let names: Vec<String> = shown.iter().map(|c| format!("`{}`", c.name)).collect();
            let _ = write!(text, "\nColumns: {}.\n", names.join(", "));
        } else if !shown.is_empty() {
            text += "\n| column | | |\n|---|---|---|\n";
            for column in shown {
                let key = if column.is_key { " =" } else { "" };
                let kind = column.kind.to_lowercase();
                let hidden = if column.hidden {
                    "; not in `SELECT *`"
                } else {
                    ""
                };
                let _ = writeln!(
                    text,
                    "| `{}` | {kind}{key} | {}{hidden} |",
                    column.name, column.about
                );
            }
        }
        text.push('\n');
    }
    text
}

#[test]
fn every_table_is_on_the_page() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/sql.md");
    let page = std::fs::read_to_string(&path).expect("the page");
    let database = database(&fixtures().join("conversions/c_cont.pftrace"));
    let (before, rest) = page.split_once(BEGIN).expect("the mark");
    let (_, after) = rest.split_once(END).expect("the end mark");
    let right = format!("{before}{BEGIN}\n{}{END}{after}", listing(&database));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, right).expect("the page can be written");
        return;
    }
    assert!(
        page == right,
        "docs/reference/sql.md: run UPDATE_DOCS=1 cargo test --test formats query_native"
    );
}

#[test]
fn examples_of_the_page_run() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/sql.md");
    let page = std::fs::read_to_string(path).expect("the page");
    let native = fixtures().join("conversions/c_cont.pftrace");
    let java = fixtures().join("heap_graphs/graph_10k.pftrace.zst");
    let mut ran = 0;
    for example in page.split("```sql\n").skip(1) {
        let sql = example.split("```").next().expect("an example");
        let mut database = database(if sql.contains("heap_graph") {
            &java
        } else {
            &native
        });
        let rows = select(&mut database, sql);
        // This recording has no snapshots or other companion data, so these return no rows.
        let lacks = [
            "label =",
            "heaptap_gc",
            "process_counter_track",
            "Activity",
            "garbage",
        ];
        let may_be_empty = lacks.iter().any(|what| sql.contains(what));
        assert!(!rows.is_empty() || may_be_empty, "{sql}");
        ran += 1;
    }
    assert!(ran >= 4);
}
