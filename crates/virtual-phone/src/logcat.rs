//! The phone's log: lines with time, process, level and tag, and the filters and formats of
//! `logcat`.

use time::OffsetDateTime;
use time::formatting::Formattable;
use time::macros::format_description;

use super::clock::{BootNs, MILLI, Now, SECOND};
use super::process::Pid;

/// Maximum number of lines in the log.
const CAPACITY: usize = 20_000;

/// One line.
#[derive(Debug, Clone)]
pub(crate) struct LogLine {
    /// Wall clock, in nanoseconds since the epoch.
    pub(crate) time: u64,
    pub(crate) boot: BootNs,
    pub(crate) pid: Pid,
    pub(crate) tid: Pid,
    pub(crate) uid: u32,
    pub(crate) level: char,
    pub(crate) tag: String,
    pub(crate) text: String,
}

impl LogLine {
    /// Returns a line of the main thread of a process (PID and UID).
    pub(crate) fn new(
        now: Now,
        (pid, uid): (Pid, u32),
        level: char,
        tag: &str,
        text: impl Into<String>,
    ) -> LogLine {
        LogLine {
            time: now.real,
            boot: now.boot,
            pid,
            tid: pid,
            uid,
            level,
            tag: tag.to_owned(),
            text: text.into(),
        }
    }

    /// Formats the line as `threadtime` does, including its newline; with times in seconds since
    /// 1970, or as dates.
    pub(crate) fn formatted(&self, epoch: bool) -> String {
        let time = match epoch {
            true => format!(
                "{:>19}.{:03}",
                self.time / SECOND,
                self.time % SECOND / MILLI
            ),
            false => timestamp(self.time),
        };
        let LogLine {
            pid,
            tid,
            level,
            tag,
            text,
            ..
        } = self;
        format!("{time} {pid:>5} {tid:>5} {level} {tag:<8}: {text}\n")
    }

    /// Returns the buffer that contains the line.
    pub(crate) fn buffer(&self) -> &'static str {
        match (self.tag.as_str(), self.uid) {
            ("AndroidRuntime", _) => "crash",
            (_, 1_000) => "system",
            _ => "main",
        }
    }
}

#[derive(Default)]
pub(crate) struct Log {
    /// Lines in the order of their times, each with its number.
    lines: std::collections::VecDeque<(u64, LogLine)>,
    /// Number of lines ever added; followers request the lines after those they have read.
    added: u64,
}

impl Log {
    /// Inserts a line by its time: some lines are written slightly late.
    pub(crate) fn insert(&mut self, line: LogLine) {
        if self.lines.len() == CAPACITY {
            self.lines.pop_front();
        }
        self.added += 1;
        let mut at = self.lines.len();
        // Order by the boot clock: the wall clock might have jumped.
        while at > 0 && self.lines[at - 1].1.boot > line.boot {
            at -= 1;
        }
        self.lines.insert(at, (self.added, line));
    }

    /// Inserts a line of a process (PID and UID) at a time (boot and wall clock).
    pub(crate) fn add(
        &mut self,
        now: Now,
        from: (Pid, u32),
        level: char,
        tag: &str,
        text: impl Into<String>,
    ) {
        self.insert(LogLine::new(now, from, level, tag, text));
    }

    /// Returns the lines after the first `seen` ever added, by time, and the number added so far.
    pub(crate) fn after(&self, seen: u64) -> (Vec<LogLine>, u64) {
        let fresh = self.lines.iter().filter(|(number, _)| *number > seen);
        (fresh.map(|(_, line)| line.clone()).collect(), self.added)
    }

    /// Returns the number of lines ever added.
    pub(crate) fn added(&self) -> u64 {
        self.added
    }
}

/// Letters of the levels in order; `S` silences.
const LEVELS: &str = "VDIWEFS";

/// `TAG:LEVEL` filters; a tag without its own rule follows `*`.
#[derive(Debug, Clone, Default)]
pub(crate) struct LogFilter {
    rules: Vec<(String, char)>,
    silent: bool,
}

impl LogFilter {
    /// Applies `-s`: only lines that match a rule pass.
    pub(crate) fn silence(&mut self) {
        self.silent = true;
    }

    /// Adds a filter expression; returns false if it is invalid.
    pub(crate) fn add(&mut self, text: &str) -> bool {
        let (tag, level) = match text.rsplit_once(':') {
            Some((tag, "*")) => (tag, 'V'),
            Some((tag, level)) => match level.chars().next() {
                Some(c) if LEVELS.contains(c.to_ascii_uppercase()) => (tag, c.to_ascii_uppercase()),
                _ => return false,
            },
            None => (text, 'V'),
        };
        self.rules.push((tag.to_owned(), level));
        true
    }

    /// Returns whether a line passes.
    pub(crate) fn passes(&self, line: &LogLine) -> bool {
        let rule = self.rules.iter().rev().find(|(t, _)| *t == line.tag);
        let rule = rule.or_else(|| self.rules.iter().rev().find(|(t, _)| t == "*"));
        let least = rule.map_or(if self.silent { 'S' } else { 'V' }, |(_, l)| *l);
        let rank = |c: char| LEVELS.find(c).unwrap_or(0);
        least != 'S' && rank(line.level) >= rank(least)
    }
}

/// Formats a time in nanoseconds since 1970.
pub(crate) fn date(real_ns: u64, format: &(impl Formattable + ?Sized)) -> String {
    let time = OffsetDateTime::from_unix_timestamp_nanos(i128::from(real_ns));
    let time = time.unwrap_or(OffsetDateTime::UNIX_EPOCH);
    time.format(format).unwrap_or_default()
}

/// Formats `MM-DD HH:MM:SS.mmm`.
pub(crate) fn timestamp(real_ns: u64) -> String {
    let format = format_description!("[month]-[day] [hour]:[minute]:[second].[subsecond digits:3]");
    date(real_ns, format)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(tag: &str, level: char) -> LogLine {
        LogLine {
            time: 1_700_000_000_123_456_789,
            boot: 77_001_000_000,
            pid: 7,
            tid: 9,
            uid: 10_234,
            level,
            tag: tag.to_owned(),
            text: "t".to_owned(),
        }
    }

    #[test]
    fn filters_follow_the_tag_then_the_star() {
        let mut only = LogFilter::default();
        only.silence();
        assert!(only.add("perfetto:*") && only.add("libc:W"));
        assert!(only.passes(&line("perfetto", 'V')));
        assert!(only.passes(&line("libc", 'E')) && !only.passes(&line("libc", 'I')));
        assert!(!only.passes(&line("other", 'F')));
        assert!(LogFilter::default().passes(&line("other", 'V')));
    }

    #[test]
    fn formats_are_logcats() {
        for (epoch, expected) in [
            (false, "11-14 22:13:20.123     7     9 I tag     : t\n"),
            (true, "         1700000000.123     7     9 I tag     : t\n"),
        ] {
            assert_eq!(line("tag", 'I').formatted(epoch), expected);
        }
    }

    #[test]
    fn a_late_line_lies_where_its_time_is_and_a_follower_sees_it() {
        let mut log = Log::default();
        for boot in [5, 9] {
            log.insert(LogLine {
                boot,
                ..line("a", 'I')
            });
        }
        let (_, seen) = log.after(0);
        log.insert(LogLine {
            boot: 7,
            ..line("late", 'I')
        });
        let tags: Vec<String> = log.after(0).0.into_iter().map(|l| l.tag).collect();
        assert_eq!(tags, ["a", "late", "a"]);
        assert_eq!(log.after(seen).0.len(), 1);
    }
}
