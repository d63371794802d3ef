//! Reading the parts of a dump with several threads: a visitor receives every sub-record with its
//! heap.

use super::outline::MAX_DAMAGE;
use super::records::{Damage, DamageKind, IdSize, Records};
use super::sub_records::{SubRecord, SubRecords, heap_kind};
use heaptap_base::bytes::Bytes;
use heaptap_model::heap_graph::HeapKind;
use std::num::NonZero;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(super) struct Parts<'a> {
    pub(super) file: &'a Bytes,
    pub(super) id_size: IdSize,
    pub(super) parts: &'a [Range<usize>],
    pub(super) threads: NonZero<usize>,
}

/// Problems found while parts are read.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    pub(super) damage: Vec<Damage>,
    pub(super) malformed: u64,
    pub(super) cut_short: bool,
    /// A sub-record crossed the end of its record: later parts might begin at the wrong offset.
    pub(super) crossed: bool,
}

impl Trouble {
    fn add(&mut self, other: Trouble) {
        self.damage.extend(other.damage);
        self.malformed += other.malformed;
        self.cut_short |= other.cut_short;
        self.crossed |= other.crossed;
    }

    fn damaged(&mut self, damage: Damage) {
        match damage.kind {
            DamageKind::CutShort => self.cut_short = true,
            _ => self.malformed += 1,
        }
        if self.damage.len() < MAX_DAMAGE {
            self.damage.push(damage);
        }
    }
}

/// Receives every sub-record of the parts that its thread reads.
pub(super) trait Visitor: Send {
    /// Called at the start of a part, which does not follow the previous one.
    fn begin(&mut self) {}

    /// Called with a sub-record, its offset in the file, and its heap.
    fn visit(&mut self, at: usize, heap: HeapKind, record: SubRecord<'_>);
}

impl Parts<'_> {
    /// Reads all parts with up to `threads` threads and one visitor for each; a visitor receives
    /// whole parts, in any order.
    pub(super) fn each<V: Visitor>(&self, visitor: impl Fn() -> V + Sync) -> (Vec<V>, Trouble) {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut seen = visitor();
            let mut trouble = Trouble::default();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(part) = self.parts.get(at) else {
                    return (seen, trouble);
                };
                self.read(part, &mut seen, &mut trouble);
                self.file.release(part.clone());
            }
        };
        let threads = self.threads.get().min(self.parts.len()).max(1);
        let mut results = Vec::with_capacity(threads);
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            results.push(work());
            for other in others {
                match other.join() {
                    Ok(result) => results.push(result),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
        });
        let mut trouble = Trouble::default();
        let mut visitors = Vec::with_capacity(threads);
        for (seen, theirs) in results {
            visitors.push(seen);
            trouble.add(theirs);
        }
        trouble.damage.sort_by_key(|damage| damage.at);
        trouble.damage.truncate(MAX_DAMAGE);
        (visitors, trouble)
    }

    fn read(&self, part: &Range<usize>, visitor: &mut impl Visitor, trouble: &mut Trouble) {
        visitor.begin();
        let file: &[u8] = self.file;
        let mut records = Records::at_offset(file, part.start);
        while records.at() < part.end {
            let Some(Ok(record)) = records.next() else {
                return;
            };
            let mut heap = HeapKind::Unknown;
            let mut subs = SubRecords::new(file, &record, self.id_size);
            for sub in subs.by_ref() {
                match sub {
                    Ok((_, SubRecord::Heap { heap: number, .. })) => heap = heap_kind(number),
                    Ok((at, record)) => visitor.visit(at, heap, record),
                    Err(damage) => trouble.damaged(damage),
                }
            }
            if subs.at() != records.at() {
                trouble.crossed = true;
                records.continue_at(subs.at());
            }
        }
    }
}
