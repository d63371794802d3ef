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
    clear: bool,
}

/// Parses `MM-DD hh:mm:ss.mmm` of this year, `YYYY-MM-DD …`, or seconds since the epoch.
fn moment(text: &str, now: u64) -> Option<u64> {
    if let Some((seconds, fraction)) = text.split_once('.')
        && let Ok(seconds) = seconds.trim().parse::<u64>()
    {
        let digits: String = fraction
            .chars()
            .chain("000000000".chars())
            .take(9)
            .collect();
        return seconds
            .checked_mul(SECOND)?
            .checked_add(digits.parse().ok()?);
    }
    let (date, clock) = text.trim().split_once(' ')?;
    let year = time::OffsetDateTime::from_unix_timestamp((now / SECOND) as i64)
        .ok()?
        .year();
    let date: Vec<i32> = date
        .split('-')
        .map(|p| p.parse().ok())
        .collect::<Option<_>>()?;
    let (year, month, day) = match date[..] {
        [month, day] => (year, month, day),
        [year, month, day] => (year, month, day),
        _ => return None,
    };
    let month = time::Month::try_from(u8::try_from(month).ok()?).ok()?;
    let date = time::Date::from_calendar_date(year, month, u8::try_from(day).ok()?).ok()?;
    let mut parts = clock.split(':');
    let hour = parts.next()?.parse().ok()?;
    let minute = parts.next()?.parse().ok()?;
    let (second, fraction) = match parts.next() {
        None => (0, "0"),
        Some(rest) => {
            let (whole, fraction) = rest.split_once('.').unwrap_or((rest, "0"));
            (whole.parse().ok()?, fraction)
        }
    };
    let digits: String = fraction
        .chars()
        .chain("000000000".chars())
        .take(9)
        .collect();
    let time = time::Time::from_hms_nano(hour, minute, second, digits.parse().ok()?).ok()?;
    let at = time::PrimitiveDateTime::new(date, time).assume_utc();
    u64::try_from(at.unix_timestamp_nanos()).ok()
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
        clear: false,
    };
    let args = cmd.args();
    let mut args = args.iter();
    let now = cmd.kernel.clock.real();
    while let Some(arg) = args.next() {
        // `--name=value`, `--name value`, `-nvalue`, `-n value`.
        let (flag, inline) = match arg.as_str() {
            long if long.starts_with("--") => match long.split_once('=') {
                Some((flag, value)) => (flag, Some(value.to_owned())),
                None => (long, None),
            },
            short if short.starts_with('-') && short.len() > 2 && short.is_char_boundary(2) => {
                let takes = ["-v", "-b", "-t", "-T", "-m"];
                match takes.contains(&&short[..2]) {
                    true => (&short[..2], Some(short[2..].to_owned())),
                    false => (short, None),
                }
            }
            other => (other, None),
        };
        let mut value = || {
            let next = inline.clone().or_else(|| args.next().cloned());
            next.ok_or_else(|| format!("logcat: option requires an argument -- '{flag}'"))
        };
        match flag {
            "-d" | "-D" | "--dividers" => options.dump |= flag == "-d",
            "-c" | "--clear" => options.clear = true,
            "-s" => options.filter.silence(),
            "-S" | "--statistics" | "-L" | "--last" | "--wrap" => options.dump = true,
            "-t" | "-T" => {
                let text = value()?;
                options.dump |= flag == "-t";
                options.from = match (text.parse::<usize>(), moment(&text, now)) {
                    (Ok(count), _) => From::Last(count),
                    (_, Some(at)) => From::Time(at),
                    _ => return Err(format!("logcat: {flag} \"{text}\" not in time format")),
                };
            }
            "-v" | "--format" => {
                for word in value()?.split([',', ' ']).filter(|w| !w.is_empty()) {
                    if !options.format.set(word) {
                        return Err(format!("Invalid parameter \"{word}\" to -v"));
                    }
                }
            }
            "-b" | "--buffer" => {
                let words = value()?;
                options.buffers.extend(words.split(',').map(str::to_owned));
            }
            "--pid" => {
                let text = value()?;
                let pid = text.parse::<u32>().ok().filter(|p| *p > 0);
                options.pid = Some(pid.ok_or_else(|| format!("logcat: --pid {text}: bad pid"))?);
            }
            "-m" | "--max-count" => options.most = value()?.parse().ok(),
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
    if options.clear {
        let mut state = kernel.state();
        // Lines due by now would have been written before the clearing.
        kernel.memory.log_collections(&mut state);
        state.log.clear();
        return Ok(0);
    }
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
    fn moments_are_read_in_each_form() {
        let at = 1_700_000_000 * SECOND + 123 * MILLI;
        assert_eq!(moment("1700000000.123", 0), Some(at));
        assert_eq!(moment("11-14 22:13:20.123", at), Some(at));
        assert_eq!(moment("2023-11-14 22:13:20.123", 0), Some(at));
        assert_eq!(moment("yesterday", 0), None);
        assert_eq!(moment("13-40 00:00:00.000", 0), None);
    }
}
