//! The forms for scripts: `--checkin`, one line of values for each process, and `-c`, one line for
//! each item of the system form. Values are identified by position. The positions depend on the
//! version in the line and on the form of a field.

use super::databases::{Database, Databases};
use super::line::Lines;
use super::number;
use super::pairs::{Entry, Pairs};
use super::process::{self, Body, Process, Section};
use super::system::{Item, List, Measure};
use super::table::{Column, Heading, Headings, Row, Table};

/// Lines of `-c` and the lists in them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Compact {
    pub records: Vec<String>,
    /// Lists by OOM adjustment, with processes, and by category, as in the system form.
    pub lists: Vec<List>,
}

/// Maximum number of fields of a line: 17 categories and hundreds of databases fit.
const MAX_FIELDS: usize = 16_384;

/// A cursor over fields.
struct Fields<'a> {
    all: &'a [&'a str],
    at: usize,
}

impl<'a> Fields<'a> {
    fn peek(&self, ahead: usize) -> Option<&'a str> {
        self.all.get(self.at + ahead).copied()
    }

    fn next(&mut self) -> Option<&'a str> {
        let field = self.peek(0)?;
        self.at += 1;
        Some(field)
    }

    fn number(&self, ahead: usize) -> Option<i64> {
        self.peek(ahead)
            .and_then(number::integer)
            .map(|(value, _)| value)
    }

    fn is_number(&self, ahead: usize) -> bool {
        self.number(ahead).is_some()
    }

    /// Reads the values for native, Dalvik, other and total: kB or `N/A`, as bytes.
    fn four(&mut self) -> Option<[Option<i64>; 4]> {
        let mut four = [None; 4];
        for value in &mut four {
            *value = match self.next()? {
                "N/A" => None,
                field => Some(number::bytes(number::integer(field)?.0)?),
            };
        }
        Some(four)
    }
}

/// Parses a line of `--checkin` as a process with table, objects, SQL and databases.
pub(super) fn checkin(line: &str) -> Option<Process> {
    if !line.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let fields: Vec<&str> = line.split(',').take(MAX_FIELDS + 1).collect();
    if fields.len() > MAX_FIELDS {
        return None;
    }
    process_of(&fields)
}

/// Returns the columns after those of the heap, in the order of the line.
fn columns(version: i64) -> &'static [Column] {
    const OLD: &[Column] = &[Column::Pss, Column::SharedDirty, Column::PrivateDirty];
    const ALL: &[Column] = &[
        Column::Pss,
        Column::PssClean,
        Column::SharedDirty,
        Column::SharedClean,
        Column::PrivateDirty,
        Column::PrivateClean,
        Column::Swap,
        Column::SwapPss,
    ];
    match version {
        ..=2 => OLD,
        3 => &ALL[..6],
        _ => ALL,
    }
}

fn process_of(fields: &[&str]) -> Option<Process> {
    let mut fields = Fields { all: fields, at: 0 };
    let version = number::integer(fields.next()?)?.0;
    let pid = fields.next()?.parse().ok()?;
    let name = fields.next()?.to_owned();
    if !(1..=99).contains(&version) {
        return None;
    }
    let heaps = [fields.four()?, fields.four()?, fields.four()?];
    let columns = columns(version);
    let mut values = Vec::with_capacity(columns.len());
    for _ in columns {
        values.push(fields.four()?);
    }
    let row = |label: &str, at: usize| row(label, values.iter().map(|four| four[at]), &heaps, at);
    let mut rows = vec![row("Native Heap", 0), row("Dalvik Heap", 1)];
    let mut unknown = row("Unknown", 2);
    unknown.cells.truncate(columns.len());
    unknown.cells.resize(columns.len() + 3, None);
    while fields.peek(0).is_some_and(|label| !label.is_empty()) && !fields.is_number(0) {
        if !(1..=columns.len()).all(|ahead| fields.is_number(ahead)) {
            break;
        }
        let label = fields.next()?;
        let mut cells = Vec::with_capacity(columns.len() + 3);
        for at in 0..columns.len() {
            let bytes = number::bytes(fields.number(at)?)?;
            if let Some(Some(rest)) = unknown.cells.get_mut(at) {
                *rest = rest.saturating_sub(bytes);
            }
            cells.push(Some(bytes));
        }
        fields.at += columns.len();
        cells.resize(columns.len() + 3, None);
        rows.push(plain_row(label, cells));
    }
    // The part of "other" without a category.
    rows.push(unknown);
    rows.push(row("TOTAL", 3));
    let mut process = Process {
        pid: Some(pid),
        name: Some(name),
        ..Process::default()
    };
    let mut table = Table::new(headings(columns));
    rows.into_iter().for_each(|row| table.rows.push(row));
    process
        .sections
        .push(Section::new(None, Body::Table(table)));
    tail(&mut fields, &mut process);
    Some(process)
}

fn plain_row(label: &str, cells: Vec<Option<i64>>) -> Row {
    Row {
        label: label.to_owned(),
        cells,
    }
}

fn row(
    label: &str,
    values: impl Iterator<Item = Option<i64>>,
    heaps: &[[Option<i64>; 4]; 3],
    at: usize,
) -> Row {
    let heaps = heaps.iter().map(|four| four[at]);
    plain_row(label, values.chain(heaps).collect())
}

fn headings(columns: &[Column]) -> Headings {
    let heaps = [Column::HeapSize, Column::HeapAlloc, Column::HeapFree];
    let all = columns.iter().cloned().chain(heaps);
    let columns = all.map(|column| Heading { column, width: 0 });
    Headings {
        label_width: 0,
        columns: columns.collect(),
    }
}

const OBJECT_NAMES: [&str; 10] = [
    "Views",
    "ViewRootImpl",
    "AppContexts",
    "Activities",
    "Assets",
    "AssetManagers",
    "Local Binders",
    "Proxy Binders",
    "Death Recipients",
    "OpenSSL Sockets",
];

/// Parses objects, SQL and databases.
fn tail(fields: &mut Fields<'_>, process: &mut Process) {
    let numbers = (0..32).take_while(|ahead| fields.is_number(*ahead)).count();
    // Android 16 does not have OpenSSL sockets any more. The last four numbers are SQL.
    let Some(objects) = numbers
        .checked_sub(4)
        .filter(|count| (9..=10).contains(count))
    else {
        return;
    };
    let mut counts = Pairs::default();
    for name in &OBJECT_NAMES[..objects] {
        add(&mut counts, name, fields);
    }
    process
        .sections
        .push(Section::new(Some(process::OBJECTS), Body::Counts(counts)));
    let mut sql = Pairs::default();
    // The first number repeats MEMORY_USED; in Android 4.0 it is the heap of the database.
    fields.at += 1;
    for name in ["MEMORY_USED", "PAGECACHE_OVERFLOW", "MALLOC_SIZE"] {
        add(&mut sql, name, fields);
    }
    process
        .sections
        .push(Section::new(Some(process::SQL), Body::Counts(sql)));
    let mut databases = Databases::default();
    while let Some(database) = database(fields) {
        databases.lines.push(database);
    }
    if !databases.lines.is_empty() {
        let body = Body::Databases(databases);
        process
            .sections
            .push(Section::new(Some(process::DATABASES), body));
    }
}

fn add(pairs: &mut Pairs, name: &str, fields: &mut Fields<'_>) {
    let value = fields.number(0);
    fields.at += 1;
    pairs.lines.push(Entry {
        name: name.to_owned(),
        values: vec![value],
    });
}

fn database(fields: &mut Fields<'_>) -> Option<Database> {
    let name = fields.peek(0).filter(|name| !name.is_empty())?.to_owned();
    let size = |ahead: usize| fields.number(ahead).and_then(number::bytes);
    let mut database = Database {
        name,
        page: size(1),
        size: size(2),
        lookaside: fields.number(3),
        ..Database::default()
    };
    let one = fields.peek(4)?;
    let taken = if one.contains('/') {
        database.cache = vec![one.to_owned()];
        // The cache is printed twice.
        5 + usize::from(fields.peek(5) == Some(one))
    } else {
        database.cache = vec![
            one.to_owned(),
            fields.peek(5)?.to_owned(),
            fields.peek(6)?.to_owned(),
        ];
        7
    };
    fields.at += taken;
    Some(database)
}

/// Returns whether this is a line of `-c`.
pub(super) fn is_record(line: &str) -> bool {
    let kinds = [
        "version,", "oom,", "proc,", "cat,", "ram,", "lostram,", "zram,", "ksm,", "tuning,",
    ];
    kinds.iter().any(|kind| line.starts_with(kind))
}

impl Compact {
    pub(super) fn push(&mut self, line: &str) {
        self.records.push(line.to_owned());
    }

    /// Creates the lists. Since Android 11 they come twice without a label: RSS before PSS.
    pub(super) fn finish(&mut self) {
        let mut rounds: Vec<[List; 2]> = Vec::new();
        let mut was_category = true;
        for record in &self.records {
            let fields: Vec<&str> = record.split(',').take(8).collect();
            let category = match fields[0] {
                "oom" | "proc" => false,
                "cat" => true,
                _ => continue,
            };
            if was_category && !category {
                rounds.push([list("OOM adjustment"), list("category")]);
            }
            was_category = category;
            if let (Some(round), Some(item)) = (rounds.last_mut(), item(&fields)) {
                round[usize::from(category)].items.push(item);
            }
        }
        let twice = rounds.len() == 2;
        for (at, round) in rounds.into_iter().enumerate() {
            let measure = match twice && at == 0 {
                true => Measure::Rss,
                false => Measure::Pss,
            };
            let filled = round.into_iter().filter(|list| !list.items.is_empty());
            self.lists
                .extend(filled.map(|list| List { measure, ..list }));
        }
    }

    pub(super) fn numbers(&self, kind: &str) -> Option<Vec<i64>> {
        let numbers = self.records.iter().find_map(|record| {
            let (found, rest) = record.split_once(',')?;
            (found == kind).then_some(rest)
        })?;
        let numbers = numbers.split(',').take(8);
        numbers
            .map(|field| number::bytes(number::integer(field)?.0))
            .collect()
    }
}

fn list(by: &str) -> List {
    List {
        measure: Measure::Pss,
        by: by.to_owned(),
        items: Lines::default(),
    }
}

/// Parses `oom,LABEL,KB[,SWAP]`, `proc,OOM,NAME,PID,KB[,SWAP],a|e` or `cat,LABEL,KB[,SWAP]`.
fn item(fields: &[&str]) -> Option<Item> {
    let size = |at: usize| number::bytes(number::integer(fields.get(at)?)?.0);
    let swap = |at: usize| match size(at) {
        Some(bytes) => format!("  ({}K in swap)", bytes / 1024),
        None => String::new(),
    };
    let (depth, bytes, label) = match fields[0] {
        "proc" => {
            let activities = match fields.last() {
                Some(&"a") => " / activities",
                _ => "",
            };
            let pid: u32 = fields.get(3)?.parse().ok()?;
            let name = fields.get(2)?;
            (
                1,
                size(4)?,
                format!("{name} (pid {pid}{activities}){}", swap(5)),
            )
        }
        _ => (0, size(2)?, format!("{}{}", fields.get(1)?, swap(3))),
    };
    Some(Item {
        depth,
        bytes,
        label,
    })
}
