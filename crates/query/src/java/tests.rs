//! Tables of small heaps, and query plans of documented joins.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::fields::{original_name, recorded_name};
use super::{JavaHeapFacts, JavaHeaps};
use crate::{Catalog, Database, Processes, Sink, TableError, Value, flamegraph, modules, native};
use heaptap_analyze::dsl;
use heaptap_model::heap_graph::{self, ClassIndex, Field, Follow, HeapGraph, OutOfMemory};

/// A cache in a static field, and garbage.
const HEAP: &str = "
    cache java.lang.Class<lab.Cache> 64 root=STICKY_CLASS -> ENTRIES:list
    list java.util.ArrayList 24 -> elementData:array
    array java.lang.Object[] 40 -> one, other, null
    one lab.Entry 16 +1000 -> key:text
    other lab.Entry 16 -> key:text
    text java.lang.String 24
    lost lab.Entry 16 -> key:text
";

struct Heaps(Vec<JavaHeapFacts>, Vec<Arc<HeapGraph>>);

impl JavaHeaps for Heaps {
    fn list(&self) -> &[JavaHeapFacts] {
        &self.0
    }

    fn read(&self, at: usize) -> Result<Arc<HeapGraph>, TableError> {
        Ok(Arc::clone(&self.1[at]))
    }
}

fn database(texts: &[&str]) -> Database {
    let times: Vec<u64> = (1..=texts.len() as u64).map(|at| 10 * at).collect();
    database_at(texts, &times)
}

fn database_at(texts: &[&str], times: &[u64]) -> Database {
    let facts = |&time_ns: &u64| JavaHeapFacts {
        pid: Some(7),
        process: "lab".to_owned(),
        time_ns,
        ..JavaHeapFacts::default()
    };
    let list = times.iter().map(facts).collect();
    let graphs = texts.iter().map(|text| dsl::heap(text).graph);
    database_of(list, graphs.collect())
}

fn database_of(list: Vec<JavaHeapFacts>, graphs: Vec<HeapGraph>) -> Database {
    let graphs = graphs.into_iter().map(Arc::new).collect();
    let heaps: Arc<dyn JavaHeaps> = Arc::new(Heaps(list, graphs));
    let mut processes = Processes::default();
    processes.enter_named(7, "lab");
    let processes = Arc::new(processes);
    let mut catalog = Catalog::default();
    let native = Arc::new(native::NativeHeaps::default());
    native::add(&mut catalog, &native, &processes);
    let graphs = super::add(&mut catalog, &heaps, &processes);
    super::add_callsites(&mut catalog, &graphs, &native);
    flamegraph::add(&mut catalog, Some(&native), Some(&graphs), &processes);
    modules::add(&mut catalog, &native);
    Database::open(catalog).unwrap()
}

#[derive(Default)]
struct Lines(Vec<String>);

impl Sink for Lines {
    fn columns(&mut self, _: &[&str]) -> ControlFlow<()> {
        self.0.clear();
        ControlFlow::Continue(())
    }

    fn row(&mut self, row: &[Value<'_>]) -> ControlFlow<()> {
        let cell = |value: &Value<'_>| match value {
            Value::Null => "-".to_owned(),
            Value::Int(number) => number.to_string(),
            Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
            other => format!("{other:?}"),
        };
        let cells: Vec<String> = row.iter().map(cell).collect();
        self.0.push(cells.join("|"));
        ControlFlow::Continue(())
    }

    fn end(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

fn ask(database: &mut Database, sql: &str) -> Vec<String> {
    let mut lines = Lines::default();
    let done = database.run(sql, &mut lines);
    assert!(
        done.unwrap_or_else(|error| panic!("{sql}: {error}"))
            .is_continue()
    );
    lines.0
}

#[test]
fn times_beyond_what_a_column_holds_are_found_where_they_are_shown() {
    let mut database = database_at(&[HEAP, HEAP], &[10, u64::MAX]);
    let rows = ask(
        &mut database,
        "SELECT graph_sample_ts, count(*) FROM heap_graph_object WHERE graph_sample_ts < 0
         GROUP BY 1",
    );
    assert_eq!(rows, ["-1|7"]);
    let ordered = "SELECT DISTINCT graph_sample_ts FROM heap_graph_object ORDER BY 1";
    assert_eq!(ask(&mut database, ordered), ["-1", "10"]);
}

#[test]
fn focus_keeps_the_figures_of_frames_above_a_match() {
    let mut database = database(&["
        root RootNode 100 root=JAVA_FRAME -> left:l0, right:r0
        l0 LeftChild0 200 -> next:l1
        l1 LeftChild1 400
        r0 RightChild0 50
    "]);
    let focus = "SELECT depth, name, count, cumulative_count, size, cumulative_size
                 FROM experimental_flamegraph('graph', 10, NULL, 1, NULL, 'left')";
    let expected = [
        "0|RootNode [ROOT_JAVA_FRAME]|1|3|100|700",
        "1|LeftChild0|1|2|200|600",
        "2|LeftChild1|1|1|400|400",
    ];
    assert_eq!(ask(&mut database, focus), expected);
}

#[test]
fn a_truncated_graph_without_roots_has_one_frame() {
    let mut graph = dsl::heap("a Thing 8").graph;
    graph.facts.losses.truncated = true;
    graph.root_unreachable(Follow::default());
    let facts = JavaHeapFacts {
        pid: Some(7),
        time_ns: 10,
        ..JavaHeapFacts::default()
    };
    let mut database = database_of(vec![facts], vec![graph]);
    let flamegraph = "SELECT name, map_name, cumulative_size
                      FROM experimental_flamegraph('graph', 10, NULL, 1, NULL, NULL)";
    let rows = ask(&mut database, flamegraph);
    assert_eq!(
        rows,
        ["ERROR: INCOMPLETE GRAPH (try increasing buffer size)|JAVA|1"]
    );
}

#[test]
fn errors_without_a_graph_have_a_row_but_no_statistics() {
    let facts = |time_ns, is_out_of_memory: bool| JavaHeapFacts {
        pid: Some(7),
        time_ns,
        reason: is_out_of_memory.then(|| "OOME".to_owned()),
        out_of_memory: is_out_of_memory.then(OutOfMemory::default),
        is_out_of_memory,
        ..JavaHeapFacts::default()
    };
    let list = vec![facts(10, false), facts(20, true)];
    let graphs = vec![dsl::heap(HEAP).graph, dsl::heap("").graph];
    let mut database = database_of(list, graphs);
    let graphs = ask(&mut database, "SELECT * FROM heap_graph");
    assert_eq!(graphs, ["0|10|1|-|-|0", "1|20|1|OOME|-|0"]);
    let thrown = ask(&mut database, "SELECT * FROM heap_graph_thread_callsite");
    assert_eq!(thrown, ["0|1|1|-"]);
    let stats = "SELECT graph_sample_ts, is_out_of_memory_error FROM android_heap_graph_stats";
    assert_eq!(ask(&mut database, stats), ["10|-"]);
}

#[test]
fn references_are_found_by_their_targets() {
    let weak = "
        a lab.A 16 root=STICKY_CLASS -> x:b, y:null, z:b
        w java.lang.ref.WeakReference 24 root=STICKY_CLASS -> java.lang.ref.Reference.referent:b, q:a
        b lab.B 8 -> back:a
    ";
    let mut database = database(&[HEAP, weak]);
    let same = "SELECT o.id,
                  (SELECT group_concat(r.id) FROM heap_graph_reference r WHERE r.owned_id = o.id)
                  IS (SELECT group_concat(r.id) FROM heap_graph_reference r
                      WHERE +r.owned_id = o.id) AS same
                FROM heap_graph_object o";
    let rows = ask(&mut database, same);
    assert_eq!(rows.len(), 10);
    assert!(rows.iter().all(|row| row.ends_with("|1")), "{rows:?}");
    let found = ask(
        &mut database,
        "SELECT count(*) > 3 FROM heap_graph_reference r
         JOIN heap_graph_object o ON r.owned_id = o.id
         JOIN heap_graph_class c ON c.id = o.type_id WHERE c.name IN ('lab.A', 'lab.B')",
    );
    assert_eq!(found, ["1"]);
}

#[test]
fn objects_say_what_they_retain_and_how_a_root_reaches_them() {
    let mut database = database(&[HEAP]);
    let rows = ask(
        &mut database,
        "SELECT class, shallow_bytes, native_bytes, retained_bytes, retained_count, distance, root
         FROM heaptap_java_object ORDER BY retained_bytes DESC, class, distance",
    );
    let expected = [
        "class lab.Cache|64|0|184|6|0|system class",
        "java.util.ArrayList|24|0|120|5|1|-",
        "java.lang.Object[]|40|0|96|4|2|-",
        "java.lang.String|24|0|24|1|4|-",
        "lab.Entry|16|1000|16|1|3|-",
        "lab.Entry|16|0|16|1|3|-",
        "lab.Entry|16|0|0|0|-|-",
    ];
    assert_eq!(rows.len(), expected.len(), "{rows:#?}");
    for row in expected {
        assert!(rows.iter().any(|line| line == row), "{row} in {rows:#?}");
    }
    let path = ask(
        &mut database,
        "SELECT path FROM heaptap_java_object WHERE class = 'java.lang.String'",
    );
    assert_eq!(
        path,
        [
            "system class: class lab.Cache .ENTRIES-> java.util.ArrayList .elementData-> \
          java.lang.Object[] [0]-> lab.Entry .key-> java.lang.String"
        ]
    );
    let steps = ask(
        &mut database,
        "SELECT p.class, p.field, p.root FROM heap_graph_class c
         JOIN heap_graph_object o ON o.type_id = c.id
         JOIN heaptap_java_path(o.id) p WHERE c.name = 'java.util.ArrayList'",
    );
    assert_eq!(
        steps,
        [
            "class lab.Cache|-|system class",
            "java.util.ArrayList|lab.Cache.ENTRIES|-",
        ]
    );
    let below = ask(
        &mut database,
        "SELECT o.class FROM heaptap_java_object d JOIN heaptap_java_object o
         ON o.dominator_id = d.id WHERE d.class = 'java.util.ArrayList'",
    );
    assert_eq!(below, ["java.lang.Object[]"]);
}

#[test]
fn classes_tell_garbage_apart() {
    let rows = ask(
        &mut database(&[HEAP]),
        "SELECT class, package, count, shallow_bytes, native_bytes, retained_bytes, garbage_count,
                garbage_bytes
         FROM heaptap_java_class WHERE class = 'lab.Entry'",
    );
    assert_eq!(rows, ["lab.Entry|lab|2|32|1000|32|1|16"]);
}

#[test]
fn dumps_follow_each_other_and_refer_to_their_own() {
    let second = "
        root lab.Root 8 root=JNI_GLOBAL -> next:leaf
        leaf lab.Leaf 8
    ";
    let mut database = database(&[HEAP, second]);
    let counts = ask(
        &mut database,
        "SELECT graph_sample_ts, count(), min(id), max(id) FROM heap_graph_object
         GROUP BY 1 ORDER BY 1",
    );
    assert_eq!(counts, ["10|7|0|6", "20|2|7|8"]);
    let references = ask(
        &mut database,
        "SELECT owner.graph_sample_ts, c.name, owned.graph_sample_ts
         FROM heap_graph_object owner
         JOIN heap_graph_reference r ON r.reference_set_id = owner.reference_set_id
         JOIN heap_graph_object owned ON r.owned_id = owned.id
         JOIN heap_graph_class c ON owned.type_id = c.id
         WHERE owner.graph_sample_ts = 20",
    );
    assert_eq!(references, ["20|lab.Leaf|20"]);
    let held = ask(
        &mut database,
        "SELECT c.name FROM heap_graph_reference r
         JOIN heap_graph_object o ON o.id = r.owner_id
         JOIN heap_graph_class c ON c.id = o.type_id
         WHERE r.owned_id = (SELECT o.id FROM heap_graph_object o JOIN heap_graph_class c
                             ON c.id = o.type_id WHERE c.name = 'lab.Leaf')",
    );
    assert_eq!(held, ["lab.Root"]);
    let trees = ask(
        &mut database,
        "SELECT graph_sample_ts, name FROM android_heap_graph_class_summary_tree t
         WHERE parent_id IS NULL ORDER BY 1",
    );
    assert_eq!(trees, ["10|java.lang.Class<lab.Cache>", "20|lab.Root"]);
    let stats = ask(
        &mut database,
        "SELECT graph_sample_ts, total_obj_count, reachable_obj_count, total_heap_size
         FROM android_heap_graph_stats ORDER BY 1",
    );
    assert_eq!(stats, ["10|7|6|200", "20|2|2|16"]);
    let next = ask(
        &mut database,
        "SELECT count() FROM heap_graph_object WHERE id IN (-1, 9, 100000000000)",
    );
    assert_eq!(next, ["0"]);
}

#[test]
fn documented_joins_never_scan_in_the_inner_loop() {
    let joins = [
        "select c.name, sum(o.self_size)
           from heap_graph_object o join heap_graph_class c on (o.type_id = c.id)
           where reachable = 1 group by 1 order by 2 desc",
        "SELECT c_owned.name FROM heap_graph_object AS o_owner
           JOIN heap_graph_class AS c_owner ON o_owner.type_id = c_owner.id
           JOIN heap_graph_reference AS r ON r.owner_id = o_owner.id
           JOIN heap_graph_object AS o_owned ON r.owned_id = o_owned.id
           JOIN heap_graph_class AS c_owned ON o_owned.type_id = c_owned.id
           WHERE c_owner.name = 'lab.Entry' AND c_owned.name = 'java.lang.String'",
        "SELECT * FROM heap_graph_object o
           JOIN heap_graph_reference r USING (reference_set_id)
           JOIN heap_graph_object owned ON owned.id = r.owned_id",
        "SELECT * FROM heap_graph_reference r JOIN heap_graph_object owner ON owner.id = r.owner_id
           WHERE r.owned_id = 3",
        "WITH suspect_objects AS (
           SELECT o.id FROM heap_graph_object o JOIN heap_graph_class c ON o.type_id = c.id
           WHERE o.upid = 1 AND o.graph_sample_ts = 10 AND c.name = 'lab.Entry')
         SELECT d.id FROM heap_graph_dominator_tree d JOIN suspect_objects s USING (id)",
        "SELECT * FROM heap_graph_dominator_tree above
           JOIN heap_graph_dominator_tree d ON d.idom_id = above.id",
        "SELECT * FROM heap_graph_class c JOIN heap_graph_class s ON c.superclass_id = s.id",
        "WITH RECURSIVE up (id) AS (
           SELECT 3 UNION ALL SELECT d.idom_id FROM up JOIN heap_graph_dominator_tree d USING (id)
           WHERE d.idom_id IS NOT NULL)
         SELECT c.name FROM up JOIN heap_graph_object o USING (id)
           JOIN heap_graph_class c ON c.id = o.type_id",
        "SELECT * FROM android_heap_graph_class_summary_tree t
           JOIN android_heap_graph_class_summary_tree p ON t.parent_id = p.id",
    ];
    let mut database = database(&[HEAP]);
    for sql in joins {
        let plan = ask(&mut database, &format!("EXPLAIN QUERY PLAN {sql}"));
        let scans: Vec<&String> = plan
            .iter()
            .filter(|line| line.contains("VIRTUAL TABLE INDEX 0:"))
            .collect();
        // The outermost loop is allowed to scan all rows.
        assert!(scans.len() <= 1, "{sql}: {plan:#?}");
        // SQLite is allowed to index temporary results of the query.
        let mut automatic = plan.iter().filter(|line| line.contains("AUTOMATIC"));
        assert!(
            automatic.all(|line| line.contains("SEARCH up ")),
            "{sql}: {plan:#?}"
        );
    }
}

#[test]
fn the_path_to_the_end_of_a_long_list_is_cut_in_a_line_and_whole_in_steps() {
    let mut list = String::from("n0 lab.Node 8 root=JNI_GLOBAL -> next:n1\n");
    for at in 1..100 {
        list += &format!("n{at} lab.Node 8 -> next:n{}\n", at + 1);
    }
    list += "n100 lab.Last 8\n";
    let mut database = database(&[&list]);
    let rows = ask(
        &mut database,
        "SELECT distance, path, (SELECT count() FROM heaptap_java_path(o.id))
         FROM heaptap_java_object o WHERE class = 'lab.Last'",
    );
    let [row] = &rows[..] else { panic!("{rows:?}") };
    assert!(
        row.starts_with("100|JNI global: lab.Node … 60 references … .next-> lab.Node"),
        "{row}"
    );
    assert!(row.ends_with(".next-> lab.Last|101"), "{row}");
    assert_eq!(row.matches("->").count(), 40);
}

#[test]
fn fields_have_recorded_and_original_names() {
    let mut heap = dsl::heap("a x.A 16 -> b:c\nc x.C 16\n").graph;
    let class = |name: &str| heap.classes().iter().position(|class| class.name == name);
    let declared_in = class("x.A").map(|at| ClassIndex(at as u32));
    let owner = heap.objects().next().unwrap();
    let mut field = Field {
        name: Some("cache"),
        element: None,
        type_name: None,
        declared_in,
        is_static: false,
        recorded: Some("b"),
        value: heap_graph::Value::Null,
    };
    let names = |heap: &HeapGraph, field: &Field<'_>| {
        (
            recorded_name(heap, owner, field),
            original_name(heap, owner, field),
        )
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(names(&heap, &field), (some("x.A.b"), some("x.A.cache")));
    heap.classes_mut()[declared_in.unwrap().at()].deobfuscated = some("lab.Cache");
    assert_eq!(
        names(&heap, &field),
        (some("x.A.b"), some("lab.Cache.cache"))
    );
    (field.name, field.recorded) = (Some("b"), None);
    assert_eq!(names(&heap, &field), (some("x.A.b"), some("lab.Cache.b")));
    field.declared_in = None;
    assert_eq!(names(&heap, &field), (some("b"), None));
}

/// A cache of many objects in one array, with weak references.
fn wide_heap(count: usize) -> String {
    let mut text =
        String::from("cache java.lang.Class<lab.Cache> 64 root=STICKY_CLASS -> LIST:a\n");
    let all: Vec<String> = (0..count).map(|at| format!("o{at}")).collect();
    text += &format!("a java.lang.Object[] 40 -> {}\n", all.join(", "));
    for at in 0..count {
        let class = match at % 10 {
            0 => "java.lang.ref.WeakReference",
            _ => "lab.Entry",
        };
        text += &format!("o{at} {class} 16\n");
    }
    text
}

/// Joins of two tables take steps in proportion to their rows, in both orders.
#[test]
fn joins_take_steps_in_proportion_to_rows() {
    let steps = |database: &Database, sql: &str| {
        let mut statement = database.connection().prepare(sql).unwrap();
        statement.query_row([], |_| Ok(())).unwrap();
        statement.get_status(rusqlite::StatementStatus::VmStep)
    };
    let (one, four) = (database(&[&wide_heap(200)]), database(&[&wide_heap(800)]));
    let joins = [
        ("heap_graph_object", "heap_graph_class", "a.type_id = b.id"),
        (
            "heap_graph_object",
            "heap_graph_reference",
            "b.owner_id = a.id",
        ),
        (
            "heap_graph_object",
            "heap_graph_reference",
            "b.owned_id = a.id",
        ),
        (
            "heap_graph_object",
            "heap_graph_reference",
            "a.reference_set_id = b.reference_set_id",
        ),
        (
            "heap_graph_object",
            "heap_graph_primitive",
            "a.object_data_id = b.field_set_id",
        ),
        ("heap_graph_object", "heaptap_java_object", "a.id = b.id"),
        (
            "heap_graph_object",
            "heap_graph_dominator_tree",
            "a.id = b.id",
        ),
        (
            "heap_graph_dominator_tree",
            "heap_graph_dominator_tree",
            "a.idom_id = b.id",
        ),
        (
            "heaptap_java_object",
            "heaptap_java_object",
            "a.path = b.path AND a.id < b.id",
        ),
        ("heap_graph_reference", "_excluded_refs", "a.id = b.id"),
        (
            "heap_graph_reference",
            "heap_graph_reference",
            "a.owned_id = b.owner_id",
        ),
    ];
    for (a, b, on) in joins {
        for from in [
            format!("{a} a JOIN {b} b"),
            format!("{b} b JOIN {a} a"),
            format!("{a} a LEFT JOIN {b} b"),
            format!("{b} b LEFT JOIN {a} a"),
        ] {
            let sql = format!("SELECT count(*) FROM {from} ON {on}");
            let (few, many) = (steps(&one, &sql), steps(&four, &sql));
            assert!(many < 6 * few, "{sql}: {few} steps, then {many}");
        }
    }
}
