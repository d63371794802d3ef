//! Selection of dumps of an input, and readable lists of the available ones.

use std::collections::BTreeSet;

use super::error::InputError;
use super::native::ListedDump;
use super::options::LookOptions;
use crate::heaps::moments::{OTHERS_ONLY, did_you_mean, names_besides, no_dump_came};
use crate::heaps::selector::DumpSelector;
use heaptap_model::profile::is_heap;
use heaptap_model::stacks::{Facts, last_of_each};
use heaptap_results::findings::{self, Finding};
use heaptap_results::lists::{join_list, join_processes};
use heaptap_results::manifest::Manifest;

/// Selection of dumps.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DumpScope {
    /// The one of each process and heap that all commands and pages show by default.
    #[default]
    Default,
    All,
    /// The given selectors.
    These(Vec<DumpSelector>),
}

/// Filters a list by process, heap and selection. Returns indexes into the list, in order. The
/// manifest also has the labels that no dump came for.
pub(super) fn choose(
    name: &str,
    listed: &[ListedDump],
    manifest: Option<&Manifest>,
    options: &LookOptions,
    wanted: &DumpScope,
) -> Result<Vec<usize>, InputError> {
    let mut left: Vec<usize> = (0..listed.len()).collect();
    let (processes, wanted_heaps) = (&options.processes, &options.heaps);
    if !processes.is_empty() {
        left.retain(|&at| {
            let facts = &listed[at].facts;
            processes.takes(pid_of(facts), &facts.process)
        });
        if left.is_empty() {
            return Err(InputError::NoSuchProcess {
                name: name.to_owned(),
                process: processes.to_string(),
                there: describe_processes(listed.iter().map(|dump| &dump.facts)),
            });
        }
    }
    if !wanted_heaps.is_empty() {
        let there = heap_names(left.iter().map(|&at| &listed[at].facts));
        left.retain(|&at| {
            let facts = &listed[at].facts;
            let is_wanted = |wanted: &String| is_heap(wanted, &facts.heap, facts.flags);
            wanted_heaps.iter().any(is_wanted)
        });
        if left.is_empty() {
            let name = name.to_owned();
            return Err(InputError::no_such_heap(name, wanted_heaps, there));
        }
    }
    match wanted {
        DumpScope::All => {
            let all = left.iter().map(|&at| &listed[at].facts);
            let closed: BTreeSet<_> = all.filter(|f| !f.open).map(Facts::heap_key).collect();
            left.retain(|&at| {
                let facts = &listed[at].facts;
                !facts.open || !closed.contains(&facts.heap_key())
            });
            Ok(left)
        }
        DumpScope::Default => {
            left.retain(|&at| listed[at].facts.is_default);
            Ok(left)
        }
        DumpScope::These(all) => {
            let mut chosen = BTreeSet::new();
            for which in all {
                let label = which.to_string();
                let requested = manifest.map_or(&[][..], |manifest| &manifest.labels);
                let is_label = requested.iter().any(|requested| requested.name == label);
                let found = named(listed, &left, which, is_label);
                if found.is_empty() {
                    let labels = listed.iter().flat_map(|dump| &dump.labels);
                    let near = || did_you_mean(which, labels.map(String::as_str));
                    let has_dump = listed.iter().any(|dump| dump.labels.contains(&label));
                    let others = has_dump.then(|| OTHERS_ONLY.to_owned());
                    let there = left
                        .iter()
                        .map(|&at| (listed[at].facts.number, &listed[at].labels[..]));
                    return Err(InputError::NoSuchDump {
                        name: name.to_owned(),
                        which: label,
                        near: others.or_else(|| no_dump_came(is_label)).or_else(near),
                        there: names_besides(which, there),
                    });
                }
                chosen.extend(found);
            }
            Ok(chosen.into_iter().collect())
        }
    }
}

/// Returns warnings about the selected processes and heaps that no dump is of.
pub(super) fn unmatched(listed: &[ListedDump], options: &LookOptions) -> Vec<Finding> {
    if options.processes.is_empty() && options.heaps.is_empty() {
        return Vec::new();
    }
    let all = listed.iter().map(|dump| &dump.facts);
    let processes = all.clone();
    let processes = processes.map(|facts| (pid_of(facts), facts.process.as_str()));
    let absent = options.processes.missing("a heap profile of", processes);
    let taken = all.filter(|facts| options.processes.takes(pid_of(facts), &facts.process));
    let has = |wanted: &&String| {
        let mut taken = taken.clone();
        taken.any(|facts| is_heap(wanted, &facts.heap, facts.flags))
    };
    let there = heaps(taken.clone());
    let missing = options.heaps.iter().filter(|wanted| !has(wanted));
    let missing = missing.map(|heap| findings::not_in_input("a heap", heap, &there));
    absent.into_iter().chain(missing).collect()
}

/// Returns the dumps of one selector: a number or a label can match several processes and heaps.
/// For each of them, a repeated label selects the last dump with it. `is_label`: whether the
/// recording has the label, with a dump or without.
fn named(
    listed: &[ListedDump],
    among: &[usize],
    which: &DumpSelector,
    is_label: bool,
) -> Vec<usize> {
    let last =
        |among: &[usize]| Facts::last_of_each(among.iter().map(|&at| (at, &listed[at].facts)));
    let labelled = |label: &str| -> Vec<usize> {
        let is = |at: &usize| listed[*at].labels.iter().any(|l| l == label);
        let all: Vec<usize> = among.iter().copied().filter(is).collect();
        last(&all)
    };
    match which {
        DumpSelector::Last => last(among),
        DumpSelector::End if !is_label => last(among),
        DumpSelector::End => labelled(&which.to_string()),
        DumpSelector::Label(label) => labelled(label),
        DumpSelector::Number(number) => {
            let is = |at: &usize| listed[*at].facts.number == *number;
            let numbered: Vec<usize> = among.iter().copied().filter(is).collect();
            match numbered.is_empty() {
                true => labelled(&number.to_string()),
                false => numbered,
            }
        }
    }
}

/// Marks the default dump of each process and heap: the last one with a label, otherwise the last.
pub(super) fn mark_defaults(listed: &mut [ListedDump]) {
    let all = listed.iter().enumerate();
    for at in last_of_each(all.map(|(at, dump)| (at, dump.facts.heap_key(), dump.rank(true)))) {
        listed[at].facts.is_default = true;
    }
}

/// Returns findings about open dumps that were skipped although the last one, or all, were
/// selected.
pub(super) fn open_ones(
    listed: &[ListedDump],
    chosen: &[usize],
    wanted: &DumpScope,
) -> Vec<Finding> {
    let all = match wanted {
        DumpScope::Default | DumpScope::All => true,
        DumpScope::These(named) => named.iter().any(DumpSelector::is_last),
    };
    let heaps: BTreeSet<_> = chosen
        .iter()
        .map(|&at| listed[at].facts.heap_key())
        .collect();
    let passed_over = |&(at, dump): &(usize, &ListedDump)| {
        all && dump.facts.open
            && chosen.binary_search(&at).is_err()
            && heaps.contains(&dump.facts.heap_key())
    };
    let open = listed.iter().enumerate().filter(passed_over);
    open.map(|(_, dump)| findings::open_dump(&dump.facts))
        .collect()
}

fn pid_of(facts: &Facts) -> Option<u64> {
    (facts.pid != 0).then_some(facts.pid)
}

/// `com.example.app (2050), system_server (1410)`.
pub(super) fn describe_processes<'a>(all: impl Iterator<Item = &'a Facts>) -> String {
    join_processes(all.map(|facts| (Some(facts.pid), facts.process.as_str())))
}

/// `com.android.art, libc.malloc`.
pub(super) fn heaps<'a>(all: impl Iterator<Item = &'a Facts>) -> String {
    join_list(heap_names(all).into_iter())
}

fn heap_names<'a>(all: impl Iterator<Item = &'a Facts>) -> BTreeSet<String> {
    all.map(|facts| match facts.heap.as_str() {
        "" => "an unnamed heap".to_owned(),
        name => name.to_owned(),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_results::manifest::Label;

    fn dump(number: u32, labels: &[&str]) -> ListedDump {
        ListedDump {
            facts: Facts {
                pid: 7,
                number,
                time_ns: Some(number.into()),
                ..Facts::default()
            },
            labels: labels.iter().map(|&label| label.to_owned()).collect(),
            totals: None,
            held: None,
            callsites: 1,
        }
    }

    #[test]
    fn end_is_the_last_dump_unless_it_is_a_label() {
        let end = DumpScope::These(vec![DumpSelector::End]);
        let chosen = |listed: &[ListedDump], labels: &[&str]| {
            let label = |name: &&str| Label {
                name: (*name).to_owned(),
                requested_ns: 0,
                dumps: Vec::new(),
            };
            let manifest = Manifest {
                labels: labels.iter().map(label).collect(),
                ..Manifest::default()
            };
            choose(
                "rec",
                listed,
                Some(&manifest),
                &LookOptions::default(),
                &end,
            )
        };
        let unlabelled = [dump(1, &["start"]), dump(2, &[])];
        assert_eq!(chosen(&unlabelled, &["start"]).ok(), Some(vec![1]));
        let labelled = [dump(1, &["end"]), dump(2, &[])];
        assert_eq!(chosen(&labelled, &["end"]).ok(), Some(vec![0]));
        let error = chosen(&unlabelled, &["start", "end"]).unwrap_err();
        let InputError::NoSuchDump { near, there, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(near.as_deref(), Some("no dump came for this label."));
        assert_eq!(there, "@start (@1), @2, @last");
    }
}
