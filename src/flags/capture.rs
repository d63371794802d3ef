//! The options that say what to record, under heap_profile's letters and names. What they
//! mean is decided in `config`; here is only what may be typed.

use std::time::Duration;

use clap::{ArgAction, Args};

use crate::config::{self, ConfigFile, FieldSetting, JavaAllocations, Options, Resolved, Targets};
use crate::console::Console;
use crate::error::Failure;
use crate::units::{ByteSize, parse_duration};

/// Which processes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Targets")]
pub struct TargetArgs {
    /// Process names, with *; several with commas
    #[arg(short = 'n', long = "name", value_name = "NAME", value_delimiter = ',')]
    pub names: Vec<String>,
    /// Process ids; several with commas
    #[arg(short = 'p', long = "pid", value_name = "PID", value_delimiter = ',', value_parser = pid)]
    pub pids: Vec<u32>,
    /// All processes of these packages
    #[arg(long = "package", value_name = "PKG", value_delimiter = ',')]
    pub packages: Vec<String>,
}

/// What to record.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "What to record")]
pub struct CaptureArgs {
    /// Bytes between two samples, on average [default: 4096]
    #[arg(short, long, value_name = "BYTES", value_parser = ByteSize::parse)]
    pub interval: Option<ByteSize>,
    /// How long to record; bare numbers are ms, 0 means until Ctrl-C [default: until Ctrl-C]
    #[arg(short, long, value_name = "TIME", value_parser = TypedDuration::parse)]
    pub duration: Option<TypedDuration>,
    /// Dump again and again with this period; bare numbers are ms, 0 means never
    #[arg(
        short,
        long,
        visible_alias = "snapshot-every",
        value_name = "PERIOD",
        value_parser = milliseconds
    )]
    pub continuous_dump: Option<Duration>,
    /// Heaps by name (Android 12+), such as com.android.art for Java allocations
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub heaps: Vec<String>,
    /// All heaps of the process (Android 12+)
    #[arg(long)]
    pub all_heaps: bool,
    /// Java allocations, with their stacks: churn, not leaks [heap or tracking]
    ///
    /// heap (the default from Android 12 on): heapprofd takes them from the runtime: all of the
    /// recording, sampled, with stacks and sizes, without classes and threads. Sets the heap
    /// com.android.art, an interval of 16 KiB and shared memory of 32 MiB, unless others are
    /// given. tracking (the default before): the runtime of a debuggable app tracks them itself:
    /// exact, with class, thread, stack and line, but each label and the end have the last 65,535
    /// alone, and the app is slower. Neither tells what is freed.
    #[arg(
        long,
        value_name = "BY",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "any",
        hide_possible_values = true,
        conflicts_with_all = ["heaps", "all_heaps"]
    )]
    pub java_allocations: Option<JavaAllocationsArg>,
    /// Shared memory between target and heapprofd, a power of two [default: 8MiB]
    #[arg(long, value_name = "SIZE", value_parser = ByteSize::parse)]
    pub shmem_size: Option<ByteSize>,
    /// Make the target wait where the shared memory is full (the default)
    #[arg(long, conflicts_with = "no_block_client")]
    pub block_client: bool,
    /// Lose the rest of the profile where the shared memory is full
    #[arg(long)]
    pub no_block_client: bool,
    /// Stop waiting after this; bare numbers are µs
    #[arg(long, value_name = "TIME", value_parser = microseconds)]
    pub block_client_timeout: Option<Duration>,
    /// Do not hook processes that start while recording
    #[arg(long)]
    pub no_startup: bool,
    /// Do not hook processes that run already
    #[arg(long)]
    pub no_running: bool,
    /// Record the moment at which the heap was largest (Android 11+)
    #[arg(long)]
    pub dump_at_max: bool,
    /// Go on in children of a fork (Android 11+)
    #[arg(long)]
    pub disable_fork_teardown: bool,
    /// Leave function names without Perfetto's marks ([jit], [aot] …)
    #[arg(long)]
    pub no_annotations: bool,
    /// Do not record the list of packages
    #[arg(long)]
    pub no_versions: bool,
    /// Start from a preset, or a file with YAML or Perfetto's text or binary
    ///
    /// Options override it, targets add up. The presets, which configs/ explains, are
    /// leak-hunt, startup, low-overhead, precise, peak, continuous, java-allocations,
    /// all-heaps and long-run.
    #[arg(long, value_name = "FILE|PRESET", value_hint = clap::ValueHint::FilePath)]
    pub config: Option<std::path::PathBuf>,
    /// Any field of Perfetto's HeapprofdConfig: heapprofd.FIELD=VALUE
    #[arg(long = "set", value_name = "FIELD=VALUE", action = ArgAction::Append)]
    pub set: Vec<String>,
    /// Print the config as `perfetto --txt -c -` takes it, and end
    #[arg(long)]
    pub print_config: bool,
    /// Options of Perfetto's script that have no effect any more.
    #[command(flatten)]
    pub retired: RetiredArgs,
}

/// Options of Perfetto's heap_profile that are taken so that old scripts run, and said to
/// have no effect.
#[derive(Debug, Clone, Default, Args)]
pub struct RetiredArgs {
    /// Taken, without effect
    #[arg(long, hide = true)]
    pub idle_allocations: bool,
    /// Taken, without effect
    #[arg(long, hide = true)]
    pub no_start: bool,
    /// Taken, without effect
    #[arg(long, hide = true, value_name = "PATH")]
    pub traceconv_binary: Option<std::path::PathBuf>,
    /// Taken, without effect
    #[arg(long, hide = true)]
    pub no_android_tree_symbolization: bool,
    /// Taken, without effect
    #[arg(long, hide = true)]
    pub simpleperf: bool,
}

impl CaptureArgs {
    /// What these flags and the config file they name ask for. Says which flags have no
    /// effect, and what is allowed but probably not meant.
    ///
    /// # Errors
    /// Where the file cannot be read, or something is refused with its reason.
    pub fn resolve(&self, target: &TargetArgs, console: &Console) -> Result<Resolved, Failure> {
        for option in self.retired.given() {
            console.warn(format_args!("{option} has no effect any more"));
        }
        if let Some(doubt) = self.duration.and_then(TypedDuration::doubt) {
            console.warn(doubt);
        }
        let file = self.config.as_deref().map(ConfigFile::load).transpose()?;
        let resolved = config::resolve(file.as_ref(), &self.options(target)?)?;
        for notice in &resolved.notices {
            console.warn(&notice.message);
        }
        Ok(resolved)
    }

    fn options(&self, target: &TargetArgs) -> Result<Options, Failure> {
        let on = |flag: bool| flag.then_some(true);
        let settings: Result<Vec<_>, _> = self.set.iter().map(|s| FieldSetting::parse(s)).collect();
        Ok(Options {
            targets: Targets {
                names: target.names.clone(),
                pids: target.pids.clone(),
                packages: target.packages.clone(),
            },
            interval_bytes: self.interval.map(|s| s.0),
            duration: self.duration.map(|d| d.value),
            continuous: self.continuous_dump,
            heaps: self.heaps.clone(),
            all_heaps: on(self.all_heaps),
            java_allocations: self.java_allocations.map(Into::into),
            shmem_bytes: self.shmem_size.map(|s| s.0),
            block_client: if self.no_block_client {
                Some(false)
            } else {
                on(self.block_client)
            },
            block_client_timeout: self.block_client_timeout,
            no_startup: on(self.no_startup),
            no_running: on(self.no_running),
            dump_at_max: on(self.dump_at_max),
            disable_fork_teardown: on(self.disable_fork_teardown),
            packages_list: self.no_versions.then_some(false),
            launch: None,
            snapshots: None,
            settings: settings?,
        })
    }
}

/// A word of `--java-allocations`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum JavaAllocationsArg {
    /// Whichever the phone has.
    #[value(hide = true)]
    Any,
    /// heapprofd.
    Heap,
    /// The runtime itself.
    Tracking,
}

impl From<JavaAllocationsArg> for JavaAllocations {
    fn from(by: JavaAllocationsArg) -> Self {
        match by {
            JavaAllocationsArg::Any => JavaAllocations::Any,
            JavaAllocationsArg::Heap => JavaAllocations::Heap,
            JavaAllocationsArg::Tracking => JavaAllocations::Tracking,
        }
    }
}

impl RetiredArgs {
    fn given(&self) -> Vec<&'static str> {
        [
            (self.idle_allocations, "--idle-allocations"),
            (self.no_start, "--no-start"),
            (self.traceconv_binary.is_some(), "--traceconv-binary"),
            (
                self.no_android_tree_symbolization,
                "--no-android-tree-symbolization",
            ),
            (self.simpleperf, "--simpleperf"),
        ]
        .into_iter()
        .filter_map(|(given, name)| given.then_some(name))
        .collect()
    }
}

/// A duration of milliseconds where no unit was typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypedDuration {
    /// What it means.
    value: Duration,
    /// No unit was typed.
    bare: bool,
}

impl TypedDuration {
    fn parse(text: &str) -> Result<TypedDuration, crate::units::ParseUnitError> {
        Ok(TypedDuration {
            value: milliseconds(text)?,
            bare: text.trim().bytes().all(|b| b.is_ascii_digit()),
        })
    }

    /// Whoever types so little may mean seconds.
    fn doubt(self) -> Option<String> {
        let number = self.value.as_millis();
        let short = !self.value.is_zero() && self.value < Duration::from_secs(1);
        (self.bare && short)
            .then(|| format!("-d {number} is {number} ms; {number} s is -d {number}s"))
    }
}

/// A process id.
fn pid(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(pid) if pid > 0 => Ok(pid),
        _ => Err("a process id is a number, such as 1234; names go with -n".to_owned()),
    }
}

/// A duration whose bare numbers are milliseconds.
///
/// # Errors
/// Where it is none.
pub fn milliseconds(text: &str) -> Result<Duration, crate::units::ParseUnitError> {
    parse_duration(text, Duration::from_millis(1))
}

/// A duration whose bare numbers are microseconds.
fn microseconds(text: &str) -> Result<Duration, crate::units::ParseUnitError> {
    parse_duration(text, Duration::from_micros(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_duration_without_a_unit_is_doubted() {
        let doubt = |text| TypedDuration::parse(text).unwrap().doubt();
        assert_eq!(doubt("5").unwrap(), "-d 5 is 5 ms; 5 s is -d 5s");
        for clear in ["0", "5s", "5ms", "1000", "30000"] {
            assert_eq!(doubt(clear), None, "{clear}");
        }
    }
}
