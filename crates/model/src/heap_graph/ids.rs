//! Object IDs of dumps (mostly addresses), and the dense numbers of objects.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// The dump's ID of an object: in an HPROF its address, in a heap graph an address or a hash of
/// one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ObjectId(pub u64);

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:x}", self.0)
    }
}

/// As its text.
impl Serialize for ObjectId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for ObjectId {
    type Err = ParseIntError;

    /// Parses `0x1f` or `1f`, as dumps and logs write IDs; decimal digits alone are hexadecimal too.
    fn from_str(text: &str) -> Result<ObjectId, ParseIntError> {
        let digits = text.strip_prefix("0x").or(text.strip_prefix("0X"));
        u64::from_str_radix(digits.unwrap_or(text), 16).map(ObjectId)
    }
}

/// The number of an object in its graph: 0 for the smallest ID, and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ObjectIndex(pub u32);

impl ObjectIndex {
    /// No object, such as a null reference.
    pub const NONE: ObjectIndex = ObjectIndex(u32::MAX);

    /// Returns the index into slices by object.
    pub fn at(self) -> usize {
        self.0 as usize
    }
}

/// The number of a class in its graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ClassIndex(pub u32);

impl ClassIndex {
    /// Returns the index into slices by class.
    pub fn at(self) -> usize {
        self.0 as usize
    }
}
