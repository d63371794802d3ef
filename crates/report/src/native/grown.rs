//! Growth from the first dump of a heap to the last, by callsite, with the sampling error, and the
//! verdicts over all dumps if there are enough.

use super::super::data::header::{Diff, Growth, Header, Per, Series};
use super::super::html::{Foreign, Html};
use super::callsites::size;
use super::place::{Place, fitting};
use heaptap_analyze::native::filter::Filter;
use heaptap_analyze::native::visible_tree::{VisibleId, VisibleTree};
use heaptap_analyze::sampling::verdict::{
    FALSE_DISCOVERIES, MIN_HITS_TO_TEST, benjamini_hochberg_with,
};
use heaptap_analyze::sampling::{Counters, Estimate, Interval, Turnover};
use heaptap_base::parallel;
use heaptap_base::units::counted;
use heaptap_model::profile::DumpKind;
use heaptap_model::stacks::{Dump, Measure, StackProfile, Values, View};
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
        let changes = Changes::new(profile, Some(first), Some(last), true);
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
        let changes = Changes::new(profile, before, after, diff.same_recording);
        let name = |dump: Option<&Dump>| dump.map_or_else(|| "nothing".to_owned(), moment);
        changes.write(html, of, &name(before), &name(after), diff.per.as_ref());
    }
}

/// Change of a callsite's own bytes.
struct Change {
    id: VisibleId,
    net: i64,
    /// The least change within the interval, as far as certain: negative if the interval includes 0.
    certain: i64,
    /// Whether the change is within the sampling error.
    is_noise: bool,
}

impl Change {
    fn rank(&self) -> impl Ord + use<> {
        let size = self.net.saturating_abs();
        (Reverse(self.certain), Reverse(size), self.id)
    }
}

/// Number of callsites from which threads are started.
const WORTH_THREADS: usize = 1 << 14;

/// Changes between two dumps.
struct Changes<'a> {
    shown: VisibleTree<'a>,
    sides: [Side; 2],
    /// Intervals of the sides, if the errors are known.
    intervals: Option<(Interval, Interval)>,
    paired: bool,
    rows: Vec<Change>,
    net: i64,
    /// Total change, if its error is known.
    all: Option<Turnover>,
}

impl<'a> Changes<'a> {
    /// Compares two dumps. `paired`: both are from one run of a process, so survivors cancel.
    fn new(
        profile: &'a StackProfile,
        before: Option<&Dump>,
        after: Option<&Dump>,
        paired: bool,
    ) -> Changes<'a> {
        let dumps = || [before, after].into_iter().flatten();
        let values: Vec<&Values> = dumps().map(|dump| &dump.values).collect();
        let shown = VisibleTree::new(&profile.table, &Filter::default(), &values);
        // A side without the heap has the sampling interval of the other.
        let own = |dump: Option<&Dump>| Interval::from_facts(&dump.or(dumps().next())?.facts);
        let intervals = own(before).zip(own(after));
        let intervals = intervals.filter(|_| dumps().all(knows_held));
        let sides = parallel::both(|| Side::new(&shown, before), || Side::new(&shown, after));
        let mut changes = Changes {
            sides: sides.into(),
            intervals,
            paired,
            rows: Vec::new(),
            net: 0,
            all: intervals.map(|(first, second)| Turnover::nothing(first.wider(second))),
            shown,
        };
        let parts = parallel::ranges(changes.shown.len(), WORTH_THREADS, |ids| {
            let mut all = changes.all;
            let mut rows = Vec::new();
            let mut tests = Tests::default();
            for at in ids {
                let [old, new] = changes.sides.each_ref().map(|side| side.space(at));
                let allocated = changes.sides.each_ref().map(|side| side.allocated(at));
                if changes.paired && old == new && allocated[0] == allocated[1] {
                    continue;
                }
                let turnover = changes.turnover(at);
                let tested = turnover
                    .filter(|turnover| !turnover.is_exact() && turnover.hits() >= MIN_HITS_TO_TEST);
                if old == new {
                    tests.others += u64::from(tested.is_some());
                    continue;
                }
                let net = new.saturating_sub(old);
                all = all.zip(turnover).map(|(all, part)| all.plus(part));
                let estimate = turnover.as_ref().map(Turnover::estimate);
                let is_noise = estimate.is_some_and(|estimate| {
                    // Blocks recorded at their true size do not err.
                    let is_untested = tested.is_none() && estimate.hits > 0.0;
                    !estimate.exact && (is_untested || !estimate.sign_is_certain())
                });
                match tested {
                    Some(turnover) if !is_noise => {
                        tests.rows.push(rows.len());
                        tests.chances.push(turnover.chance());
                    }
                    tested => tests.others += u64::from(tested.is_some()),
                }
                rows.push(Change {
                    id: VisibleId(at as u32),
                    net,
                    certain: match estimate {
                        Some(estimate) if net > 0 => estimate.low,
                        Some(estimate) => -estimate.high,
                        None => net.saturating_abs(),
                    },
                    is_noise,
                });
            }
            (rows, all, tests)
        });
        let mut tests = Tests::default();
        for (rows, all, more) in parts {
            tests.add(more, changes.rows.len());
            changes.rows.extend(rows);
            changes.all = changes.all.zip(all).map(|(sum, part)| sum.plus(part));
        }
        tests.settle(&mut changes.rows);
        let nets = changes.rows.iter().map(|change| change.net);
        changes.net = nets.fold(0, i64::saturating_add);
        changes
    }

    fn turnover(&self, at: usize) -> Option<Turnover> {
        let (first, second) = self.intervals?;
        let [old, new] = self.sides.each_ref().map(|side| side.counters(at));
        Some(match self.paired {
            true => Turnover::paired(&old, &new, first.wider(second)),
            false => Turnover::independent(old.held(first), new.held(second)),
        })
    }

    fn write(&self, html: &mut Html, of: &Dump, from: &str, to: &str, per: Option<&Per>) {
        let process = match of.facts.process.as_str() {
            "" => "The heap",
            process => process,
        };
        let heap = match of.facts.heap.as_str() {
            "" => String::new(),
            heap => format!(" ({})", Foreign(heap)),
        };
        let is_noise = |all: &Estimate| !all.exact && !all.sign_is_certain();
        let noise = match self.all.is_some_and(|all| is_noise(&all.estimate())) {
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
        self.table(html, "grew", per, |change| change.net > 0);
        self.table(html, "shrank", per, |change| change.net <= 0);
    }

    fn table(
        &self,
        html: &mut Html,
        what: &str,
        per: Option<&Per>,
        is_it: impl Fn(&Change) -> bool,
    ) {
        let all = self.rows.iter().filter(|change| is_it(change));
        let (noise, changes): (Vec<&Change>, Vec<&Change>) = all.partition(|one| one.is_noise);
        if !changes.is_empty() {
            self.list(html, what, changes, per);
        }
        if !noise.is_empty() {
            html.add(format_args!(
                "<p class=\"note\">{} {what} within the sampling error: not listed.</p>\n",
                counted(noise.len() as u64, "callsite", "callsites")
            ));
        }
    }

    /// Writes changes beyond the sampling error, or without one.
    fn list(&self, html: &mut Html, what: &str, mut changes: Vec<&Change>, per: Option<&Per>) {
        let left_out = match changes.len().saturating_sub(ROWS) {
            0 => String::new(),
            n => {
                changes.select_nth_unstable_by_key(ROWS, |change| change.rank());
                changes.truncate(ROWS);
                format!("; {} not shown", counted(n as u64, "more is", "more are"))
            }
        };
        changes.sort_unstable_by_key(|change| change.rank());
        let each = match per {
            Some(per) => format!(" per {}", Foreign(&per.word)),
            None => String::new(),
        };
        let caption = format!(
            "Callsites that {what}{each}, by the smallest change within the 95% confidence \
             interval{left_out}."
        );
        let rows = changes.iter().map(|change| {
            let place = Place::new(&self.shown, change.id);
            let turnover = self.turnover(change.id.0 as usize);
            vec![
                figure(change.net, turnover.as_ref(), per),
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

/// Own values of a dump by callsite.
struct Side {
    columns: Vec<Vec<i64>>,
    /// Positions of the columns; the first is that of another tool if there is no `space`.
    space: Option<usize>,
    objects: Option<usize>,
    alloc_space: Option<usize>,
    alloc_objects: Option<usize>,
    /// For summed callsites, small samples cannot be derived from the sums.
    small: Option<usize>,
}

impl Side {
    fn new(shown: &VisibleTree<'_>, dump: Option<&Dump>) -> Side {
        let place = |is_it: &dyn Fn(&Measure) -> bool| dump?.measures.iter().position(is_it);
        let of = |view| place(&|measure| measure.view == Some(view));
        Side {
            columns: dump.map_or_else(Vec::new, |dump| shown.own_columns(&dump.values)),
            space: of(View::Space).or(dump.map(|dump| dump.default_measure)),
            objects: of(View::Objects),
            alloc_space: of(View::AllocSpace),
            alloc_objects: of(View::AllocObjects),
            small: place(&|measure| measure.small_of == Some(View::Space)),
        }
    }

    fn value(&self, column: Option<usize>, at: usize) -> i64 {
        let column = column.and_then(|column| self.columns.get(column));
        column.map_or(0, |column| column[at])
    }

    fn space(&self, at: usize) -> i64 {
        self.value(self.space, at)
    }

    fn allocated(&self, at: usize) -> i64 {
        self.value(self.alloc_space, at)
    }

    fn counters(&self, at: usize) -> Counters {
        Counters {
            space: self.space(at),
            objects: self.value(self.objects, at),
            alloc_space: self.allocated(at),
            alloc_objects: self.value(self.alloc_objects, at),
            small: self.small.map(|column| self.columns[column][at]),
        }
    }
}

/// Tests of changes by all callsites together, as in `diff`.
#[derive(Default)]
struct Tests {
    /// Indexes of the changes whose intervals exclude 0.
    rows: Vec<usize>,
    /// Probability of each that sampling alone produces such a change.
    chances: Vec<f64>,
    /// Number of other callsites with enough samples for a test.
    others: u64,
}

impl Tests {
    /// Adds tests of changes that follow `before` others.
    fn add(&mut self, more: Tests, before: usize) {
        self.rows
            .extend(more.rows.into_iter().map(|row| before + row));
        self.chances.extend(more.chances);
        self.others += more.others;
    }

    /// Makes noise of the changes that are not significant: of many callsites, chance alone gives
    /// some an interval without 0.
    fn settle(&self, rows: &mut [Change]) {
        let stand_out = benjamini_hochberg_with(&self.chances, self.others, FALSE_DISCOVERIES);
        for (row, stands_out) in self.rows.iter().zip(stand_out) {
            rows[*row].is_noise = !stands_out;
        }
    }
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
            site.verdict.replace('-', " "),
            format!("<b>{}</b>", Foreign(&fitting(&site.function))),
            Foreign(&site.says).to_string(),
        ]
    });
    let caption = format!(
        "Verdicts of <code>heaptap leaks</code> over all {} iterations, by growth per {}.",
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
    fn one_of_many_changes_needs_more_evidence_than_one_alone() {
        // Its own interval excludes 0; the others replace their allocations.
        let is_listed = |others: usize, later: [i64; 2]| {
            let mut profile = StackProfile::default();
            let names = (0..=others).map(|at| format!("function{at}"));
            let frames: Vec<_> = names.map(|name| profile.table.bare_frame(&name)).collect();
            let root = NodeId::ROOT;
            let nodes: Vec<NodeId> = frames
                .into_iter()
                .map(|frame| profile.table.child(root, frame))
                .collect();
            for (grown, restless) in [([2, 2], [10, 10]), ([9, 9], later)] {
                let column = |at: usize, hit: i64| {
                    let others = std::iter::repeat_n(restless[at] * hit, others);
                    std::iter::once(grown[at] * hit)
                        .chain(others)
                        .collect::<Vec<i64>>()
                };
                let views = [
                    View::Objects,
                    View::Space,
                    View::AllocObjects,
                    View::AllocSpace,
                ];
                let mut dump = Dump {
                    measures: views.map(Measure::of_view).to_vec(),
                    default_measure: 1,
                    values: Values {
                        nodes: nodes.clone(),
                        columns: vec![column(0, 1), column(0, 4096), column(1, 1), column(1, 4096)],
                    },
                    ..Dump::default()
                };
                dump.facts.sampling_interval_bytes = 4096;
                profile.dumps.push(dump);
            }
            let [first, last] = &profile.dumps[..] else {
                panic!("two dumps");
            };
            let changes = Changes::new(&profile, Some(first), Some(last), true);
            assert_eq!(
                changes.rows.len() - 1,
                if later[0] > 10 { others } else { 0 }
            );
            let mut html = Html::default();
            changes.write(&mut html, last, "dump 1", "dump 2", None);
            html.into_body().contains("function0")
        };
        assert!(is_listed(0, [11, 18]));
        assert!(!is_listed(30, [11, 18]));
        assert!(!is_listed(30, [10, 17]), "as many that did not change");
    }

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
        let changes = Changes::new(&profile, Some(first), Some(last), true);
        changes.write(&mut html, last, "one", "two", None);
        let page = html.into_body();
        assert!(page.contains("leaking"), "{page}");
        assert!(!page.contains("restless"), "{page}");
        assert!(
            page.contains(">1 callsite grew within the sampling error"),
            "{page}"
        );
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
            let changes = Changes::new(profile, Some(first), Some(last), true);
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
