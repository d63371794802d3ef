//! Values of a recording's processes at each label and at its end, from its directory. Reads the
//! timeline once, regardless of the number of labels.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::values::{
    RECORD, note_missing, read, take_heap, take_malloc_info, take_meminfo, take_smaps,
};
use crate::heaps::input::ListedDump;
use crate::heaps::moments::{Capture, MomentNotFound, Moments};
use crate::heaps::selector::DumpSelector;
use android_memory::reconcile::{At, FAR_NS, Figure, NativeResident, ReconcileInput, Table};
use android_memory::smaps;
use heaptap_model::profile::ART_HEAP;
use heaptap_model::timeline::{Kept, Missed, Observation, Parts, Resident, Timeline};
use heaptap_results::manifest::{JavaDump, Manifest};

/// Maximum distance for comparable samples: samples come each second, rows every ten.
const NEAR_NS: u64 = 30_000_000_000;
/// Captures with comparable values.
const KEPT: [&str; 3] = ["smaps", "meminfo", "malloc-info"];

/// Values of a process at one time of a recording.
#[derive(Debug, Clone)]
pub struct Moment {
    /// Label and process.
    pub capture: Capture,
    pub table: Table,
}

/// Returns the values of each process at each label of a recording and at its end, in chronological
/// order. `listed`: the dumps of its native heaps. Blocks.
pub fn of_directory(directory: &Path, listed: &[ListedDump], timeline: &Timeline) -> Vec<Moment> {
    let gathered = Gathered::new(Way::new(directory, listed), listed, timeline);
    let at_label = |(&(number, pid), kept): (&(u32, u32), &Vec<(&Kept, u64)>)| {
        let label = kept.first().map(|(kept, _)| kept.label.as_str());
        let label = label.filter(|label| !label.is_empty());
        let known = gathered.at_label(directory, (number, label, pid), kept);
        Moment {
            capture: Capture {
                number,
                label: known.label.clone(),
                pid: pid.into(),
                dump: None,
            },
            table: Table::from_input(&known),
        }
    };
    let mut moments: Vec<Moment> = gathered.kept.iter().map(at_label).collect();
    if moments.is_empty() {
        moments = of_dumpheap(directory);
    }
    if moments.is_empty() {
        moments = gathered.of_last_dumps();
    }
    moments
}

/// Returns the selected ones; those of the latest label by default.
///
/// # Errors
/// Returns an error if nothing was captured at the selected label.
pub fn choose(
    directory: &Path,
    moments: Vec<Moment>,
    which: Option<&DumpSelector>,
) -> Result<Vec<Moment>, MomentNotFound> {
    let captures: Vec<Capture> = moments.iter().map(|m| m.capture.clone()).collect();
    let found = Moments::of_directory(directory).find(which, &captures)?;
    let found: BTreeSet<usize> = found.into_iter().collect();
    let meant = moments.into_iter().enumerate();
    let meant = meant.filter(|(at, _)| found.contains(at));
    Ok(meant.map(|(_, moment)| moment).collect())
}

/// Returns the values that `dump --malloc-info` stored next to its heap dumps.
fn of_dumpheap(directory: &Path) -> Vec<Moment> {
    let Ok(manifest) = Manifest::read(directory) else {
        return Vec::new();
    };
    let of_dump = |(dump, number): (&JavaDump, u32)| {
        let text = read(directory, dump.malloc_info.as_deref()?)?;
        let mut known = ReconcileInput {
            process: dump.process.clone(),
            pid: u32::try_from(dump.pid).ok()?,
            boot_ns: dump.time_ns,
            label: dump.label.as_ref().map(|label| label.name.clone()),
            ..ReconcileInput::default()
        };
        take_malloc_info(&mut known, &text, dump.time_ns);
        for (figure, why) in [
            (Figure::Profiled, "a Java heap dump has no native profile"),
            (Figure::HeapAlloc, "meminfo was not recorded"),
        ] {
            note_missing(&mut known, figure, why.to_owned(), Some(RECORD.to_owned()));
        }
        Some(Moment {
            capture: Capture {
                number,
                label: known.label.clone(),
                pid: dump.pid,
                dump: Some(dump.number),
            },
            table: Table::from_input(&known),
        })
    };
    let dumps = manifest.dumps.java.iter().zip(1..);
    dumps.filter_map(of_dump).collect()
}

/// Settings of a recording that explain missing values.
#[derive(Debug, Default)]
struct Way {
    /// Requested companion data.
    with: Vec<String>,
    /// Java allocations were recorded in place of malloc's.
    java: bool,
    /// Whether heapprofd could be made to dump at a label.
    dumps_at_labels: bool,
}

impl Way {
    fn new(directory: &Path, listed: &[ListedDump]) -> Way {
        let Ok(manifest) = Manifest::read(directory) else {
            return Way::default();
        };
        let caused = manifest.session.map(|session| session.snapshots_by);
        Way {
            with: manifest
                .companion
                .map(|beside| beside.with)
                .unwrap_or_default(),
            java: manifest.java_allocations.is_some()
                && listed.iter().all(|dump| dump.facts.heap == ART_HEAP),
            // Do not give advice if the directory does not have this information.
            dumps_at_labels: caused.is_none_or(|by| by.is_some()),
        }
    }

    /// Returns why heapprofd's value is missing at `label`, or at the end.
    fn no_profile(&self, label: Option<&str>) -> String {
        match (self.java, label) {
            (true, _) => "the recording profiled Java allocations instead of malloc",
            (false, Some(_)) if !self.dumps_at_labels => {
                "no dump has this label, because this recording could not trigger a dump"
            }
            (false, Some(_)) => "no dump has this label",
            (false, None) => "the recording has no dump of this process",
        }
        .to_owned()
    }

    /// Returns the setting that adds a missing value; `None` if it was already used.
    fn help(&self, figure: Figure, at_label: bool) -> Option<String> {
        let with = match figure {
            Figure::Profiled if self.java => {
                return Some("record without `--java-allocations`".to_owned());
            }
            Figure::Profiled => {
                return (at_label && !self.dumps_at_labels).then(|| {
                    "use `heaptap record --snapshots=PERIOD`, or leave out its --no-snapshots, to get a dump \
                     for each label"
                        .to_owned()
                });
            }
            Figure::HeapAlloc | Figure::HeapSize => "meminfo",
            _ => "smaps",
        };
        let was_asked = self.with.iter().any(|source| source == with);
        (!was_asked).then(|| RECORD.to_owned())
    }
}

/// Memory data of a recording other than its heaps, indexed for lookup: recordings of hours have
/// thousands of samples, and many labels.
struct Gathered<'a> {
    way: Way,
    /// Names of processes.
    names: BTreeMap<u32, &'a str>,
    /// Captures of a process at a label, with their times.
    kept: BTreeMap<(u32, u32), Vec<(&'a Kept, u64)>>,
    /// Missing captures of a process, or of all processes (0).
    missed: BTreeMap<(u32, u32), Vec<&'a Missed>>,
    /// Samples of each process, in order of time.
    samples: BTreeMap<u32, Samples<'a>>,
    /// Last dump of each heap of a process, overall and at each label.
    dumps: BTreeMap<(u64, Option<&'a str>), BTreeMap<&'a str, &'a ListedDump>>,
}

/// Samples of a process, each kind in order of time.
#[derive(Default)]
struct Samples<'a> {
    resident: Vec<(u64, &'a Resident)>,
    parts: Vec<(u64, &'a Parts)>,
    /// Samples that include heap sizes.
    with_heap: Vec<(u64, &'a Parts)>,
}

impl Samples<'_> {
    fn sort(&mut self) {
        self.resident.sort_by_key(|(at, _)| *at);
        self.parts.sort_by_key(|(at, _)| *at);
        self.with_heap.sort_by_key(|(at, _)| *at);
    }
}

/// Returns the sample nearest to a time, if it is near enough for a comparison.
fn nearest<'a, T>(samples: &[(u64, &'a T)], moment: u64) -> Option<(u64, &'a T)> {
    let next = samples.partition_point(|(at, _)| *at < moment);
    let around = samples.get(next.saturating_sub(1)..)?.iter().take(2);
    around
        .copied()
        .min_by_key(|(at, _)| at.abs_diff(moment))
        .filter(|(at, _)| at.abs_diff(moment) <= NEAR_NS)
}

impl<'a> Gathered<'a> {
    /// Reads the timeline once.
    fn new(way: Way, listed: &'a [ListedDump], timeline: &'a Timeline) -> Gathered<'a> {
        let mut gathered = Gathered {
            way,
            names: BTreeMap::new(),
            kept: BTreeMap::new(),
            missed: BTreeMap::new(),
            samples: BTreeMap::new(),
            dumps: BTreeMap::new(),
        };
        for entry in &timeline.entries {
            let (pid, boot_ns) = (entry.pid, entry.boot_ns);
            match &entry.seen {
                Observation::Process(process) => _ = gathered.names.insert(pid, &process.name),
                Observation::Captured(kept) if KEPT.contains(&kept.what.as_str()) => {
                    let of_label = gathered.kept.entry((kept.number, pid)).or_default();
                    of_label.push((kept, boot_ns));
                }
                Observation::Missed(missed) => {
                    let of_label = gathered.missed.entry((missed.number, pid)).or_default();
                    of_label.push(missed);
                }
                Observation::Resident(resident) => {
                    let samples = gathered.samples.entry(pid).or_default();
                    samples.resident.push((boot_ns, resident));
                }
                Observation::Parts(parts) => {
                    let samples = gathered.samples.entry(pid).or_default();
                    samples.parts.push((boot_ns, parts));
                    if parts.native_heap.is_some() {
                        samples.with_heap.push((boot_ns, parts));
                    }
                }
                _ => {}
            }
        }
        gathered.samples.values_mut().for_each(Samples::sort);
        for dump in listed {
            let (pid, heap) = (dump.facts.pid, dump.facts.heap.as_str());
            let labels = dump.labels.iter().chain(&dump.facts.label);
            let labels = labels.map(|label| Some(label.as_str())).chain([None]);
            for label in labels {
                let heaps = gathered.dumps.entry((pid, label)).or_default();
                heaps.insert(heap, dump);
            }
        }
        gathered
    }

    /// Returns the values of a recording without labels: the last dump of each process, with
    /// samples near it.
    fn of_last_dumps(&self) -> Vec<Moment> {
        let pids = self.dumps.keys().filter(|(_, label)| label.is_none());
        let of_pid = |pid: u64| {
            let mut known = ReconcileInput {
                pid: u32::try_from(pid).ok()?,
                ..ReconcileInput::default()
            };
            self.take_heaps(&mut known, None);
            known.boot_ns = known.heaps.first().and_then(|heap| heap.boot_ns);
            self.take_near(&mut known);
            for (figure, why) in [
                (Figure::HeapAlloc, "meminfo was not recorded"),
                (Figure::MallocInfo, "malloc_info was not recorded"),
            ] {
                note_missing(
                    &mut known,
                    figure,
                    why.to_owned(),
                    self.way.help(figure, false),
                );
            }
            let last = self.dumps.get(&(pid, None))?.values();
            Some(Moment {
                capture: Capture {
                    number: 1,
                    label: None,
                    pid,
                    dump: last.map(|dump| dump.facts.number).max(),
                },
                table: Table::from_input(&known),
            })
        };
        pids.filter_map(|(pid, _)| of_pid(*pid)).collect()
    }

    /// Returns the values of a process at a label: captures, the dump with that label, and samples
    /// near it.
    fn at_label(
        &self,
        directory: &Path,
        (number, label, pid): (u32, Option<&str>, u32),
        kept: &[(&Kept, u64)],
    ) -> ReconcileInput {
        let mut known = ReconcileInput {
            pid,
            label: label.map(str::to_owned),
            ..ReconcileInput::default()
        };
        self.take_heaps(&mut known, label);
        if let Some(name) = self.names.get(&pid) {
            known.process = (*name).to_owned();
        }
        for (kept, boot_ns) in kept {
            let Some(text) = read(directory, &kept.file) else {
                continue;
            };
            let boot_ns = Some(*boot_ns);
            match kept.what.as_str() {
                "smaps" => {
                    known.boot_ns = known.boot_ns.or(boot_ns);
                    if let Ok(smaps) = smaps::parse(&text) {
                        take_smaps(&mut known, &smaps, boot_ns);
                    }
                }
                "malloc-info" => take_malloc_info(&mut known, &text, boot_ns),
                _ => {
                    known.boot_ns = known.boot_ns.or(boot_ns);
                    take_meminfo(&mut known, &String::from_utf8_lossy(&text), boot_ns);
                }
            }
        }
        let missed = [pid, 0].map(|pid| self.missed.get(&(number, pid)));
        for missed in missed.into_iter().flatten().flatten() {
            let figure = match missed.what.as_str() {
                "smaps" => Figure::NativeResident,
                "malloc-info" => Figure::MallocInfo,
                "meminfo" => Figure::HeapAlloc,
                _ => continue,
            };
            note_missing(&mut known, figure, missed.why.clone(), None);
        }
        // The rows of meminfo replace mappings.
        if known.native_resident.is_some() {
            known.missing.retain(|m| m.figure != Figure::NativeResident);
        }
        self.take_near(&mut known);
        let at = match label {
            Some(_) => "at this label",
            None => "at the end",
        };
        for (figure, why) in [
            (Figure::Profiled, self.way.no_profile(label)),
            (
                Figure::MallocInfo,
                format!("malloc_info was not captured {at}"),
            ),
            (Figure::HeapAlloc, format!("meminfo was not captured {at}")),
        ] {
            let help = self.way.help(figure, label.is_some());
            note_missing(&mut known, figure, why, help);
        }
        known
    }

    /// Adds heapprofd's heaps of the process: those with the label, otherwise the last of each.
    fn take_heaps(&self, known: &mut ReconcileInput, label: Option<&str>) {
        let chosen = self.dumps.get(&(u64::from(known.pid), label));
        for (heap, dump) in chosen.into_iter().flatten() {
            take_heap(known, heap, dump);
        }
    }

    /// Adds the nearest samples for values that are still missing.
    fn take_near(&self, known: &mut ReconcileInput) {
        let (Some(moment), Some(samples)) = (known.boot_ns, self.samples.get(&known.pid)) else {
            return;
        };
        // The kernel's own value has priority over meminfo's sum of the same time.
        let within = match known.resident_by_meminfo {
            true => FAR_NS,
            false => NEAR_NS,
        };
        if (known.resident.is_none() || known.resident_by_meminfo)
            && let Some((at, resident)) = nearest(&samples.resident, moment)
            && at.abs_diff(moment) <= within
        {
            known.resident_by_meminfo = false;
            known.resident = Some(At::new(resident.rss, "/proc/PID/status", Some(at)));
        }
        if known.native_heap.is_none()
            && let Some((at, parts)) = nearest(&samples.with_heap, moment)
            && let Some(cells) = parts.native_heap
        {
            known.native_heap = Some(At::new(cells, "dumpsys meminfo", Some(at)));
        }
        if known.native_resident.is_none()
            && let Some((at, parts)) = nearest(&samples.parts, moment)
        {
            let private = u64::try_from(parts.native).unwrap_or(0);
            known.native_resident = Some(At::new(
                NativeResident {
                    resident: private,
                    by_shares: true,
                    private_dirty: private,
                    swapped: None,
                },
                "App Summary of dumpsys meminfo: private dirty",
                Some(at),
            ));
        }
    }
}
