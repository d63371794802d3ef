//! Failures that several places of `gc` return.

use std::io;

use heaptap_base::error::{ErrorClass, Failure};
use heaptap_input::{ImportError, Kind, help_unreadable};
use heaptap_results::timeline::TracesError;

/// Returns the failure of reading the file `name`.
pub(super) fn unreadable(name: &str) -> impl Fn(io::Error) -> Failure + Copy {
    move |source| {
        let message = format!("cannot read {name}");
        Failure::new(ErrorClass::BadInput, "log-unreadable", message)
            .with_help(help_unreadable(name, &source))
            .caused_by(&source)
    }
}

/// Returns the failure of an input that is not a log.
pub(super) fn not_a_log(message: String, kind: Kind) -> Failure {
    let failure = Failure::new(ErrorClass::BadInput, "not-a-log", message);
    match kind {
        Kind::Known(_) => failure.with_help(kind.help()),
        _ => failure.with_help(
            "use the output of `adb logcat` in any format (plain, gzip, zstd or xz), a recording \
             directory or a trace",
        ),
    }
}

/// Returns the failure of opening or unpacking a text.
pub(super) fn of_text(error: ImportError) -> Failure {
    match error {
        ImportError::Unreadable { name, source } => unreadable(&name)(source),
        ImportError::Damaged { name, what } => unreadable(&name)(io::Error::other(what)),
        error => error.into(),
    }
}

pub(super) fn of_traces(error: TracesError) -> Failure {
    match error {
        TracesError::Import(error) => error.into(),
        TracesError::Trace(error) => error.into(),
    }
}

/// Returns the failure of reading the log of a device.
pub(super) fn no_log(why: &str) -> Failure {
    let message = format!("cannot read the device log: {why}");
    Failure::new(ErrorClass::Device, "no-log", message)
        .with_help("check that `adb logcat -d` prints lines; some vendors disable the log")
}
