//! Tables over small heaps whose values are counted by hand.

use super::dsl::{Heap, heap};
use super::filter::Filter;
use super::histogram::{
    Histogram, HistogramKey, ObjectScope, Sums, by_root, histogram, histograms,
};
use super::holders::{self, KindedReferrers, Reading};
use super::tree::{self, NodeKey};
use super::{diff, label, largest, paths};
use heaptap_model::heap_graph::{
    Dominators, Follow, HeapKind, ObjectSet, Reachable, Retained, ShortestPaths,
};
use regex::Regex;

fn lab() -> Heap {
    heap(
        r#"
        class app.ui.Detail extends android.app.Activity
        class android.app.Activity extends java.lang.Object
        registry java.lang.Class<app.Registry> 8 root=sticky_class -> LEAKED:list, CACHE:soft
        list     java.util.ArrayList           24 -> elementData:array
        array    java.lang.Object[]            40 -> one, two, null
        one      app.ui.Detail                100 -> mDecor:pixels
        two      app.ui.Detail                100 +5000 -> mDecor:pixels
        pixels   byte[]                      1000
        main     java.lang.Thread              50 root=thread_object -> threadLocals:shared
        owner    app.Owner                     10 root=jni_global -> data:shared, weak:weak
        shared   byte[]                       700
        weak     java.lang.ref.WeakReference   16 -> referent:gone
        soft     java.lang.ref.SoftReference   16 -> referent:cached
        cached   app.Cached                    30 heap=zygote
        gone     app.ui.Detail                100 -> mDecor:rest
        rest     byte[]                       400
        text     java.lang.String              16 root=interned_string text="hello"
        "#,
    )
}

fn sums(histogram: &Histogram, name: &str) -> Sums {
    let row = histogram.rows.iter().find(|row| row.name == name);
    row.unwrap_or_else(|| panic!("no {name} in {histogram:?}"))
        .sums
}

fn by(heap: &Heap, by: HistogramKey, filter: &Filter) -> Histogram {
    let dominators = Dominators::compute(&heap.graph, Follow::default());
    histogram(&heap.graph, ObjectScope::Reachable(&dominators), by, filter)
}

#[test]
fn what_matches_retains_what_its_objects_share() {
    let lab = lab();
    let follow = Follow::default();
    let dominators = Dominators::compute(&lab.graph, follow);
    let matching = |pattern: &str| {
        let filter = Filter {
            focus: vec![Regex::new(pattern).unwrap()],
            ..Filter::default()
        };
        Sums::of_matching(&lab.graph, &dominators, follow, &filter)
    };
    let detail = matching("Detail");
    assert_eq!((detail.count, detail.shallow_bytes), (2, 200));
    assert_eq!(detail.native_bytes, 5000);
    let expected = Retained {
        count: 3,
        bytes: 200 + 1000,
        native_bytes: 5000,
    };
    assert_eq!(detail.retained, expected);
    // The shared bytes need both of their holders to go.
    assert_eq!(matching("Owner").retained.bytes, 10 + 16);
    assert_eq!(matching("Owner|Thread").retained.bytes, 10 + 16 + 50 + 700);
    assert_eq!(matching(".").retained, dominators.total());
    assert_eq!(matching("none").retained, Retained::default());
}

#[test]
fn classes_count_what_is_reachable_and_what_goes_with_them() {
    let lab = lab();
    let table = by(&lab, HistogramKey::Class, &Filter::default());
    let detail = sums(&table, "app.ui.Detail");
    assert_eq!(
        (detail.count, detail.shallow_bytes),
        (2, 200),
        "not the third, weakly held"
    );
    assert_eq!(detail.native_bytes, 5000);
    // Both share the pixels.
    assert_eq!(
        (detail.retained.bytes, detail.retained.native_bytes),
        (200, 5000)
    );
    let list = sums(&table, "java.util.ArrayList");
    assert_eq!(
        (list.retained.bytes, list.retained.count),
        (24 + 40 + 200 + 1000, 5)
    );
    assert_eq!(
        sums(&table, "java.lang.Class").count,
        1,
        "class objects are one class"
    );
    assert_eq!(sums(&table, "byte[]").retained.bytes, 1700);
    assert_eq!(table.total.count, 13);
    assert_eq!(table.total.retained.bytes, table.total.shallow_bytes);
}

#[test]
fn unreachable_objects_are_told_apart() {
    let lab = lab();
    let reachable = Reachable::new(&lab.graph, Follow::default());
    let scope = ObjectScope::Unreachable(&reachable);
    let table = histogram(&lab.graph, scope, HistogramKey::Class, &Filter::default());
    assert_eq!((table.total.count, table.total.shallow_bytes), (2, 500));
    assert_eq!(sums(&table, "byte[]").count, 1);
    let dominators = Dominators::compute(&lab.graph, Follow::default());
    let all = histogram(
        &lab.graph,
        ObjectScope::All(&dominators),
        HistogramKey::Class,
        &Filter::default(),
    );
    assert_eq!(all.total.count, 15);
    let strong = Dominators::compute(&lab.graph, Follow::STRONG);
    let scope = ObjectScope::Reachable(&strong);
    let table = histogram(&lab.graph, scope, HistogramKey::Class, &Filter::default());
    assert!(!table.rows.iter().any(|row| row.name == "app.Cached"));
}

#[test]
fn other_groups_sum_to_the_same() {
    let lab = lab();
    let all = Filter::default();
    for group in [
        HistogramKey::Class,
        HistogramKey::Package,
        HistogramKey::Heap,
        HistogramKey::Loader,
    ] {
        let table = by(&lab, group, &all);
        let bytes: u64 = table.rows.iter().map(|row| row.sums.shallow_bytes).sum();
        assert_eq!(bytes, table.total.shallow_bytes, "{group:?}");
    }
    let packages = by(&lab, HistogramKey::Package, &all);
    // The statics of a class belong to its package.
    assert_eq!(sums(&packages, "app").count, 1 + 1 + 1);
    assert_eq!(sums(&packages, "(arrays of primitives)").count, 2);
    assert_eq!(sums(&by(&lab, HistogramKey::Heap, &all), "zygote").count, 1);
    let superclasses = by(&lab, HistogramKey::Superclass, &all);
    assert_eq!(sums(&superclasses, "android.app.Activity").count, 2);
    assert_eq!(
        sums(&superclasses, "android.app.Activity")
            .retained
            .native_bytes,
        5000
    );
    assert_eq!(
        superclasses.total.count, 13,
        "each object once in the total"
    );
}

#[test]
fn tables_of_one_pass_are_those_of_several() {
    let lab = lab();
    let dominators = Dominators::compute(&lab.graph, Follow::default());
    let keys = [
        HistogramKey::Class,
        HistogramKey::Package,
        HistogramKey::Superclass,
        HistogramKey::Heap,
        HistogramKey::Loader,
    ];
    let app = Filter {
        focus: vec![Regex::new("^app").unwrap()],
        ..Filter::default()
    };
    for filter in [Filter::default(), app] {
        for scope in [
            ObjectScope::Reachable(&dominators),
            ObjectScope::All(&dominators),
            ObjectScope::Everything,
        ] {
            let together = histograms(&lab.graph, scope, &keys, &filter);
            let each = keys.map(|by| histogram(&lab.graph, scope, by, &filter));
            assert_eq!(together, each);
        }
        // A class without subclasses and the group of its subclasses are summed once.
        let wanted = filter.of(&lab.graph);
        for row in by(&lab, HistogramKey::Superclass, &filter).rows {
            let is_below = |object| {
                let mut line = lab.graph.ancestry(lab.graph.class_of(object));
                line.any(|class| label::class_name(&lab.graph, class) == row.name)
            };
            let group_of = |object| (wanted.takes(object) && is_below(object)).then_some(0);
            let retained = dominators.retained_by(1, group_of);
            assert_eq!(row.sums.retained, retained[0], "{}", row.name);
        }
    }
}

#[test]
fn filters_take_classes_by_name() {
    let lab = lab();
    let filter = Filter {
        focus: vec![Regex::new("^app").unwrap()],
        ignore: vec![Regex::new("Owner$").unwrap()],
        heaps: Vec::new(),
        by_represented: false,
    };
    let table = by(&lab, HistogramKey::Class, &filter);
    let mut names: Vec<&str> = table.rows.iter().map(|row| row.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["app.Cached", "app.ui.Detail"]);
}

#[test]
fn roots_are_told_by_the_shortest_path() {
    let lab = lab();
    let paths = ShortestPaths::new(&lab.graph, Follow::default());
    let dominators = Dominators::compute(&lab.graph, Follow::default());
    let table = by_root(&lab.graph, &dominators, &paths, &Filter::default());
    let statics = sums(&table, "system class");
    assert_eq!(statics.retained.bytes, 8 + 24 + 40 + 200 + 1000 + 16 + 30);
    // Shared by two roots: one of them gets it, neither retains more than itself.
    let jni = sums(&table, "JNI global");
    assert_eq!(jni.shallow_bytes, 10 + 16 + 700);
}

#[test]
fn the_largest_name_what_says_most_of_a_chain() {
    let lab = lab();
    let dominators = Dominators::compute(&lab.graph, Follow::default());
    let all = Filter::default();
    let found = largest::largest(&lab.graph, &dominators, &all, 3, true);
    let objects: Vec<_> = found.iter().map(|large| large.object).collect();
    // The list and the array retain the same as the class.
    assert_eq!(
        objects,
        [lab.at("registry"), lab.at("two"), lab.at("pixels")]
    );
    let plain = largest::largest(&lab.graph, &dominators, &all, 3, false);
    let objects: Vec<_> = plain.iter().map(|large| large.object).collect();
    assert_eq!(
        objects,
        [lab.at("registry"), lab.at("list"), lab.at("array")]
    );
}

#[test]
fn paths_carry_the_names_of_fields() {
    let lab = lab();
    let shortest = ShortestPaths::new(&lab.graph, Follow::default());
    let path = paths::shortest(&lab.graph, &shortest, Follow::default(), lab.at("pixels"));
    let links: Vec<String> = path
        .steps
        .iter()
        .filter_map(|step| Some(step.link.as_ref()?.to_string()))
        .collect();
    assert_eq!(
        links,
        [
            "app.Registry.LEAKED",
            "ArrayList.elementData",
            "Object[].[0]",
            "Detail.mDecor"
        ]
    );
    assert_eq!(path.root.unwrap().to_string(), "system class");
    let nowhere = paths::shortest(&lab.graph, &shortest, Follow::default(), lab.at("gone"));
    assert_eq!((nowhere.root, nowhere.steps.len()), (None, 1));
}

/// Draws the tree as indented lines of `count name <- link`.
fn drawn(tree: &holders::Holders) -> Vec<String> {
    let mut lines = Vec::new();
    let mut stack = Vec::new();
    if !tree.nodes.is_empty() {
        stack.push((0, 0));
    }
    while let Some((at, depth)) = stack.pop() {
        let node = &tree.nodes[at];
        let link = node
            .link
            .as_ref()
            .map_or(String::new(), |link| format!(" {link}"));
        let roots: Vec<String> = node
            .roots
            .iter()
            .map(|(why, n)| format!(" [{n} {why}]"))
            .collect();
        lines.push(format!(
            "{:depth$}{} {}{link}{}",
            "",
            node.count,
            node.name,
            roots.concat()
        ));
        stack.extend(node.holders.iter().rev().map(|&below| (below, depth + 1)));
    }
    lines
}

#[test]
fn all_paths_merge_by_class_and_field() {
    let lab = lab();
    let follow = Follow::default();
    let dominators = Dominators::compute(&lab.graph, follow);
    let referrers = KindedReferrers::new(&lab.graph, follow, Reading::OnDemand, None);
    let reachable = dominators.reachable();
    let mut search = holders::Search::new(referrers, &reachable);
    let mut of = |name: &str, targets: &[&str]| {
        let targets = targets.iter().map(|t| lab.at(t));
        let targets = ObjectSet::from_graph(lab.graph.len(), targets);
        drawn(&search.holders(name, targets))
    };
    assert_eq!(
        of("shared", &["shared"]),
        [
            "1 shared",
            " 1 java.lang.Thread Thread.threadLocals [1 thread]",
            " 1 app.Owner Owner.data [1 JNI global]",
        ]
    );
    assert_eq!(
        of("details", &["one", "two", "gone"]),
        [
            "2 details",
            " 1 java.lang.Object[] Object[].[*]",
            "  1 java.util.ArrayList ArrayList.elementData",
            "   1 class app.Registry app.Registry.LEAKED [1 system class]",
        ]
    );
    assert!(of("gone", &["gone"]).is_empty());
}

#[test]
fn linked_lists_share_a_node_and_dead_ends_are_left_out() {
    let mut text = "root app.List 8 root=jni_global -> head:n0\n".to_owned();
    for at in 0..5000 {
        text += &format!(
            "n{at} app.Node 8 -> next:n{}, prev:n{}\n",
            (at + 1).min(4999),
            at.max(1) - 1
        );
    }
    let list = heap(&text);
    let follow = Follow::default();
    let dominators = Dominators::compute(&list.graph, follow);
    let referrers = KindedReferrers::new(&list.graph, follow, Reading::Ahead, None);
    let reachable = dominators.reachable();
    let mut search = holders::Search::new(referrers, &reachable);
    let tree = search.holders(
        "last",
        ObjectSet::from_graph(list.graph.len(), [list.at("n4999")]),
    );
    assert_eq!(
        drawn(&tree),
        [
            "1 last",
            " 4999 app.Node Node.next",
            "  1 app.List List.head [1 JNI global]"
        ]
    );
    let merged = tree::merged(&list.graph, &dominators, NodeKey::Class, 0);
    assert_eq!(merged.nodes.len(), 2);
    assert_eq!(merged.nodes[1].sums.count, 5000);
    assert_eq!(merged.nodes[0].sums.retained.bytes, 8 * 5001);
}

#[test]
fn the_merged_dominator_tree_sums_siblings() {
    let lab = lab();
    let dominators = Dominators::compute(&lab.graph, Follow::default());
    let merged = tree::merged(&lab.graph, &dominators, NodeKey::Class, 0);
    let top = &merged.nodes[merged.tops[0]];
    assert_eq!(top.name, "class app.Registry");
    let mut at = merged.tops[0];
    let mut names = Vec::new();
    while let Some(&below) = merged.nodes[at].below.first() {
        names.push((
            merged.nodes[below].name.as_str(),
            merged.nodes[below].sums.count,
        ));
        at = below;
    }
    assert_eq!(
        names,
        [
            ("java.util.ArrayList", 1),
            ("java.lang.Object[]", 1),
            ("app.ui.Detail", 2)
        ]
    );
    let least = tree::merged(&lab.graph, &dominators, NodeKey::Class, 5000);
    assert!(
        least
            .nodes
            .iter()
            .all(|node| node.sums.retained.total_bytes() >= 5000)
    );
    assert_eq!(least.tops.len(), 1);
}

#[test]
fn a_diff_matches_by_name_and_says_what_became_of_each() {
    let before = heap(
        "
        statics java.lang.Class<app.Registry>  8 root=sticky_class -> LIST:list, old:old
        list    java.util.ArrayList           24 -> elementData:array
        array   java.lang.Object[]            40 -> one
        one     app.Listener                  16 -> data:data
        data    byte[]                       100
        old     app.Old                       32
        lambda  app.Main$$Lambda$2+0x00007f01  8 root=jni_global
        ",
    );
    let after = heap(
        "
        list    java.util.ArrayList           24 -> elementData:array
        array   java.lang.Object[]            40 -> one, two, three
        one     app.Listener                  16 -> data:data
        data    byte[]                       100
        two     app.Listener                  16 -> data:more
        more    byte[]                       100
        three   app.Listener                  16
        statics java.lang.Class                8 root=sticky_class -> LIST:list, fresh:fresh
        fresh   app.Fresh                     12
        lambda  app.Main$$Lambda$2+0x00007fff  8 root=jni_global
        ",
    );
    let follow = Follow::default();
    let dominators = [&before, &after].map(|heap| Dominators::compute(&heap.graph, follow));
    let side = |heap, dominators| diff::Side {
        graph: heap,
        dominators,
    };
    let (a, b) = (
        side(&before.graph, &dominators[0]),
        side(&after.graph, &dominators[1]),
    );
    let compare = |a, b| {
        let all = Filter::default();
        diff::merge(diff::classes(a, &all), diff::classes(b, &all))
    };
    let changed = compare(a, b);
    let rows: Vec<_> = changed
        .iter()
        .map(|row| {
            let growth = row.change.growth();
            (
                row.name.as_str(),
                row.change.status(),
                growth.count,
                growth.shallow_bytes,
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            ("byte[]", "grown", 1, 100),
            ("app.Listener", "grown", 2, 32),
            ("app.Fresh", "new", 1, 12),
            ("java.lang.Object[]", "grown", 0, 0),
            ("java.util.ArrayList", "grown", 0, 0),
            ("java.lang.Class", "grown", 0, 0),
            ("app.Main$$Lambda$2", "same", 0, 0),
            ("app.Old", "gone", -1, -32),
        ]
    );
    let [before, after] = [a, b].map(|side| diff::classes(side, &Filter::default()).total());
    let total = diff::Change { before, after };
    assert_eq!(total.growth().shallow_bytes, 100 + 32 + 12 - 32);
    let same = compare(a, a);
    assert!(same.iter().all(|row| row.change.growth().is_none()));
}

#[test]
fn a_diff_by_path_shows_where_growth_hangs() {
    let text = |listeners: usize| {
        let names: Vec<String> = (0..listeners).map(|n| format!("l{n}")).collect();
        let mut text = format!(
            "statics java.lang.Class<app.Registry> 8 root=sticky_class -> LIST:list
             list java.util.ArrayList 24 -> elementData:array
             array java.lang.Object[] 40 -> {}\n",
            names.join(", ")
        );
        for name in names {
            text += &format!("{name} app.Listener 16\n");
        }
        text
    };
    let (before, after) = (heap(&text(2)), heap(&text(5)));
    let merged = [&before, &after].map(|heap| {
        tree::merged(
            &heap.graph,
            &Dominators::compute(&heap.graph, Follow::default()),
            NodeKey::Class,
            0,
        )
    });
    let changed = diff::by_path(&merged[0], &merged[1]);
    let mut at = changed.tops[0];
    let mut line = vec![changed.nodes[at].name.as_str()];
    while let Some(&below) = changed.nodes[at].below.first() {
        at = below;
        line.push(&changed.nodes[at].name);
        assert_eq!(changed.nodes[at].change.growth().retained_bytes, 48);
    }
    assert_eq!(
        line,
        [
            "class app.Registry",
            "java.util.ArrayList",
            "java.lang.Object[]",
            "app.Listener"
        ]
    );
    assert_eq!(changed.nodes[at].change.growth().count, 3);
}

/// Builds a list whose head `keeper` holds. Links cycle through `classes`, and each has a payload
/// of `payload` bytes.
fn list(classes: &[&str], links: usize, payload: u64) -> Heap {
    let mut text = String::from(
        "keeper java.lang.Class<app.Keeper> 8 root=sticky_class -> LIST:list\n\
         list app.EventList 16 -> head:link0\n\
         other java.lang.Class<app.Other> 8 root=sticky_class -> BLOB:blob\n\
         blob byte[] 7000\n",
    );
    for at in 0..links {
        let class = classes[at % classes.len()];
        let next = match at + 1 < links {
            true => format!("next:link{}, ", at + 1),
            false => String::new(),
        };
        text += &format!("link{at} {class} 24 -> {next}payload:load{at}\n");
        text += &format!("load{at} byte[] {payload}\n");
    }
    heap(&text)
}

/// Returns the `most` largest objects with their numbers of links.
fn told(heap: &Heap, most: usize) -> Vec<(heaptap_model::heap_graph::ObjectIndex, u64)> {
    let dominators = Dominators::compute(&heap.graph, Follow::default());
    let all = Filter::default();
    let found = largest::largest(&heap.graph, &dominators, &all, most, true);
    let links = |large: &largest::Large| {
        let members = largest::members(&heap.graph, &dominators, large);
        members.map_or(0, |members| members.count)
    };
    found
        .iter()
        .map(|large| (large.object, links(large)))
        .collect()
}

#[test]
fn the_head_of_a_long_list_is_the_largest_and_its_links_have_no_rows() {
    for links in [30, 5_000] {
        let heap = list(&["app.Event"], links, 1000);
        let found = told(&heap, 2);
        assert_eq!(found[0], (heap.at("link0"), links as u64), "{links}");
        assert_eq!(found[1].0, heap.at("other"), "nothing of the list");
    }
}

#[test]
fn the_first_of_a_class_in_the_wanted_heap_stands_for_a_chain_that_begins_in_another() {
    let heap = heap(
        r"
        pool    java.lang.Class<android.os.Message> 8 heap=zygote root=sticky_class -> sPool:first
        first   android.os.Message                 24 heap=zygote -> next:second
        second  android.os.Message            5000000 -> next:third
        third   android.os.Message                 24
        other   app.Other                         100 root=jni_global
        ",
    );
    let dominators = Dominators::compute(&heap.graph, Follow::default());
    let filter = Filter {
        heaps: vec![HeapKind::App],
        ..Filter::default()
    };
    let found = largest::largest(&heap.graph, &dominators, &filter, 2, true);
    let objects: Vec<_> = found.iter().map(|large| large.object).collect();
    assert_eq!(objects, [heap.at("second"), heap.at("other")]);
    assert_eq!((found[0].links, found[0].folded), (1, 2));
    assert_eq!(found[0].start, heap.at("pool"));
}

#[test]
fn a_focus_on_a_package_takes_the_class_objects_that_its_table_has_there() {
    let heap = heap(
        r"
        keeper java.lang.Class<app.Keeper> 8 root=sticky_class -> ONE:one
        other  java.lang.Class<lib.Other> 8 root=sticky_class -> TWO:two
        one    app.Event   24
        two    app.Event   24
        ",
    );
    let dominators = Dominators::compute(&heap.graph, Follow::default());
    let counted = |by, by_represented| {
        let filter = Filter {
            focus: vec![regex::Regex::new("^app").unwrap()],
            by_represented,
            ..Filter::default()
        };
        let scope = ObjectScope::Reachable(&dominators);
        let rows = histogram(&heap.graph, scope, by, &filter).rows;
        let counts: Vec<_> = rows
            .into_iter()
            .map(|row| (row.name, row.sums.count))
            .collect();
        counts
    };
    let package = counted(HistogramKey::Package, true);
    assert_eq!(package, [("app".to_owned(), 3)]);
    let class = counted(HistogramKey::Class, false);
    assert_eq!(class, [("app.Event".to_owned(), 2)]);
}

#[test]
fn a_list_whose_last_link_retains_nearly_all_is_not_what_is_large() {
    let heap = heap(
        r"
        keeper java.lang.Class<app.Keeper> 8 root=sticky_class -> LIST:one
        one    app.Event   24 -> next:two
        two    app.Event   24 -> next:three
        three  app.Event   24 -> payload:load
        load   byte[]   90000
        ",
    );
    let found = told(&heap, 1);
    assert_eq!(found, [(heap.at("one"), 0)]);
}

/// Builds a list with members of these sizes, and returns it with the index of each.
fn members_of(sizes: &[u64]) -> (Heap, largest::Members) {
    let mut text = String::from(
        "keeper java.lang.Class<app.Keeper> 8 root=sticky_class -> LIST:list\nlist java.lang.Object[] 16 -> ",
    );
    let slots: Vec<String> = (0..sizes.len()).map(|at| format!("item{at}")).collect();
    text += &slots.join(", ");
    for (at, bytes) in sizes.iter().enumerate() {
        text += &format!("\nitem{at} app.Item {bytes}");
    }
    let heap = heap(&text);
    let dominators = Dominators::compute(&heap.graph, Follow::default());
    let found = largest::largest(&heap.graph, &dominators, &Filter::default(), 1, true);
    let members = largest::members(&heap.graph, &dominators, &found[0]);
    (heap, members.expect("items make up the list"))
}

#[test]
fn a_member_stands_out_if_it_retains_much_more_than_the_others() {
    let retained = |bytes| Retained {
        bytes,
        ..Retained::default()
    };
    let (_, members) = members_of(&[100, 100, 100, 100, 100, 100, 100, 100, 100, 300]);
    assert_eq!((members.count, members.bytes), (10, 1200));
    assert!(members.are_similar_to(retained(100)));
    assert!(!members.are_similar_to(retained(300)));
    let (_, members) = members_of(&[600, 500]);
    assert!(members.are_similar_to(retained(600)), "one of two");
}

#[test]
fn class_objects_are_no_members_and_entries_behind_others_of_a_bucket_are() {
    let heap = heap(
        r"
        loader dalvik.system.PathClassLoader 40 root=jni_global -> classes:table
        table  java.lang.Object[] 40 -> a, b
        a      java.lang.Class<app.A> 800
        b      java.lang.Class<app.B> 900
        keeper java.lang.Class<app.Keeper> 8 root=sticky_class -> MAP:map
        map    java.util.HashMap 48 -> table:slots
        slots  java.util.HashMap$Node[] 48 -> one, two
        one    java.util.HashMap$Node 400 -> next:three
        two    java.util.HashMap$Node 400
        three  java.util.HashMap$Node 400
        ",
    );
    let found = told(&heap, 2);
    assert_eq!(found[0], (heap.at("loader"), 0));
    assert_eq!(found[1], (heap.at("keeper"), 3));
}

#[test]
fn links_of_two_classes_in_turn_are_one_list() {
    let heap = list(&["app.Even", "app.Odd"], 5_000, 1000);
    let found = told(&heap, 2);
    assert_eq!(found[0], (heap.at("link0"), 2_500));
    assert_eq!(found[1].0, heap.at("other"), "nothing of the list");
}

#[test]
fn a_chain_of_300_000_is_told_by_its_head() {
    let heap = list(&["app.Event"], 300_000, 8);
    let dominators = Dominators::compute(&heap.graph, Follow::default());
    let found = told(&heap, 1);
    assert_eq!(found, [(heap.at("link0"), 300_000)]);
    let retained = dominators.retained(heap.at("link0")).total_bytes();
    assert_eq!(retained, 300_000 * (24 + 8));
}

#[test]
fn holders_within_holders_are_told_by_the_innermost_and_what_is_much_smaller_has_a_row() {
    let heap = heap(
        r"
        root    java.lang.Class<app.Main>  8 root=sticky_class -> SCREEN:screen
        screen  app.Screen                16 -> model:model
        model   app.Model                 16 -> cache:cache
        cache   app.Cache                 16 -> big:big, map:map
        big     byte[]                  4000
        map     java.util.HashMap         48 -> view:view
        view    app.View                3000 -> child:child
        child   app.View                1000
        ",
    );
    let found = told(&heap, 4);
    let objects: Vec<_> = found.iter().map(|found| found.0).collect();
    let names = ["cache", "big", "view", "child"].map(|name| heap.at(name));
    assert_eq!(
        objects, names,
        "a view of a quarter is not a link of a list"
    );
}
