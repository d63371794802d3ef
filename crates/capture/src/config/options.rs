//! What was asked for, piece by piece, and how the pieces become one spec: a config file
//! first, flags over it, single fields last.

use std::time::Duration;

use super::encode::heapprofd_in;
use super::{CaptureSpec, ConfigError, ConfigFile, JAVA_HEAP, Notice, Targets, text};

/// What suits Java allocations, as configs/java-allocations.yaml has it.
const JAVA_INTERVAL: u64 = 16 << 10;
const JAVA_SHMEM: u64 = 32 << 20;

/// Who is to tell of Java allocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JavaAllocations {
    /// Whoever can on the phone: heapprofd, else the runtime's own tracking.
    Any,
    /// heapprofd, by ART's heap `com.android.art`.
    Heap,
    /// The runtime's own tracking, asked for as a debugger does.
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

/// Most dumps in a recording whose duration is known, unless its period would exceed
/// [`LONGEST_WAIT`].
const DUMPS: u32 = 60;
/// A dump more often than this costs the target time: `docs/recording.md` has the figures.
const SHORTEST_WAIT: Duration = Duration::from_secs(2);
/// Period while someone watches. A label waits as long again for the next flush.
const USUAL_WAIT: Duration = Duration::from_secs(5);
/// The state of the app that a label names is over if its dump comes later.
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
    /// Processes; those of a file and of flags add up.
    pub targets: Targets,
    /// Bytes between two samples.
    pub interval_bytes: Option<u64>,
    /// How long; zero means until stopped.
    pub duration: Option<Duration>,
    /// Period of continuous dumps; zero means none.
    pub continuous: Option<Duration>,
    /// Heaps by name.
    pub heaps: Vec<String>,
    /// All heaps.
    pub all_heaps: Option<bool>,
    /// Java allocations instead of a native heap, with what suits them where nothing else is said.
    pub java_allocations: Option<JavaAllocations>,
    /// Shared memory, bytes.
    pub shmem_bytes: Option<u64>,
    /// Block the client when the shared memory is full.
    pub block_client: Option<bool>,
    /// Give up blocking after this; zero means never.
    pub block_client_timeout: Option<Duration>,
    /// Do not hook processes that start later.
    pub no_startup: Option<bool>,
    /// Do not hook processes that run already.
    pub no_running: Option<bool>,
    /// Dump the state at the maximum only.
    pub dump_at_max: Option<bool>,
    /// Keep profiling across fork.
    pub disable_fork_teardown: Option<bool>,
    /// Record the list of packages.
    pub packages_list: Option<bool>,
    /// Start the app once the session is armed.
    pub launch: Option<bool>,
    /// Dumps for labels; a period of zero means none.
    pub snapshots: Option<Duration>,
    /// Single fields.
    pub settings: Vec<FieldSetting>,
}

/// One field of HeapprofdConfig by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldSetting {
    /// `skip_symbol_prefix`, `continuous_dump_config.dump_phase_ms`.
    pub path: String,
    /// As typed.
    pub value: String,
}

impl FieldSetting {
    /// Parses `heapprofd.FIELD=VALUE`.
    ///
    /// # Errors
    /// Where it does not have that form.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let bad = |why: &str| ConfigError::BadSetting {
            setting: text.to_owned(),
            why: why.to_owned(),
            help: "the form is --set heapprofd.FIELD=VALUE, such as \
                   heapprofd.max_heapprofd_memory_kb=200000"
                .to_owned(),
        };
        let (path, value) = text.split_once('=').ok_or_else(|| bad("it has no ="))?;
        let path = path
            .trim()
            .strip_prefix("heapprofd.")
            .ok_or_else(|| bad("only fields of heapprofd can be set"))?;
        Ok(FieldSetting {
            path: path.to_owned(),
            value: value.trim().to_owned(),
        })
    }
}

/// A spec, and what was asked for beside it.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// What to record; not yet validated, since targets may still be expanded.
    pub spec: CaptureSpec,
    /// Start the app once the session is armed.
    pub launch: bool,
    /// Dumps for labels.
    pub snapshots: Snapshots,
    /// What is allowed but probably not meant.
    pub notices: Vec<Notice>,
}

/// Makes one spec of a config file and of flags, which override it. Targets add up.
///
/// # Errors
/// Where a field that is set does not exist, or the result breaks a rule.
pub fn resolve(file: Option<&ConfigFile>, flags: &Options) -> Result<Resolved, ConfigError> {
    let mut spec = CaptureSpec::default();
    let mut asked = Options::default();
    match file {
        None => {}
        Some(ConfigFile::Options(options)) => asked = (**options).clone(),
        Some(ConfigFile::Template(template)) => {
            spec.template = (**template).clone();
            spec.duration = template
                .duration_ms
                .filter(|ms| *ms > 0)
                .map(|ms| Duration::from_millis(ms.into()));
            if let Some(heapprofd) = super::encode::heapprofd_of(template) {
                spec.read_from(heapprofd);
            }
        }
    }
    asked.override_with(flags);
    asked.apply(&mut spec);
    if !asked.settings.is_empty() {
        let mut template = std::mem::take(&mut spec.template);
        spec.write_to(heapprofd_in(&mut template));
        text::apply_settings(&mut template, &asked.settings)?;
        spec.read_from(heapprofd_in(&mut template));
        spec.template = template;
    }
    spec.validate()?;
    Ok(Resolved {
        launch: asked.launch.unwrap_or(false),
        snapshots: Snapshots::of(asked.snapshots),
        notices: spec.notices(),
        spec,
    })
}

impl Options {
    fn override_with(&mut self, flags: &Options) {
        fn over<T: Clone>(mine: &mut Option<T>, theirs: &Option<T>) {
            if theirs.is_some() {
                mine.clone_from(theirs);
            }
        }
        add(&mut self.targets.names, &flags.targets.names);
        add(&mut self.targets.pids, &flags.targets.pids);
        add(&mut self.targets.packages, &flags.targets.packages);
        over(&mut self.interval_bytes, &flags.interval_bytes);
        over(&mut self.duration, &flags.duration);
        over(&mut self.continuous, &flags.continuous);
        // Which heaps is one choice: a flag for it replaces both ways of making it.
        if !flags.heaps.is_empty() {
            self.heaps.clone_from(&flags.heaps);
            self.all_heaps = flags.all_heaps;
        } else if flags.all_heaps == Some(true) {
            self.heaps.clear();
            self.all_heaps = Some(true);
        }
        if flags.java_allocations.is_some() {
            self.heaps.clear();
            self.all_heaps = None;
            self.java_allocations = flags.java_allocations;
        }
        over(&mut self.shmem_bytes, &flags.shmem_bytes);
        over(&mut self.block_client, &flags.block_client);
        over(&mut self.block_client_timeout, &flags.block_client_timeout);
        over(&mut self.no_startup, &flags.no_startup);
        over(&mut self.no_running, &flags.no_running);
        over(&mut self.dump_at_max, &flags.dump_at_max);
        over(
            &mut self.disable_fork_teardown,
            &flags.disable_fork_teardown,
        );
        over(&mut self.packages_list, &flags.packages_list);
        over(&mut self.launch, &flags.launch);
        over(&mut self.snapshots, &flags.snapshots);
        self.settings.extend(flags.settings.iter().cloned());
    }

    fn apply(&self, spec: &mut CaptureSpec) {
        fn put<T: Clone>(to: &mut T, from: &Option<T>) {
            if let Some(value) = from {
                to.clone_from(value);
            }
        }
        add(&mut spec.targets.names, &self.targets.names);
        add(&mut spec.targets.pids, &self.targets.pids);
        add(&mut spec.targets.packages, &self.targets.packages);
        put(&mut spec.interval_bytes, &self.interval_bytes);
        for (to, from) in [
            (&mut spec.duration, self.duration),
            (&mut spec.continuous, self.continuous),
            (&mut spec.block_client_timeout, self.block_client_timeout),
        ] {
            if let Some(time) = from {
                *to = (!time.is_zero()).then_some(time);
            }
        }
        if !self.heaps.is_empty() {
            spec.heaps.clone_from(&self.heaps);
            spec.all_heaps = false;
        }
        if let Some(all) = self.all_heaps {
            spec.all_heaps = all;
        }
        if self.java_allocations.is_some() {
            spec.heaps = vec![JAVA_HEAP.to_owned()];
            spec.all_heaps = false;
            spec.java_allocations = self.java_allocations;
            if super::encode::heapprofd_of(&spec.template).is_none() {
                // Java code allocates much and often: as the preset has it.
                spec.interval_bytes = self.interval_bytes.unwrap_or(JAVA_INTERVAL);
                spec.shmem_bytes = JAVA_SHMEM;
            }
        }
        put(&mut spec.shmem_bytes, &self.shmem_bytes);
        put(&mut spec.block_client, &self.block_client);
        put(&mut spec.no_startup, &self.no_startup);
        put(&mut spec.no_running, &self.no_running);
        put(&mut spec.dump_at_max, &self.dump_at_max);
        put(&mut spec.disable_fork_teardown, &self.disable_fork_teardown);
        put(&mut spec.packages_list, &self.packages_list);
    }
}

/// Appends what is not there yet.
fn add<T: Clone + PartialEq>(mine: &mut Vec<T>, theirs: &[T]) {
    for item in theirs {
        if !mine.contains(item) {
            mine.push(item.clone());
        }
    }
}
