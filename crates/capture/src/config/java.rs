//! Spec of a Java heap dump, and its TraceConfig, which follows Perfetto's java_heap_dump option
//! by option. If a value differs from that tool's, the comment on the constant has the reason.

use std::time::Duration;

use super::error::{bad_value, check_millis, conflict, no_target, too_old};
use super::sources;
use super::targets::{Targets, check_target_names};
use super::trace_config::{self, DeviceLimits, EncodedConfig};
use super::trigger;
use heaptap_base::error::Failure;
use heaptap_base::units::ByteSize;
use heaptap_proto::perfetto::trace_config::WriteFlushMode;
use heaptap_proto::perfetto::{JavaHprofConfig, TraceConfig, java_hprof_config};

/// The data source that dumps Java heaps.
pub const JAVA_HPROF: &str = "android.java_hprof";
/// The data source that dumps a heap when an app runs out of memory.
pub const JAVA_HPROF_OOM: &str = "android.java_hprof.oom";
/// Trigger that the runtime sends for an OutOfMemoryError.
const OOM_TRIGGER: &str = "com.android.telemetry.art-outofmemory";
/// As java_heap_dump: delay from the trigger to the end; the session waits for the dump.
const OOM_STOP_DELAY_MS: u32 = 500;

/// First API level whose tracing service waits until a dump is written.
const WAITS_SDK: u32 = 31;
/// First API levels with the source, and with the one for OutOfMemoryErrors.
const JAVA_SDK: u32 = 30;
const OOM_SDK: u32 = 34;

/// As java_heap_dump: the session can end at once, because it waits for the dumps.
const DURATION_MS: u32 = 1000;
/// As java_heap_dump: maximum waiting time for the dumps.
const STOP_TIMEOUT_MS: u32 = 100_000;
/// As java_heap_dump, if nothing waits for the dump (Android 11).
const BLIND_DURATION_MS: u32 = 20_000;
/// Maximum waiting time of the service for a trigger.
const MAX_TRIGGER_TIMEOUT: Duration = Duration::from_secs(7 * 24 * 3600);

/// As java_heap_dump.
const BUFFER_BYTES: u64 = 256 << 20;
/// A ring buffer stays in memory as a whole, so a small device gets a smaller one.
const LEAST_BUFFER_BYTES: u64 = 64 << 20;
/// Limit of the field; no device has more memory to spare.
const MAX_BUFFER_BYTES: u64 = 4 << 30;
/// The service drains the buffer into the file with this period. java_heap_dump does not have a
/// file to write into: there the buffer must hold the whole dump, and the rest is cut off
/// silently. An app writes its heap at 100 MB/s at most, so the buffer never fills.
const FILE_WRITE_PERIOD_MS: u32 = 250;
const FLUSH_TIMEOUT_MS: u32 = 30_000;

/// Request for Java heap dumps, independent of its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JavaSpec {
    pub targets: Targets,
    /// Size of the buffer between app and file, bytes; `None` derives it from the device's memory.
    pub buffer_bytes: Option<u64>,
    /// Period of repeated dumps, until stopped.
    pub continuous: Option<Duration>,
    /// Record the memory mappings of the process.
    pub dump_smaps: bool,
    /// The session ends with the dumps; `None` derives it from the API level.
    pub stop_when_done: Option<bool>,
    /// Time limits for a dump.
    pub timeout_factor: TimeoutFactor,
    /// Record the package list.
    pub packages_list: bool,
    /// Waiting time for an OutOfMemoryError that triggers the dump, instead of a dump now.
    pub wait_for_oom: Option<Duration>,
}

/// Factor on java_heap_dump's time limits for a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeoutFactor(pub u32);

impl Default for JavaSpec {
    /// java_heap_dump's defaults.
    fn default() -> Self {
        JavaSpec {
            targets: Targets::default(),
            buffer_bytes: None,
            continuous: None,
            dump_smaps: false,
            stop_when_done: None,
            timeout_factor: TimeoutFactor(1),
            packages_list: true,
            wait_for_oom: None,
        }
    }
}

impl JavaSpec {
    /// Rejects specs that would fail or record nothing.
    ///
    /// # Errors
    /// Returns an error for the first broken rule, with its reason.
    pub fn validate(&self) -> Result<(), Failure> {
        if self.wait_for_oom.is_some() {
            self.check_oom()?;
        }
        if self.targets.is_empty() {
            return Err(no_target());
        }
        check_target_names(&self.targets)?;
        if let Some(bytes) = self.buffer_bytes
            && !(1024..=MAX_BUFFER_BYTES).contains(&bytes)
        {
            return Err(bad_value(
                "--buffer-size",
                bytes,
                "a buffer must have 1 KiB to 4 GiB",
                format!("use the default of {}", ByteSize(BUFFER_BYTES)),
            ));
        }
        if let Some(period) = self.continuous {
            check_millis("--continuous-dump", period)?;
        }
        Ok(())
    }

    fn check_oom(&self) -> Result<(), Failure> {
        let conflict = |second, why| Err(conflict("--wait-for-oom", second, why));
        if !self.targets.pids.is_empty() {
            return conflict(
                "--pid",
                "OutOfMemoryErrors are matched by process name; -n '*' matches every app",
            );
        }
        if self.continuous.is_some() {
            return conflict("--continuous-dump", "an app runs out of memory only once");
        }
        if self.dump_smaps {
            return conflict(
                "--dump-smaps",
                "the app itself writes that dump, without smaps",
            );
        }
        if self.stop_when_done == Some(false) {
            return conflict(
                "--no-stop-when-done",
                "the session always ends with the dump",
            );
        }
        if self.targets.names.is_empty() && self.targets.packages.is_empty() {
            return Err(bad_value(
                "--wait-for-oom",
                "",
                "it needs a process name",
                "name one with `-n`, or use `-n '*'` for every app",
            ));
        }
        match self.wait_for_oom {
            Some(wait) if wait.is_zero() || wait > MAX_TRIGGER_TIMEOUT => Err(bad_value(
                "--oom-wait-seconds",
                wait.as_secs(),
                "the tracing service waits 1 second to 7 days",
                "give the time in seconds, such as `60`",
            )),
            _ => Ok(()),
        }
    }

    /// Adapts this spec to a device of API level `sdk`, with notices about its limits.
    ///
    /// # Errors
    /// Returns an error if the device would record something else than requested.
    pub fn for_sdk(&self, sdk: u32) -> Result<(JavaSpec, Vec<String>), Failure> {
        let refuse = |option, needs, why| Err(too_old(option, needs, sdk, why));
        if sdk < JAVA_SDK {
            return refuse("a Java heap dump", 11, "it does not have this data source");
        }
        if self.wait_for_oom.is_some() && sdk < OOM_SDK {
            return refuse(
                "--wait-for-oom",
                14,
                "its runtime does not report OutOfMemoryErrors",
            );
        }
        let mut spec = self.clone();
        let mut notices = Vec::new();
        if sdk < WAITS_SDK && self.stop_when_done == Some(true) {
            notices.push(
                "`--stop-when-done` has no effect before Android 12, which does not report when a \
                 dump is done"
                    .to_owned(),
            );
        }
        spec.stop_when_done = Some(self.stop_when_done.unwrap_or(true) && sdk >= WAITS_SDK);
        Ok((spec, notices))
    }

    /// Returns whether the session ends by itself when its dumps are complete.
    pub fn ends_when_done(&self) -> bool {
        self.continuous.is_none() && self.stop_when_done != Some(false)
    }

    /// Returns the duration that the session records by itself; `None` means until it is stopped.
    pub fn duration(&self) -> Option<Duration> {
        self.duration_ms()
            .map(|ms| Duration::from_millis(ms.into()))
    }

    fn duration_ms(&self) -> Option<u32> {
        match (self.continuous, self.wait_for_oom, self.ends_when_done()) {
            // Triggers do not allow a duration.
            (Some(_), _, _) | (_, Some(_), _) => None,
            // Processes that write dumps might start slowly.
            (_, _, true) => Some(DURATION_MS.saturating_mul(self.timeout_factor.0)),
            (_, _, false) => Some(BLIND_DURATION_MS.saturating_mul(self.timeout_factor.0)),
        }
    }

    /// Returns the buffer size on a device with this memory, bytes.
    pub fn buffer_on(&self, device: &DeviceLimits) -> u64 {
        self.buffer_bytes.unwrap_or_else(|| {
            device.memory_bytes.map_or(BUFFER_BYTES, |memory| {
                (memory / 16).clamp(LEAST_BUFFER_BYTES, BUFFER_BYTES)
            })
        })
    }

    /// Encodes the config for a device.
    ///
    /// # Errors
    /// Returns an error if [`JavaSpec::validate`] rejects the spec.
    pub fn encode(&self, device: &DeviceLimits) -> Result<EncodedConfig, Failure> {
        self.validate()?;
        Ok(self.trace_config(device).into())
    }

    fn trace_config(&self, device: &DeviceLimits) -> TraceConfig {
        let mut config = TraceConfig::default();
        let kb = self.buffer_on(device).div_ceil(1024);
        // The service keeps draining it; a discarding buffer would stop for good when first full.
        config
            .buffers
            .push(sources::ring(u32::try_from(kb).unwrap_or(u32::MAX)));
        let oom = self.wait_for_oom.is_some();
        let name = if oom { JAVA_HPROF_OOM } else { JAVA_HPROF };
        let mut source = sources::source(name, 0);
        source.config.get_or_insert_default().java_hprof_config = Some(self.java_hprof());
        config.data_sources.push(source);
        trace_config::put_lists(&mut config, self.packages_list, true);
        config.duration_ms = self.duration_ms();
        config.write_into_file = Some(true);
        config.file_write_period_ms = Some(FILE_WRITE_PERIOD_MS);
        // Writing does not need a flush: a heap comes in whole chunks, and the last one with
        // the end of the dump.
        config.set_write_flush_mode(WriteFlushMode::WriteFlushDisabled);
        config.flush_timeout_ms = Some(FLUSH_TIMEOUT_MS);
        if oom || self.stop_when_done != Some(false) || self.continuous.is_some() {
            config.data_source_stop_timeout_ms =
                Some(STOP_TIMEOUT_MS.saturating_mul(self.timeout_factor.0));
        }
        if let Some(wait) = self.wait_for_oom {
            config.trigger_config = Some(trigger::start_at(OOM_TRIGGER, OOM_STOP_DELAY_MS, wait));
        }
        config.max_file_size_bytes = device.free_bytes.map(trace_config::max_file_bytes);
        config
    }

    fn java_hprof(&self) -> JavaHprofConfig {
        JavaHprofConfig {
            process_cmdline: self.targets.process_names(),
            pid: self.targets.pids.iter().map(|p| u64::from(*p)).collect(),
            continuous_dump_config: self.continuous.map(|period| {
                java_hprof_config::ContinuousDumpConfig {
                    dump_phase_ms: Some(0),
                    dump_interval_ms: Some(sources::millis(period)),
                    ..Default::default()
                }
            }),
            dump_smaps: self.dump_smaps.then_some(true),
            ..JavaHprofConfig::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message as _;

    fn spec() -> JavaSpec {
        JavaSpec {
            targets: Targets {
                names: vec!["com.example.app".to_owned()],
                ..Targets::default()
            },
            ..JavaSpec::default()
        }
    }

    fn config(spec: &JavaSpec) -> TraceConfig {
        spec.encode(&DeviceLimits::default()).unwrap().config
    }

    #[test]
    fn the_defaults_are_java_heap_dumps_but_for_the_stream_into_the_file() {
        let encoded = spec().encode(&DeviceLimits::default()).unwrap();
        let expected = [
            "buffers {\n  size_kb: 262144\n  fill_policy: RING_BUFFER\n}\n",
            "buffers {\n  size_kb: 4096\n  fill_policy: RING_BUFFER\n}\n",
            "data_sources {\n  config {\n    name: \"android.java_hprof\"\n    target_buffer: 0\n",
            "    java_hprof_config {\n      process_cmdline: \"com.example.app\"\n    }\n  }\n}\n",
            "data_sources {\n  config {\n    name: \"android.packages_list\"\n    target_buffer: 1\n",
            "    packages_list_config {\n    }\n  }\n}\n",
            "data_sources {\n  config {\n    name: \"linux.process_stats\"\n    target_buffer: 1\n",
            "    process_stats_config {\n      quirks: DISABLE_ON_DEMAND\n",
            "      scan_all_processes_on_start: true\n    }\n  }\n}\n",
            "duration_ms: 1000\nwrite_into_file: true\nfile_write_period_ms: 250\n",
            "flush_timeout_ms: 30000\ndata_source_stop_timeout_ms: 100000\n",
            "# perfetto v54 and newer:\n# write_flush_mode: WRITE_FLUSH_DISABLED\n",
        ];
        assert_eq!(encoded.text, expected.concat());
        assert_eq!(encoded.parsed_text().encode_to_vec(), encoded.bytes);
    }

    #[test]
    fn continuous_dumps_go_on_until_stopped() {
        let every = JavaSpec {
            continuous: Some(Duration::from_millis(1500)),
            ..spec()
        };
        let config = config(&every);
        assert_eq!(config.duration_ms, None);
        let java = config.data_sources[0].config.as_ref().unwrap();
        let java = java.java_hprof_config.as_ref().unwrap();
        let dumps = java.continuous_dump_config.as_ref().unwrap();
        assert_eq!(
            (dumps.dump_phase_ms, dumps.dump_interval_ms),
            (Some(0), Some(1500))
        );
    }

    #[test]
    fn before_android_12_nothing_waits_for_a_dump() {
        let (old, notices) = spec().for_sdk(30).unwrap();
        assert!(notices.is_empty());
        let old = config(&old);
        assert_eq!(
            (old.duration_ms, old.data_source_stop_timeout_ms),
            (Some(20_000), None)
        );
        let asked = JavaSpec {
            stop_when_done: Some(true),
            ..spec()
        };
        assert!(asked.for_sdk(30).unwrap().1[0].contains("--stop-when-done"));
        let (new, _) = spec().for_sdk(31).unwrap();
        let new = config(&new);
        assert_eq!(
            (new.duration_ms, new.data_source_stop_timeout_ms),
            (Some(1000), Some(100_000))
        );
        let error = spec().for_sdk(29).unwrap_err();
        assert!(error.to_string().contains("needs Android 11"), "{error}");
    }

    #[test]
    fn an_out_of_memory_error_is_waited_for_by_name() {
        let oom = JavaSpec {
            wait_for_oom: Some(Duration::from_secs(90)),
            ..spec()
        };
        let text = oom.encode(&DeviceLimits::default()).unwrap().text;
        assert!(text.contains("android.java_hprof.oom"), "{text}");
        assert!(text.contains("trigger_timeout_ms: 90000"), "{text}");
        assert!(!text.contains("duration_ms: 1000"), "{text}");
        assert!(oom.for_sdk(34).is_ok());
        let error = oom.for_sdk(33).unwrap_err();
        assert!(error.to_string().contains("needs Android 14"), "{error}");
        let wrong = [
            JavaSpec {
                targets: Targets {
                    pids: vec![7],
                    ..Targets::default()
                },
                ..oom.clone()
            },
            JavaSpec {
                continuous: Some(Duration::from_secs(1)),
                ..oom.clone()
            },
            JavaSpec {
                dump_smaps: true,
                ..oom.clone()
            },
            JavaSpec {
                targets: Targets::default(),
                ..oom.clone()
            },
            JavaSpec {
                wait_for_oom: Some(Duration::ZERO),
                ..oom.clone()
            },
        ];
        for spec in wrong {
            assert!(spec.validate().is_err(), "{spec:?}");
        }
    }

    #[test]
    fn a_small_phone_gets_a_smaller_buffer_unless_one_was_asked_for() {
        let on = |spec: &JavaSpec, memory: u64| {
            spec.buffer_on(&DeviceLimits {
                memory_bytes: Some(memory),
                ..DeviceLimits::default()
            })
        };
        assert_eq!(on(&spec(), 2 << 30), 128 << 20);
        assert_eq!(on(&spec(), 512 << 20), 64 << 20);
        assert_eq!(on(&spec(), 16 << 30), 256 << 20);
        let asked = JavaSpec {
            buffer_bytes: Some(1 << 30),
            ..spec()
        };
        assert_eq!(on(&asked, 512 << 20), 1 << 30);
    }
}
