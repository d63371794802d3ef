use super::*;
use heaptap_analyze::dsl::{Heap, heap};
use heaptap_analyze::histogram::HistogramKey;
use heaptap_model::heap_graph::{Follow, ObjectIndex};
use std::ops::ControlFlow;
use std::sync::Mutex;

/// A list of three nodes in a registry, two equal strings, garbage.
const HEAP: &str = "
    registry java.lang.Class<app.Registry> 100 root=sticky_class -> LEAKED:list, NAME:name
    list app.List 20 -> head:one, size:null
    one app.Node 16 -> next:two, value:text
    two app.Node 16 -> next:three, value:text
    three app.Node 16 +1000 -> value:array
    array java.lang.Object[] 400 -> text, null, name
    text java.lang.String 24 text=\"hello\"
    name java.lang.String 24 text=\"registry\"
    gone app.Node 16 -> next:one
";

fn explorer() -> (Explorer, Heap) {
    let (graph, names) = (heap(HEAP).graph, heap(HEAP));
    (Explorer::new(graph, Follow::default(), true), names)
}

fn all() -> Page {
    Page::new(0, 500)
}

fn classes(by: HistogramKey, sort: ClassSort, filter: &str) -> ClassQuery {
    ClassQuery {
        by,
        sort,
        reverse: false,
        filter: filter.to_owned(),
        page: all(),
    }
}

fn query(list: ObjectList, sort: ObjectSort) -> ObjectQuery {
    ObjectQuery {
        list,
        sort,
        reverse: false,
        page: all(),
    }
}

fn names(rows: &[ObjectRow], heap: &Heap) -> Vec<String> {
    let known = [
        "registry", "list", "one", "two", "three", "array", "text", "name", "gone",
    ];
    let name = |row: &ObjectRow| {
        let is = |name: &&&str| heap.graph.id(heap.at(name)).to_string() == row.id;
        known.iter().find(is).map_or("?", |name| *name).to_owned()
    };
    rows.iter().map(name).collect()
}

#[test]
fn tables_are_sorted_filtered_and_paged() {
    let (explorer, _) = explorer();
    let rows = |query: &ClassQuery| -> Vec<(String, u64, u64)> {
        let table = explorer.classes(query);
        let rows = table.rows.into_iter();
        rows.map(|row| (row.name, row.count, row.retained.total_bytes()))
            .collect()
    };
    let by_class = classes(HistogramKey::Class, ClassSort::Retained, "app.");
    assert_eq!(
        rows(&by_class),
        [
            ("app.List".to_owned(), 1, 1492),
            ("app.Node".to_owned(), 3, 1472),
        ]
    );
    let mut by_count = classes(HistogramKey::Class, ClassSort::Count, "");
    assert_eq!(rows(&by_count)[0], ("app.Node".to_owned(), 3, 1472));
    by_count.reverse = true;
    by_count.page = Page::new(1, 1);
    let table = explorer.classes(&by_count);
    assert_eq!((table.total, table.rows.len()), (5, 1));
    let by_package = rows(&classes(HistogramKey::Package, ClassSort::Name, "APP"));
    assert_eq!(by_package.len(), 1);
    assert_eq!(by_package[0].0, "app");
}

#[test]
fn lists_hold_reachable_objects_in_order() {
    let (explorer, heap) = explorer();
    let list = |list, sort| {
        let table = explorer.objects(&query(list, sort));
        assert_eq!(table.total as usize, table.rows.len());
        names(&table.rows, &heap)
    };
    let nodes = || ObjectList::Class("app.Node".to_owned());
    assert_eq!(list(nodes(), ObjectSort::Retained), ["one", "two", "three"]);
    assert_eq!(list(ObjectList::Top, ObjectSort::Retained), ["registry"]);
    let below = ObjectList::Dominated(heap.at("registry"));
    assert_eq!(list(below, ObjectSort::Retained), ["list", "name"]);
    assert_eq!(
        list(ObjectList::All, ObjectSort::Shallow)[..2],
        ["array", "registry"]
    );
    assert!(list(ObjectList::Class("none".to_owned()), ObjectSort::Retained).is_empty());
    assert_eq!(list(ObjectList::All, ObjectSort::Retained).len(), 8);
}

#[test]
fn every_page_of_a_list_is_its_part_of_the_sorted_whole() {
    let mut text = "root app.Root 8 root=jni_global -> ".to_owned();
    // Enough for counters, and for lists of which not all objects are kept. Some are garbage.
    let fields: Vec<String> = (0..14_000)
        .filter(|at| at % 50 != 49)
        .map(|at| format!("f{at}:n{at}"))
        .collect();
    text += &fields.join(", ");
    for at in 0..14_000 {
        text += &match at {
            // Some beyond the sizes with a counter each, many equal ones.
            0..5000 => format!("\nn{at} app.N{} {}", at % 3, at * 7919 % 13 * 9000),
            _ => format!("\nn{at} app.U 24"),
        };
    }
    let graph = heap(&text).graph;
    let explorer = Explorer::new(graph, Follow::default(), true);
    for sort in [ObjectSort::Retained, ObjectSort::Shallow] {
        for list in [
            ObjectList::All,
            ObjectList::Class("app.N1".to_owned()),
            ObjectList::Class("app.U".to_owned()),
            ObjectList::Dominated(ObjectIndex(0)),
        ] {
            let mut whole = Vec::new();
            loop {
                let mut next = query(list.clone(), sort);
                next.page.offset = whole.len();
                let next = explorer.objects(&next).rows;
                if next.is_empty() {
                    break;
                }
                whole.extend(next);
            }
            let figure = |row: &ObjectRow| match sort {
                ObjectSort::Retained => row.retained.map(Size::total_bytes),
                ObjectSort::Shallow => Some(row.shallow_bytes),
            };
            let id = |row: &ObjectRow| explorer.find(&row.id);
            assert!(whole.windows(2).all(|pair| {
                (figure(&pair[1]), id(&pair[0])) < (figure(&pair[0]), id(&pair[1]))
                    || figure(&pair[1]) < figure(&pair[0])
            }));
            for offset in [0, 1, 99, 250, 4090, 4999, 8191, 8192, 8193, 20_000] {
                let mut part = query(list.clone(), sort);
                part.page = Page::new(offset, 7);
                let part = explorer.objects(&part);
                assert_eq!(part.total as usize, whole.len());
                assert_eq!(
                    part.rows,
                    whole[offset.min(whole.len())..(offset + 7).min(whole.len())]
                );
            }
        }
    }
}

#[test]
fn an_object_tells_its_fields_referrers_path_and_dominators() {
    let (explorer, heap) = explorer();
    let (text, three, gone) = (heap.at("text"), heap.at("three"), heap.at("gone"));
    let facts = explorer.object(text, 100);
    assert_eq!(facts.row.text.as_deref(), Some("hello"));
    assert_eq!(facts.referrers, 3);
    assert_eq!(names(&facts.dominators, &heap), ["one", "list", "registry"]);
    assert_eq!(facts.depth, 3);
    let referrers = explorer.referrers_of(text, Page::new(1, 5));
    let references: Vec<&str> = referrers.rows.iter().map(|row| &*row.reference).collect();
    assert_eq!(
        (referrers.total, references),
        (3, vec!["Node.value", "Object[].[0]"])
    );
    let fields = explorer.fields(three, all());
    assert_eq!(fields.total, 1);
    assert_eq!(fields.rows[0].name.as_deref(), Some("value"));
    assert_eq!(
        fields.rows[0].object.as_ref().map(|o| &*o.name),
        Some("java.lang.Object[]")
    );
    let elements = explorer.fields(heap.at("array"), Page::new(1, 1));
    assert_eq!((elements.total, elements.rows.len()), (3, 1));
    assert_eq!(elements.rows[0].value.as_deref(), Some("null"));
    let path = explorer.path(three, 200);
    let steps: Vec<_> = path
        .steps
        .iter()
        .map(|step| step.reference.as_deref())
        .collect();
    assert_eq!(path.root.as_deref(), Some("system class"));
    assert_eq!(
        steps,
        [
            None,
            Some("app.Registry.LEAKED"),
            Some("List.head"),
            Some("Node.next"),
            Some("Node.next")
        ]
    );
    let ends = explorer.path(three, 1);
    let cut: Vec<u64> = ends.steps.iter().map(|step| step.left_out).collect();
    assert_eq!((ends.length, cut), (5, vec![0, 3]));
    assert_eq!(explorer.object(text, 1).dominators.len(), 1);
    assert_eq!(explorer.path(gone, 200).length, 0);
    assert_eq!(explorer.object(gone, 100).row.retained, None);
}

#[test]
fn a_big_drop_is_where_no_dominated_object_has_half() {
    let (explorer, heap) = explorer();
    let drop = |name| explorer.big_drop(heap.at(name));
    // The node retains 1,032 bytes of the list's 1,492, and itself owns 1,016 of them.
    assert_eq!(drop("registry"), heap.at("three"));
    assert_eq!(drop("array"), heap.at("array"));
    assert_eq!(drop("gone"), heap.at("gone"));
}

#[test]
fn equal_strings_are_found_by_one_of_them() {
    let heap = || {
        heap(
            "
            root app.Root 8 root=sticky_class -> a:a, b:b, c:c, d:d
            a java.lang.String 24 text=\"same\"
            b java.lang.String 24 text=\"Same\"
            c java.lang.String 24 text=\"same\"
            d java.lang.String 24 text=\"unsame\"
        ",
        )
    };
    let names = heap();
    let equal = |of: &str, shows_contents| {
        let explorer = Explorer::new(heap().graph, Follow::default(), shows_contents);
        let found = explorer.search(&SearchQuery {
            list: SearchList::Strings,
            text: SearchText::Of(names.at(of)),
            from: 0,
            limit: 10,
        });
        assert_eq!(found.next, None);
        let ids = found.rows.into_iter().map(|found| found.row.id);
        ids.collect::<Vec<_>>()
    };
    let ids = ["a", "c"].map(|name| names.graph.id(names.at(name)).to_string());
    assert_eq!(equal("a", true), ids);
    assert_eq!(equal("c", true), ids);
    assert_eq!(equal("b", true).len(), 1);
    // Something that is not a string, and hidden texts, are equal to nothing.
    assert!(equal("root", true).is_empty());
    assert!(equal("a", false).is_empty());
}

#[test]
fn a_search_goes_on_where_it_ended() {
    let (explorer, heap) = explorer();
    let search = |list, text: &str, from, limit| {
        explorer.search(&SearchQuery {
            list,
            text: SearchText::Part(text.to_owned()),
            from,
            limit,
        })
    };
    let found = |list, text| {
        let found = search(list, text, 0, 500);
        assert_eq!(found.next, None);
        let rows: Vec<ObjectRow> = found.rows.into_iter().map(|found| found.row).collect();
        names(&rows, &heap)
    };
    assert_eq!(found(SearchList::Strings, ""), ["text", "name"]);
    assert_eq!(found(SearchList::Strings, "REG"), ["name"]);
    assert_eq!(found(SearchList::Arrays, ""), ["array"]);
    assert_eq!(found(SearchList::Arrays, "int"), [""; 0]);
    assert_eq!(found(SearchList::Objects, "node"), ["one", "two", "three"]);
    let first = search(SearchList::Objects, "node", 0, 2);
    assert_eq!((first.rows.len(), first.total), (2, 8));
    let rest = search(SearchList::Objects, "node", first.next.expect("more"), 2);
    assert_eq!((rest.rows.len(), rest.next), (1, None));
    let lengths: Vec<_> = [SearchList::Strings, SearchList::Arrays]
        .iter()
        .map(|&list| search(list, "", 0, 1).rows[0].length)
        .collect();
    assert_eq!(lengths, [Some(5), Some(3)]);
}

#[test]
fn flame_graphs_hold_the_whole_heap() {
    let (explorer, _) = explorer();
    for tree in [FlameTree::Paths, FlameTree::Dominators] {
        let flame = explorer.flame(tree, usize::MAX);
        assert_eq!((flame.left_out, flame.is_folded), (0, false));
        let tops = flame.nodes.iter().filter(|node| node.above.is_none());
        let whole = tops.fold((0, 0), |sum, node| (sum.0 + node.count, sum.1 + node.bytes));
        assert_eq!(whole, (8, 1616), "{tree:?}");
        assert_eq!((flame.count, flame.bytes), whole);
        for (at, node) in flame.nodes.iter().enumerate() {
            let below = flame.nodes.iter();
            let below = below.filter(|other| other.above == Some(at as u32));
            let sum = below.fold((0, 0), |sum, node| (sum.0 + node.count, sum.1 + node.bytes));
            let own = (node.own_count, node.own_bytes);
            assert_eq!((own.0 + sum.0, own.1 + sum.1), (node.count, node.bytes));
            assert!(node.above.is_none_or(|above| above < at as u32));
        }
    }
}

#[test]
fn deep_flame_graphs_are_folded_and_large_ones_cut() {
    let mut list = "root app.Root 8 root=jni_global -> next:n0".to_owned();
    for at in 0..600 {
        list += &format!("\nn{at} app.Node 16 -> next:n{}", (at + 1).min(599));
    }
    let explorer = Explorer::new(heap(&list).graph, Follow::default(), true);
    let flame = explorer.flame(FlameTree::Paths, usize::MAX);
    assert!(flame.is_folded);
    assert_eq!(flame.nodes.len(), 2);
    assert_eq!(flame.nodes[1].own_count, 600);

    let mut wide = "root app.Root 8 root=jni_global -> ".to_owned();
    let fields: Vec<String> = (0..25_000).map(|at| format!("f{at}:n{at}")).collect();
    wide += &fields.join(", ");
    for at in 0..25_000 {
        wide += &format!("\nn{at} app.N{at} {}", 8 + 8 * at);
    }
    let explorer = Explorer::new(heap(&wide).graph, Follow::default(), true);
    let flame = explorer.flame(FlameTree::Paths, usize::MAX);
    assert_eq!(flame.left_out + flame.nodes.len() as u64, 25_001);
    assert_eq!(flame.count, 25_001);
    assert!(flame.nodes.len() <= 20_000 && flame.nodes.len() > 9_000);
    let least = flame.nodes.iter().map(|node| node.bytes).min();
    assert!(least > Some(8 * 10_000), "the largest stay: {least:?}");
}

#[test]
fn hidden_contents_are_in_no_answer() {
    let graph = heap(HEAP).graph;
    let explorer = Explorer::new(graph, Follow::default(), false);
    let heap = heap(HEAP);
    let (text, array) = (heap.at("text"), heap.at("array"));
    assert_eq!(explorer.object(text, 100).row.text, None);
    let fields = explorer.fields(array, all());
    assert!(fields.rows.iter().all(|row| row.value.is_none()));
    let strings = ObjectList::Class("java.lang.String".to_owned());
    let rows = explorer.objects(&query(strings, ObjectSort::Retained)).rows;
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|row| row.text.is_none()));
}

#[test]
fn a_treemap_adds_up() {
    let (explorer, heap) = explorer();
    let map = explorer.treemap(None, 5000);
    assert_eq!(map.cells[0].bytes, 1616);
    assert_eq!(map.cells.len(), 9);
    for most in 1..10 {
        let map = explorer.treemap(None, most);
        assert!(map.cells.len() <= most);
        for (at, cell) in map.cells.iter().enumerate() {
            let below = map.cells.iter().filter(|other| other.above == Some(at));
            let sum: u64 = below.map(|other| other.bytes).sum();
            assert_eq!(
                cell.bytes,
                cell.own_bytes + cell.rest_bytes + sum,
                "{most}: {cell:?}"
            );
            assert!(cell.above.is_none_or(|above| above < at));
        }
    }
    let below = explorer.treemap(Some(heap.at("list")), 3);
    assert_eq!(below.cells[0].bytes, 1492);
}

#[test]
fn everything_is_built_ahead() {
    let (explorer, _) = explorer();
    let stages = Mutex::new(Vec::new());
    explorer.build(|stage| {
        stages.lock().unwrap().push(stage);
        ControlFlow::Continue(())
    });
    let stages = stages.into_inner().unwrap();
    assert_eq!(stages.len(), 5);
    for stage in [
        Stage::Dominators,
        Stage::Classes,
        Stage::Ranking,
        Stage::Referrers,
        Stage::Paths,
    ] {
        assert!(stages.contains(&stage));
    }
}

#[test]
fn indices_are_not_built_after_an_end() {
    let (explorer, _) = explorer();
    let stages = Mutex::new(Vec::new());
    explorer.build(|stage| {
        stages.lock().unwrap().push(stage);
        ControlFlow::Break(())
    });
    assert_eq!(stages.into_inner().unwrap(), [Stage::Dominators]);
}

#[test]
fn lists_are_read_from_either_end() {
    let (explorer, heap) = explorer();
    for sort in [ObjectSort::Retained, ObjectSort::Shallow] {
        for list in [
            ObjectList::All,
            ObjectList::Top,
            ObjectList::Class("app.Node".to_owned()),
        ] {
            let mut query = query(list, sort);
            let mut whole = names(&explorer.objects(&query).rows, &heap);
            whole.reverse();
            query.reverse = true;
            for offset in 0..=whole.len() + 1 {
                query.page = Page::new(offset, 2);
                let part = explorer.objects(&query);
                assert_eq!(part.total, whole.len() as u64);
                let end = (offset + 2).min(whole.len());
                let expected = &whole[offset.min(end)..end];
                assert_eq!(names(&part.rows, &heap), expected, "{query:?}");
            }
        }
    }
}

#[test]
fn classes_of_another_run_are_found_without_their_addresses() {
    let heap = heap(
        "
        root app.Root 8 root=sticky_class -> a:a, b:b, c:c
        a app.Run$$Lambda/0x0000000800c03800 16
        b app.Run$$Lambda/0x0000000800c03c00 32
        c app.Other$$Lambda/0x0000000800c04000 64
    ",
    );
    let explorer = Explorer::new(heap.graph, Follow::default(), true);
    let list = |name: &str| {
        let query = query(ObjectList::Class(name.to_owned()), ObjectSort::Retained);
        let rows = explorer.objects(&query).rows;
        rows.iter().map(|row| row.shallow_bytes).collect::<Vec<_>>()
    };
    assert_eq!(list("app.Run$$Lambda"), [32, 16]);
    assert_eq!(list("app.Run$$Lambda/0x0000000800c03800"), [16]);
    assert!(list("app.Run").is_empty());
}

#[test]
fn objects_are_found_by_their_ids() {
    let (explorer, heap) = explorer();
    let id = heap.graph.id(heap.at("list"));
    assert_eq!(explorer.find(&id.to_string()), Some(heap.at("list")));
    assert_eq!(explorer.find(&format!("{:x}", id.0)), Some(heap.at("list")));
    assert_eq!(explorer.find("0xfffffff1"), None);
    assert_eq!(explorer.find("list"), None);
}

#[test]
fn the_largest_objects_are_the_first_of_the_lists() {
    let (explorer, _) = explorer();
    let classes = ["app.Node".to_owned(), "app.Nothing".to_owned()];
    for most in 0..9 {
        let found = explorer.largest(most, &classes, most);
        let first = |list| {
            let mut query = query(list, ObjectSort::Retained);
            query.page = Page::new(0, most);
            explorer.objects(&query)
        };
        assert_eq!(found.all, first(ObjectList::All), "{most}");
        for (name, rows) in found.of_class {
            assert_eq!(rows, first(ObjectList::Class(name)), "{most}");
        }
    }
}

#[test]
fn equal_objects_come_in_the_order_of_their_ids_on_every_page() {
    let mut text = "root app.List 8 root=jni_global -> array:array\n".to_owned();
    let names: Vec<String> = (0..5000).map(|at| format!("n{at}")).collect();
    let backwards: Vec<&str> = names.iter().rev().map(String::as_str).collect();
    text += &format!("array java.lang.Object[] 8 -> {}\n", backwards.join(", "));
    for name in &names {
        text += &format!("{name} app.Node 16\n");
    }
    let known = heap(&text);
    let list = ObjectList::Dominated(known.at("array"));
    let explorer = Explorer::new(known.graph, Follow::default(), true);
    let mut query = query(list, ObjectSort::Retained);
    let mut rows = Vec::new();
    while rows.len() < 5000 {
        query.page = Page::new(rows.len(), 500);
        let page = explorer.objects(&query);
        assert_eq!((page.total, page.rows.len()), (5000, 500));
        rows.extend(page.rows.into_iter().map(|row| explorer.find(&row.id)));
    }
    assert!(rows.is_sorted());
    query.page = Page::new(0, 2);
    query.reverse = true;
    let last = explorer.objects(&query);
    assert_eq!(explorer.find(&last.rows[0].id), rows[4999]);
}

#[test]
fn holders_of_a_class_lead_to_roots() {
    let (explorer, _) = explorer();
    let row = |above, name: &str, count, root: Option<&str>| HolderRow {
        above,
        name: name.to_owned(),
        count,
        root: root.map(str::to_owned),
    };
    let of_string = [
        row(None, "Object[].[*]", 1, None),
        row(None, "app.Registry.NAME", 1, Some("system class")),
        row(None, "Node.value", 2, None),
    ];
    let found = explorer.holders("java.lang.String");
    assert_eq!(found.rows[..3], of_string, "{found:#?}");
    assert_eq!(found.total, found.rows.len() as u64);
    assert_eq!(explorer.holders("app.Nothing").total, 0);
    // Several at once have the same.
    let names = ["app.Node", "java.lang.String", "app.Nothing", "app.Node"];
    let names = names.repeat(3).into_iter().map(str::to_owned);
    let names: Vec<String> = names.collect();
    let several = explorer.holders_of(explorer.kinded_referrers(), &names);
    for (name, rows) in several {
        assert_eq!(rows, explorer.holders(&name), "{name}");
    }
}
