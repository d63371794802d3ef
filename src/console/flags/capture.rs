//! Recording options, with heap_profile's letters and names. This module parses them; `config`
//! defines their meaning.

use std::time::Duration;

use clap::{ArgAction, Args};

use crate::console::Console;
use crate::console::flags::target::TargetArgs;
use crate::console::flags::time::{perfetto_micros, perfetto_time};
use crate::console::flags::typed::of_same_name;
use heaptap_base::error::Failure;
use heaptap_base::units::ByteSize;
use heaptap_capture::config::{self, ConfigFile, FieldSetting, Options, Resolved};

/// What to record.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "What to record")]
pub struct CaptureArgs {
    /// Sampling interval [default: 4 KiB]
    ///
    /// On average, heapprofd records one allocation in this many allocated bytes.
    #[arg(short, long, value_name = "SIZE", value_parser = ByteSize::parse)]
    pub interval: Option<ByteSize>,
    /// End after this time, such as 30s
    ///
    /// Without it, or with 0, Ctrl-C ends the recording. Bare numbers from 1000 on are milliseconds, as in heap_profile.
    #[arg(short, long, value_name = "TIME", value_parser = perfetto_time)]
    pub duration: Option<Duration>,
    /// Dump repeatedly, such as every 5s
    ///
    /// Bare numbers from 1000 on are milliseconds, as in heap_profile. 0 means never.
    #[arg(
        short,
        long,
        value_name = "TIME",
        value_parser = perfetto_time
    )]
    pub continuous_dump: Option<Duration>,
    /// Heaps by name, such as com.android.art (Android 12+)
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        hide_short_help = true
    )]
    pub heaps: Vec<String>,
    /// All heaps of the process (Android 12+)
    #[arg(long, hide_short_help = true)]
    pub all_heaps: bool,
    /// Record who allocates Java objects
    ///
    /// `heap` is the default from Android 12 on: heapprofd samples the allocations of the runtime, with
    /// stacks and sizes, without classes and threads. It sets the heap com.android.art, an interval
    /// of 16 KiB and shared memory of 32 MiB, unless you set others. `tracking` is the default before:
    /// the runtime of a debuggable app records each allocation with class, thread, stack and line, but
    /// keeps only the last 65,535, and the app is slower. Neither records what is freed.
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
    /// Shared memory between app and heapprofd, a power of two [default: 8 MiB]
    #[arg(long, value_name = "SIZE", value_parser = ByteSize::parse, hide_short_help = true)]
    pub shmem_size: Option<ByteSize>,
    /// Block the app if the shared memory is full (the default)
    #[arg(long, conflicts_with = "no_block_client", hide_short_help = true)]
    pub block_client: bool,
    /// End the profile if the shared memory is full
    #[arg(long, hide_short_help = true)]
    pub no_block_client: bool,
    /// Maximum time to block the app; bare numbers are µs
    #[arg(long, value_name = "TIME", value_parser = perfetto_micros, hide_short_help = true)]
    pub block_client_timeout: Option<Duration>,
    /// Skip processes that start during the recording
    #[arg(long, hide_short_help = true)]
    pub no_startup: bool,
    /// Skip processes that already run
    #[arg(long)]
    pub no_running: bool,
    /// Record the moment of the largest heap (Android 11+)
    #[arg(long, hide_short_help = true)]
    pub dump_at_max: bool,
    /// Continue in child processes after a fork (Android 11+)
    #[arg(long, hide_short_help = true)]
    pub disable_fork_teardown: bool,
    /// Omit Perfetto's marks of function names, such as [jit]
    #[arg(long, hide_short_help = true)]
    pub no_annotations: bool,
    /// Do not record the list of packages
    #[arg(long, hide_short_help = true)]
    pub no_versions: bool,
    /// Preset, or a config file
    ///
    /// Options override it, and targets add up. The presets are leak-hunt, startup, low-overhead,
    /// precise, peak, continuous, java-allocations, all-heaps and long-run.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub config: Option<std::path::PathBuf>,
    /// Set a field of HeapprofdConfig: heapprofd.FIELD=VALUE
    #[arg(long = "set", value_name = "FIELD=VALUE", action = ArgAction::Append, hide_short_help = true)]
    pub set: Vec<String>,
    /// Print the config for `perfetto --txt -c -`, and exit
    #[arg(long, hide_short_help = true)]
    pub print_config: bool,
    #[command(flatten)]
    pub retired: RetiredArgs,
}

/// Options of Perfetto's heap_profile that are accepted for old scripts, with a note that they have
/// no effect.
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
    /// Returns the config of these flags and their config file. Warns about flags without effect
    /// and about settings that are probably unintended.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or a setting is refused, with the reason.
    pub fn resolve(&self, target: &TargetArgs, console: &Console) -> Result<Resolved, Failure> {
        for option in self.retired.given() {
            console.warn(format_args!("{option} has no effect any more"));
        }
        self.resolved(target, false, console)
    }

    /// As [`CaptureArgs::resolve`], for all processes of a program of this host.
    ///
    /// # Errors
    /// As [`CaptureArgs::resolve`].
    pub fn resolve_for_host(&self, console: &Console) -> Result<Resolved, Failure> {
        self.resolved(&TargetArgs::default(), true, console)
    }

    fn resolved(
        &self,
        target: &TargetArgs,
        all: bool,
        console: &Console,
    ) -> Result<Resolved, Failure> {
        let file = self.config.as_deref().map(ConfigFile::load).transpose()?;
        let resolved = config::resolve(file.as_ref(), &self.options(target, all)?)?;
        for notice in &resolved.notices {
            console.warn(notice);
        }
        Ok(resolved)
    }

    fn options(&self, target: &TargetArgs, all: bool) -> Result<Options, Failure> {
        let on = |flag: bool| flag.then_some(true);
        let settings: Result<Vec<_>, _> = self.set.iter().map(|s| FieldSetting::parse(s)).collect();
        Ok(Options {
            all,
            targets: target.targets(),
            interval_bytes: self.interval.map(|s| s.0),
            duration: self.duration,
            continuous: self.continuous_dump,
            heaps: self.heaps.clone(),
            all_heaps: on(self.all_heaps),
            java_allocations: self.java_allocations.and_then(of_same_name),
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

/// Value of `--java-allocations`.
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
