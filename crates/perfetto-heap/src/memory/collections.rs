//! Collections of Java heaps out of ART's slices, and the heap's size out of its counter. Owns
//! how ART calls its collections, and which figure is the live set.
//!
//! ART begins a slice `CAUSE COLLECTOR GC` on the thread that collects, with slices of its
//! phases inside; those in which it has the app stand still are called `(Paused)…`, or say that
//! the mutators are suspended. Behind the end the same thread puts the new size of the heap into
//! a counter, which other threads raise as they take new buffers: so the live set is that
//! thread's next figure, or, where it is lost, the first of any.

use std::collections::HashMap;

use super::{MemoryLoss, Sink};
use heaptap_model::timeline::{Collection, Entry, JavaHeap, Observation, Source};

/// Sizes of a heap are kept this often, beside those around collections.
const EVERY: u64 = 20_000_000;
/// The collecting thread's figure comes at once: one that comes so late is of something else.
const AT_ONCE: u64 = 1_000_000_000;
/// More pauses of one collection are not told apart.
const MOST_PAUSES: usize = 64;
/// A longer name is no collection's.
const LONGEST_NAME: usize = 160;

/// An event, its name a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Event {
    /// BOOTTIME, ns.
    pub(super) at: u64,
    pub(super) thread: u32,
    pub(super) kind: Kind,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A collection begins, in this process, of this name.
    Collection { pid: u32, name: u16 },
    /// A part of a collection begins in which the app stands still.
    Pause,
    /// Another slice begins.
    Other,
    /// The innermost slice ends.
    End,
    /// The Java heap's size, bytes.
    HeapSize { pid: u32, bytes: u64 },
    /// Events of some processor were lost before this moment.
    Lost,
}

/// Whether a slice is a collection: `Background young concurrent copying GC`.
pub(super) fn is_collection(name: &[u8]) -> bool {
    split(name).is_some()
}

/// Cause and collector. Causes are one word in camel case, collectors are named in small
/// letters; which there are is the runtime's to extend.
fn split(name: &[u8]) -> Option<(&str, &str)> {
    let name = name
        .strip_suffix(b" GC")
        .filter(|n| n.len() <= LONGEST_NAME)?;
    let name = std::str::from_utf8(name).ok()?;
    let (cause, collector) = name.split_once(' ')?;
    let is_cause = cause.starts_with(|c: char| c.is_ascii_uppercase())
        && cause.chars().all(|c| c.is_ascii_alphanumeric());
    let is_collector = collector.starts_with(|c: char| c.is_ascii_lowercase())
        && collector
            .chars()
            .all(|c| c.is_ascii_lowercase() || matches!(c, ' ' | '+' | '-' | '(' | ')'));
    (is_cause && is_collector).then_some((cause, collector))
}

/// Whether a slice inside a collection is one in which the app stands still.
pub(super) fn is_pause(name: &[u8]) -> bool {
    name.starts_with(b"(Paused)") || name.starts_with(b"Mutator threads suspended")
}

/// Follows the collections of all processes.
#[derive(Debug)]
pub(super) struct Collections {
    every_counter: bool,
    /// By thread.
    open: HashMap<u32, Open>,
    /// By process.
    heaps: HashMap<u32, Heap>,
}

/// A collection that runs.
#[derive(Debug)]
struct Open {
    pid: u32,
    name: u16,
    begin: u64,
    /// Slices inside that are open.
    depth: u32,
    /// The pause that is open: at which depth it began, and when.
    pause: Option<(u32, u64)>,
    pauses: Vec<u64>,
    /// Events were lost meanwhile.
    torn: bool,
}

/// A Java heap.
#[derive(Debug, Default)]
struct Heap {
    /// The last size that was kept.
    kept_at: Option<u64>,
    /// The last size that was not.
    held: Option<(u64, u64)>,
    /// A collection whose live set is awaited.
    awaited: Option<Awaited>,
}

#[derive(Debug)]
struct Awaited {
    /// Its place among the entries.
    at: usize,
    end: u64,
    thread: u32,
    /// The first size that another thread told.
    others: Option<u64>,
}

impl Collections {
    pub(super) fn new(every_counter: bool) -> Self {
        Collections {
            every_counter,
            open: HashMap::new(),
            heaps: HashMap::new(),
        }
    }

    /// Takes the next event in order of time; `names` are those of collections by number.
    pub(super) fn take(
        &mut self,
        event: Event,
        names: &[&[u8]],
        sink: &mut Sink,
        loss: &mut MemoryLoss,
    ) {
        match event.kind {
            Kind::Collection { pid, name } => self.begin(event, (pid, name), names, sink, loss),
            Kind::Pause | Kind::Other => {
                let Some(open) = self.open.get_mut(&event.thread) else {
                    return;
                };
                open.depth = open.depth.saturating_add(1);
                if event.kind == Kind::Pause && open.pause.is_none() {
                    open.pause = Some((open.depth, event.at));
                }
            }
            Kind::End => self.end_of_slice(event, names, sink, loss),
            Kind::HeapSize { pid, bytes } => self.size(event, (pid, bytes), sink),
            Kind::Lost => self.open.values_mut().for_each(|open| open.torn = true),
        }
    }

    /// What is open at the end of the trace: a collection that still ran is none yet.
    pub(super) fn end(mut self, sink: &mut Sink, loss: &mut MemoryLoss) {
        loss.torn_collections += self.open.len() as u64;
        for (pid, heap) in &mut self.heaps {
            heap.settle(sink);
            heap.let_go(*pid, sink);
        }
    }

    fn begin(
        &mut self,
        event: Event,
        (pid, name): (u32, u16),
        names: &[&[u8]],
        sink: &mut Sink,
        loss: &mut MemoryLoss,
    ) {
        // A collection never begins within another of its thread: that one's end is lost.
        if let Some(torn) = self.open.remove(&event.thread) {
            self.finish(torn, None, event.thread, names, sink, loss);
        }
        if !sink.wants(pid) {
            return;
        }
        let heap = self.heaps.entry(pid).or_default();
        heap.settle(sink);
        heap.let_go(pid, sink);
        let open = Open {
            pid,
            name,
            begin: event.at,
            depth: 0,
            pause: None,
            pauses: Vec::new(),
            torn: false,
        };
        self.open.insert(event.thread, open);
    }

    fn end_of_slice(
        &mut self,
        event: Event,
        names: &[&[u8]],
        sink: &mut Sink,
        loss: &mut MemoryLoss,
    ) {
        let Some(open) = self.open.get_mut(&event.thread) else {
            return;
        };
        if let Some((depth, since)) = open.pause
            && depth == open.depth
        {
            open.pause = None;
            if open.pauses.len() < MOST_PAUSES {
                open.pauses.push(event.at.saturating_sub(since));
            }
        }
        if let Some(depth) = open.depth.checked_sub(1) {
            open.depth = depth;
            return;
        }
        if let Some(open) = self.open.remove(&event.thread) {
            self.finish(open, Some(event.at), event.thread, names, sink, loss);
        }
    }

    /// A collection is over; without an end where that is lost.
    fn finish(
        &mut self,
        open: Open,
        end: Option<u64>,
        thread: u32,
        names: &[&[u8]],
        sink: &mut Sink,
        loss: &mut MemoryLoss,
    ) {
        let name = names.get(usize::from(open.name));
        let Some((reason, collector)) = name.and_then(|name| split(name)) else {
            return;
        };
        // What was lost may have been the end of this one, or the begin of one inside.
        let sound = end.filter(|_| !open.torn);
        loss.torn_collections += u64::from(sound.is_none());
        let at = sink.next();
        let boot_ns = end.unwrap_or(open.begin);
        sink.see(
            boot_ns,
            open.pid,
            Observation::Collection(Collection {
                source: Some(Source::Ftrace),
                reason: reason.to_owned(),
                collector: collector.to_owned(),
                duration: sound.map(|end| end.saturating_sub(open.begin)),
                pauses: if sound.is_some() {
                    open.pauses
                } else {
                    Vec::new()
                },
                ..Collection::default()
            }),
        );
        if let Some(end) = end {
            let heap = self.heaps.entry(open.pid).or_default();
            heap.settle(sink);
            heap.let_go(open.pid, sink);
            heap.awaited = Some(Awaited {
                at,
                end,
                thread,
                others: None,
            });
        }
    }

    fn size(&mut self, event: Event, (pid, bytes): (u32, u64), sink: &mut Sink) {
        if !sink.wants(pid) {
            return;
        }
        let heap = self.heaps.entry(pid).or_default();
        let mut keep = self.every_counter;
        if let Some(awaited) = &mut heap.awaited {
            let late = event.at.saturating_sub(awaited.end) > AT_ONCE;
            if awaited.thread == event.thread && !(late && awaited.others.is_some()) {
                awaited.others = Some(bytes);
                heap.settle(sink);
                keep = true;
            } else if awaited.others.is_none() {
                awaited.others = Some(bytes);
                keep = true;
            }
        }
        keep |= heap
            .kept_at
            .is_none_or(|kept| event.at.saturating_sub(kept) >= EVERY);
        if keep {
            heap.keep(event.at, pid, bytes, sink);
        } else {
            heap.held = Some((event.at, bytes));
        }
    }
}

impl Heap {
    /// Writes the live set into the collection that awaits one.
    fn settle(&mut self, sink: &mut Sink) {
        let Some(awaited) = self.awaited.take() else {
            return;
        };
        if let Some(Entry {
            seen: Observation::Collection(collection),
            ..
        }) = sink.entry_mut(awaited.at)
        {
            collection.live = awaited.others;
        }
    }

    /// Keeps the last size before a collection after all: it is the highest.
    fn let_go(&mut self, pid: u32, sink: &mut Sink) {
        if let Some((at, bytes)) = self.held.take() {
            self.keep(at, pid, bytes, sink);
        }
    }

    fn keep(&mut self, at: u64, pid: u32, bytes: u64, sink: &mut Sink) {
        self.kept_at = Some(at);
        self.held = None;
        let seen = Observation::JavaHeap(JavaHeap {
            source: Source::Ftrace,
            allocated: bytes,
        });
        sink.see(at, pid, seen);
    }
}
