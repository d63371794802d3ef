//! Packets by place: those that stand in the file as they are, and those inside a compressed
//! bundle, which is inflated again when it is visited again.

use super::bundle;
use super::framing::{Extent, Window};
use super::packet::{Packet, payload};
use std::io;

/// Where a packet stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Place {
    /// The packet, or the bundle that holds it.
    pub(super) offset: u64,
    pub(super) length: u32,
    /// In a bundle: where in its inflated bytes.
    pub(super) inner: Option<(u32, u32)>,
}

/// Fetches packets by place.
pub(super) struct PlaceReader {
    window: Window,
    inflated: Vec<u8>,
    /// The bundle that `inflated` holds.
    bundle: Option<u64>,
}

impl PlaceReader {
    pub(super) fn new(window: Window) -> Self {
        PlaceReader {
            window,
            inflated: Vec::new(),
            bundle: None,
        }
    }

    /// The body of the packet at a place; empty where the file has changed since.
    ///
    /// # Errors
    /// Where the source can't be read.
    pub(super) fn body(&mut self, place: Place) -> io::Result<&[u8]> {
        let extent = Extent {
            offset: place.offset,
            length: place.length as usize,
        };
        let Some((start, length)) = place.inner else {
            return self.window.get(extent.offset, extent.length);
        };
        if self.bundle != Some(place.offset) {
            let body = self.window.get(extent.offset, extent.length)?;
            let (packet, _) = Packet::read(body);
            self.inflated.clear();
            for &(kind, data) in &packet.payloads {
                if kind == payload::DEFLATED || kind == payload::ZSTD {
                    // Damage was noted at the first reading.
                    let _ = bundle::inflate(kind == payload::ZSTD, data, &mut self.inflated);
                }
            }
            self.bundle = Some(place.offset);
        }
        let range = start as usize..start as usize + length as usize;
        Ok(self.inflated.get(range).unwrap_or_default())
    }
}
