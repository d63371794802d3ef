//! Several inputs of one page: merges them into one table, and selects the dumps to compare.

use std::ops::Range;

use super::request::ReportInput;
use crate::heaps::input::{DumpScope, NativeFile};
use crate::heaps::pairs::pairs;
use crate::heaps::selector::DumpSelector;
use heaptap_model::stacks::{Dump, JoinBy, StackProfile, join};
use heaptap_report::data::header::{Diff, Pair, Per};

/// Merges several inputs into one table; returns the start of each input's dumps.
pub(super) fn joined(files: Vec<(String, Box<NativeFile>)>) -> (StackProfile, Vec<usize>) {
    let tables: Vec<_> = files.iter().map(|(_, file)| &file.profile.table).collect();
    let joined = join(&tables, JoinBy::Name);
    let mut dumps: Vec<Dump> = Vec::new();
    let mut starts = Vec::new();
    for ((name, file), nodes) in files.into_iter().zip(&joined.nodes) {
        starts.push(dumps.len());
        for mut dump in file.profile.dumps {
            dump.move_to(nodes);
            dump.facts.label = Some(match dump.facts.label {
                Some(label) if !name.contains('@') => format!("{name}@{label}"),
                _ => name.clone(),
            });
            dumps.push(dump);
        }
    }
    let profile = StackProfile {
        table: joined.table,
        dumps,
    };
    (profile, starts)
}

/// Selects the dumps to compare: of each heap the last selected one, or the default, on both sides.
pub(super) fn diff(
    base: &ReportInput,
    main: &ReportInput,
    per: Option<Per>,
    profile: &StackProfile,
    starts: &[usize],
) -> Diff {
    let dumps = &profile.dumps;
    // Several inputs are joined, that of the base first.
    let same_recording = starts.is_empty();
    let (before, after): (Vec<usize>, Vec<usize>) = match starts.get(1) {
        Some(&second) => {
            let end = starts.get(2).copied().unwrap_or(dumps.len());
            let meant = |input: &ReportInput, side: Range<usize>| {
                let is_all = !matches!(input.wanted, DumpScope::These(_));
                side.filter(|&at| !is_all || dumps[at].facts.is_default)
                    .collect()
            };
            (meant(base, 0..second), meant(main, second..end))
        }
        None => {
            let end = DumpSelector::End.to_string();
            let labelled_end = dumps
                .iter()
                .any(|dump| dump.facts.label.as_ref() == Some(&end));
            let meant = |input: &ReportInput| {
                let all = 0..dumps.len();
                all.filter(|&at| is_meant(&dumps[at], &input.wanted, labelled_end))
                    .collect()
            };
            (meant(base), meant(main))
        }
    };
    let facts = |side: &[usize]| -> Vec<_> { side.iter().map(|&at| &dumps[at].facts).collect() };
    let found = pairs(&facts(&before), &facts(&after));
    let pairs = found.pairs.into_iter().map(|pair| Pair {
        before: pair.before.map(|at| before[at]),
        after: pair.after.map(|at| after[at]),
    });
    let pairs = pairs.collect();
    Diff {
        before: base.to_string(),
        after: main.to_string(),
        pairs,
        same_recording,
        per,
    }
}

/// `labelled_end`: whether a dump has the label that otherwise means the end.
fn is_meant(dump: &Dump, wanted: &DumpScope, labelled_end: bool) -> bool {
    let DumpScope::These(named) = wanted else {
        return dump.facts.is_default;
    };
    named.iter().any(|which| match which {
        DumpSelector::Last => true,
        DumpSelector::End => {
            !labelled_end || dump.facts.label.as_deref() == Some(&which.to_string())
        }
        DumpSelector::Number(number) => {
            let label = number.to_string();
            dump.facts.number == *number || dump.facts.label.as_deref() == Some(&label)
        }
        DumpSelector::Label(label) => dump.facts.label.as_ref() == Some(label),
    })
}
