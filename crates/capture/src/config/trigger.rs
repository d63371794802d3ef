//! Sessions that the tracing service starts at a trigger of Perfetto.

use std::time::Duration;

use heaptap_proto::perfetto::TraceConfig;
use heaptap_proto::perfetto::trace_config::TriggerConfig;
use heaptap_proto::perfetto::trace_config::trigger_config::{Trigger, TriggerMode};
use prost::Message as _;

use super::sources;

/// Returns the config of a session that starts at the trigger of this name, ends `stop_delay_ms`
/// later, and ends without data if the trigger is not activated within `wait`.
pub(super) fn start_at(name: &str, stop_delay_ms: u32, wait: Duration) -> TriggerConfig {
    let mut config = TriggerConfig {
        triggers: vec![Trigger {
            name: Some(name.to_owned()),
            stop_delay_ms: Some(stop_delay_ms),
            ..Trigger::default()
        }],
        trigger_timeout_ms: Some(sources::millis(wait)),
        ..TriggerConfig::default()
    };
    config.set_trigger_mode(TriggerMode::StartTracing);
    config
}

/// Returns the bytes of a TraceConfig that records nothing but the trigger of this name, so that
/// its client writes its first byte when the trigger is activated.
pub fn trigger_config(name: &str, wait: Duration) -> Vec<u8> {
    let mut config = TraceConfig::default();
    config.buffers.push(sources::ring(64));
    // Without options, it writes nothing.
    config
        .data_sources
        .push(sources::source("linux.sys_stats", 0));
    config.trigger_config = Some(start_at(name, 1, wait));
    config.encode_to_vec()
}
