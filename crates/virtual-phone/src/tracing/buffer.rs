//! The path of packets: a producer's shared memory, the service's buffer, the file.

use prost::Message as _;

use heaptap_proto::perfetto as pb;

/// Bytes that a producer holds before a flush.
const PRODUCER_HOLDS: usize = 128 << 10;

/// One buffer of a session.
#[derive(Debug)]
pub(super) struct TraceBuffer {
    capacity: usize,
    ring: bool,
    /// Packets written by a producer, but not yet copied by the service.
    held: Vec<Vec<u8>>,
    held_bytes: usize,
    /// Packets in the service's buffer.
    stored: std::collections::VecDeque<Vec<u8>>,
    stored_bytes: usize,
    pub(super) written: u64,
    pub(super) overwritten: u64,
    pub(super) discarded: u64,
    pub(super) read: u64,
}

/// Frames a packet as a field of `Trace`.
pub(super) fn framed(packet: &pb::TracePacket) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(packet.encoded_len() + 6);
    bytes.push(0x0a);
    // Encoding into a growing Vec cannot fail.
    let _ = packet.encode_length_delimited(&mut bytes);
    bytes
}

impl TraceBuffer {
    pub(super) fn new(config: &pb::trace_config::BufferConfig) -> Self {
        use pb::trace_config::buffer_config::FillPolicy;
        TraceBuffer {
            capacity: config.size_kb() as usize * 1024,
            ring: config.fill_policy() != FillPolicy::Discard,
            held: Vec::new(),
            held_bytes: 0,
            stored: Default::default(),
            stored_bytes: 0,
            written: 0,
            overwritten: 0,
            discarded: 0,
            read: 0,
        }
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Writes a packet of a producer.
    pub(super) fn write(&mut self, packet: &pb::TracePacket) {
        let bytes = framed(packet);
        self.held_bytes += bytes.len();
        self.held.push(bytes);
        if self.held_bytes > PRODUCER_HOLDS {
            self.flush();
        }
    }

    /// Copies the producers' packets into the service's buffer.
    pub(super) fn flush(&mut self) {
        self.held_bytes = 0;
        for packet in std::mem::take(&mut self.held) {
            self.store(packet);
        }
    }

    fn store(&mut self, packet: Vec<u8>) {
        self.written += packet.len() as u64;
        if !self.ring && self.stored_bytes + packet.len() > self.capacity {
            self.discarded += 1;
            // After the first discarded packet, the buffer discards all further ones.
            self.capacity = self.stored_bytes;
            return;
        }
        self.stored_bytes += packet.len();
        self.stored.push_back(packet);
        while self.stored_bytes > self.capacity {
            let Some(lost) = self.stored.pop_front() else {
                break;
            };
            self.stored_bytes -= lost.len();
            self.overwritten += lost.len() as u64;
        }
    }

    /// Takes all packets out of the buffer.
    pub(super) fn drain(&mut self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.stored_bytes);
        for packet in self.stored.drain(..) {
            all.extend_from_slice(&packet);
        }
        self.stored_bytes = 0;
        self.read += all.len() as u64;
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(size_kb: u32, discard: bool) -> TraceBuffer {
        let mut config = pb::trace_config::BufferConfig {
            size_kb: Some(size_kb),
            ..Default::default()
        };
        if discard {
            config.set_fill_policy(pb::trace_config::buffer_config::FillPolicy::Discard);
        }
        TraceBuffer::new(&config)
    }

    fn packet(n: u64) -> pb::TracePacket {
        pb::TracePacket {
            timestamp: Some(n),
            synchronization_marker: Some(vec![0; 400]),
            ..Default::default()
        }
    }

    #[test]
    fn a_ring_keeps_the_newest_and_discard_the_oldest() {
        for (discard, first) in [(false, 9), (true, 1)] {
            let mut buffer = buffer(1, discard);
            (1..=10).for_each(|n| buffer.write(&packet(n)));
            assert!(
                buffer.drain().is_empty(),
                "nothing is the service's before a flush"
            );
            buffer.flush();
            let trace = pb::Trace::decode(buffer.drain().as_slice()).expect("our own bytes");
            assert_eq!(trace.packet.len(), 2);
            assert_eq!(trace.packet[0].timestamp, Some(first));
        }
    }
}
