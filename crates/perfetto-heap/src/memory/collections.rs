//! GCs of Java heaps from ART's slices, and the heap's size from its counter. Owns ART's names of
//! GCs, and the choice of the figure for the live set.
//!
//! ART begins a slice `CAUSE COLLECTOR GC` on the collecting thread, with slices of its phases
//! inside. Phases that pause the app are called `(Paused)…`, or state that the mutators are
//! suspended. After the end the same thread writes the new size of the heap to a counter, which
//! other threads increase when they take new buffers. So the live set is that thread's next figure
//! or, if it is lost, the first figure of any thread.

use std::collections::HashMap;

use super::sink::{MemoryLoss, Sink};
use heaptap_model::timeline::{Collection, Entry, JavaHeap, Observation, Source};

/// Minimum interval in ns of recorded heap sizes, except those around GCs.
const EVERY: u64 = 20_000_000;
/// Maximum delay in ns of the collecting thread's figure: a later one has another cause.
const AT_ONCE: u64 = 1_000_000_000;
/// Maximum number of recorded pauses of one GC.
const MAX_PAUSES: usize = 64;
/// Maximum length of a GC's name in bytes.
const MAX_NAME_LENGTH: usize = 160;

/// An event with a number for its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Event {
    /// BOOTTIME, ns.
    pub(super) at: u64,
    pub(super) thread: u32,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Start of a GC of this process with this name.
    Collection { pid: u32, name: u16 },
    /// Start of a phase of a GC that pauses the app.
    Pause,
    /// Start of another slice.
    Other,
    /// End of the innermost slice.
    End,
    /// The Java heap's size, bytes.
    HeapSize { pid: u32, bytes: u64 },
    /// Events of some processor were lost before this time.
    Lost,
}

/// Returns whether a slice is a GC: `Background young concurrent copying GC`.
pub(super) fn is_collection(name: &[u8]) -> bool {
    split(name).is_some()
}

/// Splits a name into cause and collector. Causes are one word in camel case, collectors have
/// lower-case names; the runtime can add new ones.
fn split(name: &[u8]) -> Option<(&str, &str)> {
    let name = name
        .strip_suffix(b" GC")
        .filter(|n| n.len() <= MAX_NAME_LENGTH)?;
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

/// Returns whether a slice inside a GC pauses the app.
pub(super) fn is_pause(name: &[u8]) -> bool {
    name.starts_with(b"(Paused)") || name.starts_with(b"Mutator threads suspended")
}

/// State of the GCs of all processes.
#[derive(Debug)]
pub(super) struct Collections {
    every_counter: bool,
    /// GCs by thread.
    open: HashMap<u32, Open>,
    /// Heaps by process.
    heaps: HashMap<u32, Heap>,
}

/// A running GC.
#[derive(Debug)]
struct Open {
    pid: u32,
    name: u16,
    begin: u64,
    /// Number of open slices inside.
    depth: u32,
    /// The open pause: depth and time of its start.
    pause: Option<(u32, u64)>,
    pauses: Vec<u64>,
    /// Events were lost during the GC.
    torn: bool,
}

/// A Java heap.
#[derive(Debug, Default)]
struct Heap {
    /// Time of the last recorded size.
    kept_at: Option<u64>,
    /// The last size that was not recorded.
    held: Option<(u64, u64)>,
    /// A GC that waits for its live set.
    awaited: Option<Awaited>,
}

#[derive(Debug)]
struct Awaited {
    /// Index of its entry.
    at: usize,
    end: u64,
    thread: u32,
    /// The first size from another thread.
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

    /// Adds the next event in order of time; `names` are the names of GCs by number.
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

    /// Handles open GCs at the end of the trace: a GC that is still running is not recorded.
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
        // A GC never begins within another one of its thread, so the end of that one is lost.
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
            if open.pauses.len() < MAX_PAUSES {
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

    /// Ends a GC; without an end if that is lost.
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
        // The lost events might include the end of this one, or the start of one inside.
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
    /// Stores the live set in the GC that waits for one.
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

    /// Records the last size before a GC after all, because it is the highest.
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
