//! `diff` of native heaps: growth between two dumps of one or two recordings. Each heap of each
//! process is compared with its counterpart.

mod pairs;
mod profile;
mod report;

pub use pairs::Per;
pub use profile::ProfileFile;
pub use report::{Budget, ChangeRow, Compared, DiffReport, DiffRow, HeapDiff, Verdict};

use crate::heaps::input::facts::{DumpFacts, FilterFacts};
use crate::heaps::input::rows::{Namer, Order};
use crate::heaps::input::{MANY_UNNAMED, NativeFile};
use heaptap_analyze::native::diff::{Change, Diff, DumpRelation, Growing, Row, Terms};
use heaptap_analyze::native::filter::Filter;
use heaptap_analyze::native::groups::RowKey;
use heaptap_base::error::Failure;
use heaptap_model::stacks::{Dump, JoinBy, Library, StackProfile, join};
use heaptap_results::findings::{self, Finding};
use heaptap_results::manifest::MissingLibrary;
use pairs::Pair;
use report::NAMES_DIFFER;

/// Options of a comparison.
#[derive(Debug, Clone)]
pub struct DiffRequest {
    pub by: RowKey,
    /// Change by which rows are ordered.
    pub order: Order,
    /// Kind of memory whose growth is computed.
    pub growing: Growing,
    /// Divisor of the values.
    pub per: Per,
    /// Filter of stacks.
    pub filter: Filter,
    /// Maximum number of rows with a significant change, for each heap.
    pub limit: usize,
    /// Maximum number of further rows within sampling error.
    pub noise_limit: usize,
    /// Maximum number of frames of each stack, leaf first; 0 means no limit. Only for tables by
    /// callsite.
    pub frames: usize,
}

/// Compares two files.
///
/// # Errors
/// Returns an error if no heaps are comparable, or growth per time is requested but unknown.
pub fn diff(
    before: &NativeFile,
    after: &NativeFile,
    request: &DiffRequest,
) -> Result<Compared, Failure> {
    let found = pairs::of(before, after, request.growing)?;
    let same_recording = pairs::is_same_recording(before, after);
    let by = match same_recording {
        true => JoinBy::Exact,
        false => JoinBy::Name,
    };
    let joined = join(&[&before.profile.table, &after.profile.table], by);
    let mut profile = StackProfile {
        table: joined.table,
        dumps: Vec::new(),
    };
    let mut pairs = Vec::new();
    for pair in &found.pairs {
        let mut enter = |dump: Option<&Dump>, side: usize| {
            dump.map(|dump| {
                profile.dumps.push(Dump {
                    values: dump.values.through(&joined.nodes[side]),
                    facts: dump.facts.clone(),
                    measures: dump.measures.clone(),
                    default_measure: dump.default_measure,
                    // Comparisons by thread do not exist, because thread IDs differ between runs.
                    threads: Vec::new(),
                });
                profile.dumps.len() - 1
            })
        };
        pairs.push((enter(pair.before, 0), enter(pair.after, 1)));
    }
    let mut heaps = Vec::new();
    for (pair, places) in found.pairs.iter().zip(&pairs) {
        heaps.push(heap(
            (before, after),
            pair,
            *places,
            &profile,
            same_recording,
            request,
        )?);
    }
    heaps.sort_by_key(|heap: &HeapDiff| {
        std::cmp::Reverse(heap.total.before.bytes.max(heap.total.after.bytes))
    });
    let both = [&before.findings, &after.findings];
    // Names that only one side has make every row look grown or gone.
    let unnamed = after.names_missing().or_else(|| before.names_missing());
    let mut warnings: Vec<Finding> = Vec::new();
    for finding in both.into_iter().flatten().chain(&unnamed) {
        let mut known = warnings.iter();
        if known.all(|known| known.message != finding.message) {
            warnings.push(finding.clone());
        }
    }
    let all = both.iter().map(|of| of.as_slice());
    findings::keep_missing_everywhere(&mut warnings, all);
    if same_recording && found.is_one_dump() {
        warnings.push(findings::same_moment());
    }
    warnings.extend(found.notes);
    warnings.extend(names_differ(before, after));
    Ok(Compared {
        report: DiffReport {
            kind: "native",
            by: request.by.name(),
            sort: request.order.name(),
            view: request.growing.views().0.name(),
            per: match request.per {
                Per::Whole => None,
                Per::Iterations(_) => Some("iteration"),
                Per::Seconds => Some("second"),
            },
            filter: FilterFacts::from(&request.filter),
            heaps,
            warnings,
            verdict: None,
        },
        profile,
        pairs,
    })
}

/// Returns a warning if functions have names on only one side.
fn names_differ(before: &NativeFile, after: &NativeFile) -> Option<Finding> {
    let side = match (lacks_names_of(before, after), lacks_names_of(after, before)) {
        (true, false) => "first",
        (false, true) => "second",
        _ => return None,
    };
    let message = format!(
        "the {side} input lacks symbols that the other input has, so one function might appear \
         both as new and as gone"
    );
    let help = "symbolize both with `heaptap symbolize`, or add `--symbols DIR`";
    Some(Finding::new(NAMES_DIFFER, None, message).with_help(help))
}

/// Returns whether many allocations of `one` are in unnamed functions of a library whose functions
/// all have names in `other`.
fn lacks_names_of(one: &NativeFile, other: &NativeFile) -> bool {
    let (Some(mine), Some(theirs)) = (&one.symbolization, &other.symbolization) else {
        return false;
    };
    // Dumps of one file have different functions but the same names.
    if pairs::is_same_file(one, other) {
        return false;
    }
    // Each install has its own directory.
    let name = |path: &str| path.rsplit(['/', '!']).next().map(str::to_owned);
    let table = &other.profile.table;
    let much = |library: &&MissingLibrary| library.leaf_share >= MANY_UNNAMED;
    mine.libraries_missing.iter().filter(much).any(|library| {
        let wanted = name(&library.path);
        let is_missing = |missing: &MissingLibrary| name(&missing.path) == wanted;
        let is_there = |there: &Library| name(table.text_of(there.path)) == wanted;
        table.libraries().iter().any(is_there) && !theirs.libraries_missing.iter().any(is_missing)
    })
}

fn heap(
    files: (&NativeFile, &NativeFile),
    pair: &Pair<'_>,
    places: (Option<usize>, Option<usize>),
    profile: &StackProfile,
    same_recording: bool,
    request: &DiffRequest,
) -> Result<HeapDiff, Failure> {
    let same_run = same_recording && pair.is_one_run();
    let backwards = same_recording && !same_run && pair.swapped().is_one_run();
    let divisors = pair.divisors(request.per, same_run)?;
    let terms = Terms {
        by: request.by,
        growing: request.growing,
        relation: match same_run {
            true => DumpRelation::OneRun,
            false => DumpRelation::Apart,
        },
        divisors,
    };
    let dump = |place: Option<usize>| place.map(|place| &profile.dumps[place]);
    let diff = Diff::new(
        &profile.table,
        dump(places.0),
        dump(places.1),
        &request.filter,
        &terms,
    );
    let change = match request.order {
        Order::Cumulative => |row: &Row| -> Change { row.cumulative },
        Order::Own | Order::Name => |row: &Row| row.own,
    };
    let namer = Namer::new(&profile.table, &diff.shown, &diff.groups, request.frames);
    let ranked = diff.ranked(change);
    let certain = |at: &usize| diff.has_limits && change(&diff.rows[*at]).is_certain;
    let rows_confirmed = ranked.iter().filter(|at| certain(at)).count();
    let rows_within_sampling_error = match diff.has_limits {
        true => ranked.len() - rows_confirmed,
        false => 0,
    };
    let (mut wanted, noise) = ranked.split_at(match diff.has_limits {
        true => rows_confirmed,
        false => ranked.len(),
    });
    let rows_left_out = wanted.len().saturating_sub(request.limit);
    wanted = &wanted[..wanted.len() - rows_left_out];
    let noise = &noise[..noise.len().min(request.noise_limit)];
    let by_name = |rows: &[usize]| -> Vec<usize> {
        let mut rows = rows.to_vec();
        if request.order == Order::Name {
            rows.sort_by_cached_key(|at| namer.name(diff.rows[*at].key));
        }
        rows
    };
    let ranked = [by_name(wanted), by_name(noise)].concat();
    let has_limits = diff.has_limits;
    let rows = ranked.into_iter().map(|at| {
        let row = &diff.rows[at];
        let (at, stack) = namer.row(row.key);
        DiffRow {
            at,
            own: ChangeRow::new(&row.own, has_limits),
            cumulative: ChangeRow::new(&row.cumulative, has_limits),
            stack,
        }
    });
    Ok(HeapDiff {
        matches: diff.shown.has_matches(),
        before: pair.before.map(|dump| DumpFacts::new(files.0, dump)),
        after: pair.after.map(|dump| DumpFacts::new(files.1, dump)),
        same_run,
        backwards,
        divisors,
        total: ChangeRow::new(&diff.total, has_limits),
        shown: ChangeRow::new(&diff.left, has_limits),
        rows: rows.collect(),
        rows_left_out,
        rows_confirmed,
        rows_within_sampling_error,
    })
}
