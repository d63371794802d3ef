//! Opening an input and projecting the selected dumps. The list of dumps is known only after
//! reading all of them; others are dropped immediately.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::choice::{DumpScope, choose, mark_defaults, open_ones, unmatched};
use super::error::InputError;
use super::native::{ListedDump, NativeFile, joined};
use super::options::LookOptions;
use super::pprofs;
use super::traces::{self, LookTrace};
use crate::heaps::java::{OpenedJava, ProgressReporter, ReadTrace, manifest_of};
use crate::heaps::selector::DumpSelector;
use crate::heaps::trace_findings::{self, CONSEQUENCES};
use crate::names::coverage::{Coverage, Tally};
use heaptap_analyze::native::sampled;
use heaptap_base::directory::RAW_TRACE;
use heaptap_base::error::{Classified, ErrorClass};
use heaptap_input::{HeapSource, HprofInput, ImportError, PprofInput, STDIN, STDIN_NAME};
use heaptap_model::profile::{DumpNumbers, HeapDump, LastDump, is_heap};
use heaptap_model::stacks::{Facts, ProjectOptions, Projector, StackProfile, View};
use heaptap_results::deduped::Deduped;
use heaptap_results::findings::{self, Finding};
use heaptap_results::manifest::{Manifest, Totals, Warning};
use heaptap_results::{recorded, timeline};
use perfetto_heap::MemoryWanted;

/// Contents of an input.
pub enum NativeSource {
    /// Traces of native heaps, Java heaps or both; several in a bundle.
    Traces(Vec<LookTrace>, Option<Box<Manifest>>),
    /// pprofs, each a dump.
    Pprofs(Vec<PprofInput>, Option<Box<Manifest>>),
    /// Only Java heaps, as HPROFs, at least one.
    Hprofs(Vec<HprofInput>),
}

#[derive(Debug)]
pub enum OpenedInput {
    /// Native heaps, and the Java heaps of the same input, if any.
    Native(Box<NativeFile>, OpenedJava),
    /// Only Java heaps.
    Java(OpenedJava),
}

/// Opens an input and its symbols, for callers that need more than stacks. `-` is standard input.
///
/// # Errors
/// Returns an error if it has no supported content, or cannot be read.
pub fn source(
    path: &Path,
    options: &LookOptions,
    progress: &ProgressReporter,
) -> Result<NativeSource, InputError> {
    if path == Path::new(STDIN) {
        return source_of_stream(io::stdin().lock(), STDIN_NAME, options, progress);
    }
    progress.begin(&format!("opening {}", path.display()));
    // Read the manifest first, to report errors in it before lengthy work.
    let manifest = manifest_of(path)?;
    let mut found = heaptap_input::open_heaps(path).map_err(|error| {
        let ended = early_end(manifest.as_ref());
        let ended = ended.filter(|_| matches!(error, ImportError::NotATrace { .. }));
        match ended {
            Some(ended) => InputError::Broken {
                name: path.display().to_string(),
                why: Box::new(as_noted(error.facts().kind, ended)),
            },
            None => InputError::Import(error),
        }
    })?;
    if let HeapSource::Traces(traces) = &mut found {
        recorded::compare(path, traces);
    }
    of_found(found, manifest, options, progress)
}

/// Opens a stream as [`source`] does a file; `name` is used in messages.
///
/// # Errors
/// As [`source`].
pub fn source_of_stream(
    stream: impl Read,
    name: &str,
    options: &LookOptions,
    progress: &ProgressReporter,
) -> Result<NativeSource, InputError> {
    progress.begin(&format!("opening {name}"));
    let found = heaptap_input::open_heaps_stream(stream, name)?;
    of_found(found, None, options, progress)
}

fn of_found(
    found: HeapSource,
    manifest: Option<Manifest>,
    options: &LookOptions,
    progress: &ProgressReporter,
) -> Result<NativeSource, InputError> {
    match found {
        HeapSource::Traces(found) => {
            let opened = traces::open_all(found, options, progress)?;
            Ok(NativeSource::Traces(opened, manifest.map(Box::new)))
        }
        HeapSource::Pprofs(found) => Ok(NativeSource::Pprofs(found, manifest.map(Box::new))),
        HeapSource::Hprofs(found) => Ok(NativeSource::Hprofs(found)),
    }
}

/// Returns a finding about a heap in traces that began at different times. The trace of a recording and
/// its copy with symbols begin at the same time.
fn several_recordings(starts: &BTreeMap<(u64, String), BTreeSet<u64>>) -> Option<Finding> {
    let most = starts.values().map(BTreeSet::len).max()?;
    (most > 1).then(|| {
        let message = format!(
            "the archive has a heap in {most} recordings; its dumps are numbered as if they were of one"
        );
        Finding::new(findings::SEVERAL_RECORDINGS, None, message)
            .with_help("unpack it, and read each trace by itself")
    })
}

/// Opens an input and projects the selected dumps.
///
/// # Errors
/// Returns an error if it contains no heap, does not have the selected ones, or cannot be read.
pub fn open(
    path: &Path,
    wanted: &DumpScope,
    options: &LookOptions,
    progress: &ProgressReporter,
) -> Result<OpenedInput, InputError> {
    let name = path.display().to_string();
    let (mut opened, manifest) = match source(path, options, progress)? {
        NativeSource::Traces(opened, manifest) => (opened, manifest),
        NativeSource::Pprofs(found, manifest) => {
            progress.begin("reading profiles");
            let file = pprofs::open(&name, &found, manifest.as_deref(), wanted, options)?;
            return Ok(native_of(
                path,
                file,
                manifest,
                Vec::new(),
                hprofs_beside(path),
            ));
        }
        NativeSource::Hprofs(found) => return Ok(OpenedInput::Java(OpenedJava::Hprofs(found))),
    };
    let java_dumps: usize = opened.iter().map(|t| t.trace.java_dumps().len()).sum();
    let java_dumps = java_dumps + hprofs_beside(path);
    let mut reading = Reading::new(manifest.as_deref(), wanted, options);
    let has_memory = || opened.iter().any(|trace| trace.trace.has_memory());
    reading.errors |= options.memory && path.is_dir() && has_memory();
    // Tables of several traces are joined as trees.
    reading.list_from = options.list_from.filter(|_| opened.len() == 1);
    progress.begin("reading dumps");
    // By process and heap.
    let mut starts: BTreeMap<_, BTreeSet<u64>> = BTreeMap::new();
    for trace in &mut opened {
        let before = reading.listed.len();
        reading.read(trace)?;
        for facts in reading.listed[before..].iter().map(|dump| &dump.facts) {
            let of_heap = starts.entry((facts.pid, facts.heap.clone()));
            of_heap
                .or_default()
                .extend(trace.trace.recording().started_ns);
        }
    }
    reading.findings.extend(several_recordings(&starts));
    let whole = profiles_of_damaged(path, manifest.as_deref(), &opened, &reading.listed)?;
    if !whole.is_empty() {
        progress.begin("reading profiles");
        let mut file = pprofs::open(&name, &whole, manifest.as_deref(), wanted, options)?;
        let damaged = reading.findings.into_iter();
        for mut finding in damaged.filter(|found| found.kind == trace_findings::INPUT_DAMAGED) {
            finding
                .message
                .push_str("; these values are from the *.pb.gz files");
            file.findings.push(finding);
        }
        return Ok(native_of(path, file, manifest, opened, java_dumps));
    }
    if reading.listed.is_empty() {
        let tracked = tracked(path, manifest.as_deref())?;
        if !tracked.is_empty() {
            progress.begin("reading profiles");
            let file = pprofs::open(&name, &tracked, manifest.as_deref(), wanted, options)?;
            return Ok(native_of(path, file, manifest, opened, java_dumps));
        }
        if java_dumps > 0 {
            return Ok(OpenedInput::Java(java_of(opened, java_dumps)));
        }
        let mut findings = reading.findings.into_iter();
        if let Some(why) = findings.find(|found| found.class == Some(ErrorClass::BadInput)) {
            let ended = early_end(manifest.as_deref()).filter(|_| why.kind == findings::TRACE_CUT);
            let why = ended.map_or(why, |ended| as_noted(findings::TRACE_CUT, ended));
            let why = Box::new(why);
            return Err(InputError::Broken { name, why });
        }
        let guess = || {
            opened.iter().find_map(|trace| {
                let (recording, health) = (trace.trace.recording(), trace.trace.health());
                trace_findings::why_empty(recording, health, false)
            })
        };
        let ended = early_end(manifest.as_deref());
        let why = ended.map(|ended| as_noted(findings::TRACE_CUT, ended));
        let why = why.or_else(guess);
        return Err(InputError::no_heap(name, why));
    }
    mark_defaults(&mut reading.listed);
    let chosen = choose(&name, &reading.listed, manifest.as_deref(), options, wanted)?;
    let open = open_ones(&reading.listed, &chosen, wanted);
    reading.findings.extend(open);
    let unmatched = unmatched(&reading.listed, options);
    reading.findings.extend(unmatched);
    progress.begin("symbolizing stacks");
    let mut file = reading.finish(&chosen);
    if let Some(ended) = device_end(manifest.as_deref()) {
        let followed = |found: &&mut Finding| CONSEQUENCES.contains(&found.kind);
        for finding in file.findings.iter_mut().filter(followed) {
            finding.help.clone_from(&ended.help);
        }
    }
    let systems = opened.iter().map(|trace| &trace.trace.recording().system);
    if let Some(system) = systems.into_iter().next() {
        file.system = system.clone();
    }
    if let Some(symbolization) = &mut file.symbolization {
        let mappings = opened.iter().flat_map(|trace| trace.mappings.iter());
        symbolization.mappings.extend(mappings.cloned());
    }
    if options.memory {
        let pids = file.listed.iter().map(|dump| dump.facts.pid);
        let wanted = MemoryWanted {
            pids: Some(pids.filter_map(|pid| pid.try_into().ok()).collect()),
            ..MemoryWanted::default()
        };
        for trace in opened.iter_mut().filter(|t| t.trace.has_memory()) {
            let told = trace.trace.memory(&wanted)?;
            file.findings.extend(timeline::of_loss(&told.loss));
            file.memory.merge(told.timeline);
        }
    }
    Ok(native_of(path, file, manifest, opened, java_dumps))
}

/// Returns the native heaps of the input at `path`, with its Java heaps: those in its traces and
/// HPROF files.
fn native_of(
    path: &Path,
    mut file: NativeFile,
    manifest: Option<Box<Manifest>>,
    traces: Vec<LookTrace>,
    java_dumps: usize,
) -> OpenedInput {
    file.path = path.to_owned();
    file.java_dumps = java_dumps;
    file.manifest = manifest.map(|manifest| *manifest);
    OpenedInput::Native(Box::new(file), java_of(traces, java_dumps))
}

/// Returns the reason why a recording ended before its first dump. Its file is as the device wrote
/// it, so another copy would not help.
fn early_end(manifest: Option<&Manifest>) -> Option<&Warning> {
    device_end(manifest.filter(|manifest| manifest.dumps.keys().next().is_none()))
}

/// Returns the reason why the device ended a recording early.
fn device_end(manifest: Option<&Manifest>) -> Option<&Warning> {
    let kinds = [
        "device-rebooted",
        "disk-full",
        "recording-lost",
        "size-limit",
    ];
    let mut warnings = manifest?.warnings.iter();
    warnings.find(|warning| kinds.contains(&warning.kind.as_str()))
}

fn as_noted(kind: &'static str, warning: &Warning) -> Finding {
    Finding {
        help: warning.help.clone(),
        ..Finding::new(kind, ErrorClass::BadInput, warning.message.clone())
    }
}

fn java_of(traces: Vec<LookTrace>, dumps: usize) -> OpenedJava {
    match dumps {
        // Unused data need no memory.
        0 => OpenedJava::Unread,
        _ if traces.is_empty() => OpenedJava::Unread,
        _ => OpenedJava::Traces(traces.into_iter().map(ReadTrace::from).collect()),
    }
}

/// As [`open`], but requires native heaps.
///
/// # Errors
/// As [`open`]; also if there are only Java heaps.
pub fn native(
    path: &Path,
    wanted: &DumpScope,
    options: &LookOptions,
    progress: &ProgressReporter,
) -> Result<NativeFile, InputError> {
    match open(path, wanted, options, progress)? {
        OpenedInput::Native(file, _) => Ok(*file),
        OpenedInput::Java(_) => Err(InputError::JavaOnly {
            name: path.display().to_string(),
        }),
    }
}

/// Returns profiles of tracked allocations next to a trace without heaps.
fn tracked(path: &Path, manifest: Option<&Manifest>) -> Result<Vec<PprofInput>, InputError> {
    let allocations = manifest.and_then(|manifest| manifest.java_allocations.as_ref());
    let dumps = allocations.map_or(&[][..], |allocations| &allocations.dumps);
    let files = dumps.iter().filter_map(|dump| dump.file.as_ref());
    // A manifest can come from anywhere, so it only names files of its own directory.
    let files = files.filter_map(|file| Path::new(file).file_name().filter(|_| path.is_dir()));
    profiles_in(files.map(|file| path.join(file)))
}

/// Returns the profiles of a recording whose damaged trace lacks some of their dumps.
fn profiles_of_damaged(
    path: &Path,
    manifest: Option<&Manifest>,
    traces: &[LookTrace],
    listed: &[ListedDump],
) -> Result<Vec<PprofInput>, InputError> {
    let is_damaged = path.is_dir() && traces.iter().any(|trace| trace.damage.is_some());
    let Some(manifest) = manifest.filter(|_| is_damaged) else {
        return Ok(Vec::new());
    };
    let complete = manifest.dumps.native.iter().filter(|dump| dump.complete);
    let readable = listed.iter().filter(|dump| !dump.facts.unfinished);
    let lacks_dumps = readable.count() < complete.count();
    let files = recorded::profiles(manifest, &path.join(RAW_TRACE)).filter(|_| lacks_dumps);
    profiles_in(files.into_iter().flatten())
}

fn profiles_in(files: impl Iterator<Item = PathBuf>) -> Result<Vec<PprofInput>, InputError> {
    let mut found = Vec::new();
    for file in files.filter(|file| file.is_file()) {
        if let HeapSource::Pprofs(profiles) = heaptap_input::open_heaps(&file)? {
            found.extend(profiles);
        }
    }
    Ok(found)
}

/// Returns the number of HPROFs next to the trace in a recording directory.
fn hprofs_beside(path: &Path) -> usize {
    match path.is_dir() {
        true => heaptap_input::hprofs_in_directory(path).map_or(0, |found| found.len()),
        false => 0,
    }
}

/// The dumps of an input while they are read.
struct Reading<'a> {
    manifest: Option<&'a Manifest>,
    process_names: BTreeMap<u64, String>,
    wanted: &'a DumpScope,
    options: &'a LookOptions,
    /// True if the error of every dump's total is requested.
    errors: bool,
    /// Minimum number of callsites that become a list.
    list_from: Option<usize>,
    listed: Vec<ListedDump>,
    /// Projected dumps of each trace.
    profiles: Vec<StackProfile>,
    /// Their indexes in `listed`.
    places: Vec<Vec<usize>>,
    numbers: DumpNumbers,
    /// Findings from the flags of each dump.
    flagged: BTreeMap<usize, Vec<Finding>>,
    /// Last dumps of heaps whose final ones are missing.
    lost: Vec<LastDump>,
    findings: Vec<Finding>,
    tally: Tally,
}

impl<'a> Reading<'a> {
    fn new(
        manifest: Option<&'a Manifest>,
        wanted: &'a DumpScope,
        options: &'a LookOptions,
    ) -> Reading<'a> {
        Reading {
            manifest,
            process_names: manifest.map_or_else(BTreeMap::new, recorded::process_names),
            wanted,
            options,
            errors: options.errors,
            list_from: None,
            listed: Vec::new(),
            profiles: Vec::new(),
            places: Vec::new(),
            numbers: DumpNumbers::default(),
            flagged: BTreeMap::new(),
            lost: Vec::new(),
            findings: Vec::new(),
            tally: Tally::default(),
        }
    }

    /// Reads all dumps of a trace and projects those that might be selected.
    fn read(&mut self, trace: &mut LookTrace) -> Result<(), InputError> {
        let recording = Arc::clone(trace.trace.recording());
        let deduped = Deduped::from_recording(&recording);
        let naming = ProjectOptions {
            annotations: !self.options.no_annotations,
            list: self
                .list_from
                .is_some_and(|least| recording.tables.callsite_count() >= least),
        };
        let mut projector = Projector::new(&recording, naming);
        let mut coverage = Coverage::default();
        let mut places = Vec::new();
        let mut last: BTreeMap<(u64, String), (usize, HeapDump)> = BTreeMap::new();
        let (mut sampled, mut explained) = (false, false);
        let flagged = &mut self.flagged;
        let mut add =
            |projector: &mut Projector<'_>, place: usize, dump: &HeapDump, facts: Facts| {
                coverage.add(dump);
                let mut findings = findings::findings_for_dump(dump, &recording.tables);
                findings.extend(deduped.finding(dump));
                flagged.insert(place, findings);
                places.push(place);
                projector.add(dump, facts);
            };
        // For other dumps, only the error of the total is needed.
        let errors = self.errors;
        let pass_over =
            |projector: &mut Projector<'_>, listed: &mut ListedDump, dump: &HeapDump| {
                if errors {
                    projector.add(dump, listed.facts.clone());
                    let taken_back = projector.pop();
                    listed.held = taken_back.and_then(|dump| sampled::total(&dump, View::Space));
                }
            };
        let control = &self.options.control;
        let health = trace
            .trace
            .read_dumps(|mut dump| -> Result<(), InputError> {
                if control.is_cancelled() {
                    return Err(InputError::Interrupted);
                }
                sampled |= !dump.samples.is_empty();
                explained |= dump.flags.has_ended();
                if dump.process.is_empty()
                    && let Some(name) = self.process_names.get(&dump.pid)
                {
                    dump.process.clone_from(name);
                }
                let place = self.listed.len();
                let number = self.numbers.next(dump.pid, &dump.heap);
                let listed = listed(&dump, number, self.manifest);
                let interest = interest(&listed, self.wanted, self.options);
                let facts = listed.facts.clone();
                self.listed.push(listed);
                match interest {
                    Interest::Sure => add(&mut projector, place, &dump, facts),
                    Interest::IfLast => {
                        let key = (dump.pid, dump.heap.clone());
                        let is_default = *self.wanted == DumpScope::Default;
                        let rank = |at: usize| self.listed[at].rank(is_default);
                        let known = last.get(&key).map_or(0, |(known, _)| rank(*known));
                        let passed_over = match rank(place) >= known {
                            true => last.insert(key, (place, dump)),
                            false => Some((place, dump)),
                        };
                        if let Some((place, dump)) = passed_over {
                            pass_over(&mut projector, &mut self.listed[place], &dump);
                        }
                    }
                    Interest::None => pass_over(&mut projector, &mut self.listed[place], &dump),
                }
                Ok(())
            })?;
        let mut last: Vec<_> = last.into_values().collect();
        last.sort_by_key(|(place, _)| *place);
        for (place, dump) in last {
            add(
                &mut projector,
                place,
                &dump,
                self.listed[place].facts.clone(),
            );
        }
        let unexpanded = trace_findings::unexpanded(projector.unexpanded());
        self.findings.extend(unexpanded);
        coverage.finish(&trace.named, projector.namer(), &mut self.tally);
        self.profiles.push(projector.finish());
        self.places.push(places);
        let of_names = trace.findings.iter().chain(&trace.renamed);
        self.findings.extend(of_names.cloned());
        let damage = trace.damage.as_deref();
        let told = trace_findings::of_trace(&trace.name, damage, &health, sampled);
        self.findings.extend(told);
        self.lost.extend(health.final_dumps_missing.iter().cloned());
        if !sampled && !explained && trace.trace.java_dumps().is_empty() {
            let why = trace_findings::why_empty(&recording, &health, !self.listed.is_empty());
            self.findings.extend(why);
        }
        Ok(())
    }

    /// Returns the file with the dumps at the indexes `chosen`, which ascend.
    fn finish(mut self, chosen: &[usize]) -> NativeFile {
        let mut profile = joined(self.profiles);
        let mut places = self.places.into_iter().flatten();
        let mut dumps: Vec<_> = profile
            .dumps
            .drain(..)
            .filter_map(|dump| Some((places.next()?, dump)))
            .collect();
        if self.errors {
            for (place, dump) in &dumps {
                self.listed[*place].held = sampled::total(dump, View::Space);
            }
        }
        dumps.retain(|(place, _)| chosen.binary_search(place).is_ok());
        for (place, dump) in &mut dumps {
            dump.facts.is_default = self.listed[*place].facts.is_default;
        }
        dumps.sort_by_key(|(place, _)| *place);
        // Flags are cumulative: the last dump of each heap has all of them.
        let mut said: BTreeMap<(u64, &str), usize> = BTreeMap::new();
        for (place, dump) in &dumps {
            said.insert((dump.facts.pid, &dump.facts.heap), *place);
        }
        for ((pid, heap), place) in said {
            self.findings
                .extend(self.flagged.remove(&place).unwrap_or_default());
            // Data missing after the last dump do not affect an earlier one.
            let facts = &self.listed[place].facts;
            let is_it = |lost: &&LastDump| {
                (lost.pid, lost.heap.as_str()) == (pid, heap) && lost.time_ns == facts.time_ns
            };
            let lost = self.lost.iter().filter(is_it);
            self.findings.extend(lost.map(findings::final_dump_missing));
        }
        profile.dumps = dumps.into_iter().map(|(_, dump)| dump).collect();
        NativeFile {
            profile,
            listed: self.listed.into(),
            findings: self.findings,
            symbolization: Some(self.tally.into_manifest()),
            ..NativeFile::default()
        }
    }
}

/// Possibility that a dump will be selected, as far as known when it is read.
enum Interest {
    Sure,
    IfLast,
    None,
}

fn interest(dump: &ListedDump, wanted: &DumpScope, options: &LookOptions) -> Interest {
    let facts = &dump.facts;
    let mut heaps = options.heaps.iter();
    let is_wanted =
        options.heaps.is_empty() || heaps.any(|heap| is_heap(heap, &facts.heap, facts.flags));
    let processes = &options.processes;
    if !processes.takes(Some(facts.pid), &facts.process) || !is_wanted {
        return Interest::None;
    }
    match wanted {
        DumpScope::All => Interest::Sure,
        DumpScope::Default => Interest::IfLast,
        DumpScope::These(all) => {
            // Digits can be a label if no dump has that number.
            let is_it = |which: &DumpSelector| match which {
                DumpSelector::Last => false,
                DumpSelector::End => dump.labels.contains(&which.to_string()),
                DumpSelector::Label(label) => dump.labels.contains(label),
                DumpSelector::Number(number) => {
                    facts.number == *number || dump.labels.contains(&number.to_string())
                }
            };
            if all.iter().any(is_it) {
                Interest::Sure
            } else if all.iter().any(DumpSelector::is_last) {
                Interest::IfLast
            } else {
                Interest::None
            }
        }
    }
}

/// Returns a dump with the facts from the manifest.
pub(crate) fn listed(dump: &HeapDump, number: u32, manifest: Option<&Manifest>) -> ListedDump {
    let mut facts = Facts::new(dump, number);
    let mut labels = Vec::new();
    let entries = manifest.map_or(&[][..], |manifest| &manifest.dumps.native);
    let entry = entries.iter().find(|entry| {
        entry.pid == dump.pid
            && entry.heap == dump.heap
            && entry.time_ns == dump.time_ns
            && entry.written_ns == dump.written_ns
    });
    if let (Some(entry), Some(manifest)) = (entry, manifest) {
        facts.number = entry.number;
        if facts.process.is_empty() {
            facts.process.clone_from(&entry.process);
        }
        labels = manifest.labels_of(&entry.id());
        facts.label = entry.label.as_ref().map(|label| label.name.clone());
        if facts.label.is_none() {
            facts.label = labels.first().cloned();
        }
    }
    ListedDump {
        facts,
        labels,
        totals: Some(Totals::new(dump.totals(), dump.kind)),
        held: None,
        callsites: dump.samples.len() as u64,
    }
}
