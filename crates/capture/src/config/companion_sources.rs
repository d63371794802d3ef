//! Perfetto's own companion data in the same trace: resident memory of processes, the device's
//! memory, garbage collections of the Java runtime. Owns the config and the buffers of these
//! sources.
//!
//! Each source has its own buffer, so that sources and dumps cannot overwrite each other. A
//! source that a template already has, and that records the same, is left unchanged.

use std::time::Duration;

use super::error::{bad_value, check_millis};
use super::sources::{self, PROCESS_STATS};
use heaptap_base::error::Failure;
use heaptap_proto::perfetto::process_stats_config::Quirks;
use heaptap_proto::perfetto::trace_config::DataSource;
use heaptap_proto::perfetto::{
    DataSourceConfig, FtraceConfig, MeminfoCounters, ProcessStatsConfig, SysStatsConfig,
    TraceConfig,
};

const SYS_STATS: &str = "linux.sys_stats";
const FTRACE: &str = "linux.ftrace";
/// atrace category in which ART reports its collections and its heap size.
const DALVIK: &str = "dalvik";

/// A sample of 500 processes has some 20 KiB, and the service drains each second.
const PROCESS_STATS_BUFFER_KB: u32 = 4 << 10;
const SYS_STATS_BUFFER_KB: u32 = 512;
/// Every process with a Java heap reports each collection, and each time its heap grows by a
/// thread's next buffer.
const FTRACE_BUFFER_KB: u32 = 16 << 10;

/// Minimum periods of traced_probes.
const LEAST_PROCESS_PERIOD: Duration = Duration::from_millis(100);
const LEAST_SYSTEM_PERIOD: Duration = Duration::from_millis(10);
/// Maximum period of traced_probes.
const MAX_PERIOD: Duration = Duration::from_secs(3600);

const COUNTERS: [MeminfoCounters; 5] = [
    MeminfoCounters::MeminfoMemTotal,
    MeminfoCounters::MeminfoMemFree,
    MeminfoCounters::MeminfoMemAvailable,
    MeminfoCounters::MeminfoSwapTotal,
    MeminfoCounters::MeminfoSwapFree,
];

/// Companion data to record in the same trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CompanionSources {
    /// Period of the resident memory and swap of every process (`linux.process_stats`).
    pub processes: Option<Duration>,
    /// Period of the device's free and available memory (`linux.sys_stats`).
    pub system: Option<Duration>,
    /// Record each collection of each Java heap, and the heap's size (`linux.ftrace`,
    /// atrace category `dalvik`).
    pub collections: bool,
}

impl CompanionSources {
    /// Default period.
    pub const PERIOD: Duration = Duration::from_secs(1);

    /// Returns whether no companion data is recorded.
    pub fn is_empty(&self) -> bool {
        *self == CompanionSources::default()
    }

    pub(super) fn validate(&self) -> Result<(), Failure> {
        for (option, period, least) in [
            ("the process period", self.processes, LEAST_PROCESS_PERIOD),
            ("the system period", self.system, LEAST_SYSTEM_PERIOD),
        ] {
            let Some(period) = period else { continue };
            check_millis(option, period)?;
            if period < least || period > MAX_PERIOD {
                let why = format!("the period must be between {least:?} and one hour");
                return Err(bad_value(option, format!("{period:?}"), why, "use `1s`"));
            }
        }
        Ok(())
    }

    /// Adds the requested sources that are missing.
    pub(super) fn put(&self, config: &mut TraceConfig) {
        if let Some(period) = self.processes
            && !config.data_sources.iter().any(polls_processes)
        {
            let source = add(config, PROCESS_STATS, PROCESS_STATS_BUFFER_KB);
            let mut stats = ProcessStatsConfig {
                proc_stats_poll_ms: Some(sources::millis(period)),
                ..ProcessStatsConfig::default()
            };
            // The name list has its own source; names of processes that start later come with
            // their first figures.
            stats.push_quirks(Quirks::DisableInitialDump);
            stats.push_quirks(Quirks::DisableOnDemand);
            source.config.get_or_insert_default().process_stats_config = Some(stats);
        }
        if let Some(period) = self.system
            && !config.data_sources.iter().any(polls_memory)
        {
            let source = add(config, SYS_STATS, SYS_STATS_BUFFER_KB);
            let mut stats = SysStatsConfig {
                meminfo_period_ms: Some(sources::millis(period)),
                ..SysStatsConfig::default()
            };
            for counter in COUNTERS {
                stats.push_meminfo_counters(counter);
            }
            source.config.get_or_insert_default().sys_stats_config = Some(stats);
        }
        if self.collections && !config.data_sources.iter().any(traces_dalvik) {
            let source = add(config, FTRACE, FTRACE_BUFFER_KB);
            source.config.get_or_insert_default().ftrace_config = Some(FtraceConfig {
                // atrace categories imply it; if it is explicit, it does not need their table.
                ftrace_events: vec!["ftrace/print".to_owned()],
                atrace_categories: vec![DALVIK.to_owned()],
                ..FtraceConfig::default()
            });
        }
    }
}

fn add<'a>(config: &'a mut TraceConfig, name: &str, buffer_kb: u32) -> &'a mut DataSource {
    let buffer = u32::try_from(config.buffers.len()).unwrap_or(u32::MAX);
    config.buffers.push(sources::ring(buffer_kb));
    let at = config.data_sources.len();
    config.data_sources.push(sources::source(name, buffer));
    &mut config.data_sources[at]
}

fn config_of<'a>(source: &'a DataSource, name: &'static str) -> Option<&'a DataSourceConfig> {
    let config = source.config.as_ref();
    config.filter(|_| sources::is(name)(source))
}

fn polls_processes(source: &DataSource) -> bool {
    let config = config_of(source, PROCESS_STATS);
    let stats = config.and_then(|config| config.process_stats_config.as_ref());
    stats.is_some_and(|stats| stats.proc_stats_poll_ms() > 0)
}

fn polls_memory(source: &DataSource) -> bool {
    let config = config_of(source, SYS_STATS);
    let stats = config.and_then(|config| config.sys_stats_config.as_ref());
    stats.is_some_and(|stats| {
        let has = |counter: &MeminfoCounters| stats.meminfo_counters().any(|c| c == *counter);
        // An empty list means all.
        let has_all = stats.meminfo_counters.is_empty() || COUNTERS.iter().all(has);
        has_all && stats.meminfo_period_ms() > 0
    })
}

fn traces_dalvik(source: &DataSource) -> bool {
    let config = config_of(source, FTRACE);
    let ftrace = config.and_then(|config| config.ftrace_config.as_ref());
    ftrace.is_some_and(|ftrace| {
        let mut categories = ftrace.atrace_categories.iter();
        // A filter might exclude the needed events.
        categories.any(|c| c == DALVIK || c == "*") && ftrace.print_filter.is_none()
    })
}

#[cfg(test)]
mod tests {
    use super::super::{CaptureSpec, DeviceLimits, Targets, parse_text};
    use super::*;

    fn spec(companions: CompanionSources, template: &str) -> CaptureSpec {
        CaptureSpec {
            targets: Targets {
                names: vec!["com.example.app".to_owned()],
                ..Targets::default()
            },
            companions,
            template: parse_text(template).unwrap(),
            ..CaptureSpec::default()
        }
    }

    fn all() -> CompanionSources {
        CompanionSources {
            processes: Some(CompanionSources::PERIOD),
            system: Some(CompanionSources::PERIOD),
            collections: true,
        }
    }

    /// Returns the names of the sources, each with its buffer.
    fn sources(spec: &CaptureSpec) -> Vec<(String, u32)> {
        let config = spec.encode(&DeviceLimits::default()).unwrap().config;
        let sources = config
            .data_sources
            .iter()
            .map(|s| s.config.as_ref().unwrap());
        let sources: Vec<_> = sources
            .map(|c| (c.name().to_owned(), c.target_buffer()))
            .collect();
        assert!(
            sources
                .iter()
                .all(|s| (s.1 as usize) < config.buffers.len())
        );
        sources
    }

    #[test]
    fn each_source_has_a_buffer_of_its_own_and_heapprofd_is_as_without() {
        let with = spec(all(), "");
        let without = spec(CompanionSources::default(), "");
        let named = |name: &str, buffer| (name.to_owned(), buffer);
        assert_eq!(
            sources(&with),
            [
                named("android.heapprofd", 0),
                named("android.packages_list", 1),
                named("linux.process_stats", 1),
                named("linux.process_stats", 2),
                named("linux.sys_stats", 3),
                named("linux.ftrace", 4),
            ]
        );
        let encoded = |spec: &CaptureSpec| spec.encode(&DeviceLimits::default()).unwrap();
        let (with, without) = (encoded(&with), encoded(&without));
        let at = without
            .text
            .find("duration_ms")
            .unwrap_or(without.text.len());
        assert!(at > 0);
        assert_eq!(with.config.data_sources[..3], without.config.data_sources);
        assert_eq!(with.config.buffers[..2], without.config.buffers);
        assert_eq!(with.parsed_text(), with.config);
        for line in [
            "proc_stats_poll_ms: 1000",
            "meminfo_period_ms: 1000",
            "meminfo_counters: MEMINFO_MEM_AVAILABLE",
            "atrace_categories: \"dalvik\"",
            "ftrace_events: \"ftrace/print\"",
        ] {
            assert!(
                with.text.lines().any(|l| l.trim() == line),
                "{line}\n{}",
                with.text
            );
            assert!(!without.text.contains(line));
        }
    }

    #[test]
    fn what_a_template_records_is_not_recorded_twice() {
        let template = "
            buffers { size_kb: 65536 }
            buffers { size_kb: 4096 }
            data_sources { config { name: \"linux.process_stats\" target_buffer: 1
                process_stats_config { scan_all_processes_on_start: true proc_stats_poll_ms: 500 } } }
            data_sources { config { name: \"linux.sys_stats\" target_buffer: 1
                sys_stats_config { meminfo_period_ms: 250 } } }
            data_sources { config { name: \"linux.ftrace\" target_buffer: 1
                ftrace_config { atrace_categories: \"dalvik\" atrace_categories: \"am\"
                    buffer_size_kb: 8192 } } }";
        let count =
            |name: &str, spec: &CaptureSpec| sources(spec).iter().filter(|s| s.0 == name).count();
        let same = spec(all(), template);
        for name in ["linux.process_stats", "linux.sys_stats", "linux.ftrace"] {
            assert_eq!(count(name, &same), 1, "{name}");
        }
        // A source that records something else stays, and ours is added.
        let other = template
            .replace("proc_stats_poll_ms: 500", "")
            .replace(
                "meminfo_period_ms: 250",
                "meminfo_period_ms: 250 meminfo_counters: MEMINFO_CACHED",
            )
            .replace("atrace_categories: \"dalvik\"", "");
        let other = spec(all(), &other);
        for name in ["linux.process_stats", "linux.sys_stats", "linux.ftrace"] {
            assert_eq!(count(name, &other), 2, "{name}");
        }
    }

    #[test]
    fn periods_that_the_phone_does_not_take_are_refused() {
        let of = |millis| CompanionSources {
            processes: Some(Duration::from_millis(millis)),
            ..CompanionSources::default()
        };
        assert!(spec(of(100), "").validate().is_ok());
        for millis in [0, 99, 3_600_001] {
            let error = spec(of(millis), "").validate().unwrap_err().to_string();
            assert!(error.contains("period"), "{error}");
        }
    }
}
