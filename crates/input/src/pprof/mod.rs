//! pprofs from any tool: Go, Perfetto's converter, jemalloc, tcmalloc and heaptap. Finds them in
//! files and directories, unpacks them, and reads each as one dump of named stacks.
//!
//! The format is `perftools.profiles.Profile` (proto3), optionally in gzip. From a damaged profile,
//! everything readable is returned, together with a description of the damage.
//!
//! | file | owns |
//! |---|---|
//! | `message` | the wire format |
//! | `measures` | meaning of the columns |
//! | `read` | stacks, names, checks |
//! | `facts` | facts in profiles that heaptap wrote |
//! | `find` | files and directories |

mod facts;
mod find;
mod measures;
mod message;
mod read;

pub use find::PprofInput;
pub(super) use find::{in_directory, of_bytes};

use heaptap_base::units::counted;
use heaptap_model::stacks::StackProfile;
use message::Message;
use std::fmt;

/// A decoded pprof.
#[derive(Debug)]
pub struct Pprof {
    /// Profile with exactly one dump.
    pub profile: StackProfile,
    /// Damage, if any.
    pub damage: Option<PprofDamage>,
}

/// Counts of the damage in a pprof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PprofDamage {
    /// The profile is truncated.
    pub cut: bool,
    /// Messages that cannot be fully read.
    pub messages: u64,
    /// Columns beyond the limit; no tool writes that many.
    pub columns: u64,
    /// Columns whose name is missing, so that the meaning of their figures is unknown.
    pub unnamed_columns: u64,
    /// Samples with too few or too many values for the columns.
    pub samples: u64,
    /// References to missing locations.
    pub locations: u64,
    /// References to missing functions.
    pub functions: u64,
    /// References to missing strings.
    pub strings: u64,
    /// Stacks truncated because the profile expands far beyond its size.
    pub cut_stacks: u64,
    /// Samples dropped because they need too much memory for the file size.
    pub dropped_samples: u64,
    /// Other entries dropped because they need too much memory for the file size, and samples not
    /// counted for their thread because that thread was dropped.
    pub dropped_entries: u64,
}

impl Pprof {
    /// Returns whether any column has its name. All names are at the end of a file, and without
    /// them the values have no meaning.
    pub fn has_names(&self) -> bool {
        let unnamed = self.damage.map_or(0, |damage| damage.unnamed_columns);
        let dumps = self.profile.dumps.iter();
        unnamed < dumps.map(|dump| dump.measures.len() as u64).sum()
    }
}

impl fmt::Display for PprofDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let losses = [
            (self.messages, "damaged message", "damaged messages"),
            (
                self.columns,
                "column beyond the limit",
                "columns beyond the limit",
            ),
            (
                self.unnamed_columns,
                "sample type without its name and unit",
                "sample types without their names and units",
            ),
            (
                self.samples,
                "sample whose values do not match the columns",
                "samples whose values do not match the columns",
            ),
            (
                self.locations,
                "reference to a missing location",
                "references to missing locations",
            ),
            (
                self.functions,
                "reference to a missing function",
                "references to missing functions",
            ),
            (
                self.strings,
                "reference to a missing string",
                "references to missing strings",
            ),
            (
                self.cut_stacks,
                "truncated stack that is too large for the file size",
                "truncated stacks that are too large for the file size",
            ),
            (
                self.dropped_samples,
                "dropped sample that needs too much memory for the file size",
                "dropped samples that need too much memory for the file size",
            ),
            (
                self.dropped_entries,
                "other entry, or sample without its thread, dropped to limit memory",
                "other entries, or samples without their thread, dropped to limit memory",
            ),
        ];
        let mut parts: Vec<String> = Vec::new();
        if self.cut {
            parts.push("the file is truncated".to_owned());
        }
        let losses = losses.into_iter().filter(|(count, ..)| *count > 0);
        parts.extend(losses.map(|(count, one, many)| counted(count, one, many)));
        f.write_str(&parts.join("; "))
    }
}

/// Reads an uncompressed pprof. Returns `None` if the bytes contain no column of a pprof.
pub fn read_pprof(bytes: &[u8]) -> Option<Pprof> {
    let mut message = Message::read(bytes);
    if message.sample_types.is_empty() {
        return None;
    }
    let mut damage = PprofDamage {
        cut: message.cut.is_some(),
        messages: message.broken,
        columns: message.more_sample_types,
        samples: message.empty_samples,
        dropped_entries: message.left_out,
        ..PprofDamage::default()
    };
    let mut allowance = std::mem::take(&mut message.allowance);
    let mut comments: Vec<String> = Vec::new();
    for &index in &message.comments {
        // The comments can refer to one text many times.
        match message.string(index) {
            Some(text) if allowance.take(text.len()) => {
                comments.push(String::from_utf8_lossy(text).into_owned());
            }
            Some(_) => damage.dropped_entries += 1,
            None => {}
        }
    }
    let is_tracked = facts::is_tracked(&comments);
    let mut profile = read::build(&message, allowance, bytes.len(), is_tracked, &mut damage);
    if let Some(dump) = profile.dumps.first_mut() {
        facts::fill(dump, &message, &comments);
    }
    Some(Pprof {
        profile,
        damage: (damage != PprofDamage::default()).then_some(damage),
    })
}

#[cfg(test)]
mod tests;
