//! `dumpsys procstats [--hours N] [PACKAGE]`: minimum, average and maximum memory of processes over
//! the last hours, from memory accounting at those times.

use super::{Cmd, Halt};
use crate::clock::SECOND;
use crate::packages;
use crate::process::{Process, Role};

/// Maximum number of samples per process, evenly over the time.
const SAMPLES: u64 = 6;
/// Minimum distance between two samples of a process in nanoseconds.
const APART: u64 = 5 * SECOND;
/// Default number of hours.
const HOURS: u64 = 3;

pub(super) fn procstats(cmd: &Cmd, rest: &[String]) -> Result<(), Halt> {
    let mut hours = HOURS;
    let mut wanted = None;
    let mut args = rest.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--hours" => {
                let number = args.next().and_then(|n| n.parse::<u32>().ok());
                let Some(number) = number else {
                    return cmd.out("Error: argument required for --hours\n");
                };
                hours = u64::from(number);
            }
            "-a" | "-s" | "--current" | "--full-details" => {}
            option if option.starts_with('-') => {
                return cmd.out(&format!("Unknown option: {option}\n"));
            }
            package => wanted = Some(package),
        }
    }
    let now = cmd.kernel.clock.boot();
    let from = now.saturating_sub(hours.saturating_mul(3_600).saturating_mul(SECOND));
    let state = cmd.kernel.state();
    let of_package = |name: &str| wanted.is_none_or(|wanted| wanted == name);
    let processes: Vec<Process> = state
        .processes
        .iter()
        .filter(|p| matches!(&p.role, Role::App { package, .. } if of_package(package)))
        .cloned()
        .collect();
    drop(state);
    let mut out = format!("AGGREGATED OVER LAST {hours} HOURS:\nPer-Package Stats:\n");
    for process in &processes {
        // Samples start after the phone appeared.
        let begin = from.max(process.started).max(cmd.kernel.clock.appeared());
        let samples = samples(cmd, process, begin, now);
        let state = cmd.kernel.state();
        let version = packages::of_process(&state.packages, process).map_or(0, |p| p.version);
        drop(state);
        out.push_str(&format!(
            "  * {} / {} / v{version}:\n",
            process.name(),
            crate::process::user_name(process.uid).replace('_', "")
        ));
        let label = match process.oom_score_adj {
            i32::MIN..=0 => "Top",
            1..=250 => "Imp Fg",
            251..=599 => "Service",
            600..=699 => "(Home)",
            700..=899 => "(Last Act)",
            _ => "(Cached)",
        };
        let told = told(&samples);
        for label in ["TOTAL", label] {
            out.push_str(&format!("{label:>16}: 100% {told}\n"));
        }
    }
    let screen = if cmd.kernel.state().screen_on {
        "SOn "
    } else {
        "SOff"
    };
    let ran = duration(now - from.max(cmd.kernel.clock.appeared()));
    out.push_str(&format!(
        "\nRun time Stats:\n  {screen}/Norm: {ran}\n     TOTAL: {ran}\n"
    ));
    cmd.out(&out)
}

/// Returns Pss, Uss and Rss at several times, in kB.
fn samples(cmd: &Cmd, process: &Process, from: u64, to: u64) -> Vec<[u64; 3]> {
    let count = ((to - from) / APART + 1).min(SAMPLES);
    let moments = (1..=count).map(|n| from + (to - from) * n / count);
    let at = |moment| {
        // Other threads can run between two samples.
        let state = cmd.kernel.state();
        let ledger = cmd.kernel.memory.ledger(&state, process, moment)?;
        let sum = ledger.rows().sum();
        Some([sum.pages.pss, sum.private(), sum.rss()])
    };
    moments.filter_map(at).collect()
}

/// Formats `(38MB-40MB-43MB/30MB-31MB-33MB/90MB-92MB-95MB over 6)`.
fn told(samples: &[[u64; 3]]) -> String {
    if samples.is_empty() {
        return String::new();
    }
    let column = |n: usize| {
        let all = || samples.iter().map(|sample| sample[n]);
        let mean = all().sum::<u64>() / samples.len() as u64;
        let three = [all().min().unwrap_or(0), mean, all().max().unwrap_or(0)];
        three.map(size).join("-")
    };
    let columns = [0, 1, 2].map(column);
    format!("({} over {})", columns.join("/"), samples.len())
}

/// Formats a size as the framework does: three digits, or one after the point.
fn size(kb: u64) -> String {
    const UNITS: [&str; 3] = ["KB", "MB", "GB"];
    let (mut value, mut unit) = (kb as f64, 0);
    while value > 900.0 && unit + 1 < UNITS.len() {
        value /= 1_024.0;
        unit += 1;
    }
    let digits = match value {
        v if v < 1.0 => 2,
        v if v < 10.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$}{}", UNITS[unit])
}

/// Formats `+1h2m3s`.
fn duration(ns: u64) -> String {
    let seconds = ns / SECOND;
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    match (hours, minutes) {
        (0, 0) => format!("+{seconds}s"),
        (0, _) => format!("+{minutes}m{}s", seconds % 60),
        _ => format!("+{hours}h{minutes}m{}s", seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_samples_are_the_frameworks() {
        assert_eq!(
            [size(0), size(512), size(9_400)],
            ["0.00KB", "512KB", "9.2MB"]
        );
        assert_eq!(size(40 << 10), "40MB");
        let two = [[10 << 10, 8 << 10, 90 << 10], [20 << 10, 9 << 10, 92 << 10]];
        assert_eq!(
            told(&two),
            "(10MB-15MB-20MB/8.0MB-8.5MB-9.0MB/90MB-91MB-92MB over 2)"
        );
        assert_eq!(duration(3_723 * SECOND), "+1h2m3s");
    }
}
