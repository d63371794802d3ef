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
mod tests;
