use std::sync::Arc;

use crate::table::{columns, schema};
use crate::{Argument, Catalog, Cell, Column, Database, Rows, Schema, TableError};

/// n rows: `half` = n / 2 (sorted), `mod7` with nulls (indexed), `name` (indexed), `own` = n % 5.
struct Sample(usize);

static SAMPLE: Schema = schema! {
    "sample": "numbers";
    id int row: "number of the row";
    half int sorted: "";
    mod7 int indexed: "";
    name text indexed: "";
    own int own: "";
    wide int indexed: "";
    third int: "";
    tens text: "";
    ratio real: "";
    secret text hidden: "";
};

impl Rows for Sample {
    fn len(&self) -> usize {
        self.0
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        match column {
            0 => row.into(),
            1 => (row > 3).then_some(row / 2).into(),
            2 => (!row.is_multiple_of(7)).then_some(row % 7).into(),
            3 => format!("row {}", row % 10).into(),
            4 => (row % 5).into(),
            5 => Cell::Int((row as i64 % 13 - 6) * (i64::MAX / 7)),
            6 => (row > 5).then_some(row / 3).into(),
            7 => (row > 9).then(|| format!("ten {}", row / 10)).into(),
            8 => Cell::Real(row as f64 / 2.0),
            _ => Cell::text("hidden"),
        }
    }
}

static COUNT: Schema = schema! {
    "count_to": "counts";
    n int: "";
    most int argument hidden: "";
    unit text argument: "";
};

struct Count(i64, String);

impl Rows for Count {
    fn len(&self) -> usize {
        self.0 as usize
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        match column {
            0 => row.into(),
            1 => self.0.into(),
            _ => Cell::text(&self.1),
        }
    }
}

fn database() -> Database {
    let mut catalog = Catalog::default();
    catalog.table(&SAMPLE, || Ok(Arc::new(Sample(90))));
    catalog.function(&COUNT, |arguments| match arguments {
        [_, Argument::Int(most), Argument::Text(unit)] => Ok(Arc::new(Count(*most, unit.clone()))),
        [_, Argument::Int(most), _] => Ok(Arc::new(Count(*most, String::new()))),
        _ => Err(TableError("count_to needs a number".to_owned())),
    });
    Database::open(catalog).unwrap()
}

fn rows(database: &Database, sql: &str) -> Vec<Vec<String>> {
    let mut statement = database.connection().prepare(sql).unwrap();
    let width = statement.column_count();
    let cell = |row: &rusqlite::Row<'_>, at| match row.get_ref(at).unwrap() {
        rusqlite::types::ValueRef::Null => "NULL".to_owned(),
        rusqlite::types::ValueRef::Integer(n) => n.to_string(),
        rusqlite::types::ValueRef::Real(n) => n.to_string(),
        rusqlite::types::ValueRef::Text(t) => String::from_utf8(t.to_vec()).unwrap(),
        rusqlite::types::ValueRef::Blob(_) => "blob".to_owned(),
    };
    statement
        .query_map([], |row| Ok((0..width).map(|at| cell(row, at)).collect()))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap()
}

fn plan(database: &Database, sql: &str) -> String {
    let rows = rows(database, &format!("EXPLAIN QUERY PLAN {sql}"));
    let details: Vec<String> = rows.into_iter().map(|mut row| row.remove(3)).collect();
    details.join("; ")
}

/// Plans return the same rows as a regular SQLite table.
#[test]
fn every_comparison_gives_the_rows_that_a_plain_table_gives() {
    let database = database();
    let all = "id, half, mod7, name, own, wide, third, tens, ratio";
    let copy = format!("CREATE TABLE plain AS SELECT {all} FROM sample");
    database.connection().execute_batch(&copy).unwrap();
    let columns = [
        "id", "half", "mod7", "name", "own", "wide", "third", "tens", "ratio",
    ];
    let values = [
        "0",
        "3",
        "3.0",
        "3.5",
        "'3'",
        "' 3 '",
        "'3.0'",
        "'x'",
        "NULL",
        "-1",
        "89",
        "90",
        "'row 4'",
        "'row'",
        "x'33'",
        "9223372036854775807",
        "-9223372036854775808",
        "1e300",
        "(SELECT 4)",
        "3 + 1",
        "-7905747460161236406",
        "(SELECT 'ten 4')",
        "(SELECT 4.5)",
        "(SELECT NULL)",
    ];
    let mut checked = 0;
    for column in columns {
        let mut conditions: Vec<String> = Vec::new();
        for value in values {
            for op in ["=", "<", "<=", ">", ">=", "<>", "IS", "IS NOT", "LIKE"] {
                conditions.push(format!("{column} {op} {value}"));
            }
            conditions.push(format!("{column} IN ({value}, 5, 'row 1')"));
            conditions.push(format!("{column} BETWEEN {value} AND 7"));
            conditions.push(format!("{column} >= 2 AND {column} < {value}"));
            conditions.push(format!("{column} = {value} AND mod7 = 3"));
            conditions.push(format!("{column} = {value} COLLATE NOCASE"));
        }
        conditions.push(format!("{column} IS NULL"));
        conditions.push(format!("{column} IS NOT NULL"));
        for condition in conditions {
            for order in [
                "id",
                "half DESC, id",
                "name, id",
                "mod7, id",
                "wide DESC, id",
            ] {
                let of = |table: &str| {
                    let sql =
                        format!("SELECT {all} FROM {table} WHERE {condition} ORDER BY {order}");
                    rows(&database, &sql)
                };
                // The copy has the same affinities because CREATE TABLE AS keeps them.
                assert_eq!(of("sample"), of("plain"), "{condition} by {order}");
                checked += 1;
            }
        }
    }
    assert!(checked > 5000);
}

#[test]
fn order_by_one_column_needs_no_sorting() {
    let database = database();
    for column in ["id", "half", "mod7", "name", "wide"] {
        for direction in ["", " DESC"] {
            let sql = format!("SELECT {column} FROM sample ORDER BY {column}{direction}");
            assert!(!plan(&database, &sql).contains("TEMP B-TREE"), "{sql}");
            let sorted = rows(&database, &sql);
            let materialized = format!(
                "WITH s AS MATERIALIZED (SELECT {column} FROM sample) \
                 SELECT {column} FROM s ORDER BY {column}{direction}"
            );
            assert_eq!(sorted, rows(&database, &materialized));
        }
    }
}

#[test]
fn joins_on_keys_never_scan_in_the_inner_loop() {
    let database = database();
    for column in [
        "id", "half", "mod7", "name", "own", "third", "tens", "ratio",
    ] {
        let sql = format!("SELECT 1 FROM sample a JOIN sample b ON b.{column} = a.{column}");
        let plan = plan(&database, &sql);
        assert!(plan.contains(&format!("{column}=")), "{plan}");
    }
    let left = "SELECT count(*) FROM sample a LEFT JOIN sample b ON b.id = a.half";
    assert!(plan(&database, left).contains("id="));
    assert_eq!(rows(&database, left), [["90"]]);
}

/// Joins return the same rows as those of a regular SQLite table.
#[test]
fn joins_give_the_rows_that_plain_tables_give() {
    let database = database();
    let copy = "CREATE TABLE plain AS SELECT * FROM sample";
    database.connection().execute_batch(copy).unwrap();
    let columns = [
        "id", "half", "mod7", "name", "own", "wide", "third", "tens", "ratio",
    ];
    for one in columns {
        for other in columns {
            for join in ["JOIN", "LEFT JOIN"] {
                for op in ["=", "IS"] {
                    let of = |table: &str| {
                        let sql = format!(
                            "SELECT a.id, b.id FROM {table} a {join} {table} b \
                             ON b.{one} {op} a.{other} ORDER BY 1, 2"
                        );
                        rows(&database, &sql)
                    };
                    assert_eq!(of("sample"), of("plain"), "{join} on {one} {op} {other}");
                }
            }
        }
    }
}

/// Returns the instructions of SQLite for a statement.
fn steps(database: &Database, sql: &str) -> i32 {
    let mut statement = database.connection().prepare(sql).unwrap();
    statement.query_row([], |_| Ok(())).unwrap();
    statement.get_status(rusqlite::StatementStatus::VmStep)
}

#[test]
fn null_keys_of_a_join_find_no_rows() {
    let mut catalog = Catalog::default();
    static NULLS: Schema = Schema {
        name: "nulls",
        module: None,
        about: "nulls",
        columns: &[
            Column::int("own", "").own(),
            Column::int("sorted", "").sorted(),
            Column::int("indexed", "").indexed(),
            Column::int("plain", ""),
        ],
    };
    struct Nulls;
    impl Rows for Nulls {
        fn len(&self) -> usize {
            1000
        }

        fn cell(&self, _: usize, _: usize) -> Cell<'_> {
            Cell::Null
        }
    }
    catalog.table(&NULLS, || Ok(Arc::new(Nulls)));
    let database = Database::open(catalog).unwrap();
    for column in ["own", "sorted", "indexed", "plain"] {
        let sql =
            format!("SELECT count(*) FROM nulls a LEFT JOIN nulls b ON b.{column}=a.{column}");
        assert_eq!(rows(&database, &sql), [["1000"]]);
        assert!(steps(&database, &sql) < 50_000, "{column}");
    }
}

#[test]
fn literals_and_lists_build_no_index() {
    let database = database();
    for condition in ["third = 3", "third IN (3, 4)", "tens = 'ten 4'"] {
        let sql = format!("SELECT count(*) FROM sample WHERE {condition}");
        assert!(plan(&database, &sql).ends_with("INDEX 0:"), "{condition}");
    }
}

#[test]
fn rows_of_functions_are_found_by_key() {
    let database = database();
    for (join, plan_of_b) in [
        ("JOIN count_to(50) b ON b.n = a.n", "1;n="),
        ("LEFT JOIN count_to(50) b ON b.n = a.n", "1;n="),
        ("JOIN count_to(a.n) b ON b.n = a.n - 1", "1;n="),
    ] {
        let sql = format!("SELECT count(*) FROM count_to(50) a {join}");
        assert!(plan(&database, &sql).contains(plan_of_b), "{sql}");
    }
    let both = "SELECT a.n, b.n FROM count_to(3) a LEFT JOIN count_to(2) b ON b.n = a.n";
    assert_eq!(
        rows(&database, both),
        [["0", "0"], ["1", "1"], ["2", "NULL"]]
    );
    let inner = "SELECT a.id, b.n FROM sample a JOIN count_to(a.id) b ON b.n = a.id - 1
                 WHERE a.id < 4 ORDER BY 1";
    assert_eq!(rows(&database, inner), [["1", "0"], ["2", "1"], ["3", "2"]]);
}

#[test]
fn functions_take_arguments_by_position_by_name_and_from_other_tables() {
    let database = database();
    assert_eq!(rows(&database, "SELECT count(*) FROM count_to(3)"), [["3"]]);
    assert_eq!(
        rows(
            &database,
            "SELECT n, unit FROM count_to WHERE most = 2 AND unit = 'kg'"
        ),
        [["0", "kg"], ["1", "kg"]]
    );
    assert_eq!(
        rows(
            &database,
            "SELECT a.id, c.n FROM sample a, count_to(a.id) c WHERE a.id < 3 ORDER BY 1, 2"
        ),
        [["1", "0"], ["2", "0"], ["2", "1"]]
    );
    let failure = database
        .connection()
        .query_row("SELECT * FROM count_to", [], |_| Ok(()))
        .unwrap_err();
    assert!(
        failure.to_string().contains("count_to needs a number"),
        "{failure}"
    );
}

#[test]
fn hidden_columns_are_there_for_those_who_ask() {
    let database = database();
    let width = |sql| database.connection().prepare(sql).unwrap().column_count();
    assert_eq!(width("SELECT * FROM sample"), 9);
    assert_eq!(
        rows(&database, "SELECT secret FROM sample LIMIT 1"),
        [["hidden"]]
    );
}
