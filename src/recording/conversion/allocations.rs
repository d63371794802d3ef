//! Java allocations tracked by the runtime (`record --java-allocations`): checks whether the
//! processes of a device support it, and connects to them. `companion` schedules the requests, and
//! `tracked` converts the lists.

use std::collections::BTreeSet;
use std::time::Duration;

use heaptap_adb::{DebugStream, Device, DeviceError};
use heaptap_base::error::{Classified, ErrorClass, ErrorFacts};
use heaptap_capture::eligibility::Assessment;
use heaptap_capture::jdwp::{Connection, JdwpError};

/// Time limit for an answer of a runtime. It never answers while another debugger is connected.
pub(crate) const ATTACH: Duration = Duration::from_secs(15);

/// Error of tracking allocations.
#[derive(Debug, thiserror::Error)]
pub enum TrackingError {
    /// The device is disconnected, or does not answer.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// No process accepts a debugger.
    #[error(
        "cannot track the Java allocations of {targets}: it does not accept debugger connections, \
         which tracking requires"
    )]
    NotDebuggable { targets: String },
    /// A runtime does not answer.
    #[error("cannot track the Java allocations of {process}: {why}")]
    Unheard { process: String, why: AttachError },
    /// Nothing would keep the connection open.
    #[error("cannot track Java allocations in a detached recording")]
    Detached,
}

/// Error of connecting to a runtime.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The device does not provide a connection.
    #[error("{0}")]
    Device(#[from] DeviceError),
    /// The peer does not follow the protocol.
    #[error("{0}")]
    Jdwp(#[from] JdwpError),
    /// The device does not list the process.
    #[error("the process does not accept debugger connections")]
    NotDebuggable,
    /// The runtime does not answer.
    #[error("its runtime did not answer within {} s", ATTACH.as_secs())]
    Silent,
}

impl AttachError {
    /// Returns whether the connection to the device might have failed.
    pub(crate) fn is_connection(&self) -> bool {
        match self {
            AttachError::Device(error) => error.is_connection(),
            AttachError::Jdwp(JdwpError::Closed | JdwpError::Io(_)) => true,
            AttachError::Jdwp(_) | AttachError::NotDebuggable | AttachError::Silent => false,
        }
    }
}

impl Classified for TrackingError {
    fn facts(&self) -> ErrorFacts {
        match self {
            TrackingError::Device(error) => error.facts(),
            TrackingError::NotDebuggable { .. } => {
                ErrorFacts::new(ErrorClass::NotEligible, "not-debuggable").with_help(
                    "use a debug build of the app (android:debuggable), a userdebug device, or \
                     `--java-allocations=heap` (Android 12 and later); `heaptap dump` shows live \
                     Java objects",
                )
            }
            TrackingError::Unheard { .. } => {
                ErrorFacts::new(ErrorClass::Device, "debugger-in-the-way").with_help(
                    "A process accepts one debugger at a time: close Android Studio or other tools \
                     connected by JDWP, and try again. If the app was in the background, bring it \
                     to the front, because a frozen app does not answer.",
                )
            }
            TrackingError::Detached => ErrorFacts::new(ErrorClass::Usage, "tracking-detached")
                .with_help(
                    "record without `--detach`, or with `--java-allocations=heap` (Android 12)",
                ),
        }
    }
}

/// Connects to a runtime.
pub(crate) async fn attach(
    device: &Device,
    pid: u32,
) -> Result<Connection<DebugStream>, AttachError> {
    let connecting = async {
        let stream = device.debugger(pid, ATTACH).await?;
        Ok(Connection::open(stream).await?)
    };
    let connected = tokio::time::timeout(ATTACH, connecting).await;
    connected.unwrap_or(Err(AttachError::Silent))
}

/// Checks, by connecting before anything is recorded, that the allocations of at least one running
/// process can be tracked. If nothing is running yet, the check is skipped.
///
/// # Errors
/// Returns an error if no process accepts a debugger, or none of those that do answers.
pub(crate) async fn check(device: &Device, assessment: &Assessment) -> Result<(), TrackingError> {
    let running: Vec<(u32, &str)> = assessment
        .targets
        .iter()
        .flat_map(|target| &target.processes)
        .map(|found| (found.process.pid, found.process.name.as_str()))
        .collect();
    if running.is_empty() {
        return Ok(());
    }
    let mut list = device.debuggable(ATTACH).await?;
    let debuggable = tokio::time::timeout(ATTACH, list.next());
    let debuggable = debuggable.await.unwrap_or_else(|_| {
        Err(DeviceError::Deadline {
            serial: device.serial().to_owned(),
            what: "the list of debuggable processes".to_owned(),
            after: ATTACH,
        })
    })?;
    let mut unheard = None;
    for (pid, name) in &running {
        if !debuggable.contains(pid) {
            continue;
        }
        match attach(device, *pid).await {
            Ok(_) => return Ok(()),
            Err(why) => {
                unheard.get_or_insert(TrackingError::Unheard {
                    process: format!("{name} ({pid})"),
                    why,
                });
            }
        }
    }
    Err(unheard.unwrap_or_else(|| {
        let names: BTreeSet<&str> = running.iter().map(|(_, name)| *name).collect();
        let names: Vec<&str> = names.into_iter().collect();
        TrackingError::NotDebuggable {
            targets: names.join(", "),
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_debugger_in_the_way_is_told_with_its_remedy() {
        let error = TrackingError::Unheard {
            process: "com.example.app (42)".to_owned(),
            why: AttachError::Silent,
        };
        assert_eq!(error.class(), ErrorClass::Device);
        assert!(error.to_string().contains("did not answer"), "{error}");
        assert!(error.help().unwrap().contains("Android Studio"));
    }
}
