//! Packets built in code: each form, out of order, with missing parts, and hostile.

use std::collections::BTreeSet;
use std::io::Cursor;

use proptest::prelude::*;

use super::{MemoryLoss, MemoryWanted, TraceMemory};
use crate::Trace;
use crate::made::{bytes, number};
use android_memory::gc::of_timeline;
use heaptap_model::counter::Counters;
use heaptap_model::timeline::{Collection, Observation, Resident, System};

/// Builds a packet of sequence 2.
fn packet(parts: &[Vec<u8>]) -> Vec<u8> {
    let body = [&[number(10, 2)], parts].concat().concat();
    bytes(1, &body)
}

fn event(at: u64, thread: u64, text: &str) -> Vec<u8> {
    let print = [number(1, 0xffff), bytes(2, text.as_bytes())].concat();
    let event = [number(1, at), number(2, thread), bytes(3, &print)].concat();
    bytes(2, &event)
}

/// Builds a bundle of one processor.
fn bundle(events: &[Vec<u8>]) -> Vec<u8> {
    packet(&[bytes(1, &[&[number(1, 0)], events].concat().concat())])
}

fn read_of(trace: &[Vec<u8>], wanted: &MemoryWanted) -> TraceMemory {
    let mut trace = Trace::open(Box::new(Cursor::new(trace.concat()))).unwrap();
    trace.memory(wanted).unwrap()
}

fn read(trace: &[Vec<u8>]) -> TraceMemory {
    read_of(trace, &MemoryWanted::default())
}

fn collections(memory: &TraceMemory) -> Vec<(u64, u32, Collection)> {
    let entries = memory.timeline.entries.iter();
    let collections = entries.filter_map(|entry| match &entry.seen {
        Observation::Collection(c) => Some((entry.boot_ns, entry.pid, c.clone())),
        _ => None,
    });
    collections.collect()
}

fn sizes(memory: &TraceMemory) -> Vec<(u64, u64)> {
    let entries = memory.timeline.entries.iter();
    let sizes = entries.filter_map(|entry| match &entry.seen {
        Observation::JavaHeap(heap) => Some((entry.boot_ns, heap.allocated / 1024)),
        _ => None,
    });
    sizes.collect()
}

const MS: u64 = 1_000_000;

#[test]
fn lines_of_the_log_about_collections_are_kept_with_their_time() {
    let line = |pid: u64, at: u64, text: &str| {
        let parts = [
            number(2, pid),
            number(5, at),
            bytes(6, b"art"),
            bytes(8, text.as_bytes()),
        ];
        bytes(1, &parts.concat())
    };
    let gc = "Explicit concurrent copying GC freed 1KB AllocSpace bytes";
    let packets = |clocks: Vec<u8>| {
        let lines = [
            line(7, 5_000, gc),
            line(7, 6_000, "hello"),
            line(8, 7_000, gc),
        ]
        .concat();
        [clocks, packet(&[number(8, 900), bytes(39, &lines)])]
    };
    let clock = |id: u64, at: u64| bytes(1, &[number(1, id), number(2, at)].concat());
    let clocks = bytes(6, &[clock(6, 100), clock(1, 5_000)].concat());
    let wanted = MemoryWanted {
        pids: Some(BTreeSet::from([7])),
        ..MemoryWanted::default()
    };
    // Without a relation of the clocks, the time of the packet.
    for (clocks, at) in [(packet(&[clocks]), 100), (Vec::new(), 900)] {
        let memory = read_of(&packets(clocks), &wanted);
        let found: Vec<_> = memory
            .log
            .iter()
            .map(|l| (l.boot_ns, l.pid, &l.message[..]))
            .collect();
        assert_eq!(found, [(at, 7, gc)]);
        assert_eq!(memory.loss, MemoryLoss::default());
    }
}

#[test]
fn a_collection_has_its_reason_collector_duration_pauses_and_live_set() {
    let memory = read(&[bundle(&[
        event(100 * MS, 12, "C|7|Heap size (KB)|9000\n"),
        event(101 * MS, 12, "B|7|Background young concurrent copying GC\n"),
        event(102 * MS, 12, "B|7|InitializePhase\n"),
        event(103 * MS, 12, "E|7\n"),
        event(104 * MS, 12, "B|7|FlipThreadRoots\n"),
        event(105 * MS, 12, "B|7|(Paused)FlipCallback\n"),
        event(106 * MS, 12, "B|7|(Paused)SetFromSpace\n"),
        event(107 * MS, 12, "E|7\n"),
        event(108 * MS, 12, "E|7\n"),
        event(109 * MS, 12, "E|7\n"),
        event(110 * MS, 44, "C|7|Heap size (KB)|9100\n"),
        event(120 * MS, 12, "E|7\n"),
        event(121 * MS, 44, "C|7|Heap size (KB)|4256\n"),
        event(122 * MS, 12, "C|7|Heap size (KB)|4000\n"),
        event(123 * MS, 44, "C|7|Heap size (KB)|4512\n"),
        event(124 * MS, 44, "C|7|Other|1\n"),
    ])]);
    let found = collections(&memory);
    assert_eq!(found.len(), 1);
    let (end, pid, collection) = &found[0];
    assert_eq!((*end, *pid), (120 * MS, 7));
    assert_eq!(collection.reason, "Background");
    assert_eq!(collection.collector, "young concurrent copying");
    assert_eq!(collection.duration, Some(19 * MS));
    assert_eq!(collection.pauses, [3 * MS]);
    // The figure of the collecting thread, not the first one that allocated.
    assert_eq!(collection.live, Some(4000 * 1024));
    assert_eq!(memory.loss, MemoryLoss::default());
    // The first, the last before the GC's end, and those after it.
    let sizes = sizes(&memory);
    assert_eq!(
        sizes,
        [
            (100 * MS, 9000),
            (110 * MS, 9100),
            (121 * MS, 4256),
            (122 * MS, 4000),
            (123 * MS, 4512)
        ]
    );
}

#[test]
fn events_of_several_processors_come_in_any_order() {
    // The thread moved to another processor, whose bundle comes first.
    let memory = read(&[
        bundle(&[
            event(300, 12, "E|7"),
            event(310, 12, "C|7|Heap size (KB)|10"),
        ]),
        bundle(&[
            event(100, 12, "B|7|Alloc concurrent mark compact GC"),
            event(150, 30, "B|9|Explicit concurrent copying GC"),
            event(200, 12, "B|7|MarkingPhase"),
        ]),
        bundle(&[event(250, 12, "E|7"), event(260, 30, "E|9")]),
    ]);
    let found: Vec<_> = collections(&memory)
        .into_iter()
        .map(|(end, pid, c)| (end, pid, c.reason, c.duration, c.live))
        .collect();
    assert_eq!(
        found,
        [
            (260, 9, "Explicit".to_owned(), Some(110), None),
            (300, 7, "Alloc".to_owned(), Some(200), Some(10 * 1024)),
        ]
    );
}

#[test]
fn lost_ends_and_begins_cost_a_duration_and_no_collection() {
    let lossy =
        |events: &[Vec<u8>]| packet(&[bytes(1, &[&[number(3, 1)], events].concat().concat())]);
    let memory = read(&[
        bundle(&[
            event(5, 12, "E|7"),
            event(10, 12, "B|7|Background concurrent copying GC"),
            event(20, 12, "B|7|MarkingPhase"),
        ]),
        // Both ends are lost.
        lossy(&[
            event(100, 12, "B|7|Background concurrent copying GC"),
            event(110, 12, "E|7"),
            // The end of a slice whose start is lost.
            event(111, 12, "E|7"),
            event(115, 12, "C|7|Heap size (KB)|8"),
        ]),
        bundle(&[event(200, 12, "B|7|Alloc concurrent copying GC")]),
        // The lost events might include this one's end.
        lossy(&[event(300, 12, "E|7")]),
        bundle(&[event(400, 12, "B|7|Alloc concurrent copying GC")]),
    ]);
    let found: Vec<_> = collections(&memory)
        .into_iter()
        .map(|(end, _, c)| (end, c.duration, c.live))
        .collect();
    assert_eq!(
        found,
        [
            (10, None, None),
            (110, Some(10), Some(8192)),
            (300, None, None)
        ]
    );
    let loss = memory.loss;
    // Two without an end, and the one that was running when the trace ended.
    assert_eq!((loss.lost_events, loss.torn_collections), (2, 3));
}

#[test]
fn where_the_collecting_threads_figure_is_lost_the_first_of_any_is_the_live_set() {
    let gc = "Background concurrent copying GC";
    let memory = read(&[bundle(&[
        event(100, 12, &format!("B|7|{gc}")),
        event(200, 12, "E|7"),
        event(210, 40, "C|7|Heap size (KB)|50"),
        event(220, 40, "C|7|Heap size (KB)|60"),
        // Too late to belong to that GC.
        event(5_000 * MS, 12, "C|7|Heap size (KB)|70"),
        event(6_000 * MS, 12, &format!("B|7|{gc}")),
        event(6_001 * MS, 12, "E|7"),
        event(6_002 * MS, 12, &format!("B|7|{gc}")),
        event(6_003 * MS, 12, "E|7"),
        event(6_004 * MS, 12, "C|7|Heap size (KB)|20"),
    ])]);
    let live: Vec<_> = collections(&memory).into_iter().map(|c| c.2.live).collect();
    assert_eq!(live, [Some(50 * 1024), None, Some(20 * 1024)]);
}

#[test]
fn every_counter_comes_where_it_is_asked_for() {
    let events: Vec<Vec<u8>> = (0..100)
        .map(|n| event(n * MS, 40, &format!("C|7|Heap size (KB)|{n}")))
        .collect();
    let trace = [bundle(&events)];
    // One in 20 ms, and the last.
    assert_eq!(
        sizes(&read(&trace)),
        [
            (0, 0),
            (20 * MS, 20),
            (40 * MS, 40),
            (60 * MS, 60),
            (80 * MS, 80),
            (99 * MS, 99)
        ]
    );
    let all = MemoryWanted {
        every_counter: true,
        ..MemoryWanted::default()
    };
    assert_eq!(sizes(&read_of(&trace, &all)).len(), 100);
    let none = MemoryWanted {
        pids: Some(BTreeSet::from([8])),
        every_counter: true,
        ..MemoryWanted::default()
    };
    assert!(read_of(&trace, &none).timeline.entries.is_empty());
}

#[test]
fn without_other_figures_the_same_is_told_of_collections() {
    let name = |pid, name: &[u8]| bytes(1, &[number(1, pid), bytes(3, name)].concat());
    let reading = |at: u64| {
        let of = |pid| process(pid, &[(3, at)]);
        packet(&[number(8, at * MS), bytes(9, &[of(7), of(8)].concat())])
    };
    let mut trace = vec![packet(&[bytes(
        2,
        &[name(7, b"com.x"), name(8, b"com.y")].concat(),
    )])];
    trace.extend((1..1000).map(reading));
    for at in [100, 300] {
        trace.push(bundle(&[
            event(at * MS, 1, "B|7|Background concurrent copying GC"),
            event((at + 5) * MS, 1, "E|7"),
            event((at + 6) * MS, 1, "C|7|Heap size (KB)|5"),
            event((at + 40) * MS, 2, "C|7|Heap size (KB)|9"),
        ]));
    }
    let only = MemoryWanted {
        collections_only: true,
        ..MemoryWanted::default()
    };
    let (all, only) = (read(&trace), read_of(&trace, &only));
    assert!(all.timeline.entries.len() > 2000);
    // Two names, two GCs, the first and the last figure.
    assert_eq!(only.timeline.entries.len(), 6, "{:#?}", only.timeline);
    let told = |memory: TraceMemory| of_timeline(memory.timeline);
    let (all, only) = (told(all), told(only));
    assert_eq!(all[0].observed.map(|o| o.ns), Some(998 * MS));
    assert_eq!(format!("{all:?}"), format!("{only:?}"));
}

#[test]
fn what_is_no_collection_is_none() {
    for name in [
        "GC",
        " GC",
        "Background GC",
        "Background  GC",
        "GC: Wait For Completion Background",
        "HeapTaskDaemon GC x",
        "lower concurrent copying GC",
        "Background Concurrent Copying GC",
        "Some|thing concurrent copying GC",
    ] {
        let memory = read(&[bundle(&[
            event(1, 1, &format!("B|7|{name}")),
            event(2, 1, "E|7"),
        ])]);
        assert!(memory.timeline.entries.is_empty(), "{name}");
    }
    for name in [
        "CollectorTransition marksweep + semispace GC",
        "NativeAlloc sticky concurrent mark sweep GC",
        "SomethingNew some new collector GC",
    ] {
        let memory = read(&[bundle(&[
            event(1, 1, &format!("B|7|{name}")),
            event(2, 1, "E"),
        ])]);
        assert_eq!(collections(&memory).len(), 1, "{name}");
    }
}

#[test]
fn clocks_of_the_kernel_are_carried_over() {
    let gc = [
        event(1_000, 1, "B|7|Explicit concurrent copying GC"),
        event(1_500, 1, "E|7"),
    ];
    let end = |clock: &[Vec<u8>], snapshots: &[Vec<u8>]| {
        let bundle = [&gc[..], clock].concat().concat();
        let trace = [snapshots, &[packet(&[bytes(1, &bundle)])]].concat();
        let memory = read(&trace);
        let found = collections(&memory);
        (
            found.first().map(|c| c.0),
            memory.loss.packets_without_clock,
        )
    };
    assert_eq!(end(&[], &[]), (Some(1_500), 0));
    let global = [number(5, 2), number(6, 100), number(7, 9_100)];
    assert_eq!(end(&global, &[]), (Some(10_500), 0));
    assert_eq!(end(&global[..1], &[]), (None, 1));
    let raw = [number(5, 4)];
    assert_eq!(end(&raw, &[]), (None, 1));
    let clock = |id, time| bytes(1, &[number(1, id), number(2, time)].concat());
    let snapshot = |raw, boot| packet(&[bytes(6, &[clock(5, raw), clock(6, boot)].concat())]);
    let snapshots = [
        snapshot(1_000, 3_000),
        snapshot(1_400, 3_500),
        snapshot(1_600, 9_000),
    ];
    assert_eq!(end(&raw, &snapshots), (Some(3_600), 0));
}

/// Builds figures of a process in kB by field.
fn process(pid: u64, figures: &[(u32, u64)]) -> Vec<u8> {
    let figures: Vec<u8> = figures.iter().flat_map(|(f, v)| number(*f, *v)).collect();
    bytes(1, &[number(1, pid), figures].concat())
}

fn residents(memory: &TraceMemory) -> Vec<(u64, u32, Resident)> {
    let entries = memory.timeline.entries.iter();
    let residents = entries.filter_map(|entry| match &entry.seen {
        Observation::Resident(r) => Some((entry.boot_ns, entry.pid, r.clone())),
        _ => None,
    });
    residents.collect()
}

#[test]
fn what_a_packet_leaves_out_is_as_it_was() {
    let stats = |at, processes: &[Vec<u8>]| packet(&[number(8, at), bytes(9, &processes.concat())]);
    let memory = read(&[
        stats(
            10,
            &[
                process(
                    7,
                    &[
                        (3, 100),
                        (4, 60),
                        (5, 30),
                        (6, 10),
                        (7, 5),
                        (9, 120),
                        (10, 0),
                    ],
                ),
                process(8, &[(3, 1)]),
                // A kernel thread.
                process(2, &[]),
            ],
        ),
        stats(20, &[process(7, &[(4, 70), (3, 110)])]),
        stats(
            30,
            &[
                process(9, &[(4, 4), (5, 5)]),
                process(7, &[(10, (-900i64) as u64)]),
            ],
        ),
    ]);
    let found = residents(&memory);
    let rss: Vec<_> = found.iter().map(|r| (r.0, r.1, r.2.rss / 1024)).collect();
    assert_eq!(
        rss,
        [
            (10, 7, 100),
            (10, 8, 1),
            (20, 7, 110),
            (30, 9, 9),
            (30, 7, 110)
        ]
    );
    let last = &found[4].2;
    assert_eq!(last.anon, Some(70 * 1024));
    assert_eq!((last.file, last.shmem), (Some(30 * 1024), Some(10 * 1024)));
    assert_eq!((last.swap, last.peak), (Some(5 * 1024), Some(120 * 1024)));
    assert_eq!(last.oom_score_adj, Some(-900));
    assert_eq!(found[1].2.anon, None);
}

#[test]
fn names_come_with_the_first_figures() {
    let tree = |pid, name: &[u8]| bytes(1, &[number(1, pid), bytes(3, name)].concat());
    let memory = read(&[
        packet(&[bytes(2, &[tree(7, b"com.x"), tree(9, b"com.x")].concat())]),
        packet(&[number(8, 20), bytes(9, &process(9, &[(3, 2)]))]),
        packet(&[number(8, 10), bytes(9, &process(7, &[(3, 1)]))]),
    ]);
    let names: Vec<_> = memory
        .timeline
        .entries
        .iter()
        .map(|entry| match &entry.seen {
            Observation::Process(p) => format!("{} {} {}", entry.pid, p.name, p.restarted),
            Observation::Resident(r) => format!("{} {}", entry.pid, r.rss),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(names, ["7 com.x false", "7 1024", "9 com.x true", "9 2048"]);
}

#[test]
fn the_phones_memory_is_what_its_lines_say() {
    let line = |key, kb| bytes(1, &[number(1, key), number(2, kb)].concat());
    let stats = |at, lines: &[Vec<u8>]| packet(&[number(8, at), bytes(7, &lines.concat())]);
    let memory = read(&[
        stats(
            10,
            &[
                line(1, 8000),
                line(2, 100),
                line(3, 900),
                line(16, 7),
                line(4, 1),
            ],
        ),
        stats(20, &[line(3, u64::MAX)]),
        // Other counters.
        stats(30, &[line(4, 1), bytes(3, &number(1, 0))]),
    ]);
    let found: Vec<System> = memory
        .timeline
        .entries
        .iter()
        .filter_map(|entry| match &entry.seen {
            Observation::System(system) => Some(system.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(found.len(), 2);
    let kb = |n: u64| Some(n * 1024);
    let first = &found[0];
    assert_eq!(
        (first.total, first.free, first.available, first.swap_free),
        (kb(8000), kb(100), kb(900), kb(7))
    );
    assert_eq!((found[1].total, found[1].available), (None, Some(u64::MAX)));
}

#[test]
fn a_packets_clock_is_its_own_its_sequences_or_boottime() {
    let clock = |id, time| bytes(1, &[number(1, id), number(2, time)].concat());
    let figures = bytes(9, &process(7, &[(3, 1)]));
    let memory = read(&[
        packet(&[bytes(6, &[clock(3, 1_000), clock(6, 5_000)].concat())]),
        packet(&[number(8, 1), figures.clone()]),
        packet(&[number(8, 2_000), number(58, 3), figures.clone()]),
        packet(&[bytes(59, &number(58, 3)), number(8, 3_000), figures.clone()]),
        packet(&[number(8, 4_000), figures.clone()]),
        packet(&[number(13, 1), number(8, 9), figures.clone()]),
        packet(&[number(8, 9), number(58, 77), figures]),
    ]);
    let times: Vec<u64> = residents(&memory).iter().map(|r| r.0).collect();
    assert_eq!(times, [1, 9, 6_000, 7_000, 8_000]);
    assert_eq!(memory.loss.packets_without_clock, 1);
}

#[test]
fn damage_costs_what_is_behind_it_in_its_packet() {
    let good = event(10, 1, "B|7|Explicit concurrent copying GC");
    let cut = [good.clone(), vec![0x12, 0x7f, 1]].concat();
    let memory = read(&[packet(&[bytes(1, &cut)]), bundle(&[event(20, 1, "E|7")])]);
    assert_eq!(collections(&memory).len(), 1);
    assert_eq!(memory.loss.damaged_packets, 1);
}

#[test]
fn more_events_than_are_kept_in_order_at_once_are_read_all_the_same() {
    let mut trace = Vec::new();
    let count = 150_000u64;
    for chunk in 0..15 {
        let events: Vec<Vec<u8>> = (chunk * count / 15..(chunk + 1) * count / 15)
            .flat_map(|n| {
                [
                    event(n * 100, 12, "B|7|Background concurrent copying GC"),
                    event(n * 100 + 50, 12, "E|7"),
                ]
            })
            .collect();
        trace.push(bundle(&events));
    }
    let memory = read(&trace);
    let found = collections(&memory);
    assert_eq!(found.len() as u64, count);
    assert!(found.iter().all(|c| c.2.duration == Some(50)));
}

/// Time, process, name and value of each.
type Told = (u64, Option<u32>, &'static str, f64);

fn counters(trace: &[Vec<u8>], wanted: &MemoryWanted) -> (Counters, Vec<Told>) {
    let mut trace = Trace::open(Box::new(Cursor::new(trace.concat()))).unwrap();
    let all = trace.counters(wanted).unwrap().unwrap();
    let values = all.values.iter().map(|value| {
        let track = all.tracks[value.track as usize];
        (value.boot_ns, track.pid, track.name, value.value)
    });
    let told = values.collect();
    (all, told)
}

#[test]
fn counters_have_the_names_and_scales_of_perfettos() {
    let process = |pid, fields: &[(u32, u64)]| {
        let figures = fields.iter().map(|(field, value)| number(*field, *value));
        let all: Vec<Vec<u8>> = [number(1, pid)].into_iter().chain(figures).collect();
        bytes(1, &all.concat())
    };
    let line = |key, kb| bytes(1, &[number(1, key), number(2, kb)].concat());
    let every: Vec<(u32, u64)> = (2..=24).map(|field| (field, u64::from(field))).collect();
    let minus = -800i64 as u64;
    let trace = [
        packet(&[
            number(8, 20),
            bytes(
                7,
                &[line(2, 5), line(38, 6), line(39, 7), line(0, 8)].concat(),
            ),
        ]),
        packet(&[number(8, 10), bytes(9, &process(7, &every))]),
        packet(&[number(8, 30), bytes(9, &process(8, &[(10, minus), (3, 0)]))]),
        bundle(&[event(15, 12, "C|7|Heap size (KB)|9001\n")]),
    ];
    let mut opened = Trace::open(Box::new(Cursor::new(trace.concat()))).unwrap();
    assert_eq!(opened.counted_pids().unwrap(), BTreeSet::from([7, 8]));
    let (all, found) = counters(&trace, &MemoryWanted::default());
    let kb = |of: f64| of * 1024.0;
    assert_eq!(
        found,
        [
            (10, Some(7), "mem.virt", kb(2.0)),
            (10, Some(7), "mem.rss", kb(3.0)),
            (10, Some(7), "mem.rss.anon", kb(4.0)),
            (10, Some(7), "mem.rss.file", kb(5.0)),
            (10, Some(7), "mem.rss.shmem", kb(6.0)),
            (10, Some(7), "mem.swap", kb(7.0)),
            (10, Some(7), "mem.locked", kb(8.0)),
            (10, Some(7), "mem.rss.watermark", kb(9.0)),
            (10, Some(7), "oom_score_adj", 10.0),
            (10, Some(7), "mem.smaps.rss", kb(16.0)),
            (10, Some(7), "mem.smaps.pss", kb(17.0)),
            (10, Some(7), "mem.smaps.pss.anon", kb(18.0)),
            (10, Some(7), "mem.smaps.pss.file", kb(19.0)),
            (10, Some(7), "mem.smaps.pss.smem", kb(20.0)),
            (10, Some(7), "runtime.user_ns", 21.0),
            (10, Some(7), "runtime.kernel_ns", 22.0),
            (10, Some(7), "mem.smaps.swap.pss", kb(23.0)),
            (10, Some(7), "mem.dmabuf_rss", kb(24.0)),
            (15, Some(7), "Heap size (KB)", 9001.0),
            (20, None, "MemFree", kb(5.0)),
            (20, None, "ION_heap_pool", kb(6.0)),
            (20, None, "MemUnspecified", kb(8.0)),
            (30, Some(8), "mem.rss", 0.0),
            (30, Some(8), "oom_score_adj", -800.0),
        ]
    );
    let kinds = |name: &str| {
        let track = all.tracks.iter().find(|track| track.name == name).unwrap();
        (track.kind.word(), track.kind.unit())
    };
    assert_eq!(kinds("mem.rss"), ("process_memory", None));
    assert_eq!(kinds("mem.smaps.pss"), ("smaps", None));
    assert_eq!(kinds("oom_score_adj"), ("oom_score_adj", None));
    assert_eq!(kinds("runtime.user_ns"), ("proc_stat_runtime", None));
    assert_eq!(kinds("Heap size (KB)"), ("atrace_counter", None));
    assert_eq!(kinds("MemFree"), ("meminfo", Some("bytes")));
    // Of one process; the device's own figures stay.
    let wanted = MemoryWanted {
        pids: Some(BTreeSet::from([0, 8])),
        ..MemoryWanted::default()
    };
    let (of_one, told) = counters(&trace, &wanted);
    assert_eq!((of_one.tracks.len(), told.len()), (5, 5));
    assert!(told.iter().all(|told| told.1.is_none_or(|pid| pid == 8)));
}

#[test]
fn counters_before_damage_count() {
    let cut = [number(1, 7), number(3, 5), vec![0x22, 0x7f]].concat();
    let trace = [packet(&[number(8, 10), bytes(9, &bytes(1, &cut))])];
    let (_, found) = counters(&trace, &MemoryWanted::default());
    assert_eq!(found, [(10, Some(7), "mem.rss", 5120.0)]);
}

proptest! {
    #[test]
    fn any_bytes_in_these_packets_are_survived(
        payloads in proptest::collection::vec((0usize..3, proptest::collection::vec(any::<u8>(), 0..60)), 0..8),
        texts in proptest::collection::vec(("[BEC]?\\|?[0-9]{0,12}\\|?[ -~]{0,20}( GC)?\\|?[0-9]{0,22}", any::<u64>(), 0u64..3), 0..20),
    ) {
        let mut trace: Vec<Vec<u8>> = payloads
            .iter()
            .map(|(kind, body)| packet(&[number(8, 5), bytes([1, 7, 9][*kind], body)]))
            .collect();
        let events: Vec<Vec<u8>> = texts.iter().map(|(text, at, thread)| event(*at, *thread, text)).collect();
        trace.push(bundle(&events));
        let memory = read(&trace);
        prop_assert!(memory.timeline.entries.is_sorted_by_key(|entry| entry.boot_ns));
        let (all, _) = counters(&trace, &MemoryWanted::default());
        prop_assert!(all.values.is_sorted_by_key(|value| value.boot_ns));
        for (at, track) in all.tracks.iter().enumerate() {
            prop_assert!(!all.tracks[..at].contains(track), "{track:?} twice");
        }
    }
}
