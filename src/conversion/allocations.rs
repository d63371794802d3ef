//! Java allocations that the runtime itself tracked (`record --java-allocations`): whether a phone
//! has processes that can be asked, the connection to one, and what became of the lists that were
//! fetched. When they are fetched is `beside`'s, their profiles are `tracked`'s.

use std::collections::BTreeSet;
use std::time::Duration;

use super::tracked::{self, NAMES_CUT};
use crate::device::{DebugStream, Device, DeviceError};
use crate::eligibility::Assessment;
use crate::error::{Classified, ErrorClass};
use crate::jdwp::{Connection, JdwpError};
use crate::results::manifest::{self, JavaAllocations, Manifest, TrackedDump};
use crate::timeline::MissedReason;

/// What lists are called in the folder and the timeline.
pub(crate) const WHAT: &str = "java-allocations";
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
    fn class(&self) -> ErrorClass {
        match self {
            TrackingError::Device(error) => error.class(),
            TrackingError::NotDebuggable { .. } => ErrorClass::NotEligible,
            TrackingError::Unheard { .. } => ErrorClass::Device,
            TrackingError::Detached => ErrorClass::Usage,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            TrackingError::Device(error) => error.kind(),
            TrackingError::NotDebuggable { .. } => "not-debuggable",
            TrackingError::Unheard { .. } => "debugger-in-the-way",
            TrackingError::Detached => "tracking-detached",
        }
    }

    fn help(&self) -> Option<String> {
        Some(match self {
            TrackingError::Device(error) => return error.help(),
            TrackingError::NotDebuggable { .. } => {
                "use a debug build of the app (android:debuggable) or a userdebug phone; from \
                 Android 12 on --java-allocations=heap does without, and `heaptap dump` shows what \
                 the Java heap holds"
                    .to_owned()
            }
            TrackingError::Unheard { .. } => {
                "a process has one debugger at a time: close Android Studio (or its debugger and \
                 profiler, or whatever else is connected by JDWP) and try again; bring the app to \
                 the front if it was in the back for long: a frozen one does not answer"
                    .to_owned()
            }
            TrackingError::Detached => {
                "record without --detach; or by --java-allocations=heap (Android 12)".to_owned()
            }
        })
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

/// What the lists of a recording became.
#[derive(Debug)]
pub struct Written {
    pub(crate) section: JavaAllocations,
    pub(crate) warnings: Vec<manifest::Warning>,
    /// Whether a mapping file gave a class or a frame its name.
    pub(crate) names_changed: bool,
}

impl Written {
    /// Puts it into a manifest that was made of the trace. What the exit code tells, where
    /// `other` is what the trace asks for.
    pub fn enter(self, manifest: &mut Manifest, other: Option<ErrorClass>) -> Option<ErrorClass> {
        let class = self.class(other, None);
        // That no heap is in the trace is what was asked for.
        let of_trace = |told: &manifest::Warning| tracked::is_of_trace(&told.kind);
        manifest.warnings.retain(|told| !of_trace(told));
        manifest.warnings.extend(self.warnings);
        manifest.java_allocations = Some(self.section);
        class
    }

    /// Puts it into the manifest of the folder that it was written to: what could not be read
    /// stays as it was.
    pub(crate) fn replace(self, manifest: &mut Manifest) {
        let is_new = |told: &manifest::Warning| {
            let mut known = manifest.warnings.iter();
            !known.any(|known| (&known.kind, &known.message) == (&told.kind, &told.message))
        };
        let new: Vec<manifest::Warning> = self.warnings.into_iter().filter(is_new).collect();
        manifest.warnings.extend(new);
        if let Some(tracked) = &mut manifest.java_allocations {
            for dump in &mut tracked.dumps {
                let mut new = self.section.dumps.iter();
                let is_it = |new: &&TrackedDump| (new.pid, new.number) == (dump.pid, dump.number);
                if let Some(new) = new.find(is_it) {
                    dump.clone_from(new);
                }
            }
        }
    }

    /// Whether any profile was written.
    pub(crate) fn any(&self) -> bool {
        self.section.dumps.iter().any(|dump| dump.file.is_some())
    }

    /// Says so where nobody fetched what belongs to the end: who held the connections was killed,
    /// or did not wait.
    pub(crate) fn note_end(&mut self, beside: &manifest::Beside) {
        let lists = self.section.dumps.iter();
        let fetched = lists.clone().any(|dump| dump.label.is_none());
        let mut missed = beside.missed.iter();
        if fetched || missed.any(|missed| missed.what == WHAT && missed.label.is_none()) {
            return;
        }
        self.warnings.push(manifest::Warning {
            kind: "java-allocations-end".to_owned(),
            message: "the allocations before the end were not fetched: heaptap did not follow the \
                      recording to its end; the runtime may track on until the app ends"
                .to_owned(),
            help: Some(
                "record again; the next recording switches tracking off at its end".to_owned(),
            ),
            pid: None,
            dumps: Vec::new(),
        });
    }

    /// What the exit code tells: of a recording without any profile that it is empty, of one whose
    /// last list is missing that it is incomplete; `other` is what the trace asks for.
    pub(crate) fn class(
        &self,
        other: Option<ErrorClass>,
        beside: Option<&manifest::Beside>,
    ) -> Option<ErrorClass> {
        if !self.any() {
            let other = other.filter(|class| *class != ErrorClass::Empty);
            return ErrorClass::first_of(other.into_iter().chain([ErrorClass::Empty]));
        }
        let missed = beside.is_some_and(|beside| {
            let missed = beside.missed.iter();
            missed
                .clone()
                .any(|missed| missed.what == WHAT && missed.reason != Some(MissedReason::NoTarget))
        });
        let told = self.warnings.iter().any(|told| told.kind != NAMES_CUT);
        let missing = (missed || told).then_some(ErrorClass::Incomplete);
        // A trace without samples is what was asked for.
        let other = other.filter(|class| *class != ErrorClass::Empty);
        ErrorClass::first_of(other.into_iter().chain(missing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_nobody_fetched_is_told_once() {
        let written = || Written {
            section: JavaAllocations::tracked(Vec::new()),
            warnings: Vec::new(),
            names_changed: false,
        };
        let mut alone = written();
        alone.note_end(&manifest::Beside::default());
        assert_eq!(alone.warnings[0].kind, "java-allocations-end");
        let mut told = written();
        let missed = manifest::BesideMissed {
            what: WHAT.to_owned(),
            label: None,
            number: 1,
            reason: Some(MissedReason::NoTarget),
            why: String::new(),
        };
        told.note_end(&manifest::Beside {
            missed: vec![missed],
            ..manifest::Beside::default()
        });
        assert!(told.warnings.is_empty());
    }

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
