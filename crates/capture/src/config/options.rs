//! Individual options, as given by flags and config files.

use std::time::Duration;

use serde::Deserialize;

use super::fields::FieldSetting;
use super::spec::{CaptureSpec, JavaAllocations};
use super::targets::Targets;
use super::yaml;

/// Periodic dumps that labels are bound to if heapprofd cannot be signalled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Snapshots {
    /// At a period that suits the recording.
    #[default]
    Auto,
    /// At this period.
    Every(Duration),
    /// None.
    Off,
}

/// Maximum number of dumps in a recording with a known duration, unless its period would exceed
/// [`MAX_WAIT`].
const DUMPS: u32 = 60;
/// More frequent dumps would slow the target down: `docs/guide/recording.md` has the figures.
const SHORTEST_WAIT: Duration = Duration::from_secs(2);
/// Period during an attended recording. A label waits up to twice as long, for the next flush.
const USUAL_WAIT: Duration = Duration::from_secs(5);
/// If the dump came later, it would not show the state of the app at the label.
const MAX_WAIT: Duration = Duration::from_secs(10);

impl Snapshots {
    /// Returns the choice that an option makes; a period of zero means none.
    pub fn from_period(period: Option<Duration>) -> Snapshots {
        match period {
            None => Snapshots::Auto,
            Some(Duration::ZERO) => Snapshots::Off,
            Some(period) => Snapshots::Every(period),
        }
    }

    /// Returns the period of the dumps to arm. `detached`: the recording might run for hours.
    pub fn period(self, spec: &CaptureSpec, detached: bool) -> Option<Duration> {
        match (self, spec.duration) {
            (Snapshots::Off, _) => None,
            (Snapshots::Every(period), _) => Some(period),
            // Every dump would show the same maximum.
            (Snapshots::Auto, _) if spec.dump_at_max => None,
            (Snapshots::Auto, Some(duration)) => {
                Some((duration / DUMPS).clamp(SHORTEST_WAIT, MAX_WAIT))
            }
            (Snapshots::Auto, None) if detached => Some(MAX_WAIT),
            (Snapshots::Auto, None) => Some(USUAL_WAIT),
        }
    }
}

/// Options as given by flags or by a YAML config, whose keys are the serialized names; `None` and
/// empty mean not given.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Options {
    /// All processes that connect to the tracing service: for programs of this host.
    #[serde(skip)]
    pub all: bool,
    /// Processes; those of a file and of flags are combined.
    #[serde(skip)]
    pub targets: Targets,
    /// Bytes between two samples.
    #[serde(rename = "interval", deserialize_with = "yaml::size")]
    pub interval_bytes: Option<u64>,
    /// Duration; zero means until stopped.
    #[serde(deserialize_with = "yaml::time")]
    pub duration: Option<Duration>,
    /// Period of continuous dumps; zero means none.
    #[serde(rename = "continuous_dump", deserialize_with = "yaml::time")]
    pub continuous: Option<Duration>,
    /// Heaps by name.
    pub heaps: Vec<String>,
    /// Record all heaps.
    pub all_heaps: Option<bool>,
    /// Java allocations instead of a native heap, with suitable defaults for other options.
    #[serde(skip)]
    pub java_allocations: Option<JavaAllocations>,
    /// Shared memory, bytes.
    #[serde(rename = "shmem_size", deserialize_with = "yaml::size")]
    pub shmem_bytes: Option<u64>,
    /// Block the client if the shared memory is full.
    pub block_client: Option<bool>,
    /// Timeout for blocking; zero means never.
    #[serde(deserialize_with = "yaml::micros")]
    pub block_client_timeout: Option<Duration>,
    /// Skip processes that start later.
    pub no_startup: Option<bool>,
    /// Skip processes that are already running.
    pub no_running: Option<bool>,
    /// Dump only the state at the maximum.
    pub dump_at_max: Option<bool>,
    /// Keep profiling across fork.
    pub disable_fork_teardown: Option<bool>,
    /// Record the package list.
    pub packages_list: Option<bool>,
    /// Start the app once the session is armed.
    pub launch: Option<bool>,
    /// Dumps for labels; a period of zero means none.
    #[serde(deserialize_with = "yaml::time")]
    pub snapshots: Option<Duration>,
    /// Settings of single fields.
    #[serde(rename = "heapprofd", deserialize_with = "yaml::settings")]
    pub settings: Vec<FieldSetting>,
}
