//! Statistics of sampled heaps: intervals, differences, growth, verdicts. Pure functions over
//! numbers, independent of callsites, dumps and files. `docs/internals/analysis.md` derives the rules and
//! contains the table of the simulation.
//!
//! The sampler (heapprofd, `libprofiling`) has one countdown per heap, whose gaps are exponential
//! with mean T, the sampling interval. An allocation below T lowers it by its size. It is recorded
//! as T bytes for each time the countdown runs out (a *hit*), or not at all. An allocation of T or
//! more is recorded at its true size. Bytes are thus unbiased estimates with the variance T·S,
//! where S is the size of allocations below T. Counts are numbers of recorded allocations.
//!
//! | file | owns |
//! |---|---|
//! | `poisson` | limits for a number of hits |
//! | `estimate` | samples, intervals, sums, limits for callsites without samples |
//! | `difference` | two dumps of one recording, or two recordings |
//! | `growth` | steadiness of growth over a series |
//! | `verdict` | verdicts on callsites |
//! | `plan` | power, and measurements that would decide |
//! | `shown` | display form and digits of estimates |
//! | `special`, `student` | probability functions |

mod difference;
mod estimate;
pub mod growth;
pub mod plan;
pub mod poisson;
mod shown;
pub mod special;
pub mod student;
pub mod verdict;

pub use difference::{Counters, Turnover};
pub use estimate::{Estimate, Interval, Rate, Sampled, unseen_at_most};
pub use shown::{Form, Shown, ShownUnit};

#[cfg(test)]
pub(crate) mod simulation;
