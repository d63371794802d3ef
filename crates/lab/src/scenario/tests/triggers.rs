//! Dumps, triggers and the matrix.

use super::{EXAMPLE, errors, parse, parse_all, parsed, with, with_step};
use crate::scenario::{Condition, DumpKind, What};

#[test]
fn triggers_have_a_condition_and_quick_steps() {
    let triggers = parsed(EXAMPLE).triggers;
    let conditions: Vec<&Condition> = triggers.iter().map(|one| &one.condition).collect();
    assert_eq!(
        conditions,
        [
            &Condition::Log("low on memory".to_owned()),
            &Condition::OutOfMemory,
            &Condition::Meminfo {
                row: "TOTAL".to_owned(),
                over: 400 << 20
            },
            &Condition::Perfetto("com.example.slow".to_owned()),
        ]
    );
    let first = &triggers[0];
    assert_eq!((first.times, first.path.as_str()), (3, "triggers[0]"));
    assert_eq!(first.steps[1].path, "triggers[0].steps[1]");
    assert_eq!(first.labels().collect::<Vec<_>>(), ["low", "low-heap"]);
    assert_eq!(
        (first.suffix(2), triggers[1].suffix(1)),
        ("-2".to_owned(), String::new())
    );
    let heap = What::Dump {
        kind: DumpKind::Java,
        label: "oom".to_owned(),
    };
    assert_eq!(triggers[1].steps[0].what, heap);
}

#[test]
fn budgets_refer_to_labels_of_dumps_and_triggers() {
    let keys = |budget: &str| {
        with(&format!(
            "steps:\n- repeat: 9\n  steps: [{{dump: {{java: heap}}}}]\n- snapshot: after\n\
             triggers:\n- {{oom: , steps: [{{dump: {{java: oom}}}}]}}\n\
             - {{log: x, steps: [{{snapshot: low}}], times: 5}}\nbudgets:\n- {{name: a, limit: 1, {budget}}}\n"
        ))
    };
    for budget in [
        "leaks: {}, at: oom",
        "leaks: {}, at: heap-9",
        "java: {class: A}, at: heap",
        "java: {class: A}, per: heap",
        "native: {}, at: low-2",
        "native: {}, at: low",
    ] {
        assert!(parse(&keys(budget)).is_ok(), "{budget}");
    }
    for (budget, error) in [
        (
            "native: {}, at: heap-2",
            "15:39: budgets[0].at: the dump `heap-2` has only the Java heap (use the label of a \
             snapshot)",
        ),
        (
            "leaks: {}, at: low-2",
            "15:23: budgets[0]: needs `java` in `measure` (write the list `measure`, with `native` and `java`)",
        ),
        (
            "leaks: {}, per: oom",
            "15:39: budgets[0].per: the label `oom` is not in a `repeat` of 4 or more",
        ),
        (
            "native: {}, at: oo",
            "15:39: budgets[0].at: no snapshot or dump has the label `oo` (did you mean `oom`?)",
        ),
    ] {
        let found = errors(&keys(budget));
        let found = found.split_once(':').expect("a place").1;
        // The line depends on the steps above.
        let rest = |text: &str| text.split_once(':').expect("a line").1.to_owned();
        assert_eq!(rest(found), rest(error), "{budget}");
    }
}

#[test]
fn triggers_that_are_refused() {
    let fails = |keys: &str, wanted: &[&str]| {
        let wanted: Vec<String> = wanted.iter().map(|e| format!("login.yaml:{e}")).collect();
        assert_eq!(errors(&with_step(keys)), wanted.join("\n"), "{keys}");
    };
    fails(
        "triggers:\n- {steps: [{snapshot: a}]}\n- {log: x}\n- {log: x, oom: , steps: [{snapshot: b}]}\n",
        &[
            "6:3: triggers[0]: `log`, `oom`, `meminfo` or `perfetto` is missing",
            "7:3: triggers[1]: `steps` is missing (Steps: snapshot, dump and shell)",
            "8:12: triggers[2]: `log` and `oom` exclude each other",
        ],
    );
    let quick = "the steps of a trigger are `snapshot`, `dump` and `shell`, because those of the \
                 run go on meanwhile";
    fails(
        "triggers:\n- {log: x, steps: [home, {sleep: 1s}, {repeat: 2, steps: [home]}]}\n",
        &[
            &format!("6:20: triggers[0].steps[0]: {quick}"),
            &format!("6:26: triggers[0].steps[1]: {quick}"),
            &format!("6:39: triggers[0].steps[2]: {quick}"),
            &format!("6:59: triggers[0].steps[2].steps[0]: {quick}"),
        ],
    );
    fails(
        "triggers:\n- {oom: {}, steps: [{snapshot: a}], times: 2}\n\
         - {meminfo: {row: TOTAL, over: 0}, steps: [{snapshot: a}]}\n",
        &[
            "6:44: triggers[0].times: an app reports only its first OutOfMemoryError",
            "7:32: triggers[1].meminfo.over: must be larger than 0",
        ],
    );
    fails(
        "setup: [{dump: java}]\n",
        &["5:16: setup[0].dump: the setup is not recorded, so it cannot have snapshots and dumps"],
    );
    fails(
        "triggers:\n- {log: x, steps: [{dump: heap}, {dump: {java: end}}]}\n",
        &[
            "6:27: triggers[0].steps[0].dump: must be `java` or `hprof`, not the text `heap`",
            "6:48: triggers[0].steps[1].dump.java: `end` is not a valid label: it has a meaning \
             in PATH@LABEL",
        ],
    );
}

#[test]
fn each_cell_of_a_matrix_is_a_scenario() {
    let text = with_step(
        "setup:\n- shell: [cmd, locale, set, \"${locale}\"]\nmatrix:\n  locale: [en-US, ar-EG]\n  \
         dark: [on, off]\n  n: [2]\nrepeats: ${n}\n",
    );
    let cells = parse_all(&text).unwrap();
    let names: Vec<&str> = cells.iter().map(|cell| cell.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "login[locale=en-US,dark=on,n=2]",
            "login[locale=en-US,dark=off,n=2]",
            "login[locale=ar-EG,dark=on,n=2]",
            "login[locale=ar-EG,dark=off,n=2]",
        ]
    );
    let words = ["cmd", "locale", "set", "ar-EG"].map(str::to_owned);
    assert_eq!(cells[2].setup[0].what, What::Shell(words.to_vec()));
    assert_eq!(cells[2].repeats.max, 2);
    assert_eq!(cells[2].cell[0], ("locale".to_owned(), "ar-EG".to_owned()));
    // Values can come from the environment, and hide its variables.
    let text = with_step("matrix: {RUNS: [\"${RUNS}\", 7]}\nrepeats: ${RUNS}\n");
    let runs: Vec<usize> = parse_all(&text)
        .unwrap()
        .iter()
        .map(|c| c.repeats.max)
        .collect();
    assert_eq!(runs, [4, 7]);
}

#[test]
fn matrices_that_are_refused() {
    for (keys, error) in [
        (
            "matrix: {dark-mode: [on]}\n",
            "5:10: matrix.dark-mode: `dark-mode` is not the name of a variable: use letters, \
             digits and `_`",
        ),
        (
            "matrix: {a: [\"x/y\"]}\n",
            "5:14: matrix.a[0]: `x/y` must have only letters, digits, `.`, `_` and `-`, and begin \
             with a letter, digit or `_`",
        ),
        ("matrix: {a: []}\n", "5:13: matrix.a: the list is empty"),
        ("matrix: {}\n", "5:9: matrix: the map is empty"),
        (
            "matrix: {a: [b, c, b]}\n",
            "5:20: matrix.a[2]: `b` occurs twice; first in line 5",
        ),
        (
            "matrix: {a: [b]}\nkeep: ${c}\n",
            "6:7: keep: the variable c is not set (set it, or use `${NAME:-default}`)",
        ),
        (
            "matrix: {a: [\"${UNSET}\"]}\n",
            "5:14: matrix.a[0]: the variable UNSET is not set (set it, or use \
             `${NAME:-default}`)",
        ),
        // The error of one cell only.
        (
            "matrix: {a: [2, x]}\nrepeats: ${a}\n",
            "6:10: repeats: must be a whole number from 1 to 100, not the text `x`",
        ),
    ] {
        assert_eq!(
            errors(&with_step(keys)),
            format!("login.yaml:{error}"),
            "{keys}"
        );
    }
    let list = |n: usize| (0..n).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    let large = with_step(&format!(
        "matrix: {{a: [{}], b: [{}]}}\n",
        list(50),
        list(3)
    ));
    let error = "login.yaml:5:9: matrix: the matrix has 150 combinations; the limit is 100";
    assert_eq!(errors(&large), error);
    let long = with_step(&format!("matrix: {{a: [{}]}}\n", "x".repeat(60)));
    let error = "login.yaml:5:9: matrix: the names of its scenarios have up to 69 characters; the \
                 limit is 64";
    assert_eq!(errors(&long), error);
}
