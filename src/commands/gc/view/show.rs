//! Collections as tables, text and CSV.

use std::fmt::Write as _;
use std::time::Duration;

use time::OffsetDateTime;
use time::macros::format_description;

use super::super::run::{
    Collected, Followed, GcReport, GcSource, Measured, NO_SUCH_PROCESS, Target, shown_name,
};
use crate::commands::shared::java::{Cell, csv_line};
use crate::console::columns::Columns;
use crate::console::sparkline::sparkline;
use crate::console::table::show_fitting_at;
use crate::console::{Console, Style};
use android_memory::gc::{
    Coverage, Event, Figures, GcLogEvent, Group, Growth, ObservedBy, ProcessReport, Runtime,
    Severity, Timed, is_whole, milliseconds, why_steady,
};
use heaptap_base::units::{ByteSize, HumanDuration, SignedSize, counted, thousands};
use heaptap_results::findings::Finding;

/// Maximum number of processes that are shown in detail.
const IN_FULL: usize = 3;
/// Blocks of a sparkline.
const BLOCKS: usize = 24;
/// Columns to hide on a narrow terminal, the first of them first: of all processes, ...
const LEAST_OF_ALL: [&str; 6] = [
    "p50 pause",
    "live set",
    "time",
    "last live set",
    "freed",
    "max pause",
];
/// ... of the reasons for collections, ...
const LEAST_OF_REASONS: [&str; 6] = ["p90", "p99", "time", "p50 pause", "freed", "max"];
/// ... and of each collection.
const LEAST_OF_EACH: [&str; 5] = ["of", "took", "pauses", "freed", "live"];
/// Hint to the other outputs that contain hidden columns.
const ELSEWHERE: &str = ", or use `--json`";

/// Shows a report: details of a few processes, or a table of many with their problems.
pub(super) fn show(console: &Console, report: &GcReport, list: bool) {
    let lines = report.lines.map_or_else(String::new, |lines| {
        format!(" in {}", counted(lines, "line", "lines"))
    });
    // A missing process is reported with the findings.
    let is_told = |finding: &Finding| finding.kind == NO_SUCH_PROCESS;
    if report.processes.is_empty() && report.findings.iter().any(is_told) {
        return;
    }
    if report.processes.is_empty() {
        let what = match report.source {
            GcSource::Log | GcSource::Device => "no collections were logged",
            GcSource::Recording => "no collections were recorded",
        };
        console.say(format_args!("{what}{lines}"));
        if report.source != GcSource::Recording && report.lines.is_some_and(|lines| lines > 0) {
            console.say(
                "ART logs only explicit collections and slow collections of apps in use, so a log \
                 without any does not prove that none happened",
            );
        }
        return;
    }
    if report.processes.len() > IN_FULL && !list {
        overview(console, report);
        for process in &report.processes {
            diagnoses(console, process, true);
        }
        console.say("`-n NAME` shows one in detail, `--by collection` shows each collection");
    } else {
        for (at, process) in report.processes.iter().enumerate() {
            if at > 0 {
                console.data("");
            }
            let collections = report.collections.get(at).map_or(&[][..], Vec::as_slice);
            in_full(console, process, collections, list);
        }
    }
    let caveat = report.processes.iter().find_map(|p| match p.collections {
        0 => None,
        _ => p.coverage.caveat(),
    });
    if let Some(caveat) = caveat {
        console.say(caveat);
    }
    if report.left_out > 0 {
        console.warn(format_args!(
            "left out {} beyond the limit",
            counted(report.left_out, "collection", "collections")
        ));
    }
}

/// Returns the name, or the known part of it, and the PID.
fn who(process: &ProcessReport) -> String {
    let name = shown_name(process).unwrap_or_else(|| "process".to_owned());
    match process.pid {
        Some(pid) => format!("{name} {pid}"),
        None => name,
    }
}

fn overview(console: &Console, report: &GcReport) {
    let freed = |of: &ProcessReport| freed_in(of.freed_bytes, of.frees_known, of.collections);
    let live = |of: &ProcessReport| {
        let series: Vec<f64> = of.live.iter().map(|live| live.bytes as f64).collect();
        let blocks = sparkline(&series, BLOCKS);
        format!("{blocks:<width$}", width = BLOCKS.min(series.len()))
    };
    let columns = Columns::new()
        .with("collections", |of: &ProcessReport| {
            thousands(of.collections)
        })
        .with("freed", freed)
        .with("time", |of| milliseconds(of.durations.total_ns))
        .with("p50 pause", |of| pause(&of.pauses, of.pauses.p50_ns))
        .with("max pause", |of| pause(&of.pauses, of.pauses.max_ns))
        .with("last live set", |of| {
            size(of.live.last().map(|live| live.bytes))
        })
        .with("live set", live);
    let mut table = columns.table("process");
    for process in &report.processes {
        table.row(columns.values(process), who(process));
        if process
            .diagnoses
            .iter()
            .any(|d| d.severity == Severity::Warning)
        {
            table.style(Style::Warn);
        }
    }
    show_fitting_at(console, &mut table, &LEAST_OF_ALL, 0, ELSEWHERE);
}

/// Formats a pause of a distribution.
fn pause(pauses: &Figures, ns: u64) -> String {
    match pauses.count {
        0 => "-".to_owned(),
        _ => milliseconds(ns),
    }
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

fn size(bytes: Option<u64>) -> String {
    or_dash(bytes.map(|bytes| ByteSize(bytes).to_string()))
}

/// Returns the freed bytes, with the number of collections that report them if not all do. A system
/// trace has only their times.
fn freed_in(bytes: Option<i64>, told: u64, count: u64) -> String {
    match bytes {
        None => "-".to_owned(),
        Some(bytes) if told == count => signed(bytes),
        Some(bytes) => format!("{} in {}", signed(bytes), thousands(told)),
    }
}

fn in_full(console: &Console, process: &ProcessReport, collections: &[Timed], list: bool) {
    console.data(heading(console, process));
    for line in sentences(process) {
        console.data(format_args!("  {line}"));
    }
    diagnoses(console, process, false);
    if !process.groups.is_empty() {
        let freed = |of: &Group| freed_in(of.freed_bytes, of.frees_known, of.count);
        let columns = Columns::new()
            .with("count", |of: &Group| thousands(of.count))
            .with("freed", freed)
            .with("time", |of| milliseconds(of.total_ns))
            .with("p50 pause", |of| pause(&of.pauses, of.pauses.p50_ns))
            .with("p90", |of| pause(&of.pauses, of.pauses.p90_ns))
            .with("p99", |of| pause(&of.pauses, of.pauses.p99_ns))
            .with("max", |of| pause(&of.pauses, of.pauses.max_ns));
        let mut table = columns.table(REASON);
        for group in &process.groups {
            table.row(
                columns.values(group),
                reason(&group.reason, &group.collector),
            );
        }
        show_fitting_at(console, &mut table, &LEAST_OF_REASONS, 2, ELSEWHERE);
    }
    if list && !collections.is_empty() {
        rows(console, collections);
    }
}

/// Heading of [`reason`].
const REASON: &str = "reason, collector";

fn reason(reason: &str, collector: &str) -> String {
    match collector {
        "" => reason.to_owned(),
        collector => format!("{reason}, {collector}"),
    }
}

fn heading(console: &Console, process: &ProcessReport) -> String {
    let (one, many) = match process.coverage {
        Coverage::Every => ("collection", "collections"),
        Coverage::Logged => ("logged collection", "logged collections"),
    };
    let mut text = format!(
        "{}: {}",
        console.styled(Style::Strong, who(process)),
        counted(process.collections, one, many)
    );
    match process.runtime {
        Some(Runtime::Dalvik) => text += " by Dalvik",
        Some(Runtime::Art) => text += " by ART",
        None => {}
    }
    if let (Some(ns), Some(by)) = (process.observed_ns, process.observed_by) {
        let of = match by {
            ObservedBy::Log => "of its log",
            ObservedBy::Followed => "of the followed log",
            ObservedBy::Recording => "of the recording",
            ObservedBy::Collections => "from the first to the last",
        };
        let _ = write!(text, " in {} {of}", HumanDuration(Duration::from_nanos(ns)));
    }
    if let Some(rate) = process.per_minute {
        let _ = write!(text, ", {rate:.1} per minute");
    }
    if process.ours > 0 {
        let _ = write!(
            text,
            "; {} caused by heaptap not counted",
            thousands(process.ours)
        );
    }
    text
}

/// Returns lines with facts that do not fit into a table.
fn sentences(process: &ProcessReport) -> Vec<String> {
    let mut lines = Vec::new();
    let pauses = &process.pauses;
    if pauses.count > 0 {
        lines.push(format!(
            "pauses: p50 {}, p90 {}, p99 {}, max {}; {}, {} in total",
            milliseconds(pauses.p50_ns),
            milliseconds(pauses.p90_ns),
            milliseconds(pauses.p99_ns),
            milliseconds(pauses.max_ns),
            counted(pauses.count, "pause", "pauses"),
            milliseconds(pauses.total_ns),
        ));
    }
    let whole: Vec<f64> = process
        .live
        .iter()
        .filter(|live| live.whole)
        .map(|live| live.bytes as f64)
        .collect();
    let young = process.live.len() - whole.len();
    if let (Some(first), Some(last)) = (whole.first(), whole.last()) {
        let mut line = format!(
            "live set: {} {} {} after {}",
            ByteSize(*first as u64),
            sparkline(&whole, 2 * BLOCKS),
            ByteSize(*last as u64),
            counted(whole.len() as u64, "full GC", "full GCs"),
        );
        if young > 0 {
            let _ = write!(line, "; young GCs not shown: {}", thousands(young as u64));
        }
        lines.push(line);
    }
    match process.growth {
        Growth::TooFew {
            collections,
            wanted,
        } if !process.live.is_empty() => lines.push(format!(
            "too few full GCs for a trend: {collections} of at least {wanted}"
        )),
        Growth::Steady {
            growth,
            noise,
            least,
            ..
        } => lines.push(why_steady(growth, noise, least)),
        Growth::TooFew { .. } | Growth::Grows(_) => {}
    }
    if process.waits.count > 0 {
        lines.push(format!(
            "threads waited for a collection {}: {} in total, {} at most",
            times(process.waits.count),
            milliseconds(process.waits.total_ns),
            milliseconds(process.waits.max_ns),
        ));
    }
    let minor = &process.minor;
    for (count, what) in [
        (minor.clamps, "the heap reached its growth limit"),
        (
            minor.grown,
            "the heap grew because an allocation did not fit",
        ),
        (
            minor.soft_references,
            "softly referenced objects were cleared",
        ),
        (minor.signals, "a signal requested a collection"),
    ] {
        if count > 0 {
            lines.push(format!("{what} {}", times(count)));
        }
    }
    if minor.dropped > 0 {
        lines.push(format!(
            "the device log dropped {} of this process",
            counted(minor.dropped, "line", "lines")
        ));
    }
    if minor.unknown > 0 {
        lines.push(format!(
            "cannot parse {} about its collector, such as: {}",
            counted(minor.unknown, "line", "lines"),
            minor.unknown_examples.first().map_or("", String::as_str)
        ));
    }
    lines
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        more => format!("{} times", thousands(more)),
    }
}

fn diagnoses(console: &Console, process: &ProcessReport, named: bool) {
    for diagnosis in &process.diagnoses {
        let label = match diagnosis.severity {
            Severity::Warning => console.styled(Style::Warn, "warning"),
            Severity::Note => console.styled(Style::Strong, "note"),
        };
        if named && diagnosis.severity == Severity::Note {
            continue;
        }
        let of = match named {
            true => format!("{}: ", who(process)),
            false => String::new(),
        };
        console.data(format_args!("{label}: {of}{}", diagnosis.text));
        if !named {
            let help = console.styled(Style::Help, "help");
            console.data(format_args!("   {help}: {}", diagnosis.help));
        }
    }
}

fn rows(console: &Console, collections: &[Timed]) {
    let pauses = |it: &Timed| {
        let pauses = it.logged.collection.pauses.iter();
        let pauses: Vec<String> = pauses.copied().map(milliseconds).collect();
        or_dash(Some(pauses.join(" + ")).filter(|text| !text.is_empty()))
    };
    let columns = Columns::new()
        .with("time", |it: &Timed| or_dash(it.at.map(moment)))
        .with("freed", |it| {
            or_dash(it.logged.collection.freed().map(signed))
        })
        .with("live", |it| size(it.logged.collection.live))
        .with("of", |it| size(it.logged.collection.total))
        .with("pauses", pauses)
        .with("took", |it| {
            or_dash(it.logged.collection.duration.map(milliseconds))
        });
    let mut table = columns.table(REASON);
    for timed in collections {
        let collection = &timed.logged.collection;
        let name = reason(&collection.reason, &collection.collector);
        table.row(columns.values(timed), name);
        if collection.ours {
            table.remark("caused by heaptap");
        } else if !is_whole(&collection.collector) {
            table.style(Style::Dim);
        }
    }
    show_fitting_at(console, &mut table, &LEAST_OF_EACH, 2, ", or use `--csv`");
}

/// Returns a time on the log's axis: the date and time of day of the log, or seconds since boot.
fn moment(ns: i64) -> String {
    const YEARS: i64 = 100_000_000_000_000_000;
    if ns < YEARS {
        return format!("{:.3} s", ns as f64 / 1e9);
    }
    let form = format_description!("[month]-[day] [hour]:[minute]:[second].[subsecond digits:3]");
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(ns))
        .ok()
        .and_then(|at| at.format(form).ok())
        .unwrap_or_default()
}

fn signed(bytes: i64) -> String {
    SignedSize(bytes).to_string()
}

/// Totals of a followed log so far.
#[derive(Debug, Default)]
pub(super) struct Running {
    collections: u64,
    longest: u64,
    live: Option<u64>,
    /// Whether earlier lines were shown, and no new ones yet.
    earlier: bool,
}

impl Running {
    /// Shows an event of a followed log.
    pub(super) fn show(&mut self, console: &Console, said: &Followed<'_>, targets: &[Target]) {
        let (told, earlier) = match said {
            Followed::Begins(from) => {
                let pids: Vec<u32> = targets.iter().map(|target| target.pid).collect();
                console.event(&serde_json::json!({
                    "event": "following",
                    "from_ns": from,
                    "pids": pids,
                }));
                return;
            }
            Followed::Restless(pid) => {
                console.event(&serde_json::json!({ "event": "logcat-restarts", "pid": pid }));
                console.warn(format_args!(
                    "logcat of process {pid} keeps exiting on the device; heaptap restarts it, in \
                     the end every 5 s"
                ));
                return;
            }
            Followed::Earlier(told) => (told, true),
            Followed::Now(told) => (told, false),
        };
        let mut value = event(told);
        if let Some(fields) = value.as_object_mut().filter(|_| earlier) {
            fields.insert("earlier".to_owned(), true.into());
        }
        console.event(&value);
        if let Some(line) = line(console, told, targets) {
            if !earlier && std::mem::take(&mut self.earlier) && !console.is_json() {
                console.in_style(Style::Dim, "-- logged while following:");
            }
            self.earlier |= earlier;
            if !console.is_json() {
                console.data(line);
            }
        }
        if let Event::Collection(logged) = &told.event {
            self.collections += 1;
            let pause = logged.collection.pauses.iter().max().copied();
            self.longest = self.longest.max(pause.unwrap_or(0));
            self.live = logged.collection.live.or(self.live);
        }
    }

    /// Returns the totals in one line.
    pub(super) fn state(&self) -> String {
        let live = self
            .live
            .map_or_else(String::new, |live| format!(", {} live", ByteSize(live)));
        format!(
            "{}{live}, longest pause {}; press Ctrl-C for the summary",
            counted(self.collections, "collection", "collections"),
            milliseconds(self.longest)
        )
    }
}

/// Returns an event of a followed log as JSON.
fn event(told: &GcLogEvent) -> serde_json::Value {
    let mut value = match &told.event {
        Event::Collection(logged) => serde_json::json!({
            "event": "collection",
            "collection": logged.collection,
            "live_step": logged.steps.live,
        }),
        Event::Blocked(blocked) => serde_json::json!({
            "event": "blocked",
            "ns": blocked.ns,
            "reason": blocked.reason,
            "waited_for": blocked.on,
        }),
        Event::OutOfMemory(error) => serde_json::json!({
            "event": "out-of-memory",
            "thrown": error.thrown,
            "error": error,
        }),
        Event::Clamp { from, to } => {
            serde_json::json!({ "event": "clamp", "from": from, "to": to })
        }
        Event::GrowHeap { to, wanted } => {
            serde_json::json!({ "event": "grow-heap", "to": to, "requested_bytes": wanted })
        }
        Event::SoftReferences { wanted } => {
            serde_json::json!({ "event": "soft-references", "requested_bytes": wanted })
        }
        Event::Forced => serde_json::json!({ "event": "forced" }),
        Event::Blocking { reason, waits } => {
            serde_json::json!({ "event": "blocking", "reason": reason, "waits": waits })
        }
        Event::Other => serde_json::json!({ "event": "other" }),
    };
    if let Some(fields) = value.as_object_mut() {
        fields.insert("time_ns".to_owned(), told.at.into());
        fields.insert("pid".to_owned(), told.pid.into());
    }
    value
}

/// Returns an event of a followed log as text, with the process name if there are several
/// processes.
fn line(console: &Console, told: &GcLogEvent, targets: &[Target]) -> Option<String> {
    let text = match &told.event {
        Event::Collection(logged) => {
            let collection = &logged.collection;
            let freed = collection.freed().map_or("-".to_owned(), signed);
            let mut text = format!("{freed:>10} freed");
            if let (Some(live), Some(total)) = (collection.live, collection.total) {
                let _ = write!(
                    text,
                    "  {:>10} live of {}",
                    ByteSize(live).to_string(),
                    ByteSize(total)
                );
            }
            if let Some(pause) = collection.pauses.iter().max() {
                let _ = write!(text, "  paused {}", milliseconds(*pause));
            }
            if let Some(took) = collection.duration {
                let _ = write!(text, "  took {}", milliseconds(took));
            }
            let _ = write!(text, "  {}", collection.reason);
            if !collection.collector.is_empty() {
                let _ = write!(text, ", {}", collection.collector);
            }
            text
        }
        Event::Blocked(blocked) => format!(
            "a thread waited {} for a collection",
            milliseconds(blocked.ns)
        ),
        Event::OutOfMemory(error) => format!(
            "{}: {}",
            console.styled(Style::Error, "OutOfMemoryError"),
            error.text
        ),
        Event::Clamp { to, .. } => {
            format!("the heap reached its growth limit of {}", ByteSize(*to))
        }
        Event::GrowHeap { to, .. } => {
            format!(
                "the heap grew to {}: an allocation did not fit",
                ByteSize(*to)
            )
        }
        Event::SoftReferences { .. } => "softly referenced objects are cleared".to_owned(),
        Event::Forced => "a signal requests a collection".to_owned(),
        Event::Blocking { .. } | Event::Other => return None,
    };
    let at = told.at.map_or_else(String::new, moment);
    let target = targets.iter().find(|target| Some(target.pid) == told.pid);
    Some(match target {
        Some(target) if targets.len() > 1 => {
            format!("{at}  {} {}  {text}", target.name, target.pid)
        }
        _ => format!("{at}  {text}"),
    })
}

/// Shows a requested collection.
pub(super) fn collected(console: &Console, collected: &Collected) {
    let Collected {
        target,
        trigger,
        refused,
        before,
        after,
        collection,
    } = collected;
    for (trigger, why) in refused {
        console.say(format_args!(
            "cannot request a GC {}: {why}",
            trigger.words()
        ));
    }
    let name = format!("{} {}", target.name, target.pid);
    console.data(format_args!(
        "{} collected, requested {}",
        console.styled(Style::Strong, name),
        trigger.words()
    ));
    let size = |measured: &Measured| match measured.total {
        Some(total) => format!("{} of {}", ByteSize(measured.live), ByteSize(total)),
        None => ByteSize(measured.live).to_string(),
    };
    if let Some(after) = after {
        console.data(format_args!(
            "  live: {}",
            console.styled(Style::Strong, size(after))
        ));
    }
    match before {
        Some(before) => {
            let ago = before.seconds_before.map_or_else(String::new, |seconds| {
                let ago = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or_default();
                format!(", {} earlier", HumanDuration(ago))
            });
            console.data(format_args!(
                "  after the previous logged collection{ago}: {}",
                size(before)
            ));
        }
        None => console.data("  no earlier collection was logged"),
    }
    let freed = collection.freed().map(signed);
    let took = collection.duration.map(milliseconds);
    if let (Some(freed), Some(took)) = (freed, took) {
        let pause = collection.pauses.iter().max().copied();
        let pause = pause.map_or_else(String::new, |ns| {
            format!(", longest pause {}", milliseconds(ns))
        });
        console.data(format_args!(
            "  freed: {freed} in {took}{pause} ({})",
            collection.collector
        ));
    }
}

/// Prints each collection as a CSV row.
pub(super) fn csv(console: &Console, report: &GcReport) {
    let mut text = String::from(
        "time_ns,pid,process,reason,collector,freed_objects,freed_bytes,freed_large_objects,\
         freed_large_bytes,live_bytes,total_bytes,pauses_ns,duration_ns,ours\n",
    );
    for (process, collections) in report.processes.iter().zip(&report.collections) {
        for timed in collections {
            let collection = &timed.logged.collection;
            let pauses: Vec<String> = collection.pauses.iter().map(u64::to_string).collect();
            let pauses = pauses.join(" ");
            text += &csv_line(&[
                Cell::maybe(timed.at),
                Cell::maybe(process.pid),
                Cell::text(process.name.as_deref()),
                Cell::Text(&collection.reason),
                Cell::Text(&collection.collector),
                Cell::maybe(collection.freed_objects),
                Cell::maybe(collection.freed_bytes),
                Cell::maybe(collection.freed_large.map(|large| large.0)),
                Cell::maybe(collection.freed_large.map(|large| large.1)),
                Cell::maybe(collection.live),
                Cell::maybe(collection.total),
                Cell::Text(&pauses),
                Cell::maybe(collection.duration),
                Cell::Text(if collection.ours { "true" } else { "false" }),
            ]);
        }
    }
    console.text(&text);
}
