//! Block of the live view in a terminal, redrawn in place: the figures of each process with
//! sparklines, as many as fit, followed by the cost. A process that replaced another continues its
//! sparkline after a mark.

use std::fmt::Write as _;
use std::time::Duration;

use super::super::run::{Figure, Live, Series, Watched};
use crate::commands::shared::meminfo::{change, size};
use crate::commands::shared::progress::cost;
use crate::console::sparkline::{groups, sparkline};
use crate::console::wrap::wrap;
use crate::console::{Console, Style};
use heaptap_base::units::HumanDuration;
use heaptap_base::untrusted::sanitize;

/// Columns of a figure's name, a size and its change.
const NAME: usize = 17;
const SIZE: usize = 11;
const CHANGE: usize = 13;
/// Maximum and minimum number of columns of a sparkline.
const PICTURE: usize = 64;
const LEAST_PICTURE: usize = 8;
/// Mark between the end of a process and the start of its replacement.
const SEAM: char = '┊';
/// Figures by priority. If the terminal is too low for all, the last ones are left out first.
const WEIGHT: [Figure; 11] = [
    Figure::Pss,
    Figure::Rss,
    Figure::Native,
    Figure::Java,
    Figure::Graphics,
    Figure::Swap,
    Figure::PrivateOther,
    Figure::Code,
    Figure::System,
    Figure::Stack,
    Figure::TotalRss,
];

/// Last drawn block.
pub(super) struct Block {
    lines: usize,
    every: Duration,
    parts_every: Duration,
}

impl Block {
    pub(super) fn new(every: Duration, parts_every: Duration) -> Block {
        Block {
            lines: 0,
            every,
            parts_every,
        }
    }

    /// Draws the block over the previous one in a single write, so that no partial state is
    /// visible.
    pub(super) fn draw(&mut self, console: &Console, live: &Live) {
        let (rows, columns) = console::Term::stdout().size();
        let columns = usize::from(columns.max(20));
        // The cursor is on its own line below.
        let rows = usize::from(rows).saturating_sub(1).max(4);
        let lines = self.text(console, live, columns, rows);
        let lines: Vec<String> = lines.iter().map(|line| console.cleaned(line)).collect();
        console.raw(redrawn(&lines, self.lines, columns).as_bytes());
        self.lines = lines.len();
    }

    /// Removes the block.
    pub(super) fn clear(&mut self, console: &Console) {
        if self.lines > 0 {
            console.raw(format!("\x1b[{}A\x1b[J", self.lines).as_bytes());
            self.lines = 0;
        }
    }

    fn text(&self, console: &Console, live: &Live, columns: usize, rows: usize) -> Vec<String> {
        let foot = self.foot(console, live, columns);
        let running: Vec<&Watched> = live.processes.iter().filter(|of| !of.gone).collect();
        let room = rows.saturating_sub(foot.len());
        let heads: Vec<Vec<String>> = running
            .iter()
            .map(|process| heading(console, live, process, columns))
            .collect();
        let taken: usize = heads.iter().map(Vec::len).sum();
        let each = room
            .saturating_sub(taken)
            .checked_div(running.len())
            .unwrap_or(0);
        let mut lines = Vec::new();
        for (process, head) in running.iter().zip(heads) {
            lines.extend(head);
            for figure in figures(process, each.max(1)) {
                lines.push(figure_line(console, live, process, figure, columns));
            }
        }
        if lines.len() > room {
            lines.truncate(room.saturating_sub(1));
            lines.push("… enlarge the terminal to see the rest".to_owned());
        }
        lines.extend(foot);
        lines
    }

    /// Returns the lines at the bottom: exited processes, cost, and the key to stop.
    fn foot(&self, console: &Console, live: &Live, columns: usize) -> Vec<String> {
        let mut lines = Vec::new();
        let mut say = |style, text: String| {
            let wrapped = wrap(&text, columns);
            let lines_of = wrapped.lines().map(|line| console.styled(style, line));
            lines.extend(lines_of.map(|line| line.to_string()));
        };
        let gone: Vec<String> = live
            .processes
            .iter()
            .rev()
            .filter(|of| of.gone && !live.processes.iter().any(|by| by.replaces == Some(of.pid)))
            .map(|of| format!("{} ({})", sanitize(&of.name), of.pid))
            .take(4)
            .collect();
        if !gone.is_empty() {
            say(Style::Warn, format!("exited: {}", gone.join(", ")));
        }
        say(
            Style::Dim,
            format!(
                "{}  VmRSS every {}, parts every {}; press Ctrl-C to stop",
                HumanDuration(live.elapsed()),
                HumanDuration(self.every),
                HumanDuration(self.parts_every),
            ),
        );
        if let Some((core, services, bytes)) = live.cost() {
            say(Style::Dim, cost(core, services, bytes));
        }
        if let Some(why) = &live.away {
            let text = format!("{}; waiting for the device", sanitize(why));
            say(Style::Warn, text);
        }
        lines
    }
}

/// Returns the output that draws `lines` over a block of `before` lines. Each line is cleared
/// before its text. Clearing after text that fills the line would erase its last column and leave
/// the colors of the old text.
fn redrawn(lines: &[String], before: usize, columns: usize) -> String {
    let mut text = String::new();
    if before > 0 {
        let _ = write!(text, "\x1b[{before}A");
    }
    for line in lines {
        text.push_str("\r\x1b[K");
        text.push_str(&console::truncate_str(line, columns, "…"));
        text.push('\n');
    }
    text.push_str("\x1b[J");
    text
}

fn heading(console: &Console, live: &Live, process: &Watched, columns: usize) -> Vec<String> {
    let mut text = format!("{}  pid {}", sanitize(&process.name), process.pid);
    if let Some(since) = live.since_ns.filter(|_| process.restarted) {
        let at = clock(process.since_ns.saturating_sub(since));
        let _ = write!(text, ", restarted at {at}");
    }
    if let Some(before) = process.replaces {
        let _ = write!(text, ", was pid {before}");
    }
    wrap(&text, columns)
        .lines()
        .map(|line| console.styled(Style::Strong, line).to_string())
        .collect()
}

/// Formats a time such as `0:07` or `1:02:03`.
pub(super) fn clock(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

/// Returns the figures to show in `room` lines, in display order.
fn figures(process: &Watched, room: usize) -> Vec<Figure> {
    let is_there = |figure: &Figure| {
        // Older devices do not report it; others do after the first answer.
        *figure != Figure::TotalRss || process.series.contains_key(figure)
    };
    let chosen: Vec<Figure> = WEIGHT.into_iter().filter(is_there).take(room).collect();
    let all = Figure::ALL.into_iter();
    all.filter(|figure| chosen.contains(figure)).collect()
}

fn figure_line(
    console: &Console,
    live: &Live,
    process: &Watched,
    figure: Figure,
    columns: usize,
) -> String {
    let indent = if figure.is_part() { "    " } else { "  " };
    let name = format!("{indent}{}", figure.name());
    let Some(series) = process.series.get(&figure) else {
        return format!("{name:<NAME$}{:>SIZE$}", "-");
    };
    let mut line = format!("{name:<NAME$}{:>SIZE$}", size(series.last));
    let mut taken = NAME + SIZE;
    if columns >= taken + CHANGE {
        let change = change(series.last.saturating_sub(series.first));
        let _ = write!(line, "{change:>CHANGE$}");
        taken += CHANGE;
    }
    let left = columns.saturating_sub(taken + 2).min(PICTURE);
    if left >= LEAST_PICTURE {
        let before = live.before(process);
        let before = before.and_then(|before| before.series.get(&figure));
        let picture = picture(before, series, left);
        let _ = write!(line, "  {}", console.styled(Style::Good, picture));
    }
    line
}

/// Returns the sparkline of a figure, after that of the replaced process, on one scale.
#[expect(clippy::cast_precision_loss, reason = "eight heights need no digits")]
fn picture(before: Option<&Series>, now: &Series, width: usize) -> String {
    let points =
        |series: &Series| -> Vec<f64> { series.points().iter().map(|at| *at as f64).collect() };
    let now_points = points(now);
    let Some(before) = before else {
        return sparkline(&now_points, width);
    };
    let before_points = points(before);
    // Divide the width by time, because points of the two series can cover different numbers of
    // samples.
    let samples = |points: &[f64], series: &Series| {
        (points.len() as u64).saturating_mul(u64::from(series.stretch()))
    };
    let (old, new) = (samples(&before_points, before), samples(&now_points, now));
    let room = width.saturating_sub(1).max(2) as u64;
    let share = old
        .saturating_mul(room)
        .checked_div(old.saturating_add(new))
        .unwrap_or(0)
        .clamp(1, room - 1);
    let share = usize::try_from(share).unwrap_or(1).min(before_points.len());
    let rest = usize::try_from(room).unwrap_or(2) - share;
    let mut all = groups(&before_points, share.max(1));
    let seam = all.len();
    all.extend(groups(&now_points, rest.max(1)));
    let mut picture: Vec<char> = sparkline(&all, all.len()).chars().collect();
    picture.insert(seam.min(picture.len()), SEAM);
    picture.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_model::timeline::{Entry, Observation, Process, Resident, Source};

    const S: u64 = 1_000_000_000;

    #[test]
    fn lines_are_cleared_before_their_text() {
        let lines = ["a long line".to_owned(), "b".to_owned()];
        assert_eq!(
            redrawn(&lines, 3, 6),
            "\x1b[3A\r\x1b[Ka lon…\n\r\x1b[Kb\n\x1b[J"
        );
        assert_eq!(redrawn(&[], 0, 6), "\x1b[J");
    }

    fn live(samples: &[(u64, u32, u64)]) -> Live {
        let mut live = Live::default();
        let mut last = 0;
        for (at, pid, rss) in samples {
            let entry = |seen| Entry {
                boot_ns: at * S,
                pid: *pid,
                cost: None,
                seen,
            };
            if *pid != last {
                if last > 0 {
                    live.take(&Entry {
                        pid: last,
                        ..entry(Observation::Gone)
                    });
                }
                live.take(&entry(Observation::Process(Process {
                    name: "a".to_owned(),
                    restarted: last > 0,
                })));
                last = *pid;
            }
            live.take(&entry(Observation::Resident(Resident::new(
                Source::Status,
                *rss,
            ))));
        }
        live
    }

    #[test]
    fn a_restarted_process_goes_on_with_the_picture_behind_a_seam() {
        let live = live(&[(1, 7, 10), (2, 7, 80), (3, 9, 10), (4, 9, 20)]);
        let process = &live.processes[1];
        let before = live.before(process).unwrap();
        let of = |process: &Watched| process.series[&Figure::Rss].clone();
        assert_eq!(picture(Some(&of(before)), &of(process), 20), "▁█┊▁▂");
        assert_eq!(picture(None, &of(process), 20), "▁█");
        // Both get a part of a narrow line.
        let mut samples: Vec<(u64, u32, u64)> = (1..2000).map(|at| (at, 7, at)).collect();
        samples.push((3000, 9, 5));
        let live = self::live(&samples);
        let process = &live.processes[1];
        let before = live.before(process).unwrap();
        let picture = picture(Some(&of(before)), &of(process), 10);
        assert_eq!(picture.chars().count(), 10, "{picture}");
        assert!(picture.ends_with("┊▁"), "{picture}");
    }

    #[test]
    fn a_low_terminal_keeps_what_tells_most() {
        let live = live(&[(1, 7, 10)]);
        let process = &live.processes[0];
        assert_eq!(
            figures(process, 3),
            [Figure::Rss, Figure::Pss, Figure::Native]
        );
        assert_eq!(figures(process, 99).len(), Figure::ALL.len() - 1);
    }

    #[test]
    fn times_are_short() {
        assert_eq!(clock(7 * S), "0:07");
        assert_eq!(clock(3_723 * S), "1:02:03");
        assert!(!clock(u64::MAX).is_empty());
    }
}
