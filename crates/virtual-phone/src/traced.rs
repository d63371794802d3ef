//! State of traced and heapprofd besides the running recordings: sessions, profiled processes, and
//! the actual allocations during each recording.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::clock::BootNs;
use super::java::{Inputs, JavaDumpKind};
use super::process::Pid;
use super::workload::{TrackedTruth, Trackers};
use heaptap_proto::perfetto as pb;

/// Maximum number of sessions of one UID: below that of all, and all are of the shell.
const MAX_PER_UID: usize = 5;

/// A session of the tracing service.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) id: u64,
    pub(crate) uid: u32,
    /// The process that records the session.
    pub(crate) client: Pid,
    pub(crate) name: Option<String>,
    pub(crate) started: bool,
    /// Wall clock at the start, in nanoseconds since the epoch.
    pub(crate) start_real: u64,
}

/// State of the tracing service and heapprofd that outlives a recording.
#[derive(Default)]
pub(crate) struct Tracing {
    pub(crate) sessions: Vec<Session>,
    last_id: u64,
    /// Times of SIGUSR1s to heapprofd.
    pub(crate) dump_requests: Vec<BootNs>,
    /// Number of starts of the two daemons: a recording of an earlier one is dead.
    pub(crate) traced_life: u64,
    pub(crate) heapprofd_life: u64,
    /// The session that profiles a process.
    held: BTreeMap<Pid, u64>,
    pub(crate) truths: Vec<RecordingTruth>,
    /// Dumps of Java heaps, in sessions and by `am dumpheap`.
    pub(crate) java_dumps: Vec<JavaDump>,
    /// Runtimes that track allocations, and their start times.
    pub(crate) trackers: Trackers,
    /// Runtimes with a connected debugger.
    pub(crate) debugged: BTreeSet<(Pid, BootNs)>,
    /// Tracked allocations that runtimes have reported.
    pub(crate) tracked: Vec<TrackedTruth>,
    /// Processes that ran out of memory, and sessions that wait for one.
    pub(crate) ooms: Vec<Oom>,
    pub(crate) oom_sessions: BTreeMap<u64, pb::JavaHprofConfig>,
    /// Triggers that `trigger_perfetto` activated, by name.
    pub(crate) activations: Vec<(String, BootNs)>,
}

impl Tracing {
    /// Registers a session, or returns the service's reason to reject it.
    pub(crate) fn open(&mut self, mut session: Session) -> Result<u64, String> {
        if let Some(name) = &session.name
            && self.sessions.iter().any(|s| s.name.as_ref() == Some(name))
        {
            return Err(format!(
                "A trace with this unique session name ({name}) already exists"
            ));
        }
        let own = self
            .sessions
            .iter()
            .filter(|s| s.uid == session.uid)
            .count();
        if own >= MAX_PER_UID {
            return Err(format!(
                "Too many concurrent tracing sessions ({own}) for uid {} limit is {MAX_PER_UID}",
                session.uid
            ));
        }
        self.last_id += 1;
        session.id = self.last_id;
        let id = session.id;
        self.sessions.push(session);
        Ok(id)
    }

    /// Ends a session and releases its processes.
    pub(crate) fn close(&mut self, id: u64) {
        self.sessions.retain(|s| s.id != id);
        self.held.retain(|_, holder| *holder != id);
    }

    pub(crate) fn session_mut(&mut self, id: u64) -> Option<&mut Session> {
        self.sessions.iter_mut().find(|s| s.id == id)
    }

    /// Assigns a process to a session; returns false if another session has it.
    pub(crate) fn hold(&mut self, pid: Pid, id: u64) -> bool {
        *self.held.entry(pid).or_insert(id) == id
    }

    pub(crate) fn let_go(&mut self, pid: Pid, id: u64) {
        if self.held.get(&pid) == Some(&id) {
            self.held.remove(&pid);
        }
    }

    pub(crate) fn traced_died(&mut self) {
        self.traced_life += 1;
        self.sessions.clear();
        self.held.clear();
    }

    pub(crate) fn heapprofd_died(&mut self) {
        self.heapprofd_life += 1;
        self.held.clear();
    }

    pub(crate) fn reboot(&mut self) {
        self.traced_died();
        self.heapprofd_died();
        self.trackers.clear();
        self.debugged.clear();
    }
}

/// Outcome of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The file is complete.
    Finished,
    /// The client was killed by this signal.
    Killed(u8),
    Disconnected,
}

/// A process that ran out of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Oom {
    pub(crate) pid: Pid,
    pub(crate) at: BootNs,
}

/// Actual allocations of one recording.
#[derive(Debug, Clone, Default)]
pub struct RecordingTruth {
    /// Path of the trace on the phone; empty if it went to stdout.
    pub path: String,
    /// Whether the file on the phone is complete.
    pub finished: bool,
    /// Every dump that heapprofd wrote, in order.
    pub dumps: Vec<DumpTruth>,
}

/// One heap of one process at one dump.
#[derive(Debug, Clone)]
pub struct DumpTruth {
    /// PID of the process.
    pub pid: u32,
    /// Name of the process.
    pub process: String,
    /// Name of the heap, even if the trace of an old Android version omits it.
    pub heap: String,
    /// Time on the phone's boot clock, in nanoseconds.
    pub boot_ns: u64,
    /// Sampling interval in bytes.
    pub interval: u64,
    /// Whether the process was profiled from its start.
    pub from_startup: bool,
    /// Every callsite used since the process was attached.
    pub sites: Vec<SiteTruth>,
}

/// One callsite since the process was attached.
#[derive(Debug, Clone)]
pub struct SiteTruth {
    /// Purpose of the callsite, such as `leak` or `cache`.
    pub name: Arc<str>,
    /// Function names, root first; empty for code without symbols.
    pub stack: Arc<[Arc<str>]>,
    /// Actually allocated bytes.
    pub allocated: u64,
    /// Number of allocations.
    pub alloc_count: u64,
    /// Actually freed bytes of those allocated since the attach.
    pub freed: u64,
    /// Number of frees.
    pub free_count: u64,
    /// Scaled bytes allocated, as seen by the sampler.
    pub sampled_allocated: u64,
    /// Scaled bytes freed, as seen by the sampler.
    pub sampled_freed: u64,
    /// Number of sampled allocations.
    pub sampled_alloc_count: u64,
    /// Number of sampled frees.
    pub sampled_free_count: u64,
}

impl DumpTruth {
    /// Returns the unreleased bytes at the dump.
    pub fn unreleased(&self) -> u64 {
        self.sites.iter().map(|s| s.allocated - s.freed).sum()
    }

    /// Returns the bytes allocated since the attach.
    pub fn allocated(&self) -> u64 {
        self.sites.iter().map(|s| s.allocated).sum()
    }
}

/// A dump of a Java heap with the inputs to compute its truth.
#[derive(Debug, Clone)]
pub(crate) struct JavaDump {
    pub(crate) inputs: Inputs,
    pub(crate) kind: JavaDumpKind,
    /// Path of an HPROF.
    pub(crate) path: String,
}
