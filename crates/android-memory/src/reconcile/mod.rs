//! A table of the memory figures for one process at one time, from heapprofd, malloc_info, meminfo
//! and the kernel. Each difference between figures has its usual causes and remedies. The caller
//! provides the figures. A figure that could not be read is listed as missing, never guessed.
//!
//! | file | owns |
//! |---|---|
//! | `input` | the input from the caller |
//! | `table` | the figures, their differences and those that are missing |
//! | `differences` | differences between the figures and their causes |

mod differences;
mod input;
mod table;

pub use input::{At, Estimated, NativeResident, Profiled, ReconcileInput};
pub use table::{Area, Cause, CauseKind, Difference, FAR_NS, Figure, Missing, Row, Table};

use heaptap_base::units::ByteSize;
use table::signed;

/// Returns the difference from `moment` to `at` in ms, if it is large.
fn apart(at: u64, moment: u64) -> Option<i64> {
    let apart = at.abs_diff(moment);
    let ms = i64::try_from(apart / 1_000_000).unwrap_or(i64::MAX);
    (apart > FAR_NS).then_some(if at < moment { -ms } else { ms })
}

impl Table {
    /// Builds the table from the input.
    pub fn from_input(input: &ReconcileInput) -> Table {
        let mut table = Table {
            process: input.process.clone(),
            pid: input.pid,
            boot_ns: input.boot_ns,
            label: input.label.clone(),
            missing: input.missing.clone(),
            ..Table::default()
        };
        table.fill(input);
        let moment = table.boot_ns;
        for row in &mut table.rows {
            row.apart_ms = row
                .boot_ns
                .zip(moment)
                .and_then(|(at, moment)| apart(at, moment));
        }
        table.differ(input);
        table.elsewhere = input.elsewhere.clone();
        table.elsewhere.retain(|area| area.bytes > 0);
        table
            .elsewhere
            .sort_by(|a, b| (b.bytes, &a.name).cmp(&(a.bytes, &b.name)));
        table
    }

    fn row<T>(&mut self, figure: Figure, name: &str, bytes: i64, at: &At<T>) -> &mut Row {
        self.rows.push(Row {
            figure,
            name: name.to_owned(),
            bytes,
            range: None,
            estimated: None,
            source: at.source.clone(),
            boot_ns: at.boot_ns,
            apart_ms: None,
            note: None,
        });
        let last = self.rows.len() - 1;
        &mut self.rows[last]
    }

    fn fill(&mut self, input: &ReconcileInput) {
        for native in [true, false] {
            for heap in input.heaps.iter().filter(|h| h.value.is_native() == native) {
                let profiled = &heap.value;
                let (figure, name) = match native {
                    true => (Figure::Profiled, "heapprofd, unreleased".to_owned()),
                    false => (Figure::OtherHeaps, format!("heap {}", profiled.heap)),
                };
                let row = self.row(figure, &name, profiled.unreleased, heap);
                row.range = profiled.range;
                row.estimated = profiled.words.as_ref().map(|words| words.amount.clone());
                let interval = match profiled.interval {
                    0 => "unknown sampling interval".to_owned(),
                    1 => "every allocation recorded".to_owned(),
                    bytes => format!("sampled every {}", ByteSize(bytes)),
                };
                let most = match profiled.at_maximum {
                    true => "; peak value",
                    false => "",
                };
                let apart = match native {
                    true => "",
                    false => "; not included in the figures of the native heap",
                };
                row.note = Some(format!("{interval}{most}{apart}"));
            }
        }
        if let Some(info) = &input.malloc_info {
            let row = self.row(
                Figure::MallocInfo,
                "malloc_info, live",
                signed(info.value.live),
                info,
            );
            let version = info.value.version.name();
            row.note = Some(match (info.value.cut, info.value.is_of_small_only()) {
                (true, _) => format!("{version}; truncated, so the value is too low"),
                (false, true) => format!("{version}; without large allocations"),
                (false, false) => version.to_owned(),
            });
        }
        if let Some(cells) = &input.native_heap {
            let value = cells.value;
            self.row(Figure::HeapAlloc, "Heap Alloc", signed(value.alloc), cells)
                .note = Some("blocks that malloc handed out, by block size".to_owned());
            self.row(Figure::HeapSize, "Heap Size", signed(value.size), cells)
                .note = Some("memory that malloc got from the system".to_owned());
        }
        if let Some(native) = &input.native_resident {
            let value = native.value;
            let (name, note) = match value.by_shares {
                true => (
                    "Native Heap PSS",
                    "this Android version does not report RSS by kind",
                ),
                false => ("Native Heap RSS", "resident pages of malloc"),
            };
            self.row(Figure::NativeResident, name, signed(value.resident), native)
                .note = Some(format!(
                "{note}; private dirty {}",
                ByteSize(value.private_dirty)
            ));
            if let Some(swapped) = value.swapped {
                self.row(
                    Figure::NativeSwapped,
                    "Native Heap swapped",
                    signed(swapped),
                    native,
                )
                .note = Some("in ZRAM or swap, before compression".to_owned());
            }
        }
        if let Some(resident) = &input.resident {
            self.row(
                Figure::ProcessResident,
                "RSS",
                signed(resident.value),
                resident,
            )
            .note = Some(match input.resident_by_meminfo {
                true => "TOTAL RSS, without memory counted by graphics drivers".to_owned(),
                false => "all resident pages of the process".to_owned(),
            });
        }
    }
}

#[cfg(test)]
mod tests;
