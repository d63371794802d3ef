//! The options that say what to record, under heap_profile's letters and names. What they
//! mean is decided in `config`; here is only what may be typed.

use std::time::Duration;

use clap::{ArgAction, Args};

use crate::units::{ByteSize, parse_duration};

/// Which processes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Targets")]
pub struct TargetArgs {
    /// Process names, with *; several with commas
    #[arg(short = 'n', long = "name", value_name = "NAME", value_delimiter = ',')]
    pub names: Vec<String>,
    /// Process ids; several with commas
    #[arg(short = 'p', long = "pid", value_name = "PID", value_delimiter = ',')]
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
    #[arg(short, long, value_name = "TIME", value_parser = milliseconds)]
    pub duration: Option<Duration>,
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
    /// Shared memory between target and heapprofd, a power of two [default: 8MiB]
    #[arg(long, value_name = "SIZE", value_parser = ByteSize::parse)]
    pub shmem_size: Option<ByteSize>,
    /// Make the target wait where the shared memory is full (the default)
    #[arg(long)]
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
    /// Do not record the list of packages
    #[arg(long)]
    pub no_versions: bool,
    /// Start from a config: YAML, or Perfetto's text or binary; options override it
    #[arg(long, value_name = "FILE")]
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
    pub no_annotations: bool,
    /// Taken, without effect
    #[arg(long, hide = true)]
    pub no_android_tree_symbolization: bool,
    /// Taken, without effect
    #[arg(long, hide = true)]
    pub simpleperf: bool,
}

/// A duration whose bare numbers are milliseconds.
pub fn milliseconds(text: &str) -> Result<Duration, crate::units::ParseUnitError> {
    parse_duration(text, Duration::from_millis(1))
}

/// A duration whose bare numbers are microseconds.
fn microseconds(text: &str) -> Result<Duration, crate::units::ParseUnitError> {
    parse_duration(text, Duration::from_micros(1))
}
