//! Largest callsites of the last dump of each heap.

use super::super::data::header::{Header, Series};
use super::super::html::{Foreign, Html};
use super::place::Place;
use heaptap_analyze::native::filter::Filter;
use heaptap_analyze::native::sampled::SampledColumn;
use heaptap_analyze::native::visible_tree::{VisibleId, VisibleTree};
use heaptap_analyze::sampling::Estimate;
use heaptap_base::units::{SignedSize, counted, thousands};
use heaptap_model::stacks::{Dump, StackProfile, Unit, View, sum};
use std::cmp::Reverse;

/// Rows for the largest heap, and for each of the others.
const ROWS: usize = 50;
const FEWER_ROWS: usize = 15;
/// Maximum number of heaps with a table.
const HEAPS: usize = 6;

/// Writes the section.
pub(super) fn write(html: &mut Html, header: &Header, profile: &StackProfile) {
    let mut heaps: Vec<(&Series, &Dump, i64)> = header
        .series
        .iter()
        .filter_map(|series| {
            let at = *series.dumps.last()?;
            let dump = &profile.dumps[at];
            let column = dump.values.columns.get(dump.default_measure)?;
            Some((series, dump, sum(column)))
        })
        .collect();
    heaps.sort_by_key(|(_, _, total)| Reverse(*total));
    if heaps.is_empty() {
        return;
    }
    let is_sampled = |(_, dump, _): &(_, &Dump, _)| dump.facts.sampling_interval_bytes != 1;
    let estimates = match heaps.iter().any(is_sampled) {
        true => {
            " Sizes are estimated from samples. Their 95% confidence intervals include the \
             sampling error only."
        }
        false => "",
    };
    html.add(format_args!(
        "<h2 id=\"callsites\">Callsites</h2>\n<p class=\"note\">Callstacks by unreleased bytes at \
         the last dump, without the frames of allocators and of the Java runtime. Callers are in \
         small print.{estimates}</p>\n"
    ));
    for (at, (series, dump, _)) in heaps.iter().take(HEAPS).enumerate() {
        let rows = if at == 0 { ROWS } else { FEWER_ROWS };
        table(html, profile, series, dump, rows);
    }
    let left_out = heaps.len().saturating_sub(HEAPS);
    if left_out > 0 {
        let heaps = counted(
            left_out as u64,
            "smaller heap appears",
            "smaller heaps appear",
        );
        html.add(format_args!(
            "<p class=\"note\">{heaps} only in the list of dumps.</p>\n"
        ));
    }
}

fn table(html: &mut Html, profile: &StackProfile, series: &Series, dump: &Dump, most: usize) {
    let shown = VisibleTree::new(&profile.table, &Filter::default(), &[&dump.values]);
    let error = SampledColumn::new(dump, dump.default_measure);
    let mut values = dump.values.clone();
    values
        .columns
        .extend(error.as_ref().map(|e| e.small.clone()));
    let own = shown.own_columns(&values);
    let Some(main) = own.get(dump.default_measure) else {
        return;
    };
    let estimate = |value: i64, at: &dyn Fn(usize) -> i64| {
        let error = error.as_ref()?;
        Some(error.estimate(value, at(error.counts), at(dump.measures.len())))
    };
    let mut order: Vec<usize> = (0..shown.len()).filter(|&at| main[at] != 0).collect();
    order.sort_by_key(|&at| (Reverse(main[at]), at));
    let count = order.len();
    let total = sum(main);
    order.truncate(most);
    let measure = &dump.measures[dump.default_measure];
    let counts = match measure.view {
        Some(View::Space) => Some(View::Objects),
        Some(View::AllocSpace) => Some(View::AllocObjects),
        _ => None,
    };
    let place = |view| dump.measures.iter().position(|m| m.view == Some(view));
    let counts = counts.and_then(place);
    let allocated = place(View::AllocSpace).filter(|at| *at != dump.default_measure);
    let what = match measure.view {
        Some(View::Space) => "#unreleased",
        Some(View::AllocSpace) => "#allocated",
        _ => "#value",
    };
    let mut headings = vec![what, "#share"];
    headings.extend(counts.map(|_| "#sampled"));
    headings.extend(allocated.map(|_| "#allocated"));
    headings.extend(["function", "location"]);
    let rows = order.iter().map(|&at| {
        let held = estimate(main[at], &|column| own[column][at]);
        let mut cells = vec![value(main[at], &measure.unit, held), share(main[at], total)];
        cells.extend(counts.map(|counts| thousands(own[counts][at])));
        cells.extend(allocated.map(|column| {
            let all = Estimate::exact(own[column][at], 0);
            // If both were rounded separately, the unreleased size could appear larger than the
            // allocated size.
            match held {
                Some(held) if all.value >= held.value && all.value > 0 => {
                    Foreign(&all.shown_beside(&held.shown()).size()).to_string()
                }
                _ => size(all.value),
            }
        }));
        let place = Place::new(&shown, VisibleId(at as u32));
        cells.push(place.cell());
        cells.push(place.at);
        cells
    });
    let whose = match (series.process.as_str(), series.heap.as_str()) {
        ("", "") => "All callsites".to_owned(),
        ("", heap) => Foreign(heap).to_string(),
        (process, "") => Foreign(process).to_string(),
        (process, heap) => format!("{}, {}", Foreign(process), Foreign(heap)),
    };
    let all = |column: usize| sum(&own[column]);
    let all = value(total, &measure.unit, estimate(total, &all));
    let left_out = match count.saturating_sub(order.len()) {
        0 => String::new(),
        n => format!("; {} not shown", counted(n as u64, "more is", "more are")),
    };
    let caption = format!("{whose}: {all} in total{left_out}");
    html.table(&caption, &headings, rows);
}

/// Formats a value with its error, if known.
fn value(value: i64, unit: &Unit, estimate: Option<Estimate>) -> String {
    match (unit, estimate) {
        (Unit::Bytes, Some(estimate)) => Foreign(&estimate.shown().to_string()).to_string(),
        (Unit::Bytes, None) => size(value),
        (Unit::Count, _) => thousands(value),
        (Unit::Other(unit), _) => format!("{} {}", thousands(value), Foreign(unit)),
    }
}

/// Formats bytes with their sign.
pub(super) fn size(bytes: i64) -> String {
    SignedSize(bytes).to_string()
}

fn share(part: i64, total: i64) -> String {
    match total {
        0 => String::new(),
        total => format!("{:.1}%", part as f64 * 100.0 / total as f64),
    }
}
