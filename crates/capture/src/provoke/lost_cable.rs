//! Handling of a disconnected device: waits for it with a timeout, then either continues the plan
//! or restores the changed settings.

use std::time::Instant;

use super::event::{Event, PutBack};
use super::phone_state;
use super::run::Runner;
use super::settings_journal::{end_monkey, try_put_back};
use super::unrestored::{self, UnrestoredSetting};
use crate::error::CaptureError;
use heaptap_adb::RETURN_LIMIT;
use heaptap_base::error::ErrorClass;

/// Maximum number of disconnections without a completed repetition in between; after it the run
/// ends, or, while restoring, the device is left unrestored.
const LOSSES: u32 = 3;

impl Runner<'_> {
    /// Waits until the device that `error` reports as disconnected is back and ready to continue.
    ///
    /// # Errors
    /// Returns any other error unchanged; `error` itself if the device does not come back in time
    /// or the run is cancelled; or an error if the device restarted or is another one.
    pub(super) async fn wait_for_phone(&mut self, error: CaptureError) -> Result<(), CaptureError> {
        let mut error = error;
        loop {
            if !error.is_connection() || self.gave_up || self.lost_in_a_row >= LOSSES {
                return Err(error);
            }
            self.lost_in_a_row += 1;
            self.report.lost = self.report.lost.saturating_add(1);
            (self.tell)(&Event::Lost {
                what: error.to_string(),
                goes_on: true,
            });
            let since = Instant::now();
            let back = tokio::select! {
                back = self.device.wait_ready(RETURN_LIMIT) => back.is_ok(),
                () = self.cancel.wait() => false,
            };
            if !back {
                self.gave_up = true;
                return Err(error);
            }
            match self.make_ready().await {
                Ok(()) => {
                    let after_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
                    (self.tell)(&Event::Returned { after_ms });
                    return Ok(());
                }
                Err(next) => error = next,
            }
        }
    }

    /// Verifies that it is the same device without a restart, that no earlier command still affects
    /// the app, and that the screen can be used.
    async fn make_ready(&mut self) -> Result<(), CaptureError> {
        let serial = self.device.serial();
        let hardware = phone_state::hardware_serial(self.device).await?;
        if !self.saved.hardware_serial.is_empty() && hardware != self.saved.hardware_serial {
            let noted = &self.saved.hardware_serial;
            return Err(CaptureError::other_device(serial, noted));
        }
        if phone_state::boot(self.device).await? != self.boot {
            let message = format!("{serial} restarted while it was disconnected");
            return Err(
                CaptureError::new(ErrorClass::Device, "device-restarted", message)
                    .with_help("start again when the device is ready"),
            );
        }
        if let Some(pid) = self.saved.monkey {
            end_monkey(self.device, pid).await?;
            self.saved.monkey = None;
            self.journals.note(&self.saved)?;
        }
        if self.plan.needs_screen() {
            // A device without a cable does not stay awake.
            self.wake(false).await?;
        }
        Ok(())
    }

    /// Restores the recorded settings, waiting for a disconnected device. The wait is limited,
    /// because the device might be connected while its `settings` command never answers.
    pub(super) async fn put_back(
        &self,
        failed: Option<&CaptureError>,
    ) -> Result<Option<PutBack>, CaptureError> {
        let Some(saved) = self.journals.of(&self.saved.phone())? else {
            return Ok(None);
        };
        let mut unrestored = saved.all_unrestored();
        if let (true, Some(error)) = (self.gave_up, failed) {
            let what = format!("{error}, and it did not come back");
            return Err(self.not_put_back(&what, &unrestored));
        }
        let mut away = match failed {
            Some(error) if error.is_connection() => Some(error.to_string()),
            _ => None,
        };
        let mut losses = 0;
        loop {
            if let Some(what) = away.take() {
                (self.tell)(&Event::Lost {
                    what: what.clone(),
                    goes_on: false,
                });
                let back = tokio::select! {
                    back = self.device.wait_ready(RETURN_LIMIT) => back.is_ok(),
                    // The user who interrupted the run before the disconnection still waits for it.
                    () = self.cancel.wait(), if !self.report.interrupted => false,
                };
                if !back {
                    let what = format!("{what}, and it did not come back");
                    return Err(self.not_put_back(&what, &unrestored));
                }
            }
            let not_yet = match try_put_back(self.device, self.journals, &saved).await {
                Ok(done) => return Ok(Some(done)),
                Err(not_yet) if not_yet.why.is_connection() => not_yet,
                Err(not_yet) => return Err(not_yet.error(self.device.serial())),
            };
            losses += 1;
            if losses >= LOSSES {
                let what = format!("{}, {losses} times in a row", not_yet.why);
                return Err(self.not_put_back(&what, &not_yet.unrestored));
            }
            away = Some(not_yet.why.to_string());
            unrestored = not_yet.unrestored;
        }
    }

    fn not_put_back(&self, what: &str, unrestored: &[UnrestoredSetting]) -> CaptureError {
        unrestored::error(self.device.serial(), what, unrestored)
    }
}
