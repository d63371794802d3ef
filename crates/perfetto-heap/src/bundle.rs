//! Compressed packets of the trace: `compressed_packets` (50, zlib or gzip) and
//! `zstd_compressed_packets` (133). Each has one complete stream that inflates to consecutive
//! packets; they do not nest.

use super::wire::varint;
use std::io::Read;

/// Maximum size of an inflated bundle in bytes. The service compresses batches of well under a
/// megabyte, so a larger bundle is hostile.
pub(super) const MAX_SIZE: u64 = 256 << 20;

/// Returns the total size to which all bundles of a trace of `size` bytes can inflate: much more
/// than packets need, so that only zip bombs reach it.
pub(super) fn allowance(size: u64) -> u64 {
    MAX_SIZE.saturating_add(size.saturating_mul(100))
}

/// Reason why a bundle cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum BundleError {
    #[error("cannot decompress the packets")]
    Codec,
    #[error("the decompressed packets exceed the size limit")]
    TooLarge,
}

/// Inflates a bundle to at most `most` bytes. On an error, `out` has the bytes before it.
pub(super) fn inflate(
    zstd: bool,
    data: &[u8],
    most: u64,
    out: &mut Vec<u8>,
) -> Result<(), BundleError> {
    out.clear();
    let most = most.min(MAX_SIZE);
    if zstd {
        let decoder =
            zstd::stream::read::Decoder::with_buffer(data).map_err(|_| BundleError::Codec)?;
        read_all(decoder.single_frame(), most, out)
    } else if data.starts_with(&[0x1f, 0x8b]) {
        read_all(flate2::bufread::GzDecoder::new(data), most, out)
    } else {
        read_all(flate2::bufread::ZlibDecoder::new(data), most, out)
    }
}

fn read_all(reader: impl Read, most: u64, out: &mut Vec<u8>) -> Result<(), BundleError> {
    match reader.take(most).read_to_end(out) {
        Ok(_) if out.len() as u64 == most => Err(BundleError::TooLarge),
        Ok(_) => Ok(()),
        Err(_) => Err(BundleError::Codec),
    }
}

/// Returns the packets of an inflated bundle as ranges; `Err` has the offset of the first invalid
/// packet.
pub(super) fn packets(
    inflated: &[u8],
) -> impl Iterator<Item = Result<std::ops::Range<usize>, usize>> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at;
        if start >= inflated.len() {
            return None;
        }
        let mut pos = start + 1;
        let length = (inflated[start] == 0x0a)
            .then(|| varint(inflated, &mut pos).ok())
            .flatten();
        match length {
            Some(length) if length <= (inflated.len() - pos) as u64 => {
                at = pos + length as usize;
                Some(Ok(pos..at))
            }
            _ => {
                at = inflated.len();
                Some(Err(start))
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn inflates_each_codec_and_splits() {
        let plain = [0x0a, 2, 0x50, 1, 0x0a, 0, 0x0a, 3, 1];
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        zlib.write_all(&plain).unwrap();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&plain).unwrap();
        let zstd = zstd::stream::encode_all(&plain[..], 1).unwrap();
        for (is_zstd, data) in [
            (false, zlib.finish().unwrap()),
            (false, gzip.finish().unwrap()),
            (true, zstd),
        ] {
            let mut out = Vec::new();
            inflate(is_zstd, &data, MAX_SIZE, &mut out).unwrap();
            assert_eq!(out, plain);
            let cut = inflate(is_zstd, &data, 4, &mut out);
            assert_eq!((cut, out.len()), (Err(BundleError::TooLarge), 4));
            assert!(inflate(is_zstd, &data[..data.len() / 2], MAX_SIZE, &mut out).is_err());
        }
        let found: Vec<_> = packets(&plain).collect();
        assert_eq!(found, [Ok(2..4), Ok(6..6), Err(6)]);
    }

    #[test]
    fn refuses_what_is_no_bundle() {
        let mut out = Vec::new();
        assert_eq!(
            inflate(false, b"plain text", MAX_SIZE, &mut out),
            Err(BundleError::Codec)
        );
        assert_eq!(
            inflate(true, b"plain text", MAX_SIZE, &mut out),
            Err(BundleError::Codec)
        );
    }
}
