//! Meaning of `PATH@LABEL`, `PATH@N`, `PATH@last` and `PATH@end` for companion data: the numbering
//! shared by all commands. `N` is a dump number of manifest.json: the N-th of its process and heap,
//! from 1. Captures belong to the dump of their label; captures at the end belong to the last dump
//! of their process. A recording without dumps uses the numbers of its labels, from 1, as in file
//! names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::selector::DumpSelector;
use heaptap_base::suggest::nearest;
use heaptap_model::profile::DumpNumbers;
use heaptap_model::timeline::{Observation, Timeline};
use heaptap_results::file_names::is_below;
use heaptap_results::lists::join_list;
use heaptap_results::manifest::{DumpId, Manifest};

/// Maximum number of dump numbers shown for a label: a process can have many heaps.
const MAX_NUMBERS: usize = 3;

/// Maximum number of labels listed in a message.
const MAX_NAMES: usize = 24;

/// Companion data captured from a process at a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// Position among the labels, from 1; the end comes after the last.
    pub number: u32,
    /// Label; `None` at the end.
    pub label: Option<String>,
    /// Process; 0 if unknown.
    pub pid: u64,
    /// Number of the dump that it is part of, if any.
    pub dump: Option<u32>,
}

/// A captured file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptFile {
    pub capture: Capture,
    pub path: PathBuf,
    /// Time of the capture, BOOTTIME in ns.
    pub boot_ns: u64,
}

/// Returns the files of this kind (`smaps`, `meminfo`) that a timeline names and that exist in the
/// recording directory, in order.
pub fn kept(directory: &Path, timeline: &Timeline, what: &str) -> Vec<KeptFile> {
    let kept = timeline.entries.iter().filter_map(|entry| {
        let Observation::Captured(kept) = &entry.seen else {
            return None;
        };
        let path = directory.join(&kept.file);
        let is_it = kept.what == what && is_below(&kept.file) && path.is_file();
        is_it.then(|| KeptFile {
            capture: Capture {
                number: kept.number,
                label: (!kept.label.is_empty()).then(|| kept.label.clone()),
                pid: entry.pid.into(),
                dump: None,
            },
            path,
            boot_ns: entry.boot_ns,
        })
    });
    // A repetition after a disconnect replaces the first capture.
    let key = |file: KeptFile| {
        let capture = &file.capture;
        ((capture.number, capture.pid, capture.label.clone()), file)
    };
    let kept: BTreeMap<_, KeptFile> = kept.map(key).collect();
    kept.into_values().collect()
}

/// A dump with its label positions.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Dumped {
    id: DumpId,
    /// Places of the labels that are bound to it, from 1.
    labels: Vec<u32>,
    /// True if it is the last of its process and heap.
    is_last: bool,
}

/// The dumps and labels of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Moments {
    dumps: Vec<Dumped>,
    labels: Vec<String>,
}

impl Moments {
    /// Reads them from a manifest.
    pub fn from_manifest(manifest: &Manifest) -> Moments {
        let mut bound: BTreeMap<&DumpId, Vec<u32>> = BTreeMap::new();
        for (label, place) in manifest.labels.iter().zip(1..) {
            for labelled in &label.dumps {
                bound.entry(&labelled.dump).or_default().push(place);
            }
        }
        let ids = manifest.dumps.keys().map(|dump| dump.id());
        let dumped = ids.map(|id| Dumped {
            labels: bound.remove(&id).unwrap_or_default(),
            id,
            is_last: false,
        });
        Moments {
            dumps: mark_last(dumped.collect()),
            labels: manifest.labels.iter().map(|l| l.name.clone()).collect(),
        }
    }

    /// Numbers the parts of an input in the same way, given the process of each. They have no
    /// labels.
    pub fn of_parts(pids: impl IntoIterator<Item = u64>) -> Moments {
        let mut numbers = DumpNumbers::default();
        let dumped = pids.into_iter().map(|pid| Dumped {
            id: DumpId {
                pid,
                heap: String::new(),
                number: numbers.next(pid, ""),
            },
            labels: Vec::new(),
            is_last: false,
        });
        Moments {
            dumps: mark_last(dumped.collect()),
            labels: Vec::new(),
        }
    }

    /// Reads them from the recording in a directory; empty without a readable manifest.
    pub fn of_directory(directory: &Path) -> Moments {
        Manifest::read(directory).map_or_else(
            |_| Moments::default(),
            |found| Moments::from_manifest(&found),
        )
    }

    /// Returns whether the recording has dumps.
    pub fn has_dumps(&self) -> bool {
        !self.dumps.is_empty()
    }

    /// Returns the number of a process's last dump; 0 if there is none.
    pub fn last_number(&self, pid: u64) -> u32 {
        let dumps = self.dumps.iter().filter(|dump| dump.id.pid == pid);
        dumps.map(|dump| dump.id.number).max().unwrap_or(0)
    }

    /// Returns the position of a label in the recording, from 1, at or after `from`; the end comes
    /// after the last.
    pub fn place_of(&self, label: Option<&str>, from: usize) -> Option<u32> {
        let at = match label {
            None => Some(self.labels.len()),
            Some(label) => {
                let mut rest = self.labels.iter().enumerate().skip(from);
                rest.find(|(_, name)| *name == label).map(|(at, _)| at)
            }
        };
        at.and_then(|at| u32::try_from(at).ok()?.checked_add(1))
    }

    /// Returns number and capture index for each dump that has a capture, in order.
    pub fn beside(&self, captures: &[Capture]) -> Vec<(u32, usize)> {
        let found = self.captured(captures).into_iter();
        found.map(|(dump, at)| (dump.id.number, at)).collect()
    }

    fn captured(&self, captures: &[Capture]) -> Vec<(&Dumped, usize)> {
        let mut of_dump: BTreeMap<(u64, u32), usize> = BTreeMap::new();
        let mut by_place: BTreeMap<(u32, u64), usize> = BTreeMap::new();
        let mut by_label: BTreeMap<(&str, u64), usize> = BTreeMap::new();
        let mut at_end: BTreeMap<u64, usize> = BTreeMap::new();
        for (at, capture) in captures.iter().enumerate() {
            match (capture.dump, &capture.label) {
                (Some(number), _) => _ = of_dump.insert((capture.pid, number), at),
                (None, None) => _ = at_end.insert(capture.pid, at),
                (None, Some(label)) => {
                    by_place.insert((capture.number, capture.pid), at);
                    by_label.insert((label, capture.pid), at);
                }
            }
        }
        let labelled = |dump: &Dumped| {
            // The last of several labels is the nearest.
            dump.labels.iter().rev().find_map(|&place| {
                let name = self
                    .labels
                    .get(usize::try_from(place).ok()?.checked_sub(1)?)?;
                let is_it = |at: &&usize| captures[**at].label.as_ref() == Some(name);
                let of = |pid| {
                    let placed = by_place.get(&(place, pid)).filter(is_it);
                    placed.or_else(|| by_label.get(&(name.as_str(), pid)))
                };
                of(dump.id.pid).or_else(|| of(0)).copied()
            })
        };
        let ended = |dump: &Dumped| {
            let at = at_end.get(&dump.id.pid).or_else(|| at_end.get(&0));
            at.copied().filter(|_| dump.is_last)
        };
        let of = |dump: &Dumped| {
            let own = of_dump.get(&(dump.id.pid, dump.id.number)).copied();
            own.or_else(|| ended(dump)).or_else(|| labelled(dump))
        };
        let all = self.dumps.iter();
        all.filter_map(|dump| Some((dump, of(dump)?))).collect()
    }

    /// Returns the indexes of the selected captures; those of the last label by default,
    /// otherwise those of the end. There
    /// are several if there were several processes.
    ///
    /// # Errors
    /// Returns an error if there is no such label, or no capture at it.
    pub fn find(
        &self,
        which: Option<&DumpSelector>,
        captures: &[Capture],
    ) -> Result<Vec<usize>, MomentNotFound> {
        let those = |is_it: &dyn Fn(&Capture) -> bool| -> Vec<usize> {
            let all = captures.iter().enumerate();
            all.filter(|(_, capture)| is_it(capture))
                .map(|(at, _)| at)
                .collect()
        };
        let latest = |among: Vec<usize>| -> Vec<usize> {
            let last = among.iter().map(|&at| captures[at].number).max();
            let is_last = |at: &usize| Some(captures[*at].number) == last;
            among.into_iter().filter(is_last).collect()
        };
        let labelled = |label: &str| latest(those(&|c| c.label.as_deref() == Some(label)));
        let of_dumps = |is_it: &dyn Fn(&Dumped) -> bool| -> Vec<usize> {
            let captured = self.captured(captures).into_iter();
            let meant = captured.filter(|(dump, _)| is_it(dump));
            let mut found: Vec<usize> = meant.map(|(_, at)| at).collect();
            found.sort_unstable();
            found.dedup();
            found
        };
        let all = || latest((0..captures.len()).collect());
        let last = || match self.has_dumps() {
            true => of_dumps(&|dump| dump.is_last),
            false => all(),
        };
        let (found, is_known) = match which {
            None => {
                let labelled = latest(those(&|c| c.label.is_some()));
                let none = labelled.is_empty();
                (if none { all() } else { labelled }, false)
            }
            Some(DumpSelector::Last) => (last(), true),
            Some(DumpSelector::End) => {
                let end = DumpSelector::End.to_string();
                let labels = (1..).zip(&self.labels);
                let places: Vec<u32> = labels.filter(|l| *l.1 == end).map(|l| l.0).collect();
                // Names of files do not distinguish the label from the end, but their numbers do.
                let is_at = |place: u32| places.is_empty() || places.contains(&place);
                let named = labelled(&end);
                let found = match named.is_empty() {
                    true => latest(those(&|c| {
                        c.label.is_none() && c.dump.is_none() && is_at(c.number)
                    })),
                    false => named,
                };
                let is_part = captures.iter().any(|c| c.dump.is_some());
                match found.is_empty() && is_part {
                    true if places.is_empty() => (last(), true),
                    true => {
                        let is_labelled = |dump: &Dumped| dump.labels.iter().any(|l| is_at(*l));
                        (of_dumps(&is_labelled), true)
                    }
                    false => (found, true),
                }
            }
            Some(DumpSelector::Label(label)) => (labelled(label), self.labels.contains(label)),
            Some(DumpSelector::Number(number)) => {
                let is_dump = self.dumps.iter().any(|dump| dump.id.number == *number);
                let label = number.to_string();
                let found = match is_dump {
                    true => of_dumps(&|dump| dump.id.number == *number),
                    false => labelled(&label),
                };
                match found.is_empty() && !self.has_dumps() {
                    true => (those(&|c| c.number == *number), false),
                    false => (found, is_dump || self.labels.contains(&label)),
                }
            }
        };
        match found.is_empty() {
            true => Err(self.nothing(which, is_known, captures)),
            false => Ok(found),
        }
    }

    fn nothing(
        &self,
        which: Option<&DumpSelector>,
        is_known: bool,
        captures: &[Capture],
    ) -> MomentNotFound {
        let why = match which {
            Some(DumpSelector::Number(number)) if is_known => {
                let is_bare = |dump: &&Dumped| dump.labels.is_empty() && !dump.is_last;
                let dumps = self.dumps.iter().filter(|dump| dump.id.number == *number);
                let mut dumps = dumps.peekable();
                // A label of digits might not have a dump.
                let is_dump = dumps.peek().is_some();
                match is_dump && dumps.all(|dump| is_bare(&dump)) {
                    true => {
                        "the dump has no label, and companion data is captured only at labels and \
                         at the end"
                    }
                    false if is_dump => "no such data was captured with this dump",
                    false => "no such data was captured at this label",
                }
            }
            Some(named @ (DumpSelector::Label(_) | DumpSelector::End))
                if self.labels.contains(&named.to_string()) =>
            {
                "no such data was captured at this label"
            }
            Some(DumpSelector::Last | DumpSelector::End) => "no such data was captured at the end",
            _ => "the dump or label does not exist",
        };
        let labels = captures.iter().filter_map(|c| c.label.as_deref());
        MomentNotFound {
            which: which.map(DumpSelector::to_string).unwrap_or_default(),
            why,
            near: which
                .filter(|_| !is_known)
                .and_then(|which| did_you_mean(which, labels)),
            there: join_list(self.names(captures).into_iter()),
        }
    }

    /// Returns the names of the labels of `captures`: `@before (@1)`, `@end (@4)`.
    pub fn names(&self, captures: &[Capture]) -> Vec<String> {
        let mut numbers: BTreeMap<(u32, Option<u32>), BTreeSet<u32>> = BTreeMap::new();
        let key = |capture: &Capture| (capture.number, capture.dump);
        for (number, at) in self.beside(captures) {
            let of_moment = numbers.entry(key(&captures[at])).or_default();
            of_moment.insert(number);
        }
        let mut seen: BTreeMap<(u32, Option<u32>), &Capture> = BTreeMap::new();
        for capture in captures {
            seen.entry(key(capture)).or_insert(capture);
        }
        let of = |(key, capture): (&(u32, Option<u32>), &&Capture)| {
            let own: Vec<u32> = capture.dump.into_iter().collect();
            let lone = [key.0];
            let beside = numbers
                .get(key)
                .map(|all| Vec::from_iter(all.iter().copied()));
            let numbers = match (&beside, self.has_dumps()) {
                _ if !own.is_empty() => &own[..],
                (Some(numbers), _) => numbers,
                (None, false) => &lone,
                (None, true) => &[],
            };
            capture.named(numbers)
        };
        seen.iter().map(of).collect()
    }
}

/// Marks the last dump of each process and heap.
fn mark_last(mut dumps: Vec<Dumped>) -> Vec<Dumped> {
    let mut seen = BTreeSet::new();
    for dump in dumps.iter_mut().rev() {
        dump.is_last = seen.insert((dump.id.pid, dump.id.heap.clone()));
    }
    dumps
}

impl Capture {
    /// Returns the names of a label: `@before (@1, @2)`.
    pub fn named(&self, numbers: &[u32]) -> String {
        let shown = first_of(numbers);
        let name = match (&self.label, self.dump) {
            (Some(label), _) => format!("@{label}"),
            (None, Some(_)) => return shown,
            (None, None) => format!("@{}", DumpSelector::End),
        };
        match shown.is_empty() {
            true => name,
            false => format!("{name} ({shown})"),
        }
    }
}

/// Returns the names of dumps in order: `@before (@1), @2 to @4, @after (@5), @last, @end`. Takes
/// the number and labels of each; several processes and heaps have the same numbers.
pub fn names_of<'a>(dumps: impl IntoIterator<Item = (u32, &'a [String])>) -> String {
    let mut groups: Vec<(&[String], Vec<u32>)> = Vec::new();
    let mut place_of: BTreeMap<&[String], usize> = BTreeMap::new();
    for (number, labels) in dumps {
        let known = match labels {
            [] => groups
                .len()
                .checked_sub(1)
                .filter(|&at| groups[at].0.is_empty()),
            labels => place_of.get(labels).copied(),
        };
        match known {
            Some(at) => groups[at].1.push(number),
            None => {
                place_of.insert(labels, groups.len());
                groups.push((labels, vec![number]));
            }
        }
    }
    for (_, numbers) in &mut groups {
        numbers.sort_unstable();
        numbers.dedup();
    }
    let more = groups.len().saturating_sub(MAX_NAMES);
    let shown = groups.iter().take(MAX_NAMES);
    let mut names: Vec<String> = shown
        .map(|(labels, numbers)| match labels {
            [] => numbered(numbers),
            labels => {
                let labels: Vec<String> = labels.iter().map(|label| format!("@{label}")).collect();
                format!("{} ({})", labels.join(", "), numbered(numbers))
            }
        })
        .collect();
    if more > 0 {
        names.push(format!("{more} more"));
    }
    names.extend([DumpSelector::Last, DumpSelector::End].map(|which| format!("@{which}")));
    names.join(", ")
}

/// As [`names_of`], without `@end` if that is the label that selects none of them.
pub fn names_besides<'a>(
    which: &DumpSelector,
    dumps: impl IntoIterator<Item = (u32, &'a [String])>,
) -> String {
    let names = names_of(dumps);
    match (which, names.strip_suffix(&format!(", @{which}"))) {
        (DumpSelector::End, Some(others)) => others.to_owned(),
        _ => names,
    }
}

/// Returns the reason why a label of the recording selects no dump.
pub fn no_dump_came(is_label: bool) -> Option<String> {
    is_label.then(|| "no dump came for this label.".to_owned())
}

/// Reason why a label with dumps selects none.
pub const OTHERS_ONLY: &str = "the dumps of this label are of other processes or heaps.";

/// As [`names_of`], for labels only: each once, in order.
pub fn labels_in_words<'a>(labels: impl IntoIterator<Item = &'a str>) -> String {
    let mut known = BTreeSet::new();
    let all = labels.into_iter().filter(|label| known.insert(*label));
    let mut names: Vec<String> = all.map(str::to_owned).collect();
    let more = names.len().saturating_sub(MAX_NAMES);
    names.truncate(MAX_NAMES);
    if more > 0 {
        names.push(format!("{more} more"));
    }
    names.join(", ")
}

/// `@3`, `@3, @4`, `@3 to @9`.
fn numbered(numbers: &[u32]) -> String {
    let is_run = numbers
        .windows(2)
        .all(|two| two[0].checked_add(1) == Some(two[1]));
    match numbers {
        [first, _, .., last] if is_run => format!("@{first} to @{last}"),
        _ => first_of(numbers),
    }
}

/// `@3, @4`, the first ones only.
fn first_of(numbers: &[u32]) -> String {
    let shown = numbers.iter().take(MAX_NUMBERS);
    let mut shown: Vec<String> = shown.map(|number| format!("@{number}")).collect();
    if numbers.len() > MAX_NUMBERS {
        shown.push("…".to_owned());
    }
    shown.join(", ")
}

/// Returns a suggestion for a label that does not exist.
pub fn did_you_mean<'a>(
    which: &DumpSelector,
    labels: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let DumpSelector::Label(typed) = which else {
        return None;
    };
    let (last, end) = (
        DumpSelector::Last.to_string(),
        DumpSelector::End.to_string(),
    );
    let words = [last.as_str(), end.as_str()];
    let all = labels.into_iter().map(str::to_owned);
    let all: Vec<String> = all.chain(words.map(str::to_owned)).collect();
    let near = near_label(typed, all.iter().map(String::as_str));
    near.map(|label| format!("did you mean @{label}?"))
}

/// Returns the most similar one of `labels`.
pub fn near_label<'a>(
    typed: &str,
    labels: impl Iterator<Item = &'a str> + Clone,
) -> Option<&'a str> {
    let lower = typed.to_lowercase();
    let same = labels.clone().find(|label| label.to_lowercase() == lower);
    same.or_else(|| nearest(typed, labels))
}

/// Error of selecting captures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MomentNotFound {
    /// Selector.
    pub which: String,
    /// Readable reason.
    pub why: &'static str,
    /// Suggestion.
    pub near: Option<String>,
    /// Available captures.
    pub there: String,
}

impl MomentNotFound {
    /// Returns the help text.
    pub fn help(&self) -> String {
        let there = match self.there.is_empty() {
            true => "no such data is available".to_owned(),
            false => format!("available: {}", self.there),
        };
        match &self.near {
            Some(near) => format!("{near} {there}"),
            None => there,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dump(number: u32, pid: u64, heap: &str, labels: &[u32], is_last: bool) -> Dumped {
        Dumped {
            id: DumpId {
                pid,
                heap: heap.to_owned(),
                number,
            },
            labels: labels.to_vec(),
            is_last,
        }
    }

    /// Two heaps of one process, a periodic dump between two labeled ones, and a second process at
    /// the second label.
    fn moments() -> Moments {
        Moments {
            dumps: vec![
                dump(1, 7, "libc.malloc", &[1], false),
                dump(1, 7, "own", &[1], false),
                dump(2, 7, "libc.malloc", &[], false),
                dump(3, 7, "libc.malloc", &[2], false),
                dump(1, 8, "libc.malloc", &[2], true),
                dump(4, 7, "libc.malloc", &[], true),
            ],
            labels: vec!["before".to_owned(), "after".to_owned(), "bare".to_owned()],
        }
    }

    fn capture(number: u32, label: Option<&str>, pid: u64) -> Capture {
        Capture {
            number,
            label: label.map(str::to_owned),
            pid,
            dump: None,
        }
    }

    fn captures() -> Vec<Capture> {
        vec![
            capture(1, Some("before"), 7),
            capture(2, Some("after"), 7),
            capture(2, Some("after"), 8),
            capture(4, None, 7),
        ]
    }

    fn found(moments: &Moments, captures: &[Capture], which: &str) -> Vec<usize> {
        let which = DumpSelector::parse(which);
        moments.find(Some(&which), captures).unwrap_or_default()
    }

    #[test]
    fn a_number_is_a_dumps_and_means_what_was_kept_for_it() {
        let (moments, captures) = (moments(), captures());
        let at = |which| found(&moments, &captures, which);
        // The last label, not the end.
        assert_eq!(moments.find(None, &captures).unwrap(), [1, 2]);
        for (which, expected) in [
            // The first dump of each process: for the second process, that of the second label.
            ("1", &[0, 2][..]),
            ("before", &[0]),
            ("3", &[1]),
            ("after", &[1, 2]),
            ("4", &[3]),
            ("end", &[3]),
            // The other process's last dump is that of the label.
            ("last", &[2, 3]),
        ] {
            assert_eq!(at(which), expected, "@{which}");
        }
    }

    #[test]
    fn what_has_nothing_beside_it_says_why_and_what_there_is() {
        let (moments, captures) = (moments(), captures());
        let error = |which: &str| {
            let which = DumpSelector::parse(which);
            moments.find(Some(&which), &captures).unwrap_err()
        };
        let periodic = error("2");
        assert!(periodic.why.contains("has no label"), "{periodic:?}");
        assert_eq!(periodic.there, "@before (@1), @after (@1, @3), @end (@4)");
        assert!(error("bare").why.contains("at this label"));
        assert!(error("9").why.contains("does not exist"));
        let digits = Moments {
            labels: vec!["2026".to_owned()],
            ..moments.clone()
        };
        let digits = digits.find(Some(&DumpSelector::Number(2026)), &captures);
        let why = digits.map_err(|missing| missing.why);
        assert_eq!(why, Err("no such data was captured at this label"));
        let misspelt = error("befor");
        assert_eq!(misspelt.near.as_deref(), Some("did you mean @before?"));
        assert!(misspelt.help().contains("@after"), "{misspelt:?}");
        assert_eq!(error("AFTER").near.as_deref(), Some("did you mean @after?"));
        assert_eq!(error("somewhere else").near, None);
        let labels = &captures[..3];
        let which = Some(&DumpSelector::End);
        let end = moments.find(which, labels).unwrap_err();
        assert!(end.why.contains("at the end"), "{end:?}");
    }

    #[test]
    fn dumps_are_listed_by_their_labels_and_those_without_by_number() {
        let of = |label: &str| vec![label.to_owned()];
        let (none, before, after) = (vec![], of("before"), of("after"));
        let listed = |all: &[&Vec<String>]| names_of((1..).zip(all.iter().map(|of| &of[..])));
        let both = [&before, &before, &none, &none, &none, &after, &none];
        assert_eq!(
            listed(&both),
            "@before (@1, @2), @3 to @5, @after (@6), @7, @last, @end"
        );
        assert_eq!(
            listed(&[&after, &before, &after]),
            "@after (@1, @3), @before (@2), @last, @end"
        );
        let two = vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(listed(&[&two]), "@a, @b (@1), @last, @end");
        let many: Vec<Vec<String>> = (0..30).map(|at| of(&format!("round-{at}"))).collect();
        let many = listed(&many.iter().collect::<Vec<_>>());
        assert!(
            many.ends_with("@round-23 (@24), 6 more, @last, @end"),
            "{many}"
        );
        let gaps: [(u32, &[String]); 5] = [1, 3, 5, 7, 9].map(|at| (at, &none[..]));
        assert_eq!(names_of(gaps), "@1, @3, @5, …, @last, @end");
    }

    #[test]
    fn without_dumps_numbers_are_those_of_the_labels() {
        let none = Moments::default();
        let captures = captures();
        let at = |which| found(&none, &captures, which);
        assert_eq!(at("1"), [0]);
        assert_eq!(at("2"), [1, 2]);
        assert_eq!(at("4"), [3]);
        assert!(at("3").is_empty());
        assert_eq!((at("last"), at("end")), (vec![3], vec![3]));
        assert_eq!(at("before"), [0]);
        assert_eq!(none.names(&captures)[0], "@before (@1)");
    }

    #[test]
    fn labels_of_one_name_are_told_apart_by_their_dumps() {
        let twice = Moments {
            dumps: vec![dump(1, 7, "h", &[1], false), dump(2, 7, "h", &[2], true)],
            labels: vec!["a".to_owned(), "a".to_owned()],
        };
        let captures = [capture(1, Some("a"), 7), capture(2, Some("a"), 7)];
        assert_eq!(found(&twice, &captures, "1"), [0]);
        assert_eq!(found(&twice, &captures, "2"), [1]);
        assert_eq!(found(&twice, &captures, "a"), [1]);
        assert_eq!(twice.place_of(Some("a"), 1), Some(2));
        assert_eq!(twice.place_of(None, 0), Some(3));
    }

    #[test]
    fn what_is_part_of_a_dump_goes_by_that() {
        let parts: Vec<Capture> = (0..2)
            .map(|at| Capture {
                dump: Some(at * 3 + 1),
                ..capture(at + 1, None, 7)
            })
            .collect();
        let moments = Moments {
            dumps: vec![dump(1, 7, "h", &[], false), dump(4, 7, "h", &[], true)],
            labels: Vec::new(),
        };
        assert_eq!(found(&moments, &parts, "1"), [0]);
        assert_eq!(found(&moments, &parts, "4"), [1]);
        assert_eq!(found(&moments, &parts, "end"), [1]);
        assert!(found(&moments, &parts, "2").is_empty());
        assert_eq!(moments.names(&parts), ["@1", "@4"]);
    }

    #[test]
    fn a_label_called_end_is_that_label() {
        let moments = Moments {
            dumps: vec![dump(1, 7, "h", &[1], false), dump(2, 7, "h", &[], true)],
            labels: vec!["end".to_owned()],
        };
        let captures = [capture(1, Some("end"), 7), capture(2, None, 7)];
        assert_eq!(found(&moments, &captures, "end"), [0]);
        assert_eq!(found(&moments, &captures, "last"), [1]);
        let error = moments.find(Some(&DumpSelector::End), &captures[1..]);
        let why = error.map_err(|missing| missing.why);
        assert_eq!(why, Err("no such data was captured at this label"));
    }
}
