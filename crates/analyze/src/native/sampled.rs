//! Sampling error of a dump's sums, the same everywhere. For each callsite, the samples that can be
//! smaller than the sampling interval are counted, and those counts are summed. From summed bytes
//! and samples alone, large allocations would look like small ones, and the error would grow with
//! the number of callsites.

use crate::sampling::{Estimate, Interval, Sampled};
use heaptap_model::stacks::{Dump, Measure, View};

/// Samples of one column of bytes that can be smaller than the sampling interval, by row.
#[derive(Debug, Clone, Copy)]
pub struct SmallSamples<'a> {
    /// Index of the column with the number of samples.
    counts: usize,
    interval: Interval,
    rows: SmallRows<'a>,
}

#[derive(Debug, Clone, Copy)]
enum SmallRows<'a> {
    /// Known counts, for summed callsites.
    Known(&'a [i64]),
    /// Bytes and samples from which counts are derived, for rows of one callsite each.
    Counted(&'a [i64], &'a [i64]),
}

impl<'a> SmallSamples<'a> {
    /// Returns the small samples of the column at `at`; `None` if its error is unknown.
    pub fn new(dump: &'a Dump, at: usize) -> Option<SmallSamples<'a>> {
        let bytes = dump.measures.get(at)?.view?;
        let counts = match bytes {
            View::Space => View::Objects,
            View::AllocSpace => View::AllocObjects,
            View::Objects | View::AllocObjects => return None,
        };
        let place = |is_it: &dyn Fn(&Measure) -> bool| dump.measures.iter().position(is_it);
        let counts = place(&|measure| measure.view == Some(counts))?;
        let columns = &dump.values.columns;
        let rows = match place(&|measure| measure.small_of == Some(bytes)) {
            Some(known) => SmallRows::Known(&columns[known]),
            None => SmallRows::Counted(&columns[at], &columns[counts]),
        };
        Some(SmallSamples {
            counts,
            interval: Interval::from_facts(&dump.facts)?,
            rows,
        })
    }

    /// Returns the number of small samples in a row of the dump's values.
    #[inline]
    pub fn at(&self, row: usize) -> i64 {
        match self.rows {
            SmallRows::Known(small) => small[row],
            SmallRows::Counted(bytes, samples) => {
                let sampled = Sampled::new(bytes[row], samples[row], self.interval);
                i64::try_from(sampled.small()).unwrap_or(i64::MAX)
            }
        }
    }

    fn all(&self) -> impl Iterator<Item = i64> + '_ {
        let (SmallRows::Known(column) | SmallRows::Counted(column, _)) = self.rows;
        (0..column.len()).map(|row| self.at(row))
    }
}

/// Inputs of the sampling error of one column of bytes.
#[derive(Debug, Clone)]
pub struct SampledColumn {
    /// Index of the column with the number of samples.
    pub counts: usize,
    pub interval: Interval,
    /// Samples that can be smaller than the interval, by row of the dump's values.
    pub small: Vec<i64>,
}

impl SampledColumn {
    /// Returns the inputs for the column at `at`; `None` if its error is unknown.
    pub fn new(dump: &Dump, at: usize) -> Option<SampledColumn> {
        let small = SmallSamples::new(dump, at)?;
        Some(SampledColumn {
            counts: small.counts,
            interval: small.interval,
            small: small.all().collect(),
        })
    }

    /// Returns the estimate of a sum over callsites from its bytes, samples and small samples.
    pub fn estimate(&self, bytes: i64, samples: i64, small: i64) -> Estimate {
        Sampled::of_sums(bytes, samples, small, self.interval).estimate()
    }
}

/// Returns the sum of a view over all callsites of a dump; `None` if its error is unknown.
pub fn total(dump: &Dump, view: View) -> Option<Estimate> {
    let at = dump.measures.iter().position(|m| m.view == Some(view))?;
    let small = SmallSamples::new(dump, at)?;
    let column = |at: usize| sum(dump.values.columns[at].iter().copied());
    let (bytes, samples) = (column(at), column(small.counts));
    Some(Sampled::of_sums(bytes, samples, sum(small.all()), small.interval).estimate())
}

fn sum(all: impl Iterator<Item = i64>) -> i64 {
    all.fold(0, i64::saturating_add)
}
