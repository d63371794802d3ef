//! An input as a database: native and Java heaps as tables that are read on demand, or copied into
//! a file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::heaps::input::{
    self, DumpScope, InputError, LookOptions, LookTrace, NativeSource, listed, source,
};
use crate::heaps::java::{
    JavaFile, JavaOptions, OpenedJava, ProgressReporter, of_losses, root_truncated,
};
use crate::heaps::selector::JavaInput;
use crate::heaps::trace_findings;
use android_memory::smaps::SmapsRows;
use heaptap_base::directory;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::parallel::lock;
use heaptap_base::unfinished::{ExistingFile, publish, remove_abandoned};
use heaptap_base::untrusted::shell::quoted_path;
use heaptap_model::counter::Counters;
use heaptap_model::heap_graph::{Follow, HeapGraph};
use heaptap_model::profile::{DumpNumbers, Health, HeapDump, MetadataValue, Recording, is_heap};
use heaptap_model::timeline::{Entry, Observation, Timeline};
use heaptap_query::java::{JavaHeapFacts, JavaHeaps};
use heaptap_query::memory::{self, MemorySource};
use heaptap_query::native::{DumpName, NativeHeaps, NativeHeapsBuilder};
use heaptap_query::smaps::{self, SmapsSource};
use heaptap_query::{
    Catalog, CopiedTable, Database, Limits, Processes, QueryError, TableError, flamegraph, java,
    modules, native, processes, stacks, system, unread,
};
use heaptap_results::deduped::Deduped;
use heaptap_results::findings::{self, Finding};
use heaptap_results::lists::{join_list, process_name};
use heaptap_results::manifest::Manifest;
use heaptap_results::timeline::LoadedTimeline;
use heaptap_results::whole_file::temporary_in;
use heaptap_results::{recorded, timeline as readings};
use perfetto_heap::MemoryWanted;

/// Options for opening an input.
#[derive(Debug, Clone, Default)]
pub struct QueryOptions {
    /// Processes and heaps to read, and sources of names.
    pub look: LookOptions,
    /// Options for HPROFs.
    pub java: JavaOptions,
    /// Limits of a statement.
    pub limits: Limits,
}

/// Opened input.
pub struct QueryFile {
    /// Tables of the input.
    pub database: Database,
    /// Findings to report.
    pub findings: Vec<Finding>,
    /// Missing data of the Java heaps that statements have read so far.
    pub losses: Losses,
}

/// Missing data of Java heaps, known once a statement has read them.
#[derive(Debug, Clone, Default)]
pub struct Losses(Arc<Mutex<Lost>>);

#[derive(Debug, Default)]
struct Lost {
    /// Findings that were not yet taken.
    findings: Vec<Finding>,
    /// Class of the exit code, from all findings, including those that were taken.
    class: Option<ErrorClass>,
}

impl Losses {
    fn add(&self, graph: &HeapGraph) {
        let mut lost = lock(&self.0);
        let findings = of_losses(graph);
        let class = findings::class(&findings).into_iter();
        lost.class = ErrorClass::first_of(lost.class.into_iter().chain(class));
        lost.findings.extend(findings);
    }

    fn add_unread(&self, table: &str, sources: &[String]) {
        if !sources.is_empty() {
            let message = format!(
                "{table} is empty: heaptap does not read the events of {}",
                join_list(sources.iter().cloned())
            );
            let help = "query the trace with Perfetto's trace processor";
            let found = Finding::new("events-unread", None, message).with_help(help);
            lock(&self.0).findings.push(found);
        }
    }

    /// Returns the findings since the last call.
    pub fn take(&self) -> Vec<Finding> {
        let mut lost = lock(&self.0);
        std::mem::take(&mut lost.findings)
    }

    /// Returns the class of the exit code, from all findings so far.
    pub fn class(&self) -> Option<ErrorClass> {
        let lost = lock(&self.0);
        lost.class
    }
}

impl QueryFile {
    /// Returns the class of the exit code; `None` if nothing is missing.
    pub fn class(&self) -> Option<ErrorClass> {
        findings::class(&self.findings)
    }
}

/// Opens an input: a recording directory, a trace, a pprof or an HPROF. Native heaps are read
/// immediately, Java heaps when a table needs them.
///
/// # Errors
/// Returns an error if the input cannot be read or does not contain a heap.
pub fn open(
    input: &JavaInput,
    options: QueryOptions,
    progress: &ProgressReporter,
) -> Result<QueryFile, Failure> {
    let path = input.path.display();
    if input.which.is_some() {
        let message = format!("cannot select one dump of {path}: `query` reads all dumps");
        return Err(
            Failure::new(ErrorClass::Usage, "one-dump", message).with_help(format!(
                "leave out the `@` and filter with `WHERE ts = …`; list the dumps with `heaptap \
                 query {} \"SELECT * FROM heaptap_dump\"`",
                quoted_path(path.to_string())
            )),
        );
    }
    match source(&input.path, &options.look, progress)? {
        NativeSource::Traces(mut traces, manifest) => match (traces.pop(), traces.len()) {
            (Some(only), 0) => of_trace(&input.path, only, manifest.as_deref(), options, progress),
            (_, others) => {
                let count = others + 1;
                let message = format!("{path} contains {count} traces; only one is supported");
                Err(Failure::new(ErrorClass::Usage, "several-traces", message)
                    .with_help("unpack it and pass one trace file"))
            }
        },
        NativeSource::Pprofs(..) => of_pprofs(&input.path, options, progress),
        NativeSource::Hprofs(found) => {
            of_hprofs(&input.path, OpenedJava::Hprofs(found), options, progress)
        }
    }
}

/// Processes and heaps of an input that the options do not select.
#[derive(Default)]
struct Others {
    processes: BTreeSet<String>,
    heaps: BTreeSet<String>,
}

impl Others {
    fn process(&mut self, pid: u64, name: &str) {
        self.processes.insert(process_name(pid, name));
    }

    /// Returns an error if the options select nothing, although there is something.
    fn check(self, path: &Path, look: &LookOptions) -> Result<(), InputError> {
        let name = path.display().to_string();
        if !self.heaps.is_empty() {
            return Err(InputError::no_such_heap(name, &look.heaps, self.heaps));
        }
        if !look.processes.is_empty() && !self.processes.is_empty() {
            return Err(InputError::NoSuchProcess {
                name,
                process: look.processes.to_string(),
                there: join_list(self.processes.into_iter()),
            });
        }
        Ok(())
    }
}

/// Opens a trace with its native heaps, and its Java heaps if there are any.
fn of_trace(
    path: &Path,
    mut opened: LookTrace,
    manifest: Option<&Manifest>,
    options: QueryOptions,
    progress: &ProgressReporter,
) -> Result<QueryFile, Failure> {
    progress.begin("reading dumps");
    let losses = Losses::default();
    let mut findings = std::mem::take(&mut opened.findings);
    let names = manifest.map_or_else(BTreeMap::new, recorded::process_names);
    let mut numbers = DumpNumbers::default();
    let recording = Arc::clone(opened.trace.recording());
    let deduped = Deduped::from_recording(&recording);
    let look = &options.look;
    let takes = |pid: u64, process: &str| look.processes.takes(Some(pid), process);
    let mut builder = NativeHeapsBuilder::default();
    // Flags are cumulative, so the last dump of each heap has all of them.
    let mut flagged: BTreeMap<(u64, String), Vec<Finding>> = BTreeMap::new();
    let mut sampled = false;
    // Available values, for an error.
    let mut others = Others::default();
    // Those that are not selected, too: a process of a trace has one `upid`.
    let mut known = Processes::from_recording(&recording);
    let health = opened
        .trace
        .read_dumps(|mut dump: HeapDump| -> Result<(), InputError> {
            if look.control.is_cancelled() {
                return Err(InputError::Interrupted);
            }
            if dump.process.is_empty()
                && let Some(name) = names.get(&dump.pid)
            {
                dump.process.clone_from(name);
            }
            known.enter_named(dump.pid, &dump.process);
            sampled |= !dump.samples.is_empty();
            let number = numbers.next(dump.pid, &dump.heap);
            let is_heap = look.heaps.is_empty()
                || look
                    .heaps
                    .iter()
                    .any(|heap| is_heap(heap, &dump.heap, dump.flags));
            if !takes(dump.pid, &dump.process) {
                others.process(dump.pid, &dump.process);
            } else if !is_heap {
                others.heaps.insert(dump.heap.clone());
            } else {
                let listed = listed(&dump, number, manifest).facts;
                let key = (dump.pid, dump.heap.clone());
                match flagged.get_mut(&key).filter(|_| dump.open) {
                    Some(before) => before.push(findings::open_dump(&listed)),
                    None => {
                        let mut found = findings::findings_for_dump(&dump, &recording.tables);
                        found.extend(deduped.finding(&dump));
                        flagged.insert(key, found);
                    }
                }
                let name = DumpName {
                    number: listed.number,
                    label: listed.label,
                };
                builder.add_named(dump, name);
            }
            Ok(())
        })?;
    let damage = opened.damage.as_deref();
    let told = trace_findings::of_trace(&opened.name, damage, &health, sampled);
    findings.extend(told);
    let lost = health.final_dumps_missing.iter();
    let lost = lost.filter(|lost| flagged.contains_key(&(lost.pid, lost.heap.clone())));
    findings.extend(lost.map(findings::final_dump_missing));
    findings.extend(flagged.into_values().flatten());
    let natives = builder.finish(Arc::clone(&recording));
    let graphs = opened.trace.java_dumps().iter();
    let all = graphs.chain(opened.trace.graphless_dumps());
    let mut dumps: Vec<_> = all.enumerate().collect();
    dumps.sort_by_key(|(_, dump)| dump.time_ns as i64);
    let (places, facts): (Vec<usize>, Vec<JavaHeapFacts>) = dumps
        .into_iter()
        .filter(|(_, dump)| takes(dump.pid, &dump.process))
        .map(|(at, dump)| (at, facts_of(dump, &recording)))
        .unzip();
    let mappings: Vec<usize> = (0..)
        .zip(opened.trace.smaps())
        .filter(|(_, smaps)| takes(smaps.pid, &smaps.process))
        .map(|(at, _)| at)
        .collect();
    let is_empty = natives.dumps.is_empty() && facts.is_empty() && mappings.is_empty();
    for dump in opened.trace.java_dumps() {
        others.process(dump.pid, &dump.process);
    }
    if is_empty {
        others.check(path, look)?;
        let why = trace_findings::why_empty(&recording, &health, false);
        findings.extend(why);
    }
    let mut beside = readings::beside(path);
    findings.append(&mut beside.findings);
    for (&pid, name) in &names {
        if known.upid(pid).is_some() {
            known.enter_named(pid, name);
        }
    }
    for facts in &facts {
        enter_java(&mut known, facts);
    }
    for dump in opened.trace.java_dumps() {
        known.enter_named(dump.pid, &dump.process);
    }
    for smaps in opened.trace.smaps() {
        known.enter(smaps.pid);
    }
    for (pid, name) in beside.timeline.entries.iter().filter_map(process_of) {
        known.enter_named(pid, name);
    }
    let mut counted = opened.trace.counted_pids().map_err(InputError::from)?;
    for &pid in &counted {
        known.enter(pid.into());
    }
    let mut pids = None;
    // The first one is the idle process.
    let there = known.rows().iter().skip(1);
    let there = there.map(|row| (row.pid, row.name.as_deref().unwrap_or_default()));
    let named = names.iter().map(|(&pid, name)| (pid, name.as_str()));
    let seen = beside.timeline.entries.iter().filter_map(process_of);
    let there = there.chain(named).chain(seen);
    let there = there.map(|(pid, name)| (Some(pid), name));
    findings.extend(look.processes.missing("anything of", there));
    if !look.processes.is_empty() {
        let is_meant = |pid: u32, name: &str| takes(pid.into(), name);
        pids = Some(meant(&recording, &names, &beside, &is_meant));
    }
    if let Some(pids) = &pids {
        let entries = &mut beside.timeline.entries;
        entries.retain(|entry| entry.pid == 0 || pids.contains(&entry.pid));
        counted.retain(|pid| pids.contains(pid));
    }
    let heaps = TraceHeaps {
        facts,
        places,
        mappings,
        pids,
        beside: beside.timeline,
        trace: Mutex::new(opened),
        losses: losses.clone(),
    };
    Ok(QueryFile {
        database: database(
            known,
            natives,
            &health,
            &Arc::new(heaps),
            options.limits,
            &losses,
        )?,
        findings,
        losses,
    })
}

/// Opens pprofs of any tool as tables of symbolized stacks. They do not contain addresses or other
/// processes, so Perfetto's tables stay empty.
fn of_pprofs(
    path: &Path,
    options: QueryOptions,
    progress: &ProgressReporter,
) -> Result<QueryFile, Failure> {
    let file = input::native(path, &DumpScope::All, &options.look, progress)?;
    let mut known = Processes::default();
    for dump in &file.profile.dumps {
        known.enter_named(dump.facts.pid, &dump.facts.process);
    }
    let known = Arc::new(known);
    let mut catalog = Catalog::default();
    processes::add(&mut catalog, &known);
    stacks::add_profile(&mut catalog, file.profile, &known);
    Ok(QueryFile {
        database: Database::open_with(catalog, options.limits)?,
        findings: file.findings,
        losses: Losses::default(),
    })
}

fn of_hprofs(
    path: &Path,
    found: OpenedJava,
    options: QueryOptions,
    progress: &ProgressReporter,
) -> Result<QueryFile, Failure> {
    let mut file = JavaFile::open(path, found, options.java, progress)?;
    let mut findings = file.check_headers()?;
    findings.append(&mut file.missing);
    let facts = file.dumps().iter().map(|dump| JavaHeapFacts {
        pid: dump.pid,
        process: dump.process.clone(),
        ..JavaHeapFacts::default()
    });
    let beside = readings::beside(path);
    findings.extend(beside.findings);
    let losses = Losses::default();
    let heaps = HprofHeaps {
        facts: facts.collect(),
        beside: beside.timeline,
        file: Mutex::new(file),
        losses: losses.clone(),
    };
    let mut known = Processes::default();
    for heap in &heaps.facts {
        enter_java(&mut known, heap);
    }
    for (pid, name) in heaps.beside.entries.iter().filter_map(process_of) {
        known.enter_named(pid, name);
    }
    let natives = NativeHeapsBuilder::default().finish(Arc::new(Recording::default()));
    let (heaps, health) = (Arc::new(heaps), Health::default());
    Ok(QueryFile {
        database: database(known, natives, &health, &heaps, options.limits, &losses)?,
        findings,
        losses,
    })
}

/// Returns the selected processes among all that the input names.
fn meant(
    recording: &Recording,
    names: &BTreeMap<u64, String>,
    beside: &LoadedTimeline,
    is_meant: &dyn Fn(u32, &str) -> bool,
) -> BTreeSet<u32> {
    let told = recording.processes.iter();
    let told = told.map(|(&pid, process)| (pid, process.name.as_str()));
    let named = names.iter().map(|(&pid, name)| (pid, name.as_str()));
    let seen = beside.timeline.entries.iter().filter_map(process_of);
    told.chain(named)
        .chain(seen)
        .filter_map(|(pid, name)| Some((u32::try_from(pid).ok()?, name)))
        .filter(|(pid, name)| is_meant(*pid, name))
        .map(|(pid, _)| pid)
        .collect()
}

/// Enters the process of a Java heap.
fn enter_java(known: &mut Processes, heap: &JavaHeapFacts) {
    if let Some(pid) = heap.pid {
        known.enter_named(pid, &heap.process);
    }
}

/// Returns the process that an entry names.
fn process_of(entry: &Entry) -> Option<(u64, &str)> {
    match &entry.seen {
        Observation::Process(process) => Some((entry.pid.into(), process.name.as_str())),
        _ => None,
    }
}

/// Opens the tables of an input. `known` are all its processes.
fn database(
    known: Processes,
    natives: NativeHeaps,
    health: &Health,
    heaps: &Arc<impl JavaHeaps + SmapsSource + MemorySource + 'static>,
    limits: Limits,
    losses: &Losses,
) -> Result<Database, QueryError> {
    let mappings: Arc<dyn SmapsSource> = Arc::clone(heaps) as _;
    let readings: Arc<dyn MemorySource> = Arc::clone(heaps) as _;
    let heaps: Arc<dyn JavaHeaps> = Arc::clone(heaps) as _;
    let known = Arc::new(known);
    let natives = Arc::new(natives);
    let mut catalog = Catalog::default();
    processes::add(&mut catalog, &known);
    native::add(&mut catalog, &natives, &known);
    stacks::add(&mut catalog, &natives, &known);
    let times = heaps.list().iter().map(|heap| heap.time_ns).collect();
    system::add(&mut catalog, &natives, health, times, &mappings, &readings);
    let graphs = java::add(&mut catalog, &heaps, &known);
    java::add_callsites(&mut catalog, &graphs, &natives);
    let sources = unread_sources(&natives.recording);
    let losses = losses.clone();
    unread::add(&mut catalog, move |table| {
        losses.add_unread(table, &sources)
    });
    flamegraph::add(&mut catalog, Some(&natives), Some(&graphs), &known);
    modules::add(&mut catalog, &natives);
    smaps::add(&mut catalog, mappings, &known);
    memory::add(&mut catalog, &readings, &known);
    Database::open_with(catalog, limits)
}

/// Returns the data sources of a trace with events that are in no table.
fn unread_sources(recording: &Recording) -> Vec<String> {
    const UNREAD: [&str; 4] = ["linux.ftrace", "linux.perf", "track_event", "android.log"];
    let sources = recording.data_sources.iter();
    let unread = sources.filter(|name| UNREAD.contains(&name.as_str()));
    unread.cloned().collect()
}

/// Name of the trigger of traces of OutOfMemoryErrors.
const OUT_OF_MEMORY_TRIGGER: &str = "com.android.telemetry.art-outofmemory";

fn facts_of(dump: &perfetto_heap::JavaDump, recording: &Recording) -> JavaHeapFacts {
    let trigger = recording.metadata.get("trace_trigger");
    let is_trigger =
        |value: &MetadataValue| *value == MetadataValue::Text(OUT_OF_MEMORY_TRIGGER.to_owned());
    JavaHeapFacts {
        is_out_of_memory: dump.out_of_memory.is_some()
            || trigger.is_some_and(|values| values.iter().any(is_trigger)),
        pid: Some(dump.pid),
        process: dump.process.clone(),
        time_ns: dump.time_ns,
        reason: dump.out_of_memory.as_ref().map(|_| "OOME".to_owned()),
        out_of_memory: dump.out_of_memory.clone(),
    }
}

/// Java heaps of a trace.
struct TraceHeaps {
    facts: Vec<JavaHeapFacts>,
    /// Position of each heap among the dumps of the trace, and those without a graph after them.
    places: Vec<usize>,
    /// Positions of the selected captures of mappings.
    mappings: Vec<usize>,
    /// Processes whose memory is selected; `None` selects all.
    pids: Option<BTreeSet<u32>>,
    /// Companion data from outside the trace.
    beside: Timeline,
    trace: Mutex<LookTrace>,
    losses: Losses,
}

impl SmapsSource for TraceHeaps {
    fn read(&self) -> Result<Vec<(u64, u64, SmapsRows)>, TableError> {
        let mut opened = lock(&self.trace);
        let read = |&at: &usize| {
            let rows = opened.trace.read_smaps(at);
            let rows = rows.map_err(|error| TableError(error.to_string()))?;
            let facts = &opened.trace.smaps()[at];
            Ok((facts.pid, facts.time_ns, rows))
        };
        self.mappings.iter().map(read).collect()
    }
}

impl TraceHeaps {
    fn wanted(&self) -> MemoryWanted {
        let pids = self.pids.clone().map(|mut pids| {
            // Figures of the whole device do not have a process.
            pids.insert(0);
            pids
        });
        MemoryWanted {
            pids,
            ..MemoryWanted::default()
        }
    }
}

fn too_much() -> TableError {
    TableError(
        "the trace exceeds the limit of memory figures; select one process with `-n`".to_owned(),
    )
}

impl MemorySource for TraceHeaps {
    fn counters(&self) -> Result<Counters, TableError> {
        let mut opened = lock(&self.trace);
        let counters = opened.trace.counters(&self.wanted());
        let counters = counters.map_err(|error| TableError(error.to_string()))?;
        counters.ok_or_else(too_much)
    }

    fn timeline(&self) -> Result<Timeline, TableError> {
        let mut opened = lock(&self.trace);
        let told = opened.trace.memory(&self.wanted());
        let told = told.map_err(|error| TableError(error.to_string()))?;
        if told.loss.entries_left_out > 0 {
            return Err(too_much());
        }
        let mut known = LoadedTimeline {
            timeline: self.beside.clone(),
            findings: Vec::new(),
        };
        known.add(told.timeline);
        Ok(known.timeline)
    }
}

impl JavaHeaps for TraceHeaps {
    fn list(&self) -> &[JavaHeapFacts] {
        &self.facts
    }

    fn read(&self, at: usize) -> Result<Arc<HeapGraph>, TableError> {
        let mut opened = lock(&self.trace);
        let opened = &mut *opened;
        let graph = opened.trace.read_java_dump(self.places[at]);
        let mut graph = graph.map_err(|error| TableError(error.to_string()))?;
        opened.heaps.name(&mut graph, opened.trace.recording());
        root_truncated(&mut graph, Follow::default());
        self.losses.add(&graph);
        Ok(Arc::new(graph))
    }
}

/// Java heaps of HPROFs.
struct HprofHeaps {
    facts: Vec<JavaHeapFacts>,
    /// Companion data from outside the HPROFs.
    beside: Timeline,
    file: Mutex<JavaFile>,
    losses: Losses,
}

impl MemorySource for HprofHeaps {
    fn counters(&self) -> Result<Counters, TableError> {
        Ok(Counters::default())
    }

    fn timeline(&self) -> Result<Timeline, TableError> {
        Ok(self.beside.clone())
    }
}

/// HPROF files do not contain mappings.
impl SmapsSource for HprofHeaps {
    fn read(&self) -> Result<Vec<(u64, u64, SmapsRows)>, TableError> {
        Ok(Vec::new())
    }
}

impl JavaHeaps for HprofHeaps {
    fn list(&self) -> &[JavaHeapFacts] {
        &self.facts
    }

    fn read(&self, at: usize) -> Result<Arc<HeapGraph>, TableError> {
        let mut file = lock(&self.file);
        let heap = file.read(at);
        let heap = heap.map_err(|error| TableError(error.to_string()))?;
        self.losses.add(&heap.graph);
        Ok(Arc::new(heap.graph))
    }
}

/// Copies all tables of a database into a file. Uses a temporary name until the file is complete.
///
/// # Errors
/// Returns an error if the file cannot be written, a table cannot be read, or a file has appeared
/// that stays.
pub fn copy(
    database: &Database,
    file: &Path,
    existing: ExistingFile,
) -> Result<Vec<CopiedTable>, Failure> {
    let unwritable = |why: String| {
        let message = format!("cannot write {}: {why}", file.display());
        Failure::new(ErrorClass::HostWrite, "query-copy", message)
            .with_help("use a new file name in a writable directory")
    };
    // A database cannot be written to a pipe or a device.
    let is_special = |found: std::fs::Metadata| !found.is_file();
    if std::fs::metadata(file).is_ok_and(is_special) {
        return Err(unwritable("it is not a regular file".to_owned()));
    }
    remove_abandoned(directory::of(file));
    let temporary =
        temporary_in(directory::of(file)).map_err(|error| unwritable(error.to_string()))?;
    let copied = database.copy_to(temporary.path(), &mut |_| {});
    let copied = copied.map_err(|error| match error {
        QueryError::Copy(why) => unwritable(why),
        error => error.into(),
    })?;
    let published = publish(temporary.into_temp_path(), file, existing);
    published.map_err(|(error, _)| unwritable(error.to_string()))?;
    Ok(copied)
}
