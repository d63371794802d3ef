//! Checks with their own exit code (`--fail`, `--fail-over`): none passes if it did not examine
//! anything.

use crate::console::Console;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_results::findings::{
    NOT_IN_INPUT, SAME_MOMENT, SEVERAL_IN_ONE, SEVERAL_RECORDINGS, TRACE_CUT,
};

/// Kinds of failures about missing inputs.
const NOT_THERE: [&str; 7] = [
    "java-heap-dump",
    "native-heap",
    "no-java-heap",
    "no-such-dump",
    "no-such-heap",
    "no-such-capture",
    "no-such-process",
];

/// Converts the failure of a requested check: a name without matches makes it inconclusive.
pub(crate) fn failure(asked: bool, failure: Failure) -> Failure {
    if !asked || !NOT_THERE.contains(&failure.kind) {
        return failure;
    }
    let message = format!("nothing was checked: {}", failure.message);
    Failure {
        help: failure.help,
        hints: failure.hints,
        excerpt: failure.excerpt,
        ..Failure::new(ErrorClass::Inconclusive, "nothing-judged", message)
    }
}

/// Returns whether findings make a check inconclusive: a truncated or growing trace, traces of several
/// recordings, the same data on both sides, or a selected process or heap that is not there.
pub(crate) fn is_open<'a>(mut kinds: impl Iterator<Item = &'a str>) -> bool {
    const KINDS: [&str; 4] = [NOT_IN_INPUT, SAME_MOMENT, SEVERAL_RECORDINGS, TRACE_CUT];
    kinds.any(|kind| KINDS.contains(&kind))
}

/// Returns the reason for a leak check that findings make inconclusive.
pub(crate) fn open_reason<'a>(mut kinds: impl Iterator<Item = &'a str>) -> &'static str {
    match kinds.any(|kind| kind == SEVERAL_RECORDINGS) {
        true => SEVERAL_IN_ONE,
        false => "the inputs lack data that could change it",
    }
}

/// Explains the exit code of a leak check that did not pass; `reason` is that of an inconclusive
/// one.
pub(crate) fn warn_leaks(console: &Console, class: ErrorClass, leaks: &str, reason: &str) {
    let found = match class {
        ErrorClass::Budget => format!("found {leaks}"),
        ErrorClass::Inconclusive => format!("the result is inconclusive: {reason}"),
        _ => return,
    };
    let code = class.exit_code();
    console.warn(format_args!("`--fail`: {found} (exit code {code})"));
}

/// Input of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Judged {
    /// Samples of native heaps.
    Samples,
    /// Objects of Java heaps.
    Objects,
    /// Objects of the classes that the leak rules cover.
    LeakRules,
    /// The same, in a heap that is not of Android.
    JavaSe,
}

/// Warns that a check examined nothing: its filters have no matches, or there is no data.
pub(crate) fn warn_nothing_judged(console: &Console, judged: Judged, is_filtered: bool) {
    let (message, help) = nothing_judged(judged, is_filtered);
    console.warn_with_help(message, help);
}

fn nothing_judged(judged: Judged, is_filtered: bool) -> (&'static str, Option<&'static str>) {
    match (is_filtered, judged) {
        (true, _) => (
            "nothing was checked: no matches for the filters",
            Some(
                "correct the filters; patterns with a capital letter are case-sensitive, (?i) \
                 turns that off",
            ),
        ),
        (false, Judged::Samples) => ("nothing was checked: the heap has no samples", None),
        (false, Judged::Objects) => ("nothing was checked: the heap has no objects", None),
        (false, Judged::LeakRules) => (
            "nothing was checked: the heap has no class that the rules cover",
            Some("if its names are obfuscated, pass the R8 mapping of the app with `--mapping`"),
        ),
        (false, Judged::JavaSe) => (
            "`--fail` checks objects of Android, and the heap has no class of it",
            Some("check growth with `heaptap diff A B --fail-over SIZE`"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_blamed_only_if_there_are_some() {
        for judged in [
            Judged::Samples,
            Judged::Objects,
            Judged::LeakRules,
            Judged::JavaSe,
        ] {
            let (message, help) = nothing_judged(judged, true);
            assert!(message.contains("filters") && help.is_some());
            let (message, help) = nothing_judged(judged, false);
            assert!(message.contains("the heap has no "));
            let of_rules = matches!(judged, Judged::LeakRules | Judged::JavaSe);
            assert_eq!(help.is_some(), of_rules);
        }
    }

    #[test]
    fn what_a_failure_knows_more_is_kept() {
        let known = || {
            let mut known = Failure::new(ErrorClass::Usage, "no-such-dump", "no dump 3")
                .with_help("it has @1")
                .with_excerpt(vec!["a line".to_owned()]);
            known.hints.push("a hint".to_owned());
            known
        };
        let told = failure(true, known());
        assert_eq!(
            (told.class, told.kind),
            (ErrorClass::Inconclusive, "nothing-judged")
        );
        assert_eq!(told.message, "nothing was checked: no dump 3");
        assert_eq!((told.help, told.hints), (known().help, known().hints));
        assert_eq!(told.excerpt, known().excerpt);
        assert_eq!(failure(false, known()).kind, "no-such-dump");
    }
}
