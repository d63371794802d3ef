//! The Java heap at one moment, whatever it was dumped by: objects, classes, references, roots.
//! One compact graph behind Perfetto's heap graphs and HPROF files, and what can be computed on
//! it alone: what is reachable, by which shortest path, and who dominates whom. Knows no wire
//! format, no file, and nothing of Android's classes.
//!
//! Columns of plain numbers, 32-bit indices: objects are numbered in ascending order of the ids
//! that the dump gives them, so that "in order of ids" is "in order of indices".
//!
//! | file | owns |
//! |---|---|
//! | `ids` | object ids and the numbers given to them |
//! | `id_set` | the set of all ids, numbered |
//! | `class` | classes, their hierarchy and fields |
//! | `class_column` | the class of each object |
//! | `root` | why an object is a root |
//! | `contents` | what only the source knows of an object: fields by name, arrays, threads |
//! | `facts` | what is known of a dump as a whole |
//! | `graph` | the columns, and how they are asked; where contents come from |
//! | `build` | a graph from objects that come in any order |
//! | `follow` | which references keep an object alive |
//! | `edges` | what a walk over all objects goes along |
//! | `object_set` | a bit for each object |
//! | `reach` | what is reachable, and the shortest paths to it |
//! | `garbage` | roots for what no root reaches |
//! | `referrers` | who refers to whom |
//! | `dominators` | the dominator tree, retained sizes |

mod build;
mod class;
mod class_column;
mod contents;
mod dominators;
mod edges;
mod facts;
mod follow;
mod garbage;
mod graph;
mod id_set;
mod ids;
mod object_set;
mod out_of_memory;
mod reach;
mod referrers;
mod root;

pub use build::{BuildError, GraphBuilder, NewObject};
pub use class::{BasicType, Class, ClassKind, FieldDecl};
pub use class::{DEEPEST, upwards};
pub use contents::{
    AllocationSite, Field, FieldRenamer, OriginalField, PrimitiveArray, ReferenceName, ThreadFacts,
    Value,
};
pub use dominators::{Dominators, Retained};
pub use facts::{DumpFacts, DumpSource, Losses, SizeModel};
pub use follow::{Follow, ReferenceKind};
pub use graph::{Contents, HeapGraph, HeapKind, NoContents, Referent};
pub use id_set::{Ids, IdsBuilder};
pub use ids::{ClassIndex, ObjectId, ObjectIndex};
pub use object_set::ObjectSet;
pub use out_of_memory::{OutOfMemory, ThrownFrame};
pub use reach::{Reachable, RootRank, ShortestPaths, Walk};
pub use referrers::Referrers;
pub use root::{Root, RootKind};

#[cfg(test)]
mod tests;
