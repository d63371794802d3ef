//! Requested collections. Depending on what the device permits, uses a signal as root or through
//! `run-as`, otherwise `dumpsys meminfo`, for which an app collects before it counts its objects.
//! The signal ends a process without a Java runtime, so the same script checks its receiver first.

use std::collections::HashMap;
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use super::phone::{self, Target};
use android_memory::gc::{Event, Logged, Stamp, parse_event, parse_line};
use heaptap_adb::{Command, Device, Output};
use heaptap_base::error::ErrorClass;
use heaptap_base::untrusted::sanitize_bytes;
use heaptap_capture::eligibility::{DeviceFacts, Root};
use heaptap_capture::error::CaptureError;
use heaptap_model::timeline::Collection;

/// Time limit for sending a signal.
const QUICK: Duration = Duration::from_secs(15);
/// Time limit for meminfo. The app alone gets 5 seconds.
const MEMINFO: Duration = Duration::from_secs(60);
/// Time for which the log is watched.
const WATCHED: Duration = Duration::from_secs(15);

/// Method of requesting a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GcTrigger {
    /// Signal sent as root.
    Root,
    /// Signal sent as the app itself, which must be debuggable.
    RunAs,
    /// `dumpsys meminfo`, for which the app collects before it counts.
    Meminfo,
}

impl GcTrigger {
    /// Returns the method in words, as used after "requested".
    pub fn words(self) -> &'static str {
        match self {
            GcTrigger::Root => "by a signal sent as root",
            GcTrigger::RunAs => "by a signal sent through run-as",
            GcTrigger::Meminfo => "by `dumpsys meminfo`",
        }
    }
}

/// Live set after a collection, as logged.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Measured {
    /// Live bytes, rounded down.
    pub live: u64,
    /// Resolution of `live` in bytes.
    pub step: u64,
    /// Size of the heap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Seconds before the requested collection, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds_before: Option<f64>,
}

/// Requested collection.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Collected {
    #[serde(flatten)]
    pub target: Target,
    #[serde(rename = "method")]
    pub trigger: GcTrigger,
    /// Methods that were tried before, each with the reason of its failure.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<(GcTrigger, String)>,
    /// Live set after the previous logged collection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Measured>,
    /// Live set after this collection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Measured>,
    pub collection: Collection,
}

/// Runs `$act` only if process `$1` is a child of a zygote and called `$2`. The zygote alone is not
/// enough, because PIDs are reused.
macro_rules! if_app {
    ($act:literal) => {
        concat!(
            "stat=$(cat /proc/$1/stat 2>/dev/null); ",
            "[ -n \"$stat\" ] || { echo it is gone; exit 61; }; ",
            "set -- \"$1\" \"$2\" \"$3\" \"$4\" ${stat##*)}; ",
            "case \"$(cat /proc/$6/cmdline 2>/dev/null)\" in zygote*|*_zygote*) ;; ",
            "*) echo it was not forked from a zygote; exit 62;; esac; ",
            "case \"$(cat /proc/$1/cmdline 2>/dev/null)\" in \"$2\"*) ;; ",
            "*) echo its number is another process by now; exit 63;; esac; ",
            $act
        )
    };
}

/// Requests a collection of a process and waits for it in the log.
///
/// # Errors
/// Returns an error if the process does not have a Java heap, is frozen, cannot be asked, or does
/// not log a collection.
pub async fn collect_now(
    device: &Device,
    facts: &DeviceFacts,
    target: &Target,
) -> Result<Collected, CaptureError> {
    let (name, pid) = (&target.name, target.pid);
    if !target.has_art {
        let message = format!("{name} ({pid}) does not have a Java heap");
        let error = CaptureError::new(ErrorClass::NotEligible, "gc-no-java", message);
        return Err(error.with_help(
            "choose an app or system_server. Only they have a garbage collector, and the signal \
             would end a native process.",
        ));
    }
    if target.frozen {
        let message =
            format!("{name} ({pid}) is frozen and cannot collect garbage until it runs again");
        let error = CaptureError::new(ErrorClass::NotEligible, "gc-frozen", message);
        return Err(error.with_help("bring the app to the foreground, then try again"));
    }
    let mut log = Watched::begin(device, pid).await?;
    let mut refused = Vec::new();
    let mut taken = None;
    for trigger in triggers(facts, target) {
        match ask(device, facts, target, trigger).await? {
            Ok(()) => {
                taken = Some(trigger);
                break;
            }
            Err(why) => refused.push((trigger, why)),
        }
    }
    let Some(trigger) = taken else {
        let why: Vec<String> = refused
            .into_iter()
            .map(|(trigger, why)| format!("{}: {why}", trigger.words()))
            .collect();
        let why = why.join("; ");
        let message = format!("cannot request a GC of {name} ({pid}): {why}");
        return Err(
            CaptureError::new(ErrorClass::Device, "gc-not-requested", message)
                .with_help("check with `heaptap check` whether the process is still running"),
        );
    };
    let Some((at, logged)) = log.explicit(device, pid).await? else {
        let message = format!(
            "{name} ({pid}) did not log a collection within {} s after a GC was requested {}",
            WATCHED.as_secs(),
            trigger.words()
        );
        return Err(
            CaptureError::new(ErrorClass::Device, "gc-not-logged", message).with_help(
                "watch the log with `heaptap gc --follow`; a busy process responds late",
            ),
        );
    };
    let before = log.before.as_ref().and_then(|(then, logged)| {
        let mut measured = measured(logged)?;
        let apart = at.zip(*then).map(|(at, then)| at.saturating_sub(then));
        measured.seconds_before = apart.map(|ns| ns as f64 / 1e9);
        Some(measured)
    });
    Ok(Collected {
        target: target.clone(),
        trigger,
        refused,
        before,
        after: measured(&logged),
        collection: Collection {
            ours: true,
            ..logged.collection
        },
    })
}

fn triggers(facts: &DeviceFacts, target: &Target) -> Vec<GcTrigger> {
    let root = facts.root.map(|_| GcTrigger::Root);
    let run_as = target.run_as.as_ref().map(|_| GcTrigger::RunAs);
    root.into_iter()
        .chain(run_as)
        .chain([GcTrigger::Meminfo])
        .collect()
}

/// Requests a collection. The inner error is the reason why this method does not work.
async fn ask(
    device: &Device,
    facts: &DeviceFacts,
    target: &Target,
    trigger: GcTrigger,
) -> Result<Result<(), String>, CaptureError> {
    let pid = target.pid.to_string();
    let app = match (trigger, facts.root) {
        (GcTrigger::Meminfo, _) => None,
        (GcTrigger::Root, Some(Root::Su)) => Some(if_app!("su root kill -10 $1")),
        (GcTrigger::Root, _) => Some(if_app!("kill -10 $1")),
        // `run-as` of old devices does not support `--user`; the first user does not need it.
        (GcTrigger::RunAs, _) if target.user == 0 => Some(if_app!("run-as \"$3\" kill -10 $1")),
        (GcTrigger::RunAs, _) => Some(if_app!("run-as \"$3\" --user \"$4\" kill -10 $1")),
    };
    let (command, patience) = match app {
        None => (Command::program("dumpsys").args(["meminfo", &pid]), MEMINFO),
        Some(script) => {
            let package = target.run_as.as_deref().unwrap_or("");
            let user = target.user.to_string();
            let command = Command::script(script);
            (command.args([&pid, &target.name, package, &user]), QUICK)
        }
    };
    let command = command.called("asking for a collection");
    match device.run(&command, patience).await {
        Ok(output) => Ok(answer(trigger, &output)),
        Err(error) if error.is_connection() => Err(error.into()),
        Err(error) => Ok(Err(error.to_string())),
    }
}

fn answer(trigger: GcTrigger, output: &Output) -> Result<(), String> {
    let text = [&output.stderr[..], &output.stdout[..]];
    let line = text
        .iter()
        .flat_map(|text| text.split(|byte| *byte == b'\n'))
        .map(<[u8]>::trim_ascii)
        .find(|line| !line.is_empty());
    let says = line.map_or_else(
        || "it failed without an error message".to_owned(),
        sanitize_bytes,
    );
    match trigger {
        GcTrigger::Meminfo if says.starts_with("No process found") => Err(says),
        GcTrigger::Meminfo if output.exit == 0 => Ok(()),
        // run-as of old devices exits with 0 even on failure.
        GcTrigger::Root | GcTrigger::RunAs if output.exit == 0 && line.is_none() => Ok(()),
        _ => Err(says),
    }
}

fn measured(logged: &Logged) -> Option<Measured> {
    Some(Measured {
        live: logged.collection.live?,
        step: logged.steps.live,
        total: logged.collection.total,
        seconds_before: None,
    })
}

/// Log of a process from a point in time.
struct Watched {
    /// Last collection before that time.
    before: Option<(Option<i64>, Logged)>,
    /// Lines before that time, with their counts.
    known: HashMap<String, usize>,
    /// Time of the last of them, in the format of logcat's `-T`.
    from: Option<String>,
}

impl Watched {
    async fn begin(device: &Device, pid: u32) -> Result<Watched, CaptureError> {
        let text = phone::lines(device, pid, None).await?;
        let mut watched = Watched {
            before: None,
            known: HashMap::new(),
            from: None,
        };
        for (line, at, event) in of_process(&text, pid) {
            if let Some(Stamp::Epoch(ns)) = at {
                let (seconds, ms) = (ns / 1_000_000_000, ns / 1_000_000 % 1000);
                watched.from = Some(format!("{seconds}.{ms:03}"));
            }
            if let Some(Event::Collection(logged)) = event {
                *watched.known.entry(line.to_owned()).or_default() += 1;
                watched.before = Some((at.map(axis), *logged));
            }
        }
        Ok(watched)
    }

    /// Returns the first explicit collection that was not in the log before.
    async fn explicit(
        &mut self,
        device: &Device,
        pid: u32,
    ) -> Result<Option<(Option<i64>, Logged)>, CaptureError> {
        let until = Instant::now() + WATCHED;
        let mut pause = Duration::from_millis(100);
        loop {
            let text = phone::lines(device, pid, self.from.as_deref()).await?;
            let mut known = self.known.clone();
            for (line, at, event) in of_process(&text, pid) {
                let Some(Event::Collection(logged)) = event else {
                    continue;
                };
                if let Some(times) = known.get_mut(line).filter(|times| **times > 0) {
                    *times -= 1;
                    continue;
                }
                let reason = logged.collection.reason.as_str();
                if matches!(reason, "Explicit" | "GC_EXPLICIT") {
                    return Ok(Some((at.map(axis), *logged)));
                }
                self.before = Some((at.map(axis), *logged));
                // Skip this line in the next iteration.
                *self.known.entry(line.to_owned()).or_default() += 1;
            }
            if Instant::now() >= until {
                return Ok(None);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }
}

/// Returns the lines of a process with their times and collection events.
fn of_process(text: &str, pid: u32) -> impl Iterator<Item = (&str, Option<Stamp>, Option<Event>)> {
    text.lines().filter_map(move |row| {
        let line = parse_line(row)?;
        (line.pid == Some(pid)).then(|| (row, line.time, parse_event(&line)))
    })
}

fn axis(stamp: Stamp) -> i64 {
    // For lines without a year, only differences matter.
    stamp.ns(2024)
}
