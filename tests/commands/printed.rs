//! Exact output for recorded inputs: stderr, then stdout, then the exit code, as written to a pipe.
//! `snapshots/` has the texts. After an intended change, run the tests with `INSTA_UPDATE=always`
//! and review the difference.

use std::io::{Cursor, Read as _};
use std::path::{MAIN_SEPARATOR, Path, PathBuf};
use std::process::Output;

use crate::program::heaptap;

/// Output of a command, split at spaces, that runs in `fixtures/`.
fn seen(command: &str) -> String {
    seen_in(&fixtures(), command, None)
}

fn fixtures() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"))
}

/// Output of a command that runs in `directory`, without the path of `directory`. `NAME=value` before the
/// command sets a variable. `state` replaces the state of this suite.
fn seen_in(directory: &Path, command: &str, state: Option<&Path>) -> String {
    let output = run(directory, command, state);
    let code = output.status.code().expect("it ends by itself");
    let path = format!("{}{MAIN_SEPARATOR}", directory.display());
    let [said, data] = [output.stderr, output.stdout].map(|bytes| {
        let text = String::from_utf8(bytes).expect("UTF-8");
        text.replace(&path, "")
    });
    let rule = "-".repeat(if said.is_empty() || data.is_empty() {
        0
    } else {
        8
    });
    let (variables, command) = variables_of(command);
    let variables = variables.map(|name_and_value| format!("{name_and_value} "));
    let variables: String = variables.collect();
    format!("$ {variables}heaptap {command}\n{said}{rule}\n{data}exit code {code}")
}

fn run(directory: &Path, command: &str, state: Option<&Path>) -> Output {
    let (variables, command) = variables_of(command);
    let variables = variables.filter_map(|variable| variable.split_once('='));
    heaptap()
        .args(command.split(' '))
        .envs(state.map(|state| ("HEAPTAP_STATE_DIR", state)))
        .envs(variables)
        .current_dir(directory)
        .output()
        .expect("heaptap runs")
}

/// Splits the variables from a command.
fn variables_of(command: &str) -> (impl Iterator<Item = &str>, &str) {
    let is_variable = |word: &&str| word.starts_with(|c: char| c.is_ascii_uppercase());
    let count = command.split(' ').take_while(is_variable).count();
    let rest = command.splitn(count + 1, ' ').last().unwrap_or_default();
    (command.split(' ').take(count), rest)
}

/// Output of a command that fails with the error `kind`, with `_` for `-`. It runs in `fixtures/`,
/// or in a temporary directory with `files` if it has any or a virtual device. Its own state keeps
/// sessions of other tests out.
fn failing(kind: &str, command: &str, files: &[(&str, Vec<u8>)]) -> String {
    let [own, state] =
        [(); 2].map(|()| tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder"));
    let state_path = Some(state.path());
    for (name, bytes) in files {
        let path = own.path().join(name);
        std::fs::create_dir_all(path.parent().expect("in it")).expect("made");
        std::fs::write(path, bytes).expect("written");
    }
    let fixtures = fixtures();
    let writes = command.contains("--virtual");
    let directory = match files {
        [] if !writes => fixtures.as_path(),
        _ => own.path(),
    };
    let document = run(directory, &format!("{command} --json"), state_path).stdout;
    let document: serde_json::Value = serde_json::from_slice(&document).expect("a document");
    assert_eq!(document["error"]["kind"], kind.replace('_', "-"));
    seen_in(directory, command, state_path)
}

/// The short help of every command. The complete help is docs/reference/cli.md.
#[test]
fn short_help() {
    let mut all = seen("-h");
    let list = |text: &str| -> Vec<String> {
        let commands = text.lines().filter(|line| line.starts_with("  "));
        let first = commands.filter_map(|line| line.split_whitespace().next());
        first.map(str::to_owned).collect()
    };
    let mut shown = 0;
    let words: std::collections::BTreeSet<String> = list(&all).into_iter().collect();
    let also = ["demo", "virtual-phone", "completions", "man", "licenses"];
    for word in words.iter().map(String::as_str).chain(also) {
        if word != "heaptap" {
            all = format!("{all}\n\n{}", seen(&format!("{word} -h")));
            shown += 1;
        }
    }
    assert!(shown >= 26, "{shown}");
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("short_help", all);
    });
}

/// A test for each name: compares the output of its command with its snapshot.
macro_rules! shows {
    ($($name:ident: $command:literal,)*) => {
        $(#[test]
        fn $name() {
            insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
                insta::assert_snapshot!(stringify!($name), seen($command));
            });
        })*
    };
}

/// A test for each kind of error, with `_` for `-`: its command fails with that kind, and the output
/// is compared with the snapshot. The files of the temporary directory follow in brackets.
macro_rules! fails {
    ($($kind:ident: $command:literal $([$($file:literal: $bytes:expr),*])?,)*) => {
        $(#[test]
        fn $kind() {
            let files: &[(&str, Vec<u8>)] = &[$($(($file, Vec::from($bytes))),*)?];
            let shown = failing(stringify!($kind), $command, files);
            insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
                insta::assert_snapshot!(stringify!($kind), shown);
            });
        })*
    };
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(fixtures().join(name)).expect("a fixture")
}

fn trace() -> Vec<u8> {
    fixture("conversions/c_cont.pftrace")
}

fn heap_graph() -> Vec<u8> {
    fixture("heap_graphs/graph_10k.pftrace.zst")
}

fn tar_of(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, bytes) in members {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        let added = archive.append_data(&mut header, name, bytes.as_slice());
        added.expect("packed");
    }
    archive.into_inner().expect("packed")
}

/// Text of /proc/PID/smaps.
const MAPPING: &str = "12c00000-12c01000 rw-p 00000000 00:00 0 [anon:dalvik-main space]\n\
                       Size:                  4 kB\n";
/// A ZIP without members.
const EMPTY_ZIP: &[u8; 22] = b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
/// The header of an HPROF without records.
const HPROF: &[u8; 31] = b"JAVA PROFILE 1.0.3\0\0\0\0\x04\0\0\0\0\0\0\0\0";

// The text of the system error differs between systems.
#[cfg(unix)]
fails! {
    config_unreadable: "record -n app --config conversions --print-config",
    host_write: "meminfo -n com.example.app --save nowhere/meminfo.txt --virtual",
    input_unreadable: "top conversions/c_cont.pftrac",
    journal_unwritable: "HEAPTAP_STATE_DIR=MANIFEST.toml status",
    mapping_unreadable: "top --mapping nowhere.txt heap_graphs/graph_10k.pftrace.zst",
    output_unwritable: "diff conversions/c_cont.pftrace@1 conversions/c_cont.pftrace@last -o nowhere/x.pb.gz",
    query_copy: "query conversions/c_cont.pftrace -o nowhere/x.sqlite",
    sql_unreadable: "query conversions/c_cont.pftrace --file nowhere.sql",
    temporary_unwritable: "TMPDIR=nowhere top hprof/leaklab-after.hprof.zst",
    timeline_unwritable: "provoke -n com.example.app home-and-back --timeline nowhere/memory.jsonl --virtual",
}

// Of the command line, before any input is read.
fails! {
    adb_server_address: "devices --adb-server 127.0.0.1:70000",
    bad_setting: "record -n app --set heapprofd.nope=1 --print-config",
    bad_target: "provoke -n a/b rotate --dry-run",
    bad_ui: "open conversions/c_cont.pftrace --ui nowhere --print-url",
    bad_value: "record -n app -i 0 --print-config",
    config_invalid: "record -n app --config app.yaml --print-config" ["app.yaml": b"intervall: 4k\n"],
    config_not_found: "record -n app --config leakhunt --print-config",
    no_target: "record --print-config",
    phone_spec: "devices --virtual=android=9",
    usage: "leaks",
}

// Of inputs that are not what they seem, or lack something.
fails! {
    hprof_header: "hprof info a.hprof" ["a.hprof": b"JAVA PROFILE 1.0.3\0"],
    hprof_not_android: "hprof conv hprof/leaklab-after.hprof.zst nowhere",
    hprof_unchanged: "symbolize hprof/leaklab-after.hprof.zst",
    input_damaged: "top trace.gz" ["trace.gz": b"\x1f\x8b\x08 and so on"],
    java_only: "report --heap native -o nowhere hprof/leaklab-after.hprof.zst",
    log_unreadable: "gc log.gz" ["log.gz": b"\x1f\x8b\x08 and so on"],
    manifest_invalid: "top rec" ["rec/manifest.json": b"{", "rec/raw-trace": trace()],
    manifest_too_new: "top rec" [
        "rec/manifest.json": b"{\"schema_version\": 9999}",
        "rec/raw-trace": trace()
    ],
    native_heap: "paths conversions/c_cont.pftrace --focus Activity",
    no_heap: "top conversions/no_target.pftrace",
    no_hprof_inside: "hprof info rec" ["rec/notes.txt": b"x"],
    no_java_heap: "paths conversions/no_target.pftrace --focus Activity",
    no_mappings: "smaps conversions/c_cont.pftrace",
    no_such_capture: "gc conversions/c_cont.pftrace@before..after",
    no_such_dump: "top conversions/c_cont.pftrace@99",
    no_such_heap: "top conversions/c_cont.pftrace --heap nope",
    no_such_meminfo: "meminfo rec" ["rec/raw-trace": trace()],
    no_such_object: "paths hprof/android-a.hprof.gz --object 0x1",
    no_such_process: "query -n nope heap_graphs/graph_10k.pftrace.zst .tables",
    no_such_view: "top conversions/c_cont.pftrace --view nope",
    no_threads: "top conversions/c_cont.pftrace --by thread",
    no_trace_inside: "top rec" ["rec/notes.txt": b"x"],
    not_a_heap: "top meminfo/synthetic_api34_d.txt",
    not_a_log: "gc hprof/leaklab-after.hprof.zst",
    not_a_meminfo: "meminfo gclog/gc_forms.log",
    not_a_trace: "symbolize meminfo/synthetic_api34_d.txt",
    not_an_hprof: "hprof info meminfo/synthetic_api34_d.txt",
    not_mappings: "smaps meminfo/synthetic_api34_d.txt",
    several_hprofs: "hprof info rec" ["rec/a.hprof": HPROF, "rec/b.hprof": HPROF],
    several_traces: "query traces.tar .tables" [
        "traces.tar": tar_of(&[("a.pftrace", trace()), ("b.pftrace", trace())])
    ],
    directory_not_fetched: "top rec" ["rec/.heaptap-session": b"k3v9xq2m\n"],
}

#[test]
fn a_java_heap_that_is_cut_off_has_one_message_in_all_commands() {
    let home = tempfile::tempdir().unwrap();
    let mut whole = Vec::new();
    let mut packed = zstd::Decoder::new(Cursor::new(heap_graph())).unwrap();
    packed.read_to_end(&mut whole).unwrap();
    // Before the end of its first packet of objects.
    std::fs::write(home.path().join("cut.pftrace"), &whole[..2000]).unwrap();
    for command in [
        "top",
        "paths --focus Activity",
        "smaps",
        "gc",
        "explore -o x.html",
    ] {
        let output = run(home.path(), &format!("{command} cut.pftrace"), None);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains("the trace ends before"), "{command}: {text}");
        let code = if command == "gc" { 7 } else { 8 };
        assert_eq!(output.status.code(), Some(code), "{command}: {text}");
    }
}

#[test]
fn directory_not_fetched_has_one_message_in_all_commands() {
    let home = tempfile::tempdir().unwrap();
    // The directory of companion data.
    std::fs::create_dir_all(home.path().join("rec/malloc-info")).unwrap();
    std::fs::write(home.path().join("rec/.heaptap-session"), "k3v9xq2m\n").unwrap();
    for command in [
        "leaks rec",
        "diff rec rec",
        "explore rec",
        "open rec",
        "report rec",
        "meminfo rec",
        "smaps rec",
        "gc rec",
        "symbolize rec",
        "archive rec --to store",
    ] {
        let output = run(home.path(), command, None);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            text.contains("its session k3v9xq2m has not been fetched"),
            "{command}: {text}"
        );
        assert!(text.contains("heaptap stop k3v9xq2m"), "{command}: {text}");
        assert_eq!(output.status.code(), Some(10), "{command}: {text}");
    }
}

// Of R8 mappings.
fails! {
    mapping_damaged: "top graph --mapping mapping.txt.gz" [
        "graph": heap_graph(),
        "mapping.txt.gz": b"\x1f\x8b\x08 and so on"
    ],
    mapping_too_large: "top graph --mapping mapping.txt.zst" [
        "graph": heap_graph(),
        "mapping.txt.zst": zstd::encode_all(std::io::repeat(0).take(80 << 20), 1).expect("packed")
    ],
    mapping_variable: "PERFETTO_PROGUARD_MAP=mapping.txt symbolize heap_graphs/graph_10k.pftrace.zst",
    no_mapping: "symbolize --only java heap_graphs/graph_10k.pftrace.zst",
    no_mapping_inside: "top graph --mapping names.zip" [
        "graph": heap_graph(),
        "names.zip": EMPTY_ZIP
    ],
    not_a_mapping: "top heap_graphs/graph_10k.pftrace.zst --mapping meminfo/synthetic_api34_d.txt",
}

// Of `leaks` and `diff`.
fails! {
    incomplete_series: "leaks conversions/c_cont.pftrace --warmup 9",
    java_among_native: "leaks conversions/c_cont.pftrace hprof/leaklab-after.hprof.zst",
    no_interval: "leaks conversions/c_cont/heap_dump.1.2050.libc.malloc.pb.gz conversions/c_cont/heap_dump.4.2050.libc.malloc.pb.gz",
    no_times: "diff --per-second conversions/c_cont/heap_dump.1.2050.libc.malloc.pb.gz conversions/c_cont/heap_dump.4.2050.libc.malloc.pb.gz",
    nothing_in_common: "diff conversions/c_cont.pftrace hprof/leaklab-after.hprof.zst",
    nothing_judged: "leaks --fail conversions/c_cont.pftrace --heap nope",
    nothing_unreleased: "leaks conversions/c_max.pftrace",
    several_heaps: "diff conversions/two_sources.pftrace conversions/two_sources.pftrace -o nowhere.pb.gz",
    too_few_dumps: "leaks --interval 4k conversions/c_cont/heap_dump.1.2050.libc.malloc.pb.gz",
    unreleased_unknown: "diff conversions/c_max.pftrace conversions/c_max.pftrace",
    warmup_too_long: "leaks --interval 4k --warmup 1 conversions/c_cont/heap_dump.1.2050.libc.malloc.pb.gz conversions/c_cont/heap_dump.4.2050.libc.malloc.pb.gz",
}

// Of options that do not fit the input, and of outputs.
fails! {
    mappings_too_large: "smaps large.zst" [
        "large.zst": zstd::encode_all(
            Cursor::new(MAPPING).chain(std::io::repeat(b'\n').take(260 << 20)),
            1
        ).expect("packed")
    ],
    needs_directory: "convert conversions/c_cont.pftrace --format parquet -o -",
    none_selected: "convert conversions/c_cont.pftrace --format folded --timestamps 1 -o nowhere.folded",
    one_dump: "query conversions/c_cont.pftrace@1 .tables",
    option_conflict: "convert --heap zygote hprof/android-a.hprof.gz -o nowhere",
    output_is_input: "convert trace --force --format folded -o trace" ["trace": trace()],
    output_taken: "convert trace --format folded -o notes.txt" [
        "trace": trace(),
        "notes.txt": b"some notes"
    ],
    query_memory: "query trace --memory 1mb --file large.sql" [
        "trace": trace(),
        "large.sql": b"SELECT hex(zeroblob(20000000))"
    ],
    query_time: "query trace --timeout 50ms --file endless.sql" [
        "trace": trace(),
        "endless.sql": b"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) \
                         SELECT count(*) FROM n"
    ],
    recording_not_alone: "gc gclog/gc_forms.log conversions/c_cont.pftrace",
    several_dumps: "convert conversions/two_same_name.pftrace --format svg -o nowhere.svg",
    several_views: "convert conversions/c_cont.pftrace --format folded --view space,objects -o nowhere.folded",
    sql: "query conversions/c_cont.pftrace SELECT",
}

// Of the virtual phone.
fails! {
    device_no_permissions: "apps --virtual=fault=no-permissions",
    device_offline: "apps --virtual=fault=offline",
    device_unauthorized: "apps --virtual=fault=unauthorized",
    device_unreachable: "devices --connect 127.0.0.1:1 --virtual",
    no_activity: "provoke -n com.android.shell home-and-back --virtual",
    meminfo_unanswered: "meminfo -n com.example.app --virtual=fault=meminfo-hang,speed=1000",
    no_packages: "apps --virtual --user 99",
    no_session: "stop --virtual",
    no_such_session: "stop nope --virtual",
    not_a_timeline: "provoke -n a home-and-back --timeline notes.txt --virtual" ["notes.txt": b"some notes"],
    not_on_this_android: "provoke -n com.example.app compact --virtual=android=13",
    not_launched: "record -n com.android.shell --launch -d 1s -o nowhere --virtual=build=userdebug",
    nothing_to_launch: "record -p 1 --launch --virtual",
    screen_locked: "provoke -n com.example.app home-and-back --virtual=screen=pin,speed=1000",
    selinux_stays: "record -n com.example.app --disable-selinux -d 1s -o nowhere --virtual",
    several_devices: "apps --virtual=devices=2",
    target_not_found: "record -n com.example.ap -d 1s -o nowhere --virtual",
    tracing_off: "record -n com.example.app --no-check -d 1s -o nowhere --virtual=fault=traced-off",
}

shows! {
    native_table: "top conversions/c_cont.pftrace",
    native_tree: "top --tree conversions/rust_cont_symbolized.pftrace",
    native_growth: "leaks conversions/c_cont.pftrace",
    native_difference: "diff conversions/c_cont.pftrace@1 conversions/c_cont.pftrace@last",
    native_overrun: "top conversions/overrun.pftrace",
    java_classes: "top hprof/leaklab-after.hprof.zst",
    java_threads: "top hprof/leaklab-after.hprof.zst --by thread",
    java_leaks: "leaks hprof/leaklab-after.hprof.zst",
    java_difference: "diff hprof/leaklab-before.hprof.zst hprof/leaklab-after.hprof.zst",
    java_no_such_object: "paths hprof/android-a.hprof.gz --focus NoSuchActivity",
    java_heap_graph: "top heap_graphs/graph_10k.pftrace.zst",
    hprof_described: "hprof info hprof/android-a.hprof.gz",
    gc_log: "gc gclog/gc_forms.log",
    meminfo: "meminfo meminfo/synthetic_api34_d.txt",
    meminfo_difference: "diff meminfo/synthetic_api26_a.txt meminfo/synthetic_api26_d.txt",
    missing_option: "diff a b --force",
    no_native_dump: "report --heap native -o - --at 99 conversions/c_cont.pftrace",
    two_moments: "top --at 1 --at 2 conversions/c_cont.pftrace",
    option_without_effect: "diff --view space meminfo/synthetic_api26_a.txt meminfo/synthetic_api26_d.txt",
    dumps_around_a_lost_one: "diff conversions/c_cont_noprof.pftrace@2 conversions/c_cont_noprof.pftrace@8",
}
