//! Grouping of dumps: of one run of one process, or of several recordings of one program; only
//! labeled dumps if there are enough, without warm-up, up to the first missing data.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::error::NativeLeaksError;
use super::inputs::{Inputs, NativeLeaksRequest, Opened};
use crate::heaps::NOT_IN_ORDER;
use crate::heaps::pairs::ended_before;
use heaptap_analyze::native::growth::series::{continue_counters, continues};
use heaptap_analyze::sampling::Interval;
use heaptap_base::units::{HumanDuration, counted};
use heaptap_model::names::could_be_app;
use heaptap_model::profile::{DumpKind, known_heap};
use heaptap_model::stacks::{Dump, Facts, View};

/// Dumps of one process.
#[derive(Debug)]
pub(super) struct Series<'a> {
    /// Process name; empty if unknown.
    pub process: String,
    /// Process ID of its last dump; 0 if unknown.
    pub pid: u64,
    /// Heaps with two dumps at least.
    pub heaps: Vec<Heap<'a>>,
    /// Notes about the series.
    pub notes: Vec<String>,
    /// Dumps were left out because of missing data.
    pub incomplete: bool,
    /// True if another run is left out because of missing data.
    pub is_run_left_out: bool,
}

/// Dumps of one heap, oldest first; at least two.
#[derive(Debug)]
pub(super) struct Heap<'a> {
    pub name: String,
    pub dumps: Vec<Member<'a>>,
    /// True if all are of one recording of one process.
    pub paired: bool,
}

/// A dump of a series.
#[derive(Debug)]
pub(super) struct Member<'a> {
    /// Index of its file.
    file: usize,
    pub name: String,
    /// Name without the file, if there is only one.
    pub brief: String,
    /// Differs from the input's if its counters continue others.
    pub dump: Cow<'a, Dump>,
    pub interval: Interval,
}

/// Number of dumps from which the first is excluded as warm-up.
const ENOUGH_FOR_WARMUP: usize = 6;
/// Number of labeled dumps that form a series.
const ENOUGH_LABELS: usize = 3;
/// API levels whose Perfetto can be v13 to v16, with the late cutoff of true sizes.
const LATE_CUTOFF_SDKS: std::ops::RangeInclusive<u64> = 31..=32;

/// Returns the series of all inputs: one for each run of each process.
pub(super) fn series_of<'a>(
    inputs: &'a Inputs<'_>,
    request: &NativeLeaksRequest,
) -> Result<Vec<Series<'a>>, NativeLeaksError> {
    let mut refused = Vec::new();
    let mut lives: BTreeMap<Life, BTreeMap<&str, Vec<&'a Opened<'_>>>> = BTreeMap::new();
    let mut others: BTreeMap<Life, BTreeSet<(usize, u64)>> = BTreeMap::new();
    let last = last_dumps(inputs);
    for opened in &inputs.dumps {
        let facts = &opened.dump.facts;
        if let Some(why) = nothing_held(&opened.dump) {
            refused.push((opened, why));
            continue;
        }
        let life = Life::new(inputs, opened);
        // A second process of that name in a recording is not an iteration of the first.
        if life.pid == 0
            && last
                .get(&place(opened))
                .is_some_and(|l| l.facts.pid != facts.pid)
        {
            let left_out = (opened.file, facts.pid);
            others.entry(life).or_default().insert(left_out);
            continue;
        }
        let heaps = lives.entry(life).or_default();
        heaps.entry(&facts.heap).or_default().push(opened);
    }
    if lives.is_empty()
        && let Some((opened, (why, help))) = refused.first()
    {
        return Err(NativeLeaksError::NothingHeld {
            what: format!("{}: {why}", opened.name),
            help,
        });
    }
    let mut all = Vec::new();
    let mut short = Vec::new();
    let mut cut_short = None;
    let mut too_long = None;
    let namesakes = namesakes(&lives);
    for (life, heaps) in lives {
        let left_out = others.remove(&life);
        let Life { process, pid, .. } = life;
        let mut series = Series {
            pid,
            heaps: Vec::new(),
            notes: left_out.map_or_else(Vec::new, |pids| other_processes(inputs, &pids)),
            incomplete: false,
            is_run_left_out: false,
            process,
        };
        // Each of several inputs, and each named dump, was selected.
        let is_default = !request.named && inputs.files.len() == 1;
        let labelled = is_default && labelled_only(&mut series, &heaps);
        let mut rounds = None;
        for (name, dumps) in heaps {
            let chosen: Vec<&'a Opened<'_>> = dumps
                .into_iter()
                .filter(|opened| !labelled || opened.dump.facts.label.is_some())
                .collect();
            let mut chosen = in_order(chosen);
            if series.heaps.is_empty() {
                series.notes.extend(disorder(&chosen));
            }
            let is_too_close = !request.named && !labelled && is_final_too_close(&chosen);
            let too_close = chosen.pop_if(|_| is_too_close);
            if rounds.is_none() {
                rounds = between(&chosen);
                series.notes.extend(rounds.clone());
            }
            series.notes.extend(too_close.map(|last| {
                format!(
                    "{} is left out: it came less than half an iteration after the dump before it",
                    last.name
                )
            }));
            let complete = complete(&chosen);
            if complete < chosen.len() {
                series.incomplete = true;
                let left_out = &chosen[complete];
                series.notes.push(format!(
                    "{} is {}: data are missing from {} on ({})",
                    name,
                    match complete.checked_sub(1) {
                        None => "not compared".to_owned(),
                        Some(last) => format!("compared up to {}", chosen[last].name),
                    },
                    left_out.name,
                    what_is_missing(&left_out.dump.facts),
                ));
            }
            let kept = &chosen[..complete];
            let warmup = request
                .warmup
                .unwrap_or(usize::from(kept.len() >= ENOUGH_FOR_WARMUP));
            let warm = kept.len().saturating_sub(warmup.min(kept.len()));
            let members = members(inputs, &kept[kept.len() - warm..], request)?;
            if members.len() < 2 {
                if complete == chosen.len() && kept.len() >= 2 && warm < 2 {
                    too_long.get_or_insert((kept.len() - warm, kept.len()));
                }
                if complete < chosen.len() {
                    let why = what_is_missing(&chosen[complete].dump.facts);
                    cut_short = Some((complete, chosen.len(), warm, why));
                }
                short.push(format!(
                    "{} of {name}",
                    counted(members.len() as u64, "dump", "dumps")
                ));
                continue;
            }
            if warm < kept.len() && series.heaps.is_empty() {
                series.notes.push(match kept.len() - warm {
                    1 => format!("{} is excluded as warm-up (--warmup)", kept[0].name),
                    n => format!("the first {n} dumps are excluded as warm-up (--warmup)"),
                });
            }
            let mut heap = Heap {
                name: name.to_owned(),
                dumps: members,
                paired: false,
            };
            heap.pair(inputs);
            series.pid = heap.dumps.last().map_or(pid, |last| last.dump.facts.pid);
            series.heaps.push(heap);
        }
        series.remark(inputs, &refused);
        if let Some(namesakes) = namesakes.get(&series.process).filter(|_| series.pid != 0) {
            series.notes.push(match namesakes {
                Namesakes::Restarts => format!(
                    "{} restarted during the recording; these are the dumps of its run with pid {}",
                    series.process, series.pid
                ),
                Namesakes::SideBySide => format!(
                    "several processes are named {}; these are the dumps of pid {}",
                    series.process, series.pid
                ),
            });
        }
        if series.heaps.is_empty() {
            continue;
        }
        all.push(series);
    }
    if all.is_empty() {
        return Err(match (cut_short, too_long) {
            (_, Some((left_out, of))) => NativeLeaksError::WarmupTooLong { left_out, of },
            (Some((complete, of, left, why)), None) => NativeLeaksError::Incomplete {
                complete,
                of,
                left,
                why,
            },
            (None, None) => NativeLeaksError::TooFewDumps {
                there: short.join(", "),
                named: request.named,
                has_java: false,
                missing: None,
            },
        });
    }
    // Growth in a run that was too short to compare is unknown: add a note.
    if !short.is_empty()
        && let Some(series) = all.first_mut()
    {
        series.notes.push(format!(
            "not compared, because comparison needs two dumps: {}",
            short.join(", ")
        ));
        series.is_run_left_out = cut_short.is_some();
    }
    Ok(all)
}

/// Identity of dumps that are compared with one another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Life {
    process: String,
    /// 0 if a name is one program in several files.
    pid: u64,
    /// The file, if the process is only identified within it.
    file: Option<usize>,
}

impl Life {
    fn new(inputs: &Inputs<'_>, opened: &Opened<'_>) -> Life {
        let facts = &opened.dump.facts;
        let is_alone = inputs.files.len() == 1;
        // In several files, a name is one program. Without a name, the ID only identifies the
        // process within its recording, which can consist of several pprof files.
        let has_name = !facts.process.is_empty();
        let is_trace = inputs.files[opened.file].is_trace;
        Life {
            process: facts.process.clone(),
            pid: if is_alone || !has_name { facts.pid } else { 0 },
            file: (!is_alone && !has_name && is_trace).then_some(opened.file),
        }
    }
}

/// File, process and heap of a dump.
fn place<'a>(opened: &'a Opened<'_>) -> (usize, &'a str, &'a str) {
    let facts = &opened.dump.facts;
    let heap = known_heap(&facts.heap, facts.flags);
    (opened.file, &facts.process, heap)
}

/// Returns the last dump of each file, process and heap.
fn last_dumps<'a>(inputs: &'a Inputs<'_>) -> BTreeMap<(usize, &'a str, &'a str), &'a Dump> {
    let mut last: BTreeMap<_, &'a Dump> = BTreeMap::new();
    let when = |dump: &Dump| (dump.facts.time_ns, dump.facts.number);
    for opened in &inputs.dumps {
        let known = last.entry(place(opened)).or_insert(&opened.dump);
        if when(&opened.dump) > when(known) {
            *known = &opened.dump;
        }
    }
    last
}

/// Returns notes about processes left out in favor of another one of the same name and recording.
fn other_processes(inputs: &Inputs<'_>, pids: &BTreeSet<(usize, u64)>) -> Vec<String> {
    let mut by_file: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (file, pid) in pids {
        by_file.entry(*file).or_default().push(pid.to_string());
    }
    let note = |(file, pids): (usize, Vec<String>)| {
        format!(
            "{} has several processes of that name; the one dumped last is compared, and pid {} is \
             left out",
            inputs.files[file].name,
            pids.join(", ")
        )
    };
    by_file.into_iter().map(note).collect()
}

/// Relation of several processes of one name in one recording.
enum Namesakes {
    /// Each ended before the next one began.
    Restarts,
    /// Some ran at one time, such as those of several users.
    SideBySide,
}

/// Returns the names of several processes.
fn namesakes(
    lives: &BTreeMap<Life, BTreeMap<&str, Vec<&Opened<'_>>>>,
) -> BTreeMap<String, Namesakes> {
    let mut by_name: BTreeMap<&str, Vec<&Facts>> = BTreeMap::new();
    for (life, heaps) in lives.iter().filter(|(life, _)| !life.process.is_empty()) {
        let dumps = heaps.values().flatten().map(|opened| &opened.dump.facts);
        let last = dumps.max_by_key(|facts| facts.time_ns);
        by_name.entry(&life.process).or_default().extend(last);
    }
    by_name.retain(|_, runs| runs.len() > 1);
    let of = |(name, mut runs): (&str, Vec<&Facts>)| {
        runs.sort_by_key(|run| run.time_ns);
        let follows = |runs: &[&Facts]| ended_before(runs[0], runs[1]);
        let relation = match runs.windows(2).all(follows) {
            true => Namesakes::Restarts,
            false => Namesakes::SideBySide,
        };
        (name.to_owned(), relation)
    };
    by_name.into_iter().map(of).collect()
}

/// Returns whether only labeled dumps are compared.
fn labelled_only(series: &mut Series<'_>, heaps: &BTreeMap<&str, Vec<&Opened<'_>>>) -> bool {
    let labelled = |dumps: &Vec<&Opened<'_>>| {
        let labels = dumps
            .iter()
            .filter(|opened| opened.dump.facts.label.is_some());
        labels.count()
    };
    let most = heaps.values().map(labelled).max().unwrap_or(0);
    let all = heaps.values().map(Vec::len).max().unwrap_or(0);
    if most >= ENOUGH_LABELS {
        if most < all {
            series.notes.push(format!(
                "{} left out; select others with @N",
                counted(
                    (all - most) as u64,
                    "dump without a label is",
                    "dumps without a label are"
                )
            ));
        }
        return true;
    }
    if most > 0 && most < all && all >= ENOUGH_LABELS {
        series.notes.push(format!(
            "{} too few, so all {all} dumps are compared; iterations might differ in length",
            counted(most as u64, "labeled dump is", "labeled dumps are")
        ));
    }
    false
}

/// Returns a note about the meaning of an iteration in a recording without labels.
fn between(dumps: &[&Opened<'_>]) -> Option<String> {
    let times = times(dumps)?;
    let (first, last) = (times.iter().min()?, times.iter().max()?);
    let rounds = u32::try_from(dumps.len()).ok()?.checked_sub(1)?;
    let has_labels = dumps.iter().any(|opened| opened.dump.facts.label.is_some());
    if !are_of_one_recording(dumps) || has_labels || dumps.len() < ENOUGH_LABELS || last == first {
        return None;
    }
    let round = Duration::from_nanos(last - first) / rounds;
    Some(format!(
        "no dump has a label, so an iteration is the time from one dump to the next, {} on average",
        HumanDuration(round)
    ))
}

/// Returns whether the last dump, which the end of the recording caused, is complete and follows the
/// dump before it in less than half the usual time. It is not the end of an iteration then.
fn is_final_too_close(dumps: &[&Opened<'_>]) -> bool {
    let is_series = dumps.len() > ENOUGH_LABELS && are_of_one_recording(dumps);
    let Some(times) = times(dumps).filter(|_| is_series && complete(dumps) == dumps.len()) else {
        return false;
    };
    let mut steps: Vec<u64> = times
        .windows(2)
        .map(|two| two[1].saturating_sub(two[0]))
        .collect();
    let last = steps.pop().unwrap_or_default();
    steps.sort_unstable();
    last < steps[steps.len() / 2] / 2
}

/// Returns a note if several files are not in the order of their times.
fn disorder(dumps: &[&Opened<'_>]) -> Option<String> {
    let falls = !times(dumps)?.is_sorted();
    falls.then(|| NOT_IN_ORDER.to_owned())
}

/// Sorts the dumps of one recording. Those of several are in the order of the user.
fn in_order<'a, 'b>(mut dumps: Vec<&'a Opened<'b>>) -> Vec<&'a Opened<'b>> {
    let facts = |opened: &&'a Opened<'b>| &opened.dump.facts;
    if are_of_one_file(&dumps) {
        dumps.sort_by_key(|opened| (facts(opened).time_ns, facts(opened).number));
    } else if are_of_one_recording(&dumps) {
        dumps.sort_by_key(|opened| facts(opened).number);
    }
    dumps
}

fn are_of_one_file(dumps: &[&Opened<'_>]) -> bool {
    dumps.windows(2).all(|two| two[0].file == two[1].file)
}

/// Returns whether dumps are of one file, or of files such as the pprofs of a recording: of one known
/// process, each with a number of its own.
fn are_of_one_recording(dumps: &[&Opened<'_>]) -> bool {
    let facts = || dumps.iter().map(|opened| &opened.dump.facts);
    let pids: BTreeSet<u64> = facts().map(|facts| facts.pid).collect();
    let numbers: BTreeSet<u32> = facts().map(|facts| facts.number).collect();
    are_of_one_file(dumps) || pids.len() == 1 && !pids.contains(&0) && numbers.len() == dumps.len()
}

/// Returns the times of dumps in ns on one clock: the trace's for one file, the wall clock for several.
/// `None` if one is unknown.
fn times(dumps: &[&Opened<'_>]) -> Option<Vec<u64>> {
    let is_one = are_of_one_file(dumps);
    let time = |opened: &&Opened<'_>| match is_one {
        true => opened.dump.facts.time_ns,
        false => opened.dump.facts.wall_time_ns,
    };
    dumps.iter().map(time).collect()
}

/// Returns the number of dumps before the first with missing data.
fn complete(dumps: &[&Opened<'_>]) -> usize {
    dumps
        .iter()
        .position(|opened| !what_is_missing(&opened.dump.facts).is_empty())
        .unwrap_or(dumps.len())
}

/// Returns why data of a dump are missing; empty if they are complete.
fn what_is_missing(facts: &Facts) -> &'static str {
    let flags = &facts.flags;
    match () {
        () if flags.buffer_overran => "the buffer overran",
        () if flags.buffer_corrupted => "the shared buffer was corrupted",
        () if flags.hit_guardrail => "heapprofd reached a limit",
        () if flags.rejected_concurrent => "another session was profiling it",
        () if flags.client_error != 0 => "the process stopped being profiled",
        () if flags.disconnected => "the process had disconnected",
        () if facts.unfinished => "packets of it are missing",
        () => "",
    }
}

/// Returns why a dump has no unreleased bytes, and the remedy.
fn nothing_held(dump: &Dump) -> Option<(&'static str, &'static str)> {
    match dump.facts.kind {
        DumpKind::AllocationsOnly => Some((
            "it counts only allocations; frees of this heap are unknown",
            "dump the Java heap with `heaptap dump -n NAME` several times, then run `heaptap \
             leaks` on the directory",
        )),
        DumpKind::AtMaximum => Some((
            "it shows the heap at its maximum, so differences are meaningless",
            "record again, without `heaptap record --dump-at-max`",
        )),
        DumpKind::JavaHeap => Some((
            "it contains Java objects, merged by class",
            "run `heaptap leaks` on the recording or HPROF itself",
        )),
        DumpKind::Difference => Some((
            "it is a difference of two dumps",
            "run `heaptap leaks` on the recording or the profiles themselves",
        )),
        DumpKind::Cumulative if dump.column(View::Space).is_none() => Some((
            "it has no unreleased bytes (space, inuse_space)",
            "use profiles of unreleased memory, such as Go's heap profile",
        )),
        DumpKind::Cumulative => None,
    }
}

fn members<'a>(
    inputs: &Inputs<'_>,
    chosen: &[&'a Opened<'_>],
    request: &NativeLeaksRequest,
) -> Result<Vec<Member<'a>>, NativeLeaksError> {
    let member = |opened: &&'a Opened<'_>| {
        let interval =
            Interval::from_facts(&opened.dump.facts).or_else(|| Interval::new(request.interval));
        let Some(interval) = interval else {
            return Err(NativeLeaksError::NoInterval {
                name: opened.name.clone(),
            });
        };
        let is_late = LATE_CUTOFF_SDKS.contains(&inputs.files[opened.file].sdk);
        Ok(Member {
            file: opened.file,
            name: opened.name.clone(),
            brief: {
                let input = &inputs.files[opened.file].name;
                let which = opened.name.strip_prefix(input.as_str());
                match which.filter(|which| inputs.files.len() == 1 && !which.is_empty()) {
                    Some(which) => which.to_owned(),
                    None => opened.name.clone(),
                }
            },
            dump: Cow::Borrowed(&*opened.dump),
            interval: match is_late {
                true => interval.with_late_cutoff(),
                false => interval,
            },
        })
    };
    chosen.iter().map(member).collect()
}

impl Heap<'_> {
    /// Determines whether the dumps are of one recording; makes their counters continuous in that
    /// case.
    fn pair(&mut self, inputs: &Inputs<'_>) {
        let is_one = |two: &[Member<'_>]| match two[0].file == two[1].file {
            true => two[0].dump.facts.pid == two[1].dump.facts.pid,
            // A recording in several files consists of pprofs: a second trace is a second
            // recording.
            false => {
                let is_trace = |member: &Member<'_>| inputs.files[member.file].is_trace;
                !two.iter().any(is_trace) && continues(&two[0].dump, &two[1].dump)
            }
        };
        self.paired = self.dumps.windows(2).all(is_one);
        // Dumps of a trace were read with continuous counters.
        let has_pprofs = self.dumps.iter().any(|m| !inputs.files[m.file].is_trace);
        if self.paired && has_pprofs {
            let mut dumps: Vec<Dump> = self
                .dumps
                .iter_mut()
                .map(|member| std::mem::take(&mut member.dump).into_owned())
                .collect();
            continue_counters(&mut dumps);
            for (member, dump) in self.dumps.iter_mut().zip(dumps) {
                member.dump = Cow::Owned(dump);
            }
        }
    }
}

impl Series<'_> {
    /// Adds notes about the reliability of the values.
    fn remark(&mut self, inputs: &Inputs<'_>, refused: &[(&Opened<'_>, (&str, &str))]) {
        let of_this = |opened: &&(&Opened<'_>, (&str, &str))| {
            let facts = &opened.0.dump.facts;
            facts.process == self.process && (facts.pid == self.pid || self.pid == 0)
        };
        if let Some((opened, (why, _))) = refused.iter().find(of_this) {
            let heap = &opened.dump.facts.heap;
            self.notes.push(format!("{heap} is left out: {why}"));
        }
        if self.heaps.iter().any(|heap| !heap.paired) {
            self.notes.push(
                "the dumps come from several files, so surviving allocations do not cancel out, \
                 and intervals do not include differences between runs"
                    .to_owned(),
            );
            return;
        }
        let is_trace = inputs.files.first().is_some_and(|file| file.is_trace);
        let members = self.heaps.iter().flat_map(|heap| &heap.dumps);
        let attached: Vec<&str> = members
            .map(|member| &member.dump.facts)
            .filter(|facts| is_trace && !facts.flags.from_startup)
            .map(|facts| facts.process.as_str())
            .collect();
        if !attached.is_empty() {
            let how = match attached.into_iter().any(could_be_app) {
                true => " With `record --launch`, it comes earlier.",
                false => "",
            };
            self.notes.push(format!(
                "profiling began after the process started, so earlier allocations are missing. \
                 What the process allocates once and keeps, such as a cache, looks like growth if \
                 it comes after the first dump.{how}"
            ));
        }
    }
}

#[cfg(test)]
mod tests;
