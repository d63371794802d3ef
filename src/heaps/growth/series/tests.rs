//! Tests of grouping processes and recordings into series.

use std::borrow::Cow;

use super::super::TOLERANCE_BYTES;
use super::super::inputs::{FileFacts, Inputs, NativeLeaksRequest, Opened};
use super::{Series, series_of};
use crate::heaps::NOT_IN_ORDER;
use crate::heaps::input::LookOptions;
use heaptap_analyze::native::filter::Filter;
use heaptap_model::stacks::{Dump, Facts, Measure, NodeId, StackTable, Values, View};

/// A dump: file, process, id, time.
type Row = (usize, &'static str, u64, u64);

fn compared(is_trace: bool, rows: &[Row]) -> Vec<Series<'static>> {
    // The series borrow from the inputs.
    series_in(Box::leak(Box::new(inputs(is_trace, rows))))
}

fn inputs(is_trace: bool, rows: &[Row]) -> Inputs<'static> {
    let opened = |(at, &(file, process, pid, time)): (usize, &Row)| Opened {
        file,
        name: format!("{file}@{at}"),
        dump: Cow::Owned(Dump {
            facts: Facts {
                number: at as u32,
                process: process.to_owned(),
                pid,
                heap: "libc.malloc".to_owned(),
                time_ns: Some(time),
                sampling_interval_bytes: 4096,
                ..Facts::default()
            },
            measures: View::ALL.iter().map(|v| Measure::of_view(*v)).collect(),
            default_measure: 0,
            values: Values {
                nodes: vec![NodeId::ROOT],
                columns: vec![vec![1]; View::ALL.len()],
            },
            threads: Vec::new(),
        }),
    };
    let files = rows.iter().map(|row| row.0).max().unwrap() + 1;
    Inputs {
        table: Cow::Owned(StackTable::default()),
        dumps: rows.iter().enumerate().map(opened).collect(),
        files: (0..files)
            .map(|file| FileFacts {
                name: format!("run{file}"),
                sdk: 34,
                is_trace,
            })
            .collect(),
    }
}

fn series_in<'a>(inputs: &'a Inputs<'_>) -> Vec<Series<'a>> {
    series_of_named(inputs, false)
}

fn series_of_named<'a>(inputs: &'a Inputs<'_>, named: bool) -> Vec<Series<'a>> {
    let request = NativeLeaksRequest {
        inputs: Vec::new(),
        named,
        options: LookOptions::default(),
        filter: Filter::default(),
        tolerance: TOLERANCE_BYTES,
        loops: 1,
        warmup: None,
        interval: 0,
        limit: usize::MAX,
    };
    series_of(inputs, &request).unwrap_or_default()
}

/// Returns the pids by series, one per dump.
fn pids(all: &[Series<'_>]) -> Vec<Vec<u64>> {
    let dumps = |series: &Series<'_>| {
        let members = series.heaps[0].dumps.iter();
        members.map(|member| member.dump.facts.pid).collect()
    };
    all.iter().map(dumps).collect()
}

#[test]
fn of_a_restart_in_one_of_several_recordings_the_process_dumped_last_is_compared() {
    let all = compared(
        true,
        &[
            (0, "app", 10, 1),
            (0, "app", 20, 2),
            (0, "app", 20, 3),
            (1, "app", 30, 1),
        ],
    );
    assert_eq!(pids(&all), [[20, 20, 30]]);
    let note = "run0 has several processes of that name; the one dumped last is compared, and \
                pid 10 is left out";
    assert!(all[0].notes.iter().any(|n| n == note), "{:?}", all[0].notes);
}

#[test]
fn recordings_with_one_process_each_are_rounds_of_it_and_leave_nothing_out() {
    let all = compared(true, &[(0, "app", 10, 1), (1, "app", 20, 1)]);
    assert_eq!(pids(&all), [[10, 20]]);
    assert!(!all[0].notes.iter().any(|note| note.contains("left out")));
}

#[test]
fn unnamed_processes_of_different_recordings_are_not_one_program() {
    let all = compared(true, &[(0, "", 10, 1), (0, "", 10, 2), (1, "", 10, 1)]);
    assert_eq!(pids(&all), [[10, 10]], "the second recording has one dump");
    assert!(compared(true, &[(0, "", 10, 1), (1, "", 11, 1)]).is_empty());
}

#[test]
fn pprofs_without_a_name_are_told_apart_by_their_process_ids_alone() {
    let all = compared(false, &[(0, "", 10, 1), (1, "", 10, 2), (2, "", 11, 3)]);
    assert_eq!(pids(&all), [[10, 10]]);
    let others = compared(false, &[(0, "", 0, 1), (1, "", 0, 2)]);
    assert_eq!(pids(&others), [[0, 0]], "other tools tell no process");
}

#[test]
fn a_run_that_lacks_data_and_is_not_compared_leaves_a_check_open() {
    let rows = [
        (0, "app", 10, 1),
        (0, "app", 10, 2),
        (0, "app", 20, 3),
        (0, "app", 20, 4),
    ];
    let open = |inputs: &Inputs<'_>| -> Vec<bool> {
        let series = series_in(inputs);
        series.iter().map(|of| of.is_run_left_out).collect()
    };
    let mut inputs = inputs(true, &rows);
    assert_eq!(open(&inputs), [false, false]);
    inputs.dumps[1].dump.to_mut().facts.flags.buffer_overran = true;
    assert_eq!(open(&inputs), [true]);
}

#[test]
fn dumps_without_a_label_and_warm_up_are_counted_once() {
    let rows: Vec<Row> = (1..=7).map(|time| (0, "app", 10, time)).collect();
    let mut inputs = inputs(true, &rows);
    for opened in &mut inputs.dumps[..6] {
        let facts = &mut opened.dump.to_mut().facts;
        let label = format!("l{}", facts.number);
        opened.name = format!("{}@{label}", inputs.files[opened.file].name);
        facts.label = Some(label);
    }
    let all = series_in(&inputs);
    let heap = &all[0].heaps[0];
    assert_eq!(heap.dumps.len(), 5);
    assert_eq!(heap.dumps[0].brief, "@l1");
    let note = "1 dump without a label is left out; select others with @N";
    assert!(all[0].notes.iter().any(|n| n == note), "{:?}", all[0].notes);
    // Dumps that were named are all compared.
    let named = series_of_named(&inputs, true);
    assert_eq!(named[0].heaps[0].dumps.len(), 6);
    assert!(!named[0].notes.iter().any(|n| n == note));
}

#[test]
fn the_dump_at_the_end_is_no_iteration_of_its_own_if_it_follows_at_once() {
    let dumps_of = |times: &[u64]| {
        let rows: Vec<Row> = times.iter().map(|time| (0, "app", 10, *time)).collect();
        let all = compared(true, &rows);
        let has_note = all[0].notes.iter().any(|note| note.contains("left out"));
        (all[0].heaps[0].dumps.len(), has_note)
    };
    assert_eq!(dumps_of(&[0, 20, 40, 60, 61]), (4, true));
    assert_eq!(dumps_of(&[0, 20, 40, 60, 72]), (5, false));
    // Without other iterations there is nothing to compare it with.
    assert_eq!(dumps_of(&[0, 20, 21]), (3, false));
}

#[test]
fn pprofs_of_one_recording_are_sorted_and_others_are_noted_if_out_of_order() {
    /// Number, pid and time.
    type Pprof = (u32, u64, u64);
    let order = |pprofs: &[Pprof]| {
        let rows: Vec<Row> = (pprofs.iter().enumerate())
            .map(|(file, &(_, pid, time))| (file, "app", pid, time))
            .collect();
        let mut inputs = inputs(false, &rows);
        for (opened, pprof) in inputs.dumps.iter_mut().zip(pprofs) {
            let facts = &mut opened.dump.to_mut().facts;
            facts.wall_time_ns = facts.time_ns.take();
            facts.number = pprof.0;
        }
        let all = series_in(&inputs);
        let dumps = all[0].heaps[0].dumps.iter();
        let times: Vec<_> = dumps.filter_map(|it| it.dump.facts.wall_time_ns).collect();
        let has = |text: &str| all[0].notes.iter().any(|note| note.contains(text));
        (times, has(NOT_IN_ORDER), has("left out"))
    };
    // A shell puts heap_dump.10 before heap_dump.2.
    let one = [(1, 10, 100), (10, 10, 300), (2, 10, 200)];
    assert_eq!(order(&one), (vec![100, 200, 300], false, false));
    let late = [(1, 10, 100), (2, 10, 200), (3, 10, 300), (4, 10, 310)];
    assert_eq!(order(&late), (vec![100, 200, 300], false, true));
    // Recordings of an app that kept running.
    let several = [(1, 10, 100), (1, 10, 200), (1, 10, 300), (1, 10, 310)];
    assert_eq!(order(&several), (vec![100, 200, 300, 310], false, false));
    let restarted = [(1, 10, 100), (1, 11, 300), (1, 10, 200)];
    assert_eq!(order(&restarted), (vec![100, 300, 200], true, false));
}
