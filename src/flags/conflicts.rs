//! Refusals of options that contradict each other or the kind of the input.

use std::fmt::Display;
use std::path::Path;

use crate::error::{ErrorClass, Failure};
use crate::folder;

/// Returns the error for options that cannot be used together, or not with this input.
pub fn conflict(message: impl Into<String>, help: impl Into<String>) -> Failure {
    Failure::new(ErrorClass::Usage, "option-conflict", message).with_help(help)
}

/// Returns the first flag that was given.
pub fn first_given<'a>(flags: impl IntoIterator<Item = (bool, &'a str)>) -> Option<&'a str> {
    let mut flags = flags.into_iter();
    flags.find_map(|(given, flag)| given.then_some(flag))
}

/// Refuses an output that is an input, or the trace of a recording: even `--force` does not replace it.
///
/// # Errors
/// Returns an error if `output` is one of these.
pub fn refuse_input<'a>(
    output: Option<&Path>,
    inputs: impl IntoIterator<Item = &'a Path>,
) -> Result<(), Failure> {
    let Some(output) = output.filter(|output| output.exists()) else {
        return Ok(());
    };
    let is_trace = output
        .file_name()
        .is_some_and(|name| name == folder::RAW_TRACE);
    let mut inputs = inputs.into_iter();
    if !is_trace && !inputs.any(|input| folder::is_same(output, input)) {
        return Ok(());
    }
    let message = format!("cannot overwrite the input {}", output.display());
    let failure = Failure::new(ErrorClass::Usage, "output-is-input", message);
    Err(failure.with_help("choose another file"))
}

/// Refuses a flag for Java heaps together with a flag for native heaps.
///
/// # Errors
/// Returns an error if both were given.
pub fn refuse_both(java: Option<&str>, native: Option<&str>) -> Result<(), Failure> {
    let (Some(java), Some(native)) = (java, native) else {
        return Ok(());
    };
    let message = format!("{java} applies to Java heaps, but {native} to native heaps");
    Err(conflict(message, "leave out one of the two"))
}

/// Refuses a flag for native heaps. `input` tells that the input has only Java heaps.
///
/// # Errors
/// Returns an error if the flag was given.
pub fn refuse_native(flag: Option<&str>, input: impl Display) -> Result<(), Failure> {
    let Some(flag) = flag else {
        return Ok(());
    };
    let message = format!("{flag} applies to native heaps, but {input}");
    Err(conflict(message, "leave out the flag"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_output_replaces_an_input_or_the_trace_of_a_recording() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for name in ["a.pftrace", "old.sqlite", folder::RAW_TRACE] {
            std::fs::write(path(name), "x").unwrap();
        }
        let refuse = |output: &str| {
            let inputs = [path("a.pftrace"), dir.path().to_owned()];
            refuse_input(Some(&path(output)), inputs.iter().map(AsRef::as_ref))
        };
        assert!(refuse("new.sqlite").is_ok() && refuse("old.sqlite").is_ok());
        for output in ["a.pftrace", "../a.pftrace", folder::RAW_TRACE] {
            let output = output.replace("..", &dir.path().display().to_string());
            assert_eq!(refuse(&output).unwrap_err().kind, "output-is-input");
        }
    }
}
