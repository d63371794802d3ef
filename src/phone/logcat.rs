//! The phone's log: lines with time, process, level and tag, and the filters and formats of
//! `logcat`.

use super::process::Pid;

/// Lines that the log keeps.
const CAPACITY: usize = 20_000;

/// One line.
#[derive(Debug, Clone)]
pub(crate) struct LogLine {
    /// Wall clock, nanoseconds since the epoch.
    pub(crate) time: u64,
    pub(crate) pid: Pid,
    pub(crate) level: char,
    pub(crate) tag: String,
    pub(crate) text: String,
}

/// The log.
#[derive(Default)]
pub(crate) struct Log {
    lines: std::collections::VecDeque<LogLine>,
    /// Lines ever added: a follower asks for those after the ones it saw.
    added: u64,
}

impl Log {
    pub(crate) fn add(&mut self, time: u64, pid: Pid, level: char, tag: &str, text: &str) {
        if self.lines.len() == CAPACITY {
            self.lines.pop_front();
        }
        self.added += 1;
        self.lines.push_back(LogLine {
            time,
            pid,
            level,
            tag: tag.to_owned(),
            text: text.to_owned(),
        });
    }

    pub(crate) fn clear(&mut self) {
        self.lines.clear();
    }

    /// The lines after the first `seen` ever added, and how many there were by now.
    pub(crate) fn after(&self, seen: u64) -> (Vec<LogLine>, u64) {
        let fresh = (self.added - seen.min(self.added)) as usize;
        let skip = self.lines.len().saturating_sub(fresh);
        (self.lines.iter().skip(skip).cloned().collect(), self.added)
    }
}

/// Order of the levels' letters; `S` silences.
const LEVELS: &str = "VDIWEFS";

/// `TAG:LEVEL` filters; a tag without a rule of its own follows `*`.
#[derive(Debug, Clone, Default)]
pub(crate) struct LogFilter {
    rules: Vec<(String, char)>,
    silent: bool,
}

impl LogFilter {
    /// `-s`: nothing but what the rules name.
    pub(crate) fn silence(&mut self) {
        self.silent = true;
    }

    /// One filter expression; false where it is none.
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

    /// Whether a line passes.
    pub(crate) fn passes(&self, line: &LogLine) -> bool {
        let rule = self.rules.iter().rev().find(|(t, _)| *t == line.tag);
        let rule = rule.or_else(|| self.rules.iter().rev().find(|(t, _)| t == "*"));
        let least = rule.map_or(if self.silent { 'S' } else { 'V' }, |(_, l)| *l);
        let rank = |c: char| LEVELS.find(c).unwrap_or(0);
        least != 'S' && rank(line.level) >= rank(least)
    }
}

impl LogLine {
    /// The line in one of logcat's formats.
    pub(crate) fn format(&self, format: &str) -> String {
        let (time, pid) = (timestamp(self.time), self.pid);
        let LogLine {
            level, tag, text, ..
        } = self;
        match format {
            "brief" => format!("{level}/{tag:<8}({pid:>5}): {text}"),
            "process" => format!("{level}({pid:>5}) {text}  ({tag})"),
            "tag" => format!("{level}/{tag:<8}: {text}"),
            "raw" => text.clone(),
            "time" => format!("{time} {level}/{tag:<8}({pid:>5}): {text}"),
            "epoch" => format!(
                "{:>19}.{:03} {pid:>5} {pid:>5} {level} {tag:<8}: {text}",
                self.time / 1_000_000_000,
                self.time / 1_000_000 % 1_000
            ),
            _ => format!("{time} {pid:>5} {pid:>5} {level} {tag:<8}: {text}"),
        }
    }
}

/// `MM-DD HH:MM:SS.mmm`.
pub(crate) fn timestamp(real_ns: u64) -> String {
    let time = time::OffsetDateTime::from_unix_timestamp_nanos(i128::from(real_ns))
        .unwrap_or(time::OffsetDateTime::UNIX_EPOCH);
    format!(
        "{:02}-{:02} {:02}:{:02}:{:02}.{:03}",
        u8::from(time.month()),
        time.day(),
        time.hour(),
        time.minute(),
        time.second(),
        time.millisecond()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_follow_the_tag_then_the_star() {
        let line = |tag: &str, level| LogLine {
            time: 0,
            pid: 7,
            level,
            tag: tag.to_owned(),
            text: "t".to_owned(),
        };
        let mut only = LogFilter::default();
        only.silence();
        assert!(only.add("perfetto:*") && only.add("libc:W"));
        assert!(only.passes(&line("perfetto", 'V')));
        assert!(only.passes(&line("libc", 'E')) && !only.passes(&line("libc", 'I')));
        assert!(!only.passes(&line("other", 'F')));
        assert!(LogFilter::default().passes(&line("other", 'V')));
    }
}
