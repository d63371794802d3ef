//! gzip of whole buffers: one member without name and time, so that equal input gives equal bytes.

use libdeflater::{CompressionLvl, Compressor};

/// The fastest level of libdeflate. On profiles it is about three times as fast as `gzip -1` and
/// produces fewer bytes.
const LEVEL: i32 = 1;

/// Compressor that reuses its working memory.
pub struct Gzip {
    compressor: Compressor,
}

impl Default for Gzip {
    fn default() -> Self {
        let level = CompressionLvl::new(LEVEL).expect("1 is a level of libdeflate");
        Gzip {
            compressor: Compressor::new(level),
        }
    }
}

impl Gzip {
    /// Compresses the bytes to a gzip file.
    pub fn compress(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = vec![0; self.compressor.gzip_compress_bound(bytes.len())];
        let size = self
            .compressor
            .gzip_compress(bytes, &mut out)
            .expect("the bound of the compressor suffices");
        out.truncate(size);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn inflates_to_what_went_in_and_holds_no_time() {
        let text = b"heap profile ".repeat(1000);
        let packed = Gzip::default().compress(&text);
        assert_eq!(&packed[..3], [0x1f, 0x8b, 8]);
        assert_eq!(&packed[4..8], [0; 4]);
        let mut back = Vec::new();
        flate2::read::GzDecoder::new(&packed[..])
            .read_to_end(&mut back)
            .unwrap();
        assert_eq!(back, text);
        assert_eq!(packed, Gzip::default().compress(&text));
    }
}
