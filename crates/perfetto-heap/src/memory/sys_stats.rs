//! `SysStats` (7), limited to memory: lines of /proc/meminfo by number.

use super::sink::Sink;
use crate::wire::{WireError, each, each_message};
use heaptap_model::timeline::{Observation, Source, System};

const MEM_TOTAL: u64 = 1;
const MEM_FREE: u64 = 2;
const MEM_AVAILABLE: u64 = 3;
const SWAP_FREE: u64 = 16;

/// Reads a packet; ignores one without any of these lines.
pub(super) fn read(message: &[u8], now: u64, sink: &mut Sink) -> Result<(), WireError> {
    let mut system = System {
        source: Source::SysStats,
        total: None,
        available: None,
        free: None,
        swap_free: None,
    };
    let mut says = false;
    each_message(message, 1, |line| {
        let (mut key, mut kb) = (0, None);
        each(line, |number, value| match number {
            1 => key = value.number(),
            2 => kb = Some(value.number()),
            _ => {}
        })?;
        let figure = match key {
            MEM_TOTAL => &mut system.total,
            MEM_FREE => &mut system.free,
            MEM_AVAILABLE => &mut system.available,
            SWAP_FREE => &mut system.swap_free,
            _ => return Ok(()),
        };
        *figure = kb.map(|kb| kb.saturating_mul(1024));
        says |= figure.is_some();
        Ok(())
    })?;
    if says {
        sink.see(now, 0, Observation::System(system));
    }
    Ok(())
}
