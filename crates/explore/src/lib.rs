//! Queries over one Java heap. The crate does not read files and has no server: the program reads a
//! dump, asks [`Explorer`], and sends the answers to the page as JSON.
//!
//! | module | owns |
//! |---|---|
//! | `explorer` | the heap and the indices that are built once |
//! | `ranking` | objects by retained size, of each class and of all |
//! | `sparse` | long lists of which only some objects are kept |
//! | `classes` | the table of classes, packages, superclasses, heaps, loaders |
//! | `objects`, `lists` | lists of objects |
//! | `largest` | the first rows of those lists |
//! | `holders` | paths from a class to roots, merged |
//! | `object` | one object: facts, fields, referrers, path, dominators |
//! | `search` | search in long lists |
//! | `bitmaps`, `bitmap_list` | bitmaps, equal ones, their pixels |
//! | `flame`, `merged_tree` | flame graphs: trees merged by class |
//! | `chains` | ends of long paths and chains of dominators |
//! | `top` | the largest objects of a list |
//! | `treemap` | the dominator tree, cut to what is large enough to draw |
//! | `answer` | pages, rows and sizes in answers |
//! | `page` | the page and its content policy |
//!
//! Sizes are bytes. Objects are named by their ID in the dump, in hexadecimal.

mod answer;
mod bitmap_list;
mod bitmaps;
mod chains;
mod classes;
mod explorer;
mod flame;
mod holders;
mod largest;
mod lists;
mod merged_tree;
mod object;
mod objects;
mod page;
mod ranking;
mod search;
mod sparse;
#[cfg(test)]
mod tests;
mod top;
mod treemap;

pub use answer::{Page, Size, Table};
pub use bitmaps::{BitmapFacts, BitmapRow, Picture};
pub use classes::{ClassQuery, ClassRow, ClassSort};
pub use explorer::{Explorer, Stage, TABLE_KEYS};
pub use flame::{Flame, FlameNode};
pub use holders::{HeldClass, HolderRow};
pub use largest::Largest;
pub use lists::{ObjectList, ObjectSort};
pub use merged_tree::FlameTree;
pub use object::{FieldRow, ObjectFacts, PathAnswer, PathStep, ReferrerRow};
pub use objects::{ObjectQuery, ObjectRow};
pub use page::page;
pub use search::{Found, FoundRow, SearchList, SearchQuery, SearchText};
pub use treemap::{Cell, Treemap};
