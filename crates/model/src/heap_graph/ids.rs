//! Object ids as dumps have them (addresses, mostly), and the dense numbers given to objects.

use std::fmt;

/// What the dump calls an object: in an HPROF its address, in a heap graph an address or a hash
/// of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ObjectId(pub u64);

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:x}", self.0)
    }
}

/// The number of an object in its graph: 0 for the smallest id, and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ObjectIndex(pub u32);

impl ObjectIndex {
    /// No object: a null reference, or nobody.
    pub const NONE: ObjectIndex = ObjectIndex(u32::MAX);

    /// For slices by object.
    pub fn at(self) -> usize {
        self.0 as usize
    }
}

/// The number of a class in its graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ClassIndex(pub u32);

impl ClassIndex {
    /// For slices by class.
    pub fn at(self) -> usize {
        self.0 as usize
    }
}
