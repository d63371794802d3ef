//! HPROF files: what ART, Dalvik and HotSpot write. Reads them into a
//! [`HeapGraph`](crate::heap_graph::HeapGraph), and rewrites them record by record.
