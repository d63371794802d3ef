//! Differences of hand-made dumps.

use proptest::prelude::*;

use super::*;
use heaptap_model::stacks::{Facts, Measure};

const T: u64 = 4096;

/// Creates a table with a stack `main` → name for each of these names. Returns it with their
/// callsites.
fn table(names: &[&str]) -> (StackTable, Vec<NodeId>) {
    let mut table = StackTable::default();
    let main = table.bare_frame("main");
    let frames: Vec<_> = names.iter().map(|name| table.bare_frame(name)).collect();
    let main = table.child(NodeId::ROOT, main);
    let nodes = frames.into_iter().map(|frame| table.child(main, frame));
    let nodes = nodes.collect();
    (table, nodes)
}

/// Creates a dump: by callsite, unreleased hits and allocated hits, each a sample.
fn dump(nodes: &[NodeId], hits: &[(i64, i64)], interval: u64) -> Dump {
    let present = || nodes.iter().zip(hits).filter(|(_, hits)| **hits != (0, 0));
    let t = i64::try_from(interval).expect("small");
    Dump {
        facts: Facts {
            sampling_interval_bytes: interval,
            ..Facts::default()
        },
        measures: View::ALL.map(Measure::of_view).to_vec(),
        default_measure: 0,
        values: Values {
            nodes: present().map(|(node, _)| *node).collect(),
            columns: vec![
                present().map(|(_, hits)| hits.0 * t).collect(),
                present().map(|(_, hits)| hits.1 * t).collect(),
                present().map(|(_, hits)| hits.0).collect(),
                present().map(|(_, hits)| hits.1).collect(),
            ],
        },
        threads: Vec::new(),
    }
}

fn terms(relation: DumpRelation) -> Terms {
    Terms {
        by: RowKey::Function,
        growing: Growing::Held,
        relation,
        divisors: [1.0, 1.0],
    }
}

fn row<'d>(diff: &'d Diff<'_>, name: &str) -> &'d Row {
    let named = |row: &&Row| match row.key {
        Key::Group(group) => diff.groups.name(group) == name,
        Key::Callsite(_) => false,
    };
    diff.rows.iter().find(named).expect("a row")
}

#[test]
fn what_grew_is_told_from_noise() {
    let (table, nodes) = table(&["leak", "busy", "steady", "fresh", "past"]);
    let before = dump(&nodes, &[(10, 10), (50, 500), (9, 9), (0, 0), (60, 60)], T);
    let after = dump(&nodes, &[(70, 70), (53, 900), (9, 9), (40, 40), (0, 60)], T);
    let filter = Filter::default();
    let diff = Diff::new(
        &table,
        Some(&before),
        Some(&after),
        &filter,
        &terms(DumpRelation::OneRun),
    );
    let own = |name| row(&diff, name).own;
    assert_eq!(own("leak").growth.value, 60.0 * T as f64);
    assert!(own("leak").is_certain);
    assert_eq!(own("leak").status(), "grown");
    assert!(!own("busy").is_certain, "{:?}", own("busy"));
    assert!(!own("steady").is_certain);
    assert_eq!(own("steady").status(), "same");
    assert_eq!(
        (own("fresh").status(), own("fresh").is_certain),
        ("new", true)
    );
    assert_eq!(
        (own("past").status(), own("past").is_certain),
        ("gone", true)
    );
    assert_eq!(diff.total.growth.value, 43.0 * T as f64);
    assert_eq!(row(&diff, "main").cumulative.growth.value, 43.0 * T as f64);
    let order: Vec<_> = diff
        .ranked(|row| row.own)
        .into_iter()
        .map(|at| match diff.rows[at].key {
            Key::Group(group) => diff.groups.name(group).into_owned(),
            Key::Callsite(_) => String::new(),
        })
        .collect();
    assert_eq!(order, ["leak", "fresh", "past", "busy"]);
}

#[test]
fn survivors_cancel_within_a_run_only() {
    let (table, nodes) = table(&["cache"]);
    let (before, after) = (
        dump(&nodes, &[(1000, 1000)], T),
        dump(&nodes, &[(1020, 1020)], T),
    );
    let of = |relation| {
        let filter = Filter::default();
        let diff = Diff::new(
            &table,
            Some(&before),
            Some(&after),
            &filter,
            &terms(relation),
        );
        row(&diff, "cache").own
    };
    assert!(of(DumpRelation::OneRun).is_certain);
    assert!(!of(DumpRelation::Apart).is_certain);
    assert_eq!(
        of(DumpRelation::Apart).growth.value,
        of(DumpRelation::OneRun).growth.value
    );
}

#[test]
fn of_a_thousand_callsites_of_two_equal_runs_none_stands_out() {
    let names: Vec<String> = (0..1000).map(|n| format!("f{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (table, nodes) = table(&names);
    let mut random = fastrand::Rng::with_seed(4);
    // Sums of coin tosses approximate Poisson.
    let mut hits = || -> Vec<(i64, i64)> {
        let one = |random: &mut fastrand::Rng| (0..400).filter(|_| random.u8(..) < 13).count();
        names
            .iter()
            .map(|_| one(&mut random) as i64)
            .map(|hits| (hits, hits))
            .collect()
    };
    let (before, after) = (dump(&nodes, &hits(), T), dump(&nodes, &hits(), T));
    let filter = Filter::default();
    let diff = Diff::new(
        &table,
        Some(&before),
        Some(&after),
        &filter,
        &terms(DumpRelation::Apart),
    );
    let outside = |row: &&Row| row.own.growth.low > 0.0 || row.own.growth.high < 0.0;
    assert!(
        diff.rows.iter().filter(outside).count() > 10,
        "limits alone would"
    );
    assert_eq!(diff.rows.iter().filter(|row| row.own.is_certain).count(), 0);
    assert!(!diff.total.is_certain);
}

#[test]
fn sides_are_divided_by_their_own_iterations() {
    let (table, nodes) = table(&["work"]);
    let (before, after) = (
        dump(&nodes, &[(100, 100)], T),
        dump(&nodes, &[(400, 400)], 2 * T),
    );
    let of = |divisors| {
        let terms = Terms {
            divisors,
            ..terms(DumpRelation::Apart)
        };
        let filter = Filter::default();
        Diff::new(&table, Some(&before), Some(&after), &filter, &terms).total
    };
    // 100 T in 10 iterations, 800 T in 80: the same per iteration.
    let same = of([10.0, 80.0]);
    assert_eq!(same.growth.value, 0.0);
    assert!(same.growth.low < 0.0 && same.growth.high > 0.0);
    assert!(!same.is_certain);
    let more = of([10.0, 10.0]);
    assert_eq!(more.growth.value, 70.0 * T as f64);
    assert!(more.is_certain);
    // Check of scaled limits: equal divisors take another code path.
    let doubled = of([10.0, 20.0]);
    assert_eq!(doubled.growth.value, 30.0 * T as f64);
    let half = |change: Change| change.growth.high - change.growth.low;
    assert!(half(doubled) < half(more));
}

#[test]
fn one_side_alone_is_new_or_gone() {
    let (table, nodes) = table(&["work"]);
    let only = dump(&nodes, &[(100, 100)], T);
    let filter = Filter::default();
    let new = Diff::new(
        &table,
        None,
        Some(&only),
        &filter,
        &terms(DumpRelation::Apart),
    );
    assert_eq!(new.total.status(), "new");
    assert!(new.total.growth.low > 0.0);
    let gone = Diff::new(
        &table,
        Some(&only),
        None,
        &filter,
        &terms(DumpRelation::Apart),
    );
    assert_eq!(gone.total.status(), "gone");
    assert!(gone.total.growth.high < 0.0);
}

#[test]
fn without_an_interval_there_are_no_limits() {
    let (table, nodes) = table(&["work"]);
    let mut before = dump(&nodes, &[(1, 1)], T);
    before.facts.sampling_interval_bytes = 0;
    let after = dump(&nodes, &[(3, 3)], T);
    let filter = Filter::default();
    let diff = Diff::new(
        &table,
        Some(&before),
        Some(&after),
        &filter,
        &terms(DumpRelation::Apart),
    );
    assert!(!diff.has_limits);
    assert_eq!(diff.total.growth.value, 2.0 * T as f64);
}

proptest! {
    #[test]
    fn a_dump_and_itself_are_the_same(
        hits in prop::collection::vec((0i64..60, 0i64..5), 1..40),
        relation in prop::sample::select(vec![DumpRelation::OneRun, DumpRelation::Apart]),
    ) {
        let names: Vec<String> = (0..hits.len()).map(|n| format!("f{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (table, nodes) = table(&names);
        let hits: Vec<(i64, i64)> = hits.iter().map(|(held, freed)| (*held, held + freed)).collect();
        let one = dump(&nodes, &hits, T);
        let filter = Filter::default();
        for by in [RowKey::Callsite, RowKey::Function, RowKey::Library] {
            let terms = Terms { by, ..terms(relation) };
            let diff = Diff::new(&table, Some(&one), Some(&one), &filter, &terms);
            prop_assert_eq!(diff.total.growth.value, 0.0);
            prop_assert!(diff.ranked(|row| row.own).is_empty());
            prop_assert!(diff.rows.iter().all(|row| !row.own.is_certain));
        }
    }

    #[test]
    fn rows_are_what_both_dumps_have(
        hits in prop::collection::vec(((0i64..60, 0i64..60), (0i64..60, 0i64..60)), 1..30),
    ) {
        let names: Vec<String> = (0..hits.len()).map(|n| format!("f{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (table, nodes) = table(&names);
        let (first, second): (Vec<_>, Vec<_>) = hits.iter().copied().unzip();
        let (before, after) = (dump(&nodes, &first, T), dump(&nodes, &second, T));
        let filter = Filter::default();
        let terms = terms(DumpRelation::Apart);
        let diff = Diff::new(&table, Some(&before), Some(&after), &filter, &terms);
        let back = Diff::new(&table, Some(&after), Some(&before), &filter, &terms);
        prop_assert_eq!(diff.total.growth.value, -back.total.growth.value);
        for (name, (b, a)) in names.iter().zip(&hits) {
            if (b.0, a.0) == (0, 0) {
                continue;
            }
            let own = row(&diff, name).own;
            prop_assert_eq!(own.before, b.0 * T as i64);
            prop_assert_eq!(own.after, a.0 * T as i64);
            prop_assert!(own.growth.low <= own.growth.value && own.growth.value <= own.growth.high);
            prop_assert_eq!(own.is_certain, row(&back, name).own.is_certain);
        }
    }
}
