//! What a process has mapped: `/proc/PID/smaps`, `smaps_rollup`, and what `showmap` makes of
//! them, read into one model; the rows of `dumpsys meminfo` that mappings count as; sums by kind,
//! by library and by mapping; and what changed between two of them.
//!
//! | file | owns |
//! |---|---|
//! | `read` | the kernel's text, line by line, of any size |
//! | `showmap` | showmap's table, CSV and JSON |
//! | `recorded` | rows of a trace |
//! | `kind` | which row of meminfo a mapping counts as |
//! | `names` | names that are the same in the next run |
//! | `group` | sums by kind, library and mapping |
//! | `change` | two of them side by side |

mod change;
mod group;
mod kind;
mod names;
mod read;
mod recorded;
mod showmap;
#[cfg(test)]
mod tests;

pub use change::{Change, Changes, changes};
pub use group::{By, Group, Grouped, Groups};
pub use kind::{Kind, SubKind};
pub use names::{library_name, stable};
pub use read::{Reader, SmapsError, parse};
pub use recorded::{Module, SmapsRow, SmapsRows, SmapsWriter};

use std::collections::BTreeMap;
use std::ops::AddAssign;

use super::division::{Division, Part};
use super::timeline::{Parts, Source};

/// A figure of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Field {
    /// Address space.
    Size,
    /// Resident.
    Rss,
    /// Resident, shared pages by their share.
    Pss,
    /// Of that the dirty ones (Linux 6.0).
    PssDirty,
    /// Clean pages that others have mapped, too.
    SharedClean,
    /// Dirty pages that others have mapped, too.
    SharedDirty,
    /// Clean pages of this process alone.
    PrivateClean,
    /// Dirty pages of this process alone: what it costs.
    PrivateDirty,
    /// In swap or ZRAM, before compression.
    Swap,
    /// The same by its share (Linux 4.3).
    SwapPss,
    /// Resident and of no file.
    Anonymous,
    /// Locked in memory.
    Locked,
}

impl Field {
    /// All of them, in the order they are listed.
    pub const ALL: [Field; 12] = [
        Field::Size,
        Field::Rss,
        Field::Pss,
        Field::PssDirty,
        Field::SharedClean,
        Field::SharedDirty,
        Field::PrivateClean,
        Field::PrivateDirty,
        Field::Swap,
        Field::SwapPss,
        Field::Anonymous,
        Field::Locked,
    ];

    /// Its name in JSON and CSV.
    pub fn name(self) -> &'static str {
        match self {
            Field::Size => "size",
            Field::Rss => "rss",
            Field::Pss => "pss",
            Field::PssDirty => "pss_dirty",
            Field::SharedClean => "shared_clean",
            Field::SharedDirty => "shared_dirty",
            Field::PrivateClean => "private_clean",
            Field::PrivateDirty => "private_dirty",
            Field::Swap => "swap",
            Field::SwapPss => "swap_pss",
            Field::Anonymous => "anonymous",
            Field::Locked => "locked",
        }
    }

    /// The field of a line of the kernel's.
    pub(crate) fn of_kernel(key: &str) -> Option<Field> {
        Some(match key {
            "Size" => Field::Size,
            "Rss" => Field::Rss,
            "Pss" => Field::Pss,
            "Pss_Dirty" => Field::PssDirty,
            "Shared_Clean" => Field::SharedClean,
            "Shared_Dirty" => Field::SharedDirty,
            "Private_Clean" => Field::PrivateClean,
            "Private_Dirty" => Field::PrivateDirty,
            "Swap" => Field::Swap,
            "SwapPss" => Field::SwapPss,
            "Anonymous" => Field::Anonymous,
            "Locked" => Field::Locked,
            _ => return None,
        })
    }
}

/// Figures of a mapping or of many, bytes. What no source gave is not 0 but absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sums {
    bytes: [u64; Field::ALL.len()],
    known: u16,
}

impl Sums {
    /// A figure; `None` where no source gave it.
    pub fn get(&self, field: Field) -> Option<u64> {
        let at = field as usize;
        (self.known >> at & 1 == 1).then(|| self.bytes[at])
    }

    /// A figure; 0 where no source gave it.
    pub fn of(&self, field: Field) -> u64 {
        self.bytes[field as usize]
    }

    /// Sets a figure.
    pub fn set(&mut self, field: Field, bytes: u64) {
        self.bytes[field as usize] = bytes;
        self.known |= 1 << field as usize;
    }

    /// Private pages, dirty and clean: what ends with the process.
    pub fn private(&self) -> u64 {
        self.of(Field::PrivateDirty)
            .saturating_add(self.of(Field::PrivateClean))
    }

    /// What is swapped out, by its share where the kernel knows that.
    pub fn swapped(&self) -> u64 {
        self.get(Field::SwapPss).unwrap_or(self.of(Field::Swap))
    }

    /// Private dirty pages and what of them is swapped out: what the process costs whether it
    /// was just squeezed or not.
    pub fn dirty_and_swapped(&self) -> u64 {
        self.of(Field::PrivateDirty).saturating_add(self.swapped())
    }
}

#[allow(
    clippy::suspicious_op_assign_impl,
    reason = "what either side knows is known of the sum"
)]
impl AddAssign<&Sums> for Sums {
    fn add_assign(&mut self, other: &Sums) {
        for (sum, more) in self.bytes.iter_mut().zip(other.bytes) {
            *sum = sum.saturating_add(more);
        }
        self.known |= other.known;
    }
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
