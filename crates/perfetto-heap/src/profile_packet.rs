//! `ProfilePacket` (trace_packet.profile_packet, field 37) as heapprofd writes it: the chain it
//! belongs to, the header of each process's part, the samples. Only the wire format; `series` sums
//! the figures.

use super::wire::{self, Fields, WireError, each_message};
use heaptap_model::profile::DumpFlags;

/// Fields of a profile packet for the first reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Outline {
    /// Packet number on its sequence; absent in versions without it.
    pub(super) index: Option<u64>,
    /// Another packet of the same dump follows.
    pub(super) continued: bool,
    /// The packet has its own tables (Android 10).
    pub(super) has_tables: bool,
    /// The packet has a part of a dump.
    pub(super) has_dumps: bool,
}

impl Outline {
    /// Reads the outline. Fields before damage are kept.
    pub(super) fn read(message: &[u8]) -> (Outline, Result<(), WireError>) {
        let mut outline = Outline::default();
        let outcome = wire::each(message, |number, value| match number {
            1..=4 => outline.has_tables = true,
            5 => outline.has_dumps = true,
            6 => outline.continued = value.flag(),
            7 => outline.index = Some(value.number()),
            _ => {}
        });
        (outline, outcome)
    }
}

/// The header of `ProcessHeapSamples`, repeated in every packet of a chain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) pid: u64,
    pub(super) heap: String,
    pub(super) timestamp: u64,
    pub(super) start_timestamp: Option<u64>,
    pub(super) flags: DumpFlags,
    pub(super) sampling_interval_bytes: u64,
    pub(super) orig_sampling_interval_bytes: u64,
    pub(super) unwinding_errors: u64,
    pub(super) heap_samples: u64,
    pub(super) unwinding_time_us: u64,
    pub(super) client_spinlock_blocked_us: u64,
}

impl Header {
    /// Reads the header and skips samples. Fields before damage are kept.
    pub(super) fn read(message: &[u8]) -> (Header, Result<(), WireError>) {
        let mut header = Header::default();
        let outcome = header.fill(message);
        (header, outcome)
    }

    fn fill(&mut self, message: &[u8]) -> Result<(), WireError> {
        let flags = &mut self.flags;
        let mut fields = Fields::new(message);
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => self.pid = value.number(),
                3 => flags.from_startup = value.flag(),
                4 => flags.rejected_concurrent = value.flag(),
                5 => {
                    let mut stats = Fields::new(value.bytes());
                    while let Some((number, value)) = stats.next()? {
                        match number {
                            1 => self.unwinding_errors = value.number(),
                            2 => self.heap_samples = value.number(),
                            5 => self.unwinding_time_us = value.number(),
                            6 => self.client_spinlock_blocked_us = value.number(),
                            _ => {}
                        }
                    }
                }
                6 => flags.disconnected = value.flag(),
                7 => flags.buffer_overran = value.flag(),
                8 => flags.buffer_corrupted = value.flag(),
                9 => self.timestamp = value.number(),
                10 => flags.hit_guardrail = value.flag(),
                11 => self.heap = value.text(),
                12 => self.sampling_interval_bytes = value.number(),
                13 => self.orig_sampling_interval_bytes = value.number(),
                14 => flags.client_error = value.number() as u32,
                15 => self.start_timestamp = Some(value.number()),
                _ => {}
            }
        }
        Ok(())
    }
}

/// `HeapSample`: one callstack's cumulative figures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) callstack: u64,
    pub(super) allocated: u64,
    pub(super) freed: u64,
    pub(super) allocations: u64,
    pub(super) frees: u64,
    /// Present with `dump_at_max` only.
    pub(super) max: Option<u64>,
    pub(super) max_count: u64,
}

/// Calls `each` for the samples of a `ProcessHeapSamples`.
///
/// # Errors
/// Returns an error if the message is damaged, after passing all intact samples before the damage.
#[inline]
pub(super) fn each_sample(message: &[u8], mut each: impl FnMut(Sample)) -> Result<(), WireError> {
    let mut outcome = Ok(());
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        if number == 2 {
            match read_sample(value.bytes()) {
                Ok(sample) => each(sample),
                Err(error) => outcome = Err(error),
            }
        }
    }
    outcome
}

/// Returns whether a `ProcessHeapSamples` has a sample.
pub(super) fn has_samples(message: &[u8]) -> bool {
    let mut fields = Fields::new(message);
    while let Ok(Some((number, _))) = fields.next() {
        if number == 2 {
            return true;
        }
    }
    false
}

#[inline]
fn read_sample(message: &[u8]) -> Result<Sample, WireError> {
    let mut sample = Sample::default();
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => sample.callstack = value.number(),
            2 => sample.allocated = value.number(),
            3 => sample.freed = value.number(),
            5 => sample.allocations = value.number(),
            6 => sample.frees = value.number(),
            8 => sample.max = Some(value.number()),
            9 => sample.max_count = value.number(),
            _ => {}
        }
    }
    Ok(sample)
}

/// Calls `each` for the `ProcessHeapSamples` of a profile packet.
///
/// # Errors
/// Returns an error if the packet is damaged, after passing all intact parts before the damage.
pub(super) fn each_part<'a>(
    message: &'a [u8],
    mut each: impl FnMut(&'a [u8]),
) -> Result<(), WireError> {
    each_message(message, 5, |part| {
        each(part);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_outline_header_and_samples() {
        let part = [
            0x08, 7, // pid 7
            0x12, 8, 0x08, 3, 0x10, 100, 0x18, 40, 0x28, 2, // a sample
            0x5a, 1, b'h', // heap "h"
            0x38, 1, // buffer_overran
            0x2a, 2, 0x10, 9, // stats: heap_samples 9
        ];
        let mut packet = vec![0x2a, part.len() as u8];
        packet.extend(part);
        packet.extend([0x30, 1, 0x38, 5]);
        let (outline, ok) = Outline::read(&packet);
        assert_eq!(ok, Ok(()));
        assert_eq!(outline.index, Some(5));
        assert!(outline.continued && outline.has_dumps && !outline.has_tables);

        let mut parts = Vec::new();
        each_part(&packet, |part| parts.push(part)).unwrap();
        let (header, ok) = Header::read(parts[0]);
        assert_eq!(ok, Ok(()));
        assert_eq!((header.pid, header.heap.as_str()), (7, "h"));
        assert!(header.flags.buffer_overran);
        assert_eq!(header.heap_samples, 9);
        let mut samples = Vec::new();
        each_sample(parts[0], |sample| samples.push(sample)).unwrap();
        assert_eq!(samples.len(), 1);
        assert_eq!(samples[0].allocated, 100);
        assert_eq!(samples[0].max, None);
    }

    #[test]
    fn a_damaged_sample_is_not_taken_and_the_next_is() {
        let part = [0x12, 3, 0x08, 1, 0x00, 0x12, 2, 0x08, 2];
        let mut samples = Vec::new();
        let outcome = each_sample(&part, |sample| samples.push(sample.callstack));
        assert!(outcome.is_err());
        assert_eq!(samples, [2]);
    }
}
