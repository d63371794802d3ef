//! Pictures of bitmaps, as `am dumpheap -b` adds them to the dump. Owns minimal PNG, JPEG and WebP
//! images of one color. Each is valid, has the bitmap's size, and is the same for the same picture.

use std::io::Write as _;

/// Picture on a bitmap: one number per picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Picture(pub(super) u32);

/// Format in `-b FORMAT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PictureFormat {
    Jpeg,
    Png,
    Webp,
}

impl PictureFormat {
    /// Parses a format of the command line.
    pub(crate) fn from_word(word: &str) -> Option<PictureFormat> {
        match word {
            "png" => Some(PictureFormat::Png),
            "jpg" | "jpeg" => Some(PictureFormat::Jpeg),
            "webp" => Some(PictureFormat::Webp),
            _ => None,
        }
    }

    /// Returns the number in android.graphics.Bitmap.CompressFormat.
    pub(super) fn number(self) -> i32 {
        match self {
            PictureFormat::Jpeg => 0,
            PictureFormat::Png => 1,
            PictureFormat::Webp => 2,
        }
    }
}

/// Draws `width` by `height` pixels in a color that depends on the picture.
pub(super) fn draw(picture: Picture, width: u32, height: u32, format: PictureFormat) -> Vec<u8> {
    let [_, red, green, blue] = picture.0.wrapping_mul(0x9e_3779).to_be_bytes();
    match format {
        PictureFormat::Png => png([red, green, blue], width, height),
        PictureFormat::Jpeg => jpeg(green, width as u16, height as u16),
        PictureFormat::Webp => webp([red, green, blue], width, height),
    }
}

fn png(colour: [u8; 3], width: u32, height: u32) -> Vec<u8> {
    let [red, green, blue] = colour;
    let mut header = Vec::new();
    header.extend(width.to_be_bytes());
    header.extend(height.to_be_bytes());
    // 8 bits of red, green, blue and alpha.
    header.extend([8, 6, 0, 0, 0]);
    // Each line starts with its filter type: not filtered.
    let mut line = vec![0];
    (0..width).for_each(|_| line.extend([red, green, blue, 255]));
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    for _ in 0..height {
        // Writing to memory cannot fail.
        let _ = packed.write_all(&line);
    }
    let packed = packed.finish().expect("writing to memory does not fail");
    let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
    for (kind, data) in [
        (b"IHDR", &header),
        (b"IDAT", &packed),
        (b"IEND", &Vec::new()),
    ] {
        out.extend((data.len() as u32).to_be_bytes());
        let mut crc = flate2::Crc::new();
        crc.update(kind);
        crc.update(data);
        out.extend(kind);
        out.extend(data);
        out.extend(crc.sum().to_be_bytes());
    }
    out
}

/// Bit writer, from the highest bit of each byte on (JPEG) or from the lowest (WebP).
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    used: u32,
}

impl Bits {
    fn bit(&mut self, bit: u32, high_first: bool) {
        if self.used.is_multiple_of(8) {
            self.bytes.push(0);
        }
        let place = self.used % 8;
        let shift = if high_first { 7 - place } else { place };
        if let Some(last) = self.bytes.last_mut() {
            *last |= (bit as u8 & 1) << shift;
        }
        self.used += 1;
    }

    /// Writes `count` bits, the highest first.
    fn high(&mut self, value: u32, count: u32) {
        (0..count).rev().for_each(|i| self.bit(value >> i, true));
    }

    /// Writes `count` bits, the lowest first.
    fn low(&mut self, value: u32, count: u32) {
        (0..count).for_each(|i| self.bit(value >> i, false));
    }
}

/// Encodes a baseline JPEG in gray: each block has only its mean, which the first block sets and
/// the others repeat.
fn jpeg(grey: u8, width: u16, height: u16) -> Vec<u8> {
    let mut out = vec![0xff, 0xd8];
    let segment = |out: &mut Vec<u8>, marker: u8, body: &[u8]| {
        out.extend([0xff, marker]);
        out.extend((body.len() as u16 + 2).to_be_bytes());
        out.extend(body);
    };
    // Every coefficient is in eighths, so that the mean is the gray value itself.
    let mut quantization = vec![0];
    quantization.extend([8; 64]);
    segment(&mut out, 0xdb, &quantization);
    let (w, h) = (width.to_be_bytes(), height.to_be_bytes());
    segment(&mut out, 0xc0, &[8, h[0], h[1], w[0], w[1], 1, 1, 0x11, 0]);
    // Nine codes of four bits for the number of bits of the mean.
    let mut codes = vec![0x00, 0, 0, 0, 9];
    codes.extend([0; 12]);
    codes.extend(0..9);
    segment(&mut out, 0xc4, &codes);
    // One code of one bit: the block has no more coefficients.
    let mut codes = vec![0x10, 1];
    codes.extend([0; 15]);
    codes.push(0);
    segment(&mut out, 0xc4, &codes);
    segment(&mut out, 0xda, &[1, 1, 0, 0, 63, 0]);
    // The first mean is encoded as its difference from the middle, the others as no difference.
    // Negative differences are encoded as their complement.
    let mean = i32::from(grey) - 128;
    let length = 32 - mean.unsigned_abs().leading_zeros();
    let coded = if mean < 0 {
        mean + (1 << length) - 1
    } else {
        mean
    };
    let mut bits = Bits::default();
    bits.high(length, 4);
    bits.high(coded as u32, length);
    bits.high(0, 1);
    let blocks = u32::from(width.div_ceil(8)) * u32::from(height.div_ceil(8));
    (1..blocks).for_each(|_| bits.high(0, 4 + 1));
    while !bits.used.is_multiple_of(8) {
        bits.high(1, 1);
    }
    for byte in bits.bytes {
        out.push(byte);
        if byte == 0xff {
            out.push(0);
        }
    }
    out.extend([0xff, 0xd9]);
    out
}

/// Encodes a lossless WebP: five tables of one code each, which needs no bits, so there is no pixel
/// data.
fn webp(colour: [u8; 3], width: u32, height: u32) -> Vec<u8> {
    let [red, green, blue] = colour;
    let mut bits = Bits::default();
    bits.low(width - 1, 14);
    bits.low(height - 1, 14);
    // No alpha, version 0; no transform, no color cache, one group of tables.
    bits.low(0, 1 + 3);
    bits.low(0, 1 + 1 + 1);
    for value in [green, red, blue, 255, 0] {
        // Simple code with one symbol: eight bits if one bit is not enough.
        bits.low(1, 1);
        bits.low(0, 1);
        let wide = value > 1;
        bits.low(u32::from(wide), 1);
        bits.low(u32::from(value), if wide { 8 } else { 1 });
    }
    let mut data = vec![0x2f];
    data.extend(bits.bytes);
    let length = data.len() as u32;
    if data.len() % 2 == 1 {
        data.push(0);
    }
    let mut out = b"RIFF".to_vec();
    out.extend((data.len() as u32 + 12).to_le_bytes());
    out.extend(b"WEBPVP8L");
    out.extend(length.to_le_bytes());
    out.extend(data);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_picture_is_drawn_the_same_and_another_is_not() {
        for format in ["png", "jpeg", "webp"].map(PictureFormat::from_word) {
            let format = format.expect("a format");
            let one = draw(Picture(1), 32, 16, format);
            assert_eq!(one, draw(Picture(1), 32, 16, format));
            assert_ne!(one, draw(Picture(2), 32, 16, format));
            assert_ne!(one, draw(Picture(1), 16, 16, format));
        }
        assert_eq!(PictureFormat::from_word("gif"), None);
    }
}
