//! `diff` of native heaps: what grew between two dumps of one recording or of two, each heap of
//! each process with its like on the other side.

mod error;
mod pairs;
mod profile;

pub use error::DiffError;
pub use profile::ProfileFile;

use serde::Serialize;

use crate::analyze::native::diff::{Change, Diff, DumpRelation, Growing, Row, Terms};
use crate::analyze::native::filter::Filter;
use crate::analyze::native::groups::RowKey;
use crate::analyze::sampling::Rate;
use crate::heaps::input::facts::{DumpFacts, FilterFacts, Growth, StackFrame};
use crate::heaps::input::rows::{Namer, Order};
use crate::heaps::input::{MANY_UNNAMED, NativeFile};
use crate::heaps::java::facts::Warning;
use crate::results::findings::{SAME_MOMENT, TRACE_CUT};
use crate::results::manifest::MissingLibrary;
use crate::stacks::{Dump, JoinBy, Library, StackProfile, join};
use pairs::Pair;

/// What is asked.
#[derive(Debug, Clone)]
pub struct DiffRequest {
    /// What a row stands for.
    pub by: RowKey,
    /// Which change orders rows.
    pub order: Order,
    /// Whose growth it is.
    pub growing: Growing,
    /// What values are divided by.
    pub per: Per,
    /// Which stacks count.
    pub filter: Filter,
    /// At most so many rows of each heap that changed for certain.
    pub limit: usize,
    /// At most so many more that sampling explains.
    pub noise_limit: usize,
    /// Frames of each stack, leaf first, at most; 0 is all. Of tables by callsite alone.
    pub frames: usize,
}

/// What values are divided by.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Per {
    /// Nothing.
    #[default]
    Whole,
    /// So many iterations of each side.
    Iterations([f64; 2]),
    /// Seconds: between the dumps of one recording, since profiling began of two.
    Seconds,
}

/// What changed, as a document.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DiffReport {
    /// `native`.
    pub kind: &'static str,
    /// What a row stands for.
    pub by: &'static str,
    /// Which change orders rows: `self` or `cumulative`.
    pub sort: &'static str,
    /// The view: `space` or `alloc_space`.
    pub view: &'static str,
    /// `iteration`, `second`, or absent where growth is undivided.
    pub per: Option<&'static str>,
    /// Which stacks count.
    pub filter: FilterFacts,
    /// Each heap with its like on the other side, the largest first.
    pub heaps: Vec<HeapDiff>,
    /// What the user should know.
    pub warnings: Vec<Warning>,
    /// How a limit on growth came out, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
}

/// A heap before and after.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeapDiff {
    /// The first dump; absent where only the second has this heap.
    pub before: Option<DumpFacts>,
    /// The second dump.
    pub after: Option<DumpFacts>,
    /// Whether both are of one run of one process: what survived cancels, with its error.
    pub same_run: bool,
    /// Whether both are of one run, but the first dump is the later one.
    #[serde(skip)]
    pub backwards: bool,
    /// What values before and after are divided by.
    pub divisors: [f64; 2],
    /// Of everything.
    pub total: ChangeRow,
    /// Of what the filter leaves.
    pub shown: ChangeRow,
    /// Whether the filter matches any sample.
    pub matches: bool,
    /// Rows: what is certain first, growth before what shrank.
    pub rows: Vec<DiffRow>,
    /// Rows that changed for certain, before the limit.
    pub rows_certain: usize,
    /// Rows whose change sampling explains, before the limit.
    pub rows_within_noise: usize,
}

/// A row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DiffRow {
    /// What it stands for.
    pub name: String,
    /// The library, by its file name, where it stands for a function, a line or a callsite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// Source file, where it stands for a line or a callsite and that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Of stacks that end there.
    #[serde(rename = "self")]
    pub own: ChangeRow,
    /// Of stacks that pass there.
    pub cumulative: ChangeRow,
    /// The stack, leaf first, where it stands for a callsite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack: Option<Vec<StackFrame>>,
}

/// How much more or less.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ChangeRow {
    /// `new`, `gone`, `grown`, `shrunk` or `same`, as sampled.
    pub status: &'static str,
    /// Whether sampling does not explain it.
    pub certain: bool,
    /// Before.
    pub before: Amount,
    /// After.
    pub after: Amount,
    /// After less before, each divided.
    pub growth: Growth,
}

/// Sampled bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Amount {
    /// Bytes.
    pub bytes: i64,
    /// Sampled allocations.
    pub samples: i64,
}

impl ChangeRow {
    fn of(change: &Change, has_limits: bool) -> ChangeRow {
        ChangeRow {
            status: change.status(),
            certain: has_limits && change.is_certain,
            before: Amount {
                bytes: change.before,
                samples: change.samples_before,
            },
            after: Amount {
                bytes: change.after,
                samples: change.samples_after,
            },
            growth: Growth::of(change.growth, has_limits),
        }
    }
}

/// Two files side by side in one table.
#[derive(Debug)]
pub struct Compared {
    /// The document.
    pub report: DiffReport,
    /// All dumps that were compared, over one table.
    pub profile: StackProfile,
    /// Which of them belong together, by their places: before and after.
    pub pairs: Vec<(Option<usize>, Option<usize>)>,
}

/// How a limit on growth came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Budget {
    /// Surely within.
    Kept,
    /// Surely over.
    Exceeded,
    /// Sampling error reaches to both sides of it, or is not known.
    Open,
}

/// The answer to a limit on growth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The limit in bytes, by iteration or second where growth is.
    pub limit_bytes: u64,
    /// How it came out.
    pub outcome: Budget,
    /// Why it is open for another reason than sampling error.
    pub why: Option<&'static str>,
}

/// Kind of the warning that the two sides differ in names that they have.
pub const NAMES_DIFFER: &str = "names-differ";

impl DiffReport {
    /// Whether the filter matches any sample of any heap.
    pub fn matches(&self) -> bool {
        self.heaps.iter().any(|heap| heap.matches)
    }

    /// Judges growth by `limit`, unless something keeps that open: `missing` are data of a side,
    /// `is_filtered` whether names choose what is shown.
    pub fn judge(&mut self, limit: u64, missing: bool, is_filtered: bool) {
        let warns = |kind: &str| self.warnings.iter().any(|warning| warning.kind == kind);
        let budget = self.budget(limit);
        // What keeps growth from being shown, whatever the figures are.
        let always = if !self.matches() {
            Some("nothing matches the filters")
        } else if missing {
            Some("data are missing from a side")
        } else if warns(SAME_MOMENT) {
            Some("both sides are the same moment")
        } else if self.heaps.iter().any(|heap| heap.backwards) {
            Some("the first dump is the later one")
        } else if is_filtered && warns(NAMES_DIFFER) {
            Some("one side lacks names that the other has")
        } else {
            None
        };
        // What may have grown unseen: growth that was seen is no less.
        let unseen = if self.heaps.iter().any(|heap| heap.after.is_none()) {
            Some("the second input lacks a heap of the first")
        } else if warns(TRACE_CUT) {
            Some("a trace is cut")
        } else {
            None
        };
        let why = always.or(unseen.filter(|_| budget != Budget::Exceeded));
        self.verdict = Some(Verdict {
            limit_bytes: limit,
            outcome: why.map_or(budget, |_| Budget::Open),
            why,
        });
    }

    /// Growth of what is shown over all heaps that the second side has.
    pub fn growth(&self) -> Rate {
        let (mut below, mut above) = (0.0f64, 0.0f64);
        let mut sum = Rate {
            value: 0.0,
            low: 0.0,
            high: 0.0,
            hits: 0.0,
            samples: 0,
            exact: true,
        };
        for heap in self.heaps.iter().filter(|heap| heap.after.is_some()) {
            let part = heap.shown.growth.rate;
            sum.value += part.value;
            sum.hits += part.hits;
            sum.samples = sum.samples.saturating_add(part.samples);
            sum.exact &= part.exact;
            below = below.hypot(part.value - part.low);
            above = above.hypot(part.high - part.value);
        }
        sum.low = sum.value - below;
        sum.high = sum.value + above;
        sum
    }

    /// Whether a limit in bytes (by iteration or second, where growth is) is exceeded.
    pub fn budget(&self, limit: u64) -> Budget {
        let growth = self.growth();
        let limit = limit as f64;
        if self
            .heaps
            .iter()
            .any(|heap| heap.shown.growth.low.is_none())
        {
            Budget::Open
        } else if growth.low > limit {
            Budget::Exceeded
        } else if growth.high <= limit {
            Budget::Kept
        } else {
            Budget::Open
        }
    }
}

/// Compares two files.
///
/// # Errors
/// Where no heap of both may be compared, or times are asked for and not known.
pub fn diff(
    before: &NativeFile,
    after: &NativeFile,
    request: &DiffRequest,
) -> Result<Compared, DiffError> {
    let found = pairs::of(before, after)?;
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
                    // Nothing is compared by thread: ids are another run's.
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
    let mut warnings: Vec<Warning> = Vec::new();
    for finding in both.into_iter().flatten().chain(&unnamed) {
        let warning = Warning::from(finding);
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    if same_recording && found.is_one_dump() {
        warnings.push(Warning::same_moment());
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

/// That a function with a name on one side may have none on the other.
fn names_differ(before: &NativeFile, after: &NativeFile) -> Option<Warning> {
    let side = match (lacks_names_of(before, after), lacks_names_of(after, before)) {
        (true, false) => "first",
        (false, true) => "second",
        _ => return None,
    };
    Some(Warning {
        kind: NAMES_DIFFER,
        message: format!(
            "the {side} input lacks names that the other one has: a function may be new under its \
             name, and gone without it"
        ),
        help: Some("name the functions of both: heaptap symbolize, --symbols DIR".to_owned()),
    })
}

/// Whether much was allocated in functions without a name of a library, which all have one in the
/// other file.
fn lacks_names_of(one: &NativeFile, other: &NativeFile) -> bool {
    let (Some(mine), Some(theirs)) = (&one.symbolization, &other.symbolization) else {
        return false;
    };
    // Of one file, dumps have different functions, and the same names.
    if pairs::is_same_file(one, other) {
        return false;
    }
    // Each install has a folder of its own.
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
) -> Result<HeapDiff, DiffError> {
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
    let diff = Diff::of(
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
    let ranked = diff.ranked(0, change);
    let certain = |at: &usize| diff.has_limits && change(&diff.rows[*at]).is_certain;
    let rows_certain = ranked.iter().filter(|at| certain(at)).count();
    let rows_within_noise = match diff.has_limits {
        true => ranked.len() - rows_certain,
        false => 0,
    };
    let (mut wanted, noise) = ranked.split_at(match diff.has_limits {
        true => rows_certain,
        false => ranked.len(),
    });
    wanted = &wanted[..wanted.len().min(request.limit)];
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
        let named = namer.row(row.key);
        DiffRow {
            name: named.name,
            library: named.library,
            file: named.file,
            line: named.line,
            own: ChangeRow::of(&row.own, has_limits),
            cumulative: ChangeRow::of(&row.cumulative, has_limits),
            stack: named.stack,
        }
    });
    Ok(HeapDiff {
        matches: diff.shown.has_matches(),
        before: pair.before.map(|dump| DumpFacts::of(files.0, dump)),
        after: pair.after.map(|dump| DumpFacts::of(files.1, dump)),
        same_run,
        backwards,
        divisors,
        total: ChangeRow::of(&diff.total, has_limits),
        shown: ChangeRow::of(&diff.left, has_limits),
        rows: rows.collect(),
        rows_certain,
        rows_within_noise,
    })
}
