//! Series of packets, damaged and intact: the packets found and the loss counted.

use super::*;

/// A packet of `fill` bytes of payload on sequence 1.
fn packet(fill: usize) -> Vec<u8> {
    assert!(fill < 100);
    let mut out = vec![PACKET_TAG, fill as u8 + 4, 0x12, fill as u8];
    out.extend(std::iter::repeat_n(0xff, fill));
    out.extend([0x50, 1]);
    out
}

fn read(bytes: Vec<u8>) -> (Vec<Extent>, Health) {
    let mut health = Health::default();
    let window = Window::new(Box::new(io::Cursor::new(bytes))).unwrap();
    let mut packets = Packets::new(window);
    let mut found = Vec::new();
    while let Some(extent) = packets.next(&mut health).unwrap() {
        let body = packets.body(extent).unwrap();
        let whole = looks_real(body).0 || body.is_empty();
        if whole {
            found.push(extent);
        } else {
            packets.reject("no packet", &mut health).unwrap();
        }
    }
    (found, health)
}

#[test]
fn reads_packets_back_to_back() {
    let bytes = [packet(3), vec![PACKET_TAG, 0], packet(60)].concat();
    let (found, health) = read(bytes);
    assert_eq!(found.len(), 3);
    assert_eq!(health, Health::default());
}

#[test]
fn goes_on_behind_zeros_text_and_bad_lengths() {
    let long = vec![PACKET_TAG, 0xff, 0xff, 0xff, 0xff, 0x7f];
    for (garbage, name) in [
        (vec![0; 4096], "zeros"),
        (b"this is no trace at all\n".to_vec(), "text"),
        (long, "length"),
    ] {
        for (before, after) in [(0, 2), (2, 2), (2, 0)] {
            let bytes = [
                packet(9).repeat(before),
                garbage.clone(),
                packet(9).repeat(after),
            ]
            .concat();
            let (found, health) = read(bytes);
            assert_eq!(found.len(), before + after, "{name} {before} {after}");
            assert_eq!(health.damage_count, 1, "{name} {before} {after}");
            let damage = &health.damage[0];
            assert_eq!(damage.offset, (before * packet(9).len()) as u64);
            assert_eq!(damage.bytes, garbage.len() as u64);
        }
    }
}

#[test]
fn a_packet_damaged_inside_costs_only_itself() {
    let mut damaged = packet(9);
    damaged[3] = 90;
    let (found, health) = read([packet(5), damaged, packet(5), packet(5)].concat());
    assert_eq!(found.len(), 3);
    assert_eq!((health.damage_count, health.damage[0].bytes), (1, 15));
}

#[test]
fn a_cut_tail_is_said() {
    let bytes = [packet(9), packet(9)].concat();
    let size = packet(9).len();
    for cut in 1..size {
        let (found, health) = read(bytes[..size + cut].to_vec());
        assert_eq!(found.len(), 1, "{cut}");
        assert_eq!(health.damage_count, 0, "{cut}");
        assert_eq!(health.cut_bytes, cut as u64, "{cut}");
    }
}

#[test]
fn what_looks_like_packets_inside_a_cut_tail_is_none() {
    // A long packet of submessages, each of which could be a packet; two are adjacent.
    let inner = packet(9);
    let mut body = Vec::new();
    for _ in 0..40 {
        body.extend([0x12, 2 * inner.len() as u8]);
        body.extend(inner.repeat(2));
    }
    let mut long = vec![PACKET_TAG, 0x80, 0x80, 1];
    long.extend(&body);
    // Buckets of a histogram, of which many are adjacent.
    let buckets = [PACKET_TAG, 4, 8, 1, 24, 1].repeat(50);
    long.extend([0x12, 0xac, 2]);
    long.extend(&buckets);
    for cut in [30, 200, 500, 910, long.len() - 7] {
        let (found, health) = read([packet(5), long[..cut].to_vec()].concat());
        assert_eq!(found.len(), 1, "{cut}: {health:?}");
        assert_eq!((health.damage_count, health.cut_bytes), (0, cut as u64));
    }
}

#[test]
fn a_length_that_leads_behind_the_end_hides_no_packets() {
    let mut damaged = packet(60);
    damaged[1] = 0x7f;
    for after in 1..5 {
        let (found, health) = read([damaged.clone(), packet(9).repeat(after)].concat());
        assert_eq!((found.len(), health.damage_count), (after, 1), "{after}");
        assert_eq!(health.cut_bytes, 0, "{after}");
    }
    damaged.splice(1..2, [0xff, 0x7f]);
    for after in 1..5 {
        let (found, health) = read([damaged.clone(), packet(9).repeat(after)].concat());
        assert_eq!((found.len(), health.damage_count), (after, 1), "{after}");
    }
}

/// Returns the cost of reading such bytes: fields read in searches, and bytes loaded.
fn effort(bytes: Vec<u8>) -> (u64, u64) {
    let mut health = Health::default();
    let window = Window::new(Box::new(io::Cursor::new(bytes))).unwrap();
    let mut packets = Packets::new(window);
    while let Some(extent) = packets.next(&mut health).unwrap() {
        if !looks_real(packets.body(extent).unwrap()).0 {
            packets.reject("no packet", &mut health).unwrap();
        }
    }
    (packets.fields, packets.window.loaded)
}

fn assert_effort_is_bounded(shapes: &[(Vec<u8>, &str)]) {
    for (bytes, name) in shapes {
        let size = bytes.len() as u64;
        let (fields, loaded) = effort(bytes.clone());
        assert!(fields < 2 * (EFFORT + size), "{name}: {fields} fields");
        let most = BYTES_PER_FIELD * 2 * (EFFORT + size);
        assert!(loaded < most, "{name}: {loaded} bytes");
    }
}

#[test]
fn a_tail_is_not_looked_through_once_for_each_length_that_leads_behind_the_end() {
    let end = [PACKET_TAG, 2, 0x50, 1];
    let cut = [PACKET_TAG, 0xff, 0xff, 0x7f];
    // Two real packets and such a length: neither a series of packets nor its end.
    let rows = [end, end, cut].concat().repeat(8_000);
    // Like above, but the rest parses from each of them to the end of the file, and a series of
    // packets is near.
    let nested = [&[0x12, 16][..], &end, &end, &end, &cut].concat();
    let nested = nested.repeat(8_000);
    let shapes = [(rows, "rows"), (nested, "nested")];
    assert_effort_is_bounded(&shapes.map(|(bytes, name)| ([bytes, end.to_vec()].concat(), name)));
}

#[test]
fn long_candidates_close_together_are_not_loaded_one_by_one() {
    let size = 5 << 20;
    let (mut alone, mut followed, mut nested) = (Vec::new(), Vec::new(), Vec::new());
    while alone.len() < size {
        alone.extend([PACKET_TAG, 0xff, 0xff, 0xff, 0x01]);
    }
    // A real packet of 2 MB; the one after it is long and not a packet.
    while followed.len() < size {
        followed.extend([PACKET_TAG, 0x80, 0x80, 0x80, 0x01, 0x50, 1, 0x7a]);
        followed.extend([0xf8, 0xff, 0x7f]);
    }
    // Long packets of many fields that break off at their end, each inside the previous one.
    while nested.len() < size / 4 {
        nested.extend([0x7a, 12, PACKET_TAG, 2, 0x50, 1, PACKET_TAG, 2, 0x50, 1]);
        nested.extend([PACKET_TAG, 0x80, 0x80, 0x20]);
    }
    nested.extend([0xff; 32]);
    assert_effort_is_bounded(&[(alone, "alone"), (followed, "followed"), (nested, "nested")]);
}

#[test]
fn a_file_that_shrinks_while_read_only_ends() {
    /// A source that claims more than it has.
    struct Shrunk(io::Cursor<Vec<u8>>);
    impl Read for Shrunk {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.0.read(into)
        }
    }
    impl Seek for Shrunk {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            let at = self.0.seek(to)?;
            Ok(at
                + if matches!(to, SeekFrom::End(_)) {
                    999
                } else {
                    0
                })
        }
    }
    for kept in [0, 5, packet(9).len()] {
        let mut health = Health::default();
        let bytes = packet(9)[..kept].to_vec();
        let source = Shrunk(io::Cursor::new(bytes));
        let mut packets = Packets::new(Window::new(Box::new(source)).unwrap());
        let found = packets.next(&mut health).unwrap();
        assert_eq!(found.is_some(), kept == packet(9).len(), "{kept}");
        let told = health.damage_count + u64::from(health.cut_bytes > 0);
        assert_eq!(told, u64::from(found.is_none()), "{kept}");
        while packets.next(&mut health).unwrap().is_some() {}
    }
}

#[test]
fn fields_other_than_packet_are_skipped() {
    let bytes = [packet(3), vec![0x10, 7], packet(3)].concat();
    let (found, health) = read(bytes);
    assert_eq!((found.len(), health.damage_count), (2, 0));
}

#[test]
fn a_cut_packet_is_none() {
    let whole = packet(3);
    assert!(crate::has_packet(&whole));
    assert!(!crate::has_packet(&whole[..whole.len() - 1]));
    assert!(!crate::has_packet(&[]));
}
