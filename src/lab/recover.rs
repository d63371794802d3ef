//! Waits for a device that vanished, and fetches recordings that a run left on it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::events::{LabEvent, LabEvents};
use super::failures::{error_of, interrupted, is_infrastructure, needs_user};
use super::request::Tools;
use super::{files, state};
use crate::recording::advice::device_away;
use crate::recording::companion::is_part_of;
use crate::recording::events::EventHandler;
use crate::recording::sessions::{self, SessionSelector};
use heaptap_adb::{Command, Device, RETURN_LIMIT};
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_capture::provoke::Cancel;
use heaptap_capture::session::{self, SessionState, Store};

/// Time limit of a property.
const ANSWER: Duration = Duration::from_secs(10);
/// Pause between two questions whether Android has started.
const PAUSE: Duration = Duration::from_millis(500);
/// Repetitions of a request whose connection is lost.
const RETRIES: usize = 3;

/// Requests to a device that last beyond a lost connection.
pub(super) struct Lasting<'a> {
    device: &'a Device,
    cancel: &'a Cancel,
    /// Time for the device to return.
    limit: Duration,
}

impl<'a> Lasting<'a> {
    /// A device is away no longer than a run takes.
    pub(super) fn new(device: &'a Device, cancel: &'a Cancel, run: Duration) -> Lasting<'a> {
        Lasting {
            device,
            cancel,
            limit: RETURN_LIMIT.min(run),
        }
    }

    /// Makes a request, and again after the device has returned if the connection is lost.
    ///
    /// # Errors
    /// Returns the last error, or that the device did not return.
    pub(super) async fn request<T, F: Future<Output = Result<T, Failure>>>(
        &self,
        request: impl Fn() -> F,
    ) -> Result<T, Failure> {
        let mut left = RETRIES;
        loop {
            let can_succeed = |failure: &Failure| {
                let error = error_of(failure);
                failure.class != ErrorClass::Interrupted
                    && is_infrastructure(&error)
                    && !needs_user(&error)
            };
            match request().await {
                Err(failure) if left > 0 && can_succeed(&failure) => {}
                ended => return ended,
            }
            left -= 1;
            self.wait().await?;
        }
    }

    /// Waits for a device that vanished or restarted.
    async fn wait(&self) -> Result<(), Failure> {
        let back = tokio::select! {
            back = self.back() => back,
            () = self.cancel.wait() => return Err(interrupted()),
        };
        back.map_err(|obstacle| {
            let (serial, limit) = (self.device.serial(), self.limit.as_secs_f64());
            let message = format!("{serial} did not return within {limit:.0} s: {obstacle}");
            device_away(
                message,
                "connect it, then run the same command with `-o DIR --resume`",
            )
        })
    }

    /// Waits until the device answers and its Android has started: adbd answers much earlier than
    /// the services that a run needs. Returns the last obstacle.
    async fn back(&self) -> Result<(), String> {
        let until = Instant::now() + self.limit;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err("Android has not started".to_owned());
            }
            let ready = self.device.wait_ready(left).await;
            ready.map_err(|obstacle| obstacle.to_string())?;
            let booted = Command::program("getprop").arg("sys.boot_completed");
            // A device that is gone again is waited for.
            let answer = self.device.run(&booted, ANSWER).await;
            if answer.is_ok_and(|answer| answer.stdout.trim_ascii() == b"1") {
                return Ok(());
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Waits for the device after a void run, and fetches what the run left on it.
    ///
    /// # Errors
    /// Returns an error if the device does not return.
    pub(super) async fn collect(
        &self,
        store: &Store,
        directory: &Path,
        tell: &LabEvents,
    ) -> Result<(), Failure> {
        self.wait().await?;
        let collect = self.request(|| collect(self.device, store, directory));
        if let Err(error) = collect.await {
            tell(LabEvent::Warning {
                text: error.message,
            });
        }
        Ok(())
    }
}

/// Ends and fetches the recordings whose results belong into `directory`. They stay on the device if
/// it is not at hand; `heaptap status` lists them.
///
/// # Errors
/// Returns an error if the sessions cannot be listed, or, after all others, the first that cannot be
/// fetched; one of which nothing is left only if there is no other.
pub(super) async fn collect(
    device: &Device,
    store: &Store,
    directory: &Path,
) -> Result<(), Failure> {
    let mut first: Option<Failure> = None;
    for state in own_sessions(store, directory)? {
        let id = state.header.id;
        let (_ask, mut controls) = mpsc::unbounded_channel();
        let ignored: EventHandler = Arc::new(|_| {});
        let selector = SessionSelector::Id(id.to_string());
        let device = device.clone();
        let stopped = sessions::stop(
            store,
            async || Ok(device),
            &selector,
            None,
            None,
            &mut controls,
            &ignored,
        )
        .await;
        // A trigger waited for an error that did not come; nothing was recorded.
        let stopped = stopped.and_then(|stopped| Ok(stopped.forget()?));
        let stopped = stopped.or_else(|failure| match failure.kind {
            "no-out-of-memory" => Ok(()),
            _ => Err(failure),
        });
        if let Err(failure) = stopped {
            let left = own_sessions(store, directory)?;
            // The recording had not begun on the device, or a restart removed it.
            let is_left = left.iter().any(|state| state.header.id == id);
            if is_left && first.as_ref().is_none_or(sessions::leaves_nothing) {
                first = Some(failure);
            }
        }
    }
    first.map_or(Ok(()), Err)
}

/// Ends and fetches the recordings that killed runs with other directories left on the device: they
/// would refuse another one of the app. Those of living processes are left alone.
pub(super) async fn fetch_abandoned(tools: &Tools<'_>, own: &Path) {
    let Tools { device, store, .. } = *tools;
    let own = std::path::absolute(own).unwrap_or_else(|_| own.to_owned());
    let Ok((mut all, _)) = store.list() else {
        return;
    };
    all.retain(|session| {
        let header = &session.header;
        !header.output.starts_with(&own) && !store.is_locked(&header.id)
    });
    // The next request to a device that is away reports that.
    if session::retain_of(device, &mut all).await.is_err() {
        return;
    }
    for session in all {
        let output = &session.header.output;
        // A recording that a user detached has another directory.
        let above = output.ancestors().take(MAX_DEPTH);
        let above = above.filter(|directory| files::is_run(directory));
        let Some(night) =
            (above.filter_map(Path::parent)).find(|night| night.join(files::PROGRESS).is_file())
        else {
            continue;
        };
        if !session.ended {
            // It goes on after its steps.
            state::void_begun(night);
        }
        let text = match collect(device, store, output).await {
            Ok(()) => format!(
                "fetched the recording of a killed run into {}",
                output.display()
            ),
            Err(error) if sessions::leaves_nothing(&error) => {
                format!("the recording of a killed run is lost: {error}")
            }
            Err(error) => format!("a killed run is still being recorded: {error}"),
        };
        (tools.tell)(LabEvent::Warning { text });
    }
}

/// Directories from a recording up to that of its run: `run-N/dumps/LABEL`.
const MAX_DEPTH: usize = 3;

/// Returns the sessions of `directory` without those of other devices and scenarios, which can have
/// directories below it.
fn own_sessions(store: &Store, directory: &Path) -> Result<Vec<SessionState>, Failure> {
    let mut own = sessions_of(store, directory)?;
    let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    own.retain(|state| {
        let above = state.header.output.ancestors();
        let mut between = above.take_while(|above| *above != directory);
        !between.any(|above| above.join(files::PROGRESS).is_file())
    });
    Ok(own)
}

/// Returns the sessions whose results belong into `directory`, without those of which another one
/// takes care.
///
/// # Errors
/// Returns an error if the sessions cannot be listed.
pub fn sessions_of(store: &Store, directory: &Path) -> Result<Vec<SessionState>, Failure> {
    let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    let (mut left, _) = store.list()?;
    left.retain(|state| state.header.output.starts_with(&directory));
    let all = left.clone();
    left.retain(|state| !all.iter().any(|whole| is_part_of(state, whole)));
    Ok(left)
}
