//! A range of a recording between two of its labels, as in `rec@before..after`.

use std::fmt;
use std::path::Path;

use crate::heaps::moments::{labels_in_words, near_label};
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::untrusted::sanitize;
use heaptap_model::timeline::{Entry, Label, Observation, Timeline};
use heaptap_results::findings::Finding;
use heaptap_results::manifest::Manifest;

/// Name of the end of the recording.
const END: &str = "end";

/// Range as typed. Without a label, it begins or ends with the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch(String);

impl Stretch {
    /// Parses `before..after`, `before..` or `..after`; returns `None` if it is not a range.
    pub fn parse(typed: &str) -> Option<Stretch> {
        typed.contains("..").then(|| Stretch(typed.to_owned()))
    }

    /// Returns the first and last label. A label can end with a dot, and older recordings have
    /// labels with two dots, so the labels of the recording decide where the range is split.
    fn ends(&self, labels: &[(String, u64)]) -> (Option<&str>, Option<&str>) {
        let mut ways = self.0.char_indices().filter_map(|(at, _)| {
            let (from, to) = self.0.split_at_checked(at)?;
            let to = to.strip_prefix("..")?;
            let from = (!from.is_empty()).then_some(from);
            Some((from, (!to.is_empty() && to != END).then_some(to)))
        });
        let is_known = |end: &str| labels.iter().any(|(label, _)| label == end);
        let both_known = |(from, to): &(Option<&str>, Option<&str>)| {
            from.is_none_or(is_known) && to.is_none_or(is_known)
        };
        let known = ways.clone().find(both_known);
        known.or_else(|| ways.next()).unwrap_or_default()
    }

    /// Removes everything outside the range. Returns findings about labels that were set several
    /// times, or in the other order.
    ///
    /// # Errors
    /// Returns an error if the recording at `path` does not have the label.
    pub(super) fn cut(
        &self,
        path: &Path,
        timeline: &mut Timeline,
    ) -> Result<Vec<Finding>, Failure> {
        let labels = labels(path, timeline);
        let moments = |label: Option<&str>| match label {
            None => Ok(None),
            Some(label) => match Moments::new(label, &labels) {
                None => Err(no_such(path, label, &labels)),
                of => Ok(of),
            },
        };
        let (from, to) = self.ends(&labels);
        let (mut from, mut to) = (moments(from)?, moments(to)?);
        let is_reversed = from
            .as_ref()
            .zip(to.as_ref())
            .is_some_and(|(from, to)| from.first > to.last);
        if is_reversed {
            std::mem::swap(&mut from, &mut to);
        }
        // For labels that were set several times, use the widest range.
        let begin = from.as_ref().map(|from| from.first);
        let end = to.as_ref().map(|to| to.last);
        cut(timeline, begin, end);
        let mut findings = repeated(from.as_ref(), to.as_ref());
        if let (true, Some(from), Some(to)) = (is_reversed, &from, &to) {
            let (from, to) = (sanitize(&from.label), sanitize(&to.label));
            let message = format!("`{from}` was set before `{to}`; shows {from}..{to}");
            findings.push(Finding::new("labels-reversed", None, message));
        }
        Ok(findings)
    }
}

/// Times at which a label was set.
struct Moments {
    label: String,
    count: usize,
    first: u64,
    last: u64,
}

impl Moments {
    fn new(label: &str, labels: &[(String, u64)]) -> Option<Moments> {
        let of = labels.iter().filter(|(name, _)| name == label);
        let of: Vec<u64> = of.map(|(_, at)| *at).collect();
        Some(Moments {
            label: label.to_owned(),
            count: of.len(),
            first: *of.iter().min()?,
            last: *of.iter().max()?,
        })
    }

    fn finding(&self, stretch: &str) -> Finding {
        let label = sanitize(&self.label);
        let message = format!("{} snapshots have the label `{label}`", self.count);
        Finding::new("label-repeated", None, message).with_help(format!(
            "the range {stretch} of them; `@{label}` alone selects the last"
        ))
    }
}

/// Returns findings about labels at the ends of the range that were set several times.
fn repeated(from: Option<&Moments>, to: Option<&Moments>) -> Vec<Finding> {
    let from = from.filter(|from| from.count > 1);
    let to = to.filter(|to| to.count > 1);
    match (from, to) {
        (Some(from), Some(to)) if from.label == to.label => {
            vec![from.finding("spans the first to the last")]
        }
        _ => {
            let from = from.map(|from| from.finding("begins with the first"));
            let to = to.map(|to| to.finding("ends with the last"));
            from.into_iter().chain(to).collect()
        }
    }
}

impl fmt::Display for Stretch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns the labels of a recording with their times.
fn labels(path: &Path, timeline: &Timeline) -> Vec<(String, u64)> {
    let manifest = Manifest::read(path).map_or_else(|_| Vec::new(), |manifest| manifest.labels);
    let noted = manifest
        .into_iter()
        .map(|label| (label.name, label.requested_ns));
    let noted: Vec<(String, u64)> = noted.collect();
    if !noted.is_empty() {
        return noted;
    }
    let seen = timeline
        .entries
        .iter()
        .filter_map(|entry| match &entry.seen {
            Observation::Label(label) => Some((label.label.clone(), entry.boot_ns)),
            _ => None,
        });
    seen.collect()
}

fn no_such(path: &Path, label: &str, labels: &[(String, u64)]) -> Failure {
    let names = labels.iter().map(|(name, _)| name.as_str());
    let there = labels_in_words(names.clone());
    let help = match (near_label(label, names), there.as_str()) {
        (_, "") => {
            "show the whole recording without `@`, or set labels with `heaptap snapshot --label \
             NAME` while it records"
        }
        (Some(near), _) => &format!("did you mean {}?", sanitize(near)),
        (None, there) => &format!("choose from: {}", sanitize(there)),
    };
    let (name, label) = (path.display(), sanitize(label));
    let message = format!("{name} does not have a label {label}");
    Failure::new(ErrorClass::Usage, "no-such-capture", message).with_help(help)
}

/// Removes the entries outside the range, but keeps the processes that existed at its beginning.
fn cut(timeline: &mut Timeline, from: Option<u64>, to: Option<u64>) {
    let (begin, end) = (from.unwrap_or(0), to.unwrap_or(u64::MAX));
    timeline.entries.retain_mut(|entry| {
        let tells_of_life = matches!(entry.seen, Observation::Process(_) | Observation::Gone);
        let stays = entry.boot_ns <= end && (entry.boot_ns >= begin || tells_of_life);
        entry.boot_ns = entry.boot_ns.max(begin);
        stays
    });
    // Mark the ends of the range as observed, even if nothing happened there.
    let mark = |boot_ns| Entry {
        boot_ns,
        pid: 0,
        cost: None,
        seen: Observation::Label(Label {
            label: String::new(),
        }),
    };
    timeline.merge(Timeline {
        entries: from.into_iter().chain(to).map(mark).collect(),
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::gc::run::GcReport;
    use heaptap_model::timeline::{Collection, Process, Source};

    fn entry(boot_ns: u64, seen: Observation) -> Entry {
        Entry {
            boot_ns,
            pid: 7,
            cost: None,
            seen,
        }
    }

    fn timeline() -> Timeline {
        let collection = || {
            Observation::Collection(Collection {
                source: Some(Source::Ftrace),
                reason: "Background".to_owned(),
                ..Collection::default()
            })
        };
        let process = |name: &str| {
            Observation::Process(Process {
                name: name.to_owned(),
                restarted: false,
            })
        };
        let label = |label: &str| {
            Observation::Label(Label {
                label: label.to_owned(),
            })
        };
        Timeline {
            entries: vec![
                entry(1, process("com.example.old")),
                entry(5, collection()),
                entry(6, Observation::Gone),
                entry(7, process("com.example.new")),
                entry(10, label("before")),
                entry(20, collection()),
                entry(30, collection()),
                entry(40, label("after")),
                entry(50, collection()),
            ],
        }
    }

    #[test]
    fn a_stretch_has_what_ended_in_it_of_who_was_there() {
        let nowhere = Path::new("/nowhere");
        for (typed, collections, observed) in [
            ("before..after", 2, 30),
            ("after..before", 2, 30),
            ("before..", 3, 40),
            ("before..end", 3, 40),
            ("after..", 1, 10),
        ] {
            let mut timeline = timeline();
            let findings = Stretch::parse(typed)
                .unwrap()
                .cut(nowhere, &mut timeline)
                .unwrap();
            let reversed = findings.iter().any(|f| f.kind == "labels-reversed");
            assert_eq!(reversed, typed == "after..before", "{findings:?}");
            let report = GcReport::of_recording(timeline);
            let [process] = report.processes.as_slice() else {
                panic!("{typed}: {report:?}");
            };
            assert_eq!(process.name.as_deref(), Some("com.example.new"), "{typed}");
            let told = (process.collections, process.observed_ns);
            assert_eq!(told, (collections, Some(observed)), "{typed}");
        }
        let mut first = timeline();
        Stretch::parse("..before")
            .unwrap()
            .cut(nowhere, &mut first)
            .unwrap();
        let report = GcReport::of_recording(first);
        assert_eq!(report.processes[0].name.as_deref(), Some("com.example.old"));
        assert_eq!(report.processes.len(), 1);
    }

    #[test]
    fn a_label_that_was_not_set_is_told_with_those_that_were() {
        let nowhere = Path::new("/nowhere");
        let stretch = Stretch::parse("befor..after").unwrap();
        let error = stretch.cut(nowhere, &mut timeline()).unwrap_err();
        assert_eq!(error.help.as_deref(), Some("did you mean before?"));
        let stretch = Stretch::parse("elsewhere..after").unwrap();
        let error = stretch.cut(nowhere, &mut timeline()).unwrap_err();
        assert_eq!(error.help.as_deref(), Some("choose from: before, after"));
        assert_eq!(Stretch::parse("before"), None);
    }

    /// Returns a timeline of labels, with the ns at which each was set.
    fn labelled(labels: &[(&str, u64)]) -> Timeline {
        let set = |(label, at): &(&str, u64)| {
            let label = (*label).to_owned();
            entry(*at, Observation::Label(Label { label }))
        };
        Timeline {
            entries: labels.iter().map(set).collect(),
        }
    }

    #[test]
    fn a_stretch_is_divided_where_its_labels_end() {
        let labels = [("v1.", 1), ("a..b", 2), ("end", 3)].map(|(l, at)| (l.to_owned(), at));
        for (typed, ends) in [
            ("v1...a..b", (Some("v1."), Some("a..b"))),
            ("a..b..v1.", (Some("a..b"), Some("v1."))),
            ("a..b..", (Some("a..b"), None)),
            ("..a..b", (None, Some("a..b"))),
            ("v1...end", (Some("v1."), None)),
            ("gone..b", (Some("gone"), Some("b"))),
        ] {
            let stretch = Stretch::parse(typed).unwrap();
            assert_eq!(stretch.ends(&labels), ends, "{typed}");
        }
    }

    #[test]
    fn each_label_is_told_once_however_often_it_was_set() {
        let mut timeline = labelled(&[("login", 1), ("Logout", 2), ("login", 3)]);
        let stretch = Stretch::parse("logout..").unwrap();
        let mut help = |stretch: Stretch| stretch.cut(Path::new("/nowhere"), &mut timeline);
        let mut help = |stretch| help(stretch).unwrap_err().help.unwrap();
        assert_eq!(help(stretch), "did you mean Logout?");
        let elsewhere = Stretch::parse("elsewhere..").unwrap();
        assert_eq!(help(elsewhere), "choose from: login, Logout");
    }

    #[test]
    fn a_stretch_of_repeated_labels_is_the_widest_and_says_so() {
        let all = [
            ("in", 10),
            ("out", 20),
            ("in", 30),
            ("out", 40),
            ("end of it", 50),
        ];
        for (typed, span, told) in [
            ("in..", (10, 50), vec!["the range begins with the first"]),
            ("..out", (10, 40), vec!["the range ends with the last"]),
            (
                "in..in",
                (10, 30),
                vec!["the range spans the first to the last"],
            ),
            (
                "in..out",
                (10, 40),
                vec![
                    "the range begins with the first",
                    "the range ends with the last",
                ],
            ),
            // In reverse order.
            (
                "end of it..in",
                (10, 50),
                vec!["the range begins with the first"],
            ),
            ("end of it..", (50, 50), vec![]),
        ] {
            let mut timeline = labelled(&all);
            let stretch = Stretch::parse(typed).unwrap();
            let mut findings = stretch.cut(Path::new("/nowhere"), &mut timeline).unwrap();
            findings.retain(|finding| finding.kind == "label-repeated");
            let at = timeline.entries.iter().map(|entry| entry.boot_ns);
            assert_eq!(at.clone().min().zip(at.max()), Some(span), "{typed}");
            assert_eq!(findings.len(), told.len(), "{typed}: {findings:?}");
            for (finding, told) in findings.iter().zip(told) {
                assert_eq!(finding.class, None);
                assert!(finding.message.starts_with("2 snapshots have the label "));
                let help = finding.help.as_deref().unwrap();
                assert!(help.starts_with(told), "{typed}: {help}");
            }
        }
    }
}
