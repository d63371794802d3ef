//! The maps for Java heaps: the same as for the frames of their trace, in the same order.

use super::{GivenMap, R8Mappings, UsedMap};
use crate::deobfuscate::{self, AppMap, MapSource, Scope, SeenIn};
use crate::heap_graph::HeapGraph;
use crate::profile::{NameMaps, Process, Recording};
use crate::results::findings::Finding;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A mapping file with the apps it is for.
pub(super) type ForApps = (GivenMap, BTreeSet<String>);

/// Maps for the Java heaps of one input.
#[derive(Debug, Default)]
pub struct HeapMaps {
    /// Files that were given.
    pub(super) given: Vec<ForApps>,
    /// What a trace says itself.
    pub(super) own: Arc<NameMaps>,
    /// Files that were found.
    pub(super) discovered: Vec<ForApps>,
    /// Classes that each file named, given ones first.
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

    /// Names the classes and fields of a heap. `recording` tells whose process it is.
    pub fn name(&mut self, graph: &mut HeapGraph, recording: &Recording) {
        self.heaps += 1;
        let own = self.own.iter().map(|(package, map)| AppMap {
            scope: Scope::Package(package.to_owned()),
            source: MapSource::Packets(map),
        });
        let mut all: Vec<AppMap> = self.given.iter().map(|(map, _)| map.as_map()).collect();
        all.extend(own);
        let before = all.len();
        all.extend(self.discovered.iter().map(|(map, _)| map.as_map()));
        let counts = deobfuscate::name_heap(graph, recording, &all);
        let of_files = counts[..self.given.len()].iter().chain(&counts[before..]);
        for (named, count) in self.named.iter_mut().zip(of_files) {
            *named += count;
        }
    }

    /// Files that were given and know no class of these heaps.
    pub fn unused(&self) -> Vec<Finding> {
        match self.heaps {
            0 => Vec::new(),
            _ => super::unused(&self.used(), 0, true),
        }
    }

    /// Classes that each file named, in the order of [`HeapMaps::used`].
    pub(super) fn classes_named(&self) -> &[u64] {
        &self.named
    }

    /// How many heaps were named, or found to need no names.
    pub fn heaps(&self) -> usize {
        self.heaps
    }

    /// The files, and how many classes each named in all heaps.
    pub fn used(&self) -> Vec<UsedMap> {
        let files = self.given.iter().chain(&self.discovered);
        let files = files.zip(&self.named);
        files
            .map(|((map, packages), &classes_named)| UsedMap {
                map: map.clone(),
                packages: packages.clone(),
                frames_named: 0,
                classes_named,
            })
            .collect()
    }
}

/// What came of naming a Java heap that lies in no trace.
#[derive(Debug, Default)]
pub struct NamedHeap {
    /// The mapping files for it, and how many classes each named.
    pub maps: Vec<UsedMap>,
    /// What the user should know.
    pub findings: Vec<Finding>,
}

impl R8Mappings {
    /// Names the classes and fields of a Java heap that lies in no trace. `own` are the names
    /// that its recording keeps.
    pub fn name_heap(&self, graph: &mut HeapGraph, own: &Arc<NameMaps>) -> NamedHeap {
        let mut recording = Recording::default();
        let pid = graph.facts.pid.unwrap_or(0);
        let process = Process {
            name: graph.facts.process.clone(),
            uid: None,
            ..Process::default()
        };
        recording.processes = BTreeMap::from([(pid, process)]);
        let found = self.for_trace(&recording, own, &SeenIn::new(), &BTreeSet::from([pid]));
        let (given, discovered) = super::given_first(found.maps);
        let mut maps = HeapMaps::new(given, Arc::clone(own), discovered);
        maps.name(graph, &recording);
        let mut findings = found.findings;
        findings.extend(maps.unused());
        NamedHeap {
            maps: maps.used(),
            findings,
        }
    }
}

/// The finding that classes of a heap have minified names and no mapping file named any.
pub fn minified(graph: &HeapGraph) -> Option<Finding> {
    let classes = deobfuscate::minified_classes(graph);
    let first = classes.iter().take(3).copied().collect::<Vec<_>>();
    let message = format!(
        "{} classes have minified names ({} …); --mapping FILE with R8's mapping file names them",
        classes.len(),
        first.join(", ")
    );
    (!classes.is_empty()).then(|| super::warning("mapping-missing", message, ""))
}

/// Adds what was used for one input to what was used for others.
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
