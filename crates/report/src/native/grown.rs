//! Growth from the first dump of a heap to the last, by callsite, with the sampling error, and the
//! verdicts over all dumps if there are enough.

use super::super::data::header::{Diff, Growth, Header, Per, Series};
use super::super::html::{Foreign, Html};
use super::callsites::size;
use super::{Place, fitting};
use heaptap_analyze::native::filter::Filter;
use heaptap_analyze::native::shown::{Shown, ShownId};
use heaptap_analyze::sampling::{Counters, Interval, Turnover};
use heaptap_model::profile::DumpKind;
use heaptap_model::stacks::{Dump, Measure, StackProfile, Values, View};
use heaptap_model::units::counted;
use std::cmp::Reverse;

/// Maximum rows per heap.
const ROWS: usize = 12;

/// Writes the section; nothing if no heap has two comparable dumps.
pub(super) fn write(html: &mut Html, header: &Header, profile: &StackProfile) {
    if let Some(diff) = &header.diff {
        difference(html, diff, profile);
        return;
    }
    let comparable: Vec<(usize, &Series, &Dump, &Dump)> = header
        .series
        .iter()
        .enumerate()
        .filter_map(|(at, series)| {
            let [first, .., last] = series.dumps[..] else {
                return None;
            };
            let (first, last) = (&profile.dumps[first], &profile.dumps[last]);
            (knows_held(first) && knows_held(last)).then_some((at, series, first, last))
        })
        .collect();
    if comparable.is_empty() {
        return;
    }
    html.add(format_args!("<h2 id=\"grown\">Growth</h2>\n"));
    for (at, series, first, last) in comparable {
        let (from, to) = (moment(first), moment(last));
        let changes = Changes::of(profile, Some(first), Some(last), true);
        changes.write(html, last, &from, &to, None);
        if let Some(growth) = header.growth.iter().find(|growth| growth.series == at) {
            verdicts(html, growth);
        }
        if series.after.is_some() {
            html.add(format_args!(
                "<p class=\"note\">The process restarted as PID {}. Dumps before and after the \
                 restart are not compared.</p>\n",
                series.pid
            ));
        }
    }
}

fn knows_held(dump: &Dump) -> bool {
    dump.facts.kind == DumpKind::Cumulative && dump.column(View::Space).is_some()
}

/// Writes the differences between the two sides that the page compares.
fn difference(html: &mut Html, diff: &Diff, profile: &StackProfile) {
    html.add(format_args!(
        "<h2 id=\"grown\">Differences</h2>\n<p>From {} to {}.</p>\n",
        Foreign(&diff.before),
        Foreign(&diff.after)
    ));
    for pair in &diff.pairs {
        let dump = |at: Option<usize>| at.and_then(|at| profile.dumps.get(at));
        let (before, after) = (dump(pair.before), dump(pair.after));
        let Some(of) = after.or(before) else {
            continue;
        };
        let changes = Changes::of(profile, before, after, diff.same_recording);
        let name = |dump: Option<&Dump>| dump.map_or_else(|| "nothing".to_owned(), moment);
        changes.write(html, of, &name(before), &name(after), diff.per.as_ref());
    }
}

/// Changed callsite: location, net change, and the error.
type Change = (ShownId, i64, Option<Turnover>);

/// Changes between two dumps.
struct Changes<'a> {
    shown: Shown<'a>,
    rows: Vec<Change>,
    net: i64,
    /// Total change, if its error is known.
    all: Option<Turnover>,
}

impl<'a> Changes<'a> {
    /// Compares two dumps. `paired`: both are from one run of a process, so survivors cancel.
    fn of(
        profile: &'a StackProfile,
        before: Option<&Dump>,
        after: Option<&Dump>,
        paired: bool,
    ) -> Changes<'a> {
        let dumps = || [before, after].into_iter().flatten();
        let values: Vec<&Values> = dumps().map(|dump| &dump.values).collect();
        let shown = Shown::of(&profile.table, &Filter::default(), &values);
        let of_side = |dump: Option<&Dump>| match dump {
            Some(dump) => counters(&shown, dump),
            None => vec![Counters::default(); shown.len()],
        };
        let (old, new) = (of_side(before), of_side(after));
        // A side without the heap has the sampling interval of the other.
        let own = |dump: Option<&Dump>| Interval::of(&dump.or(dumps().next())?.facts);
        let intervals = own(before).zip(own(after));
        let intervals = intervals.filter(|_| dumps().all(knows_held));
        let rows: Vec<Change> = old
            .iter()
            .zip(&new)
            .enumerate()
            .filter(|(_, (old, new))| old.space != new.space)
            .map(|(at, (old, new))| {
                let turnover = intervals.map(|(first, second)| match paired {
                    true => Turnover::paired(old, new, first.wider(second)),
                    false => Turnover::independent(old.held(first), new.held(second)),
                });
                let net = new.space.saturating_sub(old.space);
                (ShownId(at as u32), net, turnover)
            })
            .collect();
        let net = rows
            .iter()
            .fold(0i64, |sum, (_, net, _)| sum.saturating_add(*net));
        let all = intervals.map(|(first, second)| {
            let parts = rows.iter().filter_map(|(.., turnover)| *turnover);
            let nothing = Turnover::nothing(first.wider(second));
            parts.fold(nothing, |sum, part| sum.plus(part))
        });
        Changes {
            shown,
            rows,
            net,
            all,
        }
    }

    fn write(mut self, html: &mut Html, of: &Dump, from: &str, to: &str, per: Option<&Per>) {
        let process = match of.facts.process.as_str() {
            "" => "The heap",
            process => process,
        };
        let heap = match of.facts.heap.as_str() {
            "" => String::new(),
            heap => format!(" ({})", Foreign(heap)),
        };
        let noise = match self.all.is_some_and(|all| is_noise(&all)) {
            true => ", interval includes 0",
            false => "",
        };
        let each = match per {
            Some(per) => format!(" per {}", Foreign(&per.word)),
            None => String::new(),
        };
        let net = figure(self.net, self.all.as_ref(), per);
        html.add(format_args!(
            "<p><b>{}</b>{heap}, from {from} to {to}: {net}{each}{noise}.</p>\n",
            Foreign(process)
        ));
        // Order by the end of the interval that is nearer to zero.
        let certain = |net: i64, turnover: &Option<Turnover>| match turnover {
            Some(turnover) => {
                let estimate = turnover.estimate();
                if net > 0 {
                    estimate.low
                } else {
                    -estimate.high
                }
            }
            None => net.saturating_abs(),
        };
        let order = |(id, net, turnover): &Change| {
            let size = net.saturating_abs();
            (Reverse(certain(*net, turnover)), Reverse(size), *id)
        };
        self.rows.sort_by_cached_key(order);
        let (grown, shrunk): (Vec<&Change>, Vec<&Change>) =
            self.rows.iter().partition(|(_, net, _)| *net > 0);
        self.table(html, "grew", &grown, per);
        self.table(html, "shrank", &shrunk, per);
    }

    fn table(&self, html: &mut Html, what: &str, changes: &[&Change], per: Option<&Per>) {
        let (changes, noise): (Vec<&Change>, Vec<&Change>) = changes
            .iter()
            .copied()
            .partition(|(.., turnover)| !turnover.as_ref().is_some_and(is_noise));
        if !changes.is_empty() {
            self.list(html, what, &changes, per);
        }
        if !noise.is_empty() {
            html.add(format_args!(
                "<p class=\"note\">{} {what} with an interval that includes 0: not listed.</p>\n",
                counted(noise.len() as u64, "callsite", "callsites")
            ));
        }
    }

    /// Writes changes whose intervals exclude 0, or that have none.
    fn list(&self, html: &mut Html, what: &str, changes: &[&Change], per: Option<&Per>) {
        let left_out = match changes.len().saturating_sub(ROWS) {
            0 => String::new(),
            n => format!("; {} not shown", counted(n as u64, "more is", "more are")),
        };
        let each = match per {
            Some(per) => format!(" per {}", Foreign(&per.word)),
            None => String::new(),
        };
        let caption = format!(
            "Callsites that {what}{each}, by the smallest change within the 95% confidence \
             interval{left_out}."
        );
        let rows = changes.iter().take(ROWS).map(|(id, net, turnover)| {
            let place = Place::of(&self.shown, *id);
            vec![
                figure(*net, turnover.as_ref(), per),
                match turnover {
                    Some(_) => what,
                    None => "not sampled",
                }
                .to_owned(),
                place.cell(),
                place.at,
            ]
        });
        html.table(
            &caption,
            &["#change", "95% confidence", "function", "location"],
            rows,
        );
    }
}

fn counters(shown: &Shown<'_>, dump: &Dump) -> Vec<Counters> {
    let own = shown.own_columns(&dump.values);
    let place = |view| dump.measures.iter().position(|m| m.view == Some(view));
    let column = |view| place(view).map(|at| &own[at]);
    // For summed callsites, small samples cannot be derived from the sums.
    let is_small = |measure: &Measure| measure.small_of == Some(View::Space);
    let small = dump.measures.iter().position(is_small).map(|at| &own[at]);
    let [held, objects, alloc_space, alloc_objects] = [
        View::Space,
        View::Objects,
        View::AllocSpace,
        View::AllocObjects,
    ]
    .map(column);
    // For another tool's profile, use the column that it shows first.
    let space = held.or(own.get(dump.default_measure));
    let value = |column: Option<&Vec<i64>>, at: usize| column.map_or(0, |column| column[at]);
    (0..shown.len())
        .map(|at| Counters {
            space: value(space, at),
            objects: value(objects, at),
            alloc_space: value(alloc_space, at),
            alloc_objects: value(alloc_objects, at),
            small: small.map(|column| column[at]),
        })
        .collect()
}

/// Returns whether the interval of one change includes 0. `within sampling error` is another test:
/// `diff` and the changes of the viewer test all rows together.
fn is_noise(turnover: &Turnover) -> bool {
    let estimate = turnover.estimate();
    !estimate.exact && !estimate.sign_is_certain()
}

fn figure(net: i64, turnover: Option<&Turnover>, per: Option<&Per>) -> String {
    let times = per.map(|per| per.times).filter(|times| *times > 0.0);
    let estimate = turnover.map(Turnover::estimate);
    match (estimate, times) {
        (Some(estimate), None) => Foreign(&format!("{:+}", estimate.shown())).to_string(),
        (Some(estimate), Some(times)) => match estimate.per(times) {
            Some(rate) => Foreign(&format!("{:+}", rate.shown())).to_string(),
            None => String::new(),
        },
        (None, times) => {
            let sign = if net > 0 { "+" } else { "" };
            let each = (net as f64 / times.unwrap_or(1.0)).round();
            format!("{sign}{}", size(each as i64))
        }
    }
}

/// Returns the name of a dump for a sentence.
fn moment(dump: &Dump) -> String {
    match &dump.facts.label {
        Some(label) => format!("“{}”", Foreign(label)),
        None => format!("dump {}", dump.facts.number),
    }
}

fn verdicts(html: &mut Html, growth: &Growth) {
    let rows = growth.sites.iter().take(ROWS).map(|site| {
        vec![
            match site.verdict.as_str() {
                "grows" => "grows",
                "within-noise" => "within sampling error",
                _ => "inconclusive",
            }
            .to_owned(),
            format!("<b>{}</b>", Foreign(&fitting(&site.function))),
            Foreign(&site.says).to_string(),
        ]
    });
    let caption = format!(
        "Verdicts of <code>heaptap leaks</code> over all {} iterations, by growth per {}. “grows” is \
         a confirmed leak.",
        growth.rounds,
        Foreign(&growth.per)
    );
    html.table(&caption, &["verdict", "function", "reason"], rows);
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_model::stacks::NodeId;

    #[test]
    fn growth_that_can_be_chance_is_counted_and_not_listed() {
        let mut profile = StackProfile::default();
        let mut node = |name: &str| {
            let frame = profile.table.bare_frame(name);
            profile.table.child(NodeId::ROOT, frame)
        };
        let nodes = vec![node("leaking"), node("restless")];
        // The second replaces its allocations.
        for (held, allocated) in [([10, 10], [10, 10]), ([200, 11], [200, 18])] {
            let bytes = |hits: [i64; 2]| hits.map(|hits| hits * 4096).to_vec();
            let mut dump = Dump {
                measures: [
                    View::Objects,
                    View::Space,
                    View::AllocObjects,
                    View::AllocSpace,
                ]
                .map(Measure::of_view)
                .to_vec(),
                default_measure: 1,
                values: Values {
                    nodes: nodes.clone(),
                    columns: vec![
                        held.to_vec(),
                        bytes(held),
                        allocated.to_vec(),
                        bytes(allocated),
                    ],
                },
                ..Dump::default()
            };
            dump.facts.sampling_interval_bytes = 4096;
            profile.dumps.push(dump);
        }
        let (first, last) = (&profile.dumps[0], &profile.dumps[1]);
        let mut html = Html::default();
        let changes = Changes::of(&profile, Some(first), Some(last), true);
        changes.write(&mut html, last, "one", "two", None);
        let page = html.into_body();
        assert!(page.contains("leaking"), "{page}");
        assert!(!page.contains("restless"), "{page}");
        assert!(page.contains(">1 callsite grew with an interval"), "{page}");
    }

    #[test]
    fn summed_callsites_err_by_their_small_samples() {
        let mut profile = StackProfile::default();
        let other = profile.table.bare_frame("(other)");
        let other = profile.table.child(NodeId::ROOT, other);
        for large in [10, 60] {
            let mut measures: Vec<Measure> = [
                View::Objects,
                View::Space,
                View::AllocObjects,
                View::AllocSpace,
            ]
            .map(Measure::of_view)
            .to_vec();
            measures.push(Measure::small_samples(View::Space));
            let bytes = large * 100_001 + 2 * 4096;
            let row = [large + 2, bytes, large + 2, bytes, 2];
            let mut dump = Dump {
                measures,
                default_measure: 1,
                values: Values {
                    nodes: vec![other],
                    columns: row.map(|value| vec![value]).to_vec(),
                },
                ..Dump::default()
            };
            dump.facts.sampling_interval_bytes = 4096;
            profile.dumps.push(dump);
        }
        let reach = |profile: &StackProfile| {
            let [first, last] = &profile.dumps[..] else {
                panic!("two dumps");
            };
            let changes = Changes::of(profile, Some(first), Some(last), true);
            let all = changes.all.expect("it was sampled").estimate();
            assert_eq!(all.value, 50 * 100_001);
            all.value - all.low
        };
        let known = reach(&profile);
        for dump in &mut profile.dumps {
            dump.measures[4].small_of = None;
        }
        assert!(2 * known < reach(&profile), "{known}");
    }
}
