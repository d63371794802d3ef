//! Collections in the timeline of a recording, by process, in the form used for logs.

use std::collections::BTreeMap;

use super::event::{Logged, Runtime, Steps};
use super::log::{Name, ProcessLog, Timed};
use super::observed::{Observed, ObservedBy};
use heaptap_model::timeline::{Collection, Observation, Source, Timeline};

/// A process of a recording.
#[derive(Debug, Clone, Default)]
pub struct Recorded {
    pub log: ProcessLog,
    /// True if all collections are known, because the trace has the runtime's own marks.
    pub every: bool,
    /// Observation time, if known.
    pub observed: Option<Observed>,
}

/// Returns the processes of a recording that had collections, sorted by process ID. A restarted
/// process with the same ID is a separate process.
pub fn of_timeline(timeline: Timeline) -> Vec<Recorded> {
    let mut lives: BTreeMap<u32, u32> = BTreeMap::new();
    let mut found: BTreeMap<(u32, u32), Recorded> = BTreeMap::new();
    let times = timeline.entries.iter().map(|entry| entry.boot_ns);
    let whole = (times.clone().min(), times.max());
    let mut watched: BTreeMap<(u32, u32), (Option<u64>, Option<u64>)> = BTreeMap::new();
    for entry in timeline.entries {
        let pid = entry.pid;
        let life = *lives.get(&pid).unwrap_or(&0);
        match entry.seen {
            Observation::Process(process) => {
                let recorded = found.entry((pid, life)).or_default();
                recorded.log.name = Some(Name {
                    text: process.name,
                    from_tag: false,
                });
                watched.entry((pid, life)).or_default().0 = Some(entry.boot_ns);
            }
            Observation::Gone => {
                watched.entry((pid, life)).or_default().1 = Some(entry.boot_ns);
                lives.insert(pid, life.saturating_add(1));
            }
            Observation::Collection(collection) => {
                let recorded = found.entry((pid, life)).or_default();
                recorded.every |= collection.source == Some(Source::Ftrace);
                recorded.log.collections.push(Timed {
                    at: i64::try_from(entry.boot_ns).ok(),
                    logged: logged(collection),
                    by_signal: false,
                });
            }
            _ => {}
        }
    }
    found.retain(|_, recorded| !recorded.log.collections.is_empty());
    found
        .into_iter()
        .map(|((pid, life), mut recorded)| {
            recorded.log.pid = Some(pid);
            let (from, until) = watched.get(&(pid, life)).copied().unwrap_or_default();
            let ns = until.or(whole.1).zip(from.or(whole.0));
            let ns = ns.and_then(|(until, from)| until.checked_sub(from));
            let times = recorded.log.collections.iter().filter_map(|c| c.at);
            let span = times.clone().max().zip(times.min());
            let span = span.and_then(|(last, first)| u64::try_from(last - first).ok());
            // If there are only collections, the time before and after them is unknown.
            recorded.observed = ns
                .filter(|ns| from.is_some() || Some(*ns) > span)
                .map(|ns| Observed {
                    ns,
                    by: ObservedBy::Recording,
                });
            recorded
        })
        .collect()
}

fn logged(collection: Collection) -> Logged {
    let dalvik = collection.reason.starts_with("GC_") || collection.reason == "GC";
    let runtime = match dalvik {
        true => Runtime::Dalvik,
        false => Runtime::Art,
    };
    let step = |bytes: Option<u64>| match (runtime, bytes) {
        (_, None) => 0,
        (Runtime::Dalvik, _) => 1024,
        (Runtime::Art, Some(bytes)) => printed_step(bytes),
    };
    let signed = |bytes: Option<i64>| step(bytes.map(i64::unsigned_abs));
    Logged {
        runtime,
        steps: Steps {
            freed: signed(collection.freed_bytes),
            large: signed(collection.freed_large.map(|large| large.1)),
            live: step(collection.live),
            total: step(collection.total),
        },
        collection,
    }
}

/// Returns the unit in which ART prints a size. A size that was not printed gets the unit too, as
/// the worst case.
pub fn printed_step(bytes: u64) -> u64 {
    let units: [(u64, u64); 3] = [
        (10 << 30, 1 << 30),
        (10 << 20, 1 << 20),
        (10 << 10, 1 << 10),
    ];
    units
        .into_iter()
        .find(|(from, unit)| bytes >= *from && bytes.is_multiple_of(*unit))
        .map_or(1, |(_, unit)| unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_model::timeline::{Entry, Process};

    fn entry(boot_ns: u64, seen: Observation) -> Entry {
        Entry {
            boot_ns,
            pid: 7,
            cost: None,
            seen,
        }
    }

    #[test]
    fn a_recording_gives_processes_with_what_was_live() {
        let collection = |live| {
            Observation::Collection(Collection {
                source: Some(Source::Ftrace),
                reason: "Background".to_owned(),
                collector: "concurrent copying".to_owned(),
                live,
                ..Collection::default()
            })
        };
        let process = |name: &str| {
            Observation::Process(Process {
                name: name.to_owned(),
                restarted: false,
            })
        };
        let timeline = Timeline {
            entries: vec![
                entry(1, process("com.example")),
                entry(10, collection(Some(12 << 20))),
                entry(30, collection(None)),
                entry(42, Observation::Gone),
                entry(43, process("com.example")),
                entry(44, collection(Some(1))),
            ],
        };
        let found = of_timeline(timeline);
        let live: Vec<Vec<Option<u64>>> = found
            .iter()
            .map(|r| {
                r.log
                    .collections
                    .iter()
                    .map(|c| c.logged.collection.live)
                    .collect()
            })
            .collect();
        assert_eq!(live, [vec![Some(12 << 20), None], vec![Some(1)]]);
        assert!(
            found
                .iter()
                .all(|r| r.every && r.log.name.is_some() && r.log.pid == Some(7))
        );
        assert_eq!(found[0].log.collections[0].logged.steps.live, 1 << 20);
        let observed: Vec<u64> = found.iter().map(|r| r.observed.unwrap().ns).collect();
        assert_eq!(observed, [41, 1]);
        let alone = Timeline {
            entries: vec![entry(10, collection(None)), entry(30, collection(None))],
        };
        assert_eq!(of_timeline(alone)[0].observed, None);
    }
}
