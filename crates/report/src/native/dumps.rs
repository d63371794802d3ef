//! Every dump with its sums, and the libraries without symbols.

use std::ops::Range;

use super::super::data::header::{Dump, Header, Measure};
use super::super::data::timeline::Timeline;
use super::super::html::{Foreign, Html};
use super::callsites::size;
use heaptap_base::units::{ByteSize, counted, thousands};
use heaptap_model::profile::DumpKind;

/// Maximum number of listed libraries.
const LIBRARIES: usize = 40;

/// Writes the list of dumps.
pub(super) fn write(html: &mut Html, header: &Header) {
    if header.dumps.is_empty() {
        return;
    }
    html.add(format_args!("<h2 id=\"dumps\">Dumps</h2>\n"));
    let own = |of: &Range<usize>| header.dumps.get(of.clone()).unwrap_or_default();
    let each = header.timelines.iter().map(|of| {
        let dumps = of.from..of.to;
        (dumps.clone(), zero(own(&dumps), Some(&of.timeline)))
    });
    let all = 0..header.dumps.len();
    let zero = zero(&header.dumps, header.timeline.as_ref());
    let zeros: Vec<(Range<usize>, Option<f64>)> = each.chain([(all, zero)]).collect();
    let rows = header.dumps.iter().enumerate().map(|(place, dump)| {
        let mut notes: Vec<String> = Vec::new();
        let zero = zeros.iter().find(|(dumps, _)| dumps.contains(&place));
        match dump.kind {
            DumpKind::AtMaximum => notes.push("at the maximum".to_owned()),
            DumpKind::AllocationsOnly => notes.push("allocations only".to_owned()),
            DumpKind::JavaHeap => notes.push("Java heap".to_owned()),
            DumpKind::Difference => notes.push("difference of two dumps".to_owned()),
            DumpKind::Cumulative => {}
        }
        let flags = dump.flags.iter().filter(|flag| *flag != "from_startup");
        notes.extend(flags.map(|flag| flag.replace('_', " ")));
        if dump.unfinished {
            notes.push("incomplete: values are lower bounds".to_owned());
        }
        vec![
            dump.number.to_string(),
            dump.label
                .as_deref()
                .map_or_else(String::new, |label| Foreign(label).to_string()),
            match (dump.time_ms, zero) {
                (Some(time), Some((_, Some(zero)))) => format!("+{:.1} s", (time - zero) / 1000.0),
                _ => String::new(),
            },
            Foreign(&process(dump)).to_string(),
            Foreign(&dump.heap).to_string(),
            total(dump, "space"),
            total(dump, "objects"),
            total(dump, "alloc_space"),
            match dump.interval {
                0 => "unknown".to_owned(),
                1 => "exact".to_owned(),
                interval => ByteSize(interval).to_string(),
            },
            notes.join(", "),
        ]
    });
    let (caption, counts) = match header.dumps.iter().any(|dump| dump.counts_samples) {
        true => (
            "In chronological order. Counts are sampled allocations.",
            "#sampled",
        ),
        false => ("In chronological order.", "#count"),
    };
    html.table(
        caption,
        &[
            "dump",
            "label",
            "#time",
            "process",
            "heap",
            "#unreleased",
            counts,
            "#allocated",
            "#sampling interval",
            "notes",
        ],
        rows,
    );
}

/// Returns the time that the page counts from: the first dump or reading of a recording.
pub(super) fn zero(dumps: &[Dump], timeline: Option<&Timeline>) -> Option<f64> {
    let times = dumps.iter().filter_map(|dump| dump.time_ms);
    times.chain(timeline.map(|of| of.from_ms)).reduce(f64::min)
}

fn process(dump: &Dump) -> String {
    match (dump.process.as_str(), dump.pid) {
        (name, 0) => name.to_owned(),
        ("", pid) => pid.to_string(),
        (name, pid) => format!("{name} ({pid})"),
    }
}

fn total(dump: &Dump, view: &str) -> String {
    let is_it = |measure: &&Measure| measure.view.as_deref() == Some(view);
    match dump.measures.iter().find(is_it) {
        Some(measure) if measure.unit == "bytes" => size(measure.total),
        Some(measure) => thousands(measure.total),
        None => String::new(),
    }
}

/// Writes the section about missing symbols.
pub(super) fn symbols(html: &mut Html, header: &Header) {
    let Some(symbols) = &header.symbolization else {
        return;
    };
    let frames = symbols.frames_named.saturating_add(symbols.frames_unnamed);
    if frames == 0 {
        return;
    }
    html.add(format_args!("<h2 id=\"symbols\">Symbols</h2>\n<p>"));
    match symbols.frames_unnamed {
        0 => html.add(format_args!(
            "All {} frames have function names",
            thousands(frames)
        )),
        unnamed => html.add(format_args!(
            "{} of {} frames do not have a function name; {:.1}% of the bytes were allocated in \
             such frames",
            thousands(unnamed),
            thousands(frames),
            symbols.leaf_share_unnamed * 100.0
        )),
    }
    html.add(format_args!(
        "; {} frames have file and line.</p>\n",
        thousands(symbols.frames_with_lines)
    ));
    if symbols.missing.is_empty() {
        return;
    }
    let rows = symbols.missing.iter().take(LIBRARIES).map(|library| {
        vec![
            Foreign(&library.path).to_string(),
            match library.build_id.as_str() {
                "" => "unknown".to_owned(),
                id => format!("<code>{}</code>", Foreign(id)),
            },
            thousands(library.frames),
            format!("{:.1}%", library.share * 100.0),
        ]
    });
    let left_out = symbols.missing.len().saturating_sub(LIBRARIES);
    let caption = match left_out {
        0 => "Libraries without symbols, by bytes in callstacks that contain them.".to_owned(),
        n => format!(
            "Libraries without symbols, by bytes in callstacks that contain them; {} not shown.",
            counted(n as u64, "more is", "more are")
        ),
    };
    html.table(
        &caption,
        &["library", "build ID", "#frames", "#in stacks"],
        rows,
    );
}
