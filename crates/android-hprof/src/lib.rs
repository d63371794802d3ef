//! HPROF files: what ART, Dalvik and HotSpot write. Reads them into a
//! [`HeapGraph`], and rewrites them record by record.
//!
//! | file | owns |
//! |---|---|
//! | `records` | grammar of header and top-level records |
//! | `sub_records` | grammar of what a heap dump holds |
//! | `names` | string table, class names |
//! | `id_map` | maps by id |
//! | `outline` | top level: names, stacks, where dump records lie |
//! | `scan` | reading dump records by several threads |
//! | `index`, `evidence` | first pass: ids, classes, roots; how the runtime lays out objects |
//! | `classes` | hierarchy, fields, where references stand |
//! | `sizes`, `hotspot` | shallow sizes by model |
//! | `passes`, `columns` | second and third pass: the columns of the graph |
//! | `read` | the graph, put together |
//! | `art` | objects that exist in ART's dumps only |
//! | `histogram` | counts by class in one pass, without a graph |
//! | `held_classes` | classes that only their instances hold |
//! | `native` | bytes by `NativeAllocationRegistry` |
//! | `contents`, `strings`, `stacks` | fields, text, threads and stacks, read when asked |
//! | `rewrite` | a file written anew, record by record |
//! | `convert` | Android's dialect to Java SE's |
//! | `strip` | a copy without the contents of arrays |
//! | `info` | what a dump holds, counted |
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

use heaptap_model::error::{Classified, ErrorClass};
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
    fn class(&self) -> ErrorClass {
        ErrorClass::BadInput
    }

    fn kind(&self) -> &'static str {
        match self {
            HprofError::Header(_) => "hprof-header",
            HprofError::TooLarge { .. } => "hprof-too-large",
        }
    }

    fn help(&self) -> Option<String> {
        let help = match self {
            HprofError::Header(HeaderError::CutShort) => {
                "the file was cut off at its very beginning; fetch or make the dump again"
            }
            HprofError::Header(_) => {
                "heaptap reads what ART (`heaptap dump --hprof`), HotSpot (`jmap -dump`) and \
                 converters of Android's dumps write"
            }
            HprofError::TooLarge { .. } => {
                "heaptap numbers objects and references with 32 bits each; `heaptap hprof info` \
                 counts larger dumps"
            }
        };
        Some(help.to_owned())
    }
}
