//! The program, started without the variables that it reads: the test environment's settings for
//! phones, symbols or colors do not reach it. `HOME` and `PATH` do.

#![allow(dead_code, reason = "each suite uses a part")]

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
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

/// Arguments of a command: a list, a text with blanks between them, or two of these.
pub trait Arguments {
    fn list(&self) -> Vec<String>;
}

impl<T: Arguments + ?Sized> Arguments for &T {
    fn list(&self) -> Vec<String> {
        (**self).list()
    }
}

impl Arguments for str {
    fn list(&self) -> Vec<String> {
        self.split_whitespace().map(str::to_owned).collect()
    }
}

impl Arguments for String {
    fn list(&self) -> Vec<String> {
        self.as_str().list()
    }
}

impl<S: AsRef<str>> Arguments for [S] {
    fn list(&self) -> Vec<String> {
        self.iter().map(|arg| arg.as_ref().to_owned()).collect()
    }
}

impl<S: AsRef<str>, const N: usize> Arguments for [S; N] {
    fn list(&self) -> Vec<String> {
        self.as_slice().list()
    }
}

impl<S: AsRef<str>> Arguments for Vec<S> {
    fn list(&self) -> Vec<String> {
        self.as_slice().list()
    }
}

impl<A: Arguments, B: Arguments> Arguments for (A, B) {
    fn list(&self) -> Vec<String> {
        [self.0.list(), self.1.list()].concat()
    }
}

/// A heaptap that has ended.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    pub args: String,
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "`heaptap {}` ended with {}\n--- stdout\n{}--- stderr\n{}---",
            self.args, self.status, self.stdout, self.stderr
        )
    }
}

impl Ended {
    /// Runs a prepared heaptap to its end.
    pub fn from_command(command: &mut Command) -> Ended {
        let output = command.output().expect("the binary runs");
        Ended::new(command, output)
    }

    /// What this heaptap left.
    pub fn new(command: &Command, output: Output) -> Ended {
        let args: Vec<_> = command
            .get_args()
            .map(|arg| arg.to_string_lossy())
            .collect();
        let args = args.join(" ");
        Ended {
            status: output.status,
            stdout: String::from_utf8(output.stdout)
                .unwrap_or_else(|error| panic!("stdout of {args} is not UTF-8: {error}")),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            args,
        }
    }

    /// Its exit code; `None` if a signal killed it.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Fails with all output if stdout does not have the part.
    #[track_caller]
    pub fn assert_stdout(&self, part: impl AsRef<str>) -> &Ended {
        let part = part.as_ref();
        assert!(self.stdout.contains(part), "no {part:?} in stdout: {self}");
        self
    }

    /// Fails with all output if stderr does not have the part.
    #[track_caller]
    pub fn assert_stderr(&self, part: impl AsRef<str>) -> &Ended {
        let part = part.as_ref();
        assert!(self.stderr.contains(part), "no {part:?} in stderr: {self}");
        self
    }

    /// Fails with all output if stdout has the part.
    #[track_caller]
    pub fn refute_stdout(&self, part: impl AsRef<str>) -> &Ended {
        let part = part.as_ref();
        assert!(!self.stdout.contains(part), "{part:?} in stdout: {self}");
        self
    }

    /// Fails with all output if stderr has the part.
    #[track_caller]
    pub fn refute_stderr(&self, part: impl AsRef<str>) -> &Ended {
        let part = part.as_ref();
        assert!(!self.stderr.contains(part), "{part:?} in stderr: {self}");
        self
    }

    /// Fails with all output if its exit code is another.
    #[track_caller]
    pub fn assert_code(&self, code: i32) -> &Ended {
        assert_eq!(self.code(), Some(code), "{self}");
        self
    }

    /// Its one JSON document.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {self}"))
    }

    /// The error of its one JSON document or of its last line that has one.
    pub fn error(&self) -> Value {
        match serde_json::from_str::<Value>(&self.stdout) {
            Ok(document) => document["error"].clone(),
            Err(_) => self.last_with("error")["error"].clone(),
        }
    }

    /// The last line of JSON that has `key`.
    pub fn last_with(&self, key: &str) -> Value {
        self.stdout
            .lines()
            .rev()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .find(|value| value.get(key).is_some())
            .unwrap_or_else(|| panic!("no line with {key}: {self}"))
    }
}

/// Runs heaptap to its end.
pub fn run(args: impl Arguments) -> Ended {
    Ended::from_command(heaptap().args(args.list()))
}

/// Runs heaptap to its end and expects the exit code.
#[track_caller]
pub fn expect(code: i32, args: impl Arguments) -> Ended {
    let ended = run(args);
    ended.assert_code(code);
    ended
}

/// Its output; it must exit with 0.
pub fn words(args: impl Arguments) -> String {
    expect(0, args).stdout
}

/// Its document; it must exit with 0.
pub fn json(args: impl Arguments) -> Value {
    expect(0, (args, "--json")).json()
}

/// Fails with the text if it does not have the part.
#[track_caller]
pub fn assert_contains(text: impl AsRef<str>, part: impl AsRef<str>) {
    let (text, part) = (text.as_ref(), part.as_ref());
    assert!(text.contains(part), "no {part:?} in: {text}");
}

/// Fails with the text if it has the part.
#[track_caller]
pub fn assert_lacks(text: impl AsRef<str>, part: impl AsRef<str>) {
    let (text, part) = (text.as_ref(), part.as_ref());
    assert!(!text.contains(part), "{part:?} in: {text}");
}

/// A file or directory below `fixtures/`.
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
