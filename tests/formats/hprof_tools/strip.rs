//! Stripped copies: the same graph, without the contents of arrays.

use super::dump::{ANDROID, Dump, JAVA_SE, NUMBER, SECRET, Shape, dump};
use super::given;
use android_hprof::info::{Contents, info};
use android_hprof::strip::{StripOptions, Stripped, strip};
use android_hprof::{Options, read};
use heaptap_base::bytes::Bytes;
use heaptap_model::heap_graph::{Dominators, Follow, HeapGraph, ObjectIndex};

fn stripped(bytes: &[u8], options: StripOptions) -> (Stripped, Vec<u8>) {
    let mut out = Vec::new();
    let done = strip(bytes, options, &mut out).expect("a dump");
    assert_eq!(done.file.bytes, out.len() as u64);
    (done, out)
}

fn holds(bytes: &[u8], words: &[u8]) -> bool {
    memchr::memmem::find(bytes, words).is_some()
}

fn made() -> Vec<Dump> {
    (0..12)
        .map(|seed| {
            let id = match seed % 2 {
                0 => 4,
                _ => 8,
            };
            dump(
                seed,
                Shape {
                    id,
                    ..[ANDROID, JAVA_SE][seed as usize / 2 % 2]
                },
            )
        })
        .collect()
}

fn graph(bytes: Vec<u8>) -> HeapGraph {
    read(Bytes::from(bytes), &Options::default()).expect("a dump")
}

/// Everything that must not change: objects, classes, sizes, references, roots, dominators.
fn outline(graph: &HeapGraph) -> Vec<String> {
    let dominators = Dominators::compute(graph, Follow::default());
    let mut lines: Vec<String> = (0..graph.len() as u32)
        .map(|at| {
            let it = ObjectIndex(at);
            format!(
                "{:x} {} {} {} {:?} {:?} {:?} {:?} {} {:?}",
                graph.id(it).0,
                graph.class(graph.class_of(it)).name,
                graph.shallow_bytes(it),
                graph.native_bytes(it),
                graph.heap_of(it),
                graph.references(it),
                graph.referents_of(it),
                graph.roots_of(it),
                dominators.retained_bytes(it),
                dominators.idom(it),
            )
        })
        .collect();
    lines.extend(graph.classes().iter().map(|class| {
        let fields: Vec<_> = class.fields.iter().map(|f| (&f.name, f.basic)).collect();
        format!("{} {:?} {fields:?}", class.name, class.instance_bytes)
    }));
    lines
}

fn assert_same_graph(name: &str, one: &[u8], other: &[u8]) {
    let (one, other) = (
        outline(&graph(one.to_vec())),
        outline(&graph(other.to_vec())),
    );
    assert_eq!(one.len(), other.len(), "{name}");
    for (one, other) in one.iter().zip(&other) {
        assert_eq!(one, other, "{name}");
    }
}

#[test]
fn the_graph_stays_and_contents_go() {
    let given = given();
    let made = made().into_iter().map(|it| ("made".to_owned(), it.bytes));
    for (name, bytes) in made.chain(given) {
        for fields in [false, true] {
            let options = StripOptions {
                fields,
                keep_strings: false,
            };
            let (done, out) = stripped(&bytes, options);
            let before = info(&bytes).expect("a dump");
            let after = info(&out).expect("a dump");
            if done.file.damage.is_empty() {
                assert_eq!(out.len(), bytes.len(), "{name}");
                assert_eq!(before.records, after.records, "{name}");
                assert_eq!(before.sub_records, after.sub_records, "{name}");
            }
            assert_ne!(after.contents, Contents::Present, "{name}");
            assert!(!holds(&out, SECRET), "{name}");
            if before.damage.is_empty() {
                assert_same_graph(&name, &bytes, &out);
            }
        }
    }
}

#[test]
fn numbers_go_where_that_is_asked_for_and_hashes_of_strings_always() {
    for made in made() {
        let strings = graph(made.bytes.clone());
        let strings = strings
            .classes()
            .iter()
            .filter(|it| it.name == "java.lang.String");
        assert_eq!(strings.count(), 1);
        let count = |bytes: &[u8]| memchr::memmem::find_iter(bytes, &NUMBER.to_be_bytes()).count();
        let (_, kept) = stripped(&made.bytes, StripOptions::default());
        let found = info(&made.bytes).expect("a dump");
        let gone = count(&made.bytes) - count(&kept);
        assert_eq!(gone as u64, found.strings, "one hash a string");
        assert!(count(&kept) > 12);
        let options = StripOptions {
            fields: true,
            keep_strings: false,
        };
        let (_, out) = stripped(&made.bytes, options);
        assert_eq!(count(&out), 0);
    }
}

#[test]
fn strings_are_kept_where_that_is_asked_for() {
    for (made, fields) in made().into_iter().zip([false, true].into_iter().cycle()) {
        let options = StripOptions {
            fields,
            keep_strings: true,
        };
        let (done, out) = stripped(&made.bytes, options);
        assert_eq!(
            done.strings_kept,
            info(&made.bytes).expect("a dump").strings
        );
        let texts = memchr::memmem::find_iter(&out, SECRET).count();
        assert_eq!(texts as u64, done.strings_kept, "and no other array");
        let graph = graph(out);
        let string = (0..graph.len() as u32)
            .map(ObjectIndex)
            .filter_map(|it| graph.contents().string(&graph, it))
            .next();
        assert_eq!(string.map(String::into_bytes).as_deref(), Some(SECRET));
    }
}

#[test]
fn nothing_of_a_damaged_dump_slips_through() {
    let mut rng = fastrand::Rng::with_seed(3);
    for made in made() {
        for case in 0..60 {
            let mut bytes = made.bytes.clone();
            match case % 3 {
                0 => bytes.truncate(rng.usize(31..bytes.len())),
                _ => {
                    let at = rng.usize(31..bytes.len());
                    bytes[at] ^= 1 << rng.u8(..8);
                }
            }
            let (done, out) = stripped(&bytes, StripOptions::default());
            if case % 3 == 0 {
                assert!(!holds(&out, SECRET), "case {case}");
                assert!(out.len() <= bytes.len());
            }
            // The output can be read to its end.
            let after = info(&out).expect("a dump");
            assert!(after.damage.is_empty(), "case {case}: {:?}", after.damage);
            assert!(done.file.damage.count <= 1 + made.counts.values().sum::<u64>());
        }
    }
}
