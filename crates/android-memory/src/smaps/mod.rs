//! What a process has mapped: `/proc/PID/smaps`, `smaps_rollup`, and what `showmap` makes of
//! them, read into one model; the rows of `dumpsys meminfo` that mappings count as; sums by kind,
//! by library and by mapping; and what changed between two of them.
//!
//! | file | owns |
//! |---|---|
//! | `read` | the kernel's text, line by line, of any size |
//! | `showmap` | showmap's table, CSV and JSON |
//! | `kind` | which row of meminfo a mapping counts as |
//! | `names` | names that are the same in the next run |
//! | `group` | sums by kind, library and mapping |
//! | `change` | two of them side by side |

mod change;
mod group;
mod kind;
mod names;
mod read;
mod showmap;
#[cfg(test)]
mod tests;

pub use change::{Change, Changes, changes};
pub use group::{By, Group, Grouped, Groups};
pub use heaptap_model::smaps::{Field, Module, SmapsRow, SmapsRows, SmapsWriter, Sums};
pub use kind::{Kind, SubKind};
pub use names::{library_name, stable};
pub use read::{Reader, SmapsError};

use std::collections::BTreeMap;

use super::division::{Division, Part};
use heaptap_model::timeline::{Parts, Source};

/// Reads a text of any form: smaps, smaps_rollup, showmap's table, its CSV or JSON.
///
/// # Errors
/// Where nothing in it is a mapping.
pub fn parse(text: &[u8]) -> Result<Smaps, SmapsError> {
    if let Some(smaps) = showmap::parse(text) {
        return smaps;
    }
    let mut reader = Reader::default();
    reader.feed(text)?;
    reader.finish()
}

/// A mapping, or several of one name that the source had added up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mapping {
    /// First address; 0 where the source has none.
    pub start: u64,
    /// Address after the last.
    pub end: u64,
    /// `rw-p`; empty where the source does not say.
    pub permissions: String,
    /// Offset in the file.
    pub offset: u64,
    /// The file, the kernel's or the program's name for it, or empty. Without ` (deleted)`.
    pub name: String,
    /// Its file is gone.
    pub deleted: bool,
    /// How many mappings it stands for.
    pub count: u64,
    /// The kernel's flags (`rd wr mr mw me ac`), where it tells them.
    pub flags: String,
    /// Its figures.
    pub sums: Sums,
}

/// How much of the process an input holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// Each mapping by itself.
    #[default]
    Mappings,
    /// Mappings of one name added up.
    ByName,
    /// One sum of all (`smaps_rollup`).
    Rollup,
}

/// What a process has mapped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Smaps {
    /// Its mappings, in the order of the source.
    pub mappings: Vec<Mapping>,
    /// How they are told apart.
    pub form: Form,
    /// Sums of figures that heaptap does not interpret (`AnonHugePages`, `KSM`, what a kernel to
    /// come may have), by the kernel's names, bytes.
    pub others: BTreeMap<String, u64>,
    /// Lines that are none of smaps: a few of them, as they were.
    pub strange: Vec<String>,
    /// How many such lines there were.
    pub strange_count: u64,
    /// The text ends within a mapping.
    pub cut: bool,
}

impl Smaps {
    /// The same as what is read from texts, of what a trace holds.
    pub fn of_rows(rows: &SmapsRows) -> Smaps {
        let mappings = rows.rows.iter().map(|row| {
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
            form: match rows.aggregated {
                true => Form::ByName,
                false => Form::Mappings,
            },
            cut: rows.damaged,
            ..Smaps::default()
        }
    }

    /// The sum of all mappings.
    pub fn total(&self) -> Sums {
        let mut total = Sums::default();
        for mapping in &self.mappings {
            total += &mapping.sums;
        }
        total
    }

    /// Number of mappings in the process.
    pub fn count(&self) -> u64 {
        let counts = self.mappings.iter().map(|mapping| mapping.count);
        counts.fold(0, u64::saturating_add)
    }

    /// Whether it is one sum of all.
    pub fn is_rollup(&self) -> bool {
        self.form == Form::Rollup
    }

    /// How the memory divides by the rules of meminfo's App Summary (Android 11). Memory that
    /// only the graphics driver counts is in no mapping, so `graphics` is less than meminfo's.
    /// `None` for a single sum.
    pub fn parts(&self) -> Option<Parts> {
        if self.is_rollup() || self.mappings.is_empty() {
            return None;
        }
        let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        let mut division = Division::default();
        for (mapping, kind, sub) in self.classified() {
            let part = Part::of_row(kind.label());
            let part = part.or_else(|| Part::of_detail(sub?.label()));
            let dirty = signed(mapping.sums.of(Field::PrivateDirty));
            let clean = signed(mapping.sums.of(Field::PrivateClean));
            division.add(part, dirty, clean);
        }
        let total = self.total();
        let pss = signed(total.of(Field::Pss).saturating_add(total.swapped()));
        let mut parts = division.parts(Source::Smaps, signed(total.private()), pss);
        parts.total_rss = total.get(Field::Rss);
        parts.swap = total.get(Field::SwapPss).or(total.get(Field::Swap));
        Some(parts)
    }
}
