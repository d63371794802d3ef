//! ART's log lines about collections: which, when, and in which words.

use super::accounts::Memory;
use super::java::{Collection, has_java};
use crate::clock::{BootNs, Now};
use crate::history::{COLLECTION_EVERY, Event, Request};
use crate::logcat::LogLine;
use crate::process::{Pid, Process};
use crate::state::State;

/// Maximum number of characters of a process's name in the log.
const NAME: usize = 15;

/// Returns the log tag of a process's runtime: the end of a package's name, one character shorter
/// than the limit.
pub(crate) fn log_tag(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let package = name.contains('.') && !name.contains('@');
    let end = match package && letters.len() >= NAME {
        true => &letters[letters.len() - NAME..],
        false => &letters[..],
    };
    end.iter().take(NAME - 1).collect()
}

/// Formats a size as ART does: whole units, up to ten thousand of the smaller one.
fn size(bytes: u64) -> String {
    const KB: u64 = 1 << 10;
    let (unit, name) = match bytes {
        ..10_240 => (1, "B"),
        10_240..10_485_760 => (KB, "KB"),
        10_485_760..10_737_418_240 => (KB * KB, "MB"),
        _ => (KB * KB * KB, "GB"),
    };
    format!("{}{name}", bytes / unit)
}

/// Formats a duration as ART does: three digits of the unit's fraction, none for whole values.
fn duration(ns: u64) -> String {
    let (unit, name) = match ns {
        0 => return "0".to_owned(),
        1..1_000 => (1, "ns"),
        1_000..1_000_000 => (1_000, "us"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    let (whole, rest) = (ns / unit, ns % unit);
    match rest {
        0 => format!("{whole}{name}"),
        _ => format!("{whole}.{:03}{name}", rest * 1_000 / unit),
    }
}

/// Formats the line about a collection; Android 14 and later do not count objects.
fn line(made: &Collection, android: u32) -> String {
    let micros = |ns: u64| duration(ns / 1_000 * 1_000);
    let freed = match android {
        ..=13 => format!(
            "{}({}) AllocSpace objects",
            made.freed_objects,
            size(made.freed_bytes)
        ),
        _ => format!("{} AllocSpace bytes", size(made.freed_bytes)),
    };
    let pauses: Vec<String> = made.pauses.iter().map(|p| micros(*p)).collect();
    let free = (made.total - made.live.min(made.total)) * 100 / made.total.max(1);
    format!(
        "{} {} GC freed {freed}, {}({}) LOS objects, {free}% free, {}/{}, paused {} total {}",
        made.cause,
        made.collector,
        made.freed_large_objects,
        size(made.freed_large_bytes),
        size(made.live),
        size(made.total),
        pauses.join(","),
        micros(made.duration())
    )
}

impl Memory {
    /// Handles SIGUSR1 in a process with a Java heap, which then collects.
    pub(crate) fn on_signal(&self, state: &mut State, process: &Process, now: BootNs) {
        // None of its threads could handle the signal.
        if process.frozen || process.stopped {
            return;
        }
        let text = match self.spec.android {
            10 => "SIGUSR1 forcing GC (no HPROF)",
            _ => "SIGUSR1 forcing GC (no HPROF) and profile save",
        };
        let event = Event::Collection(Request::Explicit);
        self.note(state, process, now, event);
        let signal_catcher = process.pid + 3;
        let line = self.line(process, signal_catcher, now, text.to_owned());
        state.log.insert(line);
    }

    /// Returns a line of a thread of a process's runtime.
    fn line(&self, process: &Process, tid: Pid, boot: BootNs, text: String) -> LogLine {
        let real = self.clock.at(boot).real;
        let (from, tag) = ((process.pid, process.uid), log_tag(process.name()));
        LogLine {
            tid,
            ..LogLine::new(Now { boot, real }, from, 'I', &tag, text)
        }
    }

    /// Writes the due lines about collections to the log.
    pub(crate) fn log_collections(&self, state: &mut State) {
        let now = self.clock.boot();
        let mut lines = Vec::new();
        for process in state.processes.select(has_java) {
            // A user might notice pauses of the app in front.
            let noticed = process.oom_score_adj == 0;
            let from = match self.logged(&process) {
                Some(from) => from,
                None if noticed => process.started.max(self.clock.appeared()),
                None => continue,
            };
            let due = self.with(state, &process, |account| {
                let numbers = |at| account.history.awake(at) / COLLECTION_EVERY;
                let asked = account
                    .history
                    .last_request(now)
                    .is_some_and(|at| at > from);
                asked || (noticed && numbers(from) < numbers(now))
            });
            if due {
                let opened = self.open(state, &process, now);
                let made = opened.java().map(|heap| heap.logged(from, now, noticed));
                for collection in made.unwrap_or_default() {
                    // ART logs a collection at its end.
                    if collection.ends > now {
                        self.set_logged(&process, collection.marks.saturating_sub(1));
                        break;
                    }
                    let is_daemon = collection.cause == "Background";
                    let thread = process.pid + if is_daemon { 9 } else { 0 };
                    let text = line(&collection, self.spec.android);
                    lines.push(self.line(&process, thread, collection.ends, text));
                    self.set_logged(&process, collection.marks);
                }
            } else {
                self.set_logged(&process, now);
            }
        }
        for line in lines {
            state.log.insert(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_durations_and_tags_are_arts() {
        assert_eq!(
            [size(10_239), size(10_240), size(10 << 20)],
            ["10239B", "10KB", "10MB"]
        );
        assert_eq!(size(5_741 << 10), "5741KB");
        let durations = [0, 94_000, 1_230_000, 67_216_000, 12_500_000, 1_008_000_000];
        let words = ["0", "94us", "1.230ms", "67.216ms", "12.500ms", "1.008s"];
        assert_eq!(durations.map(duration), words);
        assert_eq!(log_tag("com.example.myapplication"), "e.myapplicatio");
        assert_eq!(log_tag("system_server"), "system_server");
        let made = Collection {
            begins: 5,
            marks: 61_537_128,
            ends: 61_537_128,
            pauses: vec![620_999, 6_773_000],
            cause: "Background",
            collector: "concurrent mark compact",
            freed_objects: 31_642,
            freed_bytes: 10 << 20,
            freed_large_objects: 3,
            freed_large_bytes: 60 << 10,
            before: 13_000_000,
            live: 2_870 << 10,
            total: 5_741 << 10,
            long: true,
        };
        assert_eq!(
            line(&made, 14),
            "Background concurrent mark compact GC freed 10MB AllocSpace bytes, 3(60KB) LOS objects, \
             50% free, 2870KB/5741KB, paused 620us,6.773ms total 61.537ms"
        );
        assert!(line(&made, 13).contains("GC freed 31642(10MB) AllocSpace objects, 3(60KB)"));
    }
}
