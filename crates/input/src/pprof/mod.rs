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
//! | `damage` | damage by kind |
//! | `facts` | facts in profiles that heaptap wrote |
//! | `find` | files and directories |

mod damage;
mod facts;
mod find;
mod measures;
mod message;
mod read;

pub use damage::PprofDamage;
pub use find::PprofInput;
pub(super) use find::{in_directory, of_bytes};

use heaptap_model::stacks::StackProfile;
use message::Message;

/// A decoded pprof.
#[derive(Debug)]
pub struct Pprof {
    /// Profile with exactly one dump.
    pub profile: StackProfile,
    /// Damage, if any.
    pub damage: Option<PprofDamage>,
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
