//! A collection that is asked for, by the way the phone permits: a signal as root or by
//! `run-as`, else `dumpsys meminfo`, for which an app collects before it counts its objects.
//! A signal ends a process that has no Java runtime: who gets one is looked at in the same
//! breath.

use std::collections::HashMap;
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use super::GcError;
use super::phone::{self, Target};
use crate::device::{Command, Device, Output};
use crate::eligibility::{DeviceFacts, Root};
use crate::memory::gc::{Event, Logged, Stamp, parse_event, parse_line};
use crate::timeline::Collection;
use crate::untrusted::sanitize_bytes;

/// Time allowed for a signal to be sent.
const QUICK: Duration = Duration::from_secs(15);
/// Time allowed for meminfo: the app alone gets five seconds.
const MEMINFO: Duration = Duration::from_secs(60);
/// So long the log is watched.
const WATCHED: Duration = Duration::from_secs(15);

/// How a process was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GcTrigger {
    /// A signal sent as root.
    Root,
    /// A signal sent as the app itself, which is debuggable.
    RunAs,
    /// `dumpsys meminfo`: the app collects before it counts.
    Meminfo,
}

impl GcTrigger {
    /// In words, behind "asked to collect".
    pub fn words(self) -> &'static str {
        match self {
            GcTrigger::Root => "by a signal sent as root",
            GcTrigger::RunAs => "by a signal sent through run-as",
            GcTrigger::Meminfo => "by `dumpsys meminfo`, for which apps collect",
        }
    }
}

/// What was live after a collection, as the log says.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Measured {
    /// Bytes live, at least.
    pub live: u64,
    /// What the unit hides.
    pub step: u64,
    /// The heap's size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// How long before the other, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds_before: Option<f64>,
}

/// A collection that was asked for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Collected {
    /// The process.
    #[serde(flatten)]
    pub target: Target,
    /// How it was asked.
    #[serde(rename = "way")]
    pub trigger: GcTrigger,
    /// Ways that were tried before, and why they did not do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<(GcTrigger, String)>,
    /// After the last collection that was logged before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Measured>,
    /// After this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Measured>,
    /// The collection.
    pub collection: Collection,
}

/// Looks who `$1` is: a child of a zygote, of the name `$2`. The zygote alone would do, but a
/// number is somebody else's soon.
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

/// Has a process collect, and waits for its word in the log.
///
/// # Errors
/// Where it has no Java heap, is frozen, cannot be asked, or says nothing.
pub async fn collect_now(
    device: &Device,
    facts: &DeviceFacts,
    target: &Target,
) -> Result<Collected, GcError> {
    let (name, pid) = (target.name.clone(), target.pid);
    if !target.has_art {
        return Err(GcError::NoArt { name, pid });
    }
    if target.frozen {
        return Err(GcError::Frozen { name, pid });
    }
    let mut log = Watched::begin(device, facts, pid).await?;
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
        return Err(GcError::NotAsked { name, pid, why });
    };
    let Some((at, logged)) = log.explicit(device, facts, pid).await? else {
        return Err(GcError::NothingLogged {
            name,
            pid,
            way: trigger.words(),
            seconds: WATCHED.as_secs(),
        });
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

/// Asks; in the inner result, why that way does not do.
async fn ask(
    device: &Device,
    facts: &DeviceFacts,
    target: &Target,
    trigger: GcTrigger,
) -> Result<Result<(), String>, GcError> {
    let pid = target.pid.to_string();
    let command = match (trigger, facts.root) {
        (GcTrigger::Root, Some(Root::Su)) => Command::script(if_app!("su root kill -10 $1")),
        (GcTrigger::Root, _) => Command::script(if_app!("kill -10 $1")),
        (GcTrigger::RunAs, _) => {
            Command::script(if_app!("run-as \"$3\" --user \"$4\" kill -10 $1"))
        }
        (GcTrigger::Meminfo, _) => Command::program("dumpsys").args(["meminfo", &pid]),
    };
    let package = target.run_as.as_deref().unwrap_or("");
    let command = match trigger {
        GcTrigger::Meminfo => command,
        // `run-as` of old phones knows no users: those of the first need none.
        GcTrigger::RunAs if target.user == 0 => {
            Command::script(if_app!("run-as \"$3\" kill -10 $1")).args([
                &pid,
                &target.name,
                package,
                "0",
            ])
        }
        GcTrigger::Root | GcTrigger::RunAs => {
            let user = target.user.to_string();
            command.args([pid.as_str(), &target.name, package, &user])
        }
    };
    let patience = if trigger == GcTrigger::Meminfo {
        MEMINFO
    } else {
        QUICK
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
    let says = line.map_or_else(|| "it failed without a word".to_owned(), sanitize_bytes);
    match trigger {
        GcTrigger::Meminfo if says.starts_with("No process found") => Err(says),
        GcTrigger::Meminfo if output.exit == 0 => Ok(()),
        // run-as of old phones ends in 0 all the same.
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

/// The log of a process from a moment on.
struct Watched {
    /// The last collection before it.
    before: Option<(Option<i64>, Logged)>,
    /// Lines that were there then, and how often.
    known: HashMap<String, usize>,
    /// Time of the last of them, as logcat takes it.
    from: Option<String>,
}

impl Watched {
    async fn begin(device: &Device, facts: &DeviceFacts, pid: u32) -> Result<Watched, GcError> {
        let text = phone::lines(device, facts, pid, None).await?;
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

    /// The first explicit collection that was not there before.
    async fn explicit(
        &mut self,
        device: &Device,
        facts: &DeviceFacts,
        pid: u32,
    ) -> Result<Option<(Option<i64>, Logged)>, GcError> {
        let until = Instant::now() + WATCHED;
        let mut pause = Duration::from_millis(100);
        loop {
            let text = phone::lines(device, facts, pid, self.from.as_deref()).await?;
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
                // Seen now: the next look passes over it.
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

/// The lines of a process with their times and what they say of collections.
fn of_process(text: &str, pid: u32) -> impl Iterator<Item = (&str, Option<Stamp>, Option<Event>)> {
    text.lines().filter_map(move |row| {
        let line = parse_line(row)?;
        (line.pid == Some(pid)).then(|| (row, line.time, parse_event(&line)))
    })
}

fn axis(stamp: Stamp) -> i64 {
    // Of lines without a year only differences count.
    stamp.ns(2024)
}
