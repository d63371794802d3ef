//! Decompression of a section, at once or in pieces.

use super::Bytes;
use super::deflate::Zlib;
use zstd::stream::raw::Operation as _;

/// Compression of a section (`ch_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Zlib,
    Zstd,
    Unknown,
}

const NO_ZLIB: &str = "cannot decompress it (zlib)";
const NO_ZSTD: &str = "cannot decompress it (zstd)";
const UNKNOWN: &str = "unknown compression method";
const SMALLER: &str = "smaller than claimed";

impl Method {
    pub fn of(number: u32) -> Method {
        match number {
            1 => Method::Zlib,
            2 => Method::Zstd,
            _ => Method::Unknown,
        }
    }
}

/// Decompresses `data` to `size` bytes.
pub(super) fn inflate(method: Method, data: &[u8], size: usize) -> Result<Vec<u8>, &'static str> {
    let mut plain = vec![0; size];
    let length = match method {
        Method::Zlib => libdeflater::Decompressor::new()
            .zlib_decompress(data, &mut plain)
            .map_err(|_| NO_ZLIB)?,
        Method::Zstd => zstd::bulk::decompress_to_buffer(data, &mut plain).map_err(|_| NO_ZSTD)?,
        Method::Unknown => return Err(UNKNOWN),
    };
    if length != size {
        return Err(SMALLER);
    }
    Ok(plain)
}

/// Decompresses a section in pieces. Errors have no details: [`inflate`] tells them.
pub(super) struct Inflater {
    decoder: Decoder,
    data: Bytes,
    /// Bytes of `data` that were released.
    released: usize,
    /// Bytes that are missing of the claimed size.
    left: usize,
}

enum Decoder {
    Zlib(Box<Zlib>),
    Zstd(Frames),
}

impl Inflater {
    /// Bytes of the file that are read before they are released.
    const RELEASED: usize = 4 << 20;

    /// Starts to decompress `data` to `size` bytes. `None` if the method is not known.
    pub fn new(method: Method, data: Bytes, size: usize) -> Option<Inflater> {
        let decoder = match method {
            Method::Zlib => Decoder::Zlib(Box::new(Zlib::new())),
            Method::Zstd => Decoder::Zstd(Frames::new()?),
            Method::Unknown => return None,
        };
        Some(Inflater {
            decoder,
            data,
            released: 0,
            left: size,
        })
    }

    /// Returns the number of bytes that follow.
    pub fn left(&self) -> usize {
        self.left
    }

    /// Decompresses the next bytes; they are empty at the end. `None` if the data is damaged or does
    /// not have the claimed size.
    pub fn next(&mut self) -> Option<&[u8]> {
        let (piece, at) = match &mut self.decoder {
            Decoder::Zlib(zlib) => {
                let at = zlib.position();
                (zlib.next(&self.data).ok()?, at)
            }
            Decoder::Zstd(frames) => {
                let at = frames.at;
                (frames.next(&self.data)?, at)
            }
        };
        self.left = self.left.checked_sub(piece.len())?;
        if piece.is_empty() && self.left > 0 {
            return None;
        }
        if at > self.released + Self::RELEASED || piece.is_empty() {
            self.data.release(self.released..at);
            self.released = at;
        }
        Some(piece)
    }
}

/// Decoder of zstd frames.
struct Frames {
    decoder: zstd::stream::raw::Decoder<'static>,
    at: usize,
    /// True if no frame is incomplete.
    is_between: bool,
    piece: Vec<u8>,
}

impl Frames {
    /// Size of a piece: it stays in the processor's cache until it is read.
    const PIECE: usize = 128 << 10;

    fn new() -> Option<Frames> {
        Some(Frames {
            decoder: zstd::stream::raw::Decoder::new().ok()?,
            at: 0,
            is_between: true,
            piece: vec![0; Self::PIECE],
        })
    }

    /// Decompresses the next bytes; they are empty at the end.
    fn next(&mut self, data: &[u8]) -> Option<&[u8]> {
        let mut filled = 0;
        while filled < self.piece.len() && !(self.is_between && self.at == data.len()) {
            let out = &mut self.piece[filled..];
            let status = self.decoder.run_on_buffers(&data[self.at..], out).ok()?;
            if (status.bytes_read, status.bytes_written) == (0, 0) {
                return None;
            }
            self.is_between = status.remaining == 0;
            self.at += status.bytes_read;
            filled += status.bytes_written;
        }
        Some(&self.piece[..filled])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_pieces(method: Method, data: Vec<u8>, size: usize) -> Option<Vec<u8>> {
        let mut inflater = Inflater::new(method, Bytes::from(data), size)?;
        let mut all = Vec::new();
        loop {
            match inflater.next()? {
                [] => return Some(all),
                piece => all.extend_from_slice(piece),
            }
        }
    }

    #[test]
    fn pieces_are_what_is_decompressed_at_once() {
        let plain: Vec<u8> = (0..1_000_000u32)
            .flat_map(|n| (n / 7).to_le_bytes())
            .collect();
        let frame = |part: &[u8]| zstd::bulk::compress(part, 3).unwrap();
        let (one, other) = plain.split_at(1_234_567);
        let frames = [frame(one), frame(&[]), frame(other)].concat();
        let read = |size| in_pieces(Method::Zstd, frames.clone(), size);
        assert!(inflate(Method::Zstd, &frames, plain.len()).as_ref() == Ok(&plain));
        assert!(read(plain.len()).as_ref() == Some(&plain));
        for size in [plain.len() - 1, plain.len() + 1] {
            assert_eq!(read(size), None);
            assert!(inflate(Method::Zstd, &frames, size).is_err());
        }
        let cut = frames[..frames.len() - 3].to_vec();
        assert_eq!(in_pieces(Method::Zstd, cut, plain.len()), None);
        assert_eq!(in_pieces(Method::Unknown, frames, plain.len()), None);
    }
}
