//! R8 mappings with their origin, and what each named.

use heaptap_results::findings::Finding;
use heaptap_results::manifest;
use heaptap_symbols::deobfuscate::{AppMap, MapFile, MapSource, Scope};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Origin of an R8 mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// `--mapping`.
    Given,
    /// [`VARIABLE`](super::VARIABLE).
    Variable,
    /// Found in the build output.
    Discovered {
        variant: String,
        /// Maps of the project that fit as well, and are older.
        older: usize,
    },
}

impl Origin {
    /// Returns a stable identifier.
    pub fn word(&self) -> &'static str {
        match self {
            Origin::Given => "given",
            Origin::Variable => "variable",
            Origin::Discovered { .. } => "project",
        }
    }
}

/// An opened R8 mapping.
#[derive(Debug, Clone)]
pub struct GivenMap {
    /// Its app, if given.
    pub package: Option<String>,
    pub file: Arc<MapFile>,
    pub origin: Origin,
}

impl GivenMap {
    pub(super) fn is_discovered(&self) -> bool {
        matches!(self.origin, Origin::Discovered { .. })
    }

    pub(super) fn as_map(&self) -> AppMap<'_> {
        AppMap {
            scope: match &self.package {
                Some(package) => Scope::Package(package.clone()),
                None => Scope::Unclaimed,
            },
            source: MapSource::File(&self.file),
        }
    }
}

/// An R8 mapping with its apps.
pub(super) type ForApps = (GivenMap, BTreeSet<String>);

/// An R8 mapping and its results for a trace.
#[derive(Debug, Clone)]
pub struct UsedMap {
    pub map: GivenMap,
    /// Apps that used it; empty if it was used for all.
    pub packages: BTreeSet<String>,
    pub frames_named: u64,
    /// Classes it named in Java heaps.
    pub classes_named: u64,
}

impl UsedMap {
    pub(super) fn new((map, packages): &ForApps) -> UsedMap {
        UsedMap {
            map: map.clone(),
            packages: packages.clone(),
            frames_named: 0,
            classes_named: 0,
        }
    }

    /// Returns whether it named anything.
    pub fn named_any(&self) -> bool {
        self.frames_named > 0 || self.classes_named > 0
    }

    /// Converts to the form of the manifest.
    pub fn in_manifest(&self) -> manifest::MappingFile {
        manifest::MappingFile {
            path: self.map.file.path().display().to_string(),
            packages: self.packages.iter().cloned().collect(),
            origin: self.map.origin.word().to_owned(),
            variant: match &self.map.origin {
                Origin::Discovered { variant, .. } => variant.clone(),
                Origin::Given | Origin::Variable => String::new(),
            },
            classes: self.map.file.survey().classes as u64,
            frames: self.frames_named,
            heap_classes: self.classes_named,
        }
    }
}

/// Returns findings about files that named nothing although there were names to resolve.
pub(super) fn unused(maps: &[UsedMap], java_frames: u64, has_heaps: bool) -> Vec<Finding> {
    let unused = maps.iter().filter(|map| !map.named_any());
    let asked = unused.filter(|used| !used.map.is_discovered());
    asked
        .map(|used| {
            let packages: Vec<&str> = used.packages.iter().map(String::as_str).collect();
            let of = match &packages[..] {
                [] => String::new(),
                packages => format!(" for {}", packages.join(", ")),
            };
            let path = used.map.file.path().display();
            if java_frames == 0 && has_heaps {
                let message = format!("{path} contains no class of the Java heap{of}");
                let help = "check that it is from this app and the build on the device; `--mapping \
                     PACKAGE=FILE` selects the app";
                return warning("mapping-unused", message, help);
            }
            if java_frames == 0 {
                let message =
                    format!("the trace has no Java frames{of} that {path} could deobfuscate");
                return Finding::new("mapping-unused", None, message);
            }
            let message = format!("{path} matches none of the {java_frames} Java frames{of}");
            let help = "check that it is from this app and the build on the device; `--mapping \
                 PACKAGE=FILE` selects the app";
            warning("mapping-unused", message, help)
        })
        .collect()
}

pub(super) fn warning(kind: &'static str, message: String, help: &str) -> Finding {
    Finding::new(kind, None, message).with_help(help)
}
