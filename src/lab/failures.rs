//! Failures of runs: as the errors of results, and whether the device or the user is their cause.

use heaptap_lab::results::RunError;

use heaptap_base::error::{ErrorClass, Failure};

/// Kinds of errors of class `Device` whose cause is the device or its connection.
const INFRASTRUCTURE: [&str; 13] = [
    "connection-lost",
    "device-silent",
    "device-garbled",
    "device-full",
    "device-hot",
    "device-rebooted",
    "device-restarted",
    "perfetto-failed",
    "provoke-busy",
    "session-rejected",
    // A slow device; an app that never allocates is late each time, until too many runs are void.
    "snapshot-late",
    "trace-gone",
    // Of a device that dies or restarts; others answer so each time, until too many runs are void.
    "unexpected-answer",
];
/// Kinds of errors of class `Device` that the next run would meet, too, until the user mends their
/// cause, as a full disk of the device.
const NEED_USER: [&str; 2] = ["device-full", "provoke-busy"];

/// Returns whether the cause of an error is neither the app nor the scenario, so that another run
/// can succeed.
pub(super) fn is_infrastructure(error: &RunError) -> bool {
    ErrorClass::of_exit_code(error.code).is_some_and(|class| is_outside(class, &error.kind))
}

pub(super) fn is_outside(class: ErrorClass, kind: &str) -> bool {
    let outside = [
        ErrorClass::NoDevice,
        ErrorClass::NotFetched,
        ErrorClass::HostWrite,
        ErrorClass::Interrupted,
    ];
    outside.contains(&class) || INFRASTRUCTURE.contains(&kind)
}

/// Returns whether an error stays until the user mends its cause.
pub(super) fn needs_user(error: &RunError) -> bool {
    error.code == ErrorClass::HostWrite.exit_code() || NEED_USER.contains(&error.kind.as_str())
}

pub(super) fn error_of(failure: &Failure) -> RunError {
    RunError {
        code: failure.class.exit_code(),
        kind: failure.kind.to_owned(),
        message: failure.message.clone(),
        help: failure.help.clone(),
        step: None,
        line: None,
    }
}

/// Returns a failure that followed an error, with the step of that error.
pub(super) fn in_step_of(error: Option<RunError>, failure: &Failure) -> RunError {
    let (step, line) = error.map_or((None, None), |error| (error.step, error.line));
    RunError {
        step,
        line,
        ..error_of(failure)
    }
}

/// Returns the failure of what the user interrupted.
pub(super) fn interrupted() -> Failure {
    Failure::new(ErrorClass::Interrupted, "interrupted", "interrupted")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_neither_the_app_nor_the_scenario_causes_is_outside() {
        for (class, kind, outside, user) in [
            (ErrorClass::Device, "device-rebooted", true, false),
            (ErrorClass::Device, "unexpected-answer", true, false),
            (ErrorClass::Device, "snapshot-late", true, false),
            (ErrorClass::Device, "device-full", true, true),
            (ErrorClass::HostWrite, "host-write", true, true),
            (ErrorClass::HostWrite, "journal-unwritable", true, true),
            (ErrorClass::Device, "app-died", false, false),
            (ErrorClass::Device, "command-failed", false, false),
        ] {
            let error = error_of(&Failure::new(class, kind, ""));
            assert_eq!(is_infrastructure(&error), outside, "{kind}");
            assert_eq!(needs_user(&error), user, "{kind}");
        }
    }
}
