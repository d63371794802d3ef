//! Snapshots on demand: whether the device supports them, triggering one, and waiting until its
//! dump is complete in the device's file.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::dumps::SnapshotMethod;
use super::event::SessionEvent;
use super::growing_trace::{LOOK, look};
use super::id::SessionId;
use super::journal::{Entry, Label, SessionState};
use super::probe::{self, QUICK};
use super::session::Session;
use super::store::Store;
use super::targets::target_pids;
use crate::config::HEAPPROFD;
use crate::error::{CaptureError, kind};
use android_memory::status::uptime_ns;
use heaptap_adb::{Command, Device};
use heaptap_base::error::Classified as _;
use heaptap_base::error::ErrorClass;
use perfetto_heap::{CompleteDump, DumpScanner};

/// A snapshot whose dump is complete in the device's file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Snapshot {
    pub label: String,
    /// BOOTTIME of the request, ns.
    pub boot_ns: u64,
    /// Time from the request to the last of its dumps.
    pub lag_ms: u64,
    /// Time from the request until the dumps were complete in the device's file.
    pub waited_ms: u64,
    /// Number of dumps, one per process and heap.
    pub dumps: usize,
    /// Sum of the unreleased bytes of the native dumps.
    pub unreleased_bytes: u64,
    /// Processes that match the targets but did not produce a dump: not attached, frozen, or gone.
    pub missing_pids: Vec<u32>,
    /// Reason why there is no dump, if the label was set only for other data captured
    /// at it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_dump: Option<String>,
}

impl Snapshot {
    /// Creates a snapshot with only a label.
    fn without_dump(request: Label, config: &str) -> Snapshot {
        // The config of a session that another host started is unknown here.
        let samples = config.is_empty() || config.contains(HEAPPROFD);
        Snapshot {
            label: request.label,
            boot_ns: request.boot_ns,
            no_dump: Some(if samples { NO_WAY_YET } else { NO_HEAP }.to_owned()),
            ..Snapshot::default()
        }
    }
}

/// A requested snapshot.
pub(super) struct Asked {
    label: String,
    /// Number of earlier requests.
    number: usize,
    /// Number of labels before the first attempt, if that one lost the connection.
    labels_before: Option<usize>,
}

impl Asked {
    pub(super) fn new(label: String, number: usize) -> Self {
        Self {
            label,
            number,
            labels_before: None,
        }
    }
}

/// Result that a snapshot task returns to its session.
pub(super) struct Taken {
    asked: Asked,
    labels_before: usize,
    result: Result<Snapshot, CaptureError>,
}

impl Taken {
    /// Returns the number of earlier requests.
    pub(super) fn number(&self) -> usize {
        self.asked.number
    }
}

/// Reason why dumps cannot be triggered.
const NO_WAY: &str = "the shell of this build cannot signal heapprofd, and periodic dumps are off";
/// The same reason with its remedy, for output without a help line.
const NO_WAY_YET: &str = "the shell of this build cannot signal heapprofd, and periodic dumps are \
                          off; use `--snapshots=PERIOD` to enable them";
/// Reason why there is nothing to dump.
const NO_HEAP: &str = "this recording does not sample a native heap";
/// Maximum delay of a dump after the last write period.
const DUMP_LIMIT: Duration = Duration::from_secs(30);

/// Takes a snapshot in a running session, no matter which process follows it. `noted` is the label
/// of an attempt that lost the connection after the journal had it.
///
/// # Errors
/// Returns an error if the device does not support it, no process is left to dump, none was ever
/// dumped, or no dump arrived in time.
pub async fn take_snapshot(
    device: &Device,
    store: &Store,
    state: &SessionState,
    label: String,
    noted: Option<Label>,
) -> Result<Snapshot, CaptureError> {
    let header = &state.header;
    let not_recording = || CaptureError::not_recording(&header.id);
    let process = state.process.as_ref().ok_or_else(not_recording)?;
    let now = probe::process(device, process.pid).await?;
    if now.is_none_or(|p| p.key != *process || !p.writes_to(&header.remote_path)) {
        return Err(not_recording());
    }
    let expected = target_pids(device, state).await?;
    // The dump of a noted label is anywhere.
    let start = match noted {
        None => device.stat(&header.remote_path, QUICK).await?,
        Some(_) => None,
    };
    let start = start.map_or(0, |s| s.size);
    let moment = probe::moment(device).await?;
    if moment.boot_id != header.boot_id {
        return Err(not_recording());
    }
    // If no process follows the session, nothing would be captured at a label without a dump.
    if header.snapshots == SnapshotMethod::Impossible
        && !(header.labels_without_dumps && store.is_locked(&header.id))
    {
        return Err(CaptureError::no_snapshot(NO_WAY));
    }
    let mut journal = store.open(&header.id)?;
    let is_noted = noted.is_some();
    let mut request = noted.unwrap_or(Label {
        label,
        boot_ns: moment.boot_ns,
        sent_ns: None,
    });
    let mut note = |entry: &Entry| {
        journal
            .append(entry)
            .map_err(|source| CaptureError::state(journal.path(), source))
    };
    if !is_noted {
        note(&Entry::Label(request.clone()))?;
    }
    let gone = || {
        let id = &header.id;
        let message =
            format!("cannot take a snapshot in session {id}: the recorded process has ended");
        CaptureError::new(ErrorClass::NotEligible, "not-running", message).with_help(format!(
            "start the app again and take another snapshot, or end the recording with `heaptap \
             stop {id}`"
        ))
    };
    if header.snapshots != SnapshotMethod::Impossible && are_gone(state, &expected) {
        return Err(gone());
    }
    let extra = match &header.snapshots {
        SnapshotMethod::Signal { .. } if request.sent_ns.is_some() => Duration::ZERO,
        SnapshotMethod::Signal { su } => {
            let sent_ns = signal_heapprofd(device, *su).await?;
            // A time before a restart of the clock, if there was one, is not a bound.
            request.sent_ns = sent_ns.filter(|sent| *sent >= request.boot_ns);
            note(&Entry::Requested(request.clone()))?;
            Duration::ZERO
        }
        SnapshotMethod::Continuous { period_ms, .. } => Duration::from_millis(2 * period_ms),
        SnapshotMethod::Impossible => return Ok(Snapshot::without_dump(request, &header.config)),
    };
    let period = Duration::from_millis(header.write_period_ms);
    let waiting = Waiting {
        device,
        id: &header.id,
        file: (&header.remote_path, process.pid),
        request: &request,
        expected: &expected,
        limit: DUMP_LIMIT + extra + 2 * period,
        // Dumps of several processes arrive one after another.
        others: extra + 2 * period + Duration::from_secs(1),
    };
    let late = || CaptureError::snapshot_late(waiting.limit);
    let taken = match waiting.until_complete(start).await {
        // The start position was not a packet boundary: read the whole file.
        Ok(None) => waiting.until_complete(0).await,
        taken => taken,
    };
    let taken = taken.and_then(|taken| taken.ok_or_else(late));
    if let Err(late) = &taken
        && late.is(&[kind::SNAPSHOT_LATE])
    {
        if let Ok(running) = target_pids(device, state).await
            && are_gone(state, &running)
        {
            return Err(gone());
        }
        if header.config.contains(HEAPPROFD) && waiting.has_no_dump().await {
            let message = format!(
                "no dump arrived within {} s: heapprofd attaches to a process when it allocates, \
                 and has not attached to any yet",
                waiting.limit.as_secs()
            );
            let error = CaptureError::new(ErrorClass::Device, kind::SNAPSHOT_LATE, message);
            return Err(error.with_help(
                "use the app until it allocates, then take another snapshot; the recording \
                 continues",
            ));
        }
    }
    taken
}

/// Returns whether no process matches the targets of a session any more, given those that run. A
/// name that no process had yet, or a pattern, does not tell: `pidof` might not find it.
fn are_gone(state: &SessionState, running: &BTreeSet<u32>) -> bool {
    let header = &state.header;
    let is_seen = |name: &String| {
        state
            .seen
            .values()
            .any(|seen| seen.ends_with(name.as_str()))
    };
    let is_known = match header.names.is_empty() {
        true => !header.pids.is_empty(),
        false => header.names.iter().all(is_seen),
    };
    let has_pattern = header.names.iter().any(|name| name.contains('*'));
    running.is_empty() && is_known && !has_pattern
}

struct Waiting<'a> {
    device: &'a Device,
    id: &'a SessionId,
    /// The trace file, and the PID of perfetto.
    file: (&'a str, u32),
    request: &'a Label,
    expected: &'a BTreeSet<u32>,
    limit: Duration,
    others: Duration,
}

impl Waiting<'_> {
    /// Returns whether the trace does not contain any dump since its start; false if it cannot be
    /// read.
    async fn has_no_dump(&self) -> bool {
        let mut scan = DumpScanner::default();
        let read = look(self.device, self.file, &mut 0, &mut scan).await;
        read.is_ok() && !scan.is_lost() && scan.dumps().is_empty()
    }

    /// Reads the file from `at` on until the dump is complete; `None` if `at` was not a packet
    /// boundary.
    async fn until_complete(&self, mut at: u64) -> Result<Option<Snapshot>, CaptureError> {
        let mut scan = DumpScanner::default();
        // The device's clock decides about lateness, and ours if the device is silent.
        let silent = Instant::now() + self.limit + QUICK;
        let mut first_seen: Option<u64> = None;
        let mut seen_before = 0;
        loop {
            let looking = look(self.device, self.file, &mut at, &mut scan);
            let look = tokio::time::timeout_at(silent, looking).await;
            let look = look.map_err(|_| CaptureError::snapshot_late(self.limit))??;
            if scan.is_lost() {
                return Ok(None);
            }
            let dumps = scan.dumps().iter();
            let dumps = dumps.filter(|d| self.request.may_be_of(d.written_ns));
            let dumps: Vec<&CompleteDump> = dumps.collect();
            let pids = dumps.iter().map(|dump| u32::try_from(dump.pid));
            let pids: BTreeSet<u32> = pids.flatten().collect();
            let all = !dumps.is_empty() && self.expected.is_subset(&pids);
            // Check once more after the last heap: a process might have several. Periodic dumps of
            // the same heaps go on.
            let heaps = dumps.iter().map(|dump| (dump.pid, &dump.heap));
            let heaps = heaps.collect::<BTreeSet<_>>().len();
            let settled = heaps == seen_before;
            seen_before = heaps;
            if !dumps.is_empty() {
                first_seen.get_or_insert(look.boot_ns);
            }
            let since = |then: u64| Duration::from_nanos(look.boot_ns.saturating_sub(then));
            let waited = first_seen.is_some_and(|then| since(then) >= self.others);
            if (settled && (all || waited)) || (!look.alive && !dumps.is_empty()) {
                return Ok(Some(self.snapshot(&dumps, &pids, look.boot_ns)));
            }
            if !look.alive {
                return Err(CaptureError::not_recording(self.id));
            }
            if since(self.request.boot_ns) >= self.limit {
                return Err(CaptureError::snapshot_late(self.limit));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn snapshot(&self, dumps: &[&CompleteDump], pids: &BTreeSet<u32>, seen_ns: u64) -> Snapshot {
        // The label is bound to the first dump of each process and heap.
        let mut first = BTreeMap::new();
        for dump in dumps {
            let known = first
                .entry((dump.pid, dump.heap.as_str()))
                .or_insert((dump.written_ns, dump.unreleased_bytes));
            *known = (dump.written_ns, dump.unreleased_bytes).min(*known);
        }
        let last = first.values().map(|(written_ns, _)| *written_ns).max();
        let bytes = first.values().map(|(_, bytes)| *bytes);
        let since = |then: u64| then.saturating_sub(self.request.boot_ns) / 1_000_000;
        Snapshot {
            label: self.request.label.clone(),
            boot_ns: self.request.boot_ns,
            lag_ms: last.map_or(0, since),
            waited_ms: since(seen_ns),
            dumps: first.len(),
            unreleased_bytes: bytes.fold(0, u64::saturating_add),
            missing_pids: self.expected.difference(pids).copied().collect(),
            no_dump: None,
        }
    }
}

/// Requests a dump. Returns the device's clock right before.
async fn signal_heapprofd(device: &Device, su: bool) -> Result<Option<u64>, CaptureError> {
    let script = match su {
        true => "cat /proc/uptime; su root killall -USR1 heapprofd",
        false => "cat /proc/uptime; killall -USR1 heapprofd",
    };
    let command = Command::script(script).called("requesting a dump");
    let output = device.run(&command, QUICK).await?;
    if output.exit == 0 {
        let uptime = String::from_utf8_lossy(&output.stdout);
        return Ok(uptime_ns(&uptime));
    }
    let why = String::from_utf8_lossy(&output.stderr);
    let why = format!("cannot signal heapprofd: {}", why.trim());
    Err(CaptureError::no_snapshot(&why))
}

impl Session {
    /// Takes a snapshot while the session is followed.
    pub(super) fn begin_snapshot(&self, asked: Asked, done: mpsc::UnboundedSender<Taken>) {
        let label = asked.label.clone();
        let labels = &self.state.labels;
        let labels_before = asked.labels_before.unwrap_or(labels.len());
        let mut since = labels.iter().skip(labels_before);
        let noted = since.find(|noted| noted.label == label).cloned();
        if asked.labels_before.is_none() {
            self.tell(SessionEvent::SnapshotRequested {
                label: label.clone(),
            });
        }
        let device = self.device.clone();
        let store = self.store().clone();
        let state = self.state.clone();
        tokio::spawn(async move {
            let result = take_snapshot(&device, &store, &state, label, noted).await;
            // The recording might have ended meanwhile.
            let _ = done.send(Taken {
                asked,
                labels_before,
                result,
            });
        });
    }

    /// Reports the result. Returns the request if the connection broke for the first time.
    ///
    /// # Errors
    /// Returns the error of reading the session's journal.
    pub(super) fn end_snapshot(&mut self, taken: Taken) -> Result<Option<Asked>, CaptureError> {
        self.reread()?;
        let Taken {
            mut asked,
            labels_before,
            result,
        } = taken;
        match result {
            Err(CaptureError::Device(error))
                if error.is_connection() && asked.labels_before.is_none() =>
            {
                asked.labels_before = Some(labels_before);
                return Ok(Some(asked));
            }
            Ok(snapshot) => {
                if !snapshot.missing_pids.is_empty() {
                    let pids: Vec<String> =
                        snapshot.missing_pids.iter().map(u32::to_string).collect();
                    let pids = pids.join(", ");
                    self.warn(format!(
                        "no dump of process {pids}: not attached, frozen or gone"
                    ));
                }
                self.tell(SessionEvent::SnapshotTaken {
                    label: snapshot.label,
                    lag: Duration::from_millis(snapshot.lag_ms),
                    waited: Duration::from_millis(snapshot.waited_ms),
                    dumps: snapshot.dumps,
                    unreleased_bytes: snapshot.unreleased_bytes,
                    no_dump: snapshot.no_dump,
                });
            }
            Err(error) => self.fail_snapshot(asked, &error),
        }
        Ok(None)
    }

    /// Reports a request that waits when following ends, because of `error` or with the recording.
    pub(super) fn miss_snapshot(&self, asked: Asked, error: Option<&CaptureError>) {
        let begun = asked.labels_before.unwrap_or(usize::MAX);
        let mut since = self.state.labels.iter().skip(begun);
        if since.any(|noted| noted.label == asked.label) {
            return self.warn(format!(
                "snapshot {}: the connection was lost before its dump was confirmed",
                asked.label
            ));
        }
        let ended = CaptureError::not_recording(self.id());
        self.fail_snapshot(asked, error.unwrap_or(&ended));
    }

    fn fail_snapshot(&self, asked: Asked, error: &CaptureError) {
        self.tell(SessionEvent::SnapshotFailed {
            label: asked.label,
            why: error.to_string(),
            kind: error.kind(),
            class: error.class(),
        });
    }
}
