//! Data sources and buffers of a TraceConfig: names, lookup, construction.

use std::time::Duration;

use heaptap_proto::perfetto::trace_config::buffer_config::FillPolicy;
use heaptap_proto::perfetto::trace_config::{BufferConfig, DataSource};
use heaptap_proto::perfetto::{DataSourceConfig, HeapprofdConfig, TraceConfig};

/// The data source that samples native heaps.
pub const HEAPPROFD: &str = "android.heapprofd";
pub(crate) const PACKAGES_LIST: &str = "android.packages_list";
pub(super) const PROCESS_STATS: &str = "linux.process_stats";

/// Returns the heapprofd part of a config, if there is one.
pub(super) fn heapprofd_of(config: &TraceConfig) -> Option<&HeapprofdConfig> {
    let source = config.data_sources.iter().find(|s| is(HEAPPROFD)(s))?;
    source.config.as_ref()?.heapprofd_config.as_ref()
}

/// Returns the heapprofd part of a config, and inserts it if it is missing.
pub(super) fn heapprofd_in(config: &mut TraceConfig) -> &mut HeapprofdConfig {
    let at = match config.data_sources.iter().position(is(HEAPPROFD)) {
        Some(at) => at,
        None => {
            config.data_sources.insert(0, source(HEAPPROFD, 0));
            0
        }
    };
    let config = config.data_sources[at].config.get_or_insert_default();
    config.heapprofd_config.get_or_insert_default()
}

pub(super) fn is(name: &'static str) -> impl Fn(&DataSource) -> bool {
    move |source| source.config.as_ref().is_some_and(|c| c.name() == name)
}

pub(crate) fn source(name: &str, buffer: u32) -> DataSource {
    DataSource {
        config: Some(DataSourceConfig {
            name: Some(name.to_owned()),
            target_buffer: Some(buffer),
            ..DataSourceConfig::default()
        }),
        ..DataSource::default()
    }
}

/// Returns a time for a field of whole milliseconds.
pub(super) fn millis(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

/// Creates a ring buffer. The service keeps draining it; a discarding buffer would stop for good
/// when first full.
pub(crate) fn ring(size_kb: u32) -> BufferConfig {
    let mut buffer = BufferConfig {
        size_kb: Some(size_kb),
        ..BufferConfig::default()
    };
    buffer.set_fill_policy(FillPolicy::RingBuffer);
    buffer
}
