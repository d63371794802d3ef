//! logcat: options, and following the log on the phone's clock.

use super::{Cmd, Done, Halt, refuse};
use crate::clock::{MILLI, SECOND};
use crate::logcat::{LogFilter, LogLine};

/// Interval in which a follower checks for lines without a notification, in nanoseconds.
const LOOK_EVERY: u64 = 500 * MILLI;

/// Options of the command line.
#[derive(Default)]
struct Options {
    filter: LogFilter,
    epoch: bool,
    buffers: Vec<String>,
    /// Wall clock of the first line, in nanoseconds since the epoch.
    from: u64,
    /// Number of lines at most: the last ones.
    last: Option<usize>,
    pid: Option<u32>,
    dump: bool,
}

/// Parses seconds since the epoch with a fraction.
fn moment(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    let seconds = seconds.trim().parse::<u64>().ok()?;
    let digits = format!("{fraction:0<9.9}").parse::<u64>().ok()?;
    seconds.checked_mul(SECOND)?.checked_add(digits)
}

fn options(cmd: &Cmd) -> Result<Options, Halt> {
    let args = cmd.options("-d -s -t: -T: -v: -b: --pid:")?;
    let mut options = Options {
        dump: args.has("-d") || args.has("-t"),
        buffers: args.values("-b").map(str::to_owned).collect(),
        ..Options::default()
    };
    if args.has("-s") {
        options.filter.silence();
    }
    for text in args.values("-t").chain(args.values("-T")) {
        match (text.parse::<usize>(), moment(text)) {
            (Ok(count), _) => options.last = Some(count),
            (_, Some(at)) => options.from = at,
            _ => return refuse(1, format!("logcat: \"{text}\" not in time format")),
        }
    }
    for word in args.values("-v") {
        match word {
            "threadtime" => {}
            "epoch" => options.epoch = true,
            _ => return refuse(1, format!("Invalid parameter \"{word}\" to -v")),
        }
    }
    if let Some(text) = args.value("--pid") {
        let pid = text.parse().ok().filter(|pid| *pid > 0);
        let bad = || Halt::refused(1, format!("logcat: --pid {text}: bad pid"));
        options.pid = Some(pid.ok_or_else(bad)?);
    }
    for word in args.rest {
        if !options.filter.add(&word) {
            return refuse(1, format!("Invalid filter expression '{word}'"));
        }
    }
    Ok(options)
}

impl Options {
    fn passes(&self, line: &LogLine) -> bool {
        let buffer = line.buffer();
        (self.buffers.is_empty() || self.buffers.iter().any(|b| b == buffer))
            && self.filter.passes(line)
            && self.pid.is_none_or(|p| p == line.pid)
            && line.time >= self.from
    }
}

pub(super) fn logcat(cmd: &mut Cmd) -> Done {
    let mut options = options(cmd)?;
    let kernel = cmd.kernel.clone();
    let buffer = options.buffers.first().map_or("main", String::as_str);
    let mut text = format!("--------- beginning of {buffer}\n");
    let mut seen = 0;
    loop {
        let (mut lines, by_now) = {
            let mut state = kernel.state();
            kernel.memory.log_collections(&mut state);
            state.log.after(seen)
        };
        seen = by_now;
        lines.retain(|l| options.passes(l));
        if let Some(count) = options.last.take() {
            lines.drain(..lines.len().saturating_sub(count));
        }
        text.extend(lines.iter().map(|l| l.formatted(options.epoch)));
        cmd.out(&std::mem::take(&mut text))?;
        if options.dump {
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
