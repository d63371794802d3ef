//! Checks after each command: another object of the activity, another foreground app,
//! a launch, a refusal, monkey's final output, a process that is gone.

use std::time::Duration;

use super::action::TrimLevel;
use super::commands::{self, CheckedCommand};
use super::event::{Effect, Launch};
use super::phone_state::{self, Front, QUICK, SLOW};
use super::read::{self, Shown};
use super::run::Runner;
use super::settings_journal::end_monkey;
use crate::error::CaptureError;
use heaptap_adb::ShellEvent;
use heaptap_base::untrusted::sanitize;

/// Interval for checking an effect.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Maximum silence of monkey, in addition to its pauses: it prints a line every hundred events.
const SILENCE: Duration = Duration::from_secs(180);
const TELLS_EACH: u32 = 100;
/// The system's error for a level that is not above the previous one.
const ASKED_ALREADY: &str = "higher trim level";
/// Maximum length of monkey's output to keep.
const MONKEY_WORDS: usize = 256 << 10;

impl Runner<'_> {
    /// Rotates the screen, and checks that the foreground activity has another object afterwards.
    pub(super) async fn turn(&mut self, checked: &CheckedCommand) -> Result<Effect, CaptureError> {
        let package = &self.plan.target.package;
        let (_, before) = phone_state::shown(self.device, package).await?;
        let turned_before = match self.in_vain_before {
            true => None,
            false => phone_state::rotation(self.device).await?,
        };
        let (begin, _) = phone_state::shown(self.device, package).await?;
        phone_state::run_quick(self.device, &checked.command, SLOW).await?;
        let before_object = |s: &Shown| s.object.clone();
        let Some(old) = before.as_ref().and_then(before_object) else {
            self.pause(Duration::from_secs(1)).await?;
            return Ok(Effect::Unknown {
                why: "the device does not identify activities (dumpsys activity top)".to_owned(),
            });
        };
        let activity = before.map_or_else(String::new, |s| s.component);
        loop {
            self.cancel.check()?;
            let (now, shown) = phone_state::shown(self.device, package).await?;
            if let Some(shown) = shown
                && shown.object.as_ref().is_some_and(|new| *new != old)
            {
                return Ok(Effect::Recreated {
                    activity: shown.component,
                });
            }
            if now.saturating_sub(begin) >= self.patience_ns() {
                break;
            }
            if self.look().await?.pulse.is_none() {
                return Ok(Effect::NotRecreated {
                    activity,
                    why: "its process is gone".to_owned(),
                });
            }
            self.pause(LOOK_AGAIN).await?;
        }
        let turned = phone_state::rotation(self.device).await?;
        let why = match (turned_before, turned) {
            (Some(a), Some(b)) if a == b => {
                "the screen did not turn: the activity's orientation is fixed"
            }
            (Some(_), Some(_)) => {
                "the screen turned, and the activity handles that itself (configChanges)"
            }
            _ => "its orientation is fixed, or it handles the change itself (configChanges)",
        };
        Ok(Effect::NotRecreated {
            activity,
            why: why.to_owned(),
        })
    }

    /// Queries the foreground activity until it `fits`; returns the last answer either way.
    pub(super) async fn front_until(
        &self,
        fits: impl Fn(&Front) -> bool,
    ) -> Result<Result<Front, Front>, CaptureError> {
        let mut begin = None;
        loop {
            let front = phone_state::front(self.device).await?;
            if fits(&front) {
                return Ok(Ok(front));
            }
            let begin = *begin.get_or_insert(front.boot_ns);
            if front.boot_ns.saturating_sub(begin) >= self.patience_ns() {
                return Ok(Err(front));
            }
            self.pause(LOOK_AGAIN).await?;
        }
    }

    /// Presses HOME, opens another app, or presses BACK until the app has left the foreground.
    pub(super) async fn leave(&mut self, checked: &CheckedCommand) -> Result<Effect, CaptureError> {
        let package = &self.plan.target.package;
        for _ in 0..checked.at_most {
            self.cancel.check()?;
            phone_state::run_quick(self.device, &checked.command, SLOW).await?;
            let has_left = match checked.at_most {
                1 => self.front_until(|f| !f.is_of(package)).await?.is_ok(),
                _ => {
                    self.pause(commands::AFTER_INPUT).await?;
                    !phone_state::front(self.device).await?.is_of(package)
                }
            };
            if has_left {
                return Ok(Effect::InBackground);
            }
        }
        Ok(Effect::StillInFront)
    }

    /// Starts an activity of the app, and waits until it is in the foreground.
    pub(super) async fn launch(
        &self,
        checked: &CheckedCommand,
        anew: bool,
    ) -> Result<Launch, CaptureError> {
        let package = &self.plan.target.package;
        let run = phone_state::run_quick(self.device, &checked.command, SLOW * 2);
        let (out, err) = run.await?;
        let started = read::started(&out, &err);
        let front = self.front_until(|f| f.is_of(package)).await?;
        let (component, behind) = match front {
            Ok(front) => (front.component, None),
            Err(other) => (None, other.component),
        };
        let hot = started.launch.as_deref() == Some("HOT");
        Ok(Launch {
            only_to_front: !anew && (started.warning.is_some() || hot),
            state: started.launch,
            activity: started.activity.or(component),
            total_ms: started.total_ms,
            behind,
        })
    }

    pub(super) async fn trim(
        &self,
        checked: &CheckedCommand,
        level: TrimLevel,
    ) -> Result<Effect, CaptureError> {
        let output = self.device.run(&checked.command, SLOW).await?;
        let refused = phone_state::complaint(&output);
        // A preceding HOME makes the system send this level.
        let asked = |why: &String| level == TrimLevel::Hidden && why.contains(ASKED_ALREADY);
        let Some(why) = refused.filter(|why| !asked(why)) else {
            // The app reacts later.
            self.pause(commands::AFTER_INPUT).await?;
            return Ok(Effect::Trimmed {
                level: level.name(),
            });
        };
        let known = [
            (
                ASKED_ALREADY,
                "it received this level or a higher one before; levels must rise until it returns \
                 to the foreground",
            ),
            (
                "background trim level",
                "it is in the foreground or as important; this level is for background apps",
            ),
            ("Unknown process", "it is not running"),
        ];
        let known = known.into_iter().find(|(words, _)| why.contains(words));
        Ok(Effect::TrimRefused {
            level: level.name(),
            why: known.map_or_else(|| sanitize(&why).into_owned(), |(_, why)| why.to_owned()),
        })
    }

    /// Runs monkey to its end; its PID is recorded as soon as it is known.
    pub(super) async fn monkey(
        &mut self,
        checked: &CheckedCommand,
        (events, seed): (u32, u32),
        throttle: Duration,
    ) -> Result<Effect, CaptureError> {
        let silence = throttle.saturating_mul(TELLS_EACH) + SILENCE;
        let mut shell = self.device.spawn(&checked.command, QUICK).await?;
        let mut text = String::new();
        let exit = loop {
            let event = tokio::select! {
                event = tokio::time::timeout(silence, shell.next()) => event,
                // Only a monkey with a recorded PID can be ended.
                () = self.cancel.wait(), if self.saved.monkey.is_some() => {
                    return Err(CaptureError::canceled());
                }
            };
            let Ok(event) = event else {
                break None;
            };
            match event? {
                ShellEvent::Stdout(bytes) | ShellEvent::Stderr(bytes) => {
                    text.push_str(&String::from_utf8_lossy(&bytes));
                }
                ShellEvent::Exit(code) => break Some(code),
            }
            if self.saved.monkey.is_none()
                && let Some(pid) = monkey_pid(&text)
            {
                self.saved.monkey = Some(pid);
                self.journals.note(&self.saved)?;
            }
            if text.len() > MONKEY_WORDS {
                // Only its end matters.
                let cut = text.len() - MONKEY_WORDS / 2;
                let cut = (cut..text.len()).find(|at| text.is_char_boundary(*at));
                text.drain(..cut.unwrap_or(text.len()));
            }
        };
        let end = read::monkey(&text);
        let aborted = match (end.aborted, exit) {
            (Some(why), _) => Some(sanitize(&why).into_owned()),
            (None, None) => Some("it stopped printing output".to_owned()),
            (None, Some(code)) if code != 0 && end.injected.is_none() => {
                Some(format!("exit status {code}"))
            }
            _ => None,
        };
        if exit.is_none()
            && let Some(pid) = self.saved.monkey
        {
            end_monkey(self.device, pid).await?;
        }
        self.saved.monkey = None;
        self.journals.note(&self.saved)?;
        Ok(Effect::Monkey {
            events,
            injected: end.injected,
            seed,
            aborted,
        })
    }

    /// Ends the app's process, and checks until it is gone.
    pub(super) async fn end(&self, checked: &CheckedCommand) -> Result<Effect, CaptureError> {
        let before = self.look().await?;
        phone_state::run_quick(self.device, &checked.command, SLOW).await?;
        loop {
            let now = self.look().await?;
            let gone = match (&before.pulse, &now.pulse) {
                (Some(a), Some(b)) => (a.pid, a.started) != (b.pid, b.started),
                (_, None) => true,
                (None, Some(_)) => false,
            };
            if gone {
                return Ok(Effect::Ended);
            }
            if now.boot_ns.saturating_sub(before.boot_ns) >= self.patience_ns() {
                return Ok(Effect::StillRuns {
                    why: "the system keeps it running: a service, or something that depends on it"
                        .to_owned(),
                });
            }
            self.pause(LOOK_AGAIN).await?;
        }
    }
}

/// Parses the PID that the script prints before it becomes monkey.
fn monkey_pid(text: &str) -> Option<u32> {
    let mut lines = text.split_inclusive('\n');
    let line = lines.find(|l| l.starts_with("heaptap-monkey "))?;
    // Half a line contains only half a number.
    let pid = line.strip_suffix('\n')?.split(' ').nth(1)?;
    pid.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_pid_is_none() {
        assert_eq!(monkey_pid("heaptap-monkey 12"), None);
        assert_eq!(monkey_pid("x\nheaptap-monkey 1234\r\n:Mon"), Some(1234));
    }
}
