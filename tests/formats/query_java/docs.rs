//! The page on these tables: every query on it runs, and it lists every module.

use super::{recordings, sides};
use std::path::Path;

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/sql.md");
    std::fs::read_to_string(path).expect("the page is there")
}

#[test]
fn queries_of_the_page_run_and_its_modules_can_be_included() {
    let recordings = recordings();
    let graph = recordings.iter().find(|r| r.name == "graph_10k");
    let mut database = sides::open(&graph.expect("it is a fixture").trace);
    let page = page();
    let queries: Vec<&str> = page
        .split("```sql\n")
        .skip(1)
        .filter_map(|part| part.split("```").next())
        .filter(|sql| sql.contains("heap_graph"))
        .collect();
    assert!(queries.len() >= 4, "{} queries", queries.len());
    for sql in queries {
        let rows = sides::ask(&mut database, sql);
        let rows = rows.unwrap_or_else(|error| panic!("{sql}: {error}"));
        // The fixture has no subclass of an activity, and little garbage.
        let may_be_empty = sql.contains("Activity") || sql.contains("garbage");
        assert!(may_be_empty || !rows.is_empty(), "{sql}");
    }
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let modules: Vec<&str> = rows
        .filter_map(|row| row.split('`').next())
        .filter(|name| name.contains('.'))
        .collect();
    assert!(modules.len() >= 20, "{modules:?}");
    for module in &modules {
        let sql = format!("INCLUDE PERFETTO MODULE {module};");
        sides::ask(&mut database, &sql).unwrap_or_else(|error| panic!("{module}: {error}"));
    }
    let known: Vec<&str> = database.modules().collect();
    for module in known {
        let told = modules.contains(&module);
        let says_nothing = module.starts_with("prelude.") || module.ends_with("_flamegraph");
        assert!(told || says_nothing, "{module} is not on the page");
    }
}
