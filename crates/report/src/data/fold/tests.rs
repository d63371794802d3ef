//! Totals, tables by library and errors are the same before and after; the largest callsites are
//! kept.

use super::*;
use heaptap_analyze::native::filter::Filter;
use heaptap_analyze::native::groups::{Groups, RowKey};
use heaptap_analyze::native::sampled::{SampledColumn, total};
use heaptap_analyze::native::shown::Shown;
use heaptap_analyze::native::table::{Key as TableKey, Table};
use heaptap_analyze::sampling::Interval;
use heaptap_model::stacks::Library;
use std::collections::BTreeMap;

/// Deterministic random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }
}

fn frame(table: &mut StackTable, name: &str, library: &str, kind: Kind, line: u32) -> FrameId {
    let path = table.text(library);
    let library = table.library(Library {
        path,
        build_id: TextId::default(),
    });
    let function = Function {
        name: table.text(name),
        system_name: TextId::default(),
        library,
        kind,
    };
    let function = table.function(function);
    table.frame(Frame {
        function,
        file: TextId::default(),
        line,
        inlined: false,
    })
}

/// Creates stacks through three libraries, the runtime and allocators, in dumps of two processes.
fn drawn(callsites: usize) -> StackProfile {
    let mut random = Random(7);
    let mut profile = StackProfile::default();
    let table = &mut profile.table;
    let libraries = ["/x/libone.so", "/x/libtwo.so", "/x/libthree.so"];
    let mut leaves = Vec::new();
    for _ in 0..callsites {
        let mut node = NodeId::ROOT;
        for depth in 0..2 + random.below(6) {
            let number = random.below(if depth < 2 { 3 } else { 9 });
            let library = libraries[(number % 3) as usize];
            let line = random.below(4) as u32;
            let next = match random.below(7) {
                0 => frame(table, "art_invoke", "/x/libart.so", Kind::Runtime, 0),
                _ => frame(table, &format!("f{number}"), library, Kind::Plain, line),
            };
            node = table.child(node, next);
        }
        for allocator in 0..random.below(3) {
            let name = ["operator new", "malloc"][allocator as usize];
            let next = frame(table, name, "/x/libc.so", Kind::Allocator, 0);
            node = table.child(node, next);
        }
        leaves.push(node);
    }
    leaves.sort_unstable();
    leaves.dedup();
    for pid in [7, 7, 9] {
        let mut columns = vec![Vec::new(); 4];
        for _ in &leaves {
            // Many small ones, and occasionally one that was recorded at its true size.
            let count = 1 + random.below(3) as i64;
            let bytes = match random.below(5) {
                0 => 100_001 + random.below(1 << 20) as i64,
                _ => count * 4096,
            };
            for (column, value) in columns.iter_mut().zip([count, bytes, count, 2 * bytes]) {
                column.push(value);
            }
        }
        let views = [
            View::Objects,
            View::Space,
            View::AllocObjects,
            View::AllocSpace,
        ];
        let mut dump = Dump {
            measures: views.map(Measure::of_view).to_vec(),
            default_measure: 1,
            values: Values {
                nodes: leaves.clone(),
                columns,
            },
            ..Dump::default()
        };
        dump.facts.pid = pid;
        dump.facts.sampling_interval_bytes = 4096;
        profile.dumps.push(dump);
    }
    profile
}

/// Returns self and cumulative sums by group name, without the rows `(other)`.
fn table(
    profile: &StackProfile,
    dump: &Dump,
    (by, all_frames): (RowKey, bool),
) -> BTreeMap<String, (Vec<i64>, Vec<i64>)> {
    let filter = Filter {
        all_frames,
        ..Filter::default()
    };
    let shown = Shown::of(&profile.table, &filter, &[&dump.values]);
    let groups = Groups::of(&profile.table, by);
    let rows = Table::of(&shown, &groups, &dump.values);
    let of_row = |row: heaptap_analyze::native::table::Row<'_>| {
        let TableKey::Group(group) = row.key else {
            panic!("grouped");
        };
        let name = groups.name(group).into_owned();
        // Small samples follow them.
        let first = |sums: &[i64]| sums[..sums.len().min(4)].to_vec();
        let sums = (first(row.own), first(row.cumulative));
        (name, sums)
    };
    let mut rows: BTreeMap<_, _> = rows.rows().map(of_row).collect();
    rows.remove(OTHER);
    rows
}

#[test]
fn folded_callsites_keep_their_library_their_function_and_their_process() {
    let before = drawn(3000);
    for most in [2000, 900] {
        let mut after = before.clone();
        let folded = fold(&mut after, most).expect("there are more");
        assert!(folded.of > most && folded.kept <= most / 2, "{folded:?}");
        assert!(folded.functions, "{folded:?}");
        for (old, new) in before.dumps.iter().zip(&after.dumps) {
            assert!(new.values.nodes.is_sorted());
            let mut nodes: Vec<NodeId> = Vec::new();
            for node in &new.values.nodes {
                nodes.extend(after.table.stack(*node));
            }
            nodes.sort_unstable();
            nodes.dedup();
            assert!(nodes.len() <= most, "{} of {most}", nodes.len());
            for all_frames in [false, true] {
                let [was, is] = [(&before, old), (&after, new)]
                    .map(|(profile, dump)| table(profile, dump, (RowKey::Library, all_frames)));
                assert_eq!(was, is, "by library, of {most}, all frames: {all_frames}");
                let [was, is] = [(&before, old), (&after, new)].map(|(profile, dump)| {
                    let rows = table(profile, dump, (RowKey::Function, all_frames));
                    let own = rows.into_iter().map(|(name, (own, _))| (name, own));
                    let own = own.filter(|(_, own)| own.iter().any(|sum| *sum != 0));
                    own.collect::<BTreeMap<_, _>>()
                });
                assert_eq!(was, is, "self by function, of {most}");
            }
        }
        let last = &before.dumps[2];
        let summed: i64 = last.column(View::Space).into_iter().flatten().sum();
        assert!(folded.bytes[2] > 0 && folded.bytes[2] <= summed);
    }
}

#[test]
fn the_error_of_sums_is_that_of_before() {
    let before = drawn(3000);
    let mut after = before.clone();
    fold(&mut after, 900).expect("there are more");
    for (old, new) in before.dumps.iter().zip(&after.dumps) {
        for (at, view) in [(1, View::Space), (3, View::AllocSpace)] {
            let small = |dump| SampledColumn::of(dump, at).expect("it is sampled").small;
            let (was, is) = (small(old), small(new));
            assert_eq!(was.iter().sum::<i64>(), is.iter().sum::<i64>(), "{view:?}");
            assert_eq!(total(old, view), total(new, view));
            // From the sums alone it would be wider.
            let mut bare = new.clone();
            bare.measures.truncate(4);
            bare.values.columns.truncate(4);
            let wider = SampledColumn::of(&bare, at).expect("it is sampled").small;
            assert!(wider.iter().sum::<i64>() > is.iter().sum::<i64>());
        }
        assert_eq!(Interval::of(&old.facts), Interval::of(&new.facts));
    }
}

/// Creates `main` with one call of each of `bytes` functions.
fn flat(bytes: &[(i64, i64)]) -> StackProfile {
    let mut profile = StackProfile::default();
    let table = &mut profile.table;
    let main = table.bare_frame("main");
    let main = table.child(NodeId::ROOT, main);
    let nodes = (0..bytes.len()).map(|at| {
        // A few functions with many lines.
        let next = frame(
            table,
            &format!("f{}", at % 3),
            "/x/libapp.so",
            Kind::Plain,
            at as u32,
        );
        table.child(main, next)
    });
    let nodes: Vec<NodeId> = nodes.collect();
    profile.dumps.push(Dump {
        measures: [View::Objects, View::Space].map(Measure::of_view).to_vec(),
        default_measure: 1,
        values: Values {
            nodes,
            columns: vec![
                bytes.iter().map(|(count, _)| *count).collect(),
                bytes.iter().map(|(_, bytes)| *bytes).collect(),
            ],
        },
        ..Dump::default()
    });
    profile
}

/// Returns the lines of the kept callsites with bytes.
fn lines(profile: &StackProfile) -> Vec<u32> {
    let table = &profile.table;
    let frame = |node| table.frames()[table.frame_of(node).unwrap().0 as usize];
    let nodes = profile.dumps[0].values.nodes.iter();
    let lines = nodes.map(|node| frame(*node).line);
    lines.filter(|line| *line > 0).collect()
}

#[test]
fn the_fewest_bytes_are_folded_first_whatever_their_count() {
    // A callsite with more samples has fewer bytes.
    let bytes: Vec<(i64, i64)> = (1..=100).map(|at| (1000 - 9 * at, at * 4096)).collect();
    let mut profile = flat(&bytes);
    // 101 callsites are not many more than 90.
    assert!(fold(&mut profile.clone(), 90).is_none());
    assert!(fold(&mut profile.clone(), 88).is_some());
    let folded = fold(&mut profile, 40).expect("there are more");
    assert_eq!((folded.kept, folded.of), (20, 101));
    // `main`, and the 19 largest callsites.
    assert_eq!(lines(&profile), (81..100).collect::<Vec<u32>>());
    assert_eq!(folded.bytes, [(1..=81i64).sum::<i64>() * 4096]);
}

#[test]
fn of_callsites_that_hold_the_same_as_many_stay_as_there_is_room_for() {
    let mut profile = flat(&[(1, 4096); 100]);
    let folded = fold(&mut profile, 40).expect("there are more");
    assert_eq!(folded.kept, 20);
    assert_eq!(
        lines(&profile).len(),
        18,
        "line 0 is not a line, and `main` is kept"
    );
}

#[test]
fn functions_are_given_up_if_there_are_too_many_and_it_is_said() {
    let mut profile = StackProfile::default();
    let stacks = &mut profile.table;
    let main = stacks.bare_frame("main");
    let main = stacks.child(NodeId::ROOT, main);
    let libraries = ["/x/libone.so", "/x/libtwo.so"];
    let nodes = (0..1000).map(|at| {
        let name = format!("f{at}");
        let next = frame(stacks, &name, libraries[at % 2], Kind::Plain, 0);
        stacks.child(main, next)
    });
    let nodes: Vec<NodeId> = nodes.collect();
    let columns = vec![vec![1; nodes.len()], vec![4096; nodes.len()]];
    profile.dumps.push(Dump {
        measures: [View::Objects, View::Space].map(Measure::of_view).to_vec(),
        default_measure: 1,
        values: Values { nodes, columns },
        ..Dump::default()
    });
    let before = profile.clone();
    let folded = fold(&mut profile, 100).expect("there are more");
    assert!(!folded.functions && folded.kept == 50, "{folded:?}");
    assert!(profile.dumps[0].values.nodes.len() <= 100);
    let by_library =
        |profile: &StackProfile| table(profile, &profile.dumps[0], (RowKey::Library, false));
    assert_eq!(by_library(&before), by_library(&profile));
}

/// Creates `functions` functions, each called through `allocators` allocators. Returns the callers
/// with their values.
fn by_allocators(functions: u32, allocators: u32) -> (StackProfile, Vec<u32>) {
    let mut profile = StackProfile::default();
    let table = &mut profile.table;
    let allocators: Vec<FrameId> = (0..allocators)
        .map(|at| frame(table, &format!("a{at}"), "/x/libc.so", Kind::Allocator, 0))
        .collect();
    let mut callers = Vec::new();
    let mut leaves = Vec::new();
    for at in 0..functions {
        let called = frame(table, &format!("f{at}"), "/x/libone.so", Kind::Plain, 1);
        let caller = table.child(NodeId::ROOT, called);
        callers.push(caller.0);
        leaves.extend(allocators.iter().map(|leaf| table.child(caller, *leaf)));
    }
    leaves.sort_unstable();
    profile.dumps.push(Dump {
        measures: vec![Measure::of_view(View::Space)],
        values: Values {
            columns: vec![vec![1; leaves.len()]],
            nodes: leaves,
        },
        ..Dump::default()
    });
    (profile, callers)
}

#[test]
fn an_attempt_is_left_out_only_where_it_would_fail() {
    // The second one has many libraries for its functions: one below each kept caller.
    for (functions, allocators, keeps) in [(400, 400, false), (30_000, 4, true)] {
        let (mut profile, callers) = by_allocators(functions, allocators);
        let weights = Weights::of(&profile);
        let table = &mut profile.table;
        let sets = LibrarySets::of(table);
        let mut shorts = Shorts::of(table);
        let mut goals = Goals::new(weights.used.len());
        let mut attempt = FoldAttempt {
            goals: &mut goals,
            weights: &weights,
            sets: &sets,
            kept: if keeps { &callers } else { &[] },
        };
        assert!(attempt.find(table, &mut shorts, true, usize::MAX));
        let needed = attempt.goals.made.len();
        assert!(
            needed >= (functions * (allocators + 1)) as usize,
            "{needed}"
        );
        assert!(!attempt.is_too_much(table, true, needed));
        assert!(attempt.is_too_much(table, true, needed * 3 / 4), "{needed}");
        assert!(
            !attempt.is_too_much(table, false, needed / 2),
            "without functions there are few"
        );
        assert!(
            !attempt.is_too_much(table, true, 1000),
            "nothing is estimated"
        );
    }
}

#[test]
fn a_stack_through_any_number_of_libraries_costs_no_more_than_through_many() {
    let mut table = StackTable::default();
    let frames: Vec<FrameId> = (0..1000)
        .map(|at| frame(&mut table, "f", &format!("/x/lib{at}.so"), Kind::Plain, 1))
        .collect();
    // Once through all of them, then back and forth between the first two.
    let ways = frames.iter().chain(frames[..2].iter().cycle().take(50));
    let leaf = ways.fold(NodeId::ROOT, |node, frame| table.child(node, *frame));
    let sets = LibrarySets::of(&table);
    let chain = sets.of[leaf.0 as usize];
    let keys: Vec<Key> = sets.keys(chain, 0).collect();
    assert_eq!(keys.len(), LONGEST_CHAIN as usize);
    assert_eq!(keys.last(), Some(&sets.key(frames[0].0)));
    assert_eq!(sets.links.len(), keys.len() + 1);
}
