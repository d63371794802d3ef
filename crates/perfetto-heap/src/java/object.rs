//! `HeapGraphObject` as encoded in the trace, without interpretation.

use crate::wire::{Fields, Value, WireError, varint};

/// A repeated number, packed as ART writes it, or combined from several fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Packed<'a> {
    one: &'a [u8],
    several: Option<Vec<u8>>,
}

impl<'a> Packed<'a> {
    #[inline]
    pub(super) fn add(&mut self, value: Value<'a>) {
        match value {
            Value::Bytes(bytes) if self.one.is_empty() && self.several.is_none() => {
                self.one = bytes;
            }
            other => self.add_more(other),
        }
    }

    #[cold]
    fn add_more(&mut self, value: Value<'a>) {
        let one = self.one;
        let all = self.several.get_or_insert_with(|| one.to_vec());
        match value {
            Value::Bytes(bytes) => all.extend_from_slice(bytes),
            other => {
                let mut number = other.number();
                while number >= 0x80 {
                    all.push(number as u8 | 0x80);
                    number >>= 7;
                }
                all.push(number as u8);
            }
        }
    }

    /// Returns the numbers as varints.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        match &self.several {
            Some(all) => all,
            None => self.one,
        }
    }

    /// Returns the number of values.
    ///
    /// # Errors
    /// Returns an error if a value is cut off or too long.
    #[inline]
    pub(super) fn count(&self) -> Result<u32, WireError> {
        let bytes = self.bytes();
        let ends = bytes.iter().filter(|&&byte| byte < 0x80).count();
        if ends == bytes.len() {
            return Ok(ends as u32);
        }
        let mut run = 0;
        for (at, &byte) in bytes.iter().enumerate() {
            run = if byte < 0x80 { 0 } else { run + 1 };
            if run == 10 {
                return Err(WireError {
                    at: Some(at as u32),
                    what: "number longer than ten bytes",
                });
            }
        }
        match run {
            0 => Ok(ends as u32),
            _ => Err(WireError {
                at: Some(bytes.len() as u32),
                what: "number cut off",
            }),
        }
    }

    /// Calls `each` for every number before damage.
    #[inline]
    pub(super) fn each(&self, mut each: impl FnMut(u64)) {
        let bytes = self.bytes();
        let mut pos = 0;
        while pos < bytes.len() {
            match varint(bytes, &mut pos) {
                Ok(number) => each(number),
                Err(_) => return,
            }
        }
    }
}

/// An object. Absent fields are 0 and empty, as in proto.
#[derive(Debug, Clone, Default)]
pub(super) struct Object<'a> {
    id: u64,
    id_delta: u64,
    /// ID of the `HeapGraphType`.
    pub(super) type_id: u64,
    /// Shallow size in bytes; 0 means that of its type.
    pub(super) self_size: u64,
    /// Added to every non-null reference.
    pub(super) base: u64,
    /// Names of the references if they do not follow from its type.
    pub(super) field_ids: Packed<'a>,
    /// Targets of the references, relative to `base`; 0 is null.
    pub(super) references: Packed<'a>,
    /// Absolute targets that the runtime refers to on its behalf.
    pub(super) internal: Packed<'a>,
    /// Heap of this and the following objects; absent if it is that of the previous object.
    pub(super) heap_type: Option<u64>,
    /// Values that only some objects have.
    pub(super) rare: Rare,
}

/// Values that only objects of a few classes have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Rare {
    /// `NativeAllocationRegistry.size`: bytes; bit 0 marks memory of malloc.
    pub(super) registry_size: Option<i64>,
    /// `Bitmap.mId`.
    pub(super) bitmap_id: Option<i64>,
    /// `Bitmap.mSourceId`.
    pub(super) bitmap_source_id: Option<i64>,
    /// `Bitmap.mWidth`.
    pub(super) width: Option<i32>,
    /// `Bitmap.mHeight`.
    pub(super) height: Option<i32>,
    /// `ApplicationInfo.longVersionCode`.
    pub(super) version_code: Option<i64>,
}

impl<'a> Object<'a> {
    /// Reads an object into an empty one. It is too large to be returned: a dump has millions, and
    /// copies cost as much as reading.
    ///
    /// # Errors
    /// Returns an error if it is not a valid message.
    #[inline]
    pub(super) fn read(&mut self, message: &'a [u8]) -> Result<(), WireError> {
        let object = self;
        let mut fields = Fields::new(message);
        loop {
            // Almost all fields are these, and to take them for any field costs twice as much.
            let short = match fields.next_byte() {
                Some(0x10) => Some(&mut object.type_id),
                Some(0x18) => Some(&mut object.self_size),
                Some(0x30) => Some(&mut object.base),
                Some(0x38) => Some(&mut object.id_delta),
                _ => None,
            };
            if let Some(short) = short {
                *short = fields.varint_after_byte()?;
                continue;
            }
            let Some((number, value)) = fields.next()? else {
                return Ok(());
            };
            match number {
                1 => object.id = value.number(),
                2 => object.type_id = value.number(),
                3 => object.self_size = value.number(),
                4 => object.field_ids.add(value),
                5 => object.references.add(value),
                6 => object.base = value.number(),
                7 => object.id_delta = value.number(),
                8 => object.rare.registry_size = Some(value.number() as i64),
                9 => object.heap_type = Some(value.number()),
                10 => object.internal.add(value),
                11 => object.rare.bitmap_id = Some(value.number() as i64),
                12 => object.rare.bitmap_source_id = Some(value.number() as i64),
                13 => object.rare.width = Some(value.number() as i32),
                14 => object.rare.height = Some(value.number() as i32),
                15 => object.rare.version_code = Some(value.number() as i64),
                _ => {}
            }
        }
    }

    /// Returns whether it names its fields, but not as many as it has references.
    #[inline]
    pub(super) fn contradicts_itself(&self) -> bool {
        let has_names = !self.field_ids.bytes().is_empty();
        has_names && self.field_ids.count() != self.references.count()
    }

    /// Returns the object's ID, or its difference to that of the previous object and true.
    #[inline]
    pub(super) fn id(&self) -> (u64, bool) {
        match self.id_delta {
            0 => (self.id, false),
            delta => (delta, true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_numbers_come_packed_or_one_by_one_and_are_counted() {
        // reference_object_id: packed [1, 300], then 7 alone, then packed [2].
        let message = [0x2a, 3, 1, 0xac, 2, 0x28, 7, 0x2a, 1, 2, 0x38, 5];
        let mut object = Object::default();
        object.read(&message).unwrap();
        assert_eq!(object.references.count(), Ok(4));
        let mut all = Vec::new();
        object.references.each(|n| all.push(n));
        assert_eq!(all, [1, 300, 7, 2]);
        assert_eq!((object.id(), object.rare), ((5, true), Rare::default()));
    }

    #[test]
    fn numbers_that_are_cut_or_too_long_are_no_numbers() {
        let count = |bytes: &[u8]| {
            let mut packed = Packed::default();
            packed.add(Value::Bytes(bytes));
            packed.count().map_err(|error| error.what)
        };
        assert_eq!(count(&[1, 0x80]), Err("number cut off"));
        assert_eq!(count(&[0xff; 12]), Err("number longer than ten bytes"));
        let ten = [255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 3];
        assert_eq!(count(&ten), Ok(2));
    }
}
