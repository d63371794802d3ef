//! `--java-allocations` by the runtime's own tracking: each process is connected to as a debugger
//! is, tracking switched on as soon as the process is there, and its list fetched at each label
//! and at the end. Owns the connections; what the lists say is read when the recording is
//! finished (`conversion::allocations`).
//!
//! A runtime tracks on while the connection is away: the ring is its own. So a lost cable loses
//! nothing but what the ring forgets; and whatever was switched on is switched off at the end,
//! over a connection of its own where need be.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinSet;

use super::at_label::{At, NotTaken};
use crate::conversion::allocations::{ATTACH, AttachError, attach};
use crate::conversion::tracked::WHAT;
use crate::device::{DebugStream, Device, DeviceError};
use crate::jdwp::{Allocations, ChunkType, Connection, JdwpError};
use crate::recording::blocking::blocking;
use crate::recording::events::{EventHandler, warn};
use crate::session::{self, SessionState};
use crate::timeline::{Missed, Observation};

/// How long a runtime may take to put its list together and hand it over.
const FETCH: Duration = Duration::from_secs(120);
/// How long it may take to switch tracking off; the end of a recording waits for it.
const OFF: Duration = ATTACH;
/// A process takes its name a moment after it is there: it is looked for again so much later.
const AGAIN: Duration = Duration::from_secs(1);
/// How long a phone that is away is waited for at once.
const RETURN_STEP: Duration = Duration::from_secs(30);

/// What is asked of a connection.
enum Ask {
    Fetch(oneshot::Sender<Result<Vec<u8>, JdwpError>>),
    Off(oneshot::Sender<Result<(), AttachError>>),
}

/// The processes whose allocations are tracked. Dropped, it lets go of them, and has them stop
/// as far as that is still possible.
#[derive(Clone)]
pub(super) struct Tracking {
    shared: Arc<Shared>,
}

struct Shared {
    device: Device,
    session_state: SessionState,
    on_event: EventHandler,
    state: StdMutex<State>,
}

#[derive(Default)]
struct State {
    /// By process: a frozen one holds up nobody but those who want it.
    slots: BTreeMap<u32, Arc<Mutex<Slot>>>,
    /// Those of which it was said that they cannot be tracked.
    told: BTreeSet<u32>,
    /// Those that take a debugger, as far as the phone has told.
    debuggable: BTreeSet<u32>,
}

/// One process.
#[derive(Default)]
struct Slot {
    name: String,
    open: Option<mpsc::Sender<Ask>>,
    /// Tracking was to be switched on: it may be on from then.
    begun: bool,
    /// It was.
    known: bool,
}

/// Where tracking may still be on.
struct Left {
    pid: u32,
    name: String,
    /// Why it could not be switched off; `None` where that was not tried yet.
    why: Option<AttachError>,
}

impl Tracking {
    /// Begins; `tasks` then holds what looks for processes.
    pub(super) fn begin(
        device: &Device,
        session_state: &SessionState,
        on_event: &EventHandler,
        tasks: &mut JoinSet<()>,
    ) -> Tracking {
        let shared = Arc::new(Shared {
            device: device.clone(),
            session_state: session_state.clone(),
            on_event: EventHandler::clone(on_event),
            state: StdMutex::default(),
        });
        let tracking = Tracking { shared };
        tasks.spawn(tracking.clone().watch());
        tracking
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in it is left half done.
        let state = self.shared.state.lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self, pid: u32) -> Arc<Mutex<Slot>> {
        Arc::clone(self.state().slots.entry(pid).or_default())
    }

    /// Connects to each process that matches, as it comes.
    async fn watch(self) {
        let mut attaching = JoinSet::new();
        loop {
            // What fails here is the connection: whoever follows the recording tells of it.
            let _ = self.watch_once(&mut attaching).await;
            let _ = self.shared.device.wait_ready(RETURN_STEP).await;
            tokio::time::sleep(AGAIN).await;
        }
    }

    async fn watch_once(&self, attaching: &mut JoinSet<()>) -> Result<(), NotTaken> {
        let mut list = self.shared.device.debuggable(ATTACH).await?;
        loop {
            let debuggable = list.next().await?;
            self.state().debuggable = debuggable;
            self.attach_all(attaching).await?;
            // Between fork and its own name a process is nobody's.
            tokio::time::sleep(AGAIN).await;
            self.attach_all(attaching).await?;
        }
    }

    /// Begins to connect to all that are there, each for itself: who does not answer holds up
    /// nobody else.
    async fn attach_all(&self, attaching: &mut JoinSet<()>) -> Result<(), NotTaken> {
        let shared = &self.shared;
        let processes = session::matching_processes(&shared.device, &shared.session_state).await?;
        while attaching.try_join_next().is_some() {}
        for (pid, name) in processes {
            let debuggable = self.state().debuggable.contains(&pid);
            let is_free = self.slot(pid).try_lock().is_ok();
            if debuggable && is_free {
                let tracking = self.clone();
                attaching.spawn(async move { tracking.attach_to(pid, &name).await });
            }
        }
        Ok(())
    }

    async fn attach_to(&self, pid: u32, name: &str) {
        if let Err(error) = self.connection(pid, name).await
            && !error.is_connection()
            && self.state().told.insert(pid)
        {
            warn(
                &self.shared.on_event,
                format!("allocations of {name} ({pid}) are not tracked: {error}"),
            );
        }
    }

    /// The connection to a process, made where there is none.
    async fn connection(&self, pid: u32, name: &str) -> Result<mpsc::Sender<Ask>, AttachError> {
        // One at a time: a second connection to a process waits for the first to leave.
        let slot = self.slot(pid);
        let mut slot = slot.lock().await;
        name.clone_into(&mut slot.name);
        if let Some(open) = &slot.open
            && !open.is_closed()
        {
            return Ok(open.clone());
        }
        {
            let state = self.state();
            if !state.debuggable.is_empty() && !state.debuggable.contains(&pid) {
                return Err(AttachError::NotDebuggable);
            }
        }
        let mut connection = attach(&self.shared.device, pid).await?;
        let known = slot.known;
        slot.begun = true;
        tokio::time::timeout(ATTACH, switch_on(&mut connection, known))
            .await
            .map_err(|_| AttachError::Silent)??;
        slot.known = true;
        let (ask, asked) = mpsc::channel(4);
        tokio::spawn(serve(connection, asked));
        slot.open = Some(ask.clone());
        Ok(ask)
    }

    /// Takes the list of each process of a moment.
    pub(super) async fn capture(&self, at: &At) -> Result<(), NotTaken> {
        let mut missed = Vec::new();
        let mut taken = 0_usize;
        for (pid, name) in &at.processes {
            let mut list = self.fetch(*pid, name).await;
            if list.as_ref().is_err_and(AttachError::is_connection) {
                self.is_there().await?;
                // It was the connection alone, or it is back already.
                list = self.fetch(*pid, name).await;
            }
            match list {
                Ok(list) => {
                    let now = session::moment(&at.device)
                        .await
                        .ok()
                        .map(|now| now.boot_ns);
                    match keep(at, *pid, now, list).await? {
                        Ok(()) => taken += 1,
                        Err(why) => missed.push(format!("{name} ({pid}): {why}")),
                    }
                }
                Err(error) => {
                    if error.is_connection() {
                        self.is_there().await?;
                    }
                    missed.push(format!("{name} ({pid}): {error}"));
                }
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
                        reason: None,
                        why: why.clone(),
                    };
                    at.timeline.see(at.boot_ns, 0, Observation::Missed(missed));
                }
                Ok(())
            }
        }
    }

    /// Whether the phone answers, where a process of it does not.
    ///
    /// # Errors
    /// [`NotTaken::Away`] where it does not either.
    async fn is_there(&self) -> Result<(), NotTaken> {
        match self.away().await {
            Some(lost) => Err(NotTaken::Away(lost)),
            None => Ok(()),
        }
    }

    /// Why the phone does not answer; `None` where it does.
    async fn away(&self) -> Option<DeviceError> {
        match session::moment(&self.shared.device).await {
            Err(session::SessionError::Device(error)) if error.is_connection() => Some(error),
            _ => None,
        }
    }

    async fn fetch(&self, pid: u32, name: &str) -> Result<Vec<u8>, AttachError> {
        let ask = self.connection(pid, name).await?;
        let (reply, answer) = oneshot::channel();
        if ask.send(Ask::Fetch(reply)).await.is_err() {
            return Err(JdwpError::Closed.into());
        }
        Ok(answer.await.map_err(|_| JdwpError::Closed)??)
    }

    /// Switches tracking off everywhere, and says where that is not possible. What looks for
    /// processes has ended by then.
    pub(super) async fn end(&self) {
        let slots = std::mem::take(&mut self.state().slots);
        let mut ending = JoinSet::new();
        for (pid, slot) in slots {
            ending.spawn(let_go(pid, slot));
        }
        let mut left = Vec::new();
        while let Some(ended) = ending.join_next().await {
            left.extend(ended.ok().flatten());
        }
        if left.is_empty() {
            return;
        }
        let now = session::moment(&self.shared.device).await;
        if now.is_ok_and(|now| now.boot_id != self.shared.session_state.header.boot_id) {
            // Nothing is on after a restart.
            return;
        }
        // Nor is anything in a process that is gone.
        let there = match debuggable_now(&self.shared.device).await {
            Ok(there) => there,
            Err(_) => self.state().debuggable.clone(),
        };
        let mut ending = JoinSet::new();
        for one in left.into_iter().filter(|one| there.contains(&one.pid)) {
            ending.spawn(off_again(self.shared.device.clone(), one));
        }
        while let Some(ended) = ending.join_next().await {
            let Some(Left { pid, name, why }) = ended.ok().flatten() else {
                continue;
            };
            let why = why.map_or_else(String::new, |why| format!(": {why}"));
            warn(
                &self.shared.on_event,
                format!(
                    "the tracking of Java allocations in {name} ({pid}) could not be switched \
                     off{why}; it ends with the app, or with the next recording of them"
                ),
            );
        }
    }
}

/// Has what serves a process switch tracking off, as far as there still is somebody; who is left.
async fn let_go(pid: u32, slot: Arc<Mutex<Slot>>) -> Option<Left> {
    // Whoever was ended while it connected has let go of it by then.
    let mut slot = slot.lock().await;
    let mut why = None;
    if let Some(ask) = slot.open.take() {
        let (reply, done) = oneshot::channel();
        if ask.send(Ask::Off(reply)).await.is_ok()
            && let Ok(done) = done.await
        {
            match done {
                Ok(()) => return None,
                Err(error) => why = Some(error),
            }
        }
    }
    slot.begun.then(|| Left {
        pid,
        name: std::mem::take(&mut slot.name),
        why,
    })
}

/// Switches tracking off over a new connection, unless the process was asked in vain already.
async fn off_again(device: Device, left: Left) -> Option<Left> {
    if left.why.as_ref().is_some_and(|why| !why.is_connection()) {
        return Some(left);
    }
    let pid = left.pid;
    let switching = async {
        let mut connection = attach(&device, pid).await?;
        Ok(connection.track(false).await?)
    };
    let switched = tokio::time::timeout(OFF, switching).await;
    match switched.unwrap_or(Err(AttachError::Silent)) {
        Ok(()) => None,
        Err(why) => Some(Left {
            why: Some(why),
            ..left
        }),
    }
}

/// The processes that take a debugger now.
async fn debuggable_now(device: &Device) -> Result<BTreeSet<u32>, AttachError> {
    let mut list = device.debuggable(ATTACH).await?;
    let list = tokio::time::timeout(ATTACH, list.next()).await;
    Ok(list.map_err(|_| AttachError::Silent)??)
}

/// Keeps a list that can be read; why it cannot: that is told while it can be fetched again.
async fn keep(
    at: &At,
    pid: u32,
    fetched_ns: Option<u64>,
    list: Vec<u8>,
) -> Result<Result<(), String>, NotTaken> {
    let at = at.clone();
    // Lists have tens of megabytes.
    let keeping = blocking(move || {
        if let Err(error) = Allocations::read(&list) {
            return Ok(Err(error.to_string()));
        }
        at.keep(WHAT, (pid, "real.gz"), fetched_ns, &gzip(&list)?)
            .map(Ok)
    });
    Ok(keeping.await?)
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
async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    mut connection: Connection<S>,
    mut asked: mpsc::Receiver<Ask>,
) {
    loop {
        let ask = tokio::select! {
            ask = asked.recv() => ask,
            // A runtime whose words nobody takes stands still.
            _ = connection.drain() => return,
        };
        match ask {
            Some(Ask::Fetch(reply)) => {
                let list = connection.request(ChunkType::REAL, &[]);
                let list = match tokio::time::timeout(FETCH, list).await {
                    Ok(list) => list,
                    Err(_) => Err(JdwpError::Garbled(format!(
                        "no list of allocations within {} s",
                        FETCH.as_secs()
                    ))),
                };
                // What is refused leaves the connection as it was.
                let ended = !matches!(&list, Ok(_) | Err(JdwpError::Refused { .. }));
                if ended {
                    // Whoever asks again gets a new one.
                    asked.close();
                }
                let _ = reply.send(list);
                if ended {
                    return;
                }
            }
            Some(Ask::Off(reply)) => {
                let _ = reply.send(switch_off(&mut connection).await);
                return;
            }
            None => {
                let _ = switch_off(&mut connection).await;
                return;
            }
        }
    }
}

async fn switch_off<S: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut Connection<S>,
) -> Result<(), AttachError> {
    let switched = tokio::time::timeout(OFF, connection.track(false)).await;
    Ok(switched.map_err(|_| AttachError::Silent)??)
}

/// Lists repeat themselves: a tenth is left of them.
fn gzip(list: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(list)?;
    packer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jdwp::{HANDSHAKE, Packet};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    /// A reply with a chunk.
    fn reply(id: u32, kind: ChunkType, data: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0, 0, 0, 19 + u8::try_from(data.len()).unwrap()];
        bytes.extend(id.to_be_bytes());
        bytes.extend([0x80, 0, 0]);
        bytes.extend(kind.0);
        bytes.extend([0, 0, 0, u8::try_from(data.len()).unwrap()]);
        bytes.extend(data);
        bytes
    }

    async fn served() -> (mpsc::Sender<Ask>, DuplexStream, tokio::task::JoinHandle<()>) {
        let (ours, mut theirs) = duplex(1 << 16);
        theirs.write_all(HANDSHAKE).await.unwrap();
        let connection = Connection::open(ours).await.unwrap();
        theirs.read_exact(&mut [0; 14]).await.unwrap();
        let (ask, asked) = mpsc::channel(4);
        (ask, theirs, tokio::spawn(serve(connection, asked)))
    }

    /// Reads what is asked, and answers once all of it has come.
    async fn answer(theirs: &mut DuplexStream, asked: &[u8], answer: &[u8]) {
        let mut said = vec![0; asked.len()];
        theirs.read_exact(&mut said).await.unwrap();
        assert_eq!(said, asked);
        theirs.write_all(answer).await.unwrap();
    }

    /// What switches tracking off, by packets from `id` on.
    fn off(id: u32) -> Vec<u8> {
        let off = Packet::command(id, ChunkType::REAE, &[0]);
        [off, Packet::command(id + 1, ChunkType::REAQ, &[])].concat()
    }

    #[tokio::test]
    async fn a_list_that_is_refused_leaves_a_connection_that_switches_off() {
        let (ask, mut theirs, serving) = served().await;
        let (reply_to, list) = oneshot::channel();
        ask.send(Ask::Fetch(reply_to)).await.unwrap();
        let fetch = Packet::command(1, ChunkType::REAL, &[]);
        answer(&mut theirs, &fetch, &reply(1, ChunkType::FAIL, &[0; 8])).await;
        let refused = list.await.unwrap().unwrap_err();
        assert!(matches!(refused, JdwpError::Refused { .. }), "{refused}");
        assert!(!ask.is_closed());
        let (reply_to, done) = oneshot::channel();
        ask.send(Ask::Off(reply_to)).await.unwrap();
        answer(&mut theirs, &off(2), &reply(3, ChunkType::REAQ, &[0])).await;
        done.await.unwrap().unwrap();
        serving.await.unwrap();
    }

    #[tokio::test]
    async fn who_lost_a_list_is_known_to_be_gone_before_it_is_said() {
        let (ask, theirs, serving) = served().await;
        drop(theirs);
        let (reply, answer) = oneshot::channel();
        // The end of the connection may come first.
        if ask.send(Ask::Fetch(reply)).await.is_ok() {
            let _ = answer.await;
        }
        assert!(ask.is_closed());
        serving.await.unwrap();
    }

    #[tokio::test]
    async fn who_does_not_switch_off_is_told_of() {
        let (ask, mut theirs, _serving) = served().await;
        let slot = Slot {
            name: "com.example.app".to_owned(),
            open: Some(ask),
            begun: true,
            known: true,
        };
        let (left, ()) = tokio::join!(let_go(7, Arc::new(Mutex::new(slot))), async {
            answer(&mut theirs, &off(1), &reply(2, ChunkType::REAQ, &[1])).await
        });
        let left = left.unwrap();
        assert_eq!((left.pid, left.name.as_str()), (7, "com.example.app"));
        let why = left.why.unwrap().to_string();
        assert!(why.contains("tracking stays as it was"), "{why}");
        let never = Arc::new(Mutex::new(Slot::default()));
        assert!(let_go(8, never).await.is_none(), "nothing was begun");
    }
}
