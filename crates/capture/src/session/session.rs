//! A recording session in this process: device, journal, lock.

use std::fmt::Display;
use std::path::Path;
use std::time::Duration;

use time::OffsetDateTime;

use super::completion::Completion;
use super::directory::{self, Owner};
use super::dumps::SnapshotMethod;
use super::event::{Events, Progress, SessionEvent};
use super::id::SessionId;
use super::journal::{
    BootId, DurationBounds, Entry, JOURNAL_VERSION, Journal, ProcessKey, SessionHeader,
    SessionState,
};
use super::probe::{self, QUICK};
use super::store::{SessionLock, Store, read};
use crate::error::CaptureError;
use heaptap_adb::{Command, Device, DeviceError};
use heaptap_base::untrusted::shell::quoted;

/// Time for a device to return before its trace stays on it.
const RETURN: Duration = Duration::from_secs(10);

/// A recording session, and the right to finish it.
pub struct Session {
    pub(super) device: Device,
    pub(super) state: SessionState,
    store: Store,
    journal: Journal,
    /// `None` if another process finishes the session.
    lock: Option<SessionLock>,
    events: Events,
    /// Last report of the device, if it was followed.
    pub(super) last: Option<Progress>,
    /// Device clock of the last report, in ns of BOOTTIME.
    pub(super) up_ns: u64,
    /// Maximum age of perfetto when it was found gone.
    pub(super) over_after: Option<Duration>,
    steps: Vec<(&'static str, OffsetDateTime)>,
    /// Some data source did not confirm its start in time.
    pub(super) slow: bool,
    /// Another process started it.
    resumed: bool,
    pub(super) completion: Completion,
}

impl SessionHeader {
    /// Returns the header of a session on `device` that writes a trace with the usual limits, to be
    /// completed by what is recorded.
    pub fn on(
        device: &Device,
        id: SessionId,
        hardware_serial: Option<String>,
        boot_id: BootId,
        remote_path: String,
        output: &Path,
        plan: serde_json::Value,
    ) -> SessionHeader {
        SessionHeader {
            version: JOURNAL_VERSION,
            id,
            serial: device.serial().to_owned(),
            hardware_serial,
            server: device.server().address(),
            boot_id,
            remote_path,
            removable: true,
            time: OffsetDateTime::now_utc(),
            names: Vec::new(),
            pids: Vec::new(),
            // As in heaptap's own configs.
            stop_limit_ms: 90_000,
            write_period_ms: 5000,
            snapshots: SnapshotMethod::Impossible,
            labels_without_dumps: false,
            config: String::new(),
            output: output.to_owned(),
            heap_files: None,
            plan,
        }
    }
}

impl Session {
    /// Writes the journal, then claims the output directory. Does not send anything to the device.
    ///
    /// # Errors
    /// Returns an error if this host cannot write, or if the directory belongs to another owner;
    /// then no journal is left.
    pub fn create(
        device: Device,
        store: Store,
        header: SessionHeader,
        events: Events,
    ) -> Result<Session, CaptureError> {
        let (journal, lock) = store.create(header)?;
        let in_process = device.server().is_in_process();
        let mut session = Self::assemble(device, store, journal, Some(lock), events)?;
        if in_process {
            session.append(Entry::InProcess)?;
        }
        // After the journal, so that a marker always has a session that can be collected.
        match claim_for(session.id(), &session.header().output) {
            Ok(()) => Ok(session),
            Err(error) => {
                // The directory can be another process's that has not written its marker yet.
                session.remove_journal()?;
                Err(error)
            }
        }
    }

    /// Continues a session that another process started.
    ///
    /// # Errors
    /// Returns [`CaptureError::busy`] if that process is still running.
    pub fn resume(
        device: Device,
        store: Store,
        id: &SessionId,
        events: Events,
    ) -> Result<Session, CaptureError> {
        let lock = store.lock(id)?;
        let journal = store.open(id)?;
        let mut session = Self::assemble(device, store, journal, Some(lock), events)?;
        session.resumed = true;
        Ok(session)
    }

    /// Opens a session that another process finishes.
    pub(super) fn beside(
        device: Device,
        store: Store,
        id: &SessionId,
        events: Events,
    ) -> Result<Session, CaptureError> {
        let journal = store.open(id)?;
        Self::assemble(device, store, journal, None, events)
    }

    fn assemble(
        device: Device,
        store: Store,
        journal: Journal,
        lock: Option<SessionLock>,
        events: Events,
    ) -> Result<Session, CaptureError> {
        let state = read(&journal)?;
        Ok(Session {
            device,
            state,
            store,
            journal,
            lock,
            events,
            last: None,
            up_ns: 0,
            over_after: None,
            steps: Vec::new(),
            slow: false,
            resumed: false,
            completion: Completion::default(),
        })
    }

    /// Returns whether some data source did not confirm its start in time.
    pub fn is_slow(&self) -> bool {
        self.slow
    }

    /// Returns whether another process started the session and no longer follows it.
    pub fn is_resumed(&self) -> bool {
        self.resumed
    }

    pub fn id(&self) -> &SessionId {
        &self.state.header.id
    }

    /// Returns the first line of its journal.
    pub fn header(&self) -> &SessionHeader {
        &self.state.header
    }

    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Reads the journal again, including lines of other processes.
    ///
    /// # Errors
    /// Returns an error if it cannot be read.
    pub fn reread(&mut self) -> Result<&SessionState, CaptureError> {
        self.state = read(&self.journal)?;
        Ok(&self.state)
    }

    /// Returns the journal's state when it was last read.
    pub fn state(&self) -> &SessionState {
        &self.state
    }

    /// Returns the steps of this process with their times by its clock: `started`,
    /// `stop-requested`.
    pub fn steps(&self) -> &[(&'static str, OffsetDateTime)] {
        &self.steps
    }

    /// Records that the device does not write any more.
    ///
    /// # Errors
    /// Returns an error if the journal cannot be written.
    pub fn note_ended(&mut self) -> Result<(), CaptureError> {
        self.append(Entry::Ended)
    }

    /// Records that a restart of the device has ended perfetto.
    ///
    /// # Errors
    /// Returns an error if the journal cannot be written.
    pub fn note_rebooted(&mut self) -> Result<(), CaptureError> {
        if self.state.rebooted {
            return Ok(());
        }
        self.append(Entry::Rebooted)
    }

    /// Claims another output directory, to move the results there. Notes it first: if this process
    /// is killed before the move, the directory is released with the session.
    ///
    /// # Errors
    /// As [`claim_for`], and if the journal cannot be written.
    pub fn claim_output(&mut self, output: &Path) -> Result<(), CaptureError> {
        self.append(Entry::Claiming {
            output: output.to_owned(),
        })?;
        claim_for(self.id(), output)
    }

    pub(super) fn note_step(&mut self, step: &'static str) {
        self.steps.push((step, OffsetDateTime::now_utc()));
    }

    /// Returns the process of perfetto, if known.
    pub(super) fn process(&self) -> Option<&ProcessKey> {
        self.state.process.as_ref()
    }

    /// Records that perfetto was seen to end by itself, and how long it ran.
    ///
    /// # Errors
    /// Returns an error if the journal cannot be written.
    pub fn note_over(&mut self) -> Result<(), CaptureError> {
        if self.state.over.is_some() {
            return Ok(());
        }
        let ms = |age: Duration| age.as_millis() as u64;
        let lasted = self.duration_bounds();
        self.append(Entry::Over {
            at_least_ms: lasted.at_least.map(ms),
            at_most_ms: lasted.at_most.map(ms),
        })
    }

    /// Returns bounds of the duration, as far as a process followed it to its end.
    pub fn duration_bounds(&self) -> DurationBounds {
        self.state.over.unwrap_or_else(|| DurationBounds {
            at_least: self.last.as_ref().map(|report| report.elapsed),
            at_most: self.over_after,
        })
    }

    /// Returns whether its perfetto is running: the same boot, process, start time and command
    /// line.
    ///
    /// # Errors
    /// Returns an error if the device cannot be reached.
    pub async fn is_running(&self) -> Result<bool, CaptureError> {
        let Some(process) = &self.state.process else {
            return Ok(false);
        };
        if probe::moment(&self.device).await?.boot_id != self.header().boot_id {
            return Ok(false);
        }
        let now = probe::process(&self.device, process.pid).await?;
        Ok(now.is_some_and(|p| p.key == *process && p.writes_to(&self.header().remote_path)))
    }

    /// Appends to the journal, and reads the lines that other processes appended.
    pub(super) fn append(&mut self, entry: Entry) -> Result<(), CaptureError> {
        self.journal
            .append(&entry)
            .map_err(|source| CaptureError::state(self.journal.path(), source))?;
        self.reread().map(|_| ())
    }

    pub(super) fn journal_path(&self) -> &Path {
        self.journal.path()
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    pub(super) fn tell(&self, event: SessionEvent) {
        self.events.tell(event);
    }

    pub(super) fn warn(&self, text: String) {
        self.tell(SessionEvent::Warning { text });
    }

    /// Returns the error of a session whose data are still on the device.
    pub fn not_fetched(&self, why: impl Display) -> CaptureError {
        CaptureError::not_fetched(self.device.serial(), self.id(), why)
    }

    /// Removes the trace from the device. A failure is only reported as a warning. Returns false if
    /// the device could not be reached: then the session must stay in the journal, so that `stop`
    /// removes the trace later.
    #[must_use]
    pub async fn remove_remote(&self) -> bool {
        let path = &self.header().remote_path;
        if !self.header().removable {
            self.note_collected().await;
            return true;
        }
        let command = Command::program("rm").arg("-f").args(self.remote_paths());
        let mut removed = self.device.run(&command, QUICK).await;
        if removed.as_ref().is_err_and(DeviceError::is_connection)
            && self.device.wait_ready(RETURN).await.is_ok()
        {
            // Nothing else would remove it later.
            removed = self.device.run(&command, QUICK).await;
        }
        let serial = self.device.serial();
        match removed {
            Ok(output) if output.exit == 0 => true,
            Ok(output) => {
                let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                let paths = self.remote_paths().join(" ");
                let quoted = quoted(serial);
                self.warn(format!(
                    "cannot remove {path} from {serial}: {why}. Remove it with `adb -s {quoted} shell \
                     rm -f {paths}`, if necessary as root."
                ));
                self.note_collected().await;
                true
            }
            Err(error) => {
                let id = self.id();
                self.warn(format!(
                    "cannot remove {path} from {serial}: {error}. Run `heaptap stop {id}` to remove \
                     it."
                ));
                false
            }
        }
    }

    /// Returns all files of this session on the device.
    fn remote_paths(&self) -> Vec<String> {
        let header = self.header();
        let mut paths = vec![header.remote_path.clone()];
        for file in header.heap_files.iter().flat_map(|h| &h.files) {
            paths.push(file.remote.clone());
            paths.push(format!("{}.said", file.remote));
        }
        paths
    }

    /// Records a file that stays on the device as fetched, so that neither the next recording nor
    /// `stop` fetches it again.
    async fn note_collected(&self) {
        let path = &self.header().remote_path;
        let pulled = self.state.pulled.as_ref();
        let noted = match self.device.stat(path, QUICK).await {
            Ok(Some(stat)) if pulled.is_some_and(|file| file.size == stat.size) => {
                self.store.note_collected(&self.header().serial, path, stat)
            }
            // Another host has recorded since, and might not have fetched it yet.
            Ok(_) => Ok(()),
            Err(error) => Err(error.into()),
        };
        if let Err(error) = noted {
            self.warn(format!(
                "this recording will be fetched from the device again: {error}"
            ));
        }
    }

    /// Detaches from the session: the journal stays, the lock is released.
    pub fn release(mut self) -> SessionId {
        // Only `status` uses this line, so a failure is ignored.
        let _ = self.append(Entry::Detached);
        self.state.header.id
    }

    /// Forgets the finished session.
    ///
    /// # Errors
    /// Returns an error if the journal cannot be removed.
    pub fn forget(self) -> Result<(), CaptureError> {
        if self.lock.is_some() {
            self.state.release_directories();
        }
        self.remove_journal()
    }

    fn remove_journal(self) -> Result<(), CaptureError> {
        // Closed first: Windows might keep the name of an open file.
        drop(self.journal);
        match self.lock {
            Some(lock) => self.store.forget(&self.state.header.id, lock),
            None => Err(CaptureError::busy(&self.state.header.id)),
        }
    }
}

/// Claims `output` for the session `id`.
///
/// # Errors
/// Returns an error if the directory belongs to another owner, is not empty, or cannot be written.
pub fn claim_for(id: &SessionId, output: &Path) -> Result<(), CaptureError> {
    let claimed = directory::claim(output, &Owner::Session(id.clone()));
    claimed.map_err(|unclaimed| unclaimed.into_error(output))
}
