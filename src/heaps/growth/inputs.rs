//! Request of a search for growth, and the dumps of all its inputs in one table.

use std::borrow::Cow;

use crate::heaps::input::{DumpScope, LookOptions, NativeFile};
use crate::heaps::selector::JavaInput;
use heaptap_analyze::native::filter::Filter;
use heaptap_model::stacks::{Dump, JoinBy, StackTable, join};

#[derive(Debug, Clone)]
pub struct NativeLeaksRequest {
    /// Inputs with the selection of their dumps, oldest first.
    pub inputs: Vec<(JavaInput, DumpScope)>,
    /// Whether dumps were named, so that none is left out for lack of a label or as the end.
    pub named: bool,
    /// Options for opening them.
    pub options: LookOptions,
    /// Filter for stacks and displayed frames.
    pub filter: Filter,
    /// Accepted growth, in bytes per iteration.
    pub tolerance: u64,
    /// Repetitions of the scenario between two dumps; 0 counts as 1.
    pub loops: u64,
    /// Number of warm-up dumps to exclude; `None` excludes one of six or more.
    pub warmup: Option<usize>,
    /// Sampling interval in bytes for inputs without one; 0 if none.
    pub interval: u64,
    /// Maximum number of rows per list.
    pub limit: usize,
}

/// Dumps of an input, in one table.
pub(super) struct Opened<'a> {
    /// Index of its file.
    pub(super) file: usize,
    pub(super) dump: Cow<'a, Dump>,
    /// Display name.
    pub(super) name: String,
}

pub(super) struct Inputs<'a> {
    pub(super) table: Cow<'a, StackTable>,
    pub(super) dumps: Vec<Opened<'a>>,
    pub(super) files: Vec<FileFacts>,
}

/// Facts about a file.
pub(super) struct FileFacts {
    /// Name as typed.
    pub(super) name: String,
    /// API level; 0 if unknown.
    pub(super) sdk: u64,
    /// True if the file contains the start of profiling: a trace, not a pprof.
    pub(super) is_trace: bool,
}

impl FileFacts {
    fn from_file(file: &NativeFile) -> FileFacts {
        FileFacts {
            name: file.path.display().to_string(),
            sdk: file.system.sdk,
            is_trace: file.symbolization.is_some(),
        }
    }
}

impl Inputs<'_> {
    /// Returns the dumps of one file.
    pub(super) fn of_file(file: &NativeFile) -> Inputs<'_> {
        Inputs {
            table: Cow::Borrowed(&file.profile.table),
            dumps: file
                .profile
                .dumps
                .iter()
                .map(|dump| Opened {
                    file: 0,
                    dump: Cow::Borrowed(dump),
                    name: file.name_of(dump),
                })
                .collect(),
            files: vec![FileFacts::from_file(file)],
        }
    }

    pub(super) fn from_files(files: Vec<NativeFile>) -> Inputs<'static> {
        let facts = files.iter().map(FileFacts::from_file).collect();
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
                    dump: Cow::Owned(dump),
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
                        let dump = Cow::Owned(dump);
                        dumps.push(Opened { file, dump, name });
                    }
                }
                joined.table
            }
        };
        Inputs {
            table: Cow::Owned(table),
            dumps,
            files: facts,
        }
    }
}
