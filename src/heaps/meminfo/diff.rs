//! Row-wise comparison of two meminfos.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::Hash;

use serde::Serialize;

use super::document::{Document, Figure, ProcessFacts};
use super::error::MeminfoError;
use super::whole_phone::PhoneFacts;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Changes {
    /// `meminfo`.
    pub kind: &'static str,
    /// Source of the first meminfo.
    pub before: String,
    /// Source of the second meminfo.
    pub after: String,
    /// Time between the two on the device clock, if both are from the same boot.
    pub between_ms: Option<u64>,
    /// Each process with its counterpart.
    pub processes: Vec<ProcessChanges>,
    /// Processes in only one of them.
    #[serde(rename = "unpaired")]
    pub alone: Vec<UnpairedProcess>,
    /// The whole device, if both contain it: RAM, processes, importances, categories.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "device")]
    pub phone: Vec<Change>,
}

/// A process in only one meminfo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnpairedProcess {
    pub process: String,
    /// `before` or `after`.
    pub side: &'static str,
}

/// A process in both meminfos.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProcessChanges {
    pub process: String,
    pub pids: [Option<u32>; 2],
    /// True if it restarted in between: the pids differ.
    pub restarted: bool,
    /// All values in either meminfo, without columns that only one of them prints.
    pub rows: Vec<Change>,
}

/// A value before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    pub section: &'static str,
    pub row: String,
    pub column: String,
    /// `bytes` or `count`.
    pub unit: &'static str,
    /// Value before; absent if the first meminfo does not have the row.
    pub before: Option<i64>,
    pub after: Option<i64>,
    /// Difference; absent rows count as 0.
    pub growth: i64,
}

/// Compares two meminfos.
///
/// # Errors
/// Returns an error if they have no process in common, and not both have the whole device.
pub fn diff(before: &Document, after: &Document) -> Result<Changes, MeminfoError> {
    let pairs = pairs(before, after);
    let phone = match (&before.phone, &after.phone) {
        (Some(before), Some(after)) => phone(before, after),
        _ => Vec::new(),
    };
    if pairs.is_empty() && phone.is_empty() {
        return Err(MeminfoError::NothingInCommon {
            before: words(before),
            after: words(after),
        });
    }
    let alone = |all: &Document, side, at: usize| -> Vec<UnpairedProcess> {
        let paired: HashSet<usize> = pairs.iter().map(|pair| pair[at]).collect();
        let left = all.processes.iter().enumerate();
        left.filter(|(index, _)| !paired.contains(index))
            .map(|(_, process)| UnpairedProcess {
                process: process.called(),
                side,
            })
            .collect()
    };
    let mut lone = alone(before, "before", 0);
    lone.extend(alone(after, "after", 1));
    let clocks = before.realtime_ms.zip(after.realtime_ms);
    Ok(Changes {
        kind: super::document::KIND,
        before: before.from.clone(),
        after: after.from.clone(),
        between_ms: clocks.and_then(|(before, after)| after.checked_sub(before)),
        processes: pairs
            .iter()
            .map(|[a, b]| changes(&before.processes[*a], &after.processes[*b]))
            .collect(),
        alone: lone,
        phone,
    })
}

/// Compares the values of the device. A process is paired by pid, otherwise with the next unpaired
/// process of the same name.
fn phone(before: &PhoneFacts, after: &PhoneFacts) -> Vec<Change> {
    let (old, new) = (before.figures(), after.figures());
    let paired = pair(&old, &new, |(pid, figure), with_pid| {
        let pid = pid.filter(|_| with_pid);
        (figure.section, figure.row, figure.column, pid)
    });
    let [old, new] = [old, new].map(|all| all.into_iter().map(|(_, figure)| figure));
    rows(&Vec::from_iter(old), &Vec::from_iter(new), paired)
}

/// Returns the changes of the paired values, then the values that are only in `new`.
fn rows(old: &[Figure<'_>], new: &[Figure<'_>], paired: Vec<Option<usize>>) -> Vec<Change> {
    let taken: HashSet<usize> = paired.iter().flatten().copied().collect();
    let old = old.iter().zip(paired);
    let old = old.map(|(figure, like)| {
        let after = like.map(|at| new[at].value);
        change(figure, Some(figure.value), after)
    });
    let new = new.iter().enumerate().filter(|(at, _)| !taken.contains(at));
    old.chain(new.map(|(_, figure)| change(figure, None, Some(figure.value))))
        .collect()
}

fn words(document: &Document) -> String {
    let names: Vec<String> = document
        .processes
        .iter()
        .map(ProcessFacts::called)
        .collect();
    match names.is_empty() {
        true => "a meminfo of the whole device".to_owned(),
        false => names.join(", "),
    }
}

/// Pairs the processes: by pid and name, then by name in order.
fn pairs(before: &Document, after: &Document) -> Vec<[usize; 2]> {
    let key = |process: &ProcessFacts, with_pid| {
        let pid = process.pid.filter(|_| with_pid);
        (process.name.clone(), pid)
    };
    let paired = pair(&before.processes, &after.processes, key);
    let pairs = paired.into_iter().enumerate();
    pairs.filter_map(|(old, new)| Some([old, new?])).collect()
}

/// Pairs what has the same key, in order: first with the pid in it, then the rest without. Returns
/// the place in `new` for each of `old`.
fn pair<T, K: Eq + Hash>(old: &[T], new: &[T], key: impl Fn(&T, bool) -> K) -> Vec<Option<usize>> {
    let mut paired = vec![None; old.len()];
    let mut taken = vec![false; new.len()];
    for with_pid in [true, false] {
        let mut likes: HashMap<K, VecDeque<usize>> = HashMap::new();
        for (at, one) in new.iter().enumerate().filter(|(at, _)| !taken[*at]) {
            likes.entry(key(one, with_pid)).or_default().push_back(at);
        }
        for (one, like) in old
            .iter()
            .zip(&mut paired)
            .filter(|(_, like)| like.is_none())
        {
            *like = likes
                .get_mut(&key(one, with_pid))
                .and_then(VecDeque::pop_front);
            if let Some(at) = *like {
                taken[at] = true;
            }
        }
    }
    paired
}

fn changes(before: &ProcessFacts, after: &ProcessFacts) -> ProcessChanges {
    let (old, new) = (before.figures(), after.figures());
    let paired = pair(&old, &new, |figure, _| {
        let row = match figure.row {
            // Its name in the summary since Android 11.
            "TOTAL PSS" => "TOTAL",
            row => row,
        };
        (figure.section, row, figure.column)
    });
    let mut rows = rows(&old, &new, paired);
    // Unpaired values come after the others of their section.
    let mut sections: Vec<&str> = Vec::new();
    for figure in old.iter().chain(&new) {
        if !sections.contains(&figure.section) {
            sections.push(figure.section);
        }
    }
    // Forms of meminfo print different columns. One that the other does not print has not changed.
    let prints = |figures: &[Figure<'_>], row: &Change| {
        let mut section = figures
            .iter()
            .filter(|figure| figure.section == row.section);
        let is_printed = section.clone().any(|figure| figure.column == row.column);
        section.next().is_none() || is_printed
    };
    rows.retain(|row| prints(&old, row) && prints(&new, row));
    rows.sort_by_key(|row| sections.iter().position(|section| *section == row.section));
    let name = after.name.clone().or(before.name.clone());
    ProcessChanges {
        process: name.unwrap_or_default(),
        pids: [before.pid, after.pid],
        restarted: before.pid != after.pid,
        rows,
    }
}

fn change(figure: &Figure<'_>, before: Option<i64>, after: Option<i64>) -> Change {
    Change {
        section: figure.section,
        row: figure.row.to_owned(),
        column: figure.column.to_owned(),
        unit: figure.unit,
        before,
        after,
        growth: after.unwrap_or(0).saturating_sub(before.unwrap_or(0)),
    }
}
