//! Distinct stacks in one flat array. A frame is its ID + 1 as a varint (LEB128): one or two bytes per
//! frame, no allocation per frame or stack. Neither frames nor their order have a meaning here.

mod frames;
mod position;
mod stacks;

pub use frames::{first, last, pack, skip};
pub use position::Position;
pub use stacks::{PackedStacks, Unnumbered};
