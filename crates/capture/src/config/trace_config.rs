//! Conversion of a `CaptureSpec` into a `TraceConfig`. If a value differs from Perfetto's heap_profile,
//! the comment on the constant has the reason.

use prost::Message as _;

use super::sources::{
    HEAPPROFD, PACKAGES_LIST, PROCESS_STATS, heapprofd_in, is, millis, ring, source,
};
use super::spec::{CaptureSpec, JavaAllocations};
use super::targets::Targets;
use super::text;
use heaptap_base::error::Failure;
use heaptap_proto::perfetto::heapprofd_config::ContinuousDumpConfig;
use heaptap_proto::perfetto::process_stats_config::Quirks;
use heaptap_proto::perfetto::trace_config::trigger_config::TriggerMode;
use heaptap_proto::perfetto::trace_config::{ProducerConfig, WriteFlushMode};
use heaptap_proto::perfetto::{
    HeapprofdConfig, PackagesListConfig, ProcessStatsConfig, TraceConfig,
};

/// Period at which the service drains its buffers into the file. heap_profile uses 5 s, in which
/// a large dump overwrites its own beginning.
const FILE_WRITE_PERIOD_MS: u32 = 1000;
/// Longest period at which producers hand over their data: the maximum loss on a killed perfetto or
/// a reboot. heap_profile uses 7 days.
const FLUSH_PERIOD_MS: u32 = 5000;
/// As heap_profile: a busy heapprofd needs time.
const FLUSH_TIMEOUT_MS: u32 = 30_000;
/// heap_profile uses 5 s, after which processes not yet dumped are dropped.
const STOP_TIMEOUT_MS: u32 = 60_000;
/// Twice heap_profile's, and drained five times as often.
const BUFFER_KB: u64 = 128 << 10;
const MIN_BUFFER_KB: u64 = 62 << 10;
/// Package and process lists have their own buffer, so that a dump cannot overwrite them.
const LISTS_BUFFER_KB: u32 = 4 << 10;
/// Space that a recording leaves free on the device.
const RESERVE_BYTES: u64 = 128 << 20;
const MIN_FILE_BYTES: u64 = 1 << 20;

/// Device facts that affect the config.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceLimits {
    /// Free bytes in the directory of the trace.
    pub free_bytes: Option<u64>,
    /// Memory of the device, bytes.
    pub memory_bytes: Option<u64>,
}

/// An encoded config, ready to send.
#[derive(Debug, Clone, PartialEq)]
pub struct EncodedConfig {
    pub config: TraceConfig,
    /// Its serialized form, for `perfetto -c -`.
    pub bytes: Vec<u8>,
    /// Its text form, for `perfetto --txt -c -`.
    pub text: String,
}

/// Field that the text parser of perfetto refuses before v54. Only newer releases need it.
const NEWER: &str = "write_flush_mode: WRITE_FLUSH_DISABLED\n";

impl EncodedConfig {
    /// Returns how long the session waits for a trigger that ends it, or starts and ends it, in ms;
    /// `None` if triggers do not end it.
    pub fn trigger_timeout_ms(&self) -> Option<u64> {
        let triggers = self.config.trigger_config.as_ref()?;
        let ends = [TriggerMode::StartTracing, TriggerMode::StopTracing];
        let is_end = ends.contains(&triggers.trigger_mode());
        is_end.then(|| triggers.trigger_timeout_ms().into())
    }

    /// Returns the config with a text that the trace repeats: the name of a producer that does not
    /// exist, which has no effect.
    #[must_use]
    pub fn marked(mut self, mark: String) -> EncodedConfig {
        self.config.producers.push(ProducerConfig {
            producer_name: Some(mark),
        });
        self.config.into()
    }

    /// Returns what perfetto v54 reads from the text with the newer field.
    #[cfg(test)]
    pub(super) fn parsed_text(&self) -> TraceConfig {
        let text = self.text.replace(&format!("# {NEWER}"), NEWER);
        text::parse_text(&text).unwrap()
    }
}

impl From<TraceConfig> for EncodedConfig {
    fn from(config: TraceConfig) -> Self {
        let comment = format!("# perfetto v54 and newer:\n# {NEWER}");
        EncodedConfig {
            bytes: config.encode_to_vec(),
            text: text::print_text(&config).replace(NEWER, &comment),
            config,
        }
    }
}

impl CaptureSpec {
    /// Encodes the config for a device.
    ///
    /// # Errors
    /// Returns an error if [`CaptureSpec::validate`] rejects the spec.
    pub fn encode(&self, device: &DeviceLimits) -> Result<EncodedConfig, Failure> {
        self.validate()?;
        Ok(self.trace_config(device).into())
    }

    fn trace_config(&self, device: &DeviceLimits) -> TraceConfig {
        let mut config = self.template.clone();
        // Lists and companion data have buffers of their own.
        let heaps = self.java_allocations != Some(JavaAllocations::Tracking);
        if heaps && config.buffers.is_empty() {
            config.buffers.push(ring(buffer_kb(device.memory_bytes)));
        }
        if !heaps {
            // The trace keeps the companion data.
            config.data_sources.retain(|source| !is(HEAPPROFD)(source));
        } else {
            let heapprofd = heapprofd_in(&mut config);
            self.write_to(heapprofd);
            heapprofd.process_cmdline = self.targets.process_names();
        }
        put_lists(&mut config, self.packages_list, self.process_names);
        self.companions.put(&mut config);
        config.duration_ms = self.duration.map(millis);
        // Without it the trace stays in memory until the end, and a crash loses it.
        config.write_into_file = Some(true);
        config
            .file_write_period_ms
            .get_or_insert(FILE_WRITE_PERIOD_MS);
        if config.write_flush_mode.is_none() {
            // Since v54 the default, AUTO, ignores the flush period: perfetto 58 then flushes every
            // 5 s, whatever the write period. ENABLED flushes before each write and waits for the
            // flush, up to the flush timeout while heapprofd is busy dumping; meanwhile the buffer
            // overflows. Flushing with our own period keeps the two apart, and older releases do
            // not support anything else.
            config.set_write_flush_mode(WriteFlushMode::WriteFlushDisabled);
            config.flush_period_ms.get_or_insert(self.flush_period_ms());
        }
        config.flush_timeout_ms.get_or_insert(FLUSH_TIMEOUT_MS);
        config
            .data_source_stop_timeout_ms
            .get_or_insert(STOP_TIMEOUT_MS);
        if config.max_file_size_bytes.is_none() {
            config.max_file_size_bytes = device.free_bytes.map(max_file_bytes);
        }
        config
    }

    /// Returns the flush period: dumps reach the file no later than the next one, so that a crash of
    /// perfetto does not lose more than two.
    fn flush_period_ms(&self) -> u32 {
        let between_dumps = self
            .continuous
            .and_then(|every| u32::try_from(every.as_millis()).ok());
        between_dumps
            .unwrap_or(FLUSH_PERIOD_MS)
            .clamp(1000, FLUSH_PERIOD_MS)
    }

    /// Writes the fields of this spec into a heapprofd config and keeps the rest.
    pub(super) fn write_to(&self, heapprofd: &mut HeapprofdConfig) {
        let on = |flag: bool| flag.then_some(true);
        heapprofd.sampling_interval_bytes = Some(self.interval_bytes);
        heapprofd.process_cmdline.clone_from(&self.targets.names);
        heapprofd.pid = self.targets.pids.iter().map(|p| u64::from(*p)).collect();
        match self.continuous {
            None => heapprofd.continuous_dump_config = None,
            Some(period) => {
                let dumps: &mut ContinuousDumpConfig =
                    heapprofd.continuous_dump_config.get_or_insert_default();
                dumps.dump_interval_ms = Some(millis(period));
                dumps.dump_phase_ms.get_or_insert(0);
            }
        }
        heapprofd.heaps.clone_from(&self.heaps);
        heapprofd.all_heaps = on(self.all_heaps);
        heapprofd.shmem_size_bytes = Some(self.shmem_bytes);
        heapprofd.block_client = on(self.block_client);
        heapprofd.block_client_timeout_us = self
            .block_client_timeout
            .map(|t| u32::try_from(t.as_micros()).unwrap_or(u32::MAX));
        heapprofd.no_startup = on(self.no_startup);
        heapprofd.no_running = on(self.no_running);
        heapprofd.dump_at_max = on(self.dump_at_max);
        heapprofd.disable_fork_teardown = on(self.disable_fork_teardown);
    }

    /// Reads the fields of a heapprofd config. Missing fields mean Perfetto's default.
    pub(super) fn read_from(&mut self, heapprofd: &HeapprofdConfig) {
        use std::time::Duration;
        self.targets = Targets {
            names: heapprofd.process_cmdline.clone(),
            pids: heapprofd
                .pid
                .iter()
                .map(|p| u32::try_from(*p).unwrap_or(0))
                .collect(),
            packages: std::mem::take(&mut self.targets.packages),
        };
        self.interval_bytes = heapprofd
            .sampling_interval_bytes
            .unwrap_or(CaptureSpec::default().interval_bytes);
        self.continuous = heapprofd
            .continuous_dump_config
            .as_ref()
            .map(ContinuousDumpConfig::dump_interval_ms)
            .filter(|ms| *ms > 0)
            .map(|ms| Duration::from_millis(ms.into()));
        self.heaps.clone_from(&heapprofd.heaps);
        self.all_heaps = heapprofd.all_heaps();
        // heapprofd uses its default for 0, which is the same.
        self.shmem_bytes = match heapprofd.shmem_size_bytes() {
            0 => CaptureSpec::default().shmem_bytes,
            bytes => bytes,
        };
        self.block_client = heapprofd.block_client();
        self.block_client_timeout = heapprofd
            .block_client_timeout_us
            .filter(|us| *us > 0)
            .map(|us| Duration::from_micros(us.into()));
        self.no_startup = heapprofd.no_startup();
        self.no_running = heapprofd.no_running();
        self.dump_at_max = heapprofd.dump_at_max();
        self.disable_fork_teardown = heapprofd.disable_fork_teardown();
    }
}

/// Adds the requested lists that are missing, with a buffer of their own: they identify the
/// processes of a trace.
pub(super) fn put_lists(config: &mut TraceConfig, packages: bool, processes: bool) {
    let packages = packages && !config.data_sources.iter().any(is(PACKAGES_LIST));
    let processes = processes && !config.data_sources.iter().any(is(PROCESS_STATS));
    if !packages && !processes {
        return;
    }
    let buffer = u32::try_from(config.buffers.len()).unwrap_or(u32::MAX);
    config.buffers.push(ring(LISTS_BUFFER_KB));
    if packages {
        let mut source = source(PACKAGES_LIST, buffer);
        source.config.get_or_insert_default().packages_list_config =
            Some(PackagesListConfig::default());
        config.data_sources.push(source);
    }
    if processes {
        let mut source = source(PROCESS_STATS, buffer);
        let mut stats = ProcessStatsConfig {
            scan_all_processes_on_start: Some(true),
            ..ProcessStatsConfig::default()
        };
        // Only names are needed; threads seen later belong to other data sources.
        stats.push_quirks(Quirks::DisableOnDemand);
        source.config.get_or_insert_default().process_stats_config = Some(stats);
        config.data_sources.push(source);
    }
}

/// Returns the buffer size, KiB. A ring buffer stays in memory as a whole, so a small device
/// gets a smaller one.
fn buffer_kb(memory_bytes: Option<u64>) -> u32 {
    let kb = memory_bytes.map_or(BUFFER_KB, |bytes| {
        (bytes / 1024 / 24).clamp(MIN_BUFFER_KB, 2 * BUFFER_KB)
    });
    u32::try_from(kb).unwrap_or(u32::MAX)
}

/// Returns the free space minus a reserve, but at least half of it.
pub(super) fn max_file_bytes(free: u64) -> u64 {
    free.saturating_sub(RESERVE_BYTES)
        .max(free / 2)
        .max(MIN_FILE_BYTES)
}
