//! Differences between the figures of a table: the pairs that are compared, the usual causes, and
//! remedies.

use super::input::{Profiled, ReconcileInput};
use super::table::{Area, Cause, CauseKind, Difference, FAR_NS, Figure, Table, signed};
use heaptap_base::units::{ByteSize, SignedSize};
use heaptap_model::timeline::HeapCells;

/// Free heap memory deserves a remedy if it is more than the live memory divided by this.
const MUCH_FREE: u64 = 2;

fn size(bytes: i64) -> String {
    SignedSize(bytes).to_string()
}

impl Table {
    /// Returns a cause if the figures were read at different times, which alone makes them differ.
    fn moments(&self, from: Figure, to: Figure) -> Option<Cause> {
        let at = |figure| self.figure(figure).and_then(|row| row.boot_ns);
        let apart = at(from)?.abs_diff(at(to)?);
        (apart > FAR_NS).then(|| {
            Cause::new(
                CauseKind::Moments,
                format!(
                    "the figures were read {:.1} s apart while the program continued",
                    apart as f64 / 1e9
                ),
            )
        })
    }

    fn between(&mut self, from: Figure, to: Figure, about: &str, causes: Vec<Cause>) {
        let bytes = |figure| self.figure(figure).map(|row| row.bytes);
        let (Some(a), Some(b)) = (bytes(from), bytes(to)) else {
            return;
        };
        let mut causes = causes;
        causes.extend(self.moments(from, to));
        self.differences.push(Difference {
            from,
            to,
            bytes: b.saturating_sub(a),
            about: about.to_owned(),
            causes,
        });
    }

    pub(super) fn differ(&mut self, input: &ReconcileInput) {
        let native = input.heaps.iter().find(|heap| heap.value.is_native());
        if let Some(heap) = native {
            let to = match (&input.native_heap, &input.malloc_info) {
                (Some(_), _) => Some(Figure::HeapAlloc),
                (None, Some(_)) => Some(Figure::MallocInfo),
                (None, None) => None,
            };
            if let Some(to) = to {
                let allocated = self.figure(to).map_or(0, |row| row.bytes);
                let causes = causes_of_unprofiled(&heap.value, allocated);
                let about = match allocated >= heap.value.unreleased {
                    true => "live, but not in the profile",
                    false => "the profile contains more than the allocator reports",
                };
                self.between(Figure::Profiled, to, about, causes);
            }
        }
        if let (Some(info), Some(cells)) = (&input.malloc_info, &input.native_heap) {
            let mut causes = Vec::new();
            if info.value.is_of_small_only() {
                causes.push(Cause::new(
                    CauseKind::LargeNotListed,
                    "Scudo lists only allocations of its primary allocator, up to 64 KiB; \
                            larger ones have their own mappings (`[anon:scudo:secondary]`) and \
                            count only in Heap Alloc",
                ));
            }
            let is_less = signed(cells.value.alloc) < signed(info.value.live);
            if is_less
                && self
                    .moments(Figure::MallocInfo, Figure::HeapAlloc)
                    .is_none()
            {
                causes.push(Cause::new(
                    CauseKind::Moments,
                    "Heap Alloc includes everything in malloc_info; a smaller value means \
                            that the program freed or allocated memory between the two readings",
                ));
            }
            if signed(cells.value.alloc) >= signed(info.value.live) {
                causes.push(rounding());
            }
            self.between(
                Figure::MallocInfo,
                Figure::HeapAlloc,
                "the two reports of the allocator",
                causes,
            );
        }
        if let Some(cells) = &input.native_heap {
            self.free_in_heap(cells.value);
            self.resident_heap(input, cells.value.alloc);
        }
        self.rest_of_process(input);
    }

    fn free_in_heap(&mut self, cells: HeapCells) {
        let much = cells.free > cells.alloc / MUCH_FREE && cells.free > 1 << 20;
        let causes = vec![
            Cause {
                kind: CauseKind::Fragmentation,
                about:
                    "free heap memory: free blocks between used ones, and memory kept for later \
                        allocations"
                        .to_owned(),
                bytes: Some(signed(cells.free)),
                remedy: much.then(|| {
                    "reduce the peak, after which the allocator keeps this memory (`heaptap \
                     record --config peak` shows its callsites), or call mallopt(M_PURGE, 0) once \
                     the work is done"
                        .to_owned()
                }),
            },
            Cause::new(
                CauseKind::ThreadCaches,
                "each thread caches freed blocks; more threads cache more",
            ),
        ];
        self.between(
            Figure::HeapAlloc,
            Figure::HeapSize,
            "the allocator's reserve",
            causes,
        );
    }

    /// Compares the resident pages of the heap with its allocated bytes.
    fn resident_heap(&mut self, input: &ReconcileInput, alloc: u64) {
        let Some(native) = &input.native_resident else {
            return;
        };
        let value = native.value;
        let swapped = value.swapped.unwrap_or(0);
        let occupied = value.resident.saturating_add(swapped);
        let mut causes = Vec::new();
        if swapped > 0 {
            causes.push(Cause {
                kind: CauseKind::Swap,
                about: "in ZRAM or swap: not in RSS, but compressed data still uses memory"
                    .to_owned(),
                bytes: Some(-signed(swapped)),
                remedy: Some("compare RSS plus swap, never RSS alone".to_owned()),
            });
        }
        if occupied >= alloc {
            let more = occupied - alloc;
            let much = more > alloc / MUCH_FREE && more > 4 << 20;
            causes.push(Cause {
                kind: CauseKind::Fragmentation,
                about: "more pages than the live blocks need: one live block keeps its whole page \
                        in memory"
                    .to_owned(),
                bytes: Some(signed(more)),
                remedy: much.then(|| {
                    "the heap is fragmented or keeps memory after a peak. Free long-lived and \
                     short-lived objects in separate phases, use pools for many small objects, \
                     or use fewer allocating threads. mallopt(M_PURGE, 0) returns free pages."
                        .to_owned()
                }),
            });
        } else {
            causes.push(Cause {
                kind: CauseKind::Pages,
                about: "allocated but never touched, or returned to the system: without pages"
                    .to_owned(),
                bytes: Some(-signed(alloc - occupied)),
                remedy: None,
            });
        }
        if value.by_shares {
            causes.push(Cause::new(
                CauseKind::Shares,
                "pages shared with the zygote count proportionally here",
            ));
        }
        self.between(
            Figure::HeapAlloc,
            Figure::NativeResident,
            "resident pages of the heap compared with its live blocks",
            causes,
        );
    }

    fn rest_of_process(&mut self, input: &ReconcileInput) {
        let mut largest: Vec<&Area> = input.elsewhere.iter().filter(|a| a.bytes > 0).collect();
        largest.sort_by(|a, b| (b.bytes, &a.name).cmp(&(a.bytes, &b.name)));
        let named: Vec<String> = largest
            .iter()
            .take(4)
            .map(|area| format!("{} {}", area.name, ByteSize(area.bytes)))
            .collect();
        let which = match named.is_empty() {
            true => "Java heap, code, stacks, graphics, files".to_owned(),
            false => named.join(", "),
        };
        let cause = Cause {
            kind: CauseKind::NotMalloc,
            about: format!("memory not allocated by malloc: {which}"),
            bytes: None,
            remedy: Some(
                "run `heaptap smaps TARGET --by library` to find its owner, or `heaptap dump` for \
                 the Java heap; docs/guide/meminfo.md covers code and mapped files"
                    .to_owned(),
            ),
        };
        self.between(
            Figure::NativeResident,
            Figure::ProcessResident,
            "resident outside the native heap",
            vec![cause],
        );
    }
}

fn rounding() -> Cause {
    Cause::new(
        CauseKind::Rounding,
        "allocators round requests up to fixed block sizes, and each block has a header",
    )
}

/// Returns the reasons why the profile contains less or more than the allocator.
fn causes_of_unprofiled(profiled: &Profiled, allocated: i64) -> Vec<Cause> {
    let mut causes = Vec::new();
    let short = allocated.saturating_sub(profiled.unreleased);
    if let Some(why) = &profiled.incomplete {
        causes.push(Cause {
            kind: CauseKind::Incomplete,
            about: format!("the profile is incomplete: {why}"),
            bytes: None,
            remedy: Some(
                "record again with a larger buffer (`--shmem-size`) or interval (`--interval`)"
                    .to_owned(),
            ),
        });
    }
    let reach = profiled.range.map(|(low, high)| {
        let below = profiled.unreleased.saturating_sub(low);
        below.max(high.saturating_sub(profiled.unreleased))
    });
    let words = profiled.words.as_ref().map(|words| words.reach.clone());
    let sampling = |reach: i64| sampling(reach, words.unwrap_or_else(|| size(reach)));
    if short < 0 {
        if profiled.at_maximum {
            causes.push(Cause::new(
                CauseKind::Moments,
                "the profile shows the heap at its peak, not its current state",
            ));
        }
        causes.extend(reach.filter(|reach| *reach > 0).map(sampling));
        return causes;
    }
    causes.push(match profiled.from_startup {
        false => Cause {
            kind: CauseKind::BeforeRecording,
            about: "heapprofd records only allocations during the recording; earlier allocations \
                    that are still live are not in the profile"
                .to_owned(),
            bytes: None,
            remedy: Some(
                "record from the start of the app with `heaptap record --launch --no-running`"
                    .to_owned(),
            ),
        },
        true => Cause::new(
            CauseKind::BeforeZygoteInit,
            "allocations by the zygote, and by the app before heapprofd was set up in it, \
                    are not in the profile",
        ),
    });
    causes.extend(reach.filter(|reach| *reach > 0).map(sampling));
    causes.push(rounding());
    causes.push(Cause::new(
        CauseKind::ThreadCaches,
        "some allocators count freed blocks in thread caches and in quarantine as \
                allocated (jemalloc's caches)",
    ));
    causes
}

/// Creates the cause for a sampling error. `words` is `reach` formatted with no more digits than
/// are significant.
fn sampling(reach: i64, words: String) -> Cause {
    Cause {
        kind: CauseKind::Sampling,
        about: format!(
            "the profile is an estimate; its sampling error is up to {words} (95% confidence)"
        ),
        bytes: Some(reach),
        remedy: Some(
            "use a smaller interval (`--interval`) for a smaller error, at a higher cost to the app"
                .to_owned(),
        ),
    }
}
