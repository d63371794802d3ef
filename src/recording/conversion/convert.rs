//! Traces to gzipped pprofs: opens an input, decodes it, writes one file per dump, and returns
//! findings. `record` and `demo` also use it.
//!
//! Decoding continues while other threads encode, compress and write finished dumps.

use super::error::ConvertError;
use super::java_profiles::Pending;
use super::java_summary::JavaSummary;
use super::selection::{Choices, Selection};
use crate::heaps::trace_findings;
use crate::names::coverage::{Coverage, Tally};
use crate::names::frames::{LookupControl, LookupScope, Named, Namer};
use crate::names::names::NameOptions;
use crate::names::packet_files::PacketFiles;
use crate::names::r8_mappings::{MapsError, R8Mappings, Renamed, UsedMap, add_used};
use heaptap_base::error::ErrorClass;
use heaptap_base::parallel::lock;
use heaptap_export::gzip::Gzip;
use heaptap_export::pprof::{Pprof, PprofOptions};
use heaptap_input::OpenTrace;
use heaptap_model::profile::comments::{AT_MAXIMUM, ATTACHED, FLAGS, UNFINISHED};
use heaptap_model::profile::{DumpKind, DumpNumbers, Health, HeapDump, LastDump, Package};
use heaptap_model::stacks::naming::FrameNamer;
use heaptap_results::deduped::Deduped;
use heaptap_results::file_names::file_name;
use heaptap_results::findings::{self, Finding};
use heaptap_results::manifest;
use heaptap_results::summary::{HeapSummary, Summarizer};
use heaptap_results::whole_file::write_named;
use perfetto_heap::Surveyed;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

mod java;

/// Source of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A file or a recording directory.
    Path(PathBuf),
    /// Standard input.
    Stdin,
}

impl Input {
    /// Returns the input that was typed; `-` is standard input.
    pub fn of(typed: &Path) -> Input {
        match typed == Path::new(heaptap_input::STDIN) {
            true => Input::Stdin,
            false => Input::Path(typed.to_owned()),
        }
    }

    /// Returns the path of a file or directory.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Input::Path(path) => Some(path),
            Input::Stdin => None,
        }
    }
}

/// A conversion request.
#[derive(Debug, Clone)]
pub struct Request {
    pub input: Input,
    /// Existing directory for the files.
    pub output: PathBuf,
    /// Selection of dumps.
    pub selection: Selection,
    /// Profile options.
    pub pprof: PprofOptions,
    /// If true, write dominator profiles of Java heaps as well.
    pub dominators: bool,
    /// If true, summarize the classes that retain most in Java heaps.
    pub java_summaries: bool,
    /// Symbol sources.
    pub names: NameOptions,
    /// Progress and cancellation of symbolization.
    pub control: LookupControl,
    /// True if an unusable given R8 mapping ends the conversion. Otherwise it is reported.
    pub bad_maps_fail: bool,
    /// Frames to look up.
    pub scope: LookupScope,
    /// The plain trace whose packet files are written to `output`, separately and appended to it;
    /// `None` to write only profiles.
    pub packets_for: Option<Plain>,
    /// Names of processes that might be unnamed in the trace, by ID.
    pub process_names: BTreeMap<u64, String>,
    /// Name for processes without a name in the trace or in `process_names`.
    pub only_process: Option<String>,
}

impl Request {
    /// Returns a request that converts everything and fails for unusable R8 mappings.
    pub fn new(input: Input, output: &Path, names: NameOptions) -> Request {
        Request {
            input,
            output: output.to_owned(),
            selection: Selection::default(),
            pprof: PprofOptions::default(),
            dominators: false,
            java_summaries: false,
            names,
            control: LookupControl::default(),
            bad_maps_fail: true,
            scope: LookupScope::Missing,
            packets_for: None,
            process_names: BTreeMap::new(),
            only_process: None,
        }
    }

    /// Returns the name of a process: from the trace, otherwise from the request.
    fn process_of<'a>(&'a self, pid: u64, recorded: &'a str) -> &'a str {
        if !recorded.is_empty() {
            return recorded;
        }
        let known = self.process_names.get(&pid).or(self.only_process.as_ref());
        known.map_or("", String::as_str)
    }

    /// Opens the R8 mappings: only once, because pipes can be read only once.
    ///
    /// # Errors
    /// Returns an error if a given mapping is unusable and should end the conversion.
    pub fn maps(&self) -> Result<R8Mappings, MapsError> {
        match self.bad_maps_fail {
            true => R8Mappings::open(&self.names),
            false => Ok(R8Mappings::open_what_opens(&self.names)),
        }
    }
}

/// A trace as written by the device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plain {
    pub path: PathBuf,
    /// Number of bytes before a truncated packet; `None` if it is the input, for which the
    /// conversion determines it.
    pub whole_bytes: Option<u64>,
}

/// Results of a conversion.
#[derive(Debug, Default)]
pub struct Converted {
    /// All selected dumps, in order; those with samples have a file.
    pub dumps: Vec<manifest::Dump>,
    /// All selected Java heap dumps, in order; those with objects have a file.
    pub java: Vec<manifest::JavaDump>,
    /// Per process and heap the totals and the largest callsites.
    pub heaps: Vec<HeapSummary>,
    /// Last Java heap of each process, if requested.
    pub java_heaps: Vec<JavaSummary>,
    /// Findings about the trace and the last dump of each heap.
    pub findings: Vec<Finding>,
    /// Symbolization coverage.
    pub symbolization: manifest::Symbolization,
    /// Names of the files of packets that were written.
    pub packets: Vec<&'static str>,
    /// Loss and damage, of each trace in the input.
    pub health: Vec<Health>,
    /// Packages of the device, if a trace lists them.
    pub packages: Vec<Package>,
}

impl Converted {
    /// Returns the exit code class; `None` if the data are complete.
    pub fn class(&self) -> Option<ErrorClass> {
        let empty = self.dumps.iter().all(|dump| dump.file.is_none())
            && self.java.iter().all(|dump| dump.file.is_none());
        match empty {
            true => findings::class_of_empty(&self.findings),
            false => findings::class(&self.findings),
        }
    }

    /// Returns whether a trace stops early: its data are intact, but later dumps are missing.
    pub fn is_cut(&self) -> bool {
        self.findings
            .iter()
            .any(|found| found.kind == findings::TRACE_CUT)
    }

    /// Converts the findings to manifest warnings.
    pub fn warnings(&self) -> Vec<manifest::Warning> {
        self.findings
            .iter()
            .map(|finding| manifest::Warning {
                dumps: {
                    let native = self.dumps.iter().map(manifest::Dump::id);
                    let java = self.java.iter().map(manifest::JavaDump::id);
                    let all = native.chain(java);
                    all.filter(|dump| finding.pid == Some(dump.pid)).collect()
                },
                ..finding.clone().into_warning()
            })
            .collect()
    }
}

/// Converts. Blocks: decodes on this thread, writes on others. Files get their names only when they
/// are complete.
///
/// # Errors
/// Returns an error if the input contains no trace, or a file cannot be written. A damaged trace is
/// not an error: its readable data are converted, and findings describe the damage.
pub fn convert(request: &Request) -> Result<Converted, ConvertError> {
    convert_with(request, &request.maps()?)
}

/// As [`convert`], with the opened mappings of the request, for callers that need them again.
///
/// # Errors
/// As [`convert`].
pub fn convert_with(request: &Request, maps: &R8Mappings) -> Result<Converted, ConvertError> {
    let (traces, hprofs) = match &request.input {
        Input::Path(path) => java::open_path(path)?,
        Input::Stdin => {
            let traces = heaptap_input::open_stream(io::stdin().lock(), heaptap_input::STDIN_NAME)?;
            (traces, Vec::new())
        }
    };
    let mut run = Run {
        request,
        namer: Namer::new(request.names.clone(), request.control.clone()),
        maps,
        choices: Choices::default(),
        numbers: DumpNumbers::default(),
        tally: Tally::default(),
        mappings: Vec::new(),
        used: Vec::new(),
        java: Vec::new(),
        packets: PacketFiles::new(&request.output),
        whole_bytes: 0,
        all: Converted::default(),
    };
    for trace in traces {
        run.trace(trace)?;
    }
    run.hprofs(hprofs)?;
    run.finish()
}

/// A running conversion.
struct Run<'a> {
    request: &'a Request,
    namer: Namer,
    maps: &'a R8Mappings,
    choices: Choices,
    /// Numbers of all dumps of the input, selected or not.
    numbers: DumpNumbers,
    tally: Tally,
    mappings: Vec<manifest::MappingFile>,
    /// R8 mappings of all traces.
    used: Vec<UsedMap>,
    /// Traces with Java heaps, which are converted after all native ones.
    java: Vec<Pending>,
    packets: PacketFiles,
    /// Bytes of the last trace before its truncated packet.
    whole_bytes: u64,
    all: Converted,
}

impl Run<'_> {
    fn finish(mut self) -> Result<Converted, ConvertError> {
        for pending in std::mem::take(&mut self.java) {
            self.java_heaps(pending)?;
        }
        if self.all.dumps.is_empty() && self.all.java.is_empty() && !self.choices.is_empty() {
            return Err(ConvertError::NoneSelected(self.choices));
        }
        let converted = self
            .all
            .dumps
            .iter()
            .map(|dump| (Some(dump.pid), dump.process.as_str()));
        let java = self
            .all
            .java
            .iter()
            .map(|dump| (Some(dump.pid), dump.process.as_str()));
        let others = self
            .choices
            .processes
            .iter()
            .map(|(&pid, name)| (Some(pid), name.as_str()));
        let there = converted.chain(java).chain(others);
        let missing = self.request.selection.processes.missing("a dump of", there);
        self.all.findings.extend(missing);
        if self.request.packets_for.is_some() {
            self.keep_maps();
        }
        if let Some(plain) = &self.request.packets_for {
            let bytes = plain.whole_bytes.unwrap_or(self.whole_bytes);
            let packets = self.packets;
            if let Err(error) = packets.finish(&plain.path, bytes, &mut self.all.packets) {
                self.all.findings.push(findings::packets_unwritten(&error));
            }
        }
        self.all.symbolization = self.tally.into_manifest();
        self.all.symbolization.mappings = self.mappings;
        Ok(self.all)
    }

    /// Symbolizes the frames of a trace as far as possible. Failures do not prevent its conversion.
    fn name(&mut self, surveyed: &mut Surveyed) -> Result<(Named, Renamed), ConvertError> {
        let named = self
            .namer
            .name(surveyed.recording_mut(), self.request.scope);
        if self.request.control.is_cancelled() {
            return Err(ConvertError::Interrupted);
        }
        self.all.findings.extend(named.findings());
        if self.request.packets_for.is_some() {
            let recording = surveyed.recording();
            // Earlier names are written again together with new ones.
            let all = self.request.scope == LookupScope::Better;
            if let Err(error) = self.packets.add_symbols(recording, |f| all || named.has(f)) {
                self.all.findings.push(findings::packets_unwritten(&error));
            }
        }
        let mut renamed = self.maps.name(surveyed)?;
        self.all.findings.append(&mut renamed.findings);
        Ok((named, renamed))
    }

    /// Stores the R8 mappings of a trace, after their results are known.
    fn took_maps(&mut self, renamed: &Renamed) {
        let mappings = renamed.maps.iter().map(UsedMap::in_manifest);
        self.mappings.extend(mappings);
        add_used(&mut self.used, renamed.maps.clone());
    }

    /// Writes Java names to their file, if mappings named any.
    fn keep_maps(&mut self) {
        if let Err(error) = self.packets.keep_maps(&self.used) {
            self.all.findings.push(findings::packets_unwritten(&error));
        }
    }

    fn trace(&mut self, input: OpenTrace) -> Result<(), ConvertError> {
        let mut surveyed = Surveyed::read(input.source)?;
        self.whole_bytes = surveyed.whole_bytes();
        let (named, renamed) = self.name(&mut surveyed)?;
        let Run {
            request,
            choices,
            numbers,
            all,
            ..
        } = self;
        let mut trace = surveyed.seal();
        let recording = Arc::clone(trace.recording());
        let pprof = Pprof::new(Arc::clone(&recording), request.pprof);
        let deduped = Deduped::of(&recording);
        let mut summarizer = Summarizer::default();
        let mut coverage = Coverage::default();
        let mut last: BTreeMap<(u64, String), (Option<u64>, Vec<Finding>)> = BTreeMap::new();
        let mut sampled = 0u64;
        let mut explained = false;
        // No queue: memory contains a few dumps, never all.
        let threads = heaptap_base::parallel::threads().get().min(MAX_WRITERS);
        let (send, receive) = sync_channel::<Job>(0);
        let receive = Arc::new(Mutex::new(receive));
        let failure = Mutex::new(None);
        let outcome = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..threads)
                .map(|_| {
                    let (receive, pprof, failure) = (Arc::clone(&receive), &pprof, &failure);
                    scope.spawn(move || write_dumps(&receive, pprof, failure))
                })
                .collect();
            // If all writers have ended, so has the receiver, and sending fails instead of
            // blocking.
            drop(receive);
            let outcome = trace.read_dumps(|mut dump| -> Result<(), ConvertError> {
                if request.control.is_cancelled() {
                    return Err(ConvertError::Interrupted);
                }
                dump.process = request.process_of(dump.pid, &dump.process).to_owned();
                let number = numbers.next(dump.pid, &dump.heap);
                if !request.selection.takes(&dump) {
                    choices.add_native(&dump);
                    return Ok(());
                }
                let file = (!dump.samples.is_empty()).then(|| {
                    let heap = file_name(&dump.heap);
                    format!("heap_dump.{number}.{}.{heap}.pb.gz", dump.pid)
                });
                let mut entry = manifest::Dump::new(number, &dump, file.clone());
                entry.time = dump
                    .wall_time_ns
                    .and_then(|ns| time::OffsetDateTime::from_unix_timestamp_nanos(ns.into()).ok());
                all.dumps.push(entry);
                summarizer.add(&dump);
                coverage.add(&dump);
                let mut findings = findings::findings_for_dump(&dump, &recording.tables);
                findings.extend(deduped.finding(&dump));
                let comments = comments(&dump, &findings);
                explained |= dump.flags.has_ended();
                last.insert((dump.pid, dump.heap.clone()), (dump.time_ns, findings));
                let Some(file) = file else { return Ok(()) };
                sampled += 1;
                let job = Job {
                    dump,
                    comments,
                    path: request.output.join(file),
                };
                hand_over(&send, job, &failure)
            });
            drop(send);
            for writer in writers {
                if let Err(panic) = writer.join() {
                    std::panic::resume_unwind(panic);
                }
            }
            outcome
        });
        let health = match lock(&failure).take() {
            Some(error) => return Err(error),
            None => outcome?,
        };
        let damage = input.damage.as_deref();
        let told = trace_findings::of_trace(&input.name, damage, &health, sampled > 0);
        all.findings.extend(told);
        // If everything was left out, the selection is the cause.
        let is_java_alone = recording.requests.is_empty() && !trace.java_dumps().is_empty();
        let is_unclear = sampled == 0 && !explained && !is_java_alone;
        if is_unclear && (!last.is_empty() || choices.is_empty()) {
            let has_entries = !last.is_empty();
            all.findings
                .extend(trace_findings::why_empty(&recording, &health, has_entries));
        }
        // Data missing after the last dump do not affect an earlier one.
        let is_last = |lost: &&LastDump| {
            let chosen = last.get(&(lost.pid, lost.heap.clone()));
            chosen.is_some_and(|(time_ns, _)| *time_ns == lost.time_ns)
        };
        let lost = health.final_dumps_missing.iter().filter(is_last);
        let lost: Vec<Finding> = lost.map(findings::final_dump_missing).collect();
        let of_dumps = last.into_values().flat_map(|(_, found)| found);
        all.findings.extend(of_dumps.chain(lost));
        all.heaps.extend(summarizer.finish(&recording));
        coverage.finish(&named, &mut FrameNamer::new(&recording), &mut self.tally);
        all.health.push(health);
        all.packages.extend(recording.packages.iter().cloned());
        if trace.java_dumps().is_empty() {
            self.took_maps(&renamed);
        } else {
            self.java.push(Pending { trace, renamed });
        }
        Ok(())
    }
}

/// More would only wait for the decoder, and each holds a dump.
const MAX_WRITERS: usize = 4;

/// A dump to be written to a file.
struct Job {
    dump: HeapDump,
    comments: Vec<String>,
    path: PathBuf,
}

type Failure = Mutex<Option<ConvertError>>;

/// Passes a dump to a free writer. Fails after a write error, because continuing is useless.
fn hand_over(send: &SyncSender<Job>, job: Job, failure: &Failure) -> Result<(), ConvertError> {
    if let Some(error) = lock(failure).take() {
        return Err(error);
    }
    let path = job.path.clone();
    send.send(job).map_err(|_| ConvertError::Write {
        path,
        source: io::Error::other("the writer thread stopped"),
    })
}

/// Encodes, compresses and writes dumps until there are no more. Continues after a failure, so that
/// the decoder never waits for an ended writer.
fn write_dumps(jobs: &Mutex<Receiver<Job>>, pprof: &Pprof, failure: &Failure) {
    let mut gzip = Gzip::default();
    loop {
        let job = match jobs.lock() {
            Ok(jobs) => jobs.recv(),
            Err(_) => return,
        };
        let Ok(job) = job else { return };
        let plain = pprof.encode(&job.dump, &job.comments);
        let path = job.path;
        drop(job.dump);
        let packed = gzip.compress(&plain);
        drop(plain);
        if let Err(source) = write_named(&path, &packed)
            && let Ok(mut failure) = failure.lock()
        {
            failure.get_or_insert(ConvertError::Write { path, source });
        }
    }
}

/// Returns the comments stored in a profile, for users who open it separately.
fn comments(dump: &HeapDump, findings: &[Finding]) -> Vec<String> {
    let mut comments = vec![format!(
        "heaptap {}: pid {}{}{}, heap {}",
        env!("CARGO_PKG_VERSION"),
        dump.pid,
        if dump.process.is_empty() { "" } else { ", " },
        dump.process,
        dump.heap
    )];
    let sampled = match dump.sampling_interval_bytes {
        1 => "every allocation is recorded",
        _ => "bytes are estimates from sampling; objects are numbers of sampled allocations",
    };
    comments.push(match dump.kind {
        DumpKind::Cumulative | DumpKind::JavaHeap | DumpKind::Difference => sampled.to_owned(),
        DumpKind::AtMaximum => format!("{AT_MAXIMUM}; frees are unknown; {sampled}"),
        DumpKind::AllocationsOnly => {
            format!("allocations only: frees are unknown; {sampled}")
        }
    });
    if !dump.flags.from_startup && !dump.flags.rejected_concurrent {
        comments.push(ATTACHED.to_owned());
    }
    let mut flags = dump.flags.words();
    if dump.unfinished {
        flags.push(UNFINISHED.to_owned());
    }
    if !flags.is_empty() {
        comments.push(format!("{FLAGS}{}", flags.join(", ")));
    }
    comments.extend(findings.iter().map(|finding| finding.message.clone()));
    comments
}
