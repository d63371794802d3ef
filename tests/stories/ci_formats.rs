//! What CI systems and editors read, judged by other projects: JUnit by junitparser and by the XSD
//! of Jenkins' xUnit plugin; scenarios, results and the CI examples of the guide by
//! check-jsonschema, which has the schemas of GitHub and GitLab.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::judge;
use crate::lab::{APP, Lab};
use crate::program::{Ended, assert_contains, heaptap};

/// Text that a CI system obeys, or that breaks XML, on the stderr of a command of the device.
const HOSTILE: &str = "::error::x ##[group]y [[ATTACHMENT|/etc/passwd]] ]]> <script>&";

/// Prints each case as `classname name state`, and the counts of each suite.
const READ_JUNIT: &str = r#"
import json, sys
from junitparser import JUnitXml
cases, suites = [], []
for suite in JUnitXml.fromfile(sys.argv[1]):
    suites.append([suite.name, suite.tests, suite.failures, suite.errors, suite.skipped])
    for case in suite:
        results = case.result
        cases.append([case.classname, case.name, [type(r).__name__ for r in results],
                      [r.message for r in results], [r.text for r in results], case.system_out])
json.dump({"cases": cases, "suites": suites}, sys.stdout)
"#;

const VALIDATE_XML: &str =
    "import sys, xmlschema; xmlschema.XMLSchema(sys.argv[1]).validate(sys.argv[2])";

fn python(python: &str, args: &[&str]) -> Output {
    let output = Command::new(python).args(args).output();
    output.expect("the judge's Python runs")
}

/// Whether check-jsonschema accepts the files; its output otherwise.
fn check(judge: &str, schema: &[&str], files: &[&Path]) -> Result<(), String> {
    let files: Vec<String> = files.iter().map(|f| f.display().to_string()).collect();
    let files = files.iter().map(String::as_str);
    let args: Vec<&str> = ["-m", "check_jsonschema"]
        .into_iter()
        .chain(schema.iter().copied())
        .chain(files)
        .collect();
    let output = python(judge, &args);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.code() {
        Some(0) => Ok(()),
        Some(1) => Err(text(&output.stdout)),
        code => panic!(
            "check-jsonschema ends with {code:?}: {}",
            text(&output.stderr)
        ),
    }
}

/// The output of heaptap without a device.
fn printed(args: &[&str]) -> String {
    let output = heaptap().args(args).output().expect("heaptap runs");
    assert!(output.status.success(), "{args:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Writes the schema of `document` into a directory, and returns its path.
fn schema(directory: &Path, document: &str) -> PathBuf {
    let path = directory.join(format!("{document}.schema.json"));
    fs::write(&path, printed(&["run", &format!("--schema={document}")])).unwrap();
    path
}

/// Runs three scenarios: with a budget within, one over and one without a figure; with an
/// undecided one; and with a step that fails with hostile text.
fn night(lab: &Lab) -> Ended {
    let scenario = |name: &str, more: &str| {
        let text = format!("version: 1\nname: {name}\ntarget: {{name: {APP}}}\n{more}");
        fs::write(lab.work().join(format!("{name}.yaml")), text).unwrap();
    };
    scenario(
        "many",
        "measure: [native, java, meminfo]\nrepeats: 3\nsteps: [start, snapshot: up]\nbudgets:\n\
         - {name: within, native: {}, at: up, limit: 1GiB}\n\
         - {name: over, java: {class: '*.DetailActivity', measure: instances}, at: up, limit: 0}\n\
         - {name: absent, meminfo: {row: Nonsense}, at: up, limit: 1KiB}\n",
    );
    scenario(
        "few",
        "repeats: 1\nsteps: [start, snapshot: up]\nbudgets:\n\
         - {name: undecided, native: {function: '^[^<&>]|]]>'}, at: up, limit: 1GiB}\n",
    );
    scenario(
        "broken",
        &format!(
            "repeats: 1\nsteps:\n- start\n- shell: [sh, -c, 'echo \"{HOSTILE}\" >&2; exit 1']\n\
             budgets:\n- {{name: never, native: {{}}, limit: 1GiB}}\n"
        ),
    );
    lab.expect(9, "run many.yaml few.yaml broken.yaml -o out --json")
}

/// Case, kind of its result, message and text.
type Case = (String, Vec<String>, String, String);

fn strings(value: &Value) -> Vec<String> {
    let all = value.as_array().expect("a list").iter();
    all.map(|one| one.as_str().unwrap_or_default().to_owned())
        .collect()
}

#[test]
#[ignore = "needs junitparser, xmlschema and check-jsonschema: tests/run.sh runs it"]
fn judged_by_ci_readers_junit_of_a_night() {
    let judge = judge::ci_readers();
    let lab = Lab::new("speed=8,build=userdebug");
    night(&lab);
    let junit = lab.work().join("out/junit.xml");
    let path = junit.to_str().unwrap();
    for xsd in &judge.junit_xsds {
        let output = python(
            &judge.python,
            &["-c", VALIDATE_XML, xsd.to_str().unwrap(), path],
        );
        assert!(output.status.success(), "{}: {output:?}", xsd.display());
    }
    // The schema refuses what other readers accept, so it is in force.
    let bad = lab.work().join("bad.xml");
    let text = fs::read_to_string(&junit).unwrap();
    fs::write(
        &bad,
        text.replacen("<testsuites ", "<testsuites skipped=\"1\" ", 1),
    )
    .unwrap();
    let xsd = judge.junit_xsds[0].to_str().unwrap();
    let output = python(
        &judge.python,
        &["-c", VALIDATE_XML, xsd, bad.to_str().unwrap()],
    );
    assert!(!output.status.success(), "{output:?}");

    let output = python(&judge.python, &["-c", READ_JUNIT, path]);
    assert!(output.status.success(), "{output:?}");
    let read: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        read["suites"],
        serde_json::json!([
            ["many.default", 4, 1, 1, 0],
            ["few.default", 2, 0, 0, 1],
            ["broken.default", 2, 0, 1, 1],
        ]),
        "name, tests, failures, errors, skipped"
    );
    let cases: Vec<Case> = read["cases"]
        .as_array()
        .expect("cases")
        .iter()
        .map(|case| {
            let part = |at: usize| strings(&case[at]).concat();
            let name = format!(
                "{} {}",
                case[0].as_str().unwrap(),
                case[1].as_str().unwrap()
            );
            (name, strings(&case[2]), part(3), part(4))
        })
        .collect();
    let states: Vec<(&str, String)> = cases
        .iter()
        .map(|(name, results, ..)| (name.as_str(), results.concat()))
        .collect();
    let states: Vec<(&str, &str)> = states.iter().map(|(n, s)| (*n, s.as_str())).collect();
    assert_eq!(
        states,
        [
            ("many.default run", ""),
            ("many.default within", ""),
            ("many.default over", "Failure"),
            ("many.default absent", "Error"),
            ("few.default run", ""),
            ("few.default undecided", "Skipped"),
            ("broken.default run", "Error"),
            ("broken.default never", "Skipped"),
        ]
    );
    for (name, results, message, text) in &cases {
        // GitLab reads only the text.
        assert!(text.contains(message), "{name}: {message} in {text}");
        assert_eq!(results.is_empty(), message.is_empty(), "{name}");
    }
    // The text of the device is readable, and commands no CI system.
    let (_, _, message, _) = &cases[6];
    assert_contains(&message, "<script>&");
    assert_contains(&message, "exited with 1");
    assert!(
        !message.contains("##[") && !message.contains("[[ATTACHMENT"),
        "{message}"
    );
}

#[test]
#[ignore = "needs junitparser, xmlschema and check-jsonschema: tests/run.sh runs it"]
fn judged_by_ci_readers_results_follow_their_schema() {
    let judge = judge::ci_readers().python;
    let lab = Lab::new("speed=8,build=userdebug");
    night(&lab);
    let schema = schema(&lab.work(), "results");
    let schema = ["--schemafile", schema.to_str().unwrap()];
    let of = |part: &str| lab.work().join("out").join(part).join("result.json");
    let all = [
        of(""),
        of("many-virtual-1"),
        of("few-virtual-1"),
        of("broken-virtual-1"),
    ];
    let all: Vec<&Path> = all.iter().map(PathBuf::as_path).collect();
    check(&judge, &schema, &all).unwrap_or_else(|errors| panic!("{errors}"));

    let result: Value = serde_json::from_slice(&fs::read(all[1]).unwrap()).unwrap();
    let bad = lab.work().join("bad.json");
    for (pointer, value) in [
        ("/runs/0/state", "paused"),
        ("/budgets/0/judgement/verdict", "maybe"),
        ("/seconds", "3"),
    ] {
        let mut result = result.clone();
        *result.pointer_mut(pointer).expect(pointer) = value.into();
        fs::write(&bad, result.to_string()).unwrap();
        let errors = check(&judge, &schema, &[&bad]).expect_err(pointer);
        let place = pointer.trim_start_matches('/').replace('/', ".");
        assert_contains(&errors, place.split('.').next().unwrap());
    }
}

/// The YAML blocks of a page.
fn blocks(page: &str) -> Vec<&str> {
    let blocks = page.split("\n```yaml\n").skip(1);
    blocks
        .filter_map(|rest| rest.split("\n```").next())
        .collect()
}

#[test]
#[ignore = "needs junitparser, xmlschema and check-jsonschema: tests/run.sh runs it"]
fn judged_by_ci_readers_scenarios_follow_their_schema() {
    let judge = judge::ci_readers().python;
    let directory = tempfile::tempdir().unwrap();
    let schema = schema(directory.path(), "scenarios");
    let schema = ["--schemafile", schema.to_str().unwrap()];
    let pages = [
        include_str!("../../docs/guide/ci.md"),
        include_str!("../../docs/reference/formats.md"),
    ];
    let mut texts = vec![printed(&["run", "--init", "com.example.app"])];
    for page in pages {
        let scenarios = blocks(page)
            .into_iter()
            .filter(|text| text.starts_with("version: 1"));
        texts.extend(scenarios.map(str::to_owned));
    }
    assert!(texts.len() > pages.len(), "a scenario of each page");
    let file = directory.path().join("s.yaml");
    let checked = |text: &str| {
        fs::write(&file, text).unwrap();
        check(&judge, &schema, &[&file])
    };
    for text in &texts {
        checked(text).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    }
    // Each wrong key or value is refused, and named.
    let good = &texts[1];
    for (from, to, named) in [
        ("repeats:", "repeat:", "repeat"),
        ("- start\n", "- explode\n", "explode"),
        ("min: 3", "min: -3", "-3"),
        ("limit: 64KiB", "limit: [64KiB]", "64KiB"),
        ("name: login", "name: \"log\\nin; $(id)\"", "$(id)"),
    ] {
        let bad = good.replacen(from, to, 1);
        assert_ne!(&bad, good, "{from}");
        let errors = checked(&bad).expect_err(to);
        assert!(errors.contains(named), "{to}: {errors}");
        // heaptap agrees.
        let output = heaptap()
            .args(["run", "--plan", "nowhere", "--json"])
            .arg(&file)
            .env("APK", "app.apk")
            .output()
            .unwrap();
        let error: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(error["error"]["kind"], "bad-scenario", "{to}: {error:#}");
    }
}

/// Returns the example of the guide for a file of a CI system; its first line names the file.
fn example(file: &str) -> &'static str {
    let page = include_str!("../../docs/guide/ci.md");
    let all = page.split("\n```").skip(1).step_by(2);
    let mut all = all.filter_map(|block| Some(block.split_once('\n')?.1));
    all.find(|text| text.lines().next().is_some_and(|line| line.ends_with(file)))
        .unwrap_or_else(|| panic!("no example of {file}"))
}

#[test]
#[ignore = "needs junitparser, xmlschema and check-jsonschema: tests/run.sh runs it"]
fn judged_by_ci_readers_examples_follow_the_schemas_of_github_and_gitlab() {
    let judge = judge::ci_readers().python;
    let directory = tempfile::tempdir().unwrap();
    for (file, schema, good, bad) in [
        (
            "memory.yml",
            "vendor.github-workflows",
            "runs-on:",
            "run-on:",
        ),
        (
            ".gitlab-ci.yml",
            "vendor.gitlab-ci",
            "exit_codes: [",
            "exit_codes: [x, ",
        ),
    ] {
        let text = example(file);
        let path = directory.path().join("ci.yml");
        let schema = ["--builtin-schema", schema];
        fs::write(&path, text).unwrap();
        check(&judge, &schema, &[&path]).unwrap_or_else(|errors| panic!("{errors}"));
        fs::write(&path, text.replace(good, bad)).unwrap();
        check(&judge, &schema, &[&path]).expect_err(bad);
    }
}

/// The examples run the same command; its files have the names that the examples give to the CI
/// systems.
#[test]
fn examples_of_the_guide_name_files_that_their_command_writes() {
    let lab = Lab::new("speed=8");
    fs::write(
        lab.work().join("login.yaml"),
        format!("version: 1\nname: login\ntarget: {{name: {APP}}}\nrepeats: 1\nsteps: [start]\n"),
    )
    .unwrap();
    let examples = ["memory.yml", ".gitlab-ci.yml", "Jenkinsfile"].map(example);
    let command = |text: &'static str| {
        let rest = text.split("heaptap ").nth(1).expect("a command");
        let end = rest.find(['\n', '\'']).expect("an end");
        rest[..end].trim().split(' ').collect::<Vec<_>>()
    };
    let args = command(examples[0]);
    assert!(examples.iter().all(|text| command(text) == args));
    lab.expect(0, &args);
    for text in examples {
        let files = text.split(|c: char| c.is_whitespace() || "',[]{}".contains(c));
        for file in files.filter(|word| word.starts_with("memory/") && !word.ends_with("**")) {
            assert!(lab.work().join(file).is_file(), "{file}");
        }
    }
    assert!(
        examples
            .iter()
            .skip(1)
            .all(|text| text.contains("memory/junit.xml"))
    );
}
