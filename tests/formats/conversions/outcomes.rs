//! Results of a whole conversion: exit codes, causes, files.

use super::{Recording, fixtures, pprof, recordings};
use heaptap::names::options::NameOptions;
use heaptap::recording::conversion::convert::{Input, Request, convert};
use heaptap::recording::conversion::selection::Selection;
use heaptap_base::error::{Classified, ErrorClass};
use heaptap_export::pprof::SampleNames;
use std::path::Path;

fn request(trace: &Path, output: &Path) -> Request {
    let names = NameOptions {
        symbolize: false,
        ..NameOptions::default()
    };
    Request::new(Input::Path(trace.to_owned()), output, names)
}

/// Returns the exit code of a conversion, and the kinds of its findings or failure.
fn outcome(trace: &Path) -> (u8, Vec<&'static str>) {
    let output = tempfile::tempdir().expect("a temporary folder");
    match convert(&request(trace, output.path())) {
        Ok(converted) => (
            converted.class().map_or(0, ErrorClass::exit_code),
            converted.findings.iter().map(|f| f.kind).collect(),
        ),
        Err(error) => (error.class().exit_code(), vec![error.kind()]),
    }
}

/// Recording, exit code, one of the expected kinds.
type Outcome<'a> = (&'a str, u8, &'a str);

/// Those of the fixtures.
const EXPECTED: &[Outcome<'_>] = &[
    ("c_cont", 0, "disconnected"),
    ("c_cont_gz", 0, "disconnected"),
    ("c_cont_bundle", 0, "disconnected"),
    ("phone_procstats", 0, ""),
    ("overrun", 6, "buffer-overran"),
    ("hit_timeout", 6, "buffer-overran"),
    ("guard_mem", 6, "hit-guardrail"),
    ("discard_full", 6, "service-lost-data"),
    ("c_rejected_second", 7, "rejected-concurrent"),
    ("two_sources", 6, "rejected-concurrent"),
    ("idle", 7, "nothing-allocated"),
    ("interval_0", 7, "request-refused"),
    ("shmem_odd", 7, "request-refused"),
    ("heap_other", 7, "request-refused"),
    ("c_glob_rejected", 7, "request-refused"),
    ("c_min_anon", 7, "request-refused"),
    ("no_target", 7, "no-process-matched"),
    ("phone_tracedkill", 0, "trace-cut"),
    ("c_cont_cut2", 0, "trace-cut"),
    ("c_cont_cut_clean", 0, "trace-cut"),
    ("c_cont_zero4k", 6, "trace-damaged"),
    ("c_cont_longlen", 6, "trace-damaged"),
    ("c_cont_reversed", 6, "trace-rearranged"),
    ("c_cont_shuffled", 6, "trace-rearranged"),
    ("c_cont_seqswap", 6, "trace-rearranged"),
    ("c_cont_noprof", 6, "packets-lost"),
];

/// Those of recordings that are not committed.
const GIVEN: &[Outcome<'_>] = &[
    ("ring_small", 6, "packets-lost"),
    ("c_cont_cut1", 0, "trace-cut"),
    ("c_cont_cut3", 0, "trace-cut"),
    ("c_cont_cut_len", 0, "trace-cut"),
    ("c_cont_zero_in", 6, "trace-damaged"),
    ("c_cont_seqsplit", 6, "trace-rearranged"),
    ("multi_seqmix", 6, "trace-rearranged"),
    ("c_cont_noint", 6, "callstacks-lost"),
    ("c_cont_noclock", 0, "no-clock"),
];

fn assert_outcomes(recordings: &[Recording], expected: &[Outcome<'_>]) {
    let mut faults = Vec::new();
    for &(name, code, kind) in expected {
        let recording = recordings.iter().find(|recording| recording.name == name);
        let recording = recording.unwrap_or_else(|| panic!("{name} is not there"));
        let (found, kinds) = outcome(&recording.trace);
        if found != code || !(kind.is_empty() || kinds.contains(&kind)) {
            faults.push(format!("{name}: {found} {kinds:?}, not {code} {kind}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn exit_codes_and_causes_are_as_documented() {
    assert_outcomes(&recordings(), EXPECTED);
}

#[test]
#[ignore = "needs HEAPTAP_RECORDINGS, a folder of recordings"]
fn given_recordings_have_the_documented_exit_codes_and_causes() {
    assert_outcomes(&crate::recordings::given(&["native", "damaged"]), GIVEN);
}

#[test]
fn what_is_no_trace_or_has_more_than_one_has_the_documented_exit_code() {
    let whole = std::fs::read(fixtures().join("c_cont.pftrace")).expect("a fixture");
    // The fifth packet of the profile.
    let packet = 5404..6365;
    let twice = [&whole[..packet.end], &whole[packet.start..]].concat();
    let with = |before: &[u8], after: &[u8]| [before, &whole, after].concat();
    let directory = tempfile::tempdir().expect("a temporary folder");
    for (bytes, code, kind) in [
        (Vec::new(), 8, "not-a-trace"),
        (b"\n".to_vec(), 8, "not-a-trace"),
        (b"this is not a trace\n".repeat(20), 8, "not-a-trace"),
        (vec![0; 5000], 8, "not-a-trace"),
        (with(&[0; 16], b""), 6, "trace-damaged"),
        (with(b"", &[0; 4096]), 6, "trace-damaged"),
        (with(b"", b"hello, this is text\n"), 6, "trace-damaged"),
        (twice, 6, "trace-rearranged"),
    ] {
        let trace = directory.path().join("made.pftrace");
        std::fs::write(&trace, &bytes).expect("it can be written");
        let (found, kinds) = outcome(&trace);
        let start = &bytes[..bytes.len().min(20)];
        assert_eq!(found, code, "{} bytes, {start:?}: {kinds:?}", bytes.len());
        assert!(kinds.contains(&kind), "{start:?}: {kinds:?}");
    }
}

#[test]
fn files_are_named_counted_and_whole() {
    let output = tempfile::tempdir().expect("a temporary folder");
    let trace = fixtures().join("c_cont.pftrace");
    let converted = convert(&request(&trace, output.path())).expect("a trace");
    assert_eq!(converted.dumps.len(), 11);
    for (number, dump) in (1..).zip(&converted.dumps) {
        assert_eq!(dump.number, number);
        let name = format!("heap_dump.{number}.2050.libc.malloc.pb.gz");
        assert_eq!(dump.file.as_deref(), Some(name.as_str()));
        let bytes = std::fs::read(output.path().join(name)).expect("the file");
        let profile = pprof::read(&bytes);
        assert!(pprof::faults(&profile).is_empty());
        let text = |id: i64| profile.string_table[id as usize].as_str();
        let types: Vec<&str> = profile.sample_type.iter().map(|t| text(t.r#type)).collect();
        assert_eq!(types, ["objects", "space", "alloc_objects", "alloc_space"]);
        assert_eq!(text(profile.default_sample_type), "space");
        assert_eq!(profile.period, 4096);
        assert!(profile.time_nanos > 1_700_000_000_000_000_000, "wall time");
        assert!(profile.duration_nanos > 0);
        let held: i64 = profile.sample.iter().map(|s| s.value[1]).sum();
        assert_eq!(dump.totals.space, Some(held));
    }
    assert_eq!(converted.dumps[10].totals.space, Some(19_376_904));
    let left = std::fs::read_dir(output.path())
        .expect("the folder")
        .count();
    assert_eq!(left, 11, "nothing but profiles");
}

#[test]
fn equal_input_gives_equal_bytes() {
    let trace = fixtures().join("rust_cont_symbolized.pftrace");
    let directories: Vec<_> = (0..2)
        .map(|_| tempfile::tempdir().expect("a temporary folder"))
        .collect();
    for directory in &directories {
        convert(&request(&trace, directory.path())).expect("a trace");
    }
    let mut files: Vec<_> = std::fs::read_dir(directories[0].path())
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    files.sort();
    assert_eq!(files.len(), 9);
    for file in files {
        let [a, b] =
            [0, 1].map(|n| std::fs::read(directories[n].path().join(&file)).expect("both"));
        assert!(a == b, "{file:?}");
        assert_eq!(&a[4..8], [0; 4], "no time in the gzip header");
    }
}

#[test]
fn a_selection_takes_what_it_names() {
    let output = tempfile::tempdir().expect("a temporary folder");
    let trace = fixtures().join("two_same_name.pftrace");
    let all = convert(&request(&trace, output.path())).expect("a trace");
    let (pid, time) = (all.dumps[0].pid, all.dumps[1].time_ns.expect("a clock"));
    let select = |selection: Selection| {
        let output = tempfile::tempdir().expect("a temporary folder");
        let request = Request {
            selection,
            ..request(&trace, output.path())
        };
        let converted = convert(&request).expect("a trace");
        (converted.dumps.len(), converted.class())
    };
    let of_pid = all.dumps.iter().filter(|d| d.pid == pid).count();
    assert!(of_pid > 0 && of_pid < all.dumps.len());
    let by_pid = Selection {
        processes: heaptap::heaps::selector::ProcessFilter {
            pids: vec![pid],
            ..Default::default()
        },
        ..Selection::default()
    };
    assert_eq!(select(by_pid).0, of_pid);
    let by_time = Selection {
        timestamps: vec![time],
        ..Selection::default()
    };
    assert_eq!(select(by_time).0, 1);
    let by_heap = Selection {
        heaps: vec!["no.such.heap".to_owned()],
        ..Selection::default()
    };
    let error = convert(&Request {
        selection: by_heap,
        ..request(&trace, output.path())
    })
    .expect_err("nothing to write");
    assert_eq!(
        (error.class(), error.kind()),
        (ErrorClass::Usage, "none-selected")
    );
    let help = error.help().expect("what there is");
    let dump = &all.dumps[0];
    for choice in [&dump.pid.to_string(), &dump.heap] {
        assert!(help.contains(choice.as_str()), "{help}");
    }
    assert!(help.contains(&format!("{time}")), "{help}");
}

#[test]
fn perfettos_names_come_on_request() {
    let output = tempfile::tempdir().expect("a temporary folder");
    let trace = fixtures().join("c_cont.pftrace");
    let mut request = request(&trace, output.path());
    request.pprof.sample_names = SampleNames::Perfetto;
    let converted = convert(&request).expect("a trace");
    let file = converted.dumps[0].file.as_ref().expect("a file");
    let profile = pprof::read(&std::fs::read(output.path().join(file)).expect("the file"));
    let types: Vec<&str> = profile
        .sample_type
        .iter()
        .map(|t| profile.string_table[t.r#type as usize].as_str())
        .collect();
    assert_eq!(
        types,
        [
            "Total malloc count",
            "Total malloc size",
            "Unreleased malloc count",
            "Unreleased malloc size"
        ]
    );
}

#[test]
fn a_directory_that_can_not_be_written_is_said() {
    let output = tempfile::tempdir().expect("a temporary folder");
    let gone = output.path().join("gone");
    let error =
        convert(&request(&fixtures().join("c_cont.pftrace"), &gone)).expect_err("no folder");
    assert_eq!(error.class(), ErrorClass::HostWrite);
}
