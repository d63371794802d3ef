//! Pictures of bitmaps, as `am dumpheap -b` has them drawn into the dump. Owns a PNG of one
//! colour.

use std::io::Write as _;

use super::structures::Picture;

/// `-b FORMAT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PictureFormat {
    Png,
}

impl PictureFormat {
    /// android.graphics.Bitmap.CompressFormat's number.
    pub(super) fn number(self) -> i32 {
        match self {
            PictureFormat::Png => 1,
        }
    }
}

/// `width` by `height` pixels in a colour of the picture's own.
pub(super) fn draw(picture: Picture, width: u32, height: u32, format: PictureFormat) -> Vec<u8> {
    match format {
        PictureFormat::Png => png(picture, width, height),
    }
}

fn png(picture: Picture, width: u32, height: u32) -> Vec<u8> {
    let [_, red, green, blue] = picture.0.wrapping_mul(0x9e_3779).to_be_bytes();
    let mut header = Vec::new();
    header.extend(width.to_be_bytes());
    header.extend(height.to_be_bytes());
    // 8 bits of red, green, blue and alpha.
    header.extend([8, 6, 0, 0, 0]);
    // Each line says first that it is not filtered.
    let mut line = vec![0];
    (0..width).for_each(|_| line.extend([red, green, blue, 255]));
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    for _ in 0..height {
        // Writing into memory can't fail.
        let _ = packed.write_all(&line);
    }
    let packed = packed.finish().unwrap_or_else(|_| Vec::new());
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
