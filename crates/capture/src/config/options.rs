//! Individual options, as given by flags and config files.

use std::time::Duration;

use super::fields::FieldSetting;
use super::{CaptureSpec, Targets};

/// Source of Java allocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JavaAllocations {
    /// The source that the device supports: heapprofd, otherwise the runtime's own tracking.
    Any,
    /// heapprofd, from ART's heap `com.android.art`.
    Heap,
    /// The runtime's own tracking, requested like a debugger does.
    Tracking,
}

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
/// [`LONGEST_WAIT`].
const DUMPS: u32 = 60;
/// More frequent dumps would slow the target down: `docs/guide/recording.md` has the figures.
const SHORTEST_WAIT: Duration = Duration::from_secs(2);
/// Period during an attended recording. A label waits up to twice as long, for the next flush.
const USUAL_WAIT: Duration = Duration::from_secs(5);
/// If the dump came later, it would not show the state of the app at the label.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

impl Snapshots {
    /// Returns the choice that an option makes; a period of zero means none.
    pub fn of(period: Option<Duration>) -> Snapshots {
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
                Some((duration / DUMPS).clamp(SHORTEST_WAIT, LONGEST_WAIT))
            }
            (Snapshots::Auto, None) if detached => Some(LONGEST_WAIT),
            (Snapshots::Auto, None) => Some(USUAL_WAIT),
        }
    }
}

/// Options as given by flags or by a YAML config; `None` and empty mean not given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// All processes that connect to the tracing service: for programs of this host.
    pub all: bool,
    /// Processes; those of a file and of flags are combined.
    pub targets: Targets,
    /// Bytes between two samples.
    pub interval_bytes: Option<u64>,
    /// Duration; zero means until stopped.
    pub duration: Option<Duration>,
    /// Period of continuous dumps; zero means none.
    pub continuous: Option<Duration>,
    /// Heaps by name.
    pub heaps: Vec<String>,
    /// Record all heaps.
    pub all_heaps: Option<bool>,
    /// Java allocations instead of a native heap, with suitable defaults for other options.
    pub java_allocations: Option<JavaAllocations>,
    /// Shared memory, bytes.
    pub shmem_bytes: Option<u64>,
    /// Block the client if the shared memory is full.
    pub block_client: Option<bool>,
    /// Timeout for blocking; zero means never.
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
    pub snapshots: Option<Duration>,
    /// Settings of single fields.
    pub settings: Vec<FieldSetting>,
}
