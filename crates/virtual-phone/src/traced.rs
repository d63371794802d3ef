//! What traced and heapprofd know besides the recordings that run: sessions, who holds which
//! process, and what was really allocated during each recording.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::clock::BootNs;
use super::java::{Inputs, JavaDumpKind};
use super::process::Pid;
use super::workload::{TrackedTruth, Trackers};
use heaptap_proto::perfetto as pb;

/// Sessions of one uid, and of all, that the service allows.
const MAX_PER_UID: usize = 5;
const MAX_SESSIONS: usize = 15;

/// A session of the tracing service.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) id: u64,
    pub(crate) uid: u32,
    /// The process that records it.
    pub(crate) client: Pid,
    pub(crate) name: Option<String>,
    pub(crate) started: bool,
    /// `--detach=KEY`.
    pub(crate) key: Option<String>,
    /// Asked to stop by another client.
    pub(crate) stop: bool,
    pub(crate) buffers_kb: Vec<u32>,
    pub(crate) duration_ms: u32,
    pub(crate) sources: u32,
    /// Wall clock at the start, nanoseconds since the epoch.
    pub(crate) start_real: u64,
}

/// The tracing service and heapprofd, as far as they outlive a recording.
#[derive(Default)]
pub(crate) struct Tracing {
    pub(crate) sessions: Vec<Session>,
    last_id: u64,
    /// When heapprofd got SIGUSR1s.
    pub(crate) dump_requests: Vec<BootNs>,
    /// Lives of the two daemons: a recording of an earlier one is dead.
    pub(crate) traced_life: u64,
    pub(crate) heapprofd_life: u64,
    /// Which session profiles a process.
    held: BTreeMap<Pid, u64>,
    pub(crate) truths: Vec<RecordingTruth>,
    /// Dumps of Java heaps, in sessions and by `am dumpheap`.
    pub(crate) java_dumps: Vec<JavaDump>,
    /// Runtimes that track allocations, and since when.
    pub(crate) trackers: Trackers,
    /// Runtimes that a debugger is connected to.
    pub(crate) debugged: BTreeSet<(Pid, BootNs)>,
    /// What runtimes told of what they tracked.
    pub(crate) tracked: Vec<TrackedTruth>,
    /// Processes that ran out of memory, and sessions that wait for some to.
    pub(crate) ooms: Vec<Oom>,
    pub(crate) oom_sessions: BTreeMap<u64, pb::JavaHprofConfig>,
}

impl Tracing {
    /// Registers a session, or says why the service rejects it.
    pub(crate) fn open(&mut self, mut session: Session) -> Result<u64, String> {
        if let Some(name) = &session.name
            && self.sessions.iter().any(|s| s.name.as_ref() == Some(name))
        {
            return Err(format!(
                "A trace with this unique session name ({name}) already exists"
            ));
        }
        if self.sessions.len() >= MAX_SESSIONS {
            return Err("Too many concurrent tracing sessions (15)".to_owned());
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

    /// Ends a session and lets go of its processes.
    pub(crate) fn close(&mut self, id: u64) {
        self.sessions.retain(|s| s.id != id);
        self.held.retain(|_, holder| *holder != id);
    }

    pub(crate) fn session_mut(&mut self, id: u64) -> Option<&mut Session> {
        self.sessions.iter_mut().find(|s| s.id == id)
    }

    /// Takes a process for a session; false where another has it.
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
    }
}

/// How a recording ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The file is complete.
    Finished,
    /// The client was killed by this signal.
    Killed(u8),
    /// traced went away.
    Disconnected,
}

/// A process that ran out of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Oom {
    pub(crate) pid: Pid,
    pub(crate) at: BootNs,
}

/// One recording's truth.
#[derive(Debug, Clone, Default)]
pub struct RecordingTruth {
    /// Path of the trace on the phone; empty where it went to stdout.
    pub path: String,
    /// Every dump that heapprofd wrote, in order.
    pub dumps: Vec<DumpTruth>,
}

/// One heap of one process at one dump.
#[derive(Debug, Clone)]
pub struct DumpTruth {
    /// The process.
    pub pid: u32,
    /// Its name.
    pub process: String,
    /// The heap's name, also where the trace of an old Android leaves it out.
    pub heap: String,
    /// When, on the phone's boot clock, nanoseconds.
    pub boot_ns: u64,
    /// Sampling interval in bytes.
    pub interval: u64,
    /// Whether the process was profiled from its start.
    pub from_startup: bool,
    /// Every allocation site that was used since the process was attached.
    pub sites: Vec<SiteTruth>,
}

/// One allocation site since the process was attached.
#[derive(Debug, Clone)]
pub struct SiteTruth {
    /// What the site is, such as `leak` or `cache`.
    pub name: Arc<str>,
    /// Function names, root first; empty for code without symbols.
    pub stack: Arc<[Arc<str>]>,
    /// Bytes really allocated.
    pub allocated: u64,
    /// Allocations.
    pub alloc_count: u64,
    /// Bytes really freed, of those allocated since the attach.
    pub freed: u64,
    /// Frees.
    pub free_count: u64,
    /// As the sampler saw it: scaled bytes allocated.
    pub sampled_allocated: u64,
    /// Scaled bytes freed.
    pub sampled_freed: u64,
    /// Sampled allocations.
    pub sampled_alloc_count: u64,
    /// Sampled frees.
    pub sampled_free_count: u64,
}

impl DumpTruth {
    /// Bytes held at the dump.
    pub fn unreleased(&self) -> u64 {
        self.sites.iter().map(|s| s.allocated - s.freed).sum()
    }

    /// Bytes allocated since the attach.
    pub fn allocated(&self) -> u64 {
        self.sites.iter().map(|s| s.allocated).sum()
    }
}

/// A dump of a Java heap: what it followed from, so that its truth can be worked out.
#[derive(Debug, Clone)]
pub(crate) struct JavaDump {
    pub(crate) inputs: Inputs,
    pub(crate) kind: JavaDumpKind,
    /// Of an HPROF.
    pub(crate) path: String,
}
