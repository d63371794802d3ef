//! Mappings as a trace holds them: rows of a packet, with what only such rows have. The wire
//! format is the trace reader's.

use std::sync::Arc;

use super::{Field, Form, Mapping, Smaps, Sums};

/// Who wrote it, and from where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SmapsWriter {
    /// Not told: traces from before the field.
    #[default]
    Unknown,
    /// Read from outside of the process.
    Standalone,
    /// By the child that ART forks to dump the heap: with pages that parent and child share, so
    /// that PSS, private and shared pages mislead.
    ArtPostFork,
    /// By ART before it forked.
    ArtPreFork,
}

impl SmapsWriter {
    /// Whether only sizes, RSS and swap are those of the process.
    pub fn shares_mislead(self) -> bool {
        self == SmapsWriter::ArtPostFork
    }

    /// By the number that Perfetto gives it.
    pub fn of_number(number: u64) -> SmapsWriter {
        match number {
            1 => SmapsWriter::Standalone,
            2 => SmapsWriter::ArtPostFork,
            3 => SmapsWriter::ArtPreFork,
            _ => SmapsWriter::Unknown,
        }
    }

    /// What must be known of its figures; `None` where they are what they seem.
    pub fn remark(self) -> Option<&'static str> {
        self.shares_mislead().then_some(
            "written by the process that ART forks for a heap dump: its pages are shared with the \
             app, so PSS, private and shared pages mislead; sizes, RSS and swap hold",
        )
    }
}

/// What only entries have, and only those of Windows and macOS fill.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Module {
    /// Name of the file.
    pub file_name: Option<String>,
    /// First address.
    pub start_address: u64,
    /// Time stamp of the module.
    pub timestamp: u64,
    /// Identity of its debug file.
    pub debug_id: Option<String>,
    /// Its debug file.
    pub debug_path: Option<String>,
    /// Protection flags.
    pub protection_flags: u32,
}

/// A row of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SmapsRow {
    /// The path as recorded; `None` where it has none.
    pub path: Option<Arc<str>>,
    /// Mappings it stands for.
    pub count: u64,
    /// Its figures, bytes.
    pub sums: Sums,
    /// What only entries have.
    pub module: Option<Box<Module>>,
}

/// What the kernel adds where a file is gone.
const DELETED: &str = " (deleted)";

impl SmapsRow {
    /// The path without the kernel's remark that the file is gone.
    pub fn trimmed(&self) -> Option<&str> {
        let path = self.path.as_deref()?;
        Some(path.strip_suffix(DELETED).unwrap_or(path))
    }

    /// Whether the file is gone.
    pub fn is_deleted(&self) -> bool {
        self.path.as_deref().is_some_and(|p| p.ends_with(DELETED))
    }
}

/// Mappings of a process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SmapsRows {
    /// In order of the packet.
    pub rows: Vec<SmapsRow>,
    /// Rows are sums of mappings with one name.
    pub aggregated: bool,
    /// The packet contradicts itself, or breaks off: there are fewer rows than there were.
    pub damaged: bool,
}

impl SmapsRows {
    /// The same as what is read from texts.
    pub fn to_smaps(&self) -> Smaps {
        let mappings = self.rows.iter().map(|row| {
            let module = row.module.as_deref();
            let start = module.map_or(0, |module| module.start_address);
            let size = row.sums.of(Field::Size);
            Mapping {
                start,
                end: match start {
                    0 => 0,
                    start => start.saturating_add(size),
                },
                name: row.trimmed().unwrap_or_default().to_owned(),
                deleted: row.is_deleted(),
                count: row.count.max(1),
                sums: row.sums,
                ..Mapping::default()
            }
        });
        Smaps {
            mappings: mappings.collect(),
            form: match self.aggregated {
                true => Form::ByName,
                false => Form::Mappings,
            },
            cut: self.damaged,
            ..Smaps::default()
        }
    }
}
