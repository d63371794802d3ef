//! Stories of `record --host` with the real traced and perfetto, and a preload library of our own
//! (preload.c), which registers as heapprofd does and writes a fixed profile. It hooks no
//! allocator: hooking and unwinding are Perfetto's.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::phone::{Ended, Run, SOON, until};
use crate::{PATIENCE, exit};

/// A program with a function that the profile names.
const LEAKY: &str = "#include <stdlib.h>\n\
    __attribute__((noinline)) char *leaky(int n) { char *p = malloc(n); p[0] = 1; return p; }\n\
    int main(int c, char **v) { leaky(4000); return c > 1 ? atoi(v[1]) : 0; }\n";

/// A Perfetto build and a place for results.
struct Host {
    dir: tempfile::TempDir,
}

impl Host {
    fn new() -> Host {
        let bench = std::env::var_os("HEAPTAP_BENCH_DIR");
        let bench = bench.expect("these stories are run by tests/bench/bench.sh test");
        let root = Path::new(&bench).join("rootfs");
        let host = Host {
            dir: tempfile::tempdir().expect("a directory"),
        };
        for name in ["build", "tmp", "home"] {
            fs::create_dir(host.path(name)).expect("new");
        }
        // Debian's tools with their own C library, whatever this host has.
        let root = root.display();
        for (name, file) in [
            ("traced", "usr/sbin/traced"),
            ("perfetto", "usr/bin/perfetto"),
        ] {
            let script = format!(
                "#!/bin/sh\nexec {root}/usr/lib64/ld-linux-x86-64.so.2 --library-path \
                 {root}/usr/lib/x86_64-linux-gnu:{root}/usr/lib/perfetto {root}/{file} \"$@\"\n"
            );
            host.script(&format!("build/{name}"), &script);
        }
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bench/preload.c");
        host.compile(
            &source,
            "build/libheapprofd_glibc_preload.so",
            &["-shared", "-fPIC"],
        );
        host.write("leaky.c", LEAKY);
        let options = ["-g", "-O1", "-rdynamic", "-Wl,--build-id"];
        host.compile(&host.path("leaky.c"), "leaky", &options);
        host
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("writable");
    }

    fn script(&self, name: &str, text: &str) {
        self.write(name, text);
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(self.path(name), mode).expect("ours");
    }

    fn compile(&self, source: &Path, goal: &str, options: &[&str]) {
        let done = Command::new("cc")
            .args(options)
            .arg("-o")
            .arg(self.path(goal))
            .arg(source)
            .output()
            .expect("there is a C compiler");
        assert!(done.status.success(), "{done:?}");
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_heaptap"));
        command
            .args(args)
            .current_dir(self.dir.path())
            .env("TMPDIR", self.path("tmp"))
            .env("HOME", self.path("home"))
            .env("XDG_STATE_HOME", self.path("home"))
            .env("XDG_CACHE_HOME", self.path("home"))
            .env_remove("LD_PRELOAD")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn heaptap(&self, args: &[&str]) -> Run {
        Run::start(self.command(args), args.join(" "))
    }

    /// Starts a recording of `program` into `out`.
    fn start(&self, options: &[&str], program: &[&str]) -> Run {
        let mut args = vec!["record", "--host", "--perfetto-dir", "build", "-o", "out"];
        args.extend(options);
        args.push("--");
        args.extend(program);
        self.heaptap(&args)
    }

    fn record(&self, options: &[&str], program: &[&str]) -> Ended {
        self.start(options, program).end(PATIENCE)
    }

    fn manifest(&self) -> Value {
        let text = fs::read(self.path("out/manifest.json")).expect("a manifest");
        serde_json::from_slice(&text).expect("JSON")
    }

    /// Returns the kinds of the warnings.
    fn warnings(&self) -> Vec<String> {
        let manifest = self.manifest();
        let all = manifest["warnings"].as_array().expect("a list").iter();
        all.map(|w| w["kind"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// Processes of this story, by a variable that all of them inherit.
    fn processes(&self) -> Vec<u32> {
        let marker = format!("TMPDIR={}", self.path("tmp").display());
        let items = fs::read_dir("/proc").expect("Linux").flatten();
        let pids = items.filter_map(|item| item.file_name().to_str()?.parse().ok());
        let ours = |pid: &u32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment
                .split(|b| *b == 0)
                .any(|v| v == marker.as_bytes())
        };
        pids.filter(ours).collect()
    }

    /// Returns the process of this story whose command line contains `word`.
    fn process(&self, word: &str) -> Option<u32> {
        self.processes().into_iter().find(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(word)
        })
    }

    /// Neither a process nor a file of the private directory remains.
    fn assert_nothing_left(&self) {
        until("the end of all processes", SOON, || {
            self.processes().is_empty()
        });
        until("the end of the directory", SOON, || {
            fs::read_dir(self.path("tmp"))
                .expect("ours")
                .next()
                .is_none()
        });
    }
}

fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill")
        .args([&format!("-{name}"), &pid.to_string()])
        .status();
    assert!(sent.expect("kill runs").success(), "no {name} sent");
}

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn a_program_is_recorded_into_a_directory_that_convert_repeats() {
    let host = Host::new();
    let ended = host.record(&[], &["./leaky", "3"]);
    assert_eq!(ended.code(), Some(3), "{ended:?}");
    assert_eq!(ended.stdout, "", "stdout is the program's");
    assert!(
        ended
            .stderr
            .contains("ended with status 3; the recording is complete")
    );
    let manifest = host.manifest();
    assert_eq!(manifest["host"]["status"], 3);
    assert_eq!(manifest["outcome"]["exit_code"], 0);
    assert_eq!(manifest["outcome"]["ended_by"], "target-exited");
    let dump = &manifest["dumps"][0];
    assert_eq!(dump["process"], "leaky", "{dump}");
    assert_eq!(dump["totals"]["space"], 8000);
    assert!(host.path("out/report.html").is_file());
    // The function is named by the program on this host.
    let top = host.heaptap(&["top", "out", "--csv"]).end(SOON);
    assert!(top.stdout.contains("leaky"), "{top:?}");
    let file = dump["file"].as_str().expect("samples");
    let again = host
        .heaptap(&["convert", "out/raw-trace", "-o", "again"])
        .end(SOON);
    assert_eq!(again.code(), Some(exit::DONE), "{again:?}");
    let read = |directory: &str| fs::read(host.path(directory).join(file)).expect("a profile");
    assert_eq!(read("out"), read("again"));
    host.assert_nothing_left();
}

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn the_programs_streams_and_status_are_its_own() {
    let host = Host::new();
    host.write("input", "hello\n");
    host.script(
        "script.sh",
        "#!/bin/sh\nread x; echo \"got $x\"; echo to stderr >&2; kill -KILL $$\n",
    );
    let args = [
        "record",
        "--host",
        "--perfetto-dir",
        "build",
        "-o",
        "out",
        "--",
        "./script.sh",
    ];
    let mut command = host.command(&args);
    command.stdin(fs::File::open(host.path("input")).expect("written"));
    let ended = Run::start(command, args.join(" ")).end(PATIENCE);
    assert_eq!(ended.code(), Some(128 + 9), "{ended:?}");
    assert_eq!(ended.stdout, "got hello\n");
    assert!(ended.stderr.contains("to stderr\n"), "{ended:?}");
    let program = &host.manifest()["host"];
    assert_eq!(
        (&program["status"], &program["signal"]),
        (&137.into(), &9.into())
    );
    host.assert_nothing_left();
}

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn a_signal_to_heaptap_reaches_the_program_and_the_profile_is_kept() {
    let host = Host::new();
    let program = "trap 'echo asked; exit 5' TERM; echo ready; while :; do sleep 0.1; done";
    let run = host.start(&[], &["sh", "-c", program]);
    until("the program", PATIENCE, || run.wrote().contains("ready"));
    run.signal("TERM");
    let ended = run.end(PATIENCE);
    assert_eq!(ended.code(), Some(5), "{ended:?}");
    assert_eq!(ended.stdout, "ready\nasked\n");
    assert_eq!(host.manifest()["outcome"]["complete"], true);
    host.assert_nothing_left();
}

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn a_killed_heaptap_leaves_neither_processes_nor_sockets() {
    let host = Host::new();
    let run = host.start(&[], &["sh", "-c", "echo ready; exec sleep 600"]);
    until("the program", PATIENCE, || run.wrote().contains("ready"));
    let private = fs::read_dir(host.path("tmp")).expect("ours").next();
    let private = private.expect("a directory").expect("readable").path();
    let mode = fs::metadata(&private).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    run.signal("KILL");
    run.end(SOON);
    host.assert_nothing_left();
}

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn children_that_start_after_the_time_limit_do_not_hang() {
    let host = Host::new();
    // Waits for the end of the recording, which heaptap prints.
    let program = "until [ -e go ]; do sleep 0.05; done; ./leaky; echo late";
    let run = host.start(&["-d", "200ms"], &["sh", "-c", program]);
    until("the time limit", PATIENCE, || {
        run.said().contains("recording time is over")
    });
    host.write("go", "");
    let ended = run.end(PATIENCE);
    assert_eq!(ended.code(), Some(exit::DONE), "{ended:?}");
    assert_eq!(ended.stdout, "late\n");
    let manifest = host.manifest();
    assert_eq!(manifest["outcome"]["ended_by"], "duration");
    let dumps = manifest["dumps"].as_array().expect("a list");
    assert!(
        dumps.iter().all(|dump| dump["process"] != "leaky"),
        "{dumps:?}"
    );
    host.assert_nothing_left();
}

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn a_lost_service_neither_stops_the_program_nor_hangs_its_children() {
    for (victim, name) in [
        ("usr/bin/perfetto", "perfetto"),
        ("usr/sbin/traced", "traced"),
    ] {
        let host = Host::new();
        let program = "until [ -e go ]; do sleep 0.05; done; ./leaky; echo late";
        let run = host.start(&[], &["sh", "-c", program]);
        until("the program", PATIENCE, || {
            run.said().contains("recording sh")
        });
        signal(host.process(victim).expect(name), "KILL");
        until("its end", PATIENCE, || {
            run.said().contains("perfetto or traced ended")
        });
        host.write("go", "");
        let ended = run.end(PATIENCE);
        assert_eq!(ended.stdout, "late\n", "{name}: {ended:?}");
        let code = ended.code();
        assert!(
            [Some(exit::INCOMPLETE), Some(exit::NO_SAMPLES)].contains(&code),
            "{ended:?}"
        );
        assert!(
            host.warnings().contains(&"host-session-lost".to_owned()),
            "{name}"
        );
        host.assert_nothing_left();
    }
}

/// The program starts a child after `victim` is lost, and again after it is lost once more.
#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn a_service_that_ends_slowly_or_twice_hangs_no_child() {
    for victim in ["usr/bin/perfetto", "usr/sbin/traced"] {
        let host = Host::new();
        // Its sockets are closed long before it has ended.
        let traced = fs::read_to_string(host.path("build/traced")).expect("a script");
        let slow = traced.replace("exec ", "trap 'kill $child' TERM\n")
            + "child=$!\nwait $child\nwait $child\nsleep 1\n";
        host.script("build/traced", &slow.replace("\"$@\"\n", "\"$@\" &\n"));
        let program = "for go in 1 2; do until [ -e $go ]; do sleep 0.05; done; ./leaky; \
                       echo $go; done";
        let run = host.start(&[], &["sh", "-c", program]);
        until("the program", PATIENCE, || {
            run.said().contains("recording sh")
        });
        signal(host.process(victim).expect(victim), "KILL");
        until("its end", PATIENCE, || {
            run.said().contains("perfetto or traced ended")
        });
        host.write("1", "");
        until("the child", PATIENCE, || run.wrote() == "1\n");
        signal(host.process(victim).expect(victim), "KILL");
        host.write("2", "");
        let ended = run.end(PATIENCE);
        assert_eq!(ended.stdout, "1\n2\n", "{victim}: {ended:?}");
        host.assert_nothing_left();
    }
}

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn an_empty_profile_has_its_reason_and_the_programs_failure_comes_first() {
    let host = Host::new();
    host.write("empty.c", "int heaptap_bench_empty;\n");
    let goal = "build/libheapprofd_glibc_preload.so";
    host.compile(&host.path("empty.c"), goal, &["-shared", "-fPIC"]);
    let ended = host.record(&[], &["sh", "-c", "sleep 0.1; exit 0"]);
    assert_eq!(ended.code(), Some(exit::NO_SAMPLES), "{ended:?}");
    assert!(
        host.warnings()
            .contains(&"host-nothing-recorded".to_owned()),
        "{ended:?}"
    );
    assert!(
        ended.stderr.contains("its heapprofd never connected"),
        "{ended:?}"
    );
    fs::remove_dir_all(host.path("out")).expect("ours");
    let ended = host.record(&[], &["sh", "-c", "exit 3"]);
    assert_eq!(ended.code(), Some(3), "{ended:?}");
    assert_eq!(host.manifest()["outcome"]["exit_code"], exit::NO_SAMPLES);
    host.assert_nothing_left();
}

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn a_service_that_does_not_start_ends_heaptap_before_the_program_runs() {
    for tool in ["traced", "perfetto"] {
        let host = Host::new();
        host.script(
            &format!("build/{tool}"),
            "#!/bin/sh\necho broken >&2\nexit 1\n",
        );
        let ended = host.record(&["--json"], &["touch", "ran"]);
        assert_eq!(ended.code(), Some(exit::DEVICE_FAILED), "{ended:?}");
        assert!(ended.stdout.contains("host-tracing-failed"), "{ended:?}");
        assert!(ended.words().contains("broken"), "{ended:?}");
        assert!(!host.path("ran").exists() && !host.path("out").exists());
        host.assert_nothing_left();
    }
}

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn the_library_precedes_an_inherited_one_and_its_path_is_made_clean() {
    let host = Host::new();
    host.write("other.c", "int heaptap_bench_other;\n");
    host.compile(&host.path("other.c"), "other.so", &["-shared", "-fPIC"]);
    let library = host.path("my library:1.so");
    fs::copy(host.path("build/libheapprofd_glibc_preload.so"), &library).expect("ours");
    let other = host.path("other.so").display().to_string();
    let args = [
        "record",
        "--host",
        "--perfetto-dir",
        "build",
        "--preload-library",
        "my library:1.so",
        "-o",
        "out",
        "--",
        "sh",
        "-c",
        "echo \"$LD_PRELOAD\"",
    ];
    let mut command = host.command(&args);
    command.env("LD_PRELOAD", &other);
    let ended = Run::start(command, args.join(" ")).end(PATIENCE);
    assert_eq!(ended.code(), Some(exit::DONE), "{ended:?}");
    let (first, second) = ended.stdout.trim().split_once(':').expect("two libraries");
    assert!(
        first.ends_with("/preload.so") && !first.contains(' '),
        "{first}"
    );
    assert_eq!(second, other);
    host.assert_nothing_left();
}

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn processes_that_outlive_the_program_are_listed() {
    let host = Host::new();
    let program = "sleep 600 >/dev/null 2>&1 & echo $!";
    let ended = host.record(&[], &["sh", "-c", program]);
    assert_eq!(ended.code(), Some(exit::DONE), "{ended:?}");
    let pid: u32 = ended.stdout.trim().parse().expect("a process");
    assert!(
        host.warnings().contains(&"host-left-running".to_owned()),
        "{ended:?}"
    );
    assert!(
        ended.stderr.contains(&format!("sleep ({pid})")),
        "{ended:?}"
    );
    signal(pid, "KILL");
    host.assert_nothing_left();
}

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn options_of_a_device_are_refused_by_name() {
    let host = Host::new();
    for (option, named) in [
        (&["-p", "1"][..], "--pid"),
        (&["-n", "a"], "--name"),
        (&["--detach"], "--detach"),
        (&["--with", "all"], "--with"),
        (&["-s", "x"], "--serial"),
    ] {
        let ended = host.record(option, &["touch", "ran"]);
        assert_eq!(ended.code(), Some(2), "{ended:?}");
        assert!(
            ended
                .stderr
                .contains(&format!("{named} cannot be combined with --host"))
        );
    }
    assert!(!host.path("ran").exists());
}
