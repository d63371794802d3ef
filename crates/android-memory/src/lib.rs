//! Parses Android's texts about the memory of a process into plain types: `dumpsys meminfo`, smaps,
//! `/proc/PID/status`, `malloc_info`, and garbage collections in the log. [`reconcile`] compares
//! their figures. The crate does not run commands and does not read traces: the caller provides the
//! text, or the rows of a trace.
//!
//! # The formats
//!
//! | source | shape | unit in the text | facts from |
//! |---|---|---|---|
//! | `dumpsys meminfo` | tables; columns and rows differ by release and are identified by name | kB | AOSP `ActivityThread`, `ActivityManagerService` |
//! | `/proc/PID/smaps`, `showmap` | one header per mapping, followed by `Name: N kB` lines | kB | the kernel's `fs/proc/task_mmu.c`, AOSP `showmap` |
//! | `/proc/PID/status` | `Name:\tvalue` | kB | the kernel's `fs/proc/array.c` |
//! | `malloc_info` | XML; jemalloc and Scudo differ | bytes | bionic, Scudo |
//! | log of Dalvik and ART | one sentence per collection | K, KB, MB, rounded down | `gc/heap.cc` of ART, `alloc/Heap.cpp` of Dalvik |
//!
//! Sizes are bytes everywhere in this crate, even if the source counts kB. Times are ns of the
//! device's BOOTTIME. Parsers keep unknown parts as text.
//!
//! # A worked example
//!
//! A line of the ART log:
//!
//! ```
//! use android_memory::gc::{Event, parse_event, parse_line};
//!
//! let line = "I/art     ( 2345): Explicit concurrent mark sweep GC freed 104710(7MB) AllocSpace \
//!             objects, 21(416KB) LOS objects, 33% free, 25MB/38MB, paused 1.230ms total 67.216ms";
//! let line = parse_line(line).expect("a line of the log");
//! let Some(Event::Collection(logged)) = parse_event(&line) else { panic!("a collection") };
//! let collection = logged.collection;
//! assert_eq!((line.pid, collection.reason.as_str()), (Some(2345), "Explicit"));
//! assert_eq!(collection.live, Some(25 << 20));
//! assert_eq!(collection.pauses, [1_230_000]);
//! // The text is rounded down to a megabyte: 25 MB means less than 26 MB.
//! assert_eq!(logged.steps.live, 1 << 20);
//! ```
//!
//! A row of meminfo. The device prints kB; the table contains bytes:
//!
//! ```
//! use android_memory::meminfo::{Column, Meminfo};
//!
//! let text = "\
//! ** MEMINFO in pid 4355 [com.example.app] **
//!                    Pss  Private  Private
//!                  Total    Dirty    Clean
//!                 ------   ------   ------
//!   Native Heap    16252    15959        0
//!         TOTAL    16252    15959        0
//! ";
//! let meminfo = Meminfo::parse(text);
//! let process = meminfo.processes().next().expect("a process");
//! let table = process.table().expect("its table");
//! assert_eq!(table.cell("Native Heap", &Column::named("Pss Total")), Some(16252 << 10));
//! ```
//!
//! # Modules
//!
//! | module | owns |
//! |---|---|
//! | [`meminfo`] | every form of `dumpsys meminfo` |
//! | [`smaps`] | memory mappings of a process, their kinds, sums and changes |
//! | [`gc`] | garbage collections logged by the runtimes, and their diagnosis |
//! | [`malloc_info`] | the allocator's report about itself |
//! | [`graphics`] | gfxinfo and dmabuf_dump: memory of textures and buffers |
//! | [`conditions`] | thermalservice, battery; kills for memory in exit-info and the log |
//! | [`status`] | `/proc/PID/status`: resident memory as counted by the kernel |
//! | [`reconcile`] | comparison of the figures of one process, with the causes of their differences |
//! | `division` | App Summary's rules: the part in which each row counts |

pub mod conditions;
mod division;
pub mod gc;
pub mod graphics;
pub mod malloc_info;
pub mod meminfo;
pub mod reconcile;
pub mod smaps;
pub mod status;

pub use division::summary_row;
