//! A directory from somebody else: the targets of its links, scripts in its page, and the effect of
//! its name on printed commands.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::lab::{APP, Lab, files, recording};
use crate::program::{Arguments, Ended, assert_contains};

fn fixture(name: &str) -> PathBuf {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    fixtures.join(name)
}

/// A work directory, in which no browser can be started.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Desk {
        let desk = Desk(tempfile::tempdir().unwrap());
        std::fs::create_dir(desk.path("no-programs")).unwrap();
        desk
    }

    /// One with a recording in `rec`, and symbols for it in `syms`.
    fn with_recording() -> Desk {
        let desk = Desk::new();
        let trace = fixture("symbolize/multi.pftrace");
        std::fs::create_dir(desk.path("syms")).unwrap();
        std::fs::copy(
            fixture("symbolize/alloc_test"),
            desk.path("syms/alloc_test"),
        )
        .unwrap();
        let trace = trace.to_str().unwrap();
        desk.expect(0, &format!("convert {trace} --no-symbolize -o rec"));
        std::fs::copy(trace, desk.path("rec/raw-trace")).unwrap();
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    fn command(&self, args: impl Arguments) -> Command {
        let mut command = crate::program::heaptap();
        command
            .args(args.list())
            .current_dir(self.0.path())
            .env("HEAPTAP_CACHE_DIR", self.path("cache"))
            .env("HEAPTAP_STATE_DIR", self.path("state"))
            .env("PATH", self.path("no-programs"));
        command
    }

    fn run(&self, args: impl Arguments) -> Ended {
        Ended::from_command(&mut self.command(args))
    }

    fn expect(&self, code: i32, args: impl Arguments) -> Ended {
        let ended = self.run(args);
        ended.assert_code(code);
        ended
    }

    /// Returns the failure of a command, from its document.
    fn failure(&self, code: i32, args: impl Arguments) -> Value {
        self.expect(code, ("--json", args)).json()["error"].clone()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Symbolizes `rec` with symbols from `syms` only.
#[cfg(unix)]
const NAMES: [&str; 5] = ["symbolize", "rec", "--no-discover", "--symbols", "syms"];

#[cfg(unix)]
use std::os::unix::fs::symlink;

#[cfg(unix)]
#[test]
fn names_for_a_directory_replace_its_links_and_keep_what_they_lead_to() {
    let desk = Desk::with_recording();
    let profiles = files(&desk.path("rec")).into_iter();
    let profiles: Vec<String> = profiles.filter(|name| name.ends_with(".pb.gz")).collect();
    assert!(!profiles.is_empty());
    std::fs::write(desk.path("precious"), "precious").unwrap();
    let written = profiles.iter().map(String::as_str);
    let written: Vec<&str> = written.chain(["symbols", "symbolized-trace"]).collect();
    for name in &written {
        let path = desk.path("rec").join(name);
        let _ = std::fs::remove_file(&path);
        symlink("../precious", &path).unwrap();
    }
    desk.expect(0, &NAMES);
    assert_eq!(desk.read("precious"), b"precious");
    for name in written {
        let path = desk.path("rec").join(name);
        assert!(path.is_file() && !path.is_symlink(), "{name}");
    }
    let parts = [desk.read("rec/raw-trace"), desk.read("rec/symbols")].concat();
    assert!(desk.read("rec/symbolized-trace") == parts);
}

#[cfg(unix)]
#[test]
fn a_directory_without_a_manifest_is_written_to_in_the_same_way() {
    let desk = Desk::with_recording();
    std::fs::remove_file(desk.path("rec/manifest.json")).unwrap();
    std::fs::write(desk.path("precious"), "precious").unwrap();
    for name in ["symbols", "symbolized-trace"] {
        symlink("../precious", desk.path("rec").join(name)).unwrap();
    }
    desk.expect(0, &NAMES);
    assert_eq!(desk.read("precious"), b"precious");
    let parts = [desk.read("rec/raw-trace"), desk.read("rec/symbols")].concat();
    assert!(desk.read("rec/symbolized-trace") == parts);
}

#[cfg(unix)]
#[test]
fn nothing_comes_into_a_directory_through_its_links() {
    let desk = Desk::with_recording();
    std::fs::write(desk.path("secret"), "a private key").unwrap();
    symlink("../secret", desk.path("rec/deobfuscation-packets")).unwrap();
    desk.expect(0, &NAMES);
    let parts = [desk.read("rec/raw-trace"), desk.read("rec/symbols")].concat();
    assert!(
        desk.read("rec/symbolized-trace") == parts,
        "only its own files"
    );
    // Otherwise another trace of this host would be copied into the symbolized one, with its
    // profiles.
    for name in ["raw-trace", "manifest.json"] {
        let path = desk.path("rec").join(name);
        let moved = desk.path(name);
        std::fs::rename(&path, &moved).unwrap();
        symlink(&moved, &path).unwrap();
        let before: Vec<String> = files(&desk.path("rec"));
        let whole = desk.read("rec/symbolized-trace");
        let failure = desk.failure(8, &NAMES);
        assert_eq!(failure["kind"], "linked-file", "{failure}");
        assert_contains(failure["message"].as_str().unwrap(), name);
        assert_eq!(files(&desk.path("rec")), before);
        assert!(desk.read("rec/symbolized-trace") == whole);
        std::fs::remove_file(&path).unwrap();
        std::fs::rename(&moved, &path).unwrap();
    }
}

#[cfg(unix)]
#[test]
fn a_directory_of_java_heaps_that_is_a_link_is_not_written_to() {
    let desk = Desk::with_recording();
    let other = Desk::with_recording();
    symlink(other.path("rec"), desk.path("rec/java")).unwrap();
    let before = files(&other.path("rec"));
    let manifest = other.read("rec/manifest.json");
    let failure = desk.failure(8, &NAMES);
    assert_eq!(failure["kind"], "linked-file", "{failure}");
    assert_eq!(files(&other.path("rec")), before);
    assert_eq!(other.read("rec/manifest.json"), manifest);
}

#[cfg(unix)]
#[test]
fn a_page_replaces_a_link_of_a_directory_and_follows_one_that_was_typed() {
    let desk = Desk::with_recording();
    desk.expect(0, "report rec -o other.html");
    let other = desk.read("other.html");
    symlink("../other.html", desk.path("rec/report.html")).unwrap();
    desk.expect(0, "report rec");
    assert!(desk.read("other.html") == other, "it was not followed");
    assert!(!desk.path("rec/report.html").is_symlink());
    std::fs::remove_file(desk.path("rec/report.html")).unwrap();
    symlink("../new.html", desk.path("rec/report.html")).unwrap();
    desk.expect(0, "report rec");
    assert!(
        !desk.path("new.html").exists(),
        "nor where it leads nowhere"
    );
    std::fs::write(desk.path("mine.html"), "").unwrap();
    symlink("mine.html", desk.path("typed.html")).unwrap();
    desk.expect(0, "report rec -o typed.html");
    assert!(desk.path("typed.html").is_symlink());
    assert!(
        !desk.read("mine.html").is_empty(),
        "who types a link means its file"
    );
}

/// Keeps only the profiles of the recording: `open` shows their page.
fn without_traces(desk: &Desk) {
    for trace in ["raw-trace", "symbolized-trace"] {
        let _ = std::fs::remove_file(desk.path("rec").join(trace));
    }
}

#[test]
fn only_the_page_that_heaptap_wrote_into_a_directory_is_opened() {
    let desk = Desk::with_recording();
    let open = ["open", "rec", "--print-url"];
    desk.expect(0, "report rec");
    // Later names do not change the page.
    desk.expect(0, "symbolize rec --no-discover --symbols syms");
    without_traces(&desk);
    let opened = desk.expect(0, &open);
    assert!(opened.stdout.ends_with("/rec/report.html\n"));
    let page = text(&desk.read("rec/report.html"));
    let hostile = page.replace("</body>", "<script>fetch('//evil.example')</script></body>");
    assert_ne!(page, hostile);
    std::fs::write(desk.path("rec/report.html"), &hostile).unwrap();
    let failure = desk.failure(8, &open);
    assert_eq!(failure["kind"], "page-unknown", "{failure}");
    let help = failure["help"].as_str().unwrap();
    assert_contains(&help, "`heaptap report rec --open`");
    desk.expect(0, "report rec");
    desk.expect(0, &open);
}

#[test]
fn trace_for_the_ui_needs_a_network_and_the_report_does_not() {
    let desk = Desk::with_recording();
    let open = ["open", "rec", "--print-url", "--page", "--timeout", "1ms"];
    let output = desk.command(&open).output().unwrap();
    let said = text(&output.stderr);
    let network = said.find("without the network: heaptap report rec --open");
    let wait = said.find("serving until");
    assert!(network.is_some() && network < wait, "{said}");
    assert_eq!(output.status.code(), Some(12), "{said}");
}

#[test]
fn a_page_in_a_directory_without_a_manifest_is_made_anew() {
    let desk = Desk::with_recording();
    desk.expect(0, "report rec");
    without_traces(&desk);
    std::fs::remove_file(desk.path("rec/manifest.json")).unwrap();
    let page = desk.path("rec/report.html");
    let hostile = text(&desk.read("rec/report.html")) + "<script>fetch('//evil.example')</script>";
    std::fs::write(&page, &hostile).unwrap();
    desk.expect(0, "open rec --print-url");
    assert!(!text(&desk.read("rec/report.html")).contains("evil.example"));
}

#[test]
fn a_recording_notes_its_page() {
    let lab = Lab::new("android=14,build=userdebug,speed=10");
    lab.expect(0, "record -n com.example.app -d 4s -o out");
    let page = std::fs::read(lab.work().join("out/report.html")).unwrap();
    let noted = lab.manifest("out")["page"].clone();
    assert_eq!(noted["file"], "report.html");
    use sha2::Digest as _;
    let sum = sha2::Sha256::digest(&page);
    let sum: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(noted["sha256"], sum);
}

// Windows finds its own programs without PATH.
#[cfg(unix)]
#[test]
fn a_page_that_no_browser_shows_is_named_and_a_failure() {
    let desk = Desk::with_recording();
    desk.expect(0, "report rec");
    let failure = desk.failure(11, "open rec/report.html");
    assert_eq!(failure["kind"], "no-browser", "{failure}");
    let message = failure["message"].as_str().unwrap();
    assert_contains(&message, "/rec/report.html");
    assert_contains(&message, "file:///");
    for args in [
        &["open", "rec/report.html"][..],
        &["report", "rec", "--open"],
    ] {
        desk.expect(11, args)
            .assert_stderr("opening file:///")
            .assert_stderr("error: cannot start a browser");
    }
}

/// Returns a program for `BROWSER` that runs `script`.
#[cfg(unix)]
fn browser(desk: &Desk, script: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let path = desk.path("browser");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[cfg(unix)]
#[test]
fn a_browser_that_fails_is_told_and_one_that_does_not_is_given_the_page() {
    let desk = Desk::with_recording();
    desk.expect(0, "report rec");
    let open = |script: &str| {
        let mut command = desk.command("open rec/report.html");
        command.env("BROWSER", browser(&desk, script));
        command.output().unwrap()
    };
    let failed = open("exit 3");
    assert_eq!(failed.status.code(), Some(11));
    let told = text(&failed.stderr);
    assert_contains(&told, "browser: exit status: 3");
    let shown = open("echo \"$1\" > shown");
    assert_eq!(shown.status.code(), Some(0), "{}", text(&shown.stderr));
    assert!(text(&desk.read("shown")).ends_with("/rec/report.html\n"));
}

/// Requests `url` like a browser; returns the head and the body of the answer.
#[cfg(unix)]
fn ask(url: &str) -> (String, Vec<u8>) {
    use std::io::{Read as _, Write as _};
    let (host, path) = url
        .strip_prefix("http://")
        .unwrap()
        .split_once('/')
        .unwrap();
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .expect("a head");
    let body = answer.split_off(end + 4);
    (text(&answer), body)
}

#[cfg(unix)]
#[test]
fn the_browser_is_started_without_the_secret_and_without_a_file() {
    let desk = Desk::new();
    let trace = fixture("conversions/c_cont.pftrace");
    // Opening a pipe waits for the other end.
    let pipe = desk.path("pipe");
    let made = Command::new("mkfifo")
        .arg(&pipe)
        .status()
        .expect("there is mkfifo");
    assert!(made.success());
    let mut command = desk.command(&format!("open {} --page", trace.display()));
    command.env("BROWSER", browser(&desk, "printf '%s\\n' \"$@\" > pipe"));
    // A browser from a snap or a flatpak cannot read temporary files.
    std::fs::create_dir(desk.path("tmp")).unwrap();
    command.env("TMPDIR", desk.path("tmp"));
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let started_with = std::fs::read_to_string(&pipe).unwrap();
    let once = started_with.trim_end();
    assert_eq!(std::fs::read_dir(desk.path("tmp")).unwrap().count(), 0);
    let (head, _) = ask(once);
    assert!(head.starts_with("HTTP/1.1 303 "), "{head}");
    let mut lines = head.lines();
    let url = lines.find_map(|line| line.strip_prefix("location: "));
    let url = url.expect("a location");
    let secret = url.split('/').nth(3).unwrap();
    assert!(
        secret.len() == 32 && !once.contains(secret),
        "{once}: {url}"
    );
    let (again, _) = ask(once);
    assert!(again.starts_with("HTTP/1.1 404 "), "{again}");
    let handed = text(&ask(url).1);
    let file = handed
        .split("\"file\":\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next());
    let host = url.split('/').nth(2).unwrap();
    let (_, given) = ask(&format!("http://{host}{}", file.unwrap()));
    assert!(given == std::fs::read(&trace).unwrap());
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
}

#[test]
fn a_virtual_phone_is_not_left_alone_with_a_recording() {
    let desk = Desk::new();
    for command in [
        &["record", "-n", APP][..],
        &["dump", "-n", APP],
        &["dump", "-n", APP, "--hprof"],
    ] {
        let args = (command, "--virtual --detach -o out");
        let failure = desk.failure(2, &args);
        assert_eq!(failure["kind"], "option-conflict", "{command:?}: {failure}");
        let message = failure["message"].as_str().unwrap();
        assert_contains(&message, "ends with this command");
        assert!(!desk.path("out").exists(), "{command:?}");
    }
}

#[test]
fn nothing_is_promised_of_a_virtual_phone_that_is_gone() {
    let desk = Desk::new();
    let phone = "--virtual=speed=20,fault=pull-fail";
    let failure = desk.failure(5, &["record", phone, "-n", APP, "-d", "2s", "-o", "out"]);
    assert_eq!(failure["kind"], "trace-gone", "{failure}");
    let help = failure["help"].as_str().unwrap();
    assert_contains(&help, "ended with this command");
    assert!(!failure.to_string().contains("heaptap stop"), "{failure}");
}

#[test]
fn the_demo_announces_nothing_that_cannot_begin() {
    let desk = Desk::new();
    std::fs::create_dir(desk.path("full")).unwrap();
    std::fs::write(desk.path("full/mine"), "").unwrap();
    let ended = desk.expect(2, "demo -o full");
    assert!(
        ended
            .stderr
            .starts_with("error: the directory full is not empty"),
        "{ended}"
    );
    desk.expect(0, "licenses -h").refute_stdout("\n\n\n");
}

#[test]
fn a_try_on_a_virtual_phone_advises_nothing_about_a_phone_that_is_gone() {
    let desk = Desk::new();
    let phone = "--virtual=android=14,build=userdebug,speed=20,fault=pull-flip";
    let ended = desk.expect(5, &format!("doctor --try {phone} -o out"));
    ended.refute_stdout("heaptap stop");
    let gone = "the virtual phone ended with this command";
    assert_eq!(ended.stdout.matches(gone).count(), 1, "{ended}");
    let document = std::fs::read_to_string(desk.path("out").join("try.json")).unwrap();
    let document: Value = serde_json::from_str(&document).unwrap();
    let mut steps = document["steps"].as_array().unwrap().iter();
    assert!(steps.all(|step| step["sessions"] == serde_json::json!([])));
}

#[test]
fn processes_of_different_names_are_not_compared_in_silence() {
    let desk = Desk::new();
    for (name, out) in [
        ("com.example.app", "app"),
        ("com.example.app:service", "service"),
    ] {
        let args = format!("record --virtual=speed=20 -n {name} -d 2s -o {out}");
        desk.expect(0, &args);
    }
    let ended = desk.expect(0, "diff app service --fail-over 1gb");
    let message = "com.example.app is compared with com.example.app:service, another process";
    ended.assert_stderr(message);
    // Profiles without a trace are reported as such.
    for entry in std::fs::read_dir(desk.path("app")).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if !name.ends_with(".pb.gz") {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
    let failure = desk.failure(8, "convert app -o again");
    assert_eq!(failure["kind"], "no-trace-inside", "{failure}");
    assert!(failure["help"].as_str().unwrap().contains("`heaptap top`"));
}

/// Parses one of heaptap's command lines with `sh`.
#[cfg(unix)]
fn pasted(desk: &Desk, line: &str) -> Vec<String> {
    let script = format!("heaptap() {{ printf '%s\\0' \"$@\"; }}\n{line}");
    let ran = Command::new("sh")
        .args(["-c", &script])
        .current_dir(desk.0.path())
        .output();
    let ran = ran.expect("there is sh");
    assert!(
        ran.status.success() && ran.stderr.is_empty(),
        "{line}: {ran:?}"
    );
    let all = String::from_utf8_lossy(&ran.stdout).into_owned();
    let all = all.strip_suffix('\0').unwrap_or(&all);
    all.split('\0').map(str::to_owned).collect()
}

/// Directory names that a shell splits or executes.
#[cfg(unix)]
const HARD: [&str; 9] = [
    "my recording",
    "it's",
    "a$(touch ran)$HOME",
    "a;touch ran",
    "a`touch ran`",
    "say \"so\" \\n 100%",
    "a\ntouch ran\x1b[31m",
    "-n",
    "*",
];

#[cfg(unix)]
#[test]
fn a_printed_command_works_when_it_is_pasted() {
    let desk = Desk::new();
    for name in HARD {
        // Reported before the directory is read.
        let which = format!("{name}@last");
        let failure = desk.failure(2, &["open", "--", &which]);
        let line = failure["help"].as_str().unwrap();
        let typed = match name.starts_with('-') {
            true => format!("./{which}"),
            false => which,
        };
        assert_eq!(pasted(&desk, line), ["report", &typed, "--open"], "{line}");
    }
    assert!(!desk.path("ran").exists());
}

#[cfg(unix)]
#[test]
fn what_is_suggested_next_works_when_it_is_pasted() {
    let desk = Desk::with_recording();
    for name in HARD {
        if desk.path("rec").exists() {
            std::fs::rename(desk.path("rec"), desk.path("now")).unwrap();
        }
        let directory = desk.path(name);
        std::fs::rename(desk.path("now"), &directory).unwrap();
        let typed = match name.starts_with('-') {
            true => format!("./{name}"),
            false => name.to_owned(),
        };
        let told = desk.expect(0, &["top", "--", name]).stderr;
        let next = told.lines().find_map(|line| line.strip_prefix("next: "));
        let next = next.unwrap_or_else(|| panic!("{name:?}: {told}"));
        let mut lines = next.split(" · ");
        let line = lines.next().unwrap();
        assert_eq!(pasted(&desk, line), ["top", &typed, "--tree"], "{line}");
        // The summary of a recording suggests several.
        let args = ["symbolize", "--no-discover", "--", name];
        let told = desk.expect(0, &args).stderr;
        let commands: Vec<&str> = told
            .lines()
            .filter_map(|line| Some(line.trim_start()).filter(|line| line.starts_with("heaptap ")))
            .collect();
        assert!(!commands.is_empty(), "{told}");
        for line in commands {
            let words = pasted(&desk, line);
            let (input, _) = words[1].rsplit_once('@').unwrap_or((&words[1], ""));
            assert!(
                input == typed || input == format!("{typed}/report.html"),
                "{line}: {words:?}"
            );
        }
        std::fs::rename(&directory, desk.path("now")).unwrap();
    }
    assert!(!desk.path("ran").exists());
}

/// Copies a directory of files.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

#[test]
fn files_that_are_not_what_was_recorded_are_told() {
    let desk = Desk::new();
    let dump = [
        "dump",
        "--virtual=speed=20",
        "-n",
        APP,
        "--hprof",
        "-o",
        "java",
    ];
    desk.expect(0, &dump);
    let hprof = |directory: &str| {
        let entries = std::fs::read_dir(desk.path(directory)).unwrap().flatten();
        let mut paths = entries.map(|entry| entry.path());
        paths
            .find(|path| path.extension().is_some_and(|e| e == "hprof"))
            .unwrap()
    };
    copy(&desk.path("java"), &desk.path("changed"));
    let mut bytes = std::fs::read(hprof("changed")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(hprof("changed"), bytes).unwrap();
    desk.expect(0, "top java");
    let ended = desk.expect(6, "top changed");
    let told = ended.stderr;
    assert_contains(&told, "its content differs from the recorded one");
    // Profiles without a trace: one replaces another.
    let record = "record --virtual=speed=20 -n com.example.app -d 4s -c 1s -o rec";
    desk.expect(0, record);
    for name in ["raw-trace", "symbolized-trace"] {
        let _ = std::fs::remove_file(desk.path("rec").join(name));
    }
    desk.expect(0, "top rec");
    let profile = |number: u32| {
        let entries = std::fs::read_dir(desk.path("rec")).unwrap().flatten();
        let mut paths = entries.map(|entry| entry.path());
        let start = format!("heap_dump.{number}.");
        let is_it = |path: &PathBuf| {
            path.file_name()
                .unwrap()
                .to_str()
                .unwrap()
                .starts_with(&start)
        };
        paths.find(is_it).unwrap()
    };
    std::fs::copy(profile(1), profile(3)).unwrap();
    let ended = desk.expect(6, "top rec@3");
    let told = ended.stderr;
    assert_contains(&told, "its totals differ from those of the dump");
}

#[test]
fn names_that_only_the_profiles_have_are_not_overwritten() {
    let desk = Desk::new();
    desk.expect(0, "demo -o demo");
    copy(&desk.path("demo"), &desk.path("named"));
    let profile = "demo/heap_dump.7.6201.libc.malloc.pb.gz";
    let before = desk.read(profile);
    for name in ["symbolized-trace", "symbols", "deobfuscation-packets"] {
        std::fs::remove_file(desk.path("demo").join(name)).unwrap();
    }
    let failure = desk.failure(8, "symbolize demo");
    assert_eq!(failure["kind"], "fewer-symbols", "{failure}");
    assert!(desk.read(profile) == before);
    // A function has a name on one side only, which is not growth.
    let check = ["--fail-over", "1mb", "--focus", "EventHistory"];
    desk.expect(12, ("diff demo@before named@after", &check))
        .assert_stderr("one side lacks symbols")
        .refute_stderr("warning: grew");
    desk.expect(9, ("diff named@before named@after", &check))
        .assert_stderr("grew by more");
}

#[test]
fn recordings_in_one_archive_are_told_and_no_check_passes() {
    let lab = Lab::new("android=14,build=userdebug,speed=20");
    for directory in ["one", "two"] {
        lab.expect(0, &recording(directory, "-d 2s --no-report"));
    }
    for (members, told) in [(["one", "two"], true), (["one", "one"], false)] {
        let file = std::fs::File::create(lab.work().join("both.tar")).expect("a file");
        let mut tar = tar::Builder::new(file);
        for (directory, name) in members.iter().zip(["a", "b"]) {
            let trace = lab.work().join(directory).join("raw-trace");
            tar.append_path_with_name(trace, name).expect("packed");
        }
        tar.finish().expect("packed");
        let check = "diff both.tar@1 both.tar@last --fail-over 1TiB";
        let ended = lab.run(check);
        assert_eq!(ended.stderr.contains("in 2 recordings"), told, "{ended}");
        assert_eq!(ended.code() == Some(12), told, "{ended}");
        let listed = lab.expect(0, "top both.tar");
        assert_eq!(listed.stderr.contains("in 2 recordings"), told, "{listed}");
    }
}
