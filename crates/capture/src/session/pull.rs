//! Fetches the trace: to a temporary file next to the goal, checks size and SHA-256 against
//! the device's, syncs and renames it. Failed pulls are retried; the device's copy is
//! not modified here.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use super::directory::part_prefix;
use super::event::{Controls, SessionEvent, stop_asked};
use super::id::SessionId;
use super::journal::{self, Contents, Entry, SessionState};
use super::probe::{self, QUICK};
use super::session::Session;
use crate::error::CaptureError;
use heaptap_adb::{Command, DeviceError, RETURN_LIMIT};
use heaptap_base::bytes::{Bytes, sha256_of};
use heaptap_base::directory::RAW_TRACE;
use heaptap_base::rename_retry;
use heaptap_base::unfinished::{self, ExistingFile};
use heaptap_base::units::hex;

/// Maximum silence between two blocks of a pull.
const STALL: Duration = Duration::from_secs(20);
/// Timeout for hashing the device's copy.
const HASH_LIMIT: Duration = Duration::from_secs(300);
/// Maximum number of failed attempts without progress; after it, the pull is left to a later
/// `stop`.
const BROKEN: u32 = 6;
/// Exit codes of a shell that cannot start a program, or does not find it.
const NO_PROGRAM: [u8; 2] = [126, 127];
/// Number of attempts to hash the device's copy: memory can be low.
const HASHES: u32 = 3;
/// Pause between them.
const HASH_PAUSE: Duration = Duration::from_secs(1);
/// Maximum number of copies that differ from the device's.
const MISMATCHES: u32 = 3;
/// Setting of a config that the trace does not repeat.
const NO_CONFIG: &str = "disable_trace_config: true";
/// Progress is reported in steps of this many bytes.
const STEP: u64 = 1 << 20;
/// More than the first packet of a trace, which has its config.
const FIRST_PACKET: usize = 1 << 20;

/// A trace on this host, an exact copy of the device's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawTrace {
    pub path: PathBuf,
    pub contents: Contents,
    /// Arrival of the last byte, by this host's clock; `None` if another process
    /// fetched it.
    pub received_at: Option<time::OffsetDateTime>,
}

/// A copy that is not verified yet.
struct Received {
    file: tempfile::NamedTempFile,
    contents: Contents,
    at: time::OffsetDateTime,
}

/// Failure of one attempt.
enum Attempt {
    Device(DeviceError),
    /// Another file has the name.
    Taken,
    /// The device's file is not complete.
    Growing,
    /// It grew during the copy: traced writes what it has after perfetto has died.
    Grew(String),
    /// The copy differs from the device's file.
    Mismatch(String),
    Host(io::Error),
}

impl From<DeviceError> for Attempt {
    fn from(error: DeviceError) -> Attempt {
        Attempt::Device(error)
    }
}

impl From<io::Error> for Attempt {
    fn from(error: io::Error) -> Attempt {
        Attempt::Host(error)
    }
}

impl Session {
    /// Fetches the trace to `goal`.
    ///
    /// # Errors
    /// Returns [`CaptureError::not_fetched`] if the device stays away or a stop is requested,
    /// [`CaptureError::keep`] if this host cannot write, [`CaptureError::nothing_left`]
    /// if the device does not have the file.
    pub async fn pull(
        &mut self,
        goal: &Path,
        controls: &mut Controls,
    ) -> Result<RawTrace, CaptureError> {
        self.note_ended()?;
        let remote = self.header().remote_path.clone();
        let entry = |Contents { size, sha256 }| Entry::Pulled { size, sha256 };
        match self
            .pull_file(&remote, goal, ExistingFile::Stays, entry, controls)
            .await?
        {
            Some(trace) => Ok(trace),
            // The session did not produce anything, and was not stopped.
            None if self.last.as_ref().is_some_and(|p| p.trace_bytes == 0)
                && !self.state.stopping() =>
            {
                Err(self.rejection().await)
            }
            None => Err(CaptureError::nothing_left(
                self.device.serial(),
                self.id(),
                !self.header().removable,
            )),
        }
    }

    /// Fetches `remote` to `goal`, where an earlier copy may be; `None` if the device does not have
    /// the file. `entry` is written to the journal before the copy gets its name, so that no copy is
    /// unknown to the journal, whenever the process is killed.
    pub(super) async fn pull_file(
        &mut self,
        remote: &str,
        goal: &Path,
        earlier: ExistingFile,
        entry: impl Fn(Contents) -> Entry,
        controls: &mut Controls,
    ) -> Result<Option<RawTrace>, CaptureError> {
        let mut ended_told = false;
        let mut grows = None;
        let mut last_progress = Instant::now();
        let mut furthest = 0;
        let mut mismatches = 0;
        let mut broken = 0;
        let mut backoff = Duration::from_millis(50);
        loop {
            let mut got = 0;
            let attempt = tokio::select! {
                attempt = self.pull_once(remote, goal, earlier, &mut got, &mut ended_told) => attempt,
                () = stop_asked(controls) => return Err(self.not_fetched("interrupted")),
            };
            let attempt = match attempt {
                Ok(None) => return Ok(None),
                Ok(Some(received)) => {
                    self.append(entry(received.contents.clone()))?;
                    publish(received, goal, earlier).await
                }
                Err(why) => Err(why),
            };
            let why = match attempt {
                Ok(trace) => {
                    self.tell(SessionEvent::Pulled {
                        bytes: trace.contents.size,
                    });
                    return Ok(Some(trace));
                }
                Err(Attempt::Host(source)) => {
                    return Err(CaptureError::keep(self.id(), goal, source));
                }
                Err(Attempt::Taken) => {
                    return Err(CaptureError::name_taken(self.id(), goal));
                }
                Err(Attempt::Growing) => {
                    return Err(self.not_fetched("the device is still writing it"));
                }
                Err(Attempt::Mismatch(why)) => {
                    mismatches += 1;
                    if mismatches >= MISMATCHES {
                        return Err(self.not_fetched(why));
                    }
                    why
                }
                Err(Attempt::Grew(why)) => {
                    if grows.get_or_insert_with(Instant::now).elapsed() > RETURN_LIMIT {
                        return Err(self.not_fetched(why));
                    }
                    broken = 0;
                    why
                }
                Err(Attempt::Device(error)) if error.is_connection() => error.to_string(),
                Err(Attempt::Device(error)) => return Err(self.not_fetched(error)),
            };
            // Each attempt starts at the first byte, and a large file takes long.
            if got > 0 {
                last_progress = Instant::now();
                broken += 1;
            }
            if got > furthest {
                furthest = got;
                broken = 0;
                backoff = Duration::from_millis(50);
            }
            if broken >= BROKEN || last_progress.elapsed() > RETURN_LIMIT {
                return Err(self.not_fetched(why));
            }
            self.tell(SessionEvent::PullRetry { why });
            let back = async {
                tokio::time::sleep(backoff).await;
                self.device.wait_ready(RETURN_LIMIT).await
            };
            tokio::select! {
                // If it is not ready, the next attempt reports the error.
                _ = back => {}
                () = stop_asked(controls) => return Err(self.not_fetched("interrupted")),
            }
            backoff = (backoff * 2).min(Duration::from_secs(5));
        }
    }

    async fn pull_once(
        &self,
        remote: &str,
        goal: &Path,
        earlier: ExistingFile,
        got: &mut u64,
        ended_told: &mut bool,
    ) -> Result<Option<Received>, Attempt> {
        let stat = self.device.stat(remote, QUICK);
        let (stat, is_running) = tokio::join!(stat, self.is_running());
        // While the process writes, a copy would be incomplete, and the original is removed after it.
        match is_running {
            Ok(false) => {}
            Ok(true) => return Err(Attempt::Growing),
            Err(CaptureError::Device(error)) => return Err(Attempt::Device(error)),
            Err(odd) => return Err(Attempt::Mismatch(odd.to_string())),
        }
        let Some(before) = stat? else {
            return Ok(None);
        };
        // Android 10 keeps one file for all sessions.
        let header = self.header();
        if !header.removable && self.store().is_collected(&header.serial, remote, before) {
            return Ok(None);
        }
        if !std::mem::replace(ended_told, true) {
            self.tell(SessionEvent::Ended { size: before.size });
        }
        let (pulled, theirs) = tokio::join!(
            self.receive(remote, goal, before.size, got),
            self.remote_hash(remote)
        );
        if let Err(attempt @ (Attempt::Device(_) | Attempt::Host(_))) = pulled {
            return Err(attempt);
        }
        let after = self.device.stat(remote, QUICK).await?;
        let there = after.map_or(before.size, |stat| stat.size);
        if there > before.size {
            return Err(Attempt::Grew(format!(
                "the device's file grew to {there} bytes"
            )));
        }
        let received = pulled?;
        let size = received.contents.size;
        if size != before.size || after.is_none() || there != size {
            let what = format!("received {size} bytes of a file of {there} bytes");
            return Err(Attempt::Mismatch(what));
        }
        if theirs?.is_some_and(|theirs| theirs != received.contents.sha256) {
            let what = "the copy differs from the device's file".to_owned();
            return Err(Attempt::Mismatch(what));
        }
        received.file.as_file().sync_all()?;
        if size > 0 && !self.is_of_session(received.file.path())? {
            return Ok(None);
        }
        let is_taken = earlier == ExistingFile::Stays && std::fs::symlink_metadata(goal).is_ok();
        if is_taken && !is_in(&received.contents, goal).await {
            return Err(Attempt::Taken);
        }
        Ok(Some(received))
    }

    /// Returns whether a trace is of this session: another recording can have overwritten the only
    /// file of Android 10.
    fn is_of_session(&self, trace: &Path) -> io::Result<bool> {
        let header = self.header();
        let mark = header.id.trace_mark();
        let is_marked = header.config.contains(&mark) && !header.config.contains(NO_CONFIG);
        if header.removable || !is_marked {
            return Ok(true);
        }
        let trace = Bytes::map(trace)?;
        let is_ours = memchr::memmem::find(&trace, mark.as_bytes()).is_some();
        // One that breaks off in its first packet, which has the config, might be this session's.
        Ok(is_ours || !perfetto_heap::has_packet(&trace[..trace.len().min(FIRST_PACKET)]))
    }

    /// Returns the file at `goal` if it is one of the fetched `copies`, by its SHA-256. Any other file
    /// is renamed, because it might be valuable.
    ///
    /// # Errors
    /// Returns an error if this host cannot rename it.
    pub async fn kept(
        &self,
        goal: &Path,
        copies: Vec<Contents>,
    ) -> Result<Option<RawTrace>, CaptureError> {
        if copies.is_empty() || std::fs::symlink_metadata(goal).is_err() {
            return Ok(None);
        }
        for contents in copies {
            if is_in(&contents, goal).await {
                return Ok(Some(RawTrace {
                    path: goal.to_owned(),
                    contents,
                    received_at: None,
                }));
            }
        }
        let aside = set_aside(goal);
        let aside = aside.map_err(|source| CaptureError::keep(self.id(), goal, source))?;
        self.warn(format!(
            "{} has changed since it was fetched. It is now {}, and heaptap fetches the device's \
             copy again.",
            goal.display(),
            aside.display()
        ));
        Ok(None)
    }

    async fn receive(
        &self,
        remote: &str,
        goal: &Path,
        total: u64,
        got: &mut u64,
    ) -> Result<Received, Attempt> {
        let directory = goal.parent().unwrap_or(Path::new("."));
        let mut file = part_file(directory, self.id())?;
        let mut hash = Sha256::new();
        let mut told = 0;
        let mut too_long = false;
        let mut sink = |block: &[u8]| {
            if *got + block.len() as u64 > total {
                too_long = true;
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            file.write_all(block)?;
            hash.update(block);
            *got += block.len() as u64;
            if *got - told >= STEP || *got == total {
                told = *got;
                self.tell(SessionEvent::Pulling { bytes: told, total });
            }
            Ok(())
        };
        let size = self.device.pull(remote, &mut sink, STALL).await;
        let size = size.map_err(|error| match error {
            DeviceError::Sink(_) if too_long => Attempt::Mismatch(format!(
                "received more than {total} bytes of a file of {total} bytes"
            )),
            DeviceError::Sink(source) => Attempt::Host(source),
            other => Attempt::Device(other),
        })?;
        Ok(Received {
            at: time::OffsetDateTime::now_utc(),
            file,
            contents: Contents {
                size,
                sha256: hex(&hash.finalize()),
            },
        })
    }

    /// Returns the device's own SHA-256 of its file; `None` if it does not have a program for that, or
    /// with a warning if that fails.
    async fn remote_hash(&self, remote: &str) -> Result<Option<String>, DeviceError> {
        let command = Command::program("sha256sum").arg(remote);
        let mut output = self.device.run(&command, HASH_LIMIT).await?;
        for _ in 1..HASHES {
            // The caller tries again after a signal.
            if !(1..NO_PROGRAM[0]).contains(&output.exit) {
                break;
            }
            tokio::time::sleep(HASH_PAUSE).await;
            output = self.device.run(&command, HASH_LIMIT).await?;
        }
        if NO_PROGRAM.contains(&output.exit) {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let word = text.split_whitespace().next().unwrap_or("");
        let plain = word.len() == 64 && word.bytes().all(|b| b.is_ascii_hexdigit());
        if output.exit == 0 && plain {
            return Ok(Some(word.to_ascii_lowercase()));
        }
        // A signal ended it: not a device without it.
        if output.exit > 128 {
            return Err(probe::no_answer(&self.device, "the checksum of its file"));
        }
        let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        self.warn(format!(
            "the copy was compared with the device's only by size: sha256sum failed there: {why}"
        ));
        Ok(None)
    }
}

/// Gives a copy its name.
async fn publish(
    received: Received,
    goal: &Path,
    earlier: ExistingFile,
) -> Result<RawTrace, Attempt> {
    let Received { file, contents, at } = received;
    if let Err((error, file)) = unfinished::publish(file.into_temp_path(), goal, earlier) {
        if error.kind() != io::ErrorKind::AlreadyExists {
            return Err(Attempt::Host(error));
        }
        // An earlier process has fetched the same file.
        drop(file);
        if !is_in(&contents, goal).await {
            return Err(Attempt::Taken);
        }
    }
    journal::sync_directory(goal)?;
    Ok(RawTrace {
        path: goal.to_owned(),
        contents,
        received_at: Some(at),
    })
}

impl Session {
    /// Changes the output directory to `output`, an absolute path. What was already fetched into the
    /// previous directory is copied: the device might not have it any more. If that fails, the copies
    /// are removed, but nothing that was in `output` before.
    ///
    /// # Errors
    /// Returns an error if the copy or the journal cannot be written.
    pub fn move_output(&mut self, output: &Path) -> Result<(), CaptureError> {
        let mut placed = Vec::new();
        let moved = self.copy_output(output, &mut placed);
        if moved.is_err() {
            for copy in placed {
                let _ = std::fs::remove_file(copy);
            }
        }
        moved
    }

    /// Adds the copies that it places to `placed`.
    fn copy_output(
        &mut self,
        output: &Path,
        placed: &mut Vec<PathBuf>,
    ) -> Result<(), CaptureError> {
        let from = self.header().output.clone();
        let mut is_copied = |name: &str, contents: &Contents| {
            let goal = output.join(name);
            self.copy(&from.join(name), &goal, contents, placed)
                .map_err(|source| CaptureError::keep(self.id(), &goal, source))
        };
        let mut pulled = self.state.pulled.clone();
        if let Some(trace) = &pulled
            && !is_copied(RAW_TRACE, trace)?
        {
            pulled = None;
        }
        let mut files = BTreeMap::new();
        for name in self.state.files.keys() {
            for contents in self.state.copies(name) {
                if is_copied(name, contents)? {
                    files.insert(name.clone(), contents.clone());
                    break;
                }
            }
        }
        self.append(Entry::Moved {
            output: output.to_owned(),
            pulled,
            files,
        })
    }

    /// Copies a fetched file; returns false if `from` is not that file.
    fn copy(
        &self,
        from: &Path,
        goal: &Path,
        contents: &Contents,
        placed: &mut Vec<PathBuf>,
    ) -> io::Result<bool> {
        // A process that was killed before it could record it has copied it.
        if contents.is_in(goal) {
            journal::sync_directory(goal)?;
            return Ok(true);
        }
        let Ok(mut source) = std::fs::File::open(from) else {
            return Ok(false);
        };
        let mut file = part_file(goal.parent().unwrap_or(Path::new(".")), self.id())?;
        let size = io::copy(&mut source, &mut file)?;
        // A copy that cannot be read back is an error, not another file: the trace may be nowhere else.
        let sha256 = sha256_of(file.path())?;
        if (Contents { size, sha256 }) != *contents {
            return Ok(false);
        }
        file.as_file().sync_all()?;
        unfinished::place(file.into_temp_path(), goal).map_err(|(error, _)| error)?;
        placed.push(goal.to_owned());
        journal::sync_directory(goal)?;
        Ok(true)
    }
}

impl SessionState {
    /// Removes fetched files from the previous output directory if they are whole in the new one: the
    /// journal notes a move after it has compared the checksums of the copies.
    pub fn remove_moved(&self) {
        if let Some(previous) = &self.moved_from {
            self.remove_copies(previous);
        }
    }

    /// Removes fetched files from another directory if they are whole in the output directory.
    pub(super) fn remove_copies(&self, other: &Path) {
        let trace = self.pulled.iter().map(|trace| (RAW_TRACE, trace));
        let files = self.files.iter().map(|(name, file)| (name.as_str(), file));
        for (name, contents) in trace.chain(files) {
            let (copy, own) = (other.join(name), self.header.output.join(name));
            if contents.fits(&copy) && contents.fits(&own) {
                // One that stays is a superfluous copy.
                let _ = std::fs::remove_file(copy);
            }
        }
    }
}

/// Returns whether the file at `path` is the fetched one.
async fn is_in(contents: &Contents, path: &Path) -> bool {
    let (contents, path) = (contents.clone(), path.to_owned());
    let is_in = tokio::task::spawn_blocking(move || contents.is_in(&path));
    is_in.await.unwrap_or(false)
}

/// Renames the file at `path` to an unused name: `raw-trace.changed`.
fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let with = |ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    let mut aside = with(".changed");
    let mut number = 2;
    while std::fs::symlink_metadata(&aside).is_ok() {
        aside = with(&format!(".changed-{number}"));
        number += 1;
    }
    rename_retry::rename(path, &aside)?;
    Ok(aside)
}

fn part_file(directory: &Path, id: &SessionId) -> io::Result<tempfile::NamedTempFile> {
    unfinished::file_in(directory, &part_prefix(id))
}
