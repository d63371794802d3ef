//! Evidence of the runtime's object layout from the distances between objects: a dump of HotSpot
//! does not state whether references and class pointers are compressed.

use super::sub_records::{ObjectArray, PrimitiveArrayRecord};

/// Evidence from neighbors in the heap.
#[derive(Debug, Default, Clone)]
pub(super) struct Evidence {
    last: Option<Last>,
    /// Bitwise OR of all IDs; its lowest set bit is their common alignment.
    pub(super) id_bits: u64,
    /// Object arrays whose successor begins within the range that 8-byte elements would take.
    pub(super) compressed_references: u64,
    /// Arrays of primitives whose successor is so close that a header of 20 bytes does not fit.
    pub(super) compressed_class: u64,
    /// The same for 24 bytes: of wide class pointers, elements begin directly behind the length since
    /// JDK 23.
    pub(super) packed_arrays: u64,
    /// Arrays of primitives whose successor is exactly at the end that one of these headers implies,
    /// and not one of 16 bytes.
    pub(super) wide_class: u64,
    /// Arrays of primitives for which not even a header of 16 bytes fits.
    pub(super) compact_header: u64,
}

/// The previous array.
#[derive(Debug, Clone, Copy)]
struct Last {
    id: u64,
    payload: Payload,
}

#[derive(Debug, Clone, Copy)]
enum Payload {
    References(u64),
    Bytes(u64),
}

/// Rounds bytes up to a multiple of a power of two.
pub(super) fn aligned(bytes: u64, to: u64) -> u64 {
    bytes.saturating_add(to - 1) & !(to - 1)
}

impl Evidence {
    /// Forgets the previous object: the next one is not its neighbor, because threads read parts in
    /// any order.
    pub(super) fn begin(&mut self) {
        self.last = None;
    }

    /// Adds an object.
    #[inline]
    pub(super) fn object(&mut self, id: u64) {
        self.id_bits |= id;
        if let Some(last) = self.last.take() {
            self.neighbours(last, id);
        }
    }

    #[inline]
    pub(super) fn object_array(&mut self, array: &ObjectArray<'_>) {
        self.object(array.id);
        // The number of elements of 8 bytes each; IDs have 8 bytes where this matters.
        let count = array.elements.len() as u64 / 8;
        if count >= 4 {
            self.last = Some(Last {
                id: array.id,
                payload: Payload::References(count),
            });
        }
    }

    #[inline]
    pub(super) fn primitive_array(&mut self, array: &PrimitiveArrayRecord<'_>) {
        self.object(array.id);
        let bytes = u64::from(array.length) * array.element.bytes(8) as u64;
        self.last = Some(Last {
            id: array.id,
            payload: Payload::Bytes(bytes),
        });
    }

    #[inline]
    fn neighbours(&mut self, last: Last, id: u64) {
        // An object that was dumped twice in a row is not its own neighbor.
        let Some(distance) = id.checked_sub(last.id).filter(|&distance| distance > 0) else {
            return;
        };
        match last.payload {
            Payload::References(count) if distance < 12 + 8 * count => {
                self.compressed_references += 1;
            }
            Payload::References(_) => {}
            Payload::Bytes(bytes) => {
                let of = |header: u64| aligned(header + bytes, 8);
                let is_wide = distance == of(24) || distance == of(20) && distance != of(16);
                self.compressed_class += u64::from(distance < of(20));
                self.packed_arrays += u64::from(distance < of(24));
                self.wide_class += u64::from(is_wide);
                self.compact_header += u64::from(distance < of(16));
            }
        }
    }

    pub(super) fn merge(&mut self, other: &Evidence) {
        self.id_bits |= other.id_bits;
        self.compressed_references += other.compressed_references;
        self.compressed_class += other.compressed_class;
        self.packed_arrays += other.packed_arrays;
        self.wide_class += other.wide_class;
        self.compact_header += other.compact_header;
    }
}

#[cfg(test)]
mod tests {
    use super::Evidence;
    use crate::sub_records::PrimitiveArrayRecord;
    use heaptap_model::heap_graph::BasicType;

    fn bytes(id: u64, length: u32) -> PrimitiveArrayRecord<'static> {
        PrimitiveArrayRecord {
            id,
            stack: 0,
            length,
            element: BasicType::Byte,
            data: None,
        }
    }

    #[test]
    fn neither_a_repeated_object_nor_one_of_another_part_is_a_neighbour() {
        let mut evidence = Evidence::default();
        evidence.primitive_array(&bytes(0x1000, 100));
        evidence.primitive_array(&bytes(0x1000, 100));
        assert_eq!((evidence.compressed_class, evidence.compact_header), (0, 0));
        evidence.begin();
        evidence.object(0x1010);
        assert_eq!((evidence.compressed_class, evidence.compact_header), (0, 0));
        evidence.primitive_array(&bytes(0x2000, 100));
        evidence.object(0x2000 + 108);
        assert_eq!((evidence.compressed_class, evidence.compact_header), (1, 1));
    }
}
