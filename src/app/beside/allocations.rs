//! `--java-allocations` by the runtime's own tracking: each process is connected to as a debugger
//! is, tracking switched on as soon as the process is there, and its list fetched at each label
//! and at the end. Owns the connections; what the lists say is read when the recording is
//! finished (`app::allocations`).
//!
//! A runtime tracks on while the connection is away: the ring is its own. So a lost cable loses
//! nothing but what the ring forgets.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinSet;

use super::at::{At, NotTaken};
use super::warn;
use crate::app::allocations::{ATTACH, AttachError, WHAT, attach};
use crate::app::record::Tell;
use crate::device::{DebugStream, Device};
use crate::jdwp::{Allocations, ChunkType, Connection, JdwpError};
use crate::memory::timeline::{Missed, Seen};
use crate::session::{self, Chronicle};

/// How long a runtime may take to put its list together and hand it over.
const FETCH: Duration = Duration::from_secs(120);
/// How long it may take to switch tracking off; the end of a recording waits for it.
const OFF: Duration = Duration::from_secs(10);
/// A process takes its name a moment after it is there: it is looked for again so much later.
const AGAIN: Duration = Duration::from_secs(1);
/// How long a phone that is away is waited for at once.
const RETURN_STEP: Duration = Duration::from_secs(30);

/// What is asked of a connection.
enum Ask {
    Fetch(oneshot::Sender<Result<Vec<u8>, JdwpError>>),
    Off(oneshot::Sender<()>),
}

/// The processes whose allocations are tracked. Dropped, it lets go of them, and has them stop
/// as far as that is still possible.
#[derive(Clone)]
pub(super) struct Tracking {
    shared: Arc<Shared>,
}

struct Shared {
    device: Device,
    chronicle: Chronicle,
    tell: Tell,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connections: BTreeMap<u32, mpsc::Sender<Ask>>,
    /// Those in which tracking was switched on.
    known: BTreeSet<u32>,
    /// Those of which it was said that they cannot be tracked.
    told: BTreeSet<u32>,
    /// Those that take a debugger, as far as the phone has told.
    debuggable: BTreeSet<u32>,
}

impl Tracking {
    /// Begins; `tasks` then holds what looks for processes.
    pub(super) fn begin(
        device: &Device,
        chronicle: &Chronicle,
        tell: &Tell,
        tasks: &mut JoinSet<()>,
    ) -> Tracking {
        let shared = Arc::new(Shared {
            device: device.clone(),
            chronicle: chronicle.clone(),
            tell: Tell::clone(tell),
            state: Mutex::default(),
        });
        let tracking = Tracking { shared };
        tasks.spawn(tracking.clone().watch());
        tracking
    }

    /// Connects to each process that matches, as it comes.
    async fn watch(self) {
        loop {
            // What fails here is the connection: whoever follows the recording tells of it.
            let _ = self.watch_once().await;
            let _ = self.shared.device.wait_ready(RETURN_STEP).await;
            tokio::time::sleep(AGAIN).await;
        }
    }

    async fn watch_once(&self) -> Result<(), NotTaken> {
        let mut list = self.shared.device.debuggable(ATTACH).await?;
        loop {
            let debuggable = list.next().await?;
            self.shared.state.lock().await.debuggable = debuggable;
            self.attach_all().await?;
            // Between fork and its own name a process is nobody's.
            tokio::time::sleep(AGAIN).await;
            self.attach_all().await?;
        }
    }

    async fn attach_all(&self) -> Result<(), NotTaken> {
        let shared = &self.shared;
        let processes = session::matching_processes(&shared.device, &shared.chronicle).await?;
        for (pid, name) in processes {
            let debuggable = shared.state.lock().await.debuggable.contains(&pid);
            if debuggable && let Err(error) = self.connection(pid).await {
                let mut state = shared.state.lock().await;
                if !error.is_connection() && state.told.insert(pid) {
                    warn(
                        &shared.tell,
                        &format!("allocations of {name} ({pid}) are not tracked: {error}"),
                    );
                }
            }
        }
        Ok(())
    }

    /// The connection to a process, made where there is none.
    async fn connection(&self, pid: u32) -> Result<mpsc::Sender<Ask>, AttachError> {
        // One at a time: a second connection to a process waits for the first to leave.
        let mut state = self.shared.state.lock().await;
        if let Some(open) = state.connections.get(&pid)
            && !open.is_closed()
        {
            return Ok(open.clone());
        }
        if !state.debuggable.is_empty() && !state.debuggable.contains(&pid) {
            return Err(AttachError::NotDebuggable);
        }
        let mut connection = attach(&self.shared.device, pid).await?;
        let known = state.known.contains(&pid);
        tokio::time::timeout(ATTACH, switch_on(&mut connection, known))
            .await
            .map_err(|_| AttachError::Silent)??;
        state.known.insert(pid);
        let (ask, asked) = mpsc::channel(4);
        tokio::spawn(serve(connection, asked));
        state.connections.insert(pid, ask.clone());
        Ok(ask)
    }

    /// Takes the list of each process of a moment.
    pub(super) async fn capture(&self, at: &At) -> Result<(), NotTaken> {
        let mut missed = Vec::new();
        let mut taken = 0_usize;
        for (pid, name) in &at.processes {
            match self.fetch(*pid).await {
                Ok(list) => {
                    let now = session::moment(&at.device)
                        .await
                        .ok()
                        .map(|now| now.boot_ns);
                    at.keep(WHAT, (*pid, "real.gz"), now, &gzip(&list)?)?;
                    taken += 1;
                }
                Err(AttachError::Device(error)) if error.is_connection() && self.away().await => {
                    return Err(NotTaken::Away(error));
                }
                Err(error) => missed.push(format!("{name} ({pid}): {error}")),
            }
        }
        match (taken, missed.as_slice()) {
            (_, []) => Ok(()),
            (0, missed) => Err(NotTaken::Because(missed.join("; "))),
            (_, missed) => {
                for why in missed {
                    let missed = Missed {
                        what: WHAT.to_owned(),
                        label: at.label.clone(),
                        number: at.number,
                        why: why.clone(),
                    };
                    at.timeline.see(at.boot_ns, 0, Seen::Missed(missed));
                }
                Ok(())
            }
        }
    }

    /// Whether it is the phone that does not answer, not a process of it.
    async fn away(&self) -> bool {
        let asked = session::moment(&self.shared.device).await;
        matches!(asked, Err(session::SessionError::Device(error)) if error.is_connection())
    }

    async fn fetch(&self, pid: u32) -> Result<Vec<u8>, AttachError> {
        let ask = self.connection(pid).await?;
        let (reply, answer) = oneshot::channel();
        if ask.send(Ask::Fetch(reply)).await.is_err() {
            return Err(JdwpError::Closed.into());
        }
        let list = answer.await.map_err(|_| JdwpError::Closed)??;
        // What cannot be read at the end is told while it can be fetched again.
        Allocations::read(&list).map_err(|error| JdwpError::Garbled(error.to_string()))?;
        Ok(list)
    }

    /// Switches tracking off everywhere, as far as that is possible now.
    pub(super) async fn end(&self) {
        let open = std::mem::take(&mut self.shared.state.lock().await.connections);
        for ask in open.into_values() {
            let (reply, done) = oneshot::channel();
            if ask.send(Ask::Off(reply)).await.is_ok() {
                let _ = done.await;
            }
        }
    }
}

/// Switches tracking on, from nothing; where it was switched on in this recording, what is
/// tracked stays.
async fn switch_on(connection: &mut Connection<DebugStream>, known: bool) -> Result<(), JdwpError> {
    let on = connection.is_tracking().await?;
    if on && known {
        return Ok(());
    }
    if on {
        // Somebody else's, or that of a heaptap that was killed: its list would be older.
        connection.track(false).await?;
    }
    connection.track(true).await
}

/// Serves one connection until it ends.
async fn serve(mut connection: Connection<DebugStream>, mut asked: mpsc::Receiver<Ask>) {
    loop {
        let ask = tokio::select! {
            ask = asked.recv() => ask,
            // A runtime whose words nobody takes stands still.
            _ = connection.drain() => return,
        };
        match ask {
            Some(Ask::Fetch(reply)) => {
                let list = connection.ask(ChunkType::REAL, &[]);
                let list = match tokio::time::timeout(FETCH, list).await {
                    Ok(list) => list,
                    Err(_) => Err(JdwpError::Garbled(format!(
                        "no list of allocations within {} s",
                        FETCH.as_secs()
                    ))),
                };
                let ended = list.is_err();
                let _ = reply.send(list);
                if ended {
                    return;
                }
            }
            Some(Ask::Off(reply)) => {
                let _ = tokio::time::timeout(OFF, connection.track(false)).await;
                let _ = reply.send(());
                return;
            }
            None => {
                let _ = tokio::time::timeout(OFF, connection.track(false)).await;
                return;
            }
        }
    }
}

/// Lists repeat themselves: a tenth is left of them.
fn gzip(list: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(list)?;
    packer.finish()
}
