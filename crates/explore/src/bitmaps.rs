//! Bitmaps: the list with groups of equal ones, and their pixels.

use crate::answer::{Page, Table};
use crate::bitmap_list::Listed;
use crate::explorer::Explorer;
use crate::objects::ObjectRow;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use heaptap_analyze::bitmaps::{self, BitmapId, Pixels};
use heaptap_model::heap_graph::ObjectIndex;
use serde::Serialize;

/// Facts about a bitmap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BitmapFacts {
    /// Pixels; 0 if unknown.
    pub width: u32,
    /// Pixels; 0 if unknown.
    pub height: u32,
    /// Dots per inch, if known.
    pub density: Option<u32>,
    pub pixel_bytes: u64,
    /// Whether `pixel_bytes` is an estimate.
    pub is_estimated: bool,
    /// Location of the pixels: `java`, `native`, or what the bitmap's ID says.
    pub storage: &'static str,
    /// Format of the pixels, such as `RGB_565` or `png`; `None` if the dump does not have them.
    pub format: Option<&'static str>,
    /// Number of bitmaps with the same pixels, itself among them.
    pub equal: u64,
    /// Number that they share; `None` if there are no others.
    pub group: Option<usize>,
}

/// Bitmap in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BitmapRow {
    #[serde(flatten)]
    pub row: ObjectRow,
    pub bitmap: BitmapFacts,
    /// Immediate dominator.
    pub held_by: Option<ObjectRow>,
}

/// Pixels of a bitmap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Picture {
    pub width: u32,
    pub height: u32,
    /// `rgba`: four bytes a pixel, not multiplied by alpha. Otherwise an image file: `png`, `jpeg` or
    /// `webp`.
    pub format: &'static str,
    /// The bytes in Base64.
    pub data: String,
}

/// Maximum width and height of a picture that is sent.
pub const MAX_SIDE: u32 = 16_384;
/// Maximum width and height of uncompressed pixels that are sent; larger ones are thinned out.
const MAX_RAW_SIDE: u32 = 4096;

impl Explorer {
    /// Returns a part of the bitmaps, largest first: all, or those with the same pixels as one.
    pub fn bitmaps(&self, equal_to: Option<ObjectIndex>, page: Page) -> Table<BitmapRow> {
        let list = self.bitmap_list();
        let group = equal_to.map(|object| list.get(object).and_then(|row| row.group));
        let is_wanted = |row: &&Listed| match group {
            None => true,
            Some(group) => {
                Some(row.bitmap.object) == equal_to || group.is_some() && row.group == group
            }
        };
        let wanted: Vec<&Listed> = list.rows().iter().filter(is_wanted).collect();
        Table {
            total: wanted.len() as u64,
            rows: page
                .of(&wanted)
                .iter()
                .map(|row| self.bitmap_row(row))
                .collect(),
        }
    }

    /// Returns the facts about a reachable bitmap; `None` for other objects.
    pub fn bitmap(&self, object: ObjectIndex) -> Option<BitmapFacts> {
        // Most objects need no list.
        let class = self.graph().class_of(object);
        if !bitmaps::is_bitmap(self.graph(), class) {
            return None;
        }
        Some(self.bitmap_facts(self.bitmap_list().get(object)?))
    }

    /// Returns the pixels of a bitmap with at most `most` columns and rows; `None` if the dump does
    /// not have them, they cannot be shown, or contents are hidden. Image files are always whole.
    pub fn picture(&self, object: ObjectIndex, most: u32) -> Option<Picture> {
        if !self.shows_contents() {
            return None;
        }
        let bitmap = self.bitmap_list().get(object)?.bitmap;
        match bitmap.read_pixels(self.graph())? {
            Pixels::Raw(raw) => {
                let most = most.clamp(1, MAX_RAW_SIDE);
                let step = raw.width.max(raw.height).div_ceil(most);
                let (width, height, rgba) = raw.rgba(step);
                Some(Picture {
                    width,
                    height,
                    format: "rgba",
                    data: BASE64_STANDARD.encode(rgba),
                })
            }
            // The browser decodes it, so its size has to be known before.
            Pixels::Encoded { encoding, bytes } => {
                let (width, height) = encoding.size(bytes)?;
                let is_fitting = (width, height) == (bitmap.width, bitmap.height);
                (is_fitting && width.max(height) <= MAX_SIDE).then(|| Picture {
                    width,
                    height,
                    format: encoding.name(),
                    data: BASE64_STANDARD.encode(bytes),
                })
            }
        }
    }

    fn bitmap_row(&self, listed: &Listed) -> BitmapRow {
        let object = listed.bitmap.object;
        let holder = self.dominators().idom(object);
        BitmapRow {
            row: self.row(object),
            bitmap: self.bitmap_facts(listed),
            held_by: holder.map(|holder| self.row(holder)),
        }
    }

    fn bitmap_facts(&self, listed: &Listed) -> BitmapFacts {
        let bitmap = &listed.bitmap;
        let pixels = bitmap.read_pixels(self.graph());
        BitmapFacts {
            width: bitmap.width,
            height: bitmap.height,
            density: bitmap.density,
            pixel_bytes: bitmap.bytes,
            is_estimated: bitmap.is_estimated,
            storage: match bitmap.id.and_then(BitmapId::storage) {
                Some(storage) => storage,
                None if bitmap.is_native => "native",
                None => "java",
            },
            format: pixels.map(|pixels| match pixels {
                Pixels::Raw(raw) => raw.config.name(),
                Pixels::Encoded { encoding, .. } => encoding.name(),
            }),
            equal: listed.equal,
            group: listed.group.filter(|_| listed.equal > 1),
        }
    }
}
