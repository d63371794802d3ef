use super::*;

fn only(sql: &str, macros: &Macros) -> Result<Prepared, Refusal> {
    let all = statements(sql);
    assert_eq!(all.len(), 1, "{sql}");
    prepare(sql, &all[0], macros)
}

fn plain(sql: &str) -> Prepared {
    only(sql, &Macros::new()).unwrap()
}

fn refusal(sql: &str) -> Refusal {
    only(sql, &Macros::new()).unwrap_err()
}

#[test]
fn statements_end_at_semicolons_that_are_none_of_a_text() {
    let sql = "SELECT ';' ; -- a;b\n/* ; */ SELECT 2;; ;SELECT 3";
    let found: Vec<&str> = statements(sql).into_iter().map(|at| &sql[at]).collect();
    assert_eq!(found, ["SELECT ';'", "SELECT 2", "SELECT 3"]);
    assert!(is_complete("SELECT 1; -- done"));
    assert!(is_complete(""));
    assert!(!is_complete("SELECT ';"));
    assert!(!is_complete("SELECT 1"));
}

#[test]
fn what_only_reads_stays_as_it_is() {
    let sql = "  SELECT a -- why\n , b FROM t WHERE c = 'x;y'  ";
    let prepared = plain(sql);
    assert_eq!(prepared.action, Action::Read);
    assert_eq!(prepared.sql, sql.trim());
    assert_eq!(prepared.origin_of(9), 11);
}

#[test]
fn tables_and_views_become_temporary() {
    let table =
        plain("create or replace perfetto table \"my t\" (a INT, b STRING) AS SELECT 1 AS a");
    assert_eq!(
        table.sql,
        "CREATE TEMP TABLE \"_replacement\" AS SELECT 1 AS a"
    );
    let replacing = Some(Replacing {
        before: String::new(),
        after: "DROP TABLE IF EXISTS temp.\"my t\"; \
                ALTER TABLE temp.\"_replacement\" RENAME TO \"my t\""
            .to_owned(),
    });
    let is_view = false;
    assert_eq!(table.action, Action::Create { replacing, is_view });
    // An error in the SELECT points into it.
    let typed = "create or replace perfetto table \"my t\" (a INT, b STRING) AS SELECT 1 AS a";
    let at = table.sql.find("SELECT").unwrap();
    assert_eq!(table.origin_of(at), typed.find("SELECT").unwrap());
    assert_eq!(
        plain("CREATE PERFETTO VIEW v AS SELECT 1").sql,
        "CREATE TEMP VIEW \"v\" AS SELECT 1"
    );
    assert_eq!(
        plain("CREATE VIEW IF NOT EXISTS v AS SELECT 1").sql,
        "CREATE TEMP VIEW IF NOT EXISTS \"v\" AS SELECT 1"
    );
    assert_eq!(
        plain("CREATE PERFETTO INDEX i ON t(a, b)").sql,
        "CREATE INDEX temp.\"i\" ON \"t\" (a , b)"
    );
    assert_eq!(
        plain("DROP VIEW IF EXISTS v").sql,
        "DROP VIEW IF EXISTS temp.\"v\""
    );
}

#[test]
fn modules_are_named_with_their_dots() {
    let module = |sql| match plain(sql).action {
        Action::Include(module) => module,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        module("INCLUDE PERFETTO MODULE android.memory.heap_graph.dominator_tree"),
        "android.memory.heap_graph.dominator_tree"
    );
    assert_eq!(
        module("include perfetto module android . memory.*"),
        "android.memory.*"
    );
    let refused = refusal("INCLUDE PERFETTO MODULE a.b c");
    assert_eq!(refused.offset, 28);
}

#[test]
fn macros_and_functions_stand_for_their_text() {
    let mut macros = Macros::new();
    for sql in [
        "CREATE PERFETTO MACRO double(x Expr) RETURNS Expr AS $x * 2 -- twice",
        "CREATE PERFETTO MACRO quadruple(x Expr) RETURNS Expr AS double!(double!($x))",
        "CREATE PERFETTO FUNCTION plus(a INT, b INT) RETURNS INT AS SELECT $a + $B AS sum",
        "CREATE PERFETTO FUNCTION upto(n INT) RETURNS TABLE(i INT) AS SELECT $n AS i",
        "CREATE PERFETTO MACRO loops() RETURNS Expr AS loops!()",
    ] {
        match only(sql, &macros).unwrap().action {
            Action::Define(name, defined) => macros.insert(name, defined),
            other => panic!("{other:?}"),
        };
    }
    let words = |sql: &str| {
        let text = only(sql, &macros).unwrap().sql;
        let text: Vec<&str> = text
            .split_whitespace()
            .filter(|w| !w.starts_with("--"))
            .collect();
        text.join(" ").replace("twice", "").replace("  ", " ")
    };
    assert_eq!(words("SELECT quadruple!(3), 4"), "SELECT 3 * 2 * 2 , 4");
    assert_eq!(
        words("SELECT plus(1, (2, 3)) FROM t"),
        "SELECT (SELECT (1) + ((2, 3)) AS sum ) FROM t"
    );
    assert_eq!(
        words("SELECT i FROM Upto(7)"),
        "SELECT i FROM (SELECT (7) AS i )"
    );
    // A name that is not called is a name.
    assert_eq!(words("SELECT plus FROM t"), "SELECT plus FROM t");
    assert!(
        only("SELECT loops!()", &macros)
            .unwrap_err()
            .message
            .contains("itself")
    );
    let refused = only("SELECT 1, double!(1, 2)", &macros).unwrap_err();
    assert_eq!(refused.message, "double takes 1 argument, not 2");
    assert_eq!(refused.offset, 10);
    assert!(
        only("SELECT 1, nothing!(1)", &macros)
            .unwrap_err()
            .message
            .contains("no such macro: nothing!")
    );
    // The text after a call still maps to its typed position.
    let sql = "SELECT plus(1, 2), wrong FROM t";
    let prepared = only(sql, &macros).unwrap();
    let at = prepared.sql.find("wrong").unwrap();
    assert_eq!(prepared.origin_of(at), sql.find("wrong").unwrap());
}

#[test]
fn a_macro_that_grows_without_end_is_stopped() {
    let mut macros = Macros::new();
    let ten = |name: &str| vec![format!("{name}!($x)"); 10].join("+");
    for (name, body) in [
        ("a", "$x".to_owned()),
        ("b", ten("a")),
        ("c", ten("b")),
        ("d", ten("c")),
        ("e", ten("d")),
        ("f", ten("e")),
        ("g", ten("f")),
        ("h", ten("g")),
    ] {
        let defined = Macro {
            arguments: vec!["x".to_owned()],
            body,
            is_function: false,
            returns_table: false,
            is_worked: false,
        };
        macros.insert(name.to_owned(), defined);
    }
    let refused = only("SELECT h!(123456789)", &macros).unwrap_err();
    assert!(refused.message.contains("too much"), "{}", refused.message);
}

#[test]
fn what_is_not_done_is_refused_by_name() {
    for (sql, word, offset) in [
        ("INSERT INTO t VALUES (1)", "INSERT", 0),
        (" ATTACH 'x' AS y", "ATTACH", 1),
        ("PRAGMA user_version", "PRAGMA", 0),
        (
            "CREATE VIRTUAL TABLE s USING SPAN_JOIN(a, b)",
            "SPAN_JOIN",
            29,
        ),
        ("CREATE TRIGGER x", "TRIGGER", 7),
        ("CREATE TABLE t(a INT)", "AS SELECT", 21),
        ("RUN_METRIC('x')", "RUN_METRIC", 0),
        (
            "CREATE PERFETTO FUNCTION f() RETURNS INT DELEGATES TO g",
            "delegate",
            25,
        ),
        ("bogus", "BOGUS", 0),
        ("\u{1b}[2J", "unknown statement", 0),
    ] {
        let refused = refusal(sql);
        assert!(refused.message.contains(word), "{sql}: {}", refused.message);
        assert_eq!(refused.offset, offset, "{sql}");
        assert!(!refused.message.contains('\u{1b}'));
    }
    assert!(refusal("DELETE FROM t").help.is_some());
}

#[test]
fn an_order_behind_a_semicolon_belongs_to_the_query_before() {
    let sql = "SELECT name FROM t;\norder by abs(size) desc; SELECT 1";
    let all = statements(sql);
    assert_eq!(all.len(), 2);
    let prepared = prepare(sql, &all[0], &Macros::new()).unwrap();
    assert_eq!(
        prepared
            .sql
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" "),
        "SELECT name FROM t order by abs(size) desc"
    );
    assert_eq!(statements("ORDER BY 1").len(), 1);
}
