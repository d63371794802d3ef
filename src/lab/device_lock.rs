//! One scenario at a time on a device, among all processes and hosts that share the state directory
//! (`HEAPTAP_STATE_DIR`).
//!
//! On one host, the operating system holds the lock: it is free when its process ends, however it
//! ends. Network file systems do not hold locks between hosts reliably. Therefore the owner also has
//! a file `DEVICE.owner-7`, whose content changes every few seconds. The next owner creates the file
//! with the next number, which exactly one process can. It does so if the content says `free`, if
//! the owner was a process of its own host, or if the content did not change for a while by its own
//! monotonic clock. The clocks of two hosts are never compared. An owner that was suspended notices
//! the next number, and gives up.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::Instant;

use super::path_lock::PathLock;
use heaptap_adb::{Address, Device};
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::parallel::lock;
use heaptap_base::untrusted::sanitize;
use heaptap_capture::provoke;
use heaptap_capture::session::{self, Store};
use heaptap_results::file_names::file_name;

/// Directory of the locks, next to the journals of recordings.
const DIRECTORY: &str = "devices";
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(500);
/// Interval at which an owner changes its file.
const BEAT: Duration = Duration::from_secs(5);
/// Time without a change after which an owner is gone: six beats.
const GONE: Duration = Duration::from_secs(30);

/// Content of an owner's file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Owner {
    /// Name of its host, for messages.
    host: String,
    /// ID of the host's boot. Linux has one without a privilege; it is empty elsewhere, and there
    /// the next process waits as for another host if the owner was killed.
    boot: String,
    pid: u32,
    beat: u64,
    /// It has released the device.
    free: bool,
}

impl Owner {
    fn this_process() -> Owner {
        let read = |path: &str| {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            text.trim().to_owned()
        };
        let name = || std::env::var("COMPUTERNAME").or_else(|_| std::env::var("HOSTNAME"));
        let host = Some(read("/proc/sys/kernel/hostname")).filter(|host| !host.is_empty());
        Owner {
            host: host.unwrap_or_else(|| name().unwrap_or_else(|_| "this host".to_owned())),
            boot: read("/proc/sys/kernel/random/boot_id"),
            pid: std::process::id(),
            beat: 0,
            free: false,
        }
    }

    fn parse(text: &str) -> Option<Owner> {
        serde_json::from_str(text).ok()
    }

    fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// A device that no other scenario uses while this lives.
#[derive(Debug)]
pub struct DeviceLock {
    _lock: PathLock,
    files: Files,
    number: u64,
    /// Whether the device is released. Held while the owner's file is written, because aborting the
    /// beats does not stop a write.
    is_over: Arc<Mutex<bool>>,
    beats: tokio::task::JoinHandle<()>,
    lost: watch::Receiver<bool>,
}

impl DeviceLock {
    /// Waits until no other scenario uses the device. `tell` is called once if it has to wait.
    ///
    /// # Errors
    /// Returns an error if the device is not free within `limit`, or if it or the state directory
    /// cannot be used.
    pub async fn acquire(
        store: &Store,
        device: &Device,
        limit: Duration,
        tell: impl FnOnce(),
    ) -> Result<DeviceLock, Failure> {
        let own_serial = provoke::hardware_serial(device).await?;
        let key = key(device.serial(), &own_serial, &device.server().address());
        DeviceLock::acquire_key(store, &key, device.serial(), limit, tell).await
    }

    async fn acquire_key(
        store: &Store,
        key: &str,
        serial: &str,
        limit: Duration,
        tell: impl FnOnce(),
    ) -> Result<DeviceLock, Failure> {
        let sessions = store.directory();
        let files = Files {
            directory: sessions.parent().unwrap_or(sessions).join(DIRECTORY),
            key: file_name(key),
        };
        let unwritable = |error: io::Error| {
            let message = format!("cannot write {}: {error}", files.directory.display());
            Failure::new(ErrorClass::HostWrite, "journal-unwritable", message)
                .with_help("make the state directory writable, or set HEAPTAP_STATE_DIR")
        };
        std::fs::create_dir_all(&files.directory).map_err(unwritable)?;
        let until = Instant::now().checked_add(limit);
        let mut tell = Some(tell);
        let mut watched = Watched::default();
        loop {
            if let Some(lock) = files.try_acquire(&mut watched).map_err(unwritable)? {
                return Ok(lock);
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                let message = format!(
                    "another heaptap runs a scenario on {serial}{}",
                    watched.by()
                );
                return Err(Failure::new(ErrorClass::Device, "device-busy", message)
                    .with_help("wait until it ends, or choose another device with `-s`"));
            }
            if let Some(tell) = tell.take() {
                tell();
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Returns when another host has taken the device, because this process was suspended.
    pub async fn lost(&self) {
        let mut lost = self.lost.clone();
        if lost.wait_for(|lost| *lost).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for DeviceLock {
    fn drop(&mut self) {
        self.beats.abort();
        if !*self.lost.borrow() {
            let owner = Owner {
                free: true,
                ..Owner::this_process()
            };
            let mut is_over = lock(&self.is_over);
            *is_over = true;
            // Otherwise others wait until it is gone.
            let _ = std::fs::write(self.files.owner(self.number), owner.text());
        }
    }
}

/// Returns the name of a device for all hosts. Emulators share their own serial number: adb's serial
/// at their server tells them apart.
fn key(serial: &str, own_serial: &str, server: &str) -> String {
    let identity = session::identity(serial, own_serial, server);
    if identity == own_serial {
        return identity;
    }
    let is_local = Address::parse(server, "the adb server").is_ok_and(|at| at.is_local());
    let host = match is_local {
        true => Owner::this_process().host,
        false => String::new(),
    };
    format!("{host}-{server}-{serial}")
}

/// The last seen content of the owner's file.
#[derive(Debug, Default)]
struct Watched {
    seen: Option<(String, Instant)>,
}

impl Watched {
    /// Returns whether the content has not changed for long.
    fn is_gone(&mut self, text: &str) -> bool {
        match &self.seen {
            Some((seen, since)) if seen == text => since.elapsed() >= GONE,
            _ => {
                self.seen = Some((text.to_owned(), Instant::now()));
                false
            }
        }
    }

    /// Describes the owner, for a message.
    fn by(&self) -> String {
        let owner = self.seen.as_ref().and_then(|(text, _)| Owner::parse(text));
        owner.map_or_else(String::new, |owner| {
            format!(" (process {} on {})", owner.pid, sanitize(&owner.host))
        })
    }
}

/// The files of one device.
#[derive(Debug, Clone)]
struct Files {
    directory: PathBuf,
    key: String,
}

impl Files {
    fn owner(&self, number: u64) -> PathBuf {
        self.directory.join(format!("{}.owner-{number}", self.key))
    }

    /// Returns the numbers of all owners' files.
    fn numbers(&self) -> io::Result<Vec<u64>> {
        let prefix = format!("{}.owner-", self.key);
        let mut numbers = Vec::new();
        for entry in std::fs::read_dir(&self.directory)? {
            let name = entry?.file_name().into_string().unwrap_or_default();
            let number = name.strip_prefix(&prefix);
            numbers.extend(number.and_then(|number| number.parse::<u64>().ok()));
        }
        Ok(numbers)
    }

    fn last(&self) -> io::Result<u64> {
        Ok(self.numbers()?.into_iter().max().unwrap_or(0))
    }

    fn try_acquire(&self, watched: &mut Watched) -> io::Result<Option<DeviceLock>> {
        let last = self.last()?;
        let text = match last {
            0 => String::new(),
            last => read_if_there(&self.owner(last))?,
        };
        // Watched from the beginning, and also for messages.
        let is_gone = watched.is_gone(&text);
        let lock = self.directory.join(format!("{}.lock", self.key));
        let mut lock = PathLock::open_file(lock)?;
        if !lock.acquire() {
            return Ok(None);
        }
        let own = Owner::this_process();
        let is_free = last == 0
            || is_gone
            || Owner::parse(&text).is_some_and(|owner| {
                // The system would hold its lock if that process of this host were running.
                let was_here = owner.boot == own.boot && !own.boot.is_empty();
                owner.free || was_here && lock.is_held
            });
        if !is_free || !self.claim(last + 1, &own)? {
            return Ok(None);
        }
        let (lose, lost) = watch::channel(false);
        let is_over = Arc::new(Mutex::new(false));
        let beats = beat(self.clone(), last + 1, own, lose, Arc::clone(&is_over));
        Ok(Some(DeviceLock {
            _lock: lock,
            files: self.clone(),
            number: last + 1,
            is_over,
            beats: tokio::spawn(beats),
            lost,
        }))
    }

    /// Becomes the owner with this number; false if another process does.
    fn claim(&self, number: u64, owner: &Owner) -> io::Result<bool> {
        let path = self.owner(number);
        match File::options().write(true).create_new(true).open(&path) {
            Ok(mut file) => file.write_all(owner.text().as_bytes())?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            Err(error) => return Err(error),
        }
        let numbers = self.numbers()?;
        // A slow process can create a number that was used and removed meanwhile.
        if numbers.iter().any(|other| *other > number) {
            remove(&path);
            return Ok(false);
        }
        // The previous one stays, so that a slow process cannot create it.
        for old in numbers.into_iter().filter(|old| *old + 1 < number) {
            remove(&self.owner(old));
        }
        Ok(true)
    }
}

/// Changes the owner's file at intervals, until another process is the owner.
async fn beat(
    files: Files,
    number: u64,
    mut owner: Owner,
    lose: watch::Sender<bool>,
    is_over: Arc<Mutex<bool>>,
) {
    loop {
        tokio::time::sleep(BEAT).await;
        if files.last().is_ok_and(|last| last > number) {
            let _ = lose.send(true);
            return;
        }
        owner.beat += 1;
        let is_over = lock(&is_over);
        if *is_over {
            return;
        }
        // A file system that is away for a moment loses some beats.
        let _ = std::fs::write(files.owner(number), owner.text());
    }
}

fn read_if_there(path: &Path) -> io::Result<String> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error),
    }
}

fn remove(path: &Path) {
    // It is only left over.
    let _ = std::fs::remove_file(path);
}

#[cfg(test)]
mod tests;
