//! Answers for a page without a server: those about the heap, all classes and all leaks, and about as many
//! of the largest objects as there is room for. JSON, packed by gzip.

use super::api;
use super::compare::{self, ChangeQuery};
use super::heap::ExploredHeap;
use crate::page::net::{ApiProblem, ApiRequest};
use flate2::Compression;
use flate2::write::GzEncoder;
use heaptap_analyze::histogram::HistogramKey;
use heaptap_base::parallel;
use heaptap_explore::{ClassQuery, ClassSort, ObjectRow, Page, TABLE_KEYS};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io::Write as _;

/// Maximum number of the largest objects, and of those that go before the largest ones of each class.
const OBJECTS: usize = 2000;
const FIRST: usize = 500;
/// Maximum number of rows of each list.
const MAX_ROWS: usize = 500;
/// The same of the lists of one object.
const MAX_FIELDS: &str = "40";
const MAX_REFERRERS: &str = "20";
/// Maximum number of dominators of an object, and of steps at either end of its path.
const MAX_STEPS: &str = "8";
/// Maximum number of nodes of a flame graph.
const MAX_NODES: &str = "3000";
/// Maximum number of classes whose objects are listed, and of their objects.
const MAX_LISTED_CLASSES: usize = 200;
const MAX_LISTED: usize = 20;
/// Maximum number of pictures, and their maximum width and height in pixels.
const MAX_PICTURES: usize = 100;
const PICTURE_SIDE: &str = "128";
/// Number of objects after which the size is looked at, and their usual size, packed, in bytes.
const PART: usize = 64;
const PART_BYTES: usize = 20_000;
/// Number of objects that are worth a second thread.
const WORTH: usize = 16;

/// Returns the answers about a heap: those about all of it, and about as many of the largest objects as fit
/// into `most_bytes`, without a limit if they have contents. `command` shows what they leave out.
///
/// # Panics
/// Panics if the heap is not read.
pub fn pack(explored: &ExploredHeap, command: &str, most_bytes: usize) -> Vec<u8> {
    let mut store = Store {
        explored,
        packer: GzEncoder::new(Vec::new(), Compression::default()),
    };
    store.write(b"{");
    let objects = store.add_heap();
    let mut count = 0;
    for part in objects.chunks(PART) {
        // Leaks are among the first ones, and of use on any page.
        let is_limited = count > 0 && !explored.shows_contents();
        if is_limited && store.len() + PART_BYTES > most_bytes {
            break;
        }
        let answers = |at: usize| Some(of_object(explored, &part[at]));
        for entries in parallel::filter_map(part.len(), WORTH, answers) {
            store.write(&entries);
        }
        count += part.len();
        // Answers read contents all over the dump.
        explored.explorer().graph().release_contents();
    }
    let kept = json!({ "objects": count, "command": command });
    store.write(format!(r#""kept?":{kept}}}"#).as_bytes());
    store.packer.finish().expect("memory takes all")
}

struct Store<'e> {
    explored: &'e ExploredHeap,
    packer: GzEncoder<Vec<u8>>,
}

impl Store<'_> {
    /// Adds the answers about the heap. Returns the IDs of objects, the most interesting ones first.
    fn add_heap(&mut self) -> Vec<String> {
        self.add("meta", &[]);
        let mut classes = Vec::new();
        for (name, by) in TABLE_KEYS {
            let query = ClassQuery {
                by,
                sort: ClassSort::Retained,
                reverse: false,
                filter: String::new(),
                page: Page::ALL,
            };
            let table = self.explored.explorer().classes(&query);
            self.put("classes", &[("by", name)], &json(&table));
            if by == HistogramKey::Class {
                let listed = table.rows.into_iter().take(MAX_LISTED_CLASSES);
                classes = listed.map(|row| row.name).collect();
            }
        }
        let leaks = self.add("leaks", &[]);
        let waste = self.add("waste", &[]);
        self.add("treemap", &[]);
        for tree in ["paths", "dominators"] {
            self.add("flame", &[("tree", tree), ("most", MAX_NODES)]);
        }
        if let Some(comparison) = self.explored.comparison() {
            let query = ChangeQuery {
                sort: ClassSort::Retained,
                reverse: false,
                filter: String::new(),
                page: Page::ALL,
            };
            let changes = compare::classes(comparison, &query);
            self.put("changes", &[], &json(&changes));
            for operation in ["changed-leaks", "changed-dominators"] {
                self.add(operation, &[]);
            }
        }
        for (name, table) in self.explored.holders() {
            self.put("holders", &[("class", name)], &json(table));
        }
        let bitmaps = self.add_rows("bitmaps", &[]);
        if self.explored.shows_contents() {
            self.add_contents(&bitmaps);
        }
        let mut objects = of_leaks(&leaks);
        objects.extend(texts(&bitmaps, "id").into_iter().take(MAX_PICTURES));
        objects.extend(of_waste(&waste));
        objects.extend(self.add_largest(&classes));
        let mut seen = HashSet::new();
        let explorer = self.explored.explorer();
        objects.retain(|id| seen.insert(id.clone()) && explorer.find(id).is_some());
        objects
    }

    /// Adds lists of the largest objects, also of each of these classes. Returns the IDs of the objects.
    fn add_largest(&mut self, classes: &[String]) -> Vec<String> {
        let explorer = self.explored.explorer();
        let largest = explorer.largest(OBJECTS, classes, MAX_LISTED);
        let ids =
            |rows: &[ObjectRow]| -> Vec<String> { rows.iter().map(|row| row.id.clone()).collect() };
        self.put("objects", &[], &json(&largest.all));
        let (first, others) = largest.all.rows.split_at(largest.all.rows.len().min(FIRST));
        let mut objects = ids(first);
        for (name, rows) in &largest.of_class {
            self.put("objects", &[("class", name)], &json(rows));
            objects.extend(ids(&rows.rows));
        }
        objects.extend(ids(others));
        let top = self.add_rows("objects", &[("top", "")]);
        objects.extend(texts(&top, "id"));
        objects
    }

    /// Adds texts and pictures.
    fn add_contents(&mut self, bitmaps: &[Value]) {
        let limit = MAX_ROWS.to_string();
        for list in ["strings", "arrays"] {
            self.add_bytes("search", &[("in", list), ("limit", &limit)]);
        }
        let with_pixels = bitmaps
            .iter()
            .filter(|row| !row["bitmap"]["format"].is_null());
        let ids: Vec<&str> = with_pixels.filter_map(|row| row["id"].as_str()).collect();
        for id in ids.into_iter().take(MAX_PICTURES) {
            let query = [("id", id), ("most", PICTURE_SIDE)];
            // A picture that cannot be shown has no answer.
            if let Ok(picture) = ask(self.explored, "picture", &query) {
                self.put("picture", &query, &picture);
            }
        }
    }

    /// Asks for an answer, adds and returns it.
    fn add(&mut self, operation: &str, query: &[(&str, &str)]) -> Value {
        read(&self.add_bytes(operation, query))
    }

    /// The same, without reading it.
    fn add_bytes(&mut self, operation: &str, query: &[(&str, &str)]) -> Vec<u8> {
        let answer = must_ask(self.explored, operation, query);
        self.put(operation, query, &answer);
        answer
    }

    /// Asks for the first rows of a list, adds and returns them.
    fn add_rows(&mut self, operation: &str, query: &[(&str, &str)]) -> Vec<Value> {
        let limit = MAX_ROWS.to_string();
        let query = [query, &[("limit", &limit)]].concat();
        match self.add(operation, &query)["rows"].take() {
            Value::Array(rows) => rows,
            _ => Vec::new(),
        }
    }

    /// Returns the size so far, in bytes.
    fn len(&mut self) -> usize {
        self.packer.flush().expect("memory takes all");
        self.packer.get_ref().len()
    }

    fn write(&mut self, bytes: &[u8]) {
        self.packer.write_all(bytes).expect("memory takes all");
    }

    fn put(&mut self, operation: &str, query: &[(&str, &str)], answer: &[u8]) {
        self.write(&entry(operation, query, answer));
    }
}

/// Returns the entries of the answers about an object.
fn of_object(explored: &ExploredHeap, id: &str) -> Vec<u8> {
    let of = ("id", id);
    let limit = MAX_LISTED.to_string();
    let mut entries = Vec::new();
    for (operation, query) in [
        ("object", [of, ("most", MAX_STEPS)]),
        ("path", [of, ("most", MAX_STEPS)]),
        ("fields", [of, ("limit", MAX_FIELDS)]),
        ("referrers", [of, ("limit", MAX_REFERRERS)]),
        ("objects", [("dominated", id), ("limit", &limit)]),
    ] {
        let answer = must_ask(explored, operation, &query);
        entries.extend(entry(operation, &query, &answer));
    }
    entries
}

fn must_ask(explored: &ExploredHeap, operation: &str, query: &[(&str, &str)]) -> Vec<u8> {
    ask(explored, operation, query).expect("the heap is read, and has what it listed")
}

fn ask(
    explored: &ExploredHeap,
    operation: &str,
    query: &[(&str, &str)],
) -> Result<Vec<u8>, ApiProblem> {
    let pairs = query.iter();
    let request = ApiRequest {
        operation: operation.to_owned(),
        query: pairs
            .map(|&(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
    };
    api::answer(explored, &request, None)
}

/// Returns an answer after the key that the script looks for: the operation and what it asks for, without
/// the part and the size of lists. Another entry follows.
fn entry(operation: &str, query: &[(&str, &str)], answer: &[u8]) -> Vec<u8> {
    let named = query
        .iter()
        .filter(|(name, _)| !matches!(*name, "limit" | "most"));
    let mut named: Vec<String> = named
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    named.sort();
    let key = json!(format!("{operation}?{}", named.join("&")));
    let mut entry = format!("{key}:").into_bytes();
    entry.extend_from_slice(answer);
    entry.push(b',');
    entry
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("its keys are texts")
}

fn read(answer: &[u8]) -> Value {
    serde_json::from_slice(answer).expect("answers are JSON")
}

fn texts(rows: &[Value], name: &str) -> Vec<String> {
    let texts = rows.iter().filter_map(|row| row[name].as_str());
    texts.map(str::to_owned).collect()
}

/// Returns the IDs of objects in the lists of waste.
fn of_waste(waste: &Value) -> Vec<String> {
    let lists = waste
        .as_object()
        .into_iter()
        .flat_map(|lists| lists.values());
    let rows = lists.filter_map(|list| list.as_array().or_else(|| list["groups"].as_array()));
    rows.flat_map(|rows| [texts(rows, "id"), texts(rows, "example")].concat())
        .collect()
}

/// Returns the IDs of leaks and of the objects on their paths.
fn of_leaks(leaks: &Value) -> Vec<String> {
    let groups = leaks["groups"].as_array();
    let of_group = |group: &Value| {
        let lists = [&group["leaks"], &group["path"]];
        let lists = lists.into_iter().filter_map(Value::as_array);
        lists.flat_map(|rows| texts(rows, "id")).collect::<Vec<_>>()
    };
    groups.into_iter().flatten().flat_map(of_group).collect()
}
