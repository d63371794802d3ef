//! Growth over constructed series: reported sites, their order, their verdicts.

use super::series::{continue_counters, continues};
use super::*;
use crate::sampling::{Counters, Interval};
use heaptap_model::stacks::{
    Dump, Facts, Frame, Function, Kind, LOST_CALLSTACK, LibraryId, Measure, NodeId, TextId, Values,
    View,
};

const T: i64 = 4096;

/// Adds a stack by frame names, root first.
pub(super) fn site(table: &mut StackTable, names: &[&str]) -> NodeId {
    names.iter().fold(NodeId::ROOT, |parent, name| {
        let kind = match *name {
            "malloc" | "operator new" => Kind::Allocator,
            _ => Kind::Plain,
        };
        let function = Function {
            name: table.text(name),
            system_name: TextId::default(),
            library: LibraryId::default(),
            kind,
        };
        let function = table.function(function);
        let frame = table.frame(Frame {
            function,
            file: TextId::default(),
            line: 0,
            inlined: false,
        });
        table.child(parent, frame)
    })
}

/// Creates a dump from counters.
pub(super) fn dump_of(number: u32, interval: u64, numbers: &[(NodeId, Counters)]) -> Dump {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable_by_key(|(node, _)| *node);
    let column = |of: fn(&Counters) -> i64| numbers.iter().map(|(_, n)| of(n)).collect();
    Dump {
        facts: Facts {
            number,
            pid: 7,
            sampling_interval_bytes: interval,
            ..Facts::default()
        },
        measures: View::ALL.iter().copied().map(Measure::of_view).collect(),
        default_measure: 0,
        values: Values {
            nodes: numbers.iter().map(|(node, _)| *node).collect(),
            columns: vec![
                column(|n| n.space),
                column(|n| n.alloc_space),
                column(|n| n.objects),
                column(|n| n.alloc_objects),
            ],
        },
        threads: Vec::new(),
    }
}

/// Creates a dump from hits: (callsite, held, allocated).
fn dump(number: u32, hits: &[(NodeId, i64, i64)]) -> Dump {
    let counters = |(node, held, allocated): &(NodeId, i64, i64)| {
        let counters = Counters {
            space: held * T,
            objects: *held,
            alloc_space: allocated * T,
            alloc_objects: *allocated,
            small: None,
        };
        (*node, counters)
    };
    let numbers: Vec<(NodeId, Counters)> = hits.iter().map(counters).collect();
    dump_of(number, T as u64, &numbers)
}

fn series(dumps: &[Dump]) -> HeapSeries<'_> {
    HeapSeries {
        dumps: dumps
            .iter()
            .map(|dump| (dump, Interval::from_facts(&dump.facts).expect("known")))
            .collect(),
        paired: true,
        incomplete: false,
    }
}

const RULE: Rule = Rule {
    iterations: 1.0,
    tolerance: T as f64,
};

fn names(growth: &Growth<'_>) -> Vec<(String, Verdict)> {
    let name = |site: &Site| match site.unit {
        Unit::Callsite(id) => {
            let frame = growth.stack(id).next().expect("not the root");
            growth
                .owners()
                .name(growth.owners().group(frame))
                .into_owned()
        }
        Unit::Line(id) => format!("all of {}", growth.owners().name(id)),
    };
    let sites = growth.sites(usize::MAX);
    sites
        .iter()
        .map(|site| (name(site), site.verdict))
        .collect()
}

const GROWS: Verdict = Verdict::Grows {
    below_tolerance: false,
};

#[test]
fn the_leak_stands_first_and_a_cache_is_none() {
    let mut table = StackTable::default();
    let leak = [
        site(&mut table, &["main", "append", "malloc"]),
        site(&mut table, &["main", "append", "operator new"]),
    ];
    let cache = site(&mut table, &["main", "put", "malloc"]);
    let steady = site(&mut table, &["main", "load", "malloc"]);
    let churn = site(&mut table, &["main", "parse", "malloc"]);
    let dumps: Vec<Dump> = (0..9)
        .map(|i| {
            let filled = [0, 30, 60, 70, 70, 70, 70, 70, 70][i as usize];
            dump(
                i,
                &[
                    (leak[0], 5 * i64::from(i), 5 * i64::from(i)),
                    (leak[1], 2 * i64::from(i), 2 * i64::from(i)),
                    (cache, filled, filled),
                    (steady, 500, 500),
                    (churn, 1, 1000 * i64::from(i + 1)),
                ],
            )
        })
        .collect();
    let growth = Growth::new(&table, &[series(&dumps)], &Filter::default(), RULE);
    let names = names(&growth);
    assert_eq!(names[0], ("append".to_owned(), GROWS));
    assert_eq!(
        names[1],
        (
            "put".to_owned(),
            Verdict::CantTell(InconclusiveReason::OneStep)
        )
    );
    let rest: Vec<&str> = names[2..].iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(rest, ["load", "parse"]);
    assert!(names[2..].iter().all(|(_, v)| *v == Verdict::WithinNoise));
    let first = &growth.sites(1)[0];
    assert_eq!(first.rate.value, 7.0 * T as f64, "malloc and new together");
    assert_eq!(first.freed_share(), Some(0.0));
    let churn: Vec<f64> = growth
        .churn(9)
        .iter()
        .filter_map(|s| s.freed_share())
        .collect();
    assert_eq!(churn, [1.0]);
    assert_eq!(growth.totals.len(), 1);
    assert_eq!(growth.totals[0].grown.value, 126 * T);
}

#[test]
fn growth_of_lost_callstacks_is_of_no_callsite() {
    let mut table = StackTable::default();
    let leak = site(&mut table, &["main", "append", "malloc"]);
    let lost = site(&mut table, &[LOST_CALLSTACK]);
    let hits = |i: i64| [(leak, 5 * i, 5 * i), (lost, 9 * i, 9 * i)];
    let dumps: Vec<Dump> = (0..9).map(|i| dump(i, &hits(i.into()))).collect();
    let growth = Growth::new(&table, &[series(&dumps)], &Filter::default(), RULE);
    assert!(growth.lost_grew());
    let unknown = Verdict::CantTell(InconclusiveReason::Incomplete);
    assert_eq!(
        names(&growth),
        [
            ("append".to_owned(), GROWS),
            (LOST_CALLSTACK.to_owned(), unknown)
        ]
    );
}

#[test]
fn frees_of_what_the_first_dump_held_exceed_what_was_allocated() {
    let mut table = StackTable::default();
    let drained = site(&mut table, &["main", "drain", "malloc"]);
    let dumps = [(0, 50, 60), (1, 10, 100)]
        .map(|(number, held, allocated)| dump(number, &[(drained, held, allocated)]));
    let growth = Growth::new(&table, &[series(&dumps)], &Filter::default(), RULE);
    let site = &growth.churn(1)[0];
    assert_eq!((site.allocated.bytes(), site.freed), (40 * T, 80 * T));
    assert_eq!(site.freed_share(), Some(2.0));
}

#[test]
fn a_leak_by_many_ways_is_found_by_its_line() {
    let mut table = StackTable::default();
    let ways: Vec<NodeId> = (0..60)
        .map(|i| {
            site(
                &mut table,
                &["main", &format!("way{i}"), "append", "malloc"],
            )
        })
        .collect();
    let dumps: Vec<Dump> = (0..7)
        .map(|i| {
            let hits: Vec<(NodeId, i64, i64)> = ways
                .iter()
                .enumerate()
                .map(|(at, way)| {
                    let held = i64::from(at as u32 % 6 < i);
                    (*way, held, held)
                })
                .collect();
            dump(i, &hits)
        })
        .collect();
    let growth = Growth::new(&table, &[series(&dumps)], &Filter::default(), RULE);
    // Its callsites lack data only if each is tested alone.
    assert_eq!(names(&growth), [("all of append".to_owned(), GROWS)]);
    assert_eq!(growth.sites(1)[0].callsites, 60);
}

#[test]
fn a_line_knows_the_functions_that_allocate_for_it() {
    let mut table = StackTable::default();
    let mut way = |name: &str| site(&mut table, &["main", "append", name, "malloc"]);
    let ways = [way("std::one"), way("std::two")];
    let dumps: Vec<Dump> = (0..9)
        .map(|i| {
            dump(
                i,
                &ways.map(|way| (way, 5 * i64::from(i), 5 * i64::from(i))),
            )
        })
        .collect();
    let growth = Growth::new(&table, &[series(&dumps)], &Filter::default(), RULE);
    assert_eq!(names(&growth), [("all of append".to_owned(), GROWS)]);
    let all = growth.line_frames();
    let [frames] = all.values().collect::<Vec<_>>()[..] else {
        panic!("one line: {all:?}");
    };
    let name = |frame: &FrameId| growth.owners().name(growth.owners().group(*frame));
    let names: Vec<_> = frames.allocators.iter().map(name).collect();
    assert_eq!(names, ["std::one", "std::two"]);
    let callers: Vec<_> = frames.callers.iter().collect();
    let [(caller, 2)] = callers[..] else {
        panic!("both callsites have one caller: {callers:?}");
    };
    assert_eq!(name(caller), "main");
}

#[test]
fn a_line_is_its_leaking_callsites_and_none_that_churns() {
    let mut table = StackTable::default();
    let mut line = |way: &str| site(&mut table, &["main", way, "append", "malloc"]);
    let (one, two, churn) = (line("one"), line("two"), line("three"));
    let leaks_and_frees = site(&mut table, &["main", "parse", "malloc"]);
    let dumps: Vec<Dump> = (0..9)
        .map(|i| {
            let at = i64::from(i);
            dump(
                i,
                &[
                    (one, 5 * at, 5 * at),
                    (two, 4 * at, 4 * at),
                    (churn, 1, 1000 * (at + 1)),
                    (leaks_and_frees, 3 * at, 1000 * (at + 1)),
                ],
            )
        })
        .collect();
    let growth = Growth::new(&table, &[series(&dumps)], &Filter::default(), RULE);
    assert_eq!(
        names(&growth)[..2],
        [
            ("all of append".to_owned(), GROWS),
            ("parse".to_owned(), GROWS)
        ]
    );
    let line = &growth.sites(1)[0];
    assert_eq!(line.callsites, 2);
    assert_eq!(line.rate.value, 9.0 * T as f64);
    assert_eq!((line.held.bytes(), line.freed), (72 * T, 0));
    let churn: Vec<Unit> = growth.churn(9).iter().map(|site| site.unit).collect();
    assert_eq!(churn.len(), 1, "a leak is not churn: {churn:?}");
    assert_eq!(growth.sites(usize::MAX).len(), 3);
}

#[test]
fn too_few_samples_say_what_would_decide() {
    let mut table = StackTable::default();
    let small = site(&mut table, &["main", "drip", "malloc"]);
    let dumps: Vec<Dump> = (0..5)
        .map(|i| {
            let hits = [3, 3, 4, 4, 5][i as usize];
            dump(i, &[(small, hits, hits)])
        })
        .collect();
    let strict = Rule {
        tolerance: 500.0,
        ..RULE
    };
    let growth = Growth::new(&table, &[series(&dumps)], &Filter::default(), strict);
    let site = &growth.sites(1)[0];
    assert_eq!(
        site.verdict,
        Verdict::CantTell(InconclusiveReason::TooFewSamples)
    );
    let decider = growth.decider(site);
    assert!(decider.iterations.expect("rounds") > 4);
    assert!(decider.interval_bytes.expect("an interval") < 4096);
}

#[test]
fn two_dumps_show_growth_but_no_leak() {
    let mut table = StackTable::default();
    let leak = site(&mut table, &["main", "append", "malloc"]);
    let dumps = [dump(0, &[(leak, 0, 0)]), dump(1, &[(leak, 90, 90)])];
    let growth = Growth::new(&table, &[series(&dumps)], &Filter::default(), RULE);
    let site = &growth.sites(1)[0];
    assert_eq!(
        site.verdict,
        Verdict::CantTell(InconclusiveReason::TooFewRounds)
    );
    assert!(site.verdict.is_suspect());
    assert_eq!(growth.decider(site).iterations, Some(6));
}

#[test]
fn missing_data_are_never_noise() {
    let mut table = StackTable::default();
    let steady = site(&mut table, &["main", "load", "malloc"]);
    let dumps: Vec<Dump> = (0..5).map(|i| dump(i, &[(steady, 9, 9)])).collect();
    let mut heap = series(&dumps);
    heap.incomplete = true;
    let growth = Growth::new(&table, &[heap], &Filter::default(), RULE);
    assert_eq!(
        growth.sites(1)[0].verdict,
        Verdict::CantTell(InconclusiveReason::Incomplete)
    );
}

#[test]
fn counters_that_began_anew_go_on() {
    let mut table = StackTable::default();
    let comes_back = site(&mut table, &["main", "flash", "malloc"]);
    let stays = site(&mut table, &["main", "load", "malloc"]);
    let mut dumps = vec![
        dump(0, &[(comes_back, 4, 10), (stays, 9, 100)]),
        dump(1, &[(stays, 9, 120)]),
        dump(2, &[(comes_back, 2, 3), (stays, 9, 130)]),
        dump(3, &[(comes_back, 2, 5), (stays, 9, 130)]),
    ];
    assert!(continues(&dumps[0], &dumps[1]));
    assert!(continues(&dumps[0], &dumps[2]), "one of them is small");
    let other = dump(4, &[(comes_back, 1, 1), (stays, 2, 2)]);
    assert!(!continues(&dumps[3], &other), "another recording");
    continue_counters(&mut dumps);
    let of = |dump: &Dump, view| dump.column(view).expect("there").to_vec();
    assert_eq!(of(&dumps[1], View::AllocObjects), [10, 120]);
    assert_eq!(of(&dumps[1], View::Objects), [0, 9]);
    assert_eq!(of(&dumps[2], View::AllocObjects), [13, 130]);
    assert_eq!(of(&dumps[3], View::AllocObjects), [15, 130]);
    assert_eq!(of(&dumps[3], View::AllocSpace), [15 * T, 130 * T]);
}

#[test]
fn nothing_and_everything_are_no_trouble() {
    let table = StackTable::default();
    let dumps = [dump(0, &[]), dump(1, &[]), dump(2, &[])];
    let growth = Growth::new(&table, &[series(&dumps)], &Filter::default(), RULE);
    assert!(growth.judgements().is_empty());
    assert_eq!(growth.totals[0].grown.value, 0);
    let mut table = StackTable::default();
    let site = site(&mut table, &["main"]);
    let most = i64::MAX / T;
    let dumps: Vec<Dump> = (0..4).map(|i| dump(i, &[(site, most, most)])).collect();
    let growth = Growth::new(&table, &[series(&dumps)], &Filter::default(), RULE);
    assert_eq!(growth.sites(1)[0].grown.value, 0);
    assert!(growth.sites(1)[0].rate.high.is_finite());
}
