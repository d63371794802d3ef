//! Live view in a pipe: a line of 80 columns for each process and sample, and CSV with a line for
//! each answer.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::super::run::{Figure, Live, Watched};
use super::block::clock;
use heaptap_base::untrusted::sanitize;
use heaptap_model::timeline::{Entry, Observation};
use serde_json::Value;

/// Figures of meminfo in a line, with their headings.
const PARTS: [(Figure, &str); 8] = [
    (Figure::Pss, "PSS"),
    (Figure::Java, "Java"),
    (Figure::Native, "Native"),
    (Figure::Code, "Code"),
    (Figure::Stack, "Stack"),
    (Figure::Graphics, "Graph"),
    (Figure::PrivateOther, "Other"),
    (Figure::System, "System"),
];

/// State of the printed lines.
#[derive(Default)]
pub(super) struct Rows {
    headed: bool,
    /// Time of the latest figure that was shown, by process.
    shown: BTreeMap<u32, u64>,
}

impl Rows {
    /// Returns the line of an event: a process started or exited, or samples are missing.
    pub(super) fn seen(&mut self, live: &Live, entry: &Entry) -> Option<String> {
        let said = match &entry.seen {
            Observation::Process(_) => {
                let process = of(live, entry.pid)?;
                let name = sanitize(&process.name);
                match (process.restarted, process.replaces) {
                    (true, Some(before)) => format!("{name} restarted, was pid {before}"),
                    (true, None) => format!("{name} restarted"),
                    (false, _) => format!("{name}"),
                }
            }
            Observation::Gone => {
                self.shown.remove(&entry.pid);
                format!("{} exited", sanitize(&of(live, entry.pid)?.name))
            }
            Observation::Gap(gap) => {
                let lasted = gap.until_ns.saturating_sub(entry.boot_ns);
                format!("no data for {}", clock(lasted))
            }
            _ => return None,
        };
        Some(format!("{}  {said}", begin(live, entry.boot_ns, entry.pid)))
    }

    /// Returns the lines of a round: one for each process with new figures.
    pub(super) fn round(&mut self, live: &Live) -> Vec<String> {
        let mut lines = Vec::new();
        for process in live.processes.iter().filter(|of| !of.gone) {
            let Some(latest) = process.series.values().map(|of| of.last_ns()).max() else {
                continue;
            };
            if self.shown.insert(process.pid, latest) == Some(latest) {
                continue;
            }
            if !std::mem::replace(&mut self.headed, true) {
                lines.extend(head());
            }
            lines.push(row(live, process));
        }
        lines
    }
}

fn begin(live: &Live, boot_ns: u64, pid: u32) -> String {
    let time = clock(boot_ns.saturating_sub(live.since_ns.unwrap_or(boot_ns)));
    match pid {
        0 => format!("{time:>6} {:>6}", ""),
        _ => format!("{time:>6} {pid:>6}"),
    }
}

/// Returns the line with the units, and the headings.
fn head() -> [String; 2] {
    let units = "MiB; VmRSS and swap from /proc, the rest from meminfo, `age` seconds old";
    let mut headings = format!(
        "{:>6} {:>6} {:>5} {:>5} {:>3}",
        "time", "pid", "VmRSS", "swap", "age"
    );
    for (_, heading) in PARTS {
        let _ = write!(headings, " {heading:>5}");
    }
    [units.to_owned(), headings]
}

fn row(live: &Live, process: &Watched) -> String {
    let last = |figure: Figure| process.series.get(&figure);
    let now = live.until_ns;
    let mut line = begin(live, now, process.pid);
    for figure in [Figure::Rss, Figure::Swap] {
        let text = last(figure).map_or_else(|| "-".to_owned(), |series| mebibytes(series.last));
        let _ = write!(line, " {text:>5}");
    }
    let age = last(Figure::Pss).map(|series| now.saturating_sub(series.last_ns()));
    let age = age.map_or_else(|| "-".to_owned(), |ns| (ns / 1_000_000_000).to_string());
    let _ = write!(line, " {age:>3}");
    for (figure, heading) in PARTS {
        let text = last(figure).map_or_else(|| "-".to_owned(), |series| mebibytes(series.last));
        let _ = write!(line, " {text:>width$}", width = heading.len().max(5));
    }
    line
}

/// Formats MiB in five columns.
#[expect(clippy::cast_precision_loss, reason = "five columns have few digits")]
fn mebibytes(bytes: i64) -> String {
    let mebibytes = bytes as f64 / f64::from(1 << 20);
    match mebibytes.abs() {
        ..999.95 => format!("{mebibytes:.1}"),
        _ => format!("{mebibytes:.0}"),
    }
}

fn of(live: &Live, pid: u32) -> Option<&Watched> {
    live.processes.iter().rev().find(|of| of.pid == pid)
}

/// CSV columns. `vm_rss` and the following ones are from the kernel (`/proc/PID/status`); `pss` and
/// the following ones, with `total_rss`, are from meminfo.
pub(super) const CSV_HEAD: &str = "boot_s,pid,process,source,vm_rss,rss_anon,rss_file,rss_shmem,\
    swap,oom_score_adj,pss,java,native,code,stack,graphics,private_other,system,total_rss,\
    device_ms,bytes,event";

/// Fields of the timeline in the columns from `source` to `total_rss`.
const RESIDENT: [&str; 7] = [
    "source",
    "rss",
    "anon",
    "file",
    "shmem",
    "swap",
    "oom_score_adj",
];
const MEMINFO: [&str; 16] = [
    "source",
    "",
    "",
    "",
    "",
    "",
    "",
    "total_pss",
    "java",
    "native",
    "code",
    "stack",
    "graphics",
    "private_other",
    "system",
    "total_rss",
];

/// Returns the CSV line of an answer, or of a process that started or exited.
pub(super) fn csv_line(live: &Live, entry: &Entry) -> Option<String> {
    let (fields, event): (&[&str], &str) = match &entry.seen {
        Observation::Resident(_) => (&RESIDENT, ""),
        Observation::Parts(_) => (&MEMINFO, ""),
        Observation::Process(process) if process.restarted => (&[], "restarted"),
        Observation::Process(_) => (&[], "runs"),
        Observation::Gone => (&[], "gone"),
        Observation::Gap(_) => (&[], "gap"),
        _ => return None,
    };
    let seen = serde_json::json!(entry.seen);
    let mut cells = fields.iter().map(|field| match &seen[*field] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        number => number.to_string(),
    });
    let cells: Vec<String> = MEMINFO
        .iter()
        .map(|_| cells.next().unwrap_or_default())
        .collect();
    let (seconds, nanos) = (entry.boot_ns / 1_000_000_000, entry.boot_ns % 1_000_000_000);
    let name = of(live, entry.pid).map_or("", |process| &process.name);
    let cost = entry.cost.map_or_else(
        || ",".to_owned(),
        |cost| format!("{},{}", cost.device_ns / 1_000_000, cost.bytes),
    );
    Some(format!(
        "{seconds}.{:02},{},{},{},{cost},{event}",
        nanos / 10_000_000,
        entry.pid,
        heaptap_export::csv::cell(name),
        cells.join(",")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_five_columns() {
        let cases = [
            (0, "0.0"),
            (81 << 20, "81.0"),
            (1_048_000_000, "999.5"),
            (1_048_550_000, "1000"),
            (12_345 << 20, "12345"),
            (-(3 << 19), "-1.5"),
        ];
        for (bytes, text) in cases {
            assert_eq!(mebibytes(bytes), text);
        }
        assert!(!mebibytes(i64::MIN).is_empty());
    }

    #[test]
    fn a_line_has_room_in_eighty_columns() {
        let head = head();
        assert!(head.iter().all(|line| line.len() <= 80), "{head:?}");
    }
}
