//! What a sampled heap lets one say of the true one: intervals, differences, growth, verdicts.
//! Pure functions over numbers: it knows no callsites, dumps or files, and prints nothing.
//! `docs/sampling.md` derives the rules for readers and holds the table of the simulation.
//!
//! The sampler (heapprofd, `libprofiling`): one countdown a heap, its gaps exponential with
//! mean T, the sampling interval. An allocation below T lowers it by its size and is recorded
//! as T bytes for each time the countdown runs out (a *hit*), or not at all; one of T or more
//! is recorded at its true size. Bytes are thus unbiased estimates with the variance T·S, where
//! S is what allocations below T make up; counts are numbers of recorded allocations.
//!
//! | file | owns |
//! |---|---|
//! | `poisson` | limits for a number of hits |
//! | `estimate` | what was sampled, its interval, sums, what was never seen |
//! | `difference` | two dumps of one recording, or two recordings |
//! | `share` | shares and ratios |
//! | `allocations` | how many allocations there truly were |
//! | `growth` | growth per iteration over a series, and whether it is steady |
//! | `verdict` | whether a callsite leaks |
//! | `plan` | what can be found, and what would decide |
//! | `adaptive` | intervals where the sampling interval changed on the way |
//! | `shown` | how many digits of it are worth showing |
//! | `special` | the few functions of probability that the others need |

mod adaptive;
mod allocations;
mod difference;
mod estimate;
pub mod growth;
pub mod plan;
pub mod poisson;
mod share;
mod shown;
mod special;
pub mod verdict;

pub use adaptive::{Stretch, weighted};
pub use allocations::{allocations_at_least, allocations_of_size};
pub use difference::{Counters, Turnover};
pub use estimate::{Estimate, Interval, Rate, Sampled, unseen_at_most, unseen_at_most_of_many};
pub use share::{MIN_HITS_FOR_SHARE, Ratio, ratio, share};
pub use shown::{Form, Shown, ShownUnit};

#[cfg(test)]
pub(crate) mod simulation;
