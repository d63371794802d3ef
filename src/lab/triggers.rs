//! Triggers of a run: watches for their conditions while the steps go on, and performs theirs.
//! A trigger that fails does not fail the run; its record has the error.

use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use heaptap_lab::results::TriggerRecord;
use heaptap_lab::scenario::{Condition, DumpKind, Scenario, Step, Trigger, What};
use regex::Regex;

use super::events::LabEvent;
use super::figures::others::row_of;
use super::steps::{LogTail, OomDump, StepExecutor, StepFailure, regex};
use crate::heaps::meminfo::{self, Question};
use crate::recording::outcome::Finished;
use heaptap_adb::{Command, Device, RETURN_LIMIT, Shell, ShellEvent};
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::units::ByteSize;
use heaptap_capture::config::trigger_config;
use heaptap_capture::provoke::Cancel;

/// Interval of reading meminfo: each makes the device walk through the page tables of the app.
const EVERY: Duration = Duration::from_secs(5);
/// Time for perfetto to connect to its service, and for the service to refuse its session.
const CONNECT: Duration = Duration::from_secs(2);
const REFUSE: Duration = Duration::from_millis(500);
/// Time limit of a short request.
const QUICK: Duration = Duration::from_secs(30);
/// First API level whose runtime dumps the heap at an OutOfMemoryError.
const OOM_SDK: u32 = 34;
/// What the runtime logs before it throws.
const OOM_LINE: &str = "Throwing OutOfMemoryError";
/// Maximum number of characters of a log line in a cause.
const SHOWN: usize = 200;

/// What is watched for a trigger.
enum Watch {
    Log {
        pattern: Regex,
        log: LogTail,
        /// Only lines of the app.
        own: bool,
    },
    Meminfo {
        row: String,
        over: u64,
        was_over: bool,
    },
    Perfetto {
        name: String,
        wait: Duration,
        /// `None` after the trigger, until it is waited for again.
        shell: Option<Shell>,
    },
    OutOfMemory(OomDump),
}

/// A condition that is met.
struct Met {
    /// What happened.
    cause: String,
    /// Label of a dump that came with it.
    label: Option<String>,
}

impl Met {
    fn new(cause: String) -> Met {
        Met { cause, label: None }
    }

    fn by_dump(label: &str, finished: &Finished) -> Met {
        let dump = finished.manifest.dumps.java.first();
        let of = dump.map(|dump| format!(" of {} (PID {})", dump.process, dump.pid));
        Met {
            cause: format!("OutOfMemoryError{}", of.unwrap_or_default()),
            label: Some(label.to_owned()),
        }
    }
}

impl StepExecutor<'_> {
    /// Performs the steps of a run, and those of its triggers meanwhile.
    ///
    /// # Errors
    /// Returns the first step that failed, or a trigger that cannot be watched.
    pub(super) async fn perform_with_triggers(
        &self,
        scenario: &Scenario,
    ) -> Result<(), StepFailure> {
        let mut watches = Vec::new();
        for trigger in &scenario.triggers {
            let watch = self.arm(trigger, scenario.timeout).await;
            let watch = watch.map_err(|failure| StepFailure {
                failure,
                path: trigger.path.clone(),
                line: trigger.line,
            })?;
            watches.push((trigger, watch));
        }
        let (canceller, over) = Cancel::new();
        let watching = all(watches
            .into_iter()
            .map(|(trigger, watch)| Box::pin(self.watch(trigger, watch, &over)) as _)
            .collect());
        let performing = async {
            let performed = self.perform(&scenario.steps).await;
            // A trigger that acts now ends its steps first.
            canceller.cancel();
            performed
        };
        let (performed, ()) = tokio::join!(performing, watching);
        performed
    }

    /// Begins to watch for a condition.
    async fn arm(&self, trigger: &Trigger, wait: Duration) -> Result<Watch, Failure> {
        match &trigger.condition {
            Condition::Log(pattern) => self.watch_log(pattern, false).await,
            Condition::Meminfo { row, over } => Ok(Watch::Meminfo {
                row: row.clone(),
                over: *over,
                was_over: false,
            }),
            Condition::Perfetto(name) => Ok(Watch::Perfetto {
                name: name.clone(),
                wait,
                shell: Some(await_perfetto(self.device, name, wait).await?),
            }),
            Condition::OutOfMemory => {
                let dumps = self.api.is_none_or(|api| api >= OOM_SDK);
                let label = trigger.steps.iter().find_map(java_label).filter(|_| dumps);
                match label {
                    Some(label) => {
                        let dump = self.await_oom(label.to_owned(), wait).await?;
                        Ok(Watch::OutOfMemory(dump))
                    }
                    None => self.watch_log(OOM_LINE, true).await,
                }
            }
        }
    }

    async fn watch_log(&self, pattern: &str, own: bool) -> Result<Watch, Failure> {
        Ok(Watch::Log {
            pattern: regex(pattern)?,
            log: LogTail::begin(self.device).await?,
            own,
        })
    }

    /// Watches for a condition until the steps of the run are over, and acts.
    async fn watch(&self, trigger: &Trigger, mut watch: Watch, over: &Cancel) {
        let mut time = 1;
        while time <= trigger.times {
            let met = tokio::select! {
                biased;
                met = self.met(&mut watch) => met,
                () = over.wait() => match &mut watch {
                    Watch::OutOfMemory(dump) => {
                        let Some(finished) = dump.stop().await else {
                            return;
                        };
                        Ok(Met::by_dump(&dump.label, &finished))
                    }
                    _ => return,
                },
            };
            match met {
                Ok(met) => self.perform_trigger(trigger, time, met).await,
                Err(failure) => {
                    (self.tell)(LabEvent::Warning {
                        text: format!("{} is not watched: {}", trigger.path, failure.message),
                    });
                    return;
                }
            }
            time += 1;
        }
    }

    /// Waits until a condition is met. Cancel-safe.
    ///
    /// # Errors
    /// Returns an error if it cannot be watched any more.
    async fn met(&self, watch: &mut Watch) -> Result<Met, Failure> {
        match watch {
            Watch::Log { pattern, log, own } => loop {
                let line = match log.line().await {
                    Ok(line) => line,
                    Err(failure) if failure.kind == "command-failed" => return Err(failure),
                    // The device went away, or refuses; the log pauses before it is read again.
                    Err(_) => {
                        self.device.wait_ready(RETURN_LIMIT).await?;
                        continue;
                    }
                };
                if pattern.is_match(&line) && (!*own || self.is_of_app(&line)) {
                    let line: String = line.chars().take(SHOWN).collect();
                    let line = heaptap_base::untrusted::sanitize(&line);
                    return Ok(Met::new(format!("log: {line}")));
                }
            },
            Watch::Meminfo {
                row,
                over,
                was_over,
            } => loop {
                if let Some(value) = self.pss(row).await? {
                    let is_over = value > *over as f64;
                    if is_over && !std::mem::replace(was_over, is_over) {
                        let value = ByteSize(value as u64);
                        return Ok(Met::new(format!("{row} of meminfo: {value}")));
                    }
                    *was_over = is_over;
                }
                tokio::time::sleep(EVERY).await;
            },
            Watch::Perfetto { name, wait, shell } => {
                let waiting = match shell {
                    Some(waiting) => waiting,
                    None => shell.insert(await_perfetto(self.device, name, *wait).await?),
                };
                activated(waiting).await?;
                *shell = None;
                Ok(Met::new(format!("trigger {name} of Perfetto")))
            }
            Watch::OutOfMemory(dump) => {
                let finished = dump.ended().await?;
                Ok(Met::by_dump(&dump.label, &finished))
            }
        }
    }

    /// Returns whether a line of the log is of a recorded process.
    fn is_of_app(&self, line: &str) -> bool {
        let pid = line.split_whitespace().nth(1);
        let pid = pid.and_then(|pid| pid.parse().ok());
        pid.is_some_and(|pid| self.answers.has_seen(pid))
    }

    /// Returns the PSS of a row; `None` if the app is not running or does not answer now.
    async fn pss(&self, row: &str) -> Result<Option<f64>, Failure> {
        let question = Question {
            targets: self.record.kind.targets().clone(),
            user: self.record.user,
            // Otherwise it makes the app collect its garbage.
            local: true,
            ..Question::default()
        };
        let Ok(answer) = meminfo::ask(self.device, &question).await else {
            return Ok(None);
        };
        match row_of(&answer.document, row, |_| Vec::new()) {
            Ok((value, _)) => Ok(Some(value)),
            // It ended meanwhile.
            Err(_) if answer.document.processes.is_empty() => Ok(None),
            Err(why) => Err(Failure::new(ErrorClass::Device, "command-failed", why)),
        }
    }

    /// Performs the steps of a trigger, except a dump that came with its condition.
    async fn perform_trigger(&self, trigger: &Trigger, time: u32, met: Met) {
        (self.tell)(LabEvent::Trigger {
            run: self.run,
            trigger: trigger.path.clone(),
            cause: met.cause.clone(),
        });
        let suffix = trigger.suffix(time);
        let mut record = TriggerRecord {
            trigger: trigger.path.clone(),
            line: trigger.line,
            cause: met.cause,
            seconds: self.began.elapsed().as_secs_f64(),
            labels: Vec::new(),
            error: None,
        };
        for step in &trigger.steps {
            let label = step.what.label().map(|label| format!("{label}{suffix}"));
            if label.is_some() && label == met.label {
                record.labels.extend(label.clone());
                self.note(|taken| taken.labels.extend(label));
                continue;
            }
            if let Err(failed) = self.step(step, &suffix).await {
                let error = failed.error().message;
                (self.tell)(LabEvent::Warning {
                    text: format!("{}: {error}", failed.path),
                });
                record.error = Some(error);
                break;
            }
            record.labels.extend(label);
        }
        self.note(|taken| taken.triggers.push(record));
    }
}

/// Returns the label of a step that dumps a heap graph.
fn java_label(step: &Step) -> Option<&str> {
    match &step.what {
        What::Dump {
            kind: DumpKind::Java,
            label,
        } => Some(label),
        _ => None,
    }
}

/// Starts a perfetto that waits for a trigger and ends with the connection. It writes to its
/// output, so that no file remains on the device.
async fn await_perfetto(device: &Device, name: &str, wait: Duration) -> Result<Shell, Failure> {
    let command = Command::program("perfetto")
        .args(["-c", "-", "-o", "-"])
        .called("waiting for a trigger");
    let mut shell = device.spawn(&command, QUICK).await?;
    shell.write(&trigger_config(name, wait)).await?;
    shell.close_stdin().await?;
    // It prints a line when it connects, and another if the service refuses the session.
    let mut said = String::new();
    let mut limit = CONNECT;
    loop {
        match tokio::time::timeout(limit, shell.next()).await {
            Ok(Ok(ShellEvent::Stderr(bytes))) => {
                said = heaptap_base::untrusted::sanitize_bytes(bytes.trim_ascii());
                limit = REFUSE;
            }
            Ok(Ok(ShellEvent::Exit(code))) => return Err(not_waiting(code, &said)),
            Ok(Ok(ShellEvent::Stdout(_))) | Err(_) => return Ok(shell),
            Ok(Err(error)) => return Err(error.into()),
        }
    }
}

/// Waits until perfetto writes what it recorded at the trigger.
async fn activated(shell: &mut Shell) -> Result<(), Failure> {
    let mut said = String::new();
    loop {
        match shell.next().await? {
            ShellEvent::Stdout(_) => return Ok(()),
            ShellEvent::Stderr(bytes) => {
                said = heaptap_base::untrusted::sanitize_bytes(bytes.trim_ascii());
            }
            ShellEvent::Exit(code) => return Err(not_waiting(code, &said)),
        }
    }
}

fn not_waiting(code: u8, said: &str) -> Failure {
    let message = format!("perfetto exited with {code} before the trigger: {said}");
    Failure::new(ErrorClass::Device, "command-failed", message)
}

/// Waits for all of some futures.
async fn all(mut futures: Vec<Pin<Box<dyn Future<Output = ()> + Send + '_>>>) {
    std::future::poll_fn(|context| {
        futures.retain_mut(|future| future.as_mut().poll(context).is_pending());
        match futures.is_empty() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
}

/// Describes a condition in a few words.
pub fn describe(condition: &Condition) -> String {
    match condition {
        Condition::Log(pattern) => format!("at a log line {pattern}"),
        Condition::OutOfMemory => "at an OutOfMemoryError".to_owned(),
        Condition::Meminfo { row, over } => {
            format!("when {row} of meminfo exceeds {}", ByteSize(*over))
        }
        Condition::Perfetto(name) => format!("at the trigger {name} of Perfetto"),
    }
}
