//! A trace file as consecutive packets, and recovery after damage. Owns reading the file in pieces;
//! checks only as much of a packet as distinguishes a real one from chance.
//!
//! A trace is `message Trace { repeated TracePacket packet = 1; }`: the byte 0x0a, a length, the
//! packet, and again. There is no checksum. After unreadable bytes, the reader searches for the
//! next packet. That is a position where a whole packet parses, with a field that every real packet
//! has, followed by another packet or the end of the file.

use super::wire::{Fields, Value, varint};
use heaptap_base::error::{Classified, ErrorClass, ErrorFacts};
use heaptap_model::profile::Health;
use std::io::{self, Read, Seek, SeekFrom};

/// An error that makes a trace unreadable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The source failed.
    #[error("cannot read the trace")]
    Io(#[from] io::Error),
}

impl Classified for TraceError {
    fn facts(&self) -> ErrorFacts {
        ErrorFacts::new(ErrorClass::BadInput, "trace-unreadable")
    }
}

/// Source of a trace: a file, or bytes in memory.
pub trait Source: Read + Seek + Send {}
impl<T: Read + Seek + Send> Source for T {}

/// Bytes to read ahead.
const AHEAD: usize = 1 << 20;
/// Maximum length of a packet: a larger length is damaged, because the service splits at half a
/// megabyte.
const MAX_PACKET_LENGTH: u64 = 1 << 30;
/// Maximum length of an incomplete packet at the end: a larger length is damaged.
const MAX_TAIL_LENGTH: usize = 4 << 20;
/// Number of consecutive packets that confirm the rest of a file.
const ROW: u32 = 3;
/// Highest field number of a packet.
const HIGHEST: u32 = 2048;
/// Maximum length of a packet in the search for the next one.
const MAX_FOUND_LENGTH: u64 = 4 << 20;
/// Bytes kept before the requested ones, so that going back to a packet's tag loads nothing.
const BEHIND: u64 = 64;
/// Maximum number of fields, plus one for each byte of the file, to read in searches for packets. A
/// file that needs more is hostile, and only short packets are considered.
const EFFORT: u64 = 16 << 20;
/// Number of bytes that take about as long to load as a field takes to read.
const BYTES_PER_FIELD: u64 = 64;
const SHORT: u64 = 512;
/// Tag of `Trace.packet`.
const PACKET_TAG: u8 = 0x0a;

/// A window on the bytes of a source, for forward reading with short steps back.
pub struct Window {
    source: Box<dyn Source>,
    buffer: Vec<u8>,
    start: u64,
    size: u64,
    /// Bytes read or moved so far.
    loaded: u64,
}

impl Window {
    /// Opens a source and reads its size.
    ///
    /// # Errors
    /// Returns an error if the source cannot seek.
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

    /// Returns the size of the source in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns `want` bytes from `at`; fewer only at the end of the source. Allocates no more than
    /// the size of the source.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read.
    pub fn get(&mut self, at: u64, want: usize) -> io::Result<&[u8]> {
        let want = (want as u64).min(self.size.saturating_sub(at)) as usize;
        let end = self.start + self.buffer.len() as u64;
        if at < self.start || at + want as u64 > end {
            self.load(at, want)?;
        }
        // The file might have become shorter.
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
        // More than the requested bytes: otherwise the next step would load all of them again.
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
    /// Offset of the last packet's tag.
    last: u64,
    /// Body of the last packet.
    body: Extent,
    /// Fields read in searches for packets, and positions tried.
    fields: u64,
    /// Offset of the bytes up to the end that are not packets.
    tail: Option<u64>,
}

/// Range of a packet's body.
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
    /// A packet whose length exceeds the end of the file.
    Cut(&'static str),
    Broken(&'static str),
}

impl Packets {
    /// Creates a reader at the first byte.
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

    /// Returns the number of bytes up to the packet within which the source breaks off, or up to
    /// its end.
    pub fn whole_bytes(&self) -> u64 {
        self.tail.unwrap_or(self.window.size())
    }

    /// Returns the size of the source in bytes.
    pub fn size(&self) -> u64 {
        self.window.size()
    }

    /// Returns the window.
    pub fn into_window(self) -> Window {
        self.window
    }

    /// Returns the next packet; unreadable bytes before it are recorded in `health`.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read.
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

    /// Returns whether the current position is the start of a packet whose rest is not written yet
    /// or was cut off: it parses up to its end, and it does not contain a series of packets.
    /// Messages in it that look like packets do not count: two adjacent ones are not a series, and
    /// buckets of a histogram, whose count is in the field of the writer's UID, have no sequence.
    ///
    /// Reads everything that follows, so the result is false after too many such checks: a whole
    /// trace breaks off only once.
    fn is_tail(&mut self) -> io::Result<bool> {
        if self.is_spent() {
            return Ok(false);
        }
        let size = self.window.size();
        let rest = usize::try_from(size - self.pos).unwrap_or(usize::MAX);
        let head = self.window.get(self.pos, rest.min(MAX_TAIL_LENGTH))?;
        let mut at = 1;
        let Ok(length) = varint(head, &mut at) else {
            return Ok(head.len() < 11);
        };
        if rest > MAX_TAIL_LENGTH || length > MAX_TAIL_LENGTH as u64 {
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

    /// Returns the offset of the next byte that can start a packet.
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

    /// Returns the body of a packet from [`Self::next`].
    ///
    /// # Errors
    /// Returns an error if the source cannot be read.
    pub fn body(&mut self, extent: Extent) -> io::Result<&[u8]> {
        self.window.get(extent.offset, extent.length)
    }

    /// Rejects the last packet because its body is not a packet. If another packet begins after it,
    /// only its content is damaged. Otherwise its length is unreliable, and the next packet is
    /// searched for inside it.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read.
    pub fn reject(&mut self, what: &'static str, health: &mut Health) -> io::Result<()> {
        self.fields += looks_real(self.window.get(self.body.offset, self.body.length)?).1;
        if self.pos >= self.window.size() || self.is_packet(self.pos, 0)? {
            health.add_damage(self.last, self.pos - self.last, what);
            return Ok(());
        }
        self.recover(self.last, what, health)
    }

    /// Returns whether searches for packets have cost more than any honest file needs.
    fn is_spent(&self) -> bool {
        self.fields + self.window.loaded / BYTES_PER_FIELD > EFFORT + self.window.size()
    }

    fn step(&mut self) -> io::Result<Step> {
        // Loading might find that the file has become shorter.
        self.window.get(self.pos, 24)?;
        let size = self.window.size();
        let head = self.window.get(self.pos, 24)?;
        let mut at = 0;
        if head.first() == Some(&PACKET_TAG) {
            at = 1;
            let Ok(length) = varint(head, &mut at) else {
                return Ok(Step::Cut("cannot read the length of a packet"));
            };
            let offset = self.pos + at as u64;
            if length > size - offset {
                return Ok(Step::Cut("the file ends inside a packet"));
            }
            if length > MAX_PACKET_LENGTH {
                return Ok(Step::Broken("the length of a packet exceeds the limit"));
            }
            // A long length that proves wrong causes a search inside, which must not be repeated
            // without limit.
            let end = offset + length;
            if length > SHORT && end < size && self.is_spent() && !self.is_packet(end, 0)? {
                return Ok(Step::Broken("the length of a packet leads to invalid data"));
            }
            return Ok(Step::Packet(Extent {
                offset,
                length: length as usize,
            }));
        }
        // Fields other than `packet` are legal, though no writer uses them: skipped if a packet
        // follows.
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
        Ok(Step::Broken("not a packet"))
    }

    /// Moves to the next packet after `from`, or to the end.
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

    /// Returns whether a packet is at `at`, followed by `more` packets or the end.
    fn is_packet(&mut self, at: u64, more: u32) -> io::Result<bool> {
        self.is_stamped(at, more, false)
    }

    /// Like `is_packet`; with `by_sequence`, a UID alone does not identify a packet.
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
            MAX_FOUND_LENGTH
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

/// Returns whether a body parses as a packet and has the fields of real ones, and the number of
/// fields read. The service stamps each packet with the sequence or UID of its writer; tools append
/// symbol, deobfuscation and compressed packets without stamps.
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

/// Returns whether a file that begins with `head` contains packets: the first is real (or cut off
/// by the end of `head`), or a real one follows later.
pub fn holds_packet(head: &[u8]) -> bool {
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
                // At the very start, a packet that extends beyond the head is accepted if its
                // beginning is valid.
                None if start == 0 && begins_real(rest) => return true,
                _ => {}
            }
        }
        at = start + 1;
    }
    false
}

/// Returns whether bytes parse as a message that breaks off at any point, and the number of fields
/// read.
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

/// Returns whether a packet that is cut off parses up to its end.
fn begins_real(cut: &[u8]) -> bool {
    let mut fields = Fields::new(cut);
    let mut before = 0;
    loop {
        match fields.next() {
            Ok(Some((number, _))) if number <= HIGHEST => before += 1,
            Ok(_) => return before > 0,
            // The error must be the cut: a long field that the rest would contain.
            Err(error) => return error.what == "field longer than its message" || before > 1,
        }
    }
}

#[cfg(test)]
mod tests;
