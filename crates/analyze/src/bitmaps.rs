//! Bitmaps: their sizes and pixels.
//!
//! | Android | location of the pixels |
//! |---|---|
//! | to 7.1 | in the array `mBuffer` |
//! | 8 and later | native; size from the registry that frees them, otherwise width × height × 4 |
//! | 15 and later, `am dumpheap -b` | compressed, in the static `Bitmap.dumpData`, by `mNativePtr` |

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::lookup;
use heaptap_model::heap_graph::{
    BasicType, ClassIndex, HeapGraph, ObjectIndex, PrimitiveArray, Value,
};

/// Class of bitmaps.
pub const BITMAP: &str = "android.graphics.Bitmap";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bitmap {
    pub object: ObjectIndex,
    /// Pixels; 0 if unknown.
    pub width: u32,
    /// Pixels; 0 if unknown.
    pub height: u32,
    /// Dots per inch, if known.
    pub density: Option<u32>,
    /// Bytes of its pixels.
    pub bytes: u64,
    /// Whether the pixels are native rather than in the Java heap.
    pub is_native: bool,
    /// Whether `bytes` is an estimate because the dump does not contain the size.
    pub is_estimated: bool,
    /// ID, since Android 16.
    pub id: Option<BitmapId>,
    /// Array with the pixels, if the dump has them.
    pub pixels: Option<ObjectIndex>,
    /// Whether colors are multiplied by alpha.
    is_premultiplied: bool,
}

/// ID of a bitmap: `pid * 10^7 + storage * 10^6 + counter`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BitmapId(pub i64);

impl BitmapId {
    /// Returns the PID of the process that created the bitmap.
    pub fn pid(self) -> i64 {
        self.0 / 10_000_000
    }

    /// Returns the location of the pixels, if it is a known one.
    pub fn storage(self) -> Option<&'static str> {
        const ALL: [&str; 4] = ["wrapped_pixel_ref", "heap", "ashmem", "hardware"];
        let at = usize::try_from(self.0 / 1_000_000 % 10).ok()?;
        ALL.get(at).copied()
    }
}

/// Reads the bitmaps of a heap.
pub struct BitmapReader<'g> {
    graph: &'g HeapGraph,
    /// By native pointer.
    dumped: HashMap<i64, ObjectIndex>,
}

impl<'g> BitmapReader<'g> {
    /// Finds the pixels that `am dumpheap -b` added.
    pub fn new(graph: &'g HeapGraph) -> BitmapReader<'g> {
        BitmapReader {
            graph,
            dumped: dumped_pixels(graph),
        }
    }

    /// Returns the arrays that `am dumpheap -b` added.
    pub fn dumped(&self) -> impl Iterator<Item = ObjectIndex> + '_ {
        self.dumped.values().copied()
    }

    /// Returns the facts about a bitmap; `None` if it was recycled, which frees its pixels.
    pub fn read(&self, object: ObjectIndex) -> Option<Bitmap> {
        let graph = self.graph;
        let get = |name| lookup::get(graph, object, BITMAP, name);
        let number = |name| {
            let value = get(name).and_then(Value::integer);
            value.and_then(|n| u32::try_from(n).ok()).filter(|&n| n > 0)
        };
        let flag = |name| get(name).and_then(Value::boolean);
        let native_bytes = graph.native_bytes(object);
        if flag("mRecycled") == Some(true) && native_bytes == 0 {
            return None;
        }
        let width = number("mWidth").unwrap_or(0);
        let height = number("mHeight").unwrap_or(0);
        let buffer = get("mBuffer").and_then(Value::object);
        // Only the pixels count, because array headers differ between runtimes.
        let in_heap = buffer.map(|array| match array_at(graph, array) {
            Some(array) => u64::from(array.length) * array.element.bytes(8) as u64,
            None => graph.shallow_bytes(array),
        });
        let guess = u64::from(width) * u64::from(height) * 4;
        let pointer = || get("mNativePtr").and_then(Value::integer);
        Some(Bitmap {
            object,
            width,
            height,
            density: number("mDensity"),
            bytes: match in_heap {
                Some(bytes) => bytes,
                None if native_bytes > 0 => native_bytes,
                None => guess,
            },
            is_native: in_heap.is_none(),
            is_estimated: in_heap.is_none() && native_bytes == 0,
            id: get("mId").and_then(Value::integer).map(BitmapId),
            pixels: buffer.or_else(|| self.dumped.get(&pointer()?).copied()),
            is_premultiplied: flag("mRequestPremultiplied")
                .or_else(|| flag("mIsPremultiplied"))
                .unwrap_or(true),
        })
    }
}

impl Bitmap {
    /// Returns the pixels, if the dump has them in a format that can be shown.
    pub fn read_pixels<'g>(&self, graph: &'g HeapGraph) -> Option<Pixels<'g>> {
        let array = array_at(graph, self.pixels?)?;
        let bytes = array.bytes.filter(|_| array.element == BasicType::Byte)?;
        if !self.is_native {
            return RawPixels::new(self, bytes).map(Pixels::Raw);
        }
        let encoding = Encoding::from_bytes(bytes)?;
        Some(Pixels::Encoded { encoding, bytes })
    }
}

/// Returns whether a class is `Bitmap` or extends it.
pub fn is_bitmap(graph: &HeapGraph, class: ClassIndex) -> bool {
    graph.is_a(class, BITMAP)
}

/// Returns for each bitmap the first one with equal pixels of the same width and height; `None` if the
/// dump does not have its pixels.
pub fn equal(graph: &HeapGraph, bitmaps: &[Bitmap]) -> Vec<Option<Equal>> {
    let mut by_array: HashMap<ObjectIndex, usize> = HashMap::new();
    let mut by_pixels: HashMap<(u32, u32, &[u8]), usize> = HashMap::new();
    let bitmaps = bitmaps.iter().enumerate();
    let equal = bitmaps.map(|(at, bitmap)| {
        let array = bitmap.pixels?;
        let bytes = array_at(graph, array)?.bytes?;
        match by_array.entry(array) {
            Entry::Occupied(known) => Some(Equal {
                first: *known.get(),
                is_shared: true,
            }),
            Entry::Vacant(new) => {
                let key = (bitmap.width, bitmap.height, bytes);
                let first = *by_pixels.entry(key).or_insert(at);
                new.insert(first);
                Some(Equal {
                    first,
                    is_shared: false,
                })
            }
        }
    });
    equal.collect()
}

/// Bitmap compared with those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Equal {
    /// Index of the first bitmap with equal pixels; its own index if there is none before it.
    pub first: usize,
    /// Whether it shares the array of a bitmap before it.
    pub is_shared: bool,
}

/// Pixels of a bitmap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pixels<'g> {
    /// Image file.
    Encoded { encoding: Encoding, bytes: &'g [u8] },
    /// Array of colors.
    Raw(RawPixels<'g>),
}

/// Format of an image file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Jpeg,
    Png,
    Webp,
}

impl Encoding {
    /// Returns the format, from the first bytes of the file.
    pub fn from_bytes(bytes: &[u8]) -> Option<Encoding> {
        match bytes {
            [0x89, b'P', b'N', b'G', ..] => Some(Encoding::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Encoding::Jpeg),
            [
                b'R',
                b'I',
                b'F',
                b'F',
                _,
                _,
                _,
                _,
                b'W',
                b'E',
                b'B',
                b'P',
                ..,
            ] => Some(Encoding::Webp),
            _ => None,
        }
    }

    /// Returns the name: `png`.
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Jpeg => "jpeg",
            Encoding::Png => "png",
            Encoding::Webp => "webp",
        }
    }

    /// Returns width and height in the header of a file, if it has them.
    pub fn size(self, bytes: &[u8]) -> Option<(u32, u32)> {
        match self {
            Encoding::Png => Some((u32_at(bytes, 16)?, u32_at(bytes, 20)?)),
            Encoding::Jpeg => jpeg_size(bytes),
            Encoding::Webp => webp_size(bytes),
        }
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_be_bytes(*word))
}

/// Returns the size in the frame header of a JPEG (ITU-T T.81, B.2.2).
fn jpeg_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        let [0xff, marker, length @ ..] = *bytes.get(at..)?.first_chunk::<4>()? else {
            return None;
        };
        // Frame headers, but not tables of Huffman codes, arithmetic conditioning, or JPG.
        if matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc) {
            let [high, low, wide, narrow] = *bytes.get(at + 5..)?.first_chunk::<4>()?;
            let number = |a, b| u32::from(u16::from_be_bytes([a, b]));
            return Some((number(wide, narrow), number(high, low)));
        }
        at += 2 + usize::from(u16::from_be_bytes(length));
    }
}

/// Returns the size in the first chunk of a WebP (RFC 9649, 2.5 to 2.7).
fn webp_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let data = bytes.get(20..)?;
    let u24 = |at: usize| {
        let [a, b, c] = *data.get(at..)?.first_chunk::<3>()?;
        Some(u32::from_le_bytes([a, b, c, 0]))
    };
    match bytes.get(12..16)? {
        b"VP8X" => Some((u24(4)? + 1, u24(7)? + 1)),
        b"VP8L" => {
            let bits = u32::from_le_bytes(*data.get(1..)?.first_chunk()?);
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        b"VP8 " => {
            let [a, b, c, d] = *data.get(6..)?.first_chunk::<4>()?;
            let number = |low, high| u32::from(u16::from_le_bytes([low, high]) & 0x3fff);
            Some((number(a, b), number(c, d)))
        }
        _ => None,
    }
}

/// Colors in the Java heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawPixels<'g> {
    pub width: u32,
    pub height: u32,
    pub config: Config,
    is_premultiplied: bool,
    bytes: &'g [u8],
}

/// Format of a color. The dump does not have it: it follows from the bytes of a pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Config {
    Alpha8,
    /// Little-endian.
    Rgb565,
    /// Red, green, blue, alpha.
    Argb8888,
}

impl Config {
    /// Returns the name in `Bitmap.Config`.
    pub fn name(self) -> &'static str {
        match self {
            Config::Alpha8 => "ALPHA_8",
            Config::Rgb565 => "RGB_565",
            Config::Argb8888 => "ARGB_8888",
        }
    }
}

impl<'g> RawPixels<'g> {
    fn new(bitmap: &Bitmap, bytes: &'g [u8]) -> Option<RawPixels<'g>> {
        let pixels = u64::from(bitmap.width) * u64::from(bitmap.height);
        // A bitmap that was reconfigured has room to spare.
        let config = match (bytes.len() as u64).checked_div(pixels)? {
            0 => return None,
            1 => Config::Alpha8,
            2 | 3 => Config::Rgb565,
            _ => Config::Argb8888,
        };
        Some(RawPixels {
            width: bitmap.width,
            height: bitmap.height,
            config,
            is_premultiplied: bitmap.is_premultiplied,
            bytes,
        })
    }

    /// Returns every `step`th column and row: width, height, and red, green, blue and alpha of each
    /// pixel, not multiplied by alpha.
    pub fn rgba(&self, step: u32) -> (u32, u32, Vec<u8>) {
        let step = step.max(1);
        let (width, height) = (self.width.div_ceil(step), self.height.div_ceil(step));
        let mut rgba = Vec::new();
        for y in 0..u64::from(height) {
            for x in 0..u64::from(width) {
                let at = (y * u64::from(self.width) + x) * u64::from(step);
                rgba.extend(self.color(at as usize));
            }
        }
        (width, height, rgba)
    }

    /// Returns the color of a pixel.
    fn color(&self, at: usize) -> [u8; 4] {
        match self.config {
            Config::Alpha8 => [0, 0, 0, self.bytes[at]],
            Config::Rgb565 => {
                let word = u16::from_le_bytes([self.bytes[2 * at], self.bytes[2 * at + 1]]);
                let wide = |value: u16, bits: u32| {
                    let value = value & ((1 << bits) - 1);
                    (value << (8 - bits) | value >> (2 * bits - 8)) as u8
                };
                [wide(word >> 11, 5), wide(word >> 5, 6), wide(word, 5), 255]
            }
            Config::Argb8888 => {
                let bytes = &self.bytes[4 * at..4 * at + 4];
                let alpha = bytes[3];
                let color = |value: u8| match alpha {
                    1..=254 if self.is_premultiplied => {
                        let whole = u32::from(value) * 255 + u32::from(alpha) / 2;
                        (whole / u32::from(alpha)).min(255) as u8
                    }
                    _ => value,
                };
                [color(bytes[0]), color(bytes[1]), color(bytes[2]), alpha]
            }
        }
    }
}

fn array_at(graph: &HeapGraph, array: ObjectIndex) -> Option<PrimitiveArray<'_>> {
    graph.contents().primitive_array(graph, array)
}

/// Returns the arrays with compressed pixels, by the native pointer of their bitmap.
fn dumped_pixels(graph: &HeapGraph) -> HashMap<i64, ObjectIndex> {
    let mut all = HashMap::new();
    let class = graph
        .classes()
        .iter()
        .position(|class| class.shown() == BITMAP && class.object.is_some());
    let class = class.map(|at| ClassIndex(at as u32));
    let data = class.and_then(|class| lookup::of_class(graph, class, "dumpData")?.object());
    let Some(data) = data else {
        return all;
    };
    let class = graph.class(graph.class_of(data)).shown();
    let get = |name| lookup::get(graph, data, class, name);
    let object = |name| get(name).and_then(Value::object);
    let natives = object("natives").and_then(|array| {
        let array = graph.contents().primitive_array(graph, array)?;
        Some(array.bytes?.as_chunks::<8>().0)
    });
    let count = get("count").and_then(Value::integer);
    let (Some(natives), Some(buffers), Some(count)) = (natives, object("buffers"), count) else {
        return all;
    };
    let most = usize::try_from(count).unwrap_or(0);
    super::fields::visit(graph, buffers, |field| {
        let at = field.element.map_or(usize::MAX, |at| at as usize);
        if at >= most {
            return std::ops::ControlFlow::Break(());
        }
        if let (Some(pointer), Value::Object(buffer)) = (natives.get(at), field.value) {
            all.insert(i64::from_be_bytes(*pointer), buffer);
        }
        std::ops::ControlFlow::Continue(())
    });
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_tell_process_and_storage() {
        let id = BitmapId(123_452_000_017);
        assert_eq!((id.pid(), id.storage()), (12_345, Some("ashmem")));
        assert_eq!(BitmapId(57_000_000).storage(), None);
        assert_eq!(BitmapId(-1_000_000).storage(), None);
    }

    fn raw(width: u32, height: u32, bytes: &[u8], is_premultiplied: bool) -> Option<RawPixels<'_>> {
        let bitmap = Bitmap {
            object: ObjectIndex(0),
            width,
            height,
            density: None,
            bytes: bytes.len() as u64,
            is_native: false,
            is_estimated: false,
            id: None,
            pixels: None,
            is_premultiplied,
        };
        RawPixels::new(&bitmap, bytes)
    }

    #[test]
    fn colors_are_those_of_each_config() {
        let rgba = |bytes: &[u8], is_premultiplied| {
            let raw = raw(1, 1, bytes, is_premultiplied).expect("pixels");
            let (width, height, rgba) = raw.rgba(1);
            assert_eq!((width, height), (1, 1));
            (raw.config.name(), rgba)
        };
        assert_eq!(rgba(&[9], true), ("ALPHA_8", vec![0, 0, 0, 9]));
        // 11111 000000 10000, low byte first.
        let half_blue = rgba(&[0b0001_0000, 0b1111_1000], true);
        assert_eq!(half_blue, ("RGB_565", vec![255, 0, 132, 255]));
        assert_eq!(rgba(&[0xe0, 7], true).1, [0, 255, 0, 255]);
        let color = [10, 64, 128, 128];
        assert_eq!(rgba(&color, true), ("ARGB_8888", vec![20, 128, 255, 128]));
        assert_eq!(rgba(&color, false).1, color);
        assert_eq!(rgba(&[1, 2, 3, 0], true).1, [1, 2, 3, 0]);
    }

    #[test]
    fn arrays_too_small_for_the_size_have_no_pixels() {
        assert_eq!(raw(2, 2, &[0; 3], true), None);
        assert_eq!(raw(0, 2, &[0; 3], true), None);
        assert_eq!(raw(u32::MAX, u32::MAX, &[0; 3], true), None);
        // After `reconfigure`, the array is larger than needed.
        let spare = raw(2, 1, &[7; 11], true).expect("pixels");
        assert_eq!(spare.config, Config::Argb8888);
        assert_eq!(spare.rgba(1).2.len(), 8);
    }

    #[test]
    fn small_pictures_are_every_other_pixel() {
        let bytes: Vec<u8> = (0..15).collect();
        let raw = raw(5, 3, &bytes, true).expect("pixels");
        let (width, height, rgba) = raw.rgba(2);
        let alphas: Vec<u8> = rgba.iter().skip(3).step_by(4).copied().collect();
        assert_eq!((width, height), (3, 2));
        assert_eq!(alphas, [0, 2, 4, 10, 12, 14]);
        assert_eq!(raw.rgba(9).2.len(), 4);
    }

    #[test]
    fn sizes_are_in_the_headers_of_files() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x07\0\0\x01\0";
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc4\0\x02\xff\xc2\0\x11\x08\0\x05\x01\0";
        let lossless = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\x06\xc0\x3f\0";
        let extended = b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\x06\0\0\xff\0\0";
        let lossy = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x07\0\0\x01";
        for (file, encoding, size) in [
            (png.as_slice(), Encoding::Png, (7, 256)),
            (jpeg, Encoding::Jpeg, (256, 5)),
            (lossless, Encoding::Webp, (7, 256)),
            (extended, Encoding::Webp, (7, 256)),
            (lossy, Encoding::Webp, (7, 256)),
        ] {
            assert_eq!(Encoding::from_bytes(file), Some(encoding));
            assert_eq!(encoding.size(file), Some(size), "{encoding:?}");
            // A file that was cut has no size, and does no harm.
            for end in 0..file.len() {
                assert_eq!(encoding.size(&file[..end]), None, "{encoding:?} {end}");
            }
        }
        assert_eq!(Encoding::from_bytes(b"GIF89a"), None);
    }
}
