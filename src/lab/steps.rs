//! Performs the steps of a run on a device while it is being recorded.

mod answers;
mod dumps;
mod executor;
mod log;
mod waits;

use std::collections::VecDeque;
use std::time::Duration;

use heaptap_lab::results::RunError;
use heaptap_lab::scenario::{Step, What};

pub(super) use self::answers::Answers;
use self::answers::Missed;
pub(super) use self::dumps::{OomDump, directory_of};
use self::executor::SHELL;
pub(super) use self::executor::{RESTORE, StepExecutor, Taken};
pub(super) use self::log::LogTail;
pub(super) use self::waits::regex;

use super::events::LabEvent;
use super::failures::{error_of, interrupted, is_outside};
use heaptap_adb::Command;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_capture::provoke::{self, Action, Cancel, Plan};
use heaptap_capture::session::Control;

/// Time limits of steps without their own.
const WAIT: Duration = Duration::from_secs(30);
const SNAPSHOT: Duration = Duration::from_secs(300);
const ACTION: Duration = Duration::from_secs(600);
/// Maximum number of characters of a command's output in an error.
const SHOWN: usize = 400;

/// A step that failed.
#[derive(Debug)]
pub(super) struct StepFailure {
    pub failure: Failure,
    pub path: String,
    pub line: usize,
}

impl StepFailure {
    /// Returns the error for the results.
    pub(super) fn error(&self) -> RunError {
        RunError {
            step: Some(self.path.clone()),
            line: Some(self.line),
            ..error_of(&self.failure)
        }
    }
}

/// A step with the number of its iteration, if it is in a `repeat`.
struct Due<'s> {
    step: &'s Step,
    /// Suffix of labels: `-2`, or empty.
    suffix: String,
}

impl StepExecutor<'_> {
    /// Performs the steps in order.
    ///
    /// # Errors
    /// Returns the first step that failed more often than it is retried.
    pub(super) async fn perform(&self, steps: &[Step]) -> Result<(), StepFailure> {
        let mut due: VecDeque<Due<'_>> = (steps.iter())
            .map(|step| Due {
                step,
                suffix: String::new(),
            })
            .collect();
        while let Some(Due { step, suffix }) = due.pop_front() {
            if let What::Repeat { times, steps } = &step.what {
                for time in (1..=*times).rev() {
                    for step in steps.iter().rev() {
                        let suffix = format!("{suffix}-{time}");
                        due.push_front(Due { step, suffix });
                    }
                }
                continue;
            }
            self.step(step, &suffix).await?;
        }
        Ok(())
    }

    /// Performs a step; the suffix of its labels is `-2`, or empty.
    ///
    /// # Errors
    /// Returns the step if it failed more often than it is retried.
    pub(super) async fn step(&self, step: &Step, suffix: &str) -> Result<(), StepFailure> {
        (self.tell)(LabEvent::Step {
            run: self.run,
            step: step.path.clone(),
            what: describe(&step.what, suffix),
        });
        let mut left = step.retry;
        loop {
            let limit = step.timeout.unwrap_or_else(|| default_limit(&step.what));
            let failure = match self.limited(&step.what, suffix, limit).await {
                Ok(()) => return Ok(()),
                Err(failure) => failure,
            };
            // A user's interruption is not repeated, and what is still on the device is fetched first.
            let is_final = matches!(
                failure.class,
                ErrorClass::Interrupted | ErrorClass::NotFetched
            );
            if left == 0 || is_final {
                return Err(StepFailure {
                    failure,
                    path: step.path.clone(),
                    line: step.line,
                });
            }
            left -= 1;
            (self.tell)(LabEvent::StepRetry {
                run: self.run,
                step: step.path.clone(),
                why: failure.message,
            });
        }
    }

    /// Performs a step once, until its time limit or an interruption. An action then restores the
    /// device first.
    async fn limited(&self, what: &What, suffix: &str, limit: Duration) -> Result<(), Failure> {
        let (canceller, ends) = Cancel::new();
        let cancel = self.cancel.clone();
        // A wait ends by itself, with what it saw.
        let slack = match is_wait(what) {
            true => WAIT,
            false => Duration::ZERO,
        };
        let mut once = Box::pin(self.once(what, suffix, limit, &ends));
        let cause = tokio::select! {
            ended = &mut once => return ended,
            () = cancel.wait() => interrupted(),
            () = tokio::time::sleep(limit + slack) => step_timeout(&describe(what, suffix), limit),
        };
        if matches!(
            what,
            What::Act(_) | What::WaitForQuiet(_) | What::Dump { .. }
        ) {
            canceller.cancel();
            match tokio::time::timeout(RESTORE, once).await {
                Ok(Err(failure)) if failure.class != ErrorClass::Interrupted => {
                    return Err(failure);
                }
                _ => {}
            }
        }
        Err(cause)
    }

    async fn once(
        &self,
        what: &What,
        suffix: &str,
        limit: Duration,
        ends: &Cancel,
    ) -> Result<(), Failure> {
        match what {
            What::Act(text) => self.act(text, ends).await,
            What::WaitForActivity(name) => self.activity(name, limit).await,
            What::WaitForLog(pattern) => self.log(pattern, limit).await,
            What::WaitForQuiet(rest) => self.quiet(*rest, limit, ends).await,
            What::Shell(words) => self.shell(words, limit).await,
            What::Sleep(long) => {
                tokio::time::sleep(*long).await;
                Ok(())
            }
            What::Snapshot(label) => self.snapshot(format!("{label}{suffix}")).await,
            What::Dump { kind, label } => self.dump(*kind, format!("{label}{suffix}"), ends).await,
            // `perform` unrolls it.
            What::Repeat { .. } => Ok(()),
        }
    }

    async fn act(&self, text: &str, ends: &Cancel) -> Result<(), Failure> {
        let action = action(text)?;
        let ends_app = matches!(action, Action::ForceStop | Action::Kill | Action::Crash);
        let plan = Plan::new(self.target.clone(), vec![action]);
        let report = self.provoke(&plan, ends, &|_| {}).await?;
        if let Some(death) = report.deaths.first().filter(|_| !ends_app) {
            return Err(Failure::new(
                ErrorClass::Device,
                "app-died",
                format!(
                    "{} (PID {}) died during {text}: {}",
                    death.process,
                    death.pid,
                    death.why()
                ),
            ));
        }
        if report.without_effect > 0 {
            let message = format!("{text} had no effect on {}", self.target.package);
            return Err(Failure::new(ErrorClass::Device, "no-effect", message).with_help(
                "bring the app to the foreground with the step `start`, and see that its activity \
                 allows the action",
            ));
        }
        Ok(())
    }

    async fn shell(&self, words: &[String], limit: Duration) -> Result<(), Failure> {
        let command = Command::script(r#""$@""#).args(words);
        // The limit of the step ends it, so that silence is not taken for a broken connection.
        let output = self.device.run(&command, limit + WAIT).await?;
        if output.exit == 0 {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = heaptap_base::untrusted::sanitize(said.trim());
        let said: String = said.chars().take(SHOWN).collect();
        let said = match said.as_str() {
            "" => said,
            said => format!(": {said}"),
        };
        let message = format!("`{}` exited with {}{said}", words.join(" "), output.exit);
        Err(Failure::new(ErrorClass::Device, "command-failed", message))
    }

    /// Takes a snapshot, and waits until all of its data are captured: the next step changes them.
    async fn snapshot(&self, label: String) -> Result<(), Failure> {
        let _only = self.capture.lock().await;
        let captures = self.record.companions;
        let captures = captures.java || captures.meminfo || captures.smaps;
        let answer = self.answers.expect(&label, captures);
        let request = Control::Snapshot {
            label: label.clone(),
        };
        let ended = || {
            let message = format!("the recording ended before the snapshot {label}");
            Failure::new(ErrorClass::Device, "recording-ended", message)
        };
        self.ask.send(request).map_err(|_| ended())?;
        if let Err(Missed { why, class, kind }) = answer.await.map_err(|_| ended())? {
            let pidof = Command::program("pidof").arg(&self.target.process);
            // A device that does not answer is the cause.
            let is_running = self.device.run(&pidof, WAIT).await?.exit == 0;
            // Without the app, the snapshots of other runs would be late as well.
            let is_dead = kind == "snapshot-late" && !is_running;
            let why = if is_dead {
                "the app does not run"
            } else {
                &why
            };
            let message = format!("the snapshot {label} failed: {why}");
            let is_outside = is_outside(class, kind) && !is_dead;
            return Err(match is_outside {
                true => Failure::new(class, kind, message),
                false => Failure::new(ErrorClass::Device, "snapshot-failed", message),
            });
        }
        self.note(|taken| taken.labels.push(label));
        Ok(())
    }
}

/// Returns the action of a step; the check of the scenario has parsed it before.
///
/// # Errors
/// Returns an error if it is not an action.
pub fn action(text: &str) -> Result<Action, Failure> {
    text.parse().map_err(|error: provoke::ActionError| {
        Failure::new(ErrorClass::Usage, "bad-value", error.to_string())
    })
}

fn is_wait(what: &What) -> bool {
    matches!(
        what,
        What::WaitForActivity(_) | What::WaitForLog(_) | What::WaitForQuiet(_)
    )
}

fn step_timeout(what: &str, limit: Duration) -> Failure {
    let message = format!("{what} did not end within {:.0} s", limit.as_secs_f64());
    Failure::new(ErrorClass::Device, "step-timeout", message)
        .with_help("give the step a longer `timeout`, or a `retry`")
}

fn default_limit(what: &What) -> Duration {
    match what {
        What::Act(_) => ACTION,
        What::Sleep(long) => *long + WAIT,
        What::Snapshot(_) | What::Dump { .. } => SNAPSHOT,
        What::Shell(_) => SHELL,
        _ => WAIT,
    }
}

/// Describes a step in a few words.
pub(super) fn describe(what: &What, suffix: &str) -> String {
    match what {
        What::Act(text) => text.clone(),
        What::WaitForActivity(name) => format!("wait for the activity {name}"),
        What::WaitForLog(pattern) => format!("wait for a log line {pattern}"),
        What::WaitForQuiet(rest) => format!("wait until idle for {:.1} s", rest.as_secs_f64()),
        What::Shell(words) => format!("shell {}", words.join(" ")),
        What::Sleep(long) => format!("sleep {:.1} s", long.as_secs_f64()),
        What::Snapshot(label) => format!("snapshot {label}{suffix}"),
        What::Dump { kind, label } => format!("dump {} {label}{suffix}", kind.word()),
        What::Repeat { times, .. } => format!("repeat {times} times"),
    }
}
