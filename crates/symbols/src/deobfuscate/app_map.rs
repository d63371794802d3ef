//! A map as it is given for a recording: where it comes from, and whose frames it names.

use super::file::MapFile;
use heaptap_model::profile::NameMap;

/// A map and what it is for.
#[derive(Debug, Clone)]
pub struct AppMap<'a> {
    /// Whose frames it names.
    pub scope: Scope,
    /// The map.
    pub source: MapSource<'a>,
}

/// Whose frames a map names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Those of a package.
    Package(String),
    /// Those of the profiled apps that no other map is for.
    Unclaimed,
}

/// Where a map comes from.
#[derive(Debug, Clone, Copy)]
pub enum MapSource<'a> {
    /// A mapping file.
    File(&'a MapFile),
    /// Packets of the trace.
    Packets(&'a NameMap),
}

impl MapSource<'_> {
    /// Whether whoever gave it meant it for its package before all others.
    pub(super) fn claims(&self) -> bool {
        matches!(self, MapSource::File(_))
    }
}
