//! The figures of a process side by side: gathered from a running phone, or out of a recording's
//! folder at each of its labels. What they mean is `memory::reconcile`'s.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use super::look::ListedDump;
use super::manifest::{JavaDump, Manifest};
use super::meminfo::{self, MeminfoError};
use super::smaps::fetch::{self, FetchError};
use crate::analyze::sampling::{Interval, Sampled};
use crate::config::Targets;
use crate::device::{Command, Device};
use crate::error::Classified;
use crate::memory::malloc_info;
use crate::memory::meminfo::{Column, Meminfo, NATIVE_HEAP, Process};
use crate::memory::reconcile::{Area, At, Figure, Known, Missing, NativeResident, Profiled, Table};
use crate::memory::smaps::{self, By, Field, Kind, Smaps};
use crate::memory::status::{self, Status};
use crate::memory::timeline::{Entry, Seen, Timeline};
use crate::profile::DumpKind;

/// What of a moment is near enough to be compared: samples come each second, rows each ten.
const NEAR_NS: u64 = 30_000_000_000;
/// Most of a file that is read: texts of one process.
const LARGEST: u64 = 256 << 20;
/// What is looked at to tell an allocator's XML.
const HEAD: u64 = 256;
const STATUS_LIMIT: Duration = Duration::from_secs(10);

const STATUS: &str = "cat /proc/uptime /proc/$1/status";

/// The figures of a running process. Asks the app for its heap, for which it collects garbage
/// once. heapprofd's figure takes a recording and is missing here.
///
/// # Errors
/// Where it does not run, or the phone is lost.
pub async fn of_phone(
    device: &Device,
    target: &str,
    user: Option<u32>,
) -> Result<Table, FetchError> {
    let (pid, process) = fetch::only_process(device, target, user).await?;
    let mut known = Known {
        process: process.clone(),
        pid,
        ..Known::default()
    };
    known.missing.push(Missing {
        figure: Figure::Profiled,
        why: "heapprofd sees what is allocated while it records, and nothing is recorded here"
            .to_owned(),
        help: Some(format!(
            "heaptap record -n {process} --with meminfo,smaps, then heaptap reconcile FOLDER"
        )),
    });
    let number = pid.to_string();
    let status = Command::script(STATUS)
        .called("reading the memory of a process")
        .arg(&number);
    let output = device.run(&status, STATUS_LIMIT).await?;
    take_status(&mut known, &String::from_utf8_lossy(&output.stdout));
    // Mappings before meminfo: the app collects garbage for that.
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
        Err(why) => known.missing.push(Missing {
            figure: Figure::MallocInfo,
            why,
            help: Some("needed: a debug build of the app, or a userdebug phone".to_owned()),
        }),
    }
    ask_meminfo(device, &mut known).await?;
    known.boot_ns = known.resident.as_ref().and_then(|at| at.boot_ns);
    Ok(Table::of(&known))
}

/// Meminfo's figures; of an app that does not answer those that the system alone has.
async fn ask_meminfo(device: &Device, known: &mut Known) -> Result<(), FetchError> {
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
                    known.missing.push(Missing {
                        figure: Figure::HeapAlloc,
                        why: "dumpsys meminfo gave no figures of the heap".to_owned(),
                        help: None,
                    });
                }
                return Ok(());
            }
            Err(MeminfoError::Device(error)) if fetch::is_lost(&error) => return Err(error.into()),
            Err(error) => error,
        };
        if !local {
            known.missing.push(Missing {
                figure: Figure::HeapAlloc,
                why: error.to_string(),
                help: error.help(),
            });
        }
        let silent = matches!(error, MeminfoError::Device(_));
        if silent || known.native_resident.is_some() {
            break;
        }
    }
    Ok(())
}

/// The table of an allocator's XML that somebody saved; `None` for a file that is none. Blocks.
pub fn of_malloc_info(path: &Path) -> Option<Table> {
    let folder = path.parent()?;
    let name = path.file_name()?.to_str()?;
    // A trace is not read whole to see that it is none.
    let head = super::smaps::read_below(folder, name, HEAD).ok()?;
    let begin = head.trim_ascii_start();
    if !begin.starts_with(b"<malloc") && !begin.starts_with(b"<?xml") {
        return None;
    }
    let value = malloc_info::parse(&read(folder, name)?).ok()?;
    let mut known = Known {
        malloc_info: Some(At {
            value,
            source: path.display().to_string(),
            boot_ns: None,
        }),
        ..Known::default()
    };
    for (figure, why) in [
        (
            Figure::Profiled,
            "a file of the allocator alone has no profile",
        ),
        (
            Figure::HeapAlloc,
            "a file of the allocator alone has no meminfo beside",
        ),
    ] {
        note_missing(&mut known, figure, why.to_owned());
    }
    Some(Table::of(&known))
}

/// The figures of each process at each label of a recording and at its end, in order of time.
/// `listed`: the dumps of its native heaps. Blocks.
pub fn of_folder(folder: &Path, listed: &[ListedDump], timeline: &Timeline) -> Vec<Table> {
    let mut moments: BTreeSet<(u32, u32)> = BTreeSet::new();
    let mut labels: BTreeMap<u32, String> = BTreeMap::new();
    for entry in &timeline.entries {
        if let Seen::Kept(kept) = &entry.seen
            && matches!(kept.what.as_str(), "smaps" | "meminfo" | "malloc-info")
        {
            moments.insert((kept.number, entry.pid));
            labels.insert(kept.number, kept.label.clone());
        }
    }
    let mut tables: Vec<Table> = Vec::new();
    for (number, pid) in moments {
        let label = labels.get(&number).cloned().unwrap_or_default();
        let known = at_label(folder, (number, &label, pid), listed, timeline);
        tables.push(Table::of(&known));
    }
    if tables.is_empty() {
        tables = of_dumpheap(folder);
    }
    if tables.is_empty() {
        tables = of_last_dumps(listed, timeline);
    }
    tables
}

/// What `dump --malloc-info` left beside its heap dumps.
fn of_dumpheap(folder: &Path) -> Vec<Table> {
    let Ok(manifest) = Manifest::read(folder) else {
        return Vec::new();
    };
    let of_dump = |dump: &JavaDump| {
        let text = read(folder, dump.malloc_info.as_deref()?)?;
        let mut known = Known {
            process: dump.process.clone(),
            pid: u32::try_from(dump.pid).ok()?,
            boot_ns: dump.time_ns,
            label: dump.label.as_ref().map(|label| label.name.clone()),
            ..Known::default()
        };
        take_malloc_info(&mut known, &text, dump.time_ns);
        for (figure, why) in [
            (
                Figure::Profiled,
                "a dump of Java heaps has no native profile",
            ),
            (Figure::HeapAlloc, "meminfo was not recorded beside"),
        ] {
            note_missing(&mut known, figure, why.to_owned());
        }
        Some(Table::of(&known))
    };
    manifest.dumps.java.iter().filter_map(of_dump).collect()
}

/// Where nothing was kept at labels: the last dump of each process, with what was sampled near
/// it.
fn of_last_dumps(listed: &[ListedDump], timeline: &Timeline) -> Vec<Table> {
    let pids: BTreeSet<u32> = listed
        .iter()
        .filter_map(|dump| u32::try_from(dump.facts.pid).ok())
        .collect();
    let of_pid = |pid: u32| {
        let mut known = Known {
            pid,
            ..Known::default()
        };
        take_heaps(&mut known, listed, None);
        known.boot_ns = known.heaps.first().and_then(|heap| heap.boot_ns);
        take_near(&mut known, timeline);
        for (figure, why) in [
            (Figure::HeapAlloc, "meminfo was not recorded beside"),
            (Figure::MallocInfo, "malloc_info was not recorded beside"),
        ] {
            note_missing(&mut known, figure, why.to_owned());
        }
        Table::of(&known)
    };
    pids.into_iter().map(of_pid).collect()
}

fn note_missing(known: &mut Known, figure: Figure, why: String) {
    let is_there = match figure {
        Figure::HeapAlloc => known.native_heap.is_some(),
        Figure::MallocInfo => known.malloc_info.is_some(),
        Figure::NativeResident => known.native_resident.is_some(),
        Figure::Profiled => known.heaps.iter().any(|heap| heap.value.is_native()),
        _ => false,
    };
    if !is_there && !known.missing.iter().any(|missing| missing.figure == figure) {
        known.missing.push(Missing {
            figure,
            why,
            help: Some("record with `heaptap record --with meminfo,smaps`".to_owned()),
        });
    }
}

fn at_label(
    folder: &Path,
    (number, label, pid): (u32, &str, u32),
    listed: &[ListedDump],
    timeline: &Timeline,
) -> Known {
    let mut known = Known {
        pid,
        label: (!label.is_empty()).then(|| label.to_owned()),
        ..Known::default()
    };
    let of_label = known.label.clone();
    take_heaps(&mut known, listed, of_label.as_deref());
    for entry in &timeline.entries {
        match &entry.seen {
            Seen::Process(process) if entry.pid == pid => {
                known.process.clone_from(&process.name);
            }
            Seen::Kept(kept) if kept.number == number && entry.pid == pid => {
                let Some(text) = read(folder, &kept.file) else {
                    continue;
                };
                let boot_ns = Some(entry.boot_ns);
                match kept.what.as_str() {
                    "smaps" => {
                        known.boot_ns = known.boot_ns.or(boot_ns);
                        if let Ok(smaps) = smaps::parse(&text) {
                            take_smaps(&mut known, &smaps, boot_ns);
                        }
                    }
                    "malloc-info" => take_malloc_info(&mut known, &text, boot_ns),
                    "meminfo" => {
                        known.boot_ns = known.boot_ns.or(boot_ns);
                        take_meminfo(&mut known, &String::from_utf8_lossy(&text), boot_ns);
                    }
                    _ => {}
                }
            }
            Seen::Missed(missed)
                if missed.number == number && (entry.pid == pid || entry.pid == 0) =>
            {
                let figure = match missed.what.as_str() {
                    "smaps" => Figure::NativeResident,
                    "malloc-info" => Figure::MallocInfo,
                    "meminfo" => Figure::HeapAlloc,
                    _ => continue,
                };
                known.missing.push(Missing {
                    figure,
                    why: missed.why.clone(),
                    help: None,
                });
            }
            _ => {}
        }
    }
    // meminfo's rows stand in for mappings.
    if known.native_resident.is_some() {
        known.missing.retain(|m| m.figure != Figure::NativeResident);
    }
    take_near(&mut known, timeline);
    for (figure, why) in [
        (Figure::Profiled, "no dump has this label"),
        (Figure::MallocInfo, "malloc_info was not kept at this label"),
        (Figure::HeapAlloc, "meminfo was not kept at this label"),
    ] {
        note_missing(&mut known, figure, why.to_owned());
    }
    known
}

/// A file of the folder, unpacked.
fn read(folder: &Path, file: &str) -> Option<Vec<u8>> {
    super::smaps::read_below(folder, file, LARGEST).ok()
}

/// heapprofd's heaps of the process: those with the label, else the last of each.
fn take_heaps(known: &mut Known, listed: &[ListedDump], label: Option<&str>) {
    let mut chosen: BTreeMap<&str, &ListedDump> = BTreeMap::new();
    for dump in listed {
        let facts = &dump.facts;
        if facts.pid != u64::from(known.pid) {
            continue;
        }
        let is_it = label.is_none_or(|label| {
            facts.label.as_deref() == Some(label) || dump.labels.iter().any(|l| l == label)
        });
        if is_it {
            chosen.insert(&facts.heap, dump);
        }
    }
    for (heap, dump) in chosen {
        let facts = &dump.facts;
        if known.process.is_empty() {
            known.process.clone_from(&facts.process);
        }
        let Some(space) = dump.totals.and_then(|totals| totals.space) else {
            continue;
        };
        let objects = dump.totals.and_then(|totals| totals.objects).unwrap_or(0);
        // The maximum of a heap is no sum of independent samples.
        let interval = match facts.kind {
            DumpKind::AtMaximum => None,
            DumpKind::Cumulative | DumpKind::AllocationsOnly => Interval::of(facts),
        };
        let range = interval.map(|interval| {
            let estimate = Sampled::new(space, objects, interval).estimate();
            (estimate.low, estimate.high)
        });
        let words = facts.flags.words();
        known.heaps.push(At {
            value: Profiled {
                heap: heap.to_owned(),
                unreleased: space,
                range,
                interval: facts.sampling_interval_bytes,
                from_startup: facts.flags.from_startup,
                begun_ns: facts.start_ns,
                incomplete: (!words.is_empty() || facts.unfinished).then(|| {
                    match words.is_empty() {
                        true => "its end is missing".to_owned(),
                        false => words.join(", "),
                    }
                }),
                at_maximum: facts.kind == DumpKind::AtMaximum,
            },
            source: "heapprofd".to_owned(),
            boot_ns: facts.time_ns,
        });
    }
}

fn take_status(known: &mut Known, text: &str) {
    let boot_ns = text.lines().next().and_then(status::uptime_ns);
    let resident = Status::parse(text).and_then(|status| status.resident(None));
    if let Some(resident) = resident {
        known.resident = Some(At {
            value: resident.rss,
            source: "/proc/PID/status".to_owned(),
            boot_ns,
        });
    }
}

fn take_smaps(known: &mut Known, smaps: &Smaps, boot_ns: Option<u64>) {
    let groups = smaps.groups(By::Kind);
    let Some(native) = groups.kind(Kind::NativeHeap) else {
        return;
    };
    let source = "/proc/PID/smaps".to_owned();
    if let Some(rss) = native.sums.get(Field::Rss) {
        known.native_resident = Some(At {
            value: NativeResident {
                resident: rss,
                by_shares: false,
                private_dirty: native.sums.of(Field::PrivateDirty),
                swapped: native.sums.get(Field::Swap),
            },
            source: source.clone(),
            boot_ns,
        });
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
    // The kernel's own sum of the same moment goes before a sample near it.
    if let Some(value) = groups.total.get(Field::Rss) {
        known.resident = Some(At {
            value,
            source,
            boot_ns,
        });
    }
}

fn take_malloc_info(known: &mut Known, text: &[u8], boot_ns: Option<u64>) {
    match malloc_info::parse(text) {
        Ok(value) => {
            known.malloc_info = Some(At {
                value,
                source: "am dumpheap -m".to_owned(),
                boot_ns,
            });
        }
        Err(error) => known.missing.push(Missing {
            figure: Figure::MallocInfo,
            why: format!("what came is none: {error}"),
            help: None,
        }),
    }
}

/// Whether it had figures of the heap.
fn take_meminfo(known: &mut Known, text: &str, boot_ns: Option<u64>) -> bool {
    let meminfo = Meminfo::parse(text);
    let is_it = |process: &&Process| process.pid.is_none_or(|pid| pid == known.pid);
    let Some(process) = meminfo.processes().find(is_it) else {
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
        known.native_heap = Some(At {
            value,
            source: source.clone(),
            boot_ns,
        });
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
        known.native_resident = Some(At {
            value: NativeResident {
                resident,
                by_shares: column == Column::Pss,
                private_dirty: cell(label, &Column::PrivateDirty).unwrap_or(0),
                swapped: cell(label, &Column::SwapPss).or_else(|| cell(label, &Column::Swap)),
            },
            source: source.clone(),
            boot_ns,
        });
        let rest = table
            .parts()
            .filter(|row| !NATIVE_HEAP.contains(&row.label.as_str()));
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
        && let Ok(value) = u64::try_from(rss)
    {
        known.resident = Some(At {
            value,
            source,
            boot_ns,
        });
    }
    cells.is_some()
}

/// What was sampled nearest to the moment, of what is still missing.
fn take_near(known: &mut Known, timeline: &Timeline) {
    let Some(moment) = known.boot_ns else {
        return;
    };
    let pid = known.pid;
    let nearest = |is_it: &dyn Fn(&Seen) -> bool| -> Option<&Entry> {
        let of_pid = timeline.entries.iter().filter(|entry| entry.pid == pid);
        of_pid
            .filter(|entry| is_it(&entry.seen))
            .min_by_key(|entry| entry.boot_ns.abs_diff(moment))
            .filter(|entry| entry.boot_ns.abs_diff(moment) <= NEAR_NS)
    };
    if known.resident.is_none()
        && let Some(entry) = nearest(&|seen| matches!(seen, Seen::Resident(_)))
        && let Seen::Resident(resident) = &entry.seen
    {
        known.resident = Some(At {
            value: resident.rss,
            source: "/proc/PID/status".to_owned(),
            boot_ns: Some(entry.boot_ns),
        });
    }
    let has_heap = |seen: &Seen| matches!(seen, Seen::Parts(parts) if parts.native_heap.is_some());
    if known.native_heap.is_none()
        && let Some(entry) = nearest(&has_heap)
        && let Seen::Parts(parts) = &entry.seen
        && let Some(cells) = parts.native_heap
    {
        known.native_heap = Some(At {
            value: cells,
            source: "dumpsys meminfo".to_owned(),
            boot_ns: Some(entry.boot_ns),
        });
    }
    if known.native_resident.is_none()
        && let Some(entry) = nearest(&|seen| matches!(seen, Seen::Parts(_)))
        && let Seen::Parts(parts) = &entry.seen
    {
        let private = u64::try_from(parts.native).unwrap_or(0);
        known.native_resident = Some(At {
            value: NativeResident {
                resident: private,
                by_shares: true,
                private_dirty: private,
                swapped: None,
            },
            source: "App Summary of dumpsys meminfo: private dirty".to_owned(),
            boot_ns: Some(entry.boot_ns),
        });
    }
}
