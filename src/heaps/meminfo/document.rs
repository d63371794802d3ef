//! The document of `meminfo`: breakdown, rows, summary, objects and databases of each process;
//! lists and RAM of the device. Sizes in bytes. `diff` reads it again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::whole_phone::PhoneFacts;
use android_memory::meminfo::{Column, Database, Meminfo, Pairs, Process, Row, Rule, Table};
use heaptap_model::timeline::{Cost, Parts, Source};
use heaptap_results::findings::Finding;
use heaptap_results::lists::process_name;

/// Value of `kind` in such a document.
pub const KIND: &str = "meminfo";

/// Document of `meminfo`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Document {
    /// `meminfo`.
    pub kind: String,
    /// Serial number of the device, or the file.
    #[serde(rename = "source")]
    pub from: String,
    /// Time of the query since boot of the device, in ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub realtime_ms: Option<u64>,
    /// Whether the apps collected garbage for it; absent if unknown for a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collected_garbage: Option<bool>,
    /// Cost of the query on the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    #[serde(default)]
    pub processes: Vec<ProcessFacts>,
    /// The whole device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "device")]
    pub phone: Option<PhoneFacts>,
    /// Readable problems.
    #[serde(default)]
    #[serde(rename = "problems")]
    pub troubles: Vec<String>,
    /// Unparsed lines.
    #[serde(default)]
    pub unknown: Vec<String>,
    /// Warnings about selected processes that it does not have.
    #[serde(skip)]
    pub missing: Vec<Finding>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessFacts {
    pub pid: Option<u32>,
    pub name: Option<String>,
    /// Memory breakdown by the rules of App Summary.
    pub parts: Option<Parts>,
    /// Columns of `rows` and `details`, in order.
    pub columns: Vec<String>,
    /// Rows of the table, including TOTAL.
    pub rows: Vec<RowFacts>,
    /// Parts of the Dalvik rows.
    #[serde(default)]
    pub details: Vec<RowFacts>,
    /// Columns whose rows do not add up to the device's total.
    #[serde(default)]
    pub differences: Vec<Difference>,
    /// App Summary, line by line.
    #[serde(default)]
    pub summary: Vec<RowFacts>,
    /// Objects by name.
    #[serde(default)]
    pub objects: Vec<Count>,
    /// SQLite values, in kB as printed by the device.
    #[serde(default)]
    pub sql: Vec<Count>,
    /// Bitmaps and other native memory of Java objects: `count` and `bytes`.
    #[serde(default)]
    pub native_allocations: Vec<RowFacts>,
    #[serde(default)]
    pub databases: Vec<DatabaseFacts>,
    /// Assets, unreachable memory and unknown lines, with their headings.
    #[serde(default)]
    pub texts: Vec<TextFacts>,
}

/// A row: bytes by column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowFacts {
    pub label: String,
    pub values: BTreeMap<String, i64>,
}

/// A total and the sum of its rows, in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    pub column: String,
    /// `rows`, or `rows-and-swap`.
    pub rule: String,
    /// Sum of the rows.
    pub rows: i64,
    /// Total printed by the device.
    pub device: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    pub name: String,
    pub count: i64,
}

/// A database, or a pool of connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatabaseFacts {
    pub name: String,
    /// Size in bytes.
    pub bytes: Option<i64>,
    /// Size of a page, bytes.
    pub page_bytes: Option<i64>,
    /// Lookaside memory, bytes.
    pub lookaside: Option<i64>,
    /// Hits, misses and size of the cache of statements, as printed.
    pub cache: String,
    /// True if the values are those of a pool.
    pub pool: bool,
}

/// An unparsed line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextFacts {
    /// Preceding heading.
    pub section: Option<String>,
    pub line: String,
}

impl Document {
    /// Builds the document from the parsed output.
    pub fn new(meminfo: &Meminfo, from: String, source: Source) -> Document {
        let phone = PhoneFacts::from_meminfo(meminfo);
        let whole = !phone.lists.is_empty() || !phone.ram.is_empty();
        Document {
            kind: KIND.to_owned(),
            from,
            realtime_ms: meminfo.clocks().map(|clocks| clocks.realtime_ms),
            collected_garbage: None,
            cost: None,
            processes: meminfo
                .processes()
                .map(|process| ProcessFacts::new(process, source))
                .collect(),
            phone: whole.then_some(phone),
            missing: Vec::new(),
            troubles: meminfo.trouble().map(str::to_owned).into_iter().collect(),
            unknown: meminfo.unknown().map(str::to_owned).collect(),
        }
    }
}

impl RowFacts {
    fn new(table: &Table, row: &Row) -> RowFacts {
        let columns = table.headings.columns.iter();
        let cells = columns.zip(&row.cells);
        RowFacts {
            label: row.label.clone(),
            values: cells
                .filter_map(|(heading, cell)| Some((heading.column.key().to_owned(), (*cell)?)))
                .collect(),
        }
    }

    pub fn value(&self, column: &Column) -> Option<i64> {
        self.values.get(column.key()).copied()
    }
}

fn rows(table: Option<&Table>) -> Vec<RowFacts> {
    let rows = table.map(|table| table.rows.values().map(|row| RowFacts::new(table, row)));
    rows.into_iter().flatten().collect()
}

fn counts(pairs: Option<&Pairs>) -> Vec<Count> {
    let entries = pairs.into_iter().flat_map(Pairs::entries);
    entries
        .filter_map(|entry| {
            Some(Count {
                name: entry.name.clone(),
                count: entry.values.iter().copied().find(Option::is_some)??,
            })
        })
        .collect()
}

/// Values below headings such as `Pss(KB)` and `Count`, as `pss` in bytes and `count`.
fn headed(pairs: Option<&Pairs>) -> Vec<RowFacts> {
    let Some(pairs) = pairs else {
        return Vec::new();
    };
    let column = |at: usize| {
        let heading = pairs.headings.get(at).map_or("Pss(KB)", |(name, _)| name);
        match heading.to_ascii_lowercase().strip_suffix("(kb)") {
            Some("total") => ("bytes".to_owned(), 1024),
            Some(name) => (name.to_owned(), 1024),
            None => (heading.to_ascii_lowercase(), 1),
        }
    };
    let entries = pairs.entries();
    entries
        .map(|entry| {
            let values = entry.values.iter().enumerate();
            let of = |(at, value): (usize, &Option<i64>)| {
                let (name, unit) = match entry.name.as_str() {
                    "TOTAL RSS" => ("rss".to_owned(), 1024),
                    "TOTAL SWAP PSS" | "TOTAL SWAP (KB)" => ("swap".to_owned(), 1024),
                    _ => column(at),
                };
                Some((name, value.as_ref()?.saturating_mul(unit)))
            };
            RowFacts {
                label: entry.name.clone(),
                values: values.filter_map(of).collect(),
            }
        })
        .collect()
}

impl ProcessFacts {
    pub fn new(process: &Process, source: Source) -> ProcessFacts {
        let table = process.table();
        let columns = table.map(|table| &table.headings.columns);
        let sums = table.map(Table::sums).unwrap_or_default();
        let databases = process.databases();
        let databases = databases.into_iter().flat_map(|all| all.lines.values());
        ProcessFacts {
            pid: process.pid,
            name: process.name.clone(),
            parts: process.parts(source),
            columns: columns
                .into_iter()
                .flatten()
                .map(|heading| heading.column.key().to_owned())
                .collect(),
            rows: rows(table),
            details: rows(process.details()),
            differences: sums
                .into_iter()
                .filter(|sum| sum.difference() != 0)
                .map(|sum| Difference {
                    column: sum.column.key().to_owned(),
                    rule: match sum.rule {
                        Rule::Rows => "rows".to_owned(),
                        Rule::RowsAndSwap => "rows-and-swap".to_owned(),
                    },
                    rows: sum.rows,
                    device: sum.device,
                })
                .collect(),
            summary: headed(process.summary()),
            objects: counts(process.counts("Objects")),
            sql: counts(process.counts("SQL")),
            native_allocations: headed(process.counts("Native Allocations")),
            databases: databases.map(DatabaseFacts::from_database).collect(),
            texts: process
                .texts()
                .map(|(section, line)| TextFacts {
                    section: section.map(str::to_owned),
                    line: line.to_owned(),
                })
                .collect(),
        }
    }

    /// Returns its name and pid for messages.
    pub fn called(&self) -> String {
        let name = self.name.as_deref().unwrap_or_default();
        process_name(self.pid.unwrap_or(0).into(), name)
    }

    /// Returns the device's total, or the sum of the rows.
    pub fn total(&self, column: &Column) -> Option<i64> {
        let total = self.rows.iter().find(|row| row.label == "TOTAL");
        total.and_then(|row| row.value(column))
    }
}

impl DatabaseFacts {
    fn from_database(database: &Database) -> DatabaseFacts {
        DatabaseFacts {
            name: database.name.clone(),
            bytes: database.size,
            page_bytes: database.page,
            lookaside: database.lookaside,
            cache: database.cache.join("/"),
            pool: database.pool,
        }
    }
}

/// One value of a document: a line of CSV, and the unit of `diff`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure<'a> {
    /// Section: `table`, `details`, `summary`, `objects` …
    pub section: &'static str,
    pub row: &'a str,
    pub column: &'a str,
    pub value: i64,
    /// `bytes` or `count`.
    pub unit: &'static str,
}

impl ProcessFacts {
    /// Returns all values, in the order of the output.
    pub fn figures(&self) -> Vec<Figure<'_>> {
        let mut figures = Vec::new();
        let columns: Vec<&str> = self.columns.iter().map(String::as_str).collect();
        add_rows(&mut figures, "table", &self.rows, &columns);
        add_rows(&mut figures, "details", &self.details, &columns);
        add_rows(
            &mut figures,
            "summary",
            &self.summary,
            &["pss", "rss", "swap"],
        );
        for (section, counts) in [("objects", &self.objects), ("sql", &self.sql)] {
            figures.extend(counts.iter().map(|count| Figure {
                section,
                row: &count.name,
                column: "count",
                value: count.count,
                unit: "count",
            }));
        }
        let allocations = &self.native_allocations;
        add_rows(
            &mut figures,
            "native_allocations",
            allocations,
            &["count", "bytes"],
        );
        figures.extend(self.databases.iter().filter_map(|database| {
            Some(Figure {
                section: "databases",
                row: &database.name,
                column: "size",
                value: database.bytes?,
                unit: "bytes",
            })
        }));
        figures
    }
}

impl PhoneFacts {
    /// Returns the values of its lists and of its RAM. Members of groups are in the list by
    /// process.
    pub(super) fn figures(&self) -> Vec<(Option<u32>, Figure<'_>)> {
        let bytes = |section, row, column, value| Figure {
            section,
            row,
            column,
            value,
            unit: "bytes",
        };
        let mut figures = Vec::new();
        for line in &self.ram {
            // Limits of Java heaps and other things, no memory.
            if line.name == "Tuning" {
                continue;
            }
            if let Some(value) = line.bytes {
                figures.push((None, bytes("ram", line.name.as_str(), "total", value)));
            }
        }
        for list in &self.lists {
            let section = match list.by.as_str() {
                "process" => "device_processes",
                "category" => "device_categories",
                "OOM adjustment" => "device_oom",
                _ => "device",
            };
            for item in list.items.iter().filter(|item| item.depth == 0) {
                let name = item.name.as_str();
                figures.push((
                    item.pid,
                    bytes(section, name, list.measure.as_str(), item.bytes),
                ));
            }
        }
        figures
    }
}

fn add_rows<'a>(
    figures: &mut Vec<Figure<'a>>,
    section: &'static str,
    rows: &'a [RowFacts],
    columns: &[&'a str],
) {
    for row in rows {
        for column in columns {
            if let Some(value) = row.values.get(*column) {
                figures.push(Figure {
                    section,
                    row: &row.label,
                    column,
                    value: *value,
                    unit: if *column == "count" { "count" } else { "bytes" },
                });
            }
        }
    }
}
