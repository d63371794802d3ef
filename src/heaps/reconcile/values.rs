//! Values of a process from each source, added to those that are known.

use std::path::Path;

use crate::heaps::input::ListedDump;
use android_memory::malloc_info;
use android_memory::meminfo::{Column, Meminfo, NATIVE_HEAP};
use android_memory::reconcile::{
    Area, At, Estimated, Figure, NativeResident, Profiled, ReconcileInput,
};
use android_memory::smaps::{By, Field, Kind, Smaps};
use android_memory::status::{self, Status};
use heaptap_base::bytes::Bytes;
use heaptap_input::TextInput;
use heaptap_model::profile::DumpKind;
use heaptap_results::file_names::is_below;

/// Maximum size of a file, in bytes: texts of one process.
pub(super) const MAX_SIZE: u64 = 256 << 20;

/// Advice for recording all values.
pub(super) const RECORD: &str = "record with `heaptap record --with meminfo,smaps`";

pub(super) fn note_missing(
    known: &mut ReconcileInput,
    figure: Figure,
    why: String,
    help: Option<String>,
) {
    let is_there = match figure {
        Figure::HeapAlloc => known.native_heap.is_some(),
        Figure::MallocInfo => known.malloc_info.is_some(),
        Figure::NativeResident => known.native_resident.is_some(),
        Figure::Profiled => known.heaps.iter().any(|heap| heap.value.is_native()),
        _ => false,
    };
    if !is_there && !known.missing.iter().any(|missing| missing.figure == figure) {
        known.miss(figure, why, help);
    }
}

/// Reads a text that a recording's timeline names. Rejects names outside of the directory, because
/// directories from elsewhere can contain any name.
pub(super) fn read(directory: &Path, file: &str) -> Option<Bytes> {
    let path = directory.join(file);
    let input = is_below(file).then(|| TextInput::of_regular(&path));
    input.flatten().and_then(whole)
}

/// Returns a complete text; `None` if it is truncated or too large.
fn whole(input: TextInput<'_>) -> Option<Bytes> {
    let text = input.whole(MAX_SIZE).ok()?;
    text.damage.is_none().then_some(text.bytes)
}

/// Adds a heap recorded by heapprofd.
pub(super) fn take_heap(known: &mut ReconcileInput, heap: &str, dump: &ListedDump) {
    let facts = &dump.facts;
    if known.process.is_empty() {
        known.process.clone_from(&facts.process);
    }
    let Some(space) = dump.totals.and_then(|totals| totals.space) else {
        return;
    };
    let words = facts.flags.words();
    known.heaps.push(At::new(
        Profiled {
            heap: heap.to_owned(),
            unreleased: space,
            range: dump.held.map(|held| (held.low, held.high)),
            words: dump.held.map(|held| Estimated {
                amount: held.shown().to_string(),
                reach: held.shown().reach(),
            }),
            interval: facts.sampling_interval_bytes,
            from_startup: facts.flags.from_startup,
            incomplete: (!words.is_empty() || facts.unfinished).then(|| match words.is_empty() {
                true => "its end is missing".to_owned(),
                false => words.join(", "),
            }),
            at_maximum: facts.kind == DumpKind::AtMaximum,
        },
        "heapprofd",
        facts.time_ns,
    ));
}

pub(super) fn take_status(known: &mut ReconcileInput, text: &str) {
    let boot_ns = text.lines().next().and_then(status::uptime_ns);
    let resident = Status::parse(text).and_then(|status| status.resident(None));
    if let Some(resident) = resident {
        known.resident = Some(At::new(resident.rss, "/proc/PID/status", boot_ns));
        known.resident_by_meminfo = false;
    }
}

pub(super) fn take_smaps(known: &mut ReconcileInput, smaps: &Smaps, boot_ns: Option<u64>) {
    let groups = smaps.groups(By::Kind);
    let Some(native) = groups.kind(Kind::NativeHeap) else {
        return;
    };
    let source = "/proc/PID/smaps".to_owned();
    if let Some(rss) = native.sums.get(Field::Rss) {
        known.native_resident = Some(At::new(
            NativeResident {
                resident: rss,
                by_shares: false,
                private_dirty: native.sums.of(Field::PrivateDirty),
                swapped: native.sums.get(Field::Swap),
            },
            source.clone(),
            boot_ns,
        ));
        let rest = groups
            .rows
            .iter()
            .filter(|row| row.group.sub.is_none() && row.group.kind != Kind::NativeHeap);
        known.elsewhere = rest
            .map(|row| Area {
                name: row.group.kind.label().to_owned(),
                bytes: row.sums.of(Field::Rss),
            })
            .collect();
    }
    // The kernel's own sum of the same time has priority over a sample near it.
    if let Some(value) = groups.total.get(Field::Rss) {
        known.resident = Some(At::new(value, source, boot_ns));
        known.resident_by_meminfo = false;
    }
}

pub(super) fn take_malloc_info(known: &mut ReconcileInput, text: &[u8], boot_ns: Option<u64>) {
    match malloc_info::parse(text) {
        Ok(value) => {
            known.malloc_info = Some(At::new(value, "am dumpheap -m", boot_ns));
        }
        Err(error) => known.miss(
            Figure::MallocInfo,
            format!("cannot read its output: {error}"),
            None,
        ),
    }
}

/// Adds the values of meminfo; returns whether they include the heap.
pub(super) fn take_meminfo(known: &mut ReconcileInput, text: &str, boot_ns: Option<u64>) -> bool {
    let meminfo = Meminfo::parse(text);
    let Some(process) = meminfo.process_of(known.pid) else {
        return false;
    };
    if known.process.is_empty() {
        known.process = process.name.clone().unwrap_or_default();
    }
    let Some(table) = process.table() else {
        return false;
    };
    let source = "dumpsys meminfo".to_owned();
    let cells = table.heap(&NATIVE_HEAP);
    if let Some(value) = cells {
        known.native_heap = Some(At::new(value, source.clone(), boot_ns));
    }
    let cell = |label: &str, column: &Column| u64::try_from(table.cell(label, column)?).ok();
    let column = match table.headings.position(&Column::Rss) {
        Some(_) => Column::Rss,
        None => Column::Pss,
    };
    let native = NATIVE_HEAP.iter().find(|label| table.row(label).is_some());
    if let (None, Some(label)) = (&known.native_resident, native)
        && let Some(resident) = cell(label, &column)
    {
        known.native_resident = Some(At::new(
            NativeResident {
                resident,
                by_shares: column == Column::Pss,
                private_dirty: cell(label, &Column::PrivateDirty).unwrap_or(0),
                swapped: cell(label, &Column::SwapPss).or_else(|| cell(label, &Column::Swap)),
            },
            source.clone(),
            boot_ns,
        ));
        let rest = table
            .parts()
            .filter(|row| !NATIVE_HEAP.contains(&row.label.as_str()))
            .filter(|row| !is_of_drivers(&row.label));
        known.elsewhere = rest
            .filter_map(|row| {
                Some(Area {
                    name: row.label.clone(),
                    bytes: u64::try_from(table.value(row, &column)?).ok()?,
                })
            })
            .collect();
    }
    if known.resident.is_none()
        && let Some(rss) = table.total_of(&Column::Rss)
        && let Ok(total) = u64::try_from(rss)
    {
        // TOTAL RSS includes driver memory, which is not in any page table.
        let of_drivers = table.parts().filter(|row| is_of_drivers(&row.label));
        let of_drivers = of_drivers
            .filter_map(|row| u64::try_from(table.value(row, &Column::Rss)?).ok())
            .fold(0, u64::saturating_add);
        known.resident = Some(At::new(total.saturating_sub(of_drivers), source, boot_ns));
        known.resident_by_meminfo = true;
    }
    cells.is_some()
}

/// Returns whether a row is memory that a driver reports for the process (memtrack), which the
/// kernel's values do not include.
fn is_of_drivers(label: &str) -> bool {
    label.ends_with("mtrack") || label.ends_with("memtrack")
}
