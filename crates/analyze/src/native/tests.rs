//! Tables and trees compared with an oracle that processes stacks one by one.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use regex::Regex;

use super::filter::Filter;
use super::groups::{Groups, RowKey};
use super::table::{Key, Table};
use super::tree::{Pruning, Tree};
use super::visible_tree::{VisibleId, VisibleTree};
use heaptap_model::stacks::{
    Frame, FrameId, Function, Kind, Library, NodeId, StackTable, TextId, Values,
};

/// Frames for stacks: name, kind, library, file and line.
const FRAMES: [(&str, Kind, &str, &str, u32); 9] = [
    ("main", Kind::Plain, "/system/bin/app", "main.cpp", 3),
    (
        "ns::Cache<int>::put(int)",
        Kind::Plain,
        "/lib/libcache.so",
        "cache.cpp",
        10,
    ),
    (
        "ns::Cache<int>::put(int)",
        Kind::Plain,
        "/lib/libcache.so",
        "cache.cpp",
        12,
    ),
    ("load", Kind::Plain, "/lib/libcache.so", "load.cpp", 7),
    (
        "com.example.Main.run [jit]",
        Kind::Java,
        "/memfd:jit-cache",
        "",
        0,
    ),
    (
        "com.example.Other.go",
        Kind::Java,
        "/memfd:jit-cache",
        "",
        0,
    ),
    (
        "art::Thread::Run()",
        Kind::Runtime,
        "/apex/libart.so",
        "",
        0,
    ),
    (
        "operator new(unsigned long)",
        Kind::Allocator,
        "/lib/libc++.so",
        "",
        0,
    ),
    ("malloc", Kind::Allocator, "/lib/libc.so", "", 0),
];

/// Returns the frames of a table in the order of [`FRAMES`].
fn enter_frames(table: &mut StackTable) -> Vec<FrameId> {
    let frames = FRAMES.map(|(name, kind, path, file, line)| {
        let library = Library {
            path: table.text(path),
            build_id: TextId::default(),
        };
        let function = Function {
            name: table.text(name),
            system_name: TextId::default(),
            library: table.library(library),
            kind,
        };
        let frame = Frame {
            function: table.function(function),
            file: table.text(file),
            line,
            inlined: false,
        };
        table.frame(frame)
    });
    frames.to_vec()
}

/// Stacks, leaf first, with two values each.
type Stacks = Vec<(Vec<usize>, i64, i64)>;

fn profile(stacks: &Stacks, mut table: StackTable) -> (StackTable, Vec<FrameId>, Values) {
    let frames = enter_frames(&mut table);
    let mut sums: BTreeMap<NodeId, (i64, i64)> = BTreeMap::new();
    for (stack, a, b) in stacks {
        let root_first: Vec<FrameId> = stack.iter().rev().map(|frame| frames[*frame]).collect();
        let leaf = table.stack_of(&root_first);
        let sum = sums.entry(leaf).or_default();
        sum.0 += a;
        sum.1 += b;
    }
    let values = Values {
        nodes: sums.keys().copied().collect(),
        columns: vec![
            sums.values().map(|sum| sum.0).collect(),
            sums.values().map(|sum| sum.1).collect(),
        ],
    };
    (table, frames, values)
}

/// Applies the rules of the module documentation to one stack, leaf first.
fn oracle(filter: &Filter, stack: &[usize]) -> Option<Vec<usize>> {
    let matches = |patterns: &[Regex], frame: usize| {
        let (name, _, path, file, _) = FRAMES[frame];
        let texts = [name, path, file]
            .into_iter()
            .filter(|text| !text.is_empty());
        texts
            .into_iter()
            .any(|text| patterns.iter().any(|p| p.is_match(text)))
    };
    let shows = |frame: usize| matches(&filter.show, frame);
    let level = |frame: usize| match FRAMES[frame].1 {
        _ if filter.all_frames || shows(frame) => 0,
        Kind::Allocator => 2,
        Kind::Runtime => 1,
        _ => 0,
    };
    // Patterns apply to the frames that are not hidden by default.
    let least = stack.iter().map(|frame| level(*frame)).min();
    let counts = |frame: usize| Some(level(frame)) == least;
    let any = |patterns: &[Regex]| {
        let mut left = stack.iter().filter(|frame| counts(**frame));
        left.any(|frame| matches(patterns, *frame))
    };
    if any(&filter.ignore) || !filter.focus.is_empty() && !any(&filter.focus) {
        return None;
    }
    let mut left: Vec<usize> = stack
        .iter()
        .copied()
        .filter(|frame| !matches(&filter.hide, *frame))
        .filter(|frame| filter.show.is_empty() || matches(&filter.show, *frame))
        .collect();
    if !filter.show_from.is_empty() {
        let outermost = left
            .iter()
            .rposition(|frame| counts(*frame) && matches(&filter.show_from, *frame))?;
        left.truncate(outermost + 1);
    }
    if !filter.all_frames && filter.show.is_empty() {
        let without = |hidden: &[Kind]| -> Vec<usize> {
            let kept = left
                .iter()
                .filter(|frame| !hidden.contains(&FRAMES[**frame].1));
            kept.copied().collect()
        };
        let choices = [
            without(&[Kind::Allocator, Kind::Runtime]),
            without(&[Kind::Allocator]),
        ];
        if let Some(choice) = choices.into_iter().find(|choice| !choice.is_empty()) {
            left = choice;
        }
    }
    (!left.is_empty() || filter.takes_all()).then_some(left)
}

fn label(table: &StackTable, by: RowKey, frame: usize, frames: &[FrameId]) -> String {
    let groups = Groups::new(table, by);
    let group = groups.group(frames[frame]);
    match by {
        RowKey::Line => format!("{group:?}"),
        _ => groups.name(group).into_owned(),
    }
}

const GROUPINGS: [RowKey; 6] = [
    RowKey::Function,
    RowKey::Library,
    RowKey::File,
    RowKey::Line,
    RowKey::Class,
    RowKey::Package,
];

fn check(stacks: &Stacks, filter: &Filter) {
    let (table, frames, values) = profile(stacks, StackTable::default());
    let shown = VisibleTree::new(&table, filter, &[&values]);
    let left: Vec<(Vec<usize>, i64)> = stacks
        .iter()
        .filter_map(|(stack, a, _)| Some((oracle(filter, stack)?, *a)))
        .collect();
    let total: i64 = left.iter().map(|(_, a)| a).sum();
    assert_eq!(shown.totals(&values)[0], total);
    let (list, _, values_of_list) = profile(stacks, StackTable::with_list());
    let shown_of_list = VisibleTree::new(&list, filter, &[&values_of_list]);
    assert_eq!(shown_of_list.totals(&values_of_list), shown.totals(&values));
    assert_eq!(shown_of_list.has_matches(), shown.has_matches());
    assert_eq!(shown_of_list.took_out(), shown.took_out());
    for by in GROUPINGS {
        let groups = Groups::new(&table, by);
        let labels: Vec<String> = (0..FRAMES.len())
            .map(|frame| label(&table, by, frame, &frames))
            .collect();
        let mut expected: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
        for (stack, a) in &left {
            if let Some(leaf) = stack.first() {
                expected.entry(&labels[*leaf]).or_default().0 += a;
            }
            let on_it: BTreeSet<&str> = stack.iter().map(|f| labels[*f].as_str()).collect();
            for one in on_it {
                expected.entry(one).or_default().1 += a;
            }
        }
        expected.retain(|_, sums| *sums != (0, 0));
        let made = Table::new(&shown, &groups, &values);
        let of_list = Table::new(&shown_of_list, &groups, &values_of_list);
        assert!(of_list.rows().eq(made.rows()), "{by:?}");
        let mut found: BTreeMap<String, (i64, i64)> = BTreeMap::new();
        for row in made.rows() {
            let Key::Group(group) = row.key else {
                panic!("a callsite in a table by {by:?}");
            };
            let name = match by {
                RowKey::Line => format!("{group:?}"),
                _ => groups.name(group).into_owned(),
            };
            let sum = found.entry(name).or_default();
            sum.0 += row.own[0];
            sum.1 += row.cumulative[0];
        }
        found.retain(|_, sums| *sums != (0, 0));
        let found: BTreeMap<&str, (i64, i64)> = found
            .iter()
            .map(|(name, sums)| (name.as_str(), *sums))
            .collect();
        assert_eq!(found, expected, "{by:?}");
        let made = trees(&shown, &groups, &values, &expected);
        let of_list = trees(&shown_of_list, &groups, &values_of_list, &expected);
        assert_eq!(of_list, made, "{by:?}");
    }
    let mut expected: BTreeMap<Vec<usize>, i64> = BTreeMap::new();
    for (stack, a) in &left {
        *expected.entry(stack.clone()).or_default() += a;
    }
    expected.retain(|_, sum| *sum != 0);
    expected.remove(&Vec::new());
    let groups = Groups::new(&table, RowKey::Callsite);
    let made = Table::new(&shown, &groups, &values);
    let found: BTreeMap<Vec<usize>, i64> = made
        .rows()
        .filter(|row| row.own[0] != 0 && row.key != Key::Callsite(VisibleId::ROOT))
        .map(|row| {
            let Key::Callsite(id) = row.key else {
                panic!("no callsite in a table by callsite");
            };
            let stack = shown.stack(id);
            let position = |frame| frames.iter().position(|f| *f == frame).expect("ours");
            (stack.map(position).collect(), row.own[0])
        })
        .collect();
    assert_eq!(found, expected);
}

/// Checks that trees contain every byte: the self values of all nodes are those of the table's
/// rows. Returns the trees.
fn trees(
    shown: &VisibleTree<'_>,
    groups: &Groups<'_>,
    values: &Values,
    expected: &BTreeMap<&str, (i64, i64)>,
) -> [Tree; 2] {
    let whole = Pruning {
        depth: usize::MAX,
        least: 0,
        column: 0,
        most: usize::MAX,
    };
    let name = |group| match groups.by() {
        RowKey::Line => format!("{group:?}"),
        _ => groups.name(group).into_owned(),
    };
    let (tree, left_out) = Tree::from_root(shown, groups, values, &whole);
    let sums = &values.columns[0];
    if sums.iter().all(|value| *value >= 0) {
        assert!(left_out.is_none_or(|rest| rest.cumulative[0] == 0));
    }
    let mut own: BTreeMap<String, i64> = BTreeMap::new();
    for node in &tree.nodes {
        *own.entry(name(node.group)).or_default() += node.own[0];
    }
    let (inverted, _) = Tree::inverted(shown, groups, values, &whole);
    for (wanted, (self_value, _)) in expected {
        if sums.iter().any(|value| *value < 0) {
            continue;
        }
        assert_eq!(
            own.get(*wanted).copied().unwrap_or(0),
            *self_value,
            "{wanted}"
        );
        let leaf: i64 = inverted
            .nodes
            .iter()
            .filter(|node| node.depth == 0 && name(node.group) == *wanted)
            .map(|node| node.cumulative[0])
            .sum();
        assert_eq!(leaf, *self_value, "{wanted}");
    }
    if sums.iter().all(|value| *value >= 0) {
        let own: i64 = inverted.nodes.iter().map(|node| node.own[0]).sum();
        let with_frames: i64 = expected.values().map(|(own, _)| own).sum();
        assert_eq!(own, with_frames);
    }
    for node in &inverted.nodes {
        let own = if node.depth == 0 {
            node.cumulative[0]
        } else {
            0
        };
        assert_eq!(node.own[0], own, "self is the allocating function's");
    }
    assert_eq!(tree.total, inverted.total);
    [tree, inverted]
}

fn patterns() -> impl Strategy<Value = Vec<Regex>> {
    let one = prop::sample::select(vec![
        "main",
        "put",
        "lib",
        "cache.cpp",
        "example",
        "malloc",
        "art::",
        "^load$",
        "o",
        "nothing",
    ]);
    prop::collection::vec(one, 0..2).prop_map(|all| {
        all.into_iter()
            .map(|p| Regex::new(p).expect("a pattern"))
            .collect()
    })
}

fn filters() -> impl Strategy<Value = Filter> {
    (
        patterns(),
        patterns(),
        patterns(),
        patterns(),
        patterns(),
        any::<bool>(),
    )
        .prop_map(
            |(focus, ignore, hide, show, show_from, all_frames)| Filter {
                focus,
                ignore,
                hide,
                show,
                show_from,
                all_frames,
            },
        )
}

fn stacks() -> impl Strategy<Value = Stacks> {
    let stack = prop::collection::vec(0..FRAMES.len(), 0..7);
    prop::collection::vec((stack, 0i64..50, -5i64..5), 0..30)
}

proptest! {
    #[test]
    fn tables_and_trees_are_those_of_the_stacks(stacks in stacks(), filter in filters()) {
        check(&stacks, &filter);
    }

    #[test]
    fn unfiltered_nothing_is_lost(stacks in stacks()) {
        check(&stacks, &Filter::default());
        check(&stacks, &Filter { all_frames: true, ..Filter::default() });
    }
}

#[test]
fn a_hidden_leaf_gives_its_bytes_to_its_caller() {
    let stacks = vec![
        (vec![8, 7, 1, 0], 100, 1),
        (vec![8, 6], 7, 1),
        (vec![8], 3, 1),
    ];
    let (table, _, values) = profile(&stacks, StackTable::default());
    let shown = VisibleTree::new(&table, &Filter::default(), &[&values]);
    assert!(shown.took_out());
    let groups = Groups::new(&table, RowKey::Function);
    let made = Table::new(&shown, &groups, &values);
    let rows: Vec<_> = made
        .ranked(0, |row| row.own[0])
        .into_iter()
        .map(|at| (made.row(at).key, made.row(at).own[0]))
        .map(|(key, own)| match key {
            Key::Group(group) => (groups.name(group).into_owned(), own),
            Key::Callsite(_) => panic!("by function"),
        })
        .collect();
    let row = |name: &str, own| (name.to_owned(), own);
    assert_eq!(
        rows,
        [
            row("ns::Cache<int>::put(int)", 100),
            row("art::Thread::Run()", 7),
            row("malloc", 3),
            row("main", 0),
        ]
    );
}

#[test]
fn deep_recursion_is_a_few_lines() {
    let mut stack = vec![8];
    for _ in 0..100_000 {
        stack.extend([1, 3]);
    }
    stack.push(0);
    let (table, _, values) = profile(&vec![(stack, 64, 1)], StackTable::default());
    let shown = VisibleTree::new(&table, &Filter::default(), &[&values]);
    let groups = Groups::new(&table, RowKey::Function);
    let pruning = Pruning {
        depth: 100,
        least: 0,
        column: 0,
        most: 1000,
    };
    let (tree, left_out) = Tree::from_root(&shown, &groups, &values, &pruning);
    assert_eq!(left_out, None);
    assert!(tree.nodes.len() < 8, "{:?}", tree.nodes);
    assert!(tree.nodes.iter().any(|node| node.folded > 1000));
    let made = Table::new(&shown, &groups, &values);
    assert!(made.rows().all(|row| row.cumulative[0] == 64));
    let (inverted, _) = Tree::inverted(&shown, &groups, &values, &pruning);
    assert_eq!(inverted.nodes.len(), 100);
}

#[test]
fn what_is_left_out_of_a_tree_is_told() {
    let stacks = vec![
        (vec![1, 0], 100, 1),
        (vec![3, 0], 5, 1),
        (vec![5, 0], 4, 1),
        (vec![4], 1, 1),
    ];
    let (table, _, values) = profile(&stacks, StackTable::default());
    let shown = VisibleTree::new(&table, &Filter::default(), &[&values]);
    let groups = Groups::new(&table, RowKey::Function);
    let pruning = Pruning {
        depth: 2,
        least: 10,
        column: 0,
        most: 10,
    };
    let (tree, left_out) = Tree::from_root(&shown, &groups, &values, &pruning);
    assert_eq!(tree.nodes.len(), 2);
    let rest = tree.nodes[0].left_out.as_ref().expect("two are left out");
    assert_eq!((rest.count, rest.cumulative[0]), (2, 9));
    let rest = left_out.expect("one is left out");
    assert_eq!((rest.count, rest.cumulative[0]), (1, 1));
    let one = Pruning { most: 1, ..pruning };
    let (tree, _) = Tree::from_root(&shown, &groups, &values, &one);
    assert_eq!(tree.nodes.len(), 1);
    assert_eq!(
        tree.nodes[0].left_out.as_ref().map(|rest| rest.count),
        Some(3)
    );
}
