//! Refusals of options that contradict each other or the kind of the input.

use std::fmt::Display;

use clap::ValueEnum;

use heaptap_base::error::{ErrorClass, Failure};

/// Returns the error for options that cannot be used together, or not with this input.
pub fn conflict(message: impl Into<String>, help: impl Into<String>) -> Failure {
    Failure::new(ErrorClass::Usage, "option-conflict", message).with_help(help)
}

/// Returns the first flag that was given.
pub fn first_given<'a>(flags: impl IntoIterator<Item = (bool, &'a str)>) -> Option<&'a str> {
    let mut flags = flags.into_iter();
    flags.find_map(|(given, flag)| given.then_some(flag))
}

/// Refuses a flag for Java heaps together with a flag for native heaps.
///
/// # Errors
/// Returns an error if both were given.
pub fn refuse_both(java: Option<&str>, native: Option<&str>) -> Result<(), Failure> {
    let (Some(java), Some(native)) = (java, native) else {
        return Ok(());
    };
    if java == native {
        let flag = java.trim_start_matches("this ");
        let message = format!("{flag} names both Java heaps and native heaps");
        return Err(conflict(message, "name heaps of one kind"));
    }
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

/// Name of a `--by` that does not apply to the kind of the input, for errors.
pub(crate) const BY_VALUE: &str = "this --by value";

/// Refuses a flag for native heaps as [`refuse_native`] does; for [`BY_VALUE`], the help lists the
/// values for Java heaps.
///
/// # Errors
/// Returns an error if the flag was given.
pub(crate) fn refuse_native_by<T: ValueEnum>(
    flag: Option<&str>,
    input: impl Display,
    is_of_java: impl Fn(&T) -> bool,
) -> Result<(), Failure> {
    refuse_native(flag, input).map_err(|failure| {
        if flag != Some(BY_VALUE) {
            return failure;
        }
        let values = T::value_variants().iter().filter(|value| is_of_java(value));
        let names = values.filter_map(ValueEnum::to_possible_value);
        let names: Vec<String> = names.map(|value| value.get_name().to_owned()).collect();
        failure.with_help(format!(
            "leave out the flag, or use one of {}",
            names.join(", ")
        ))
    })
}
