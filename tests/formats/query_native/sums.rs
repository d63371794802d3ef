//! Compares heaptap's own tables with the totals of the other outputs.

use super::content::{Table, select};
use super::{database, fixtures};

fn number(table: &Table, row: usize, column: &str) -> i64 {
    let cell = table[row][column].as_ref();
    cell.expect("a value").parse().expect("a number")
}

#[test]
fn trees_functions_samples_and_perfettos_rows_add_up_to_the_same() {
    for name in ["c_cont", "c_max", "rust_cont_symbolized", "multi_deflate"] {
        let trace = fixtures().join(format!("conversions/{name}.pftrace"));
        let mut database = database(&trace);
        let dumps = select(&mut database, "SELECT * FROM heaptap_dump");
        assert!(!dumps.is_empty(), "{name}");
        for dump in 0..dumps.len() {
            let of = |column: &str| number(&dumps, dump, column);
            let sums = select(
                &mut database,
                &format!(
                    "SELECT
                       (SELECT sum(size) FROM heaptap_sample WHERE dump_id = {dump}) AS samples,
                       (SELECT sum(size) FROM heaptap_tree({dump})) AS own,
                       (SELECT sum(cumulative_size) FROM heaptap_tree({dump})
                          WHERE parent_id IS NULL) AS roots,
                       (SELECT sum(size) FROM heaptap_function({dump})) AS functions,
                       (SELECT sum(alloc_size) FROM heaptap_function({dump})) AS allocated,
                       (SELECT sum(a.size) FROM heap_profile_allocation a
                          JOIN heaptap_dump d ON d.id = {dump} AND a.upid = d.upid
                            AND a.heap_name = d.heap_name WHERE a.ts <= d.ts) AS rows,
                       (SELECT max(cumulative_size) >= max(size) FROM heaptap_tree({dump})) AS sane"
                ),
            );
            for column in ["samples", "own", "roots", "functions", "rows"] {
                assert_eq!(
                    number(&sums, 0, column),
                    of("size"),
                    "{name} @{dump} {column}"
                );
            }
            assert_eq!(
                number(&sums, 0, "allocated"),
                of("alloc_size"),
                "{name} @{dump}"
            );
            assert_eq!(number(&sums, 0, "sane"), 1);
        }
    }
}

#[test]
fn stacks_read_from_the_root_and_end_in_what_they_are_of() {
    let trace = fixtures().join("conversions/rust_cont_symbolized.pftrace");
    let mut database = database(&trace);
    let wrong = select(
        &mut database,
        "SELECT s.id FROM heaptap_stack s LEFT JOIN heaptap_stack p ON p.id = s.parent_id
         WHERE s.stack <> COALESCE(p.stack || ';', '') || s.name
            OR s.depth <> COALESCE(p.depth + 1, 0) OR s.parent_id >= s.id",
    );
    assert!(wrong.is_empty(), "{wrong:?}");
    let live = select(&mut database, "SELECT sum(size) AS size FROM heaptap_live");
    let last = select(&mut database, "SELECT size FROM heaptap_dump WHERE is_last");
    assert_eq!(number(&live, 0, "size"), number(&last, 0, "size"));
    let inlined = select(
        &mut database,
        "SELECT count(*) AS n FROM heaptap_stack WHERE inlined",
    );
    assert!(number(&inlined, 0, "n") > 0);
}

#[test]
fn dumps_that_are_not_there_are_said_to_be_so() {
    let mut database = database(&fixtures().join("conversions/c_cont.pftrace"));
    for argument in ["11", "-1", "'x'", "1.5"] {
        let sql = format!("SELECT * FROM heaptap_tree({argument})");
        let failed = database.run(&sql, &mut Nobody).expect_err("no such dump");
        assert!(failed.to_string().contains("0 to 10"), "{failed}");
    }
    let last = select(
        &mut database,
        "SELECT DISTINCT dump_id FROM heaptap_function(NULL)",
    );
    assert_eq!(number(&last, 0, "dump_id"), 10);
}

struct Nobody;

impl heaptap_query::Sink for Nobody {
    fn columns(&mut self, _: &[&str]) -> std::ops::ControlFlow<()> {
        std::ops::ControlFlow::Continue(())
    }

    fn row(&mut self, _: &[heaptap_query::Value<'_>]) -> std::ops::ControlFlow<()> {
        std::ops::ControlFlow::Continue(())
    }

    fn end(&mut self) -> std::ops::ControlFlow<()> {
        std::ops::ControlFlow::Continue(())
    }
}
