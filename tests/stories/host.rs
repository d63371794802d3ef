//! `record --host` with scripts in the place of Perfetto's tools: the order of its checks, and its
//! end. `tests/bench/host.rs` runs the real ones.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::lab::Running;
use crate::program::{Arguments, Ended};

/// Says that it listens.
const TRACED: &str = "#!/bin/sh\nprintf 1 > /proc/self/fd/$TRACED_NOTIFY_FD\nexec sleep 600\n";

/// Writes a stored trace, and ends when it is asked to. The second one, which releases processes, never
/// becomes active.
const PERFETTO: &str = r#"#!/bin/sh
while [ $# -gt 0 ]; do
  case "$1" in -o) out=$2;; --notify-fd) fd=$2;; esac
  shift
done
if [ "${out##*/}" = release ]; then
  : > "$TMPDIR/releasing"
  sleep 10
  : > "$TMPDIR/waited"
  exec sleep 600
fi
cp "$HEAPTAP_TEST_TRACE" "$out"
trap 'exit 0' INT
printf '\0' > /proc/self/fd/$fd
while :; do sleep 0.05; done
"#;

struct Host(tempfile::TempDir);

impl Host {
    fn new() -> Host {
        let host = Host(tempfile::tempdir().unwrap());
        fs::create_dir(host.path("build")).unwrap();
        fs::create_dir(host.path("tmp")).unwrap();
        for (name, text) in [("traced", TRACED), ("perfetto", PERFETTO)] {
            let path = host.path("build").join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        // A library of this host that every program can load.
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let mut paths = maps
            .lines()
            .filter_map(|line| line.split_whitespace().nth(5));
        let library = paths.find(|path| path.contains("libgcc_s.so"));
        let library = Path::new(library.expect("a library of this test"));
        let goal = host.path("build/libheapprofd_glibc_preload.so");
        fs::copy(library, goal).unwrap();
        host
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn start(&self, args: impl Arguments) -> Running {
        let fixture = "fixtures/conversions/c_max.pftrace";
        let mut command: Command = crate::program::heaptap();
        command
            .args(args.list())
            .current_dir(self.0.path())
            .env("TMPDIR", self.path("tmp"))
            .env("HOME", self.path("tmp"))
            .env("HEAPTAP_STATE_DIR", self.path("state"))
            .env("HEAPTAP_CACHE_DIR", self.path("cache"))
            .env(
                "HEAPTAP_TEST_TRACE",
                Path::new(env!("CARGO_MANIFEST_DIR")).join(fixture),
            )
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Running::new(command.spawn().unwrap(), args)
    }

    fn error(&self, code: i32, args: impl Arguments) -> Value {
        let ended = self.start(args).end();
        ended.assert_code(code);
        ended.error()
    }

    fn manifest(&self, ended: &Ended) -> Value {
        let text = fs::read(self.path("out/manifest.json"));
        serde_json::from_slice(&text.unwrap_or_else(|e| panic!("{e}: {ended}"))).unwrap()
    }
}

#[test]
fn what_was_typed_is_checked_before_the_tools() {
    let host = Host::new();
    fs::remove_file(host.path("build/traced")).unwrap();
    fs::create_dir(host.path("full")).unwrap();
    fs::write(host.path("full/mine"), "").unwrap();
    for (args, code, kind) in [
        ("-- no-such-program", 8, "host-program-missing"),
        ("-o full -- ls", 2, "output-not-empty"),
        ("-i 0 -- ls", 2, "bad-value"),
        ("-o out -- ls", 8, "host-tools-missing"),
    ] {
        let record = "record --json --host --perfetto-dir build";
        let error = host.error(code, (record, args));
        assert_eq!(error["kind"], kind, "{args:?}: {error}");
    }
    assert!(!host.path("out").exists());
    let error = host.error(8, "record --json --host -- ls");
    let text = error.to_string();
    for words in [
        "libheapprofd_glibc_preload.so",
        "linux-",
        "/usr/sbin",
        "prebuilts",
    ] {
        assert!(text.contains(words), "{words}: {error}");
    }
}

#[test]
fn a_line_without_the_option_or_the_dashes_is_answered_with_the_whole_line() {
    let host = Host::new();
    for (args, line) in [
        (
            &["record", "--host", "-o", "out", "ls", "-l"][..],
            "heaptap record --host -o out -- ls -l",
        ),
        (
            &["record", "--", "ls", "-l", "a b"],
            "heaptap record --host -- ls -l 'a b'",
        ),
    ] {
        let ended = host.start(args).end();
        ended.assert_code(2);
        ended.assert_stderr(line);
    }
}

#[test]
fn a_signal_after_the_program_ends_the_wait_and_keeps_the_results() {
    let host = Host::new();
    let program = "sleep 600 > /dev/null 2>&1 & echo $!";
    let args = "record --host --perfetto-dir build -o out -- sh -c";
    let running = host.start((args, &[program]));
    let begun = std::time::Instant::now();
    while !host.path("tmp/releasing").exists() {
        assert!(begun.elapsed() < crate::lab::LIMIT, "nothing is released");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    running.signal_at_once("INT");
    let ended = running.end();
    assert!(!host.path("tmp/waited").exists(), "{ended}");
    ended.assert_code(0);
    let manifest = host.manifest(&ended);
    assert_eq!(manifest["outcome"]["complete"], true, "{ended}");
    let warnings = manifest["warnings"].to_string();
    assert!(warnings.contains("host-left-running"), "{ended}");
    let trace = fs::read(host.path("out/raw-trace")).unwrap();
    assert_eq!(manifest["trace"]["size"], trace.len(), "{ended}");
    let hash = heaptap_base::bytes::sha256_of(&host.path("out/raw-trace")).unwrap();
    assert_eq!(manifest["trace"]["sha256"], hash, "{ended}");
    crate::signals::send(ended.stdout.trim().parse().unwrap(), "KILL");
}

#[test]
fn the_trace_of_a_killed_recording_is_named() {
    let host = Host::new();
    let args = "record --host --perfetto-dir build -o out --";
    let mut running = host.start((args, &["sh", "-c", "echo on; exec sleep 600"]));
    running.until_some("the program", |line| (line == "on").then_some(()));
    running.signal("KILL");
    running.end();
    for command in ["top", "convert", "report"] {
        let error = host.error(8, &[command, "--json", "out"]);
        assert_eq!(error["kind"], "no-trace-inside", "{error}");
        let help = error["help"].as_str().unwrap();
        let line = help.split('`').find(|part| part.starts_with("heaptap "));
        let line = line.unwrap_or_else(|| panic!("{command}: {help}"));
        let words: Vec<&str> = line.split(' ').skip(1).collect();
        let ended = host.start(&[&words[..], &["-o", command]].concat()).end();
        assert_eq!(ended.code(), Some(0), "{line}: {ended}");
        assert!(host.path(command).join("manifest.json").is_file());
    }
}
