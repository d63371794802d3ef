//! Growth over the dumps of an input, with the verdicts of `leaks`.

use crate::heaps::growth;
use crate::heaps::input::NativeFile;
use heaptap_report::data;
use heaptap_report::data::header::{Growth, GrowthSite, Interval, Series};

/// Callsites of each heap.
const SITES: usize = 20;
/// Minimum number of dumps: two show growth, but not whether it continues.
const DUMPS: usize = 3;

/// Returns the verdicts for each heap with enough dumps.
pub(super) fn growth(file: &NativeFile) -> Vec<Growth> {
    let (series, _) = data::series(&file.profile, &[]);
    if series.iter().all(|series| series.dumps.len() < DUMPS) {
        return Vec::new();
    }
    let Some(document) = growth::of_file(file, SITES) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for row in &document.series {
        for heap in &row.heaps {
            let is_it = |series: &&Series| {
                (series.pid, series.process.as_str(), series.heap.as_str())
                    == (row.pid, row.process.as_str(), heap.heap.as_str())
            };
            let mut lives = series.iter().filter(is_it);
            let (Some(first), None) = (lives.next(), lives.next()) else {
                continue;
            };
            if heap.dumps.len() < DUMPS {
                continue;
            }
            let place = series.iter().position(|series| std::ptr::eq(series, first));
            let sites = row.sites.iter().filter(|site| site.heap == heap.heap);
            all.push(Growth {
                series: place.unwrap_or(0),
                per: "iteration".to_owned(),
                rounds: heap.rounds,
                sites: sites
                    .map(|site| GrowthSite {
                        function: site.own.function.clone(),
                        library: site.own.library.clone(),
                        allocators: (site.allocators.iter())
                            .filter(|allocator| **allocator != site.own.function)
                            .cloned()
                            .collect(),
                        per_round: Interval {
                            value: site.growth_per_iteration.rate.value,
                            low: site.growth_per_iteration.rate.low,
                            high: site.growth_per_iteration.rate.high,
                        },
                        verdict: site.verdict.to_owned(),
                        says: site.sentence.clone(),
                    })
                    .collect(),
            });
        }
    }
    all
}
