//! Numbers for strings, mappings, frames and callstacks within one packet sequence.

use std::collections::{BTreeMap, BTreeSet};

use crate::workload::{FrameDef, MappingDef};
use heaptap_proto::perfetto as pb;

/// Table of InternedData that contains a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Table {
    Functions,
    BuildIds,
    Paths,
}

/// New table entries that a packet must include.
#[derive(Debug, Clone, Default)]
pub(super) struct Fresh {
    pub(super) functions: Vec<pb::InternedString>,
    pub(super) build_ids: Vec<pb::InternedString>,
    pub(super) paths: Vec<pb::InternedString>,
    pub(super) mappings: Vec<pb::Mapping>,
    pub(super) frames: Vec<pb::Frame>,
    pub(super) callstacks: Vec<pb::Callstack>,
}

/// The assigned numbers. Strings share one counter, as in heapprofd.
#[derive(Debug, Default)]
pub(super) struct Interner {
    strings: BTreeMap<Vec<u8>, u64>,
    sent: BTreeSet<(Table, u64)>,
    mappings: BTreeMap<Vec<u8>, u64>,
    frames: BTreeMap<(u64, u64, u64), u64>,
    /// Android 10: offsets of mappings are omitted.
    legacy: bool,
}

fn key(m: &MappingDef) -> Vec<u8> {
    let mut key = m.path.clone().into_bytes();
    for n in [m.start, m.end, m.exact_offset] {
        key.extend_from_slice(&n.to_le_bytes());
    }
    key
}

impl Interner {
    pub(super) fn new(legacy: bool) -> Self {
        Interner {
            legacy,
            ..Interner::default()
        }
    }

    fn string(&mut self, table: Table, bytes: &[u8], fresh: &mut Fresh) -> u64 {
        let next = self.strings.len() as u64 + 1;
        let iid = *self.strings.entry(bytes.to_vec()).or_insert(next);
        // Android 10 has one table for all strings.
        let table = if self.legacy { Table::Functions } else { table };
        if self.sent.insert((table, iid)) {
            let entry = pb::InternedString {
                iid: Some(iid),
                str: Some(bytes.to_vec()),
            };
            match table {
                Table::Functions => fresh.functions.push(entry),
                Table::BuildIds => fresh.build_ids.push(entry),
                Table::Paths => fresh.paths.push(entry),
            }
        }
        iid
    }

    fn mapping(&mut self, m: &MappingDef, fresh: &mut Fresh) -> u64 {
        let key = key(m);
        if let Some(iid) = self.mappings.get(&key) {
            return *iid;
        }
        let iid = self.mappings.len() as u64 + 1;
        self.mappings.insert(key, iid);
        let build_id = self.string(Table::BuildIds, &m.build_id, fresh);
        let parts: Vec<u64> = m
            .path
            .split('/')
            .filter(|p| !p.is_empty())
            .map(|p| self.string(Table::Paths, p.as_bytes(), fresh))
            .collect();
        fresh.mappings.push(pb::Mapping {
            iid: Some(iid),
            build_id: Some(build_id),
            start_offset: Some(m.start_offset),
            start: Some(m.start),
            end: Some(m.end),
            load_bias: Some(m.load_bias),
            path_string_ids: parts,
            exact_offset: (!self.legacy).then_some(m.exact_offset),
        });
        iid
    }

    fn frame(&mut self, f: &FrameDef, mappings: &[MappingDef], fresh: &mut Fresh) -> u64 {
        let mapping = self.mapping(&mappings[f.mapping], fresh);
        let function = self.string(Table::Functions, f.function.as_bytes(), fresh);
        let next = self.frames.len() as u64 + 1;
        let iid = *self
            .frames
            .entry((mapping, function, f.rel_pc))
            .or_insert(next);
        if iid == next {
            fresh.frames.push(pb::Frame {
                iid: Some(iid),
                function_name_id: Some(function),
                mapping_id: Some(mapping),
                rel_pc: Some(f.rel_pc),
            });
        }
        iid
    }

    /// Adds the callstack with the number `iid` and the entries that it needs.
    pub(super) fn callstack(
        &mut self,
        iid: u64,
        frames: &mut dyn Iterator<Item = &FrameDef>,
        mappings: &[MappingDef],
        fresh: &mut Fresh,
    ) {
        let frame_ids = frames.map(|f| self.frame(f, mappings, fresh)).collect();
        fresh.callstacks.push(pb::Callstack {
            iid: Some(iid),
            frame_ids,
        });
    }
}
