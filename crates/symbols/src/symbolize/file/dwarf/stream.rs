//! Units of a compressed `.debug_info`, in order, as soon as they are decompressed. Only units that
//! are not read yet are in memory.
//!
//! One thread at a time decompresses while the others read units. If enough units wait, it reads
//! units, too.

use super::units::Units;
use crate::symbolize::file::inflate::Inflater;
use heaptap_base::error::catch_panic;
use heaptap_base::parallel::lock;
use std::collections::VecDeque;
use std::num::NonZero;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Decompressed unit.
pub(super) struct RawUnit {
    /// Offset of its header in the section.
    pub start: usize,
    pub bytes: Vec<u8>,
}

/// Returns whether the unit that starts there, which can have code or not, will be read.
pub(super) type IsNeeded<'run> = dyn Fn(usize, bool) -> bool + Sync + 'run;

/// Units that are being decompressed.
pub(super) struct Stream<'run> {
    source: Mutex<Source>,
    queue: Mutex<Queue>,
    changed: Condvar,
    is_needed: &'run IsNeeded<'run>,
    /// Total size of waiting units from which on the decompressing thread reads units.
    enough: usize,
}

#[derive(Default)]
struct Queue {
    units: VecDeque<RawUnit>,
    /// Total size of the units.
    bytes: usize,
    /// True while a thread decompresses.
    is_filling: bool,
    end: Option<End>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Reached,
    Failed,
}

/// Total size of units that wait for other threads.
const ENOUGH: usize = 64 << 20;

impl<'run> Stream<'run> {
    /// Makes a stream of the units for which `is_needed` returns true, for this many threads.
    pub fn new(
        inflater: Inflater,
        is_needed: &'run IsNeeded<'run>,
        threads: NonZero<usize>,
    ) -> Stream<'run> {
        Stream {
            source: Mutex::new(Source {
                size: inflater.left(),
                inflater,
                assembly: Assembly::default(),
                units: Units::default(),
            }),
            queue: Mutex::default(),
            changed: Condvar::new(),
            is_needed,
            enough: if threads.get() > 1 { ENOUGH } else { 1 },
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }

    /// Decompresses units until enough of them wait.
    pub fn fill(&self) {
        let queue = self.queue();
        if !queue.is_filling && queue.end.is_none() {
            drop(self.fill_from(queue));
        }
    }

    /// Decompresses units until enough of them wait, at least one piece.
    fn fill_from<'queue>(
        &'queue self,
        mut queue: MutexGuard<'queue, Queue>,
    ) -> MutexGuard<'queue, Queue> {
        queue.is_filling = true;
        loop {
            drop(queue);
            let mut source = lock(&self.source);
            let mut units = Vec::new();
            let advanced = catch_panic(|| source.advance(self.is_needed, &mut units));
            drop(source);
            queue = self.queue();
            match advanced {
                Ok(Ok(false)) => {}
                // The stream could also have been given up meanwhile.
                Ok(Ok(true)) => queue.end = queue.end.or(Some(End::Reached)),
                Ok(Err(Broken)) | Err(_) => queue.end = Some(End::Failed),
            }
            queue.bytes += units.iter().map(|unit| unit.bytes.len()).sum::<usize>();
            queue.units.extend(units);
            if queue.end.is_some() || queue.bytes >= self.enough {
                queue.is_filling = false;
                self.changed.notify_all();
                return queue;
            }
            self.changed.notify_all();
        }
    }

    /// Returns the next unit, and decompresses it if no other thread does. `None` at the end, or if
    /// the stream failed.
    pub fn next(&self) -> Option<RawUnit> {
        let mut queue = self.queue();
        loop {
            if queue.end == Some(End::Failed) {
                return None;
            }
            if !queue.is_filling && queue.end.is_none() && queue.bytes < self.enough {
                queue = self.fill_from(queue);
            } else if let Some(unit) = queue.units.pop_front() {
                queue.bytes -= unit.bytes.len();
                return Some(unit);
            } else if queue.is_filling {
                let woken = self.changed.wait(queue);
                queue = woken.unwrap_or_else(PoisonError::into_inner);
            } else if queue.end.is_some() {
                return None;
            }
        }
    }

    /// Ends the stream early.
    pub fn give_up(&self) {
        let mut queue = self.queue();
        queue.end = Some(End::Failed);
        queue.units.clear();
        queue.bytes = 0;
        self.changed.notify_all();
    }

    /// Returns all units of the section; `None` if the stream failed.
    pub fn into_units(self) -> Option<Units> {
        let queue = self
            .queue
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        let source = self
            .source
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        (queue.end == Some(End::Reached)).then_some(source.units)
    }
}

/// The section is damaged, or not as compilers write it.
#[derive(Debug)]
struct Broken;

struct Source {
    inflater: Inflater,
    assembly: Assembly,
    /// Size of the section.
    size: usize,
    units: Units,
}

/// Unit whose bytes are not complete.
#[derive(Default)]
struct Assembly {
    /// Offset of its header in the section.
    start: usize,
    /// Its bytes: those of the header, or all, if it is needed.
    bytes: Vec<u8>,
    header: Option<Header>,
    /// Number of bytes that follow, if the header is known.
    left: usize,
}

impl Source {
    /// Decompresses a piece, and adds the units that it completes. Returns true at the end.
    fn advance(
        &mut self,
        is_needed: &IsNeeded<'_>,
        complete: &mut Vec<RawUnit>,
    ) -> Result<bool, Broken> {
        let unit = &mut self.assembly;
        let mut piece = self.inflater.next().ok_or(Broken)?;
        if piece.is_empty() {
            return match unit.bytes.is_empty() && unit.header.is_none() {
                true => Ok(true),
                false => Err(Broken),
            };
        }
        while !piece.is_empty() {
            let Some(header) = &unit.header else {
                unit.bytes.push(piece[0]);
                piece = &piece[1..];
                let Some(header) = Header::read(&unit.bytes)? else {
                    continue;
                };
                unit.left = header.size.checked_sub(unit.bytes.len()).ok_or(Broken)?;
                let end = unit.start.checked_add(header.size).ok_or(Broken)?;
                if end > self.size {
                    return Err(Broken);
                }
                self.units.add(unit.start..end, header.has_code);
                if is_needed(unit.start, header.has_code) {
                    unit.bytes.reserve_exact(unit.left);
                } else {
                    unit.bytes = Vec::new();
                }
                unit.header = Some(header);
                continue;
            };
            let (bytes, rest) = piece.split_at(unit.left.min(piece.len()));
            let is_needed = !unit.bytes.is_empty();
            if is_needed {
                unit.bytes.extend_from_slice(bytes);
            }
            unit.left -= bytes.len();
            piece = rest;
            if unit.left == 0 {
                let next = unit.start + header.size;
                let Assembly { start, bytes, .. } = std::mem::take(unit);
                if is_needed {
                    complete.push(RawUnit { start, bytes });
                }
                unit.start = next;
            }
        }
        Ok(false)
    }
}

/// Beginning of a unit's header (DWARF 5, 7.5.1).
#[derive(Debug, PartialEq, Eq)]
struct Header {
    /// Size of the unit with its header.
    size: usize,
    /// True if the unit can have code: it is not a type unit.
    has_code: bool,
}

impl Header {
    /// Reads the beginning of a header; `None` if more bytes are needed.
    fn read(bytes: &[u8]) -> Result<Option<Header>, Broken> {
        let Some(length) = bytes.first_chunk() else {
            return Ok(None);
        };
        let (length, prefix, word) = match u32::from_le_bytes(*length) {
            u32::MAX => match bytes.get(4..12).and_then(|length| length.first_chunk()) {
                Some(length) => (u64::from_le_bytes(*length), 12, 8),
                None => return Ok(None),
            },
            length => (length.into(), 4, 4),
        };
        let Some([low, high, kind, address, ..]) = bytes.get(prefix..prefix + 3 + word) else {
            return Ok(None);
        };
        let version = u16::from_le_bytes([*low, *high]);
        let (kind, address, header) = match version {
            2..=4 => (1, bytes[prefix + 2 + word], 3 + word),
            5 => match kind {
                1 | 3 => (*kind, *address, 4 + word),
                2 | 6 => (*kind, *address, 12 + 2 * word),
                4 | 5 => (*kind, *address, 12 + word),
                _ => return Err(Broken),
            },
            _ => return Err(Broken),
        };
        let size = usize::try_from(length).map_err(|_| Broken)?;
        if size <= header || !matches!(address, 1 | 2 | 4 | 8) {
            return Err(Broken);
        }
        Ok(Some(Header {
            size: size.checked_add(prefix).ok_or(Broken)?,
            has_code: !matches!(kind, 2 | 6),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbolize::file::inflate::Method;

    /// A unit of DWARF 5 of this kind, with so many bytes after its header.
    fn unit(kind: u8, more: usize) -> Vec<u8> {
        let size = (8 + more) as u32;
        let header = [5, 0, kind, 8, 0, 0, 0, 0];
        let mut bytes = [&size.to_le_bytes()[..], &header].concat();
        bytes.extend((0..more).map(|at| at as u8));
        bytes
    }

    fn read(section: &[u8], threads: usize) -> Option<Vec<(usize, Vec<u8>)>> {
        let packed = zstd::bulk::compress(section, 1).unwrap();
        let inflater = Inflater::new(Method::Zstd, packed.into(), section.len()).unwrap();
        // Every other unit with code is left out.
        let is_needed = |start: usize, has_code: bool| has_code && start.is_multiple_of(2);
        let stream = Stream::new(inflater, &is_needed, NonZero::new(threads).unwrap());
        let found = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some(unit) = stream.next() {
                        found.lock().unwrap().push((unit.start, unit.bytes));
                    }
                });
            }
        });
        stream.into_units()?;
        let mut found = found.into_inner().unwrap();
        found.sort();
        Some(found)
    }

    #[test]
    fn needed_units_are_returned_whole() {
        let (mut section, mut needed) = (Vec::new(), Vec::new());
        for more in [1, 20, 300_001, 5, 100, 700_000, 2, 64, 131_000, 3] {
            for kind in [1, 2] {
                let more = if kind == 2 { more + 20 } else { more };
                let unit = unit(kind, more);
                if kind == 1 && section.len().is_multiple_of(2) {
                    needed.push((section.len(), unit.clone()));
                }
                section.extend(unit);
            }
        }
        for threads in [1, 3] {
            assert!(read(&section, threads).as_ref() == Some(&needed));
        }
    }

    #[test]
    fn damaged_headers_and_cut_units_end_the_stream() {
        let whole = [unit(1, 50), unit(1, 60)].concat();
        assert!(read(&whole, 1).is_some());
        for length in 1..whole.len() {
            assert_eq!(read(&whole[..length], 2).is_some(), length == 62);
        }
        // The length, the version, the kind, and the size of addresses.
        for at in [0, 3, 4, 6, 7, 62, 66] {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x48;
            assert!(read(&damaged, 2).is_none(), "{at}");
        }
    }
}
