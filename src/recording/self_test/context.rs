//! What the steps of a try share: the device, the options, the events; and how a step ends.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::document::{StepError, StepId, TriedAdb, Verdict};
use super::raw::RawDirectory;
use crate::names::options::NameOptions;
use crate::recording::events::RecordEvent;
use heaptap_adb::Device;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_capture::config::Targets;
use heaptap_capture::provoke::Cancel;
use heaptap_capture::session::{CaptureError, Store};

/// Time for a device that vanished to return before the rest is not tried.
pub(super) const RETURN: Duration = Duration::from_secs(5);

/// Advice if the device is gone while data can be on it.
pub(super) const LEFT_ON_DEVICE: &str = "connect it; `heaptap status` lists recordings that are still on it, \
                              and `heaptap stop` fetches and removes them";

#[derive(Debug, Clone)]
pub struct TryOptions {
    /// The app; empty to choose one that can be profiled.
    pub targets: Targets,
    /// Android user or work profile.
    pub user: Option<u32>,
    /// Directory for the results; `None` for a default name.
    pub output: Option<PathBuf>,
    /// Sources of symbols.
    pub names: NameOptions,
    /// The adb server.
    pub adb: TriedAdb,
}

/// An event of a try, for display.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum TryEvent {
    /// A step begins or ends.
    Step(StepEvent),
    /// An event of the recording of a step.
    Recording(RecordEvent),
}

/// Beginning and end of a step.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum StepEvent {
    TryBegins { step: StepId },
    TryEnds { step: StepId, verdict: Verdict },
}

/// Handles the events of a try; must return immediately.
pub type TryHandler = Arc<dyn Fn(TryEvent) + Send + Sync>;

/// End of a step without a result.
#[derive(Debug)]
pub(super) enum Ended {
    /// It does not work.
    Failed(StepError),
    /// The device, the build or the app does not support it.
    Impossible(StepError),
    /// It was not tried to its end.
    NotTried(StepError),
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Ended {
        match failure.class {
            ErrorClass::Interrupted => Ended::NotTried(failure.into()),
            _ => Ended::Failed(failure.into()),
        }
    }
}

/// Result of a step in words.
pub(super) type Outcome = Result<String, Ended>;

/// What steps share.
pub(super) struct Bench<'a> {
    pub(super) device: &'a Device,
    pub(super) store: &'a Store,
    pub(super) options: &'a TryOptions,
    /// Absolute directory of the results.
    pub(super) directory: &'a Path,
    /// Directory of the HPROF with contents.
    pub(super) raw: &'a std::io::Result<Arc<RawDirectory>>,
    pub(super) cancel: &'a Cancel,
    pub(super) on_event: &'a TryHandler,
}

pub(super) fn interrupted() -> Failure {
    CaptureError::interrupted().into()
}
