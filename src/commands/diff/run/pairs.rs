//! Pairs of dumps to compare.

use std::path::Path;

use crate::heaps::input::NativeFile;
use crate::heaps::pairs::{PairedHeap, pairs};
use heaptap_analyze::native::diff::Growing;
use heaptap_base::directory;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_model::profile::DumpKind;
use heaptap_model::stacks::{Dump, Facts};
use heaptap_results::findings::{Finding, other_process};
use heaptap_results::manifest::Manifest;

/// Divisor of values.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Per {
    /// No division.
    #[default]
    Whole,
    /// Number of iterations of each side.
    Iterations([f64; 2]),
    /// Seconds: the time between two dumps of one recording, otherwise the time since profiling
    /// began.
    Seconds,
}

/// Heap of a process on both sides, or on one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair<'a> {
    pub(super) before: Option<&'a Dump>,
    pub(super) after: Option<&'a Dump>,
}

/// Pairs to compare, with notes about dumps that were skipped.
pub(super) struct Pairs<'a> {
    pub(super) pairs: Vec<Pair<'a>>,
    pub(super) notes: Vec<Finding>,
}

/// Returns why a dump does not have the figures that are compared; `None` if it has them.
fn lacking(dump: &Dump, growing: Growing) -> Option<&'static str> {
    let view = Some(growing.views().0);
    let has_column = dump.measures.iter().any(|measure| measure.view == view);
    match dump.facts.kind {
        DumpKind::Cumulative | DumpKind::JavaHeap | DumpKind::Difference if has_column => None,
        DumpKind::Cumulative | DumpKind::JavaHeap | DumpKind::Difference => Some(match growing {
            Growing::Held => "it has no column of unreleased bytes",
            Growing::Allocated => "it has no column of allocated bytes",
        }),
        DumpKind::AllocationsOnly if growing == Growing::Allocated => None,
        DumpKind::AllocationsOnly => Some(
            "frees are not recorded, so the unreleased size is \
                                           unknown",
        ),
        DumpKind::AtMaximum => Some(
            "it was recorded with dump-at-max, so its figures are from the time of the largest \
             heap and do not record frees",
        ),
    }
}

/// Returns whether two files are the same file.
pub(super) fn is_same_file(before: &NativeFile, after: &NativeFile) -> bool {
    before.path == after.path || directory::is_same(&before.path, &after.path)
}

/// Returns whether two files are of one recording.
pub(super) fn is_same_recording(before: &NativeFile, after: &NativeFile) -> bool {
    is_same_file(before, after)
        || trace(before).is_some_and(|sha256| Some(sha256) == trace(after))
        || are_profiles_of_a_recording(&before.path, &after.path)
}

/// Returns whether two files are profiles in one recording directory, according to its manifest.
fn are_profiles_of_a_recording(before: &Path, after: &Path) -> bool {
    let directory = directory::of(before);
    if !before.is_file() || !directory::is_same(directory, directory::of(after)) {
        return false;
    }
    // Other directories can have a file of that name.
    let Ok(manifest) = Manifest::read(directory) else {
        return false;
    };
    let is_listed = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str());
        let mut dumps = manifest.dumps.native.iter();
        name.is_some() && dumps.any(|dump| dump.file.as_deref() == name)
    };
    is_listed(before) && is_listed(after)
}

/// Returns the hash of the trace in the recording's manifest.
fn trace(file: &NativeFile) -> Option<&str> {
    let manifest = file.manifest.as_ref()?;
    manifest.trace.as_ref().map(|trace| trace.sha256.as_str())
}

/// Pairs heaps of the same name in processes of the same name.
pub(super) fn of<'a>(
    before: &'a NativeFile,
    after: &'a NativeFile,
    growing: Growing,
) -> Result<Pairs<'a>, Failure> {
    let mut notes = Vec::new();
    let mut refused = None;
    let mut held = |file: &'a NativeFile| -> Vec<&'a Dump> {
        let held = file
            .profile
            .dumps
            .iter()
            .filter(|dump| match lacking(dump, growing) {
                None => true,
                Some(why) => {
                    let name = format!("{} ({})", file.name_of(dump), dump.facts.heap);
                    let message = format!("{name} is not compared: {why}");
                    notes.push(Finding::new("unreleased-unknown", None, message));
                    refused.get_or_insert_with(|| not_held(&name, why));
                    false
                }
            });
        held.collect()
    };
    let (left, right) = (held(before), held(after));
    if left.is_empty() || right.is_empty() {
        return Err(refused.unwrap_or_else(|| nothing(before, after)));
    }
    let of =
        |side: &[&'a Dump]| -> Vec<&'a Facts> { side.iter().map(|dump| &dump.facts).collect() };
    let found = pairs(&of(&left), &of(&right));
    let sides = [(before, &left), (after, &right)];
    for ((file, dumps), ended) in sides.into_iter().zip(&found.ended) {
        notes.extend(ended.iter().map(|&at| {
            let message = format!(
                "not compared: {}, whose run ended before the next one",
                file.describe(dumps[at])
            );
            Finding::new("run-left-out", None, message)
        }));
    }
    let mut pairs = Vec::new();
    for PairedHeap {
        before: one,
        after: other,
    } in found.pairs
    {
        let pair = Pair {
            before: one.map(|at| left[at]),
            after: other.map(|at| right[at]),
        };
        match (pair.before, pair.after) {
            (Some(one), Some(other)) => {
                notes.extend(other_process(&one.facts.process, &other.facts.process));
            }
            (Some(one), None) => {
                let message = format!(
                    "the second input does not have {}; its later size is unknown",
                    before.describe(one)
                );
                let help = "select a process that both inputs have with `-n` or `-p`";
                notes.push(Finding::new("heap-missing", None, message).with_help(help));
            }
            (None, _) => {}
        }
        pairs.push(pair);
    }
    let any = pairs
        .iter()
        .any(|pair| pair.before.is_some() && pair.after.is_some());
    match any {
        true => Ok(Pairs { pairs, notes }),
        false => Err(nothing(before, after)),
    }
}

/// Returns the failure for a dump whose figures are not its unreleased memory.
fn not_held(name: &str, why: &str) -> Failure {
    let message = format!("cannot compare {name}: {why}");
    Failure::new(ErrorClass::Usage, "unreleased-unknown", message).with_help(
        "view it with `heaptap top`, or compare a heap that records frees, such as libc.malloc, \
         without `heaptap record --dump-at-max`",
    )
}

fn nothing(before: &NativeFile, after: &NativeFile) -> Failure {
    let there = |file: &NativeFile| {
        let all = file.profile.dumps.iter().map(|dump| file.describe(dump));
        all.take(8).collect::<Vec<_>>().join(", ")
    };
    let message = format!(
        "{} and {} do not share a heap of the same process",
        before.path.display(),
        after.path.display()
    );
    Failure::new(ErrorClass::Usage, "nothing-in-common", message).with_help(format!(
        "select one dump of each with `-n` or `-p`, and `--heap`: {} versus {}",
        there(before),
        there(after)
    ))
}

impl Pairs<'_> {
    /// Returns whether both sides are the same dump in every pair.
    pub(super) fn is_one_dump(&self) -> bool {
        let is_one = |pair: &Pair<'_>| match (pair.before, pair.after) {
            (Some(before), Some(after)) => before.facts.is_dump(&after.facts),
            _ => false,
        };
        self.pairs.iter().all(is_one)
    }
}

impl Pair<'_> {
    /// Returns whether both dumps are of one run of one process, in this order.
    pub(super) fn is_one_run(&self) -> bool {
        let (Some(before), Some(after)) = (self.before, self.after) else {
            return false;
        };
        let (before, after) = (&before.facts, &after.facts);
        // A profile knows neither time, but its file name has the number of its dump.
        before.pid == after.pid
            && before.start_ns == after.start_ns
            && match (before.time_ns, after.time_ns) {
                (None, None) => before.number <= after.number,
                (before, after) => before <= after,
            }
    }

    /// Returns the pair with its sides swapped.
    pub(super) fn swapped(&self) -> Pair<'_> {
        Pair {
            before: self.after,
            after: self.before,
        }
    }

    /// Returns the divisor of each side.
    pub(super) fn divisors(&self, per: Per, same_run: bool) -> Result<[f64; 2], Failure> {
        match per {
            Per::Whole => Ok([1.0, 1.0]),
            Per::Iterations(iterations) => Ok(iterations),
            Per::Seconds if same_run => {
                let time = |dump: Option<&Dump>| dump.and_then(|dump| dump.facts.time_ns);
                let passed = time(self.before).zip(time(self.after));
                let passed = passed.map(|(before, after)| after.saturating_sub(before));
                let seconds = self.seconds(passed)?;
                Ok([seconds, seconds])
            }
            Per::Seconds => {
                let lasted = |dump: Option<&Dump>| {
                    let facts = dump.map(|dump| &dump.facts)?;
                    Some(facts.time_ns?.saturating_sub(facts.start_ns?))
                };
                let (before, after) = (lasted(self.before), lasted(self.after));
                match (self.before, self.after) {
                    (Some(_), Some(_)) => Ok([self.seconds(before)?, self.seconds(after)?]),
                    (Some(_), None) => self.seconds(before).map(|seconds| [seconds; 2]),
                    _ => self.seconds(after).map(|seconds| [seconds; 2]),
                }
            }
        }
    }

    fn seconds(&self, ns: Option<u64>) -> Result<f64, Failure> {
        match ns {
            Some(ns) if ns > 0 => Ok(ns as f64 / 1e9),
            _ => {
                let dump = self.after.or(self.before);
                let name = |dump: &Dump| match dump.facts.process.as_str() {
                    "" => format!("dump {}", dump.facts.number),
                    process => format!("dump {} of {process}", dump.facts.number),
                };
                let name = dump.map_or_else(String::new, name);
                let message = format!("the recording time of {name} is unknown");
                Err(Failure::new(ErrorClass::Usage, "no-times", message)
                    .with_help("leave out `--per-second`, or divide by iterations with `--rounds`"))
            }
        }
    }
}
