//! Java allocations that the runtime itself tracked (`record --java-allocations`): whether a phone
//! has processes that can be asked, and the connection to one. When they are asked is `companion`'s,
//! what becomes of their lists is `tracked`'s.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::device::{DebugStream, Device, DeviceError};
use crate::eligibility::Assessment;
use crate::error::{Classified, ErrorClass, ErrorFacts};
use crate::jdwp::{Connection, JdwpError};

/// How long a runtime may take to answer. One that another debugger holds never does.
pub(crate) const ATTACH: Duration = Duration::from_secs(15);

/// Why allocations cannot be tracked.
#[derive(Debug, thiserror::Error)]
pub enum TrackingError {
    /// The phone was lost, or silent.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// No process takes a debugger.
    #[error(
        "cannot track the Java allocations of {targets}: it takes no debugger, and only a debugger \
         may ask a runtime for them"
    )]
    NotDebuggable {
        /// The targets.
        targets: String,
    },
    /// A runtime does not answer.
    #[error("cannot track the Java allocations of {process}: {why}")]
    Unheard {
        /// The process.
        process: String,
        /// Why.
        why: AttachError,
    },
    /// Nobody would hold the connection.
    #[error("Java allocations cannot be tracked by a recording that is left to itself")]
    Detached,
}

/// Why there is no connection to a runtime.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The phone has none for us.
    #[error("{0}")]
    Device(#[from] DeviceError),
    /// It said something else.
    #[error("{0}")]
    Jdwp(#[from] JdwpError),
    /// The phone does not list it.
    #[error("it takes no debugger")]
    NotDebuggable,
    /// It says nothing.
    #[error("its runtime does not answer within {} s", ATTACH.as_secs())]
    Silent,
}

impl AttachError {
    /// Whether the connection to the phone may be what failed.
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
                    "use a debug build of the app (android:debuggable) or a userdebug phone; from \
                     Android 12 on --java-allocations=heap does without, and `heaptap dump` shows \
                     what the Java heap holds",
                )
            }
            TrackingError::Unheard { .. } => {
                ErrorFacts::new(ErrorClass::Device, "debugger-in-the-way").with_help(
                    "a process has one debugger at a time: close Android Studio (or its debugger \
                     and profiler, or whatever else is connected by JDWP) and try again; bring the \
                     app to the front if it was in the back for long: a frozen one does not answer",
                )
            }
            TrackingError::Detached => ErrorFacts::new(ErrorClass::Usage, "tracking-detached")
                .with_help("record without --detach; or by --java-allocations=heap (Android 12)"),
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

/// Whether the allocations of at least one process that runs can be tracked, tried out: before
/// anything is recorded. Where nothing runs yet, that is left to the time when it does.
///
/// # Errors
/// Where none takes a debugger, or none of those that do answers.
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
        assert!(error.to_string().contains("does not answer"), "{error}");
        assert!(error.help().unwrap().contains("Android Studio"));
    }
}
