//! Leaks: objects whose lifecycle has ended but that are still held, each with the path that holds
//! it. The rules use the (deobfuscated) names of classes and fields in the dump. Objects without
//! the required data stay unknown.
//!
//! | file | owns |
//! |---|---|
//! | `kinds` | classification of objects by Android class |
//! | `live` | state of the platform: living activities and services, the main thread |
//! | `rules` | rules that judge an object by its fields |
//! | `verdict` | leaking, in use or unknown, with certainty and reason |
//! | `walk` | the best strong path to each |
//! | `known_leaks` | references through which Android, manufacturers and libraries leak |
//! | `leak` | the leaks of a heap, in groups by cause |
//! | `steps` | paths by field names, without the internals of collections |
//! | `signature` | statuses along a path, suspected references, one signature per cause |
//! | `retained` | sizes kept by leaks |
//! | `advice` | advice for developers, by the ways in `ways.txt` |
//! | `find` | the whole search |

mod advice;
mod find;
mod kinds;
mod known_leaks;
mod leak;
mod live;
mod retained;
mod rules;
mod signature;
mod steps;
mod verdict;
mod walk;

#[cfg(test)]
pub(super) mod tests;

pub use find::{Judge, find, find_with};
pub use kinds::Kind;
pub use known_leaks::Known;
pub use leak::{Leak, LeakGroup, Leaks, Nested, Unheld};
pub use steps::{Reference, Shape, Step};
pub use verdict::{Certainty, Status, Verdict};
