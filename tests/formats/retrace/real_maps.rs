//! Real mapping files, each also read by a simple reader: every class, field and method must map
//! back to its lines. Those of fixtures/mapping; with HEAPTAP_MAPPINGS=DIR also all in that
//! directory.

use super::names;
use heaptap_symbols::deobfuscate::{FieldType, MapFile, Retracer};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Fields and methods of a class, by their names in the app.
#[derive(Default)]
struct Class {
    original: String,
    fields: BTreeMap<String, Vec<String>>,
    /// Ranges and qualified names, in order.
    methods: BTreeMap<String, Vec<(String, String)>>,
}

/// A mapping read line by line as written: ` -> `, four spaces, no errors.
fn read(text: &str) -> BTreeMap<String, Class> {
    let mut classes: BTreeMap<String, Class> = BTreeMap::new();
    let mut current = String::new();
    for line in text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
    {
        let Some((left, right)) = line.split_once(" -> ") else {
            continue;
        };
        if !line.starts_with(' ') {
            current = right.trim_end_matches(':').to_owned();
            let class = Class {
                original: left.to_owned(),
                ..Class::default()
            };
            classes.insert(current.clone(), class);
            continue;
        }
        let class = classes
            .get_mut(&current)
            .expect("a class before its members");
        let (of_type, rest) = left.trim().split_once(' ').expect("a type");
        let whole = |name: &str| match name.contains('.') {
            true => name.to_owned(),
            false => format!("{}.{name}", class.original),
        };
        match rest.split_once('(') {
            Some((name, _)) => {
                let range = of_type.rsplit_once(':').map_or("", |(range, _)| range);
                let entry = (range.to_owned(), whole(name));
                class
                    .methods
                    .entry(right.to_owned())
                    .or_default()
                    .push(entry);
            }
            None => {
                let name = rest.rsplit('.').next().unwrap_or(rest).to_owned();
                class.fields.entry(right.to_owned()).or_default().push(name);
            }
        }
    }
    classes
}

/// Returns the methods that are not inlined, sorted: the last of each run with the same range.
fn outermost(entries: &[(String, String)]) -> String {
    let runs = entries.chunk_by(|a, b| !a.0.is_empty() && a.0 == b.0);
    let names: BTreeSet<&str> = runs
        .filter_map(|run| Some(run.last()?.1.as_str()))
        .collect();
    names.into_iter().collect::<Vec<_>>().join(" | ")
}

fn maps() -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/mapping");
    let more = std::env::var_os("HEAPTAP_MAPPINGS").map(PathBuf::from);
    let mut found: Vec<PathBuf> = std::iter::once(own)
        .chain(more)
        .flat_map(|directory| std::fs::read_dir(directory).expect("the folder can be read"))
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|e| e == "txt"))
        .collect();
    found.sort();
    assert!(found.len() >= 2, "{found:?}");
    found
}

#[test]
fn every_class_and_member_maps_back_by_the_file_and_by_its_packets() {
    for path in maps() {
        let shown = path.display();
        let text = std::fs::read_to_string(&path).expect("a map");
        let classes = read(&text);
        let map = MapFile::open(&path).expect("a map");
        assert_eq!(map.survey().bad_lines, 0, "{shown}: {:?}", map.survey());
        assert_eq!(map.survey().classes, classes.len(), "{shown}");
        let retracer = Retracer::new(&map);
        let mut frames: Vec<String> = Vec::new();
        let mut expected: Vec<String> = Vec::new();
        for (obfuscated, class) in &classes {
            let found = retracer.class(obfuscated).expect("a class of the map");
            assert_eq!(found, class.original, "{shown}: {obfuscated}");
            for (field, names) in &class.fields {
                let found = retracer.field(obfuscated, field, FieldType::Unknown);
                let found: Vec<&str> = found.iter().map(|field| field.name).collect();
                assert_eq!(found, *names, "{shown}: {obfuscated}.{field}");
            }
            for (method, entries) in &class.methods {
                frames.push(format!("{obfuscated}.{method}"));
                expected.push(outermost(entries));
            }
        }
        let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
        assert_eq!(names::by_file(&map, &frames), expected, "{shown}");
        assert_eq!(names::by_packets(&map, &frames), expected, "{shown}");
    }
}
