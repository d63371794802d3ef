//! The dumps of the fixtures and the expected answers next to them; with HEAPTAP_HPROF=DIR also
//! those below it, as separate tests.

use crate::hprof_oracles::oracle::{Counts, differences, of_graph, of_histogram, of_jmap};
use crate::judge;
use android_hprof::{Options, histogram, read};
use heaptap_analyze::filter::Filter;
use heaptap_analyze::paths::Ways;
use heaptap_analyze::paths::{Link, Links};
use heaptap_analyze::{largest, leaks};
use heaptap_input::open_hprof;
use heaptap_model::heap_graph::{
    BasicType, ClassKind, Dominators, Follow, HeapGraph, ObjectId, ObjectIndex, ShortestPaths,
    SizeModel,
};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/hprof")
}

/// The same for the fixtures and for a directory outside the repository.
macro_rules! of_dumps {
    ($($of_fixtures:ident, $of_given:ident: $check:ident;)*) => { $(
        #[test]
        fn $of_fixtures() {
            $check(&fixtures());
        }

        #[test]
        #[ignore = "needs HEAPTAP_HPROF, a folder of dumps with answers"]
        fn $of_given() {
            $check(&judge::given("HEAPTAP_HPROF"));
        }
    )* };
}

of_dumps! {
    sizes_are_those_of_jmap, given_hprof_sizes_are_those_of_jmap: check_jmap;
    counts_are_those_of_hprof_slurp, given_hprof_counts_are_those_of_hprof_slurp: check_slurp;
    retained_sizes_are_those_of_visualvm, given_hprof_retained_sizes_are_those_of_visualvm:
        check_visualvm;
    what_was_planted_in_android_dumps_is_found, given_hprof_what_was_planted_is_found:
        check_planted;
}

fn graph_of(path: &Path, sizes: Option<SizeModel>) -> HeapGraph {
    let input = open_hprof(path).expect("it is an HPROF");
    let options = Options {
        sizes,
        ..Options::default()
    };
    let quick = histogram(&input.bytes, &options).expect("it has a header");
    let graph = read(input.bytes, &options).expect("it has a header");
    assert_eq!(
        differences(&of_histogram(&quick), &of_graph(&graph)),
        [""; 0]
    );
    graph
}

/// Returns all files of the directory with that ending, without the ending.
fn stems(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).expect("it is a folder") {
            let path = entry.expect("it can be read").path();
            let name = path.to_string_lossy().into_owned();
            match name.strip_suffix(ending) {
                _ if path.is_dir() => directories.push(path),
                Some(stem) => found.push(PathBuf::from(stem)),
                None => {}
            }
        }
    }
    found.sort();
    found
}

/// Returns the dump of an answer.
fn dump_of(stem: &Path) -> Option<PathBuf> {
    let endings = [".hprof", ".hprof.gz", ".hprof.zst", ".bin", ".hprof.bz2"];
    let mut paths = endings
        .map(|e| PathBuf::from(stem.to_string_lossy().into_owned() + e))
        .into_iter();
    paths.find(|path| path.exists())
}

fn beside(stem: &Path, ending: &str) -> String {
    let path = stem.to_string_lossy().into_owned() + ending;
    std::fs::read_to_string(path).expect("it can be read")
}

fn check_jmap(directory: &Path) {
    // Created or dropped by jmap itself between its count and its dump.
    let moving = [
        "int[]",
        "jdk.internal.ref.CleanerImpl$PhantomCleanableRef",
        "java.lang.invoke.MethodHandleNatives$CallSiteContext",
    ];
    let all = stems(directory, ".histo.txt");
    assert!(!all.is_empty());
    for stem in all {
        let graph = graph_of(&dump_of(&stem).expect("its dump"), None);
        assert_eq!(graph.facts.sizes, SizeModel::Hotspot);
        let mut ours = of_graph(&graph);
        let mut theirs = of_jmap(&beside(&stem, ".histo.txt"));
        for name in moving {
            ours.remove(name);
            theirs.remove(name);
        }
        assert_eq!(differences(&ours, &theirs), [""; 0], "{}", stem.display());
    }
}

/// Sizes as defined by hprof-slurp: 16 bytes, plus the fields of each class of the hierarchy
/// rounded up to 8; references have the width of ids.
fn slurp_bytes(graph: &HeapGraph, object: ObjectIndex, id_bytes: u64) -> u64 {
    let class = graph.class_of(object);
    if graph.class(class).kind == ClassKind::Array {
        let values = graph.contents().primitive_array(graph, object);
        let bytes = match values {
            Some(values) => u64::from(values.length) * values.element.bytes(8) as u64,
            None => {
                let mut count = 0;
                graph.contents().fields(graph, object, &mut |_| {
                    count += 1;
                    std::ops::ControlFlow::Continue(())
                });
                count * id_bytes
            }
        };
        return (16 + bytes).next_multiple_of(8);
    }
    let levels = graph.ancestry(class).map(|class| {
        let fields = graph.class(class).fields.iter();
        let widths = fields.map(|field| match field.basic {
            Some(BasicType::Object) | None => id_bytes,
            Some(basic) => basic.bytes(8) as u64,
        });
        widths.sum::<u64>().next_multiple_of(8)
    });
    16 + levels.sum::<u64>()
}

/// Sizes as printed by hprof-slurp.
fn slurp_words(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["bytes", "KiB", "MiB", "GiB"] {
        if value < 1024.0 {
            return format!("{value:.2}{unit}");
        }
        value /= 1024.0;
    }
    format!("{value:.2}TiB")
}

fn check_slurp(directory: &Path) {
    let all = stems(directory, ".slurp.txt");
    assert!(!all.is_empty());
    for stem in all {
        let graph = graph_of(&dump_of(&stem).expect("its dump"), None);
        let mut ours = Counts::new();
        for object in graph.objects() {
            let row = ours
                .entry(graph.class(graph.class_of(object)).name.clone())
                .or_default();
            row.0 += 1;
            row.1 += slurp_bytes(&graph, object, 8);
        }
        let text = beside(&stem, ".slurp.txt");
        let mut compared = 0;
        for line in text.lines().filter(|line| line.starts_with('|')) {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let [total, objects, _, class] = cells[..] else {
                continue;
            };
            let Ok(objects) = objects.parse::<u64>() else {
                continue;
            };
            let &(count, bytes) = ours.get(class).expect("the class is there");
            // It counts mirrors of primitives as instances, but no other class objects.
            if class != "java.lang.Class" {
                assert_eq!(
                    (count, slurp_words(bytes).as_str()),
                    (objects, total),
                    "{class}"
                );
                compared += 1;
            }
        }
        assert!(compared > 20, "{compared} rows of {}", stem.display());
    }
}

fn check_visualvm(directory: &Path) {
    let dumps = stems(directory, ".visualvm.tsv").into_iter();
    let mut all = dumps
        .map(|stem| (dump_of(&stem).expect("its dump"), stem))
        .collect::<Vec<_>>();
    // heaptap does not support bzip2.
    all.retain(|(dump, _)| dump.extension().is_none_or(|ending| ending != "bz2"));
    assert!(!all.is_empty());
    for (dump, stem) in all {
        let graph = graph_of(&dump, None);
        let text = beside(&stem, ".visualvm.tsv");
        let ours = of_graph(&graph);
        let mut section = "";
        let mut compared = 0;
        let mut retained: BTreeMap<(&str, u64), i64> = BTreeMap::new();
        for line in text.lines() {
            if let Some(title) = line.strip_prefix("## ") {
                section = title;
                continue;
            }
            let cells: Vec<&str> = line.split('\t').collect();
            if let ([class, objects, ..], true) = (&cells[..], section.starts_with("class")) {
                let objects: u64 = objects.parse().expect("a number");
                let name = class.split(['+']).next().unwrap_or(class);
                if *class == name && *class != "java.lang.Class" {
                    let count = ours.get(*class).map(|row| row.0);
                    assert_eq!(count, Some(objects), "{class} in {}", stem.display());
                    compared += 1;
                }
            }
            if let ([class, _, bytes], true) = (&cells[..], section.starts_with("biggest")) {
                let bytes: u64 = bytes.parse().expect("a number");
                *retained.entry((class, bytes)).or_default() += 1;
            }
        }
        assert!(compared > 15, "{compared} rows of {}", stem.display());
        if graph.facts.sizes == SizeModel::Hotspot && stem.to_string_lossy().contains("leaklab") {
            let dominators = Dominators::compute(&graph, Follow::default());
            for object in graph.objects() {
                let class = graph.class(graph.class_of(object)).name.as_str();
                let key = (class, dominators.retained_bytes(object));
                retained.entry(key).and_modify(|left| *left -= 1);
            }
            // Class objects have a fixed size there.
            retained.retain(|(class, _), left| *class != "java.lang.Class" && *left > 0);
            assert!(retained.is_empty(), "not found: {retained:?}");
        }
    }
}

fn check_planted(directory: &Path) {
    let all = stems(directory, ".expected.json");
    assert!(!all.is_empty());
    for stem in all {
        let expected = beside(&stem, ".expected.json");
        let expected: serde_json::Value = serde_json::from_str(&expected).expect("JSON");
        let graph = graph_of(&dump_of(&stem).expect("its dump"), Some(SizeModel::Dump));
        assert_eq!(graph.facts.losses.malformed, 0);
        assert!(!graph.facts.losses.truncated);
        let ours = of_graph(&graph);
        let sizes = &expected["instance_size_by_class"];
        for (class, count) in expected["instances_by_class"].as_object().expect("a table") {
            let (objects, bytes) = ours[class];
            assert_eq!(Some(objects), count.as_u64(), "{class}");
            if !class.ends_with("[]") {
                let each = sizes[class].as_u64().expect("a size");
                assert_eq!(bytes, objects * each, "{class}");
            }
        }
        let classes = ours["java.lang.Class"].0;
        assert_eq!(Some(classes), expected["classes"].as_u64());
        let native: u64 = graph.natives().iter().map(|native| native.1).sum();
        assert_eq!(Some(native), expected["registered_native_bytes"].as_u64());
        let find = |key: &str| {
            let id = expected[key].as_str().and_then(|id| id.strip_prefix("0x"));
            let id = u64::from_str_radix(id.expect("an id"), 16).expect("an id");
            graph.find(ObjectId(id)).expect("it is there")
        };
        let reached = |object, follow| Dominators::compute(&graph, follow).is_reachable(object);
        assert!(!reached(find("weak_only"), Follow::default()));
        assert!(reached(find("weak_only"), Follow::ALL));
        assert!(!reached(find("soft_only"), Follow::STRONG));
        assert!(reached(find("soft_only"), Follow::default()));
        let dominators = Dominators::compute(&graph, Follow::default());
        let chain_bytes = sizes["a.b"].as_u64().expect("a size");
        let depth = expected["chain_depth"].as_u64().expect("a number");
        let whole = graph
            .objects()
            .filter(|&object| dominators.retained_bytes(object) == depth * chain_bytes);
        assert_eq!(whole.count(), 1, "the head of the chain");
        let garbage = graph.objects().filter(|&object| {
            graph.class(graph.class_of(object)).name == "a.b"
                && !Dominators::is_reachable(&dominators, object)
        });
        let unreachable = expected["unreachable_instances_of_a_b"].as_u64();
        // Those, objects that are only weakly referenced or wait for a finalizer, and roots of tag
        // 0x90, which are unreachable by definition.
        assert_eq!(Some(garbage.count() as u64), unreachable.map(|n| n + 3));
        let text = &expected["duplicate_string"];
        let equal = graph.objects().filter(|&object| {
            graph.contents().string(&graph, object).as_deref() == text["value"].as_str()
        });
        assert_eq!(Some(equal.count() as u64), text["copies"].as_u64());
    }
}

/// The Dialer of Android 4.4, a test dump of AOSP's perflib: the expectations of perflib's own
/// tests, and its leak.
#[test]
#[ignore = "needs HEAPTAP_HPROF, a folder of dumps with answers"]
fn given_hprof_of_the_dialer_holds_what_perflib_knows() {
    let dump = judge::given("HEAPTAP_HPROF").join("perflib/dialer.android-hprof");
    let graph = graph_of(&dump, None);
    assert_eq!(graph.facts.sizes, SizeModel::Dump);
    let dominators = Dominators::compute(&graph, Follow::default());
    // perflib counts the 1,296 arrays of `$staticOverhead` as objects; here their bytes belong to
    // their classes.
    let (overhead, overhead_bytes) = (1_296, 417_744);
    let objects = graph
        .objects()
        .filter(|&o| !graph.is_placeholder(o))
        .count() as u64;
    assert_eq!(objects, 43_687 - overhead);
    assert_eq!(dominators.total().count, 42_868 - overhead);
    let arrays = of_graph(&graph)["byte[]"];
    assert_eq!(arrays, (1_406 - overhead, 681_489 - overhead_bytes));
    let class_object = |name: &str| {
        let class = graph.classes().iter().find(|class| class.name == name);
        class.and_then(|class| class.object).expect("it is loaded")
    };
    for (name, retained) in [
        ("android.text.Html$HtmlParser", 116_492),
        ("android.app.ActivityThread", 853 + 576),
    ] {
        let bytes = dominators.retained_bytes(class_object(name));
        assert_eq!(bytes, retained, "{name}");
    }
    let found = leaks::find(&graph);
    let [group] = &found.groups[..] else {
        panic!("{:?}", found.groups);
    };
    assert_eq!(
        (group.class.as_str(), group.what, group.leaks.len()),
        (
            "com.android.dialer.calllog.CallLogNotificationsService",
            "stopped Service",
            1
        )
    );
    let suspects: Vec<String> = group
        .path
        .iter()
        .filter(|step| step.suspect)
        .filter_map(|step| Some(step.reference.as_ref()?.shown()))
        .collect();
    assert_eq!(suspects, ["sInstance", "mContext"]);
    let best = ShortestPaths::from_best_roots(&graph, Follow::default());
    let way = Ways::new(&graph, &best, Follow::default()).to(group.leaks[0].object);
    assert_eq!(
        way.root.map(|root| root.to_string()),
        Some(group.root.clone())
    );
    let all = largest::largest(&graph, &dominators, &Filter::default(), 1, true);
    let largest = all.first().expect("it holds objects");
    assert_eq!(
        largest.object,
        class_object("android.content.res.Resources")
    );
}

/// The search for holders asks for the place of a reference instead of its link, which is slower.
#[test]
fn references_of_a_class_at_one_place_have_one_link() {
    let mut checked = 0;
    for name in ["android-a.hprof.gz", "leaklab-after.hprof.zst"] {
        let graph = graph_of(&fixtures().join(name), None);
        let mut links = Links::new(&graph, Follow::default());
        let mut known: HashMap<_, Link> = HashMap::new();
        for owner in (0..graph.len() as u32).map(ObjectIndex) {
            let class = graph.class_of(owner);
            // Fields of a class object are those of the class that it represents.
            if graph.class(class).kind == ClassKind::Class {
                continue;
            }
            let places = links.places(class, owner, true);
            let targets = graph.references(owner).iter().take(8);
            for (position, &target) in targets.enumerate() {
                // Only the first reference to an object counts.
                let is_repeated = graph.references(owner)[..position].contains(&target);
                let Some(place) = links.place(places, position) else {
                    continue;
                };
                if target == ObjectIndex::NONE || is_repeated {
                    continue;
                }
                let link = links.any(owner, target);
                let first = known.entry((class, place)).or_insert_with(|| link.clone());
                assert_eq!(*first, link, "{name}: {}", graph.class(class).name);
                checked += 1;
            }
        }
    }
    assert!(checked > 10_000, "{checked}");
}
