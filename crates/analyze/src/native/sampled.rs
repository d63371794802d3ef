//! The error of a dump's sums, one rule for all who show them: of each callsite the samples that may
//! be smaller than the sampling interval are counted by itself, and those counts are added up. Sums
//! of bytes and samples alone would take large allocations for small ones, and err wider the more
//! callsites they are of.

use crate::sampling::{Estimate, Interval, Sampled};
use heaptap_model::stacks::{Dump, Measure, View};

/// What the error of one column of bytes follows from.
#[derive(Debug, Clone)]
pub struct SampledColumn {
    /// Place of the column with the number of samples.
    pub counts: usize,
    /// The sampling interval.
    pub interval: Interval,
    /// By row of the dump's values the samples that may be smaller than the interval.
    pub small: Vec<i64>,
}

impl SampledColumn {
    /// The error of the column at `at`; `None` if nothing is known of it.
    pub fn of(dump: &Dump, at: usize) -> Option<SampledColumn> {
        let bytes = dump.measures.get(at)?.view?;
        let counts = match bytes {
            View::Space => View::Objects,
            View::AllocSpace => View::AllocObjects,
            View::Objects | View::AllocObjects => return None,
        };
        let is_it = |measure: &Measure| measure.view == Some(counts);
        let counts = dump.measures.iter().position(is_it)?;
        let interval = Interval::of(&dump.facts)?;
        let columns = &dump.values.columns;
        let rows = columns[at].iter().zip(&columns[counts]);
        let small = |(bytes, count): (&i64, &i64)| {
            i64::try_from(Sampled::new(*bytes, *count, interval).small()).unwrap_or(i64::MAX)
        };
        let known = dump
            .measures
            .iter()
            .position(|m| small_of(m) == Some(bytes));
        Some(SampledColumn {
            counts,
            interval,
            small: match known {
                Some(known) => columns[known].clone(),
                None => rows.map(small).collect(),
            },
        })
    }

    /// The estimate of a sum over callsites, from its bytes, samples and small samples.
    pub fn estimate(&self, bytes: i64, samples: i64, small: i64) -> Estimate {
        Sampled::of_sums(bytes, samples, small, self.interval).estimate()
    }
}

/// What a column is called that has the small samples of the view `bytes`, for dumps whose
/// callsites were summed: of a sum they can't be told.
pub fn small_name(bytes: View) -> String {
    format!("small_{}", bytes.name())
}

/// The view of bytes that such a column is about.
pub fn small_of(measure: &Measure) -> Option<View> {
    let bytes = [View::Space, View::AllocSpace];
    let of = |view: &View| measure.view.is_none() && measure.name == small_name(*view);
    bytes.into_iter().find(of)
}

/// The sum of a view over all callsites of a dump; `None` if nothing is known of its error.
pub fn total(dump: &Dump, view: View) -> Option<Estimate> {
    let at = dump.measures.iter().position(|m| m.view == Some(view))?;
    let sampled = SampledColumn::of(dump, at)?;
    let sum = |column: &[i64]| column.iter().fold(0i64, |sum, v| sum.saturating_add(*v));
    let columns = &dump.values.columns;
    Some(sampled.estimate(
        sum(&columns[at]),
        sum(&columns[sampled.counts]),
        sum(&sampled.small),
    ))
}
