//! Data model of memory profiles of Android devices. Readers of files produce these types; tables,
//! exports and pages use them. The crate does not read any format and does not open files.
//!
//! | module | owns |
//! |---|---|
//! | [`profile`] | sampled native heaps: mappings, frames, callsites, and dumps with their figures |
//! | [`heap_graph`] | Java heaps: objects, classes, references, roots; reachability and dominators |
//! | [`stacks`] | named functions and callsites, as a tree or a list, with numbers by dump |
//! | [`timeline`] | memory of processes over time, one line of JSON per entry |
//! | [`conditions`] | heat, battery and space of a device, and its kills for memory |
//! | [`counter`], [`smaps`] | counters of a trace; the memory mappings of a process |
//! | [`names`] | demangling, names of libraries, classes of the platform |
//!
//! # Method
//!
//! Everything is a table with dense 32-bit IDs. An ID is valid as long as its table, and a parent
//! has a smaller ID than its children. Sizes are bytes and times are nanoseconds; the name of a
//! field ends with the unit if it could be another.
//!
//! Figures of a native dump are sums since profiling began: [`profile::Figures`] has bytes that are
//! scaled up for the sampling, and counts of *sampled* allocations. A heap graph keeps the order of
//! the dump's object IDs, so that "in order of IDs" means "in order of indices".
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

pub mod conditions;
pub mod counter;
pub mod heap_graph;
pub mod names;
pub mod profile;
pub mod smaps;
pub mod stacks;
pub mod timeline;
