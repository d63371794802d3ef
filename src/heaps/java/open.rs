//! Opening an input of Java heaps, listing its dumps, and reading the selected one. Labels and
//! numbers come from the recording's manifest, if there is one.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::JavaError;
use super::heap::{JavaHeap, ProgressReporter};
use super::opened::{OpenedJava, ReadTrace};
use crate::heaps::moments::{Capture, Moments, did_you_mean, names_besides, no_dump_came};
use crate::heaps::selector::{DumpSelector, JavaInput, ProcessFilter};
use crate::heaps::trace_findings;
use crate::names::options::NameOptions;
use crate::names::packet_files::known_maps;
use crate::names::r8_mappings::{HeapMaps, R8Mappings, minified};
use heaptap_input::{HeapSource, HprofInput, STDIN, STDIN_NAME};
use heaptap_model::heap_graph::{Follow, HeapGraph, Reachable, SizeModel};
use heaptap_model::profile::{DumpNumbers, NameMaps};
use heaptap_model::stacks::{default_rank, last_of_each};
use heaptap_results::findings::{Finding, SEVERAL_DUMPS};
use heaptap_results::lists::{join_processes, process_name};
use heaptap_results::manifest::{self, JAVA_HEAP, JavaDump, JavaKind, Manifest, ManifestError};
use heaptap_results::recorded;
use perfetto_heap::{Surveyed, Trace};
use time::OffsetDateTime;

/// Options for opening an input.
#[derive(Debug, Clone, Default)]
pub struct JavaOptions {
    /// Only dumps of these processes.
    pub processes: ProcessFilter,
    /// Which referents are followed.
    pub follow: Follow,
    /// Model for shallow sizes in an HPROF; `None` for the model of its runtime.
    pub sizes: Option<SizeModel>,
    /// Sources of R8 mappings.
    pub names: NameOptions,
}

/// A dump of an input, not yet read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Number of the Java heap within its process, from 1; for companion data, the number of the
    /// recording's dump it belongs to.
    pub number: u32,
    /// Label of its snapshot.
    pub label: Option<String>,
    /// Process ID; unknown for a separate HPROF.
    pub pid: Option<u64>,
    /// Process name; empty if unknown.
    pub process: String,
    /// Trace time in ns; HPROFs do not have it.
    pub time_ns: Option<u64>,
    /// Wall time, as the manifest has it.
    pub time: Option<OffsetDateTime>,
    /// True if its last packet is missing from the trace.
    open: bool,
    /// Position in the manifest; after all others if it is not listed.
    order: usize,
    place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Trace {
        trace: usize,
        dump: usize,
    },
    /// Without a number, the last dump of the file.
    Hprof {
        hprof: usize,
        dump: Option<u32>,
    },
}

/// Maximum number of dumps of one HPROF that are listed.
const MAX_DUMPS_OF_HPROF: u32 = 1000;

impl Listed {
    fn describe_process(&self) -> String {
        process_name(self.pid.unwrap_or(0), &self.process)
    }
}

/// An input with its dumps.
pub struct JavaFile {
    path: PathBuf,
    options: JavaOptions,
    progress: ProgressReporter,
    /// The recording that contains this one, whose numbers are used.
    outer: Option<Moments>,
    /// Labels of its manifest, with a dump or without.
    labels: Vec<String>,
    listed: Vec<Listed>,
    maps: R8Mappings,
    traces: Vec<Trace>,
    /// Names for the heaps of each trace.
    heap_maps: Vec<HeapMaps>,
    hprofs: Vec<HprofInput>,
    /// R8 mappings stored in the directory of the HPROFs.
    known: Arc<NameMaps>,
    findings: Vec<Finding>,
    /// Warnings about selected processes that it does not have.
    pub missing: Vec<Finding>,
}

impl JavaFile {
    /// Opens an input and lists its dumps: reads a trace once, and nothing of an HPROF. For a
    /// recording without Java heaps, uses those in its directory `java`. Reuses `opened` data.
    ///
    /// # Errors
    /// Returns an error if it contains no Java heap, or none of the selected process, or cannot be
    /// read.
    pub fn open(
        path: &Path,
        opened: OpenedJava,
        options: JavaOptions,
        progress: &ProgressReporter,
    ) -> Result<JavaFile, JavaError> {
        let lying = lying_in(path);
        let outer = match &lying {
            Some(_) => manifest_of(path)?.map(|found| Moments::from_manifest(&found)),
            None => None,
        };
        let outer = outer.filter(Moments::has_dumps);
        // The name can be typed, with the numbers of the recording.
        let name = path;
        let path = lying.as_deref().unwrap_or(path);
        let mut file = JavaFile {
            path: match &outer {
                Some(_) => name.to_owned(),
                None => path.to_owned(),
            },
            maps: R8Mappings::open(&options.names)?,
            options,
            progress: progress.clone(),
            outer,
            labels: Vec::new(),
            listed: Vec::new(),
            traces: Vec::new(),
            heap_maps: Vec::new(),
            hprofs: Vec::new(),
            known: Arc::default(),
            findings: Vec::new(),
            missing: Vec::new(),
        };
        file.progress.begin(&format!("opening {}", path.display()));
        let recorded = manifest_of(path)?;
        let opened = match (&lying, opened) {
            (None, OpenedJava::Unread) | (Some(_), _) => file.unread(path)?,
            (None, opened) => opened,
        };
        let native = match opened {
            OpenedJava::Unread => false,
            OpenedJava::Traces(traces) => file.take_traces(traces),
            OpenedJava::Hprofs(hprofs) => {
                file.hprofs = hprofs;
                false
            }
        };
        if path.is_dir() && !file.traces.is_empty() {
            for hprof in heaptap_input::hprofs_in_directory(path).unwrap_or_default() {
                file.hprofs.push(heaptap_input::open_hprof(&hprof)?);
            }
        }
        let is_recording = recorded.is_some() || file.outer.is_some();
        if path.is_dir() && !is_recording && file.traces.is_empty() && file.hprofs.len() > 1 {
            return Err(
                heaptap_input::several_hprofs(&path.display().to_string(), &file.hprofs).into(),
            );
        }
        if let Some(recorded) = &recorded {
            recorded::compare_hprofs(recorded, &mut file.hprofs);
            let labels = recorded.labels.iter();
            file.labels.extend(labels.map(|label| label.name.clone()));
        }
        if !file.hprofs.is_empty() {
            file.known = known_maps::<JavaError>(path)?;
        }
        file.list(recorded.as_ref());
        file.number_by_outer();
        let name = file.path.display().to_string();
        if file.listed.is_empty() {
            let mut findings = file.findings.into_iter();
            let why = findings.find(trace_findings::is_missing_part).map(Box::new);
            return Err(match (native, why) {
                (true, _) => JavaError::Native { name },
                (false, Some(why)) => JavaError::Broken { name, why },
                (false, None) => JavaError::NoHeap { name },
            });
        }
        let wanted = file.options.processes.clone();
        if !wanted.is_empty() {
            let there = join_processes(file.processes());
            file.missing = wanted.missing("a Java heap of", file.processes());
            file.listed
                .retain(|dump| wanted.takes(dump.pid, &dump.process));
            if file.listed.is_empty() {
                return Err(JavaError::NoSuchProcess {
                    name,
                    process: wanted.to_string(),
                    there,
                });
            }
        }
        Ok(file)
    }

    /// Opens an input that is not opened yet, and scans the packets of its traces.
    fn unread(&self, path: &Path) -> Result<OpenedJava, JavaError> {
        let source = if path == Path::new(STDIN) {
            heaptap_input::open_java_stream(io::stdin().lock(), STDIN_NAME)?
        } else {
            heaptap_input::open_java(path)?
        };
        let mut traces = match source {
            HeapSource::Traces(traces) => traces,
            HeapSource::Hprofs(hprofs) => return Ok(OpenedJava::Hprofs(hprofs)),
            HeapSource::Pprofs(_) => Vec::new(),
        };
        recorded::compare(path, &mut traces);
        let read = traces.into_iter().map(|trace| {
            let mut surveyed = Surveyed::read(trace.source)?;
            let renamed = self.maps.name(&mut surveyed)?;
            Ok(ReadTrace {
                name: trace.name,
                damage: trace.damage,
                trace: surveyed.seal(),
                heaps: renamed.heaps,
                findings: renamed.findings,
            })
        });
        read.collect::<Result<_, _>>().map(OpenedJava::Traces)
    }

    /// Adds traces; returns whether they contain native heaps.
    fn take_traces(&mut self, traces: Vec<ReadTrace>) -> bool {
        let mut native = false;
        for read in traces {
            let health = read.trace.health();
            native |= health.profile_packets > 0;
            // Losses of the service are visible in the packet numbers of each dump.
            let damage = read.damage.as_deref();
            let unreadable = trace_findings::of_missing_parts(&read.name, damage, health);
            self.findings.extend(unreadable);
            self.findings.extend(read.findings);
            self.heap_maps.push(read.heaps);
            self.traces.push(read.trace);
        }
        native
    }

    /// Lists the dumps, with numbers and labels of the manifest if available.
    fn list(&mut self, recorded: Option<&Manifest>) {
        let entries = recorded.map_or(&[][..], |manifest| &manifest.dumps.java);
        let mut numbers = DumpNumbers::default();
        for entry in entries {
            numbers.take(entry.pid, JAVA_HEAP, entry.number);
        }
        let mut add = |entry: Option<&manifest::JavaDump>,
                       pid: Option<u64>,
                       process: &str,
                       place| {
            let number = match entry {
                Some(entry) => entry.number,
                None => numbers.next(pid.unwrap_or(0), JAVA_HEAP),
            };
            let named = entry.map_or("", |entry| &entry.process);
            Listed {
                number,
                order: entry
                    .and_then(|entry| entries.iter().position(|other| std::ptr::eq(other, entry)))
                    .unwrap_or(usize::MAX),
                label: entry.and_then(|entry| Some(entry.label.as_ref()?.name.clone())),
                pid,
                process: if process.is_empty() { named } else { process }.to_owned(),
                time_ns: None,
                open: false,
                time: entry.and_then(|entry| entry.time),
                place,
            }
        };
        for (trace, all) in self.traces.iter().enumerate() {
            for (dump, found) in all.java_dumps().iter().enumerate() {
                let entry = entries.iter().find(|entry| {
                    entry.kind == JavaKind::HeapGraph
                        && entry.pid == found.pid
                        && entry.time_ns == Some(found.time_ns)
                });
                let place = Place::Trace { trace, dump };
                self.listed.push(Listed {
                    time_ns: Some(found.time_ns),
                    open: found.open,
                    ..add(entry, Some(found.pid), &found.process, place)
                });
            }
        }
        for (at, hprof) in self.hprofs.iter().enumerate() {
            let entry = recorded.and_then(|manifest| recorded::hprof_entry(manifest, hprof));
            let pid = entry.map(|entry| entry.pid);
            let place = Place::Hprof {
                hprof: at,
                dump: None,
            };
            self.listed.push(add(entry, pid, "", place));
        }
        self.listed.sort_by_key(|dump| dump.order);
    }

    /// Lists each dump of the only HPROF if `which` selects one by its number. Otherwise the last is
    /// read, which does not need another pass over the file.
    pub fn list_dumps_of_hprof<'w>(&mut self, which: impl IntoIterator<Item = &'w DumpSelector>) {
        let numbered = |which: &DumpSelector| matches!(which, DumpSelector::Number(_));
        if which.into_iter().any(numbered) {
            self.list_all_of_hprof();
        }
    }

    /// Lists each dump of the only HPROF.
    pub fn list_all_of_hprof(&mut self) {
        let [only] = &self.listed[..] else {
            return;
        };
        let Place::Hprof { hprof, dump: None } = only.place else {
            return;
        };
        let among = android_hprof::dumps(&self.hprofs[hprof].bytes).unwrap_or(1);
        if among > 1 {
            let dump = |number| Listed {
                number,
                place: Place::Hprof {
                    hprof,
                    dump: Some(number),
                },
                ..only.clone()
            };
            self.listed = (1..=among.min(MAX_DUMPS_OF_HPROF)).map(dump).collect();
        }
    }

    /// Gives companion heaps the numbers of the dumps they belong to in the recording; heaps
    /// without such a dump come last.
    fn number_by_outer(&mut self) {
        let Some(outer) = &self.outer else {
            return;
        };
        let captures = self.captures(outer);
        let mut beside: Vec<Option<u32>> = vec![None; self.listed.len()];
        for (number, at) in outer.beside(&captures) {
            beside[at].get_or_insert(number);
        }
        let mut numbers = DumpNumbers::default();
        for (dump, number) in self.listed.iter_mut().zip(beside) {
            let pid = dump.pid.unwrap_or(0);
            numbers.take(pid, JAVA_HEAP, outer.last_number(pid));
            dump.number = number.unwrap_or_else(|| numbers.next(pid, JAVA_HEAP));
        }
    }

    /// Returns the dumps as captures of `outer`.
    fn captures(&self, outer: &Moments) -> Vec<Capture> {
        let mut from: BTreeMap<u64, usize> = BTreeMap::new();
        let of = |dump: &Listed| {
            let pid = dump.pid.unwrap_or(0);
            let from = from.entry(pid).or_default();
            let label = dump.label.as_deref();
            let place = outer.place_of(label, *from);
            if let (Some(_), Some(place)) = (label, place) {
                *from = place as usize;
            }
            Capture {
                number: place.unwrap_or(u32::MAX),
                label: dump.label.clone(),
                pid,
                dump: None,
            }
        };
        self.listed.iter().map(of).collect()
    }

    fn find_by_outer(
        &self,
        outer: &Moments,
        which: &DumpSelector,
    ) -> Result<Vec<usize>, JavaError> {
        let found = outer.find(Some(which), &self.captures(outer));
        found.map_err(|missing| JavaError::NoSuchMoment {
            name: self.path.display().to_string(),
            missing: Box::new(missing),
        })
    }

    /// Returns the dumps, in chronological order.
    pub fn dumps(&self) -> &[Listed] {
        &self.listed
    }

    /// Returns the index of the selected dump in [`JavaFile::dumps`]; by default the last one with a
    /// label, otherwise the last.
    ///
    /// # Errors
    /// Returns an error if it does not exist, or if the dumps are of several processes.
    pub fn choose(&self, which: Option<&DumpSelector>) -> Result<usize, JavaError> {
        let found = self.choose_all(which)?;
        let pids: BTreeSet<_> = found.iter().map(|&at| self.listed[at].pid).collect();
        match found.last() {
            Some(&last) if pids.len() < 2 || !self.has_several_processes() => Ok(last),
            _ => Err(JavaError::SeveralProcesses {
                name: self.path.display().to_string(),
                there: join_processes(self.processes()),
            }),
        }
    }

    /// Returns the indexes of all selected dumps in [`JavaFile::dumps`], at least one: each process
    /// counts its dumps from 1, and has a last one.
    ///
    /// # Errors
    /// Returns an error if none matches.
    pub fn choose_all(&self, which: Option<&DumpSelector>) -> Result<Vec<usize>, JavaError> {
        let several = self.has_several_processes();
        let prefers_labels = which.is_none();
        let last = |is_it: &dyn Fn(&Listed) -> bool| {
            let all = self.listed.iter().enumerate();
            last_of_each(all.filter(|(_, dump)| is_it(dump)).map(|(at, dump)| {
                let is_labelled = prefers_labels && dump.label.is_some();
                let process = dump.pid.filter(|_| several);
                (at, process, default_rank(dump.open, is_labelled))
            }))
        };
        let by_label = |wanted: &str| last(&|dump| dump.label.as_deref() == Some(wanted));
        let by_number = |number: u32| -> Vec<usize> {
            let all = 0..self.listed.len();
            all.filter(|&at| self.listed[at].number == number).collect()
        };
        let is_label = which.is_some_and(|which| self.labels.contains(&which.to_string()));
        let found = match (which, &self.outer) {
            (None, _) | (Some(DumpSelector::Last), None) => last(&|_| true),
            (Some(DumpSelector::End), None) if !is_label => {
                match by_label(&DumpSelector::End.to_string()) {
                    none if none.is_empty() => last(&|_| true),
                    labelled => labelled,
                }
            }
            (Some(which), outer) => {
                let numbered = match which {
                    DumpSelector::Number(number) => by_number(*number),
                    _ => Vec::new(),
                };
                match outer {
                    _ if !numbered.is_empty() => numbered,
                    // The labels of the recording that these captures belong to.
                    Some(outer) => self.find_by_outer(outer, which)?,
                    None => by_label(&which.to_string()),
                }
            }
        };
        if !found.is_empty() {
            return Ok(found);
        }
        let last = DumpSelector::Last;
        let which = which.unwrap_or(&last);
        let labels = self.listed.iter().filter_map(|dump| dump.label.as_deref());
        let dumps = self.listed.iter();
        Err(JavaError::NoSuchDump {
            name: self.path.display().to_string(),
            which: which.to_string(),
            near: no_dump_came(is_label).or_else(|| did_you_mean(which, labels)),
            there: names_besides(
                which,
                dumps.map(|dump| (dump.number, dump.label.as_slice())),
            ),
        })
    }

    /// Returns the name of a dump: `@2`; with its process if there are several.
    pub fn name_of(&self, at: usize) -> String {
        let dump = &self.listed[at];
        match self.has_several_processes() {
            true => format!("@{} of {}", dump.number, dump.describe_process()),
            false => format!("@{}", dump.number),
        }
    }

    /// Returns whether the dumps are of several processes.
    pub fn has_several_processes(&self) -> bool {
        let mut pids = self.listed.iter().filter_map(|dump| dump.pid);
        let first = pids.next();
        pids.any(|pid| Some(pid) != first)
    }

    /// Returns the process of each dump, with its PID if it is known.
    pub fn processes(&self) -> impl Iterator<Item = (Option<u64>, &str)> + Clone {
        let all = self.listed.iter();
        all.map(|dump| (dump.pid, dump.process.as_str()))
    }

    /// Returns the HPROF of a dump; `None` for a heap graph of a trace.
    pub fn hprof(&self, at: usize) -> Option<&HprofInput> {
        match self.listed[at].place {
            Place::Hprof { hprof, .. } => Some(&self.hprofs[hprof]),
            Place::Trace { .. } => None,
        }
    }

    /// Returns the options for reading a dump that is in an HPROF.
    pub fn hprof_options(&self, at: usize) -> android_hprof::Options {
        android_hprof::Options {
            sizes: self.options.sizes,
            dump: match self.listed[at].place {
                Place::Hprof { dump, .. } => dump,
                Place::Trace { .. } => None,
            },
            ..android_hprof::Options::default()
        }
    }

    /// Returns whether the end of a dump is missing from the trace: it is truncated, or still being
    /// written.
    pub fn is_open(&self, at: usize) -> bool {
        self.listed[at].open
    }

    /// Returns a finding for each of [`JavaFile::dumps`] that is an HPROF with an unreadable header.
    ///
    /// # Errors
    /// Returns an error if that is true of all.
    pub fn check_headers(&self) -> Result<Vec<Finding>, JavaError> {
        let unreadable = |at: usize| {
            let input = self.hprof(at)?;
            let error = android_hprof::records::Header::read(&input.bytes).err()?;
            let (name, source) = (input.name.clone(), error.into());
            Some(JavaError::Hprof { name, source })
        };
        let mut all: Vec<JavaError> = (0..self.listed.len()).filter_map(unreadable).collect();
        if all.len() == self.listed.len()
            && let Some(error) = all.pop()
        {
            return Err(error);
        }
        Ok(all.iter().map(Finding::from_error).collect())
    }

    /// Reads one of [`JavaFile::dumps`].
    ///
    /// # Errors
    /// Returns an error if it cannot be read. Damaged or missing parts become findings.
    pub fn read(&mut self, at: usize) -> Result<JavaHeap, JavaError> {
        let listed = self.listed[at].clone();
        let mut findings = self.findings.clone();
        let mut maps = Vec::new();
        let graph = match listed.place {
            Place::Trace { trace, dump } => {
                self.progress.begin("reading the heap graph");
                let mut graph = self.traces[trace].read_java_dump(dump)?;
                if graph.facts.process.is_empty() {
                    graph.facts.process.clone_from(&listed.process);
                }
                let recording = self.traces[trace].recording();
                self.heap_maps[trace].name(&mut graph, recording);
                findings.extend(self.heap_maps[trace].unused());
                graph
            }
            Place::Hprof { hprof, .. } => {
                let input = &self.hprofs[hprof];
                self.progress.begin(&format!("reading {}", input.name));
                let graph = android_hprof::read(input.bytes.clone(), &self.hprof_options(at));
                let mut graph = graph.map_err(|source| JavaError::Hprof {
                    name: input.name.clone(),
                    source,
                })?;
                if graph.facts.pid.is_none() {
                    graph.facts.pid = listed.pid;
                }
                if graph.facts.process.is_empty() {
                    graph.facts.process.clone_from(&listed.process);
                }
                let named = self.maps.name_heap(&mut graph, &self.known);
                findings.extend(named.findings);
                maps = named.maps;
                graph
            }
        };
        let mut graph = graph;
        findings.extend(minified(&graph));
        root_truncated(&mut graph, self.options.follow);
        let mut heap = self.describe(at, graph);
        findings.append(&mut heap.findings);
        heap.findings = findings;
        heap.maps = maps;
        Ok(heap)
    }

    /// Returns the number of dumps that `N` selects from; 1 if this is the only Java heap of its
    /// process.
    fn among(&self, dump: &Listed) -> usize {
        let same = self.listed.iter().filter(|other| other.pid == dump.pid);
        if same.clone().count() == 1 {
            return 1;
        }
        let outer = self.outer.as_ref();
        let beside = outer.map_or(0, |outer| outer.last_number(dump.pid.unwrap_or(0)));
        same.count().max(beside as usize).max(dump.number as usize)
    }

    /// Returns the heap for a graph read from one of [`JavaFile::dumps`], with its facts.
    pub(crate) fn describe(&self, at: usize, graph: HeapGraph) -> JavaHeap {
        let listed = &self.listed[at];
        let mut heap = JavaHeap::new(
            graph,
            self.path.clone(),
            listed.number,
            self.options.follow,
            self.progress.clone(),
        );
        heap.label.clone_from(&listed.label);
        match listed.place {
            Place::Trace { trace, dump } => {
                let dumps = self.traces[trace].java_dumps();
                heap.out_of_memory.clone_from(&dumps[dump].out_of_memory);
            }
            Place::Hprof { hprof, dump } => {
                let input = &self.hprofs[hprof];
                let is_news = |found: &Finding| dump.is_none() || found.kind != SEVERAL_DUMPS;
                heap.findings.retain(is_news);
                let damage = input.damage.as_ref();
                let damage = damage.map(|what| trace_findings::damaged(&input.name, what));
                heap.findings.splice(0..0, damage);
            }
        }
        heap.among = self.among(listed);
        if heap.graph.facts.among > 1 && heap.among == 1 {
            heap.number = heap.graph.facts.number;
            heap.among = heap.graph.facts.among as usize;
        }
        heap
    }
}

/// Makes all objects roots if a dump is truncated before its roots, because almost nothing is
/// reachable then.
pub fn root_truncated(graph: &mut HeapGraph, follow: Follow) {
    if graph.facts.losses.truncated && !graph.is_empty() {
        let reached = Reachable::new(graph, follow).count();
        if reached.saturating_mul(100) < graph.len() as u64 {
            graph.root_unreachable(follow);
        }
    }
}

/// Opens an input and reads the selected dump.
///
/// # Errors
/// As [`JavaFile::open`], [`JavaFile::choose`] and [`JavaFile::read`], or if the dump contains no
/// objects.
pub fn open(
    input: &JavaInput,
    opened: OpenedJava,
    options: JavaOptions,
    progress: &ProgressReporter,
) -> Result<JavaHeap, JavaError> {
    let mut file = JavaFile::open(&input.path, opened, options, progress)?;
    file.list_dumps_of_hprof(&input.which);
    let at = file.choose(input.which.as_ref())?;
    let mut heap = file.read(at)?;
    heap.findings.append(&mut file.missing);
    if heap.graph.is_empty() {
        return Err(JavaError::no_objects(&heap));
    }
    Ok(heap)
}

/// Directory of companion Java heaps in a recording directory.
pub const DIRECTORY: &str = "java";

/// Returns whether a recording has Java heaps in a directory of their own.
pub fn has_java(recording: &Path) -> bool {
    recording
        .join(DIRECTORY)
        .join(manifest::FILE_NAME)
        .is_file()
}

/// Returns the directory `java` with the Java heaps of a recording that has none of its own, as
/// `demo` creates it.
pub(crate) fn lying_in(path: &Path) -> Option<PathBuf> {
    let has_java = |directory: &Path| {
        let is_recording = directory.join(manifest::FILE_NAME).is_file();
        let manifest = is_recording
            .then(|| Manifest::read(directory).ok())
            .flatten()?;
        Some(manifest.dumps.java.iter().any(JavaDump::has_heap))
    };
    let inner = path.join(DIRECTORY);
    (!has_java(path)? && has_java(&inner)?).then_some(inner)
}

/// Returns the manifest of the recording that the input is or is part of. An unreadable one only
/// costs labels.
pub(crate) fn manifest_of(path: &Path) -> Result<Option<Manifest>, ManifestError> {
    if path.is_dir() {
        if !path.join(manifest::FILE_NAME).is_file() {
            return Ok(None);
        }
        return Ok(Some(Manifest::read(path)?));
    }
    Ok(recorded::beside(path)?.map(recorded::Recorded::into_manifest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(pid: u64, number: u32, label: Option<&str>, open: bool) -> Listed {
        Listed {
            number,
            label: label.map(str::to_owned),
            pid: Some(pid),
            process: format!("app{pid}"),
            time_ns: None,
            time: None,
            open,
            order: 0,
            place: Place::Hprof {
                hprof: 0,
                dump: None,
            },
        }
    }

    fn file(listed: Vec<Listed>) -> JavaFile {
        JavaFile {
            path: PathBuf::from("out"),
            options: JavaOptions::default(),
            progress: ProgressReporter::default(),
            outer: None,
            labels: Vec::new(),
            listed,
            maps: R8Mappings::open(&NameOptions::default()).expect("nothing is named"),
            traces: Vec::new(),
            heap_maps: Vec::new(),
            hprofs: Vec::new(),
            known: Arc::default(),
            findings: Vec::new(),
            missing: Vec::new(),
        }
    }

    #[test]
    fn a_number_of_several_processes_means_a_dump_of_each() {
        let file = file(vec![
            listed(7, 1, Some("before"), false),
            listed(9, 1, Some("before"), false),
            listed(7, 2, None, false),
            listed(9, 2, None, true),
        ]);
        let all = |which: &str| file.choose_all(Some(&DumpSelector::parse(which))).ok();
        assert_eq!(all("1"), Some(vec![0, 1]));
        assert_eq!(all("2"), Some(vec![2, 3]));
        assert_eq!(all("before"), Some(vec![0, 1]));
        assert_eq!(all("last"), Some(vec![1, 2]), "open ones are no last ones");
        assert_eq!(all("end"), all("last"));
        assert_eq!(all("3"), None);
        for which in [
            None,
            Some(DumpSelector::Number(1)),
            Some(DumpSelector::Last),
        ] {
            let error = file.choose(which.as_ref()).expect_err("of which process?");
            assert!(
                matches!(error, JavaError::SeveralProcesses { .. }),
                "{error}"
            );
        }
        assert_eq!(file.name_of(2), "@2 of app7 (7)");
    }

    #[test]
    fn of_one_process_the_last_whole_dump_is_meant() {
        let mut file = file(vec![listed(7, 1, None, false), listed(7, 2, None, true)]);
        assert_eq!(file.choose(None).ok(), Some(0));
        assert_eq!(file.choose(Some(&DumpSelector::Number(2))).ok(), Some(1));
        assert_eq!(file.name_of(1), "@2");
        assert!(matches!(
            file.choose(Some(&DumpSelector::Number(3))),
            Err(JavaError::NoSuchDump { .. })
        ));
        assert_eq!(file.choose(Some(&DumpSelector::End)).ok(), Some(0));
        file.labels.push("end".to_owned());
        let error = file.choose(Some(&DumpSelector::End)).unwrap_err();
        let help = heaptap_base::error::Failure::from(error).help.unwrap();
        assert_eq!(
            help,
            "no dump came for this label. Available: @1, @2, @last"
        );
    }
}
