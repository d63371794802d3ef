//! The Java heap at one time, from any kind of dump: objects, classes, references, roots. One
//! compact graph for Perfetto's heap graphs and HPROF files, and its algorithms: reachability,
//! shortest paths and dominators. Does not depend on wire formats, files or Android's classes.
//!
//! Columns of plain numbers with 32-bit indices: objects are numbered in ascending order of the
//! dump's IDs, so that "in order of IDs" means "in order of indices".
//!
//! | file | owns |
//! |---|---|
//! | `ids` | object IDs and the numbers of objects |
//! | `id_set` | the set of all IDs, numbered |
//! | `class` | classes, their hierarchy and fields |
//! | `class_column` | the class of each object |
//! | `shallow_sizes` | the shallow size of each object |
//! | `positions` | positions by object: of references, and of records in the file |
//! | `root` | roots and their kinds |
//! | `contents` | facts that only the source has: fields by name, arrays, threads |
//! | `facts`, `out_of_memory` | facts about a dump as a whole, and the error that caused it |
//! | `graph` | the columns and their accessors; the source of contents |
//! | `build` | a graph from objects in any order |
//! | `follow` | the references that keep an object alive |
//! | `edges` | the edges of a walk over all objects |
//! | `object_set` | a bit for each object |
//! | `reach` | reachability and shortest paths |
//! | `garbage` | roots for unreachable objects |
//! | `referrers` | reversed references |
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
mod positions;
mod reach;
mod referrers;
mod root;
mod shallow_sizes;

pub use build::{BuildError, GraphBuilder, NewObject};
pub use class::{BasicType, Class, ClassKind, FieldDecl};
pub use class::{MAX_DEPTH, MAX_NAME_BYTES, name_of, upwards};
pub use contents::{
    AllocationSite, Field, FieldRenamer, OriginalField, PrimitiveArray, ReferenceField,
    ReferenceName, ThreadFacts, Value,
};
pub use dominators::{Dominators, Retained};
pub use facts::{Device, DumpFacts, DumpSource, Losses, SizeModel, UNKNOWN_NATIVE_SIZE};
pub use follow::{Follow, ReferenceKind};
pub use graph::{Contents, HeapGraph, HeapKind, NoContents, Referent};
pub use id_set::{Ids, IdsBuilder};
pub use ids::{ClassIndex, ObjectId, ObjectIndex};
pub use object_set::{ObjectSet, SharedObjectSet};
pub use out_of_memory::{OutOfMemory, ThrownFrame};
pub use positions::Positions;
pub use reach::{PathReferences, Reachable, RootRank, ShortestPaths, Walk};
pub use referrers::Referrers;
pub use root::{Root, RootKind};
pub use shallow_sizes::ShallowSizes;

#[cfg(test)]
mod tests;
