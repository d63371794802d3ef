//! Valid files.

use std::time::Duration;

use super::{parse, parsed, with, with_step};
use crate::scenario::{
    Compare, Conditions, DeviceClass, DumpKind, Figure, Install, JavaMeasure, Keep, Limit, Measure,
    Record, Repeats, Step, Target, What, first_scenario,
};

/// All keys of the language but `matrix`.
pub(super) const EXAMPLE: &str = r#"version: 1
name: login                        # stable: history hangs on it
target: {name: com.example.app}
install: {apk: "${APK}", data: keep}
record: {interval: 4k, heaps: libc.malloc, shmem-size: 8MiB, no-check: true, config: low-overhead, max-file: 512MiB}
measure: [native, java, meminfo, smaps, gc]
repeats: {min: 3, max: 5}
timeout: 15m
setup:
- shell: [settings, put, system, font_scale, 1.0]
steps:
- start
- wait-for: {activity: .MainActivity}
  timeout: 30s
  retry: 1
- snapshot: before
- repeat: 20
  steps:
  - rotate: 2
  - monkey: {events: 50, seed: 7, throttle: 50ms}
  - snapshot: round
- wait-for: {log: "Login (done|failed)$"}
- wait-for: {quiet: 2s}
- shell: [content, insert, --uri, "content://app/x", --user, 0]
- sleep: 500ms
- tap: [100, 200]
- text: "it's 5"
- rotate:3
- home:
- snapshot: after
- dump: java
- dump: {hprof: values}
triggers:
- log: "low on memory"
  steps: [{snapshot: low}, {dump: {java: low-heap}}]
  times: 3
- {oom: {}, steps: [{dump: {java: oom}}]}
- {meminfo: {row: TOTAL, over: 400MiB}, steps: [{shell: [log, full]}]}
- {perfetto: com.example.slow, steps: [{snapshot: slow}]}
budgets:
- {name: libapp, native: {library: libapp.so}, at: end, limit: 12MiB}
- {name: cache, native: {function: "^Cache::", heap: libc.malloc}, per: round, limit: 8KiB}
- {name: screens, java: {class: com.example.*Activity, measure: instances}, at: after, limit: 2}
- {name: kept, java: {class: "*", measure: retained}, at: round-20, limit: 2m}
- {name: leaks, leaks: {}, at: end, limit: 0}
- {name: leaks-each, leaks: , per: round, limit: 0.5}
- {name: gfx, meminfo: {row: Graphics}, limit: {default: 90MiB, low-ram: 60MiB}}
- {name: live, live-set: {}, limit: 20MiB}
- {name: all, native: {}, at: end, change: 2%}
keep: on-failure
devices: {low-ram: {ram: "<3GiB"}, pixel: {model: "Pixel*", sdk: ">=31"}, old: {sdk: 29}}
conditions: {awake: true, animations: off, doze: off, cool: 2m}
"#;

fn whats(steps: &[Step]) -> Vec<&What> {
    steps.iter().map(|step| &step.what).collect()
}

fn act(text: &str) -> What {
    What::Act(text.to_owned())
}

#[test]
fn all_keys_arrive() {
    let scenario = parsed(EXAMPLE);
    assert_eq!(scenario.name, "login");
    assert_eq!(scenario.target, Target::Name("com.example.app".to_owned()));
    let apk = vec!["build/app.apk".to_owned()];
    assert_eq!(
        scenario.install,
        Some(Install {
            apk,
            keep_data: true
        })
    );
    assert_eq!(
        scenario.record,
        Record {
            config: Some("low-overhead".to_owned()),
            interval: Some(4096),
            heaps: vec!["libc.malloc".to_owned()],
            shmem_size: Some(8 << 20),
            no_check: true,
            max_file: Some(512 << 20),
        }
    );
    assert_eq!(
        scenario.conditions,
        Conditions {
            awake: true,
            no_animations: true,
            no_doze: true,
            cool: Duration::from_secs(120),
        }
    );
    let all = Measure {
        native: true,
        java: true,
        meminfo: true,
        smaps: true,
        gc: true,
    };
    assert_eq!(scenario.measure, all);
    assert_eq!(scenario.repeats, Repeats { min: 3, max: 5 });
    assert_eq!(scenario.timeout, Duration::from_secs(900));
    assert_eq!(scenario.keep, Keep::OnFailure);
    let words = ["settings", "put", "system", "font_scale", "1.0"].map(str::to_owned);
    assert_eq!(whats(&scenario.setup), [&What::Shell(words.to_vec())]);
    let class = |name: &str| DeviceClass {
        name: name.to_owned(),
        model: None,
        sdk: None,
        ram: None,
    };
    assert_eq!(
        scenario.devices,
        [
            DeviceClass {
                ram: Some((Compare::Less, 3 << 30)),
                ..class("low-ram")
            },
            DeviceClass {
                model: Some("Pixel*".to_owned()),
                sdk: Some((Compare::GreaterOrEqual, 31)),
                ..class("pixel")
            },
            DeviceClass {
                sdk: Some((Compare::Equal, 29)),
                ..class("old")
            },
        ]
    );
}

#[test]
fn steps_carry_options_and_places() {
    let steps = parsed(EXAMPLE).steps;
    assert_eq!(steps[0].what, act("start"));
    assert_eq!(
        steps[1],
        Step {
            what: What::WaitForActivity(".MainActivity".to_owned()),
            timeout: Some(Duration::from_secs(30)),
            retry: 1,
            line: 13,
            path: "steps[1]".to_owned(),
        }
    );
    assert_eq!(steps[2].what, What::Snapshot("before".to_owned()));
    let What::Repeat {
        times,
        steps: inner,
    } = &steps[3].what
    else {
        panic!("{:?}", steps[3]);
    };
    assert_eq!(*times, 20);
    assert_eq!(
        whats(inner),
        [
            &act("rotate:2"),
            &act("monkey:50,seed=7,throttle=50ms"),
            &What::Snapshot("round".to_owned())
        ]
    );
    assert_eq!(
        (inner[1].line, inner[1].path.as_str()),
        (20, "steps[3].steps[1]")
    );
    let words = [
        "content",
        "insert",
        "--uri",
        "content://app/x",
        "--user",
        "0",
    ];
    assert_eq!(
        whats(&steps[4..]),
        [
            &What::WaitForLog("Login (done|failed)$".to_owned()),
            &What::WaitForQuiet(Duration::from_secs(2)),
            &What::Shell(words.map(str::to_owned).to_vec()),
            &What::Sleep(Duration::from_millis(500)),
            &act("tap:100,200"),
            &act("text:it's 5"),
            &act("rotate:3"),
            &act("home"),
            &What::Snapshot("after".to_owned()),
            &What::Dump {
                kind: DumpKind::Java,
                label: "java".to_owned(),
            },
            &What::Dump {
                kind: DumpKind::Hprof,
                label: "values".to_owned(),
            },
        ]
    );
}

#[test]
fn budgets_carry_figures_and_limits() {
    let budgets = parsed(EXAMPLE).budgets;
    let value = |value: f64| Limit::Value(vec![("default".to_owned(), value)]);
    assert_eq!(budgets[0].limit, value(f64::from(12 << 20)));
    assert_eq!((budgets[0].at.as_str(), budgets[0].line), ("end", 41));
    assert_eq!(budgets[1].per.as_deref(), Some("round"));
    assert_eq!(
        budgets[1].figure,
        Figure::Native {
            library: None,
            function: Some("^Cache::".to_owned()),
            heap: Some("libc.malloc".to_owned()),
        }
    );
    assert_eq!(
        budgets[2].figure,
        Figure::Java {
            class: "com.example.*Activity".to_owned(),
            measure: JavaMeasure::Instances,
        }
    );
    assert_eq!(budgets[2].limit, value(2.0));
    assert_eq!(budgets[3].limit, value(f64::from(2 << 20)));
    assert_eq!(budgets[4].limit, value(0.0));
    assert_eq!(budgets[5].limit, value(0.5));
    // The entry `default` is the last.
    assert_eq!(
        budgets[6].limit,
        Limit::Value(vec![
            ("low-ram".to_owned(), f64::from(60 << 20)),
            ("default".to_owned(), f64::from(90 << 20)),
        ])
    );
    assert_eq!(budgets[6].at, "end");
    assert_eq!(budgets[7].figure, Figure::LiveSet);
    assert_eq!(budgets[8].limit, Limit::Change(0.02));
}

#[test]
fn a_short_scenario_has_defaults() {
    let scenario = parsed(&with_step("record:\n"));
    assert!(scenario.measure.native && !scenario.measure.java);
    assert_eq!(scenario.repeats, Repeats { min: 3, max: 5 });
    assert_eq!(scenario.timeout, Duration::from_secs(900));
    assert_eq!(scenario.keep, Keep::Always);
    assert_eq!(scenario.record, Record::default());
    assert_eq!((scenario.install, scenario.budgets), (None, Vec::new()));
}

#[test]
fn repeats_are_one_number_or_two() {
    let repeats = |text: &str| {
        let repeats = parsed(&with_step(&format!("repeats: {text}\n"))).repeats;
        (repeats.min, repeats.max)
    };
    assert_eq!(repeats("1"), (1, 1));
    assert_eq!(repeats("${RUNS}"), (4, 4));
    assert_eq!(repeats("{min: 10}"), (10, 10));
    assert_eq!(repeats("{max: 2}"), (2, 2));
    assert_eq!(repeats("{}"), (3, 5));
}

#[test]
fn a_variable_is_text_and_not_yaml() {
    let scenario = parsed(&with(
        "steps:\n- shell: [echo, \"${YAML}\", $$, \"$(id)\"]\n",
    ));
    let words = ["echo", "{a: b}\n- \"c\": *d", "$", "$(id)"];
    let words = What::Shell(words.map(str::to_owned).to_vec());
    assert_eq!(scenario.steps[0].what, words);
}

#[test]
fn forms_of_one_action_are_equal() {
    for text in [
        "rotate:2",
        "{rotate: 2}",
        "{rotate: \"2\"}",
        "\"rotate: 2\"",
        "{rotate: [2]}",
    ] {
        let scenario = parsed(&with(&format!("steps:\n- {text}\n")));
        let What::Act(action) = &scenario.steps[0].what else {
            panic!("{text}");
        };
        assert_eq!(action.replace(' ', ""), "rotate:2", "{text}");
    }
}

#[test]
fn the_first_scenario_is_valid() {
    let scenario = parsed(&first_scenario("com.example.app"));
    assert_eq!(scenario.target, Target::Name("com.example.app".to_owned()));
    assert_eq!(scenario.budgets.len(), 3);
    assert!(parse(&first_scenario("\"; rm -rf /")).is_err());
}
