//! Inputs and options of a page.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::heaps::input::{DumpScope, LookOptions};
use crate::heaps::java::JavaOptions;
use crate::names::options::MappingOption;
use heaptap_base::untrusted::shell::{quoted_dump, quoted_path};
use heaptap_report::data::header::Per;
use heaptap_results::manifest::Manifest;

/// An input with the selection of its dumps.
#[derive(Debug, Clone)]
pub struct ReportInput {
    /// A recording directory, a trace, a pprof or an HPROF.
    pub path: PathBuf,
    /// All dumps, or the selected ones.
    pub wanted: DumpScope,
    /// R8 mappings for this input, before those for all inputs.
    pub mappings: Vec<MappingOption>,
}

impl ReportInput {
    /// Returns it without its directory, quoted for the shell.
    pub(super) fn typed(&self) -> Vec<String> {
        let path = last_component(&self.path);
        match &self.wanted {
            DumpScope::These(named) => {
                let dumps = named.iter().map(|which| quoted_dump(path, which));
                dumps.collect()
            }
            DumpScope::All => vec![quoted_path(path)],
            DumpScope::Default => {
                let manifest = Manifest::read(&self.path).ok();
                let labels = manifest
                    .as_ref()
                    .map_or(&[][..], |manifest| &manifest.labels);
                let mut labels = labels.iter().rev();
                let label = labels.find(|label| !label.dumps.is_empty());
                vec![quoted_dump(path, label.map_or("last", |label| &label.name))]
            }
        }
    }
}

impl fmt::Display for ReportInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", last_component(&self.path).display())?;
        match &self.wanted {
            DumpScope::These(named) => named.iter().try_for_each(|which| write!(f, "@{which}")),
            // The page names the dump.
            DumpScope::All | DumpScope::Default => Ok(()),
        }
    }
}

#[derive(Debug, Clone, Default)]
pub struct ReportRequest {
    /// Inputs, at least one; callsites of several inputs are merged by name.
    pub inputs: Vec<ReportInput>,
    /// Input to compare the first input with.
    pub base: Option<ReportInput>,
    /// Divisor of differences.
    pub per: Option<Per>,
    /// Options for opening native heaps.
    pub look: LookOptions,
    /// Options for opening Java heaps.
    pub java: JavaOptions,
    /// If true, show only Java heaps.
    pub java_only: bool,
    /// If true, show only native heaps.
    pub native_only: bool,
    /// Maximum number of callsites.
    pub limit: Option<usize>,
    /// Texts and other contents of Java heaps as well.
    pub contents: bool,
}

impl ReportRequest {
    /// Creates a request for everything in one input.
    pub fn of_all(path: &Path, look: LookOptions, java: JavaOptions) -> ReportRequest {
        ReportRequest {
            inputs: vec![ReportInput {
                path: path.to_owned(),
                wanted: DumpScope::All,
                mappings: Vec::new(),
            }],
            look,
            java,
            ..ReportRequest::default()
        }
    }
}

/// Returns the last component of an input, for commands to paste.
pub(super) fn last_component(path: &Path) -> &Path {
    path.file_name().map_or(path, Path::new)
}
