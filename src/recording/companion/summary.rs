//! Companion data for the manifest. Read back from the directory, because another process might
//! have observed the recording.

use std::io::Read as _;
use std::path::Path;

use super::watching::Shares;
use crate::recording::companion_options::{CompanionOptions, Source};
use heaptap_base::bytes::open_regular;
use heaptap_model::timeline::{self, Entry, MissedReason, Observation, Timeline};
use heaptap_results::file_names::is_below;
use heaptap_results::lists::join_list;
use heaptap_results::manifest::{
    CompanionCost, CompanionFile, CompanionGap, CompanionMissed, CompanionTimeline,
    CompanionUnread, Companions, Warning,
};

/// Maximum number of bytes read: weeks of a recording.
const MAX_SIZE: u64 = 256 << 20;
/// Maximum number of listed gaps and files; the timeline has more.
const LISTED: usize = 1000;

/// Returns the section of the manifest; `None` if no companion data was requested.
pub(crate) fn section(directory: &Path, companions: CompanionOptions) -> Option<Companions> {
    if companions.is_empty() {
        return None;
    }
    let mut beside = Companions {
        with: companions
            .sources()
            .map(|source| source.word().to_owned())
            .collect(),
        ..Companions::default()
    };
    let Some(found) = FoundTimeline::read(directory) else {
        return Some(beside);
    };
    if found.is_foreign() {
        return Some(beside);
    }
    let log = super::logcat::FILE;
    let has_log = found.is_ours() && directory.join(log).is_file();
    beside.log = has_log.then(|| log.to_owned());
    let mut counted = CompanionTimeline {
        file: timeline::FILE.to_owned(),
        entries: found.timeline.entries.len() as u64,
        strange: found.strange as u64,
        ..CompanionTimeline::default()
    };
    for entry in &found.timeline.entries {
        count(entry, &mut counted);
        list(directory, entry, &mut beside);
    }
    beside.timeline = Some(counted);
    Some(beside)
}

fn count(entry: &Entry, counted: &mut CompanionTimeline) {
    match &entry.seen {
        Observation::Resident(_) => counted.resident += 1,
        Observation::Parts(_) => counted.parts += 1,
        Observation::Collection(collection) if collection.ours => {
            counted.collections_by_heaptap += 1;
        }
        Observation::Collection(_) => counted.collections += 1,
        Observation::Process(process) if process.restarted => counted.restarts += 1,
        _ => {}
    }
}

fn list(directory: &Path, entry: &Entry, beside: &mut Companions) {
    let label = |label: &str| (!label.is_empty()).then(|| label.to_owned());
    match &entry.seen {
        // Removed files are not listed: files in the manifest are complete and in its directory,
        // whatever wrote the timeline.
        Observation::Captured(kept)
            if beside.files.len() < LISTED
                && is_below(&kept.file)
                && directory.join(&kept.file).exists() =>
        {
            // A repetition after a disconnect replaces the first capture.
            beside.files.retain(|file| {
                let of_file = (&file.what, file.pid, file.number, &file.label);
                of_file != (&kept.what, entry.pid, kept.number, &label(&kept.label))
            });
            // A Java heap that was fetched later.
            let is_java = kept.what == Source::Java.kept_as();
            let is_it = |missed: &CompanionMissed| {
                is_java && missed.what == Source::Java.word() && missed.number == kept.number
            };
            beside.missed.retain(|missed| !is_it(missed));
            beside.files.push(CompanionFile {
                what: kept.what.clone(),
                file: kept.file.clone(),
                pid: entry.pid,
                label: label(&kept.label),
                number: kept.number,
                time_ns: entry.boot_ns,
            });
        }
        Observation::Missed(missed) if beside.missed.len() < LISTED => {
            beside.missed.push(CompanionMissed {
                what: missed.what.clone(),
                label: label(&missed.label),
                number: missed.number,
                reason: missed
                    .reason
                    .or_else(|| MissedReason::of_words(&missed.why)),
                why: missed.why.clone(),
            })
        }
        Observation::Gap(gap) if beside.gaps.len() < LISTED => beside.gaps.push(CompanionGap {
            from_ns: entry.boot_ns,
            until_ns: gap.until_ns,
            why: gap.why.clone(),
        }),
        Observation::Unreadable(unread) if beside.unread.len() < LISTED => {
            beside.unread.push(CompanionUnread {
                source: unread.source.word().to_owned(),
                pid: entry.pid,
                why: unread.why.clone(),
            })
        }
        Observation::Cost(spent) => {
            if let Some(shares) = Shares::new(spent, entry.boot_ns) {
                beside.cost = Some(CompanionCost {
                    core: shares.core,
                    services: shares.services,
                    bytes_per_s: shares.bytes_per_s,
                    rounds: spent.rounds,
                    round_trips: spent.round_trips,
                });
            }
        }
        _ => {}
    }
}

/// Returns warnings about missing companion data.
pub(crate) fn warnings(beside: &Companions) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let asked = beside.with.join(", ");
    let nothing = beside
        .timeline
        .as_ref()
        .is_none_or(|timeline| timeline.resident + timeline.parts == 0);
    let observes = beside.with.iter().any(|with| with == "meminfo");
    // It was observing, but found no running target.
    let looked = beside
        .missed
        .iter()
        .any(|missed| missed.reason == Some(MissedReason::NoTarget));
    let never = observes && nothing && !looked;
    let untaken: Vec<&CompanionMissed> = beside.missed.iter().filter(|m| is_untaken(m)).collect();
    let was_killed = untaken
        .iter()
        .any(|missed| missed.reason == Some(MissedReason::Stopped));
    if never || !untaken.is_empty() {
        let mut message = if never {
            format!(
                "the directory has no observations of this recording; of {asked}, only data from \
                 the trace and the device log are available"
            )
        } else if was_killed {
            "heaptap stopped observing this recording before its end".to_owned()
        } else {
            "heaptap did not observe this recording, because it ran detached".to_owned()
        };
        if !untaken.is_empty() {
            message.push_str(&format!("; missing {}", in_moments(&untaken)));
        }
        let help = match was_killed {
            true => "let `heaptap record` run until the recording ends",
            false => {
                "record without `--detach`, and leave the directory in its place, to observe the \
                 device during the recording"
            }
        };
        warnings.push(Warning::new("companion-unobserved", message).with_help(help));
    }
    if !never && !beside.gaps.is_empty() {
        let seconds: u64 = beside
            .gaps
            .iter()
            .map(|gap| gap.until_ns.saturating_sub(gap.from_ns) / 1_000_000_000)
            .fold(0, u64::saturating_add);
        let times = beside.gaps.len();
        let message = format!(
            "the device was not observed for {seconds} s ({times} {}): {}",
            if times == 1 { "gap" } else { "gaps" },
            beside.gaps.first().map_or("", |gap| &gap.why)
        );
        warnings.push(Warning::new("companion-gaps", message));
    }
    for missed in beside.missed.iter().filter(|m| !is_untaken(m)) {
        let at = match &missed.label {
            Some(label) => format!("snapshot {label}"),
            None => "the end".to_owned(),
        };
        let message = format!("cannot capture {} at {at}: {}", missed.what, missed.why);
        warnings.push(Warning::new("companion-missed", message));
    }
    warnings
}

/// Returns whether it is missing because no heaptap followed the recording.
fn is_untaken(missed: &CompanionMissed) -> bool {
    matches!(
        missed.reason,
        Some(MissedReason::Detached | MissedReason::Stopped)
    )
}

/// Lists missing captures by label: `at snapshot a2: java, meminfo; at the end: java`.
fn in_moments(untaken: &[&CompanionMissed]) -> String {
    let mut moments: Vec<(u32, String, Vec<&str>)> = Vec::new();
    for missed in untaken {
        match moments
            .iter_mut()
            .find(|(number, ..)| *number == missed.number)
        {
            Some((_, _, what)) => what.push(&missed.what),
            None => {
                let at = match &missed.label {
                    Some(label) => format!("at snapshot {label}"),
                    None => "at the end".to_owned(),
                };
                moments.push((missed.number, at, vec![&missed.what]));
            }
        }
    }
    let told: Vec<String> = moments
        .into_iter()
        .map(|(_, at, what)| format!("{at}: {}", what.join(" and ")))
        .collect();
    join_list(told.into_iter())
}

/// The parsed timeline file of a directory.
pub(super) struct FoundTimeline {
    pub(super) timeline: Timeline,
    /// Number of lines that are not entries.
    strange: usize,
    is_empty: bool,
}

impl FoundTimeline {
    /// Reads and parses the file, which takes a while after days of recording; `None` if it is
    /// missing or unreadable.
    pub(super) fn read(directory: &Path) -> Option<FoundTimeline> {
        let mut bytes = Vec::new();
        let file = open_regular(&directory.join(timeline::FILE)).ok()?;
        file.take(MAX_SIZE).read_to_end(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let (timeline, strange) = Timeline::parse(&text);
        Some(FoundTimeline {
            timeline,
            strange,
            is_empty: text.is_empty(),
        })
    }

    /// Returns whether heaptap observed the recording: it writes an entry before any log line, so a
    /// log without an entry is not of this recording.
    pub(super) fn is_ours(&self) -> bool {
        !self.timeline.entries.is_empty()
    }

    /// Returns whether another program wrote the file. Empty files count as heaptap's.
    pub(super) fn is_foreign(&self) -> bool {
        !self.is_ours() && !self.is_empty
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::companion::TimelineFile;
    use crate::recording::companion_options::Source as Asked;
    use heaptap_model::timeline::{
        Collection, Gap, Kept, Missed, ObservationCost, Resident, Source,
    };

    #[test]
    fn a_recording_whose_target_never_ran_was_observed_all_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let with: CompanionOptions = [Asked::Meminfo].into_iter().collect();
        let file = TimelineFile::timeline_in(dir.path()).unwrap();
        let kinds = || -> Vec<String> {
            let section = section(dir.path(), with).unwrap();
            warnings(&section).into_iter().map(|w| w.kind).collect()
        };
        assert_eq!(kinds(), ["companion-unobserved"]);
        let missed = Missed {
            what: "meminfo".to_owned(),
            label: String::new(),
            number: 1,
            reason: Some(MissedReason::NoTarget),
            why: "the app had ended".to_owned(),
        };
        file.see(7, 0, Observation::Missed(missed));
        assert_eq!(kinds(), ["companion-missed"]);
    }

    #[test]
    fn the_section_is_what_the_directory_holds() {
        let outer = tempfile::tempdir().unwrap();
        std::fs::write(outer.path().join("foreign.txt"), "x").unwrap();
        let dir = tempfile::tempdir_in(outer.path()).unwrap();
        let with: CompanionOptions = [Asked::Meminfo, Asked::Gc].into_iter().collect();
        assert_eq!(section(dir.path(), CompanionOptions::default()), None);
        let empty = section(dir.path(), with).unwrap();
        assert_eq!(empty.timeline, None);
        assert_eq!(warnings(&empty)[0].kind, "companion-unobserved");

        std::fs::create_dir(dir.path().join("meminfo")).unwrap();
        std::fs::write(dir.path().join("meminfo/01-a.txt"), "x").unwrap();
        let file = TimelineFile::timeline_in(dir.path()).unwrap();
        let resident = Resident::new(Source::Status, 1);
        file.see(1, 7, Observation::Resident(resident));
        for ours in [true, false, false] {
            let collection = Collection {
                ours,
                ..Collection::default()
            };
            file.see(2, 7, Observation::Collection(collection));
        }
        let kept = |name: &str| Kept {
            what: "meminfo".to_owned(),
            file: name.to_owned(),
            label: "a".to_owned(),
            number: 1,
        };
        file.see(3, 7, Observation::Captured(kept("meminfo/01-a.txt")));
        file.see(4, 7, Observation::Captured(kept("meminfo/01-a.txt")));
        file.see(5, 7, Observation::Captured(kept("meminfo/gone.txt")));
        // Files outside of the directory do not count as captured.
        let foreign = outer.path().join("foreign.txt");
        for file_name in ["../foreign.txt", &foreign.to_string_lossy()] {
            file.see(5, 7, Observation::Captured(kept(file_name)));
        }
        let gap = Gap {
            until_ns: 10_000_000_000,
            why: "the cable".to_owned(),
        };
        file.see(6, 0, Observation::Gap(gap));
        let missed = Missed {
            what: "java".to_owned(),
            label: String::new(),
            number: 2,
            reason: None,
            why: "x".to_owned(),
        };
        file.see(7, 0, Observation::Missed(missed));
        let spent = ObservationCost {
            since_ns: 0,
            cpu_ns: 50_000_000,
            waited_ns: 100_000_000,
            bytes: 2000,
            rounds: 10,
            ..ObservationCost::default()
        };
        file.see(10_000_000_000, 0, Observation::Cost(spent));
        let full = section(dir.path(), with).unwrap();
        let counted = full.timeline.as_ref().unwrap();
        assert_eq!(
            (
                counted.resident,
                counted.collections,
                counted.collections_by_heaptap
            ),
            (1, 2, 1)
        );
        assert_eq!(counted.entries, 12);
        assert_eq!(full.files.len(), 1);
        assert_eq!(
            (full.files[0].time_ns, full.files[0].label.as_deref()),
            (4, Some("a"))
        );
        let cost = full.cost.unwrap();
        assert!((cost.core - 0.005).abs() < 1e-9 && (cost.services - 0.01).abs() < 1e-9);
        assert!((cost.bytes_per_s - 200.0).abs() < 1e-9);
        let kinds: Vec<String> = warnings(&full).into_iter().map(|w| w.kind).collect();
        assert_eq!(kinds, ["companion-gaps", "companion-missed"]);
        assert_eq!(full.with, ["meminfo", "gc"]);
    }
}
