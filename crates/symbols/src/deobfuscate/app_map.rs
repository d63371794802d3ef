//! R8 mappings of a recording, with their source and the apps that they apply to.

use super::file::MapFile;
use heaptap_model::profile::NameMap;

/// R8 mapping with its scope.
#[derive(Debug, Clone)]
pub struct AppMap<'a> {
    /// Apps whose frames it names.
    pub scope: Scope,
    pub source: MapSource<'a>,
}

/// Apps whose frames an R8 mapping names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// The app of a package.
    Package(String),
    /// All profiled apps without an R8 mapping of their own.
    Unclaimed,
}

/// Source of an R8 mapping.
#[derive(Debug, Clone, Copy)]
pub enum MapSource<'a> {
    /// A mapping file.
    File(&'a MapFile),
    /// Packets of the trace.
    Packets(&'a NameMap),
}

impl MapSource<'_> {
    /// Returns whether the R8 mapping takes precedence for its package: it was passed as a file.
    pub(super) fn claims(&self) -> bool {
        matches!(self, MapSource::File(_))
    }
}
