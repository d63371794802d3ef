//! Reconciliation of a process: values from a running device, or from a recording directory at each
//! label. `memory::reconcile` interprets them.

mod directory;
#[cfg(test)]
mod tests;

pub use directory::{Moment, choose, of_directory};

use std::path::Path;
use std::time::Duration;

use crate::heaps::input::ListedDump;
use crate::heaps::meminfo::{self, MeminfoError};
use crate::heaps::smaps::fetch::{self, FetchError};
use android_memory::malloc_info;
use android_memory::meminfo::{Column, Meminfo, NATIVE_HEAP};
use android_memory::reconcile::{
    Area, At, Estimated, Figure, NativeResident, Profiled, ReconcileInput, Table,
};
use android_memory::smaps::{self, By, Field, Kind, Smaps};
use android_memory::status::{self, Status};
use heaptap_adb::{Command, Device};
use heaptap_base::bytes::Bytes;
use heaptap_base::error::Classified;
use heaptap_base::untrusted::shell::quoted;
use heaptap_capture::config::Targets;
use heaptap_input::{ImportError, TextInput, is_directory};
use heaptap_model::profile::DumpKind;
use heaptap_results::file_names::is_below;

/// Maximum size of a file, in bytes: texts of one process.
const LARGEST: u64 = 256 << 20;
const STATUS_LIMIT: Duration = Duration::from_secs(10);

/// Advice for recording all values.
const RECORD: &str = "record with `heaptap record --with meminfo,smaps`";

const STATUS: &str = "cat /proc/uptime /proc/$1/status";

/// Returns the values of a running process. The app is asked for its heap, for which it collects
/// garbage once. heapprofd's value needs a recording and is missing here.
///
/// # Errors
/// Returns an error if the process is not running, or the device is disconnected.
pub async fn of_phone(
    device: &Device,
    targets: &Targets,
    user: Option<u32>,
) -> Result<Table, FetchError> {
    let (pid, process) = fetch::only_process(device, targets, user).await?;
    let mut known = ReconcileInput {
        process: process.clone(),
        pid,
        ..ReconcileInput::default()
    };
    known.miss(
        Figure::Profiled,
        "heapprofd only profiles during a recording, and this is not a recording",
        Some(format!(
            "heaptap record -n {} --with meminfo,smaps, then heaptap meminfo DIR --reconcile",
            quoted(&process)
        )),
    );
    let number = pid.to_string();
    let status = Command::script(STATUS)
        .called("reading the memory of a process")
        .arg(&number);
    take_status(&mut known, &device.text(&status, STATUS_LIMIT).await?);
    // Mappings before meminfo, for which the app collects garbage.
    match fetch::proc_file(device, (pid, &process), "smaps").await {
        Ok(fetched) => {
            if let Ok(smaps) = smaps::parse(&fetched.text) {
                take_smaps(&mut known, &smaps, fetched.boot_ns);
            }
        }
        // meminfo has the same rows.
        Err(FetchError::Refused { .. } | FetchError::Gone { .. }) => {}
        Err(error) => return Err(error),
    }
    let told = match fetch::malloc_info(device, pid).await {
        Err(error) if !fetch::is_lost(&error) => Err(error.to_string()),
        told => told?,
    };
    match told {
        Ok(fetched) => take_malloc_info(&mut known, &fetched.text, fetched.boot_ns),
        Err(why) => known.miss(
            Figure::MallocInfo,
            why,
            Some("use a debug build of the app or a userdebug device".to_owned()),
        ),
    }
    ask_meminfo(device, &mut known).await?;
    known.boot_ns = known.resident.as_ref().and_then(|at| at.boot_ns);
    Ok(Table::of(&known))
}

/// Adds the values of meminfo; for an app that does not answer, those of the system alone.
async fn ask_meminfo(device: &Device, known: &mut ReconcileInput) -> Result<(), FetchError> {
    for local in [false, true] {
        let question = meminfo::Question {
            targets: Targets {
                pids: vec![known.pid],
                ..Targets::default()
            },
            all: true,
            local,
            ..meminfo::Question::default()
        };
        let error = match meminfo::ask(device, &question).await {
            Ok(answer) => {
                let boot_ms = answer.document.realtime_ms;
                let boot_ns = boot_ms.and_then(|ms| ms.checked_mul(1_000_000));
                let has_heap = take_meminfo(known, &String::from_utf8_lossy(&answer.text), boot_ns);
                if !has_heap && !local {
                    known.miss(
                        Figure::HeapAlloc,
                        "`dumpsys meminfo` returned no heap values",
                        None,
                    );
                }
                return Ok(());
            }
            Err(MeminfoError::Device(error)) if fetch::is_lost(&error) => return Err(error.into()),
            Err(error) => error,
        };
        if !local {
            known.miss(Figure::HeapAlloc, error.to_string(), error.help());
        }
        let silent = matches!(error, MeminfoError::Device(_));
        if silent || known.native_resident.is_some() {
            break;
        }
    }
    Ok(())
}

/// Returns the table of a saved allocator XML, in a file or on standard input (`-`); `None` for
/// other files. Blocks.
///
/// # Errors
/// Returns an error if its compression is damaged, or if standard input or a pipe contains
/// something else.
pub fn of_malloc_info(path: &Path) -> Result<Option<Table>, ImportError> {
    if is_directory(path) {
        return Ok(None);
    }
    let input = TextInput::typed(path)?;
    let (name, what, is_regular) = (input.name().to_owned(), input.kind(), input.is_regular());
    // Avoid reading a whole trace.
    let begin = input.head().trim_ascii_start();
    let is_xml =
        what.may_be_text() && (begin.starts_with(b"<malloc") || begin.starts_with(b"<?xml"));
    let value = match is_xml {
        true => {
            let text = input.whole(LARGEST)?;
            if let Some(what) = text.damage {
                return Err(ImportError::Damaged { name, what });
            }
            malloc_info::parse(&text.bytes).ok()
        }
        false => None,
    };
    let Some(value) = value else {
        return match is_regular {
            true => Ok(None),
            false => Err(ImportError::NotAHeap { name, what }),
        };
    };
    let mut known = ReconcileInput {
        malloc_info: Some(At::new(value, path.display().to_string(), None)),
        ..ReconcileInput::default()
    };
    for (figure, why) in [
        (Figure::Profiled, "an allocator file has no profile"),
        (Figure::HeapAlloc, "an allocator file has no meminfo"),
    ] {
        note_missing(&mut known, figure, why.to_owned(), Some(RECORD.to_owned()));
    }
    Ok(Some(Table::of(&known)))
}

fn note_missing(known: &mut ReconcileInput, figure: Figure, why: String, help: Option<String>) {
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
fn read(directory: &Path, file: &str) -> Option<Bytes> {
    let path = directory.join(file);
    let input = is_below(file).then(|| TextInput::of_regular(&path));
    input.flatten().and_then(whole)
}

/// Returns a complete text; `None` if it is truncated or too large.
fn whole(input: TextInput<'_>) -> Option<Bytes> {
    let text = input.whole(LARGEST).ok()?;
    text.damage.is_none().then_some(text.bytes)
}

/// Adds a heap recorded by heapprofd.
fn take_heap(known: &mut ReconcileInput, heap: &str, dump: &ListedDump) {
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

fn take_status(known: &mut ReconcileInput, text: &str) {
    let boot_ns = text.lines().next().and_then(status::uptime_ns);
    let resident = Status::parse(text).and_then(|status| status.resident(None));
    if let Some(resident) = resident {
        known.resident = Some(At::new(resident.rss, "/proc/PID/status", boot_ns));
        known.resident_by_meminfo = false;
    }
}

fn take_smaps(known: &mut ReconcileInput, smaps: &Smaps, boot_ns: Option<u64>) {
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

fn take_malloc_info(known: &mut ReconcileInput, text: &[u8], boot_ns: Option<u64>) {
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
fn take_meminfo(known: &mut ReconcileInput, text: &str, boot_ns: Option<u64>) -> bool {
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
