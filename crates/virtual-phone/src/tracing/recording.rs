//! A recording from its start to its file: it steps, flushes and drains the sources, and ends. Runs
//! on the thread of the perfetto client.

use std::io::Write as _;
use std::sync::Arc;

use prost::Message as _;

use super::buffer::{TraceBuffer, framed};
use super::heapprofd::HeapSource;
use super::java_hprof::JavaSource;
use super::oom::{self, Activation};
use super::packets;
use super::probes::{Probes, Written};
use crate::clock::{BootNs, MILLI, SECOND};
use crate::faults::FaultKind;
use crate::fs::FileData;
use crate::init::TRACED;
use crate::kernel::Kernel;
use crate::numbers::mix;
use crate::process::{Pid, SIGINT, SIGKILL, SIGTERM, Stop};
use crate::traced::{Oom, Outcome, RecordingTruth};
use heaptap_proto::perfetto as pb;
use heaptap_proto::perfetto::trace_config::{CompressionType, WriteFlushMode};

/// Delay in nanoseconds from the signal to a complete file; 20 to 80 ms on real devices.
const STOP_TAKES: u64 = 45 * MILLI;
/// Minimum distance of sync markers in nanoseconds.
const SYNC_EVERY: u64 = 10 * SECOND;

struct Recording<'a> {
    kernel: &'a Kernel,
    /// Whether another tool uses the kernel's tracing.
    held: bool,
    pid: Pid,
    session: u64,
    config: pb::TraceConfig,
    file: Arc<FileData>,
    buffers: Vec<TraceBuffer>,
    heaps: Vec<HeapSource>,
    java: Vec<JavaSource>,
    probes: Probes,
    next_write: Option<BootNs>,
    next_flush: Option<BootNs>,
    ends: Option<BootNs>,
    flushes: u64,
    /// Packets of the service for the next write.
    service: Vec<pb::TracePacket>,
    head_written: bool,
    last_sync: BootNs,
    full: bool,
    truth: usize,
    lives: (u64, u64),
    started: BootNs,
}

/// Records until a stop request, a timeout, or another cause of its end.
pub(crate) fn run(
    kernel: &Kernel,
    pid: Pid,
    session: u64,
    config: pb::TraceConfig,
    file: Arc<FileData>,
    path: &str,
) -> Outcome {
    if let Some(ms) = kernel.faults.strikes(FaultKind::ClockJump) {
        kernel.clock.jump(ms.unwrap_or(-3_600_000) * MILLI as i64);
    }
    let awaited = oom::waits(&config).then(|| oom::await_trigger(kernel, pid, session, &config));
    let outcome = awaited.transpose().map(|activation| {
        Recording::start(kernel, pid, session, config, file, path, activation).follow()
    });
    // Without the trigger, the file stays empty.
    let outcome = outcome.unwrap_or_else(|outcome| outcome);
    kernel.change(|state, _| {
        state.tracing.close(session);
        // init starts heapprofd for sessions that need it, and stops it after the last one.
        if state.tracing.sessions.is_empty() {
            crate::init::stop_heapprofd(state);
        }
    });
    outcome
}

/// Returns the interval in which producers are flushed; 0 means never. Since v54, the default,
/// AUTO, ignores the period.
fn flush_period_ms(config: &pb::TraceConfig, kernel: &Kernel) -> u32 {
    let is_auto = match config.write_flush_mode() {
        WriteFlushMode::WriteFlushUnspecified | WriteFlushMode::WriteFlushAuto => true,
        WriteFlushMode::WriteFlushDisabled | WriteFlushMode::WriteFlushEnabled => false,
    };
    match is_auto && kernel.spec.perfetto_version() >= 54 {
        true => 5_000,
        false => config.flush_period_ms(),
    }
}

/// Returns the interval in nanoseconds in which the buffers are written to the file.
fn write_period(config: &pb::TraceConfig) -> u64 {
    match config.file_write_period_ms() {
        0 => 5_000 * MILLI,
        ms => u64::from(ms.max(100)) * MILLI,
    }
}

impl<'a> Recording<'a> {
    fn start(
        kernel: &'a Kernel,
        pid: Pid,
        session: u64,
        mut config: pb::TraceConfig,
        file: Arc<FileData>,
        path: &str,
        activation: Option<Activation>,
    ) -> Self {
        let now = match &activation {
            None => kernel.clock.boot(),
            Some(activation) => {
                config.duration_ms = Some(activation.stop_delay_ms.max(1));
                activation.at
            }
        };
        let mut sources = config.data_sources.iter().filter_map(|s| s.config.as_ref());
        let held = sources.any(|of| of.name() == "linux.ftrace")
            && kernel.faults.has_struck(FaultKind::FtraceHeld);
        // Clients that wait for the start (`perfetto -D`) continue at once.
        let (truth, lives) = kernel.change(|state, _| {
            let tracing = &mut state.tracing;
            tracing.truths.push(RecordingTruth {
                path: path.to_owned(),
                finished: false,
                dumps: Vec::new(),
            });
            if let Some(s) = tracing.session_mut(session) {
                s.started = !held;
            }
            (
                tracing.truths.len() - 1,
                (tracing.traced_life, tracing.heapprofd_life),
            )
        });
        let after = |ms: u32| (ms > 0).then(|| now + u64::from(ms) * MILLI);
        let mut recording = Recording {
            kernel,
            held,
            pid,
            session,
            file,
            buffers: config.buffers.iter().map(TraceBuffer::new).collect(),
            heaps: Vec::new(),
            java: Vec::new(),
            probes: Probes::default(),
            next_write: config
                .write_into_file()
                .then(|| now + write_period(&config)),
            next_flush: after(flush_period_ms(&config, kernel)),
            ends: after(config.duration_ms()),
            flushes: 0,
            service: Vec::new(),
            head_written: false,
            last_sync: 0,
            full: false,
            truth,
            lives,
            started: now,
            config,
        };
        recording.clock(now);
        recording.event(now, |e| e.tracing_started = Some(true));
        if let Some(activation) = &activation {
            recording.service.push(packets::trigger(kernel, activation));
        }
        recording.start_sources(now, activation.and_then(|activation| activation.oom));
        recording.clock(now);
        recording.event(now, |e| e.all_data_sources_started = Some(true));
        recording
    }

    fn start_sources(&mut self, now: BootNs, oom: Option<Oom>) {
        let kernel = self.kernel;
        let sources = self.config.data_sources.clone().into_iter();
        let sources = sources.filter_map(|source| source.config);
        for (source, sequence) in sources.zip(packets::SERVICE + 1..) {
            let buffer = source.target_buffer() as usize;
            let goal = (buffer, sequence);
            // Each Java dump is its own sequence, separate from those of the sources.
            let java_goal = (buffer, 0x1_0000 + sequence);
            let java = || source.java_hprof_config.clone().unwrap_or_default();
            match source.name() {
                "android.heapprofd" => {
                    let config = source.heapprofd_config.unwrap_or_default();
                    let heap = HeapSource::start(kernel, now, self.session, config, goal);
                    self.heaps.push(heap);
                }
                "android.java_hprof" if kernel.spec.android >= 11 => {
                    let java = JavaSource::start(kernel, now, java(), java_goal);
                    self.java.push(java);
                }
                oom::SOURCE => {
                    let start = |oom| JavaSource::start_oom(kernel, oom, java(), java_goal);
                    self.java.extend(oom.map(start));
                }
                "android.packages_list" => {
                    let config = source.packages_list_config.unwrap_or_default();
                    let packet = packets::packages_list(kernel, &config, sequence);
                    self.buffers[buffer].write(&packet);
                }
                "linux.process_stats" => {
                    let config = source.process_stats_config.unwrap_or_default();
                    let written = self.probes.start_processes(kernel, now, &config, goal);
                    self.put(written);
                }
                "linux.sys_stats" => {
                    let config = source.sys_stats_config.unwrap_or_default();
                    self.probes.start_system(now, &config, goal);
                }
                // The tracing service could not set it up.
                "linux.ftrace" if self.held => {}
                "linux.ftrace" => {
                    let config = source.ftrace_config.unwrap_or_default();
                    self.probes.start_ftrace(now, &config, goal);
                }
                // Sources that this phone does not have write nothing.
                _ => {}
            }
        }
    }

    fn clock(&mut self, now: BootNs) {
        let values = self.kernel.clock.at(now);
        self.service
            .push(packets::clocks(values, self.kernel.spec.android));
    }

    fn event(&mut self, now: BootNs, set: impl FnOnce(&mut pb::ServiceEvent)) {
        // Android 10 does not have such packets.
        if self.kernel.spec.android >= 11 {
            self.service.push(packets::event(now, set));
        }
    }

    fn deadline(&self) -> Option<BootNs> {
        let heaps = self.heaps.iter();
        let heaps = heaps.filter_map(|heap| heap.next_deadline(self.kernel));
        let probes = self.probes.next_deadline();
        let own = [probes, self.next_write, self.next_flush, self.ends];
        let java = self.java.iter().filter_map(JavaSource::next_deadline);
        heaps.chain(java).chain(own.into_iter().flatten()).min()
    }

    /// Runs the session to its end.
    fn follow(&mut self) -> Outcome {
        let kernel = self.kernel;
        let started = self.started;
        let accident = |kind| Some((started + kernel.faults.value(kind, 0)? * MILLI, kind));
        let mut accidents: Vec<(BootNs, FaultKind)> = [
            FaultKind::PerfettoDies,
            FaultKind::TracedDies,
            FaultKind::Reboot,
        ]
        .into_iter()
        .filter_map(accident)
        .collect();
        if kernel.faults.has_struck(FaultKind::PerfettoStuck)
            && let Some(p) = kernel.state().processes.get_mut(self.pid)
        {
            p.caught.clear();
            p.ignored.extend([SIGINT, SIGTERM]);
        }
        self.step(started);
        loop {
            let soonest = accidents.iter().map(|(at, _)| *at).min();
            let deadline = [self.deadline(), soonest].into_iter().flatten().min();
            match self.pause(deadline) {
                Ok(()) => {}
                Err(Stop::Killed(signal)) => return Outcome::Killed(signal),
                Err(Stop::Signal) => {
                    let signals = kernel.take_signals(self.pid);
                    if signals.iter().any(|s| [SIGINT, SIGTERM].contains(s)) {
                        return self.stop(kernel.clock.boot());
                    }
                }
            }
            let now = kernel.clock.boot();
            let next = (0..accidents.len()).min_by_key(|i| accidents[*i].0);
            let struck = next.filter(|i| accidents[*i].0 <= now);
            if let Some(outcome) = self.changed() {
                return outcome;
            }
            // Actions run with their own due time, however late the host's thread is; those that
            // are due before an accident still run.
            let until = struck.map_or(now, |i| accidents[i].0);
            while let Some(at) = self.deadline().filter(|at| *at <= until) {
                self.step(at);
                if self.full || self.ends.is_some_and(|end| end <= at) {
                    return self.stop(at);
                }
            }
            if let Some(i) = struck {
                let (_, kind) = accidents.remove(i);
                self.accident(kind);
                continue;
            }
            self.step(now);
            let closed = {
                let mut state = kernel.state();
                state.tracing.session_mut(self.session).is_none()
            };
            if closed || self.full {
                return self.stop(now);
            }
        }
    }

    fn accident(&self, kind: FaultKind) {
        let kernel = self.kernel;
        let root = crate::access::Cred::root();
        match kind {
            FaultKind::PerfettoDies => {
                kernel.signal(&root, self.pid, 9);
            }
            FaultKind::TracedDies => {
                let pid = kernel.state().processes.pid_of(TRACED);
                if let Some(pid) = pid {
                    kernel.signal(&root, pid, 9);
                }
            }
            _ => kernel.reboot(),
        }
    }

    /// Waits for the deadline or for an event of the session.
    fn pause(&self, deadline: Option<BootNs>) -> Result<(), Stop> {
        let look = || {
            let state = self.kernel.state();
            let t = &state.tracing;
            let session = t.sessions.iter().find(|s| s.id == self.session);
            (
                state.processes.changes(),
                t.dump_requests.len(),
                (t.traced_life, t.heapprofd_life),
                session.is_none(),
            )
        };
        let before = look();
        // A request arrived during a step that started before it.
        let is_behind = |heap: &HeapSource| heap.requests < before.1;
        if before.3 || self.heaps.iter().any(is_behind) {
            return Ok(());
        }
        let ready = || (look() != before).then_some(());
        self.kernel.block(self.pid, deadline, ready).map(|_| ())
    }

    /// Returns the outcome if a daemon died during the session.
    fn changed(&mut self) -> Option<Outcome> {
        let lives = {
            let state = self.kernel.state();
            (state.tracing.traced_life, state.tracing.heapprofd_life)
        };
        if lives.1 != self.lives.1 {
            // Data that heapprofd had not written is lost with it.
            self.heaps.clear();
            self.lives.1 = lives.1;
        }
        (lives.0 != self.lives.0).then_some(Outcome::Disconnected)
    }

    /// Performs the due actions.
    fn step(&mut self, now: BootNs) {
        for i in 0..self.heaps.len() {
            let mut out = Vec::new();
            self.heaps[i].step(self.kernel, now, &mut out);
            self.take(i, &out);
        }
        self.step_java(now);
        let written = self.probes.step(self.kernel, now, false);
        self.put(written);
        if self.next_flush.is_some_and(|at| at <= now) {
            self.flush(now);
            let period = u64::from(flush_period_ms(&self.config, self.kernel)) * MILLI;
            self.next_flush = Some(now + period);
        }
        if let Some(at) = self.next_write
            && at <= now
        {
            // Since v54, every write to the file flushes first, if configured.
            if self.kernel.spec.perfetto_version() >= 54
                && self.config.write_flush_mode() == WriteFlushMode::WriteFlushEnabled
            {
                self.flush(now);
            }
            self.write(now, false);
            self.next_write = Some(now + write_period(&self.config));
        }
    }

    fn step_java(&mut self, now: BootNs) {
        for java in &mut self.java {
            let mut out = Vec::new();
            java.step(self.kernel, now, &mut out);
            out.iter().for_each(|p| self.buffers[java.buffer].write(p));
            // An app commits its data once its dump is complete.
            let ends = |p: &pb::TracePacket| p.heap_graph.as_ref().is_some_and(|g| !g.continued());
            if out.iter().any(ends) {
                self.buffers[java.buffer].flush();
            }
            let mut dumps = std::mem::take(&mut java.dumps);
            self.kernel.state().tracing.java_dumps.append(&mut dumps);
        }
    }

    fn put(&mut self, written: Written) {
        for (buffer, packet) in written {
            self.buffers[buffer].write(&packet);
        }
    }

    /// Adds a heapprofd source's packets to its buffer and its truth to the recording's.
    fn take(&mut self, heap: usize, out: &[pb::TracePacket]) {
        let buffer = self.heaps[heap].buffer;
        out.iter().for_each(|p| self.buffers[buffer].write(p));
        let mut truth = std::mem::take(&mut self.heaps[heap].truth);
        if !truth.is_empty()
            && let Some(entry) = self.kernel.state().tracing.truths.get_mut(self.truth)
        {
            entry.dumps.append(&mut truth);
        }
    }

    fn flush(&mut self, now: BootNs) {
        self.flushes += 1;
        self.event(now, |e| e.flush_started = Some(true));
        self.buffers.iter_mut().for_each(TraceBuffer::flush);
        self.clock(now);
        self.event(now, |e| e.all_data_sources_flushed = Some(true));
    }

    /// Performs the flush, final dumps and the rest of the file, from the time `from` on.
    fn stop(&mut self, from: BootNs) -> Outcome {
        let kernel = self.kernel;
        let times_out = kernel.faults.has_struck(FaultKind::StopTimeout);
        let takes = match times_out {
            true => self.stop_limit_ms() * MILLI,
            false => STOP_TAKES,
        };
        let until = (from + takes).max(self.java_done(from));
        match kernel.state().processes.get_mut(self.pid) {
            Some(process) => process.writing = true,
            None => return Outcome::Killed(SIGKILL),
        }
        self.flush(from);
        // A signal caught now has no effect.
        loop {
            match kernel.sleep(self.pid, until) {
                Ok(()) => break,
                Err(Stop::Signal) => {
                    kernel.take_signals(self.pid);
                }
                Err(Stop::Killed(signal)) => {
                    self.abandon();
                    return Outcome::Killed(signal);
                }
            }
        }
        if let Some(outcome) = self.changed() {
            return outcome;
        }
        // From here on, a fatal signal arrives after the end.
        if let Some(process) = kernel.state().processes.get_mut(self.pid) {
            process.writing = false;
        }
        let now = until;
        self.step_java(now);
        let written = self.probes.step(kernel, now, true);
        self.put(written);
        if !times_out {
            for i in 0..self.heaps.len() {
                let mut out = Vec::new();
                self.heaps[i].finish(kernel, now, &mut out);
                self.take(i, &out);
            }
        }
        self.buffers.iter_mut().for_each(TraceBuffer::flush);
        self.clock(now);
        self.event(now, |e| e.tracing_disabled = Some(true));
        self.write(now, true);
        if let Some(path) = &kernel.spec.trace {
            self.serve_stored(path);
        }
        let whole = self.file.len();
        if let Some(len) = kernel.faults.value(FaultKind::Truncate, whole / 2) {
            self.file.truncate(len);
        }
        if let Some(truth) = kernel.state().tracing.truths.get_mut(self.truth) {
            truth.finished = !self.full && self.file.len() == whole;
        }
        Outcome::Finished
    }

    /// Returns when the Java sources have stopped. Since Android 12, a source with running dumps
    /// reports that it has not stopped yet; the service waits up to the config's timeout.
    fn java_done(&mut self, from: BootNs) -> BootNs {
        self.java.iter_mut().for_each(JavaSource::stop);
        let done = self.java.iter().filter_map(JavaSource::done_at).max();
        let done = done.filter(|_| self.kernel.spec.android >= 12);
        let limit = self.stop_limit_ms();
        done.map_or(from, |done| done.min(from + limit * MILLI))
    }

    /// Returns the service's timeout for its data sources to stop.
    fn stop_limit_ms(&self) -> u64 {
        match self.config.data_source_stop_timeout_ms() {
            0 => 5_000,
            ms => u64::from(ms),
        }
    }

    /// Leaves a part of the file, because the client was killed while writing. The file ends inside
    /// a packet: a cut that falls on a packet's end is moved back by a byte.
    fn abandon(&mut self) {
        let now = self.kernel.clock.boot();
        let before = self.file.len();
        self.flush(now);
        self.write(now, false);
        let written = self.file.len() - before;
        let kept = self.file.read_at(before, (written * 2 / 3) as usize);
        let is_whole = pb::Trace::decode(kept.as_slice()).is_ok();
        let len = before + kept.len() as u64;
        self.file
            .truncate(len - u64::from(is_whole && !kept.is_empty()));
    }

    /// Writes a stored recording instead of the recorded data.
    fn serve_stored(&self, path: &std::path::Path) {
        match std::fs::read(path) {
            Ok(bytes) => {
                self.file.truncate(0);
                let real = self.kernel.clock.real() / SECOND;
                self.file.write_at(0, &bytes, real as i64);
            }
            Err(error) => {
                let text = format!("the stored recording can't be read: {error}");
                self.kernel.log(self.pid, 'E', "perfetto", &text);
            }
        }
    }

    /// Writes the contents of the buffers, with the service's packets around them.
    fn write(&mut self, now: BootNs, last: bool) {
        let service = std::mem::take(&mut self.service).into_iter();
        let (mut before, events): (Vec<_>, Vec<_>) =
            service.partition(|p| p.clock_snapshot.is_some());
        // After a restart of the phone, its clock is before the last marker.
        let since = now.checked_sub(self.last_sync);
        if !self.head_written || since.is_none_or(|since| since >= SYNC_EVERY) {
            self.last_sync = now;
            before.push(packets::sync_marker());
        }
        let first = !self.head_written;
        if first {
            self.head_written = true;
            self.head(now, &mut before);
        }
        before.extend(events);
        let mut bytes: Vec<u8> = before.iter().flat_map(framed).collect();
        for buffer in &mut self.buffers {
            bytes.extend_from_slice(&buffer.drain());
        }
        let mut after = Vec::new();
        if self.kernel.spec.android >= 11 {
            let set = |e: &mut pb::ServiceEvent| e.read_tracing_buffers_completed = Some(true);
            after.push(packets::event(now, set));
        }
        if first || last {
            let sources = self.config.data_sources.len();
            after.push(packets::stats(&self.buffers, sources, self.flushes));
        }
        bytes.extend(after.iter().flat_map(framed));
        self.append(&bytes);
    }

    fn head(&self, now: BootNs, out: &mut Vec<pb::TracePacket>) {
        let spec = &self.kernel.spec;
        let seed = mix(&[spec.seed, self.session, self.kernel.clock.real()]);
        let (msb, lsb) = (seed as i64, mix(&[seed]) as i64);
        let mut config = self.config.clone();
        if (11..14).contains(&spec.android) {
            config.trace_uuid_msb = Some(msb);
            config.trace_uuid_lsb = Some(lsb);
        }
        out.push(packets::config(&config));
        if spec.android >= 14 {
            out.push(packets::uuid(msb, lsb));
        }
        if spec.perfetto_version() >= 54 {
            out.push(packets::provenance(now, self.buffers.len()));
        }
        if spec.android >= 11 {
            out.push(packets::system_info(self.kernel));
        }
    }

    /// Appends to the file, within max_file_size and the free disk space.
    fn append(&mut self, bytes: &[u8]) {
        let compressed;
        let mut bytes = bytes;
        let deflates = self.config.compression_type() == CompressionType::Deflate;
        if deflates && self.kernel.spec.android >= 11 {
            compressed = compress(bytes);
            bytes = &compressed;
        }
        let limit = match self.config.max_file_size_bytes() {
            0 => u64::MAX,
            limit => limit,
        };
        let at = self.file.len();
        if at + bytes.len() as u64 > limit {
            // Write only whole packets, as many as fit.
            self.full = true;
            let fits = whole_packets(bytes, limit.saturating_sub(at) as usize);
            bytes = &bytes[..fits];
        }
        if self.kernel.write_file(&self.file, at, bytes).is_err() {
            self.full = true;
            let text = "write() failed: No space left on device";
            self.kernel.log(self.pid, 'E', "perfetto", text);
        }
    }
}

/// Returns one packet with all of `bytes`, deflated.
fn compress(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    // Writing to memory cannot fail.
    let _ = encoder.write_all(bytes);
    let packet = pb::TracePacket {
        compressed_packets: encoder.finish().ok(),
        ..Default::default()
    };
    framed(&packet)
}

/// Returns the length of the whole packets at the front of `bytes` that fit into `limit`.
fn whole_packets(bytes: &[u8], limit: usize) -> usize {
    let limit = limit.min(bytes.len());
    let mut at = 0;
    // A packet follows a tag of one byte and its length.
    while let Some(rest) = bytes.get(at + 1..)
        && let Ok(length) = prost::decode_length_delimiter(rest)
    {
        let end = at + 1 + prost::length_delimiter_len(length) + length;
        if end > limit {
            break;
        }
        at = end;
    }
    at
}
