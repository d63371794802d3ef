//! `FtraceEventBundle` (1), limited to atrace's events: events of each processor, sorted by time.
//! Owns the text form of atrace's events; keeps only a number of each name.
//!
//! An event is `print { buf: "B|PID|NAME" }` for the start of a slice on a thread, `E|PID` or `E`
//! for the end of the innermost slice, and `C|PID|NAME|VALUE` for a counter. A bundle has the
//! events of one processor between two reads, so the events of a thread that moved are in several
//! bundles, in any order. The print event does not have a compact form.

use std::collections::HashMap;

use super::collections::{self, Collections, Event, Kind};
use super::sink::{MemoryLoss, Sink};
use super::time::Times;
use crate::wire::{Fields, WireError};

/// Maximum number of events that wait for sorting; half of them are passed on at the limit. The
/// service reads all processors several times per second, which is far fewer events.
const WINDOW: usize = 1 << 18;
/// Maximum number of distinct GC names, which is more than any device has.
const MAX_NAMES: usize = 1 << 12;
const HEAP_SIZE: &[u8] = b"Heap size (KB)";

/// Events that are being sorted.
#[derive(Debug, Default)]
pub(super) struct Ftrace {
    waiting: Vec<Event>,
    names: HashMap<Box<[u8]>, u16>,
    /// BOOTTIME minus the kernel's own clock, if that is another clock.
    own_clock: Option<i128>,
}

/// Clocks of a bundle.
const CLOCK_GLOBAL: u64 = 2;
const CLOCK_LOCAL: u64 = 3;
const CLOCK_MONO_RAW: u64 = 4;
const MONOTONIC_RAW: u32 = 5;

impl Ftrace {
    /// Reads a bundle; returns whether the time of its events is known.
    pub(super) fn read(
        &mut self,
        message: &[u8],
        times: &Times,
        sequence: u32,
        loss: &mut MemoryLoss,
    ) -> Result<bool, WireError> {
        let (mut clock, mut own, mut boot, mut lost) = (0, None, None, false);
        let mut fields = Fields::new(message);
        // The clock comes after the events. The second pass reports damage.
        while let Ok(Some((number, value))) = fields.next() {
            match number {
                3 => lost = value.flag(),
                5 => clock = value.number(),
                6 => own = Some(value.number()),
                7 => boot = Some(value.number()),
                _ => {}
            }
        }
        if let (Some(own), Some(boot)) = (own, boot) {
            self.own_clock = Some(i128::from(boot) - i128::from(own));
        }
        let own_clock = self.own_clock;
        if matches!(clock, CLOCK_GLOBAL | CLOCK_LOCAL) && own_clock.is_none() {
            return Ok(false);
        }
        let mut in_time = true;
        let mut when = |time: u64| {
            let at = match clock {
                CLOCK_GLOBAL | CLOCK_LOCAL => {
                    own_clock.and_then(|offset| u64::try_from(i128::from(time) + offset).ok())
                }
                CLOCK_MONO_RAW => times.boot(MONOTONIC_RAW, sequence, time),
                _ => Some(time),
            };
            in_time &= at.is_some();
            at
        };
        let mut fields = Fields::new(message);
        while let Some((number, value)) = fields.next()? {
            if number != 2 {
                continue;
            }
            let (time, thread, text) = printed(value.bytes())?;
            if std::mem::take(&mut lost) {
                loss.lost_events += 1;
                let kind = Kind::Lost;
                let at = when(time);
                self.waiting.extend(at.map(|at| Event { at, thread, kind }));
            }
            let Some(kind) = text.and_then(|text| self.kind(text)) else {
                continue;
            };
            let at = when(time);
            self.waiting.extend(at.map(|at| Event { at, thread, kind }));
        }
        Ok(in_time)
    }

    /// Passes on the events whose order is final.
    pub(super) fn hand_over(
        &mut self,
        collections: &mut Collections,
        sink: &mut Sink,
        loss: &mut MemoryLoss,
    ) {
        if self.waiting.len() >= WINDOW {
            self.give(WINDOW / 2, collections, sink, loss);
        }
    }

    /// Passes on the remaining events.
    pub(super) fn end(
        mut self,
        collections: &mut Collections,
        sink: &mut Sink,
        loss: &mut MemoryLoss,
    ) {
        let all = self.waiting.len();
        self.give(all, collections, sink, loss);
    }

    fn give(
        &mut self,
        count: usize,
        collections: &mut Collections,
        sink: &mut Sink,
        loss: &mut MemoryLoss,
    ) {
        self.waiting.sort_by_key(|event| event.at);
        let mut names: Vec<&[u8]> = vec![b""; self.names.len()];
        for (name, number) in &self.names {
            if let Some(place) = names.get_mut(usize::from(*number)) {
                *place = name;
            }
        }
        for event in &self.waiting[..count] {
            collections.take(*event, &names, sink, loss);
        }
        self.waiting.drain(..count);
    }

    /// Parses a text of atrace; `None` if it is irrelevant.
    fn kind(&mut self, text: &[u8]) -> Option<Kind> {
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        let (&letter, rest) = text.split_first()?;
        match letter {
            b'B' => {
                let (pid, name) = owner(rest)?;
                if collections::is_pause(name) {
                    return Some(Kind::Pause);
                }
                if !collections::is_collection(name) {
                    return Some(Kind::Other);
                }
                Some(match self.number_of(name) {
                    Some(name) => Kind::Collection { pid, name },
                    None => Kind::Other,
                })
            }
            b'E' if rest.is_empty() || rest[0] == b'|' => Some(Kind::End),
            b'C' => {
                let (pid, rest) = owner(rest)?;
                let value = rest.strip_prefix(HEAP_SIZE)?.strip_prefix(b"|")?;
                let end = value.iter().position(|b| !b.is_ascii_digit());
                let kb = number(&value[..end.unwrap_or(value.len())])?;
                let bytes = kb.saturating_mul(1024);
                Some(Kind::HeapSize { pid, bytes })
            }
            _ => None,
        }
    }

    fn number_of(&mut self, name: &[u8]) -> Option<u16> {
        if let Some(number) = self.names.get(name) {
            return Some(*number);
        }
        let number = u16::try_from(self.names.len()).ok()?;
        if self.names.len() >= MAX_NAMES {
            return None;
        }
        self.names.insert(name.into(), number);
        Some(number)
    }
}

/// Reads time and thread of an event, and the text of an atrace event.
#[inline]
fn printed(event: &[u8]) -> Result<(u64, u32, Option<&[u8]>), WireError> {
    let (mut time, mut thread, mut text) = (0, 0, None);
    let mut fields = Fields::new(event);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => time = value.number(),
            2 => thread = value.number() as u32,
            3 => {
                let mut print = Fields::new(value.bytes());
                while let Some((number, value)) = print.next()? {
                    if number == 2 {
                        text = Some(value.bytes());
                    }
                }
            }
            _ => {}
        }
    }
    Ok((time, thread, text))
}

/// Parses `|PID|rest`.
fn owner(text: &[u8]) -> Option<(u32, &[u8])> {
    let text = text.strip_prefix(b"|")?;
    let end = text.iter().position(|b| *b == b'|')?;
    let pid = u32::try_from(number(&text[..end])?).ok()?;
    Some((pid, &text[end + 1..]))
}

/// Parses a number in decimal digits.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |sum, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}
