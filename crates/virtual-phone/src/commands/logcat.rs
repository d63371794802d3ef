//! logcat: options, and following the log on the phone's clock.

use super::{Cmd, Done};
use crate::clock::{MILLI, SECOND};
use crate::logcat::{Format, LogFilter, LogLine};

/// Interval in which a follower checks for lines without a notification, in nanoseconds.
const LOOK_EVERY: u64 = 500 * MILLI;

/// First line to show.
#[derive(Debug, Clone, Copy, PartialEq)]
enum From {
    Start,
    /// The last N lines.
    Last(usize),
    /// Wall clock in nanoseconds since the epoch.
    Time(u64),
}

/// Options of the command line.
struct Options {
    filter: LogFilter,
    format: Format,
    buffers: Vec<String>,
    from: From,
    pid: Option<u32>,
    most: Option<usize>,
    dump: bool,
}

/// Parses seconds since the epoch with a fraction.
fn moment(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    let seconds = seconds.trim().parse::<u64>().ok()?;
    let digits: String = fraction
        .chars()
        .chain("000000000".chars())
        .take(9)
        .collect();
    seconds
        .checked_mul(SECOND)?
        .checked_add(digits.parse().ok()?)
}

fn options(cmd: &Cmd) -> Result<Options, String> {
    let mut options = Options {
        filter: LogFilter::default(),
        format: Format::default(),
        buffers: Vec::new(),
        from: From::Start,
        pid: None,
        most: None,
        dump: false,
    };
    let args = cmd.args();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let (flag, inline) = match arg.split_once('=') {
            Some((flag, value)) if flag.starts_with("--") => (flag, Some(value.to_owned())),
            _ => (arg.as_str(), None),
        };
        let mut value = || {
            let next = inline.clone().or_else(|| args.next().cloned());
            next.ok_or_else(|| format!("logcat: option requires an argument -- '{flag}'"))
        };
        match flag {
            "-d" => options.dump = true,
            "-s" => options.filter.silence(),
            "-t" | "-T" => {
                let text = value()?;
                options.dump |= flag == "-t";
                options.from = match (text.parse::<usize>(), moment(&text)) {
                    (Ok(count), _) => From::Last(count),
                    (_, Some(at)) => From::Time(at),
                    _ => return Err(format!("logcat: {flag} \"{text}\" not in time format")),
                };
            }
            "-v" => {
                let word = value()?;
                match word.as_str() {
                    "threadtime" => {}
                    "epoch" => options.format.epoch = true,
                    _ => return Err(format!("Invalid parameter \"{word}\" to -v")),
                }
            }
            "-b" => {
                let words = value()?;
                options.buffers.extend(words.split(',').map(str::to_owned));
            }
            "--pid" => {
                let text = value()?;
                let pid = text.parse::<u32>().ok().filter(|p| *p > 0);
                options.pid = Some(pid.ok_or_else(|| format!("logcat: --pid {text}: bad pid"))?);
            }
            "-m" => options.most = value()?.parse().ok(),
            a if a.starts_with('-') && a.len() > 1 => {
                return Err(format!("logcat: unrecognized option '{a}'"));
            }
            _ => {
                if !options.filter.add(arg) {
                    return Err(format!("Invalid filter expression '{arg}'"));
                }
            }
        }
    }
    Ok(options)
}

impl Options {
    fn passes(&self, line: &LogLine) -> bool {
        let buffer = line.buffer();
        let wanted = self.buffers.is_empty()
            || self
                .buffers
                .iter()
                .any(|b| b == buffer || b == "all" || b == "default");
        wanted
            && self.filter.passes(line)
            && self.pid.is_none_or(|p| p == line.pid)
            && match self.from {
                From::Time(at) => line.time >= at,
                _ => true,
            }
    }
}

pub(super) fn logcat(cmd: &mut Cmd) -> Done {
    let options = match options(cmd) {
        Ok(options) => options,
        Err(why) => {
            cmd.err(&format!("{why}\n"))?;
            return Ok(1);
        }
    };
    let kernel = cmd.kernel.clone();
    let mut divided = false;
    let mut seen = 0;
    let mut left = options.most;
    let mut last = match options.from {
        From::Last(count) => Some(count),
        _ => None,
    };
    loop {
        let (mut lines, by_now) = {
            let mut state = kernel.state();
            kernel.memory.log_collections(&mut state);
            state.log.after(seen)
        };
        seen = by_now;
        lines.retain(|l| options.passes(l));
        if let Some(count) = last.take() {
            lines.drain(..lines.len().saturating_sub(count));
        }
        if let Some(left) = &mut left {
            lines.truncate(*left);
            *left -= lines.len();
        }
        let mut text = String::new();
        if !divided {
            divided = true;
            let buffer = options.buffers.first().map_or("main", String::as_str);
            let buffer = if buffer == "all" { "main" } else { buffer };
            text.push_str(&format!("--------- beginning of {buffer}\n"));
        }
        text.extend(lines.iter().map(|l| options.format.line(l)));
        cmd.out(&text)?;
        if options.dump || left == Some(0) {
            return Ok(0);
        }
        let more = || (kernel.state().log.added() > seen).then_some(());
        let soon = kernel.clock.boot() + LOOK_EVERY;
        kernel.block(cmd.pid, Some(soon), more)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_in_seconds_with_a_fraction() {
        let at = 1_700_000_000 * SECOND + 123 * MILLI;
        assert_eq!(moment("1700000000.123"), Some(at));
        assert_eq!(moment("1700000000"), None);
        assert_eq!(moment("11-14 22:13:20.123"), None);
    }
}
