//! The difference of two dumps as a pprof, for `go tool pprof` and similar tools.

use std::io::Write as _;
use std::path::Path;

use super::report::{Compared, HeapDiff};
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_export::gzip::Gzip;
use heaptap_export::pprof::stacks::{About, Part, encode};
use heaptap_model::profile::comments::DIFFERENCE;
use heaptap_model::stacks::{Dump, Measure};
use heaptap_results::destination::unwritable;
use heaptap_results::overwrite::{self, Replace};
use heaptap_results::whole_file::WholeFile;

/// Profile to write. Its file is opened before anything is computed.
pub struct ProfileFile {
    file: WholeFile,
    path: std::path::PathBuf,
}

impl ProfileFile {
    /// Opens the file.
    ///
    /// # Errors
    /// Returns an error if it is an input, if it is not empty and `force` is not set, or if it
    /// cannot be written.
    pub fn create(path: &Path, inputs: [&Path; 2], force: bool) -> Result<ProfileFile, Failure> {
        let existing = overwrite::check(path, inputs, Replace::of_force(force))?;
        let file = WholeFile::typed(path, existing);
        Ok(ProfileFile {
            file: file.map_err(|source| unwritable(path.display(), &source))?,
            path: path.to_owned(),
        })
    }

    /// Writes the difference, gzipped. Values of the first dump are negative. Values are not
    /// divided, and nothing is hidden.
    ///
    /// # Errors
    /// Returns an error if several heaps were compared, or the file cannot be written.
    pub fn finish(mut self, compared: &Compared) -> Result<(), Failure> {
        let ([(before, after)], [heap]) = (&compared.pairs[..], &compared.report.heaps[..]) else {
            let heaps = compared.pairs.len();
            let message = format!("`-o` with a pprof writes one heap, but {heaps} are selected");
            return Err(Failure::new(ErrorClass::Usage, "several-heaps", message)
                .with_help("narrow the comparison with `-n` or `-p`, and `--heap`"));
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
            // With the interval, tools would take the error of the difference for that of a dump.
            sampling_interval_bytes: 0,
            wall_time_ns: last.and_then(|dump| dump.facts.wall_time_ns),
            comments: &comments,
        };
        let plain = encode(&compared.profile.table, &parts, &about);
        let packed = Gzip::default().compress(&plain);
        let written = self.file.write_all(&packed);
        written
            .and_then(|()| self.file.finish())
            .map_err(|source| unwritable(self.path.display(), &source))
    }
}

/// Returns the columns that both dumps have, in the order of the second.
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
    format!(
        "{DIFFERENCE}{} minus {}",
        name(&heap.after),
        name(&heap.before)
    )
}
