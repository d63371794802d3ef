//! Refused values, options and config files. Each failure names the cause and a remedy.

use std::fmt::Display;
use std::time::Duration;

use heaptap_base::error::{ErrorClass, Failure};

pub(super) fn no_target() -> Failure {
    Failure::new(ErrorClass::Usage, "no-target", "no target process is given")
        .with_help("use `-n NAME`, `-p PID` or `--package PKG`; `heaptap apps` lists packages")
}

pub(super) fn bad_value(
    option: &str,
    value: impl Display,
    why: impl Display,
    help: impl Into<String>,
) -> Failure {
    let message = format!("cannot use {option} {value}: {why}");
    Failure::new(ErrorClass::Usage, "bad-value", message).with_help(help)
}

pub(super) fn conflict(first: &str, second: &str, why: &str) -> Failure {
    let message = format!("cannot combine {first} with {second}: {why}");
    Failure::new(ErrorClass::Usage, "option-conflict", message)
        .with_help(format!("omit {first} or {second}"))
}

/// Refuses `option` on a device of an API level below that of Android `needs`.
pub(super) fn too_old(option: &str, needs: u32, sdk: u32, why: &str) -> Failure {
    let runs = release(sdk);
    let message = format!("{option} needs Android {needs}, but the device runs {runs}: {why}");
    Failure::new(ErrorClass::NotEligible, "android-too-old", message)
        .with_help(format!("omit {option}, or use a newer device"))
}

/// Refuses a config. `origin` is its path or preset, with the line if it is known.
pub(super) fn bad_file(origin: &str, why: impl Display) -> Failure {
    let message = format!("{origin}: {why}");
    Failure::new(ErrorClass::BadInput, "config-invalid", message).with_help(
        "see docs/reference/formats.md for the supported keys, and configs/ for examples",
    )
}

/// Formats an API level as the release that people know.
fn release(sdk: u32) -> String {
    let name = match sdk {
        26 | 27 => "8",
        28 => "9",
        29 => "10",
        30 => "11",
        31 | 32 => "12",
        33.. => return format!("Android {} (API level {sdk})", sdk - 20),
        _ => return format!("API level {sdk}"),
    };
    format!("Android {name} (API level {sdk})")
}

/// Checks a time for a field of whole milliseconds.
pub(super) fn check_millis(option: &str, value: Duration) -> Result<(), Failure> {
    check_whole(option, value, Duration::from_millis(1))
}

pub(super) fn check_whole(option: &str, value: Duration, unit: Duration) -> Result<(), Failure> {
    let counted = value.as_nanos() / unit.as_nanos();
    if counted > 0 && counted <= u128::from(u32::MAX) {
        return Ok(());
    }
    Err(bad_value(
        option,
        format!("{value:?}"),
        format!("it must be {unit:?} to {} times that", u32::MAX),
        "give a time with a unit, such as `500ms` or `10s`",
    ))
}
