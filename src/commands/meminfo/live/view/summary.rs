//! Summary at the end of the live view: the changes of each figure, as text or a document.

use serde_json::json;

use super::super::run::{Figure, Live, Series, Watched};
use crate::commands::shared::meminfo::{change, size};
use crate::commands::shared::progress::cost;
use crate::console::{Console, Style};
use heaptap_base::units::{HumanDuration, counted};
use heaptap_base::untrusted::sanitize;

/// Shows the summary.
pub(super) fn end(console: &Console, csv: bool, live: &Live) {
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
        console.detail(format_args!("cannot read {}", sanitize(unread)));
    }
    if let Some(why) = &live.away {
        console.warn(sanitize(why));
    }
    if let Some((core, services, bytes)) = live.cost() {
        console.say(format_args!(
            "{} over {} by {} on the device; {}",
            taken(live.spent.rounds, live.spent.questions),
            HumanDuration(live.elapsed()),
            match live.spent.round_trips {
                1 => "one command".to_owned(),
                more => format!("{more} commands"),
            },
            cost(core, services, bytes),
        ));
    }
}

/// Returns words such as `3 samples and 2 of meminfo`.
fn taken(samples: u64, meminfos: u64) -> String {
    let samples = counted(samples, "sample", "samples");
    match meminfos {
        0 => samples,
        more => format!("{samples} and {more} of meminfo"),
    }
}

fn summary(console: &Console, process: &Watched) {
    let name = console.styled(Style::Strong, sanitize(&process.name).into_owned());
    let mut words = format!("{name}  pid {}", process.pid);
    if let Some(before) = process.replaces {
        words += &format!(", restarted, was pid {before}");
    }
    if process.gone {
        words += ", exited";
    }
    console.data(words);
    if process.series.is_empty() {
        return;
    }
    let columns = columns(console.stdout_width());
    let head = columns.iter().map(|(heading, _)| (*heading).to_owned());
    line(console, "", head.collect());
    for (figure, series) in Figure::ALL
        .into_iter()
        .filter_map(|figure| Some((figure, process.series.get(&figure)?)))
    {
        let indent = if figure.is_part() { "    " } else { "  " };
        let cells = columns.iter().map(|(_, cell)| cell(series));
        let name = format!("{indent}{}", figure.name());
        line(console, &name, cells.collect());
    }
    let last = |figure: Figure| process.series.get(&figure).map(|series| series.last);
    if last(Figure::Pss)
        .zip(last(Figure::Rss))
        .is_some_and(|(pss, rss)| pss > rss)
    {
        let note = "  PSS is above VmRSS: only PSS includes swap and driver memory (mtrack rows)";
        console.in_style(Style::Dim, note);
    }
}

/// Columns of a figure's name and of a size.
const NAME: usize = 17;
const SIZE: usize = 11;

fn line(console: &Console, name: &str, cells: Vec<String>) {
    let cells: String = cells.iter().map(|cell| format!("{cell:>SIZE$} ")).collect();
    let text = format!("{name:<NAME$}{cells}");
    console.data(text.trim_end());
}

/// Heading and cells of a column.
type Column = (&'static str, fn(&Series) -> String);

/// Returns the columns that fit into the terminal; the least informative are left out first.
fn columns(width: Option<usize>) -> Vec<Column> {
    let per_minute = |series: &Series| match series.growth_per_minute() {
        Some(bytes) => change(bytes),
        None => "-".to_owned(),
    };
    let all: [Column; 5] = [
        ("first", |series| size(series.first)),
        ("lowest", |series| size(series.min)),
        ("highest", |series| size(series.max)),
        ("last", |series| size(series.last)),
        ("per minute", per_minute),
    ];
    let mut columns = all.to_vec();
    for least in ["lowest", "first", "highest"] {
        let taken = NAME + columns.len() * (SIZE + 1) - 1;
        if width.is_some_and(|width| taken > width) {
            columns.retain(|(heading, _)| *heading != least);
        }
    }
    columns
}

fn document(live: &Live) -> serde_json::Value {
    let figure = |(figure, series): (&Figure, &Series)| {
        json!({
            "figure": figure,
            "name": figure.name(),
            "first": series.first,
            "min": series.min,
            "max": series.max,
            "last": series.last,
            "samples": series.count,
            "growth_per_minute": series.growth_per_minute(),
        })
    };
    let process = |process: &Watched| {
        json!({
            "pid": process.pid,
            "name": process.name,
            "restarted": process.restarted,
            "replaces": process.replaces,
            "gone": process.gone,
            "figures": process.series.iter().map(figure).collect::<Vec<_>>(),
        })
    };
    let processes: Vec<_> = live.processes.iter().map(process).collect();
    let cost = live.cost().map(|(core, services, bytes_per_s)| {
        json!({
            "core": core,
            "services": services,
            "bytes_per_s": bytes_per_s,
            "polls": live.spent.rounds,
            "requests": live.spent.questions,
            "round_trips": live.spent.round_trips,
        })
    });
    json!({
        "event": "ended",
        "seconds": live.elapsed().as_secs_f64(),
        "processes": processes,
        "unreadable": live.unread,
        "away": live.away,
        "cost": cost,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_is_counted_in_words() {
        assert_eq!(taken(1, 0), "1 sample");
        assert_eq!(taken(3, 2), "3 samples and 2 of meminfo");
    }

    #[test]
    fn narrow_terminals_get_the_columns_that_tell_most() {
        for (width, headings) in [
            (None, "first lowest highest last per minute"),
            (Some(80), "first lowest highest last per minute"),
            (Some(70), "first highest last per minute"),
            (Some(40), "last per minute"),
            (Some(1), "last per minute"),
        ] {
            let columns = columns(width);
            let shown: Vec<&str> = columns.iter().map(|(heading, _)| *heading).collect();
            assert_eq!(shown.join(" "), headings, "{width:?}");
        }
    }
}
