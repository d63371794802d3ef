//! The memory of a process as the system sees it: what `dumpsys meminfo`, smaps, the kernel's
//! status files, the allocator and the garbage collector say, read from their texts into plain
//! types, and put on one clock. Knows no device and no trace: whoever fetched a text or decoded
//! a packet hands it over.
//!
//! | module | owns |
//! |---|---|
//! | `division` | App Summary's rules: as which part a row counts |
//! | `gc` | garbage collections as the runtimes log them, and what they tell |
//! | `graphics` | gfxinfo and dmabuf_dump: memory of textures and buffers |
//! | `malloc_info` | what the allocator says of itself |
//! | `meminfo` | `dumpsys meminfo` in every form |
//! | `reconcile` | figures of one process side by side, and what lies between them |
//! | `smaps` | what a process has mapped |
//! | `status` | `/proc/PID/status`: resident memory by the kernel's count |
//!
//! Sizes are bytes everywhere, also where the source counts kB; times are ns of the phone's
//! BOOTTIME.

mod division;
pub mod gc;
pub mod graphics;
pub mod malloc_info;
pub mod meminfo;
pub mod reconcile;
pub mod smaps;
pub mod status;
