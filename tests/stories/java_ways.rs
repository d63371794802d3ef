//! Long lists in a Java heap: every command and the page show the list's head and a short path to
//! its end. Commands agree on the referrers of an object.

use std::path::{Path, PathBuf};

use heaptap_report::data::{Data, from_page};
use serde_json::Value;

use crate::program::{assert_contains, json, words};

/// An Android HPROF under construction.
struct Dump {
    strings: Vec<u8>,
    classes: Vec<u8>,
    body: Vec<u8>,
    ids: u32,
}

const OBJECT: u8 = 2;
const BOOLEAN: u8 = 4;
const BYTE: u8 = 8;

fn record(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap();
    let mut record = vec![tag, 0, 0, 0, 0];
    record.extend(length.to_be_bytes());
    record.extend(body);
    record
}

impl Dump {
    fn new() -> Dump {
        Dump {
            strings: Vec::new(),
            classes: Vec::new(),
            body: Vec::new(),
            ids: 0x1000,
        }
    }

    fn id(&mut self) -> u32 {
        self.ids += 0x10;
        self.ids
    }

    fn string(&mut self, text: &str) -> u32 {
        let id = self.id();
        let body = [&id.to_be_bytes()[..], text.as_bytes()].concat();
        self.strings.extend(record(0x01, &body));
        id
    }

    fn put(&mut self, tag: u8, words: &[u32]) {
        self.body.push(tag);
        for word in words {
            self.body.extend(word.to_be_bytes());
        }
    }

    /// A class referenced by the system, with fields and statics that refer to objects.
    fn class(
        &mut self,
        name: &str,
        above: u32,
        fields: &[(&str, u8)],
        statics: &[(&str, u32)],
    ) -> u32 {
        let class = self.id();
        let name = self.string(name);
        let load = [1, class, 0, name].map(u32::to_be_bytes).concat();
        self.classes.extend(record(0x02, &load));
        let fields: Vec<(u32, u8)> = fields.iter().map(|f| (self.string(f.0), f.1)).collect();
        let statics: Vec<(u32, u32)> = statics.iter().map(|s| (self.string(s.0), s.1)).collect();
        self.put(0x20, &[class, 0, above, 0, 0, 0, 0, 0, 16]);
        self.body.extend([0, 0]);
        self.body.extend((statics.len() as u16).to_be_bytes());
        for (name, object) in statics {
            self.body.extend(name.to_be_bytes());
            self.body.push(OBJECT);
            self.body.extend(object.to_be_bytes());
        }
        self.body.extend((fields.len() as u16).to_be_bytes());
        for (name, basic) in fields {
            self.body.extend(name.to_be_bytes());
            self.body.push(basic);
        }
        self.put(0x05, &[class]);
        class
    }

    fn instance(&mut self, id: u32, class: u32, fields: &[u8]) {
        self.put(0x21, &[id, 0, class, fields.len() as u32]);
        self.body.extend(fields);
    }

    fn bytes(&mut self, length: u32) -> u32 {
        let id = self.id();
        self.put(0x23, &[id, 0, length]);
        self.body.push(BYTE);
        self.body.resize(self.body.len() + length as usize, 0);
        id
    }

    fn write(self, path: &Path) {
        let mut file = b"JAVA PROFILE 1.0.3\0\0\0\0\x04\0\0\0\0\0\0\0\0".to_vec();
        file.extend(self.strings);
        file.extend(self.classes);
        file.extend(record(0x1c, &self.body));
        file.extend(record(0x2c, &[]));
        std::fs::write(path, file).unwrap();
    }
}

/// A dump with a list of `links` events, whose classes alternate; each has a payload of 1,000
/// bytes, or one byte for very long lists, and the last one references a destroyed activity.
/// Returns the ids of the first event and of the activity.
fn list(path: &Path, classes: &[&str], links: usize) -> (String, String) {
    let mut dump = Dump::new();
    let object = dump.class("java.lang.Object", 0, &[], &[]);
    let activity = dump.class(
        "android.app.Activity",
        object,
        &[("mDestroyed", BOOLEAN)],
        &[],
    );
    let screen = dump.class("app.Screen", activity, &[], &[]);
    let fields = [("next", OBJECT), ("payload", OBJECT), ("screen", OBJECT)];
    let events: Vec<u32> = classes
        .iter()
        .map(|class| dump.class(class, object, &fields, &[]))
        .collect();
    let ids: Vec<u32> = (0..links).map(|_| dump.id()).collect();
    let shown = dump.id();
    dump.instance(shown, screen, &[1]);
    for (at, &id) in ids.iter().enumerate() {
        let payload = dump.bytes(if links > 10_000 { 1 } else { 1_000 });
        let next = ids.get(at + 1).copied().unwrap_or(0);
        let screen = if next == 0 { shown } else { 0 };
        let fields = [next, payload, screen].map(u32::to_be_bytes).concat();
        dump.instance(id, events[at % events.len()], &fields);
    }
    dump.class("app.Keeper", object, &[], &[("LIST", ids[0])]);
    dump.write(path);
    (format!("{:#x}", ids[0]), format!("{shown:#x}"))
}

fn directory(name: &str) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("java-ways-{name}"));
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

/// A list of 5,000 and one of 300,000.
const LENGTHS: [usize; 2] = [5_000, 300_000];

/// With thousands set apart.
fn spaced(number: usize) -> String {
    format!("{},{:03}", number / 1000, number % 1000)
}

#[test]
fn the_head_of_a_list_is_the_top_row_with_the_number_of_its_links() {
    let directory = directory("top");
    for links in LENGTHS {
        let path = directory.join(format!("{links}.hprof"));
        let (head, _) = list(&path, &["app.Event"], links);
        let path = path.to_str().unwrap();
        let top = json(&["top", path]);
        let first = &top["largest_objects"][0];
        assert_eq!(first["object"]["id"], head, "{first:#}");
        assert_eq!(first["retained_count"], 2 * links + 1);
        assert_eq!(first["object"]["members"]["count"], links);
        assert_eq!(first["object"]["members"]["class"], "app.Event");
        let text = words(&["top", path]);
        let said = format!("app.Event  of {} × Event  ← app.Keeper.LIST", spaced(links));
        assert_contains(&text, &said);
        let rows = top["largest_objects"].as_array().unwrap();
        let again = rows.iter().filter(|row| row["name"] == "app.Event");
        assert_eq!(again.count(), 1, "its links have no rows");
    }
}

#[test]
fn the_way_through_a_list_is_one_repeated_reference_in_words_and_json() {
    let directory = directory("paths");
    for links in LENGTHS {
        let path = directory.join(format!("{links}.hprof"));
        let (head, screen) = list(&path, &["app.Event"], links);
        let path = path.to_str().unwrap();
        let document = json(&["paths", path, "--object", &screen]);
        let steps = document["shortest"]["steps"].as_array().unwrap();
        let names: Vec<&str> = steps.iter().map(|s| s["name"].as_str().unwrap()).collect();
        let both_ends = ["class app.Keeper", "app.Event", "app.Event", "app.Screen"];
        assert_eq!(names, both_ends);
        assert_eq!(steps[1]["id"], head);
        assert_eq!(steps[2]["repeated"]["times"], links - 1);
        assert_eq!(steps[2]["repeated"]["references"][0], "Event.next");
        assert_eq!(steps[3]["id"], screen);
        let text = words(&["paths", path, "--object", &screen]);
        let said = format!("↓ Event.next × {}\n", spaced(links - 1));
        assert_contains(&text, &said);
        assert!(text.len() < 8_000, "{} bytes", text.len());
    }
}

#[test]
fn a_list_of_two_classes_in_turn_is_a_repeated_round() {
    let directory = directory("turns");
    let path = directory.join("list.hprof");
    let (head, screen) = list(&path, &["app.Even", "app.Odd"], 5_000);
    let path = path.to_str().unwrap();
    let top = json(&["top", path]);
    assert_eq!(top["largest_objects"][0]["object"]["id"], head);
    let document = json(&["paths", path, "--object", &screen]);
    let steps = document["shortest"]["steps"].as_array().unwrap();
    assert!(steps.len() < 8, "{steps:#?}");
    let repeated = steps.iter().find(|step| !step["repeated"].is_null());
    let repeated = &repeated.unwrap()["repeated"];
    assert_eq!(repeated["times"], 2_499);
    let round = serde_json::json!(["Even.next", "Odd.next"]);
    assert_eq!(repeated["references"], round);
}

#[test]
fn a_leak_behind_a_list_has_a_short_way_and_the_root_that_paths_names() {
    let directory = directory("leaks");
    for links in LENGTHS {
        let path = directory.join(format!("{links}.hprof"));
        let (_, screen) = list(&path, &["app.Event"], links);
        let path = path.to_str().unwrap();
        let document = json(&["leaks", path, "--only", "leaks"]);
        let group = &document["leaks"]["groups"][0];
        assert_eq!(group["leaks"][0]["id"], screen, "{document:#}");
        let steps = group["path"].as_array().unwrap();
        assert_eq!(steps.len(), 4, "{steps:#?}");
        assert_eq!(steps[1]["repeated"]["times"], links - 1);
        assert_eq!(steps[1]["repeated"]["references"][0], "Event.next");
        assert_eq!(steps[1]["suspect"], true);
        assert_eq!(steps[2]["reference"], "screen");
        assert_eq!(group["path_left_out"], 0);
        let text = words(&["leaks", path, "--only", "leaks"]);
        let said = format!("Event.next × {}\n", spaced(links - 1));
        assert_contains(&text, &said);
        let way = json(&["paths", path, "--object", &screen]);
        assert_eq!(group["root"], way["shortest"]["root"]["text"]);
    }
}

#[test]
fn the_page_shows_the_way_through_a_list_short() {
    let directory = directory("page");
    let path = directory.join("list.hprof");
    list(&path, &["app.Event"], 5_000);
    let page = directory.join("page.html");
    words(&format!("report {} -o {}", path.display(), page.display()));
    let page = std::fs::read_to_string(page).unwrap();
    let way = page.split("<h3 id=\"leaks0\">").nth(1).unwrap();
    let way = way.split("</pre>").next().unwrap();
    assert_contains(&way, "Event.next × 4,999");
    assert!(way.lines().count() < 20, "{way}");
}

/// Returns every leak of a dump and the root of its `paths`.
#[test]
fn leaks_and_paths_name_the_same_root_for_one_object() {
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/hprof");
    let mut compared = 0;
    for name in ["leaklab-after.hprof.zst", "android-b.hprof.gz"] {
        let path = fixtures.join(name);
        let path = path.to_str().unwrap();
        let document = json(&["leaks", path, "--only", "leaks"]);
        for group in document["leaks"]["groups"].as_array().unwrap() {
            let id = group["leaks"][0]["id"].as_str().unwrap();
            let way = json(&["paths", path, "--object", id]);
            let root = &way["shortest"]["root"]["text"];
            assert_eq!(&group["root"], root, "{name} {id}");
            compared += 1;
        }
    }
    assert!(compared > 5, "{compared} leaks");
}

/// Returns the static part of a page, and the answers about each of its Java heaps.
fn page(path: &Path) -> (String, Vec<Value>) {
    let page = std::fs::read_to_string(path).unwrap();
    let bytes = from_page(&page).expect("it has data");
    let data = Data::decode(&bytes).expect("the data are whole");
    let (head, _) = page.split_once("</main>").unwrap();
    (head.to_owned(), data.java)
}

#[test]
fn the_page_holds_no_text_of_the_heap_unless_contents_are_asked_for() {
    let directory = directory("contents");
    let dump = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/hprof");
    let dump = dump.join("leaklab-after.hprof.zst");
    let dump = dump.to_str().unwrap();
    let written = |name: &str, more: &str| {
        let goal = directory.join(name);
        words((format!("report {dump} -o {}", goal.display()), more));
        let (head, java) = page(&goal);
        (head + &java[0].to_string(), java)
    };
    let text = "the same twenty-nine characters";
    let (without, answers) = written("without.html", "");
    let (with, _) = written("with.html", "--contents");
    assert!(with.contains(text), "a text that is there many times");
    assert!(!without.contains(text));
    let document = json(&["leaks", dump, "--only", "waste"]);
    let rows = document["waste"]["strings"]["groups"].as_array().unwrap();
    assert_eq!(rows[0]["value"], text);
    let row = &answers[0]["waste?"]["strings"]["groups"][0];
    // A short text can be guessed by its hash.
    assert!(rows[0]["hash"].is_string());
    assert_eq!((&row["hash"], &row["value"]), (&Value::Null, &"".into()));
    for row in rows.iter().take(15) {
        let value = row["value"].as_str().unwrap();
        // heaptap's own words are on the page for any heap.
        let is_word = value.len() < 12;
        assert!(is_word || !without.contains(value), "{value}");
    }
}

/// Returns the references to the objects of a class, those first that refer to them.
fn holders<'a>(answers: &'a Value, class: &str) -> Vec<&'a str> {
    let rows = answers[format!("holders?class={class}")]["rows"].as_array();
    let rows = rows.unwrap_or_else(|| panic!("nothing holds {class}"));
    rows.iter()
        .map(|row| row["name"].as_str().unwrap())
        .collect()
}

#[test]
fn the_page_of_a_difference_has_what_grew_and_who_holds_it() {
    let directory = directory("difference");
    let (before, after) = (directory.join("a.hprof"), directory.join("b.hprof"));
    list(&before, &["app.Event"], 1_000);
    list(&after, &["app.Event"], 3_000);
    let (before, after) = (before.to_str().unwrap(), after.to_str().unwrap());
    let goals = ["one", "other", "third"].map(|name| directory.join(name).with_extension("html"));
    let [one, other, third] = goals.each_ref().map(|goal| goal.to_str().unwrap());
    words(&["diff", before, after, "-o", one]);
    words(&["report", after, "--base", before, "-o", other]);
    words(&["explore", before, after, "-o", third]);
    for goal in &goals {
        let (head, java) = page(goal);
        let grew = head.split("<h3 id=\"grew1\">").nth(1);
        let grew = grew.expect("what grew, of the second heap");
        assert!(!head.contains("<h3 id=\"grew0\">"));
        assert_contains(&grew, "in +4,000 objects");
        assert_eq!(java[0]["changes?"], Value::Null);
        let changed = java[1]["changes?"]["rows"].as_array().unwrap();
        let event = changed.iter().find(|row| row["name"] == "app.Event");
        assert_eq!(event.expect("events grew")["growth"]["count"], 2_000);
        assert!(holders(&java[1], "app.Event").contains(&"app.Keeper.LIST"));
    }
}

#[test]
fn who_holds_what_grew_is_there_behind_a_class_that_has_many_holders() {
    let directory = directory("holders");
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/hprof");
    let dump = |name: &str| fixtures.join(name).to_str().unwrap().to_owned();
    let (before, after) = (
        dump("leaklab-before.hprof.zst"),
        dump("leaklab-after.hprof.zst"),
    );
    let goal = directory.join("page.html");
    words(&format!("diff {before} {after} -o {}", goal.display()));
    let (_, java) = page(&goal);
    // 80 more listeners, each with an array of bytes; thousands of strings have those, too.
    let held = holders(&java[1], "byte[]");
    assert!(held.contains(&"String.value"), "{held:?}");
    let of_listener = |name: &&str| name.starts_with("LeakLab$Listener.");
    assert!(held.iter().any(of_listener), "{held:?}");
}
