//! Errors with their places.

use super::{errors, parse, with, with_step};

/// Asserts that a file has these errors, in this order.
#[track_caller]
fn fails(text: &str, wanted: &[&str]) {
    let wanted: Vec<String> = wanted.iter().map(|e| format!("login.yaml:{e}")).collect();
    assert_eq!(errors(text), wanted.join("\n"), "{text}");
}

/// Asserts that a file with these steps has these errors; the first step is in line 5.
#[track_caller]
fn steps_fail(steps: &str, wanted: &[&str]) {
    fails(&with(&format!("steps:\n{steps}")), wanted);
}

/// Asserts that a file with these keys has these errors; the first key is in line 5.
#[track_caller]
fn keys_fail(keys: &str, wanted: &[&str]) {
    fails(&with_step(keys), wanted);
}

#[test]
fn files_that_are_not_a_scenario() {
    let is_map = "must be a map with keys such as `version` and `name`";
    fails("", &["1:1: the file is empty"]);
    fails("# nothing\n\n", &["3:1: the file is empty"]);
    fails("null\n", &["2:1: the file is empty"]);
    fails("- a\n", &[&format!("1:1: {is_map}, not a list")]);
    fails("text\n", &[&format!("1:1: {is_map}, not the text `text`")]);
    fails("a: 1\n---\nb: 2\n", &["2:1: a file must have one document"]);
    fails("--- a\n...\nb", &["3:1: a file must have one document"]);
}

#[test]
fn syntax_errors_have_a_place_and_the_cause() {
    let invalid = |at: &str, cause: &str| format!("{at}: not valid YAML: {cause}");
    for (text, at, cause) in [
        (
            "a: [1\n",
            "2:1: a[1]",
            "while parsing a flow sequence, expected ',' or ']'",
        ),
        ("]", "1:1", "misplaced bracket"),
        ("a: @x\n", "1:4: a", "unexpected character: `@'"),
        (
            "a:\n\t- b\n",
            "2:2: a",
            "tabs disallowed within this context (block indentation)",
        ),
        (
            "a: 'x\n",
            "1:4: a",
            "while scanning a quoted scalar, found unexpected end of stream",
        ),
        (
            "sdk: >=31\n",
            "1:6: sdk",
            "while scanning a block scalar, did not find expected comment or line break (a text \
             that begins with `>` or `|` must be in quotes)",
        ),
        (
            "a: b: c\n",
            "1:5",
            "mapping values are not allowed in this context (a text that contains `: ` must be in \
             quotes)",
        ),
    ] {
        fails(text, &[&invalid(at, cause)]);
    }
}

#[test]
fn features_of_yaml_that_are_refused() {
    let quotes = |text: &str| format!("(a text that begins with `{text}` must be in quotes)");
    let anchor = format!("1:4: a: a scenario cannot have anchors {}", quotes("&"));
    fails("a: &x 1\n", &[&anchor]);
    fails("a: &x {b: *x}\n", &[&anchor]);
    fails("a: &x [b]\n", &[&anchor]);
    let alias = format!("1:8: class: a scenario cannot have aliases {}", quotes("*"));
    fails("class: *Activity\n", &[&alias]);
    let tag = format!("2:3: steps[0]: a scenario cannot have tags {}", quotes("!"));
    fails("steps:\n- !x {a: b}\n", &[&tag]);
    fails("steps:\n- !!str a\n", &[&tag]);
    fails("? [a]\n: 1\n", &["1:3: a key must be text"]);
    fails("a: {b: 1, {c: d}: 2}\n", &["1:11: a: a key must be text"]);
    fails(
        "a: 1\nb: {c: 1, d: 2, c: 3}\n",
        &["2:17: b.c: `c` occurs twice; first in line 2"],
    );
    fails(
        "a: 1\n\"a\": 2\n",
        &["2:1: a: `a` occurs twice; first in line 1"],
    );
}

#[test]
fn unknown_keys_name_the_nearest() {
    keys_fail(
        "budgts: []\n",
        &["5:1: budgts: unknown key (did you mean `budgets`?)"],
    );
    // A misspelled key is not missing.
    fails(
        "version: 1\nnam: a\ntraget: {name: a}\nsteps: [start]\n",
        &[
            "2:1: nam: unknown key (did you mean `name`?)",
            "3:1: traget: unknown key (did you mean `target`?)",
        ],
    );
    steps_fail(
        "- wait-for: {activty: .Main}\n- wait-fro: {quiet: 1s}\n- {rotate: 1, timout: 1s}\n\
         - rotat\n- {monkey: {evnts: 5}}\n- 5\n",
        &[
            "5:14: steps[0].wait-for.activty: unknown key (did you mean `activity`?)",
            "6:3: steps[1].wait-fro: unknown key (did you mean `wait-for`?)",
            "7:15: steps[2].timout: unknown key (did you mean `timeout`?)",
            "8:3: steps[3]: `rotat` is not an action (did you mean `rotate`?)",
            "9:13: steps[4].monkey.evnts: unknown key (did you mean `events`?)",
            "10:3: steps[5]: `5` is not an action (use one of rotate, monkey, tap, trim, text, \
             deep-link, wait, start, home, wait-for, shell, sleep, snapshot, dump, repeat)",
        ],
    );
    keys_fail(
        "measure: [java]\nbudgets:\n- {name: a, leaks: {x: 1}, limit: 1}\n",
        &["7:21: budgets[0].leaks.x: unknown key (the map must be empty)"],
    );
}

#[test]
fn missing_keys_are_named() {
    fails(
        "version: 1\n",
        &[
            "1:1: `name` is missing (Stable name; the history of the figures depends on it)",
            "1:1: `target` is missing (The app)",
            "1:1: `steps` is missing (Steps of one run, in order)",
        ],
    );
    keys_fail(
        "install: {data: keep}\nbudgets:\n- {name: a}\n- {native: {}, limit: 1}\n",
        &[
            "5:10: install: `apk` is missing (APK, universal .apks, or the files of a split app; relative to \
             the scenario)",
            "7:3: budgets[0]: `native`, `java`, `leaks`, `meminfo` or `live-set` is missing",
            "7:3: budgets[0]: `limit` or `change` is missing",
            "8:3: budgets[1]: `name` is missing (Stable name, unique in the scenario)",
        ],
    );
    steps_fail(
        "- {}\n- {timeout: 1s}\n- {repeat: 3}\n- {steps: [start]}\n- snapshot\n- wait-for: {}\n",
        &[
            "5:3: steps[0]: the action is missing",
            "6:3: steps[1]: the action is missing",
            "7:3: steps[2]: `repeat` must have `steps` in the same step",
            "8:3: steps[3]: `steps` must have `repeat` in the same step",
            "9:3: steps[4]: `snapshot` must have a value: `snapshot: …`",
            "10:13: steps[5].wait-for: `activity`, `log` or `quiet` is missing",
        ],
    );
}

#[test]
fn keys_that_exclude_each_other() {
    fails(
        "version: 1\nname: a\ntarget: {name: a, package: b}\nsteps: [start]\n",
        &["3:19: target: `name` and `package` exclude each other"],
    );
    steps_fail(
        "- {rotate: 2, tap: [1, 2]}\n- {rotate: 2, steps: [start]}\n\
         - {repeat: 3, steps: [start], retry: 1}\n- wait-for: {quiet: 1s, log: x}\n",
        &[
            "5:15: steps[0].tap: a step has one action, not `rotate` and `tap` (begin the second \
             step with `- `)",
            "6:15: steps[1].steps: `rotate` does not have steps, only `repeat` does",
            "7:31: steps[2].retry: a `repeat` cannot be retried, because its labels are taken (use \
             `retry` at the steps in it)",
            "8:25: steps[3].wait-for: `quiet` and `log` exclude each other",
        ],
    );
    keys_fail(
        "budgets:\n- {name: c, native: {}, leaks: {}, limit: 1, change: 2%}\n",
        &[
            "6:25: budgets[0]: `native` and `leaks` exclude each other",
            "6:46: budgets[0]: `limit` and `change` exclude each other",
        ],
    );
    let steps = "steps:\n- repeat: 5\n  steps: [snapshot: round]\n";
    fails(
        &format!(
            "version: 1\nname: a\ntarget: {{name: a}}\n{steps}budgets:\n\
             - {{name: c, native: {{}}, per: round, change: 2%}}\n\
             - {{name: d, native: {{}}, change: 2%, per: round}}\n"
        ),
        &[
            "8:37: budgets[0]: `per` and `change` exclude each other (use `limit`)",
            "9:37: budgets[1]: `change` and `per` exclude each other (use `limit`)",
        ],
    );
}

#[test]
fn wrong_types_say_what_is_expected_and_found() {
    fails(
        "version: 2\nname: 5\ntarget: x\nsteps: {}\n",
        &[
            "1:10: version: must be the number 1, not the number 2",
            "2:7: name: must be a name of letters, digits, `.`, `_` and `-`, not the number 5 \
             (write it in quotes: \"5\")",
            "3:9: target: must be a map with keys such as `name` and `package`, not the text `x`",
            "4:8: steps: must be a list of steps, not a map",
        ],
    );
    fails(
        "version: \"1\"\nname: [a]\ntarget: {}\nsteps:\n",
        &[
            "1:10: version: must be the number 1, not the text `1`",
            "2:7: name: must be a name of letters, digits, `.`, `_` and `-`, not a list",
            "3:9: target: `name` or `package` is missing",
            "4:6: steps: must be a list of steps, not an empty value",
        ],
    );
    keys_fail(
        "measure: native\nrepeats: [1]\nkeep: true\ntimeout: 15\n\
         record: {heaps: {a: b}, no-check: \"true\", config: 7}\n",
        &[
            "5:10: measure: must be a list, not the text `native`",
            "6:10: repeats: must be a whole number from 1 to 100, or a map with keys such as \
             `min` and `max`, not a list",
            "7:7: keep: must be `always` or `on-failure`, not `true`",
            "8:10: timeout: must be a time with its unit, such as `30s`, not the number 15",
            "9:17: record.heaps: must be text, or a list, not a map",
            "9:35: record.no-check: must be `true` or `false`, not the text `true`",
            "9:51: record.config: must be text, not the number 7 (write it in quotes: \"7\")",
        ],
    );
}

#[test]
fn invalid_values_say_why() {
    keys_fail(
        "timeout: 2d\nrepeats: 1000\nkeep: on_failure\nmeasure: [natve, cpu]\n\
         record: {interval: 0, shmem-size: 5k, no-check: yes, heaps: []}\n",
        &[
            "5:10: timeout: \"2d\" is not a duration: use a number with ms, s, m or h, such as \
             `500ms`, `10s` or `2m`",
            "6:10: repeats: must be a whole number from 1 to 100, not the number 1000",
            "7:7: keep: must be `always` or `on-failure`, not the text `on_failure` (did you mean \
             `on-failure`?)",
            "8:11: measure[0]: must be `native`, `java`, `meminfo`, `smaps` or `gc`, not the text \
             `natve` (did you mean `native`?)",
            "8:18: measure[1]: must be `native`, `java`, `meminfo`, `smaps` or `gc`, not the text \
             `cpu`",
            "9:20: record.interval: must be larger than 0",
            "9:35: record.shmem-size: shared memory must be a power of two, such as `8MiB`",
            "9:49: record.no-check: must be `true` or `false`, not the text `yes`",
            "9:61: record.heaps: the list is empty",
        ],
    );
    keys_fail(
        "repeats: {min: 5, max: 2}\ntimeout: 48h\n",
        &[
            "5:10: repeats: `min` must not exceed `max`, but 5 exceeds 2",
            "6:10: timeout: must not exceed 24 hours",
        ],
    );
    keys_fail(
        "install: {apk: \"${NO}\", data: drop}\nrecord: {interval: \"${NO}\", config: \"${a b}\"}\n",
        &[
            "5:16: install.apk: the variable NO is not set (set it, or use `${NAME:-default}`)",
            "5:31: install.data: must be `keep` or `remove`, not the text `drop`",
            "6:20: record.interval: the variable NO is not set (set it, or use \
             `${NAME:-default}`)",
            "6:37: record.config: `${a b}` has an invalid variable: a variable must be a name \
             such as `APK` (write `$$` for a `$`)",
        ],
    );
}

#[test]
fn invalid_steps_say_why() {
    steps_fail(
        "- rotate: 0\n- rotate: {a: b}\n- tap: [1, [2]]\n- rotate:x\n- shell: input tap 1 2\n\
         - shell: [a, [b]]\n- sleep: 2\n- {start: , retry: 1.5}\n- wait-for: {log: \"(\"}\n\
         - wait-for: {log: \"(a{1000}){1000}\"}\n- {repeat: 0, steps: []}\n\
         - {monkey: {events: many, seed: -1, throttle: \"1,seed=2\"}}\n",
        &[
            "5:11: steps[0].rotate: \"rotate:0\" is not an action: use rotate otherwise",
            "6:11: steps[1].rotate: `rotate` does not accept a map",
            "7:8: steps[2].tap: must be a list of numbers",
            "8:3: steps[3]: \"rotate:x\" is not an action: use rotate otherwise",
            "9:10: steps[4].shell: must be a list of words such as [input, tap], because each word \
             is quoted by itself",
            "10:14: steps[5].shell[1]: must be a word, not a list",
            "11:10: steps[6].sleep: must be a time with its unit, such as `30s`, not the number 2",
            "12:20: steps[7].retry: must be a whole number from 0 to 20, not the number 1.5",
            "13:19: steps[8].wait-for.log: not a regular expression: unclosed group",
            "14:19: steps[9].wait-for.log: the regular expression is too large",
            "15:12: steps[10].repeat: must be a whole number from 1 to 10000, not the number 0",
            "15:22: steps[10].steps: the list is empty",
            "16:21: steps[11].monkey.events: must be a whole number from 1 to 10000000, not the \
             text `many`",
            "16:33: steps[11].monkey.seed: must be a whole number from 0 to 4294967295, not the \
             number -1",
            "16:47: steps[11].monkey.throttle: `1,seed=2` is not a time",
        ],
    );
}

#[test]
fn labels_are_valid_and_unique() {
    steps_fail(
        "- snapshot: end\n- snapshot: 5\n- snapshot: \"5\"\n- snapshot: a..b\n- snapshot: a/b\n\
         - snapshot: a\n- snapshot: a\n",
        &[
            "5:13: steps[0].snapshot: `end` is not a valid label: it has a meaning in PATH@LABEL",
            "6:13: steps[1].snapshot: must be a label of letters, digits, `.`, `_` and `-`, not \
             the number 5",
            "7:13: steps[2].snapshot: a label must not be a number: PATH@N selects the N-th dump",
            "8:13: steps[3].snapshot: a label must not contain `..`",
            "9:13: steps[4].snapshot: `a/b` must have only letters, digits, `.`, `_` and `-`, and \
             begin with a letter, digit or `_`",
            "11:13: steps[6].snapshot: the label `a` occurs twice; first in line 10",
        ],
    );
    steps_fail(
        "- repeat: 3\n  steps:\n  - snapshot: round\n  - repeat: 2\n    steps:\n    - snapshot: in\n\
         - snapshot: round-3\n- snapshot: round-4\n- snapshot: round-03\n",
        &[
            "10:17: steps[0].steps[1].steps[0].snapshot: a label cannot be in a `repeat` inside \
             another",
            "11:13: steps[1].snapshot: the label `round-3` looks like that of an iteration of \
             `round` in line 7",
            "12:13: steps[2].snapshot: the label `round-4` looks like that of an iteration of \
             `round` in line 7",
            "13:13: steps[3].snapshot: the label `round-03` looks like that of an iteration of \
             `round` in line 7",
        ],
    );
    keys_fail(
        "setup:\n- snapshot: a\n",
        &[
            "6:13: setup[0].snapshot: the setup is not recorded, so it cannot have snapshots and dumps",
        ],
    );
}

#[test]
fn budgets_refer_to_what_exists() {
    let budgets = "steps: [{snapshot: first}, {repeat: 5, steps: [{snapshot: round}]}, {repeat: 3, \
                   steps: [{snapshot: few}]}]\nbudgets:\n";
    fails(
        &with(&format!(
            "{budgets}\
             - {{name: a, native: {{}}, limit: 1, at: frist}}\n\
             - {{name: b, native: {{}}, limit: 1, per: first}}\n\
             - {{name: c, native: {{}}, limit: 1, per: nothing}}\n\
             - {{name: d, native: {{}}, limit: 1, at: round-6}}\n\
             - {{name: a, native: {{}}, limit: 1, at: round-5}}\n\
             - {{name: e, native: {{}}, limit: 1, per: few}}\n"
        )),
        &[
            "6:39: budgets[0].at: no snapshot or dump has the label `frist` (did you mean `first`?)",
            "7:40: budgets[1].per: the label `first` is not in a `repeat` of 4 or more",
            "8:40: budgets[2].per: no snapshot or dump has the label `nothing` (use one of first, round, few)",
            "9:39: budgets[3].at: no snapshot or dump has the label `round-6` (did you mean `round`?)",
            "10:10: budgets[4].name: `a` occurs twice; first in line 6",
            "11:40: budgets[5].per: growth needs at least 4 iterations, and `few` has 3 (repeat it 4 \
             times or more)",
        ],
    );
    keys_fail(
        "budgets:\n- {name: a, java: {class: X}, limit: 1}\n- {name: b, leaks: {}, limit: 1}\n\
         - {name: c, meminfo: {row: A}, limit: 1}\n- {name: d, live-set: {}, limit: 1}\n",
        &[
            "6:13: budgets[0]: needs `java` in `measure` (write the list `measure`, with `native` and `java`)",
            "7:13: budgets[1]: needs `java` in `measure` (write the list `measure`, with `native` and `java`)",
            "8:13: budgets[2]: needs `meminfo` in `measure` (write the list `measure`, with `native` and `meminfo`)",
            "9:13: budgets[3]: needs `gc` in `measure` (write the list `measure`, with `native` and `gc`)",
        ],
    );
    // Errors in the steps cause no further ones.
    fails(
        &with("steps: [{snapsot: a}]\nbudgets: [{name: a, native: {}, limit: 1, at: a}]\n"),
        &["4:10: steps[0].snapsot: unknown key (did you mean `snapshot`?)"],
    );
}

#[test]
fn limits_have_the_unit_of_their_figure() {
    keys_fail(
        "measure: [native, java]\nbudgets:\n\
         - {name: a, leaks: {}, limit: 12MiB}\n\
         - {name: b, native: {function: \"[\"}, limit: much}\n\
         - {name: c, native: {library: \"\"}, limit: -1}\n\
         - {name: d, native: {}, change: 2}\n\
         - {name: e, native: {}, change: -2%}\n\
         - {name: f, native: {}, limit: {}}\n\
         - {name: g, native: {}, limit: {tablet: 1m, lwo: 1m, default: 2m}}\n\
         - {name: h, java: {class: X}, limit: {low: 1MiB}}\n\
         devices: {low: {ram: 3GiB}, default: {sdk: 1}, q: , d: {sdk: new}}\n",
        &[
            "7:31: budgets[0].limit: `12MiB` is not a count such as 2",
            "8:32: budgets[1].native.function: not a regular expression: unclosed character class",
            "8:45: budgets[1].limit: \"much\" is not a size: use a number with k, m or g, such as \
             `4096`, `64k` or `8MiB`",
            "9:31: budgets[2].native.library: is empty",
            "9:43: budgets[2].limit: \"-1\" is not a size: use a number with k, m or g, such as \
             `4096`, `64k` or `8MiB`",
            "10:33: budgets[3].change: must be a share such as `2%`, not the number 2",
            "11:33: budgets[4].change: `-2%` is not a share such as `2%`, up to `1000%`",
            "12:32: budgets[5].limit: the map is empty",
            "13:33: budgets[6].limit.tablet: unknown device class (use one of low, q, d, default)",
            "13:45: budgets[6].limit.lwo: unknown device class (did you mean `low`?)",
            "14:44: budgets[7].limit.low: `1MiB` is not a count such as 2",
            "15:22: devices.low.ram: `3GiB` must begin with `<`, `<=`, `>=` or `>`",
            "15:29: devices.default: `default` stands for all other devices",
            "15:49: devices.q: a device class must have `model`, `sdk` or `ram`",
            "15:62: devices.d.sdk: `new` is not an API level such as `>=31`",
        ],
    );
    keys_fail(
        "budgets: [{name: a, native: {}, limit: {low: 1m}}]\n",
        &["5:41: budgets[0].limit.low: unknown device class (add it to `devices`)"],
    );
}

#[test]
fn many_errors_are_cut() {
    let many: String = (0..50).map(|n| format!("key{n}: 1\n")).collect();
    let problems = parse(&with_step(&many)).unwrap_err();
    assert_eq!(problems.list.len(), 50);
    let text = problems.to_string();
    assert_eq!(text.lines().count(), 21);
    assert!(text.ends_with("\nlogin.yaml: and 30 more"), "{text}");
}
