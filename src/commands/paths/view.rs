//! `heaptap paths`: paths to the objects of a class, or to one object, and the object itself.

use std::borrow::Cow;

use regex::Regex;

use super::args::Args;
use crate::commands::shared::{blocking, java as java_view};
use crate::console::exit::Outcome;
use crate::console::flags::context::Context;
use crate::console::table::{Table, shorten_scope};
use crate::console::{Console, Style};
use crate::heaps::java::facts::HeapFacts;
use crate::heaps::java::paths::{
    FieldRow, HolderRow, Limits, MissingTarget, ObjectReport, PathReport, PathsReport, Referred,
    Targets, paths,
};
use crate::heaps::java::{self, JavaError, JavaFile, OpenedJava, ProgressReporter};
use crate::heaps::selector::JavaInput;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::units::{ByteSize, counted, thousands};
use heaptap_base::untrusted::sanitize;
use heaptap_base::untrusted::shell::quoted_path;
use heaptap_model::heap_graph::Follow;

/// Runs the command.
///
/// # Errors
/// Returns an error if the input does not contain a Java heap or the object, or cannot be read.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    args.moment.check([&args.input])?;
    let input = args.moment.one(JavaInput::parse(&args.input))?;
    let options = args.java.options(Follow::default());
    let targets = match (&args.focus[..], &args.object) {
        ([], Some(id)) => Targets::Object(id.clone()),
        ([_, ..], _) => Targets::Classes(args.focus.clone()),
        ([], None) => {
            // No class would help if the input does not have a Java heap.
            let open = move |progress: &ProgressReporter| {
                JavaFile::open(&input.path, OpenedJava::Unread, options, progress).map(drop)
            };
            blocking::stepwise(ctx, open).await?;
            return Err(Failure::usage("missing `--focus REGEX` or `--object ID`")
                .with_help(list_classes(&args)));
        }
    };
    let limits = Limits {
        width: args.width,
        depth: args.depth,
        fields: args.limit.unwrap_or(FIELDS),
    };
    let asked = targets.clone();
    let found = blocking::stepwise(ctx, move |progress| -> Result<_, JavaError> {
        let heap = java::open(&input, OpenedJava::Unread, options, progress)?;
        heap.dominators();
        progress.begin("following references back to the roots");
        let report = paths(&heap, &asked, limits);
        Ok((
            report.map_err(|missing| (missing, HeapFacts::from_heap(&heap))),
            heap.class(),
        ))
    });
    let (report, class) = found.await?;
    let console = &ctx.console;
    let report = report.map_err(|(missing, heap)| {
        // The class might be in the part that is missing.
        java_view::warn(console, &heap);
        not_found(&missing, &args)
    })?;
    if console.is_json() {
        console.json(&report);
    } else {
        show(console, &report);
    }
    java_view::warn(console, &report.heap);
    Ok(Outcome::from(class))
}

fn not_found(missing: &MissingTarget, args: &Args) -> Failure {
    match missing {
        MissingTarget::Object => Failure::new(
            ErrorClass::Usage,
            "no-such-object",
            format!(
                "the heap does not contain object {}",
                args.object.as_deref().unwrap_or_default()
            ),
        )
        .with_help(format!(
            "use an ID of this dump; `heaptap top {} --by object --json` lists the largest objects",
            quoted_path(&args.input)
        )),
        MissingTarget::Class { near } => {
            let patterns: Vec<&str> = args.focus.iter().map(Regex::as_str).collect();
            let patterns = patterns.join("` or `");
            Failure::new(
                ErrorClass::Usage,
                "no-such-class",
                format!("the heap does not contain a class that matches `{patterns}`"),
            )
            .with_help(match near {
                Some(near) => format!("did you mean {}?", sanitize(near)),
                None => list_classes(args),
            })
        }
    }
}

fn list_classes(args: &Args) -> String {
    format!(
        "`heaptap top {} --heap java --by class` lists the classes",
        quoted_path(&args.input)
    )
}

fn show(console: &Console, report: &PathsReport) {
    java_view::heading(console, &report.heap);
    match &report.object {
        Some(object) => show_object(console, &report.heap, object),
        None => show_targets(console, report),
    }
    if let Some(path) = &report.shortest {
        let what = match (&report.object, &report.leak) {
            (Some(_), _) => "Shortest path to the object".to_owned(),
            (None, Some(leak)) => format!(
                "Shortest path to a leaking object: {}{}, {}",
                match leak.certainty {
                    "confirmed" => "",
                    "likely" => "likely ",
                    _ => "possibly ",
                },
                leak.what,
                sanitize(&leak.reason)
            ),
            (None, None) if report.reachable.count == 1 => "Shortest path".to_owned(),
            (None, None) => "Shortest path to the largest object".to_owned(),
        };
        console.section(Style::Strong, what);
        show_path(console, path);
    }
    if report.holders.len() > 1 {
        let what = "All references to them, back to the GC roots";
        console.section(Style::Strong, what);
        holders(&report.holders).show(console);
    }
    let mut links = report.holders.iter().filter_map(|row| row.via.as_ref());
    let mut notes = Vec::new();
    if links.any(|link| link.text.contains("[*]")) {
        notes.push(java_view::ANY_ELEMENT);
    }
    if report.holders.len() > 1 {
        notes.push("referenced: number of objects that they refer to");
    }
    if report.has_native && report.shortest.is_some() {
        notes.push(java_view::WITH_NATIVE);
    }
    console.footnotes(&notes);
}

fn show_targets(console: &Console, report: &PathsReport) {
    let figures = &report.reachable;
    let mut line = format!(
        "{} × {}",
        thousands(figures.count),
        console.styled(Style::Strong, &report.targets)
    );
    if figures.count > 0 {
        line += &format!(
            " · {} shallow{}, {} retained",
            ByteSize(figures.shallow_bytes),
            match figures.native_bytes {
                0 => String::new(),
                bytes => format!(" + {} native", ByteSize(bytes)),
            },
            ByteSize(figures.retained_total()),
        );
        if let Some(share) = figures
            .retained_total()
            .saturating_mul(100)
            .checked_div(report.heap_bytes)
        {
            line += &format!(" ({share}%)");
        }
    }
    console.data(line);
    if report.unreachable > 0 {
        console.data(format_args!(
            "{} {}",
            counted(report.unreachable, "more is", "more are"),
            java_view::state_of_unreachable(&report.heap)
        ));
    }
    if figures.count == 0 && report.unreachable == 0 {
        console.data("no matching class has objects");
    }
}

/// Maximum number of steps of a path to show; `--json` has more.
const STEPS: usize = 60;

/// Fields, elements and referrers of an object that are shown.
const FIELDS: usize = 60;

/// The path as LeakCanary draws it, of a long one both ends.
fn show_path(console: &Console, path: &PathReport) {
    let dim = |text: &str| console.styled(Style::Dim, text.to_owned()).to_string();
    let root = path.root.as_ref().map_or("none", |root| &root.text);
    console.data(format_args!("{}", dim("┬───")));
    console.data(format_args!("{} root: {root}", dim("│")));
    let width = console.stdout_width();
    let hidden = path.steps.len().saturating_sub(STEPS);
    let middle = STEPS / 2..STEPS / 2 + hidden;
    for (at, step) in path.steps.iter().enumerate() {
        let more = match hidden {
            0 => step.left_out,
            _ if at == middle.end => path.steps[middle.start..=at]
                .iter()
                .map(|step| step.left_out + 1)
                .sum::<u64>()
                .saturating_sub(1),
            _ => 0,
        };
        if middle.contains(&at) {
            continue;
        }
        if more > 0 {
            let text = format!("⋮    {} more", thousands(more));
            console.data(format_args!("{}", dim(&text)));
        }
        if let Some(reference) = step.reference() {
            console.data(format_args!("{} ↓ {reference}", dim("│   ")));
        }
        let is_last = at + 1 == path.steps.len();
        let branch = if is_last { "╰→" } else { "├─" };
        let text = step.text.as_deref().map(quoted).unwrap_or_default();
        let about = match step.retained_bytes {
            0 => format!("{}{text}", step.id),
            bytes => format!("{}, retains {}{text}", step.id, ByteSize(bytes)),
        };
        let room = width.map_or(usize::MAX, |width| width.saturating_sub(4));
        let name = shorten_scope(&step.name, room).unwrap_or(Cow::Borrowed(&step.name));
        let taken = console::measure_text_width(&name) + console::measure_text_width(&about) + 2;
        let name = match is_last {
            true => console.styled(Style::Strong, name).to_string(),
            false => name.into_owned(),
        };
        if taken <= room {
            console.laid_out(format_args!("{} {name}  {}", dim(branch), dim(&about)));
            continue;
        }
        console.laid_out(format_args!("{} {name}", dim(branch)));
        let bar = if is_last { " " } else { "│" };
        console.hanging(format_args!("{}      ", dim(bar)), dim(&about));
    }
}

/// Returns a string in quotes after a blank, with control characters escaped.
fn quoted(text: &str) -> String {
    format!("  \"{}\"", escaped(text))
}

fn escaped(text: &str) -> String {
    text.chars()
        .flat_map(|c| match c {
            '"' | '\\' => vec!['\\', c],
            c if c.is_control() => c.escape_debug().collect(),
            c => vec![c],
        })
        .collect()
}

/// Returns the table of references, from the objects outwards. Rows in a chain of single referrers
/// keep their indent.
fn holders(rows: &[HolderRow]) -> Table {
    let mut table =
        Table::new(&["objects", "referenced", "object, and what refers to it"]).keeping_remarks();
    let mut siblings = vec![0usize; rows.len()];
    for row in rows {
        if let Some(above) = row.above {
            siblings[above] += 1;
        }
    }
    // Indent of each row.
    let mut indent = vec![0usize; rows.len()];
    for (at, row) in rows.iter().enumerate() {
        let mut lead = String::new();
        if let Some(above) = row.above {
            let alone = siblings[above] == 1 && rows[above].hidden == 0;
            indent[at] = indent[above] + usize::from(!alone);
            lead = format!("{}← ", "  ".repeat(indent[at]));
        }
        let mut name = String::new();
        if let Some(via) = &row.via {
            name += &match via.kind {
                "static" => format!("static {}", via.text),
                _ => via.text.clone(),
            };
        } else {
            name.clone_from(&row.name);
        }
        let holds = match row.holds {
            0 => String::new(),
            holds => thousands(holds),
        };
        table.row(vec![thousands(row.count), holds], name);
        table.lead(lead);
        let mut remarks = Vec::new();
        for root in &row.roots {
            remarks.push(match root.count == row.count {
                true => format!("root: {}", root.root.text),
                false => format!("{} of them root: {}", root.count, root.root.text),
            });
        }
        let via = row.via.as_ref();
        if !row.elsewhere
            && via.is_some_and(|via| via.class != row.name && !row.name.ends_with(&via.class))
        {
            remarks.insert(0, format!("of {}", row.name));
        }
        if row.elsewhere {
            remarks.push(format!("{}: shown elsewhere", row.name));
        }
        if row.hidden > 0 {
            remarks.push(format!(
                "{} to it (`--width`, `--depth`)",
                counted(row.hidden as u64, "more refers", "more refer")
            ));
        }
        table.remark(remarks.join("; "));
    }
    table
}

fn show_object(console: &Console, heap: &HeapFacts, object: &ObjectReport) {
    let line = |what: &str, text: String| {
        let what = console.styled(Style::Dim, format!("{what:<13}"));
        console.data(format_args!("{what}{text}"));
    };
    console.data(format_args!(
        "{} {}",
        console.styled(Style::Strong, &object.name),
        object.id
    ));
    if object.ancestry.len() > 1 {
        line("extends", object.ancestry[1..].join(" ← "));
    }
    if !object.heap.is_empty() {
        line("heap", object.heap.to_owned());
    }
    let figures = &object.figures;
    line("shallow", ByteSize(figures.shallow_bytes).to_string());
    if figures.native_bytes > 0 {
        line("native", ByteSize(figures.native_bytes).to_string());
    }
    match figures.retained_count {
        Some(count) => line(
            "retained",
            format!(
                "{} in {}",
                java_view::retained(
                    figures.retained_bytes.unwrap_or(0),
                    figures.retained_native_bytes.unwrap_or(0),
                ),
                counted(count, "object", "objects")
            ),
        ),
        None => line(
            "retained",
            format!("nothing: {}", java_view::state_of_unreachable(heap)),
        ),
    }
    if let Some(hash) = object.identity_hash {
        line("hash", format!("{hash:x}"));
    }
    if let Some(root) = &object.root {
        line("root", root.text.clone());
    }
    if let Some(dominator) = &object.dominator {
        line("dominated by", referred(dominator));
    }
    if let Some(length) = object.length {
        line("length", thousands(length));
    }
    if let Some(text) = &object.text {
        line("text", quoted(text).trim_start().to_owned());
    }
    if !object.elements.is_empty() {
        let more = object.length.unwrap_or(0) > object.elements.len() as u64;
        let dots = if more { ", …" } else { "" };
        line("elements", format!("{}{dots}", object.elements.join(", ")));
    }
    if let Some(site) = &object.allocated_at {
        line("allocated by", format!("thread {}", site.thread));
        for frame in &site.frames {
            line("", frame.clone());
        }
    }
    if !object.fields.is_empty() {
        let mut table = Table::new(&["field", "value"]);
        for field in &object.fields {
            table.row(vec![field_name(field)], value(field));
            if let Some(class) = field
                .declared_in
                .as_ref()
                .filter(|c| **c != object.ancestry[0])
            {
                table.remark(format!("of {class}"));
            }
        }
        console.data("");
        table.show(console);
        more(console, object.fields.len() as u64, object.fields_total);
    }
    if !object.referrers.is_empty() {
        let mut table = Table::new(&["id", "referenced by"]);
        for referrer in &object.referrers {
            table.row(vec![referrer.object.id.clone()], referrer.via.text.clone());
        }
        console.data("");
        table.show(console);
        more(
            console,
            object.referrers.len() as u64,
            object.referrers_total,
        );
    }
}

fn more(console: &Console, shown: u64, total: u64) {
    if total > shown {
        let more = format!("… and {} more (`-l`)", thousands(total - shown));
        console.in_style(Style::Dim, more);
    }
}

fn field_name(field: &FieldRow) -> String {
    match (&field.name, field.element) {
        (_, Some(index)) => format!("[{index}]"),
        (Some(name), None) if field.is_static => format!("static {name}"),
        (Some(name), None) => name.clone(),
        (None, None) => "?".to_owned(),
    }
}

fn value(field: &FieldRow) -> String {
    match (&field.object, &field.value) {
        (Some(object), _) => referred(object),
        (None, Some(value)) => value.clone(),
        (None, None) => "null".to_owned(),
    }
}

fn referred(object: &Referred) -> String {
    let name = match (object.length, object.name.strip_suffix("[]")) {
        (Some(length), Some(element)) => format!("{element}[{length}]"),
        _ => object.name.clone(),
    };
    let text = object.text.as_deref().map(quoted).unwrap_or_default();
    format!("{name} {}{text}", object.id)
}
