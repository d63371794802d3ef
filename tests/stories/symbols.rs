//! Symbolizing a trace with files of symbols: the right ones, the wrong ones, or none.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use virtual_phone::{Abi, unstripped_libraries};

use crate::lab::{APP, Lab, files, recording};
use crate::program::{Arguments, Ended, assert_contains};

/// Traces and programs, recorded and built for heaptap.
fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

/// Three processes; the frames of one program (`alloc_strip`) have no names.
fn multi() -> PathBuf {
    fixtures().join("symbolize/multi.pftrace")
}

/// The unstripped build of `alloc_strip`.
fn program() -> Vec<u8> {
    std::fs::read(fixtures().join("symbolize/alloc_test")).unwrap()
}

/// A work directory, with a directory `syms` for symbols and its own cache.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Desk {
        let desk = Desk(tempfile::tempdir().unwrap());
        std::fs::create_dir(desk.path("syms")).unwrap();
        desk
    }

    /// One with the right symbols.
    fn with_symbols() -> Desk {
        let desk = Desk::new();
        desk.put("syms/alloc_test", &program());
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path(name), bytes).unwrap();
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
            .env("HEAPTAP_STATE_DIR", self.path("state"));
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

    fn symbolization(&self, directory: &str) -> Value {
        let text = self.read(&format!("{directory}/manifest.json"));
        serde_json::from_slice::<Value>(&text).unwrap()["symbolization"].clone()
    }

    /// Returns the profiles of a directory, by name.
    fn profiles(&self, directory: &str) -> Vec<(String, Vec<u8>)> {
        let profiles = files(&self.path(directory)).into_iter();
        profiles
            .filter(|name| name.ends_with(".pb.gz"))
            .map(|name| {
                let bytes = self.read(&format!("{directory}/{name}"));
                (name, bytes)
            })
            .collect()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Converts `multi` into `out`, with symbols from `syms` only.
fn convert<'a>(trace: &'a str, out: &'a str) -> Vec<&'a str> {
    vec![
        "convert",
        trace,
        "--no-discover",
        "--symbols",
        "syms",
        "-o",
        out,
    ]
}

fn arg(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

#[test]
fn frames_have_functions_files_and_lines() {
    let desk = Desk::with_symbols();
    let output = desk.expect(0, &convert(&arg(&multi()), "out"));
    let names = desk.symbolization("out");
    let libraries = names["libraries_named"].as_array().unwrap();
    assert_eq!(libraries.len(), 2, "alloc_test and alloc_strip: {names:#}");
    for library in libraries {
        assert_eq!(library["files"][0]["debug_info"], "dwarf");
        assert_eq!(library["files"][0]["verified"], true);
        assert_eq!(library["files"][0]["addresses"], library["addresses"]);
    }
    assert!(names["frames_with_lines"].as_u64() > Some(30), "{names:#}");
    output.assert_stdout("leak_large  ← leak_parent ← main");
    // A second run reads the cached symbols, which are equivalent.
    let profiles = desk.profiles("out");
    desk.expect(0, &convert(&arg(&multi()), "again"));
    assert_eq!(desk.profiles("again"), profiles);
}

#[test]
fn a_build_that_differs_is_not_used_and_said_so() {
    let desk = Desk::new();
    let mut other = program();
    let at = other
        .windows(3)
        .position(|w| w == [0x2a, 0xd9, 0x8e])
        .unwrap();
    other[at] = 0xff;
    desk.put("syms/alloc_strip", &other);
    let output = desk.expect(0, &convert(&arg(&multi()), "out"));
    let names = desk.symbolization("out");
    let missing = names["libraries_missing"].as_array().unwrap();
    let library = missing
        .iter()
        .find(|l| l["path"].as_str().unwrap().ends_with("/alloc_strip"))
        .unwrap();
    assert_eq!(
        library["build_id"],
        "2ad98e005d9b6c7c5253f214d75abd87e98763a5"
    );
    let near = &library["nearest"];
    assert_eq!(near["build_id"], "ffd98e005d9b6c7c5253f214d75abd87e98763a5");
    assert!(library["share"].as_f64() > Some(0.4), "{library:#}");
    output.assert_stderr("your build differs from the one on the device");
    output.assert_stderr("2ad98e005d9b6c7c5253f214d75abd87e98763a5");
}

#[test]
fn where_nothing_is_found_it_is_said_what_is_wanted_and_how_to_give_it() {
    let desk = Desk::new();
    let trace = arg(&multi());
    let output = desk.expect(0, &format!("symbolize {trace} --no-discover -o symbols"));
    assert_eq!(desk.read("symbols"), b"");
    let said = output.stderr;
    for part in [
        "found no symbols",
        "frames have no name",
        "alloc_strip  2ad98e005d9b6c7c5253f214d75abd87e98763a5",
        &format!("heaptap symbolize {trace} --symbols DIR"),
    ] {
        assert_contains(&said, part);
    }
    // A directory without these builds, which was named.
    std::fs::create_dir(desk.path("empty")).unwrap();
    let wrong = format!("symbolize {trace} --no-discover --symbols empty -o x");
    let said = desk.expect(6, &wrong).stderr;
    assert_contains(&said, "no symbols of these builds in empty");
    let quiet = format!("symbolize {trace} --no-discover -o again -q");
    let said = desk.expect(0, &quiet).stderr;
    assert!(!said.contains("have no name"), "a note: {said}");
}

#[test]
fn packets_behind_the_trace_are_as_good_as_symbols() {
    let desk = Desk::with_symbols();
    let trace = std::fs::read(multi()).unwrap();
    desk.put("raw", &trace);
    let places = ["--no-discover", "--symbols", "syms"];
    let with = |more: &'static str| (more, &places);
    desk.expect(0, with("symbolize raw -o symbols"));
    let symbols = desk.read("symbols");
    assert!(symbols.len() > 1000);
    // Alone, they are not the beginning of a trace.
    desk.expect(8, "top symbols")
        .assert_stderr("only names for a trace");
    let whole = [trace.clone(), symbols.clone()].concat();
    desk.put("whole", &whole);
    desk.expect(0, &convert("raw", "direct"));
    desk.expect(0, "convert whole --no-symbolize -o appended");
    assert_eq!(desk.profiles("direct"), desk.profiles("appended"));
    // Standard output is used if it is not a terminal.
    let piped = desk.command(with("symbolize raw")).output().unwrap();
    assert_eq!(piped.status.code(), Some(0), "{}", text(&piped.stderr));
    assert_eq!(piped.stdout, symbols);
    // --whole-trace writes all of it.
    desk.expect(0, with("symbolize raw --whole-trace -o into"));
    assert_eq!(desk.read("into"), whole);
    // Symbolized frames are not looked up again.
    let again = desk.expect(0, with("symbolize whole --json -o more"));
    let document = again.json();
    assert_eq!(document["addresses"], 0, "{document:#}");
    assert_eq!(desk.read("raw"), trace, "the trace stays as it is");
}

#[test]
fn a_trace_comes_and_goes_through_pipes() {
    let desk = Desk::with_symbols();
    let trace = std::fs::read(multi()).unwrap();
    let pipe = |args: &str| {
        let mut command = desk.command(args);
        let mut child = command
            .args(["--no-discover", "--symbols", "syms"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let bytes = trace.clone();
        let feeder = std::thread::spawn(move || stdin.write_all(&bytes));
        let output = child.wait_with_output().unwrap();
        feeder.join().unwrap().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        output.stdout
    };
    let symbols = pipe("symbolize - -o -");
    assert!(symbols.len() > 1000);
    let whole = pipe("symbolize - --whole-trace -o -");
    assert_eq!(whole, [trace.clone(), symbols].concat());
}

#[test]
fn a_hostile_file_beside_good_ones_harms_nobody() {
    let desk = Desk::with_symbols();
    let good = program();
    // Truncated, with sections beyond the end; random bytes after a magic number; an enormous name.
    desk.put("syms/cut", &good[..good.len() / 2]);
    desk.put(
        "syms/noise.so",
        &[b"\x7fELF\x02\x01\x01".as_slice(), &[0xff; 4096]].concat(),
    );
    desk.put("syms/alloc_strip", b"MODULE Linux x86_64 zzz\nFUNC");
    desk.put("syms/symbols.zip", b"PK\x03\x04 and so on");
    std::fs::create_dir(desk.path("syms/dir.so")).unwrap();
    // The right build ID, but invalid debug information.
    let mut broken = good.clone();
    let info = 0x30cf..0x30cf + 0xd2c;
    broken[info].fill(0xa5);
    std::fs::create_dir(desk.path("first")).unwrap();
    desk.put("first/alloc_strip", &broken);
    let trace = arg(&multi());
    let mut args = vec!["convert", &*trace, "--symbols", "first"];
    let mut rest = convert("", "out");
    args.extend(rest.drain(2..));
    let output = desk.expect(0, &args);
    let names = desk.symbolization("out");
    assert!(names["frames_with_lines"].as_u64() > Some(30), "{names:#}");
    let said = output.stdout;
    assert_contains(&said, "leak_large  ← leak_parent ← main");
    let said = output.stderr;
    assert_contains(&said, "alloc_strip: a part of ");
    assert_contains(&said, ".debug_info is damaged");
}

#[test]
fn an_output_is_whole_or_not_there() {
    let desk = Desk::with_symbols();
    let trace = std::fs::read(multi()).unwrap();
    desk.put("raw", &trace);
    // The input itself is never overwritten.
    let output = desk.expect(2, "symbolize raw --whole-trace -o ./raw --json");
    let document = output.json();
    assert_eq!(document["error"]["kind"], "output-is-input");
    assert_eq!(desk.read("raw"), trace);
    // Nor is another trace, without `--force`; packets are.
    desk.put("other", &trace);
    desk.expect(2, "symbolize raw -o other");
    assert_eq!(desk.read("other"), trace);
    let places = ["--no-discover", "--symbols", "syms"];
    desk.expect(0, ("symbolize raw -o other --force", &places));
    let symbols = desk.read("other");
    assert!(!symbols.is_empty() && symbols != trace);
    desk.expect(0, ("symbolize raw -o other", &places));
    assert_eq!(desk.read("other"), symbols);
    // Files of a recording are never overwritten.
    std::fs::create_dir(desk.path("rec")).unwrap();
    desk.put("rec/raw-trace", &trace);
    for force in [&[][..], &["--force"]] {
        desk.expect(2, ("symbolize rec -o rec/raw-trace", force));
    }
    assert_eq!(desk.read("rec/raw-trace"), trace);
    // A missing directory, and a file that is not a trace, do not leave output.
    desk.expect(11, "symbolize raw -o nowhere/symbols");
    desk.put("text", b"no trace at all");
    desk.expect(8, "symbolize text -o symbols");
    assert!(!desk.path("symbols").exists());
    // Killed while it waits for the rest of its input.
    let mut child = desk
        .command("symbolize - --whole-trace -o whole")
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&trace[..trace.len() / 2]).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let left = files(desk.0.path());
    assert!(!left.iter().any(|name| name.contains("whole")), "{left:?}");
    assert!(
        !left.iter().any(|name| name.starts_with(".heaptap")),
        "{left:?}"
    );
}

#[test]
fn what_follows_a_cut_trace_is_found_by_every_reader() {
    let desk = Desk::with_symbols();
    let mut trace = std::fs::read(multi()).unwrap();
    // The length of a missing packet: a reader would read the symbols as its contents.
    let whole = trace.len();
    trace.extend([0x0a, 0xff, 0x7f, 0x01]);
    desk.put("raw", &trace);
    let args = "symbolize raw --whole-trace -o into --no-discover --symbols syms";
    // The input is damaged, and the intact part is saved.
    desk.expect(6, args);
    let into = desk.read("into");
    assert_eq!(into[..whole], trace[..whole]);
    assert_eq!(
        into[whole..whole + 3],
        [0x0a, into[whole + 1], into[whole + 2]]
    );
    assert!(into.len() > whole + 1000);
    desk.expect(0, "symbolize into -o none --no-discover");
}

/// The unstripped libraries of the app on the virtual phone, in a directory.
fn app_symbols(directory: &Path) {
    std::fs::create_dir_all(directory).unwrap();
    for (name, bytes) in unstripped_libraries(Abi::Arm64) {
        std::fs::write(directory.join(name), bytes).unwrap();
    }
}

/// Time runs faster on the phone, so a story is short.
const FAST: &str = "android=14,build=userdebug,speed=10,stripped=yes,names=exported";

#[test]
fn a_recording_without_names_gets_them_later() {
    let lab = Lab::new(FAST);
    // A mapping file of another program: reported until it is left out.
    std::fs::write(lab.work().join("other.txt"), "no.Such -> zz.zz:\n").unwrap();
    let record = recording(
        "out",
        "-d 4s -c 1500 --no-discover --pull-libs never --mapping other.txt",
    );
    lab.expect(0, &record);
    let before = lab.manifest("out");
    let of_maps = |manifest: &Value| {
        let warnings = manifest["warnings"].as_array().unwrap().clone();
        let kinds = warnings.into_iter().map(|w| w["kind"].clone());
        kinds.filter(|kind| kind == "mapping-unused").count()
    };
    assert_eq!(of_maps(&before), 1, "{before:#}");
    let raw = std::fs::read(lab.work().join("out/raw-trace")).unwrap();
    assert!(before["symbolization"]["frames_unnamed"].as_u64() > Some(0));
    assert!(!lab.work().join("out/symbols").exists());
    // All commands suggest how to add names.
    let remedy = "heaptap symbolize out --symbols DIR";
    for args in [
        &["top", "out"][..],
        &["leaks", "out"],
        &["diff", "out@1", "out@last"],
    ] {
        let ended = lab.expect(0, args);
        assert_eq!(ended.stderr.matches(remedy).count(), 1, "{ended}");
    }
    let warnings = lab.expect(0, "top out --json").json()["warnings"].clone();
    let mut warnings = warnings.as_array().unwrap().iter();
    assert!(warnings.any(|w| w["kind"] == "symbols-missing"));
    app_symbols(&lab.work().join("syms"));
    // A page that is not in the manifest also has the old names.
    let page = lab.work().join("out/report.html");
    std::fs::write(&page, "x").unwrap();
    let ended = lab.expect(0, "symbolize out --no-discover --symbols syms");
    std::fs::remove_file(&page).unwrap();
    let told = "still has the earlier names; to write it again, run `heaptap report out`";
    ended.assert_stderr(told);
    let after = lab.manifest("out");
    assert_eq!(
        of_maps(&after),
        0,
        "what no longer holds is not said: {after:#}"
    );
    let read = |name: &str| std::fs::read(lab.work().join("out").join(name)).unwrap();
    assert_eq!(read("raw-trace"), raw, "{ended}");
    // The mapping of another program named nothing, so it is not stored.
    assert!(!lab.work().join("out/deobfuscation-packets").exists());
    let parts = [raw, read("symbols")].concat();
    assert!(read("symbolized-trace") == parts, "{ended}");
    let unnamed = |manifest: &Value| manifest["symbolization"]["frames_unnamed"].as_u64();
    assert!(unnamed(&after) < unnamed(&before), "{after:#}");
    assert!(after["symbolization"]["frames_with_lines"].as_u64() > Some(3));
    for key in [
        "session", "device", "targets", "steps", "outcome", "dumps", "trace",
    ] {
        assert_eq!(after[key], before[key], "{key}");
    }
    lab.assert_truth("out");
    lab.assert_tidy("out");
    // With fewer symbols the next time, existing names stay.
    let symbols = read("symbols");
    lab.expect(0, "symbolize out --no-discover");
    assert_eq!(read("symbols"), symbols);
    assert_eq!(unnamed(&lab.manifest("out")), unnamed(&after));
}

#[test]
fn a_part_of_a_recording_takes_nothing_from_what_was_made_of_all_of_it() {
    let lab = Lab::new(FAST);
    let record = recording("out", "-d 4s -c 1s --no-discover");
    lab.expect(0, &record);
    app_symbols(&lab.work().join("syms"));
    let symbolize = ["symbolize", "out", "--no-discover", "--symbols", "syms"];
    lab.expect(0, &symbolize);
    let path = |name: &str| lab.work().join("out").join(name);
    let cut = |name: &str| {
        let bytes = std::fs::read(path(name)).unwrap();
        std::fs::write(path(name), &bytes[..bytes.len() / 3]).unwrap();
    };
    let all = || -> Vec<(String, Vec<u8>)> {
        let names = files(&path("")).into_iter();
        names
            .map(|name| (name.clone(), std::fs::read(path(&name)).unwrap()))
            .collect()
    };
    let whole = lab.manifest("out");

    // The symbolized copy is truncated: this is reported once, the complete profiles are used, and
    // the copy is recreated from the complete trace.
    cut("symbolized-trace");
    let top = lab.expect(6, "top out");
    let remedy = "its end is missing; run `heaptap symbolize out` to write it again";
    top.assert_stderr(remedy);
    top.refute_stderr("still being written");
    // The first third can have a dump.
    let file = lab.run("top out/symbolized-trace");
    assert!(matches!(file.code(), Some(6 | 8)), "{file}");
    file.assert_stderr("its end is missing");
    // Its names are in a separate file.
    lab.expect(0, "symbolize out --no-discover");
    let again = lab.manifest("out");
    assert_eq!(
        (&again["dumps"], &again["symbolization"]["frames_unnamed"]),
        (&whole["dumps"], &whole["symbolization"]["frames_unnamed"])
    );
    lab.assert_truth("out");
    // So is a copy with a changed byte, without advice to do what is being done.
    let copy = std::fs::read(path("symbolized-trace")).unwrap();
    let mut flipped = copy.clone();
    flipped[std::fs::read(path("raw-trace")).unwrap().len() / 2] ^= 0x40;
    std::fs::write(path("symbolized-trace"), &flipped).unwrap();
    lab.expect(0, "symbolize out --no-discover")
        .refute_stderr("heaptap symbolize out`");
    assert!(std::fs::read(path("symbolized-trace")).unwrap() == copy);

    // One flipped bit: no figure of it can be trusted.
    std::fs::remove_file(path("symbolized-trace")).unwrap();
    let raw = std::fs::read(path("raw-trace")).unwrap();
    let mut changed = raw.clone();
    changed[raw.len() / 2] ^= 0x40;
    std::fs::write(path("raw-trace"), &changed).unwrap();
    let top = lab.expect(6, "top out");
    top.assert_stderr("differs from the recorded one");
    // Data after the end are ignored.
    std::fs::write(path("raw-trace"), [&raw[..], &[0x0a, 0x00]].concat()).unwrap();
    lab.expect(0, "top out");
    lab.expect(0, &symbolize);
    std::fs::remove_file(path("symbolized-trace")).unwrap();

    cut("raw-trace");
    let left = all();
    for args in [&symbolize[..], &["symbolize", "out", "--no-discover"]] {
        let refused = lab.expect(8, (args, "--json"));
        assert_eq!(refused.error()["kind"], "other-trace", "{refused}");
        assert!(all() == left, "{refused}");
    }
    // The profiles are complete, so they are used as without the trace.
    for command in ["top", "leaks"] {
        lab.expect(6, &[command, "out"])
            .assert_stderr("are from the *.pb.gz files");
    }
    lab.run("top out/raw-trace")
        .assert_stderr("next to it have all dumps");
    lab.run("convert out -o again --no-discover");
    assert_eq!(lab.manifest("again")["outcome"]["complete"], false);

    // Without a trace, all of its profiles are used instead.
    std::fs::remove_file(path("raw-trace")).unwrap();
    let diff = ["diff", "out@1", "out@last", "--fail-over", "1GiB"];
    lab.expect(0, &diff);
    let profile = files(&path("")).into_iter();
    let last = profile.filter(|name| name.ends_with(".pb.gz")).max();
    std::fs::remove_file(path(&last.unwrap())).unwrap();
    lab.expect(12, &diff)
        .assert_stderr("missing from the directory");
    for last in ["out@last", "out@end"] {
        lab.expect(6, &["top", last])
            .assert_stderr("missing from the directory");
    }
    let same = "diff out@1 out@1 --fail-over 1GiB";
    lab.expect(12, same);
}

#[test]
fn record_names_frames_and_leaves_the_packets() {
    let lab = Lab::new(FAST);
    app_symbols(&lab.work().join("syms"));
    let names = ["--no-discover", "--pull-libs", "never", "--symbols", "syms"];
    let record = ["record", "-n", APP, "-d", "4s", "-o", "out"];
    let ended = lab.expect(0, (&record, &names));
    let manifest = lab.manifest("out");
    assert!(
        manifest["symbolization"]["frames_with_lines"].as_u64() > Some(3),
        "{ended}"
    );
    let read = |name: &str| std::fs::read(lab.work().join("out").join(name)).unwrap();
    assert_eq!(
        read("symbolized-trace"),
        [read("raw-trace"), read("symbols")].concat()
    );
    lab.assert_truth("out");
    lab.assert_tidy("out");
}

#[test]
fn who_collects_names_frames_as_whoever_began_meant_to() {
    let lab = Lab::new(FAST);
    app_symbols(&lab.work().join("syms"));
    let names = ["--no-discover", "--pull-libs", "never", "--symbols", "syms"];
    let record = ["record", "-n", APP, "-o", "out", "--detach"];
    lab.expect(0, (&record, &names));
    lab.expect(0, "stop");
    let manifest = lab.manifest("out");
    let files = &manifest["symbolization"]["libraries_named"][0]["files"];
    assert_eq!(files[0]["place"], "symbols", "{manifest:#}");
    assert!(lab.work().join("out/symbolized-trace").is_file());
}
