//! References of a dump's objects: the second of two readings, after objects are numbered and types
//! are known. Messages are independent of each other then, so several threads read them.

use super::columns::Piece;
use super::object::Object;
use crate::wire::Fields;
use heaptap_model::heap_graph::{Ids, ObjectId, ObjectIndex, ReferenceKind};

/// Facts about objects before their references are read.
pub(super) struct Known<'a> {
    pub(super) ids: &'a Ids,
    /// Class by object in file order.
    pub(super) classes: &'a [u32],
    /// Kind of reference by class, and the index of the referent among its references.
    pub(super) referents: &'a [Option<(ReferenceKind, Option<u32>)>],
    /// Objects that name their fields, and the index of the referent among those; ascending.
    pub(super) shaped: &'a [(u32, Option<u32>)],
}

/// Results of one thread; targets are stored in place.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Referents: owner in file order, number of the reference among all, kind.
    pub(super) referents: Vec<(u32, u32, ReferenceKind)>,
    /// References to IDs without an object.
    pub(super) dangling: u64,
    /// IDs without an object, mostly without repetition.
    pub(super) missing: Vec<u64>,
    /// Number of IDs at which repeated ones are removed.
    most: usize,
}

impl Found {
    fn miss(&mut self, id: u64) {
        self.dangling += 1;
        if self.missing.len() >= self.most {
            self.missing.sort_unstable();
            self.missing.dedup();
            self.most = (self.missing.len() * 2).max(1 << 16);
        }
        self.missing.push(id);
    }
}

/// Minimum number of references for a thread.
const PER_THREAD: usize = 200_000;

/// Reads all references into `targets`, in file order.
pub(super) fn read(
    pieces: &[(Piece, &[u8])],
    known: &Known,
    targets: &mut [ObjectIndex],
) -> Vec<Found> {
    let cores = heaptap_base::parallel::threads().get();
    let threads = cores.min(targets.len() / PER_THREAD + 1);
    let share = targets.len().div_ceil(threads).max(1);
    // Split between messages, after each share of references.
    let mut jobs = Vec::new();
    let (mut rest, mut pieces, mut done) = (targets, pieces, 0usize);
    while !pieces.is_empty() {
        let goal = (jobs.len() + 1) * share;
        let more = pieces.partition_point(|piece| (piece.0.reference as usize) < goal);
        let (now, later) = pieces.split_at(more.max(1));
        let end = later
            .first()
            .map_or(done + rest.len(), |piece| piece.0.reference as usize);
        let (own, others) = std::mem::take(&mut rest).split_at_mut(end - done);
        jobs.push((now, own, done));
        (rest, pieces, done) = (others, later, end);
    }
    let Some((now, own, from)) = jobs.pop() else {
        return Vec::new();
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = jobs
            .into_iter()
            .map(|(pieces, own, from)| scope.spawn(move || read_some(pieces, known, own, from)))
            .collect();
        let last = read_some(now, known, own, from);
        let mut all: Vec<Found> = Vec::with_capacity(others.len() + 1);
        for other in others {
            match other.join() {
                Ok(found) => all.push(found),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all.push(last);
        all
    })
}

fn read_some(
    pieces: &[(Piece, &[u8])],
    known: &Known,
    targets: &mut [ObjectIndex],
    from: usize,
) -> Found {
    let mut found = Found::default();
    for &(piece, message) in pieces {
        let mut next = piece.reference as usize - from;
        let mut wire = piece.first;
        let end = piece.first + piece.count;
        let mut fields = Fields::new(message);
        while wire < end {
            let Ok(Some((number, value))) = fields.next() else {
                break;
            };
            if number != 2 {
                continue;
            }
            let mut object = Object::default();
            // The first reading stops at an object that cannot be read, and leaves out one that
            // contradicts itself.
            if object.read(value.bytes()).is_err() || object.contradicts_itself() {
                continue;
            }
            let begin = next;
            let mut take = |id: u64, is_null: bool| {
                if !is_null {
                    match known.ids.find(ObjectId(id)) {
                        Some(target) => targets[next] = target,
                        None => found.miss(id),
                    }
                }
                next += 1;
            };
            let (base, mut references) = (object.base, 0);
            object.references.each(|relative| {
                take(base.wrapping_add(relative), relative == 0);
                references += 1;
            });
            object.internal.each(|id| take(id, id == 0));
            let class = known.classes[wire as usize] as usize;
            if let Some((kind, by_class)) = known.referents[class] {
                let at = match known.shaped.binary_search_by_key(&wire, |shaped| shaped.0) {
                    Ok(shape) => known.shaped[shape].1,
                    Err(_) => by_class,
                };
                if let Some(at) = at.filter(|&at| at < references) {
                    let number = (from + begin) as u32 + at;
                    found.referents.push((wire, number, kind));
                }
            }
            wire += 1;
        }
    }
    found
}
