//! Tracing on the phone: the service's sessions, the recordings that run, and what was really
//! allocated during each. Owns who holds which process; encoding and sampling are beside it.

mod buffer;
mod code;
pub(crate) mod config;
mod dump;
mod heapprofd;
mod interner;
mod java_hprof;
mod live;
mod malloc_info;
mod oom;
mod packets;
mod probes;
pub(crate) mod recording;
mod sampler;
mod sources;
mod target;
mod tracked;
mod truth;
mod workload;

use std::collections::{BTreeMap, BTreeSet};

pub(crate) use live::{Blocks, Flow, LiveHeaps, rounded};
pub(crate) use malloc_info::malloc_info;
pub(crate) use oom::{Oom, run_out};
pub use tracked::TrackedTruth;
pub(crate) use tracked::{Tracked, Trackers};
pub(crate) use truth::JavaDump;
pub use truth::{DumpTruth, RecordingTruth, SiteTruth};

use super::clock::BootNs;
use super::process::Pid;
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
    oom_sessions: BTreeMap<u64, pb::JavaHprofConfig>,
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
