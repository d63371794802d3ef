//! The device as a source of symbols: libraries that are not found on the host are fetched from it
//! once and stored in the cache by build ID. Decides which ones, in what order, and at what cost;
//! failures never affect the recording. `transfer` implements the transfers.
//!
//! | | `--pull-libs never` | by default | `--pull-libs` |
//! |---|---|---|---|
//! | libraries | none | of the device with unnamed frames, of apps | all |
//! | bytes | | 64 MiB | any |
//! | time | | 5 s | any |
//!
//! A stored library is never fetched again, even if it has no symbols, which the cache then
//! reports. Libraries of which the device has another build, and those that took too long, are also
//! remembered.

mod request;
mod transfer;

pub use request::{LibraryRequest, requests};

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use self::transfer::{Failed, STALL, fetch_from_apk, fetch_whole};
use heaptap_adb::{Device, DeviceError, RemoteStat};
use heaptap_base::units::{BuildId, ByteSize};
use heaptap_base::untrusted::sanitize;
use heaptap_symbols::symbolize::cache::{Cache, NotKept, Origin};
use heaptap_symbols::symbolize::find::RejectReason;

/// Maximum number of bytes fetched by default.
const MAX_BYTES: u64 = 64 << 20;
/// Time limit of fetching by default.
const MAX_TIME: Duration = Duration::from_secs(5);
/// Minimum size of a transfer that predicts the speed of the next one, in bytes.
const TELLING: u64 = 256 << 10;
/// File type bits of st_mode, and those of a regular file.
const TYPE: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;

/// Mode of fetching libraries from the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PullLibs {
    /// If it is cheap.
    #[default]
    Cheap,
    /// At any cost.
    Always,
    Never,
}

/// Something happened while libraries were fetched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "event")]
pub enum PullEvent {
    /// A library is requested.
    #[serde(rename = "library-requested")]
    Asking {
        /// Its path on the device, for display.
        path: String,
        /// Number of libraries done before it.
        done: usize,
        /// Total number of libraries.
        of: usize,
    },
    /// A library was stored.
    #[serde(rename = "library-pulled")]
    Kept {
        /// Its path on the device, for display.
        path: String,
        /// Number of bytes fetched.
        bytes: u64,
    },
}

impl Fetched {
    /// Returns its path without terminal control characters.
    pub fn shown(&self) -> String {
        sanitize(&self.path).into_owned()
    }
}

/// Result for one library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Its path in the recording.
    pub path: String,
    pub build_id: BuildId,
    pub outcome: Outcome,
}

/// Outcome for one library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was added to the cache; contains the number of bytes fetched.
    Kept(u64),
    /// It was already in the cache.
    Cached,
    /// It is not in the cache.
    Not(RejectReason),
}

/// Fetches libraries from one device.
pub struct DeviceLibs {
    device: Device,
    how: PullLibs,
    interrupt: Interrupt,
    runtime: Handle,
}

impl std::fmt::Debug for DeviceLibs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeviceLibs")
            .field("device", &self.device.serial())
            .field("how", &self.how)
            .finish_non_exhaustive()
    }
}

/// Interrupts fetching; the recording continues without the libraries.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<Interrupted>);

#[derive(Debug, Default)]
struct Interrupted {
    under_way: AtomicBool,
    asked: AtomicBool,
    notify: Notify,
}

impl Interrupt {
    /// Interrupts the current fetch; returns false if there is none, so that the request applies to
    /// something else.
    pub fn skip(&self) -> bool {
        if !self.0.under_way.load(Ordering::SeqCst) {
            return false;
        }
        self.0.asked.store(true, Ordering::SeqCst);
        self.0.notify.notify_waiters();
        true
    }

    async fn asked(&self) {
        let notified = self.0.notify.notified();
        tokio::pin!(notified);
        // Registered before the flag is read, so that no request falls between.
        notified.as_mut().enable();
        if !self.0.asked.load(Ordering::SeqCst) {
            notified.await;
        }
    }
}

impl DeviceLibs {
    /// Creates a source of libraries; must be called within an async runtime.
    pub fn new(device: Device, how: PullLibs) -> DeviceLibs {
        DeviceLibs {
            device,
            how,
            interrupt: Interrupt::default(),
            runtime: Handle::current(),
        }
    }

    /// Returns the handle that interrupts it.
    pub fn interrupt(&self) -> Interrupt {
        self.interrupt.clone()
    }

    /// Fetches useful libraries into `cache`. Blocks; not for threads that run async tasks. Leaves
    /// out libraries without a file (`[vdso]`, memory).
    pub fn fetch(
        &self,
        cache: &Cache,
        requests: Vec<LibraryRequest>,
        tell: &dyn Fn(PullEvent),
    ) -> Vec<Fetched> {
        self.runtime.block_on(self.fetch_all(cache, requests, tell))
    }

    async fn fetch_all(
        &self,
        cache: &Cache,
        mut requests: Vec<LibraryRequest>,
        tell: &dyn Fn(PullEvent),
    ) -> Vec<Fetched> {
        if self.how == PullLibs::Never {
            return Vec::new();
        }
        requests.retain(|request| self.is_worth_it(request));
        requests.sort_by(|a, b| b.weight().cmp(&a.weight()).then(a.path.cmp(&b.path)));
        let mut round = Round::new(self, cache);
        let of = requests.len();
        self.interrupt.0.under_way.store(true, Ordering::SeqCst);
        let mut all = Vec::with_capacity(of);
        for (done, request) in requests.into_iter().enumerate() {
            let outcome = match round.known(&request) {
                Some(outcome) => outcome,
                None => {
                    tell(PullEvent::Asking {
                        path: request.shown(),
                        done,
                        of,
                    });
                    round.ask(&request).await
                }
            };
            if let Outcome::Kept(bytes) = outcome {
                tell(PullEvent::Kept {
                    path: request.shown(),
                    bytes,
                });
            }
            all.push(Fetched {
                path: request.path,
                build_id: request.build_id,
                outcome,
            });
        }
        self.interrupt.0.under_way.store(false, Ordering::SeqCst);
        all
    }

    fn is_worth_it(&self, request: &LibraryRequest) -> bool {
        let cheap = request.is_own() || (request.nameless > 0 && request.is_at_home());
        request.place().is_some()
            && !request.build_id.is_empty()
            && (self.how == PullLibs::Always || cheap)
    }
}

/// One pass through the requests, with its cost so far.
struct Round<'a> {
    of: &'a DeviceLibs,
    cache: &'a Cache,
    began: Instant,
    bytes: u64,
    /// Bytes a second of the last transfer that was large enough.
    speed: Option<f64>,
    /// Reason for not requesting anything else from the device.
    over: Option<RejectReason>,
    /// Stats of files: several libraries can be in one APK.
    stats: HashMap<String, Option<RemoteStat>>,
}

impl<'a> Round<'a> {
    fn new(of: &'a DeviceLibs, cache: &'a Cache) -> Round<'a> {
        Round {
            of,
            cache,
            began: Instant::now(),
            bytes: 0,
            speed: None,
            over: None,
            stats: HashMap::new(),
        }
    }

    /// Returns results that do not need the device.
    fn known(&self, request: &LibraryRequest) -> Option<Outcome> {
        let libraries = self.cache.libraries();
        if libraries.has(&request.build_id, Origin::Device) {
            return Some(Outcome::Cached);
        }
        if let Some(why) = &self.over {
            return Some(Outcome::Not(why.clone()));
        }
        let slow = self.of.how == PullLibs::Cheap && self.is_noted(&too_slow(&request.build_id));
        slow.then(|| {
            let text = "took too long before; use `--pull-libs always` to wait for it";
            Outcome::Not(RejectReason::OverBudget(text.to_owned()))
        })
    }

    async fn ask(&mut self, request: &LibraryRequest) -> Outcome {
        let interrupt = self.of.interrupt();
        let asked = tokio::select! {
            outcome = self.fetch(request) => outcome,
            () = interrupt.asked() => Err(self.end(RejectReason::Device("interrupted".to_owned()))),
        };
        asked.unwrap_or_else(Outcome::Not)
    }

    /// Ends all requests to the device.
    fn end(&mut self, why: RejectReason) -> RejectReason {
        self.over = Some(why.clone());
        why
    }

    async fn fetch(&mut self, request: &LibraryRequest) -> Result<Outcome, RejectReason> {
        let Some(place) = request.place() else {
            return Err(RejectReason::NotThere);
        };
        let stat = self.stat(&place.file).await?;
        let other = other_build(&request.build_id, &place.file, &stat);
        if self.is_noted(&other) {
            let text = "the device now has another build of it";
            return Err(RejectReason::Device(text.to_owned()));
        }
        // From an APK, only the library is transferred, but its size is not known yet.
        let least = if place.is_inside { 0 } else { stat.size };
        self.afford(least)?;
        let mut incoming = self.cache.libraries().receive().map_err(host)?;
        let began = Instant::now();
        let most = self.bytes_left().min(stat.size);
        let device = &self.of.device;
        let transfer = async {
            let (path, file) = (&place.file, incoming.file());
            match place.is_inside {
                false => fetch_whole(device, path, most, file).await,
                true => fetch_from_apk(device, path, request.start_offset, most, file).await,
            }
        };
        let bytes = match self.in_time(transfer).await {
            Some(Ok(bytes)) => bytes,
            Some(Err(failed)) => return Err(self.failed(failed, &place.file)),
            None => {
                self.note(&too_slow(&request.build_id));
                let text = format!(
                    "took longer than {} s; use `--pull-libs always` to wait for it",
                    MAX_TIME.as_secs()
                );
                return Err(self.end(RejectReason::OverBudget(text)));
            }
        };
        self.bytes += bytes;
        if bytes >= TELLING {
            self.speed = Some(bytes as f64 / began.elapsed().as_secs_f64().max(1e-6));
        }
        match incoming.keep(&request.build_id, Origin::Device) {
            Ok(_) => Ok(Outcome::Kept(bytes)),
            Err(NotKept::OtherBuildId { found, .. }) if !found.is_empty() => {
                self.note(&other);
                Err(RejectReason::OtherBuildId(found))
            }
            Err(NotKept::OtherBuildId { .. }) => Err(RejectReason::NoBuildId),
            Err(NotKept::NotALibrary(error)) => Err(RejectReason::Damaged(error.to_string())),
            Err(NotKept::Io(error)) => Err(host(error)),
        }
    }

    /// Returns the stat of `path`, which must be a regular file.
    async fn stat(&mut self, path: &str) -> Result<RemoteStat, RejectReason> {
        let stat = match self.stats.get(path) {
            Some(known) => *known,
            None => {
                let device = self.of.device.clone();
                let stat = match self.in_time(device.stat(path, STALL)).await {
                    Some(Ok(stat)) => stat,
                    Some(Err(error)) => return Err(self.failed(Failed::Device(error), path)),
                    None => return Err(self.end(no_time())),
                };
                self.stats.insert(path.to_owned(), stat);
                stat
            }
        };
        match stat {
            None => Err(RejectReason::NotThere),
            Some(stat) if stat.mode & TYPE != REGULAR => Err(RejectReason::NotAFile),
            Some(stat) => Ok(stat),
        }
    }

    fn failed(&mut self, failed: Failed, path: &str) -> RejectReason {
        match failed {
            Failed::Device(error) if error.is_connection() => {
                self.end(RejectReason::Device(error.to_string()))
            }
            Failed::Device(DeviceError::Refused { text, .. }) => {
                match text.contains("ermission denied") {
                    true => RejectReason::Unreadable(std::io::ErrorKind::PermissionDenied),
                    false => RejectReason::Device(text),
                }
            }
            Failed::Device(DeviceError::Sink(error)) | Failed::Host(error) => self.end(host(error)),
            Failed::Device(error) => RejectReason::Device(error.to_string()),
            Failed::TooLarge(size) => RejectReason::OverBudget(too_large(size, self.bytes)),
            Failed::Changed => {
                self.stats.remove(path);
                RejectReason::Changed
            }
            Failed::Damaged(what) => RejectReason::Damaged(what),
            Failed::NoDd => RejectReason::Device("its shell does not have dd".to_owned()),
        }
    }

    fn bytes_left(&self) -> u64 {
        match self.of.how {
            PullLibs::Always => u64::MAX,
            _ => MAX_BYTES.saturating_sub(self.bytes),
        }
    }

    fn time_left(&self) -> Option<Duration> {
        (self.of.how != PullLibs::Always).then(|| MAX_TIME.saturating_sub(self.began.elapsed()))
    }

    /// Checks that this number of bytes is within the limits.
    fn afford(&mut self, bytes: u64) -> Result<(), RejectReason> {
        if bytes > self.bytes_left() {
            return Err(RejectReason::OverBudget(too_large(bytes, self.bytes)));
        }
        let Some(left) = self.time_left() else {
            return Ok(());
        };
        if left.is_zero() {
            return Err(self.end(no_time()));
        }
        if let Some(speed) = self.speed
            && bytes as f64 / speed > left.as_secs_f64()
        {
            let text = format!(
                "{} at {}/s take longer than the remaining part of {} s",
                ByteSize(bytes),
                ByteSize(speed as u64),
                MAX_TIME.as_secs()
            );
            return Err(RejectReason::OverBudget(text));
        }
        Ok(())
    }

    /// Runs `work` within the time limit; `None` if it is exceeded.
    async fn in_time<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        match self.time_left() {
            None => Some(work.await),
            Some(left) => timeout(left, work).await.ok(),
        }
    }

    fn is_noted(&self, key: &[u8; 32]) -> bool {
        self.cache.answers().get(key).is_some()
    }

    fn note(&self, key: &[u8; 32]) {
        // If the cache is not writable, the library is requested again next time.
        let _ = self.cache.answers().put(key, b"");
    }
}

fn host(error: std::io::Error) -> RejectReason {
    RejectReason::Device(format!("the host cannot store it: {error}"))
}

fn no_time() -> RejectReason {
    RejectReason::OverBudget(format!(
        "the default limit of {} s for libraries was reached; use `--pull-libs always` to wait for them",
        MAX_TIME.as_secs()
    ))
}

fn too_large(size: u64, spent: u64) -> String {
    let all = ByteSize(MAX_BYTES);
    match spent {
        0 => format!(
            "{} exceed the limit of {all}; use `--pull-libs always` to fetch any size",
            ByteSize(size)
        ),
        _ => format!(
            "{} exceed the remaining part of {all}; use `--pull-libs always` to fetch any size",
            ByteSize(size)
        ),
    }
}

/// Key of the note that a build took too long.
fn too_slow(build_id: &BuildId) -> [u8; 32] {
    digest(&[b"device library too slow 1", &build_id.0])
}

/// Returns the key of the note that this file of the device is another build.
fn other_build(build_id: &BuildId, path: &str, stat: &RemoteStat) -> [u8; 32] {
    digest(&[
        b"device library of another build 1",
        &build_id.0,
        path.as_bytes(),
        &stat.size.to_le_bytes(),
        &stat.mtime.to_le_bytes(),
    ])
}

fn digest(parts: &[&[u8]]) -> [u8; 32] {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    digest.finalize().into()
}

#[cfg(test)]
mod tests;
