//! The flags of `heaptap dump`.

use crate::config::{BitmapFormat, JavaSpec, Targets};
use crate::flags::capture::{TargetArgs, milliseconds};
use crate::flags::sample_names::SampleNamesArg;
use crate::units::ByteSize;
use clap::ValueHint;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Flags of `dump`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    heaptap dump -n com.example.app                the Java heap as it is now\n  \
    heaptap dump -n com.example.app -c 30s -o out  every 30 seconds, until Ctrl-C\n  \
    heaptap dump -n com.example.app --hprof --bitmaps  an HPROF file, with pictures\n  \
    heaptap dump -n com.example.app --wait-for-oom --oom-wait-seconds 600\n  \
    heaptap dump --package com.example.app         all processes of an app")]
pub struct Args {
    /// Which processes.
    #[command(flatten)]
    pub target: TargetArgs,
    /// How to dump.
    #[command(flatten)]
    pub capture: JavaArgs,
    /// As a file, by `am dumpheap`.
    #[command(flatten)]
    pub file: FileArgs,
    /// The folder to write to; must be empty or new [default: heaptap-TARGET-TIME-SESSION]
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "How to dump")]
    pub output: Option<PathBuf>,
    /// Dump even where the target does not look eligible
    #[arg(long, help_heading = "How to dump")]
    pub force: bool,
    /// Start and return; `heaptap status`, `stop` and `collect` go on from there
    #[arg(long, help_heading = "How to dump")]
    pub detach: bool,
    /// Print the config as `perfetto --txt -c -` takes it, and end
    #[arg(long, help_heading = "How to dump")]
    pub print_config: bool,
    /// Names of the sample types
    #[arg(
        long,
        value_name = "WHOSE",
        value_enum,
        default_value_t,
        help_heading = "Results"
    )]
    pub sample_names: SampleNamesArg,
    /// Write a profile along dominators, too: what each object keeps alive
    #[arg(long, help_heading = "Results")]
    pub dominators: bool,
    /// Mapping file of R8 or ProGuard for names of classes and fields; may be repeated
    ///
    /// As for `record`: without its package it is for those of the dumped apps that no other is
    /// for, and PERFETTO_PROGUARD_MAP and Gradle's build/outputs/mapping are looked at after it.
    #[arg(long = "mapping", value_name = "[PACKAGE=]FILE", value_hint = ValueHint::FilePath, help_heading = "Results")]
    pub mappings: Vec<OsString>,
}

/// java_heap_dump's options, under its letters and names.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "How to dump")]
pub struct JavaArgs {
    /// Dump again and again with this period, until stopped; bare numbers are ms
    #[arg(short, long, value_name = "PERIOD", value_parser = milliseconds)]
    pub continuous_dump: Option<Duration>,
    /// Buffer between the app and the file on the phone [default: 256mb, less on small phones]
    #[arg(short, long, value_name = "SIZE", value_parser = ByteSize::parse)]
    pub buffer_size: Option<ByteSize>,
    /// Record which memory the process has mapped, too
    #[arg(long)]
    pub dump_smaps: bool,
    /// End when the dump is done (the default from Android 12 on)
    #[arg(long, conflicts_with = "no_stop_when_done")]
    pub stop_when_done: bool,
    /// Give the dump 20 seconds instead, as before Android 12; ends earlier where it is seen done
    #[arg(long)]
    pub no_stop_when_done: bool,
    /// Do not record the list of packages
    #[arg(long)]
    pub no_versions: bool,
    /// Dump when the app runs out of memory, instead of now (Android 14+)
    ///
    /// -n may hold * and means every app that matches, running or not. The first
    /// OutOfMemoryError of a process counts.
    #[arg(long)]
    pub wait_for_oom: bool,
    /// How long to wait for that; bare numbers are seconds [default: 60]
    #[arg(long, value_name = "TIME", value_parser = seconds, requires = "wait_for_oom")]
    pub oom_wait_seconds: Option<Duration>,
}

/// Heap files, by `am dumpheap`.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "As a file")]
pub struct FileArgs {
    /// Dump an HPROF file by `am dumpheap`: with strings and values; the app must be debuggable
    #[arg(long, conflicts_with_all = [
        "continuous_dump", "buffer_size", "dump_smaps", "stop_when_done", "no_stop_when_done",
        "no_versions", "wait_for_oom", "print_config",
    ])]
    pub hprof: bool,
    /// The contents of bitmaps in it, too (Android 15+)
    #[arg(
        long,
        value_name = "FORMAT",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "png",
        requires = "hprof",
    )]
    pub bitmaps: Option<BitmapArg>,
    /// What malloc says of the process, as XML, beside the HPROF or without one (Android 9+)
    #[arg(long, conflicts_with_all = [
        "continuous_dump", "buffer_size", "dump_smaps", "stop_when_done", "no_stop_when_done",
        "no_versions", "wait_for_oom", "print_config",
    ])]
    pub malloc_info: bool,
    /// Collect no garbage before an HPROF
    #[arg(long, requires = "hprof")]
    pub no_gc: bool,
    /// Give a file up that does not grow for so long [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = milliseconds)]
    pub deadline: Option<Duration>,
}

/// The format of bitmaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum BitmapArg {
    /// Without loss
    Png,
    /// Smaller, at quality 90
    #[value(alias = "jpeg")]
    Jpg,
    /// Smaller still, at quality 90
    Webp,
}

impl From<BitmapArg> for BitmapFormat {
    fn from(format: BitmapArg) -> Self {
        match format {
            BitmapArg::Png => BitmapFormat::Png,
            BitmapArg::Jpg => BitmapFormat::Jpeg,
            BitmapArg::Webp => BitmapFormat::Webp,
        }
    }
}

impl JavaArgs {
    pub(super) fn spec(&self, target: &TargetArgs) -> JavaSpec {
        JavaSpec {
            targets: targets(target),
            buffer_bytes: self.buffer_size.map(|size| size.0),
            // As in Perfetto's tool, 0 is none.
            continuous: self.continuous_dump.filter(|period| !period.is_zero()),
            dump_smaps: self.dump_smaps,
            stop_when_done: match (self.stop_when_done, self.no_stop_when_done) {
                (true, _) => Some(true),
                (_, true) => Some(false),
                _ => None,
            },
            packages_list: !self.no_versions,
            wait_for_oom: self
                .wait_for_oom
                .then(|| self.oom_wait_seconds.unwrap_or(OOM_WAIT)),
            ..JavaSpec::default()
        }
    }
}

/// A duration whose bare numbers are seconds.
pub(super) fn seconds(text: &str) -> Result<Duration, crate::units::ParseUnitError> {
    crate::units::parse_duration(text, Duration::from_secs(1))
}

/// As java_heap_dump waits.
pub(super) const OOM_WAIT: Duration = Duration::from_secs(60);

pub(super) fn targets(target: &TargetArgs) -> Targets {
    Targets {
        names: target.names.clone(),
        pids: target.pids.clone(),
        packages: target.packages.clone(),
    }
}
