//! Memory at each label and at the end: parts of the process, live set of the Java heap, and
//! profile. A static version of the viewer's timeline.

use std::ops::Range;
use std::time::Duration;

use super::super::data::header::{Dump, Header};
use super::super::data::timeline::{Process, Rows, Timeline};
use super::super::html::{Foreign, Html};
use super::callsites::size;
use heaptap_base::units::HumanDuration;
use heaptap_model::profile::DumpKind;

/// Maximum distance of a reading from its label; rows are read every ten seconds.
const NEAR_MS: f64 = 30_000.0;
/// Distance above which the row contains a note.
const APART_MS: f64 = 2000.0;
/// Label of the captures at the end.
const END: &str = "";
/// Maximum number of rows.
const MAX_COUNT: usize = 200;

/// Writes the section; nothing if the recording has no companion data.
pub(super) fn write(html: &mut Html, header: &Header) {
    let mut is_begun = false;
    let only = header.timeline.iter().map(|timeline| Recording {
        name: None,
        timeline,
        dumps: 0..header.dumps.len(),
    });
    let each = header.timelines.iter().map(|recorded| Recording {
        name: Some(&recorded.name),
        timeline: &recorded.timeline,
        dumps: recorded.from..recorded.to,
    });
    for recording in only.chain(each) {
        let (rows, left_out) = recording.rows(header);
        if rows.is_empty() {
            continue;
        }
        if !is_begun {
            html.add(format_args!("<h2 id=\"moments\">Memory over time</h2>\n"));
            is_begun = true;
        }
        recording.table(html, rows, left_out);
    }
}

/// Recording with its readings. The name distinguishes it from others on the page.
struct Recording<'a> {
    name: Option<&'a str>,
    timeline: &'a Timeline,
    dumps: Range<usize>,
}

impl Recording<'_> {
    /// Returns the rows at each label and at the end, and the number of omitted earlier rows.
    fn rows(&self, header: &Header) -> (Vec<Vec<String>>, usize) {
        let timeline = self.timeline;
        let labels = timeline.labels.iter();
        let mut moments: Vec<(f64, &str)> = labels.map(|label| (label.ms, &*label.text)).collect();
        moments.push((timeline.to_ms, END));
        moments.sort_by(|a, b| a.0.total_cmp(&b.0));
        let dumps = header.dumps.get(self.dumps.clone()).unwrap_or_default();
        let zero_ms = super::dumps::zero(dumps, Some(timeline)).unwrap_or_default();
        let mut rows = Vec::new();
        for (ms, label) in moments {
            for life in timeline.processes.iter().filter(|life| is_there(life, ms)) {
                rows.extend(self.row(header, life, (ms, label), zero_ms));
            }
        }
        let left_out = rows.len().saturating_sub(MAX_COUNT);
        rows.drain(..left_out);
        (rows, left_out)
    }

    fn table(&self, html: &mut Html, rows: Vec<Vec<String>>, left_out: usize) {
        let of = match self.name {
            Some(name) => format!("{}: ", Foreign(name)),
            None => String::new(),
        };
        let caption = match left_out {
            0 => format!(
                "{of}The capture of each label and of the end, otherwise the nearest readings. \
                 PSS counts shared pages proportionally. It includes swapped memory, so it can \
                 exceed RSS. “Java live” is the live set after the preceding GC."
            ),
            n => format!("{of}The last {MAX_COUNT} rows; {n} earlier ones are not shown."),
        };
        let headings = [
            "label",
            "process",
            "#time",
            "#PSS",
            "#Java",
            "#native",
            "#code",
            "#graphics",
            "#other",
            "#RSS",
            "#Java live",
            "#heapprofd",
            "notes",
        ];
        html.table(&caption, &headings, rows);
    }

    /// Returns the row of a process; `None` if there are no readings of it near that time.
    fn row(
        &self,
        header: &Header,
        life: &Process,
        (ms, label): (f64, &str),
        zero_ms: f64,
    ) -> Option<Vec<String>> {
        let near = |rows: &Rows| {
            let row = rows.nearest(ms)?;
            let apart = rows.ms.get(row)? - ms;
            (apart.abs() <= NEAR_MS).then_some((row, apart))
        };
        let apart = |row: usize| Some((row, life.parts.ms.get(row)? - ms));
        let captured = self.timeline.captured(life, label, ms).and_then(apart);
        let parts = captured.or_else(|| near(&life.parts));
        // The resident memory of the same reading is comparable with its PSS.
        let rss = parts.and_then(|(row, _)| life.parts.value("total_rss", row));
        let resident = near(&life.resident).filter(|_| rss.is_none());
        let live =
            last_before(&life.collections, ms).and_then(|row| life.collections.value("live", row));
        let held = self.held(header, life.pid, ms);
        if parts.is_none() && resident.is_none() && live.is_none() && held.is_none() {
            return None;
        }
        let bytes = |bytes: Option<i64>| bytes.map_or_else(String::new, size);
        let part = |column: &str| bytes(parts.and_then(|(row, _)| life.parts.value(column, row)));
        let rest = parts.and_then(|(row, _)| {
            let columns = ["stack", "private_other", "system"];
            let known = columns.map(|column| life.parts.value(column, row));
            let sum = known.into_iter().flatten().fold(0i64, i64::saturating_add);
            known.iter().any(Option::is_some).then_some(sum)
        });
        let apart = [parts, resident]
            .into_iter()
            .flatten()
            .map(|(_, apart)| apart)
            .max_by(|a, b| a.abs().total_cmp(&b.abs()))
            .filter(|apart| apart.abs() > APART_MS);
        let note = apart.map(|apart| {
            let length = Duration::try_from_secs_f64(apart.abs() / 1000.0).unwrap_or_default();
            let side = if apart < 0.0 { "before" } else { "after" };
            let verb = captured.map_or("read", |_| "captured");
            format!("{verb} {} {side}", HumanDuration(length))
        });
        let who = match life.process.as_str() {
            "" => life.pid.to_string(),
            process => format!("{} ({})", Foreign(process), life.pid),
        };
        Some(vec![
            match label {
                END => "end".to_owned(),
                label => Foreign(label).to_string(),
            },
            who,
            format!("+{:.1} s", (ms - zero_ms) / 1000.0),
            part("total_pss"),
            part("java"),
            part("native"),
            part("code"),
            part("graphics"),
            bytes(rest),
            bytes(rss.or_else(|| life.resident.value("rss", resident?.0))),
            bytes(live),
            bytes(held),
            note.unwrap_or_default(),
        ])
    }

    /// Returns the unreleased bytes of a process's heaps, from the dump of each heap nearest to the
    /// time.
    fn held(&self, header: &Header, pid: u32, ms: f64) -> Option<i64> {
        let mut sum = None;
        for series in header.series.iter().filter(|s| s.pid == u64::from(pid)) {
            // A process ID in another recording is a different process.
            let own = series.dumps.iter().filter(|at| self.dumps.contains(at));
            let dumps = own.filter_map(|&at| header.dumps.get(at));
            let apart = |dump: &&Dump| dump.time_ms.map_or(f64::MAX, |at| (at - ms).abs());
            let nearest = dumps.min_by(|a, b| apart(a).total_cmp(&apart(b)));
            let space = nearest
                .filter(|dump| apart(dump) <= NEAR_MS && dump.kind == DumpKind::Cumulative)
                .and_then(|dump| {
                    let is_space = |m: &&super::super::data::header::Measure| {
                        m.view.as_deref() == Some("space")
                    };
                    dump.measures.iter().find(is_space)
                });
            if let Some(space) = space {
                sum = Some(sum.unwrap_or(0i64).saturating_add(space.total));
            }
        }
        sum
    }
}

fn is_there(life: &Process, ms: f64) -> bool {
    life.from_ms - NEAR_MS <= ms && ms <= life.gone_ms.unwrap_or(life.to_ms) + APART_MS
}

/// Returns the last row at or before a time.
fn last_before(rows: &Rows, ms: f64) -> Option<usize> {
    rows.ms.partition_point(|at| *at <= ms).checked_sub(1)
}
