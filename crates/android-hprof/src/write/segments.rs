//! Dump segments, whose length precedes their sub-records, and the sub-records of roots and arrays.

use super::Heap;
use crate::records::tag;
use crate::sub_records::{HEAPS, root_tag, sub_tag};
use heaptap_model::heap_graph::{BasicType, HeapKind, ObjectIndex, RootKind};
use std::io;

/// Bytes after which a segment ends.
const SEGMENT_BYTES: usize = 1 << 16;

impl Heap<'_> {
    /// Begins an object of a heap.
    pub(super) fn begin(&mut self, heap: HeapKind) -> io::Result<()> {
        let is_full = |start| self.out.buffer.len() - start >= SEGMENT_BYTES;
        if self.open.is_some_and(is_full) {
            self.end(0)?;
        }
        let is_new = self.open.is_none();
        if is_new {
            self.open = Some(self.out.record_header(tag::HEAP_DUMP_SEGMENT, 0, 0)? + 4);
        }
        if is_new || self.heap != heap {
            self.heap = heap;
            self.out.buffer.push(sub_tag::HEAP_DUMP_INFO);
            self.put_u4(HEAPS[heap as usize].1);
            self.put_name(self.heap_names[heap as usize]);
        }
        Ok(())
    }

    /// Ends the open segment, to which so many bytes are added.
    pub(super) fn end(&mut self, more: usize) -> io::Result<()> {
        if let Some(start) = self.open.take() {
            let length = u32::try_from(self.out.buffer.len() - start + more);
            let length = length.map_err(|_| io::Error::other("an array takes more than 4 GiB"))?;
            self.out.buffer[start - 4..start].copy_from_slice(&length.to_be_bytes());
        }
        Ok(())
    }

    /// Begins a sub-record: its tag, the ID, and no stack.
    pub(super) fn put_head(&mut self, tag: u8, id: u64) {
        self.out.buffer.push(tag);
        self.put_id(id);
        self.put_u4(0);
    }

    pub(super) fn put_root(&mut self, object: ObjectIndex, kind: RootKind) {
        self.out.buffer.push(root_tag(kind));
        self.put_id(self.id(object));
        match kind {
            RootKind::JniGlobal => self.put_id(0),
            RootKind::JniLocal | RootKind::JavaFrame | RootKind::JniMonitor => {
                self.put_u4(0);
                self.put_u4(u32::MAX);
            }
            RootKind::NativeStack | RootKind::ThreadBlock => self.put_u4(0),
            // Its own number: no other thread has it.
            RootKind::ThreadObject => {
                self.put_u4(object.0 + 1);
                self.put_u4(0);
            }
            _ => {}
        }
    }

    /// Writes an array of references, then nulls.
    pub(super) fn put_objects(
        &mut self,
        id: u64,
        class: usize,
        elements: &[ObjectIndex],
        nulls: u64,
    ) -> io::Result<()> {
        let nulls = self.take(nulls, self.ids.bytes() as u64);
        let mut content = Vec::new();
        self.ids.put(&mut content, self.rows[class].id);
        for &element in elements {
            self.ids.put(&mut content, self.id(element));
        }
        let zeros = nulls as usize * self.ids.bytes();
        let length = elements.len() as u64 + nulls;
        self.put_array(sub_tag::OBJECT_ARRAY, (id, length), &content, zeros)
    }

    /// Writes an array of zeros.
    pub(super) fn put_primitives(
        &mut self,
        id: u64,
        basic: BasicType,
        length: u64,
    ) -> io::Result<()> {
        let width = basic.bytes(8) as u64;
        let length = self.take(length, width);
        let zeros = (length * width) as usize;
        self.put_array(
            sub_tag::PRIMITIVE_ARRAY,
            (id, length),
            &[basic as u8],
            zeros,
        )
    }

    /// Writes an array, in a segment of its own if it is large.
    fn put_array(
        &mut self,
        tag: u8,
        (id, length): (u64, u64),
        content: &[u8],
        zeros: usize,
    ) -> io::Result<()> {
        let bytes = 9 + self.ids.bytes() + content.len() + zeros;
        let is_large = bytes > SEGMENT_BYTES;
        if is_large {
            self.end(0)?;
        }
        self.begin(self.heap)?;
        if is_large {
            self.end(bytes)?;
        }
        self.put_head(tag, id);
        self.put_u4(u32::try_from(length).unwrap_or(u32::MAX));
        self.out.buffer.extend_from_slice(content);
        if is_large {
            return self.out.zeros(zeros);
        }
        let end = self.out.buffer.len() + zeros;
        self.out.buffer.resize(end, 0);
        Ok(())
    }
}
