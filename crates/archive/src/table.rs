//! The tables: names, columns, order of rows.

use heaptap_tables::{Column, Holds, Schema, always, maybe};

/// Schema of the dataset. Its version is the directory `v1`.
pub(crate) const SCHEMA: Schema = Schema {
    name: "heaptap-archive",
    version: 1,
    level: 9,
};

/// A table of the dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    Recording,
    Dump,
    Sample,
    Class,
    Leak,
    Callsite,
    ClassName,
    LeakName,
}

/// Columns of `recording` that the commit protocol reads.
pub(crate) const UNIT: usize = 0;
pub(crate) const GENERATION: usize = 1;
pub(crate) const FILE: usize = 2;
pub(crate) const SHA256: usize = 4;
/// Column of the hash in the tables of names.
pub(crate) const HASH: usize = 0;

impl Table {
    /// All tables.
    pub const ALL: [Table; 8] = [
        Table::Recording,
        Table::Dump,
        Table::Sample,
        Table::Class,
        Table::Leak,
        Table::Callsite,
        Table::ClassName,
        Table::LeakName,
    ];

    /// Tables whose rows are of a recording, without `recording`.
    pub(crate) const ROWS: [Table; 4] = [Table::Dump, Table::Sample, Table::Class, Table::Leak];

    /// Tables of names: the first column is the hash.
    pub(crate) const NAMES: [Table; 3] = [Table::Callsite, Table::ClassName, Table::LeakName];

    /// Returns the name of the table and its directory.
    pub fn name(self) -> &'static str {
        match self {
            Table::Recording => "recording",
            Table::Dump => "dump",
            Table::Sample => "sample",
            Table::Class => "class",
            Table::Leak => "leak",
            Table::Callsite => "callsite",
            Table::ClassName => "class_name",
            Table::LeakName => "leak_name",
        }
    }

    /// Returns whether the table is of names, whose partitions have no day.
    pub(crate) fn is_of_names(self) -> bool {
        Table::NAMES.contains(&self)
    }

    pub fn columns(self) -> Vec<Column> {
        use Holds::{Bool, Int, Text};
        match self {
            Table::Recording => vec![
                always("unit", Int),
                always("generation", Int),
                always("file", Text),
                always("rec", Int),
                always("sha256", Text),
                maybe("started_ms", Int),
                maybe("phone", Text),
                maybe("model", Text),
                maybe("sdk", Int),
                always("device_class", Text),
                maybe("scenario", Text),
                maybe("run", Int),
                maybe("verdict", Text),
                always("complete", Bool),
                always("heaptap", Text),
            ],
            Table::Dump => vec![
                always("unit", Int),
                always("rec", Int),
                always("dump", Int),
                always("number", Int),
                maybe("label", Text),
                always("pid", Int),
                maybe("process", Text),
                always("heap", Text),
                always("kind", Text),
                maybe("time_ns", Int),
                maybe("interval_bytes", Int),
                always("is_last", Bool),
                maybe("alloc_bytes", Int),
                maybe("alloc_n", Int),
                maybe("live_bytes", Int),
                maybe("live_n", Int),
            ],
            Table::Sample => vec![
                always("unit", Int),
                always("is_last", Bool),
                always("callsite", Int),
                always("rec", Int),
                always("dump", Int),
                maybe("alloc_bytes", Int),
                maybe("alloc_n", Int),
                maybe("live_bytes", Int),
                maybe("live_n", Int),
            ],
            Table::Class => vec![
                always("unit", Int),
                always("is_last", Bool),
                always("class", Int),
                always("rec", Int),
                always("dump", Int),
                always("objects", Int).plain(),
                always("shallow_bytes", Int).plain(),
                always("native_bytes", Int).plain(),
                always("retained_bytes", Int).plain(),
            ],
            Table::Leak => vec![
                always("unit", Int),
                always("is_last", Bool),
                always("leak", Int),
                always("rec", Int),
                always("dump", Int),
                always("certainty", Text),
                always("known", Bool),
                always("objects", Int),
                always("retained_bytes", Int),
            ],
            Table::Callsite => vec![
                always("callsite", Int),
                always("leaf", Text),
                maybe("library", Text),
                always("stack", Text),
            ],
            Table::ClassName => vec![always("class", Int), always("name", Text)],
            Table::LeakName => vec![
                always("leak", Int),
                always("class", Text),
                always("path", Text),
            ],
        }
    }

    /// Returns the columns by which a compacted file is sorted. Questions read the last dumps, one
    /// callsite after the other; neighbors in this order are similar, so they compress well.
    pub(crate) fn order(self) -> &'static [usize] {
        match self {
            Table::Recording => &[3],
            Table::Dump => &[1, 2],
            Table::Sample | Table::Class | Table::Leak => &[1, 2, 3, 4],
            // Neighbors have a common beginning.
            Table::Callsite => &[3, 0],
            Table::ClassName | Table::LeakName => &[1, 0],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_the_commit_protocol_are_at_their_positions() {
        let recording = Table::Recording.columns();
        let positions = [
            (UNIT, "unit"),
            (GENERATION, "generation"),
            (FILE, "file"),
            (SHA256, "sha256"),
        ];
        for (position, name) in positions {
            assert_eq!(recording[position].name, name);
        }
        for table in Table::ROWS {
            assert_eq!(table.columns()[UNIT].name, "unit", "{table:?}");
        }
        for table in Table::NAMES {
            let columns = table.columns();
            assert_eq!(columns[HASH].holds, Holds::Int, "{table:?}");
            let rows = [Table::Sample, Table::Class, Table::Leak];
            let is_in = |rows: Table| rows.columns().iter().any(|c| c.name == columns[HASH].name);
            assert!(rows.into_iter().any(is_in), "{table:?}");
        }
    }
}
