//! Simulation of the exact sampler against the formulas: coverage of intervals and error rate of
//! verdicts. Seeds are fixed. A quick version runs with every test. The full version
//! (`docs/internals/analysis.md` contains its table) runs with
//! `cargo test --release -p heaptap-analyze --lib sampling::simulation -- --ignored --nocapture`.

mod coverage;
mod discoveries;
mod effort;
pub(crate) mod sampler;

use effort::{FULL, QUICK};

#[test]
fn intervals_hold_the_true_size() {
    coverage::all(QUICK);
}

#[test]
#[ignore = "minutes; see docs/internals/analysis.md"]
fn intervals_hold_the_true_size_in_full() {
    coverage::all(FULL);
}

#[test]
fn healthy_sites_are_not_accused() {
    discoveries::all(QUICK);
}

#[test]
#[ignore = "minutes; see docs/internals/analysis.md"]
fn healthy_sites_are_not_accused_in_full() {
    discoveries::all(FULL);
}
