//! Recordings on the virtual phone: heapprofd's accepted targets, dump times, ends, and that the
//! trace has the actual allocations.

use heaptap_proto::perfetto as pb;
use prost::Message as _;
use virtual_phone::DumpTruth;

use crate::client::{
    TRACE, config, decode, dumps, feed, heapprofd, phone, pull, record, run, sleep, start, text,
    wait_for,
};

fn lasting(names: &[&str], ms: u32) -> pb::TraceConfig {
    pb::TraceConfig {
        duration_ms: Some(ms),
        ..config(names)
    }
}

/// The sampled sums of a dump equal the sampler's own, callsite by callsite.
fn assert_sums(truth: &DumpTruth, samples: &[pb::profile_packet::HeapSample]) {
    let sum = |f: fn(&pb::profile_packet::HeapSample) -> u64| samples.iter().map(f).sum::<u64>();
    let of = |f: fn(&virtual_phone::SiteTruth) -> u64| truth.sites.iter().map(f).sum::<u64>();
    // Callsites missing from the dump were freed completely.
    let gone = of(|s| s.sampled_allocated) - sum(|s| s.self_allocated());
    assert_eq!(
        of(|s| s.sampled_freed) - sum(|s| s.self_freed()),
        gone,
        "{}",
        truth.heap
    );
    let gone = of(|s| s.sampled_alloc_count) - sum(|s| s.alloc_count());
    assert_eq!(of(|s| s.sampled_free_count) - sum(|s| s.free_count()), gone);
}

#[test]
fn a_trace_says_what_was_allocated_on_every_android() {
    for android in 10..=16 {
        let phone = phone(&format!("android={android},speed=50"));
        let mut config = lasting(&["com.example.app"], 10_000);
        heapprofd(&mut config).continuous_dump_config =
            Some(pb::heapprofd_config::ContinuousDumpConfig {
                dump_phase_ms: Some(2_000),
                dump_interval_ms: Some(2_000),
            });
        let trace = record(&phone, &config);
        let dumps = dumps(&trace);
        let truth = phone.truth();
        assert_eq!(truth.len(), 1);
        assert_eq!(truth[0].path, TRACE);
        assert_eq!(dumps.len(), truth[0].dumps.len(), "Android {android}");
        assert!(
            (4..=6).contains(&dumps.len()),
            "Android {android}: {}",
            dumps.len()
        );
        for (dump, truth) in dumps.iter().zip(&truth[0].dumps) {
            assert_eq!(dump.header.pid(), u64::from(truth.pid));
            assert!(!dump.header.from_startup() && !dump.header.disconnected());
            assert_eq!(dump.header.heap_name.is_some(), android >= 12);
            assert_sums(truth, &dump.samples);
        }
        let last = &truth[0].dumps[dumps.len() - 1];
        let leak = last
            .sites
            .iter()
            .find(|s| &*s.name == "leak")
            .expect("it leaks");
        assert!(leak.allocated > 5 << 20 && leak.freed == 0, "{leak:?}");
        assert!(
            leak.allocated * 2 > last.unreleased(),
            "the leak is the most of it"
        );
        assert_eq!(
            leak.sampled_allocated, leak.allocated,
            "large ones are exact"
        );
        let ratio = {
            let sampled: u64 = last.sites.iter().map(|s| s.sampled_allocated).sum();
            sampled as f64 / last.allocated() as f64
        };
        assert!((0.95..1.05).contains(&ratio), "{ratio}");
        let has_tables = trace.packet.iter().any(|p| {
            p.profile_packet
                .as_ref()
                .is_some_and(|p| !p.callstacks.is_empty())
        });
        assert_eq!(
            has_tables,
            android == 10,
            "tables stand in the packet on Android 10 only"
        );
    }
}

#[test]
fn names_pids_and_packages_pick_processes() {
    let phone = phone("android=14,speed=50,build=userdebug");
    let pid = |name: &str| {
        text(&phone, &format!("pidof {name}"))
            .trim()
            .parse::<u64>()
            .expect("a pid")
    };
    let recorded = |config: &pb::TraceConfig| {
        let mut pids: Vec<u64> = dumps(&record(&phone, config))
            .iter()
            .map(|d| d.header.pid())
            .collect();
        pids.sort_unstable();
        pids.dedup();
        pids
    };
    let app = pid("com.example.app");
    assert_eq!(recorded(&lasting(&["com.example.app"], 500)), [app]);
    assert_eq!(
        recorded(&lasting(&["com.example.app:service"], 500)),
        [pid("com.example.app:service")]
    );
    assert_eq!(
        recorded(&lasting(&["/system/bin/surfaceflinger"], 500)),
        [pid("surfaceflinger")]
    );
    assert_eq!(
        recorded(&lasting(&["surfaceflinger"], 500)),
        [pid("surfaceflinger")]
    );
    assert_eq!(recorded(&lasting(&["com.example"], 500)), Vec::<u64>::new());
    assert_eq!(
        recorded(&lasting(&["com.example.app*"], 500)),
        Vec::<u64>::new(),
        "no globs before v57"
    );
    let mut by_pid = lasting(&[], 500);
    heapprofd(&mut by_pid).pid = vec![app, 999_999];
    assert_eq!(recorded(&by_pid), [app]);
    assert_eq!(
        recorded(&lasting(&["com.example.chat"], 500)).len(),
        2,
        "both users'"
    );
    assert_eq!(
        recorded(&lasting(&["zygote64", "logd", "init"], 500)),
        Vec::<u64>::new()
    );

    let new = crate::client::phone("perfetto=58,speed=50");
    let mut glob = lasting(&["com.example.app*"], 500);
    heapprofd(&mut glob).no_startup = Some(true);
    assert_eq!(
        dumps(&record(&new, &glob)).len(),
        2,
        "the app and its service"
    );
    heapprofd(&mut glob).no_startup = None;
    assert!(
        dumps(&record(&new, &glob)).is_empty(),
        "refused without no_startup"
    );
}

#[test]
fn user_builds_profile_what_may_be_profiled() {
    let phone = phone("android=14,speed=50");
    for (name, allowed) in [
        ("com.example.app", true),
        ("com.example.profileable", true),
        ("com.example.platform", false),
        ("com.example.closed", false),
        ("com.android.settings", false),
        ("surfaceflinger", false),
        ("com.example.idle", false),
        ("com.example.frozen", false),
        ("com.example.work", true),
        ("com.example.browser", true),
    ] {
        let found = !dumps(&record(&phone, &lasting(&[name], 500))).is_empty();
        // An idle process answers with an empty pair, without a dump.
        assert_eq!(found, allowed, "{name}");
    }
    assert!(
        text(&phone, "logcat -d -s perfetto:*").contains("(com.example.closed) is not profileable")
    );
}

#[test]
fn a_started_app_is_profiled_from_its_start() {
    let phone = phone("android=14,speed=20");
    let mut config = config(&["com.example.app"]);
    heapprofd(&mut config).no_running = Some(true);
    let pid = start(&phone, &config);
    sleep(&phone, 0.5);
    text(
        &phone,
        "am force-stop com.example.app; am start -n com.example.app/.ui.FeedActivity",
    );
    sleep(&phone, 3.0);
    text(&phone, &format!("kill -TERM {pid}"));
    wait_for(&phone, pid);
    let dumps = dumps(&decode(&phone));
    assert_eq!(dumps.len(), 1);
    assert!(dumps[0].header.from_startup());
    let truth = &phone.truth()[0].dumps[0];
    let startup = truth
        .sites
        .iter()
        .find(|s| &*s.name == "startup")
        .expect("it was seen");
    assert!(startup.allocated > 1 << 20, "{startup:?}");
}

#[test]
fn a_process_that_dies_leaves_its_dump() {
    let phone = phone("android=14,speed=20");
    let pid = start(&phone, &config(&["com.example.app"]));
    sleep(&phone, 1.0);
    text(&phone, "am force-stop com.example.app");
    sleep(&phone, 0.5);
    text(&phone, &format!("kill -INT {pid}"));
    wait_for(&phone, pid);
    let dumps = dumps(&decode(&phone));
    assert_eq!(dumps.len(), 1);
    assert!(dumps[0].header.disconnected());
}

#[test]
fn heaps_and_intervals_are_those_asked_for() {
    let phone = phone("android=14,speed=50");
    let heaps = |config: &pb::TraceConfig| {
        let mut all: Vec<(String, u64)> = dumps(&record(&phone, config))
            .iter()
            .map(|d| {
                (
                    d.header.heap_name().to_owned(),
                    d.header.sampling_interval_bytes(),
                )
            })
            .collect();
        all.sort();
        all
    };
    let mut c = lasting(&["com.example.app"], 500);
    heapprofd(&mut c).all_heaps = Some(true);
    assert_eq!(heaps(&c).len(), 3);
    heapprofd(&mut c).exclude_heaps = vec!["com.example.arena".to_owned()];
    assert_eq!(heaps(&c).len(), 2);
    let mut c = lasting(&["com.example.app"], 500);
    heapprofd(&mut c).heaps = vec!["com.android.art".to_owned(), "libc.malloc".to_owned()];
    heapprofd(&mut c).heap_sampling_intervals = vec![512, 8192];
    assert_eq!(
        heaps(&c),
        [
            ("com.android.art".to_owned(), 512),
            ("libc.malloc".to_owned(), 8192)
        ]
    );
    let mut c = lasting(&["com.example.app"], 500);
    heapprofd(&mut c).heaps = vec!["no.such.heap".to_owned()];
    assert!(heaps(&c).is_empty());
}

#[test]
fn at_max_is_the_largest_moment() {
    let phone = phone("android=14,speed=50");
    let mut config = lasting(&["com.example.app"], 6_000);
    heapprofd(&mut config).dump_at_max = Some(true);
    let dumps = dumps(&record(&phone, &config));
    let max: u64 = dumps[0].samples.iter().map(|s| s.self_max()).sum();
    assert!(dumps[0].samples.iter().all(|s| s.self_allocated.is_none()));
    let truth = &phone.truth()[0].dumps[0];
    let last: u64 = truth
        .sites
        .iter()
        .map(|s| s.sampled_allocated - s.sampled_freed)
        .sum();
    let all: u64 = truth.sites.iter().map(|s| s.sampled_allocated).sum();
    assert!(max >= last && max < all, "{last} <= {max} < {all}");
}

#[test]
fn a_signal_to_heapprofd_makes_a_dump() {
    let phone = phone("android=14,build=userdebug,speed=20");
    let pid = start(&phone, &config(&["com.example.app"]));
    sleep(&phone, 1.0);
    assert_eq!(
        run(&phone, "killall -USR1 heapprofd").status,
        Some(1),
        "nobody's, not the shell's"
    );
    text(&phone, "su root killall -USR1 heapprofd");
    sleep(&phone, 1.0);
    text(&phone, &format!("kill -TERM {pid}"));
    wait_for(&phone, pid);
    assert_eq!(dumps(&decode(&phone)).len(), 2);
}

#[test]
fn a_name_is_unique_and_a_second_session_is_rejected_by_the_target() {
    let phone = phone("android=14,speed=20");
    let named = pb::TraceConfig {
        unique_session_name: Some("one".to_owned()),
        ..config(&["com.example.app"])
    };
    let first = start(&phone, &named);
    let second = feed(
        &phone,
        "perfetto -c - -o /data/misc/perfetto-traces/two -d",
        &named.encode_to_vec(),
    );
    assert_eq!(second.status, Some(0), "{second:?}");
    let second: u32 = second.text().trim().parse().expect("a pid");
    wait_for(&phone, second);
    assert!(!phone.has_file("/data/misc/perfetto-traces/two"));
    assert!(text(&phone, "logcat -d -s perfetto:E").contains("already exists"));

    sleep(&phone, 0.5);
    let other = lasting(&["com.example.app"], 1_000);
    let ran = feed(
        &phone,
        "perfetto -c - -o /data/misc/perfetto-traces/three",
        &other.encode_to_vec(),
    );
    assert_eq!(ran.status, Some(0), "{ran:?}");
    let bytes = pull(&phone, "/data/misc/perfetto-traces/three").expect("a trace");
    let rejected = dumps(&pb::Trace::decode(bytes.as_slice()).expect("whole"));
    assert_eq!(rejected.len(), 1);
    assert!(rejected[0].header.rejected_concurrent());
    assert!(rejected[0].samples.is_empty());
    text(&phone, &format!("kill {first}"));
    wait_for(&phone, first);
}

#[test]
fn endings_leave_what_was_flushed() {
    // A second signal of a kind kills, here while the first is being handled.
    let phone = phone("android=14,speed=1,fault=stop-timeout");
    let pid = start(&phone, &config(&["com.example.app"]));
    sleep(&phone, 2.5);
    text(
        &phone,
        &format!("kill -INT {pid}; sleep 2; kill -INT {pid}"),
    );
    wait_for(&phone, pid);
    let cut = pull(&phone, TRACE).expect("a file");
    assert!(
        pb::Trace::decode(cut.as_slice()).is_err(),
        "it ends inside a packet"
    );

    let phone = crate::client::phone("android=14,speed=50");
    let mut lazy = config(&["com.example.app"]);
    heapprofd(&mut lazy).continuous_dump_config =
        Some(pb::heapprofd_config::ContinuousDumpConfig {
            dump_phase_ms: Some(300),
            dump_interval_ms: Some(500),
        });
    for (flush, write, kept) in [
        (Some(500), true, true),
        (None, true, false),
        (Some(500), false, false),
    ] {
        let config = pb::TraceConfig {
            flush_period_ms: flush,
            write_into_file: Some(write),
            ..lazy.clone()
        };
        let pid = start(&phone, &config);
        sleep(&phone, 4.0);
        text(&phone, &format!("kill -9 {pid}"));
        let bytes = pull(&phone, TRACE).expect("a file");
        let found = pb::Trace::decode(bytes.as_slice()).is_ok_and(|t| !dumps(&t).is_empty());
        assert_eq!(
            found,
            kept,
            "flush {flush:?}, into file {write}: {} bytes",
            bytes.len()
        );
        assert_eq!(bytes.is_empty(), !write);
    }
}

#[test]
fn the_client_refuses_as_real_ones_do() {
    let phone = phone("android=14,speed=100");
    let good = lasting(&["com.example.app"], 200).encode_to_vec();
    let to = |path: &str| format!("perfetto -c - -o {path}");
    for (command, config, status, words) in [
        (to(TRACE), &b""[..], 1, "The TraceConfig is empty"),
        (to(TRACE), b"nonsense", 1, "Did you forget --txt"),
        (format!("{} --txt", to(TRACE)), b"nonsense", 1, "error"),
        (to("/sdcard/t"), &good, 1, "Failed to open"),
        ("perfetto -c -".to_owned(), &good, 1, "--out is required"),
        (
            to(TRACE),
            &pb::TraceConfig::default().encode_to_vec()[..0],
            1,
            "empty",
        ),
        (
            "perfetto --nonsense".to_owned(),
            b"",
            1,
            "unrecognized option",
        ),
        (
            "perfetto -c /data/local/tmp/c -o x".to_owned(),
            b"",
            1,
            "Could not open",
        ),
    ] {
        let ran = feed(&phone, &command, config);
        assert_eq!(ran.status, Some(status), "{command}: {ran:?}");
        assert!(ran.err.contains(words), "{command}: {ran:?}");
    }
    // A config rejected by the service gives exit status 0 and no file.
    let no_buffers = pb::TraceConfig {
        duration_ms: Some(100),
        ..Default::default()
    };
    let ran = feed(&phone, &to(TRACE), &no_buffers.encode_to_vec());
    assert_eq!(ran.status, Some(0), "{ran:?}");
    assert!(ran.err.contains("Service error"), "{ran:?}");
    assert!(!phone.has_file(TRACE));
    let stdout = feed(&phone, "perfetto -c - -o - 2>/dev/null", &good);
    assert!(pb::Trace::decode(stdout.out.as_slice()).is_ok_and(|t| !dumps(&t).is_empty()));
    assert!(text(&phone, "perfetto --version").starts_with("Perfetto v34"));
    let raw = run(&phone, "perfetto --query-raw").out;
    let state = pb::TracingServiceState::decode(raw.as_slice()).expect("a state");
    assert!(!state.data_sources.is_empty());
}

#[test]
fn a_file_has_its_limit_and_a_buffer_its_size() {
    let phone = phone("android=14,speed=50,app=heavy,sites=20000");
    let limited = pb::TraceConfig {
        max_file_size_bytes: Some(200_000),
        ..config(&["com.example.app"])
    };
    let pid = start(&phone, &limited);
    sleep(&phone, 2.0);
    text(&phone, &format!("kill {pid}; true"));
    wait_for(&phone, pid);
    let bytes = pull(&phone, TRACE).expect("a file");
    assert!(bytes.len() <= 200_000, "{}", bytes.len());
    assert!(pb::Trace::decode(bytes.as_slice()).is_ok(), "whole packets");

    let mut small = lasting(&["com.example.app"], 2_000);
    small.write_into_file = None;
    small.buffers[0].size_kb = Some(64);
    let trace = record(&phone, &small);
    let stats = trace
        .packet
        .iter()
        .find_map(|p| p.trace_stats.clone())
        .expect("statistics");
    assert!(stats.buffer_stats[0].bytes_overwritten() > 0);
    assert!(
        !trace
            .packet
            .iter()
            .any(|p| p.interned_data.is_some() && p.sequence_flags() == 1)
    );
}

#[test]
fn a_heavy_app_gives_a_large_trace() {
    let phone = phone("android=14,speed=50,app=heavy");
    let bytes = {
        record(&phone, &lasting(&["com.example.app"], 2_000));
        pull(&phone, TRACE).expect("a trace")
    };
    assert!(bytes.len() > 8 << 20, "{} bytes", bytes.len());
    let trace = pb::Trace::decode(bytes.as_slice()).expect("whole");
    let all = dumps(&trace);
    assert_eq!(all.len(), 1);
    assert!(all[0].samples.len() > 95_000, "{}", all[0].samples.len());
    assert_sums(&phone.truth()[0].dumps[0], &all[0].samples);
}

#[test]
fn other_sources_write_theirs() {
    let phone = phone("android=14,speed=10");
    let source = |config: pb::DataSourceConfig| pb::trace_config::DataSource {
        config: Some(config),
        ..Default::default()
    };
    let mut config = lasting(&["com.example.app"], 12_000);
    config.data_sources.push(source(pb::DataSourceConfig {
        name: Some("android.packages_list".to_owned()),
        packages_list_config: Some(pb::PackagesListConfig {
            package_name_filter: vec!["com.example.app".to_owned()],
            ..Default::default()
        }),
        ..Default::default()
    }));
    config.data_sources.push(source(pb::DataSourceConfig {
        name: Some("linux.process_stats".to_owned()),
        process_stats_config: Some(pb::ProcessStatsConfig {
            proc_stats_poll_ms: Some(250),
            ..Default::default()
        }),
        ..Default::default()
    }));
    let trace = record(&phone, &config);
    let list = trace
        .packet
        .iter()
        .find_map(|p| p.packages_list.clone())
        .expect("packages");
    assert_eq!(list.packages.len(), 1);
    assert!(list.packages[0].debuggable() && list.packages[0].uid() == 10_234);
    assert!(trace.packet.iter().any(|p| p.process_tree.is_some()));
    assert!(
        trace
            .packet
            .iter()
            .filter(|p| p.process_stats.is_some())
            .count()
            >= 2
    );
}

#[test]
fn a_stored_recording_comes_back_byte_for_byte() {
    let stored =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/conversions/c_max.pftrace");
    let bytes = std::fs::read(&stored).expect("the fixture");
    let phone = phone(&format!("speed=50,trace={}", stored.display()));
    let pid = start(&phone, &lasting(&["com.example.app"], 300));
    wait_for(&phone, pid);
    assert_eq!(pull(&phone, TRACE), Ok(bytes));
}
