//! The program, started without the variables that it reads: the test environment's settings for
//! phones, symbols or colors do not reach it. `HOME` and `PATH` do.

#![allow(dead_code, reason = "each suite uses a part")]

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Once;

use serde_json::Value;

/// Prefixes of the variables that heaptap, adb and the symbolizers read.
const READ: [&str; 6] = [
    "ADB_",
    "ANDROID_",
    "CLICOLOR",
    "DEBUGINFOD_",
    "HEAPTAP_",
    "PERFETTO_",
];
/// Other variables that it reads: of the terminal, and of CI systems.
const READ_TOO: [&str; 13] = [
    "APPVEYOR",
    "BROWSER",
    "BUILDKITE",
    "CI",
    "GITEA_ACTIONS",
    "GITHUB_ACTIONS",
    "GITLAB_CI",
    "JENKINS_URL",
    "NO_COLOR",
    "TEAMCITY_VERSION",
    "TERM",
    "TF_BUILD",
    "TRAVIS",
];

/// State directory of this suite's programs. The first of them empties it, so only one run of a
/// suite at a time can use a build directory.
const STATE: &str = concat!(
    env!("CARGO_TARGET_TMPDIR"),
    "/state-",
    env!("CARGO_CRATE_NAME")
);
static EMPTIED: Once = Once::new();

/// heaptap with an empty stdin. All tests of the build share its cache, those of this suite its
/// state; a test that inspects them sets its own.
pub fn heaptap() -> Command {
    EMPTIED.call_once(|| match std::fs::remove_dir_all(STATE) {
        Err(error) if error.kind() != ErrorKind::NotFound => panic!("{STATE}: {error}"),
        _ => {}
    });
    cleaned(env!("CARGO_BIN_EXE_heaptap"))
}

/// Runs heaptap to its end.
pub fn run(args: &[&str]) -> Output {
    let output = heaptap().args(args).output();
    output.expect("the binary runs")
}

/// Its output; it must exit with 0.
pub fn words(args: &[&str]) -> String {
    let output = run(args);
    assert_eq!(output.status.code(), Some(0), "{args:?} {output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Its document; it must exit with 0.
pub fn json(args: &[&str]) -> Value {
    let words = words(&[args, &["--json"]].concat());
    serde_json::from_str(&words).expect("one document")
}

/// A file or folder below `fixtures/`.
pub fn fixture(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures")
        .join(name);
    assert!(path.exists(), "{} is not there", path.display());
    path
}

/// A program with an empty stdin, without the variables that heaptap reads, and with the tests'
/// cache and state.
pub fn cleaned(program: &str) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    lead_a_group(&mut command);
    for (name, _) in std::env::vars_os() {
        if is_read(&name) {
            command.env_remove(name);
        }
    }
    command.env("HEAPTAP_STATE_DIR", STATE).env(
        "HEAPTAP_CACHE_DIR",
        concat!(env!("CARGO_TARGET_TMPDIR"), "/cache"),
    );
    command
}

/// Ctrl-Break goes to a whole group, which otherwise includes the tests.
#[cfg(windows)]
fn lead_a_group(command: &mut Command) {
    use std::os::windows::process::CommandExt as _;
    const CREATE_NEW_PROCESS_GROUP: u32 = 0x200;
    command.creation_flags(CREATE_NEW_PROCESS_GROUP);
}

#[cfg(not(windows))]
fn lead_a_group(_: &mut Command) {}

fn is_read(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    READ.iter().any(|prefix| name.starts_with(prefix)) || READ_TOO.contains(&&*name)
}
