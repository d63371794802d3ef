//! Memory mappings of a process from `/proc/PID/smaps`, `smaps_rollup` and the output of `showmap`,
//! in one model. Assigns mappings to rows of `dumpsys meminfo`, sums them by kind, library and
//! mapping, and compares two states.
//!
//! | file | owns |
//! |---|---|
//! | `mapping` | the memory mappings of a process |
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
mod mapping;
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
pub use mapping::{Form, Mapping, Smaps};
pub use names::{library_name, stable};
pub use read::{Reader, SmapsError};
pub use split::{ProcessText, split};

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

impl Smaps {
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
