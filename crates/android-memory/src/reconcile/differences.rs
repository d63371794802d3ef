//! What lies between the figures of a table: which are held against each other, what usually
//! makes them differ, and what helps.

use super::{
    Area, Cause, CauseKind, Difference, FAR_NS, Figure, Profiled, ReconcileInput, Table, signed,
};
use heaptap_model::timeline::HeapCells;
use heaptap_model::units::{ByteSize, SignedSize};

/// Free memory of a heap beyond this part of what is live is worth a remedy.
const MUCH_FREE: u64 = 2;

fn size(bytes: i64) -> String {
    SignedSize(bytes).to_string()
}

impl Table {
    /// Figures of moments that lie apart differ for that alone.
    fn moments(&self, from: Figure, to: Figure) -> Option<Cause> {
        let at = |figure| self.figure(figure).and_then(|row| row.boot_ns);
        let apart = at(from)?.abs_diff(at(to)?);
        (apart > FAR_NS).then(|| Cause {
            kind: CauseKind::Moments,
            about: format!(
                "the two were read {:.1} s apart, while the program went on",
                apart as f64 / 1e9
            ),
            bytes: None,
            remedy: None,
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
                    true => "live, and not in the profile",
                    false => "the profile says more than the allocator has",
                };
                self.between(Figure::Profiled, to, about, causes);
            }
        }
        if let (Some(info), Some(cells)) = (&input.malloc_info, &input.native_heap) {
            let mut causes = Vec::new();
            if info.value.is_of_small_only() {
                causes.push(Cause {
                    kind: CauseKind::LargeNotListed,
                    about: "Scudo lists what its primary allocator serves; larger allocations are \
                            mapped by themselves (`[anon:scudo:secondary]`) and count in Heap \
                            Alloc alone"
                        .to_owned(),
                    bytes: None,
                    remedy: None,
                });
            }
            let is_less = signed(cells.value.alloc) < signed(info.value.live);
            if is_less
                && self
                    .moments(Figure::MallocInfo, Figure::HeapAlloc)
                    .is_none()
            {
                causes.push(Cause {
                    kind: CauseKind::Moments,
                    about: "Heap Alloc counts all that malloc_info lists: where it is less, they \
                            are of different moments, between which the program freed memory or \
                            allocated it"
                        .to_owned(),
                    bytes: None,
                    remedy: None,
                });
            }
            if signed(cells.value.alloc) >= signed(info.value.live) {
                causes.push(rounding());
            }
            self.between(
                Figure::MallocInfo,
                Figure::HeapAlloc,
                "the allocator's two accounts",
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
                    "free memory of the heap: blocks between others that are in use, and what is \
                        kept for the next allocations"
                        .to_owned(),
                bytes: Some(signed(cells.free)),
                remedy: much.then(|| {
                    "much of the heap is free: after a peak the allocator keeps it. Lower the \
                     peak (heaptap record --config peak shows who makes it), or let it go with \
                     mallopt(M_PURGE, 0) once the work is done"
                        .to_owned()
                }),
            },
            Cause {
                kind: CauseKind::ThreadCaches,
                about: "each thread keeps freed blocks for itself; more threads keep more"
                    .to_owned(),
                bytes: None,
                remedy: None,
            },
        ];
        self.between(
            Figure::HeapAlloc,
            Figure::HeapSize,
            "the allocator's own reserve",
            causes,
        );
    }

    /// Resident pages of the heap against what is allocated in it.
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
                about: "in ZRAM or swap: no part of RSS, though it still takes memory, compressed"
                    .to_owned(),
                bytes: Some(-signed(swapped)),
                remedy: Some("compare RSS with swap added, never RSS alone".to_owned()),
            });
        }
        if occupied >= alloc {
            let more = occupied - alloc;
            let much = more > alloc / MUCH_FREE && more > 4 << 20;
            causes.push(Cause {
                kind: CauseKind::Fragmentation,
                about:
                    "more pages than what is live would fill: memory comes in whole pages, and a \
                        page with one live block stays"
                        .to_owned(),
                bytes: Some(signed(more)),
                remedy: much.then(|| {
                    "that is much: the heap is fragmented, or keeps a peak. Free what lives long \
                     and what lives shortly in separate phases, use pools for many small objects, \
                     keep fewer threads that allocate; mallopt(M_PURGE, 0) gives free pages back"
                        .to_owned()
                }),
            });
        } else {
            causes.push(Cause {
                kind: CauseKind::Pages,
                about: "allocated and never touched, or given back to the system: it has no pages"
                    .to_owned(),
                bytes: Some(-signed(alloc - occupied)),
                remedy: None,
            });
        }
        if value.by_shares {
            causes.push(Cause {
                kind: CauseKind::Shares,
                about: "pages that the zygote still shares count by their share here".to_owned(),
                bytes: None,
                remedy: None,
            });
        }
        self.between(
            Figure::HeapAlloc,
            Figure::NativeResident,
            "pages that the heap has in memory, against what is live in it",
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
            about: format!("memory that malloc never saw: {which}"),
            bytes: None,
            remedy: Some(
                "heaptap smaps TARGET --by library tells whose it is; for the Java heap heaptap \
                 dump, for code and files mapped see docs/smaps.md"
                    .to_owned(),
            ),
        };
        self.between(
            Figure::NativeResident,
            Figure::ProcessResident,
            "resident, and not the native heap's",
            vec![cause],
        );
    }
}

fn rounding() -> Cause {
    Cause {
        kind: CauseKind::Rounding,
        about: "allocators serve blocks of fixed sizes: each is a little larger than what was \
                asked for, and has a header"
            .to_owned(),
        bytes: None,
        remedy: None,
    }
}

/// Why the profile has less than the allocator, or more.
fn causes_of_unprofiled(profiled: &Profiled, allocated: i64) -> Vec<Cause> {
    let mut causes = Vec::new();
    let short = allocated.saturating_sub(profiled.unreleased);
    if let Some(why) = &profiled.incomplete {
        causes.push(Cause {
            kind: CauseKind::Incomplete,
            about: format!("the profile is not whole: {why}"),
            bytes: None,
            remedy: Some(
                "record again with a larger buffer (--shmem-size) or interval (--interval)"
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
            causes.push(Cause {
                kind: CauseKind::Moments,
                about: "the profile shows the heap at its largest, not as it is now".to_owned(),
                bytes: None,
                remedy: None,
            });
        }
        causes.extend(reach.filter(|reach| *reach > 0).map(sampling));
        return causes;
    }
    causes.push(match profiled.from_startup {
        false => Cause {
            kind: CauseKind::BeforeRecording,
            about: "heapprofd sees what is allocated while it records: what was live before is \
                    in no profile"
                .to_owned(),
            bytes: None,
            remedy: Some(
                "start heaptap record while the app is not running, then start the app (--config \
                 startup)"
                    .to_owned(),
            ),
        },
        true => Cause {
            kind: CauseKind::BeforeZygoteInit,
            about: "what the zygote allocated, and the app before heapprofd was set up in it, is \
                    in no profile"
                .to_owned(),
            bytes: None,
            remedy: None,
        },
    });
    causes.extend(reach.filter(|reach| *reach > 0).map(sampling));
    causes.push(rounding());
    causes.push(Cause {
        kind: CauseKind::ThreadCaches,
        about: "freed blocks in caches of threads and in quarantine count as allocated with some \
                allocators (jemalloc's caches)"
            .to_owned(),
        bytes: None,
        remedy: None,
    });
    causes
}

/// `words`: the reach, with no more digits than it has.
fn sampling(reach: i64, words: String) -> Cause {
    Cause {
        kind: CauseKind::Sampling,
        about: format!("the profile is an estimate: up to {words} off (95 %)"),
        bytes: Some(reach),
        remedy: Some(
            "a smaller interval (--interval) is closer, and costs the app more".to_owned(),
        ),
    }
}
