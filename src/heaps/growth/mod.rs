//! What grows in native heaps: which dumps are meant and belong together, what `analyze` finds
//! in them, and the document that `--json` prints and the terminal shows.

mod document;
mod error;
mod series;
mod words;

pub use document::{
    Decides, DumpRow, HeapRow, Limits, NativeLeaksDocument, Place, SeriesRow, SiteRow,
};
pub use error::NativeLeaksError;

use std::path::PathBuf;

use crate::analyze::native::filter::Filter;
use crate::error::ErrorClass;
use crate::heaps::input::{self, DumpScope, LookOptions, NativeFile, OpenedInput};
use crate::heaps::java::facts::Warning;
use crate::heaps::java::{OpenedJava, ProgressReporter};
use crate::heaps::selector::JavaInput;
use crate::results::findings::Finding;
use crate::stacks::{JoinBy, StackTable, join};

/// Growth by iteration that nobody minds, where nothing was said: 4 KiB.
pub const TOLERANCE_BYTES: u64 = 4096;

/// What is asked.
#[derive(Debug, Clone)]
pub struct NativeLeaksRequest {
    /// Inputs and which of their dumps are meant, oldest first.
    pub inputs: Vec<(JavaInput, DumpScope)>,
    /// How to open them.
    pub options: LookOptions,
    /// Which stacks count, and which of their frames are shown.
    pub filter: Filter,
    /// Growth in bytes per iteration that nobody minds.
    pub tolerance: u64,
    /// How often the scenario was repeated between two dumps; 0 counts as 1.
    pub loops: u64,
    /// Dumps to leave out at the beginning; `None` is one of six or more.
    pub warmup: Option<usize>,
    /// The sampling interval of inputs that do not say theirs; 0 is none.
    pub interval: u64,
    /// The most rows of each list; 0 is all.
    pub limit: usize,
}

/// What was found.
#[derive(Debug)]
pub struct NativeLeaks {
    /// As `--json` prints it.
    pub document: NativeLeaksDocument,
    /// What the user should know of the inputs.
    pub findings: Vec<Finding>,
    /// Java heaps in the inputs, which nobody looked at.
    pub java_dumps: usize,
    /// What inputs lack, for the exit code.
    pub class: Option<ErrorClass>,
    /// Something leaks for certain, and more than nobody minds.
    pub found: bool,
    /// Whether there may be a leak that the data can't tell.
    pub inconclusive: bool,
    /// Whether the filters match any sample.
    pub matches: bool,
}

/// Dumps of an input, all in one table.
struct Opened {
    /// Index of its file.
    file: usize,
    dump: crate::stacks::Dump,
    /// What it is called.
    name: String,
}

/// All inputs.
struct Inputs {
    table: StackTable,
    dumps: Vec<Opened>,
    files: Vec<FileFacts>,
}

/// What is known of a file.
struct FileFacts {
    /// As it was typed.
    name: String,
    /// API level; 0 where unknown.
    sdk: u64,
    /// Whether it says of itself since when it was recorded: a trace, not a pprof.
    is_trace: bool,
}

/// What was looked for.
pub enum GrowthLooked {
    /// Growth of native heaps.
    Native(Box<NativeLeaks>),
    /// Nothing: the first input, opened by now, holds Java heaps alone.
    Java(OpenedJava),
}

/// Looks for growth.
///
/// # Errors
/// Where an input can't be opened, or has no dumps that could be compared.
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
    let findings: Vec<Finding> = files
        .iter()
        .flat_map(|file| file.findings.iter().cloned().chain(file.names_missing()))
        .collect();
    let class = ErrorClass::first_of(files.iter().filter_map(NativeFile::class));
    let java_dumps: usize = files.iter().map(|file| file.java_dumps).sum();
    let inputs = Inputs::of(files);
    let series = series::series_of(&inputs, request).map_err(|error| match error {
        NativeLeaksError::TooFewDumps { there, .. } => NativeLeaksError::TooFewDumps {
            there,
            has_java: java_dumps > 0,
        },
        error => error,
    })?;
    let mut document = document::document(&inputs.table, &series, request);
    document.warnings = findings.iter().map(Warning::from).collect();
    let found = document.series.iter().any(|series| series.leaks > 0);
    // A callsite with too few samples stands in nearly every recording: only where nothing at all
    // was decided do they keep a check from passing.
    let is_undecided = document.series.iter().all(|series| series.decided() == 0)
        && document.series.iter().any(|series| series.cant_tell > 0);
    let inconclusive = is_undecided || document.series.iter().any(SeriesRow::is_open);
    let matches = document.series.iter().any(|series| series.matches);
    Ok(GrowthLooked::Native(Box::new(NativeLeaks {
        matches,
        document,
        findings,
        java_dumps,
        class,
        found,
        inconclusive,
    })))
}

/// Inputs by path, so that each file is opened once: several dumps of one file are named one by
/// one.
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

/// What grows in a file that is open: over the dumps that were read of it, by the defaults of
/// the command. `None` where none of its series can be compared.
pub fn of_file(file: &NativeFile, limit: usize) -> Option<NativeLeaksDocument> {
    let request = NativeLeaksRequest {
        inputs: Vec::new(),
        options: LookOptions::default(),
        filter: Filter::default(),
        tolerance: TOLERANCE_BYTES,
        loops: 1,
        warmup: None,
        interval: 0,
        limit,
    };
    let inputs = Inputs {
        table: file.profile.table.clone(),
        dumps: file
            .profile
            .dumps
            .iter()
            .map(|dump| Opened {
                file: 0,
                dump: dump.clone(),
                name: file.name_of(dump),
            })
            .collect(),
        files: vec![FileFacts {
            name: file.path.display().to_string(),
            sdk: file.system.sdk,
            is_trace: file.symbolization.is_some(),
        }],
    };
    let series = series::series_of(&inputs, &request).ok()?;
    Some(document::document(&inputs.table, &series, &request))
}

impl Inputs {
    fn of(files: Vec<NativeFile>) -> Inputs {
        let facts = files
            .iter()
            .map(|file| FileFacts {
                name: file.path.display().to_string(),
                sdk: file.system.sdk,
                is_trace: file.symbolization.is_some(),
            })
            .collect();
        let names: Vec<Vec<String>> = files
            .iter()
            .map(|file| file.profile.dumps.iter().map(|d| file.name_of(d)).collect())
            .collect();
        let profiles: Vec<_> = files.into_iter().map(|file| file.profile).collect();
        let mut dumps = Vec::new();
        let table = match <[_; 1]>::try_from(profiles) {
            Ok([only]) => {
                let named = only.dumps.into_iter().zip(names.into_iter().flatten());
                dumps.extend(named.map(|(dump, name)| Opened {
                    file: 0,
                    dump,
                    name,
                }));
                only.table
            }
            Err(profiles) => {
                let tables: Vec<&StackTable> = profiles.iter().map(|p| &p.table).collect();
                let joined = join(&tables, JoinBy::Exact);
                for (file, (profile, names)) in profiles.into_iter().zip(names).enumerate() {
                    for (mut dump, name) in profile.dumps.into_iter().zip(names) {
                        dump.move_to(&joined.nodes[file]);
                        dumps.push(Opened { file, dump, name });
                    }
                }
                joined.table
            }
        };
        Inputs {
            table,
            dumps,
            files: facts,
        }
    }
}
