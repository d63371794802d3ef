//! Stacks of a dump: threads with their frames, and the stacks that allocated objects if
//! allocations were tracked.

use super::id_map::IdMap;
use super::names::java_class_name;
use super::outline::Outline;
use super::records::Frame;
use heaptap_base::bytes::Bytes;
use heaptap_model::heap_graph::ObjectIndex;
use std::slice::ChunksExact;

/// Maximum number of frames of a stack: a hostile dump can claim one long stack for every object.
const MAX_FRAMES: usize = 2048;

#[derive(Debug, Default)]
pub(super) struct Stacks {
    /// Names of classes as IDs of the string table, by the serial numbers of LOAD_CLASS.
    classes: IdMap<u64>,
    /// Serial number of a thread, its object and its stack; ascending. The first of each is used.
    threads: Vec<(u32, ObjectIndex, Option<u32>)>,
}

impl Stacks {
    pub(super) fn new(
        outline: &Outline,
        mut threads: Vec<(u32, ObjectIndex, Option<u32>)>,
    ) -> Stacks {
        threads.sort_by_key(|thread| thread.0);
        let classes = outline.loaded.iter();
        Stacks {
            classes: classes.map(|c| (c.serial.into(), c.name)).collect(),
            threads,
        }
    }

    /// Returns the object of a thread and the number of its stack.
    pub(super) fn thread(&self, serial: u32) -> Option<(ObjectIndex, Option<u32>)> {
        let at = self.threads.partition_point(|thread| thread.0 < serial);
        let &(found, object, stack) = self.threads.get(at)?;
        (found == serial).then_some((object, stack))
    }

    /// Returns the serial number of a stack's thread, and the IDs of its frames, the innermost first.
    pub(super) fn ids<'a>(
        &self,
        file: &'a Bytes,
        outline: &Outline,
        stack: u32,
    ) -> Option<(u32, ChunksExact<'a, u8>)> {
        let traces = &outline.stacks.traces;
        let at = traces.partition_point(|trace| trace.0 < stack);
        let &(found, thread, ids_at, bytes) = traces.get(at)?;
        if found != stack {
            return None;
        }
        let width = outline.id_size.bytes();
        let ids = file.get(ids_at..ids_at + bytes.min(MAX_FRAMES * width))?;
        Some((thread, ids.chunks_exact(width)))
    }

    /// Formats the frame with an ID.
    pub(super) fn frame_of(&self, file: &Bytes, outline: &Outline, id: &[u8]) -> String {
        let id = outline.id_size.read(id).unwrap_or_default();
        let all = &outline.stacks.frames;
        let at = all.partition_point(|frame| frame.id < id);
        match all.get(at) {
            Some(frame) if frame.id == id => self.frame(file, outline, frame),
            _ => format!("unknown frame 0x{id:x}"),
        }
    }

    /// Formats a frame such as `lab.LeakLab.main (LeakLab.java:42)`.
    fn frame(&self, file: &Bytes, outline: &Outline, frame: &Frame) -> String {
        let text = |id| outline.strings.get(file, id);
        let class = self.classes.get(&u64::from(frame.class_serial));
        let class = class.and_then(|&name| text(name));
        let class = class.map(|raw| java_class_name(&raw) + ".");
        let method = text(frame.method);
        let source = text(frame.source).filter(|source| !source.is_empty());
        let place = match (source, frame.line) {
            (_, -3) => "native method".to_owned(),
            (Some(source), 1..) => format!("{source}:{}", frame.line),
            (Some(source), -2) => format!("{source}, compiled"),
            (Some(source), _) => source,
            (None, _) => "unknown source".to_owned(),
        };
        let class = class.unwrap_or_default();
        let method = method.unwrap_or_else(|| "unknown method".to_owned());
        format!("{class}{method} ({place})")
    }
}
