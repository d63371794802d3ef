//! A running conversion. Decoding continues while other threads encode, compress and write finished
//! dumps.

use super::request::{Converted, Request};
use crate::heaps::trace_findings;
use crate::names::coverage::{Coverage, Tally};
use crate::names::frames::{LookupScope, Named, Namer};
use crate::names::packet_files::PacketFiles;
use crate::names::r8_mappings::{R8Mappings, Renamed, UsedMap, add_used};
use crate::recording::conversion::error::ConvertError;
use crate::recording::conversion::java_profiles::Pending;
use crate::recording::conversion::selection::Choices;
use heaptap_base::parallel::lock;
use heaptap_export::gzip::Gzip;
use heaptap_export::pprof::Pprof;
use heaptap_input::OpenTrace;
use heaptap_model::profile::comments::{AT_MAXIMUM, ATTACHED, FLAGS, UNFINISHED};
use heaptap_model::profile::{DumpKind, DumpNumbers, HeapDump, LastDump};
use heaptap_model::stacks::naming::FrameNamer;
use heaptap_results::deduped::Deduped;
use heaptap_results::file_names::file_name;
use heaptap_results::findings::{self, Finding};
use heaptap_results::manifest;
use heaptap_results::summary::Summarizer;
use heaptap_results::whole_file::write_named;
use perfetto_heap::Surveyed;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

/// A running conversion.
pub(super) struct Run<'a> {
    pub(super) request: &'a Request,
    namer: Namer,
    pub(super) maps: &'a R8Mappings,
    pub(super) choices: Choices,
    /// Numbers of all dumps of the input, selected or not.
    pub(super) numbers: DumpNumbers,
    tally: Tally,
    pub(super) mappings: Vec<manifest::MappingFile>,
    /// R8 mappings of all traces.
    pub(super) used: Vec<UsedMap>,
    /// Traces with Java heaps, which are converted after all native ones.
    pub(super) java: Vec<Pending>,
    packets: PacketFiles,
    /// Bytes of the last trace before its truncated packet.
    whole_bytes: u64,
    pub(super) all: Converted,
}

impl<'a> Run<'a> {
    pub(super) fn new(request: &'a Request, maps: &'a R8Mappings) -> Run<'a> {
        Run {
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
        }
    }

    pub(super) fn finish(mut self) -> Result<Converted, ConvertError> {
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
    pub(super) fn took_maps(&mut self, renamed: &Renamed) {
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

    pub(super) fn trace(&mut self, input: OpenTrace) -> Result<(), ConvertError> {
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
        let deduped = Deduped::from_recording(&recording);
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
