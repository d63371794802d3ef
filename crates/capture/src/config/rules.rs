//! Rules for allowed values and for Android releases. Limits as of Perfetto v58; each rule
//! states the effect without it.

use std::time::Duration;

use super::error::{bad_value, check_whole, conflict, no_target, too_old};
use super::sources::heapprofd_of;
use super::spec::{CaptureSpec, JavaAllocations};
use super::targets::check_target_names;
use heaptap_base::error::Failure;
use heaptap_base::units::ByteSize;
use heaptap_model::profile::{MALLOC_HEAP, meant_heap};

/// Maximum session duration of the tracing service.
const MAX_DURATION: Duration = Duration::from_secs(7 * 24 * 3600);
const MAX_HEAPS: usize = 64;
const MAX_HEAP_NAME_BYTES: usize = 63;
/// First SDK level with a choice of heaps: Android 12.
pub const HEAPS_SDK: u32 = 31;
/// A larger sampling interval is probably a mistake.
const MAX_USUAL_INTERVAL_BYTES: u64 = 16 << 20;
const MIN_SHMEM: u64 = 8192;
/// Above 500 MiB heapprofd cuts the size to 500 MiB, which is not a power of two, and fails.
const MAX_SHMEM: u64 = 256 << 20;

/// Properties and limits of ART's heap, printed before the recording.
const HEAP: &str = "\
     heapprofd reports Java allocations (heap com.android.art) with stacks and sizes, without \
     classes and threads. What is freed is not known, so this finds churn, not leaks; use \
     `heaptap dump` for leaks.";

/// Properties and limits of tracking, printed before the recording.
const TRACKING: &str = "\
     the app's own runtime tracks Java allocations, exactly and with class, thread, stack and \
     line. Each label and the end have only the last 65,535 allocations, and tracking slows the \
     app down. What is freed is not known, so this finds churn, not leaks; use `heaptap dump` \
     for leaks.";

impl CaptureSpec {
    /// Returns whether the runtime tracks Java allocations on a device of that API level (`None`
    /// if unknown), so that heapprofd is not needed.
    pub fn tracks(&self, sdk: Option<u32>) -> bool {
        match self.java_allocations {
            None | Some(JavaAllocations::Heap) => false,
            Some(JavaAllocations::Tracking) => true,
            Some(JavaAllocations::Any) => sdk.is_some_and(|sdk| sdk < HEAPS_SDK),
        }
    }

    /// Rejects specs that would fail, record nothing, or harm the target.
    ///
    /// # Errors
    /// Returns an error for the first broken rule, with its reason.
    pub fn validate(&self) -> Result<(), Failure> {
        self.check_targets()?;
        self.check_sampling()?;
        self.check_heaps()?;
        self.check_times()?;
        if self.no_startup && self.no_running {
            return Err(conflict(
                "--no-startup",
                "--no-running",
                "no process would be left to profile",
            ));
        }
        self.companions.validate()?;
        self.check_template()
    }

    fn check_targets(&self) -> Result<(), Failure> {
        let all = heapprofd_of(&self.template).is_some_and(|h| h.all());
        if self.targets.is_empty() && !all {
            return Err(no_target());
        }
        check_target_names(&self.targets)?;
        if self.no_running && self.targets.names.is_empty() && self.targets.packages.is_empty() {
            return Err(conflict(
                "--no-running",
                "-p",
                "a PID refers to a process that is already running",
            ));
        }
        Ok(())
    }

    fn check_sampling(&self) -> Result<(), Failure> {
        if self.interval_bytes == 0 {
            return Err(bad_value(
                "--interval",
                0,
                "heapprofd rejects it, and on Android 10 and 11 it crashes the target",
                "use `4096`, or `1` to record every allocation (slow)",
            ));
        }
        let shmem = self.shmem_bytes;
        let why = if shmem < MIN_SHMEM {
            "shared memory needs at least 8 KiB"
        } else if shmem > MAX_SHMEM {
            "heapprofd cannot create that much shared memory"
        } else if !shmem.is_power_of_two() {
            "shared memory must be a power of two; otherwise heapprofd records nothing"
        } else {
            return Ok(());
        };
        // Both limits are powers of two.
        let near = shmem.clamp(MIN_SHMEM, MAX_SHMEM).next_power_of_two();
        Err(bad_value(
            "--shmem-size",
            shmem,
            why,
            format!("use {near} ({})", ByteSize(near)),
        ))
    }

    fn check_heaps(&self) -> Result<(), Failure> {
        if self.all_heaps && !self.heaps.is_empty() {
            return Err(conflict(
                "--all-heaps",
                "--heaps",
                "`--all-heaps` already includes every heap",
            ));
        }
        if self.heaps.len() > MAX_HEAPS {
            return Err(bad_value(
                "--heaps",
                format!("with {} names", self.heaps.len()),
                "heapprofd supports at most 64 heaps",
                "use `--all-heaps`",
            ));
        }
        for heap in &self.heaps {
            if heap.is_empty() || heap.len() > MAX_HEAP_NAME_BYTES || heap.contains('\0') {
                return Err(bad_value(
                    "--heaps",
                    format!("{heap:?}"),
                    "a heap name has 1 to 63 bytes",
                    "use a name such as `libc.malloc` or `com.android.art`",
                ));
            }
        }
        Ok(())
    }

    fn check_times(&self) -> Result<(), Failure> {
        if let Some(duration) = self.duration
            && duration > MAX_DURATION
        {
            return Err(bad_value(
                "--duration",
                format!("{} s", duration.as_secs()),
                "the tracing service rejects sessions longer than 7 days",
                "omit it to record until stopped",
            ));
        }
        let (ms, us) = (Duration::from_millis(1), Duration::from_micros(1));
        for (option, value, unit) in [
            ("--duration", self.duration, ms),
            ("--continuous-dump", self.continuous, ms),
            ("--block-client-timeout", self.block_client_timeout, us),
        ] {
            value.map_or(Ok(()), |value| check_whole(option, value, unit))?;
        }
        Ok(())
    }

    fn check_template(&self) -> Result<(), Failure> {
        let Some(heapprofd) = heapprofd_of(&self.template) else {
            return Ok(());
        };
        if heapprofd.stream_allocations() {
            return Err(bad_value(
                "heapprofd.stream_allocations",
                true,
                "a stream of single allocations is not a heap profile, and no tool can read it",
                "omit it",
            ));
        }
        let intervals = &heapprofd.heap_sampling_intervals;
        if !intervals.is_empty() && (intervals.len() != self.heaps.len() || intervals.contains(&0))
        {
            return Err(bad_value(
                "heapprofd.heap_sampling_intervals",
                format!("{intervals:?}"),
                "heapprofd needs one interval above 0 for each heap; otherwise it records nothing",
                "give one interval for each name in `--heaps`",
            ));
        }
        Ok(())
    }

    /// Adapts this spec to a device of API level `sdk`. Unsupported options are dropped with a
    /// notice if the recording still matches the request.
    ///
    /// # Errors
    /// Returns an error if the device would record something else than requested.
    pub fn for_sdk(&self, sdk: u32) -> Result<(CaptureSpec, Vec<String>), Failure> {
        let mut spec = self.clone();
        let mut notices = Vec::new();
        let refuse = |option, needs, why| Err(too_old(option, needs, sdk, why));
        if sdk < 29 {
            return refuse("a native heap profile", 10, "it does not have heapprofd");
        }
        if spec.tracks(Some(sdk)) {
            notices.extend(spec.leave_to_runtime());
        } else if spec.java_allocations.is_some() {
            if sdk < HEAPS_SDK {
                return refuse(
                    "--java-allocations=heap",
                    12,
                    "its runtime does not report allocations to heapprofd; for a debuggable \
                          app, use --java-allocations=tracking",
                );
            }
            notices.push(HEAP.to_owned());
        }
        if sdk < HEAPS_SDK {
            if spec.heaps == [MALLOC_HEAP] {
                spec.heaps.clear();
            }
            for (is_given, option) in [
                (!spec.heaps.is_empty(), "--heaps"),
                (spec.all_heaps, "--all-heaps"),
            ] {
                if is_given {
                    return refuse(option, 12, "only libc.malloc would be recorded");
                }
            }
        }
        if sdk == 30 && spec.dump_at_max {
            notices.push(
                "Android 11 counts incorrectly with `--dump-at-max`; the figures are approximate"
                    .to_owned(),
            );
        }
        if sdk < 30 {
            if spec.dump_at_max {
                return refuse(
                    "--dump-at-max",
                    11,
                    "the dump would show the end of the recording, not the maximum",
                );
            }
            for (flag, name) in [
                (&mut spec.no_startup, "--no-startup"),
                (&mut spec.no_running, "--no-running"),
                (&mut spec.disable_fork_teardown, "--disable-fork-teardown"),
            ] {
                if std::mem::take(flag) {
                    notices.push(ignored(name));
                }
            }
            if spec.block_client_timeout.take().is_some() {
                notices.push(ignored("--block-client-timeout"));
            }
        }
        Ok((spec, notices))
    }

    /// Removes heapprofd's part, because the runtime tracks Java allocations.
    fn leave_to_runtime(&mut self) -> Vec<String> {
        self.java_allocations = Some(JavaAllocations::Tracking);
        self.heaps.clear();
        let mut notices = vec![TRACKING.to_owned()];
        let continuous = self.continuous.take().is_some();
        for (given, option) in [
            (continuous, "--continuous-dump"),
            (std::mem::take(&mut self.dump_at_max), "--dump-at-max"),
        ] {
            if given {
                notices.push(format!(
                    "{option} has no effect if the runtime tracks allocations"
                ));
            }
        }
        notices
    }

    /// Returns notices about values that are allowed but probably unintended.
    pub fn notices(&self) -> Vec<String> {
        let mut notices = Vec::new();
        if self.interval_bytes < 512 {
            notices.push(format!(
                "an interval of {} bytes slows down the target and might overflow its buffer; \
                     the default is 4096",
                self.interval_bytes
            ));
        }
        if self.interval_bytes > MAX_USUAL_INTERVAL_BYTES {
            notices.push(format!(
                "with this interval, one allocation is sampled for about {} of allocations; the \
                     default is 4.0 KiB",
                ByteSize(self.interval_bytes)
            ));
        }
        if !self.block_client && self.block_client_timeout.is_some() {
            notices
                .push("`--block-client-timeout` has no effect with `--no-block-client`".to_owned());
        }
        let is_short = |period| period < Duration::from_millis(500);
        if self.continuous.is_some_and(is_short) {
            let notice = "dumps at a period below 500 ms might take longer than the period";
            notices.push(notice.to_owned());
        }
        for heap in self.heaps.iter().map(String::as_str) {
            let meant = match heap {
                "native" => Some(MALLOC_HEAP),
                _ => meant_heap(heap),
            };
            if let Some(near) = meant {
                notices.push(format!("`--heaps {heap}`: did you mean {near}?"));
            }
        }
        for name in &self.targets.names {
            if name.contains('@') {
                notices.push(format!(
                    "heapprofd compares process names only up to the first @: {name}"
                ));
            }
        }
        if let Some(heapprofd) = heapprofd_of(&self.template)
            && heapprofd.adaptive_sampling_shmem_threshold() > 0
            && heapprofd.adaptive_sampling_max_sampling_interval_bytes() == 0
        {
            notices.push(
                "adaptive sampling without adaptive_sampling_max_sampling_interval_bytes might \
                 double the interval until nothing is sampled"
                    .to_owned(),
            );
        }
        notices
    }
}

fn ignored(option: &'static str) -> String {
    format!("{option} has no effect before Android 11")
}
