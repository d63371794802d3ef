//! Totals, tables by library and errors are the same before and after; the largest callsites are
//! kept.

use super::largest::LargestCallsites;
use super::omitted::{Omitted, Walk};
use super::targets::OTHER;
use super::*;
use heaptap_analyze::native::filter::Filter;
use heaptap_analyze::native::groups::{Groups, RowKey};
use heaptap_analyze::native::sampled::{SampledColumn, total};
use heaptap_analyze::native::table::{Key as TableKey, Table};
use heaptap_analyze::native::visible_tree::VisibleTree;
use heaptap_analyze::sampling::Interval;
use heaptap_model::stacks::{
    Dump, Frame, Function, Kind, Library, Measure, StackTable, TextId, Values, View,
};
use std::collections::BTreeMap;

fn fold(profile: &mut StackProfile, most: usize) -> Option<Folded> {
    Reduction::new(profile, most)?.apply(profile)
}

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
    let mut profile = StackProfile {
        table: StackTable::with_list(),
        dumps: Vec::new(),
    };
    let table = &mut profile.table;
    let libraries = ["/x/libone.so", "/x/libtwo.so", "/x/libthree.so"];
    let mut leaves = Vec::new();
    for _ in 0..callsites {
        let mut stack = Vec::new();
        for depth in 0..2 + random.below(6) {
            let number = random.below(if depth < 2 { 3 } else { 9 });
            let library = libraries[(number % 3) as usize];
            let line = random.below(4) as u32;
            let next = match random.below(7) {
                0 => frame(table, "art_invoke", "/x/libart.so", Kind::Runtime, 0),
                _ => frame(table, &format!("f{number}"), library, Kind::Plain, line),
            };
            stack.push(next);
        }
        for allocator in 0..random.below(3) {
            let name = ["operator new", "malloc"][allocator as usize];
            let next = frame(table, name, "/x/libc.so", Kind::Allocator, 0);
            stack.push(next);
        }
        leaves.push(table.stack_of(&stack));
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
fn table_of(
    profile: &StackProfile,
    dump: &Dump,
    (by, all_frames): (RowKey, bool),
) -> BTreeMap<String, (Vec<i64>, Vec<i64>)> {
    let filter = Filter {
        all_frames,
        ..Filter::default()
    };
    let shown = VisibleTree::new(&profile.table, &filter, &[&dump.values]);
    let groups = Groups::new(&profile.table, by);
    let rows = Table::new(&shown, &groups, &dump.values);
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
    let mut tree = before.clone();
    assert!(fold(&mut tree, usize::MAX).is_none());
    for (most, form) in [(2000, &before), (2000, &tree), (900, &before), (900, &tree)] {
        let mut after = form.clone();
        let folded = fold(&mut after, most).expect("there are more");
        assert!(
            folded.of > folded.kept && folded.kept <= most / 2,
            "{folded:?}"
        );
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
                    .map(|(profile, dump)| table_of(profile, dump, (RowKey::Library, all_frames)));
                assert_eq!(was, is, "by library, of {most}, all frames: {all_frames}");
                let [was, is] = [(&before, old), (&after, new)].map(|(profile, dump)| {
                    let rows = table_of(profile, dump, (RowKey::Function, all_frames));
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
            let small = |dump| SampledColumn::new(dump, at).expect("it is sampled").small;
            let (was, is) = (small(old), small(new));
            assert_eq!(was.iter().sum::<i64>(), is.iter().sum::<i64>(), "{view:?}");
            assert_eq!(total(old, view), total(new, view));
            // From the sums alone it would be wider.
            let mut bare = new.clone();
            bare.measures.truncate(4);
            bare.values.columns.truncate(4);
            let wider = SampledColumn::new(&bare, at).expect("it is sampled").small;
            assert!(wider.iter().sum::<i64>() > is.iter().sum::<i64>());
        }
        assert_eq!(
            Interval::from_facts(&old.facts),
            Interval::from_facts(&new.facts)
        );
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
    // `main`, and the 19 largest callsites.
    assert_eq!((folded.kept, folded.of), (19, 100));
    assert_eq!(lines(&profile), (81..100).rev().collect::<Vec<u32>>());
    assert_eq!(folded.bytes, [(1..=81i64).sum::<i64>() * 4096]);
}

#[test]
fn of_callsites_that_hold_the_same_as_many_stay_as_there_is_room_for() {
    let mut profile = flat(&[(1, 4096); 100]);
    let folded = fold(&mut profile, 40).expect("there are more");
    assert_eq!(folded.kept, 19);
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
    assert!(!folded.functions && folded.libraries, "{folded:?}");
    assert_eq!(folded.kept, 49);
    assert!(profile.dumps[0].values.nodes.len() <= 100);
    let by_library =
        |profile: &StackProfile| table_of(profile, &profile.dumps[0], (RowKey::Library, false));
    assert_eq!(by_library(&before), by_library(&profile));
}

#[test]
fn a_list_with_room_becomes_a_tree_of_the_same_stacks() {
    let list = drawn(300);
    let mut tree = list.clone();
    assert!(fold(&mut tree, usize::MAX).is_none());
    let stacks = list.table.list().expect("it has a list");
    for (list_dump, tree_dump) in list.dumps.iter().zip(&tree.dumps) {
        assert_eq!(list_dump.values.nodes.len(), tree_dump.values.nodes.len());
        let rows = tree_dump.values.nodes.iter().enumerate();
        for (row, leaf) in rows {
            let frames = tree
                .table
                .stack(*leaf)
                .filter_map(|node| tree.table.frame_of(node));
            let mut packed = Vec::new();
            for frame in frames.collect::<Vec<FrameId>>().into_iter().rev() {
                packed::pack(frame.0, |byte| packed.push(byte));
            }
            let mut nodes = list_dump.values.nodes.iter();
            let of_list = nodes.position(|node| *stacks.get(node.0) == packed);
            let of_list = of_list.expect("the list has the stack");
            let columns = list_dump
                .values
                .columns
                .iter()
                .zip(&tree_dump.values.columns);
            assert!(
                columns
                    .into_iter()
                    .all(|(list, tree)| list[of_list] == tree[row])
            );
        }
    }
}

#[test]
fn the_kept_callsites_are_the_heaviest_of_the_tree_with_their_callers() {
    let profile = drawn(3000);
    let stacks = profile.table.list().expect("it has a list");
    let weights = Weights::new(&profile, stacks.len(), None);
    let mut of_all: BTreeMap<Vec<u32>, f64> = BTreeMap::new();
    for stack in weights.held() {
        let mut packed = stacks.get(stack);
        let mut path = Vec::new();
        while let Some(frame) = packed::first(&mut packed) {
            path.push(frame);
            *of_all.entry(path.clone()).or_default() += f64::from(weights.get(stack));
        }
    }
    let all = of_all.len();
    for most in [0, 1, 100, 1500, all, all + 1] {
        let mut kept = LargestCallsites::new(stacks, &weights, profile.table.frames().len());
        for count in [most / 7, most / 2, most / 2 + most.min(1), most] {
            kept.find(count);
        }
        let nearest: Vec<u32> = (0..stacks.len() as u32).map(|s| kept.nearest(s)).collect();
        let calls = kept.into_calls(most);
        assert_eq!(calls.len(), most.min(all));
        let mut paths: Vec<Vec<u32>> = vec![Vec::new()];
        for call in &calls {
            let mut path = paths[call.parent as usize].clone();
            path.push(call.frame);
            paths.push(path);
        }
        let of_kept: Vec<f64> = paths[1..].iter().map(|path| of_all[path]).collect();
        assert!(of_kept.is_sorted_by(|a, b| a >= b));
        let lightest = of_kept.last().copied().unwrap_or(f64::INFINITY);
        let mut left_out = of_all.iter().filter(|(path, _)| !paths.contains(path));
        assert!(left_out.all(|(_, weight)| *weight <= lightest));
        for stack in weights.held() {
            let mut packed = stacks.get(stack);
            let mut path = Vec::new();
            while let Some(frame) = packed::first(&mut packed) {
                path.push(frame);
                if !paths.contains(&path) {
                    path.pop();
                    break;
                }
            }
            assert_eq!(paths[nearest[stack as usize] as usize], path);
        }
    }
}

#[test]
fn libraries_are_given_up_if_there_are_too_many_sets_of_them() {
    let mut random = Random(3);
    let mut profile = StackProfile {
        table: StackTable::with_list(),
        dumps: Vec::new(),
    };
    let table = &mut profile.table;
    let libraries: Vec<FrameId> = (0..40)
        .map(|at| {
            frame(
                table,
                &format!("f{at}"),
                &format!("/x/lib{at}.so"),
                Kind::Plain,
                1,
            )
        })
        .collect();
    let stacks = (0..2000).map(|_| {
        let frames = (0..12).map(|_| libraries[random.below(40) as usize]);
        table.stack_of(&frames.collect::<Vec<FrameId>>())
    });
    let nodes: Vec<NodeId> = stacks.collect();
    profile.dumps.push(Dump {
        measures: vec![Measure::of_view(View::Space)],
        values: Values {
            columns: vec![(1..=nodes.len() as i64).collect()],
            nodes,
        },
        ..Dump::default()
    });
    let before = profile.clone();
    let folded = fold(&mut profile, 1000).expect("there are more");
    assert!(!folded.functions && !folded.libraries, "{folded:?}");
    assert!(profile.table.node_count() <= 1001);
    let own = |profile: &StackProfile| -> BTreeMap<String, Vec<i64>> {
        let rows = table_of(profile, &profile.dumps[0], (RowKey::Library, false));
        let own = rows.into_iter().map(|(name, (own, _))| (name, own));
        own.filter(|(_, own)| own.iter().any(|sum| *sum != 0))
            .collect()
    };
    assert_eq!(own(&before), own(&profile));
    // Half of the room is used for callsites.
    assert!(profile.table.node_count() > 500);
}

/// Creates `functions` functions, each called through `allocators` allocators.
fn by_allocators(functions: u32, allocators: u32) -> StackProfile {
    let mut profile = StackProfile::default();
    let table = &mut profile.table;
    let allocators: Vec<FrameId> = (0..allocators)
        .map(|at| frame(table, &format!("a{at}"), "/x/libc.so", Kind::Allocator, 0))
        .collect();
    let mut leaves = Vec::new();
    for at in 0..functions {
        let called = frame(table, &format!("f{at}"), "/x/libone.so", Kind::Plain, 1);
        let caller = table.child(NodeId::ROOT, called);
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
    profile
}

#[test]
fn an_attempt_is_left_out_only_where_it_would_fail() {
    // The second one has many libraries for its functions: one below each kept caller.
    for (functions, allocators, keeps) in [(400, 400, false), (30_000, 4, true)] {
        let profile = by_allocators(functions, allocators);
        let (stacks, stack_of) = stacks_of(&profile);
        let weights = Weights::new(&profile, stacks.len(), stack_of.as_deref());
        let count = if keeps { functions as usize } else { 0 };
        let mut goals = FoldTargets::new(&profile.table, stacks.len());
        let mut attempt = FoldAttempt::new(&profile.table, &stacks, &weights, usize::MAX);
        attempt.keep(count);
        assert!(attempt.find(&mut goals));
        let needed = goals.made.len();
        assert!(
            needed >= (functions * (allocators + 1)) as usize,
            "{needed}"
        );
        let is_too_much = |room, detail| {
            let attempt = || {
                let mut new = FoldAttempt::new(&profile.table, &stacks, &weights, count + room);
                new.keep(count);
                new
            };
            let (mut alone, mut together) = (attempt(), attempt());
            alone.detail = detail;
            // An estimate of several details is that of each.
            together.is_too_much();
            together.detail = detail;
            assert_eq!(together.is_too_much(), alone.is_too_much());
            alone.is_too_much()
        };
        assert!(!is_too_much(needed, Detail::Functions));
        assert!(is_too_much(needed * 3 / 4, Detail::Functions), "{needed}");
        assert!(
            !is_too_much(needed / 2, Detail::Libraries),
            "without functions there are few"
        );
        assert!(
            !is_too_much(1000, Detail::Functions),
            "nothing is estimated"
        );
    }
}

#[test]
fn the_owner_of_omitted_frames_is_the_same_from_both_ends() {
    let profile = drawn(3000);
    let stacks = profile.table.list().expect("it has a list");
    let mut walk = Walk::from_table(&profile.table);
    for stack in 0..stacks.len() as u32 {
        for depth in 0..8 {
            let packed = stacks.get(stack);
            let owner = walk.owner(packed, depth);
            let caller = stack * 8 + depth;
            assert_eq!(
                owner,
                walk.read(packed, caller, depth).map(|read| read.last)
            );
        }
    }
}

#[test]
fn stacks_below_the_same_callsite_have_the_libraries_of_each_alone() {
    let profile = drawn(3000);
    let stacks = profile.table.list().expect("it has a list");
    let libraries = |walk: &mut Walk, stack, caller, depth| {
        let omitted = walk.read(stacks.get(stack), caller, depth)?;
        Some(walk.libraries(&omitted).to_vec())
    };
    let mut shared = 0;
    for depth in 0..8 {
        let kept = |stack: &u32| {
            let mut packed = stacks.get(*stack);
            let frames = std::iter::from_fn(|| packed::first(&mut packed));
            frames.take(depth as usize).collect::<Vec<u32>>()
        };
        let mut all: Vec<u32> = (0..stacks.len() as u32).collect();
        all.retain(|stack| kept(stack).len() == depth as usize);
        all.sort_by_key(kept);
        let mut walk = Walk::from_table(&profile.table);
        let mut caller_of = BTreeMap::new();
        for (caller, below) in (0..).zip(all.chunk_by(|one, other| kept(one) == kept(other))) {
            for &stack in below {
                let alone = libraries(&mut Walk::from_table(&profile.table), stack, 0, depth);
                assert_eq!(libraries(&mut walk, stack, caller, depth), alone);
                caller_of.insert(stack, (caller, alone));
            }
            shared += below.len() - 1;
        }
        // Now the callsites come in turns.
        for (stack, (caller, alone)) in caller_of {
            assert_eq!(libraries(&mut walk, stack, caller, depth), alone);
        }
    }
    assert!(shared > 100, "{shared}");
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
    let mut stacks = PackedStacks::default();
    let leaf: Vec<NodeId> = table.stack(leaf).collect();
    let outermost_first = leaf.iter().rev().filter_map(|node| table.frame_of(*node));
    let id = stacks.id(outermost_first.map(|frame| frame.0));
    let packed = stacks.get(id);
    let mut walk = Walk::from_table(&table);
    let omitted: Omitted = walk.read(packed, 0, 0).expect("it has frames");
    let libraries = walk.libraries(&omitted);
    assert_eq!(libraries.len(), 256);
    assert_eq!(libraries.last(), Some(&omitted.last));
    // The second time, the libraries of the caller are known.
    for _ in 0..2 {
        assert!(
            walk.read(packed, 1, 2)
                .is_some_and(|omitted| walk.libraries(&omitted).len() == 255)
        );
    }
    assert!(walk.read(packed, 2, 1050).is_none());
}
