//! Merges a request into one spec: a config file first, then flags, then single fields.

use std::time::Duration;

use super::file::ConfigFile;
use super::options::{Options, Snapshots};
use super::rules::{JAVA_HEAP, Notice};
use super::sources::{heapprofd_in, heapprofd_of};
use super::{CaptureSpec, ConfigError, fields};

/// Values for Java allocations, as in configs/java-allocations.yaml.
const JAVA_INTERVAL: u64 = 16 << 10;
const JAVA_SHMEM: u64 = 32 << 20;

/// A spec with the options outside of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// Spec; not validated yet, because targets might still be expanded.
    pub spec: CaptureSpec,
    /// Start the app when the session is armed.
    pub launch: bool,
    /// Dumps for labels.
    pub snapshots: Snapshots,
    /// Notices about values that are allowed but probably unintended.
    pub notices: Vec<Notice>,
}

/// Merges a config file with flags, which override it. Targets are combined.
///
/// # Errors
/// Returns an error if a field does not exist, or if the result breaks a rule.
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
            if let Some(heapprofd) = heapprofd_of(template) {
                spec.read_from(heapprofd);
            }
        }
    }
    asked.override_with(flags);
    asked.apply(&mut spec);
    if !asked.settings.is_empty() {
        let mut template = std::mem::take(&mut spec.template);
        spec.write_to(heapprofd_in(&mut template));
        fields::apply_settings(&mut template, &asked.settings)?;
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
        self.all |= flags.all;
        add(&mut self.targets.names, &flags.targets.names);
        add(&mut self.targets.pids, &flags.targets.pids);
        add(&mut self.targets.packages, &flags.targets.packages);
        over(&mut self.interval_bytes, &flags.interval_bytes);
        over(&mut self.duration, &flags.duration);
        over(&mut self.continuous, &flags.continuous);
        // The choice of heaps is one option: a flag for it replaces both forms.
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
        if self.all {
            heapprofd_in(&mut spec.template).all = Some(true);
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
            if heapprofd_of(&spec.template).is_none() {
                // Java code allocates a lot; same values as the preset.
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

/// Appends missing items.
fn add<T: Clone + PartialEq>(mine: &mut Vec<T>, theirs: &[T]) {
    for item in theirs {
        if !mine.contains(item) {
            mine.push(item.clone());
        }
    }
}
