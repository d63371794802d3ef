//! Names of a trace that are commands to a CI system: every command breaks them up where such a
//! system reads its output, without a change of the values of JSON.

use std::path::PathBuf;
use std::process::{Output, Stdio};

use serde_json::Value;

use crate::program::{fixture, heaptap};

/// Functions of the trace, and commands of the same length: GitHub and Azure, Azure, TeamCity.
const NAMES: [(&str, &str); 4] = [
    ("churn_small", "##[error]xy"),
    ("leak_parent", "##vso[a.b]x"),
    ("posix_memalign", "##teamcity[a ]"),
    ("leak_large", "::error::x"),
];

/// A variable of each system that obeys such commands.
const SYSTEMS: [&str; 4] = ["GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION", "CI"];

fn hostile_trace() -> PathBuf {
    let mut trace = std::fs::read(fixture("conversions/c_cont.pftrace")).expect("a trace");
    for (name, command) in NAMES {
        assert_eq!(name.len(), command.len());
        let is_name = |window: &[u8]| window == name.as_bytes();
        let at = trace.windows(name.len()).position(is_name);
        let at = at.unwrap_or_else(|| panic!("{name} is not in the trace"));
        trace[at..at + name.len()].copy_from_slice(command.as_bytes());
    }
    let path = PathBuf::from(concat!(env!("CARGO_TARGET_TMPDIR"), "/##[hostile].pftrace"));
    std::fs::write(&path, trace).expect("written");
    path
}

fn output_in(system: Option<&str>, args: &[&str]) -> Output {
    let mut command = heaptap();
    command.args(args).stdin(Stdio::null());
    command.envs(system.map(|name| (name, "true")));
    command.output().expect("heaptap runs")
}

/// Lines that a CI system obeys.
fn obeyed(output: &Output) -> Vec<String> {
    let both = [&output.stdout, &output.stderr];
    let both = both.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let lines = both.iter().flat_map(|text| text.split(['\n', '\r']));
    let obeys = |line: &&str| line.trim_start().starts_with("::") || line.contains("##");
    lines.filter(obeys).map(str::to_owned).collect()
}

#[test]
fn no_output_has_commands_where_a_ci_system_reads_it() {
    let trace = hostile_trace();
    let trace = trace.to_str().expect("UTF-8");
    let sql = "SELECT name FROM stack_profile_frame ORDER BY id";
    let lines: &[&[&str]] = &[
        &["top", trace],
        &["top", trace, "--tree"],
        &["top", trace, "--csv"],
        &["top", trace, "--tree", "--csv"],
        &["top", trace, "--json"],
        &["top", trace, "--json-lines"],
        &["leaks", trace],
        &["diff", trace],
        &["diff", trace, "--csv"],
        &["query", trace, sql],
        &["query", trace, sql, "--csv"],
        &["query", trace, sql, "--json"],
        &["query", trace, sql, "--json-lines"],
        &["convert", trace, "--format", "folded", "-o", "-"],
        &["convert", trace, "--format", "csv", "-o", "-"],
        &["convert", trace, "--format", "json", "-o", "-"],
        &["convert", trace, "--format", "speedscope", "-o", "-"],
        // Errors name what was typed.
        &["top", "##[error]x"],
        &["top", "##[error]x", "--json"],
    ];
    let mut had_some = 0;
    for line in lines {
        let plain = output_in(None, line);
        had_some += usize::from(!obeyed(&plain).is_empty());
        for system in SYSTEMS {
            let output = output_in(Some(system), line);
            assert_eq!(output.status, plain.status, "{line:?}");
            assert_eq!(obeyed(&output), [""; 0], "{system} {line:?}");
        }
    }
    assert!(had_some > 10, "{had_some} lines had commands");
}

#[test]
fn json_for_a_ci_system_has_the_same_values() {
    let trace = hostile_trace();
    let args = ["top", trace.to_str().expect("UTF-8"), "--json"];
    let read =
        |output: Output| -> Value { serde_json::from_slice(&output.stdout).expect("a document") };
    let plain = read(output_in(None, &args));
    assert!(plain.to_string().contains("##[error]xy"), "{plain:#}");
    assert_eq!(read(output_in(Some("GITHUB_ACTIONS"), &args)), plain);
    // A CI system that does not listen changes nothing.
    let off = output_in(None, &args).stdout;
    let mut command = heaptap();
    let output = command.args(args).env("CI", "false").output();
    assert_eq!(output.expect("heaptap runs").stdout, off);
}

#[test]
fn binary_output_is_the_same_for_a_ci_system() {
    let trace = hostile_trace();
    let args = ["symbolize", trace.to_str().expect("UTF-8"), "--no-discover"];
    let args = [&args[..], &["--whole-trace", "-o", "-"]].concat();
    let plain = output_in(None, &args).stdout;
    assert!(plain.windows(11).any(|window| window == b"##[error]xy"));
    assert_eq!(output_in(Some("CI"), &args).stdout, plain);
}
