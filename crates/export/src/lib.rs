//! Profiles in the formats of other tools, from the model to bytes. The crate does not read traces
//! and does not open files.
//!
//! | module | format | read by |
//! |---|---|---|
//! | [`mod@pprof`], [`gzip`] | pprof of a native heap | `go tool pprof`, Pyroscope, Speedscope |
//! | [`java_pprof`] | pprof of a Java heap, by class tree | the same |
//! | [`allocations`] | pprof of allocations that a Java runtime tracked | the same |
//! | [`folded`] | folded stacks | flamegraph.pl, inferno, Firefox Profiler |
//! | [`speedscope`] | speedscope's JSON | speedscope.app |
//! | [`csv`], [`json`] | columns and rows of a profile | spreadsheets, scripts |
//! | [`mod@parquet`] | one file per table | DuckDB, pandas |
//! | [`svg`] | a flame graph as a picture | browsers |
//! | [`packets`] | `ModuleSymbols` packets | Perfetto, appended to the trace |
//! | [`deobfuscation_packets`] | `DeobfuscationMapping` packets | Perfetto, appended to the trace |
//!
//! | module | owns |
//! |---|---|
//! | `chosen` | dumps and columns to export, and what they need |
//! | `by_name` | a tree without lines and addresses, for folded stacks and pictures |
//! | `java_stacks` | Java heaps as stacks |
//! | `text`, `wire` | names in text formats; encoding of protocol buffers |
//!
//! [`chosen`] selects dumps and columns for the text formats; [`text`] escapes names for them;
//! [`java_stacks`] converts a Java heap to a profile that all of them support. Equal input gives
//! equal bytes in every format.
//!
//! # Example
//!
//! ```
//! use heaptap_export::{chosen::Chosen, folded};
//! use heaptap_model::stacks::{Dump, Facts, Measure, NodeId, StackProfile, Values, View};
//!
//! let mut profile = StackProfile::default();
//! let frames = ["main", "load"].map(|name| profile.table.bare_frame(name));
//! let leaf = frames.into_iter().fold(NodeId::ROOT, |node, frame| profile.table.child(node, frame));
//! profile.dumps.push(Dump {
//!     measures: vec![Measure::of_view(View::Space)],
//!     values: Values { nodes: vec![leaf], columns: vec![vec![4096]] },
//!     ..Dump::default()
//! });
//!
//! let chosen = Chosen::all(&profile);
//! let mut out = Vec::new();
//! folded::write(&mut out, &profile.table, &chosen.dumps[0], 0)?;
//! assert_eq!(out, b"main;load 4096\n");
//! # Ok::<(), std::io::Error>(())
//! ```

pub mod allocations;
mod by_name;
pub mod chosen;
pub mod csv;
pub mod deobfuscation_packets;
pub mod folded;
pub mod gzip;
pub mod java_pprof;
pub mod java_stacks;
pub mod json;
pub mod packets;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod pprof;
pub mod speedscope;
pub mod svg;
pub mod text;
mod wire;

#[cfg(test)]
mod tests;
