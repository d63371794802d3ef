//! pprofs of any tool: Go's, Perfetto's converter, jemalloc's and tcmalloc's, our own. Finds
//! them in files and folders, unpacks them, and reads each as one dump of named stacks.
//!
//! The format is `perftools.profiles.Profile` (proto3), in gzip or not. A damaged profile gives
//! what can be read of it, and says what could not.
//!
//! | file | owns |
//! |---|---|
//! | `message` | the wire |
//! | `measures` | what columns mean |
//! | `read` | stacks, names, checks |
//! | `facts` | what our own profiles say of themselves |
//! | `find` | files and folders |

mod facts;
mod find;
mod measures;
mod message;
mod read;

pub use find::PprofInput;
pub(super) use find::{in_folder, of_bytes};

use heaptap_model::stacks::StackProfile;
use message::Message;
use std::fmt;

/// A pprof, read.
#[derive(Debug)]
pub struct Pprof {
    /// Its one dump.
    pub profile: StackProfile,
    /// Remarks of whoever wrote it.
    pub comments: Vec<String>,
    /// What is wrong with it; `None` where nothing is.
    pub damage: Option<PprofDamage>,
}

/// What is wrong with a pprof, as counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PprofDamage {
    /// It ends in the middle.
    pub cut: bool,
    /// Messages that break off.
    pub messages: u64,
    /// Columns that were not read: no tool writes so many.
    pub columns: u64,
    /// Samples without a value for each column, or with more.
    pub samples: u64,
    /// References to locations that are not there.
    pub locations: u64,
    /// References to functions that are not there.
    pub functions: u64,
    /// References to strings that are not there.
    pub strings: u64,
    /// Stacks that were cut since the profile multiplies beyond its size.
    pub cut_stacks: u64,
    /// Samples that took too much memory for the size of the file.
    pub dropped_samples: u64,
    /// Other entries that took too much memory for the size of the file, and samples that count
    /// for no thread since theirs did.
    pub dropped_entries: u64,
}

impl fmt::Display for PprofDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = [
            (self.messages, "messages that break off"),
            (self.columns, "columns too many"),
            (self.samples, "samples whose values do not fit the columns"),
            (self.locations, "frames of locations that are not there"),
            (self.functions, "lines of functions that are not there"),
            (self.strings, "texts that are not there"),
            (
                self.cut_stacks,
                "stacks that multiply beyond the size of the file",
            ),
            (
                self.dropped_samples,
                "samples left out, whose values take too much memory for the size of the file",
            ),
            (
                self.dropped_entries,
                "other entries left out, or samples without their thread, which take too much \
                 memory for the size of the file",
            ),
        ];
        let mut parts: Vec<String> = Vec::new();
        if self.cut {
            parts.push("it is cut: it ends in the middle".to_owned());
        }
        let counted = counted.into_iter().filter(|(count, _)| *count > 0);
        parts.extend(counted.map(|(count, what)| format!("{count} {what}")));
        f.write_str(&parts.join("; "))
    }
}

/// Reads an uncompressed pprof. `None` where there is nothing of one in the bytes.
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
        // One text may be named again and again.
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
        comments,
        damage: (damage != PprofDamage::default()).then_some(damage),
    })
}

#[cfg(test)]
mod tests;
