//! Records of the file: dump segments, whose length precedes their sub-records, and roots.

use super::Heap;
use heaptap_model::heap_graph::{HeapKind, ObjectIndex, RootKind};
use std::io::{self, Write};

/// Bytes after which a segment ends.
const SEGMENT: u64 = 1 << 16;
/// Names and numbers of the heaps, by [`HeapKind`].
pub(super) const HEAPS: [(&str, u32); 4] =
    [("default", 0), ("app", 65), ("zygote", 90), ("image", 73)];

/// Sub-records of one dump segment, before its length is known.
pub(super) struct Segment<'w> {
    pub(super) out: &'w mut dyn Write,
    pub(super) bytes: Vec<u8>,
    /// Heap of the objects that follow, which each segment states again.
    heap: HeapKind,
}

impl<'w> Segment<'w> {
    pub(super) fn new(out: &'w mut dyn Write) -> Segment<'w> {
        Segment {
            out,
            bytes: Vec::new(),
            heap: HeapKind::Unknown,
        }
    }

    /// Begins an object of a heap.
    pub(super) fn begin(&mut self, of: &Heap<'_>, heap: HeapKind) -> io::Result<()> {
        if self.bytes.len() as u64 >= SEGMENT {
            self.flush()?;
        }
        if self.bytes.is_empty() || self.heap != heap {
            self.heap = heap;
            self.bytes.push(0xfe);
            self.bytes.extend(HEAPS[heap as usize].1.to_be_bytes());
            of.put_name(&mut self.bytes, of.heap_names[heap as usize]);
        }
        Ok(())
    }

    /// Adds an array, in a segment of its own if it is large.
    pub(super) fn array(
        &mut self,
        of: &Heap<'_>,
        head: &[u8],
        elements: &[ObjectIndex],
        zeros: u64,
    ) -> io::Result<()> {
        let bytes = (head.len() + elements.len() * of.id_bytes) as u64 + zeros;
        let is_large = bytes > SEGMENT;
        if is_large {
            self.flush()?;
        }
        self.begin(of, self.heap)?;
        if is_large {
            let length = u32::try_from(self.bytes.len() as u64 + bytes);
            let length = length.map_err(|_| io::Error::other("an array takes more than 4 GiB"))?;
            self.out.write_all(&[0x1c, 0, 0, 0, 0])?;
            self.out.write_all(&length.to_be_bytes())?;
            self.out.write_all(&self.bytes)?;
            self.bytes.clear();
        }
        let out: &mut dyn Write = match is_large {
            true => &mut *self.out,
            false => &mut self.bytes,
        };
        out.write_all(head)?;
        for &element in elements {
            out.write_all(&of.id(element).to_be_bytes()[8 - of.id_bytes..])?;
        }
        io::copy(&mut io::Read::take(io::repeat(0), zeros), out).map(drop)
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        record(self.out, 0x1c, &self.bytes)?;
        self.bytes.clear();
        Ok(())
    }
}

pub(super) fn record(out: &mut dyn Write, tag: u8, body: &[u8]) -> io::Result<()> {
    out.write_all(&[tag, 0, 0, 0, 0])?;
    out.write_all(&(body.len() as u32).to_be_bytes())?;
    out.write_all(body)
}

impl Heap<'_> {
    pub(super) fn put_root(&self, object: ObjectIndex, kind: RootKind, out: &mut Vec<u8>) {
        let tag = match kind {
            RootKind::Unknown => 0xff,
            RootKind::InternedString => 0x89,
            RootKind::Finalizing => 0x8a,
            RootKind::Debugger => 0x8b,
            RootKind::ReferenceCleanup => 0x8c,
            RootKind::VmInternal => 0x8d,
            RootKind::JniMonitor => 0x8e,
            RootKind::Unreachable => 0x90,
            // Numbers of the format.
            kind => kind as u8,
        };
        out.push(tag);
        self.put_id(out, self.id(object));
        match kind {
            RootKind::JniGlobal => self.put_id(out, 0),
            RootKind::JniLocal | RootKind::JavaFrame | RootKind::JniMonitor => {
                out.extend([0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
            }
            RootKind::NativeStack | RootKind::ThreadBlock => out.extend([0; 4]),
            // Its own number: no other thread has it.
            RootKind::ThreadObject => {
                out.extend((object.0 + 1).to_be_bytes());
                out.extend([0; 4]);
            }
            _ => {}
        }
    }
}
