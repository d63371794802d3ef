//! The TraceConfig passed to perfetto: bytes or text, and the service's checks.

use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage};

use crate::spec::PhoneSpec;
use heaptap_proto::{DESCRIPTORS, perfetto as pb};

/// Decodes the binary form; skips fields that this Perfetto does not know.
pub(crate) fn decode(bytes: &[u8]) -> Result<pb::TraceConfig, String> {
    pb::TraceConfig::decode(bytes).map_err(|e| e.to_string())
}

/// Fields of TraceConfig and HeapprofdConfig added after Android 10, with the Android release whose
/// perfetto first supports each.
const NEWER: [(u32, &str); 6] = [
    (
        11,
        "unique_session_name data_source_stop_timeout_ms no_startup no_running dump_at_max \
         block_client_timeout_us disable_fork_teardown min_anonymous_memory_kb",
    ),
    (
        12,
        "heaps all_heaps heap_sampling_intervals exclude_heaps target_installed_by \
         adaptive_sampling_shmem_threshold",
    ),
    (13, "bugreport_score"),
    (14, "prefer_suspend_clock_for_duration"),
    (15, "session_semaphores"),
    (17, "exclusive_prio write_flush_mode"),
];

/// Parses the text form. As in perfetto, a field that this phone's version does not support is an
/// error.
pub(crate) fn parse_text(spec: &PhoneSpec, text: &str) -> Result<pb::TraceConfig, String> {
    let newer = NEWER.iter();
    for (since, field) in newer.flat_map(|(since, of)| of.split(' ').map(move |f| (*since, f))) {
        let newer = spec.android < since && spec.perfetto.is_none_or(|v| v < 54);
        let used = text.match_indices(field).find(|(at, _)| {
            let mut lines = text[..*at].rsplit('\n');
            if lines.next().is_some_and(|line| line.contains('#')) {
                return false;
            }
            let bytes = text.as_bytes();
            let word = |c: Option<&u8>| c.is_some_and(|c| c.is_ascii_alphanumeric() || *c == b'_');
            let before = at.checked_sub(1).and_then(|i| bytes.get(i));
            !word(before) && !word(bytes.get(at + field.len()))
        });
        if newer && let Some((at, _)) = used {
            let line = text[..at].matches('\n').count() + 1;
            return Err(format!(
                "-:{line}:1 error: No field named \"{field}\" in proto TraceConfig"
            ));
        }
    }
    let pool = DescriptorPool::decode(DESCRIPTORS).map_err(|e| e.to_string())?;
    let message = pool
        .get_message_by_name("perfetto.protos.TraceConfig")
        .ok_or("no TraceConfig")?;
    let parsed = DynamicMessage::parse_text_format(message, text)
        .map_err(|e| format!("-:1:1 error: {e}"))?;
    decode(&parsed.encode_to_vec())
}

/// Returns the reason of the tracing service to reject a config.
pub(crate) fn rejection(spec: &PhoneSpec, config: &pb::TraceConfig) -> Option<String> {
    if config.buffers.is_empty() {
        return Some("Invalid TraceConfig: no buffers".to_owned());
    }
    if config.buffers.len() > 128 {
        return Some("Too many buffers configured".to_owned());
    }
    if config.buffers.iter().any(|b| b.size_kb() == 0) {
        return Some("Invalid buffer size 0".to_owned());
    }
    let targets = config.data_sources.iter().filter_map(|d| d.config.as_ref());
    let misses = |c: &pb::DataSourceConfig| c.target_buffer() as usize >= config.buffers.len();
    if targets.clone().any(misses) {
        return Some("Data source specified an invalid target_buffer".to_owned());
    }
    if config.duration_ms() > 7 * 24 * 3_600_000 {
        return Some("Requested too long trace (> 7 days)".to_owned());
    }
    if config.enable_extra_guardrails() {
        if spec.android <= 11 && targets.clone().any(|c| c.name() == "android.heapprofd") {
            return Some("Data source is not allowed with extra guardrails".to_owned());
        }
        let total: u64 = config.buffers.iter().map(|b| u64::from(b.size_kb())).sum();
        if config.duration_ms() == 0 || total > 128 << 10 {
            return Some("Configuration violates the extra guardrails".to_owned());
        }
    }
    use pb::trace_config::trigger_config::TriggerMode;
    if let Some(triggers) = &config.trigger_config {
        let mode = triggers.trigger_mode();
        if triggers.trigger_timeout_ms() == 0 && mode != TriggerMode::Unspecified {
            return Some("Triggers need a timeout".to_owned());
        }
        if config.write_into_file()
            && matches!(mode, TriggerMode::StopTracing | TriggerMode::CloneSnapshot)
        {
            return Some("Cannot use write_into_file with STOP_TRACING triggers".to_owned());
        }
        if config.duration_ms() > 0 && mode == TriggerMode::StartTracing {
            let text = "duration_ms was set, this must not be set for traces with triggers";
            return Some(text.to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bytes_say_the_same_and_old_phones_refuse_new_fields() {
        let text = "buffers { size_kb: 1024 }\ndata_sources { config { name: \"android.heapprofd\" \
            heapprofd_config { sampling_interval_bytes: 4096 process_cmdline: \"a\" heaps: \"libc.malloc\" } } }";
        let new = PhoneSpec::default();
        let config = parse_text(&new, text).expect("valid");
        assert_eq!(decode(&config.encode_to_vec()), Ok(config.clone()));
        assert_eq!(rejection(&new, &config), None);
        let old = PhoneSpec {
            android: 11,
            ..PhoneSpec::default()
        };
        assert!(
            parse_text(&old, text)
                .expect_err("too new")
                .contains("heaps")
        );
        let comment = format!("# heaps\n{}", text.replace(" heaps: \"libc.malloc\"", ""));
        assert!(parse_text(&old, &comment).is_ok());
        assert!(parse_text(&new, "nonsense: 1").is_err());
        assert!(rejection(&new, &pb::TraceConfig::default()).is_some());
        // A period that the service raises does not hide what it refuses.
        let triggered = parse_text(
            &new,
            &format!(
                "{text}\nwrite_into_file: true file_write_period_ms: 50 \
                 trigger_config {{ trigger_mode: STOP_TRACING trigger_timeout_ms: 1000 }}"
            ),
        );
        let why = rejection(&new, &triggered.expect("valid"));
        assert!(why.is_some_and(|why| why.contains("write_into_file")));
    }
}
