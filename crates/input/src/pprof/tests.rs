//! Handwritten profiles as tools write them, and limits for hostile profiles.

use super::read_pprof;
use heaptap_model::profile::DumpKind;
use heaptap_model::profile::comments::{AT_MAXIMUM, ATTACHED};
use heaptap_model::stacks::{Kind, NodeId, StackProfile, Unit, Values, View};
use proptest::prelude::*;

/// A writer of protobuf messages.
#[derive(Clone, Default)]
struct Wire(Vec<u8>);

impl Wire {
    fn varint(mut self, mut n: u64) -> Wire {
        while n >= 0x80 {
            self.0.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.0.push(n as u8);
        self
    }

    fn number(self, field: u64, n: u64) -> Wire {
        self.varint(field << 3).varint(n)
    }

    fn bytes(self, field: u64, bytes: &[u8]) -> Wire {
        let mut wire = self.varint(field << 3 | 2).varint(bytes.len() as u64);
        wire.0.extend_from_slice(bytes);
        wire
    }

    fn message(self, field: u64, inner: Wire) -> Wire {
        self.bytes(field, &inner.0)
    }

    fn packed(self, field: u64, all: &[u64]) -> Wire {
        let inner = all.iter().fold(Wire::default(), |wire, &n| wire.varint(n));
        self.message(field, inner)
    }
}

fn wire() -> Wire {
    Wire::default()
}

#[test]
fn a_java_heap_of_perfetto_has_live_objects() {
    let profile = |root: &str| {
        let strings = [
            "",
            "Total allocation count",
            "count",
            "Total allocation size",
            "bytes",
            root,
        ];
        let mut wire = wire();
        for string in strings {
            wire = wire.bytes(6, string.as_bytes());
        }
        let wire = wire
            .message(1, Wire::default().number(1, 1).number(2, 2))
            .message(1, Wire::default().number(1, 3).number(2, 4))
            .message(2, Wire::default().packed(1, &[1]).packed(2, &[3, 96]))
            .message(
                4,
                Wire::default()
                    .number(1, 1)
                    .message(4, Wire::default().number(1, 1)),
            )
            .message(5, Wire::default().number(1, 1).number(2, 5));
        let mut read = read_pprof(&wire.0).unwrap().profile;
        let dump = read.dumps.remove(0);
        let views: Vec<_> = dump.measures.iter().map(|measure| measure.view).collect();
        (dump.facts.kind, views)
    };
    assert_eq!(
        profile("x.Cache [ROOT_JNI_GLOBAL]"),
        (
            DumpKind::JavaHeap,
            vec![Some(View::Objects), Some(View::Space)]
        )
    );
    assert_eq!(
        profile("x.Cache.load"),
        (
            DumpKind::AllocationsOnly,
            vec![Some(View::AllocObjects), Some(View::AllocSpace)]
        )
    );
}

/// Returns a heap profile as Go's runtime writes it, with block sizes as labels and inlined lines.
fn go_heap() -> Wire {
    let strings = [
        "",
        "alloc_objects",
        "count",
        "alloc_space",
        "bytes",
        "inuse_objects",
        "inuse_space",
        "main.load",
        "main.grow",
        "load.go",
        "/usr/bin/app",
        "abcdef",
        "space",
        "_ZN3app4loadEv",
        "main.main",
    ];
    let value_type = |name, unit| wire().number(1, name).number(2, unit);
    let label = wire().number(1, 4).number(3, 512);
    let line = |function, line| wire().number(1, function).number(2, line);
    let mut profile = wire();
    for (name, unit) in [(1, 2), (3, 4), (5, 2), (6, 4)] {
        profile = profile.message(1, value_type(name, unit));
    }
    let profile = profile
        .message(
            2,
            wire()
                .packed(1, &[1, 2])
                .packed(2, &[3, 300, 1, 100])
                .message(3, label.clone()),
        )
        .message(
            2,
            wire()
                .packed(1, &[1, 2])
                .packed(2, &[1, 4096, 1, 4096])
                .message(3, label),
        )
        // One value per field, not packed.
        .message(
            2,
            wire()
                .number(1, 3)
                .number(2, 5)
                .number(2, 50)
                .number(2, 0)
                .number(2, 0),
        )
        .message(
            3,
            wire()
                .number(1, 1)
                .number(2, 0x40_0000)
                .number(3, 0x50_0000)
                .number(4, 0x1000)
                .number(5, 10)
                .number(6, 11),
        )
        .message(
            4,
            wire()
                .number(1, 1)
                .number(2, 1)
                .number(3, 0x40_1234)
                .message(4, line(8, 70))
                .message(4, line(7, 7)),
        )
        .message(
            4,
            wire()
                .number(1, 2)
                .number(2, 1)
                .number(3, 0x40_2000)
                .message(4, line(9, 3)),
        )
        .message(4, wire().number(1, 3).number(2, 1).number(3, 0x40_1010))
        .message(
            5,
            wire().number(1, 7).number(2, 7).number(3, 7).number(4, 9),
        )
        .message(5, wire().number(1, 8).number(3, 13).number(4, 9))
        .message(
            5,
            wire().number(1, 9).number(2, 14).number(3, 14).number(4, 9),
        );
    let profile = strings
        .iter()
        .fold(profile, |profile, text| profile.bytes(6, text.as_bytes()));
    profile
        .number(9, 1_700_000_000_000_000_000)
        .message(11, value_type(12, 4))
        .number(12, 524_288)
        .number(14, 6)
}

/// Returns name, line and whether the frame is inlined, leaf first.
fn stack(profile: &StackProfile, leaf: NodeId) -> Vec<(&str, u32, bool)> {
    let table = &profile.table;
    let frame = |node| {
        let frame = table.frames()[table.frame_of(node).unwrap().0 as usize];
        (table.name_of(node), frame.line, frame.inlined)
    };
    table.stack(leaf).map(frame).collect()
}

#[test]
fn a_heap_profile_of_go_is_read_whole() {
    let read = read_pprof(&go_heap().0).unwrap();
    assert_eq!(read.damage, None);
    let (profile, dump) = (&read.profile, &read.profile.dumps[0]);
    assert_eq!(dump.measures[dump.default_measure].name, "inuse_space");
    assert_eq!(
        dump.column(View::Space).unwrap(),
        [4196, 0],
        "blocks of two sizes have one callsite"
    );
    assert_eq!(dump.column(View::AllocObjects).unwrap(), [4, 5]);
    let (first, second) = (dump.values.nodes[0], dump.values.nodes[1]);
    let expected = [
        ("app::load()", 70, true),
        ("main.load", 7, false),
        ("main.main", 3, false),
    ];
    assert_eq!(stack(profile, first), expected);
    assert_eq!(
        stack(profile, second),
        [("app+0x2010", 0, false)],
        "address in its file"
    );
    let library = &profile.table.libraries()[1];
    assert_eq!(profile.table.text_of(library.path), "/usr/bin/app");
    assert_eq!(profile.table.text_of(library.build_id), "abcdef");
    assert_eq!(dump.facts.wall_time_ns, Some(1_700_000_000_000_000_000));
    assert_eq!(dump.facts.sampling_interval_bytes, 524_288);
    assert_eq!(dump.facts.kind, DumpKind::Cumulative);
}

/// Returns a profile of one sample with these columns and this leaf.
fn one(columns: &[(&str, &str)], name: &str, path: &str, comments: &[&str]) -> Wire {
    let mut strings = vec![""];
    let mut profile = wire();
    for (column, unit) in columns {
        let at = strings.len() as u64;
        strings.extend([*column, *unit]);
        profile = profile.message(1, wire().number(1, at).number(2, at + 1));
    }
    let values: Vec<u64> = (1..=columns.len() as u64).collect();
    let at = strings.len() as u64;
    strings.extend([name, path]);
    profile = profile
        .message(2, wire().packed(1, &[1]).packed(2, &values))
        .message(3, wire().number(1, 1).number(5, at + 1))
        .message(
            4,
            wire()
                .number(1, 1)
                .number(2, 1)
                .message(4, wire().number(1, 1)),
        )
        .message(5, wire().number(1, 1).number(2, at));
    for comment in comments {
        profile = profile.number(13, strings.len() as u64);
        strings.push(comment);
    }
    strings
        .iter()
        .fold(profile, |profile, text| profile.bytes(6, text.as_bytes()))
}

#[test]
fn columns_of_perfetto_and_others_are_known() {
    let perfetto = [
        ("Total malloc size", "bytes"),
        ("Unreleased malloc size", "bytes"),
    ];
    let read = read_pprof(&one(&perfetto, "malloc", "/lib/libc.so", &[]).0).unwrap();
    let dump = &read.profile.dumps[0];
    assert_eq!(dump.column(View::AllocSpace).unwrap(), [1]);
    assert_eq!(dump.column(View::Space).unwrap(), [2]);
    assert_eq!(dump.default_measure, 1, "the last one, as in Go");
    assert_eq!(read.profile.table.functions()[0].kind, Kind::Allocator);
    let other = [("cpu", "nanoseconds"), ("space", "kilobytes")];
    let read = read_pprof(&one(&other, "f", "", &[]).0).unwrap();
    let dump = &read.profile.dumps[0];
    assert_eq!(dump.measures[0].unit, Unit::Other("nanoseconds".to_owned()));
    assert_eq!(dump.column(View::Space).unwrap(), [2048]);
    let allocated = [("alloc_objects", "count"), ("alloc_space", "bytes")];
    let read = read_pprof(&one(&allocated, "a.B.c [jit]", "", &[]).0).unwrap();
    assert_eq!(read.profile.dumps[0].facts.kind, DumpKind::AllocationsOnly);
    assert_eq!(read.profile.table.functions()[0].kind, Kind::Java);
}

#[test]
fn our_own_profiles_say_why_data_are_missing() {
    let flags = heaptap_model::profile::DumpFlags {
        rejected_concurrent: true,
        disconnected: true,
        buffer_overran: true,
        buffer_corrupted: true,
        hit_guardrail: true,
        client_error: 2,
        from_startup: true,
    };
    let words = format!(
        "flags: {}, unfinished, unheard_of",
        flags.words().join(", ")
    );
    let comments = ["heaptap 0.1.0: pid 7, a, heap x", &words];
    let read = read_pprof(&one(&[("space", "bytes")], "f", "/x", &comments).0).unwrap();
    let facts = &read.profile.dumps[0].facts;
    assert_eq!(facts.flags, flags);
    assert!(facts.unfinished);
    let whole = ["heaptap 0.1.0: pid 7, a, heap x"];
    let read = read_pprof(&one(&[("space", "bytes")], "f", "/x", &whole).0).unwrap();
    let facts = &read.profile.dumps[0].facts;
    assert!(facts.flags.words().is_empty() && !facts.unfinished);
}

#[test]
fn our_own_profiles_say_whose_they_are() {
    let comments = [
        "heaptap 0.1.0: pid 2050, com.example.app:remote, heap libc.malloc",
        &format!("{AT_MAXIMUM}; frees are unknown"),
    ];
    let read = read_pprof(&one(&[("space", "bytes")], "f", "/x", &comments).0).unwrap();
    let facts = &read.profile.dumps[0].facts;
    assert_eq!(
        (facts.pid, facts.process.as_str()),
        (2050, "com.example.app:remote")
    );
    assert_eq!(
        (facts.heap.as_str(), facts.kind),
        ("libc.malloc", DumpKind::AtMaximum)
    );
    assert!(facts.flags.from_startup);
    let comments = ["heaptap 0.1.0: pid 7, heap x", ATTACHED];
    let read = read_pprof(&one(&[("space", "bytes")], "f", "/x", &comments).0).unwrap();
    let facts = &read.profile.dumps[0].facts;
    assert_eq!(
        (facts.pid, facts.process.as_str(), facts.heap.as_str()),
        (7, "", "x")
    );
    assert!(!facts.flags.from_startup);
    let read = read_pprof(
        &one(
            &[("space", "bytes")],
            "libc.so.6+?",
            "/x",
            &["heaptap: pid"],
        )
        .0,
    );
    assert_eq!(read.unwrap().profile.dumps[0].facts.pid, 0);
}

#[test]
fn what_leads_nowhere_is_counted_and_the_rest_stays() {
    let profile = wire()
        .message(1, wire().number(1, 900).number(2, 1))
        .message(2, wire().packed(1, &[1, 77]).packed(2, &[5]))
        .message(2, wire().packed(1, &[1]).packed(2, &[6, 7]))
        .message(2, wire().packed(1, &[1]))
        .message(
            4,
            wire()
                .number(1, 1)
                .number(2, 55)
                .message(4, wire().number(1, 66)),
        )
        .bytes(6, b"")
        .bytes(6, b"bytes");
    let read = read_pprof(&profile.0).unwrap();
    let damage = read.damage.unwrap();
    assert_eq!((damage.strings, damage.locations), (1, 1));
    assert_eq!((damage.samples, damage.functions), (2, 1));
    assert_eq!(read.profile.dumps[0].values.columns, [[11]]);
    assert_eq!(read.profile.table.name_of(NodeId(1)), "?");
    assert!(
        damage
            .to_string()
            .contains("1 reference to a missing location")
    );
    assert!(read_pprof(b"").is_none());
    assert!(read_pprof(b"\x0a").is_none(), "without a column");
}

#[test]
fn a_cut_profile_gives_what_came_before() {
    let whole = go_heap().0;
    let mut most = 0;
    for cut in 0..whole.len() {
        let Some(read) = read_pprof(&whole[..cut]) else {
            continue;
        };
        let dump = &read.profile.dumps[0];
        assert!(
            dump.values
                .columns
                .iter()
                .all(|c| c.len() == dump.values.nodes.len())
        );
        most = most.max(dump.values.nodes.len());
        // A cut between fields looks like a regular end, so the damage is not detected.
        if cut < whole.len() - 60 {
            assert!(
                read.damage.is_some() || dump.values.nodes.len() < 2,
                "cut at {cut}"
            );
        }
    }
    assert_eq!(most, 2);
}

#[test]
fn a_small_file_makes_no_endless_stacks() {
    let line = wire().number(1, 1);
    let location = (0..500).fold(wire().number(1, 1), |l, _| l.message(4, line.clone()));
    let sample = wire().packed(1, &[1; 3000]).packed(2, &[1]);
    let mut profile = wire()
        .message(1, wire().number(1, 1).number(2, 2))
        .message(4, location)
        .message(5, wire().number(1, 1).number(2, 1));
    for _ in 0..50 {
        profile = profile.message(2, sample.clone());
    }
    for text in ["", "space", "bytes"] {
        profile = profile.bytes(6, text.as_bytes());
    }
    let read = read_pprof(&profile.0).unwrap();
    assert!(read.damage.unwrap().cut_stacks > 40);
    assert!(read.profile.table.node_count() < 10_000_000);
    let sum: i64 = read.profile.dumps[0].values.columns[0].iter().sum();
    assert_eq!(sum, 50, "values are kept");
}

#[test]
fn columns_that_no_sample_fills_take_no_memory_beyond_measure() {
    let many = 100_000;
    let one = wire().packed(2, &[7]);
    let full = wire().packed(2, &[7; 100]);
    let mut profile = wire().message(2, one).message(2, full);
    for _ in 0..many {
        profile = profile.message(1, wire()).message(2, wire().number(1, 9));
    }
    let read = read_pprof(&profile.0).unwrap();
    let damage = read.damage.unwrap();
    assert_eq!(damage.columns, many - 64);
    assert_eq!(damage.samples, many + 1, "the full sample is not damaged");
    assert!(damage.dropped_samples > many / 2, "{damage}");
    assert!(
        damage
            .to_string()
            .contains("99,936 columns beyond the limit")
    );
    let dump = &read.profile.dumps[0];
    assert_eq!(dump.measures.len(), 64);
    let sums = dump.values.columns.iter().map(|column| column[0]);
    assert_eq!(sums.collect::<Vec<_>>()[..2], [14, 7]);
}

#[test]
fn samples_without_room_for_their_thread_stay_and_are_told() {
    let mut profile = wire().message(1, wire().number(1, 1).number(2, 1));
    for text in ["", "space", "thread"] {
        profile = profile.bytes(6, text.as_bytes());
    }
    let many = 200_000;
    for thread in 1..=many {
        let label = wire().number(1, 2).number(3, thread);
        profile = profile.message(2, wire().number(2, 1).message(3, label));
    }
    let read = read_pprof(&profile.0).unwrap();
    let damage = read.damage.unwrap();
    assert!(damage.dropped_entries > 0, "{damage}");
    let text = damage.to_string();
    assert!(text.contains("without their thread"), "{text}");
    let dump = &read.profile.dumps[0];
    let sum = |values: &Values| values.columns[0].iter().sum::<i64>() as u64;
    assert_eq!(sum(&dump.values), many - damage.dropped_samples);
    let of_threads: u64 = dump.threads.iter().map(|thread| sum(&thread.values)).sum();
    assert_eq!(of_threads, sum(&dump.values) - damage.dropped_entries);
}

proptest! {
    /// Randomly changed bytes are read without a panic, and all columns keep the same length.
    #[test]
    fn changed_bytes_break_nothing(
        changes in prop::collection::vec((0usize..600, any::<u8>()), 0..12),
        cut in 0usize..700,
    ) {
        let mut bytes = go_heap().0;
        for (at, byte) in changes {
            if let Some(old) = bytes.get_mut(at) {
                *old = byte;
            }
        }
        bytes.truncate(cut);
        if let Some(read) = read_pprof(&bytes) {
            let values = &read.profile.dumps[0].values;
            prop_assert!(values.nodes.is_sorted_by(|a, b| a < b));
            prop_assert!(values.columns.iter().all(|c| c.len() == values.nodes.len()));
        }
    }
}
