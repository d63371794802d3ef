//! Traces to gzipped pprofs: opens an input, decodes it, writes one file a dump, and says what
//! was found. `record` and `demo` end in it too.
//!
//! Decoding goes on while finished dumps are encoded, compressed and written by other threads.

use super::error::ConvertError;
use super::java_profiles::Pending;
use super::java_summary::JavaSummary;
use super::selection::{Choices, Selection};
use crate::error::ErrorClass;
use crate::export::gzip::Gzip;
use crate::export::pprof::{Pprof, PprofOptions};
use crate::heaps::trace_findings;
use crate::import::{self, OpenTrace};
use crate::naming::coverage::{Coverage, Tally};
use crate::naming::frames::{LookupControl, LookupScope, Named, Namer};
use crate::naming::names::NameOptions;
use crate::naming::packet_files::PacketFiles;
use crate::naming::r8_mappings::{MapsError, R8Mappings, Renamed, UsedMap, add_used};
use crate::profile::{DumpKind, DumpNumbers, Health, HeapDump, LastDump, Package};
use crate::results::deduped::Deduped;
use crate::results::findings::{self, Finding};
use crate::results::manifest;
use crate::results::output::file_name;
use crate::results::summary::{HeapSummary, Summarizer};
use crate::results::whole_file::write_named;
use crate::stacks::naming::FrameNamer;
use crate::trace::Surveyed;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

mod java;

/// Where a trace comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A file or a recording's folder.
    Path(PathBuf),
    /// Standard input.
    Stdin,
}

/// What to convert, and how.
#[derive(Debug, Clone)]
pub struct Request {
    /// The input.
    pub input: Input,
    /// An existing folder for the files.
    pub output: PathBuf,
    /// Which dumps.
    pub selection: Selection,
    /// How profiles are written.
    pub pprof: PprofOptions,
    /// Whether Java heaps get a profile over their dominator tree as well.
    pub dominators: bool,
    /// Whether the classes that retain most are told of Java heaps.
    pub java_summaries: bool,
    /// Where names of frames come from.
    pub names: NameOptions,
    /// Who watches them come.
    pub control: LookupControl,
    /// A mapping file that was given and cannot be used ends the conversion. Else it is told.
    pub bad_maps_fail: bool,
    /// Which frames are looked up.
    pub scope: LookupScope,
    /// The plain trace of which `output` shall hold the symbols that were found, alone and
    /// behind it; `None` where only profiles are wanted.
    pub packets_for: Option<Plain>,
    /// Names of processes that the trace may hold without one, by id.
    pub process_names: BTreeMap<u64, String>,
    /// The name of every process that neither the trace nor those name.
    pub only_process: Option<String>,
}

impl Request {
    /// The name of a process: what the trace says, else what is known besides.
    fn process_of<'a>(&'a self, pid: u64, recorded: &'a str) -> &'a str {
        if !recorded.is_empty() {
            return recorded;
        }
        let known = self.process_names.get(&pid).or(self.only_process.as_ref());
        known.map_or("", String::as_str)
    }

    /// Opens its mapping files: once, as a pipe gives its bytes but once.
    ///
    /// # Errors
    /// Where one that was given cannot be used, and that is to end the conversion.
    pub fn maps(&self) -> Result<R8Mappings, MapsError> {
        match self.bad_maps_fail {
            true => R8Mappings::open(&self.names),
            false => Ok(R8Mappings::open_what_opens(&self.names)),
        }
    }
}

/// A trace as the device wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plain {
    /// The file.
    pub path: PathBuf,
    /// Bytes of it up to where it breaks off inside a packet; `None` where it is what is
    /// converted, and that will show.
    pub whole_bytes: Option<u64>,
}

/// What a conversion found and wrote.
#[derive(Debug)]
pub struct Converted {
    /// Every dump that was wanted, in order; those with samples have a file.
    pub dumps: Vec<manifest::Dump>,
    /// Every dump of a Java heap that was wanted, in order; those with objects have a file.
    pub java: Vec<manifest::JavaDump>,
    /// Per process and heap the totals and the largest callsites.
    pub heaps: Vec<HeapSummary>,
    /// The last Java heap of each process, where that was asked for.
    pub java_heaps: Vec<JavaSummary>,
    /// What the user should know, of the trace and of each heap's last dump.
    pub findings: Vec<Finding>,
    /// How many frames have names.
    pub symbolization: manifest::Symbolization,
    /// Names of the files of packets that were written.
    pub packets: Vec<&'static str>,
    /// Loss and damage, of each trace in the input.
    pub health: Vec<Health>,
    /// The phone's packages, where a trace lists them.
    pub packages: Vec<Package>,
}

impl Converted {
    /// What the exit code tells of; `None` where nothing is missing.
    pub fn class(&self) -> Option<ErrorClass> {
        let empty = self.dumps.iter().all(|dump| dump.file.is_none())
            && self.java.iter().all(|dump| dump.file.is_none());
        let classes = self.findings.iter().filter_map(|finding| finding.class);
        if empty {
            // That nothing came says more than what kept it from coming.
            let graver = classes.filter(|class| *class != ErrorClass::Incomplete);
            return ErrorClass::first_of(graver.chain([ErrorClass::Empty]));
        }
        ErrorClass::first_of(classes)
    }

    /// Whether a trace stops early: what it has is whole, and later dumps are missing.
    pub fn is_cut(&self) -> bool {
        self.findings
            .iter()
            .any(|found| found.kind == findings::TRACE_CUT)
    }

    /// The findings as the manifest keeps them.
    pub fn warnings(&self) -> Vec<manifest::Warning> {
        self.findings
            .iter()
            .map(|finding| manifest::Warning {
                kind: finding.kind.to_owned(),
                message: finding.message.clone(),
                help: finding.help.clone(),
                pid: finding.pid,
                dumps: {
                    let native = self.dumps.iter().map(manifest::Dump::id);
                    let java = self.java.iter().map(manifest::JavaDump::id);
                    let all = native.chain(java);
                    all.filter(|dump| finding.pid == Some(dump.pid)).collect()
                },
            })
            .collect()
    }
}

/// Converts. Blocks: decodes on this thread, writes on others. Files appear under their names
/// only when they are whole.
///
/// # Errors
/// Where the input holds no trace, or a file can't be written. A damaged trace is no error:
/// what it holds is converted, and the findings say what is wrong.
pub fn convert(request: &Request) -> Result<Converted, ConvertError> {
    convert_with(request, &request.maps()?)
}

/// The same with the mapping files of the request, for whoever needs them once more.
///
/// # Errors
/// As [`convert`].
pub fn convert_with(request: &Request, maps: &R8Mappings) -> Result<Converted, ConvertError> {
    let (traces, hprofs) = match &request.input {
        Input::Path(path) => java::open_path(path)?,
        Input::Stdin => {
            let traces = import::open_stream(io::stdin().lock(), "standard input")?;
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
        all: Converted {
            dumps: Vec::new(),
            java: Vec::new(),
            heaps: Vec::new(),
            java_heaps: Vec::new(),
            findings: Vec::new(),
            symbolization: manifest::Symbolization::default(),
            packets: Vec::new(),
            health: Vec::new(),
            packages: Vec::new(),
        },
    };
    for trace in traces {
        run.trace(trace)?;
    }
    run.hprofs(hprofs)?;
    run.finish()
}

/// A conversion under way.
struct Run<'a> {
    request: &'a Request,
    namer: Namer,
    maps: &'a R8Mappings,
    choices: Choices,
    /// Those of all dumps of the input, wanted or not.
    numbers: DumpNumbers,
    tally: Tally,
    mappings: Vec<manifest::MappingFile>,
    /// The mapping files of all traces.
    used: Vec<UsedMap>,
    /// Traces that hold Java heaps: those come once all native ones are done.
    java: Vec<Pending>,
    packets: PacketFiles,
    /// Bytes of the last trace up to where it breaks off.
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

    /// Names the frames of a trace as far as that can be done. Nothing that goes wrong with
    /// names keeps it from being converted.
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
            // What was known before is written anew with what was found now.
            let all = self.request.scope == LookupScope::Better;
            if let Err(error) = self.packets.add_symbols(recording, |f| all || named.has(f)) {
                self.all.findings.push(findings::packets_unwritten(&error));
            }
        }
        let mut renamed = self.maps.name(surveyed)?;
        self.all.findings.append(&mut renamed.findings);
        Ok((named, renamed))
    }

    /// Keeps the mapping files of a trace, once it is known what they named.
    fn took_maps(&mut self, renamed: &Renamed) {
        let mappings = renamed.maps.iter().map(UsedMap::in_manifest);
        self.mappings.extend(mappings);
        add_used(&mut self.used, renamed.maps.clone());
    }

    /// Puts the names of Java code into their file, where maps named any.
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
        // As many as can run, and none waiting: memory holds a few dumps, never all.
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get().min(MOST_WRITERS));
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
            // Should all writers be gone, so is the receiver, and sending fails instead of waiting.
            drop(receive);
            let outcome = trace.read_dumps(|mut dump| -> Result<(), ConvertError> {
                if request.control.is_cancelled() {
                    return Err(ConvertError::Interrupted);
                }
                dump.process = request.process_of(dump.pid, &dump.process).to_owned();
                let number = numbers.next(dump.pid, &dump.heap);
                if !request.selection.takes(&dump) {
                    choices.add(&dump);
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
                let mut findings = findings::findings_for_dump(&dump);
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
        let health = match take(&failure) {
            Some(error) => return Err(error),
            None => outcome?,
        };
        let damage = input.damage.as_deref();
        let told = trace_findings::of_trace(&input.name, damage, &health, sampled > 0);
        all.findings.extend(told);
        // Where all was left out, the selection is to blame.
        let is_java_alone = recording.requests.is_empty() && !trace.java_dumps().is_empty();
        let is_unclear = sampled == 0 && !explained && !is_java_alone;
        if is_unclear && (!last.is_empty() || choices.is_empty()) {
            let has_entries = !last.is_empty();
            all.findings
                .extend(trace_findings::why_empty(&recording, &health, has_entries));
        }
        // What is missing behind the last dump does not concern an earlier one.
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
const MOST_WRITERS: usize = 4;

/// A dump on its way into a file.
struct Job {
    dump: HeapDump,
    comments: Vec<String>,
    path: PathBuf,
}

type Failure = Mutex<Option<ConvertError>>;

fn take(failure: &Failure) -> Option<ConvertError> {
    match failure.lock() {
        Ok(mut failure) => failure.take(),
        Err(poisoned) => poisoned.into_inner().take(),
    }
}

/// Gives a dump to whichever writer is free. After a failure there is no use in going on.
fn hand_over(send: &SyncSender<Job>, job: Job, failure: &Failure) -> Result<(), ConvertError> {
    if let Some(error) = take(failure) {
        return Err(error);
    }
    let path = job.path.clone();
    send.send(job).map_err(|_| ConvertError::Write {
        path,
        source: io::Error::other("its writer stopped"),
    })
}

/// Encodes, compresses and writes dumps until no more come. Goes on after a failure, so that
/// the decoder never waits for a writer that is gone.
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

/// What a profile says of itself, for whoever opens it alone.
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
        DumpKind::Cumulative => sampled.to_owned(),
        DumpKind::AtMaximum => format!(
            "space and objects are those of the moment when the heap was largest; frees are not \
             known; {sampled}"
        ),
        DumpKind::AllocationsOnly => {
            format!("allocations only: what was freed is not known; {sampled}")
        }
    });
    if !dump.flags.from_startup && !dump.flags.rejected_concurrent {
        comments.push("hooked while it ran; what it allocated before is unseen".to_owned());
    }
    // In words that are read again: a dump without its last part is no round of a series.
    let mut flags = dump.flags.words();
    if dump.unfinished {
        flags.push("unfinished".to_owned());
    }
    if !flags.is_empty() {
        comments.push(format!("flags: {}", flags.join(", ")));
    }
    comments.extend(findings.iter().map(|finding| finding.message.clone()));
    comments
}
