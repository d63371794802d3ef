//! What was measured on a phone, as plain data. Readers of files end in these types. Tables,
//! exports and pages start from them. The crate has no wire format and opens no files but to
//! map their bytes ([`bytes`]).
//!
//! | module | owns |
//! |---|---|
//! | [`profile`] | sampled native heaps: mappings, frames, callsites, and dumps with their figures |
//! | [`heap_graph`] | Java heaps: objects, classes, references, roots; reachability and dominators |
//! | [`stacks`] | named functions and the tree of callsites, with numbers by dump |
//! | [`timeline`] | memory of processes over time, an entry a line of JSON |
//! | [`counter`], [`smaps`] | counters of a trace; the mappings of a process |
//! | [`names`] | demangling, names of libraries, classes of the platform |
//! | [`units`] | sizes, durations, build IDs; the memory that a reader may use for its input |
//! | [`bytes`] | bytes of a file, mapped or owned |
//! | [`near`] | names that are almost what was typed |
//! | [`folder`] | names of files in a recording's folder |
//! | [`untrusted`] | text from a device, made safe to show |
//! | [`mod@error`] | exit class and stable kind of every error |
//!
//! # Method
//!
//! Everything is a table with dense 32-bit ids. An id is valid as long as its table, and a
//! parent has a smaller id than its children. Sizes are bytes and times are nanoseconds; the
//! field's name ends with the unit where it could be another.
//!
//! Figures of a native dump are sums since profiling began: [`profile::Figures`] has bytes that
//! are scaled up by the sampling, and counts of *sampled* allocations. A heap graph keeps the
//! order of the dump's object ids, so that "in order of ids" is "in order of indices".
//!
//! # A worked example
//!
//! One callsite with one dump, projected into named stacks:
//!
//! ```
//! use heaptap_model::profile::{Figures, Frame, HeapDump, Recording, StringId};
//! use heaptap_model::stacks::{ProjectOptions, View, project};
//!
//! let mut recording = Recording::default();
//! let tables = &mut recording.tables;
//! let [main, load] = ["main", "load"].map(|name| {
//!     let name = tables.intern_str(name);
//!     let (file, line) = (StringId::default(), 0);
//!     tables.intern_frame(Frame { mapping: None, rel_pc: 0, name, file, line })
//! });
//! // A callstack begins with its leaf.
//! let callsite = tables.intern_callsite(&[load.0, main.0]);
//! let figures = Figures { alloc_space: 8192, alloc_objects: 2, space: 4096, objects: 1 };
//! let dump = HeapDump { samples: vec![(callsite, figures)], ..HeapDump::default() };
//!
//! let profile = project(&recording, &[dump], ProjectOptions::default());
//! let dump = &profile.dumps[0];
//! let leaf = dump.values.nodes[0];
//! let names: Vec<&str> = profile.table.stack(leaf).map(|node| profile.table.name_of(node)).collect();
//! assert_eq!(names, ["load", "main"]);
//! assert_eq!(dump.column(View::Space), Some(&[4096][..]));
//! ```

pub mod bytes;
pub mod counter;
pub mod error;
pub mod folder;
pub mod heap_graph;
pub mod names;
pub mod near;
pub mod profile;
pub mod smaps;
pub mod stacks;
pub mod timeline;
pub mod units;
pub mod untrusted;
