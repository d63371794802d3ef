//! Packets by position: uncompressed ones, and those inside a compressed bundle, which is inflated
//! again on each visit. A few bundles are kept because runs can alternate, and the total of
//! inflated bytes is limited.

use super::bundle;
use super::framing::Window;
use std::io;

/// Number of bundles kept, with [`bundle::MAX_SIZE`] bytes in total.
const KEPT: usize = 8;
/// Minimum cost of inflating a bundle, in inflated bytes.
const PER_BUNDLE: u64 = 16 << 10;
/// Number of times that each bundle can be inflated regardless of its size: a trace is read a few
/// times after the first reading.
const VISITS: u64 = 6;

/// Position of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Place {
    /// Offset of the packet, or of the compressed bytes that contain it.
    pub(super) offset: u64,
    pub(super) length: u32,
    /// Position in the inflated bytes of a bundle.
    pub(super) inner: Option<Inner>,
}

/// Position of a packet in a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Inner {
    /// Compressed with zstd.
    pub(super) zstd: bool,
    /// Offset in the inflated bytes.
    pub(super) start: u32,
    pub(super) length: u32,
}

/// Reads packets by position.
pub(super) struct PlaceReader {
    window: Window,
    /// Bundles with their offsets, the last used one at the end.
    bundles: Vec<(u64, Vec<u8>)>,
    /// Bytes that can still be inflated.
    left: u64,
}

impl PlaceReader {
    pub(super) fn new(window: Window) -> Self {
        let left = bundle::allowance(window.size()).saturating_mul(VISITS);
        PlaceReader {
            window,
            bundles: Vec::new(),
            left,
        }
    }

    /// Returns the body of the packet at a position; `None` if the file has changed since, or if
    /// too much was inflated already.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read.
    pub(super) fn body(&mut self, place: Place) -> io::Result<Option<&[u8]>> {
        let Some(inner) = place.inner else {
            let body = self.window.get(place.offset, place.length as usize)?;
            return Ok((body.len() == place.length as usize).then_some(body));
        };
        let known = self.bundles.iter().position(|b| b.0 == place.offset);
        match known {
            Some(at) => self.bundles[at..].rotate_left(1),
            None => self.inflate(place, inner.zstd)?,
        }
        let range = inner.start as usize..inner.start as usize + inner.length as usize;
        Ok(self.bundles.last().and_then(|b| b.1.get(range)))
    }

    fn inflate(&mut self, place: Place, zstd: bool) -> io::Result<()> {
        let data = self.window.get(place.offset, place.length as usize)?;
        let mut inflated = Vec::new();
        // The first reading reported damage.
        let _ = bundle::inflate(zstd, data, self.left, &mut inflated);
        let cost = PER_BUNDLE + inflated.len() as u64;
        self.left = self.left.saturating_sub(cost);
        self.bundles.push((place.offset, inflated));
        let mut held: u64 = self.bundles.iter().map(|b| b.1.len() as u64).sum();
        while self.bundles.len() > 1 && (self.bundles.len() > KEPT || held > bundle::MAX_SIZE) {
            held -= self.bundles.remove(0).1.len() as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::bytes as field;
    use crate::survey::Survey;

    /// Builds a profile packet with an index, of sequence 1.
    fn profile(index: u8) -> Vec<u8> {
        [vec![0x50, 1], field(37, &[7 << 3, index])].concat()
    }

    fn zstd_of(packet: &[u8]) -> Vec<u8> {
        field(
            133,
            &zstd::stream::encode_all(&field(1, packet)[..], 1).unwrap(),
        )
    }

    fn read(trace: Vec<u8>) -> (Survey, PlaceReader) {
        let window = Window::new(Box::new(io::Cursor::new(trace))).unwrap();
        let (survey, window) = Survey::read(window).unwrap();
        (survey, PlaceReader::new(window))
    }

    #[test]
    fn bundles_that_share_a_packet_are_told_apart() {
        let both = [zstd_of(&profile(3)), zstd_of(&profile(4))].concat();
        let (survey, mut reader) = read(field(1, &both));
        assert_eq!(survey.entries.len(), 2);
        for (entry, index) in survey.entries.iter().zip([3, 4]) {
            let body = reader.body(entry.place).unwrap().unwrap();
            assert_eq!(body, profile(index));
        }
    }

    #[test]
    fn bundles_that_take_turns_are_inflated_once_and_many_not_for_ever() {
        let trace: Vec<u8> = (0..2 * KEPT as u8)
            .flat_map(|n| field(1, &zstd_of(&profile(n))))
            .collect();
        let (survey, mut reader) = read(trace);
        let places: Vec<Place> = survey.entries.iter().map(|entry| entry.place).collect();
        assert_eq!(places.len(), 2 * KEPT);
        let before = reader.left;
        for n in 0..1000 {
            assert!(reader.body(places[n % KEPT]).unwrap().is_some());
        }
        let once = before - reader.left;
        assert!(once < KEPT as u64 * (PER_BUNDLE + 128), "{once}");
        reader.left = 3 * once;
        let turns = (0..1000).filter(|n| {
            let body = reader.body(places[n % places.len()]).unwrap();
            body.is_some()
        });
        assert!(turns.count() < 5 * KEPT);
    }
}
