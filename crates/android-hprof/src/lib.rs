//! HPROF heap dumps of ART, Dalvik and HotSpot: read into a [`HeapGraph`], counted without one,
//! converted to Java SE's dialect, or copied without their contents. What a heap means (leaks,
//! waste, differences) is not this crate's; the graph is the start for that.
//!
//! # The format
//!
//! All numbers are big-endian. The facts are those of the JDK's `hprof_b_spec.h`, of ART's
//! `hprof.cc`, and of what their dumps show.
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
//! An id is an address, of 4 bytes in all Android dumps and of 8 in most of HotSpot's. The file has
//! sizes of instances as their fields need them, not as the runtime lays them out:
//! [`SizeModel`] names the models, and [`Options::sizes`] chooses one. [`records`] and
//! [`sub_records`] document the grammar in full, with what damaged files and old writers do.
//!
//! # The method
//!
//! The first pass over the dump records collects ids, classes and roots. The second measures, the
//! third fills the columns of the graph, each with several threads. The graph keeps only the
//! offset of each object in the file: fields, strings and arrays are read when they are asked for.
//! Sizes in the file are claims: nothing is allocated by them. Damage is not an error; the losses
//! are in [`DumpFacts::losses`](heaptap_model::heap_graph::DumpFacts::losses).
//!
//! # A worked example
//!
//! A dump of a class `Box` with 12 bytes an instance, and one instance that is a root:
//!
//! ```
//! use android_hprof::{Options, read};
//! use heaptap_model::bytes::Bytes;
//! use heaptap_model::heap_graph::{ObjectId, SizeModel};
//!
//! let mut dump = b"JAVA PROFILE 1.0.2\0".to_vec();
//! dump.extend([0, 0, 0, 4]); // ids have 4 bytes
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
//! | `rewrite` | a file written again, record by record |
//! | [`histogram()`] | counts by class in one pass, without a graph |
//! | `names` | string table, class names |
//! | `id_map` | maps by id |
//! | `outline` | top level: names, stacks, places of dump records |
//! | `scan` | reading dump records by several threads |
//! | `index`, `evidence` | first pass: ids, classes, roots; how the runtime lays out objects |
//! | `classes` | hierarchy, fields, places of references |
//! | `sizes`, `hotspot` | shallow sizes by model |
//! | `passes`, `columns` | second and third pass: the columns of the graph |
//! | `read` | the graph, put together |
//! | `art` | objects that exist in ART's dumps only |
//! | `held_classes` | classes that only their instances hold |
//! | `native` | bytes by `NativeAllocationRegistry` |
//! | `contents`, `strings`, `stacks` | fields, text, threads and stacks, read when asked |
#![warn(missing_docs)]

mod art;
mod classes;
mod columns;
mod contents;
pub mod convert;
mod evidence;
mod held_classes;
mod histogram;
mod hotspot;
mod id_map;
mod index;
pub mod info;
mod names;
mod native;
mod outline;
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

#[cfg(test)]
mod tests;

pub use histogram::{Histogram, HistogramRow, histogram};
pub use read::read;
pub use rewrite::{DamageList, Ending, Rewritten};

use heaptap_model::error::{Classified, ErrorClass, ErrorFacts};
#[cfg(doc)]
use heaptap_model::heap_graph::HeapGraph;
use heaptap_model::heap_graph::SizeModel;
use records::HeaderError;
use std::num::NonZero;

/// How to read a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// How shallow sizes come about; `None` for what fits the runtime: [`SizeModel::Dump`] for
    /// Android's, [`SizeModel::Hotspot`] for the others.
    pub sizes: Option<SizeModel>,
    /// Threads to read with; `None` for as many as the host has processors.
    pub threads: Option<NonZero<usize>>,
}

/// Why a dump cannot be read at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HprofError {
    /// It has no header.
    #[error("this is no HPROF file that can be read: {0}")]
    Header(#[from] HeaderError),
    /// Indices have 32 bits.
    #[error("the dump has too many {what}")]
    TooLarge {
        /// Bytes, objects or references.
        what: &'static str,
    },
}

impl Classified for HprofError {
    fn facts(&self) -> ErrorFacts {
        match self {
            HprofError::Header(header) => ErrorFacts::new(ErrorClass::BadInput, "hprof-header")
                .with_help(match header {
                    HeaderError::CutShort => {
                        "the file was cut off at its very beginning; fetch or make the dump again"
                    }
                    _ => {
                        "heaptap reads what ART (`heaptap dump --hprof`), HotSpot (`jmap -dump`) \
                         and converters of Android's dumps write"
                    }
                }),
            HprofError::TooLarge { .. } => ErrorFacts::new(ErrorClass::BadInput, "hprof-too-large")
                .with_help(
                    "heaptap numbers objects and references with 32 bits each; `heaptap hprof \
                     info` counts larger dumps",
                ),
        }
    }
}
