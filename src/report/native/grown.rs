//! What grew from the first dump of a heap to the last, by callsite, with the error of sampling;
//! and the verdicts over all dumps, where there are enough of them.

use super::super::data::header::{Growth, Header, Series};
use super::super::html::{Foreign, Html};
use super::callsites::size;
use super::{Place, fitting};
use crate::analyze::native::filter::Filter;
use crate::analyze::native::shown::{Shown, ShownId};
use crate::analyze::sampling::{Counters, Interval, Turnover};
use crate::profile::DumpKind;
use crate::stacks::{Dump, StackProfile, View};
use std::cmp::Reverse;

/// Rows of each heap.
const ROWS: usize = 12;

/// The section; nothing where no heap has two dumps that can be compared.
pub(super) fn write(html: &mut Html, header: &Header, profile: &StackProfile) {
    let comparable: Vec<(usize, &Series, &Dump, &Dump)> = header
        .series
        .iter()
        .enumerate()
        .filter_map(|(at, series)| {
            let [first, .., last] = series.dumps[..] else {
                return None;
            };
            let (first, last) = (&profile.dumps[first], &profile.dumps[last]);
            let held = |dump: &Dump| {
                dump.facts.kind == DumpKind::Cumulative && dump.column(View::Space).is_some()
            };
            (held(first) && held(last)).then_some((at, series, first, last))
        })
        .collect();
    if comparable.is_empty() {
        return;
    }
    html.add(format_args!("<h2 id=\"grown\">What grew</h2>\n"));
    for (at, series, first, last) in comparable {
        series_of(html, profile, series, first, last);
        if let Some(growth) = header.growth.iter().find(|growth| growth.series == at) {
            verdicts(html, growth);
        }
    }
    let restarts = header.series.iter().filter(|series| series.after.is_some());
    for series in restarts {
        html.add(format_args!(
            "<p class=\"note\">{} started anew as process {}: what it held before is gone, and \
             nothing is compared across the restart.</p>\n",
            Foreign(&series.process),
            series.pid
        ));
    }
}

fn series_of(html: &mut Html, profile: &StackProfile, series: &Series, first: &Dump, last: &Dump) {
    let values = [&first.values, &last.values];
    let shown = Shown::of(&profile.table, &Filter::default(), &values);
    let before = counters(&shown, first);
    let after = counters(&shown, last);
    let interval = match (Interval::of(&first.facts), Interval::of(&last.facts)) {
        (Some(one), Some(other)) => Some(one.wider(other)),
        _ => None,
    };
    let mut grown: Vec<(ShownId, i64, Option<Turnover>)> = before
        .iter()
        .zip(&after)
        .enumerate()
        .filter(|(_, (before, after))| before.space != after.space)
        .map(|(at, (before, after))| {
            let turnover = interval.map(|interval| Turnover::paired(before, after, interval));
            let net = after.space.saturating_sub(before.space);
            (ShownId(at as u32), net, turnover)
        })
        .collect();
    let net = grown
        .iter()
        .fold(0i64, |sum, (_, net, _)| sum.saturating_add(*net));
    let all = interval.map(|interval| {
        let parts = grown.iter().filter_map(|(.., turnover)| *turnover);
        parts.fold(Turnover::nothing(interval), |sum, part| sum.plus(part))
    });
    html.add(format_args!(
        "<p><b>{}</b>{}, from {} to {}: {}{}.</p>\n",
        Foreign(match series.process.as_str() {
            "" => "The heap",
            process => process,
        }),
        match series.heap.as_str() {
            "" => String::new(),
            heap => format!(" ({})", Foreign(heap)),
        },
        moment(first),
        moment(last),
        figure(net, all.as_ref()),
        match all.is_some_and(|all| is_noise(&all)) {
            true => ", within sampling noise",
            false => "",
        }
    ));
    // What surely grew comes first, by how much of it is sure.
    let certain = |turnover: &Option<Turnover>, net: i64| match turnover {
        Some(turnover) => turnover.estimate().low,
        None => net,
    };
    grown.retain(|(_, net, _)| *net > 0);
    grown.sort_by_key(|(id, net, turnover)| (Reverse(certain(turnover, *net)), Reverse(*net), *id));
    let left_out = grown.len().saturating_sub(ROWS);
    let caption = match left_out {
        0 => "Callsites that grew, by how much of it is certain.".to_owned(),
        n => format!(
            "Callsites that grew, by how much of it is certain; {} more are left out.",
            crate::units::thousands(n as u64)
        ),
    };
    if grown.is_empty() {
        return;
    }
    let rows = grown.iter().take(ROWS).map(|(id, net, turnover)| {
        let place = Place::of(&shown, *id);
        vec![
            figure(*net, turnover.as_ref()),
            match turnover {
                Some(turnover) if is_noise(turnover) => "within noise",
                Some(_) => "grew",
                None => "not sampled",
            }
            .to_owned(),
            place.cell(),
            place.at,
        ]
    });
    html.table(&caption, &["#growth", "verdict", "function", "where"], rows);
}

fn counters(shown: &Shown<'_>, dump: &Dump) -> Vec<Counters> {
    let own = shown.sums(&dump.values).own;
    let place = |view| dump.measures.iter().position(|m| m.view == Some(view));
    let column = |view| place(view).map(|at| &own[at]);
    let [space, objects, alloc_space, alloc_objects] = [
        View::Space,
        View::Objects,
        View::AllocSpace,
        View::AllocObjects,
    ]
    .map(column);
    let value = |column: Option<&Vec<i64>>, at: usize| column.map_or(0, |column| column[at]);
    (0..shown.len())
        .map(|at| Counters {
            space: value(space, at),
            objects: value(objects, at),
            alloc_space: value(alloc_space, at),
            alloc_objects: value(alloc_objects, at),
        })
        .collect()
}

fn is_noise(turnover: &Turnover) -> bool {
    let estimate = turnover.estimate();
    !estimate.exact && !estimate.sign_is_certain()
}

fn figure(net: i64, turnover: Option<&Turnover>) -> String {
    match turnover {
        Some(turnover) => Foreign(&format!("{:+}", turnover.estimate().shown())).to_string(),
        None if net > 0 => format!("+{}", size(net)),
        None => size(net),
    }
}

/// How a dump is called in a sentence.
fn moment(dump: &Dump) -> String {
    match &dump.facts.label {
        Some(label) => format!("“{}”", Foreign(label)),
        None => format!("dump {}", dump.facts.index),
    }
}

fn verdicts(html: &mut Html, growth: &Growth) {
    let rows = growth.sites.iter().take(ROWS).map(|site| {
        vec![
            match site.verdict.as_str() {
                "grows" => "grows",
                "within-noise" => "within noise",
                _ => "can’t tell",
            }
            .to_owned(),
            format!("<b>{}</b>", Foreign(&fitting(&site.function))),
            Foreign(&site.says).to_string(),
        ]
    });
    let caption = format!(
        "Over all {} rounds, as <code>heaptap leaks</code> judges it, by growth per {}.",
        growth.rounds,
        Foreign(&growth.per)
    );
    html.table(&caption, &["verdict", "function", "why"], rows);
}
