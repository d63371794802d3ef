//! Performs the steps of a run on a device while it is being recorded.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use heaptap_lab::results::RunError;
use heaptap_lab::scenario::{Step, What};
use regex::Regex;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::events::{LabEvent, LabEvents};
use crate::device::{Command, Device};
use crate::error::{ErrorClass, Failure};
use crate::provoke::{self, Action, Cancel, Event, Journals, Plan, Settle, Target};
use crate::session::Control;

/// Time limits of steps without their own.
const WAIT: Duration = Duration::from_secs(30);
const SHELL: Duration = Duration::from_secs(60);
const SNAPSHOT: Duration = Duration::from_secs(120);
const ACTION: Duration = Duration::from_secs(600);
/// Pause between two looks at the device.
const PAUSE: Duration = Duration::from_millis(500);
/// Maximum number of characters of a command's output in an error.
const SHOWN: usize = 400;

/// What the recording says of a snapshot.
#[derive(Debug)]
pub(super) enum Snapped {
    Taken { label: String },
    Failed { label: String, why: String },
}

/// The hands of a run: what its steps act through.
pub(super) struct Hands<'a> {
    pub device: &'a Device,
    pub journals: &'a Journals,
    pub target: &'a Target,
    pub cancel: &'a Cancel,
    /// Requests to the recording.
    pub ask: &'a mpsc::UnboundedSender<Control>,
    /// Answers of the recording.
    pub snapped: &'a mut mpsc::UnboundedReceiver<Snapped>,
    pub tell: &'a LabEvents,
    /// Number of the run.
    pub run: usize,
    /// Labels of the snapshots so far.
    pub labels: Vec<String>,
}

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

/// Returns a failure as the error of a run.
pub(super) fn error_of(failure: &Failure) -> RunError {
    RunError {
        code: failure.class.exit_code(),
        kind: failure.kind.to_owned(),
        message: failure.message.clone(),
        help: failure.help.clone(),
        step: None,
        line: None,
    }
}

/// A step with the number of its iteration, if it is in a `repeat`.
struct Due<'s> {
    step: &'s Step,
    /// Suffix of labels: `-2`, or empty.
    suffix: String,
}

impl Hands<'_> {
    /// Performs the steps in order.
    ///
    /// # Errors
    /// Returns the first step that failed more often than it is retried.
    pub(super) async fn perform(&mut self, steps: &[Step]) -> Result<(), StepFailure> {
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

    async fn step(&mut self, step: &Step, suffix: &str) -> Result<(), StepFailure> {
        (self.tell)(LabEvent::Step {
            run: self.run,
            step: step.path.clone(),
            what: describe(&step.what, suffix),
        });
        let mut left = step.retry;
        loop {
            let limit = step.timeout.unwrap_or_else(|| default_limit(&step.what));
            // An action restores the device when it is cancelled; nothing else has to.
            let acts = matches!(step.what, What::Act(_) | What::WaitForQuiet(_));
            let cancel = self.cancel.clone();
            let cancelled = async {
                match acts {
                    true => std::future::pending().await,
                    false => cancel.wait().await,
                }
            };
            // A wait ends by itself, with what it saw.
            let once = tokio::time::timeout(limit + WAIT, self.once(&step.what, suffix, limit));
            let ended = tokio::select! {
                ended = once => ended,
                () = cancelled => Ok(Err(interrupted())),
            };
            let failure = match ended {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(failure)) => failure,
                Err(_) => Failure::new(
                    ErrorClass::Device,
                    "step-timeout",
                    format!(
                        "{} did not end within {:.0} s",
                        describe(&step.what, suffix),
                        limit.as_secs_f64()
                    ),
                )
                .with_help("give the step a longer `timeout`, or a `retry`"),
            };
            // A user's interruption is not repeated.
            if left == 0 || failure.class == ErrorClass::Interrupted {
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

    async fn once(&mut self, what: &What, suffix: &str, limit: Duration) -> Result<(), Failure> {
        match what {
            What::Act(text) => self.act(text).await,
            What::WaitForActivity(name) => self.activity(name, limit).await,
            What::WaitForLog(pattern) => self.log(pattern, limit).await,
            What::WaitForQuiet(rest) => self.quiet(*rest, limit).await,
            What::Shell(words) => self.shell(words, limit).await,
            What::Sleep(long) => {
                tokio::time::sleep(*long).await;
                Ok(())
            }
            What::Snapshot(label) => self.snapshot(format!("{label}{suffix}")).await,
            // `perform` unrolls it.
            What::Repeat { .. } => Ok(()),
        }
    }

    async fn act(&self, text: &str) -> Result<(), Failure> {
        let action: Action = text.parse().map_err(|error: provoke::ActionError| {
            Failure::new(ErrorClass::Usage, "bad-action", error.to_string())
        })?;
        let ends_app = matches!(action, Action::ForceStop | Action::Kill | Action::Crash);
        let plan = Plan::new(self.target.clone(), vec![action]);
        let report = self.provoke(&plan, &|_| {}).await?;
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

    async fn provoke(
        &self,
        plan: &Plan,
        tell: &(dyn Fn(&Event) + Send + Sync),
    ) -> Result<provoke::Report, Failure> {
        let report = provoke::run(self.device, plan, self.journals, self.cancel, tell).await?;
        match report.interrupted {
            true => Err(interrupted()),
            false => Ok(report),
        }
    }

    async fn quiet(&self, rest: Duration, limit: Duration) -> Result<(), Failure> {
        let plan = Plan {
            settle: Some(Settle { limit, rest }),
            ..Plan::new(self.target.clone(), Vec::new())
        };
        let unsettled = Mutex::new(None);
        let tell = |event: &Event| {
            if let Event::Settled { why, .. } = event {
                unsettled
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .clone_from(why);
            }
        };
        self.provoke(&plan, &tell).await?;
        match unsettled
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
        {
            None => Ok(()),
            Some(why) => {
                let package = &self.target.package;
                Err(timed_out(
                    format!("{package} did not become idle: {why}"),
                    limit,
                ))
            }
        }
    }

    async fn activity(&self, name: &str, limit: Duration) -> Result<(), Failure> {
        let until = Instant::now() + limit;
        loop {
            let front = provoke::foreground(self.device).await?;
            if front
                .as_deref()
                .is_some_and(|front| is_activity(front, name))
            {
                return Ok(());
            }
            if Instant::now() + PAUSE >= until {
                let seen = front.unwrap_or_else(|| "no activity".to_owned());
                let message = format!("{name} did not come to the foreground; there is {seen}");
                return Err(timed_out(message, limit));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Waits for a line logged since the step began.
    async fn log(&self, pattern: &str, limit: Duration) -> Result<(), Failure> {
        let regex = Regex::new(pattern)
            .map_err(|error| Failure::new(ErrorClass::Usage, "bad-pattern", error.to_string()))?;
        let until = Instant::now() + limit;
        let clock = Command::program("date").arg("+%s");
        let now = self.device.run(&clock, SHELL).await?;
        let since = String::from_utf8_lossy(&now.stdout).trim().to_owned();
        loop {
            let read = Command::program("logcat").args(["-d", "-v", "epoch", "-T"]);
            let read = read.arg(format!("{since}.000"));
            let output = self.device.run(&read, SHELL).await?;
            let text = String::from_utf8_lossy(&output.stdout);
            if text.lines().any(|line| regex.is_match(line)) {
                return Ok(());
            }
            if Instant::now() + PAUSE >= until {
                return Err(timed_out(
                    format!("no line of the log matched {pattern}"),
                    limit,
                ));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn shell(&self, words: &[String], limit: Duration) -> Result<(), Failure> {
        let command = Command::script(r#""$@""#).args(words);
        let output = self.device.run(&command, limit).await?;
        if output.exit == 0 {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = crate::untrusted::sanitize(said.trim());
        let said: String = said.chars().take(SHOWN).collect();
        let message = format!("`{}` exited with {}: {said}", words.join(" "), output.exit);
        Err(Failure::new(ErrorClass::Device, "command-failed", message))
    }

    async fn snapshot(&mut self, label: String) -> Result<(), Failure> {
        let request = Control::Snapshot {
            label: label.clone(),
        };
        let ended = || {
            let message = format!("the recording ended before the snapshot {label}");
            Failure::new(ErrorClass::Device, "recording-ended", message)
        };
        self.ask.send(request).map_err(|_| ended())?;
        loop {
            match self.snapped.recv().await {
                Some(Snapped::Taken { label: of }) if of == label => break,
                Some(Snapped::Failed { label: of, why }) if of == label => {
                    let message = format!("the snapshot {label} failed: {why}");
                    return Err(Failure::new(ErrorClass::Device, "snapshot-failed", message));
                }
                // Of an earlier attempt.
                Some(_) => {}
                None => return Err(ended()),
            }
        }
        self.labels.push(label);
        Ok(())
    }
}

fn interrupted() -> Failure {
    Failure::new(ErrorClass::Interrupted, "interrupted", "interrupted")
}

fn timed_out(message: String, limit: Duration) -> Failure {
    let message = format!("{message} (time limit {:.0} s)", limit.as_secs_f64());
    Failure::new(ErrorClass::Device, "wait-timeout", message)
        .with_help("give the step a longer `timeout`, or a `retry`")
}

/// Returns whether `front`, such as `com.example.app/.MainActivity`, is the activity `name`: its
/// component, its class, or the end of its class from a dot.
fn is_activity(front: &str, name: &str) -> bool {
    let Some((package, class)) = front.split_once('/') else {
        return front == name;
    };
    let whole = match class.strip_prefix('.') {
        Some(_) => format!("{package}{class}"),
        None => class.to_owned(),
    };
    let name = name.strip_prefix(&format!("{package}/")).unwrap_or(name);
    let dotted = format!(".{}", name.trim_start_matches('.'));
    whole == name || whole.ends_with(&dotted)
}

fn default_limit(what: &What) -> Duration {
    match what {
        What::Act(_) => ACTION,
        What::Sleep(long) => *long + WAIT,
        What::Snapshot(_) => SNAPSHOT,
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
        What::Repeat { times, .. } => format!("repeat {times} times"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_activity_has_several_spellings() {
        let front = "com.example.app/.ui.MainActivity";
        for name in [
            "com.example.app/.ui.MainActivity",
            "com.example.app.ui.MainActivity",
            ".ui.MainActivity",
            ".MainActivity",
            "MainActivity",
        ] {
            assert!(is_activity(front, name), "{name}");
        }
        for name in ["Activity", "ui", "com.example.other/.MainActivity", ""] {
            assert!(!is_activity(front, name), "{name}");
        }
        assert!(is_activity("com.a/com.b.Main", "com.b.Main"));
    }
}
