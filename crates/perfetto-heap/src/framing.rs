//! A trace file as a row of packets, and how to go on after damage. Owns reading the file in
//! pieces; knows of a packet only as much as tells a real one from chance.
//!
//! A trace is `message Trace { repeated TracePacket packet = 1; }`: the byte 0x0a, a length,
//! the packet, and again. There is no checksum. After bytes that can't be read, the next packet
//! is looked for: a place from which a whole packet parses that carries a field every real one
//! carries, and behind which another begins or the file ends.

use super::wire::{Fields, Value, varint};
use heaptap_model::profile::Health;
use std::io::{self, Read, Seek, SeekFrom};

/// Where a trace is read from: a file, or bytes in memory.
pub trait Source: Read + Seek + Send {}
impl<T: Read + Seek + Send> Source for T {}

/// How much is read ahead.
const AHEAD: usize = 1 << 20;
/// A longer packet is taken for a damaged length: the service splits at half a megabyte.
const LONGEST_PACKET: u64 = 1 << 30;
/// A longer packet at the end is a damaged length, not one whose rest is still to come.
const LONGEST_TAIL: usize = 4 << 20;
/// So many packets one behind the other show that a file goes on.
const ROW: u32 = 3;
/// No field of a packet has a higher number.
const HIGHEST: u32 = 2048;
/// While looking for the next packet, longer ones are not considered.
const LONGEST_FOUND: u64 = 4 << 20;
/// Kept before what is asked for, so that going back to a packet's tag loads nothing.
const BEHIND: u64 = 64;
/// Once this many fields, and one for each byte of the file, were read in looking for packets,
/// the file is one made to keep us busy, and only short packets are considered.
const EFFORT: u64 = 16 << 20;
/// Bytes that take about as long to load as a field takes to read.
const BYTES_PER_FIELD: u64 = 64;
const SHORT: u64 = 512;
/// Tag of `Trace.packet`.
const PACKET_TAG: u8 = 0x0a;

/// A window on the bytes of a source, for forward reading with a little going back.
pub struct Window {
    source: Box<dyn Source>,
    buffer: Vec<u8>,
    start: u64,
    size: u64,
    /// Bytes read or moved so far.
    loaded: u64,
}

impl Window {
    /// Opens a source; asks it for its size.
    ///
    /// # Errors
    /// Where the source cannot seek.
    pub fn new(mut source: Box<dyn Source>) -> io::Result<Self> {
        let size = source.seek(SeekFrom::End(0))?;
        Ok(Window {
            source,
            buffer: Vec::new(),
            start: 0,
            size,
            loaded: 0,
        })
    }

    /// Size of the source in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// `want` bytes from `at`; fewer only where the source ends. Allocates no more than the
    /// source holds.
    ///
    /// # Errors
    /// Where the source can't be read.
    pub fn get(&mut self, at: u64, want: usize) -> io::Result<&[u8]> {
        let want = (want as u64).min(self.size.saturating_sub(at)) as usize;
        let end = self.start + self.buffer.len() as u64;
        if at < self.start || at + want as u64 > end {
            self.load(at, want)?;
        }
        // The file may have become shorter.
        let from = ((at - self.start) as usize).min(self.buffer.len());
        let to = (from + want).min(self.buffer.len());
        Ok(&self.buffer[from..to])
    }

    #[cold]
    fn load(&mut self, at: u64, want: usize) -> io::Result<()> {
        let end = self.start + self.buffer.len() as u64;
        let start = at.saturating_sub(BEHIND);
        if start >= self.start && start < end {
            self.buffer.drain(..(start - self.start) as usize);
        } else {
            self.buffer.clear();
        }
        self.start = start;
        let have = self.buffer.len();
        // However much is wanted, some more: or else the next step would load it all again.
        let goal = ((at - start) as usize + want)
            .saturating_add(AHEAD)
            .min(self.size.saturating_sub(start) as usize)
            .max(have);
        self.loaded += goal as u64;
        self.source.seek(SeekFrom::Start(start + have as u64))?;
        self.buffer.reserve_exact(goal - have);
        self.source
            .by_ref()
            .take((goal - have) as u64)
            .read_to_end(&mut self.buffer)?;
        if self.buffer.len() < goal {
            // The file became shorter while it was read.
            self.size = start + self.buffer.len() as u64;
        }
        Ok(())
    }
}

/// The packets of a window, from its start.
pub struct Packets {
    window: Window,
    pos: u64,
    /// Where the last packet's tag stood.
    last: u64,
    /// Its body.
    body: Extent,
    /// Fields read in looking for packets, and places looked at.
    fields: u64,
    /// Where bytes begin that are no packets up to the end.
    tail: Option<u64>,
}

/// Where a packet's body lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extent {
    /// Offset of the first byte of the body.
    pub offset: u64,
    /// Length of the body.
    pub length: usize,
}

enum Step {
    Packet(Extent),
    Skip(u64),
    /// A packet whose length leads behind the end.
    Cut(&'static str),
    Broken(&'static str),
}

impl Packets {
    /// Starts at the first byte.
    pub fn new(window: Window) -> Self {
        Packets {
            window,
            pos: 0,
            last: 0,
            body: Extent::default(),
            fields: 0,
            tail: None,
        }
    }

    /// Bytes up to where the source breaks off inside a packet, or ends.
    pub fn whole_bytes(&self) -> u64 {
        self.tail.unwrap_or(self.window.size())
    }

    /// Size of the source in bytes.
    pub fn size(&self) -> u64 {
        self.window.size()
    }

    /// Gives the window back.
    pub fn into_window(self) -> Window {
        self.window
    }

    /// The next packet; what lies before it and can't be read goes into `health`.
    ///
    /// # Errors
    /// Where the source can't be read.
    pub fn next(&mut self, health: &mut Health) -> io::Result<Option<Extent>> {
        loop {
            if self.pos >= self.window.size() {
                return Ok(None);
            }
            self.last = self.pos;
            match self.step()? {
                Step::Packet(extent) => {
                    self.pos = extent.offset + extent.length as u64;
                    self.body = extent;
                    return Ok(Some(extent));
                }
                Step::Skip(to) => self.pos = to,
                Step::Cut(_) if self.is_tail()? => {
                    health.cut_bytes = self.window.size() - self.pos;
                    self.tail = Some(self.pos);
                    self.pos = self.window.size();
                }
                Step::Cut(what) | Step::Broken(what) => self.recover(self.pos, what, health)?,
            }
        }
    }

    /// Whether what stands here is the beginning of a packet whose rest is not written yet or was
    /// cut off: it parses as far as it goes, and nothing in it is a row of packets. Messages in
    /// it that could be packets are none: two that touch are no row, and buckets of a histogram,
    /// whose count stands where packets have their writer's uid, have no sequence.
    ///
    /// Looks at all that follows, so a file in which many places are asked about is not believed:
    /// a whole trace breaks off once.
    fn is_tail(&mut self) -> io::Result<bool> {
        if self.is_spent() {
            return Ok(false);
        }
        let size = self.window.size();
        let rest = usize::try_from(size - self.pos).unwrap_or(usize::MAX);
        let head = self.window.get(self.pos, rest.min(LONGEST_TAIL))?;
        let mut at = 1;
        let Ok(length) = varint(head, &mut at) else {
            return Ok(head.len() < 11);
        };
        if rest > LONGEST_TAIL || length > LONGEST_TAIL as u64 {
            return Ok(false);
        }
        let (is_cut, fields) = breaks_off(&head[at..]);
        self.fields += fields;
        if !is_cut {
            return Ok(false);
        }
        let mut from = self.pos + 1;
        while let Some(found) = self.tag_from(from)? {
            self.fields += 1;
            if self.is_spent() || self.is_stamped(found, ROW - 1, true)? {
                return Ok(false);
            }
            from = found + 1;
        }
        Ok(true)
    }

    /// Where the next byte stands that may begin a packet.
    fn tag_from(&mut self, from: u64) -> io::Result<Option<u64>> {
        let mut at = from;
        loop {
            let piece = self.window.get(at, AHEAD / 4)?;
            if piece.is_empty() {
                return Ok(None);
            }
            match memchr::memchr(PACKET_TAG, piece) {
                None => at += piece.len() as u64,
                Some(ahead) => return Ok(Some(at + ahead as u64)),
            }
        }
    }

    /// The body of a packet that [`Self::next`] gave.
    ///
    /// # Errors
    /// Where the source can't be read.
    pub fn body(&mut self, extent: Extent) -> io::Result<&[u8]> {
        self.window.get(extent.offset, extent.length)
    }

    /// To be told when the body of the last packet is no packet. Where another packet begins
    /// behind it, only its content is damaged; else its length is not to be trusted, and the
    /// next packet is looked for inside.
    ///
    /// # Errors
    /// Where the source can't be read.
    pub fn reject(&mut self, what: &'static str, health: &mut Health) -> io::Result<()> {
        self.fields += looks_real(self.window.get(self.body.offset, self.body.length)?).1;
        if self.pos >= self.window.size() || self.is_packet(self.pos, 0)? {
            health.add_damage(self.last, self.pos - self.last, what);
            return Ok(());
        }
        self.recover(self.last, what, health)
    }

    /// Whether looking for packets has cost more than any honest file asks for.
    fn is_spent(&self) -> bool {
        self.fields + self.window.loaded / BYTES_PER_FIELD > EFFORT + self.window.size()
    }

    fn step(&mut self) -> io::Result<Step> {
        // Loading may find that the file has become shorter.
        self.window.get(self.pos, 24)?;
        let size = self.window.size();
        let head = self.window.get(self.pos, 24)?;
        let mut at = 0;
        if head.first() == Some(&PACKET_TAG) {
            at = 1;
            let Ok(length) = varint(head, &mut at) else {
                return Ok(Step::Cut("length of a packet can't be read"));
            };
            let offset = self.pos + at as u64;
            if length > size - offset {
                return Ok(Step::Cut("the file ends inside a packet"));
            }
            if length > LONGEST_PACKET {
                return Ok(Step::Broken("length of a packet is absurd"));
            }
            // A long one that turns out to be none is searched for others: not again and again.
            let end = offset + length;
            if length > SHORT && end < size && self.is_spent() && !self.is_packet(end, 0)? {
                return Ok(Step::Broken("length of a packet is not to be trusted"));
            }
            return Ok(Step::Packet(Extent {
                offset,
                length: length as usize,
            }));
        }
        // Fields other than `packet` are legal, though nobody writes them: skipped if what
        // follows is a packet again.
        let end = match Fields::new(head).next() {
            Ok(Some((number, value))) if number != 1 && !matches!(value, Value::Bytes(_)) => {
                let mut fields = Fields::new(head);
                let _ = fields.next();
                Some(self.pos + fields.position() as u64)
            }
            _ => {
                let tag = varint(head, &mut at);
                let length = varint(head, &mut at);
                match (tag, length) {
                    (Ok(tag), Ok(length))
                        if tag & 7 == 2
                            && tag >> 3 > 1
                            && length <= size - (self.pos + at as u64) =>
                    {
                        Some(self.pos + at as u64 + length)
                    }
                    _ => None,
                }
            }
        };
        if let Some(end) = end
            && (end == size || self.is_packet(end, 0)?)
        {
            return Ok(Step::Skip(end));
        }
        Ok(Step::Broken("bytes that are no packet"))
    }

    /// Moves to the next packet behind `from`, or to the end.
    fn recover(&mut self, from: u64, what: &'static str, health: &mut Health) -> io::Result<()> {
        let mut at = from + 1;
        let found = loop {
            let Some(found) = self.tag_from(at)? else {
                break self.window.size().max(from);
            };
            if self.is_packet(found, 1)? {
                break found;
            }
            at = found + 1;
        };
        health.add_damage(from, found - from, what);
        self.tail = (found >= self.window.size()).then_some(from);
        self.pos = found;
        Ok(())
    }

    /// Whether a packet stands at `at`, and `more` further ones behind it or the end.
    fn is_packet(&mut self, at: u64, more: u32) -> io::Result<bool> {
        self.is_stamped(at, more, false)
    }

    /// The same; `by_sequence`: a uid alone is no stamp.
    fn is_stamped(&mut self, at: u64, more: u32, by_sequence: bool) -> io::Result<bool> {
        self.window.get(at, 11)?;
        let size = self.window.size();
        if at >= size {
            return Ok(false);
        }
        let head = self.window.get(at, 11)?;
        let mut pos = 1;
        if head.first() != Some(&PACKET_TAG) {
            return Ok(false);
        }
        let Ok(length) = varint(head, &mut pos) else {
            return Ok(false);
        };
        let offset = at + pos as u64;
        let longest = if self.is_spent() {
            SHORT
        } else {
            LONGEST_FOUND
        };
        if length > longest || length > size - offset {
            return Ok(false);
        }
        let body = self.window.get(offset, length as usize)?;
        let (real, fields) = looks_stamped(body, by_sequence);
        self.fields += fields;
        if !real {
            return Ok(false);
        }
        let end = offset + length;
        Ok(end == size || more == 0 || self.is_stamped(end, more - 1, by_sequence)?)
    }
}

/// Whether a body parses as a packet and carries what real ones carry: the service stamps each
/// packet with the sequence or uid of its writer, and tools append symbol, deobfuscation and
/// compressed packets with nothing beside them.
///
/// Also says how many fields were read.
fn looks_real(body: &[u8]) -> (bool, u64) {
    looks_stamped(body, false)
}

fn looks_stamped(body: &[u8], by_sequence: bool) -> (bool, u64) {
    const WRITER_UID: u32 = 3;
    const SEQUENCE: u32 = 10;
    const ALONE: [u32; 4] = [50, 61, 64, 133];
    let mut fields = Fields::new(body);
    let mut stamped = false;
    let mut count = 0;
    loop {
        count += 1;
        match fields.next() {
            Ok(None) => return (stamped, count),
            Ok(Some((number, value))) if number <= HIGHEST => {
                stamped |= match value {
                    Value::Bytes(_) => ALONE.contains(&number),
                    Value::Varint(n) => {
                        (number == SEQUENCE && n != 0 && n <= u64::from(u32::MAX))
                            || (number == WRITER_UID && !by_sequence)
                    }
                    _ => false,
                };
            }
            _ => return (false, count),
        }
    }
}

/// Whether a file that begins so holds packets: its first is real (or cut off by the end of
/// `head`), or a real one stands further on.
pub(super) fn holds_packet(head: &[u8]) -> bool {
    let mut at = 0;
    while let Some(ahead) = head[at..].iter().position(|&byte| byte == PACKET_TAG) {
        let start = at + ahead;
        let mut pos = start + 1;
        if let Ok(length) = varint(head, &mut pos) {
            let rest = &head[pos..];
            match usize::try_from(length).ok().and_then(|n| rest.get(..n)) {
                Some(body) if (start == 0 || body.len() <= 4096) && looks_real(body).0 => {
                    return true;
                }
                // At the very start a packet that the head does not hold whole will do, if it
                // begins as one.
                None if start == 0 && begins_real(rest) => return true,
                _ => {}
            }
        }
        at = start + 1;
    }
    false
}

/// Whether bytes parse as a message up to their end, wherever that falls.
///
/// Also says how many fields were read.
fn breaks_off(cut: &[u8]) -> (bool, u64) {
    let mut fields = Fields::new(cut);
    let mut count = 0;
    loop {
        count += 1;
        match fields.next() {
            Ok(Some((number, _))) if number <= HIGHEST => {}
            Ok(Some(_)) => return (false, count),
            Ok(None) => return (true, count),
            Err(error) => {
                let cuts = [
                    "number cut off",
                    "fixed number cut off",
                    "field longer than its message",
                ];
                return (cuts.contains(&error.what), count);
            }
        }
    }
}

/// Whether a packet that is cut off parses up to there.
fn begins_real(cut: &[u8]) -> bool {
    let mut fields = Fields::new(cut);
    let mut before = 0;
    loop {
        match fields.next() {
            Ok(Some((number, _))) if number <= HIGHEST => before += 1,
            Ok(_) => return before > 0,
            // The error must be the cut: a long field that the rest would hold.
            Err(error) => return error.what == "field longer than its message" || before > 1,
        }
    }
}

#[cfg(test)]
mod tests {
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
        // A long packet of submessages, each of which could be a packet; two touch.
        let inner = packet(9);
        let mut body = Vec::new();
        for _ in 0..40 {
            body.extend([0x12, 2 * inner.len() as u8]);
            body.extend(inner.repeat(2));
        }
        let mut long = vec![PACKET_TAG, 0x80, 0x80, 1];
        long.extend(&body);
        // Buckets of a histogram, of which many stand in a row.
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

    /// What reading such bytes takes: fields read in search, and bytes loaded.
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
        // Two real packets and such a length: neither a row of packets nor the end of them.
        let rows = [end, end, cut].concat().repeat(8_000);
        // The same where what follows parses from each of them to the end of the file, and a row
        // of packets is near.
        let nested = [&[0x12, 16][..], &end, &end, &end, &cut].concat();
        let nested = nested.repeat(8_000);
        let shapes = [(rows, "rows"), (nested, "nested")];
        assert_effort_is_bounded(
            &shapes.map(|(bytes, name)| ([bytes, end.to_vec()].concat(), name)),
        );
    }

    #[test]
    fn long_candidates_close_together_are_not_loaded_one_by_one() {
        let size = 5 << 20;
        let (mut alone, mut followed, mut nested) = (Vec::new(), Vec::new(), Vec::new());
        while alone.len() < size {
            alone.extend([PACKET_TAG, 0xff, 0xff, 0xff, 0x01]);
        }
        // A real one of 2 MB, whose follower is long and none.
        while followed.len() < size {
            followed.extend([PACKET_TAG, 0x80, 0x80, 0x80, 0x01, 0x50, 1, 0x7a]);
            followed.extend([0xf8, 0xff, 0x7f]);
        }
        // Long packets of many fields that break at their end, each inside the one before.
        while nested.len() < size / 4 {
            nested.extend([0x7a, 12, PACKET_TAG, 2, 0x50, 1, PACKET_TAG, 2, 0x50, 1]);
            nested.extend([PACKET_TAG, 0x80, 0x80, 0x20]);
        }
        nested.extend([0xff; 32]);
        assert_effort_is_bounded(&[(alone, "alone"), (followed, "followed"), (nested, "nested")]);
    }

    #[test]
    fn a_file_that_shrinks_while_read_only_ends() {
        /// Claims more than it has.
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
}
