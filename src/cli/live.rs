//! The live view of `heaptap meminfo --every`: in a terminal a block that is drawn anew in its
//! place, elsewhere a line a sample; at the end what each figure did.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::json;

use super::progress::cost;
use super::signals::watch_signals;
use super::sparkline::sparkline;
use super::{Console, Context, Outcome, Style};
use crate::app::live::{self, Figure, Live, LiveOptions, Series, Told, Watched};
use crate::config::Targets;
use crate::error::Failure;
use crate::memory::timeline::{Entry, Seen};
use crate::session::SessionError;
use crate::units::{HumanDuration, SignedSize, parse_duration};
use crate::untrusted::shown;

/// Flags of the live view.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Live view")]
pub struct LiveArgs {
    /// Go on, with a sample each PERIOD; meminfo is asked every 10 s at most
    #[arg(
        long,
        value_name = "PERIOD",
        value_parser = period,
        conflicts_with_all = ["file", "system", "save", "explain", "all", "details", "local"],
    )]
    pub every: Option<Duration>,
    /// End after this [default: Ctrl-C]
    #[arg(long = "for", value_name = "TIME", requires = "every", value_parser = period)]
    pub duration: Option<Duration>,
    /// Ask the app, too: it collects its garbage for each answer, and counts its heaps
    #[arg(long, requires = "every")]
    pub allow_gc: bool,
}

/// At least a tenth of a second; bare numbers are seconds.
fn period(text: &str) -> Result<Duration, String> {
    let period = parse_duration(text, Duration::from_secs(1)).map_err(|e| e.to_string())?;
    if period < Duration::from_millis(100) {
        return Err("it is at least 100ms".to_owned());
    }
    Ok(period)
}

/// Lines of figures that a block has beside those of processes.
const ROOM: usize = 3;
/// Columns of a name and of a size.
const NAME: usize = 16;
const SIZE: usize = 11;

/// Shows `targets` until it is ended.
///
/// # Errors
/// Where nothing runs that was asked for, or the phone does not answer.
pub(super) async fn run(
    ctx: &Context,
    args: &LiveArgs,
    targets: Targets,
    csv: bool,
) -> Result<Outcome, Failure> {
    let options = LiveOptions {
        targets,
        user: ctx.globals.user,
        every: args.every.unwrap_or(Duration::from_secs(1)),
        allow_gc: args.allow_gc,
        duration: args.duration,
    };
    let mut signals = watch_signals()?;
    let device = tokio::select! {
        device = ctx.device() => device?,
        _ = signals.recv() => return Err(SessionError::Interrupted.into()),
    };
    let console = &ctx.console;
    let mut view = View::new(console, csv, &options);
    let stop = async {
        // Nobody to send one is no stop.
        if signals.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    };
    let live = live::live(device, &options, stop, |live, told| view.show(live, &told)).await?;
    view.clear();
    end(console, csv, &live);
    Ok(Outcome::Done)
}

/// How it is shown.
enum Form {
    Block {
        lines: usize,
    },
    Lines,
    Csv,
    /// One entry a line, as in a recording's timeline.
    JsonLines,
    /// Nothing but the document at the end.
    Json,
}

struct View<'a> {
    console: &'a Console,
    form: Form,
    /// Whether the heading stands: with the first line, since nothing may come.
    headed: bool,
    every: Duration,
    parts_every: Duration,
}

impl<'a> View<'a> {
    fn new(console: &'a Console, csv: bool, options: &LiveOptions) -> View<'a> {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let form = if console.is_json_lines() {
            Form::JsonLines
        } else if console.is_json() {
            Form::Json
        } else if csv {
            Form::Csv
        } else if console.stdout_width().is_some() && !dumb {
            Form::Block { lines: 0 }
        } else {
            Form::Lines
        };
        View {
            console,
            form,
            headed: false,
            every: options.every,
            parts_every: options.parts_every(),
        }
    }

    fn show(&mut self, live: &Live, told: &Told<'_>) {
        match (&self.form, told) {
            (Form::JsonLines, Told::Seen(entry)) => self.console.json(entry),
            (Form::Csv, Told::Seen(entry)) => {
                if let Some(line) = csv_line(live, entry) {
                    self.head(CSV_HEAD);
                    self.console.data(line);
                }
            }
            (Form::Lines, Told::Seen(entry)) => {
                if let Some(line) = plain_line(live, entry) {
                    self.head(&line_head());
                    self.console.data(line);
                }
            }
            (Form::Lines | Form::Csv, Told::Connection) => match &live.away {
                Some(why) => self
                    .console
                    .say(format_args!("{}; waiting for it to come back", shown(why))),
                None => self.console.say("connected again"),
            },
            (Form::Block { .. }, Told::Round | Told::Connection) => self.draw(live),
            _ => {}
        }
    }

    fn head(&mut self, head: &str) {
        if !std::mem::replace(&mut self.headed, true) {
            self.console.data(head);
        }
    }

    /// Draws the block over the one before, in one write: nothing is seen half done.
    fn draw(&mut self, live: &Live) {
        let Form::Block { lines: before } = &mut self.form else {
            return;
        };
        let (rows, columns) = console::Term::stdout().size();
        let columns = usize::from(columns.max(20));
        let mut lines = block(self.console, live, columns, (self.every, self.parts_every));
        let rows = usize::from(rows).saturating_sub(1).max(4);
        if lines.len() > rows {
            lines.truncate(rows - 1);
            lines.push("… a higher terminal shows the rest".to_owned());
        }
        let mut text = String::new();
        if *before > 0 {
            let _ = write!(text, "\x1b[{before}A");
        }
        for line in &lines {
            text.push_str(&console::truncate_str(line, columns, "…"));
            text.push_str("\x1b[K\n");
        }
        text.push_str("\x1b[J");
        *before = lines.len();
        self.console.raw(text.as_bytes());
    }

    /// Takes the block away: what it was for is told by the summary.
    fn clear(&mut self) {
        if let Form::Block { lines } = &mut self.form
            && *lines > 0
        {
            self.console.raw(format!("\x1b[{lines}A\x1b[J").as_bytes());
            *lines = 0;
        }
    }
}

fn block(
    console: &Console,
    live: &Live,
    columns: usize,
    (every, parts_every): (Duration, Duration),
) -> Vec<String> {
    let mut lines = Vec::with_capacity(ROOM + 12 * live.processes.len());
    for process in live.processes.iter().filter(|process| !process.gone) {
        let name = console.styled(Style::Strong, shown(&process.name).into_owned());
        let restarted = if process.restarted {
            ", started again"
        } else {
            ""
        };
        lines.push(format!("{name}  pid {}{restarted}", process.pid));
        for figure in Figure::ALL {
            lines.push(figure_line(
                console,
                figure,
                process.series.get(&figure),
                columns,
            ));
        }
    }
    let gone: Vec<String> = live
        .processes
        .iter()
        .filter(|process| process.gone)
        .map(|process| format!("{} ({})", shown(&process.name), process.pid))
        .collect();
    if !gone.is_empty() {
        let text = format!("gone: {}", gone.join(", "));
        lines.push(console.styled(Style::Dim, text).to_string());
    }
    let mut foot = format!(
        "{}  RSS each {}, parts each {}",
        HumanDuration(live.elapsed()),
        HumanDuration(every),
        HumanDuration(parts_every),
    );
    if let Some((core, services, bytes)) = live.cost() {
        let _ = write!(foot, "; {}", cost(core, services, bytes));
    }
    lines.push(console.styled(Style::Dim, foot).to_string());
    match &live.away {
        Some(why) => {
            let text = format!("{}; waiting for it to come back", shown(why));
            lines.push(console.styled(Style::Warn, text).to_string());
        }
        None => {
            let text = "Ctrl-C ends it";
            lines.push(console.styled(Style::Dim, text).to_string());
        }
    }
    lines
}

fn figure_line(
    console: &Console,
    figure: Figure,
    series: Option<&Series>,
    columns: usize,
) -> String {
    let indent = if figure.is_part() { "    " } else { "  " };
    let name = format!("{indent}{:<NAME$}", figure.name());
    let Some(series) = series else {
        return format!("{name:<20}{:>SIZE$}", "-");
    };
    let mut line = format!("{name:<20}{:>SIZE$}", size(series.last));
    if columns >= 46 {
        let change = change(series.last.saturating_sub(series.first));
        let _ = write!(line, " {change:>12}");
    }
    // What is left of the line, but not all of a wide one.
    let left = columns.saturating_sub(20 + SIZE + 13 + 2).min(48);
    if left >= 8 {
        // Eight heights need no digits.
        let points: Vec<f64> = series.points().iter().map(|at| *at as f64).collect();
        let picture = sparkline(&points, left);
        let _ = write!(line, "  {}", console.styled(Style::Good, picture));
    }
    line
}

fn size(bytes: i64) -> String {
    SignedSize(bytes).to_string()
}

fn change(bytes: i64) -> String {
    match bytes {
        0 => "±0".to_owned(),
        _ => format!("{:+}", SignedSize(bytes)),
    }
}

/// The figures of a line: RSS, swap, then those of meminfo.
fn line_head() -> String {
    let mut line = format!("{:>7}  {:>7}", "time", "pid");
    for figure in Figure::ALL {
        let _ = write!(line, " {:>13}", figure.name());
    }
    line.push_str("  process");
    line
}

fn plain_line(live: &Live, entry: &Entry) -> Option<String> {
    let elapsed = entry.boot_ns.saturating_sub(live.since_ns?);
    let seconds = elapsed / 1_000_000_000;
    let time = format!("{}:{:02}", seconds / 60, seconds % 60);
    let process = of(live, entry.pid)?;
    let name = shown(&process.name);
    let had: fn(Figure) -> bool = match &entry.seen {
        Seen::Resident(_) => |figure| matches!(figure, Figure::Rss | Figure::Swap),
        Seen::Parts(_) => |figure| !matches!(figure, Figure::Rss | Figure::Swap),
        Seen::Process(of) => {
            let what = if of.restarted {
                "started again"
            } else {
                "runs"
            };
            return Some(format!("{time:>7}  {:>7} {what}: {name}", entry.pid));
        }
        Seen::Gone => return Some(format!("{time:>7}  {:>7} is gone: {name}", entry.pid)),
        _ => return None,
    };
    let mut line = format!("{time:>7}  {:>7}", entry.pid);
    for figure in Figure::ALL {
        let value = process.series.get(&figure).filter(|_| had(figure));
        let text = value.map_or_else(|| "-".to_owned(), |series| size(series.last));
        let _ = write!(line, " {text:>13}");
    }
    let _ = write!(line, "  {name}");
    Some(line)
}

fn of(live: &Live, pid: u32) -> Option<&Watched> {
    live.processes.iter().rev().find(|of| of.pid == pid)
}

const CSV_HEAD: &str = "boot_s,pid,process,source,rss,rss_anon,rss_file,rss_shmem,swap,\
    oom_score_adj,pss,java,native,code,stack,graphics,private_other,system,device_ms,bytes";

fn csv_line(live: &Live, entry: &Entry) -> Option<String> {
    let some = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
    let cells: Vec<String> = match &entry.seen {
        Seen::Resident(resident) => [
            vec![
                resident.source.word().to_owned(),
                resident.rss.to_string(),
                some(resident.anon),
                some(resident.file),
                some(resident.shmem),
                some(resident.swap),
                resident
                    .oom_score_adj
                    .map_or_else(String::new, |adj| adj.to_string()),
            ],
            vec![String::new(); 8],
        ]
        .concat(),
        Seen::Parts(parts) => [
            vec![parts.source.word().to_owned()],
            vec![String::new(); 6],
            [
                parts.total_pss,
                parts.java,
                parts.native,
                parts.code,
                parts.stack,
                parts.graphics,
                parts.private_other,
                parts.system,
            ]
            .iter()
            .map(i64::to_string)
            .collect(),
        ]
        .concat(),
        _ => return None,
    };
    let (seconds, nanos) = (entry.boot_ns / 1_000_000_000, entry.boot_ns % 1_000_000_000);
    let name = of(live, entry.pid).map_or("", |process| &process.name);
    let cost = entry.cost.map_or_else(
        || ",".to_owned(),
        |cost| format!("{},{}", cost.device_ns / 1_000_000, cost.bytes),
    );
    Some(format!(
        "{seconds}.{:02},{},{},{},{cost}",
        nanos / 10_000_000,
        entry.pid,
        crate::export::csv::cell(name),
        cells.join(",")
    ))
}

/// What each figure did.
fn end(console: &Console, csv: bool, live: &Live) {
    if console.is_json() {
        console.json(&document(live));
        return;
    }
    if !csv {
        for process in &live.processes {
            summary(console, process);
        }
    }
    for unread in &live.unread {
        console.detail(format_args!("not readable: {}", shown(unread)));
    }
    if let Some(why) = &live.away {
        console.warn(shown(why));
    }
    if let Some((core, services, bytes)) = live.cost() {
        console.say(format_args!(
            "watched for {}: {}; {} for {} samples and answers",
            HumanDuration(live.elapsed()),
            cost(core, services, bytes),
            match live.spent.round_trips {
                1 => "one command".to_owned(),
                more => format!("{more} commands"),
            },
            live.spent.rounds + live.spent.questions,
        ));
    }
}

fn summary(console: &Console, process: &Watched) {
    let gone = if process.gone { ", gone" } else { "" };
    let name = console.styled(Style::Strong, shown(&process.name).into_owned());
    console.data(format_args!("{name}  pid {}{gone}", process.pid));
    if process.series.is_empty() {
        return;
    }
    console.data(format_args!(
        "{:<20}{:>SIZE$} {:>SIZE$} {:>SIZE$} {:>SIZE$} {:>12}",
        "", "first", "lowest", "highest", "last", "a minute"
    ));
    for (figure, series) in Figure::ALL
        .into_iter()
        .filter_map(|figure| Some((figure, process.series.get(&figure)?)))
    {
        let indent = if figure.is_part() { "    " } else { "  " };
        let growth = series
            .growth_per_minute()
            .map_or_else(|| "-".to_owned(), change);
        console.data(format_args!(
            "{:<20}{:>SIZE$} {:>SIZE$} {:>SIZE$} {:>SIZE$} {growth:>12}",
            format!("{indent}{}", figure.name()),
            size(series.first),
            size(series.min),
            size(series.max),
            size(series.last),
        ));
    }
}

fn document(live: &Live) -> serde_json::Value {
    let processes: Vec<serde_json::Value> = live
        .processes
        .iter()
        .map(|process| {
            let figures: Vec<serde_json::Value> = process
                .series
                .iter()
                .map(|(figure, series)| {
                    json!({
                        "figure": figure,
                        "first": series.first,
                        "min": series.min,
                        "max": series.max,
                        "last": series.last,
                        "samples": series.count,
                        "growth_per_minute": series.growth_per_minute(),
                    })
                })
                .collect();
            json!({
                "pid": process.pid,
                "name": process.name,
                "restarted": process.restarted,
                "gone": process.gone,
                "figures": figures,
            })
        })
        .collect();
    let cost = live.cost().map(|(core, services, bytes_per_s)| {
        json!({
            "core": core,
            "services": services,
            "bytes_per_s": bytes_per_s,
            "rounds": live.spent.rounds,
            "questions": live.spent.questions,
            "round_trips": live.spent.round_trips,
        })
    });
    json!({
        "event": "ended",
        "seconds": live.elapsed().as_secs_f64(),
        "processes": processes,
        "unread": live.unread,
        "away": live.away,
        "cost": cost,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_changes_have_their_signs() {
        assert_eq!(size(-2048), "-2.0 KiB");
        assert_eq!(change(1 << 20), "+1.0 MiB");
        assert_eq!(change(-1024), "-1.0 KiB");
        assert_eq!(change(0), "±0");
        assert!(!size(i64::MIN).is_empty());
    }

    #[test]
    fn periods_are_seconds_and_not_too_short() {
        assert_eq!(period("1"), Ok(Duration::from_secs(1)));
        assert_eq!(period("500ms"), Ok(Duration::from_millis(500)));
        assert!(period("0").is_err() && period("x").is_err());
    }
}
