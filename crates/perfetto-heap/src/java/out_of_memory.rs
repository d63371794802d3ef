//! `ArtProcessMetadata` (trace_packet.art_process_metadata, field 131): a process's metadata in
//! addition to a heap dump, including the OutOfMemoryError that caused it.

use crate::wire::{Fields, WireError};
use heaptap_model::heap_graph::{OutOfMemory, ThrownFrame};
use heaptap_model::names::ART_METADATA;
use heaptap_model::profile::{CallsiteId, Frame, Line, Mapping, Package, Recording, StringId};
use std::collections::HashSet;

/// Maximum number of frames read of a stack: the runtime's own limit is much lower.
const MAX_FRAMES: usize = 1 << 14;

/// Names of the packages of a recording, so that many packets do not each need a search.
#[derive(Debug, Default)]
pub(crate) struct KnownPackages {
    names: HashSet<String>,
    /// Number of the recording's packages that are included.
    taken: usize,
}

impl KnownPackages {
    /// Returns whether the recording lists a package.
    fn has(&mut self, recording: &Recording, name: &str) -> bool {
        let new = recording.packages.get(self.taken..).unwrap_or_default();
        self.names.extend(new.iter().map(|p| p.name.clone()));
        self.taken = recording.packages.len();
        self.names.contains(name)
    }
}

/// Reads a packet: process ID, and the error if there is one. Names the process if it does not have
/// a name, and lists its package.
pub(crate) fn read_art_metadata(
    message: &[u8],
    recording: &mut Recording,
    known_packages: &mut KnownPackages,
) -> Result<(u64, Option<OutOfMemory>), WireError> {
    let (mut pid, mut uid) = (0, None);
    let (mut process, mut package) = (String::new(), String::new());
    let mut oom = OutOfMemory::default();
    let mut is_oom = false;
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => pid = u64::from(value.number() as u32),
            2 => uid = Some(u64::from(value.number() as u32)),
            3 => process = value.text(),
            4 => package = value.text(),
            5 => {
                is_oom = true;
                oom.allocation_bytes = value.number();
            }
            6 => oom.free_bytes = value.number(),
            7 => oom.free_until_oom_bytes = value.number(),
            8 => {
                let mut stack = Fields::new(value.bytes());
                while let Some((number, value)) = stack.next()? {
                    if number == 1 && oom.stack.len() < MAX_FRAMES {
                        oom.stack.push(read_frame(value.bytes())?);
                    }
                }
            }
            9 => oom.message = value.text(),
            _ => {}
        }
    }
    if !process.is_empty() {
        let known = recording.processes.entry(pid).or_default();
        if known.name.is_empty() {
            known.name = process;
        }
        known.uid = known.uid.or(uid);
    }
    if !package.is_empty() && !known_packages.has(recording, &package) {
        recording.packages.push(Package {
            name: package,
            uid: uid.unwrap_or(0),
            ..Package::default()
        });
    }
    if !oom.stack.is_empty() {
        oom.callsite = Some(enter_stack(&oom.stack, recording));
    }
    if is_oom {
        recording.out_of_memory = Some((pid, oom.message.clone()));
    }
    Ok((pid, is_oom.then_some(oom)))
}

/// Enters a stack into the tables of the recording.
fn enter_stack(stack: &[ThrownFrame], recording: &mut Recording) -> CallsiteId {
    let (tables, symbols) = (&mut recording.tables, &mut recording.symbols);
    let path = tables.intern_str(ART_METADATA);
    let mapping = tables.intern_mapping(Mapping {
        path,
        ..Mapping::default()
    });
    let mut enter = |thrown: &ThrownFrame| {
        let mut text = |text: &str| match text {
            "" => StringId::default(),
            text => tables.intern_str(text),
        };
        let (name, file, line) = (text(&thrown.method), text(&thrown.file), thrown.line);
        let frame = tables.intern_frame(Frame {
            mapping: Some(mapping),
            rel_pc: 0,
            name,
            file,
            line,
        });
        if symbols.row(frame).is_none()
            && (file, line) != (StringId::default(), 0)
            && let Some(lines) = symbols.add_lines(&[Line {
                function: name,
                linkage: name,
                file,
                line,
            }])
        {
            symbols.set_lines(frame, lines);
        }
        frame.0
    };
    // Callers come first in the tables.
    let mut frames: Vec<u32> = stack.iter().rev().map(&mut enter).collect();
    frames.reverse();
    tables.intern_callsite(&frames)
}

fn read_frame(message: &[u8]) -> Result<ThrownFrame, WireError> {
    let mut frame = ThrownFrame::default();
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => {
                // "void com.example.Cache.grow(int)"
                let whole = value.text();
                let name = whole.split('(').next().unwrap_or(&whole);
                frame.method = name.rsplit(' ').next().unwrap_or(name).to_owned();
            }
            2 => frame.file = value.text(),
            3 => frame.line = value.number() as u32,
            _ => {}
        }
    }
    Ok(frame)
}
