//! The file of a baseline: read before the runs, and updated after them.

use std::collections::BTreeSet;
use std::path::Path;

use heaptap_lab::baseline::Baseline;
use heaptap_lab::results::{BudgetResult, ScenarioResult};
use heaptap_lab::scenario::{self, Limit, Scenario};
use heaptap_lab::verdict::Verdict;

use super::files::{unwritable, write_typed};
use super::path_lock;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_capture::session::Store;

/// Maximum size in bytes.
const MAX_BYTES: u64 = scenario::MAX_BYTES as u64;

/// Reads a baseline. A missing file is empty, unless it `must_exist`.
///
/// # Errors
/// Returns an error if it cannot be read, or is not a baseline.
pub fn read(path: &Path, must_exist: bool) -> Result<Baseline, Failure> {
    let unreadable = |why: String| {
        let message = format!("cannot read {}: {why}", path.display());
        Failure::new(ErrorClass::BadInput, "input-unreadable", message)
            .with_help("`heaptap run SCENARIO --update-baseline` writes it")
    };
    if !path.exists() && !must_exist {
        return Ok(Baseline::default());
    }
    let bytes =
        heaptap_base::bytes::Bytes::read(path, MAX_BYTES).map_err(|e| unreadable(e.to_string()))?;
    let text = std::str::from_utf8(&bytes).map_err(|_| unreadable("it is not text".to_owned()))?;
    Baseline::parse(text).map_err(|error| unreadable(error.to_string()))
}

/// Adds the figures of a night to what the file has by now: other jobs can have added theirs during
/// the runs. Returns the names of the budgets that grew beyond their allowed change. Their figures are
/// left out, because later nights would otherwise be compared with the regression.
///
/// # Errors
/// Returns an error if the file is not a baseline any more, or cannot be written.
pub fn update(
    store: &Store,
    path: &Path,
    scenario: &Scenario,
    mut results: Vec<ScenarioResult>,
) -> Result<Vec<String>, Failure> {
    let compared = |name: &str| {
        let mut budgets = scenario.budgets.iter();
        budgets.any(|budget| budget.name == name && matches!(budget.limit, Limit::Change(_)))
    };
    let has_grown = |budget: &BudgetResult| {
        let judgement = budget.judgement.as_ref();
        judgement.is_some_and(|found| found.verdict == Verdict::Over) && compared(&budget.name)
    };
    let mut grown = BTreeSet::new();
    for result in &mut results {
        let left_out = result.budgets.extract_if(.., |budget| has_grown(budget));
        grown.extend(left_out.map(|budget| budget.name));
    }
    let _lock =
        path_lock::wait(store, path).map_err(|error| unwritable(store.directory(), &error))?;
    let mut baseline = read(path, false)?;
    baseline.update(&results.iter().collect::<Vec<_>>());
    write_typed(path, baseline.text().as_bytes())?;
    Ok(grown.into_iter().collect())
}
