//! HPROF heap dumps of ART, Dalvik and HotSpot: read into a [`HeapGraph`], counted without one,
//! converted to Java SE's dialect, or copied without their contents. The analysis of a heap (leaks,
//! waste, differences) is outside this crate and starts from the graph.
//!
//! # The format
//!
//! All numbers are big-endian. The facts come from the JDK's `hprof_b_spec.h`, from ART's
//! `hprof.cc`, and from dumps of both.
//!
//! ```text
//! header   "JAVA PROFILE 1.0.2" (Android: 1.0.3), NUL, u4 bytes of an id, u8 ms since 1970
//! record   u1 tag, u4 microseconds, u4 length, body
//!   01 string        id, UTF-8 to the end of the record
//!   02 class         u4 serial, id of the class object, u4 stack, id of the name
//!   0C, 1C dump      sub-records back to back, without lengths of their own
//!     20 class       superclass, loader, size of an instance, statics, own fields with types
//!     21 instance    id, u4 stack, class, u4 bytes, values: own fields first, Object's last
//!     22, 23 arrays  id, u4 stack, u4 n, class or type, elements
//!     01 … 08, 8x    a root: the id, and by tag a thread and a frame
//!     FE heap        Android: which heap (app, zygote, image) the objects that follow are in
//! ```
//!
//! An ID is an address of 4 bytes in all Android dumps and of 8 bytes in most dumps of HotSpot.
//! Instance sizes in the file count fields without the runtime's layout: [`SizeModel`] names the
//! models, and [`Options::sizes`] chooses one. [`records`] and [`sub_records`] document the whole
//! grammar, including the output of old writers and damaged files.
//!
//! # The method
//!
//! The first pass over the dump records collects IDs, classes and roots. The second measures the
//! objects, the third fills the columns of the graph, each with several threads. The graph keeps
//! only the offset of each object in the file: fields, strings and arrays are read on request.
//! Sizes in the file are not trusted: no allocation depends on them. Damage is not an error; the
//! losses are in [`DumpFacts::losses`](heaptap_model::heap_graph::DumpFacts::losses).
//!
//! # A worked example
//!
//! A dump of a class `Box` with 12 bytes per instance, and one instance that is a root:
//!
//! ```
//! use android_hprof::{Options, read};
//! use heaptap_base::bytes::Bytes;
//! use heaptap_model::heap_graph::{ObjectId, SizeModel};
//!
//! let mut dump = b"JAVA PROFILE 1.0.2\0".to_vec();
//! dump.extend([0, 0, 0, 4]); // IDs have 4 bytes
//! dump.extend([0; 8]); // 1970
//! dump.extend([0x01, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 9, b'B', b'o', b'x']); // string 9
//! dump.extend([0x02, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 9]);
//! let class = [&[0x20, 0, 0, 0, 2][..], &[0; 28], &[0, 0, 0, 12], &[0; 6]].concat();
//! let instance = [0x21, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0]; // object 3, no fields
//! let root = [0x01, 0, 0, 0, 3, 0, 0, 0, 0]; // JNI global
//! let body = [&class[..], &instance, &root].concat();
//! dump.extend([0x0c, 0, 0, 0, 0, 0, 0, 0, body.len() as u8]);
//! dump.extend(body);
//!
//! let options = Options { sizes: Some(SizeModel::Dump), ..Options::default() };
//! let graph = read(Bytes::from(dump), &options)?;
//! let object = graph.find(ObjectId(3)).expect("the dump has it");
//! assert_eq!(graph.class(graph.class_of(object)).name, "Box");
//! assert_eq!(graph.shallow_bytes(object), 12);
//! assert!(graph.root_kind(object).is_some());
//! # Ok::<(), android_hprof::HprofError>(())
//! ```
//!
//! # Modules
//!
//! | module | owns |
//! |---|---|
//! | [`records`] | grammar of header and top-level records |
//! | [`sub_records`] | grammar of the sub-records of a heap dump |
//! | [`info`] | records, objects and roots of a dump, counted |
//! | [`convert`] | Android's dialect to Java SE's |
//! | [`strip`] | a copy without the contents of arrays |
//! | `rewrite` | copying of a file, record by record |
//! | [`histogram()`] | counts by class in one pass, without a graph |
//! | `error` | errors of dumps that cannot be read at all |
//! | `names` | string table, class names |
//! | `id_map` | maps by ID |
//! | `outline` | top level: names, stacks, positions of dump records |
//! | `scan` | reading dump records by several threads |
//! | `index`, `evidence` | first pass: IDs, classes, roots; the runtime's object layout |
//! | `classes` | hierarchy, fields, offsets of references |
//! | `sizes`, `hotspot` | shallow sizes by model |
//! | `passes`, `columns` | second and third pass: the columns of the graph |
//! | `read` | assembly of the graph |
//! | `art` | objects that exist in ART's dumps only |
//! | `filled` | reference fields that are not null |
//! | `held_classes` | classes that only their instances hold |
//! | `native` | bytes by `NativeAllocationRegistry` |
//! | `contents`, `strings`, `stacks` | fields, text, threads and stacks, read on request |
//! | [`write()`], `output` | a graph as an HPROF; its records through a buffer |
#![warn(missing_docs)]

mod art;
mod classes;
mod columns;
mod contents;
pub mod convert;
mod error;
mod evidence;
mod filled;
mod held_classes;
mod histogram;
mod hotspot;
mod id_map;
mod index;
pub mod info;
mod names;
mod native;
mod outline;
mod output;
mod passes;
mod read;
pub mod records;
mod rewrite;
mod scan;
mod sizes;
mod stacks;
mod strings;
pub mod strip;
pub mod sub_records;
mod write;

#[cfg(test)]
mod tests;

pub use error::HprofError;
pub use histogram::{Histogram, HistogramRow, histogram};
pub use outline::{dumps, lacks_array_contents};
pub use read::{Options, read};
pub use rewrite::{DamageList, Ending, RewriteError, Rewritten};
pub use write::{Unwritten, write};

#[cfg(doc)]
use heaptap_model::heap_graph::{HeapGraph, SizeModel};
