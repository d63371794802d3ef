//! The program, started without the variables that it reads: what the tests' own environment says
//! of phones, symbols or colors does not reach it. `HOME` and `PATH` do.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

/// How the variables begin that heaptap, adb and the symbolizers read.
const READ: [&str; 6] = [
    "ADB_",
    "ANDROID_",
    "CLICOLOR",
    "DEBUGINFOD_",
    "HEAPTAP_",
    "PERFETTO_",
];
/// Variables of other names that it reads.
const READ_TOO: [&str; 3] = ["BROWSER", "NO_COLOR", "TERM"];

/// heaptap with an empty stdin. Its cache lies in a folder that all tests of the build share, its
/// state in one of this suite's run; a test that looks at them names its own.
pub fn heaptap() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heaptap"));
    command.stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if is_read(&name) {
            command.env_remove(name);
        }
    }
    command
        .env(
            "HEAPTAP_STATE_DIR",
            format!(
                "{}/state-{}",
                env!("CARGO_TARGET_TMPDIR"),
                std::process::id()
            ),
        )
        .env(
            "HEAPTAP_CACHE_DIR",
            concat!(env!("CARGO_TARGET_TMPDIR"), "/cache"),
        );
    command
}

fn is_read(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    READ.iter().any(|prefix| name.starts_with(prefix)) || READ_TOO.contains(&&*name)
}
