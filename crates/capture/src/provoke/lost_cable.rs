//! A phone whose cable is lost: it is waited for, so long and no longer, and either the plan goes
//! on where it stood or what was changed is put back.

use std::time::{Duration, Instant};

use super::error::ProvokeError;
use super::event::{Event, PutBack};
use super::phone_state;
use super::run::Runner;
use super::saved::{end_monkey, try_put_back};
use super::unrestored::UnrestoredSetting;

/// How long a phone that is away is waited for.
const RETURN: Duration = Duration::from_secs(60);
/// So many losses without a doing that came to its end between them end a run; so many while it
/// is put back leave the phone as it is.
const LOSSES: u32 = 3;

impl Runner<'_> {
    /// Waits until a phone is back that `error` says is away, and makes it ready to go on.
    ///
    /// # Errors
    /// Any other error, as it is; `error` itself where the phone does not come back in time, or
    /// nobody wants to wait for it; that the phone was restarted, or is another one.
    pub(super) async fn wait_for_phone(&mut self, error: ProvokeError) -> Result<(), ProvokeError> {
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
                back = self.device.wait_ready(RETURN) => back.is_ok(),
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

    /// It is the same phone, still running; nothing that was sent before still acts on the app,
    /// and the screen can be used.
    async fn make_ready(&mut self) -> Result<(), ProvokeError> {
        let serial = || self.device.serial().to_owned();
        let hardware = phone_state::hardware_serial(self.device).await?;
        if !self.saved.hardware_serial.is_empty() && hardware != self.saved.hardware_serial {
            return Err(ProvokeError::OtherPhone {
                serial: serial(),
                noted: self.saved.hardware_serial.clone(),
            });
        }
        if phone_state::boot(self.device).await? != self.boot {
            return Err(ProvokeError::Restarted { serial: serial() });
        }
        if let Some(pid) = self.saved.monkey {
            end_monkey(self.device, pid).await?;
            self.saved.monkey = None;
            self.journals.note(&self.saved)?;
        }
        if self.plan.needs_screen() {
            // A phone without a cable does not stay awake.
            self.wake(false).await?;
        }
        Ok(())
    }

    /// Puts back what was noted, waiting for a phone that is away: not for ever, since a phone may
    /// be there and its `settings` answer to nobody.
    pub(super) async fn put_back(
        &self,
        failed: Option<&ProvokeError>,
    ) -> Result<Option<PutBack>, ProvokeError> {
        let Some(saved) = self.journals.of(self.saved.phone())? else {
            return Ok(None);
        };
        let mut unrestored = saved.all_unrestored();
        if let (true, Some(error)) = (self.gave_up, failed) {
            return Err(self.not_put_back(format!("{error}, and it has not come back"), unrestored));
        }
        let mut away = match failed {
            Some(ProvokeError::Device(error)) if error.is_connection() => Some(error.to_string()),
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
                    back = self.device.wait_ready(RETURN) => back.is_ok(),
                    // Who asked for the end before the cable was lost still waits for it.
                    () = self.cancel.wait(), if !self.report.interrupted => false,
                };
                if !back {
                    let what = format!("{what}, and it has not come back");
                    return Err(self.not_put_back(what, unrestored));
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
                return Err(self.not_put_back(what, not_yet.unrestored));
            }
            away = Some(not_yet.why.to_string());
            unrestored = not_yet.unrestored;
        }
    }

    fn not_put_back(&self, what: String, unrestored: Vec<UnrestoredSetting>) -> ProvokeError {
        ProvokeError::NotPutBack {
            serial: self.device.serial().to_owned(),
            what,
            unrestored,
        }
    }
}
