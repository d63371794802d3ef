//! The tables of a recording without row numbers, heaptap's and Perfetto's.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;

use heaptap_query::{Database, Sink, Value};

/// A table: rows by column names.
pub type Table = Vec<BTreeMap<String, Option<String>>>;

pub fn read_csv(path: &Path) -> Option<Table> {
    let text = std::fs::read_to_string(path).ok()?;
    let mut records: Vec<Vec<Option<String>>> = vec![Vec::new()];
    let mut cell = String::new();
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    let finish = |cell: &mut String| {
        let text = std::mem::take(cell);
        (text != "[NULL]").then_some(text)
    };
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                cell.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => records.last_mut().unwrap().push(finish(&mut cell)),
            '\n' if !quoted => {
                records.last_mut().unwrap().push(finish(&mut cell));
                records.push(Vec::new());
            }
            c => cell.push(c),
        }
    }
    records.retain(|record| !record.is_empty());
    let names: Vec<String> = records.remove(0).into_iter().map(Option::unwrap).collect();
    let row = |record: Vec<Option<String>>| names.iter().cloned().zip(record).collect();
    Some(records.into_iter().map(row).collect())
}

#[derive(Default)]
struct Kept {
    names: Vec<String>,
    rows: Table,
}

impl Sink for Kept {
    fn columns(&mut self, names: &[&str]) -> ControlFlow<()> {
        self.names = names.iter().map(|&name| name.to_owned()).collect();
        ControlFlow::Continue(())
    }

    fn row(&mut self, row: &[Value<'_>]) -> ControlFlow<()> {
        let cells = row.iter().map(|value| match value {
            Value::Null => None,
            Value::Int(number) => Some(number.to_string()),
            Value::Real(number) => Some(number.to_string()),
            Value::Text(text) => Some(String::from_utf8(text.to_vec()).expect("UTF-8")),
            Value::Blob(_) => panic!("no table has blobs"),
        });
        self.rows
            .push(self.names.iter().cloned().zip(cells).collect());
        ControlFlow::Continue(())
    }

    fn end(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// The rows of a query.
pub fn select(database: &mut Database, sql: &str) -> Table {
    let mut kept = Kept::default();
    let flow = database
        .run(sql, &mut kept)
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    assert!(flow.is_continue());
    kept.rows
}

/// The tables of a recording, without row numbers.
#[derive(Debug, PartialEq, Eq, Default)]
pub struct Content {
    pub processes: BTreeSet<String>,
    pub mappings: BTreeSet<String>,
    pub frames: BTreeSet<String>,
    pub callsites: BTreeSet<u64>,
    pub allocations: BTreeMap<String, (i64, i64)>,
}

fn hash(parent: u64, text: &str) -> u64 {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    (parent, text).hash(&mut hasher);
    hasher.finish()
}

impl Content {
    fn from_table(table: &mut dyn FnMut(&str) -> Option<Table>) -> Option<Content> {
        let mut content = Content::default();
        let text = |value: &Option<String>| value.clone().unwrap_or("NULL".to_owned());
        let number = |value: &Option<String>| value.as_ref().unwrap().parse::<i64>().unwrap();
        let row_of = |row: &BTreeMap<String, Option<String>>, names: &[&str]| {
            let cells: Vec<String> = names.iter().map(|name| text(&row[*name])).collect();
            cells.join("|")
        };
        for row in table("process").unwrap_or_default() {
            let process = row_of(&row, &["pid", "name", "cmdline"]);
            if text(&row["pid"]) != "0" {
                content.processes.insert(process);
            }
        }
        let mut mappings = Vec::new();
        for row in table("mapping")? {
            let names = [
                "build_id",
                "exact_offset",
                "start_offset",
                "start",
                "end",
                "load_bias",
                "name",
            ];
            let mapping = row_of(&row, &names);
            content.mappings.insert(mapping.clone());
            mappings.push(mapping);
        }
        let mut symbols: BTreeMap<String, String> = BTreeMap::new();
        for row in table("symbol").unwrap_or_default() {
            let set = symbols.entry(text(&row["symbol_set_id"])).or_default();
            let mut row = row;
            // Names that symbolizers use if they do not know.
            for (column, unknown) in [("source_file", "??"), ("line_number", "0")] {
                if row[column].as_deref() == Some(unknown) {
                    row.insert(column.to_owned(), None);
                }
            }
            *set += &row_of(&row, &["name", "source_file", "line_number"]);
            *set += "; ";
        }
        let mut frames = Vec::new();
        for row in table("frame")? {
            let mapping = mappings.get(number(&row["mapping"]) as usize);
            let own = row_of(&row, &["name", "rel_pc", "deobfuscated_name"]);
            let lines = row["symbol_set_id"].as_ref().map(|set| &symbols[set]);
            let frame = format!("{own} {lines:?} {mapping:?}");
            content.frames.insert(frame.clone());
            frames.push(frame);
        }
        let mut stacks: Vec<u64> = Vec::new();
        for row in table("callsite")? {
            let parent = row["parent_id"]
                .as_ref()
                .map(|id| id.parse::<usize>().unwrap());
            let depth = text(&row["depth"]);
            let parent = parent.map_or(0, |parent| stacks[parent]);
            let frame = &frames[number(&row["frame_id"]) as usize];
            let stack = hash(parent, &format!("{depth} {frame}"));
            content.callsites.insert(stack);
            stacks.push(stack);
        }
        for row in table("alloc")? {
            let site = row["callsite_id"]
                .as_ref()
                .map(|id| stacks[id.parse::<usize>().unwrap()]);
            let key = row_of(&row, &["ts", "pid", "heap_name"]);
            let (count, size) = (number(&row["count"]), number(&row["size"]));
            let key = format!("{key} {site:?} {}", count < 0 || size < 0);
            let sum = content.allocations.entry(key).or_default();
            sum.0 = sum.0.wrapping_add(count);
            sum.1 = sum.1.wrapping_add(size);
        }
        Some(content)
    }
}

/// Returns the differences: for each table a heading with counts, and up to three rows of each
/// side.
pub fn differences(ours: &Content, theirs: &Content) -> Vec<Vec<String>> {
    fn difference<T: Ord + std::fmt::Debug>(
        what: &str,
        ours: impl IntoIterator<Item = T>,
        theirs: impl IntoIterator<Item = T>,
    ) -> Option<Vec<String>> {
        let ours: BTreeSet<T> = ours.into_iter().collect();
        let theirs: BTreeSet<T> = theirs.into_iter().collect();
        let more = ours.difference(&theirs).map(|row| format!("+{row:?}"));
        let less = theirs.difference(&ours).map(|row| format!("-{row:?}"));
        let (more, less): (Vec<String>, Vec<String>) = (more.collect(), less.collect());
        if more.is_empty() && less.is_empty() {
            return None;
        }
        let heading = format!("{what}: {} more, {} less", more.len(), less.len());
        let shown = more.into_iter().take(3).chain(less.into_iter().take(3));
        Some(std::iter::once(heading).chain(shown).collect())
    }
    let all = [
        difference("processes", &ours.processes, &theirs.processes),
        difference("mappings", &ours.mappings, &theirs.mappings),
        difference("frames", &ours.frames, &theirs.frames),
        difference("callsites", &ours.callsites, &theirs.callsites),
        difference("allocations", &ours.allocations, &theirs.allocations),
    ];
    all.into_iter().flatten().collect()
}

const OURS: [(&str, &str); 6] = [
    ("process", "SELECT pid, name, cmdline FROM process"),
    ("mapping", "SELECT * FROM stack_profile_mapping ORDER BY id"),
    ("symbol", "SELECT * FROM stack_profile_symbol ORDER BY id"),
    ("frame", "SELECT * FROM stack_profile_frame ORDER BY id"),
    (
        "callsite",
        "SELECT * FROM stack_profile_callsite ORDER BY id",
    ),
    (
        "alloc",
        "SELECT a.ts, p.pid, a.heap_name, a.callsite_id, a.count, a.size \
         FROM heap_profile_allocation a JOIN process p USING (upid)",
    ),
];

/// Returns heaptap's tables.
pub fn ours(database: &mut Database) -> Content {
    Content::from_table(&mut |name| {
        let (_, sql) = OURS.iter().find(|(table, _)| *table == name)?;
        Some(select(database, sql))
    })
    .expect("all tables are there")
}

/// Returns Perfetto's tables from a directory.
pub fn theirs(directory: &Path) -> Content {
    Content::from_table(&mut |name| read_csv(&directory.join(format!("{name}.csv"))))
        .expect("its tables")
}
