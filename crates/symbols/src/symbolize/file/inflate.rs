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
    Zlib(Zlib),
    Zstd(Frames),
}

impl Inflater {
    /// Bytes of the file that are read before they are released.
    const RELEASED: usize = 4 << 20;

    /// Starts to decompress `data` to `size` bytes. `None` if the method is not known.
    pub fn new(method: Method, data: Bytes, size: usize) -> Option<Inflater> {
        let decoder = match method {
            Method::Zlib => Decoder::Zlib(Zlib::new()),
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
                let at = zlib.at;
                (zlib.next(&self.data)?, at)
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

/// Size of a piece: it stays in the processor's cache until it is read.
const PIECE: usize = 128 << 10;

/// Decoder of a zlib stream.
struct Zlib {
    decoder: Decompress,
    at: usize,
    is_ended: bool,
    piece: Vec<u8>,
}

impl Zlib {
    fn new() -> Zlib {
        Zlib {
            decoder: Decompress::new(true),
            at: 0,
            is_ended: false,
            piece: vec![0; PIECE],
        }
    }

    /// Decompresses the next bytes; they are empty at the end.
    fn next(&mut self, data: &[u8]) -> Option<&[u8]> {
        let mut filled = 0;
        while filled < self.piece.len() && !self.is_ended {
            let (read, written) = (self.decoder.total_in(), self.decoder.total_out());
            let out = &mut self.piece[filled..];
            let done = self
                .decoder
                .decompress(&data[self.at..], out, FlushDecompress::None);
            self.is_ended = done.ok()? == Status::StreamEnd;
            let read = (self.decoder.total_in() - read) as usize;
            let written = (self.decoder.total_out() - written) as usize;
            if (read, written) == (0, 0) && !self.is_ended {
                return None;
            }
            self.at += read;
            filled += written;
        }
        Some(&self.piece[..filled])
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
    fn new() -> Option<Frames> {
        Some(Frames {
            decoder: zstd::stream::raw::Decoder::new().ok()?,
            at: 0,
            is_between: true,
            piece: vec![0; PIECE],
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
