//! `ArtProcessMetadata` (trace_packet.art_process_metadata, field 131): a process's metadata in
//! addition to a heap dump, including the OutOfMemoryError that caused it.

use crate::wire::{Fields, WireError};
use heaptap_model::heap_graph::{OutOfMemory, ThrownFrame};
use heaptap_model::profile::{Package, Recording};
use std::collections::HashSet;

/// Maximum number of frames read of a stack: the runtime's own limit is much lower.
const MOST_FRAMES: usize = 1 << 14;

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
                    if number == 1 && oom.stack.len() < MOST_FRAMES {
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
    Ok((pid, is_oom.then_some(oom)))
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
