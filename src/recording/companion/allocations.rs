//! `--java-allocations` with the runtime's own tracking: heaptap connects to each process as a
//! debugger, turns tracking on as soon as the process exists, and fetches the list at each label
//! and at the end. Owns the connections; the lists are parsed when the recording is finished
//! (`conversion::allocations`).
//!
//! Runtimes keep tracking without a connection, because the ring buffer is theirs. A disconnected
//! cable only loses entries that the ring overwrites. Tracking is always turned off at the end,
//! over a new connection if necessary.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex as StdMutex, MutexGuard};
use std::time::Duration;

use flate2::Compression;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinSet;

use super::at_label::{At, NotTaken, gzip};
use crate::recording::blocking::blocking;
use crate::recording::conversion::allocations::{ATTACH, AttachError, attach};
use crate::recording::conversion::tracked::WHAT;
use crate::recording::events::{EventHandler, warn};
use heaptap_adb::{DebugStream, Device, DeviceError};
use heaptap_base::parallel::lock;
use heaptap_capture::jdwp::{Allocations, ChunkType, Connection, JdwpError};
use heaptap_capture::session::{self, SessionState};

/// Time limit for a runtime to assemble and send its list.
const FETCH: Duration = Duration::from_secs(120);
/// Time limit for turning tracking off; the end of a recording waits for it.
const OFF: Duration = ATTACH;
/// A process gets its name shortly after its start: delay of the second search.
const AGAIN: Duration = Duration::from_secs(1);
/// Time limit of one wait for a disconnected device.
const RETURN_STEP: Duration = Duration::from_secs(30);

/// A request to a connection.
enum Ask {
    Fetch(oneshot::Sender<Result<Vec<u8>, JdwpError>>),
    Off(oneshot::Sender<Result<(), AttachError>>),
}

/// The processes with tracked allocations. Dropping it disconnects from them, and stops tracking if
/// still possible.
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
    /// By process, so that a frozen process only delays requests to itself.
    slots: BTreeMap<u32, Arc<Mutex<Slot>>>,
    /// Processes already reported as not trackable.
    told: BTreeSet<u32>,
    /// Processes that accept a debugger, as reported by the device.
    debuggable: BTreeSet<u32>,
}

#[derive(Default)]
struct Slot {
    name: String,
    open: Option<mpsc::Sender<Ask>>,
    /// A request to turn tracking on was sent: it might be on from then.
    begun: bool,
    /// Tracking was turned on.
    known: bool,
}

/// A process whose tracking might still be on.
struct Left {
    pid: u32,
    name: String,
    /// Error of turning it off; `None` if not tried yet.
    why: Option<AttachError>,
}

impl Tracking {
    /// Begins; adds the search for processes to `tasks`.
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
        // The state is never left inconsistent.
        lock(&self.shared.state)
    }

    fn slot(&self, pid: u32) -> Arc<Mutex<Slot>> {
        Arc::clone(self.state().slots.entry(pid).or_default())
    }

    /// Connects to each matching process as it appears.
    async fn watch(self) {
        let mut attaching = JoinSet::new();
        loop {
            // Only the connection can fail here, which the recording itself reports.
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
            // Between the fork and its own name, a process cannot be matched.
            tokio::time::sleep(AGAIN).await;
            self.attach_all(attaching).await?;
        }
    }

    /// Starts connecting to all present processes independently, so that an unresponsive one does
    /// not delay the others.
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
                format!("cannot track allocations of {name} ({pid}): {error}"),
            );
        }
    }

    /// Returns the connection to a process, creating it if necessary.
    async fn connection(&self, pid: u32, name: &str) -> Result<mpsc::Sender<Ask>, AttachError> {
        // One at a time: a second connection to a process waits until the first has ended.
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

    /// Fetches the list of each process of a label.
    pub(super) async fn capture(&self, at: &At) -> Result<(), NotTaken> {
        let mut missed = Vec::new();
        for (pid, name) in &at.processes {
            let mut list = self.fetch(*pid, name).await;
            if list.as_ref().is_err_and(AttachError::is_connection) {
                self.is_there().await?;
                // Only the connection failed, or it has been restored.
                list = self.fetch(*pid, name).await;
            }
            match list {
                Ok(list) => {
                    let now = session::moment(&at.device)
                        .await
                        .ok()
                        .map(|now| now.boot_ns);
                    match keep(at, *pid, now, list).await? {
                        Ok(()) => {}
                        Err(why) => missed.push((*pid, format!("{name} ({pid}): {why}"))),
                    }
                }
                Err(error) => {
                    if error.is_connection() {
                        self.is_there().await?;
                    }
                    missed.push((*pid, format!("{name} ({pid}): {error}")));
                }
            }
        }
        at.without(WHAT, missed)
    }

    /// Checks that the device answers, after one of its processes did not.
    ///
    /// # Errors
    /// Returns [`NotTaken::Away`] if it does not.
    async fn is_there(&self) -> Result<(), NotTaken> {
        match self.away().await {
            Some(lost) => Err(NotTaken::Away(lost)),
            None => Ok(()),
        }
    }

    /// Returns why the device does not answer; `None` if it does.
    async fn away(&self) -> Option<DeviceError> {
        match session::moment(&self.shared.device).await {
            Err(session::CaptureError::Device(error)) if error.is_connection() => Some(error),
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

    /// Turns tracking off everywhere, and reports failures. The search for processes has ended by
    /// then.
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
            // A restart turns tracking off.
            return;
        }
        // So does the end of a process.
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
                    "cannot stop tracking Java allocations in {name} ({pid}){why}; tracking ends \
                     with the app or with the next such recording"
                ),
            );
        }
    }
}

/// Asks the connection of a process to turn tracking off, if it still exists; returns the process
/// otherwise.
async fn let_go(pid: u32, slot: Arc<Mutex<Slot>>) -> Option<Left> {
    // Connections that were interrupted while connecting have been closed by then.
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

/// Turns tracking off over a new connection, unless the process was already asked without success.
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

/// Returns the processes that accept a debugger now.
async fn debuggable_now(device: &Device) -> Result<BTreeSet<u32>, AttachError> {
    let mut list = device.debuggable(ATTACH).await?;
    let list = tokio::time::timeout(ATTACH, list.next()).await;
    Ok(list.map_err(|_| AttachError::Silent)??)
}

/// Stores a list if it is readable; otherwise returns the error while it can still be fetched
/// again.
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
        // Lists repeat themselves: a tenth is left of them.
        at.keep(
            WHAT,
            (pid, "real.gz"),
            fetched_ns,
            &gzip(&list, Compression::fast())?,
        )
        .map(Ok)
    });
    Ok(keeping.await?)
}

/// Turns tracking on with an empty list; if it was turned on in this recording, keeps the tracked
/// allocations.
async fn switch_on(connection: &mut Connection<DebugStream>, known: bool) -> Result<(), JdwpError> {
    let on = connection.is_tracking().await?;
    if on && known {
        return Ok(());
    }
    if on {
        // Tracking by another tool, or by a killed heaptap: its list would be older.
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
            // A runtime blocks if its messages are not read.
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
                // A refused request leaves the connection unchanged.
                let ended = !matches!(&list, Ok(_) | Err(JdwpError::Refused { .. }));
                if ended {
                    // The next request opens a new connection.
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

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_capture::jdwp::{HANDSHAKE, Packet};
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

    /// Reads the request, and answers once it is complete.
    async fn answer(theirs: &mut DuplexStream, asked: &[u8], answer: &[u8]) {
        let mut said = vec![0; asked.len()];
        theirs.read_exact(&mut said).await.unwrap();
        assert_eq!(said, asked);
        theirs.write_all(answer).await.unwrap();
    }

    /// Returns packets that turn tracking off, with IDs from `id`.
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
        // The connection might end first.
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
        assert!(why.contains("tracking did not change"), "{why}");
        let never = Arc::new(Mutex::new(Slot::default()));
        assert!(let_go(8, never).await.is_none(), "nothing was begun");
    }
}
