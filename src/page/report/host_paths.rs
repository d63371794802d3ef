//! Directories of the host, which a page does not name: it is sent to others. Inputs keep the last
//! component of their path, as other files that options name.

use std::path::{Path, PathBuf};

use super::request::ReportRequest;
use heaptap_results::findings::Finding;

/// Directories that are removed from texts, longest first.
pub(super) struct HostPaths(Vec<String>);

impl HostPaths {
    pub(super) fn from_request(request: &ReportRequest) -> HostPaths {
        let inputs = request.inputs.iter().chain(&request.base);
        let inputs = inputs.map(|input| input.path.as_path());
        let names = [&request.look.names, &request.java.names].into_iter();
        let named = names.flat_map(|names| {
            let mappings = names.mappings.iter().map(|mapping| mapping.path.as_path());
            let symbols = names.symbols.iter().map(PathBuf::as_path);
            mappings.chain(symbols)
        });
        let mut all: Vec<String> = inputs.chain(named).flat_map(directories).collect();
        all.sort_by_key(|directory| std::cmp::Reverse(directory.len()));
        all.dedup();
        HostPaths(all)
    }

    /// Removes the directories from a text.
    pub(super) fn strip(&self, text: &mut String) {
        for directory in &self.0 {
            if text.contains(directory) {
                *text = text.replace(directory, "");
            }
        }
    }

    pub(super) fn strip_finding(&self, finding: &mut Finding) {
        self.strip(&mut finding.message);
        finding.help.iter_mut().for_each(|help| self.strip(help));
    }
}

/// Returns the directory of a path as typed, as an absolute one and without links, each with a
/// separator at its end.
fn directories(path: &Path) -> impl Iterator<Item = String> + use<> {
    let absolute = std::path::absolute(path).ok();
    let real = path.canonicalize().ok();
    let all = [Some(path.to_owned()), absolute, real];
    all.into_iter().flatten().filter_map(|path| {
        let directory = path.parent()?;
        let depth = directory.components().count();
        // `/` and `..` are no names of a host.
        let mut text = directory.to_str().filter(|_| depth > 1)?.to_owned();
        text.push(std::path::MAIN_SEPARATOR);
        Some(text)
    })
}
