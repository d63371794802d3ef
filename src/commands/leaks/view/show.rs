//! Shows leaks, growth and waste as text.

use super::waste;
use crate::commands::shared::java as java_view;
use crate::commands::shared::java::kept;
use crate::console::table::{Table, show_hidden};
use crate::console::wrap::wrapped;
use crate::console::{Console, Style};
use crate::heaps::java::facts::HeapFacts;
use crate::heaps::leaks::{LeaksDocument, LeaksRows};
use heaptap_analyze::growth::{Grown, Growth};
use heaptap_analyze::leaks::{Certainty, LeakGroup, Reference, Shape, Status, Step};
use heaptap_analyze::waste::Waste;
use heaptap_base::units::{ByteSize, counted, thousands};
use heaptap_base::untrusted;

/// Default number of leaks to show in detail.
const GROUPS: usize = 10;
/// Rows of growth.
const GROWN: usize = 10;
/// Rows below each kind of waste.
const ROWS: usize = 3;
/// Steps of a path.
const STEPS: usize = 14;

/// Shows a report. `limit` is the limit that the user gave.
pub(super) fn show(console: &Console, document: &LeaksDocument, limit: Option<usize>) {
    let limit = |page: usize| limit.unwrap_or(page);
    match document.heaps.as_slice() {
        [first, .., last] if first.path == last.path && document.heaps.len() > 2 => {
            java_view::heading(console, last);
            let names = names_of_compared(&document.heaps);
            if names.len() > 1 {
                console.in_style(Style::Dim, compared_with(&names));
            }
        }
        all => {
            for heap in all {
                java_view::heading(console, heap);
            }
        }
    }
    for note in &document.notes {
        console.in_style(Style::Warn, note);
    }
    if let Some(leaks) = &document.leaks {
        show_leaks(console, leaks, limit(GROUPS));
    }
    if let Some(growth) = &document.growth {
        let names = match document.heaps.len() {
            2 => Vec::new(),
            _ => names_of_compared(&document.heaps),
        };
        show_growth(console, growth, &names, limit(GROWN));
    }
    if let Some(waste) = &document.waste
        && (document.leaks.is_none() || waste::is_notable(waste))
    {
        waste::show(console, waste, limit(ROWS));
    }
    let groups = document.leaks.iter().flat_map(|leaks| &leaks.groups);
    let groups: Vec<&LeakGroup> = groups.take(limit(GROUPS)).collect();
    let mut notes = legend(&groups, has_elements(document));
    if groups.iter().any(|group| group.kept.native_bytes > 0) {
        notes.push(java_view::WITH_NATIVE);
        let grew = |growth: &Growth| growth.paths.len() + growth.classes.len() > 0;
        if document.growth.as_ref().is_some_and(grew) {
            notes.push("growth includes native memory");
        }
    }
    if document.waste.as_ref().is_some_and(has_copies) {
        notes.push("N × … ←: referrer of one of the N");
    }
    console.footnotes(&notes);
}

/// Returns whether rows for several objects name the referrer of one of them.
fn has_copies(waste: &Waste) -> bool {
    let equal = [&waste.strings, &waste.arrays, &waste.bitmaps];
    let mut copies = equal.into_iter().flat_map(|all| &all.groups);
    let mut rooms = waste.sparse.iter().chain(&waste.sparse_arrays);
    copies.any(|row| row.held_by.is_some())
        || rooms.any(|row| row.count > 1 && row.held_by.is_some())
}

/// Returns whether a path of the document has an element of any index, shown or beyond the limit.
fn has_elements(document: &LeaksDocument) -> bool {
    serde_json::to_string(document).is_ok_and(|text| text.contains("[x]"))
}

/// Returns the meanings of the marks in the paths, of those that occur.
fn legend(groups: &[&LeakGroup], has_elements: bool) -> Vec<&'static str> {
    let any = |is: fn(&Step) -> bool| groups.iter().any(|group| group.path.iter().any(is));
    let mut marks = Vec::new();
    if any(|step| step.status == Status::Unknown) {
        marks.push("?: unknown state");
    }
    if any(|step| step.suspect) {
        marks.push("~~~: possible cause of the leak");
    }
    if has_elements {
        marks.push("[x]: any element");
    }
    marks
}

// Leaks

/// Returns the names of the dumps that are compared: those that do not lack objects.
fn names_of_compared(heaps: &[HeapFacts]) -> Vec<String> {
    let compared = heaps.iter().filter(|heap| !heap.lacks_objects);
    let names = compared.map(|heap| match &heap.label {
        Some(label) => untrusted::sanitize(label).into_owned(),
        None => format!("@{}", heap.number),
    });
    names.collect()
}

/// Returns a line that names the dumps with which the last one is compared.
fn compared_with(names: &[String]) -> String {
    let before = names.split_last().map_or(&[][..], |(_, before)| before);
    let before = match before {
        [first, second, .., last] if before.len() > 8 => format!("{first}, {second} … {last}"),
        few => few.join(", "),
    };
    format!("compared with the earlier dumps: {before}")
}

fn show_leaks(console: &Console, leaks: &LeaksRows, limit: usize) {
    console.data("");
    if leaks.groups_total == 0 {
        let (style, headline) = match (leaks.groups_hidden, leaks.untold.is_empty()) {
            (0, true) => (Style::Good, "No leaks found"),
            (0, false) => (Style::Strong, "No leaks found in what could be analyzed"),
            (_, true) => (Style::Strong, "No leaks of the selected classes"),
            (_, false) => (
                Style::Strong,
                "No leaks of the selected classes in what could be analyzed",
            ),
        };
        console.in_style(style, headline);
    } else {
        console.in_style(Style::Strong, format!("{}.", leaks_by_certainty(leaks)));
        let objects = counted(
            leaks.objects,
            "leaked object retains",
            "leaked objects retain",
        );
        console.data(format_args!("{objects} {}.", kept(leaks.kept)));
    }
    let mut was_own = leaks.groups_known < leaks.groups_total;
    for (at, group) in leaks.groups.iter().take(limit).enumerate() {
        if was_own && group.library.is_some() {
            console.section(Style::Strong, "Known leaks of others");
        }
        was_own = group.library.is_none();
        console.data("");
        show_group(console, at + 1, group);
    }
    let hidden = leaks.groups_total as usize - leaks.groups.len().min(limit);
    show_hidden(console, hidden, " leaks");
    if !leaks.unheld.is_empty() {
        console.data("");
        for unheld in &leaks.unheld {
            let text = format!(
                "{} × {} ({}): {}",
                thousands(unheld.count),
                untrusted::sanitize(&unheld.class),
                unheld.kind.leaked(),
                unheld.verdict()
            );
            console.in_style(Style::Dim, text);
        }
    }
    for untold in &leaks.untold {
        console.section(Style::Dim, format!("Not analyzed: {untold}"));
    }
}

/// `4 leaks: 1 confirmed, 1 likely, 1 possible, 1 known and not yours`.
fn leaks_by_certainty(leaks: &LeaksRows) -> String {
    let all = counted(leaks.groups_total, "leak", "leaks");
    // Without every leak, the parts would not add up.
    if leaks.groups.len() as u64 != leaks.groups_total {
        return all;
    }
    let of = |certainty: Certainty| {
        let own = leaks.groups.iter().filter(|group| group.library.is_none());
        let count = own.filter(|group| group.certainty == certainty).count();
        (count > 0).then(|| format!("{} {}", thousands(count as u64), certainty.name()))
    };
    let all_of = [Certainty::Certain, Certainty::Likely, Certainty::Possible];
    let mut parts: Vec<String> = all_of.into_iter().filter_map(of).collect();
    if leaks.groups_known > 0 {
        parts.push(format!(
            "{} known and not yours",
            thousands(leaks.groups_known)
        ));
    }
    format!("{all}: {}", parts.join(", "))
}

fn objects(count: u64) -> String {
    counted(count, "object", "objects")
}

fn show_group(console: &Console, number: usize, group: &LeakGroup) {
    let certainty = match group.certainty {
        Certainty::Certain => "",
        Certainty::Likely => ", likely",
        Certainty::Possible => ", possibly",
    };
    let new = match (group.count_before, group.count) {
        (None, _) => String::new(),
        (Some(0), _) => " · new".to_owned(),
        (Some(before), now) if before == now => " · same count as before".to_owned(),
        (Some(before), _) => format!(" · {} before", thousands(before)),
    };
    console.data(format_args!(
        "{} {} × {}  {}",
        console.styled(Style::Dim, format!("{number}.")),
        thousands(group.count),
        console.styled(Style::Error, untrusted::sanitize(&group.class)),
        console.styled(Style::Strong, format!("{}{certainty}{new}", group.what)),
    ));
    let mut sizes = format!(
        "retains {} in {}",
        kept(group.kept),
        objects(group.kept.count)
    );
    let dominated = group.dominated;
    if dominated.total_bytes() != group.kept.total_bytes() {
        sizes += &format!(" · dominates {}", kept(dominated));
    }
    if let Some(first) = group.leaks.first().filter(|_| group.count > 1) {
        sizes += &format!(" · this object {}", kept(first.kept));
    }
    console.in_style(Style::Dim, format!("   {sizes}"));
    if let Some(library) = &group.library {
        let text = format!("   {}: {}", library.title(), library.reference);
        console.in_style(Style::Warn, text);
    }
    show_path(console, group);
    if let Some(first) = group.leaks.first() {
        let nested: Vec<String> = first
            .nested
            .iter()
            .map(|nested| format!("{} × {}", thousands(nested.count), nested.class))
            .collect();
        if !nested.is_empty() {
            let text = format!("together with {}", nested.join(", "));
            let text = untrusted::sanitize(&text);
            console.data(format_args!("     {}", console.styled(Style::Dim, text)));
        }
    }
    let advice = untrusted::sanitize(&group.advice);
    console.data(format_args!("   → {}", console.styled(Style::Help, advice)));
    if console.verbosity() > 0 {
        console.in_style(Style::Dim, format!("     signature {}", group.signature));
    }
}

fn show_path(console: &Console, group: &LeakGroup) {
    // Skip the steps that are certainly in use.
    let first = match console.verbosity() {
        0 => {
            let in_use = |step: &Step| step.status == Status::NotLeaking && !step.suspect;
            group.path.iter().take_while(|step| in_use(step)).count()
        }
        _ => 0,
    };
    let root = match first {
        0 => group.root.clone(),
        1 => format!("{} … (1 step in use left out)", group.root),
        n => format!("{} … ({n} steps in use left out)", group.root),
    };
    let root = format!("root: {}", untrusted::sanitize(&root));
    let lead = console.styled(Style::Dim, "   ┬ ");
    console.hanging(lead, console.styled(Style::Dim, root));
    let steps = &group.path[first..];
    let shown: Vec<Option<&Step>> = match steps.len() {
        n if n <= STEPS || console.verbosity() > 1 => steps.iter().map(Some).collect(),
        n => {
            let head = steps[..STEPS / 2].iter().map(Some);
            let tail = steps[n - STEPS / 2..].iter().map(Some);
            head.chain([None]).chain(tail).collect()
        }
    };
    let left_out = steps.len() as u64 + group.path_left_out - shown.iter().flatten().count() as u64;
    let last = shown.len().saturating_sub(1);
    for (at, step) in shown.into_iter().enumerate() {
        match step {
            Some(step) => show_step(console, group, step, at == last),
            None => {
                let text = format!("   ⋮ {}", counted(left_out, "more step", "more steps"));
                console.in_style(Style::Dim, text);
            }
        }
    }
}

fn show_step(console: &Console, group: &LeakGroup, step: &Step, last: bool) {
    let class = untrusted::sanitize(&step.class).into_owned();
    let name = match step.shape {
        Shape::Class => format!("class {class}"),
        _ if last => format!("{class} {}", step.id),
        _ => class.clone(),
    };
    let (mark, style) = match step.status {
        Status::Leaking => ("leaks", Style::Error),
        Status::NotLeaking => ("in use", Style::Good),
        Status::Unknown => ("?", Style::Dim),
    };
    let reason = match (last, group.leaks.first()) {
        (true, Some(leak)) => leak.reason.as_str(),
        _ => step.reason.as_str(),
    };
    let reason = match reason {
        "" => String::new(),
        reason => format!(": {}", untrusted::sanitize(reason)),
    };
    let (branch, bar) = if last { ("╰", " ") } else { ("├", "│") };
    let branch = console.styled(Style::Dim, branch);
    let state = format!(
        "{}{}",
        console.styled(style, mark),
        console.styled(Style::Dim, reason)
    );
    let line = format!("   {branch} {name}  {state}");
    let width = console::measure_text_width(&line);
    if console.stdout_width().is_none_or(|room| width <= room) {
        console.laid_out(line);
    } else {
        console.laid_out(format_args!("   {branch} {name}"));
        // Below its object, with the tree line on every line.
        let bar = format!("   {} ", console.styled(Style::Dim, bar));
        let room = console.stdout_width().unwrap_or(usize::MAX);
        for part in wrapped(&state, room.saturating_sub(5)) {
            console.laid_out(format_args!("{bar}{part}"));
        }
    }
    let Some(reference) = step.reference.as_ref().map(Reference::shown) else {
        return;
    };
    let owner = step.declared_in.as_deref().unwrap_or(&step.class);
    let owner = owner.rsplit('.').next().unwrap_or(owner);
    let lead = match (step.shape, reference.starts_with(['[', '<'])) {
        (Shape::Array, _) => String::new(),
        (_, true) => untrusted::sanitize(owner).into_owned(),
        (_, false) => format!("{}.", untrusted::sanitize(owner)),
    };
    let (lead, reference) = match &step.repeated {
        Some(repeated) => (String::new(), repeated.text()),
        None => (lead, reference),
    };
    let reference = untrusted::sanitize(&reference).into_owned();
    let bar = console.styled(Style::Dim, "│");
    if step.suspect {
        console.data(format_args!(
            "   {bar}   {lead}{}",
            console.styled(Style::Warn, &reference)
        ));
        let blanks = " ".repeat(console::measure_text_width(&lead));
        let wave = "~".repeat(console::measure_text_width(&reference).max(1));
        console.data(format_args!(
            "   {bar}   {blanks}{}",
            console.styled(Style::Warn, wave)
        ));
    } else {
        console.data(format_args!(
            "   {bar}   {}",
            console.styled(Style::Dim, format!("{lead}{reference}"))
        ));
    }
}

// Growth

fn show_growth(console: &Console, growth: &Growth, names: &[String], limit: usize) {
    console.data("");
    if growth.paths.is_empty() && growth.classes.is_empty() {
        let text = match growth.dumps {
            2 => "Nothing grew between the two dumps".to_owned(),
            n => format!("Nothing grew in all {n} dumps"),
        };
        console.in_style(Style::Good, text);
        return;
    }
    let headline = match (growth.dumps, names) {
        (2, [first, last]) => format!("Growth from {first} to {last}, by strong references"),
        (2, _) => "Growth from the first dump to the second, by strong references".to_owned(),
        (n, _) => format!("Growth in each of {n} dumps, by strong references"),
    };
    console.in_style(Style::Strong, headline);
    let mut table = Table::new(&["more", "objects", "bytes", "class and path"]).keeping_remarks();
    for row in growth.paths.iter().take(limit) {
        table.row(figures(row), untrusted::sanitize(&row.class));
        table.style(Style::Strong);
        let way: Vec<String> = row
            .path
            .iter()
            .rev()
            .map(|s| untrusted::sanitize(s).into_owned())
            .collect();
        if !way.is_empty() {
            table.remark(format!("← {}", way.join(" ← ")));
        }
    }
    if !growth.paths.is_empty() {
        table.show(console);
    }
    let shown = growth.paths.len().min(limit);
    show_hidden(console, growth.paths_total - shown, " paths");
    let mut table = Table::new(&["more", "objects", "bytes", "class"]);
    for row in growth.classes.iter().take(limit) {
        table.row(figures(row), untrusted::sanitize(&row.class));
    }
    console.data("");
    table.show(console);
    let shown = growth.classes.len().min(limit);
    show_hidden(console, growth.classes_total - shown, " classes");
}

fn figures(row: &Grown) -> Vec<String> {
    let counts: Vec<String> = match row.counts.as_slice() {
        [first, second, .., last] if row.counts.len() > 4 => {
            vec![
                thousands(*first),
                thousands(*second),
                "…".to_owned(),
                thousands(*last),
            ]
        }
        all => all.iter().map(|&n| thousands(n)).collect(),
    };
    let bytes = match row.more_bytes() {
        n if n < 0 => format!("-{}", ByteSize(n.unsigned_abs())),
        n => format!("+{}", ByteSize(n.unsigned_abs())),
    };
    vec![
        format!("+{}", thousands(row.more().unsigned_abs())),
        counts.join(" → "),
        bytes,
    ]
}

// Waste

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_is_none_of_those_before_it() {
        let names: Vec<String> = (1..13).map(|at| format!("@{at}")).collect();
        let of = |so_many: usize| {
            let text = compared_with(&names[..so_many]);
            text.rsplit_once(": ").map(|(_, names)| names.to_owned())
        };
        assert_eq!(of(3).as_deref(), Some("@1, @2"));
        assert_eq!(of(9).as_deref(), Some("@1, @2, @3, @4, @5, @6, @7, @8"));
        assert_eq!(of(12).as_deref(), Some("@1, @2 … @11"));
    }
}
