//! The command line as used by scripts: exit codes, streams, JSON, help, completions.

mod foreign;
#[cfg(unix)]
mod narrow;
#[cfg(unix)]
mod widths;

use std::io::Read as _;
use std::process::{Command, Stdio};

use crate::program::{Arguments, expect, run as heaptap};

fn command(args: impl Arguments) -> Command {
    let mut command = crate::program::heaptap();
    command.args(args.list());
    command
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

#[test]
fn help_and_version_are_data() {
    for args in [
        &["--help"][..],
        &["help"],
        &["help", "record"],
        &["record", "--help"],
    ] {
        let output = expect(0, args);
        assert!(output.stdout.contains("Usage:"), "{args:?}");
        assert!(output.stderr.is_empty(), "{args:?}");
    }
    let version = heaptap("--version");
    assert!(
        version
            .stdout
            .starts_with(concat!("heaptap ", env!("CARGO_PKG_VERSION")))
    );
}

#[test]
fn wrong_usage_exits_2_with_a_hint_on_stderr() {
    let output = expect(2, "recrod");
    assert!(output.stdout.is_empty());
    assert!(output.stderr.starts_with("error: "), "{output}");
    output.assert_stderr("did you mean `heaptap record`?");

    for args in [
        &[][..],
        &["record", "--duration"],
        &["record", "-n", "a", "--block-client", "--no-block-client"],
        &["record", "-n", "a", "-d", "soon"],
        &["devices", "--json", "--json-lines"],
        &["devices", "--virtual", "--adb-server", "x:1"],
        &["completions", "tcsh"],
    ] {
        let output = expect(2, args);
        assert!(!output.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn in_json_a_failure_is_a_document() {
    for args in [
        &["recrod", "--json"][..],
        &["--json", "record", "-d", "soon"],
        &["--json-lines", "nonsense"],
        &["--json"],
    ] {
        let output = expect(2, args);
        let document = output.json();
        let error = &document["error"];
        assert_eq!(error["code"], 2, "{args:?}");
        assert_eq!(error["kind"], "usage");
        assert!(error["message"].as_str().is_some_and(|m| !m.is_empty()));
        assert!(error["help"].is_string());
    }
}

#[test]
fn a_flag_of_another_command_is_told_and_no_flag_that_is_not_near() {
    expect(2, "top rec --fail")
        .refute_stderr("--all")
        .assert_stderr("help: --fail is an option of `heaptap leaks`");
    heaptap("record --all").assert_stderr("help: use -n '*' for every process");
    heaptap("top rec --tre").assert_stderr("did you mean --tree?");
}

#[test]
fn a_file_that_is_not_there_is_told_with_what_may_be_meant() {
    let directory = tempfile::tempdir().expect("a folder");
    std::fs::write(directory.path().join("cold-start.trace"), "x").expect("written");
    std::fs::create_dir(directory.path().join("rec")).expect("made");
    std::fs::write(directory.path().join("rec/raw-trace"), "x").expect("written");
    for (typed, help) in [
        ("cold-strat.trace", "help: did you mean cold-start.trace?"),
        (
            "x",
            "help: check the path or use a recording in the current directory: rec",
        ),
        ("gone/x", "help: check the path: gone is not a directory"),
    ] {
        for command in [
            &["top"][..],
            &["leaks"],
            &["report"],
            &["query"],
            &["convert"],
            &["convert", "--format", "json"],
            &["paths", "--focus", "x"],
            &["symbolize"],
            &["open"],
            &["hprof", "conv"],
            &["diff", "rec"],
        ] {
            let mut args = command.to_vec();
            args.push(typed);
            match command {
                ["query"] => args.push("select 1"),
                ["hprof", _] => args.push("out.hprof"),
                _ => {}
            }
            let output = self::command(&args)
                .current_dir(directory.path())
                .output()
                .expect("runs");
            let stderr = text(&output.stderr);
            assert_eq!(output.status.code(), Some(8), "{args:?}: {stderr}");
            assert!(stderr.contains(help), "{args:?}: {stderr}");
        }
    }
}

#[test]
fn what_is_begun_or_almost_right_is_suggested() {
    for (args, help) in [
        (["convert", "x", "--format", "jsno"], "did you mean `json`?"),
        (["record", "--out", "d", "-q"], "heaptap record -o d -q"),
        (["top", "--symb", "d", "-q"], "did you mean --symbols?"),
    ] {
        expect(2, &args).assert_stderr(help);
    }
}

#[test]
fn a_missing_input_is_told_with_an_example() {
    let output = expect(2, "diff");
    let example = "such as `heaptap diff rec`";
    output.assert_stderr(example);
}

#[test]
fn the_help_of_the_virtual_phone_lists_each_key_and_fault() {
    let output = heaptap("virtual-phone --help");
    for (key, values) in virtual_phone::PhoneSpec::KEYS {
        assert!(
            output.stdout.contains(&format!("- {key}: {values}")),
            "{key}: {output}"
        );
    }
    output.assert_stdout("pull-cut");
}

#[test]
fn colours_follow_the_flag_and_never_a_pipe() {
    let plain = heaptap("--help");
    assert!(!plain.stdout.contains('\x1b'));
    heaptap("--color always --help").assert_stdout("\x1b");
    let never = heaptap("--color=never nonsense");
    assert!(!never.stderr.contains('\x1b'));
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let mut child = command("completions bash")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    drop(child.stdout.take());
    let mut said = String::new();
    child
        .stderr
        .take()
        .expect("piped")
        .read_to_string(&mut said)
        .expect("UTF-8");
    assert_eq!(child.wait().expect("ends").code(), Some(0), "{said}");
    assert_eq!(said, "");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_stdout_is_told() {
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .expect("Linux has it");
    let output = command("completions bash")
        .stdout(full)
        .output()
        .expect("the binary runs");
    assert_eq!(output.status.code(), Some(11));
    assert!(text(&output.stderr).contains("standard output"));
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let output = expect(0, &["completions", shell]);
        for word in ["virtual-phone", "snapshot", "shmem-size"] {
            assert!(output.stdout.contains(word), "{shell} completes {word}");
        }
    }
}

#[test]
fn print_config_needs_no_device() {
    let output = expect(0, "record -n com.example.app -i 16k --print-config");
    let config = heaptap_capture::config::parse_text(&output.stdout).expect("Perfetto's text");
    assert!(config.write_into_file());
    output.assert_stdout("sampling_interval_bytes: 16384");
}

#[test]
fn a_refused_config_says_why_before_any_device_is_asked() {
    for (args, words) in [
        (&["-n", "a", "-i", "0"][..], "crashes the target"),
        (&["-n", "a", "--shmem-size", "3mb"], "power of two"),
        (
            &["-n", "a", "--no-startup", "--no-running"],
            "cannot combine --no-startup with --no-running",
        ),
        (
            &["-n", "a", "--set", "heapprofd.no_runing=1"],
            "does not have a field",
        ),
        (
            &["-n", "a", "--config", "leek-hunt"],
            "did you mean `leak-hunt`?",
        ),
        (&[], "no target process is given"),
    ] {
        let mut all = vec!["record"];
        all.extend(args);
        let output = heaptap(&all);
        let code = if args.contains(&"--config") { 8 } else { 2 };
        output.assert_code(code);
        output.assert_stderr(words);
        output.assert_stderr("help: ");
    }
}

#[test]
fn a_wrong_target_says_how_one_is_named() {
    for (args, words) in [
        (&["record", "--pid", "abc"][..], "names go with -n"),
        (&["record", "--pid", "0"], "a process id is a number"),
        (&["stop", "--forget"], "SESSION"),
    ] {
        expect(2, args).assert_stderr(words);
    }
}

#[test]
fn retired_options_are_taken_and_said_to_be() {
    expect(
        0,
        "record -n a --no-start --idle-allocations --print-config",
    )
    .assert_stderr("--no-start has no effect")
    .assert_stderr("--idle-allocations has no effect");
}

#[test]
fn a_port_that_is_taken_is_told() {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let port = listener.local_addr().expect("bound").port().to_string();
    let output = expect(11, &["virtual-phone", "--port", &port, "--json"]);
    let document = output.json();
    assert_eq!(document["error"]["kind"], "port-taken");
}
