//! Failures that several places of recording a host program return.

#[cfg(target_os = "linux")]
use std::{fmt::Display, io};

use heaptap_base::error::{ErrorClass, Failure};

/// Refuses a system other than Linux.
pub(super) fn unsupported(system: &str) -> Failure {
    let message = format!(
        "cannot record a program of this host: heapprofd's preload library needs Linux with glibc, \
         and this is {system}"
    );
    Failure::new(ErrorClass::Usage, "host-unsupported", message)
        .with_help("record an app on a device (`heaptap record -n NAME`), or run heaptap on Linux")
}

/// Refuses a program that the preload library does not record.
pub(super) fn unsuitable(program: &str, why: &str, help: impl Into<String>) -> Failure {
    let message = format!("cannot profile {program}: {why}");
    Failure::new(ErrorClass::NotEligible, "host-program-unsuitable", message).with_help(help)
}

/// The sockets or other files of the tracing service cannot be created.
#[cfg(target_os = "linux")]
pub(super) fn private_directory(source: io::Error) -> Failure {
    let message = format!("cannot create a private directory for the sockets: {source}");
    Failure::new(ErrorClass::HostWrite, "host-private-directory", message)
        .with_help("set TMPDIR to a writable directory with a path below 80 bytes")
}

/// `tool` did not start, or does not record.
#[cfg(target_os = "linux")]
pub(super) fn tracing_failed(tool: &str, why: impl Display) -> Failure {
    let message = format!("{tool} did not start: {why}");
    Failure::new(ErrorClass::Device, "host-tracing-failed", message)
        .with_help("run it by hand to see more; --perfetto-dir DIR selects another Perfetto build")
}
