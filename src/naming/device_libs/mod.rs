//! The phone as a source of symbols: libraries that no place on this host has are fetched from
//! it once and kept in the cache under their build ID. Owns which are worth it, in what order,
//! what it may cost, and that nothing that goes wrong here costs the recording anything; how
//! bytes come over is `transfer`'s.
//!
//! | | `--no-pull-libs` | by default | `--pull-libs` |
//! |---|---|---|---|
//! | which | none | those of the phone with nameless frames, those of apps | all |
//! | bytes | | 64 MiB | any |
//! | time | | 5 s | any |
//!
//! A library that is kept is never fetched again, also where it turned out to hold no symbols:
//! the cache then has it and says so. What the phone has another build of, and what took too
//! long, is remembered too.

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

use self::request::Where;
use self::transfer::{Failed, fetch_from_apk, fetch_whole};
use crate::device::{Device, DeviceError, RemoteStat};
use crate::symbolize::cache::{Cache, NotKept, Origin};
use crate::symbolize::find::WhyNot;
use crate::units::{BuildId, ByteSize};
use crate::untrusted::sanitize;

/// What is fetched without having been asked for.
const MOST_BYTES: u64 = 64 << 20;
/// How long that may take.
const MOST_TIME: Duration = Duration::from_secs(5);
/// A phone that is silent for so long has gone.
const STALL: Duration = Duration::from_secs(20);
/// From so many bytes on a transfer says how fast the next will be.
const TELLING: u64 = 256 << 10;
/// File type bits of st_mode, and those of a regular file.
const TYPE: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;

/// Whether libraries are fetched from the phone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PullLibs {
    /// Where it is cheap.
    #[default]
    Cheap,
    /// Whatever it costs.
    Always,
    /// Never.
    Never,
}

/// Something happened while libraries were fetched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "event")]
pub enum PullEvent {
    /// A library is asked for.
    #[serde(rename = "library-asked")]
    Asking {
        /// Its path on the phone, for people.
        path: String,
        /// How many were done before it.
        done: usize,
        /// Of how many.
        of: usize,
    },
    /// A library was kept.
    #[serde(rename = "library-pulled")]
    Kept {
        /// Its path on the phone, for people.
        path: String,
        /// What came over, in bytes.
        bytes: u64,
    },
}

impl Fetched {
    /// Its path without characters that steer a terminal.
    pub fn shown(&self) -> String {
        sanitize(&self.path).into_owned()
    }
}

/// What became of one library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Its path as the recording has it.
    pub path: String,
    /// Its build ID.
    pub build_id: BuildId,
    /// How it went.
    pub outcome: Outcome,
}

/// How it went with one library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is in the cache now; so many bytes came over.
    Kept(u64),
    /// It was in the cache before.
    Cached,
    /// It is not in the cache.
    Not(WhyNot),
}

/// Fetches libraries from one phone.
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

/// Ends fetching from elsewhere: the recording then goes on without.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<Interrupted>);

#[derive(Debug, Default)]
struct Interrupted {
    under_way: AtomicBool,
    asked: AtomicBool,
    notify: Notify,
}

impl Interrupt {
    /// Ends what is under way; false where nothing is, so that whoever asked meant something
    /// else.
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
    /// A source of libraries; to be made where an async runtime runs.
    pub fn new(device: Device, how: PullLibs) -> DeviceLibs {
        DeviceLibs {
            device,
            how,
            interrupt: Interrupt::default(),
            runtime: Handle::current(),
        }
    }

    /// What ends it early.
    pub fn interrupt(&self) -> Interrupt {
        self.interrupt.clone()
    }

    /// Fetches what is worth it into `cache`. Blocks; not for a thread that runs async tasks.
    /// Libraries that no phone has a file for (`[vdso]`, memory) are left out of the answer.
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

/// One run through the requests, with what it has cost so far.
struct Round<'a> {
    of: &'a DeviceLibs,
    cache: &'a Cache,
    began: Instant,
    bytes: u64,
    /// Bytes a second of the last transfer that was large enough.
    speed: Option<f64>,
    /// Why nothing more is asked of the phone.
    over: Option<WhyNot>,
    /// What was said of a file: several libraries may lie in one APK.
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

    /// What is known without asking the phone.
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
            let text = "took too long before; --pull-libs takes the time";
            Outcome::Not(WhyNot::OverBudget(text.to_owned()))
        })
    }

    async fn ask(&mut self, request: &LibraryRequest) -> Outcome {
        let interrupt = self.of.interrupt();
        let asked = tokio::select! {
            outcome = self.fetch(request) => outcome,
            () = interrupt.asked() => Err(self.end(WhyNot::Device("interrupted".to_owned()))),
        };
        asked.unwrap_or_else(Outcome::Not)
    }

    /// Nothing more is asked of the phone.
    fn end(&mut self, why: WhyNot) -> WhyNot {
        self.over = Some(why.clone());
        why
    }

    async fn fetch(&mut self, request: &LibraryRequest) -> Result<Outcome, WhyNot> {
        let Some(place) = request.place() else {
            return Err(WhyNot::NotThere);
        };
        let stat = self.stat(place.file()).await?;
        let other = other_build(&request.build_id, place.file(), &stat);
        if self.is_noted(&other) {
            let text = "the phone has another build of it by now";
            return Err(WhyNot::Device(text.to_owned()));
        }
        // Of an APK only the library comes over, but how large that is will be seen on the way.
        let least = match place {
            Where::File(_) => stat.size,
            Where::InApk { .. } => 0,
        };
        self.afford(least)?;
        let mut incoming = self.cache.libraries().receive().map_err(host)?;
        let began = Instant::now();
        let most = self.bytes_left().min(stat.size);
        let device = &self.of.device;
        let transfer = async {
            match &place {
                Where::File(path) => fetch_whole(device, path, most, incoming.file()).await,
                Where::InApk { apk, .. } => {
                    fetch_from_apk(device, apk, request.start_offset, most, incoming.file()).await
                }
            }
        };
        let bytes = match self.in_time(transfer).await {
            Some(Ok(bytes)) => bytes,
            Some(Err(failed)) => return Err(self.failed(failed, place.file())),
            None => {
                self.note(&too_slow(&request.build_id));
                let text = format!(
                    "took longer than {} s; --pull-libs takes the time",
                    MOST_TIME.as_secs()
                );
                return Err(self.end(WhyNot::OverBudget(text)));
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
                Err(WhyNot::OtherBuildId(found))
            }
            Err(NotKept::OtherBuildId { .. }) => Err(WhyNot::NoBuildId),
            Err(NotKept::NotALibrary(error)) => Err(WhyNot::Damaged(error.to_string())),
            Err(NotKept::Io(error)) => Err(host(error)),
        }
    }

    /// What is at `path`, which must be a regular file.
    async fn stat(&mut self, path: &str) -> Result<RemoteStat, WhyNot> {
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
            None => Err(WhyNot::NotThere),
            Some(stat) if stat.mode & TYPE != REGULAR => Err(WhyNot::NotAFile),
            Some(stat) => Ok(stat),
        }
    }

    fn failed(&mut self, failed: Failed, path: &str) -> WhyNot {
        match failed {
            Failed::Device(error) if error.is_connection() => {
                self.end(WhyNot::Device(error.to_string()))
            }
            Failed::Device(DeviceError::Refused { text, .. }) => {
                match text.contains("ermission denied") {
                    true => WhyNot::Unreadable(std::io::ErrorKind::PermissionDenied),
                    false => WhyNot::Device(text),
                }
            }
            Failed::Device(DeviceError::Sink(error)) | Failed::Host(error) => self.end(host(error)),
            Failed::Device(error) => WhyNot::Device(error.to_string()),
            Failed::TooLarge(size) => WhyNot::OverBudget(too_large(size, self.bytes)),
            Failed::Changed => {
                self.stats.remove(path);
                WhyNot::Changed
            }
            Failed::Damaged(what) => WhyNot::Damaged(what),
            Failed::NoDd => WhyNot::Device("its shell has no dd".to_owned()),
        }
    }

    fn bytes_left(&self) -> u64 {
        match self.of.how {
            PullLibs::Always => u64::MAX,
            _ => MOST_BYTES.saturating_sub(self.bytes),
        }
    }

    fn time_left(&self) -> Option<Duration> {
        (self.of.how != PullLibs::Always).then(|| MOST_TIME.saturating_sub(self.began.elapsed()))
    }

    /// Whether so many bytes are within what may be spent.
    fn afford(&mut self, bytes: u64) -> Result<(), WhyNot> {
        if bytes > self.bytes_left() {
            return Err(WhyNot::OverBudget(too_large(bytes, self.bytes)));
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
                "{} at {}/s take longer than what is left of {} s",
                ByteSize(bytes),
                ByteSize(speed as u64),
                MOST_TIME.as_secs()
            );
            return Err(WhyNot::OverBudget(text));
        }
        Ok(())
    }

    /// `work`, as long as there is time; `None` where there is none left.
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
        // Where the cache cannot be written it is only asked again.
        let _ = self.cache.answers().put(key, b"");
    }
}

fn host(error: std::io::Error) -> WhyNot {
    WhyNot::Device(format!("this host could not keep it: {error}"))
}

fn no_time() -> WhyNot {
    WhyNot::OverBudget(format!(
        "the {} s that libraries may take by default were over; --pull-libs takes the time",
        MOST_TIME.as_secs()
    ))
}

fn too_large(size: u64, spent: u64) -> String {
    let all = ByteSize(MOST_BYTES);
    match spent {
        0 => format!(
            "{} are more than {all}; --pull-libs fetches any",
            ByteSize(size)
        ),
        _ => format!(
            "{} are more than what is left of {all}; --pull-libs fetches any",
            ByteSize(size)
        ),
    }
}

/// Key of the note that a build took too long.
fn too_slow(build_id: &BuildId) -> [u8; 32] {
    digest(&[b"device library too slow 1", &build_id.0])
}

/// Key of the note that this file of the phone is another build.
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
