//! The rules of configs, as tables: results, rejections and their reasons.

use std::path::Path;
use std::time::Duration;

use prost::Message as _;

use super::*;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_proto::perfetto::TraceConfig;
use heaptap_proto::perfetto::trace_config::WriteFlushMode;

fn named(name: &str) -> Options {
    Options {
        targets: Targets {
            names: vec![name.to_owned()],
            ..Targets::default()
        },
        ..Options::default()
    }
}

fn spec_of(options: &Options) -> CaptureSpec {
    resolve(None, options).expect("a good config").spec
}

fn refused(options: &Options) -> Failure {
    resolve(None, options).expect_err("a bad config")
}

fn heapprofd(config: &TraceConfig) -> &heaptap_proto::perfetto::HeapprofdConfig {
    sources::heapprofd_of(config).expect("a heapprofd source")
}

#[test]
fn the_defaults_are_those_of_heap_profile_with_safer_times() {
    let encoded = spec_of(&named("com.example.app"))
        .encode(&DeviceLimits::default())
        .unwrap();
    let config = &encoded.config;
    let hp = heapprofd(config);
    assert_eq!(hp.sampling_interval_bytes, Some(4096));
    assert_eq!(hp.shmem_size_bytes, Some(8 << 20));
    assert_eq!(hp.block_client, Some(true));
    assert_eq!(hp.process_cmdline, ["com.example.app"]);
    assert_eq!(config.duration_ms, None);
    assert_eq!(config.write_into_file, Some(true));
    assert_eq!(config.file_write_period_ms, Some(1000));
    assert_eq!(
        config.write_flush_mode(),
        WriteFlushMode::WriteFlushDisabled
    );
    assert_eq!(config.flush_period_ms, Some(5000));
    assert_eq!(config.data_source_stop_timeout_ms, Some(60_000));
    assert_eq!(config.max_file_size_bytes, None);
    // The lists have a buffer of their own, which a dump cannot overwrite.
    assert_eq!(config.buffers.len(), 2);
    let buffers: Vec<_> = config
        .data_sources
        .iter()
        .map(|s| {
            let c = s.config.as_ref().unwrap();
            (c.name().to_owned(), c.target_buffer())
        })
        .collect();
    assert_eq!(
        buffers,
        [
            ("android.heapprofd".to_owned(), 0),
            ("android.packages_list".to_owned(), 1),
            ("linux.process_stats".to_owned(), 1)
        ]
    );
    assert_eq!(
        TraceConfig::decode(encoded.bytes.as_slice()).unwrap(),
        encoded.config
    );
}

#[test]
fn the_device_bounds_file_and_buffer() {
    let spec = spec_of(&named("a"));
    let of = |free, memory| {
        let config = spec
            .encode(&DeviceLimits {
                free_bytes: free,
                memory_bytes: memory,
            })
            .unwrap()
            .config;
        (
            config.max_file_size_bytes.map(|b| b >> 20),
            config.buffers[0].size_kb() >> 10,
        )
    };
    assert_eq!(of(Some(10 << 30), Some(12 << 30)), (Some(10112), 256));
    assert_eq!(of(Some(100 << 20), Some(2 << 30)), (Some(50), 85));
    assert_eq!(of(Some(0), Some(1 << 30)), (Some(1), 62));
    assert_eq!(of(None, None), (None, 128));
}

#[test]
fn data_are_flushed_as_often_as_dumped_but_not_more_than_each_second() {
    for (every_ms, flush_ms) in [(100, 1000), (2000, 2000), (10_000, 5000)] {
        let options = Options {
            continuous: Some(Duration::from_millis(every_ms)),
            ..named("a")
        };
        let encoded = spec_of(&options).encode(&DeviceLimits::default());
        let config = encoded.unwrap().config;
        assert_eq!(config.flush_period_ms, Some(flush_ms), "{every_ms} ms");
    }
}

#[test]
fn every_option_sets_its_field() {
    let options = Options {
        interval_bytes: Some(1),
        duration: Some(Duration::from_secs(30)),
        continuous: Some(Duration::from_secs(10)),
        heaps: vec!["libc.malloc".to_owned(), "com.android.art".to_owned()],
        shmem_bytes: Some(16 << 20),
        block_client: Some(false),
        block_client_timeout: Some(Duration::from_micros(250)),
        no_startup: Some(true),
        dump_at_max: Some(true),
        disable_fork_teardown: Some(true),
        packages_list: Some(false),
        ..named("a")
    };
    let encoded = spec_of(&options).encode(&DeviceLimits::default());
    let encoded = encoded.unwrap();
    let text = &encoded.text;
    for line in [
        "sampling_interval_bytes: 1",
        "process_cmdline: \"a\"",
        "dump_phase_ms: 0",
        "dump_interval_ms: 10000",
        "shmem_size_bytes: 16777216",
        "no_startup: true",
        "dump_at_max: true",
        "block_client_timeout_us: 250",
        "disable_fork_teardown: true",
        "heaps: \"libc.malloc\"",
        "heaps: \"com.android.art\"",
        "duration_ms: 30000",
    ] {
        assert!(
            text.lines().any(|l| l.trim() == line),
            "{line} is missing in\n{text}"
        );
    }
    assert!(!text.contains("block_client: true"), "{text}");
    assert!(!text.contains("packages_list"), "{text}");
    assert_eq!(encoded.parsed_text(), encoded.config);
}

#[test]
fn names_with_quotes_survive_the_text_format() {
    let name = "/tmp/a \"b\" \\c\u{e9}\n:d";
    let encoded = spec_of(&named(name))
        .encode(&DeviceLimits::default())
        .unwrap();
    let back = encoded.parsed_text();
    assert_eq!(back, encoded.config);
    assert_eq!(heapprofd(&back).process_cmdline, [name]);
}

#[test]
fn known_bad_values_are_refused_with_the_reason() {
    let long = "x".repeat(64);
    let cases: Vec<(Options, &str, &str)> = vec![
        (Options::default(), "no-target", "no target process"),
        (named(""), "bad-value", "empty"),
        (named(&"x".repeat(512)), "bad-value", "511"),
        (
            Options {
                interval_bytes: Some(0),
                ..named("a")
            },
            "bad-value",
            "crashes the target",
        ),
        (
            Options {
                shmem_bytes: Some(4096),
                ..named("a")
            },
            "bad-value",
            "8 KiB",
        ),
        (
            Options {
                shmem_bytes: Some(3 << 20),
                ..named("a")
            },
            "bad-value",
            "power of two",
        ),
        (
            Options {
                shmem_bytes: Some(512 << 20),
                ..named("a")
            },
            "bad-value",
            "that much",
        ),
        (
            Options {
                heaps: vec![long],
                ..named("a")
            },
            "bad-value",
            "63 bytes",
        ),
        (
            Options {
                heaps: (0..65).map(|i| format!("h{i}")).collect(),
                ..named("a")
            },
            "bad-value",
            "64 heaps",
        ),
        (
            Options {
                heaps: vec!["libc.malloc".to_owned()],
                all_heaps: Some(true),
                ..named("a")
            },
            "option-conflict",
            "--all-heaps",
        ),
        (
            Options {
                no_startup: Some(true),
                no_running: Some(true),
                ..named("a")
            },
            "option-conflict",
            "--no-running",
        ),
        (
            Options {
                no_running: Some(true),
                targets: Targets {
                    pids: vec![12],
                    ..Targets::default()
                },
                ..Options::default()
            },
            "option-conflict",
            "-p",
        ),
        (
            Options {
                duration: Some(Duration::from_secs(8 * 24 * 3600)),
                ..named("a")
            },
            "bad-value",
            "7 days",
        ),
        (
            Options {
                continuous: Some(Duration::from_micros(10)),
                ..named("a")
            },
            "bad-value",
            "times that",
        ),
    ];
    for (options, kind, words) in cases {
        let error = refused(&options);
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.to_string().contains(words), "{error}");
        assert!(
            error.help.as_ref().is_some_and(|h| !h.is_empty()),
            "{error}"
        );
        assert_eq!(error.class, ErrorClass::Usage);
    }
}

#[test]
fn a_refused_size_names_one_that_works() {
    let help = refused(&Options {
        shmem_bytes: Some(5 << 20),
        ..named("a")
    })
    .help;
    assert_eq!(help.as_deref(), Some("use 8388608 (8.0 MiB)"));
}

#[test]
fn android_releases_take_what_they_know() {
    let with = |change: fn(&mut CaptureSpec)| {
        let mut spec = spec_of(&named("a"));
        change(&mut spec);
        spec
    };
    type Case = (
        fn(&mut CaptureSpec),
        u32,
        Result<Vec<&'static str>, &'static str>,
    );
    let cases: Vec<Case> = vec![
        (|_| {}, 28, Err("Android 10")),
        (|_| {}, 29, Ok(vec![])),
        (|s| s.dump_at_max = true, 29, Err("Android 11")),
        (|s| s.dump_at_max = true, 30, Ok(vec!["counts incorrectly"])),
        (|s| s.dump_at_max = true, 31, Ok(vec![])),
        (
            |s| s.no_running = true,
            29,
            Ok(vec!["--no-running has no effect"]),
        ),
        (|s| s.no_running = true, 30, Ok(vec![])),
        (|s| s.all_heaps = true, 30, Err("Android 12")),
        (
            |s| s.heaps = vec!["com.android.art".to_owned()],
            30,
            Err("only libc.malloc"),
        ),
        (
            |s| s.heaps = vec!["com.android.art".to_owned()],
            31,
            Ok(vec![]),
        ),
        (|s| s.heaps = vec!["libc.malloc".to_owned()], 29, Ok(vec![])),
    ];
    for (change, sdk, expected) in cases {
        match (with(change).for_sdk(sdk), expected) {
            (Ok((_, notices)), Ok(words)) => {
                assert_eq!(notices.len(), words.len(), "sdk {sdk}: {notices:?}");
                for (notice, words) in notices.iter().zip(words) {
                    assert!(notice.contains(words), "sdk {sdk}: {notice}");
                }
            }
            (Err(error), Err(words)) => {
                assert!(error.to_string().contains(words), "{error}");
                assert_eq!(error.class, ErrorClass::NotEligible);
            }
            (got, expected) => panic!("sdk {sdk}: {got:?}, expected {expected:?}"),
        }
    }
    let (spec, _) = with(|s| {
        s.no_running = true;
        s.heaps = vec!["libc.malloc".to_owned()];
    })
    .for_sdk(29)
    .unwrap();
    assert!(!spec.no_running && spec.heaps.is_empty());
}

#[test]
fn single_fields_are_set_by_name() {
    let set = |settings: &[&str]| {
        let mut options = named("a");
        for setting in settings {
            options.settings.push(FieldSetting::parse(setting)?);
        }
        resolve(None, &options)
    };
    let spec = set(&[
        "heapprofd.max_heapprofd_memory_kb=200000",
        "heapprofd.skip_symbol_prefix=_Znw,_Zna",
        "heapprofd.skip_symbol_prefix=malloc",
        "heapprofd.continuous_dump_config.dump_phase_ms=700",
        "heapprofd.continuous_dump_config.dump_interval_ms=2000",
        "heapprofd.shmem_size_bytes=16MiB",
        "heapprofd.disable_vfork_detection=true",
    ])
    .unwrap()
    .spec;
    assert_eq!(spec.shmem_bytes, 16 << 20);
    assert_eq!(spec.continuous, Some(Duration::from_secs(2)));
    let config = spec.encode(&DeviceLimits::default()).unwrap().config;
    let hp = heapprofd(&config);
    assert_eq!(hp.max_heapprofd_memory_kb, Some(200_000));
    assert_eq!(hp.skip_symbol_prefix, ["_Znw", "_Zna", "malloc"]);
    assert_eq!(hp.disable_vfork_detection, Some(true));
    let dumps = hp.continuous_dump_config.as_ref().unwrap();
    assert_eq!(
        (dumps.dump_phase_ms, dumps.dump_interval_ms),
        (Some(700), Some(2000))
    );

    for (setting, words, help) in [
        (
            "heapprofd.shmem_size=1",
            "does not have a field",
            "did you mean shmem_size_bytes",
        ),
        (
            "heapprofd.foo=1",
            "does not have a field",
            "sampling_interval_bytes",
        ),
        (
            "heapprofd.no_running=maybe",
            "true or false",
            "no_running must be",
        ),
        ("heapprofd.pid=x", "not a number", "pid must be"),
        (
            "heapprofd.continuous_dump_config=1",
            "is a message",
            "dump_phase_ms",
        ),
        ("heapprofd.no_running.x=1", "does not have fields", ""),
        ("heapprofd.all", "is missing", "--set heapprofd.FIELD=VALUE"),
        ("ftrace.x=1", "only fields of heapprofd", "--set"),
        ("heapprofd.sampling_interval_bytes=0", "crashes", "4096"),
        (
            "heapprofd.stream_allocations=true",
            "not a heap profile",
            "omit",
        ),
        (
            "heapprofd.heap_sampling_intervals=4096",
            "one interval",
            "--heaps",
        ),
    ] {
        let error = set(&[setting]).expect_err(setting);
        assert!(error.to_string().contains(words), "{error}");
        let given = error.help.as_ref().unwrap();
        assert!(given.contains(help), "{setting}: {given}");
    }
}

#[test]
fn every_preset_is_a_good_config_and_documented() {
    let docs = include_str!("../../../../docs/reference/formats.md");
    for preset in PRESETS {
        let file = ConfigFile::load(Path::new(preset.name)).unwrap();
        let resolved = resolve(Some(&file), &named("com.example.app")).unwrap();
        resolved.spec.encode(&DeviceLimits::default()).unwrap();
        assert!(resolved.notices.is_empty(), "{:?}", resolved.notices);
        assert!(
            preset.text.starts_with('#'),
            "{} explains itself",
            preset.name
        );
        assert!(
            docs.contains(&format!("`{}`", preset.name)),
            "docs/reference/formats.md lists {}",
            preset.name
        );
    }
    for key in yaml::KEYS {
        assert!(
            docs.contains(&format!("| `{key}`")),
            "docs/reference/formats.md lists {key}"
        );
    }
    let on_disk = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs"))
        .unwrap()
        .count();
    assert_eq!(on_disk, PRESETS.len(), "each file in configs/ is a preset");
}

#[test]
fn presets_mean_what_they_say() {
    let of = |name: &str| {
        let file = ConfigFile::load(Path::new(name)).unwrap();
        resolve(Some(&file), &named("a")).unwrap()
    };
    assert!(of("startup").launch && of("startup").spec.no_running);
    assert!(of("peak").spec.dump_at_max);
    assert_eq!(of("java-allocations").spec.heaps, ["com.android.art"]);
    assert!(of("all-heaps").spec.all_heaps);
    assert!(!of("low-overhead").spec.block_client);
    assert_eq!(of("low-overhead").spec.interval_bytes, 65536);
    assert_eq!(
        of("continuous").spec.continuous,
        Some(Duration::from_secs(5))
    );
    let long = of("long-run").spec;
    assert_eq!(
        heapprofd(&long.template).max_heapprofd_memory_kb,
        Some(512_000)
    );
}

#[test]
fn yaml_that_is_nested_deeply_is_refused_before_it_is_parsed() {
    for opening in ["[", "{a: ", "- ", "? "] {
        let yaml = format!("names:\n  {}x\n", opening.repeat(100_000));
        let error = ConfigFile::parse(yaml.as_bytes(), "t.yaml").unwrap_err();
        let expected = "t.yaml:2: lists and maps are nested more than 64 deep";
        assert!(error.to_string().contains(expected), "{error}");
    }
    let many = vec!["a-b"; 1000].join(", ");
    let many = format!("# {0}\nnames: [{many}] # {0}\n", "[".repeat(100));
    assert!(ConfigFile::parse(many.as_bytes(), "t.yaml").is_ok());
}

#[test]
fn flags_override_the_file_and_targets_add_up() {
    let yaml = "names: [a, b]\ninterval: 64k\nheaps: [com.android.art]\nduration: 500ms\n\
                block_client: false\nheapprofd:\n  skip_symbol_prefix: [x, y]\n";
    let file = ConfigFile::parse(yaml.as_bytes(), "t.yaml").unwrap();
    let spec = resolve(Some(&file), &named("c")).unwrap().spec;
    assert_eq!(spec.targets.names, ["a", "b", "c"]);
    assert_eq!(spec.interval_bytes, 65536);
    assert_eq!(spec.duration, Some(Duration::from_millis(500)));
    // `-d 30` is refused, too.
    let bare = ConfigFile::parse(b"names: [a]\nduration: 30\n", "t.yaml").unwrap_err();
    assert!(bare.to_string().contains("30s is 30 seconds"), "{bare}");
    assert_eq!(heapprofd(&spec.template).skip_symbol_prefix, ["x", "y"]);
    let spec = resolve(
        Some(&file),
        &Options {
            all_heaps: Some(true),
            interval_bytes: Some(1024),
            duration: Some(Duration::ZERO),
            block_client: Some(true),
            ..named("a")
        },
    )
    .unwrap()
    .spec;
    assert!(spec.all_heaps && spec.heaps.is_empty() && spec.block_client);
    assert_eq!(spec.interval_bytes, 1024);
    assert_eq!(spec.duration, None);
    assert_eq!(spec.targets.names, ["a", "b"]);
}

#[test]
fn perfetto_text_and_binary_are_templates() {
    let text = r#"
        # a config of somebody's
        buffers: { size_kb: 1000 fill_policy: RING_BUFFER }
        data_sources {
          config {
            name: "android.heapprofd"
            target_buffer: 0
            heapprofd_config {
              sampling_interval_bytes: 8192
              process_cmdline: "x"
              adaptive_sampling_shmem_threshold: 1000000
              adaptive_sampling_max_sampling_interval_bytes: 65536
            }
          }
        }
        data_sources { config { name: "linux.sys_stats" sys_stats_config { meminfo_period_ms: 100 } } }
        duration_ms: 4000
        flush_period_ms: 1234
    "#;
    let from_text = ConfigFile::parse(text.as_bytes(), "t.txt").unwrap();
    let ConfigFile::Template(template) = &from_text else {
        panic!("{from_text:?}");
    };
    let from_binary = ConfigFile::parse(&template.encode_to_vec(), "t.bin").unwrap();
    assert_eq!(from_text, from_binary);

    let spec = resolve(Some(&from_text), &named("y")).unwrap().spec;
    let same = resolve(Some(&from_text), &named("x")).unwrap().spec;
    assert_eq!(same.targets.names, ["x"], "named twice, recorded once");
    assert_eq!(spec.interval_bytes, 8192);
    assert_eq!(spec.duration, Some(Duration::from_secs(4)));
    assert!(!spec.block_client, "as the config has it");
    assert_eq!(spec.shmem_bytes, 8 << 20);
    let config = spec.encode(&DeviceLimits::default()).unwrap().config;
    assert_eq!(config.buffers.len(), 2, "one more for the lists");
    assert_eq!(config.flush_period_ms, Some(1234));
    assert_eq!(config.data_sources.len(), 4);
    assert_eq!(heapprofd(&config).process_cmdline, ["x", "y"]);
    assert_eq!(
        heapprofd(&config).adaptive_sampling_shmem_threshold,
        Some(1_000_000)
    );
}

#[test]
fn a_flag_for_heaps_replaces_those_of_any_file() {
    let text = |heaps: &str| {
        let heapprofd = format!("sampling_interval_bytes: 8192 {heaps}");
        format!(
            "data_sources {{ config {{ name: \"android.heapprofd\"\n\
             heapprofd_config {{ {heapprofd} }} }} }}"
        )
    };
    for (named, all) in [
        (text("heaps: \"h\""), text("all_heaps: true")),
        ("heaps: [h]\n".to_owned(), "all_heaps: true\n".to_owned()),
    ] {
        let heaps = |file: &str, flags: Options| {
            let file = ConfigFile::parse(file.as_bytes(), "t").unwrap();
            let spec = resolve(Some(&file), &flags).unwrap().spec;
            (spec.heaps, spec.all_heaps)
        };
        let all_flag = Options {
            all_heaps: Some(true),
            ..self::named("a")
        };
        let other_flag = Options {
            heaps: vec!["i".to_owned()],
            ..self::named("a")
        };
        assert_eq!(heaps(&named, all_flag), (Vec::new(), true), "{named}");
        let other = (vec!["i".to_owned()], false);
        assert_eq!(heaps(&named, other_flag.clone()), other, "{named}");
        assert_eq!(heaps(&all, other_flag), other, "{all}");
    }
}

#[test]
fn unknown_names_in_files_are_refused_with_their_place() {
    for (text, words) in [
        (
            "names: [a]\nintervall: 4096\n",
            "t:2:1: unknown key `intervall`: did you mean `interval`?",
        ),
        ("names: [a]\ncolour: red\n", "the keys are description"),
        (
            "names: [a]\ninterval: fast\n",
            "t:2:11: interval: \"fast\" is not a size",
        ),
        (
            "names: a\n",
            "t:1:8: names: invalid type: string \"a\", expected a sequence",
        ),
        ("names: [a\n", "t:"),
        ("# nothing\n", "empty"),
        ("just words\n", "t:"),
        (
            "duration_ms: 5\nbuffers { size_kbb: 5 }\n",
            "field 'size_kbb' not found",
        ),
        ("buffers { size_kb: 5 fill_policy: SQUARE }\n", "SQUARE"),
        ("data_sources {", "end of input"),
        ("heapprofd: 5\n", "heapprofd"),
        (
            "heapprofd:\n  heaps: ~\n",
            "`heaps` is neither a value nor a list",
        ),
    ] {
        let error = ConfigFile::parse(text.as_bytes(), "t").expect_err(text);
        assert!(error.to_string().contains(words), "{text:?}: {error}");
        assert_eq!(error.class, ErrorClass::BadInput);
    }
    // Field 200 of a TraceConfig, which does not exist; then bytes that are not a message.
    let error = ConfigFile::parse(&[0xc0, 0x0c, 0x01], "t").expect_err("unknown field");
    assert!(
        error.to_string().contains("field 200 of TraceConfig"),
        "{error}"
    );
    assert!(ConfigFile::parse(&[0xff; 40], "t").is_err());
    let error = ConfigFile::load(Path::new("no-such-preset")).expect_err("no file");
    assert!(
        error.help.as_ref().unwrap().contains("leak-hunt"),
        "{error}"
    );
}

#[test]
fn java_allocations_are_arts_heap_with_what_suits_it() {
    let options = Options {
        java_allocations: Some(JavaAllocations::Any),
        ..named("a")
    };
    let spec = spec_of(&options);
    assert_eq!(spec.heaps, ["com.android.art"]);
    let preset = ConfigFile::load(Path::new("java-allocations")).unwrap();
    let preset = resolve(Some(&preset), &named("a")).unwrap().spec;
    let sizes = |spec: &CaptureSpec| (spec.interval_bytes, spec.shmem_bytes, spec.heaps.clone());
    assert_eq!(sizes(&spec), sizes(&preset));
    let own = Options {
        interval_bytes: Some(512),
        ..options.clone()
    };
    assert_eq!(spec_of(&own).interval_bytes, 512);
    let file = ConfigFile::parse(b"heaps: [h]\ninterval: 1024\n", "t").unwrap();
    let of_file = resolve(Some(&file), &options).unwrap().spec;
    assert_eq!(
        (of_file.interval_bytes, of_file.shmem_bytes),
        (1024, 32 << 20)
    );
    assert_eq!(of_file.heaps, ["com.android.art"]);
    let (_, notices) = spec.for_sdk(34).unwrap();
    let told = &notices[0];
    for lack in ["without classes and threads", "What is freed is not known"] {
        assert!(told.contains(lack), "{told}");
    }
    // Older devices only have the runtime's own tracking.
    let (tracked, notices) = spec.for_sdk(30).unwrap();
    assert_eq!(tracked.java_allocations, Some(JavaAllocations::Tracking));
    assert!(notices[0].contains("with class, thread"), "{notices:?}");
    let config = tracked.encode(&DeviceLimits::default()).unwrap();
    assert!(!config.text.contains("heapprofd"), "{}", config.text);
    assert!(!spec.tracks(Some(31)) && spec.tracks(Some(30)) && !spec.tracks(None));
    let asked = |java_allocations| Options {
        java_allocations: Some(java_allocations),
        ..named("a")
    };
    assert!(spec_of(&asked(JavaAllocations::Tracking)).tracks(Some(35)));
    let error = spec_of(&asked(JavaAllocations::Heap))
        .for_sdk(30)
        .unwrap_err();
    assert_eq!(error.class, ErrorClass::NotEligible);
    let error = error.to_string();
    assert!(
        error.contains("--java-allocations=heap needs Android 12"),
        "{error}"
    );
    assert!(error.contains("debuggable"), "{error}");
}

#[test]
fn dumps_for_labels_come_often_enough_to_wait_for_and_seldom_enough_to_stay_small() {
    let of = |duration: Option<u64>, detached| {
        let spec = CaptureSpec {
            duration: duration.map(Duration::from_secs),
            ..CaptureSpec::default()
        };
        Snapshots::Auto
            .period(&spec, detached)
            .map(|period| period.as_secs())
    };
    assert_eq!(of(None, false), Some(5));
    assert_eq!(of(None, true), Some(10));
    assert_eq!(of(Some(30), false), Some(2));
    assert_eq!(of(Some(300), true), Some(5));
    assert_eq!(of(Some(86_400), false), Some(10));
    let at_max = CaptureSpec {
        dump_at_max: true,
        ..CaptureSpec::default()
    };
    assert_eq!(Snapshots::Auto.period(&at_max, false), None);
    let second = Duration::from_secs(1);
    assert_eq!(
        Snapshots::Every(second).period(&at_max, false),
        Some(second)
    );
    assert_eq!(Snapshots::Off.period(&CaptureSpec::default(), false), None);
    assert_eq!(Snapshots::from_period(Some(Duration::ZERO)), Snapshots::Off);
}

/// Found by fuzzing: a zero byte has no form of its own in the text format.
#[test]
fn control_characters_in_a_text_config_read_back_as_written() {
    let config =
        parse_text("data_sources { config { name: \"a\\0001\\x7f\\302\\205\\n\" } }").unwrap();
    let name = config.data_sources[0].config.as_ref().unwrap().name();
    assert_eq!(name, "a\u{0}1\u{7f}\u{85}\n");
    let text = print_text(&config);
    assert!(text.contains(r#""a\0001\177\302\205\n""#), "{text}");
    assert_eq!(parse_text(&text).unwrap(), config);
}

#[test]
fn a_mistyped_common_heap_is_told_before_the_recording() {
    let notices = |heaps: &[&str]| {
        let options = Options {
            heaps: heaps.iter().map(|heap| (*heap).to_owned()).collect(),
            ..named("a")
        };
        resolve(None, &options).unwrap().notices
    };
    for (typed, meant) in [
        ("malloc", "libc.malloc"),
        ("libc.maloc", "libc.malloc"),
        ("art", "com.android.art"),
    ] {
        let words = format!("`--heaps {typed}`: did you mean {meant}?");
        assert_eq!(notices(&["my.pool", typed]), [words]);
    }
    let known = ["libc.malloc", "com.android.art", "my.pool"];
    assert_eq!(notices(&known), [""; 0]);
}

#[test]
fn a_huge_interval_has_a_notice() {
    let notices = |interval: u64| {
        let options = Options {
            interval_bytes: Some(interval),
            ..named("a")
        };
        resolve(None, &options).unwrap().notices
    };
    assert!(notices(100 << 30)[0].contains("about 100.0 GiB of"));
    assert_eq!(notices(16 << 20), [""; 0]);
}

#[test]
fn a_config_without_a_native_heap_names_the_command_for_what_it_has() {
    let java = r#"data_sources { config { name: "android.java_hprof" java_hprof_config { process_cmdline: "com.example.app" } } }"#;
    let oom = r#"data_sources { config { name: "android.java_hprof.oom" } }"#;
    let ftrace = r#"data_sources { config { name: "linux.ftrace" } }"#;
    let native = r#"data_sources { config { name: "android.heapprofd" heapprofd_config { all: true sampling_interval_bytes: 4096 } } }"#;
    for (text, kind, message, help) in [
        (
            java,
            "config-not-native",
            "a Java heap dump",
            "`heaptap dump -n com.example.app`",
        ),
        (
            oom,
            "config-not-native",
            "java_hprof.oom",
            "`heaptap dump -n NAME --wait-for-oom`",
        ),
        (
            ftrace,
            "config-not-native",
            "for linux.ftrace",
            "add `-n NAME`",
        ),
        (
            "duration_ms: 5",
            "config-not-native",
            "no data source",
            "add `-n NAME`",
        ),
        (
            r#"{"duration_ms": 5}"#,
            "config-invalid",
            "JSON",
            "docs/reference",
        ),
    ] {
        let file = ConfigFile::parse(text.as_bytes(), "a.cfg");
        let why = file.and_then(|file| resolve(Some(&file), &Options::default()));
        let why = why.expect_err(text);
        assert_eq!(why.facts().kind, kind, "{text}");
        assert!(why.to_string().contains(message), "{why}");
        let helped = why.facts().help.unwrap_or_default();
        assert!(helped.contains(help), "{helped}");
    }
    for (text, options) in [
        (java, named("com.example.app")),
        (&*format!("{java}\n{native}"), Options::default()),
    ] {
        let file = ConfigFile::parse(text.as_bytes(), "a.cfg").expect("a config");
        let config = resolve(Some(&file), &options).expect("a native heap").spec;
        let config = config
            .encode(&DeviceLimits::default())
            .expect("a config")
            .config;
        assert!(
            config.data_sources.iter().any(sources::is(JAVA_HPROF)),
            "{text}"
        );
        heapprofd(&config);
    }
}
