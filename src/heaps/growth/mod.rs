//! Growth of native heaps: selects and groups dumps, runs the analysis, and builds the document for
//! `--json` and the terminal.

mod document;
mod error;
mod inputs;
mod series;
mod words;

pub use document::{
    CallerRow, Decides, DumpRow, HeapRow, Limits, MAX_ALLOCATORS, NativeLeaksDocument, SeriesRow,
    SiteRow,
};
pub use error::NativeLeaksError;
pub use inputs::NativeLeaksRequest;

use std::path::PathBuf;

use crate::heaps::input::{self, DumpScope, LookOptions, NativeFile, OpenedInput};
use crate::heaps::java::{OpenedJava, ProgressReporter};
use crate::heaps::selector::JavaInput;
use crate::heaps::trace_findings::is_missing_part;
use heaptap_analyze::native::filter::Filter;
use heaptap_base::error::ErrorClass;
use heaptap_results::findings::{self, Finding};
use inputs::Inputs;

/// Default tolerance, in bytes per iteration: 4 KiB.
pub const TOLERANCE_BYTES: u64 = 4096;

/// The result.
#[derive(Debug)]
pub struct NativeLeaks {
    /// The document for `--json`.
    pub document: NativeLeaksDocument,
    /// Number of Java heaps in the inputs, which were not analyzed.
    pub java_dumps: usize,
    /// Exit code class of incomplete inputs.
    pub class: Option<ErrorClass>,
    /// True if a leak above the tolerance is confirmed.
    pub found: bool,
    /// True if the data might hide a leak.
    pub inconclusive: bool,
    /// True if the filters match any sample.
    pub matches: bool,
}

/// Result of searching for growth.
pub enum GrowthLooked {
    /// Growth of native heaps.
    Native(Box<NativeLeaks>),
    /// Nothing: the first input, now opened, contains only Java heaps.
    Java(OpenedJava),
}

/// Searches for growth.
///
/// # Errors
/// Returns an error if an input cannot be opened, or has no comparable dumps.
pub fn leaks(
    request: &NativeLeaksRequest,
    progress: &ProgressReporter,
) -> Result<GrowthLooked, NativeLeaksError> {
    let mut files = Vec::new();
    for (at, (path, wanted)) in by_path(&request.inputs).into_iter().enumerate() {
        match input::open(&path, &wanted, &request.options, progress)? {
            OpenedInput::Native(file, _) => files.push(*file),
            OpenedInput::Java(opened) if at == 0 => return Ok(GrowthLooked::Java(opened)),
            OpenedInput::Java(_) => {
                return Err(NativeLeaksError::JavaAmong {
                    name: path.display().to_string(),
                });
            }
        }
    }
    progress.begin("comparing dumps");
    let mut findings: Vec<Finding> = files
        .iter()
        .flat_map(|file| file.findings.iter().cloned().chain(file.names_missing()))
        .collect();
    let all = files.iter().map(|file| file.findings.as_slice());
    findings::keep_missing_everywhere(&mut findings, all);
    let class = ErrorClass::first_of(files.iter().filter_map(NativeFile::class));
    let java_dumps: usize = files.iter().map(|file| file.java_dumps).sum();
    let inputs = Inputs::from_files(files);
    let series = series::series_of(&inputs, request).map_err(|error| match error {
        NativeLeaksError::TooFewDumps { there, .. } => {
            let found = findings.iter().find(|found| is_missing_part(found));
            NativeLeaksError::TooFewDumps {
                there,
                named: request.named,
                has_java: java_dumps > 0,
                missing: found.filter(|_| !request.named).cloned().map(Box::new),
            }
        }
        error => error,
    })?;
    let mut document = document::document(&inputs.table, &series, request);
    document.warnings = findings;
    let found = document.series.iter().any(|series| series.leaks > 0);
    // Nearly every recording has callsites with too few samples: they prevent a passing check only
    // if there is no conclusive result at all.
    let is_undecided = document.series.iter().all(|series| series.decided() == 0)
        && document.series.iter().any(|series| series.inconclusive > 0);
    let inconclusive = is_undecided || document.series.iter().any(SeriesRow::is_open);
    let matches = document.series.iter().any(|series| series.matches);
    Ok(GrowthLooked::Native(Box::new(NativeLeaks {
        matches,
        document,
        java_dumps,
        class,
        found,
        inconclusive,
    })))
}

/// Groups inputs by path, so that each file is opened once; dumps of one file are selected
/// separately.
fn by_path(inputs: &[(JavaInput, DumpScope)]) -> Vec<(PathBuf, DumpScope)> {
    let mut paths: Vec<(PathBuf, DumpScope)> = Vec::new();
    for (input, wanted) in inputs {
        match (
            paths.iter_mut().find(|(path, _)| *path == input.path),
            wanted,
        ) {
            (Some((_, DumpScope::These(all))), DumpScope::These(more)) => all.extend(more.clone()),
            (Some((_, all)), wanted) if all == wanted => {}
            _ => paths.push((input.path.clone(), wanted.clone())),
        }
    }
    paths
}

/// Returns the growth in an opened file, over its selected dumps, with the defaults of the command.
/// `None` if no series can be compared.
pub fn of_file(file: &NativeFile, limit: usize) -> Option<NativeLeaksDocument> {
    let request = NativeLeaksRequest {
        inputs: Vec::new(),
        named: false,
        options: LookOptions::default(),
        filter: Filter::default(),
        tolerance: TOLERANCE_BYTES,
        loops: 1,
        warmup: None,
        interval: 0,
        limit,
    };
    let inputs = Inputs::of_file(file);
    let series = series::series_of(&inputs, &request).ok()?;
    Some(document::document(&inputs.table, &series, &request))
}
