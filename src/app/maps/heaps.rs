//! The maps for Java heaps: the same as for the frames of their trace, in the same order.

use super::{GivenMap, Maps, UsedMap};
use crate::app::findings::Finding;
use crate::deobfuscate::{self, AppMap, MapSource, Scope, SeenIn};
use crate::heap_graph::HeapGraph;
use crate::profile::{NameMaps, Process, Recording};
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

impl Maps {
    /// Names the classes and fields of a Java heap that lies in no trace; says what the user
    /// should know.
    pub fn name_heap(&self, graph: &mut HeapGraph) -> Vec<Finding> {
        let mut recording = Recording::default();
        let pid = graph.facts.pid.unwrap_or(0);
        let process = Process {
            name: graph.facts.process.clone(),
            uid: None,
            ..Process::default()
        };
        recording.processes = BTreeMap::from([(pid, process)]);
        let own = NameMaps::default();
        let found = self.for_trace(&recording, &own, &SeenIn::new(), &BTreeSet::from([pid]));
        let (given, discovered) = super::given_first(found.maps);
        let mut maps = HeapMaps::new(given, Arc::new(own), discovered);
        maps.name(graph, &recording);
        let mut findings = found.findings;
        findings.extend(maps.unused());
        findings
    }
}
