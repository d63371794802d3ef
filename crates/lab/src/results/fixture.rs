//! One result with all states, and one with hostile text everywhere.

use super::*;
use crate::verdict::Verdict;

const MIB: f64 = 1_048_576.0;

/// Text that attacks readers.
pub const HOSTILE: &str = "::error::x\n##[group]y [[ATTACHMENT|/etc/passwd]] ]]> \
    <script>alert(1)</script> a|b `c` @d \"e\" 'f' & %0A \0 \u{1b}[31m";

pub fn budget(name: &str, verdict: Option<(Verdict, f64, f64, f64)>) -> BudgetResult {
    BudgetResult {
        name: name.to_owned(),
        what: format!("native bytes of {name}.so at end"),
        unit: Unit::Bytes,
        line: 24,
        judgement: verdict.map(|(verdict, mean, lower, upper)| Judgement {
            verdict,
            mean: mean * MIB,
            lower: lower * MIB,
            upper: upper * MIB,
            limit: 12.0 * MIB,
            runs: 3,
            earlier_runs: 0,
            confidence: 0.98,
            p_over: 0.5,
            why: (verdict == Verdict::Undecided).then(|| "the bounds contain the limit".to_owned()),
        }),
        missing: verdict
            .is_none()
            .then(|| "meminfo has no row Graphics".to_owned()),
        figures: verdict.map_or(Vec::new(), |(_, mean, lower, upper)| {
            [lower, mean, upper]
                .map(|value| Measured {
                    value: value * MIB,
                    samples: None,
                })
                .to_vec()
        }),
        pairs: Vec::new(),
        change: None,
        parts: Vec::new(),
        excess: Vec::new(),
        history: Vec::new(),
    }
}

fn run(number: usize, state: RunState, error: Option<(&str, &str)>) -> Run {
    Run {
        output: Some(format!("run-{number}")),
        seconds: 61.25,
        error: error.map(|(kind, message)| RunError {
            code: 5,
            kind: kind.to_owned(),
            message: message.to_owned(),
            help: (state == RunState::Failed).then(|| "check the cable".to_owned()),
            step: (state == RunState::Failed).then(|| "steps[3]".to_owned()),
            line: (state == RunState::Failed).then_some(14),
        }),
        conditions: (state == RunState::Done).then(conditions),
        triggers: (state == RunState::Failed)
            .then(trigger)
            .into_iter()
            .collect(),
        ..Run::new(number, state)
    }
}

fn trigger() -> TriggerRecord {
    TriggerRecord {
        trigger: "triggers[0]".to_owned(),
        line: 31,
        cause: "TOTAL of meminfo: 412.0 MiB".to_owned(),
        seconds: 12.44,
        labels: vec!["large".to_owned()],
        error: None,
    }
}

fn conditions() -> RunConditions {
    let at = |status| Conditions {
        thermal_status: Some(status),
        ..Conditions::default()
    };
    RunConditions {
        before: at(0),
        after: Some(at(1)),
        low_memory_kills: vec![LowMemoryKill {
            process: "com.example.chat".to_owned(),
            pid: 6201,
            reason: None,
        }],
    }
}

/// Returns a result whose budgets are within, over, undecided and missing; one run failed, one is
/// void.
pub fn all_states() -> ScenarioResult {
    let mut over = budget("libapp", Some((Verdict::Over, 12.9, 12.4, 13.4)));
    over.excess = vec![Excess::new("Cache::insert <- Cache::load", 3.0 * MIB)];
    ScenarioResult {
        schema_version: SCHEMA_VERSION,
        scenario: "login".to_owned(),
        file: "perf/login.yaml".to_owned(),
        device_class: "low-ram".to_owned(),
        device: Device {
            serial: "R58M123".to_owned(),
            instead_of: None,
            model: Some("Pixel 6".to_owned()),
            system: Some("Android 14 (SDK 34, user)".to_owned()),
            fingerprint: None,
        },
        app_version: Some("2.1 (210)".to_owned()),
        old_app_version: None,
        started: "2026-11-20T01:02:03Z".to_owned(),
        seconds: 300.5,
        runs: vec![
            run(1, RunState::Done, None),
            run(2, RunState::Void, Some(("rebooted", "the device rebooted"))),
            run(
                3,
                RunState::Failed,
                Some(("wait-timeout", "no activity .MainActivity in 30 s")),
            ),
        ],
        budgets: vec![
            budget("cache", Some((Verdict::Within, 11.0, 10.5, 11.5))),
            over,
            budget("gfx", Some((Verdict::Undecided, 12.1, 11.0, 13.2))),
            budget("graphics", None),
        ],
        exit_code: 9,
    }
}

/// Returns [`all_states`] with [`HOSTILE`] as every text.
pub fn hostile() -> ScenarioResult {
    let text = || HOSTILE.to_owned();
    let mut result = all_states();
    result.scenario = text();
    result.file = text();
    result.device_class = text();
    result.device = Device {
        serial: text(),
        instead_of: Some(text()),
        model: Some(text()),
        system: Some(text()),
        fingerprint: Some(text()),
    };
    result.app_version = Some(text());
    result.old_app_version = Some(text());
    result.started = text();
    for run in &mut result.runs {
        run.output = Some(text());
        let kills = run
            .conditions
            .iter_mut()
            .flat_map(|all| &mut all.low_memory_kills);
        kills.for_each(|kill| kill.process = text());
        for acted in &mut run.triggers {
            acted.trigger = text();
            acted.cause = text();
            acted.labels = vec![text()];
            acted.error = Some(text());
        }
        if let Some(error) = &mut run.error {
            error.kind = text();
            error.message = text();
            error.help = Some(text());
            error.step = Some(text());
        }
    }
    for budget in &mut result.budgets {
        budget.name = text();
        budget.what = text();
        budget.missing = budget.missing.as_ref().map(|_| text());
        if let Some(judgement) = &mut budget.judgement {
            judgement.why = judgement.why.as_ref().map(|_| text());
        }
        for part in &mut budget.excess {
            part.what = text();
        }
        budget.history = vec![PastFigure {
            started: text(),
            device: None,
            app_version: Some(text()),
            mean: 1.0,
            lower: 0.0,
            upper: f64::INFINITY,
        }];
    }
    result
}

/// Returns a result of two builds in three pairs of runs.
pub fn two_builds() -> ScenarioResult {
    let mut all = budget("all", Some((Verdict::Over, 13.0, 12.8, 13.2)));
    all.pairs = vec![(10.0 * MIB, 13.0 * MIB); 3];
    all.change = Some(PairedChange {
        pairs: 3,
        change: 0.3,
        lower: 0.28,
        upper: 0.321,
    });
    let builds = [
        Build::Old,
        Build::New,
        Build::New,
        Build::Old,
        Build::Old,
        Build::New,
    ];
    let runs = builds.into_iter().zip(1..).map(|(build, number)| Run {
        build: Some(build),
        ..run(number, RunState::Done, None)
    });
    ScenarioResult {
        old_app_version: Some("2.0 (200)".to_owned()),
        runs: runs.collect(),
        budgets: vec![all],
        ..all_states()
    }
}

/// Returns the page `OUTPUT/report.html`.
pub fn page(_: &ScenarioResult, run: &Run) -> Option<String> {
    run.output
        .as_ref()
        .map(|output| format!("night/{output}/report.html"))
}

/// Asserts that no line contains a command of a CI system or a character that XML forbids.
pub fn assert_harmless(text: &str) {
    for line in text.lines() {
        assert!(!line.contains("##["), "{line}");
        assert!(!line.contains("[[ATTACHMENT|/etc"), "{line}");
        assert!(!line.trim_start().starts_with("::error::x"), "{line}");
        assert!(!line.contains(|c: char| c.is_control()), "{line:?}");
    }
}

/// Asserts that the tags of XML or of HTML with closed elements are balanced and no `<` or `&` is
/// left over.
pub fn assert_well_formed(text: &str, void: &[&str]) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        assert!(!rest[..at].contains('>'), "stray > in {:?}", &rest[..at]);
        let end = at + rest[at..].find('>').expect("a tag ends");
        let tag = &rest[at + 1..end];
        assert!(!tag.contains('<'), "{tag}");
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        let name = tag
            .trim_start_matches('/')
            .split([' ', '/'])
            .next()
            .unwrap_or("");
        match tag {
            tag if tag.starts_with(['?', '!']) || tag.ends_with('/') || void.contains(&name) => {}
            tag if tag.starts_with('/') => assert_eq!(open.pop(), Some(name)),
            _ => open.push(name),
        }
        rest = &rest[end + 1..];
    }
    assert_eq!(open, Vec::<&str>::new());
    for after in text.split('&').skip(1) {
        let entity = after.split(';').next().unwrap_or("");
        assert!(
            matches!(entity, "amp" | "lt" | "gt" | "quot") || entity.starts_with('#'),
            "&{entity}"
        );
    }
}
