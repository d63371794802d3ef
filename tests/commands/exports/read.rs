//! Reads the written files, each format in the simplest way.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A dump's number and heap; every input here has one process.
pub type DumpId = (u32, String);

/// By dump, view and stack (names as folded, callers first), the sum of its numbers; never 0.
pub type Numbers = BTreeMap<(DumpId, String, String), i64>;

pub fn put(numbers: &mut Numbers, dump: &DumpId, view: &str, stack: &[&str], value: i64) {
    if value != 0 {
        let names: Vec<String> = stack.iter().map(|name| folded_name(name)).collect();
        let key = (dump.clone(), view.to_owned(), names.join(";"));
        *numbers.entry(key).or_default() += value;
    }
}

/// The name of a frame in formats that separate frames by `;`.
fn folded_name(name: &str) -> String {
    match name {
        "" => "[unknown]".to_owned(),
        name => name.replace(';', ":").replace(['\n', '\t'], " "),
    }
}

/// Sums by dump and view.
pub fn by_view(numbers: &Numbers) -> BTreeMap<(DumpId, String), i64> {
    let mut sums = BTreeMap::new();
    for ((dump, view, _), value) in numbers {
        *sums.entry((dump.clone(), view.clone())).or_default() += value;
    }
    sums
}

/// Files of a directory with an extension, sorted.
pub fn files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("the folder is there");
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.to_string_lossy().ends_with(ending))
        .collect();
    found.sort();
    found
}

/// The number and heap in `heap_dump.N.PID.HEAP.pb.gz`, `heap_dump.N.PID.HEAP.VIEW.svg`,
/// `java_heap_dump.N.…`.
pub fn dump_of(file: &Path) -> DumpId {
    let name = file.file_name().expect("a name").to_string_lossy();
    let (kind, rest) = name.split_once("heap_dump.").expect("a dump");
    let number = rest.split('.').next().expect("a number");
    let number = number.parse().expect("a number");
    if kind == "java_" {
        return (number, "java".to_owned());
    }
    let stem = rest.strip_suffix(".pb.gz");
    let stem = stem
        .or_else(|| rest.rsplitn(3, '.').nth(2))
        .expect("a stem");
    let heap = stem.splitn(3, '.').nth(2).expect("a heap");
    (number, heap.to_owned())
}

fn text(file: &Path) -> String {
    std::fs::read_to_string(file).expect("it is UTF-8")
}

fn parsed(file: &Path) -> Value {
    serde_json::from_str(&text(file)).expect("it is JSON")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn number(value: &Value) -> usize {
    value.as_u64().expect("a number") as usize
}

/// docs/reference/formats.md, "JSON".
pub fn json(file: &Path) -> Numbers {
    let document = parsed(file);
    assert_eq!(document["schema"], "heaptap-profile");
    assert_eq!(document["version"], 1);
    let parents = list(&document["callsites"]["parent"]);
    let frames = list(&document["callsites"]["frame"]);
    let name = |callsite: usize| {
        let frame = &document["frames"][number(&frames[callsite])];
        let function = &document["functions"][number(&frame["function"])];
        function["name"].as_str().expect("a name")
    };
    let mut numbers = Numbers::new();
    for dump in list(&document["dumps"]) {
        let heap = dump["heap"].as_str().expect("a heap");
        let id = (number(&dump["number"]) as u32, heap.to_owned());
        for (at, measure) in list(&dump["measures"]).iter().enumerate() {
            let view = measure["name"].as_str().expect("a name");
            let values = list(&dump["values"][at]);
            assert_eq!(values.len(), list(&dump["callsite"]).len());
            let mut total = 0;
            for (callsite, value) in list(&dump["callsite"]).iter().zip(values) {
                let mut names = Vec::new();
                let mut callsite = number(callsite);
                while !parents[callsite].is_null() {
                    names.push(name(callsite));
                    assert!(number(&parents[callsite]) < callsite, "parents stand first");
                    callsite = number(&parents[callsite]);
                }
                names.reverse();
                let value = value.as_i64().expect("a number");
                total += value;
                put(&mut numbers, &id, view, &names, value);
            }
            assert_eq!(dump["totals"][at], total);
        }
    }
    numbers
}

/// <https://www.speedscope.app/file-format-schema.json>.
pub fn speedscope(file: &Path) -> Numbers {
    let document = parsed(file);
    let frames = list(&document["shared"]["frames"]);
    let mut numbers = Numbers::new();
    let profiles = list(&document["profiles"]);
    assert!(number(&document["activeProfileIndex"]) < profiles.len());
    for profile in profiles {
        // `process (pid) heap @N label: view`
        let (title, view) = profile["name"]
            .as_str()
            .expect("a name")
            .rsplit_once(": ")
            .expect("a view");
        let (before, rest) = title.rsplit_once(" @").expect("a number");
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        let heap = before.rsplit(' ').next().expect("a heap");
        let id = (digits.parse().expect("a number"), heap.to_owned());
        let (samples, weights) = (list(&profile["samples"]), list(&profile["weights"]));
        assert_eq!(samples.len(), weights.len());
        assert_eq!(profile["startValue"], 0);
        let mut total = 0;
        for (sample, weight) in samples.iter().zip(weights) {
            let name = |at: &Value| frames[number(at)]["name"].as_str().expect("a name");
            let names: Vec<&str> = list(sample).iter().map(name).collect();
            let weight = weight.as_i64().expect("a number");
            total += weight;
            put(&mut numbers, &id, view, &names, weight);
        }
        assert_eq!(profile["endValue"], total);
        let is_bytes = view.contains("space");
        assert_eq!(profile["unit"], if is_bytes { "bytes" } else { "none" });
    }
    numbers
}

/// A directory of folded stacks.
pub fn folded(directory: &Path) -> Numbers {
    let mut numbers = Numbers::new();
    for file in files(directory, ".folded") {
        let name = file
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let view = name.rsplit('.').nth(1).expect("a view");
        for line in text(&file).lines() {
            let (stack, value) = line.rsplit_once(' ').expect("a stack and a number");
            let stack: Vec<&str> = stack.split(';').collect();
            let value = value.parse().expect("a number");
            put(&mut numbers, &dump_of(&file), view, &stack, value);
        }
    }
    numbers
}

/// RFC 4180.
pub fn csv(file: &Path) -> Numbers {
    let text = text(file);
    let mut rows: Vec<Vec<String>> = vec![vec![String::new()]];
    let mut quoted = false;
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let row = rows.last_mut().expect("one");
        match (c, quoted) {
            ('"', true) if characters.peek() == Some(&'"') => {
                characters.next();
                row.last_mut().expect("one").push('"');
            }
            ('"', _) => quoted = !quoted,
            (',', false) => row.push(String::new()),
            ('\n', false) => rows.push(vec![String::new()]),
            (c, _) => row.last_mut().expect("one").push(c),
        }
    }
    assert_eq!(
        rows.pop(),
        Some(vec![String::new()]),
        "the last row ends, too"
    );
    let heading = rows.remove(0);
    let at = |name: &str| heading.iter().position(|h| h == name).expect("a column");
    let mut numbers = Numbers::new();
    for row in rows {
        assert_eq!(row.len(), heading.len());
        let stack: Vec<&str> = row[at("stack")].split(';').collect();
        let number = row[at("dump")].parse().expect("a number");
        let id = (number, row[at("heap")].clone());
        for (view, value) in heading.iter().zip(&row).skip(at("stack") + 1) {
            let view = view.split(" (").next().expect("a name");
            if !value.is_empty() {
                let value = value.parse().expect("a number");
                put(&mut numbers, &id, view, &stack, value);
            }
        }
    }
    numbers
}

/// The tables `dump`, `frame`, `callsite` and `sample` of a directory.
pub fn parquet(directory: &Path) -> Numbers {
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    let rows = |table: &str| -> Vec<Value> {
        let file = std::fs::File::open(directory.join(format!("{table}.parquet")));
        let reader = SerializedFileReader::new(file.expect("it is there"));
        let reader = reader.expect("it is Parquet");
        let rows = reader.get_row_iter(None).expect("it has rows");
        rows.map(|row| as_json(&row.expect("it can be read")))
            .collect()
    };
    let frames: BTreeMap<usize, String> = rows("frame")
        .into_iter()
        .map(|row| {
            (
                number(&row["id"]),
                row["function"].as_str().expect("a name").to_owned(),
            )
        })
        .collect();
    let callsites: BTreeMap<usize, Value> = rows("callsite")
        .into_iter()
        .map(|row| (number(&row["id"]), row))
        .collect();
    let dumps: BTreeMap<usize, DumpId> = rows("dump")
        .into_iter()
        .map(|row| {
            let heap = row["heap"].as_str().expect("a heap").to_owned();
            (number(&row["id"]), (number(&row["dump"]) as u32, heap))
        })
        .collect();
    let mut numbers = Numbers::new();
    for row in rows("sample") {
        let mut names = Vec::new();
        let mut callsite = &callsites[&number(&row["callsite"])];
        while !callsite["parent"].is_null() {
            names.push(frames[&number(&callsite["frame"])].as_str());
            callsite = &callsites[&number(&callsite["parent"])];
        }
        names.reverse();
        let id = &dumps[&number(&row["dump_id"])];
        for (column, view) in [
            ("live_bytes", "space"),
            ("live_n", "objects"),
            ("alloc_bytes", "alloc_space"),
            ("alloc_n", "alloc_objects"),
            ("native_space", "native_space"),
        ] {
            if let Some(value) = row[column].as_i64() {
                put(&mut numbers, id, view, &names, value);
            }
        }
        if let (Some(all), Some(freed)) = (row["alloc_bytes"].as_i64(), row["free_bytes"].as_i64())
        {
            assert_eq!(row["live_bytes"], all - freed);
        }
    }
    numbers
}

fn as_json(row: &parquet::record::Row) -> Value {
    use parquet::record::Field;
    let fields = row.get_column_iter().map(|(name, field)| {
        let value = match field {
            Field::Null => Value::Null,
            Field::Long(number) => (*number).into(),
            Field::Str(text) => text.as_str().into(),
            Field::Bool(is) => (*is).into(),
            other => panic!("no table has {other:?}"),
        };
        (name.clone(), value)
    });
    Value::Object(fields.collect())
}
