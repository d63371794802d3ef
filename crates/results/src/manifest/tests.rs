//! Tests of the document: its page names every field, it survives a round trip, and errors explain
//! unreadable files.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;
use time::OffsetDateTime;

use super::*;
use heaptap_base::error::{Classified, ErrorClass};
use heaptap_export::pprof::PprofOptions;
use heaptap_model::profile::{DumpKind, Figures, HeapDump};

/// A manifest in which every field is set.
pub(crate) fn full() -> Manifest {
    let at = OffsetDateTime::from_unix_timestamp(1_795_000_000).expect("a time");
    let some = |text: &str| Some(text.to_owned());
    let mut dump = Dump::new(
        1,
        &HeapDump {
            pid: 4242,
            process: "com.example.app".to_owned(),
            heap: "libc.malloc".to_owned(),
            time_ns: Some(5_000_000_000),
            written_ns: Some(5_100_000_000),
            sampling_interval_bytes: 4096,
            ..HeapDump::default()
        },
        some("heap_dump.1.4242.libc.malloc.pb.gz"),
    );
    dump.label = Some(BoundLabel {
        name: "after-login".to_owned(),
        lag_ms: 120,
    });
    dump.time = Some(at);
    Manifest {
        outcome: Outcome {
            exit_code: 0,
            complete: true,
            ended_by: some("interrupted"),
        },
        session: Some(Session {
            id: "a1b2c3".to_owned(),
            remote_path: "/data/misc/perfetto-traces/heaptap-a1b2c3".to_owned(),
            boot_id: some("0f9d"),
            snapshots_by: some("signal"),
        }),
        device: Some(Device {
            serial: "R5CT".to_owned(),
            model: some("Pixel 8"),
            build_fingerprint: some("google/shiba/shiba:14"),
            android: some("14"),
            sdk: Some(34),
            build_type: some("user"),
            abi: some("arm64-v8a"),
        }),
        host: Some(HostProgram {
            command: vec!["./server".to_owned()],
            pid: 4242,
            status: 137,
            signal: Some(9),
            library: "/opt/libheapprofd_glibc_preload.so".to_owned(),
            traced: "/opt/tracebox".to_owned(),
        }),
        targets: vec![Target {
            name: "com.example.app".to_owned(),
            pid: Some(4242),
            eligibility: Some(Eligibility {
                verdict: "yes".to_owned(),
                reasons: vec!["it is debuggable".to_owned()],
            }),
            from_startup: Some(false),
        }],
        config: Some(Config {
            text: "duration_ms: 1\n".to_owned(),
            sha256: "00".repeat(32),
        }),
        steps: vec![Step {
            step: "started".to_owned(),
            at,
        }],
        trace: Some(TraceFile {
            file: "raw-trace".to_owned(),
            size: 12,
            sha256: "00".repeat(32),
        }),
        profiles: Some(PprofOptions::default().into()),
        dumps: Dumps {
            native: vec![dump],
            java: vec![java_dump()],
        },
        labels: vec![Label {
            name: "after-login".to_owned(),
            requested_ns: 4_880_000_000,
            dumps: vec![LabelledDump {
                dump: DumpId {
                    pid: 4242,
                    heap: "libc.malloc".to_owned(),
                    number: 1,
                },
                lag_ms: 120,
            }],
        }],
        java_allocations: Some(JavaAllocations {
            by: "heapprofd".to_owned(),
            heap: "com.android.art".to_owned(),
            tells: vec!["stack".to_owned()],
            lacks: vec!["class".to_owned()],
            dumps: vec![TrackedDump {
                number: 1,
                label: some("after-login"),
                time_ns: 5_000_000_000,
                pid: 4242,
                process: "com.example.app".to_owned(),
                file: some("java_allocations.1.4242.pb.gz"),
                list: some("java-allocations/01-after-login.real.gz"),
                objects: 65_535,
                space: 4_194_304,
                threads: 3,
                full: true,
            }],
        }),
        companion: Some(companion::example()),
        symbolization: Some(symbolization()),
        page: Some(Page {
            file: "report.html".to_owned(),
            sha256: "00ff".to_owned(),
        }),
        warnings: vec![Warning {
            kind: "buffer-overran".to_owned(),
            message: "it allocated too fast".to_owned(),
            help: some("a longer interval"),
            pid: Some(4242),
            dumps: vec![java_dump().id()],
        }],
        ..Manifest::default()
    }
}

fn java_dump() -> JavaDump {
    let sums = JavaSums {
        objects: 2,
        space: 48,
        native_space: 4096,
    };
    JavaDump {
        kind: JavaKind::HeapGraph,
        number: 1,
        label: Some(BoundLabel {
            name: "after-login".to_owned(),
            lag_ms: 120,
        }),
        time_ns: Some(5_000_000_000),
        time: OffsetDateTime::from_unix_timestamp(1_795_000_000).ok(),
        pid: 4242,
        process: "com.example.app".to_owned(),
        heap: JAVA_HEAP.to_owned(),
        file: Some("java_heap_dump.1.4242.pb.gz".to_owned()),
        dominators: Some("java_heap_dump.1.4242.dominators.pb.gz".to_owned()),
        malloc_info: Some("malloc_info.1.4242.xml".to_owned()),
        original: Some(Original {
            size: 12,
            sha256: "00".repeat(32),
        }),
        reason: Some("OOME".to_owned()),
        totals: Some(JavaTotals {
            objects: 3,
            space: 64,
            native_space: 4096,
            reachable: sums,
        }),
        flags: JavaFlags::default(),
        complete: true,
    }
}

fn symbolization() -> Symbolization {
    let text = str::to_owned;
    Symbolization {
        frames_named: 3,
        frames_unnamed: 1,
        frames_with_lines: 2,
        leaf_share_unnamed: 0.25,
        share_unnamed: 0.5,
        libraries_missing: vec![MissingLibrary {
            path: text("/data/app/lib/arm64/libgame.so"),
            build_id: text("ab01"),
            frames: 1,
            leaf_share: 0.25,
            share: 0.5,
            searched: vec![LookedIn {
                place: text("symbols"),
                path: text("out/symbols"),
                why: text("not-there"),
                detail: text("not there"),
            }],
            nearest: Some(NearestFile {
                place: text("symbols"),
                path: text("out/symbols/libgame.so"),
                build_id: text("ab02"),
            }),
        }],
        libraries_named: vec![NamedLibrary {
            path: text("/data/app/lib/arm64/libapp.so"),
            build_id: text("cd01"),
            addresses: 3,
            files: vec![SymbolFile {
                place: text("symbols"),
                path: text("out/symbols/libapp.so"),
                knowledge: text("dwarf"),
                verified: true,
                addresses: 2,
                notes: vec![text("inlined calls are missing")],
            }],
        }],
        libraries_without_unwind: vec![CutLibrary {
            path: text("/data/app/lib/arm64/libcut.so"),
            build_id: text("ef01"),
            callsites: 7,
            share: 0.125,
        }],
        mappings: vec![MappingFile {
            path: text("app/build/outputs/mapping/release/mapping.txt"),
            packages: vec![text("com.example.app")],
            origin: text("project"),
            variant: text("release"),
            classes: 900,
            frames: 40,
            heap_classes: 0,
        }],
    }
}

/// Every field as `dumps[].totals.space`.
fn paths(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                found.insert(path.clone());
                paths(value, &path, found);
            }
        }
        Value::Array(items) => {
            for item in items {
                paths(item, &format!("{path}[]"), found);
            }
        }
        Value::Null => panic!("{path} is not set in the example"),
        _ => {}
    }
}

#[test]
fn the_page_documents_every_field_and_no_other() {
    let mut fields = BTreeSet::new();
    let value = serde_json::to_value(full()).expect("it serializes");
    paths(&value, "", &mut fields);
    let page = include_str!("../../../../docs/reference/formats.md");
    let section = page.split("\n## manifest.json\n").nth(1);
    let section = section.and_then(|rest| rest.split("\n## ").next());
    let documented: BTreeSet<String> = section
        .expect("a section on manifest.json")
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .map(str::to_owned)
        .collect();
    assert_eq!(
        fields.difference(&documented).collect::<Vec<_>>(),
        Vec::<&String>::new(),
        "missing in docs/reference/formats.md"
    );
    assert_eq!(
        documented.difference(&fields).collect::<Vec<_>>(),
        Vec::<&String>::new(),
        "docs/reference/formats.md names what is not there"
    );
    assert!(page.contains(&format!("schema version {SCHEMA_VERSION}")));
}

#[test]
fn it_reads_back_as_written_and_replaces_an_older_one() {
    let directory = tempfile::tempdir().expect("a folder");
    fs::write(directory.path().join(FILE_NAME), "old").expect("written");
    let manifest = full();
    let path = manifest.write(directory.path()).expect("written");
    assert_eq!(path, directory.path().join("manifest.json"));
    assert_eq!(Manifest::read(directory.path()).expect("read"), manifest);
    let files = fs::read_dir(directory.path()).expect("listed").count();
    assert_eq!(files, 1, "nothing temporary is left");
}

#[test]
fn what_cannot_be_read_or_written_says_why() {
    let directory = tempfile::tempdir().expect("a folder");
    let kind = || {
        Manifest::read(directory.path())
            .expect_err("not a manifest")
            .kind()
    };
    assert_eq!(kind(), "manifest-unreadable");
    fs::write(directory.path().join(FILE_NAME), "{}").expect("written");
    assert_eq!(kind(), "manifest-invalid");
    let newer = Manifest {
        schema_version: SCHEMA_VERSION + 1,
        ..full()
    };
    newer.write(directory.path()).expect("written");
    assert_eq!(kind(), "manifest-too-new");
    let older = Manifest {
        schema_version: SCHEMA_VERSION - 1,
        ..full()
    };
    older.write(directory.path()).expect("written");
    assert_eq!(kind(), "manifest-too-old");
    let error = full()
        .write(&directory.path().join("nowhere"))
        .expect_err("no folder");
    assert_eq!(error.class(), ErrorClass::HostWrite);
}

#[test]
fn a_heap_without_frees_has_no_held_bytes() {
    let totals = Totals::new(
        Figures {
            alloc_space: 9,
            alloc_objects: 1,
            ..Figures::default()
        },
        DumpKind::AllocationsOnly,
    );
    assert_eq!((totals.space, totals.objects), (None, None));
    assert_eq!(totals.alloc_space, 9);
}

/// Found by fuzzing.
#[test]
fn a_figure_reads_back_to_its_last_digit() {
    let written = "9.982215827913156e-6";
    let read: f64 = serde_json::from_str(written).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), written);
}
