//! Shows growth in native heaps as text.

use std::time::Duration;

use crate::commands::shared::native::{shortened, unwinder_notes};
use crate::commands::shared::sites::{
    callers, last_dump, paragraph, place, show_site, shrank_elsewhere,
};
use crate::console::flags::pattern::no_match;
use crate::console::table::{Table, show_hidden};
use crate::console::{Console, Style};
use crate::heaps::growth::{HeapRow, NativeLeaksDocument, SeriesRow, SiteRow};
use crate::heaps::input::facts::StackFrame;
use heaptap_base::units::{ByteSize, HumanDuration, counted, thousands};
use heaptap_base::untrusted;
use heaptap_results::lists::process_name;

/// Inconclusive entries on a page, and rows of churn.
const FEW: usize = 5;

/// Shows a report. `limit` is the limit that the user gave.
pub(super) fn show(console: &Console, document: &NativeLeaksDocument, limit: Option<usize>) {
    let limit = limit.unwrap_or(FEW);
    for (at, series) in document.series.iter().enumerate() {
        if at > 0 {
            console.data("");
        }
        show_series(console, series, document, limit);
    }
}

fn show_series(
    console: &Console,
    series: &SeriesRow,
    document: &NativeLeaksDocument,
    limit: usize,
) {
    let who = process_name(series.pid, &series.process);
    console.in_style(Style::Strong, untrusted::sanitize(&who));
    let filter = &document.filter;
    if !series.matches && !filter.is_empty() {
        let message = no_match(!filter.ignore.is_empty(), filter.selects(), "any dump");
        console.in_style(Style::Warn, message);
        show_method(console, series);
        return;
    }
    let of = |verdict: &str| -> Vec<&SiteRow> {
        let sites = series.sites.iter();
        sites.filter(|site| site.verdict == verdict).collect()
    };
    let leaks = series.leaks + series.leaks_below_tolerance;
    let grows = of("confirmed");
    // A line of code can stand for several callsites.
    let (one, many) = match grows.iter().any(|site| site.callsites > 1) {
        true => ("location grows", "locations grow"),
        false => ("callsite grows", "callsites grow"),
    };
    let headline = match leaks {
        0 => "No confirmed leaks".to_owned(),
        n => format!(
            "Confirmed leaks: {} per iteration, beyond sampling error",
            counted(n, one, many)
        ),
    };
    let style = match (leaks, series.is_inconclusive()) {
        (0, false) => Style::Good,
        _ => Style::Strong,
    };
    console.in_style(style, headline);
    for heap in &series.heaps {
        show_total(console, heap, !filter.is_empty());
        let rows = series.sites.iter().filter(|site| site.heap == heap.heap);
        let rows = rows.filter(|site| site.verdict == "confirmed" || is_suspect(site));
        let grown: f64 = rows.map(|site| site.growth_per_iteration.value).sum();
        let total = heap.growth_per_iteration.rate;
        if let Some(size) = shrank_elsewhere(grown, total.value, total.high) {
            let text = format!("the other callsites shrank by {size} per iteration in total");
            console.in_style(Style::Dim, text);
        }
    }
    for (at, site) in grows.iter().enumerate() {
        console.data("");
        let lead = format!("{}. ", at + 1);
        show_site(console, &lead, site, &series.heaps, None);
    }
    more(console, leaks as usize, grows.len());
    let untold = show_untold(console, series, &of("inconclusive"), &grows, limit);
    if series.within_sampling_error > 0 {
        let who = counted(
            series.within_sampling_error,
            "callsite is within sampling error and grows",
            "callsites are within sampling error and each grows",
        );
        console.data("");
        console.data(format_args!(
            "{who} by at most {} per iteration (`--tolerance`)",
            ByteSize(document.tolerance_bytes)
        ));
    }
    show_churn(console, series, limit, |site| {
        elsewhere(site, &grows, &untold)
    });
    show_method(console, series);
    let with_stack = grows
        .iter()
        .chain(untold.iter().filter(|site| is_suspect(site)));
    let stacks = with_stack.flat_map(|site| {
        let own = site.stack.iter().position(|frame| *frame == site.own);
        let shown = site.stack.iter().take(own.unwrap_or(0) + 1);
        shown.chain(callers(site))
    });
    let functions = untold.iter().map(|site| &site.own).chain(stacks);
    let mut notes = unwinder_notes(functions.map(|frame| frame.function.as_str()));
    if !grows.is_empty() {
        notes.extend(series.heaps.first().and_then(time_note));
    }
    console.footnotes(&notes.iter().map(String::as_str).collect::<Vec<_>>());
}

/// Returns a note about leaks that depend on time, if labels mark the iterations: the rate does not
/// distinguish them.
fn time_note(heap: &HeapRow) -> Option<String> {
    let (first, last) = (heap.dumps.first()?, heap.dumps.last()?);
    if !heap.paired || last.label.is_none() {
        return None;
    }
    let span = last.time_ns?.checked_sub(first.time_ns?)? as f64;
    let iteration = Duration::from_nanos((span / heap.iterations) as u64);
    Some(format!(
        "an iteration took {} on average. A leak that grows with time instead looks the same; a \
         recording of the idle app shows it.",
        HumanDuration(iteration)
    ))
}

/// Shows which dumps were compared, what their sampling can miss, and the limits of the result.
fn show_method(console: &Console, series: &SeriesRow) {
    console.data("");
    for heap in &series.heaps {
        let of_heap = match series.heaps.len() {
            1 => String::new(),
            _ => format!("{}: ", name_of(heap)),
        };
        let text = format!("{of_heap}{}", method(heap));
        paragraph(console, "", &untrusted::sanitize(&text), Style::Dim);
    }
    for note in &series.notes {
        paragraph(console, "", &untrusted::sanitize(note), Style::Warn);
    }
}

/// `Compared 5 dumps, @round-1 to @after. Smallest leak visible: 10 KiB per iteration.`
fn method(heap: &HeapRow) -> String {
    let dumps = counted(heap.dumps.len() as u64, "dump", "dumps");
    let first = heap.dumps.first().map_or("", |dump| &dump.brief);
    let each = heap.iterations as u64 / heap.rounds.max(1);
    let apart = match each {
        1 => String::new(),
        n => format!(
            ", each {} apart (`--rounds {n}`)",
            counted(n, "iteration", "iterations")
        ),
    };
    let dumps_have = heap.dumps.iter();
    let visible = match dumps_have.map(|dump| dump.sampling_interval_bytes).max() {
        Some(1) | None => "Every allocation was recorded.".to_owned(),
        Some(_) => format!(
            "Smallest leak visible: {} per iteration.",
            ByteSize(heap.detectable_bytes_per_iteration.ceil() as u64)
        ),
    };
    format!(
        "Compared {dumps}, {first} to {}{apart}. {visible}",
        last_dump(heap)
    )
}

fn name_of(heap: &HeapRow) -> &str {
    match heap.heap.as_str() {
        "" => "the heap",
        name => name,
    }
}

fn show_total(console: &Console, heap: &HeapRow, is_filtered: bool) {
    let name = name_of(heap);
    let size = |bytes: i64| ByteSize(bytes.max(0).unsigned_abs());
    let all = heap.dumps.last().map_or(0, |dump| dump.space);
    let last = last_dump(heap);
    let growth = heap.growth_per_iteration.rate.shown();
    let text = match is_filtered {
        // With a filter, growth and size of the matching part are shown together.
        true => format!(
            "{name}, matching stacks: {growth:+} per iteration, {} of {} unreleased at {last}",
            size(heap.unreleased_bytes),
            size(all)
        ),
        false => format!(
            "{name} in total: {growth:+} per iteration, {} unreleased at {last}",
            size(all)
        ),
    };
    console.data(untrusted::sanitize(&text));
}

/// Shows callsites without a verdict, and returns those that have a row.
fn show_untold<'a>(
    console: &Console,
    series: &SeriesRow,
    untold: &[&'a SiteRow],
    grows: &[&SiteRow],
    limit: usize,
) -> Vec<&'a SiteRow> {
    if series.suspects + series.inconclusive == 0 {
        return Vec::new();
    }
    console.data("");
    let mut parts = Vec::new();
    if series.suspects > 0 {
        parts.push(counted(
            series.suspects,
            "callsite grew, but its trend is uncertain",
            "callsites grew, but their trends are uncertain",
        ));
    }
    let flat = series.inconclusive_without_growth;
    let grew = series.inconclusive.saturating_sub(flat);
    if series.inconclusive > 0 {
        parts.push(match (grew, series.inconclusive) {
            (0, 1) => "1 callsite has too little data, and did not grow".to_owned(),
            (0, n) => format!(
                "{} callsites have too little data, and did not grow",
                thousands(n)
            ),
            (1, _) => "1 callsite grew, but has too little data".to_owned(),
            (n, _) => format!("{} callsites grew, but have too little data", thousands(n)),
        });
    }
    console.in_style(Style::Strong, format!("Inconclusive: {}", parts.join("; ")));
    let (suspects, mut others): (Vec<&SiteRow>, Vec<&SiteRow>) =
        untold.iter().partition(|site| is_suspect(site));
    let suspects = &suspects[..suspects.len().min(limit)];
    for site in suspects {
        console.data("");
        let elsewhere = elsewhere(site, grows, &[]);
        show_site(console, "?  ", site, &series.heaps, elsewhere);
    }
    more(console, series.suspects as usize, suspects.len());
    others.retain(|site| site.growth_per_iteration.value > 0.0);
    others.truncate(limit);
    show_lacking(console, &others, |site| elsewhere(site, grows, suspects));
    more(console, grew as usize, others.len());
    if flat > 0 && grew > 0 {
        console.in_style(Style::Dim, not_listed(flat));
    }
    others.extend(suspects);
    others
}

/// Returns whether an inconclusive site certainly grew.
fn is_suspect(site: &SiteRow) -> bool {
    let reason = site.inconclusive_reason;
    reason.is_some_and(|reason| !matches!(reason, "too-few-samples" | "incomplete"))
}

/// Returns a note about the inconclusive callsites that do not grow.
fn not_listed(flat: u64) -> String {
    let more = counted(flat, "more callsite has", "more callsites have");
    format!("{more} too little data, and did not grow (only `--json` lists them)")
}

/// Shows callsites that lack data for a verdict.
fn show_lacking(
    console: &Console,
    others: &[&SiteRow],
    elsewhere: impl Fn(&SiteRow) -> Option<String>,
) {
    if others.is_empty() {
        return;
    }
    console.data("");
    let mut table = Table::new(&["per iteration", "needs in all", "function"]).of_code();
    for (site, apart) in others.iter().zip(apart(others, elsewhere)) {
        let rounds = site
            .decides
            .rounds
            .map(|n| format!("{} iterations", thousands(n)));
        let interval = site
            .decides
            .interval_bytes
            .map(|t| format!("record -i {t}"));
        let complete = match site.inconclusive_reason {
            Some("incomplete") => Some("no lost data".to_owned()),
            _ => None,
        };
        let mut decides: Vec<String> = rounds.into_iter().chain(interval).chain(complete).collect();
        if decides.is_empty() {
            decides.push("more iterations".to_owned());
        }
        let function = untrusted::sanitize(&site.own.function).into_owned();
        table.row(
            vec![
                format!("{:+}", site.growth_per_iteration.rate.shown()),
                decides.join(" or "),
            ],
            function,
        );
        table.remark(untrusted::sanitize(&apart).into_owned());
    }
    table.show(console);
    let is_clear = |site: &&SiteRow| {
        site.growth_per_iteration.rate.low > 0.0
            && site.inconclusive_reason == Some("too-few-samples")
    };
    if others.iter().any(is_clear) {
        let note = "growth above 0 can still be chance, because many callsites are tested \
                    together; a callsite that also frees memory needs more samples";
        console.in_style(Style::Dim, note);
    }
}

fn show_churn(
    console: &Console,
    series: &SeriesRow,
    limit: usize,
    elsewhere: impl Fn(&SiteRow) -> Option<String>,
) {
    if series.churn.is_empty() {
        return;
    }
    console.data("");
    let span = match series.heaps.iter().all(|heap| heap.paired) {
        true => "from the first dump to the last",
        false => "in the last recording",
    };
    let headline =
        format!("Churn: allocated and freed again {span}; not a leak, but it costs time");
    console.in_style(Style::Strong, headline);
    let mut table = Table::new(&["allocated", "freed", "still unreleased", "function"]).of_code();
    let sites: Vec<&SiteRow> = series.churn.iter().take(limit).collect();
    for (site, apart) in sites.iter().zip(apart(&sites, elsewhere)) {
        let freed = site.freed_share.unwrap_or(0.0);
        table.row(
            vec![
                site.allocated_estimate.shown().to_string(),
                format!("{:.0}%", freed * 100.0),
                site.held_estimate.shown().to_string(),
            ],
            untrusted::sanitize(&site.own.function).into_owned(),
        );
        table.remark(untrusted::sanitize(&apart).into_owned());
    }
    table.show(console);
    if sites.iter().any(|site| site.freed_share > Some(1.0)) {
        let note = "freed: share of the allocated bytes; above 100%, memory from before the first \
                    dump was freed too";
        console.in_style(Style::Dim, note);
    }
}

/// Returns the relation of a site to the rows of its function in the sections above.
fn elsewhere(site: &SiteRow, leaks: &[&SiteRow], untold: &[&SiteRow]) -> Option<String> {
    let is_alike = |row: &&SiteRow| row.own.function == site.own.function;
    let is_same = |row: &&SiteRow| row.heap == site.heap && row.stack == site.stack;
    if let Some(at) = leaks.iter().position(is_alike) {
        return Some(format!(
            "leak {} is of the same function, by other callers",
            at + 1
        ));
    }
    match untold.iter().any(is_same) {
        true => Some("also inconclusive".to_owned()),
        false => untold
            .iter()
            .any(is_alike)
            .then(|| "by other callers: inconclusive".into()),
    }
}

/// Returns the place of each site and its relation to other sections. Adds differences if several
/// sites share a line of code.
fn apart(sites: &[&SiteRow], elsewhere: impl Fn(&SiteRow) -> Option<String>) -> Vec<String> {
    let differences = |at: usize| {
        let site = sites[at];
        let others = sites.iter().enumerate();
        let others = others.filter(|(other, row)| *other != at && row.own == site.own);
        let mut found: Vec<String> = Vec::new();
        for text in others.filter_map(|(_, other)| difference(site, other)) {
            if !found.contains(&text) {
                found.push(text);
            }
        }
        found
    };
    let at = 0..sites.len();
    at.map(|at| {
        let mut parts = vec![place(&sites[at].own)];
        parts.extend(elsewhere(sites[at]));
        parts.extend(differences(at));
        parts.retain(|part| !part.is_empty());
        parts.join(" · ")
    })
    .collect()
}

/// Returns how a site differs from another: by the allocation function or by a caller. Includes the
/// line if the functions are the same.
fn difference(site: &SiteRow, other: &SiteRow) -> Option<String> {
    let told = |way: &str, frame: &StackFrame, than: Option<&StackFrame>| {
        let name = shortened(&frame.function);
        match than.is_some_and(|than| than.function == frame.function) {
            true => format!("{way} {name} {}", place(frame)),
            false => format!("{way} {name}"),
        }
    };
    if site.allocates != other.allocates {
        return Some(told("through", &site.allocates, Some(&other.allocates)));
    }
    let halves = |row: &SiteRow| {
        let own = row.stack.iter().position(|frame| *frame == row.own);
        let own = own.unwrap_or(0);
        let inner: Vec<StackFrame> = row.stack[..own].iter().rev().cloned().collect();
        (row.stack[own..].to_vec(), inner)
    };
    let ((callers, inner), (other_callers, other_inner)) = (halves(site), halves(other));
    let ways = [
        ("called by", callers, other_callers),
        ("through", inner, other_inner),
    ];
    ways.into_iter().find_map(|(way, own, others)| {
        let mut pairs = own.iter().enumerate();
        let (at, frame) = pairs.find(|(at, frame)| others.get(*at) != Some(frame))?;
        Some(told(way, frame, others.get(at)))
    })
}

fn more(console: &Console, all: usize, shown: usize) {
    if shown > 0 {
        show_hidden(console, all.saturating_sub(shown), "");
    }
}
