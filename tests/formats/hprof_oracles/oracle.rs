//! Answers of other tools, parsed, and heaptap's in the same form.

use android_hprof::Histogram;
use heaptap_model::heap_graph::HeapGraph;
use std::collections::BTreeMap;

/// Objects and bytes by class name.
pub type Counts = BTreeMap<String, (u64, u64)>;

/// The name of a hidden class without its address, which varies between runs and between tools.
fn without_address(name: &str) -> String {
    let address = |at: usize| {
        name[at + 3..]
            .bytes()
            .take_while(u8::is_ascii_hexdigit)
            .count()
    };
    match name.find("/0x").or_else(|| name.find("+0x")) {
        Some(at) => name[..at].to_owned() + &name[at + 3 + address(at)..],
        None => name.to_owned(),
    }
}

/// Converts `[[Ljava/lang/String;` and the like to Java's notation.
fn java_name(raw: &str) -> String {
    let element = raw.trim_start_matches('[');
    let dimensions = raw.len() - element.len();
    let element = match element {
        _ if dimensions == 0 => element,
        "Z" => "boolean",
        "C" => "char",
        "F" => "float",
        "D" => "double",
        "B" => "byte",
        "S" => "short",
        "I" => "int",
        "J" => "long",
        object => object.trim_start_matches('L').trim_end_matches(';'),
    };
    without_address(element) + &"[]".repeat(dimensions)
}

fn add(counts: &mut Counts, name: String, objects: u64, bytes: u64) {
    let row = counts.entry(name).or_default();
    row.0 += objects;
    row.1 += bytes;
}

/// `jmap -histo`: number, instances, bytes, class.
pub fn of_jmap(text: &str) -> Counts {
    let mut counts = Counts::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [number, objects, bytes, class, ..] = words[..] else {
            continue;
        };
        if let (true, Ok(objects), Ok(bytes)) =
            (number.ends_with(':'), objects.parse(), bytes.parse())
        {
            add(&mut counts, java_name(class), objects, bytes);
        }
    }
    assert!(!counts.is_empty(), "a table of jmap");
    counts
}

pub fn of_histogram(histogram: &Histogram) -> Counts {
    let mut counts = Counts::new();
    for row in &histogram.rows {
        add(
            &mut counts,
            without_address(&row.class),
            row.objects,
            row.shallow_bytes,
        );
    }
    counts
}

pub fn of_graph(graph: &HeapGraph) -> Counts {
    let mut counts = Counts::new();
    for object in graph.objects() {
        let class = &graph.class(graph.class_of(object)).name;
        add(
            &mut counts,
            without_address(class),
            1,
            graph.shallow_bytes(object),
        );
    }
    counts
}

/// Returns the classes with different rows, with both rows.
pub fn differences(ours: &Counts, theirs: &Counts) -> Vec<String> {
    let mut names: Vec<&String> = ours.keys().chain(theirs.keys()).collect();
    names.sort();
    names.dedup();
    let differing = names
        .into_iter()
        .filter(|name| ours.get(*name) != theirs.get(*name));
    differing
        .map(|name| {
            format!(
                "{name}: ours {:?}, theirs {:?}",
                ours.get(name),
                theirs.get(name)
            )
        })
        .collect()
}
