//! Memory mappings of a process from `/proc/PID/smaps`, `smaps_rollup` and the output of `showmap`,
//! in one model. Assigns mappings to rows of `dumpsys meminfo`, sums them by kind, library and
//! mapping, and compares two states.
//!
//! | file | owns |
//! |---|---|
//! | `read` | the kernel's text of any size, line by line |
//! | `showmap` | table, CSV and JSON of showmap |
//! | `split` | the processes of a text that has several |
//! | `kind` | the row of meminfo for a mapping |
//! | `names` | names that are stable across runs |
//! | `group` | sums by kind, library and mapping |
//! | `change` | comparison of two states |

mod change;
mod group;
mod kind;
mod names;
mod read;
mod showmap;
mod split;
#[cfg(test)]
mod tests;

pub use change::{Change, Changes, changes};
pub use group::{By, Group, Grouped, Groups};
pub use heaptap_model::smaps::{Field, Module, SmapsRow, SmapsRows, SmapsWriter, Sums};
pub use kind::{Kind, SubKind};
pub use names::{library_name, stable};
pub use read::{Reader, SmapsError};
pub use split::{ProcessText, split};

use std::collections::BTreeMap;

use super::division::{Division, Part};
use heaptap_base::text::plain;
use heaptap_model::timeline::{Parts, Source};

/// Parses a text of any form: smaps, smaps_rollup, showmap's table, its CSV or JSON.
///
/// # Errors
/// Returns an error if the text does not contain a memory mapping.
pub fn parse(text: &[u8]) -> Result<Smaps, SmapsError> {
    let text = &*plain(text);
    if let Some(smaps) = showmap::parse(text) {
        return smaps;
    }
    let mut reader = Reader::default();
    reader.feed(text)?;
    reader.finish()
}

/// A memory mapping, or several with the same name summed by the source.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mapping {
    /// First address; 0 if the source does not have one.
    pub start: u64,
    pub end: u64,
    /// `rw-p`; empty if unknown.
    pub permissions: String,
    /// Offset in the file, bytes.
    pub offset: u64,
    /// File, or name from the kernel or the program; can be empty. Without ` (deleted)`.
    pub name: String,
    /// Number of mappings in this entry.
    pub count: u64,
    pub sums: Sums,
}

/// Level of detail of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// Each mapping separately.
    #[default]
    Mappings,
    /// Mappings with the same name are summed.
    ByName,
    /// One sum of all mappings (`smaps_rollup`).
    Rollup,
}

/// Memory mappings of a process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Smaps {
    /// Mappings in the order of the source.
    pub mappings: Vec<Mapping>,
    /// Level of detail.
    pub form: Form,
    /// Sums of figures that heaptap does not interpret (`AnonHugePages`, `KSM`, those of future
    /// kernels), by the kernel's names, bytes.
    pub others: BTreeMap<String, u64>,
    /// Examples of lines that are not smaps lines, sanitized.
    pub strange: Vec<String>,
    /// Number of such lines.
    pub strange_count: u64,
    /// True if the text ends inside a mapping.
    pub cut: bool,
}

impl Smaps {
    /// Converts rows of a trace to the same model as texts.
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

    /// Returns the sum of all mappings.
    pub fn total(&self) -> Sums {
        let mut total = Sums::default();
        for mapping in &self.mappings {
            total += &mapping.sums;
        }
        total
    }

    /// Returns the number of mappings in the process.
    pub fn count(&self) -> u64 {
        let counts = self.mappings.iter().map(|mapping| mapping.count);
        counts.fold(0, u64::saturating_add)
    }

    /// Returns whether the input is one sum of all mappings.
    pub fn is_rollup(&self) -> bool {
        self.form == Form::Rollup
    }

    /// Divides the memory by the rules of meminfo's App Summary (Android 11). Memory counted only
    /// by the graphics driver is not in a mapping, so `graphics` is less than meminfo's. Returns
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
