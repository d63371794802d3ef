//! Checks that end with an exit code of their own (`--fail`, `--fail-over`): none passes because
//! it looked at nothing.

use super::console::Console;
use crate::error::{ErrorClass, Failure};

/// Kinds of failures that say: what was named is not there.
const NOT_THERE: [&str; 4] = [
    "no-such-dump",
    "no-such-heap",
    "no-such-moment",
    "no-such-process",
];

/// The failure of a check, if one was `asked` for: a name that matches nothing leaves it open.
pub(super) fn failure(asked: bool, failure: Failure) -> Failure {
    if !asked || !NOT_THERE.contains(&failure.kind) {
        return failure;
    }
    let message = format!("nothing was judged: {}", failure.message);
    Failure {
        help: failure.help,
        ..Failure::new(ErrorClass::Inconclusive, "nothing-judged", message)
    }
}

/// Says that the filters of a check match nothing.
pub(super) fn warn_nothing_judged(console: &Console) {
    console.warn_with_help(
        "nothing was judged: the filters match nothing",
        Some(
            "correct the filters; a pattern with a capital letter is case-sensitive, (?i) turns \
             that off",
        ),
    );
}
