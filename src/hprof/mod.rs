//! HPROF files: what ART, Dalvik and HotSpot write. Reads them into a
//! [`HeapGraph`](crate::heap_graph::HeapGraph), and rewrites them record by record.
//!
//! | file | owns |
//! |---|---|
//! | `records` | grammar of header and top-level records |
//! | `sub_records` | grammar of what a heap dump holds |

pub mod records;
pub mod sub_records;
