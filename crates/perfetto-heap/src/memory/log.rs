//! `AndroidLogPacket` (39): lines of the device's log. Only those about GCs are kept.

use super::sink::Sink;
use crate::wire::{WireError, each, each_message};

/// Clock of the lines: REALTIME.
pub(super) const CLOCK: u32 = 1;

/// A line of the device's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogMessage {
    /// Time in BOOTTIME, ns.
    pub boot_ns: u64,
    /// Process that wrote it.
    pub pid: u32,
    /// Tag, mostly of the process.
    pub tag: String,
    /// Text without the tag.
    pub message: String,
}

/// Reads a packet; lines before damage are used. Returns whether the time of each line is known.
pub(super) fn read(
    packet: &[u8],
    boot: impl Fn(u64) -> Option<u64>,
    sink: &mut Sink,
    log: &mut Vec<LogMessage>,
) -> Result<bool, WireError> {
    let mut in_time = true;
    each_message(packet, 1, |event| {
        let (mut pid, mut time, mut tag, mut message) = (0, 0, &b""[..], &b""[..]);
        each(event, |number, value| match number {
            // An i32.
            2 => pid = value.number() as u32,
            5 => time = value.number(),
            6 => tag = value.bytes(),
            8 => message = value.bytes(),
            _ => {}
        })?;
        // ART and Dalvik.
        let has = |words: &[u8]| memchr::memmem::find(message, words).is_some();
        let is_gc = has(b" GC freed ") || has(b"GC_");
        let cost = size_of::<LogMessage>() + 3 * (tag.len() + message.len());
        if !is_gc || !sink.wants(pid) || !sink.has_room(cost) {
            return Ok(());
        }
        match boot(time) {
            Some(boot_ns) => log.push(LogMessage {
                boot_ns,
                pid,
                tag: String::from_utf8_lossy(tag).into_owned(),
                message: String::from_utf8_lossy(message).into_owned(),
            }),
            None => in_time = false,
        }
        Ok(())
    })?;
    Ok(in_time)
}
