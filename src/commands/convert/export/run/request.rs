//! Request and result of an export.

use crate::heaps::input::LookOptions;
use crate::heaps::java::JavaOptions;
use crate::heaps::selector::DumpSelector;
use crate::recording::conversion::selection::Selection;
use heaptap_base::error::ErrorClass;
use heaptap_results::findings::Finding;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Folded stacks, one file for each dump and view.
    Folded,
    /// JSON of speedscope.
    Speedscope,
    /// A CSV table.
    Csv,
    /// JSON with all data.
    Json,
    /// Parquet tables in a directory.
    Parquet,
    /// Flame graphs, one file for each dump and view.
    Svg,
    /// The graph of one Java heap.
    Hprof,
}

impl Format {
    /// Returns the file ending of the format.
    pub fn ending(self) -> &'static str {
        match self {
            Format::Folded => "folded",
            Format::Speedscope => "speedscope.json",
            Format::Csv => "csv",
            Format::Json => "json",
            Format::Parquet => "parquet",
            Format::Svg => "svg",
            Format::Hprof => "hprof",
        }
    }

    /// Returns other accepted file endings.
    pub(super) fn other_endings(self) -> &'static [&'static str] {
        match self {
            Format::Folded => &["txt", "collapsed", "stacks"],
            _ => &[],
        }
    }

    /// Returns whether each file holds one dump and one view.
    pub fn has_many_files(self) -> bool {
        matches!(self, Format::Folded | Format::Svg)
    }
}

/// Input and options of an export.
#[derive(Debug, Clone)]
pub struct ExportRequest {
    /// Path of anything that contains heaps, or `-`.
    pub input: PathBuf,
    /// Name of the input in the output.
    pub name: String,
    pub format: Format,
    /// Numbers or labels of the selected dumps; empty selects all dumps.
    pub chosen: Vec<DumpSelector>,
    /// Further selection among those dumps.
    pub selection: Selection,
    /// Whether only Java heaps are selected.
    pub java_only: bool,
    /// View names to write; empty writes all.
    pub views: Vec<String>,
    /// Groups Java heaps by dominators instead of shortest paths.
    pub dominators: bool,
    /// Options for native heaps.
    pub look: LookOptions,
    /// Options for Java heaps.
    pub java: JavaOptions,
}

/// Written file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct File {
    /// Path, or `-` for standard output.
    pub path: PathBuf,
    /// Number of the dump, if the file holds one dump.
    pub dump: Option<u32>,
    /// Name of the view, if the file holds one view.
    pub view: Option<String>,
    /// Size in bytes.
    pub bytes: u64,
}

/// Result of an export.
#[derive(Debug)]
pub struct Exported {
    /// Written files, in order.
    pub files: Vec<File>,
    /// Number of dumps in the files.
    pub dumps: usize,
    /// Findings to report.
    pub findings: Vec<Finding>,
    /// Class of the exit code; `None` if nothing is missing.
    pub class: Option<ErrorClass>,
}
