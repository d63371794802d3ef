//! A Java heap on a page: a summary for readers without scripts and for print, and the data of the viewer,
//! which are made elsewhere.

pub mod change;
mod leaks;

use super::data::header::{Fact, JavaHeap, JavaLeak};
use super::data::milliseconds;
use super::date::date;
use super::html::{Foreign, Html};
use change::Change;
use heaptap_analyze::histogram::{Histogram, Row, Sums};
use heaptap_analyze::leaks::{LeakGroup, Leaks};
use heaptap_base::units::{ByteSize, counted, thousands};
use heaptap_model::heap_graph::{DumpSource, HeapGraph, SizeModel};
use std::cmp::Reverse;

/// Maximum rows of the table of classes; the viewer has all.
const ROWS: usize = 20;
/// Maximum number of leaks in the header.
const MAX_LEAKS: usize = 100;

/// Contents of the summary, for readers without scripts and for print.
pub struct JavaPage<'a> {
    /// Name of the heap: the input and its label.
    pub name: String,
    /// Number among the Java heaps of its process, from 1.
    pub number: u32,
    /// Label of its snapshot.
    pub label: Option<String>,
    /// Milliseconds since 1970; `None` if unknown.
    pub wall_ms: Option<f64>,
    /// Heap graph, for names.
    pub graph: &'a HeapGraph,
    /// Warnings about the dump, with help.
    pub warnings: Vec<(String, Option<String>)>,
    /// Reachable objects by class.
    pub classes: &'a Histogram,
    /// Leaking objects with their holders.
    pub leaks: &'a Leaks,
    /// Changes since the dump that it is compared with.
    pub change: Option<Change>,
}

/// Java heap as part of a page.
#[derive(Debug)]
pub struct JavaPart {
    /// Summary.
    pub(super) body: String,
    /// Section of the data.
    pub(super) data: Vec<u8>,
    /// Entry in the header; the name of the section is set later.
    pub(super) entry: JavaHeap,
}

impl JavaPart {
    /// Returns the name of the heap's process or file.
    pub fn name(&self) -> &str {
        &self.entry.name
    }

    /// Returns the shallow and native bytes of reachable objects.
    pub fn totals(&self) -> (u64, u64) {
        (self.entry.shallow, self.entry.native)
    }
}

/// Creates the part of a heap. `number` is unique within a page; `data` are the answers for the viewer, as
/// JSON in gzip.
pub fn part(page: &JavaPage<'_>, number: usize, data: Vec<u8>) -> JavaPart {
    let mut html = Html::default();
    head(&mut html, page, number);
    if let Some(change) = &page.change {
        change::write(&mut html, change, number);
    }
    leaks::write(&mut html, page.leaks, number);
    classes(&mut html, page, number);
    let facts = &page.graph.facts;
    let total = &page.classes.total;
    // The summary of the page shows leaks of the app.
    let leaks = page.leaks.groups.iter();
    let leaks = leaks
        .filter(|group| group.library.is_none())
        .take(MAX_LEAKS);
    let leak = |group: &LeakGroup| JavaLeak {
        class: group.class.clone(),
        retained: group.kept.total_bytes(),
    };
    JavaPart {
        body: html.into_body(),
        data,
        entry: JavaHeap {
            section: String::new(),
            name: process(page).to_owned(),
            dump: page.name.clone(),
            number: page.number,
            label: page.label.clone(),
            pid: facts.pid,
            process: facts.process.clone(),
            time_ms: (facts.source == DumpSource::HeapGraph).then(|| milliseconds(facts.time_ns)),
            wall_ms: page.wall_ms,
            objects: total.count,
            shallow: total.shallow_bytes,
            native: total.native_bytes,
            unreachable: own_bytes(&Sums::of_unreachable(page.graph, total)),
            compared_with: page.change.as_ref().map(|change| change.before.clone()),
            leaks: leaks.map(leak).collect(),
        },
    }
}

/// Returns the bytes of objects themselves, Java and native.
fn own_bytes(sums: &Sums) -> u64 {
    sums.shallow_bytes.saturating_add(sums.native_bytes)
}

/// Returns the process of the heap, or the file name if it is unknown.
fn process<'a>(page: &'a JavaPage<'_>) -> &'a str {
    match page.graph.facts.process.as_str() {
        "" => page.name.rsplit(['/', '\\']).next().unwrap_or_default(),
        process => process,
    }
}

fn facts(page: &JavaPage<'_>) -> Vec<Fact> {
    let facts = &page.graph.facts;
    let mut all = Vec::new();
    let mut fact = |name: &str, value: String| {
        all.push(Fact {
            name: name.to_owned(),
            value,
        });
    };
    fact("Dump", page.name.clone());
    if let Some(label) = &page.label {
        fact("Label", label.clone());
    }
    if let Some(pid) = facts.pid {
        fact("Process ID", pid.to_string());
    }
    if let Some(when) = page.wall_ms.and_then(date) {
        fact("Dumped", when);
    }
    fact(
        "Source",
        match &facts.source {
            DumpSource::HeapGraph => "heap graph of android.java_hprof".to_owned(),
            DumpSource::Hprof {
                version, id_bytes, ..
            } => {
                format!("HPROF, {version}, {id_bytes}-byte IDs")
            }
        },
    );
    fact("Sizes", size_model(&facts.source, facts.sizes).to_owned());
    if let Some(reason) = &facts.reason {
        fact("Reason", reason.clone());
    }
    all
}

/// Describes the model of shallow sizes.
fn size_model(source: &DumpSource, sizes: SizeModel) -> &'static str {
    match (source, sizes) {
        (DumpSource::HeapGraph, _) => "as the runtime reports them",
        (_, SizeModel::Dump) => "as in the dump: fields and elements, without array headers",
        (_, SizeModel::Mat) => "as in Eclipse MAT: with headers and alignment",
        (_, SizeModel::Art) => "as in ART: with headers and alignment",
        (_, SizeModel::Hotspot) => "as in HotSpot (jmap -histo)",
    }
}

fn head(html: &mut Html, page: &JavaPage<'_>, number: usize) {
    let at = match &page.label {
        Some(label) => format!(" at {}", Foreign(label)),
        None => String::new(),
    };
    let grew = match page.change {
        Some(_) => format!("<a href=\"#grew{number}\">Growth</a> "),
        None => String::new(),
    };
    html.add(format_args!(
        "<h2 id=\"java{number}\">Java heap of {}{at}</h2>\n<nav aria-label=\"Java heap {}\">{grew}\
         <a href=\"#leaks{number}\">Leaks</a> <a href=\"#classes{number}\">Classes</a></nav>\n",
        Foreign(process(page)),
        number + 1
    ));
    let total = &page.classes.total;
    let tile = |html: &mut Html, figure: String, what: &str| {
        html.add(format_args!(
            "<div class=\"tile\"><b>{figure}</b>{what}</div>"
        ));
    };
    html.add(format_args!("<div class=\"tiles\">"));
    tile(
        html,
        ByteSize(total.shallow_bytes).to_string(),
        "reachable Java objects",
    );
    if total.native_bytes > 0 {
        tile(
            html,
            ByteSize(total.native_bytes).to_string(),
            "native memory they own",
        );
    }
    tile(html, thousands(total.count), "reachable objects");
    let garbage = Sums::of_unreachable(page.graph, total);
    if garbage.count > 0 {
        let unreachable = ByteSize(own_bytes(&garbage)).to_string();
        let objects = counted(garbage.count, "unreachable object", "unreachable objects");
        tile(html, unreachable, &format!("in {objects}"));
    }
    html.add(format_args!("</div>\n"));
    if own_bytes(&garbage) > own_bytes(total) {
        let end = match page.graph.facts.losses.lacks_objects() {
            true => "Objects are missing from the dump, so others can look unreachable.",
            false => "The next GC frees it.",
        };
        html.add(format_args!(
            "<p class=\"warn\">Most of this heap is unreachable: {} of {}. {end}</p>\n",
            ByteSize(own_bytes(&garbage)),
            ByteSize(own_bytes(&garbage).saturating_add(own_bytes(total))),
        ));
    }
    html.add(format_args!("<dl>"));
    for fact in facts(page) {
        html.add(format_args!(
            "<dt>{}</dt><dd>{}</dd>",
            fact.name,
            Foreign(&fact.value)
        ));
    }
    html.add(format_args!("</dl>\n"));
    for (message, help) in &page.warnings {
        html.add(format_args!("<p class=\"warn\">{}", Foreign(message)));
        if let Some(help) = help {
            html.add(format_args!("<br>{}", Foreign(help)));
        }
        html.add(format_args!("</p>\n"));
    }
}

fn classes(html: &mut Html, page: &JavaPage<'_>, number: usize) {
    html.add(format_args!("<h3 id=\"classes{number}\">Classes</h3>\n"));
    let mut rows: Vec<&Row> = page.classes.rows.iter().collect();
    rows.sort_by_key(|row| (Reverse(row.sums.retained.total_bytes()), &row.name));
    let left_out = rows.len().saturating_sub(ROWS);
    let has_native = page.classes.total.native_bytes > 0;
    let what = match has_native {
        true => "retained size, which includes native memory",
        false => "retained size",
    };
    let caption = match left_out {
        0 => format!("By {what}."),
        n => format!(
            "The {ROWS} largest by {what}; {} not shown.",
            counted(n as u64, "more is", "more are")
        ),
    };
    let mut headings = vec!["class", "#objects", "#shallow"];
    if has_native {
        headings.push("#native");
    }
    headings.push("#retained");
    let rows = rows.into_iter().take(ROWS).map(|row| {
        let mut cells = vec![
            Foreign(&row.name).to_string(),
            thousands(row.sums.count),
            ByteSize(row.sums.shallow_bytes).to_string(),
        ];
        if has_native {
            cells.push(ByteSize(row.sums.native_bytes).to_string());
        }
        cells.push(ByteSize(row.sums.retained.total_bytes()).to_string());
        cells
    });
    html.table(&caption, &headings, rows);
}
