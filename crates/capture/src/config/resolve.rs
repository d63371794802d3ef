//! Merges a request into one spec: a config file first, then flags, then single fields.

use std::time::Duration;

use super::file::ConfigFile;
use super::options::{Options, Snapshots};
use super::sources::{heapprofd_in, heapprofd_of};
use super::spec::CaptureSpec;
use super::targets::add;
use super::{JAVA_HPROF, JAVA_HPROF_OOM, fields};
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::untrusted::shell::quoted;
use heaptap_model::profile::ART_HEAP;
use heaptap_proto::perfetto::TraceConfig;

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
    pub notices: Vec<String>,
}

/// Merges a config file with flags, which override it. Targets are combined.
///
/// # Errors
/// Returns an error if a field does not exist, or if the result breaks a rule.
pub fn resolve(file: Option<&ConfigFile>, flags: &Options) -> Result<Resolved, Failure> {
    let mut spec = CaptureSpec::default();
    if flags.java_allocations.is_some() {
        // Java code allocates a lot; same values as the preset.
        spec.interval_bytes = JAVA_INTERVAL;
        spec.shmem_bytes = JAVA_SHMEM;
    }
    let none = Options::default();
    let in_file = match file {
        None => &none,
        Some(ConfigFile::Options(options)) => options,
        Some(ConfigFile::Template(template)) => {
            spec.template = (**template).clone();
            spec.duration = template
                .duration_ms
                .filter(|ms| *ms > 0)
                .map(|ms| Duration::from_millis(ms.into()));
            match heapprofd_of(template) {
                Some(heapprofd) => spec.read_from(heapprofd),
                // For processes on the command line, heapprofd is added.
                None if !flags.all && flags.targets.is_empty() && flags.settings.is_empty() => {
                    return Err(not_native(template));
                }
                None => {}
            }
            &none
        }
    };
    in_file.apply(&mut spec);
    flags.apply(&mut spec);
    let settings = [in_file.settings.as_slice(), &flags.settings].concat();
    if !settings.is_empty() {
        let mut template = std::mem::take(&mut spec.template);
        spec.write_to(heapprofd_in(&mut template));
        fields::apply_settings(&mut template, &settings)?;
        spec.read_from(heapprofd_in(&mut template));
        spec.template = template;
    }
    spec.validate()?;
    Ok(Resolved {
        launch: flags.launch.or(in_file.launch).unwrap_or(false),
        snapshots: Snapshots::from_period(flags.snapshots.or(in_file.snapshots)),
        notices: spec.notices(),
        spec,
    })
}

/// Returns the error of a config without a native heap, with the command for what it has.
fn not_native(config: &TraceConfig) -> Failure {
    let failure = |what: String| {
        let message = format!("the config is for {what}, not for a native heap");
        Failure::new(ErrorClass::Usage, "config-not-native", message)
    };
    let sources = config.data_sources.iter();
    let sources = sources.filter_map(|source| source.config.as_ref());
    let java = sources
        .clone()
        .find(|source| [JAVA_HPROF, JAVA_HPROF_OOM].contains(&source.name()));
    let Some(java) = java else {
        let names: Vec<&str> = sources.map(|source| source.name()).collect();
        let what = match names.is_empty() {
            true => "no data source".to_owned(),
            false => names.join(", "),
        };
        return failure(what)
            .with_help("add `-n NAME`, and heaptap adds the heap profile of that process");
    };
    let targets = java.java_hprof_config.as_ref();
    let name = targets.and_then(|targets| targets.process_cmdline.first());
    let name = name.map_or("NAME".to_owned(), quoted);
    let oom = if java.name() == JAVA_HPROF_OOM {
        " --wait-for-oom"
    } else {
        ""
    };
    failure(format!("a Java heap dump ({})", java.name())).with_help(format!(
        "dump the Java heap with `heaptap dump -n {name}{oom}`"
    ))
}

impl Options {
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
        let all_heaps = self.all_heaps == Some(true);
        // The choice of heaps is one option: it replaces both forms.
        if all_heaps || !self.heaps.is_empty() {
            spec.heaps.clone_from(&self.heaps);
            spec.all_heaps = all_heaps;
        }
        if self.java_allocations.is_some() {
            spec.heaps = vec![ART_HEAP.to_owned()];
            spec.all_heaps = false;
            spec.java_allocations = self.java_allocations;
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
