//! All of `TraceStats` (35): every counter of the tracing service with its name in Perfetto's
//! `stats` table. `metadata` reads those that affect messages.

use super::wire::Fields;
use heaptap_model::profile::ServiceCounter;

/// `TraceStats`, by field number.
const OF_SERVICE: [(u32, &str); 12] = [
    (2, "traced_producers_connected"),
    (3, "traced_producers_seen"),
    (4, "traced_data_sources_registered"),
    (5, "traced_data_sources_seen"),
    (6, "traced_tracing_sessions"),
    (7, "traced_total_buffers"),
    (8, "traced_chunks_discarded"),
    (9, "traced_patches_discarded"),
    (10, "traced_invalid_packets"),
    (12, "traced_flushes_requested"),
    (13, "traced_flushes_succeeded"),
    (14, "traced_flushes_failed"),
];

/// `TraceStats.BufferStats`, by field number.
const OF_BUFFER: [(u32, &str); 19] = [
    (1, "traced_buf_bytes_written"),
    (2, "traced_buf_chunks_written"),
    (3, "traced_buf_chunks_overwritten"),
    (4, "traced_buf_write_wrap_count"),
    (5, "traced_buf_patches_succeeded"),
    (6, "traced_buf_patches_failed"),
    (7, "traced_buf_readaheads_succeeded"),
    (8, "traced_buf_readaheads_failed"),
    (9, "traced_buf_abi_violations"),
    (10, "traced_buf_chunks_rewritten"),
    (11, "traced_buf_chunks_committed_out_of_order"),
    (12, "traced_buf_buffer_size"),
    (13, "traced_buf_bytes_overwritten"),
    (14, "traced_buf_bytes_read"),
    (15, "traced_buf_padding_bytes_written"),
    (16, "traced_buf_padding_bytes_cleared"),
    (17, "traced_buf_chunks_read"),
    (18, "traced_buf_chunks_discarded"),
    (19, "traced_buf_trace_writer_packet_loss"),
];

/// Field of `final_flush_outcome`, and its values.
const FINAL_FLUSH: u32 = 15;
const SUCCEEDED: u64 = 1;
const FAILED: u64 = 2;

/// Maximum number of buffers, which is more than any session has.
const MAX_BUFFERS: u32 = 1024;
/// Maximum number of counters.
const MAX_COUNTERS: usize = MAX_BUFFERS as usize * OF_BUFFER.len();

/// Reads all counters that are not zero. Counters before damage are kept.
pub(super) fn read(message: &[u8]) -> Vec<ServiceCounter> {
    let mut counters = Vec::new();
    let mut buffers = 0..MAX_BUFFERS;
    let mut fields = Fields::new(message);
    while let Ok(Some((number, value))) = fields.next() {
        if counters.len() >= MAX_COUNTERS {
            break;
        }
        if number == 1 {
            let Some(buffer) = buffers.next() else {
                continue;
            };
            let mut fields = Fields::new(value.bytes());
            while let Ok(Some((number, value))) = fields.next() {
                if counters.len() >= MAX_COUNTERS {
                    break;
                }
                let known = OF_BUFFER.iter().find(|(field, _)| *field == number);
                counters.extend(known.map(|(_, name)| ServiceCounter {
                    name,
                    buffer: Some(buffer),
                    value: value.number(),
                }));
            }
            continue;
        }
        let known = OF_SERVICE.iter().find(|(field, _)| *field == number);
        let of_flush = match (number, value.number()) {
            (FINAL_FLUSH, SUCCEEDED) => Some(("traced_final_flush_succeeded", 1)),
            (FINAL_FLUSH, FAILED) => Some(("traced_final_flush_failed", 1)),
            _ => None,
        };
        let known = known.map(|(_, name)| (*name, value.number()));
        counters.extend(known.or(of_flush).map(|(name, value)| ServiceCounter {
            name,
            buffer: None,
            value,
        }));
    }
    counters.retain(|counter| counter.value != 0);
    counters
}
