//! The memory mappings of a process: each with its sums, and those of all.

use std::collections::BTreeMap;

use heaptap_model::smaps::{Field, SmapsRows, Sums};

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
}
