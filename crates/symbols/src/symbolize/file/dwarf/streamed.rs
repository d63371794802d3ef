//! Lookup in the units of a stream. A unit is read without the others, so this is given up if a unit
//! refers to another one, or if only all units together tell which of them an address belongs to.

use super::index::{Listed, Piece, disjoint, unlisted};
use super::names::{Reader, Tables};
use super::search::{Run, Worker};
use super::stream::{RawUnit, Stream};
use super::tasks::{Task, assign, in_parallel, tasks};
use super::unit::Parts;
use super::units::{File, Roots, Units};
use crate::symbolize::file::answers::Answers;
use std::collections::HashMap;
use std::num::NonZero;

/// What `.debug_aranges` tells before the units are read.
pub(super) struct Plan {
    listed: Listed,
    /// Addresses of each listed unit.
    tasks: HashMap<usize, Task>,
}

impl Plan {
    /// Makes a plan; `None` if `.debug_aranges` is damaged.
    pub fn new(aranges: &[u8], addresses: &[u64]) -> Option<Plan> {
        let listed = Listed::read(aranges).ok()?;
        let pieces = disjoint(listed.pieces.clone());
        let tasks = assign(&pieces, addresses, |_| true);
        let tasks = tasks.into_iter();
        Some(Plan {
            listed,
            tasks: tasks.filter_map(|task| Some((task.unit?, task))).collect(),
        })
    }

    /// Returns whether the unit that starts there is read.
    pub fn needs(&self, start: usize, has_code: bool) -> bool {
        match self.listed.units.contains(&start) {
            true => self.tasks.contains_key(&start),
            false => has_code,
        }
    }
}

/// Results of one thread.
#[derive(Default)]
struct Found {
    answers: Answers,
    /// Pieces of units that are not listed.
    pieces: Vec<Piece>,
    /// Index of each address that was looked up, with its unit.
    asked: Vec<(usize, usize)>,
}

/// Maximum number of units in which an address is looked up, on average. Units seldom overlap.
const MAX_PER_ADDRESS: usize = 4;

/// Looks up the addresses in the units of the stream. `None` if that is not possible.
pub(super) fn lookup(
    stream: Stream<'_>,
    plan: &Plan,
    parts: &Parts<'_>,
    run: &Run<'_, '_>,
    threads: NonZero<usize>,
) -> Option<Vec<Answers>> {
    let found = in_parallel(threads.get(), threads, |_| {
        let mut thread = Thread::new(plan, parts, run);
        while let Some(unit) = stream.next() {
            if thread.read(unit).is_none() {
                stream.give_up();
            }
        }
        thread.finish()
    });
    let units = stream.into_units()?;
    choose(&units, plan, found, parts, run)
}

/// Thread of a lookup.
struct Thread<'run, 'data, 'split> {
    plan: &'run Plan,
    parts: &'run Parts<'data>,
    run: &'run Run<'run, 'split>,
    worker: Worker<'run, 'split>,
    tables: Tables,
    roots: Roots,
    found: Found,
}

impl<'run, 'data, 'split> Thread<'run, 'data, 'split> {
    fn new(
        plan: &'run Plan,
        parts: &'run Parts<'data>,
        run: &'run Run<'run, 'split>,
    ) -> Thread<'run, 'data, 'split> {
        Thread {
            plan,
            parts,
            run,
            worker: Worker::new(run),
            tables: Tables::default(),
            roots: Roots::new(),
            found: Found::default(),
        }
    }

    /// Looks up the addresses of a unit. `None` if that needs other units.
    fn read(&mut self, unit: RawUnit) -> Option<()> {
        let RawUnit { start, bytes } = unit;
        let file = File {
            parts: Parts {
                info: &bytes,
                info_start: start,
                ..self.parts.clone()
            },
            units: Units::of_one(start..start + bytes.len()),
        };
        let run = self.run;
        let mut reader = Reader::new(&file, None, run.work.share());
        let own;
        let task = match self.plan.tasks.get(&start) {
            Some(task) => task,
            None => {
                let pieces = &mut self.found.pieces;
                let before = pieces.len();
                unlisted(&file, start, &mut self.roots, &reader.work, pieces).ok()?;
                own = task_in(&pieces[before..], start, run.addresses);
                &own
            }
        };
        if task.addresses.is_empty() {
            return Some(());
        }
        let asked = task.addresses.iter().map(|at| (*at, start));
        self.found.asked.extend(asked);
        if self.found.asked.len() > MAX_PER_ADDRESS * run.addresses.len() {
            return None;
        }
        reader = reader.with_tables(std::mem::take(&mut self.tables));
        let task = || self.worker.task(task, &file.parts, &mut reader);
        if run.notes.catch_panic(".debug_info", task).is_none() {
            self.worker.answers.abandon();
        }
        let is_complete = !reader.is_incomplete;
        self.tables = reader.into_tables();
        is_complete.then_some(())
    }

    fn finish(mut self) -> Found {
        self.found.answers = self.worker.answers;
        self.found
    }
}

fn task_in(pieces: &[Piece], unit: usize, addresses: &[u64]) -> Task {
    let mut indexes = Vec::new();
    for piece in pieces {
        let first = addresses.partition_point(|address| *address < piece.low);
        let inside = addresses[first..].iter().enumerate();
        let inside = inside.take_while(|(_, address)| **address < piece.high);
        indexes.extend(inside.map(|(at, _)| first + at));
    }
    indexes.sort_unstable();
    indexes.dedup();
    Task {
        unit: Some(unit),
        addresses: indexes,
    }
}

/// Keeps, of the answers for each address, those of the unit that it belongs to. `None` if it was
/// not looked up in that unit.
fn choose(
    units: &Units,
    plan: &Plan,
    found: Vec<Found>,
    parts: &Parts<'_>,
    run: &Run<'_, '_>,
) -> Option<Vec<Answers>> {
    let mut pieces = plan.listed.pieces.clone();
    pieces.extend(found.iter().flat_map(|found| &found.pieces));
    let tasks = tasks(units, &disjoint(pieces), run.addresses);
    let mut asked: Vec<(usize, usize)> = Vec::new();
    asked.extend(found.iter().flat_map(|found| &found.asked));
    asked.sort_unstable();
    let mut unit_of = vec![None; run.addresses.len()];
    let mut count = 0;
    for task in &tasks {
        if let Some(unit) = task.unit {
            for at in &task.addresses {
                asked.binary_search(&(*at, unit)).ok()?;
                unit_of[*at] = Some(unit);
                count += 1;
            }
        }
    }
    let mut answers: Vec<Answers> = found.into_iter().map(|found| found.answers).collect();
    if asked.len() > count {
        for answers in &mut answers {
            answers.keep(|at, unit| unit_of[at] == unit);
        }
    }
    let file = File {
        parts: parts.clone(),
        units: Units::default(),
    };
    let mut worker = Worker::new(run);
    let mut reader = Reader::new(&file, None, run.work.share());
    for task in tasks.iter().filter(|task| task.unit.is_none()) {
        worker.task(task, parts, &mut reader);
    }
    answers.push(worker.answers);
    Some(answers)
}
