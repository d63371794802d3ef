//! The difference of two dumps as a pprof, for `go tool pprof` and its like.

use std::io::Write as _;
use std::path::Path;

use super::{Compared, DiffError, HeapDiff};
use crate::export::gzip::Gzip;
use crate::export::pprof::stacks::{About, Part, encode};
use crate::results::whole_file::WholeFile;
use crate::stacks::{Dump, Measure};

/// A profile that will be written: its file is open before anything is computed.
pub struct ProfileFile {
    file: WholeFile,
    path: std::path::PathBuf,
}

impl ProfileFile {
    /// Opens the file.
    ///
    /// # Errors
    /// Where something is there and `force` is not given, or it can't be written.
    pub fn create(path: &Path, force: bool) -> Result<ProfileFile, DiffError> {
        let holds_something =
            std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() > 0);
        if holds_something && !force {
            return Err(DiffError::OutputTaken {
                path: path.to_owned(),
            });
        }
        match WholeFile::typed(path) {
            Ok(file) => Ok(ProfileFile {
                file,
                path: path.to_owned(),
            }),
            Err(source) => Err(DiffError::Unwritable {
                path: path.to_owned(),
                source,
            }),
        }
    }

    /// Writes the difference, gzipped: what the first dump held is negative. Values are those
    /// of the dumps, whatever growth is divided by; nothing is hidden.
    ///
    /// # Errors
    /// Where several heaps were compared, or the file can't be written.
    pub fn finish(mut self, compared: &Compared) -> Result<(), DiffError> {
        let ([(before, after)], [heap]) = (&compared.pairs[..], &compared.report.heaps[..]) else {
            return Err(DiffError::SeveralHeaps {
                heaps: compared.pairs.len(),
            });
        };
        let dump = |place: &Option<usize>| place.map(|place| &compared.profile.dumps[place]);
        let (before, after) = (dump(before), dump(after));
        let measures = shared(before, after);
        let columns = |dump: &Dump| -> Vec<usize> {
            let at = |measure: &Measure| dump.measures.iter().position(|m| m.name == measure.name);
            measures.iter().filter_map(at).collect()
        };
        let columns = [before.map(columns), after.map(columns)];
        let mut parts = Vec::new();
        for ((dump, columns), is_base) in
            [before, after].into_iter().zip(&columns).zip([true, false])
        {
            if let (Some(dump), Some(columns)) = (dump, columns) {
                parts.push(Part {
                    values: &dump.values,
                    columns,
                    is_base,
                });
            }
        }
        let last = after.or(before);
        let wanted = last.and_then(|dump| dump.measures.get(dump.default_measure));
        let default = measures.iter().position(|measure| Some(measure) == wanted);
        let comments = [remark(heap)];
        let about = About {
            measures: &measures,
            default_measure: default.unwrap_or(0),
            // With it the error of a difference would be taken for that of a dump.
            sampling_interval_bytes: 0,
            wall_time_ns: last.and_then(|dump| dump.facts.wall_time_ns),
            comments: &comments,
        };
        let plain = encode(&compared.profile.table, &parts, &about);
        let packed = Gzip::default().compress(&plain);
        let written = self.file.write_all(&packed);
        written
            .and_then(|()| self.file.finish())
            .map_err(|source| DiffError::Unwritable {
                path: self.path,
                source,
            })
    }
}

/// The columns that both dumps have, in the order of the second.
fn shared(before: Option<&Dump>, after: Option<&Dump>) -> Vec<Measure> {
    let has = |dump: Option<&Dump>, measure: &Measure| {
        dump.is_none_or(|dump| dump.measures.iter().any(|m| m.name == measure.name))
    };
    let all = after.or(before).map_or(&[][..], |dump| &dump.measures);
    let in_both = all.iter().filter(|measure| has(before, measure));
    in_both.cloned().collect()
}

fn remark(heap: &HeapDiff) -> String {
    let name = |dump: &Option<crate::heaps::input::facts::DumpFacts>| {
        dump.as_ref()
            .map_or("nothing", |dump| &dump.name)
            .to_owned()
    };
    format!("{} less {}", name(&heap.after), name(&heap.before))
}
