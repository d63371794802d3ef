//! Decompression of a section, at once or in pieces.

use super::Bytes;
use flate2::{Decompress, FlushDecompress, Status};
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
    pub fn from_number(number: u32) -> Method {
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
    /// Bytes of `data` that were read.
    at: usize,
    is_ended: bool,
    /// Bytes of `data` that were released.
    released: usize,
    /// Bytes that are missing of the claimed size.
    left: usize,
    piece: Vec<u8>,
}

impl Inflater {
    /// Size of a piece: it stays in the processor's cache until it is read.
    const PIECE: usize = 128 << 10;
    /// Bytes of the file that are read before they are released.
    const RELEASED: usize = 4 << 20;

    /// Starts to decompress `data` to `size` bytes. `None` if the method is not known.
    pub fn new(method: Method, data: Bytes, size: usize) -> Option<Inflater> {
        let decoder = match method {
            Method::Zlib => Decoder::Zlib(Decompress::new(true)),
            Method::Zstd => Decoder::Zstd(zstd::stream::raw::Decoder::new().ok()?),
            Method::Unknown => return None,
        };
        Some(Inflater {
            decoder,
            data,
            at: 0,
            is_ended: false,
            released: 0,
            left: size,
            piece: vec![0; Self::PIECE],
        })
    }

    /// Returns the number of bytes that follow.
    pub fn left(&self) -> usize {
        self.left
    }

    /// Decompresses the next bytes; they are empty at the end. `None` if the data is damaged or does
    /// not have the claimed size.
    pub fn next(&mut self) -> Option<&[u8]> {
        let mut filled = 0;
        while filled < self.piece.len() && !self.is_ended {
            let data = &self.data[self.at..];
            let step = self.decoder.step(data, &mut self.piece[filled..])?;
            if (step.read, step.written) == (0, 0) && !step.is_end {
                return None;
            }
            self.at += step.read;
            self.is_ended = step.is_end;
            filled += step.written;
        }
        self.left = self.left.checked_sub(filled)?;
        if filled == 0 && self.left > 0 {
            return None;
        }
        if self.at > self.released + Self::RELEASED || filled == 0 {
            self.data.release(self.released..self.at);
            self.released = self.at;
        }
        Some(&self.piece[..filled])
    }
}

enum Decoder {
    Zlib(Decompress),
    /// One frame or several.
    Zstd(zstd::stream::raw::Decoder<'static>),
}

/// Bytes read and written by a decoder.
struct Step {
    read: usize,
    written: usize,
    /// True if nothing follows.
    is_end: bool,
}

impl Decoder {
    /// Decompresses as much of `data` as has room. `None` if it is damaged.
    fn step(&mut self, data: &[u8], out: &mut [u8]) -> Option<Step> {
        Some(match self {
            Decoder::Zlib(zlib) => {
                let (read, written) = (zlib.total_in(), zlib.total_out());
                let status = zlib.decompress(data, out, FlushDecompress::None).ok()?;
                Step {
                    read: (zlib.total_in() - read) as usize,
                    written: (zlib.total_out() - written) as usize,
                    is_end: status == Status::StreamEnd,
                }
            }
            Decoder::Zstd(zstd) => {
                let status = zstd.run_on_buffers(data, out).ok()?;
                Step {
                    read: status.bytes_read,
                    written: status.bytes_written,
                    is_end: status.remaining == 0 && status.bytes_read == data.len(),
                }
            }
        })
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
        let mut compressor = libdeflater::Compressor::new(libdeflater::CompressionLvl::fastest());
        let mut zlib = vec![0; compressor.zlib_compress_bound(plain.len())];
        let length = compressor.zlib_compress(&plain, &mut zlib).unwrap();
        zlib.truncate(length);
        let read = |size| in_pieces(Method::Zlib, zlib.clone(), size);
        assert!(read(plain.len()).as_ref() == Some(&plain));
        for size in [plain.len() - 1, plain.len() + 1] {
            assert_eq!(read(size), None);
        }
        for at in [0, 1, length / 2, length - 1] {
            let mut damaged = zlib.clone();
            damaged[at] ^= 0x55;
            let at_once = inflate(Method::Zlib, &damaged, plain.len());
            assert_eq!(in_pieces(Method::Zlib, damaged, plain.len()), at_once.ok());
        }
        let cut = zlib[..length - 3].to_vec();
        assert_eq!(in_pieces(Method::Zlib, cut, plain.len()), None);
        let cut = frames[..frames.len() - 3].to_vec();
        assert_eq!(in_pieces(Method::Zstd, cut, plain.len()), None);
        assert_eq!(in_pieces(Method::Unknown, frames, plain.len()), None);
    }
}
