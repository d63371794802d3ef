//! R8 mappings for Java heaps: the same as for the frames of their trace, in the same order.

use super::used::{ForApps, UsedMap, unused};
use heaptap_base::units::counted;
use heaptap_model::heap_graph::{Class, HeapGraph};
use heaptap_model::profile::{NameMap, NameMaps, Recording};
use heaptap_results::findings::Finding;
use heaptap_symbols::deobfuscate::{self, AppMap, MapSource, Scope};
use std::sync::Arc;

/// Returns all R8 mappings in the order of their priority: `own` are those of a trace.
pub(super) fn in_order<'m>(
    given: &'m [ForApps],
    own: impl Iterator<Item = (&'m str, &'m NameMap)>,
    discovered: &'m [ForApps],
) -> Vec<AppMap<'m>> {
    let own = own.map(|(package, map)| AppMap {
        scope: Scope::Package(package.to_owned()),
        source: MapSource::Packets(map),
    });
    let given = given.iter().map(|(map, _)| map.as_map());
    let discovered = discovered.iter().map(|(map, _)| map.as_map());
    given.chain(own).chain(discovered).collect()
}

/// Returns the counts of the files among those of [`in_order`].
pub(super) fn of_files(
    counts: &[u64],
    given: usize,
    discovered: usize,
) -> impl Iterator<Item = u64> {
    let last = &counts[counts.len() - discovered..];
    counts[..given].iter().chain(last).copied()
}

/// Mappings for the Java heaps of one input.
#[derive(Debug, Default)]
pub struct HeapMaps {
    /// Files given by the user.
    pub(super) given: Vec<ForApps>,
    /// Names in the trace itself.
    pub(super) own: Arc<NameMaps>,
    /// Files that were found.
    pub(super) discovered: Vec<ForApps>,
    /// Number of classes that each file named, given files first.
    named: Vec<u64>,
    heaps: usize,
}

impl HeapMaps {
    pub(super) fn new(given: Vec<ForApps>, own: Arc<NameMaps>, discovered: Vec<ForApps>) -> Self {
        HeapMaps {
            named: vec![0; given.len() + discovered.len()],
            given,
            own,
            discovered,
            heaps: 0,
        }
    }

    /// Deobfuscates the classes and fields of a heap. `recording` identifies its process.
    pub fn name(&mut self, graph: &mut HeapGraph, recording: &Recording) {
        self.heaps += 1;
        let all = in_order(&self.given, self.own.iter(), &self.discovered);
        let counts = deobfuscate::name_heap(graph, recording, &all);
        let counts = of_files(&counts, self.given.len(), self.discovered.len());
        for (named, count) in self.named.iter_mut().zip(counts) {
            *named += count;
        }
    }

    /// Returns findings about given files that contain no class of these heaps.
    pub fn unused(&self) -> Vec<Finding> {
        match self.heaps {
            0 => Vec::new(),
            _ => unused(&self.used(), 0, true),
        }
    }

    /// Classes that each file named, in the order of [`HeapMaps::used`].
    pub(super) fn classes_named(&self) -> &[u64] {
        &self.named
    }

    /// Returns the number of heaps that were named, or needed no names.
    pub fn heaps(&self) -> usize {
        self.heaps
    }

    /// Returns the files, and the number of classes that each named in all heaps.
    pub fn used(&self) -> Vec<UsedMap> {
        let files = self.given.iter().chain(&self.discovered);
        let files = files.zip(&self.named);
        files
            .map(|(file, &classes_named)| UsedMap {
                classes_named,
                ..UsedMap::new(file)
            })
            .collect()
    }
}

/// Kind of the finding of [`minified`].
pub const MAPPING_MISSING: &str = "mapping-missing";

/// Returns a finding if classes of a heap have minified names and mappings named fewer.
pub fn minified(graph: &HeapGraph) -> Option<Finding> {
    let classes = deobfuscate::minified_classes(graph);
    let first = classes.iter().take(3).copied().collect::<Vec<_>>();
    let is_named = |class: &Class| class.deobfuscated.is_some();
    let help = match graph.classes().iter().any(is_named) {
        true => "the R8 mapping lacks them; check that it is of the build on the device",
        false => "use `--mapping FILE` with the R8 mapping file to deobfuscate them",
    };
    let message = format!(
        "{} ({} …); {help}",
        counted(
            classes.len() as u64,
            "class has a minified name",
            "classes have minified names"
        ),
        first.join(", ")
    );
    (!classes.is_empty()).then(|| Finding::new(MAPPING_MISSING, None, message))
}

/// Adds the files used for one input to those used for others.
pub fn add_used(all: &mut Vec<UsedMap>, more: Vec<UsedMap>) {
    for used in more {
        let same = |known: &&mut UsedMap| {
            known.map.file.path() == used.map.file.path() && known.map.package == used.map.package
        };
        match all.iter_mut().find(same) {
            Some(known) => {
                known.packages.extend(used.packages);
                known.frames_named += used.frames_named;
                known.classes_named += used.classes_named;
            }
            None => all.push(used),
        }
    }
}
