//! Config of a recording of local programs: a traced of its own without traced_probes, in which
//! each process has its own heapprofd.

use std::time::Duration;

use super::companion_sources::CompanionSources;
use super::sources::heapprofd_in;
use super::spec::CaptureSpec;
use super::targets::Targets;
use super::trace_config::{DeviceLimits, EncodedConfig};
use heaptap_base::error::Failure;

/// Time limit of flushing. A heapprofd that dies meanwhile delays the end by all of it.
const FLUSH_TIMEOUT_MS: u32 = 5000;
/// Maximum time to block a program for a full buffer: heapprofd can hang, and the program with it.
const BLOCK_TIMEOUT: Duration = Duration::from_secs(1);
/// Sampling interval at which nothing is sampled, bytes.
const NEVER: u64 = 1_000_000_000_000;

impl CaptureSpec {
    /// Encodes the config for programs of this host: all processes that connect, until stopped.
    ///
    /// # Errors
    /// Returns an error if [`CaptureSpec::validate`] rejects the spec.
    pub fn encode_for_host(&self) -> Result<EncodedConfig, Failure> {
        let mut spec = self.clone();
        spec.targets = Targets::default();
        // heaptap ends the session, after the program or at its time limit.
        spec.duration = None;
        // Their data sources belong to traced_probes.
        spec.packages_list = false;
        spec.process_names = false;
        spec.companions = CompanionSources::default();
        if spec.block_client {
            spec.block_client_timeout.get_or_insert(BLOCK_TIMEOUT);
        }
        let heapprofd = heapprofd_in(&mut spec.template);
        heapprofd.all = Some(true);
        spec.template
            .flush_timeout_ms
            .get_or_insert(FLUSH_TIMEOUT_MS);
        // With it, traced rejects `all`.
        spec.template.enable_extra_guardrails = None;
        spec.encode(&DeviceLimits::default())
    }

    /// Encodes the config of a session that matches every process and samples nothing.
    ///
    /// # Errors
    /// As [`CaptureSpec::encode_for_host`].
    pub fn encode_release() -> Result<EncodedConfig, Failure> {
        let spec = CaptureSpec {
            interval_bytes: NEVER,
            ..CaptureSpec::default()
        };
        spec.encode_for_host()
    }
}

#[cfg(test)]
mod tests {
    use super::super::sources::heapprofd_of;
    use super::*;

    #[test]
    fn the_session_matches_all_and_ends_by_signal_alone() {
        let spec = CaptureSpec {
            duration: Some(Duration::from_secs(3)),
            continuous: Some(Duration::from_secs(1)),
            ..CaptureSpec::default()
        };
        let encoded = spec.encode_for_host().unwrap();
        let config = &encoded.config;
        let heapprofd = heapprofd_of(config).unwrap();
        assert!(heapprofd.all() && heapprofd.block_client());
        assert_eq!(heapprofd.block_client_timeout_us, Some(1_000_000));
        assert_eq!(
            heapprofd.continuous_dump_config.unwrap().dump_interval_ms,
            Some(1000)
        );
        assert_eq!(config.duration_ms, None);
        assert_eq!(config.write_into_file, Some(true));
        assert_eq!(config.flush_timeout_ms, Some(5000));
        assert_eq!(config.data_sources.len(), 1, "{}", encoded.text);
        let release = CaptureSpec::encode_release().unwrap();
        let heapprofd = heapprofd_of(&release.config).unwrap();
        assert_eq!(
            (heapprofd.all(), heapprofd.sampling_interval_bytes),
            (true, Some(NEVER))
        );
    }
}
